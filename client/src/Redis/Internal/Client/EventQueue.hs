-- | The topics of subscriptions, and the events that came for a subscription and were not taken yet:
-- bounded, in order, and usable from STM.
--
-- One transaction puts in everything that one read brought; events are taken one by one. The two sides
-- use different variables: the front counts the events that were taken, the back those that came.
module Redis.Internal.Client.EventQueue
  ( -- * Topics
    Topic (..),
    Topics,
    topic,
    topicList,
    topicsWithout,
    topicsAmong,
    Kind (..),
    topicKind,
    topicName,

    -- * Events
    Event (..),
    Message (..),
    Gap (..),
    GapReason (..),
    joinGaps,

    -- * The queue
    WhenFull (..),
    EventQueue,
    newEventQueue,
    eventQueueWhenFull,
    Batch (..),
    putBatch,
    eventQueueWaiting,
    eventQueueRoom,
    takeEvent,
    takeEvents,
    endEventQueue,
    eventQueueEnded,
  )
where

import Control.Applicative ((<|>))
import Control.Concurrent.STM
import Control.Monad (unless, when)
import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Maybe (isJust)
import Data.Set (Set)
import Data.Set qualified as Set
import Data.Time.Clock (UTCTime)
import Redis.Error

-- | One thing to listen to.
data Topic
  = -- | The messages published to this channel (SUBSCRIBE).
    Channel ByteString
  | -- | The messages published to channels that match this glob (PSUBSCRIBE).
    Pattern ByteString
  | -- | The messages published to this shard channel (SSUBSCRIBE).
    ShardChannel ByteString
  | -- | The key notifications of every primary, on channels that match this glob.
    KeyEvents ByteString
  deriving stock (Eq, Ord, Show)

-- | A set of topics. '<>' joins two sets; a topic counts once.
newtype Topics = Topics (Set Topic)
  deriving newtype (Eq, Semigroup, Monoid)

instance Show Topics where
  showsPrec level = showsPrec level . topicList

-- | The set of one topic. \(O(1)\).
topic :: Topic -> Topics
topic = Topics . Set.singleton

-- | All topics of a set, ascending. \(O(n)\).
topicList :: Topics -> [Topic]
topicList (Topics topics) = Set.toAscList topics

-- | The topics of the first set that are not in the second.
topicsWithout :: Topics -> Topics -> Topics
topicsWithout (Topics topics) (Topics others) = Topics (topics `Set.difference` others)

-- | The topics that both sets have.
topicsAmong :: Topics -> Topics -> Topics
topicsAmong (Topics topics) (Topics others) = Topics (topics `Set.intersection` others)

-- | The three kinds of subscriptions that servers know, each with names of its own.
data Kind = OfChannel | OfPattern | OfShard
  deriving stock (Eq, Ord, Show)

-- | The kind of subscription that a server is asked for.
topicKind :: Topic -> Kind
topicKind = \case
  Channel _ -> OfChannel
  Pattern _ -> OfPattern
  ShardChannel _ -> OfShard
  KeyEvents _ -> OfPattern

-- | The name of a topic on the server.
topicName :: Topic -> ByteString
topicName = \case
  Channel name -> name
  Pattern name -> name
  ShardChannel name -> name
  KeyEvents name -> name

