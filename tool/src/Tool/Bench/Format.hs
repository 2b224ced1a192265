-- | Results in the formats of other tools, for programs that read those.
module Tool.Bench.Format
  ( csv,
    seedJson,
    memtierJson,
    hdrLog,
    hgrm,
    hgrmFiles,
    prometheus,
  )
where

import Data.Aeson (Value, encode, object, (.=))
import Data.Aeson.Key qualified as Key
import Data.ByteString.Lazy (ByteString)
import Data.Char (isAlphaNum)
import Data.List qualified as List
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
import Tool.Span (dated, inMillis, secondsIn)
import Tool.Text (fixed, shown)

-- | The columns of @redis-benchmark --csv@, a row for each run. A run of several kinds of commands
-- also has a row for each kind. Latencies are those that callers saw.
csv :: Document -> ByteString
csv document =
  encoded . map (Text.intercalate "," . map quoted) $
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
      name :
      written 2 rate :
      map
        (written 3)
        [ inMillis (Histogram.mean latencies),
          millisOf Histogram.minimumValue latencies,
          at 50 latencies,
          at 95 latencies,
          at 99 latencies,
          millisOf Histogram.maximumValue latencies
        ]
    at percent = millisOf (Histogram.percentile percent)
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
          ( ("Runtime" .= runtime run) :
            [ Key.fromText (capitalised name <> "s") .= stats run count latencies (Just one)
              | (name, one) <- Map.toList (runCommands run),
                let count = Histogram.count (commandService one)
                    latencies = commandLatencies one
            ]
              <> ["Totals" .= stats run (runOps run) (runLatencies run) Nothing]
          )
    ]
  where
    capitalised text = Text.toUpper (Text.take 1 text) <> Text.drop 1 text
    runtime :: Run -> Value
    runtime run =
      object
        [ "Start time" .= start,
          "Finish time" .= (start + long),
          "Total duration" .= long,
          "Time unit" .= ("MILLISECONDS" :: Text)
        ]
      where
        start = sum (map iterationStarted (take 1 (runIterations run))) `div` 1000000
        long = round (runSeconds run * 1000) :: Int
    stats :: Run -> Int -> Histogram -> Maybe CommandStats -> Value
    stats run count latencies one =
      object
        [ "Count" .= count,
          "Ops/sec" .= shareOfRate run count,
          "Hits/sec" .= shareOfRate run (maybe (runHits run) commandHits one),
          "Misses/sec" .= shareOfRate run (maybe (runMisses run) commandMisses one),
          "Latency" .= inMillis (Histogram.mean latencies),
          "Average Latency" .= inMillis (Histogram.mean latencies),
          "Min Latency" .= millisOf Histogram.minimumValue latencies,
          "Max Latency" .= millisOf Histogram.maximumValue latencies,
          "Percentile Latencies"
            .= object
              ( "Histogram log format" .= object ["Compressed Histogram" .= Hdr.encodeText latencies] :
                  [ Key.fromText ("p" <> written 2 percent)
                      .= millisOf (Histogram.percentile percent) latencies
                    | percent <- [50, 90, 95, 99, 99.9, 99.99]
                  ]
              )
        ]

