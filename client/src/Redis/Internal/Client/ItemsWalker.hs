-- | Walks over the elements of one key.
--
-- A collection that comes whole with the first page costs one round trip. For a larger one
-- the walk must know which process its cursors belong to: it asks the node that owns the key
-- for the identity of its process, begins there, and asks again at the end. If the identity
-- has changed by then, or if the key is on another node, the walk begins again.
module Redis.Internal.Client.ItemsWalker
  ( walkItems,
    Collection (..),
  )
where

import Data.ByteString (ByteString)
import Data.IORef
import Redis.Client
import Redis.Command (Command, commandFacts, onNode)
import Redis.Commands.Keys (ScanPage (..))
import Redis.Error
import Redis.Internal.Client.Core (Client (..), Core (coreCluster))
import Redis.Internal.Client.NodeIdentity
import Redis.Internal.Client.Walker
import Redis.Internal.Command.Scan (ScanCursor (..), scanStart)
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Internal.Routing.Nodes (Destination (destinationNode), nodeEndpoint)
import Redis.Internal.Routing.Router
import Redis.Internal.Routing.Scan
import Redis.Internal.Routing.Target

-- | The collection of one key, and the command that reads a page of it.
data Collection item = Collection
  { -- | The name of the command; it tells walks of different kinds apart.
    collectionKind :: ByteString,
    collectionKey :: ByteString,
    collectionPage :: ScanCursor -> Command (ScanPage item)
  }

-- | The state of a walk over a collection.
data Items item = Items
  { itemsWalk :: ItemsWalk,
    -- | The page that was requested and has not been read yet.
    itemsAhead :: Maybe (Pending (ScanPage item)),
    itemsStill :: Stall
  }

-- | Begins a walk. Sends nothing before the first page is pulled.
walkItems :: forall item. WalkOptions -> Client -> Collection item -> IO (Walk item)
walkItems options client@(Client core) Collection {collectionKind, collectionKey, collectionPage} = do
  still <- moving
  newWalk
    Items {itemsWalk = beginning, itemsAhead = Nothing, itemsStill = still}
    (\now items -> items {itemsStill = now})
    pull
    (Position name . OverItems . itemsWalk)
  where
    name = [collectionKind, collectionKey]
    beginning = case walkFrom options of
      Just (Position whose (OverItems walk)) | whose == name -> walk
      _ -> Unbegun
    cluster = coreCluster core

    pull :: IORef (Items item) -> IO (Maybe [item])
    pull place = do
      items <- readIORef place
      case itemsWalk items of
        Finished -> pure Nothing
        Unbegun -> begin place items
        Within node process Nothing -> do
          again <- processAt client node
          again >>= \case
            Left problem -> tryAgain place items problem
            Right now -> do
              writeIORef place items {itemsWalk = if now == process then Finished else Unbegun}
              pull place
        Within node process (Just cursor) -> do
          page <- maybe (ask node (ScanCursor cursor)) pure (itemsAhead items)
          writeIORef place items {itemsAhead = Just page}
          tryAwaitReply page >>= \case
            Left problem -> tryAgain place items problem
            Right ScanPage {scanNext, scanFound} -> do
              still <- moving
              ahead <- traverse (ask node) scanNext
              writeIORef place Items {itemsWalk = Within node process (cursorOf <$> scanNext), itemsAhead = ahead, itemsStill = still}
              pure (Just scanFound)

    begin place items =
      tryRun client (collectionPage scanStart) >>= \case
        Left problem -> tryAgain place items problem
        Right ScanPage {scanNext = Nothing, scanFound} -> do
          writeIORef place items {itemsWalk = Finished}
          pure (Just scanFound)
        Right ScanPage {scanNext = Just _} ->
          owner >>= \case
            Left problem -> tryAgain place items problem
            Right node -> do
              asked <- processAt client node
              page <- ask node scanStart
              asked >>= \case
                Left problem -> tryAgain place items problem
                Right process -> do
                  writeIORef place items {itemsWalk = Within node process (Just (cursorOf scanStart)), itemsAhead = Just page}
                  pull place

    -- Goes on at the same cursor if the key is still on the same node.
    tryAgain place items problem = do
      -- If the problem is thrown, the next pull asks anew.
      writeIORef place items {itemsAhead = Nothing}
      still <- troubled problem (itemsStill items) >>= rest options problem
      now <- owner
      let stays = case (itemsWalk items, now) of
            (Within node _ _, Right current) -> node == current && not (isElsewhere problem)
            _ -> False
      writeIORef place Items {itemsWalk = if stays then itemsWalk items else Unbegun, itemsAhead = Nothing, itemsStill = still}
      pull place
    isElsewhere = \case
      ReplyError ServerError {serverErrorCode} -> serverErrorCode `elem` ["MOVED", "ASK"]
      _ -> False

    owner = do
      now <- coarseNanos
      fmap (nodeEndpoint . destinationNode) <$> destinationEventually cluster (now + nanosFromSeconds 1) (commandFacts (collectionPage scanStart)) (TargetPrimary (keySlot collectionKey))
    ask node cursor = submit client (onNode node (collectionPage cursor))
    cursorOf (ScanCursor cursor) = cursor
