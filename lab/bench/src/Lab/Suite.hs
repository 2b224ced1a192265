-- | The standard runs: GET, SET and mixed, against a private server and a private cluster of five
-- primaries, each beside @redis-benchmark@.
module Lab.Suite
  ( suite,
    standardBenchmark,
    serverCount,
    fillForCluster,
    referenceKeys,
    templateOfKeys,
  )
where

import Control.Monad (forM)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict qualified as Map
import Data.Text qualified as Text
import Lab.Options.Suite (SuiteOptions (..))
import Redis.Config (TlsConfig (..), getTls)
import Tool.Bench.Document
import Tool.Bench.Private (withPrivate)
import Tool.Bench.Progress (Progress, announce)
import Tool.Bench.RedisBenchmark
import Tool.Bench.Run (measure)
import Tool.Bench.Time (Nanos, monotonic)
import Tool.Bench.Workload (newWorkload)
import Tool.Bench.Workload.Keys (KeyPart (..), KeyTemplate (..), describeKeyTemplate)
import Tool.Connect (Target (targetBase), countsByName, nodeCalls, primaries, quiet, randomKeys, serverKeys, targetIsCluster, targetPlace, withTarget)
import Tool.Options.Bench
import Tool.Options.Load (Check (..), Plan (..), defaultPlan)

-- | Makes all runs. Returns notes for the reader, and the runs.
suite :: Progress -> SuiteOptions -> IO ([String], [Run])
suite progress options = do
  found <- forM [minBound .. maxBound] $ \kind ->
    withPrivate kind False [] $ \target -> do
      filled <- if targetIsCluster target then fillForCluster progress target else pure (Right ())
      forM [minBound .. maxBound] $ \operation -> do
        result <- measure progress target (newWorkload operation load) load
        beside filled target operation result
  let runs = concat found
  pure (dedup [note | (Just note, _) <- runs], map snd runs)
  where
    load = defaultLoad {loadDuration = suiteDuration options, loadPlan = defaultPlan {planAllowed = [Saturation]}}
    beside filled target operation result = case (filled, operation) of
      (_, OperationMixed) -> pure (Nothing, result)
      (Left problem, _) -> pure (Just problem, result)
      (Right (), _) -> do
        announce progress ("  redis-benchmark " <> operationName operation)
        outcome <- runRedisBenchmark (serverCount target operation) (suiteDuration options) (standardBenchmark target operation)
        pure $ case outcome of
          Left problem -> (Just problem, result)
          Right reference -> (Nothing, result {runReference = Just reference})
    dedup = \case
      [] -> []
      note : rest -> note : dedup (filter (/= note) rest)

-- | The run with @-c 16 -P 64@, in a cluster @-c 20 -P 64@, and the sizes of the suite.
standardBenchmark :: Target -> Operation -> RedisBenchmark
standardBenchmark target operation =
  RedisBenchmark
    { redisBenchmarkHost = fst (targetPlace target),
      redisBenchmarkPort = snd (targetPlace target),
      redisBenchmarkCluster = targetIsCluster target,
      redisBenchmarkTls = referenceTls <$> getTls (targetBase target),
      redisBenchmarkLoad = ReferenceTest (operationName operation),
      redisBenchmarkClients = if targetIsCluster target then 20 else 16,
      redisBenchmarkPipeline = 64,
      redisBenchmarkKeys = if targetIsCluster target then clusterKeys else loadKeys defaultLoad,
      redisBenchmarkValueSize = loadValueSize defaultLoad,
      redisBenchmarkPrefix = []
    }
  where
    referenceTls tls =
      ReferenceTls {referenceAuthority = tlsCaFile tls, referenceInsecure = not (tlsVerify tls)}

-- | How often each server has run the command of an operation, and when it said so. Only for a
-- cluster, where redis-benchmark's own clock is too coarse.
serverCount :: Target -> Operation -> Maybe (IO [(Int, Nanos)])
serverCount target operation
  | targetIsCluster target = Just . withTarget quiet target $ \client ->
    primaries client >>= traverse (\node -> (,) <$> called client node <*> monotonic)
  | otherwise = Nothing
  where
    called client node = Map.findWithDefault 0 (Text.pack (operationName operation)) . countsByName <$> nodeCalls client node

-- In a cluster, redis-benchmark uses one slot per node, with keys of each number in that slot. A
-- fifth of our number of keys for each of five nodes makes the same number in total. With fewer
-- keys it would read everything from the processor's nearest cache.
clusterKeys :: Int
clusterKeys = loadKeys defaultLoad `div` 5

-- | Writes the keys of redis-benchmark in a cluster. They have names of their own, and a GET that
-- misses is cheaper than one that hits. So this sends SETs until hardly any of its keys is missing.
fillForCluster :: Progress -> Target -> IO (Either String ())
fillForCluster progress target = do
  announce progress "cluster: writing redis-benchmark's keys"
  go (10 :: Int)
  where
    go left =
      runCounted 700000 (standardBenchmark target OperationSet) {redisBenchmarkPipeline = 8} >>= \case
        Left problem -> pure (Left problem)
        Right _ -> do
          -- A node that gets less processor time than the others also gets fewer keys.
          held <- serverKeys target
          if held * 1000 >= 998 * loadKeys defaultLoad || left <= 1 then pure (Right ()) else go (left - 1)

-- | The template of the keys that 'fillForCluster' has written, from a cluster that has no other
-- keys yet. 'Left' says what is wrong with the keys.
referenceKeys :: Target -> IO (Either String String)
referenceKeys target = maybe (Left "redis-benchmark's keys in a cluster are not key:{TAG}:NUMBER") Right . templateOfKeys <$> randomKeys target

-- | The template of redis-benchmark's keys, from one key of each node. redis-benchmark fills up
-- tags of two letters with a brace, which is not part of the tag: keys of the template, without it,
-- are in the same slots.
templateOfKeys :: [ByteString] -> Maybe String
templateOfKeys = fmap template . mapM tagOf
  where
    template tags = describeKeyTemplate (KeyTemplate [KeyText "key:", KeyTags tags, KeyText ":", KeyNumber digits])
    tagOf key = case Char8.break (== '}') <$> Char8.stripPrefix "key:{" key of
      Just (tag, rest) | [_, number] <- Char8.split ':' rest, Char8.length number == digits -> Just tag
      _ -> Nothing
    digits = 12
