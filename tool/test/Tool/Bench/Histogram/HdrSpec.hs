module Tool.Bench.Histogram.HdrSpec (spec) where

import Codec.Compression.Zlib qualified as Zlib
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Lazy qualified as Lazy
import Data.Int (Int64)
import Sample (anyHistogram)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Histogram.Hdr

-- | A histogram with three digits, this smallest value, and these bytes for its counts.
written :: Int64 -> [Int] -> ByteString
written smallest counts =
  built $ Builder.int32BE 0x1c849314 <> Builder.int32BE (fromIntegral (Lazy.length packed)) <> Builder.lazyByteString packed
  where
    built = Lazy.toStrict . Builder.toLazyByteString
    payload = ByteString.pack (map fromIntegral counts)
    packed =
      Zlib.compress . Builder.toLazyByteString $
        Builder.int32BE 0x1c849313 <> Builder.int32BE (fromIntegral (ByteString.length payload)) <> Builder.int32BE 0 <> Builder.int32BE 3
          <> Builder.int64BE smallest
          <> Builder.int64BE 3600000000000
          <> Builder.doubleBE 1
          <> Builder.byteString payload

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

  it "refuses what no number can count" $ do
    -- Three zeros, then a count of 1.
    fmap summary (decode (written 1 [5, 2])) `shouldBe` Right (1, 3, 3)
    -- As many zeros as the least number says, then a count of 1.
    decode (written 1 (replicate 9 255 <> [2])) `shouldBe` Left "an HDR histogram that is too long"
    -- Values that are too large.
    decode (written (2 ^ (62 :: Int)) [5, 2]) `shouldBe` Left "an HDR histogram with impossible digits"

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
