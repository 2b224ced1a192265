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

import Control.Monad (mfilter)
import Redis.Commands.Sort (SortOrder (..))
import Redis.Decode qualified as Decode
import Redis.Error (Host)
import Redis.Internal.Command.ClusterNode
import Redis.Internal.Command.Common
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

-- | @CLUSTER SHARDS@: all shards, with their slots and nodes. \(O(n)\) in nodes,
-- [since 7.0.0](https://valkey.io/commands/cluster-shards/).
clusterShards :: Command [ClusterShard]
clusterShards =
  command "CLUSTER SHARDS" [] . Decode.list . recordOf $
    ClusterShard
      <$> field "slots" (fmap (map (uncurry SlotRange)) . Decode.pairs slotNumberReply slotNumberReply)
      <*> field "nodes" (Decode.list shardNode)
      <*> others Decode.value

shardNode :: Decoder ShardNode
shardNode =
  recordOf $
    ShardNode
      <$> field "id" Decode.bytes
      <*> maybeField "endpoint" filled
      <*> maybeField "ip" filled
      <*> maybeField "hostname" filled
      <*> optionalField "port" Decode.integer
      <*> optionalField "tls-port" Decode.integer
      <*> field "role" role
      <*> field "replication-offset" Decode.integer
      <*> field "health" health
      <*> others Decode.value
  where
    role =
      wordOr OtherShardRole [("master", ShardPrimary), ("primary", ShardPrimary), ("replica", ShardReplica), ("slave", ShardReplica)]
    health = wordOr OtherHealth [("online", NodeOnline), ("loading", NodeLoading), ("fail", NodeFailed)]

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
-- [since 7.0.0](https://valkey.io/commands/cluster-slots/). \(O(n)\) in nodes, since 3.0.0.
clusterSlots :: Command [SlotsEntry]
clusterSlots = command "CLUSTER SLOTS" [] (Decode.list entry)
  where
    entry reply = do
      elements <- Decode.list Decode.value reply
      range <- SlotRange <$> Decode.element 0 slotNumberReply elements <*> Decode.element 1 slotNumberReply elements
      SlotsEntry range <$> Decode.element 2 node elements <*> traverse node (drop 3 elements)
    node reply = do
      elements <- Decode.list Decode.value reply
      SlotsNode
        <$> Decode.element 0 filled elements
        <*> Decode.element 1 Decode.integer elements
        <*> Decode.optionalElement 2 Decode.bytes elements
        <*> (concat <$> Decode.optionalElement 3 (Decode.pairs Decode.bytes Decode.bytes) elements)

-- | @CLUSTER KEYSLOT key@: the slot of a key, which 'Redis.Cluster.Slot.keySlot' computes without a
-- server. \(O(n)\) in bytes, [since 3.0.0](https://valkey.io/commands/cluster-keyslot/).
clusterKeyslot :: ByteString -> Command Int
clusterKeyslot name = command "CLUSTER KEYSLOT" [arg name] slotNumberReply

-- | @CLUSTER COUNTKEYSINSLOT slot@: how many keys of this slot the node has. \(O(1)\),
-- [since 3.0.0](https://valkey.io/commands/cluster-countkeysinslot/).
clusterCountkeysinslot :: Int -> Command Int64
clusterCountkeysinslot slot = command "CLUSTER COUNTKEYSINSLOT" [slotArgument slot] Decode.integer

-- | @CLUSTER GETKEYSINSLOT slot count@: keys of this slot that the node has, at most this many.
-- \(O(n)\), [since 3.0.0](https://valkey.io/commands/cluster-getkeysinslot/).
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
-- primary lists the slots that it serves, in order; the result is all lists, one after the other.
-- \(O(n)\), [since Valkey 8.0.0](https://valkey.io/commands/cluster-slot-stats/); Redis since 8.2.
clusterSlotStats :: SlotRange -> Command [(Int, SlotStats)]
clusterSlotStats range = command "CLUSTER SLOT-STATS" (arg "SLOTSRANGE" : rangeArguments range) slotStats

-- | @CLUSTER SLOT-STATS ORDERBY metric LIMIT count ASC|DESC@: like 'clusterSlotStats', for all
-- slots, sorted by this metric; from each primary at most this many. An error if the server does
-- not count this metric. \(O(n \log n)\).
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
slotStats =
  Decode.list . Decode.pair slotNumberReply . recordOf $
    SlotStats
      <$> field "key-count" Decode.integer
      <*> optionalField "cpu-usec" microsecondsReply
      <*> optionalField "network-bytes-in" Decode.integer
      <*> optionalField "network-bytes-out" Decode.integer
      <*> others Decode.value

-- | @CLUSTER NODES@: every node that the node knows, itself included. \(O(n)\) in nodes,
-- [since 3.0.0](https://valkey.io/commands/cluster-nodes/).
clusterNodes :: Command [ClusterNode]
clusterNodes = command "CLUSTER NODES" [] (\reply -> linesOf reply >>= traverse clusterNodeLine)

-- | @CLUSTER REPLICAS id@: the replicas of the primary with this id. An error if there is no such
-- primary. \(O(n)\), [since 5.0.0](https://valkey.io/commands/cluster-replicas/), and since 3.0.0
-- by its old name, [CLUSTER SLAVES](https://valkey.io/commands/cluster-slaves/).
clusterReplicas, clusterSlaves :: ByteString -> Command [ClusterNode]
clusterReplicas node = command "CLUSTER REPLICAS" [arg node] nodeLines
clusterSlaves node = command "CLUSTER SLAVES" [arg node] nodeLines

nodeLines :: Decoder [ClusterNode]
nodeLines = Decode.list (\reply -> Decode.bytes reply >>= clusterNodeLine)

-- | @CLUSTER MYID@, @CLUSTER MYSHARDID@: the id of the node
-- ([since 3.0.0](https://valkey.io/commands/cluster-myid/)), and that of its shard
-- ([since 7.2.0](https://valkey.io/commands/cluster-myshardid/)). \(O(1)\).
clusterMyid, clusterMyshardid :: Command ByteString
clusterMyid = command "CLUSTER MYID" [] Decode.bytes
clusterMyshardid = command "CLUSTER MYSHARDID" [] Decode.bytes

-- | @CLUSTER COUNT-FAILURE-REPORTS id@: how many nodes have told the named node that the node with
-- this id does not answer. \(O(n)\) in these reports,
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

-- | @CLUSTER LINKS@: the node's connections to and from other nodes. \(O(n)\) in nodes,
-- [since 7.0.0](https://valkey.io/commands/cluster-links/).
clusterLinks :: Command [ClusterLink]
clusterLinks =
  command "CLUSTER LINKS" [] . Decode.list . recordOf $
    ClusterLink
      <$> field "direction" (oneOf Decode.bytes "to or from" [("to", LinkTo), ("from", LinkFrom)])
      <*> field "node" Decode.bytes
      <*> field "create-time" Decode.unixMilliseconds
      <*> field "events" Decode.bytes
      <*> field "send-buffer-allocated" Decode.integer
      <*> field "send-buffer-used" Decode.integer

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
    clusterInfoOthers :: [(ByteString, ByteString)]
  }
  deriving stock (Eq, Show)

-- | @CLUSTER INFO@: the cluster, as the node sees it. \(O(1)\),
-- [since 3.0.0](https://valkey.io/commands/cluster-info/).
clusterInfo :: Command ClusterInfo
clusterInfo = command "CLUSTER INFO" [] (\reply -> colonFields reply >>= fromFields described . map (fmap BulkString))
  where
    described =
      ClusterInfo
        <$> field "cluster_state" (wordOr OtherClusterState [("ok", ClusterOk), ("fail", ClusterFail)])
        <*> field "cluster_slots_assigned" Decode.integer
        <*> field "cluster_slots_ok" Decode.integer
        <*> field "cluster_slots_pfail" Decode.integer
        <*> field "cluster_slots_fail" Decode.integer
        <*> field "cluster_known_nodes" Decode.integer
        <*> field "cluster_size" Decode.integer
        <*> field "cluster_current_epoch" Decode.integer
        <*> field "cluster_my_epoch" Decode.integer
        <*> others Decode.bytes

-- | @CLUSTER HELP@: the server's help. \(O(1)\), [since 5.0.0](https://valkey.io/commands/cluster-help/).
clusterHelp :: Command [ByteString]
clusterHelp = command "CLUSTER HELP" [] (Decode.list Decode.bytes)

-- | Reads a text that may be missing. A server says @?@ for a host that it does not know.
filled :: Decoder (Maybe ByteString)
filled = fmap (mfilter (`notElem` ["", "?"])) . Decode.nullable Decode.bytes
