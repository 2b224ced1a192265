module Compare.QuietSpec (spec) where

import Compare.Manifest (manifest)
import Compare.Quiet
import Control.Exception (finally)
import Data.Aeson (Value (..))
import Data.Aeson.KeyMap qualified as KeyMap
import System.Directory (createDirectory, getPermissions, setOwnerExecutable, setPermissions)
import System.Environment (unsetEnv)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import Test.Hspec

spec :: Spec
spec = describe "a quiet machine" $ do
  it "is waited for: on a busy one nothing is measured" $
    beside "exit 2" $ \folder ->
      whenQuiet folder (fail "it was measured") `shouldReturn` ExitFailure 2
  it "has its idle share in the manifest" . flip finally (unsetEnv "QUIET_IDLE") $
    beside "echo 98.7 %" $ \folder -> do
      status <- whenQuiet folder $ do
        about <- manifest []
        idle (about "redis") `shouldBe` Just "98.7 %"
        pure (ExitFailure 1)
      status `shouldBe` ExitFailure 1
  where
    idle = \case
      Object fields -> KeyMap.lookup "idle_at_start" fields
      _ -> Nothing
    -- The folder of a comparison, with a script of this line beside it.
    beside line action = withSystemTempDirectory "quiet" $ \folder -> do
      let script = folder </> "scripts" </> "quiet.sh"
      mapM_ (createDirectory . (folder </>)) ["compare", "scripts"]
      writeFile script ("#!/bin/sh\n" <> line <> "\n")
      getPermissions script >>= setPermissions script . setOwnerExecutable True
      action (folder </> "compare")
