-- | The command line.
module RunSpec (spec) where

import Control.Monad (forM_)
import Redis.TestKit.Wait (within)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.Process (proc, readCreateProcessWithExitCode)
import Test.Hspec

-- | The tests, for the folder of the comparison.
spec :: FilePath -> Spec
spec folder = around_ (within 30) . describe "run.sh" $
  forM_ ["goals", "free", "cluster", "study", "autocannon", "all"] $ \part ->
    it ("refuses the part " <> part <> " with QUICK=1, which is another") $ do
      (code, _, said) <- readCreateProcessWithExitCode (proc "env" ["QUICK=1", folder </> "run.sh", part]) ""
      (code, lines said) `shouldBe` (ExitFailure 2, ["compare-rest: QUICK=1 has no short form of the part '" <> part <> "' (try --help)"])
