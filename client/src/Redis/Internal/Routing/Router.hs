-- | Which node a command goes to.
--
-- The look-up that every command makes ('placeOf') reads snapshots and never
-- waits. Only when it finds nobody does 'placeEventually' wait, for news of the
-- cluster, and not for longer than it is told.
module Redis.Internal.Routing.Router
  ( Router (..),
    newRouter,
    closeRouter,
    routerNodes,

    -- * Places
    Place (..),
    placeTakenFor,
    placeOf,
    placeEventually,
    placeAt,

    -- * Learning
    carryOut,
    noteAnswer,
    noteFailure,
    isClustered,
  )
where

import Data.ByteString (ByteString)
import Data.Foldable (for_)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.Command
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Network.Clock (Nanos)
import Redis.Internal.Network.Dedicated (closeIdle)
import Redis.Internal.Network.Handshake (ConnectionRole (..))
import Redis.Internal.Network.MultiplexPool (reconnectNode)
import Redis.Internal.Network.OpenConnection (ConnectionSetup (..))
import Redis.Internal.Protocol.Slot (Slot, keySlot, slotNumber)
import Redis.Internal.Routing.Cluster
import Redis.Internal.Routing.Health (Observation (..))
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.Retry (Effect (..), Role (..))
import Redis.Internal.Routing.Topology (Trigger (SawUncovered))
import System.Random (randomRIO)
import System.Timeout (timeout)

-- | How the servers of a client are found.
data Router
  = StandaloneRouter Nodes Place
  | ClusterRouter ReadFrom ClusterClient

-- | A node, and which of its connections.
data Place = Place
  { placeNode :: Node,
    placeRole :: ConnectionRole
  }

-- | What a node is taken for at this place.
placeTakenFor :: Place -> Role
placeTakenFor place = case placeRole place of
  ForPrimary -> Primary
  ForReplica -> Replica

-- | Opens no connection to a standalone server, and asks a cluster's seeds in
-- the background.
newRouter :: ConnectionSetup -> IO (Either Error Router)
newRouter setup = case configTopology (setupConfig setup) of
  Standalone endpoint -> do
    nodes <- newNodes setup (\_ _ -> pure ())
    fmap (\node -> StandaloneRouter nodes Place {placeNode = node, placeRole = ForPrimary}) <$> nodeAt nodes endpoint
  Cluster seeds -> Right . ClusterRouter (configReadFrom (setupConfig setup)) <$> newClusterClient setup seeds

-- | Waits up to so many seconds for commands in flight, then closes.
closeRouter :: Double -> Router -> IO ()
closeRouter grace = \case
  StandaloneRouter nodes _ -> closeNodes grace nodes
  ClusterRouter _ cluster -> closeClusterClient grace cluster

-- | Every node that was ever routed to and has not been removed.
routerNodes :: Router -> Nodes
routerNodes = \case
  StandaloneRouter nodes _ -> nodes
  ClusterRouter _ cluster -> clusterNodes cluster

-- | Whether keys decide where commands go.
isClustered :: Router -> Bool
isClustered = \case
  StandaloneRouter _ _ -> False
  ClusterRouter _ _ -> True

