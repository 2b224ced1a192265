{-# LANGUAGE DeriveGeneric #-}

-- | The results of autocannon, for readers who have other numbers from it. No goal uses them:
-- autocannon's one thread needs more of a core than a service does, so that it measures itself.
module Compare.Autocannon
  ( Sample (..),
    readSamples,
    sampleTables,
    sampleHeader,
    sampleGroups,
    aboutSamples,
  )
where

import Compare.Cell (readLines)
import Compare.Load (Scenario, scenarioName)
import Data.Aeson (FromJSON)
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import GHC.Generics (Generic)
import Tool.Statistics (Summary (..), summarise)
import Tool.Text (fixed)

-- | A line of autocannon's raw results; times in milliseconds.
data Sample = Sample
  { row :: Text,
    scenario :: Scenario,
    connections :: Int,
    iteration :: Int,
    perSecond :: Double,
    p50 :: Double,
    p95 :: Double,
    p99 :: Double,
    statuses :: Map Text Int,
    -- | The part of one core that it used: 0 to 1.
    generatorBusy :: Double
  }
  deriving stock (Eq, Show, Generic)

instance FromJSON Sample

-- | All samples of a file, one a line.
readSamples :: FilePath -> IO [Sample]
readSamples = readLines

-- | Markdown tables, one for each scenario and number of connections, the fastest row first; empty
-- without samples.
sampleTables :: [Sample] -> [Text]
sampleTables [] = []
sampleTables samples =
  [ "## By autocannon",
    "",
    aboutSamples (\term -> "*" <> term <> "*"),
    ""
  ]
    <> concat
      [ ["### " <> title, "", line sampleHeader, line (map (const "---") sampleHeader)] <> map line rows <> [""]
        | (title, rows) <- sampleGroups samples
      ]
  where
    line columns = "| " <> Text.intercalate " | " columns <> " |"

-- | The text about these numbers. The function marks a term.
aboutSamples :: (Text -> Text) -> Text
aboutSamples marked = "For those who have other numbers that were taken with it; no goal is about these. It runs on one thread, and shares its core with Redis. So that core was the limit well below 100 % of " <> marked "generator busy" <> ", and rows near it cannot be told apart. Times are of a closed loop at saturation (ms): they say how long the queue was. Means of the rounds; medians of their times; sums of their answers."

-- | The columns of 'sampleGroups'.
sampleHeader :: [Text]
sampleHeader = ["service", "requests/s", "n", "p50 ms", "p95", "p99", "answers by status", "generator busy"]

-- | The cells of a table for each scenario and number of connections, with its title; the fastest
-- row first.
sampleGroups :: [Sample] -> [(Text, [[Text]])]
sampleGroups samples =
  [ ( "autocannon: " <> Text.pack (scenarioName scenario') <> ", " <> Text.pack (show count) <> " connections",
      map cells (List.sortOn (negate . rate . snd) (Map.toList rows))
    )
    | ((scenario', count), rows) <- Map.toList groups
  ]
  where
    groups = Map.fromListWith (Map.unionWith (<>)) [((scenario sample, connections sample), Map.singleton (row sample) [sample]) | sample <- samples]
    rate = mean . map perSecond
    mean values = maybe 0 summaryMean (summarise values)
    median values = maybe 0 summaryMedian (summarise values)
    cells (name, rounds) =
      [ name,
        number 0 (rate rounds),
        Text.pack (show (length rounds)),
        number 2 (median (map p50 rounds)),
        number 2 (median (map p95 rounds)),
        number 2 (median (map p99 rounds)),
        Text.intercalate ", " [status <> ": " <> Text.pack (show times) | (status, times) <- Map.toList (Map.unionsWith (+) (map statuses rounds))],
        number 0 (100 * mean (map generatorBusy rounds)) <> " %"
      ]
    number digits = Text.pack . fixed digits
