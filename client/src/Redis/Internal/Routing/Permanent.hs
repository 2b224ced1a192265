-- | Failures that stay as they are until somebody changes a setting.
module Redis.Internal.Routing.Permanent
  ( isPermanent,
    isPermanentCause,
  )
where

import Data.ByteString.Char8 qualified as Char8
import Redis.Error
import Redis.Internal.Network.Handshake (passes)

-- | Whether asking again would fail the same way: a wrong password, a certificate that is
-- not trusted, a server that is no node of a cluster, a name that sentinels do not know.
isPermanent :: Error -> Bool
isPermanent = \case
  ConnectionError ConnectionFailure {connectionCause = cause} -> isPermanentCause cause
  ReplyError ServerError {serverErrorCode, serverErrorMessage} ->
    serverErrorCode == "NOPERM"
      || serverErrorCode == "ERR" && any (`Char8.isPrefixOf` serverErrorMessage) ["This instance has cluster support disabled", "No such master with that name"]
  _ -> False

-- | Like 'isPermanent', for the reason why a connection could not be opened.
isPermanentCause :: ConnectionCause -> Bool
isPermanentCause = \case
  TlsFailed _ -> True
  -- For example a wrong password, a database that does not exist, or a proxy's own words.
  HandshakeRefused said -> not (passes said)
  _ -> False
