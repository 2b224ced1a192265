-- | A service under test: started on a fresh database, and ended with its output kept.
module Compare.Service
  ( -- * Which
    Program (..),
    Options (..),
    defaultOptions,

    -- * Running
    Running (..),
    withService,
    restoreDatabase,
    goldenDatabase,
    terminate,
  )
where

import Control.Concurrent.STM (atomically)
import Control.Exception (bracket)
import Control.Monad (unless)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Redis.TestKit.Address (freePorts)
import Redis.TestKit.Process (Process, awaitExit, exitStatus, kill9, onCores, processId, signal, spawn)
import Redis.TestKit.Wait (eventuallyJust, failure)
import Rest.Seed (seedDatabase, seedUsers)
import Rest.Statements (loadStatements)
import System.Directory (copyFile, doesFileExist, makeAbsolute, removePathForcibly)
import System.Exit (ExitCode)
import System.FilePath ((</>))
import System.Posix.Signals (sigTERM)
import System.Posix.Types (ProcessID)

-- | A program that implements the contract.
data Program = Program
  { -- | The program's name in reports.
    programName :: String,
    programPath :: FilePath,
    programArguments :: [String],
    -- | Environment variables in addition to those of the contract.
    programEnvironment :: [(String, String)]
  }
  deriving stock (Eq, Show)

-- | How to start the service.
data Options = Options
  { serviceRedisPort :: Int,
    serviceInCluster :: Bool,
    -- | Seconds.
    serviceClientTimeout :: Int,
    -- | The cores that it may run on; empty: all.
    serviceCores :: [Int],
    serviceSqlFile :: FilePath
  }
  deriving stock (Eq, Show)

-- | The default options, with this file of SQL statements and a Redis server on this port.
defaultOptions :: FilePath -> Int -> Options
defaultOptions sqlFile port =
  Options {serviceRedisPort = port, serviceInCluster = False, serviceClientTimeout = 30, serviceCores = [], serviceSqlFile = sqlFile}

-- | A running service, which listens.
data Running = Running
  { runningPort :: Int,
    runningPid :: ProcessID,
    runningProcess :: Process,
    -- | The service's database file.
    runningDatabase :: FilePath,
    -- | The service's output so far.
    runningOutput :: IO ByteString
  }

-- | Starts a service on a database file and waits until it listens; kills it after the action if it
-- still runs. Throws a failure with the service's output if it does not listen within 30 s.
withService :: Program -> Options -> FilePath -> FilePath -> (Running -> IO a) -> IO a
withService program options folder database action = do
  ports <- freePorts 1
  sqlFile <- makeAbsolute (serviceSqlFile options)
  case ports of
    [port] -> bracket (begin port sqlFile) kill9 $ \process -> do
      awaitListening process
      action Running {runningPort = port, runningPid = processId process, runningProcess = process, runningDatabase = database, runningOutput = printed}
    _ -> failure "no free port"
  where
    output = folder </> (programName program <> ".out")
    begin port sqlFile = do
      removePathForcibly output
      spawn folder "env" (variables port sqlFile <> pinned) output
    variables port sqlFile =
      [ name <> "=" <> value
        | (name, value) <-
            [ ("PORT", show port),
              ("SQLITE_DB", database),
              ("SQL_FILE", sqlFile),
              ("REDIS_HOST", "127.0.0.1"),
              ("REDIS_PORT", show (serviceRedisPort options)),
              ("REDIS_CLUSTER", if serviceInCluster options then "true" else "false"),
              ("CLIENT_TIMEOUT", show (serviceClientTimeout options))
            ]
              <> programEnvironment program
      ]
    pinned = onCores (serviceCores options) <> (programPath program : programArguments program)
    awaitListening process = do
      listening <- eventuallyJust 30 (programName program <> " listens") $ do
        ended <- atomically (exitStatus process)
        said <- printed
        pure $ case ended of
          Just _ -> Just False
          Nothing
            | any ("listening" `Char8.isPrefixOf`) (Char8.lines said) -> Just True
            | otherwise -> Nothing
      unless listening $ printed >>= failure . ((programName program <> " ended: ") <>) . Char8.unpack
    printed = do
      there <- doesFileExist output
      if there then Char8.readFile output else pure ""

-- | Asks the service to end (SIGTERM), and waits until it has.
terminate :: Running -> IO ExitCode
terminate running = signal sigTERM (runningProcess running) >> awaitExit (runningProcess running)

-- | Creates the database that all measurements start from, in a folder: 10 000 users of seed 42.
-- Returns its path.
goldenDatabase :: FilePath -> FilePath -> IO FilePath
goldenDatabase sqlFile folder = do
  statements <- loadStatements sqlFile
  let path = folder </> "golden.db"
  path <$ seedDatabase statements path (seedUsers 42 10000)

-- | Replaces a database file with a fresh copy of the golden database.
restoreDatabase :: FilePath -> FilePath -> IO ()
restoreDatabase golden place = do
  mapM_ (removePathForcibly . (place <>)) ["", "-wal", "-shm"]
  copyFile golden place
