-- | What has come for a subscription and was not taken yet: bounded, in order, and
-- usable from STM.
--
-- What comes is put in by whole batches, one transaction for all that one read has
-- brought; it is taken one by one. The two sides meet in different variables: the front
-- says how many were taken, the back how many came, and the difference is what waits.
module Redis.Internal.Client.Inbox
  ( Event (..),
    Message (..),
    Gap (..),
    GapReason (..),
    joinGaps,
    WhenFull (..),
    Inbox,
    newInbox,
    inboxWhenFull,
    Batch (..),
    putBatch,
    inboxWaiting,
    inboxRoom,
    takeEvent,
    takeEvents,
    endInbox,
    inboxEnded,
  )
where

import Control.Applicative ((<|>))
import Control.Concurrent.STM
import Control.Monad (unless)
import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Maybe (isJust)
import Data.Time.Clock (UTCTime)
import Redis.Error
import Redis.Internal.Client.Topic

-- | What a subscription hears.
--
-- @since 0.1.0.0
data Event
  = -- | Somebody published.
    Message {-# UNPACK #-} Message
  | -- | Something may have been missed.
    Gap {-# UNPACK #-} Gap
  deriving stock (Eq, Show)

-- | What was published.
--
-- @since 0.1.0.0
data Message = MessageOf
  { -- | By which topic it is heard; of several that fit, each hears it.
    messageTopic :: Topic,
    -- | Where it was published.
    messageChannel :: ByteString,
    messagePayload :: {-# UNPACK #-} ByteString
  }
  deriving stock (Eq, Show)

-- | Messages may be missing here: of those that were published within this time.
--
-- @since 0.1.0.0
data Gap = GapOf
  { -- | What was published before, to one of these topics, has come. By this machine's
    -- clock.
    gapSince :: UTCTime,
    -- | What is published from now on comes.
    gapUntil :: UTCTime,
    -- | Of what it may be missing.
    gapTopics :: Topics,
    gapReason :: GapReason
  }
  deriving stock (Eq, Show)

-- | Why messages may be missing.
--
-- @since 0.1.0.0
data GapReason
  = -- | The server had nobody to send them to: the connection was lost, or the topic
    -- moved to another node.
    NotHeard
  | -- | They came, and were dropped, because the queue was full.
    NotTaken
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | One for both, if they have one reason. \(O(n)\) in the topics.
joinGaps :: Gap -> Gap -> Maybe Gap
joinGaps one other
  | gapReason one == gapReason other = Just (spanning one other)
  | otherwise = Nothing

-- | One for both. It has the reason of the first.
spanning :: Gap -> Gap -> Gap
spanning one other =
  one
    { gapSince = min (gapSince one) (gapSince other),
      gapUntil = max (gapUntil one) (gapUntil other),
      gapTopics = gapTopics one <> gapTopics other
    }

-- | What becomes of events that find the queue full.
--
-- @since 0.1.0.0
data WhenFull
  = -- | Nothing more is read until there is room, and the server keeps what it cannot
    -- send, up to its @client-output-buffer-limit pubsub@; then it hangs up, which is a
    -- gap. Such a subscription has connections of its own, so that it delays no
    -- other.
    PressBack
  | -- | The oldest events are dropped; a gap in their place says so.
    DropOldest
  | -- | The subscription ends: what waits can still be taken, then 'SubscriberTooSlow'
    -- is thrown.
    EndWhenFull
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The events of one subscription that nobody has taken.
data Inbox = Inbox
  { inboxWhenFull :: WhenFull,
    inboxCapacity :: Int,
    inboxFront :: TVar Front,
    inboxBack :: TVar Back,
    inboxEnd :: TVar (Maybe Error)
  }

-- | What came together.
data Batch = Batch
  { -- | Everything that was published before this time had come before.
    batchProven :: UTCTime,
    batchEvents :: [Event]
  }

-- | How many were taken, the rest of a batch, and those behind it.
data Front = Front Int Batch [Batch]

-- | How many came, and the last batches, last first.
data Back = Back Int [Batch]

-- | An empty one that holds so many events, at least two.
newInbox :: WhenFull -> Int -> UTCTime -> IO Inbox
newInbox inboxWhenFull capacity now = do
  inboxFront <- newTVarIO (Front 0 (Batch now []) [])
  inboxBack <- newTVarIO (Back 0 [])
  inboxEnd <- newTVarIO Nothing
  pure Inbox {inboxWhenFull, inboxCapacity = max 2 capacity, inboxFront, inboxBack, inboxEnd}

-- | How many came and were not taken. \(O(1)\).
inboxWaiting :: Inbox -> STM Int
inboxWaiting inbox = do
  Front taken _ _ <- readTVar (inboxFront inbox)
  Back put _ <- readTVar (inboxBack inbox)
  pure (put - taken)

-- | How many more it takes. \(O(1)\).
inboxRoom :: Inbox -> STM Int
inboxRoom inbox = (\waiting -> max 0 (inboxCapacity inbox - waiting)) <$> inboxWaiting inbox

-- | Puts them in, now. One that presses back takes them in any case: whoever puts has
-- looked for room. \(O(n)\) in those that are put and those that are dropped for them.
putBatch :: Inbox -> UTCTime -> Batch -> STM ()
putBatch inbox now batch = do
  ended <- readTVar (inboxEnd inbox)
  unless (null (batchEvents batch) || isJust ended) $ do
    front@(Front taken _ _) <- readTVar (inboxFront inbox)
    back@(Back put batches) <- readTVar (inboxBack inbox)
    let count = length (batchEvents batch)
        room = inboxCapacity inbox - (put - taken)
        append more = writeTVar (inboxBack inbox) (Back (put + length (batchEvents more)) (more : batches))
    if count <= room || inboxWhenFull inbox == PressBack
      then append batch
      else case inboxWhenFull inbox of
        EndWhenFull -> do
          append batch {batchEvents = take room (batchEvents batch)}
          endInbox inbox (SubscriberTooSlow (inboxCapacity inbox))
        _ -> do
          let (front', back') = dropOldest (inboxCapacity inbox) now front (after back)
          writeTVar (inboxFront inbox) front'
          writeTVar (inboxBack inbox) back'
  where
    after (Back put batches) = Back (put + length (batchEvents batch)) (batch : batches)

-- | Makes so many of them, the oldest giving way to a gap.
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
        (event : events, _) -> let found' = lost found (batchProven batch) event in found' `seq` go (left - 1) (Just found') batch {batchEvents = events} rest
        ([], next : behind) -> go left found next behind
        ([], []) -> (found, batch, [])

    lost found proven = \case
      Message MessageOf {messageTopic} -> case found of
        Just so
          | messageTopic `elem` topicList' so -> so
        _ -> missing found GapOf {gapSince = proven, gapUntil = now, gapTopics = topic messageTopic, gapReason = NotTaken}
      Gap before -> missing found before {gapReason = NotTaken, gapUntil = now}

    -- Mostly one topic floods.
    topicList' so = take 1 (topicList (gapTopics so))
    missing found one = maybe one (spanning one) found

-- | The next event; waits for one. Throws the 'Error' for which the subscription has
-- ended, once all are taken.
takeEvent :: Inbox -> STM Event
takeEvent inbox = do
  Front taken batch batches <- readTVar (inboxFront inbox)
  case (batchEvents batch, batches) of
    (event : events, _) -> event <$ writeTVar (inboxFront inbox) (Front (taken + 1) batch {batchEvents = events} batches)
    ([], next : others) -> writeTVar (inboxFront inbox) (Front taken next others) *> takeEvent inbox
    ([], []) -> do
      refill inbox
      takeEvent inbox

-- | All that wait; waits for one. Throws as 'takeEvent'.
takeEvents :: Inbox -> STM (NonEmpty Event)
takeEvents inbox = do
  Front taken batch batches <- readTVar (inboxFront inbox)
  Back put newest <- readTVar (inboxBack inbox)
  case concatMap batchEvents (batch : batches <> reverse newest) of
    event : events -> do
      writeTVar (inboxFront inbox) (Front (taken + 1 + length events) batch {batchEvents = []} [])
      writeTVar (inboxBack inbox) (Back put [])
      pure (event :| events)
    [] -> nothingThere inbox

-- | Brings what came to the front, which is empty.
refill :: Inbox -> STM ()
refill inbox = do
  Back put newest <- readTVar (inboxBack inbox)
  Front taken batch _ <- readTVar (inboxFront inbox)
  case reverse newest of
    [] -> nothingThere inbox
    batches -> do
      writeTVar (inboxBack inbox) (Back put [])
      writeTVar (inboxFront inbox) (Front taken batch batches)

-- | Waits, or says why nothing will come.
nothingThere :: Inbox -> STM a
nothingThere inbox = readTVar (inboxEnd inbox) >>= maybe retry throwSTM

-- | No more comes, for this reason; the first counts.
endInbox :: Inbox -> Error -> STM ()
endInbox inbox reason = modifyTVar' (inboxEnd inbox) (<|> Just reason)

-- | For which reason no more comes.
inboxEnded :: Inbox -> STM (Maybe Error)
inboxEnded = readTVar . inboxEnd
