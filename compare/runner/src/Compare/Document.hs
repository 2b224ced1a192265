-- | All results of a comparison, as one file: reports are made from it, and later results of the
-- same comparison are added to it.
module Compare.Document
  ( Document (..),
    schema,
    readDocument,
    writeDocument,
    merge,
    mergeProblem,

    -- * Questions
    figures,
    validSamples,
    Figures (..),
    invalid,
  )
where

import Compare.Cell
import Compare.Row
import Compare.Sample
import Data.Aeson
import Data.Aeson.Types (parseMaybe)
import Data.List qualified as List
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Bench.Sink (writeWhole)
import Tool.Statistics (Summary (..), summarise)

-- | A comparison.
data Document = Document
  { -- | The machine, the programs, the command line.
    documentManifest :: Value,
    documentWindow :: Window,
    documentRows :: [Row],
    documentAbsent :: [Absent],
    documentSamples :: [Sample]
  }

-- | The name of the schema.
schema :: Text
schema = "redis-client-peers/1"

instance ToJSON Document where
  toJSON document =
    object
      [ "schema" .= schema,
        "manifest" .= documentManifest document,
        "warmup_sec" .= windowWarmup (documentWindow document),
        "duration_sec" .= windowDuration (documentWindow document),
        "rows" .= documentRows document,
        "absent" .= documentAbsent document,
        "samples" .= documentSamples document
      ]

instance FromJSON Document where
  parseJSON = withObject "comparison" $ \document -> do
    name <- document .: "schema"
    if name /= schema
      then fail "another schema"
      else
        Document
          <$> document .: "manifest"
          <*> (Window <$> document .: "warmup_sec" <*> document .: "duration_sec")
          <*> document .: "rows"
          <*> document .: "absent"
          <*> document .: "samples"

-- | Reads a document. 'Left' says why it cannot be read.
readDocument :: FilePath -> IO (Either String Document)
readDocument = eitherDecodeFileStrict'

-- | Writes a document; replaces the file when all of it is written, because an earlier document may
-- be part of it.
writeDocument :: FilePath -> Document -> IO ()
writeDocument file = writeWhole file . encode

-- | Adds a later document to an earlier one, and continues the numbers of the iterations. The later
-- one's manifest is kept.
merge :: Document -> Document -> Document
merge earlier later =
  later
    { documentRows = documentRows later <> [row | row <- documentRows earlier, rowName row `notElem` names],
      documentAbsent = documentAbsent later,
      documentSamples = documentSamples earlier <> map moved (documentSamples later)
    }
  where
    names = map rowName (documentRows later)
    past = case map sampleIteration (documentSamples earlier) of
      [] -> 0
      numbers -> maximum numbers + 1
    moved sample = sample {sampleIteration = sampleIteration sample + past}

-- | Why runs of this window, by a comparison with this manifest, must not be added to a document, in
-- one line: its report says one window and one revision for all.
mergeProblem :: Window -> Value -> Document -> Maybe String
mergeProblem window about document
  | documentWindow document /= window = unlike (said (documentWindow document)) (said window)
  | revision (documentManifest document) /= revision about = unlike (revision (documentManifest document)) (revision about)
  | otherwise = Nothing
  where
    unlike there these = Just ("the results that are there are of " <> there <> ", these would be of " <> these <> "; give another --output")
    revision held = maybe "no known revision" Text.unpack (parseMaybe (withObject "manifest" (.: "revision")) held)
    said (Window warmup duration) = show duration <> " s after " <> show warmup <> " s of warm-up"

-- | The valid runs of a row at a cell, in the order of the iterations.
validSamples :: Document -> Text -> Cell -> [Sample]
validSamples document row cell =
  [ sample
    | sample <- List.sortOn sampleIteration (documentSamples document),
      sampleRow sample == row,
      sampleCell sample == cell,
      sampleIsValid sample
  ]

-- | The medians over the runs, and their spread.
data Figures = Figures
  { figuresRuns :: Int,
    figuresOps :: Double,
    figuresOpsLeast :: Double,
    figuresOpsMost :: Double,
    -- | Half the 95 % confidence interval of the mean.
    figuresOpsConfidence :: Maybe Double,
    -- | Nanoseconds of the client's processor time.
    figuresCpu :: Double,
    -- | Nanoseconds of the servers' processor time, if known.
    figuresServerCpu :: Maybe Double,
    figuresLatency :: Latency,
    figuresAllocated :: Maybe Double,
    figuresConnections :: Int
  }
  deriving stock (Eq, Show)

-- | The figures of a row at a cell. 'Nothing' if no run is valid, or any run is invalid: the speed
-- of a client that is wrong now and then means nothing.
figures :: Document -> Text -> Cell -> Maybe Figures
figures document row cell = case validSamples document row cell of
  [] -> Nothing
  samples@(first : _)
    | not (null (invalidAt document row cell)) -> Nothing
    | otherwise ->
      Just
        Figures
          { figuresRuns = length samples,
            figuresOps = median ops,
            figuresOpsLeast = minimum ops,
            figuresOpsMost = maximum ops,
            figuresOpsConfidence = (\(low, high) -> (high - low) / 2) <$> (summarise ops >>= summaryInterval),
            figuresCpu = over sampleCpuPerOp,
            figuresServerCpu = median <$> traverse sampleServerCpuPerOp samples,
            figuresLatency =
              Latency
                { latencyP50 = of' latencyP50,
                  latencyP90 = of' latencyP90,
                  latencyP95 = of' latencyP95,
                  latencyP99 = of' latencyP99,
                  latencyP999 = of' latencyP999,
                  -- The worst of all runs, not the median of the worst.
                  latencyMax = maximum (map (latencyMax . sampleLatency) samples)
                },
            figuresAllocated = median <$> traverse sampleAllocated samples,
            figuresConnections = sampleConnections first
          }
    where
      ops = map sampleOpsPerSecond samples
      over field = median (map field samples)
      median values = maybe 0 summaryMedian (summarise values)
      of' field = over (field . sampleLatency)

invalidAt :: Document -> Text -> Cell -> [Sample]
invalidAt document row cell = [sample | sample <- invalid document, sampleRow sample == row, sampleCell sample == cell]

-- | The runs whose numbers must not be used.
invalid :: Document -> [Sample]
invalid = filter (not . sampleIsValid) . documentSamples
