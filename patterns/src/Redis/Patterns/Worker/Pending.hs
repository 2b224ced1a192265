-- | The rules for a pending entry, without the server.
--
-- All that a worker must remember of an entry is in the group's own list of pending entries: which
-- consumer has it, for how long, and how often it was given out. An entry that rests after a
-- failure belongs to a consumer of its own ('resting'). So its rest survives every worker, and lasts for
-- a time that follows from how often the entry was given out.
module Redis.Patterns.Worker.Pending
  ( Verdict (..),
    verdict,
    shortestWait,
    resting,
    isSpent,
    letterFields,
  )
where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty)
import Data.List.NonEmpty qualified as NonEmpty
import Redis (Duration, Error (..), Refusal (..))
import Redis.Commands (PendingEntry (..))
import Redis.Patterns.Worker.Settings

-- | What a worker should do with a pending entry.
data Verdict
  = -- | Leave it alone.
    Leave
  | -- | Take it over, if nobody has touched it for this long.
    TakeOver Duration
  | -- | Make a dead letter of it: it was given out often enough, and nobody has touched it for this
    -- long.
    Bury Duration
  deriving stock (Eq, Show)

-- | The name of the consumer that has the resting entries.
resting :: ByteString
resting = "(resting)"

-- | What to do with an entry, given whether this worker has it in hand.
verdict :: Worker -> Bool -> PendingEntry -> Verdict
verdict settings inHand PendingEntry {pendingEntryConsumer, pendingEntryIdle, pendingEntryDeliveries}
  | inHand || pendingEntryIdle < wait = Leave
  | isSpent settings pendingEntryDeliveries = Bury wait
  | otherwise = TakeOver wait
  where
    wait
      | pendingEntryConsumer == resting = retryDelay (workerBackoff settings) pendingEntryDeliveries
      | otherwise = workerClaimAfter settings

-- | The shortest time after which a worker may have to act. Entries that were touched more recently
-- need nothing.
shortestWait :: Worker -> Duration
shortestWait settings = min (workerClaimAfter settings) (retryDelay (workerBackoff settings) 1)

-- | Whether an entry that was given out this often may not be given out again.
isSpent :: Integral count => Worker -> count -> Bool
isSpent settings deliveries = toInteger deliveries >= toInteger (workerMaxAttempts settings)

-- | The fields of a dead letter: those of its entry, and the facts behind them. An error if XADD would
-- have more words than a command may have: the server would close the connection.
letterFields :: NonEmpty (ByteString, ByteString) -> [(ByteString, ByteString)] -> Either Error (NonEmpty (ByteString, ByteString))
letterFields facts fields
  -- Three words are the name, the key and the id.
  | 3 + 2 * length letter > 1024 * 1024 = Left (RefusedError (UnfitArgument "XADD" "more than 1048576 words"))
  | otherwise = Right letter
  where
    letter = foldr NonEmpty.cons facts fields
