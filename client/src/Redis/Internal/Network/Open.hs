-- | From an endpoint to a multiplexer that is ready for commands: connect, TLS and handshake, under one
-- deadline; and when a node may be connected to again.
--
-- = When a node may be connected to again
--
-- Pure functions decide; the pool that connects keeps the state. After a failed attempt nobody connects
-- until the backoff has passed. Then one attempt is made, while all other callers still get the cause of
-- the last failure. While a node is well, many may connect to it at once; if they all fail together, that
-- counts as one failure.
--
-- An open connection does not show that the node is well: a proxy without a server behind it accepts
-- everybody and hangs up at once. So after a failure connections are on trial. Everybody may connect
-- again, but the failures are forgotten only when a connection has answered a command before it was lost,
-- or nothing has failed for as long as the longest backoff. A connection that was lost without having
-- answered a command or lived that long is one more failure, also for a node that was well.
module Redis.Internal.Network.Open
  ( ConnectionSetup (..),
    newConnectionSetup,
    Purpose (..),
    Established (..),
    openConnection,
    establish,
    commandLimit,
    sharedSettings,
    exclusiveSettings,
    lateForConnection,
    tellAttemptFailed,

    -- * When a node may be connected to again
    Reconnect (NoFailure),
    beginAttempt,
    attemptSucceeded,
    attemptFailed,
    attemptAbandoned,
    Lifetime (..),
    connectionLost,
    failing,
    afterSuccess,
    afterFailure,
    afterLoss,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.MVar
import Control.Concurrent.STM (STM)
import Control.Exception (mask_, onException)
import Control.Monad (unless, when)
import Data.Foldable (for_)
import Redis.Duration (inSeconds, seconds)
import Redis.Error (ConnectionCause (ClosedLocally, CredentialsFailed), Delivery (NotSent), Endpoint, Error, renderCause)
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Connection (repliesUntilEnd)
import Redis.Internal.Network.Counters
import Redis.Internal.Network.Credentials
import Redis.Internal.Network.Dial (Connector, approachFor, beginWith, connectWith, explained, openWithin)
import Redis.Internal.Network.Handshake
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.Runtime (Deadline, Nanos, coarseNanos, durationFromNanos, nanosFromSeconds, never, preciseNanos, secondsFromNanos, timedOut)
import Redis.Internal.Network.Transport (Transport)
import Redis.Value (Value)
import System.Random (randomRIO)

-- | The settings and resources that all connections of a client share.
data ConnectionSetup = ConnectionSetup
  { setupConfig :: Config,
    setupConnector :: Connector,
    setupCredentials :: CredentialStore,
    -- | The counters of the node and the kind of connection. The client's own while no node is known.
    setupCounters :: Counters,
    -- | Called when commands were answered in time, once for those that were sent together.
    setupOnAnswers :: Endpoint -> IO (),
    -- | Called with every push.
    setupOnPush :: Endpoint -> Value -> IO (),
    -- | Set if replies are cached: called when a shared connection to a primary has ended, before its callers
    -- are told.
    setupOnUntracked :: Maybe (Endpoint -> IO ())
  }

-- | A setup with credentials and counters of its own, whose callbacks do nothing.
newConnectionSetup :: Config -> Connector -> IO ConnectionSetup
newConnectionSetup setupConfig setupConnector = do
  setupCredentials <- newCredentialStore setupConfig
  setupCounters <- newCounters 1
  pure ConnectionSetup {setupConfig, setupConnector, setupCredentials, setupCounters, setupOnAnswers = \_ -> pure (), setupOnPush = \_ _ -> pure (), setupOnUntracked = Nothing}

-- | The purpose of one connection.
data Purpose = Purpose
  { purposeUse :: ConnectionUse,
    -- | Retries while the connection is wanted; returns once it is not.
    purposeGone :: STM ()
  }

-- | A connection that commands can use, and the credentials that it was opened with.
data Established = Established
  { establishedMux :: Multiplexer,
    establishedIssue :: Issue
  }

-- | The state of a connection when commands could first use it.
data Ready = Ready
  { readyMux :: Multiplexer,
    readySince :: Nanos,
    -- | The number of replies to the handshake.
    readyReplies :: Int
  }

-- | Opens a connection. Blocks for at most the connect timeout, or until nobody wants it any more
-- ('Redis.Error.ClosedLocally'). Leaves nothing behind when it fails or is interrupted. The end of
-- the connection is reported only if its beginning was, and after it: first to the hook, then to
-- the action. Both run on the connection's own thread, after every waiting caller has been told.
openConnection :: ConnectionSetup -> Purpose -> MuxSettings -> (Lifetime -> IO ()) -> Endpoint -> IO (Either ConnectionCause Established)
openConnection setup purpose@Purpose {purposeUse} settings onEnd endpoint = mask_ $ do
  began <- preciseNanos
  -- Masked, so that what was opened is either returned or closed; the waits are interruptible all the same.
  result <- establish setup purpose endpoint (\(announced, ready, _) -> giveUp announced (readyMux ready)) begin
  ended <- preciseNanos
  case result of
    Left cause -> pure (Left cause)
    Right (announced, ready, issue) -> do
      countOne (setupCounters setup) ConnectionsOpened
      observe (Connected endpoint (durationFromNanos (ended - began))) `onException` giveUp announced (readyMux ready)
      putMVar announced (Just ready)
      pure (Right Established {establishedMux = readyMux ready, establishedIssue = issue})
  where
    config = setupConfig setup
    observe = observeConnection (configHooks config)

    giveUp announced mux = putMVar announced Nothing >> abortMultiplexer mux

    begin issue approach transport = do
      announced <- newEmptyMVar
      mux <- openMultiplexer settings {muxOnDeath = tellEnd announced} transport
      answer <- handshake config (issueCredentials issue) purposeUse approach mux `onException` giveUp announced mux
      case answer of
        Right () -> do
          countFromHere mux
          ready <- Ready mux <$> coarseNanos <*> repliesUntilEnd mux
          -- Last, because it may send AUTH. Not for a lent connection: its caller decides what is sent on it.
          unless (purposeUse == Lent) (followCredentials (setupCredentials setup) endpoint mux issue)
          pure (Right (announced, ready, issue))
        Left unready -> Left unready <$ giveUp announced mux

    tellEnd announced cause = do
      known <- readMVar announced
      for_ known $ \Ready {readyMux, readySince, readyReplies} -> do
        replies <- repliesUntilEnd readyMux
        when (cause /= ClosedLocally) (countOne (setupCounters setup) ConnectionsLost)
        observe (Disconnected endpoint cause)
        onEnd Lifetime {lifetimeBegan = readySince, lifetimeAnswered = replies > readyReplies, lifetimeEnd = cause}

-- | Connects, and has the second function make the connection ready for commands. Blocks for at most
-- the connect timeout, or until nobody wants the connection any more; the first function closes one
-- that is ready by then. Call it masked.
establish :: ConnectionSetup -> Purpose -> Endpoint -> (a -> IO ()) -> (Issue -> Approach -> Transport -> IO (Either Unready a)) -> IO (Either ConnectionCause a)
establish setup Purpose {purposeGone} endpoint dispose begin =
  openWithin connector endpoint purposeGone dispose $ \stage ->
    greeted setup endpoint $ \issue approach ->
      connectWith stage connector endpoint >>= either (pure . Left . Refused) (begin issue approach)
  where
    connector = setupConnector setup

-- | Connects with the client's credentials, and by the approach that this peer needs. A peer that hangs
-- up during the usual handshake is connected to again, within the same attempt. One that then hung up
-- at commands that it does not know is remembered for a minute. One that did not even answer
-- PING is asked that first until it answers, so that a peer that lets everybody in and hangs up gets one
-- connection for each attempt.
greeted :: ConnectionSetup -> Endpoint -> (Issue -> Approach -> IO (Either Unready a)) -> IO (Either ConnectionCause a)
greeted setup endpoint connectBy = withIssued setup $ \issue -> do
  first <- approachFor connector endpoint
  approaching issue first first
  where
    connector = setupConnector setup

    approaching issue first approach =
      connectBy issue approach >>= \case
        Right connected -> Right connected <$ learn (if approach == Bare then Bare else Usual)
        -- What was learnt holds no more, or not for this kind of connection.
        Left (HungUp _) | first == Bare -> beginWith connector endpoint Usual >> approaching issue Usual Usual
        Left (HungUp _) | approach < maxBound -> approaching issue first (succ approach)
        Left (HungUp cause) -> pure (Left cause)
        Left (Refused cause) -> Left cause <$ when (approach == AfterPing) (learn AfterPing)
      where
        learn best = unless (best == first) (beginWith connector endpoint best)

-- | Connects with the client's credentials. While the server refuses them and the action has newer ones, connects
-- again, for at most a second: a password is replaced in two places, and never in both at once.
withIssued :: ConnectionSetup -> (Issue -> IO (Either ConnectionCause a)) -> IO (Either ConnectionCause a)
withIssued ConnectionSetup {setupConfig = config, setupCredentials = store} connectAs =
  obtain store >>= \case
    Left cause -> pure (Left cause)
    Right (origin, issue) -> do
      now <- preciseNanos
      -- Credentials that were issued before may have been replaced since: no pause.
      connectAs issue >>= unlessRefused now (if origin == IssuedBefore then 0 else 1) issue
  where
    unlessRefused since pauses issue = \case
      Left cause | issueNumber issue > 0 && refusesCredentials cause -> do
        random <- randomRIO (0, 1)
        now <- preciseNanos
        let pause = if pauses == 0 then 0 else delayFor (configBackoff config) pauses random
        if secondsFromNanos (now - since) + pause > min 1 (configConnectTimeout config / 2)
          then -- The action may issue others later, so this is no permanent failure.
            pure (Left (CredentialsFailed ("the server refuses the credentials that were issued: " <> renderCause cause)))
          else do
            threadDelay (ceiling (pause * 1e6))
            obtainAfter store (issueNumber issue) >>= \case
              Left failed -> pure (Left failed)
              Right newer -> connectAs newer >>= unlessRefused since (pauses + 1 :: Int) newer
      result -> pure result

-- | The time limit of a command that has none of its own, or 'never'.
commandLimit :: Config -> Nanos
commandLimit config = maybe never nanosFromSeconds (configCommandTimeout config)

-- | The settings of a connection that all callers share.
sharedSettings :: ConnectionSetup -> Endpoint -> Int -> MuxSettings
sharedSettings setup endpoint capability =
  MuxSettings
    { muxMaxInFlight = limitInFlight limits,
      muxMaxQueued = limitQueuedBytes limits,
      muxDecodeLimits = limits,
      muxCommandTimeout = nanosFromSeconds <$> configCommandTimeout config,
      muxSilenceLimit = nanosFromSeconds <$> configSilenceLimit config,
      muxPolling = configPolling config,
      muxNeighbours = if isClusterConfig config then OfOtherNodes else NoNeighbours,
      muxBufferSize = ManyCallers,
      muxCapability = capability,
      muxCounters = Just (setupCounters setup),
      muxReplyChecks = configReplyChecks config,
      muxOnAnswers = setupOnAnswers setup endpoint,
      muxOnPush = setupOnPush setup endpoint,
      muxOnLastWord = Nothing,
      -- 'openConnection' sets its own.
      muxOnDeath = \_ -> pure ()
    }
  where
    config = setupConfig setup
    limits = configLimits config

-- | The settings of a dedicated connection. The server may keep its caller waiting, so neither
-- silence nor the command timeout ends it.
exclusiveSettings :: ConnectionSetup -> Endpoint -> Int -> MuxSettings
exclusiveSettings setup endpoint capability =
  (sharedSettings setup endpoint capability)
    { muxCommandTimeout = Nothing,
      muxSilenceLimit = Nothing,
      muxPolling = NeverPoll,
      muxNeighbours = OfOtherNodes,
      -- Nobody else's replies come here, and within a transaction a check would be queued.
      muxReplyChecks = False,
      muxBufferSize = OneCaller,
      muxMaxInFlight = 1024
    }

-- | The error of a command whose deadline has passed while it waited for a connection.
lateForConnection :: ConnectionSetup -> Endpoint -> Deadline -> IO Error
lateForConnection setup endpoint deadline = explained (setupConnector setup) endpoint (timedOut NotSent deadline)

-- | Counts a failed attempt to connect, and tells the hooks of it, with the seconds until the next one.
tellAttemptFailed :: ConnectionSetup -> Endpoint -> ConnectionCause -> Double -> IO ()
tellAttemptFailed setup endpoint cause delay = do
  countOne (setupCounters setup) ConnectsFailed
  observeConnection (configHooks (setupConfig setup)) (ConnectAttemptFailed endpoint cause (seconds delay))

-- | 'attemptSucceeded' now.
afterSuccess :: ConnectionSetup -> IO (Reconnect -> Reconnect)
afterSuccess setup = attemptSucceeded (backoffOf setup) <$> coarseNanos

-- | 'attemptFailed' now.
afterFailure :: ConnectionSetup -> IO (ConnectionCause -> Reconnect -> (Double, Reconnect))
afterFailure setup = attemptFailed (backoffOf setup) <$> coarseNanos <*> randomRIO (0, 1)

-- | 'connectionLost' now.
afterLoss :: ConnectionSetup -> Lifetime -> IO (Reconnect -> Reconnect)
afterLoss setup life = (\now random -> connectionLost (backoffOf setup) now random life) <$> coarseNanos <*> randomRIO (0, 1)

backoffOf :: ConnectionSetup -> Backoff
backoffOf = configBackoff . setupConfig

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

-- | Asks whether an attempt may begin now. 'Left' is the cause of the last failure. A caller that
-- may begin must report how its attempt ended. \(O(1)\).
beginAttempt :: Nanos -> Reconnect -> Either ConnectionCause Reconnect
beginAttempt now state = case tried now state of
  NoFailure -> Right NoFailure
  AfterFailure failure -> case backoffStage failure of
    OnTrial _ -> Right (AfterFailure failure)
    Waiting | now >= backoffNotBefore failure -> Right (AfterFailure failure {backoffStage = Trying})
    _ -> Left (backoffCause failure)

-- | An attempt opened a connection. One from before a known failure does not shorten the wait. \(O(1)\).
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
  other -> oneMore (flip (delayFor backoff) random) now now cause other

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
    | otherwise -> snd (oneMore (flip (delayFor backoff) random) now lifetimeBegan lifetimeEnd before)

-- | The cause of the last failure, until an attempt succeeds. \(O(1)\).
failing :: Reconnect -> Maybe ConnectionCause
failing = \case
  AfterFailure BackoffState {backoffStage = OnTrial _} -> Nothing
  AfterFailure failure -> Just (backoffCause failure)
  NoFailure -> Nothing

-- | The state at this time: a trial that has passed is over.
tried :: Nanos -> Reconnect -> Reconnect
tried now = \case
  AfterFailure failure | OnTrial end <- backoffStage failure, now >= end -> NoFailure
  other -> other

-- | Adds a failure. Takes the delay after a number of failures, the time of the failure, and the
-- time from which the delay counts. Returns the delay, too.
oneMore :: (Int -> Double) -> Nanos -> Nanos -> ConnectionCause -> Reconnect -> (Double, Reconnect)
oneMore delayOf now from cause state = (delay, AfterFailure after)
  where
    after =
      BackoffState
        { backoffFailures = failures,
          backoffCause = cause,
          backoffAt = now,
          backoffNotBefore = from + nanosFromSeconds delay,
          backoffStage = Waiting
        }
    delay = delayOf failures
    failures = case state of
      NoFailure -> 1
      AfterFailure failure -> backoffFailures failure + 1
