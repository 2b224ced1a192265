-- | The results of a measurement as data: where it was made, what was sent, what came back.
-- Everything that measures makes a 'Document'; everything that shows, compares or merges reads
-- nothing else.
--
-- Latencies are nanoseconds, times inside an iteration are seconds since its window began.
-- 'Nothing' and empty lists stand for what was not measured and for what the server refused to
-- tell. "Tool.Bench.Document.Json" has the JSON form, "Tool.Bench.Document.Totals" the figures that
-- follow from the data, such as rates and totals.
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

-- | The contents of one file.
data Document = Document
  { documentManifest :: Manifest,
    documentRuns :: [Run],
    -- | What the reader should know about the whole document.
    documentNotes :: [Text],
    -- | The documents that this one was merged from. Empty for a document that was measured.
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
    -- | Further facts about the machine, by name.
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
    -- | Its machine's clock minus that of the first document's machine, if both generators asked
    -- the same server for the time.
    originClock :: Maybe Clock
  }
  deriving stock (Eq, Show)

-- | One cell: a load against a target, measured once or more.
data Run = Run
  { -- | The name, unique in its document.
    runName :: Text,
    runSpec :: Spec,
    runServer :: ServerFacts,
    runIterations :: [Iteration],
    -- | Why the numbers must not be used. If it is empty, they may be used.
    runProblems :: [Text],
    -- | What the reader should know.
    runNotes :: [Text],
    -- | The result of redis-benchmark under the same load.
    runReference :: Maybe Reference
  }
  deriving stock (Eq, Show)

