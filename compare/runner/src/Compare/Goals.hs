-- | The goals of this library beside its peers, as data, and whether it reached them.
--
-- The goal depends on the server. Where the server has room, this library must do twice what
-- StackExchange.Redis does. Where twice that is more than the server's core can do, no client can:
-- there the library must be first among all clients that are not written in C, and about as fast as
-- those in C. The runs decide which of the two cases a cell is, not a list.
module Compare.Goals
  ( Goal (..),
    Filling (..),
    Basis (..),
    Verdict (..),
    Ratio (..),
    judge,
    filling,
    isFull,
    goalLine,
    isReached,
  )
where

import Compare.Cell
import Compare.Document
import Compare.Row
import Compare.Sample
import Control.Monad (guard)
import Data.List qualified as List
import Data.Maybe (isJust, listToMaybe)
import Data.Ord (Down (..))
import Data.Text (Text)
import Data.Text qualified as Text
import Text.Printf (printf)
import Tool.Span (inMicros)
import Tool.Statistics (median)

-- | One goal and its result.
data Goal = Goal
  { goalCell :: Cell,
    -- | The rivals: @the best StackExchange.Redis@.
    goalAgainst :: Text,
    goalMeasure :: Measure,
    -- | The bound: a minimum for throughput, a maximum for processor time.
    goalMust :: Double,
    goalVerdict :: Verdict,
    -- | The reason for this goal; 'Nothing' in a cluster, where it does not matter, and where it is
    -- not known.
    goalFilling :: Maybe Filling
  }
  deriving stock (Eq, Show)

-- | How much of a server's core the best StackExchange.Redis uses.
data Filling = Filling
  { -- | Commands per second that the core can do, whichever client asks: an estimate, which a
    -- single run may exceed.
    fillingCapacity :: Double,
    fillingBasis :: Basis,
    -- | The row that the capacity was derived from.
    fillingRow :: Text,
    -- | Commands per second of the best StackExchange.Redis.
    fillingRival :: Double
  }
  deriving stock (Eq, Show)

-- | How the capacity was derived: from the greater of two medians.
data Basis
  = -- | From the server's cost of one of the row's commands, the least of all rows.
    LeastCost
  | -- | From the row's throughput, the greatest of all rows.
    MostDone
  deriving stock (Eq, Show)

-- | Whether twice the throughput of StackExchange.Redis is more than the server can do.
isFull :: Filling -> Bool
isFull found = 2 * fillingRival found > fillingCapacity found

-- | The figure that is compared.
data Measure
  = Throughput
  | ProcessorTime
  deriving stock (Eq, Show)

-- | Whether the ratio reached the bound.
data Verdict
  = Reached Ratio
  | Missed Ratio
  | -- | The reason why there is no ratio.
    NotMeasured Text
  deriving stock (Eq, Show)

-- | Our figure divided by that of the rival which was best in the same iteration. A ratio to the
-- rival that is best by its median would flatter us: the best of an iteration is often another one.
data Ratio = Ratio
  { -- | The median over the iterations.
    ratioMedian :: Double,
    ratioLeast :: Double,
    ratioMost :: Double,
    -- | Our median.
    ratioOurs :: Double,
    -- | The rival that is best by its median, and that.
    ratioRival :: (Text, Double)
  }
  deriving stock (Eq, Show)

-- | Whether the goal was reached.
isReached :: Goal -> Bool
isReached goal = case goalVerdict goal of
  Reached {} -> True
  _ -> False

-- | All goals whose cell was among those to be measured.
judge :: [Cell] -> Document -> [Goal]
judge cells document = concatMap goals (filter (`elem` cells) wanted)
  where
    wanted =
      [ Cell
          { cellPlace = place,
            cellOperation = GetHit,
            cellValueSize = 512,
            cellStyle = style,
            cellInFlight = inFlight,
            cellCommon = defaultCommon
          }
        | place <- [Standalone, Cluster, StandaloneFree],
          (style, inFlight) <- [(Wait, 1), (Wait, 16), (Wait, 64), (Wait, 256), (Batch, 1024)]
      ]
    goals cell
      | isCluster (cellPlace cell) = [first cell]
      | maybe False isFull (filling document cell) = [first cell, nearC cell, cheapAsC cell]
      | otherwise = [twice cell]
    first = against Throughput 1 (names StackExchange <> names Other) "the best of all others but C"
    nearC = against Throughput 0.95 hiredis "the better hiredis"
    cheapAsC = against ProcessorTime 1 hiredis "the hiredis that needs less"
    twice = against Throughput 2 (names StackExchange) "the best StackExchange.Redis"
    hiredis = filter ("hiredis" `Text.isPrefixOf`) (names Limit)
    names = rowNames document
    against measure must rivals what cell =
      Goal
        { goalCell = cell,
          goalAgainst = what,
          goalMeasure = measure,
          goalMust = must,
          goalVerdict = maybe (NotMeasured ("no valid run of " <> without)) judged (beside document measure cell rivals),
          goalFilling = if isCluster (cellPlace cell) then Nothing else filling document cell
        }
      where
        without = if isJust (figures document ourName cell) then what else ourName
        judged ratio = (if good (ratioMedian ratio) then Reached else Missed) ratio
        good ratio = case measure of
          Throughput -> ratio >= must
          ProcessorTime -> ratio <= must

