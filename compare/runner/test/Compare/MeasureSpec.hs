module Compare.MeasureSpec (spec) where

import Compare.Cell
import Compare.Measure
import Compare.Statistics
import Compare.Workload
import Data.List (sort)
import Fixture (cellOf)
import Test.Hspec
import Test.QuickCheck

spec :: Spec
spec = do
  describe "the order of rows" $ do
    it "leaves nobody out" $
      property $ \(NonNegative iteration) rows -> sort (turns iteration rows) === sort (rows :: [Int])
    it "lets each be first, and goes backwards every second time" $ do
      map (`turns` "abc") [0 .. 3] `shouldBe` ["abc", "acb", "cab", "cba"]
      sort (map (take 1 . (`turns` ("abcde" :: String))) [0 .. 9]) `shouldSatisfy` \firsts -> all (`elem` firsts) ["a", "b", "c", "d", "e"]
  describe "servers" $
    it "are shared by cells that differ in operation and load only" $ do
      let one = cellOf Wait 1
          other = (cellOf Batch 64) {cellOperation = Set}
          larger = one {cellValueSize = 4096}
      groups [one, larger, other] `shouldBe` [[one, other], [larger]]
  describe "a workload" $
    it "is a grid" $ do
      let grid =
            Workload
              { workloadWhy = "",
                workloadPlaces = [Standalone, Cluster],
                workloadOperations = [GetHit, Set],
                workloadValueSizes = [16],
                workloadWaiting = [1, 16],
                workloadBatches = [1024],
                workloadCommon = defaultCommon
              }
      length (gridCells grid) `shouldBe` 12
  describe "statistics" $ do
    it "know the middle and the spread" $ do
      median [3, 1, 2] `shouldBe` 2
      median [4, 1, 2, 3] `shouldBe` 2.5
      median [] `shouldBe` 0
      deviation [2, 4, 4, 4, 5, 5, 7, 9] `shouldSatisfy` \found -> abs (found - 2.138) < 0.001
    it "give no confidence to a single run" $ do
      confidence95 [1] `shouldBe` Nothing
      confidence95 [10, 12] `shouldSatisfy` maybe False (\found -> abs (found - 12.706) < 0.001)
