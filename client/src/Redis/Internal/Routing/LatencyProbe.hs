-- | Asks the nodes of a cluster for their latencies and zones, for reads that should stay near
-- ("Redis.Internal.Routing.Readers").
--
-- Nothing is asked, and there is no thread, before a caller wants a read to stay near. Only
-- what is wanted is asked: PINGs for latencies, and INFO for zones that the slot map does not
-- have. A node is asked over the connections that reads use, so the latency is the one that
-- reads see. A node that hangs delays no other: each node is asked by a thread of its own,
-- and the round goes on without it.
module Redis.Internal.Routing.LatencyProbe
  ( LatencyProbe,
    ProbeSetup (..),
    newLatencyProbe,
    want,
    currentNodeStats,
  )
where

import Control.Concurrent.STM
import Control.Exception (SomeException, mask_, try)
import Control.Monad (replicateM, unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (for_)
import Data.IORef
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (catMaybes, fromMaybe, isJust, isNothing, listToMaybe)
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Error
import Redis.Internal.Config (ReadFrom (..))
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.MultiplexPool (MultiplexPool, connectNode, submitToNodeAsync)
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.Encode (Request, request)
import Redis.Internal.Routing.Readers
import Redis.Internal.Routing.SlotMap
import Redis.Value
import System.Random (randomRIO)

-- | The latency probe of one client.
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
newLatencyProbe probeSetup wantedTell = do
  probeWanted <- newTVarIO Wanted {wantedLatencies = False, wantedZones = Set.empty, wantedTell}
  probeNodeStats <- newIORef Map.empty
  pure LatencyProbe {probeSetup, probeWanted, probeNodeStats}

-- | The node stats so far. Never blocks.
currentNodeStats :: LatencyProbe -> IO (Map Endpoint NodeStats)
currentNodeStats = readIORef . probeNodeStats

-- | Tells the latency probe how a caller wants to read. The first caller that wants a read to stay
-- near starts the latency probe's thread. After that it costs one read of a variable. Never blocks.
want :: LatencyProbe -> ReadFrom -> IO ()
want probe = \case
  ReadPrimary -> pure ()
  PreferReplica -> pure ()
  ReadAny -> pure ()
  SameZone zone -> asking (Set.member zone . wantedZones) (\wanted -> wanted {wantedZones = Set.insert zone (wantedZones wanted)})
  LowestLatency -> asking wantedLatencies (\wanted -> wanted {wantedLatencies = True})
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

-- | The questions to one node.
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
    zonesOf slotMap = Map.map (\zone -> Answer {answerLatency = Nothing, answerZone = Just (Just zone)}) (slotMapZones slotMap)
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
  let answers = Map.map (fromMaybe Answer {answerLatency = Nothing, answerZone = Nothing}) results
  pure (answers, Map.mapMaybeWithKey (\node result -> if isNothing result then Map.lookup node waiting else Nothing) results)

-- | Asks one node on a thread of its own. The thread ends by itself: connecting and commands
-- have time limits, and closing the node ends both.
begin :: ProbeSetup -> Endpoint -> Question -> IO (TMVar Answer)
begin setup node question = do
  cell <- newEmptyTMVarIO
  void . spawn ("redis probe " <> renderEndpoint node) $ do
    answer <- try (putQuestion setup node question)
    atomically . putTMVar cell $ case answer of
      Right heard -> heard
      Left (_ :: SomeException) -> Answer {answerLatency = Nothing, answerZone = Nothing}
  pure cell

putQuestion :: ProbeSetup -> Endpoint -> Question -> IO Answer
putQuestion setup node Question {questionReplica, questionPing, questionZone} =
  probePool setup questionReplica node >>= \case
    Nothing -> pure Answer {answerLatency = Nothing, answerZone = Nothing}
    Just pool -> do
      -- Connects first, so that the handshake is not measured.
      _ <- connectNode pool
      times <- if questionPing then catMaybes <$> replicateM 3 (timed pool) else pure []
      zone <- if questionZone then fmap zoneFromInfo <$> ask pool (request ["INFO", "server"]) else pure Nothing
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
    submitToNodeAsync pool (deadlineAfter (nanosFromSeconds 1) now) encoded >>= waitSlotResult >>= \case
      Reply reply -> pure $ case withoutAttributes reply of
        ErrorReply _ -> Nothing
        plain -> Just plain
      Failure _ -> pure Nothing

-- | The zone in the text of INFO: @availability_zone:eu-1a@.
zoneFromInfo :: Value -> Maybe ByteString
zoneFromInfo value = do
  text <- case value of
    BulkString bytes -> Just bytes
    VerbatimString _ bytes -> Just bytes
    _ -> Nothing
  zone <- listToMaybe [Char8.filter (/= '\r') rest | line <- Char8.lines text, Just rest <- [Char8.stripPrefix "availability_zone:" line]]
  if Char8.null zone then Nothing else Just zone

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
        case () of
          _
            | stopped -> pure (Just True)
            | more -> pure (Just False)
            | latest /= seen -> pure Nothing
            | otherwise -> Just False <$ due
      case next of
        Just stopped -> pure stopped
        Nothing -> do
          latest <- atomically (probeNews setup)
          after <- probeMap setup
          if slotMapShards after /= slotMapShards before || slotMapZones after /= slotMapZones before
            then pure False
            else loop due latest
