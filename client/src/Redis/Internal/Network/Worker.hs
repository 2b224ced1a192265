{-# LANGUAGE MagicHash #-}

-- | The only module that starts threads. It is also the only one that throws to a thread, but for
-- the thread that "Redis.Internal.Network.Socket" starts in a runtime without @-threaded@, and for
-- three threads with a @timeout@ of their own.
--
-- A worker is labelled, begins masked, and is tied to one capability: a
-- connection's threads share a cache with the callers they serve, and two
-- capabilities working on one connection lose most of its throughput (see
-- @docs/guide/tuning.md@).
--
-- Two exceptions on their way to one thread crash the runtime of GHC now and then
-- (@docs/ghc-throwto.md@). So 'supervised' throws only to the thread that it has started itself,
-- and once. A thread that may have to stop for several reasons waits for all of them in one
-- transaction.
module Redis.Internal.Network.Worker
  ( spawnOn,
    spawn,
    supervised,
    expiry,
    expiryAt,
  )
where

import Control.Concurrent (ThreadId, forkIO, forkOn, killThread, rtsSupportsBoundThreads, threadDelay)
import Control.Concurrent.STM
import Control.Exception (SomeException, mask_, onException, throwIO, try, uninterruptibleMask_)
import GHC.Conc (labelThread)
import GHC.Exts (maskAsyncExceptions#)
import GHC.IO (IO (IO))
import Redis.Internal.Network.Clock (Nanos, coarseNanos, nanosFromSeconds, never)

-- | Starts a masked thread on a capability. Its body must end by itself and must
-- not leak exceptions.
spawnOn :: Int -> String -> IO () -> IO ThreadId
spawnOn capability label body = mask_ $ do
  thread <- forkOn capability (masked body)
  labelThread thread label
  pure thread

-- | Starts a masked thread wherever the runtime likes.
spawn :: String -> IO () -> IO ThreadId
spawn label body = mask_ $ do
  thread <- forkIO (masked body)
  labelThread thread label
  pure thread

-- | Runs the body of a thread masked, from its first instruction, and interruptible. The thread
-- that starts it may be in neither state: a client that is closed by a user's clean-up may begin to
-- run the user's hooks there, and those must be interruptible.
masked :: IO () -> IO ()
masked (IO body) = IO (maskAsyncExceptions# body)

-- | Runs an action, masked, on a thread of its own with this label, until it has a result or the
-- transaction returns a reason to stop. For such a reason, or when the caller is interrupted, the
-- action is interrupted, once, and the function waits until it has ended. If the action has a
-- result all the same, that is returned; if the caller was interrupted, it is disposed of. An
-- exception of the action is thrown again, but not after a reason to stop.
--
-- A caller that must not lose the result is masked. Whatever the action waits for must be
-- interruptible.
supervised :: String -> STM e -> (a -> IO ()) -> IO a -> IO (Either e a)
supervised label over dispose action = mask_ $ do
  result <- newEmptyTMVarIO
  thread <- spawn label (try action >>= atomically . putTMVar result)
  let interrupt = uninterruptibleMask_ (killThread thread >> atomically (readTMVar result))
  ended <- atomically ((Right <$> readTMVar result) `orElse` (Left <$> over)) `onException` (interrupt >>= mapM_ dispose)
  case ended of
    Right outcome -> either throwIO (pure . Right) outcome
    Left reason -> either (\(_ :: SomeException) -> Left reason) Right <$> interrupt

-- | A transaction that retries until so many seconds have passed from now. No exception is thrown
-- to anybody.
expiry :: Double -> IO (STM ())
expiry = expiryIn . nanosFromSeconds

-- | A transaction that retries until this deadline.
expiryAt :: Nanos -> IO (STM ())
expiryAt deadline
  | deadline == never = pure retry
  | otherwise = coarseNanos >>= expiryIn . (deadline -)

-- A runtime without @-threaded@ has no 'registerDelay'; there a thread waits.
expiryIn :: Nanos -> IO (STM ())
expiryIn left
  | rtsSupportsBoundThreads = passed <$> registerDelay micros
  | otherwise = do
    over <- newTVarIO False
    passed over <$ spawn "redis timer" (threadDelay micros *> atomically (writeTVar over True))
  where
    passed over = readTVar over >>= check
    micros = fromIntegral ((max 0 left + 999) `quot` 1000)
