-- | Decides which node a command goes to.
--
-- The look-up that every command makes ('destinationOf') reads snapshots and never waits. Only if
-- it finds no node does 'destinationEventually' wait for news of the cluster, up to a given time.
module Redis.Internal.Routing.Router
  ( Router (..),
    newRouter,
    closeRouter,
    routerNodes,

    -- * Places
    Destination (..),
    destinationTakenFor,
    destinationOf,
    Target (..),
    targetOf,
    slotOf,
    destinationFor,
    destinationEventually,
    destinationAt,
    nobodyFor,
    missedNode,
    nobodyIsPermanent,

    -- * Several nodes
    nodesEventually,
    coverEventually,
    routerMembers,
    ClientNode (..),
    NodeRole (..),
    hasNode,

    -- * News
    routerNews,
    routerStopped,

    -- * Learning
    carryOut,
    noteFailure,
    countRedirect,
    countFailure,
    isClustered,
    routerSlotMap,
    isFollowed,
  )
where

import Control.Concurrent.STM
import Control.Exception (mask_)
import Control.Monad (when)
import Data.ByteString (ByteString)
import Data.Foldable (for_, traverse_)
import Data.IORef
import Data.List qualified as List
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust)
import Data.Set qualified as Set
import Redis.Error
import Redis.Internal.Command
import Redis.Internal.Config
import Redis.Internal.Network.Counters (Count (..), countError, countOne)
import Redis.Internal.Network.Dedicated (closeIdle)
import Redis.Internal.Network.Handshake (ConnectionRole (..))
import Redis.Internal.Network.MultiplexPool (reconnectNode)
import Redis.Internal.Network.Open (ConnectionSetup (..))
import Redis.Internal.Network.Runtime (Nanos, expiryAt, spawn)
import Redis.Internal.Protocol.Redirect (Redirect (Ask, Moved), parseRedirect)
import Redis.Internal.Protocol.Slot (Slot, keySlot, slotNumber)
import Redis.Internal.Routing.Cluster
import Redis.Internal.Routing.Health (Observation (..))
import Redis.Internal.Routing.Moving (isMoving, noteMoving)
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.Readers
import Redis.Internal.Routing.RetryPolicy (Effect (..), Role (..))
import Redis.Internal.Routing.SlotMap
import Redis.Internal.Routing.Topology (Trigger (LearntRedirect, LostNode, SawNobody, SawUncovered))
import System.Random (randomRIO)

-- | How a client finds its servers.
data Router
  = StandaloneRouter Alone
  | -- | By a slot map: of a cluster, or of a group, which is one shard that serves every slot.
    ClusterRouter ReadFrom ClusterClient

-- | A standalone server.
data Alone = Alone
  { aloneNodes :: Nodes,
    -- | The configured server.
    aloneSeed :: Destination,
    -- | The server in use: the configured one, or the one that it redirected this client to.
    aloneDestination :: IORef Destination,
    -- | How often the server in use was replaced.
    aloneNews :: TVar Int
  }

-- | A node, and which of its connections to use.
data Destination = Destination
  { destinationNode :: Node,
    destinationRole :: ConnectionRole
  }

-- | The role that a node is taken for at this destination.
destinationTakenFor :: Destination -> Role
destinationTakenFor destination = case destinationRole destination of
  ForPrimary -> Primary
  ForReplica -> Replica
  ForControl -> Primary

-- | Makes a router. Opens no connection to a standalone server; asks a cluster's seeds in the
-- background.
newRouter :: ConnectionSetup -> IO (Either Error Router)
newRouter setup = case configTopology (setupConfig setup) of
  Standalone endpoint -> newAlone setup endpoint
  topology -> fmap (ClusterRouter (configReadFrom (setupConfig setup))) <$> newClusterClient setup (topologySeeds topology)

-- | A router for a standalone server. After a redirect, the client returns to the configured
-- server as soon as a connection to the other one fails.
newAlone :: ConnectionSetup -> Endpoint -> IO (Either Error Router)
newAlone setup endpoint = do
  lost <- newIORef (\_ -> pure ())
  aloneNodes <- newNodes setup (\failed _ -> readIORef lost >>= ($ failed))
  nodeAt aloneNodes endpoint >>= \case
    Left failure -> pure (Left failure)
    Right node -> do
      let aloneSeed = onPrimary node
      aloneDestination <- newIORef aloneSeed
      aloneNews <- newTVarIO 0
      let alone = Alone {aloneNodes, aloneSeed, aloneDestination, aloneNews}
      writeIORef lost (lostServer alone)
      pure (Right (StandaloneRouter alone))

