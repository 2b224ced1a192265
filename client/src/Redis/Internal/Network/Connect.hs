-- | Opening transports: what a client prepares once, and what each connection
-- does with it.
module Redis.Internal.Network.Connect
  ( Connector,
    newConnector,
    connectWith,
    Opening (..),
    Stage,
    openWithin,
  )
where

import Control.Concurrent.STM (STM, atomically, orElse)
import Control.Exception (mask_, onException, uninterruptibleMask_)
import Data.IORef (IORef, newIORef, readIORef, writeIORef)
import Network.Socket qualified as Socket
import Redis.Duration (seconds)
import Redis.Error (ConnectionCause (ClosedLocally, ConnectTimedOut, TlsTimedOut), Endpoint (..), renderEndpoint)
import Redis.Internal.Config (Config (..))
import Redis.Internal.Network.Dial (DialTimes, dialTcp, dialTimes, dialUnix)
import Redis.Internal.Network.Socket (TcpTuning (..), socketTransport, tuneTcp)
import Redis.Internal.Network.Tls (TlsContext, newTlsContext, tlsTransport)
import Redis.Internal.Network.Transport (Transport)
import Redis.Internal.Network.Worker (expiry, supervised)

-- | What all connections of a client share. Immutable; any number of threads
-- may connect with it at once.
data Connector = Connector
  { connectorTimes :: DialTimes,
    connectorTuning :: TcpTuning,
    -- | 'Nothing' for plain text.
    connectorTls :: Maybe TlsContext
  }

-- | Prepares what the configuration asks for. With TLS it reads the files of
-- certificates, which is the only way it fails ('Redis.Error.TlsFailed').
newConnector :: Config -> IO (Either ConnectionCause Connector)
newConnector Config {configConnectTimeout, configKeepAlive, configTcpUserTimeout, configTls} =
  fmap connector . sequence <$> traverse newTlsContext configTls
  where
    connector tls =
      Connector
        { connectorTimes = dialTimes configConnectTimeout,
          connectorTuning =
            TcpTuning {tuningKeepAlive = configKeepAlive, tuningUserTimeout = configTcpUserTimeout},
          connectorTls = tls
        }

-- | What is opened, and for how long it is wanted.
data Opening a = Opening
  { openingEndpoint :: Endpoint,
    -- | In seconds.
    openingLimit :: Double,
    -- | Retries while anybody wants it.
    openingGone :: STM (),
    -- | Closes what was opened and is not wanted.
    openingDispose :: a -> IO ()
  }

-- | How far an attempt to open a connection is.
data Stage = Stage
  { -- | Whether the peer is waited for to agree on TLS.
    stageShaking :: IORef Bool,
    -- | Why nobody waits any more, once that is so.
    stageOver :: STM ConnectionCause
  }

-- | Runs an attempt to open a connection, on a thread of its own, for as long as it is
-- wanted and its time is not over.
openWithin :: Opening a -> (Stage -> IO (Either ConnectionCause a)) -> IO (Either ConnectionCause a)
openWithin Opening {openingEndpoint, openingLimit, openingGone, openingDispose} attempt = do
  stageShaking <- newIORef False
  expired <- expiry openingLimit
  let stageOver = (ClosedLocally <$ openingGone) `orElse` (ConnectTimedOut (seconds openingLimit) <$ expired)
  supervised ("redis open " <> renderEndpoint openingEndpoint) stageOver (mapM_ openingDispose) (attempt Stage {stageShaking, stageOver}) >>= \case
    Right result -> pure result
    Left cause@(ConnectTimedOut _) -> do
      inTls <- readIORef stageShaking
      pure (Left (if inTls then TlsTimedOut (seconds openingLimit) else cause))
    Left cause -> pure (Left cause)

-- | Connects to an endpoint. Blocks until it is connected (and, with TLS, both
-- sides have agreed), refused or out of time; the time for the handshake of
-- TLS is the caller's to limit. May be interrupted at any point by an
-- asynchronous exception, and then leaves nothing behind. The caller owns the
-- transport and must receive it with asynchronous exceptions masked, as
-- 'Control.Exception.bracket' does.
connectWith :: Stage -> Connector -> Endpoint -> IO (Either ConnectionCause Transport)
connectWith Stage {stageShaking, stageOver} Connector {connectorTimes, connectorTuning, connectorTls} endpoint = mask_ $ do
  -- An action of the user's before this may have taken what was thrown to it, and gone
  -- on; nothing more is thrown then.
  over <- atomically ((Just <$> stageOver) `orElse` pure Nothing)
  dialled <- case (over, endpoint) of
    (Just cause, _) -> pure (Left cause)
    (Nothing, TcpEndpoint host port) -> dialTcp connectorTimes host port
    (Nothing, UnixEndpoint path) -> dialUnix connectorTimes path
  case dialled of
    Left cause -> pure (Left cause)
    Right socket -> do
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
          writeIORef stageShaking True
          tlsTransport context endpoint socket <* writeIORef stageShaking False
    -- Bounded: closing a socket does not wait for its peer.
    release = uninterruptibleMask_ . Socket.close
