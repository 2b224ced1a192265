-- | The commands about clusters, with the replies of a real cluster. The replies of a standalone
-- server are among the cases of every command.
module CommandsSpec (spec) where

import Control.Monad (forM_, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (nub, sort)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict qualified as Map
import Redis
import Redis.Cluster.Slot (keySlot, slotCount)
import Redis.Commands qualified as Redis
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Cluster
import Redis.TestKit.Wait
import Support
import Test.Hspec hiding (after, before)

spec :: Spec
spec = describe "commands about clusters" . aroundAll (withCluster options) $
  forM_ [OnlyResp2, PreferResp3] $ \protocol -> describe ("with " <> show protocol) $ do
    it "tell its shards, their slots and their nodes" $ \cluster -> using protocol cluster shardsAgree
    it "tell its nodes one by one, and what each knows of the others" $ \cluster -> using protocol cluster nodesAgree
    it "tell slots and their keys" $ \cluster -> using protocol cluster keysAreFound
    it "give slots and take them" $ \cluster -> using protocol cluster slotsChange
    it "make a replica a primary" $ \cluster -> using protocol cluster replicaTakesOver
    it "move slots whole, where servers can" $ \cluster -> using protocol cluster slotsMove
    it "import slots whole, and delete what is left of them, where servers can" $ \cluster -> using protocol cluster slotsAreImported
  where
    options = clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1, clusterNodeTimeout = 1500}

using :: ProtocolVersion -> Cluster -> (Cluster -> Client -> IO a) -> IO a
using protocol cluster action = limited $ do
  config <- setProtocol protocol . liveConfig <$> clusterAddresses cluster
  -- A replica reports itself as online only after it has heard from its primary.
  eventually 20 "all nodes are well" . withClient config $ \client -> do
    forM_ (map (Char8.pack . show) [1 .. 50 :: Int]) $ \key -> run client (Redis.set key "v")
    views <- run client (onEvery AllNodes Redis.clusterShards)
    pure (map healthsIn (Map.elems views) == replicate 6 (replicate 6 Redis.NodeOnline))
  withClient config (action cluster)
  where
    healthsIn shards = map Redis.shardNodeHealth (concatMap Redis.shardNodes shards)

-- | The cluster's primaries, as the testkit sees them.
primariesOf :: Cluster -> IO [Node]
primariesOf cluster = map fst <$> clusterPrimaries cluster

on :: Node -> Command a -> Command a
on = onNode . addressEndpoint . nodeAddress

-- | Runs the action if the servers know the command of this name.
whereKnown :: Client -> ByteString -> IO () -> IO ()
whereKnown client name action = do
  described <- run client (Redis.commandInfo (name :| []))
  when (described /= [Nothing]) action

shardsAgree :: Cluster -> Client -> IO ()
shardsAgree cluster client = do
  primaries <- primariesOf cluster
  shards <- run client Redis.clusterShards
  length shards `shouldBe` 3
  sum (map slotsIn (concatMap Redis.shardSlots shards)) `shouldBe` slotCount
  forM_ shards $ \shard -> do
    let nodes = Redis.shardNodes shard
    sort (map (roleNumber . Redis.shardNodeRole) nodes) `shouldBe` [1, 2]
    map Redis.shardNodeHealth nodes `shouldBe` [Redis.NodeOnline, Redis.NodeOnline]
    map Redis.shardNodeIp nodes `shouldBe` [Just "127.0.0.1", Just "127.0.0.1"]
  let reported = [node | shard <- shards, node <- Redis.shardNodes shard, Redis.shardNodeRole node == Redis.ShardPrimary]
  sort (map Redis.shardNodeId reported) `shouldBe` sort (map nodeId primaries)
  sort (map Redis.shardNodePort reported) `shouldBe` sort (map (Just . portOf) primaries)
  entries <- run client Redis.clusterSlots
  sum (map (slotsIn . Redis.slotsRange) entries) `shouldBe` slotCount
  nub (sort (concatMap (maybe [] pure . Redis.slotsNodeId . Redis.slotsPrimary) entries)) `shouldBe` sort (map nodeId primaries)
  filter ((/= 1) . length . Redis.slotsReplicas) entries `shouldBe` []
  where
    roleNumber = \case
      Redis.ShardPrimary -> 1 :: Int
      Redis.ShardReplica -> 2
      Redis.OtherShardRole _ -> 3
    portOf node = case nodeAddress node of
      TcpAddress _ port -> fromIntegral port
      _ -> 0

slotsIn :: Redis.SlotRange -> Int
slotsIn range = Redis.slotRangeLast range - Redis.slotRangeFirst range + 1

