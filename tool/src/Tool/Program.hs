-- | The program: from arguments to exit code.
module Tool.Program
  ( runProgram,
  )
where

import Control.Exception (AsyncException (UserInterrupt), fromException, throwIO, try)
import System.Environment (getArgs, lookupEnv)
import System.Exit (ExitCode (..))
import System.IO (BufferMode (LineBuffering), hFlush, hPutStrLn, hSetBuffering, stderr, stdout)
import Tool.Bench (bench)
import Tool.Failure (Failure (..), describe, exitInvalid)
import Tool.Options (Mode (..), Outcome (..), parseArguments)
import Tool.Sigterm (unwindOnSigterm)
import Tool.Text (argumentBytes)
import Tool.Utf8 (useUtf8)

-- | Does what the arguments say. Everything that was started has ended when
-- this returns, also after Ctrl-C and SIGTERM.
runProgram :: IO ExitCode
runProgram = do
  useUtf8
  hSetBuffering stdout LineBuffering
  password <- lookupEnv "REDISCLI_AUTH"
  arguments <- getArgs
  unwindOnSigterm
  -- What is left in a buffer is written here, where it is noticed if it cannot
  -- be.
  try (act (parseArguments (argumentBytes <$> password) arguments) <* hFlush stdout) >>= either ended pure
  where
    act = \case
      Help text -> ExitSuccess <$ putStrLn text
      Reject problem -> ExitFailure exitInvalid <$ complain problem
      Run mode -> runMode mode
    complain text = hPutStrLn stderr ("redis-client: " <> text)
    ended problem
      | Just Failure {failureCode, failureText} <- describe problem =
        ExitFailure failureCode <$ complain failureText
      | Just UserInterrupt <- fromException problem = pure (ExitFailure 130)
      | otherwise = throwIO problem

runMode :: Mode -> IO ExitCode
runMode (Bench mode) = bench mode
