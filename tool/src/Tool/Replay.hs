-- | @bench replay@: sends the commands of a recording again, at their recorded times or several
-- times as fast. One thread submits, whatever has happened to the earlier commands, on one
-- connection per node, so each server runs its commands in their order; others wait for the
-- replies. Nothing is preloaded, and a read that finds nothing is no error.
module Tool.Replay
  ( replay,
  )
where

import Control.Concurrent.Async (forConcurrently_, withAsync)
import Control.Concurrent.STM (TQueue, atomically, newTQueueIO, readTQueue, writeTQueue)
import Control.Exception (try)
import Control.Monad (forM_, guard, void, when)
import Data.ByteString qualified as ByteString
import Data.Either (lefts, rights)
import Data.Foldable (for_)
import Data.IORef (IORef, atomicModifyIORef', newIORef, readIORef)
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Primitive.ByteArray (MutableByteArray, newByteArray, readByteArray, setByteArray, writeByteArray)
import Data.Text (Text)
import Data.Text qualified as Text
import GHC.Conc (getNumCapabilities)
import GHC.Exts (RealWorld)
import Redis (Client, Pending, Value)
import Redis qualified
import Redis.Commands qualified as Commands
import Redis.Error (Error)
import System.Exit (ExitCode)
import System.FilePath (takeFileName)
import Tool.Bench.Counters (errorClass)
import Tool.Bench.Document
import Tool.Bench.Document.Totals (judged)
import Tool.Bench.Environment (manifest, memory, wallClock)
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Outage (outageNotes, unlessAway, withObserved)
import Tool.Bench.Reconcile (countsBefore, reconcile)
import Tool.Bench.Report (report)
import Tool.Bench.Reports (conclude)
import Tool.Bench.Sink (withOutputs)
import Tool.Bench.Time (Nanos, monotonic, ownCpu, sleepUntilExactly)
import Tool.Connect
import Tool.Failure (invalidRun)
import Tool.Monitor
import Tool.Options.Modes
import Tool.Span (renderSpan, secondsIn)
import Tool.Text (fixed, shown, thousands, utf8)

-- | Replays a file. Blocks as long as that takes. The exit code is a failure if commands failed.
replay :: ReplayOptions -> IO ExitCode
replay options = withOutputs (replayOutputs options) $ \write -> do
  bytes <- ByteString.readFile (replayFile options)
  recording <- either (invalidRun . unreadable) pure (parseRecording bytes)
  when (null (recordingCommands recording)) $
    invalidRun (replayFile options <> ": nothing in it can be replayed")
  about <- manifest
  run <- judged <$> played options recording
  conclude (replayOutputs options) write (map Text.unpack (runNotes run) <> [""] <> report [run]) $
    documentOf about [run]
  where
    unreadable (number, LineProblem at expected) =
      concat [replayFile options, ":", show number, ":", show (at + 1), ": ", expected, " is expected here"]

-- Three numbers for each command: its intended time, the time at which it was sent, and the time of
-- its reply or its error; and the errors of the commands that failed.
data Rows = Rows
  { rowsTimes :: MutableByteArray RealWorld,
    rowsFailed :: IORef (IntMap Text),
    -- For each thread that waits, how many replies it has.
    rowsReplies :: MutableByteArray RealWorld
  }

-- The largest number of threads that wait for replies.
maxWaiters :: Int
maxWaiters = 64

played :: ReplayOptions -> Recording -> IO Run
played options recording = do
  capabilities <- getNumCapabilities
  (server, nodes) <- serverVersion target
  before <- countsBefore target
  rows <-
    Rows
      <$> newByteArray (count * 3 * 8)
      <*> newIORef IntMap.empty
      <*> (newByteArray (waiting * 8) >>= \replies -> replies <$ setByteArray replies 0 waiting (0 :: Int))
  queues <- traverse (const newTQueueIO) [1 .. waiting]
  (started, begun, ended, cpu, away) <-
    withObserved Tuning {tuningMuxCount = Just 1, tuningPolling = True} target $ \outages client -> do
      -- Opens the connections before the first command is due, which would wait for them.
      void (Redis.tryRun client (Redis.onEvery Redis.Primaries Commands.ping))
      started <- wallClock
      cpuBefore <- ownCpu
      -- Some time for the threads to start.
      begun <- (+ 1000000) <$> monotonic
      withAsync (forConcurrently_ (zip [0 ..] queues) (collect rows)) $ \collecting -> do
        let lanes = IntMap.fromList (zip [0 ..] queues)
        submitAll client (dueFrom begun (replayPace options)) lanes rows commands
        unlessAway outages (sum <$> traverse (readByteArray (rowsReplies rows)) [0 .. waiting - 1]) collecting
      ended <- monotonic
      cpuAfter <- ownCpu
      (,,,,) started begun ended (cpuAfter - cpuBefore) <$> outageNotes outages
  used <- memory
  failures <- readIORef (rowsFailed rows)
  finished <- traverse (rowOf rows failures) (zip [0 ..] commands)
  let seconds = secondsIn (ended - begun)
      errors = Map.fromListWith (+) [(problem, 1) | Finished _ _ (Left problem) <- finished]
      answered = counted 1 [(name, 1) | Finished name _ (Right _) <- finished, name /= "ping"]
      late = [max 0 (response - service) | Finished _ _ (Right (service, response)) <- finished]
  agreement <-
    if any (scripted . recordedName) commands
      then pure (NotComparable "scripts run commands of their own")
      else reconcile target before (sum errors) answered
  pure
    Run
      { runName = "replay " <> Text.pack (takeFileName (replayFile options)),
        runSpec = specOf capabilities,
        runServer = plainServer (Text.pack server) nodes,
        runIterations =
          [ Iteration
              { iterationStarted = started,
                iterationSeconds = seconds,
                iterationCommon = Nothing,
                iterationCommands = statsOf paced finished,
                iterationErrors = errors,
                iterationSeries = seriesOf paced begun seconds finished,
                iterationNodes = Map.empty,
                iterationSamples = [],
                iterationEvents = [],
                iterationCpu = fromIntegral cpu,
                iterationGcCpu = Nothing,
                iterationMemory = used,
                iterationTrust = noTrust {trustSchedule = Histogram.fromValues late <$ guard paced},
                iterationAgreement = agreement
              }
          ],
        runProblems = [],
        runNotes = notes seconds <> away,
        runReference = Nothing
      }
  where
    target = targetOf (replayConnection options)
    commands = recordingCommands recording
    count = length commands
    waiting = max 1 (min maxWaiters (recordingClients recording))
    paced = replayPace options /= PaceUnpaced
    scripted name = any (`ByteString.isPrefixOf` name) ["eval", "fcall"]
    rate = case replayPace options of
      PaceTimes times
        | recordingSpan recording > 0 ->
          times * fromIntegral count / recordingSpan recording
      _ -> 0
    notes seconds =
      [ Text.pack $
          thousands count
            <> " commands of "
            <> show (recordingClients recording)
            <> " clients, recorded in "
            <> renderSpan (recordingSpan recording)
            <> ", sent in "
            <> renderSpan seconds
            <> case replayPace options of
              PaceTimes 1 -> " at the recorded times"
              PaceTimes times -> " at the recorded times, " <> fixed 2 times <> " times as fast"
              PaceUnpaced -> " as fast as replies allowed"
      ]
        <> [ Text.pack (thousands left <> " left out: " <> obstacleText reason)
             | (reason, left) <- Map.toList (recordingLeftOut recording)
           ]
    specOf capabilities =
      (targetSpec target capabilities "replay")
        { specWorkload =
            Text.intercalate "," $
              [utf8 name <> ":" <> shown held | (name, held) <- Map.toList (recordingNames recording)],
          specLoop = if rate > 0 then OpenConstant rate else Closed,
          specRequests = Just count
        }

-- The queue of a thread that waits: the row of a command, and its pending reply.
type Lane = TQueue (Maybe (Int, Pending Value))

-- Waits until a command is due. Returns the time at which it was due.
dueFrom :: Nanos -> Pace -> Recorded -> IO Nanos
dueFrom begun pace one = case pace of
  PaceTimes times -> do
    let moment = begun + round (fromIntegral (recordedAt one) * 1000 / times)
    moment <$ sleepUntilExactly moment
  PaceUnpaced -> monotonic

submitAll :: Client -> (Recorded -> IO Nanos) -> IntMap Lane -> Rows -> [Recorded] -> IO ()
submitAll client due queues rows commands = do
  forM_ (zip [0 ..] commands) $ \(row, one) -> do
    intended <- due one
    writeByteArray (rowsTimes rows) (3 * row) intended
    monotonic >>= writeByteArray (rowsTimes rows) (3 * row + 1)
    submitted <- try (Redis.submit client (Commands.raw (recordedWords one)))
    case submitted of
      Right pending -> for_ (laneOf one) $ \lane ->
        atomically (writeTQueue lane (Just (row, pending)))
      Left problem -> failedRow rows row problem
  forM_ queues $ \lane -> atomically (writeTQueue lane Nothing)
  where
    laneOf one = IntMap.lookup (recordedClient one `mod` max 1 (IntMap.size queues)) queues

collect :: Rows -> (Int, Lane) -> IO ()
collect rows (number, lane) =
  atomically (readTQueue lane) >>= \case
    Nothing -> pure ()
    Just (row, pending) -> do
      outcome <- Redis.tryAwaitReply pending
      case outcome of
        Right _ -> do
          monotonic >>= writeByteArray (rowsTimes rows) (3 * row + 2)
          before <- readByteArray (rowsReplies rows) number
          writeByteArray (rowsReplies rows) number (before + 1 :: Int)
        Left problem -> failedRow rows row problem
      collect rows (number, lane)

failedRow :: Rows -> Int -> Error -> IO ()
failedRow rows row problem = do
  monotonic >>= writeByteArray (rowsTimes rows) (3 * row + 2)
  atomicModifyIORef' (rowsFailed rows) $ \held ->
    (IntMap.insert row (Text.pack (errorClass problem)) held, ())

-- A command, when it ended, and its error, or the nanoseconds from when it was sent and from when it
-- was due.
data Finished = Finished Text Nanos (Either Text (Int, Int))

rowOf :: Rows -> IntMap Text -> (Int, Recorded) -> IO Finished
rowOf rows failures (row, one) = do
  intended <- at 0
  sent <- at 1
  done <- at 2
  pure . Finished (utf8 (recordedName one)) done $
    maybe (Right (done - sent, done - intended)) Left (IntMap.lookup row failures)
  where
    at :: Int -> IO Nanos
    at number = readByteArray (rowsTimes rows) (3 * row + number)

-- The two distributions of latency. The flag says whether commands had intended times.
latencies :: Bool -> [Either Text (Int, Int)] -> (Histogram, Maybe Histogram)
latencies paced outcomes =
  (Histogram.fromValues (map fst times), Histogram.fromValues (map snd times) <$ guard paced)
  where
    times = rights outcomes

statsOf :: Bool -> [Finished] -> Map Text CommandStats
statsOf paced finished =
  Map.map stats (Map.fromListWith (<>) [(name, [outcome]) | Finished name _ outcome <- finished])
  where
    stats outcomes =
      let (service, response) = latencies paced outcomes
       in CommandStats
            { commandHits = 0,
              commandMisses = 0,
              commandErrors = Map.fromListWith (+) [(problem, 1) | problem <- lefts outcomes],
              commandService = service,
              commandResponse = response
            }

-- A slice per second, by the times of the replies and errors.
seriesOf :: Bool -> Nanos -> Double -> [Finished] -> [Slice]
seriesOf paced begun seconds finished =
  [ Slice
      { sliceAt = fromIntegral second,
        sliceSpan = min 1 (seconds - fromIntegral second),
        sliceCommands = Map.map slice (IntMap.findWithDefault Map.empty second bySecond)
      }
    | second <- [0 .. max 0 (ceiling seconds - 1)]
  ]
  where
    bySecond =
      IntMap.fromListWith
        (Map.unionWith (<>))
        [ (max 0 ((done - begun) `div` 1000000000), Map.singleton name [outcome])
          | Finished name done outcome <- finished
        ]
    slice outcomes =
      let (service, response) = latencies paced outcomes
       in SliceStats service response (length (lefts outcomes))
