-- | Strings: values of bytes, and counters; one key at a time or several at once.
--
-- > run client (Redis.set "example:strings" "hello")
-- > let options = Redis.setDefaults {Redis.setCondition = Just Redis.OnlyIfAbsent, Redis.setExpiry = Redis.ExpireIn (seconds 30)}
-- > run client (Redis.setWith options "example:strings:lock" "me")
--
-- The servers' pages: <https://valkey.io/commands/#string>,
-- <https://redis.io/docs/latest/commands/?group=string>.
module Redis.Commands.String
  ( -- * One value
    get,
    set,
    setWith,
    setGet,
    setGetWith,
    SetOptions (setCondition, setExpiry),
    setDefaults,
    SetCondition (..),
    Expiry (..),
    setnx,
    setex,
    psetex,
    getset,
    getdel,
    getex,
    getexWith,
    GetexOptions (getexExpiry),
    getexDefaults,
    delifeq,
    delex,
    DelexCondition (..),
    digest,

    -- * Parts of a value
    append,
    strlen,
    getrange,
    substr,
    setrange,

    -- * Counters
    incr,
    incrby,
    incrbyfloat,
    increx,
    increxWith,
    increxByfloat,
    increxByfloatWith,
    IncrexOptions (increxLbound, increxUbound, increxSaturate, increxExpiry, increxEnx),
    increxDefaults,
    IncrexResult (..),
    decr,
    decrby,

    -- * Several values
    mget,
    mset,
    msetnx,
    msetex,
    msetexWith,
    MsetexOptions (msetexCondition, msetexExpiry),
    msetexDefaults,
    MsetexCondition (..),

    -- * The longest common subsequence
    lcs,
    lcsLen,
    lcsIdx,
    lcsIdxWith,
    LcsOptions (lcsMinmatchlen),
    lcsDefaults,
    LcsMatches (..),
    LcsMatch (..),
    ByteRange (..),
  )
where

