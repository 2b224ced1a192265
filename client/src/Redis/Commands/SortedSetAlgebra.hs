-- | Several sorted sets together: unions, intersections, differences.
--
-- > run client (Redis.zinterWithscores ("example:{sortedsets}:may" :| ["example:{sortedsets}:june"]))
--
-- Sets may be among the keys: their members count as of score 1. A key that is not there
-- is a sorted set without members.
--
-- What the servers say: <https://valkey.io/commands/#sorted-set>.
module Redis.Commands.SortedSetAlgebra
  ( -- * Unions
    zunion,
    zunionWithscores,
    zunionWith,
    zunionWithscoresWith,
    zunionstore,
    zunionstoreWith,
    ZunionOptions (zunionAggregate),
    zunionDefaults,

    -- * Intersections
    zinter,
    zinterWithscores,
    zinterWith,
    zinterWithscoresWith,
    zinterstore,
    zinterstoreWith,
    ZinterOptions (zinterAggregate),
    zinterDefaults,
    zintercard,
    zintercardWith,
    ZintercardOptions (zintercardLimit),
    zintercardDefaults,

    -- * Differences
    zdiff,
    zdiffWithscores,
    zdiffstore,

    -- * Scores together
    Aggregate (..),
  )
where

import Data.ByteString (ByteString)
import Data.Foldable (toList)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode qualified as Decode

-- | What becomes of the scores that a member has in several sorted sets.
--
-- @since 0.1.0.0
data Aggregate
  = -- | SUM, which is what the server does unless told otherwise.
    AggregateSum
  | -- | MIN: the lowest.
    AggregateMin
  | -- | MAX: the highest.
    AggregateMax
  deriving stock (Eq, Show)

-- | @ZUNION n key …@: the members of any of them, in the order of the sums of their scores. In a
-- cluster the keys must share a slot. \(O(n) + O(m \log m)\) on the server for n members of all and
-- m of the answer, [since 6.2.0](https://valkey.io/commands/zunion/).
--
-- @since 0.1.0.0
zunion :: NonEmpty ByteString -> Command [ByteString]
zunion names = command "ZUNION" (numbered names) (Decode.list Decode.bytes)

-- | @ZUNION n key … WITHSCORES@: as 'zunion', with the scores.
--
-- @since 0.1.0.0
zunionWithscores :: NonEmpty ByteString -> Command [(ByteString, Double)]
zunionWithscores names = command "ZUNION" (numbered names <> [arg "WITHSCORES"]) Decode.scored

-- | How to unite.
--
-- @since 0.1.0.0
newtype ZunionOptions = ZunionOptions
  { -- | AGGREGATE: what becomes of several scores of a member.
    zunionAggregate :: Aggregate
  }
  deriving stock (Eq, Show)

-- | Sums of scores.
--
-- @since 0.1.0.0
zunionDefaults :: ZunionOptions
zunionDefaults = ZunionOptions {zunionAggregate = AggregateSum}

-- | @ZUNION n key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX]@: as 'zunion'; each key has
-- the weight with which its scores are multiplied first.
--
-- > zunionWith zunionDefaults (("{week}1", 1) :| [("{week}2", 0.5)])
--
-- @since 0.1.0.0
zunionWith :: ZunionOptions -> NonEmpty (ByteString, Double) -> Command [ByteString]
zunionWith ZunionOptions {zunionAggregate} names = command "ZUNION" (weighted zunionAggregate names) (Decode.list Decode.bytes)

-- | @ZUNION n key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX] WITHSCORES@: as
-- 'zunionWith', with the scores.
--
-- @since 0.1.0.0
zunionWithscoresWith :: ZunionOptions -> NonEmpty (ByteString, Double) -> Command [(ByteString, Double)]
zunionWithscoresWith ZunionOptions {zunionAggregate} names = command "ZUNION" (weighted zunionAggregate names <> [arg "WITHSCORES"]) Decode.scored

-- | @ZUNIONSTORE destination n key …@: puts what 'zunion' would give into a sorted set, in the
-- place of whatever the key held; its size. If there is none, the key is deleted. In a cluster all
-- must share a slot. [Since 2.0.0](https://valkey.io/commands/zunionstore/).
--
-- @since 0.1.0.0
zunionstore :: ByteString -> NonEmpty ByteString -> Command Int64
zunionstore destination names = command "ZUNIONSTORE" (key destination : numbered names) Decode.integer

-- | @ZUNIONSTORE destination n key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX]@: as
-- 'zunionstore', for 'zunionWith'.
--
-- @since 0.1.0.0
zunionstoreWith :: ZunionOptions -> ByteString -> NonEmpty (ByteString, Double) -> Command Int64
zunionstoreWith ZunionOptions {zunionAggregate} destination names =
  command "ZUNIONSTORE" (key destination : weighted zunionAggregate names) Decode.integer

