{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}

-- | The commands of one connection that are not yet answered, oldest first.
--
-- A ring of fixed size, which is what bounds the commands in flight. Positions
-- count commands since the connection began and never wrap. Many threads push,
-- one after another under the connection's lock; the reader alone pops,
-- without it. A popped cell is overwritten, or the ring would keep as many old
-- replies alive as it has cells.
module Redis.Internal.Network.PendingRing
  ( PendingRing,
    Pending (..),
    newPendingRing,
    ringCapacity,
    ringTail,
    ringHead,
    ringPush,
    ringPop,
    ringPeek,
  )
where

import Control.Monad.Primitive (RealWorld)
import Data.Bits ((.&.))
import Data.Int (Int64)
import Data.Primitive.ByteArray
import GHC.Exts (Int (I#), MutableArrayArray#, newArrayArray#, readMutableArrayArrayArray#, unsafeCoerce#, writeMutableArrayArrayArray#)
import GHC.IO (IO (IO))
import Redis.Internal.Network.Clock (Nanos)
import Redis.Internal.Network.ResponseSlot (ResponseSlot (..))

-- | The cells and, in one array of words, what is known of each command.
data PendingRing = PendingRing
  { ringCells :: Cells,
    -- | Three words per cell: where its bytes end in the stream, when it was
    -- submitted, and the order key of who submitted it.
    ringFacts :: MutableByteArray RealWorld,
    -- | Two words, a cache line apart: tail and head.
    ringEnds :: MutableByteArray RealWorld,
    -- | Capacity minus one; the capacity is a power of two.
    ringMask :: Int,
    -- | What popped cells hold.
    ringNobody :: ResponseSlot
  }

-- | One command in flight.
data Pending = Pending
  { pendingSlot :: ResponseSlot,
    -- | Bytes of the stream up to and with this command.
    pendingEnd :: Int,
    -- | When it was submitted, on the coarse clock.
    pendingSince :: Nanos,
    pendingOrderKey :: Int
  }

-- | A ring for at least so many commands. The slot stands for nobody and is
-- never waited for.
newPendingRing :: Int -> ResponseSlot -> IO PendingRing
newPendingRing atLeast nobody = do
  let capacity = powerOfTwo (max 2 atLeast)
  ringCells <- newCells capacity nobody
  ringFacts <- newByteArray (capacity * 3 * 8)
  ringEnds <- newByteArray (16 * 8)
  setByteArray ringEnds 0 16 (0 :: Int)
  pure PendingRing {ringCells, ringFacts, ringEnds, ringMask = capacity - 1, ringNobody = nobody}
  where
    powerOfTwo n = until (>= n) (* 2) 2

-- | How many commands it holds at most.
ringCapacity :: PendingRing -> Int
ringCapacity ring = ringMask ring + 1

-- | Commands ever pushed.
ringTail :: PendingRing -> IO Int
ringTail ring = readByteArray (ringEnds ring) 0

-- | Commands ever popped. A thread other than the reader may see a value that
-- is a little old, never one that is ahead.
ringHead :: PendingRing -> IO Int
ringHead ring = readByteArray (ringEnds ring) 8

-- | Adds a command. The caller holds the lock and has made sure of room.
ringPush :: PendingRing -> Pending -> IO ()
ringPush ring Pending {pendingSlot, pendingEnd, pendingSince, pendingOrderKey} = do
  position <- ringTail ring
  let cell = position .&. ringMask ring
      facts = cell * 3
  writeCell (ringCells ring) cell pendingSlot
  writeByteArray (ringFacts ring) facts pendingEnd
  writeByteArray (ringFacts ring) (facts + 1) (pendingSince :: Int64)
  writeByteArray (ringFacts ring) (facts + 2) pendingOrderKey
  writeByteArray (ringEnds ring) 0 (position + 1)
{-# INLINE ringPush #-}

-- | Takes the oldest command. Only for the reader, which has made sure that
-- there is one.
ringPop :: PendingRing -> IO Pending
ringPop ring = do
  position <- ringHead ring
  pending <- ringPeek ring position
  writeCell (ringCells ring) (position .&. ringMask ring) (ringNobody ring)
  writeByteArray (ringEnds ring) 8 (position + 1)
  pure pending
{-# INLINE ringPop #-}

-- | Looks at a command between head and tail. A thread other than the reader
-- must hold the lock, so that the cell is not used again meanwhile; if the
-- reader pops it meanwhile, its slot is filled or is nobody's.
ringPeek :: PendingRing -> Int -> IO Pending
ringPeek ring position = do
  let cell = position .&. ringMask ring
      facts = cell * 3
  pendingSlot <- readCell (ringCells ring) cell
  pendingEnd <- readByteArray (ringFacts ring) facts
  pendingSince <- readByteArray (ringFacts ring) (facts + 1)
  pendingOrderKey <- readByteArray (ringFacts ring) (facts + 2)
  pure Pending {pendingSlot, pendingEnd, pendingSince, pendingOrderKey}
{-# INLINE ringPeek #-}

-- | Slots without boxes. "GHC.Exts" has arrays of arrays and none of cells; an
-- array of the one is an array of the other, whose elements the collector
-- follows by what they are; nothing here looks into one. What it brings is said
-- with 'ResponseSlot'.
data Cells = Cells (MutableArrayArray# RealWorld)

newCells :: Int -> ResponseSlot -> IO Cells
newCells count@(I# count#) slot = do
  cells <- IO $ \s -> case newArrayArray# count# s of (# s', array #) -> (# s', Cells array #)
  -- A new array holds itself.
  mapM_ (\index -> writeCell cells index slot) [0 .. count - 1]
  pure cells

writeCell :: Cells -> Int -> ResponseSlot -> IO ()
writeCell (Cells array) (I# index) (ResponseSlot cell) =
  IO $ \s -> (# writeMutableArrayArrayArray# array index (unsafeCoerce# cell) s, () #)
{-# INLINE writeCell #-}

readCell :: Cells -> Int -> IO ResponseSlot
readCell (Cells array) (I# index) =
  IO $ \s -> case readMutableArrayArrayArray# array index s of
    (# s', cell #) -> (# s', ResponseSlot (unsafeCoerce# cell) #)
{-# INLINE readCell #-}
