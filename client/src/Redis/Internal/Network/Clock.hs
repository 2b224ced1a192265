-- | Monotonic time, in nanoseconds since an arbitrary point.
--
-- Two clocks, because they answer different questions: 'preciseNanos' measures
-- how long something took; all deadlines are on 'coarseNanos', which is cheap,
-- and may be one kernel tick (1–4 ms) late. They share no origin that callers may rely on.
--
-- A command has a time limit, and so a deadline, which is decided once, when it is run: each thing
-- that it waits for ends at the deadline.
module Redis.Internal.Network.Clock
  ( Nanos,
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
  )
where

import Data.Int (Int64)
import GHC.Clock (getMonotonicTimeNSec)
import Redis.Duration (Duration, inMicroseconds, seconds)
import Redis.Error (Delivery, Error (TimeoutError), TimeoutFailure (..))

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
  | deadlineAt == never = noDeadline
  | otherwise = deadlineAfter ((deadlineAt - now) `quot` 2) now

-- | The seconds that are left, if the time is limited.
secondsLeft :: Nanos -> Deadline -> Maybe Double
secondsLeft now Deadline {deadlineAt}
  | deadlineAt == never = Nothing
  | otherwise = Just (secondsFromNanos (deadlineAt - now))

-- | The error of a command whose time is over.
timedOut :: Delivery -> Deadline -> Error
timedOut delivery deadline = TimeoutError (TimeoutFailure "" delivery (durationFromNanos (deadlineLimit deadline)) Nothing)
