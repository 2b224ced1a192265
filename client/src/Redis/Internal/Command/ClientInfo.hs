-- | A server's description of one of its connections, as CLIENT LIST, CLIENT INFO and ACL
-- LOG contain it.
module Redis.Internal.Command.ClientInfo
  ( ClientInfo (..),
    clientDescription,
  )
where

import Control.Monad (mfilter)
import Data.ByteString.Char8 qualified as Char8
import Redis.Decode qualified as Decode
import Redis.Error (DecodeError)
import Redis.Internal.Command.Common

-- | One connection, as its server describes it.
data ClientInfo = ClientInfo
  { -- | The server's number for the connection; no other connection ever gets it.
    clientInfoId :: Int64,
    -- | The client's address and port, or the path of a Unix socket.
    clientInfoAddress :: ByteString,
    -- | The server's address and port to which the client connected; since 6.2.0.
    clientInfoLocalAddress :: Maybe ByteString,
    -- | The name that CLIENT SETNAME gave it.
    clientInfoName :: Maybe ByteString,
    -- | The time since it was opened, to the second.
    clientInfoAge :: Duration,
    -- | The time since its client last sent something, to the second.
    clientInfoIdle :: Duration,
    -- | One letter for each flag: @N@ for none, @b@ for blocked, @P@ for subscribed …
    clientInfoFlags :: ByteString,
    -- | The database that it uses.
    clientInfoDatabase :: Int64,
    -- | How many channels it has subscribed to.
    clientInfoChannels :: Int64,
    -- | How many patterns it has subscribed to.
    clientInfoPatterns :: Int64,
    -- | How many commands it has queued since MULTI; 'Nothing' without MULTI.
    clientInfoQueued :: Maybe Int64,
    -- | Its last command, with a subcommand after a bar.
    clientInfoCommand :: Maybe ByteString,
    -- | Its user; since 6.0.0.
    clientInfoUser :: Maybe ByteString,
    -- | The version of its protocol, 2 or 3; since 7.0.0.
    clientInfoProtocol :: Maybe Int64,
    -- | The name of its library, set by CLIENT SETINFO; since 7.2.0.
    clientInfoLibName :: Maybe ByteString,
    -- | The version of its library, set by CLIENT SETINFO; since 7.2.0.
    clientInfoLibVer :: Maybe ByteString,
    clientInfoOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | Reads a line of CLIENT LIST, which ACL LOG contains, too. \(O(n)\).
clientDescription :: ByteString -> Either DecodeError ClientInfo
clientDescription = fmap queuing . fromFields description . equalsFields
  where
    -- The number alone does not tell whether MULTI was sent: Valkey leaves it at 0 after a
    -- transaction.
    queuing told = if Char8.elem 'x' (clientInfoFlags told) then told else told {clientInfoQueued = Nothing}

description :: Fields ClientInfo
description =
  ClientInfo
    <$> field "id" Decode.integer
    <*> field "addr" Decode.bytes
    <*> optionalField "laddr" Decode.bytes
    <*> filled "name"
    <*> field "age" secondsReply
    <*> field "idle" secondsReply
    <*> field "flags" Decode.bytes
    <*> field "db" Decode.integer
    <*> field "sub" Decode.integer
    <*> field "psub" Decode.integer
    <*> field "multi" (fmap (Just . max 0) . Decode.integer)
    <*> (mfilter (/= "NULL") <$> filled "cmd")
    <*> filled "user"
    <*> optionalField "resp" Decode.integer
    <*> filled "lib-name"
    <*> filled "lib-ver"
    <*> others Decode.value
  where
    filled name = mfilter (/= "") <$> optionalField name Decode.bytes
