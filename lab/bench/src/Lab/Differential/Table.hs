-- | Compares the figures of two load generators on one server. Pure; "Lab.Differential" measures
-- the figures.
--
-- If the server is at its limit, its speed does not depend on the generator: two generators that
-- send the same must find the same rate. If a generator is at its limit, its figure is its own, and
-- a difference means nothing.
--
-- The number of commands that the server ran meanwhile is also known, within bounds
-- ("Lab.Differential.Served"). A figure outside the bounds is wrong on any machine.
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
import Tool.Statistics (median)
import Tool.Text (fixed, thousands)

-- | The result of one run.
data Found = Found
  { -- | Commands per second as the generator counts them.
    foundRate :: Double,
    -- | The share of its core that the server used meanwhile.
    foundBusy :: Double,
    -- | The least and the most commands per second that the generator may report, by the server's
    -- count. 'Nothing' if the server was not asked in time.
    foundServed :: Maybe (Double, Double),
    -- | Why the run is not valid. Empty for a valid run.
    foundProblems :: [Text]
  }
  deriving stock (Eq, Show)

-- | The row of a test.
data Row = Row
  { rowTest :: String,
    -- | The medians of both generators, ours first.
    rowRates :: (Double, Double),
    rowBusy :: (Double, Double),
    -- | Our rate divided by the other.
    rowRatio :: Double,
    -- | The least and the greatest ratio of any one iteration.
    rowSpread :: (Double, Double),
    rowProblems :: [Text],
    rowVerdict :: Verdict
  }
  deriving stock (Eq, Show)

-- | The verdict on a test.
data Verdict
  = Agrees
  | Differs
  | -- | A generator's figure differs from the server's count. Has the name of the generator.
    Miscounts String
  | -- | A generator is the bottleneck. Has its name.
    NotJudged String
  | -- | The generators were not compared with each other, and each agrees with the server's count.
    Counted
  | -- | The server was not asked before and after each run.
    Unwatched
  | -- | A run is not valid, or there is none.
    Unsound
  deriving stock (Eq, Show)

-- | What the verdict is about.
data Judged
  = -- | The rates of both generators, compared with each other where the server is the bottleneck;
    -- and each compared with the server's count.
    ByEachOther
  | -- | Each rate compared with the server's count only, which also works on a machine that is busy
    -- with other things.
    ByTheServer
  deriving stock (Eq, Show)

-- | The share of a core from which the server counts as the bottleneck: 0.9.
busyEnough :: Double
busyEnough = 0.9

-- | The largest allowed difference of the rates: 0.15.
tolerance :: Double
tolerance = 0.15

-- | The share of its core that a server used under load, from its shares in the short intervals of
-- a run. There is no load at the begin and the end of a run, so this takes the median of the
-- intervals with at least half of the greatest share. 0 if there are none.
underLoad :: [Double] -> Double
underLoad shares = median (filter (>= maximum (0 : shares) / 2) shares)

-- | The row of a test, from the runs of both generators in the order of the iterations.
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

-- A twentieth outside the certain bounds: the clocks of the two processes differ, and so do the
-- windows, a little.
miscounted :: Found -> Bool
miscounted found = case foundServed found of
  Just (least, most) -> foundRate found < 0.95 * least || foundRate found > 1.05 * most
  Nothing -> False

-- | The heading of the table.
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

-- | The verdict in words.
verdictText :: Verdict -> String
verdictText = \case
  Agrees -> "agrees"
  Differs -> "DIFFERS"
  Miscounts who -> "MISCOUNTS: " <> who
  Counted -> "as the server counted"
  Unwatched -> "not judged: the server was not asked in time"
  NotJudged who -> "not judged: " <> who <> " the bottleneck"
  Unsound -> "INVALID"
