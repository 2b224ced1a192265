-- | The nodes a client talks to, each with connections of its own, so that a dead or slow
-- node does not delay the commands for other nodes.
--
-- A node exists from when a slot map or a redirect first names it until a new slot map does not have
-- it. A client of a standalone server keeps every server that it was ever redirected to. Looking a node
-- up is one read of an immutable map.
--
-- A node's health is judged by how its last commands ended. Several timeouts in a row mean a node that
-- hangs while its connection stays up: they ask for a refresh as a lost connection does. A node counts as
-- down after several failures in a row: reads then prefer other nodes. Each attempt counts, so one connection
-- that is lost with several commands in flight is several failures. No command is refused because of
-- it: the next answer makes the node healthy.
module Redis.Internal.Routing.Nodes
  ( Node (..),
    Nodes,
    newNodes,
    nodeAt,
    knownNode,
    knownNodes,
    presentNodes,
    removeNodes,
    dropConnections,
    dropIdle,
    closeNodes,
    Destination (..),
    destinationAs,
    nodesCounters,
    Health,
    healthy,
    isHealthy,
    isDown,
    Observation (..),
    Sign (..),
    observe,
    suspectAfterTimeouts,
    downAfterFailures,
    NodeSnapshot (..),
    nodeSnapshot,
    ErrorCounts (..),
    errorCounts,
  )
where

import Control.Concurrent (getNumCapabilities)
import Control.Concurrent.MVar
import Control.Exception (finally, mask_)
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
import Redis.Internal.Network.Counters
import Redis.Internal.Network.Dedicated
import Redis.Internal.Network.Handshake (ConnectionRole (..))
import Redis.Internal.Network.MultiplexPool
import Redis.Internal.Network.Multiplexer (MuxGauges)
import Redis.Internal.Network.Open
import Redis.Internal.Network.Runtime (Nanos, spawn, spawnWait)

-- | The counters for everything that concerns no particular node.
nodesCounters :: Nodes -> Counters
nodesCounters = setupCounters . nodesSetup

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
    -- | The counters for everything that concerns the node as a whole, and of the shared connections to it
    -- as a primary.
    nodeCounters :: Counters,
    nodeReplicaCounters :: Counters,
    nodeControlCounters :: Counters,
    nodeLentCounters :: Counters
  }

data Nodes = Nodes
  { nodesSetup :: ConnectionSetup,
    nodesOnTrouble :: Endpoint -> ConnectionCause -> IO (),
    nodesMap :: IORef (Map Endpoint Node),
    -- | Nodes that were removed and are not closed completely yet; numbered.
    nodesLeaving :: IORef (Map Int Node),
    -- | Held while a node is added or removed, never while anything is waited for. Holds
    -- 'False' once the client is closed.
    nodesOpen :: MVar Bool
  }

-- | A set without nodes. The action is told of failed attempts to connect and of lost
-- connections, on the thread of the connection.
newNodes :: ConnectionSetup -> (Endpoint -> ConnectionCause -> IO ()) -> IO Nodes
newNodes setup onTrouble = Nodes setup onTrouble <$> newIORef Map.empty <*> newIORef Map.empty <*> newMVar True

-- | The node at an endpoint, made if it is not known. Opens no connection.
-- \(O(\log n)\). 'Left' once the client is closed.
nodeAt :: Nodes -> Endpoint -> IO (Either Error Node)
nodeAt nodes endpoint =
  knownNode nodes endpoint >>= \case
    Just node -> pure (Right node)
    Nothing -> modifyMVar (nodesOpen nodes) $ \open -> do
      again <- knownNode nodes endpoint
      (,) open <$> case again of
        Just node -> pure (Right node)
        Nothing | open -> do
          node <- newNode nodes endpoint
          modifyIORef' (nodesMap nodes) (Map.insert endpoint node)
          Right node <$ observeConnection (nodesHooks nodes) (NodeAdded endpoint)
        _ -> pure (Left ClientClosed)

newNode :: Nodes -> Endpoint -> IO Node
newNode Nodes {nodesSetup, nodesOnTrouble} nodeEndpoint = do
  lanes <- min 16 <$> getNumCapabilities
  nodeCounters <- newCounters lanes
  nodeReplicaCounters <- siblingCounters lanes nodeCounters
  nodeControlCounters <- siblingCounters 1 nodeCounters
  nodeLentCounters <- siblingCounters 1 nodeCounters
  nodePool <- newMultiplexPool (counting nodeCounters) ForPrimary (nodesOnTrouble nodeEndpoint) nodeEndpoint
  nodeReplicaPool <- newMultiplexPool (counting nodeReplicaCounters) ForReplica (nodesOnTrouble nodeEndpoint) nodeEndpoint
  nodeControlPool <- newMultiplexPool (alone nodeControlCounters) ForControl (nodesOnTrouble nodeEndpoint) nodeEndpoint
  nodeDedicated <- newDedicatedPool (counting nodeLentCounters) nodeEndpoint
  pure Node {nodeEndpoint, nodePool, nodeReplicaPool, nodeControlPool, nodeDedicated, nodeCounters, nodeReplicaCounters, nodeControlCounters, nodeLentCounters}
  where
    counting counters = nodesSetup {setupCounters = counters}
    alone counters = (counting counters) {setupConfig = (setupConfig nodesSetup) {configMuxCount = Just 1}}

