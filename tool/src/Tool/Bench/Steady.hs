-- | Decides whether a rate is the same from second to second. Caches that fill and connections that
-- open make the first seconds differ from the rest.
module Tool.Bench.Steady
  ( settled,
    untilSteady,
    startedSteady,
  )
where

import Tool.Bench.Time (Nanos)
import Tool.Statistics (deviation, mean)

-- | Whether the last four of these rates are close to each other: each within 8 % of their mean.
-- 'False' for fewer than four rates. Decides whether a warm-up may end.
settled :: [Double] -> Bool
settled rates =
  length rates >= 4 && middle > 0 && all (\rate -> abs (rate - middle) <= 0.08 * middle) lastOnes
  where
    lastOnes = drop (length rates - 4) rates
    middle = mean lastOnes

-- | Reads the count at intervals until the rate has been steady over four intervals, or until the
-- latest moment. Returns the moment at which it stopped, and whether the rate was steady. Takes an
-- action that waits for a moment and returns the time and the count at that time; the interval; the
-- moment at which counting began, from zero; and the latest moment.
untilSteady :: (Nanos -> IO (Nanos, Int)) -> Nanos -> Nanos -> Nanos -> IO (Nanos, Bool)
untilSteady look apart begin latest = go [] begin 0
  where
    go rates before counted = do
      (now, count) <- look (min latest (before + apart))
      let rates' = rates <> [fromIntegral (count - counted) / fromIntegral (max 1 (now - before))]
          steady = settled rates'
      if now >= latest || steady
        then pure (now, steady)
        else go (drop (length rates' - 4) rates') now count

-- | Whether a measured window began as it went on: the mean rate of its first quarter differs from
-- that of the rest by at most 5 %, or by at most three standard errors where rates scatter by more.
-- 'Nothing' for fewer than four rates.
startedSteady :: [Double] -> Maybe Bool
startedSteady rates
  | length rates < 4 = Nothing
  | otherwise = Just (abs (mean early - mean late) <= max (0.05 * mean late) (3 * uncertainty))
  where
    (early, late) = splitAt (max 1 (length rates `div` 4)) rates
    uncertainty = deviation late * sqrt (1 / size early + 1 / size late)
    size = fromIntegral . length
