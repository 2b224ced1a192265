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
    presentNodes,
    removeNodes,
    demoteNode,
    closeNodes,
    nodePoolFor,
    nodeTally,
    nodesTally,
    Tallies (..),

    -- * Looking
    NodeSnapshot (..),
    nodeSnapshot,
    ErrorCounts (..),
    errorCounts,
  )
where

import Control.Concurrent (getNumCapabilities)
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
import Redis.Internal.Network.Clock (coarseNanos)
import Redis.Internal.Network.Dedicated
import Redis.Internal.Network.Handshake (ConnectionRole (..))
import Redis.Internal.Network.MultiplexPool
import Redis.Internal.Network.Multiplexer (MuxGauges)
import Redis.Internal.Network.OpenConnection
import Redis.Internal.Network.RoundTrips (RoundTrips)
import Redis.Internal.Network.Tally
import Redis.Internal.Network.Worker (spawn)

-- | Where what concerns no node is counted.
nodesTally :: Nodes -> Tally
nodesTally = setupTally . nodesSetup

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
    nodeDedicated :: DedicatedPool,
    -- | What is counted of its connections, by their kind; the counts are the node's.
    nodeTallies :: Tallies
  }

-- | Of the shared connections as to a primary, as to a replica, and for control; and of
-- the lent ones.
data Tallies = Tallies
  { tallyShared :: Tally,
    tallyReplica :: Tally,
    tallyControl :: Tally,
    tallyLent :: Tally
  }

-- | Where what concerns the node as a whole is counted.
nodeTally :: Node -> Tally
nodeTally = tallyShared . nodeTallies

