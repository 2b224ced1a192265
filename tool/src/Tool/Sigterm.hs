-- | Makes the program clean up on SIGTERM.
module Tool.Sigterm
  ( unwindOnSigterm,
  )
where

import Control.Concurrent (myThreadId, throwTo)
import System.Exit (ExitCode (..))
import System.Posix.Signals (Handler (CatchOnce), installHandler, sigTERM)

-- | From now on SIGTERM interrupts this thread, which must be the main one, like Ctrl-C: everything
-- that is bracketed ends. The exit code is 143, which is what a shell reports for a program that
-- the signal ended. A second SIGTERM ends the program at once.
unwindOnSigterm :: IO ()
unwindOnSigterm = do
  main' <- myThreadId
  _ <- installHandler sigTERM (CatchOnce (throwTo main' (ExitFailure 143))) Nothing
  pure ()
