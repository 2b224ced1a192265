-- | The topics of subscriptions.
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
