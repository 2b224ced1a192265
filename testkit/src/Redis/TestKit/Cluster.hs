-- | A private cluster, and operations that change it.
--
-- It is started without @redis-cli --cluster create@, whose pauses take longer than everything
-- else: each node gets its slots and its epoch, meets every other node, and then all nodes are
-- asked until they agree. "Redis.TestKit.Cluster.StandIn" spares the two seconds for which Redis
-- keeps a new primary from serving.
--
-- An operation that changes the cluster returns only when all running nodes agree on the result,
-- unless its documentation says otherwise. A test that wants to see a disagreement does so from a
-- hook.
module Redis.TestKit.Cluster
  ( -- * Life
    ClusterOptions (..),
    clusterDefaults,
    Cluster,
    withCluster,
    withClusterTimeout,

    -- * Nodes
    Node (..),
    nodeAddress,
    clusterNodes,
    clusterAddresses,
    clusterPrimaries,
    slotOf,
    slotPrimary,
    replicasOf,
    viewOf,

    -- * Failing over
    killPrimary,
    awaitNewPrimary,
    failover,

    -- * Moving slots
    Migration (..),
    quietMigration,
    migrateSlot,

    -- * Growing and shrinking
    addPrimary,
    addReplica,
    removeNode,

    -- * Agreeing
    awaitAgreement,
  )
where

import Control.Concurrent.Async (forConcurrently, forConcurrently_)
import Control.Concurrent.MVar (MVar, modifyMVar_, newMVar, readMVar)
import Control.Exception (Handler (Handler), IOException, bracket, catches, mask_, onException, throwIO, try)
import Control.Monad (filterM, forM_, unless, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (find)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust, mapMaybe)
import GHC.Stack (HasCallStack)
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Cluster.StandIn
import Redis.TestKit.Cluster.View
import Redis.TestKit.Command (Reply (..), infoFields, replyText)
import Redis.TestKit.Proxy (Proxy)
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (Server, ServerOptions (..), serverDefaults)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (Seconds, TestKitFailure (..), eventually, eventuallyJust, failure)

-- | How to start a cluster. Change fields of 'clusterDefaults'.
data ClusterOptions = ClusterOptions
  { clusterPrimaryCount :: Int,
    clusterReplicasPerPrimary :: Int,
    -- | The milliseconds of silence after which a node counts as failed. Short for tests of
    -- fail-over; 15 000 is right if a busy machine may keep a node from running for a while.
    clusterNodeTimeout :: Int,
    -- | Whether clients are told to reach each node through a fault proxy of its own ('nodeProxy').
    -- Replication then uses the proxy, too; the cluster bus does not.
    clusterProxies :: Bool,
    -- | Options of every node: passwords, TLS (which the bus then uses as well), further
    -- configuration.
    clusterServer :: ServerOptions,
    -- | How long any change may take until all nodes agree.
    clusterTimeout :: Seconds
  }
  deriving stock (Eq, Show)

-- | Five primaries, no replicas, two seconds until a node counts as failed.
clusterDefaults :: ClusterOptions
clusterDefaults =
  ClusterOptions
    { clusterPrimaryCount = 5,
      clusterReplicasPerPrimary = 0,
      clusterNodeTimeout = 2000,
      clusterProxies = False,
      clusterServer = serverDefaults,
      clusterTimeout = 30
    }

-- | A cluster; its nodes may come and go.
data Cluster = Cluster
  { clusterOptions :: ClusterOptions,
    clusterMembers :: MVar [Node]
  }

-- | The same cluster, with another 'clusterTimeout'.
withClusterTimeout :: Seconds -> Cluster -> Cluster
withClusterTimeout limit cluster = cluster {clusterOptions = (clusterOptions cluster) {clusterTimeout = limit}}

-- | A node: a server that can be killed, frozen and restarted like any other.
data Node = Node
  { nodeServer :: Server,
    nodeId :: NodeId,
    -- | The proxy in front of the port that clients use, if there are proxies.
    nodeProxy :: Maybe Proxy
  }

