-- | What becomes of an entry that is pending: the rules, without the server.
--
-- All that a worker must remember of an entry is in the group's own list of what is pending:
-- who has it, for how long, and how often it was given out. An entry that rests after a failure
-- is with a consumer of a name of its own ('resting'), which no worker has; so the rest begins
-- when it was given there, survives every worker, and its length follows from how often the
-- entry was given out.
module Redis.Patterns.Worker.Pending
  ( Verdict (..),
    verdict,
    shortestWait,
    resting,
    isSpent,
  )
where

import Data.ByteString (ByteString)
import Redis (Duration)
import Redis.Commands (PendingEntry (..))
import Redis.Patterns.Worker.Settings

-- | What to do.
data Verdict
  = -- | Leave it.
    Leave
  | -- | Take it over, if nobody has touched it for this long.
    TakeOver Duration
  | -- | It was given out often enough: it becomes a dead letter, if nobody has touched it for
    -- this long.
    Bury Duration
  deriving stock (Eq, Show)

-- | The consumer that has what rests.
resting :: ByteString
resting = "(resting)"

-- | What to do with an entry, of which is known whether this worker has it in hand.
verdict :: Worker -> Bool -> PendingEntry -> Verdict
verdict settings inHand PendingEntry {pendingEntryConsumer, pendingEntryIdle, pendingEntryDeliveries}
  | inHand || pendingEntryIdle < wait = Leave
  | isSpent settings pendingEntryDeliveries = Bury wait
  | otherwise = TakeOver wait
  where
    wait
      | pendingEntryConsumer == resting = retryDelay (workerBackoff settings) pendingEntryDeliveries
      | otherwise = workerAbandoned settings

-- | Nothing need be done with what has been touched since.
shortestWait :: Worker -> Duration
shortestWait settings = min (workerAbandoned settings) (retryDelay (workerBackoff settings) 1)

-- | Whether that was the last time.
isSpent :: Integral count => Worker -> count -> Bool
isSpent settings deliveries = toInteger deliveries >= toInteger (workerTries settings)
