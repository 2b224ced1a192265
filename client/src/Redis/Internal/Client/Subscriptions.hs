-- | The subscriptions of a client, and the connections that carry them.
--
-- Subscriptions that never press back share a /group/: one connection for each node that one
-- of them needs. A subscription that presses back is a group by itself. Any thread steps a group's
-- "Redis.Internal.Client.Subscribing" in a transaction, which also puts gaps in their places; all other
-- actions are left to the group's driver. The thread that reads a connection sorts what comes and hands
-- messages to the subscribers. RESP3 sends pushes and RESP2 sends arrays; both look the same here.
module Redis.Internal.Client.Subscriptions
  ( Subscriptions,
    newSubscriptions,
    closeSubscriptions,
    SubscriptionGauges (..),
    subscriptionGauges,
    Subscriber,
    openSubscriber,
    closeSubscriber,
    subscriberQueue,
    subscriberTopics,
    addTopics,
    removeTopics,
  )
where

import Control.Concurrent.STM
import Control.Exception (SomeException, displayException, mask, mask_, onException, throwIO, try)
import Control.Monad (join, unless, void, when)
import Data.ByteString (ByteString)
import Data.Foldable (foldl', for_, traverse_)
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (catMaybes, fromMaybe, isJust, isNothing)
import Data.Set qualified as Set
import Data.Time.Clock (UTCTime, addUTCTime, getCurrentTime)
import Data.Tuple (swap)
import Redis.Duration (seconds)
import Redis.Error
import Redis.Internal.Client.EventQueue hiding (Event)
import Redis.Internal.Client.EventQueue qualified as EventQueue
import Redis.Internal.Client.Subscribing
import Redis.Internal.Config hiding (Topology (..))
import Redis.Internal.Hooks
import Redis.Internal.Network.Handshake (ConnectionRole (ForPrimary), ConnectionUse (SharedFor))
import Redis.Internal.Network.Open (ConnectionSetup (..), Purpose (..))
import Redis.Internal.Network.Runtime
import Redis.Internal.Network.Stream
import Redis.Internal.Protocol.Encode (Request, request, requestBytes)
import Redis.Internal.Protocol.Repeated
import Redis.Internal.Routing.Cluster
import Redis.Internal.Routing.Router
import Redis.Internal.Routing.SlotMap
import Redis.Internal.Routing.Target
import Redis.Value
import System.Random (newStdGen)

data Subscriptions = Subscriptions
  { subscriptionsSetup :: ConnectionSetup,
    subscriptionsCluster :: ClusterClient,
    subscriptionsNumber :: TVar Int,
    -- | The group of the subscriptions that never press back.
    subscriptionsShared :: TVar (Maybe Group),
    -- | The groups whose driver runs.
    subscriptionsGroups :: TVar (IntMap Group),
    subscriptionsClosed :: TVar Bool
  }

data Group = Group
  { groupNumber :: Int,
    groupState :: TVar State,
    groupSubscribers :: TVar (IntMap Subscriber),
    -- | The actions for the driver.
    groupActions :: TQueue Action,
    -- | The connections that are open or being opened.
    groupConnections :: TVar (IntMap Connection),
    -- | Set when no subscriber is left.
    groupOver :: TVar Bool
  }

data Connection = Connection
  { -- | Why the connection is not wanted any more.
    connectionUnwanted :: TVar (Maybe ConnectionCause),
    connectionListener :: TVar (Maybe Listener)
  }

data Subscriber = Subscriber
  { subscriberNumber :: SubscriberId,
    subscriberOwner :: Subscriptions,
    subscriberGroup :: Group,
    subscriberQueue :: EventQueue,
    -- | The topics that it has asked for and that were not refused.
    subscriberTopics :: TVar Topics,
    -- | The topics that were refused since it asked for them.
    subscriberRefused :: TVar (Map Topic Error),
    -- | The topics for which callers of 'addTopics' wait, and how many callers.
    subscriberAwaited :: TVar (Map Topic Int)
  }

-- | A time by both clocks, the monotonic one and the wall clock.
data Moment = Moment Nanos UTCTime

-- The wall clock is read first: a thread that is interrupted in between makes a gap begin earlier, not later.
moment :: IO Moment
moment = flip Moment <$> getCurrentTime <*> preciseNanos

-- | A monotonic time by the wall clock.
atWall :: Moment -> Nanos -> UTCTime
atWall (Moment now wall) nanos = addUTCTime (realToFrac (secondsFromNanos (nanos - now))) wall

newSubscriptions :: ConnectionSetup -> ClusterClient -> IO Subscriptions
newSubscriptions setup cluster = Subscriptions setup cluster <$> newTVarIO 0 <*> newTVarIO Nothing <*> newTVarIO IntMap.empty <*> newTVarIO False

-- | Ends every subscription, and returns when their connections are closed.
closeSubscriptions :: Subscriptions -> IO ()
closeSubscriptions subscriptions = do
  atomically $ do
    writeTVar (subscriptionsClosed subscriptions) True
    groups <- readTVar (subscriptionsGroups subscriptions)
    for_ groups $ \group -> do
      readTVar (groupSubscribers group) >>= traverse_ (\subscriber -> endEventQueue (subscriberQueue subscriber) ClientClosed)
      writeTVar (groupOver group) True
  atomically (readTVar (subscriptionsGroups subscriptions) >>= check . IntMap.null)

-- | Gauges of a client's subscriptions, all together.
data SubscriptionGauges = SubscriptionGauges
  { -- | Subscriptions that have not ended.
    gaugeSubscriptions :: Int,
    -- | Their open connections.
    gaugeListening :: Int,
    -- | Messages and gaps that have come and were not taken yet.
    gaugeEventsWaiting :: Int
  }
  deriving stock (Eq, Show)

-- | The gauges now. \(O(n)\) in the subscriptions and their connections.
subscriptionGauges :: Subscriptions -> IO SubscriptionGauges
subscriptionGauges subscriptions = readTVarIO (subscriptionsGroups subscriptions) >>= fmap (foldl' plus (SubscriptionGauges 0 0 0)) . traverse (atomically . groupGauges)
  where
    plus (SubscriptionGauges a b c) (SubscriptionGauges a' b' c') = SubscriptionGauges (a + a') (b + b') (c + c')
    groupGauges group = do
      subscribers <- readTVar (groupSubscribers group)
      ends <- traverse (eventQueueEnded . subscriberQueue) subscribers
      listeners <- readTVar (groupConnections group) >>= traverse (readTVar . connectionListener)
      waiting <- traverse (eventQueueWaiting . subscriberQueue) subscribers
      pure SubscriptionGauges {gaugeSubscriptions = IntMap.size (IntMap.filter isNothing ends), gaugeListening = length (catMaybes (IntMap.elems listeners)), gaugeEventsWaiting = sum waiting}

-- | Opens a subscription without topics. The caller must close it.
openSubscriber :: Subscriptions -> WhenFull -> Int -> IO Subscriber
openSubscriber subscriptions whenFull capacity = mask_ $ do
  queue <- getCurrentTime >>= newEventQueue whenFull capacity
  fresh <- newGroup subscriptions
  (subscriber, begun) <- atomically $ do
    closed <- readTVar (subscriptionsClosed subscriptions)
    when closed (throwSTM ClientClosed)
    number <- nextNumber subscriptions
    (group, begun) <- groupFor fresh
    subscriber <- Subscriber number subscriptions group queue <$> newTVar mempty <*> newTVar Map.empty <*> newTVar Map.empty
    modifyTVar' (groupSubscribers group) (IntMap.insert number subscriber)
    pure (subscriber, begun)
  when begun . void $ spawn "redis subscriptions" (drive subscriptions (subscriberGroup subscriber))
  pure subscriber
  where
    groupFor fresh
      | whenFull == BackPressure = (fresh, True) <$ enrol fresh
      | otherwise =
        readTVar (subscriptionsShared subscriptions) >>= \case
          Just shared -> do
            over <- readTVar (groupOver shared)
            if over then share fresh else pure (shared, False)
          Nothing -> share fresh
    share fresh = (fresh, True) <$ (writeTVar (subscriptionsShared subscriptions) (Just fresh) *> enrol fresh)
    enrol group = modifyTVar' (subscriptionsGroups subscriptions) (IntMap.insert (groupNumber group) group)

nextNumber :: Subscriptions -> STM Int
nextNumber subscriptions = stateTVar (subscriptionsNumber subscriptions) (\number -> (number, number + 1))

newGroup :: Subscriptions -> IO Group
newGroup subscriptions = do
  state <- newState (settingsOf (setupConfig (subscriptionsSetup subscriptions))) <$> newStdGen
  number <- atomically (nextNumber subscriptions)
  Group number <$> newTVarIO state <*> newTVarIO IntMap.empty <*> newTQueueIO <*> newTVarIO IntMap.empty <*> newTVarIO False

settingsOf :: Config -> Settings
settingsOf config =
  Settings
    { settingsBackoff = configBackoff config,
      settingsSilence = nanosFromSeconds <$> configSilenceLimit config,
      settingsBeat = nanosFromSeconds (maybe id min (configSilenceLimit config) longestBeat / 2),
      settingsHorizon = nanosFromSeconds (configRefreshInterval config + refreshTakes),
      settingsForwarding = nanosFromSeconds 1,
      -- A node tells its role at the latest with its ping of each second. Two looks at the map come meanwhile.
      settingsDemotion = nanosFromSeconds (3 + 3 * configRefreshThrottle config),
      settingsMapping = configAddressMapping config
    }
  where
    longestBeat = 2.5
    -- A look at the cluster's map asks up to three times, each for at most 2 s.
    refreshTakes = 6

-- | Ends a subscription, and gives up everything that no other needs. Does not wait.
closeSubscriber :: Subscriber -> IO ()
closeSubscriber subscriber = do
  now <- moment
  atomically $ do
    endEventQueue (subscriberQueue subscriber) ClientClosed
    abandon now subscriber
    modifyTVar' (groupSubscribers group) (IntMap.delete (subscriberNumber subscriber))
    nobody <- IntMap.null <$> readTVar (groupSubscribers group)
    when nobody (writeTVar (groupOver group) True)
  where
    group = subscriberGroup subscriber

abandon :: Moment -> Subscriber -> STM ()
abandon now subscriber = readTVar (subscriberTopics subscriber) >>= withdraw now subscriber

withdraw :: Moment -> Subscriber -> Topics -> STM ()
withdraw now subscriber topics = do
  modifyTVar' (subscriberTopics subscriber) (`topicsWithout` topics)
  stepGroup now (subscriberGroup subscriber) (Unwant (subscriberNumber subscriber) (topicList topics))

-- | Adds topics to a subscription, and returns when they are heard. Throws if the servers
-- refuse a topic or do not confirm all in time; then it hears none of those that it did not
-- hear before, unless another caller still waits for them.
addTopics :: Subscriber -> Topics -> IO ()
addTopics subscriber topics = mask $ \restore -> do
  now <- moment
  awaited <- atomically $ do
    eventQueueEnded (subscriberQueue subscriber) >>= traverse_ throwSTM
    known <- readTVar (subscriberTopics subscriber)
    before <- readTVar (subscriberAwaited subscriber)
    let added = topics `topicsWithout` known
        awaited = topicList added <> filter (`Map.member` before) (topicList (topics `topicsAmong` known))
    writeTVar (subscriberTopics subscriber) (known <> added)
    writeTVar (subscriberAwaited subscriber) (foldl' (\counts name -> Map.insertWith (+) name 1 counts) before awaited)
    modifyTVar' (subscriberRefused subscriber) (\refused -> foldl' (flip Map.delete) refused (topicList added))
    awaited <$ stepGroup now group (Want number (topicList added))
  restore (maybe (pure retry) expiry limit >>= awaitAll) `onException` giveUp awaited
  atomically $ do
    state <- readTVar (groupState group)
    -- What is heard now stays, even if another caller fails. What is not was removed meanwhile, and
    -- another caller may have added it again and wait for it.
    let ended counts name = if isHeard state number name then Map.delete name counts else lessOne counts name
    modifyTVar' (subscriberAwaited subscriber) (\counts -> foldl' ended counts awaited)
  where
    subscriptions = subscriberOwner subscriber
    group = subscriberGroup subscriber
    number = subscriberNumber subscriber
    config = setupConfig (subscriptionsSetup subscriptions)
    limit = (configConnectTimeout config +) <$> configCommandTimeout config

    lessOne counts name = Map.update (\count -> if count > 1 then Just (count - 1) else Nothing) name counts

    -- Ends this caller's wait, and removes the topics for which nobody else waits. In one
    -- transaction: a caller that asks for a topic in between would take it for heard.
    giveUp awaited = do
      now <- moment
      atomically $ do
        before <- readTVar (subscriberAwaited subscriber)
        let left = foldl' lessOne before awaited
            unwanted = [name | name <- awaited, Map.member name before, Map.notMember name left]
        writeTVar (subscriberAwaited subscriber) left
        modifyTVar' (subscriberRefused subscriber) (`Map.withoutKeys` Set.fromList unwanted)
        withdraw now subscriber (foldMap topic unwanted)

    -- Also waits for topics that another thread is adding, and fails if they are refused. Returns if
    -- somebody removes them.
    awaitAll over = do
      news <- readTVarIO (clusterNews (subscriptionsCluster subscriptions))
      join . atomically $
        settled
          `orElse` ((whyNot >>= throwIO) <$ over)
          `orElse` ((hopeless >>= maybe (awaitAll over) throwIO) <$ newsSince news)

    settled = do
      ended <- eventQueueEnded (subscriberQueue subscriber)
      refused <- readTVar (subscriberRefused subscriber)
      wanted <- readTVar (subscriberTopics subscriber)
      state <- readTVar (groupState group)
      case catMaybes (ended : map (`Map.lookup` refused) (topicList topics)) of
        problem : _ -> pure (throwIO problem)
        [] -> pure () <$ check (all (isHeard state number) (topicList (topics `topicsAmong` wanted)))

    newsSince news = readTVar (clusterNews (subscriptionsCluster subscriptions)) >>= \current -> check (current /= news)

    -- No server is known, and asking again would bring the same answer.
    hopeless = do
      lasts <- newsIsPermanent (subscriptionsCluster subscriptions)
      if lasts then Just <$> nobody else pure Nothing
    nobody = nobodyFor (subscriptionsCluster subscriptions) TargetAnyNode

    whyNot = do
      state <- readTVarIO (groupState group)
      case (stateServers state, lastTrouble (filter (not . isHeard state number) (topicList topics)) state) of
        (Nothing, _) -> nobody
        (_, Just (endpoint, cause)) -> pure (ConnectionError (ConnectionFailure "" NotSent endpoint cause))
        _ -> pure (TimeoutError (TimeoutFailure "" NotSent (seconds (fromMaybe 0 limit)) Nothing))

-- | Removes topics from a subscription; events that came can still be taken. Does not wait.
removeTopics :: Subscriber -> Topics -> IO ()
removeTopics subscriber topics = do
  now <- moment
  atomically (withdraw now subscriber topics)

-- | Steps the machine and does everything that can be done in the same transaction.
stepGroup :: Moment -> Group -> Event -> STM ()
stepGroup now@(Moment nanos wall) group event = do
  actions <- stateTVar (groupState group) (swap . step nanos event)
  subscribers <- readTVar (groupSubscribers group)
  let gaps = IntMap.fromListWith (flip (<>)) [(number, [(name, since)]) | Missed number name since <- actions]
  for_ (IntMap.toList gaps) $ \(number, missed) ->
    for_ (IntMap.lookup number subscribers) $ \subscriber ->
      putBatch (subscriberQueue subscriber) wall (Batch wall (foldr (joining . gapOf now) [] missed))
  follow now group subscribers actions

gapOf :: Moment -> (Topic, Nanos) -> EventQueue.Event
gapOf now@(Moment _ wall) (name, since) = Gap GapOf {gapSince = atWall now since, gapUntil = wall, gapTopics = topic name, gapReason = NotHeard}

-- | Puts an event before others; joins consecutive gaps.
joining :: EventQueue.Event -> [EventQueue.Event] -> [EventQueue.Event]
joining (Gap one) (Gap other : others) | Just both <- joinGaps one other = Gap both : others
joining event others = event : others

-- | Does the other actions of a step: tells subscribers at once, or leaves them to the driver. Those that step the machine once more
-- come last, so that questions go to a server in the order in which the machine has them.
follow :: Moment -> Group -> IntMap Subscriber -> [Action] -> STM ()
follow now group subscribers actions = traverse_ act others *> traverse_ act ending
  where
    (ending, others) = List.partition (\case EndSubscriber _ _ -> True; _ -> False) actions
    act = \case
      Missed {} -> pure ()
      Refuse number name problem -> for_ (IntMap.lookup number subscribers) $ \subscriber -> do
        modifyTVar' (subscriberTopics subscriber) (`topicsWithout` topic name)
        modifyTVar' (subscriberRefused subscriber) (Map.insert name problem)
      EndSubscriber number problem -> for_ (IntMap.lookup number subscribers) $ \subscriber -> do
        endEventQueue (subscriberQueue subscriber) problem
        abandon now subscriber
      action -> writeTQueue (groupActions group) action

-- | Hands the values that came on a connection to the subscribers.
handOn :: Group -> PubSubConnection -> Int -> [Came] -> IO ()
handOn group pubSub number values = unless (null values) $ do
  now@(Moment _ wall) <- moment
  rest <- atomically $ do
    over <- readTVar (groupOver group)
    if over
      then pure []
      else do
        subscribers <- readTVar (groupSubscribers group)
        state <- readTVar (groupState group)
        room <- roomIn subscribers (owesAnswer state pubSub number)
        let proven = maybe wall (atWall now) (provenAt state pubSub number)
            sorted = sortOut (Sorter now pubSub number) room state values
        when (sortedStepped sorted) (writeTVar (groupState group) (sortedState sorted))
        for_ (IntMap.toList (sortedEvents sorted)) $ \(heardBy, events) ->
          for_ (IntMap.lookup heardBy subscribers) $ \subscriber -> do
            putBatch (subscriberQueue subscriber) wall (Batch proven (reverse events))
        -- Questions go to a server in the order in which the machine has them, so those of these steps go first.
        follow now group subscribers (sortedActions sorted)
        for_ (IntMap.restrictKeys subscribers (IntMap.keysSet (sortedEvents sorted))) $ \subscriber -> do
          ended <- eventQueueEnded (subscriberQueue subscriber)
          for_ ended (\_ -> abandon now subscriber)
        pure (sortedRest sorted)
  handOn group pubSub number rest
  where
    -- A subscription that presses back is alone in its group. An answer stands behind messages, and whoever waits for it
    -- may be the one who would make room for them: so all that comes before the answer is let in.
    roomIn subscribers owed = case IntMap.elems subscribers of
      [subscriber] | eventQueueWhenFull (subscriberQueue subscriber) == BackPressure -> do
        ended <- eventQueueEnded (subscriberQueue subscriber)
        room <- eventQueueRoom (subscriberQueue subscriber)
        if isJust ended || owed then pure maxBound else room <$ check (room > 0)
      _ -> pure maxBound

-- | The driver of a group: opens pub/sub connections, sends, hangs up, follows the news of the cluster, and
-- watches the time. Ends when the group is over and all its connections are closed.
drive :: Subscriptions -> Group -> IO ()
drive subscriptions group = loop Nothing
  where
    loop known = do
      known' <- lookAround subscriptions group known
      due <- nextDue <$> readTVarIO (groupState group)
      now <- preciseNanos
      expired <- maybe (pure retry) (\at -> expiry (secondsFromNanos (at - now))) due
      join . atomically $
        (leaveAll <$ (readTVar (groupOver group) >>= check))
          `orElse` ((\actions -> traverse_ (carry subscriptions group) actions *> loop known') <$> someActions)
          `orElse` ((tickNow *> loop known') <$ (expired `orElse` newsSince (fst <$> known') `orElse` sooner due))

    someActions = do
      first <- readTQueue (groupActions group)
      (first :) <$> flushTQueue (groupActions group)

    newsSince seen = readTVar (clusterNews (subscriptionsCluster subscriptions)) >>= \news -> check (Just news /= seen)

    -- A step has set an earlier time.
    sooner due = readTVar (groupState group) >>= \state -> check (earlier (nextDue state) due)
    earlier next due = any (\at -> all (at <) due) next

    tickNow = do
      connections <- readTVarIO (groupConnections group)
      listeners <- traverse (readTVarIO . connectionListener) connections
      heard <- traverse lastHeard (IntMap.mapMaybe id listeners)
      now <- moment
      atomically (stepGroup now group (Tick heard))

    leaveAll = do
      readTVarIO (groupConnections group) >>= traverse_ (`dropConnection` ClosedLocally)
      atomically $ do
        readTVar (groupConnections group) >>= check . IntMap.null
        modifyTVar' (subscriptionsGroups subscriptions) (IntMap.delete (groupNumber group))
        modifyTVar' (subscriptionsShared subscriptions) (\shared -> if fmap groupNumber shared == Just (groupNumber group) then Nothing else shared)

dropConnection :: Connection -> ConnectionCause -> IO ()
dropConnection connection cause = do
  atomically (modifyTVar' (connectionUnwanted connection) (Just . fromMaybe cause))
  readTVarIO (connectionListener connection) >>= traverse_ (`hangUp` cause)

-- | Tells the machine the servers and their roles, if they have changed since the given
-- news. The news has a count, and the slot map as it was then.
lookAround :: Subscriptions -> Group -> Maybe (Int, Maybe SlotMap) -> IO (Maybe (Int, Maybe SlotMap))
lookAround subscriptions group known = do
  news <- readTVarIO (clusterNews cluster)
  if fmap fst known == Just news
    then pure known
    else do
      slotMap <- currentSlotMap cluster
      if null (slotMapShards slotMap) || (known >>= snd) == Just slotMap
        then pure (Just (news, known >>= snd))
        else do
          now <- moment
          Just (news, Just slotMap) <$ atomically (stepGroup now group (ServersChanged (servers slotMap)))
  where
    cluster = subscriptionsCluster subscriptions
    servers slotMap =
      Servers
        { serversPrimaries = List.nub (map (shardPrimary . snd) (slotMapServing slotMap)),
          serversOwner = slotOwner slotMap,
          serversClustered = isClustered cluster
        }

-- | Does an action that a step left to the driver.
carry :: Subscriptions -> Group -> Action -> IO ()
carry subscriptions group = \case
  OpenPubSub pubSub number -> do
    connection <- Connection <$> newTVarIO Nothing <*> newTVarIO Nothing
    atomically (modifyTVar' (groupConnections group) (IntMap.insert number connection))
    void (spawn ("redis listen " <> renderEndpoint (pubSubEndpoint pubSub)) (runConnection subscriptions group connection pubSub number))
  Send number questions -> onConnection number $ \connection ->
    readTVarIO (connectionListener connection) >>= traverse_ (\listener -> traverse_ (say listener . requestBytes . questionRequest) questions)
  HangUp number cause -> onConnection number (`dropConnection` cause)
  Tell trigger -> tellCluster (subscriptionsCluster subscriptions) trigger
  _ -> pure ()
  where
    onConnection number act = readTVarIO (groupConnections group) >>= traverse_ act . IntMap.lookup number

-- | The thread of a connection: opens it, reads until its end, and steps the machine.
runConnection :: Subscriptions -> Group -> Connection -> PubSubConnection -> Int -> IO ()
runConnection subscriptions group connection pubSub number = do
  began <- preciseNanos
  -- No exception may keep the group waiting for an event.
  try (openWire setup Purpose {purposeUse = SharedFor ForPrimary, purposeGone = unwanted} endpoint) >>= \case
    Left (problem :: SomeException) -> notOpened (BrokenConnection (displayException problem))
    Right (Left cause) -> notOpened cause
    Right (Right wire) -> do
      listener <- newListener wire
      ended <- preciseNanos
      observe (Connected endpoint (durationFromNanos (ended - began)))
      now <- moment
      atomically (writeTVar (connectionListener connection) (Just listener))
      readTVarIO (connectionUnwanted connection) >>= traverse_ (hangUp listener)
      atomically (stepGroup now group (Opened pubSub number))
      result <- try (listen listener (handOn group pubSub number))
      let cause = either (\(problem :: SomeException) -> BrokenConnection (displayException problem)) id result
      observe (Disconnected endpoint cause)
      gone (Lost pubSub number cause)
  where
    setup = subscriptionsSetup subscriptions
    endpoint = pubSubEndpoint pubSub
    observe = observeConnection (configHooks (setupConfig setup))
    unwanted = readTVar (connectionUnwanted connection) >>= check . isJust

    notOpened cause = do
      gone (NotOpened pubSub number cause)
      state <- readTVarIO (groupState group)
      now <- preciseNanos
      -- A pub/sub connection that no topic needs any more, because the cause will last, has no next attempt.
      let pause = maybe 0 (max 0 . subtract now) (idleUntil state pubSub)
      unless (cause == ClosedLocally) $ observe (ConnectAttemptFailed endpoint cause (durationFromNanos pause))

    gone event = do
      now <- moment
      atomically $ do
        modifyTVar' (groupConnections group) (IntMap.delete number)
        stepGroup now group event

questionRequest :: Question -> Request
questionRequest Question {questionAsk, questionTopics} = request $ case questionAsk of
  Subscribe kind -> named kind "SUBSCRIBE" "PSUBSCRIBE" "SSUBSCRIBE" : names
  Unsubscribe kind -> named kind "UNSUBSCRIBE" "PUNSUBSCRIBE" "SUNSUBSCRIBE" : names
  Probe -> ["PING"]
  where
    names = map topicName questionTopics

named :: Kind -> a -> a -> a -> a
named kind ofChannel ofPattern ofShard = case kind of
  OfChannel -> ofChannel
  OfPattern -> ofPattern
  OfShard -> ofShard

-- | The meaning of one value that came.
data Heard
  = -- | A message: the topic's kind and name, the channel, and the payload.
    Published Kind ByteString ByteString ByteString
  | Answered Answer
  | -- | Anything else.
    Odd

heardOf :: Value -> Heard
heardOf = \case
  Push items -> ofItems items
  Array items -> ofItems items
  SimpleString "PONG" -> Answered Ponged
  ErrorReply text -> Answered (Refusal (serverErrorFromText text))
  WithAttributes _ value -> heardOf value
  _ -> Odd
  where
    ofItems = \case
      [BulkString what, BulkString channel, BulkString payload]
        | what == "message" -> Published OfChannel channel channel payload
        | what == "smessage" -> Published OfShard channel channel payload
        | otherwise -> Odd
      [BulkString "pmessage", BulkString glob, BulkString channel, BulkString payload] -> Published OfPattern glob channel payload
      [BulkString what, BulkString name, Integer _] -> case what of
        "subscribe" -> Answered (Began OfChannel name)
        "psubscribe" -> Answered (Began OfPattern name)
        "ssubscribe" -> Answered (Began OfShard name)
        "unsubscribe" -> Answered (Ended OfChannel name)
        "punsubscribe" -> Answered (Ended OfPattern name)
        "sunsubscribe" -> Answered (Ended OfShard name)
        _ -> Odd
      [BulkString "pong", _] -> Answered Ponged
      _ -> Odd

-- | The time, and the connection with its number.
data Sorter = Sorter Moment PubSubConnection Int

data Sorted = Sorted
  { sortedState :: State,
    -- | Whether the state has changed.
    sortedStepped :: Bool,
    -- | The events for each subscriber, the last one first.
    sortedEvents :: IntMap [EventQueue.Event],
    -- | The actions that are not gaps.
    sortedActions :: [Action],
    -- | The values for which there was no room.
    sortedRest :: [Came]
  }

-- | The last message, its topic and subscribers, and the events of this topic since, last first.
data Run = Run Value Topic [SubscriberId] [EventQueue.Event]

-- | Hands out at most so many values, in their order. \(O(1)\) for a message that repeats
-- the one before, otherwise \(O(\log n)\) in the topics.
sortOut :: Sorter -> Int -> State -> [Came] -> Sorted
sortOut (Sorter now@(Moment nanos _) pubSub number) = \room state came -> go room Nothing (Sorted state False IntMap.empty [] []) came
  where
    go :: Int -> Maybe Run -> Sorted -> [Came] -> Sorted
    go !left run !sorted = \case
      [] -> finished run sorted []
      rest@(next : others)
        | left <= 0 -> finished run sorted (whole run rest)
        | otherwise -> case (next, run) of
          (Again payload, Just (Run value about subscribers events)) -> go (left - 1) (Just (Run value about subscribers (again about events payload))) sorted others
          -- Repeats a value that is no message.
          (Again _, Nothing) -> go left run sorted others
          (Came value, _) -> case heardOf value of
            Published kind name channel payload ->
              let about = topicAt pubSub kind name
                  subscribers = subscribersAt (sortedState sorted) pubSub number about
                  -- Keeps the topic's own bytes, not a copy for each message.
                  at = if channel == topicName about then topicName about else channel
               in go (left - 1) (Just (Run value about subscribers [Message (MessageOf about at payload)])) (given run sorted) others
            Answered answer ->
              let before = given run sorted
                  (state, actions) = step nanos (Said pubSub number answer) (sortedState before)
               in go (left - 1) Nothing (foldl act before {sortedState = state, sortedStepped = True} actions) others
            Odd -> go left Nothing (given run sorted) others

    again about events payload = case events of
      Message before : _ -> let !event = Message before {messagePayload = payload} in event : events
      _ -> Message (MessageOf about (topicName about) payload) : events

    finished run sorted rest =
      let done = given run sorted
       in done {sortedActions = reverse (sortedActions done), sortedRest = rest}

    -- A repetition must not stand first: there is no message before it to repeat.
    whole run = \case
      Again payload : others | Just (Run value _ _ _) <- run -> Came (withLast payload value) : others
      rest -> rest

    given run sorted = case run of
      Nothing -> sorted
      Just (Run _ _ subscribers events) -> sorted {sortedEvents = foldr (\subscriber -> IntMap.insertWith (<>) subscriber events) (sortedEvents sorted) subscribers}

    act sorted = \case
      Missed subscriber name since -> sorted {sortedEvents = IntMap.alter (Just . joining (gapOf now (name, since)) . fromMaybe []) subscriber (sortedEvents sorted)}
      action -> sorted {sortedActions = action : sortedActions sorted}
