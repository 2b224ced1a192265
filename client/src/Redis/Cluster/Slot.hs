-- | The slot of a cluster to which a key belongs, for programs that place their keys, or
-- that need to know which node serves a key. Commands find their nodes without it.
module Redis.Cluster.Slot
  ( keySlot,
    slotCount,
  )
where

import Data.ByteString (ByteString)
import Redis.Internal.Protocol.Slot (slotCount, slotNumber)
import Redis.Internal.Protocol.Slot qualified as Slot

-- | The slot of a key, counted from 0. The text between the first @{@ and the first
-- @}@ after it decides alone, unless it is empty. \(O(n)\).
--
-- > keySlot "{user:1}:name" == keySlot "{user:1}:visits"
keySlot :: ByteString -> Int
keySlot = slotNumber . Slot.keySlot
