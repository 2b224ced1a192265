-- | Unions, intersections and differences of sorted sets.
--
-- > run client (Redis.zinterWithscores ("example:{sortedsets}:may" :| ["example:{sortedsets}:june"]))
--
-- The keys may also hold sets: their members count with score 1. A key that does not exist counts
-- as an empty sorted set. In a cluster the keys of a command must share a slot.
--
-- The servers' pages: <https://valkey.io/commands/#sorted-set>.
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

    -- * Combining scores
    Aggregate (..),
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | How the scores of a member that is in several sorted sets are combined.
data Aggregate
  = -- | SUM, the server's default: their sum.
    AggregateSum
  | -- | MIN: the lowest of them.
    AggregateMin
  | -- | MAX: the highest of them.
    AggregateMax
  | -- | COUNT (Redis since 8.8.0): the number of the sorted sets or, with weights, the sum of theirs;
    -- the scores do not matter.
    AggregateCount
  deriving stock (Eq, Show)

-- | @ZUNION n key …@, @ZINTER n key …@, @ZDIFF n key …@: the members that are in any of the sorted
-- sets, or in all of them, ordered by the sums of their scores; the members of the first sorted set
-- that are in none of the others, ordered by their scores. Since 6.2.0
-- ([ZUNION](https://valkey.io/commands/zunion/), [ZINTER](https://valkey.io/commands/zinter/),
-- [ZDIFF](https://valkey.io/commands/zdiff/)).
--
-- For m members in the reply, ZUNION costs \(O(n) + O(m \log m)\) in all n members, and ZINTER
-- \(O(n k) + O(m \log m)\) for n members of the smallest of k sorted sets. ZDIFF costs
-- \(O(l + (n-m) \log n)\) for l members in all sorted sets and n in the first.
zunion, zinter, zdiff :: NonEmpty ByteString -> Command [ByteString]
zunion names = command "ZUNION" (countedKeys names) (Decode.list Decode.bytes)
zinter names = command "ZINTER" (countedKeys names) (Decode.list Decode.bytes)
zdiff names = command "ZDIFF" (countedKeys names) (Decode.list Decode.bytes)

-- | @ZUNION n key … WITHSCORES@, @ZINTER …@, @ZDIFF …@: with the scores.
zunionWithscores, zinterWithscores, zdiffWithscores :: NonEmpty ByteString -> Command [(ByteString, Double)]
zunionWithscores names = command "ZUNION" (countedKeys names <> [arg "WITHSCORES"]) Decode.scored
zinterWithscores names = command "ZINTER" (countedKeys names <> [arg "WITHSCORES"]) Decode.scored
zdiffWithscores names = command "ZDIFF" (countedKeys names <> [arg "WITHSCORES"]) Decode.scored

-- | The options of the unions.
newtype ZunionOptions = ZunionOptions
  { -- | AGGREGATE: how several scores of a member are combined.
    zunionAggregate :: Aggregate
  }
  deriving stock (Eq, Show)

-- | Sums of scores.
zunionDefaults :: ZunionOptions
zunionDefaults = ZunionOptions {zunionAggregate = AggregateSum}

-- | @ZUNION n key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX|COUNT]@: like 'zunion', but each key comes
-- with a weight, by which its scores are multiplied first.
--
-- > zunionWith zunionDefaults (("{week}1", 1) :| [("{week}2", 0.5)])
zunionWith :: ZunionOptions -> NonEmpty (ByteString, Double) -> Command [ByteString]
zunionWith ZunionOptions {zunionAggregate} names = command "ZUNION" (weighted zunionAggregate names) (Decode.list Decode.bytes)

-- | @ZUNION n key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX|COUNT] WITHSCORES@: like 'zunionWith', with
-- the scores.
zunionWithscoresWith :: ZunionOptions -> NonEmpty (ByteString, Double) -> Command [(ByteString, Double)]
zunionWithscoresWith ZunionOptions {zunionAggregate} names = command "ZUNION" (weighted zunionAggregate names <> [arg "WITHSCORES"]) Decode.scored

-- | @ZUNIONSTORE destination n key …@, @ZINTERSTORE …@, @ZDIFFSTORE …@: store the result of
-- 'zunion', 'zinter' or 'zdiff', with the scores, at the destination key, and replace whatever that
-- key held; return the number of members. If there are none, the key is deleted. Since 2.0.0
-- ([ZUNIONSTORE](https://valkey.io/commands/zunionstore/),
-- [ZINTERSTORE](https://valkey.io/commands/zinterstore/)),
-- [ZDIFFSTORE](https://valkey.io/commands/zdiffstore/) since 6.2.0.
zunionstore, zinterstore, zdiffstore :: ByteString -> NonEmpty ByteString -> Command Int64
zunionstore destination names = command "ZUNIONSTORE" (key destination : countedKeys names) Decode.integer
zinterstore destination names = command "ZINTERSTORE" (key destination : countedKeys names) Decode.integer
zdiffstore destination names = command "ZDIFFSTORE" (key destination : countedKeys names) Decode.integer

-- | @ZUNIONSTORE destination n key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX|COUNT]@: like
-- 'zunionstore', but stores the result of 'zunionWith'.
zunionstoreWith :: ZunionOptions -> ByteString -> NonEmpty (ByteString, Double) -> Command Int64
zunionstoreWith ZunionOptions {zunionAggregate} destination names =
  command "ZUNIONSTORE" (key destination : weighted zunionAggregate names) Decode.integer

-- | The options of the intersections.
newtype ZinterOptions = ZinterOptions
  { -- | AGGREGATE: how several scores of a member are combined.
    zinterAggregate :: Aggregate
  }
  deriving stock (Eq, Show)

-- | Sums of scores.
zinterDefaults :: ZinterOptions
zinterDefaults = ZinterOptions {zinterAggregate = AggregateSum}

-- | @ZINTER n key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX|COUNT]@: like 'zinter', but each key comes
-- with a weight, by which its scores are multiplied first.
zinterWith :: ZinterOptions -> NonEmpty (ByteString, Double) -> Command [ByteString]
zinterWith ZinterOptions {zinterAggregate} names = command "ZINTER" (weighted zinterAggregate names) (Decode.list Decode.bytes)

-- | @ZINTER n key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX|COUNT] WITHSCORES@: like 'zinterWith', with
-- the scores.
zinterWithscoresWith :: ZinterOptions -> NonEmpty (ByteString, Double) -> Command [(ByteString, Double)]
zinterWithscoresWith ZinterOptions {zinterAggregate} names = command "ZINTER" (weighted zinterAggregate names <> [arg "WITHSCORES"]) Decode.scored

-- | @ZINTERSTORE destination n key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX|COUNT]@: like
-- 'zinterstore', but stores the result of 'zinterWith'.
zinterstoreWith :: ZinterOptions -> ByteString -> NonEmpty (ByteString, Double) -> Command Int64
zinterstoreWith ZinterOptions {zinterAggregate} destination names =
  command "ZINTERSTORE" (key destination : weighted zinterAggregate names) Decode.integer

-- | @ZINTERCARD n key …@: the number of members that 'zinter' would return. \(O(n k)\) for n
-- members of the smallest of k sorted sets, [since 7.0.0](https://valkey.io/commands/zintercard/).
zintercard :: NonEmpty ByteString -> Command Int64
zintercard = zintercardWith zintercardDefaults

-- | The options of 'zintercardWith'.
newtype ZintercardOptions = ZintercardOptions
  { -- | LIMIT: the number at which the server stops counting; 0 means no limit. A negative number
    -- is refused before the command is sent.
    zintercardLimit :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | No limit.
zintercardDefaults :: ZintercardOptions
zintercardDefaults = ZintercardOptions {zintercardLimit = Nothing}

-- | @ZINTERCARD n key … [LIMIT l]@: like 'zintercard', with a limit.
zintercardWith :: ZintercardOptions -> NonEmpty ByteString -> Command Int64
zintercardWith ZintercardOptions {zintercardLimit} names =
  command "ZINTERCARD" (countedKeys names <> option "LIMIT" natural zintercardLimit) Decode.integer

-- | The number of keys, then the keys; then the weights and the aggregate, if they differ from the
-- server's defaults.
weighted :: Aggregate -> NonEmpty (ByteString, Double) -> [Argument]
weighted aggregate names = countedKeys (fmap fst names) <> weights <> how
  where
    weights
      | all ((== 1) . snd) names = []
      | otherwise = arg "WEIGHTS" : map (double . snd) (toList names)
    how = case aggregate of
      AggregateSum -> []
      AggregateMin -> [arg "AGGREGATE", arg "MIN"]
      AggregateMax -> [arg "AGGREGATE", arg "MAX"]
      AggregateCount -> [arg "AGGREGATE", arg "COUNT"]
