-- | A cluster as its clients see it: the published view that commands go by,
-- and the thread that carries out what "Redis.Internal.Routing.Topology"
-- decides.
--
-- Commands read one immutable snapshot and never wait for a refresh, unless
-- nobody is known to serve their slot. What they learn on the way (a MOVED, a
-- lost connection) they drop in a mailbox.
module Redis.Internal.Routing.Cluster
  ( ClusterClient,
    newClusterClient,
    closeClusterClient,
    clusterNodes,

    -- * Routing
    ownerOf,
    readersOf,
    anyPrimary,
    currentSlotMap,

    -- * News
    newsCount,
    newsReasons,
    newsIsLasting,
    clusterStopped,

    -- * Learning
    tellCluster,
    observeNode,
  )
where

import Control.Concurrent (ThreadId, myThreadId, threadDelay)
import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception (SomeException, displayException, finally, mask_, try)
import Control.Monad (join, unless, void, when)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (for_)
import Data.IORef
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust, listToMaybe)
import Data.Primitive.Array (Array, arrayFromList, indexArray, sizeofArray)
import Data.Set qualified as Set
import Redis.Duration (seconds)
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Clock
import Redis.Internal.Network.Handshake (ConnectionRole (..), ConnectionUse (SharedFor))
import Redis.Internal.Network.MultiplexPool
import Redis.Internal.Network.Multiplexer (abortMultiplexer, submitCommandAsync, usualTerms)
import Redis.Internal.Network.OpenConnection
import Redis.Internal.Network.ResponseSlot
import Redis.Internal.Network.Worker (expiry, spawn, supervised)
import Redis.Internal.Protocol.Encode (Request, request)
import Redis.Internal.Protocol.Slot (Slot)
import Redis.Internal.Routing.ClusterReply
import Redis.Internal.Routing.Health
import Redis.Internal.Routing.Lasting
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.SlotMap
import Redis.Internal.Routing.Topology hiding (knownNodes)
import Redis.Value
import System.Random (newStdGen)
import System.Timeout (timeout)

-- | One cluster.
data ClusterClient = ClusterClient
  { -- | All nodes, each with its connections.
    clusterNodes :: Nodes,
    clusterConfig :: Config,
    clusterSetup :: ConnectionSetup,
    clusterView :: IORef Snapshot,
    -- | What the driver has yet to hear of.
    clusterMail :: TBQueue Event,
    -- | Counts published maps and refreshes that ended.
    clusterNews :: TVar Int,
    -- | When the last refresh ended, and why it failed, if it did.
    clusterReasons :: IORef (Seconds, [(Endpoint, Error)]),
    clusterHealth :: IORef (Map.Map Endpoint Health),
    clusterTurn :: IORef Int,
    -- | Those who ask nodes for their map. None is added once the client is closed.
    clusterAsking :: TVar (Map.Map ThreadId (MVar ())),
    clusterStop :: TVar Bool
  }

-- | The published map, its shards' nodes looked up.
data Snapshot = Snapshot
  { snapshotMap :: SlotMap,
    -- | Positions are those of 'slotShardIndex'.
    snapshotShards :: Array ShardNodes
  }

-- | The nodes of a shard.
data ShardNodes = ShardNodes
  { shardOwner :: Node,
    shardReaders :: [Node]
  }

-- | Starts the driver, which asks the seeds at once. Does not wait for them:
-- the first commands do.
newClusterClient :: ConnectionSetup -> NonEmpty Endpoint -> IO ClusterClient
newClusterClient clusterSetup seeds = mask_ $ do
  let clusterConfig = setupConfig clusterSetup
  clusterMail <- newTBQueueIO mailboxSize
  clusterView <- newIORef Snapshot {snapshotMap = emptySlotMap, snapshotShards = arrayFromList []}
  clusterNews <- newTVarIO 0
  clusterReasons <- newIORef (0, [])
  clusterHealth <- newIORef Map.empty
  clusterTurn <- newIORef 0
  clusterAsking <- newTVarIO Map.empty
  clusterStop <- newTVarIO False
  let tell = void . offer clusterMail . Triggered
      -- A subscriber may also have ended it himself; the throttle bounds what that costs.
      watched endpoint push = do
        when (endsShardChannel push) (tell (EndedShardChannel endpoint))
        setupOnPush clusterSetup endpoint push
  clusterNodes <- newNodes clusterSetup {setupOnPush = watched} (\endpoint _ -> tell (LostNode endpoint))
  let cluster =
        ClusterClient
          { clusterNodes,
            clusterConfig,
            clusterSetup,
            clusterView,
            clusterMail,
            clusterNews,
            clusterReasons,
            clusterHealth,
            clusterTurn,
            clusterAsking,
            clusterStop
          }
  random <- newStdGen
  now <- secondsNow
  void . spawn "redis cluster" $ drive cluster (newState (settingsFromConfig clusterConfig seeds) random now)
  pure cluster

