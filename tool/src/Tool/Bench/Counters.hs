-- | The counters of one capability's threads, slice by slice. Every addition is atomic
-- ("Tool.Bench.Atomic"): counting takes no lock and loses nothing.
--
-- They have two sides: threads count on one, and the other holds the slice before. The first
-- thread that finds the clock past the end of a slice changes sides; half a slice later the old
-- side is handed over as a 'Part'. A thread is entered on its side while it counts, and a side is
-- handed over only when no thread is entered there, so all counts of a command belong to the same
-- slice. That may delay a change, so what comes after the window has a third side of its own.
module Tool.Bench.Counters
  ( -- * The window
    Window,
    newWindow,
    windowAnchor,
    windowSpan,
    endAt,
    windowEnd,
    sliceOf,
    sliceStart,
    never,
    Counters,
    Shape (..),
    Sides,
    newSides,
    countersOf,

    -- * Counting; from any thread
    Sent (..),
    answered,
    answeredWithin,
    failed,
    lagged,
    handOver,
    Side,
    counting,
    served,
    looked,

    -- * Reading; from any thread
    collect,
    answeredSoFar,
    errorClass,

    -- * What was counted
    Part (..),
    Parts,
    KindCounts (..),
    afterwards,
    partOps,
    partErrors,
  )
where

