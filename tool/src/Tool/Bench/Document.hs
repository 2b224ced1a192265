-- | The results of a measurement as data: where it was made, what was sent, what came back.
-- Everything that measures makes a 'Document'; everything that shows, compares or merges reads
-- nothing else.
--
-- "Tool.Bench.Document.Json" has the meaning and the unit of every field, in the order of the
-- fields here. 'Nothing' and empty lists stand for what was not measured and for what the server
-- refused to tell. "Tool.Bench.Document.Totals" has the figures that follow from the data.
module Tool.Bench.Document
  ( Document (..),
    documentOf,
    Manifest (..),
    Disk (..),
    Origin (..),
    Run (..),
    Spec (..),
    Loop (..),
    TargetKind (..),
    targetName,
    ServerFacts (..),
    plainServer,
    Clock (..),
    Reference (..),
    Iteration (..),
    Common (..),
    CommandStats (..),
    NodeStats (..),
    Slice (..),
    SliceStats (..),
    ServerSample (..),
    Event (..),
    Trust (..),
    noTrust,
    Memory (..),
    Agreement (..),
  )
where

import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Word (Word64)
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram

-- | The contents of one file.
data Document = Document
  { documentManifest :: Manifest,
    documentRuns :: [Run],
    documentNotes :: [Text],
    documentOrigins :: [Origin]
  }
  deriving stock (Eq, Show)

-- | A document that was measured, without notes.
documentOf :: Manifest -> [Run] -> Document
documentOf about runs = Document about runs [] []

-- | Where a document comes from: a number without its machine is a rumour.
data Manifest = Manifest
  { manifestTool :: Text,
    manifestRevision :: Maybe Text,
    manifestStarted :: Int,
    manifestCommand :: [Text],
    manifestOs :: Text,
    manifestArchitecture :: Text,
    manifestKernel :: Text,
    manifestCpu :: Maybe Text,
    manifestProcessors :: Int,
    manifestMemory :: Maybe Int,
    manifestVirtual :: Bool,
    manifestClockSource :: Text,
    manifestCompiler :: Text,
    manifestCapabilities :: Int,
    manifestRtsArguments :: [Text],
    manifestDisk :: Maybe Disk,
    manifestFacts :: Map Text Text
  }
  deriving stock (Eq, Show)

-- | The disk that servers write to.
data Disk = Disk
  { diskFilesystem :: Text,
    diskFsync :: Histogram
  }
  deriving stock (Eq, Show)

-- | One of the documents that were merged.
data Origin = Origin
  { originName :: Text,
    originManifest :: Manifest,
    originClock :: Maybe Clock
  }
  deriving stock (Eq, Show)

-- | One cell: a load against a target, measured once or more.
data Run = Run
  { runName :: Text,
    runSpec :: Spec,
    runServer :: ServerFacts,
    runIterations :: [Iteration],
    runProblems :: [Text],
    runNotes :: [Text],
    runReference :: Maybe Reference
  }
  deriving stock (Eq, Show)

-- | What the user requested.
data Spec = Spec
  { specOperation :: Text,
    specWorkload :: Text,
    specSeed :: Word64,
    specKeys :: Int,
    specKeySize :: Int,
    specDistribution :: Text,
    specValueSizes :: Text,
    specThreads :: Int,
    specBatch :: Int,
    specInFlight :: Int,
    specMuxCount :: Maybe Int,
    specPolling :: Bool,
    specCapabilities :: Int,
    specLoop :: Loop,
    specWarmup :: Double,
    specDuration :: Maybe Double,
    specRequests :: Maybe Int,
    specTarget :: TargetKind,
    specTls :: Bool,
    specProtocol :: Int,
    specNetwork :: Text,
    specPersistence :: Maybe Text,
    specAxes :: Map Text Text
  }
  deriving stock (Eq, Show)

-- | When the next command is sent.
data Loop
  = -- | When a reply has come.
    Closed
  | -- | At a rate, evenly.
    OpenConstant Double
  | -- | At a mean rate, independently of each other.
    OpenPoisson Double
  | -- | At a rate that changes from the first to the second.
    OpenRamp Double Double
  deriving stock (Eq, Show)

-- | The kind of the server or servers that were measured.
data TargetKind
  = TargetStandalone
  | TargetCluster
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The name, in texts and in JSON.
targetName :: TargetKind -> String
targetName = \case
  TargetStandalone -> "standalone"
  TargetCluster -> "cluster"

-- | What the server told about itself.
data ServerFacts = ServerFacts
  { serverName :: Text,
    serverNodes :: Int,
    serverSha256 :: Maybe Text,
    serverConfig :: Map Text Text,
    serverClock :: Maybe Clock,
    serverRefused :: [Text]
  }
  deriving stock (Eq, Show)

-- | A server that told its name and version and the number of its nodes, and nothing else.
plainServer :: Text -> Int -> ServerFacts
plainServer name nodes = ServerFacts name nodes Nothing Map.empty Nothing []

-- | The difference between two clocks, in nanoseconds.
data Clock = Clock
  { clockOffset :: Int,
    clockUncertainty :: Int
  }
  deriving stock (Eq, Show)

