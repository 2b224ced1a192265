-- | The plan: the rows and cells that are measured, their order, and the time that it takes.
--
-- Not every row is measured at every cell: the cell of a goal needs all rows, but for the other
-- sizes and commands only the rows that could be the fastest are measured. A workload file names
-- them.
module Compare.Plan
  ( Planned (..),
    together,
    plannedRows,
    turns,
    groups,

    -- * Time
    rowWindow,
    runSeconds,
    estimate,
    planLines,
  )
where

import Compare.Cell
import Compare.Row
import Data.List qualified as List
import Data.Text (Text)
import Data.Text qualified as Text
import Text.Printf (printf)

-- | A cell, and the rows that are measured at it.
data Planned = Planned
  { plannedCell :: Cell,
    -- | The prefixes of the names of its rows; empty: all rows.
    plannedNames :: [Text]
  }
  deriving stock (Eq, Show)

-- | Each cell once, at its first place, with all rows that any of its occurrences names.
together :: [Planned] -> [Planned]
together planned =
  [ Planned {plannedCell = cell, plannedNames = if any null names then [] else List.nub (concat names)}
    | cell <- List.nub (map plannedCell planned),
      let names = [plannedNames one | one <- planned, plannedCell one == cell]
  ]

-- | The rows that are measured at a cell: those that are named and support it.
plannedRows :: [Row] -> Planned -> [Row]
plannedRows rows planned = filter (\row -> rowCan (plannedCell planned) row && named row) rows
  where
    named row = null (plannedNames planned) || any (`Text.isPrefixOf` rowName row) (plannedNames planned)

-- | The order of the rows in an iteration: another row is first each time, so that each is first
-- once in as many iterations as there are rows; every second iteration goes backwards from the
-- first row.
turns :: Int -> [a] -> [a]
turns iteration rows = case splitAt (iteration `mod` max 1 (length rows)) rows of
  (sooner, first : later)
    | odd iteration -> first : reverse sooner <> reverse later
    | otherwise -> first : later <> sooner
  (_, []) -> []

-- | Groups of cells that can share servers, in the order in which they came.
groups :: [Planned] -> [[Planned]]
groups planned = [filter ((== key) . share) planned | key <- List.nub (map share planned)]
  where
    share one = let cell = plannedCell one in (cellPlace cell, cellValueSize cell, cellCommon cell)

-- | The window of a row, with the longer warm-up that some rows need.
rowWindow :: Window -> Row -> Window
rowWindow usual row = usual {windowWarmup = max (rowWarmup row) (windowWarmup usual)}

-- | About how many seconds the run of a row takes, including the start and end of its program;
-- without a row, the run of @redis-benchmark@.
runSeconds :: Window -> Maybe Row -> Double
runSeconds usual = \case
  Nothing -> windowDuration usual + 0.3
  Just row -> let window = rowWindow usual row in windowWarmup window + windowDuration window + 0.3

-- | About how many seconds all iterations take. The function says whether @redis-benchmark@ runs at
-- a cell.
estimate :: (Cell -> Bool) -> Window -> [Row] -> Int -> [Planned] -> Double
estimate hasReference window rows iterations planned =
  fromIntegral iterations * (sum (map (cellSeconds hasReference window rows) planned) + sum (map serverSeconds (groups planned)))

cellSeconds :: (Cell -> Bool) -> Window -> [Row] -> Planned -> Double
cellSeconds hasReference window rows planned =
  sum (map (runSeconds window . Just) (plannedRows rows planned))
    + (if hasReference (plannedCell planned) then runSeconds window Nothing else 0)

-- The time to start and fill the servers.
serverSeconds :: [Planned] -> Double
serverSeconds = \case
  one : _ | isCluster (cellPlace (plannedCell one)) -> 4
  _ -> 1

-- | The plan as text: the sum first, then a line for each cell.
planLines :: (Cell -> Bool) -> Window -> [Row] -> Int -> [Planned] -> [String]
planLines hasReference window rows iterations planned =
  printf
    "%d cells, %d rows, %d iterations of %.1f s: about %.0f minutes"
    (length planned)
    (length rows)
    iterations
    (windowDuration window)
    (estimate hasReference window rows iterations planned / 60) :
    [ printf
        "  %-52s %2d rows %6.0f s"
        (Text.unpack (cellName (plannedCell one)))
        (length (plannedRows rows one))
        (fromIntegral iterations * cellSeconds hasReference window rows one)
      | one <- planned
    ]
