{-# LANGUAGE PatternSynonyms #-}

-- | Replies as they are: every type of RESP2 and RESP3, strict.
--
-- The two protocols share one type, so that a program does not care which one
-- a connection negotiated. Source: the RESP3 specification
-- (<https://github.com/redis/redis-specifications/blob/master/protocol/RESP3.md>).
--
-- Import this module qualified, or by name: @Map@, @Set@ and @Double@ have famous
-- namesakes.
module Redis.Value
  ( Value (.., Null),
    NullForm (..),
    withoutAttributes,
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)

-- | One reply, or one push message.
--
-- Match a null with 'Null', which takes all three forms. '==' tells the forms
-- apart.
data Value
  = -- | @+OK@: text without line breaks.
    SimpleString ByteString
  | -- | @$3@: any bytes.
    BulkString ByteString
  | -- | @:42@
    Integer Int64
  | -- | A null, in the form in which the server sent it. Programs that pass
    -- replies on need the form; others match 'Null'.
    NullOf NullForm
  | -- | @*2@
    Array [Value]
  | -- | @-ERR …@ and RESP3's @!10@: the whole text, code included.
    ErrorReply ByteString
  | -- | @,3.14@, with @inf@, @-inf@ and @nan@.
    Double Double
  | -- | @#t@ and @#f@
    Boolean Bool
  | -- | @(123…@: an integer of any size. Text that is none, as scripts may send it, is a 'BulkString'.
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

-- | The forms of a null.
data NullForm
  = -- | RESP3's @_@.
    PlainNull
  | -- | RESP2's @$-1@: no string.
    NullBulkString
  | -- | RESP2's @*-1@: no array.
    NullArray
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | A null. As a pattern it matches every form of null; as an expression it is RESP3's form.
pattern Null :: Value
pattern Null <-
  NullOf _
  where
    Null = NullOf PlainNull

{-# COMPLETE
  SimpleString,
  BulkString,
  Integer,
  Null,
  Array,
  ErrorReply,
  Double,
  Boolean,
  BigNumber,
  VerbatimString,
  Map,
  Set,
  Push,
  WithAttributes
  #-}

-- | The value without its outermost attributes. \(O(1)\) for a value that has none.
withoutAttributes :: Value -> Value
withoutAttributes = \case
  WithAttributes _ value -> withoutAttributes value
  value -> value
