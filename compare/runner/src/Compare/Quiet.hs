-- | Waits for a quiet machine: a run that begins on a busy one is not made.
module Compare.Quiet
  ( whenQuiet,
  )
where

import Control.Monad (unless)
import Data.ByteString.Char8 qualified as Char8
import System.Environment (setEnv)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.Process (CreateProcess (..), StdStream (..), proc, waitForProcess, withCreateProcess)

-- | Runs the action once @scripts/quiet.sh@, which lies beside the folder of the comparison, has
-- seen a quiet machine; the manifest of the action names the idle share that it saw. If the machine
-- stays busy, the script says so, and its status is returned. Blocks for up to ten minutes before
-- the action.
whenQuiet :: FilePath -> IO ExitCode -> IO ExitCode
whenQuiet compareFolder action = do
  (status, idle) <- withCreateProcess (proc script []) {std_out = CreatePipe} $ \_ out _ handle -> do
    printed <- maybe (pure "") Char8.hGetContents out
    status <- waitForProcess handle
    pure (status, Char8.unpack (Char8.strip printed))
  case status of
    ExitFailure _ -> pure status
    ExitSuccess -> do
      unless (null idle) $ setEnv "QUIET_IDLE" idle
      action
  where
    script = compareFolder </> ".." </> "scripts" </> "quiet.sh"
