module Compare.GoalsSpec (spec) where

import Compare.Cell
import Compare.Document
import Compare.Goals
import Compare.Sample
import Data.Text qualified as Text
import Fixture
import Test.Hspec

spec :: Spec
spec = describe "goals" $ do
  let cell = cellOf Wait 16
      rows = [row "redis-client" False, row "StackExchange.Redis 1.2.6" False, row "other" False, row "hiredis" True, row "hiredis async" True]
      -- The throughputs at this cell: ours, StackExchange.Redis, and the other one; hiredis has
      -- 1000, and needs 900 ns.
      runAt at ours theirs other =
        documentOf rows $
          concat
            [ [ sample "redis-client" at iteration ours 900,
                sample "StackExchange.Redis 1.2.6" at iteration theirs 3000,
                sample "other" at iteration other 2000,
                sample "hiredis" at iteration 1000 900,
                sample "hiredis async" at iteration 990 950
              ]
              | iteration <- [0 .. 4]
            ]
      run = runAt cell
      reached document = map isReached (judge [cell] document)
      full = fmap isFull . (`filling` cell)
      costing one nanos document =
        document {documentSamples = [if sampleRow found == one then found {sampleServerCpuPerOp = Just nanos} else found | found <- documentSamples document]}
  it "where the server has room are reached by twice StackExchange.Redis" $ do
    reached (run 200 100 300) `shouldBe` [True]
    reached (run 199 100 100) `shouldBe` [False]
  it "where it is full are reached by being first of all but C, and by being as fast and as cheap as C, nearly" $ do
    reached (run 950 600 900) `shouldBe` [True, True, True]
    reached (run 950 600 951) `shouldBe` [False, True, True]
    reached (run 950 951 600) `shouldBe` [False, True, True]
    reached (run 949 600 900) `shouldBe` [True, False, True]
    let dearer = (run 950 600 900) {documentSamples = [if sampleRow one == "redis-client" then one {sampleCpuPerOp = 901} else one | one <- documentSamples (run 950 600 900)]}
    reached dearer `shouldBe` [True, True, False]
  it "in a cluster are reached by being first of all but C, however full its servers are" $ do
    let there = cell {cellPlace = Cluster}
        reachedThere = map isReached . judge [there]
    reachedThere (runAt there 300 100 299) `shouldBe` [True]
    reachedThere (runAt there 300 100 301) `shouldBe` [False]
    reachedThere (runAt there 700 600 650) `shouldBe` [True]
    reachedThere (runAt there 700 701 650) `shouldBe` [False]
  it "take a server for full where twice StackExchange.Redis is more than any row has in the median" $ do
    full (run 400 500 100) `shouldBe` Just False
    full (run 400 501 100) `shouldBe` Just True
    -- One good run on a noisy machine does not change the median.
    let once = run 400 501 100
    full once {documentSamples = sample "hiredis" cell 5 5000 900 : documentSamples once} `shouldBe` Just True
  it "take it for full where that is more than the cheapest command leaves it time for" $ do
    -- A command of 800 us leaves time for 1250 in a second.
    full (costing "other" 800000 (run 400 625 100)) `shouldBe` Just False
    full (costing "other" 800000 (run 400 626 100)) `shouldBe` Just True
    -- A more expensive command does not matter: hiredis had 1000.
    full (costing "other" 2000000 (run 400 500 100)) `shouldBe` Just False
  it "know what a server can do from all cells that ask for the same" $ do
    let few = run 100 60 50
        alone = few {documentSamples = filter ((`notElem` ["hiredis", "hiredis async"]) . sampleRow) (documentSamples few)}
        beside at = alone {documentSamples = documentSamples alone <> [sample "hiredis" at 0 1000 900]}
    full alone `shouldBe` Just True
    full (beside (cellOf Wait 256)) `shouldBe` Just False
    full (beside (cellOf Wait 256) {cellValueSize = 16}) `shouldBe` Just True
    full (beside (cellOf Wait 256) {cellOperation = GetMiss}) `shouldBe` Just True
    full (beside (cellOf Wait 256) {cellPlace = StandaloneFree}) `shouldBe` Just True
  it "are set against the rival that was best in the same iteration, not in the median" $ do
    let there = cell {cellPlace = Cluster}
        turn iteration ours theirs other =
          [sample "redis-client" there iteration ours 900, sample "StackExchange.Redis 1.2.6" there iteration theirs 900, sample "other" there iteration other 900]
        -- By medians ours has 100, and the better rival 90.
        changing = documentOf rows (turn 0 100 120 60 <> turn 1 100 90 125 <> turn 2 150 80 70)
    map goalVerdict (judge [there] changing)
      `shouldBe` [Missed Ratio {ratioMedian = 100 / 120, ratioLeast = 0.8, ratioMost = 1.875, ratioOurs = 100, ratioRival = ("StackExchange.Redis 1.2.6", 90)}]
    -- By medians ours takes 900, as much as the better hiredis.
    let costly = (run 950 600 900) {documentSamples = map dear (documentSamples (run 950 600 900))}
        dear one
          | sampleRow one == "hiredis", sampleIteration one < 2 = one {sampleCpuPerOp = 600}
          | sampleRow one == "hiredis async", sampleIteration one == 2 = one {sampleCpuPerOp = 750}
          | otherwise = one
    map (isReached . last) [judge [cell] (run 950 600 900), judge [cell] costly] `shouldBe` [True, False]
  it "are judged only where something was to be measured" $ do
    judge [cellOf Wait 3] (run 200 100 150) `shouldBe` []
    length (judge [cellOf Batch 1024] (run 200 100 150)) `shouldBe` 1
  it "are not reached by a row that was wrong once" $ do
    let spoilt document = document {documentSamples = (sample "redis-client" cell 5 500 1000) {sampleProblems = ["1 replies were wrong"]} : documentSamples document}
    reached (spoilt (run 500 100 100)) `shouldBe` [False]
    reached (spoilt (run 950 600 100)) `shouldBe` [False, False, False]
    map goalLine (judge [cell] (spoilt (run 950 600 100))) `shouldSatisfy` all ("NO RATIO" `Text.isPrefixOf`)
  it "are not reached where nobody ran StackExchange.Redis, which decides what they are" $ do
    let without document = document {documentSamples = filter ((/= "StackExchange.Redis 1.2.6") . sampleRow) (documentSamples document)}
    full (without (run 950 600 100)) `shouldBe` Nothing
    reached (without (run 950 600 100)) `shouldBe` [False]
    map goalLine (judge [cell] (without (run 950 600 100))) `shouldSatisfy` all ("NO RATIO" `Text.isPrefixOf`)
  it "say in a line what was demanded, what there was, and how full the server is" $ do
    let line thousandfold = map goalLine . take 1 . judge [cell] $ thousandfold {documentSamples = [one {sampleOpsPerSecond = 1000 * sampleOpsPerSecond one} | one <- documentSamples thousandfold]}
    line (run 150 100 120)
      `shouldBe` [ "MISSED   standalone, GET hit 512 B, 16 waiting: 1.50 x the throughput of the best StackExchange.Redis "
                     <> "(must be at least 2.00; single runs 1.50..1.50; medians 150.0 k/s against 100.0 k/s of StackExchange.Redis 1.2.6; "
                     <> "the server has room: its core does about 1000.0 k/s, by what hiredis had)"
                 ]
    line (costing "other" 800 (run 950 700 900))
      `shouldBe` [ "reached  standalone, GET hit 512 B, 16 waiting: 1.06 x the throughput of the best of all others but C "
                     <> "(must be at least 1.00; single runs 1.06..1.06; medians 950.0 k/s against 900.0 k/s of other; "
                     <> "the server is full: twice StackExchange.Redis would be 1400.0 k/s, its core does about 1250.0 k/s, by what a command of other costs it)"
                 ]
