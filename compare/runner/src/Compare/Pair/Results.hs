-- | What the turns of "Compare.Pair" found, and how it is told.
module Compare.Pair.Results
  ( Rated,
    inEveryTurn,
    operations,
    operationName,

    -- * Beside StackExchange.Redis
    Compared (..),
    compared,
    comparedDocument,
    comparedTable,
    comparedVerdict,

    -- * By callers and connections
    Point (..),
    grid,
    sweepOrder,
    sweptDocument,
    sweptLines,
    bestLines,
  )
where

import Compare.Cell
import Compare.Plan (turns)
import Compare.Row (ourName)
import Data.Aeson (Value, object, toJSON, (.=))
import Data.List (sortOn, transpose)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Ord (Down (..))
import Data.Text (Text)
import Data.Text qualified as Text
import System.Exit (ExitCode (..))
import Text.Printf (printf)
import Tool.Statistics (median)
import Tool.Text (Align (..), table)

-- | The commands a second of one run, or the reason why there are none. Runs of the same key are in
-- the order of their turns.
type Rated key = (key, Either Text Double)

-- | What is measured, in the order of the tables.
operations :: [Operation]
operations = [Set, GetHit, Mixed]

-- | The rates of each key, in the order of the turns. A key that has none in one turn has none at
-- all: the speed of a client that is wrong now and then means nothing.
inEveryTurn :: Ord key => [Rated key] -> Map key [Double]
inEveryTurn rated =
  Map.mapMaybe (either (const Nothing) Just . sequence) (Map.fromListWith (flip (<>)) (fmap (fmap pure) rated))

-- | One operation of this library beside StackExchange.Redis. All rates are in the order of the
-- turns.
data Compared = Compared
  { comparedOperation :: Operation,
    comparedOurs :: [Double],
    -- | The version of StackExchange.Redis with the greatest median.
    comparedVersion :: Text,
    comparedTheirs :: [Double],
    -- | Ours divided by the fastest version of the same turn.
    comparedRatios :: [Double],
    -- | The rates of all rows.
    comparedRates :: Map Text [Double]
  }
  deriving stock (Eq, Show)

-- | The operations that this library and a version of StackExchange.Redis have run in every turn.
compared :: [Rated (Operation, Text)] -> [Compared]
compared rated =
  [ Compared
      { comparedOperation = operation,
        comparedOurs = ours,
        comparedVersion = version,
        comparedTheirs = best,
        comparedRatios = zipWith (/) ours (map maximum (transpose (Map.elems theirs))),
        comparedRates = rates
      }
    | operation <- operations,
      let rates = Map.fromList [(row, found) | ((measured, row), found) <- Map.toList (inEveryTurn rated), measured == operation]
          theirs = Map.delete ourName rates,
      Just ours <- [Map.lookup ourName rates],
      (version, best) : _ <- [sortOn (Down . median . snd) (Map.toList theirs)]
  ]

-- | What is kept: medians, and the rates and ratios of each turn.
comparedDocument :: [Compared] -> Value
comparedDocument results =
  toJSON
    [ object
        [ "operation" .= operationName (comparedOperation one),
          "se_redis_ops_per_sec" .= median (comparedTheirs one),
          "se_redis_version" .= comparedVersion one,
          "redis_client_ops_per_sec" .= median (comparedOurs one),
          "ratio_pct" .= (100 * median (comparedRatios one)),
          "ratio_pct_turns" .= map (100 *) (comparedRatios one),
          "turns" .= comparedRates one
        ]
      | one <- results
    ]

-- | The table, with the range of the turns beside each median.
comparedTable :: [Compared] -> [String]
comparedTable results =
  table [AlignLeft, AlignLeft, AlignRight, AlignRight, AlignRight] $
    ["operation", "best StackExchange.Redis", "its ops/s", "redis-client", "ours in % of the fastest of the turn"] :
      [ [ operationName (comparedOperation one),
          Text.unpack (comparedVersion one),
          ranged "%.0f" (comparedTheirs one),
          ranged "%.0f" (comparedOurs one),
          ranged "%.1f" (map (100 *) (comparedRatios one))
        ]
        | one <- results
      ]