endsShardChannel :: Value -> Bool
endsShardChannel = \case
  Push (BulkString "sunsubscribe" : _) -> True
  _ -> False

-- | Events that may wait. More would tell the driver nothing new: what they
-- would make it do is already to be done.
mailboxSize :: Num n => n
mailboxSize = 4096

offer :: TBQueue Event -> Event -> IO Bool
offer mail event = atomically $ do
  full <- isFullTBQueue mail
  unless full (writeTBQueue mail event)
  pure (not full)

-- | Stops the driver and those who ask for it, and closes every node, waiting
-- up to so many seconds for commands in flight.
closeClusterClient :: Double -> ClusterClient -> IO ()
closeClusterClient grace cluster = do
  -- Whoever waits for news, or to give some, or asks for it, need not any longer.
  asking <- atomically $ do
    writeTVar (clusterStop cluster) True
    readTVar (clusterAsking cluster)
  void (offer (clusterMail cluster) Tick)
  -- Whoever is interrupted while waiting for those has closed the nodes all the same.
  for_ asking readMVar `finally` closeNodes grace (clusterNodes cluster)

-- | Tells the driver. Never blocks; a full mailbox drops it.
tellCluster :: ClusterClient -> Trigger -> IO ()
tellCluster cluster = void . offer (clusterMail cluster) . Triggered

-- | Takes note of how a command ended. \(O(\log n)\), and one read for a node
-- that is well.
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

