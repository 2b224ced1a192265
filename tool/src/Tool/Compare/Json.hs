-- | A comparison as JSON.
module Tool.Compare.Json
  ( comparisonValue,
  )
where

import Data.Aeson (Value, object, (.=))
import Data.Text (Text)
import Tool.Bench.Document (runProblems)
import Tool.Compare
import Tool.Statistics (Summary (..))

-- | A comparison as an object, with the broken rules in words. Latencies and processor times are
-- nanoseconds, throughput is commands per second.
comparisonValue :: [Text] -> Comparison -> Value
comparisonValue failures comparison =
  object
    [ "schema" .= ("redis-client-compare/1" :: Text),
      "runs" .= map cellValue (comparisonCells comparison),
      "only_before" .= fst (comparisonMissing comparison),
      "only_after" .= snd (comparisonMissing comparison),
      "notes" .= comparisonNotes comparison,
      "failures" .= failures
    ]

cellValue :: Cell -> Value
cellValue cell =
  object
    [ "name" .= cellName cell,
      "changes" .= map changeValue (cellChanges cell),
      "notes" .= cellNotes cell,
      "problems_before" .= runProblems (cellBefore cell),
      "problems_after" .= runProblems (cellAfter cell)
    ]

changeValue :: Change -> Value
changeValue change =
  object
    [ "metric" .= metricName (changeMetric change),
      "before" .= changeBefore change,
      "after" .= changeAfter change,
      "change"
        .= if changeBefore change == 0
          then Nothing
          else Just (changeAfter change / changeBefore change - 1),
      "before_mean" .= (summaryMean <$> fst (changeSummaries change)),
      "after_mean" .= (summaryMean <$> snd (changeSummaries change)),
      "before_interval_95" .= (fst (changeSummaries change) >>= summaryInterval),
      "after_interval_95" .= (snd (changeSummaries change) >>= summaryInterval),
      "p" .= changeP change,
      "verdict" .= verdictWord (changeVerdict change)
    ]

verdictWord :: Verdict -> Text
verdictWord = \case
  Better -> "better"
  Worse -> "worse"
  Same -> "same"
  Unclear -> "unclear"
