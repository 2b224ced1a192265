-- | Channels, patterns, channels of shards, and what servers say of keys.
--
-- > withSubscription client (channel "news" <> matching "user:*" <> shardChannel "orders") $ \subscription ->
-- >   forever $ nextEvent subscription >>= \case
-- >     Message message -> handle (messageChannel message) (messagePayload message)
-- >     Gap gap -> reload (gapSince gap)
--
-- A server keeps nothing for who does not listen. So a subscription hears of two things:
-- messages, and gaps. __Each message that is published after the subscription has begun,
-- to what it listens to, is heard once and in order, or was published within a gap that
-- is told before what comes after it: then it may be missing.__ A message that fits
-- several of its topics is heard once for each.
--
-- The nodes of a cluster pass messages on to each other, each at its own pace. So in
-- order are those that are published at one node; and when a subscription goes from one
-- node to another, one that was on its way between them may come again, or may have been
-- published just before the gap begins.
--
-- A connection that is lost, a node that fails over and a slot that moves end no
-- subscription: what it listens to is asked for again, and a gap is told. Only a server
-- that refuses ends it.
--
-- Subscriptions have connections of their own, one for each node that is needed, which
-- the subscriptions of a client share: an ordinary channel or pattern is listened to at
-- one node of a cluster, a channel of a shard at the primary of its slot, and 'keyspace'
-- and 'keyevent' at every primary. A connection is probed twice within the silence
-- limit of the configuration.
--
-- Whoever publishes is told how many received it by the server
-- ('Redis.Commands.publish').
--
-- Server: <https://valkey.io/topics/pubsub/>.
module Redis.Subscription
  ( -- * What to listen to
    Topics,
    channel,
    matching,
    shardChannel,
    keyspace,
    keyevent,
    Topic (..),
    topic,
    topicList,

    -- * Listening
    Subscription,
    withSubscription,
    withSubscriptionOf,
    SubscriptionOptions (subscriptionQueue, subscriptionWhenFull),
    subscriptionDefaults,
    WhenFull (..),

    -- * What is heard
    nextEvent,
    nextEventSTM,
    nextEvents,
    nextEventsSTM,
    Event (..),
    Message (..),
    Gap (..),
    GapReason (..),
    KeyEvent (..),
    keyEventOf,

    -- * Changing what is listened to
    subscribe,
    unsubscribe,
    subscriptionTopics,
  )
where

import Control.Concurrent.STM
import Control.Exception (bracket)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty)
import Redis.Internal.Client.Core (Client (..), Core (coreHub), keepOpen)
import Redis.Internal.Client.Inbox
import Redis.Internal.Client.Subscriptions
import Redis.Internal.Client.Topic

-- | A channel, by its name (SUBSCRIBE). In a cluster, whatever node it is published at.
--
-- @since 0.1.0.0
channel :: ByteString -> Topics
channel = topic . Channel

-- | All channels whose names match the glob (PSUBSCRIBE). Each costs the server a look
-- at every message.
--
-- @since 0.1.0.0
matching :: ByteString -> Topics
matching = topic . Pattern

-- | A channel of a shard, by its name (SSUBSCRIBE): in a cluster, only the nodes of the
-- shard that its slot belongs to carry it. For messages of
-- 'Redis.Commands.spublish'. Servers have it since 7.0.
--
-- @since 0.1.0.0
shardChannel :: ByteString -> Topics
shardChannel = topic . ShardChannel

-- | What happens to the keys of this database that match the glob: on channel
-- @__keyspace\@0__:key@, the name of the event (see 'keyEventOf'). Every primary of a
-- cluster is listened to, whichever those are: a node that has joined, from when this
-- client hears of it, at the latest after the refresh interval of the configuration. Of
-- the time before tells a gap.
--
-- Servers say so only if told to: @notify-keyspace-events@ has @K@, and @A@ or the
-- letters of the events.
--
-- @since 0.1.0.0
keyspace :: Int -> ByteString -> Topics
keyspace database glob = topic (KeyEvents ("__keyspace@" <> Char8.pack (show database) <> "__:" <> glob))

-- | To which keys of this database the events happen whose names match the glob: on
-- channel @__keyevent\@0__:del@, the key. As 'keyspace', with @E@.
--
-- @since 0.1.0.0
keyevent :: Int -> ByteString -> Topics
keyevent database glob = topic (KeyEvents ("__keyevent@" <> Char8.pack (show database) <> "__:" <> glob))

-- | Something happened to a key.
--
-- @since 0.1.0.0
data KeyEvent = KeyEvent
  { keyEventDatabase :: Int,
    keyEventKey :: ByteString,
    -- | Such as @del@ or @expired@.
    keyEventName :: ByteString
  }
  deriving stock (Eq, Ord, Show)

