module Redis.Internal.Protocol.DoubleSpec (spec) where

import Data.ByteString.Char8 qualified as Char8
import Redis.Internal.Protocol.Double
import Redis.Properties (cases)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Protocol.Double" $ do
  cases 1000 $ do
    prop "reads digits with a point anywhere as the nearest double" $
      forAll (choose (1, 25)) $ \count ->
        forAll (vectorOf count (choose ('0', '9'))) $ \digits ->
          forAll (choose (0, count)) $ \whole ->
            reads' (pointed whole digits) === Just (exactly digits (count - whole))

    prop "reads what lies half-way between two doubles as the even one, and what lies beside it as the nearer one" $
      forAll (choose (2 ^ (52 :: Int), 2 ^ (53 :: Int) - 1)) $ \mantissa ->
        forAll (choose (0, 3)) $ \power ->
          forAll (choose (-1, 1)) $ \beside ->
            let digits = show ((2 * mantissa + 1) * 5 ^ power + beside :: Integer)
             in reads' (pointed (length digits - power) digits) === Just (exactly digits power)

    prop "reads what is shown of any double as that double" $
      \number -> reads' (show number) === Just number

  it "reads signs, and points without digits on one side" $
    mapM (parseDouble . Char8.pack) ["-1.5", "+1.5", "-0.25", "5.", ".5", "-.5", "007"] `shouldBe` Just [-1.5, 1.5, -0.25, 5, 0.5, -0.5, 7]

  it "keeps the sign of a zero" $
    fmap isNegativeZero (parseDouble "-0") `shouldBe` Just True

  it "reads no number where there is none" $
    filter ((/= Nothing) . parseDouble) ["", "-", "+", ".", "-.", "1.2.3", "1-", "--1", "-+1", "1 ", "1,5", "12345678901234567890x", "0x10"] `shouldBe` []

reads' :: String -> Maybe Double
reads' = parseDouble . Char8.pack

pointed :: Int -> String -> String
pointed whole digits = case splitAt whole digits of
  (left, "") -> left
  (left, right) -> left <> "." <> right

-- | The number with these digits, of which this many stand behind the point.
exactly :: String -> Int -> Double
exactly digits behind = fromRational (fromInteger (foldl (\sum' digit -> sum' * 10 + toInteger (fromEnum digit - 48)) 0 digits) / 10 ^ behind)
