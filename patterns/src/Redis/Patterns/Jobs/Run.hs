-- | Running the jobs of a queue.
module Redis.Patterns.Jobs.Run
  ( runJobs,
    jobWorker,
    Running (..),
    reportProgress,
    priorityWord,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (withAsync)
import Control.Exception (SomeException, evaluate, try)
import Control.Monad (forever)
import Data.ByteString (ByteString)
import Data.Foldable (traverse_)
import Data.Int (Int64)
import Redis
import Redis.Commands (StreamId (..))
import Redis.Decode qualified as Decode
import Redis.Duration (inMicroseconds, inMilliseconds)
import Redis.Patterns.Internal.Time (named)
import Redis.Patterns.Internal.Token (number)
import Redis.Patterns.Jobs.Queue
import Redis.Patterns.Worker.Engine
import Redis.Patterns.Worker.Settings
import Redis.Script

-- | A job that is running.
data Running = Running
  { runningId :: JobId,
    runningPayload :: ByteString,
    -- | The number of this try, from 1 on.
    runningAttempt :: Int64,
    -- | The number of tries in total.
    runningTries :: Int64,
    runningQueue :: Queue,
    runningClient :: Client,
    -- | The id of its entry, which is another one in each try that follows a failure.
    runningEntry :: ByteString
  }

-- | A worker for a queue, with the default settings: change its fields as you like, and pass it to
-- 'runJobs'. With fewer 'workerStreams' it takes only jobs of those priorities. Each job itself has
-- its number of tries and what happens after the last one, so 'workerMaxAttempts', 'workerDeadLetters'
-- and 'workerDelete' are ignored. 'workerBackoff' is how long a job rests after it failed, and
-- 'workerPollInterval' how late a delayed job may become ready.
jobWorker :: Queue -> Worker
jobWorker queue = (worker "" jobGroup) {workerStreams = readyStreams queue}

-- | Runs the jobs of a queue until 'workerUntil' succeeds, like 'Redis.Patterns.Worker.runWorker'.
-- The handler's result is kept as the job's result. If the handler throws, the job is tried again
-- after a rest, or has failed for good.
--
-- Each worker also moves delayed and scheduled jobs that are due into the queue, for all workers.
runJobs :: Client -> Queue -> Worker -> (Running -> IO ByteString) -> IO ()
runJobs client queue settings handler =
  withAsync (named "redis promote" >> promoting client queue settings) . const $
    runEngine client settings {workerMaxAttempts = maxBound} Handling {handlingRun}
  where
    handlingRun :: (forall a. IO a -> IO (Either SomeException a)) -> Entry -> IO Settled
    handlingRun tryUnlessLeaving entry = case turnOf queue entry of
      Nothing -> pure Acknowledged
      Just turn ->
        -- A server that cannot be reached does not cost the job a try.
        untilAnswered report (begin client queue turn) >>= \case
          NotToRun -> pure (SettledBy (pure ()))
          FailedForGood why -> SettledBy (pure ()) <$ report (DeadLettered (entryStream entry) (entryId entry) why)
          Begun running ->
            tryUnlessLeaving (handler running >>= evaluate) >>= \case
              Right result -> pure (SettledBy (settle doneScript turn [result] Decode.ignored))
              Left failed -> pure . SettledBy $ do
                let pause = retryDelay (workerBackoff settings) (runningAttempt running)
                why <- reason failed
                goesOn <- settle failedScript turn [number (runningAttempt running), number (inMilliseconds pause), why, number (turnDeliveries turn)] Decode.boolean
                report (HandlerFailed entry {entryDeliveries = runningAttempt running} failed (if goesOn then Just pause else Nothing))
    report = tellOf settings
    -- If two workers settle the same job, the second one has no effect.
    settle :: Script -> Turn -> [ByteString] -> Decode.Decoder a -> IO a
    settle text turn others decoder = run client (idempotent (callScriptWith queue text [jobKey queue (turnJob turn)] (turnWords turn <> others)) `decodedBy` decoder)

-- | An entry of a queue's stream.
data Turn = Turn
  { turnJob :: JobId,
    turnEntry :: ByteString,
    turnPriority :: Priority,
    turnDeliveries :: Int64
  }

-- | 'Nothing' if the entry does not belong to a queue.
turnOf :: Queue -> Entry -> Maybe Turn
turnOf queue Entry {entryStream, entryId = StreamId time count, entryFields, entryDeliveries} = do
  turnPriority <- priorityOf queue entryStream
  name <- lookup "job" entryFields
  pure Turn {turnJob = JobId name, turnEntry = number time <> "-" <> number count, turnPriority, turnDeliveries = entryDeliveries}

turnWords :: Turn -> [ByteString]
turnWords Turn {turnJob, turnEntry, turnPriority} =
  [jobIdBytes turnJob, turnEntry, priorityWord turnPriority, jobGroup]

-- | The number of the priority's stream; they are numbered from 1.
priorityWord :: Priority -> ByteString
priorityWord = number . (+ 1) . fromEnum

-- | What a worker should do with a job.
data Beginning
  = NotToRun
  | -- | Its workers died with it in all of its tries.
    FailedForGood ByteString
  | Begun Running

-- | Begins the job, if it should run.
begin :: Client -> Queue -> Turn -> IO Beginning
begin client queue turn = run client (idempotent (callScriptWith queue beginScript [jobKey queue (turnJob turn)] (turnWords turn <> [number (turnDeliveries turn)])) `decodedBy` beginning)
  where
    beginning reply =
      Decode.nullable (Decode.list Decode.value) reply >>= \case
        Nothing -> Right NotToRun
        Just [why] -> FailedForGood <$> Decode.bytes why
        Just _ -> Begun <$> running reply
    running reply = do
      (runningPayload, runningAttempt, runningTries) <- Decode.triple Decode.bytes Decode.integer Decode.integer reply
      pure Running {runningId = turnJob turn, runningPayload, runningAttempt, runningTries, runningQueue = queue, runningClient = client, runningEntry = turnEntry turn}

-- | Reports the progress of a job, from 0 to 1, with a note. Smaller and greater numbers count as 0
-- and 1, and NaN as 0. 'False' if the job was cancelled, or does not run any more because another
-- worker took it over and settled it: the handler may then end with an exception. One round trip.
reportProgress :: Running -> Double -> ByteString -> IO Bool
reportProgress Running {runningId, runningQueue, runningClient, runningEntry} progress note =
  run runningClient (idempotent (callScriptWith runningQueue progressScript [jobKey runningQueue runningId] [number amount, note, runningEntry]) `decodedBy` Decode.boolean)
  where
    -- 'jobInfo' could not read the words that Haskell has for what is no number.
    amount = if isNaN progress then 0 else max 0 (min 1 progress)

-- | Moves jobs that are due into the queue. Returns in how many milliseconds the next one is due.
-- It first asks the server which they are, since a script must name the keys of the jobs that it
-- changes.
promote :: Client -> Queue -> IO (Maybe Int64)
promote client queue = do
  (jobs, ticks, wait) <- run client (idempotent (callScript queue dueScript [number most]) `decodedBy` due)
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
    changing text keys others = idempotent (callScriptWith queue text keys others) `decodedBy` Decode.ignored

-- | Moves jobs that are due into the queue, again and again.
promoting :: Client -> Queue -> Worker -> IO ()
promoting client queue settings = forever $ do
  wait <-
    try (promote client queue) >>= \case
      Right wait -> pure wait
      Left failed -> Nothing <$ tellOf settings (WorkerTrouble failed)
  let longest = max 1000 (inMicroseconds (workerPollInterval settings))
  threadDelay (fromIntegral (maybe longest (min longest . max 1000 . (* 1000)) wait))
