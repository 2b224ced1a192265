-- | Decoders: small functions that read a reply, a 'Value'.
--
-- Each accepts every form in which servers send the same content, so that a command
-- need not know the protocol of its connection:
--
-- * a bulk string, a simple one or a verbatim one;
-- * a number or its text;
-- * an array or a set;
-- * a map, an array of keys and values in turn, or an array of pairs;
-- * any of the three nulls;
-- * all of these behind attributes, at every level.
--
-- Decoding is complete when the outermost constructor is evaluated: nothing fails
-- later. An error tells where in the reply it occurred; that costs nothing unless there
-- is an error.
--
-- Import this module qualified.
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
    unixSeconds,
    unixMilliseconds,

    -- * Absent values
    nullable,
    present,

    -- * Aggregates
    list,
    listOf,
    pair,
    triple,
    pairs,
    scored,
    mapping,

    -- * Records
    record,
    field,
    optionalField,
    element,
    optionalElement,

    -- * Choosing and failing
    orElse,
    mismatch,
  )
where

import Data.Bifunctor (first)
import Data.Bits (toIntegralSized)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Time.Clock (UTCTime)
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.Error (DecodeError (..))
import Redis.Internal.Protocol.Double (parseDouble)
import Redis.Value (Value (..), withoutAttributes)

-- | A function that reads one reply.
type Decoder a = Value -> Either DecodeError a

-- | Any reply, as it is.
value :: Decoder Value
value = Right

-- | @OK@ and nothing else.
okay :: Decoder ()
okay reply = case reply of
  SimpleString "OK" -> Right ()
  BulkString "OK" -> Right ()
  WithAttributes _ inner -> okay inner
  _ -> mismatch "OK" reply

-- | Any reply, which is ignored; for replies without content.
ignored :: Decoder ()
ignored _ = Right ()

-- | A string of any kind. \(O(1)\): the result shares the bytes of the 'Value'.
bytes :: Decoder ByteString
bytes reply = case reply of
  BulkString string -> Right string
  _ -> otherBytes reply
