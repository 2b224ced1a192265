-- | The slots for which no node was found, while the commands of one batch are placed in turn.
--
-- Another thread may learn of a node between two look-ups. Without this record, the first
-- command of a slot would find no node and the second would, and so overtake the first.
module Redis.Internal.Routing.Vacancies
  ( Vacancies,
    newVacancies,
    unlessVacant,
  )
where

import Data.IORef
import Data.Maybe (isNothing)
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Internal.Protocol.Slot (Slot)

newtype Vacancies = Vacancies (IORef (Set Slot))

newVacancies :: IO Vacancies
newVacancies = Vacancies <$> newIORef Set.empty

-- | Looks up the place of a command of this slot: nothing if an earlier command of the slot
-- found nothing. Commands without a slot have no order. \(O(\log n)\) in the vacant slots.
unlessVacant :: Vacancies -> Maybe Slot -> IO (Maybe place) -> IO (Maybe place)
unlessVacant (Vacancies vacant) target look = case target of
  Nothing -> look
  Just slot -> do
    before <- readIORef vacant
    if Set.member slot before
      then pure Nothing
      else do
        found <- look
        if isNothing found then writeIORef vacant (Set.insert slot before) else pure ()
        pure found
