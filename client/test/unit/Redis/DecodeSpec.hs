module Redis.DecodeSpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isLeft)
import Data.Int (Int64)
import Data.Map.Strict qualified as Map
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.Command
import Redis.Commands (eval, raw)
import Redis.Decode qualified as Decode
import Redis.Error (DecodeError (..))
import Redis.Internal.Command (Command (commandDecode))
import Redis.Internal.Protocol.Decode (Limits (..), decodeBytes, limitsDefaults)
import Redis.ReplyShapes
import Redis.Value (NullForm, Value (..))
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Decode" $ do
  describe "single values" singleValues
  describe "aggregates" aggregates
  describe "what servers answer" (mapM_ answered shapes)
  describe "errors" errors
  describe "large replies" largeReplies
  describe "decodedBy" $ do
    it "keeps everything but the decoder" $ do
      let original = eval "s" ["k"] ["x"]
          changed = original `decodedBy` Decode.integer
      commandArguments changed `shouldBe` commandArguments original
      commandKeys changed `shouldBe` commandKeys original
      commandFacts changed `shouldBe` commandFacts original
      commandDecode changed (Integer 3) `shouldBe` Right 3
      commandDecode changed Null `shouldSatisfy` isLeft
    it "reads what the command itself makes of a reply" $
      commandDecode ((Integer 7 <$ raw ["NOSUCH", "a"]) `decodedBy` Decode.integer) Null `shouldBe` Right 7

singleValues :: Spec
singleValues = do
  it "reads strings of every kind" $
    traverse Decode.bytes [BulkString "a", SimpleString "b", VerbatimString "txt" "c", WithAttributes [] (BulkString "d")]
      `shouldBe` Right ["a", "b", "c", "d"]

  it "reads integers, and their text" $
    traverse
      Decode.integer
      [ Integer 1,
        BulkString "2",
        SimpleString "-3",
        BigNumber 4,
        BulkString "-9223372036854775808",
        WithAttributes [] (Integer 6)
      ]
      `shouldBe` Right [1, 2, -3, 4, minBound, 6]

  it "reads no integer where there is none, or a larger one" $
    [ reply
      | reply <-
          map BulkString ["", "1.5", "one", " 1", "1 ", "9223372036854775808", "-9223372036854775809", Char8.replicate 1000 '1']
            <> [BigNumber (2 ^ (63 :: Int)), BigNumber (negate (2 ^ (63 :: Int)) - 1), Double 1, Boolean True, Null],
        Right _ <- [Decode.integer reply]
    ]
      `shouldBe` []

  it "reads doubles of both protocols" $
    traverse
      Decode.double
      [ Double 1.5,
        BulkString "1.5",
        SimpleString "3",
        BulkString "-2",
        BulkString "1e+20",
        BulkString "1.5e-7",
        Integer 7,
        BigNumber (10 ^ (20 :: Int)),
        BulkString "inf",
        BulkString "-inf"
      ]
      `shouldBe` Right [1.5, 1.5, 3, -2, 1e20, 1.5e-7, 7, 1e20, 1 / 0, -1 / 0]

  it "reads no number where there is none" $
    [() | Right _ <- map (Decode.double . BulkString) ["", "1+2", "one", "0x10", "1e", "--1", " 1"]] `shouldBe` []

  it "reads nothing of a reply that is ignored" $
    traverse Decode.ignored [Null, Integer 1, Array [BulkString "a"]] `shouldBe` Right [(), (), ()]

  it "reads truth of both protocols" $ do
    traverse Decode.boolean [Integer 0, Integer 1, Boolean False, Boolean True] `shouldBe` Right [False, True, False, True]
    Decode.boolean (Integer 2) `shouldSatisfy` isLeft

  it "reads points in time from seconds and from milliseconds" $ do
    Decode.unixSeconds (Integer 1700000000) `shouldBe` Right (posixSecondsToUTCTime 1700000000)
    Decode.unixMilliseconds (BulkString "1700000000123") `shouldBe` Right (posixSecondsToUTCTime 1700000000.123)

  it "tells a null of any form from a value" $ do
    let forms = map NullOf [minBound .. maxBound :: NullForm]
    traverse (Decode.nullable Decode.bytes) forms `shouldBe` Right [Nothing, Nothing, Nothing]
    traverse (Decode.present Decode.okay) forms `shouldBe` Right [False, False, False]
    Decode.nullable Decode.bytes (WithAttributes [] Null) `shouldBe` Right Nothing
    Decode.nullable Decode.bytes (BulkString "") `shouldBe` Right (Just "")
    Decode.present Decode.okay (SimpleString "OK") `shouldBe` Right True
    [() | Right _ <- map Decode.bytes forms] `shouldBe` []

  it "takes only OK for OK" $ do
    traverse Decode.okay [SimpleString "OK", BulkString "OK", WithAttributes [] (SimpleString "OK")] `shouldBe` Right [(), (), ()]
    mapM_ (\reply -> Decode.okay reply `shouldSatisfy` isLeft) [SimpleString "QUEUED", Null, Integer 1, ErrorReply "ERR OK"]

  it "takes the second reading where the first one fails" $ do
    let either' = fmap Left . Decode.integer `Decode.orElse` fmap Right . Decode.list Decode.integer
    either' (Integer 1) `shouldBe` Right (Left 1)
    either' (Array [Integer 1]) `shouldBe` Right (Right [1 :: Int64])

