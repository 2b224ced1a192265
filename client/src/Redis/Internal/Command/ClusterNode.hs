-- | Slots and nodes, as the commands for clusters write and read them.
module Redis.Internal.Command.ClusterNode
  ( SlotRange (..),
    slotArgument,
    rangeArguments,
    slotNumberReply,
    slotRangeText,
    ClusterNode (..),
    clusterNodeLine,
  )
where

import Control.Monad (guard, mfilter)
import Data.ByteString.Char8 qualified as Char8
import Data.List qualified as List
import Data.Maybe (fromMaybe, listToMaybe, mapMaybe)
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.Decode qualified as Decode
import Redis.Error (DecodeError, Host)
import Redis.Internal.Command.Common
import Redis.Value (Value (BulkString))

-- | A range of slots, both ends included.
data SlotRange = SlotRange
  { slotRangeFirst :: Int,
    slotRangeLast :: Int
  }
  deriving stock (Eq, Ord, Show)

slotArgument :: Int -> Argument
slotArgument = int . fromIntegral

rangeArguments :: SlotRange -> [Argument]
rangeArguments (SlotRange begin end) = [slotArgument begin, slotArgument end]

slotNumberReply :: Decoder Int
slotNumberReply reply = do
  slot <- Decode.integer reply
  if slot >= 0 && slot < 16384 then Right (fromIntegral slot) else Decode.mismatch "a slot" reply

-- | Reads @5@ or @5-9@.
slotRangeText :: ByteString -> Maybe SlotRange
slotRangeText text = case Char8.split '-' text of
  [slot] -> do
    only <- slotText slot
    pure (SlotRange only only)
  [begin, end] -> SlotRange <$> slotText begin <*> slotText end
  _ -> Nothing

slotText :: ByteString -> Maybe Int
slotText = readText slotNumberReply

-- | Reads a part of a text. A number that is too large is none.
readText :: Decoder a -> ByteString -> Maybe a
readText decoder = either (const Nothing) Just . decoder . BulkString

-- | A node, as another node describes it.
data ClusterNode = ClusterNode
  { -- | The node's id: 40 letters and digits.
    clusterNodeId :: ByteString,
    -- | Its address; empty if it is not known yet.
    clusterNodeIp :: Host,
    clusterNodePort :: Int64,
    -- | The port at which other nodes reach it; since 4.0.0.
    clusterNodeBusPort :: Maybe Int64,
    -- | Its hostname, if it has one; since 7.0.0.
    clusterNodeHostname :: Maybe ByteString,
    -- | Further fields such as @shard-id@, if the server sends them; since 7.2.0.
    clusterNodeAuxiliary :: [(ByteString, ByteString)],
    -- | Its flags, such as @myself@, @master@, @slave@, @fail?@, @fail@, @handshake@, @noaddr@.
    clusterNodeFlags :: [ByteString],
    -- | The id of the primary that it follows, if it is a replica.
    clusterNodePrimary :: Maybe ByteString,
    -- | When the ping was sent that it has not answered yet, if there is one.
    clusterNodePingSent :: Maybe UTCTime,
    -- | When it last answered a ping.
    clusterNodePongReceived :: Maybe UTCTime,
    -- | The epoch of its slots.
    clusterNodeEpoch :: Int64,
    -- | Whether the node that sent the description is connected to it.
    clusterNodeConnected :: Bool,
    clusterNodeSlots :: [SlotRange],
    -- | Slots that are moving to the nodes with these ids. A node reports only its own.
    clusterNodeMigrating :: [(Int, ByteString)],
    -- | Slots that are moving to this node from the nodes with these ids.
    clusterNodeImporting :: [(Int, ByteString)]
  }
  deriving stock (Eq, Show)

-- | A word after the link's state in a line.
data Owned
  = Serves SlotRange
  | Migrates Int ByteString
  | Imports Int ByteString

-- | Reads a line of CLUSTER NODES. \(O(n)\).
clusterNodeLine :: ByteString -> Either DecodeError ClusterNode
clusterNodeLine line = case Char8.words line of
  clusterNodeId : address : flags : primary : ping : pong : epoch : linkState : owned
    | Just (clusterNodeIp, clusterNodePort, clusterNodeBusPort, more) <- parseAddress address,
      Just clusterNodePingSent <- timeOf ping,
      Just clusterNodePongReceived <- timeOf pong,
      Just clusterNodeEpoch <- number epoch,
      Just has <- traverse parseOwned owned ->
      Right
        ClusterNode
          { clusterNodeId,
            clusterNodeIp,
            clusterNodePort,
            clusterNodeBusPort,
            clusterNodeHostname = mfilter (/= "") (listToMaybe more),
            clusterNodeAuxiliary = mapMaybe (splitAtChar '=') (drop 1 more),
            clusterNodeFlags = filter (/= "noflags") (Char8.split ',' flags),
            clusterNodePrimary = if primary == "-" then Nothing else Just primary,
            clusterNodePingSent,
            clusterNodePongReceived,
            clusterNodeEpoch,
            clusterNodeConnected = linkState == "connected",
            clusterNodeSlots = [range | Serves range <- has],
            clusterNodeMigrating = [(slot, node) | Migrates slot node <- has],
            clusterNodeImporting = [(slot, node) | Imports slot node <- has]
          }
  _ -> Decode.mismatch "a line about a node" (BulkString line)
  where
    -- 0 means never.
    timeOf text = fmap (posixSecondsToUTCTime . (/ 1000) . fromIntegral) . mfilter (/= 0) . Just <$> number text

-- | Reads @ip:port\@port,hostname,name=value …@: the host, both ports, and the other parts, the hostname first.
parseAddress :: ByteString -> Maybe (ByteString, Int64, Maybe Int64, [ByteString])
parseAddress text = do
  let (place, more) = fromMaybe (text, []) (List.uncons (Char8.split ',' text))
      -- An IPv6 address contains colons, too.
      (hostAndColon, ports) = Char8.breakEnd (== ':') place
      (portText, busText) = Char8.break (== '@') ports
  guard (not (Char8.null hostAndColon))
  port <- number portText
  busPort <- if Char8.null busText then Just Nothing else Just <$> number (Char8.drop 1 busText)
  pure (Char8.take (Char8.length hostAndColon - 1) hostAndColon, port, busPort, more)

-- | @5@, @5-9@, @[5->-id]@ or @[5-<-id]@.
parseOwned :: ByteString -> Maybe Owned
parseOwned text = case Char8.stripPrefix "[" text >>= Char8.stripSuffix "]" of
  Just inside -> do
    let (word, arrow) = Char8.break (== '-') inside
    slot <- slotText word
    case (Char8.stripPrefix "->-" arrow, Char8.stripPrefix "-<-" arrow) of
      (Just node, _) -> Just (Migrates slot node)
      (_, Just node) -> Just (Imports slot node)
      _ -> Nothing
  Nothing -> Serves <$> slotRangeText text

number :: ByteString -> Maybe Int64
number = readText Decode.integer
