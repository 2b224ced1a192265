-- | Waiting, and the clock that does not jump.
module Redis.Patterns.Internal.Time
  ( Instant,
    instantNow,
    after,
    until',
    waitFor,
    pauseFor,
    jittered,
    named,
  )
where

import Control.Concurrent (myThreadId, rtsSupportsBoundThreads, threadDelay)
import Control.Concurrent.STM
import GHC.Clock (getMonotonicTimeNSec)
import GHC.Conc (labelThread)
import Redis.Duration
import System.Random (randomRIO)
import System.Timeout (timeout)

-- | A moment of this process, in microseconds of the monotonic clock.
newtype Instant = Instant Duration
  deriving stock (Eq, Ord, Show)

instantNow :: IO Instant
instantNow = Instant . microseconds . fromIntegral . (`quot` 1000) <$> getMonotonicTimeNSec

after :: Instant -> Duration -> Instant
after (Instant moment) = Instant . (moment <>)

-- | How long from the first to the second; negative if the second is past.
until' :: Instant -> Instant -> Duration
until' (Instant from) (Instant to) = microseconds (inMicroseconds to - inMicroseconds from)

-- | Waits for the transaction, at most so long. 'Nothing': the time was over.
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

-- | Between a half of it and all of it, drawn anew each time, so that those who began
-- to wait together do not come back together.
jittered :: Duration -> IO Duration
jittered whole = microseconds <$> randomRIO (half, max half (inMicroseconds whole))
  where
    half = inMicroseconds whole `quot` 2

-- | Names the thread that runs it, for those who look at threads.
named :: String -> IO ()
named name = myThreadId >>= (`labelThread` name)
