-- | The command line. Modes are words; options may stand before, between and after them. So this
-- first moves the words of the mode to the front: the parsers know which options take a value,
-- and a word that is such a value is not a mode (@-u bench@). @-h@ is the host; help is @--help@
-- only.
module Tool.Options
  ( Outcome (..),
    parseArguments,
    completions,
    ambiguousOptions,
  )
where

import Data.ByteString (ByteString)
import Data.Char (isDigit)
import Data.Foldable (fold)
import Data.List (find, intercalate, intersect, isPrefixOf, nub, uncons, unfoldr, (\\))
import Data.Version (showVersion)
import Options.Applicative
import Options.Applicative.Common (mapParser)
import Options.Applicative.Help (unChunk)
import Options.Applicative.Types
  ( OptName (OptLong, OptShort),
    OptReader (FlagReader, OptReader),
    Option (optMain),
  )
import Paths_redis_client_tool (version)
import System.Exit (ExitCode (ExitSuccess))
import System.Info (compilerName, compilerVersion)
import Tool.Bench.Workload (workloadRefusal)
import Tool.Options.Bench
import Tool.Options.Campaign (campaignOptions, campaignProblem)
import Tool.Options.Common (inGroups)
import Tool.Options.Connection (connectionOptions, withPassword)
import Tool.Options.Effect (givenOptions)
import Tool.Options.Modes
import Tool.Options.Output (outputOptions)
import Tool.Options.Workload (workloadOptions)

-- | How to handle a command line.
data Outcome
  = Run BenchMode
  | -- | Print this text and exit with success.
    Help String
  | -- | Answer a shell that requests completions with these arguments ('completions').
    Complete
  | -- | Refuse the command line, with a reason in one line.
    Reject String
  deriving stock (Eq, Show)

-- | Reads the arguments. The first argument is the password to use if the options have a host but
-- no password.
parseArguments :: Maybe ByteString -> [String] -> Outcome
parseArguments password arguments
  | any completes arguments = Complete
  | "--version" `elem` arguments, null (modePath arguments) = Help versionLine
  | null (modePath arguments) && "--help" `notElem` arguments =
    Reject $ case positionals arguments of
      [] -> "what to do is missing: name a mode (try --help)"
      word : _ -> "there is no mode " <> show word <> " (try --help)"
  | otherwise = case execParserPure defaultPrefs program (modeWordsFirst arguments) of
    Success mode -> maybe (Run (fallback mode)) Reject (modeProblem (fallback mode))
    Failure failure -> case execFailure failure programName of
      (_, ExitSuccess, _)
        | modePath arguments == ["bench"] -> Help (inGroups benchGroups (rendered failure))
        | otherwise -> Help (rendered failure)
      (message, _, _) -> Reject (oneLine message)
    CompletionInvoked _ -> Complete
  where
    rendered failure = fst (renderFailure failure programName)
    authorised = withPassword password
    fallback = \case
      BenchOnce it -> BenchOnce it {benchConnection = authorised (benchConnection it)}
      BenchRecord it -> BenchRecord it {recordConnection = authorised (recordConnection it)}
      BenchReplay it -> BenchReplay it {replayConnection = authorised (replayConnection it)}
      mode -> mode
    modeProblem = \case
      BenchOnce it ->
        benchProblem (givenOptions takesNext arguments) it <|> workloadRefusal (benchWorkload it)
      BenchCampaign it -> campaignProblem it
      BenchRecord it -> recordProblem it
      BenchReplay it -> replayProblem it
      BenchReport it -> reportProblem it
      BenchCompare it -> compareProblem it
      BenchMerge it -> mergeProblem it
      BenchSchema -> Nothing
    oneLine message = case words (maybe "" show (unChunk (helpError message))) of
      [] -> "this cannot be read (try --help)"
      text
        | Just why <- saidTwice (unwords text) <|> notBeside (unwords text) -> why
        | any asElsewhere (zip arguments (drop 1 arguments)) -> unwords text <> elsewhere
        | otherwise -> unwords text
    -- redis-benchmark takes a number of clients here.
    asElsewhere (name, next) = name == "-c" && not (null next) && all isDigit next
    elsewhere =
      "; -c is a cluster here, and -n the number of threads: \
      \for redis-benchmark's -c 50 -n 1000 say --threads 50 --batch 1 --requests 1000"
    -- The parser takes an option once, and does not know it afterwards; nor does it then know an
    -- alternative to that option.
    saidTwice text = (<> " is given twice") <$> invalidIn text (arguments \\ nub arguments)
    notBeside text = (<> " and an option before it exclude each other") <$> invalidIn text known
    invalidIn text = find (\name -> text == "Invalid option `" <> name <> "'")
    known = map written (foldMap (uncurry (<>)) (lookup (modePath arguments) modePaths))
    written = \case
      OptLong name -> "--" <> name
      OptShort letter -> ['-', letter]

programName :: String
programName = "redis-client"

-- | The version of the program, and its compiler.
versionLine :: String
versionLine = programName <> " " <> showVersion version <> " (" <> compiler <> ")"
  where
    compiler = compilerName <> "-" <> showVersion compilerVersion

-- | The answer for a shell that requests completions: a script to source, or how a word may
-- continue.
completions :: [String] -> IO String
completions arguments = case execParserPure defaultPrefs program arguments of
  CompletionInvoked completion -> execCompletion completion programName
  _ -> pure ""

completes :: String -> Bool
completes word =
  any (`isPrefixOf` word) ["--bash-completion-", "--zsh-completion-", "--fish-completion-"]

