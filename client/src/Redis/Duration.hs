-- | Lengths of time. Servers count in seconds here and in milliseconds there;
-- a 'Duration' says which it was made of, and a command turns it into what the
-- server takes.
module Redis.Duration
  ( Duration,

    -- * Making them
    seconds,
    milliseconds,
    microseconds,
    minutes,
    hours,
    days,

    -- * Taking them apart
    inSeconds,
    inWholeSeconds,
    inMilliseconds,
    inMicroseconds,
  )
where

import Data.Int (Int64)

-- | A length of time, to the microsecond; negative ones are in the past. Some
-- 290 000 years fit.
--
-- @since 0.1.0.0
newtype Duration = Duration Int64
  deriving stock (Eq, Ord)
  deriving newtype (Bounded)

-- | Such as @90.5 s@.
instance Show Duration where
  showsPrec level duration = showParen (level > 10) (showString "seconds " . showsPrec 11 (inSeconds duration))

-- | One after the other.
instance Semigroup Duration where
  Duration a <> Duration b = clamped (toInteger a + toInteger b)

-- | 'mempty' is no time at all.
instance Monoid Duration where
  mempty = Duration 0

-- | So many seconds, rounded to a microsecond. What does not fit becomes the
-- longest that does.
--
-- @since 0.1.0.0
seconds :: Double -> Duration
seconds amount
  | isNaN amount = Duration 0
  | otherwise = clamped (round (max (-1e19) (min 1e19 (amount * 1e6))))

-- | So many milliseconds.
--
-- @since 0.1.0.0
milliseconds :: Int64 -> Duration
milliseconds = times 1000

-- | So many microseconds.
--
-- @since 0.1.0.0
microseconds :: Int64 -> Duration
microseconds = Duration

-- | So many minutes.
--
-- @since 0.1.0.0
minutes :: Int64 -> Duration
minutes = times 60000000

-- | So many hours.
--
-- @since 0.1.0.0
hours :: Int64 -> Duration
hours = times 3600000000

-- | So many days of 24 hours.
--
-- @since 0.1.0.0
days :: Int64 -> Duration
days = times 86400000000

times :: Int64 -> Int64 -> Duration
times unit amount
  | abs (toInteger amount) <= toInteger (maxBound `quot` unit) = Duration (amount * unit)
  | otherwise = clamped (toInteger amount * toInteger unit)

clamped :: Integer -> Duration
clamped amount = Duration (fromInteger (max (toInteger (minBound :: Int64)) (min (toInteger (maxBound :: Int64)) amount)))

-- | Seconds, with a fraction.
--
-- @since 0.1.0.0
inSeconds :: Duration -> Double
inSeconds (Duration micros) = fromIntegral micros / 1e6

-- | Seconds, and 'Nothing' if it is not a whole number of them.
--
-- @since 0.1.0.0
inWholeSeconds :: Duration -> Maybe Int64
inWholeSeconds (Duration micros) = case micros `quotRem` 1000000 of
  (whole, 0) -> Just whole
  _ -> Nothing

-- | Milliseconds, rounded up: a thing that is to live for a while lives no
-- shorter.
--
-- @since 0.1.0.0
inMilliseconds :: Duration -> Int64
inMilliseconds (Duration micros) = case micros `divMod` 1000 of
  (whole, 0) -> whole
  (whole, _) -> whole + 1

-- | Microseconds.
--
-- @since 0.1.0.0
inMicroseconds :: Duration -> Int64
inMicroseconds (Duration micros) = micros
