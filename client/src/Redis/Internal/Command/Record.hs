-- | Reads replies that are records: names of fields, with values.
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

    -- * Durations
    secondsReply,
    millisecondsReply,
    microsecondsReply,
  )
where

import Control.Monad (join)
import Data.ByteString (ByteString)
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration
import Redis.Error (DecodeError)
import Redis.Value (Value)

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

-- | A duration in whole seconds, milliseconds or microseconds.
secondsReply, millisecondsReply, microsecondsReply :: Decoder Duration
secondsReply = fmap (seconds . fromIntegral) . Decode.integer
millisecondsReply = fmap milliseconds . Decode.integer
microsecondsReply = fmap microseconds . Decode.integer
