-- | @redis-benchmark@ on a campaign's cell: the same test, callers, keys and bytes, against the
-- same server, right after the load.
--
-- Its callers have a connection each, while the load's callers share one: that is how each of them
-- is normally used. If redis-benchmark is not on this machine, the run has a note.
module Tool.Campaign.Reference
  ( runReferenceFor,
  )
where

import Tool.Bench.Document (Reference (..))
import Tool.Bench.RedisBenchmark (RedisBenchmark (..), runCounted)

-- | Runs redis-benchmark for about this number of seconds. Its length is a number of commands, so a
-- short run first finds how many fill the time. That run is very short, because the server may
-- synchronise its disk for each command. 'Left' says why there is no result.
runReferenceFor :: Double -> RedisBenchmark -> IO (Either String Reference)
runReferenceFor seconds benchmark =
  runCounted (max 200 (redisBenchmarkClients benchmark * 40)) benchmark >>= \case
    Left problem -> pure (Left problem)
    Right short ->
      runCounted (max 1000 (ceiling (referenceOpsPerSecond short * seconds))) benchmark
