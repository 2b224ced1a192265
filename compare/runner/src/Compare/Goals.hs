-- | What this library must reach beside its peers, as data, and whether it did.
module Compare.Goals
  ( Goal (..),
    Ceiling (..),
    Basis (..),
    Verdict (..),
    judge,
    goalLine,
    isReached,
  )
where

import Compare.Cell
import Compare.Document
import Compare.Row
import Compare.Sample
import Data.List qualified as List
import Data.Maybe (fromMaybe)
import Data.Ord (Down (..), comparing)
import Data.Text (Text)
import Data.Text qualified as Text
import Text.Printf (printf)

-- | One demand and what came of it.
data Goal = Goal
  { goalCell :: Cell,
    -- | Against whom: @the best StackExchange.Redis (1.2.6)@.
    goalAgainst :: Text,
    goalMeasure :: Measure,
    -- | At least this for throughput, at most for processor time.
    goalMust :: Double,
    goalVerdict :: Verdict,
    -- | Of a missed goal that asks for more than the servers can well do: what they can.
    goalCeiling :: Maybe Ceiling
  }
  deriving stock (Eq, Show)

-- | What the servers' one core does about, whoever asks: an estimate, which a
-- single run may exceed.
data Ceiling = Ceiling
  { -- | Commands per second.
    ceilingOps :: Double,
    ceilingBasis :: Basis,
    -- | The row from which it is known.
    ceilingRow :: Text,
    -- | Commands per second that were needed.
    ceilingNeeded :: Double
  }
  deriving stock (Eq, Show)

-- | How the servers' limit is known.
data Basis
  = -- | By what a command of the row costs them in the median, the least of all.
    LeastCost
  | -- | By the best single run of all, which had more than that.
    BestRun
  deriving stock (Eq, Show)

-- | What is compared.
data Measure
  = Throughput
  | ProcessorTime
  deriving stock (Eq, Show)

-- | Ratio, least and greatest ratio within one iteration, our figure, theirs.
data Verdict
  = Reached Double (Double, Double) Double Double
  | Missed Double (Double, Double) Double Double
  | -- | Why there is no ratio.
    NotMeasured Text
  deriving stock (Eq, Show)

-- | Whether it was.
isReached :: Goal -> Bool
isReached goal = case goalVerdict goal of
  Reached {} -> True
  _ -> False

-- | All goals whose cell was to be measured.
judge :: [Cell] -> Document -> [Goal]
judge cells document =
  filter ((`elem` cells) . goalCell) $
    concat
      [ oneServer Standalone,
        [fasterThanStackExchange 1.5 (waiting Cluster 256), first (waiting Cluster 256)],
        oneServer StandaloneFree
      ]
  where
    oneServer place =
      concat
        [ concat
            [ [fasterThanStackExchange 2 (waiting place callers), firstButLimit (waiting place callers)]
              | callers <- [16, 64, 256]
            ],
          [fasterThanStackExchange 1.2 (waiting place 1), first (waiting place 1)],
          [ against Throughput 0.85 [referenceName] "redis-benchmark -c 16 -P 64" (batches place),
            against ProcessorTime 0.6 (names StackExchange) "the StackExchange.Redis that needs least" (batches place),
            against ProcessorTime 1.1 (filter ("hiredis" `Text.isPrefixOf`) (names Limit)) "hiredis pipelining" (batches place)
          ]
        ]
    waiting place callers =
      Cell
        { cellPlace = place,
          cellOperation = GetHit,
          cellValueSize = 512,
          cellStyle = Wait,
          cellInFlight = callers,
          cellCommon = defaultCommon
        }
    batches place = (waiting place 1024) {cellStyle = Batch}
    names kind = [rowName row | row <- documentRows document, rowKind row == kind]
    fasterThanStackExchange must = against Throughput must (names StackExchange) "the best StackExchange.Redis"
    first = against Throughput 1 (names StackExchange <> names Other <> names Limit) "the best of all others"
    firstButLimit = against Throughput 1 (names StackExchange <> names Other) "the best of all others but C"
    against measure must rivals what cell =
      Goal
        { goalCell = cell,
          goalAgainst = maybe what (named what) rival,
          goalMeasure = measure,
          goalMust = must,
          goalVerdict = judged,
          goalCeiling = case (measure, judged) of
            (Throughput, Missed _ _ _ theirs) -> ceilingOf document cell (must * theirs)
            _ -> Nothing
        }
      where
        rival = bestOf measure cell rivals
        judged = maybe (NotMeasured ("no valid run of " <> what)) (verdict measure must cell) rival
    named what row
      | row == referenceName || "hiredis" `Text.isPrefixOf` row = what
      | otherwise = what <> " (" <> fromMaybe row (Text.stripPrefix "StackExchange.Redis " row) <> ")"
    bestOf measure cell rivals =
      fmap fst . List.find (const True) . List.sortBy (order measure) $
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

-- What the servers' core can do, if that is less than what is needed; what a
-- single run had it can do in any case. Both cores free, the servers may take what
-- they like, so that it is not known.
ceilingOf :: Document -> Cell -> Double -> Maybe Ceiling
ceilingOf document cell needed
  | isPinned (cellPlace cell),
    (cost, cheapest) : _ <- List.sort [(cost, row) | (row, found) <- known, Just cost <- [figuresServerCpu found]],
    (Down most, best) : _ <- List.sort [(Down (figuresOpsMost found), row) | (row, found) <- known] =
    List.find ((< needed) . ceilingOps) . Just $
      if most > 1e9 / cost
        then Ceiling {ceilingOps = most, ceilingBasis = BestRun, ceilingRow = best, ceilingNeeded = needed}
        else Ceiling {ceilingOps = 1e9 / cost, ceilingBasis = LeastCost, ceilingRow = cheapest, ceilingNeeded = needed}
  | otherwise = Nothing
  where
    known =
      [ (row, found)
        | row <- referenceName : map rowName (documentRows document),
          Just found <- [figures document row cell]
      ]

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
          (maybe "" ceilingText (goalCeiling goal))
    ceilingText :: Ceiling -> String
    ceilingText Ceiling {ceilingOps, ceilingBasis, ceilingRow, ceilingNeeded} =
      printf "; needed are %.1f k/s, and " (ceilingNeeded / 1e3) <> case ceilingBasis of
        LeastCost ->
          printf
            "the servers' core, at what a command of %s costs it in the median, does about %.1f k/s"
            (Text.unpack ceilingRow)
            (ceilingOps / 1e3)
        BestRun -> printf "the best single run of all rows, of %s, had %.1f k/s" (Text.unpack ceilingRow) (ceilingOps / 1e3)
    figureText :: Double -> String
    figureText value = case goalMeasure goal of
      Throughput -> printf "%.1f k/s" (value / 1e3)
      ProcessorTime -> printf "%.2f us" (value / 1e3)
