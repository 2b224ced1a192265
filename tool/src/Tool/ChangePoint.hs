-- | Finds where a series changes its level. Of all ways to cut the series, it takes the one with
-- the smallest sum of squared distances from the phases' means plus a penalty for each cut
-- (optimal partitioning; Jackson et al., 2005): three times the noise's variance times the
-- logarithm of the length. A running median of five first removes what lasts one or two slices,
-- and phases that differ by less than a tenth of the larger level are joined again. To cut in two
-- again and again misses a short phase in a long one.
module Tool.ChangePoint
  ( Phase (..),
    phases,
  )
where

import Data.List (sort)
import Data.List qualified as List
import Data.Primitive.PrimArray (PrimArray, indexPrimArray, primArrayFromList, sizeofPrimArray)
import Tool.Statistics (mean, median)

-- | A stretch of the series at one level.
data Phase = Phase
  { -- | The index of its first point, from 0.
    phaseFirst :: Int,
    -- | The number of its points.
    phaseLength :: Int,
    phaseMean :: Double,
    phaseMedian :: Double
  }
  deriving stock (Eq, Show)

-- | The phases of a series of equidistant values, in order, each of five values or more. Together
-- they are the whole series. A single phase means that the level does not change; an empty series has none. \(O(n + m^2)\) where
-- \(m\) is the length, but at most 2048: in a longer series neighbours are put together first,
-- which makes the cuts coarser by that factor.
phases :: [Double] -> [Phase]
phases series = map summary (spans (join (cuts shortest noise smooth)))
  where
    total = length series
    factor = max 1 ((total + 2047) `div` 2048)
    coarse = middles factor series
    -- From the series before smoothing, because smoothing makes neighbours alike.
    noise = noiseVariance coarse
    smooth = primArrayFromList (runningMedian coarse)
    shortest = max 1 (5 `div` factor)
    values = primArrayFromList series :: PrimArray Double
    -- The begin and the end of each phase, in points of the whole series.
    spans starts = zip starts (drop 1 starts <> [total])
    join = joinSimilar values . map (* factor)
    summary (from, to) =
      let part = slice values from to in Phase from (to - from) (mean part) (median part)

-- The first indices of the segments with the least cost.
cuts :: Int -> Double -> PrimArray Double -> [Int]
cuts shortest noise values
  | size == 0 = []
  | size < 2 * shortest = [0]
  | otherwise = reverse (back size)
  where
    size = sizeofPrimArray values
    penalty = 3 * noise * log (fromIntegral size)
    numbers = map (indexPrimArray values) [0 .. size - 1]
    summed = primArrayFromList . List.scanl' (+) 0 :: [Double] -> PrimArray Double
    sums = summed numbers
    squares = summed [number * number | number <- numbers]
    -- The sum of squared distances from the mean, of the values from..to-1.
    cost from to =
      let held = fromIntegral (to - from)
          total = indexPrimArray sums to - indexPrimArray sums from
       in max 0 (indexPrimArray squares to - indexPrimArray squares from - total * total / held)
    -- For each end: the least cost up to there, and the begin of its last segment. Filled from the
    -- front; each entry uses those before it.
    table = List.foldl' extend [(0, 0, 0)] [shortest .. size]
    extend held end =
      let better best (start, _, least) =
            let new = least + cost start end + penalty
             in if new < fst best then (new, start) else best
          (least', from) =
            List.foldl' better (1 / 0, 0) [entry | entry@(start, _, _) <- held, end - start >= shortest]
       in (end, from, least') : held
    begins = primArrayFromList (starts 0 (reverse ends)) :: PrimArray Int
    ends = [(end, begin) | (end, begin, _) <- table]
    -- Ends too near the front have no entry of their own.
    starts next = \case
      [] -> []
      (end, begin) : rest -> replicate (end - next) 0 <> [begin] <> starts (end + 1) rest
    back end
      | end <= 0 = []
      | otherwise = let begin = indexPrimArray begins end in begin : back begin

-- Joins the two neighbours that differ least, until all differ enough.
joinSimilar :: PrimArray Double -> [Int] -> [Int]
joinSimilar values = go
  where
    size = sizeofPrimArray values
    go starts = case List.sortOn fst (differences starts) of
      (least, begin) : _ | least < 0.1 -> go (filter (/= begin) starts)
      _ -> starts
    -- Each difference, with the begin of the later phase.
    differences starts =
      let ends = drop 1 starts <> [size]
          levels = zipWith (\from to -> median (slice values from to)) starts ends
       in zip (zipWith apart levels (drop 1 levels)) (drop 1 starts)
    apart one other
      | larger <= 0 = 0
      | otherwise = abs (one - other) / larger
      where
        larger = max (abs one) (abs other)

-- The variance of the noise, from the median of the differences between neighbours. It is at least
-- that of a thousandth of the level, so that a constant series has some noise.
noiseVariance :: [Double] -> Double
noiseVariance list = max (noise * noise) (smallest * smallest)
  where
    distances = zipWith (\one other -> abs (other - one)) list (drop 1 list)
    -- The factor 1.4826 makes a deviation of a median; a difference has twice the variance.
    noise = 1.4826 * median distances / sqrt 2
    smallest = max 1e-12 (abs (median list) / 1000)

-- Replaces each group of neighbours by the value in their middle. Their mean would not do: in a
-- group with a change of level it is neither level, and looks like a phase.
middles :: Int -> [Double] -> [Double]
middles 1 series = series
middles factor series = case splitAt factor series of
  ([], _) -> []
  (group, rest) -> take 1 (drop ((length group - 1) `div` 2) (sort group)) <> middles factor rest

runningMedian :: [Double] -> [Double]
runningMedian series = [median (around index) | index <- [0 .. size - 1]]
  where
    values = primArrayFromList series :: PrimArray Double
    size = sizeofPrimArray values
    around index = slice values (max 0 (index - 2)) (min size (index + 3))

slice :: PrimArray Double -> Int -> Int -> [Double]
slice values from to = map (indexPrimArray values) [from .. to - 1]
