-- | The nodes a client talks to, each with connections of its own, so that a
-- dead or slow one delays nobody else's commands.
--
-- A node exists from when it is first named — by a slot map, a redirect or a
-- seed — until a slot map no longer has it. Looking one up is one read of an
-- immutable map.
module Redis.Internal.Routing.Nodes
  ( Node (..),
    Nodes,
    newNodes,
    nodeAt,
    knownNode,
    knownNodes,
    removeNodes,
    closeNodes,
    nodePoolFor,

    -- * Looking
    NodeGauges (..),
    nodeGauges,
  )
where

import Control.Concurrent.MVar
import Control.Exception (SomeException, finally, mask_, try)
import Control.Monad (void)
import Data.Foldable (for_)
import Data.IORef
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Dedicated
import Redis.Internal.Network.Handshake (ConnectionRole (..))
import Redis.Internal.Network.Issues
import Redis.Internal.Network.MultiplexPool
import Redis.Internal.Network.Multiplexer (MuxGauges)
import Redis.Internal.Network.OpenConnection
import Redis.Internal.Network.Worker (spawn)

-- | One server.
data Node = Node
  { nodeEndpoint :: Endpoint,
    nodePool :: MultiplexPool,
    -- | Connections that have said READONLY: a replica answers reads on these
    -- and redirects them on all others.
    nodeReplicaPool :: MultiplexPool,
    -- | One connection, opened when it is first needed, for what must not wait
    -- behind the commands of others.
    nodeControlPool :: MultiplexPool,
    nodeDedicated :: DedicatedPool
  }

-- | All nodes of one client.
data Nodes = Nodes
  { -- | Notes what credentials are issued.
    nodesSetup :: ConnectionSetup,
    nodesIssues :: Issues,
    nodesOnTrouble :: Endpoint -> ConnectionCause -> IO (),
    nodesMap :: IORef (Map Endpoint Node),
    -- | Removed, but not all closed yet; numbered.
    nodesLeaving :: IORef (Map Int Node),
    -- | Held while a node is added or removed, never while anything is waited
    -- for. Full of 'False' once the client is closed.
    nodesOpen :: MVar Bool
  }

-- | No nodes yet. The action is told of failed attempts to connect and of lost
-- connections, on the thread of the connection.
newNodes :: ConnectionSetup -> (Endpoint -> ConnectionCause -> IO ()) -> IO Nodes
newNodes setup nodesOnTrouble = do
  nodesIssues <- newIssues
  let nodesSetup = setup {setupConfig = noting (noteIssue nodesIssues) (setupConfig setup)}
  nodesMap <- newIORef Map.empty
  nodesLeaving <- newIORef Map.empty
  nodesOpen <- newMVar True
  pure Nodes {nodesSetup, nodesIssues, nodesOnTrouble, nodesMap, nodesLeaving, nodesOpen}

-- | The node at an endpoint, made if it is not known. Opens no connection.
-- \(O(\log n)\). 'Left' once the client is closed.
nodeAt :: Nodes -> Endpoint -> IO (Either Error Node)
nodeAt nodes endpoint =
  known >>= \case
    Just node -> pure (Right node)
    Nothing -> modifyMVar (nodesOpen nodes) $ \open ->
      known >>= \case
        Just node -> pure (open, Right node)
        Nothing
          | open -> do
            node <- newNode nodes endpoint
            modifyIORef' (nodesMap nodes) (Map.insert endpoint node)
            observeConnection (nodesHooks nodes) (NodeAdded endpoint)
            pure (open, Right node)
          | otherwise -> pure (open, Left ClientClosed)
  where
    known = Map.lookup endpoint <$> readIORef (nodesMap nodes)

newNode :: Nodes -> Endpoint -> IO Node
newNode Nodes {nodesSetup, nodesIssues, nodesOnTrouble} nodeEndpoint = do
  nodePool <- newMultiplexPool nodesSetup ForPrimary (nodesOnTrouble nodeEndpoint) nodeEndpoint
  nodeReplicaPool <- newMultiplexPool nodesSetup ForReplica (nodesOnTrouble nodeEndpoint) nodeEndpoint
  nodeControlPool <- newMultiplexPool alone ForControl (nodesOnTrouble nodeEndpoint) nodeEndpoint
  nodeDedicated <- newDedicatedPool nodesIssues nodesSetup nodeEndpoint
  pure Node {nodeEndpoint, nodePool, nodeReplicaPool, nodeControlPool, nodeDedicated}
  where
    alone = nodesSetup {setupConfig = (setupConfig nodesSetup) {configMuxCount = Just 1}}

nodesHooks :: Nodes -> Hooks
nodesHooks = configHooks . setupConfig . nodesSetup

