-- | A load of numbered entries, workers that count at the server which entries they handle, and
-- processes that run such workers and may be killed.
module Redis.Patterns.Work
  ( connected,
    addNumbered,
    countingWorker,
    counting,
    workProcess,
    withWorkProcess,
    jobProcess,
    withJobProcess,
    handledCounts,
    pendingCount,
    deadNumbers,
    numberOf,
    stopping,
    isFailing,
  )
where

import Control.Concurrent.Async (wait, withAsync)
import Control.Concurrent.STM
import Control.Exception (bracket, handle)
import Control.Monad (forM_, void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (mapMaybe)
import Redis
import Redis.Commands qualified as Redis
import Redis.Patterns.Jobs
import Redis.Patterns.Worker
import Redis.TestKit.Process (Process)
import Redis.TestKit.Process qualified as Process
import Redis.TestKit.Server (Server, serverFolder, serverPort)
import Redis.TestKit.Wait (pause)
import System.Environment (getExecutablePath)
import System.Posix.Process (getProcessID)
import System.Posix.Signals (sigKILL, signalProcess)

-- | Runs an action with a client of the server or proxy at this port.
connected :: Int -> (Client -> IO a) -> IO a
connected port = withClient (standaloneConfig "127.0.0.1" (fromIntegral port))

addNumbered :: Client -> ByteString -> [Int] -> IO ()
addNumbered client stream numbers =
  forM_ numbers $ \n -> run client (Redis.xadd stream (("number", Char8.pack (show n)) :| []))

numberOf :: Entry -> Int
numberOf = maybe (-1) (maybe (-1) fst . Char8.readInt) . lookup "number" . entryFields

-- | Whether the entry fails each time it is tried; one in ten does.
isFailing :: Int -> Bool
isFailing n = n `mod` 10 == 3

-- | A worker that is quick to retry and quick to take over.
countingWorker :: Worker
countingWorker =
  (worker "numbers" "counters")
    { workerConcurrency = 4,
      workerMaxAttempts = 100,
      workerBackoff = backoffDefaults {backoffFirst = milliseconds 50, backoffCap = milliseconds 100},
      workerClaimAfter = milliseconds 600,
      workerPollInterval = milliseconds 100
    }

-- | Counts at the server how often each number was handled. It uses a second client, which faults
-- do not reach.
counting :: Client -> Entry -> IO ()
counting client entry = do
  pause 0.002
  when (isFailing (numberOf entry)) (fail "this one fails")
  void (run client (Redis.hincrby "handled" (Char8.pack (show (numberOf entry))) 1))

handledCounts :: Client -> IO (Map Int Int)
handledCounts client = Map.fromList . mapMaybe one <$> run client (Redis.hgetall "handled")
  where
    one (field, value) = (,) <$> (fst <$> Char8.readInt field) <*> (fst <$> Char8.readInt value)

-- | How many entries are pending or not delivered yet; -1 if there is no group or no server.
pendingCount :: Client -> ByteString -> ByteString -> IO Int
pendingCount client stream group = handle (\(_ :: Error) -> pure (-1)) $ do
  left <- fromIntegral . Redis.pendingSummaryCount <$> run client (Redis.xpending stream group)
  groups <- run client (Redis.xinfoGroups stream)
  entries <- run client (Redis.xrange stream Redis.LowestId Redis.HighestId)
  let ends = [Redis.groupInfoLastDeliveredId one | one <- groups, Redis.groupInfoName one == group]
  pure (left + length [() | end <- ends, entry <- entries, Redis.streamEntryId entry > end])

deadNumbers :: Client -> ByteString -> IO [Int]
deadNumbers client stream = map number <$> run client (Redis.xrange stream Redis.LowestId Redis.HighestId)
  where
    number = maybe (-1) (maybe (-1) fst . Char8.readInt) . lookup "number" . Redis.streamEntryFields

-- | The program of a process that a test starts as a worker: it works until it is killed. An entry
-- with a poison kills it.
workProcess :: Int -> Int -> IO ()
workProcess port tries =
  connected port $ \client ->
    runWorker client countingWorker {workerMaxAttempts = tries} $ \entry ->
      case lookup "poison" (entryFields entry) of
        Just _ -> run client (Redis.incr "poisoned") >> getProcessID >>= signalProcess sigKILL
        Nothing -> counting client entry

withWorkProcess :: Server -> Int -> (Process -> IO a) -> IO a
withWorkProcess server tries = withProcess server ["--work", show (serverPort server), show tries]

withProcess :: Server -> [String] -> (Process -> IO a) -> IO a
withProcess server arguments = bracket begin Process.kill9
  where
    begin = do
      program <- getExecutablePath
      Process.spawn (serverFolder server) program arguments (serverFolder server <> "/worker.log")

-- | Like 'workProcess', for jobs of the queue \"mails\".
jobProcess :: Int -> IO ()
jobProcess port =
  connected port $ \client -> do
    let queue = Queue "mails"
        settings = (jobWorker queue) {workerConcurrency = 4, workerClaimAfter = milliseconds 600, workerPollInterval = milliseconds 100}
    runJobs client queue settings $ \job -> do
      pause 0.01
      "" <$ run client (Redis.hincrby "handled" (runningPayload job) 1)

withJobProcess :: Server -> (Process -> IO a) -> IO a
withJobProcess server = withProcess server ["--jobs", show (serverPort server)]

-- | Runs a worker until the action is over, and then waits until the worker has stopped.
stopping :: Client -> Worker -> (Entry -> IO ()) -> IO a -> IO a
stopping client settings handler action = do
  stop <- newTVarIO False
  withAsync (runWorker client settings {workerUntil = readTVar stop >>= check} handler) $ \working -> do
    result <- action
    atomically (writeTVar stop True)
    wait working
    pure result
