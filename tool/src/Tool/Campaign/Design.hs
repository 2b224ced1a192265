-- | The cells that a campaign measures, in order of importance. All combinations would take days,
-- so the design is a star unless the user requests the full product: a baseline of the first
-- value of each axis, each axis varied alone, and the pairs of axes that are known to affect each
-- other.
--
-- And the order of the measurements, their time, and what is left out when the budget is too small.
-- All cells are measured once, then all of them backwards, and so on, so that a machine that
-- changes over an hour changes every cell alike. A smaller budget leaves out iterations down to
-- three, then the least important cells, then more iterations.
module Tool.Campaign.Design
  ( Axes (..),
    Persistence (..),
    persistenceName,
    Named (..),
    Net (..),
    netName,
    netSeconds,
    netPings,
    Cell (..),
    cellAxes,
    cellName,
    Reason (..),
    reasonText,
    star,
    fullProduct,
    Measuring (..),
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

import Data.Containers.ListUtils (nubOrdOn)
import Data.List (intercalate)
import Data.List.NonEmpty (NonEmpty (..))
import Data.List.NonEmpty qualified as NonEmpty
import Tool.Options.Load (Check)
import Tool.Span (renderSpan, roughly, secondsIn)
import Tool.Text (Align (..), table)

-- | The values of each axis. The first value is the baseline's.
data Axes = Axes
  { axesServers :: NonEmpty Named,
    axesPersistence :: NonEmpty Persistence,
    axesPlaces :: NonEmpty Named,
    axesWorkloads :: NonEmpty String,
    -- | Bytes of a value.
    axesPayloads :: NonEmpty Int,
    -- | Numbers of callers. Each caller has one command in flight.
    axesClients :: NonEmpty Int,
    axesNets :: NonEmpty Net
  }
  deriving stock (Eq, Show)

-- | A server program, or a directory for the server's files, and its label.
data Named = Named
  { namedLabel :: String,
    namedPath :: FilePath
  }
  deriving stock (Eq, Ord, Show)

-- | How the server keeps its data.
data Persistence
  = -- | The server keeps nothing.
    PersistNone
  | -- | Snapshots, by the server's usual rules.
    PersistRdb
  | -- | An append-only file that the system writes back when it likes.
    PersistAofNo
  | -- | An append-only file that is synchronised every second.
    PersistAofEverysec
  | -- | An append-only file that is synchronised before each reply.
    PersistAofAlways
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The name on the command line.
persistenceName :: Persistence -> String
persistenceName = \case
  PersistNone -> "none"
  PersistRdb -> "rdb"
  PersistAofNo -> "aof-no"
  PersistAofEverysec -> "aof-everysec"
  PersistAofAlways -> "aof-always"

-- | The distance to the server.
data Net
  = -- | The loopback as it is.
    NetLocal
  | -- | A round trip of this number of nanoseconds is added.
    NetRoundTrip Int
  deriving stock (Eq, Ord, Show)

-- | The name on the command line.
netName :: Net -> String
netName = \case
  NetLocal -> "local"
  NetRoundTrip nanos -> "rtt=" <> renderSpan (secondsIn nanos)

-- | Seconds of the round trip that is added.
netSeconds :: Net -> Double
netSeconds = \case
  NetLocal -> 0
  NetRoundTrip nanos -> secondsIn nanos

-- | The number of PINGs that measure the distance of a server before a measurement.
netPings :: Int
netPings = 100

-- | One combination of values.
data Cell = Cell
  { cellServer :: Named,
    cellPersistence :: Persistence,
    cellPlace :: Named,
    cellWorkload :: String,
    cellPayload :: Int,
    cellClients :: Int,
    cellNet :: Net
  }
  deriving stock (Eq, Ord, Show)

-- | The value on each axis, by the axis' name.
cellAxes :: Cell -> [(String, String)]
cellAxes cell =
  [ ("workload", cellWorkload cell),
    ("persistence", persistenceName (cellPersistence cell)),
    ("place", namedLabel (cellPlace cell)),
    ("payload", show (cellPayload cell)),
    ("clients", show (cellClients cell)),
    ("net", netName (cellNet cell)),
    ("server", namedLabel (cellServer cell))
  ]

-- | A name with all values, which also fits a directory.
cellName :: Cell -> String
cellName cell = intercalate "." (map written (cellAxes cell))
  where
    written = \case
      ("payload", bytes) -> bytes <> "B"
      ("clients", count) -> count <> "c"
      ("net", net) -> map (\character -> if character == '=' then '-' else character) net
      (_, value) -> value

-- | The reason for a cell in the design.
data Reason
  = ReasonBaseline
  | -- | Only this axis differs from the baseline.
    ReasonAxis String
  | -- | A combination that is known to matter.
    ReasonPair String
  | -- | The full product.
    ReasonFull
  deriving stock (Eq, Show)

-- | The reason as the plan shows it.
reasonText :: Reason -> String
reasonText = \case
  ReasonBaseline -> "baseline"
  ReasonAxis axis -> axis
  ReasonPair pair -> pair
  ReasonFull -> "full product"

-- | The star: each cell once, with the first reason for it. The function says whether a workload
-- carries a value. If it does not, its cells have the baseline's payload.
star :: (String -> Bool) -> Axes -> [(Reason, Cell)]
star carriesValue axes = firsts (map (fmap (settled carriesValue axes)) cells)
  where
    base = baseline axes
    cells =
      [(ReasonBaseline, base)]
        <> concat
          [ alone "persistence" persistences,
            alone "workload" workloads,
            alone "payload" payloads,
            alone "clients" clients,
            alone "net" nets,
            alone "place" places,
            alone "server" [\cell -> cell {cellServer = each} | each <- rest axesServers],
            -- The cost of a synchronised file depends on the number of clients that share one
            -- synchronisation, on the disk, and on the distance of the clients.
            together "persistence × clients" logs clients,
            together "persistence × place" logs places,
            together "persistence × net × clients" synchronised ((.) <$> nets <*> (id : clients)),
            together "persistence × payload" logs payloads,
            together "persistence × workload" logs workloads,
            together "workload × payload" workloads payloads
          ]
    alone name changes = [(ReasonAxis name, change base) | change <- changes]
    together name ones others = [(ReasonPair name, other (one base)) | one <- ones, other <- others]
    persistences = keeping <$> rest axesPersistence
    keeping persistence cell = cell {cellPersistence = persistence}
    workloads = [\cell -> cell {cellWorkload = each} | each <- rest axesWorkloads]
    payloads = [\cell -> cell {cellPayload = each} | each <- rest axesPayloads]
    clients = [\cell -> cell {cellClients = each} | each <- rest axesClients]
    nets = [\cell -> cell {cellNet = each} | each <- rest axesNets]
    places = [\cell -> cell {cellPlace = each} | each <- rest axesPlaces]
    logs =
      [ keeping each
        | each <- NonEmpty.toList (axesPersistence axes),
          each `elem` [PersistAofEverysec, PersistAofAlways]
      ]
    synchronised = [keeping PersistAofAlways | PersistAofAlways `elem` axesPersistence axes]
    rest :: (Axes -> NonEmpty a) -> [a]
    rest axis = NonEmpty.drop 1 (axis axes)

-- | Every combination, each once.
fullProduct :: (String -> Bool) -> Axes -> [(Reason, Cell)]
fullProduct carriesValue axes =
  firsts [(ReasonFull, settled carriesValue axes cell) | cell <- NonEmpty.toList (combinations axes)]

-- All of them, the baseline first.
combinations :: Axes -> NonEmpty Cell
combinations axes =
  Cell <$> axesServers axes <*> axesPersistence axes <*> axesPlaces axes
    <*> axesWorkloads axes
    <*> axesPayloads axes
    <*> axesClients axes
    <*> axesNets axes

baseline :: Axes -> Cell
baseline axes = let first :| _ = combinations axes in first

-- Cells that cannot differ become the same cell.
settled :: (String -> Bool) -> Axes -> Cell -> Cell
settled carriesValue axes cell
  | carriesValue (cellWorkload cell) = cell
  | otherwise = cell {cellPayload = cellPayload (baseline axes)}

firsts :: [(Reason, Cell)] -> [(Reason, Cell)]
firsts = nubOrdOn snd

-- * Plan

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
