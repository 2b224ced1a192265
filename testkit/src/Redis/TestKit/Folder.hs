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
import Control.Monad (when)
import Data.Either (fromRight)
import Data.Foldable (for_)
import Data.List (isPrefixOf)
import GHC.IO.Handle.Lock (LockMode (..), hTryLock)
import System.Directory
  ( getTemporaryDirectory,
    listDirectory,
    removeFile,
    removePathForcibly,
    renameDirectory,
  )
import System.FilePath (takeFileName, (</>))
import System.IO (Handle, IOMode (ReadMode, ReadWriteMode), hClose, openFile, withFile)
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
  -- The folder gets its name when it is locked: nobody sweeps one whose name begins with a dot. A
  -- process that is killed in between leaves that.
  made <- createTempDirectory parent ('.' : name)
  flip onException (removePathForcibly made) $ do
    lock <- fromRight Nothing <$> tryIOError (lockNew (made </> lockFile))
    let path = parent </> drop 1 (takeFileName made)
    renameDirectory made path
    pure Folder {folderPath = path, folderLock = lock}

-- | Removes a folder with all that is in it.
removeFolder :: Folder -> IO ()
removeFolder folder = do
  removePathForcibly (folderPath folder)
  mapM_ hClose (folderLock folder)

lockFile :: FilePath
lockFile = ".in-use"

-- Makes a file and locks it. 'Nothing', and no file, where there are no locks.
lockNew :: FilePath -> IO (Maybe Handle)
lockNew path = do
  lock <- openFile path ReadWriteMode
  locked <- fromRight False <$> tryIOError (hTryLock lock ExclusiveLock)
  if locked then pure (Just lock) else Nothing <$ (hClose lock >> removeFile path)

-- Removes the folders with names of these beginnings whose processes are dead. A folder that cannot
-- be looked into or removed is somebody else's, and stays. The lock file is opened to be read: that
-- never makes one in a folder that is being removed.
sweep :: FilePath -> [String] -> IO ()
sweep parent names = do
  found <- fromRight [] <$> tryIOError (listDirectory parent)
  for_ [parent </> entry | entry <- found, any (`isPrefixOf` entry) names] $ \folder ->
    tryIOError . withFile (folder </> lockFile) ReadMode $ \lock -> do
      free <- hTryLock lock SharedLock
      when free (removePathForcibly folder)
