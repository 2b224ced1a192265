{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}

-- | The commands of one connection that are not yet answered, oldest first.
--
-- A ring of slots. Positions count commands since the connection began and never
-- wrap. Many threads push, one after another under the connection's lock; the
-- reader alone pops, without it. A popped cell is overwritten, or the ring would
-- keep as many old replies alive as it has cells.
--
-- It begins small and doubles when it is full: memory that is used again soon stays in the
-- processor's cache, and a connection with little in flight does not pay for one with much.
--
-- = What each side may see of the other
--
-- The two sides share no lock, so on a processor that reorders memory accesses each relies on the
-- following.
--
-- * /A pushed command is seen by the reader/, its cell, its tail and a larger ring,
--   before the reader pops it. The reader pops a command for a reply, which comes after the
--   command's bytes were sent, which comes after the lock was taken and left once more than by the
--   push. The lock and the system calls order both sides. A reply without a command may find an old
--   tail, or a cell that holds no command; both are harmless.
-- * /A popped cell is cleared before it is used again/. The reader clears cells
--   with plain writes. Then it publishes with an atomic write, which orders the writes before it,
--   up to where cells may be used again ('ringPublish'). It does so once for all the replies that
--   came together. A thread that pushes reads that word first, and grows the ring rather than use a
--   cell beyond it.
-- * /What was popped/ ('ringHead') is a plain word. Other threads may see it a
--   little old, never ahead. It is a count, and no access to memory depends on it.
-- * A thread that looks into a cell ('ringPeek') holds the lock, so the cell is
--   not used again meanwhile. If the reader pops it at that moment, its slot is filled already, or
--   stands for no command.
module Redis.Internal.Network.PendingRing
  ( PendingRing,
    Pending (..),
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
  )
where

import Control.Monad (when)
import Control.Monad.Primitive (RealWorld)
import Data.Bits ((.&.))
import Data.Foldable (for_)
import Data.IORef (IORef, atomicWriteIORef, newIORef, readIORef)
import Data.Primitive.Array
import Data.Primitive.ByteArray
import GHC.Exts (Int (I#), atomicWriteIntArray#)
import GHC.IO (IO (IO))
import Redis.Internal.Network.Clock (Nanos)
import Redis.Internal.Network.ResponseSlot (ResponseSlot)

-- | The ring: its cells and its ends.
data PendingRing = PendingRing
  { -- | The cells. Replaced by a larger room, under the lock.
    ringStorage :: IORef RingStorage,
    -- | Three words, a cache line apart: tail, head, and up to where cells may be
    -- used again.
    ringEnds :: MutableByteArray RealWorld,
    -- | The largest number of commands in flight; a power of two.
    ringCapacity :: Int,
    -- | The slot that popped cells hold.
    ringNobody :: ResponseSlot
  }

-- | The cells: the slots and, in one array of words, the facts of each command.
data RingStorage = RingStorage
  { storageSlots :: MutableArray RealWorld ResponseSlot,
    -- | Four words per cell, as in 'Pending'.
    storageWords :: MutableByteArray RealWorld,
    -- | Cells minus one; their number is a power of two.
    storageMask :: Int
  }

-- | One command in flight.
data Pending = Pending
  { pendingSlot :: ResponseSlot,
    -- | Where this command ends, in bytes since the beginning of the stream.
    pendingEnd :: Int,
    -- | The deadline, on the coarse clock; 'maxBound' is never.
    pendingDeadline :: Nanos,
    -- | The time limit, of which the deadline is the end.
    pendingLimit :: Nanos,
    pendingOrderKey :: Int
  }

-- | The deadline that marks a command whose caller has been told that its time is over.
expired :: Nanos
expired = minBound

-- | A ring for at least so many commands. The slot fills cells that hold no command, and is never
-- waited for.
newPendingRing :: Int -> ResponseSlot -> IO PendingRing
newPendingRing atLeast nobody = do
  let ringCapacity = until (>= atLeast) (* 2) 2
  ringStorage <- newStorage (min firstCells ringCapacity) nobody >>= newIORef
  ringEnds <- newByteArray (24 * 8)
  setByteArray ringEnds 0 24 (0 :: Int)
  pure PendingRing {ringStorage, ringEnds, ringCapacity, ringNobody = nobody}

firstCells :: Int
firstCells = 64

newStorage :: Int -> ResponseSlot -> IO RingStorage
newStorage cells nobody = do
  storageSlots <- newArray cells nobody
  storageWords <- newByteArray (cells * 4 * 8)
  pure RingStorage {storageSlots, storageWords, storageMask = cells - 1}

-- | Commands ever pushed.
ringTail :: PendingRing -> IO Int
ringTail ring = readByteArray (ringEnds ring) 0
{-# INLINE ringTail #-}

-- | Commands ever popped. A thread other than the reader may see a value that
-- is a little old, never one that is ahead.
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
ringPush :: PendingRing -> Pending -> IO ()
ringPush ring pending = do
  position <- ringTail ring
  storage <- readIORef (ringStorage ring)
  writeStorage storage position pending
  writeByteArray (ringEnds ring) 0 (position + 1)
{-# INLINE ringPush #-}

-- | Takes the oldest command. Only for the reader, which has made sure that there is one, and which
-- calls 'ringPublish' before the cell can be used again.
ringPop :: PendingRing -> IO Pending
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
ringPeek :: PendingRing -> Int -> IO Pending
ringPeek ring position = readIORef (ringStorage ring) >>= \storage -> readStorage storage position
{-# INLINE ringPeek #-}

-- | Notes that the caller of a command between head and tail has been told that its time is over.
-- Call it under the lock.
ringExpire :: PendingRing -> Int -> IO ()
ringExpire ring position = do
  storage <- readIORef (ringStorage ring)
  writeByteArray (storageWords storage) (4 * (position .&. storageMask storage) + 1) expired

readStorage :: RingStorage -> Int -> IO Pending
readStorage storage position = do
  let cell = position .&. storageMask storage
      facts = cell * 4
  pendingSlot <- readArray (storageSlots storage) cell
  pendingEnd <- readByteArray (storageWords storage) facts
  pendingDeadline <- readByteArray (storageWords storage) (facts + 1)
  pendingLimit <- readByteArray (storageWords storage) (facts + 2)
  pendingOrderKey <- readByteArray (storageWords storage) (facts + 3)
  pure Pending {pendingSlot, pendingEnd, pendingDeadline, pendingLimit, pendingOrderKey}
{-# INLINE readStorage #-}

writeStorage :: RingStorage -> Int -> Pending -> IO ()
writeStorage storage position Pending {pendingSlot, pendingEnd, pendingDeadline, pendingLimit, pendingOrderKey} = do
  let cell = position .&. storageMask storage
      facts = cell * 4
  writeArray (storageSlots storage) cell pendingSlot
  writeByteArray (storageWords storage) facts pendingEnd
  writeByteArray (storageWords storage) (facts + 1) pendingDeadline
  writeByteArray (storageWords storage) (facts + 2) pendingLimit
  writeByteArray (storageWords storage) (facts + 3) pendingOrderKey
{-# INLINE writeStorage #-}
