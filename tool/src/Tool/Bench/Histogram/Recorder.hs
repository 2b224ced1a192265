-- | The mutable form of a histogram, for recording while the clock runs. One recorder belongs to
-- the threads of one capability, so that its words stay in that core's cache. Recording is atomic
-- word by word: nothing is lost when the scheduler changes threads, nor when a thread moves to
-- another core.
module Tool.Bench.Histogram.Recorder
  ( Recorder,
    newRecorder,
    record,
    recorded,
    drain,
  )
where

import Data.Primitive.ByteArray
import GHC.Exts (RealWorld)
import Tool.Bench.Atomic
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram

-- | A histogram that is being recorded: sum, minimum and maximum, then the cells.
newtype Recorder = Recorder (MutableByteArray RealWorld)

-- | Makes an empty recorder.
newRecorder :: IO Recorder
newRecorder = do
  -- A cache line of space on either side: the memory next to it may belong to another core.
  cells <- newByteArray size
  fillByteArray cells 0 size 0
  writeByteArray cells slotMinimum (maxBound :: Int)
  pure (Recorder cells)
  where
    size = 8 * (slotCells + cellCount + 8)

-- | Counts a value. A negative value counts as 0. \(O(1)\), from any thread.
record :: Recorder -> Int -> IO ()
record (Recorder cells) anyValue = do
  let value = max 0 anyValue
  add cells (slotCells + Histogram.bucketOf value) 1
  add cells slotSum value
  least cells slotMinimum value
  greatest cells slotMaximum value

-- | How many values were recorded since the recorder was empty. \(O(n)\) in the cells; from any
-- thread.
recorded :: Recorder -> IO Int
recorded (Recorder cells) = go 0 0
  where
    go :: Int -> Int -> IO Int
    go !place !sum'
      | place == cellCount = pure sum'
      | otherwise = readByteArray cells (slotCells + place) >>= go (place + 1) . (sum' +)

-- | Returns the recorded values and empties the recorder. \(O(n)\) in the cells. A value that
-- another thread records at that moment is in this histogram or in the next, and its part of the
-- sum may be in the other one.
drain :: Recorder -> IO Histogram
drain (Recorder cells) = do
  held <- cellsBy (take' cells)
  -- A sum without a cell belongs to a value of an earlier histogram: it stays.
  total <- if null held then pure 0 else take' cells slotSum
  lowest <- readByteArray cells slotMinimum
  highest <- readByteArray cells slotMaximum
  writeByteArray cells slotMinimum (maxBound :: Int)
  writeByteArray cells slotMaximum (0 :: Int)
  pure (histogramOf total lowest highest held)

-- The cells that are not zero, from the first bucket to the last.
cellsBy :: (Int -> IO Int) -> IO [(Int, Int)]
cellsBy look = go [] (cellCount - 1)
  where
    go held !bucket
      | bucket < 0 = pure held
      | otherwise = do
        count <- look (slotCells + bucket)
        go (if count == 0 then held else (bucket, count) : held) (bucket - 1)
{-# INLINE cellsBy #-}

-- An extreme that does not lie in the outermost bucket belongs to a value of another histogram.
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

-- After the first cache line.
slotSum, slotMinimum, slotMaximum, slotCells :: Int
slotSum = 8
slotMinimum = 9
slotMaximum = 10
slotCells = 16
