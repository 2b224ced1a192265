-- | Reads replies that are records, texts with fields such as those of INFO, CLIENT LIST and CLUSTER
-- NODES, and words that stand for something.
module Redis.Internal.Command.Record
  ( Fields,
    recordOf,
    fromFields,
    field,
    optionalField,
    maybeField,
    several,
    ifPresent,
    others,

    -- * Texts
    linesOf,
    colonFields,
    splitAtChar,
    equalsFields,

    -- * Single values
    oneOf,
    wordOr,
    numberWhere,
    orNone,
    secondsReply,
    millisecondsReply,
    microsecondsReply,
  )
where

import Control.Monad (join)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.List (dropWhileEnd)
import Data.Maybe (fromMaybe, mapMaybe)
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration
import Redis.Error (DecodeError)
import Redis.Value (Value (BulkString))

-- | The fields that a record names, and how it is made from a reply's fields. The reader gets
-- the names of all fields of the whole record.
data Fields a = Fields [ByteString] ([ByteString] -> [(ByteString, Value)] -> Either DecodeError a)

-- Calls instead of copies of these functions keep the code of a long record short.
instance Functor Fields where
  fmap f (Fields names reading) = Fields names (\known fields -> f <$> reading known fields)
  {-# NOINLINE fmap #-}

instance Applicative Fields where
  pure a = Fields [] (\_ _ -> Right a)
  Fields names reading <*> Fields more next =
    Fields (names <> more) (\known fields -> reading known fields <*> next known fields)
  {-# NOINLINE (<*>) #-}

-- | Reads a reply. \(O(m n)\) for m names and n fields.
recordOf :: Fields a -> Decoder a
recordOf reader reply = Decode.record reply >>= fromFields reader

fromFields :: Fields a -> [(ByteString, Value)] -> Either DecodeError a
fromFields (Fields names reading) = reading names

-- | A field that must be there.
field :: ByteString -> Decoder a -> Fields a
field name decoder = Fields [name] (const (Decode.field name decoder))
{-# NOINLINE field #-}

-- | A field that may be absent.
optionalField :: ByteString -> Decoder a -> Fields (Maybe a)
optionalField name decoder = Fields [name] (const (Decode.optionalField name decoder))
{-# NOINLINE optionalField #-}

-- | A field that may be absent, or present without a value.
maybeField :: ByteString -> Decoder (Maybe a) -> Fields (Maybe a)
maybeField name = fmap join . optionalField name

-- | A list that is empty if the field is absent.
several :: ByteString -> Decoder [a] -> Fields [a]
several name = fmap concat . optionalField name

-- | Some fields, if the one of this name is there.
ifPresent :: ByteString -> Fields a -> Fields (Maybe a)
ifPresent name (Fields names reading) = Fields names $ \known fields ->
  traverse (const (reading known fields)) (lookup name fields)

-- | The fields that the record does not name.
others :: Decoder a -> Fields [(ByteString, a)]
others decoder = Fields [] (\known -> traverse (traverse decoder) . filter ((`notElem` known) . fst))

-- | The lines of a text that are not empty, without line ends. \(O(n)\).
linesOf :: Decoder [ByteString]
linesOf = fmap (filter (not . Char8.null) . map (Char8.takeWhile (/= '\r')) . Char8.lines) . Decode.bytes

-- | Reads lines such as @name:value@. Lines without a colon, which are headings, are left
-- out. \(O(n)\).
colonFields :: Decoder [(ByteString, ByteString)]
colonFields = fmap (mapMaybe (splitAtChar ':')) . linesOf

-- | What is before and after the first such character; nothing without one.
splitAtChar :: Char -> ByteString -> Maybe (ByteString, ByteString)
splitAtChar mark text = case Char8.break (== mark) text of
  (_, "") -> Nothing
  (name, rest) -> Just (name, Char8.drop 1 rest)

-- | Reads the first line of a text, of words such as @name=value@, into a record, for
-- 'Decode.field'. Words without an equals sign belong to the value before them: the path of a Unix
-- socket may have spaces. \(O(n)\).
equalsFields :: ByteString -> [(ByteString, Value)]
equalsFields = fieldsOf . Char8.split ' ' . Char8.takeWhile (`notElem` ("\r\n" :: String))
  where
    fieldsOf = \case
      [] -> []
      word : rest
        | Char8.null begin -> fieldsOf rest
        | otherwise -> (name, BulkString (Char8.unwords (Char8.drop 1 begin : dropWhileEnd Char8.null more))) : fieldsOf next
        where
          (name, begin) = Char8.break (== '=') word
          (more, next) = span (Char8.notElem '=') rest

-- | Reads one of these; the text says which they are.
oneOf :: Eq a => Decoder a -> String -> [(a, b)] -> Decoder b
oneOf decoder expected meanings reply = decoder reply >>= maybe (Decode.mismatch expected reply) Right . (`lookup` meanings)

-- | Reads one of these words, or any other.
wordOr :: (ByteString -> a) -> [(ByteString, a)] -> Decoder a
wordOr other meanings = fmap (\word -> fromMaybe (other word) (lookup word meanings)) . Decode.bytes

-- | Reads a number for which the condition holds; any other means that there is none.
numberWhere :: (Int64 -> Bool) -> Decoder a -> Decoder (Maybe a)
numberWhere holds decoder reply = do
  number <- Decode.integer reply
  if holds number then Just <$> decoder reply else Right Nothing

-- | Reads a list; a null is an empty one.
orNone :: Decoder [a] -> Decoder [a]
orNone decoder = fmap (fromMaybe []) . Decode.nullable decoder

-- | A duration in whole seconds, milliseconds or microseconds.
secondsReply, millisecondsReply, microsecondsReply :: Decoder Duration
secondsReply = fmap (seconds . fromIntegral) . Decode.integer
millisecondsReply = fmap milliseconds . Decode.integer
microsecondsReply = fmap microseconds . Decode.integer
