-- | The command line of the runner.
module Compare.Options
  ( Mode (..),
    ClientOptions (..),
    modeParser,
    modeProblem,
  )
where

import Compare.Cell (Window (..))
import Compare.Pair (PairOptions (..))
import Data.List qualified as List
import Options.Applicative

-- | The mode of the program.
data Mode
  = -- | Measure all rows at all cells.
    CompareClients ClientOptions
  | -- | Compare this library with StackExchange.Redis: set, get, mixed.
    ComparePair PairOptions
  | -- | Measure this library with different numbers of callers and connections.
    Sweep PairOptions

-- | How to compare all rows.
data ClientOptions = ClientOptions
  { clientCompareFolder :: FilePath,
    clientWorkloads :: [FilePath],
    clientWindow :: Window,
    clientIterations :: Int,
    -- | Only rows whose names contain one of these texts; empty: all rows.
    clientRows :: [String],
    clientOutput :: FilePath,
    -- | Whether to add to the results in the output folder.
    clientAppend :: Bool,
    -- | Only print the plan.
    clientPlan :: Bool,
    -- | Only write the reports again.
    clientRender :: Bool,
    -- | Whether a missed goal is an error.
    clientJudge :: Bool
  }

-- | Modes and their flags.
modeParser :: Parser Mode
modeParser =
  hsubparser $
    command "client" (info (CompareClients <$> clientOptions) (progDesc "Compare all peers at the cells of the workload files"))
      <> command "pair" (info (ComparePair <$> pairOptions "comparison.json" 3.5) (progDesc "Compare with StackExchange.Redis: set, get, mixed; six minutes by default"))
      <> command "sweep" (info (Sweep <$> pairOptions "concurrency-tuning.json" 1.2) (progDesc "Sweep 1 to 4096 callers and 1 to 8 connections of redis-client; half an hour by default"))

-- | Checks the numbers of the options; says what is wrong with them.
modeProblem :: Mode -> Maybe String
modeProblem = \case
  CompareClients options -> window (clientWindow options) <|> least "--iterations" 1 (clientIterations options)
  ComparePair options -> pair options
  Sweep options -> pair options
  where
    window (Window warmup duration) = positive "--warmup" warmup <|> positive "--duration" duration
    pair options =
      least "--port" 1 (pairPort options)
        <|> most "--port" 65535 (pairPort options)
        <|> least "--key-size" smallestKey (pairKeySize options)
        <|> least "--value-size" 1 (pairValueSize options)
        <|> least "--connections" 1 (pairConnections options)
        <|> least "--in-flight" 1 (pairInFlight options)
        <|> least "--iterations" 1 (pairIterations options)
        <|> positive "--duration" (pairDuration options)
    -- "key:" and the digits of the last of a hundred thousand keys.
    smallestKey = 9
    least :: String -> Int -> Int -> Maybe String
    least name bound number
      | number >= bound = Nothing
      | otherwise = Just (name <> " must be at least " <> show bound)
    most :: String -> Int -> Int -> Maybe String
    most name bound number
      | number <= bound = Nothing
      | otherwise = Just (name <> " must be at most " <> show bound)
    positive :: String -> Double -> Maybe String
    positive name number
      | number > 0 = Nothing
      | otherwise = Just (name <> " must be more than 0")

clientOptions :: Parser ClientOptions
clientOptions =
  ClientOptions
    <$> latest "compare" (strOption (long "compare" <> metavar "FOLDER" <> help "Where the peers and workloads are (default: compare)"))
    <*> some (strOption (long "workload" <> metavar "FILE" <> help "A grid of cells; may be repeated"))
    <*> windowOptions
    <*> iterationsOption
    <*> many (strOption (long "row" <> metavar "TEXT" <> help "Only rows whose names contain this; may be repeated"))
    <*> latest "compare/results/client" (strOption (long "output" <> metavar "FOLDER" <> help "Where the results go"))
    <*> switch (long "append" <> help "Add to the results that are there")
    <*> switch (long "plan" <> help "Only say what would be measured, and how long it takes")
    <*> switch (long "render" <> help "Only write the reports again from the results that are there")
    <*> flag True False (long "no-verdict" <> help "Missed goals are no failure")

windowOptions :: Parser Window
windowOptions =
  Window
    <$> latest 1.5 (option auto (long "warmup" <> metavar "SECONDS" <> help "Before each measurement (default: 1.5)"))
    <*> latest 2 (option auto (long "duration" <> metavar "SECONDS" <> help "Of each measurement (default: 2)"))

iterationsOption :: Parser Int
iterationsOption = latest 5 (option auto (long "iterations" <> metavar "N" <> help "Turns: in each, everything is measured once (default: 5)"))

-- The last option wins, so that other flags may follow a script's flags.
latest :: a -> Parser a -> Parser a
latest fallback parser = List.foldl' (\_ new -> new) fallback <$> many parser

pairOptions :: FilePath -> Double -> Parser PairOptions
pairOptions file seconds =
  PairOptions
    <$> latest "compare" (strOption (long "compare" <> metavar "FOLDER" <> help "Where the peers are (default: compare)"))
    <*> optional (strOption (long "host" <> metavar "HOST" <> help "A server; without it one is started"))
    <*> latest 6379 (option auto (long "port" <> short 'p' <> metavar "PORT" <> help "(default: 6379)"))
    <*> optional (strOption (long "password" <> metavar "PASSWORD"))
    <*> switch (long "tls" <> help "Certificates are verified")
    <*> switch (long "cluster" <> short 'c')
    <*> latest 16 (option auto (long "key-size" <> metavar "BYTES" <> help "(default: 16)"))
    <*> latest 256 (option auto (long "value-size" <> metavar "BYTES" <> help "(default: 256)"))
    <*> latest 1 (option auto (long "connections" <> metavar "N" <> help "Per server (default: 1)"))
    <*> latest 64 (option auto (long "in-flight" <> metavar "N" <> help "Callers of either side (default: 64)"))
    <*> iterationsOption
    <*> latest seconds (option auto (long "duration" <> metavar "SECONDS" <> help ("Of each measurement (default: " <> show seconds <> ")")))
    <*> latest file (strOption (long "output" <> metavar "FILE" <> help "Where the results go"))
