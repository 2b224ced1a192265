{-# OPTIONS_HADDOCK hide #-}

-- | Waiting, and a clock that is never set.
module Redis.Patterns.Internal.Time
  ( Instant (..),
    instantNow,
    after,
    until',
    waitFor,
    pauseFor,
    asMicros,
    jittered,
    named,
  )
where

import Control.Concurrent (myThreadId, rtsSupportsBoundThreads, threadDelay)
import Control.Concurrent.STM
import Data.Int (Int64)
import GHC.Conc (labelThread)
import Redis.Duration
import System.Random (randomRIO)
import System.Timeout (timeout)

-- | A moment on this machine, since some other one. Where the system has such a clock, the time for which the
-- machine was suspended counts, because servers' leases end meanwhile.
newtype Instant = Instant Duration
  deriving stock (Eq, Ord, Show)

foreign import ccall unsafe "redis_client_patterns_nanos"
  clockNanos :: IO Int64

instantNow :: IO Instant
instantNow = Instant . microseconds . (`quot` 1000) <$> clockNanos

after :: Instant -> Duration -> Instant
after (Instant moment) = Instant . (moment <>)

-- | The time from the first moment to the second; negative if the second is earlier.
until' :: Instant -> Instant -> Duration
until' (Instant from) (Instant to) = microseconds (inMicroseconds to - inMicroseconds from)

-- | Waits for the transaction, at most this long. 'Nothing': the time was over.
waitFor :: Duration -> STM a -> IO (Maybe a)
waitFor limit condition
  | rtsSupportsBoundThreads = do
    over <- registerDelay micros
    atomically ((Just <$> condition) `orElse` (Nothing <$ (readTVar over >>= check)))
  -- Without -threaded there is no registerDelay.
  | otherwise = timeout micros (atomically condition)
  where
    micros = asMicros limit

pauseFor :: Duration -> IO ()
pauseFor = threadDelay . asMicros

asMicros :: Duration -> Int
asMicros = fromIntegral . max 0 . min 1000000000000 . inMicroseconds

-- | A random time between half of the given one and all of it. It keeps callers that began to wait
-- together from coming back together.
jittered :: Duration -> IO Duration
jittered whole = microseconds <$> randomRIO (half, max half (inMicroseconds whole))
  where
    half = inMicroseconds whole `quot` 2

-- | Labels the current thread, for tools that list threads.
named :: String -> IO ()
named name = myThreadId >>= (`labelThread` name)
