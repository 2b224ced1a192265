-- | The speed gate: every row of the table of demanded speeds, measured on this
-- machine, beside @redis-benchmark@ in the same minutes.
--
-- Servers are pinned to core 0 and clients to core 1. Each run of ours is a
-- process of its own, so that its processor time and memory are its alone, and
-- is this very program's @bench@. Runs are taken
-- in turns — every probe once, then every probe again — so that whatever the
-- machine does meanwhile falls on all of them. A row fails only if the whole
-- interval of its ratio misses the bar; one whose interval holds the bar is marked,
-- and does not fail. A run that is not valid does not end the gate: the rows that
-- need it say so, and decide the exit code.
module Tool.Bench.Gate
  ( gate,
    gateReport,
    gateExit,
  )
where

import Control.Monad (forM, forM_, when)
import Data.Aeson (Value, object, (.=))
import Data.Aeson.Key qualified as Key
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isNothing)
import Data.Text qualified as Text
import System.Directory (findExecutable)
import System.Exit (ExitCode (..))
import Tool.Bench.Document
  ( Document (..),
    Memory (..),
    Run (runProblems),
    TargetKind (..),
    referenceCommands,
    referenceCpuPerOp,
    referenceOpsPerSecond,
  )
import Tool.Bench.Document.Json (documentObject)
import Tool.Bench.Document.Totals
import Tool.Bench.Environment (isVirtualMachine, manifest)
import Tool.Bench.Gate.Table
import Tool.Bench.Itself (runItself, targetArguments)
import Tool.Bench.Private (PrivateOptions (..), withPrivate)
import Tool.Bench.Progress (Progress, announce)
import Tool.Bench.RedisBenchmark (RedisBenchmark (..), runRedisBenchmark)
import Tool.Bench.Suite (fillForCluster, referenceKeys, serverCount, standardBenchmark)
import Tool.Connect (Target, serverMisses, serverVersion)
import Tool.Failure (exitGateMissed, exitInvalid, invalidRun, unavailable)
import Tool.Options.Bench
import Tool.Text (Align (..), fixed, table)

-- | Measures, prints the table, writes the document. The exit code says whether a
-- row certainly missed what it must reach. Blocks for some minutes.
gate :: Progress -> GateOptions -> (Value -> IO ()) -> IO ExitCode
gate progress options write = do
  needed
  virtual <- isVirtualMachine
  about <- manifest
  (server, samples) <- collect progress options
  memoryRows <- compareMemory progress options
  let found = rows virtual samples <> memoryRows
  mapM_ putStrLn (gateReport server options found)
  mapM_ (putStrLn . Text.unpack) [Text.pack (rowWhat row) <> ": INVALID: " <> problem | row <- found, problem <- rowProblems row]
  write $
    documentObject
      ["gate" .= gateObject server options samples found]
      Document {documentManifest = about, documentRuns = [], documentNotes = [], documentOrigins = []}
  pure (gateExit (map rowVerdict found))

-- | How the gate ends, from the verdicts of its rows. Numbers of runs that are not
-- valid decide nothing; a row that is undecided is marked, and fails nothing.
gateExit :: [Verdict] -> ExitCode
gateExit verdicts
  | Unsound `elem` verdicts = ExitFailure exitInvalid
  | any (`elem` [Missed, Incomplete]) verdicts = ExitFailure exitGateMissed
  | otherwise = ExitSuccess

needed :: IO ()
needed = forM_ ["taskset", "redis-benchmark"] $ \program -> do
  found <- findExecutable program
  when (isNothing found) $ unavailable ("the gate needs " <> program)