-- | The options of one run, grouped by topic.
benchGroups :: [(String, [OptName])]
benchGroups =
  [ ("Connection", connection),
    ("Workload", workload),
    ("Load", names benchOptions \\ concat [connection, workload, output, trusted]),
    ("Output", output),
    ("Trust", trusted)
  ]
  where
    connection = names connectionOptions
    workload = names workloadOptions
    output = names outputOptions
    names :: Parser a -> [OptName]
    names = uncurry (<>) . optionNames
    trusted = map OptLong (words "allow allow-saturation brief no-sampling sample warmup iterations slice")

program :: ParserInfo BenchMode
program =
  info
    (subparser (metavar "MODE" <> command "bench" benchInfo) <**> helpOption <**> infoOption versionLine says)
    ( fullDesc <> header "redis-client - load tests for Redis and Valkey servers"
        <> footer exitCodes
    )
  where
    says = long "version" <> help "Print the version"
    benchInfo =
      info
        ((parts <|> (BenchOnce <$> benchOptions)) <**> helpOption)
        (progDesc "Measure a server or a cluster; with no host, a private one" <> footer exitCodes)
    parts =
      subparser $
        metavar (intercalate "|" (map modeName modes))
          <> foldMap (\mode -> command (modeName mode) (modeInfo mode)) modes
    modeInfo mode =
      info (modeParser mode <**> helpOption) $
        progDesc (modeAbout mode) <> (if modeMeasures mode then footer exitCodes else mempty)
    exitCodes =
      "Exit codes: 0 success; 1 a rule of --fail-if was broken; 2 bad options, or an invalid run:"
        <> " errors, misses, counts that differ from the server's, or a generator that was the bottleneck;"
        <> " 3 the server or a program that is needed is not available."

-- A word behind @bench@.
data Mode = Mode
  { modeName :: String,
    modeParser :: Parser BenchMode,
    modeAbout :: String,
    -- Whether the help lists the exit codes.
    modeMeasures :: Bool
  }

modes :: [Mode]
modes =
  [ Mode "campaign" (BenchCampaign <$> campaignOptions) campaigns True,
    Mode "record" (BenchRecord <$> recordOptions) records False,
    Mode "replay" (BenchReplay <$> replayOptions) replays True,
    Mode "report" (BenchReport <$> reportOptions) reports False,
    Mode "compare" (BenchCompare <$> compareOptions) compares True,
    Mode "merge" (BenchMerge <$> mergeOptions) merges False,
    Mode "schema" (pure BenchSchema) "Print the JSON schema of results" False
  ]
  where
    campaigns = "Measure servers of its own by persistence, directory, workload, size, clients and round trip"
    records = "Record the commands of a server, with their times (by MONITOR, which slows the server)"
    replays = "Send the commands of a recording again, at their recorded times"
    reports = "Show results again, and write them in other formats"
    compares = "Compare results with earlier ones, and say which differences are beyond chance"
    merges = "Add up the results of generators that were started together on several machines"

helpOption :: Parser (a -> a)
helpOption = abortOption (ShowHelpText Nothing) (long "help" <> help "Show this text")

-- The words that name a mode, outermost first, and the options of each mode.
modePaths :: [([String], ([OptName], [OptName]))]
modePaths =
  [(["bench", modeName mode], optionNames (modeParser mode)) | mode <- modes]
    <> [(["bench"], optionNames benchOptions)]

-- The options that take a value, and those that do not.
optionNames :: Parser a -> ([OptName], [OptName])
optionNames = mconcat . mapParser (\_ anOption -> names (optMain anOption))
  where
    names :: OptReader x -> ([OptName], [OptName])
    names = \case
      OptReader taken _ _ -> (taken, [])
      FlagReader flags _ -> ([], flags)
      _ -> ([], [])

-- | Options that take a value in one mode and none in another. There must be none, because finding
-- the mode depends on knowing which words are values.
ambiguousOptions :: [OptName]
ambiguousOptions = takingValue `intersect` concatMap (snd . snd) modePaths

takingValue :: [OptName]
takingValue = concatMap (fst . snd) modePaths

-- Moves the words that name a mode to the front. \(O(n)\).
modeWordsFirst :: [String] -> [String]
modeWordsFirst arguments = path <> without (length path) arguments
  where
    path = modePath arguments
    without 0 rest = rest
    without left rest =
      let (before, after) = splitPositional rest in before <> without (left - 1 :: Int) (drop 1 after)

-- The words that name the mode; none if there is no mode.
modePath :: [String] -> [String]
modePath arguments = fold (find (`isPrefixOf` positionals arguments) (map fst modePaths))

positionals :: [String] -> [String]
positionals = unfoldr (uncons . snd . splitPositional)

-- Splits before the first word that is neither an option nor its value.
splitPositional :: [String] -> ([String], [String])
splitPositional = \case
  [] -> ([], [])
  "--" : rest -> ("--" : rest, [])
  word : rest
    | takesNext word -> prepend (word : take 1 rest) (splitPositional (drop 1 rest))
    | "-" `isPrefixOf` word && word /= "-" -> prepend [word] (splitPositional rest)
    | otherwise -> ([], word : rest)
  where
    prepend front (before, after) = (front <> before, after)

-- Whether the next argument is this one's value.
takesNext :: String -> Bool
takesNext = \case
  '-' : '-' : name -> OptLong name `elem` takingValue
  '-' : letters -> endsOpen letters
  _ -> False
  where
    -- In "-ch" the h takes the next argument. In "-h1" the rest is its value.
    endsOpen = \case
      [] -> False
      letter : rest
        | OptShort letter `elem` takingValue -> null rest
        | otherwise -> endsOpen rest
