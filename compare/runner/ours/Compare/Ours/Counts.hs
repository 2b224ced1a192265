{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}

-- | The counts of our own peer while it runs: the latencies of all callers in one histogram, and
-- the few events that should not happen.
--
-- All callers share it. A thousand separate histograms would not fit into the processor's cache,
-- and adding to a counter atomically costs five nanoseconds.
module Compare.Ours.Counts
  ( Counts,
    newCounts,
    Counter (..),
    add,
    read',
    record,

    -- * Afterwards
    Latencies (..),
    latencies,
  )
where

import Control.Monad (when)
import Data.Bits (countLeadingZeros, finiteBitSize, shiftL, shiftR)
import Data.Primitive.ByteArray
  ( MutableByteArray (MutableByteArray),
    fillByteArray,
    newPinnedByteArray,
    readByteArray,
  )
import GHC.Exts (Int (I#), RealWorld, casIntArray#, fetchAddIntArray#)
import GHC.IO (IO (IO))

-- | Counters and the histogram.
newtype Counts = Counts (MutableByteArray RealWorld)

-- | The counters besides latencies.
data Counter
  = -- | GETs in the window that found a value.
    Hits
  | -- | GETs in the window that found no value.
    Misses
  | -- | Replies that differ from the stored value.
    Wrong
  | -- | Commands that failed.
    Errors
  | -- | The greatest latency in the window.
    Longest
  deriving stock (Eq, Show, Enum, Bounded)

-- | New counts, all zero.
newCounts :: IO Counts
newCounts = do
  array <- newPinnedByteArray size
  fillByteArray array 0 size 0
  pure (Counts array)
  where
    size = 8 * (reserved + bucketCount)

-- | Adds to a counter, atomically. \(O(1)\).
add :: Counts -> Counter -> Int -> IO ()
add (Counts array) counter = fetchAdd array (fromEnum counter)
{-# INLINE add #-}

-- | The value of a counter. \(O(1)\).
read' :: Counts -> Counter -> IO Int
read' (Counts array) counter = readByteArray array (fromEnum counter)

-- | Counts a latency in nanoseconds. \(O(1)\).
record :: Counts -> Int -> IO ()
record (Counts array) anyValue = do
  let value = max 0 anyValue
  fetchAdd array (reserved + bucketOf value) 1
  longest <- readByteArray array place
  when (value > longest) (raise longest value)
  where
    place = fromEnum Longest
    raise longest value = do
      seen <- compareAndSwap array place longest value
      when (seen /= longest && value > seen) (raise seen value)

fetchAdd :: MutableByteArray RealWorld -> Int -> Int -> IO ()
fetchAdd (MutableByteArray array) (I# place) (I# amount) =
  IO $ \state -> case fetchAddIntArray# array place amount state of
    (# after, _ #) -> (# after, () #)
{-# INLINE fetchAdd #-}

compareAndSwap :: MutableByteArray RealWorld -> Int -> Int -> Int -> IO Int
compareAndSwap (MutableByteArray array) (I# place) (I# old) (I# new) =
  IO $ \state -> case casIntArray# array place old new state of
    (# after, seen #) -> (# after, I# seen #)

-- The counters have a cache line of their own.
reserved :: Int
reserved = 8

-- 128 buckets for each power of two: less than 0.8 % wide.
bucketBits :: Int
bucketBits = 7

bucketCount :: Int
bucketCount = (64 - bucketBits) `shiftL` bucketBits

bucketOf :: Int -> Int
bucketOf value = (shift `shiftL` bucketBits) + (value `shiftR` shift)
  where
    width = finiteBitSize value - countLeadingZeros value
    shift = max 0 (width - 1 - bucketBits)

-- The greatest value that falls into the bucket.
bucketEnd :: Int -> Int
bucketEnd bucket = ((top + 1) `shiftL` shift) - 1
  where
    shift = max 0 ((bucket `shiftR` bucketBits) - 1)
    top = bucket - (shift `shiftL` bucketBits)

-- | Percentiles of the latencies, in nanoseconds.
data Latencies = Latencies
  { latenciesCount :: Int,
    latenciesP50 :: Int,
    latenciesP90 :: Int,
    latenciesP95 :: Int,
    latenciesP99 :: Int,
    latenciesP999 :: Int,
    latenciesMax :: Int
  }
  deriving stock (Eq, Show)

-- | The recorded latencies; call this when no caller records any more. \(O(n)\).
latencies :: Counts -> IO Latencies
latencies counts@(Counts array) = do
  held <- traverse (\bucket -> (,) bucket <$> readByteArray array (reserved + bucket)) [0 .. bucketCount - 1]
  longest <- read' counts Longest
  let total = sum (map snd held)
      percentile :: Double -> Int
      percentile wanted =
        let rank = max 1 (ceiling (fromIntegral total * wanted / 100)) :: Int
            upTo = scanl1 (\(_, before) (bucket, here) -> (bucket, before + here)) held
         in case dropWhile ((< rank) . snd) upTo of
              (bucket, _) : _ -> min longest (bucketEnd bucket)
              [] -> longest
  pure
    Latencies
      { latenciesCount = total,
        latenciesP50 = percentile 50,
        latenciesP90 = percentile 90,
        latenciesP95 = percentile 95,
        latenciesP99 = percentile 99,
        latenciesP999 = percentile 99.9,
        latenciesMax = longest
      }