-- | All nodes of one client.
data Nodes = Nodes
  { nodesSetup :: ConnectionSetup,
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
newNodes nodesSetup nodesOnTrouble = do
  nodesMap <- newIORef Map.empty
  nodesLeaving <- newIORef Map.empty
  nodesOpen <- newMVar True
  pure Nodes {nodesSetup, nodesOnTrouble, nodesMap, nodesLeaving, nodesOpen}

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
newNode Nodes {nodesSetup, nodesOnTrouble} nodeEndpoint = do
  lanes <- min 16 <$> getNumCapabilities
  tallyShared <- newTally lanes
  tallyReplica <- besideTally lanes tallyShared
  tallyControl <- besideTally 1 tallyShared
  tallyLent <- besideTally 1 tallyShared
  nodePool <- newMultiplexPool (counting tallyShared) ForPrimary (nodesOnTrouble nodeEndpoint) nodeEndpoint
  nodeReplicaPool <- newMultiplexPool (counting tallyReplica) ForReplica (nodesOnTrouble nodeEndpoint) nodeEndpoint
  nodeControlPool <- newMultiplexPool (alone tallyControl) ForControl (nodesOnTrouble nodeEndpoint) nodeEndpoint
  nodeDedicated <- newDedicatedPool (counting tallyLent) nodeEndpoint
  pure Node {nodeEndpoint, nodePool, nodeReplicaPool, nodeControlPool, nodeDedicated, nodeTallies = Tallies {tallyShared, tallyReplica, tallyControl, tallyLent}}
  where
    counting tally = nodesSetup {setupTally = tally}
    alone tally = (counting tally) {setupConfig = (setupConfig nodesSetup) {configMuxCount = Just 1}}

nodesHooks :: Nodes -> Hooks
nodesHooks = configHooks . setupConfig . nodesSetup

-- | The node at an endpoint, if it is known. \(O(\log n)\).
knownNode :: Nodes -> Endpoint -> IO (Maybe Node)
knownNode nodes endpoint = Map.lookup endpoint <$> readIORef (nodesMap nodes)

-- | Every node, in the order of endpoints.
knownNodes :: Nodes -> IO [Node]
knownNodes nodes = Map.elems <$> readIORef (nodesMap nodes)

-- | Every node that has connections, those that were removed too.
presentNodes :: Nodes -> IO [Node]
presentNodes nodes = (<>) <$> knownNodes nodes <*> (Map.elems <$> readIORef (nodesLeaving nodes))

-- | Removes these nodes: they get no new commands, those in flight are
-- answered, or so many seconds pass, then the connections are closed. Does not wait.
removeNodes :: Double -> Nodes -> Set Endpoint -> IO ()
removeNodes grace nodes unwanted = mask_ $ do
  gone <- modifyMVar (nodesOpen nodes) $ \open -> do
    (gone, kept) <- Map.partitionWithKey (\endpoint _ -> endpoint `Set.member` unwanted) <$> readIORef (nodesMap nodes)
    writeIORef (nodesMap nodes) kept
    numbered <- atomicModifyIORef' (nodesLeaving nodes) $ \leaving ->
      let numbered = Map.fromList (zip [maybe 0 ((+ 1) . fst) (Map.lookupMax leaving) ..] (Map.elems gone))
       in (Map.union numbered leaving, numbered)
    pure (open, numbered)
  for_ (Map.toList gone) $ \(number, node) ->
    spawn ("redis remove " <> renderEndpoint (nodeEndpoint node)) $
      closeNode grace node `finally` atomicModifyIORef' (nodesLeaving nodes) (\leaving -> (Map.delete number leaving, ()))
  for_ gone $ observeConnection (nodesHooks nodes) . NodeRemoved . nodeEndpoint

-- | Drops the connections on which a node was spoken to as a primary; commands in
-- flight have so many seconds. What opens one later opens a new one.
demoteNode :: Double -> Node -> IO ()
demoteNode grace node = do
  now <- coarseNanos
  reconnectWithin grace (nodePool node) now
  -- It waits until descriptors are free, and this must not.
  void . spawn ("redis close " <> renderEndpoint (nodeEndpoint node)) $ closeIdle (nodeDedicated node)

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

-- | A node: what its connections do at the moment, and what has been counted since the
-- client first knew it. Counts only grow; a node that left the cluster and comes back
-- begins anew.
--
-- @since 0.1.0.0
data NodeSnapshot = NodeSnapshot
  { -- | Where its connections lead.
    gaugeEndpoint :: Endpoint,
    -- | The open connections that all callers share.
    gaugeConnections :: [MuxGauges],
    -- | The same, those for reads from a replica.
    gaugeReplicaConnections :: [MuxGauges],
    -- | The one for commands that must not wait behind others, if it is open.
    gaugeControlConnections :: [MuxGauges],
    -- | The connections that one caller has for itself.
    gaugeDedicated :: DedicatedGauges,
    -- | How long the node took for what it answered on shared connections.
    roundTrips :: RoundTrips,
    -- | The same, for reads from a replica.
    roundTripsReplica :: RoundTrips,
    roundTripsControl :: RoundTrips,
    -- | On lent connections: what a blocking command waited on the server is in it.
    roundTripsDedicated :: RoundTrips,
    -- | Connections that were opened, and are ready.
    countOpened :: Int,
    -- | Of those, that ended without this client wanting it.
    countLost :: Int,
    -- | Attempts to open one that failed.
    countConnectsFailed :: Int,
    -- | MOVED that the node answered.
    countMoved :: Int,
    -- | ASK that the node answered.
    countAsk :: Int,
    -- | Commands that were sent to it after another attempt had failed, here or elsewhere.
    countResent :: Int,
    -- | Errors that callers got of commands that were tried here last. Errors of the
    -- program (a command that is refused unsent, a reply of another shape than expected)
    -- are not among them; a command that is split counts for each part.
    countErrors :: ErrorCounts,
    -- | Commands that were in flight when their connection ended: those that had not
    -- been sent,
    countCutUnsent :: Int,
    -- | and those that had. Some of both were sent again ('countResent').
    countCutSent :: Int
  }
  deriving stock (Eq, Show)

-- | Errors, by what their callers may conclude.
--
-- @since 0.1.0.0
data ErrorCounts = ErrorCounts
  { errorsNotSent :: Int,
    errorsRefused :: Int,
    errorsMaybeExecuted :: Int
  }
  deriving stock (Eq, Show)

-- | Takes each shared connection's lock for a moment.
nodeSnapshot :: Node -> IO NodeSnapshot
nodeSnapshot node@Node {nodeEndpoint, nodePool, nodeReplicaPool, nodeControlPool, nodeDedicated, nodeTallies} = do
  gaugeConnections <- poolGauges nodePool
  gaugeReplicaConnections <- poolGauges nodeReplicaPool
  gaugeControlConnections <- poolGauges nodeControlPool
  gaugeDedicated <- dedicatedGauges nodeDedicated
  roundTrips <- timesSeen (tallyShared nodeTallies)
  roundTripsReplica <- timesSeen (tallyReplica nodeTallies)
  roundTripsControl <- timesSeen (tallyControl nodeTallies)
  roundTripsDedicated <- timesSeen (tallyLent nodeTallies)
  countOpened <- counted ConnectionsOpened
  countLost <- counted ConnectionsLost
  countConnectsFailed <- counted ConnectsFailed
  countMoved <- counted RedirectsMoved
  countAsk <- counted RedirectsAsk
  countResent <- counted CommandsResent
  countErrors <- errorCounts (nodeTally node)
  countCutUnsent <- counted CutUnsent
  countCutSent <- counted CutSent
  pure
    NodeSnapshot
      { gaugeEndpoint = nodeEndpoint,
        gaugeConnections,
        gaugeReplicaConnections,
        gaugeControlConnections,
        gaugeDedicated,
        roundTrips,
        roundTripsReplica,
        roundTripsControl,
        roundTripsDedicated,
        countOpened,
        countLost,
        countConnectsFailed,
        countMoved,
        countAsk,
        countResent,
        countErrors,
        countCutUnsent,
        countCutSent
      }
  where
    counted = countOf (nodeTally node)

-- | The errors that were counted there.
errorCounts :: Tally -> IO ErrorCounts
errorCounts tally = do
  errorsNotSent <- countOf tally ErrorsNotSent
  errorsRefused <- countOf tally ErrorsRefused
  errorsMaybeExecuted <- countOf tally ErrorsMaybe
  pure ErrorCounts {errorsNotSent, errorsRefused, errorsMaybeExecuted}
