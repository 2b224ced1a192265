-- | Where the reply to one command arrives: written once, read any number of
-- times.
--
-- The first writer wins, so the reader of a connection, its watchdog and its
-- end may race without asking each other. A caller that no longer waits simply
-- forgets its slot. A slot is never used for a second command: whoever still
-- holds it to write can only write to the command it was made for.
module Redis.Internal.Network.ResponseSlot
  ( ResponseSlot,
    Outcome (..),
    newResponseSlot,
    newFilledSlot,
    fillSlot,
    waitSlotResult,
    pollSlotResult,
  )
where

import Control.Concurrent.MVar (MVar, newEmptyMVar, newMVar, readMVar, tryPutMVar, tryReadMVar)
import Control.Monad (void)
import Redis.Error (Error)
import Redis.Value (Value)

-- | What became of a command on its connection.
data Outcome
  = -- | Any reply, error replies included.
    Reply Value
  | -- | No reply, and why.
    Failure Error

-- | A one-shot cell.
newtype ResponseSlot = ResponseSlot (MVar Outcome)

-- | An empty slot, for one command.
newResponseSlot :: IO ResponseSlot
newResponseSlot = ResponseSlot <$> newEmptyMVar

-- | A slot that never waits.
newFilledSlot :: Outcome -> IO ResponseSlot
newFilledSlot outcome = ResponseSlot <$> newMVar outcome

-- | Fills the slot unless it is filled. \(O(1)\), never blocks.
fillSlot :: ResponseSlot -> Outcome -> IO ()
fillSlot (ResponseSlot cell) outcome = void (tryPutMVar cell outcome)

-- | Blocks until the slot is filled; may be interrupted, and called again.
waitSlotResult :: ResponseSlot -> IO Outcome
waitSlotResult (ResponseSlot cell) = readMVar cell

-- | What is there already. Never blocks.
pollSlotResult :: ResponseSlot -> IO (Maybe Outcome)
pollSlotResult (ResponseSlot cell) = tryReadMVar cell
