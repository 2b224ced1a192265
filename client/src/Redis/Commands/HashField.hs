-- | Fields of hashes that expire on their own.
--
-- > run client (Redis.hset "example:hashfields" (("user", "ada") :| [("token", "a1b2"), ("code", "1234")]))
-- > expired <- tryRun client (Redis.hexpire "example:hashfields" (minutes 30) ("token" :| ["mail"]))
--
-- Redis has these since 7.4, some since 8.0, Valkey since 9.0. Each names its fields, and
-- answers for each of them in their order. A field whose time is over is gone; with the
-- last one, the hash.
--
-- What the servers say: <https://valkey.io/commands/#hash>.
module Redis.Commands.HashField
  ( -- * When they expire
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

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty)
import Data.Time.Clock (UTCTime)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration, milliseconds)
import Redis.Internal.Command.Argument (unixMilliseconds, unixSeconds)
import Redis.Internal.Command.Expiry

-- | How to let fields expire.
--
-- @since 0.1.0.0
newtype HexpireOptions = HexpireOptions
  { -- | Which fields to change; 'Nothing' is all.
    hexpireCondition :: Maybe ExpireCondition
  }
  deriving stock (Eq, Show)

-- | All.
--
-- @since 0.1.0.0
hexpireDefaults :: HexpireOptions
hexpireDefaults = HexpireOptions {hexpireCondition = Nothing}

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

