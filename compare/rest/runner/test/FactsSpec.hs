-- | The facts that are recorded beside the results.
module FactsSpec (spec) where

import Compare.Facts (commandText, joinedFacts, noteManifest)
import Control.Exception (bracket_)
import Data.Aeson (decodeFileStrict)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Redis.TestKit.Wait (within)
import System.Environment (setEnv, unsetEnv)
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import Test.Hspec

spec :: Spec
spec = around_ (within 30) . describe "manifest" $ do
  it "names the server's program by its hash" $
    withSystemTempDirectory "rest" $ \out -> do
      noteManifest out []
      manifest <- decodeFileStrict (out </> "manifest.json") :: IO (Maybe (Map Text Text))
      (Map.lookup "redis-server SHA-256" =<< manifest) `shouldSatisfy` maybe False (\hash -> Text.length hash == 64 && Text.all (`elem` ("0123456789abcdef" :: String)) hash)
  it "names the time of day and the command" $
    withSystemTempDirectory "rest" $ \out -> do
      noteManifest out []
      manifest <- decodeFileStrict (out </> "manifest.json") :: IO (Maybe (Map Text Text))
      -- 2026-11-25T17:40:00Z
      (Text.length <$> (Map.lookup "date" =<< manifest)) `shouldBe` Just 20
      (Map.member "command" <$> manifest) `shouldBe` Just True
  it "names the idle share that the machine had before" $
    withSystemTempDirectory "rest" $ \out -> do
      bracket_ (setEnv "QUIET_IDLE" "98.7 %") (unsetEnv "QUIET_IDLE") (noteManifest out [])
      manifest <- decodeFileStrict (out </> "manifest.json") :: IO (Maybe (Map Text Text))
      (Map.lookup "idle at start" =<< manifest) `shouldBe` Just "98.7 %"
  it "names of the command what is no place on this machine" $
    commandText ["run", "--warmup", "5", "--out", "/tmp/out", "--haskell", "build/service", "--what", "quick", "--dotnet", "dotnet-1.2.6=/opt/service"]
      `shouldBe` "run --warmup 5 --what quick"
  it "keeps what a later part found otherwise, once" $ do
    let facts revision = Map.fromList [("processors", "2"), ("revision", revision)]
        both = joinedFacts (facts "a") (facts "b")
    both `shouldBe` facts "a; later: b"
    joinedFacts both (facts "a") `shouldBe` both
    joinedFacts both (facts "b") `shouldBe` both