-- | A log of intervals in the format of HdrHistogram (version 1.3), which its tools merge and cut:
-- nanoseconds, with a line for each slice of each iteration, command, and kind of time. An
-- iteration without slices is one interval. Tags are
-- @run\/command\/service@ and @run\/command\/response@.
hdrLog :: Document -> ByteString
hdrLog document =
  encoded $
    "#[Histogram log format version 1.3]" :
    ("#[StartTime: " <> written 3 (secondsIn origin) <> " (seconds since epoch), " <> clockText <> "]") :
    "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"" :
      [ line
        | run <- documentRuns document,
          iteration <- runIterations run,
          line <- interval run iteration
      ]
  where
    origin = case map iterationStarted (concatMap runIterations (documentRuns document)) of
      [] -> manifestStarted (documentManifest document)
      first : rest -> List.foldl' min first rest
    clockText = Text.pack (dated "%a %b %d %H:%M:%S UTC %Y" origin)
    interval run iteration = case iterationSeries iteration of
      [] ->
        concat
          [ logLines name 0 (iterationSeconds iteration) (commandService stats) (commandResponse stats)
            | (name, stats) <- Map.toList (iterationCommands iteration)
          ]
      slices ->
        concat
          [ logLines name (sliceAt slice) (sliceSpan slice) (sliceService stats) (sliceResponse stats)
            | slice <- slices,
              (name, stats) <- Map.toList (sliceCommands slice)
          ]
      where
        logLines name at long service response =
          [ Text.intercalate
              ","
              [ "Tag=" <> tag (Text.intercalate "/" [runName run, name, kind]),
                written 3 (secondsIn (iterationStarted iteration - origin) + at),
                written 3 long,
                written 3 (millisOf Histogram.maximumValue histogram),
                Hdr.encodeText histogram
              ]
            | (kind, Just histogram) <- [("service", Just service), ("response", response)]
          ]
    -- Characters that would end the tag.
    tag = Text.map (\char -> if char `elem` (", \t\r\n" :: String) then '_' else char)

-- | A table of percentiles (@.hgrm@) as HdrHistogram's plotters draw it, in milliseconds, with five
-- steps for each halving of the remaining share.
hgrm :: Histogram -> ByteString
hgrm histogram =
  encoded $
    ["       Value     Percentile TotalCount 1/(1-Percentile)", ""]
      <> map row (steps 0)
      <> [ "#[Mean    = " <> figure (Histogram.mean histogram)
             <> (", StdDeviation   = " <> figure deviation <> "]"),
           "#[Max     = " <> figure (fromIntegral (Histogram.maximumValue histogram))
             <> (", Total count    = " <> wide 12 (shown count) <> "]"),
           "#[Buckets =           32, SubBuckets     =         2048]"
         ]
  where
    count = Histogram.count histogram
    wide size = Text.justifyRight size ' '
    figure = wide 12 . written 3 . inMillis
    deviation
      | count == 0 = 0
      | otherwise =
        sqrt $
          sum
            [ fromIntegral held * away bucket ^ (2 :: Int)
              | (bucket, held) <- Histogram.buckets histogram
            ]
            / fromIntegral count
    away bucket = fromIntegral (Histogram.bucketMiddle bucket) - Histogram.mean histogram
    -- Ends where the next step would be past the last value.
    steps :: Double -> [Double]
    steps percent
      | count == 0 = []
      | 1 - percent / 100 < 1 / fromIntegral count = [percent, 100]
      | otherwise =
        let halvings = floor (logBase 2 (100 / (100 - percent)) + 1e-9) + 1 :: Int
         in percent : steps (percent + 100 / (5 * 2 ^^ halvings))
    row percent =
      Text.unwords $
        figure (fromIntegral value) :
        written 12 (percent / 100) :
        wide 10 (shown upTo) :
          [wide 14 (written 2 (100 / (100 - percent))) | percent < 100]
      where
        value
          | percent <= 0 = Histogram.minimumValue histogram
          | otherwise = Histogram.percentile percent histogram
        upTo
          | percent >= 100 = count
          | otherwise = max 1 (ceiling (percent * fromIntegral count / 100 - 1e-9))

-- | A table for each run, command and kind of time, with the end of the name of its file.
hgrmFiles :: Document -> [(FilePath, ByteString)]
hgrmFiles document =
  [ (concat [".", safe (runName run), ".", safe name, kind, ".hgrm"], hgrm histogram)
    | run <- documentRuns document,
      (name, stats) <- Map.toList (runCommands run),
      (kind, Just histogram) <-
        [("", Just (commandService stats)), (".response", commandResponse stats)]
  ]
  where
    safe =
      map (\char -> if isAlphaNum char || char `elem` ("-_." :: String) then char else '-')
        . Text.unpack

