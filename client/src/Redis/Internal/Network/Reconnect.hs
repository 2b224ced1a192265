-- | Whether a node may be connected to again, as a step function.
--
-- After a failed attempt nobody connects until the backoff has passed, and
-- then one attempt is made while everybody else is still told why the last one
-- failed. A node that is well may be connected to by many at once; if they all
-- fail together, that counts as one failure.
--
-- Time and chance are handed in; the state lies with whoever connects.
module Redis.Internal.Network.Reconnect
  ( Reconnect,
    untroubled,
    beginAttempt,
    attemptFailed,
    attemptAbandoned,
  )
where

import Redis.Error (ConnectionCause)
import Redis.Internal.Backoff (delayFor)
import Redis.Internal.Config (Backoff)
import Redis.Internal.Network.Clock (Nanos, nanosFromSeconds, secondsFromNanos)

-- | What is known of the attempts so far. One that succeeds makes it
-- 'untroubled' again.
data Reconnect
  = Untroubled
  | Troubled Trouble
  deriving stock (Eq, Show)

data Trouble = Trouble
  { -- | Failures since the last success.
    troubleFailures :: Int,
    troubleCause :: ConnectionCause,
    troubleNotBefore :: Nanos,
    -- | Whether the attempt that may end it is under way.
    troubleTrying :: Bool
  }
  deriving stock (Eq, Show)

-- | Nothing has failed.
untroubled :: Reconnect
untroubled = Untroubled

-- | Asks whether an attempt may begin now: 'Left' is why not, which is why the
-- last one failed. Whoever is allowed to begin says how it ended. \(O(1)\).
beginAttempt :: Nanos -> Reconnect -> Either ConnectionCause Reconnect
beginAttempt now = \case
  Untroubled -> Right Untroubled
  Troubled trouble
    | troubleTrying trouble || now < troubleNotBefore trouble -> Left (troubleCause trouble)
    | otherwise -> Right (Troubled trouble {troubleTrying = True})

-- | An attempt failed: given a random number between 0 and 1, the seconds
-- until the next may begin, and the state. \(O(1)\).
attemptFailed :: Backoff -> Nanos -> Double -> ConnectionCause -> Reconnect -> (Double, Reconnect)
attemptFailed backoff now random cause = \case
  Untroubled -> after 1
  Troubled trouble
    | troubleTrying trouble -> after (troubleFailures trouble + 1)
    -- It began before the failure that is known already.
    | otherwise ->
      ( max 0 (secondsFromNanos (troubleNotBefore trouble - now)),
        Troubled trouble {troubleCause = cause}
      )
  where
    after failures =
      let delay = delayFor backoff failures random
       in ( delay,
            Troubled
              Trouble
                { troubleFailures = failures,
                  troubleCause = cause,
                  troubleNotBefore = now + nanosFromSeconds delay,
                  troubleTrying = False
                }
          )

-- | An attempt was interrupted, which says nothing of the node. \(O(1)\).
attemptAbandoned :: Reconnect -> Reconnect
attemptAbandoned = \case
  Untroubled -> Untroubled
  Troubled trouble -> Troubled trouble {troubleTrying = False}
