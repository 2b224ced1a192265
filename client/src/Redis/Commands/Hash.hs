-- | Hashes: fields with values under one key, and fields that expire on their own.
--
-- > _ <- run client (hset "user:7" (("name", "Ada") :| [("born", "1815")]))
-- > name <- run client (hget "user:7" "name")
--
-- The first field makes the hash and the last to go takes it along: a key without
-- fields does not exist, and reads as a hash of none. On a key of another type each of
-- these is an error.
--
-- What the servers say: <https://valkey.io/commands/#hash>.
module Redis.Commands.Hash
  ( -- * Writing
    hset,
    hsetnx,
    hincrby,
    hincrbyfloat,
    hdel,
    hmset,

    -- * Reading
    hget,
    hmget,
    hgetall,
    hkeys,
    hvals,
    hlen,
    hexists,
    hstrlen,

    -- * Drawing
    hrandfield,
    hrandfieldCount,
    hrandfieldWithvalues,
    Draw (..),

    -- * Walking
    hscan,
    hscanWith,
    hscanNovalues,
    HscanOptions (hscanMatch, hscanCount),
    hscanDefaults,
    ScanCursor,
    scanStart,
    ScanPage (..),

    -- * Fields that expire
    hexpire,
    hexpireWith,
    hpexpire,
    hpexpireWith,
    hexpireat,
    hexpireatWith,
    hpexpireat,
    hpexpireatWith,
    HexpireCondition (..),
    HexpireResult (..),
    hpersist,
    HpersistResult (..),
    httl,
    hpttl,
    hexpiretime,
    hpexpiretime,
    FieldExpiry (..),

    -- * Values and expiry at once
    hsetex,
    hsetexWith,
    HsetexOptions (hsetexKey, hsetexFields, hsetexExpiry),
    hsetexDefaults,
    HsetexKey (..),
    HsetexFields (..),
    hgetex,
    hgetexWith,
    hgetdel,
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Data.Time.Clock (UTCTime)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Commands.String (Expiry (..))
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration, milliseconds)
import Redis.Internal.Command.Argument (unixMilliseconds, unixSeconds)
import Redis.Internal.Command.Draw
import Redis.Internal.Command.Expiry (expireAt, expireIn)
import Redis.Internal.Command.Scan

-- | @HSET key field value …@: sets fields, those that are there as well; how many
-- are new. A field that had an expiry has none afterwards. \(O(1)\) per field on the
-- server, since 2.0.0; several fields since 4.0.0.
--
-- @since 0.1.0.0
hset :: ByteString -> NonEmpty (ByteString, ByteString) -> Command Int64
hset name entries = command "HSET" (key name : fieldsWithValues entries) Decode.integer

-- | @HSETNX key field value@: sets a field that is not there; whether it did.
-- \(O(1)\) on the server, since 2.0.0.
--
-- @since 0.1.0.0
hsetnx :: ByteString -> ByteString -> ByteString -> Command Bool
hsetnx name one new = command "HSETNX" [key name, arg one, arg new] Decode.boolean

-- | @HINCRBY key field increment@: the number after it; a missing field counts as 0.
-- What is no integer of 64 bits, or would become none, is an error. \(O(1)\) on
-- the server, since 2.0.0.
--
-- @since 0.1.0.0
hincrby :: ByteString -> ByteString -> Int64 -> Command Int64
hincrby name one by = command "HINCRBY" [key name, arg one, int by] Decode.integer

-- | @HINCRBYFLOAT key field increment@: as 'hincrby', for numbers with a fraction. The
-- server takes neither an infinity nor a NaN. \(O(1)\) on the server, since 2.6.0.
--
-- @since 0.1.0.0
hincrbyfloat :: ByteString -> ByteString -> Double -> Command Double
hincrbyfloat name one by = command "HINCRBYFLOAT" [key name, arg one, double by] Decode.double

-- | @HDEL key field …@: how many there were. \(O(1)\) per field on the server,
-- since 2.0.0; several fields since 2.4.0.
--
-- @since 0.1.0.0
hdel :: ByteString -> NonEmpty ByteString -> Command Int64
hdel name fields = command "HDEL" (key name : args fields) Decode.integer

