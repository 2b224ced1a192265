-- | What the threads of one capability count, slice by slice.
--
-- They take turns on one core, so that what they share stays in its near cache,
-- and every addition is atomic (see "Tool.Bench.Atomic"): counting takes no
-- lock and nothing is ever lost. Threads of different capabilities share nothing.
--
-- Whatever the length of a run, it has two sides: one that is counted into, and
-- one that holds the slice before. The first thread that finds the clock past the
-- end of a slice changes sides, which is one word written, so that all counts of
-- a command are of the same slice. The side that was left is handed over as a
-- 'Part' half a slice later, when a thread of another core that was just counting
-- has long finished; that costs a fraction of a millisecond each second. Others
-- pick up the parts when they like.
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
    errorClass,
  )
where

import Control.Monad (foldM, void, when)
import Data.Foldable (toList)
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
import Data.Primitive.SmallArray (SmallArray, indexSmallArray, sizeofSmallArray, smallArrayFromList)
import Data.Text (Text)
import Data.Text qualified as Text
import GHC.Exts (RealWorld)
import Redis.Error (ConnectionFailure (..), Error (..), RoutingFailure (..), ServerError (serverErrorCode), TimeoutFailure (timeoutDelivery))
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
  { tallyWindow :: Window,
    tallyEven :: Side,
    tallyOdd :: Side,
    -- | See the slots.
    tallyTurns :: {-# UNPACK #-} MutableByteArray RealWorld,
    -- | Handed over and not yet collected.
    tallyParts :: IORef [(Int, Part)]
  }

-- What is counted in one slice.
data Side = Side
  { -- Service times by kind.
    sideService :: {-# UNPACK #-} SmallArray Recorder,
    sideResponse :: {-# UNPACK #-} SmallArray Recorder,
    sideNodes :: {-# UNPACK #-} SmallArray Recorder,
    sideSchedule :: {-# UNPACK #-} Recorder,
    -- Hits and misses by kind.
    sideHits :: {-# UNPACK #-} MutableByteArray RealWorld,
    -- By kind, node and class.
    sideErrors :: IORef (Map (Int, Int, Text) Int)
  }

-- | Nothing counted; the slice is that of the given moment.
newTally :: Window -> Shape -> Nanos -> IO Tally
newTally window shape now = do
  turns <- zeros 6
  tally <- Tally window <$> newSide shape <*> newSide shape <*> pure turns <*> newIORef []
  writeByteArray turns slotIdle noSlice
  writeByteArray turns slotDue never
  enter tally now >>= dueAt tally
  pure tally

newSide :: Shape -> IO Side
newSide shape =
  Side <$> recorders (shapeKinds shape) <*> recorders (shapeKinds shape) <*> recorders (shapeNodes shape)
    <*> newRecorder
    <*> zeros (2 * shapeKinds shape)
    <*> newIORef Map.empty
  where
    recorders count = smallArrayFromList <$> traverse (const newRecorder) [1 .. count]

-- So many words, and a cache line on either side: different cores do not contend.
zeros :: Int -> IO (MutableByteArray RealWorld)
zeros count = do
  words' <- newByteArray size
  words' <$ fillByteArray words' 0 size 0
  where
    size = 8 * (margin + count + 8)

-- | A command of that kind was sent to that node, then answered. Closed loops.
-- A negative node is one that is not known.
answered :: Tally -> Int -> Int -> Nanos -> Nanos -> Outcome -> IO ()
answered tally !kind !node !sent !done =
  judged tally kind node done $ \side -> serviceOf side kind node (done - sent)

-- | A command of that kind was due, then sent to that node, then answered. Open
-- loops.
answeredWithin :: Tally -> Int -> Int -> Nanos -> Nanos -> Nanos -> Outcome -> IO ()
answeredWithin tally !kind !node !due !sent !done =
  judged tally kind node done $ \side -> serviceOf side kind node (done - sent) >> responseOf side kind (done - due)

-- What was answered well counts as served.
judged :: Tally -> Int -> Int -> Nanos -> (Side -> IO ()) -> Outcome -> IO ()
judged tally kind node done served = \case
  Done -> turn tally done >>= served
  Hit -> turn tally done >>= \side -> served side >> hit side kind
  Miss -> turn tally done >>= \side -> served side >> missed side kind
  Wrong _ -> turn tally done >>= \side -> noteError side kind node "WrongReply"
  -- Nobody looked at it; that must not pass for a hit.
  Found _ -> turn tally done >>= \side -> noteError side kind node "NotCompared"
{-# INLINE judged #-}

serviceOf :: Side -> Int -> Int -> Nanos -> IO ()
serviceOf side kind node took = do
  record (indexSmallArray (sideService side) kind) took
  when (node >= 0 && node < sizeofSmallArray (sideNodes side)) $ record (indexSmallArray (sideNodes side) node) took
{-# INLINE serviceOf #-}

responseOf :: Side -> Int -> Nanos -> IO ()
responseOf side kind = record (indexSmallArray (sideResponse side) kind)
{-# INLINE responseOf #-}

hit, missed :: Side -> Int -> IO ()
hit side kind = Atomic.add (sideHits side) (hitsOf kind) 1
missed side kind = Atomic.add (sideHits side) (missesOf kind) 1
{-# INLINE hit #-}
{-# INLINE missed #-}

-- | A command of that kind to that node failed, at that moment. Never counted as
-- answered.
failed :: Tally -> Int -> Int -> Nanos -> Error -> IO ()
failed tally kind node now problem = do
  side <- turn tally now
  noteError side kind node (Text.pack (errorClass problem))

noteError :: Side -> Int -> Int -> Text -> IO ()
noteError side kind node name =
  atomicModifyIORef' (sideErrors side) (\before -> (Map.insertWith (+) (kind, node, name) 1 before, ()))

-- | A command was due, and sent at that moment.
lagged :: Tally -> Nanos -> Nanos -> IO ()
lagged tally due sent = do
  side <- turn tally sent
  record (sideSchedule side) (sent - due)

-- Before something is counted: where? From here on nothing is allocated until
-- all of a command is counted, so that no other thread of this core gets in
-- between: arguments and outcomes are evaluated before.
turn :: Tally -> Nanos -> IO Side
turn tally now = do
  due <- readByteArray (tallyTurns tally) slotDue
  when (now >= due) (turnOver tally now due)
  current tally
{-# INLINE turn #-}

current :: Tally -> IO Side
current tally = sideAt tally <$> readByteArray (tallyTurns tally) slotSide
{-# INLINE current #-}

sideAt :: Tally -> Int -> Side
sideAt tally side = if side == 0 then tallyEven tally else tallyOdd tally
{-# INLINE sideAt #-}

-- For the first who finds it due: the side that was left is handed over, and if
-- the slice is over as well, the next one begins on that side. What others
-- count meanwhile falls into the one slice or the other.
turnOver :: Tally -> Nanos -> Nanos -> IO ()
turnOver tally now due = do
  first <- Atomic.replaceIf turns slotDue due never
  when first $ do
    handOverIdle tally
    end <- readByteArray turns slotEnd
    if now < end
      then dueAt tally end
      else do
        left <- readByteArray turns slotSlice
        side <- readByteArray turns slotSide
        middle <- enter tally now
        writeByteArray turns slotIdle (left :: Int)
        writeByteArray turns slotSide (1 - side :: Int)
        dueAt tally middle
  where
    turns = tallyTurns tally
{-# NOINLINE turnOver #-}

-- What comes next belongs to the slice of that moment. Half of what is left of
-- it has passed at the moment that is returned.
enter :: Tally -> Nanos -> IO Nanos
enter tally now = do
  limit <- windowEnd window
  let slice = sliceOf window now
  if now >= limit
    then never <$ put afterwards never
    else do
      let end = min limit (sliceEnd window slice)
      now + (end - now) `div` 2 <$ put slice end
  where
    window = tallyWindow tally
    put :: Int -> Nanos -> IO ()
    put slice end = do
      writeByteArray (tallyTurns tally) slotSlice slice
      writeByteArray (tallyTurns tally) slotEnd end

-- When something is to be done next. Atomic, and last: who finds it due sees all
-- that was written before.
dueAt :: Tally -> Nanos -> IO ()
dueAt tally = void . Atomic.replaceIf (tallyTurns tally) slotDue never

-- | Makes parts of what was counted and not handed over yet. \(O(n)\). To be
-- called when all threads have finished; while they count it happens by itself.
handOver :: Tally -> IO ()
handOver tally = do
  handOverIdle tally
  slice <- readByteArray (tallyTurns tally) slotSlice
  current tally >>= partOf >>= push tally slice

-- The side that is not counted into, if it holds a slice.
handOverIdle :: Tally -> IO ()
handOverIdle tally = do
  slice <- readByteArray turns slotIdle
  when (slice /= noSlice) $ do
    side <- readByteArray turns slotSide
    writeByteArray turns slotIdle noSlice
    partOf (sideAt tally (1 - side)) >>= push tally slice
  where
    turns = tallyTurns tally
{-# NOINLINE handOverIdle #-}

push :: Tally -> Int -> Part -> IO ()
push tally slice part = do
  Atomic.add (tallyTurns tally) slotBefore (partOps part)
  when (part /= mempty) $ atomicModifyIORef' (tallyParts tally) (\parts -> ((slice, part) : parts, ()))

-- What was counted on a side, which then holds nothing.
partOf :: Side -> IO Part
partOf side = do
  errors <- atomicModifyIORef' (sideErrors side) (\found -> (Map.empty, found))
  kinds <- traverse kindCounts [0 .. sizeofSmallArray (sideService side) - 1]
  nodes <- traverse drain (toList (sideNodes side))
  schedule <- drain (sideSchedule side)
  pure
    Part
      { partKinds = IntMap.unionWith (<>) (IntMap.fromList [pair | pair@(_, counts) <- zip [0 ..] kinds, counts /= mempty]) (errorsByKind errors),
        partNodes = IntMap.fromList [pair | pair@(_, found) <- zip [0 ..] nodes, Histogram.count found > 0],
        partNodeErrors = IntMap.fromListWith (Map.unionWith (+)) [(node, Map.singleton name held) | ((_, node, name), held) <- Map.toList errors, node >= 0],
        partSchedule = schedule
      }
  where
    kindCounts kind = do
      service <- drain (indexSmallArray (sideService side) kind)
      response <- drain (indexSmallArray (sideResponse side) kind)
      hits <- Atomic.take' (sideHits side) (hitsOf kind)
      misses <- Atomic.take' (sideHits side) (missesOf kind)
      pure KindCounts {kindService = service, kindResponse = response, kindHits = hits, kindMisses = misses, kindErrors = Map.empty}
    errorsByKind errors =
      IntMap.fromListWith (<>) [(kind, mempty {kindErrors = Map.singleton name held}) | ((kind, _, name), held) <- Map.toList errors]

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
  before <- readByteArray (tallyTurns tally) slotBefore
  now <- traverse recorded (foldMap (toList . sideService) [tallyEven tally, tallyOdd tally])
  pure (before + sum now)

-- | One word or two: few enough classes to count.
errorClass :: Error -> String
errorClass = \case
  ReplyError problem -> "ReplyError " <> filter (/= '"') (show (serverErrorCode problem))
  UnexpectedReply _ -> "UnexpectedReply"
  ConnectionError failure -> "ConnectionError " <> show (connectionDelivery failure) <> " " <> connection (connectionCause failure)
  TimeoutError failure -> "TimeoutError " <> show (timeoutDelivery failure)
  RoutingError failure -> "RoutingError " <> show (routingDelivery failure) <> " " <> constructor (routingCause failure)
  RefusedError _ -> "RefusedError"
  ClientClosed -> "ClientClosed"
  where
    connection = \case
      Redis.ConnectFailed _ -> "ConnectFailed"
      cause -> constructor cause

    constructor :: Show cause => cause -> String
    constructor = takeWhile (/= ' ') . show

-- Past the first cache line: the side that is counted into, its slice, when that
-- ends, and when something is to be done next; the slice that the other side
-- holds; how many were answered in what was handed over.
margin, slotSide, slotSlice, slotEnd, slotDue, slotIdle, slotBefore :: Int
margin = 8
slotSide = margin
slotSlice = margin + 1
slotEnd = margin + 2
slotDue = margin + 3
slotIdle = margin + 4
slotBefore = margin + 5

-- Where hits and misses of a kind stand.
hitsOf, missesOf :: Int -> Int
hitsOf kind = margin + 2 * kind
missesOf kind = hitsOf kind + 1

-- | The number of no slice.
noSlice :: Int
noSlice = minBound
