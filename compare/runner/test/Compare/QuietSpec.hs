module Compare.QuietSpec (spec) where

import Compare.Manifest (manifest)
import Compare.Options (Mode (..), modeParser)
import Compare.Pair (comparePair, sweep)
import Compare.Quiet
import Control.Exception (finally)
import Control.Monad (forM_)
import Data.Aeson (Value (..))
import Data.Aeson.KeyMap qualified as KeyMap
import Options.Applicative (defaultPrefs, execParserPure, getParseResult, info)
import System.Directory (createDirectory, createDirectoryIfMissing, doesFileExist, getPermissions, setOwnerExecutable, setPermissions)
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
  it "is waited for by the pair and the sweep" $
    beside "exit 2" $ \folder -> do
      forM_ [("peers/redis-client", "redis-client"), ("dotnet/client", "StackExchange.Redis 1")] $ \(place, name) -> do
        createDirectoryIfMissing True (folder </> place)
        program (folder </> place </> "build.sh") ("echo '{\"row\": \"" <> name <> "\", \"run\": [\"false\"]}'")
      let measured mode = getParseResult . execParserPure defaultPrefs (info modeParser mempty) $ [mode, "--compare", folder, "--output", folder </> "output.json"]
          run = \case
            Just (ComparePair options) -> comparePair (const (pure ())) (fail "it was measured") options
            Just (Sweep options) -> sweep (const (pure ())) (fail "it was measured") options
            _ -> fail "another mode"
      mapM (run . measured) ["pair", "sweep"] `shouldReturn` replicate 2 (ExitFailure 2)
      doesFileExist (folder </> "output.json") `shouldReturn` False
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
      mapM_ (createDirectory . (folder </>)) ["compare", "scripts"]
      program (folder </> "scripts" </> "quiet.sh") line
      action (folder </> "compare")
    program path line = do
      writeFile path ("#!/bin/sh\n" <> line <> "\n")
      getPermissions path >>= setPermissions path . setOwnerExecutable True
