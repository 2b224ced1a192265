-- | What do MULTI and EXEC cost around two commands?
--
-- 256 callers, each of which waits for its replies, use one server on this machine. The server runs
-- four commands for a transaction, and two for the same work without one. So the second row sends
-- four commands as well, to separate the library's share from the server's.
module Bench.Transaction (benchmarks) where

import Bench.Surroundings
import Control.Concurrent.Async (replicateConcurrently_)
import Control.Monad (replicateM_, void)
import Criterion.Main (Benchmark, bench, bgroup, envWithCleanup, whnfIO)
import Data.ByteString (ByteString)
import Redis
import Redis.Commands qualified as Commands
import Redis.Transaction

-- | Figures are for 256 callers with 20 turns each: divide by 5120 for one turn.
benchmarks :: Benchmark
benchmarks =
  envWithCleanup open close $ \surroundings ->
    bgroup
      "256 callers"
      [ bench "2 commands" (callers (pipelined2 (client surroundings))),
        bench "4 commands at once" (callers (pipelined4 (client surroundings))),
        bench "MULTI, 2 commands, EXEC" (callers (transaction2 (client surroundings)))
      ]
  where
    callers = whnfIO . replicateConcurrently_ 256 . replicateM_ 20

key :: ByteString
key = "user:1000:000042"

pipelined2, pipelined4, transaction2 :: Client -> IO ()
pipelined2 on = void (runPipeline on ((,) <$> pipelined (Commands.incr key) <*> pipelined (Commands.get key)))
pipelined4 on =
  void . runPipeline on $
    (,,,) <$> pipelined Commands.ping <*> pipelined (Commands.incr key) <*> pipelined (Commands.get key) <*> pipelined Commands.ping
transaction2 on = void (runTransaction on ((,) <$> queued (Commands.incr key) <*> queued (Commands.get key)))
