-- | The program, from arguments to exit code.
--
-- It measures the program @redis-client@ in a process of its own: with the word @bench@ as its
-- first argument, it behaves like that program. So it always measures the program that was built
-- with it.
module Lab.Program
  ( runLab,
  )
where

import Data.Aeson (Value, encode)
import Data.Time.Clock (getCurrentTime)
import Data.Time.Format (defaultTimeLocale, formatTime)
import Lab.Bare (bare)
import Lab.Differential (differential)
import Lab.Gate (gate, render)
import Lab.Moving (MovingOptions (..), moving)
import Lab.Options
import Lab.Options.Differential (DifferentialOptions (..))
import Lab.Options.Gate (GateOptions (..))
import Lab.Options.Suite (SuiteOptions (..))
import Lab.Suite (suite)
import System.Directory (createDirectoryIfMissing)
import System.Environment (getArgs)
import System.Exit (ExitCode (..))
import System.FilePath (takeDirectory, (</>))
import Tool.Bench.Document (documentOf)
import Tool.Bench.Environment (manifest)
import Tool.Bench.Progress (newProgress)
import Tool.Bench.Report (report)
import Tool.Bench.Reports (conclude)
import Tool.Bench.Sink (withOutputs, withSinks)
import Tool.Failure (exitInvalid)
import Tool.Program (asProgram, complain, runProgram)

-- | Does what the arguments say. When it returns, everything that it started has ended, also after
-- Ctrl-C and SIGTERM.
runLab :: IO ExitCode
runLab =
  getArgs >>= \case
    "bench" : _ -> runProgram
    arguments -> asProgram programName $ case parseArguments arguments of
      Help text -> ExitSuccess <$ putStrLn text
      Reject problem -> ExitFailure exitInvalid <$ complain programName problem
      Run mode -> act mode

act :: Mode -> IO ExitCode
act = \case
  Gate options -> do
    file <- maybe newFile pure (gateJson options)
    writing (Just file) (gate options) <* announceKept file
  Render files -> render files
  Suite options -> withOutputs (suiteOutputs options) $ \write -> do
    progress <- newProgress
    about <- manifest
    (notes, results) <- suite progress options
    conclude (suiteOutputs options) write (notes <> [""] <> report results) (documentOf about results)
  Differential options -> writing (differentialJson options) $ differential options
  Moving options -> writing (movingJson options) $ moving options
  Bare options -> bare options
  where
    writing path action = do
      progress <- newProgress
      withSinks [("--json", file) | Just file <- [path]] $ \write ->
        action progress (\value -> write [encode (value :: Value) <> "\n"])

announceKept :: FilePath -> IO ()
announceKept file = if file == "-" then pure () else putStrLn ("raw data: " <> file)

-- A file that no earlier run has: raw data are added, never overwritten.
newFile :: IO FilePath
newFile = do
  time <- formatTime defaultTimeLocale "%Y-%m-%dT%H%M%SZ" <$> getCurrentTime
  let file = "results" </> "gate" </> time </> "gate.json"
  file <$ createDirectoryIfMissing True (takeDirectory file)
