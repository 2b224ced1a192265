-- | The two text formats of HdrHistogram: logs of intervals (version 1.3), which its tools merge
-- and cut, and tables of percentiles (@.hgrm@), which its plotters draw. The histograms in logs
-- hold nanoseconds; the tables are in milliseconds.
module Tool.Bench.Format.Hdr
  ( hdrLog,
    hgrm,
    hgrmFiles,
  )
where

import Data.ByteString.Lazy (ByteString)
import Data.Char (isAlphaNum)
import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Lazy qualified as LazyText
import Data.Text.Lazy.Encoding qualified as LazyText
import Tool.Bench.Document
import Tool.Bench.Document.Totals (runCommands)
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Histogram.Hdr qualified as Hdr
import Tool.Span (dated, inMillis, secondsIn)
import Tool.Text (fixed)

-- | A log with a line for each slice of each iteration, command, and kind of time. An
-- iteration without slices is one interval. Tags are
-- @run\/command\/service@ and @run\/command\/response@.
hdrLog :: Document -> ByteString
hdrLog document =
  encoded $
    [ "#[Histogram log format version 1.3]",
      "#[StartTime: " <> seconds origin <> " (seconds since epoch), " <> clockText <> "]",
      "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
    ]
      <> concat
        [ interval run iteration
          | run <- documentRuns document,
            iteration <- runIterations run
        ]
  where
    origin = case map iterationStarted (concatMap runIterations (documentRuns document)) of
      [] -> manifestStarted (documentManifest document)
      first : rest -> List.foldl' min first rest
    clockText = Text.pack (dated "%a %b %d %H:%M:%S UTC %Y" origin)
    seconds nanos = Text.pack (fixed 3 (secondsIn nanos))
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
                Text.pack (fixed 3 (secondsIn (iterationStarted iteration - origin) + at)),
                Text.pack (fixed 3 long),
                Text.pack (fixed 3 (inMillis (fromIntegral (Histogram.maximumValue histogram)))),
                Hdr.encodeText histogram
              ]
            | (kind, Just histogram) <- [("service", Just service), ("response", response)]
          ]
    -- Characters that would end the tag.
    tag = Text.map (\char -> if char `elem` (", \t\r\n" :: String) then '_' else char)

-- | A table of percentiles, with five steps for each halving of the remaining share.
hgrm :: Histogram -> ByteString
hgrm histogram =
  encoded $
    ["       Value     Percentile TotalCount 1/(1-Percentile)", ""]
      <> map row (steps 0)
      <> [ Text.concat
             [ "#[Mean    = ",
               figure (Histogram.mean histogram),
               ", StdDeviation   = ",
               figure deviation,
               "]"
             ],
           Text.concat
             [ "#[Max     = ",
               figure (fromIntegral (Histogram.maximumValue histogram)),
               ", Total count    = ",
               wide 12 (show count),
               "]"
             ],
           "#[Buckets =           32, SubBuckets     =         2048]"
         ]
  where
    count = Histogram.count histogram
    millis = inMillis
    wide size text = Text.justifyRight size ' ' (Text.pack text)
    figure nanos = wide 12 (fixed 3 (millis nanos))
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
      let value =
            if percent <= 0
              then Histogram.minimumValue histogram
              else Histogram.percentile percent histogram
          upTo =
            if percent >= 100
              then count
              else max 1 (ceiling (percent * fromIntegral count / 100 - 1e-9))
       in Text.concat
            [ wide 12 (fixed 3 (millis (fromIntegral value))),
              " ",
              Text.pack (fixed 12 (percent / 100)),
              " ",
              wide 10 (show upTo),
              if percent >= 100 then "" else " " <> wide 14 (fixed 2 (100 / (100 - percent)))
            ]

-- | A table for each run, command and kind of time, with the end of the name of its file.
hgrmFiles :: Document -> [(FilePath, ByteString)]
hgrmFiles document =
  [ (concat [".", safe (runName run), ".", safe name, kind, ".hgrm"], hgrm histogram)
    | run <- documentRuns document,
      (name, stats) <- Map.toList (runCommands run),
      (kind, histogram) <-
        ("", commandService stats) :
          [ (".response", response)
            | Just response <- [commandResponse stats]
          ]
  ]
  where
    safe =
      map (\char -> if isAlphaNum char || char `elem` ("-_." :: String) then char else '-')
        . Text.unpack

encoded :: [Text] -> ByteString
encoded = LazyText.encodeUtf8 . LazyText.fromChunks . concatMap (\line -> [line, "\n"])