-- Inlined like 'nullable', so that MGET does not pay for two calls per element.
{-# INLINE bytes #-}

otherBytes :: Decoder ByteString
otherBytes reply = case reply of
  SimpleString string -> Right string
  VerbatimString _ string -> Right string
  WithAttributes _ inner -> bytes inner
  _ -> mismatch "a string" reply

-- | An integer, or its text. A number of more than 64 bits is an error.
integer :: Decoder Int64
integer reply = case reply of
  Integer number -> Right number
  BulkString string -> maybe (mismatch "an integer" reply) Right (parseInteger string)
  SimpleString string -> maybe (mismatch "an integer" reply) Right (parseInteger string)
  BigNumber number -> maybe (mismatch "an integer of 64 bits" reply) Right (toIntegralSized number)
  WithAttributes _ inner -> integer inner
  _ -> mismatch "an integer" reply

parseInteger :: ByteString -> Maybe Int64
parseInteger string
  -- Longer texts are out of range; there is no need to read them.
  | Char8.length string <= 20, Just (number, "") <- Char8.readInteger string = toIntegralSized number
  | otherwise = Nothing

-- | A floating-point number, or its text.
double :: Decoder Double
double reply = case reply of
  Double number -> Right number
  BulkString string -> maybe (mismatch "a number" reply) Right (parseDouble string)
  Integer number -> Right (fromIntegral number)
  SimpleString string -> maybe (mismatch "a number" reply) Right (parseDouble string)
  BigNumber number -> Right (fromInteger number)
  WithAttributes _ inner -> double inner
  _ -> mismatch "a number" reply

-- | A Boolean, or 0 and 1.
boolean :: Decoder Bool
boolean reply = case reply of
  Integer 0 -> Right False
  Integer 1 -> Right True
  Boolean truth -> Right truth
  WithAttributes _ inner -> boolean inner
  _ -> mismatch "0 or 1" reply

-- | A point in time, in seconds since 1970.
unixSeconds :: Decoder UTCTime
unixSeconds = fmap (posixSecondsToUTCTime . fromIntegral) . integer

-- | A point in time, in milliseconds since 1970.
unixMilliseconds :: Decoder UTCTime
unixMilliseconds = fmap (posixSecondsToUTCTime . (/ 1000) . fromIntegral) . integer

-- | 'Nothing' for a null of any form.
nullable :: Decoder a -> Decoder (Maybe a)
nullable decoder = \case
  WithAttributes _ inner -> plain (withoutAttributes inner)
  reply -> plain reply
  where
    plain reply = case reply of
      Null -> Right Nothing
      _ -> case decoder reply of
        Right result -> Right $! Just $! result
        Left failure -> Left failure
{-# INLINE nullable #-}

-- | 'False' for a null, 'True' for a reply that the decoder accepts.
present :: Decoder () -> Decoder Bool
present decoder = fmap (== Just ()) . nullable decoder

-- | An array or a set, each element read by the same decoder. \(O(n)\).
list :: Decoder a -> Decoder [a]
list decoder reply = elementsOf reply >>= eachElement decoder

-- | An array of exactly this many elements. \(O(n)\).
listOf :: Int -> Decoder a -> Decoder [a]
listOf count decoder reply = do
  elements <- elementsOf reply
  if length elements == count
    then eachElement decoder elements
    else mismatch ("an array of " <> show count) reply

elementsOf :: Decoder [Value]
elementsOf reply = case reply of
  Array elements -> Right elements
  Set elements -> Right elements
  WithAttributes _ inner -> elementsOf inner
  _ -> mismatch "an array" reply

eachElement :: forall a. Decoder a -> [Value] -> Either DecodeError [a]
eachElement decoder = go 0
  where
    -- The stack is cheaper than reversing a list, also for millions of elements.
    go :: Int -> [Value] -> Either DecodeError [a]
    go !index = \case
      [] -> Right []
      found : rest -> case decoder found of
        Left failure -> Left (inside (atElement index) failure)
        Right !result -> case go (index + 1) rest of
          Left failure -> Left failure
          Right results -> Right (result : results)

-- | An array of exactly two elements. \(O(1)\).
pair :: Decoder a -> Decoder b -> Decoder (a, b)
pair one two reply =
  elementsOf reply >>= \case
    [a, b] -> do
      !x <- within (atElement 0) (one a)
      !y <- within (atElement 1) (two b)
      Right (x, y)
    _ -> mismatch "an array of 2 elements" reply

-- | An array of exactly three elements. \(O(1)\).
triple :: Decoder a -> Decoder b -> Decoder c -> Decoder (a, b, c)
triple one two three reply =
  elementsOf reply >>= \case
    [a, b, c] -> do
      !x <- within (atElement 0) (one a)
      !y <- within (atElement 1) (two b)
      !z <- within (atElement 2) (three c)
      Right (x, y, z)
    _ -> mismatch "an array of 3 elements" reply

-- | Keys with their values: a map, an array of keys and values in turn, or an array of
-- pairs (arrays of two elements). They are in the server's order, repeated keys
-- included. \(O(n)\).
--
-- The form depends on the protocol and the command. First in RESP2 and then in RESP3, the
-- reply to @HGETALL@ is flat and then a map, that to @ZRANGE … WITHSCORES@ is flat and
-- then an array of arrays of two elements ("of twos"), and that to
-- @XREAD@ is of twos and then a map. An array whose first element is itself an
-- array is read as an array of pairs, any other array as keys and values in turn. So a
-- key cannot be an array where keys and values come in turn; no server has such keys.
pairs :: Decoder key -> Decoder element -> Decoder [(key, element)]
pairs key one reply = case reply of
  Map entries -> fromMap entries
  Array elements
    | begin : _ <- elements, Array _ <- withoutAttributes begin -> eachElement (pair key one) elements
    | otherwise -> inTurn elements
  WithAttributes _ inner -> pairs key one inner
  _ -> mismatch "a map" reply
  where
    fromMap = \case
      [] -> Right []
      (k, v) : rest -> entry k v (fromMap rest)
    inTurn = \case
      [] -> Right []
      k : v : rest -> entry k v (inTurn rest)
      [_] -> mismatch "as many values as keys" reply
    entry k v others = case key k of
      Left failure -> Left (inside "a key" failure)
      Right !k' -> case one v of
        Left failure -> Left (inside (atKey k) failure)
        Right !v' -> case others of
          Left failure -> Left failure
          Right entries -> Right ((k', v') : entries)
    {-# INLINE entry #-}

-- | Members of a sorted set with their scores. \(O(n)\).
scored :: Decoder [(ByteString, Double)]
scored = pairs bytes double

-- | Like 'pairs', but as a @Map@; of several values of a key the last counts. \(O(n \log n)\).
mapping :: Ord key => Decoder key -> Decoder element -> Decoder (Map key element)
mapping key one = fmap Map.fromList . pairs key one

-- | A map whose keys are names, for 'field'.
record :: Decoder [(ByteString, Value)]
record = pairs bytes value

-- | A field that must be there. \(O(n)\).
field :: ByteString -> Decoder a -> [(ByteString, Value)] -> Either DecodeError a
field name decoder fields = case lookup name fields of
  Just found -> within (atField name) (decoder found)
  Nothing -> missing ("a field " <> show name) ("fields " <> show (map fst fields))

-- | A field that may be absent. \(O(n)\).
optionalField :: ByteString -> Decoder a -> [(ByteString, Value)] -> Either DecodeError (Maybe a)
optionalField name decoder = traverse (within (atField name) . decoder) . lookup name

-- | The element at this position, counted from 0. For arrays in which each position has
-- its own meaning, and which are longer in newer servers. \(O(n)\).
element :: Int -> Decoder a -> [Value] -> Either DecodeError a
element index decoder elements =
  optionalElement index decoder elements >>= \case
    Just found -> Right found
    Nothing -> missing ("an array of at least " <> show (index + 1)) ("an array of " <> show (length elements))

-- | An element that older servers leave out. \(O(n)\).
optionalElement :: Int -> Decoder a -> [Value] -> Either DecodeError (Maybe a)
optionalElement index decoder elements = case drop index elements of
  found : _ -> Just <$> within (atElement index) (decoder found)
  [] -> Right Nothing

-- | Uses the second decoder if the first fails. If both do, the error is the one further into the reply.
orElse :: Decoder a -> Decoder a -> Decoder a
orElse one other reply = case one reply of
  Right result -> Right result
  Left failure -> first (worse failure) (other reply)
  where
    worse a b = case compare (depth a) (depth b) of
      GT -> a
      LT -> b
      EQ -> b {decodeErrorExpected = decodeErrorExpected a <> " or " <> decodeErrorExpected b}
    depth = length . decodeErrorPath

infixr 3 `orElse`

-- | An error that tells what was expected and, shortened, what the server sent.
mismatch :: String -> Value -> Either DecodeError a
mismatch expected got = missing expected (rendered got)

missing :: String -> String -> Either DecodeError a
missing expected got =
  Left DecodeError {decodeErrorPath = [], decodeErrorExpected = expected, decodeErrorGot = shortened got, decodeErrorCommand = ""}

within :: String -> Either DecodeError a -> Either DecodeError a
within place = first (inside place)

inside :: String -> DecodeError -> DecodeError
inside place failure = failure {decodeErrorPath = place : decodeErrorPath failure}

atElement :: Int -> String
atElement index = "element " <> show index

atField :: ByteString -> String
atField name = "field " <> shortened (show name)

-- | The place of a key's value.
atKey :: Value -> String
atKey = either (const "a value") atField . bytes

-- | The first 120 characters.
shortened :: String -> String
shortened long = case splitAt 120 long of
  (text, "") -> text
  (text, _) -> text <> "…"

-- | Renders only the beginning of a string, which may have megabytes.
rendered :: Value -> String
rendered = \case
  BulkString string -> show (BulkString (Char8.take 120 string))
  SimpleString string -> show (SimpleString (Char8.take 120 string))
  ErrorReply string -> show (ErrorReply (Char8.take 120 string))
  Null -> "null"
  other -> show other
