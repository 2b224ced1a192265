{-# LANGUAGE MagicHash #-}

-- | Time and threads.
--
-- Of two monotonic clocks, 'preciseNanos' measures how long something took; all deadlines are on
-- 'coarseNanos', which is cheap, and may be one kernel tick (1–4 ms) late. They share no origin.
--
-- No other module starts threads. A thread is labelled, begins masked, and may be tied to one
-- capability: two capabilities working on one connection lose most of its throughput (see
-- @docs/guide/tuning.md@).
--
-- No other module throws to a thread, but for the thread that "Redis.Internal.Network.Transport" starts in
-- a runtime without @-threaded@, and for two threads with a @timeout@ of their own: two exceptions on
-- their way to one thread crash the runtime of GHC now and then (@docs/ghc-throwto.md@). So 'supervised'
-- throws only to the thread that it has started itself, and once. A thread that may have to stop for
-- several reasons waits for all of them in one transaction.
module Redis.Internal.Network.Runtime
  ( -- * Clocks
    Nanos,
    preciseNanos,
    coarseNanos,
    nanosFromSeconds,
    nanosFromDuration,
    durationFromNanos,
    secondsFromNanos,

    -- * Deadlines
    Deadline (..),
    never,
    noDeadline,
    deadlineAfter,
    deadlineLimit,
    halfway,
    secondsLeft,
    timedOut,
    expiry,
    expiryAt,

    -- * Threads
    spawnOn,
    spawn,
    spawnWait,
    quietly,
    supervised,
  )
where

import Control.Concurrent (ThreadId, forkIO, forkOn, killThread, rtsSupportsBoundThreads, threadDelay)
import Control.Concurrent.MVar (newEmptyMVar, putMVar, takeMVar)
import Control.Concurrent.STM
import Control.Exception (SomeException, mask_, onException, throwIO, try, uninterruptibleMask_)
import Control.Monad (void)
import Data.Int (Int64)
import GHC.Clock (getMonotonicTimeNSec)
import GHC.Conc (labelThread)
import GHC.Exts (maskAsyncExceptions#)
import GHC.IO (IO (IO))
import Redis.Duration (Duration, inMicroseconds, seconds)
import Redis.Error (Delivery, Error (TimeoutError), TimeoutFailure (..))

-- | Nanoseconds. @Int64@ holds 292 years of them.
type Nanos = Int64

-- | The precise monotonic clock. \(O(1)\), never blocks.
preciseNanos :: IO Nanos
preciseNanos = fromIntegral <$> getMonotonicTimeNSec

-- | A monotonic clock as exact as the kernel's tick, read once per command. \(O(1)\), never blocks.
foreign import ccall unsafe "redis_client_coarse_nanos"
  coarseNanos :: IO Nanos

-- | Whole nanoseconds in a number of seconds, saturating far below overflow.
nanosFromSeconds :: Double -> Nanos
nanosFromSeconds amount = round (min 1e9 (max 0 amount) * 1e9)

-- | The nanoseconds of a duration that is not negative.
nanosFromDuration :: Duration -> Nanos
nanosFromDuration duration = 1000 * max 0 (min (maxBound `quot` 1000) (inMicroseconds duration))

-- | A number of nanoseconds as a 'Duration', rounded to the microsecond.
durationFromNanos :: Nanos -> Duration
durationFromNanos = seconds . secondsFromNanos

-- | Seconds in a number of nanoseconds.
secondsFromNanos :: Nanos -> Double
secondsFromNanos nanos = fromIntegral nanos / 1e9

-- | A command's time, on the coarse clock.
data Deadline = Deadline
  { deadlineBegan :: {-# UNPACK #-} !Nanos,
    -- | When it is over.
    deadlineAt :: {-# UNPACK #-} !Nanos
  }
  deriving stock (Eq, Show)

-- | The time that does not come.
never :: Nanos
never = maxBound

-- | The deadline of what may take for ever.
noDeadline :: Deadline
noDeadline = Deadline {deadlineBegan = 0, deadlineAt = never}

-- | The deadline for a time limit, which may be 'never', from this time on.
deadlineAfter :: Nanos -> Nanos -> Deadline
deadlineAfter limit began = Deadline {deadlineBegan = began, deadlineAt = if limit >= never - began then never else began + max 0 limit}
{-# INLINE deadlineAfter #-}

-- | The whole time limit, or 'never'.
deadlineLimit :: Deadline -> Nanos
deadlineLimit Deadline {deadlineBegan, deadlineAt}
  | deadlineAt == never = never
  | otherwise = deadlineAt - deadlineBegan
{-# INLINE deadlineLimit #-}

-- | Half of the time that is left.
halfway :: Nanos -> Deadline -> Deadline
halfway now Deadline {deadlineAt}
  | deadlineAt == never = deadlineAfter never now
  | otherwise = deadlineAfter ((deadlineAt - now) `quot` 2) now

-- | The seconds that are left, if the time is limited.
secondsLeft :: Nanos -> Deadline -> Maybe Double
secondsLeft now Deadline {deadlineAt}
  | deadlineAt == never = Nothing
  | otherwise = Just (secondsFromNanos (deadlineAt - now))

-- | The error of a command whose time is over.
timedOut :: Delivery -> Deadline -> Error
timedOut delivery deadline = TimeoutError (TimeoutFailure "" delivery (durationFromNanos (deadlineLimit deadline)) Nothing)

-- | Starts a masked thread on a capability. Its body must end by itself and leak no exceptions.
spawnOn :: Int -> String -> IO () -> IO ThreadId
spawnOn = spawnBy . forkOn

-- | Starts a masked thread wherever the runtime likes.
spawn :: String -> IO () -> IO ThreadId
spawn = spawnBy forkIO

spawnBy :: (IO () -> IO ThreadId) -> String -> IO () -> IO ThreadId
spawnBy fork label body = mask_ $ do
  thread <- fork (masked body)
  thread <$ labelThread thread label

-- | Starts a masked thread, and returns an action that waits until it has ended, and is to be called
-- once. A failure changes nothing.
spawnWait :: String -> IO () -> IO (IO ())
spawnWait label body = do
  ended <- newEmptyMVar
  takeMVar ended <$ spawn label (quietly body >> putMVar ended ())

-- | Runs an action whose failure changes nothing.
quietly :: IO () -> IO ()
quietly action = void (try @SomeException action)

-- | Runs the body of a thread masked, from its first instruction, and interruptible, whatever the state
-- of the thread that starts it: a user's clean-up that closes a client may begin to run the user's hooks.
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

-- | A transaction that retries until so many seconds have passed. Throws to nobody.
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