-- | Goes back to the configured server, if the server at this endpoint is in use.
lostServer :: Alone -> Endpoint -> IO ()
lostServer alone failed = replaceServer alone failed (aloneSeed alone)

-- | Puts another server in use, if the server at this endpoint is in use.
replaceServer :: Alone -> Endpoint -> Destination -> IO ()
replaceServer alone replaced other = mask_ $ do
  isNews <- atomicModifyIORef' (aloneDestination alone) $ \destination ->
    if endpointOf destination == replaced && endpointOf other /= replaced then (other, True) else (destination, False)
  -- After the destination, so that a thread that sees the news finds the new server.
  when isNews (atomically (modifyTVar' (aloneNews alone) (+ 1)))
  where
    endpointOf = nodeEndpoint . destinationNode

-- | Waits up to so many seconds for commands in flight, then closes all connections.
closeRouter :: Double -> Router -> IO ()
closeRouter grace = \case
  StandaloneRouter alone -> closeNodes grace (aloneNodes alone)
  ClusterRouter _ cluster -> closeClusterClient grace cluster

-- | Every node that a command was ever routed to and that has not been removed.
routerNodes :: Router -> Nodes
routerNodes = \case
  StandaloneRouter alone -> aloneNodes alone
  ClusterRouter _ cluster -> clusterNodes cluster

-- | Whether keys decide where commands go.
isClustered :: Router -> Bool
isClustered = \case
  StandaloneRouter _ -> False
  ClusterRouter _ cluster -> not (clusterIsGroup cluster)

-- | Whether the client follows a slot map (of a cluster or a group) and can ask for a new one.
isFollowed :: Router -> Bool
isFollowed = \case
  StandaloneRouter _ -> False
  ClusterRouter _ _ -> True

-- | The slot map; empty for a standalone server. Never blocks.
routerSlotMap :: Router -> IO SlotMap
routerSlotMap = \case
  StandaloneRouter _ -> pure emptySlotMap
  ClusterRouter _ cluster -> currentSlotMap cluster

-- | The thing that decides where a command goes.
data Target
  = -- | Any primary.
    TargetAnyNode
  | -- | The primary of the slot while it is up, otherwise another one.
    TargetAnyFor Slot
  | -- | A node that serves the slot.
    TargetSlot Slot
  | -- | The primary of the slot, even if replicas are preferred.
    TargetPrimary Slot
  | -- | The node at this endpoint.
    AtNode Endpoint
  deriving stock (Eq, Show)

-- | The target of a route that one node answers. All its keys share a slot.
targetOf :: Route a -> Target
targetOf = \case
  OneKey key -> TargetSlot (keySlot key)
  SameSlot (key :| _) -> TargetSlot (keySlot key)
  Splittable _ (key :| _) -> TargetSlot (keySlot key)
  OneSlot slot -> TargetPrimary slot
  OneNode endpoint -> AtNode endpoint
  AnyNode -> TargetAnyNode
  AnyNodeFor slot -> TargetAnyFor slot
  NodesOwn -> TargetAnyNode
  Unsendable _ -> TargetAnyNode
  Everywhere _ _ -> TargetAnyNode
  PerNode _ _ -> TargetAnyNode
  AskServer _ _ -> TargetAnyNode
{-# INLINE targetOf #-}

-- | The slot that decides where a command goes, if a slot does.
slotOf :: Target -> Maybe Slot
slotOf = \case
  TargetSlot slot -> Just slot
  TargetPrimary slot -> Just slot
  TargetAnyNode -> Nothing
  TargetAnyFor _ -> Nothing
  AtNode _ -> Nothing

-- | The destination for a command with these facts and this route, by the current map. \(O(1)\)
-- besides hashing the key; never blocks.
destinationOf :: Router -> Facts -> Route a -> IO (Maybe Destination)
destinationOf router facts route = case router of
  StandaloneRouter alone
    | OneNode endpoint <- route -> destinationFor router facts (AtNode endpoint)
    | otherwise -> Just . onControl facts <$> readIORef (aloneDestination alone)
  ClusterRouter {} -> destinationFor router facts (targetOf route)
{-# INLINE destinationOf #-}

-- | Like 'destinationOf', for a target.
destinationFor :: Router -> Facts -> Target -> IO (Maybe Destination)
destinationFor router facts target = case router of
  StandaloneRouter alone -> case target of
    AtNode endpoint -> fmap (onControl facts . onPrimary) <$> knownNode (aloneNodes alone) endpoint
    _ -> Just . onControl facts <$> readIORef (aloneDestination alone)
  ClusterRouter usual cluster ->
    fmap (onControl facts) <$> case target of
      TargetAnyNode -> fmap onPrimary <$> anyPrimary cluster
      TargetAnyFor slot -> fmap onPrimary <$> anyPrimaryFor cluster slot
      TargetSlot slot
        | Just elsewhere <- leavingFor facts usual -> reader cluster elsewhere slot
        | otherwise -> fmap onPrimary <$> ownerOf cluster slot
      TargetPrimary slot -> fmap onPrimary <$> ownerOf cluster slot
      AtNode endpoint -> knownNode (clusterNodes cluster) endpoint >>= traverse (named cluster)
  where
    -- A replica answers reads on a connection that has asked for it.
    named cluster node = do
      replicas <- slotMapReplicas <$> currentSlotMap cluster
      pure
        Destination
          { destinationNode = node,
            destinationRole = if mayLeavePrimary facts && nodeEndpoint node `Set.member` replicas then ForReplica else ForPrimary
          }

-- | The preference for a replica, if the command may leave the primary, given the client's
-- setting. For most clients and commands this is two comparisons and 'Nothing'.
leavingFor :: Facts -> ReadFrom -> Maybe ReadFrom
leavingFor facts usual = case factReadFrom facts of
  Nothing -> case usual of
    ReadPrimary -> Nothing
    _ | mayLeavePrimary facts -> Just usual
    _ -> Nothing
  Just ReadPrimary -> Nothing
  Just said
    | mayLeavePrimary facts -> Just said
    | otherwise -> Nothing
{-# INLINE leavingFor #-}

mayLeavePrimary :: Facts -> Bool
mayLeavePrimary facts = factReadOnly facts && factBlocking facts == NonBlocking

-- | The destination with the node's connection that the command needs.
onControl :: Facts -> Destination -> Destination
onControl facts destination = case factScope facts of
  ControlConnection -> destination {destinationRole = ForControl}
  _ -> destination
{-# INLINE onControl #-}

onPrimary :: Node -> Destination
onPrimary node = Destination {destinationNode = node, destinationRole = ForPrimary}

reader :: ClusterClient -> ReadFrom -> Slot -> IO (Maybe Destination)
reader cluster elsewhere slot = do
  wantReads cluster elsewhere
  moving <- isMoving (clusterMoving cluster) slot
  if moving then fmap onPrimary <$> ownerOf cluster slot else drawn cluster elsewhere slot
{-# NOINLINE reader #-}

-- | A node that may answer a read of a slot that does not move.
drawn :: ClusterClient -> ReadFrom -> Slot -> IO (Maybe Destination)
drawn cluster elsewhere slot = do
  candidates <- candidatesOf cluster slot
  number <- randomRIO (0, maxBound)
  pure $ case chooseReader elsewhere number candidates of
    Just Candidate {candidateNode, candidateIsPrimary} ->
      Just Destination {destinationNode = candidateNode, destinationRole = if candidateIsPrimary then ForPrimary else ForReplica}
    Nothing -> Nothing

-- | The error that no node was found, with the reasons of the last refresh.
nobodyFor :: Router -> Target -> IO Error
nobodyFor router target = case router of
  StandaloneRouter _ -> pure $ case target of
    -- Its nodes are removed only when the client is closed.
    AtNode _ -> ClientClosed
    _ -> unrouted (NoReachableNode [])
  ClusterRouter _ cluster -> do
    reasons <- newsReasons cluster
    pure . unrouted $ case (reasons, slotOf target) of
      ([], Just slot) | not (clusterIsGroup cluster) -> UncoveredSlot (slotNumber slot)
      _ -> NoReachableNode reasons
  where
    unrouted = RoutingError . RoutingFailure "" NotSent

-- | Asks for news of the cluster, because no node was found.
missedNode :: Router -> Target -> IO ()
missedNode router target = case (router, slotOf target) of
  (ClusterRouter _ cluster, Just slot) -> tellCluster cluster (SawUncovered slot)
  (ClusterRouter _ cluster, _) -> tellCluster cluster SawNobody
  (StandaloneRouter _, _) -> pure ()

-- | Whether asking for news now would only bring the answer of 'nobodyFor' again.
nobodyIsPermanent :: Router -> IO Bool
nobodyIsPermanent = \case
  StandaloneRouter _ -> pure False
  ClusterRouter _ cluster -> newsIsPermanent cluster

-- | A number that changes with each map that is published and each refresh that ends; for a
-- standalone server, with each server that replaces the one in use. It stays the same once the
-- client is closed.
routerNews :: Router -> STM Int
routerNews = \case
  StandaloneRouter alone -> readTVar (aloneNews alone)
  ClusterRouter _ cluster -> newsCount cluster

-- | Whether there will be no more news.
routerStopped :: Router -> STM Bool
routerStopped = \case
  StandaloneRouter _ -> pure False
  ClusterRouter _ cluster -> clusterStopped cluster

-- | Looks for something. If that finds nothing, asks for news, waits for one piece of news,
-- at most until the deadline, and looks once more. Does not wait if the last refresh failed in a
-- way that will last, nor with a standalone server, for which no news would help.
eventually :: Router -> Nanos -> Target -> IO (Maybe a) -> IO (Maybe a)
eventually router deadline target look = do
  before <- atomically (routerNews router)
  look >>= \case
    Just found -> pure (Just found)
    Nothing -> do
      permanent <- nobodyIsPermanent router
      when (isFollowed router && not permanent) $ do
        missedNode router target
        news before
      look
  where
    -- Waits with a flag, so that nothing is thrown to the caller when its time is over.
    news before = do
      over <- expiryAt deadline
      atomically $
        over `orElse` do
          stopped <- routerStopped router
          current <- routerNews router
          check (stopped || current /= before)

-- | The destination for a command. If no node is known, waits for news of the cluster, at most until
-- the deadline.
destinationEventually :: Router -> Nanos -> Facts -> Target -> IO (Either Error Destination)
destinationEventually router deadline facts target =
  eventually router deadline target (destinationFor router facts target) >>= \case
    Just destination -> pure (Right destination)
    Nothing -> Left <$> nobodyFor router target

-- | The nodes of a node set, each with the route to it. Waits like 'destinationEventually' if no
-- map is known. A standalone server is every node set by itself.
nodesEventually :: Router -> Nanos -> NodeSet -> IO (Either Error [(Endpoint, Route a)])
nodesEventually router deadline nodeSet = case router of
  StandaloneRouter alone -> (\destination -> Right [(nodeEndpoint (destinationNode destination), AnyNode)]) <$> readIORef (aloneDestination alone)
  ClusterRouter _ cluster ->
    eventually router deadline TargetAnyNode (known cluster) >>= \case
      Nothing -> Left <$> nobodyFor router TargetAnyNode
      Just slotMap -> pure $ case nodeSet of
        Primaries -> Right [(shardPrimary shard, OneSlot slot) | (slot, shard) <- slotMapServing slotMap]
        Replicas -> Right (byEndpoint (slotMapReplicas slotMap))
        AllNodes -> Right (byEndpoint (slotMapNodes slotMap))
  where
    known cluster = do
      slotMap <- currentSlotMap cluster
      pure (if null (slotMapShards slotMap) then Nothing else Just slotMap)
    byEndpoint nodes = [(endpoint, OneNode endpoint) | endpoint <- Set.toAscList nodes]

-- | A node in the client's slot map.
data ClientNode = ClientNode
  { clientNodeEndpoint :: Endpoint,
    clientNodeRole :: NodeRole,
    -- | The availability zone. Known if the server sends it with the map, as Valkey 9 does,
    -- or once a read preferred a zone.
    clientNodeZone :: Maybe ByteString
  }
  deriving stock (Eq, Ord, Show)

-- | The role of a node in its shard.
data NodeRole
  = -- | The node owns slots, or is a standalone server.
    PrimaryNode
  | -- | The node follows the primary at this endpoint.
    ReplicaNode Endpoint
  deriving stock (Eq, Ord, Show)

-- | The known nodes, in the order of their endpoints. Never blocks.
routerMembers :: Router -> IO [ClientNode]
routerMembers = \case
  StandaloneRouter alone -> (\destination -> [ClientNode {clientNodeEndpoint = nodeEndpoint (destinationNode destination), clientNodeRole = PrimaryNode, clientNodeZone = Nothing}]) <$> readIORef (aloneDestination alone)
  ClusterRouter _ cluster -> do
    zones <- clusterZones cluster
    let member role endpoint = ClientNode {clientNodeEndpoint = endpoint, clientNodeRole = role, clientNodeZone = Map.lookup endpoint zones}
        members shard = member PrimaryNode (shardPrimary shard) : map (member (ReplicaNode (shardPrimary shard))) (shardReplicas shard)
    List.sort . concatMap members . slotMapShards <$> currentSlotMap cluster

-- | Makes sure that a primary is known for every slot, or returns the slot that has none.
-- Waits like 'destinationEventually'.
coverEventually :: Router -> Nanos -> IO (Either Error ())
coverEventually router deadline = case router of
  StandaloneRouter _ -> pure (Right ())
  ClusterRouter _ cluster -> do
    let missing = slotMapUncovered <$> currentSlotMap cluster
        covered = maybe (Just ()) (const Nothing) <$> missing
    missing >>= \case
      Nothing -> pure (Right ())
      Just slot ->
        eventually router deadline (TargetSlot slot) covered >>= \case
          Just () -> pure (Right ())
          -- Another slot may be the first without a primary by now.
          Nothing -> missing >>= maybe (pure (Right ())) (fmap Left . nobodyFor router . TargetSlot)

-- | Whether there is a node at this endpoint. Waits like 'destinationEventually' if no map is known.
hasNode :: Router -> Nanos -> Endpoint -> IO (Either Error Bool)
hasNode router deadline endpoint =
  nodesEventually router deadline AllNodes >>= \case
    Left failure -> pure (Left failure)
    Right members
      | endpoint `elem` map fst members -> pure (Right True)
      -- A redirect may have named the node since.
      | otherwise -> Right . isJust <$> knownNode (routerNodes router) endpoint

-- | The destination at an endpoint that a server named. The node counts as a primary.
destinationAt :: Router -> Facts -> Endpoint -> IO (Either Error Destination)
destinationAt router facts endpoint = fmap (onControl facts . onPrimary) <$> nodeAt (routerNodes router) endpoint

-- | Carries out an effect of a retry decision, for a command that began at this time.
carryOut :: Router -> Nanos -> Effect -> IO ()
carryOut router began = \case
  Tell trigger -> case router of
    ClusterRouter _ cluster -> tellCluster cluster trigger
    StandaloneRouter alone -> case trigger of
      LearntRedirect from target -> nodeAt (aloneNodes alone) target >>= traverse_ (replaceServer alone from . onPrimary)
      LostNode endpoint -> lostServer alone endpoint
      _ -> pure ()
  Reconnect endpoint ->
    -- Does not make the node again if it is gone.
    knownNode (routerNodes router) endpoint >>= \known ->
      for_ known $ \node -> do
        reconnectNode (nodePool node) began
        reconnectNode (nodeReplicaPool node) began
        reconnectNode (nodeControlPool node) began
        -- On another thread: it waits until descriptors are free, and this one must not.
        spawn ("redis close " <> renderEndpoint endpoint) (closeIdle (nodeDedicated node))

-- | Records that a node did not answer, or could not be reached.
noteFailure :: Router -> Destination -> Error -> IO ()
noteFailure router destination failure = for_ observation $ \seen -> case router of
  -- A lent connection does not report by itself that it was lost.
  StandaloneRouter alone -> when (seen == LostConnection) (lostServer alone endpoint)
  ClusterRouter _ cluster -> observeNode cluster endpoint seen
  where
    endpoint = nodeEndpoint (destinationNode destination)
    observation = case failure of
      TimeoutError (TimeoutFailure _ MaybeExecuted _ _) -> Just MissedReply
      ConnectionError (ConnectionFailure _ _ _ ClosedLocally) -> Nothing
      ConnectionError {} -> Just LostConnection
      _ -> Nothing

-- | Counts a MOVED or an ASK of a cluster, keeps reads of its slot with the primary for a while, and
-- returns whether the error is one.
countRedirect :: Router -> Destination -> Error -> IO Bool
countRedirect router destination failure = case (router, failure) of
  (ClusterRouter _ cluster, ReplyError refused) | isClustered router -> case parseRedirect refused of
    Just (Moved slot _) -> True <$ (counted RedirectsMoved *> noteMoving (clusterMoving cluster) slot)
    Just (Ask slot _) -> True <$ (counted RedirectsAsk *> noteMoving (clusterMoving cluster) slot)
    _ -> pure False
  _ -> pure False
  where
    counted = countOne (nodeCounters (destinationNode destination))

-- | Counts the error that a caller gets, at the node of the last attempt.
countFailure :: Router -> Maybe Endpoint -> Error -> IO ()
countFailure router tried failure = do
  node <- maybe (pure Nothing) (knownNode nodes) tried
  countError (maybe (nodesCounters nodes) nodeCounters node) (errorDelivery failure)
  where
    nodes = routerNodes router