-- | @HMSET key field value …@: 'hset' of old servers, which took several fields only
-- here. Redis calls it deprecated since 4.0.0. \(O(1)\) per field on the server,
-- since 2.0.0.
--
-- @since 0.1.0.0
hmset :: ByteString -> NonEmpty (ByteString, ByteString) -> Command ()
hmset name entries = command "HMSET" (key name : fieldsWithValues entries) Decode.okay

-- | @HGET key field@: its value, or 'Nothing' if there is no such field. \(O(1)\) on
-- the server, since 2.0.0.
--
-- @since 0.1.0.0
hget :: ByteString -> ByteString -> Command (Maybe ByteString)
hget name one = command "HGET" [key name, arg one] (Decode.nullable Decode.bytes)

-- | @HMGET key field …@: their values, in the order of the fields that were asked for.
-- \(O(1)\) per field on the server, since 2.0.0.
--
-- @since 0.1.0.0
hmget :: ByteString -> NonEmpty ByteString -> Command [Maybe ByteString]
hmget name fields = command "HMGET" (key name : args fields) (forEach fields (Decode.nullable Decode.bytes))

-- | @HGETALL key@: all fields with their values, in the server's order. \(O(n)\) on
-- the server in the size of the hash, serving nobody else meanwhile; see 'hscan'.
-- Since 2.0.0.
--
-- @since 0.1.0.0
hgetall :: ByteString -> Command [(ByteString, ByteString)]
hgetall name = command "HGETALL" [key name] (Decode.pairs Decode.bytes Decode.bytes)

-- | @HKEYS key@: all fields, in the server's order. \(O(n)\) on the server in the size
-- of the hash, since 2.0.0.
--
-- @since 0.1.0.0
hkeys :: ByteString -> Command [ByteString]
hkeys name = command "HKEYS" [key name] (Decode.list Decode.bytes)

-- | @HVALS key@: all values, in the server's order. \(O(n)\) on the server in the size
-- of the hash, since 2.0.0.
--
-- @since 0.1.0.0
hvals :: ByteString -> Command [ByteString]
hvals name = command "HVALS" [key name] (Decode.list Decode.bytes)

-- | @HLEN key@: how many fields. Those whose time is over may count until the server
-- has swept them away. \(O(1)\) on the server, since 2.0.0.
--
-- @since 0.1.0.0
hlen :: ByteString -> Command Int64
hlen name = command "HLEN" [key name] Decode.integer

-- | @HEXISTS key field@. \(O(1)\) on the server, since 2.0.0.
--
-- @since 0.1.0.0
hexists :: ByteString -> ByteString -> Command Bool
hexists name one = command "HEXISTS" [key name, arg one] Decode.boolean

-- | @HSTRLEN key field@: the length of its value, 0 without one. \(O(1)\) on the
-- server, since 3.2.0.
--
-- @since 0.1.0.0
hstrlen :: ByteString -> ByteString -> Command Int64
hstrlen name one = command "HSTRLEN" [key name, arg one] Decode.integer

-- | @HRANDFIELD key@: any field; 'Nothing' for no hash. \(O(1)\) on the server, since
-- 6.2.0.
--
-- @since 0.1.0.0
hrandfield :: ByteString -> Command (Maybe ByteString)
hrandfield name = command "HRANDFIELD" [key name] (Decode.nullable Decode.bytes)

-- | @HRANDFIELD key count@: several. \(O(n)\) on the server in the length of the
-- answer, since 6.2.0.
--
-- @since 0.1.0.0
hrandfieldCount :: ByteString -> Draw -> Command [ByteString]
hrandfieldCount name draw = command "HRANDFIELD" [key name, drawCount draw] (Decode.list Decode.bytes)

-- | @HRANDFIELD key count WITHVALUES@: several, with their values. \(O(n)\) on the
-- server in the length of the answer, since 6.2.0.
--
-- @since 0.1.0.0
hrandfieldWithvalues :: ByteString -> Draw -> Command [(ByteString, ByteString)]
hrandfieldWithvalues name draw =
  command "HRANDFIELD" [key name, drawCount draw, arg "WITHVALUES"] (Decode.pairs Decode.bytes Decode.bytes)

