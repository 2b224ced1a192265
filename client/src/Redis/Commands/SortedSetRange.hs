-- | Ranges of a sorted set: by rank, by score, or by the members themselves.
--
-- > let down = Redis.zrangeDefaults {Redis.zrangeRev = True}
-- > run client (Redis.zrangeWithscoresWith down "example:{sortedsets}:may" (Redis.ByRank 0 1))
-- > run client (Redis.zcount "example:{sortedsets}:may" (Redis.ScoreExclusive 58) Redis.ScoreHighest)
--
-- Ranges by the members themselves are meaningful only if all scores are equal: then the members
-- are in the order of their bytes.
--
-- The servers' pages: <https://valkey.io/commands/#sorted-set>.
module Redis.Commands.SortedSetRange
  ( -- * Ranges
    SortedRange (..),
    LexRange (..),
    ScoreBound (..),
    LexBound (..),
    RangeLimit (..),

    -- * Reading a range
    zrange,
    zrangeWithscores,
    zrangeWith,
    zrangeWithscoresWith,
    zrangeXx,
    zrangeXxWith,
    zrangeXxWithscores,
    zrangeXxWithscoresWith,
    ZrangeOptions (zrangeRev),
    zrangeDefaults,

    -- * Storing a range
    zrangestore,
    zrangestoreWith,

    -- * Counting
    zcount,
    zlexcount,

    -- * Removing a range
    zremrangebyrank,
    zremrangebyscore,
    zremrangebylex,

    -- * The commands of servers before 6.2.0
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

import Data.Void (Void, absurd)
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | A range of members. The type parameter is 'LexRange' where 'ByLex' is possible, else 'Void'.
data SortedRange lex
  = -- | From rank to rank, both included, counted from 0; a negative rank counts from the end.
    ByRank Int64 Int64
  | -- | BYSCORE (since 6.2.0): from score to score.
    ByScore ScoreBound ScoreBound RangeLimit
  | -- | BYLEX (since 6.2.0): from member to member.
    ByLex lex
  deriving stock (Eq, Show)

-- | A range of members, by their bytes.
data LexRange = LexRange LexBound LexBound RangeLimit
  deriving stock (Eq, Show)

-- | The bound at which a range of scores begins or ends.
data ScoreBound
  = -- | At this score, included.
    ScoreInclusive Double
  | -- | At this score, excluded.
    ScoreExclusive Double
  | -- | @-inf@
    ScoreLowest
  | -- | @+inf@
    ScoreHighest
  deriving stock (Eq, Show)

-- | The part of a range that is returned.
data RangeLimit
  = -- | The whole range.
    WholeRange
  | -- | LIMIT: skips the first number of members, then returns at most the second; a negative
    -- second number means all of them. Skipped members cost as much as returned ones.
    RangeLimit Int64 Int64
  deriving stock (Eq, Show)

scoreBound :: ScoreBound -> Argument
scoreBound = \case
  ScoreInclusive score -> double score
  ScoreExclusive score
    | isNaN score -> double score
    | otherwise -> arg ("(" <> floating score)
  ScoreLowest -> arg "-inf"
  ScoreHighest -> arg "+inf"

rangeLimit :: RangeLimit -> [Argument]
rangeLimit = \case
  WholeRange -> []
  RangeLimit skipped count -> [arg "LIMIT", int skipped, int count]

-- | @ZRANGE key start stop@: the members from rank start to rank stop, both included; a negative
-- rank counts from the end. @ZREVRANGE …@ goes from the highest score down, where ranks count from
-- the highest; deprecated in Redis since 6.2.0 in favour of 'zrangeWith' with 'zrangeRev'.
-- \(O(\log n + m)\) for m members of n, since 1.2.0 ([ZRANGE](https://valkey.io/commands/zrange/),
-- [ZREVRANGE](https://valkey.io/commands/zrevrange/)).
zrange, zrevrange :: ByteString -> Int64 -> Int64 -> Command [ByteString]
zrange name start stop = command "ZRANGE" [key name, int start, int stop] (Decode.list Decode.bytes)
zrevrange name start stop = command "ZREVRANGE" [key name, int start, int stop] (Decode.list Decode.bytes)

-- | @ZRANGE key start stop WITHSCORES@, @ZREVRANGE …@: like 'zrange' and 'zrevrange', with the
-- scores.
zrangeWithscores, zrevrangeWithscores :: ByteString -> Int64 -> Int64 -> Command [(ByteString, Double)]
zrangeWithscores name start stop = command "ZRANGE" [key name, int start, int stop, arg "WITHSCORES"] Decode.scored
zrevrangeWithscores name start stop = command "ZREVRANGE" [key name, int start, int stop, arg "WITHSCORES"] Decode.scored

-- | The options of 'zrangeWith', 'zrangestoreWith' and their kin.
newtype ZrangeOptions = ZrangeOptions
  { -- | REV (since 6.2.0): from the highest score down. Ranks count from there, and a range of
    -- scores or members begins with its upper bound:
    -- @'ByScore' 'ScoreHighest' ('ScoreInclusive' 50) 'WholeRange'@.
    zrangeRev :: Bool
  }
  deriving stock (Eq, Show)

-- | From the lowest score up.
zrangeDefaults :: ZrangeOptions
zrangeDefaults = ZrangeOptions {zrangeRev = False}

-- | @ZRANGE key start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count]@: the members of a range.
-- \(O(\log n + m)\) for m members of n, [since 6.2.0](https://valkey.io/commands/zrange/).
--
-- > zrangeWith zrangeDefaults "names" (ByLex (LexRange (LexInclusive "a") (LexExclusive "b") WholeRange))
zrangeWith :: ZrangeOptions -> ByteString -> SortedRange LexRange -> Command [ByteString]
zrangeWith options name range =
  command "ZRANGE" (key name : rangeArguments lexRange options range) (Decode.list Decode.bytes)

-- | @ZRANGE key start stop [BYSCORE] [REV] [LIMIT offset count] WITHSCORES@: like 'zrangeWith',
-- with the scores. The server refuses WITHSCORES together with BYLEX, where all scores are equal.
zrangeWithscoresWith :: ZrangeOptions -> ByteString -> SortedRange Void -> Command [(ByteString, Double)]
zrangeWithscoresWith options name range =
  command "ZRANGE" (key name : rangeArguments absurd options range <> [arg "WITHSCORES"]) Decode.scored

-- | @ZRANGE key start stop XX@: like 'zrange', but 'Nothing' if there is no sorted set. Valkey
-- [since 9.2.0](https://valkey.io/commands/zrange/); other servers refuse the word XX.
zrangeXx :: ByteString -> Int64 -> Int64 -> Command (Maybe [ByteString])
zrangeXx name start stop = zrangeXxWith zrangeDefaults name (ByRank start stop)

-- | @ZRANGE key start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count] XX@: like 'zrangeXx', for any
-- range.
zrangeXxWith :: ZrangeOptions -> ByteString -> SortedRange LexRange -> Command (Maybe [ByteString])
zrangeXxWith options name range =
  command "ZRANGE" (key name : rangeArguments lexRange options range <> [arg "XX"]) (Decode.nullable (Decode.list Decode.bytes))

-- | @ZRANGE key start stop WITHSCORES XX@: like 'zrangeXx', with the scores.
zrangeXxWithscores :: ByteString -> Int64 -> Int64 -> Command (Maybe [(ByteString, Double)])
zrangeXxWithscores name start stop = zrangeXxWithscoresWith zrangeDefaults name (ByRank start stop)

-- | @ZRANGE key start stop [BYSCORE] [REV] [LIMIT offset count] WITHSCORES XX@: like
-- 'zrangeXxWithscores', for any range.
zrangeXxWithscoresWith :: ZrangeOptions -> ByteString -> SortedRange Void -> Command (Maybe [(ByteString, Double)])
zrangeXxWithscoresWith options name range =
  command "ZRANGE" (key name : rangeArguments absurd options range <> [arg "WITHSCORES", arg "XX"]) (Decode.nullable Decode.scored)

-- | The bounds, the words BYSCORE, BYLEX and REV, and the limit, as the range has them.
rangeArguments :: (lex -> ([Argument], RangeLimit)) -> ZrangeOptions -> SortedRange lex -> [Argument]
rangeArguments ofLex ZrangeOptions {zrangeRev} range = bounds <> by <> flag "REV" zrangeRev <> rangeLimit limit
  where
    (bounds, by, limit) = case range of
      ByRank start stop -> ([int start, int stop], [], WholeRange)
      ByScore from to some -> ([scoreBound from, scoreBound to], [arg "BYSCORE"], some)
      ByLex given -> let (both, some) = ofLex given in (both, [arg "BYLEX"], some)

lexRange :: LexRange -> ([Argument], RangeLimit)
lexRange (LexRange from to limit) = ([lexBound from, lexBound to], limit)

-- | @ZRANGESTORE destination source start stop@: stores the result of 'zrange', with the scores, at
-- the destination key, and replaces whatever that key held; returns the number of members. If there
-- are none, the key is deleted. In a cluster both keys must share a slot. \(O(\log n + m)\) for m
-- members of n, [since 6.2.0](https://valkey.io/commands/zrangestore/).
zrangestore :: ByteString -> ByteString -> Int64 -> Int64 -> Command Int64
zrangestore destination source start stop =
  command "ZRANGESTORE" [key destination, key source, int start, int stop] Decode.integer

-- | @ZRANGESTORE destination source start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count]@: like
-- 'zrangestore', but stores the result of 'zrangeWith'.
zrangestoreWith :: ZrangeOptions -> ByteString -> ByteString -> SortedRange LexRange -> Command Int64
zrangestoreWith options destination source range =
  command "ZRANGESTORE" (key destination : key source : rangeArguments lexRange options range) Decode.integer

-- | @ZCOUNT key min max@: the number of members with scores between the bounds. \(O(\log n)\),
-- [since 2.0.0](https://valkey.io/commands/zcount/).
zcount :: ByteString -> ScoreBound -> ScoreBound -> Command Int64
zcount name from to = command "ZCOUNT" [key name, scoreBound from, scoreBound to] Decode.integer

-- | @ZLEXCOUNT key min max@: the number of members between the bounds. \(O(\log n)\),
-- [since 2.8.9](https://valkey.io/commands/zlexcount/).
zlexcount :: ByteString -> LexBound -> LexBound -> Command Int64
zlexcount name from to = command "ZLEXCOUNT" [key name, lexBound from, lexBound to] Decode.integer

-- | @ZREMRANGEBYRANK key start stop@: removes the members from rank start to rank stop, both
-- included, where a negative rank counts from the end; returns how many were removed.
-- \(O(\log n + m)\) for m members of n, [since 2.0.0](https://valkey.io/commands/zremrangebyrank/).
zremrangebyrank :: ByteString -> Int64 -> Int64 -> Command Int64
zremrangebyrank name start stop = command "ZREMRANGEBYRANK" [key name, int start, int stop] Decode.integer

-- | @ZREMRANGEBYSCORE key min max@: removes the members with scores between the bounds; returns how
-- many were removed. \(O(\log n + m)\) for m members of n,
-- [since 1.2.0](https://valkey.io/commands/zremrangebyscore/).
zremrangebyscore :: ByteString -> ScoreBound -> ScoreBound -> Command Int64
zremrangebyscore name from to = command "ZREMRANGEBYSCORE" [key name, scoreBound from, scoreBound to] Decode.integer

-- | @ZREMRANGEBYLEX key min max@: removes the members between the bounds; returns how many.
-- \(O(\log n + m)\) for m members of n, [since 2.8.9](https://valkey.io/commands/zremrangebylex/).
zremrangebylex :: ByteString -> LexBound -> LexBound -> Command Int64
zremrangebylex name from to = command "ZREMRANGEBYLEX" [key name, lexBound from, lexBound to] Decode.integer

-- | @ZRANGEBYSCORE key min max@, @ZREVRANGEBYSCORE key max min@: the members with scores between
-- the bounds, from the lowest score up, or from the highest down: then the upper bound comes first.
-- [Since 1.0.5](https://valkey.io/commands/zrangebyscore/) and
-- [since 2.2.0](https://valkey.io/commands/zrevrangebyscore/); deprecated in Redis since 6.2.0 in
-- favour of 'zrangeWith' with 'ByScore', for ZREVRANGEBYSCORE also with 'zrangeRev'.
-- \(O(\log n + m)\) for m members of n.
zrangebyscore, zrevrangebyscore :: ByteString -> ScoreBound -> ScoreBound -> Command [ByteString]
zrangebyscore = zrangebyscoreWith zrangebyscoreDefaults
zrevrangebyscore = zrevrangebyscoreWith zrangebyscoreDefaults

-- | The options of 'zrangebyscoreWith', 'zrevrangebyscoreWith' and their variants with scores.
newtype ZrangebyscoreOptions = ZrangebyscoreOptions
  { zrangebyscoreLimit :: RangeLimit
  }
  deriving stock (Eq, Show)

-- | The whole range.
zrangebyscoreDefaults :: ZrangebyscoreOptions
zrangebyscoreDefaults = ZrangebyscoreOptions {zrangebyscoreLimit = WholeRange}

-- | @ZRANGEBYSCORE key min max [LIMIT offset count]@, @ZREVRANGEBYSCORE key max min …@: like
-- 'zrangebyscore' and 'zrevrangebyscore', but only a part of the range.
zrangebyscoreWith, zrevrangebyscoreWith :: ZrangebyscoreOptions -> ByteString -> ScoreBound -> ScoreBound -> Command [ByteString]
zrangebyscoreWith ZrangebyscoreOptions {zrangebyscoreLimit} name from to =
  command "ZRANGEBYSCORE" (key name : scoreBound from : scoreBound to : rangeLimit zrangebyscoreLimit) (Decode.list Decode.bytes)
zrevrangebyscoreWith ZrangebyscoreOptions {zrangebyscoreLimit} name from to =
  command "ZREVRANGEBYSCORE" (key name : scoreBound from : scoreBound to : rangeLimit zrangebyscoreLimit) (Decode.list Decode.bytes)

-- | @ZRANGEBYSCORE key min max WITHSCORES@, @ZREVRANGEBYSCORE key max min WITHSCORES@: like
-- 'zrangebyscore' (since 2.0.0) and 'zrevrangebyscore', with the scores.
zrangebyscoreWithscores, zrevrangebyscoreWithscores :: ByteString -> ScoreBound -> ScoreBound -> Command [(ByteString, Double)]
zrangebyscoreWithscores = zrangebyscoreWithscoresWith zrangebyscoreDefaults
zrevrangebyscoreWithscores = zrevrangebyscoreWithscoresWith zrangebyscoreDefaults

-- | @ZRANGEBYSCORE key min max WITHSCORES [LIMIT offset count]@, @ZREVRANGEBYSCORE key max min …@:
-- like 'zrangebyscoreWith' (since 2.0.0) and 'zrevrangebyscoreWith', with the scores.
zrangebyscoreWithscoresWith,
  zrevrangebyscoreWithscoresWith ::
    ZrangebyscoreOptions -> ByteString -> ScoreBound -> ScoreBound -> Command [(ByteString, Double)]
zrangebyscoreWithscoresWith ZrangebyscoreOptions {zrangebyscoreLimit} name from to =
  command "ZRANGEBYSCORE" (key name : scoreBound from : scoreBound to : arg "WITHSCORES" : rangeLimit zrangebyscoreLimit) Decode.scored
zrevrangebyscoreWithscoresWith ZrangebyscoreOptions {zrangebyscoreLimit} name from to =
  command "ZREVRANGEBYSCORE" (key name : scoreBound from : scoreBound to : arg "WITHSCORES" : rangeLimit zrangebyscoreLimit) Decode.scored

-- | @ZRANGEBYLEX key min max@, @ZREVRANGEBYLEX key max min@: the members between the bounds, from
-- the lowest up, or from the highest down: then the upper bound comes first. Since 2.8.9
-- ([ZRANGEBYLEX](https://valkey.io/commands/zrangebylex/),
-- [ZREVRANGEBYLEX](https://valkey.io/commands/zrevrangebylex/)); deprecated in Redis since 6.2.0 in
-- favour of 'zrangeWith' with 'ByLex', for ZREVRANGEBYLEX also with 'zrangeRev'. \(O(\log n + m)\)
-- for m members of n.
zrangebylex, zrevrangebylex :: ByteString -> LexBound -> LexBound -> Command [ByteString]
zrangebylex = zrangebylexWith zrangebylexDefaults
zrevrangebylex = zrevrangebylexWith zrangebylexDefaults

-- | The options of 'zrangebylexWith' and 'zrevrangebylexWith'.
newtype ZrangebylexOptions = ZrangebylexOptions
  { zrangebylexLimit :: RangeLimit
  }
  deriving stock (Eq, Show)

-- | The whole range.
zrangebylexDefaults :: ZrangebylexOptions
zrangebylexDefaults = ZrangebylexOptions {zrangebylexLimit = WholeRange}

-- | @ZRANGEBYLEX key min max [LIMIT offset count]@, @ZREVRANGEBYLEX key max min …@: like
-- 'zrangebylex' and 'zrevrangebylex', but only a part of the range.
zrangebylexWith, zrevrangebylexWith :: ZrangebylexOptions -> ByteString -> LexBound -> LexBound -> Command [ByteString]
zrangebylexWith ZrangebylexOptions {zrangebylexLimit} name from to =
  command "ZRANGEBYLEX" (key name : lexBound from : lexBound to : rangeLimit zrangebylexLimit) (Decode.list Decode.bytes)
zrevrangebylexWith ZrangebylexOptions {zrangebylexLimit} name from to =
  command "ZREVRANGEBYLEX" (key name : lexBound from : lexBound to : rangeLimit zrangebylexLimit) (Decode.list Decode.bytes)
