-- | Two load generators against one server: what their figures say of each
-- other. Pure; "Lab.Differential" gets the figures.
--
-- Where the server is at its end, how fast it goes does not depend on who
-- asks: two generators that ask the same must find the same. Where a generator
-- is at its end, its figure is its own, and nothing follows from a difference.
--
-- How often the server ran the command meanwhile is known besides, within bounds
-- ("Lab.Differential.Served"). A figure outside of them is wrong on any machine.
module Lab.Differential.Table
  ( Found (..),
    Row (..),
    Verdict (..),
    rowOf,
    underLoad,
    rowLine,
    heading,
    busyEnough,
    tolerance,
    Judged (..),
    verdictText,
  )
where

import Data.List (nub)
import Data.Maybe (isJust)
import Data.Text (Text)
import Lab.Gate.Table (median)
import Tool.Text (fixed, thousands)

-- | What one run found.
data Found = Found
  { -- | Commands per second, by the generator's own account.
    foundRate :: Double,
    -- | The part of its core that the server used meanwhile.
    foundBusy :: Double,
    -- | The least and the most commands per second that its own account may say, by
    -- the server's count; 'Nothing' if the server was not asked in time.
    foundServed :: Maybe (Double, Double),
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
  | -- | Its figure is not what the server counted; which, and how it is called.
    Miscounts String
  | -- | A generator is the bottleneck; how it is called.
    NotJudged String
  | -- | The one was not to be judged by the other, and each is what the server counted.
    Counted
  | -- | The server was not asked before and after each run.
    Unwatched
  | -- | A run is not valid, or there is none.
    Unsound
  deriving stock (Eq, Show)

-- | What is judged.
data Judged
  = -- | The rates, one by the other, where the server is the bottleneck; and each by
    -- what the server counted.
    ByEachOther
  | -- | Each by what the server counted, and nothing else: that holds on a machine that
    -- is busy with other things, too.
    ByTheServer
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
rowOf :: Judged -> String -> [Found] -> [Found] -> Row
rowOf judged test ours theirs =
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
      | any miscounted ours = Miscounts "this generator"
      | any miscounted theirs = Miscounts "redis-benchmark"
      | judged == ByTheServer = if all (isJust . foundServed) (ours <> theirs) then Counted else Unwatched
      | busyOurs < busyEnough && busyTheirs < busyEnough = NotJudged "both generators"
      | busyOurs < busyEnough = NotJudged "this generator"
      | busyTheirs < busyEnough = NotJudged "redis-benchmark"
      | abs (ratio - 1) <= tolerance = Agrees
      | otherwise = Differs

-- Beyond what is certain by a twentieth: clocks of two processes, and windows that
-- are not quite the same.
miscounted :: Found -> Bool
miscounted found = case foundServed found of
  Just (least, most) -> foundRate found < 0.95 * least || foundRate found > 1.05 * most
  Nothing -> False

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
  Miscounts who -> "MISCOUNTS: " <> who
  Counted -> "as the server counted"
  Unwatched -> "not judged: the server was not asked in time"
  NotJudged who -> "not judged: " <> who <> " the bottleneck"
  Unsound -> "INVALID"
