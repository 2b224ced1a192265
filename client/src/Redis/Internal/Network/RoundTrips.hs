-- | A histogram of durations. Its size is fixed, however many durations it counts, and two can be
-- added.
--
-- A doubling has eight buckets, from a microsecond to a minute. So a duration is known to within an
-- eighth.
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

-- | The times that replies took, from handing the command to the socket to having read its reply:
-- the network and the server, without the time that a command waited in this client. '<>' adds.
data RoundTrips = RoundTrips
  { -- | The sum, in nanoseconds.
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

-- | A histogram, given its sum in nanoseconds and the count of each bucket.
roundTripsOf :: Int -> [Int] -> RoundTrips
roundTripsOf total buckets = RoundTrips {totalNanos = total, tripBuckets = primArrayFromListN bucketCount (take bucketCount (buckets <> repeat 0))}

-- | The number of round trips. \(O(1)\).
roundTripCount :: RoundTrips -> Int
roundTripCount = foldlPrimArray' (+) 0 . tripBuckets

-- | The sum of all round trips, as if they had come one after the other, though many overlapped.
roundTripTotal :: RoundTrips -> Duration
roundTripTotal = durationOf . totalNanos

-- | A time within which this fraction of the round trips was over: 0.5 gives the median, 0.99 the
-- time that one in a hundred exceeded. It is at most an eighth too long. 'Nothing' if there were
-- none, or if it is more than 68 seconds. \(O(1)\).
roundTripWithin :: Double -> RoundTrips -> Maybe Duration
roundTripWithin part trips
  | count <= 0 = Nothing
  | otherwise = case dropWhile ((< wanted) . snd) (cumulative trips) of
    (Just end, _) : _ -> Just (durationOf end)
    _ -> Nothing
  where
    count = roundTripCount trips
    wanted = max 1 (ceiling (max 0 (min 1 part) * fromIntegral count)) :: Int

-- | The end of each bucket, with the number of round trips in it and in those before.
cumulative :: RoundTrips -> [(Maybe Int, Int)]
cumulative trips = zip (map bucketEnd [0 .. bucketCount - 1]) (drop 1 (scanl (+) 0 (primArrayToList (tripBuckets trips))))

-- | A time in nanoseconds, rounded up to a microsecond, so that it stays an upper bound.
durationOf :: Int -> Duration
durationOf nanos = seconds (fromIntegral ((nanos + 999) `quot` 1000) / 1e6)

-- | The bucket of a time in nanoseconds. Total.
bucketOf :: Int -> Int
bucketOf nanos
  | nanos < 1024 = 0
  | doubling > lastDoubling = bucketCount - 1
  | otherwise = 1 + (doubling - firstDoubling) * 8 + ((nanos `unsafeShiftR` (doubling - 3)) .&. 7)
  where
    doubling = finiteBitSize nanos - 1 - countLeadingZeros nanos

-- | The end of a bucket, in nanoseconds; every time in the bucket is less. The last bucket has no
-- end.
bucketEnd :: Int -> Maybe Int
bucketEnd bucket
  | bucket <= 0 = Just 1024
  | bucket >= bucketCount - 1 = Nothing
  | otherwise = Just ((9 + step) `unsafeShiftL` (doubling + firstDoubling - 3))
  where
    (doubling, step) = (bucket - 1) `quotRem` 8

bucketCount :: Int
bucketCount = 2 + (lastDoubling - firstDoubling + 1) * 8

-- | The doublings that have buckets: from 2¹⁰ ns, a microsecond, to 2³⁶ ns, 69 seconds.
firstDoubling, lastDoubling :: Int
firstDoubling = 10
lastDoubling = 35
