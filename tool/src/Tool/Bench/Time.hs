{-# LANGUAGE InterruptibleFFI #-}

-- | Clocks: the monotonic clock, waiting for its moments, and processor time.
module Tool.Bench.Time
  ( Nanos,
    monotonic,
    sleepUntil,
    sleepUntilExactly,
    ownCpu,
    endedChildrenCpu,
  )
where

import Control.Concurrent (threadDelay)
import Control.Monad (when)
import Data.Int (Int64)
import GHC.Clock (getMonotonicTimeNSec)
import System.CPUTime (getCPUTime)

-- | Nanoseconds.
type Nanos = Int

-- | User and system time of this process, of all its threads. \(O(1)\).
ownCpu :: IO Nanos
ownCpu = (\picoseconds -> fromInteger (picoseconds `div` 1000)) <$> getCPUTime

-- | User and system time of the children that have ended and been waited for. The difference
-- between before and after one child's life is the time of that child, if no other child ends
-- meanwhile. \(O(1)\).
endedChildrenCpu :: IO Nanos
endedChildrenCpu = fromIntegral <$> childrenNanos

foreign import ccall unsafe "redis_client_tool_children_cpu_nanos"
  childrenNanos :: IO Int64

-- | A clock that only goes forward, from an arbitrary point. \(O(1)\).
monotonic :: IO Nanos
monotonic = fromIntegral <$> getMonotonicTimeNSec

-- | Sleeps until a moment of the monotonic clock. Wakes at most a few milliseconds late while the
-- processor is free. Needs no thread of the operating system.
sleepUntil :: Nanos -> IO ()
sleepUntil time = do
  now <- monotonic
  when (now < time) $ do
    threadDelay ((time - now + 999) `div` 1000)
    sleepUntil time

-- | Like 'sleepUntil', but wakes only tens of microseconds late: 'threadDelay' counts whole
-- milliseconds, too coarse for a plan of 100 000 arrivals a second. Occupies an operating system
-- thread while it sleeps, but never a core.
sleepUntilExactly :: Nanos -> IO ()
sleepUntilExactly time = do
  now <- monotonic
  when (now < time) $ do
    clockSleep (fromIntegral time)
    sleepUntilExactly time

-- Interruptible: an exception thrown to the thread ends the sleep.
foreign import ccall interruptible "redis_client_tool_sleep_until"
  clockSleep :: Int64 -> IO ()
