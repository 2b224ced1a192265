-- | Decides which node a command goes to.
--
-- The look-up that every command makes ('destinationOf') reads snapshots and never waits. A command for
-- which it finds no node goes to the retry engine. Leases, walks, and commands for several nodes or a
-- named one have no place there until a node is known. They wait for news of the cluster here, up to a
-- given time (the functions whose names end in "Eventually", and 'hasNode').
module Redis.Internal.Routing.Router
  ( destinationTakenFor,
    destinationOf,
    destinationFor,
    destinationIn,
    destinationEventually,
    nobodyFor,
    missedNode,
    nodesEventually,
    coverEventually,
    clusterMembers,
    ClientNode (..),
    NodeRole (..),
    hasNode,
    carryOut,
    noteFailure,
    countRedirect,
    countFailure,
  )
where

import Control.Applicative ((<|>))
import Control.Concurrent.STM
import Control.Monad (mfilter)
import Data.ByteString (ByteString)
import Data.Foldable (find, traverse_)
import Data.IORef
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust, listToMaybe)
import Data.Primitive.Array (indexArray, sizeofArray)
import Data.Set qualified as Set
import Redis.Error
import Redis.Internal.Command
import Redis.Internal.Config
import Redis.Internal.Network.Counters (Count (..), countError, countOne)
import Redis.Internal.Network.Handshake (ConnectionRole (..))
import Redis.Internal.Network.Runtime (Nanos, expiryAt)
import Redis.Internal.Protocol.Redirect (Redirect (Ask, Moved), parseRedirect)
import Redis.Internal.Protocol.Slot (Slot, slotNumber)
import Redis.Internal.Routing.Cluster
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.Replicas
import Redis.Internal.Routing.RetryPolicy (Effect (..), Role (..))
import Redis.Internal.Routing.SlotMap
import Redis.Internal.Routing.Target
import Redis.Internal.Routing.Topology (Trigger (SawNobody, SawUncovered))
import System.Random (randomRIO)

-- | The role that a node is taken for at this destination.
destinationTakenFor :: Destination -> Role
destinationTakenFor destination = if destinationRole destination == ForReplica then Replica else Primary

