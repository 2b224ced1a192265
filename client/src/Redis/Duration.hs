-- | Lengths of time. Servers count some times in seconds and others in milliseconds. Make a
-- 'Duration' in any unit ('seconds', 'milliseconds', …); each command turns it into the unit that
-- the server takes.
module Redis.Duration
  ( Duration,

    -- * Making durations
    seconds,
    milliseconds,
    microseconds,
    minutes,
    hours,
    days,

    -- * Reading durations
    inSeconds,
    inWholeSeconds,
    inMilliseconds,
    inMicroseconds,
  )
where

import Data.Int (Int64)

-- | A length of time, to the microsecond, up to some 290 000 years. A negative one lies in the past.
newtype Duration = Duration Int64
  deriving stock (Eq, Ord)
  deriving newtype (Bounded)

-- | Such as @seconds 90.5@.
instance Show Duration where
  showsPrec level duration = showParen (level > 10) (showString "seconds " . showsPrec 11 (inSeconds duration))

-- | '<>' adds. A sum that does not fit becomes the nearest duration that does.
instance Semigroup Duration where
  Duration a <> Duration b = clamped (toInteger a + toInteger b)

-- | 'mempty' is zero.
instance Monoid Duration where
  mempty = Duration 0

-- | A duration in seconds, rounded to a microsecond, or the nearest that fits. NaN becomes zero.
seconds :: Double -> Duration
seconds amount
  | isNaN amount = Duration 0
  | otherwise = clamped (round (max (-1e19) (min 1e19 (amount * 1e6))))

-- | A duration in milliseconds, or the nearest that fits; so with 'minutes', 'hours' and 'days'.
milliseconds :: Int64 -> Duration
milliseconds = times 1000

-- | A duration in microseconds.
microseconds :: Int64 -> Duration
microseconds = Duration

-- | A duration in minutes.
minutes :: Int64 -> Duration
minutes = times 60000000

-- | A duration in hours.
hours :: Int64 -> Duration
hours = times 3600000000

-- | A duration in days of 24 hours.
days :: Int64 -> Duration
days = times 86400000000

times :: Int64 -> Int64 -> Duration
times unit amount
  | abs (toInteger amount) <= toInteger (maxBound `quot` unit) = Duration (amount * unit)
  | otherwise = clamped (toInteger amount * toInteger unit)

clamped :: Integer -> Duration
clamped amount = Duration (fromInteger (max (toInteger (minBound :: Int64)) (min (toInteger (maxBound :: Int64)) amount)))

-- | The duration in seconds, with a fraction.
inSeconds :: Duration -> Double
inSeconds (Duration micros) = fromIntegral micros / 1e6

-- | The duration in seconds, or 'Nothing' if it is not a whole number of seconds.
inWholeSeconds :: Duration -> Maybe Int64
inWholeSeconds (Duration micros) = case micros `quotRem` 1000000 of
  (whole, 0) -> Just whole
  _ -> Nothing

-- | The duration in milliseconds, rounded up, so that nothing lives shorter than requested.
inMilliseconds :: Duration -> Int64
inMilliseconds (Duration micros) = case micros `divMod` 1000 of
  (whole, 0) -> whole
  (whole, _) -> whole + 1

-- | The duration in microseconds.
inMicroseconds :: Duration -> Int64
inMicroseconds (Duration micros) = micros
