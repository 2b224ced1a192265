-- | Keys, whatever they hold: deleting, expiring, renaming, walking.
--
-- > run client (Redis.expire "example:{keys}" (minutes 30))
-- > run client (Redis.ttl "example:{keys}")
--
-- How they are held: "Redis.Commands.Object". To other databases and servers:
-- "Redis.Commands.Transfer". The servers' pages:
-- <https://valkey.io/commands/#generic>,
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
    KeyTtl (..),
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

    -- * Walking
    scan,
    scanWith,
    ScanCursor,
    scanStart,
    ScanOptions (scanMatch, scanCount, scanType),
    scanDefaults,
    ScanPage (..),
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Data.Time.Clock (UTCTime)
import Redis.Command (Command)
import Redis.Command.Build hiding (keys)
import Redis.Command.Build qualified as Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration, milliseconds)
import Redis.Internal.Command.Argument (unixMilliseconds, unixSeconds)
import Redis.Internal.Command.Expiry
import Redis.Internal.Command.KeyType
import Redis.Internal.Command.Scan

-- | @DEL key …@: how many there were. \(O(n)\) on the server in keys, and in elements of what they
-- hold; [since 1.0.0](https://valkey.io/commands/del/). Keys of several slots make one DEL per
-- slot, run at different times.
--
-- @since 0.1.0.0
del :: NonEmpty ByteString -> Command Int64
del names = command "DEL" (Build.keys names) Decode.integer

-- | @UNLINK key …@: as 'del', the memory being given back in the background. \(O(1)\) per key on
-- the server, [since 4.0.0](https://valkey.io/commands/unlink/). Split as 'del' is.
--
-- @since 0.1.0.0
unlink :: NonEmpty ByteString -> Command Int64
unlink names = command "UNLINK" (Build.keys names) Decode.integer

-- | @EXISTS key …@: how many of them exist, one named twice counting twice. \(O(n)\) on the server,
-- [since 1.0.0](https://valkey.io/commands/exists/); several keys since 3.0.3. Split as 'del' is.
--
-- @since 0.1.0.0
exists :: NonEmpty ByteString -> Command Int64
exists names = command "EXISTS" (Build.keys names) Decode.integer

-- | @TOUCH key …@: how many exist; they count as just used, on the primary, which is what evicts.
-- \(O(n)\) on the server, [since 3.2.1](https://valkey.io/commands/touch/). Split as 'del' is.
--
-- @since 0.1.0.0
touch :: NonEmpty ByteString -> Command Int64
touch names = command "TOUCH" (Build.keys names) Decode.integer

-- | @TYPE key@: 'Nothing' for no key. \(O(1)\) on the server,
-- [since 1.0.0](https://valkey.io/commands/type/).
--
-- @since 0.1.0.0
type_ :: ByteString -> Command (Maybe KeyType)
type_ name = command "TYPE" [key name] $ \reply -> do
  word <- Decode.bytes reply
  pure (if word == "none" then Nothing else Just (keyType word))
  where
    keyType word = case filter ((== word) . keyTypeWord) [StringKey, ListKey, SetKey, SortedSetKey, HashKey, StreamKey] of
      known : _ -> known
      [] -> OtherKey word

-- | @EXPIRE key seconds@: whether there was such a key. The duration is rounded up to seconds; one
-- that is not positive deletes the key. \(O(1)\) on the server,
-- [since 1.0.0](https://valkey.io/commands/expire/).
--
-- @since 0.1.0.0
expire :: ByteString -> Duration -> Command Bool
expire = expireWith expireDefaults

-- | When to change an expiry.
--
-- @since 0.1.0.0
newtype ExpireOptions = ExpireOptions
  { -- | 'Nothing' in any case.
    expireCondition :: Maybe ExpireCondition
  }
  deriving stock (Eq, Show)

-- | In any case.
--
-- @since 0.1.0.0
expireDefaults :: ExpireOptions
expireDefaults = ExpireOptions {expireCondition = Nothing}

-- | @EXPIRE key seconds [NX|XX|GT|LT]@: as 'expire'; whether the expiry was changed. The conditions
-- [since 7.0.0](https://valkey.io/commands/expire/).
--
-- @since 0.1.0.0
expireWith :: ExpireOptions -> ByteString -> Duration -> Command Bool
expireWith options name lifetime = command "EXPIRE" (key name : wholeSeconds lifetime : expireArguments options) Decode.boolean

-- | @PEXPIRE key milliseconds@: as 'expire', to the millisecond. \(O(1)\) on the server,
-- [since 2.6.0](https://valkey.io/commands/pexpire/).
--
-- @since 0.1.0.0
pexpire :: ByteString -> Duration -> Command Bool
pexpire = pexpireWith expireDefaults

-- | @PEXPIRE key milliseconds [NX|XX|GT|LT]@: 'pexpire' as 'expireWith'.
--
-- @since 0.1.0.0
pexpireWith :: ExpireOptions -> ByteString -> Duration -> Command Bool
pexpireWith options name lifetime = command "PEXPIRE" (key name : wholeMilliseconds lifetime : expireArguments options) Decode.boolean

-- | @EXPIREAT key time@: whether there was such a key. The time is rounded up to seconds; one that
-- is past deletes the key. \(O(1)\) on the server,
-- [since 1.2.0](https://valkey.io/commands/expireat/).
--
-- @since 0.1.0.0
expireat :: ByteString -> UTCTime -> Command Bool
expireat = expireatWith expireDefaults

-- | @EXPIREAT key time [NX|XX|GT|LT]@: 'expireat' as 'expireWith'.
--
-- @since 0.1.0.0
expireatWith :: ExpireOptions -> ByteString -> UTCTime -> Command Bool
expireatWith options name time = command "EXPIREAT" (key name : arg (unixSeconds time) : expireArguments options) Decode.boolean

-- | @PEXPIREAT key time@: as 'expireat', to the millisecond. \(O(1)\) on the server,
-- [since 2.6.0](https://valkey.io/commands/pexpireat/).
--
-- @since 0.1.0.0
pexpireat :: ByteString -> UTCTime -> Command Bool
pexpireat = pexpireatWith expireDefaults

-- | @PEXPIREAT key time [NX|XX|GT|LT]@: 'pexpireat' as 'expireWith'.
--
-- @since 0.1.0.0
pexpireatWith :: ExpireOptions -> ByteString -> UTCTime -> Command Bool
pexpireatWith options name time = command "PEXPIREAT" (key name : arg (unixMilliseconds time) : expireArguments options) Decode.boolean

expireArguments :: ExpireOptions -> [Argument]
expireArguments ExpireOptions {expireCondition} = expireConditionWord expireCondition

-- | @PERSIST key@: takes the expiry away; whether there was one. \(O(1)\) on the server,
-- [since 2.2.0](https://valkey.io/commands/persist/).
--
-- @since 0.1.0.0
persist :: ByteString -> Command Bool
persist name = command "PERSIST" [key name] Decode.boolean

-- | How long a key has to live.
--
-- @since 0.1.0.0
data KeyTtl
  = -- | There is no such key.
    NoSuchKey
  | -- | It has no time to live.
    NeverExpires
  | -- | So much longer.
    LivesFor Duration
  deriving stock (Eq, Show)

-- | @TTL key@: how long it lives, to the second. \(O(1)\) on the server,
-- [since 1.0.0](https://valkey.io/commands/ttl/).
--
-- @since 0.1.0.0
ttl :: ByteString -> Command KeyTtl
ttl name = command "TTL" [key name] (keyTtl 1000)

-- | @PTTL key@: how long it lives, to the millisecond. \(O(1)\) on the server,
-- [since 2.6.0](https://valkey.io/commands/pttl/).
--
-- @since 0.1.0.0
pttl :: ByteString -> Command KeyTtl
pttl name = command "PTTL" [key name] (keyTtl 1)

-- | Given how many milliseconds the server counts as one.
keyTtl :: Int64 -> Decoder KeyTtl
keyTtl unit reply = do
  time <- Decode.integer reply
  case time of
    -2 -> Right NoSuchKey
    -1 -> Right NeverExpires
    _
      | time >= 0 -> Right (LivesFor (milliseconds (time * unit)))
      | otherwise -> Decode.mismatch "a time, -1 or -2" reply

-- | When a key expires.
--
-- @since 0.1.0.0
data KeyExpiry
  = -- | There is no such key.
    NothingExpires
  | -- | It lives for ever.
    ExpiresNever
  | ExpiresAt UTCTime
  deriving stock (Eq, Show)

-- | @EXPIRETIME key@: when it expires, to the second. \(O(1)\) on the server,
-- [since 7.0.0](https://valkey.io/commands/expiretime/).
--
-- @since 0.1.0.0
expiretime :: ByteString -> Command KeyExpiry
expiretime name = command "EXPIRETIME" [key name] (keyExpiry Decode.unixSeconds)

-- | @PEXPIRETIME key@: when it expires, to the millisecond. \(O(1)\) on the server,
-- [since 7.0.0](https://valkey.io/commands/pexpiretime/).
--
-- @since 0.1.0.0
pexpiretime :: ByteString -> Command KeyExpiry
pexpiretime name = command "PEXPIRETIME" [key name] (keyExpiry Decode.unixMilliseconds)

keyExpiry :: Decoder UTCTime -> Decoder KeyExpiry
keyExpiry point reply =
  Decode.integer reply >>= \case
    -2 -> Right NothingExpires
    -1 -> Right ExpiresNever
    number
      | number >= 0 -> ExpiresAt <$> point reply
      | otherwise -> Decode.mismatch "a time, -1 or -2" reply

-- | @RENAME from to@; what was at @to@ is gone. An error if there is no @from@. In a cluster both
-- must share a slot. \(O(1)\) on the server, [since 1.0.0](https://valkey.io/commands/rename/).
--
-- @since 0.1.0.0
rename :: ByteString -> ByteString -> Command ()
rename from to = command "RENAME" [key from, key to] Decode.okay

-- | @RENAMENX from to@: whether it was renamed, which is if there was no @to@. An error if there is
-- no @from@. In a cluster both must share a slot. \(O(1)\) on the server,
-- [since 1.0.0](https://valkey.io/commands/renamenx/).
--
-- @since 0.1.0.0
renamenx :: ByteString -> ByteString -> Command Bool
renamenx from to = command "RENAMENX" [key from, key to] Decode.boolean

-- | @COPY from to@: whether it was copied, which is if there was a @from@ and no @to@. In a cluster
-- both must share a slot. \(O(n)\) on the server in the size of the value,
-- [since 6.2.0](https://valkey.io/commands/copy/).
--
-- @since 0.1.0.0
copy :: ByteString -> ByteString -> Command Bool
copy = copyWith copyDefaults

-- | How to copy.
--
-- @since 0.1.0.0
data CopyOptions = CopyOptions
  { -- | DB: into another database; 'Nothing' is the same.
    copyDatabase :: Maybe Int,
    -- | REPLACE: whatever is there.
    copyReplace :: Bool
  }
  deriving stock (Eq, Show)

-- | In the same database, and over nothing.
--
-- @since 0.1.0.0
copyDefaults :: CopyOptions
copyDefaults = CopyOptions {copyDatabase = Nothing, copyReplace = False}

-- | @COPY from to [DB n] [REPLACE]@: as 'copy'.
--
-- @since 0.1.0.0
copyWith :: CopyOptions -> ByteString -> ByteString -> Command Bool
copyWith CopyOptions {copyDatabase, copyReplace} from to =
  command
    "COPY"
    ([key from, key to] <> option "DB" (int . fromIntegral) copyDatabase <> flag "REPLACE" copyReplace)
    Decode.boolean

-- | @RANDOMKEY@: any key. In a cluster every primary is asked, and one of those that have keys is
-- drawn, however many it has: keys of small nodes come up more often than others. \(O(1)\) on the
-- server, [since 1.0.0](https://valkey.io/commands/randomkey/).
--
-- @since 0.1.0.0
randomkey :: Command (Maybe ByteString)
randomkey = command "RANDOMKEY" [] (Decode.nullable Decode.bytes)

-- | @KEYS pattern@: all keys that match a glob; in a cluster those of every primary. \(O(n)\) on
-- the server in the size of the database, serving nobody else meanwhile; see 'scan'.
-- [Since 1.0.0](https://valkey.io/commands/keys/).
--
-- @since 0.1.0.0
keys :: ByteString -> Command [ByteString]
keys glob = command "KEYS" [arg glob] (Decode.list Decode.bytes)

-- | What to walk over.
--
-- @since 0.1.0.0
data ScanOptions = ScanOptions
  { -- | MATCH: a glob.
    scanMatch :: Maybe ByteString,
    -- | COUNT: roughly how many keys to look at in one step (10 by default).
    scanCount :: Maybe Int64,
    -- | TYPE (since 6.0.0).
    scanType :: Maybe KeyType
  }
  deriving stock (Eq, Show)

-- | All keys, in steps of the server's choice.
--
-- @since 0.1.0.0
scanDefaults :: ScanOptions
scanDefaults = ScanOptions {scanMatch = Nothing, scanCount = Nothing, scanType = Nothing}

-- | @SCAN cursor@: as 'scanWith', over all keys.
--
-- @since 0.1.0.0
scan :: ScanCursor -> Command (ScanPage ByteString)
scan = scanWith scanDefaults

-- | @SCAN cursor [MATCH p] [COUNT n] [TYPE t]@: a step of a walk over the keys of one node. What is
-- there throughout the walk is seen, maybe twice. \(O(1)\) per step on the server,
-- [since 2.8.0](https://valkey.io/commands/scan/).
--
-- A cursor means something to the node that gave it only. So in a cluster this is
-- refused unless a node is named: walk over each of 'Redis.Client.clientNodes'
-- with 'Redis.Command.onNode'.
--
-- @since 0.1.0.0
scanWith :: ScanOptions -> ScanCursor -> Command (ScanPage ByteString)
scanWith ScanOptions {scanMatch, scanCount, scanType} cursor =
  command
    "SCAN"
    (scanArguments cursor scanMatch scanCount <> option "TYPE" (arg . keyTypeWord) scanType)
    (scanPage (Decode.list Decode.bytes))
