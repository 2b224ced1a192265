-- | The program: @run@ measures the cells that a folder of results lacks, @report@ prints the
-- results.
module Compare.Run
  ( runCommand,
  )
where

import Compare.Autocannon (readSamples, sampleTables)
import Compare.Cell
import Compare.Facts (noteFacts, noteManifest)
import Compare.Goals (Verdict (..), verdicts)
import Compare.Load (scenarioName)
import Compare.Measure
import Compare.OpenLoop (rateFor)
import Compare.Plan
import Compare.Report
import Compare.Rows
import Compare.Service (goldenDatabase)
import Control.Monad (filterM, forM_, unless, when)
import Data.Aeson (decodeFileStrict)
import Data.ByteString.Lazy qualified as Lazy
import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust)
import Data.Set qualified as Set
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import System.Directory (createDirectoryIfMissing, doesFileExist, makeAbsolute)
import System.Exit (ExitCode (..), exitWith)
import System.FilePath (takeDirectory, (</>))
import System.IO (BufferMode (..), hPutStrLn, hSetBuffering, stderr, stdout)
import System.IO.Temp (withTempDirectory)
import Text.Read (readMaybe)
import Tool.Bench.Document (Disk (..))
import Tool.Bench.Environment (probeDisk)
import Tool.Bench.Histogram (percentile)
import Tool.Bench.Time (monotonic)
import Tool.Span (inMicros, remaining, secondsIn)
import Tool.Startup (useUtf8)
import Tool.Text (fixed)

usage :: String
usage =
  unlines
    [ "usage: rest-compare run    --out FOLDER --haskell PROGRAM [--dotnet NAME=PROGRAM]... --generator PROGRAM",
      "                           --sql FILE --scripts FOLDER [--what goals|study|quick]... [--iterations 5]",
      "                           [--seconds 4] [--open-seconds 4] [--warmup 12] [--place TEXT]... [--only TEXT]... [--plan yes]",
      "       rest-compare manifest --out FOLDER [--dotnet NAME=PROGRAM]...",
      "       rest-compare report --out FOLDER",
      "",
      "run measures what the folder has not yet, and says first how long that takes (--plan yes: says only that); --place and --only take groups whose name begins so,",
      "such as standalone-pinned-post: those that one of each names. manifest notes the machine and the programs, for what measures by itself.",
      "Exit codes of report: 0 all goals met, 1 some missed, 2 nothing valid to judge."
    ]

-- | Runs a command line. Exits with 2 if the command line is not valid.
runCommand :: [String] -> IO ()
runCommand arguments = do
  useUtf8
  hSetBuffering stdout LineBuffering
  case arguments of
    "run" : rest | Just options <- pairs rest -> run options
    "manifest" : rest | Just options <- pairs rest -> required "--out" options >>= (`noteManifest` dotnetsOf options)
    "report" : rest | Just options <- pairs rest -> report options
    _ -> wrongUsage
  where
    pairs = \case
      [] -> Just []
      name@('-' : '-' : _) : value : rest -> ((name, value) :) <$> pairs rest
      _ -> Nothing

wrongUsage :: IO a
wrongUsage = hPutStrLn stderr usage >> exitWith (ExitFailure 2)

required :: String -> [(String, String)] -> IO String
required name options = maybe (hPutStrLn stderr (name <> " is missing") >> wrongUsage) pure (lookup name options)

-- The rows in C#: names and programs.
dotnetsOf :: [(String, String)] -> [(Text.Text, FilePath)]
dotnetsOf options = [(Text.pack name, path) | ("--dotnet", word) <- options, (name, '=' : path) <- [break (== '=') word]]

