-- | How long things took, as counts in buckets: of a fixed size however many there were,
-- and two can be added.
--
-- An eighth of a doubling is one bucket, from a microsecond to a minute. So a time is
-- known to within an eighth.
module Redis.Internal.Network.RoundTrips
  ( RoundTrips,
    roundTripsOf,
    roundTripCount,
    roundTripTotal,
    roundTripWithin,

    -- * Buckets
    totalNanos,
    cumulative,
    bucketOf,
    bucketEnd,
    bucketCount,
  )
where

import Data.Bits (countLeadingZeros, finiteBitSize, unsafeShiftL, unsafeShiftR, (.&.))
import Data.Primitive.PrimArray
import Redis.Duration (Duration, seconds)

-- | Times that replies took, from when the command was handed to the socket to when its
-- reply had been read: the network and the server, without what a command waited in this
-- client. '<>' adds.
--
-- @since 0.1.0.0
data RoundTrips = RoundTrips
  { -- | In nanoseconds.
    totalNanos :: Int,
    tripBuckets :: PrimArray Int
  }
  deriving stock (Eq)

instance Show RoundTrips where
  showsPrec level trips =
    showParen (level > 10) . showString $
      "RoundTrips: " <> show (roundTripCount trips) <> " in " <> show (roundTripTotal trips)

instance Semigroup RoundTrips where
  one <> other =
    RoundTrips
      { totalNanos = totalNanos one + totalNanos other,
        tripBuckets = generatePrimArray bucketCount (\bucket -> indexPrimArray (tripBuckets one) bucket + indexPrimArray (tripBuckets other) bucket)
      }

instance Monoid RoundTrips where
  mempty = roundTripsOf 0 []

-- | Of a sum in nanoseconds, and of how many fell into each bucket.
roundTripsOf :: Int -> [Int] -> RoundTrips
roundTripsOf total buckets = RoundTrips {totalNanos = total, tripBuckets = primArrayFromListN bucketCount (take bucketCount (buckets <> repeat 0))}

-- | How many there were. \(O(1)\).
--
-- @since 0.1.0.0
roundTripCount :: RoundTrips -> Int
roundTripCount = foldlPrimArray' (+) 0 . tripBuckets

-- | How long they took in all; one after the other, though many were under way together.
--
-- @since 0.1.0.0
roundTripTotal :: RoundTrips -> Duration
roundTripTotal = durationOf . totalNanos

-- | A time within which this part of them was answered: 0.5 is the median, 0.99 what one in
-- a hundred exceeded. It is at most an eighth too long. 'Nothing' if there were none, or if it is more
-- than 68 seconds. \(O(1)\).
--
-- @since 0.1.0.0
roundTripWithin :: Double -> RoundTrips -> Maybe Duration
roundTripWithin part trips
  | count <= 0 = Nothing
  | otherwise = case dropWhile ((< wanted) . snd) (cumulative trips) of
    (Just end, _) : _ -> Just (durationOf end)
    _ -> Nothing
  where
    count = roundTripCount trips
    wanted = max 1 (ceiling (max 0 (min 1 part) * fromIntegral count)) :: Int

-- | Where each bucket ends, and how many are within it and those before.
cumulative :: RoundTrips -> [(Maybe Int, Int)]
cumulative trips = zip (map bucketEnd [0 .. bucketCount - 1]) (drop 1 (scanl (+) 0 (primArrayToList (tripBuckets trips))))

-- | Rounded up to a microsecond: what was shorter is within it.
durationOf :: Int -> Duration
durationOf nanos = seconds (fromIntegral ((nanos + 999) `quot` 1000) / 1e6)

-- | The bucket of a time. Total.
bucketOf :: Int -> Int
bucketOf nanos
  | nanos < 1024 = 0
  | doubling > lastDoubling = bucketCount - 1
  | otherwise = 1 + (doubling - firstDoubling) * 8 + ((nanos `unsafeShiftR` (doubling - 3)) .&. 7)
  where
    doubling = finiteBitSize nanos - 1 - countLeadingZeros nanos

-- | Where a bucket ends, in nanoseconds; what falls in it is less. The last one has no end.
bucketEnd :: Int -> Maybe Int
bucketEnd bucket
  | bucket <= 0 = Just 1024
  | bucket >= bucketCount - 1 = Nothing
  | otherwise = Just ((9 + step) `unsafeShiftL` (doubling + firstDoubling - 3))
  where
    (doubling, step) = (bucket - 1) `quotRem` 8

bucketCount :: Int
bucketCount = 2 + (lastDoubling - firstDoubling + 1) * 8

-- | From 2¹⁰ ns, a microsecond, to 2³⁶ ns, 69 seconds.
firstDoubling, lastDoubling :: Int
firstDoubling = 10
lastDoubling = 35
