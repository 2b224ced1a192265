-- | The command line.
--
-- Modes are words, options may stand before, between and after them:
-- @redis-client -c -h H bench --operation get@ is
-- @redis-client bench -c -h H --operation get@. A command line that is parsed
-- from left to right cannot do that, so the words are found first, and moved to
-- the front. That takes no guess: the parsers themselves say which options take
-- a value, and a word that is such a value is not a mode (@-u bench@).
--
-- @-h@ is the host; help is @--help@ only.
module Tool.Options
  ( Mode (..),
    Outcome (..),
    parseArguments,
    modeWordsFirst,
    ambiguousOptions,
  )
where

import Data.ByteString (ByteString)
import Data.List (find, intersect, isPrefixOf, nub, (\\))
import Data.Maybe (fromMaybe, maybeToList)
import Options.Applicative
  ( Parser,
    ParserInfo,
    ParserResult (..),
    abortOption,
    command,
    defaultPrefs,
    execFailure,
    execParserPure,
    footer,
    fullDesc,
    header,
    help,
    info,
    long,
    metavar,
    progDesc,
    renderFailure,
    subparser,
    (<**>),
    (<|>),
  )
import Options.Applicative.Common (mapParser)
import Options.Applicative.Help (ParserHelp (helpError), unChunk)
import Options.Applicative.Types
  ( OptName (OptLong, OptShort),
    OptReader (FlagReader, OptReader),
    Option (optMain),
    ParseError (ShowHelpText),
  )
import System.Exit (ExitCode (ExitSuccess))
import Tool.Bench.Workload.Chosen (workloadRefusal)
import Tool.Options.Bench
import Tool.Options.Campaign (campaignOptions, campaignProblem)
import Tool.Options.Connection (withPassword)
import Tool.Options.Differential (differentialOptions, differentialProblem)
import Tool.Options.Effect (Said, saidOf)
import Tool.Options.Replay
import Tool.Options.Results

-- | What the program was asked to do.
newtype Mode = Bench BenchMode
  deriving stock (Eq, Show)

-- | What to do about a command line.
data Outcome
  = Run Mode
  | -- | Print this and end well.
    Help String
  | -- | One line that says what is wrong.
    Reject String
  deriving stock (Eq, Show)

-- | Reads the arguments; the first argument is the password to use where a
-- host but no password is given.
parseArguments :: Maybe ByteString -> [String] -> Outcome
parseArguments password arguments
  | null (modePath arguments) && "--help" `notElem` arguments =
    Reject $ case positionals arguments of
      [] -> "what to do is missing: name a mode (try --help)"
      word : _ -> "there is no mode " <> show word <> " (try --help)"
  | otherwise = case execParserPure defaultPrefs program (modeWordsFirst arguments) of
    Success mode -> checked (fallback mode)
    Failure failure -> case execFailure failure programName of
      (_, ExitSuccess, _) -> Help (fst (renderFailure failure programName))
      (message, _, _) -> Reject (oneLine message)
    CompletionInvoked _ -> Reject "completion is not supported"
  where
    fallback = \case
      Bench (BenchOnce options) ->
        Bench (BenchOnce options {benchConnection = withPassword password (benchConnection options)})
      Bench (BenchRecord options) ->
        Bench (BenchRecord options {recordConnection = withPassword password (recordConnection options)})
      Bench (BenchReplay options) ->
        Bench (BenchReplay options {replayConnection = withPassword password (replayConnection options)})
      mode -> mode
    checked mode = maybe (Run mode) Reject (modeProblem (saidOf takesNext arguments) mode)
    oneLine message = case words (maybe "" show (unChunk (helpError message))) of
      [] -> "this cannot be read (try --help)"
      text -> fromMaybe (unwords text) (saidTwice (unwords text) <|> notBeside (unwords text))
    -- The parser takes an option once, and does not know it afterwards; nor one
    -- that stands for the same thing as another.
    saidTwice text = (<> " is given twice") <$> find (\name -> text == invalid name) (arguments \\ nub arguments)
    notBeside text = (<> " and an option before it exclude each other") <$> find (\name -> text == invalid name) known
    invalid name = "Invalid option `" <> name <> "'"
    known = [written name | Just (taking, flags) <- [lookup (modePath arguments) modePaths], name <- taking <> flags]
    written = \case
      OptLong name -> "--" <> name
      OptShort letter -> ['-', letter]

programName :: String
programName = "redis-client"

modeProblem :: Said -> Mode -> Maybe String
modeProblem options' = \case
  Bench (BenchOnce options) -> case benchProblem options' options of
    Nothing -> workloadRefusal (benchWorkload options)
    problem -> problem
  Bench (BenchSuite options) -> suiteProblem options
  Bench (BenchGate options) -> gateProblem options
  Bench (BenchDifferential options) -> differentialProblem options
  Bench (BenchCampaign options) -> campaignProblem options
  Bench (BenchRecord options) -> recordProblem options
  Bench (BenchReplay options) -> replayProblem options
  Bench (BenchReport options) -> reportProblem options
  Bench (BenchCompare options) -> compareProblem options
  Bench (BenchMerge options) -> mergeProblem options
  Bench BenchSchema -> Nothing

