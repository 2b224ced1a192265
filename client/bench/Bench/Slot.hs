-- | What does it cost to compute the slot of a key?
module Bench.Slot (benchmarks) where

import Criterion.Main (Benchmark, bench, bgroup, whnf)
import Data.ByteString (ByteString)
import Redis.Internal.Protocol.Slot (keySlot)

-- | The keys have 16 bytes.
benchmarks :: Benchmark
benchmarks =
  bgroup
    "slot"
    [ bench "without a tag" (whnf keySlot ("user:1000:000042" :: ByteString)),
      bench "with a tag" (whnf keySlot ("{user1000}:00042" :: ByteString))
    ]
