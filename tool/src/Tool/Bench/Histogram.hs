-- | The distribution of latencies, with the layout of HDR histograms: values below 1024 have a
-- bucket each, and above that each power of two has 512 buckets of equal width, so that a
-- bucket's middle differs from its values by at most 1 part in 1024. Immutable and a 'Monoid':
-- merging loses nothing. "Tool.Bench.Histogram.Recorder" is the mutable form.
module Tool.Bench.Histogram
  ( Histogram,
    fromBuckets,
    fromValues,
    restored,
    buckets,
    count,
    minimumValue,
    maximumValue,
    total,
    mean,
    percentile,
    bucketOf,
    bucketLowest,
    bucketMiddle,
    bucketsPerRow,
    rowCount,
  )
where

import Control.Monad.ST (ST)
import Data.Bits (countLeadingZeros, finiteBitSize, shiftL, shiftR)
import Data.IntMap.Strict qualified as IntMap
import Data.List qualified as List
import Data.Primitive.PrimArray

-- | Counts of values, with the exact extremes and the exact sum.
data Histogram = Histogram
  { -- | The number of values.
    count :: Int,
    -- | The exact sum.
    total :: Integer,
    histogramMinimum :: Int,
    -- | The largest value, exactly; 0 if there is none.
    maximumValue :: Int,
    -- | Bucket, count, bucket, count …: ascending, without empty buckets. A run keeps a histogram
    -- for each command and second, so they are kept small.
    histogramCells :: PrimArray Int
  }
  deriving stock (Eq, Show)

