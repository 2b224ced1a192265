-- | Refuses options of @bench@ that would have no effect beside the others. A default may be given
-- explicitly, so this looks at the command line, and not at the values read from it. Options that
-- describe the data are always accepted, so that one command line fits many tests: @--keys@,
-- @--value-size@, @--seed@.
module Tool.Options.Effect
  ( GivenOptions,
    givenOptions,
    effectProblem,
    namesKeys,
    carriesValues,
  )
where

import Data.Foldable (asum)
import Data.List (intercalate)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust)
import Redis.Config (ReadFrom (ReadPrimary))
import Tool.Bench.Workload.Keys (templateCount)
import Tool.Bench.Workload.Named (lranges)
import Tool.Bench.Workload.Template
import Tool.Options.Common (refused)
import Tool.Options.Connection (ConnectionOptions, connectionIsCluster, connectionReadFrom)
import Tool.Options.Load
import Tool.Options.Workload

-- | The long options on the command line, each with its value if it takes one.
newtype GivenOptions = GivenOptions (Map String String)
  deriving stock (Eq, Show)

-- | Collects the options of the command line. The function says whether the next argument is the
-- value of this one. \(O(n \log n)\).
givenOptions :: (String -> Bool) -> [String] -> GivenOptions
givenOptions takesNext = GivenOptions . Map.fromList . go
  where
    go = \case
      [] -> []
      "--" : _ -> []
      argument : rest
        | takesNext argument -> named argument (take 1 rest) <> go (drop 1 rest)
        | otherwise -> named argument [] <> go rest
    named argument next = case argument of
      '-' : '-' : text -> case break (== '=') text of
        (name, '=' : value) -> [(name, value)]
        (name, _) -> [(name, concat next)]
      _ -> []

-- | The first option without an effect, in one line. Takes the default number of keys, the server,
-- and the options.
effectProblem :: GivenOptions -> Int -> ConnectionOptions -> Plan -> WorkloadOptions -> Maybe String
effectProblem (GivenOptions values) usualKeys connection plan workload =
  asum
    [ (planIsOpen plan && has "batch")
        `refused` "--batch belongs to the closed loop, --rate and --sweep to the open one",
      (isJust (planRequests plan) && has "duration")
        `refused` "--requests ends the run, not a time: no --duration",
      (isJust (planStartAt plan) && length mixes > 1)
        `refused` "--start-at begins one measurement: no second --test",
      (maybe False (/= "1") (Map.lookup "batch" values) && all alone tasks)
        `refused` ("--batch is for commands that can be sent together: " <> names <> " waits for each"),
      (has "key-size" && formed)
        `refused` "--key-template says how long keys are: no --key-size",
      otherCount
        `refused` ("--key-template asks for another number of keys than --keys " <> show usualKeys),
      (formed && none formsKeys) `refused` ("--key-template: " <> names <> noUse),
      (has "key-size" && none formsKeys) `refused` ("--key-size: " <> names <> noUse),
      (has "distribution" && none drawsKeys) `refused` ("--distribution: " <> names <> " draws no keys"),
      (isJust (workloadCompressible workload) && none carriesValues)
        `refused` ("--compress-ratio: " <> names <> " has no values"),
      (isJust (workloadExpiry workload) && none (oneOf' ["set", "setex", "getex"]))
        `refused` ("--expiry is for the tests set, setex and getex, not " <> names),
      (isJust (workloadHitRatio workload) && none (oneOf' ["get"]))
        `refused` ("--hit-ratio is for the test get, not " <> names),
      (has "subscribers" && none (oneOf' ["publish"]))
        `refused` ("--subscribers is for the test publish, not " <> names),
      (connectionReadFrom connection /= ReadPrimary && none reads')
        `refused` ( "replicas are to be read (--read-replicas, or read_from in the URL), but " <> names
                      <> " reads nothing"
                  )
    ]
  where
    has name = Map.member name values
    formed = isJust (workloadTemplate workload)
    mixes = selectedMixes (workloadSelection workload)
    tasks = concatMap (map snd . NonEmpty.toList . snd) (NonEmpty.toList mixes)
    names = case map written tasks of
      [one, other] -> one <> " and " <> other
      one : _ : _ : _ -> one <> " and the others"
      few -> intercalate ", " few
    written = \case
      TaskNamed name -> name
      TaskCommand text _ -> show text
    -- Operations that end before the thread goes on, also in a batch.
    alone = oneOf' ["blpop", "transaction"]
    none holds = not (any holds tasks)
    -- In a cluster the keys of one command share a slot, so their form is given.
    formsKeys task = namesKeys task && not (clustered && oneOf' ["mset", "mget"] task)
    clustered = connectionIsCluster connection
    noUse = (if clustered then " in a cluster" else "") <> " names no keys of its own choice"
    -- Later the default number, given explicitly, looks like no number.
    otherCount =
      Map.lookup "keys" values == Just (show usualKeys)
        && maybe False (/= usualKeys) (workloadTemplate workload >>= templateCount)

oneOf' :: [String] -> Task -> Bool
oneOf' names = \case
  TaskNamed name -> name `elem` names
  TaskCommand _ _ -> False

-- | Whether a task uses the keys of @--key-template@ and @--key-size@.
namesKeys :: Task -> Bool
namesKeys = \case
  TaskNamed name ->
    name `elem` words "set get mset mget setex getex eval-set evalsha-set fcall-set script-load transaction"
  TaskCommand _ template -> DrawnKey `elem` pieces template

-- Whether a task draws the number of a key from the distribution: for a key, an element, or its
-- value.
drawsKeys :: Task -> Bool
drawsKeys = \case
  TaskNamed name ->
    name `notElem` words "ping_inline ping_mbulk lpop rpop spop zpopmin script-load" <> lranges
  TaskCommand _ template -> any (`elem` pieces template) [DrawnKey, Data]

-- | Whether a task's commands carry values, or read those that were written before.
carriesValues :: Task -> Bool
carriesValues = \case
  TaskNamed name ->
    name `notElem` words "ping_inline ping_mbulk incr sadd spop zadd zpopmin"
  TaskCommand _ template -> any isValue (pieces template)
  where
    isValue = \case
      Data -> True
      -- Its value is written before the key is read.
      DrawnKey -> True
      RandomValue _ -> True
      _ -> False

-- Whether a task's commands may go to a replica. Unknown for commands given in words.
reads' :: Task -> Bool
reads' = \case
  TaskNamed name -> name `elem` (["get", "mget", "ping_inline", "ping_mbulk"] <> lranges)
  TaskCommand _ _ -> True

pieces :: Template -> [Piece]
pieces (Template found) = concat [parts | OneWord parts <- found]
