-- | Hashes: fields with values under one key. Fields that expire: "Redis.Commands.HashField".
--
-- > run client (Redis.hset "example:hashes" (("name", "Ada") :| [("born", "1815")]))
-- > run client (Redis.hget "example:hashes" "name")
--
-- The first field creates the hash, and the removal of the last field deletes it: a key without
-- fields does not exist, and reads as an empty hash. On a key of another type each of these
-- commands is an error.
--
-- The servers' page: <https://valkey.io/commands/#hash>.
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

    -- * Random fields
    hrandfield,
    hrandfieldCount,
    hrandfieldWithvalues,
    Draw (..),

    -- * Scanning
    hscan,
    hscanWith,
    hscanNovalues,
    HscanOptions (hscanMatch, hscanCount),
    hscanDefaults,
    ScanCursor,
    scanStart,
    ScanPage (..),
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | @HSET key field value …@: sets fields, new and existing ones; how many are new. A field that
-- had an expiry has none afterwards. \(O(1)\) per field,
-- [since 2.0.0](https://valkey.io/commands/hset/); several fields since 4.0.0.
hset :: ByteString -> NonEmpty (ByteString, ByteString) -> Command Int64
hset name entries = command "HSET" (key name : fieldsWithValues entries) Decode.integer

-- | @HSETNX key field value@: sets a field unless it is there; whether it was set. \(O(1)\),
-- [since 2.0.0](https://valkey.io/commands/hsetnx/).
hsetnx :: ByteString -> ByteString -> ByteString -> Command Bool
hsetnx name one new = command "HSETNX" [key name, arg one, arg new] Decode.boolean

-- | @HINCRBY key field increment@: adds to the number in a field; the new number. A missing field
-- counts as 0. An error if the old or the new value is not an integer of 64 bits. \(O(1)\),
-- [since 2.0.0](https://valkey.io/commands/hincrby/).
hincrby :: ByteString -> ByteString -> Int64 -> Command Int64
hincrby name one by = command "HINCRBY" [key name, arg one, int by] Decode.integer

-- | @HINCRBYFLOAT key field increment@: like 'hincrby', for numbers with a fraction. The server
-- refuses an infinity; a NaN is refused before the command is sent. \(O(1)\),
-- [since 2.6.0](https://valkey.io/commands/hincrbyfloat/).
hincrbyfloat :: ByteString -> ByteString -> Double -> Command Double
hincrbyfloat name one by = command "HINCRBYFLOAT" [key name, arg one, double by] Decode.double

-- | @HDEL key field …@: deletes fields; how many of them were there. \(O(1)\) per field,
-- [since 2.0.0](https://valkey.io/commands/hdel/); several fields since 2.4.0.
hdel :: ByteString -> NonEmpty ByteString -> Command Int64
hdel name fields = command "HDEL" (key name : args fields) Decode.integer

-- | @HMSET key field value …@: 'hset' for old servers, whose HSET took one field only. Redis calls
-- it deprecated [since 4.0.0](https://valkey.io/commands/hmset/). \(O(1)\) per field, since 2.0.0.
hmset :: ByteString -> NonEmpty (ByteString, ByteString) -> Command ()
hmset name entries = command "HMSET" (key name : fieldsWithValues entries) Decode.okay

-- | @HGET key field@: its value, or 'Nothing' if there is no such field. \(O(1)\),
-- [since 2.0.0](https://valkey.io/commands/hget/).
hget :: ByteString -> ByteString -> Command (Maybe ByteString)
hget name one = command "HGET" [key name, arg one] (Decode.nullable Decode.bytes)

-- | @HMGET key field …@: the values of these fields, in their order; 'Nothing' for a field that is
-- not there. \(O(1)\) per field, [since 2.0.0](https://valkey.io/commands/hmget/).
hmget :: ByteString -> NonEmpty ByteString -> Command [Maybe ByteString]
hmget name fields = command "HMGET" (key name : args fields) (Decode.listOf (length fields) (Decode.nullable Decode.bytes))

-- | @HGETALL key@: all fields with their values, in the server's order. \(O(n)\) in the size of the
-- hash, and the server serves no other client meanwhile; see 'hscan'.
-- [Since 2.0.0](https://valkey.io/commands/hgetall/).
hgetall :: ByteString -> Command [(ByteString, ByteString)]
hgetall name = command "HGETALL" [key name] (Decode.pairs Decode.bytes Decode.bytes)

-- | @HKEYS key@, @HVALS key@: all fields, or all values, in the server's order. \(O(n)\) in the
-- size of the hash, since 2.0.0 ([HKEYS](https://valkey.io/commands/hkeys/),
-- [HVALS](https://valkey.io/commands/hvals/)).
hkeys, hvals :: ByteString -> Command [ByteString]
hkeys name = command "HKEYS" [key name] (Decode.list Decode.bytes)
hvals name = command "HVALS" [key name] (Decode.list Decode.bytes)

-- | @HLEN key@: how many fields there are. Fields whose time is over may count until the server has
-- removed them. \(O(1)\), [since 2.0.0](https://valkey.io/commands/hlen/).
hlen :: ByteString -> Command Int64
hlen name = command "HLEN" [key name] Decode.integer

-- | @HEXISTS key field@: whether the field is there. \(O(1)\),
-- [since 2.0.0](https://valkey.io/commands/hexists/).
hexists :: ByteString -> ByteString -> Command Bool
hexists name one = command "HEXISTS" [key name, arg one] Decode.boolean

-- | @HSTRLEN key field@: the length of the field's value in bytes, 0 without a value. \(O(1)\),
-- [since 3.2.0](https://valkey.io/commands/hstrlen/).
hstrlen :: ByteString -> ByteString -> Command Int64
hstrlen name one = command "HSTRLEN" [key name, arg one] Decode.integer

-- | @HRANDFIELD key@: a random field; 'Nothing' if there is no hash. \(O(1)\),
-- [since 6.2.0](https://valkey.io/commands/hrandfield/).
hrandfield :: ByteString -> Command (Maybe ByteString)
hrandfield name = command "HRANDFIELD" [key name] (Decode.nullable Decode.bytes)

-- | @HRANDFIELD key count@: several random fields. \(O(n)\) in the length of the answer,
-- [since 6.2.0](https://valkey.io/commands/hrandfield/).
hrandfieldCount :: ByteString -> Draw -> Command [ByteString]
hrandfieldCount name draw = command "HRANDFIELD" [key name, drawCount draw] (Decode.list Decode.bytes)

-- | @HRANDFIELD key count WITHVALUES@: several random fields, with their values. \(O(n)\) in the
-- length of the answer, [since 6.2.0](https://valkey.io/commands/hrandfield/).
hrandfieldWithvalues :: ByteString -> Draw -> Command [(ByteString, ByteString)]
hrandfieldWithvalues name draw =
  command "HRANDFIELD" [key name, drawCount draw, arg "WITHVALUES"] (Decode.pairs Decode.bytes Decode.bytes)

-- | Which fields to walk over, and in which steps.
data HscanOptions = HscanOptions
  { -- | MATCH: only fields that match the glob.
    hscanMatch :: Maybe ByteString,
    -- | COUNT: roughly how many fields the server looks at in one step (10 by default). It sends a
    -- small hash as a whole.
    hscanCount :: Maybe Int64
  }
  deriving stock (Eq, Show)

-- | All fields, in steps of the server's choice.
hscanDefaults :: HscanOptions
hscanDefaults = HscanOptions {hscanMatch = Nothing, hscanCount = Nothing}

-- | @HSCAN key cursor@: like 'hscanWith', over all fields.
hscan :: ByteString -> ScanCursor -> Command (ScanPage (ByteString, ByteString))
hscan = hscanWith hscanDefaults

-- | @HSCAN key cursor [MATCH p] [COUNT n]@: a step of a walk over the fields of a hash and their
-- values. A field that is there throughout the walk is seen, maybe twice. In a cluster the primary
-- answers, since only the node that gave a cursor understands it. \(O(1)\) per step,
-- [since 2.8.0](https://valkey.io/commands/hscan/).
hscanWith :: HscanOptions -> ByteString -> ScanCursor -> Command (ScanPage (ByteString, ByteString))
hscanWith options name cursor =
  command "HSCAN" (key name : hscanArguments options cursor) (scanPage (Decode.pairs Decode.bytes Decode.bytes))

-- | @HSCAN key cursor [MATCH p] [COUNT n] NOVALUES@: like 'hscanWith', with fields alone.
-- [Since Redis 7.4.0](https://valkey.io/commands/hscan/) and Valkey 8.0.0.
hscanNovalues :: HscanOptions -> ByteString -> ScanCursor -> Command (ScanPage ByteString)
hscanNovalues options name cursor =
  command
    "HSCAN"
    (key name : hscanArguments options cursor <> [arg "NOVALUES"])
    (scanPage (Decode.list Decode.bytes))

hscanArguments :: HscanOptions -> ScanCursor -> [Argument]
hscanArguments HscanOptions {hscanMatch, hscanCount} cursor = scanArguments cursor hscanMatch hscanCount
