-- | Asks the nodes of a cluster how quick they are and which zone they are in, for
-- reads that are to stay near ("Redis.Internal.Routing.Readers").
--
-- Nothing is asked, and there is no thread, before somebody wants a read to stay
-- near; nor what nobody wants to know: PINGs are for latencies, and INFO is for zones
-- that the slot map does not tell. A node is asked over the connections that reads
-- take, so what is measured is what reads wait for. One that hangs holds up nobody: each
-- is asked by a thread of its own, and the round goes on without it.
module Redis.Internal.Routing.Survey
  ( Survey,
    SurveySetup (..),
    newSurvey,
    want,
    currentSightings,
  )
where

import Control.Concurrent.STM
import Control.Exception (SomeException, try)
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
import Redis.Internal.Network.Clock
import Redis.Internal.Network.MultiplexPool (MultiplexPool, connectNode, submitToNodeAsync)
import Redis.Internal.Network.ResponseSlot
import Redis.Internal.Network.Worker (expiry, spawn)
import Redis.Internal.Protocol.Encode (Request, request)
import Redis.Internal.Routing.Readers
import Redis.Internal.Routing.SlotMap
import Redis.Value
import System.Random (randomRIO)

-- | What is asked of whom.
data Survey = Survey
  { surveySetup :: SurveySetup,
    surveyWanted :: TVar Wanted,
    surveySightings :: IORef (Map Endpoint Sighting)
  }

-- | What the driver goes by.
data SurveySetup = SurveySetup
  { -- | The map as it is.
    surveyMap :: IO SlotMap,
    -- | Changes with each map.
    surveyNews :: STM Int,
    surveyStopped :: STM Bool,
    -- | The connections that reads take, to a replica if the flag says so.
    surveyPool :: Bool -> Endpoint -> IO (Maybe MultiplexPool),
    -- | Seconds between two rounds for latencies, and for zones.
    surveyIntervals :: (Double, Double),
    -- | A node has answered.
    surveyAnswered :: Endpoint -> IO ()
  }

-- | What somebody wants to know.
data Wanted = Wanted
  { wantedLatencies :: Bool,
    wantedZones :: Set ByteString,
    -- | Whom to tell of a zone in which nobody is.
    wantedTell :: ByteString -> IO ()
  }

-- | Asks nobody yet. The action is told of a zone in which nobody is known to be.
newSurvey :: SurveySetup -> (ByteString -> IO ()) -> IO Survey
newSurvey surveySetup wantedTell = do
  surveyWanted <- newTVarIO Wanted {wantedLatencies = False, wantedZones = Set.empty, wantedTell}
  surveySightings <- newIORef Map.empty
  pure Survey {surveySetup, surveyWanted, surveySightings}

-- | What is known so far. Never blocks.
currentSightings :: Survey -> IO (Map Endpoint Sighting)
currentSightings = readIORef . surveySightings

-- | Says how somebody wants to read. The first who wants a read to stay near begins the
-- survey. One read of a variable after that. Never blocks.
want :: Survey -> ReadFrom -> IO ()
want survey = \case
  ReadPrimary -> pure ()
  PreferReplica -> pure ()
  ReadAny -> pure ()
  SameZone zone -> asking (Set.member zone . wantedZones) (\wanted -> wanted {wantedZones = Set.insert zone (wantedZones wanted)})
  LowestLatency -> asking wantedLatencies (\wanted -> wanted {wantedLatencies = True})
  where
    asking known add = do
      already <- known <$> readTVarIO (surveyWanted survey)
      unless already $ do
        first <- atomically $ do
          wanted <- readTVar (surveyWanted survey)
          writeTVar (surveyWanted survey) (add wanted)
          pure (not (wantsAny wanted))
        when first . void $ spawn "redis survey" (drive survey)

wantsAny :: Wanted -> Bool
wantsAny Wanted {wantedLatencies, wantedZones} = wantedLatencies || not (Set.null wantedZones)

-- | What is wanted of one node.
data Question = Question
  { questionReplica :: Bool,
    questionPing :: Bool,
    questionZone :: Bool
  }

