-- | From an endpoint to a multiplexer that is ready for commands: connect,
-- TLS and handshake, under one deadline.
module Redis.Internal.Network.OpenConnection
  ( ConnectionSetup (..),
    Purpose (..),
    openConnection,
    issued,
    sharedSettings,
    exclusiveSettings,
  )
where

import Control.Concurrent.MVar
import Control.Concurrent.STM (STM, atomically, orElse)
import Control.Exception (SomeAsyncException, SomeException, displayException, fromException, mask_, onException, throwIO, try)
import Control.Monad (unless, void)
import Data.Foldable (for_)
import Redis.Duration (Duration, inSeconds)
import Redis.Error (ConnectionCause (ClosedLocally, ConnectTimedOut, CredentialsFailed), Endpoint, renderEndpoint)
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Clock (Nanos, coarseNanos, nanosFromSeconds, preciseNanos, secondsFromNanos)
import Redis.Internal.Network.Connect (Connector, connectWith)
import Redis.Internal.Network.Handshake
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.MuxState (repliesUntilEnd)
import Redis.Internal.Network.Reconnect (Life (..))
import Redis.Internal.Network.ResponseSlot (Outcome (Reply))
import Redis.Internal.Network.Worker (expiry, spawn, supervised)
import Redis.Internal.Protocol.Decode (DecodeLimits (..))
import Redis.Value (Value (ErrorReply))
import System.Timeout (timeout)

-- | What all connections of a client have in common.
data ConnectionSetup = ConnectionSetup
  { setupConfig :: Config,
    setupConnector :: Connector,
    -- | Where pushes go.
    setupOnPush :: Endpoint -> Value -> IO ()
  }

-- | What one connection is opened for.
data Purpose = Purpose
  { purposeUse :: ConnectionUse,
    -- | Retries while anybody wants it.
    purposeGone :: STM ()
  }

-- | What a connection was like when commands could use it first.
data Ready = Ready
  { readyMux :: Multiplexer,
    readySince :: Nanos,
    -- | To the handshake.
    readyReplies :: Int
  }

-- | Opens a connection. Blocks for at most the connect timeout, or until nobody wants
-- it any more ('ClosedLocally'). Leaves nothing behind when it fails or is
-- interrupted. The end of a connection is told only
-- if its beginning was, and after it: to the hook, and then to the action, on
-- the connection's own thread, when everybody who waited has been told.
openConnection :: ConnectionSetup -> Purpose -> MuxSettings -> (Life -> IO ()) -> Endpoint -> IO (Either ConnectionCause Multiplexer)
openConnection setup Purpose {purposeUse, purposeGone} settings onEnd endpoint = mask_ $ do
  began <- preciseNanos
  announced <- newEmptyMVar
  expired <- expiry limit
  let over = (ClosedLocally <$ purposeGone) `orElse` (ConnectTimedOut limit <$ expired)
  -- Masked throughout, so that what was opened is either returned or closed;
  -- connecting and waiting for the handshake are interruptible all the same.
  result <-
    supervised
      ("redis open " <> renderEndpoint endpoint)
      over
      (mapM_ (giveUp announced . readyMux))
      (attempt announced over)
  ended <- preciseNanos
  case result of
    Left cause -> pure (Left cause)
    Right (Left cause) -> pure (Left cause)
    Right (Right ready) -> do
      observe (Connected endpoint (secondsFromNanos (ended - began))) `onException` giveUp announced (readyMux ready)
      putMVar announced (Just ready)
      pure (Right (readyMux ready))
  where
    config = setupConfig setup
    limit = configConnectTimeout config
    observe = observeConnection (configHooks config)

    giveUp announced mux = putMVar announced Nothing >> abortMultiplexer mux

    attempt announced over =
      -- Its action may take what is thrown to it and go on; nothing more is thrown then.
      (issued config >>= \known -> atomically ((Left <$> over) `orElse` pure known)) >>= \case
        Left cause -> pure (Left cause)
        Right known ->
          connectWith (setupConnector setup) endpoint >>= \case
            Left cause -> pure (Left cause)
            Right transport -> do
              mux <- openMultiplexer settings {muxOnDeath = tellEnd announced} transport
              answer <- handshake config (issuedAs <$> known) purposeUse mux `onException` giveUp announced mux
              case answer of
                Right () -> do
                  -- What a lent connection is told in between is its caller's affair.
                  unless (purposeUse == Lent) (for_ (known >>= issuedFor) (renewing config endpoint mux))
                  Right <$> (Ready mux <$> coarseNanos <*> repliesUntilEnd mux)
                Left cause -> do
                  giveUp announced mux
                  pure (Left cause)

    tellEnd announced cause = do
      known <- readMVar announced
      for_ known $ \Ready {readyMux, readySince, readyReplies} -> do
        replies <- repliesUntilEnd readyMux
        observe (Disconnected endpoint cause)
        onEnd Life {lifeBegan = readySince, lifeAnswered = replies > readyReplies, lifeEnd = cause}