import Control.Monad (void)
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | @GET key@: the value, or 'Nothing' if the key does not exist. \(O(1)\),
-- [since 1.0.0](https://valkey.io/commands/get/).
get :: ByteString -> Command (Maybe ByteString)
get name = command "GET" [key name] (Decode.nullable Decode.bytes)

-- | @SET key value@: sets the value, whatever the key held before, and removes an expiry. \(O(1)\),
-- [since 1.0.0](https://valkey.io/commands/set/).
set :: ByteString -> ByteString -> Command ()
set name new = command "SET" [key name, arg new] Decode.okay

-- | The options of 'setWith' and 'setGetWith': change the fields of 'setDefaults'.
--
-- > setWith setDefaults {setExpiry = ExpireIn (seconds 300)} "key" "value"
data SetOptions = SetOptions
  { -- | The condition under which the value is set; 'Nothing' means always.
    setCondition :: Maybe SetCondition,
    -- | How long the value lives.
    setExpiry :: Expiry
  }
  deriving stock (Eq, Show)

-- | No condition and no expiry, as with 'set'.
setDefaults :: SetOptions
setDefaults = SetOptions {setCondition = Nothing, setExpiry = NoExpiry}

-- | The condition under which SET sets the value.
data SetCondition
  = -- | NX
    OnlyIfAbsent
  | -- | XX
    OnlyIfPresent
  | -- | IFEQ: only if the value is this one (Valkey since 8.1, Redis since 8.4).
    OnlyIfEqual ByteString
  | -- | IFNE: only if the key does not exist or has another value (Redis since 8.4, Valkey since 9.2).
    OnlyIfNotEqual ByteString
  | -- | IFDEQ: only if the value has this digest (Redis since 8.4).
    OnlyIfDigest ByteString
  | -- | IFDNE: only if the key does not exist or its value has another digest (Redis since 8.4).
    OnlyIfNotDigest ByteString
  deriving stock (Eq, Show)

-- | @SET key value [NX|XX|IFEQ v|…] [EX|PX|PXAT|KEEPTTL]@: like 'set', with options; returns
-- whether the value was set. \(O(1)\), [since 2.6.12](https://valkey.io/commands/set/).
setWith :: SetOptions -> ByteString -> ByteString -> Command Bool
setWith options name new =
  command "SET" (key name : arg new : setArguments options) (Decode.present Decode.okay)

-- | @SET key value GET@: sets the value; returns the value before, if there was one. \(O(1)\),
-- [since 6.2.0](https://valkey.io/commands/set/).
setGet :: ByteString -> ByteString -> Command (Maybe ByteString)
setGet = setGetWith setDefaults

-- | @SET key value … GET@: like 'setGet', with options. The result is the old value. It tells you whether
-- the new one was set only if you can infer it: with NX, 'Nothing' means that it was.
-- [Since 6.2.0](https://valkey.io/commands/set/); together with NX since 7.0.0.
setGetWith :: SetOptions -> ByteString -> ByteString -> Command (Maybe ByteString)
setGetWith options name new =
  command "SET" (key name : arg new : setArguments options <> [arg "GET"]) (Decode.nullable Decode.bytes)

setArguments :: SetOptions -> [Argument]
setArguments SetOptions {setCondition, setExpiry} = maybe [] condition setCondition <> newLifetime setExpiry
  where
    condition = \case
      OnlyIfAbsent -> [arg "NX"]
      OnlyIfPresent -> [arg "XX"]
      OnlyIfEqual old -> [arg "IFEQ", arg old]
      OnlyIfNotEqual old -> [arg "IFNE", arg old]
      OnlyIfDigest old -> [arg "IFDEQ", arg old]
      OnlyIfNotDigest old -> [arg "IFDNE", arg old]

-- | @SETNX key value@: sets the value only if the key does not exist; returns whether it was set.
-- \(O(1)\), [since 1.0.0](https://valkey.io/commands/setnx/).
setnx :: ByteString -> ByteString -> Command Bool
setnx name new = command "SETNX" [key name, arg new] Decode.boolean

-- | @SETEX key seconds value@, @PSETEX key milliseconds value@: set a value that expires after the
-- given time, rounded up to seconds or milliseconds. The server refuses a time that is not
-- positive. \(O(1)\), [since 2.0.0](https://valkey.io/commands/setex/), PSETEX
-- [since 2.6.0](https://valkey.io/commands/psetex/).
--
-- > setex "session" (seconds 1800) "…"
setex, psetex :: ByteString -> Duration -> ByteString -> Command ()
setex name lifetime new = command "SETEX" [key name, wholeSeconds lifetime, arg new] Decode.okay
psetex name lifetime new = command "PSETEX" [key name, wholeMilliseconds lifetime, arg new] Decode.okay

-- | @GETSET key value@: sets the value; returns the value before, if there was one.
-- [Since 6.2.0](https://valkey.io/commands/getset/) 'setGet' does the same. \(O(1)\), since 1.0.0.
getset :: ByteString -> ByteString -> Command (Maybe ByteString)
getset name new = command "GETSET" [key name, arg new] (Decode.nullable Decode.bytes)

-- | @GETDEL key@: deletes the key; returns its value, if it existed. \(O(1)\),
-- [since 6.2.0](https://valkey.io/commands/getdel/).
getdel :: ByteString -> Command (Maybe ByteString)
getdel name = command "GETDEL" [key name] (Decode.nullable Decode.bytes)

-- | @GETEX key@: the value; its expiry stays as it is. \(O(1)\),
-- [since 6.2.0](https://valkey.io/commands/getex/).
getex :: ByteString -> Command (Maybe ByteString)
getex = getexWith getexDefaults

-- | The options of 'getexWith'.
newtype GetexOptions = GetexOptions
  { -- | The new expiry. 'NoExpiry' sends PERSIST, which removes it.
    getexExpiry :: Expiry
  }
  deriving stock (Eq, Show)

-- | The expiry stays as it is.
getexDefaults :: GetexOptions
getexDefaults = GetexOptions {getexExpiry = KeepExpiry}

-- | @GETEX key [EX|PX|PXAT|PERSIST]@: the value; also changes its expiry. \(O(1)\), since 6.2.0.
--
-- > getexWith getexDefaults {getexExpiry = ExpireIn (seconds 1800)} "session"
getexWith :: GetexOptions -> ByteString -> Command (Maybe ByteString)
getexWith GetexOptions {getexExpiry} name = command "GETEX" (key name : changedLifetime getexExpiry) (Decode.nullable Decode.bytes)

-- | @DELIFEQ key value@: deletes the key only if it holds this value; returns whether it did; for
-- releasing a lock. \(O(1)\), Valkey [since 9.0.0](https://valkey.io/commands/delifeq/).
delifeq :: ByteString -> ByteString -> Command Bool
delifeq name old = command "DELIFEQ" [key name, arg old] Decode.boolean

-- | The condition under which DELEX deletes a key that exists.
data DelexCondition
  = -- | IFEQ: it holds this value.
    DelexIfEqual ByteString
  | -- | IFNE: it holds another value.
    DelexIfNotEqual ByteString
  | -- | IFDEQ: its value has this 'digest'.
    DelexIfDigest ByteString
  | -- | IFDNE: its value has another 'digest'.
    DelexIfNotDigest ByteString
  deriving stock (Eq, Show)

-- | @DELEX key IFEQ|IFNE|IFDEQ|IFDNE …@: deletes the key only if it exists and its value, a string,
-- fulfils the condition; returns whether it was deleted. \(O(1)\); with a digest \(O(n)\) in the
-- length of the value. [Since Redis 8.4.0](https://redis.io/docs/latest/commands/delex/); Valkey
-- has 'delifeq'.
delex :: ByteString -> DelexCondition -> Command Bool
delex name condition = command "DELEX" (key name : words') Decode.boolean
  where
    words' = case condition of
      DelexIfEqual old -> [arg "IFEQ", arg old]
      DelexIfNotEqual old -> [arg "IFNE", arg old]
      DelexIfDigest old -> [arg "IFDEQ", arg old]
      DelexIfNotDigest old -> [arg "IFDNE", arg old]

-- | @DIGEST key@: the hash of the value, 16 hexadecimal digits (XXH3), for conditions such as
-- 'OnlyIfDigest'; 'Nothing' if the key does not exist. \(O(n)\) in the length of the value,
-- [since Redis 8.4.0](https://redis.io/docs/latest/commands/digest/); Valkey lacks it.
digest :: ByteString -> Command (Maybe ByteString)
digest name = command "DIGEST" [key name] (Decode.nullable Decode.bytes)

-- | @APPEND key value@: appends to the value; returns the new length in bytes. \(O(1)\) amortised,
-- [since 2.0.0](https://valkey.io/commands/append/).
append :: ByteString -> ByteString -> Command Int64
append name suffix = command "APPEND" [key name, arg suffix] Decode.integer

-- | @STRLEN key@: the length of the value in bytes; 0 if the key does not exist. \(O(1)\),
-- [since 2.2.0](https://valkey.io/commands/strlen/).
strlen :: ByteString -> Command Int64
strlen name = command "STRLEN" [key name] Decode.integer

-- | @GETRANGE key start end@: the bytes from start to end, both included; a negative index counts
-- from the end. \(O(n)\) in the length of the reply,
-- [since 2.4.0](https://valkey.io/commands/getrange/), and since 1.0.0 by its old name,
-- [SUBSTR](https://valkey.io/commands/substr/).
getrange, substr :: ByteString -> Int64 -> Int64 -> Command ByteString
getrange name start end = command "GETRANGE" [key name, int start, int end] Decode.bytes
substr name start end = command "SUBSTR" [key name, int start, int end] Decode.bytes

-- | @SETRANGE key offset value@: overwrites the value from an offset on, and fills a gap with zero
-- bytes; returns the new length. \(O(n)\) in the length of the value,
-- [since 2.2.0](https://valkey.io/commands/setrange/).
setrange :: ByteString -> Int64 -> ByteString -> Command Int64
setrange name offset part =
  command "SETRANGE" [key name, int offset, arg part] Decode.integer

-- | @INCR key@, @DECR key@: add or subtract one; return the new number. A missing key counts as 0.
-- \(O(1)\), since 1.0.0 ([INCR](https://valkey.io/commands/incr/),
-- [DECR](https://valkey.io/commands/decr/)).
incr, decr :: ByteString -> Command Int64
incr name = command "INCR" [key name] Decode.integer
decr name = command "DECR" [key name] Decode.integer

-- | @INCRBY key increment@, @DECRBY key decrement@: add the increment, or subtract the decrement;
-- return the new number. \(O(1)\), since 1.0.0 ([INCRBY](https://valkey.io/commands/incrby/),
-- [DECRBY](https://valkey.io/commands/decrby/)).
incrby, decrby :: ByteString -> Int64 -> Command Int64
incrby name by = command "INCRBY" [key name, int by] Decode.integer
decrby name by = command "DECRBY" [key name, int by] Decode.integer

-- | @INCRBYFLOAT key increment@: adds the increment; returns the new number. The server refuses an
-- infinity; a NaN is refused before the command is sent. \(O(1)\),
-- [since 2.6.0](https://valkey.io/commands/incrbyfloat/).
incrbyfloat :: ByteString -> Double -> Command Double
incrbyfloat name by =
  command "INCRBYFLOAT" [key name, double by] Decode.double

-- | @INCREX key BYINT increment@: adds the increment. A missing key counts as 0. \(O(1)\),
-- [since Redis 8.8.0](https://redis.io/docs/latest/commands/increx/); Valkey lacks it.
increx :: ByteString -> Int64 -> Command (IncrexResult Int64)
increx = increxWith increxDefaults

-- | The options of 'increxWith' and 'increxByfloatWith'.
data IncrexOptions number = IncrexOptions
  { -- | LBOUND: the lowest value; 'Nothing' is the lowest number that there is.
    increxLbound :: Maybe number,
    -- | UBOUND: the highest value; 'Nothing' is the highest number that there is.
    increxUbound :: Maybe number,
    -- | SATURATE: a value beyond a bound becomes the bound. Without it nothing is changed.
    increxSaturate :: Bool,
    -- | The new expiry. 'NoExpiry' sends PERSIST, which removes it.
    increxExpiry :: Expiry,
    -- | ENX: the expiry is set only if there is none. Only together with 'ExpireIn' or 'ExpireAt'.
    increxEnx :: Bool
  }
  deriving stock (Eq, Show)

-- | No bounds; the expiry stays as it is.
increxDefaults :: IncrexOptions number
increxDefaults =
  IncrexOptions
    { increxLbound = Nothing,
      increxUbound = Nothing,
      increxSaturate = False,
      increxExpiry = KeepExpiry,
      increxEnx = False
    }

-- | What INCREX has done.
data IncrexResult number = IncrexResult
  { -- | The value now.
    increxResultValue :: number,
    -- | What was added: 0 if nothing was changed because of a bound.
    increxResultAdded :: number
  }
  deriving stock (Eq, Show)

-- | @INCREX key BYINT increment [LBOUND n] [UBOUND n] [SATURATE] [EX|PX|PXAT|PERSIST] [ENX]@: like
-- 'increx', with options: a counter with bounds, which may begin to live when it is created.
--
-- > let options = increxDefaults {increxUbound = Just 100, increxExpiry = ExpireIn (seconds 60), increxEnx = True}
-- > increxWith options "requests:ada" 1
increxWith :: IncrexOptions Int64 -> ByteString -> Int64 -> Command (IncrexResult Int64)
increxWith options name by =
  command "INCREX" (key name : arg "BYINT" : int by : increxArguments int options) (increxResult Decode.integer)

-- | @INCREX key BYFLOAT increment@: like 'increx', for numbers with a fraction. A NaN is refused before
-- the command is sent. [Since Redis 8.8.0](https://redis.io/docs/latest/commands/increx/).
increxByfloat :: ByteString -> Double -> Command (IncrexResult Double)
increxByfloat = increxByfloatWith increxDefaults

-- | @INCREX key BYFLOAT increment [LBOUND n] [UBOUND n] [SATURATE] [EX|PX|PXAT|PERSIST] [ENX]@: like
-- 'increxByfloat', with options.
increxByfloatWith :: IncrexOptions Double -> ByteString -> Double -> Command (IncrexResult Double)
increxByfloatWith options name by =
  command "INCREX" (key name : arg "BYFLOAT" : double by : increxArguments double options) (increxResult Decode.double)

increxArguments :: (number -> Argument) -> IncrexOptions number -> [Argument]
increxArguments rendered IncrexOptions {increxLbound, increxUbound, increxSaturate, increxExpiry, increxEnx} =
  option "LBOUND" rendered increxLbound
    <> option "UBOUND" rendered increxUbound
    <> flag "SATURATE" increxSaturate
    <> changedLifetime increxExpiry
    <> flag "ENX" increxEnx

increxResult :: Decoder number -> Decoder (IncrexResult number)
increxResult number = fmap (uncurry IncrexResult) . Decode.pair number number

-- | @MGET key …@: the values, in the order of the keys. \(O(n)\),
-- [since 1.0.0](https://valkey.io/commands/mget/). If the keys are in several slots, one MGET is
-- sent per slot, and these run at different times.
mget :: NonEmpty ByteString -> Command [Maybe ByteString]
mget names = command "MGET" (keys names) (Decode.listOf (length names) (Decode.nullable Decode.bytes))

-- | @MSET key value …@: sets all values. \(O(n)\), [since 1.0.1](https://valkey.io/commands/mset/).
-- If the keys are in several slots, one MSET is sent per slot, and these run at different times:
-- the command is then not atomic.
mset :: NonEmpty (ByteString, ByteString) -> Command ()
mset entries = command "MSET" (keysWithValues entries) Decode.okay

-- | @MSETNX key value …@: sets all values or, if one of the keys exists, none; returns whether they
-- were set. In a cluster the keys must share a slot. \(O(n)\),
-- [since 1.0.1](https://valkey.io/commands/msetnx/).
msetnx :: NonEmpty (ByteString, ByteString) -> Command Bool
msetnx entries = command "MSETNX" (keysWithValues entries) Decode.boolean

keysWithValues :: NonEmpty (ByteString, ByteString) -> [Argument]
keysWithValues = concatMap (\(name, new) -> [key name, arg new])

-- | @MSETEX n key value …@: sets all values. Unlike with 'mset', in a cluster the keys must share a
-- slot. \(O(n)\), Valkey [since 9.1.0](https://valkey.io/commands/msetex/), Redis since 8.4.0.
msetex :: NonEmpty (ByteString, ByteString) -> Command ()
msetex = void . msetexWith msetexDefaults

-- | The options of 'msetexWith'.
data MsetexOptions = MsetexOptions
  { -- | The condition under which the values are set; 'Nothing' means always.
    msetexCondition :: Maybe MsetexCondition,
    -- | How long the values live.
    msetexExpiry :: Expiry
  }
  deriving stock (Eq, Show)

-- | No condition and no expiry.
msetexDefaults :: MsetexOptions
msetexDefaults = MsetexOptions {msetexCondition = Nothing, msetexExpiry = NoExpiry}

-- | The condition under which MSETEX sets the values.
data MsetexCondition
  = -- | NX
    OnlyIfAllAbsent
  | -- | XX
    OnlyIfAllPresent
  deriving stock (Eq, Show)

-- | @MSETEX n key value … [NX|XX] [EX|PX|PXAT|KEEPTTL]@: like 'msetex', with options: sets all
-- values or none; returns whether they were set.
msetexWith :: MsetexOptions -> NonEmpty (ByteString, ByteString) -> Command Bool
msetexWith MsetexOptions {msetexCondition, msetexExpiry} entries =
  command "MSETEX" (int (fromIntegral (length entries)) : keysWithValues entries <> condition <> newLifetime msetexExpiry) Decode.boolean
  where
    condition = case msetexCondition of
      Nothing -> []
      Just OnlyIfAllAbsent -> [arg "NX"]
      Just OnlyIfAllPresent -> [arg "XX"]

-- | @LCS key key@: the longest common subsequence of both values, which need not be contiguous; a
-- missing key counts as empty. In a cluster both keys must share a slot. \(O(n m)\) in the lengths
-- of both, [since 7.0.0](https://valkey.io/commands/lcs/).
lcs :: ByteString -> ByteString -> Command ByteString
lcs one other = command "LCS" [key one, key other] Decode.bytes

-- | @LCS key key LEN@: like 'lcs', but returns only the length.
lcsLen :: ByteString -> ByteString -> Command Int64
lcsLen one other = command "LCS" [key one, key other, arg "LEN"] Decode.integer

-- | @LCS key key IDX@: like 'lcs', but returns the positions of the matching pieces.
lcsIdx :: ByteString -> ByteString -> Command LcsMatches
lcsIdx = lcsIdxWith lcsDefaults

-- | The options of 'lcsIdxWith'.
newtype LcsOptions = LcsOptions
  { -- | MINMATCHLEN: only pieces of at least this many bytes.
    lcsMinmatchlen :: Int64
  }
  deriving stock (Eq, Show)

-- | All pieces.
lcsDefaults :: LcsOptions
lcsDefaults = LcsOptions {lcsMinmatchlen = 0}

-- | The longest common subsequence of two values, as positions.
data LcsMatches = LcsMatches
  { -- | The pieces, from the last to the first.
    lcsMatches :: [LcsMatch],
    -- | The length of the whole in bytes, including pieces that are too short to be listed.
    lcsLength :: Int64
  }
  deriving stock (Eq, Show)

-- | A matching piece. Its ranges tell its length, so WITHMATCHLEN would add nothing.
data LcsMatch = LcsMatch
  { -- | Its position in the first value.
    lcsInFirst :: ByteRange,
    -- | Its position in the second value.
    lcsInSecond :: ByteRange
  }
  deriving stock (Eq, Show)

-- | From byte to byte, counted from 0, both included.
data ByteRange = ByteRange
  { rangeFrom :: Int64,
    rangeTo :: Int64
  }
  deriving stock (Eq, Show)

-- | @LCS key key IDX [MINMATCHLEN n]@: like 'lcsIdx', but can leave out short pieces.
lcsIdxWith :: LcsOptions -> ByteString -> ByteString -> Command LcsMatches
lcsIdxWith LcsOptions {lcsMinmatchlen} one other =
  command "LCS" ([key one, key other, arg "IDX"] <> shortest) . recordOf $
    LcsMatches <$> field "matches" (Decode.list match) <*> field "len" Decode.integer
  where
    shortest = concat [[arg "MINMATCHLEN", int lcsMinmatchlen] | lcsMinmatchlen /= 0]
    match reply = uncurry LcsMatch <$> Decode.pair range range reply
    range reply = uncurry ByteRange <$> Decode.pair Decode.integer Decode.integer reply
