{-# LANGUAGE GADTs #-}
{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}
{-# LANGUAGE UnliftedFFITypes #-}

-- | The commands of one connection that are not yet answered: where their replies arrive, in which
-- order, when they were sent, and which thread they belong to.
--
-- = The ring
--
-- The commands, oldest first, in a ring of slots. Positions count commands since the connection began and
-- never wrap. Many threads push, one after another under the connection's lock; the reader alone pops,
-- without it. A popped cell is overwritten, or the ring would keep old replies alive. The ring begins small
-- and doubles when it is full: memory that is used again soon stays in the processor's cache.
--
-- The two sides share no lock, so on a processor that reorders memory accesses each relies on the
-- following.
--
-- * /A pushed command is seen by the reader/, its cell, its tail and a larger ring, before the reader pops
--   it: for a reply, which comes after the command's bytes were sent, which comes after the lock was taken
--   and left once more than by the push. The lock and the system calls order both sides. A reply without a
--   command may find an old tail, or a cell that holds no command; both are harmless.
-- * /A popped cell is cleared before it is used again/. The reader clears cells with plain writes. Then it
--   publishes with an atomic write, which orders the writes before it, up to where cells may be used again
--   ('ringPublish'), once for all the replies that came together. A thread that pushes reads that word
--   first, and grows the ring rather than use a cell beyond it.
-- * /What was popped/ ('ringHead') is a plain word. Other threads may see it a little old, never ahead. It
--   is a count, and no access to memory depends on it.
-- * A thread that looks into a cell ('ringPeek') holds the lock, so the cell is not used again meanwhile.
--   If the reader pops it at that moment, its slot is filled already, or stands for no command.
-- * /A send time/ is made before its bytes are sent. A word that is seen too late makes a time less exact,
--   and nothing else depends on it.
--
-- = The order of each thread's commands
--
-- A thread that the runtime moves to another capability would change to that capability's connection, and
-- overtake what it has in flight on the old one. So counts tell what it has in flight there, of what it
-- submitted without waiting (docs/adr/0005-order-across-connections.md): a fixed table, indexed by a few
-- bits of the thread's number, of which each cell remembers whose commands it counts.
--
-- Submitters count up under the connection's lock, and its reader counts up answers in other words, so that
-- neither needs an atomic operation. A thread that asks about itself sees at least its own submissions. It
-- may see answers and other threads' commands late, which can only keep it where it is.
module Redis.Internal.Network.InFlight
  ( -- * Replies
    ResponseSlot,
    SlotFor (..),
    Handover (..),
    anySlot,
    Outcome (..),
    newResponseSlot,
    newTellingSlot,
    newFilledSlot,
    fillSlot,
    waitSlotResult,
    trySlotResult,
    Arrival (..),
    arrivalOutcome,
    isPlain,
    waitArrival,

    -- * The ring
    PendingRing,
    RingEntry (..),
    newPendingRing,
    ringCapacity,
    ringTail,
    ringHead,
    ringReady,
    ringReserve,
    ringPush,
    ringPop,
    ringPublish,
    ringPeek,
    ringExpire,
    expired,

    -- * Send times
    SendTimes,
    newSendTimes,
    addSendTime,
    takeSendTimes,

    -- * The order of each thread's commands
    OrderCounts,
    OrderKey,
    noOrderKey,
    newOrderCounts,
    noOrderCounts,
    countSubmitted,
    countAnswered,
    InFlight (..),
    inFlightOf,
    orderKeyOf,
    callersKey,
  )
where

import Control.Concurrent (ThreadId, myThreadId)
import Control.Concurrent.MVar
import Control.Monad (unless, void, when)
import Control.Monad.Primitive (RealWorld)
import Data.Bits ((.&.))
import Data.Foldable (for_)
import Data.IORef
import Data.Primitive.Array
import Data.Primitive.ByteArray
import Data.Word (Word64)
import Foreign.C.Types (CULLong (CULLong))
import GHC.Conc (ThreadId (ThreadId))
import GHC.Exts (Int (I#), ThreadId#, atomicWriteIntArray#)
import GHC.IO (IO (IO))
import Redis.Error (Error)
import Redis.Internal.Command (Command)
import Redis.Internal.Network.Runtime (Nanos)
import Redis.Value (Value (..))
import Unsafe.Coerce (unsafeCoerce)

-- | The outcome of a command on its connection: any reply, error replies included, or the reason for none.
data Outcome
  = Reply Value
  | Failure Error

-- | The content of a filled slot.
data Arrival
  = -- | A reply that is neither an error nor has attributes.
    Plain Value
  | -- | Any other outcome. The caller that waits must deal with it.
    Unresolved Outcome
  | -- | Any other outcome, which was handed on. The result of the command will be in this variable.
    HandedOn Outcome (MVar (Either Error Value))

-- | A slot for one command with a result of type @a@: the variable in which its reply arrives, and who is told of
-- it. The actions run once, on a thread of the connection, so they must be quick and must not throw.
data SlotFor a where
  -- | Only the caller that waits is told.
  Waited :: {-# UNPACK #-} !(MVar Arrival) -> SlotFor Value
  -- | The action is told of any outcome, before a waiting caller. The flag says whether it was.
  Telling :: {-# UNPACK #-} !(MVar Arrival) -> IORef Bool -> (Outcome -> IO ()) -> SlotFor Value
  -- | A failure is handed on to the function, with what the command was submitted with. The collector copies this
  -- object, so it is the only one of a submitted command.
  Retrying :: {-# UNPACK #-} !(MVar Arrival) -> Command a -> core -> place -> (core -> Command a -> place -> Handover -> IO ()) -> SlotFor a
  -- | No connection has the command. The action waits for the result; it may be interrupted, and run again.
  Awaiting :: IO (Either Error a) -> SlotFor a

-- | A failure that is handed on: when the command began, the outcome, and where the result goes.
data Handover = Handover
  { handoverBegan :: Nanos,
    handoverOutcome :: Outcome,
    handoverResult :: MVar (Either Error Value)
  }

-- | A slot as a connection has it, whatever the type of the result.
type ResponseSlot = SlotFor Value

-- | The same object for the connection, which reads no result.
anySlot :: SlotFor a -> ResponseSlot
anySlot = unsafeCoerce
{-# INLINE anySlot #-}

-- | An empty slot of which nobody is told but the caller that waits.
newResponseSlot :: IO ResponseSlot
newResponseSlot = Waited <$> newEmptyMVar
{-# INLINE newResponseSlot #-}

-- | An empty slot that runs the action with any outcome, before a waiting caller has it.
newTellingSlot :: (Outcome -> IO ()) -> IO ResponseSlot
newTellingSlot act = Telling <$> newEmptyMVar <*> newIORef False <*> pure act

-- | A slot that is filled with this outcome.
newFilledSlot :: Outcome -> IO ResponseSlot
newFilledSlot outcome = do
  slot <- newResponseSlot
  slot <$ fillSlot slot 0 outcome

-- | Fills the slot of a command that began at this time, unless it is filled. \(O(1)\), never blocks.
fillSlot :: ResponseSlot -> Nanos -> Outcome -> IO ()
fillSlot slot began outcome = case slot of
  Waited reply -> put reply (arrivalOf outcome)
  Retrying reply given core place act
    | Reply value <- outcome, isPlain value -> put reply (Plain value)
    | otherwise -> do
      result <- newEmptyMVar
      first <- tryPutMVar reply (HandedOn outcome result)
      when first (act core given place Handover {handoverBegan = began, handoverOutcome = outcome, handoverResult = result})
  Telling reply told act -> do
    -- Of several writers only the first one's outcome is acted on.
    late <- atomicModifyIORef' told ((,) True)
    unless late $ act outcome >> put reply (arrivalOf outcome)
  Awaiting _ -> pure ()
  where
    -- Strict: as a thunk it would be evaluated by the waiting thread, and be copied with all that it keeps alive.
    put reply !arrival = void (tryPutMVar reply arrival)
{-# INLINE fillSlot #-}

arrivalOf :: Outcome -> Arrival
arrivalOf = \case
  Reply value | isPlain value -> Plain value
  outcome -> Unresolved outcome

-- | Whether a reply is neither an error nor has attributes.
isPlain :: Value -> Bool
isPlain = \case
  ErrorReply _ -> False
  WithAttributes _ _ -> False
  _ -> True

-- | Blocks until the slot is filled; may be interrupted, and called again.
waitSlotResult :: ResponseSlot -> IO Outcome
waitSlotResult slot = arrivalOutcome <$> waitArrival slot

-- | The outcome in the slot, if it is filled. Never blocks.
trySlotResult :: ResponseSlot -> IO (Maybe Outcome)
trySlotResult slot = fmap arrivalOutcome <$> fromSlot tryReadMVar (const (pure Nothing)) slot

-- | The outcome that arrived.
arrivalOutcome :: Arrival -> Outcome
arrivalOutcome = \case
  Plain value -> Reply value
  Unresolved outcome -> outcome
  HandedOn outcome _ -> outcome

-- | Like 'waitSlotResult', and also returns whether a failure was handed on.
waitArrival :: ResponseSlot -> IO Arrival
waitArrival = fromSlot readMVar (fmap (either (Unresolved . Failure) Plain))
{-# INLINE waitArrival #-}

-- | Reads the variable of a slot, or the action.
fromSlot :: (MVar Arrival -> b) -> (IO (Either Error Value) -> b) -> ResponseSlot -> b
fromSlot reading acting = \case
  Waited reply -> reading reply
  Retrying reply _ _ _ _ -> reading reply
  Telling reply _ _ -> reading reply
  Awaiting action -> acting action
{-# INLINE fromSlot #-}

-- | The ring: its cells and its ends.
data PendingRing = PendingRing
  { -- | The cells. Replaced by a larger room, under the lock.
    ringStorage :: IORef RingStorage,
    -- | Three words, a cache line apart: tail, head, and up to where cells may be used again.
    ringEnds :: MutableByteArray RealWorld,
    -- | The largest number of commands in flight; a power of two.
    ringCapacity :: Int,
    -- | The slot that popped cells hold.
    ringNobody :: ResponseSlot
  }

-- | The cells: the slots and, in one array of words, the facts of each command.
data RingStorage = RingStorage
  { storageSlots :: MutableArray RealWorld ResponseSlot,
    -- | Four words per cell, as in 'RingEntry'.
    storageWords :: MutableByteArray RealWorld,
    -- | Cells minus one; their number is a power of two.
    storageMask :: Int
  }

-- | One command in flight.
data RingEntry = RingEntry
  { entrySlot :: ResponseSlot,
    -- | Where this command ends, in bytes since the beginning of the stream.
    entryEnd :: Int,
    -- | The deadline, on the coarse clock; 'maxBound' is never.
    entryDeadline :: Nanos,
    -- | When the command began.
    entryBegan :: Nanos,
    entryOrderKey :: Int
  }

-- | The deadline that marks a command whose caller has been told that its time is over.
expired :: Nanos
expired = minBound

-- | A ring for at least so many commands. The slot fills cells that hold no command.
newPendingRing :: Int -> ResponseSlot -> IO PendingRing
newPendingRing atLeast nobody = do
  let ringCapacity = until (>= atLeast) (* 2) 2
  ringStorage <- newStorage (min 64 ringCapacity) nobody >>= newIORef
  ringEnds <- newByteArray (24 * 8)
  setByteArray ringEnds 0 24 (0 :: Int)
  pure PendingRing {ringStorage, ringEnds, ringCapacity, ringNobody = nobody}

newStorage :: Int -> ResponseSlot -> IO RingStorage
newStorage size nobody = do
  storageSlots <- newArray size nobody
  storageWords <- newByteArray (size * 4 * 8)
  pure RingStorage {storageSlots, storageWords, storageMask = size - 1}

-- | Commands ever pushed.
ringTail :: PendingRing -> IO Int
ringTail ring = readByteArray (ringEnds ring) 0
{-# INLINE ringTail #-}

-- | Commands ever popped.
ringHead :: PendingRing -> IO Int
ringHead ring = readByteArray (ringEnds ring) 8
{-# INLINE ringHead #-}

-- | Up to where popped cells may be used again.
ringFree :: PendingRing -> IO Int
ringFree ring = readByteArray (ringEnds ring) 16
{-# INLINE ringFree #-}

-- | Whether so many more commands can be pushed without new memory. Call it under the lock.
ringReady :: PendingRing -> Int -> IO Bool
ringReady ring count = do
  next <- ringTail ring
  free <- ringFree ring
  storage <- readIORef (ringStorage ring)
  pure (next + count - free <= storageMask storage + 1)
{-# INLINE ringReady #-}

-- | Makes room for so many more commands. Call it under the lock. \(O(1)\), but for a copy of all
-- in flight when the ring doubles. Throws when there is no memory, and then has changed nothing.
--
-- The reader may pop from the old room meanwhile. The old room stays as it is, and a command that
-- the reader took from it stays in the new one until its cell is used again.
ringReserve :: PendingRing -> Int -> IO ()
ringReserve ring count = do
  next <- ringTail ring
  free <- ringFree ring
  storage <- readIORef (ringStorage ring)
  let wanted = until (>= next + count - free) (* 2) (storageMask storage + 1)
  when (wanted > storageMask storage + 1) $ do
    larger <- newStorage wanted (ringNobody ring)
    for_ [free .. next - 1] $ \position -> readStorage storage position >>= writeStorage larger position
    atomicWriteIORef (ringStorage ring) larger
{-# NOINLINE ringReserve #-}

-- | Adds a command, for which room was made. The caller holds the lock. \(O(1)\).
ringPush :: PendingRing -> RingEntry -> IO ()
ringPush ring pending = do
  position <- ringTail ring
  storage <- readIORef (ringStorage ring)
  writeStorage storage position pending
  writeByteArray (ringEnds ring) 0 (position + 1)
{-# INLINE ringPush #-}

-- | Takes the oldest command. Only for the reader, which has made sure that there is one.
ringPop :: PendingRing -> IO RingEntry
ringPop ring = do
  position <- ringHead ring
  storage <- readIORef (ringStorage ring)
  pending <- readStorage storage position
  writeArray (storageSlots storage) (position .&. storageMask storage) (ringNobody ring)
  writeByteArray (ringEnds ring) 8 (position + 1)
  pure pending
{-# INLINE ringPop #-}

-- | Lets the cells of popped commands be used again. Only for the reader. \(O(1)\).
ringPublish :: PendingRing -> IO ()
ringPublish ring = do
  I# position <- ringHead ring
  case ringEnds ring of
    MutableByteArray words# -> IO $ \s -> (# atomicWriteIntArray# words# 16# position s, () #)
{-# INLINE ringPublish #-}

-- | Looks at a command between head and tail, under the lock.
ringPeek :: PendingRing -> Int -> IO RingEntry
ringPeek ring position = readIORef (ringStorage ring) >>= \storage -> readStorage storage position
{-# INLINE ringPeek #-}

-- | Notes that a command's caller has been told that its time is over. Call it under the lock.
ringExpire :: PendingRing -> Int -> IO ()
ringExpire ring position = do
  storage <- readIORef (ringStorage ring)
  writeByteArray (storageWords storage) (4 * (position .&. storageMask storage) + 1) expired

readStorage :: RingStorage -> Int -> IO RingEntry
readStorage storage position = do
  let cell = position .&. storageMask storage
      facts = cell * 4
  entrySlot <- readArray (storageSlots storage) cell
  entryEnd <- readByteArray (storageWords storage) facts
  entryDeadline <- readByteArray (storageWords storage) (facts + 1)
  entryBegan <- readByteArray (storageWords storage) (facts + 2)
  entryOrderKey <- readByteArray (storageWords storage) (facts + 3)
  pure RingEntry {entrySlot, entryEnd, entryDeadline, entryBegan, entryOrderKey}
{-# INLINE readStorage #-}

writeStorage :: RingStorage -> Int -> RingEntry -> IO ()
writeStorage storage position RingEntry {entrySlot, entryEnd, entryDeadline, entryBegan, entryOrderKey} = do
  let cell = position .&. storageMask storage
      facts = cell * 4
  writeArray (storageSlots storage) cell entrySlot
  writeByteArray (storageWords storage) facts entryEnd
  writeByteArray (storageWords storage) (facts + 1) entryDeadline
  writeByteArray (storageWords storage) (facts + 2) entryBegan
  writeByteArray (storageWords storage) (facts + 3) entryOrderKey
{-# INLINE writeStorage #-}

-- | The send times of one connection.
data SendTimes = SendTimes
  { -- | The number of send times ever made; a cache line further, how many of them the reader has
    -- passed; then two words for each send time.
    sendTimesWords :: MutableByteArray RealWorld,
    sendTimesMask :: Int
  }

-- | Send times for at least so many blocks in flight.
newSendTimes :: Int -> IO SendTimes
newSendTimes atLeast = do
  let size = until (>= atLeast) (* 2) 2
      wordCount = firstSendTime + 2 * size
  sendTimesWords <- newByteArray (wordCount * 8)
  setByteArray sendTimesWords 0 wordCount (0 :: Int)
  pure SendTimes {sendTimesWords, sendTimesMask = size - 1}

firstSendTime :: Int
firstSendTime = 16

-- | Notes the time for all commands up to this position that have no send time yet. Under the lock. \(O(1)\).
addSendTime :: SendTimes -> Int -> Nanos -> IO ()
addSendTime SendTimes {sendTimesWords, sendTimesMask} position now = do
  made <- readByteArray sendTimesWords 0
  passed <- readByteArray sendTimesWords 8
  if made - passed <= sendTimesMask
    then do
      let word = firstSendTime + 2 * (made .&. sendTimesMask)
      writeByteArray sendTimesWords word position
      writeByteArray sendTimesWords (word + 1) now
      writeByteArray sendTimesWords 0 (made + 1)
    else writeByteArray sendTimesWords (firstSendTime + 2 * ((made - 1) .&. sendTimesMask)) position

-- | Calls the action with number and time of each group, between two positions, that was sent together. Only for
-- the reader, with the positions in order. \(O(n)\) in the send times.
takeSendTimes :: SendTimes -> Int -> Int -> (Int -> Nanos -> IO ()) -> IO ()
takeSendTimes SendTimes {sendTimesWords, sendTimesMask} from to act = go from
  where
    go position
      | position >= to = pure ()
      | otherwise = do
        made <- readByteArray sendTimesWords 0
        passed <- readByteArray sendTimesWords 8
        let word = firstSendTime + 2 * (passed .&. sendTimesMask)
        decide position word passed made

    decide position word passed made
      | made == (0 :: Int) = pure ()
      | otherwise = do
        end <- readByteArray sendTimesWords word
        sent <- readByteArray sendTimesWords (word + 1)
        if end > position
          then act (min end to - position) sent *> go (min end to)
          else
            if passed + 1 < made
              then writeByteArray sendTimesWords 8 (passed + 1) *> go position
              else -- The commands belong to the last send time, which a submitter is extending.
                act (to - position) sent
{-# INLINE takeSendTimes #-}

-- | The table. Three words per cell: commands submitted, commands answered, and the thread's key.
newtype OrderCounts = OrderCounts (MutableByteArray RealWorld)

-- | The number of a thread.
type OrderKey = Int

-- | The key of commands that are not counted: their callers wait at once, or the node has one connection.
noOrderKey :: OrderKey
noOrderKey = -1

-- | The key in a cell that counts for several threads.
severalThreads :: OrderKey
severalThreads = -2

cells :: Int
cells = 4096

cellOf :: OrderKey -> Int
cellOf key = key .&. (cells - 1)
{-# INLINE cellOf #-}

-- | An empty table. \(O(1)\), 96 KiB of memory.
newOrderCounts :: IO OrderCounts
newOrderCounts = do
  counts <- newByteArray (3 * cells * 8)
  setByteArray counts 0 (3 * cells) (0 :: Int)
  pure (OrderCounts counts)

-- | An empty table, for a connection whose commands are never counted or looked up.
noOrderCounts :: IO OrderCounts
noOrderCounts = OrderCounts <$> newByteArray 0

-- | Counts a submitted command. Call it under the connection's lock.
countSubmitted :: OrderCounts -> OrderKey -> IO ()
countSubmitted (OrderCounts counts) key = when (key >= 0) $ do
  let cell = cellOf key
  submitted <- readByteArray counts cell
  answered <- readByteArray counts (cells + cell)
  owner <- readByteArray counts (2 * cells + cell)
  when (owner /= key) $
    writeByteArray counts (2 * cells + cell) (if submitted == (answered :: Int) then key else severalThreads)
  writeByteArray counts cell (submitted + 1)
{-# INLINE countSubmitted #-}

-- | Counts an answered command. Only for the connection's reader.
countAnswered :: OrderCounts -> OrderKey -> IO ()
countAnswered (OrderCounts counts) key =
  when (key >= 0) $ do
    let cell = cells + cellOf key
    readByteArray counts cell >>= writeByteArray counts cell . (+ (1 :: Int))
{-# INLINE countAnswered #-}

-- | Whether a thread has counted commands in flight.
data InFlight
  = None
  | Some
  | -- | Several threads with the same cell have some, and this thread may be one of them.
    Perhaps
  deriving stock (Eq, Show)

-- | Whether the calling thread has commands in flight: never 'None' if it has. \(O(1)\).
inFlightOf :: OrderCounts -> OrderKey -> IO InFlight
inFlightOf (OrderCounts counts) key = do
  let cell = cellOf key
  answered <- readByteArray counts (cells + cell)
  submitted <- readByteArray counts cell
  if submitted == (answered :: Int)
    then pure None
    else do
      owner <- readByteArray counts (2 * cells + cell)
      pure (if owner == key then Some else if owner == severalThreads then Perhaps else None)
{-# INLINE inFlightOf #-}

foreign import ccall unsafe "rts_getThreadId"
  rtsThreadNumber :: ThreadId# -> CULLong

-- | The number of a thread. Threads started one after the other get different cells.
orderKeyOf :: ThreadId -> OrderKey
orderKeyOf (ThreadId thread) = case rtsThreadNumber thread of
  CULLong (number :: Word64) -> fromIntegral number
{-# INLINE orderKeyOf #-}

-- | The number of the calling thread.
callersKey :: IO OrderKey
-- Evaluated: the thread must not be kept alive.
callersKey = myThreadId >>= \thread -> pure $! orderKeyOf thread
