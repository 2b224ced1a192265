module Compare.MeasureSpec (spec) where

import Compare.Cell
import Compare.Measure
import Compare.Plan
import Compare.Row
import Compare.Workload
import Control.Monad (when)
import Data.IORef (modifyIORef', newIORef, readIORef)
import Data.List (isPrefixOf, sort)
import Fixture (cellOf, row)
import Test.Hspec
import Test.QuickCheck

spec :: Spec
spec = do
  describe "the order of rows" $ do
    it "leaves nobody out" $
      property $ \(NonNegative iteration) rows -> sort (turns iteration rows) === sort (rows :: [Int])
    it "goes backwards every second time" $ do
      map (`turns` "abc") [0 .. 3] `shouldBe` ["abc", "bac", "cab", "acb"]
      map (`turns` "abcd") [0 .. 3] `shouldBe` ["abcd", "badc", "cdab", "dcba"]
    it "has each first once in as many iterations as there are rows, be they odd or even" $
      property $ \rows ->
        let numbers = [0 .. length (rows :: [()]) - 1]
         in map (take 1 . (`turns` numbers)) numbers === map pure numbers
  describe "servers" $
    it "are shared by cells that differ in operation and load only" $ do
      let one = cellOf Wait 1
          other = (cellOf Batch 64) {cellOperation = Set}
          larger = one {cellValueSize = 4096}
          everybody cell = Planned {plannedCell = cell, plannedNames = []}
      groups (map everybody [one, larger, other]) `shouldBe` map (map everybody) [[one, other], [larger]]
  describe "all measurements" $
    it "are passed on after each iteration, so that an interrupted run keeps them" $ do
      passed <- newIORef (0 :: Int)
      let interrupt heading = when ("iteration 2," `isPrefixOf` heading) (ioError (userError "interrupted"))
      measure
        interrupt
        (\_ _ -> modifyIORef' passed (+ 1))
        Measurement
          { measurementRows = [],
            measurementCells = [Planned {plannedCell = cellOf Wait 1, plannedNames = []}],
            measurementWindow = Window 1 1,
            measurementIterations = [0 .. 2],
            measurementReference = False
          }
        `shouldThrow` (== userError "interrupted")
      readIORef passed `shouldReturn` 2
  describe "a client" $
    it "has a core of its own, or shares two with the server where both are free" $ do
      let command place = pinned True (cellOf Wait 1) {cellPlace = place} ["peer"]
      map command [Standalone, Cluster] `shouldBe` replicate 2 ["taskset", "-c", "1", "peer"]
      command StandaloneFree `shouldBe` ["taskset", "-c", "0,1", "peer"]
      map serverCores [Standalone, Cluster, StandaloneFree] `shouldBe` [[0], [0], [0, 1]]
      pinned False (cellOf Wait 1) ["peer"] `shouldBe` ["peer"]
  describe "who is measured" $ do
    let cell = cellOf Wait 1
        rows = map (`row` False) ["redis-client", "StackExchange.Redis 1.2.6", "node-redis"]
        measured names = map rowName (plannedRows rows Planned {plannedCell = cell, plannedNames = names})
    it "is everybody, or those that a file names" $ do
      length (measured []) `shouldBe` 3
      measured ["StackExchange.Redis", "redis-client"] `shouldBe` ["redis-client", "StackExchange.Redis 1.2.6"]
    it "is everybody whom one of several files names" $ do
      map plannedNames (together [Planned cell ["a"], Planned cell ["b", "a"]]) `shouldBe` [["a", "b"]]
      together [Planned cell ["a"], Planned cell []] `shouldBe` [Planned cell []]
  describe "the time" $ do
    let rows = [row "redis-client" False, (row "slow" False) {rowWarmup = 3}]
        window = Window {windowWarmup = 0.5, windowDuration = 1}
        planned = [Planned {plannedCell = cellOf Wait 1, plannedNames = []}]
        near found = abs (found - 14.2) < (1e-9 :: Double)
    it "is that of all runs, with the warm-up that each needs" $
      estimate (const False) window rows 2 planned `shouldSatisfy` near
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
                workloadRows = [],
                workloadCommon = defaultCommon
              }
      length (gridCells grid) `shouldBe` 12