nodesHooks :: Nodes -> Hooks
nodesHooks = configHooks . setupConfig . nodesSetup

-- | The node at an endpoint, if it is known. \(O(\log n)\).
knownNode :: Nodes -> Endpoint -> IO (Maybe Node)
knownNode nodes endpoint = Map.lookup endpoint <$> readIORef (nodesMap nodes)

-- | Every node, in the order of endpoints.
knownNodes :: Nodes -> IO [Node]
knownNodes nodes = Map.elems <$> readIORef (nodesMap nodes)

-- | Every node that has connections, including removed nodes.
presentNodes :: Nodes -> IO [Node]
presentNodes nodes = (<>) <$> knownNodes nodes <*> (Map.elems <$> readIORef (nodesLeaving nodes))

-- | Removes these nodes: they get no new commands. Their connections are closed when the
-- commands in flight are answered, or after so many seconds. Does not wait.
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

-- | Drops the shared connections to a node, as 'reconnectWithin' does, and the idle ones that are lent.
dropConnections :: Double -> Nanos -> Node -> IO ()
dropConnections grace began node = do
  for_ sharedPools $ \pool -> reconnectWithin grace (pool node) began
  dropIdle node

-- | Drops the idle connections to a node that are lent.
dropIdle :: Node -> IO ()
dropIdle node =
  -- On another thread: it waits until descriptors are free, and this function must not.
  void . spawn ("redis close " <> renderEndpoint (nodeEndpoint node)) $ closeIdle (nodeDedicated node)

-- | All shared connections of a node.
sharedPools :: [Node -> MultiplexPool]
sharedPools = [nodePool, nodeReplicaPool, nodeControlPool]

-- | Closes all nodes, including removed ones, waiting up to so many seconds for commands in
-- flight.
closeNodes :: Double -> Nodes -> IO ()
closeNodes grace nodes = mask_ $ do
  -- Masked, because a caller that is interrupted here would leave nodes that nobody finds again.
  present <- modifyMVar (nodesOpen nodes) $ \_ -> do
    present <- Map.elems <$> readIORef (nodesMap nodes)
    writeIORef (nodesMap nodes) Map.empty
    pure (False, present)
  leaving <- Map.elems <$> readIORef (nodesLeaving nodes)
  atOnce (map (closeNode grace) (present <> leaving))

closeNode :: Double -> Node -> IO ()
closeNode grace node =
  atOnce $
    closeDedicatedPool grace (nodeDedicated node) :
      [closeMultiplexPool grace (pool node) | pool <- sharedPools]

-- | Runs all actions at the same time, because one after another each would take its own
-- grace. An exception of one does not affect the others.
atOnce :: [IO ()] -> IO ()
atOnce actions = mask_ (mapM (spawnWait "redis close") actions) >>= sequence_

-- | A node, and which of its connections to use.
data Destination = Destination
  { destinationNode :: Node,
    destinationRole :: ConnectionRole,
    -- | The node's shared connections for the role.
    destinationPool :: MultiplexPool
  }

-- | A node's connections for a role.
destinationAs :: ConnectionRole -> Node -> Destination
destinationAs destinationRole destinationNode =
  Destination
    { destinationNode,
      destinationRole,
      destinationPool = case destinationRole of
        ForPrimary -> nodePool destinationNode
        ForReplica -> nodeReplicaPool destinationNode
        ForControl -> nodeControlPool destinationNode
    }

