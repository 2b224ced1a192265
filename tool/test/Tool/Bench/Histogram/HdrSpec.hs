module Tool.Bench.Histogram.HdrSpec (spec) where

import Data.ByteString qualified as ByteString
import Sample (anyHistogram)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Histogram.Hdr

spec :: Spec
spec = describe "Tool.Bench.Histogram.Hdr" $ do
  prop "loses no count on the way there and back" $
    forAll anyHistogram $ \histogram ->
      fmap Histogram.buckets (decode (encode histogram)) === Right (Histogram.buckets histogram)

  prop "keeps every percentile where it was" $
    forAll anyHistogram $ \histogram ->
      forAll (choose (0, 100)) $ \percent ->
        case decodeText (encodeText histogram) of
          Left problem -> counterexample problem False
          Right read' -> close (Histogram.percentile percent histogram) (Histogram.percentile percent read')

  it "reads what other implementations wrote" $ do
    -- One value, 42.
    fmap summary (decodeText "HISTFAAAAB542pNpmSzMwMDAxAABzFCaEUoz2X+AMIKZAEARAtM=") `shouldBe` Right (1, 42, 42)
    -- No value.
    fmap summary (decodeText "HISTFAAAABl4nJNpmSzMgADMUFoEyn1h/wHCAgBDogN4") `shouldBe` Right (0, 0, 0)
    -- Nanoseconds with two digits; the largest is in the bucket that ends at 17.957 ms.
    case decodeText "HISTFAAAADF42pNpmSzMwMAgxAABTFCaEUz8///f/gNEYLcCkybTYUYmaSZLlmgWSSZuJgDfkAg4" of
      Left problem -> expectationFailure problem
      Right found -> Histogram.maximumValue found `shouldBe` 17956864 - 65536

  prop "says what is wrong with bytes that are none, and never fails otherwise" $
    forAll anyHistogram $ \histogram ->
      forAll (choose (0, 200)) $ \place ->
        forAll arbitrary $ \byte ->
          let bytes = encode histogram
              (front, rest) = ByteString.splitAt (place `mod` ByteString.length bytes) bytes
              broken = front <> ByteString.cons byte (ByteString.drop 1 rest)
           in conjoin
                [ either length (const 1) (decode broken) =/= 0,
                  property (either (const True) (const False) (decode (ByteString.take (ByteString.length bytes - 1) bytes)))
                ]
  where
    close :: Int -> Int -> Property
    close one other = counterexample (show (one, other)) (abs (one - other) * 512 <= max one other)
    summary :: Histogram -> (Int, Int, Int)
    summary histogram =
      (Histogram.count histogram, Histogram.minimumValue histogram, Histogram.maximumValue histogram)