-- | What a message says of a key, if it does. \(O(n)\) in the channel's name.
--
-- @since 0.1.0.0
keyEventOf :: Message -> Maybe KeyEvent
keyEventOf MessageOf {messageChannel, messagePayload} = case ByteString.splitAt 11 messageChannel of
  ("__keyspace@", rest) -> (\(database, key) -> KeyEvent database key messagePayload) <$> about rest
  ("__keyevent@", rest) -> (\(database, name) -> KeyEvent database messagePayload name) <$> about rest
  _ -> Nothing
  where
    about rest = do
      (database, after) <- Char8.readInt rest
      (,) database <$> ByteString.stripPrefix "__:" after

-- | Listens, for as long as an action takes.
--
-- @since 0.1.0.0
newtype Subscription = Subscription Subscriber

-- | What becomes of events that nobody takes at once.
--
-- @since 0.1.0.0
data SubscriptionOptions = SubscriptionOptions
  { -- | How many may wait; at least 2.
    subscriptionQueue :: Int,
    subscriptionWhenFull :: WhenFull
  }
  deriving stock (Eq, Show)

-- | 65536 may wait, then the oldest are dropped.
--
-- @since 0.1.0.0
subscriptionDefaults :: SubscriptionOptions
subscriptionDefaults = SubscriptionOptions {subscriptionQueue = 65536, subscriptionWhenFull = DropOldest}

-- | Listens, and runs the action when the servers have confirmed all of it: what is
-- published from then on is heard. Afterwards nothing is listened to any more.
--
-- Blocks for at most the connect timeout and the command timeout before the action
-- begins. Throws 'Redis.Error.Error' if a server refuses, or if none can be had in time.
--
-- @since 0.1.0.0
withSubscription :: Client -> Topics -> (Subscription -> IO a) -> IO a
withSubscription = withSubscriptionOf subscriptionDefaults

-- | As 'withSubscription'.
--
-- @since 0.1.0.0
withSubscriptionOf :: SubscriptionOptions -> Client -> Topics -> (Subscription -> IO a) -> IO a
withSubscriptionOf SubscriptionOptions {subscriptionQueue, subscriptionWhenFull} (Client core) topics action =
  bracket (openSubscriber (coreHub core) subscriptionWhenFull subscriptionQueue) closeSubscriber (\subscriber -> addTopics subscriber topics *> action (Subscription subscriber)) <* keepOpen core

-- | The next message or gap; waits for one. Several threads may take from one
-- subscription: each event goes to one of them.
--
-- Throws 'Redis.Error.Error' when the subscription has ended and all that came is taken:
-- 'Redis.Error.ReplyError' if a server refuses what it has listened to (@NOPERM@),
-- 'Redis.Error.ConnectionError' if it refuses the client (a password),
-- 'Redis.Error.SubscriberTooSlow' ('EndWhenFull'), or 'Redis.Error.ClientClosed'.
--
-- @since 0.1.0.0
nextEvent :: Subscription -> IO Event
nextEvent = atomically . nextEventSTM

-- | As 'nextEvent', as a part of a transaction: with 'orElse', of whatever comes first.
--
-- @since 0.1.0.0
nextEventSTM :: Subscription -> STM Event
nextEventSTM (Subscription subscriber) = takeEvent (subscriberInbox subscriber)

-- | All that wait, at least one: cheaper for each than 'nextEvent'. Waits and throws as
-- that.
--
-- @since 0.1.0.0
nextEvents :: Subscription -> IO (NonEmpty Event)
nextEvents = atomically . nextEventsSTM

-- | As 'nextEvents', as a part of a transaction.
--
-- @since 0.1.0.0
nextEventsSTM :: Subscription -> STM (NonEmpty Event)
nextEventsSTM (Subscription subscriber) = takeEvents (subscriberInbox subscriber)

-- | Listens to these too; returns when the servers have confirmed them. Blocks and
-- throws as 'withSubscription'; then nothing has changed.
--
-- @since 0.1.0.0
subscribe :: Subscription -> Topics -> IO ()
subscribe (Subscription subscriber) = addTopics subscriber

-- | Listens to these no more. Does not wait; what came before may still be taken.
--
-- @since 0.1.0.0
unsubscribe :: Subscription -> Topics -> IO ()
unsubscribe (Subscription subscriber) = removeTopics subscriber

-- | What it listens to, or will when 'subscribe' returns.
--
-- @since 0.1.0.0
subscriptionTopics :: Subscription -> STM Topics
subscriptionTopics (Subscription subscriber) = readTVar (subscriberTopics subscriber)
