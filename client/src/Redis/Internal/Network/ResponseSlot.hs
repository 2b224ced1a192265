{-# LANGUAGE ExistentialQuantification #-}

-- | Where the reply to one command arrives: written once, read any number of
-- times.
--
-- The first writer wins, so the reader of a connection, its watchdog and its
-- end may race without asking each other. A caller that no longer waits simply
-- forgets its slot. A slot is never used for a second command: whoever still
-- holds it to write can only write to the command it was made for.
--
-- What is not a plain reply is /trouble/. A slot may have somebody who deals
-- with trouble as soon as it comes, whether or not anybody waits.
module Redis.Internal.Network.ResponseSlot
  ( ResponseSlot,
    Outcome (..),
    newResponseSlot,
    newAttendedSlot,
    Attendant (Nobody, OnTrouble),
    onArrival,
    newFilledSlot,
    fillSlot,
    waitSlotResult,
    trySlotResult,

    -- * What is in it
    Arrival (..),
    Trouble (..),
    waitArrival,

    -- * A cell without its slot
    Cell,
    newCell,
    cellSlot,
    waitCell,
  )
where

import Control.Concurrent.MVar
import Control.Monad (unless, void, when)
import Data.IORef
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
  | -- | Anything else, and what is done about it.
    Troubled Outcome Trouble

-- | What is done about trouble.
data Trouble
  = -- | Nothing yet: it is left to who waits.
    Unattended
  | -- | Somebody deals with it; the result of the command will be here.
    Attended (MVar (Either Error Value))

-- | Where one reply arrives.
newtype Cell = Cell (MVar Arrival)

-- | A cell for one command.
data ResponseSlot = ResponseSlot {-# UNPACK #-} !Cell Attendant

-- | Who is told what has come. Its action runs once, on a thread of the
-- connection, so it must be quick and must not throw.
data Attendant
  = -- | Nobody but who waits.
    Nobody
  | -- | The function is given this, trouble, and the cell for the command's result.
    forall command. OnTrouble command (command -> Outcome -> MVar (Either Error Value) -> IO ())
  | -- | Is given whatever comes, before anybody who waits has it; and whether it
    -- has been.
    OnArrival (IORef Bool) (Outcome -> IO ())

-- | Has the action run with whatever comes, before anybody who waits has it.
onArrival :: (Outcome -> IO ()) -> IO Attendant
onArrival act = (`OnArrival` act) <$> newIORef False

-- | An empty slot that nobody attends.
newResponseSlot :: IO ResponseSlot
newResponseSlot = newAttendedSlot Nobody
{-# INLINE newResponseSlot #-}

-- | An empty slot.
newAttendedSlot :: Attendant -> IO ResponseSlot
newAttendedSlot attendant = (`ResponseSlot` attendant) <$> newCell
{-# INLINE newAttendedSlot #-}

-- | An empty cell.
newCell :: IO Cell
newCell = Cell <$> newEmptyMVar
{-# INLINE newCell #-}

-- | The slot of an empty cell.
cellSlot :: Cell -> Attendant -> ResponseSlot
cellSlot = ResponseSlot
{-# INLINE cellSlot #-}

-- | A slot that never waits.
newFilledSlot :: Outcome -> IO ResponseSlot
newFilledSlot outcome = do
  slot <- newResponseSlot
  slot <$ fillSlot slot outcome

-- | Fills the slot unless it is filled. \(O(1)\), never blocks.
fillSlot :: ResponseSlot -> Outcome -> IO ()
fillSlot (ResponseSlot (Cell cell) attendant) outcome = case (outcome, attendant) of
  (_, OnArrival told act) -> do
    -- Of several writers only the first one's news is acted on.
    late <- atomicModifyIORef' told ((,) True)
    unless late $ act outcome >> put (arrivalOf outcome Unattended)
  (Reply value, _) | isPlain value -> put (Plain value)
  (_, Nobody) -> put (Troubled outcome Unattended)
  (_, OnTrouble command act) -> do
    result <- newEmptyMVar
    first <- tryPutMVar cell (Troubled outcome (Attended result))
    when first (act command outcome result)
  where
    put = void . tryPutMVar cell
{-# INLINE fillSlot #-}

arrivalOf :: Outcome -> Trouble -> Arrival
arrivalOf outcome trouble = case outcome of
  Reply value | isPlain value -> Plain value
  _ -> Troubled outcome trouble

isPlain :: Value -> Bool
isPlain = \case
  ErrorReply _ -> False
  WithAttributes _ _ -> False
  _ -> True

-- | Blocks until the slot is filled; may be interrupted, and called again.
waitSlotResult :: ResponseSlot -> IO Outcome
waitSlotResult slot = arrived <$> waitArrival slot

-- | What is in the slot, if it is filled. Never blocks.
trySlotResult :: ResponseSlot -> IO (Maybe Outcome)
trySlotResult (ResponseSlot (Cell cell) _) = fmap arrived <$> tryReadMVar cell

arrived :: Arrival -> Outcome
arrived = \case
  Plain value -> Reply value
  Troubled outcome _ -> outcome

-- | The same, with what is done about it.
waitArrival :: ResponseSlot -> IO Arrival
waitArrival (ResponseSlot cell _) = waitCell cell
{-# INLINE waitArrival #-}

-- | What is in a slot of this cell. Blocks until there is something.
waitCell :: Cell -> IO Arrival
waitCell (Cell cell) = readMVar cell
{-# INLINE waitCell #-}
