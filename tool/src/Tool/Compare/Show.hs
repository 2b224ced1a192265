-- | A comparison for readers: a table with a verdict for each cell, and a page with both sides in
-- every chart, and as JSON.
module Tool.Compare.Show
  ( comparisonLines,
    comparisonPage,
    comparisonValue,
  )
where

import Data.Aeson (Value)
import Data.Aeson qualified as Json
import Data.ByteString.Lazy (ByteString)
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Bench.Document
import Tool.Bench.Document.Totals (sliceRate)
import Tool.Bench.Html (bullets, manifestSection, page, paragraph, tableOf, titled)
import Tool.Bench.Html.Charts (seriesOf, spectra)
import Tool.Chart
import Tool.Compare
import Tool.Markup (Markup, element, text, (.=))
import Tool.Statistics (Summary (..))
import Tool.Text (Align (..), fixed, shown, table)

-- | Lines: a row for each cell, then notes for the reader.
comparisonLines :: Comparison -> [String]
comparisonLines comparison =
  table
    (AlignLeft : AlignLeft : map (const AlignRight) (drop 2 columns))
    (map (map Text.unpack) (columns : map row cells))
    <> (map Text.unpack . concat)
      [ map ("note: " <>) (comparisonNotes comparison),
        [cellName cell <> ": " <> note | cell <- cells, note <- cellNotes cell],
        map ("INVALID: " <>) (invalid comparison),
        missing comparison
      ]
  where
    cells = comparisonCells comparison

columns :: [Text]
columns = ["run", "verdict", "before/s", "after/s", "change"] <> map ("95 % of " <>) sides <> rest
  where
    sides = ["before", "after"]
    rest = ["p", "p50", "p99", "p99.9", "CPU/op"]

row :: Cell -> [Text]
row cell = case cellChanges cell of
  throughput : others ->
    [ cellName cell,
      case changeVerdict throughput of Better -> "faster"; Worse -> "SLOWER"; other -> verdictWord other,
      format Thousands (changeBefore throughput),
      format Thousands (changeAfter throughput),
      changeText throughput,
      interval (fst (changeSummaries throughput)),
      interval (snd (changeSummaries throughput)),
      maybe "-" (Text.pack . fixed 3) (changeP throughput)
    ]
      <> map changeText others
  [] -> [cellName cell]
  where
    interval summary = case summary >>= summaryInterval of
      Just (low, high) -> format Thousands low <> " .. " <> format Thousands high
      Nothing -> "-"

changeText :: Change -> Text
changeText change
  | Just share <- shareOf change =
    (if share > 0 then "+" else "") <> Text.pack (fixed 1 (100 * share)) <> "%"
  | otherwise = "-"

-- The change as a share of the first value, if that is not 0.
shareOf :: Change -> Maybe Double
shareOf change
  | changeBefore change == 0 = Nothing
  | otherwise = Just (changeAfter change / changeBefore change - 1)

invalid :: Comparison -> [Text]
invalid comparison =
  [ cellName cell <> " (" <> side <> "): " <> problem
    | cell <- comparisonCells comparison,
      (side, run) <- sidesOf cell,
      problem <- runProblems run
  ]

sidesOf :: Cell -> [(Text, Run)]
sidesOf cell = [("before", cellBefore cell), ("after", cellAfter cell)]

missing :: Comparison -> [Text]
missing comparison = map ("only before: " <>) before <> map ("only after: " <>) after
  where
    (before, after) = comparisonMissing comparison

