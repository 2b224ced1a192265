-- | The state of a queue and of its jobs, and the commands that cancel and retry jobs.
module Redis.Patterns.Jobs.Info
  ( jobInfo,
    JobInfo (..),
    JobState (..),
    cancelJob,
    retryJob,
    failedJobs,
    jobsState,
    JobsState (..),
    PriorityState (..),
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.Maybe (fromMaybe)
import Data.Time.Clock (UTCTime)
import Redis
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Patterns.Internal.Token (number)
import Redis.Patterns.Jobs.Queue
import Redis.Patterns.Jobs.Scripts
import Redis.Script (evalScriptRo)

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
jobInfo client queue job = run client (raw ["HGETALL", jobKey queue job] `decodedBy` info)

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
  run client (evalScriptRo stateScript (fixedKeys queue) [jobGroup, "60000"] `decodedBy` page)

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
