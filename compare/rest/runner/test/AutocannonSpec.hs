-- | The autocannon section of the report.
module AutocannonSpec (spec) where

import Compare.Autocannon
import Compare.Load (Scenario (..))
import Compare.Report (htmlReport)
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy.Char8 qualified as Lazy
import Data.Map.Strict qualified as Map
import Data.Text qualified as Text
import Redis.TestKit.Wait (within)
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import Test.Hspec

spec :: Spec
spec = around_ (within 10) . describe "autocannon" $ do
  it "has a table for each scenario, with what each row answered, the fastest first" . withSystemTempDirectory "rest" $ \folder -> do
    Char8.writeFile (folder </> "autocannon.jsonl") (Char8.unlines [line "slow" 1 1000, line "fast" 1 2000, line "slow" 2 1200])
    samples <- readSamples (folder </> "autocannon.jsonl")
    map scenario samples `shouldBe` [Post, Post, Post]
    -- On the page, too.
    mapM_ (Lazy.unpack (htmlReport Map.empty [] samples) `shouldContain`) ["autocannon: post, 10 connections", "<td>fast</td><td>2000</td>"]
    drop 4 (sampleTables samples)
      `shouldBe` [ "### autocannon: post, 10 connections",
                   "",
                   "| service | requests/s | n | p50 ms | p95 | p99 | answers by status | generator busy |",
                   "| --- | --- | --- | --- | --- | --- | --- | --- |",
                   "| fast | 2000 | 1 | 1.50 | 2.25 | 3.00 | 201: 90, 409: 1 | 95 % |",
                   "| slow | 1100 | 2 | 1.50 | 2.25 | 3.00 | 201: 180, 409: 2 | 95 % |",
                   ""
                 ]
  it "says nothing of what was not measured" . withSystemTempDirectory "rest" $ \folder -> do
    samples <- readSamples (folder </> "autocannon.jsonl")
    sampleTables samples `shouldSatisfy` all Text.null
    Lazy.unpack (htmlReport Map.empty [] samples) `shouldNotContain` "autocannon"
  where
    line name number rate =
      "{\"row\": \"" <> name <> "\", \"scenario\": \"post\", \"connections\": 10, \"iteration\": " <> shown number <> ", \"perSecond\": " <> shown rate
        <> ", \"p50\": 1.5, \"p95\": 2.25, \"p99\": 3, \"statuses\": {\"201\": 90, \"409\": 1}, \"generatorBusy\": 0.95}"
    shown = Char8.pack . show :: Int -> Char8.ByteString