-- | The credentials to connect with, as they are now.
issued :: Config -> IO (Either ConnectionCause (Maybe IssuedCredentials))
issued config = case configCredentials config of
  NoCredentials -> pure (Right Nothing)
  FixedCredentials known -> pure (Right (Just (issuedCredentials known)))
  CredentialsFrom action ->
    try action >>= \case
      Right fresh -> pure (Right (Just fresh))
      Left (problem :: SomeException) -> case fromException problem of
        Just (asynchronous :: SomeAsyncException) -> throwIO asynchronous
        Nothing -> pure (Left (CredentialsFailed (displayException problem)))

-- | Says AUTH anew on a connection that is used, in line with the commands, when
-- four fifths of the time are over for which its credentials are good. It ends with
-- the connection. What goes wrong is told, and tried again after as long a time.
renewing :: Config -> Endpoint -> Multiplexer -> Duration -> IO ()
renewing config endpoint mux first = void (spawn ("redis credentials " <> renderEndpoint endpoint) (wait first))
  where
    wait lifetime = do
      -- Nobody else throws to this thread.
      gone <- timeout (max 1000 (round (inSeconds lifetime * 0.8e6))) (awaitGone mux)
      case gone of
        Just () -> pure ()
        Nothing -> issued config >>= again lifetime

    again lifetime = \case
      Right (Just fresh) -> do
        reply <- submitCommand mux usualTerms (authentication (issuedAs fresh))
        case reply of
          Reply (ErrorReply text) -> refused (refusal (Just (issuedAs fresh)) text)
          _ -> pure ()
        -- Once nobody says how long they are good for, they are for good.
        for_ (issuedFor fresh) wait
      Right Nothing -> pure ()
      Left cause -> refused cause >> wait lifetime

    refused = observeConnection (configHooks config) . CredentialsNotRenewed endpoint

-- | For a connection that all callers share.
sharedSettings :: ConnectionSetup -> Endpoint -> Int -> MuxSettings
sharedSettings setup endpoint capability =
  MuxSettings
    { muxMaxInFlight = limitInFlight limits,
      muxMaxQueued = limitQueuedBytes limits,
      muxDecodeLimits =
        DecodeLimits
          { decodeMaxBulk = limitBulkBytes limits,
            decodeMaxElements = limitElements limits,
            decodeMaxDepth = limitDepth limits
          },
      muxCommandTimeout = nanosFromSeconds <$> configCommandTimeout config,
      muxSilenceLimit = nanosFromSeconds <$> configSilenceLimit config,
      muxPolling = configPolling config,
      muxAlone = case configTopology config of
        Standalone _ -> True
        Cluster _ -> False,
      muxWeight = ManyCallers,
      muxCapability = capability,
      muxOnPush = setupOnPush setup endpoint,
      -- 'openConnection' has its own.
      muxOnDeath = \_ -> pure ()
    }
  where
    config = setupConfig setup
    limits = configLimits config

-- | For a connection that one caller has for itself: the server may keep it
-- waiting, so neither silence nor the command timeout ends it.
exclusiveSettings :: ConnectionSetup -> Endpoint -> Int -> MuxSettings
exclusiveSettings setup endpoint capability =
  (sharedSettings setup endpoint capability)
    { muxCommandTimeout = Nothing,
      muxSilenceLimit = Nothing,
      muxPolling = NeverPoll,
      muxAlone = False,
      muxWeight = OneCaller,
      muxMaxInFlight = 1024
    }
