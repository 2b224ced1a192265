-- | The state of a cluster: its slots and its nodes. The client reads by itself what it needs;
-- these commands are for programs that look after a cluster.
--
-- > shards <- run client Redis.clusterShards
-- > ids <- run client (onEvery AllNodes Redis.clusterMyid)
--
-- All nodes give the same answer to 'clusterShards', 'clusterSlots' and 'clusterKeyslot'.
-- 'clusterSlotStats' and 'clusterSlotStatsOrderby' go to every primary. The others need the name of
-- a node ('Redis.Command.onNode'), except 'clusterHelp'. A server that is not a cluster answers all
-- of them with an error, except that Valkey answers 'clusterKeyslot'. Commands that change a
-- cluster are in "Redis.Commands.ClusterAdmin". The server's page:
-- <https://valkey.io/topics/cluster-spec/>.
module Redis.Commands.Cluster
  ( -- * Slots
    clusterShards,
    ClusterShard (..),
    ShardNode (..),
    ShardRole (..),
    ShardHealth (..),
    SlotRange (..),
    clusterSlots,
    SlotsEntry (..),
    SlotsNode (..),
    clusterKeyslot,
    clusterCountkeysinslot,
    clusterGetkeysinslot,
    clusterSlotStats,
    clusterSlotStatsOrderby,
    SlotMetric (..),
    SortOrder (..),
    SlotStats (..),

    -- * Nodes
    clusterNodes,
    clusterReplicas,
    clusterSlaves,
    ClusterNode (..),
    clusterMyid,
    clusterMyshardid,
    clusterCountFailureReports,
    clusterLinks,
    ClusterLink (..),
    LinkDirection (..),

    -- * The cluster as a whole
    clusterInfo,
    ClusterInfo (..),
    ClusterState (..),
    clusterHelp,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.Time.Clock (UTCTime)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Commands.Sort (SortOrder (..))
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration, seconds)
import Redis.Error (Host)
import Redis.Internal.Command.ClusterNode
import Redis.Internal.Command.Lines
import Redis.Value (Value (BulkString))