-- | The text format of Prometheus, for the node exporter's folder of text files or a push gateway,
-- with the name of the run in the label @run@. Units are the base units: seconds and bytes.
prometheus :: Document -> ByteString
prometheus document =
  encoded . concat $
    [ single "ops_per_second" "gauge" "Commands answered correctly per second." runRate,
      single "valid" "gauge" "1 if the numbers may be used." (\run -> if runValid run then 1 else 0),
      single "seconds" "gauge" "Seconds measured." runSeconds,
      each "operations_total" "Commands answered correctly." "command" $
        fmap (Histogram.count . commandService) . runCommands,
      single "hits_total" "counter" "Reads that found something." (fromIntegral . runHits),
      single "misses_total" "counter" "Reads that found nothing." (fromIntegral . runMisses),
      each "errors_total" "Commands that failed, preload and warm-up included." "class" runErrors,
      single
        "client_cpu_seconds_per_operation"
        "gauge"
        "Processor time of the generator per command."
        ((/ 1e9) . runCpuPerOp),
      single "client_peak_resident_bytes" "gauge" "Memory of the generator." $
        fromIntegral . memoryPeakResident . runMemory,
      latency "service_seconds" "From the submit to the reply." (Just . commandService),
      latency "response_seconds" "From the intended start to the reply." commandResponse
    ]
  where
    runs = documentRuns document
    prefix = "redis_client_bench_"
    single name kind about value =
      metric name kind about [sample "" (labels run []) (value run) | run <- runs]
    -- A counter with this label.
    each name about label counts =
      metric
        name
        "counter"
        about
        [ sample "" (labels run [(label, one)]) (fromIntegral count)
          | run <- runs,
            (one, count) <- Map.toList (counts run)
        ]
    metric name kind about samples
      | null samples = []
      | otherwise =
        Text.concat ["# HELP ", prefix, name, " ", about] :
        Text.concat ["# TYPE ", prefix, name, " ", kind] :
        map ((prefix <> name) <>) samples
    labels run more = ("run", runName run) : ("operation", specOperation (runSpec run)) : more
    sample suffix named value =
      Text.concat
        [ suffix,
          "{",
          Text.intercalate "," [name <> "=\"" <> escaped text <> "\"" | (name, text) <- named],
          "} ",
          number value
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
      [bucket (number (fromIntegral bound / 1e9)) (atMost bound histogram) | bound <- bounds]
        <> [ bucket "+Inf" (Histogram.count histogram),
             sample "_sum" named (fromInteger (Histogram.total histogram) / 1e9),
             sample "_count" named (fromIntegral (Histogram.count histogram))
           ]
      where
        bucket border held = sample "_bucket" (named <> [("le", border)]) (fromIntegral held)
    escaped = Text.replace "\n" "\\n" . Text.replace "\"" "\\\"" . Text.replace "\\" "\\\\"
    -- Nanoseconds: 1, 2, 5 from 10 microseconds to 10 seconds.
    bounds =
      [multiple * 10 ^ power | power <- [4 .. 9 :: Int], multiple <- [1, 2, 5]] <> [10000000000]
    -- How many values are at most this large, as exactly as the buckets show it.
    atMost :: Int -> Histogram -> Int
    atMost bound histogram =
      sum [held | (bucket, held) <- Histogram.buckets histogram, Histogram.bucketMiddle bucket <= bound]
    number :: Double -> Text
    number value
      | value == fromIntegral whole && abs value < 1e15 = shown whole
      | otherwise = shown value
      where
        whole = round value :: Int

encoded :: [Text] -> ByteString
encoded = LazyText.encodeUtf8 . LazyText.fromChunks . concatMap (\line -> [line, "\n"])

millisOf :: (Histogram -> Int) -> Histogram -> Double
millisOf part = inMillis . fromIntegral . part

written :: Int -> Double -> Text
written digits = Text.pack . fixed digits
