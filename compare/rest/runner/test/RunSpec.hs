-- | The scripts' command lines.
module RunSpec (spec) where

import Control.Monad (forM_)
import Redis.TestKit.Wait (within)
import System.Directory (createDirectoryIfMissing, makeAbsolute)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import System.Process (CreateProcess (cwd), proc, readCreateProcessWithExitCode)
import Test.Hspec

-- | The tests, for the folder of the comparison.
spec :: FilePath -> Spec
spec folder = around_ (within 30) $ do
  describe "run.sh" $
    forM_ ["goals", "free", "cluster", "study", "autocannon", "all"] $ \part ->
      it ("refuses the part " <> part <> " with QUICK=1, which is another") $ do
        (code, _, said) <- readCreateProcessWithExitCode (proc "env" ["QUICK=1", folder </> "run.sh", part]) ""
        (code, lines said) `shouldBe` (ExitFailure 2, ["compare-rest: QUICK=1 has no short form of the part '" <> part <> "' (try --help)"])

  describe "autocannon.sh" $
    it "finds a folder by its relative path, and does not continue what was measured otherwise" $
      withSystemTempDirectory "autocannon" $ \place -> do
        script <- makeAbsolute (folder </> "autocannon.sh")
        createDirectoryIfMissing True (place </> "results" </> "autocannon")
        writeFile (place </> "results" </> "autocannon" </> "settings") "10 s after 10 s of warm-up\n"
        (code, _, said) <- readCreateProcessWithExitCode (proc script ["results", "3", "2", "1"]) {cwd = Just place} ""
        (code, lines said)
          `shouldBe` (ExitFailure 2, ["autocannon: the folder has measurements of 10 s after 10 s of warm-up, not of 2 s after 3 s of warm-up; name another one (OUT)"])