-- Ours beside these rows at a cell; 'Nothing' if ours or all of theirs have no figures there.
beside :: Document -> Measure -> Cell -> [Text] -> Maybe Ratio
beside document measure cell rivals = do
  ours <- figures document ourName cell
  rival <- listToMaybe (List.sortOn (order . snd) known)
  guard (not (null ratios))
  pure
    Ratio
      { ratioMedian = median ratios,
        ratioLeast = minimum ratios,
        ratioMost = maximum ratios,
        ratioOurs = overall ours,
        ratioRival = rival
      }
  where
    known = [(row, overall found) | row <- rivals, Just found <- [figures document row cell]]
    theirs = [other | (row, _) <- known, other <- validSamples document row cell]
    ratios =
      [ single one / best
        | one <- validSamples document ourName cell,
          Just best <- [listToMaybe (List.sortOn order [single other | other <- theirs, sampleIteration other == sampleIteration one])]
      ]
    (single, overall, order) = case measure of
      Throughput -> (sampleOpsPerSecond, figuresOps, negate)
      ProcessorTime -> (sampleCpuPerOp, figuresCpu, id)

-- | How full the server of a cell is. The capacity of its core is derived from all cells with the
-- same commands, whatever the number in flight: with few callers a command is expensive, and that
-- is not the server's limit. Older reports lack the cost of a command; there the capacity is the
-- throughput of the fastest row. 'Nothing' without a run of StackExchange.Redis.
filling :: Document -> Cell -> Maybe Filling
filling document cell = do
  rival <- greatest [figuresOps found | row <- rowNames document StackExchange, Just found <- [figures document row cell]]
  (done, fastest) <- greatest [(figuresOps found, row) | (row, found) <- alike]
  pure $ case greatest [(1e9 / cost, row) | (row, found) <- alike, Just cost <- [figuresServerCpu found], cost > 0] of
    Just (capacity, cheapest)
      | capacity > done -> Filling {fillingCapacity = capacity, fillingBasis = LeastCost, fillingRow = cheapest, fillingRival = rival}
    _ -> Filling {fillingCapacity = done, fillingBasis = MostDone, fillingRow = fastest, fillingRival = rival}
  where
    alike =
      [ (row, found)
        | other <- List.nub (map sampleCell (documentSamples document)),
          asked other == asked cell,
          row <- referenceName : map rowName (documentRows document),
          Just found <- [figures document row other]
      ]
    asked one = (cellPlace one, cellOperation one, cellValueSize one, cellCommon one)
    greatest values = listToMaybe (List.sortOn Down values)

-- The rows of a kind.
rowNames :: Document -> Kind -> [Text]
rowNames document kind = [rowName row | row <- documentRows document, rowKind row == kind]

-- | A goal in one line.
goalLine :: Goal -> Text
goalLine goal = case goalVerdict goal of
  Reached ratio -> "reached  " <> line ratio
  Missed ratio -> "MISSED   " <> line ratio
  NotMeasured why -> "NO RATIO " <> cellName (goalCell goal) <> ", " <> what <> " beside " <> goalAgainst goal <> ": " <> why
  where
    what = case goalMeasure goal of
      Throughput -> "throughput"
      ProcessorTime -> "client CPU"
    line ratio =
      Text.pack $
        printf
          "%s: %.2f x %s %s (must be %s %.2f; single runs %.2f..%.2f; medians %s against %s of %s%s)"
          (Text.unpack (cellName (goalCell goal)))
          (ratioMedian ratio)
          (case goalMeasure goal of Throughput -> "the throughput of" :: String; ProcessorTime -> "the client CPU of")
          (Text.unpack (goalAgainst goal))
          (case goalMeasure goal of Throughput -> "at least" :: String; ProcessorTime -> "at most")
          (goalMust goal)
          (ratioLeast ratio)
          (ratioMost ratio)
          (figureText (ratioOurs ratio))
          (figureText (snd (ratioRival ratio)))
          (Text.unpack (fst (ratioRival ratio)))
          (maybe "" fillingText (goalFilling goal))
    fillingText :: Filling -> String
    fillingText found =
      ( if isFull found
          then printf "; the server is full: twice StackExchange.Redis would be %.1f k/s, its core does " (2 * fillingRival found / 1e3)
          else "; the server has room: its core does " :: String
      )
        <> printf "about %.1f k/s" (fillingCapacity found / 1e3)
        <> case fillingBasis found of
          LeastCost -> printf ", by what a command of %s costs it" (Text.unpack (fillingRow found))
          MostDone -> printf ", by what %s had" (Text.unpack (fillingRow found))
    figureText :: Double -> String
    figureText value = case goalMeasure goal of
      Throughput -> printf "%.1f k/s" (value / 1e3)
      ProcessorTime -> printf "%.2f us" (inMicros value)
