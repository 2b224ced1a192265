module Tool.Bench.DifferentialSpec (spec) where

import Data.List (isInfixOf)
import Test.Hspec
import Tool.Bench.Differential (differentialReport)
import Tool.Bench.Differential.Table
import Tool.Options.Differential (DifferentialOptions (..))

-- | Three runs that found this much while the server was so busy.
runs :: Double -> Double -> [Found]
runs rate busy = [Found {foundRate = rate * factor, foundBusy = busy, foundProblems = []} | factor <- [0.9, 1, 1.1]]

spec :: Spec
spec = describe "Tool.Bench.Differential" $ do
  it "judges the rates where the server is the bottleneck for both" $ do
    let verdict ours = rowVerdict (rowOf "get" (runs ours 0.95) (runs 1000 0.93))
    map verdict [849, 851, 1000, 1149, 1151] `shouldBe` [Differs, Agrees, Agrees, Agrees, Differs]

  it "judges nothing where a generator is, and says which" $ do
    let verdict busyOurs busyTheirs = rowVerdict (rowOf "get" (runs 500 busyOurs) (runs 1000 busyTheirs))
    verdict 0.89 0.95 `shouldBe` NotJudged "this generator"
    verdict 0.95 0.89 `shouldBe` NotJudged "redis-benchmark"
    verdict 0.5 0.5 `shouldBe` NotJudged "both generators"
    verdict 0.9 0.9 `shouldBe` Differs

  it "believes no run that is not valid, and none that is missing" $ do
    let wrong = Found {foundRate = 1000, foundBusy = 1, foundProblems = ["it lied"]}
    rowVerdict (rowOf "get" [wrong] (runs 1000 1)) `shouldBe` Unsound
    rowProblems (rowOf "get" [wrong, wrong] (runs 1000 1)) `shouldBe` ["it lied"]
    rowVerdict (rowOf "get" [] (runs 1000 1)) `shouldBe` Unsound

  it "takes no account of a run's begin and end" $ do
    underLoad [0, 0, 0.1, 0.92, 0.94, 0.96, 0.02, 0] `shouldBe` 0.94
    underLoad [] `shouldBe` 0

  it "goes by medians, and shows the spread of the iterations" $ do
    let found = rowOf "get" [Found rate 1 [] | rate <- [100, 1000, 5000]] [Found 1000 1 [] | _ <- [1 :: Int .. 3]]
    (rowRatio found, rowSpread found, rowVerdict found) `shouldBe` (1, (0.1, 5), Agrees)

  it "names each row that disagrees" $ do
    let options = DifferentialOptions ["get", "set"] 16 64 1000 64 2 3 Nothing
        text = differentialReport "redis 7" options [rowOf "get" (runs 500 1) (runs 1000 1), rowOf "set" (runs 1000 1) (runs 1000 1)]
    filter ("DIFFERS by" `isInfixOf`) text `shouldBe` ["get: DIFFERS by 50 %"]
