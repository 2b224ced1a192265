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
-- done); that jobs end in the order in which they began; that a delayed job runs on time: if a
-- worker runs, the job is ready at most 'workerPollInterval' late, and begins when a hand is free. If the
-- server loses data, its jobs are lost.
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
import Redis.Decode qualified as Decode
import Redis.Duration (inMilliseconds)
import Redis.Patterns.Internal.Token
import Redis.Patterns.Jobs.Info
import Redis.Patterns.Jobs.Queue
import Redis.Patterns.Jobs.Run
import Redis.Patterns.Jobs.Scripts
import Redis.Patterns.Worker

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
-- A job has its name before it is sent. So if it is unknown whether the request has arrived, it is
-- sent again and creates no second job, unless the first one has ended and been deleted by then
-- ('jobRetention').
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
    -- schedule's,
    -- @\@@ and the time in milliseconds.
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

-- | Milliseconds, rounded up.
inWords :: Duration -> ByteString
inWords = number . max 0 . inMilliseconds

unixWord :: UTCTime -> ByteString
unixWord time = number (ceiling (utcTimeToPOSIXSeconds time * 1000) :: Int64)
