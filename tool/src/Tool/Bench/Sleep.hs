{-# LANGUAGE InterruptibleFFI #-}

-- | Waiting for a moment, more or less exactly.
module Tool.Bench.Sleep
  ( sleepUntil,
    sleepUntilExactly,
  )
where

import Control.Concurrent (threadDelay)
import Control.Monad (when)
import Data.Int (Int64)
import Tool.Bench.Cpu (Nanos, monotonic)

-- | Until a moment of the monotonic clock, a few milliseconds late at most
-- while the processor is free. Costs no thread of the system.
sleepUntil :: Nanos -> IO ()
sleepUntil time = do
  now <- monotonic
  when (now < time) $ do
    threadDelay ((time - now + 999) `div` 1000)
    sleepUntil time

-- | The same, late by tens of microseconds: 'threadDelay' counts in whole
-- milliseconds, too coarse for a plan of 100 000 arrivals a second. Occupies a
-- thread of the system while it sleeps, never a core.
sleepUntilExactly :: Nanos -> IO ()
sleepUntilExactly time = do
  now <- monotonic
  when (now < time) $ do
    clockSleep (fromIntegral time)
    sleepUntilExactly time

-- Interruptible: an exception that is thrown at the thread ends the sleep.
foreign import ccall interruptible "redis_client_tool_sleep_until"
  clockSleep :: Int64 -> IO ()
