-- | A disk that loses everything that was not synced, for one folder of one program.
--
-- @kill -9@ is no power failure: what a killed program has written, the kernel
-- keeps. So a program that never syncs passes every test that only kills it.
-- Here the program gets a small library (@cbits/forgetful_disk.c@, by
-- @LD_PRELOAD@) that copies at each @fsync@ and @fdatasync@ what has reached the
-- disk by then. 'cutPower' is the moment of the failure, and 'restoreDisk' gives
-- the folder the content that such a disk would have.
--
-- > withDisk folder $ \disk ->
-- >   withServer serverDefaults {optionsEnvironment = diskEnvironment disk, …} $ \server -> do
-- >     … writers write and count what is acknowledged …
-- >     cutPower disk writers count
-- >     kill9 server
-- >     restoreDisk disk
-- >     restart server
-- >     … all that was acknowledged is there …
--
-- It proves that the program syncs before it acknowledges, and can continue from the synced data.
-- It does not prove that a real disk obeys. It is strict: a new file is lost if its folder was not
-- synced, though some file systems would keep the file.
module Redis.TestKit.Disk
  ( Disk,
    withDisk,
    diskEnvironment,
    diskInUse,
    cutPower,
    restoreDisk,
  )
where

import Control.Monad (forM_, unless)
import Data.ByteString qualified as ByteString
import Foreign.C.String (CString)
import GHC.Stack (HasCallStack)
import Redis.TestKit.Folder (withFolder)
import Redis.TestKit.Wait (eventually, failure)
import System.Directory
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.Process (readProcessWithExitCode)

foreign import ccall unsafe "&forgetful_disk_text"
  c_text :: CString

-- | The disk that holds a folder.
data Disk = Disk
  { diskFolder :: FilePath,
    -- The folder with the synced data.
    diskPlace :: FilePath,
    diskLibrary :: FilePath
  }

-- | A disk for this folder, for the duration of an action. 'Left': the reason why there can be none
-- on this machine, in one line (for example that there is no C compiler). Blocks for about 100 ms.
withDisk :: FilePath -> (Disk -> IO a) -> IO (Either String a)
withDisk folder action =
  withFolder "redis-testkit-disk" $ \place -> do
    real <- canonicalizePath folder
    let disk = Disk {diskFolder = real, diskPlace = place </> "disk", diskLibrary = place </> "forgetful_disk.so"}
        source = place </> "forgetful_disk.c"
    createDirectory (diskPlace disk)
    ByteString.packCString c_text >>= ByteString.writeFile source
    findExecutable "cc" >>= \case
      Nothing -> pure (Left "there is no C compiler (cc)")
      Just compiler ->
        readProcessWithExitCode compiler ["-DFORGETFUL_DISK_LIBRARY", "-O1", "-shared", "-fPIC", "-pthread", "-o", diskLibrary disk, source] "" >>= \case
          (ExitSuccess, _, _) -> empty disk >> Right <$> action disk
          (ExitFailure _, _, said) -> pure (Left ("the C compiler: " <> takeWhile (/= '\n') said))

-- | The environment variables of the program that uses the disk. Files that are in the folder when
-- the program starts are on the disk.
diskEnvironment :: Disk -> [(String, String)]
diskEnvironment disk =
  [ ("LD_PRELOAD", diskLibrary disk),
    ("FORGETFUL_FOLDER", diskFolder disk),
    ("FORGETFUL_DISK", diskPlace disk)
  ]

-- | Whether a program has started with the disk. A program that is linked statically, or without
-- libc, does not use it.
diskInUse :: Disk -> IO Bool
diskInUse disk = doesDirectoryExist (diskPlace disk </> "names")

-- | Cuts the power: from now on nothing reaches the disk, and no sync returns. Blocks until a sync
-- waits, so that a program that syncs acknowledges nothing any more; or until the writers have
-- received more acknowledgements than could have been on their way. The 'Int' is the number of
-- writers, each of which waits for its acknowledgement before it writes again. Afterwards the
-- caller reads its count, kills the program, and calls 'restoreDisk'. Throws
-- 'Redis.TestKit.Wait.TestKitFailure' if neither happens within 20 s, or if no program uses the
-- disk.
cutPower :: HasCallStack => Disk -> Int -> IO Int -> IO ()
cutPower disk writers acknowledged = do
  used <- diskInUse disk
  unless used (failure "no program uses the disk")
  writeFile (diskPlace disk </> "cut") ""
  before <- acknowledged
  eventually 20 "a sync waits, or writes are acknowledged without" $
    (||)
      <$> doesFileExist (diskPlace disk </> "held")
      <*> ((>= before + 2 * writers) <$> acknowledged)

-- | Gives the folder the content of the disk, and makes the disk a new one. Call this only when the
-- program has ended.
restoreDisk :: Disk -> IO ()
restoreDisk disk = do
  clear (diskFolder disk)
  copy (diskPlace disk </> "names") (diskFolder disk)
  clear (diskPlace disk)
  empty disk
  where
    clear folder = listDirectory folder >>= mapM_ (removePathForcibly . (folder </>))
    copy from to = do
      names <- listDirectory from
      forM_ names $ \name -> do
        isFolder <- doesDirectoryExist (from </> name)
        if isFolder
          then createDirectoryIfMissing False (to </> name) >> copy (from </> name) (to </> name)
          else copyFile (from </> name) (to </> name)

empty :: Disk -> IO ()
empty disk = createDirectoryIfMissing False (diskPlace disk </> "files")