-- Every probe, as often as wanted.
collect :: Progress -> GateOptions -> IO (String, Samples)
collect progress options =
  withPlaces [minBound .. maxBound] Map.empty $ \targets -> do
    target <- placed targets Pinned
    (server, _) <- serverVersion target
    cluster <- placed targets PinnedCluster
    fillForCluster progress cluster >>= either unavailable pure
    theirKeys <- referenceKeys cluster >>= either unavailable pure
    -- Before the first reference run, every key is there.
    forM_ (Map.elems targets) $ \one -> ours theirKeys one 0.5 Nothing
    samples <- forM [1 .. gateIterations options] $ \iteration ->
      forM probes $ \probe -> do
        announce progress ("iteration " <> show iteration <> " of " <> show (gateIterations options) <> ": " <> show probe)
        let (place, client) = probePlace probe
        at <- placed targets place
        sample <- case client of
          Just run' -> clientSample <$> ours theirKeys at (gateDuration options) (Just run')
          Nothing -> reference at (gateDuration options) probe
        pure (probe, [sample])
    pure (server, Map.fromListWith (flip (<>)) (concat samples))
  where
    clientSample run' = Sample {sampleOps = runRate run', sampleCpu = runCpuPerOp run', sampleProblems = runProblems run'}

withPlaces :: [Place] -> Map.Map Place Target -> (Map.Map Place Target -> IO a) -> IO a
withPlaces [] started action = action started
withPlaces (place : rest) started action =
  withPrivate options $ \target -> withPlaces rest (Map.insert place target started) action
  where
    options =
      PrivateOptions
        { privateKind = if place == PinnedCluster then TargetCluster else TargetStandalone,
          privateTls = place == PinnedTls,
          privateCores = [0 | place /= Unpinned]
        }

placed :: Map.Map Place Target -> Place -> IO Target
placed targets place = maybe (unavailable "a private server is missing") pure (Map.lookup place targets)

