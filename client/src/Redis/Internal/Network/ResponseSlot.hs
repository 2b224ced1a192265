{-# LANGUAGE ExistentialQuantification #-}

-- | A slot, in which the reply to one command arrives: written once, read any number of times.
--
-- The first writer wins, so the reader of a connection, its watchdog and its end may race without
-- asking each other. A caller that no longer waits simply forgets its slot. A slot is never used
-- for a second command: a late writer can only write to the command that the slot was made for.
--
-- Anything but a plain reply is /trouble/. A slot may have an attendant, which deals with trouble
-- as soon as it comes, whether or not a caller waits.
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

-- | The outcome of a command on its connection.
data Outcome
  = -- | Any reply, error replies included.
    Reply Value
  | -- | No reply, with the reason.
    Failure Error

-- | The content of a filled slot.
data Arrival
  = -- | A reply that is neither an error nor has attributes.
    Plain Value
  | -- | Any other outcome, and how it is dealt with.
    Troubled Outcome Trouble

-- | How trouble is dealt with.
data Trouble
  = -- | Not at all yet: the waiting caller must do it.
    Unattended
  | -- | An attendant deals with it. The result of the command will arrive in this variable.
    Attended (MVar (Either Error Value))

-- | The variable in which one reply arrives.
newtype Cell = Cell (MVar Arrival)

-- | A slot for one command: a cell and its attendant.
data ResponseSlot = ResponseSlot {-# UNPACK #-} !Cell Attendant

-- | An attendant, which is told of the outcome. Its action runs once, on a thread of the
-- connection, so it must be quick and must not throw.
data Attendant
  = -- | No attendant.
    Nobody
  | -- | Told of trouble only. The function is given this value, the outcome, and the variable for
    -- the command's result.
    forall command. OnTrouble command (command -> Outcome -> MVar (Either Error Value) -> IO ())
  | -- | Told of any outcome, before a waiting caller has it. The flag says whether that has
    -- happened.
    OnArrival (IORef Bool) (Outcome -> IO ())

-- | An attendant that runs the action with any outcome, before a waiting caller has it.
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

-- | A slot that is filled with this outcome.
newFilledSlot :: Outcome -> IO ResponseSlot
newFilledSlot outcome = do
  slot <- newResponseSlot
  slot <$ fillSlot slot outcome

-- | Fills the slot unless it is filled. \(O(1)\), never blocks.
fillSlot :: ResponseSlot -> Outcome -> IO ()
fillSlot (ResponseSlot (Cell cell) attendant) outcome = case (outcome, attendant) of
  (_, OnArrival told act) -> do
    -- Of several writers only the first one's outcome is acted on.
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

-- | The outcome in the slot, if it is filled. Never blocks.
trySlotResult :: ResponseSlot -> IO (Maybe Outcome)
trySlotResult (ResponseSlot (Cell cell) _) = fmap arrived <$> tryReadMVar cell

arrived :: Arrival -> Outcome
arrived = \case
  Plain value -> Reply value
  Troubled outcome _ -> outcome

-- | Like 'waitSlotResult', and also says how trouble is dealt with.
waitArrival :: ResponseSlot -> IO Arrival
waitArrival (ResponseSlot cell _) = waitCell cell
{-# INLINE waitArrival #-}

-- | The content of the slot of this cell. Blocks until the slot is filled.
waitCell :: Cell -> IO Arrival
waitCell (Cell cell) = readMVar cell
{-# INLINE waitCell #-}
