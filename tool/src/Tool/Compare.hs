-- | Compares two documents run by run. One number for each iteration is compared; a run of a single
-- iteration is cut into its seconds. A difference is significant if the 95 % intervals of the
-- means have no point in common and the rank test gives p < 0.05. With fewer than four iterations
-- on each side Welch's test replaces that.
module Tool.Compare
  ( Comparison (..),
    Cell (..),
    Change (..),
    Verdict (..),
    compareDocuments,
    changeOf,
    Metric (..),
    metricName,
    metricByName,
    metricUnit,
  )
where

import Data.Bifunctor (bimap)
import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Bench.Arrivals (Arrivals (Constant, Poisson), describeArrivals, describeRate)
import Tool.Bench.Document
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Chart (Unit (..))
import Tool.Statistics
import Tool.Text (shown)

data Comparison = Comparison
  { -- | In the order of the first document.
    comparisonCells :: [Cell],
    -- | Runs that only the first document has, and those that only the second has.
    comparisonMissing :: ([Text], [Text]),
    -- | What else differs between the documents, and so may explain a difference.
    comparisonNotes :: [Text]
  }

-- | A run that both documents have.
data Cell = Cell
  { cellName :: Text,
    cellBefore :: Run,
    cellAfter :: Run,
    cellChanges :: [Change],
    -- | Differences between the two loads.
    cellNotes :: [Text]
  }
  deriving stock (Eq, Show)

data Change = Change
  { changeMetric :: Metric,
    changeBefore :: Double,
    changeAfter :: Double,
    -- | The means, with their intervals if there are several values.
    changeSummaries :: (Maybe Summary, Maybe Summary),
    -- | The probability of a difference this large by chance.
    changeP :: Maybe Double,
    changeVerdict :: Verdict
  }
  deriving stock (Eq, Show)

-- | The verdict on the second value, compared with the first.
data Verdict
  = Better
  | Worse
  | -- | No difference beyond chance.
    Same
  | -- | The tests do not agree, or there are too few values to test.
    Unclear
  deriving stock (Eq, Show)

-- | A number of a run.
data Metric
  = Throughput
  | LatencyMean
  | -- | A percentile.
    Latency Double
  | LatencyMax
  | -- | Processor time of the generator per command.
    Cpu
  | -- | The generator's peak of resident memory.
    MemoryPeak
  | Errors
  | Misses
  deriving stock (Eq, Ord, Show)

metricName :: Metric -> Text
metricName = \case
  Throughput -> "throughput"
  LatencyMean -> "mean"
  Latency percent -> "p" <> fromMaybe (shown percent) (Text.stripSuffix ".0" (shown percent))
  LatencyMax -> "max"
  Cpu -> "cpu"
  MemoryPeak -> "memory"
  Errors -> "errors"
  Misses -> "misses"

metricByName :: Text -> Maybe Metric
metricByName name =
  List.find ((== name) . metricName) $
    [Throughput, LatencyMean, LatencyMax, Cpu, MemoryPeak, Errors, Misses]
      <> map Latency [50, 75, 90, 95, 99, 99.9, 99.99, 99.999]

metricUnit :: Metric -> Unit
metricUnit = \case
  Throughput -> Thousands
  MemoryPeak -> Bytes
  metric | metric `elem` [Errors, Misses] -> Plain
  _ -> Nanoseconds

-- | Compares the second document with the first.
compareDocuments :: Document -> Document -> Comparison
compareDocuments before after =
  Comparison
    { comparisonCells =
        [ cell one other
          | one <- documentRuns before,
            Just other <- [Map.lookup (runName one) others]
        ],
      comparisonMissing =
        (filter (`notElem` names after) (names before), filter (`notElem` names before) (names after)),
      comparisonNotes = manifestNotes (documentManifest before) (documentManifest after)
    }
  where
    others = Map.fromList [(runName run, run) | run <- documentRuns after]
    names = map runName . documentRuns

cell :: Run -> Run -> Cell
cell before after =
  Cell
    { cellName = runName before,
      cellBefore = before,
      cellAfter = after,
      cellChanges =
        map (changeOf before after) [Throughput, Latency 50, Latency 99, Latency 99.9, Cpu],
      cellNotes = specNotes before after <> bySeconds
    }
  where
    bySeconds =
      [ "a single window: its seconds are compared, and they are not independent of each other"
        | any ((== 1) . length . runIterations) [before, after]
      ]

