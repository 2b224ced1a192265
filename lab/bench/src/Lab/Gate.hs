-- | The speed gate: measures every row of the table of required speeds on this machine, beside
-- hiredis and @redis-benchmark@ in the same minutes; and the cost of the tool itself.
--
-- Servers are pinned to core 0 and clients to core 1. Each of our runs is the @bench@ of this very
-- program in a process of its own, so that its processor time and memory are those of the run
-- alone. Runs are taken in turns, every probe once, then every probe again, so that disturbances of
-- the machine affect all of them. A row fails only if the whole interval of its ratio misses the
-- bar. A row whose interval contains the bar is marked, and does not fail. A run that is not valid
-- does not end the gate: the rows that need it are invalid, and decide the exit code.
module Lab.Gate
  ( gate,
    render,
    gateExit,
  )
where

import Control.Exception (IOException, try)
import Control.Monad (foldM, forM, forM_, when)
import Data.Aeson (Value)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict qualified as Map
import Data.Maybe (isNothing, mapMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Lab.Bare (BareFound (..), readBare)
import Lab.Gate.Document
import Lab.Gate.Report (reportLines)
import Lab.Gate.Table
import Lab.Hiredis
import Lab.Options.Gate (GateOptions (..))
import Lab.Suite (fillForCluster, referenceKeys, serverCount, standardBenchmark)
import Redis.TestKit.Process (onCores)
import System.Directory (findExecutable)
import System.Environment (getExecutablePath)
import System.Exit (ExitCode (..))
import System.Process (proc, readCreateProcessWithExitCode)
import Tool.Bench.Document
  ( Iteration (iterationTrust),
    Memory (..),
    Reference (referenceArguments, referenceCommands, referenceCpuPerOp, referenceOpsPerSecond),
    Run (runIterations, runProblems),
    TargetKind (..),
    Trust (trustCpuShare, trustSchedule),
  )
import Tool.Bench.Document.Totals (runCpuPerOp, runMemory, runRate)
import Tool.Bench.Environment (manifest)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Itself (pinnedTo, runItself, targetArguments)
import Tool.Bench.Private (withPrivate)
import Tool.Bench.Progress (Progress, announce)
import Tool.Bench.RedisBenchmark (RedisBenchmark (..), runRedisBenchmark)
import Tool.Connect (Target, serverMisses, serverVersion, targetPlace)
import Tool.Failure (exitGateMissed, exitInvalid, invalidRun, unavailable)
import Tool.Options.Bench
import Tool.Text (fixed)

-- | Measures, prints the table, writes the raw data. The exit code says whether a row certainly
-- missed its bar. Blocks for some minutes.
gate :: GateOptions -> Progress -> (Value -> IO ()) -> IO ExitCode
gate options progress write = do
  needed
  about <- manifest
  hiredis <- buildHiredis (gateHiredis options)
  (server, series) <- collect progress options hiredis
  (memory, problems) <- compareMemory progress options
  let (short, long) = gateMemorySeconds options
      measured =
        Measured
          { measuredManifest = about,
            measuredServer = Text.pack server,
            measuredHiredis = Text.intercalate "; " (hiredisVersion hiredis : hiredisAbsent hiredis),
            measuredDuration = gateDuration options,
            measuredIterations = gateIterations options,
            measuredSeries = series,
            measuredMemorySeconds = [short, long],
            measuredMemory = memory,
            measuredMemoryProblems = problems
          }
  write (measuredValue measured)
  shown [measured]

-- | Shows the table of stored runs, side by side. The exit code is that of the worst.
render :: [FilePath] -> IO ExitCode
render files = do
  measured <- forM files $ \file ->
    ByteString.readFile file >>= either (\problem -> invalidRun (file <> ": " <> problem)) pure . readMeasured
  shown measured

shown :: [Measured] -> IO ExitCode
shown measured = do
  mapM_ putStrLn (reportLines measured)
  pure (gateExit (concatMap (map rowVerdict . rowsOf) measured))

-- | The exit code, from the verdicts of the rows. If a run is not valid, no numbers decide. An
-- undecided row is marked, and fails nothing.
gateExit :: [Verdict] -> ExitCode
gateExit verdicts
  | Unsound `elem` verdicts = ExitFailure exitInvalid
  | any (`elem` [Missed, Incomplete]) verdicts = ExitFailure exitGateMissed
  | otherwise = ExitSuccess

needed :: IO ()
needed = forM_ ["taskset", "redis-benchmark"] $ \program -> do
  found <- findExecutable program
  when (isNothing found) $ unavailable ("the gate needs " <> program)

-- What runs need: the servers, their keys, and the programs.
data Ground = Ground
  { groundTargets :: Map.Map Place Target,
    -- | The template of redis-benchmark's keys in the cluster.
    groundTheirKeys :: String,
    groundHiredis :: HiredisPrograms
  }

-- Runs every probe in all iterations.
collect :: Progress -> GateOptions -> HiredisPrograms -> IO (String, [Series])
collect progress options hiredis =
  withPlaces [minBound .. maxBound] Map.empty $ \targets -> do
    target <- placed targets Pinned
    (server, _) <- serverVersion target
    cluster <- placed targets PinnedCluster
    fillForCluster progress cluster >>= either unavailable pure
    theirKeys <- referenceKeys cluster >>= either unavailable pure
    let ground = Ground {groundTargets = targets, groundTheirKeys = theirKeys, groundHiredis = hiredis}
    -- All keys exist before the first run of any other program.
    forM_ (Map.elems targets) $ \one -> runOurs ground one 0.5 batchedGets
    forM_ [target, cluster] fillForHiredis
    found <- foldM (turn ground) Map.empty [(iteration, probe) | iteration <- [1 .. gateIterations options], probe <- runnable]
    pure (server, mapMaybe (seriesIn found) probes)
  where
    runnable = filter available probes
    available = \case
      Hiredis form _ -> Map.member form (hiredisCommands hiredis)
      _ -> True
    turn ground found (iteration, probe) = do
      announce progress ("iteration " <> show iteration <> " of " <> show (gateIterations options) <> ": " <> show probe)
      (command, sample) <- runProbe ground (gateDuration options) probe
      pure (Map.insertWith (\(new, samples) (_, earlier) -> (new, earlier <> samples)) probe (command, [sample]) found)
    seriesIn found probe = uncurry (Series (Text.pack (show probe))) <$> Map.lookup probe found

withPlaces :: [Place] -> Map.Map Place Target -> (Map.Map Place Target -> IO a) -> IO a
withPlaces [] running action = action running
withPlaces (place : rest) running action =
  withPrivate kind (place == PinnedTls) [0 | place /= Unpinned] $ \target ->
    withPlaces rest (Map.insert place target running) action
  where
    kind = if place == PinnedCluster then TargetCluster else TargetStandalone

placed :: Map.Map Place Target -> Place -> IO Target
placed targets place = maybe (unavailable "a private server is missing") pure (Map.lookup place targets)

-- One run. Returns its command line, and its result.
runProbe :: Ground -> Double -> Probe -> IO ([Text], Sample)
runProbe ground seconds probe = do
  target <- placed (groundTargets ground) place
  case runner of
    OurProgram client -> fmap sampleOf <$> runOurs ground target seconds client
    BareLoop client -> runBare target seconds client
    OpenProgram -> fmap sampleOf <$> started [1] (openArguments target seconds) ["-N1"]
    HiredisProgram form load -> do
      let arguments = hiredisArguments target seconds load
      (,) (map Text.pack (onCores [1] <> concat (Map.lookup form (hiredisCommands (groundHiredis ground))) <> arguments))
        <$> runHiredis (groundHiredis ground) form [1] arguments
    RedisBenchmarkProgram -> reference target seconds probe
  where
    (place, runner) = probePlace probe

sampleOf :: Run -> Sample
sampleOf run' =
  Sample
    { sampleOps = runRate run',
      sampleCpu = runCpuPerOp run',
      sampleLate = fromIntegral . Histogram.percentile 99 <$> foldMap trustSchedule trusts,
      sampleShare = case mapMaybe trustCpuShare trusts of
        [] -> Nothing
        shares -> Just (maximum shares),
      sampleProblems = runProblems run'
    }
  where
    trusts = map iterationTrust (runIterations run')

-- Runs this program as the program redis-client on these cores.
started :: [Int] -> [String] -> [String] -> IO ([Text], Run)
started cores arguments runtime = (,) (map Text.pack (program : words')) <$> runItself cores arguments runtime
  where
    (program, words') = pinnedTo cores "redis-client" (("bench" : arguments) <> ["+RTS"] <> runtime <> ["-RTS"])

runOurs :: Ground -> Target -> Double -> ClientRun -> IO ([Text], Run)
runOurs ground target seconds client =
  started
    (if clientDefaultConnections client then [0, 1] else [1])
    ( targetArguments target
        <> ["--operation", operationName (clientOperation client)]
        <> ["-n", show (clientThreads client), "--batch", show (clientBatch client)]
        <> (if clientDefaultConnections client then [] else ["--mux-count", "1"])
        <> ["--no-poll" | not (clientPolling client)]
        <> (if clientKeys client == TheirKeys then ["--key-template", groundTheirKeys ground] else [])
        <> ["--duration", show seconds, "--warmup", show (min 0.5 seconds)]
        -- The gate is about the client's own speed: the table marks saturation.
        <> unwatched
    )
    (("-N" <> show (clientCapabilities client)) : ["-A16m" | manyThreads])
  where
    -- Each collection scans every thread's stack. With 1024 waiting threads this gives a sixth more
    -- commands than the program's own -A2m; with fewer threads it gains nothing.
    manyThreads = clientThreads client >= 1024

unwatched :: [String]
unwatched = ["--allow", "saturation", "--brief", "--no-sampling", "--slice", "3600"]

openArguments :: Target -> Double -> [String]
openArguments target seconds =
  targetArguments target
    <> ["--operation", "get", "--rate", show openRate, "--mux-count", "1"]
    <> ["--duration", show seconds, "--warmup", show (min 0.5 seconds)]
    <> unwatched

runBare :: Target -> Double -> ClientRun -> IO ([Text], Sample)
runBare target seconds client = do
  self <- getExecutablePath
  let arguments =
        ["bare", "--host", fst (targetPlace target), "--port", show (snd (targetPlace target))]
          <> ["--threads", show (clientThreads client), "--batch", show (clientBatch client), "--duration", show seconds]
          <> ["+RTS", "-N" <> show (clientCapabilities client), "-RTS"]
      (program, words') = pinnedTo [1] self arguments
  outcome <- try @IOException (readCreateProcessWithExitCode (proc program words') "")
  case outcome of
    Right (ExitSuccess, output, _)
      | Right found <- readBare (Char8.pack output) ->
        pure
          ( map Text.pack (onCores [1] <> ("redis-client-lab" : arguments)),
            Sample {sampleOps = bareOps found, sampleCpu = bareCpu found, sampleLate = Nothing, sampleShare = Nothing, sampleProblems = []}
          )
    Right (_, output, problem) -> invalidRun ("the bare loop found nothing: " <> unwords (words (problem <> output)))
    Left problem -> unavailable ("the bare loop cannot be run: " <> show problem)

reference :: Target -> Double -> Probe -> IO ([Text], Sample)
reference target seconds probe = do
  before <- serverMisses target
  outcome <- runRedisBenchmark (serverCount target OperationGet) seconds benchmark {redisBenchmarkPrefix = onCores [1]}
  after <- serverMisses target
  found <- either unavailable pure outcome
  pure
    ( referenceArguments found,
      Sample
        { sampleOps = referenceOpsPerSecond found,
          sampleCpu = referenceCpuPerOp found,
          sampleLate = Nothing,
          sampleShare = Nothing,
          sampleProblems = ["redis-benchmark asked for keys that are not there" | (after - before) * 100 > referenceCommands found]
        }
    )
  where
    benchmark = case probe of
      Reference operation -> standardBenchmark target operation
      ReferenceOne -> (standardBenchmark target OperationGet) {redisBenchmarkClients = 1, redisBenchmarkPipeline = 1}
      _ -> standardBenchmark target OperationGet

-- Checks that a long run does not need much more memory than a short one. Returns, for each figure,
-- the bytes after both runs; and the problems of the runs.
compareMemory :: Progress -> GateOptions -> IO ([(Text, [Double])], [Text])
compareMemory progress options =
  withPrivate TargetStandalone False [0] $ \target -> do
    announce progress ("memory: a run of " <> fixed 0 short <> " s and one of " <> fixed 0 long <> " s")
    found <- forM [short, long] $ \seconds -> snd <$> runOurs nowhere target seconds batchedGets
    let bytes field = map (fromIntegral . field . runMemory) found
    pure ([("peak resident", bytes memoryPeakResident), ("most live on the heap", bytes memoryMaxLive)], concatMap runProblems found)
  where
    (short, long) = gateMemorySeconds options
    nowhere = Ground Map.empty "" (HiredisPrograms "" Map.empty "" [])
