-- | What does a round trip cost: submit, send, receive, wake?
--
-- It runs over one connection to a private server on the loopback interface, so the figures include
-- the server's and the kernel's work.
module Bench.Submit (benchmarks) where

import Bench.Surroundings
import Control.Monad (replicateM)
import Criterion.Main (Benchmark, bench, bgroup, envWithCleanup, whnfIO)
import Data.ByteString (ByteString)
import Redis
import Redis.Commands qualified as Commands

-- | One caller that waits for each command, and one that waits for many at once. The figure of a
-- batch is for all its commands.
benchmarks :: Benchmark
benchmarks =
  envWithCleanup filled close $ \surroundings ->
    bgroup
      "submit"
      [ bench "1 command, then wait" . whnfIO $
          run (client surroundings) (Commands.get key),
        bench "64 commands, then wait for all" . whnfIO $
          replicateM 64 (submit (client surroundings) (Commands.get key)) >>= mapM_ awaitReply
      ]

key :: ByteString
key = "user:1000:000042"

filled :: IO Surroundings
filled = do
  surroundings <- open
  surroundings <$ run (client surroundings) (Commands.set key "a value of 16 B.")
