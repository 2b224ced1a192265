module Tool.SpanSpec (spec) where

import Data.Foldable (for_)
import Data.List (isInfixOf)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.Span

spec :: Spec
spec = describe "Tool.Span" $ do
  for_ [("30", 30), ("2h", 7200), ("5m", 300), ("1.5s", 1.5), (".5s", 0.5), ("250ms", 0.25)] $ \(text, seconds) ->
    it ("reads " <> text) $ parseSpan text `shouldBe` Right seconds

  for_ [("", "not a span"), ("h", "not a span"), ("1d", "\"d\""), ("1.2.3s", "not a span"), ("-3s", "not a span")] $ \(text, part) ->
    it ("refuses " <> show text) $
      either (`shouldSatisfy` (part `isInfixOf`)) (expectationFailure . show) (parseSpan text)

  for_ [(0.000124, "124us"), (0.001, "1ms"), (30, "30s"), (1.5, "1.5s"), (1800, "30m"), (7200, "2h")] $ \(seconds, text) ->
    it ("writes " <> text) $ renderSpan seconds `shouldBe` text

  prop "reads what it writes, to a few per mille" $
    forAll (choose (1e-5, 1e5)) $ \seconds ->
      case parseSpan (renderSpan seconds) of
        Right same -> counterexample (renderSpan seconds) (abs (same - seconds) <= 0.01 * seconds || abs (same - seconds) <= 30 && seconds > 120)
        Left problem -> counterexample problem False
