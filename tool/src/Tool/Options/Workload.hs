-- | What a run sends: tests by name, commands in words, and mixes of both; and the keys and values
-- that they use.
module Tool.Options.Workload
  ( WorkloadOptions (..),
    Selection (..),
    Operation (..),
    operationName,
    operationMix,
    selectedMixes,
    defaultWorkload,
    workloadOptions,
    workloadProblem,
    templateProblem,
  )
where

import Control.Monad (when)
import Data.List (intercalate)
import Data.List.NonEmpty (NonEmpty (..))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Maybe (isJust)
import Data.Text (Text)
import Data.Text qualified as Text
import Options.Applicative
import Tool.Bench.Workload.Distribution
import Tool.Bench.Workload.Keys
import Tool.Bench.Workload.Named (namedTests)
import Tool.Bench.Workload.Syntax
import Tool.Bench.Workload.Template
import Tool.Bench.Workload.Values
import Tool.Options.Common

-- | The workload, without the number of keys and the seed, which belong to every load.
data WorkloadOptions = WorkloadOptions
  { workloadSelection :: Selection,
    -- | 'Nothing': keys named like those of redis-benchmark, in the load's key size.
    workloadTemplate :: Maybe KeyTemplate,
    workloadDistribution :: Distribution,
    workloadSizes :: ValueSizes,
    -- | The share of each value that compresses to nothing.
    workloadCompressible :: Maybe Double,
    -- | Seconds that a key lives: the least and the most.
    workloadExpiry :: Maybe (Int, Int),
    workloadHitRatio :: Maybe Double,
    workloadSubscribers :: Int
  }
  deriving stock (Eq, Show)

-- | The commands of a workload.
data Selection
  = SelectOperation Operation
  | -- | Each test in a run of its own.
    SelectTests (NonEmpty Task)
  | -- | All tasks in one run.
    SelectMix Mix
  deriving stock (Eq, Show)

data Operation
  = OperationGet
  | OperationSet
  | -- | Four GETs to one SET, drawn independently.
    OperationMixed
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The name on the command line.
operationName :: Operation -> String
operationName = \case
  OperationGet -> "get"
  OperationSet -> "set"
  OperationMixed -> "mixed"

operationMix :: Operation -> Mix
operationMix = \case
  OperationGet -> (1, TaskNamed "get") :| []
  OperationSet -> (1, TaskNamed "set") :| []
  OperationMixed -> (1, TaskNamed "set") :| [(4, TaskNamed "get")]

-- | A mix for each run, with the run's name if it differs from the text of the mix.
selectedMixes :: Selection -> NonEmpty (Maybe Text, Mix)
selectedMixes = \case
  SelectOperation common -> (Just (Text.pack (operationName common)), operationMix common) :| []
  SelectTests tests -> NonEmpty.map (\test -> (Nothing, (1, test) :| [])) tests
  SelectMix one -> (Nothing, one) :| []

-- | Mixed, evenly distributed, values of 512 bytes.
defaultWorkload :: WorkloadOptions
defaultWorkload =
  WorkloadOptions
    { workloadSelection = SelectOperation OperationMixed,
      workloadTemplate = Nothing,
      workloadDistribution = Uniform,
      workloadSizes = SizeFixed 512,
      workloadCompressible = Nothing,
      workloadExpiry = Nothing,
      workloadHitRatio = Nothing,
      workloadSubscribers = 10
    }

