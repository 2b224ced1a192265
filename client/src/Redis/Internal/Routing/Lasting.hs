-- | Failures that stay as they are until somebody changes a setting.
module Redis.Internal.Routing.Lasting
  ( isLasting,
    lastingCause,
  )
where

import Data.ByteString.Char8 qualified as Char8
import Redis.Error
import Redis.Internal.Network.Handshake (lacksRoom)

-- | Whether asking again would be told the same: a wrong password, a certificate
-- that is not believed, a server that is no node of a cluster, a name that sentinels do not
-- know.
isLasting :: Error -> Bool
isLasting = \case
  ConnectionError ConnectionFailure {connectionCause = cause} -> lastingCause cause
  ReplyError ServerError {serverErrorCode, serverErrorMessage} ->
    serverErrorCode == "NOPERM"
      || serverErrorCode == "ERR" && any (`Char8.isPrefixOf` serverErrorMessage) ["This instance has cluster support disabled", "No such master with that name"]
  _ -> False

-- | The same of the cause of a connection that could not be had.
lastingCause :: ConnectionCause -> Bool
lastingCause = \case
  TlsFailed _ -> True
  HandshakeRefused said@ServerError {serverErrorCode} ->
    serverErrorCode `elem` ["WRONGPASS", "NOAUTH", "NOPERM", "NOPROTO", "DENIED"]
      -- No such database, a password that nobody asked for; but room for
      -- another client there may be soon.
      || (serverErrorCode == "ERR" && not (lacksRoom said))
  _ -> False
