-- | The program, from arguments to exit code.
module Tool.Program
  ( runProgram,
    asProgram,
    complain,
  )
where

import Control.Exception (AsyncException (UserInterrupt), fromException, throwIO, try)
import System.Environment (getArgs, lookupEnv)
import System.Exit (ExitCode (..))
import System.IO (BufferMode (LineBuffering), hFlush, hPutStrLn, hSetBuffering, stderr, stdout)
import Tool.Bench (bench)
import Tool.Failure (Failure (..), describe, exitInvalid)
import Tool.Options (Outcome (..), completions, parseArguments)
import Tool.Startup (unwindOnSignals, useUtf8)
import Tool.Text (argumentBytes)

-- | Does what the arguments say. When it returns, everything that it started has ended, also after
-- Ctrl-C, SIGTERM and SIGHUP.
runProgram :: IO ExitCode
runProgram = asProgram name $ do
  password <- lookupEnv "REDISCLI_AUTH"
  arguments <- getArgs
  case parseArguments (argumentBytes <$> password) arguments of
    Help text -> ExitSuccess <$ putStrLn text
    Complete -> ExitSuccess <$ (completions arguments >>= putStr)
    Reject problem -> ExitFailure exitInvalid <$ complain name problem
    Run mode -> bench mode
  where
    name = "redis-client"

-- | Runs an action as a whole program of this name: it reads and writes UTF-8, unwinds on SIGTERM and SIGHUP,
-- and prints one line if it fails.
asProgram :: String -> IO ExitCode -> IO ExitCode
asProgram name action = do
  useUtf8
  hSetBuffering stdout LineBuffering
  unwindOnSignals
  -- The rest of the buffer is written here, where a failure to write it is noticed.
  try (action <* hFlush stdout) >>= either ended pure
  where
    ended problem
      | Just Failure {failureCode, failureText} <- describe problem =
        ExitFailure failureCode <$ complain name failureText
      | Just UserInterrupt <- fromException problem = pure (ExitFailure 130)
      | otherwise = throwIO problem

-- | Prints a line to standard error, after the program's name.
complain :: String -> String -> IO ()
complain name text = hPutStrLn stderr (name <> ": " <> text)