-- | The result of a run of redis-benchmark.
data Reference = Reference
  { referenceOpsPerSecond :: Double,
    referenceP50 :: Double,
    referenceP99 :: Double,
    referenceCpuPerOp :: Double,
    referenceCommands :: Int,
    referenceArguments :: [Text],
    -- | The rates of all runs of which this one is the median, in their order; 'Nothing' for a single run.
    referenceTurns :: Maybe [Double]
  }
  deriving stock (Eq, Show)

-- | One measured window.
data Iteration = Iteration
  { iterationStarted :: Int,
    iterationSeconds :: Double,
    iterationCommon :: Maybe Common,
    iterationCommands :: Map Text CommandStats,
    iterationErrors :: Map Text Int,
    iterationSeries :: [Slice],
    iterationNodes :: Map Text NodeStats,
    iterationSamples :: [ServerSample],
    iterationEvents :: [Event],
    iterationCpu :: Double,
    iterationGcCpu :: Maybe Double,
    iterationMemory :: Memory,
    iterationTrust :: Trust,
    iterationAgreement :: Agreement
  }
  deriving stock (Eq, Show)

-- | A part of a window.
data Common = Common
  { commonSeconds :: Double,
    commonOps :: Double
  }
  deriving stock (Eq, Show)

-- | The results of one kind of command. The number of commands is the number of latencies.
data CommandStats = CommandStats
  { commandHits :: Int,
    commandMisses :: Int,
    commandErrors :: Map Text Int,
    commandService :: Histogram,
    commandResponse :: Maybe Histogram
  }
  deriving stock (Eq, Show)

-- | Adds two parts of the same kind. The sum has response times only if both parts have them, or if
-- the part without them is empty.
instance Semigroup CommandStats where
  CommandStats hits misses errors service response <> CommandStats hits' misses' errors' service' response' =
    CommandStats
      (hits + hits')
      (misses + misses')
      (Map.unionWith (+) errors errors')
      (service <> service')
      (together (service, response) (service', response'))

-- If one part has no response times, those of the whole would be incomplete.
together :: (Histogram, Maybe Histogram) -> (Histogram, Maybe Histogram) -> Maybe Histogram
together (service, response) (service', response') = case (response, response') of
  (Just one, Just other) -> Just (one <> other)
  (Nothing, _) | Histogram.count service == 0 -> response'
  (_, Nothing) | Histogram.count service' == 0 -> response
  _ -> Nothing

data NodeStats = NodeStats
  { nodeErrors :: Map Text Int,
    nodeService :: Histogram
  }
  deriving stock (Eq, Show)

-- | Adds two parts of the replies of the same node.
instance Semigroup NodeStats where
  NodeStats errors service <> NodeStats errors' service' =
    NodeStats (Map.unionWith (+) errors errors') (service <> service')

-- | A part of the window.
data Slice = Slice
  { sliceAt :: Double,
    sliceSpan :: Double,
    sliceCommands :: Map Text SliceStats
  }
  deriving stock (Eq, Show)

-- | One kind of command in one slice.
data SliceStats = SliceStats
  { sliceService :: Histogram,
    sliceResponse :: Maybe Histogram,
    sliceErrors :: Int
  }
  deriving stock (Eq, Show)

-- | Adds two parts of the same slice. Response times as for 'CommandStats'.
instance Semigroup SliceStats where
  SliceStats service response errors <> SliceStats service' response' errors' =
    SliceStats
      (service <> service')
      (together (service, response) (service', response'))
      (errors + errors')

-- | The figures that a node gave about itself at one time.
data ServerSample = ServerSample
  { sampleAt :: Double,
    sampleNode :: Text,
    sampleValues :: Map Text Double
  }
  deriving stock (Eq, Show)

-- | Something that happened, and may explain the shape of the curve.
data Event = Event
  { eventAt :: Double,
    eventUntil :: Double,
    eventKind :: Text,
    eventText :: Text
  }
  deriving stock (Eq, Show)

-- | Whether the generator itself was fast enough for the figures to be about the server.
data Trust = Trust
  { trustCpuShare :: Maybe Double,
    trustGcShare :: Maybe Double,
    trustRunQueue :: Maybe Double,
    trustLittle :: Maybe Double,
    trustSteady :: Maybe Bool,
    trustSchedule :: Maybe Histogram,
    trustProblems :: [Text]
  }
  deriving stock (Eq, Show)

-- | A 'Trust' in which nothing is known.
noTrust :: Trust
noTrust = Trust Nothing Nothing Nothing Nothing Nothing Nothing []

-- | Memory in bytes; 0 where it is not known.
data Memory = Memory
  { memoryPeakResident :: Int,
    memoryMaxInUse :: Int,
    memoryMaxLive :: Int
  }
  deriving stock (Eq, Show)

-- | Whether the server counted what the client counted, by command. Everything that this process
-- sent counts: preload, warm-up, and the commands after the end of the window.
data Agreement
  = -- | The counts are equal.
    Agrees (Map Text Int)
  | -- | The client's counts and the server's counts.
    Disagrees (Map Text Int) (Map Text Int)
  | -- | There is no comparison, for this reason.
    NotComparable Text
  deriving stock (Eq, Show)
