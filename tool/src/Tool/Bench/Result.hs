-- | What a run found, before anybody formats it.
module Tool.Bench.Result
  ( RunResult (..),
    TargetKind (..),
    targetName,
    Memory (..),

    -- * Derived
    latencies,
    totalOps,
    opsPerSecond,
    hitRatio,
    errorCount,
    problems,

    -- * Counting the same as the server
    CommandCounts (..),
    Agreement (..),

    -- * redis-benchmark
    Reference (..),
  )
where

import Data.List (intercalate)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Options.Bench (LoadOptions, Operation)

-- | One run.
data RunResult = RunResult
  { runTarget :: TargetKind,
    runTls :: Bool,
    -- | As the server calls itself, such as @redis 7.0.15@.
    runServer :: String,
    -- | How many nodes serve keys.
    runNodes :: Int,
    runOperation :: Operation,
    runLoad :: LoadOptions,
    -- | Capabilities of the runtime during the run.
    runCapabilities :: Int,
    -- | Seconds measured.
    runSeconds :: Double,
    -- | Nanoseconds from submit to reply of the GETs measured.
    runGets :: Histogram,
    -- | The same of the SETs.
    runSets :: Histogram,
    runHits :: Int,
    runMisses :: Int,
    -- | Commands that failed, by class, warm-up and preload included.
    runErrors :: Map String Int,
    -- | Processor time of this process per command measured, in nanoseconds.
    runCpuPerOp :: Double,
    runMemory :: Memory,
    runAgreement :: Agreement,
    -- | What redis-benchmark reached beside it.
    runReference :: Maybe Reference
  }
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

-- | How often GET and SET ran.
data CommandCounts = CommandCounts
  { countGets :: Int,
    countSets :: Int
  }
  deriving stock (Eq, Show)

instance Semigroup CommandCounts where
  one <> other =
    CommandCounts
      { countGets = countGets one + countGets other,
        countSets = countSets one + countSets other
      }

instance Monoid CommandCounts where
  mempty = CommandCounts {countGets = 0, countSets = 0}

-- | Whether the server counted what the client counted. Everything this
-- process sent counts: preload, warm-up and what came after the time was up.
data Agreement
  = -- | Exactly.
    Agrees CommandCounts
  | -- | The client's count, the server's count.
    Disagrees CommandCounts CommandCounts
  | -- | No comparison, and why.
    NotComparable String
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

-- | All commands together. \(O(n)\) in the number of buckets.
latencies :: RunResult -> Histogram
latencies result = runGets result <> runSets result

-- | Commands that were answered well while the clock ran. \(O(1)\).
totalOps :: RunResult -> Int
totalOps result = Histogram.count (runGets result) + Histogram.count (runSets result)

-- | 'totalOps' per second.
opsPerSecond :: RunResult -> Double
opsPerSecond result
  | runSeconds result <= 0 = 0
  | otherwise = fromIntegral (totalOps result) / runSeconds result

-- | Hits among the GETs that were measured; 'Nothing' without GETs.
hitRatio :: RunResult -> Maybe Double
hitRatio result = case runHits result + runMisses result of
  0 -> Nothing
  gets -> Just (fromIntegral (runHits result) / fromIntegral gets)

-- | Errors of all classes.
errorCount :: RunResult -> Int
errorCount = sum . runErrors

-- | Why this run's numbers must not be used, a line each. Empty: they may.
problems :: RunResult -> [String]
problems result =
  concat
    [ [ show (errorCount result) <> " commands failed: "
          <> intercalate ", " [show held <> " " <> name | (name, held) <- Map.toList (runErrors result)]
        | errorCount result > 0
      ],
      [ show (runMisses result) <> " GETs missed, though every key was preloaded"
        | runMisses result > 0
      ],
      case runAgreement result of
        Disagrees client server ->
          [ "the client counted " <> counts client <> ", the server " <> counts server
              <> ": something else uses this server, or a count is wrong"
          ]
        _ -> [],
      ["nothing was answered while the clock ran" | totalOps result == 0]
    ]
  where
    counts held = show (countGets held) <> " GETs and " <> show (countSets held) <> " SETs"