-- | The destination for a command, by the current map. \(O(1)\)
-- besides hashing the key, which is not hashed where one shard serves every slot; never blocks.
destinationOf :: ClusterClient -> Command a -> IO (Maybe Destination)
destinationOf cluster given = do
  snapshot <- readIORef (clusterSnapshot cluster)
  case snapshotOnly snapshot of
    Just shard | not (namesNode (commandRoute given)), Nothing <- leavingFor facts (clusterReads cluster) -> pure . Just $! onControl facts (shardOwner shard)
    _ -> destinationIn cluster snapshot facts (targetOf given)
  where
    facts = commandFacts given
{-# INLINE destinationOf #-}

-- | Like 'destinationOf', for a target.
destinationFor :: ClusterClient -> Facts -> Target -> IO (Maybe Destination)
destinationFor cluster facts target = do
  snapshot <- readIORef (clusterSnapshot cluster)
  destinationIn cluster snapshot facts target

-- | Like 'destinationFor', by this snapshot of the map.
destinationIn :: ClusterClient -> Snapshot -> Facts -> Target -> IO (Maybe Destination)
destinationIn cluster snapshot facts target = do
  found <- case target of
    TargetNode endpoint -> fmap named <$> knownNode (clusterNodes cluster) endpoint
    ToNode endpoint -> toNode endpoint
    AskingNode endpoint -> toNode endpoint
    TargetSlot slot | Just elsewhere <- leavingFor facts (clusterReads cluster) -> reader cluster elsewhere snapshot slot
    _ | Just shard <- snapshotOnly snapshot -> pure (Just (shardOwner shard))
    TargetAnyNode -> do
      turn <- atomicModifyIORef' (clusterTurn cluster) (\n -> (n + 1, n))
      primaryFrom cluster snapshot turn
    TargetAnyFor slot ->
      let index = slotShardIndex (snapshotMap snapshot) slot
       in primaryFrom cluster snapshot (if index == noShard then slotNumber slot else index)
    TargetSlot slot -> pure (shardOwner <$> shardOf snapshot slot)
    TargetPrimary slot -> pure (shardOwner <$> shardOf snapshot slot)
    TargetOwner endpoint slot ->
      pure (shardOwner <$> (find ((== endpoint) . nodeEndpoint . destinationNode . shardOwner) (snapshotShards snapshot) <|> shardOf snapshot slot))
  -- Made at once: it would keep the command's facts and the snapshot alive.
  pure $! case found of
    Just destination -> Just $! onControl facts destination
    Nothing -> Nothing
  where
    toNode endpoint = either (const Nothing) (Just . destinationAs ForPrimary) <$> nodeAt (clusterNodes cluster) endpoint
    -- A replica answers reads on a connection that has asked for it. It may be named for a step of a walk, too, which no choice moves.
    named node
      | infoHarmless (factInfo facts) && factBlocking facts == NonBlocking && nodeEndpoint node `Set.member` slotMapReplicas (snapshotMap snapshot) = destinationAs ForReplica node
      | otherwise = destinationAs ForPrimary node

-- | The shard that serves a slot. \(O(1)\).
shardOf :: Snapshot -> Slot -> Maybe ShardNodes
shardOf Snapshot {snapshotMap, snapshotShards, snapshotOnly} slot = case snapshotOnly of
  Nothing | index /= noShard -> Just (indexArray snapshotShards index)
  only -> only
  where
    index = slotShardIndex snapshotMap slot

-- | The first primary from this position on that is not down; if all are, the first.
primaryFrom :: ClusterClient -> Snapshot -> Int -> IO (Maybe Destination)
primaryFrom cluster Snapshot {snapshotShards} start = do
  known <- readIORef (clusterHealth cluster)
  let count = sizeofArray snapshotShards
      owners = [shardOwner (indexArray snapshotShards ((start + offset) `mod` count)) | offset <- [0 .. count - 1]]
  pure (listToMaybe (filter (isUp known) owners <> owners))

isUp :: Map Endpoint Health -> Destination -> Bool
isUp known destination = not (maybe False isDown (Map.lookup (nodeEndpoint (destinationNode destination)) known))

-- | The preference for a replica, if the command may leave the primary, given the client's
-- setting, if there is a choice. For most clients and commands this is two comparisons and 'Nothing'.
leavingFor :: Facts -> Maybe ReadFrom -> Maybe ReadFrom
leavingFor facts = \case
  Nothing -> Nothing
  Just usual -> case fromMaybe usual (optionReadFrom (factOptions facts)) of
    ReadPrimary -> Nothing
    elsewhere
      | mayLeavePrimary facts -> Just elsewhere
      | otherwise -> Nothing
{-# INLINE leavingFor #-}

mayLeavePrimary :: Facts -> Bool
mayLeavePrimary facts = factReadOnly facts && factBlocking facts == NonBlocking

-- | The destination with the node's connection that the command needs.
onControl :: Facts -> Destination -> Destination
onControl facts destination = case factScope facts of
  ControlConnection -> destinationAs ForControl (destinationNode destination)
  _ -> destination
{-# INLINE onControl #-}

-- | A node that may answer a read of a slot. One that moves is read at its primary.
reader :: ClusterClient -> ReadFrom -> Snapshot -> Slot -> IO (Maybe Destination)
reader cluster elsewhere snapshot slot = do
  want (clusterProbe cluster) elsewhere
  moving <- isMoving (clusterMoving cluster) slot
  known <- readIORef (clusterHealth cluster)
  seen <- currentNodeStats (clusterProbe cluster)
  number <- randomRIO (0, maxBound)
  let candidate candidateNode =
        Candidate
          { candidateNode,
            candidateIsPrimary = destinationRole candidateNode == ForPrimary,
            candidateUp = isUp known candidateNode,
            candidateStats = Map.findWithDefault unseen (nodeEndpoint (destinationNode candidateNode)) seen
          }
      drawn ShardNodes {shardOwner, shardReaders}
        | moving = Just shardOwner
        | otherwise = candidateNode <$> chooseReader elsewhere number (map candidate (shardOwner : shardReaders))
  pure (shardOf snapshot slot >>= drawn)
{-# NOINLINE reader #-}

nobodyFor :: ClusterClient -> Target -> IO Error
nobodyFor cluster target = do
  reasons <- newsReasons cluster
  pure . RoutingError . RoutingFailure "" NotSent $ case (reasons, slotOf target) of
    ([], Just slot) | isClustered cluster -> UncoveredSlot (slotNumber slot)
    _ -> NoReachableNode reasons

-- | Asks for news of the cluster, because no node was found.
missedNode :: ClusterClient -> Target -> IO ()
missedNode cluster target = tellCluster cluster (maybe SawNobody SawUncovered (slotOf target))

-- | Looks for something. While that finds nothing, asks for news, waits for some, and looks again, until
-- the deadline. Does not wait once a refresh has failed in a way that will last, nor with a standalone
-- server, for which no news would help.
eventually :: ClusterClient -> Nanos -> Target -> IO (Maybe a) -> IO (Maybe a)
eventually cluster deadline target look = do
  before <- readTVarIO (clusterNews cluster)
  look >>= \case
    Just found -> pure (Just found)
    Nothing -> do
      permanent <- newsIsPermanent cluster
      goesOn <- if isFollowed cluster && not permanent then missedNode cluster target *> news before else pure False
      if goesOn then eventually cluster deadline target look else look
  where
    -- 'False' if there will be none. Waits with a flag, so that nothing is thrown to the caller when its time is over.
    news before = do
      over <- expiryAt deadline
      atomically $
        (False <$ over) `orElse` do
          stopped <- readTVar (clusterStop cluster)
          current <- readTVar (clusterNews cluster)
          not stopped <$ check (stopped || current /= before)

-- | The destination for a command. If no node is known, waits for news of the cluster, at most until
-- the deadline.
destinationEventually :: ClusterClient -> Nanos -> Facts -> Target -> IO (Either Error Destination)
destinationEventually cluster deadline facts target =
  eventually cluster deadline target (destinationFor cluster facts target) >>= \case
    Just destination -> pure (Right destination)
    Nothing -> Left <$> nobodyFor cluster target

-- | The nodes of a node set, each with the route to it. Waits like 'destinationEventually' if no
-- map is known. A standalone server is every node set by itself, and may redirect the client.
nodesEventually :: ClusterClient -> Nanos -> NodeSet -> IO (Either Error [(Endpoint, Route a)])
nodesEventually cluster deadline nodeSet =
  eventually cluster deadline TargetAnyNode known >>= \case
    Nothing -> Left <$> nobodyFor cluster TargetAnyNode
    Just slotMap -> pure . Right $ case nodeSet of
      _ | not (isFollowed cluster) -> [(shardPrimary shard, AnyNode) | shard <- slotMapShards slotMap]
      Primaries -> [(shardPrimary shard, OnePrimary (shardPrimary shard) slot) | (slot, shard) <- slotMapServing slotMap]
      Replicas -> byEndpoint (slotMapReplicas slotMap)
      AllNodes -> byEndpoint (slotMapNodes slotMap)
  where
    known = mfilter (not . null . slotMapShards) . Just <$> currentSlotMap cluster
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
  = -- | The node is the primary of a shard, even if that has no slots, or a standalone server.
    PrimaryNode
  | -- | The node follows the primary at this endpoint.
    ReplicaNode Endpoint
  deriving stock (Eq, Ord, Show)

-- | The known nodes, in the order of their endpoints. Never blocks.
clusterMembers :: ClusterClient -> IO [ClientNode]
clusterMembers cluster = do
  zones <- clusterZones cluster
  let member role endpoint = ClientNode {clientNodeEndpoint = endpoint, clientNodeRole = role, clientNodeZone = Map.lookup endpoint zones}
      members shard = member PrimaryNode (shardPrimary shard) : map (member (ReplicaNode (shardPrimary shard))) (shardReplicas shard)
  List.sort . concatMap members . slotMapShards <$> currentSlotMap cluster

-- | Makes sure that a primary is known for every slot, or returns the slot that has none.
-- Waits like 'destinationEventually'.
coverEventually :: ClusterClient -> Nanos -> IO (Either Error ())
coverEventually cluster deadline =
  missing >>= \case
    Nothing -> pure (Right ())
    Just slot ->
      eventually cluster deadline (TargetSlot slot) (maybe (Just ()) (const Nothing) <$> missing) >>= \case
        Just () -> pure (Right ())
        -- Another slot may be the first without a primary by now.
        Nothing -> missing >>= maybe (pure (Right ())) (fmap Left . nobodyFor cluster . TargetSlot)
  where
    missing = slotMapUncovered <$> currentSlotMap cluster

-- | Whether there is a node at this endpoint. Waits like 'destinationEventually' if no map is known.
hasNode :: ClusterClient -> Nanos -> Endpoint -> IO (Either Error Bool)
hasNode cluster deadline endpoint =
  nodesEventually cluster deadline AllNodes >>= traverse hasIt
  where
    hasIt members
      | endpoint `elem` map fst members = pure True
      -- A redirect may have named the node since.
      | otherwise = isJust <$> knownNode (clusterNodes cluster) endpoint

-- | Carries out an effect of a retry decision, for a command that began at this time.
carryOut :: ClusterClient -> Nanos -> Effect -> IO ()
carryOut cluster began = \case
  Tell trigger -> tellCluster cluster trigger
  Reconnect endpoint ->
    -- Does not make the node again if it is gone.
    knownNode (clusterNodes cluster) endpoint >>= traverse_ (dropConnections 5 began)

-- | Records that a node did not answer, or could not be reached. A lent connection does not report by
-- itself that it was lost.
noteFailure :: ClusterClient -> Destination -> Error -> IO ()
noteFailure cluster destination = \case
  TimeoutError (TimeoutFailure _ MaybeExecuted _ _) -> seen MissedReply
  ConnectionError (ConnectionFailure _ _ _ ClosedLocally) -> pure ()
  ConnectionError {} -> seen LostConnection
  _ -> pure ()
  where
    seen = observeNode cluster (nodeEndpoint (destinationNode destination))

-- | Counts a MOVED or an ASK of a cluster, keeps reads of its slot with the primary for a while, tells of
-- it before the command is sent again, and returns whether the error is one.
countRedirect :: ClusterClient -> Destination -> Error -> IO Bool
countRedirect cluster destination = \case
  ReplyError refused | isClustered cluster -> case parseRedirect refused of
    Just (Moved slot _) -> counted RedirectsMoved slot
    Just (Ask slot _) -> counted RedirectsAsk slot
    _ -> pure False
  _ -> pure False
  where
    counted what slot = do
      countOne (nodeCounters (destinationNode destination)) what
      noteMoving (clusterMoving cluster) slot
      True <$ clusterOnSlots cluster (SlotRedirected slot)

-- | Counts the error that a caller gets, at the node of the last attempt.
countFailure :: ClusterClient -> Maybe Endpoint -> Error -> IO ()
countFailure cluster tried failure = do
  node <- maybe (pure Nothing) (knownNode nodes) tried
  countError (maybe (nodesCounters nodes) nodeCounters node) (errorDelivery failure)
  where
    nodes = clusterNodes cluster
