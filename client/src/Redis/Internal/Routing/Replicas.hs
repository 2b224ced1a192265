-- | Which of the nodes with the same data answers a read: the choice, what is known of the nodes for
-- it, and the slots for which there is no choice.
--
-- A choice is a list of tiers. The node is drawn from the first tier that is not empty. So
-- a candidate is found if there is one: a node that is down is only the last choice.
--
-- Which nodes are near is decided once for each round of questions ('nodeStats'). Near are the nodes
-- about as quick as the quickest, so that not all reads go to one node. A node that was near stays near
-- a little longer, so that two equally quick nodes do not change places with each round.
--
-- The latency probe asks the nodes, from when a caller first wants a read to stay near: PINGs for
-- latencies, and INFO for zones that the slot map does not have. A node is asked over the connections
-- that reads use, so the latency is the one that reads see, and by a thread of its own, so that one that
-- hangs delays no other.
--
-- A replica does not know that a slot of its primary is on the move: it answers a read of a key
-- that has left with nothing, where its primary answers ASK. No map tells of it either. So after a
-- redirect for a slot, reads of it stay with the primary for some time.
module Redis.Internal.Routing.Replicas
  ( Candidate (..),
    tiers,
    chooseReader,
    NodeStats (..),
    unseen,
    Answer (..),
    nodeStats,
    LatencyProbe,
    ProbeSetup (..),
    newLatencyProbe,
    want,
    currentNodeStats,
    MovingSlots,
    newMovingSlots,
    noteMoving,
    isMoving,
  )
where

