-- | Makes the program clean up when a signal ends it.
module Tool.Signals
  ( unwindOnSignals,
  )
where

import Control.Concurrent (myThreadId, throwTo)
import Control.Monad (unless)
import Data.Foldable (for_)
import Foreign.C.Types (CInt (..))
import System.Exit (ExitCode (..))
import System.Posix.Signals (Handler (CatchOnce), installHandler, sigHUP, sigTERM)

-- | From now on SIGTERM and SIGHUP interrupt this thread, which must be the main one, like Ctrl-C:
-- everything that is bracketed ends. The exit code is 143 or 129, which is what a shell reports for
-- a program that the signal ended. The second signal of a kind ends the program at once. A signal
-- that is ignored, as @nohup@ has it, stays ignored.
unwindOnSignals :: IO ()
unwindOnSignals = do
  main' <- myThreadId
  for_ [sigTERM, sigHUP] $ \signal -> do
    ignored <- isIgnored signal
    unless (ignored /= 0) $ do
      _ <- installHandler signal (CatchOnce (throwTo main' (ExitFailure (128 + fromIntegral signal)))) Nothing
      pure ()

-- The runtime does not know what this process has inherited.
foreign import ccall unsafe "redis_client_tool_signal_is_ignored"
  isIgnored :: CInt -> IO CInt
