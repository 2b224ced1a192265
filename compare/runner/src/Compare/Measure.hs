-- | Runs the comparison: for each iteration and each set of servers, it starts fresh ones; then it
-- measures each cell, and in each cell one row after the other.
--
-- Within a cell the rows take turns in being first, and every second iteration goes backwards, so
-- that no row always runs on a warm or a tired machine. Only the servers of the cell and the
-- measured row run at that time.
module Compare.Measure
  ( Measurement (..),
    measure,
    measurementPlan,

    -- * One run
    runReport,
    pinned,
  )
where

import Compare.Cell
import Compare.Plan
import Compare.Row
import Compare.Sample
import Compare.Servers
import Control.Exception (IOException, try)
import Control.Monad (foldM, forM)
import Data.Aeson (eitherDecodeStrict')
import Data.IORef (newIORef, readIORef, writeIORef)
import Data.Maybe (listToMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import GHC.Conc (getNumProcessors)
import Redis.TestKit.Process (onCores)
import System.Environment (getEnvironment)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.Process (CreateProcess (..), proc, readCreateProcessWithExitCode)
import System.Timeout (timeout)
import Text.Printf (printf)
import Tool.Bench.Document (Reference (..))
import Tool.Bench.RedisBenchmark (RedisBenchmark (..), ReferenceLoad (..), runRedisBenchmark)
import Tool.Bench.Time (monotonic)
import Tool.Span (inMicros, microsIn, remaining, secondsIn)

-- | The measurements to make.
data Measurement = Measurement
  { measurementRows :: [Row],
    measurementCells :: [Planned],
    measurementWindow :: Window,
    -- | The numbers of the iterations.
    measurementIterations :: [Int],
    -- | Whether @redis-benchmark@ runs beside the peers.
    measurementReference :: Bool
  }

-- | The plan as lines of text.
measurementPlan :: Measurement -> [String]
measurementPlan measurement =
  planLines
    (reference measurement)
    (measurementWindow measurement)
    (measurementRows measurement)
    (length (measurementIterations measurement))
    (measurementCells measurement)

-- Whether @redis-benchmark@ runs at a cell.
reference :: Measurement -> Cell -> Bool
reference measurement cell = measurementReference measurement && hasReference cell

-- | Runs all measurements; blocks for a long time. Announces its progress and the time that is
-- left. Passes on after each iteration what there is so far: an interrupted run keeps that. Returns
-- the servers' version and the samples.
measure :: (String -> IO ()) -> (String -> [Sample] -> IO ()) -> Measurement -> IO (String, [Sample])
measure announce keep measurement = do
  processors <- getNumProcessors
  began <- monotonic
  finished <- newIORef (0 :: Int)
  let pinning = processors >= 2
      once (known, earlier) iteration = do
        found <- forM (groups (measurementCells measurement)) $ \cells -> case cells of
          [] -> pure ("", [])
          one : _ -> withServers (plannedCell one) $ \servers -> do
            version <- serversVersion servers
            samples <- forM cells $ \planned -> do
              done <- readIORef finished
              now <- monotonic
              announce (heading iteration done (secondsIn (now - began)) planned)
              oneCell pinning iteration servers planned <* writeIORef finished (done + 1)
            pure (version, concat samples)
        let version = if null known then maybe "" fst (listToMaybe found) else known
            samples = earlier <> concatMap snd found
        (version, samples) <$ keep version samples
  foldM once ("", []) (measurementIterations measurement)
  where
    window = measurementWindow measurement
    rows = measurementRows measurement
    cellCount = length (measurementCells measurement)
    iterations = length (measurementIterations measurement)
    whole = estimate (reference measurement) window rows iterations (measurementCells measurement)
    heading :: Int -> Int -> Double -> Planned -> String
    heading iteration done since planned =
      printf
        "iteration %d, %s: cell %d of %d, about %.0f minutes left"
        iteration
        (Text.unpack (cellName (plannedCell planned)))
        (done + 1)
        (iterations * cellCount)
        (remaining whole (secondsOf done) since)
    -- The part of the estimate that is for the cells that are done.
    secondsOf done =
      let (full, some) = done `divMod` max 1 cellCount
          inOrder = concat (groups (measurementCells measurement))
       in (whole * fromIntegral full / fromIntegral (max 1 iterations))
            + estimate (reference measurement) window rows 1 (take some inOrder)
    oneCell pinning iteration servers planned = do
      let cell = plannedCell planned
      forM (turns iteration (map Just (plannedRows rows planned) <> [Nothing | reference measurement cell])) $ \row -> do
        sample <- case row of
          Just peer -> runPeer pinning window servers iteration cell peer
          Nothing -> runReference pinning window servers iteration cell
        announce ("  " <> summary sample)
        pure sample

summary :: Sample -> String
summary sample = case sampleProblems sample of
  [] ->
    printf
      "%-28s %8.1f k/s %7.2f us CPU  p50 %7.0f us  max %8.0f us"
      (Text.unpack (sampleRow sample))
      (sampleOpsPerSecond sample / 1e3)
      (inMicros (sampleCpuPerOp sample))
      (inMicros (latencyP50 (sampleLatency sample)))
      (inMicros (latencyMax (sampleLatency sample)))
  problems -> printf "%-28s INVALID: %s" (Text.unpack (sampleRow sample)) (Text.unpack (Text.intercalate "; " problems))

-- Measures one row at one cell.
runPeer :: Bool -> Window -> Servers -> Int -> Cell -> Row -> IO Sample
runPeer pinning usual servers iteration cell row = do
  before <- counts servers
  outcome <- runReport (pinned pinning cell) window row (peerArguments (serversAddress servers) window cell)
  after <- counts servers
  pure $ case outcome of
    Left why -> failedSample (rowName row) cell iteration why
    Right report -> sampleOf (rowName row) cell iteration (problemsOf (length (clientCores (cellPlace cell))) window cell before after report) (serverCpuPerOp before after) report
  where
    window = rowWindow usual row

-- | Runs a peer with these arguments, after a function has changed its command line. 'Left' says
-- why there is no report. Blocks until the peer has ended.
runReport :: ([String] -> [String]) -> Window -> Row -> [String] -> IO (Either Text PeerReport)
runReport change window row arguments = do
  environment <- getEnvironment
  let (program, rest) = case change (rowRun row <> arguments) of
        -- A path is relative to the row's folder, but might be looked for elsewhere.
        first : others -> (if '/' `elem` first then rowFolder row </> first else first, others)
        [] -> ("true", [])
      command =
        (proc program rest)
          { cwd = Just (rowFolder row),
            env = Just (rowVariables row environment)
          }
      -- Time for its start and its end, and 10 s in which commands may still be answered.
      limit = windowWarmup window + windowDuration window + 25
  outcome <- timeout (microsIn limit) (try (readCreateProcessWithExitCode command ""))
  pure $ case outcome of
    Nothing -> Left "it did not end in time"
    Just (Left problem) -> Left ("it cannot be run: " <> lastLine (show (problem :: IOException)))
    Just (Right (ExitFailure code, _, complaint)) ->
      Left ("it ended with " <> Text.pack (show code) <> ": " <> lastLine complaint)
    Just (Right (ExitSuccess, output, _)) -> case eitherDecodeStrict' (Text.encodeUtf8 (Text.pack output)) of
      Left problem -> Left ("it printed something else than a report: " <> lastLine problem)
      Right report -> Right report

lastLine :: String -> Text
lastLine text = case reverse (filter (not . Text.null) (map Text.strip (Text.lines (Text.pack text)))) of
  line : _ -> Text.take 300 line
  [] -> "it printed nothing"

-- | Keeps a command line on the client's cores, if the machine has enough.
pinned :: Bool -> Cell -> [String] -> [String]
pinned pinning cell arguments
  | pinning = onCores (clientCores (cellPlace cell)) <> arguments
  | otherwise = arguments

-- redis-benchmark reads the existing values, but writes values of its own, and in a cluster its
-- keys have other names: so it is used only for GETs on one server.
hasReference :: Cell -> Bool
hasReference cell =
  cellOperation cell == GetHit && not (isCluster (cellPlace cell)) && commonKeySize (cellCommon cell) == 16

runReference :: Bool -> Window -> Servers -> Int -> Cell -> IO Sample
runReference pinning window servers iteration cell = do
  before <- counts servers
  outcome <-
    runRedisBenchmark
      Nothing
      (windowDuration window)
      RedisBenchmark
        { redisBenchmarkHost = fst (serversAddress servers),
          redisBenchmarkPort = snd (serversAddress servers),
          redisBenchmarkCluster = False,
          redisBenchmarkTls = Nothing,
          redisBenchmarkLoad = ReferenceTest "get",
          redisBenchmarkClients = clients,
          redisBenchmarkPipeline = pipeline,
          redisBenchmarkKeys = commonKeys (cellCommon cell),
          redisBenchmarkValueSize = cellValueSize cell,
          redisBenchmarkPrefix = pinned pinning cell []
        }
  after <- counts servers
  pure $ case outcome of
    Left problem -> failedSample referenceName cell iteration (Text.pack problem)
    Right measured ->
      (failedSample referenceName cell iteration "")
        { sampleOpsPerSecond = referenceOpsPerSecond measured,
          sampleCpuPerOp = referenceCpuPerOp measured,
          sampleServerCpuPerOp = serverCpuPerOp before after,
          sampleLatency =
            (Latency 0 0 0 0 0 0)
              { latencyP50 = referenceP50 measured * 1e6,
                latencyP99 = referenceP99 measured * 1e6
              },
          sampleConnections = clients,
          sampleNotes = ["-c " <> Text.pack (show clients) <> " -P " <> Text.pack (show pipeline)],
          sampleProblems = []
        }
  where
    (clients, pipeline) = case cellStyle cell of
      Wait -> (cellInFlight cell, 1)
      Batch -> (cellInFlight cell `div` 64, 64)
