-- | Replies of servers about themselves, in forms that the available servers do not send: from
-- older servers, from sentinels, and from networks that no test has.
module Redis.ServerRepliesSpec (spec) where

import Data.ByteString (ByteString)
import Data.Either (isLeft, isRight)
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.Commands
import Redis.Duration
import Redis.Internal.Command (decoded)
import Redis.Value (Value (..))
import Test.Hspec

spec :: Spec
spec = describe "what a server says of itself" $ do
  clusters
  roles
  others

clusters :: Spec
clusters = do
  it "has nodes with names, with addresses of IPv6, and with slots on their way" $
    fmap (map whereAndWhat) (decoded clusterNodes (BulkString nodeLines))
      `shouldBe` Right
        [ ("a", "10.0.0.1", 7000, Just 17000, Just "one.example"),
          ("b", "fe80::1", 7001, Just 17001, Nothing),
          ("c", "", 0, Just 0, Nothing),
          ("d", "10.0.0.4", 7003, Nothing, Nothing)
        ]

  it "has slots one by one, in ranges, coming and going; times; and what a node follows" $
    case decoded clusterNodes (BulkString nodeLines) of
      Right [a, b, c, d] -> do
        clusterNodeSlots a `shouldBe` [SlotRange 0 5460, SlotRange 7000 7000]
        clusterNodeMigrating a `shouldBe` [(93, "b")]
        clusterNodeImporting a `shouldBe` [(94, "b")]
        clusterNodeAuxiliary a `shouldBe` [("shard-id", "s1")]
        map clusterNodePrimary [a, b] `shouldBe` [Nothing, Just "a"]
        map clusterNodeConnected [a, c] `shouldBe` [True, False]
        map clusterNodeFlags [a, c, d] `shouldBe` [["myself", "master"], ["master", "noaddr"], []]
        (clusterNodePingSent a, clusterNodePongReceived b) `shouldBe` (Nothing, Just (posixSecondsToUTCTime 1700000000.5))
      wrong -> expectationFailure (show wrong)

  it "is wrong where a line says less" $
    map (isLeft . decoded clusterNodes . BulkString) ["a 10.0.0.1:7000 master", "a nowhere master - 0 0 1 connected", "a h:1 master - 0 0 1 connected x-y"]
      `shouldBe` [True, True, True]

  it "is wrong where a slot is none, or a number is too large" $
    filter
      (isRight . decoded clusterNodes . BulkString)
      [ "a h:1 master - 0 0 1 connected 5-9x",
        "a h:1 master - 0 0 1 connected 5-",
        "a h:1 master - 0 0 1 connected 16384",
        "a h:1 master - 0 0 1 connected 0-18446744073709551617",
        "a h:1 master - 0 0 1 connected [16384->-b]",
        "a h:1 master - 0 0 18446744073709551617 connected"
      ]
      `shouldBe` []

  it "has hosts that are missing, and names beside addresses" $
    fmap (map (\entry -> (slotsNodeHost (slotsPrimary entry), slotsNodeMetadata (slotsPrimary entry), length (slotsReplicas entry)))) (decoded clusterSlots (Array slotsEntries))
      `shouldBe` Right [(Nothing, [("ip", "10.0.0.1")], 1), (Just "h", [], 0)]

  it "has a host that its node does not know" $ do
    let entries = [Array [Integer 0, Integer 5, Array [BulkString "?", Integer 6379, BulkString "a"]]]
    fmap (map (slotsNodeHost . slotsPrimary)) (decoded clusterSlots (Array entries)) `shouldBe` Right [Nothing]

  it "has shards whose nodes have TLS only, and one without slots" $ do
    let node = Map [(name, element) | (name, element) <- [(BulkString "id", BulkString "a"), (BulkString "tls-port", Integer 7001), (BulkString "endpoint", Null), (BulkString "hostname", BulkString ""), (BulkString "role", BulkString "replica"), (BulkString "replication-offset", Integer 7), (BulkString "health", BulkString "fail"), (BulkString "new", Integer 1)]]
        shard = Map [(BulkString "slots", Array []), (BulkString "nodes", Array [node])]
    fmap (concatMap shardNodes) (decoded clusterShards (Array [shard]))
      `shouldBe` Right
        [ ShardNode
            { shardNodeId = "a",
              shardNodeEndpoint = Nothing,
              shardNodeIp = Nothing,
              shardNodeHostname = Nothing,
              shardNodePort = Nothing,
              shardNodeTlsPort = Just 7001,
              shardNodeRole = ShardReplica,
              shardNodeOffset = 7,
              shardNodeHealth = NodeFailed,
              shardNodeOthers = [("new", Integer 1)]
            }
        ]

  it "has slots that are counted, and what they cost" $
    decoded (clusterSlotStats (SlotRange 0 9)) (Array [Array [Integer 5, Map [(BulkString "key-count", Integer 1), (BulkString "cpu-usec", Integer 1500), (BulkString "network-bytes-in", Integer 2), (BulkString "network-bytes-out", Integer 3)]]])
      `shouldBe` Right [(5, SlotStats {slotStatsKeys = 1, slotStatsCpu = Just (seconds 0.0015), slotStatsBytesIn = Just 2, slotStatsBytesOut = Just 3, slotStatsOthers = []})]

  it "has an epoch that is new, or the highest already" $
    map (decoded clusterBumpepoch . SimpleString) ["BUMPED 7", "STILL 7"] `shouldBe` [Right (Bumped 7), Right (StillHighest 7)]

  it "has an epoch that is no other's, however large it is" $
    decoded clusterBumpepoch (SimpleString "BUMPED 18446744073709551623") `shouldSatisfy` isLeft

  it "has migrations of slots, of whose nodes a replica does not know" $ do
    let known name = [BulkString name, BulkString (name <> "-id")]
        migration nodes =
          Array
            ( [BulkString "name", BulkString "m", BulkString "operation", BulkString "IMPORT", BulkString "slot_ranges", BulkString "0-5 7-7"]
                <> nodes
                <> [BulkString "create_time", Integer 1, BulkString "last_update_time", Integer 2]
                <> [BulkString "state", BulkString "occurring-on-primary", BulkString "message", BulkString ""]
            )
    fmap
      (map (\one -> (slotMigrationRanges one, slotMigrationSource one, slotMigrationTarget one)))
      (decoded clusterGetslotmigrations (Array [migration [], migration (known "target_node" <> known "source_node")]))
      `shouldBe` Right [([SlotRange 0 5, SlotRange 7 7], "", ""), ([SlotRange 0 5, SlotRange 7 7], "source_node-id", "target_node-id")]
  where
    whereAndWhat node = (clusterNodeId node, clusterNodeIp node, clusterNodePort node, clusterNodeBusPort node, clusterNodeHostname node)
    slotsEntries =
      [ Array
          [ Integer 0,
            Integer 100,
            Array [Null, Integer 7000, BulkString "a", Map [(BulkString "ip", BulkString "10.0.0.1")]],
            Array [BulkString "h2", Integer 7001, BulkString "b", Array []]
          ],
        -- The reply of a server before 4.0.
        Array [Integer 101, Integer 101, Array [BulkString "h", Integer 7000]]
      ]

