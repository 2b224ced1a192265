-- | Statistics of few repetitions of a measurement: a mean with its interval, and whether two sets
-- differ.
module Tool.Statistics
  ( Summary (..),
    summarise,
    summariseRatios,
    mean,
    median,
    deviation,
    overlap,
    rankTest,
    rankTestFloor,
    welchTest,
  )
where

import Data.IntMap.Strict qualified as IntMap
import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Statistics.Distribution (cumulative, quantile)
import Statistics.Distribution.Normal (standard)
import Statistics.Distribution.StudentT (studentT)

-- | The summary of at least one number.
data Summary = Summary
  { summaryCount :: Int,
    summaryMean :: Double,
    summaryMedian :: Double,
    -- | The standard deviation of the sample; 0 for one number.
    summarySd :: Double,
    -- | The 95 % interval of confidence of the mean, by Student's t. 'Nothing' for fewer than three
    -- numbers, which say next to nothing about their spread. The interval of numbers that are not
    -- negative is not negative, either.
    summaryInterval :: Maybe (Double, Double)
  }
  deriving stock (Eq, Show)

-- | The summary of these numbers; 'Nothing' if there are none. \(O(n \log n)\).
summarise :: [Double] -> Maybe Summary
summarise values = summariseFrom (if all (>= 0) values then 0 else negate (1 / 0)) values

-- | The geometric mean of ratios, with the 95 % interval of confidence from the mean of their
-- logarithms, so that a ratio and its inverse are treated alike. 'Nothing' if there are none, or if
-- one is not positive. \(O(n \log n)\).
summariseRatios :: [Double] -> Maybe (Double, Maybe (Double, Double))
summariseRatios ratios
  | all (> 0) ratios = unlogged <$> summariseFrom (negate (1 / 0)) (map log ratios)
  | otherwise = Nothing
  where
    unlogged summary = (exp (summaryMean summary), both <$> summaryInterval summary)
    both (low, high) = (exp low, exp high)

-- The first argument is a lower bound of the interval.
summariseFrom :: Double -> [Double] -> Maybe Summary
summariseFrom lowest values = case List.sort values of
  [] -> Nothing
  sorted ->
    let count = length sorted
        middle = mean sorted
        sd = deviation sorted
        reach =
          quantile (studentT (fromIntegral (count - 1))) 0.975 * sd / sqrt (fromIntegral count)
     in Just
          Summary
            { summaryCount = count,
              summaryMean = middle,
              summaryMedian = median sorted,
              summarySd = sd,
              summaryInterval =
                if count > 2 then Just (max lowest (middle - reach), middle + reach) else Nothing
            }

-- | The mean; 0 of nothing.
mean :: [Double] -> Double
mean [] = 0
mean values = sum values / fromIntegral (length values)

-- | The median; 0 of nothing. \(O(n \log n)\).
median :: [Double] -> Double
median values = case drop ((length values - 1) `div` 2) (List.sort values) of
  one : other : _ | even (length values) -> (one + other) / 2
  one : _ -> one
  [] -> 0

-- | The standard deviation of a sample; 0 for fewer than two numbers.
deviation :: [Double] -> Double
deviation values
  | length values < 2 = 0
  | otherwise = sqrt (sum squares / fromIntegral (length values - 1))
  where
    squares = [(value - middle) ^ (2 :: Int) | value <- values]
    middle = mean values

-- | Whether two intervals have a point in common.
overlap :: (Double, Double) -> (Double, Double) -> Bool
overlap (low, high) (low', high') = low <= high' && low' <= high

-- | The two-sided p of the rank-sum test (Wilcoxon, Mann, Whitney): the probability that two sets
-- from the same source differ this much. Exact for small sets, ties included; otherwise by the
-- normal distribution. 'Nothing' if a set is empty.
rankTest :: [Double] -> [Double] -> Maybe Double
rankTest one other
  | null one || null other = Nothing
  -- Either order gives the same p. The cost grows with the size of the first set.
  | length one * length other <= 400 =
    Just (if length one <= length other then exact one other else exact other one)
  | otherwise = Just (approximate one other)