nodesAgree :: Cluster -> Client -> IO ()
nodesAgree cluster client = do
  nodes <- clusterNodes cluster
  primaries <- primariesOf cluster
  forM_ nodes $ \node -> do
    run client (on node Redis.clusterMyid) `shouldReturn` nodeId node
    known <- run client (on node Redis.clusterNodes)
    sort (map Redis.clusterNodeId known) `shouldBe` sort (map nodeId nodes)
    [Redis.clusterNodeId one | one <- known, "myself" `elem` Redis.clusterNodeFlags one] `shouldBe` [nodeId node]
    sum (map slotsIn (concatMap Redis.clusterNodeSlots known)) `shouldBe` slotCount
    map Redis.clusterNodeIp known `shouldBe` map (const "127.0.0.1") known
    sort [primary | one <- known, Just primary <- [Redis.clusterNodePrimary one]] `shouldBe` sort (map nodeId primaries)
    info <- run client (on node Redis.clusterInfo)
    (Redis.clusterInfoState info, Redis.clusterInfoSlotsOk info, Redis.clusterInfoKnownNodes info, Redis.clusterInfoSize info)
      `shouldBe` (Redis.ClusterOk, 16384, 6, 3)
    links <- run client (on node Redis.clusterLinks)
    links `shouldSatisfy` (not . null)
    filter (`notElem` map nodeId nodes) (map Redis.clusterLinkNode links) `shouldBe` []
  forM_ primaries $ \primary -> do
    replicas <- run client (on primary (Redis.clusterReplicas (nodeId primary)))
    map Redis.clusterNodePrimary replicas `shouldBe` [Just (nodeId primary)]
    slaves <- run client (on primary (Redis.clusterSlaves (nodeId primary)))
    map Redis.clusterNodeId slaves `shouldBe` map Redis.clusterNodeId replicas
    run client (on primary (Redis.clusterCountFailureReports (nodeId primary))) `shouldReturn` 0
  help <- run client Redis.clusterHelp
  help `shouldSatisfy` (not . null)
  whereKnown client "cluster|myshardid" $ do
    shards <- Map.elems <$> run client (onEvery AllNodes Redis.clusterMyshardid)
    map length (NonEmpty.group (sort shards)) `shouldBe` [2, 2, 2]

keysAreFound :: Cluster -> Client -> IO ()
keysAreFound cluster client = do
  let keys = ["{found}" <> Char8.pack (show n) | n <- [1 .. 5 :: Int]]
      slot = keySlot "found"
  forM_ keys $ \key -> run client (Redis.set key "v")
  run client (Redis.clusterKeyslot "{found}1") `shouldReturn` slot
  owner <- ownerOf cluster slot
  run client (on owner (Redis.clusterCountkeysinslot slot)) `shouldReturn` 5
  found <- run client (on owner (Redis.clusterGetkeysinslot slot 10))
  sort found `shouldBe` keys
  whereKnown client "cluster|slot-stats" $ do
    stats <- run client (Redis.clusterSlotStats (Redis.SlotRange slot slot))
    [(number, Redis.slotStatsKeys one) | (number, one) <- stats] `shouldBe` [(slot, 5)]
    most <- run client (Redis.clusterSlotStatsOrderby Redis.ByKeyCount 1 Redis.Descending)
    lookup slot most `shouldSatisfy` maybe False ((== 5) . Redis.slotStatsKeys)
  whereKnown client "clusterscan" $ do
    walked <- walk client Redis.clusterscanDefaults
    filter (`notElem` walked) keys `shouldBe` []
    inSlot <- walk client Redis.clusterscanDefaults {Redis.clusterscanSlot = Just slot, Redis.clusterscanMatch = Just "*1", Redis.clusterscanType = Just Redis.StringKey}
    inSlot `shouldBe` ["{found}1"]
  whereKnown client "cluster|flushslot" $
    run client (on owner (Redis.clusterFlushslot slot)) `shouldReturn` ()
  forM_ keys $ \key -> run client (Redis.del (key :| []))

walk :: Client -> Redis.ClusterscanOptions -> IO [ByteString]
walk client options = go Redis.clusterscanStart
  where
    go cursor = do
      page <- run client (Redis.clusterscanWith options cursor)
      rest <- maybe (pure []) go (Redis.clusterscanNext page)
      pure (Redis.clusterscanFound page <> rest)

ownerOf :: Cluster -> Int -> IO Node
ownerOf cluster slot = do
  primaries <- clusterPrimaries cluster
  someOf "a node that serves the slot" [node | (node, ranges) <- primaries, any (\(from, to) -> from <= slot && slot <= to) ranges]

someOf :: String -> [a] -> IO a
someOf wanted = \case
  one : _ -> pure one
  [] -> failure ("there is no such thing: " <> wanted)

