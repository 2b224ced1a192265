{-# LANGUAGE MagicHash #-}

-- | Strings: values of bytes, counters, and several of either at once.
module Redis.Commands.String
  ( -- * One value
    get,
    set,
    setWith,
    setGet,
    SetOptions (..),
    setDefaults,
    SetCondition (..),
    SetLifetime (..),
    Expiry (..),
    setnx,
    getset,
    getdel,
    getex,
    append,
    strlen,
    getrange,
    setrange,

    -- * Counters
    incr,
    incrby,
    incrbyfloat,
    decr,
    decrby,

    -- * Several values
    mget,
    mset,
    msetnx,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict qualified as Map
import Redis.Command (Command (..), readFacts, writeFacts)
import Redis.Decode qualified as Decode
import Redis.Internal.Commands.Build
import Redis.Internal.Protocol.Encode
import Redis.Value (Value (Null))

-- | @GET key@: the value, or 'Nothing' if there is none. \(O(1)\) on the
-- server, since 1.0.0.
--
-- @since 0.1.0.0
get :: ByteString -> Command (Maybe ByteString)
get key = keyRead "GET" key (requestLiteral1 13 "*2\r\n$3\r\nGET\r\n"# key) (Decode.nullable Decode.bytes)

-- | @SET key value@: whatever the key held, it now holds this, without an
-- expiry. \(O(1)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
set :: ByteString -> ByteString -> Command ()
set key value = keyWrite "SET" key (requestLiteral2 13 "*3\r\n$3\r\nSET\r\n"# key value) Decode.okay

-- | How to set.
--
-- @since 0.1.0.0
data SetOptions = SetOptions
  { -- | When to set; 'Nothing' in any case.
    setOptionCondition :: Maybe SetCondition,
    -- | How long the value shall live.
    setOptionLifetime :: SetLifetime
  }
  deriving stock (Eq, Show)

-- | In any case, and without an expiry: what 'set' does.
--
-- @since 0.1.0.0
setDefaults :: SetOptions
setDefaults = SetOptions {setOptionCondition = Nothing, setOptionLifetime = NoExpiry}

-- | When to set.
--
-- @since 0.1.0.0
data SetCondition
  = -- | NX
    OnlyIfAbsent
  | -- | XX
    OnlyIfPresent
  deriving stock (Eq, Show)

-- | How long a value that is set shall live.
--
-- @since 0.1.0.0
data SetLifetime
  = -- | For ever, whatever the value it replaces had.
    NoExpiry
  | -- | KEEPTTL (since 6.0.0): as long as the value it replaces would have.
    KeepExpiry
  | -- | As long as the expiry says.
    ExpiresAfter Expiry
  deriving stock (Eq, Show)

-- | When something expires; absolute times count from 1970 (since 6.2.0).
--
-- @since 0.1.0.0
data Expiry
  = -- | EX
    InSeconds Int64
  | -- | PX
    InMilliseconds Int64
  | -- | EXAT
    AtSecond Int64
  | -- | PXAT
    AtMillisecond Int64
  deriving stock (Eq, Show)

-- | @SET key value [NX|XX] [EX|PX|EXAT|PXAT|KEEPTTL]@: whether it was set.
-- \(O(1)\) on the server, since 2.6.12.
--
-- @since 0.1.0.0
setWith :: SetOptions -> ByteString -> ByteString -> Command Bool
setWith options key value =
  keyWrite "SET" key (request ("SET" : key : value : setArguments options)) $ \case
    Null -> Right False
    reply -> True <$ Decode.okay reply

-- | @SET key value … GET@: the value that was there before, if any. With a
-- condition this does not tell whether the new one was set unless that can be
-- concluded from it. \(O(1)\) on the server, since 6.2.0; together with NX
-- since 7.0.0.
--
-- @since 0.1.0.0
setGet :: SetOptions -> ByteString -> ByteString -> Command (Maybe ByteString)
setGet options key value =
  keyWrite
    "SET"
    key
    (request ("SET" : key : value : setArguments options <> ["GET"]))
    (Decode.nullable Decode.bytes)

setArguments :: SetOptions -> [ByteString]
setArguments SetOptions {setOptionCondition, setOptionLifetime} =
  condition <> lifetime
  where
    condition = case setOptionCondition of
      Nothing -> []
      Just OnlyIfAbsent -> ["NX"]
      Just OnlyIfPresent -> ["XX"]
    lifetime = case setOptionLifetime of
      NoExpiry -> []
      KeepExpiry -> ["KEEPTTL"]
      ExpiresAfter expiry -> expiryArguments expiry

expiryArguments :: Expiry -> [ByteString]
expiryArguments = \case
  InSeconds time -> ["EX", int time]
  InMilliseconds time -> ["PX", int time]
  AtSecond time -> ["EXAT", int time]
  AtMillisecond time -> ["PXAT", int time]

-- | @SETNX key value@: whether it was set, which is if there was no value.
-- \(O(1)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
setnx :: ByteString -> ByteString -> Command Bool
setnx key value = keyWrite "SETNX" key (requestLiteral2 15 "*3\r\n$5\r\nSETNX\r\n"# key value) Decode.boolean

-- | @GETSET key value@: sets, and answers with what was there before.
-- \(O(1)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
getset :: ByteString -> ByteString -> Command (Maybe ByteString)
getset key value =
  keyWrite "GETSET" key (requestLiteral2 16 "*3\r\n$6\r\nGETSET\r\n"# key value) (Decode.nullable Decode.bytes)

-- | @GETDEL key@: the value, which is deleted. \(O(1)\) on the server, since
-- 6.2.0.
--
-- @since 0.1.0.0
getdel :: ByteString -> Command (Maybe ByteString)
getdel key = keyWrite "GETDEL" key (requestLiteral1 16 "*2\r\n$6\r\nGETDEL\r\n"# key) (Decode.nullable Decode.bytes)

-- | @GETEX key [EX|PX|EXAT|PXAT|PERSIST]@: the value, and a new expiry;
-- 'NoExpiry' takes the one it has away, 'KeepExpiry' leaves it. \(O(1)\) on the
-- server, since 6.2.0.
--
-- @since 0.1.0.0
getex :: SetLifetime -> ByteString -> Command (Maybe ByteString)
getex lifetime key =
  keyWrite "GETEX" key (request ("GETEX" : key : arguments)) (Decode.nullable Decode.bytes)
  where
    arguments = case lifetime of
      NoExpiry -> ["PERSIST"]
      KeepExpiry -> []
      ExpiresAfter expiry -> expiryArguments expiry

-- | @APPEND key value@: the length after it. \(O(1)\) amortised on the server,
-- since 2.0.0.
--
-- @since 0.1.0.0
append :: ByteString -> ByteString -> Command Int64
append key value = keyWrite "APPEND" key (requestLiteral2 16 "*3\r\n$6\r\nAPPEND\r\n"# key value) Decode.integer

-- | @STRLEN key@: the length of the value, 0 without one. \(O(1)\) on the
-- server, since 2.2.0.
--
-- @since 0.1.0.0
strlen :: ByteString -> Command Int64
strlen key = keyRead "STRLEN" key (requestLiteral1 16 "*2\r\n$6\r\nSTRLEN\r\n"# key) Decode.integer

-- | @GETRANGE key start end@: from byte to byte, both included, negative from
-- the end. \(O(n)\) in the length of the answer on the server, since 2.4.0.
--
-- @since 0.1.0.0
getrange :: ByteString -> Int64 -> Int64 -> Command ByteString
getrange key start end =
  keyRead "GETRANGE" key (requestLiteral3 18 "*4\r\n$8\r\nGETRANGE\r\n"# key (int start) (int end)) Decode.bytes

-- | @SETRANGE key offset value@: overwrites from an offset, zeros filling the
-- gap; the length after it. \(O(n)\) in the length of the value on the server,
-- since 2.2.0.
--
-- @since 0.1.0.0
setrange :: ByteString -> Int64 -> ByteString -> Command Int64
setrange key offset value =
  keyWrite "SETRANGE" key (requestLiteral3 18 "*4\r\n$8\r\nSETRANGE\r\n"# key (int offset) value) Decode.integer

-- | @INCR key@: the number after it; a missing key counts as 0. \(O(1)\) on the
-- server, since 1.0.0.
--
-- @since 0.1.0.0
incr :: ByteString -> Command Int64
incr key = keyWrite "INCR" key (requestLiteral1 14 "*2\r\n$4\r\nINCR\r\n"# key) Decode.integer

-- | @INCRBY key increment@: the number after it. \(O(1)\) on the server, since
-- 1.0.0.
--
-- @since 0.1.0.0
incrby :: ByteString -> Int64 -> Command Int64
incrby key by = keyWrite "INCRBY" key (requestLiteral2 16 "*3\r\n$6\r\nINCRBY\r\n"# key (int by)) Decode.integer

-- | @INCRBYFLOAT key increment@: the number after it. Neither an infinity nor
-- a NaN is taken by the server. \(O(1)\) on the server, since 2.6.0.
--
-- @since 0.1.0.0
incrbyfloat :: ByteString -> Double -> Command Double
incrbyfloat key by =
  keyWrite
    "INCRBYFLOAT"
    key
    (requestLiteral2 22 "*3\r\n$11\r\nINCRBYFLOAT\r\n"# key (Char8.pack (show by)))
    Decode.double

-- | @DECR key@: the number after it. \(O(1)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
decr :: ByteString -> Command Int64
decr key = keyWrite "DECR" key (requestLiteral1 14 "*2\r\n$4\r\nDECR\r\n"# key) Decode.integer

-- | @DECRBY key decrement@: the number after it. \(O(1)\) on the server, since
-- 1.0.0.
--
-- @since 0.1.0.0
decrby :: ByteString -> Int64 -> Command Int64
decrby key by = keyWrite "DECRBY" key (requestLiteral2 16 "*3\r\n$6\r\nDECRBY\r\n"# key (int by)) Decode.integer

-- | @MGET key …@: the values in the order of the keys. \(O(n)\) on the server,
-- since 1.0.0. Keys of several slots make one MGET per slot, run at different
-- times.
--
-- @since 0.1.0.0
mget :: NonEmpty ByteString -> Command [Maybe ByteString]
mget keys =
  Command
    { commandName = "MGET",
      commandRequest = request ("MGET" : NonEmpty.toList keys),
      commandRoute = splitBy id mget inOrder keys,
      commandFacts = readFacts,
      commandDecode = Decode.listOf (length keys) (Decode.nullable Decode.bytes)
    }
  where
    inOrder parts =
      Map.elems (Map.fromList (concat [zip (NonEmpty.toList positions) values | (positions, values) <- parts]))

-- | @MSET key value …@: sets all. \(O(n)\) on the server, since 1.0.1. Keys of
-- several slots make one MSET per slot, run at different times: then it is
-- atomic no more.
--
-- @since 0.1.0.0
mset :: NonEmpty (ByteString, ByteString) -> Command ()
mset entries =
  Command
    { commandName = "MSET",
      commandRequest = request ("MSET" : flattened entries),
      commandRoute = splitBy fst mset (const ()) entries,
      commandFacts = writeFacts,
      commandDecode = Decode.okay
    }

-- | @MSETNX key value …@: sets all or, if one of the keys exists, none;
-- whether it did. In a cluster the keys must share a slot. \(O(n)\) on the
-- server, since 1.0.1.
--
-- @since 0.1.0.0
msetnx :: NonEmpty (ByteString, ByteString) -> Command Bool
msetnx entries =
  keysWrite
    "MSETNX"
    (map fst (NonEmpty.toList entries))
    (request ("MSETNX" : flattened entries))
    Decode.boolean

flattened :: NonEmpty (ByteString, ByteString) -> [ByteString]
flattened entries = concat [[key, value] | (key, value) <- NonEmpty.toList entries]
