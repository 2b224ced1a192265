{-# LANGUAGE InterruptibleFFI #-}

-- | Waits until a moment, coarsely or exactly.
module Tool.Bench.Sleep
  ( sleepUntil,
    sleepUntilExactly,
  )
where

import Control.Concurrent (threadDelay)
import Control.Monad (when)
import Data.Int (Int64)
import Tool.Bench.Cpu (Nanos, monotonic)

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