import Control.Monad (foldM, void, when)
import Data.Foldable (toList)
import Data.IORef (IORef, atomicModifyIORef', newIORef)
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Primitive.ByteArray
import Data.Primitive.SmallArray (SmallArray, indexSmallArray, sizeofSmallArray, smallArrayFromList)
import Data.Text (Text)
import Data.Text qualified as Text
import GHC.Exts (RealWorld)
import Redis.Error
import Tool.Bench.Atomic qualified as Atomic
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Histogram.Recorder (Recorder, drain, newRecorder, record, recorded)
import Tool.Bench.Time (Nanos)
import Tool.Bench.Workload.Dataset (Outcome (..))

-- | The measured window of a run and its slices, which are numbered from the anchor; those before it
-- belong to the warm-up. The end may be set while the workers, who share the window, run; they read
-- it before each round.
data Window = Window
  { -- | Where slice 0 begins, on the monotonic clock.
    windowAnchor :: {-# UNPACK #-} Nanos,
    -- | The length of a slice.
    windowSpan :: {-# UNPACK #-} Nanos,
    windowLimit :: {-# UNPACK #-} MutableByteArray RealWorld
  }

-- | Makes a window without an end so far. Takes the anchor and the length of a slice.
newWindow :: Nanos -> Nanos -> IO Window
newWindow anchor size = do
  -- A cache line on either side: all threads read it and hardly any writes it.
  limit <- newByteArray 192
  writeByteArray limit 8 never
  pure Window {windowAnchor = anchor, windowSpan = max 1 size, windowLimit = limit}

endAt :: Window -> Nanos -> IO ()
endAt window = writeByteArray (windowLimit window) 8

-- | The end of the window, or 'never' if it is not known yet. \(O(1)\).
windowEnd :: Window -> IO Nanos
windowEnd window = readByteArray (windowLimit window) 8
{-# INLINE windowEnd #-}

-- | The slice of a moment. \(O(1)\).
sliceOf :: Window -> Nanos -> Int
sliceOf window time = (time - windowAnchor window) `div` windowSpan window

-- | The begin of a slice. \(O(1)\).
sliceStart :: Window -> Int -> Nanos
sliceStart window slice = windowAnchor window + slice * windowSpan window

-- | A moment later than any of a run.
never :: Nanos
never = maxBound

-- | The sizes of the counters.
data Shape = Shape
  { -- | The number of kinds of commands.
    shapeKinds :: Int,
    -- | The number of nodes; 0 if they are not distinguished.
    shapeNodes :: Int
  }

-- | The counters of one capability.
data Counters = Counters
  { countersWindow :: Window,
    countersEven :: Side,
    countersOdd :: Side,
    countersAfter :: Side,
    -- | See the slots below.
    countersTurns :: {-# UNPACK #-} MutableByteArray RealWorld,
    -- | The parts that are handed over and not yet collected.
    countersParts :: IORef [(Int, Part)]
  }

-- The counters of one slice.
data Side = Side
  { -- Service times by kind.
    sideService :: {-# UNPACK #-} SmallArray Recorder,
    sideResponse :: {-# UNPACK #-} SmallArray Recorder,
    sideNodes :: {-# UNPACK #-} SmallArray Recorder,
    sideSchedule :: {-# UNPACK #-} Recorder,
    -- Hits and misses by kind.
    sideHits :: {-# UNPACK #-} MutableByteArray RealWorld,
    -- Errors by kind, node and class.
    sideErrors :: IORef (Map (Int, Int, Text) Int)
  }

-- | The memory of the counters of one capability.
data Sides = Sides Side Side Side

-- | Makes that memory. Takes milliseconds where there are many kinds or nodes.
newSides :: Shape -> IO Sides
newSides shape = Sides <$> newSide shape <*> newSide shape <*> newSide shape

-- | Makes empty counters, whose slice is that of a moment. No two may have the same memory. \(O(1)\).
countersOf :: Window -> Sides -> Nanos -> IO Counters
countersOf window (Sides one other after) now = do
  turns <- zeros 8
  counters <- Counters window one other after turns <$> newIORef []
  writeByteArray turns slotIdle noSlice
  writeByteArray turns slotDue never
  enter counters now >>= dueAt counters
  pure counters

newSide :: Shape -> IO Side
newSide shape =
  Side <$> recorders (shapeKinds shape)
    <*> recorders (shapeKinds shape)
    <*> recorders (shapeNodes shape)
    <*> newRecorder
    <*> zeros (2 * shapeKinds shape)
    <*> newIORef Map.empty
  where
    recorders count = smallArrayFromList <$> traverse (const newRecorder) [1 .. count]

-- This number of words, with a cache line on either side, so that cores do not contend.
zeros :: Int -> IO (MutableByteArray RealWorld)
zeros count = do
  words' <- newByteArray size
  words' <$ fillByteArray words' 0 size 0
  where
    size = 8 * (margin + count + 8)

-- | A command on its way: the number of its kind, the number of its node (negative if unknown), and
-- the time at which it was sent.
data Sent = Sent
  { sentKind :: Int,
    sentNode :: Int,
    sentAt :: Nanos
  }

-- | Counts a command that was answered at this moment; for closed loops.
answered :: Counters -> Sent -> Nanos -> Outcome -> IO ()
answered counters sent !done !outcome =
  counting counters done $ \side -> void (judged side sent done outcome)

-- | Counts a command that was due at the first moment and answered at the second; for open loops.
answeredWithin :: Counters -> Nanos -> Sent -> Nanos -> Outcome -> IO ()
answeredWithin counters !due sent !done !outcome = counting counters done $ \side -> do
  well <- judged side sent done outcome
  when well $ record (indexSmallArray (sideResponse side) (sentKind sent)) (done - due)

-- Counts a reply. One without an error also counts as served. Returns whether it had no error.
judged :: Side -> Sent -> Nanos -> Outcome -> IO Bool
judged side sent done = \case
  Done -> True <$ served side sent done
  Hit -> True <$ (served side sent done >> looked side (sentKind sent) True)
  Miss -> True <$ (served side sent done >> looked side (sentKind sent) False)
  Wrong _ -> False <$ noteError side sent "WrongReply"
  -- The value was never compared, so this must not count as a hit.
  Found _ -> False <$ noteError side sent "NotCompared"
{-# INLINE judged #-}

-- | Counts how long it took to answer a command.
served :: Side -> Sent -> Nanos -> IO ()
served side (Sent kind node sent) done = do
  record (indexSmallArray (sideService side) kind) (done - sent)
  when (node >= 0 && node < sizeofSmallArray (sideNodes side)) $
    record (indexSmallArray (sideNodes side) node) (done - sent)
{-# INLINE served #-}

-- | Counts whether a read of this kind has found something.
looked :: Side -> Int -> Bool -> IO ()
looked side kind hit = Atomic.add (sideHits side) (if hit then hitsOf kind else missesOf kind) 1
{-# INLINE looked #-}

-- | Counts a command that failed at this moment. It never counts as answered.
failed :: Counters -> Sent -> Nanos -> Error -> IO ()
failed counters sent now problem =
  counting counters now $ \side -> noteError side sent (Text.pack (errorClass problem))

noteError :: Side -> Sent -> Text -> IO ()
noteError side (Sent kind node _) name =
  atomicModifyIORef' (sideErrors side) $ \before ->
    (Map.insertWith (+) (kind, node, name) 1 before, ())

-- | Counts the schedule error of a command that was due at the second moment and sent at the third.
-- The first is the end of the plan: what is sent after it counts as sent after the window.
lagged :: Counters -> Nanos -> Nanos -> Nanos -> IO ()
lagged counters end due sent =
  counting counters (if sent > end then never else sent) $ \side ->
    record (sideSchedule side) (sent - due)

-- | Counts something at a moment, all of it on one side, which is not handed over before this ends.
counting :: Counters -> Nanos -> (Side -> IO ()) -> IO ()
counting counters now count = do
  limit <- windowEnd (countersWindow counters)
  if now >= limit
    then count (countersAfter counters)
    else do
      due <- readByteArray turns slotDue
      when (now >= due) (turnOver counters now due)
      enterSide
  where
    turns = countersTurns counters
    -- Enters, then looks again: if the sides were changed in between, another thread may be handing
    -- over this side at the moment.
    enterSide = do
      side <- readByteArray turns slotSide
      Atomic.add turns (slotCounting side) 1
      still <- readByteArray turns slotSide
      if still == side
        then count (sideAt counters side) >> Atomic.add turns (slotCounting side) (-1)
        else Atomic.add turns (slotCounting side) (-1) >> enterSide
{-# INLINE counting #-}

sideAt :: Counters -> Int -> Side
sideAt counters side = if side == 0 then countersEven counters else countersOdd counters
{-# INLINE sideAt #-}

-- Done by the first thread that finds it due. Hands over the old side and, if the current slice is
-- over as well, begins the next slice on that side. What other threads count meanwhile belongs to
-- one of the two slices. While a thread still counts on the old side, this is due again at the next
-- command.
turnOver :: Counters -> Nanos -> Nanos -> IO ()
turnOver counters now due = do
  first <- Atomic.replaceIf turns slotDue due never
  when first $ do
    side <- readByteArray turns slotSide
    others <- readByteArray turns (slotCounting (1 - side)) :: IO Int
    if others > 0 then dueAt counters due else handOverIdle counters >> goOn side
  where
    turns = countersTurns counters
    goOn side = do
      end <- readByteArray turns slotEnd
      if now < end
        then dueAt counters end
        else do
          left <- readByteArray turns slotSlice
          middle <- enter counters now
          writeByteArray turns slotIdle (left :: Int)
          writeByteArray turns slotSide (1 - side :: Int)
          dueAt counters middle
{-# NOINLINE turnOver #-}

-- Makes the slice of this moment the current one. Returns the middle of what is left of the slice.
enter :: Counters -> Nanos -> IO Nanos
enter counters now = do
  let slice = sliceOf window now
      end = sliceStart window (slice + 1)
  writeByteArray (countersTurns counters) slotSlice slice
  writeByteArray (countersTurns counters) slotEnd end
  pure (now + (end - now) `div` 2)
  where
    window = countersWindow counters

-- Sets when the next change is due. Atomic, and written last: a thread that finds it due sees all
-- earlier writes.
dueAt :: Counters -> Nanos -> IO ()
dueAt counters = void . Atomic.replaceIf (countersTurns counters) slotDue never

-- | Makes parts of the counts that are not handed over yet. \(O(n)\). Call it when all threads have
-- finished; while they count, handing over happens by itself.
handOver :: Counters -> IO ()
handOver counters = do
  handOverIdle counters
  slice <- readByteArray (countersTurns counters) slotSlice
  side <- readByteArray (countersTurns counters) slotSide
  partOf (sideAt counters side) >>= push counters slice
  partOf (countersAfter counters) >>= push counters afterwards

-- Hands over the side that no thread counts on, if it holds a slice.
handOverIdle :: Counters -> IO ()
handOverIdle counters = do
  slice <- readByteArray turns slotIdle
  when (slice /= noSlice) $ do
    side <- readByteArray turns slotSide
    writeByteArray turns slotIdle noSlice
    partOf (sideAt counters (1 - side)) >>= push counters slice
  where
    turns = countersTurns counters
{-# NOINLINE handOverIdle #-}

push :: Counters -> Int -> Part -> IO ()
push counters slice part = do
  Atomic.add (countersTurns counters) slotBefore (partOps part)
  when (part /= mempty) $
    atomicModifyIORef' (countersParts counters) (\parts -> ((slice, part) : parts, ()))

-- The counts of a side. The side is empty afterwards.
partOf :: Side -> IO Part
partOf side = do
  errors <- atomicModifyIORef' (sideErrors side) (\found -> (Map.empty, found))
  kinds <- traverse kindCounts [0 .. sizeofSmallArray (sideService side) - 1]
  nodes <- traverse drain (toList (sideNodes side))
  schedule <- drain (sideSchedule side)
  pure
    Part
      { partKinds =
          IntMap.unionWith
            (<>)
            (IntMap.fromList [pair | pair@(_, counts) <- zip [0 ..] kinds, counts /= mempty])
            (errorsByKind errors),
        partNodes =
          IntMap.fromList [pair | pair@(_, found) <- zip [0 ..] nodes, Histogram.count found > 0],
        partNodeErrors =
          IntMap.fromListWith
            (Map.unionWith (+))
            [ (node, Map.singleton name held)
              | ((_, node, name), held) <- Map.toList errors,
                node >= 0
            ],
        partSchedule = schedule
      }
  where
    kindCounts kind =
      KindCounts
        <$> drain (indexSmallArray (sideService side) kind)
        <*> drain (indexSmallArray (sideResponse side) kind)
        <*> Atomic.take' (sideHits side) (hitsOf kind)
        <*> Atomic.take' (sideHits side) (missesOf kind)
        <*> pure Map.empty
    errorsByKind errors =
      IntMap.fromListWith
        (<>)
        [ (kind, mempty {kindErrors = Map.singleton name held})
          | ((kind, _, name), held) <- Map.toList errors
        ]

-- | Takes the parts that were handed over since the last call, and adds them to the given parts.
collect :: Counters -> Parts -> IO Parts
collect counters before = do
  found <- atomicModifyIORef' (countersParts counters) (\parts -> ([], parts))
  foldM (\parts (slice, part) -> pure $! IntMap.insertWith (<>) slice part parts) before found

-- | How many commands were answered without an error so far. Approximate while threads count.
answeredSoFar :: Counters -> IO Int
answeredSoFar counters = do
  before <- readByteArray (countersTurns counters) slotBefore
  now <- traverse recorded (foldMap (toList . sideService) [countersEven counters, countersOdd counters, countersAfter counters])
  pure (before + sum now)

-- | The counts of one slice of a run: those of one capability at first, and those of all once the
-- parts are added up. No count is stored twice, and empty counts are left out.
data Part = Part
  { -- | The counts of each kind of command, by the kind's number.
    partKinds :: IntMap KindCounts,
    -- | The service times of each node, by the node's number.
    partNodes :: IntMap Histogram,
    -- | Errors by the number of the node and by class, where the node is known.
    partNodeErrors :: IntMap (Map Text Int),
    -- | Schedule error: from the time a command was due to the time it was sent.
    partSchedule :: Histogram
  }
  deriving stock (Eq, Show)

data KindCounts = KindCounts
  { kindService :: Histogram,
    -- | From the time the command was due to its reply; empty in a closed loop.
    kindResponse :: Histogram,
    kindHits :: Int,
    kindMisses :: Int,
    kindErrors :: Map Text Int
  }
  deriving stock (Eq, Show)

-- | The parts of a run, by the number of their slice.
type Parts = IntMap Part

instance Semigroup KindCounts where
  KindCounts service response hits misses errors <> KindCounts service' response' hits' misses' errors' =
    KindCounts
      (service <> service')
      (response <> response')
      (hits + hits')
      (misses + misses')
      (Map.unionWith (+) errors errors')

instance Monoid KindCounts where
  mempty = KindCounts mempty mempty 0 0 Map.empty

instance Semigroup Part where
  Part kinds nodes errors schedule <> Part kinds' nodes' errors' schedule' =
    Part
      (IntMap.unionWith (<>) kinds kinds')
      (IntMap.unionWith (<>) nodes nodes')
      (IntMap.unionWith (Map.unionWith (+)) errors errors')
      (schedule <> schedule')

instance Monoid Part where
  mempty = Part IntMap.empty IntMap.empty IntMap.empty mempty

-- | The number of the slice that covers all the time after the window.
afterwards :: Int
afterwards = maxBound

-- | Commands that were answered without an error.
partOps :: Part -> Int
partOps = sum . fmap (Histogram.count . kindService) . partKinds

-- | Commands that failed.
partErrors :: Part -> Int
partErrors = sum . fmap (sum . kindErrors) . partKinds

-- | The class of an error in one or two words. There are few enough classes to count them.
errorClass :: Error -> String
errorClass = \case
  ReplyError problem -> "ReplyError " <> filter (/= '"') (show (serverErrorCode problem))
  UnexpectedReply _ -> "UnexpectedReply"
  ConnectionError (ConnectionFailure {connectionDelivery, connectionCause}) ->
    unwords ["ConnectionError", show connectionDelivery, connection connectionCause]
  TimeoutError failure -> "TimeoutError " <> show (timeoutDelivery failure)
  RoutingError (RoutingFailure {routingDelivery, routingCause}) ->
    unwords ["RoutingError", show routingDelivery, routing routingCause]
  RefusedError _ -> "RefusedError"
  SubscriberTooSlow _ -> "SubscriberTooSlow"
  -- The load's client is closed early for this reason only ("Tool.Bench.Outage").
  ClientClosed -> "ServerAway"
  where
    connection = \case
      ConnectFailed _ -> "ConnectFailed"
      cause -> constructor cause
    -- The error of the last attempt is the reason for giving up.
    routing = \case
      AttemptsExhausted trail
        | (_, final) : _ <- reverse trail -> "AttemptsExhausted, " <> errorClass final
      cause -> constructor cause
    constructor :: Show cause => cause -> String
    constructor = takeWhile (/= ' ') . show

-- After the first cache line: the current side, its slice, the end of that slice, and when the next
-- change is due; the slice that the other side holds; how many commands were answered in the parts
-- handed over; how many threads are counting on either side.
margin, slotSide, slotSlice, slotEnd, slotDue, slotIdle, slotBefore :: Int
margin = 8
slotSide = margin
slotSlice = margin + 1
slotEnd = margin + 2
slotDue = margin + 3
slotIdle = margin + 4
slotBefore = margin + 5

slotCounting :: Int -> Int
slotCounting side = margin + 6 + side

-- The places of a kind's hits and misses.
hitsOf, missesOf :: Int -> Int
hitsOf kind = margin + 2 * kind
missesOf kind = hitsOf kind + 1

noSlice :: Int
noSlice = minBound