nodeLines :: ByteString
nodeLines =
  "a 10.0.0.1:7000@17000,one.example,shard-id=s1 myself,master - 0 1700000000000 1 connected 0-5460 7000 [93->-b] [94-<-b]\n\
  \b fe80::1:7001@17001 slave a 0 1700000000500 1 connected\r\n\
  \c :0@0 master,noaddr - 1700000000000 1700000000000 0 disconnected\n\
  \d 10.0.0.4:7003 noflags - 0 0 0 connected\n"

roles :: Spec
roles = describe "as its role" $ do
  it "has replicas, whose numbers are text" $
    decoded role (Array [BulkString "master", Integer 9, Array [Array [BulkString "h", BulkString "7000", BulkString "8"]]])
      `shouldBe` Right (RolePrimary AsPrimary {primaryOffset = 9, primaryReplicas = [FollowingReplica {followingHost = "h", followingPort = 7000, followingOffset = 8}]})

  it "is a sentinel, or something new" $ do
    decoded role (Array [BulkString "sentinel", Array [BulkString "m"]]) `shouldBe` Right (RoleSentinel ["m"])
    decoded role (Array [BulkString "witness", Integer 1]) `shouldBe` Right (OtherRole "witness" [Integer 1])

  it "gets its primary's data, or is in a state that is new" $
    map (\state -> decoded role (Array [BulkString "slave", BulkString "h", Integer 1, BulkString state, Integer (-1)])) ["sync", "thinking"]
      `shouldBe` [Right (RoleReplica (AsReplica "h" 1 ReplicaSyncing (-1))), Right (RoleReplica (AsReplica "h" 1 (OtherReplicaState "thinking") (-1)))]

