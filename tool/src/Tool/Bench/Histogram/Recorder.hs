-- | The side of a histogram that is written to while the clock runs.
--
-- One recorder belongs to the threads of one capability. They take turns on one
-- core, so that its words stay in that core's near cache: with a recorder for
-- each of 256 threads, a seventh of all processor time went into fetching their
-- tables. Recording is atomic word by word, so nothing is lost whenever the
-- scheduler changes threads, nor if one moves to another core.
--
-- It has a cell for every bucket that there can be, 225 KB, of which a load
-- touches a few pages. 'drain' leaves it empty.
module Tool.Bench.Histogram.Recorder
  ( Recorder,
    newRecorder,
    record,
    recorded,
    drain,
  )
where

import Data.Primitive.ByteArray
  ( MutableByteArray,
    fillByteArray,
    newByteArray,
    readByteArray,
    writeByteArray,
  )
import GHC.Exts (RealWorld)
import Tool.Bench.Atomic
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram

-- | A histogram in the making: sum, minimum and maximum, then the cells.
newtype Recorder = Recorder (MutableByteArray RealWorld)

-- | An empty one.
newRecorder :: IO Recorder
newRecorder = do
  -- A cache line on either side: it is another core's that comes next.
  cells <- newByteArray size
  fillByteArray cells 0 size 0
  writeByteArray cells slotMinimum (maxBound :: Int)
  pure (Recorder cells)
  where
    size = 8 * (slotCells + cellCount + 8)

-- | Counts a value; a negative one as 0. \(O(1)\), from any thread.
record :: Recorder -> Int -> IO ()
record (Recorder cells) anyValue = do
  let value = max 0 anyValue
  add cells (slotCells + Histogram.bucketOf value) 1
  add cells slotSum value
  least cells slotMinimum value
  greatest cells slotMaximum value

-- | How many values since it was empty. \(O(n)\) in the cells, some ten
-- microseconds; from any thread.
recorded :: Recorder -> IO Int
recorded (Recorder cells) = go 0 0
  where
    go :: Int -> Int -> IO Int
    go !place !sum'
      | place == cellCount = pure sum'
      | otherwise = readByteArray cells (slotCells + place) >>= go (place + 1) . (sum' +)

-- | What has been recorded, which is then forgotten. \(O(n)\) in the cells. A
-- value that another thread is recording at that moment is in this histogram or
-- in the next; which of them has its part of the sum is not said.
drain :: Recorder -> IO Histogram
drain (Recorder cells) = do
  held <- cellsBy (take' cells)
  -- A sum without a cell is that of a value in the histogram before: it stays.
  total <- if null held then pure 0 else take' cells slotSum
  lowest <- readByteArray cells slotMinimum
  highest <- readByteArray cells slotMaximum
  writeByteArray cells slotMinimum (maxBound :: Int)
  writeByteArray cells slotMaximum (0 :: Int)
  pure (histogramOf total lowest highest held)

-- Only what is not zero, from the last bucket to the first.
cellsBy :: (Int -> IO Int) -> IO [(Int, Int)]
cellsBy look = go [] (cellCount - 1)
  where
    go held !bucket
      | bucket < 0 = pure held
      | otherwise = do
        count <- look (slotCells + bucket)
        go (if count == 0 then held else (bucket, count) : held) (bucket - 1)
{-# INLINE cellsBy #-}

-- An extreme that is not in the outermost bucket belongs to a value of another
-- histogram.
histogramOf :: Int -> Int -> Int -> [(Int, Int)] -> Histogram
histogramOf total lowest highest held = case held of
  [] -> mempty
  (first, _) : others ->
    let final = foldr (\(bucket, _) after -> max bucket after) first others
     in Histogram.fromBuckets (toInteger total) (within first lowest) (within final highest) held
  where
    within bucket value
      | Histogram.bucketOf value == bucket = value
      | otherwise = Histogram.bucketMiddle bucket

cellCount :: Int
cellCount = Histogram.rowCount * Histogram.bucketsPerRow

-- Past the first cache line.
slotSum, slotMinimum, slotMaximum, slotCells :: Int
slotSum = 8
slotMinimum = 9
slotMaximum = 10
slotCells = 16