-- | The primary of a slot. \(O(1)\), never blocks.
ownerOf :: ClusterClient -> Slot -> IO (Maybe Node)
ownerOf cluster slot = do
  Snapshot {snapshotMap, snapshotShards} <- readIORef (clusterView cluster)
  let index = slotShardIndex snapshotMap slot
  pure (if index == noShard then Nothing else Just (shardOwner (indexArray snapshotShards index)))
{-# INLINE ownerOf #-}

-- | The replicas of a slot that are not known to be down.
readersOf :: ClusterClient -> Slot -> IO [Node]
readersOf cluster slot = do
  Snapshot {snapshotMap, snapshotShards} <- readIORef (clusterView cluster)
  known <- readIORef (clusterHealth cluster)
  let index = slotShardIndex snapshotMap slot
      up node = not (maybe False isDown (Map.lookup (nodeEndpoint node) known))
  pure (if index == noShard then [] else filter up (shardReaders (indexArray snapshotShards index)))

-- | Some primary, by turns, those that are down last.
anyPrimary :: ClusterClient -> IO (Maybe Node)
anyPrimary cluster = do
  Snapshot {snapshotShards} <- readIORef (clusterView cluster)
  known <- readIORef (clusterHealth cluster)
  turn <- atomicModifyIORef' (clusterTurn cluster) (\n -> (n + 1, n))
  let count = sizeofArray snapshotShards
      owner index = shardOwner (indexArray snapshotShards ((turn + index) `mod` count))
      up node = not (maybe False isDown (Map.lookup (nodeEndpoint node) known))
      owners = map owner [0 .. count - 1]
  pure (listToMaybe (filter up owners <> owners))

-- | The map that commands go by. Never blocks.
currentSlotMap :: ClusterClient -> IO SlotMap
currentSlotMap cluster = snapshotMap <$> readIORef (clusterView cluster)

-- | How many maps were published and refreshes ended so far: it changes with
-- each.
newsCount :: ClusterClient -> STM Int
newsCount = readTVar . clusterNews

-- | Why the last refresh failed; empty if it did not.
newsReasons :: ClusterClient -> IO [(Endpoint, Error)]
newsReasons cluster = snd <$> readIORef (clusterReasons cluster)

-- | Whether the last refresh failed so lately, and for such reasons, that another
-- one now would say the same.
newsIsLasting :: ClusterClient -> IO Bool
newsIsLasting cluster = do
  (ended, reasons) <- readIORef (clusterReasons cluster)
  now <- secondsNow
  pure (not (null reasons) && all (isLasting . snd) reasons && now - ended < configRefreshThrottle (clusterConfig cluster))

-- | Whether the client is closed, so that there will be no news.
clusterStopped :: ClusterClient -> STM Bool
clusterStopped = readTVar . clusterStop

secondsNow :: IO Seconds
secondsNow = secondsFromNanos <$> preciseNanos

-- | The driver: waits for an event or for the time, steps, acts.
--
-- Without it no map is ever learnt again, so nothing ends it but closing the
-- client: what an action throws (a user's hook may throw anything) is told as a
-- failed refresh, and it goes on.
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
        when (isJust (refreshInFlight state) && refreshInFlight state' /= refreshInFlight state) $ do
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

    firstSeed = case configTopology (clusterConfig cluster) of
      Cluster (seed :| _) -> seed
      Standalone endpoint -> endpoint

    nextEvent wait
      | wait <= 0 = fromMaybe Tick <$> atomically (tryReadTBQueue (clusterMail cluster))
      -- Nobody else throws to this thread.
      | otherwise = fromMaybe Tick <$> timeout (ceiling (min 3600 wait * 1e6)) (atomically (readTBQueue (clusterMail cluster)))

-- | Wakes those who wait for a map that helps them.
announce :: ClusterClient -> IO ()
announce cluster = atomically (modifyTVar' (clusterNews cluster) (+ 1))

act :: ClusterClient -> Action -> IO ()
act cluster = \case
  AskNodes refresh limit endpoints -> for_ endpoints $ \endpoint ->
    asking refresh limit endpoint (askOverPool cluster endpoint)
  AskSeeds refresh limit endpoints -> for_ endpoints $ \endpoint ->
    asking refresh limit endpoint (askAnew cluster endpoint)
  Publish slotMap -> do
    publish cluster slotMap
    announce cluster
    -- Also those that no map ever had: a redirect named them, or somebody still
    -- asked for one that had just been removed.
    strays <- filter (`Set.notMember` slotMapNodes slotMap) . map nodeEndpoint <$> knownNodes (clusterNodes cluster)
    forget (Set.fromList strays)
    -- A command that was still in flight to a node when it was removed may have
    -- failed since, and that was noted.
    atomicModifyIORef' (clusterHealth cluster) (\known -> (Map.restrictKeys known (slotMapNodes slotMap), ()))
    observeConnection hooks (TopologyChanged (slotMapCovered slotMap))
  -- Made when they are first routed to.
  NodesNew _ -> pure ()
  NodesGone endpoints -> forget (Set.fromList endpoints)
  RefreshFailed reasons -> do
    now <- secondsNow
    writeIORef (clusterReasons cluster) (now, reasons)
    announce cluster
    observeConnection hooks (TopologyRefreshFailed reasons)
  where
    hooks = configHooks (clusterConfig cluster)

    forget = removeNodes (clusterNodes cluster)

    -- Its own thread: a node that hangs must not hold up the driver.
    asking refresh limit endpoint question = void . spawn ("redis ask " <> renderEndpoint endpoint) . whileOpen $ do
      late <- expiry limit
      let over =
            (ClientClosed <$ (readTVar (clusterStop cluster) >>= check))
              `orElse` (TimeoutError (TimeoutFailure NotSent (seconds limit)) <$ late)
      answer <- try (supervised ("redis question " <> renderEndpoint endpoint) over (\_ -> pure ()) question)
      let view = case answer of
            Left (failure :: SomeException) -> Left (unforeseen endpoint failure)
            Right result -> join result
      -- A replica that is held to be down gets no commands, so this is how it
      -- comes back.
      either (\_ -> pure ()) (\_ -> observeNode cluster endpoint AnsweredCommand) view
      -- Waits when the mailbox is full; the driver empties it until it stops.
      atomically $ do
        stopped <- readTVar (clusterStop cluster)
        unless stopped (writeTBQueue (clusterMail cluster) (Answered refresh endpoint view))

    -- Where whoever closes the client finds it.
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

-- | What was thrown instead of an answer.
unforeseen :: Endpoint -> SomeException -> Error
unforeseen endpoint problem = ConnectionError (ConnectionFailure NotSent endpoint (BrokenConnection (displayException problem)))

-- | Looks the nodes of a map up and puts it in force.
publish :: ClusterClient -> SlotMap -> IO ()
publish cluster slotMap = do
  shards <- traverse shardNodes (slotMapShards slotMap)
  for_ (sequence shards) $ \resolved ->
    writeIORef (clusterView cluster) Snapshot {snapshotMap = slotMap, snapshotShards = arrayFromList resolved}
  where
    -- Right unless the client has been closed meanwhile.
    shardNodes shard = do
      owner <- nodeAt (clusterNodes cluster) (shardPrimary shard)
      readers <- traverse (nodeAt (clusterNodes cluster)) (shardReplicas shard)
      pure (ShardNodes <$> owner <*> sequence readers)

-- | Asks a node over the connections there are.
askOverPool :: ClusterClient -> Endpoint -> IO (Either Error View)
askOverPool cluster endpoint =
  nodeAt (clusterNodes cluster) endpoint >>= \case
    Left failure -> pure (Left failure)
    Right node -> askView cluster endpoint (submitToNodeAsync (nodePool node) Nothing)

-- | Asks a node over a connection made for it.
askAnew :: ClusterClient -> Endpoint -> IO (Either Error View)
askAnew cluster endpoint =
  mask_ $
    openConnection setup purpose (exclusiveSettings setup endpoint 0) (\_ -> pure ()) endpoint >>= \case
      Left cause -> pure (Left (ConnectionError (ConnectionFailure NotSent endpoint cause)))
      Right Established {establishedMux} -> askView cluster endpoint (submitCommandAsync establishedMux usualTerms) `finally` abortMultiplexer establishedMux
  where
    setup = clusterSetup cluster
    -- What asks is interrupted when the client is closed, or the time is over.
    purpose = Purpose {purposeUse = SharedFor ForPrimary, purposeGone = retry}

-- | The view of one node: CLUSTER SHARDS, or CLUSTER SLOTS where that is not
-- known, and the epoch.
askView :: ClusterClient -> Endpoint -> (Request -> IO ResponseSlot) -> IO (Either Error View)
askView cluster endpoint submit = do
  shards <- submit (request ["CLUSTER", "SHARDS"])
  info <- submit (request ["CLUSTER", "INFO"])
  shardsAnswer <- answered <$> waitSlotResult shards
  infoAnswer <- answered <$> waitSlotResult info
  slotMap <- case shardsAnswer of
    Right value -> pure (parsed (parseClusterShards asked value))
    Left _ -> do
      slotsAnswer <- fmap answered . waitSlotResult =<< submit (request ["CLUSTER", "SLOTS"])
      pure (slotsAnswer >>= parsed . parseClusterSlots asked)
  let viewEpoch = either (const Nothing) epochFromInfo infoAnswer
  pure ((\viewMap -> View {viewMap, viewEpoch}) <$> slotMap)
  where
    asked = Asked {askedEndpoint = endpoint, askedByTls = isJust (configTls (clusterConfig cluster))}
    parsed = either (Left . UnexpectedReply) Right
    answered = \case
      Reply value -> case withoutAttributes value of
        ErrorReply text -> Left (ReplyError (serverErrorFromText text))
        other -> Right other
      Failure failure -> Left failure

-- | @cluster_current_epoch:6@ in the text of CLUSTER INFO.
epochFromInfo :: Value -> Maybe Int
epochFromInfo value = do
  text <- case value of
    BulkString bytes -> Just bytes
    VerbatimString _ bytes -> Just bytes
    _ -> Nothing
  field <- listToMaybe [rest | fieldLine <- Char8.lines text, Just rest <- [Char8.stripPrefix "cluster_current_epoch:" fieldLine]]
  fst <$> Char8.readInt field
