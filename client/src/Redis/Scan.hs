-- | Walks over all keys of a server or a cluster, and over large hashes, sets and sorted sets, page
-- by page. A walk needs no more memory for more elements. Begin with 'foldScan':
--
-- > users <- foldScan client Redis.scanDefaults {Redis.scanMatch = Just "user:*"} (\count _key -> pure (count + 1)) 0
--
-- A walk returns every element that exists from its beginning to its end at least once, in a cluster
-- also while nodes fail over and slots move. It may return or miss an element that comes or goes
-- meanwhile, and may return the same element several times.
--
-- The client requests the next page before it returns the present one, in a cluster one page of each
-- primary. A page has about 1000 elements by default (the COUNT of the options).
--
-- A walk can be left at any time, and continued later, also by another process ('walkPosition').
--
-- How it works: <https://valkey.io/commands/scan/> on each node, and a look at the slots that the
-- node owns, before and after.
module Redis.Scan
  ( -- * Folds
    foldScan,
    foldHscan,
    foldHscanNovalues,
    foldSscan,
    foldZscan,

    -- * Page by page
    Walk,
    walkScan,
    walkHscan,
    walkHscanNovalues,
    walkSscan,
    walkZscan,
    nextPage,
    foldWalk,
    WalkOptions (walkFrom, walkTimeout),
    walkDefaults,

    -- * Resuming
    Position,
    walkPosition,
    positionText,
    positionFromText,
  )
where