aggregates :: Spec
aggregates = do
  it "reads arrays and sets alike" $ do
    Decode.list Decode.integer (Array [Integer 1, Integer 2]) `shouldBe` Right [1, 2]
    Decode.list Decode.integer (Set [Integer 1, WithAttributes [] (Integer 2)]) `shouldBe` Right [1, 2]
    Decode.list Decode.integer Null `shouldSatisfy` isLeft

  it "counts the elements where their number is known" $ do
    Decode.listOf 2 Decode.integer (Array [Integer 1, Integer 2]) `shouldBe` Right [1, 2]
    Decode.listOf 2 Decode.integer (Array [Integer 1]) `shouldSatisfy` isLeft
    Decode.listOf 2 Decode.integer (Array [Integer 1, Integer 2, Integer 3]) `shouldSatisfy` isLeft
    Decode.pair Decode.integer Decode.bytes (Array [Integer 1, BulkString "a"]) `shouldBe` Right (1, "a")
    Decode.triple Decode.integer Decode.bytes Decode.value (Array [Integer 1, BulkString "a", Null]) `shouldBe` Right (1, "a", Null)
    [() | Right _ <- map (Decode.pair Decode.value Decode.value . Array . flip replicate Null) [0, 1, 3]] `shouldBe` []
    [() | Right _ <- map (Decode.triple Decode.value Decode.value Decode.value . Array . flip replicate Null) [0, 2, 4]] `shouldBe` []

  prop "reads keys and values from a map, in turn, and by twos" $
    forAll (listOf ((,) <$> someText <*> arbitrary)) $ \expected ->
      let value (key, number) = (BulkString key, Integer number)
          inTurn (key, number) = [BulkString key, Integer number]
          reads' = Decode.pairs Decode.bytes Decode.integer
       in conjoin
            [ reads' (Map (map value expected)) === Right expected,
              reads' (Array (concatMap inTurn expected)) === Right expected,
              reads' (Array (map (Array . inTurn) expected)) === Right expected,
              Decode.mapping Decode.bytes Decode.integer (Map (map value expected)) === Right (Map.fromList expected)
            ]

  it "reads arrays as values in turn, even if they are of two" $
    Decode.pairs Decode.bytes (Decode.list Decode.integer) (Array [BulkString "a", Array [Integer 1, Integer 2]])
      `shouldBe` Right [("a", [1, 2])]

  it "reads no pairs where a value is missing, or one too many" $ do
    let reads' = Decode.pairs Decode.bytes Decode.integer
        two = Array [BulkString "a", Integer 1]
    mapM_
      (\reply -> reads' reply `shouldSatisfy` isLeft)
      [ Array [BulkString "a", Integer 1, BulkString "b"],
        Array [two, Array [BulkString "b"]],
        Array [two, Array [BulkString "b", Integer 2, Integer 3]],
        Array [two, BulkString "b"],
        Array [BulkString "a", Integer 1, two],
        Null
      ]

  it "finds fields, and elements, that may be absent" $ do
    let fields = [("a", Integer 1)]
    Decode.field "a" Decode.integer fields `shouldBe` Right 1
    Decode.optionalField "b" Decode.integer fields `shouldBe` Right Nothing
    Decode.optionalField "a" Decode.bytes fields `shouldSatisfy` isLeft
    Decode.element 1 Decode.integer [Null, Integer 1] `shouldBe` Right 1
    Decode.element 2 Decode.integer [Null, Integer 1] `shouldSatisfy` isLeft
    Decode.optionalElement 2 Decode.integer [Null, Integer 1] `shouldBe` Right Nothing
    Decode.optionalElement 1 Decode.bytes [Null, Integer 1] `shouldSatisfy` isLeft

-- | Checks the recorded replies of a server, from which the library's decoders were written.
answered :: Shape -> Spec
answered Shape {shapeName, shapeResp2, shapeResp3, shapeMeaning = Meaning decoder expected} = do
  it ("means the same with both protocols: " <> shapeName) $
    map (fmap decoder . parsed) [shapeResp2, shapeResp3] `shouldBe` [Just (Right expected), Just (Right expected)]
  it ("means the same with attributes everywhere: " <> shapeName) $
    map (fmap (decoder . attributed) . parsed) [shapeResp2, shapeResp3] `shouldBe` [Just (Right expected), Just (Right expected)]
  where
    parsed bytes = case decodeBytes limits bytes of
      Right (reply, "") -> Just reply
      _ -> Nothing
    limits = limitsDefaults {limitBulkBytes = 65536, limitElements = 1024, limitDepth = 16}

-- | Adds attributes to every value.
attributed :: Value -> Value
attributed reply = WithAttributes [(BulkString "ttl", Integer 1)] $ case reply of
  Array parts -> Array (map attributed parts)
  Set parts -> Set (map attributed parts)
  Map entries -> Map [(attributed key, attributed one) | (key, one) <- entries]
  WithAttributes _ inner -> attributed inner
  other -> other

errors :: Spec
errors = do
  it "say where in the reply" $ do
    let shards = Decode.list $ \one -> Decode.record one >>= Decode.field "epoch" Decode.integer
        shard name epoch = Map [(BulkString "id", Integer 1), (BulkString name, epoch)]
    failing (shards (Array [shard "epoch" (Integer 1), shard "epoch" (BulkString "x")]))
      `shouldBe` Just (["element 1", "field \"epoch\""], "an integer", "BulkString \"x\"")
    failing (shards (Array [shard "time" (Integer 1)]))
      `shouldBe` Just (["element 0"], "a field \"epoch\"", "fields [\"id\",\"time\"]")
    failing (shards (Integer 1)) `shouldBe` Just ([], "an array", "Integer 1")

  it "name the key, or the place, of a value that cannot be read" $ do
    let reads' = Decode.pairs Decode.bytes Decode.integer
    failing (reads' (Array [BulkString "a", Integer 1, BulkString "b", Null])) `shouldBe` Just (["field \"b\""], "an integer", "null")
    failing (reads' (Map [(Null, Integer 1)])) `shouldBe` Just (["a key"], "a string", "null")
    failing (reads' (Array [Array [BulkString "a", Integer 1], Array [BulkString "b", Null]]))
      `shouldBe` Just (["element 1", "element 1"], "an integer", "null")
    failing (Decode.triple Decode.value Decode.value Decode.integer (Array [Null, Null, BulkString "x"]))
      `shouldBe` Just (["element 2"], "an integer", "BulkString \"x\"")
    failing (Decode.element 3 Decode.integer [Null]) `shouldBe` Just ([], "an array of at least 4", "an array of 1")
    failing (Decode.optionalElement 0 Decode.integer [Null]) `shouldBe` Just (["element 0"], "an integer", "null")

  it "are, of two readings that fail, that of the one that came further" $ do
    let reads' = Decode.list Decode.integer `Decode.orElse` fmap pure . Decode.integer
    failing (reads' (Array [BulkString "x"])) `shouldBe` Just (["element 0"], "an integer", "BulkString \"x\"")
    failing (reads' Null) `shouldBe` Just ([], "an array or an integer", "null")

  prop "are short, whatever came" $
    forAll hugeValue $ \reply ->
      let short DecodeError {decodeErrorPath, decodeErrorExpected, decodeErrorGot} =
            all ((<= 140) . length) (decodeErrorExpected : decodeErrorGot : decodeErrorPath)
       in conjoin
            [ property (either short (const False) (Decode.mismatch "nothing" reply :: Either DecodeError ())),
              property (either short (const False) (Decode.pairs Decode.value Decode.okay (Map [(reply, reply)]))),
              property (either short (const False) (Decode.field "a" Decode.okay (replicate 100000 ("b", reply))))
            ]

failing :: Either DecodeError a -> Maybe ([String], String, String)
failing = \case
  Left DecodeError {decodeErrorPath, decodeErrorExpected, decodeErrorGot} -> Just (decodeErrorPath, decodeErrorExpected, decodeErrorGot)
  Right _ -> Nothing

largeReplies :: Spec
largeReplies = do
  it "are read to the end" $ do
    (length <$> Decode.list (Decode.nullable Decode.bytes) (Array (replicate 1000000 Null))) `shouldBe` Right 1000000
    (length <$> Decode.pairs Decode.bytes Decode.integer (Array (concat (replicate 500000 [BulkString "a", Integer 1])))) `shouldBe` Right 500000

  it "of which the last element is wrong are refused at once" $
    failing (Decode.list Decode.integer (Array (replicate 1000000 (Integer 1) <> [Null]))) `shouldBe` Just (["element 1000000"], "an integer", "null")

someText :: Gen ByteString
someText = ByteString.pack <$> arbitrary

hugeValue :: Gen Value
hugeValue =
  elements
    [ BulkString (ByteString.replicate 1000000 120),
      BulkString (ByteString.replicate 1000000 0),
      Array (replicate 100000 (Integer 1)),
      Array [BulkString (ByteString.replicate 1000000 120)],
      Map (replicate 100000 (Null, Null)),
      Integer 1
    ]
