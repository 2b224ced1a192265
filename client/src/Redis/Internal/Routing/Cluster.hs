-- | The servers as a client sees them: the published map that commands are routed by, and the
-- thread that carries out the decisions of "Redis.Internal.Routing.Topology".
--
-- Commands read one immutable snapshot. What they learn on the way (a MOVED, a lost connection) they put
-- into a mailbox.
--
-- The map of a standalone server has one shard and is published at once; there is no thread. A
-- redirect puts another server into it, and the loss of that server puts the configured one back ('fixedStep').
module Redis.Internal.Routing.Cluster
  ( ClusterClient (..),
    SlotNews (..),
    newClusterClient,
    closeClusterClient,
    isClustered,
    isFollowed,
    Snapshot (..),
    ShardNodes (..),
    currentSlotMap,
    clusterZones,
    newsReasons,
    newsIsPermanent,
    tellCluster,
    observeNode,
  )
where

import Control.Concurrent (ThreadId, myThreadId, threadDelay)
import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception (SomeException, displayException, finally, mask_, try)
import Control.Monad (join, unless, void, when, (>=>))
import Data.ByteString (ByteString)
import Data.Foldable (for_, traverse_)
import Data.IORef
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust, isNothing)
import Data.Primitive.Array (Array, arrayFromList)
import Data.Set qualified as Set
import Data.Traversable (for)
import Data.Unique (Unique, newUnique)
import Redis.Duration (seconds)
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Credentials (newCredentialStore)
import Redis.Internal.Network.Dial (explained, newConnector)
import Redis.Internal.Network.Handshake (ConnectionRole (..), ConnectionUse (SharedFor))
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.MultiplexPool
import Redis.Internal.Network.Multiplexer (abortMultiplexer, submitCommandAsync, usualTerms)
import Redis.Internal.Network.Open
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.Encode (request)
import Redis.Internal.Protocol.Slot (Slot)
import Redis.Internal.Routing.Inquiry
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.Replicas
import Redis.Internal.Routing.SlotMap
import Redis.Internal.Routing.Topology
import System.IO (fixIO)
import System.Random (newStdGen)
import System.Timeout (timeout)

-- | What is learnt of where slots are.
data SlotNews
  = -- | This map was published.
    MapPublished SlotMap
  | -- | A node redirected a command for this slot.
    SlotRedirected Slot

-- | A cluster, a primary with its replicas, or a standalone server.
data ClusterClient = ClusterClient
  { -- | All nodes, each with its connections.
    clusterNodes :: Nodes,
    clusterConfig :: Config,
    clusterSetup :: ConnectionSetup,
    -- | Called with each 'SlotNews', unless the server is a standalone one.
    clusterOnSlots :: SlotNews -> IO (),
    -- | How reads choose their nodes; 'Nothing' for a standalone server, which leaves no choice.
    clusterReads :: Maybe ReadFrom,
    -- | The setup of connections to sentinels.
    clusterSentinelSetup :: ConnectionSetup,
    -- | The sentinels that are listened to, each with the number of its listener.
    clusterHearing :: TVar (Map.Map Endpoint Int),
    clusterSnapshot :: IORef Snapshot,
    -- | The events that the driver has yet to handle.
    clusterMail :: TBQueue Event,
    -- | Counts published maps and ended refreshes. Stays the same once the client is closed.
    clusterNews :: TVar Int,
    -- | When the last refresh ended, and why it failed, if it did.
    clusterReasons :: IORef (Seconds, [(Endpoint, Error)]),
    clusterHealth :: IORef (Map.Map Endpoint Health),
    clusterTurn :: IORef Int,
    -- | The threads that ask nodes. None is added once the client is closed.
    clusterAsking :: TVar (Map.Map ThreadId (MVar ())),
    -- | Whether the client is closed, so that there will be no more news.
    clusterStop :: TVar Bool,
    -- | Zones and latencies of the nodes that reads may go to.
    clusterProbe :: LatencyProbe,
    -- | Slots whose reads stay with the primary.
    clusterMoving :: MovingSlots
  }

-- | The published map, with the nodes of its shards looked up.
data Snapshot = Snapshot
  { snapshotMap :: SlotMap,
    -- | Tells this snapshot from all others.
    snapshotName :: Unique,
    -- | Shards at the positions of 'slotShardIndex'.
    snapshotShards :: Array ShardNodes,
    -- | The only shard, if one serves every slot: then no slot need be computed.
    snapshotOnly :: Maybe ShardNodes
  }