import Control.Concurrent.STM
import Control.Exception (SomeException, mask_, try)
import Control.Monad (mfilter, replicateM, unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.Foldable (for_)
import Data.IORef
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (catMaybes, fromMaybe, isJust, isNothing, listToMaybe, mapMaybe)
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Error
import Redis.Internal.Config (ReadFrom (..))
import Redis.Internal.Network.MultiplexPool (MultiplexPool, connectNode, submitToNodeAsync)
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.Encode (Request, request)
import Redis.Internal.Protocol.Slot (Slot)
import Redis.Internal.Routing.Inquiry (answered, infoField)
import Redis.Internal.Routing.SlotMap
import Redis.Value
import System.Random (randomRIO)

data Candidate node = Candidate
  { candidateNode :: node,
    candidateIsPrimary :: Bool,
    -- | Whether the node does not count as down.
    candidateUp :: Bool,
    candidateStats :: NodeStats
  }
  deriving stock (Eq, Show)

-- | The latency probe's knowledge about a node.
data NodeStats = NodeStats
  { -- | The availability zone; 'Nothing' if it was not asked for, or the node has none.
    sightedZone :: Maybe ByteString,
    -- | How long the node takes to answer, smoothed; 'Nothing' if it did not answer.
    sightedLatency :: Maybe Nanos,
    -- | Whether it is one of the quickest nodes with its data.
    sightedNear :: Bool
  }
  deriving stock (Eq, Show)

unseen :: NodeStats
unseen = NodeStats {sightedZone = Nothing, sightedLatency = Nothing, sightedNear = False}

-- | The candidates in tiers, in the order of preference. Every candidate is in one of them,
-- unless only the primary is allowed. \(O(n)\).
tiers :: ReadFrom -> [Candidate node] -> [[Candidate node]]
tiers wanted candidates = case wanted of
  ReadPrimary -> [primary]
  PreferReplica -> [replicasUp, primary, candidates]
  ReadAny -> [up, primary, candidates]
  SameZone zone ->
    let inZone = (== Just zone) . sightedZone . candidateStats
     in [filter inZone replicasUp, filter inZone (filter candidateUp primary), replicasUp, primary, candidates]
  LowestLatency -> [filter (sightedNear . candidateStats) up, up, primary, candidates]
  where
    primary = filter candidateIsPrimary candidates
    up = filter candidateUp candidates
    replicasUp = filter (not . candidateIsPrimary) up

-- | The candidate that is drawn, given any number. 'Nothing' only if there is no candidate,
-- or no primary where only the primary is allowed.
chooseReader :: ReadFrom -> Int -> [Candidate node] -> Maybe (Candidate node)
chooseReader wanted drawn candidates = do
  best <- List.find (not . null) (tiers wanted candidates)
  listToMaybe (drop (drawn `mod` length best) best)

-- | A node's answers in one round of questions.
data Answer = Answer
  { -- | How long the quickest answer took; 'Nothing' if none came.
    answerLatency :: Maybe Nanos,
    -- | The zone; the outer 'Nothing' if it was not asked for.
    answerZone :: Maybe (Maybe ByteString)
  }
  deriving stock (Eq, Show)

silence :: Answer
silence = Answer {answerLatency = Nothing, answerZone = Nothing}

-- | The stats after a round: of the nodes of these groups, each of which has the same data, and of no
-- others. A node that was not asked keeps its stats. \(O(n \log n)\).
nodeStats :: [[Endpoint]] -> Map Endpoint Answer -> Map Endpoint NodeStats -> Map Endpoint NodeStats
nodeStats groups answers before = Map.unions (map (judged . updated) groups)
  where
    updated group = Map.fromList [(node, maybe id heard (Map.lookup node answers) (Map.findWithDefault unseen node before)) | node <- group]

    heard Answer {answerLatency, answerZone} stats =
      stats
        { sightedLatency = smoothed (sightedLatency stats) <$> answerLatency,
          sightedZone = fromMaybe (sightedZone stats) answerZone
        }

    -- After a silence, a node starts again with its new latency.
    smoothed Nothing measured = measured
    smoothed (Just known) measured = known + (measured - known) * 3 `quot` 10

    judged group = case mapMaybe sightedLatency (Map.elems group) of
      [] -> Map.map (\stats -> stats {sightedNear = False}) group
      latencies -> Map.map (near (minimum latencies)) group

    near quickest stats = stats {sightedNear = maybe False (<= limit) (sightedLatency stats)}
      where
        limit
          | sightedNear stats = quickest + quickest `quot` 2 + staysWithin
          | otherwise = quickest + quickest `quot` 5 + entersWithin

-- | How much slower than the quickest plus a fifth a node may be to become near: 0.2 ms.
-- Threads wait about that long for each other anyway.
entersWithin :: Nanos
entersWithin = 200000

-- | How much slower than the quickest plus a half a node may be to stay near: 0.5 ms.
staysWithin :: Nanos
staysWithin = 500000

data LatencyProbe = LatencyProbe
  { probeSetup :: ProbeSetup,
    probeWanted :: TVar Wanted,
    probeNodeStats :: IORef (Map Endpoint NodeStats)
  }

-- | The latency probe's access to the rest of the client.
data ProbeSetup = ProbeSetup
  { -- | The current map.
    probeMap :: IO SlotMap,
    -- | Changes with each map.
    probeNews :: STM Int,
    probeStopped :: STM Bool,
    -- | The connections that reads use, to a replica if the flag is set.
    probePool :: Bool -> Endpoint -> IO (Maybe MultiplexPool),
    -- | Seconds between two rounds, if latencies are wanted and if only zones are.
    probeIntervals :: (Double, Double),
    -- | Called when a node has answered.
    probeAnswered :: Endpoint -> IO ()
  }

-- | The knowledge that callers want.
data Wanted = Wanted
  { wantedLatencies :: Bool,
    wantedZones :: Set ByteString,
    -- | Called with a zone in which there is no node.
    wantedTell :: ByteString -> IO ()
  }

-- | A latency probe that asks nothing yet. The action is called with a zone that no node is in.
newLatencyProbe :: ProbeSetup -> (ByteString -> IO ()) -> IO LatencyProbe
newLatencyProbe setup wantedTell =
  LatencyProbe setup <$> newTVarIO Wanted {wantedLatencies = False, wantedZones = Set.empty, wantedTell} <*> newIORef Map.empty

-- | The node stats so far. Never blocks.
currentNodeStats :: LatencyProbe -> IO (Map Endpoint NodeStats)
currentNodeStats = readIORef . probeNodeStats

-- | Tells the latency probe how a caller wants to read. The first caller that wants a read to stay
-- near starts the latency probe's thread. After that it costs one read of a variable. Never blocks.
want :: LatencyProbe -> ReadFrom -> IO ()
want probe = \case
  SameZone zone -> asking (Set.member zone . wantedZones) (\wanted -> wanted {wantedZones = Set.insert zone (wantedZones wanted)})
  LowestLatency -> asking wantedLatencies (\wanted -> wanted {wantedLatencies = True})
  _ -> pure ()
  where
    asking known add = do
      already <- known <$> readTVarIO (probeWanted probe)
      -- Masked, because nobody else starts the thread if the first caller is interrupted here.
      unless already . mask_ $ do
        first <- atomically $ do
          wanted <- readTVar (probeWanted probe)
          writeTVar (probeWanted probe) (add wanted)
          pure (not (wantsAny wanted))
        when first . void $ spawn "redis survey" (drive probe)

wantsAny :: Wanted -> Bool
wantsAny Wanted {wantedLatencies, wantedZones} = wantedLatencies || not (Set.null wantedZones)

data Question = Question
  { questionReplica :: Bool,
    questionPing :: Bool,
    questionZone :: Bool
  }

-- | The latency probe's thread: one round after the other, until the client is closed.
drive :: LatencyProbe -> IO ()
drive probe = loop Map.empty Set.empty
  where
    setup = probeSetup probe

    -- The arguments: the nodes that have not answered yet, and the zones that were reported.
    loop unanswered told = do
      news <- atomically (probeNews setup)
      wanted <- readTVarIO (probeWanted probe)
      slotMap <- probeMap setup
      (answers, unanswered') <- askAll setup (questions wanted slotMap) unanswered
      known <- atomicModifyIORef' (probeNodeStats probe) $ \before ->
        let after = nodeStats (groupsOf slotMap) (Map.unionWith withZone answers (zonesOf slotMap)) before in (after, after)
      told' <- tellOfZones wanted slotMap answers known told
      stopped <- awaitNext setup wanted news slotMap (probeWanted probe)
      unless stopped (loop unanswered' told')

    groupsOf slotMap = [shardPrimary shard : shardReplicas shard | shard <- slotMapShards slotMap]
    zonesOf slotMap = Map.map (\zone -> silence {answerZone = Just (Just zone)}) (slotMapZones slotMap)
    withZone answer fromMap = answer {answerZone = answerZone fromMap}

-- | The questions of a round, for the nodes that have any.
questions :: Wanted -> SlotMap -> Map Endpoint Question
questions Wanted {wantedLatencies, wantedZones} slotMap =
  Map.filter (\question -> questionPing question || questionZone question) . Map.fromList $
    [ (node, Question {questionReplica, questionPing, questionZone})
      | shard <- slotMapShards slotMap,
        (questionReplica, node) <- (False, shardPrimary shard) : map ((,) True) (shardReplicas shard),
        -- A shard without replicas leaves no choice, so its latency does not matter.
        let questionPing = wantedLatencies && not (null (shardReplicas shard))
            questionZone = not (Set.null wantedZones) && Map.notMember node (slotMapZones slotMap)
    ]

-- | Asks all nodes at once, except those that still owe an answer, and waits for at most a
-- second. Later answers are used in the next round.
askAll :: ProbeSetup -> Map Endpoint Question -> Map Endpoint (TMVar Answer) -> IO (Map Endpoint Answer, Map Endpoint (TMVar Answer))
askAll setup asked unanswered = do
  begun <- Map.traverseWithKey (begin setup) (asked `Map.difference` unanswered)
  let waiting = begun <> unanswered
  late <- expiry 1
  atomically $ do
    heard <- traverse (fmap not . isEmptyTMVar) waiting
    stopped <- probeStopped setup
    check (and heard || stopped) `orElse` late
  results <- atomically (traverse tryReadTMVar waiting)
  -- A silent node is not near.
  pure (Map.map (fromMaybe silence) results, waiting `Map.restrictKeys` Map.keysSet (Map.filter isNothing results))

-- | Asks one node on a thread of its own. The thread ends by itself: connecting and commands
-- have time limits, and closing the node ends both.
begin :: ProbeSetup -> Endpoint -> Question -> IO (TMVar Answer)
begin setup node question = do
  cell <- newEmptyTMVarIO
  void . spawn ("redis probe " <> renderEndpoint node) $ do
    answer <- try (putQuestion setup node question)
    atomically . putTMVar cell $ case answer of
      Right heard -> heard
      Left (_ :: SomeException) -> silence
  pure cell

putQuestion :: ProbeSetup -> Endpoint -> Question -> IO Answer
putQuestion setup node Question {questionReplica, questionPing, questionZone} =
  probePool setup questionReplica node >>= \case
    Nothing -> pure silence
    Just pool -> do
      -- Connects first, so that the handshake is not measured.
      _ <- connectNode pool
      times <- if questionPing then catMaybes <$> replicateM 3 (timed pool) else pure []
      zone <- if questionZone then fmap (mfilter (not . ByteString.null) . infoField "availability_zone") <$> ask pool (request ["INFO", "server"]) else pure Nothing
      when (not (null times) || isJust zone) (probeAnswered setup node)
      pure Answer {answerLatency = if null times then Nothing else Just (minimum times), answerZone = zone}
  where
    timed pool = do
      began <- preciseNanos
      reply <- ask pool (request ["PING"])
      ended <- preciseNanos
      pure ((ended - began) <$ reply)

-- | Sends a request and waits for its reply. 'Nothing' for an error reply, too: a node that is
-- loading its data, or has lost its primary, answers no reads.
ask :: MultiplexPool -> Request -> IO (Maybe Value)
ask pool encoded =
  coarseNanos >>= \now ->
    either (const Nothing) Just <$> (submitToNodeAsync pool (deadlineAfter (nanosFromSeconds 1) now) encoded >>= answered)

-- | Reports each wanted zone without a node, once all nodes have told their zones.
tellOfZones :: Wanted -> SlotMap -> Map Endpoint Answer -> Map Endpoint NodeStats -> Set ByteString -> IO (Set ByteString)
tellOfZones Wanted {wantedZones, wantedTell} slotMap answers known told
  | Set.null nodes || not (all hasSaid nodes) = pure told
  | otherwise = do
    for_ (empty `Set.difference` told) wantedTell
    pure empty
  where
    nodes = slotMapNodes slotMap
    hasSaid node = Map.member node (slotMapZones slotMap) || maybe False (isJust . answerZone) (Map.lookup node answers)
    found = Set.fromList (catMaybes [sightedZone stats | stats <- Map.elems known])
    empty = wantedZones `Set.difference` found

-- | Waits until the next round is due, a caller wants to know more, or the map has other
-- nodes. Returns whether the client is closed.
awaitNext :: ProbeSetup -> Wanted -> Int -> SlotMap -> TVar Wanted -> IO Bool
awaitNext setup wanted news before current = do
  stretch <- randomRIO (0.9, 1.1)
  due <- expiry (stretch * (if wantedLatencies wanted then fst else snd) (probeIntervals setup))
  loop due news
  where
    loop due seen = do
      next <- atomically $ do
        stopped <- probeStopped setup
        latest <- probeNews setup
        now <- readTVar current
        let more = wantedLatencies now /= wantedLatencies wanted || wantedZones now /= wantedZones wanted
        if stopped || more
          then pure (Just stopped)
          else if latest /= seen then pure Nothing else Just False <$ due
      case next of
        Just stopped -> pure stopped
        Nothing -> do
          latest <- atomically (probeNews setup)
          after <- probeMap setup
          if slotMapShards after /= slotMapShards before || slotMapZones after /= slotMapZones before
            then pure False
            else loop due latest

-- | The slots, each with the time until which it counts as moving.
newtype MovingSlots = MovingSlots (IORef (Map Slot Nanos))

newMovingSlots :: IO MovingSlots
newMovingSlots = MovingSlots <$> newIORef Map.empty

-- | Records that a node has redirected for this slot. \(O(n)\) in the slots that move.
noteMoving :: MovingSlots -> Slot -> IO ()
noteMoving (MovingSlots known) slot = do
  now <- coarseNanos
  atomicModifyIORef' known (\slots -> (Map.insert slot (now + movingFor) (Map.filter (> now) slots), ()))

-- | Whether a node has redirected for this slot of late. One read if no slot ever moved.
isMoving :: MovingSlots -> Slot -> IO Bool
isMoving (MovingSlots known) slot =
  readIORef known >>= maybe (pure False) (\until' -> (< until') <$> coarseNanos) . Map.lookup slot

-- | How long a redirect counts: 10 s. Each further one, of which there are many while keys leave,
-- counts anew.
movingFor :: Nanos
movingFor = nanosFromSeconds 10
