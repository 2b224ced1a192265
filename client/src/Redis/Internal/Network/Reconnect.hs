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
    noFailure,
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
  = NoFailure
  | AfterFailure BackoffState
  deriving stock (Eq, Show)

data BackoffState = BackoffState
  { -- | Failures since the node was last known to be well.
    backoffFailures :: Int,
    backoffCause :: ConnectionCause,
    -- | The time of the last failure.
    backoffAt :: Nanos,
    backoffNotBefore :: Nanos,
    backoffStage :: BackoffStage
  }
  deriving stock (Eq, Show)

data BackoffStage
  = -- | No attempt may begin before 'backoffNotBefore'.
    Waiting
  | -- | The attempt that may end the backoff is under way.
    Trying
  | -- | That attempt succeeded. If nothing else fails, the node is well at this time.
    OnTrial Nanos
  deriving stock (Eq, Show)

-- | The state in which nothing has failed.
noFailure :: Reconnect
noFailure = NoFailure

-- | Asks whether an attempt may begin now. 'Left' is the cause of the last failure. A caller that
-- may begin must report how its attempt ended. \(O(1)\).
beginAttempt :: Nanos -> Reconnect -> Either ConnectionCause Reconnect
beginAttempt now state = case tried now state of
  NoFailure -> Right NoFailure
  AfterFailure failure -> case backoffStage failure of
    OnTrial _ -> Right (AfterFailure failure)
    Waiting | now >= backoffNotBefore failure -> Right (AfterFailure failure {backoffStage = Trying})
    _ -> Left (backoffCause failure)

-- | An attempt opened a connection. An attempt that began before a failure that is known by now
-- does not shorten the wait. \(O(1)\).
attemptSucceeded :: Backoff -> Nanos -> Reconnect -> Reconnect
attemptSucceeded backoff now = \case
  AfterFailure failure
    | Trying <- backoffStage failure -> AfterFailure failure {backoffStage = OnTrial (now + nanosFromSeconds (inSeconds (backoffCap backoff)))}
  other -> other

-- | An attempt failed. Takes a random number between 0 and 1; returns the seconds until the next
-- attempt may begin, and the state. \(O(1)\).
attemptFailed :: Backoff -> Nanos -> Double -> ConnectionCause -> Reconnect -> (Double, Reconnect)
attemptFailed backoff now random cause state = case tried now state of
  AfterFailure failure
    -- The attempt began before the failure that is known already.
    | Waiting <- backoffStage failure ->
      ( max 0 (secondsFromNanos (backoffNotBefore failure - now)),
        AfterFailure failure {backoffCause = cause}
      )
  other -> oneMore (delayAfter backoff random) now now cause other

-- | An attempt was interrupted, which says nothing about the node. \(O(1)\).
attemptAbandoned :: Reconnect -> Reconnect
attemptAbandoned = \case
  AfterFailure failure
    | Trying <- backoffStage failure -> AfterFailure failure {backoffStage = Waiting}
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
  before@(AfterFailure failure) | lifetimeBegan < backoffAt failure -> before
  before
    | lifetimeAnswered || now - lifetimeBegan >= nanosFromSeconds (inSeconds (backoffCap backoff)) -> NoFailure
    | ClosedLocally <- lifetimeEnd -> before
    | otherwise -> snd (oneMore (delayAfter backoff random) now lifetimeBegan lifetimeEnd before)

-- | The cause of the last failure, until an attempt succeeds. \(O(1)\).
failing :: Reconnect -> Maybe ConnectionCause
failing = \case
  AfterFailure failure | Waiting <- backoffStage failure -> Just (backoffCause failure)
  AfterFailure failure | Trying <- backoffStage failure -> Just (backoffCause failure)
  _ -> Nothing

-- | The state at this time: a trial that has passed is over.
tried :: Nanos -> Reconnect -> Reconnect
tried now = \case
  AfterFailure failure | OnTrial end <- backoffStage failure, now >= end -> NoFailure
  other -> other

-- | Adds a failure. Takes the delay after a number of failures, the time of the failure, and the
-- time from which the delay counts. Returns the delay, too.
oneMore :: (Int -> Double) -> Nanos -> Nanos -> ConnectionCause -> Reconnect -> (Double, Reconnect)
oneMore delayOf now from cause state =
  ( delay,
    AfterFailure
      BackoffState
        { backoffFailures = failures,
          backoffCause = cause,
          backoffAt = now,
          backoffNotBefore = from + nanosFromSeconds delay,
          backoffStage = Waiting
        }
  )
  where
    delay = delayOf failures
    failures = case state of
      NoFailure -> 1
      AfterFailure failure -> backoffFailures failure + 1

-- | The delay in seconds after so many failures, given a random number.
delayAfter :: Backoff -> Double -> Int -> Double
delayAfter backoff random failures = delayFor backoff failures random