data ShardNodes = ShardNodes
  { shardOwner :: Destination,
    shardReaders :: [Destination]
  }

-- | Whether keys decide where commands go.
isClustered :: ClusterClient -> Bool
isClustered = isClusterConfig . clusterConfig

-- | Whether the client can ask for a new map (of a cluster or a group).
isFollowed :: ClusterClient -> Bool
isFollowed = isJust . clusterReads

-- | Makes a client's map. Unless the server is a standalone one, starts the driver, which asks the seeds
-- at once, and calls the action with each 'SlotNews'. 'Left' if files for TLS to the sentinels cannot be used.
newClusterClient :: ConnectionSetup -> (SlotNews -> IO ()) -> IO (Either Error ClusterClient)
newClusterClient setup onSlots = mask_ $ case configTopology (setupConfig setup) of
  Standalone endpoint -> do
    cluster <- makeClusterClient setup setup onSlots
    Right cluster <$ publish cluster (groupMap endpoint [])
  topology -> do
    let firstSeed :| _ = topologySeeds topology
        config = forSentinel firstSeed (setupConfig setup)
    newConnector config >>= \case
      Left cause -> pure (Left (ConnectionError (ConnectionFailure "" NotSent firstSeed cause)))
      Right connector -> do
        credentials <- newCredentialStore config
        cluster <- makeClusterClient setup setup {setupConfig = config, setupConnector = connector, setupCredentials = credentials} onSlots
        traverse_ (want (clusterProbe cluster)) (clusterReads cluster)
        random <- newStdGen
        now <- secondsNow
        void . spawn "redis cluster" $ drive cluster (newState (settingsFromConfig (setupConfig setup) (topologySeeds topology)) random now)
        pure (Right cluster)

-- | A client without a map and without a driver, given the setup of connections to servers and to
-- sentinels, and the action for each 'SlotNews'.
makeClusterClient :: ConnectionSetup -> ConnectionSetup -> (SlotNews -> IO ()) -> IO ClusterClient
makeClusterClient clusterSetup clusterSentinelSetup clusterOnSlots = fixIO $ \cluster -> do
  let clusterConfig = setupConfig clusterSetup
      clusterReads = case configTopology clusterConfig of
        Standalone _ -> Nothing
        _ -> Just (configReadFrom clusterConfig)
      hasAnswered endpoint = observeNode cluster endpoint AnsweredCommand
      -- The health of a standalone server decides nothing, so its replies are not watched.
      watching
        | isJust clusterReads = clusterSetup {setupOnAnswers = hasAnswered}
        | otherwise = clusterSetup
  clusterMail <- newTBQueueIO mailboxSize
  snapshotName <- newUnique
  clusterSnapshot <- newIORef Snapshot {snapshotMap = emptySlotMap, snapshotName, snapshotShards = arrayFromList [], snapshotOnly = Nothing}
  clusterNews <- newTVarIO 0
  clusterReasons <- newIORef (0, [])
  clusterHealth <- newIORef Map.empty
  clusterTurn <- newIORef 0
  clusterAsking <- newTVarIO Map.empty
  clusterStop <- newTVarIO False
  clusterMoving <- newMovingSlots
  clusterHearing <- newTVarIO Map.empty
  clusterNodes <- newNodes watching (\endpoint _ -> tellCluster cluster (LostNode endpoint))
  let nobodyIn = observeConnection (configHooks clusterConfig) . NobodyInZone
      probeSetup =
        ProbeSetup
          { probeMap = snapshotMap <$> readIORef clusterSnapshot,
            probeNews = readTVar clusterNews,
            probeStopped = readTVar clusterStop,
            probePool = \replica endpoint -> fmap (destinationPool . destinationAs (if replica then ForReplica else ForPrimary)) <$> knownNode clusterNodes endpoint,
            probeIntervals = (min 5 (configRefreshInterval clusterConfig), configRefreshInterval clusterConfig),
            probeAnswered = hasAnswered
          }
  clusterProbe <- newLatencyProbe probeSetup nobodyIn
  pure
    ClusterClient
      { clusterNodes,
        clusterConfig,
        clusterProbe,
        clusterSetup,
        clusterOnSlots,
        clusterReads,
        clusterSentinelSetup,
        clusterHearing,
        clusterSnapshot,
        clusterMail,
        clusterNews,
        clusterReasons,
        clusterHealth,
        clusterTurn,
        clusterAsking,
        clusterStop,
        clusterMoving
      }

