-- | Results in the formats of other tools, for programs that read those.
module Tool.Bench.Format.Csv
  ( csv,
    seedJson,
    memtierJson,
  )
where

import Data.Aeson (Value, encode, object, (.=))
import Data.Aeson.Key qualified as Key
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
import Tool.Bench.Histogram.Hdr qualified as Hdr
import Tool.Span (inMillis)
import Tool.Text (fixed)

-- | The columns of @redis-benchmark --csv@, a row for each run. A run of several kinds of commands
-- also has a row for each kind. Latencies are those that callers saw.
csv :: Document -> ByteString
csv document =
  LazyText.encodeUtf8 . LazyText.fromChunks . map ((<> "\n") . Text.intercalate "," . map quoted) $
    Text.words
      "test rps avg_latency_ms min_latency_ms p50_latency_ms p95_latency_ms p99_latency_ms max_latency_ms" :
    concatMap rows (documentRuns document)
  where
    rows run =
      row (runName run) (runRate run) (runLatencies run) :
        [ row
            (runName run <> " " <> Text.toUpper name)
            (shareOfRate run (Histogram.count (commandService stats)))
            (commandLatencies stats)
          | Map.size (runCommands run) > 1,
            (name, stats) <- Map.toList (runCommands run)
        ]
    row name rate latencies =
      [ name,
        Text.pack (fixed 2 rate),
        millis (Histogram.mean latencies),
        millis (fromIntegral (Histogram.minimumValue latencies)),
        at 50 latencies,
        at 95 latencies,
        at 99 latencies,
        millis (fromIntegral (Histogram.maximumValue latencies))
      ]
    at percent = millis . fromIntegral . Histogram.percentile percent
    millis nanos = Text.pack (fixed 3 (inMillis nanos))
    quoted text = "\"" <> Text.replace "\"" "\"\"" text <> "\""

-- The part of the run's rate that belongs to this number of its commands.
shareOfRate :: Run -> Int -> Double
shareOfRate run count
  | runOps run == 0 = 0
  | otherwise = runRate run * fromIntegral count / fromIntegral (runOps run)

-- | One object for each run, with four keys.
seedJson :: Document -> ByteString
seedJson document =
  (<> "\n") . encode $
    [ object
        [ "operation" .= specOperation (runSpec run),
          "ops_per_sec" .= runRate run,
          "duration_sec" .= runSeconds run,
          "total_ops" .= runOps run
        ]
      | run <- documentRuns document
    ]

-- | The part of memtier_benchmark's @--json-out-file@ that its plotters read, for the first run.
-- Latencies are those that callers saw.
memtierJson :: Document -> ByteString
memtierJson document = (<> "\n") . encode . object $ case documentRuns document of
  [] -> []
  run : _ ->
    [ "configuration"
        .= object
          [ "server" .= serverName (runServer run),
            "threads" .= specThreads (runSpec run),
            "pipeline" .= specBatch (runSpec run),
            "data_size" .= specValueSizes (runSpec run),
            "test_time" .= specDuration (runSpec run)
          ],
      "ALL STATS"
        .= object
          ( ["Runtime" .= runtime run]
              <> [ Key.fromText (capitalised name <> "s")
                     .= stats
                       run
                       (Histogram.count (commandService one))
                       (commandLatencies one)
                       (Just one)
                   | (name, one) <- Map.toList (runCommands run)
                 ]
              <> ["Totals" .= stats run (runOps run) (runLatencies run) Nothing]
          )
    ]
  where
    capitalised text = Text.toUpper (Text.take 1 text) <> Text.drop 1 text
    runtime :: Run -> Value
    runtime run =
      object
        [ "Start time" .= (start `div` 1000000),
          "Finish time" .= (start `div` 1000000 + round (runSeconds run * 1000)),
          "Total duration" .= (round (runSeconds run * 1000) :: Int),
          "Time unit" .= ("MILLISECONDS" :: Text)
        ]
      where
        start = case runIterations run of
          first : _ -> iterationStarted first
          [] -> 0
    stats :: Run -> Int -> Histogram -> Maybe CommandStats -> Value
    stats run count latencies one =
      object
        [ "Count" .= count,
          "Ops/sec" .= shareOfRate run count,
          "Hits/sec" .= rate (maybe (runHits run) commandHits one),
          "Misses/sec" .= rate (maybe (runMisses run) commandMisses one),
          "Latency" .= inMillis (Histogram.mean latencies),
          "Average Latency" .= inMillis (Histogram.mean latencies),
          "Min Latency" .= inMillis (fromIntegral (Histogram.minimumValue latencies)),
          "Max Latency" .= inMillis (fromIntegral (Histogram.maximumValue latencies)),
          "Percentile Latencies"
            .= object
              ( [ Key.fromText name
                    .= inMillis (fromIntegral (Histogram.percentile percent latencies))
                  | (name, percent) <-
                      [ ("p50.00", 50),
                        ("p90.00", 90),
                        ("p95.00", 95),
                        ("p99.00", 99),
                        ("p99.90", 99.9),
                        ("p99.99", 99.99)
                      ]
                ]
                  <> [ "Histogram log format"
                         .= object ["Compressed Histogram" .= Hdr.encodeText latencies]
                     ]
              )
        ]
      where
        rate :: Int -> Double
        rate found = if runSeconds run <= 0 then 0 else fromIntegral found / runSeconds run
