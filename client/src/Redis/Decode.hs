-- | Reading replies: small functions from a 'Value' to what is wanted.
--
-- Each accepts every shape in which servers say the same thing — a bulk string
-- or a simple one, a map or the flat array that RESP2 has instead, a double or
-- its text — so that a command need not know the protocol of its connection.
-- Attributes are looked through at every level. Decoding is done when the
-- outermost constructor is known: nothing fails later.
module Redis.Decode
  ( Decoder,

    -- * Single values
    value,
    okay,
    ignored,
    bytes,
    integer,
    double,
    boolean,

    -- * Absent values
    nullable,
    present,

    -- * Aggregates
    list,
    listOf,
    pairs,
    record,
    field,
    optionalField,

    -- * Failing
    mismatch,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Redis.Error (DecodeError (..))
import Redis.Internal.Protocol.Decode (parseDouble)
import Redis.Value (Value (..), withoutAttributes)

-- | Reads one reply.
--
-- @since 0.1.0.0
type Decoder a = Value -> Either DecodeError a

-- | Any reply, as it is.
--
-- @since 0.1.0.0
value :: Decoder Value
value = Right

-- | @OK@ and nothing else.
--
-- @since 0.1.0.0
okay :: Decoder ()
okay reply = case reply of
  SimpleString "OK" -> Right ()
  BulkString "OK" -> Right ()
  WithAttributes _ inner -> okay inner
  _ -> mismatch "OK" reply

-- | Anything; for replies that say nothing.
--
-- @since 0.1.0.0
ignored :: Decoder ()
ignored _ = Right ()

-- | A string of any kind.
--
-- @since 0.1.0.0
bytes :: Decoder ByteString
bytes reply = case reply of
  BulkString string -> Right string
  SimpleString string -> Right string
  VerbatimString _ string -> Right string
  WithAttributes _ inner -> bytes inner
  _ -> mismatch "a string" reply

-- | An integer.
--
-- @since 0.1.0.0
integer :: Decoder Int64
integer reply = case reply of
  Integer number -> Right number
  WithAttributes _ inner -> integer inner
  _ -> mismatch "an integer" reply

-- | A floating-point number, or its text.
--
-- @since 0.1.0.0
double :: Decoder Double
double reply = case reply of
  Double number -> Right number
  Integer number -> Right (fromIntegral number)
  BulkString string -> maybe (mismatch "a number" reply) Right (parseDouble string)
  SimpleString string -> maybe (mismatch "a number" reply) Right (parseDouble string)
  WithAttributes _ inner -> double inner
  _ -> mismatch "a number" reply

-- | A Boolean, or RESP2's 0 and 1.
--
-- @since 0.1.0.0
boolean :: Decoder Bool
boolean reply = case reply of
  Integer 0 -> Right False
  Integer 1 -> Right True
  Boolean truth -> Right truth
  WithAttributes _ inner -> boolean inner
  _ -> mismatch "0 or 1" reply

-- | 'Nothing' for a null.
--
-- @since 0.1.0.0
nullable :: Decoder a -> Decoder (Maybe a)
nullable decoder reply = case reply of
  Null -> Right Nothing
  WithAttributes _ inner -> nullable decoder inner
  _ -> do
    result <- decoder reply
    Right $! Just $! result

-- | 'False' for a null, 'True' for what the decoder takes.
--
-- @since 0.1.0.0
present :: Decoder () -> Decoder Bool
present decoder = fmap (== Just ()) . nullable decoder

-- | An array or a set, each element read by the same decoder. \(O(n)\).
--
-- @since 0.1.0.0
list :: Decoder a -> Decoder [a]
list decoder reply = case reply of
  Array elements -> eachElement decoder elements
  Set elements -> eachElement decoder elements
  WithAttributes _ inner -> list decoder inner
  _ -> mismatch "an array" reply

-- | An array of exactly this many elements. \(O(n)\).
--
-- @since 0.1.0.0
listOf :: Int -> Decoder a -> Decoder [a]
listOf count decoder reply = do
  elements <- list Right reply
  if length elements == count
    then eachElement decoder elements
    else mismatch ("an array of " <> show count) reply

eachElement :: Decoder a -> [Value] -> Either DecodeError [a]
eachElement decoder = go []
  where
    -- With an accumulator: an array may have millions of elements.
    go done = \case
      [] -> Right (reverse done)
      element : rest -> do
        result <- decoder (withoutAttributes element)
        result `seq` go (result : done) rest

-- | A map, or a flat array of keys and values in turn. In the server's order.
-- \(O(n)\).
--
-- @since 0.1.0.0
pairs :: Decoder key -> Decoder element -> Decoder [(key, element)]
pairs key element reply = case reply of
  Map entries -> eachEntry entries
  Array elements -> inTwos elements >>= eachEntry
  WithAttributes _ inner -> pairs key element inner
  _ -> mismatch "a map" reply
  where
    eachEntry = go []
    go done = \case
      [] -> Right (reverse done)
      (k, v) : rest -> do
        entryKey <- key (withoutAttributes k)
        entryValue <- element (withoutAttributes v)
        entryKey `seq` entryValue `seq` go ((entryKey, entryValue) : done) rest
    inTwos elements = case splitTwos [] elements of
      Just entries -> Right entries
      Nothing -> mismatch "as many values as keys" reply
    splitTwos done = \case
      k : v : rest -> splitTwos ((k, v) : done) rest
      [] -> Just (reverse done)
      [_] -> Nothing

-- | A map whose keys are names, for 'field'.
--
-- @since 0.1.0.0
record :: Decoder [(ByteString, Value)]
record = pairs bytes value

-- | A field that must be there. \(O(n)\).
--
-- @since 0.1.0.0
field :: ByteString -> Decoder a -> [(ByteString, Value)] -> Either DecodeError a
field name decoder fields = case lookup name fields of
  Just found -> decoder found
  Nothing -> mismatch ("a field " <> show name) (Map [(BulkString key, v) | (key, v) <- fields])

-- | A field that may be absent. \(O(n)\).
--
-- @since 0.1.0.0
optionalField :: ByteString -> Decoder a -> [(ByteString, Value)] -> Either DecodeError (Maybe a)
optionalField name decoder = maybe (Right Nothing) (fmap Just . decoder) . lookup name

-- | Says what was expected and, shortened, what came.
--
-- @since 0.1.0.0
mismatch :: String -> Value -> Either DecodeError a
mismatch expected got =
  Left DecodeError {decodeErrorExpected = expected, decodeErrorGot = shortened got}

-- | At most some hundred characters, whatever the size of the value.
shortened :: Value -> String
shortened got = case splitAt 120 (show (cut got)) of
  (text, "") -> text
  (text, _) -> text <> "…"
  where
    -- So that no megabyte is rendered to be thrown away.
    cut = \case
      BulkString string -> BulkString (Char8.take 120 string)
      SimpleString string -> SimpleString (Char8.take 120 string)
      ErrorReply string -> ErrorReply (Char8.take 120 string)
      other -> other
