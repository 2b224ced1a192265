-- | Whether a node may be connected to again, as a step function.
--
-- After a failed attempt nobody connects until the backoff has passed, and
-- then one attempt is made while everybody else is still told why the last one
-- failed. A node that is well may be connected to by many at once; if they all
-- fail together, that counts as one failure.
--
-- That a connection was had does not show that the node is well: one may let
-- everybody in and hang up at once (a proxy without a server behind it, a
-- server that ends as it begins). So after a failure connections are on trial.
-- Everybody may connect again, but the failures are forgotten only when a
-- connection has answered somebody before it was lost, or nothing has gone
-- wrong for as long as the longest backoff. A connection that was lost before
-- it could show anything is one more failure, for a node that was well, too.
--
-- Time and chance are handed in; the state lies with whoever connects.
module Redis.Internal.Network.Reconnect
  ( Reconnect,
    untroubled,
    beginAttempt,
    attemptSucceeded,
    attemptFailed,
    attemptAbandoned,
    Lifetime (..),
    connectionLost,
    failing,
  )
where

import Redis.Duration (inSeconds)
import Redis.Error (ConnectionCause (ClosedLocally))
import Redis.Internal.Backoff (delayFor)
import Redis.Internal.Config (Backoff (backoffCap))
import Redis.Internal.Network.Clock (Nanos, nanosFromSeconds, secondsFromNanos)

-- | What is known of the attempts so far.
data Reconnect
  = Untroubled
  | Troubled Setback
  deriving stock (Eq, Show)

data Setback = Setback
  { -- | Failures since the node was last known to be well.
    setbackFailures :: Int,
    setbackCause :: ConnectionCause,
    -- | When the last of them was.
    setbackAt :: Nanos,
    setbackNotBefore :: Nanos,
    setbackStage :: SetbackStage
  }
  deriving stock (Eq, Show)

data SetbackStage
  = -- | No attempt may begin before its time.
    Waiting
  | -- | The attempt that may end it is under way.
    Trying
  | -- | It succeeded. If nothing else goes wrong, the node is well at this time.
    OnTrial Nanos
  deriving stock (Eq, Show)

-- | Nothing has failed.
untroubled :: Reconnect
untroubled = Untroubled

-- | Asks whether an attempt may begin now: 'Left' is why not, which is why the
-- last one failed. Whoever is allowed to begin says how it ended. \(O(1)\).
beginAttempt :: Nanos -> Reconnect -> Either ConnectionCause Reconnect
beginAttempt now state = case tried now state of
  Untroubled -> Right Untroubled
  Troubled trouble -> case setbackStage trouble of
    OnTrial _ -> Right (Troubled trouble)
    Waiting | now >= setbackNotBefore trouble -> Right (Troubled trouble {setbackStage = Trying})
    _ -> Left (setbackCause trouble)

-- | An attempt came to a connection. One that began before a failure that is
-- known by now does not shorten the wait. \(O(1)\).
attemptSucceeded :: Backoff -> Nanos -> Reconnect -> Reconnect
attemptSucceeded backoff now = \case
  Troubled trouble
    | Trying <- setbackStage trouble -> Troubled trouble {setbackStage = OnTrial (now + nanosFromSeconds (inSeconds (backoffCap backoff)))}
  other -> other

-- | An attempt failed: given a random number between 0 and 1, the seconds
-- until the next may begin, and the state. \(O(1)\).
attemptFailed :: Backoff -> Nanos -> Double -> ConnectionCause -> Reconnect -> (Double, Reconnect)
attemptFailed backoff now random cause state = case tried now state of
  Troubled trouble
    -- It began before the failure that is known already.
    | Waiting <- setbackStage trouble ->
      ( max 0 (secondsFromNanos (setbackNotBefore trouble - now)),
        Troubled trouble {setbackCause = cause}
      )
  other -> oneMore (delayAfter backoff random) now now cause other

-- | An attempt was interrupted, which says nothing of the node. \(O(1)\).
attemptAbandoned :: Reconnect -> Reconnect
attemptAbandoned = \case
  Troubled trouble
    | Trying <- setbackStage trouble -> Troubled trouble {setbackStage = Waiting}
  other -> other

-- | A connection that was had, and is no more.
data Lifetime = Lifetime
  { -- | Since when commands could use it.
    lifetimeBegan :: Nanos,
    -- | Whether any of them was answered.
    lifetimeAnswered :: Bool,
    lifetimeEnd :: ConnectionCause
  }
  deriving stock (Eq, Show)

-- | A connection was lost; given is a random number between 0 and 1. If that is
-- a failure, the delay counts from when the connection was had: so nobody waits
-- for a node whose connection lived longer than the delay. \(O(1)\).
connectionLost :: Backoff -> Nanos -> Double -> Lifetime -> Reconnect -> Reconnect
connectionLost backoff now random Lifetime {lifetimeBegan, lifetimeAnswered, lifetimeEnd} state = case tried now state of
  -- It says nothing of what has happened since the failure that is known.
  before@(Troubled trouble) | lifetimeBegan < setbackAt trouble -> before
  before
    | lifetimeAnswered || now - lifetimeBegan >= nanosFromSeconds (inSeconds (backoffCap backoff)) -> Untroubled
    | ClosedLocally <- lifetimeEnd -> before
    | otherwise -> snd (oneMore (delayAfter backoff random) now lifetimeBegan lifetimeEnd before)

-- | Why the last attempt failed, until one succeeds. \(O(1)\).
failing :: Reconnect -> Maybe ConnectionCause
failing = \case
  Troubled trouble | Waiting <- setbackStage trouble -> Just (setbackCause trouble)
  Troubled trouble | Trying <- setbackStage trouble -> Just (setbackCause trouble)
  _ -> Nothing

-- | The state, without a trial that is over.
tried :: Nanos -> Reconnect -> Reconnect
tried now = \case
  Troubled trouble | OnTrial end <- setbackStage trouble, now >= end -> Untroubled
  other -> other

-- | One more failure, given the delay after so many, known now, whose delay counts from
-- a time; with the delay.
oneMore :: (Int -> Double) -> Nanos -> Nanos -> ConnectionCause -> Reconnect -> (Double, Reconnect)
oneMore delayOf now from cause state =
  ( delay,
    Troubled
      Setback
        { setbackFailures = failures,
          setbackCause = cause,
          setbackAt = now,
          setbackNotBefore = from + nanosFromSeconds delay,
          setbackStage = Waiting
        }
  )
  where
    delay = delayOf failures
    failures = case state of
      Untroubled -> 1
      Troubled trouble -> setbackFailures trouble + 1

-- | The delay after so many failures, by a random number.
delayAfter :: Backoff -> Double -> Int -> Double
delayAfter backoff random failures = delayFor backoff failures random
