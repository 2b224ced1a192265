module Tool.Bench.Workload.ValuesSpec (spec) where

import Codec.Compression.Zlib qualified as Zlib
import Data.ByteString qualified as ByteString
import Data.ByteString.Lazy qualified as Lazy
import Data.List.NonEmpty (NonEmpty (..))
import Data.Map.Strict qualified as Map
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.Bench.Workload.Syntax (parse)
import Tool.Bench.Workload.Values

spec :: Spec
spec = describe "Tool.Bench.Workload.Values" $ do
  prop "gives every key the same value every time, and knows it again" $
    forAll sizes $ \wanted -> forAll (choose (0, 1000000)) $ \number ->
      let values = newValues 1 wanted Nothing
       in valueOf values number === valueOf (newValues 1 wanted Nothing) number
            .&&. holds values number (valueOf values number)

  prop "keeps to the sizes that are wanted" $
    forAll sizes $ \wanted -> forAll (choose (0, 1000000)) $ \number ->
      let length' = ByteString.length (valueOf (newValues 1 wanted Nothing) number)
       in case wanted of
            SizeFixed one -> length' === one
            SizeRange from to -> property (length' >= from && length' <= to)
            SizeWeighted several -> property (length' `elem` fmap fst several)

  it "takes each size as often as its weight says" $ do
    let values = newValues 1 (SizeWeighted ((32, 5) :| [(1024, 3)])) Nothing
        found = Map.fromListWith (+) [(ByteString.length (valueOf values number), 1) | number <- [0 .. 79999]] :: Map.Map Int Int
    -- The standard deviation is 137.
    Map.findWithDefault 0 32 found `shouldSatisfy` (\count -> abs (count - 50000) < 700)
    sum found `shouldBe` 80000

  it "takes every size of a range as often" $ do
    let values = newValues 1 (SizeRange 10 19) Nothing
        found = Map.fromListWith (+) [(ByteString.length (valueOf values number), 1) | number <- [0 .. 99999]] :: Map.Map Int Int
    Map.keys found `shouldBe` [10 .. 19]
    -- The standard deviation is 95.
    Map.elems found `shouldSatisfy` all (\count -> abs (count - 10000) < 480)

  it "gives neighbouring keys different values" $ do
    let values = newValues 1 (SizeFixed 64) Nothing
    length (filter id [valueOf values number == valueOf values (number + 1) | number <- [0 .. 999]]) `shouldSatisfy` (< 5)

  it "makes values that compress as far as asked" $ do
    let compressed share =
          let whole = Lazy.fromStrict (valueOf (newValues 1 (SizeFixed 100000) (Just share)) 5)
           in fromIntegral (Lazy.length (Zlib.compress whole)) / 100000 :: Double
    compressed 0 `shouldSatisfy` (> 0.98)
    compressed 0.5 `shouldSatisfy` (\left -> left > 0.49 && left < 0.57)
    compressed 1 `shouldSatisfy` (< 0.01)

  prop "reads what it writes" $
    forAll sizes $ \wanted -> parse valueSizes (describeSizes wanted) === Right wanted

  it "reads units, and says what it cannot read, and where" $ do
    parse valueSizes "1k-2m" `shouldBe` Right (SizeRange 1024 2097152)
    parse valueSizes "32:5,1k:3" `shouldBe` Right (SizeWeighted ((32, 5) :| [(1024, 3)]))
    parse valueSizes "" `shouldBe` Left "expected a number of bytes at column 1 of \"\""
    parse valueSizes "100-2" `shouldBe` Left "the range ends before it begins at column 6 of \"100-2\""
    parse valueSizes "32:5,64" `shouldBe` Left "expected : and a weight at column 8 of \"32:5,64\""
    parse valueSizes "1g" `shouldBe` Left "cannot read \"g\" at column 2 of \"1g\""
    parse valueSizes "99999999999999999999"
      `shouldBe` Left "a number of bytes can be 268435456 at most, not 99999999999999999999 at column 21 of \"99999999999999999999\""
  where
    sizes =
      oneof
        [ SizeFixed <$> choose (0, 3000),
          (\one other -> SizeRange (min one other) (max one other)) <$> choose (0, 500) <*> choose (0, 500),
          (\first others -> SizeWeighted (first :| others)) <$> weighted <*> listOf weighted
        ]
    weighted = (,) <$> choose (0, 300) <*> choose (1, 9)
