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

import Control.Applicative (optional, (<|>))
import Data.List (intercalate)
import Data.List.NonEmpty (NonEmpty (..))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Text (Text)
import Data.Text qualified as Text
import Options.Applicative
  ( Parser,
    ReadM,
    eitherReader,
    help,
    long,
    metavar,
    option,
    short,
    showDefaultWith,
    some,
    value,
  )
import Tool.Bench.Workload.Distribution
import Tool.Bench.Workload.Keys
import Tool.Bench.Workload.Named (namedTests)
import Tool.Bench.Workload.Syntax
import Tool.Bench.Workload.Task
import Tool.Bench.Workload.Template (commandTemplate)
import Tool.Bench.Workload.Values
import Tool.Options.Number (numberOption)

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

-- | The common operations.
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

-- | The mix of an operation.
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

-- | Parses the options of the workload.
workloadOptions :: Parser WorkloadOptions
workloadOptions =
  WorkloadOptions
    <$> selectionOptions
    <*> optional
      ( option
          (syntax keyTemplate)
          ( long "key-template" <> metavar "TEMPLATE"
              <> help
                "Form of keys: \
                \text with {n}, {n:DIGITS}, {uuid:COUNT}, {hex:DIGITS} or {tag:TAG,TAG} in it \
                \(default: key:000000000042 in --key-size bytes)"
          )
      )
    <*> option
      (syntax distribution)
      ( long "distribution"
          <> metavar "LAW"
          <> value Uniform
          <> showDefaultWith describeDistribution
          <> help
            "How keys are drawn: uniform, sequential, disjoint, \
            \zipf[:EXPONENT], gaussian[:SHARE], hot:KEYS:DRAWS, latest[:EXPONENT]"
      )
    <*> option
      (syntax valueSizes)
      ( short 'd'
          <> long "value-size"
          <> metavar "SIZES"
          <> value (SizeFixed 512)
          <> showDefaultWith describeSizes
          <> help "Bytes of a value: 512, 100-2000 or 32:5,1k:3"
      )
    <*> optional
      ( option
          (syntax ratio)
          ( long "compress-ratio"
              <> metavar "SHARE"
              <> help
                "Share of each value that compresses to nothing; \
                \the rest does not compress (default: letters)"
          )
      )
    <*> optional
      ( option
          (syntax lifetimes)
          ( long "expiry"
              <> metavar "SECONDS|FROM-TO"
              <> help "How long a key lives once it was set (setex, getex: 60)"
          )
      )
    <*> optional
      ( option
          (syntax ratio)
          ( long "hit-ratio"
              <> metavar "SHARE"
              <> help "Share of GETs that shall find something (default: all)"
          )
      )
    <*> numberOption "subscribers" 10 "Who listens to what the test publish sends"

selectionOptions :: Parser Selection
selectionOptions =
  tests <|> mixture <|> commands <|> common
  where
    tests =
      SelectTests
        <$> option
          (syntax (taskList >>= orNone))
          ( long "test" <> metavar "NAME,NAME,…"
              <> help
                ( "A run for each of these tests, named as redis-benchmark names its own, \
                  \or all: "
                    <> intercalate ", " (map fst namedTests)
                )
          )
    mixture =
      SelectMix
        <$> option
          (syntax mix)
          ( short 'm' <> long "mix" <> metavar "WEIGHT:TEST,…"
              <> help
                "Tests and quoted commands in one run, drawn by weight: \
                \70:get,20:set,10:'INCR counter:__rand_int__'"
          )
    commands =
      SelectMix . equally
        <$> some
          ( option
              (syntax (TaskCommand <$> rest <*> commandTemplate))
              ( long "command" <> metavar "COMMAND"
                  <> help
                    "A command with placeholders: __rand_int__, __rand_1st__, __data__, {tag}; \
                    \__key__; {key uniform|sequence|zipfian N}, {value N}, {rand N}, {range N W}. \
                    \Several are drawn equally often"
              )
          )
    common =
      SelectOperation
        <$> option
          (eitherReader operation)
          ( long "operation" <> metavar "get|set|mixed" <> value OperationMixed
              <> showDefaultWith operationName
              <> help "Common commands; mixed: 80 % GET, 20 % SET"
          )
    orNone = \case
      [] -> complain "the name of a test is missing"
      first : others -> pure (first :| others)
    equally = \case
      [] -> operationMix OperationMixed
      first : others -> (1, first) :| map ((,) 1) others

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
  if from == 0
    then complain "a key lives for a second at least,"
    else if to < from then complain "the range ends before it begins," else pure (from, to)

operation :: String -> Either String Operation
operation written =
  maybe
    (Left ("the operation is get, set or mixed, not " <> show written))
    Right
    (lookup written [(operationName known, known) | known <- [minBound .. maxBound]])

-- | The problem of a combination of options, in one line. Takes the number of keys.
workloadProblem :: Int -> WorkloadOptions -> Maybe String
workloadProblem keys options
  | workloadSubscribers options < 0 || workloadSubscribers options > 10000 =
    Just ("--subscribers must be from 0 to 10000, not " <> show (workloadSubscribers options))
  | needsTable (workloadDistribution options) && keys > mostInTable =
    Just
      ( "--distribution "
          <> describeDistribution (workloadDistribution options)
          <> " is possible for "
          <> show mostInTable
          <> " keys at most"
      )
  | otherwise = workloadTemplate options >>= templateProblem keys

-- | The problem of a template for this number of keys, in one line.
templateProblem :: Int -> KeyTemplate -> Maybe String
templateProblem keys template
  | Just count <- templateCount template,
    count /= keys =
    Just ("--key-template asks for " <> show count <> " keys, --keys for " <> show keys)
  | not (tellsApart template),
    keys > 1 =
    Just "--key-template may give two keys the same name: it needs {n}, {uuid} or {hex:16}"
  | otherwise = Nothing
