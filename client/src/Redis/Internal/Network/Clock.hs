-- | Monotonic time, in nanoseconds since an arbitrary point.
--
-- Two clocks, because they answer different questions: 'preciseNanos' measures
-- how long something took; 'coarseNanos' stamps every submitted command with
-- the time its timeout counts from, and may be one kernel tick (1–4 ms) late
-- in exchange for being cheap. They share no origin that callers may rely on.
module Redis.Internal.Network.Clock
  ( Nanos,
    preciseNanos,
    coarseNanos,
    never,
    nanosFromSeconds,
    durationFromNanos,
    secondsFromNanos,
  )
where

import Data.Int (Int64)
import GHC.Clock (getMonotonicTimeNSec)
import Redis.Duration (Duration, seconds)

-- | Nanoseconds. @Int64@ holds 292 years of them.
type Nanos = Int64

-- | The precise monotonic clock. \(O(1)\), never blocks.
preciseNanos :: IO Nanos
preciseNanos = fromIntegral <$> getMonotonicTimeNSec

-- | A monotonic clock with the resolution of the kernel's tick.
-- \(O(1)\), never blocks.
--
-- Called once per command. An unsafe call, because it neither blocks nor
-- calls back.
foreign import ccall unsafe "redis_client_coarse_nanos"
  coarseNanos :: IO Nanos

-- | The deadline that does not come.
never :: Nanos
never = maxBound

-- | Whole nanoseconds in a number of seconds, saturating far below overflow.
nanosFromSeconds :: Double -> Nanos
nanosFromSeconds amount = round (min 1e9 (max 0 amount) * 1e9)

-- | A number of nanoseconds as a 'Duration', rounded to the microsecond.
durationFromNanos :: Nanos -> Duration
durationFromNanos = seconds . secondsFromNanos

-- | Seconds in a number of nanoseconds.
secondsFromNanos :: Nanos -> Double
secondsFromNanos nanos = fromIntegral nanos / 1e9