-- | One round after the other, until the client is closed.
drive :: Survey -> IO ()
drive survey = loop Map.empty Set.empty
  where
    setup = surveySetup survey

    -- Given who has not answered yet, and which zones were told of.
    loop unanswered told = do
      news <- atomically (surveyNews setup)
      wanted <- readTVarIO (surveyWanted survey)
      slotMap <- surveyMap setup
      (answers, unanswered') <- askAll setup (questions wanted slotMap) unanswered
      known <- atomicModifyIORef' (surveySightings survey) $ \before ->
        let after = sightings (groupsOf slotMap) (Map.unionWith withZone answers (zonesOf slotMap)) before in (after, after)
      told' <- tellOfZones wanted slotMap answers known told
      stopped <- awaitNext setup wanted news slotMap (surveyWanted survey)
      unless stopped (loop unanswered' told')

    groupsOf slotMap = [shardPrimary shard : shardReplicas shard | shard <- slotMapShards slotMap]
    zonesOf slotMap = Map.map (\zone -> Answer {answerLatency = Nothing, answerZone = Just (Just zone)}) (slotMapZones slotMap)
    withZone answer fromMap = answer {answerZone = answerZone fromMap}

-- | Those of whom something is wanted.
questions :: Wanted -> SlotMap -> Map Endpoint Question
questions Wanted {wantedLatencies, wantedZones} slotMap =
  Map.filter (\question -> questionPing question || questionZone question) . Map.fromList $
    [ (node, Question {questionReplica, questionPing, questionZone})
      | shard <- slotMapShards slotMap,
        (questionReplica, node) <- (False, shardPrimary shard) : map ((,) True) (shardReplicas shard),
        -- Where there is no choice, nobody need know.
        let questionPing = wantedLatencies && not (null (shardReplicas shard))
            questionZone = not (Set.null wantedZones) && Map.notMember node (slotMapZones slotMap)
    ]

-- | Asks all of them at once, but for those who have not answered yet, and waits for at
-- most a second. What those have to say is heard in the next round.
askAll :: SurveySetup -> Map Endpoint Question -> Map Endpoint (TMVar Answer) -> IO (Map Endpoint Answer, Map Endpoint (TMVar Answer))
askAll setup asked unanswered = do
  begun <- Map.traverseWithKey (begin setup) (asked `Map.difference` unanswered)
  let waiting = begun <> unanswered
  late <- expiry 1
  atomically $ do
    heard <- traverse (fmap not . isEmptyTMVar) waiting
    stopped <- surveyStopped setup
    check (and heard || stopped) `orElse` late
  results <- atomically (traverse tryReadTMVar waiting)
  -- Who is silent is not near.
  let answers = Map.map (fromMaybe Answer {answerLatency = Nothing, answerZone = Nothing}) results
  pure (answers, Map.mapMaybeWithKey (\node result -> if isNothing result then Map.lookup node waiting else Nothing) results)

-- | Asks one node on a thread of its own, which ends by itself: a connection and a
-- command both have their time, and closing the node ends both.
begin :: SurveySetup -> Endpoint -> Question -> IO (TMVar Answer)
begin setup node question = do
  cell <- newEmptyTMVarIO
  void . spawn ("redis probe " <> renderEndpoint node) $ do
    answer <- try (putQuestion setup node question)
    atomically . putTMVar cell $ case answer of
      Right heard -> heard
      Left (_ :: SomeException) -> Answer {answerLatency = Nothing, answerZone = Nothing}
  pure cell

putQuestion :: SurveySetup -> Endpoint -> Question -> IO Answer
putQuestion setup node Question {questionReplica, questionPing, questionZone} =
  surveyPool setup questionReplica node >>= \case
    Nothing -> pure Answer {answerLatency = Nothing, answerZone = Nothing}
    Just pool -> do
      -- So that it is not the handshake that is measured.
      _ <- connectNode pool
      times <- if questionPing then catMaybes <$> replicateM 3 (timed pool) else pure []
      zone <- if questionZone then fmap zoneFromInfo <$> ask pool (request ["INFO", "server"]) else pure Nothing
      when (not (null times) || isJust zone) (surveyAnswered setup node)
      pure Answer {answerLatency = if null times then Nothing else Just (minimum times), answerZone = zone}
  where
    timed pool = do
      began <- preciseNanos
      reply <- ask pool (request ["PING"])
      ended <- preciseNanos
      pure ((ended - began) <$ reply)

-- | 'Nothing' for an error, too: a node that loads its data, or has lost its primary,
-- answers nobody's reads.
ask :: MultiplexPool -> Request -> IO (Maybe Value)
ask pool encoded =
  submitToNodeAsync pool (Just (nanosFromSeconds 1)) encoded >>= waitSlotResult >>= \case
    Reply reply -> pure $ case withoutAttributes reply of
      ErrorReply _ -> Nothing
      plain -> Just plain
    Failure _ -> pure Nothing

-- | @availability_zone:eu-1a@ in the text of INFO.
zoneFromInfo :: Value -> Maybe ByteString
zoneFromInfo value = do
  text <- case value of
    BulkString bytes -> Just bytes
    VerbatimString _ bytes -> Just bytes
    _ -> Nothing
  zone <- listToMaybe [Char8.filter (/= '\r') rest | line <- Char8.lines text, Just rest <- [Char8.stripPrefix "availability_zone:" line]]
  if Char8.null zone then Nothing else Just zone

-- | Tells of each zone in which nobody is, once everybody has said where he is.
tellOfZones :: Wanted -> SlotMap -> Map Endpoint Answer -> Map Endpoint Sighting -> Set ByteString -> IO (Set ByteString)
tellOfZones Wanted {wantedZones, wantedTell} slotMap answers known told
  | Set.null nodes || not (all hasSaid nodes) = pure told
  | otherwise = do
    for_ (empty `Set.difference` told) wantedTell
    pure empty
  where
    nodes = slotMapNodes slotMap
    hasSaid node = Map.member node (slotMapZones slotMap) || maybe False (isJust . answerZone) (Map.lookup node answers)
    found = Set.fromList (catMaybes [sightedZone sighting | sighting <- Map.elems known])
    empty = wantedZones `Set.difference` found

-- | Waits until it is time for another round, somebody wants to know more, or the map
-- names other nodes. Whether the client is closed.
awaitNext :: SurveySetup -> Wanted -> Int -> SlotMap -> TVar Wanted -> IO Bool
awaitNext setup wanted news before current = do
  stretch <- randomRIO (0.9, 1.1)
  due <- expiry (stretch * (if wantedLatencies wanted then fst else snd) (surveyIntervals setup))
  loop due news
  where
    loop due seen = do
      next <- atomically $ do
        stopped <- surveyStopped setup
        latest <- surveyNews setup
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
          latest <- atomically (surveyNews setup)
          after <- surveyMap setup
          if slotMapShards after /= slotMapShards before || slotMapZones after /= slotMapZones before
            then pure False
            else loop due latest
