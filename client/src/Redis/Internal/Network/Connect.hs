-- | Opens transports. A client makes one 'Connector', and opens every connection with it.
module Redis.Internal.Network.Connect
  ( Connector,
    newConnector,
    connectWith,
    Approach (..),
    approachFor,
    beginWith,
    Opening (..),
    Stage,
    openWithin,
    explained,
  )
where

import Control.Concurrent.STM (STM, atomically, orElse)
import Control.Exception (mask_, onException, uninterruptibleMask_)
import Control.Monad (join)
import Data.IORef (IORef, atomicModifyIORef', newIORef, readIORef, writeIORef)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Network.Socket qualified as Socket
import Redis.Duration (milliseconds, seconds)
import Redis.Error (ConnectionCause (ClosedLocally, ConnectTimedOut, TlsTimedOut), Delivery (NotSent), Endpoint (..), Error (TimeoutError), TimeoutFailure (..), renderEndpoint)
import Redis.Internal.Config (Config (..))
import Redis.Internal.Network.Clock (coarseNanos)
import Redis.Internal.Network.Dial (DialTimes (dialDeadline), dialTcp, dialTimes, dialUnix)
import Redis.Internal.Network.Socket (TcpTuning (..), socketTransport, tuneTcp)
import Redis.Internal.Network.Tls (TlsContext, newTlsContext, tlsTransport)
import Redis.Internal.Network.Transport (Transport)
import Redis.Internal.Network.Worker (expiry, supervised)

-- | The timeouts, TCP options and TLS context that all connections of a client share, and what it has
-- learnt of its peers. Any number of threads may connect with it at once.
data Connector = Connector
  { connectorTimes :: DialTimes,
    connectorTuning :: TcpTuning,
    -- | 'Nothing' for plain text.
    connectorTls :: Maybe TlsContext,
    -- | How the handshake begins with the peers for which that is not the usual way.
    connectorApproaches :: IORef (Map Endpoint Approach),
    -- | What is wrong so far with the attempt that is under way, or was with the last one that failed.
    connectorFailures :: IORef (Map Endpoint (IO ConnectionCause))
  }

-- | Makes the connector for a configuration. With TLS it reads the certificate files; nothing else
-- can fail ('Redis.Error.TlsFailed').
newConnector :: Config -> IO (Either ConnectionCause Connector)
newConnector Config {configConnectTimeout, configKeepAlive, configTcpUserTimeout, configTls} =
  traverse newTlsContext configTls >>= traverse connector . sequence
  where
    connector tls = do
      connectorApproaches <- newIORef Map.empty
      connectorFailures <- newIORef Map.empty
      pure
        Connector
          { connectorTimes = dialTimes configConnectTimeout,
            connectorTuning =
              TcpTuning {tuningKeepAlive = configKeepAlive, tuningUserTimeout = configTcpUserTimeout},
            connectorTls = tls,
            connectorApproaches,
            connectorFailures
          }

-- | How the handshake with a peer is made.
data Approach
  = -- | All at once.
    Usual
  | -- | The same after the reply to a PING.
    AfterPing
  | -- | In RESP2, and only what is required.
    Bare
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The approach with which the handshake with a peer begins. \(O(\log n)\).
approachFor :: Connector -> Endpoint -> IO Approach
approachFor connector endpoint = Map.findWithDefault Usual endpoint <$> readIORef (connectorApproaches connector)

-- | Has later handshakes with a peer begin with this approach. \(O(\log n)\).
beginWith :: Connector -> Endpoint -> Approach -> IO ()
beginWith connector endpoint approach = atomicModifyIORef' (connectorApproaches connector) (\known -> (change known, ()))
  where
    change
      | approach == Usual = Map.delete endpoint
      | otherwise = Map.insert endpoint approach

-- | A connection to open: its endpoint, its time limit, and when nobody wants it any more.
data Opening a = Opening
  { openingConnector :: Connector,
    openingEndpoint :: Endpoint,
    -- | The time limit of the whole attempt, in seconds.
    openingLimit :: Double,
    -- | Retries while the connection is wanted; returns once it is not.
    openingGone :: STM (),
    -- | Closes a connection that was opened but is not wanted any more.
    openingDispose :: a -> IO ()
  }

-- | The progress of an attempt to open a connection.
data Stage = Stage
  { -- | What is wrong if the time is over now.
    stageLate :: IORef ConnectionCause,
    -- | Retries while the attempt may go on; then returns the reason to stop.
    stageOver :: STM ConnectionCause
  }

-- | Runs an attempt to open a connection, on a thread of its own. Stops it when its time limit has
-- passed ('TlsTimedOut' during the TLS handshake, 'Redis.Error.ConnectFailed' while several addresses are
-- tried, otherwise 'ConnectTimedOut') or when nobody wants the connection any more ('ClosedLocally').
openWithin :: Opening a -> (Stage -> IO (Either ConnectionCause a)) -> IO (Either ConnectionCause a)
openWithin Opening {openingConnector, openingEndpoint, openingLimit, openingGone, openingDispose} attempt = do
  stageLate <- newIORef (ConnectTimedOut (seconds openingLimit))
  began <- coarseNanos
  expired <- expiry openingLimit
  let stageOver = (ClosedLocally <$ openingGone) `orElse` (ConnectTimedOut (seconds openingLimit) <$ expired)
      soFar = lateAfter <$> (subtract began <$> coarseNanos) <*> readIORef stageLate
  note (Map.insert openingEndpoint soFar)
  ended <- supervised ("redis open " <> renderEndpoint openingEndpoint) stageOver (mapM_ openingDispose) (attempt Stage {stageLate, stageOver}) `onException` (soFar >>= keep)
  case join ended of
    Right result -> Right result <$ note (Map.delete openingEndpoint)
    Left (ConnectTimedOut _) -> readIORef stageLate >>= \cause -> Left cause <$ keep cause
    Left ClosedLocally -> Left ClosedLocally <$ (soFar >>= keep)
    Left cause -> Left cause <$ keep cause
  where
    keep = note . Map.insert openingEndpoint . pure
    note change = atomicModifyIORef' (connectorFailures openingConnector) (\known -> (change known, ()))
    lateAfter nanos = \case
      ConnectTimedOut _ -> ConnectTimedOut (rounded nanos)
      TlsTimedOut _ -> TlsTimedOut (rounded nanos)
      cause -> cause
    rounded nanos = milliseconds (fromIntegral (nanos `quot` 1000000))

-- | The error of a command whose time was over while it waited for a connection to an endpoint,
-- with what is wrong with that connection. Other errors stay as they are. \(O(\log n)\).
explained :: Connector -> Endpoint -> Error -> IO Error
explained connector endpoint = \case
  TimeoutError failure@TimeoutFailure {timeoutDelivery = NotSent, timeoutConnecting = Nothing} -> do
    trouble <- readIORef (connectorFailures connector) >>= sequence . Map.lookup endpoint
    pure (TimeoutError failure {timeoutConnecting = (,) endpoint <$> trouble})
  failure -> pure failure

-- | Connects to an endpoint. Blocks until the connection is ready (with TLS, including the TLS
-- handshake), refused or out of time; the caller must limit the time of the TLS handshake. An
-- asynchronous exception may interrupt it at any point, and then nothing is left behind. The caller
-- owns the transport and must receive it with asynchronous exceptions masked, as
-- 'Control.Exception.bracket' does.
connectWith :: Stage -> Connector -> Endpoint -> IO (Either ConnectionCause Transport)
connectWith Stage {stageLate, stageOver} Connector {connectorTimes, connectorTuning, connectorTls} endpoint = mask_ $ do
  -- The user's credentials action runs before this. It may have caught the exception that was to
  -- stop this thread, and gone on. No second exception is thrown, so check here.
  over <- atomically ((Just <$> stageOver) `orElse` pure Nothing)
  dialled <- case (over, endpoint) of
    (Just cause, _) -> pure (Left cause)
    (Nothing, TcpEndpoint host port) -> dialTcp connectorTimes (writeIORef stageLate) host port
    (Nothing, UnixEndpoint path) -> dialUnix connectorTimes path
  case dialled of
    Left cause -> pure (Left cause)
    Right socket -> do
      writeIORef stageLate (ConnectTimedOut limit)
      outcome <- equip socket `onException` release socket
      case outcome of
        Left cause -> Left cause <$ release socket
        Right transport -> pure (Right transport)
  where
    equip socket = do
      case endpoint of
        TcpEndpoint _ _ -> tuneTcp connectorTuning socket
        UnixEndpoint _ -> pure ()
      case connectorTls of
        Nothing -> Right <$> socketTransport endpoint socket
        Just context -> do
          writeIORef stageLate (TlsTimedOut limit)
          tlsTransport context endpoint socket <* writeIORef stageLate (ConnectTimedOut limit)
    limit = seconds (dialDeadline connectorTimes)
    -- Bounded: closing a socket does not wait for its peer.
    release = uninterruptibleMask_ . Socket.close
