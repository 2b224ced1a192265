-- | Sorted sets: unique members, ordered by their scores. "Redis.Commands.SortedSetRange" has the
-- ranges of one sorted set, "Redis.Commands.SortedSetAlgebra" the operations on several.
--
-- > run client (Redis.zadd "example:{sortedsets}:may" (("ada", 41) :| [("grace", 58), ("barbara", 50)]))
-- > run client (Redis.zpopmax "example:{sortedsets}:may")
--
-- Members with equal scores are in the order of their bytes. The first member creates the sorted
-- set, and removing the last one deletes the key. A key that does not exist reads as an empty
-- sorted set. On a key of another type each of these commands is an error. A score is any 'Double',
-- infinities included, except NaN: a command with a NaN is refused before it is sent
-- ('Redis.Error.UnfitArgument').
--
-- The servers' pages: <https://valkey.io/commands/#sorted-set>.
module Redis.Commands.SortedSet
  ( -- * Writing
    zadd,
    zaddWith,
    ZaddOptions (zaddCondition, zaddChanged),
    zaddDefaults,
    ZaddCondition (..),
    zaddIncr,
    zaddIncrWith,
    zincrby,
    zrem,

    -- * Reading
    zscore,
    zmscore,
    zcard,
    zrank,
    zrankWithscore,
    zrevrank,
    zrevrankWithscore,

    -- * Removing the first or the last
    zpopmin,
    zpopminCount,
    zpopmax,
    zpopmaxCount,
    zmpop,
    zmpopWith,
    ZmpopOptions (zmpopCount),
    zmpopDefaults,
    ScoreEnd (..),

    -- * Blocking until there is a member
    bzpopmin,
    bzpopmax,
    bzmpop,
    bzmpopWith,

    -- * Random members
    zrandmember,
    zrandmemberCount,
    zrandmemberWithscores,
    Draw (..),

    -- * Scanning
    zscan,
    zscanWith,
    zscanNoscores,
    ZscanOptions (zscanMatch, zscanCount),
    zscanDefaults,
    ScanCursor,
    scanStart,
    ScanPage (..),
  )
where