instance Semigroup Histogram where
  Histogram n sum' low high held <> Histogram n' sum'' low' high' held' =
    Histogram (n + n') (sum' + sum'') (min low low') (max high high') (merged held held')

instance Monoid Histogram where
  mempty = Histogram 0 0 maxBound 0 (primArrayFromListN 0 [])

-- | A histogram from sum, exact minimum and maximum, and counts by bucket. \(O(n \log n)\).
fromBuckets :: Integer -> Int -> Int -> [(Int, Int)] -> Histogram
fromBuckets exact lowest highest counts
  | List.null held = mempty
  | otherwise = Histogram (List.foldl' (+) 0 (map snd held)) exact lowest highest (cells held)
  where
    held = filter ((> 0) . snd) counts

-- | A histogram of these values. Negative values count as 0. \(O(n \log n)\).
fromValues :: [Int] -> Histogram
fromValues = \case
  [] -> mempty
  values ->
    let held = map (max 0) values
     in fromBuckets
          (List.foldl' (+) 0 (map toInteger held))
          (List.foldl' min maxBound held)
          (List.foldl' max 0 held)
          [(bucketOf value, 1) | value <- held]

-- | The buckets of a histogram with the exact sum, minimum and maximum from elsewhere.
restored :: Integer -> Int -> Int -> Histogram -> Histogram
restored exact lowest highest = fromBuckets exact lowest highest . buckets

-- | Buckets and counts, ascending, without the empty buckets. \(O(n)\).
buckets :: Histogram -> [(Int, Int)]
buckets = pairs . primArrayToList . histogramCells
  where
    pairs = \case
      bucket : held : rest -> (bucket, held) : pairs rest
      _ -> []

cells :: [(Int, Int)] -> PrimArray Int
cells held =
  primArrayFromListN
    (2 * IntMap.size counts)
    (concat [[bucket, count'] | (bucket, count') <- IntMap.toAscList counts])
  where
    counts = IntMap.fromListWith (+) held

-- Adds two arrays of cells. Both are ascending, and so is the result. \(O(n)\).
merged :: PrimArray Int -> PrimArray Int -> PrimArray Int
merged one other
  | sizeofPrimArray one == 0 = other
  | sizeofPrimArray other == 0 = one
  | otherwise = runPrimArray $ do
    target <- newPrimArray (sizeofPrimArray one + sizeofPrimArray other)
    size <- go target 0 0 0
    shrinkMutablePrimArray target size
    pure target
  where
    go :: MutablePrimArray s Int -> Int -> Int -> Int -> ST s Int
    go target at left right
      | left == sizeofPrimArray one && right == sizeofPrimArray other = pure at
      | bucketLeft < bucketRight = do
        put bucketLeft (countAt one left)
        go target (at + 2) (left + 2) right
      | bucketLeft > bucketRight = do
        put bucketRight (countAt other right)
        go target (at + 2) left (right + 2)
      | otherwise = do
        put bucketLeft (countAt one left + countAt other right)
        go target (at + 2) (left + 2) (right + 2)
      where
        bucketLeft = bucketAt one left
        bucketRight = bucketAt other right
        put bucket held = writePrimArray target at bucket >> writePrimArray target (at + 1) held
    bucketAt array place
      | place == sizeofPrimArray array = maxBound
      | otherwise = indexPrimArray array place
    countAt array place = indexPrimArray array (place + 1)

-- | The smallest value, exactly; 0 if there is none. \(O(1)\).
minimumValue :: Histogram -> Int
minimumValue histogram
  | count histogram == 0 = 0
  | otherwise = histogramMinimum histogram

-- | The exact mean; 0 if there is no value. \(O(1)\).
mean :: Histogram -> Double
mean histogram
  | count histogram == 0 = 0
  | otherwise = fromInteger (total histogram) / fromIntegral (count histogram)

-- | The value that this percentage of all values does not exceed (nearest rank): within 1/1024 of
-- the value of that rank, and never outside the extremes. 0 if there is no value. \(O(n)\) in the
-- number of buckets.
percentile :: Double -> Histogram -> Int
percentile percent histogram
  | count histogram == 0 = 0
  | rank >= count histogram = maximumValue histogram
  | otherwise = walk 0 (buckets histogram)
  where
    rank = max 1 (ceiling (percent * fromIntegral (count histogram) / 100 - 1e-9))
    walk _ [] = maximumValue histogram
    walk seen ((bucket, held) : rest)
      | seen + held >= rank = clamp (bucketMiddle bucket)
      | otherwise = walk (seen + held) rest
    clamp = max (histogramMinimum histogram) . min (maximumValue histogram)

-- Note [Bucket numbers]
-- With v >= 1024 the exponent e = floor (log2 v) - 9 is at least 1 and v >> e
-- lies in 512 .. 1023, so that e * 512 + (v >> e) continues where the buckets
-- of width one (0 .. 1023) end: 1024 has e = 1 and bucket 512 + 512.

-- | The bucket of a value, which must not be negative. \(O(1)\), no allocation.
bucketOf :: Int -> Int
bucketOf value
  | value < 2 * bucketsPerRow = value
  | otherwise =
    let e = finiteBitSize value - 10 - countLeadingZeros value
     in e * bucketsPerRow + (value `shiftR` e)

-- | The smallest value of a bucket. \(O(1)\).
bucketLowest :: Int -> Int
bucketLowest bucket
  | bucket < 2 * bucketsPerRow = bucket
  | otherwise =
    let e = bucket `div` bucketsPerRow - 1
     in (bucket - e * bucketsPerRow) `shiftL` e

-- | The value that stands for a bucket: its middle. \(O(1)\).
bucketMiddle :: Int -> Int
bucketMiddle bucket
  | bucket < 2 * bucketsPerRow = bucket
  | otherwise =
    let e = bucket `div` bucketsPerRow - 1
     in bucketLowest bucket + (1 `shiftL` (e - 1))

-- | Buckets per power of two.
bucketsPerRow :: Int
bucketsPerRow = 512

-- | The number of rows of 'bucketsPerRow' buckets that cover all of 'Int'.
rowCount :: Int
rowCount = finiteBitSize (0 :: Int) - 9
