-- | Parts of a sorted set: by place, by score, or by the members themselves.
--
-- > let down = Redis.zrangeDefaults {Redis.zrangeRev = True}
-- > run client (Redis.zrangeWithscoresWith down "example:{sortedsets}:may" (Redis.ByRank 0 1))
-- > run client (Redis.zcount "example:{sortedsets}:may" (Redis.ScoreExclusive 58) Redis.ScoreHighest)
--
-- Ranges by the members themselves mean something only if all scores are the same: then
-- members are in the order of their bytes.
--
-- What the servers say: <https://valkey.io/commands/#sorted-set>.
module Redis.Commands.SortedSetRange
  ( -- * Ranges
    SortedRange (..),
    LexRange (..),
    ScoreBound (..),
    LexBound (..),
    RangeLimit (..),

    -- * Reading one
    zrange,
    zrangeWithscores,
    zrangeWith,
    zrangeWithscoresWith,
    ZrangeOptions (zrangeRev),
    zrangeDefaults,

    -- * Storing one
    zrangestore,
    zrangestoreWith,

    -- * Counting
    zcount,
    zlexcount,

    -- * Removing one
    zremrangebyrank,
    zremrangebyscore,
    zremrangebylex,

    -- * As servers before 6.2.0 have it
    zrangebyscore,
    zrangebyscoreWith,
    zrangebyscoreWithscores,
    zrangebyscoreWithscoresWith,
    ZrangebyscoreOptions (zrangebyscoreLimit),
    zrangebyscoreDefaults,
    zrangebylex,
    zrangebylexWith,
    ZrangebylexOptions (zrangebylexLimit),
    zrangebylexDefaults,
    zrevrange,
    zrevrangeWithscores,
    zrevrangebyscore,
    zrevrangebyscoreWith,
    zrevrangebyscoreWithscores,
    zrevrangebyscoreWithscoresWith,
    zrevrangebylex,
    zrevrangebylexWith,
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.Void (Void, absurd)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Argument (floating)

-- | Which members. The parameter is 'LexRange' where 'ByLex' is possible, and 'Void' where
-- it is not.
--
-- @since 0.1.0.0
data SortedRange lex
  = -- | From place to place, both included, counted from 0; negative from the end.
    ByRank Int64 Int64
  | -- | BYSCORE (since 6.2.0): from score to score.
    ByScore ScoreBound ScoreBound RangeLimit
  | -- | BYLEX (since 6.2.0): from member to member.
    ByLex lex
  deriving stock (Eq, Show)

-- | From member to member.
--
-- @since 0.1.0.0
data LexRange = LexRange LexBound LexBound RangeLimit
  deriving stock (Eq, Show)

-- | Where a range of scores begins or ends.
--
-- @since 0.1.0.0
data ScoreBound
  = -- | At this score, which is in it.
    ScoreInclusive Double
  | -- | At this score, which is not in it.
    ScoreExclusive Double
  | -- | @-inf@
    ScoreLowest
  | -- | @+inf@
    ScoreHighest
  deriving stock (Eq, Show)

-- | Where a range of members begins or ends.
--
-- @since 0.1.0.0
data LexBound
  = -- | At these bytes, which are in it.
    LexInclusive ByteString
  | -- | At these bytes, which are not in it.
    LexExclusive ByteString
  | -- | @-@: before all bytes.
    LexLowest
  | -- | @+@: behind all bytes.
    LexHighest
  deriving stock (Eq, Show)

-- | How much of a range.
--
-- @since 0.1.0.0
data RangeLimit
  = -- | All of it.
    WholeRange
  | -- | LIMIT: skips so many, then gives at most so many; with a negative second
    -- number all. What is skipped costs as much as what is given.
    RangeLimit Int64 Int64
  deriving stock (Eq, Show)

scoreBound :: ScoreBound -> Argument
scoreBound = \case
  ScoreInclusive score -> double score
  ScoreExclusive score -> arg ("(" <> floating score)
  ScoreLowest -> arg "-inf"
  ScoreHighest -> arg "+inf"

lexBound :: LexBound -> Argument
lexBound = \case
  LexInclusive member -> arg ("[" <> member)
  LexExclusive member -> arg ("(" <> member)
  LexLowest -> arg "-"
  LexHighest -> arg "+"

rangeLimit :: RangeLimit -> [Argument]
rangeLimit = \case
  WholeRange -> []
  RangeLimit skipped count -> [arg "LIMIT", int skipped, int count]

-- | @ZRANGE key start stop@: the members from place to place, both included, negative from the end.
-- \(O(\log n + m)\) on the server for m members of n,
-- [since 1.2.0](https://valkey.io/commands/zrange/).
--
-- @since 0.1.0.0
zrange :: ByteString -> Int64 -> Int64 -> Command [ByteString]
zrange name start stop = command "ZRANGE" [key name, int start, int stop] (Decode.list Decode.bytes)

-- | @ZRANGE key start stop WITHSCORES@: as 'zrange', with the scores.
--
-- @since 0.1.0.0
zrangeWithscores :: ByteString -> Int64 -> Int64 -> Command [(ByteString, Double)]
zrangeWithscores name start stop = command "ZRANGE" [key name, int start, int stop, arg "WITHSCORES"] Decode.scored

-- | How to walk over a range.
--
-- @since 0.1.0.0
newtype ZrangeOptions = ZrangeOptions
  { -- | REV (since 6.2.0): from the highest down. Places count from there, and a range
    -- of scores or members begins at its upper bound:
    -- @'ByScore' 'ScoreHighest' ('ScoreInclusive' 50) 'WholeRange'@.
    zrangeRev :: Bool
  }
  deriving stock (Eq, Show)

-- | From the lowest up.
--
-- @since 0.1.0.0
zrangeDefaults :: ZrangeOptions
zrangeDefaults = ZrangeOptions {zrangeRev = False}

-- | @ZRANGE key start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count]@: the members of a range.
-- \(O(\log n + m)\) on the server for m members of n,
-- [since 6.2.0](https://valkey.io/commands/zrange/).
--
-- > zrangeWith zrangeDefaults "names" (ByLex (LexRange (LexInclusive "a") (LexExclusive "b") WholeRange))
--
-- @since 0.1.0.0
zrangeWith :: ZrangeOptions -> ByteString -> SortedRange LexRange -> Command [ByteString]
zrangeWith options name range =
  command "ZRANGE" (key name : rangeArguments lexRange options range) (Decode.list Decode.bytes)

-- | @ZRANGE key start stop [BYSCORE] [REV] [LIMIT offset count] WITHSCORES@: as
-- 'zrangeWith', with the scores. The server refuses them together with BYLEX, where all
-- are the same.
--
-- @since 0.1.0.0
zrangeWithscoresWith :: ZrangeOptions -> ByteString -> SortedRange Void -> Command [(ByteString, Double)]
zrangeWithscoresWith options name range =
  command "ZRANGE" (key name : rangeArguments absurd options range <> [arg "WITHSCORES"]) Decode.scored

-- | The bounds, and the words between them and the limit with it.
rangeArguments :: (lex -> ([Argument], RangeLimit)) -> ZrangeOptions -> SortedRange lex -> [Argument]
rangeArguments ofLex ZrangeOptions {zrangeRev} range = bounds <> by <> flag "REV" zrangeRev <> rangeLimit limit
  where
    (bounds, by, limit) = case range of
      ByRank start stop -> ([int start, int stop], [], WholeRange)
      ByScore from to some -> ([scoreBound from, scoreBound to], [arg "BYSCORE"], some)
      ByLex given -> let (both, some) = ofLex given in (both, [arg "BYLEX"], some)

lexRange :: LexRange -> ([Argument], RangeLimit)
lexRange (LexRange from to limit) = ([lexBound from, lexBound to], limit)

-- | @ZRANGESTORE destination source start stop@: puts what 'zrange' would give into a sorted set,
-- in the place of whatever the key held; its size. If there is none, the key is deleted. In a
-- cluster both must share a slot. \(O(\log n + m)\) on the server for m members of n,
-- [since 6.2.0](https://valkey.io/commands/zrangestore/).
--
-- @since 0.1.0.0
zrangestore :: ByteString -> ByteString -> Int64 -> Int64 -> Command Int64
zrangestore destination source start stop =
  command "ZRANGESTORE" [key destination, key source, int start, int stop] Decode.integer

-- | @ZRANGESTORE destination source start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count]@:
-- as 'zrangestore', for 'zrangeWith'.
--
-- @since 0.1.0.0
zrangestoreWith :: ZrangeOptions -> ByteString -> ByteString -> SortedRange LexRange -> Command Int64
zrangestoreWith options destination source range =
  command "ZRANGESTORE" (key destination : key source : rangeArguments lexRange options range) Decode.integer

-- | @ZCOUNT key min max@: how many members have such a score. \(O(\log n)\) on the server,
-- [since 2.0.0](https://valkey.io/commands/zcount/).
--
-- @since 0.1.0.0
zcount :: ByteString -> ScoreBound -> ScoreBound -> Command Int64
zcount name from to = command "ZCOUNT" [key name, scoreBound from, scoreBound to] Decode.integer

-- | @ZLEXCOUNT key min max@: how many members are between these. \(O(\log n)\) on the server,
-- [since 2.8.9](https://valkey.io/commands/zlexcount/).
--
-- @since 0.1.0.0
zlexcount :: ByteString -> LexBound -> LexBound -> Command Int64
zlexcount name from to = command "ZLEXCOUNT" [key name, lexBound from, lexBound to] Decode.integer

-- | @ZREMRANGEBYRANK key start stop@: removes the members from place to place, both included,
-- negative from the end; how many. \(O(\log n + m)\) on the server for m members of n,
-- [since 2.0.0](https://valkey.io/commands/zremrangebyrank/).
--
-- @since 0.1.0.0
zremrangebyrank :: ByteString -> Int64 -> Int64 -> Command Int64
zremrangebyrank name start stop = command "ZREMRANGEBYRANK" [key name, int start, int stop] Decode.integer

-- | @ZREMRANGEBYSCORE key min max@: removes the members of such a score; how many. \(O(\log n +
-- m)\) on the server for m members of n,
-- [since 1.2.0](https://valkey.io/commands/zremrangebyscore/).
--
-- @since 0.1.0.0
zremrangebyscore :: ByteString -> ScoreBound -> ScoreBound -> Command Int64
zremrangebyscore name from to = command "ZREMRANGEBYSCORE" [key name, scoreBound from, scoreBound to] Decode.integer

-- | @ZREMRANGEBYLEX key min max@: removes the members between these; how many. \(O(\log n + m)\) on
-- the server for m members of n, [since 2.8.9](https://valkey.io/commands/zremrangebylex/).
--
-- @since 0.1.0.0
zremrangebylex :: ByteString -> LexBound -> LexBound -> Command Int64
zremrangebylex name from to = command "ZREMRANGEBYLEX" [key name, lexBound from, lexBound to] Decode.integer

-- | @ZRANGEBYSCORE key min max@: the members of such a score, from the lowest up.
-- [Since 1.0.5](https://valkey.io/commands/zrangebyscore/); Redis calls it deprecated since 6.2.0,
-- for 'zrangeWith' with 'ByScore'. \(O(\log n + m)\) on the server for m members of n.
--
-- @since 0.1.0.0
zrangebyscore :: ByteString -> ScoreBound -> ScoreBound -> Command [ByteString]
zrangebyscore = zrangebyscoreWith zrangebyscoreDefaults

-- | How to walk over a range, either way.
--
-- @since 0.1.0.0
newtype ZrangebyscoreOptions = ZrangebyscoreOptions
  { zrangebyscoreLimit :: RangeLimit
  }
  deriving stock (Eq, Show)

-- | All of it.
--
-- @since 0.1.0.0
zrangebyscoreDefaults :: ZrangebyscoreOptions
zrangebyscoreDefaults = ZrangebyscoreOptions {zrangebyscoreLimit = WholeRange}

-- | @ZRANGEBYSCORE key min max [LIMIT offset count]@: as 'zrangebyscore', some of them.
--
-- @since 0.1.0.0
zrangebyscoreWith :: ZrangebyscoreOptions -> ByteString -> ScoreBound -> ScoreBound -> Command [ByteString]
zrangebyscoreWith ZrangebyscoreOptions {zrangebyscoreLimit} name from to =
  command "ZRANGEBYSCORE" (key name : scoreBound from : scoreBound to : rangeLimit zrangebyscoreLimit) (Decode.list Decode.bytes)

-- | @ZRANGEBYSCORE key min max WITHSCORES@: as 'zrangebyscore', with the scores.
-- [Since 2.0.0](https://valkey.io/commands/zrangebyscore/).
--
-- @since 0.1.0.0
zrangebyscoreWithscores :: ByteString -> ScoreBound -> ScoreBound -> Command [(ByteString, Double)]
zrangebyscoreWithscores = zrangebyscoreWithscoresWith zrangebyscoreDefaults

-- | @ZRANGEBYSCORE key min max WITHSCORES [LIMIT offset count]@: as 'zrangebyscoreWith', with the
-- scores. [Since 2.0.0](https://valkey.io/commands/zrangebyscore/).
--
-- @since 0.1.0.0
zrangebyscoreWithscoresWith :: ZrangebyscoreOptions -> ByteString -> ScoreBound -> ScoreBound -> Command [(ByteString, Double)]
zrangebyscoreWithscoresWith ZrangebyscoreOptions {zrangebyscoreLimit} name from to =
  command "ZRANGEBYSCORE" (key name : scoreBound from : scoreBound to : arg "WITHSCORES" : rangeLimit zrangebyscoreLimit) Decode.scored

-- | @ZRANGEBYLEX key min max@: the members between these, from the lowest up.
-- [Since 2.8.9](https://valkey.io/commands/zrangebylex/); Redis calls it deprecated since 6.2.0,
-- for 'zrangeWith' with 'ByLex'. \(O(\log n + m)\) on the server for m members of n.
--
-- @since 0.1.0.0
zrangebylex :: ByteString -> LexBound -> LexBound -> Command [ByteString]
zrangebylex = zrangebylexWith zrangebylexDefaults

-- | How to walk over a range, either way.
--
-- @since 0.1.0.0
newtype ZrangebylexOptions = ZrangebylexOptions
  { zrangebylexLimit :: RangeLimit
  }
  deriving stock (Eq, Show)

-- | All of it.
--
-- @since 0.1.0.0
zrangebylexDefaults :: ZrangebylexOptions
zrangebylexDefaults = ZrangebylexOptions {zrangebylexLimit = WholeRange}

-- | @ZRANGEBYLEX key min max [LIMIT offset count]@: as 'zrangebylex', some of them.
--
-- @since 0.1.0.0
zrangebylexWith :: ZrangebylexOptions -> ByteString -> LexBound -> LexBound -> Command [ByteString]
zrangebylexWith ZrangebylexOptions {zrangebylexLimit} name from to =
  command "ZRANGEBYLEX" (key name : lexBound from : lexBound to : rangeLimit zrangebylexLimit) (Decode.list Decode.bytes)

-- | @ZREVRANGE key start stop@: the members from place to place, from the highest score down.
-- [Since 1.2.0](https://valkey.io/commands/zrevrange/); Redis calls it deprecated since 6.2.0, for
-- 'zrangeWith' with 'zrangeRev'. \(O(\log n + m)\) on the server for m members of n.
--
-- @since 0.1.0.0
zrevrange :: ByteString -> Int64 -> Int64 -> Command [ByteString]
zrevrange name start stop = command "ZREVRANGE" [key name, int start, int stop] (Decode.list Decode.bytes)

-- | @ZREVRANGE key start stop WITHSCORES@: as 'zrevrange', with the scores.
--
-- @since 0.1.0.0
zrevrangeWithscores :: ByteString -> Int64 -> Int64 -> Command [(ByteString, Double)]
zrevrangeWithscores name start stop =
  command "ZREVRANGE" [key name, int start, int stop, arg "WITHSCORES"] Decode.scored

-- | @ZREVRANGEBYSCORE key max min@: the members of such a score, from the highest down, whose bound
-- comes first. [Since 2.2.0](https://valkey.io/commands/zrevrangebyscore/); Redis calls it
-- deprecated since 6.2.0, for 'zrangeWith' with 'zrangeRev' and 'ByScore'. \(O(\log n + m)\) on the
-- server for m members of n.
--
-- @since 0.1.0.0
zrevrangebyscore :: ByteString -> ScoreBound -> ScoreBound -> Command [ByteString]
zrevrangebyscore = zrevrangebyscoreWith zrangebyscoreDefaults

-- | @ZREVRANGEBYSCORE key max min [LIMIT offset count]@: as 'zrevrangebyscore', some of
-- them.
--
-- @since 0.1.0.0
zrevrangebyscoreWith :: ZrangebyscoreOptions -> ByteString -> ScoreBound -> ScoreBound -> Command [ByteString]
zrevrangebyscoreWith ZrangebyscoreOptions {zrangebyscoreLimit} name from to =
  command "ZREVRANGEBYSCORE" (key name : scoreBound from : scoreBound to : rangeLimit zrangebyscoreLimit) (Decode.list Decode.bytes)

-- | @ZREVRANGEBYSCORE key max min WITHSCORES@: as 'zrevrangebyscore', with the scores.
--
-- @since 0.1.0.0
zrevrangebyscoreWithscores :: ByteString -> ScoreBound -> ScoreBound -> Command [(ByteString, Double)]
zrevrangebyscoreWithscores = zrevrangebyscoreWithscoresWith zrangebyscoreDefaults

-- | @ZREVRANGEBYSCORE key max min WITHSCORES [LIMIT offset count]@: as
-- 'zrevrangebyscoreWith', with the scores.
--
-- @since 0.1.0.0
zrevrangebyscoreWithscoresWith :: ZrangebyscoreOptions -> ByteString -> ScoreBound -> ScoreBound -> Command [(ByteString, Double)]
zrevrangebyscoreWithscoresWith ZrangebyscoreOptions {zrangebyscoreLimit} name from to =
  command
    "ZREVRANGEBYSCORE"
    (key name : scoreBound from : scoreBound to : arg "WITHSCORES" : rangeLimit zrangebyscoreLimit)
    Decode.scored

-- | @ZREVRANGEBYLEX key max min@: the members between these, from the highest down, whose bound
-- comes first. [Since 2.8.9](https://valkey.io/commands/zrevrangebylex/); Redis calls it deprecated
-- since 6.2.0, for 'zrangeWith' with 'zrangeRev' and 'ByLex'. \(O(\log n + m)\) on the server for m
-- members of n.
--
-- @since 0.1.0.0
zrevrangebylex :: ByteString -> LexBound -> LexBound -> Command [ByteString]
zrevrangebylex = zrevrangebylexWith zrangebylexDefaults

-- | @ZREVRANGEBYLEX key max min [LIMIT offset count]@: as 'zrevrangebylex', some of them.
--
-- @since 0.1.0.0
zrevrangebylexWith :: ZrangebylexOptions -> ByteString -> LexBound -> LexBound -> Command [ByteString]
zrevrangebylexWith ZrangebylexOptions {zrangebylexLimit} name from to =
  command "ZREVRANGEBYLEX" (key name : lexBound from : lexBound to : rangeLimit zrangebylexLimit) (Decode.list Decode.bytes)
