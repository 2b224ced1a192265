-- | Subscriptions to channels, patterns, shard channels, and events of keys.
--
-- > withSubscription client (channel "news" <> matching "user:*" <> shardChannel "orders") $ \subscription ->
-- >   forever $ nextEvent subscription >>= \case
-- >     Message message -> handle (messageChannel message) (messagePayload message)
-- >     Gap gap -> reload (gapSince gap)
--
-- A server keeps no messages for a client that does not listen. So a subscription delivers two kinds
-- of events: messages, and gaps. __Each message that is published to its topics after the
-- subscription has begun is delivered once and in order, or was published within a gap, and then it
-- may be missing. A gap is delivered before the messages that come after it.__ A message that fits
-- several topics of a subscription is delivered once for each.
--
-- The nodes of a cluster pass messages on to each other, each at its own pace. So only the messages
-- that are published at one node are in order. When a subscription goes to another node, a message that
-- was on its way between them may come again. A message that needs more than a second between them may have been
-- published just before the gap begins.
--
-- A lost connection, a fail-over and a slot that moves do not end a subscription: the client
-- subscribes again, and delivers a gap. A subscription ends early only if a server refuses, if its
-- queue is full ('EndWhenFull'), or if the client is closed.
--
-- Subscriptions have connections of their own, one for each node that is needed, which all share (but
-- see 'BackPressure'). The client listens to an ordinary channel or pattern at one node of a cluster, to a
-- shard channel at the primary of its slot, and to 'keyspace' and 'keyevent' at every primary. It probes
-- each connection at least twice within the silence limit of the configuration.
--
-- A publisher learns from the server how many clients received its message
-- ('Redis.Commands.publish').
--
-- Server: <https://valkey.io/topics/pubsub/>.
module Redis.Subscription
  ( -- * Topics
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

    -- * Events
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

    -- * Changing the topics
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
import Redis.Internal.Client.Core (Client (..), Core (coreSubscriptions), keepOpen)
import Redis.Internal.Client.EventQueue
import Redis.Internal.Client.Subscriptions

-- | A channel, by its name (SUBSCRIBE). In a cluster its messages arrive whichever node they are
-- published at.
channel :: ByteString -> Topics
channel = topic . Channel

-- | All channels whose names match the glob (PSUBSCRIBE). The server compares every message with
-- each such glob.
matching :: ByteString -> Topics
matching = topic . Pattern

-- | A shard channel, by its name (SSUBSCRIBE): in a cluster, only the nodes of the shard that its
-- slot belongs to carry it. Its messages come from 'Redis.Commands.spublish'. On servers since 7.0.
shardChannel :: ByteString -> Topics
shardChannel = topic . ShardChannel

-- | Events of the keys of this database that match the glob. Each message carries, on channel
-- @__keyspace\@0__:key@, the name of the event (see 'keyEventOf'). The client listens to every primary
-- of a cluster: to one that joins at the latest after the refresh interval of the configuration. A gap
-- covers the time before that.
--
-- Servers send these messages only if configured to: @notify-keyspace-events@ needs @K@, and @A@ or
-- the letters of the events.
keyspace :: Int -> ByteString -> Topics
keyspace database glob = topic (KeyEvents ("__keyspace@" <> Char8.pack (show database) <> "__:" <> glob))

-- | Events of this database whose names match the glob, whatever their keys. Each message carries, on
-- channel @__keyevent\@0__:del@, the key. Like 'keyspace', but @notify-keyspace-events@ needs @E@
-- instead of @K@.
keyevent :: Int -> ByteString -> Topics
keyevent database glob = topic (KeyEvents ("__keyevent@" <> Char8.pack (show database) <> "__:" <> glob))

-- | Something that happened to a key.
data KeyEvent = KeyEvent
  { keyEventDatabase :: Int,
    keyEventKey :: ByteString,
    -- | The name of the event, such as @del@ or @expired@.
    keyEventName :: ByteString
  }
  deriving stock (Eq, Ord, Show)

-- | The event of a key that a message of 'keyspace' or 'keyevent' reports; 'Nothing' for other
-- messages. \(O(n)\) in the channel's name.
keyEventOf :: Message -> Maybe KeyEvent
keyEventOf MessageOf {messageChannel, messagePayload} = case ByteString.splitAt 11 messageChannel of
  ("__keyspace@", rest) -> (\(database, key) -> KeyEvent database key messagePayload) <$> about rest
  ("__keyevent@", rest) -> (\(database, name) -> KeyEvent database messagePayload name) <$> about rest
  _ -> Nothing
  where
    about rest = do
      (database, after) <- Char8.readInt rest
      (,) database <$> ByteString.stripPrefix "__:" after

-- | A subscription in use, for as long as the action of 'withSubscription' runs.
newtype Subscription = Subscription Subscriber

-- | Options for events that wait to be taken.
data SubscriptionOptions = SubscriptionOptions
  { -- | How many events may wait; at least 2.
    subscriptionQueue :: Int,
    subscriptionWhenFull :: WhenFull
  }
  deriving stock (Eq, Show)

-- | 65536 events may wait, then the oldest are dropped.
subscriptionDefaults :: SubscriptionOptions
subscriptionDefaults = SubscriptionOptions {subscriptionQueue = 65536, subscriptionWhenFull = DropOldest}

-- | Listens to topics while an action runs. The action begins when the servers have confirmed all
-- topics: every message that is published from then on is delivered. The subscription ends with the
-- action.
--
-- Blocks for at most the connect timeout plus the command timeout before the action begins. Throws
-- 'Redis.Error.Error' if a server refuses, or if no server can be reached in time.
withSubscription :: Client -> Topics -> (Subscription -> IO a) -> IO a
withSubscription = withSubscriptionOf subscriptionDefaults

-- | Like 'withSubscription', with options.
withSubscriptionOf :: SubscriptionOptions -> Client -> Topics -> (Subscription -> IO a) -> IO a
withSubscriptionOf SubscriptionOptions {subscriptionQueue, subscriptionWhenFull} (Client core) topics action =
  bracket (openSubscriber (coreSubscriptions core) subscriptionWhenFull subscriptionQueue) closeSubscriber (\subscriber -> addTopics subscriber topics *> action (Subscription subscriber)) <* keepOpen core

-- | Takes the next message or gap; waits until there is one. Several threads may take from one
-- subscription: each event goes to one of them.
--
-- Throws 'Redis.Error.Error' when the subscription has ended and all its events are taken:
-- 'Redis.Error.ReplyError' if a server refuses a topic that was confirmed before (@NOPERM@),
-- 'Redis.Error.ConnectionError' if a server refuses the client (a password),
-- 'Redis.Error.SubscriberTooSlow' ('EndWhenFull'), or 'Redis.Error.ClientClosed'.
nextEvent :: Subscription -> IO Event
nextEvent = atomically . nextEventSTM

-- | Like 'nextEvent', as a part of a transaction: with 'orElse' it takes whatever comes first.
nextEventSTM :: Subscription -> STM Event
nextEventSTM (Subscription subscriber) = takeEvent (subscriberQueue subscriber)

-- | Takes all events that wait, at least one; costs less for each event than 'nextEvent'. Waits and
-- throws like 'nextEvent'.
nextEvents :: Subscription -> IO (NonEmpty Event)
nextEvents = atomically . nextEventsSTM

-- | Like 'nextEvents', as a part of a transaction.
nextEventsSTM :: Subscription -> STM (NonEmpty Event)
nextEventsSTM (Subscription subscriber) = takeEvents (subscriberQueue subscriber)

-- | Listens to these topics, too; returns when the servers have confirmed them. Blocks and throws
-- like 'withSubscription'; if it throws, nothing has changed.
subscribe :: Subscription -> Topics -> IO ()
subscribe (Subscription subscriber) = addTopics subscriber

-- | Stops listening to these topics. Does not wait; messages that came before may still be taken.
unsubscribe :: Subscription -> Topics -> IO ()
unsubscribe (Subscription subscriber) = removeTopics subscriber

-- | The topics that a subscription listens to, or will when 'subscribe' returns.
subscriptionTopics :: Subscription -> STM Topics
subscriptionTopics (Subscription subscriber) = readTVar (subscriberTopics subscriber)
