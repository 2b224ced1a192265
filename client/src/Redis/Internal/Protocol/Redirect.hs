-- | Error replies that mean: not here, or not now.
--
-- The text comes from a server and decides which host is dialled next, so every part of it is
-- checked before it is believed: the slot, the port, the length of the host and its characters. A
-- text that fails a check is no redirect, and the caller gets the server's error as it stands.
module Redis.Internal.Protocol.Redirect
  ( Redirect (..),
    parseRedirect,

    -- * Where to
    RedirectAddress (..),
    redirectEndpoint,
    parsePort,
  )
where

import Control.Monad (guard, mfilter, (>=>))
import Data.Bits (toIntegralSized)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isDigit)
import Data.Maybe (fromMaybe)
import Redis.Error
import Redis.Internal.Config (AddressMapping, isHostName, mappedAddress)
import Redis.Internal.Protocol.Slot (Slot, slotFromInt)

-- | The meaning of an error that says nothing against the command.
data Redirect
  = -- | The slot belongs to that node.
    Moved Slot RedirectAddress
  | -- | For this command alone, ask that node, with ASKING ahead.
    Ask Slot RedirectAddress
  | -- | A replica outside a cluster says who its primary is.
    Redirected RedirectAddress
  | -- | The keys of the command are on two nodes while their slot moves.
    TryAgain
  | -- | The cluster, or the slot, is not served.
    ClusterDown
  | -- | The node is reading its data set from disk.
    Loading
  | -- | The node is a replica that has lost its primary and may not answer.
    MasterDown
  | -- | A replica was sent a write.
    ReadOnly
  | -- | The command waited on a primary that has become a replica.
    SentAway
  | -- | The connection is not, or no longer, authenticated.
    Unauthenticated
  deriving stock (Eq, Show)

-- | The destination of a redirect.
data RedirectAddress
  = -- | The node with this address.
    NamedNode Endpoint
  | -- | Another port of the host that answered.
    SameHost Port
  | -- | The server does not know; nothing to dial.
    UnknownNode
  deriving stock (Eq, Show)

-- | Reads an error reply. 'Nothing' if it is any other error, malformed, or raised within a script that
-- may already have written. \(O(n)\).
parseRedirect :: ServerError -> Maybe Redirect
parseRedirect serverError@ServerError {serverErrorCode, serverErrorMessage}
  | errorDelivery (ReplyError serverError) /= RefusedBeforeRun = Nothing
  | otherwise = case serverErrorCode of
    "MOVED" -> redirectTo Moved
    "ASK" -> redirectTo Ask
    "REDIRECT" -> Redirected <$> parseRedirectAddress serverErrorMessage
    "TRYAGAIN" -> Just TryAgain
    "CLUSTERDOWN" -> Just ClusterDown
    "LOADING" -> Just Loading
    "MASTERDOWN" -> Just MasterDown
    "READONLY" -> Just ReadOnly
    -- Otherwise somebody has ended its wait on purpose (CLIENT UNBLOCK).
    "UNBLOCKED" | "force unblock" `ByteString.isPrefixOf` serverErrorMessage -> Just SentAway
    "NOAUTH" -> Just Unauthenticated
    _ -> Nothing
  where
    redirectTo constructor = case Char8.split ' ' serverErrorMessage of
      [slot, destination] ->
        constructor <$> (parseNumber slot >>= slotFromInt) <*> parseRedirectAddress destination
      _ -> Nothing

-- | @host:port@, split at the last colon because the host may be IPv6. An
-- empty host is the one that answered; @?@ is unknown. \(O(n)\).
parseRedirectAddress :: ByteString -> Maybe RedirectAddress
parseRedirectAddress text = do
  let (hostAndColon, portText) = Char8.breakEnd (== ':') text
  (host, _) <- Char8.unsnoc hostAndColon
  port <- parsePort portText
  case host of
    "" -> Just (SameHost port)
    "?" -> Just UnknownNode
    _ | plain <- withoutBrackets host, isHostName plain -> Just (NamedNode (TcpEndpoint plain port))
    _ -> Nothing

-- | The endpoint at which this client reaches a destination, given the endpoint that answered.
-- 'Nothing' if there is nothing to dial. \(O(1)\).
redirectEndpoint :: AddressMapping -> Endpoint -> RedirectAddress -> Maybe Endpoint
redirectEndpoint mapping answering destination = fmap (mappedAddress mapping) $ case destination of
  NamedNode endpoint -> Just endpoint
  SameHost port -> case answering of
    TcpEndpoint host _ -> Just (TcpEndpoint host port)
    UnixEndpoint _ -> Nothing
  UnknownNode -> Nothing

withoutBrackets :: ByteString -> ByteString
withoutBrackets host = fromMaybe host (mfilter (not . ByteString.null) (ByteString.stripPrefix "[" host >>= ByteString.stripSuffix "]"))

-- | A port that is not 0, from its digits.
parsePort :: ByteString -> Maybe Port
parsePort = mfilter (> 0) . (parseNumber >=> toIntegralSized)

-- | One to five digits and nothing else.
parseNumber :: ByteString -> Maybe Int
parseNumber text = guard (ByteString.length text <= 5 && Char8.all isDigit text) *> (fst <$> Char8.readInt text)
