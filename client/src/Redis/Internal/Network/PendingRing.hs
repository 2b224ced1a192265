-- | The commands of one connection that are not yet answered, oldest first.
--
-- A ring, whose largest size is what bounds the commands in flight. Positions
-- count commands since the connection began and never wrap. Many threads push,
-- one after another under the connection's lock; the reader alone pops,
-- without it. A popped cell is overwritten, or the ring would keep as many old
-- replies alive as it has cells.
--
-- It begins small and doubles when it is full: what is used again soon stays in
-- the processor's cache, and a connection that never has much in flight does not
-- pay for one that has (half a megabyte for 16384 commands).
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
import Data.Foldable (for_)
import Data.IORef (IORef, atomicWriteIORef, newIORef, readIORef)
import Data.Int (Int64)
import Data.Primitive.Array
import Data.Primitive.ByteArray
import Redis.Internal.Network.Clock (Nanos)
import Redis.Internal.Network.ResponseSlot (ResponseSlot)

-- | Room for commands, and who has come and gone.
data PendingRing = PendingRing
  { -- | Replaced by a larger one, under the lock.
    ringRoom :: IORef Room,
    -- | Two words, a cache line apart: tail and head.
    ringEnds :: MutableByteArray RealWorld,
    -- | Cells at most; a power of two.
    ringCapacity :: Int,
    -- | What popped cells hold.
    ringNobody :: ResponseSlot
  }

-- | The slots and, in one array of words, what is known of each command.
data Room = Room
  { roomSlots :: MutableArray RealWorld ResponseSlot,
    -- | Three words per cell: where its bytes end in the stream, when it was
    -- submitted, and the order key of who submitted it.
    roomFacts :: MutableByteArray RealWorld,
    -- | Cells minus one; their number is a power of two.
    roomMask :: Int
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
  let ringCapacity = until (>= atLeast) (* 2) 2
  ringRoom <- newRoom (min firstCells ringCapacity) nobody >>= newIORef
  ringEnds <- newByteArray (16 * 8)
  setByteArray ringEnds 0 16 (0 :: Int)
  pure PendingRing {ringRoom, ringEnds, ringCapacity, ringNobody = nobody}

firstCells :: Int
firstCells = 64

newRoom :: Int -> ResponseSlot -> IO Room
newRoom cells nobody = do
  roomSlots <- newArray cells nobody
  roomFacts <- newByteArray (cells * 3 * 8)
  pure Room {roomSlots, roomFacts, roomMask = cells - 1}

-- | Commands ever pushed.
ringTail :: PendingRing -> IO Int
ringTail ring = readByteArray (ringEnds ring) 0

-- | Commands ever popped. A thread other than the reader may see a value that
-- is a little old, never one that is ahead.
ringHead :: PendingRing -> IO Int
ringHead ring = readByteArray (ringEnds ring) 8

-- | Adds a command. The caller holds the lock and has made sure that no more than
-- 'ringCapacity' are in flight. \(O(1)\), but for a copy of all in flight when the
-- ring doubles.
ringPush :: PendingRing -> Pending -> IO ()
ringPush ring pending = do
  position <- ringTail ring
  oldest <- ringHead ring
  room <- readIORef (ringRoom ring)
  if position - oldest > roomMask room
    then grow ring room oldest position >>= \larger -> writeRoom larger position pending
    else writeRoom room position pending
  writeByteArray (ringEnds ring) 0 (position + 1)
{-# INLINE ringPush #-}

-- | Twice the room. The reader may pop from the old one meanwhile: that stays as
-- it is, and what the reader took out of it stays in the new one until its place
-- is used again.
grow :: PendingRing -> Room -> Int -> Int -> IO Room
grow ring room oldest next = do
  larger <- newRoom (2 * (roomMask room + 1)) (ringNobody ring)
  for_ [oldest .. next - 1] $ \position -> readRoom room position >>= writeRoom larger position
  atomicWriteIORef (ringRoom ring) larger
  pure larger
{-# NOINLINE grow #-}

-- | Takes the oldest command. Only for the reader, which has made sure that
-- there is one.
ringPop :: PendingRing -> IO Pending
ringPop ring = do
  position <- ringHead ring
  room <- readIORef (ringRoom ring)
  pending <- readRoom room position
  writeArray (roomSlots room) (position .&. roomMask room) (ringNobody ring)
  writeByteArray (ringEnds ring) 8 (position + 1)
  pure pending
{-# INLINE ringPop #-}

-- | Looks at a command between head and tail. A thread other than the reader
-- must hold the lock, so that the cell is not used again meanwhile; if the
-- reader pops it meanwhile, its slot is filled or is nobody's.
ringPeek :: PendingRing -> Int -> IO Pending
ringPeek ring position = readIORef (ringRoom ring) >>= \room -> readRoom room position
{-# INLINE ringPeek #-}

readRoom :: Room -> Int -> IO Pending
readRoom room position = do
  let cell = position .&. roomMask room
      facts = cell * 3
  pendingSlot <- readArray (roomSlots room) cell
  pendingEnd <- readByteArray (roomFacts room) facts
  pendingSince <- readByteArray (roomFacts room) (facts + 1)
  pendingOrderKey <- readByteArray (roomFacts room) (facts + 2)
  pure Pending {pendingSlot, pendingEnd, pendingSince, pendingOrderKey}
{-# INLINE readRoom #-}

writeRoom :: Room -> Int -> Pending -> IO ()
writeRoom room position Pending {pendingSlot, pendingEnd, pendingSince, pendingOrderKey} = do
  let cell = position .&. roomMask room
      facts = cell * 3
  writeArray (roomSlots room) cell pendingSlot
  writeByteArray (roomFacts room) facts pendingEnd
  writeByteArray (roomFacts room) (facts + 1) (pendingSince :: Int64)
  writeByteArray (roomFacts room) (facts + 2) pendingOrderKey
{-# INLINE writeRoom #-}
