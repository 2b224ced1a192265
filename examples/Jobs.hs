-- | A queue of jobs: one runs at once, one later, one fails; and the state of the queue.
module Jobs (main) where

import Control.Concurrent.STM
import Control.Monad (when)
import Data.ByteString.Char8 qualified as Char8
import Data.Time.Clock (utctDayTime)
import Redis
import Redis.Commands qualified as Redis
import Redis.Duration (hours)
import Redis.Patterns.Jobs
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    -- A queue for this run alone; a program would define it at the top level of a module.
    mails <- Queue . (\now -> "example-mails-" <> Char8.pack (show now)) . utctDayTime <$> run client Redis.time

    -- Within an hour, there is only one job with this unique key.
    let once = jobDefaults {jobUnique = Just (Unique "welcome ada" (hours 1))}
    welcome <- enqueue client mails once "welcome, ada"
    again <- enqueue client mails once "welcome, ada"
    print (sameJob welcome again)

    _ <- enqueue client mails jobDefaults {jobDue = DueIn (milliseconds 50), jobPriority = Later} "how do you like it, ada?"
    _ <- enqueue client mails jobDefaults {jobId = Just (JobId "doomed"), jobMaxAttempts = 1} "fail"
    page <- jobsState client mails
    print (stateWaiting (stateNormal page), stateDelayed page)

    ended <- newTVarIO (0 :: Int)
    let settings =
          (jobWorker mails)
            { workerConcurrency = 8,
              workerPollInterval = milliseconds 20,
              -- A service would stop on a signal.
              workerUntil = readTVar ended >>= check . (== 3)
            }
    runJobs client mails settings $ \job -> do
      _ <- reportProgress job 0.5 "written"
      atomically (modifyTVar' ended (+ 1))
      when (runningPayload job == "fail") (fail "no such address")
      pure "sent"

    after <- jobsState client mails
    print (stateDone after, stateFailed after)
    doomed <- jobInfo client mails (JobId "doomed")
    print (fmap (\job -> (jobInfoState job, jobInfoProgress job, jobInfoError job)) doomed)
  where
    sameJob (Enqueued one) (Present other) = one == other
    sameJob _ _ = False
