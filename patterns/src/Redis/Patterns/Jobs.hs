-- | A queue of jobs: at once or later, once a key, every hour; with priorities, tries, progress and
-- results. It stands on "Redis.Patterns.Worker".
--
-- > let mails = Queue "mails"
-- > enqueue client mails jobDefaults "to ada"
-- > enqueue client mails jobDefaults {jobDue = DueIn (hours 1), jobPriority = Later} "to grace"
-- >
-- > runJobs client mails (jobWorker mails) {workerConcurrency = 8} $ \job -> do
-- >   send (runningPayload job)
-- >   pure "sent"
--
-- __Guaranteed__: a job that was put into the queue is run at least once to its handler's end, or
-- has been tried as often as it may be and has failed, or was cancelled. A delayed job never
-- runs early. Of jobs with the same unique key there is one within its time.
--
-- __Not guaranteed__: that a job runs only once (its worker may be killed when it is all but done),
-- that jobs end in the order in which they began, that a delayed job runs in time: it is ready at
-- most 'workerLook' late, if a worker runs, and begins when a hand is free. What the server
-- forgets is forgotten.
--
-- All of a queue is in keys that begin with its name in braces, and so on one node of a cluster; what
-- changes it is one script each, with the server's clock. Servers: since 6.2, and 'jobsState' since
-- 7.0.
module Redis.Patterns.Jobs
  ( Queue (..),

    -- * Putting jobs into it
    enqueue,
    Enqueued (..),
    JobId (..),
    JobOptions (..),
    jobDefaults,
    Due (..),
    Priority (..),
    Unique (..),

    -- * Again and again
    schedule,
    unschedule,
    Schedule (..),

    -- * Running them
    runJobs,
    jobWorker,
    Running (..),
    reportProgress,
    Worker (..),
    WorkerEvent (..),

    -- * One job
    jobInfo,
    JobInfo (..),
    JobState (..),
    cancelJob,
    retryJob,
    failedJobs,

    -- * The page
    jobsState,
    JobsState (..),
    PriorityState (..),
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.Maybe (isNothing)
import Data.Time.Clock (UTCTime)
import Data.Time.Clock.POSIX (utcTimeToPOSIXSeconds)
import Redis
import Redis.Decode qualified as Decode
import Redis.Duration (inMilliseconds)
import Redis.Patterns.Jobs.Info
import Redis.Patterns.Jobs.Queue
import Redis.Patterns.Jobs.Run
import Redis.Patterns.Jobs.Scripts
import Redis.Patterns.Worker
import Redis.Patterns.Worker.Engine (newName)

-- | What came of 'enqueue'.
--
-- @since 0.1.0.0
data Enqueued
  = -- | A new job.
    Enqueued JobId
  | -- | There was one already, of this name or with this unique key.
    Present JobId
  deriving stock (Eq, Show)

-- | Puts a job into a queue, with its payload. Throws 'Error'. One round trip, \(O(\log n)\) on the
-- server in what is delayed.
--
-- A job has its name before it is sent. So if nobody knows whether it came, it is sent again, and
-- makes no second job, unless the first is done and forgotten by then ('jobRetention').
--
-- @since 0.1.0.0
enqueue :: Client -> Queue -> JobOptions -> ByteString -> IO Enqueued
enqueue client queue JobOptions {jobId, jobDue, jobPriority, jobTries, jobUnique, jobRetention, jobFailedRetention} payload = do
  name <- maybe (JobId <$> newName) pure jobId
  let keys = jobKey queue name : maybe [] (pure . uniqueKeyOf queue . uniqueKey) jobUnique
  run client $
    repeatable (callScriptWith queue enqueueScript keys (jobIdBytes name : words')) `decodedBy` \reply -> do
      (found, isNew) <- Decode.pair Decode.bytes Decode.boolean reply
      -- A name that was made up here is there only because of an earlier sending.
      pure ((if isNew || (isNothing jobId && JobId found == name) then Enqueued else Present) (JobId found))
  where
    words' =
      due
        <> [priorityWord jobPriority, number (max 1 jobTries), inWords jobRetention, inWords jobFailedRetention]
        <> [maybe "0" (number . max 1 . inMilliseconds . uniqueFor) jobUnique, payload]
    due = case jobDue of
      DueNow -> ["delay", "0"]
      DueIn duration -> ["delay", inWords duration]
      DueAt time -> ["at", unixWord time]

-- | A job that is put into the queue again and again. One time for all workers.
--
-- @since 0.1.0.0
data Schedule = Schedule
  { scheduleName :: ByteString,
    -- | How long it is from one to the next.
    scheduleEvery :: Duration,
    -- | When the first is due; the others are due at this time and so many intervals. 'Nothing' is
    -- one interval from now, or, if there is a schedule of this name with this interval, as it was.
    scheduleFirst :: Maybe UTCTime,
    -- | 'jobId', 'jobDue' and 'jobUnique' are not heeded: such a job is called as its schedule, with
    -- @\@@ and the time in milliseconds.
    scheduleOptions :: JobOptions,
    schedulePayload :: ByteString
  }
  deriving stock (Eq, Show)

-- | Begins a schedule, or replaces the one of its name; to do so at each start of a program does
-- no harm. A time that passes while no worker runs is made up for once. One round trip.
--
-- @since 0.1.0.0
schedule :: Client -> Queue -> Schedule -> IO ()
schedule client queue Schedule {scheduleName, scheduleEvery, scheduleFirst, scheduleOptions, schedulePayload} =
  run client (repeatable (callScriptWith queue scheduleScript [scheduleKey queue scheduleName] words') `decodedBy` Decode.ignored)
  where
    words' =
      [ scheduleName,
        number (max 1 (inMilliseconds scheduleEvery)),
        maybe "" unixWord scheduleFirst,
        priorityWord (jobPriority scheduleOptions),
        number (max 1 (jobTries scheduleOptions)),
        inWords (jobRetention scheduleOptions),
        inWords (jobFailedRetention scheduleOptions),
        schedulePayload
      ]

-- | Ends a schedule; whether there was one. Jobs that it has made stay.
--
-- @since 0.1.0.0
unschedule :: Client -> Queue -> ByteString -> IO Bool
unschedule client queue name = run client (callScriptWith queue unscheduleScript [scheduleKey queue name] [name] `decodedBy` Decode.boolean)

-- | Milliseconds, rounded up.
inWords :: Duration -> ByteString
inWords = number . max 0 . inMilliseconds

unixWord :: UTCTime -> ByteString
unixWord time = number (ceiling (utcTimeToPOSIXSeconds time * 1000) :: Int64)

number :: Show number => number -> ByteString
number = Char8.pack . show
