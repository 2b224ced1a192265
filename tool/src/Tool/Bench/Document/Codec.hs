{-# LANGUAGE ExistentialQuantification #-}
{-# LANGUAGE FlexibleInstances #-}

-- | JSON described once and used three times: a 'Codec' writes a value, reads it back, and states
-- the JSON schema of what it writes. So the three cannot drift apart, and the published schema is
-- generated from the code.
--
-- A record is put together field by field, in the order of its constructor:
--
-- > codec = record "A place." $ Point <$> field "x" "Metres." pointX <*> field "y" "Metres." pointY
--
-- A 'derived' field is written for the convenience of other programs and ignored when reading,
-- because it follows from the rest.
module Tool.Bench.Document.Codec
  ( Codec (..),
    Coded (..),
    oneOf,
    Variant (..),
    constants,
    refined,
    named,
    Fields,
    record,
    field,
    fieldAs,
    derived,
    derivedAs,
    constant,
    withFields,
  )
where

import Control.Applicative ((<|>))
import Control.Monad (void)
import Data.Aeson (FromJSON (..), ToJSON (..), Value (..), object, withObject, (.:?), (.=))
import Data.Aeson.Key qualified as Key
import Data.Aeson.KeyMap qualified as KeyMap
import Data.Aeson.Types (Object, Pair, Parser, explicitParseField, listParser, (<?>))
import Data.Aeson.Types qualified as Aeson
import Data.Foldable (asum, find)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Word (Word64)

-- | How a type is written, read and described.
data Codec a = Codec
  { codecSchema :: Value,
    -- | The schemas that this one refers to, by name.
    codecDefinitions :: Map Text Value,
    codecWrite :: a -> Value,
    codecRead :: Value -> Parser a
  }

-- | Types with one form in JSON.
class Coded a where
  codec :: Codec a

instance Coded Text where
  codec = plain "string"

instance Coded Int where
  codec = plain "integer"

instance Coded Integer where
  codec = plain "integer"

instance Coded Word64 where
  codec = plain "integer"

instance Coded Bool where
  codec = plain "boolean"

-- | Infinity and not-a-number (0/0) are written as 0.
instance Coded Double where
  codec = (plain "number") {codecWrite = toJSON . finite}
    where
      finite x = if isNaN x || isInfinite x then 0 else x

instance Coded a => Coded [a] where
  codec =
    (codec @a)
      { codecSchema = object ["type" .= ("array" :: Text), "items" .= codecSchema (codec @a)],
        codecWrite = toJSON . map (codecWrite codec),
        codecRead = listParser (codecRead codec)
      }

instance Coded a => Coded (Map Text a) where
  codec =
    (codec @a)
      { codecSchema =
          object ["type" .= ("object" :: Text), "additionalProperties" .= codecSchema (codec @a)],
        codecWrite = toJSON . fmap (codecWrite codec),
        codecRead = \value -> parseJSON value >>= Map.traverseWithKey inside
      }
    where
      inside name value = codecRead codec value <?> Aeson.Key (Key.fromText name)

-- | @null@ for 'Nothing'.
instance Coded a => Coded (Maybe a) where
  codec =
    (codec @a)
      { codecSchema =
          object ["anyOf" .= [codecSchema (codec @a), object ["type" .= ("null" :: Text)]]],
        codecWrite = maybe Null (codecWrite codec),
        codecRead = \case
          Null -> pure Nothing
          value -> Just <$> codecRead codec value
      }

plain :: (FromJSON a, ToJSON a) => Text -> Codec a
plain name = Codec (object ["type" .= name]) Map.empty toJSON parseJSON

-- | A codec for the same JSON with another type in the program. The conversion when reading may
-- fail with an error message.
refined :: (a -> Either String b) -> (b -> a) -> Codec a -> Codec b
refined to from inner =
  inner
    { codecWrite = codecWrite inner . from,
      codecRead = \value -> codecRead inner value >>= either fail pure . to
    }

-- | One of a few values, each written as a string.
constants :: Eq a => [(Text, a)] -> Codec a
constants known =
  Codec
    { codecSchema = object ["enum" .= map fst known],
      codecDefinitions = Map.empty,
      codecWrite = \value -> maybe Null (String . fst) (find ((== value) . snd) known),
      codecRead = \value -> do
        name <- parseJSON value
        maybe (fail (Text.unpack (name <> " is none of " <> names))) pure (lookup name known)
    }
  where
    names = Text.intercalate ", " (map fst known)

-- | The codec, with its schema stored under a name and referred to wherever it occurs.
named :: Text -> Codec a -> Codec a
named name inner =
  inner
    { codecSchema = object ["$ref" .= ("#/$defs/" <> name)],
      codecDefinitions = Map.insert name (codecSchema inner) (codecDefinitions inner)
    }

-- | One way in which a type can be written: for the values for which the first function returns a
-- result.
data Variant a = forall b. Variant (a -> Maybe b) (b -> a) (Codec b)

-- | Writes and reads with the first variant that fits. Together the variants must fit every value.
oneOf :: [Variant a] -> Codec a
oneOf variants =
  Codec
    { codecSchema = object ["anyOf" .= [codecSchema inner | Variant _ _ inner <- variants]],
      codecDefinitions = Map.unions [codecDefinitions inner | Variant _ _ inner <- variants],
      codecWrite = \value ->
        fromMaybe Null (asum [codecWrite inner <$> from value | Variant from _ inner <- variants]),
      codecRead = \value ->
        asum [to <$> codecRead inner value | Variant _ to inner <- variants]
          <|> fail "none of the forms it may have"
    }

-- | Fields of a record @r@, from which an @a@ can be made.
data Fields r a = Fields
  { fieldsSchema :: [(Text, Value)],
    fieldsDefinitions :: Map Text Value,
    fieldsWrite :: r -> [Pair],
    fieldsRead :: Object -> Parser a
  }

instance Functor (Fields r) where
  fmap f fields = fields {fieldsRead = fmap f . fieldsRead fields}

instance Applicative (Fields r) where
  pure value = Fields [] Map.empty (const []) (const (pure value))
  one <*> other =
    Fields
      { fieldsSchema = fieldsSchema one <> fieldsSchema other,
        fieldsDefinitions = Map.union (fieldsDefinitions one) (fieldsDefinitions other),
        fieldsWrite = fieldsWrite one <> fieldsWrite other,
        fieldsRead = \whole -> fieldsRead one whole <*> fieldsRead other whole
      }

-- | A field: its name, its description, how to get it from the record. A field that may be @null@
-- may also be absent when reading.
field :: Coded a => Text -> Text -> (r -> a) -> Fields r a
field name about get = fieldAs name about get codec

-- | Like 'field', with this codec.
fieldAs :: Text -> Text -> (r -> a) -> Codec a -> Fields r a
fieldAs name about get inner =
  Fields
    { fieldsSchema = [(name, withFields ["description" .= about] (codecSchema inner))],
      fieldsDefinitions = codecDefinitions inner,
      fieldsWrite = \r -> [Key.fromText name .= codecWrite inner (get r)],
      fieldsRead = \whole ->
        (whole .:? Key.fromText name :: Parser (Maybe Value)) >>= \case
          -- Absent or null: fine for a codec that reads null.
          Nothing -> codecRead inner Null <|> present whole
          Just _ -> present whole
    }
  where
    present whole = explicitParseField (codecRead inner) whole (Key.fromText name)

-- | A field that is only written.
derived :: Coded a => Text -> Text -> (r -> a) -> Fields r ()
derived name about get = derivedAs name about get codec

derivedAs :: Text -> Text -> (r -> a) -> Codec a -> Fields r ()
derivedAs name about get inner =
  (void (fieldAs name about get inner)) {fieldsRead = const (pure ())}

-- | A field that always has this value, by which variants differ.
constant :: Text -> Text -> Text -> Fields r ()
constant name about value = void (fieldAs name about (const value) (constants [(value, value)]))

-- | The finished record, with a sentence that describes it.
record :: Text -> Fields r r -> Codec r
record about fields =
  Codec
    { codecSchema =
        object
          [ "type" .= ("object" :: Text),
            "description" .= about,
            "properties"
              .= object [Key.fromText name .= schema | (name, schema) <- fieldsSchema fields],
            "required" .= map fst (fieldsSchema fields)
          ],
      codecDefinitions = fieldsDefinitions fields,
      codecWrite = object . fieldsWrite fields,
      codecRead = withObject "object" (fieldsRead fields)
    }

-- | An object with further fields.
withFields :: [Pair] -> Value -> Value
withFields more = \case
  Object fields -> Object (fields <> KeyMap.fromList more)
  other -> other
