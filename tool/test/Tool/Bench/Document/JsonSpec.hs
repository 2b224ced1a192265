module Tool.Bench.Document.JsonSpec (spec) where

import Data.Aeson (Value (..), decode, encode, object, (.=))
import Data.Aeson.Key qualified as Key
import Data.Aeson.Types (parseMaybe, withObject, (.:))
import Data.ByteString qualified as ByteString
import Data.ByteString.Lazy qualified as Lazy
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, mapMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Sample
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck hiding (sample)
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Document.Json

field :: Text -> Value -> Maybe Value
field name = parseMaybe (withObject "object" (.: Key.fromText name))

-- | The only run of the document as JSON.
written :: Run -> Maybe Value
written run = case field "runs" (documentValue (sampleDocument [run])) >>= parseMaybe list of
  Just [one] -> Just one
  _ -> Nothing
  where
    list = \case
      Array values -> pure (foldr (:) [] values)
      _ -> fail "no list"

-- | The value's violations of a schema. It covers as much of JSON Schema as our schema uses.
violations :: Value -> Value -> [Text]
violations schema value = case field "$ref" schema of
  Just (String place) -> case Text.stripPrefix "#/$defs/" place >>= \name -> field "$defs" documentSchema >>= field name of
    Just definition -> violations definition value
    Nothing -> ["no definition at " <> place]
  _ -> own schema value

own :: Value -> Value -> [Text]
own schema value =
  concat
    [ [Text.pack ("not " <> show kind <> ": " <> take 80 (show value)) | Just (String kind) <- [field "type" schema], not (hasType kind)],
      ["none of " <> Text.pack (show choices) | Just (Array choices) <- [field "enum" schema], value `notElem` choices],
      [ "fits no form: " <> Text.pack (take 80 (show value))
        | Just (Array forms) <- [field "anyOf" schema],
          not (any (null . (`violations` value)) forms)
      ],
      [ "lacks " <> name
        | Just (Array names) <- [field "required" schema],
          String name <- foldr (:) [] names,
          name `notElem` Map.keys fields
      ],
      concat [under name (violations inner one) | (name, one) <- Map.toList fields, Just inner <- [Map.lookup name properties]],
      [ "has a field without a description: " <> name
        | not (Map.null properties),
          name <- Map.keys fields,
          Map.notMember name properties
      ],
      concat [under name (violations inner one) | Just inner <- [field "additionalProperties" schema], (name, one) <- Map.toList fields],
      concat [concatMap (violations inner) items | Just inner <- [field "items" schema], Array items <- [value]]
    ]
  where
    properties = maybe Map.empty asMap (field "properties" schema)
    fields = asMap value
    under name = map ((name <> ": ") <>)
    hasType = \case
      "object" -> case value of Object _ -> True; _ -> False
      "array" -> case value of Array _ -> True; _ -> False
      "string" -> case value of String _ -> True; _ -> False
      "boolean" -> case value of Bool _ -> True; _ -> False
      "null" -> value == Null
      "integer" -> case value of Number n -> n == fromInteger (round n); _ -> False
      "number" -> case value of Number _ -> True; _ -> False
      _ -> False

asMap :: Value -> Map Text Value
asMap value = fromMaybe Map.empty (decode (encode value))

spec :: Spec
spec = describe "Tool.Bench.Document.Json" $ do
  it "names its schema" $
    field "schema" (documentValue (sampleDocument [sample])) `shouldBe` Just "redis-client-bench/1"

  it "has the four fields that other harnesses write" $
    map (\name -> written sample >>= field name) ["operation", "ops_per_sec", "duration_sec", "total_ops"]
      `shouldBe` map Just [String "mixed", Number 500, Number 2, Number 1000]

  it "writes latencies in nanoseconds" $
    (written sample >>= field "latency_ns" >>= field "max") `shouldBe` Just (Number 1000000)

  modifyMaxSuccess (const 40) . prop "reads what it writes, whatever there is, and stays within the schema" $
    forAll (scale (min 12) anyDocument) $ \document -> do
      let bytes = Lazy.toStrict (encode (documentObject ["gate" .= object []] document))
      conjoin
        [ decodeDocument bytes === Right document,
          violations documentSchema (documentValue document) === []
        ]

  it "publishes the schema that it keeps to" $ do
    published <- ByteString.readFile "../docs/schema/bench-1.json"
    decode (Lazy.fromStrict published) `shouldBe` Just documentSchema

  it "knows a value that the schema forbids" $ do
    let broken = case documentValue (sampleDocument [sample]) of
          Object fields -> Object (wrong <> fields)
          other -> other
        wrong = case object ["runs" .= ("none" :: Text)] of
          Object it' -> it'
          _ -> mempty
    violations documentSchema (object []) `shouldSatisfy` (not . null)
    mapMaybe (Text.stripPrefix "runs: ") (violations documentSchema broken) `shouldSatisfy` (not . null)

  it "reads no other schema, and says which it is" $ do
    decodeDocument "{\"schema\":\"other/1\",\"runs\":[]}"
      `shouldBe` Left "its schema is \"other/1\", not \"redis-client-bench/1\""
    decodeDocument "{}" `shouldSatisfy` refused
    decodeDocument "[1, 2" `shouldBe` Left "not JSON"

  it "says where a document is broken" $
    case decodeDocument "{\"schema\":\"redis-client-bench/1\",\"manifest\":{\"tool\":7}}" of
      Left problem -> problem `shouldContain` "$.manifest.tool"
      Right _ -> expectationFailure "it was read"
  where
    refused = either (const True) (const False)