-- | An event of a subscription.
data Event
  = -- | A message was published.
    Message {-# UNPACK #-} Message
  | -- | Messages may have been missed.
    Gap {-# UNPACK #-} Gap
  deriving stock (Eq, Show)

-- | A message that was published.
data Message = MessageOf
  { -- | The topic that the message matches. If several topics match, each one brings the message.
    messageTopic :: Topic,
    -- | The channel that it was published to.
    messageChannel :: ByteString,
    messagePayload :: {-# UNPACK #-} ByteString
  }
  deriving stock (Eq, Show)

-- | A time within which messages may have been missed.
data Gap = GapOf
  { -- | Everything that was published to these topics before this time has come. By this
    -- machine's clock.
    gapSince :: UTCTime,
    -- | Everything that is published from this time on comes.
    gapUntil :: UTCTime,
    -- | The topics whose messages may be missing.
    gapTopics :: Topics,
    gapReason :: GapReason
  }
  deriving stock (Eq, Show)

-- | Why messages may be missing.
data GapReason
  = -- | The server could not send them to this client: the connection was lost, or the topic
    -- moved to another node.
    NotHeard
  | -- | They came and were dropped, because the queue was full.
    NotTaken
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | One gap for both, if they have the same reason. \(O(n)\) in the topics.
joinGaps :: Gap -> Gap -> Maybe Gap
joinGaps one other = if gapReason one == gapReason other then Just (spanning one other) else Nothing

-- | One gap for both, with the reason of the first.
spanning :: Gap -> Gap -> Gap
spanning one other =
  one
    { gapSince = min (gapSince one) (gapSince other),
      gapUntil = max (gapUntil one) (gapUntil other),
      gapTopics = gapTopics one <> gapTopics other
    }

-- | How a subscription treats events that find its queue full.
data WhenFull
  = -- | The client stops reading until there is room. The server keeps what it cannot send,
    -- up to its @client-output-buffer-limit pubsub@; then it closes the connection, which is
    -- a gap. Such a subscription has connections of its own, so that it does not delay other
    -- subscriptions. Until a server has answered that topics begin or end, its messages are read
    -- in any case, because the answer stands behind them: meanwhile the queue may hold more.
    BackPressure
  | -- | The oldest events are dropped; a gap takes their place.
    DropOldest
  | -- | The subscription ends: the events that wait can still be taken, then
    -- 'SubscriberTooSlow' is thrown.
    EndWhenFull
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The events of one subscription that nobody has taken.
data EventQueue = EventQueue
  { eventQueueWhenFull :: WhenFull,
    eventQueueCapacity :: Int,
    eventQueueFront :: TVar Front,
    eventQueueBack :: TVar Back,
    eventQueueEnd :: TVar (Maybe Error)
  }

-- | Events that came together.
data Batch = Batch
  { -- | Everything that was published before this time came before these events.
    batchProven :: UTCTime,
    batchEvents :: [Event]
  }

-- | How many events were taken, the rest of the current batch, and the batches behind it.
data Front = Front Int Batch [Batch]

-- | How many events came, and the newest batches, the last one first.
data Back = Back Int [Batch]

-- | An empty event queue for so many events, at least two.
newEventQueue :: WhenFull -> Int -> UTCTime -> IO EventQueue
newEventQueue whenFull capacity now =
  EventQueue whenFull (max 2 capacity) <$> newTVarIO (Front 0 (Batch now []) []) <*> newTVarIO (Back 0 []) <*> newTVarIO Nothing

-- | How many events came and were not taken. \(O(1)\).
eventQueueWaiting :: EventQueue -> STM Int
eventQueueWaiting queue = do
  Front taken _ _ <- readTVar (eventQueueFront queue)
  Back put _ <- readTVar (eventQueueBack queue)
  pure (put - taken)

-- | How many more events fit. \(O(1)\).
eventQueueRoom :: EventQueue -> STM Int
eventQueueRoom queue = (\waiting -> max 0 (eventQueueCapacity queue - waiting)) <$> eventQueueWaiting queue

-- | Puts a batch in at this time. An event queue that presses back takes it in any case, because
-- the caller has checked the room. \(O(n)\) in the events that are put in or dropped.
putBatch :: EventQueue -> UTCTime -> Batch -> STM ()
putBatch queue now batch = do
  ended <- readTVar (eventQueueEnd queue)
  unless (null (batchEvents batch) || isJust ended) $ do
    front@(Front taken _ _) <- readTVar (eventQueueFront queue)
    Back put batches <- readTVar (eventQueueBack queue)
    let count = length (batchEvents batch)
        room = eventQueueCapacity queue - (put - taken)
        after more = Back (put + length (batchEvents more)) (more : batches)
        append = writeTVar (eventQueueBack queue) . after
    if count <= room || eventQueueWhenFull queue == BackPressure
      then append batch
      else case eventQueueWhenFull queue of
        EndWhenFull -> do
          append batch {batchEvents = take room (batchEvents batch)}
          endEventQueue queue (SubscriberTooSlow (eventQueueCapacity queue))
        _ -> do
          let (front', back') = dropOldest (eventQueueCapacity queue) now front (after batch)
          writeTVar (eventQueueFront queue) front'
          writeTVar (eventQueueBack queue) back'

-- | Drops the oldest events down to so many, with a gap in their place.
dropOldest :: Int -> UTCTime -> Front -> Back -> (Front, Back)
dropOldest capacity now (Front taken current batches) (Back put newest) =
  (Front (taken + toDrop - 1) kept {batchEvents = maybe id ((:) . Gap) gap (batchEvents kept)} others, Back put [])
  where
    toDrop = put - taken + 1 - capacity
    (gap, kept, others) = go toDrop Nothing current (batches <> reverse newest)

    go :: Int -> Maybe Gap -> Batch -> [Batch] -> (Maybe Gap, Batch, [Batch])
    go left found batch rest
      | left == 0 = (found, batch, rest)
      | otherwise = case (batchEvents batch, rest) of
        (event : events, _) -> let !found' = lost found (batchProven batch) event in go (left - 1) (Just found') batch {batchEvents = events} rest
        ([], next : behind) -> go left found next behind
        ([], []) -> (found, batch, [])

    lost found proven = \case
      Message MessageOf {messageTopic} -> case found of
        -- Looks at one topic only: mostly one topic floods.
        Just so | messageTopic `elem` take 1 (topicList (gapTopics so)) -> so {gapSince = min proven (gapSince so)}
        _ -> missing found GapOf {gapSince = proven, gapUntil = now, gapTopics = topic messageTopic, gapReason = NotTaken}
      Gap before -> missing found before {gapReason = NotTaken, gapUntil = now}

    missing found one = maybe one (spanning one) found

-- | The next event; waits for one. Once all events are taken, throws the 'Error' that the
-- subscription ended with.
takeEvent :: EventQueue -> STM Event
takeEvent queue = do
  Front taken batch batches <- readTVar (eventQueueFront queue)
  case (batchEvents batch, batches) of
    (event : events, _) -> event <$ writeTVar (eventQueueFront queue) (Front (taken + 1) batch {batchEvents = events} batches)
    ([], next : others) -> writeTVar (eventQueueFront queue) (Front taken next others) *> takeEvent queue
    ([], []) -> do
      Back put newest <- readTVar (eventQueueBack queue)
      when (null newest) (nothingThere queue)
      writeTVar (eventQueueBack queue) (Back put [])
      writeTVar (eventQueueFront queue) (Front taken batch (reverse newest))
      takeEvent queue

-- | All events that wait; waits for at least one. Throws like 'takeEvent'.
takeEvents :: EventQueue -> STM (NonEmpty Event)
takeEvents queue = do
  Front taken batch batches <- readTVar (eventQueueFront queue)
  Back put newest <- readTVar (eventQueueBack queue)
  case concatMap batchEvents (batch : batches <> reverse newest) of
    event : events -> do
      writeTVar (eventQueueFront queue) (Front (taken + 1 + length events) batch {batchEvents = []} [])
      writeTVar (eventQueueBack queue) (Back put [])
      pure (event :| events)
    [] -> nothingThere queue

-- | Waits, or throws the reason why no more events come.
nothingThere :: EventQueue -> STM a
nothingThere queue = readTVar (eventQueueEnd queue) >>= maybe retry throwSTM

-- | Ends the event queue for this reason; the first reason counts.
endEventQueue :: EventQueue -> Error -> STM ()
endEventQueue queue reason = modifyTVar' (eventQueueEnd queue) (<|> Just reason)

-- | The reason why no more events come, if the event queue has ended.
eventQueueEnded :: EventQueue -> STM (Maybe Error)
eventQueueEnded = readTVar . eventQueueEnd
