-- | What one can listen to.
module Redis.Internal.Client.Topic
  ( Topic (..),
    Topics,
    topic,
    topicList,
    topicsWithout,
    topicsAmong,
    Kind (..),
    topicKind,
    topicName,
  )
where

import Data.ByteString (ByteString)
import Data.Set (Set)
import Data.Set qualified as Set

-- | One thing to listen to.
--
-- @since 0.1.0.0
data Topic
  = -- | What is published to this channel (SUBSCRIBE).
    Channel ByteString
  | -- | What is published to channels that match this glob (PSUBSCRIBE).
    Pattern ByteString
  | -- | What is published to this channel of a shard (SSUBSCRIBE).
    ShardChannel ByteString
  | -- | The server's own messages, of every primary, on channels that match this glob.
    KeyEvents ByteString
  deriving stock (Eq, Ord, Show)

-- | What a subscription listens to; '<>' joins. A topic counts once.
--
-- @since 0.1.0.0
newtype Topics = Topics (Set Topic)
  deriving newtype (Eq, Semigroup, Monoid)

instance Show Topics where
  showsPrec level = showsPrec level . topicList

-- | One of them. \(O(1)\).
--
-- @since 0.1.0.0
topic :: Topic -> Topics
topic = Topics . Set.singleton

-- | All of them, ascending. \(O(n)\).
--
-- @since 0.1.0.0
topicList :: Topics -> [Topic]
topicList (Topics topics) = Set.toAscList topics

-- | The first without the second.
topicsWithout :: Topics -> Topics -> Topics
topicsWithout (Topics topics) (Topics others) = Topics (topics `Set.difference` others)

-- | Those of the first that the second has.
topicsAmong :: Topics -> Topics -> Topics
topicsAmong (Topics topics) (Topics others) = Topics (topics `Set.intersection` others)

-- | The three ways in which servers know subscriptions, each with names of its own.
data Kind = OfChannel | OfPattern | OfShard
  deriving stock (Eq, Ord, Show)

-- | How a server is asked for it.
topicKind :: Topic -> Kind
topicKind = \case
  Channel _ -> OfChannel
  Pattern _ -> OfPattern
  ShardChannel _ -> OfShard
  KeyEvents _ -> OfPattern

-- | What it is called there.
topicName :: Topic -> ByteString
topicName = \case
  Channel name -> name
  Pattern name -> name
  ShardChannel name -> name
  KeyEvents name -> name
