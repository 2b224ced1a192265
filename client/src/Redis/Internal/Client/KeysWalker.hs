-- | Walks over all keys of a server or a cluster.
--
-- Pages are requested one ahead: while the caller has one page, the next page of that node
-- is on its way, and a page of each other node. There is no thread. The decisions are made
-- in "Redis.Internal.Routing.Scan".
module Redis.Internal.Client.KeysWalker
  ( walkKeys,
  )
where

import Data.ByteString (ByteString)
import Data.Foldable (for_)
import Data.IORef
import Data.IntSet qualified as IntSet
import Data.Sequence (Seq, ViewL (EmptyL, (:<)), viewl, (|>))
import Data.Sequence qualified as Seq
import Redis.Client
import Redis.Command (NodeSet (Primaries), onNode)
import Redis.Commands.Keys (ScanOptions, ScanPage (..), scanWith)
import Redis.Error
import Redis.Internal.Client.Core (Client (..), Core (coreCluster))
import Redis.Internal.Client.NodeIdentity
import Redis.Internal.Client.Walker
import Redis.Internal.Command (Route)
import Redis.Internal.Command.Scan (ScanCursor (..))
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.Slot (keySlot, slotFromInt, slotNumber)
import Redis.Internal.Routing.Router
import Redis.Internal.Routing.Scan
import Redis.Internal.Routing.Target

-- | The state of a walk over all keys.
data Keys = Keys
  { keysWalk :: KeysWalk,
    -- | The requests on their way, in the order in which they were sent.
    keysTasks :: Seq Asked,
    keysStill :: Stall
  }

-- | A request to a node whose answer has not been read yet.
data Asked = Asked Endpoint AskedFor

data AskedFor
  = -- | A page, and which of its keys the caller gets.
    Page KeyFilter (Pending (ScanPage ByteString))
  | ItsStatus (IO (Either Error NodeStatus))

-- | Begins a walk. Sends nothing before the first page is pulled.
walkKeys :: WalkOptions -> Client -> ScanOptions -> IO (Walk ByteString)
walkKeys options client@(Client core) scanning = do
  still <- moving
  newWalk
    Keys {keysWalk = beginning, keysTasks = Seq.empty, keysStill = still}
    (\now keys -> keys {keysStill = now})
    pull
    (Position name . OverKeys . keysWalk)
  where
    name = ["SCAN"]
    beginning = case walkFrom options of
      Just (Position whose (OverKeys walk)) | whose == name -> walk
      _ -> newKeysWalk
    cluster = coreCluster core

    pull place = do
      keys <- readIORef place
      case viewl (keysTasks keys) of
        EmptyL
          | walkIsOver (keysWalk keys) -> pure Nothing
          | otherwise -> newRound keys >>= writeIORef place >> pull place
        Asked node wanted :< others -> do
          let remaining = keys {keysTasks = others}
          case wanted of
            Page telling pending ->
              tryAwaitReply pending >>= \case
                Left problem -> goOn place remaining problem
                Right page -> do
                  turned remaining node telling page >>= writeIORef place
                  pure (Just (toldOf telling (scanFound page)))
            ItsStatus status ->
              status >>= \case
                Left problem -> goOn place remaining problem
                Right found -> looked remaining node found >>= writeIORef place >> pull place

    goOn place keys problem = do
      -- If the problem is thrown, the next pull asks anew.
      writeIORef place keys
      setAside keys problem >>= writeIORef place
      pull place

    -- The scan of that node waits for the next round.
    setAside keys problem = do
      still <- troubled problem (keysStill keys)
      pure keys {keysStill = still}

    turned keys node telling page = do
      still <- moving
      let (walk, task) = step (Turned node ((\(ScanCursor cursor) -> cursor) <$> scanNext page)) (keysWalk keys)
      ask keys {keysWalk = walk, keysStill = still} node telling task

    looked keys node status = do
      let (walk, task) = step (Saw node status) (keysWalk keys)
          further = IntSet.size (walkCovered walk) > IntSet.size (walkCovered (keysWalk keys))
      still <- if further then moving else pure (keysStill keys)
      ask keys {keysWalk = walk, keysStill = still} node (keyFilterOf node walk) task

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
    newRound keys = do
      let slot = slotFromInt . fst =<< IntSet.minView (slotsToCover (keysWalk keys))
      nobody <- nobodyFor cluster (maybe TargetAnyNode TargetSlot slot)
      if isStalled (keysStill keys) then for_ slot (missedNode cluster . TargetSlot) else pure ()
      still <- rest options nobody (keysStill keys)
      primaries >>= \case
        Left problem -> setAside keys {keysStill = still} problem
        Right nodes -> do
          statuses <- traverse (\node -> Asked node . ItsStatus <$> statusAt client node) nodes
          pure keys {keysTasks = Seq.fromList statuses, keysStill = still}

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
