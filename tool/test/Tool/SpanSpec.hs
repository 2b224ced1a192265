module Tool.SpanSpec (spec) where

import Data.Foldable (for_)
import Data.List (isInfixOf)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.Span

spec :: Spec
spec = describe "Tool.Span" $ do
  for_ [("30", 30), ("2h", 7200), ("5m", 300), ("1.5s", 1.5), (".5s", 0.5), ("5.s", 5), ("007", 7), ("250ms", 0.25)] $ \(text, seconds) ->
    it ("reads " <> text) $ parseSpan text `shouldBe` Right seconds

  for_ [("", "not a span"), (".", "not a span"), (".s", "not a span"), ("h", "not a span"), ("1d", "\"d\""), ("1.2.3s", "not a span"), ("-3s", "not a span")] $ \(text, part) ->
    it ("refuses " <> show text) $
      either (`shouldSatisfy` (part `isInfixOf`)) (expectationFailure . show) (parseSpan text)

  for_ [(0.000124, "124us"), (0.001, "1ms"), (30, "30s"), (1.5, "1.5s"), (1800, "30m"), (130, "130s"), (7200, "2h"), (7260, "121m")] $ \(seconds, text) ->
    it ("writes " <> text) $ renderSpan seconds `shouldBe` text

  prop "reads whole seconds as it writes them" $
    forAll (oneof [choose (0, 300), choose (0, 10000), choose (0, 10000000)]) $ \seconds ->
      parseSpan (renderSpan (fromIntegral (seconds :: Int))) === Right (fromIntegral seconds)

  it "says of an estimate no more than can be known" $
    map (renderSpan . roughly) [59.7, 130.2, 7261] `shouldBe` ["60s", "2m", "121m"]

  it "counts in nanoseconds and in microseconds, of which none is left out" $ do
    map nanosIn [0, 1.5, 1e-9] `shouldBe` [0, 1500000000, 1]
    map microsIn [0, 1.5, 1.0000001e-6] `shouldBe` [0, 1500000, 2]
    map secondsIn [0, 1500000000, -250000000] `shouldBe` [0, 1.5, -0.25]
    map inMillis [0, 1500000] `shouldBe` [0, 1.5]
    map inMicros [0, 1500] `shouldBe` [0, 1.5]

  it "writes a moment since 1970 as a date" $
    dated "%Y-%m-%d %H:%M:%S" (sinceEpoch 1769860800.999999999) `shouldBe` "2026-01-31 12:00:00"

  it "counts by the second, also what took no time" $
    [perSecond 3 1500000000, perSecond 1 0] `shouldBe` [2, 1e9]

  it "follows the pace so far in what is left, once there is one" $ do
    remaining 600 0 3 `shouldBe` 10
    remaining 600 300 600 `shouldBe` 10
    remaining 600 600 700 `shouldBe` 0

  prop "reads what it writes, to a few per mille" $
    forAll (choose (1e-5, 1e5)) $ \seconds ->
      case parseSpan (renderSpan seconds) of
        Right same -> counterexample (renderSpan seconds) (abs (same - seconds) <= 0.01 * seconds)
        Left problem -> counterexample problem False
