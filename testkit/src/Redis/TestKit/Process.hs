-- | Child processes that do not outlive this one.
--
-- A test program may itself be killed with -9, and then it runs no clean-up. So children are
-- started through @setpriv --pdeathsig KILL@ (util-linux), which asks the kernel to kill them when
-- their parent ends. For Linux that is the parent's /thread/: a runtime that retires an idle OS
-- thread would kill the child, too. Therefore each child has a keeper, a bound thread that forks it
-- and then waits until it is gone. If @setpriv@ is missing, only 'kill9' ends a child.
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

import Control.Applicative ((<|>))
import Control.Concurrent (forkIO, forkOS, rtsSupportsBoundThreads, threadDelay)
import Control.Concurrent.MVar (newEmptyMVar, putMVar, takeMVar, tryPutMVar)
import Control.Concurrent.STM
  ( STM,
    TVar,
    atomically,
    modifyTVar',
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
import System.Exit (ExitCode (ExitFailure))
import System.IO (IOMode (AppendMode), withFile)
import System.IO.Error (isDoesNotExistError)
import System.Posix.Signals (Signal, sigKILL, signalProcess)
import System.Posix.Types (ProcessID)
import System.Process
  ( CreateProcess (close_fds, create_group, cwd, std_err, std_in, std_out),
    ProcessHandle,
    StdStream (NoStream, UseHandle),
    getPid,
    getProcessExitCode,
    proc,
    waitForProcess,
    withCreateProcess,
  )

-- | A running or ended child.
data Process = Process
  { -- | The kernel's number of the process, while it runs.
    processId :: ProcessID,
    processExit :: TVar (Maybe ExitCode)
  }

-- | The words to put before a command line to keep it on these cores: @taskset -c 0,1@; none for an
-- empty list.
onCores :: [Int] -> [String]
onCores = \case
  [] -> []
  cores -> ["taskset", "-c", intercalate "," (map show cores)]

-- | Starts a program with arguments in a folder, and appends its output to a file. Returns as soon
-- as the process is forked. It inherits no descriptors and has its own process group, so that a
-- Ctrl-C in the terminal reaches only this process.
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
                code <- if rtsSupportsBoundThreads then waitForProcess handle else pollForProcess handle
                atomically (writeTVar exit (Just code))
        case outcome of
          Right () -> pure ()
          -- Before the start, the exception is for the caller. After it there is no child that could be
          -- waited for, so nobody may wait for it.
          Left (problem :: SomeException) -> do
            void (tryPutMVar started (Left problem))
            atomically (modifyTVar' exit (<|> Just (ExitFailure 1)))
  mask_ $ do
    void (if rtsSupportsBoundThreads then forkOS keep else forkIO keep)
    takeMVar started >>= \case
      Right pid -> pure Process {processId = pid, processExit = exit}
      Left problem -> throwIO problem

-- | Like 'waitForProcess', without a call that stops every thread of a program without @-threaded@.
pollForProcess :: ProcessHandle -> IO ExitCode
pollForProcess handle = getProcessExitCode handle >>= maybe (threadDelay 5000 *> pollForProcess handle) pure

-- | The child's exit status, if it has ended.
exitStatus :: Process -> STM (Maybe ExitCode)
exitStatus = readTVar . processExit

-- | Blocks until the child has ended.
awaitExit :: Process -> IO ExitCode
awaitExit process = atomically (exitStatus process >>= maybe retry pure)

-- | Sends a signal; does nothing if the child has ended.
signal :: Signal -> Process -> IO ()
signal which process =
  readTVarIO (processExit process) >>= \case
    -- The child may have ended by itself a moment ago.
    Nothing -> handleJust (guard . isDoesNotExistError) pure (signalProcess which (processId process))
    Just _ -> pure ()

-- | Kills the child, frozen or not, and blocks until it is gone.
kill9 :: Process -> IO ()
kill9 process = signal sigKILL process >> void (awaitExit process)
