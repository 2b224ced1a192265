-- | The options of @bench@: one run, the standard suite, or the speed gate.
module Tool.Options.Bench
  ( BenchMode (..),
    BenchOptions (..),
    LoadOptions (..),
    SuiteOptions (..),
    GateOptions (..),
    Operation (..),
    operationName,
    benchOptions,
    suiteOptions,
    gateOptions,
    benchProblem,
    suiteProblem,
    gateProblem,
    defaultLoad,
  )
where

import Control.Applicative (optional, (<|>))
import Data.Maybe (fromMaybe)
import Data.Word (Word64)
import Options.Applicative
  ( Parser,
    ReadM,
    eitherReader,
    help,
    long,
    metavar,
    option,
    short,
    showDefault,
    strOption,
    switch,
    value,
  )
import Redis.Config (ReadFrom (PreferReplica))
import Text.Read (readMaybe)
import Tool.Bench.Workload.Keys (templateCount)
import Tool.Bench.Workload.Values (largestSize)
import Tool.Options.Campaign (CampaignOptions)
import Tool.Options.Connection
import Tool.Options.Differential (DifferentialOptions)
import Tool.Options.Effect (Said, effectProblem)
import Tool.Options.Load
import Tool.Options.Number (wholeNumber)
import Tool.Options.Output
import Tool.Options.Replay (RecordOptions, ReplayOptions)
import Tool.Options.Results (CompareOptions, MergeOptions, ReportOptions)
import Tool.Options.Workload

-- | What @bench@ was asked to do.
data BenchMode
  = -- | One run against a given or a private server.
    BenchOnce BenchOptions
  | -- | The standard set of runs against private servers.
    BenchSuite SuiteOptions
  | -- | The table of speeds that must be reached.
    BenchGate GateOptions
  | -- | The same as redis-benchmark, beside it.
    BenchDifferential DifferentialOptions
  | -- | Many cells, with servers of its own.
    BenchCampaign CampaignOptions
  | -- | Keep what a server does.
    BenchRecord RecordOptions
  | -- | And do it again.
    BenchReplay ReplayOptions
  | -- | Results again, in other forms.
    BenchReport ReportOptions
  | -- | Two results against each other.
    BenchCompare CompareOptions
  | -- | Results of several generators in one.
    BenchMerge MergeOptions
  | -- | The schema of the JSON.
    BenchSchema
  deriving stock (Eq, Show)

-- | One run.
data BenchOptions = BenchOptions
  { benchConnection :: ConnectionOptions,
    benchWorkload :: WorkloadOptions,
    benchLoad :: LoadOptions,
    benchOutputs :: Outputs
  }
  deriving stock (Eq, Show)

-- | What is sent, and how.
data LoadOptions = LoadOptions
  { -- | Seconds measured.
    loadDuration :: Double,
    -- | Threads that submit.
    loadThreads :: Int,
    -- | Connections per node; 'Nothing' is one per capability.
    loadMuxCount :: Maybe Int,
    -- | Commands that a thread submits before it waits for their replies.
    loadBatch :: Int,
    -- | Different keys.
    loadKeys :: Int,
    -- | Bytes.
    loadKeySize :: Int,
    -- | Bytes of the largest.
    loadValueSize :: Int,
    -- | Decides the sequence of commands.
    loadSeed :: Word64,
    -- | Whether connections may poll.
    loadPolling :: Bool,
    -- | When commands are sent, how often it is measured, and what is watched.
    loadPlan :: Plan
  }
  deriving stock (Eq, Show)

-- | The standard set of runs.
data SuiteOptions = SuiteOptions
  { suiteDuration :: Double,
    suiteOutputs :: Outputs
  }
  deriving stock (Eq, Show)

-- | The speed gate.
data GateOptions = GateOptions
  { -- | Seconds per measured run.
    gateDuration :: Double,
    -- | Runs per row.
    gateIterations :: Int,
    -- | Seconds of the short and of the long run whose memory is compared.
    gateMemorySeconds :: (Double, Double),
    gateJson :: Maybe FilePath
  }
  deriving stock (Eq, Show)

