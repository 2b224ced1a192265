{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnliftedFFITypes #-}

-- | Counts of the commands that each thread has in flight on one connection, of those that it
-- submitted without waiting. They keep a thread's commands in order when a node has several
-- connections.
--
-- A thread that the runtime moves to another capability would change to that
-- capability's connection, and what it submits there could overtake what it
-- has in flight on the old one. So before it changes it must know whether
-- anything is in flight there. A thread that waits for each reply has nothing in
-- flight when it sends the next command, so such commands are not counted.
--
-- Exact counts per thread would need a concurrent map. This is a fixed table of counts, indexed by
-- a few bits of the thread's number, and each cell remembers whose commands it counts. When two
-- threads with the same cell have commands in flight on the same connection at one time, the cell
-- does not know whose they are until all of them are answered.
--
-- Submitters count up under the connection's lock, and its reader counts up answers in other words,
-- so that neither needs an atomic operation. A thread that asks about itself sees at least its own
-- submissions. It may see answers and other threads' commands late, which can only keep it where it
-- is.
module Redis.Internal.Network.OrderCounts
  ( OrderCounts,
    OrderKey,
    noOrderKey,
    newOrderCounts,
    noOrderCounts,
    countSubmitted,
    countAnswered,
    InFlight (..),
    inFlightOf,
    orderKeyOf,
  )
where

import Control.Concurrent (ThreadId)
import Control.Monad (when)
import Control.Monad.Primitive (RealWorld)
import Data.Bits ((.&.))
import Data.Primitive.ByteArray
import Data.Word (Word64)
import Foreign.C.Types (CULLong (CULLong))
import GHC.Conc (ThreadId (ThreadId))
import GHC.Exts (ThreadId#)

-- | The table. Three words per cell: commands submitted, commands answered, and the thread's key.
newtype OrderCounts = OrderCounts (MutableByteArray RealWorld)

-- | The number of a thread.
type OrderKey = Int

-- | The key of commands that are not counted: those whose callers wait for them at once, and all
-- commands of a node's only connection, which keeps the order by itself.
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

-- | A table with nothing submitted and nothing answered. \(O(1)\), 96 KiB of memory.
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
      pure $
        if owner == key
          then Some
          else if owner == severalThreads then Perhaps else None
{-# INLINE inFlightOf #-}

foreign import ccall unsafe "rts_getThreadId"
  rtsThreadNumber :: ThreadId# -> CULLong

-- | The number of a thread. Threads started one after the other get different cells.
orderKeyOf :: ThreadId -> OrderKey
orderKeyOf (ThreadId thread) = case rtsThreadNumber thread of
  CULLong (number :: Word64) -> fromIntegral number
{-# INLINE orderKeyOf #-}