-- | What to walk over.
--
-- @since 0.1.0.0
data HscanOptions = HscanOptions
  { -- | MATCH: a glob for fields.
    hscanMatch :: Maybe ByteString,
    -- | COUNT: roughly how many fields to look at in one step (10 by default). A small
    -- hash comes whole.
    hscanCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | All fields, in steps of the server's choice.
--
-- @since 0.1.0.0
hscanDefaults :: HscanOptions
hscanDefaults = HscanOptions {hscanMatch = Nothing, hscanCount = Nothing}

-- | @HSCAN key cursor@: as 'hscanWith', over all fields.
--
-- @since 0.1.0.0
hscan :: ByteString -> ScanCursor -> Command (ScanPage (ByteString, ByteString))
hscan = hscanWith hscanDefaults

-- | @HSCAN key cursor [MATCH p] [COUNT n]@: a step of a walk over the fields of a hash
-- and their values. What is there throughout the walk is seen, maybe twice. In a
-- cluster the primary answers, since a cursor means something to the node that gave
-- it only. \(O(1)\) per step on the server, since 2.8.0.
--
-- @since 0.1.0.0
hscanWith :: HscanOptions -> ByteString -> ScanCursor -> Command (ScanPage (ByteString, ByteString))
hscanWith options name cursor =
  command "HSCAN" (key name : hscanArguments options cursor) (scanPage (Decode.pairs Decode.bytes Decode.bytes))

-- | @HSCAN key cursor [MATCH p] [COUNT n] NOVALUES@: as 'hscanWith', with fields
-- alone. Since Redis 7.4.0 and Valkey 8.0.0.
--
-- @since 0.1.0.0
hscanNovalues :: HscanOptions -> ByteString -> ScanCursor -> Command (ScanPage ByteString)
hscanNovalues options name cursor =
  command
    "HSCAN"
    (key name : hscanArguments options cursor <> [arg "NOVALUES"])
    (scanPage (Decode.list Decode.bytes))

hscanArguments :: HscanOptions -> ScanCursor -> [Argument]
hscanArguments HscanOptions {hscanMatch, hscanCount} cursor = scanArguments cursor hscanMatch hscanCount

-- | When to change the expiry of a field.
--
-- @since 0.1.0.0
data HexpireCondition
  = -- | NX: if it has none.
    HexpireNew
  | -- | XX: if it has one.
    HexpireExisting
  | -- | GT: if it has one, and the new one is later.
    HexpireLater
  | -- | LT: if it has none, or the new one is sooner.
    HexpireSooner
  deriving stock (Eq, Show)

-- | What became of a field that was to expire.
--
-- @since 0.1.0.0
data HexpireResult
  = -- | There is no such field, or no hash.
    HexpireNoField
  | -- | The condition did not hold, and it is as it was.
    HexpireUnchanged
  | -- | It expires then.
    HexpireSet
  | -- | It is deleted: its time is over already.
    HexpireDeleted
  deriving stock (Eq, Show)

-- | @HEXPIRE key seconds FIELDS n field …@: how long fields shall live; what became of
-- each, in their order. The duration is rounded up to seconds. The server
-- refuses one that is negative; none at all deletes the field. \(O(1)\) per field on
-- the server, since Redis 7.4.0 and Valkey 9.0.0.
--
-- > hexpire "session" (minutes 30) ("token" :| [])
--
-- @since 0.1.0.0
hexpire :: ByteString -> Duration -> NonEmpty ByteString -> Command [HexpireResult]
hexpire name lifetime = expiring "HEXPIRE" name [wholeSeconds lifetime]

-- | @HEXPIRE key seconds NX|XX|GT|LT FIELDS n field …@: as 'hexpire', for each field
-- of which the condition holds.
--
-- @since 0.1.0.0
hexpireWith :: HexpireCondition -> ByteString -> Duration -> NonEmpty ByteString -> Command [HexpireResult]
hexpireWith condition name lifetime = expiring "HEXPIRE" name [wholeSeconds lifetime, hexpireCondition condition]

-- | @HPEXPIRE key milliseconds FIELDS n field …@: as 'hexpire', to the millisecond.
--
-- @since 0.1.0.0
hpexpire :: ByteString -> Duration -> NonEmpty ByteString -> Command [HexpireResult]
hpexpire name lifetime = expiring "HPEXPIRE" name [wholeMilliseconds lifetime]

-- | @HPEXPIRE key milliseconds NX|XX|GT|LT FIELDS n field …@: as 'hexpireWith', to the
-- millisecond.
--
-- @since 0.1.0.0
hpexpireWith :: HexpireCondition -> ByteString -> Duration -> NonEmpty ByteString -> Command [HexpireResult]
hpexpireWith condition name lifetime = expiring "HPEXPIRE" name [wholeMilliseconds lifetime, hexpireCondition condition]

-- | @HEXPIREAT key time FIELDS n field …@: until when fields shall live; what became
-- of each, in their order. The time is rounded up to seconds; one that is past
-- deletes the field. \(O(1)\) per field on the server, since Redis 7.4.0 and Valkey
-- 9.0.0.
--
-- @since 0.1.0.0
hexpireat :: ByteString -> UTCTime -> NonEmpty ByteString -> Command [HexpireResult]
hexpireat name time = expiring "HEXPIREAT" name [arg (unixSeconds time)]

-- | @HEXPIREAT key time NX|XX|GT|LT FIELDS n field …@: as 'hexpireat', for each field
-- of which the condition holds.
--
-- @since 0.1.0.0
hexpireatWith :: HexpireCondition -> ByteString -> UTCTime -> NonEmpty ByteString -> Command [HexpireResult]
hexpireatWith condition name time = expiring "HEXPIREAT" name [arg (unixSeconds time), hexpireCondition condition]

-- | @HPEXPIREAT key time FIELDS n field …@: as 'hexpireat', to the millisecond.
--
-- @since 0.1.0.0
hpexpireat :: ByteString -> UTCTime -> NonEmpty ByteString -> Command [HexpireResult]
hpexpireat name time = expiring "HPEXPIREAT" name [arg (unixMilliseconds time)]

-- | @HPEXPIREAT key time NX|XX|GT|LT FIELDS n field …@: as 'hexpireatWith', to the
-- millisecond.
--
-- @since 0.1.0.0
hpexpireatWith :: HexpireCondition -> ByteString -> UTCTime -> NonEmpty ByteString -> Command [HexpireResult]
hpexpireatWith condition name time = expiring "HPEXPIREAT" name [arg (unixMilliseconds time), hexpireCondition condition]

hexpireCondition :: HexpireCondition -> Argument
hexpireCondition = \case
  HexpireNew -> arg "NX"
  HexpireExisting -> arg "XX"
  HexpireLater -> arg "GT"
  HexpireSooner -> arg "LT"

expiring :: Name -> ByteString -> [Argument] -> NonEmpty ByteString -> Command [HexpireResult]
expiring commandName name time fields =
  command commandName (key name : time <> numbered fields) (forEach fields outcome)
  where
    outcome reply =
      Decode.integer reply >>= \case
        -2 -> Right HexpireNoField
        0 -> Right HexpireUnchanged
        1 -> Right HexpireSet
        2 -> Right HexpireDeleted
        _ -> Decode.mismatch "-2, 0, 1 or 2" reply

-- | What became of a field that was to live for ever.
--
-- @since 0.1.0.0
data HpersistResult
  = -- | There is no such field, or no hash.
    HpersistNoField
  | -- | It had no expiry.
    HpersistUnchanged
  | -- | It had one, and has it no more.
    HpersistRemoved
  deriving stock (Eq, Show)

-- | @HPERSIST key FIELDS n field …@: takes the expiry away; what became of each field,
-- in their order. \(O(1)\) per field on the server, since Redis 7.4.0 and Valkey
-- 9.0.0.
--
-- @since 0.1.0.0
hpersist :: ByteString -> NonEmpty ByteString -> Command [HpersistResult]
hpersist name fields = command "HPERSIST" (key name : numbered fields) (forEach fields outcome)
  where
    outcome reply =
      Decode.integer reply >>= \case
        -2 -> Right HpersistNoField
        -1 -> Right HpersistUnchanged
        1 -> Right HpersistRemoved
        _ -> Decode.mismatch "-2, -1 or 1" reply

-- | When a field expires: after a 'Duration', or at a 'UTCTime'.
--
-- @since 0.1.0.0
data FieldExpiry time
  = -- | There is no such field, or no hash.
    NoSuchField
  | -- | It lives as long as the hash does.
    FieldStays
  | -- | So much longer, or until then.
    FieldExpires time
  deriving stock (Eq, Show)

-- | @HTTL key FIELDS n field …@: how much longer each lives, to the second, in their
-- order. \(O(1)\) per field on the server, since Redis 7.4.0 and Valkey 9.0.0.
--
-- @since 0.1.0.0
httl :: ByteString -> NonEmpty ByteString -> Command [FieldExpiry Duration]
httl = expiryOf "HTTL" (fmap (milliseconds . (* 1000)) . Decode.integer)

-- | @HPTTL key FIELDS n field …@: as 'httl', to the millisecond.
--
-- @since 0.1.0.0
hpttl :: ByteString -> NonEmpty ByteString -> Command [FieldExpiry Duration]
hpttl = expiryOf "HPTTL" (fmap milliseconds . Decode.integer)

-- | @HEXPIRETIME key FIELDS n field …@: until when each lives, to the second, in their
-- order. \(O(1)\) per field on the server, since Redis 7.4.0 and Valkey 9.0.0.
--
-- @since 0.1.0.0
hexpiretime :: ByteString -> NonEmpty ByteString -> Command [FieldExpiry UTCTime]
hexpiretime = expiryOf "HEXPIRETIME" Decode.unixSeconds

-- | @HPEXPIRETIME key FIELDS n field …@: as 'hexpiretime', to the millisecond.
--
-- @since 0.1.0.0
hpexpiretime :: ByteString -> NonEmpty ByteString -> Command [FieldExpiry UTCTime]
hpexpiretime = expiryOf "HPEXPIRETIME" Decode.unixMilliseconds

expiryOf :: Name -> Decoder time -> ByteString -> NonEmpty ByteString -> Command [FieldExpiry time]
expiryOf commandName time name fields = command commandName (key name : numbered fields) (forEach fields outcome)
  where
    outcome reply =
      Decode.integer reply >>= \case
        -2 -> Right NoSuchField
        -1 -> Right FieldStays
        count
          | count >= 0 -> FieldExpires <$> time reply
          | otherwise -> Decode.mismatch "a time, -1 or -2" reply

-- | How to set fields.
--
-- @since 0.1.0.0
data HsetexOptions = HsetexOptions
  { -- | When to set, by the hash; 'Nothing' in any case. Valkey alone has this.
    hsetexKey :: Maybe HsetexKey,
    -- | When to set, by its fields; 'Nothing' in any case.
    hsetexFields :: Maybe HsetexFields,
    -- | How long the fields shall live. 'KeepExpiry' is as long as the value
    -- that it replaces would have.
    hsetexExpiry :: Expiry
  }
  deriving stock (Eq, Show)

-- | In any case, and without an expiry.
--
-- @since 0.1.0.0
hsetexDefaults :: HsetexOptions
hsetexDefaults = HsetexOptions {hsetexKey = Nothing, hsetexFields = Nothing, hsetexExpiry = NoExpiry}

-- | What must be so of the hash.
--
-- @since 0.1.0.0
data HsetexKey
  = -- | NX: there is none.
    OnlyNewHash
  | -- | XX: it is there.
    OnlyExistingHash
  deriving stock (Eq, Show)

-- | What must be so of all the fields that are to be set.
--
-- @since 0.1.0.0
data HsetexFields
  = -- | FNX: none is there.
    OnlyNewFields
  | -- | FXX: all are there.
    OnlyExistingFields
  deriving stock (Eq, Show)

-- | @HSETEX key EX seconds FIELDS n field value …@: sets fields that live for so long.
-- The server refuses a negative duration. \(O(1)\) per field on the server, since
-- Redis 8.0.0 and Valkey 9.0.0.
--
-- > hsetex "session" (minutes 30) (("token", "…") :| [])
--
-- @since 0.1.0.0
hsetex :: ByteString -> Duration -> NonEmpty (ByteString, ByteString) -> Command ()
hsetex name lifetime entries =
  command "HSETEX" (hsetexArguments hsetexDefaults {hsetexExpiry = ExpireIn lifetime} name entries) $ \reply ->
    Decode.boolean reply >>= \case
      True -> Right ()
      False -> Decode.mismatch "1" reply

-- | @HSETEX key [NX|XX] [FNX|FXX] [EX|PX|PXAT|KEEPTTL] FIELDS n field value …@:
-- whether they were set, which is all or none. \(O(1)\) per field on the server,
-- since Redis 8.0.0 and Valkey 9.0.0.
--
-- @since 0.1.0.0
hsetexWith :: HsetexOptions -> ByteString -> NonEmpty (ByteString, ByteString) -> Command Bool
hsetexWith options name entries = command "HSETEX" (hsetexArguments options name entries) Decode.boolean

hsetexArguments :: HsetexOptions -> ByteString -> NonEmpty (ByteString, ByteString) -> [Argument]
hsetexArguments HsetexOptions {hsetexKey, hsetexFields, hsetexExpiry} name entries =
  key name : ofKey <> ofFields <> lifetime <> (arg "FIELDS" : size entries : fieldsWithValues entries)
  where
    ofKey = case hsetexKey of
      Nothing -> []
      Just OnlyNewHash -> [arg "NX"]
      Just OnlyExistingHash -> [arg "XX"]
    ofFields = case hsetexFields of
      Nothing -> []
      Just OnlyNewFields -> [arg "FNX"]
      Just OnlyExistingFields -> [arg "FXX"]
    lifetime = case hsetexExpiry of
      NoExpiry -> []
      KeepExpiry -> [arg "KEEPTTL"]
      ExpireIn duration -> expireIn duration
      ExpireAt time -> expireAt time

-- | @HGETEX key FIELDS n field …@: their values, in their order; their expiry stays.
-- \(O(1)\) per field on the server, since Redis 8.0.0 and Valkey 9.0.0.
--
-- @since 0.1.0.0
hgetex :: ByteString -> NonEmpty ByteString -> Command [Maybe ByteString]
hgetex = hgetexWith KeepExpiry

-- | @HGETEX key [EX|PX|PXAT|PERSIST] FIELDS n field …@: their values, and a new expiry;
-- 'NoExpiry' takes the one that they have away. One that is over deletes them. \(O(1)\) per
-- field on the server, since Redis 8.0.0 and Valkey 9.0.0.
--
-- @since 0.1.0.0
hgetexWith :: Expiry -> ByteString -> NonEmpty ByteString -> Command [Maybe ByteString]
hgetexWith expiry name fields =
  command "HGETEX" (key name : lifetime <> numbered fields) (forEach fields (Decode.nullable Decode.bytes))
  where
    lifetime = case expiry of
      NoExpiry -> [arg "PERSIST"]
      KeepExpiry -> []
      ExpireIn duration -> expireIn duration
      ExpireAt time -> expireAt time

-- | @HGETDEL key FIELDS n field …@: their values, in their order; they are deleted.
-- \(O(1)\) per field on the server, since Redis 8.0.0 and Valkey 9.1.0.
--
-- @since 0.1.0.0
hgetdel :: ByteString -> NonEmpty ByteString -> Command [Maybe ByteString]
hgetdel name fields =
  command "HGETDEL" (key name : numbered fields) (forEach fields (Decode.nullable Decode.bytes))

fieldsWithValues :: NonEmpty (ByteString, ByteString) -> [Argument]
fieldsWithValues = concatMap (\(one, new) -> [arg one, arg new])

-- | FIELDS, how many, and they.
numbered :: NonEmpty ByteString -> [Argument]
numbered fields = arg "FIELDS" : size fields : args fields

size :: NonEmpty a -> Argument
size = int . fromIntegral . length

-- | One answer for each field.
forEach :: NonEmpty ByteString -> Decoder a -> Decoder [a]
forEach fields = Decode.listOf (length fields)
