module Tool.StatisticsSpec (spec) where

import Data.List (sort)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.Statistics

near :: Double -> Double -> Double -> Bool
near reach one other = abs (one - other) <= reach

-- | All ways to choose this many elements, each with the elements that are left.
choices :: Int -> [a] -> [([a], [a])]
choices 0 rest = [([], rest)]
choices _ [] = []
choices n (first : rest) = [(first : one, other) | (one, other) <- choices (n - 1) rest] <> [(one, first : other) | (one, other) <- choices n rest]

-- | The rank test by its definition: every split of all numbers.
bySplits :: [Double] -> [Double] -> Double
bySplits one other = fromIntegral (length (filter (>= observed) everything)) / fromIntegral (length everything)
  where
    together = sort (one <> other)
    rank value = 2 * fromIntegral (length (filter (< value) together)) + fromIntegral (length (filter (== value) together)) + 1 :: Double
    distance (chosen, _) = abs (sum (map rank chosen) - fromIntegral (length one * (length together + 1)))
    observed = distance (one, other)
    everything = map distance (choices (length one) (one <> other))

spec :: Spec
spec = describe "Tool.Statistics" $ do
  it "gives the mean, the median, and the 95 % interval by Student's t" $
    case summarise [10, 12, 11, 14, 13] of
      Just Summary {summaryMean, summaryMedian, summarySd, summaryInterval = Just (low, high)} -> do
        (summaryMean, summaryMedian) `shouldBe` (12, 12)
        summarySd `shouldSatisfy` near 1e-9 1.5811388300841898
        -- 2.776 is Student's t for four degrees of freedom.
        low `shouldSatisfy` near 0.001 (12 - 2.776445 * 1.5811388 / sqrt 5)
        high `shouldSatisfy` near 0.001 (12 + 2.776445 * 1.5811388 / sqrt 5)
      other -> expectationFailure (show other)

  it "claims no interval from one number or two, and nothing from none" $ do
    (summarise [5] >>= summaryInterval) `shouldBe` Nothing
    (summarise [80000, 90000] >>= summaryInterval) `shouldBe` Nothing
    summarise [] `shouldBe` Nothing

  it "does not go below zero with what cannot be" $ do
    (fst <$> (summarise [10, 1000, 20] >>= summaryInterval)) `shouldBe` Just 0
    (summarise [-10, 1000, 20] >>= summaryInterval) `shouldSatisfy` maybe False ((< 0) . fst)

  it "gives the geometric mean of ratios, and an interval that their inverses share" $ do
    let near' = near 1e-9
    case (summariseRatios [1, 1, 1, 1, 3], summariseRatios (map recip [1, 1, 1, 1, 3])) of
      (Just (middle, Just (low, high)), Just (middle', Just (low', high'))) -> do
        log middle `shouldSatisfy` near' (log 3 / 5)
        -- No ratio is below 1, and yet the mean may be.
        low `shouldSatisfy` (< 0.7)
        [middle * middle', low * high', high * low'] `shouldSatisfy` all (near' 1)
      other -> expectationFailure (show other)
    summariseRatios [2] `shouldBe` Just (2, Nothing)
    map summariseRatios [[], [1, 0], [0 / 0]] `shouldBe` [Nothing, Nothing, Nothing]

  it "finds the known p of sets that do not overlap" $ do
    rankTest [1, 2, 3] [4, 5, 6] `shouldBe` Just 0.1
    rankTest [1 .. 5] [6 .. 10] `shouldSatisfy` maybe False (near 1e-12 (2 / 252))
    (rankTestFloor 3 3, rankTestFloor 5 5) `shouldBe` (0.1, 2 / 252)
    rankTest [] [1] `shouldBe` Nothing

  prop "agrees with the rank test by its definition, ties or not" $
    forAll (choose (1, 4)) $ \n ->
      forAll (choose (1, 4)) $ \m ->
        forAll (vectorOf n (elements [1 .. 6])) $ \one ->
          forAll (vectorOf m (elements [1 .. 6])) $ \other ->
            rankTest one other === Just (bySplits one other)

  it "takes no longer for a large set and one number than the other way round" $
    -- The number is below all others: two of 401 places are as far from the middle.
    (rankTest [1 .. 400] [0], rankTest [0] [1 .. 400]) `shouldBe` (Just (2 / 401), Just (2 / 401))

  it "comes to the same by the normal distribution where sets are large" $ do
    -- Sets of twenty and twenty are compared exactly, and larger ones by the normal distribution.
    -- Near this limit the two hardly differ.
    let one = [fromIntegral (n * 37 `mod` 101) | n <- [1 .. 20 :: Int]]
        other = [fromIntegral (n * 53 `mod` 101) + 15 | n <- [1 .. 20 :: Int]]
    case (rankTest one other, rankTest (57 : one) other) of
      (Just few, Just many) -> many `shouldSatisfy` near 0.03 few
      pair -> expectationFailure (show pair)
    rankTest (replicate 30 1) (replicate 30 1) `shouldBe` Just 1

  it "knows Welch's test" $ do
    -- Checked against R: t.test(c(20.1,19.8,20.4,20.0), c(21.0,21.9,20.8,21.5)).
    case welchTest [20.1, 19.8, 20.4, 20.0] [21.0, 21.9, 20.8, 21.5] of
      Just p -> p `shouldSatisfy` \value -> value > 0.001 && value < 0.02
      Nothing -> expectationFailure "no p"
    welchTest [1, 1] [1, 1] `shouldBe` Just 1
    welchTest [1] [1, 2] `shouldBe` Nothing
