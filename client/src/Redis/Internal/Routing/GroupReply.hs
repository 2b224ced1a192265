-- | Reads what servers say about a primary and its replicas: the replies to @INFO@, and the
-- replies of sentinels, in either protocol.
module Redis.Internal.Routing.GroupReply
  ( -- * Of a server
    MemberInfo (..),
    MemberRole (..),
    History (..),
    parseMemberInfo,

    -- * Of a sentinel
    endpointFrom,
    parseNamedPrimary,
    parseConfigEpoch,
    parseSentinels,
  )
where

import Control.Monad (guard)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isDigit)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (catMaybes, mapMaybe)
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Error
import Redis.Internal.Name (isHostName)

-- | A server's description of itself.
data MemberInfo = MemberInfo
  { memberRole :: MemberRole,
    -- | Changes at each start. Shows whether two addresses are one server.
    memberRun :: ByteString,
    memberHistory :: History
  }
  deriving stock (Eq, Show)

-- | The role of a server.
data MemberRole
  = -- | A primary with its replicas that are up to date. Replicas that still load what it
    -- sends them are left out.
    MemberIsPrimary [Endpoint]
  | -- | A replica of the server at this endpoint.
    MemberIsReplica Endpoint
  deriving stock (Eq, Show)

-- | The data set of which a server has the newest state. A replica that is promoted begins a
-- history of its own, and remembers the history that it continues.
data History = History
  { historyId :: ByteString,
    historyBefore :: ByteString
  }
  deriving stock (Eq, Show)

-- | Parses the replies to @INFO server@ and @INFO replication@. \(O(n)\).
parseMemberInfo :: ByteString -> ByteString -> Either DecodeError MemberInfo
parseMemberInfo server replication = do
  memberRun <- textField "run_id" ofServer
  memberRole <-
    textField "role" fields >>= \case
      "master" -> Right (MemberIsPrimary (mapMaybe replica (Map.toAscList fields)))
      "slave" -> do
        host <- textField "master_host" fields
        port <- textField "master_port" fields
        maybe (failed "master_port" "host and port of a primary" port) (Right . MemberIsReplica) (endpointFrom host port)
      other -> failed "role" "master or slave" other
  pure
    MemberInfo
      { memberRole,
        memberRun,
        memberHistory =
          History
            { historyId = Map.findWithDefault "" "master_replid" fields,
              historyBefore = Map.findWithDefault "" "master_replid2" fields
            }
      }
  where
    ofServer = infoFields server
    fields = infoFields replication

    -- slave0:ip=127.0.0.1,port=6380,state=online,offset=1,lag=0
    replica (name, text) = do
      number <- ByteString.stripPrefix "slave" name
      guard (not (ByteString.null number) && Char8.all isDigit number)
      let parts = Map.fromList [(key, Char8.drop 1 rest) | (key, rest) <- map (Char8.break (== '=')) (Char8.split ',' text)]
      state <- Map.lookup "state" parts
      guard (state == "online")
      host <- Map.lookup "ip" parts
      port <- Map.lookup "port" parts
      endpointFrom host port

textField :: ByteString -> Map ByteString ByteString -> Either DecodeError ByteString
textField name fields = case Map.lookup name fields of
  Just text | not (ByteString.null text) -> Right text
  _ -> failed name "text" "nothing"

failed :: ByteString -> String -> ByteString -> Either DecodeError a
failed name expected got =
  Left
    DecodeError
      { decodeErrorPath = ["field " <> show (Char8.unpack name)],
        decodeErrorExpected = expected,
        decodeErrorGot = Char8.unpack (Char8.take 60 got),
        decodeErrorCommand = "INFO"
      }

-- | The fields of an INFO text.
infoFields :: ByteString -> Map ByteString ByteString
infoFields text =
  Map.fromList
    [ (name, Char8.takeWhile (/= '\r') (Char8.drop 1 rest))
      | line <- Char8.lines text,
        let (name, rest) = Char8.break (== ':') line,
        not (ByteString.null rest)
    ]

-- | Parses the reply to @SENTINEL GET-MASTER-ADDR-BY-NAME@. 'Nothing' if the sentinel knows
-- no primary of this name.
parseNamedPrimary :: Decoder (Maybe Endpoint)
parseNamedPrimary = Decode.nullable $ \reply -> do
  (host, port) <- Decode.pair Decode.bytes Decode.bytes reply
  maybe (Decode.mismatch "host and port of a primary" reply) Right (endpointFrom host port)

-- | Parses the @config-epoch@ in the reply to @SENTINEL MASTER@. Each fail-over raises it, so
-- a sentinel with a lower epoch has not heard of the last one yet.
parseConfigEpoch :: Decoder (Maybe Int)
parseConfigEpoch reply = do
  fields <- Decode.record reply
  epoch <- Decode.optionalField "config-epoch" Decode.bytes fields
  pure (epoch >>= fmap fst . Char8.readInt)

-- | Parses the reply to @SENTINEL SENTINELS@: the other sentinels.
parseSentinels :: Decoder [Endpoint]
parseSentinels = fmap catMaybes . Decode.list sentinel
  where
    sentinel reply = do
      fields <- Decode.record reply
      endpointFrom <$> Decode.field "ip" Decode.bytes fields <*> Decode.field "port" Decode.bytes fields

-- | An endpoint, from its host and port. 'Nothing' if it cannot be dialled.
endpointFrom :: ByteString -> ByteString -> Maybe Endpoint
endpointFrom host port = do
  guard (isHostName host && host /= "?")
  guard (ByteString.length port <= 5 && Char8.all isDigit port)
  (number, "") <- Char8.readInt port
  guard (number >= 1 && number <= 65535)
  pure (TcpEndpoint host (fromIntegral number))
