-- | JSON described once and used three times: a 'Codec' writes a value, reads it back, and states
-- the JSON schema of what it writes. So the three cannot drift apart, and the published schema is
-- generated from the code.
--
-- A record is put together field by field, in the order of its constructor:
--
-- > point = record "A place." $ Point
-- >   <$> field "x" "Metres." pointX number
-- >   <*> field "y" "Metres." pointY number
--
-- A 'derived' field is written for the convenience of other programs and ignored when reading,
-- because it follows from the rest.
module Tool.Bench.Document.Codec
  ( -- * Values
    Codec (..),
    text,
    int,
    integer,
    word64,
    number,
    bool,
    list,
    mapOf,
    nullable,
    oneOf,
    Variant,
    variant,
    constants,
    refined,
    named,

    -- * Records
    Fields,
    record,
    field,
    derived,
  )
where

import Control.Applicative ((<|>))
import Control.Monad (void)
import Data.Aeson
  ( FromJSON (parseJSON),
    ToJSON (toJSON),
    Value (..),
    object,
    withObject,
    (.:?),
    (.=),
  )
import Data.Aeson.Key qualified as Key
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

plain :: (FromJSON a, ToJSON a) => Text -> Codec a
plain name =
  Codec
    { codecSchema = object ["type" .= name],
      codecDefinitions = Map.empty,
      codecWrite = toJSON,
      codecRead = parseJSON
    }

-- | A string.
text :: Codec Text
text = plain "string"

-- | A whole number.
int :: Codec Int
int = plain "integer"

-- | A whole number of any size.
integer :: Codec Integer
integer = plain "integer"

-- | A 64-bit whole number that is not negative.
word64 :: Codec Word64
word64 = plain "integer"

-- | A number. Infinity and not-a-number (0/0) are written as 0.
number :: Codec Double
number = (plain "number") {codecWrite = toJSON . finite}
  where
    finite x = if isNaN x || isInfinite x then 0 else x

-- | Yes or no.
bool :: Codec Bool
bool = plain "boolean"

-- | A list, in order.
list :: Codec a -> Codec [a]
list one =
  Codec
    { codecSchema = object ["type" .= ("array" :: Text), "items" .= codecSchema one],
      codecDefinitions = codecDefinitions one,
      codecWrite = toJSON . map (codecWrite one),
      codecRead = listParser (codecRead one)
    }

-- | An object with any field names.
mapOf :: Codec a -> Codec (Map Text a)
mapOf one =
  Codec
    { codecSchema =
        object
          [ "type" .= ("object" :: Text),
            "additionalProperties" .= codecSchema one
          ],
      codecDefinitions = codecDefinitions one,
      codecWrite = toJSON . fmap (codecWrite one),
      codecRead = \value -> parseJSON value >>= Map.traverseWithKey inside
    }
  where
    inside name value = codecRead one value <?> Aeson.Key (Key.fromText name)

-- | @null@ for 'Nothing'.
nullable :: Codec a -> Codec (Maybe a)
nullable one =
  Codec
    { codecSchema = object ["anyOf" .= [codecSchema one, object ["type" .= ("null" :: Text)]]],
      codecDefinitions = codecDefinitions one,
      codecWrite = maybe Null (codecWrite one),
      codecRead = \case
        Null -> pure Nothing
        value -> Just <$> codecRead one value
    }

-- | A codec for the same JSON with another type in the program. The conversion when reading may
-- fail with an error message.
refined :: (a -> Either String b) -> (b -> a) -> Codec a -> Codec b
refined to from codec =
  Codec
    { codecSchema = codecSchema codec,
      codecDefinitions = codecDefinitions codec,
      codecWrite = codecWrite codec . from,
      codecRead = \value -> codecRead codec value >>= either fail pure . to
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
named name codec =
  codec
    { codecSchema = object ["$ref" .= ("#/$defs/" <> name)],
      codecDefinitions = Map.insert name (codecSchema codec) (codecDefinitions codec)
    }

-- | One way in which a type can be written.
data Variant a = Variant
  { variantSchema :: Value,
    variantDefinitions :: Map Text Value,
    variantWrite :: a -> Maybe Value,
    variantRead :: Value -> Parser a
  }

-- | A variant for the values for which the first function returns a result.
variant :: (a -> Maybe b) -> (b -> a) -> Codec b -> Variant a
variant from to codec =
  Variant
    { variantSchema = codecSchema codec,
      variantDefinitions = codecDefinitions codec,
      variantWrite = fmap (codecWrite codec) . from,
      variantRead = fmap to . codecRead codec
    }

-- | Writes and reads with the first variant that fits. Together the variants must fit every value.
oneOf :: [Variant a] -> Codec a
oneOf variants =
  Codec
    { codecSchema = object ["anyOf" .= map variantSchema variants],
      codecDefinitions = Map.unions (map variantDefinitions variants),
      codecWrite = \value -> fromMaybe Null (asum (map (`variantWrite` value) variants)),
      codecRead =
        \value -> asum (map (`variantRead` value) variants) <|> fail "none of the forms it may have"
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
  pure value =
    Fields
      { fieldsSchema = [],
        fieldsDefinitions = Map.empty,
        fieldsWrite = const [],
        fieldsRead = const (pure value)
      }
  one <*> other =
    Fields
      { fieldsSchema = fieldsSchema one <> fieldsSchema other,
        fieldsDefinitions = Map.union (fieldsDefinitions one) (fieldsDefinitions other),
        fieldsWrite = \r -> fieldsWrite one r <> fieldsWrite other r,
        fieldsRead = \whole -> fieldsRead one whole <*> fieldsRead other whole
      }

-- | A field: its name, its description, how to get it from the record. A field that may be @null@
-- may also be absent when reading.
field :: Text -> Text -> (r -> a) -> Codec a -> Fields r a
field name about get codec =
  Fields
    { fieldsSchema = [(name, described about (codecSchema codec))],
      fieldsDefinitions = codecDefinitions codec,
      fieldsWrite = \r -> [Key.fromText name .= codecWrite codec (get r)],
      fieldsRead = \whole ->
        (whole .:? Key.fromText name :: Parser (Maybe Value)) >>= \case
          -- Absent or null: fine for a codec that reads null.
          Nothing -> codecRead codec Null <|> present whole
          Just _ -> present whole
    }
  where
    present whole = explicitParseField (codecRead codec) whole (Key.fromText name)

-- | A field that is only written.
derived :: Text -> Text -> (r -> a) -> Codec a -> Fields r ()
derived name about get codec = (void (field name about get codec)) {fieldsRead = const (pure ())}

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

described :: Text -> Value -> Value
described about = \case
  Object schema -> Object (schema <> aboutIt)
  other -> other
  where
    aboutIt = case object ["description" .= about] of
      Object it -> it
      _ -> mempty
