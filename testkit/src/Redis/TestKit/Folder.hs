-- | Temporary folders that go when their process ends, or else when another one begins.
--
-- A process that is killed with -9 removes nothing. So each folder has a file that its process keeps
-- locked; the kernel gives the lock up when the process ends, however it does. Whoever makes a
-- folder first removes those whose lock is free. Unlike the number of a process, a lock also tells
-- the living from the dead between containers that share the folder for temporary files.
module Redis.TestKit.Folder
  ( withFolder,
    Folder,
    folderPath,
    createFolder,
    removeFolder,
  )
where

import Control.Exception (bracket, mask_, onException)
import Control.Monad (filterM, void)
import Data.Either (fromRight)
import Data.Foldable (for_)
import Data.List (isPrefixOf)
import GHC.IO.Handle.Lock (LockMode (ExclusiveLock), hTryLock)
import System.Directory (doesFileExist, getTemporaryDirectory, listDirectory, removePathForcibly)
import System.FilePath ((</>))
import System.IO (Handle, IOMode (ReadWriteMode), hClose, openFile)
import System.IO.Error (tryIOError)
import System.IO.Temp (createTempDirectory)

-- | A folder that this process keeps. It is kept only as long as something refers to this value.
data Folder = Folder
  { folderPath :: FilePath,
    -- Holds the lock while it is open. 'Nothing' where the file system has no locks: such a folder
    -- is nobody else's to remove.
    folderLock :: Maybe Handle
  }

-- | Runs an action with a new folder among the system's temporary files, whose name begins with
-- this word, and removes it with all that is in it.
withFolder :: String -> (FilePath -> IO a) -> IO a
withFolder name action = do
  temporary <- getTemporaryDirectory
  bracket (createFolder temporary name) removeFolder (action . folderPath)

-- | Makes a folder in a parent folder; its name begins with this word. The caller must call
-- 'removeFolder'. Removes the folders there that processes have left which are dead: those of this
-- word, and those of the testkit and the program.
createFolder :: FilePath -> String -> IO Folder
createFolder parent name = mask_ $ do
  sweep parent [name, "redis-testkit", "redis-client-"]
  path <- createTempDirectory parent name
  kept <- tryIOError (keep path) `onException` removePathForcibly path
  case kept of
    Right (Just lock) -> pure Folder {folderPath = path, folderLock = Just lock}
    -- Another process was faster, and removes it.
    Right Nothing -> createFolder parent name
    Left _ -> do
      void (tryIOError (removePathForcibly (path </> lockFile)))
      pure Folder {folderPath = path, folderLock = Nothing}

-- | Removes a folder with all that is in it.
removeFolder :: Folder -> IO ()
removeFolder folder = do
  removePathForcibly (folderPath folder)
  mapM_ hClose (folderLock folder)

lockFile :: FilePath
lockFile = ".in-use"

-- Locks a folder. 'Nothing' if another process has the lock, or has removed the folder by now.
keep :: FilePath -> IO (Maybe Handle)
keep folder = do
  lock <- openFile (folder </> lockFile) ReadWriteMode
  locked <- hTryLock lock ExclusiveLock `onException` hClose lock
  stays <- doesFileExist (folder </> lockFile)
  if locked && stays then pure (Just lock) else Nothing <$ hClose lock

-- Removes the folders with names of these beginnings whose processes are dead. A folder that cannot
-- be looked into or removed is somebody else's, and stays.
sweep :: FilePath -> [String] -> IO ()
sweep parent names = do
  found <- fromRight [] <$> tryIOError (listDirectory parent)
  let ours = [parent </> entry | entry <- found, any (`isPrefixOf` entry) names]
  left <- filterM (doesFileExist . (</> lockFile)) ours
  for_ left $ \folder -> tryIOError $ do
    lock <- keep folder
    for_ lock $ \held -> removePathForcibly folder >> hClose held
