-- | A service under test: started with a fresh database, and ended with all that
-- it wrote.
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

-- | A program that keeps the contract.
data Program = Program
  { -- | What reports call it.
    programName :: String,
    programPath :: FilePath,
    programArguments :: [String],
    -- | Beside what the contract names.
    programEnvironment :: [(String, String)]
  }
  deriving stock (Eq, Show)

-- | How to start it.
data Options = Options
  { serviceRedisPort :: Int,
    serviceInCluster :: Bool,
    -- | Seconds.
    serviceClientTimeout :: Int,
    -- | The cores it may run on; all when empty.
    serviceCores :: [Int],
    serviceSqlFile :: FilePath
  }
  deriving stock (Eq, Show)

-- | With that file of SQL and a Redis server on that port.
defaultOptions :: FilePath -> Int -> Options
defaultOptions sqlFile port =
  Options {serviceRedisPort = port, serviceInCluster = False, serviceClientTimeout = 30, serviceCores = [], serviceSqlFile = sqlFile}

-- | A service that listens.
data Running = Running
  { runningPort :: Int,
    runningPid :: ProcessID,
    runningProcess :: Process,
    -- | The database file that it works on.
    runningDatabase :: FilePath,
    -- | What it has printed so far.
    runningOutput :: IO ByteString
  }

-- | Starts a service on a database file and waits until it listens; kills it
-- afterwards if it still runs. Throws a failure with what it printed if it does
-- not listen within 30 s.
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

-- | Asks it to end, and waits until it has.
terminate :: Running -> IO ExitCode
terminate running = signal sigTERM (runningProcess running) >> awaitExit (runningProcess running)

-- | Makes the database that all begin with, in a folder: 10 000 users of seed
-- 42. Returns its path.
goldenDatabase :: FilePath -> FilePath -> IO FilePath
goldenDatabase sqlFile folder = do
  statements <- loadStatements sqlFile
  let path = folder </> "golden.db"
  path <$ seedDatabase statements path (seedUsers 42 10000)

-- | Puts a copy of the golden database in a place, as new.
restoreDatabase :: FilePath -> FilePath -> IO ()
restoreDatabase golden place = do
  mapM_ (removePathForcibly . (place <>)) ["", "-wal", "-shm"]
  copyFile golden place