run :: [(String, String)] -> IO ()
run options = do
  out <- required "--out" options >>= makeAbsolute
  haskell <- required "--haskell" options >>= makeAbsolute
  generator <- required "--generator" options >>= makeAbsolute
  sqlFile <- required "--sql" options >>= makeAbsolute
  scripts <- required "--scripts" options >>= makeAbsolute
  let planOnly = isJust (lookup "--plan" options)
  dotnets <- filterM (if planOnly then const (pure True) else doesFileExist . snd) [(Text.pack name, path) | ("--dotnet", word) <- options, (name, '=' : path) <- [break (== '=') word]]
  warmup <- ceiling <$> numberOr (12 :: Double) "--warmup"
  iterations <- numberOr 5 "--iterations"
  closedSeconds <- numberOr 4 "--seconds"
  openSeconds <- numberOr 4 "--open-seconds"
  let rows = rowsOf haskell dotnets warmup
      wanted = [word | ("--what", word) <- options]
      groups =
        filter (\group -> all (any (`List.isPrefixOf` groupName' group) . textsOf) ["--place", "--only"]) $
          concat [groupsOf word rows | word <- if null wanted then ["goals", "study"] else wanted]
      textsOf name = case [word | (name', word) <- options, name' == name] of
        [] -> [""]
        words' -> words'
      raw = out </> "cells.jsonl"
  results <- readResults raw
  let done = Set.fromList (map cell results)
      -- The parts have cells in common.
      missing =
        List.nubBy (\(_, _, one) (_, _, other) -> one == other) $
          [(group, row', this) | group <- groups, (row', this) <- cellsOf iterations group, not (Set.member this done)]
      seconds = cellSeconds closedSeconds openSeconds
      different = unlike closedSeconds missing results
  unless (all (`elem` ["goals", "study", "quick"]) wanted) wrongUsage
  when (null groups) $ hPutStrLn stderr "no group has such a name" >> exitWith (ExitFailure 2)
  unless (null different) $ do
    hPutStrLn stderr ("the folder of results has these groups with other settings: " <> Text.unpack (Text.intercalate "; " different) <> "; name another folder (OUT)")
    exitWith (ExitFailure 2)
  when (null missing) $ putStrLn "nothing is missing in the folder of results; another one (OUT) begins anew"
  mapM_ putStrLn (planLines seconds groupName' missing)
  unless (planOnly || null missing) $ do
    createDirectoryIfMissing True out
    noteManifest out dotnets
    began <- monotonic
    withTempDirectory (takeDirectory out) ".databases" $ \folder -> do
      golden <- goldenDatabase sqlFile folder
      disk <- probeDisk folder
      noteFacts out $
        Map.fromList [("fsync of an append, median µs", Text.pack (fixed 0 (inMicros (fromIntegral (percentile 50 (diskFsync found)))))) | Just found <- [disk]]
      let setting =
            Setting
              { settingSqlFile = sqlFile,
                settingScripts = scripts,
                settingGenerator = generator,
                settingFolder = folder,
                settingGolden = golden,
                settingSeconds = closedSeconds,
                settingOpenSeconds = openSeconds
              }
          numbered = zip (scanl (+) 0 (map seconds missing)) missing
          whole = sum (map seconds missing)
      forM_ (List.groupBy sameServers numbered) $ \together -> case together of
        (_, (first, _, _)) : _ -> withRedis (groupTopology first) (groupLayout first) $ \redis ->
          forM_ together $ \(before, (group, row', this)) -> do
            earlier <- readResults raw
            result <- measure setting redis row' this (openRateFor group this earlier)
            appendResult raw result
            now <- monotonic
            let left = remaining whole (before + seconds (group, row', this)) (secondsIn (now - began))
            putStrLn (progress result <> " (" <> show (ceiling left :: Int) <> " min left)")
        [] -> pure ()
  where
    numberOr :: Read a => a -> String -> IO a
    numberOr absent name = case lookup name options of
      Nothing -> pure absent
      Just word -> maybe (hPutStrLn stderr (name <> " cannot be '" <> word <> "'") >> exitWith (ExitFailure 2)) pure (readMaybe word)
    sameServers (_, (one, _, _)) (_, (other, _, _)) = (groupTopology one, groupLayout one) == (groupTopology other, groupLayout other)
    groupsOf word rows = case word of
      "goals" -> goalGroups rows
      "study" -> studyGroups rows
      "quick" -> quickGroups rows
      _ -> []

-- | The name of a group on command lines.
groupName' :: Group -> String
groupName' group =
  List.intercalate
    "-"
    [ if groupTopology group == Standalone then "standalone" else "cluster",
      if groupLayout group == Pinned then "pinned" else "free",
      scenarioName (groupScenario group),
      show (groupConnections group)
    ]

-- | The rate of the open loop for a row. The first round, which determines the rate, has no open
-- loop. The naive rows are in the group, but do not determine the rate.
openRateFor :: Group -> Cell -> [Result] -> Maybe Double
openRateFor group this results
  | not (groupOpenLoop group) || iteration this == 1 = Nothing
  | otherwise = Map.lookup (row this) first >>= rateFor [rate | (name, rate) <- Map.toList first, name `elem` compared]
  where
    compared = map rowName (filter (not . isNaive) (groupRows group))
    first =
      Map.fromList
        [ (row (cell result), requestsPerSecond (outcome result))
          | result <- results,
            cellGroup (cell result) == cellGroup this,
            iteration (cell result) == 1,
            -- A result without answers gives no rate.
            requestsPerSecond (outcome result) > 0
        ]

progress :: Result -> String
progress Result {cell = this, outcome = seen} =
  unwords
    [ Text.unpack (row this),
      show (topology this),
      show (layout this),
      scenarioName (scenario this),
      show (connections this),
      "#" <> show (iteration this) <> ":",
      show (round (requestsPerSecond seen) :: Int) <> "/s,",
      show (fromIntegral (round (10 * cpuPerRequest seen) :: Int) / 10 :: Double) <> " µs CPU",
      concatMap ((" INVALID: " <>) . Text.unpack) (problems seen)
    ]

report :: [(String, String)] -> IO ()
report options = do
  out <- required "--out" options
  results <- readResults (out </> "cells.jsonl")
  manifest <- fromMaybe Map.empty <$> decodeFileStrict (out </> "manifest.json")
  samples <- readSamples (out </> "autocannon.jsonl")
  let goals = verdicts results
      others = Text.unlines (sampleTables samples)
  Lazy.writeFile (out </> "COMPARISON-rest.md") (Lazy.fromStrict (Text.encodeUtf8 (Text.intercalate "\n" (markdownReport manifest results : [others | not (Text.null others)]))))
  Lazy.writeFile (out </> "COMPARISON-rest.html") (htmlReport manifest results samples)
  Lazy.putStr (Lazy.fromStrict (Text.encodeUtf8 (textReport manifest results <> others)))
  let missed = filter (not . verdictMet) goals
  unless (any (null . problems . outcome) results || not (null samples)) $ exitWith (ExitFailure 2)
  unless (null missed) $ do
    hPutStrLn stderr (show (length missed) <> " of " <> show (length goals) <> " goals missed")
    exitWith (ExitFailure 1)