-- | What the user requested.
data Spec = Spec
  { -- | The operation, such as @get@ or @mixed@.
    specOperation :: Text,
    -- | The whole workload in words, such as @70:get,30:set@.
    specWorkload :: Text,
    specSeed :: Word64,
    -- | The number of different keys.
    specKeys :: Int,
    -- | Bytes of a key. For a template: bytes of its longest key.
    specKeySize :: Int,
    -- | How keys are chosen, such as @uniform@ or @zipf 0.99@.
    specDistribution :: Text,
    -- | Bytes of a value, such as @512@, @100-2000@ or @32:5,1k:3@.
    specValueSizes :: Text,
    specThreads :: Int,
    -- | Commands that a thread submits before it waits.
    specBatch :: Int,
    -- | The most commands that can be on their way at a time.
    specInFlight :: Int,
    -- | Connections per node. 'Nothing' means one per capability.
    specMuxCount :: Maybe Int,
    specPolling :: Bool,
    specCapabilities :: Int,
    specLoop :: Loop,
    -- | Seconds of load before the measured window; of several windows, the most.
    specWarmup :: Double,
    -- | Seconds requested, if the window ends after a time.
    specDuration :: Maybe Double,
    -- | Commands requested, if the window ends after a number of them.
    specRequests :: Maybe Int,
    specTarget :: TargetKind,
    specTls :: Bool,
    -- | The version of RESP.
    specProtocol :: Int,
    -- | The network, such as @local@ or @relay 1 ms@.
    specNetwork :: Text,
    -- | @none@, @rdb@, @aof-everysec@ …, where it is known.
    specPersistence :: Maybe Text,
    -- | What else distinguishes this run from its neighbours, such as the axes of a campaign.
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
  { -- | Product and version, such as @redis 7.0.15@.
    serverName :: Text,
    -- | How many nodes serve keys.
    serverNodes :: Int,
    -- | SHA-256 of the program file, if this process can read it.
    serverSha256 :: Maybe Text,
    -- | Settings that are not the default.
    serverConfig :: Map Text Text,
    -- | This machine's clock minus the server's.
    serverClock :: Maybe Clock,
    -- | What the server refused to tell, in words.
    serverRefused :: [Text]
  }
  deriving stock (Eq, Show)

-- | The difference between two clocks, in nanoseconds.
data Clock = Clock
  { clockOffset :: Int,
    -- | The most that the offset may be wrong, in either direction.
    clockUncertainty :: Int
  }
  deriving stock (Eq, Show)

-- | The result of a run of redis-benchmark.
data Reference = Reference
  { referenceOpsPerSecond :: Double,
    -- | Milliseconds, as redis-benchmark prints them.
    referenceP50 :: Double,
    referenceP99 :: Double,
    -- | Processor time of redis-benchmark's process per command, in nanoseconds.
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
    -- | The length of the window.
    iterationSeconds :: Double,
    -- | The part that all windows have in common, if several windows were merged. The rate is that
    -- of this part.
    iterationCommon :: Maybe Common,
    -- | The commands that ended inside the window, by name.
    iterationCommands :: Map Text CommandStats,
    -- | How many commands failed, by class of error, preload and warm-up included.
    iterationErrors :: Map Text Int,
    -- | The window cut into slices, in order.
    iterationSeries :: [Slice],
    -- | The answers of each node, by its address.
    iterationNodes :: Map Text NodeStats,
    iterationSamples :: [ServerSample],
    iterationEvents :: [Event],
    -- | Processor time of this process over the window, in nanoseconds.
    iterationCpu :: Double,
    -- | The part of 'iterationCpu' that was garbage collection.
    iterationGcCpu :: Maybe Double,
    iterationMemory :: Memory,
    iterationTrust :: Trust,
    iterationAgreement :: Agreement
  }
  deriving stock (Eq, Show)

-- | A part of a window.
data Common = Common
  { commonSeconds :: Double,
    -- | Commands answered without an error in it. Not a whole number if slices lie only partly in
    -- it.
    commonOps :: Double
  }
  deriving stock (Eq, Show)

-- | The results of one kind of command. The number of commands is the number of latencies.
data CommandStats = CommandStats
  { commandHits :: Int,
    commandMisses :: Int,
    -- | Errors inside the window, by class.
    commandErrors :: Map Text Int,
    -- | Times from the submit to the reply.
    commandService :: Histogram,
    -- | Times from the intended start to the reply; for open loops. Includes the commands that were
    -- due in the window and answered after it.
    commandResponse :: Maybe Histogram
  }
  deriving stock (Eq, Show)

-- | Adds two parts of the same kind. The sum has response times only if both parts have them, or if
-- the part without them is empty.
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

-- If one part has no response times, those of the whole would be incomplete.
together :: (Histogram, Maybe Histogram) -> (Histogram, Maybe Histogram) -> Maybe Histogram
together (service, response) (service', response') = case (response, response') of
  (Just one, Just other) -> Just (one <> other)
  (Nothing, _) | Histogram.count service == 0 -> response'
  (_, Nothing) | Histogram.count service' == 0 -> response
  _ -> Nothing

-- | The replies of one node.
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

-- | Adds two parts of the same slice. Response times as for 'CommandStats'.
instance Semigroup SliceStats where
  one <> other =
    SliceStats
      { sliceService = sliceService one <> sliceService other,
        sliceResponse =
          together (sliceService one, sliceResponse one) (sliceService other, sliceResponse other),
        sliceErrors = sliceErrors one + sliceErrors other
      }

-- | The figures that a node gave about itself at one time.
data ServerSample = ServerSample
  { -- | Seconds since the window began.
    sampleAt :: Double,
    -- | The address of the node.
    sampleNode :: Text,
    -- | By the names that INFO gives them, such as @used_memory@,
    -- @instantaneous_ops_per_sec@ or @aof_delayed_fsync@.
    sampleValues :: Map Text Double
  }
  deriving stock (Eq, Show)

-- | Something that happened, and may explain the shape of the curve.
data Event = Event
  { -- | Seconds since the window began.
    eventAt :: Double,
    eventUntil :: Double,
    -- | The kind of event, such as @aof-rewrite@, @bgsave@, @fsync-delay@, @failover@, @stall@ or
    -- @change-point@.
    eventKind :: Text,
    eventText :: Text
  }
  deriving stock (Eq, Show)

-- | Whether the generator itself was fast enough for the figures to be about the server.
data Trust = Trust
  { -- | The generator's processor time over that of the cores it may use, 0 to 1.
    trustCpuShare :: Maybe Double,
    -- | The generator's processor time in garbage collection over all its processor time, 0 to 1.
    trustGcShare :: Maybe Double,
    -- | Time that the generator's threads waited for a core, over the window's length. The sum of
    -- all threads, so it may be above 1.
    trustRunQueue :: Maybe Double,
    -- | Throughput times mean latency, over the number of commands on their way: 1 when the clocks
    -- are right.
    trustLittle :: Maybe Double,
    -- | Whether the warm-up ended in a steady state.
    trustSteady :: Maybe Bool,
    -- | Schedule error: nanoseconds from the intended to the actual start; for open loops.
    trustSchedule :: Maybe Histogram,
    -- | Why the generator was not good enough.
    trustProblems :: [Text]
  }
  deriving stock (Eq, Show)

-- | A 'Trust' in which nothing is known.
noTrust :: Trust
noTrust = Trust Nothing Nothing Nothing Nothing Nothing Nothing []

-- | Memory in bytes; 0 where it is not known.
data Memory = Memory
  { -- | The most memory that the process ever had resident.
    memoryPeakResident :: Int,
    -- | The most memory that the runtime ever held.
    memoryMaxInUse :: Int,
    -- | The most memory that was live at a major collection.
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
