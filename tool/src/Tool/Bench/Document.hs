-- | What a measurement found, as data: where it was made, what was sent, what
-- came back. Everything that measures makes a 'Document'; everything that shows,
-- compares or merges reads nothing else.
--
-- Latencies are nanoseconds, times inside an iteration are seconds since its
-- window began. 'Nothing' and empty lists stand for what was not measured, and
-- for what the server would not tell. The JSON form is
-- "Tool.Bench.Document.Json"; what follows from the data — rates, totals — is
-- "Tool.Bench.Document.Totals".
module Tool.Bench.Document
  ( -- * The whole
    Document (..),
    Manifest (..),
    Disk (..),
    Origin (..),

    -- * A run
    Run (..),
    Spec (..),
    Loop (..),
    TargetKind (..),
    targetName,
    ServerFacts (..),
    Clock (..),
    Reference (..),

    -- * An iteration
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

-- | One file.
data Document = Document
  { documentManifest :: Manifest,
    documentRuns :: [Run],
    -- | What the reader should know about all of it.
    documentNotes :: [Text],
    -- | The documents this one was merged from; empty if it was measured.
    documentOrigins :: [Origin]
  }
  deriving stock (Eq, Show)

-- | Where a document comes from: a number without its machine is a rumour.
data Manifest = Manifest
  { manifestTool :: Text,
    manifestRevision :: Maybe Text,
    -- | Nanoseconds since 1970, by this machine's clock.
    manifestStarted :: Int,
    -- | The command line, without secrets.
    manifestCommand :: [Text],
    manifestOs :: Text,
    manifestArchitecture :: Text,
    manifestKernel :: Text,
    manifestCpu :: Maybe Text,
    manifestProcessors :: Int,
    -- | Bytes of memory in the machine.
    manifestMemory :: Maybe Int,
    manifestVirtual :: Bool,
    manifestClockSource :: Text,
    manifestCompiler :: Text,
    manifestCapabilities :: Int,
    manifestRtsArguments :: [Text],
    manifestDisk :: Maybe Disk,
    -- | Whatever else is known, by name.
    manifestFacts :: Map Text Text
  }
  deriving stock (Eq, Show)

-- | The disk that servers write to.
data Disk = Disk
  { diskFilesystem :: Text,
    -- | Nanoseconds that an fsync of a small append takes.
    diskFsync :: Histogram
  }
  deriving stock (Eq, Show)

-- | One of the documents that were merged.
data Origin = Origin
  { originName :: Text,
    originManifest :: Manifest,
    -- | Its machine's clock minus that of the first document, if both asked the
    -- same server for the time.
    originClock :: Maybe Clock
  }
  deriving stock (Eq, Show)

-- | One cell: a load against a target, measured once or more.
data Run = Run
  { -- | Unique in its document.
    runName :: Text,
    runSpec :: Spec,
    runServer :: ServerFacts,
    runIterations :: [Iteration],
    -- | Why the numbers must not be used. Empty: they may.
    runProblems :: [Text],
    -- | What the reader should know.
    runNotes :: [Text],
    -- | What redis-benchmark reached beside it.
    runReference :: Maybe Reference
  }
  deriving stock (Eq, Show)

-- | What was asked for.
data Spec = Spec
  { -- | Such as @get@ or @mixed@.
    specOperation :: Text,
    -- | All of the workload in words, such as @70:get,30:set@.
    specWorkload :: Text,
    specSeed :: Word64,
    -- | Different keys.
    specKeys :: Int,
    -- | Bytes of a key; of a template, those of its longest.
    specKeySize :: Int,
    -- | Such as @uniform@ or @zipf 0.99@.
    specDistribution :: Text,
    -- | Bytes of a value, such as @512@, @100-2000@ or @32:5,1k:3@.
    specValueSizes :: Text,
    specThreads :: Int,
    -- | Commands that a thread submits before it waits.
    specBatch :: Int,
    -- | The most commands that can be on their way at a time.
    specInFlight :: Int,
    -- | Connections per node; 'Nothing' is one per capability.
    specMuxCount :: Maybe Int,
    specPolling :: Bool,
    specCapabilities :: Int,
    specLoop :: Loop,
    -- | Seconds of load before the measured window.
    specWarmup :: Double,
    -- | Seconds asked for, if the end is a time.
    specDuration :: Maybe Double,
    -- | Commands asked for, if the end is a count.
    specRequests :: Maybe Int,
    specTarget :: TargetKind,
    specTls :: Bool,
    -- | Of the RESP protocol.
    specProtocol :: Int,
    -- | Such as @local@ or @relay 1 ms@.
    specNetwork :: Text,
    -- | @none@, @rdb@, @aof-everysec@ …, where it is known.
    specPersistence :: Maybe Text,
    -- | What else tells this run from its neighbours, such as the axes of a
    -- campaign.
    specAxes :: Map Text Text
  }
  deriving stock (Eq, Show)

-- | When the next command is sent.
data Loop
  = -- | When a reply has come.
    Closed
  | -- | So many a second, evenly.
    OpenConstant Double
  | -- | So many a second on average, independent of each other.
    OpenPoisson Double
  | -- | From one rate to another.
    OpenRamp Double Double
  deriving stock (Eq, Show)

-- | What was measured.
data TargetKind
  = TargetStandalone
  | TargetCluster
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | For people and for JSON.
targetName :: TargetKind -> String
targetName = \case
  TargetStandalone -> "standalone"
  TargetCluster -> "cluster"

-- | The server, as far as it told.
data ServerFacts = ServerFacts
  { -- | Such as @redis 7.0.15@.
    serverName :: Text,
    -- | How many nodes serve keys.
    serverNodes :: Int,
    -- | Of the program file, where it is ours to read.
    serverSha256 :: Maybe Text,
    -- | Settings that are not the default.
    serverConfig :: Map Text Text,
    -- | This machine's clock minus the server's.
    serverClock :: Maybe Clock,
    -- | What it would not tell, in words.
    serverRefused :: [Text]
  }
  deriving stock (Eq, Show)

-- | The difference between two clocks, in nanoseconds.
data Clock = Clock
  { clockOffset :: Int,
    -- | How far off that may be, either way.
    clockUncertainty :: Int
  }
  deriving stock (Eq, Show)

-- | A run of redis-benchmark.
data Reference = Reference
  { referenceOpsPerSecond :: Double,
    -- | Milliseconds, as it says.
    referenceP50 :: Double,
    referenceP99 :: Double,
    -- | Processor time of its process per command, in nanoseconds.
    referenceCpuPerOp :: Double,
    referenceCommands :: Int,
    -- | Its arguments, without secrets.
    referenceArguments :: [String]
  }
  deriving stock (Eq, Show)

-- | One measured window.
data Iteration = Iteration
  { -- | Nanoseconds since 1970, by this machine's clock.
    iterationStarted :: Int,
    -- | How long the window was.
    iterationSeconds :: Double,
    -- | Where several windows were merged: the part that all have in common. The
    -- rate is that of this part.
    iterationCommon :: Maybe Common,
    -- | By the command's name; what ended inside the window.
    iterationCommands :: Map Text CommandStats,
    -- | Everything that failed, by class, preload and warm-up included.
    iterationErrors :: Map Text Int,
    -- | The window cut into slices, in order.
    iterationSeries :: [Slice],
    -- | By the node's address.
    iterationNodes :: Map Text NodeStats,
    iterationSamples :: [ServerSample],
    iterationEvents :: [Event],
    -- | Processor time of this process over the window, in nanoseconds.
    iterationCpu :: Double,
    -- | The part of it that was garbage collection.
    iterationGcCpu :: Maybe Double,
    iterationMemory :: Memory,
    iterationTrust :: Trust,
    iterationAgreement :: Agreement
  }
  deriving stock (Eq, Show)

-- | A part of a window.
data Common = Common
  { commonSeconds :: Double,
    -- | Commands answered well in it; not whole where slices lie in it partly.
    commonOps :: Double
  }
  deriving stock (Eq, Show)

-- | What became of one kind of command. How many there were is how many
-- latencies there are.
data CommandStats = CommandStats
  { commandHits :: Int,
    commandMisses :: Int,
    -- | Inside the window, by class.
    commandErrors :: Map Text Int,
    -- | From the submit to the reply.
    commandService :: Histogram,
    -- | From the intended start to the reply; for open loops. Also of those that were
    -- due in the window and answered after it.
    commandResponse :: Maybe Histogram
  }
  deriving stock (Eq, Show)

-- | Two parts of the same kind. No response times unless both have them, or one
-- is empty.
instance Semigroup CommandStats where
  one <> other =
    CommandStats
      { commandHits = commandHits one + commandHits other,
        commandMisses = commandMisses one + commandMisses other,
        commandErrors = Map.unionWith (+) (commandErrors one) (commandErrors other),
        commandService = commandService one <> commandService other,
        commandResponse =
          together
            (commandService one, commandResponse one)
            (commandService other, commandResponse other)
      }

-- Response times of a part that has none would be missing from the whole.
together :: (Histogram, Maybe Histogram) -> (Histogram, Maybe Histogram) -> Maybe Histogram
together (service, response) (service', response') = case (response, response') of
  (Just one, Just other) -> Just (one <> other)
  (Nothing, _) | Histogram.count service == 0 -> response'
  (_, Nothing) | Histogram.count service' == 0 -> response
  _ -> Nothing

-- | What one node answered.
data NodeStats = NodeStats
  { nodeErrors :: Map Text Int,
    nodeService :: Histogram
  }
  deriving stock (Eq, Show)

-- | A part of the window.
data Slice = Slice
  { -- | Seconds since the window began.
    sliceAt :: Double,
    -- | Seconds.
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

-- | Two parts of the same slice; as for 'CommandStats'.
instance Semigroup SliceStats where
  one <> other =
    SliceStats
      { sliceService = sliceService one <> sliceService other,
        sliceResponse =
          together (sliceService one, sliceResponse one) (sliceService other, sliceResponse other),
        sliceErrors = sliceErrors one + sliceErrors other
      }

-- | What a node said of itself.
data ServerSample = ServerSample
  { -- | Seconds since the window began.
    sampleAt :: Double,
    -- | Its address.
    sampleNode :: Text,
    -- | By the names that INFO gives them, such as @used_memory@,
    -- @instantaneous_ops_per_sec@ or @aof_delayed_fsync@.
    sampleValues :: Map Text Double
  }
  deriving stock (Eq, Show)

-- | Something that happened, and may explain what the curve does.
data Event = Event
  { -- | Seconds since the window began.
    eventAt :: Double,
    eventUntil :: Double,
    -- | Such as @aof-rewrite@, @bgsave@, @fsync-delay@, @failover@, @stall@ or
    -- @change-point@.
    eventKind :: Text,
    eventText :: Text
  }
  deriving stock (Eq, Show)

-- | Whether the generator itself was good enough.
data Trust = Trust
  { -- | Its processor time over that of the cores it may use, 0 to 1.
    trustCpuShare :: Maybe Double,
    -- | Garbage collection over all its processor time, 0 to 1.
    trustGcShare :: Maybe Double,
    -- | Time its threads waited for a core over the window's length; of all threads
    -- together, so that it may be above 1.
    trustRunQueue :: Maybe Double,
    -- | Throughput times mean latency over the commands on their way: 1 when
    -- the clocks are right.
    trustLittle :: Maybe Double,
    -- | Whether the warm-up ended in a steady state.
    trustSteady :: Maybe Bool,
    -- | Nanoseconds from the intended to the actual start; for open loops.
    trustSchedule :: Maybe Histogram,
    -- | What makes it not good enough.
    trustProblems :: [Text]
  }
  deriving stock (Eq, Show)

-- | Nothing is known.
noTrust :: Trust
noTrust = Trust Nothing Nothing Nothing Nothing Nothing Nothing []

-- | Bytes; 0 where it is not known.
data Memory = Memory
  { -- | The most the process ever had resident.
    memoryPeakResident :: Int,
    -- | The most the runtime ever held.
    memoryMaxInUse :: Int,
    -- | The most that was live at a major collection.
    memoryMaxLive :: Int
  }
  deriving stock (Eq, Show)

-- | Whether the server counted what the client counted, by command. Everything
-- this process sent counts: preload, warm-up and what came after the time was
-- up.
data Agreement
  = -- | Exactly.
    Agrees (Map Text Int)
  | -- | The client's counts, the server's counts.
    Disagrees (Map Text Int) (Map Text Int)
  | -- | No comparison, and why.
    NotComparable Text
  deriving stock (Eq, Show)
