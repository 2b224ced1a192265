-- | Which cells a run has, and in which order.
--
-- Cells that are compared are measured one after the other, service by service,
-- and the whole round is repeated: whatever drifts on the machine drifts for
-- all. Every second round goes through the services backwards.
module Compare.Plan
  ( Group (..),
    goalGroups,
    naiveGroups,
    studyGroups,
    quickGroups,
    cellsOf,
  )
where

import Compare.Cell
import Compare.Load (Scenario (..))
import Compare.Rows (Row (..), goalRows, naiveRows, studyRows)

-- | Cells that are compared with each other.
data Group = Group
  { groupTopology :: Topology,
    groupLayout :: Layout,
    groupScenario :: Scenario,
    groupConnections :: Int,
    groupRows :: [Row],
    -- | Whether latency is taken in the open loop, too.
    groupOpenLoop :: Bool
  }

-- | Everything that a goal is about, in both layouts; and the cluster.
goalGroups :: [Row] -> [Group]
goalGroups rows =
  [ Group topology' layout' scenario' count (goalRows rows) (scenario' == Mixed || (scenario', count) == (Single, 100))
    | (topology', layout') <- [(Standalone, Pinned), (Cluster, Pinned), (Standalone, Free)],
      (scenario', count) <- goalScenarios,
      -- The list does not ask Redis.
      not (topology' == Cluster && scenario' == Listing)
  ]

goalScenarios :: [(Scenario, Int)]
goalScenarios = [(Single, 100), (Single, 10), (Listing, 100), (Post, 10), (Post, 100), (Mixed, 20)]

-- | The original's design at writing and reading.
naiveGroups :: [Row] -> [Group]
naiveGroups rows =
  [ Group Standalone Pinned scenario' count (naiveRows rows) False
    | (scenario', count) <- [(Post, 10), (Post, 100), (Single, 100), (Listing, 100), (Mixed, 20)]
  ]

-- | Variants of the Haskell service: the runtime, the HTTP layer, JSON.
studyGroups :: [Row] -> [Group]
studyGroups rows =
  [ Group topology' Pinned scenario' 100 (studyRows rows) True
    | (topology', scenario') <- [(Standalone, Single), (Standalone, Listing)]
  ]

-- | A cell of each kind.
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
