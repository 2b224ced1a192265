-- | Is it the same from second to second? Caches that fill, connections that
-- open and a compiler that warms up make the first seconds unlike the rest.
module Tool.Bench.Steady
  ( settled,
    startedSteady,
  )
where

-- | Whether the last four of these rates are close: none more than 8 % from
-- their mean. 'False' for fewer. For deciding that a warm-up may end.
settled :: [Double] -> Bool
settled rates = case drop (length rates - 4) rates of
  lastOnes@[_, _, _, _] ->
    let middle = mean lastOnes
     in middle > 0 && all (\rate -> abs (rate - middle) <= 0.08 * middle) lastOnes
  _ -> False

-- | Whether a measured window began as it went on: the mean rate of its first
-- quarter is no further from that of the rest than 5 %, or than three standard
-- errors where rates scatter by more. 'Nothing' of fewer than four rates.
startedSteady :: [Double] -> Maybe Bool
startedSteady rates
  | length rates < 4 = Nothing
  | otherwise = Just (abs (mean early - mean late) <= max (0.05 * mean late) (3 * uncertainty))
  where
    (early, late) = splitAt (max 1 (length rates `div` 4)) rates
    uncertainty = deviation late * sqrt (1 / size early + 1 / size late)
    size = fromIntegral . length

mean :: [Double] -> Double
mean [] = 0
mean values = sum values / fromIntegral (length values)

deviation :: [Double] -> Double
deviation values
  | length values < 2 = 0
  | otherwise = sqrt (sum [(value - middle) ^ (2 :: Int) | value <- values] / fromIntegral (length values - 1))
  where
    middle = mean values
