-- | What a server can say: every type of RESP2 and RESP3, strict.
--
-- The two protocols share one type, so that a program does not care which one
-- a connection negotiated: RESP2's null bulk string and null array are 'Null',
-- as is RESP3's @_@. Source: the RESP3 specification
-- (<https://github.com/redis/redis-specifications/blob/master/protocol/RESP3.md>).
module Redis.Value
  ( Value (..),
    withoutAttributes,
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)

-- | One reply, or one push message.
--
-- @since 0.1.0.0
data Value
  = -- | @+OK@: text without line breaks.
    SimpleString ByteString
  | -- | @$3@: any bytes.
    BulkString ByteString
  | -- | @:42@
    Integer Int64
  | -- | @_@, and RESP2's @$-1@ and @*-1@.
    Null
  | -- | @*2@
    Array [Value]
  | -- | @-ERR …@ and RESP3's @!10@: the whole text, code included.
    ErrorReply ByteString
  | -- | @,3.14@, with @inf@, @-inf@ and @nan@.
    Double Double
  | -- | @#t@ and @#f@
    Boolean Bool
  | -- | @(123…@: an integer of any size.
    BigNumber Integer
  | -- | @=15@: a three-byte format (@txt@, @mkd@) and the text.
    VerbatimString ByteString ByteString
  | -- | @%2@: in the order they were sent; keys are not made unique.
    Map [(Value, Value)]
  | -- | @~3@: in the order they were sent.
    Set [Value]
  | -- | @>3@: out-of-band data, never the reply to a command.
    Push [Value]
  | -- | @|1@: metadata that came ahead of a value. Decoders of commands
    -- look through it; see 'withoutAttributes'.
    WithAttributes [(Value, Value)] Value
  deriving stock (Eq, Show)

-- | The value itself, its outermost attributes dropped. \(O(1)\) for a value
-- without any.
--
-- @since 0.1.0.0
withoutAttributes :: Value -> Value
withoutAttributes = \case
  WithAttributes _ value -> withoutAttributes value
  value -> value
