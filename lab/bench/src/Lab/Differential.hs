-- | @differential@: the same tests by this program and by
-- @redis-benchmark@, in turns, against one server on a core of its own.
--
-- Both have the same number of connections, the same number of commands on their way, the same keys
-- and the same bytes. While either of them runs, the server is asked ten times a second how much of
-- its core it uses, and how often it has run the command ('underLoad', "Lab.Differential.Served").
module Lab.Differential
  ( differential,
    differentialReport,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (race)
import Control.Monad (forM, forM_, void, when)
import Data.Aeson (Value, object, (.=))
import Data.IORef (modifyIORef', newIORef, readIORef)
import Data.Map.Strict qualified as Map
import Data.Maybe (isNothing, listToMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Lab.Differential.Served
import Lab.Differential.Table
import Lab.Options.Differential (DifferentialOptions (..))
import Redis (Client)
import Redis qualified
import Redis.Commands qualified as Commands
import Redis.TestKit.Process (onCores)
import System.Directory (findExecutable)
import System.Exit (ExitCode (..))
import Tool.Bench.Document
import Tool.Bench.Document.Json (documentObject)
import Tool.Bench.Document.Totals (runRate)
import Tool.Bench.Environment (manifest, wallClock)
import Tool.Bench.Itself (runItself, targetArguments)
import Tool.Bench.Private (withPrivate)
import Tool.Bench.Progress (Progress, announce)
import Tool.Bench.RedisBenchmark (RedisBenchmark (..), ReferenceLoad (..), runRedisBenchmark)
import Tool.Connect (Target, countsByName, nodeCalls, nodeCpu, primaries, quiet, serverMisses, serverVersion, targetPlace, withTarget)
import Tool.Failure (exitGateMissed, exitInvalid, unavailable)
import Tool.Span (nanosIn, perSecond)
import Tool.Text (Align (..), fixed, table)

-- | Measures, prints the table, writes the document. The exit code says whether all rows that can
-- be judged agree. Blocks for some minutes.
differential :: DifferentialOptions -> Progress -> (Value -> IO ()) -> IO ExitCode
differential options progress write = do
  forM_ ["taskset", "redis-benchmark"] $ \program -> do
    found <- findExecutable program
    when (isNothing found) $ unavailable ("the comparison needs " <> program)
  about <- manifest
  (server, found) <- withPrivate TargetStandalone False [0] $ \target -> do
    (server, _) <- serverVersion target
    withTarget quiet target $ \client ->
      (,) server <$> forM (differentialTests options) (compared progress options target client)
  let rows = [row | (row, _, _) <- found]
  mapM_ putStrLn (differentialReport server options rows)
  write $
    documentObject
      ["differential" .= differentialObject server options found]
      (documentOf about [])
  pure (verdict (map rowVerdict rows))
  where
    verdict verdicts
      | Unsound `elem` verdicts = ExitFailure exitInvalid
      | any failed verdicts = ExitFailure exitGateMissed
      | otherwise = ExitSuccess
    failed = \case
      Differs -> True
      Miscounts _ -> True
      _ -> False

-- One test by both generators, in all iterations. Each run begins with what the other left: the
-- same keys, which a short run of ours has written before.
compared :: Progress -> DifferentialOptions -> Target -> Client -> String -> IO (Row, [Found], [Found])
compared progress options target client test = do
  forget
  void (ours target options test 0.5)
  found <- forM [1 .. differentialIterations options] $ \iteration -> do
    announce progress (test <> ": " <> show iteration <> " of " <> show (differentialIterations options))
    shrink
    (run, watch) <- watched client test (ours target options test (differentialDuration options))
    shrink
    before <- serverMisses target
    (outcome, watchTheirs) <- watched client test (runRedisBenchmark Nothing (differentialDuration options) (theirs target options test))
    missed <- subtract before <$> serverMisses target
    other <- either unavailable pure outcome
    pure
      ( Found {foundRate = runRate run, foundBusy = underLoad (watchShares watch), foundServed = servedOurs (watchLooks watch) run, foundProblems = runProblems run},
        Found
          { foundRate = referenceOpsPerSecond other,
            foundBusy = underLoad (watchShares watchTheirs),
            foundServed = servedTheirs (watchLooks watchTheirs) other,
            foundProblems = ["redis-benchmark asked for keys that are not there" | test == "get", missed * 100 > referenceCommands other]
          }
      )
  pure (rowOf (differentialJudged options) test (map fst found) (map snd found), map fst found, map snd found)
  where
    -- Commands on their way when the window began or ended may count or not.
    onTheirWay = differentialClients options * differentialPipeline options
    servedOurs looks run = case runIterations run of
      [one] | iterationSeconds one > 0 -> do
        let from = iterationStarted one
            to = from + nanosIn (iterationSeconds one)
            rate count = fromIntegral count / iterationSeconds one
        (least, most) <- inWindow (from, to) looks
        pure (rate (max 0 (least - onTheirWay)), rate (most + onTheirWay))
      _ -> Nothing
    -- It counts the commands that it sends, and prints the time they took: from before the server
    -- ran the first of them until it had read the last reply.
    servedTheirs looks other = do
      (least, most) <- ofLast (referenceCommands other) looks
      let rate = perSecond (fromIntegral (referenceCommands other))
      pure (rate (most + readLate), rate least)
    readLate = 250000000
    forget = void (Redis.run client (Commands.raw ["FLUSHALL", "SYNC"]))
    -- A list grows with every command, so each generator begins with an empty one.
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
        -- All threads are on one core; the row shows whether the server was at its limit. On a busy
        -- machine, threads are also kept from running.
        <> ["--allow", if differentialJudged options == ByTheServer then "saturation,little" else "saturation"]
        <> ["--brief", "--no-sampling", "--slice", "3600"]
    )
    ["-N1"]

theirs :: Target -> DifferentialOptions -> String -> RedisBenchmark
theirs target options test =
  RedisBenchmark
    { redisBenchmarkHost = fst (targetPlace target),
      redisBenchmarkPort = snd (targetPlace target),
      redisBenchmarkCluster = False,
      redisBenchmarkTls = Nothing,
      redisBenchmarkLoad = ReferenceTest test,
      redisBenchmarkClients = differentialClients options,
      redisBenchmarkPipeline = differentialPipeline options,
      redisBenchmarkKeys = differentialKeys options,
      redisBenchmarkValueSize = differentialValueSize options,
      redisBenchmarkPrefix = onCores [1]
    }

-- What the server said about itself while a generator ran.
data Watch = Watch
  { -- | The share of its core that it used between one question and the next.
    watchShares :: [Double],
    -- | In order of time.
    watchLooks :: [Look]
  }

watched :: Client -> String -> IO a -> IO (a, Watch)
watched client test action = do
  node <- primaries client >>= maybe (unavailable "there is no server") pure . listToMaybe
  seen <- newIORef []
  look node seen
  outcome <- race (watch node seen) action
  look node seen
  found <- reverse <$> readIORef seen
  case outcome of
    Left () -> unavailable "the server was not watched to the end"
    Right result -> pure (result, Watch {watchShares = zipWith share found (drop 1 found), watchLooks = map snd found})
  where
    watch node seen = do
      threadDelay 100000
      look node seen
      watch node seen
    look node seen = do
      asked <- wallClock
      used <- nodeCpu client
      calls <- Map.findWithDefault 0 command . countsByName <$> nodeCalls client node
      told <- wallClock
      modifyIORef' seen ((used, Look {lookAsked = asked, lookTold = told, lookCalls = calls}) :)
    share (used, one) (usedLater, other) = fromIntegral (usedLater - used) / fromIntegral (max 1 (lookAsked other - lookAsked one))
    -- The server counts ping_mbulk as PING.
    command = Text.pack (takeWhile (/= '_') test)

-- | The table in lines.
differentialReport :: String -> DifferentialOptions -> [Row] -> [String]
differentialReport server options rows =
  [ server <> " on core 0, each generator on core 1; " <> counted "client" (differentialClients options) <> " with " <> show (differentialPipeline options)
      <> " commands on their way, "
      <> show (differentialKeys options)
      <> " keys, values of "
      <> show (differentialValueSize options)
      <> " bytes;",
    "medians of " <> show (differentialIterations options) <> " runs of " <> fixed 1 (differentialDuration options)
      <> " s by either, in turns. "
      <> ( case differentialJudged options of
             ByEachOther ->
               "The rates must agree within " <> fixed 0 (100 * tolerance) <> " % where the server uses "
                 <> fixed 0 (100 * busyEnough)
                 <> " % of its core or more"
             ByTheServer -> "Each must be what the server counted"
         ),
    ""
  ]
    <> table [AlignLeft, AlignRight, AlignRight, AlignRight, AlignRight, AlignRight, AlignRight, AlignLeft] (heading : map rowLine rows)
    <> [Text.unpack (Text.pack (rowTest row) <> ": INVALID: " <> problem) | row <- rows, problem <- rowProblems row]
    <> [ Text.unpack (Text.pack (rowTest row) <> ": " <> Text.pack who <> " says what the server did not count")
         | row <- rows,
           Miscounts who <- [rowVerdict row]
       ]
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
          "runs" .= [object ["ops_per_sec" .= foundRate one, "server_busy" .= foundBusy one, "served_per_sec" .= foundServed one, "problems" .= (foundProblems one :: [Text])] | one <- runs]
        ]
