-- | The slots that are known to move, or have moved of late.
--
-- A replica does not know that a slot of its primary is on the move: it answers a read of a key
-- that has left with nothing, where its primary answers ASK. No map tells of it either. So what
-- redirects say of a slot is kept for some time, and reads of it stay with the primary.
module Redis.Internal.Routing.Moving
  ( MovingSlots,
    newMovingSlots,
    noteMoving,
    isMoving,
  )
where

import Data.IORef
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Redis.Internal.Network.Runtime (Nanos, coarseNanos, nanosFromSeconds)
import Redis.Internal.Protocol.Slot (Slot)

-- | The slots, each with the time until which it counts as moving.
newtype MovingSlots = MovingSlots (IORef (Map Slot Nanos))

-- | No slots.
newMovingSlots :: IO MovingSlots
newMovingSlots = MovingSlots <$> newIORef Map.empty

-- | Records that a node has redirected for this slot. \(O(n)\) in the slots that move.
noteMoving :: MovingSlots -> Slot -> IO ()
noteMoving (MovingSlots known) slot = do
  now <- coarseNanos
  atomicModifyIORef' known (\slots -> (Map.insert slot (now + permanent) (Map.filter (> now) slots), ()))

-- | Whether a node has redirected for this slot of late. One read if no slot ever moved.
isMoving :: MovingSlots -> Slot -> IO Bool
isMoving (MovingSlots known) slot = do
  slots <- readIORef known
  case Map.lookup slot slots of
    Nothing -> pure False
    Just until' -> (< until') <$> coarseNanos

-- | How long a redirect counts: 10 s. Each further one, of which there are many while keys leave,
-- counts anew.
permanent :: Nanos
permanent = nanosFromSeconds 10
