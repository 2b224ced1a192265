module Compare.StreamSpec (spec) where

import Compare.Stream
import Data.ByteString.Char8 qualified as Char8
import Test.Hspec

spec :: Spec
spec = describe "the stream of operations" $ do
  it "is the one that the protocol shows" $ do
    let words' caller = map wordOf (drop 1 (iterate nextState (firstState 1 caller)))
    take 3 (words' 0) `shouldBe` [0x528bbb6dbfaaa791, 0x8fee789c5ebd96ec, 0xc86a2a4fa044ff78]
    map (keyNumber 100000) (take 8 (words' 0)) `shouldBe` [32244, 56223, 78286, 54273, 48672, 89443, 10618, 46900]
    map (keyNumber 100000) (take 3 (words' 1)) `shouldBe` [53093, 97538, 8131]
    map (isSet (setsBelow 5)) (take 8 (words' 0)) `shouldBe` replicate 5 False <> replicate 3 True
  it "has the sums that the protocol shows" $ do
    streamCheck 1 `shouldBe` 0x5f56f20d880d596e
    streamCheck 7 `shouldBe` 0x302a9ef91264acd4
  it "never sets when nothing is to be set, and always when everything is" $ do
    isSet (setsBelow 0) 0 `shouldBe` False
    isSet (setsBelow 1) maxBound `shouldBe` True
  it "names keys and slices values as the protocol shows" $ do
    let keyspace = newKeyspace PresentKeys 100000 16 512
    keyOf keyspace 42 `shouldBe` "key:000000000042"
    map (Char8.take 16 . valueOf keyspace) [0, 1, 42, 99999]
      `shouldBe` ["iotzlltwnhukplnl", "spaywnwxwrixajtf", "pwyhnzbvaxofspnd", "ujxopyaodnlnwprr"]
    map (Char8.length . valueOf keyspace) [0, 42] `shouldBe` [512, 512]
    keyOf (newKeyspace AbsentKeys 100 16 512) 42 `shouldBe` "mis:000000000042"
