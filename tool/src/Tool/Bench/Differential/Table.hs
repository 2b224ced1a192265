-- | Two load generators against one server: what their figures say of each
-- other. Pure; "Tool.Bench.Differential" gets the figures.
--
-- Where the server is at its end, how fast it goes does not depend on who
-- asks: two generators that ask the same must find the same. Where a generator
-- is at its end, its figure is its own, and nothing follows from a difference.
module Tool.Bench.Differential.Table
  ( Found (..),
    Row (..),
    Verdict (..),
    rowOf,
    underLoad,
    rowLine,
    heading,
    busyEnough,
    tolerance,
    verdictText,
  )
where

import Data.List (nub)
import Data.Text (Text)
import Tool.Bench.Gate.Table (median)
import Tool.Text (fixed, thousands)

-- | What one run found.
data Found = Found
  { -- | Commands per second, by the generator's own account.
    foundRate :: Double,
    -- | The part of its core that the server used meanwhile.
    foundBusy :: Double,
    -- | Why the run is not valid; empty: it is.
    foundProblems :: [Text]
  }
  deriving stock (Eq, Show)

-- | A test.
data Row = Row
  { rowTest :: String,
    -- | Medians of both, ours first.
    rowRates :: (Double, Double),
    rowBusy :: (Double, Double),
    -- | Ours to theirs.
    rowRatio :: Double,
    -- | The least and the greatest of any one iteration.
    rowSpread :: (Double, Double),
    rowProblems :: [Text],
    rowVerdict :: Verdict
  }
  deriving stock (Eq, Show)

-- | What follows.
data Verdict
  = Agrees
  | Differs
  | -- | A generator is the bottleneck; how it is called.
    NotJudged String
  | -- | A run is not valid, or there is none.
    Unsound
  deriving stock (Eq, Show)

-- | From this part of a core on the server is the bottleneck: 0.9.
busyEnough :: Double
busyEnough = 0.9

-- | How far apart the rates may be: 0.15.
tolerance :: Double
tolerance = 0.15

-- | The part of its core that a server used under load, from its parts in the
-- short times that a run was divided into. The begin and the end of a run are
-- no load: only those count that are half as much as the greatest, and of them
-- the median does. 0 of none.
underLoad :: [Double] -> Double
underLoad shares = median (filter (>= maximum (0 : shares) / 2) shares)

-- | The row of a test, from the runs of both in the order of the iterations.
rowOf :: String -> [Found] -> [Found] -> Row
rowOf test ours theirs =
  Row
    { rowTest = test,
      rowRates = both foundRate,
      rowBusy = both foundBusy,
      rowRatio = ratio,
      rowSpread = case zipWith (\one other -> foundRate one / foundRate other) ours theirs of
        [] -> (0, 0)
        ratios -> (minimum ratios, maximum ratios),
      rowProblems = problems,
      rowVerdict = verdict
    }
  where
    both field = (median (map field ours), median (map field theirs))
    ratio = uncurry (/) (both foundRate)
    problems = nub (concatMap foundProblems (ours <> theirs))
    (busyOurs, busyTheirs) = both foundBusy
    verdict
      | not (null problems) || null ours || null theirs || isNaN ratio || isInfinite ratio = Unsound
      | busyOurs < busyEnough && busyTheirs < busyEnough = NotJudged "both generators"
      | busyOurs < busyEnough = NotJudged "this generator"
      | busyTheirs < busyEnough = NotJudged "redis-benchmark"
      | abs (ratio - 1) <= tolerance = Agrees
      | otherwise = Differs

-- | Above the lines.
heading :: [String]
heading = ["test", "ours/s", "redis-benchmark/s", "ratio", "spread", "server busy: ours", "theirs", "verdict"]

-- | A row as text.
rowLine :: Row -> [String]
rowLine row =
  [ rowTest row,
    rate fst,
    rate snd,
    fixed 2 (rowRatio row),
    fixed 2 (fst (rowSpread row)) <> ".." <> fixed 2 (snd (rowSpread row)),
    share fst,
    share snd,
    verdictText (rowVerdict row)
  ]
  where
    rate side = thousands (round (side (rowRates row)))
    share side = fixed 0 (100 * side (rowBusy row)) <> "%"

-- | In words.
verdictText :: Verdict -> String
verdictText = \case
  Agrees -> "agrees"
  Differs -> "DIFFERS"
  NotJudged who -> "not judged: " <> who <> " the bottleneck"
  Unsound -> "INVALID"