-- | The load when nothing is said.
defaultLoad :: LoadOptions
defaultLoad =
  LoadOptions
    { loadDuration = 10,
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

-- | Options of one run.
benchOptions :: Parser BenchOptions
benchOptions = together <$> connectionOptions <*> workloadOptions <*> loadOptions <*> outputOptions
  where
    -- The sizes of values belong to the workload; a template may say how many
    -- keys there are.
    together connection workload load outputs =
      BenchOptions
        { benchConnection = connection,
          benchWorkload = workload,
          benchLoad =
            load
              { loadKeys = fromMaybe (loadKeys load) (workloadTemplate workload >>= unlessSaid load . templateCount),
                loadValueSize = largestSize (workloadSizes workload)
              },
          benchOutputs = outputs
        }
    unlessSaid load count = if loadKeys load == loadKeys defaultLoad then count else Nothing

loadOptions :: Parser LoadOptions
loadOptions =
  LoadOptions
    <$> seconds "duration" (loadDuration defaultLoad) "Seconds to measure, where no --requests ends it"
    <*> option wholeNumber (short 'n' <> long "threads" <> metavar "N" <> value (loadThreads defaultLoad) <> showDefault <> help "Threads that submit commands (open loop: one per capability at most)")
    <*> optional (option wholeNumber (long "mux-count" <> metavar "N" <> help "Connections per node (default: one per capability)"))
    <*> number "batch" (loadBatch defaultLoad) "Closed loop: commands a thread submits before it waits; 1: wait for each reply"
    <*> number "keys" (loadKeys defaultLoad) "Different keys, all preloaded"
    <*> number "key-size" (loadKeySize defaultLoad) "Bytes of a key, where no --key-template says it"
    <*> pure (loadValueSize defaultLoad)
    <*> option wholeNumber (long "seed" <> metavar "N" <> value (loadSeed defaultLoad) <> showDefault <> help "Seed of the sequence of commands")
    <*> (not <$> switch (long "no-poll" <> help "Connections never poll for replies"))
    <*> planOptions
  where
    number name standard text =
      option wholeNumber (long name <> metavar "N" <> value standard <> showDefault <> help text)

-- | Options of the suite.
suiteOptions :: Parser SuiteOptions
suiteOptions = SuiteOptions <$> seconds "duration" 5 "Seconds per run" <*> outputOptions

-- | Options of the gate. Many short runs rather than few long ones: on a shared
-- machine the turns, not their length, keep a slow minute from being one side's.
gateOptions :: Parser GateOptions
gateOptions =
  GateOptions
    <$> seconds "duration" 1 "Seconds per run"
    <*> option wholeNumber (long "iterations" <> metavar "N" <> value 15 <> showDefault <> help "Runs per row, taken in turns")
    <*> ( (,)
            <$> seconds "memory-short" 10 "Seconds of the short run whose memory is compared"
            <*> seconds "memory-long" 60 "Seconds of the long one"
        )
    <*> jsonFile

jsonFile :: Parser (Maybe FilePath)
jsonFile =
  optional (strOption (long "json" <> metavar "FILE" <> help "Write the results as JSON (-: to the standard output)"))

seconds :: String -> Double -> String -> Parser Double
seconds name standard text =
  option readSeconds (long name <> metavar "SECONDS" <> value standard <> showDefault <> help text)

readSeconds :: ReadM Double
readSeconds = eitherReader $ \text -> case readMaybe text of
  Just number | number >= 0 && number <= 1e7 -> Right number
  _ -> Left ("not a number of seconds: " <> show text)

-- | What is wrong with the combination, in one line; what was said on the
-- command line is known besides.
benchProblem :: Said -> BenchOptions -> Maybe String
benchProblem options' options = case connectionProblem True (benchConnection options) of
  Just problem -> Just problem
  Nothing ->
    effectProblem options' (loadKeys defaultLoad) (connectionReadFrom (benchConnection options) == PreferReplica) (loadPlan (benchLoad options)) (benchWorkload options)
      <|> loadProblem (benchLoad options)
      <|> workloadProblem (loadKeys (benchLoad options)) (benchWorkload options)
      <|> outputProblem (benchOutputs options)

loadProblem :: LoadOptions -> Maybe String
loadProblem load
  | Just problem <- planProblem (loadPlan load) = Just problem
  | loadDuration load <= 0 = Just "--duration must be more than 0"
  | Just problem <- between "-n" 1 1000000 (loadThreads load) = Just problem
  | Just count <- loadMuxCount load, Just problem <- between "--mux-count" 1 1024 count = Just problem
  | Just problem <- between "--batch" 1 1000000 (loadBatch load) = Just problem
  | Just problem <- between "--keys" 1 100000000 (loadKeys load) = Just problem
  | Just problem <- between "--key-size" 1 65536 (loadKeySize load) = Just problem
  | Just problem <- between "--value-size" 0 (256 * 1024 * 1024) (loadValueSize load) = Just problem
  | loadKeySize load < digits =
    Just $
      "--key-size " <> show (loadKeySize load) <> " is too small for " <> show (loadKeys load)
        <> " different keys (needs "
        <> show digits
        <> ")"
  | otherwise = Nothing
  where
    digits = length (show (loadKeys load - 1))

between :: String -> Int -> Int -> Int -> Maybe String
between name lowest highest number
  | number < lowest || number > highest =
    Just (name <> " must be from " <> show lowest <> " to " <> show highest <> ", not " <> show number)
  | otherwise = Nothing

-- | What is wrong with the options of the suite.
suiteProblem :: SuiteOptions -> Maybe String
suiteProblem options
  | suiteDuration options <= 0 = Just "--duration must be more than 0"
  | otherwise = outputProblem (suiteOutputs options)

-- | What is wrong with the options of the gate.
gateProblem :: GateOptions -> Maybe String
gateProblem options
  | gateDuration options <= 0 = Just "--duration must be more than 0"
  | fst (gateMemorySeconds options) <= 0 = Just "--memory-short must be more than 0"
  | snd (gateMemorySeconds options) <= fst (gateMemorySeconds options) =
    Just "--memory-long must be more than --memory-short"
  | otherwise = between "--iterations" 1 1000 (gateIterations options)