-- | @ZINTER n key …@: as 'zunion', the members of all of them. \(O(n k) + O(m \log m)\) on the
-- server for n members of the smallest of k sorted sets and m of the answer,
-- [since 6.2.0](https://valkey.io/commands/zinter/).
--
-- @since 0.1.0.0
zinter :: NonEmpty ByteString -> Command [ByteString]
zinter names = command "ZINTER" (numbered names) (Decode.list Decode.bytes)

-- | @ZINTER n key … WITHSCORES@: as 'zinter', with the scores.
--
-- @since 0.1.0.0
zinterWithscores :: NonEmpty ByteString -> Command [(ByteString, Double)]
zinterWithscores names = command "ZINTER" (numbered names <> [arg "WITHSCORES"]) Decode.scored

-- | How to intersect.
--
-- @since 0.1.0.0
newtype ZinterOptions = ZinterOptions
  { -- | AGGREGATE: what becomes of several scores of a member.
    zinterAggregate :: Aggregate
  }
  deriving stock (Eq, Show)

-- | Sums of scores.
--
-- @since 0.1.0.0
zinterDefaults :: ZinterOptions
zinterDefaults = ZinterOptions {zinterAggregate = AggregateSum}

-- | @ZINTER n key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX]@: as 'zinter'; each key has
-- the weight with which its scores are multiplied first.
--
-- @since 0.1.0.0
zinterWith :: ZinterOptions -> NonEmpty (ByteString, Double) -> Command [ByteString]
zinterWith ZinterOptions {zinterAggregate} names = command "ZINTER" (weighted zinterAggregate names) (Decode.list Decode.bytes)

-- | @ZINTER n key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX] WITHSCORES@: as
-- 'zinterWith', with the scores.
--
-- @since 0.1.0.0
zinterWithscoresWith :: ZinterOptions -> NonEmpty (ByteString, Double) -> Command [(ByteString, Double)]
zinterWithscoresWith ZinterOptions {zinterAggregate} names = command "ZINTER" (weighted zinterAggregate names <> [arg "WITHSCORES"]) Decode.scored

-- | @ZINTERSTORE destination n key …@: as 'zunionstore', for 'zinter'.
-- [Since 2.0.0](https://valkey.io/commands/zinterstore/).
--
-- @since 0.1.0.0
zinterstore :: ByteString -> NonEmpty ByteString -> Command Int64
zinterstore destination names = command "ZINTERSTORE" (key destination : numbered names) Decode.integer

-- | @ZINTERSTORE destination n key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX]@: as
-- 'zinterstore', for 'zinterWith'.
--
-- @since 0.1.0.0
zinterstoreWith :: ZinterOptions -> ByteString -> NonEmpty (ByteString, Double) -> Command Int64
zinterstoreWith ZinterOptions {zinterAggregate} destination names =
  command "ZINTERSTORE" (key destination : weighted zinterAggregate names) Decode.integer

-- | @ZINTERCARD n key …@: how many members 'zinter' would give. In a cluster the keys must share a
-- slot. \(O(n k)\) on the server for n members of the smallest of k sorted sets,
-- [since 7.0.0](https://valkey.io/commands/zintercard/).
--
-- @since 0.1.0.0
zintercard :: NonEmpty ByteString -> Command Int64
zintercard = zintercardWith zintercardDefaults

-- | How to count.
--
-- @since 0.1.0.0
newtype ZintercardOptions = ZintercardOptions
  { -- | LIMIT: when to stop counting; 0 is never. The server refuses a negative one.
    zintercardLimit :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | Counts all.
--
-- @since 0.1.0.0
zintercardDefaults :: ZintercardOptions
zintercardDefaults = ZintercardOptions {zintercardLimit = Nothing}

-- | @ZINTERCARD n key … [LIMIT l]@: as 'zintercard'.
--
-- @since 0.1.0.0
zintercardWith :: ZintercardOptions -> NonEmpty ByteString -> Command Int64
zintercardWith ZintercardOptions {zintercardLimit} names =
  command "ZINTERCARD" (numbered names <> option "LIMIT" natural zintercardLimit) Decode.integer

-- | @ZDIFF n key …@: the members of the first that are in none of the others, in the order of their
-- scores there. In a cluster the keys must share a slot. \(O(l + (n-k) \log n)\) on the server for
-- l members of all, n of the first and k of the answer,
-- [since 6.2.0](https://valkey.io/commands/zdiff/).
--
-- @since 0.1.0.0
zdiff :: NonEmpty ByteString -> Command [ByteString]
zdiff names = command "ZDIFF" (numbered names) (Decode.list Decode.bytes)

-- | @ZDIFF n key … WITHSCORES@: as 'zdiff', with the scores.
--
-- @since 0.1.0.0
zdiffWithscores :: NonEmpty ByteString -> Command [(ByteString, Double)]
zdiffWithscores names = command "ZDIFF" (numbered names <> [arg "WITHSCORES"]) Decode.scored

-- | @ZDIFFSTORE destination n key …@: as 'zunionstore', for 'zdiff'.
-- [Since 6.2.0](https://valkey.io/commands/zdiffstore/).
--
-- @since 0.1.0.0
zdiffstore :: ByteString -> NonEmpty ByteString -> Command Int64
zdiffstore destination names = command "ZDIFFSTORE" (key destination : numbered names) Decode.integer

-- | How many keys, and they.
numbered :: NonEmpty ByteString -> [Argument]
numbered names = int (fromIntegral (length names)) : keys names

-- | How many keys, and they; then their weights and the aggregate, where they are not
-- what the server takes anyway.
weighted :: Aggregate -> NonEmpty (ByteString, Double) -> [Argument]
weighted aggregate names = numbered (fmap fst names) <> weights <> how
  where
    weights
      | all ((== 1) . snd) names = []
      | otherwise = arg "WEIGHTS" : map (double . snd) (toList names)
    how = case aggregate of
      AggregateSum -> []
      AggregateMin -> [arg "AGGREGATE", arg "MIN"]
      AggregateMax -> [arg "AGGREGATE", arg "MAX"]
