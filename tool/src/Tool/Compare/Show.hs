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
import Data.List qualified as List
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
    (AlignLeft : AlignLeft : map (const AlignRight) (drop 2 heading))
    (heading : map (map Text.unpack . row) (comparisonCells comparison))
    <> map (Text.unpack . ("note: " <>)) (comparisonNotes comparison)
    <> [ Text.unpack (cellName cell <> ": " <> note)
         | cell <- comparisonCells comparison,
           note <- cellNotes cell
       ]
    <> [ Text.unpack ("INVALID: " <> name <> " (" <> side <> "): " <> problem)
         | (name, side, problem) <- invalid comparison
       ]
    <> missing comparison
  where
    heading = map Text.unpack columns

columns :: [Text]
columns =
  [ "run",
    "verdict",
    "before/s",
    "after/s",
    "change",
    "95 % of before",
    "95 % of after",
    "p",
    "p50",
    "p99",
    "p99.9",
    "CPU/op"
  ]

row :: Cell -> [Text]
row cell = case cellChanges cell of
  throughput : others ->
    [ cellName cell,
      verdictText (changeVerdict throughput),
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

verdictText :: Verdict -> Text
verdictText = \case
  Better -> "faster"
  Worse -> "SLOWER"
  Same -> "same"
  Unclear -> "unclear"

changeText :: Change -> Text
changeText change
  | changeBefore change == 0 = "-"
  | otherwise = (if percentage > 0 then "+" else "") <> Text.pack (fixed 1 percentage) <> "%"
  where
    percentage = 100 * (changeAfter change / changeBefore change - 1)

invalid :: Comparison -> [(Text, Text, Text)]
invalid comparison =
  [ (cellName cell, side, problem)
    | cell <- comparisonCells comparison,
      (side, run) <- [("before", cellBefore cell), ("after", cellAfter cell)],
      problem <- runProblems run
  ]

missing :: Comparison -> [String]
missing comparison =
  ["only before: " <> Text.unpack name | name <- fst (comparisonMissing comparison)]
    <> ["only after: " <> Text.unpack name | name <- snd (comparisonMissing comparison)]

-- | The comparison as one HTML page. The lines are the rules that were broken.
comparisonPage :: [Text] -> Document -> Document -> Comparison -> ByteString
comparisonPage failures before after comparison =
  page "Two benchmarks compared" $
    concat
      [ [paragraph "lead" lead],
        bullets
          "bad"
          ( failures
              <> [ name <> " (" <> side <> "): " <> problem
                   | (name, side, problem) <- invalid comparison
                 ]
          ),
        [ tableOf
            columns
            [zipWith (mark cell) [0 :: Int ..] (row cell) | cell <- cells]
          | not (null cells)
        ],
        bullets "note" (comparisonNotes comparison <> map Text.pack (missing comparison)),
        map figure (overview cells),
        concatMap section cells,
        [ manifestSection "Before: where it was measured" (documentManifest before),
          manifestSection "After: where it was measured" (documentManifest after)
        ]
      ]
  where
    cells = comparisonCells comparison
    lead = case cells of
      [] -> "The two have no run in common."
      _ ->
        Text.intercalate
          ", "
          [shown held <> " " <> name | (name, held) <- counts, held > 0]
          <> "."
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
  [ bars
      "Throughput"
      "Commands per second; the whisker is the 95 % interval of the mean."
      "commands per second"
      Throughput,
    bars "p99" "What the slowest hundredth took at least." "latency" (Latency 99)
  ]
  where
    bars title about label metric =
      barChart
        title
        about
        (axis label Linear (metricUnit metric))
        ["before", "after"]
        [ Group (cellName cell) (both (changeOf (cellBefore cell) (cellAfter cell) metric))
          | cell <- cells
        ]
    both change =
      [ Just Bar {barValue = value, barWhisker = summary >>= summaryInterval, barNote = note}
        | (value, summary, note) <-
            [ (changeBefore change, fst (changeSummaries change), ""),
              (changeAfter change, snd (changeSummaries change), changeText change)
            ]
      ]

section :: Cell -> [Markup]
section cell =
  [ titled (cellName cell) $
      bullets "note" (cellNotes cell)
        <> map figure (spectra "Latency spectrum" sides <> overTime)
  ]
  where
    sides = [("before", cellBefore cell), ("after", cellAfter cell)]
    series =
      [ (name, place, concatMap snd (seriesOf run))
        | (name, place, run) <- [("before", 0, cellBefore cell), ("after", 1, cellAfter cell)]
      ]
    overTime =
      [ lineChart
          "Throughput over time"
          "All iterations, one after the other."
          (axis "seconds" Linear Seconds, axis "commands per second" Linear Thousands)
          [ (line name (rates slices)) {lineColour = Just place}
            | (name, place, slices) <- series
          ]
        | List.all (\(_, _, slices) -> length slices > 1) series
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
      "change"
        Json..= if changeBefore change == 0
          then Nothing
          else Just (changeAfter change / changeBefore change - 1),
      "before_mean" Json..= (summaryMean <$> fst (changeSummaries change)),
      "after_mean" Json..= (summaryMean <$> snd (changeSummaries change)),
      "before_interval_95" Json..= (fst (changeSummaries change) >>= summaryInterval),
      "after_interval_95" Json..= (snd (changeSummaries change) >>= summaryInterval),
      "p" Json..= changeP change,
      "verdict" Json..= verdictWord (changeVerdict change)
    ]

verdictWord :: Verdict -> Text
verdictWord = \case
  Better -> "better"
  Worse -> "worse"
  Same -> "same"
  Unclear -> "unclear"
