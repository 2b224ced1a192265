-- | @redis-benchmark@ on a campaign's cell: the same test, callers, keys and
-- bytes, against the same server, right after the load.
--
-- Its callers have a connection each, the load's callers share one: that is how
-- either is used. It may not be on this machine; then the run says so.
module Tool.Campaign.Reference
  ( runReferenceFor,
  )
where

import Tool.Bench.Document (Reference (..))
import Tool.Bench.RedisBenchmark (RedisBenchmark (..), runCounted)

-- | Runs it for about so many seconds. It counts commands and not seconds, so a short run
-- finds how many fill the time; a short one indeed, because the server may synchronise its
-- disk for each. 'Left' says why there is none.
runReferenceFor :: Double -> RedisBenchmark -> IO (Either String Reference)
runReferenceFor seconds benchmark =
  runCounted (max 200 (redisBenchmarkClients benchmark * 40)) benchmark >>= \case
    Left problem -> pure (Left problem)
    Right short ->
      runCounted (max 1000 (ceiling (referenceOpsPerSecond short * seconds))) benchmark