changeOf :: Run -> Run -> Metric -> Change
changeOf before after metric =
  Change metric (whole metric before) (whole metric after) summaries p verdict
  where
    values = (parts metric before, parts metric after)
    summaries = bimap summarise summarise values
    sizes = bimap length length values
    p
      | uncurry rankTestFloor sizes < 0.05 = uncurry rankTest values
      | otherwise = uncurry welchTest values
    verdict
      | (Just one, Just other) <- summaries,
        Just apart <- not <$> (overlap <$> summaryInterval one <*> summaryInterval other),
        Just chance <- p =
        case (chance < 0.05, apart) of
          (True, True)
            | (summaryMean other > summaryMean one) == (metric == Throughput) -> Better
            | otherwise -> Worse
          (False, False) -> Same
          _ -> Unclear
      -- Counts that are equal need no test.
      | metric `elem` [Errors, Misses], whole metric before == whole metric after = Same
      | otherwise = Unclear

-- The value of the run as a whole.
whole :: Metric -> Run -> Double
whole metric run = case metric of
  Throughput -> runRate run
  Cpu -> runCpuPerOp run
  MemoryPeak -> fromIntegral (memoryPeakResident (runMemory run))
  Errors -> fromIntegral (runErrorCount run)
  Misses -> fromIntegral (runMisses run)
  _ -> ofLatencies metric (runLatencies run)

-- The values of all iterations. For a single iteration: of each of its full slices, if they are known.
parts :: Metric -> Run -> [Double]
parts metric run = case (runIterations run, slicePart metric) of
  ([one], Just ofSlice) | slices@(_ : _ : _ : _ : _ : _) <- fullSlices (iterationSeries one) -> map ofSlice slices
  (several, _) -> map part several
  where
    part iteration = whole metric run {runIterations = [iteration]}

-- The value of a slice. 'Nothing' if only that of the window is known: repeated for each slice, it
-- would look like many measurements without any spread.
slicePart :: Metric -> Maybe (Slice -> Double)
slicePart = \case
  Throughput -> Just sliceRate
  Errors -> Just (fromIntegral . sum . fmap sliceErrors . sliceCommands)
  metric | metric `elem` [Cpu, MemoryPeak, Misses] -> Nothing
  latency -> Just (ofLatencies latency . sliceLatencies)

ofLatencies :: Metric -> Histogram -> Double
ofLatencies metric histogram = case metric of
  LatencyMean -> Histogram.mean histogram
  LatencyMax -> fromIntegral (Histogram.maximumValue histogram)
  Latency percent -> fromIntegral (Histogram.percentile percent histogram)
  _ -> 0

specNotes :: Run -> Run -> [Text]
specNotes =
  differences
    [ ("server", serverName . runServer),
      ("nodes", shown . serverNodes . runServer),
      ("workload", specWorkload . runSpec),
      ("keys", shown . specKeys . runSpec),
      ("key size", shown . specKeySize . runSpec),
      ("distribution", specDistribution . runSpec),
      ("value sizes", specValueSizes . runSpec),
      ("threads", shown . specThreads . runSpec),
      ("batch", shown . specBatch . runSpec),
      ("connections per node", maybe "one per capability" shown . specMuxCount . runSpec),
      ("capabilities", shown . specCapabilities . runSpec),
      ("loop", loop . specLoop . runSpec),
      ("TLS", yesOrNo . specTls . runSpec),
      ("network", specNetwork . runSpec),
      ("persistence", fromMaybe "unknown" . specPersistence . runSpec)
    ]
  where
    loop = \case
      Closed -> "closed"
      OpenConstant rate -> "open at " <> Text.pack (describeArrivals (Constant rate))
      OpenPoisson rate -> "open at " <> Text.pack (describeArrivals (Poisson rate))
      OpenRamp from to -> "open at " <> Text.pack (describeRate from <> " to " <> describeRate to)

yesOrNo :: Bool -> Text
yesOrNo held = if held then "yes" else "no"

manifestNotes :: Manifest -> Manifest -> [Text]
manifestNotes =
  differences
    [ ("processor", fromMaybe "unknown" . manifestCpu),
      ("processors", shown . manifestProcessors),
      ("kernel", manifestKernel),
      ("virtual machine", yesOrNo . manifestVirtual),
      ("compiler", manifestCompiler),
      ("runtime options", Text.unwords . manifestRtsArguments)
    ]

-- The facts that differ, each with its name.
differences :: [(Text, a -> Text)] -> a -> a -> [Text]
differences facts before after =
  [ name <> ": " <> from before <> " before, " <> from after <> " after"
    | (name, from) <- facts,
      from before /= from after
  ]