-- | @HEXPIRE key seconds FIELDS n field …@: how long fields shall live; what became of each, in
-- their order. The duration is rounded up to seconds. The server refuses one that is negative; none
-- at all deletes the field. \(O(1)\) per field on the server,
-- [since Redis 7.4.0](https://valkey.io/commands/hexpire/) and Valkey 9.0.0.
--
-- > hexpire "session" (minutes 30) ("token" :| [])
--
-- @since 0.1.0.0
hexpire :: ByteString -> Duration -> NonEmpty ByteString -> Command [HexpireResult]
hexpire = hexpireWith hexpireDefaults

-- | @HEXPIRE key seconds [NX|XX|GT|LT] FIELDS n field …@: as 'hexpire', for each field
-- of which the condition holds.
--
-- @since 0.1.0.0
hexpireWith :: HexpireOptions -> ByteString -> Duration -> NonEmpty ByteString -> Command [HexpireResult]
hexpireWith options name lifetime = expiring "HEXPIRE" name (wholeSeconds lifetime : hexpireArguments options)

-- | @HPEXPIRE key milliseconds FIELDS n field …@: as 'hexpire', to the millisecond.
-- <https://valkey.io/commands/hpexpire/>
--
-- @since 0.1.0.0
hpexpire :: ByteString -> Duration -> NonEmpty ByteString -> Command [HexpireResult]
hpexpire = hpexpireWith hexpireDefaults

-- | @HPEXPIRE key milliseconds [NX|XX|GT|LT] FIELDS n field …@: as 'hexpireWith', to the
-- millisecond.
--
-- @since 0.1.0.0
hpexpireWith :: HexpireOptions -> ByteString -> Duration -> NonEmpty ByteString -> Command [HexpireResult]
hpexpireWith options name lifetime = expiring "HPEXPIRE" name (wholeMilliseconds lifetime : hexpireArguments options)

-- | @HEXPIREAT key time FIELDS n field …@: until when fields shall live; what became of each, in
-- their order. The time is rounded up to seconds; one that is past deletes the field. \(O(1)\) per
-- field on the server, [since Redis 7.4.0](https://valkey.io/commands/hexpireat/) and Valkey 9.0.0.
--
-- @since 0.1.0.0
hexpireat :: ByteString -> UTCTime -> NonEmpty ByteString -> Command [HexpireResult]
hexpireat = hexpireatWith hexpireDefaults

-- | @HEXPIREAT key time [NX|XX|GT|LT] FIELDS n field …@: as 'hexpireat', for each field
-- of which the condition holds.
--
-- @since 0.1.0.0
hexpireatWith :: HexpireOptions -> ByteString -> UTCTime -> NonEmpty ByteString -> Command [HexpireResult]
hexpireatWith options name time = expiring "HEXPIREAT" name (arg (unixSeconds time) : hexpireArguments options)

-- | @HPEXPIREAT key time FIELDS n field …@: as 'hexpireat', to the millisecond.
-- <https://valkey.io/commands/hpexpireat/>
--
-- @since 0.1.0.0
hpexpireat :: ByteString -> UTCTime -> NonEmpty ByteString -> Command [HexpireResult]
hpexpireat = hpexpireatWith hexpireDefaults

-- | @HPEXPIREAT key time [NX|XX|GT|LT] FIELDS n field …@: as 'hexpireatWith', to the
-- millisecond.
--
-- @since 0.1.0.0
hpexpireatWith :: HexpireOptions -> ByteString -> UTCTime -> NonEmpty ByteString -> Command [HexpireResult]
hpexpireatWith options name time = expiring "HPEXPIREAT" name (arg (unixMilliseconds time) : hexpireArguments options)

hexpireArguments :: HexpireOptions -> [Argument]
hexpireArguments HexpireOptions {hexpireCondition} = expireConditionWord hexpireCondition

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

-- | @HPERSIST key FIELDS n field …@: takes the expiry away; what became of each field, in their
-- order. \(O(1)\) per field on the server,
-- [since Redis 7.4.0](https://valkey.io/commands/hpersist/) and Valkey 9.0.0.
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

-- | @HTTL key FIELDS n field …@: how much longer each lives, to the second, in their order.
-- \(O(1)\) per field on the server, [since Redis 7.4.0](https://valkey.io/commands/httl/) and
-- Valkey 9.0.0.
--
-- @since 0.1.0.0
httl :: ByteString -> NonEmpty ByteString -> Command [FieldExpiry Duration]
httl = expiryOf "HTTL" (fmap (milliseconds . (* 1000)) . Decode.integer)

-- | @HPTTL key FIELDS n field …@: as 'httl', to the millisecond.
-- <https://valkey.io/commands/hpttl/>
--
-- @since 0.1.0.0
hpttl :: ByteString -> NonEmpty ByteString -> Command [FieldExpiry Duration]
hpttl = expiryOf "HPTTL" (fmap milliseconds . Decode.integer)

-- | @HEXPIRETIME key FIELDS n field …@: until when each lives, to the second, in their order.
-- \(O(1)\) per field on the server, [since Redis 7.4.0](https://valkey.io/commands/hexpiretime/)
-- and Valkey 9.0.0.
--
-- @since 0.1.0.0
hexpiretime :: ByteString -> NonEmpty ByteString -> Command [FieldExpiry UTCTime]
hexpiretime = expiryOf "HEXPIRETIME" Decode.unixSeconds

-- | @HPEXPIRETIME key FIELDS n field …@: as 'hexpiretime', to the millisecond.
-- <https://valkey.io/commands/hpexpiretime/>
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

-- | @HSETEX key EX seconds FIELDS n field value …@: sets fields that live for so long. The server
-- refuses a negative duration. \(O(1)\) per field on the server,
-- [since Redis 8.0.0](https://valkey.io/commands/hsetex/) and Valkey 9.0.0.
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

-- | @HSETEX key [NX|XX] [FNX|FXX] [EX|PX|PXAT|KEEPTTL] FIELDS n field value …@: whether they were
-- set, which is all or none. \(O(1)\) per field on the server,
-- [since Redis 8.0.0](https://valkey.io/commands/hsetex/) and Valkey 9.0.0.
--
-- @since 0.1.0.0
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

-- | @HGETEX key FIELDS n field …@: their values, in their order; their expiry stays. \(O(1)\) per
-- field on the server, [since Redis 8.0.0](https://valkey.io/commands/hgetex/) and Valkey 9.0.0.
--
-- @since 0.1.0.0
hgetex :: ByteString -> NonEmpty ByteString -> Command [Maybe ByteString]
hgetex = hgetexWith hgetexDefaults

-- | What becomes of the expiry.
--
-- @since 0.1.0.0
newtype HgetexOptions = HgetexOptions
  { -- | PERSIST is 'NoExpiry'. One that is over deletes the fields.
    hgetexExpiry :: Expiry
  }
  deriving stock (Eq, Show)

-- | It stays.
--
-- @since 0.1.0.0
hgetexDefaults :: HgetexOptions
hgetexDefaults = HgetexOptions {hgetexExpiry = KeepExpiry}

-- | @HGETEX key [EX|PX|PXAT|PERSIST] FIELDS n field …@: their values, and a new expiry. \(O(1)\)
-- per field on the server, [since Redis 8.0.0](https://valkey.io/commands/hgetex/) and Valkey
-- 9.0.0.
--
-- > hgetexWith hgetexDefaults {hgetexExpiry = ExpireIn (minutes 30)} "session" ("token" :| [])
--
-- @since 0.1.0.0
hgetexWith :: HgetexOptions -> ByteString -> NonEmpty ByteString -> Command [Maybe ByteString]
hgetexWith HgetexOptions {hgetexExpiry} name fields =
  command "HGETEX" (key name : changedLifetime hgetexExpiry <> numbered fields) (forEach fields (Decode.nullable Decode.bytes))

-- | @HGETDEL key FIELDS n field …@: their values, in their order; they are deleted. \(O(1)\) per
-- field on the server, [since Redis 8.0.0](https://valkey.io/commands/hgetdel/) and Valkey 9.1.0.
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
