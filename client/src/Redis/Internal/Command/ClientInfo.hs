-- | A server's description of one of its connections, as CLIENT LIST, CLIENT INFO and ACL
-- LOG contain it.
module Redis.Internal.Command.ClientInfo
  ( ClientInfo (..),
    clientDescription,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration, seconds)
import Redis.Error (DecodeError)
import Redis.Internal.Command.Lines
import Redis.Value (Value)

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
    -- | All other fields of the description.
    clientInfoOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | Reads a line of CLIENT LIST, which ACL LOG contains, too. \(O(n)\).
clientDescription :: ByteString -> Either DecodeError ClientInfo
clientDescription line = do
  let fields = equalsFields line
      one name decoder = Decode.field name decoder fields
      perhaps name decoder = Decode.optionalField name decoder fields
      named name = fmap (>>= filled) (perhaps name Decode.bytes)
  clientInfoId <- one "id" Decode.integer
  clientInfoAddress <- one "addr" Decode.bytes
  clientInfoLocalAddress <- perhaps "laddr" Decode.bytes
  clientInfoName <- named "name"
  clientInfoAge <- one "age" wholeSecondsReply
  clientInfoIdle <- one "idle" wholeSecondsReply
  clientInfoFlags <- one "flags" Decode.bytes
  clientInfoDatabase <- one "db" Decode.integer
  clientInfoChannels <- one "sub" Decode.integer
  clientInfoPatterns <- one "psub" Decode.integer
  queued <- one "multi" Decode.integer
  -- The number alone does not tell whether MULTI was sent: Valkey leaves it at 0 after a
  -- transaction.
  let clientInfoQueued = if Char8.elem 'x' clientInfoFlags then Just (max 0 queued) else Nothing
  clientInfoCommand <- (\word -> if word == Just "NULL" then Nothing else word) <$> named "cmd"
  clientInfoUser <- named "user"
  clientInfoProtocol <- perhaps "resp" Decode.integer
  clientInfoLibName <- named "lib-name"
  clientInfoLibVer <- named "lib-ver"
  let clientInfoOthers = otherThan known fields
  pure
    ClientInfo
      { clientInfoId,
        clientInfoAddress,
        clientInfoLocalAddress,
        clientInfoName,
        clientInfoAge,
        clientInfoIdle,
        clientInfoFlags,
        clientInfoDatabase,
        clientInfoChannels,
        clientInfoPatterns,
        clientInfoQueued,
        clientInfoCommand,
        clientInfoUser,
        clientInfoProtocol,
        clientInfoLibName,
        clientInfoLibVer,
        clientInfoOthers
      }
  where
    filled text = if Char8.null text then Nothing else Just text
    known = ["id", "addr", "laddr", "name", "age", "idle", "flags", "db", "sub", "psub", "multi", "cmd", "user", "resp", "lib-name", "lib-ver"]

wholeSecondsReply :: Decoder Duration
wholeSecondsReply = fmap (seconds . fromIntegral) . Decode.integer