-- | The most events that may wait. The refresh that they begin finds what a dropped one told.
mailboxSize :: Num n => n
mailboxSize = 4096

offer :: TBQueue Event -> Event -> IO Bool
offer mail event = atomically $ do
  full <- isFullTBQueue mail
  unless full (writeTBQueue mail event)
  pure (not full)

-- | Stops the driver and the threads that ask nodes, and closes every node, waiting up to so
-- many seconds for commands in flight.
closeClusterClient :: Double -> ClusterClient -> IO ()
closeClusterClient grace cluster = do
  -- Releases all threads that wait for news, report an event or ask a node.
  asking <- atomically $ do
    writeTVar (clusterStop cluster) True
    readTVar (clusterAsking cluster)
  void (offer (clusterMail cluster) Tick)
  -- If the caller is interrupted while it waits for those, the nodes are closed all the same.
  for_ asking readMVar `finally` closeNodes grace (clusterNodes cluster)

-- | Reports a trigger to the driver. Never blocks; a full mailbox drops the trigger. The fixed map of
-- a standalone server is replaced at once.
tellCluster :: ClusterClient -> Trigger -> IO ()
tellCluster cluster trigger = case configTopology (clusterConfig cluster) of
  Standalone configured -> mask_ $ do
    let next snapshot = snapshotOnly snapshot >>= \shard -> fixedStep configured (nodeEndpoint (destinationNode (shardOwner shard))) trigger
    other <- next <$> readIORef (clusterSnapshot cluster)
    for_ other $ \endpoint ->
      snapshotOf cluster (groupMap endpoint []) >>= \made ->
        for_ made $ \after -> do
          isNews <- atomicModifyIORef' (clusterSnapshot cluster) (\current -> if next current == other then (after, True) else (current, False))
          when isNews (announce cluster)
  _ -> void (offer (clusterMail cluster) (Triggered trigger))

-- | Records how a command ended. \(O(\log n)\), and only one read if a healthy node answered.
observeNode :: ClusterClient -> Endpoint -> Observation -> IO ()
observeNode cluster endpoint observation = do
  before <- Map.findWithDefault healthy endpoint <$> readIORef (clusterHealth cluster)
  unless (observation == AnsweredCommand && isHealthy before) $ do
    sign <- atomicModifyIORef' (clusterHealth cluster) $ \known ->
      let (after, sign) = observe observation (Map.findWithDefault healthy endpoint known)
       in (if isHealthy after then Map.delete endpoint known else Map.insert endpoint after known, sign)
    when (sign == Suspicious) . tellCluster cluster $ case observation of
      LostConnection -> LostNode endpoint
      _ -> SilentNode endpoint

-- | The availability zones of the nodes, as far as they are known.
clusterZones :: ClusterClient -> IO (Map.Map Endpoint ByteString)
clusterZones cluster = do
  told <- slotMapZones <$> currentSlotMap cluster
  Map.union told . Map.mapMaybe sightedZone <$> currentNodeStats (clusterProbe cluster)

-- | The map that commands are routed by. Never blocks.
currentSlotMap :: ClusterClient -> IO SlotMap
currentSlotMap cluster = snapshotMap <$> readIORef (clusterSnapshot cluster)

newsReasons :: ClusterClient -> IO [(Endpoint, Error)]
newsReasons cluster = snd <$> readIORef (clusterReasons cluster)

-- | Whether the last refresh failed so recently, and for such reasons, that another one now
-- would fail the same way.
newsIsPermanent :: ClusterClient -> IO Bool
newsIsPermanent cluster = do
  (ended, reasons) <- readIORef (clusterReasons cluster)
  now <- secondsNow
  pure (not (null reasons) && all (isPermanent . snd) reasons && now - ended < configRefreshThrottle (clusterConfig cluster))

secondsNow :: IO Seconds
secondsNow = secondsFromNanos <$> preciseNanos

