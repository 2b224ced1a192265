-- | Facts that reports must not leave out.
module ReportSpec (spec, measured, responses) where

import Compare.Cell
import Compare.Load (LoadResult (..), Scenario (..))
import Compare.Report (htmlReport, markdownReport)
import Data.Aeson (eitherDecodeStrict)
import Data.ByteString.Lazy.Char8 qualified as Lazy
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Redis.TestKit.Wait (within)
import Test.Hspec

spec :: Spec
spec = around_ (within 10) . describe "report" $ do
  it "gives a row its number" $
    line "haskell" [measured "haskell" [] 1] `shouldSatisfy` any ("| 1000 |" `Text.isInfixOf`)
  it "keeps a row of which nothing counts, and says why nothing does" $ do
    let results = [measured "haskell" [] 1, measured "haskell-naive" ["no answers"] 1, measured "haskell-naive" ["no answers"] 2]
    line "haskell-naive" results `shouldSatisfy` any ("none" `Text.isInfixOf`)
    length (filter ("no answers" `Text.isInfixOf`) (Text.lines (markdownReport mempty results))) `shouldBe` 2
  it "keeps a group of which nothing counts" $
    line "haskell" [measured "haskell" ["no answers"] 1] `shouldSatisfy` (not . null)
  it "counts the measurements that do beside those that do not" $
    line "haskell" [measured "haskell" [] 1, measured "haskell" ["no answers"] 2] `shouldSatisfy` any ("1 (1 invalid)" `Text.isInfixOf`)
  it "tells the response times of each row, its rate, and its answers by status" $ do
    let loaded = (measured "haskell" [] 2) {outcome = (outcome (measured "haskell" [] 2)) {openLoop = Just responses}}
    line "haskell" [measured "haskell" [] 1, loaded]
      `shouldContain` ["| haskell | 100 | 99 % | 1 | 11 | 13 | 14 | 15 | 16 | 200: 900, 404: 100 | 7 | 40 % |"]
  it "marks a rate and a latency at which a generator was at its end, and no others" $ do
    let busy wrk core sender = (measured "haskell" [] 1) {outcome = (outcome (measured "haskell" [] 1)) {generatorBusy = wrk, coresBusy = [core, 1], openLoop = Just responses {senderBusy = Just sender}}}
        free one = one {cell = (cell one) {layout = Free}}
        marked one = [any (text `Text.isInfixOf`) (line "haskell" [one]) | text <- ["| 1000* |", "| 15* |"]]
    marked (busy 0.8 0.95 0.8) `shouldBe` [False, False]
    marked (busy 0.81 0.95 0.8) `shouldBe` [True, False]
    marked (busy 0.8 0.96 0.8) `shouldBe` [True, False]
    marked (free (busy 0.8 0.96 0.8)) `shouldBe` [False, False]
    marked (busy 0.8 0.95 0.81) `shouldBe` [False, True]
  it "reads raw results that are older than some of what they now have" $ do
    let old = "{\"requests\":9,\"wrong\":0,\"offered\":5,\"p50\":1,\"p90\":2,\"p99\":3,\"p99_9\":4,\"highest\":5}"
    eitherDecodeStrict old `shouldBe` Right (LoadResult 9 0 5 1 2 Nothing 3 4 5 Nothing Nothing Nothing Nothing)
  it "asks a study, which has no C#, for no goals" $ do
    goals [measured "haskell" [] 1, measured "haskell-scotty" [] 1] `shouldBe` 0
    goals [measured "haskell" [] 1, measured "haskell-scotty" [] 1, measured "dotnet-1.2.6" [] 1] `shouldSatisfy` (> 0)
  it "misses the goals for want of C#" $
    goals [measured "haskell" [] 1, measured "haskell-naive" [] 1] `shouldSatisfy` (> 0)
  it "has no ratio to C# that was not warmed up until it is flat, and says so" $ do
    let warmed seconds name = (measured name [] 1) {facts = Map.singleton "warm-up" seconds}
        beside seconds = Text.unpack (markdownReport mempty [warmed "5" "haskell", warmed seconds "dotnet-1.2.6"])
    beside "9" `shouldContain` "Short form: no ratio."
    beside "9" `shouldContain` "dotnet-1.2.6 had fewer"
    beside "9" `shouldNotContain` "requests/s beside ASP.NET"
    beside "10" `shouldNotContain` "Short form"
    beside "10" `shouldContain` "| 1.00 | ≥ 1.30 | GET list, 100 connections, a core each: requests/s beside ASP.NET"
  it "has a page with goals, tables and charts, which asks for nothing from elsewhere" $ do
    let text = Lazy.unpack (htmlReport (Map.singleton "machine" "a <processor>") [measured "haskell" [] 1, measured "dotnet-1.2.6" [] 1] [])
    mapM_ (text `shouldContain`) ["<svg", "MISSED", "<td>haskell</td>", "a &lt;processor&gt;"]
    mapM_ (text `shouldNotContain`) ["<script", "src=", "a <processor>"]
  it "has the ratios again as soon as no row in C# is cold" $
    goals [(measured "haskell" [] 1) {facts = Map.singleton "warm-up" "4"}, measured "dotnet-1.2.6" [] 1] `shouldSatisfy` (> 0)
  where
    goals results = length (filter ("| **missed** |" `Text.isPrefixOf`) (Text.lines (markdownReport mempty results)))
    line name results = filter (("| " <> name <> " |") `Text.isPrefixOf`) (Text.lines (markdownReport mempty results))

-- | The result of an open loop.
responses :: LoadResult
responses =
  LoadResult
    { requests = 1000,
      wrong = 0,
      offered = 100,
      p50 = 11,
      p90 = 12,
      p95 = Just 13,
      p99 = 14,
      p99_9 = 15,
      highest = 16,
      statuses = Just (Map.fromList [("200", 900), ("404", 100)]),
      kept = Just 0.99,
      sentLate = Just 7,
      senderBusy = Just 0.4
    }

-- | A measurement of lists with these problems; the number is that of the round.
measured :: Text -> [Text] -> Int -> Result
measured name problems' number =
  Result
    { cell = Cell {topology = Standalone, layout = Pinned, scenario = Listing, connections = 100, row = name, iteration = number},
      outcome =
        Outcome
          { requestsPerSecond = 1000,
            cpuPerRequest = 10,
            serviceBusy = 1,
            generatorBusy = 0.5,
            coresBusy = [0.6, 1],
            closedLoopP50 = 100,
            closedLoopP99 = 200,
            served = 4000,
            statusErrors = 0,
            hitRatio = Nothing,
            memory = 1048576,
            warmRate = Just 990,
            openLoop = Nothing,
            problems = problems'
          },
      facts = mempty
    }
