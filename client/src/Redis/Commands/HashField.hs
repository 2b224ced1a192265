-- | Fields of hashes that expire on their own.
--
-- > run client (Redis.hset "example:hashfields" (("user", "ada") :| [("token", "a1b2"), ("code", "1234")]))
-- > expired <- tryRun client (Redis.hexpire "example:hashfields" (minutes 30) ("token" :| ["mail"]))
--
-- Redis has these commands since 7.4, some since 8.0, Valkey since 9.0. All except 'hsetex' and
-- 'hsetexWith' give a result for each field, in the order of the fields. A field whose time is over
-- is gone; with the last field, the hash is gone, too.
--
-- The servers' page: <https://valkey.io/commands/#hash>.
module Redis.Commands.HashField
  ( -- * Expiry
    hexpire,
    hexpireWith,
    hpexpire,
    hpexpireWith,
    hexpireat,
    hexpireatWith,
    hpexpireat,
    hpexpireatWith,
    HexpireOptions (hexpireCondition),
    hexpireDefaults,
    ExpireCondition (..),
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
    Expiry (..),
    HsetexKey (..),
    HsetexFields (..),
    hgetex,
    hgetexWith,
    HgetexOptions (hgetexExpiry),
    hgetexDefaults,
    hgetdel,
  )
where

import Redis.Decode qualified as Decode
import Redis.Duration (milliseconds)
import Redis.Internal.Command.Common

-- | How to set the expiry of fields.
newtype HexpireOptions = HexpireOptions
  { -- | Which fields to change; 'Nothing' is all.
    hexpireCondition :: Maybe ExpireCondition
  }
  deriving stock (Eq, Show)

-- | Changes all fields.
hexpireDefaults :: HexpireOptions
hexpireDefaults = HexpireOptions {hexpireCondition = Nothing}

-- | The result of setting a field's expiry.
data HexpireResult
  = -- | There is no such field, or no hash.
    HexpireNoField
  | -- | The condition did not hold, and the field is as it was.
    HexpireUnchanged
  | -- | The field has the new expiry.
    HexpireSet
  | -- | The field is deleted: its time is over already.
    HexpireDeleted
  deriving stock (Eq, Show)

