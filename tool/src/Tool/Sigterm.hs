-- | A program that is told to end puts away what it has started.
module Tool.Sigterm
  ( unwindOnSigterm,
  )
where

import Control.Concurrent (myThreadId, throwTo)
import System.Exit (ExitCode (..))
import System.Posix.Signals (Handler (CatchOnce), installHandler, sigTERM)

-- | From now on SIGTERM interrupts this thread, which must be the main one, as
-- Ctrl-C does: everything that is bracketed ends. The exit code is 143, as a shell
-- reports a program that the signal ended. A second one ends it at once.
unwindOnSigterm :: IO ()
unwindOnSigterm = do
  main' <- myThreadId
  _ <- installHandler sigTERM (CatchOnce (throwTo main' (ExitFailure 143))) Nothing
  pure ()
