-- | What the parts cost that every command passes through, one question a
-- module. For comparing two versions of a part in the same minutes; how fast
-- the whole is, @redis-client bench@ says.
module Main (main) where

import Bench.Decode qualified as Decode
import Bench.Encode qualified as Encode
import Bench.Recovery qualified as Recovery
import Bench.Slot qualified as Slot
import Bench.Submit qualified as Submit
import Criterion.Main (defaultMain)

main :: IO ()
main =
  defaultMain
    [ Decode.benchmarks,
      Encode.benchmarks,
      Recovery.benchmarks,
      Slot.benchmarks,
      Submit.benchmarks
    ]
