-- | A server's line about one of its connections, which several commands have.
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
--
-- @since 0.1.0.0
data ClientInfo = ClientInfo
  { -- | The server's number for it, never used twice.
    clientInfoId :: Int64,
    -- | Whence it comes: address and port, or the path of a socket.
    clientInfoAddress :: ByteString,
    -- | Where it was taken, since 6.2.0.
    clientInfoLocalAddress :: Maybe ByteString,
    -- | By CLIENT SETNAME.
    clientInfoName :: Maybe ByteString,
    -- | How long it has been there, to the second.
    clientInfoAge :: Duration,
    -- | How long it has said nothing, to the second.
    clientInfoIdle :: Duration,
    -- | A letter for each: @N@ for none, @b@ for blocked, @P@ for subscribed …
    clientInfoFlags :: ByteString,
    -- | The database that it uses.
    clientInfoDatabase :: Int64,
    -- | How many channels it has subscribed to.
    clientInfoChannels :: Int64,
    -- | How many patterns.
    clientInfoPatterns :: Int64,
    -- | How many commands it has queued since MULTI; 'Nothing' without MULTI.
    clientInfoQueued :: Maybe Int64,
    -- | Its last command, a subcommand after a bar.
    clientInfoCommand :: Maybe ByteString,
    -- | Who it is, since 6.0.0.
    clientInfoUser :: Maybe ByteString,
    -- | RESP2 or RESP3, since 7.0.0.
    clientInfoProtocol :: Maybe Int64,
    -- | By CLIENT SETINFO, since 7.2.0.
    clientInfoLibName :: Maybe ByteString,
    -- | By CLIENT SETINFO, since 7.2.0.
    clientInfoLibVer :: Maybe ByteString,
    -- | All that the server says besides, in its words.
    clientInfoOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | A line of CLIENT LIST, which ACL LOG has, too. \(O(n)\).
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
  -- The number alone does not tell: with Valkey it stays 0 after a transaction.
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
