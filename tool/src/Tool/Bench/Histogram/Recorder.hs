-- | The side of a histogram that is written to while the clock runs.
--
-- One recorder belongs to one thread, so recording takes no lock, no atomic
-- operation and no memory: it is a few loads and stores. The rows for each
-- power of two come into being when a value first falls there, because a
-- thousand threads with a full table each would be half a gigabyte, and a
-- thread's latencies span a handful of powers of two.
--
-- Its thread may 'drain' it now and then, which leaves it empty. Others read it
-- with 'snapshot' when its thread has finished.
module Tool.Bench.Histogram.Recorder
  ( Recorder,
    newRecorder,
    record,
    recorded,
    snapshot,
    drain,
  )
where

import Control.Monad (when)
import Data.Foldable (foldrM, for_)
import Data.Primitive.ByteArray
  ( MutableByteArray,
    fillByteArray,
    getSizeofMutableByteArray,
    newByteArray,
    readByteArray,
    writeByteArray,
  )
import Data.Primitive.SmallArray
  ( SmallMutableArray,
    newSmallArray,
    readSmallArray,
    writeSmallArray,
  )
import GHC.Exts (RealWorld)
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram

-- | A histogram in the making.
data Recorder = Recorder
  { -- | Count, sum, minimum, maximum.
    recorderSummary :: {-# UNPACK #-} MutableByteArray RealWorld,
    -- | Row by row; those never touched are empty arrays.
    recorderRows :: {-# UNPACK #-} SmallMutableArray RealWorld Row
  }

type Row = MutableByteArray RealWorld

-- | An empty one: some 600 bytes, and 4 KB for each power of two that occurs.
newRecorder :: IO Recorder
newRecorder = do
  summary <- newByteArray (4 * wordBytes)
  clearSummary summary
  untouched <- newByteArray 0
  rows <- newSmallArray Histogram.rowCount untouched
  pure Recorder {recorderSummary = summary, recorderRows = rows}

-- | Counts a value; a negative one as 0. \(O(1)\). Only for the one thread the
-- recorder belongs to.
record :: Recorder -> Int -> IO ()
record Recorder {recorderSummary, recorderRows} anyValue = do
  let value = max 0 anyValue
      bucket = Histogram.bucketOf value
      row = bucket `quot` Histogram.bucketsPerRow
      place = bucket `rem` Histogram.bucketsPerRow
  held <- readByteArray recorderSummary slotCount
  writeByteArray recorderSummary slotCount (held + 1 :: Int)
  total <- readByteArray recorderSummary slotSum
  writeByteArray recorderSummary slotSum (total + value)
  lowest <- readByteArray recorderSummary slotMinimum
  when (value < lowest) $ writeByteArray recorderSummary slotMinimum value
  highest <- readByteArray recorderSummary slotMaximum
  when (value > highest) $ writeByteArray recorderSummary slotMaximum value
  cells <- touchedRow recorderRows row
  before <- readByteArray cells place
  writeByteArray cells place (before + 1 :: Int)

touchedRow :: SmallMutableArray RealWorld Row -> Int -> IO Row
touchedRow rows row = do
  cells <- readSmallArray rows row
  size <- getSizeofMutableByteArray cells
  if size /= 0
    then pure cells
    else do
      let bytes = Histogram.bucketsPerRow * wordBytes
      fresh <- newByteArray bytes
      fillByteArray fresh 0 bytes 0
      writeSmallArray rows row fresh
      pure fresh

-- | How many values since it was empty. \(O(1)\), from any thread.
recorded :: Recorder -> IO Int
recorded recorder = readByteArray (recorderSummary recorder) slotCount

-- | What has been recorded. \(O(n)\). Not while the owner records.
snapshot :: Recorder -> IO Histogram
snapshot Recorder {recorderSummary, recorderRows} = do
  total <- readByteArray recorderSummary slotSum
  lowest <- readByteArray recorderSummary slotMinimum
  highest <- readByteArray recorderSummary slotMaximum
  held <- foldrM rowCounts [] [0 .. Histogram.rowCount - 1]
  pure (Histogram.fromBuckets (toInteger (total :: Int)) lowest highest held)
  where
    -- Only what is not zero: a thousand recorders are read one after the other.
    rowCounts :: Int -> [(Int, Int)] -> IO [(Int, Int)]
    rowCounts row after = do
      cells <- readSmallArray recorderRows row
      size <- getSizeofMutableByteArray cells
      let cellCount :: Int -> [(Int, Int)] -> IO [(Int, Int)]
          cellCount place rest = do
            count <- readByteArray cells place
            pure $! if count == 0 then rest else (row * Histogram.bucketsPerRow + place, count) : rest
      foldrM cellCount after [0 .. size `quot` wordBytes - 1]

-- | What has been recorded, which is then forgotten. \(O(n)\). Only for the
-- thread that records. The rows are kept, for the values to come are likely to
-- be like those that were.
drain :: Recorder -> IO Histogram
drain recorder@Recorder {recorderSummary, recorderRows} = do
  held <- recorded recorder
  if held == 0
    then pure mempty
    else do
      found <- snapshot recorder
      clearSummary recorderSummary
      for_ [0 .. Histogram.rowCount - 1] $ \row -> do
        cells <- readSmallArray recorderRows row
        size <- getSizeofMutableByteArray cells
        when (size /= 0) $ fillByteArray cells 0 size 0
      pure found

clearSummary :: MutableByteArray RealWorld -> IO ()
clearSummary summary = do
  writeByteArray summary slotCount (0 :: Int)
  writeByteArray summary slotSum (0 :: Int)
  writeByteArray summary slotMinimum (maxBound :: Int)
  writeByteArray summary slotMaximum (0 :: Int)

slotCount, slotSum, slotMinimum, slotMaximum :: Int
slotCount = 0
slotSum = 1
slotMinimum = 2
slotMaximum = 3

wordBytes :: Int
wordBytes = 8