-- | A primary and its replicas.
data ClusterShard = ClusterShard
  { -- | Empty for a shard without slots.
    shardSlots :: [SlotRange],
    shardNodes :: [ShardNode],
    -- | Fields that newer servers add: Valkey adds the shard's @id@.
    shardOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | A node of a shard.
data ShardNode = ShardNode
  { -- | 40 letters and digits.
    shardNodeId :: ByteString,
    -- | The host that clients should use. 'Nothing' if the node does not name one, which means the
    -- host to which the command was sent; or if the node does not know one (@?@).
    shardNodeEndpoint :: Maybe Host,
    -- | Its IP address.
    shardNodeIp :: Maybe ByteString,
    shardNodeHostname :: Maybe ByteString,
    -- | 'Nothing' for a node with TLS only.
    shardNodePort :: Maybe Int64,
    -- | 'Nothing' for a node without TLS.
    shardNodeTlsPort :: Maybe Int64,
    shardNodeRole :: ShardRole,
    -- | How many bytes of changes it has received as a replica, or sent as a primary.
    shardNodeOffset :: Int64,
    shardNodeHealth :: ShardHealth,
    -- | Fields that newer servers add.
    shardNodeOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | The role of a node in its shard.
data ShardRole = ShardPrimary | ShardReplica | OtherShardRole ByteString
  deriving stock (Eq, Show)

-- | The health of a node, as the node that answers sees it.
data ShardHealth
  = NodeOnline
  | -- | It is loading its primary's data, or its own.
    NodeLoading
  | NodeFailed
  | OtherHealth ByteString
  deriving stock (Eq, Show)

-- | @CLUSTER SHARDS@: all shards, with their slots and nodes. \(O(n)\) on the server in nodes,
-- [since 7.0.0](https://valkey.io/commands/cluster-shards/). Any node of a cluster answers.
clusterShards :: Command [ClusterShard]
clusterShards = command "CLUSTER SHARDS" [] (Decode.list shard)

shard :: Decoder ClusterShard
shard reply = do
  fields <- Decode.record reply
  ranges <- Decode.field "slots" (Decode.pairs slotNumberReply slotNumberReply) fields
  shardNodes <- Decode.field "nodes" (Decode.list shardNode) fields
  pure
    ClusterShard
      { shardSlots = map (uncurry SlotRange) ranges,
        shardNodes,
        shardOthers = otherThan ["slots", "nodes"] fields
      }

shardNode :: Decoder ShardNode
shardNode reply = do
  fields <- Decode.record reply
  let text name = (>>= (>>= filled)) <$> Decode.optionalField name (Decode.nullable Decode.bytes) fields
  shardNodeId <- Decode.field "id" Decode.bytes fields
  shardNodeEndpoint <- text "endpoint"
  shardNodeIp <- text "ip"
  shardNodeHostname <- text "hostname"
  shardNodePort <- Decode.optionalField "port" Decode.integer fields
  shardNodeTlsPort <- Decode.optionalField "tls-port" Decode.integer fields
  shardNodeRole <- Decode.field "role" (fmap role . Decode.bytes) fields
  shardNodeOffset <- Decode.field "replication-offset" Decode.integer fields
  shardNodeHealth <- Decode.field "health" (fmap health . Decode.bytes) fields
  pure
    ShardNode
      { shardNodeId,
        shardNodeEndpoint,
        shardNodeIp,
        shardNodeHostname,
        shardNodePort,
        shardNodeTlsPort,
        shardNodeRole,
        shardNodeOffset,
        shardNodeHealth,
        shardNodeOthers =
          otherThan ["id", "endpoint", "ip", "hostname", "port", "tls-port", "role", "replication-offset", "health"] fields
      }
  where
    role = \case
      "master" -> ShardPrimary
      "primary" -> ShardPrimary
      "replica" -> ShardReplica
      "slave" -> ShardReplica
      word -> OtherShardRole word
    health = \case
      "online" -> NodeOnline
      "loading" -> NodeLoading
      "fail" -> NodeFailed
      word -> OtherHealth word

-- | The nodes that serve a range of slots.
data SlotsEntry = SlotsEntry
  { slotsRange :: SlotRange,
    slotsPrimary :: SlotsNode,
    slotsReplicas :: [SlotsNode]
  }
  deriving stock (Eq, Show)

-- | A node in CLUSTER SLOTS.
data SlotsNode = SlotsNode
  { -- | The host that clients should use. 'Nothing' for the host to which the command was sent, or
    -- if the node does not know one (@?@).
    slotsNodeHost :: Maybe Host,
    slotsNodePort :: Int64,
    -- | The node's id, since 4.0.0.
    slotsNodeId :: Maybe ByteString,
    -- | More about the node, such as @hostname@ and @ip@, since 7.0.0.
    slotsNodeMetadata :: [(ByteString, ByteString)]
  }
  deriving stock (Eq, Show)

-- | @CLUSTER SLOTS@: the nodes that serve each range of slots. 'clusterShards' replaces it
-- [since 7.0.0](https://valkey.io/commands/cluster-slots/). \(O(n)\) on the server in nodes, since
-- 3.0.0. Any node of a cluster answers.
clusterSlots :: Command [SlotsEntry]
clusterSlots = command "CLUSTER SLOTS" [] (Decode.list entry)
  where
    entry reply = do
      elements <- Decode.list Decode.value reply
      slotsRange <- SlotRange <$> Decode.element 0 slotNumberReply elements <*> Decode.element 1 slotNumberReply elements
      slotsPrimary <- Decode.element 2 node elements
      slotsReplicas <- traverse node (drop 3 elements)
      pure SlotsEntry {slotsRange, slotsPrimary, slotsReplicas}
    node reply = do
      elements <- Decode.list Decode.value reply
      slotsNodeHost <- (>>= filled) <$> Decode.element 0 (Decode.nullable Decode.bytes) elements
      slotsNodePort <- Decode.element 1 Decode.integer elements
      slotsNodeId <- Decode.optionalElement 2 Decode.bytes elements
      metadata <- Decode.optionalElement 3 (Decode.pairs Decode.bytes Decode.bytes) elements
      pure SlotsNode {slotsNodeHost, slotsNodePort, slotsNodeId, slotsNodeMetadata = concat metadata}

-- | @CLUSTER KEYSLOT key@: the slot of a key, which 'Redis.Cluster.Slot.keySlot' computes without a
-- server. \(O(n)\) on the server in bytes,
-- [since 3.0.0](https://valkey.io/commands/cluster-keyslot/). Any node of a cluster answers.
clusterKeyslot :: ByteString -> Command Int
clusterKeyslot name = command "CLUSTER KEYSLOT" [arg name] slotNumberReply

-- | @CLUSTER COUNTKEYSINSLOT slot@: how many keys of this slot the node has. Name the node.
-- \(O(1)\) on the server, [since 3.0.0](https://valkey.io/commands/cluster-countkeysinslot/).
clusterCountkeysinslot :: Int -> Command Int64
clusterCountkeysinslot slot = command "CLUSTER COUNTKEYSINSLOT" [slotArgument slot] Decode.integer

-- | @CLUSTER GETKEYSINSLOT slot count@: keys of this slot that the node has, at most this many.
-- Name the node. \(O(n)\) on the server,
-- [since 3.0.0](https://valkey.io/commands/cluster-getkeysinslot/).
clusterGetkeysinslot :: Int -> Int64 -> Command [ByteString]
clusterGetkeysinslot slot count =
  command "CLUSTER GETKEYSINSLOT" [slotArgument slot, int count] (Decode.list Decode.bytes)

-- | The statistics of a slot.
data SlotStats = SlotStats
  { slotStatsKeys :: Int64,
    -- | Processor time, if the server counts it (@cluster-slot-stats-enabled@).
    slotStatsCpu :: Maybe Duration,
    -- | Bytes received, if the server counts them.
    slotStatsBytesIn :: Maybe Int64,
    -- | Bytes sent, if the server counts them.
    slotStatsBytesOut :: Maybe Int64,
    slotStatsOthers :: [(ByteString, Value)]
  }
  deriving stock (Eq, Show)

-- | The measure by which slots are sorted.
data SlotMetric
  = -- | KEY-COUNT
    ByKeyCount
  | -- | CPU-USEC
    ByCpu
  | -- | NETWORK-BYTES-IN
    ByBytesIn
  | -- | NETWORK-BYTES-OUT
    ByBytesOut
  deriving stock (Eq, Show)

-- | @CLUSTER SLOT-STATS SLOTSRANGE first last@: the statistics of the slots of this range. Each
-- primary lists the slots that it serves, in order; the result is the lists of all primaries, one
-- after the other. \(O(n)\) on the server,
-- [since Valkey 8.0.0](https://valkey.io/commands/cluster-slot-stats/); Redis since 8.2.
clusterSlotStats :: SlotRange -> Command [(Int, SlotStats)]
clusterSlotStats range = command "CLUSTER SLOT-STATS" (arg "SLOTSRANGE" : rangeArguments range) slotStats

-- | @CLUSTER SLOT-STATS ORDERBY metric LIMIT count ASC|DESC@: like 'clusterSlotStats', for all
-- slots, sorted by this metric; from each primary at most this many. An error if the server does
-- not count this metric. \(O(n \log n)\) on the server.
clusterSlotStatsOrderby :: SlotMetric -> Int64 -> SortOrder -> Command [(Int, SlotStats)]
clusterSlotStatsOrderby metric limit order =
  command "CLUSTER SLOT-STATS" [arg "ORDERBY", arg metricWord, arg "LIMIT", int limit, arg orderWord] slotStats
  where
    metricWord = case metric of
      ByKeyCount -> "KEY-COUNT"
      ByCpu -> "CPU-USEC"
      ByBytesIn -> "NETWORK-BYTES-IN"
      ByBytesOut -> "NETWORK-BYTES-OUT"
    orderWord = case order of
      Ascending -> "ASC"
      Descending -> "DESC"

slotStats :: Decoder [(Int, SlotStats)]
slotStats = Decode.list . Decode.pair slotNumberReply $ \reply -> do
  fields <- Decode.record reply
  slotStatsKeys <- Decode.field "key-count" Decode.integer fields
  cpu <- Decode.optionalField "cpu-usec" Decode.integer fields
  slotStatsBytesIn <- Decode.optionalField "network-bytes-in" Decode.integer fields
  slotStatsBytesOut <- Decode.optionalField "network-bytes-out" Decode.integer fields
  pure
    SlotStats
      { slotStatsKeys,
        slotStatsCpu = seconds . (/ 1e6) . fromIntegral <$> cpu,
        slotStatsBytesIn,
        slotStatsBytesOut,
        slotStatsOthers = otherThan ["key-count", "cpu-usec", "network-bytes-in", "network-bytes-out"] fields
      }

-- | @CLUSTER NODES@: every node that the node knows, itself included. Name the node. \(O(n)\) on
-- the server in nodes, [since 3.0.0](https://valkey.io/commands/cluster-nodes/).
clusterNodes :: Command [ClusterNode]
clusterNodes = command "CLUSTER NODES" [] (\reply -> linesOf reply >>= traverse clusterNodeLine)

-- | @CLUSTER REPLICAS id@: the replicas of the primary with this id. An error if there is no such
-- primary. Name the node. \(O(n)\) on the server,
-- [since 5.0.0](https://valkey.io/commands/cluster-replicas/).
clusterReplicas :: ByteString -> Command [ClusterNode]
clusterReplicas node = command "CLUSTER REPLICAS" [arg node] nodeLines

-- | @CLUSTER SLAVES id@: the old name of 'clusterReplicas', which replaces it
-- [since 5.0.0](https://valkey.io/commands/cluster-slaves/). Since 3.0.0.
clusterSlaves :: ByteString -> Command [ClusterNode]
clusterSlaves node = command "CLUSTER SLAVES" [arg node] nodeLines

nodeLines :: Decoder [ClusterNode]
nodeLines = Decode.list (\reply -> Decode.bytes reply >>= clusterNodeLine)

-- | @CLUSTER MYID@: the id of the node. Name the node. \(O(1)\) on the server,
-- [since 3.0.0](https://valkey.io/commands/cluster-myid/).
clusterMyid :: Command ByteString
clusterMyid = command "CLUSTER MYID" [] Decode.bytes

-- | @CLUSTER MYSHARDID@: the id of the node's shard. Name the node. \(O(1)\) on the server,
-- [since 7.2.0](https://valkey.io/commands/cluster-myshardid/).
clusterMyshardid :: Command ByteString
clusterMyshardid = command "CLUSTER MYSHARDID" [] Decode.bytes

-- | @CLUSTER COUNT-FAILURE-REPORTS id@: how many nodes have told the named node that the node with
-- this id does not answer. Name the node. \(O(n)\) on the server in these reports,
-- [since 3.0.0](https://valkey.io/commands/cluster-count-failure-reports/).
clusterCountFailureReports :: ByteString -> Command Int64
clusterCountFailureReports node = command "CLUSTER COUNT-FAILURE-REPORTS" [arg node] Decode.integer

-- | A connection between two nodes.
data ClusterLink = ClusterLink
  { clusterLinkDirection :: LinkDirection,
    -- | The id of the other node.
    clusterLinkNode :: ByteString,
    -- | When it was opened.
    clusterLinkCreated :: UTCTime,
    -- | @r@ and @w@: whether the node waits to read, and to write.
    clusterLinkEvents :: ByteString,
    -- | The size of the send buffer, in bytes.
    clusterLinkBuffer :: Int64,
    -- | How many of these bytes are in use.
    clusterLinkBufferUsed :: Int64
  }
  deriving stock (Eq, Show)

-- | The node that opened the connection.
data LinkDirection
  = -- | The node that answers.
    LinkTo
  | -- | The other node.
    LinkFrom
  deriving stock (Eq, Show)

-- | @CLUSTER LINKS@: the node's connections to and from other nodes. Name the node. \(O(n)\) on the
-- server in nodes, [since 7.0.0](https://valkey.io/commands/cluster-links/).
clusterLinks :: Command [ClusterLink]
clusterLinks = command "CLUSTER LINKS" [] (Decode.list link)
  where
    link reply = do
      fields <- Decode.record reply
      clusterLinkDirection <- Decode.field "direction" direction fields
      clusterLinkNode <- Decode.field "node" Decode.bytes fields
      clusterLinkCreated <- Decode.field "create-time" Decode.unixMilliseconds fields
      clusterLinkEvents <- Decode.field "events" Decode.bytes fields
      clusterLinkBuffer <- Decode.field "send-buffer-allocated" Decode.integer fields
      clusterLinkBufferUsed <- Decode.field "send-buffer-used" Decode.integer fields
      pure
        ClusterLink
          { clusterLinkDirection,
            clusterLinkNode,
            clusterLinkCreated,
            clusterLinkEvents,
            clusterLinkBuffer,
            clusterLinkBufferUsed
          }
    direction reply =
      Decode.bytes reply >>= \case
        "to" -> Right LinkTo
        "from" -> Right LinkFrom
        _ -> Decode.mismatch "to or from" reply

-- | Whether a node serves commands.
data ClusterState
  = ClusterOk
  | -- | It refuses commands: some slots are not served, or it sees too few of the other nodes.
    ClusterFail
  | OtherClusterState ByteString
  deriving stock (Eq, Show)

-- | A cluster, as a node sees it.
data ClusterInfo = ClusterInfo
  { clusterInfoState :: ClusterState,
    -- | How many slots are assigned to a node.
    clusterInfoSlotsAssigned :: Int64,
    -- | How many of these have a healthy node.
    clusterInfoSlotsOk :: Int64,
    -- | How many have a node that does not answer this one.
    clusterInfoSlotsPfail :: Int64,
    -- | How many have a node that the cluster has marked as failed.
    clusterInfoSlotsFail :: Int64,
    -- | How many nodes this one knows.
    clusterInfoKnownNodes :: Int64,
    -- | How many primaries have slots.
    clusterInfoSize :: Int64,
    -- | The highest epoch that the node has seen.
    clusterInfoCurrentEpoch :: Int64,
    -- | The node's own epoch.
    clusterInfoMyEpoch :: Int64,
    -- | All other fields, in the server's words.
    clusterInfoOthers :: [(ByteString, ByteString)]
  }
  deriving stock (Eq, Show)

-- | @CLUSTER INFO@: the cluster, as the node sees it. Name the node. \(O(1)\) on the server,
-- [since 3.0.0](https://valkey.io/commands/cluster-info/).
clusterInfo :: Command ClusterInfo
clusterInfo = command "CLUSTER INFO" [] $ \reply -> do
  texts <- colonFields reply
  let fields = map (fmap BulkString) texts
      number name = Decode.field name Decode.integer fields
  clusterInfoState <- Decode.field "cluster_state" (fmap state . Decode.bytes) fields
  clusterInfoSlotsAssigned <- number "cluster_slots_assigned"
  clusterInfoSlotsOk <- number "cluster_slots_ok"
  clusterInfoSlotsPfail <- number "cluster_slots_pfail"
  clusterInfoSlotsFail <- number "cluster_slots_fail"
  clusterInfoKnownNodes <- number "cluster_known_nodes"
  clusterInfoSize <- number "cluster_size"
  clusterInfoCurrentEpoch <- number "cluster_current_epoch"
  clusterInfoMyEpoch <- number "cluster_my_epoch"
  pure
    ClusterInfo
      { clusterInfoState,
        clusterInfoSlotsAssigned,
        clusterInfoSlotsOk,
        clusterInfoSlotsPfail,
        clusterInfoSlotsFail,
        clusterInfoKnownNodes,
        clusterInfoSize,
        clusterInfoCurrentEpoch,
        clusterInfoMyEpoch,
        clusterInfoOthers = otherThan known texts
      }
  where
    state = \case
      "ok" -> ClusterOk
      "fail" -> ClusterFail
      word -> OtherClusterState word
    known =
      [ "cluster_state",
        "cluster_slots_assigned",
        "cluster_slots_ok",
        "cluster_slots_pfail",
        "cluster_slots_fail",
        "cluster_known_nodes",
        "cluster_size",
        "cluster_current_epoch",
        "cluster_my_epoch"
      ]

-- | @CLUSTER HELP@: the server's help on CLUSTER, a line each. \(O(1)\) on the server,
-- [since 5.0.0](https://valkey.io/commands/cluster-help/).
clusterHelp :: Command [ByteString]
clusterHelp = command "CLUSTER HELP" [] (Decode.list Decode.bytes)

-- | A server says @?@ for a host that it does not know.
filled :: ByteString -> Maybe ByteString
filled text = if Char8.null text || text == "?" then Nothing else Just text