-- | The comparison as one HTML page. The lines are the rules that were broken.
comparisonPage :: [Text] -> Document -> Document -> Comparison -> ByteString
comparisonPage failures before after comparison =
  page "Two benchmarks compared" $
    concat
      [ [paragraph "lead" lead],
        bullets "bad" (failures <> invalid comparison),
        [ tableOf columns [zipWith (mark cell) [0 :: Int ..] (row cell) | cell <- cells]
          | not (null cells)
        ],
        bullets "note" (comparisonNotes comparison <> missing comparison),
        map figure (overview cells),
        map section cells,
        [ manifestSection "Before: where it was measured" (documentManifest before),
          manifestSection "After: where it was measured" (documentManifest after)
        ]
      ]
  where
    cells = comparisonCells comparison
    lead = case cells of
      [] -> "The two have no run in common."
      _ -> Text.intercalate ", " [shown held <> " " <> name | (name, held) <- counts, held > 0] <> "."
    counts =
      [ (name, length (filter (== verdict) (verdicts cells)))
        | (name, verdict) <-
            [("faster", Better), ("slower", Worse), ("the same", Same), ("unclear", Unclear)]
      ]
    verdicts these = [changeVerdict change | cell <- these, change <- take 1 (cellChanges cell)]
    mark cell place written
      | place == 1 = element "span" ["class" .= className (take 1 (verdicts [cell]))] [text written]
      | otherwise = text written
    className :: [Verdict] -> Text
    className = \case
      [Better] -> "good"
      [Worse] -> "bad"
      _ -> "note"

overview :: [Cell] -> [Chart]
overview cells =
  [ barChart "Throughput" ofThroughput (along "commands per second" Throughput) sides (bars Throughput),
    barChart "p99" ofLatency (along "latency" (Latency 99)) sides (bars (Latency 99))
  ]
  where
    ofThroughput = "Commands per second; the whisker is the 95 % interval of the mean."
    ofLatency = "What the slowest hundredth took at least."
    along label = axis label Linear . metricUnit
    sides = ["before", "after"]
    bars metric =
      [ Group (cellName cell) (both (changeOf (cellBefore cell) (cellAfter cell) metric))
        | cell <- cells
      ]
    both change =
      let (before, after) = changeSummaries change
       in [ Just (Bar (changeBefore change) (before >>= summaryInterval) ""),
            Just (Bar (changeAfter change) (after >>= summaryInterval) (changeText change))
          ]

section :: Cell -> Markup
section cell =
  titled (cellName cell) $
    bullets "note" (cellNotes cell)
      <> map figure (spectra "Latency spectrum" (sidesOf cell) <> overTime)
  where
    series = [(name, concatMap snd (seriesOf run)) | (name, run) <- sidesOf cell]
    overTime =
      [ lineChart
          "Throughput over time"
          "All iterations, one after the other."
          (axis "seconds" Linear Seconds, axis "commands per second" Linear Thousands)
          [line name (rates slices) | (name, slices) <- series]
        | all ((> 1) . length . snd) series
      ]
    rates slices = [(sliceAt slice, sliceRate slice) | slice <- slices]

-- | A comparison as an object, with the broken rules in words. Latencies and processor times are
-- nanoseconds, throughput is commands per second.
comparisonValue :: [Text] -> Comparison -> Value
comparisonValue failures comparison =
  Json.object
    [ "schema" Json..= ("redis-client-compare/1" :: Text),
      "runs" Json..= map cellValue (comparisonCells comparison),
      "only_before" Json..= fst (comparisonMissing comparison),
      "only_after" Json..= snd (comparisonMissing comparison),
      "notes" Json..= comparisonNotes comparison,
      "failures" Json..= failures
    ]

cellValue :: Cell -> Value
cellValue cell =
  Json.object
    [ "name" Json..= cellName cell,
      "changes" Json..= map changeValue (cellChanges cell),
      "notes" Json..= cellNotes cell,
      "problems_before" Json..= runProblems (cellBefore cell),
      "problems_after" Json..= runProblems (cellAfter cell)
    ]

changeValue :: Change -> Value
changeValue change =
  Json.object
    [ "metric" Json..= metricName (changeMetric change),
      "before" Json..= changeBefore change,
      "after" Json..= changeAfter change,
      "change" Json..= shareOf change,
      "before_mean" Json..= (summaryMean <$> before),
      "after_mean" Json..= (summaryMean <$> after),
      "before_interval_95" Json..= (before >>= summaryInterval),
      "after_interval_95" Json..= (after >>= summaryInterval),
      "p" Json..= changeP change,
      "verdict" Json..= verdictWord (changeVerdict change)
    ]
  where
    (before, after) = changeSummaries change

verdictWord :: Verdict -> Text
verdictWord = Text.toLower . shown
