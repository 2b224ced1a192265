-- | The slots for which no node was found, while the commands of one batch are placed in turn.
--
-- Another thread may learn of a node between two look-ups. Without this record, the first
-- command of a slot would find no node and the second would, and so overtake the first.
module Redis.Internal.Routing.UncoveredSlots
  ( UncoveredSlots,
    newUncoveredSlots,
    unlessUncovered,
  )
where

import Data.IORef
import Data.Maybe (isNothing)
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Internal.Protocol.Slot (Slot)

newtype UncoveredSlots = UncoveredSlots (IORef (Set Slot))

newUncoveredSlots :: IO UncoveredSlots
newUncoveredSlots = UncoveredSlots <$> newIORef Set.empty

-- | Looks up the place of a command of this slot: nothing if an earlier command of the slot
-- found nothing. Commands without a slot have no order. \(O(\log n)\) in the uncovered slots.
unlessUncovered :: UncoveredSlots -> Maybe Slot -> IO (Maybe place) -> IO (Maybe place)
unlessUncovered (UncoveredSlots uncovered) target look = case target of
  Nothing -> look
  Just slot -> do
    before <- readIORef uncovered
    if Set.member slot before
      then pure Nothing
      else do
        found <- look
        if isNothing found then writeIORef uncovered (Set.insert slot before) else pure ()
        pure found
