-- | The little that is needed to say how sure a number is.
module Compare.Statistics
  ( median,
    mean,
    deviation,
    confidence95,
  )
where

import Data.List (sort)

-- | The middle one, or the mean of the middle two; 0 of none.
median :: [Double] -> Double
median values = case drop ((size - 1) `div` 2) (sort values) of
  one : other : _ | even size -> (one + other) / 2
  one : _ -> one
  [] -> 0
  where
    size = length values

-- | 0 of none.
mean :: [Double] -> Double
mean = \case
  [] -> 0
  values -> sum values / fromIntegral (length values)

-- | The standard deviation of a sample; 0 of fewer than two.
deviation :: [Double] -> Double
deviation values
  | size < 2 = 0
  | otherwise = sqrt (sum [(value - middle) ^ (2 :: Int) | value <- values] / fromIntegral (size - 1))
  where
    size = length values
    middle = mean values

-- | Half the width of the mean's 95 % confidence interval, by Student's t;
-- 'Nothing' of fewer than two.
confidence95 :: [Double] -> Maybe Double
confidence95 values
  | size < 2 = Nothing
  | otherwise = Just (quantile (size - 1) * deviation values / sqrt (fromIntegral size))
  where
    size = length values

-- The 0.975 quantile of Student's t.
quantile :: Int -> Double
quantile freedom = case drop (freedom - 1) table of
  found : _ -> found
  [] -> 1.96
  where
    table = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145]
