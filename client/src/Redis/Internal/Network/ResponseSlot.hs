-- | Where the reply to one command arrives: written once, read any number of
-- times.
--
-- The first writer wins, so the reader of a connection, its watchdog and its
-- end may race without asking each other. A caller that no longer waits simply
-- forgets its slot. A slot is never used for a second command: whoever still
-- holds it to write can only write to the command it was made for.
--
-- What is not a plain reply comes with a cell for its 'Aftermath', which those
-- who wait share: the retry of a command must not happen once per waiter. It
-- is made when it is needed; a cell per command in flight would be a seventh
-- of what the collector copies for it.
module Redis.Internal.Network.ResponseSlot
  ( ResponseSlot,
    Outcome (..),
    newResponseSlot,
    newFilledSlot,
    fillSlot,
    waitSlotResult,

    -- * What comes after
    Arrival (..),
    Aftermath,
    newAftermath,
    waitArrival,
    sharedAftermath,
  )
where

import Control.Concurrent.MVar (MVar, newEmptyMVar, newMVar, putMVar, readMVar, takeMVar, tryPutMVar)
import Control.Exception (mask, onException)
import Control.Monad (void, (>=>))
import Redis.Error (Delivery (MaybeExecuted), Error (TimeoutError))
import Redis.Value (Value (..))

-- | What became of a command on its connection.
data Outcome
  = -- | Any reply, error replies included.
    Reply Value
  | -- | No reply, and why.
    Failure Error

-- | What is in a slot.
data Arrival
  = -- | A reply that is neither an error nor has attributes.
    Plain Value
  | -- | Anything else, which may have to be dealt with first.
    Troubled Outcome Aftermath

-- | A one-shot cell.
newtype ResponseSlot = ResponseSlot (MVar Arrival)

-- | What dealing with it came to, once somebody has: a plain reply or an error.
newtype Aftermath = Aftermath (MVar (Maybe (Either Error Value)))

-- | An empty slot, for one command.
newResponseSlot :: IO ResponseSlot
newResponseSlot = ResponseSlot <$> newEmptyMVar

-- | A slot that never waits.
newFilledSlot :: Outcome -> IO ResponseSlot
newFilledSlot = arrival >=> fmap ResponseSlot . newMVar

-- | Fills the slot unless it is filled. \(O(1)\), never blocks.
fillSlot :: ResponseSlot -> Outcome -> IO ()
fillSlot (ResponseSlot cell) outcome = arrival outcome >>= void . tryPutMVar cell

arrival :: Outcome -> IO Arrival
arrival = \case
  Failure failure -> troubled (Failure failure)
  Reply value -> case value of
    ErrorReply _ -> troubled (Reply value)
    WithAttributes _ _ -> troubled (Reply value)
    _ -> pure (Plain value)
  where
    troubled outcome = Troubled outcome <$> newAftermath
{-# INLINE arrival #-}

-- | Blocks until the slot is filled; may be interrupted, and called again.
waitSlotResult :: ResponseSlot -> IO Outcome
waitSlotResult slot = arrived <$> waitArrival slot

arrived :: Arrival -> Outcome
arrived = \case
  Plain value -> Reply value
  Troubled outcome _ -> outcome

-- | The same, with the cell for what follows from it.
waitArrival :: ResponseSlot -> IO Arrival
waitArrival (ResponseSlot cell) = readMVar cell

-- | Nobody has dealt with it yet.
newAftermath :: IO Aftermath
newAftermath = Aftermath <$> newMVar Nothing

-- | Runs the action for the first who asks, and gives everybody else the same
-- result. Blocks while somebody else runs it.
sharedAftermath :: Aftermath -> IO (Either Error Value) -> IO (Either Error Value)
sharedAftermath (Aftermath cell) action = mask $ \restore ->
  takeMVar cell >>= \case
    Just result -> result <$ putMVar cell (Just result)
    Nothing -> do
      -- Whoever asks after an interruption must not send it once more.
      result <- restore action `onException` putMVar cell (Just (Left (TimeoutError MaybeExecuted 0)))
      putMVar cell (Just result)
      pure result
