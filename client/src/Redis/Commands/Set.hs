-- | Sets: members without order, each of which occurs once.
--
-- > run client (Redis.sadd "example:{sets}:may" ("ada" :| ["grace", "ada"]))
-- > run client (Redis.sismember "example:{sets}:may" "ada")
--
-- Adding the first member creates the set, and removing the last one deletes it: a key without
-- members does not exist, and reads as an empty set. On a key of another type each of these
-- commands is an error. The order in which members come is the server's, and means nothing.
--
-- The servers' documentation: <https://valkey.io/commands/#set>.
module Redis.Commands.Set
  ( -- * One set
    sadd,
    srem,
    sismember,
    sismemberXx,
    smismember,
    smembers,
    scard,
    smove,

    -- * Random members
    spop,
    spopCount,
    srandmember,
    srandmemberCount,
    Draw (..),

    -- * Several sets
    sunion,
    sinter,
    sdiff,
    sunionstore,
    sinterstore,
    sdiffstore,
    sintercard,
    sintercardWith,
    SintercardOptions (sintercardLimit),
    sintercardDefaults,
    sunioncard,
    sunioncardWith,
    SunioncardOptions (sunioncardApprox, sunioncardLimit),
    sunioncardDefaults,
    sdiffcard,
    sdiffcardWith,
    SdiffcardOptions (sdiffcardLimit),
    sdiffcardDefaults,

    -- * Scanning
    sscan,
    sscanWith,
    SscanOptions (sscanMatch, sscanCount),
    sscanDefaults,
    ScanCursor,
    scanStart,
    ScanPage (..),
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | @SADD key member …@, @SREM key member …@: add or remove the members; how many of them were new,
-- or were there. \(O(1)\) per member, since 1.0.0 ([SADD](https://valkey.io/commands/sadd/),
-- [SREM](https://valkey.io/commands/srem/)); several members since 2.4.0.
sadd, srem :: ByteString -> NonEmpty ByteString -> Command Int64
sadd name members = command "SADD" (key name : args members) Decode.integer
srem name members = command "SREM" (key name : args members) Decode.integer

-- | @SISMEMBER key member@: whether the set has this member. \(O(1)\),
-- [since 1.0.0](https://valkey.io/commands/sismember/).
sismember :: ByteString -> ByteString -> Command Bool
sismember name member = command "SISMEMBER" [key name, arg member] Decode.boolean

-- | @SISMEMBER key member XX@: like 'sismember', but 'Nothing' if there is no set. Valkey
-- [since 9.2.0](https://valkey.io/commands/sismember/); other servers refuse the word XX.
sismemberXx :: ByteString -> ByteString -> Command (Maybe Bool)
sismemberXx name member =
  command "SISMEMBER" [key name, arg member, arg "XX"] $
    oneOf Decode.integer "0, 1 or -1" [(-1, Nothing), (0, Just False), (1, Just True)]

-- | @SMISMEMBER key member …@: for each argument, in order, whether the set has this member.
-- \(O(1)\) per member, [since 6.2.0](https://valkey.io/commands/smismember/).
smismember :: ByteString -> NonEmpty ByteString -> Command [Bool]
smismember name members =
  command "SMISMEMBER" (key name : args members) (Decode.listOf (length members) Decode.boolean)

-- | @SMEMBERS key@: all members. \(O(n)\) in their number, and the server serves nobody else
-- meanwhile; 'sscan' avoids that. [Since 1.0.0](https://valkey.io/commands/smembers/).
smembers :: ByteString -> Command [ByteString]
smembers name = command "SMEMBERS" [key name] (Decode.list Decode.bytes)

-- | @SCARD key@: the number of members. \(O(1)\), [since 1.0.0](https://valkey.io/commands/scard/).
scard :: ByteString -> Command Int64
scard name = command "SCARD" [key name] Decode.integer

-- | @SMOVE source destination member@: moves a member from one set to another in one step; whether
-- it was in the source. In a cluster both keys must share a slot. \(O(1)\),
-- [since 1.0.0](https://valkey.io/commands/smove/).
smove :: ByteString -> ByteString -> ByteString -> Command Bool
smove source destination member = command "SMOVE" [key source, key destination, arg member] Decode.boolean

-- | @SPOP key@: removes a random member and returns it, if there is one. \(O(1)\),
-- [since 1.0.0](https://valkey.io/commands/spop/).
spop :: ByteString -> Command (Maybe ByteString)
spop name = command "SPOP" [key name] (Decode.nullable Decode.bytes)

-- | @SPOP key count@: removes this many random members and returns them, or all if there are fewer.
-- A negative count is refused before it is sent. \(O(n)\) in the count, since 3.2.0.
spopCount :: ByteString -> Int64 -> Command [ByteString]
spopCount name count = command "SPOP" [key name, natural count] (Decode.list Decode.bytes)

-- | @SRANDMEMBER key@: a random member, if there is one; it stays in the set. \(O(1)\),
-- [since 1.0.0](https://valkey.io/commands/srandmember/).
srandmember :: ByteString -> Command (Maybe ByteString)
srandmember name = command "SRANDMEMBER" [key name] (Decode.nullable Decode.bytes)

-- | @SRANDMEMBER key count@: several random members, which stay in the set. \(O(n)\) in the count,
-- [since 2.6.0](https://valkey.io/commands/srandmember/).
srandmemberCount :: ByteString -> Draw -> Command [ByteString]
srandmemberCount name draw = command "SRANDMEMBER" [key name, drawCount draw] (Decode.list Decode.bytes)

-- | @SUNION key …@, @SINTER key …@, @SDIFF key …@: the members of at least one of the sets, those
-- that all sets have, or those of the first set that are in none of the others. In a cluster the
-- keys must share a slot. \(O(n)\) in the number of members of all sets, but SINTER \(O(n m)\) for
-- n members of the smallest of m sets; since 1.0.0 ([SUNION](https://valkey.io/commands/sunion/),
-- [SINTER](https://valkey.io/commands/sinter/), [SDIFF](https://valkey.io/commands/sdiff/)).
sunion, sinter, sdiff :: NonEmpty ByteString -> Command [ByteString]
sunion names = command "SUNION" (keys names) (Decode.list Decode.bytes)
sinter names = command "SINTER" (keys names) (Decode.list Decode.bytes)
sdiff names = command "SDIFF" (keys names) (Decode.list Decode.bytes)

-- | @SUNIONSTORE destination key …@, @SINTERSTORE …@, @SDIFFSTORE …@: store the result of 'sunion',
-- 'sinter' or 'sdiff' at the destination, in the place of whatever the key held; its size. If it is
-- empty, the key is deleted. In a cluster all keys must share a slot. They cost the same as those;
-- since 1.0.0 ([SUNIONSTORE](https://valkey.io/commands/sunionstore/),
-- [SINTERSTORE](https://valkey.io/commands/sinterstore/),
-- [SDIFFSTORE](https://valkey.io/commands/sdiffstore/)).
sunionstore, sinterstore, sdiffstore :: ByteString -> NonEmpty ByteString -> Command Int64
sunionstore destination names = command "SUNIONSTORE" (key destination : keys names) Decode.integer
sinterstore destination names = command "SINTERSTORE" (key destination : keys names) Decode.integer
sdiffstore destination names = command "SDIFFSTORE" (key destination : keys names) Decode.integer

-- | @SINTERCARD n key …@, @SUNIONCARD n key …@, @SDIFFCARD n key …@: how many members 'sinter',
-- 'sunion' or 'sdiff' would return, at their costs. In a cluster the keys must share a slot.
-- [Since 7.0.0](https://valkey.io/commands/sintercard/); since Redis 8.10.0
-- ([SUNIONCARD](https://redis.io/docs/latest/commands/sunioncard/),
-- [SDIFFCARD](https://redis.io/docs/latest/commands/sdiffcard/)), and Valkey lacks these.
sintercard, sunioncard, sdiffcard :: NonEmpty ByteString -> Command Int64
sintercard = sintercardWith sintercardDefaults
sunioncard = sunioncardWith sunioncardDefaults
sdiffcard = sdiffcardWith sdiffcardDefaults

-- | How far to count.
newtype SintercardOptions = SintercardOptions
  { -- | LIMIT: stop counting at this number; 0 is no limit. A negative limit is refused before it
    -- is sent.
    sintercardLimit :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | No limit.
sintercardDefaults :: SintercardOptions
sintercardDefaults = SintercardOptions {sintercardLimit = Nothing}

-- | @SINTERCARD n key … [LIMIT l]@: like 'sintercard', with options.
sintercardWith :: SintercardOptions -> NonEmpty ByteString -> Command Int64
sintercardWith SintercardOptions {sintercardLimit} names =
  command
    "SINTERCARD"
    (countedKeys names <> option "LIMIT" natural sintercardLimit)
    Decode.integer

-- | How, and how far, to count the members of a union.
data SunioncardOptions = SunioncardOptions
  { -- | APPROX: an estimate, which is mostly less than a hundredth off, and costs less memory.
    sunioncardApprox :: Bool,
    -- | LIMIT: like 'sintercardLimit'.
    sunioncardLimit :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | Exactly, without a limit.
sunioncardDefaults :: SunioncardOptions
sunioncardDefaults = SunioncardOptions {sunioncardApprox = False, sunioncardLimit = Nothing}

-- | @SUNIONCARD n key … [APPROX] [LIMIT l]@: like 'sunioncard', with options.
sunioncardWith :: SunioncardOptions -> NonEmpty ByteString -> Command Int64
sunioncardWith SunioncardOptions {sunioncardApprox, sunioncardLimit} names =
  command
    "SUNIONCARD"
    (countedKeys names <> flag "APPROX" sunioncardApprox <> option "LIMIT" natural sunioncardLimit)
    Decode.integer

-- | How far to count the members of a difference.
newtype SdiffcardOptions = SdiffcardOptions
  { -- | LIMIT: like 'sintercardLimit'.
    sdiffcardLimit :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | No limit.
sdiffcardDefaults :: SdiffcardOptions
sdiffcardDefaults = SdiffcardOptions {sdiffcardLimit = Nothing}

-- | @SDIFFCARD n key … [LIMIT l]@: like 'sdiffcard', with options.
sdiffcardWith :: SdiffcardOptions -> NonEmpty ByteString -> Command Int64
sdiffcardWith SdiffcardOptions {sdiffcardLimit} names =
  command "SDIFFCARD" (countedKeys names <> option "LIMIT" natural sdiffcardLimit) Decode.integer

-- | Which members to walk over, and in what steps.
data SscanOptions = SscanOptions
  { -- | MATCH: a glob.
    sscanMatch :: Maybe ByteString,
    -- | COUNT: roughly how many members to look at in one step. Default: 10. Small sets come whole.
    sscanCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | All members, in steps of the server's choice.
sscanDefaults :: SscanOptions
sscanDefaults = SscanOptions {sscanMatch = Nothing, sscanCount = Nothing}

-- | @SSCAN key cursor@: like 'sscanWith', over all members.
sscan :: ByteString -> ScanCursor -> Command (ScanPage ByteString)
sscan = sscanWith sscanDefaults

-- | @SSCAN key cursor [MATCH p] [COUNT n]@: one step of a walk over the members of a set. The walk
-- returns every member that is in the set throughout, some perhaps twice. In a cluster the primary
-- answers, because a cursor is valid only on the node that issued it. \(O(1)\) per step,
-- [since 2.8.0](https://valkey.io/commands/sscan/).
sscanWith :: SscanOptions -> ByteString -> ScanCursor -> Command (ScanPage ByteString)
sscanWith SscanOptions {sscanMatch, sscanCount} name cursor =
  command "SSCAN" (key name : scanArguments cursor sscanMatch sscanCount) (scanPage (Decode.list Decode.bytes))
