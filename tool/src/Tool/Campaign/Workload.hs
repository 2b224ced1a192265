-- | The workloads of a campaign: their names, what the load generator has to be
-- told to send them, and what @redis-benchmark@ calls the same.
module Tool.Campaign.Workload
  ( Workload (..),
    workloads,
    usualWorkloads,
    findWorkload,
    carriesValue,
    benchArguments,
  )
where

import Data.List (find)
import Tool.Bench.Workload.Named (namedTests)
import Tool.Bench.Workload.Task (Task (TaskNamed))
import Tool.Options.Effect (namesKeys)

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

-- | All there are: the named tests of @bench@, its usual mixture, and SETs of a
-- single key, which is what @redis-benchmark@ sends unless it is told otherwise.
workloads :: [Workload]
workloads =
  [ Workload
      { workloadName = name,
        workloadHasValue = name `notElem` withoutValue,
        workloadKeys = Nothing,
        workloadArguments = ["--test", name],
        workloadReference = if name `elem` ofRedisBenchmark then Just name else Nothing
      }
    | (name, _) <- namedTests
  ]
    <> [ Workload "mixed" True Nothing ["--operation", "mixed"] Nothing,
         Workload "set-one-key" True (Just 1) ["--test", "set"] (Just "set")
       ]

withoutValue, ofRedisBenchmark :: [String]
withoutValue = words "ping_inline ping_mbulk incr lpop rpop sadd spop zadd zpopmin"
ofRedisBenchmark =
  words "ping_inline ping_mbulk set get incr lpush rpush lpop rpop sadd hset spop"
    <> words "zadd zpopmin lrange_100 lrange_300 lrange_500 lrange_600 mset xadd"

-- | Those that are measured when none is named; the first is the baseline's.
usualWorkloads :: [String]
usualWorkloads =
  words "set get ping_inline incr set-one-key eval-set evalsha-set fcall-set script-load"

-- | The one of that name.
findWorkload :: String -> Maybe Workload
findWorkload name = find ((== name) . workloadName) workloads

-- | Whether a name is that of a workload with a value.
carriesValue :: String -> Bool
carriesValue = maybe False workloadHasValue . findWorkload

-- | The arguments for one of them, with the campaign's form and number of keys
-- and a value of so many bytes.
benchArguments :: Maybe String -> Int -> Int -> Workload -> [String]
benchArguments form keys bytes workload =
  workloadArguments workload
    <> ["--keys", show (maybe keys (min keys) (workloadKeys workload))]
    <> concat
      [ ["--key-template", template]
        | formed,
          Just template <- [form],
          Nothing <- [workloadKeys workload]
      ]
    <> ["--value-size", show bytes]
  where
    -- A form of keys is refused where none of them is named.
    formed = case workloadArguments workload of
      ["--test", name] -> namesKeys (TaskNamed name)
      _ -> True
