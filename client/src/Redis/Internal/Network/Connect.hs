-- | Opening transports: what a client prepares once, and what each connection
-- does with it.
module Redis.Internal.Network.Connect
  ( Connector,
    newConnector,
    connectWith,
    Stage,
    openWithin,
  )
where

import Control.Exception (mask_, onException, uninterruptibleMask_)
import Data.IORef (IORef, newIORef, readIORef, writeIORef)
import Network.Socket qualified as Socket
import Redis.Duration (seconds)
import Redis.Error (ConnectionCause (ConnectTimedOut, TlsTimedOut), Endpoint (..))
import Redis.Internal.Config (Config (..))
import Redis.Internal.Network.Dial (DialTimes, dialTcp, dialTimes, dialUnix)
import Redis.Internal.Network.Socket (TcpTuning (..), socketTransport, tuneTcp)
import Redis.Internal.Network.Tls (TlsContext, newTlsContext, tlsTransport)
import Redis.Internal.Network.Transport (Transport)
import System.Timeout (timeout)

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

-- | How far an attempt to open a connection is: whether the peer is waited for to
-- agree on TLS.
newtype Stage = Stage (IORef Bool)

-- | Runs an attempt to open a connection for at most so many seconds.
openWithin :: Double -> (Stage -> IO (Either ConnectionCause a)) -> IO (Either ConnectionCause a)
openWithin limit attempt = do
  shaking <- newIORef False
  timeout (ceiling (limit * 1e6)) (attempt (Stage shaking)) >>= \case
    Just result -> pure result
    Nothing -> do
      inTls <- readIORef shaking
      pure (Left (if inTls then TlsTimedOut (seconds limit) else ConnectTimedOut limit))

-- | Connects to an endpoint. Blocks until it is connected (and, with TLS, both
-- sides have agreed), refused or out of time; the time for the handshake of
-- TLS is the caller's to limit. May be interrupted at any point by an
-- asynchronous exception, and then leaves nothing behind. The caller owns the
-- transport and must receive it with asynchronous exceptions masked, as
-- 'Control.Exception.bracket' does.
connectWith :: Stage -> Connector -> Endpoint -> IO (Either ConnectionCause Transport)
connectWith (Stage shaking) Connector {connectorTimes, connectorTuning, connectorTls} endpoint = mask_ $ do
  dialled <- case endpoint of
    TcpEndpoint host port -> dialTcp connectorTimes host port
    UnixEndpoint path -> dialUnix connectorTimes path
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
          writeIORef shaking True
          tlsTransport context endpoint socket <* writeIORef shaking False
    -- Bounded: closing a socket does not wait for its peer.
    release = uninterruptibleMask_ . Socket.close
