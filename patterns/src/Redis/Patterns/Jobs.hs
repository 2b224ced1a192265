-- | A queue of jobs that run at once, later, once for each unique key, or regularly; with
-- priorities, retries, progress and results. It is built on "Redis.Patterns.Worker".
--
-- > let mails = Queue "mails"
-- > enqueue client mails jobDefaults "to ada"
-- > enqueue client mails jobDefaults {jobDue = DueIn (hours 1), jobPriority = Later} "to grace"
-- >
-- > runJobs client mails (jobWorker mails) {workerConcurrency = 8} $ \job -> do
-- >   send (runningPayload job)
-- >   pure "sent"
--
-- __Guaranteed__: a job in the queue runs at least once to the end of its handler, or has failed
-- after all of its tries, or was cancelled. A delayed job never runs early. Of jobs with the same
-- unique key, there is only one within that key's time.
--
-- __Not guaranteed__: that a job runs only once (its worker may be killed when the job is almost
-- done); any order of their ends; that a delayed job runs on time: if a worker runs, the job is ready at
-- most 'workerPollInterval' late, and begins when a hand is free. If the server loses data, jobs are lost.
--
-- All keys of a queue begin with its name in braces, so they are on one node of a cluster. Each
-- change of a queue is one script, which uses the server's clock. Servers: since 6.2, and
-- 'jobsState' since 7.0.
module Redis.Patterns.Jobs
  ( Queue (..),

    -- * Adding jobs
    enqueue,
    Enqueued (..),
    JobId (..),
    JobOptions (..),
    jobDefaults,
    Due (..),
    Priority (..),
    Unique (..),

    -- * Recurring jobs
    schedule,
    unschedule,
    Schedule (..),

    -- * Running jobs
    runJobs,
    jobWorker,
    Running (..),
    reportProgress,
    Worker (..),
    WorkerEvent (..),
    renderWorkerEvent,

    -- * One job
    jobInfo,
    JobInfo (..),
    JobState (..),
    cancelJob,
    retryJob,
    failedJobs,

    -- * The dashboard
    jobsState,
    JobsState (..),
    PriorityState (..),
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.Maybe (fromMaybe)
import Data.Time.Clock (UTCTime)
import Data.Time.Clock.POSIX (utcTimeToPOSIXSeconds)
import Redis
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (inMilliseconds)
import Redis.Patterns.Internal.Token
import Redis.Patterns.Jobs.Queue
import Redis.Patterns.Jobs.Run
import Redis.Patterns.Worker
import Redis.Script (evalScriptRo)

-- | The result of 'enqueue'.
data Enqueued
  = -- | A new job was created.
    Enqueued JobId
  | -- | There was a job already, of this name or with this unique key.
    Present JobId
  deriving stock (Eq, Show)

-- | Puts a job with its payload into a queue. Throws 'Error'. One round trip; \(O(\log n)\) on the
-- server for \(n\) delayed jobs.
--
-- A job has its name before it is sent. So a request that is sent again creates no second job, unless
-- the first one has ended and been deleted by then ('jobRetention').
enqueue :: Client -> Queue -> JobOptions -> ByteString -> IO Enqueued
enqueue client queue JobOptions {jobId, jobDue, jobPriority, jobMaxAttempts, jobUnique, jobRetention, jobFailedRetention} payload = do
  call <- newToken 10
  let name = fromMaybe (JobId call) jobId
      keys = jobKey queue name : maybe [] (pure . uniqueKeyOf queue . uniqueKey) jobUnique
  run client $
    idempotent (callScriptWith queue enqueueScript keys (jobIdBytes name : words' <> [call])) `decodedBy` \reply -> do
      (found, isNew) <- Decode.pair Decode.bytes Decode.boolean reply
      -- A generated name is this call's, also if its job has ended and been deleted by now.
      pure ((if isNew || found == call then Enqueued else Present) (JobId found))
  where
    words' =
      due
        <> [priorityWord jobPriority, number (max 1 jobMaxAttempts), inWords jobRetention, inWords jobFailedRetention]
        <> [maybe "0" (number . max 1 . inMilliseconds . uniqueFor) jobUnique, payload]
    due = case jobDue of
      DueNow -> ["delay", "0"]
      DueIn duration -> ["delay", inWords duration]
      DueAt time -> ["at", unixWord time]

-- | A job that is put into the queue again and again. All workers share one schedule.
data Schedule = Schedule
  { scheduleName :: ByteString,
    -- | The time between two jobs.
    scheduleEvery :: Duration,
    -- | When the first job is due; the others follow at intervals from this time. 'Nothing': one
    -- interval from now, or, if a schedule of this name and interval exists, at that schedule's
    -- next time.
    scheduleFirst :: Maybe UTCTime,
    -- | The options of each job. 'jobId', 'jobDue' and 'jobUnique' are ignored: a job's name is its
    -- schedule's, @\@@ and the time in milliseconds.
    scheduleOptions :: JobOptions,
    schedulePayload :: ByteString
  }
  deriving stock (Eq, Show)

-- | Starts a schedule, or replaces the one of its name. A program may call this at each start: if
-- the times are the same as before, the next job stays due when it was. If the times are others, the
-- next job is due at the first of them that is not in the past. A new schedule whose first time is in
-- the past makes a job due at once. If due times pass while no worker runs, one job makes up for all
-- of them. One round trip.
schedule :: Client -> Queue -> Schedule -> IO ()
schedule client queue Schedule {scheduleName, scheduleEvery, scheduleFirst, scheduleOptions, schedulePayload} =
  run client (idempotent (callScriptWith queue scheduleScript [scheduleKey queue scheduleName] words') `decodedBy` Decode.ignored)
  where
    words' =
      [ scheduleName,
        number (max 1 (inMilliseconds scheduleEvery)),
        maybe "" unixWord scheduleFirst,
        priorityWord (jobPriority scheduleOptions),
        number (max 1 (jobMaxAttempts scheduleOptions)),
        inWords (jobRetention scheduleOptions),
        inWords (jobFailedRetention scheduleOptions),
        schedulePayload
      ]

-- | Ends a schedule; returns whether there was one. Jobs that it has already created stay.
unschedule :: Client -> Queue -> ByteString -> IO Bool
unschedule client queue name = run client (callScriptWith queue unscheduleScript [scheduleKey queue name] [name] `decodedBy` Decode.boolean)

-- | The state of a job.
data JobState
  = -- | Due later, for the first time or again.
    JobDelayed
  | JobWaiting
  | -- | A worker has it; or a worker had it, has died, and no other worker has noticed yet.
    JobRunning
  | JobDone
  | -- | Failed for good.
    JobFailed
  | JobCancelled
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The details of a job.
data JobInfo = JobInfo
  { jobInfoState :: JobState,
    jobInfoPayload :: ByteString,
    jobInfoPriority :: Priority,
    -- | How often the job has failed.
    jobInfoFailures :: Int64,
    jobInfoTries :: Int64,
    jobInfoCreated :: UTCTime,
    -- | When it was last due, if it was ever delayed.
    jobInfoDue :: Maybe UTCTime,
    -- | When it last started.
    jobInfoStarted :: Maybe UTCTime,
    jobInfoEnded :: Maybe UTCTime,
    -- | The progress that it reported last, from 0 to 1, with its note.
    jobInfoProgress :: Maybe (Double, ByteString),
    jobInfoResult :: Maybe ByteString,
    -- | The reason of its last failure.
    jobInfoError :: Maybe ByteString
  }
  deriving stock (Eq, Show)

-- | The details of a job; 'Nothing' if there is no such job, or no longer. One round trip.
jobInfo :: Client -> Queue -> JobId -> IO (Maybe JobInfo)
jobInfo client queue job = run client (readFrom ReadPrimary (raw ["HGETALL", jobKey queue job] `decodedBy` info))

info :: Decoder (Maybe JobInfo)
info reply =
  Decode.record reply >>= \case
    [] -> Right Nothing
    fields -> do
      note <- fromMaybe "" <$> Decode.optionalField "note" Decode.bytes fields
      fmap Just $
        JobInfo
          <$> Decode.field "state" state fields
          <*> Decode.field "payload" Decode.bytes fields
          <*> Decode.field "priority" priority fields
          <*> Decode.field "attempts" Decode.integer fields
          <*> Decode.field "tries" Decode.integer fields
          <*> Decode.field "created" Decode.unixMilliseconds fields
          <*> Decode.optionalField "due" Decode.unixMilliseconds fields
          <*> Decode.optionalField "started" Decode.unixMilliseconds fields
          <*> Decode.optionalField "ended" Decode.unixMilliseconds fields
          <*> (fmap (flip (,) note) <$> Decode.optionalField "progress" Decode.double fields)
          <*> Decode.optionalField "result" Decode.bytes fields
          <*> Decode.optionalField "error" Decode.bytes fields

priority :: Decoder Priority
priority reply = Decode.integer reply >>= maybe (Decode.mismatch "a priority" reply) Right . (`lookup` zip [1 ..] [minBound ..])

state :: Decoder JobState
state reply = Decode.bytes reply >>= maybe (Decode.mismatch "the state of a job" reply) Right . (`lookup` zip words' [minBound ..])
  where
    -- In the order of the constructors.
    words' = ["delayed", "waiting", "running", "done", "failed", "cancelled"]

-- | Cancels a job; returns its previous state, if there is such a job. A job that is delayed or
-- waits will not run. A job that runs learns of it when it next reports its progress; if it throws
-- after that, or its worker stops, it is not tried again. A job that has ended stays as it is. One round trip.
cancelJob :: Client -> Queue -> JobId -> IO (Maybe JobState)
cancelJob client queue job =
  run client (callScriptWith queue cancelScript [jobKey queue job] [jobIdBytes job, jobGroup] `decodedBy` Decode.nullable state)

-- | Puts a job that failed for good, or was cancelled, back into the queue with all its tries;
-- returns whether it did. One round trip.
retryJob :: Client -> Queue -> JobId -> IO Bool
retryJob client queue job =
  run client (callScriptWith queue retryScript [jobKey queue job] [jobIdBytes job] `decodedBy` Decode.boolean)

-- | The jobs that failed for good and are still kept, at most this many; those that will be deleted
-- first come first. One round trip, \(O(\log n + m)\) on the server.
failedJobs :: Client -> Queue -> Int64 -> IO [JobId]
failedJobs client queue count =
  map JobId <$> run client (idempotent (callScript queue failuresScript [number (max 1 count)]) `decodedBy` Decode.list Decode.bytes)

-- | The jobs of one priority.
data PriorityState = PriorityState
  { -- | Jobs that are ready, and that no worker has yet.
    stateWaiting :: Int64,
    -- | Jobs that workers have.
    stateRunning :: Int64,
    -- | How long the first of the waiting jobs has been waiting.
    stateOldest :: Maybe Duration
  }
  deriving stock (Eq, Show)

-- | A queue at one moment.
data JobsState = JobsState
  { stateUrgent :: PriorityState,
    stateNormal :: PriorityState,
    stateLater :: PriorityState,
    stateDelayed :: Int64,
    -- | Jobs that failed for good, and are still kept.
    stateFailed :: Int64,
    -- | The number of jobs ever done.
    stateDone :: Int64,
    stateSchedules :: Int64,
    -- | Workers that have contacted the server within the last minute.
    stateWorkers :: Int64
  }
  deriving stock (Eq, Show)

-- | The state of a queue: one script, one round trip, one moment. \(O(\log n)\) on the server, and
-- \(O(w)\) for \(w\) workers.
jobsState :: Client -> Queue -> IO JobsState
jobsState client queue =
  run client (readFrom ReadPrimary (evalScriptRo stateScript (fixedKeys queue) [jobGroup, "60000"] `decodedBy` page))

page :: Decoder JobsState
page reply = do
  elements <- Decode.list Decode.value reply
  let priorityAt position = Decode.element position one elements
      countAt position = Decode.element position Decode.integer elements
  JobsState <$> priorityAt 0 <*> priorityAt 1 <*> priorityAt 2 <*> countAt 3 <*> countAt 4 <*> countAt 5 <*> countAt 6 <*> countAt 7
  where
    one found = do
      (stateWaiting, stateRunning, oldest) <- Decode.triple Decode.integer Decode.integer Decode.integer found
      pure PriorityState {stateWaiting, stateRunning, stateOldest = if oldest < 0 then Nothing else Just (milliseconds oldest)}

-- | Milliseconds, rounded up.
inWords :: Duration -> ByteString
inWords = number . max 0 . inMilliseconds

unixWord :: UTCTime -> ByteString
unixWord time = number (ceiling (utcTimeToPOSIXSeconds time * 1000) :: Int64)
