-- | The cells of a run, and their order.
module PlanSpec (spec) where

import Compare.Cell
import Compare.Load (Scenario (..))
import Compare.OpenLoop (generatorLimit, rateFor)
import Compare.Plan
import Compare.Rows (Row (..), rowsOf)
import Data.List (nub, sort)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Redis.TestKit.Wait (within)
import ReportSpec (measured)
import Test.Hspec

spec :: Spec
spec = around_ (within 10) . describe "plan" $ do
  it "has response times for every scenario and number of connections that has a goal" $
    [(groupScenario group, groupConnections group) | group <- goalGroups rows, not (groupOpenLoop group)] `shouldBe` []

  it "measures the naive design in turns with the others, in every round" $ do
    let turns = [map (rowName . fst) (cellsOf 2 group) | group <- goalGroups rows, groupTopology group == Standalone, groupLayout group == Pinned, groupScenario group == Single, groupConnections group == 100]
        once = ["haskell", "dotnet-1", "dotnet-2", "haskell-naive", "dotnet-1-naive"]
    turns `shouldBe` [once <> reverse once]

  it "has each measurement once" $ do
    let cells' = concatMap (map snd . cellsOf 3) (goalGroups rows)
    length (nub cells') `shouldBe` length cells'

  it "adds nothing to results of the same group that were measured in another way" $ do
    let cells' = [(one, row', this) | one <- take 1 (goalGroups rows), (row', this) <- cellsOf 2 one]
        made seconds warmUp =
          [ (measured "haskell" [] 1) {cell = this, facts = Map.fromList [("seconds", seconds), ("warm-up", warmUp)]}
            | (_, _, this) <- take 1 cells'
          ]
        elsewhere result = result {cell = (cell result) {connections = 7}}
    unlike 4 cells' (made "4" "12") `shouldBe` []
    unlike 4 cells' (made "2" "5") `shouldBe` ["seconds 2, now 4", "warm-up 5, now 12"]
    unlike 4 cells' (map elsewhere (made "2" "5")) `shouldBe` []
    -- Older raw results do not say it.
    unlike 4 cells' [result {facts = mempty} | result <- made "2" "5"] `shouldBe` []

  it "studies reading, writing and both, on one processor and on two" $
    sort (nub [(groupLayout group, groupScenario group) | group <- studyGroups rows])
      `shouldBe` [(layout', scenario') | layout' <- [Pinned, Free], scenario' <- [minBound .. maxBound]]

  it "studies each setting of the runtime that the original tried, where it means something" $ do
    studied Pinned `shouldContainAll` ["haskell", "haskell-rts-default", "haskell-rts-I0", "haskell-rts-H512m", "haskell-rts-A64m-n4m", "haskell-rts-nonmoving"]
    studied Free `shouldContainAll` ["haskell", "haskell-rts-N1", "haskell-rts-qg", "haskell-rts-qb", "haskell-rts-A128m-n8m-H1g-qb"]
    filter (`elem` studied Pinned) (filter (/= "haskell") (studied Free)) `shouldBe` []

  it "sets the rate by the slower of those that are compared, at half of what it reached" $
    map (rateFor [9000, 4000]) [9000, 4000] `shouldBe` [Just 2000, Just 2000]

  it "sets no rate that the generator cannot keep" $
    rateFor [90000, 80000] 90000 `shouldBe` Just generatorLimit

  it "asks no row for a rate that it can hardly keep, and lets none lower it" $
    map (rateFor [9000, 4000]) [3000, 2999, 100] `shouldBe` [Just 2000, Nothing, Nothing]
  where
    rows = rowsOf "haskell" [("dotnet-1", "one"), ("dotnet-2", "two")] 12
    studied :: Layout -> [Text]
    studied layout' = nub [rowName row' | group <- studyGroups rows, groupLayout group == layout', row' <- groupRows group]
    shouldContainAll names = mapM_ (\name -> names `shouldSatisfy` (name `elem`) . map Text.strip)
