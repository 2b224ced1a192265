-- | How many entries a worker handles in a second, and how many jobs, by hands. The handlers do
-- nothing. Each worker is alone on a server of its own.
module Main (main) where

import Control.Concurrent.Async (forConcurrently_)
import Control.Concurrent.STM
import Control.Monad (forM_, void)
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Commands qualified as Redis
import Redis.Patterns.Jobs
import Redis.Patterns.Worker
import Redis.TestKit.Server

main :: IO ()
main = forM_ [1, 8, 64] $ \hands -> withServer serverDefaults $ \server ->
  withClient (standaloneConfig "127.0.0.1" (fromIntegral (serverPort server))) $ \client -> do
    let queue = Queue "bench"
        count = 6400 :: Int
    done <- newTVarIO (0 :: Int)
    let ticking = atomically (modifyTVar' done (+ 1))
        timed unit action = do
          atomically (writeTVar done 0)
          began <- getMonotonicTime
          () <- action
          ended <- getMonotonicTime
          putStrLn (show hands <> " hands: " <> show (round (fromIntegral count / (ended - began)) :: Int) <> " " <> unit <> "/s")
    void (runPipeline client (traverse (\_ -> pipelined (Redis.xadd "bench" (("a", "b") :| []))) [1 .. count]))
    timed "entries" $
      runWorker client (worker "bench" "group") {workerConcurrency = hands, workerUntil = readTVar done >>= check . (>= count)} (const ticking)
    timed "jobs put in by 64" . forConcurrently_ [1 .. 64 :: Int] $ \_ -> forM_ [1 .. count `div` 64] (const (void (enqueue client queue jobDefaults "payload")))
    timed "jobs" $
      runJobs client queue (jobWorker queue) {workerConcurrency = hands, workerUntil = readTVar done >>= check . (>= count)} (const ("" <$ ticking))
