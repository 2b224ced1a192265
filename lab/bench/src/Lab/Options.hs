-- | The command line of the program with which this project measures itself.
module Lab.Options
  ( Mode (..),
    Outcome (..),
    parseArguments,
    programName,
  )
where

import Control.Applicative (many, optional, (<|>))
import Lab.Bare (BareOptions (..))
import Lab.Moving (MovingOptions (..))
import Lab.Options.Differential (DifferentialOptions, differentialOptions, differentialProblem)
import Lab.Options.Gate (GateOptions, defaultGate, gateOptions, gateProblem)
import Lab.Options.Suite (SuiteOptions, suiteOptions, suiteProblem)
import Options.Applicative
  ( Parser,
    ParserInfo,
    ParserResult (..),
    command,
    defaultPrefs,
    execParserPure,
    footer,
    fullDesc,
    header,
    help,
    helper,
    hsubparser,
    info,
    internal,
    long,
    metavar,
    option,
    progDesc,
    renderFailure,
    showDefault,
    strArgument,
    strOption,
    subparser,
    switch,
    value,
    (<**>),
  )
import System.Exit (ExitCode (ExitSuccess))
import Tool.Options.Common (between, seconds, wholeNumber)

-- | What the program does.
data Mode
  = -- | Measure the table of speeds.
    Gate GateOptions
  | -- | Show the table from raw data of earlier runs.
    Render [FilePath]
  | -- | The standard set of runs against private servers.
    Suite SuiteOptions
  | -- | The same tests as redis-benchmark, beside it.
    Differential DifferentialOptions
  | -- | What reads at replicas miss while a slot moves.
    Moving MovingOptions
  | -- | The bare loop, which the gate starts as a process of its own.
    Bare BareOptions
  deriving stock (Eq, Show)

-- | How to handle a command line.
data Outcome
  = Run Mode
  | -- | Print this text and exit with success.
    Help String
  | -- | Refuse the command line, with a reason in one line.
    Reject String
  deriving stock (Eq, Show)

-- | The name of the program.
programName :: String
programName = "redis-client-lab"

-- | Reads the arguments: the mode, then its options.
parseArguments :: [String] -> Outcome
parseArguments [] = Reject "what to do is missing: name a mode (try --help)"
parseArguments arguments = case execParserPure defaultPrefs program arguments of
  Success said -> either Reject (\mode -> maybe (Run mode) Reject (modeProblem mode)) said
  Failure failure -> case renderFailure failure programName of
    (text, ExitSuccess) -> Help text
    (text, _) -> Reject (oneLine text)
  CompletionInvoked _ -> Reject "there are no completions (try --help)"
  where
    -- The error stands before the usage, which --help shows.
    oneLine text = case words (unwords (takeWhile (/= "") (lines text))) of
      [] -> "this cannot be read (try --help)"
      problem -> unwords problem <> " (try --help)"

modeProblem :: Mode -> Maybe String
modeProblem = \case
  Gate options -> gateProblem options
  Render _ -> Nothing
  Suite options -> suiteProblem options
  Differential options -> differentialProblem options
  Moving options -> between "--rounds" 1 1000 (movingRounds options)
  Bare options -> between "--threads" 1 100000 (bareThreads options) <|> between "--batch" 1 100000 (bareBatch options)

-- The mode of a command line, or why it makes no sense.
program :: ParserInfo (Either String Mode)
program =
  info
    ((modes <|> hidden) <**> helper)
    (fullDesc <> header "redis-client-lab - what this project measures itself with" <> footer exitCodes)
  where
    modes =
      hsubparser
        ( metavar "gate|suite|differential|moving"
            <> command "gate" (info gateMode (progDesc "Speeds, and what the tool itself costs, on pinned cores, beside hiredis and redis-benchmark" <> footer exitCodes))
            <> command "suite" (info (Right . Suite <$> suiteOptions) (progDesc "GET, SET and mixed against a private server and a private cluster"))
            <> command
              "differential"
              (info (Right . Differential <$> differentialOptions) (progDesc "The same tests by redis-client and by redis-benchmark: do they find the same?" <> footer exitCodes))
            <> command "moving" (info (Right . Moving <$> movingOptions) (progDesc "How many reads at replicas miss a key while its slot moves"))
        )
    hidden = subparser (internal <> command "bare" (info (Right . Bare <$> bareOptions) (progDesc "A loop that does nothing but ask")))
    gateMode =
      gateOrRender
        <$> switch (long "render" <> help "Measure nothing: show the table of earlier runs, beside each other")
        <*> gateOptions
        <*> many (strArgument (metavar "FILE..." <> help "With --render: raw data of the gate"))
    exitCodes =
      "Exit codes: 0 well; 1 a row missed what it must reach, or a test differs; 2 bad options, or a run that"
        <> " counted errors, misses or other commands than the server; 3 the server"
        <> " or a program that is needed is not available."

gateOrRender :: Bool -> GateOptions -> [FilePath] -> Either String Mode
gateOrRender rendered options files
  | not rendered = if null files then Right (Gate options) else Left "a FILE is for --render"
  | null files = Left "--render needs a FILE"
  | options /= defaultGate = Left "--render measures nothing: no other options"
  | otherwise = Right (Render files)

movingOptions :: Parser MovingOptions
movingOptions =
  MovingOptions
    <$> option wholeNumber (long "rounds" <> metavar "N" <> value 5 <> showDefault <> help "Moves")
    <*> optional (strOption (long "json" <> metavar "FILE" <> help "Write the results as JSON (-: to the standard output)"))

bareOptions :: Parser BareOptions
bareOptions =
  BareOptions
    <$> strOption (long "host" <> metavar "HOST")
    <*> option wholeNumber (long "port" <> metavar "PORT")
    <*> option wholeNumber (long "threads" <> metavar "N")
    <*> option wholeNumber (long "batch" <> metavar "N")
    <*> optional (option wholeNumber (long "keys" <> metavar "N"))
    <*> seconds "duration" 1 "Seconds"