-- | @HEXPIRE key seconds FIELDS n field …@, @HPEXPIRE key milliseconds FIELDS n field …@: set how
-- long fields live; the result for each, in their order. The duration is rounded up to seconds or
-- milliseconds. The server refuses a negative one; zero deletes the field. \(O(1)\) per field,
-- since Redis 7.4.0 and Valkey 9.0.0 ([HEXPIRE](https://valkey.io/commands/hexpire/),
-- [HPEXPIRE](https://valkey.io/commands/hpexpire/)).
--
-- > hexpire "session" (minutes 30) ("token" :| [])
hexpire, hpexpire :: ByteString -> Duration -> NonEmpty ByteString -> Command [HexpireResult]
hexpire = hexpireWith hexpireDefaults
hpexpire = hpexpireWith hexpireDefaults

-- | @HEXPIRE key seconds [NX|XX|GT|LT] FIELDS n field …@, @HPEXPIRE …@: like 'hexpire' and
-- 'hpexpire', for each field that meets the condition.
hexpireWith, hpexpireWith :: HexpireOptions -> ByteString -> Duration -> NonEmpty ByteString -> Command [HexpireResult]
hexpireWith options name lifetime = expiring "HEXPIRE" name (wholeSeconds lifetime : expireConditionWord (hexpireCondition options))
hpexpireWith options name lifetime = expiring "HPEXPIRE" name (wholeMilliseconds lifetime : expireConditionWord (hexpireCondition options))

-- | @HEXPIREAT key time FIELDS n field …@, @HPEXPIREAT …@: set until when fields live; the result
-- for each, in their order. The time is rounded up to seconds or milliseconds; a time in the past
-- deletes the field. \(O(1)\) per field, since Redis 7.4.0 and Valkey 9.0.0
-- ([HEXPIREAT](https://valkey.io/commands/hexpireat/),
-- [HPEXPIREAT](https://valkey.io/commands/hpexpireat/)).
hexpireat, hpexpireat :: ByteString -> UTCTime -> NonEmpty ByteString -> Command [HexpireResult]
hexpireat = hexpireatWith hexpireDefaults
hpexpireat = hpexpireatWith hexpireDefaults

-- | @HEXPIREAT key time [NX|XX|GT|LT] FIELDS n field …@, @HPEXPIREAT …@: like 'hexpireat' and
-- 'hpexpireat', for each field that meets the condition.
hexpireatWith, hpexpireatWith :: HexpireOptions -> ByteString -> UTCTime -> NonEmpty ByteString -> Command [HexpireResult]
hexpireatWith options name time = expiring "HEXPIREAT" name (arg (unixSeconds time) : expireConditionWord (hexpireCondition options))
hpexpireatWith options name time = expiring "HPEXPIREAT" name (arg (unixMilliseconds time) : expireConditionWord (hexpireCondition options))

expiring :: Name -> ByteString -> [Argument] -> NonEmpty ByteString -> Command [HexpireResult]
expiring commandName name time fields = command commandName (key name : time <> numbered fields) (forEach fields outcome)
  where
    outcome =
      oneOf Decode.integer "-2, 0, 1 or 2" [(-2, HexpireNoField), (0, HexpireUnchanged), (1, HexpireSet), (2, HexpireDeleted)]

-- | The result of removing a field's expiry.
data HpersistResult
  = -- | There is no such field, or no hash.
    HpersistNoField
  | -- | The field had no expiry.
    HpersistUnchanged
  | -- | The field had an expiry, and has none now.
    HpersistRemoved
  deriving stock (Eq, Show)

-- | @HPERSIST key FIELDS n field …@: removes the expiry of fields; the result for each, in order.
-- \(O(1)\) per field, [since Redis 7.4.0](https://valkey.io/commands/hpersist/) and Valkey 9.0.0.
hpersist :: ByteString -> NonEmpty ByteString -> Command [HpersistResult]
hpersist name fields = command "HPERSIST" (key name : numbered fields) (forEach fields outcome)
  where
    outcome = oneOf Decode.integer "-2, -1 or 1" [(-2, HpersistNoField), (-1, HpersistUnchanged), (1, HpersistRemoved)]

-- | When a field expires: after a 'Duration', or at a 'UTCTime'.
data FieldExpiry time
  = -- | There is no such field, or no hash.
    NoSuchField
  | -- | The field has no expiry: it lives as long as the hash.
    FieldStays
  | -- | The field lives for this long, or until this time.
    FieldExpires time
  deriving stock (Eq, Show)

-- | @HTTL key FIELDS n field …@, @HPTTL …@: how much longer each field lives, to the second or the
-- millisecond, in their order. \(O(1)\) per field, since Redis 7.4.0 and Valkey 9.0.0
-- ([HTTL](https://valkey.io/commands/httl/), [HPTTL](https://valkey.io/commands/hpttl/)).
httl, hpttl :: ByteString -> NonEmpty ByteString -> Command [FieldExpiry Duration]
httl = expiryOf "HTTL" (fmap (milliseconds . (* 1000)) . Decode.integer)
hpttl = expiryOf "HPTTL" millisecondsReply

-- | @HEXPIRETIME key FIELDS n field …@, @HPEXPIRETIME …@: until when each field lives, to the
-- second or the millisecond, in their order. \(O(1)\) per field, since Redis 7.4.0 and Valkey 9.0.0
-- ([HEXPIRETIME](https://valkey.io/commands/hexpiretime/),
-- [HPEXPIRETIME](https://valkey.io/commands/hpexpiretime/)).
hexpiretime, hpexpiretime :: ByteString -> NonEmpty ByteString -> Command [FieldExpiry UTCTime]
hexpiretime = expiryOf "HEXPIRETIME" Decode.unixSeconds
hpexpiretime = expiryOf "HPEXPIRETIME" Decode.unixMilliseconds

expiryOf :: Name -> Decoder time -> ByteString -> NonEmpty ByteString -> Command [FieldExpiry time]
expiryOf commandName time name fields =
  command commandName (key name : numbered fields) (forEach fields (expiryReply NoSuchField FieldStays (fmap FieldExpires . time)))

-- | How to set fields with an expiry.
data HsetexOptions = HsetexOptions
  { -- | The condition on the hash; 'Nothing' is none. Only Valkey has this.
    hsetexKey :: Maybe HsetexKey,
    -- | The condition on the fields; 'Nothing' is none.
    hsetexFields :: Maybe HsetexFields,
    -- | How long the fields live. With 'KeepExpiry' a field keeps the expiry that it has.
    hsetexExpiry :: Expiry
  }
  deriving stock (Eq, Show)

-- | Without a condition, and without an expiry.
hsetexDefaults :: HsetexOptions
hsetexDefaults = HsetexOptions {hsetexKey = Nothing, hsetexFields = Nothing, hsetexExpiry = NoExpiry}

-- | A condition on the hash.
data HsetexKey
  = -- | NX: it is not there.
    OnlyNewHash
  | -- | XX: it is there.
    OnlyExistingHash
  deriving stock (Eq, Show)

-- | A condition on all the fields that the command sets.
data HsetexFields
  = -- | FNX: none is there.
    OnlyNewFields
  | -- | FXX: all are there.
    OnlyExistingFields
  deriving stock (Eq, Show)

-- | @HSETEX key EX seconds FIELDS n field value …@: sets fields that live for this long. The server
-- refuses a negative duration. \(O(1)\) per field,
-- [since Redis 8.0.0](https://valkey.io/commands/hsetex/) and Valkey 9.0.0.
--
-- > hsetex "session" (minutes 30) (("token", "…") :| [])
hsetex :: ByteString -> Duration -> NonEmpty (ByteString, ByteString) -> Command ()
hsetex name lifetime entries =
  command "HSETEX" (hsetexArguments hsetexDefaults {hsetexExpiry = ExpireIn lifetime} name entries) (oneOf Decode.boolean "1" [(True, ())])

-- | @HSETEX key [NX|XX] [FNX|FXX] [EX|PX|PXAT|KEEPTTL] FIELDS n field value …@: sets all of the
-- fields, or none; whether they were set. \(O(1)\) per field, since Redis 8.0.0 and Valkey 9.0.0.
hsetexWith :: HsetexOptions -> ByteString -> NonEmpty (ByteString, ByteString) -> Command Bool
hsetexWith options name entries = command "HSETEX" (hsetexArguments options name entries) Decode.boolean

hsetexArguments :: HsetexOptions -> ByteString -> NonEmpty (ByteString, ByteString) -> [Argument]
hsetexArguments HsetexOptions {hsetexKey, hsetexFields, hsetexExpiry} name entries =
  key name : ofKey <> ofFields <> newLifetime hsetexExpiry <> (arg "FIELDS" : size entries : fieldsWithValues entries)
  where
    ofKey = case hsetexKey of
      Nothing -> []
      Just OnlyNewHash -> [arg "NX"]
      Just OnlyExistingHash -> [arg "XX"]
    ofFields = case hsetexFields of
      Nothing -> []
      Just OnlyNewFields -> [arg "FNX"]
      Just OnlyExistingFields -> [arg "FXX"]

-- | @HGETEX key FIELDS n field …@: the values of fields, in their order; their expiry stays.
-- \(O(1)\) per field, [since Redis 8.0.0](https://valkey.io/commands/hgetex/) and Valkey 9.0.0.
hgetex :: ByteString -> NonEmpty ByteString -> Command [Maybe ByteString]
hgetex = hgetexWith hgetexDefaults

-- | What happens to the expiry of the fields.
newtype HgetexOptions = HgetexOptions
  { -- | 'NoExpiry' is sent as PERSIST. An expiry that is over already deletes the fields.
    hgetexExpiry :: Expiry
  }
  deriving stock (Eq, Show)

-- | The expiry stays.
hgetexDefaults :: HgetexOptions
hgetexDefaults = HgetexOptions {hgetexExpiry = KeepExpiry}

-- | @HGETEX key [EX|PX|PXAT|PERSIST] FIELDS n field …@: the values of fields, in their order, and a
-- new expiry for the fields. \(O(1)\) per field, since Redis 8.0.0 and Valkey 9.0.0.
--
-- > hgetexWith hgetexDefaults {hgetexExpiry = ExpireIn (minutes 30)} "session" ("token" :| [])
hgetexWith :: HgetexOptions -> ByteString -> NonEmpty ByteString -> Command [Maybe ByteString]
hgetexWith HgetexOptions {hgetexExpiry} name fields =
  command "HGETEX" (key name : changedLifetime hgetexExpiry <> numbered fields) (forEach fields (Decode.nullable Decode.bytes))

-- | @HGETDEL key FIELDS n field …@: deletes fields; their values, in their order. \(O(1)\) per
-- field, [since Redis 8.0.0](https://valkey.io/commands/hgetdel/) and Valkey 9.1.0.
hgetdel :: ByteString -> NonEmpty ByteString -> Command [Maybe ByteString]
hgetdel name fields =
  command "HGETDEL" (key name : numbered fields) (forEach fields (Decode.nullable Decode.bytes))

-- | The word FIELDS, the number of fields, and the fields.
numbered :: NonEmpty ByteString -> [Argument]
numbered fields = arg "FIELDS" : size fields : args fields

size :: NonEmpty a -> Argument
size = int . fromIntegral . length

-- | A list with one result for each field.
forEach :: NonEmpty ByteString -> Decoder a -> Decoder [a]
forEach fields = Decode.listOf (length fields)
