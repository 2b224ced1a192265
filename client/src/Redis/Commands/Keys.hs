-- | Commands on keys of any type: deleting, expiring, renaming, walking.
--
-- > run client (Redis.expire "example:{keys}" (minutes 30))
-- > run client (Redis.ttl "example:{keys}")
--
-- "Redis.Commands.Object" tells how the server stores a value. "Redis.Commands.Transfer" moves keys
-- to other databases and servers. Pages: <https://valkey.io/commands/#generic>,
-- <https://redis.io/docs/latest/commands/?group=generic>.
module Redis.Commands.Keys
  ( -- * Presence
    del,
    unlink,
    exists,
    touch,
    type_,
    KeyType (..),

    -- * Expiry
    expire,
    expireWith,
    pexpire,
    pexpireWith,
    expireat,
    expireatWith,
    pexpireat,
    pexpireatWith,
    ExpireOptions (expireCondition),
    expireDefaults,
    ExpireCondition (..),
    persist,
    ttl,
    pttl,
    expiretime,
    pexpiretime,
    KeyExpiry (..),

    -- * Names
    rename,
    renamenx,
    copy,
    copyWith,
    CopyOptions (copyDatabase, copyReplace),
    copyDefaults,
    randomkey,
    keys,

    -- * Scanning
    scan,
    scanWith,
    ScanCursor,
    scanStart,
    ScanOptions (scanMatch, scanCount, scanType),
    scanDefaults,
    ScanPage (..),
  )
where

import Redis.Command.Build qualified as Build
import Redis.Decode qualified as Decode
import Redis.Duration (milliseconds)
import Redis.Internal.Command.Common hiding (keys)

