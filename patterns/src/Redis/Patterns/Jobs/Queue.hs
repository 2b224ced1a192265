-- | A queue of jobs, its keys, and the options of a job.
module Redis.Patterns.Jobs.Queue
  ( Queue (..),
    JobId (..),
    Priority (..),
    Due (..),
    Unique (..),
    JobOptions (..),
    jobDefaults,

    -- * Keys
    fixedKeys,
    keyBase,
    readyStreams,
    readyStream,
    priorityOf,
    jobKey,
    uniqueKeyOf,
    scheduleKey,
    jobGroup,
  )
where

import Data.ByteString (ByteString)
import Data.List (find)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Time.Clock (UTCTime)
import Redis (Duration)
import Redis.Duration (days, hours)

-- | A queue, given by its name, which must not contain braces. All its keys begin with the name in
-- braces, so in a cluster one queue is on one node, and several queues spread over several.
newtype Queue = Queue {queueName :: ByteString}
  deriving stock (Eq, Ord, Show)

-- | The name of a job. A job without a given name gets a random one.
newtype JobId = JobId {jobIdBytes :: ByteString}
  deriving stock (Eq, Ord, Show)

-- | Which jobs are taken first. Within one priority, the jobs that have waited longest come first.
data Priority = Urgent | Normal | Later
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | When a job may run, by the server's clock.
data Due
  = -- | At once.
    DueNow
  | -- | After this time.
    DueIn Duration
  | -- | From this time on.
    DueAt UTCTime
  deriving stock (Eq, Show)

-- | A key that only one job may have: for this long after a job was put into the queue, no other
-- job with the same key is put there.
data Unique = Unique
  { uniqueKey :: ByteString,
    uniqueFor :: Duration
  }
  deriving stock (Eq, Show)

-- | The options of a job, besides its payload. Change the fields of 'jobDefaults'.
data JobOptions = JobOptions
  { -- | The job's name. If a job of that name exists, it stays as it is, and no new one is created.
    jobId :: Maybe JobId,
    jobDue :: Due,
    jobPriority :: Priority,
    -- | How often the job is tried in total.
    jobMaxAttempts :: Int,
    jobUnique :: Maybe Unique,
    -- | How long the job and its result are kept after it is done or cancelled.
    jobRetention :: Duration,
    -- | How long the job is kept after it has failed for good.
    jobFailedRetention :: Duration
  }
  deriving stock (Eq, Show)

-- | Due at once, 'Normal', five tries, kept for an hour when done and for 30 days when failed.
jobDefaults :: JobOptions
jobDefaults =
  JobOptions
    { jobId = Nothing,
      jobDue = DueNow,
      jobPriority = Normal,
      jobMaxAttempts = 5,
      jobUnique = Nothing,
      jobRetention = hours 1,
      jobFailedRetention = days 30
    }

keyBase :: Queue -> ByteString
keyBase Queue {queueName} = "{" <> queueName <> "}:jobs"

readyStream :: Queue -> Priority -> ByteString
readyStream queue = \case
  Urgent -> keyBase queue <> ":urgent"
  Normal -> keyBase queue <> ":normal"
  Later -> keyBase queue <> ":later"

readyStreams :: Queue -> NonEmpty ByteString
readyStreams queue = fmap (readyStream queue) (Urgent :| [Normal, Later])

priorityOf :: Queue -> ByteString -> Maybe Priority
priorityOf queue stream = find ((== stream) . readyStream queue) [minBound ..]

jobKey :: Queue -> JobId -> ByteString
jobKey queue (JobId name) = keyBase queue <> ":job:" <> name

-- | The consumer group of all workers of a queue.
jobGroup :: ByteString
jobGroup = "workers"

uniqueKeyOf :: Queue -> ByteString -> ByteString
uniqueKeyOf queue name = keyBase queue <> ":unique:" <> name

scheduleKey :: Queue -> ByteString -> ByteString
scheduleKey queue name = keyBase queue <> ":schedule:" <> name

-- | The keys that every script gets, in this order: the three streams, the delayed jobs, the failed
-- jobs, the schedules, and the number of jobs done.
fixedKeys :: Queue -> [ByteString]
fixedKeys queue =
  map (readyStream queue) [minBound ..] <> map (keyBase queue <>) [":delayed", ":failed", ":schedules", ":done"]
