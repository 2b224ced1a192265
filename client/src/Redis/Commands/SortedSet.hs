-- | Sorted sets: members, each once, in the order of their scores. For parts of one see
-- "Redis.Commands.SortedSetRange", for several together "Redis.Commands.SortedSetAlgebra".
--
-- > run client (Redis.zadd "example:{sortedsets}:may" (("ada", 41) :| [("grace", 58), ("barbara", 50)]))
-- > run client (Redis.zpopmax "example:{sortedsets}:may")
--
-- Members of the same score come in the order of their bytes. The first member makes the
-- sorted set and the last to go takes it along: a key without members does not exist, and
-- reads as one of none. On a key of another type each of these is an error. A score is any 'Double',
-- infinities too, but no NaN, which the server refuses.
--
-- What the servers say: <https://valkey.io/commands/#sorted-set>.
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

    -- * Taking the first or the last
    zpopmin,
    zpopminCount,
    zpopmax,
    zpopmaxCount,
    zmpop,
    zmpopWith,
    ZmpopOptions (zmpopCount),
    zmpopDefaults,
    ScoreEnd (..),

    -- * Waiting for a member
    bzpopmin,
    bzpopmax,
    bzmpop,
    bzmpopWith,

    -- * Drawing
    zrandmember,
    zrandmemberCount,
    zrandmemberWithscores,
    Draw (..),

    -- * Walking
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

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Data.Maybe (listToMaybe)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration)
import Redis.Internal.Command.Draw
import Redis.Internal.Command.Scan

