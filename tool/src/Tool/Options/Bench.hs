-- | The options of @bench@: one run, and its other modes.
module Tool.Options.Bench
  ( BenchMode (..),
    BenchOptions (..),
    LoadOptions (..),
    Operation (..),
    operationName,
    benchOptions,
    benchProblem,
    defaultLoad,
  )
where

import Control.Monad (guard)
import Data.Foldable (asum)
import Data.Maybe (fromMaybe)
import Data.Word (Word64)
import Options.Applicative
import Tool.Bench.Workload.Keys (templateCount)
import Tool.Bench.Workload.Values (largestSize)
import Tool.Options.Campaign (CampaignOptions)
import Tool.Options.Common
import Tool.Options.Connection
import Tool.Options.Effect (GivenOptions, effectProblem)
import Tool.Options.Load
import Tool.Options.Modes
import Tool.Options.Output
import Tool.Options.Workload

-- | A mode; without a word, one run against a given or a private server.
data BenchMode
  = BenchOnce BenchOptions
  | BenchCampaign CampaignOptions
  | BenchRecord RecordOptions
  | BenchReplay ReplayOptions
  | BenchReport ReportOptions
  | BenchCompare CompareOptions
  | BenchMerge MergeOptions
  | BenchSchema
  deriving stock (Eq, Show)

data BenchOptions = BenchOptions
  { benchConnection :: ConnectionOptions,
    benchWorkload :: WorkloadOptions,
    benchLoad :: LoadOptions,
    benchOutputs :: Outputs
  }
  deriving stock (Eq, Show)

-- | The load: how commands are sent, and sizes.
data LoadOptions = LoadOptions
  { -- | Seconds to measure.
    loadDuration :: Double,
    loadThreads :: Int,
    -- | Connections per node. 'Nothing' means one per capability.
    loadMuxCount :: Maybe Int,
    -- | Commands that a thread submits before it waits for their replies.
    loadBatch :: Int,
    -- | The number of different keys.
    loadKeys :: Int,
    loadKeySize :: Int,
    -- | Bytes of the largest value.
    loadValueSize :: Int,
    -- | Decides the sequence of commands.
    loadSeed :: Word64,
    -- | Whether connections may poll.
    loadPolling :: Bool,
    -- | When commands are sent, how often the run measures, and what it watches.
    loadPlan :: Plan
  }
  deriving stock (Eq, Show)

defaultLoad :: LoadOptions
defaultLoad =
  LoadOptions
    { loadDuration = 30,
      loadThreads = 16,
      loadMuxCount = Nothing,
      loadBatch = 64,
      loadKeys = 100000,
      loadKeySize = 16,
      loadValueSize = 512,
      loadSeed = 1,
      loadPolling = True,
      loadPlan = defaultPlan
    }

benchOptions :: Parser BenchOptions
benchOptions = together <$> connectionOptions <*> workloadOptions <*> loadOptions <*> outputOptions
  where
    -- The sizes of values belong to the workload. A template may give the number of keys.
    together connection workload load =
      BenchOptions connection workload $
        load
          { loadKeys = fromMaybe (loadKeys load) (guard (unsaid load) *> counted workload),
            loadValueSize = largestSize (workloadSizes workload)
          }
    counted workload = workloadTemplate workload >>= templateCount
    unsaid load = loadKeys load == loadKeys defaultLoad

loadOptions :: Parser LoadOptions
loadOptions =
  LoadOptions
    <$> seconds "duration" (loadDuration defaultLoad) "Seconds to measure, unless --requests is given"
    <*> option
      wholeNumber
      (short 'n' <> described "threads" "N" threads <> usually show (loadThreads defaultLoad))
    <*> optionalOption wholeNumber "mux-count" "N" "Connections per node (default: one per capability)"
    <*> numberOption "batch" (loadBatch defaultLoad) batch
    <*> numberOption "keys" (loadKeys defaultLoad) "Different keys, all preloaded"
    <*> numberOption "key-size" (loadKeySize defaultLoad) "Bytes of a key, unless --key-template is given"
    <*> pure (loadValueSize defaultLoad)
    <*> numberOption "seed" (loadSeed defaultLoad) "Seed of the sequence of commands"
    <*> (not <$> switch (long "no-poll" <> help "Connections never poll for replies"))
    <*> planOptions
  where
    threads = "Threads that submit commands (open loop: one per capability at most)"
    batch = "Closed loop: commands a thread submits before it waits; 1: wait for each reply"

-- | The problem of a combination of options, in one line. Also takes the options that stand on the
-- command line.
benchProblem :: GivenOptions -> BenchOptions -> Maybe String
benchProblem options' options =
  asum
    [ connectionProblem True (benchConnection options),
      effectProblem
        options'
        (loadKeys defaultLoad)
        (benchConnection options)
        (loadPlan (benchLoad options))
        (benchWorkload options),
      loadProblem (benchLoad options),
      workloadProblem (loadKeys (benchLoad options)) (benchWorkload options),
      outputProblem (benchOutputs options)
    ]

loadProblem :: LoadOptions -> Maybe String
loadProblem load =
  asum
    [ planProblem (loadPlan load),
      refused (loadDuration load <= 0) "--duration must be more than 0",
      between "-n" 1 1000000 (loadThreads load),
      between "--mux-count" 1 1024 =<< loadMuxCount load,
      between "--batch" 1 1000000 (loadBatch load),
      refused (planSending (loadPlan load) == WhenAnswered && loadThreads load * loadBatch load > 1000000) . unwords $
        ["-n", show (loadThreads load), "threads with --batch", show (loadBatch load), "are more than 1000000 commands in flight"]
          <> ["(redis-benchmark's -n is --requests here)"],
      between "--keys" 1 100000000 (loadKeys load),
      between "--key-size" 1 65536 (loadKeySize load),
      between "--value-size" 0 (256 * 1024 * 1024) (loadValueSize load),
      refused (loadKeySize load < digits) . unwords $
        ["--key-size", show (loadKeySize load), "is too small for", show (loadKeys load)]
          <> ["different keys (needs " <> show digits <> ")"]
    ]
  where
    digits = length (show (loadKeys load - 1))
