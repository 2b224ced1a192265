-- | A queue of jobs, its keys, and what is told of a job that is put into it.
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

-- | A queue, by its name, in which there must be no braces. All its keys begin with the name in
-- braces, so in a cluster a queue is on one node, and several queues are on several.
--
-- @since 0.1.0.0
newtype Queue = Queue {queueName :: ByteString}
  deriving stock (Eq, Ord, Show)

-- | What a job is called. Those that are given no name get one.
--
-- @since 0.1.0.0
newtype JobId = JobId {jobIdBytes :: ByteString}
  deriving stock (Eq, Ord, Show)

-- | Which jobs are taken first. Of one priority, those that have waited longest.
--
-- @since 0.1.0.0
data Priority = Urgent | Normal | Later
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | When a job may run, by the server's clock.
--
-- @since 0.1.0.0
data Due
  = -- | At once.
    DueNow
  | -- | After so long.
    DueIn Duration
  | -- | From this time on.
    DueAt UTCTime
  deriving stock (Eq, Show)

-- | For this long after a job was put into the queue, no other is that has the same key.
--
-- @since 0.1.0.0
data Unique = Unique
  { uniqueKey :: ByteString,
    uniqueFor :: Duration
  }
  deriving stock (Eq, Show)

-- | What a job is told besides its payload. Change fields of 'jobDefaults'.
--
-- @since 0.1.0.0
data JobOptions = JobOptions
  { -- | Its name; if there is a job of that name, it is left as it is, and no other is made.
    jobId :: Maybe JobId,
    jobDue :: Due,
    jobPriority :: Priority,
    -- | How often it is tried, all in all.
    jobTries :: Int,
    jobUnique :: Maybe Unique,
    -- | How long what became of it is kept when it is done.
    jobRetention :: Duration,
    -- | How long it is kept when it has failed for good.
    jobFailedRetention :: Duration
  }
  deriving stock (Eq, Show)

-- | At once, 'Normal', five tries, kept for an hour when it is done and for 30 days when it failed.
--
-- @since 0.1.0.0
jobDefaults :: JobOptions
jobDefaults =
  JobOptions
    { jobId = Nothing,
      jobDue = DueNow,
      jobPriority = Normal,
      jobTries = 5,
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

-- | The group of all its workers.
jobGroup :: ByteString
jobGroup = "workers"

uniqueKeyOf :: Queue -> ByteString -> ByteString
uniqueKeyOf queue name = keyBase queue <> ":unique:" <> name

scheduleKey :: Queue -> ByteString -> ByteString
scheduleKey queue name = keyBase queue <> ":schedule:" <> name

-- | What every script is given, in this order: the three streams, what is delayed, what has
-- failed, the schedules, and how many are done.
fixedKeys :: Queue -> [ByteString]
fixedKeys queue =
  map (readyStream queue) [minBound ..] <> map (keyBase queue <>) [":delayed", ":failed", ":schedules", ":done"]