workloadOptions :: Parser WorkloadOptions
workloadOptions =
  WorkloadOptions
    <$> selectionOptions
    <*> optionalOption (syntax keyTemplate) "key-template" "TEMPLATE" keys
    <*> option
      (syntax distribution)
      (described "distribution" "LAW" laws <> usually describeDistribution Uniform)
    <*> option
      (syntax valueSizes)
      (short 'd' <> described "value-size" "SIZES" sizes <> usually describeSizes (SizeFixed 512))
    <*> optionalOption (syntax ratio) "compress-ratio" "SHARE" compressible
    <*> optionalOption (syntax lifetimes) "expiry" "SECONDS|FROM-TO" expiry
    <*> optionalOption (syntax ratio) "hit-ratio" "SHARE" hits
    <*> numberOption "subscribers" 10 "Number of subscribers of the test publish"
  where
    keys =
      "Form of keys: text with {n}, {n:DIGITS}, {uuid:COUNT}, {hex:DIGITS} or {tag:TAG,TAG} in it \
      \(default: key:000000000042 in --key-size bytes)"
    laws =
      "How keys are drawn: uniform, sequential, disjoint, \
      \zipf[:EXPONENT], gaussian[:SHARE], hot:KEYS:DRAWS, latest[:EXPONENT]"
    sizes = "Bytes of a value: 512, 100-2000 or 32:5,1k:3"
    expiry = "Time to live of a key that is set, in seconds (setex, getex: 60)"
    hits = "Share of GETs that find their key (default: all)"
    compressible =
      "Share of each value that compresses to nothing; the rest does not compress (default: letters)"

selectionOptions :: Parser Selection
selectionOptions = tests <|> mixture <|> commands <|> common
  where
    tests =
      fmap SelectTests . option (syntax (taskList >>= orNone)) . described "test" "NAME,NAME,…" $
        "A run for each of these tests, by the names of redis-benchmark, or all: "
          <> intercalate ", " (map fst namedTests)
    mixture =
      fmap SelectMix . option (syntax mix) . (short 'm' <>) . described "mix" "WEIGHT:TEST,…" $
        "Tests and quoted commands in one run, drawn by weight: \
        \70:get,20:set,10:'INCR counter:__rand_int__'"
    commands =
      fmap (SelectMix . equally) . some
        . option (syntax (TaskCommand <$> rest <*> commandTemplate))
        . described "command" "COMMAND"
        $ "A command with placeholders: __rand_int__, __rand_1st__, __data__, {tag}; \
          \__key__; {key uniform|sequence|zipfian N}, {value N}, {rand N}, {range N W}. \
          \Several are drawn equally often"
    common =
      fmap SelectOperation
        . option (eitherReader (choice "the operation is get, set or mixed" operationName [minBound ..]))
        $ described "operation" "get|set|mixed" "Common commands; mixed: 80 % GET, 20 % SET"
          <> usually operationName OperationMixed
    orNone = maybe (complain "the name of a test is missing") pure . NonEmpty.nonEmpty
    equally = maybe (operationMix OperationMixed) (NonEmpty.map ((,) 1)) . NonEmpty.nonEmpty

syntax :: Syntax a -> ReadM a
syntax = eitherReader . parse

ratio :: Syntax Double
ratio = do
  found <- decimal "a share from 0 to 1"
  if found > 1 then complain "a share is 1 at most," else pure found

lifetimes :: Syntax (Int, Int)
lifetimes = do
  from <- natural "a number of seconds" 1000000000
  ranged <- text "-"
  to <- if ranged then natural "a number of seconds" 1000000000 else pure from
  when (from == 0) $ complain "a key lives for a second at least,"
  when (to < from) $ complain "the range ends before it begins,"
  pure (from, to)

-- | The problem of a combination of options, in one line. Takes the number of keys.
workloadProblem :: Int -> WorkloadOptions -> Maybe String
workloadProblem keys options =
  between "--subscribers" 0 10000 (workloadSubscribers options)
    <|> refused (needsTable law && keys > mostInTable) (unwords possible)
    <|> (workloadTemplate options >>= templateProblem keys)
    <|> refused (isJust (workloadHitRatio options) && maybe False (not . tellsApart) (workloadTemplate options)) noOther
  where
    law = workloadDistribution options
    noOther = "--hit-ratio needs keys that are not there: --key-template needs {n}, {uuid} or {hex:16}"
    possible =
      ["--distribution", describeDistribution law, "is possible for", show mostInTable, "keys at most"]

-- | The problem of a template for this number of keys, in one line.
templateProblem :: Int -> KeyTemplate -> Maybe String
templateProblem keys template =
  (templateCount template >>= differs) <|> refused (not (tellsApart template) && keys > 1) same
  where
    differs count =
      refused (count /= keys) $
        "--key-template asks for " <> show count <> " keys, --keys for " <> show keys
    same = "--key-template may give two keys the same name: it needs {n}, {uuid} or {hex:16}"
