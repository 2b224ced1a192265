module Redis.Internal.Command.ArgumentSpec (spec) where

import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.Time.Calendar (Day (ModifiedJulianDay))
import Data.Time.Clock (UTCTime (UTCTime))
import Data.Time.Clock.POSIX (posixSecondsToUTCTime)
import Redis.Internal.Command.Argument
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Command.Argument" $ do
  prop "writes an integer in its digits" $
    forAll (oneof [arbitraryBoundedIntegral, arbitrary, elements [minBound, maxBound]]) $ \number ->
      decimal number === Char8.pack (show (number :: Int64))

  it "writes integers around every power of ten" $
    mapM_
      (\number -> decimal number `shouldBe` Char8.pack (show number))
      (concat [[power - 1, power, power + 1, negate power] | power <- take 19 (iterate (* 10) 1)])

  prop "writes a number as it is shown, whole or not" $
    forAll (oneof [arbitrary, fromIntegral <$> choose (-20000000, 20000000 :: Int)]) $ \number ->
      floating number === Char8.pack (show (number :: Double))

  it "writes a time in whole units, rounded up" $
    [unixSeconds (posixSecondsToUTCTime 1.25), unixMilliseconds (posixSecondsToUTCTime 1.2345), unixSeconds (posixSecondsToUTCTime (-1.25))]
      `shouldBe` ["2", "1235", "-1"]

  it "writes no time far away as one on the other side of today" $ do
    let far days = UTCTime (ModifiedJulianDay days) 0
    map unixSeconds [far (10 ^ (15 :: Int)), far (negate (10 ^ (15 :: Int)))] `shouldBe` map decimal [maxBound, minBound]
    map unixMilliseconds [far (2 * 10 ^ (11 :: Int)), far (-2 * 10 ^ (11 :: Int))] `shouldBe` map decimal [maxBound, minBound]

  it "writes words for what has no digits, and zeros with their sign" $
    map floating [1 / 0, -1 / 0, 0 / 0, 0, -0.0, 9999999, 10000000] `shouldBe` ["inf", "-inf", "nan", "0.0", "-0.0", "9999999.0", "1.0e7"]
