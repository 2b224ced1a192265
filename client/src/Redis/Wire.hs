-- | A connection after its handshake, as a stream of bytes: for what is no
-- command and reply (MONITOR, replication), and for proxies.
--
-- > withWire config endpoint $ \wire -> do
-- >   sendBytes wire "MONITOR\r\n"
-- >   forever (receiveBytes wire 65536 >>= ByteString.putStr)
--
-- Nothing is pooled, retried or timed here, and no reply is matched to a request:
-- what is sent and what comes are the caller's. 'receiveReply' gives a reply with the
-- exact bytes in which the server said it, for programs that pass replies on.
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
import Redis.Internal.Network.Connect (newConnector)
import Redis.Internal.Network.Credentials (newCredentialStore)
import Redis.Internal.Network.Handshake (ConnectionUse (Lent))
import Redis.Internal.Network.OpenConnection (ConnectionSetup (..), Purpose (..))
import Redis.Internal.Network.Tally (newTally)
import Redis.Internal.Network.Wire

-- | Connects to this endpoint, whatever server or cluster the configuration is of,
-- makes the handshake that the configuration asks for (TLS, HELLO or AUTH, the
-- client's name, SELECT), and runs the action; then the connection is closed. Throws
-- 'ConfigError', and 'Error' if no connection can be had. Blocks for at most the
-- connect timeout before the action begins.
--
-- @since 0.1.0.0
withWire :: Config -> Endpoint -> (Wire -> IO a) -> IO a
withWire unchecked endpoint = bracket open closeWire
  where
    open = do
      config <- either (throwIO :: ConfigError -> IO a) pure (validateConfig unchecked)
      store <- newCredentialStore config
      tally <- newTally 1
      -- Masked by 'bracket': what was opened is either returned or closed.
      newConnector config >>= either failed pure >>= \connector ->
        openWire (setup config store tally connector) Purpose {purposeUse = Lent, purposeGone = retry} endpoint >>= either failed pure

    setup config store tally connector =
      ConnectionSetup
        { setupConfig = config,
          setupConnector = connector,
          setupCredentials = store,
          setupTally = tally,
          setupOnPush = \_ _ -> pure (),
          setupOnUntracked = Nothing
        }

    failed :: ConnectionCause -> IO a
    failed = throwIO . ConnectionError . ConnectionFailure NotSent endpoint