-- | @ZADD key score member …@: puts members in, and gives those that are there their new score; how
-- many are new. A member stands before its score here, as it does in answers. \(O(\log n)\) per
-- member on the server, [since 1.2.0](https://valkey.io/commands/zadd/); several members since
-- 2.4.0.
--
-- @since 0.1.0.0
zadd :: ByteString -> NonEmpty (ByteString, Double) -> Command Int64
zadd = zaddWith zaddDefaults

-- | How to add.
--
-- > zaddWith zaddDefaults {zaddCondition = Just ZaddGreater} "best" (("ada", 41) :| [])
--
-- @since 0.1.0.0
data ZaddOptions = ZaddOptions
  { -- | What may be added and changed; 'Nothing' is everything.
    zaddCondition :: Maybe ZaddCondition,
    -- | CH (since 3.0.2): count members whose score has changed as well as new ones.
    zaddChanged :: Bool
  }
  deriving stock (Eq, Show)

-- | Adds and changes everything, and counts what is new.
--
-- @since 0.1.0.0
zaddDefaults :: ZaddOptions
zaddDefaults = ZaddOptions {zaddCondition = Nothing, zaddChanged = False}

-- | What may be added and changed.
--
-- @since 0.1.0.0
data ZaddCondition
  = -- | NX (since 3.0.2): new members alone.
    ZaddNew
  | -- | XX (since 3.0.2): members alone that are there.
    ZaddExisting
  | -- | GT (since 6.2.0): new members, and others to a greater score.
    ZaddGreater
  | -- | LT (since 6.2.0): new members, and others to a lesser score.
    ZaddLess
  | -- | XX GT: members that are there, to a greater score.
    ZaddExistingGreater
  | -- | XX LT: members that are there, to a lesser score.
    ZaddExistingLess
  deriving stock (Eq, Show)

-- | @ZADD key [NX|XX] [GT|LT] [CH] score member …@: as 'zadd'.
--
-- @since 0.1.0.0
zaddWith :: ZaddOptions -> ByteString -> NonEmpty (ByteString, Double) -> Command Int64
zaddWith options name members =
  command "ZADD" (key name : zaddArguments options <> concatMap scoreAndMember members) Decode.integer

zaddArguments :: ZaddOptions -> [Argument]
zaddArguments ZaddOptions {zaddCondition, zaddChanged} = condition <> flag "CH" zaddChanged
  where
    condition = case zaddCondition of
      Nothing -> []
      Just ZaddNew -> [arg "NX"]
      Just ZaddExisting -> [arg "XX"]
      Just ZaddGreater -> [arg "GT"]
      Just ZaddLess -> [arg "LT"]
      Just ZaddExistingGreater -> [arg "XX", arg "GT"]
      Just ZaddExistingLess -> [arg "XX", arg "LT"]

scoreAndMember :: (ByteString, Double) -> [Argument]
scoreAndMember (member, score) = [double score, arg member]

-- | @ZADD key INCR increment member@: the score after it, as 'zincrby'. \(O(\log n)\) on the
-- server, [since 3.0.2](https://valkey.io/commands/zadd/).
--
-- @since 0.1.0.0
zaddIncr :: ByteString -> Double -> ByteString -> Command Double
zaddIncr name by member = command "ZADD" [key name, arg "INCR", double by, arg member] Decode.double

-- | @ZADD key [NX|XX] [GT|LT] INCR increment member@: the score after it; 'Nothing' if the
-- condition kept it as it was. CH means nothing here. \(O(\log n)\) on the server,
-- [since 3.0.2](https://valkey.io/commands/zadd/).
--
-- @since 0.1.0.0
zaddIncrWith :: ZaddOptions -> ByteString -> Double -> ByteString -> Command (Maybe Double)
zaddIncrWith options name by member =
  command
    "ZADD"
    (key name : zaddArguments options <> [arg "INCR", double by, arg member])
    (Decode.nullable Decode.double)

-- | @ZINCRBY key increment member@: the score after it; a member that is not there counts as 0. The
-- server refuses to make a NaN. \(O(\log n)\) on the server,
-- [since 1.2.0](https://valkey.io/commands/zincrby/).
--
-- @since 0.1.0.0
zincrby :: ByteString -> Double -> ByteString -> Command Double
zincrby name by member = command "ZINCRBY" [key name, double by, arg member] Decode.double

-- | @ZREM key member …@: how many there were. \(O(\log n)\) per member on the server,
-- [since 1.2.0](https://valkey.io/commands/zrem/); several members since 2.4.0.
--
-- @since 0.1.0.0
zrem :: ByteString -> NonEmpty ByteString -> Command Int64
zrem name members = command "ZREM" (key name : args members) Decode.integer

-- | @ZSCORE key member@: its score; 'Nothing' if it is not there. \(O(1)\) on the server,
-- [since 1.2.0](https://valkey.io/commands/zscore/).
--
-- @since 0.1.0.0
zscore :: ByteString -> ByteString -> Command (Maybe Double)
zscore name member = command "ZSCORE" [key name, arg member] (Decode.nullable Decode.double)

-- | @ZMSCORE key member …@: the scores, in the order of the members that were asked for. \(O(1)\)
-- per member on the server, [since 6.2.0](https://valkey.io/commands/zmscore/).
--
-- @since 0.1.0.0
zmscore :: ByteString -> NonEmpty ByteString -> Command [Maybe Double]
zmscore name members =
  command "ZMSCORE" (key name : args members) (Decode.listOf (length members) (Decode.nullable Decode.double))

-- | @ZCARD key@: how many members. \(O(1)\) on the server,
-- [since 1.2.0](https://valkey.io/commands/zcard/).
--
-- @since 0.1.0.0
zcard :: ByteString -> Command Int64
zcard name = command "ZCARD" [key name] Decode.integer

-- | @ZRANK key member@: its place from the lowest score, which is 0; 'Nothing' if it is not there.
-- \(O(\log n)\) on the server, [since 2.0.0](https://valkey.io/commands/zrank/).
--
-- @since 0.1.0.0
zrank :: ByteString -> ByteString -> Command (Maybe Int64)
zrank name member = command "ZRANK" [key name, arg member] (Decode.nullable Decode.integer)

-- | @ZRANK key member WITHSCORE@: its place and its score. \(O(\log n)\) on the server,
-- [since 7.2.0](https://valkey.io/commands/zrank/).
--
-- @since 0.1.0.0
zrankWithscore :: ByteString -> ByteString -> Command (Maybe (Int64, Double))
zrankWithscore name member = command "ZRANK" [key name, arg member, arg "WITHSCORE"] (Decode.nullable rankAndScore)

-- | @ZREVRANK key member@: its place from the highest score, which is 0; 'Nothing' if it is not
-- there. \(O(\log n)\) on the server, [since 2.0.0](https://valkey.io/commands/zrevrank/).
--
-- @since 0.1.0.0
zrevrank :: ByteString -> ByteString -> Command (Maybe Int64)
zrevrank name member = command "ZREVRANK" [key name, arg member] (Decode.nullable Decode.integer)

-- | @ZREVRANK key member WITHSCORE@: its place from the highest and its score. \(O(\log n)\) on the
-- server, [since 7.2.0](https://valkey.io/commands/zrevrank/).
--
-- @since 0.1.0.0
zrevrankWithscore :: ByteString -> ByteString -> Command (Maybe (Int64, Double))
zrevrankWithscore name member =
  command "ZREVRANK" [key name, arg member, arg "WITHSCORE"] (Decode.nullable rankAndScore)

rankAndScore :: Decoder (Int64, Double)
rankAndScore = Decode.pair Decode.integer Decode.double

-- | @ZPOPMIN key@: takes the member of the lowest score, with its score. \(O(\log n)\) on the
-- server, [since 5.0.0](https://valkey.io/commands/zpopmin/).
--
-- @since 0.1.0.0
zpopmin :: ByteString -> Command (Maybe (ByteString, Double))
zpopmin name = command "ZPOPMIN" [key name] (fmap listToMaybe . Decode.scored)

-- | @ZPOPMIN key count@: takes so many, or all if there are fewer, the lowest score first. The
-- server refuses a negative count. \(O(\log n)\) per member on the server,
-- [since 5.0.0](https://valkey.io/commands/zpopmin/).
--
-- @since 0.1.0.0
zpopminCount :: ByteString -> Int64 -> Command [(ByteString, Double)]
zpopminCount name count = command "ZPOPMIN" [key name, natural count] Decode.scored

-- | @ZPOPMAX key@: takes the member of the highest score, with its score. \(O(\log n)\) on the
-- server, [since 5.0.0](https://valkey.io/commands/zpopmax/).
--
-- @since 0.1.0.0
zpopmax :: ByteString -> Command (Maybe (ByteString, Double))
zpopmax name = command "ZPOPMAX" [key name] (fmap listToMaybe . Decode.scored)

-- | @ZPOPMAX key count@: takes so many, or all if there are fewer, the highest score first. The
-- server refuses a negative count. \(O(\log n)\) per member on the server,
-- [since 5.0.0](https://valkey.io/commands/zpopmax/).
--
-- @since 0.1.0.0
zpopmaxCount :: ByteString -> Int64 -> Command [(ByteString, Double)]
zpopmaxCount name count = command "ZPOPMAX" [key name, natural count] Decode.scored

-- | An end of a sorted set.
--
-- @since 0.1.0.0
data ScoreEnd
  = -- | MIN: the lowest scores.
    MinEnd
  | -- | MAX: the highest scores.
    MaxEnd
  deriving stock (Eq, Show)

-- | How many to take.
--
-- @since 0.1.0.0
newtype ZmpopOptions = ZmpopOptions
  { -- | COUNT: so many, or all if there are fewer; the server refuses what is not
    -- positive.
    zmpopCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | One.
--
-- @since 0.1.0.0
zmpopDefaults :: ZmpopOptions
zmpopDefaults = ZmpopOptions {zmpopCount = Nothing}

-- | @ZMPOP n key … MIN|MAX@: takes a member from the first sorted set that has one; the key, and
-- the member with its score. In a cluster the keys must share a slot. \(O(k) + O(\log n)\) on the
-- server for k keys, [since 7.0.0](https://valkey.io/commands/zmpop/).
--
-- @since 0.1.0.0
zmpop :: NonEmpty ByteString -> ScoreEnd -> Command (Maybe (ByteString, [(ByteString, Double)]))
zmpop = zmpopWith zmpopDefaults

-- | @ZMPOP n key … MIN|MAX [COUNT c]@: as 'zmpop', but several members of the one sorted
-- set. \(O(k) + O(m \log n)\) on the server for k keys and m members.
--
-- @since 0.1.0.0
zmpopWith :: ZmpopOptions -> NonEmpty ByteString -> ScoreEnd -> Command (Maybe (ByteString, [(ByteString, Double)]))
zmpopWith options names end =
  command "ZMPOP" (mpopArguments options names end) (Decode.nullable (Decode.pair Decode.bytes Decode.scored))

-- | @BZPOPMIN key … seconds@: takes the member of the lowest score from the first sorted set that
-- has one and waits for it if need be, for so long or, with 'Nothing', until there is one. The
-- answer is 'Nothing' after that time, else the key, the member and its score. In a cluster the
-- keys must share a slot. \(O(\log n)\) on the server,
-- [since 5.0.0](https://valkey.io/commands/bzpopmin/); fractions of seconds since 6.0.0.
--
-- @since 0.1.0.0
bzpopmin :: NonEmpty ByteString -> Maybe Duration -> Command (Maybe (ByteString, ByteString, Double))
bzpopmin names limit = command "BZPOPMIN" (keys names <> [timeout limit]) (Decode.nullable keyMemberScore)

-- | @BZPOPMAX key … seconds@: as 'bzpopmin', with the highest score.
-- <https://valkey.io/commands/bzpopmax/>
--
-- @since 0.1.0.0
bzpopmax :: NonEmpty ByteString -> Maybe Duration -> Command (Maybe (ByteString, ByteString, Double))
bzpopmax names limit = command "BZPOPMAX" (keys names <> [timeout limit]) (Decode.nullable keyMemberScore)

keyMemberScore :: Decoder (ByteString, ByteString, Double)
keyMemberScore = Decode.triple Decode.bytes Decode.bytes Decode.double

-- | @BZMPOP seconds n key … MIN|MAX@: as 'zmpop', and waits as 'bzpopmin' does.
-- [Since 7.0.0](https://valkey.io/commands/bzmpop/).
--
-- @since 0.1.0.0
bzmpop :: NonEmpty ByteString -> ScoreEnd -> Maybe Duration -> Command (Maybe (ByteString, [(ByteString, Double)]))
bzmpop = bzmpopWith zmpopDefaults

-- | @BZMPOP seconds n key … MIN|MAX [COUNT c]@: as 'zmpopWith', and waits as 'bzpopmin' does.
-- [Since 7.0.0](https://valkey.io/commands/bzmpop/).
--
-- @since 0.1.0.0
bzmpopWith :: ZmpopOptions -> NonEmpty ByteString -> ScoreEnd -> Maybe Duration -> Command (Maybe (ByteString, [(ByteString, Double)]))
bzmpopWith options names end limit =
  command
    "BZMPOP"
    (timeout limit : mpopArguments options names end)
    (Decode.nullable (Decode.pair Decode.bytes Decode.scored))

mpopArguments :: ZmpopOptions -> NonEmpty ByteString -> ScoreEnd -> [Argument]
mpopArguments ZmpopOptions {zmpopCount} names end = int (fromIntegral (length names)) : keys names <> [endWord] <> option "COUNT" positive zmpopCount
  where
    endWord = case end of
      MinEnd -> arg "MIN"
      MaxEnd -> arg "MAX"

-- | @ZRANDMEMBER key@: any member; 'Nothing' for none. \(O(1)\) on the server,
-- [since 6.2.0](https://valkey.io/commands/zrandmember/).
--
-- @since 0.1.0.0
zrandmember :: ByteString -> Command (Maybe ByteString)
zrandmember name = command "ZRANDMEMBER" [key name] (Decode.nullable Decode.bytes)

-- | @ZRANDMEMBER key count@: several. \(O(n)\) on the server in the length of the answer,
-- [since 6.2.0](https://valkey.io/commands/zrandmember/).
--
-- @since 0.1.0.0
zrandmemberCount :: ByteString -> Draw -> Command [ByteString]
zrandmemberCount name draw = command "ZRANDMEMBER" [key name, drawCount draw] (Decode.list Decode.bytes)

-- | @ZRANDMEMBER key count WITHSCORES@: several, with their scores. \(O(n)\) on the server in the
-- length of the answer, [since 6.2.0](https://valkey.io/commands/zrandmember/).
--
-- @since 0.1.0.0
zrandmemberWithscores :: ByteString -> Draw -> Command [(ByteString, Double)]
zrandmemberWithscores name draw = command "ZRANDMEMBER" [key name, drawCount draw, arg "WITHSCORES"] Decode.scored

-- | What to walk over.
--
-- @since 0.1.0.0
data ZscanOptions = ZscanOptions
  { -- | MATCH: a glob for members.
    zscanMatch :: Maybe ByteString,
    -- | COUNT: roughly how many members to look at in one step (10 by default). A
    -- small sorted set comes whole.
    zscanCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | All members, in steps of the server's choice.
--
-- @since 0.1.0.0
zscanDefaults :: ZscanOptions
zscanDefaults = ZscanOptions {zscanMatch = Nothing, zscanCount = Nothing}

-- | @ZSCAN key cursor@: as 'zscanWith', over all members.
--
-- @since 0.1.0.0
zscan :: ByteString -> ScanCursor -> Command (ScanPage (ByteString, Double))
zscan = zscanWith zscanDefaults

-- | @ZSCAN key cursor [MATCH p] [COUNT n]@: a step of a walk over the members of a sorted set and
-- their scores, in no order. What is there throughout the walk is seen, maybe twice. In a cluster
-- the primary answers, since a cursor means something to the node that gave it only. \(O(1)\) per
-- step on the server, [since 2.8.0](https://valkey.io/commands/zscan/).
--
-- @since 0.1.0.0
zscanWith :: ZscanOptions -> ByteString -> ScanCursor -> Command (ScanPage (ByteString, Double))
zscanWith options name cursor =
  command "ZSCAN" (key name : zscanArguments options cursor) (scanPage Decode.scored)

-- | @ZSCAN key cursor [MATCH p] [COUNT n] NOSCORES@: as 'zscanWith', with members alone. Of Valkey,
-- [since 8.0.0](https://valkey.io/commands/zscan/).
--
-- @since 0.1.0.0
zscanNoscores :: ZscanOptions -> ByteString -> ScanCursor -> Command (ScanPage ByteString)
zscanNoscores options name cursor =
  command
    "ZSCAN"
    (key name : zscanArguments options cursor <> [arg "NOSCORES"])
    (scanPage (Decode.list Decode.bytes))

zscanArguments :: ZscanOptions -> ScanCursor -> [Argument]
zscanArguments ZscanOptions {zscanMatch, zscanCount} cursor = scanArguments cursor zscanMatch zscanCount
