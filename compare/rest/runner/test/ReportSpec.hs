-- | What reports must not leave out.
module ReportSpec (spec, measured) where

import Compare.Cell
import Compare.Load (Scenario (..))
import Compare.Report (markdownReport)
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
  it "asks a study, which has no C#, for no goals" $ do
    goals [measured "haskell" [] 1, measured "haskell-scotty" [] 1] `shouldBe` 0
    goals [measured "haskell" [] 1, measured "haskell-scotty" [] 1, measured "dotnet-1.2.6" [] 1] `shouldSatisfy` (> 0)
  it "misses the goals for want of C#" $
    goals [measured "haskell" [] 1, measured "haskell-naive" [] 1] `shouldSatisfy` (> 0)
  where
    goals results = length (filter ("| **missed** |" `Text.isPrefixOf`) (Text.lines (markdownReport mempty results)))
    line name results = filter (("| " <> name <> " |") `Text.isPrefixOf`) (Text.lines (markdownReport mempty results))

-- | A measurement of lists with these problems; the number is the round's.
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
