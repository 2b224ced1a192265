-- | @soak MINUTES SEED FILE@: runs a soak ("Soak.Run") and writes its report as JSON to the file.
-- Exit code 1: the audit failed; 2: the soak could not be run.
module Main (main) where

import Soak.Run
import System.Environment (getArgs)
import System.Exit (ExitCode (..), exitWith)
import System.IO (hPutStrLn, stderr)
import Text.Read (readMaybe)

main :: IO ()
main =
  getArgs >>= \case
    [minutes, seed, out]
      | Just settingsMinutes <- readMaybe minutes,
        settingsMinutes > 0,
        Just settingsSeed <- readMaybe seed ->
        soak Settings {settingsMinutes, settingsSeed, settingsOut = out} >>= \case
          Sound -> pure ()
          Unsound -> exitWith (ExitFailure 1)
          NotRun -> exitWith (ExitFailure 2)
    _ -> hPutStrLn stderr "soak MINUTES SEED FILE" >> exitWith (ExitFailure 2)