program :: ParserInfo Mode
program =
  info
    (subparser (metavar "MODE" <> command "bench" benchInfo) <**> helpOption)
    ( fullDesc <> header "redis-client - a client for Redis and Valkey, and what it can do"
        <> footer exitCodes
    )
  where
    benchInfo =
      info
        (Bench <$> (parts <|> (BenchOnce <$> benchOptions)) <**> helpOption)
        (progDesc "Measure a server or a cluster; with no host, a private one" <> footer exitCodes)
    parts =
      subparser
        ( metavar "suite|gate|differential|campaign|record|replay|report|compare|merge|schema"
            <> command
              "suite"
              ( info
                  (BenchSuite <$> suiteOptions <**> helpOption)
                  (progDesc "GET, SET and mixed against a private server and a private cluster")
              )
            <> command
              "gate"
              ( info
                  (BenchGate <$> gateOptions <**> helpOption)
                  (progDesc "The speeds that must be reached, on pinned cores, beside redis-benchmark")
              )
            <> command
              "differential"
              ( info
                  (BenchDifferential <$> differentialOptions <**> helpOption)
                  (progDesc "The same tests by this program and by redis-benchmark: do they find the same?" <> footer exitCodes)
              )
            <> command
              "campaign"
              ( info
                  (BenchCampaign <$> campaignOptions <**> helpOption)
                  (progDesc "Servers of its own: persistence, directories, workloads, sizes, callers, round trips" <> footer exitCodes)
              )
            <> command
              "record"
              ( info
                  (BenchRecord <$> recordOptions <**> helpOption)
                  (progDesc "Keep the commands that a server runs, and when (MONITOR: costs the server much)")
              )
            <> command
              "replay"
              ( info
                  (BenchReplay <$> replayOptions <**> helpOption)
                  (progDesc "Send the commands of a recording again, at their times" <> footer exitCodes)
              )
            <> command
              "report"
              ( info
                  (BenchReport <$> reportOptions <**> helpOption)
                  (progDesc "Show results again, and write them in other forms")
              )
            <> command
              "compare"
              ( info
                  (BenchCompare <$> compareOptions <**> helpOption)
                  (progDesc "Hold results against earlier ones: what changed, and whether by more than chance" <> footer exitCodes)
              )
            <> command
              "merge"
              ( info
                  (BenchMerge <$> mergeOptions <**> helpOption)
                  (progDesc "Add up the results of generators that were started together on several machines")
              )
            <> command
              "schema"
              (info (pure BenchSchema <**> helpOption) (progDesc "Print the JSON schema of results"))
        )
    exitCodes =
      "Exit codes: 0 well; 1 the gate was missed, or a rule of --fail-if broken; 2 bad options, or a run that"
        <> " counted errors, misses or other commands than the server; 3 the server"
        <> " or a program that is needed cannot be had."

helpOption :: Parser (a -> a)
helpOption = abortOption (ShowHelpText Nothing) (long "help" <> help "Show this text")

-- The words that may name a mode, outermost first, and the options of each.
modePaths :: [([String], ([OptName], [OptName]))]
modePaths =
  [ (["bench", "suite"], optionNames suiteOptions),
    (["bench", "gate"], optionNames gateOptions),
    (["bench", "differential"], optionNames differentialOptions),
    (["bench", "campaign"], optionNames campaignOptions),
    (["bench", "record"], optionNames recordOptions),
    (["bench", "replay"], optionNames replayOptions),
    (["bench", "report"], optionNames reportOptions),
    (["bench", "compare"], optionNames compareOptions),
    (["bench", "merge"], optionNames mergeOptions),
    (["bench", "schema"], ([], [])),
    (["bench"], optionNames benchOptions)
  ]

-- Those that take a value, and those that do not.
optionNames :: Parser a -> ([OptName], [OptName])
optionNames parser = (concatMap fst found, concatMap snd found)
  where
    found = mapParser (\_ anOption -> names (optMain anOption)) parser
    names :: OptReader x -> ([OptName], [OptName])
    names = \case
      OptReader taken _ _ -> (taken, [])
      FlagReader flags _ -> ([], flags)
      _ -> ([], [])

-- | Options that take a value in one mode and none in another: there must be
-- none, because the mode is found by knowing what is a value.
ambiguousOptions :: [OptName]
ambiguousOptions = takingValue `intersect` concatMap (snd . snd) modePaths

takingValue :: [OptName]
takingValue = concatMap (fst . snd) modePaths

-- | Moves the words that name a mode to the front. \(O(n)\).
modeWordsFirst :: [String] -> [String]
modeWordsFirst arguments = path <> without (length path) arguments
  where
    path = modePath arguments
    without 0 rest = rest
    without left rest = case splitPositional rest of
      (before, _ : after) -> before <> without (left - 1 :: Int) after
      (before, []) -> before

-- The words that name the mode; none if they name none.
modePath :: [String] -> [String]
modePath arguments =
  concat . maybeToList $
    find (`isPrefixOf` positionals arguments) (map fst modePaths)

positionals :: [String] -> [String]
positionals arguments = case splitPositional arguments of
  (_, word : rest) -> word : positionals rest
  (_, []) -> []

-- What stands before the first word that is neither an option nor its value.
splitPositional :: [String] -> ([String], [String])
splitPositional = \case
  [] -> ([], [])
  "--" : rest -> ("--" : rest, [])
  argument : rest
    | takesNext argument -> case rest of
      next : others -> prepend [argument, next] (splitPositional others)
      [] -> ([argument], [])
    | "-" `isPrefixOf` argument && argument /= "-" -> prepend [argument] (splitPositional rest)
    | otherwise -> ([], argument : rest)
  where
    prepend front (before, after) = (front <> before, after)

-- Whether the next argument is this one's value.
takesNext :: String -> Bool
takesNext = \case
  '-' : '-' : name -> OptLong name `elem` takingValue
  '-' : letters -> endsOpen letters
  _ -> False
  where
    -- In "-ch" the h takes the next argument; in "-h1" the rest is the value.
    endsOpen = \case
      [] -> False
      letter : rest
        | OptShort letter `elem` takingValue -> null rest
        | otherwise -> endsOpen rest
