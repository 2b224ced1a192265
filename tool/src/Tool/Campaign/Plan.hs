-- | The order of the measurements, their time, and what is left out when the budget is too small.
-- All cells are measured once, then all of them backwards, and so on, so that a machine that
-- changes over an hour changes every cell alike. A smaller budget leaves out iterations down to
-- three, then the least important cells, then more iterations.
module Tool.Campaign.Plan
  ( Measuring (..),
    Costs (..),
    costsOf,
    Soak (..),
    Plan (..),
    Step (..),
    plan,
    steps,
    stepName,
    planSeconds,
    stepSeconds,
    renderPlan,
  )
where

import Tool.Campaign.Design
import Tool.Options.Load (Check)
import Tool.Span (renderSpan, roughly)
import Tool.Text (Align (..), table)

-- | How every cell of a campaign is measured.
data Measuring = Measuring
  { -- | The processors of servers; an empty list means all.
    measuringServerCores :: [Int],
    -- | The processors of the load; an empty list means all.
    measuringCores :: [Int],
    -- | Seconds.
    measuringWarmup :: Double,
    -- | Seconds. A soak has its own duration.
    measuringDuration :: Double,
    measuringKeys :: Int,
    -- | The template of keys, as @bench --key-template@ reads it.
    measuringKeyForm :: Maybe String,
    measuringReference :: Bool,
    -- | Checks of the load whose failure is only noted.
    measuringAllowed :: [Check],
    -- | Seconds of writing before the server is killed, and before the power is cut. With 0 there
    -- is neither check.
    measuringDurability :: Double
  }
  deriving stock (Eq, Show)

-- | Estimated durations in seconds.
data Costs = Costs
  { costsWarmup :: Double,
    costsDuration :: Double,
    -- | Starting and ending a server, filling it, and asking it.
    costsOverhead :: Double,
    -- | Measuring a cell with @redis-benchmark@ too; 0 if that is not done.
    costsReference :: Double,
    -- | Filling, ending, restarting and reading a server whose log is synchronised always, once for
    -- each way of ending; 0 if that is not done.
    costsDurability :: Double
  }
  deriving stock (Eq, Show)

-- | The costs of measuring in this way. The flag says whether any workload has a test of
-- redis-benchmark.
costsOf :: Measuring -> Bool -> Costs
costsOf measuring referenced =
  Costs
    { costsWarmup = measuringWarmup measuring,
      costsDuration = measuringDuration measuring,
      costsOverhead = 0.6,
      costsReference =
        if measuringReference measuring && referenced then measuringDuration measuring + 0.5 else 0,
      costsDurability =
        if measuringDurability measuring > 0 then 2 + 4 * measuringDurability measuring else 0
    }

-- | One long run, whose level may change.
data Soak = Soak
  { soakWorkload :: String,
    soakPersistence :: Persistence,
    soakSeconds :: Double
  }
  deriving stock (Eq, Show)

-- | The measurements of a campaign.
data Plan = Plan
  { planCells :: [(Reason, Cell)],
    planIterations :: Int,
    planSoaks :: [(Soak, Cell)],
    planCosts :: Costs,
    -- | What the budget left out, in lines.
    planCuts :: [String]
  }
  deriving stock (Eq, Show)

data Step
  = -- | A cell, and the number of the iteration, from 1.
    StepCell Cell Int
  | -- | A cell, measured for this number of seconds.
    StepSoak Cell Double
  deriving stock (Eq, Show)

-- | A plan within a budget of seconds, if there is a budget. 'Left': even the smallest plan does
-- not fit.
plan :: Costs -> Maybe Double -> Int -> [(Soak, Cell)] -> [(Reason, Cell)] -> Either String Plan
plan costs budget iterations soaks cells = maybe (Right whole) fit budget
  where
    whole = Plan cells iterations soaks costs []
    fit seconds = case filter ((<= seconds) . planSeconds) candidates of
      found : _ -> Right found {planCuts = cuts seconds found}
      [] ->
        Left $
          budgetOf seconds <> " is not enough: the soaks and the baseline once take "
            <> renderSpan (planSeconds least)
    least = whole {planCells = take 1 cells, planIterations = min 1 iterations}
    few = min 3 iterations
    -- In the order of preference.
    candidates =
      [whole {planIterations = count} | count <- [iterations, iterations - 1 .. few]]
        <> [whole {planIterations = few, planCells = take count cells} | count <- counts]
        <> [ whole {planIterations = count, planCells = take kept cells}
             | count <- [few - 1, few - 2 .. 1],
               kept <- length cells : counts
           ]
    counts = [length cells - 1, length cells - 2 .. 1]
    cuts seconds found =
      [ unwords
          [budgetOf seconds, "allows", show (planIterations found), "of", show iterations, "iterations"]
        | planIterations found < iterations
      ]
        <> [ concat ["left out for ", budgetOf seconds, ": ", cellName cell, " (", reasonText reason, ")"]
             | (reason, cell) <- drop (length (planCells found)) cells
           ]
    budgetOf seconds = "the budget of " <> renderSpan seconds

-- | All measurements in order.
steps :: Plan -> [Step]
steps it =
  concat
    [ map (`StepCell` round') (if odd round' then cells else reverse cells)
      | round' <- [1 .. planIterations it]
    ]
    <> [StepSoak cell (soakSeconds soak) | (soak, cell) <- planSoaks it]
  where
    cells = map snd (planCells it)

-- | The name of a measurement, unique in a plan: a path below the campaign's directory.
stepName :: Step -> FilePath
stepName = \case
  StepCell cell iteration -> cellName cell <> "/" <> show iteration
  StepSoak cell seconds -> "soak." <> renderSpan seconds <> "." <> cellName cell <> "/1"

planSeconds :: Plan -> Double
planSeconds it = sum (map (stepSeconds (planCosts it)) (steps it))

-- | The estimated seconds of a measurement.
stepSeconds :: Costs -> Step -> Double
stepSeconds costs = \case
  StepCell cell _ -> around cell + costsDuration costs + besides cell
  StepSoak cell seconds -> around cell + seconds
  where
    around cell =
      costsWarmup costs + costsOverhead costs
        + fromIntegral netPings * netSeconds (cellNet cell)
    -- A soak has neither.
    besides cell =
      costsReference costs
        + (if cellPersistence cell == PersistAofAlways then costsDurability costs else 0)

-- | The plan in lines, for the user to read before the measurements.
renderPlan :: Plan -> [String]
renderPlan it =
  table
    (AlignRight : replicate 3 AlignLeft <> replicate 2 AlignRight <> replicate 3 AlignLeft)
    ( ["#", "workload", "persistence", "place", "bytes", "clients", "net", "server", "because of"] :
      zipWith row [1 :: Int ..] (planCells it)
        <> [line "soak" cell (renderSpan (soakSeconds soak)) | (soak, cell) <- planSoaks it]
    )
    <> [""]
    <> planCuts it
    <> [ show (length (planCells it)) <> " cells × " <> show (planIterations it) <> " iterations, "
           <> show (length (planSoaks it))
           <> " soaks: about "
           <> renderSpan (roughly (planSeconds it))
       ]
  where
    row number (reason, cell) = line (show number) cell (reasonText reason)
    line number cell because = number : map snd (cellAxes cell) <> [because]
