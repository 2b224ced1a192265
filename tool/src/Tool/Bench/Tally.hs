-- | What the threads of one capability count, slice by slice.
--
-- They take turns on one core, so that what they share stays in its near cache,
-- and every addition is atomic (see "Tool.Bench.Atomic"): counting takes no
-- lock and nothing is ever lost. Threads of different capabilities share nothing.
--
-- Whatever the length of a run, it holds one slice: the first thread that finds
-- the clock past the end of that hands the slice over as a 'Part' and lets the
-- next begin, which costs a fraction of a millisecond each second. Others pick
-- up the parts when they like.
module Tool.Bench.Tally
  ( Tally,
    Shape (..),
    newTally,

    -- * Counting; from any thread
    answered,
    answeredWithin,
    failed,
    lagged,
    handOver,

    -- * Reading; from any thread
    collect,
    answeredSoFar,
  )
where

import Control.Monad (foldM, when)
import Data.IORef (IORef, atomicModifyIORef', newIORef)
import Data.IntMap.Strict qualified as IntMap
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Primitive.ByteArray
  ( MutableByteArray,
    fillByteArray,
    newByteArray,
    readByteArray,
    writeByteArray,
  )
import Data.Primitive.SmallArray (SmallArray, indexSmallArray, smallArrayFromList)
import Data.Text (Text)
import Data.Text qualified as Text
import GHC.Exts (RealWorld)
import Redis.Error (ConnectionCause, Error (..), ServerError (serverErrorCode))
import Redis.Error qualified as Redis
import Tool.Bench.Atomic qualified as Atomic
import Tool.Bench.Cpu (Nanos)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Histogram.Recorder (Recorder, drain, newRecorder, record, recorded)
import Tool.Bench.Part
import Tool.Bench.Window
import Tool.Bench.Workload.Drawn (Outcome (..))

-- | What there is to count.
data Shape = Shape
  { -- | Kinds of commands.
    shapeKinds :: Int,
    -- | Nodes; 0 if they are not told apart.
    shapeNodes :: Int
  }
  deriving stock (Eq, Show)

-- | The counters of one capability.
data Tally = Tally
  { tallyShape :: Shape,
    tallyWindow :: Window,
    -- | Service times by kind.
    tallyService :: {-# UNPACK #-} SmallArray Recorder,
    tallyResponse :: {-# UNPACK #-} SmallArray Recorder,
    tallyNodes :: {-# UNPACK #-} SmallArray Recorder,
    tallySchedule :: Recorder,
    -- | Which slice it is, when that ends, how many were answered in slices
    -- before; then hits and misses by kind.
    tallyCounters :: {-# UNPACK #-} MutableByteArray RealWorld,
    -- | By kind, node and class.
    tallyErrors :: IORef (Map (Int, Int, Text) Int),
    -- | Handed over and not yet collected.
    tallyParts :: IORef [(Int, Part)]
  }

-- | Nothing counted; the slice is that of the given moment.
newTally :: Window -> Shape -> Nanos -> IO Tally
newTally window shape now = do
  -- A cache line on either side: different cores do not contend.
  counters <- newByteArray size
  fillByteArray counters 0 size 0
  service <- recorders (shapeKinds shape)
  response <- recorders (shapeKinds shape)
  nodes <- recorders (shapeNodes shape)
  tally <- Tally shape window service response nodes <$> newRecorder <*> pure counters <*> newIORef Map.empty <*> newIORef []
  tally <$ enter tally now
  where
    size = 8 * (slotKinds + 2 * shapeKinds shape + 8)
    recorders count = smallArrayFromList <$> traverse (const newRecorder) [1 .. count]

-- | A command of that kind was sent to that node, then answered. Closed loops.
-- A negative node is one that is not known.
answered :: Tally -> Int -> Int -> Nanos -> Nanos -> Outcome -> IO ()
answered tally kind node sent done outcome = do
  turn tally done
  well tally kind node outcome $ record (indexSmallArray (tallyService tally) kind) (done - sent)
  onNode tally node (done - sent)

-- | A command of that kind was due, then sent to that node, then answered. Open
-- loops.
answeredWithin :: Tally -> Int -> Int -> Nanos -> Nanos -> Nanos -> Outcome -> IO ()
answeredWithin tally kind node due sent done outcome = do
  turn tally done
  well tally kind node outcome $ do
    record (indexSmallArray (tallyService tally) kind) (done - sent)
    record (indexSmallArray (tallyResponse tally) kind) (done - due)
  onNode tally node (done - sent)

well :: Tally -> Int -> Int -> Outcome -> IO () -> IO ()
well tally kind node outcome count = case outcome of
  Done -> count
  Hit -> count >> increment tally (slotKinds + 2 * kind)
  Miss -> count >> increment tally (slotKinds + 2 * kind + 1)
  Wrong _ -> noteError tally kind node "WrongReply"
{-# INLINE well #-}

-- | A command of that kind to that node failed, at that moment. Never counted as
-- answered.
failed :: Tally -> Int -> Int -> Nanos -> Error -> IO ()
failed tally kind node now problem = do
  turn tally now
  noteError tally kind node (Text.pack (errorClass problem))

noteError :: Tally -> Int -> Int -> Text -> IO ()
noteError tally kind node name =
  atomicModifyIORef' (tallyErrors tally) (\before -> (Map.insertWith (+) (kind, node, name) 1 before, ()))

-- | A command was due, and sent at that moment.
lagged :: Tally -> Nanos -> Nanos -> IO ()
lagged tally due sent = do
  turn tally sent
  record (tallySchedule tally) (sent - due)

-- A node answered within so many nanoseconds.
onNode :: Tally -> Int -> Nanos -> IO ()
onNode tally node took = when (node >= 0 && node < shapeNodes (tallyShape tally)) $ record (indexSmallArray (tallyNodes tally) node) took
{-# INLINE onNode #-}

increment :: Tally -> Int -> IO ()
increment tally slot = Atomic.add (tallyCounters tally) slot 1
{-# INLINE increment #-}

-- Before something is counted: is it still the same slice?
turn :: Tally -> Nanos -> IO ()
turn tally now = do
  end <- readByteArray (tallyCounters tally) slotEnd
  when (now >= end) (turnOver tally now end)
{-# INLINE turn #-}

-- For the first who finds it over. What others count meanwhile falls into the
-- one slice or the other.
turnOver :: Tally -> Nanos -> Nanos -> IO ()
turnOver tally now end = do
  first <- Atomic.replaceIf (tallyCounters tally) slotEnd end never
  when first (handOver tally >> enter tally now)
{-# NOINLINE turnOver #-}

-- What comes next belongs to the slice of that moment.
enter :: Tally -> Nanos -> IO ()
enter tally now = do
  limit <- windowEnd window
  let slice = sliceOf window now
  if now >= limit
    then put afterwards never
    else put slice (min limit (sliceEnd window slice))
  where
    window = tallyWindow tally
    put :: Int -> Nanos -> IO ()
    put slice end = do
      writeByteArray (tallyCounters tally) slotSlice slice
      writeByteArray (tallyCounters tally) slotEnd end
{-# NOINLINE enter #-}

-- | Makes a part of what was counted since the last one. \(O(n)\). To be called
-- when all threads have finished; while they count it happens by itself.
handOver :: Tally -> IO ()
handOver tally = do
  slice <- readByteArray counters slotSlice
  errors <- atomicModifyIORef' (tallyErrors tally) (\found -> (Map.empty, found))
  kinds <- traverse kindCounts [0 .. shapeKinds shape - 1]
  nodes <- traverse (drain . indexSmallArray (tallyNodes tally)) [0 .. shapeNodes shape - 1]
  schedule <- drain (tallySchedule tally)
  let counted =
        Part
          { partKinds = IntMap.unionWith (<>) (IntMap.fromList [pair | pair@(_, counts) <- zip [0 ..] kinds, counts /= mempty]) (errorsByKind errors),
            partNodes = IntMap.fromList [pair | pair@(_, found) <- zip [0 ..] nodes, Histogram.count found > 0],
            partNodeErrors = IntMap.fromListWith (Map.unionWith (+)) [(node, Map.singleton name held) | ((_, node, name), held) <- Map.toList errors, node >= 0],
            partSchedule = schedule
          }
  Atomic.add counters slotBefore (partOps counted)
  when (counted /= mempty) $ atomicModifyIORef' (tallyParts tally) (\parts -> ((slice, counted) : parts, ()))
  where
    counters = tallyCounters tally
    shape = tallyShape tally
    kindCounts kind = do
      service <- drain (indexSmallArray (tallyService tally) kind)
      response <- drain (indexSmallArray (tallyResponse tally) kind)
      hits <- Atomic.take' counters (slotKinds + 2 * kind)
      misses <- Atomic.take' counters (slotKinds + 2 * kind + 1)
      pure KindCounts {kindService = service, kindResponse = response, kindHits = hits, kindMisses = misses, kindErrors = Map.empty}
    errorsByKind errors =
      IntMap.fromListWith (<>) [(kind, mempty {kindErrors = Map.singleton name held}) | ((kind, _, name), held) <- Map.toList errors]
{-# NOINLINE handOver #-}

-- | Takes the parts that were handed over since the last time, and adds them
-- to others.
collect :: Tally -> Parts -> IO Parts
collect tally before = do
  found <- atomicModifyIORef' (tallyParts tally) (\parts -> ([], parts))
  foldM (\parts (slice, part) -> pure $! IntMap.insertWith (<>) slice part parts) before found

-- | How many commands were answered well since the start; about right while the
-- thread counts.
answeredSoFar :: Tally -> IO Int
answeredSoFar tally = do
  before <- readByteArray (tallyCounters tally) slotBefore
  now <- traverse (recorded . indexSmallArray (tallyService tally)) [0 .. shapeKinds (tallyShape tally) - 1]
  pure (before + sum now)

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

-- Past the first cache line.
slotSlice, slotEnd, slotBefore, slotKinds :: Int
slotSlice = 8
slotEnd = 9
slotBefore = 10
slotKinds = 11
