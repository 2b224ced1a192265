-- | Walks over all keys of a server or a cluster, and over the elements of one key. The decisions
-- about keys are made in "Redis.Internal.Routing.Scan".
--
-- Pages of keys are requested one ahead: while the caller has one page, the next page of that node
-- is on its way, and a page of each other node. There is no thread.
--
-- A collection that comes whole with the first page costs one round trip. For a larger one
-- the walk must know which process its cursors belong to: it asks the node that owns the key
-- for the identity of its process, begins there, and asks again at the end. If the identity
-- has changed by then, or if the key is on another node, the walk begins again.
module Redis.Internal.Client.Scan
  ( Walk (..),
    WalkOptions (..),
    walkDefaults,
    walkKeys,
    walkItems,
    Collection (..),
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.MVar (newMVar, withMVar)
import Control.Exception (throwIO)
import Control.Monad (when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (for_)
import Data.IORef
import Data.IntMap.Strict qualified as IntMap
import Data.IntSet qualified as IntSet
import Data.List (find)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Maybe (fromMaybe, isJust)
import Data.Sequence (Seq, ViewL (EmptyL, (:<)), viewl, (|>))
import Data.Sequence qualified as Seq
import Redis.Client
import Redis.Command (Command, NodeSet (Primaries), commandFacts, onNode)
import Redis.Commands.Cluster (ClusterNode (..), SlotRange (..), clusterNodes)
import Redis.Commands.Keys (ScanOptions, ScanPage (..), scanWith)
import Redis.Commands.Server (infoOf)
import Redis.Duration (Duration, inSeconds, seconds)
import Redis.Error
import Redis.Internal.Client.Core (Client (..), Core (coreCluster))
import Redis.Internal.Command (Route)
import Redis.Internal.Command.Common (ScanCursor (..), scanStart)
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.Slot (keySlot, slotCount, slotFromInt, slotNumber)
import Redis.Internal.Routing.Cluster (isClustered)
import Redis.Internal.Routing.Nodes (Destination (destinationNode), nodeEndpoint)
import Redis.Internal.Routing.Router
import Redis.Internal.Routing.Scan
import Redis.Internal.Routing.Target
import Redis.Internal.Routing.Topology (isPermanent)

-- | A walk in progress, and its position. One thread at a time pulls; other threads wait for
-- it. A walk may be dropped at any time.
data Walk item = Walk
  { walkPull :: IO (Maybe [item]),
    walkStands :: IO Position
  }

-- | A walk over a state, given the action that pulls a page. That action stores the state after each
-- thing that it has learnt, so that a pull that fails loses nothing.
newWalk :: state -> (state -> Position) -> (IORef Stall -> IORef state -> IO (Maybe [item])) -> IO (Walk item)
newWalk beginning position pull = do
  still <- moving >>= newIORef
  place <- newIORef beginning
  turn <- newMVar ()
  pure
    Walk
      { walkPull = withMVar turn $ \() -> progress still *> pull still place,
        walkStands = position <$> readIORef place
      }

-- | The options of a walk.
data WalkOptions = WalkOptions
  { -- | Where the walk goes on. 'Nothing' is the beginning. A position of a walk over
    -- something else counts as the beginning, too.
    walkFrom :: Maybe Position,
    -- | How long the walk may make no progress before it throws. It should be longer than a
    -- fail-over takes.
    walkTimeout :: Duration
  }
  deriving stock (Eq, Show)

-- | From the beginning, with a time limit of one minute.
walkDefaults :: WalkOptions
walkDefaults = WalkOptions {walkFrom = Nothing, walkTimeout = seconds 60}

-- | When a walk last made progress, how often it has tried since, and the last error.
data Stall = Stall
  { stillSince :: Nanos,
    stillRounds :: Int,
    stillWhy :: Maybe Error
  }

moving :: IO Stall
moving = (\now -> Stall {stillSince = now, stillRounds = 0, stillWhy = Nothing}) <$> preciseNanos

-- | Notes that the walk has made progress.
progress :: IORef Stall -> IO ()
progress still = moving >>= writeIORef still

-- | Whether anything was tried since the last progress.
isStalled :: Stall -> Bool
isStalled still = stillRounds still > 0

-- | Notes an error; throws it if it would be the same next time.
troubled :: IORef Stall -> Error -> IO ()
troubled still problem
  | passes problem = modifyIORef' still (\known -> known {stillWhy = Just problem})
  | otherwise = throwIO problem

-- | Prepares another try: sleeps, longer each time, but not before the first. If the walk's
-- time limit is over and a try has failed, throws the last error, or else the given one.
rest :: WalkOptions -> IORef Stall -> Error -> IO ()
rest options still otherwise' = do
  known <- readIORef still
  now <- preciseNanos
  when ((isStalled known || isJust (stillWhy known)) && secondsFromNanos (now - stillSince known) > inSeconds (walkTimeout options)) $
    throwIO (fromMaybe otherwise' (stillWhy known))
  when (isStalled known) (threadDelay (5000 * 2 ^ min 6 (stillRounds known)))
  writeIORef still known {stillRounds = stillRounds known + 1}

-- Whether the next try may end differently.
passes :: Error -> Bool
passes problem = case problem of
  ReplyError ServerError {serverErrorCode} ->
    serverErrorCode `elem` ["LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "MOVED", "ASK", "REDIRECT", "READONLY", "BUSY"]
  UnexpectedReply _ -> False
  ConnectionError _ -> not (isPermanent problem)
  TimeoutError _ -> True
  RoutingError _ -> True
  RefusedError (NoSuchNode _) -> True
  RefusedError _ -> False
  SubscriberTooSlow _ -> False
  ClientClosed -> False

data Keys = Keys
  { keysWalk :: KeysWalk,
    -- | The requests on their way, in the order in which they were sent.
    keysTasks :: Seq Asked
  }

-- | A request to a node whose answer has not been read yet.
data Asked = Asked Endpoint AskedFor

data AskedFor
  = -- | A page, and which of its keys the caller gets.
    Page KeyFilter (Pending (ScanPage ByteString))
  | ItsStatus (IO (Either Error NodeStatus))

-- | Begins a walk. Sends nothing before the first page is pulled.
walkKeys :: WalkOptions -> Client -> ScanOptions -> IO (Walk ByteString)
walkKeys options client@(Client core) scanning =
  newWalk Keys {keysWalk = beginning, keysTasks = Seq.empty} (Position name . OverKeys . keysWalk) pull
  where
    name = ["SCAN"]
    beginning = case walkFrom options of
      Just (Position whose (OverKeys walk)) | whose == name -> walk
      _ -> newKeysWalk
    cluster = coreCluster core

    pull still place = do
      keys <- readIORef place
      case viewl (keysTasks keys) of
        EmptyL
          | walkIsOver (keysWalk keys) -> pure Nothing
          | otherwise -> newRound still keys >>= writeIORef place >> pull still place
        Asked node wanted :< others -> do
          let remaining = keys {keysTasks = others}
              -- The scan of that node waits for the next round. If the problem is thrown, the next pull
              -- asks anew.
              goOn problem = writeIORef place remaining *> troubled still problem *> pull still place
          case wanted of
            Page telling pending ->
              tryAwaitReply pending >>= \case
                Left problem -> goOn problem
                Right page -> do
                  progress still
                  turned remaining node telling page >>= writeIORef place
                  pure (Just (toldOf telling (scanFound page)))
            ItsStatus status ->
              status >>= \case
                Left problem -> goOn problem
                Right found -> do
                  let (walk, task) = step (Saw node found) (keysWalk keys)
                  when (IntSet.size (walkCovered walk) > IntSet.size (walkCovered (keysWalk keys))) (progress still)
                  ask remaining {keysWalk = walk} node (keyFilterOf node walk) task >>= writeIORef place
                  pull still place

    turned keys node telling page = do
      let (walk, task) = step (Turned node ((\(ScanCursor cursor) -> cursor) <$> scanNext page)) (keysWalk keys)
      ask keys {keysWalk = walk} node telling task

    ask keys node telling = \case
      Nothing -> pure keys
      Just (AskPage cursor) -> do
        page <- submit client (onNode node (scanWith scanning (ScanCursor cursor)))
        pure (keys `expecting` Asked node (Page telling page))
      Just AskStatus -> do
        status <- statusAt client node
        pure (keys `expecting` Asked node (ItsStatus status))
    expecting keys asked = keys {keysTasks = keysTasks keys |> asked}

    -- Looks at every primary. If the round before brought nothing, the map may be old.
    newRound still keys = do
      let slot = slotFromInt . fst =<< IntSet.minView (slotsToCover (keysWalk keys))
      nobody <- nobodyFor cluster (maybe TargetAnyNode TargetSlot slot)
      stalled <- isStalled <$> readIORef still
      when stalled (for_ slot (missedNode cluster . TargetSlot))
      rest options still nobody
      primaries >>= \case
        Left problem -> keys <$ troubled still problem
        Right nodes -> do
          statuses <- traverse (\node -> Asked node . ItsStatus <$> statusAt client node) nodes
          pure keys {keysTasks = Seq.fromList statuses}

    primaries = do
      members <- clientNodes client
      case [clientNodeEndpoint node | node <- members, clientNodeRole node == PrimaryNode] of
        [] -> fmap (map fst) <$> known
        found -> pure (Right found)
    known :: IO (Either Error [(Endpoint, Route ())])
    known = do
      now <- coarseNanos
      nodesEventually cluster (deadlineAt (deadlineAfter (nanosFromDuration (walkTimeout options)) now)) Primaries

toldOf :: KeyFilter -> [ByteString] -> [ByteString]
toldOf = \case
  TellAll -> id
  TellOf slots -> filter ((`IntSet.member` slots) . slotNumber . keySlot)

-- | The collection of one key, and the command that reads a page of it.
data Collection item = Collection
  { -- | The name of the command; it tells walks of different kinds apart.
    collectionKind :: ByteString,
    collectionKey :: ByteString,
    collectionPage :: ScanCursor -> Command (ScanPage item)
  }

data Items item = Items
  { itemsWalk :: ItemsWalk,
    -- | The page that was requested and has not been read yet.
    itemsAhead :: Maybe (Pending (ScanPage item))
  }

-- | Begins a walk. Sends nothing before the first page is pulled.
walkItems :: forall item. WalkOptions -> Client -> Collection item -> IO (Walk item)
walkItems options client@(Client core) Collection {collectionKind, collectionKey, collectionPage} =
  newWalk Items {itemsWalk = beginning, itemsAhead = Nothing} (Position name . OverItems . itemsWalk) pull
  where
    name = [collectionKind, collectionKey]
    beginning = case walkFrom options of
      Just (Position whose (OverItems walk)) | whose == name -> walk
      _ -> Unbegun
    cluster = coreCluster core

    pull :: IORef Stall -> IORef (Items item) -> IO (Maybe [item])
    pull still place = do
      items <- readIORef place
      case itemsWalk items of
        Finished -> pure Nothing
        Unbegun -> begin still place items
        Within node process Nothing -> do
          again <- processAt client node
          again >>= \case
            Left problem -> tryAgain still place items problem
            Right now -> do
              writeIORef place items {itemsWalk = if now == process then Finished else Unbegun}
              pull still place
        Within node process (Just cursor) -> do
          page <- maybe (ask node (ScanCursor cursor)) pure (itemsAhead items)
          writeIORef place items {itemsAhead = Just page}
          tryAwaitReply page >>= \case
            Left problem -> tryAgain still place items problem
            Right ScanPage {scanNext, scanFound} -> do
              progress still
              ahead <- traverse (ask node) scanNext
              writeIORef place Items {itemsWalk = Within node process (cursorOf <$> scanNext), itemsAhead = ahead}
              pure (Just scanFound)

    begin still place items =
      tryRun client (collectionPage scanStart) >>= \case
        Left problem -> tryAgain still place items problem
        Right ScanPage {scanNext = Nothing, scanFound} -> do
          writeIORef place items {itemsWalk = Finished}
          pure (Just scanFound)
        Right ScanPage {scanNext = Just _} ->
          owner >>= \case
            Left problem -> tryAgain still place items problem
            Right node -> do
              asked <- processAt client node
              page <- ask node scanStart
              asked >>= \case
                Left problem -> tryAgain still place items problem
                Right process -> do
                  writeIORef place Items {itemsWalk = Within node process (Just (cursorOf scanStart)), itemsAhead = Just page}
                  pull still place

    -- Goes on at the same cursor if the key is still on the same node.
    tryAgain still place items problem = do
      -- If the problem is thrown, the next pull asks anew.
      writeIORef place items {itemsAhead = Nothing}
      troubled still problem
      rest options still problem
      now <- owner
      let stays = case (itemsWalk items, now) of
            (Within node _ _, Right current) -> node == current && not (isElsewhere problem)
            _ -> False
      writeIORef place Items {itemsWalk = if stays then itemsWalk items else Unbegun, itemsAhead = Nothing}
      pull still place
    isElsewhere = \case
      ReplyError ServerError {serverErrorCode} -> serverErrorCode `elem` ["MOVED", "ASK"]
      _ -> False

    owner = do
      now <- coarseNanos
      fmap (nodeEndpoint . destinationNode) <$> destinationEventually cluster (now + nanosFromSeconds 1) (commandFacts (collectionPage scanStart)) (TargetPrimary (keySlot collectionKey))
    ask node cursor = submit client (onNode node (collectionPage cursor))
    cursorOf (ScanCursor cursor) = cursor

-- | Sends the questions, and returns an action that waits for the node's answers.
statusAt :: Client -> Endpoint -> IO (IO (Either Error NodeStatus))
statusAt client@(Client core) endpoint = do
  process <- processAt client endpoint
  if isClustered (coreCluster core)
    then do
      nodes <- submit client (onNode endpoint clusterNodes)
      pure (joined process (tryAwaitReply nodes) (\name -> maybe (Left (RefusedError (NoSuchNode endpoint))) Right . ofCluster name))
    else pure (fmap alone <$> process)
  where
    joined first second together =
      first >>= \case
        Left problem -> pure (Left problem)
        Right one -> (>>= together one) <$> second

-- A standalone server owns all keys, whatever its role.
alone :: ByteString -> NodeStatus
alone process =
  NodeStatus
    { statusNode = "",
      statusIdentity = process,
      statusOwned = IntSet.fromDistinctAscList [0 .. slotCount - 1],
      statusLeaving = IntMap.empty,
      statusComing = IntMap.empty
    }

ofCluster :: ByteString -> [ClusterNode] -> Maybe NodeStatus
ofCluster process nodes = status <$> find (elem "myself" . clusterNodeFlags) nodes
  where
    status node
      | any (`elem` clusterNodeFlags node) ["master", "primary"] =
        (nothing node)
          { statusOwned = foldMap slotsOf (clusterNodeSlots node),
            statusLeaving = IntMap.fromList (clusterNodeMigrating node),
            statusComing = IntMap.fromList (clusterNodeImporting node)
          }
      | otherwise = nothing node
    nothing node =
      NodeStatus
        { statusNode = clusterNodeId node,
          statusIdentity = Char8.intercalate "/" [clusterNodeId node, process, Char8.pack (show (clusterNodeEpoch node))],
          statusOwned = IntSet.empty,
          statusLeaving = IntMap.empty,
          statusComing = IntMap.empty
        }
    slotsOf (SlotRange first final) = IntSet.fromDistinctAscList [first .. final]

-- | Sends the questions, and returns an action that waits for the identity of the node's
-- process. The identity of a server outside a cluster also changes when the server begins to
-- follow another one, or stops following. It is empty where this user may not ask.
processAt :: Client -> Endpoint -> IO (IO (Either Error ByteString))
processAt client@(Client core) endpoint = do
  process <- field "server" "run_id"
  if isClustered (coreCluster core)
    then pure process
    else do
      history <- field "replication" "master_replid"
      pure $ do
        one <- process
        other <- history
        pure ((\name since -> name <> "/" <> since) <$> one <*> other)
  where
    field section name = do
      pending <- submit client (onNode endpoint (infoOf (section :| [])))
      pure $
        tryAwaitReply pending >>= \case
          Left (ReplyError ServerError {serverErrorCode = "NOPERM"}) -> pure (Right "")
          result -> pure (fromMaybe "" . lookup name <$> result)
