-- | What do the parts cost that every command passes through? Each module answers one question. Use
-- it to compare two versions of a part within the same minutes; @redis-client bench@ measures the
-- speed of the whole.
module Main (main) where

import Bench.Cached qualified as Cached
import Bench.Decode qualified as Decode
import Bench.Encode qualified as Encode
import Bench.Recovery qualified as Recovery
import Bench.Slot qualified as Slot
import Bench.Submit qualified as Submit
import Bench.Transaction qualified as Transaction
import Criterion.Main (defaultMain)

main :: IO ()
main =
  defaultMain
    [ Cached.benchmarks,
      Decode.benchmarks,
      Encode.benchmarks,
      Recovery.benchmarks,
      Slot.benchmarks,
      Submit.benchmarks,
      Transaction.benchmarks
    ]