-- | Success if and only if the median of the ratios is at least 90 % for each operation.
comparedVerdict :: [Compared] -> ExitCode
comparedVerdict results
  | length results < length operations = ExitFailure 2
  | all ((>= 0.9) . median . comparedRatios) results = ExitSuccess
  | otherwise = ExitFailure 1

-- | A point of the sweep.
data Point = Point
  { pointOperation :: Operation,
    pointConnections :: Int,
    pointCallers :: Int
  }
  deriving stock (Eq, Ord, Show)

-- | The connections and callers of the sweep: up to so many that fewer are best.
grid :: [(Int, Int)]
grid = [(connections, callers) | connections <- powersUpTo 8, callers <- powersUpTo 4096]
  where
    powersUpTo most = takeWhile (<= most) (iterate (* 2) 1)

-- | The order of a turn's points. Each of so many turns begins at another part of the grid, and
-- every second one goes backwards.
sweepOrder :: Int -> Int -> [Point]
sweepOrder count turn =
  [ Point {pointOperation = operation, pointConnections = connections, pointCallers = callers}
    | operation <- turns turn operations,
      (connections, callers) <- turns (turn * stride) grid
  ]
  where
    -- Odd, as 'turns' goes backwards for odd numbers.
    stride = 2 * (length grid `div` (2 * count)) + 1

-- | What is kept: medians, and the rate of each turn.
sweptDocument :: Map Point [Double] -> Value
sweptDocument found =
  toJSON
    [ object
        [ "operation" .= operationName (pointOperation point),
          "mux_count" .= pointConnections point,
          "threads" .= pointCallers point,
          "ops_per_sec" .= median rates,
          "turns" .= rates
        ]
      | (point, rates) <- inOrder found
    ]

-- | A line for each point.
sweptLines :: Map Point [Double] -> [String]
sweptLines found =
  [ printf
      "%-6s %2d connections %3d threads  %s/s"
      (operationName (pointOperation point))
      (pointConnections point)
      (pointCallers point)
      (ranged "%.0f" rates)
    | (point, rates) <- inOrder found
  ]

-- | The best point of each operation, and a warning where the grid ends there: then a point beyond
-- it may be better.
bestLines :: Map Point [Double] -> [String]
bestLines found =
  concat
    [ printf
        "best %s: %d connections, %d threads: %s/s, the fastest in %d of %d turns"
        name
        (pointConnections best)
        (pointCallers best)
        (ranged "%.0f" rates)
        (length (filter id (zipWith (>=) rates fastest)))
        (length rates) :
        [printf "warning: the best of %s is at the edge of the grid: more %s may be faster still" name more | more <- beyond best]
      | operation <- operations,
        let name = operationName operation
            points = filter ((== operation) . pointOperation . fst) (Map.toList found)
            fastest = map maximum (transpose (map snd points)),
        (best, rates) : _ <- [sortOn (Down . median . snd) points]
    ]
  where
    beyond best =
      ["threads" | pointCallers best == maximum (map snd grid)]
        <> ["connections" | pointConnections best == maximum (map fst grid)] ::
        [String]

-- By operation, as in the other tables.
inOrder :: Map Point [Double] -> [(Point, [Double])]
inOrder found = [one | operation <- operations, one@(point, _) <- Map.toList found, pointOperation point == operation]

-- The median, with the least and the greatest.
ranged :: String -> [Double] -> String
ranged form values = concat [shown (median values), " (", shown (minimum values), "..", shown (maximum values), ")"]
  where
    shown :: Double -> String
    shown = printf form

-- | The name on the command line and in files.
operationName :: Operation -> String
operationName = \case
  GetHit -> "get"
  GetMiss -> "get-miss"
  Set -> "set"
  Mixed -> "mixed"
