-- | What one worker counts. Nobody else writes to it, so counting takes no lock
-- and no atomic operation; it is read when the worker has finished, and for
-- progress, where a number that is about right is right enough.
module Tool.Bench.Tally
  ( Tally (..),
    newTally,
    answeredGet,
    answeredSet,
    failed,
    inWindow,
    Window (..),

    -- * Reading
    Totals (..),
    totals,
    measuredSoFar,
  )
where

import Control.Monad (when)
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
import GHC.Exts (RealWorld)
import Redis.Error (ConnectionCause, Error (..), ServerError (serverErrorCode))
import Redis.Error qualified as Redis
import Tool.Bench.Counts (CommandCounts (..))
import Tool.Bench.Cpu (Nanos)
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram.Recorder (Recorder, newRecorder, record, recorded, snapshot)

-- | The counters of one worker.
data Tally = Tally
  { tallyGets :: Recorder,
    tallySets :: Recorder,
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

-- | All zero.
newTally :: IO Tally
newTally = do
  -- A cache line on either side: workers on different cores do not contend.
  counters <- newByteArray (3 * cacheLine)
  fillByteArray counters 0 (3 * cacheLine) 0
  Tally <$> newRecorder <*> newRecorder <*> pure counters <*> newIORef Map.empty
  where
    cacheLine = 64

-- | A GET was submitted, then answered, and found something or not.
answeredGet :: Window -> Tally -> Nanos -> Nanos -> Bool -> IO ()
answeredGet window tally start done hit = do
  increment tally slotGets
  when (inWindow window done) $ do
    record (tallyGets tally) (done - start)
    increment tally (if hit then slotHits else slotMisses)

-- | A SET was submitted, then answered.
answeredSet :: Window -> Tally -> Nanos -> Nanos -> IO ()
answeredSet window tally start done = do
  increment tally slotSets
  when (inWindow window done) $ record (tallySets tally) (done - start)

-- | A command failed. Never counted as an operation.
failed :: Tally -> Error -> IO ()
failed tally problem = modifyIORef' (tallyErrors tally) (Map.insertWith (+) (errorClass problem) 1)

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
  { -- | Latencies inside the window.
    totalGets :: Histogram,
    totalSets :: Histogram,
    -- | Inside the window.
    totalHits :: Int,
    totalMisses :: Int,
    -- | From the first command to the last, by class.
    totalErrors :: Map String Int,
    -- | From the first command to the last.
    totalAnswered :: CommandCounts
  }

instance Semigroup Totals where
  one <> other =
    Totals
      { totalGets = totalGets one <> totalGets other,
        totalSets = totalSets one <> totalSets other,
        totalHits = totalHits one + totalHits other,
        totalMisses = totalMisses one + totalMisses other,
        totalErrors = Map.unionWith (+) (totalErrors one) (totalErrors other),
        totalAnswered = totalAnswered one <> totalAnswered other
      }

instance Monoid Totals where
  mempty = Totals mempty mempty 0 0 Map.empty mempty

-- | What a worker that has finished counted.
totals :: Tally -> IO Totals
totals tally = do
  gets <- snapshot (tallyGets tally)
  sets <- snapshot (tallySets tally)
  hits <- counter slotHits
  misses <- counter slotMisses
  errors <- readIORef (tallyErrors tally)
  answered <- CommandCounts <$> counter slotGets <*> counter slotSets
  pure
    Totals
      { totalGets = gets,
        totalSets = sets,
        totalHits = hits,
        totalMisses = misses,
        totalErrors = errors,
        totalAnswered = answered
      }
  where
    counter = readByteArray (tallyCounters tally)

-- | Commands measured so far; from any thread.
measuredSoFar :: Tally -> IO Int
measuredSoFar tally = (+) <$> recorded (tallyGets tally) <*> recorded (tallySets tally)

-- Past the first cache line.
slotGets, slotSets, slotHits, slotMisses :: Int
slotGets = 8
slotSets = 9
slotHits = 10
slotMisses = 11
