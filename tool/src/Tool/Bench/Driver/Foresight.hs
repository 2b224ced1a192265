-- | Which keys will be drawn soon, where many threads each wait for a reply.
--
-- A thread's next draw is known when it sends, but comes a round trip later,
-- when what was fetched for it then is in no near cache any more. Replies of a
-- node come in the order of its commands, though: when a thread has its reply,
-- those who sent to the same node after it are next. So each leaves a note for
-- the one that comes a few replies before it.
--
-- Notes are hints: a command that was sent again elsewhere spoils the order of
-- a few, and costs a fetch for nothing.
module Tool.Bench.Driver.Foresight
  ( Foresight,
    newForesight,
    willDraw,
    drawnSoon,
  )
where

import Data.Bits ((.&.))
import Data.Primitive.ByteArray
import GHC.Exts (RealWorld)

-- | The notes of one capability's threads. For each node, and for commands whose
-- node is not known, two words that count notes taken and left, and a ring of
-- notes.
data Foresight = Foresight
  { notes :: {-# UNPACK #-} MutableByteArray RealWorld,
    -- | Notes in a ring, less one; their number is a power of two.
    mask :: Int
  }

-- | For so many threads that wait for one reply each, and so many nodes.
newForesight :: Int -> Int -> IO Foresight
newForesight threads nodes = do
  notes <- newByteArray size
  setByteArray notes 0 (size `quot` 8) (0 :: Int)
  pure Foresight {notes, mask = room - 1}
  where
    room = until (>= threads) (* 2) 1
    size = 8 * (nodes + 1) * (room + 2)

-- | A thread sends to this node (negative: not known), and will draw that number
-- when it has the reply. \(O(1)\).
willDraw :: Foresight -> Int -> Int -> IO ()
willDraw foresight node number = do
  left <- readByteArray (notes foresight) (ring + 1)
  writeByteArray (notes foresight) (ring + 2 + (left .&. mask foresight)) number
  writeByteArray (notes foresight) (ring + 1) (left + 1 :: Int)
  where
    ring = ringOf foresight node
{-# INLINE willDraw #-}

-- | A thread has the reply of that node: what will be drawn a few replies later;
-- negative if nobody knows. \(O(1)\).
drawnSoon :: Foresight -> Int -> IO Int
drawnSoon foresight node = do
  taken <- readByteArray (notes foresight) ring
  left <- readByteArray (notes foresight) (ring + 1)
  writeByteArray (notes foresight) ring (taken + 1 :: Int)
  let wanted = taken + repliesAhead
  if wanted < left then readByteArray (notes foresight) (ring + 2 + (wanted .&. mask foresight)) else pure (-1)
  where
    ring = ringOf foresight node
{-# INLINE drawnSoon #-}

-- Where a node's words begin.
ringOf :: Foresight -> Int -> Int
ringOf foresight node = (node + 1) * (mask foresight + 3)
{-# INLINE ringOf #-}

-- How long before it is wanted a key is fetched.
repliesAhead :: Int
repliesAhead = 4
