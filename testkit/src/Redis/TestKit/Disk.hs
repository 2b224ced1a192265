-- | A disk that forgets what was not synced, for one folder of one program.
--
-- @kill -9@ is no power failure: what a killed program has written, the kernel
-- keeps. So a program that never syncs passes every test that only kills it.
-- Here the program gets a small library (@cbits/forgetful_disk.c@, by
-- @LD_PRELOAD@) that copies at each @fsync@ and @fdatasync@ what has reached the
-- disk by then. 'cutPower' is the moment of the failure, and 'restoreDisk' makes
-- the folder what such a disk has.
--
-- > withDisk folder $ \disk ->
-- >   withServer defaultServerOptions {optionsEnvironment = diskEnvironment disk, …} $ \server -> do
-- >     … writers write and count what is acknowledged …
-- >     cutPower disk writers count
-- >     kill9 server
-- >     restoreDisk disk
-- >     restart server
-- >     … all that was acknowledged is there …
--
-- What it proves is that the program asks for the sync before it acknowledges,
-- and can go on from what was synced. It does not prove that the real disk does
-- what it is asked. It is strict: a new file is lost if its folder was not
-- synced, which some file systems forgive.
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
import Redis.TestKit.Wait (eventually, failure)
import System.Directory
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import System.Process (readProcessWithExitCode)

foreign import ccall unsafe "&forgetful_disk_text"
  c_text :: CString

-- | The disk on which a folder is.
data Disk = Disk
  { diskFolder :: FilePath,
    -- Where it keeps what was synced.
    diskPlace :: FilePath,
    diskLibrary :: FilePath
  }

-- | A disk for that folder, for the length of an action. 'Left': why there can
-- be none here, in a line (there is no C compiler). Blocks for some 100 ms.
withDisk :: FilePath -> (Disk -> IO a) -> IO (Either String a)
withDisk folder action =
  withSystemTempDirectory "redis-testkit-disk" $ \place -> do
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

-- | The variables of the program whose disk it is. What is in the folder when
-- it begins is on the disk.
diskEnvironment :: Disk -> [(String, String)]
diskEnvironment disk =
  [ ("LD_PRELOAD", diskLibrary disk),
    ("FORGETFUL_FOLDER", diskFolder disk),
    ("FORGETFUL_DISK", diskPlace disk)
  ]

-- | Whether a program has begun with it. One that is linked statically, or
-- without libc, does not.
diskInUse :: Disk -> IO Bool
diskInUse disk = doesDirectoryExist (diskPlace disk </> "names")

-- | From now on nothing reaches the disk: no sync returns. Blocks until one
-- waits, so that a program that syncs acknowledges nothing any more; or until
-- so many writers, each of which waits for its answer before it writes again,
-- have got more acknowledged than can have been on its way. The caller counts
-- that, kills the program, and calls 'restoreDisk'. Throws
-- 'Redis.TestKit.Wait.TestKitFailure' when neither happens within 20 s, or when
-- the disk is not in use.
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

-- | Makes the folder what the disk has of it, and the disk a new one. Only when
-- the program is gone.
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