others :: Spec
others = do
  it "may follow its primary already" $ do
    map (decoded (replicaof "10.0.0.1" 6379)) [SimpleString "OK", SimpleString "OK Already connected to specified master"] `shouldBe` [Right (), Right ()]
    decoded (slaveof "10.0.0.1" 6379) (SimpleString "NO") `shouldSatisfy` isLeft

  it "has users whose keys and channels are lists, before 7.0, and makes rules of them" $ do
    let fields = [BulkString "flags", Array [BulkString "on"], BulkString "passwords", Array [], BulkString "commands", BulkString "+@all", BulkString "keys", Array [BulkString "a*", BulkString "b*"]]
        channels = [BulkString "channels", Array [BulkString "c*", BulkString "d"]]
        permissions granted = AclPermissions {aclPermissionsCommands = "+@all", aclPermissionsKeys = "~a* ~b*", aclPermissionsChannels = granted, aclPermissionsOthers = []}
    map (fmap (fmap aclUserPermissions) . decoded (aclGetuser "u") . Array) [fields, fields <> channels]
      `shouldBe` map (Right . Just . permissions) ["", "&c* &d"]

  it "has clients of which old servers say less" $
    fmap (map (\one -> (clientInfoName one, clientInfoUser one, clientInfoQueued one, clientInfoCommand one))) (decoded clientList (BulkString "id=3 addr=h:1 fd=8 name= age=1 idle=0 flags=x db=0 sub=0 psub=0 multi=2 cmd=NULL\n"))
      `shouldBe` Right [(Nothing, Nothing, Just 2, Nothing)]

  it "has clients whose addresses have spaces, and whose users have any letters" $
    fmap
      (map (\one -> (clientInfoAddress one, clientInfoLocalAddress one, clientInfoName one, clientInfoUser one, lookup "redir" (clientInfoOthers one))))
      (decoded clientList (BulkString "id=3 addr=/my  own/a socket:0 laddr=/my  own/a socket:0 fd=8 name= age=1 idle=0 flags=U db=0 sub=0 psub=0 multi=-1  user=voil\xc3\xa0 redir=-1 \n"))
      `shouldBe` Right [("/my  own/a socket:0", Just "/my  own/a socket:0", Nothing, Just "voil\xc3\xa0", Just (BulkString "-1"))]

  it "tracks keys for another connection" $
    map (decoded clientGetredir . Integer) [-1, 0, 7] `shouldBe` map Right [NotTracking, NotRedirected, RedirectedTo 7]

  it "has modules of which old servers say less" $
    decoded moduleList (Array [Array [BulkString "name", BulkString "m", BulkString "ver", Integer 1]])
      `shouldBe` Right [ModuleInfo {moduleName = "m", moduleVersion = 1, modulePath = Nothing, moduleArgs = []}]

  it "refuses in ways that are new" $
    fmap (map aclLogReason) (decoded aclLog (Array [refusal "channel", refusal "database"]))
      `shouldBe` Right [ChannelRefused, OtherRefused "database"]
  where
    refusal reason =
      Array
        [ BulkString "count",
          Integer 1,
          BulkString "reason",
          BulkString reason,
          BulkString "context",
          BulkString "toplevel",
          BulkString "object",
          BulkString "o",
          BulkString "username",
          BulkString "u",
          BulkString "age-seconds",
          BulkString "0.5",
          BulkString "client-info",
          BulkString "id=3 addr=h:1 age=1 idle=0 flags=N db=0 sub=0 psub=0 multi=-1"
        ]