slotsChange :: Cluster -> Client -> IO ()
slotsChange cluster client = do
  owner <- ownerOf cluster 7
  forM_
    [ Redis.clusterDelslots (7 :| [8]),
      Redis.clusterAddslots (7 :| [8]),
      Redis.clusterDelslotsrange (Redis.SlotRange 7 8 :| []),
      Redis.clusterAddslotsrange (Redis.SlotRange 7 8 :| []),
      Redis.clusterSaveconfig
    ]
    (run client . on owner)
  other <- primariesOf cluster >>= someOf "another primary" . filter (/= owner)
  let target = nodeId other
  run client (on owner (Redis.clusterSetslot 7 (Redis.SlotMigrating target)))
  known <- run client (on owner Redis.clusterNodes)
  concatMap Redis.clusterNodeMigrating known `shouldBe` [(7, target)]
  run client (on owner (Redis.clusterSetslot 7 Redis.SlotStable))
  run client (on other (Redis.clusterSetslot 7 (Redis.SlotImporting (nodeId owner))))
  importing <- run client (on other Redis.clusterNodes)
  concatMap Redis.clusterNodeImporting importing `shouldBe` [(7, nodeId owner)]
  run client (on other (Redis.clusterSetslot 7 Redis.SlotStable))
  bumped <- run client (on owner Redis.clusterBumpepoch)
  bumped `shouldSatisfy` \case
    Redis.Bumped epoch -> epoch > 0
    Redis.StillHighest epoch -> epoch > 0
  awaitAgreement cluster

replicaTakesOver :: Cluster -> Client -> IO ()
replicaTakesOver cluster client = do
  primary <- ownerOf cluster 0
  replica <- replicasOf cluster primary >>= someOf "a replica"
  before <- run client (on replica Redis.role)
  before `shouldSatisfy` \case
    Redis.RoleReplica found -> Redis.replicaState found == Redis.ReplicaConnected
    _ -> False
  leader <- run client (on primary Redis.role)
  leader `shouldSatisfy` \case
    Redis.RolePrimary found -> length (Redis.primaryReplicas found) == 1
    _ -> False
  run client (on replica Redis.clusterFailover)
  eventually 10 "the replica is a primary" $
    run client (on replica Redis.role) >>= \case
      Redis.RolePrimary _ -> pure True
      _ -> pure False
  awaitAgreement cluster

slotsMove :: Cluster -> Client -> IO ()
slotsMove cluster client = whereKnown client "cluster|migrateslots" $ do
  owner <- ownerOf cluster 5
  target <- fmap nodeId . someOf "another primary" . filter (/= owner) =<< primariesOf cluster
  run client (on owner (Redis.clusterMigrateslots ((Redis.SlotRange 5 6 :| [Redis.SlotRange 9 9], target) :| [])))
  let moved one = Redis.slotMigrationTarget one == target && Redis.slotMigrationState one == "success"
  eventually 10 "the slots have moved" $ any moved <$> run client (on owner Redis.clusterGetslotmigrations)
  migrations <- run client (on owner Redis.clusterGetslotmigrations)
  map Redis.slotMigrationRanges (filter moved migrations) `shouldContain` [[Redis.SlotRange 5 6, Redis.SlotRange 9 9]]
  awaitAgreement cluster

slotsAreImported :: Cluster -> Client -> IO ()
slotsAreImported cluster client = whereKnown client "cluster|migration" $ do
  owner <- ownerOf cluster 5
  target <- someOf "another primary" . filter (/= owner) =<< primariesOf cluster
  task <- run client (on target (Redis.clusterMigrationImport (Redis.SlotRange 5 6 :| [Redis.SlotRange 9 9])))
  let status = run client (on target (Redis.clusterMigrationStatusOf task))
  eventually 10 "the slots have moved" $ (== ["completed"]) . map Redis.migrationTaskState <$> status
  found <- status
  [(Redis.migrationTaskId one, Redis.migrationTaskSlots one, Redis.migrationTaskSource one, Redis.migrationTaskTarget one, Redis.migrationTaskOthers one) | one <- found]
    `shouldBe` [(task, [Redis.SlotRange 5 6, Redis.SlotRange 9 9], nodeId owner, nodeId target, [])]
  [(Redis.migrationTaskOperation one, Redis.migrationTaskLastError one, Redis.migrationTaskEnded one >= Redis.migrationTaskStarted one) | one <- found]
    `shouldBe` [("import", "", True)]
  there <- run client (on owner Redis.clusterMigrationStatus)
  [Redis.migrationTaskOperation one | one <- there, Redis.migrationTaskId one == task] `shouldBe` ["migrate"]
  run client (on target (Redis.clusterMigrationCancel task)) `shouldReturn` 0
  run client (on target Redis.clusterMigrationCancelAll) `shouldReturn` 0
  awaitAgreement cluster
  run client (on owner (Redis.trimslots (Redis.SlotRange 5 6 :| []))) `shouldReturn` ()
  tryRun client (on target (Redis.trimslots (Redis.SlotRange 5 6 :| []))) >>= \case
    Left (ReplyError _) -> pure ()
    other -> expectationFailure (show other)
