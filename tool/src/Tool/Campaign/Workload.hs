-- | The workloads of a campaign: their names, the arguments of the load generator, and the
-- corresponding load of @redis-benchmark@.
module Tool.Campaign.Workload
  ( Workload (..),
    workloads,
    usualWorkloads,
    findWorkload,
    carriesValue,
    benchArguments,
  )
where

import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (fold)
import Data.List (find)
import Tool.Bench.RedisBenchmark (ReferenceLoad (..))
import Tool.Bench.Workload.Named (loadedScript, namedTests, testGroups)
import Tool.Bench.Workload.Template (Task (TaskNamed))
import Tool.Options.Effect (carriesValues, namesKeys)

data Workload = Workload
  { workloadName :: String,
    -- | Whether its commands or replies hold a value of the cell's size.
    workloadHasValue :: Bool,
    -- | The number of keys, if it differs from the campaign's.
    workloadKeys :: Maybe Int,
    workloadArguments :: [String],
    -- | What makes @redis-benchmark@ send the same commands, with values of this number of bytes.
    workloadReference :: Maybe (Int -> ReferenceLoad)
  }

-- | All workloads: the named tests of @bench@, its usual mixture, and SETs and GETs of a single key,
-- which are what @redis-benchmark@ sends by default.
workloads :: [Workload]
workloads =
  [ Workload name (carriesValues (TaskNamed name)) Nothing ["--test", name] (reference name)
    | (name, _) <- namedTests
  ]
    <> [ Workload "mixed" True Nothing ["--operation", "mixed"] Nothing,
         Workload "set-one-key" True (Just 1) ["--test", "set"] (reference "set"),
         Workload "get-one-key" True (Just 1) ["--test", "get"] (reference "get")
       ]

reference :: String -> Maybe (Int -> ReferenceLoad)
reference = \case
  "script-load" -> Just $ \bytes ->
    ReferenceCommand ["script", "load", Char8.unpack (loadedScript "key:000000000000" (Char8.replicate bytes 'x'))]
  name
    | name `elem` fold (lookup "all" testGroups) -> Just (const (ReferenceTest name))
    | otherwise -> Nothing

-- | The workloads that are measured if the user names none. The first is the baseline's.
usualWorkloads :: [String]
usualWorkloads =
  words "set get ping_inline incr set-one-key eval-set evalsha-set fcall-set script-load"

findWorkload :: String -> Maybe Workload
findWorkload name = find ((== name) . workloadName) workloads

-- | Whether the workload of that name carries a value.
carriesValue :: String -> Bool
carriesValue = maybe False workloadHasValue . findWorkload

-- | The arguments for a workload, with the campaign's key template and number of keys, and values
-- of this number of bytes.
benchArguments :: Maybe String -> Int -> Int -> Workload -> [String]
benchArguments form keys bytes workload =
  workloadArguments workload
    <> ["--keys", show (maybe keys (min keys) (workloadKeys workload))]
    <> concat
      [["--key-template", template] | formed, Just template <- [form], Nothing <- [workloadKeys workload]]
    <> ["--value-size", show bytes]
  where
    -- A key template is refused if the test names no key of it.
    formed = case workloadArguments workload of
      ["--test", name] -> namesKeys (TaskNamed name)
      _ -> True