-- | The driver: waits for an event or for the time, steps, acts.
--
-- Only closing the client ends it. If an action throws, the driver reports a failed refresh and goes on.
drive :: ClusterClient -> State -> IO ()
drive cluster = loop
  where
    loop state = do
      stopped <- readTVarIO (clusterStop cluster)
      unless stopped $ do
        now <- secondsNow
        event <- nextEvent (nextWake state - now)
        later <- secondsNow
        let (state', actions) = step later event state
        for_ actions $ \action ->
          try (act cluster action) >>= either failed pure
        -- A refresh that another one takes the place of has not ended.
        when (isJust (refreshInFlight state) && isNothing (refreshInFlight state')) $ do
          unless (any isFailure actions) (writeIORef (clusterReasons cluster) (later, []))
          announce cluster
        loop state'

    isFailure = \case
      RefreshFailed _ -> True
      _ -> False

    failed (problem :: SomeException) = do
      void (try (act cluster (RefreshFailed [(firstSeed, unforeseen firstSeed problem)])) :: IO (Either SomeException ()))
      -- A fault that repeats must not keep a core busy.
      threadDelay 10000

    firstSeed :| _ = topologySeeds (configTopology (clusterConfig cluster))

    nextEvent wait
      | wait <= 0 = fromMaybe Tick <$> atomically (tryReadTBQueue (clusterMail cluster))
      -- Nobody else throws to this thread.
      | otherwise = fromMaybe Tick <$> timeout (ceiling (min 3600 wait * 1e6)) (atomically (readTBQueue (clusterMail cluster)))

-- | Wakes the threads that wait for a new map.
announce :: ClusterClient -> IO ()
announce cluster = atomically (modifyTVar' (clusterNews cluster) (+ 1))

act :: ClusterClient -> Action -> IO ()
act cluster = \case
  AskNodes refresh limit endpoints -> do
    for_ endpoints $ \endpoint -> asking refresh limit endpoint (askKnown cluster endpoint)
    lookAfterReplicas limit endpoints
  AskSeeds refresh limit endpoints -> do
    for_ endpoints $ \endpoint -> asking refresh limit endpoint (askSeed cluster endpoint)
    lookAfterReplicas limit []
  Publish slotMap -> do
    before <- currentSlotMap cluster
    publish cluster slotMap
    unless (isClustered cluster) (demote before slotMap)
    announce cluster
    -- Nodes that the map has no more, and nodes that only a redirect named.
    strays <- filter (`Set.notMember` slotMapNodes slotMap) . map nodeEndpoint <$> knownNodes (clusterNodes cluster)
    removeNodes removalGrace (clusterNodes cluster) (Set.fromList strays)
    -- A command that was still in flight may have failed after its node was removed, and left a record.
    atomicModifyIORef' (clusterHealth cluster) (\known -> (Map.restrictKeys known (slotMapNodes slotMap), ()))
    clusterOnSlots cluster (MapPublished slotMap)
    observeConnection hooks (TopologyChanged (slotMapCovered slotMap))
  HearSentinels endpoints -> hear endpoints
  RefreshFailed unexplained -> do
    now <- secondsNow
    -- A node may be silent because it is still being connected to.
    reasons <- for unexplained $ \(endpoint, why) -> (,) endpoint <$> explained (setupConnector (clusterSetup cluster)) endpoint why
    writeIORef (clusterReasons cluster) (now, reasons)
    announce cluster
    observeConnection hooks (TopologyRefreshFailed reasons)
  where
    hooks = configHooks (clusterConfig cluster)

    -- A node that is no primary any more gets no more commands on its connections as one.
    demote before now = do
      let primaries = Set.fromList . map shardPrimary . slotMapShards
          demoted = primaries before `Set.difference` primaries now
      removeNodes demotionGrace (clusterNodes cluster) (demoted `Set.difference` slotMapNodes now)
      began <- coarseNanos
      for_ (demoted `Set.intersection` slotMapNodes now) $
        knownNode (clusterNodes cluster) >=> traverse_ (dropConnections demotionGrace began)

    -- A replica that counts as down gets no commands, and a refresh asks sentinels, or only a few
    -- nodes of a cluster; so only this shows that it is back.
    lookAfterReplicas limit asked = do
      replicas <- slotMapReplicas <$> currentSlotMap cluster
      known <- readIORef (clusterHealth cluster)
      for_ [endpoint | (endpoint, health) <- Map.toList known, isDown health, endpoint `Set.member` replicas, endpoint `notElem` asked] $ \endpoint ->
        inquire limit endpoint (apart endpoint (\submit -> answerOf <$> (submit (request ["PING"]) >>= waitSlotResult))) $
          either (\_ -> pure ()) (\_ -> observeNode cluster endpoint AnsweredCommand)
    -- In a cluster, a node's own connections would ask for the next refresh when they fail.
    apart endpoint
      | isClustered cluster = anew (clusterSetup cluster) endpoint
      | otherwise = reach cluster endpoint
    answerOf = \case
      Reply _ -> Right ()
      Failure failure -> Left failure

    asking refresh limit endpoint question = inquire limit endpoint question $ \report -> do
      -- A node that counts as down gets no commands, so this shows that it is back.
      either (\_ -> pure ()) (\_ -> observeNode cluster endpoint AnsweredCommand) report
      -- Waits when the mailbox is full; the driver empties it until it stops.
      atomically $ do
        stopped <- readTVar (clusterStop cluster)
        unless stopped (writeTBQueue (clusterMail cluster) (Answered refresh endpoint report))

    -- On a thread of its own: a node that hangs must not hold up the driver.
    inquire :: Double -> Endpoint -> IO (Either Error a) -> (Either Error a -> IO ()) -> IO ()
    inquire limit endpoint question conclude = void . spawn ("redis ask " <> renderEndpoint endpoint) . whileOpen $ do
      late <- expiry limit
      let over = (ClientClosed <$ closed) `orElse` (TimeoutError (TimeoutFailure "" NotSent (seconds limit) Nothing) <$ late)
      answer <- try (supervised ("redis question " <> renderEndpoint endpoint) over (\_ -> pure ()) question)
      conclude $ case answer of
        Left (failure :: SomeException) -> Left (unforeseen endpoint failure)
        Right result -> join result

    closed = readTVar (clusterStop cluster) >>= check

    hear endpoints = do
      before <- readTVarIO (clusterHearing cluster)
      let number = maximum (0 : Map.elems before) + 1
          new = [endpoint | endpoint <- endpoints, Map.notMember endpoint before]
      atomically (writeTVar (clusterHearing cluster) (Map.restrictKeys before (Set.fromList endpoints) <> Map.fromList ([(endpoint, number) | endpoint <- new])))
      for_ new $ \endpoint -> void . spawn ("redis sentinel " <> renderEndpoint endpoint) . whileOpen $ do
        let unheard = readTVar (clusterHearing cluster) >>= check . (/= Just number) . Map.lookup endpoint
        hearSentinel (clusterSentinelSetup cluster) (primaryName (clusterConfig cluster)) (tellCluster cluster . asReached) (closed `orElse` unheard) endpoint
    asReached = \case
      SentinelsSwitched old new -> SentinelsSwitched (reachedAt cluster old) (reachedAt cluster new)
      trigger -> trigger

    -- Registers the thread, so that closing the client finds it.
    whileOpen action = do
      thread <- myThreadId
      over <- newEmptyMVar
      open <- atomically $ do
        stopped <- readTVar (clusterStop cluster)
        unless stopped (modifyTVar' (clusterAsking cluster) (Map.insert thread over))
        pure (not stopped)
      when open $
        (void (try action :: IO (Either SomeException ())) >> atomically (modifyTVar' (clusterAsking cluster) (Map.delete thread)))
          `finally` putMVar over ()

-- | The error for an exception that was thrown instead of an answer.
unforeseen :: Endpoint -> SomeException -> Error
unforeseen endpoint problem = ConnectionError (ConnectionFailure "" NotSent endpoint (BrokenConnection (displayException problem)))

publish :: ClusterClient -> SlotMap -> IO ()
publish cluster slotMap = snapshotOf cluster slotMap >>= traverse_ (writeIORef (clusterSnapshot cluster))

-- | The map with its nodes. 'Nothing' once the client is closed.
snapshotOf :: ClusterClient -> SlotMap -> IO (Maybe Snapshot)
snapshotOf cluster snapshotMap = do
  snapshotName <- newUnique
  either (const Nothing) (Just . withShards snapshotName) . sequence <$> traverse shardNodes (slotMapShards snapshotMap)
  where
    withShards snapshotName shards =
      Snapshot
        { snapshotMap,
          snapshotName,
          snapshotShards = arrayFromList shards,
          snapshotOnly = case shards of
            [shard] | not (isClustered cluster) || isNothing (slotMapUncovered snapshotMap) -> Just shard
            _ -> Nothing
        }
    shardNodes shard = do
      owner <- nodeAt (clusterNodes cluster) (shardPrimary shard)
      readers <- traverse (nodeAt (clusterNodes cluster)) (shardReplicas shard)
      pure (ShardNodes . destinationAs ForPrimary <$> owner <*> traverse (fmap (destinationAs ForReplica)) readers)

-- | The seconds that commands in flight have when their node has left the cluster.
removalGrace :: Double
removalGrace = 5

-- | The seconds that commands in flight have when their node is no primary any more: it is
-- known what it still answers, and commands that fail can go to the new primary.
demotionGrace :: Double
demotionGrace = 0.5

-- | The name under which the sentinels know the primary.
primaryName :: Config -> ByteString
primaryName config = case configTopology config of
  Sentinels name _ -> name
  _ -> ""

-- | Asks a node over the connections that are open to it. Does not make the node again if it is
-- gone.
askKnown :: ClusterClient -> Endpoint -> IO (Either Error TopologyReport)
askKnown cluster endpoint
  | isClustered cluster = reach cluster endpoint (askClusterNode (askedAt cluster endpoint))
  | otherwise = askMember (reachMapped cluster) endpoint

-- | Asks a seed over a connection that is made for the question.
askSeed :: ClusterClient -> Endpoint -> IO (Either Error TopologyReport)
askSeed cluster endpoint
  | isClustered cluster = anew (clusterSetup cluster) endpoint (askClusterNode (askedAt cluster endpoint))
  | otherwise =
    askSentinel (reachMapped cluster) (fmap (fmap mapped) . anew (clusterSentinelSetup cluster) endpoint) (primaryName (clusterConfig cluster)) endpoint
  where
    mapped (primary, epoch, others) = (reachedAt cluster primary, epoch, map (reachedAt cluster) others)

-- | The address at which this client reaches an address that a server names.
reachedAt :: ClusterClient -> Endpoint -> Endpoint
reachedAt = mappedAddress . configAddressMapping . clusterConfig

askedAt :: ClusterClient -> Endpoint -> Asked
askedAt cluster endpoint = Asked endpoint (isJust (configTls (clusterConfig cluster))) (configAddressMapping (clusterConfig cluster))

-- | A server's report, with the addresses of other servers as this client reaches them.
reachMapped :: ClusterClient -> Endpoint -> Question MemberInfo -> IO (Either Error MemberInfo)
reachMapped cluster endpoint question = fmap mapped <$> reach cluster endpoint question
  where
    mapped member =
      member
        { memberRole = case memberRole member of
            MemberIsPrimary replicas -> MemberIsPrimary (map (reachedAt cluster) replicas)
            MemberIsReplica primary -> MemberIsReplica (reachedAt cluster primary)
        }

-- | Asks a server over its open connections, or over a new one if the server is not known.
reach :: ClusterClient -> Endpoint -> Question a -> IO (Either Error a)
reach cluster endpoint question =
  knownNode (clusterNodes cluster) endpoint >>= \case
    Just node -> question $ \encoded -> do
      deadline <- usualDeadline (nodePool node)
      submitToNodeAsync (nodePool node) deadline encoded
    Nothing -> anew (clusterSetup cluster) endpoint question

-- | Asks over a connection that is made for the question.
anew :: ConnectionSetup -> Endpoint -> Question a -> IO (Either Error a)
anew setup endpoint question =
  mask_ $
    openConnection setup purpose (exclusiveSettings setup endpoint 0) (\_ -> pure ()) endpoint >>= \case
      Left cause -> pure (Left (ConnectionError (ConnectionFailure "" NotSent endpoint cause)))
      Right Established {establishedMux} -> question (\encoded -> usualTerms establishedMux >>= \terms -> submitCommandAsync establishedMux terms encoded) `finally` abortMultiplexer establishedMux
  where
    -- The thread that asks is interrupted when the client is closed or the time is over.
    purpose = Purpose {purposeUse = SharedFor ForPrimary, purposeGone = retry}
