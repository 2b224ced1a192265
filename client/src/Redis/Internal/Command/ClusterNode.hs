-- | Slots and nodes, as the commands of clusters write and read them.
module Redis.Internal.Command.ClusterNode
  ( SlotRange (..),
    slotArgument,
    rangeArguments,
    slotNumberReply,
    ClusterNode (..),
    clusterNodeLine,
  )
where

import Control.Monad (guard)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.Maybe (mapMaybe)
import Data.Time.Clock (UTCTime)
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Error (DecodeError, Host)
import Redis.Internal.Command.Argument (decimal)
import Redis.Internal.Command.Make (Argument (..))
import Redis.Value (Value (BulkString))

-- | From this slot to that one, both included.
--
-- @since 0.1.0.0
data SlotRange = SlotRange
  { slotRangeFirst :: Int,
    slotRangeLast :: Int
  }
  deriving stock (Eq, Ord, Show)

slotArgument :: Int -> Argument
slotArgument = Plain . decimal . fromIntegral

rangeArguments :: SlotRange -> [Argument]
rangeArguments (SlotRange begin end) = [slotArgument begin, slotArgument end]

slotNumberReply :: Decoder Int
slotNumberReply reply = do
  slot <- Decode.integer reply
  if slot >= 0 && slot < 16384 then Right (fromIntegral slot) else Decode.mismatch "a slot" reply

-- | A node, as another one knows it.
--
-- @since 0.1.0.0
data ClusterNode = ClusterNode
  { -- | 40 letters and digits.
    clusterNodeId :: ByteString,
    -- | Its address; empty if that is not known yet.
    clusterNodeIp :: Host,
    clusterNodePort :: Int64,
    -- | Where other nodes reach it, since 4.0.0.
    clusterNodeBusPort :: Maybe Int64,
    -- | Since 7.0.0, if it has one.
    clusterNodeHostname :: Maybe ByteString,
    -- | Such as @shard-id@, since 7.2.0, if the server says it.
    clusterNodeAuxiliary :: [(ByteString, ByteString)],
    -- | Such as @myself@, @master@, @slave@, @fail?@, @fail@, @handshake@, @noaddr@.
    clusterNodeFlags :: [ByteString],
    -- | The id of the primary that it follows.
    clusterNodePrimary :: Maybe ByteString,
    -- | When a ping was sent that it has not answered.
    clusterNodePingSent :: Maybe UTCTime,
    -- | When it last answered one.
    clusterNodePongReceived :: Maybe UTCTime,
    -- | Of its slots.
    clusterNodeEpoch :: Int64,
    -- | Whether the node that was asked is connected to it.
    clusterNodeConnected :: Bool,
    clusterNodeSlots :: [SlotRange],
    -- | Slots on their way to nodes with these ids. A node tells only its own.
    clusterNodeMigrating :: [(Int, ByteString)],
    -- | Slots on their way here.
    clusterNodeImporting :: [(Int, ByteString)]
  }
  deriving stock (Eq, Show)

-- | What stands behind the state of the link in a line.
data Owned
  = Serves SlotRange
  | Migrates Int ByteString
  | Imports Int ByteString

-- | A line of CLUSTER NODES. \(O(n)\).
clusterNodeLine :: ByteString -> Either DecodeError ClusterNode
clusterNodeLine line = case Char8.words line of
  clusterNodeId : address : flags : primary : ping : pong : epoch : linkState : owned
    | Just Address {addressIp, addressPort, addressBusPort, addressRest} <- parseAddress address,
      Just clusterNodePingSent <- timeOf ping,
      Just clusterNodePongReceived <- timeOf pong,
      Just clusterNodeEpoch <- number epoch,
      Just has <- traverse parseOwned owned ->
      Right
        ClusterNode
          { clusterNodeId,
            clusterNodeIp = addressIp,
            clusterNodePort = addressPort,
            clusterNodeBusPort = addressBusPort,
            clusterNodeHostname = hostnameOf addressRest,
            clusterNodeAuxiliary = mapMaybe auxiliary (drop 1 addressRest),
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
    hostnameOf = \case
      name : _ | not (Char8.null name) -> Just name
      _ -> Nothing
    auxiliary text = case Char8.break (== '=') text of
      (name, rest) | not (Char8.null rest) -> Just (name, Char8.drop 1 rest)
      _ -> Nothing
    -- 0 is never.
    timeOf text = moment <$> number text
    moment millis = if millis == 0 then Nothing else Just (posixSecondsToUTCTime (fromIntegral millis / 1000))

-- | @ip:port\@port,hostname,name=value …@
data Address = Address
  { addressIp :: ByteString,
    addressPort :: Int64,
    addressBusPort :: Maybe Int64,
    -- | What the commas separate, the hostname first.
    addressRest :: [ByteString]
  }

parseAddress :: ByteString -> Maybe Address
parseAddress text = do
  let (place, addressRest) = case Char8.split ',' text of
        first : rest -> (first, rest)
        [] -> ("", [])
      -- An address of IPv6 has colons of its own.
      (hostAndColon, ports) = Char8.breakEnd (== ':') place
      (portText, busText) = Char8.break (== '@') ports
  guard (not (Char8.null hostAndColon))
  addressPort <- number portText
  addressBusPort <- if Char8.null busText then Just Nothing else Just <$> number (Char8.drop 1 busText)
  pure Address {addressIp = Char8.take (Char8.length hostAndColon - 1) hostAndColon, addressPort, addressBusPort, addressRest}

-- | @5@, @5-9@, @[5->-id]@ or @[5-<-id]@.
parseOwned :: ByteString -> Maybe Owned
parseOwned text = case Char8.stripPrefix "[" text >>= Char8.stripSuffix "]" of
  Just inside -> do
    (slot, arrow) <- Char8.readInt inside
    case (Char8.stripPrefix "->-" arrow, Char8.stripPrefix "-<-" arrow) of
      (Just node, _) -> Just (Migrates slot node)
      (_, Just node) -> Just (Imports slot node)
      _ -> Nothing
  Nothing -> do
    (begin, rest) <- Char8.readInt text
    end <- if Char8.null rest then Just begin else fst <$> (Char8.stripPrefix "-" rest >>= Char8.readInt)
    pure (Serves (SlotRange begin end))

number :: ByteString -> Maybe Int64
number text = case Char8.readInteger text of
  Just (value, "") -> Just (fromInteger value)
  _ -> Nothing
