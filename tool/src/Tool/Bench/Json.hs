-- | Results as JSON, and back.
--
-- The schema is named in the document, @redis-client-bench/1@: fields may be
-- added under the same name, a field that changes its meaning needs the next.
-- Latencies are nanoseconds, memory is bytes. The histogram is written in full,
-- as pairs of bucket and count, so that documents can be merged without loss.
module Tool.Bench.Json
  ( schema,
    document,
    runObject,
    latencyObject,
    referenceObject,
    RunSummary (..),
    decodeSummaries,
  )
where

import Data.Aeson (FromJSON (parseJSON), Value, eitherDecodeStrict', object, withObject, (.:), (.:?), (.=))
import Data.Aeson.Types (Pair)
import Data.ByteString (ByteString)
import Data.Map.Strict (Map)
import Data.Text (Text)
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Result
import Tool.Options.Bench (LoadOptions (..), operationName)

-- | The name of the schema.
schema :: Text
schema = "redis-client-bench/1"

-- | A whole document: the environment, the runs, and what else there is.
document :: [Pair] -> [RunResult] -> [Pair] -> Value
document environment results others =
  object $
    [ "schema" .= schema,
      "environment" .= object environment,
      "runs" .= map runObject results
    ]
      <> others

-- | One run. Its first four fields are those that other harnesses write.
runObject :: RunResult -> Value
runObject result =
  object
    [ "operation" .= operationName (runOperation result),
      "ops_per_sec" .= opsPerSecond result,
      "duration_sec" .= runSeconds result,
      "total_ops" .= totalOps result,
      "target" .= targetName (runTarget result),
      "tls" .= runTls result,
      "server" .= runServer result,
      "nodes" .= runNodes result,
      "parameters" .= parameters (runLoad result),
      "capabilities" .= runCapabilities result,
      "hits" .= runHits result,
      "misses" .= runMisses result,
      "hit_ratio" .= hitRatio result,
      "error_count" .= errorCount result,
      "errors" .= runErrors result,
      "latency_ns" .= latencyObject (latencies result),
      "latency_ns_get" .= latencyObject (runGets result),
      "latency_ns_set" .= latencyObject (runSets result),
      "client_cpu_ns_per_op" .= runCpuPerOp result,
      "memory_bytes"
        .= object
          [ "peak_resident" .= memoryPeakResident (runMemory result),
            "max_in_use" .= memoryMaxInUse (runMemory result),
            "max_live" .= memoryMaxLive (runMemory result)
          ],
      "commandstats" .= agreementObject (runAgreement result),
      "problems" .= problems result,
      "redis_benchmark" .= (referenceObject <$> runReference result)
    ]

parameters :: LoadOptions -> Value
parameters load =
  object
    [ "threads" .= loadThreads load,
      "batch" .= loadBatch load,
      "in_flight" .= (loadThreads load * loadBatch load),
      "mux_count" .= loadMuxCount load,
      "keys" .= loadKeys load,
      "key_size" .= loadKeySize load,
      "value_size" .= loadValueSize load,
      "warmup_sec" .= loadWarmup load,
      "seed" .= loadSeed load,
      "polling" .= loadPolling load
    ]

-- | Percentiles, extremes, and the buckets they come from.
latencyObject :: Histogram -> Value
latencyObject histogram =
  object
    [ "count" .= Histogram.count histogram,
      "mean" .= Histogram.mean histogram,
      "min" .= Histogram.minimumValue histogram,
      "p50" .= Histogram.percentile 50 histogram,
      "p95" .= Histogram.percentile 95 histogram,
      "p99" .= Histogram.percentile 99 histogram,
      "p99_9" .= Histogram.percentile 99.9 histogram,
      "p99_99" .= Histogram.percentile 99.99 histogram,
      "max" .= Histogram.maximumValue histogram,
      "buckets" .= [(Histogram.bucketLowest bucket, held) | (bucket, held) <- Histogram.buckets histogram]
    ]

agreementObject :: Agreement -> Value
agreementObject = \case
  Agrees same -> object ["status" .= ("agrees" :: Text), "client" .= counts same, "server" .= counts same]
  Disagrees client server ->
    object ["status" .= ("disagrees" :: Text), "client" .= counts client, "server" .= counts server]
  NotComparable reason -> object ["status" .= ("not compared" :: Text), "reason" .= reason]
  where
    counts held = object ["get" .= countGets held, "set" .= countSets held]

-- | A run of redis-benchmark.
referenceObject :: Reference -> Value
referenceObject reference =
  object
    [ "ops_per_sec" .= referenceOpsPerSecond reference,
      "total_ops" .= referenceCommands reference,
      "p50_ms" .= referenceP50 reference,
      "p99_ms" .= referenceP99 reference,
      "cpu_ns_per_op" .= referenceCpuPerOp reference,
      "command" .= unwords (referenceArguments reference)
    ]

-- | What the gate needs to know of a run that another process made.
data RunSummary = RunSummary
  { summaryOpsPerSecond :: Double,
    -- | Nanoseconds.
    summaryCpuPerOp :: Double,
    summaryMisses :: Int,
    summaryErrors :: Map String Int,
    summaryProblems :: [String],
    summaryPeakResident :: Int,
    summaryMaxLive :: Int,
    summaryServer :: String,
    -- | Why the server's counts were not compared, if they were not.
    summaryNotCompared :: Maybe String
  }
  deriving stock (Eq, Show)

instance FromJSON RunSummary where
  parseJSON = withObject "run" $ \run -> do
    memory <- run .: "memory_bytes"
    statistics <- run .: "commandstats"
    RunSummary
      <$> run .: "ops_per_sec"
      <*> run .: "client_cpu_ns_per_op"
      <*> run .: "misses"
      <*> run .: "errors"
      <*> run .: "problems"
      <*> memory .: "peak_resident"
      <*> memory .: "max_live"
      <*> run .: "server"
      <*> statistics .:? "reason"

newtype Runs = Runs [RunSummary]

instance FromJSON Runs where
  parseJSON = withObject "document" $ \whole -> do
    name <- whole .: "schema"
    if name == schema
      then Runs <$> whole .: "runs"
      else fail "another schema"

-- | The runs of a document of this schema.
decodeSummaries :: ByteString -> Either String [RunSummary]
decodeSummaries bytes = (\(Runs runs) -> runs) <$> eitherDecodeStrict' bytes
