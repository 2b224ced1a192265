module Lab.DifferentialSpec (spec) where

import Data.List (isInfixOf)
import Lab.Differential (differentialReport)
import Lab.Differential.Served
import Lab.Differential.Table
import Lab.Options.Differential (DifferentialOptions (..))
import Test.Hspec

-- | Three runs at about this rate, while the server was this busy.
runs :: Double -> Double -> [Found]
runs rate busy = [Found {foundRate = rate * factor, foundBusy = busy, foundServed = Nothing, foundProblems = []} | factor <- [0.9, 1, 1.1]]

spec :: Spec
spec = describe "Lab.Differential" $ do
  it "judges the rates where the server is the bottleneck for both" $ do
    let verdict ours = rowVerdict (rowOf ByEachOther "get" (runs ours 0.95) (runs 1000 0.93))
    map verdict [849, 851, 1000, 1149, 1151] `shouldBe` [Differs, Agrees, Agrees, Agrees, Differs]

  it "judges nothing where a generator is, and says which" $ do
    let verdict busyOurs busyTheirs = rowVerdict (rowOf ByEachOther "get" (runs 500 busyOurs) (runs 1000 busyTheirs))
    verdict 0.89 0.95 `shouldBe` NotJudged "this generator"
    verdict 0.95 0.89 `shouldBe` NotJudged "redis-benchmark"
    verdict 0.5 0.5 `shouldBe` NotJudged "both generators"
    verdict 0.9 0.9 `shouldBe` Differs

  it "believes no run that is not valid, and none that is missing" $ do
    let wrong = Found {foundRate = 1000, foundBusy = 1, foundServed = Nothing, foundProblems = ["it lied"]}
    rowVerdict (rowOf ByEachOther "get" [wrong] (runs 1000 1)) `shouldBe` Unsound
    rowProblems (rowOf ByEachOther "get" [wrong, wrong] (runs 1000 1)) `shouldBe` ["it lied"]
    rowVerdict (rowOf ByEachOther "get" [] (runs 1000 1)) `shouldBe` Unsound

  it "takes no account of a run's begin and end" $ do
    underLoad [0, 0, 0.1, 0.92, 0.94, 0.96, 0.02, 0] `shouldBe` 0.94
    underLoad [] `shouldBe` 0

  it "goes by medians, and shows the spread of the iterations" $ do
    let found = rowOf ByEachOther "get" [Found rate 1 Nothing [] | rate <- [100, 1000, 5000]] [Found 1000 1 Nothing [] | _ <- [1 :: Int .. 3]]
    (rowRatio found, rowSpread found, rowVerdict found) `shouldBe` (1, (0.1, 5), Agrees)

  it "names each row that disagrees" $ do
    let options = DifferentialOptions ["get", "set"] 16 64 1000 64 2 3 ByEachOther Nothing
        text = differentialReport "redis 7" options [rowOf ByEachOther "get" (runs 500 1) (runs 1000 1), rowOf ByEachOther "set" (runs 1000 1) (runs 1000 1)]
    filter ("DIFFERS by" `isInfixOf`) text `shouldBe` ["get: DIFFERS by 50 %"]

  describe "by the server's count" $ do
    let counted rate served = Found {foundRate = rate, foundBusy = 0.5, foundServed = served, foundProblems = []}
        verdict judged ours theirs = rowVerdict (rowOf judged "get" [counted ours (Just (900, 1100))] [counted theirs (Just (900, 1100))])
        looks = [Look {lookAsked = at, lookTold = at + 10, lookCalls = calls} | (at, calls) <- [(0, 0), (100, 50), (200, 150), (300, 250), (400, 300), (500, 300)]]

    it "finds a figure that is wrong by a factor or a count, whoever says it" $ do
      verdict ByTheServer 1000 1000 `shouldBe` Counted
      verdict ByTheServer 2000 1000 `shouldBe` Miscounts "this generator"
      verdict ByTheServer 500 1000 `shouldBe` Miscounts "this generator"
      verdict ByTheServer 1000 2000 `shouldBe` Miscounts "redis-benchmark"
      verdict ByEachOther 2000 1000 `shouldBe` Miscounts "this generator"

    it "forgives what clocks and windows differ by, and holds neither against the other" $ do
      map (verdict ByTheServer 1000) [856, 860, 1150, 1154] `shouldBe` replicate 4 Counted
      map (verdict ByTheServer 1000) [850, 1160] `shouldBe` replicate 2 (Miscounts "redis-benchmark")

    it "judges nothing if the server was not asked in time" $
      rowVerdict (rowOf ByTheServer "get" [counted 1000 Nothing] [counted 1000 Nothing]) `shouldBe` Unwatched

    it "bounds what ran in a window by the questions around and inside it" $ do
      inWindow (110, 410) looks `shouldBe` Just (150, 250)
      inWindow (105, 400) looks `shouldBe` Just (100, 300)
      inWindow (0, 400) looks `shouldBe` Nothing
      inWindow (110, 501) looks `shouldBe` Nothing
      -- There is no question inside the window, so only the upper bound is certain.
      inWindow (120, 180) looks `shouldBe` Just (0, 100)

    it "bounds how long the last of them took" $ do
      ofLast 200 looks `shouldBe` Just (90, 310)
      ofLast 300 looks `shouldBe` Just (190, 410)
      ofLast 301 looks `shouldBe` Nothing

    it "names who says what was not counted" $ do
      let options = DifferentialOptions ["get"] 16 64 1000 64 2 1 ByTheServer Nothing
          text = differentialReport "redis 7" options [rowOf ByTheServer "get" [counted 2000 (Just (900, 1100))] [counted 1000 (Just (900, 1100))]]
      filter ("did not count" `isInfixOf`) text `shouldBe` ["get: this generator says what the server did not count"]
