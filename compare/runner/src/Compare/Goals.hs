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
import Data.List qualified as List
import Data.Maybe (fromMaybe, listToMaybe)
import Data.Ord (Down (..), comparing)
import Data.Text (Text)
import Data.Text qualified as Text
import Text.Printf (printf)
import Tool.Span (inMicros)

-- | One goal and its result.
data Goal = Goal
  { goalCell :: Cell,
    -- | The rival: @the best StackExchange.Redis (1.2.6)@.
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

-- | The ratio, the least and greatest ratio within one iteration, our figure, and theirs.
data Verdict
  = Reached Double (Double, Double) Double Double
  | Missed Double (Double, Double) Double Double
  | -- | The reason why there is no ratio.
    NotMeasured Text
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
          goalAgainst = maybe what (named what) rival,
          goalMeasure = measure,
          goalMust = must,
          goalVerdict = judged,
          goalFilling = if isCluster (cellPlace cell) then Nothing else filling document cell
        }
      where
        rival = bestOf measure cell rivals
        judged = maybe (NotMeasured ("no valid run of " <> what)) (verdict measure must cell) rival
    named what row
      | row `elem` hiredis = what
      | otherwise = what <> " (" <> fromMaybe row (Text.stripPrefix "StackExchange.Redis " row) <> ")"
    bestOf measure cell rivals =
      fmap fst . listToMaybe . List.sortBy (order measure) $
        [(row, found) | row <- rivals, Just found <- [figures document row cell]]
    order = \case
      Throughput -> comparing (Down . figuresOps . snd)
      ProcessorTime -> comparing (figuresCpu . snd)
    verdict measure must cell rival = case (figures document ourName cell, figures document rival cell) of
      (Just ours, Just theirs) ->
        let figure = case measure of
              Throughput -> figuresOps
              ProcessorTime -> figuresCpu
            single = case measure of
              Throughput -> sampleOpsPerSecond
              ProcessorTime -> sampleCpuPerOp
            ratio = figure ours / figure theirs
            ratios =
              [ single one / single other
                | one <- validSamples document ourName cell,
                  other <- validSamples document rival cell,
                  sampleIteration one == sampleIteration other
              ]
            spread = if null ratios then (ratio, ratio) else (minimum ratios, maximum ratios)
            good = case measure of
              Throughput -> ratio >= must
              ProcessorTime -> ratio <= must
         in (if good then Reached else Missed) ratio spread (figure ours) (figure theirs)
      (Nothing, _) -> NotMeasured "no valid run of redis-client"
      (_, Nothing) -> NotMeasured ("no valid run of " <> rival)

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
  Reached ratio spread ours theirs -> "reached  " <> line ratio spread ours theirs
  Missed ratio spread ours theirs -> "MISSED   " <> line ratio spread ours theirs
  NotMeasured why -> "NO RATIO " <> cellName (goalCell goal) <> ", " <> what <> " beside " <> goalAgainst goal <> ": " <> why
  where
    what = case goalMeasure goal of
      Throughput -> "throughput"
      ProcessorTime -> "client CPU"
    line ratio (least, most) ours theirs =
      Text.pack $
        printf
          "%s: %.2f x %s %s (must be %s %.2f; single runs %.2f..%.2f; %s against %s%s)"
          (Text.unpack (cellName (goalCell goal)))
          ratio
          (case goalMeasure goal of Throughput -> "the throughput of" :: String; ProcessorTime -> "the client CPU of")
          (Text.unpack (goalAgainst goal))
          (case goalMeasure goal of Throughput -> "at least" :: String; ProcessorTime -> "at most")
          (goalMust goal)
          least
          most
          (figureText ours)
          (figureText theirs)
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
