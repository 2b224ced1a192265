{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}

-- | Counts of a client's connections to a node, for as long as the client lives: connections come
-- and go, their counts stay.
--
-- Counts are words that any thread adds to with one atomic step. Times go into a histogram of a
-- fixed size. It has lanes, and each capability writes to one of them. While there are enough lanes,
-- readers on different capabilities do not write to the same words.
--
-- A histogram has eight buckets for each doubling, from a microsecond to a minute. So a duration is
-- known to within an eighth.
module Redis.Internal.Network.Counters
  ( Counters (..),
    newCounters,
    siblingCounters,

    -- * Counts
    Count (..),
    countOne,
    countOf,
    countError,
    addTo,

    -- * Times
    recordTimes,
    timesSeen,
    RoundTrips,
    roundTripsOf,
    roundTripCount,
    roundTripTotal,
    roundTripWithin,
    totalNanos,
    cumulative,
    bucketOf,
    bucketEnd,
    bucketCount,
  )
where

import Control.Monad (forM)
import Control.Monad.Primitive (RealWorld)
import Data.Bits (countLeadingZeros, finiteBitSize, unsafeShiftL, unsafeShiftR, (.&.))
import Data.Primitive.ByteArray
import Data.Primitive.PrimArray
import GHC.Exts (Int (I#), fetchAddIntArray#)
import GHC.IO (IO (IO))
import Redis.Duration (Duration, seconds)
import Redis.Error (Delivery (..))

-- | The counters of the connections of one kind to one node.
data Counters = Counters
  { -- | The counts of the node, for all kinds of connections together.
    countersCounts :: MutableByteArray RealWorld,
    -- | The times of this kind of connection.
    countersTimes :: MutableByteArray RealWorld,
    countersLanes :: Int
  }

-- | Empty counters with so many lanes.
newCounters :: Int -> IO Counters
newCounters lanes = do
  countersCounts <- zeroes (length [minBound .. maxBound :: Count])
  newTimes lanes countersCounts

-- | Counters for another kind of connection to the same node: the same counts, its own times.
siblingCounters :: Int -> Counters -> IO Counters
siblingCounters lanes = newTimes lanes . countersCounts

newTimes :: Int -> MutableByteArray RealWorld -> IO Counters
newTimes lanes countersCounts = do
  countersTimes <- zeroes (laneWords * countersLanes)
  pure Counters {countersCounts, countersTimes, countersLanes}
  where
    countersLanes = max 1 lanes

zeroes :: Int -> IO (MutableByteArray RealWorld)
zeroes size = do
  words' <- newByteArray (size * 8)
  words' <$ setByteArray words' 0 size (0 :: Int)

-- | The things that are counted.
data Count
  = ConnectionsOpened
  | -- | Connections that ended without being closed by this client.
    ConnectionsLost
  | -- | Attempts to open a connection that failed.
    ConnectsFailed
  | RedirectsMoved
  | RedirectsAsk
  | -- | Commands that were sent here after an attempt had failed.
    CommandsResent
  | -- | Errors that callers got, by what a caller may conclude about its command.
    ErrorsNotSent
  | ErrorsRefused
  | ErrorsMaybe
  | -- | Commands that failed because their connection ended, before and after they were sent.
    CutUnsent
  | CutSent
  deriving stock (Eq, Show, Enum, Bounded)

-- | Adds one to a count. \(O(1)\).
countOne :: Counters -> Count -> IO ()
countOne counters what = addTo (countersCounts counters) (fromEnum what) 1

-- | The present value of a count. \(O(1)\).
countOf :: Counters -> Count -> IO Int
countOf counters what = readByteArray (countersCounts counters) (fromEnum what)

-- | Counts an error that a caller got.
countError :: Counters -> Delivery -> IO ()
countError counters = \case
  NotSent -> countOne counters ErrorsNotSent
  RefusedBeforeRun -> countOne counters ErrorsRefused
  MaybeExecuted -> countOne counters ErrorsMaybe

-- | Records that so many commands took so many nanoseconds each, in a capability's lane. \(O(1)\).
recordTimes :: Counters -> Int -> Int -> Int -> IO ()
recordTimes Counters {countersTimes, countersLanes} lane many nanos = do
  addTo countersTimes (start + 1 + bucketOf nanos) many
  addTo countersTimes start (many * max 0 nanos)
  where
    start = laneWords * (lane `rem` countersLanes)

-- | Adds to the number at an index, whatever other threads do.
addTo :: MutableByteArray RealWorld -> Int -> Int -> IO ()
addTo (MutableByteArray words#) (I# index#) (I# amount#) = IO $ \s -> case fetchAddIntArray# words# index# amount# s of
  (# s', _ #) -> (# s', () #)
{-# INLINE addTo #-}

-- | The times of all lanes. A time that is recorded meanwhile may be in the sum alone, or in a bucket alone.
timesSeen :: Counters -> IO RoundTrips
timesSeen Counters {countersTimes, countersLanes} = do
  total <- summed 0
  buckets <- forM [1 .. bucketCount] summed
  pure (roundTripsOf total buckets)
  where
    summed :: Int -> IO Int
    summed word = sum <$> forM [0 .. countersLanes - 1] (\lane -> readByteArray countersTimes (laneWords * lane + word))

-- | The size of a lane in words: the sum and the buckets, in whole cache lines.
laneWords :: Int
laneWords = (1 + bucketCount + 7) `quot` 8 * 8

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

-- | The end of a bucket, in nanoseconds; every time in the bucket is less. The last one has none.
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
