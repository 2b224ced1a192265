-- | Opening transports: what a client prepares once, and what each connection
-- does with it.
module Redis.Internal.Network.Connect
  ( Connector,
    newConnector,
    connectWith,
  )
where

import Control.Exception (mask_)
import Redis.Error (ConnectionCause, Endpoint (..))
import Redis.Internal.Config (Config (..))
import Redis.Internal.Network.Dial (DialTimes, dialTcp, dialTimes, dialUnix)
import Redis.Internal.Network.Socket (TcpTuning (..), socketTransport, tuneTcp)
import Redis.Internal.Network.Transport (Transport)

-- | What all connections of a client share. Immutable; any number of threads
-- may connect with it at once.
data Connector = Connector
  { connectorTimes :: DialTimes,
    connectorTuning :: TcpTuning
  }

-- | Prepares what the configuration asks for.
newConnector :: Config -> IO (Either ConnectionCause Connector)
newConnector Config {configConnectTimeout, configKeepAlive, configTcpUserTimeout} =
  pure . Right $
    Connector
      { connectorTimes = dialTimes configConnectTimeout,
        connectorTuning =
          TcpTuning {tuningKeepAlive = configKeepAlive, tuningUserTimeout = configTcpUserTimeout}
      }

-- | Connects to an endpoint. Blocks until it is connected, refused or out of
-- time; may be interrupted at any point by an asynchronous exception, and then
-- leaves nothing behind. The caller owns the transport and must receive it
-- with asynchronous exceptions masked, as 'Control.Exception.bracket' does.
connectWith :: Connector -> Endpoint -> IO (Either ConnectionCause Transport)
connectWith Connector {connectorTimes, connectorTuning} endpoint = mask_ $ do
  dialled <- case endpoint of
    TcpEndpoint host port -> dialTcp connectorTimes host port
    UnixEndpoint path -> dialUnix connectorTimes path
  case dialled of
    Left cause -> pure (Left cause)
    Right socket -> do
      case endpoint of
        TcpEndpoint _ _ -> tuneTcp connectorTuning socket
        UnixEndpoint _ -> pure ()
      Right <$> socketTransport endpoint socket
