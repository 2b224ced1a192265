-- | @bench differential@: the same tests, by this program and by
-- @redis-benchmark@, in turns, against one server on a core of its own.
--
-- Both have as many connections, as many commands on their way, the same keys
-- and the same bytes. What the server uses of its core is asked of the server
-- itself, five times a second, while either runs ('underLoad').
module Tool.Bench.Differential
  ( differential,
    differentialReport,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (race)
import Control.Monad (forM, forM_, void, when)
import Data.Aeson (Value, object, (.=))
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (modifyIORef', newIORef, readIORef)
import Data.Maybe (isNothing)
import Data.Text (Text)
import Data.Text qualified as Text
import Redis (Client)
import Redis qualified
import Redis.Commands qualified as Commands
import System.Directory (findExecutable)
import System.Exit (ExitCode (..))
import Tool.Bench.Cpu (Nanos, monotonic)
import Tool.Bench.Differential.Table
import Tool.Bench.Document
import Tool.Bench.Document.Json (documentObject)
import Tool.Bench.Document.Totals (runRate)
import Tool.Bench.Environment (manifest)
import Tool.Bench.Itself (runItself, targetArguments)
import Tool.Bench.Private (PrivateOptions (..), withPrivate)
import Tool.Bench.Progress (Progress, announce)
import Tool.Bench.RedisBenchmark (RedisBenchmark (..), runRedisBenchmark)
import Tool.Connect (Target (..), nodeCpu, quiet, serverMisses, serverVersion, withTarget)
import Tool.Failure (exitGateMissed, exitInvalid, unavailable)
import Tool.Options.Differential (DifferentialOptions (..))
import Tool.Text (Align (..), fixed, table)

-- | Measures, prints the table, writes the document. The exit code says whether
-- every row that can be judged agrees. Blocks for some minutes.
differential :: Progress -> DifferentialOptions -> (Value -> IO ()) -> IO ExitCode
differential progress options write = do
  forM_ ["taskset", "redis-benchmark"] $ \program -> do
    found <- findExecutable program
    when (isNothing found) $ unavailable ("the comparison needs " <> program)
  about <- manifest
  (server, found) <- withPrivate PrivateOptions {privateKind = TargetStandalone, privateTls = False, privateCores = [0]} $ \target -> do
    (server, _) <- serverVersion target
    withTarget quiet target $ \client ->
      (,) server <$> forM (differentialTests options) (compared progress options target client)
  let rows = [row | (row, _, _) <- found]
  mapM_ putStrLn (differentialReport server options rows)
  write $
    documentObject
      ["differential" .= differentialObject server options found]
      Document {documentManifest = about, documentRuns = [], documentNotes = [], documentOrigins = []}
  pure (verdict (map rowVerdict rows))
  where
    verdict verdicts
      | Unsound `elem` verdicts = ExitFailure exitInvalid
      | Differs `elem` verdicts = ExitFailure exitGateMissed
      | otherwise = ExitSuccess

-- One test, by both, as often as wanted. Each begins with what the other left:
-- the same keys, which a short run of ours has written before.
compared :: Progress -> DifferentialOptions -> Target -> Client -> String -> IO (Row, [Found], [Found])
compared progress options target client test = do
  forget
  void (ours target options test 0.5)
  found <- forM [1 .. differentialIterations options] $ \iteration -> do
    announce progress (test <> ": " <> show iteration <> " of " <> show (differentialIterations options))
    shrink
    (run, busy) <- watched client (ours target options test (differentialDuration options))
    shrink
    before <- serverMisses target
    (outcome, busyTheirs) <- watched client (runRedisBenchmark Nothing (differentialDuration options) (theirs target options test))
    missed <- subtract before <$> serverMisses target
    other <- either unavailable pure outcome
    pure
      ( Found {foundRate = runRate run, foundBusy = busy, foundProblems = runProblems run},
        Found
          { foundRate = referenceOpsPerSecond other,
            foundBusy = busyTheirs,
            foundProblems = ["redis-benchmark asked for keys that are not there" | test == "get", missed * 100 > referenceCommands other]
          }
      )
  pure (rowOf test (map fst found) (map snd found), map fst found, map snd found)
  where
    forget = void (Redis.run client (Commands.raw ["FLUSHALL", "SYNC"]))
    -- A list grows by every command: both begin with none.
    shrink = when (test `elem` ["lpush", "rpush"]) forget

ours :: Target -> DifferentialOptions -> String -> Double -> IO Run
ours target options test seconds =
  runItself
    [1]
    ( targetArguments target
        <> ["--test", test, "-n", show (differentialClients options), "--batch", show (differentialPipeline options)]
        <> ["--mux-count", show (differentialClients options)]
        <> ["--keys", show (differentialKeys options), "-d", show (differentialValueSize options)]
        <> ["--duration", fixed 3 seconds, "--warmup", "0.3"]
        -- Both are on one core; the row says whether the server was at its end.
        <> ["--allow", "saturation", "--brief", "--no-sampling", "--slice", "3600"]
    )
    ["-N1"]

theirs :: Target -> DifferentialOptions -> String -> RedisBenchmark
theirs target options test =
  RedisBenchmark
    { redisBenchmarkHost = Char8.unpack (targetHost target),
      redisBenchmarkPort = fromIntegral (targetPort target),
      redisBenchmarkCluster = False,
      redisBenchmarkTls = Nothing,
      redisBenchmarkTest = test,
      redisBenchmarkClients = differentialClients options,
      redisBenchmarkPipeline = differentialPipeline options,
      redisBenchmarkKeys = differentialKeys options,
      redisBenchmarkValueSize = differentialValueSize options,
      redisBenchmarkPrefix = ["taskset", "-c", "1"]
    }

-- Which part of a core the server used while something ran.
watched :: Client -> IO a -> IO (a, Double)
watched client action = do
  seen <- newIORef []
  begin <- look
  outcome <- race (watch seen begin) action
  shares <- readIORef seen
  case outcome of
    Left () -> unavailable "the server was not watched to the end"
    Right result -> pure (result, underLoad shares)
  where
    watch seen (cpu, time) = do
      threadDelay 200000
      now@(cpuNow, timeNow) <- look
      modifyIORef' seen (fromIntegral (cpuNow - cpu) / fromIntegral (max 1 (timeNow - time)) :)
      watch seen now
    look :: IO (Nanos, Nanos)
    look = (,) <$> nodeCpu client <*> monotonic

-- | The table as lines.
differentialReport :: String -> DifferentialOptions -> [Row] -> [String]
differentialReport server options rows =
  [ server <> " on core 0, each generator on core 1; " <> counted "client" (differentialClients options) <> " with " <> show (differentialPipeline options)
      <> " commands on their way, "
      <> show (differentialKeys options)
      <> " keys, values of "
      <> show (differentialValueSize options)
      <> " bytes;",
    "medians of " <> show (differentialIterations options) <> " runs of " <> fixed 1 (differentialDuration options)
      <> " s by either, in turns. The rates must agree within "
      <> fixed 0 (100 * tolerance)
      <> " % where the server uses "
      <> fixed 0 (100 * busyEnough)
      <> " % of its core or more",
    ""
  ]
    <> table [AlignLeft, AlignRight, AlignRight, AlignRight, AlignRight, AlignRight, AlignRight, AlignLeft] (heading : map rowLine rows)
    <> [Text.unpack (Text.pack (rowTest row) <> ": INVALID: " <> problem) | row <- rows, problem <- rowProblems row]
    <> [rowTest row <> ": DIFFERS by " <> fixed 0 (100 * abs (rowRatio row - 1)) <> " %" | row <- rows, rowVerdict row == Differs]
  where
    counted what count = show count <> " " <> what <> (if count == 1 then "" else "s")

differentialObject :: String -> DifferentialOptions -> [(Row, [Found], [Found])] -> Value
differentialObject server options found =
  object
    [ "server" .= server,
      "clients" .= differentialClients options,
      "pipeline" .= differentialPipeline options,
      "keys" .= differentialKeys options,
      "value_size" .= differentialValueSize options,
      "duration_sec" .= differentialDuration options,
      "iterations" .= differentialIterations options,
      "tolerance" .= tolerance,
      "server_busy_at_least" .= busyEnough,
      "rows" .= [rowObject row mine other | (row, mine, other) <- found]
    ]
  where
    rowObject row mine other =
      object
        [ "test" .= rowTest row,
          "ratio" .= rowRatio row,
          "spread" .= rowSpread row,
          "verdict" .= verdictText (rowVerdict row),
          "ours" .= side fst row mine,
          "redis_benchmark" .= side snd row other
        ]
    side pick row runs =
      object
        [ "ops_per_sec" .= pick (rowRates row),
          "server_busy" .= pick (rowBusy row),
          "runs" .= [object ["ops_per_sec" .= foundRate one, "server_busy" .= foundBusy one, "problems" .= (foundProblems one :: [Text])] | one <- runs]
        ]