-- Runs this program again, on its core, given what redis-benchmark's keys look like
-- in the cluster.
ours :: String -> Target -> Double -> Maybe ClientRun -> IO Run
ours theirKeys target seconds client =
  runItself
    (if clientDefaultConnections run' then [0, 1] else [1])
    ( targetArguments target
        <> ["--operation", operationName (clientOperation run')]
        <> ["-n", show (clientThreads run'), "--batch", show (clientBatch run')]
        <> (if clientDefaultConnections run' then [] else ["--mux-count", "1"])
        <> ["--no-poll" | not (clientPolling run')]
        <> (if clientKeys run' == TheirKeys then ["--key-template", theirKeys] else [])
        <> ["--duration", show seconds, "--warmup", show (min 0.5 seconds)]
        -- The client's own speed is what the gate is about.
        <> ["--allow", "saturation", "--brief", "--no-sampling", "--slice", "3600"]
    )
    (("-N" <> show (clientCapabilities run')) : ["-A16m" | manyThreads])
  where
    run' = fromMaybe defaultRun client
    -- Each collection looks at every thread's stack. 1024 waiting: a sixth more
    -- commands than with the program's own -A2m; fewer threads gain nothing.
    manyThreads = clientThreads run' >= 1024
    defaultRun =
      ClientRun
        { clientOperation = OperationGet,
          clientThreads = 16,
          clientBatch = 64,
          clientDefaultConnections = False,
          clientPolling = True,
          clientCapabilities = 1,
          clientKeys = EverySlot
        }

reference :: Target -> Double -> Probe -> IO Sample
reference target seconds probe = do
  before <- serverMisses target
  outcome <- runRedisBenchmark (serverCount target OperationGet) seconds benchmark {redisBenchmarkPrefix = ["taskset", "-c", "1"]}
  after <- serverMisses target
  case outcome of
    Left problem -> unavailable problem
    Right found
      | (after - before) * 100 > referenceCommands found ->
        invalidRun "redis-benchmark asked for keys that are not there"
      | otherwise ->
        pure Sample {sampleOps = referenceOpsPerSecond found, sampleCpu = referenceCpuPerOp found, sampleProblems = []}
  where
    benchmark = case probe of
      Reference operation -> standardBenchmark target operation
      ReferenceOne -> (standardBenchmark target OperationGet) {redisBenchmarkClients = 1, redisBenchmarkPipeline = 1}
      _ -> standardBenchmark target OperationGet

-- A long run must not need much more than a short one.
compareMemory :: Progress -> GateOptions -> IO [Row]
compareMemory progress options =
  withPrivate PrivateOptions {privateKind = TargetStandalone, privateTls = False, privateCores = [0]} $ \target -> do
    announce progress ("memory: a run of " <> fixed 0 short <> " s and one of " <> fixed 0 long <> " s")
    one <- ours "" target short Nothing
    other <- ours "" target long Nothing
    pure
      [ memoryRow "memory: peak resident" (problems one other) (bytes memoryPeakResident other) (bytes memoryPeakResident one),
        memoryRow "memory: most live on the heap" (problems one other) (bytes memoryMaxLive other) (bytes memoryMaxLive one)
      ]
  where
    problems one other = runProblems one <> runProblems other
    (short, long) = gateMemorySeconds options
    bytes field = fromIntegral . field . runMemory

-- | The table as lines.
gateReport :: String -> GateOptions -> [Row] -> [String]
gateReport server options found =
  [ server <> " on core 0, client on core 1, one connection, GETs that hit 100 000 keys of 512 bytes;",
    "medians of " <> show (gateIterations options) <> " interleaved runs of " <> fixed 1 (gateDuration options)
      <> " s; the spread is the least and greatest ratio within one iteration,",
    "95 % the interval of confidence of the ratio (Student's t over the logarithms of the iterations' ratios);",
    "MISSED: the whole interval misses the bar; UNDECIDED: the bar lies within it; reached: the whole interval does",
    "the program's own settings, and +RTS -A16m for 1024 threads;",
    "R: redis-benchmark -c 16 -P 64; C: its CPU per command; R1: -c 1 -P 1; RC: --cluster -c 20 -P 64; RT: --tls",
    ""
  ]
    <> table
      [AlignLeft, AlignRight, AlignRight, AlignRight, AlignRight, AlignRight, AlignRight, AlignRight, AlignLeft]
      (["what", "must", "aim", "measured", "spread", "95 %", "ours", "reference", "verdict"] : map cells found)
  where
    cells row =
      [ rowWhat row,
        maybe "" (bound row) (rowMust row),
        maybe "" (bound row) (rowAim row),
        fixed 2 (rowMeasured row) <> " " <> rowUnit row,
        range (rowSpread row),
        maybe "" range (rowInterval row),
        figure row (fst (rowFigures row)),
        figure row (snd (rowFigures row)),
        verdictText (rowVerdict row)
      ]
    range (low, high) = fixed 2 low <> ".." <> fixed 2 high
    bound row number = fixed 2 number <> " " <> rowUnit row
    figure row number = case rowFigureUnit row of
      PerSecond -> fixed 1 (number / 1e3) <> " k/s"
      NanosPerCommand -> fixed 2 (number / 1e3) <> " us"
      Bytes -> fixed 1 (number / 1e6) <> " MB"

verdictText :: Verdict -> String
verdictText = \case
  Missed -> "MISSED"
  Undecided -> "UNDECIDED"
  Reached -> "reached"
  AimReached -> "reached, the aim too"
  Stated -> "stated"
  Incomplete -> "NOT MEASURED"
  Unsound -> "INVALID"

gateObject :: String -> GateOptions -> Samples -> [Row] -> Value
gateObject server options samples found =
  object
    [ "server" .= server,
      "duration_sec" .= gateDuration options,
      "iterations" .= gateIterations options,
      "rows" .= map rowObject found,
      "samples"
        .= object
          [ Key.fromString (show probe)
              .= [object ["ops_per_sec" .= sampleOps one, "cpu_ns_per_op" .= sampleCpu one, "problems" .= sampleProblems one] | one <- taken]
            | (probe, taken) <- Map.toList samples
          ]
    ]
  where
    rowObject row =
      object
        [ "what" .= rowWhat row,
          "unit" .= rowUnit row,
          "must" .= rowMust row,
          "aim" .= rowAim row,
          "measured" .= rowMeasured row,
          "spread" .= rowSpread row,
          "interval" .= rowInterval row,
          "figures" .= rowFigures row,
          "verdict" .= verdictText (rowVerdict row)
        ]