-- | Where a command with these facts and keys goes as things stand. \(O(1)\)
-- besides hashing the key; never blocks. The route must not be 'AskServer'.
placeOf :: Router -> Facts -> Route a -> IO (Maybe Place)
placeOf router facts route = case router of
  StandaloneRouter _ place -> pure (Just place)
  ClusterRouter readFrom cluster -> case routeKey route of
    Nothing -> fmap onPrimary <$> anyPrimary cluster
    Just key
      | ReadPrimary <- readFrom -> fmap onPrimary <$> ownerOf cluster (keySlot key)
      | factReadOnly facts, NonBlocking <- factBlocking facts -> reader cluster (keySlot key)
      | otherwise -> fmap onPrimary <$> ownerOf cluster (keySlot key)
{-# INLINE placeOf #-}

-- | The key that decides. All keys of a route that gets here share its slot.
routeKey :: Route a -> Maybe ByteString
routeKey = \case
  OneKey key -> Just key
  SameSlot (key :| _) -> Just key
  Splittable SplitPlan {splitKeys = key :| _} -> Just key
  AnyNode -> Nothing
  AskServer _ -> Nothing

onPrimary :: Node -> Place
onPrimary node = Place {placeNode = node, placeRole = ForPrimary}

reader :: ClusterClient -> Slot -> IO (Maybe Place)
reader cluster slot =
  readersOf cluster slot >>= \case
    [] -> fmap onPrimary <$> ownerOf cluster slot
    readers -> do
      index <- randomRIO (0, length readers - 1)
      pure $ case drop index readers of
        node : _ -> Just Place {placeNode = node, placeRole = ForReplica}
        [] -> Nothing

-- | The same, waiting for news of the cluster for at most so many seconds if
-- nobody is known. With the flag, not to a replica.
placeEventually :: Router -> Maybe Double -> Bool -> Facts -> Route a -> IO (Either Error Place)
placeEventually router remaining onlyPrimary facts route = case router of
  StandaloneRouter _ place -> pure (Right place)
  ClusterRouter _ cluster -> do
    news <- awaitNews cluster
    look >>= \case
      Just place -> pure (Right place)
      Nothing -> do
        for_ slot (tellCluster cluster . SawUncovered)
        reasons <- within remaining news
        look >>= \case
          Just place -> pure (Right place)
          Nothing -> pure . Left . RoutingError NotSent $ case (reasons, slot) of
            (Just because@(_ : _), _) -> NoReachableNode because
            (_, Just uncovered) -> UncoveredSlot (slotNumber uncovered)
            (_, Nothing) -> NoReachableNode []
  where
    slot = keySlot <$> routeKey route
    look = placeOf router (if onlyPrimary then facts {factReadOnly = False} else facts) route
    within = \case
      Nothing -> fmap Just
      Just seconds -> timeout (ceiling (max 0 (min 1e6 seconds) * 1e6))

-- | The place at an endpoint that a server named.
placeAt :: Router -> Endpoint -> IO (Either Error Place)
placeAt router endpoint = fmap onPrimary <$> nodeAt (routerNodes router) endpoint

-- | Does what a retry decision asks for besides the retry, for a command that
-- was begun at this time.
carryOut :: Router -> Nanos -> Effect -> IO ()
carryOut router began = \case
  Tell trigger -> case router of
    ClusterRouter _ cluster -> tellCluster cluster trigger
    StandaloneRouter _ _ -> pure ()
  Reconnect endpoint ->
    -- Without making the node if it is gone.
    knownNodes (routerNodes router) >>= \nodes ->
      for_ [node | node <- nodes, nodeEndpoint node == endpoint] $ \node -> do
        reconnectNode (nodePool node) began
        reconnectNode (nodeReplicaPool node) began
        closeIdle (nodeDedicated node)

-- | A node answered. One read for a node that is well.
noteAnswer :: Router -> Place -> IO ()
noteAnswer router place = case router of
  StandaloneRouter _ _ -> pure ()
  ClusterRouter _ cluster -> observeNode cluster (nodeEndpoint (placeNode place)) AnsweredCommand
{-# INLINE noteAnswer #-}

-- | A node did not answer, or could not be reached.
noteFailure :: Router -> Place -> Error -> IO ()
noteFailure router place failure = case router of
  StandaloneRouter _ _ -> pure ()
  ClusterRouter _ cluster -> for_ observation (observeNode cluster (nodeEndpoint (placeNode place)))
  where
    observation = case failure of
      TimeoutError MaybeExecuted _ -> Just MissedReply
      ConnectionError _ _ ClosedLocally -> Nothing
      ConnectionError {} -> Just LostConnection
      _ -> Nothing
