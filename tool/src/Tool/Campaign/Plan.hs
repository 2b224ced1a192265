-- | When each cell is measured, how long that takes, and what is left out when
-- there is less time.
--
-- Iterations of a cell do not follow each other: the campaign goes through all
-- cells once, then through all of them backwards, and so on, so that a machine
-- that changes over an hour changes every cell alike and not the last ones.
--
-- A budget is kept by measuring less, and what is left out is said: first
-- iterations, down to three, below which no interval means much; then the least
-- important cells; then the iterations again. Soaks are what they are.
module Tool.Campaign.Plan
  ( Costs (..),
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
import Tool.Span (renderSpan, roughly)
import Tool.Text (Align (..), table)

-- | How long things take, in seconds.
data Costs = Costs
  { costsWarmup :: Double,
    costsDuration :: Double,
    -- | Starting and ending a server, filling it, asking it.
    costsOverhead :: Double,
    -- | Measuring the same with @redis-benchmark@; 0 if that is not done.
    costsReference :: Double,
    -- | Filling, ending, restarting and reading a server that keeps a log that
    -- is synchronised always, once for each way of ending; 0 if that is not done.
    costsDurability :: Double
  }
  deriving stock (Eq, Show)

-- | One long run, whose level may change.
data Soak = Soak
  { soakWorkload :: String,
    soakPersistence :: Persistence,
    soakSeconds :: Double
  }
  deriving stock (Eq, Show)

-- | What will be measured.
data Plan = Plan
  { planCells :: [(Reason, Cell)],
    planIterations :: Int,
    -- | Soaks with the cell that each is.
    planSoaks :: [(Soak, Cell)],
    planCosts :: Costs,
    -- | What the budget left out, a line each.
    planCuts :: [String]
  }
  deriving stock (Eq, Show)

-- | One measurement.
data Step
  = -- | A cell, and which iteration of it, from 1.
    StepCell Cell Int
  | -- | A cell for so many seconds.
    StepSoak Cell Double
  deriving stock (Eq, Show)

-- | A plan within a budget of seconds, if there is one. 'Left': not even the
-- smallest one fits.
plan :: Costs -> Maybe Double -> Int -> [(Soak, Cell)] -> [(Reason, Cell)] -> Either String Plan
plan costs budget iterations soaks cells = case budget of
  Nothing -> Right whole
  Just seconds -> fit seconds
  where
    whole =
      Plan
        { planCells = cells,
          planIterations = iterations,
          planSoaks = soaks,
          planCosts = costs,
          planCuts = []
        }
    fit seconds = case filter ((<= seconds) . planSeconds) candidates of
      found : _ -> Right found {planCuts = cuts seconds found}
      [] ->
        Left $
          "the budget of "
            <> renderSpan seconds
            <> " is not enough: the soaks and the baseline once take "
            <> renderSpan (planSeconds least)
    least = whole {planCells = take 1 cells, planIterations = min 1 iterations}
    few = min 3 iterations
    -- In the order in which they are preferred.
    candidates =
      [whole {planIterations = count} | count <- [iterations, iterations - 1 .. few]]
        <> [whole {planIterations = few, planCells = take count cells} | count <- counts]
        <> [ whole {planIterations = count, planCells = take kept cells}
             | count <- [few - 1, few - 2 .. 1],
               kept <- counts
           ]
    counts = [length cells - 1, length cells - 2 .. 1]
    cuts seconds found =
      [ "the budget of "
          <> renderSpan seconds
          <> " allows "
          <> show (planIterations found)
          <> " of "
          <> show iterations
          <> " iterations"
        | planIterations found < iterations
      ]
        <> [ "left out for the budget of "
               <> renderSpan seconds
               <> ": "
               <> cellName cell
               <> " ("
               <> reasonText reason
               <> ")"
             | (reason, cell) <- drop (length (planCells found)) cells
           ]

-- | All measurements in their order.
steps :: Plan -> [Step]
steps it =
  concat
    [ map (`StepCell` round') (if odd round' then cells else reverse cells)
      | round' <- [1 .. planIterations it]
    ]
    <> [StepSoak cell (soakSeconds soak) | (soak, cell) <- planSoaks it]
  where
    cells = map snd (planCells it)

-- | Different for all of a plan; a path below the campaign's directory.
stepName :: Step -> FilePath
stepName = \case
  StepCell cell iteration -> cellName cell <> "/" <> show iteration
  StepSoak cell seconds -> "soak." <> renderSpan seconds <> "." <> cellName cell <> "/1"

-- | Estimated.
planSeconds :: Plan -> Double
planSeconds it = sum (map (stepSeconds (planCosts it)) (steps it))

-- | Estimated.
stepSeconds :: Costs -> Step -> Double
stepSeconds costs = \case
  StepCell cell _ -> around cell + costsDuration costs
  StepSoak cell seconds -> around cell + seconds
  where
    around cell =
      costsWarmup costs + costsOverhead costs + costsReference costs
        + fromIntegral netPings * netSeconds (cellNet cell)
        + (if cellPersistence cell == PersistAofAlways then costsDurability costs else 0)

-- | For people to read before they wait.
renderPlan :: Plan -> [String]
renderPlan it =
  table
    (AlignRight : replicate 3 AlignLeft <> replicate 2 AlignRight <> replicate 3 AlignLeft)
    ( ["#", "workload", "persistence", "place", "bytes", "clients", "net", "server", "because of"] :
      zipWith row [1 :: Int ..] (planCells it)
        <> [ line "soak" cell (renderSpan (soakSeconds soak))
             | (soak, cell) <- planSoaks it
           ]
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
    line number cell because =
      [ number,
        cellWorkload cell,
        persistenceName (cellPersistence cell),
        placeLabel (cellPlace cell),
        show (cellPayload cell),
        show (cellClients cell),
        netName (cellNet cell),
        namedLabel (cellServer cell),
        because
      ]
