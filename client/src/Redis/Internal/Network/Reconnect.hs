-- | Decides when a node may be connected to again, as a pure step function.
--
-- After a failed attempt nobody connects until the backoff has passed. Then one attempt is made,
-- while all other callers still get the cause of the last failure. While a node is well, many may
-- connect to it at once; if they all fail together, that counts as one failure.
--
-- An open connection does not show that the node is well: a node may accept everybody and hang up
-- at once (a proxy without a server behind it, a server that ends as it begins). So after a failure
-- connections are on trial. Everybody may connect again, but the failures are forgotten only when a
-- connection has answered a command before it was lost, or nothing has failed for as long as the
-- longest backoff. A connection that was lost without having answered a command or lived that long
-- is one more failure, also for a node that was well.
--
-- Time and random numbers are arguments; the pool that connects keeps the state.
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

-- | The state of the attempts so far.
data Reconnect
  = Untroubled
  | Troubled Setback
  deriving stock (Eq, Show)

data Setback = Setback
  { -- | Failures since the node was last known to be well.
    setbackFailures :: Int,
    setbackCause :: ConnectionCause,
    -- | The time of the last failure.
    setbackAt :: Nanos,
    setbackNotBefore :: Nanos,
    setbackStage :: SetbackStage
  }
  deriving stock (Eq, Show)

data SetbackStage
  = -- | No attempt may begin before 'setbackNotBefore'.
    Waiting
  | -- | The attempt that may end the setback is under way.
    Trying
  | -- | That attempt succeeded. If nothing else fails, the node is well at this time.
    OnTrial Nanos
  deriving stock (Eq, Show)

-- | The state in which nothing has failed.
untroubled :: Reconnect
untroubled = Untroubled

-- | Asks whether an attempt may begin now. 'Left' is the cause of the last failure. A caller that
-- may begin must report how its attempt ended. \(O(1)\).
beginAttempt :: Nanos -> Reconnect -> Either ConnectionCause Reconnect
beginAttempt now state = case tried now state of
  Untroubled -> Right Untroubled
  Troubled trouble -> case setbackStage trouble of
    OnTrial _ -> Right (Troubled trouble)
    Waiting | now >= setbackNotBefore trouble -> Right (Troubled trouble {setbackStage = Trying})
    _ -> Left (setbackCause trouble)

-- | An attempt opened a connection. An attempt that began before a failure that is known by now
-- does not shorten the wait. \(O(1)\).
attemptSucceeded :: Backoff -> Nanos -> Reconnect -> Reconnect
attemptSucceeded backoff now = \case
  Troubled trouble
    | Trying <- setbackStage trouble -> Troubled trouble {setbackStage = OnTrial (now + nanosFromSeconds (inSeconds (backoffCap backoff)))}
  other -> other

-- | An attempt failed. Takes a random number between 0 and 1; returns the seconds until the next
-- attempt may begin, and the state. \(O(1)\).
attemptFailed :: Backoff -> Nanos -> Double -> ConnectionCause -> Reconnect -> (Double, Reconnect)
attemptFailed backoff now random cause state = case tried now state of
  Troubled trouble
    -- The attempt began before the failure that is known already.
    | Waiting <- setbackStage trouble ->
      ( max 0 (secondsFromNanos (setbackNotBefore trouble - now)),
        Troubled trouble {setbackCause = cause}
      )
  other -> oneMore (delayAfter backoff random) now now cause other

-- | An attempt was interrupted, which says nothing about the node. \(O(1)\).
attemptAbandoned :: Reconnect -> Reconnect
attemptAbandoned = \case
  Troubled trouble
    | Trying <- setbackStage trouble -> Troubled trouble {setbackStage = Waiting}
  other -> other

-- | The life of a connection that has ended.
data Lifetime = Lifetime
  { -- | When commands could first use it.
    lifetimeBegan :: Nanos,
    -- | Whether any command was answered.
    lifetimeAnswered :: Bool,
    lifetimeEnd :: ConnectionCause
  }
  deriving stock (Eq, Show)

-- | A connection was lost. Takes a random number between 0 and 1. If the loss is a failure, the
-- delay counts from when the connection was opened: so nobody waits for a node whose connection
-- lived longer than the delay. \(O(1)\).
connectionLost :: Backoff -> Nanos -> Double -> Lifetime -> Reconnect -> Reconnect
connectionLost backoff now random Lifetime {lifetimeBegan, lifetimeAnswered, lifetimeEnd} state = case tried now state of
  -- A connection from before the known failure says nothing about the time since.
  before@(Troubled trouble) | lifetimeBegan < setbackAt trouble -> before
  before
    | lifetimeAnswered || now - lifetimeBegan >= nanosFromSeconds (inSeconds (backoffCap backoff)) -> Untroubled
    | ClosedLocally <- lifetimeEnd -> before
    | otherwise -> snd (oneMore (delayAfter backoff random) now lifetimeBegan lifetimeEnd before)

-- | The cause of the last failure, until an attempt succeeds. \(O(1)\).
failing :: Reconnect -> Maybe ConnectionCause
failing = \case
  Troubled trouble | Waiting <- setbackStage trouble -> Just (setbackCause trouble)
  Troubled trouble | Trying <- setbackStage trouble -> Just (setbackCause trouble)
  _ -> Nothing

-- | The state at this time: a trial that has passed is over.
tried :: Nanos -> Reconnect -> Reconnect
tried now = \case
  Troubled trouble | OnTrial end <- setbackStage trouble, now >= end -> Untroubled
  other -> other

-- | Adds a failure. Takes the delay after a number of failures, the time of the failure, and the
-- time from which the delay counts. Returns the delay, too.
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

-- | The delay in seconds after so many failures, given a random number.
delayAfter :: Backoff -> Double -> Int -> Double
delayAfter backoff random failures = delayFor backoff failures random