instance Eq Node where
  one == other = nodeId one == nodeId other

instance Show Node where
  show node = Char8.unpack (nodeId node) <> "@" <> show (nodeAddress node)

-- | The address that clients are told: the TLS port if the cluster has TLS, the proxy if there is
-- one.
nodeAddress :: Node -> Address
nodeAddress node =
  maybe (clientPort (nodeServer node)) Proxy.proxyAddress (nodeProxy node)

clientPort :: Server -> Address
clientPort server = case Server.serverTlsPort server of
  Just port -> TcpAddress (Server.serverHost server) port
  Nothing -> Server.serverAddress server

-- | A cluster whose nodes all agree that it is complete, for the duration of an action. Takes about
-- half a second for five primaries.
withCluster :: HasCallStack => ClusterOptions -> (Cluster -> IO a) -> IO a
withCluster options = bracket (startCluster options) disposeCluster

startCluster :: HasCallStack => ClusterOptions -> IO Cluster
startCluster options = do
  cluster <- Cluster options <$> newMVar []
  flip onException (disposeCluster cluster) $ do
    primaries <- forConcurrently (zip [1 ..] (slotRanges count)) $ \(epoch, slots) ->
      startPrimary cluster epoch [slots]
    replicas <- forConcurrently [(primary, turn) | primary <- primaries, turn <- [1 .. perPrimary]] $
      \(primary, turn) -> (,,) turn primary <$> startNode cluster []
    meetAll (primaries <> [replica | (_, _, replica) <- replicas])
    forConcurrently_ primaries forgetStandIns
    -- One replica of each primary at a time: one that comes while another is sent its data waits for
    -- up to a second.
    forM_ [1 .. perPrimary] $ \turn ->
      forConcurrently_ [(primary, replica) | (turn', primary, replica) <- replicas, turn' == turn] $ \(primary, replica) -> do
        follow cluster replica primary
        eventually (clusterTimeout options) "the replica has its primary's data" (linkIsUp replica)
    awaitAgreement cluster
    nodes <- clusterNodes cluster
    forM_ nodes $ \node ->
      tell node ["CONFIG", "SET", "cluster-node-timeout", number (clusterNodeTimeout options)]
  pure cluster
  where
    count = max 1 (clusterPrimaryCount options)
    perPrimary = clusterReplicasPerPrimary options

slotRanges :: Int -> [SlotRange]
slotRanges count =
  [(at n, at (n + 1) - 1) | n <- [0 .. count - 1]]
  where
    at n = n * 16384 `div` count

disposeCluster :: Cluster -> IO ()
disposeCluster cluster = do
  nodes <- readMVar (clusterMembers cluster)
  forConcurrently_ nodes disposeNode

disposeNode :: Node -> IO ()
disposeNode node = do
  mapM_ Proxy.disposeProxy (nodeProxy node)
  Server.disposeServer (nodeServer node)

-- Starts a primary by itself, with its own epoch and slots, which serves at once.
startPrimary :: Cluster -> Int -> [SlotRange] -> IO Node
startPrimary cluster epoch slots = do
  known <- replicaOfStandIn (epoch - 1) slots
  node <- startNode cluster [("nodes.conf", known)]
  -- Raises the epoch by one.
  node <$ tell node ["CLUSTER", "FAILOVER", "TAKEOVER"]

-- Makes a primary forget the stand-ins, once others have claimed the slots.
forgetStandIns :: HasCallStack => Node -> IO ()
forgetStandIns node = do
  eventually 20 "the other primaries' slots are theirs" $
    all (null . viewSlots) . filter isStandIn <$> viewOf node
  forM_ standIns $ \name -> tell node ["CLUSTER", "FORGET", name]

-- Starts a node by itself, with these files in its folder, and lists it as a member, so that it
-- will be disposed of.
startNode :: Cluster -> [(FilePath, String)] -> IO Node
startNode cluster files = mask_ $ do
  proxy <-
    if clusterProxies options
      then Just <$> Proxy.startProxy (TcpAddress host 0)
      else pure Nothing
  flip onException (mapM_ Proxy.disposeProxy proxy) $ do
    server <-
      Server.startServer
        template
          { optionsCluster = True,
            optionsPort = Nothing,
            optionsFiles = files <> optionsFiles template,
            optionsConfig = configured proxy <> optionsConfig template
          }
    flip onException (Server.disposeServer server) $ do
      mapM_ (`Proxy.retarget` clientPort server) proxy
      found <- replyText <$> Server.command server ["CLUSTER", "MYID"]
      node <- case found of
        Just name -> pure Node {nodeServer = server, nodeId = name, nodeProxy = proxy}
        Nothing -> failure "CLUSTER MYID names no node"
      modifyMVar_ (clusterMembers cluster) (pure . (<> [node]))
      pure node
  where
    options = clusterOptions cluster
    template = clusterServer options
    hasTls = isJust (optionsTls template)
    host = case optionsHosts template of
      first : _ -> first
      [] -> "127.0.0.1"
    configured proxy =
      [ "cluster-announce-ip " <> host,
        -- A primary that misses others waits as long before it serves again, so it is short until
        -- all nodes are up.
        "cluster-node-timeout 1000",
        -- Clients are told of a replica only when its primary has sent it something, which would
        -- take up to ten seconds.
        "repl-ping-replica-period 1",
        -- A replica then always stands for election, and stays with its primary.
        "cluster-replica-validity-factor 0",
        "cluster-allow-replica-migration no"
      ]
        <> concat [["tls-cluster yes", "tls-replication yes"] | hasTls]
        <> [ (if hasTls then "cluster-announce-tls-port " else "cluster-announce-port ")
               <> show (Proxy.proxyPort through)
             | Just through <- [proxy]
           ]

-- Introduces every pair of nodes, not only each to the first: gossip would take seconds.
meetAll :: [Node] -> IO ()
meetAll nodes = do
  forConcurrently_ (zip [0 ..] nodes) $ \(index, node) ->
    forM_ (drop (index + 1) nodes) (meet node)
  forM_ nodes $ \node ->
    eventually 20 "every node knows every other" $ do
      views <- filter (not . isStandIn) <$> viewOf node
      pure (length views == length nodes && all knows views)
  where
    knows view = viewIsAlive view && viewConnectedOrSelf view
    viewConnectedOrSelf view = viewConnected view || "myself" `elem` viewFlags view

meet :: Node -> Node -> IO ()
meet node other = case Server.serverBusPort server of
  Just bus ->
    tell
      node
      [ "CLUSTER",
        "MEET",
        Char8.pack (Server.serverHost server),
        number (migrationPort server),
        number bus
      ]
  Nothing -> failure "a node without a cluster bus"
  where
    server = nodeServer other

-- The port that nodes use to send data to each other.
migrationPort :: Server -> Int
migrationPort server =
  fromMaybe (Server.serverPort server) (Server.serverTlsPort server)

follow :: Cluster -> Node -> Node -> IO ()
follow cluster replica primary = do
  eventually (clusterTimeout (clusterOptions cluster)) "the replica knows its primary" $ do
    views <- viewOf replica
    pure (any (\view -> viewId view == nodeId primary && viewIsPrimary view) views)
  tell replica ["CLUSTER", "REPLICATE", nodeId primary]

tell :: HasCallStack => Node -> [ByteString] -> IO ()
tell node = void . Server.command (nodeServer node)

number :: Int -> ByteString
number = Char8.pack . show

-- | The nodes, running or not, in the order in which they joined; at the start, primaries come before
-- replicas.
clusterNodes :: Cluster -> IO [Node]
clusterNodes = readMVar . clusterMembers

-- | The addresses of the nodes, as clients are told.
clusterAddresses :: Cluster -> IO [Address]
clusterAddresses = fmap (map nodeAddress) . clusterNodes

runningNodes :: Cluster -> IO [Node]
runningNodes cluster =
  clusterNodes cluster >>= filterM (Server.serverIsRunning . nodeServer)

-- | The node's view of the cluster.
viewOf :: HasCallStack => Node -> IO [NodeView]
viewOf node =
  maybe [] parseNodes . replyText
    <$> Server.command (nodeServer node) ["CLUSTER", "NODES"]

-- The view of the first running node.
anyView :: HasCallStack => Cluster -> IO [NodeView]
anyView cluster =
  runningNodes cluster >>= \case
    node : _ -> viewOf node
    [] -> failure "no node runs"

-- | The primaries that are alive, with the slots they own.
clusterPrimaries :: HasCallStack => Cluster -> IO [(Node, [SlotRange])]
clusterPrimaries cluster = do
  nodes <- clusterNodes cluster
  views <- anyView cluster
  pure
    [ (node, viewSlots view)
      | view <- views,
        viewIsPrimary view,
        viewIsAlive view,
        Just node <- [find ((== viewId view) . nodeId) nodes]
    ]

-- | The slot of a key, as the server computes it.
slotOf :: HasCallStack => Cluster -> ByteString -> IO Slot
slotOf cluster key =
  runningNodes cluster >>= \case
    node : _ ->
      Server.command (nodeServer node) ["CLUSTER", "KEYSLOT", key] >>= \case
        Number slot -> pure (fromInteger slot)
        reply -> failure ("CLUSTER KEYSLOT: " <> show reply)
    [] -> failure "no node runs"

-- | The primary that owns the slot.
slotPrimary :: HasCallStack => Cluster -> Slot -> IO Node
slotPrimary cluster slot = do
  primaries <- clusterPrimaries cluster
  case find (any covers . snd) primaries of
    Just (node, _) -> pure node
    Nothing -> failure ("nobody owns slot " <> show slot)
  where
    covers (from, to) = from <= slot && slot <= to

-- | The live replicas of a primary.
replicasOf :: HasCallStack => Cluster -> Node -> IO [Node]
replicasOf cluster primary = do
  nodes <- clusterNodes cluster
  views <- anyView cluster
  pure $
    flip mapMaybe views $ \view ->
      if viewPrimary view == Just (nodeId primary) && viewIsAlive view
        then find ((== viewId view) . nodeId) nodes
        else Nothing

-- | Kills the primary of the slot (SIGKILL) and returns it, without waiting for the consequences.
-- Redis 7.0 never replaces a primary that took over, by a planned fail-over, from a replica that had
-- itself won an election less than two node timeouts before: that replica counts its old votes
-- again.
killPrimary :: HasCallStack => Cluster -> Slot -> IO Node
killPrimary cluster slot = do
  node <- slotPrimary cluster slot
  node <$ Server.kill9 (nodeServer node)

-- | Blocks until all running nodes agree that another node than the given one owns the slot, and
-- returns that primary.
awaitNewPrimary :: HasCallStack => Cluster -> Slot -> Node -> IO Node
awaitNewPrimary cluster slot old =
  explained cluster . eventuallyJust limit ("slot " <> show slot <> " has a new primary") $ do
    nodes <- runningNodes cluster
    agreed <- tryAgreement nodes
    case agreed of
      Nothing -> pure Nothing
      Just views ->
        pure $ do
          view <- find (\view -> viewOwns slot view && viewIsAlive view) views
          if viewId view == nodeId old
            then Nothing
            else find ((== viewId view) . nodeId) nodes
  where
    limit = clusterTimeout (clusterOptions cluster)

-- | A planned fail-over: the replica becomes the primary, with its primary's
-- consent. Blocks until all running nodes agree.
failover :: HasCallStack => Cluster -> Node -> IO ()
failover cluster replica = do
  eventually limit "the replica is in step with its primary" $
    linkIsUp replica
  tell replica ["CLUSTER", "FAILOVER"]
  eventually limit "the replica is a primary" $
    any (\view -> viewIsPrimary view && "myself" `elem` viewFlags view)
      <$> viewOf replica
  awaitAgreement cluster
  where
    limit = clusterTimeout (clusterOptions cluster)

-- | Hooks between the steps of a slot's move, in this order.
data Migration = Migration
  { -- | The number of keys that move at a time.
    migrationBatch :: Int,
    -- | Runs when the slot is marked as importing and migrating and no key has moved. Requests for
    -- missing keys are answered with ASK.
    migrationMarked :: IO (),
    -- | Runs when this many keys have moved. Requests for several keys, of which some have moved,
    -- are answered with TRYAGAIN.
    migrationMoved :: Int -> IO (),
    -- | Runs when all keys have moved and the old primary still owns the slot.
    migrationEmptied :: IO (),
    -- | Runs when the new primary owns the slot and no other node has been told.
    migrationOwned :: IO ()
  }

-- | Ten keys at a time and nothing in between.
quietMigration :: Migration
quietMigration =
  Migration
    { migrationBatch = 10,
      migrationMarked = pure (),
      migrationMoved = \_ -> pure (),
      migrationEmptied = pure (),
      migrationOwned = pure ()
    }

-- | Moves a slot with its keys to another primary, as @redis-cli --cluster reshard@ does, while
-- clients may continue. Blocks until all running nodes agree on the new owner. Does nothing if the
-- target owns the slot already.
migrateSlot :: HasCallStack => Cluster -> Migration -> Slot -> Node -> IO ()
migrateSlot cluster migration slot target = do
  source <- slotPrimary cluster slot
  unless (source == target) $ do
    tell target ["CLUSTER", "SETSLOT", number slot, "IMPORTING", nodeId source]
    tell source ["CLUSTER", "SETSLOT", number slot, "MIGRATING", nodeId target]
    migrationMarked migration
    moveKeys source 0
    migrationEmptied migration
    give target
    migrationOwned migration
    give source
    others <- filter (`notElem` [source, target]) . map fst <$> clusterPrimaries cluster
    mapM_ give others
    awaitAgreement cluster
  where
    give node = tell node ["CLUSTER", "SETSLOT", number slot, "NODE", nodeId target]
    moveKeys source moved = do
      found <-
        Server.command
          (nodeServer source)
          ["CLUSTER", "GETKEYSINSLOT", number slot, number (max 1 (migrationBatch migration))]
      case found of
        List keys@(_ : _) -> do
          tell source (migrate (mapMaybe replyText keys))
          let total = moved + length keys
          migrationMoved migration total
          moveKeys source total
        List [] -> pure ()
        reply -> failure ("CLUSTER GETKEYSINSLOT: " <> show reply)
    migrate keys =
      [ "MIGRATE",
        Char8.pack (Server.serverHost (nodeServer target)),
        number (migrationPort (nodeServer target)),
        "",
        "0",
        "5000"
      ]
        <> concat
          [ ["AUTH", password]
            | Just password <- [optionsPassword (clusterServer (clusterOptions cluster))]
          ]
        <> ["KEYS"]
        <> keys

-- | Adds a primary without slots; give it some with 'migrateSlot'.
addPrimary :: HasCallStack => Cluster -> IO Node
addPrimary cluster = do
  before <- runningNodes cluster
  highest <- maximum . (0 :) . map viewEpoch <$> anyView cluster
  node <- startPrimary cluster (highest + 1) []
  mapM_ (meet node) before
  forgetStandIns node
  awaitAgreement cluster
  settle cluster node
  pure node

-- | Adds a replica of a primary.
addReplica :: HasCallStack => Cluster -> Node -> IO Node
addReplica cluster primary = do
  before <- runningNodes cluster
  node <- startNode cluster []
  mapM_ (meet node) before
  follow cluster node primary
  awaitAgreement cluster
  settle cluster node
  pure node

settle :: Cluster -> Node -> IO ()
settle cluster node =
  tell node ["CONFIG", "SET", "cluster-node-timeout", number timeouts]
  where
    timeouts = clusterNodeTimeout (clusterOptions cluster)

-- | Ends a node and makes all others forget it. A primary must have given away its slots before.
removeNode :: HasCallStack => Cluster -> Node -> IO ()
removeNode cluster node = do
  owned <- fromMaybe [] . lookup node <$> clusterPrimaries cluster
  unless (null owned) $ failure ("the node still owns slots: " <> show owned)
  disposeNode node
  modifyMVar_ (clusterMembers cluster) (pure . filter (/= node))
  others <- runningNodes cluster
  forConcurrently_ others $ \other -> tell other ["CLUSTER", "FORGET", nodeId node]
  awaitAgreement cluster

-- | Blocks until every running node reports that the cluster is ok, all of them agree about the
-- nodes that have not failed, none is missing, and every replica is in step with its primary.
awaitAgreement :: HasCallStack => Cluster -> IO ()
awaitAgreement cluster =
  explained cluster . eventually limit "the nodes agree that the cluster is complete" $ do
    nodes <- runningNodes cluster
    agreed <- tryAgreement nodes
    case agreed of
      Nothing -> pure False
      Just views -> do
        let replicas = filter (isReplica views) nodes
        and <$> traverse linkIsUp replicas
  where
    limit = clusterTimeout (clusterOptions cluster)
    isReplica views node =
      any (\view -> viewId view == nodeId node && isJust (viewPrimary view)) views

-- Adds the running nodes' views and latest log lines to a failure: once the cluster is disposed of,
-- it is too late to ask why the nodes did not agree.
explained :: Cluster -> IO a -> IO a
explained cluster action =
  try action >>= \case
    Right result -> pure result
    Left (TestKitFailure text) -> do
      stories <- runningNodes cluster >>= traverse story
      throwIO (TestKitFailure (unlines (text : stories)))
  where
    story node = do
      view <- told (fromMaybe "no text" . replyText <$> Server.command (nodeServer node) ["CLUSTER", "NODES"])
      logged <- told (Server.serverLog (nodeServer node))
      pure . Char8.unpack . Char8.unlines $ [Char8.pack (show node), view] <> lastOf 12 (Char8.lines logged)
    -- An error while explaining a failure must not hide the failure.
    told ask =
      ask
        `catches` [ Handler (\(TestKitFailure problem) -> pure (Char8.pack problem)),
                    Handler (\(problem :: IOException) -> pure (Char8.pack (show problem)))
                  ]
    lastOf count list = drop (length list - count) list

-- The common view of these nodes, if they have one and it contains all of them.
tryAgreement :: [Node] -> IO (Maybe [NodeView])
tryAgreement nodes = do
  states <- traverse stateOf nodes
  pure $ case sequence states of
    Just ((first, views) : rest)
      | all ((== first) . fst) rest,
        all (\node -> any ((== nodeId node) . viewId) (alive views)) nodes ->
        Just views
    _ -> Nothing
  where
    alive = filter viewIsAlive

-- The node's view; 'Nothing' if it does not answer or is in doubt.
stateOf :: Node -> IO (Maybe (Agreement, [NodeView]))
stateOf node = do
  answers <- try . try $ do
    info <- Server.command (nodeServer node) ["CLUSTER", "INFO"]
    views <- viewOf node
    pure (maybe Map.empty infoFields (replyText info), views)
  pure $ case answers of
    Right (Right (info, views))
      | Map.lookup "cluster_state" info == Just "ok" ->
        flip (,) views <$> agreement views
      | otherwise -> Nothing
    Right (Left (_ :: TestKitFailure)) -> Nothing
    Left (_ :: IOException) -> Nothing

linkIsUp :: Node -> IO Bool
linkIsUp node = do
  info <- replyText <$> Server.command (nodeServer node) ["INFO", "replication"]
  pure ((info >>= Map.lookup "master_link_status" . infoFields) == Just "up")
