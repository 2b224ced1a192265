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
-- of what the collector copies for it. Whoever deals with the reply may be
-- interrupted; the next one goes on from where that was.
module Redis.Internal.Network.ResponseSlot
  ( ResponseSlot,
    Outcome (..),
    newResponseSlot,
    newFilledSlot,
    fillSlot,
    waitSlotResult,
    trySlotResult,

    -- * What comes after
    Arrival (..),
    Aftermath,
    Rest (..),
    newAftermath,
    waitArrival,
    sharedAftermath,
  )
where

import Control.Concurrent.MVar (MVar, newEmptyMVar, newMVar, putMVar, readMVar, takeMVar, tryPutMVar, tryReadMVar)
import Control.Exception (mask, onException)
import Control.Monad (void, (>=>))
import Data.IORef (newIORef, readIORef, writeIORef)
import Redis.Error (Error)
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

-- | How far it has been dealt with; empty while somebody does.
newtype Aftermath = Aftermath (MVar Progress)

data Progress
  = Untouched
  | -- | Who dealt with it was interrupted; the rest of what is to be done.
    Interrupted Rest
  | -- | A plain reply or an error.
    Settled (Either Error Value)

-- | Something to be done for a reply. It is given an action by which it says
-- what remains to be done from now on, if it should be interrupted: one that has
-- sent a command says that its reply is to be waited for. What says nothing is
-- begun anew.
newtype Rest = Rest {doRest :: (Rest -> IO ()) -> IO (Either Error Value)}

-- | An empty slot, for one command.
newResponseSlot :: IO ResponseSlot
newResponseSlot = ResponseSlot <$> newEmptyMVar
{-# INLINE newResponseSlot #-}

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

-- | What is in the slot, if it is filled. Never blocks.
trySlotResult :: ResponseSlot -> IO (Maybe Outcome)
trySlotResult (ResponseSlot cell) = fmap arrived <$> tryReadMVar cell

arrived :: Arrival -> Outcome
arrived = \case
  Plain value -> Reply value
  Troubled outcome _ -> outcome

-- | The same, with the cell for what follows from it.
waitArrival :: ResponseSlot -> IO Arrival
waitArrival (ResponseSlot cell) = readMVar cell

-- | Nobody has dealt with it yet.
newAftermath :: IO Aftermath
newAftermath = Aftermath <$> newMVar Untouched

-- | Does it for the first who asks, and gives everybody else the same result.
-- Blocks while somebody else does it. If that one is interrupted, the next one
-- goes on with what remains.
sharedAftermath :: Aftermath -> Rest -> IO (Either Error Value)
sharedAftermath (Aftermath cell) whole = mask $ \restore -> do
  let goOn from = do
        remaining <- newIORef from
        result <- restore (doRest from (writeIORef remaining)) `onException` (readIORef remaining >>= putMVar cell . Interrupted)
        result <$ putMVar cell (Settled result)
  takeMVar cell >>= \case
    Settled result -> result <$ putMVar cell (Settled result)
    Interrupted remaining -> goOn remaining
    Untouched -> goOn whole
