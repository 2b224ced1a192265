-- | Runs this program again in a process of its own, so that its processor time and memory are
-- those of the run alone, and it can be pinned to cores.
module Tool.Bench.Itself
  ( measureApart,
    runItself,
    pinnedTo,
    targetArguments,
  )
where

import Control.Exception (IOException, throwIO, try)
import Data.Bifunctor (first)
import Data.ByteString qualified as ByteString
import Data.Maybe (fromMaybe, listToMaybe)
import Redis.Config (TlsConfig (tlsCaFile), getTls)
import Redis.TestKit.Folder (withFolder)
import Redis.TestKit.Process (onCores)
import System.Directory (doesFileExist)
import System.Environment (getExecutablePath)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.Process (proc, readCreateProcessWithExitCode)
import Tool.Bench.Document (Document (..), Run)
import Tool.Bench.Document.Json (decodeDocument)
import Tool.Connect (Target (targetBase), targetIsCluster, targetPlace, targetUsesTls)
import Tool.Failure (Failure (Failure), exitInvalid, exitUnavailable, invalidRun)

-- | Measures in a new process, which writes its results to a file. Takes the cores (an empty list
-- means all), and the arguments, which get the option for that file. 'Left' says why there are no
-- results. Blocks as long as the run takes.
measureApart :: [Int] -> ([String] -> [String]) -> IO (Either Failure Document)
measureApart cores arguments = withFolder "redis-client-run" $ \folder -> do
  self <- getExecutablePath
  let file = folder </> "run.json"
      (program, words') = pinnedTo cores self (arguments ["--json", file])
  outcome <- try (readCreateProcessWithExitCode (proc program words') "")
  written <- doesFileExist file
  case outcome of
    Left problem ->
      failed exitUnavailable (program <> " cannot be run: " <> show (problem :: IOException))
    Right _ | written -> do
      found <- decodeDocument <$> ByteString.readFile file
      pure (first (Failure exitInvalid . ("a run's result cannot be read: " <>)) found)
    Right (code, output, problem) ->
      failed exitInvalid $
        "a run ended with " <> number code <> ": "
          <> fromMaybe "it printed nothing" (listToMaybe (reverse (lines (output <> problem))))
  where
    failed code = pure . Left . Failure code
    number = \case
      ExitSuccess -> "0"
      ExitFailure code -> show code

-- | Measures in a new process. Takes the cores, the arguments of @bench@, and the arguments of the
-- runtime. Returns the only run, valid or not. Ends the program if there is none.
runItself :: [Int] -> [String] -> [String] -> IO Run
runItself cores arguments runtime =
  measureApart cores (\out -> ["bench"] <> arguments <> out <> withRuntime) >>= \case
    Right Document {documentRuns = [found]} -> pure found
    Right _ -> invalidRun "a run wrote no result"
    Left failure -> throwIO failure
  where
    withRuntime = if null runtime then [] else ["+RTS"] <> runtime <> ["-RTS"]

-- | A program and its arguments, pinned to these cores; not pinned if the list is empty.
pinnedTo :: [Int] -> FilePath -> [String] -> (FilePath, [String])
pinnedTo cores program arguments = case onCores cores of
  [] -> (program, arguments)
  pinning : rest -> (pinning, rest <> (program : arguments))

-- | The arguments that name a target, without credentials.
targetArguments :: Target -> [String]
targetArguments target =
  ["-h", host, "-p", show port]
    <> ["-c" | targetIsCluster target]
    <> ["--tls" | targetUsesTls target]
    <> concat [["--cacert", file] | Just file <- [getTls (targetBase target) >>= tlsCaFile]]
  where
    (host, port) = targetPlace target
