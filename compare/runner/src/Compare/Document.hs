-- | Everything that a comparison found, as one file: what reports are made
-- from, and what a later piece of the same comparison is added to.
module Compare.Document
  ( Document (..),
    schema,
    readDocument,
    writeDocument,
    merge,

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
import Data.ByteString.Lazy qualified as Lazy
import Data.List qualified as List
import Data.Text (Text)
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

-- | 'Left' says why it cannot be read.
readDocument :: FilePath -> IO (Either String Document)
readDocument = eitherDecodeFileStrict'

-- | Overwrites.
writeDocument :: FilePath -> Document -> IO ()
writeDocument file = Lazy.writeFile file . encode

-- | A later piece added to an earlier one, its iterations numbered on. The
-- later one's manifest stays.
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

-- | The valid runs of a row at a cell, in the order of the iterations.
validSamples :: Document -> Text -> Cell -> [Sample]
validSamples document row cell =
  [ sample
    | sample <- List.sortOn sampleIteration (documentSamples document),
      sampleRow sample == row,
      sampleCell sample == cell,
      sampleIsValid sample
  ]

-- | Medians over the runs, and how far they spread.
data Figures = Figures
  { figuresRuns :: Int,
    figuresOps :: Double,
    figuresOpsLeast :: Double,
    figuresOpsMost :: Double,
    -- | Half the 95 % confidence interval of the mean.
    figuresOpsConfidence :: Maybe Double,
    -- | Nanoseconds.
    figuresCpu :: Double,
    -- | Nanoseconds of the servers, where it is known.
    figuresServerCpu :: Maybe Double,
    figuresLatency :: Latency,
    figuresAllocated :: Maybe Double,
    figuresConnections :: Int
  }
  deriving stock (Eq, Show)

-- | 'Nothing' if no run is valid, or any is not: a client that is wrong now and
-- then has no speed.
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
                  -- The worst of all, not the middle of the worst.
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
