{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnliftedFFITypes #-}

-- | How many commands each thread has in flight on one connection: what keeps
-- a thread's commands in order when a node has several connections.
--
-- A thread that the runtime moves to another capability would change to that
-- capability's connection, and what it submits there could overtake what it
-- has in flight on the old one. So before it changes it must know whether
-- anything is in flight there. Exact counts per thread would need a concurrent
-- map; this is a fixed table of counts, indexed by a few bits of the thread's
-- number. Two threads that share a cell see each other's commands as their
-- own, which can only make one of them stay where it is.
--
-- Submitting counts up under the connection's lock, answering counts up by its
-- reader, in different cells, so that neither needs an atomic operation.
module Redis.Internal.Network.OrderCounts
  ( OrderCounts,
    OrderKey,
    noOrderKey,
    newOrderCounts,
    countSubmitted,
    countAnswered,
    anyInFlight,
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

-- | Two counts per cell: submitted and answered.
newtype OrderCounts = OrderCounts (MutableByteArray RealWorld)

-- | The cell of a thread.
type OrderKey = Int

-- | Of commands that nobody orders: the only connection of a node needs no
-- counting, a connection keeps the order by itself.
noOrderKey :: OrderKey
noOrderKey = -1

cells :: Int
cells = 4096

-- | Nothing submitted, nothing answered: 64 KiB of zeros.
newOrderCounts :: IO OrderCounts
newOrderCounts = do
  counts <- newByteArray (2 * cells * 8)
  setByteArray counts 0 (2 * cells) (0 :: Int)
  pure (OrderCounts counts)

-- | Under the connection's lock.
countSubmitted :: OrderCounts -> OrderKey -> IO ()
countSubmitted (OrderCounts counts) key =
  when (key >= 0) $ readByteArray counts key >>= writeByteArray counts key . (+ (1 :: Int))
{-# INLINE countSubmitted #-}

-- | By the connection's reader.
countAnswered :: OrderCounts -> OrderKey -> IO ()
countAnswered (OrderCounts counts) key =
  when (key >= 0) $
    readByteArray counts (cells + key) >>= writeByteArray counts (cells + key) . (+ (1 :: Int))
{-# INLINE countAnswered #-}

-- | Whether a thread with this key may have commands in flight. Never wrongly
-- 'False' for the thread that asks about itself.
anyInFlight :: OrderCounts -> OrderKey -> IO Bool
anyInFlight (OrderCounts counts) key = do
  answered <- readByteArray counts (cells + key)
  submitted <- readByteArray counts key
  pure (submitted /= (answered :: Int))
{-# INLINE anyInFlight #-}

foreign import ccall unsafe "rts_getThreadId"
  rtsThreadNumber :: ThreadId# -> CULLong

-- | The cell of a thread. Threads started one after the other get different ones.
orderKeyOf :: ThreadId -> OrderKey
orderKeyOf (ThreadId thread) = case rtsThreadNumber thread of
  CULLong (number :: Word64) -> fromIntegral number .&. (cells - 1)
{-# INLINE orderKeyOf #-}
