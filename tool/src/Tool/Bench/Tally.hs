-- | What one worker counts. Nobody else writes to it, so counting takes no lock
-- and no atomic operation; it is read when the worker has finished, and for
-- progress, where a number that is about right is right enough.
module Tool.Bench.Tally
  ( Tally (..),
    newTally,
    answered,
    failed,
    inWindow,
    Window (..),

    -- * Reading
    Totals (..),
    KindTotals (..),
    totals,
    measuredSoFar,
  )
where

import Control.Monad (replicateM, when)
import Data.Foldable (toList)
import Data.IORef (IORef, modifyIORef', newIORef, readIORef)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Primitive.ByteArray
  ( MutableByteArray,
    fillByteArray,
    newByteArray,
    readByteArray,
    writeByteArray,
  )
import Data.Primitive.SmallArray (SmallArray, indexSmallArray, sizeofSmallArray, smallArrayFromList)
import GHC.Exts (RealWorld)
import Redis.Error (ConnectionCause, Error (..), ServerError (serverErrorCode))
import Redis.Error qualified as Redis
import Tool.Bench.Cpu (Nanos)
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram.Recorder (Recorder, newRecorder, record, recorded, snapshot)
import Tool.Bench.Workload.Drawn (Outcome (..))

-- | The counters of one worker. Kinds of operation are numbers from zero.
data Tally = Tally
  { -- | Latencies, kind by kind.
    tallyRecorders :: {-# UNPACK #-} SmallArray Recorder,
    tallyCounters :: {-# UNPACK #-} MutableByteArray RealWorld,
    tallyErrors :: IORef (Map String Int)
  }

-- | When measuring begins and ends, on the monotonic clock.
data Window = Window
  { windowFrom :: Nanos,
    windowTo :: Nanos
  }

-- | Whether something that ended then is measured.
inWindow :: Window -> Nanos -> Bool
inWindow window time = time >= windowFrom window && time < windowTo window

-- | All zero, for so many kinds.
newTally :: Int -> IO Tally
newTally kinds = do
  -- A cache line on either side: workers on different cores do not contend.
  let size = 2 * cacheLine + kinds * slotsPerKind * wordBytes
  counters <- newByteArray size
  fillByteArray counters 0 size 0
  recorders <- replicateM kinds newRecorder
  Tally (smallArrayFromList recorders) counters <$> newIORef Map.empty

-- | An operation of this kind was submitted, then answered, and this was the
-- answer. A wrong one is a failure.
answered :: Window -> Tally -> Int -> Nanos -> Nanos -> Outcome -> IO ()
answered window tally kind start done outcome = do
  increment tally (slotOf kind offsetAnswered)
  case outcome of
    Wrong _ -> failedAs tally "WrongReply"
    _ -> when (inWindow window done) $ do
      record (indexSmallArray (tallyRecorders tally) kind) (done - start)
      case outcome of
        Hit -> increment tally (slotOf kind offsetHits)
        Miss -> increment tally (slotOf kind offsetMisses)
        _ -> pure ()
{-# INLINE answered #-}

-- | A command failed. Never counted as an operation.
failed :: Tally -> Error -> IO ()
failed tally = failedAs tally . errorClass

failedAs :: Tally -> String -> IO ()
failedAs tally name = modifyIORef' (tallyErrors tally) (Map.insertWith (+) name 1)

-- | One word or two: few enough classes to count.
errorClass :: Error -> String
errorClass = \case
  ReplyError problem -> "ReplyError " <> filter (/= '"') (show (serverErrorCode problem))
  UnexpectedReply _ -> "UnexpectedReply"
  ConnectionError delivery _ cause -> "ConnectionError " <> show delivery <> " " <> constructor cause
  TimeoutError delivery _ -> "TimeoutError " <> show delivery
  RoutingError delivery _ -> "RoutingError " <> show delivery
  RefusedError _ -> "RefusedError"
  ClientClosed -> "ClientClosed"
  where
    constructor :: ConnectionCause -> String
    constructor = \case
      Redis.ConnectFailed _ -> "ConnectFailed"
      cause -> takeWhile (/= ' ') (show cause)

increment :: Tally -> Int -> IO ()
increment tally slot = do
  before <- readByteArray (tallyCounters tally) slot
  writeByteArray (tallyCounters tally) slot (before + 1 :: Int)

-- | The sums over all workers.
data Totals = Totals
  { -- | Kind by kind.
    totalKinds :: [KindTotals],
    -- | From the first command to the last, by class.
    totalErrors :: Map String Int
  }

-- | The sums of one kind.
data KindTotals = KindTotals
  { -- | Latencies inside the window.
    kindLatencies :: Histogram,
    -- | Inside the window.
    kindHits :: Int,
    kindMisses :: Int,
    -- | From the first command to the last, wrong replies included.
    kindAnswered :: Int
  }

instance Semigroup Totals where
  one <> other =
    Totals
      { totalKinds = longZip (totalKinds one) (totalKinds other),
        totalErrors = Map.unionWith (+) (totalErrors one) (totalErrors other)
      }
    where
      longZip (a : as) (b : bs) = (a <> b) : longZip as bs
      longZip as [] = as
      longZip [] bs = bs

instance Monoid Totals where
  mempty = Totals [] Map.empty

instance Semigroup KindTotals where
  one <> other =
    KindTotals
      { kindLatencies = kindLatencies one <> kindLatencies other,
        kindHits = kindHits one + kindHits other,
        kindMisses = kindMisses one + kindMisses other,
        kindAnswered = kindAnswered one + kindAnswered other
      }

instance Monoid KindTotals where
  mempty = KindTotals mempty 0 0 0

-- | What a worker that has finished counted.
totals :: Tally -> IO Totals
totals tally = Totals <$> traverse kindTotals [0 .. kinds - 1] <*> readIORef (tallyErrors tally)
  where
    kinds = sizeofSmallArray (tallyRecorders tally)
    kindTotals kind =
      KindTotals
        <$> snapshot (indexSmallArray (tallyRecorders tally) kind)
        <*> counter (slotOf kind offsetHits)
        <*> counter (slotOf kind offsetMisses)
        <*> counter (slotOf kind offsetAnswered)
    counter = readByteArray (tallyCounters tally)

-- | Operations measured so far; from any thread.
measuredSoFar :: Tally -> IO Int
measuredSoFar tally = sum <$> traverse recorded (toList (tallyRecorders tally))

-- Past the first cache line.
slotOf :: Int -> Int -> Int
slotOf kind offset = cacheLine `quot` wordBytes + kind * slotsPerKind + offset

slotsPerKind, offsetAnswered, offsetHits, offsetMisses :: Int
slotsPerKind = 3
offsetAnswered = 0
offsetHits = 1
offsetMisses = 2

cacheLine, wordBytes :: Int
cacheLine = 64
wordBytes = 8
