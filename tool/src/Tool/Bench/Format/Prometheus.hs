-- | Results in the text format of Prometheus, for the node exporter's folder of text files or a
-- push gateway. Units are the base units: seconds and bytes.
module Tool.Bench.Format.Prometheus
  ( prometheus,
  )
where

import Data.ByteString.Lazy (ByteString)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Lazy qualified as LazyText
import Data.Text.Lazy.Encoding qualified as LazyText
import Tool.Bench.Document
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram

-- | All runs, with the name of the run in the label @run@.
prometheus :: Document -> ByteString
prometheus document =
  LazyText.encodeUtf8 . LazyText.fromChunks . concatMap (\line -> [line, "\n"]) $
    concat
      [ single "ops_per_second" "gauge" "Commands answered correctly per second." runRate,
        single
          "valid"
          "gauge"
          "1 if the numbers may be used."
          (\run -> if runValid run then 1 else 0),
        single "seconds" "gauge" "Seconds measured." runSeconds,
        metric
          "operations_total"
          "counter"
          "Commands answered correctly."
          [ sample
              ""
              (labels run [("command", name)])
              (fromIntegral (Histogram.count (commandService stats)))
            | run <- runs,
              (name, stats) <- Map.toList (runCommands run)
          ],
        single "hits_total" "counter" "Reads that found something." (fromIntegral . runHits),
        single "misses_total" "counter" "Reads that found nothing." (fromIntegral . runMisses),
        metric
          "errors_total"
          "counter"
          "Commands that failed, preload and warm-up included."
          [ sample "" (labels run [("class", name)]) (fromIntegral held)
            | run <- runs,
              (name, held) <- Map.toList (runErrors run)
          ],
        single
          "client_cpu_seconds_per_operation"
          "gauge"
          "Processor time of the generator per command."
          ((/ 1e9) . runCpuPerOp),
        single
          "client_peak_resident_bytes"
          "gauge"
          "Memory of the generator."
          (fromIntegral . memoryPeakResident . runMemory),
        latency "service_seconds" "From the submit to the reply." (Just . commandService),
        latency "response_seconds" "From the intended start to the reply." commandResponse
      ]
  where
    runs = documentRuns document
    prefix = "redis_client_bench_"
    single name kind about value =
      metric name kind about [sample "" (labels run []) (value run) | run <- runs]
    metric name kind about samples
      | null samples = []
      | otherwise =
        [ Text.concat ["# HELP ", prefix, name, " ", about],
          Text.concat ["# TYPE ", prefix, name, " ", kind]
        ]
          <> map ((prefix <> name) <>) samples
    labels run more = ("run", runName run) : ("operation", specOperation (runSpec run)) : more
    sample suffix named value =
      Text.concat
        [ suffix,
          "{",
          Text.intercalate "," [name <> "=\"" <> escaped text <> "\"" | (name, text) <- named],
          "} ",
          shown value
        ]
    latency name about part =
      metric
        name
        "histogram"
        about
        [ one
          | run <- runs,
            (command, stats) <- Map.toList (runCommands run),
            Just histogram <- [part stats],
            one <- bucketLines (labels run [("command", command)]) histogram
        ]
    bucketLines named histogram =
      [bucket (shown (fromIntegral bound / 1e9)) (atMost bound histogram) | bound <- bounds]
        <> [ bucket "+Inf" (Histogram.count histogram),
             sample "_sum" named (fromInteger (Histogram.total histogram) / 1e9),
             sample "_count" named (fromIntegral (Histogram.count histogram))
           ]
      where
        bucket border held = sample "_bucket" (named <> [("le", border)]) (fromIntegral held)
    escaped = Text.replace "\n" "\\n" . Text.replace "\"" "\\\"" . Text.replace "\\" "\\\\"

-- How many values are at most this large, as exactly as the buckets show it.
atMost :: Int -> Histogram -> Int
atMost bound histogram =
  sum [held | (bucket, held) <- Histogram.buckets histogram, Histogram.bucketMiddle bucket <= bound]

-- Nanoseconds: 1, 2, 5 from 10 microseconds to 10 seconds.
bounds :: [Int]
bounds =
  [multiple * 10 ^ exponent' | exponent' <- [4 .. 9 :: Int], multiple <- [1, 2, 5]] <> [10000000000]

shown :: Double -> Text
shown value
  | value == fromIntegral whole && abs value < 1e15 = Text.pack (show whole)
  | otherwise = Text.pack (show value)
  where
    whole = round value :: Int
