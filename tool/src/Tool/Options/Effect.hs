-- | Options of @bench@ that would do nothing beside the others: they are refused.
--
-- A number that somebody asked for and that changed nothing is believed to have
-- been obeyed. A default may be said as well as any other value, so what was
-- said is looked up on the command line, and not in what was read from it.
--
-- What describes the data and is written down with every result is accepted
-- also where a test makes no use of it, so that one line can be used for many
-- tests: @--keys@, @--value-size@, @--seed@. @--allow@ is a permission.
module Tool.Options.Effect
  ( Said,
    saidOf,
    said,
    effectProblem,
    namesKeys,
  )
where

import Data.List (intercalate)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust, listToMaybe)
import Tool.Bench.Workload.Keys (templateCount)
import Tool.Bench.Workload.Task
import Tool.Bench.Workload.Template
import Tool.Options.Load
import Tool.Options.Workload

-- | The long options that were said, each with its value if it takes one.
newtype Said = Said (Map String String)
  deriving stock (Eq, Show)

-- | From the command line; the first argument says whether the next argument
-- is this one's value. \(O(n \log n)\).
saidOf :: (String -> Bool) -> [String] -> Said
saidOf takesNext = Said . Map.fromList . go
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

-- | Whether an option was said; its name without the dashes.
said :: Said -> String -> Bool
said (Said options) name = Map.member name options

-- | The first option that would do nothing, in one line. Takes how many keys
-- there are if nobody says it, whether it goes to replicas for what reads, and
-- the options.
effectProblem :: Said -> Int -> Bool -> Plan -> WorkloadOptions -> Maybe String
effectProblem options@(Said values) usualKeys fromReplicas plan workload =
  listToMaybe
    [ line
      | (True, line) <-
          [ ( planIsOpen plan && has "batch",
              "--batch belongs to the closed loop, --rate and --sweep to the open one"
            ),
            ( isJust (planRequests plan) && has "duration",
              "--requests ends the run, not a time: no --duration"
            ),
            ( isJust (planStartAt plan) && length mixes > 1,
              "--start-at begins one measurement: no second --test"
            ),
            ( has "batch"
                && Map.lookup "batch" values /= Just "1"
                && all alone tasks,
              "--batch is for commands that can be sent together: "
                <> names
                <> " waits for each"
            ),
            ( has "key-size" && isJust (workloadTemplate workload),
              "--key-template says how long keys are: no --key-size"
            ),
            ( otherCount,
              "--key-template asks for another number of keys than --keys " <> show usualKeys
            ),
            ( isJust (workloadTemplate workload) && none namesKeys,
              "--key-template: " <> names <> noUse
            ),
            (has "key-size" && none namesKeys, "--key-size: " <> names <> noUse),
            (has "distribution" && none drawsKeys, "--distribution: " <> names <> " draws no keys"),
            ( isJust (workloadCompressible workload) && none carriesValues,
              "--compress-ratio: " <> names <> " has no values"
            ),
            ( isJust (workloadExpiry workload) && none (oneOf' ["set", "setex", "getex"]),
              "--expiry is for the tests set, setex and getex, not " <> names
            ),
            ( isJust (workloadHitRatio workload) && none (oneOf' ["get"]),
              "--hit-ratio is for the test get, not " <> names
            ),
            ( has "subscribers" && none (oneOf' ["publish"]),
              "--subscribers is for the test publish, not " <> names
            ),
            ( fromReplicas && none reads',
              "replicas are to be read (--read-replicas, or read_from in the URL), but "
                <> names
                <> " reads nothing"
            )
          ]
    ]
  where
    has = said options
    mixes = selectedMixes (workloadSelection workload)
    tasks = concatMap (map snd . NonEmpty.toList . snd) (NonEmpty.toList mixes)
    names = case map written tasks of
      [one, other] -> one <> " and " <> other
      one : _ : _ : _ -> one <> " and the others"
      few -> intercalate ", " few
    written = \case
      TaskNamed name -> name
      TaskCommand text _ -> show text
    none holds = not (any holds tasks)
    noUse = " names no keys of its own choice"
    -- The number that is usual cannot be told from none at all later.
    otherCount =
      Map.lookup "keys" values == Just (show usualKeys)
        && maybe False (/= usualKeys) (workloadTemplate workload >>= templateCount)

oneOf' :: [String] -> Task -> Bool
oneOf' names = \case
  TaskNamed name -> name `elem` names
  TaskCommand _ _ -> False

-- Operations that end before the thread goes on, in a batch as well.
alone :: Task -> Bool
alone = oneOf' ["blpop", "transaction"]

-- | Whether it is about keys that @--key-template@ and @--key-size@ make.
namesKeys :: Task -> Bool
namesKeys = \case
  TaskNamed name ->
    name
      `elem` [ "set",
               "get",
               "mset",
               "mget",
               "setex",
               "getex",
               "eval-set",
               "evalsha-set",
               "fcall-set",
               "transaction"
             ]
  TaskCommand _ template -> DrawnKey `elem` pieces template

-- Commands for which a number of a key is drawn by the law: of a key, of an
-- element, or of the value that goes with it.
drawsKeys :: Task -> Bool
drawsKeys = \case
  TaskNamed name ->
    name
      `notElem` ( ["ping_inline", "ping_mbulk", "lpop", "rpop", "spop", "zpopmin", "script-load"]
                    <> lranges
                )
  TaskCommand _ template -> any (`elem` pieces template) [DrawnKey, Data]

-- Commands that carry values, or find those that were written before.
carriesValues :: Task -> Bool
carriesValues = \case
  TaskNamed name ->
    name
      `notElem` [ "ping_inline",
                  "ping_mbulk",
                  "incr",
                  "sadd",
                  "spop",
                  "zadd",
                  "zpopmin",
                  "script-load"
                ]
  TaskCommand _ template -> or [True | piece <- pieces template, isValue piece]
  where
    isValue = \case
      Data -> True
      -- Its value is there before it is read.
      DrawnKey -> True
      RandomValue _ -> True
      _ -> False

-- Commands that may go to a replica; of those in words nobody knows here.
reads' :: Task -> Bool
reads' = \case
  TaskNamed name -> name `elem` (["get", "mget", "ping_inline", "ping_mbulk"] <> lranges)
  TaskCommand _ _ -> True

lranges :: [String]
lranges = ["lrange_100", "lrange_300", "lrange_500", "lrange_600"]

pieces :: Template -> [Piece]
pieces (Template found) = concat [parts | OneWord parts <- found]
