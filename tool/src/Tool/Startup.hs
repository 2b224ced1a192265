-- | What a program does first, wherever it runs: it writes UTF-8 also where the locale is ASCII, and
-- cleans up when a signal ends it.
module Tool.Startup
  ( useUtf8,
    unwindOnSignals,
  )
where

import Control.Concurrent (myThreadId, throwTo)
import Control.Monad (unless, void)
import Data.Foldable (for_)
import Foreign.C.Types (CInt (..))
import GHC.IO.Encoding (mkTextEncoding, setLocaleEncoding)
import System.Exit (ExitCode (..))
import System.IO (hSetEncoding, stderr, stdin, stdout)
import System.Posix.Signals (Handler (CatchOnce), installHandler, sigHUP, sigTERM)

-- | Makes UTF-8 the encoding of the standard handles and of every handle that is opened from now
-- on. Bytes that are not UTF-8 are read and written unchanged. Call it once, before anything is
-- written.
useUtf8 :: IO ()
useUtf8 = do
  utf8 <- mkTextEncoding "UTF-8//ROUNDTRIP"
  setLocaleEncoding utf8
  mapM_ (`hSetEncoding` utf8) [stdin, stdout, stderr]

-- | From now on SIGTERM and SIGHUP interrupt this thread, which must be the main one, like Ctrl-C:
-- everything that is bracketed ends. The exit code is 143 or 129, which is what a shell reports for
-- a program that the signal ended. The second signal of a kind ends the program at once. A signal
-- that is ignored, as @nohup@ has it, stays ignored.
unwindOnSignals :: IO ()
unwindOnSignals = do
  main' <- myThreadId
  for_ [sigTERM, sigHUP] $ \signal -> do
    ignored <- isIgnored signal
    unless (ignored /= 0) . void $
      installHandler signal (CatchOnce (throwTo main' (exitFor signal))) Nothing
  where
    exitFor signal = ExitFailure (128 + fromIntegral signal)

-- The runtime does not know what this process has inherited.
foreign import ccall unsafe "redis_client_tool_signal_is_ignored"
  isIgnored :: CInt -> IO CInt
