-- | Child processes that do not outlive this one.
--
-- A test program may itself be killed with -9, and then runs no clean-up. So
-- children are started through @setpriv --pdeathsig KILL@ (util-linux), which
-- asks the kernel to kill them when their parent ends. Linux means by that the
-- parent's /thread/: a runtime that retires an idle OS thread would take the
-- child along. Therefore each child has a keeper, a bound thread that forks it
-- and then waits until it is gone. Where @setpriv@ is missing a child ends by
-- 'kill9' only.
module Redis.TestKit.Process
  ( Process,
    spawn,
    onCores,
    processId,
    signal,
    exitStatus,
    awaitExit,
    kill9,
  )
where

import Control.Concurrent (forkIO, forkOS, rtsSupportsBoundThreads)
import Control.Concurrent.MVar (newEmptyMVar, putMVar, takeMVar, tryPutMVar)
import Control.Concurrent.STM
  ( STM,
    TVar,
    atomically,
    newTVarIO,
    readTVar,
    readTVarIO,
    retry,
    writeTVar,
  )
import Control.Exception (SomeException, handleJust, mask_, throwIO, try)
import Control.Monad (guard, void)
import Data.List (intercalate)
import Redis.TestKit.Wait (failure)
import System.Directory (findExecutable)
import System.Exit (ExitCode)
import System.IO (IOMode (AppendMode), withFile)
import System.IO.Error (isDoesNotExistError)
import System.Posix.Signals (Signal, sigKILL, signalProcess)
import System.Posix.Types (ProcessID)
import System.Process
  ( CreateProcess (close_fds, create_group, cwd, std_err, std_in, std_out),
    StdStream (NoStream, UseHandle),
    getPid,
    proc,
    waitForProcess,
    withCreateProcess,
  )

-- | A running or ended child.
data Process = Process
  { -- | The number by which the kernel knows it, while it runs.
    processId :: ProcessID,
    processExit :: TVar (Maybe ExitCode)
  }

-- | What stands before a command line that is kept to these cores: @taskset -c 0,1@;
-- nothing for none in particular.
onCores :: [Int] -> [String]
onCores = \case
  [] -> []
  cores -> ["taskset", "-c", intercalate "," (map show cores)]

-- | Starts a program with arguments in a folder, its output appended to a
-- file. Returns as soon as it is forked. It gets no descriptors of ours and a
-- process group of its own, so that a Ctrl-C in the terminal reaches only us.
spawn :: FilePath -> FilePath -> [String] -> FilePath -> IO Process
spawn folder program arguments output = do
  setpriv <- findExecutable "setpriv"
  let (executable, allArguments) = case setpriv of
        Just found -> (found, ["--pdeathsig", "KILL", program] <> arguments)
        Nothing -> (program, arguments)
  exit <- newTVarIO Nothing
  started <- newEmptyMVar
  let keep = do
        outcome <- try $
          withFile output AppendMode $ \sink ->
            withCreateProcess
              (proc executable allArguments)
                { cwd = Just folder,
                  std_in = NoStream,
                  std_out = UseHandle sink,
                  std_err = UseHandle sink,
                  close_fds = True,
                  create_group = True
                }
              $ \_ _ _ handle -> do
                getPid handle >>= \case
                  Just pid -> putMVar started (Right pid)
                  Nothing -> failure (program <> " ended at once")
                code <- waitForProcess handle
                atomically (writeTVar exit (Just code))
        case outcome of
          Right () -> pure ()
          -- Before the start it is the caller's; afterwards nothing throws.
          Left (problem :: SomeException) -> void (tryPutMVar started (Left problem))
  mask_ $ do
    void (if rtsSupportsBoundThreads then forkOS keep else forkIO keep)
    takeMVar started >>= \case
      Right pid -> pure Process {processId = pid, processExit = exit}
      Left problem -> throwIO problem

-- | How it ended, if it has.
exitStatus :: Process -> STM (Maybe ExitCode)
exitStatus = readTVar . processExit

-- | Blocks until it has ended.
awaitExit :: Process -> IO ExitCode
awaitExit process = atomically (exitStatus process >>= maybe retry pure)

-- | Sends a signal; does nothing when the process has ended.
signal :: Signal -> Process -> IO ()
signal which process =
  readTVarIO (processExit process) >>= \case
    -- It may have ended by itself a moment ago.
    Nothing -> handleJust (guard . isDoesNotExistError) pure (signalProcess which (processId process))
    Just _ -> pure ()

-- | Ends it without a chance to object, frozen or not, and blocks until the
-- kernel has.
kill9 :: Process -> IO ()
kill9 process = signal sigKILL process >> void (awaitExit process)
