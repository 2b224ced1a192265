module Redis.TestKit.DiskSpec (spec) where

import Control.Monad (forM, forM_)
import Data.List (sort)
import Redis.TestKit.Disk
import Redis.TestKit.Wait (TestKitFailure)
import System.Directory (doesDirectoryExist, listDirectory, removePathForcibly)
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import System.Process (CreateProcess (cwd), proc, readCreateProcess)
import Test.Hspec

spec :: Spec
spec = aroundAll withDiskOf $ do
  forM_
    [ ("has what was there when the program began", "true", [("a", "old")]),
      ("forgets what was written", "echo new > a", [("a", "old")]),
      ("keeps what was written and synced", "echo new > a; sync a", [("a", "new")]),
      ("keeps what was written and whose data were synced", "echo new > a; sync -d a", [("a", "new")]),
      ("forgets what was appended after the sync", "echo more >> a; sync a; echo most >> a", [("a", "old more")]),
      ("forgets what was cut off after the sync", ": > a", [("a", "old")]),
      ("keeps what was cut off before the sync", ": > a; sync a", [("a", "")]),
      ("forgets a new file whose name was not synced", "echo new > b; sync b", [("a", "old")]),
      ("has nothing in a file of which only the name was synced", "echo new > b; sync .", [("a", "old"), ("b", "")]),
      ("keeps a new file of which both were", "echo new > b; sync b .", [("a", "old"), ("b", "new")]),
      ("takes back a rename", "mv a b", [("a", "old")]),
      ("keeps a rename that was synced", "mv a b; sync .", [("b", "old")]),
      ("takes back a file that was put over another", "echo new > b; sync b; mv b a", [("a", "old")]),
      ("keeps one that was synced", "echo new > b; sync b; mv b a; sync .", [("a", "new")]),
      ("takes back a removal", "rm a", [("a", "old")]),
      ("keeps a removal that was synced", "rm a; sync .", []),
      ("takes no file for the one that had its number before", "rm a; echo new > b; sync .", [("b", "")]),
      ("knows folders in folders", "mkdir c; echo new > c/d; echo new > c/e; sync c/d c", [("a", "old"), ("c/d", "new"), ("c/e", "")])
    ]
    $ \(sentence, script, expected) ->
      it (sentence <> ": " <> script) $ \place -> survivors script place `shouldReturn` expected

  it "does not take what a second program finds for synced" $ \place ->
    survivors "echo new > a; sh -c true" place `shouldReturn` [("a", "old")]

  it "says so when no program uses it" $ \(_, disk) -> do
    diskInUse disk `shouldReturn` False
    cutPower disk 1 (pure 0) `shouldThrow` \(_ :: TestKitFailure) -> True

-- A folder and its disk, compiled once for all tests.
withDiskOf :: ((FilePath, Disk) -> IO ()) -> IO ()
withDiskOf action =
  withSystemTempDirectory "disk-spec" $ \folder ->
    withDisk folder (\disk -> action (folder, disk)) >>= either fail pure

-- Runs a shell script in a folder that has the file a. Returns the files that survive a power cut,
-- by name, with the words of each.
survivors :: String -> (FilePath, Disk) -> IO [(FilePath, String)]
survivors script (folder, disk) = do
  listDirectory folder >>= mapM_ (removePathForcibly . (folder </>))
  writeFile (folder </> "a") "old\n"
  let variables = [name <> "=" <> value | (name, value) <- diskEnvironment disk]
  _ <- readCreateProcess (proc "env" (variables <> ["sh", "-e", "-c", script])) {cwd = Just folder} ""
  diskInUse disk `shouldReturn` True
  restoreDisk disk
  filesIn folder ""

filesIn :: FilePath -> FilePath -> IO [(FilePath, String)]
filesIn root folder = do
  names <- sort <$> listDirectory (root </> folder)
  fmap concat . forM names $ \name -> do
    let path = folder </> name
    isFolder <- doesDirectoryExist (root </> path)
    if isFolder
      then filesIn root path
      else (\text -> [(path, unwords (words text))]) <$> readFile (root </> path)