-- | The least p that sets of these sizes can have. If it is above the level of a test, the sets are
-- too small for that test.
rankTestFloor :: Int -> Int -> Double
rankTestFloor n m = min 1 (2 / fromIntegral (binomial (n + m) n))
  where
    binomial :: Int -> Int -> Integer
    binomial total chosen =
      List.foldl' (\sofar k -> sofar * toInteger (total - k + 1) `div` toInteger k) 1 [1 .. chosen]

-- Twice the rank of each number, so that the ranks of ties are whole numbers.
doubledRanks :: [Double] -> Map.Map Double Int
doubledRanks values = Map.fromList (go 1 (List.group (List.sort values)))
  where
    go _ [] = []
    go from (same : rest) =
      [(value, 2 * from + length same - 1) | value <- take 1 same] <> go (from + length same) rest

rankSum :: [Double] -> Map.Map Double Int -> Int
rankSum values ranks = sum [Map.findWithDefault 0 value ranks | value <- values]

-- The share of all ways to choose the first set in which its ranks add up to something at least as
-- far from the middle.
exact :: [Double] -> [Double] -> Double
exact one other = min 1 (fromInteger far / fromInteger (sum ways))
  where
    ranks = doubledRanks (one <> other)
    expected = length one * (length one + length other + 1)
    distance total = abs (total - expected)
    observed = distance (rankSum one ranks)
    ways = IntMap.elems distribution
    far = sum [count | (total, count) <- IntMap.toList distribution, distance total >= observed]
    -- For each number of chosen elements: the ways to reach each sum.
    distribution =
      IntMap.findWithDefault IntMap.empty (length one) $
        List.foldl' choose start [Map.findWithDefault 0 value ranks | value <- one <> other]
    start = IntMap.singleton 0 (IntMap.singleton 0 (1 :: Integer))
    choose sofar rank =
      IntMap.unionWith (IntMap.unionWith (+)) sofar (IntMap.fromList (raised sofar rank))
    raised sofar rank =
      [ (chosen + 1, IntMap.mapKeysMonotonic (+ rank) sums)
        | (chosen, sums) <- IntMap.toList sofar,
          chosen < length one
      ]

approximate :: [Double] -> [Double] -> Double
approximate one other
  | variance <= 0 = 1
  | otherwise =
    min 1 (2 * (1 - cumulative standard (max 0 (abs (u - n * m / 2) - 0.5) / sqrt variance)))
  where
    (n, m) = (fromIntegral (length one), fromIntegral (length other))
    u = fromIntegral (rankSum one (doubledRanks (one <> other))) / 2 - n * (n + 1) / 2
    ties =
      sum
        [ size ^ (3 :: Int) - size
          | same <- List.group (List.sort (one <> other)),
            let size = fromIntegral (length same)
        ]
    variance = n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1)))

-- | The two-sided p of Welch's test of the means. 'Nothing' if a set has fewer than two numbers; 1
-- if all numbers of both sets are equal.
welchTest :: [Double] -> [Double] -> Maybe Double
welchTest one other
  | any ((< 2) . length) [one, other] = Nothing
  | otherwise = welch <$> summarise one <*> summarise other
  where
    welch a b
      | error' <= 0 = if summaryMean a == summaryMean b then 1 else 0
      | otherwise = 2 * cumulative (studentT freedom) (negate (difference / sqrt error'))
      where
        difference = abs (summaryMean a - summaryMean b)
        part summary = summarySd summary ^ (2 :: Int) / fromIntegral (summaryCount summary)
        error' = part a + part b
        freedom =
          error' ^ (2 :: Int)
            / ( part a ^ (2 :: Int) / fromIntegral (summaryCount a - 1)
                  + part b ^ (2 :: Int) / fromIntegral (summaryCount b - 1)
              )