-- | @DEL key …@, @UNLINK key …@: delete the keys; how many there were. DEL costs \(O(n)\) in keys,
-- and in elements of what they hold, [since 1.0.0](https://valkey.io/commands/del/). UNLINK costs
-- \(O(1)\) per key, because the server frees the memory in the background,
-- [since 4.0.0](https://valkey.io/commands/unlink/). In a cluster, keys of several slots are split
-- into one command per slot, and these run at different times.
del, unlink :: NonEmpty ByteString -> Command Int64
del names = command "DEL" (Build.keys names) Decode.integer
unlink names = command "UNLINK" (Build.keys names) Decode.integer

-- | @EXISTS key …@, @TOUCH key …@: how many of the keys exist; a key that is named twice counts
-- twice. TOUCH marks them as just used, too; it always goes to the primary, because the primary
-- decides which keys to evict. \(O(n)\), [since 1.0.0](https://valkey.io/commands/exists/), several
-- keys since 3.0.3; TOUCH [since 3.2.1](https://valkey.io/commands/touch/). Split like 'del'.
exists, touch :: NonEmpty ByteString -> Command Int64
exists names = command "EXISTS" (Build.keys names) Decode.integer
touch names = command "TOUCH" (Build.keys names) Decode.integer

-- | @TYPE key@: the type of the value; 'Nothing' if there is no such key. \(O(1)\),
-- [since 1.0.0](https://valkey.io/commands/type/).
type_ :: ByteString -> Command (Maybe KeyType)
type_ name =
  command "TYPE" [key name] . wordOr (Just . OtherKey) $
    ("none", Nothing) : [(keyTypeWord kind, Just kind) | kind <- [StringKey, ListKey, SetKey, SortedSetKey, HashKey, StreamKey]]

-- | @EXPIRE key seconds@, @PEXPIRE key milliseconds@: set how long the key has to live; whether
-- there was such a key. The duration is rounded up to seconds or milliseconds; a duration that is
-- not positive deletes the key. \(O(1)\), [since 1.0.0](https://valkey.io/commands/expire/),
-- PEXPIRE [since 2.6.0](https://valkey.io/commands/pexpire/).
expire, pexpire :: ByteString -> Duration -> Command Bool
expire = expireWith expireDefaults
pexpire = pexpireWith expireDefaults

-- | The condition for changing an expiry.
newtype ExpireOptions = ExpireOptions
  { -- | 'Nothing': change it in any case.
    expireCondition :: Maybe ExpireCondition
  }
  deriving stock (Eq, Show)

-- | No condition.
expireDefaults :: ExpireOptions
expireDefaults = ExpireOptions {expireCondition = Nothing}

-- | @EXPIRE key seconds [NX|XX|GT|LT]@, @PEXPIRE …@: like 'expire' and 'pexpire', under a
-- condition; whether the expiry was changed. The conditions exist since 7.0.0.
expireWith, pexpireWith :: ExpireOptions -> ByteString -> Duration -> Command Bool
expireWith options name lifetime = command "EXPIRE" (key name : wholeSeconds lifetime : expireConditionWord (expireCondition options)) Decode.boolean
pexpireWith options name lifetime = command "PEXPIRE" (key name : wholeMilliseconds lifetime : expireConditionWord (expireCondition options)) Decode.boolean

-- | @EXPIREAT key time@, @PEXPIREAT key time@: set the time at which the key expires; whether there
-- was such a key. The time is rounded up to seconds or milliseconds; a time in the past deletes the
-- key. \(O(1)\), [since 1.2.0](https://valkey.io/commands/expireat/), PEXPIREAT
-- [since 2.6.0](https://valkey.io/commands/pexpireat/).
expireat, pexpireat :: ByteString -> UTCTime -> Command Bool
expireat = expireatWith expireDefaults
pexpireat = pexpireatWith expireDefaults

-- | @EXPIREAT key time [NX|XX|GT|LT]@, @PEXPIREAT …@: like 'expireat' and 'pexpireat', under a
-- condition; whether the expiry was changed.
expireatWith, pexpireatWith :: ExpireOptions -> ByteString -> UTCTime -> Command Bool
expireatWith options name time = command "EXPIREAT" (key name : arg (unixSeconds time) : expireConditionWord (expireCondition options)) Decode.boolean
pexpireatWith options name time = command "PEXPIREAT" (key name : arg (unixMilliseconds time) : expireConditionWord (expireCondition options)) Decode.boolean

-- | @PERSIST key@: removes the expiry; whether there was one. \(O(1)\),
-- [since 2.2.0](https://valkey.io/commands/persist/).
persist :: ByteString -> Command Bool
persist name = command "PERSIST" [key name] Decode.boolean

-- | When a key expires: after a 'Duration' or at a 'UTCTime'.
data KeyExpiry time
  = -- | There is no such key.
    NoSuchKey
  | -- | The key has no expiry.
    NeverExpires
  | -- | The key lives for this long, or until this time.
    KeyExpires time
  deriving stock (Eq, Show)

-- | @TTL key@, @PTTL key@: how long the key has to live, to the second or the millisecond.
-- \(O(1)\), [since 1.0.0](https://valkey.io/commands/ttl/), PTTL
-- [since 2.6.0](https://valkey.io/commands/pttl/).
ttl, pttl :: ByteString -> Command (KeyExpiry Duration)
ttl name = command "TTL" [key name] (keyExpiry (fmap (milliseconds . (* 1000)) . Decode.integer))
pttl name = command "PTTL" [key name] (keyExpiry millisecondsReply)

-- | @EXPIRETIME key@, @PEXPIRETIME key@: when the key expires, to the second or the millisecond.
-- \(O(1)\), since 7.0.0 ([EXPIRETIME](https://valkey.io/commands/expiretime/),
-- [PEXPIRETIME](https://valkey.io/commands/pexpiretime/)).
expiretime, pexpiretime :: ByteString -> Command (KeyExpiry UTCTime)
expiretime name = command "EXPIRETIME" [key name] (keyExpiry Decode.unixSeconds)
pexpiretime name = command "PEXPIRETIME" [key name] (keyExpiry Decode.unixMilliseconds)

keyExpiry :: Decoder time -> Decoder (KeyExpiry time)
keyExpiry time = expiryReply NoSuchKey NeverExpires (fmap KeyExpires . time)

-- | @RENAME from to@: renames a key; what @to@ held is lost. An error if there is no @from@. In a
-- cluster both keys must share a slot. \(O(1)\), [since 1.0.0](https://valkey.io/commands/rename/).
rename :: ByteString -> ByteString -> Command ()
rename from to = command "RENAME" [key from, key to] Decode.okay

-- | @RENAMENX from to@: renames a key unless @to@ exists; whether it was renamed. An error if there
-- is no @from@. In a cluster both keys must share a slot. \(O(1)\),
-- [since 1.0.0](https://valkey.io/commands/renamenx/).
renamenx :: ByteString -> ByteString -> Command Bool
renamenx from to = command "RENAMENX" [key from, key to] Decode.boolean

-- | @COPY from to@: copies the value if @from@ exists and @to@ does not; whether it was copied. In
-- a cluster both keys must share a slot. \(O(n)\) in the size of the value,
-- [since 6.2.0](https://valkey.io/commands/copy/).
copy :: ByteString -> ByteString -> Command Bool
copy = copyWith copyDefaults

-- | How to copy.
data CopyOptions = CopyOptions
  { -- | DB: the database to copy into; 'Nothing' is the same database.
    copyDatabase :: Maybe Int,
    -- | REPLACE: overwrite whatever the destination holds.
    copyReplace :: Bool
  }
  deriving stock (Eq, Show)

-- | Within the same database, without overwriting.
copyDefaults :: CopyOptions
copyDefaults = CopyOptions {copyDatabase = Nothing, copyReplace = False}

-- | @COPY from to [DB n] [REPLACE]@: like 'copy', with options.
copyWith :: CopyOptions -> ByteString -> ByteString -> Command Bool
copyWith CopyOptions {copyDatabase, copyReplace} from to =
  command
    "COPY"
    ([key from, key to] <> option "DB" (int . fromIntegral) copyDatabase <> flag "REPLACE" copyReplace)
    Decode.boolean

-- | @RANDOMKEY@: a random key, if there is one. In a cluster the client asks every primary and
-- draws one of their replies, however many keys each primary has: keys of primaries with few keys
-- come up more often than others. \(O(1)\), [since 1.0.0](https://valkey.io/commands/randomkey/).
randomkey :: Command (Maybe ByteString)
randomkey = command "RANDOMKEY" [] (Decode.nullable Decode.bytes)

-- | @KEYS pattern@: all keys that match a glob; in a cluster those of every primary. \(O(n)\) in
-- the size of the database, and the server serves nobody else meanwhile; 'scan' avoids that.
-- [Since 1.0.0](https://valkey.io/commands/keys/).
keys :: ByteString -> Command [ByteString]
keys glob = command "KEYS" [arg glob] (Decode.list Decode.bytes)

-- | Which keys to walk over, and in what steps.
data ScanOptions = ScanOptions
  { -- | MATCH: a glob.
    scanMatch :: Maybe ByteString,
    -- | COUNT: roughly how many keys to look at in one step. Default: 10.
    scanCount :: Maybe Int64,
    -- | TYPE: only keys of this type (since 6.0.0).
    scanType :: Maybe KeyType
  }
  deriving stock (Eq, Show)

-- | All keys, in steps of the server's choice.
scanDefaults :: ScanOptions
scanDefaults = ScanOptions {scanMatch = Nothing, scanCount = Nothing, scanType = Nothing}

-- | @SCAN cursor@: like 'scanWith', over all keys.
scan :: ScanCursor -> Command (ScanPage ByteString)
scan = scanWith scanDefaults

-- | @SCAN cursor [MATCH p] [COUNT n] [TYPE t]@: one step of a walk over the keys of one node. The
-- walk returns every key that exists throughout it, some perhaps twice. \(O(1)\) per step,
-- [since 2.8.0](https://valkey.io/commands/scan/).
--
-- A cursor is valid only on the node that issued it. So in a cluster this command is refused unless
-- a node is named: walk over each of 'Redis.Client.clientNodes' with 'Redis.Command.onNode'.
scanWith :: ScanOptions -> ScanCursor -> Command (ScanPage ByteString)
scanWith ScanOptions {scanMatch, scanCount, scanType} cursor =
  command
    "SCAN"
    (scanArguments cursor scanMatch scanCount <> option "TYPE" (arg . keyTypeWord) scanType)
    (scanPage (Decode.list Decode.bytes))
