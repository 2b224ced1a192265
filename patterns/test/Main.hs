module Main (main) where

import Redis.Patterns.CacheAsideSpec qualified as CacheAsideSpec
import Redis.Patterns.ClusterFaultsSpec qualified as ClusterFaultsSpec
import Redis.Patterns.ElectionSpec qualified as ElectionSpec
import Redis.Patterns.JobsSpec qualified as JobsSpec
import Redis.Patterns.LockSpec qualified as LockSpec
import Redis.Patterns.PendingSpec qualified as PendingSpec
import Redis.Patterns.RateLimitSpec qualified as RateLimitSpec
import Redis.Patterns.RateLimitWaiSpec qualified as RateLimitWaiSpec
import Redis.Patterns.SemaphoreSpec qualified as SemaphoreSpec
import Redis.Patterns.SessionSpec qualified as SessionSpec
import Redis.Patterns.TimeSpec qualified as TimeSpec
import Redis.Patterns.Work (jobProcess, workProcess)
import Redis.Patterns.WorkerClusterSpec qualified as WorkerClusterSpec
import Redis.Patterns.WorkerFaultSpec qualified as WorkerFaultSpec
import Redis.Patterns.WorkerSpec qualified as WorkerSpec
import Redis.TestKit.Wait (testWithin)
import System.Environment (getArgs)
import System.IO (BufferMode (LineBuffering), hSetBuffering, stdout)
import Test.Hspec (around_, describe, hspec)
import Text.Read (readMaybe)

main :: IO ()
main =
  getArgs >>= \case
    -- The processes that the tests of workers start in order to kill them.
    ["--work", port, tries] -> sequence_ (workProcess <$> readMaybe port <*> readMaybe tries)
    ["--jobs", port] -> mapM_ jobProcess (readMaybe port)
    _ -> do
      hSetBuffering stdout LineBuffering
      hspec . around_ (testWithin 90) $ do
        describe "The clock" TimeSpec.spec
        describe "Lock" LockSpec.spec
        describe "What becomes of what is pending" PendingSpec.spec
        describe "Worker" WorkerSpec.spec
        describe "Worker, under faults" WorkerFaultSpec.spec
        describe "Jobs" JobsSpec.spec
        describe "Workers of a cluster" WorkerClusterSpec.spec
        describe "CacheAside" CacheAsideSpec.spec
        describe "in a cluster" ClusterFaultsSpec.spec
        describe "Election" ElectionSpec.spec
        describe "RateLimit" RateLimitSpec.spec
        describe "RateLimit.Wai" RateLimitWaiSpec.spec
        describe "Semaphore" SemaphoreSpec.spec
        describe "Session" SessionSpec.spec
