module Redis.DecodeSpec (spec) where

import Data.ByteString qualified as ByteString
import Data.Either (isLeft)
import Redis.Command
import Redis.Commands (eval, mget, raw)
import Redis.Decode qualified as Decode
import Redis.Error (DecodeError (..))
import Redis.Internal.Protocol.Encode (requestBytes)
import Redis.Value (Value (..))
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Decode" $ do
  it "reads strings of every kind" $
    traverse Decode.bytes [BulkString "a", SimpleString "b", VerbatimString "txt" "c", WithAttributes [] (BulkString "d")]
      `shouldBe` Right ["a", "b", "c", "d"]

  it "reads doubles of both protocols" $
    traverse
      Decode.double
      [ Double 1.5,
        BulkString "1.5",
        BulkString "3",
        BulkString "-2",
        BulkString "1e+20",
        BulkString "1.5e-7",
        Integer 7,
        BulkString "inf",
        BulkString "-inf"
      ]
      `shouldBe` Right [1.5, 1.5, 3, -2, 1e20, 1.5e-7, 7, 1 / 0, -1 / 0]

  it "reads no number where there is none" $
    [() | Right _ <- map (Decode.double . BulkString) ["", "1+2", "one", "0x10", "1e", "--1", " 1"]] `shouldBe` []

  it "reads nothing of a reply that is ignored" $
    traverse Decode.ignored [Null, Integer 1, Array [BulkString "a"]] `shouldBe` Right [(), (), ()]

  it "reads truth of both protocols" $ do
    traverse Decode.boolean [Integer 0, Integer 1, Boolean False, Boolean True] `shouldBe` Right [False, True, False, True]
    Decode.boolean (Integer 2) `shouldSatisfy` isLeft

  it "reads maps of both protocols alike" $ do
    let expected = Right [("a", 1), ("b", 2)]
        reads' = Decode.pairs Decode.bytes Decode.integer
    reads' (Map [(BulkString "a", Integer 1), (SimpleString "b", Integer 2)]) `shouldBe` expected
    reads' (Array [BulkString "a", Integer 1, BulkString "b", Integer 2]) `shouldBe` expected
    reads' (Array [BulkString "a", Integer 1, BulkString "b"]) `shouldSatisfy` isLeft

  it "reads arrays and sets alike" $ do
    Decode.list Decode.integer (Array [Integer 1, Integer 2]) `shouldBe` Right [1, 2]
    Decode.list Decode.integer (Set [Integer 1, WithAttributes [] (Integer 2)]) `shouldBe` Right [1, 2]

  it "counts the elements where their number is known" $ do
    Decode.listOf 2 Decode.integer (Array [Integer 1, Integer 2]) `shouldBe` Right [1, 2]
    Decode.listOf 2 Decode.integer (Array [Integer 1]) `shouldSatisfy` isLeft
    Decode.listOf 2 Decode.integer (Array [Integer 1, Integer 2, Integer 3]) `shouldSatisfy` isLeft

  it "tells null from a value" $ do
    Decode.nullable Decode.bytes Null `shouldBe` Right Nothing
    Decode.nullable Decode.bytes (WithAttributes [] Null) `shouldBe` Right Nothing
    Decode.nullable Decode.bytes (BulkString "") `shouldBe` Right (Just "")
    Decode.bytes Null `shouldSatisfy` isLeft

  it "takes only OK for OK" $ do
    Decode.okay (SimpleString "OK") `shouldBe` Right ()
    mapM_ (\reply -> Decode.okay reply `shouldSatisfy` isLeft) [SimpleString "QUEUED", Null, Integer 1, ErrorReply "ERR OK"]

  it "finds fields, and says which is missing" $ do
    let fields = [("a", Integer 1)]
    Decode.field "a" Decode.integer fields `shouldBe` Right 1
    either decodeErrorExpected (const "") (Decode.field "b" Decode.integer fields) `shouldContain` "\"b\""
    Decode.optionalField "b" Decode.integer fields `shouldBe` Right Nothing
    Decode.optionalField "a" Decode.bytes fields `shouldSatisfy` isLeft

  prop "shortens what came instead, whatever it is" $
    forAll hugeValue $ \reply ->
      case Decode.mismatch "nothing" reply :: Either DecodeError () of
        Left failure -> length (decodeErrorGot failure) <= 121
        Right () -> False

  describe "decodedBy" $ do
    it "keeps everything but the decoder" $ do
      let original = eval "s" ["k"] ["x"]
          changed = original `Decode.decodedBy` Decode.integer
      commandName changed `shouldBe` commandName original
      requestBytes (commandRequest changed) `shouldBe` requestBytes (commandRequest original)
      commandFacts changed `shouldBe` commandFacts original
      commandDecode changed (Integer 3) `shouldBe` Right 3
      commandDecode changed Null `shouldSatisfy` isLeft
    it "no longer splits" $ do
      let changed = (Null <$ mget (pure "a" <> pure "b")) `Decode.decodedBy` Decode.value
      case commandRoute changed of
        SameSlot keys -> keys `shouldBe` pure "a" <> pure "b"
        _ -> expectationFailure "expected keys of one slot"
    it "asks the server where the command would" $
      case commandRoute (raw ["NOSUCH", "a"] `Decode.decodedBy` Decode.integer) of
        AskServer arguments -> arguments `shouldBe` ["NOSUCH", "a"]
        _ -> expectationFailure "expected to ask the server"

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
