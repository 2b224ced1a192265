-- | The workloads of a campaign: their names, what the load generator has to be
-- told to send them, and what @redis-benchmark@ calls the same.
module Tool.Campaign.Workload
  ( Workload (..),
    workloads,
    findWorkload,
    carriesValue,
    benchArguments,
  )
where

import Data.List (find)

-- | One workload.
data Workload = Workload
  { workloadName :: String,
    -- | Whether its commands or replies hold a value of the cell's size.
    workloadHasValue :: Bool,
    -- | Different keys, if the campaign's number of keys is not to be used.
    workloadKeys :: Maybe Int,
    -- | What @bench@ is told.
    workloadArguments :: [String],
    -- | The test of @redis-benchmark@ that sends the same, if there is one.
    workloadReference :: Maybe String
  }
  deriving stock (Eq, Show)

-- | All there are.
workloads :: [Workload]
workloads =
  [ Workload "set" True Nothing ["--operation", "set"] (Just "set"),
    Workload "get" True Nothing ["--operation", "get"] (Just "get"),
    Workload "mixed" True Nothing ["--operation", "mixed"] Nothing,
    -- What redis-benchmark does unless it is told otherwise.
    Workload "set-one-key" True (Just 1) ["--operation", "set"] (Just "set")
  ]

-- | The one of that name.
findWorkload :: String -> Maybe Workload
findWorkload name = find ((== name) . workloadName) workloads

-- | Whether a name is that of a workload with a value.
carriesValue :: String -> Bool
carriesValue = maybe False workloadHasValue . findWorkload

-- | The arguments for one of them, with the campaign's number of keys and a
-- value of so many bytes.
benchArguments :: Int -> Int -> Workload -> [String]
benchArguments keys bytes workload =
  workloadArguments workload
    <> ["--keys", show (maybe keys (min keys) (workloadKeys workload))]
    <> ["--value-size", show bytes]