-- | The state of a node's connections now, and counts since the client first knew the node.
-- Counts only grow; a node that left the cluster and comes back begins anew.
data NodeSnapshot = NodeSnapshot
  { -- | The address of the node.
    gaugeEndpoint :: Endpoint,
    -- | The open connections that all callers share.
    gaugeConnections :: [MuxGauges],
    -- | The open shared connections for reads from the node as a replica.
    gaugeReplicaConnections :: [MuxGauges],
    -- | The connection for commands that must not wait behind others, if it is open.
    gaugeControlConnections :: [MuxGauges],
    -- | The dedicated connections, of one caller at a time.
    gaugeDedicated :: DedicatedGauges,
    -- | How long the node took to answer on shared connections.
    roundTrips :: RoundTrips,
    -- | How long the node took to answer reads as a replica.
    roundTripsReplica :: RoundTrips,
    roundTripsControl :: RoundTrips,
    -- | On dedicated connections. The time that a blocking command waited on the server is included.
    roundTripsDedicated :: RoundTrips,
    -- | Connections that were opened and became ready.
    countOpened :: Int,
    -- | Connections that were ready and ended without this client closing them.
    countLost :: Int,
    -- | Attempts to open a connection that failed.
    countConnectsFailed :: Int,
    -- | MOVED replies of the node.
    countMoved :: Int,
    -- | ASK replies of the node.
    countAsk :: Int,
    -- | Commands that were sent to the node after another attempt had failed, here or elsewhere.
    countResent :: Int,
    -- | Errors that callers got for commands whose last attempt was at this node. Errors of
    -- the program (a command that is refused unsent, a reply of another shape than expected)
    -- do not count; each part of a split command counts.
    countErrors :: ErrorCounts,
    -- | Commands that had not been sent when their connection ended. Some were sent again
    -- ('countResent').
    countCutUnsent :: Int,
    -- | Commands that had been sent and not answered when their connection ended. Some were
    -- sent again ('countResent').
    countCutSent :: Int
  }
  deriving stock (Eq, Show)

-- | Counts of errors, by what their callers may conclude about the command.
data ErrorCounts = ErrorCounts
  { errorsNotSent :: Int,
    errorsRefused :: Int,
    errorsMaybeExecuted :: Int
  }
  deriving stock (Eq, Show)

-- | The gauges and counts of a node now. Takes each shared connection's lock for a moment.
nodeSnapshot :: Node -> IO NodeSnapshot
nodeSnapshot node =
  NodeSnapshot (nodeEndpoint node)
    <$> poolGauges (nodePool node)
    <*> poolGauges (nodeReplicaPool node)
    <*> poolGauges (nodeControlPool node)
    <*> dedicatedGauges (nodeDedicated node)
    <*> timesSeen (nodeCounters node)
    <*> timesSeen (nodeReplicaCounters node)
    <*> timesSeen (nodeControlCounters node)
    <*> timesSeen (nodeLentCounters node)
    <*> counted ConnectionsOpened
    <*> counted ConnectionsLost
    <*> counted ConnectsFailed
    <*> counted RedirectsMoved
    <*> counted RedirectsAsk
    <*> counted CommandsResent
    <*> errorCounts (nodeCounters node)
    <*> counted CutUnsent
    <*> counted CutSent
  where
    counted = countOf (nodeCounters node)

errorCounts :: Counters -> IO ErrorCounts
errorCounts counters = ErrorCounts <$> countOf counters ErrorsNotSent <*> countOf counters ErrorsRefused <*> countOf counters ErrorsMaybe

data Health = Health
  { -- | Failures in a row, of any kind.
    healthFailures :: Int,
    -- | Timeouts in a row.
    healthTimeouts :: Int
  }
  deriving stock (Eq, Show)

healthy :: Health
healthy = Health {healthFailures = 0, healthTimeouts = 0}

-- | Whether an answer would change nothing. This is checked where replies arrive, once for
-- those to commands that were sent together, and an answer is recorded only if not.
isHealthy :: Health -> Bool
isHealthy Health {healthFailures} = healthFailures == 0

-- | Whether to prefer another node where there is a choice.
isDown :: Health -> Bool
isDown Health {healthFailures} = healthFailures >= downAfterFailures

-- | How a command, or an attempt to connect, ended.
data Observation
  = -- | Any reply in time, also an error, whether or not a caller waits for it: the node lives.
    AnsweredCommand
  | -- | No reply in time.
    MissedReply
  | -- | It could not be connected to, or the connection was lost.
    LostConnection
  deriving stock (Eq, Show, Enum, Bounded)

-- | Whether an observation is a reason to ask the cluster.
data Sign
  = Unremarkable
  | -- | Worth asking the cluster whether another node took its place.
    Suspicious
  deriving stock (Eq, Show)

-- | The health after an observation, and whether to ask the cluster. A node that keeps
-- failing is suspicious each time a connection is lost, and at every
-- 'suspectAfterTimeouts' timeouts in a row. \(O(1)\).
observe :: Observation -> Health -> (Health, Sign)
observe observation health@Health {healthFailures, healthTimeouts} = case observation of
  AnsweredCommand -> (healthy, Unremarkable)
  MissedReply ->
    ( Health {healthFailures = healthFailures + 1, healthTimeouts = healthTimeouts + 1},
      if (healthTimeouts + 1) `rem` suspectAfterTimeouts == 0 then Suspicious else Unremarkable
    )
  LostConnection -> (health {healthFailures = healthFailures + 1}, Suspicious)

-- | After how many timeouts in a row a node is suspicious: 3.
suspectAfterTimeouts :: Int
suspectAfterTimeouts = 3

-- | After how many failures in a row a node counts as down: 3.
downAfterFailures :: Int
downAfterFailures = 3
