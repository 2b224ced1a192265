{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}

-- | Counts that all callers share, and the JSON report that is made of them, by
-- @compare/PROTOCOL.md@.
module Count
  ( Counts,
    newCounts,
    Counter (..),
    add,
    latency,

    -- * The window
    openWindow,
    closeWindow,
    isOpen,
    isOver,

    -- * Report
    Window (..),
    report,
  )
where

import Control.Concurrent (getNumCapabilities)
import Control.Monad (forM, unless)
import Data.Bits (countLeadingZeros, finiteBitSize, shiftL, shiftR)
import Data.List (intercalate)
import Data.Primitive.ByteArray
  ( MutableByteArray (..),
    fillByteArray,
    newPinnedByteArray,
    readByteArray,
    writeByteArray,
  )
import Data.Version (showVersion)
import Data.Word (Word64)
import GHC.Exts (Int (I#), RealWorld, casIntArray#, fetchAddIntArray#)
import GHC.IO (IO (..))
import GHC.RTS.Flags (GCFlags (..), getGCFlags)
import Numeric (showFFloat, showHex)
import Options (Options (..))
import Stream (streamCheck)
import System.Info (compilerName, compilerVersion)

-- | The counters, and after them the histogram of latencies.
newtype Counts = Counts (MutableByteArray RealWorld)

-- | The counters.
data Counter = Phase | Done | Hits | Misses | Wrong | Errors | Gets | Sets | Most
  deriving stock (Bounded, Enum)

counters, buckets :: Int
counters = 1 + fromEnum (maxBound :: Counter)
buckets = 64 * 58

-- | New counts, all zero.
newCounts :: IO Counts
newCounts = do
  array <- newPinnedByteArray ((counters + buckets) * 8)
  fillByteArray array 0 ((counters + buckets) * 8) 0
  pure (Counts array)

-- | Adds to a counter.
add :: Counts -> Counter -> Int -> IO ()
add counts counter = addAt counts (fromEnum counter)

addAt :: Counts -> Int -> Int -> IO ()
addAt (Counts (MutableByteArray array)) (I# index) (I# amount) =
  IO (\state -> case fetchAddIntArray# array index amount state of (# after, _ #) -> (# after, () #))

get :: Counts -> Counter -> IO Int
get (Counts array) counter = readByteArray array (fromEnum counter)

-- | Counts this many commands, each of which took this many nanoseconds.
latency :: Counts -> Word64 -> Int -> IO ()
latency counts took times = do
  addAt counts (counters + bucketOf took) times
  get counts Most >>= raise
  where
    longest = fromIntegral took :: Int
    -- Another caller may raise it meanwhile.
    raise most = unless (longest <= most) $ do
      seen <- compareAndSwap counts (fromEnum Most) most longest
      unless (seen == most) (raise seen)

compareAndSwap :: Counts -> Int -> Int -> Int -> IO Int
compareAndSwap (Counts (MutableByteArray array)) (I# index) (I# old) (I# new) =
  IO (\state -> case casIntArray# array index old new state of (# after, seen #) -> (# after, I# seen #))

-- 64 buckets for each power of two; below 128 one for each number.
bucketOf :: Word64 -> Int
bucketOf value
  | value < 128 = fromIntegral value
  | otherwise = shift * 64 + fromIntegral (value `shiftR` shift)
  where
    shift = finiteBitSize value - 1 - countLeadingZeros value - 6

bucketEnd :: Int -> Int
bucketEnd bucket
  | bucket < 128 = bucket
  | otherwise = ((bucket - shift * 64 + 1) `shiftL` shift) - 1
  where
    shift = bucket `div` 64 - 1

-- | Opens the window: replies count from here on.
openWindow :: Counts -> IO ()
openWindow (Counts array) = writeByteArray array (fromEnum Phase) (1 :: Int)

-- | Closes the window: replies do not count any more, and callers stop.
closeWindow :: Counts -> IO ()
closeWindow (Counts array) = writeByteArray array (fromEnum Phase) (2 :: Int)

isOpen, isOver :: Counts -> IO Bool
isOpen counts = (== 1) <$> get counts Phase
isOver counts = (== 2) <$> get counts Phase

-- | The values that are read at each end of the window.
data Window = Window
  { -- | Nanoseconds.
    windowTime :: Word64,
    -- | Picoseconds.
    windowCpu :: Integer,
    -- | Bytes.
    windowAllocated :: Word64
  }

-- | The report as a JSON object.
report :: Options -> Counts -> String -> Int -> Window -> Window -> IO String
report options counts@(Counts array) version connections opened closed = do
  done <- get counts Done
  most <- get counts Most
  counted <- forM [("total_ops", Done), ("hits", Hits), ("misses", Misses), ("wrong", Wrong), ("errors", Errors)] (named counts)
  sent <- forM [("all_get", Gets), ("all_set", Sets)] (named counts)
  histogram <- forM [0 .. buckets - 1] (\bucket -> readByteArray array (counters + bucket))
  let seconds = fromIntegral (windowTime closed - windowTime opened) / 1e9 :: Double
      allocated = fromIntegral (windowAllocated closed - windowAllocated opened) / fromIntegral done :: Double
      steps = scanl1 (+) (histogram :: [Int])
      percentile share =
        let rank = max 1 (ceiling (share * fromIntegral done :: Double))
         in minimum (most : take 1 [bucketEnd bucket | (bucket, seen) <- zip [0 ..] steps, seen >= rank])
      quoted text = show (text :: String)
      decimals digits value = showFFloat (Just digits) value ""
      object fields = "{" <> intercalate ", " [quoted name <> ": " <> value | (name, value) <- fields] <> "}"
  flags <- runtimeFlags
  pure . object $
    [ ("schema", quoted "redis-client-compare-peer/1"),
      ("client", quoted "hedis"),
      ("version", quoted version),
      ("runtime", quoted (compilerName <> " " <> showVersion compilerVersion)),
      ("operation", quoted (optionsOperation options)),
      ("ops_per_sec", decimals 1 (fromIntegral done / seconds)),
      ("duration_sec", decimals 6 seconds),
      ("latency", object [(name, show (percentile share)) | (name, share) <- percentiles]),
      ("cpu_ns", show ((windowCpu closed - windowCpu opened) `div` 1000)),
      ("connections", show connections),
      ("stream_check", quoted ("0x" <> showHex (streamCheck (optionsSeed options)) "")),
      ("notes", "[" <> quoted "a connection for each caller" <> ", " <> quoted flags <> "]")
    ]
      <> counted
      <> sent
      <> [("alloc_bytes_per_op", decimals 1 allocated) | done > 0]
  where
    named from (name, counter) = (,) name . show <$> get from counter
    percentiles = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99_9", 0.999), ("max", 1)]

-- The flags with which the runtime really runs, wherever they were set.
runtimeFlags :: IO String
runtimeFlags = do
  capabilities <- getNumCapabilities
  flags <- getGCFlags
  -- The runtime counts blocks of 4 KiB.
  let allocation = show (4 * minAllocAreaSize flags) <> "k"
  pure (unwords (["-threaded", "-N" <> show capabilities, "-A" <> allocation] <> ["-I0" | not (doIdleGC flags)]))