import Data.Maybe (listToMaybe)
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | @ZADD key score member …@: adds members, and sets the scores of those that exist; returns the
-- number of new members. A pair has the member before its score, as replies have it. \(O(\log n)\)
-- per member, [since 1.2.0](https://valkey.io/commands/zadd/); several members since 2.4.0.
zadd :: ByteString -> NonEmpty (ByteString, Double) -> Command Int64
zadd = zaddWith zaddDefaults

-- | The options of 'zaddWith' and 'zaddIncrWith'.
--
-- > zaddWith zaddDefaults {zaddCondition = Just ZaddGreater} "best" (("ada", 41) :| [])
data ZaddOptions = ZaddOptions
  { -- | The members that may be added or changed; 'Nothing' means all.
    zaddCondition :: Maybe ZaddCondition,
    -- | CH (since 3.0.2): count members whose score has changed as well as new ones.
    zaddChanged :: Bool
  }
  deriving stock (Eq, Show)

-- | Adds and changes all members, and counts the new ones.
zaddDefaults :: ZaddOptions
zaddDefaults = ZaddOptions {zaddCondition = Nothing, zaddChanged = False}

-- | The members that ZADD may add or change.
data ZaddCondition
  = -- | NX (since 3.0.2): only new members.
    ZaddNew
  | -- | XX (since 3.0.2): only existing members.
    ZaddExisting
  | -- | GT (since 6.2.0): new members, and existing ones whose score becomes greater.
    ZaddGreater
  | -- | LT (since 6.2.0): new members, and existing ones whose score becomes less.
    ZaddLess
  | -- | XX GT: only existing members whose score becomes greater.
    ZaddExistingGreater
  | -- | XX LT: only existing members whose score becomes less.
    ZaddExistingLess
  deriving stock (Eq, Show)

-- | @ZADD key [NX|XX] [GT|LT] [CH] score member …@: like 'zadd', with options.
zaddWith :: ZaddOptions -> ByteString -> NonEmpty (ByteString, Double) -> Command Int64
zaddWith options name members =
  command "ZADD" (key name : zaddArguments options <> concatMap scoreAndMember members) Decode.integer

zaddArguments :: ZaddOptions -> [Argument]
zaddArguments ZaddOptions {zaddCondition, zaddChanged} = maybe [] condition zaddCondition <> flag "CH" zaddChanged
  where
    condition = \case
      ZaddNew -> [arg "NX"]
      ZaddExisting -> [arg "XX"]
      ZaddGreater -> [arg "GT"]
      ZaddLess -> [arg "LT"]
      ZaddExistingGreater -> [arg "XX", arg "GT"]
      ZaddExistingLess -> [arg "XX", arg "LT"]

scoreAndMember :: (ByteString, Double) -> [Argument]
scoreAndMember (member, score) = [double score, arg member]

-- | @ZADD key INCR increment member@: adds to a member's score, like 'zincrby'; returns the new
-- score. \(O(\log n)\), [since 3.0.2](https://valkey.io/commands/zadd/).
zaddIncr :: ByteString -> Double -> ByteString -> Command Double
zaddIncr name by member = command "ZADD" [key name, arg "INCR", double by, arg member] Decode.double

-- | @ZADD key [NX|XX] [GT|LT] INCR increment member@: adds to a member's score; returns the new
-- score, or 'Nothing' if the condition prevented the change. CH has no effect here. \(O(\log n)\),
-- [since 3.0.2](https://valkey.io/commands/zadd/).
zaddIncrWith :: ZaddOptions -> ByteString -> Double -> ByteString -> Command (Maybe Double)
zaddIncrWith options name by member =
  command
    "ZADD"
    (key name : zaddArguments options <> [arg "INCR", double by, arg member])
    (Decode.nullable Decode.double)

-- | @ZINCRBY key increment member@: adds to a member's score; returns the new score. A member that
-- does not exist counts as 0. The server refuses an increment that would make the score a NaN.
-- \(O(\log n)\), [since 1.2.0](https://valkey.io/commands/zincrby/).
zincrby :: ByteString -> Double -> ByteString -> Command Double
zincrby name by member = command "ZINCRBY" [key name, double by, arg member] Decode.double

-- | @ZREM key member …@: removes members; returns how many of them existed. \(O(\log n)\) per
-- member, [since 1.2.0](https://valkey.io/commands/zrem/); several members since 2.4.0.
zrem :: ByteString -> NonEmpty ByteString -> Command Int64
zrem name members = command "ZREM" (key name : args members) Decode.integer

-- | @ZSCORE key member@: the member's score; 'Nothing' if there is no such member. \(O(1)\),
-- [since 1.2.0](https://valkey.io/commands/zscore/).
zscore :: ByteString -> ByteString -> Command (Maybe Double)
zscore name member = command "ZSCORE" [key name, arg member] (Decode.nullable Decode.double)

-- | @ZMSCORE key member …@: the scores, in the order of the given members; 'Nothing' for a member
-- that does not exist. \(O(1)\) per member, [since 6.2.0](https://valkey.io/commands/zmscore/).
zmscore :: ByteString -> NonEmpty ByteString -> Command [Maybe Double]
zmscore name members =
  command "ZMSCORE" (key name : args members) (Decode.listOf (length members) (Decode.nullable Decode.double))

-- | @ZCARD key@: the number of members. \(O(1)\), [since 1.2.0](https://valkey.io/commands/zcard/).
zcard :: ByteString -> Command Int64
zcard name = command "ZCARD" [key name] Decode.integer

-- | @ZRANK key member@, @ZREVRANK key member@: the member's rank, counted from 0 at the lowest or
-- at the highest score; 'Nothing' if there is no such member. \(O(\log n)\), since 2.0.0
-- ([ZRANK](https://valkey.io/commands/zrank/), [ZREVRANK](https://valkey.io/commands/zrevrank/)).
zrank, zrevrank :: ByteString -> ByteString -> Command (Maybe Int64)
zrank name member = command "ZRANK" [key name, arg member] (Decode.nullable Decode.integer)
zrevrank name member = command "ZREVRANK" [key name, arg member] (Decode.nullable Decode.integer)

-- | @ZRANK key member WITHSCORE@, @ZREVRANK key member WITHSCORE@: like 'zrank' and 'zrevrank',
-- with the member's score. \(O(\log n)\), since 7.2.0.
zrankWithscore, zrevrankWithscore :: ByteString -> ByteString -> Command (Maybe (Int64, Double))
zrankWithscore name member = command "ZRANK" [key name, arg member, arg "WITHSCORE"] (Decode.nullable rankAndScore)
zrevrankWithscore name member = command "ZREVRANK" [key name, arg member, arg "WITHSCORE"] (Decode.nullable rankAndScore)

rankAndScore :: Decoder (Int64, Double)
rankAndScore = Decode.pair Decode.integer Decode.double

-- | @ZPOPMIN key@, @ZPOPMAX key@: remove the member with the lowest or the highest score; return it
-- with its score, or 'Nothing' if the sorted set is empty. \(O(\log n)\), since 5.0.0
-- ([ZPOPMIN](https://valkey.io/commands/zpopmin/), [ZPOPMAX](https://valkey.io/commands/zpopmax/)).
zpopmin, zpopmax :: ByteString -> Command (Maybe (ByteString, Double))
zpopmin name = command "ZPOPMIN" [key name] (fmap listToMaybe . Decode.scored)
zpopmax name = command "ZPOPMAX" [key name] (fmap listToMaybe . Decode.scored)

-- | @ZPOPMIN key count@, @ZPOPMAX key count@: remove at most that many members, the lowest or the
-- highest score first; return them with their scores. A negative count is refused before the
-- command is sent. \(O(\log n)\) per member, since 5.0.0.
zpopminCount, zpopmaxCount :: ByteString -> Int64 -> Command [(ByteString, Double)]
zpopminCount name count = command "ZPOPMIN" [key name, natural count] Decode.scored
zpopmaxCount name count = command "ZPOPMAX" [key name, natural count] Decode.scored

-- | An end of a sorted set.
data ScoreEnd
  = -- | MIN: the lowest scores.
    MinEnd
  | -- | MAX: the highest scores.
    MaxEnd
  deriving stock (Eq, Show)

-- | The options of 'zmpopWith' and 'bzmpopWith'.
newtype ZmpopOptions = ZmpopOptions
  { -- | COUNT: at most this many members; 'Nothing' means one. A count below 1 is refused before
    -- the command is sent.
    zmpopCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | Takes one member.
zmpopDefaults :: ZmpopOptions
zmpopDefaults = ZmpopOptions {zmpopCount = Nothing}

-- | @ZMPOP n key … MIN|MAX@: removes a member from the first sorted set that has any; returns the
-- key, and the member with its score, or 'Nothing' if all are empty. In a cluster the keys must
-- share a slot. \(O(k) + O(\log n)\) for k keys, [since 7.0.0](https://valkey.io/commands/zmpop/).
zmpop :: NonEmpty ByteString -> ScoreEnd -> Command (Maybe (ByteString, [(ByteString, Double)]))
zmpop = zmpopWith zmpopDefaults

-- | @ZMPOP n key … MIN|MAX [COUNT c]@: like 'zmpop', but removes several members, all from one
-- sorted set. \(O(k) + O(m \log n)\) for k keys and m members.
zmpopWith :: ZmpopOptions -> NonEmpty ByteString -> ScoreEnd -> Command (Maybe (ByteString, [(ByteString, Double)]))
zmpopWith options names end =
  command "ZMPOP" (mpopArguments options names end) (Decode.nullable (Decode.pair Decode.bytes Decode.scored))

-- | @BZPOPMIN key … seconds@, @BZPOPMAX key … seconds@: remove the member with the lowest or the
-- highest score from the first sorted set that has any; return the key, the member and its score.
-- If all are empty, the server waits for a member: for the given time or, with 'Nothing', without
-- limit. The result is 'Nothing' if that time passes. In a cluster the keys must share a slot.
-- \(O(\log n)\), since 5.0.0 ([BZPOPMIN](https://valkey.io/commands/bzpopmin/),
-- [BZPOPMAX](https://valkey.io/commands/bzpopmax/)); fractions of seconds since 6.0.0.
bzpopmin, bzpopmax :: NonEmpty ByteString -> Maybe Duration -> Command (Maybe (ByteString, ByteString, Double))
bzpopmin names limit = command "BZPOPMIN" (keys names <> [timeout limit]) (Decode.nullable keyMemberScore)
bzpopmax names limit = command "BZPOPMAX" (keys names <> [timeout limit]) (Decode.nullable keyMemberScore)

keyMemberScore :: Decoder (ByteString, ByteString, Double)
keyMemberScore = Decode.triple Decode.bytes Decode.bytes Decode.double

-- | @BZMPOP seconds n key … MIN|MAX@: like 'zmpop', but waits for a member as 'bzpopmin' does.
-- [Since 7.0.0](https://valkey.io/commands/bzmpop/).
bzmpop :: NonEmpty ByteString -> ScoreEnd -> Maybe Duration -> Command (Maybe (ByteString, [(ByteString, Double)]))
bzmpop = bzmpopWith zmpopDefaults

-- | @BZMPOP seconds n key … MIN|MAX [COUNT c]@: like 'zmpopWith', but waits for a member as
-- 'bzpopmin' does. [Since 7.0.0](https://valkey.io/commands/bzmpop/).
bzmpopWith :: ZmpopOptions -> NonEmpty ByteString -> ScoreEnd -> Maybe Duration -> Command (Maybe (ByteString, [(ByteString, Double)]))
bzmpopWith options names end limit =
  command
    "BZMPOP"
    (timeout limit : mpopArguments options names end)
    (Decode.nullable (Decode.pair Decode.bytes Decode.scored))

mpopArguments :: ZmpopOptions -> NonEmpty ByteString -> ScoreEnd -> [Argument]
mpopArguments ZmpopOptions {zmpopCount} names end = countedKeys names <> [endWord] <> option "COUNT" positive zmpopCount
  where
    endWord = case end of
      MinEnd -> arg "MIN"
      MaxEnd -> arg "MAX"

-- | @ZRANDMEMBER key@: a random member; 'Nothing' if the sorted set is empty. \(O(1)\),
-- [since 6.2.0](https://valkey.io/commands/zrandmember/).
zrandmember :: ByteString -> Command (Maybe ByteString)
zrandmember name = command "ZRANDMEMBER" [key name] (Decode.nullable Decode.bytes)

-- | @ZRANDMEMBER key count@: several random members. \(O(n)\) in the length of the reply,
-- [since 6.2.0](https://valkey.io/commands/zrandmember/).
zrandmemberCount :: ByteString -> Draw -> Command [ByteString]
zrandmemberCount name draw = command "ZRANDMEMBER" [key name, drawCount draw] (Decode.list Decode.bytes)

-- | @ZRANDMEMBER key count WITHSCORES@: several random members, with their scores. \(O(n)\) in the
-- length of the reply, [since 6.2.0](https://valkey.io/commands/zrandmember/).
zrandmemberWithscores :: ByteString -> Draw -> Command [(ByteString, Double)]
zrandmemberWithscores name draw = command "ZRANDMEMBER" [key name, drawCount draw, arg "WITHSCORES"] Decode.scored

-- | The options of 'zscanWith' and 'zscanNoscores'.
data ZscanOptions = ZscanOptions
  { -- | MATCH: a glob pattern; only members that match it are returned.
    zscanMatch :: Maybe ByteString,
    -- | COUNT: roughly how many members the server looks at in one step (10 by default). A small
    -- sorted set comes whole.
    zscanCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | All members; the server chooses the size of the steps.
zscanDefaults :: ZscanOptions
zscanDefaults = ZscanOptions {zscanMatch = Nothing, zscanCount = Nothing}

-- | @ZSCAN key cursor@: like 'zscanWith', over all members.
zscan :: ByteString -> ScanCursor -> Command (ScanPage (ByteString, Double))
zscan = zscanWith zscanDefaults

-- | @ZSCAN key cursor [MATCH p] [COUNT n]@: one step of a walk over the members of a sorted set and
-- their scores, in no particular order. The walk returns every member that is there throughout,
-- maybe twice. In a cluster the primary answers, because a cursor is valid only on the node that
-- issued it. \(O(1)\) per step, [since 2.8.0](https://valkey.io/commands/zscan/).
zscanWith :: ZscanOptions -> ByteString -> ScanCursor -> Command (ScanPage (ByteString, Double))
zscanWith options name cursor =
  command "ZSCAN" (key name : zscanArguments options cursor) (scanPage Decode.scored)

-- | @ZSCAN key cursor [MATCH p] [COUNT n] NOSCORES@: like 'zscanWith', but returns the members
-- without scores. Valkey only, [since 8.0.0](https://valkey.io/commands/zscan/).
zscanNoscores :: ZscanOptions -> ByteString -> ScanCursor -> Command (ScanPage ByteString)
zscanNoscores options name cursor =
  command
    "ZSCAN"
    (key name : zscanArguments options cursor <> [arg "NOSCORES"])
    (scanPage (Decode.list Decode.bytes))

zscanArguments :: ZscanOptions -> ScanCursor -> [Argument]
zscanArguments ZscanOptions {zscanMatch, zscanCount} cursor = scanArguments cursor zscanMatch zscanCount
