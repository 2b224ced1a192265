-- | A connection as a stream of bytes, after its handshake: for protocols beyond command and reply
-- (MONITOR, replication), and for proxies.
--
-- > withWire config endpoint $ \wire -> do
-- >   sendBytes wire "MONITOR\r\n"
-- >   forever (receiveBytes wire 65536 >>= ByteString.putStr)
--
-- This module pools, retries and times nothing, and matches no reply to a request: that is up to the
-- caller. 'receiveReply' returns a reply with the exact bytes in which the server sent it, for
-- programs that pass replies on.
module Redis.Wire
  ( Wire,
    withWire,
    sendBytes,
    receiveBytes,
    receiveReply,
  )
where

import Control.Concurrent.STM (retry)
import Control.Exception (bracket, throwIO)
import Redis.Config (ConfigError, validateConfig)
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Network.Dial (newConnector)
import Redis.Internal.Network.Handshake (ConnectionUse (Lent))
import Redis.Internal.Network.Open (Purpose (..), newConnectionSetup)
import Redis.Internal.Network.Stream

-- | Connects to this endpoint, whatever servers the configuration names, makes the handshake of the
-- configuration (TLS, HELLO or AUTH, the client's name, SELECT), runs the action, and closes the
-- connection. Throws 'ConfigError', and 'Error' if the connection cannot be opened. Blocks for at
-- most the connect timeout before the action begins.
withWire :: Config -> Endpoint -> (Wire -> IO a) -> IO a
withWire unchecked endpoint = bracket open closeWire
  where
    open = do
      config <- either (throwIO :: ConfigError -> IO a) pure (validateConfig unchecked)
      connector <- newConnector config >>= either failed pure
      setup <- newConnectionSetup config connector
      -- Masked by 'bracket': a connection that was opened is either returned or closed.
      openWire setup Purpose {purposeUse = Lent, purposeGone = retry} endpoint >>= either failed pure

    failed :: ConnectionCause -> IO a
    failed = throwIO . ConnectionError . ConnectionFailure "" NotSent endpoint
