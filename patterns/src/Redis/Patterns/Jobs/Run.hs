-- | Running a queue's jobs.
module Redis.Patterns.Jobs.Run
  ( runJobs,
    jobWorker,
    Running (..),
    reportProgress,
    promote,
    priorityWord,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (withAsync)
import Control.Exception (SomeException, try)
import Control.Monad (forever, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (traverse_)
import Data.Int (Int64)
import Redis
import Redis.Commands (StreamId (..))
import Redis.Decode qualified as Decode
import Redis.Duration (inMicroseconds, inMilliseconds)
import Redis.Patterns.Jobs.Queue
import Redis.Patterns.Jobs.Scripts
import Redis.Patterns.Worker.Engine
import Redis.Patterns.Worker.Settings
import Redis.Script

-- | A job that runs.
--
-- @since 0.1.0.0
data Running = Running
  { runningId :: JobId,
    runningPayload :: ByteString,
    -- | Which try it is, from 1 on.
    runningAttempt :: Int64,
    -- | How many there are.
    runningTries :: Int64,
    runningQueue :: Queue,
    runningClient :: Client
  }

-- | A worker for a queue: change its fields as you like, and give it to 'runJobs'. With fewer
-- 'workerStreams' it takes jobs of these priorities alone. Of how often something is tried, and
-- of what becomes of it then, jobs know themselves: 'workerTries', 'workerDeadLetters' and
-- 'workerDelete' are not heeded. 'workerBackoff' is how long a job rests after it failed, and
-- 'workerLook' how late a delayed job may become ready.
--
-- @since 0.1.0.0
jobWorker :: Queue -> Worker
jobWorker queue = (worker "" jobGroup) {workerStreams = readyStreams queue}

-- | Runs jobs of a queue: until 'workerUntil', and otherwise as
-- 'Redis.Patterns.Worker.runWorker'. What the handler returns is kept as the job's result.
-- One that throws is tried again after a rest, or has failed for good.
--
-- Each worker also readies what is due, for all.
--
-- @since 0.1.0.0
runJobs :: Client -> Queue -> Worker -> (Running -> IO ByteString) -> IO ()
runJobs client queue settings handler =
  withAsync (named "redis promote" >> promoting client queue settings) . const $
    runEngine client settings {workerTries = maxBound} Handling {handlingRun}
  where
    handlingRun :: (forall a. IO a -> IO (Either SomeException a)) -> Entry -> IO Settled
    handlingRun tryUnlessLeaving entry = case turnOf queue entry of
      Nothing -> pure Acknowledged
      Just turn ->
        -- An outage is no try of the job's.
        untilAnswered report (begin client queue turn) >>= \case
          Nothing -> pure (SettledBy (pure ()))
          Just running ->
            tryUnlessLeaving (handler running) >>= \case
              Right result -> pure (SettledBy (settle doneScript turn [result]))
              Left failed -> do
                let pause = retryDelay (workerBackoff settings) (runningAttempt running)
                report (HandlerFailed entry failed pause)
                pure (SettledBy (settle failedScript turn [number (runningAttempt running), number (inMilliseconds pause), reason failed]))
    report event = void (try @SomeException (workerReport settings event))
    -- Of two that settle it the second does nothing.
    settle :: Script -> Turn -> [ByteString] -> IO ()
    settle text turn others = run client (repeatable (callScriptWith queue text [jobKey queue (turnJob turn)] (turnWords turn <> others)) `decodedBy` Decode.ignored)

-- | An entry of a queue's stream.
data Turn = Turn
  { turnJob :: JobId,
    turnEntry :: StreamId,
    turnPriority :: Priority,
    turnDeliveries :: Int64
  }

-- | 'Nothing' for what is no entry of a queue's.
turnOf :: Queue -> Entry -> Maybe Turn
turnOf queue Entry {entryStream, entryId, entryFields, entryDeliveries} = do
  turnPriority <- priorityOf queue entryStream
  name <- lookup "job" entryFields
  pure Turn {turnJob = JobId name, turnEntry = entryId, turnPriority, turnDeliveries = entryDeliveries}

turnWords :: Turn -> [ByteString]
turnWords Turn {turnJob, turnEntry = StreamId time count, turnPriority} =
  [jobIdBytes turnJob, Char8.pack (show time <> "-" <> show count), priorityWord turnPriority, jobGroup]

-- | Streams are counted from 1 on.
priorityWord :: Priority -> ByteString
priorityWord = number . (+ 1) . fromEnum

number :: Show number => number -> ByteString
number = Char8.pack . show

-- | The job, unless it is not to run.
begin :: Client -> Queue -> Turn -> IO (Maybe Running)
begin client queue turn = run client (repeatable (callScriptWith queue beginScript [jobKey queue (turnJob turn)] (turnWords turn <> [number (turnDeliveries turn)])) `decodedBy` Decode.nullable running)
  where
    running reply = do
      (runningPayload, runningAttempt, runningTries) <- Decode.triple Decode.bytes Decode.integer Decode.integer reply
      pure Running {runningId = turnJob turn, runningPayload, runningAttempt, runningTries, runningQueue = queue, runningClient = client}

-- | Says how far a job is, from 0 to 1, and what it is at. 'False' if it was cancelled meanwhile,
-- or others have taken it for left: then it may as well end, by an exception. One round trip.
--
-- @since 0.1.0.0
reportProgress :: Running -> Double -> ByteString -> IO Bool
reportProgress Running {runningId, runningQueue, runningClient} progress note =
  run runningClient (repeatable (callScriptWith runningQueue progressScript [jobKey runningQueue runningId] [number progress, note]) `decodedBy` Decode.boolean)

-- | Readies what is due; for how many milliseconds nothing more is. First it asks what that is,
-- since a script must name the keys of the jobs that it changes.
promote :: Client -> Queue -> IO (Maybe Int64)
promote client queue = do
  (jobs, ticks, wait) <- run client (repeatable (callScript queue dueScript [number most]) `decodedBy` due)
  runPipeline client (traverse_ (pipelined . ready) jobs *> traverse_ (pipelined . tick) ticks)
  if length jobs >= most || length ticks >= most
    then promote client queue
    else pure (if wait < 0 then Nothing else Just wait)
  where
    most = 100 :: Int
    due = Decode.triple (Decode.list Decode.bytes) (Decode.pairs Decode.bytes Decode.bytes) Decode.integer
    ready name = changing readyScript [jobKey queue (JobId name)] [name]
    tick (name, time) =
      let made = name <> "@" <> time
       in changing tickScript [jobKey queue (JobId made), scheduleKey queue name] [name, time, made]
    changing text keys others = repeatable (callScriptWith queue text keys others) `decodedBy` Decode.ignored

-- | Readies what is due, again and again.
promoting :: Client -> Queue -> Worker -> IO ()
promoting client queue settings = forever $ do
  wait <-
    try (promote client queue) >>= \case
      Right wait -> pure wait
      Left failed -> Nothing <$ try @SomeException (workerReport settings (WorkerTrouble failed))
  let longest = max 1000 (inMicroseconds (workerLook settings))
  threadDelay (fromIntegral (maybe longest (min longest . max 1000 . (* 1000)) wait))
