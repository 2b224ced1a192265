-- | The cells of a run, and their order.
--
-- Cells that are compared with each other are measured one after the other, service by service, and
-- the whole round is repeated: so changes of the machine affect all services. Every second round
-- goes through the services backwards.
module Compare.Plan
  ( Group (..),
    goalGroups,
    studyGroups,
    quickGroups,
    cellsOf,
    unlike,

    -- * Time
    cellSeconds,
    planLines,
  )
where

import Compare.Cell
import Compare.Load (Scenario (..))
import Compare.Rows (Row (..), coldSeconds, goalRows, naiveRows, otherVersions, spreadRows, studyRows, warmSeconds)
import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Text.Printf (printf)

-- | Cells that are compared with each other.
data Group = Group
  { groupTopology :: Topology,
    groupLayout :: Layout,
    groupScenario :: Scenario,
    groupConnections :: Int,
    groupRows :: [Row],
    -- | Whether latency is also measured in the open loop.
    groupOpenLoop :: Bool
  }

-- | Everything that a goal is about, in both layouts; and the cluster. If Redis plays no part in a
-- request, or a small one, one version of its C# client stands for all. The original's design takes
-- turns with the others: measured by itself, it would run at another time, under other conditions.
goalGroups :: [Row] -> [Group]
goalGroups rows =
  [ Group topology' layout' scenario' count (rowsAt scenario' <> naiveAt topology' layout' scenario' count) True
    | (topology', layout') <- [(Standalone, Pinned), (Cluster, Pinned), (Standalone, Free)],
      (scenario', count) <- goalScenarios,
      -- Listing does not use Redis.
      not (topology' == Cluster && scenario' == Listing)
  ]
  where
    rowsAt scenario'
      | scenario' `elem` [Single, Mixed] = goalRows rows
      | otherwise = filter ((`notElem` map rowName (otherVersions rows)) . rowName) (goalRows rows)
    naiveAt topology' layout' scenario' count =
      [ naive
        | (topology', layout') == (Standalone, Pinned),
          (scenario', count) `elem` [(Single, 100), (Listing, 100), (Post, 10), (Post, 100)],
          naive <- naiveRows rows
      ]

goalScenarios :: [(Scenario, Int)]
goalScenarios = [(Single, 100), (Single, 10), (Listing, 100), (Post, 10), (Post, 100), (Mixed, 20)]

-- | Variants of the Haskell service: the runtime, the HTTP layer, JSON; and the runtime's use of
-- two processors.
studyGroups :: [Row] -> [Group]
studyGroups rows =
  [ Group Standalone layout' scenario' count (of' rows) True
    | (layout', of') <- [(Pinned, studyRows), (Free, spreadRows)],
      (scenario', count) <- [(Single, 100), (Listing, 100), (Post, 100), (Mixed, 20)]
  ]

-- | One cell of each kind.
quickGroups :: [Row] -> [Group]
quickGroups rows =
  [Group Standalone Pinned scenario' count (goalRows rows) (scenario' == Mixed) | (scenario', count) <- goalScenarios]
    <> [Group Standalone Pinned Post 10 (naiveRows rows) False]

-- | The cells of a group, in the order in which they are measured.
cellsOf :: Int -> Group -> [(Row, Cell)]
cellsOf iterations group =
  [ ( row',
      Cell
        { topology = groupTopology group,
          layout = groupLayout group,
          scenario = groupScenario group,
          connections = groupConnections group,
          row = rowName row',
          iteration = number
        }
    )
    | number <- [1 .. iterations],
      row' <- (if even number then reverse else id) (groupRows group)
  ]

-- | What would be measured in another way in these cells than in the results of their groups that
-- are there already. They must not be added: a group's services are compared. Takes the seconds of a
-- measurement.
unlike :: Int -> [(Group, Row, Cell)] -> [Result] -> [Text]
unlike closed cells results =
  List.nub
    [ name <> " " <> before <> ", now " <> now
      | (_, row', this) <- cells,
        result <- results,
        cellGroup (cell result) == cellGroup this,
        (name, now) <- [("seconds", shown closed), ("warm-up", shown (rowWarmup row'))],
        Just before <- [Map.lookup name (facts result)],
        before /= now
    ]
  where
    shown :: Int -> Text
    shown = Text.pack . show

-- | About how many seconds a cell takes, given those of its closed and its open loop: adds the
-- warm-up, and the start and the end of the service.
cellSeconds :: Int -> Double -> (Group, Row, Cell) -> Double
cellSeconds closed open (group, row', this) =
  fromIntegral (coldSeconds row' + warmSeconds + closed) + 1.8 + (if groupOpenLoop group && iteration this > 1 then open + 1.5 else 0)

-- | The plan as text, given the seconds that each cell takes: the sum first, then a line for each
-- group.
planLines :: ((Group, Row, Cell) -> Double) -> (Group -> String) -> [(Group, Row, Cell)] -> [String]
planLines seconds name cells =
  printf "%d measurements: about %.0f minutes" (length cells) (sum (map seconds cells) / 60) :
    [ printf "  %-28s %5.1f minutes: %s" name' (sum (map seconds these) / 60) (unwords (List.nub [Text.unpack (rowName row') | (_, row', _) <- these]))
      | name' <- List.nub [name group | (group, _, _) <- cells],
        let these = [one | one@(group, _, _) <- cells, name group == name']
    ]