-- | The node at an endpoint, if it is known. \(O(\log n)\).
knownNode :: Nodes -> Endpoint -> IO (Maybe Node)
knownNode nodes endpoint = Map.lookup endpoint <$> readIORef (nodesMap nodes)

-- | Every node, in the order of endpoints.
knownNodes :: Nodes -> IO [Node]
knownNodes nodes = Map.elems <$> readIORef (nodesMap nodes)

-- | Removes these nodes: they get no new commands, those in flight are
-- answered, then the connections are closed. Does not wait.
removeNodes :: Nodes -> Set Endpoint -> IO ()
removeNodes nodes unwanted = mask_ $ do
  gone <- modifyMVar (nodesOpen nodes) $ \open -> do
    (gone, kept) <- Map.partitionWithKey (\endpoint _ -> endpoint `Set.member` unwanted) <$> readIORef (nodesMap nodes)
    writeIORef (nodesMap nodes) kept
    numbered <- atomicModifyIORef' (nodesLeaving nodes) $ \leaving ->
      let numbered = Map.fromList (zip [maybe 0 ((+ 1) . fst) (Map.lookupMax leaving) ..] (Map.elems gone))
       in (Map.union numbered leaving, numbered)
    pure (open, numbered)
  for_ (Map.toList gone) $ \(number, node) ->
    spawn ("redis remove " <> renderEndpoint (nodeEndpoint node)) $
      closeNode removalGrace node `finally` atomicModifyIORef' (nodesLeaving nodes) (\leaving -> (Map.delete number leaving, ()))
  for_ gone $ observeConnection (nodesHooks nodes) . NodeRemoved . nodeEndpoint

-- | Seconds that commands in flight to a removed node are waited for.
removalGrace :: Double
removalGrace = 5

-- | Closes everything, nodes that were removed too, waiting up to so many seconds for
-- commands in flight.
closeNodes :: Double -> Nodes -> IO ()
closeNodes grace nodes = do
  present <- modifyMVar (nodesOpen nodes) $ \_ -> do
    present <- Map.elems <$> readIORef (nodesMap nodes)
    writeIORef (nodesMap nodes) Map.empty
    pure (False, present)
  leaving <- Map.elems <$> readIORef (nodesLeaving nodes)
  atOnce (map (closeNode grace) (present <> leaving))

closeNode :: Double -> Node -> IO ()
closeNode grace node =
  atOnce
    [ closeDedicatedPool grace (nodeDedicated node),
      closeMultiplexPool grace (nodePool node),
      closeMultiplexPool grace (nodeReplicaPool node),
      closeMultiplexPool grace (nodeControlPool node)
    ]

-- | Runs all of them together, or each would take its own grace; what happens
-- to one does not concern the others.
atOnce :: [IO ()] -> IO ()
atOnce actions = do
  waits <- mask_ (mapM inBackground actions)
  mapM_ takeMVar waits
  where
    inBackground action = do
      done <- newEmptyMVar
      void . spawn "redis close" $ do
        void (try action :: IO (Either SomeException ()))
        putMVar done ()
      pure done

-- | The connections for a role.
nodePoolFor :: ConnectionRole -> Node -> MultiplexPool
nodePoolFor = \case
  ForPrimary -> nodePool
  ForReplica -> nodeReplicaPool
  ForControl -> nodeControlPool

-- | A look at a node's connections and what is queued on them.
--
-- @since 0.1.0.0
data NodeGauges = NodeGauges
  { -- | Where its connections lead.
    gaugeEndpoint :: Endpoint,
    -- | The open connections that all callers share.
    gaugeConnections :: [MuxGauges],
    -- | The same, those for reads from a replica.
    gaugeReplicaConnections :: [MuxGauges],
    -- | The one for commands that must not wait behind others, if it is open.
    gaugeControlConnections :: [MuxGauges],
    -- | The connections that one caller has for itself.
    gaugeDedicated :: DedicatedGauges
  }
  deriving stock (Eq, Show)

-- | Takes each shared connection's lock for a moment.
nodeGauges :: Node -> IO NodeGauges
nodeGauges Node {nodeEndpoint, nodePool, nodeReplicaPool, nodeControlPool, nodeDedicated} = do
  gaugeConnections <- poolGauges nodePool
  gaugeReplicaConnections <- poolGauges nodeReplicaPool
  gaugeControlConnections <- poolGauges nodeControlPool
  gaugeDedicated <- dedicatedGauges nodeDedicated
  pure NodeGauges {gaugeEndpoint = nodeEndpoint, gaugeConnections, gaugeReplicaConnections, gaugeControlConnections, gaugeDedicated}