import Control.Applicative ((<|>))
import Control.Concurrent (threadDelay)
import Control.Concurrent.MVar (newMVar, withMVar)
import Control.Exception (throwIO)
import Control.Monad (foldM, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (for_)
import Data.IORef
import Data.Int (Int64)
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
import Redis.Commands.Hash (HscanOptions (..), hscanNovalues, hscanWith)
import Redis.Commands.Keys (ScanOptions (..), ScanPage (..), scanWith)
import Redis.Commands.Server (infoOf)
import Redis.Commands.Set (SscanOptions (..), sscanWith)
import Redis.Commands.SortedSet (ZscanOptions (..), zscanWith)
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

-- | Folds over the keys of a server's database, or of a whole cluster.
--
-- > foldScan client Redis.scanDefaults (\() key -> putStrLn (show key)) ()
--
-- Throws 'Redis.Error.Error' if it makes no progress for a minute, and at once for an error that
-- will not pass, such as a command that this user may not run. \(O(n)\) on the servers in all their
-- keys, also in those that the options leave out, in steps of a fraction of a millisecond.
foldScan :: Client -> ScanOptions -> (a -> ByteString -> IO a) -> a -> IO a
foldScan client options = folding (walkScan walkDefaults client options)

-- | Folds over the fields and values of a hash. A hash that does not exist has none.
foldHscan :: Client -> HscanOptions -> ByteString -> (a -> (ByteString, ByteString) -> IO a) -> a -> IO a
foldHscan client options key = folding (walkHscan walkDefaults client options key)

-- | Folds over the fields of a hash, without their values. Not all servers can: see 'hscanNovalues'.
foldHscanNovalues :: Client -> HscanOptions -> ByteString -> (a -> ByteString -> IO a) -> a -> IO a
foldHscanNovalues client options key = folding (walkHscanNovalues walkDefaults client options key)

-- | Folds over the members of a set.
foldSscan :: Client -> SscanOptions -> ByteString -> (a -> ByteString -> IO a) -> a -> IO a
foldSscan client options key = folding (walkSscan walkDefaults client options key)

-- | Folds over the members of a sorted set and their scores, in no order.
foldZscan :: Client -> ZscanOptions -> ByteString -> (a -> (ByteString, Double) -> IO a) -> a -> IO a
foldZscan client options key = folding (walkZscan walkDefaults client options key)

folding :: IO (Walk item) -> (a -> item -> IO a) -> a -> IO a
folding begin each initial = begin >>= \walk -> foldWalk walk each initial

-- | Folds over the rest of a walk. The fold is strict: it evaluates the result so far before it
-- takes the next element.
foldWalk :: Walk item -> (a -> item -> IO a) -> a -> IO a
foldWalk walk each = pages
  where
    pages !folded = nextPage walk >>= maybe (pure folded) (\page -> foldM strictly folded page >>= pages)
    strictly !folded = each folded
{-# INLINE foldWalk #-}

-- | Begins a walk over keys. Sends nothing before the first page is pulled.
walkScan :: WalkOptions -> Client -> ScanOptions -> IO (Walk ByteString)
walkScan walking client options =
  walkKeys walking client options {scanCount = scanCount options <|> usualCount}

-- | Begins a walk over the fields and values of a hash.
walkHscan :: WalkOptions -> Client -> HscanOptions -> ByteString -> IO (Walk (ByteString, ByteString))
walkHscan walking client options key =
  walkItems walking client Collection {collectionKind = "HSCAN", collectionKey = key, collectionPage = hscanWith (hscanPages options) key}

-- | Begins a walk over the fields of a hash.
walkHscanNovalues :: WalkOptions -> Client -> HscanOptions -> ByteString -> IO (Walk ByteString)
walkHscanNovalues walking client options key =
  walkItems walking client Collection {collectionKind = "HSCAN", collectionKey = key, collectionPage = hscanNovalues (hscanPages options) key}

hscanPages :: HscanOptions -> HscanOptions
hscanPages options = options {hscanCount = hscanCount options <|> usualCount}

-- | Begins a walk over the members of a set.
walkSscan :: WalkOptions -> Client -> SscanOptions -> ByteString -> IO (Walk ByteString)
walkSscan walking client options key =
  walkItems walking client Collection {collectionKind = "SSCAN", collectionKey = key, collectionPage = sscanWith options {sscanCount = sscanCount options <|> usualCount} key}

-- | Begins a walk over the members of a sorted set.
walkZscan :: WalkOptions -> Client -> ZscanOptions -> ByteString -> IO (Walk (ByteString, Double))
walkZscan walking client options key =
  walkItems walking client Collection {collectionKind = "ZSCAN", collectionKey = key, collectionPage = zscanWith options {zscanCount = zscanCount options <|> usualCount} key}

-- Large enough that the round trip hardly counts, small enough that a step holds nobody up.
usualCount :: Maybe Int64
usualCount = Just 1000

-- | Pulls the next page, which may be empty; 'Nothing' at the end of the walk. Waits for the servers,
-- and for another thread that is pulling. Tries again after failures for as long as 'walkTimeout',
-- and then throws 'Redis.Error.Error'; the walk stays where it was, and may be pulled again. If a
-- thread is interrupted here, the page that it was about to get may be lost: to miss nothing,
-- continue then from a position that was kept before.
nextPage :: Walk item -> IO (Maybe [item])
nextPage = walkPull

-- | The position of a walk: after the page that was pulled last. Keep it, as text ('positionText'),
-- when that page has been dealt with. A walk that continues from there ('walkFrom'), with the same
-- options, returns what is left, and more if nodes have changed meanwhile. Never blocks.
walkPosition :: Walk item -> IO Position
walkPosition = walkStands

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
  ConnectionError _ -> not (isPermanent problem)
  TimeoutError _ -> True
  RoutingError _ -> True
  RefusedError (NoSuchNode _) -> True
  _ -> False

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

-- | Begins a walk over keys. There is no thread.
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
              tryAwaitReply pending `orElse` goOn $ \page -> do
                progress still
                turned remaining node telling page >>= writeIORef place
                pure (Just (toldOf telling (scanFound page)))
            ItsStatus status ->
              status `orElse` goOn $ \found -> do
                let (walk, task) = step (Saw node found) (keysWalk keys)
                when (IntSet.size (walkCovered walk) > IntSet.size (walkCovered (keysWalk keys))) (progress still)
                ask remaining {keysWalk = walk} node (keyFilterOf node walk) task >>= writeIORef place
                pull still place

    turned keys node telling page = do
      let (walk, task) = step (Turned node ((\(ScanCursor cursor) -> cursor) <$> scanNext page)) (keysWalk keys)
      ask keys {keysWalk = walk} node telling task

    ask keys node telling = \case
      Nothing -> pure keys
      Just (AskPage cursor) -> expecting . Page telling <$> submit client (onNode node (scanWith scanning (ScanCursor cursor)))
      Just AskStatus -> expecting . ItsStatus <$> statusAt client node
      where
        expecting asked = keys {keysTasks = keysTasks keys |> Asked node asked}

    -- Looks at every primary. If the round before brought nothing, the map may be old.
    newRound still keys = do
      let slot = slotFromInt . fst =<< IntSet.minView (slotsToCover (keysWalk keys))
      nobody <- nobodyFor cluster (maybe TargetAnyNode TargetSlot slot)
      stalled <- isStalled <$> readIORef still
      when stalled (for_ slot (missedNode cluster . TargetSlot))
      rest options still nobody
      primaries `orElse` (\problem -> keys <$ troubled still problem) $ \nodes -> do
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

-- | Goes on with the result, or deals with the error.
orElse :: IO (Either Error a) -> (Error -> IO b) -> (a -> IO b) -> IO b
orElse attempt failed onwards = attempt >>= either failed onwards

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

-- | Begins a walk over the elements of one key.
--
-- A collection that comes whole with the first page costs one round trip. For a larger one
-- the walk must know which process its cursors belong to: it asks the node that owns the key
-- for the identity of its process, begins there, and asks again at the end. If the identity
-- has changed by then, or if the key is on another node, the walk begins again.
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
      let again = tryAgain still place items
      case itemsWalk items of
        Finished -> pure Nothing
        Unbegun ->
          tryRun client (collectionPage scanStart) `orElse` again $ \case
            ScanPage {scanNext = Nothing, scanFound} -> Just scanFound <$ writeIORef place items {itemsWalk = Finished}
            _ ->
              owner `orElse` again $ \node -> do
                asked <- processAt client node
                page <- ask node scanStart
                asked `orElse` again $ \process -> do
                  writeIORef place Items {itemsWalk = Within node process (Just (cursorOf scanStart)), itemsAhead = Just page}
                  pull still place
        Within node process Nothing -> do
          asked <- processAt client node
          asked `orElse` again $ \now -> do
            writeIORef place items {itemsWalk = if now == process then Finished else Unbegun}
            pull still place
        Within node process (Just cursor) -> do
          page <- maybe (ask node (ScanCursor cursor)) pure (itemsAhead items)
          writeIORef place items {itemsAhead = Just page}
          tryAwaitReply page `orElse` again $ \ScanPage {scanNext, scanFound} -> do
            progress still
            ahead <- traverse (ask node) scanNext
            Just scanFound <$ writeIORef place Items {itemsWalk = Within node process (cursorOf <$> scanNext), itemsAhead = ahead}

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
      pure $
        process `orElse` (pure . Left) $ \name ->
          (>>= maybe (Left (RefusedError (NoSuchNode endpoint))) Right . ofCluster name) <$> tryAwaitReply nodes
    else pure (fmap alone <$> process)

-- A standalone server owns all keys, whatever its role.
alone :: ByteString -> NodeStatus
alone process = (owningNothing "" process) {statusOwned = IntSet.fromDistinctAscList [0 .. slotCount - 1]}

-- The status of a node with this name and this identity that owns no slots.
owningNothing :: ByteString -> ByteString -> NodeStatus
owningNothing name identity =
  NodeStatus {statusNode = name, statusIdentity = identity, statusOwned = IntSet.empty, statusLeaving = IntMap.empty, statusComing = IntMap.empty}

ofCluster :: ByteString -> [ClusterNode] -> Maybe NodeStatus
ofCluster process nodes = status <$> find (elem "myself" . clusterNodeFlags) nodes
  where
    status node
      | any (`elem` clusterNodeFlags node) ["master", "primary"] =
        (named node)
          { statusOwned = foldMap slotsOf (clusterNodeSlots node),
            statusLeaving = IntMap.fromList (clusterNodeMigrating node),
            statusComing = IntMap.fromList (clusterNodeImporting node)
          }
      | otherwise = named node
    named node =
      owningNothing (clusterNodeId node) (Char8.intercalate "/" [clusterNodeId node, process, Char8.pack (show (clusterNodeEpoch node))])
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
      pure ((\one other -> (\name since -> name <> "/" <> since) <$> one <*> other) <$> process <*> history)
  where
    field section name = do
      pending <- submit client (onNode endpoint (infoOf (section :| [])))
      pure $
        tryAwaitReply pending >>= \case
          Left (ReplyError ServerError {serverErrorCode = "NOPERM"}) -> pure (Right "")
          result -> pure (fromMaybe "" . lookup name <$> result)
