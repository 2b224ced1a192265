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
      rows = [row "redis-client" False, row "StackExchange.Redis 1.2.6" False, row "other" False, row "hiredis" True]
      run ours theirs other =
        documentOf rows $
          concat
            [ [ sample "redis-client" cell iteration ours 1000,
                sample "StackExchange.Redis 1.2.6" cell iteration theirs 3000,
                sample "other" cell iteration other 2000,
                sample "hiredis" cell iteration 1000000 500
              ]
              | iteration <- [0 .. 4]
            ]
      reached document = map isReached (judge [cell] document)
  it "are reached by twice the speed, and by being first" $ do
    reached (run 200 100 150) `shouldBe` [True, True]
    reached (run 199 100 150) `shouldBe` [False, True]
    reached (run 300 100 301) `shouldBe` [True, False]
  it "are judged only where something was to be measured" $ do
    judge [cellOf Wait 3] (run 200 100 150) `shouldBe` []
    length (judge [cellOf Batch 1024] (run 200 100 150)) `shouldBe` 3
  it "are not reached by a row that was wrong once" $ do
    let document = run 500 100 100
        spoilt = document {documentSamples = (sample "redis-client" cell 5 500 1000) {sampleProblems = ["1 replies were wrong"]} : documentSamples document}
    reached spoilt `shouldBe` [False, False]
    map goalLine (judge [cell] spoilt) `shouldSatisfy` all ("NO RATIO" `Text.isPrefixOf`)
  it "of processor time are reached by needing less" $ do
    let batches = cellOf Batch 1024
        used ours =
          documentOf
            rows
            [ sample "redis-client" batches 0 1000 ours,
              sample "StackExchange.Redis 1.2.6" batches 0 500 2000,
              sample "hiredis" batches 0 1000 1000,
              sample "redis-benchmark" batches 0 1100 300
            ]
    map isReached (judge [batches] (used 1100)) `shouldBe` [True, True, True]
    map isReached (judge [batches] (used 1201)) `shouldBe` [True, False, False]
  it "say what the servers' core can do, where it is less than a missed goal asks for" $ do
    let costing nanos rate document =
          document
            { documentSamples =
                [ if sampleRow one == "hiredis"
                    then one {sampleServerCpuPerOp = Just nanos, sampleOpsPerSecond = rate}
                    else one {sampleServerCpuPerOp = Just (2 * nanos)}
                  | one <- documentSamples document
                ]
            }
        -- With one run that had more than all others.
        once rate document =
          document {documentSamples = (sample "other" cell 5 rate 2000) {sampleServerCpuPerOp = Just 20000} : documentSamples document}
        ceilings = map (fmap (\found -> (ceilingBasis found, ceilingRow found)) . goalCeiling) . judge [cell]
        missed = run 150000 100000 120000
        ending = take 1 . map (snd . Text.breakOn "; needed" . goalLine) . judge [cell]
    -- Twice 100 k/s were needed; a command of 5.1 us leaves 196 k/s, one of 5 us 200.
    ceilings (costing 5100 150000 missed) `shouldBe` [Just (LeastCost, "hiredis"), Nothing]
    ceilings (costing 5000 150000 missed) `shouldBe` [Nothing, Nothing]
    -- What a single run had can be done, whatever it is said to cost.
    ceilings (once 200000 (costing 5100 150000 missed)) `shouldBe` [Nothing, Nothing]
    ceilings (once 199000 (costing 5100 150000 missed)) `shouldBe` [Just (BestRun, "other"), Nothing]
    ceilings (once 196000 (costing 5100 150000 missed)) `shouldBe` [Just (LeastCost, "hiredis"), Nothing]
    ceilings (costing 5100 150000 (run 200000 100000 120000)) `shouldBe` [Nothing, Nothing]
    ceilings missed `shouldBe` [Nothing, Nothing]
    ending (costing 5100 150000 missed)
      `shouldBe` ["; needed are 200.0 k/s, and the servers' core, at what a command of hiredis costs it in the median, does about 196.1 k/s)"]
    ending (once 199000 (costing 5100 150000 missed))
      `shouldBe` ["; needed are 200.0 k/s, and the best single run of all rows, of other, had 199.0 k/s)"]
    ending (costing 5000 150000 missed) `shouldBe` [""]
  it "say in a line what was demanded and what there was" $
    map goalLine (take 1 (judge [cell] (run 150000 100000 120000)))
      `shouldBe` [ "MISSED   standalone, GET hit 512 B, 16 waiting: 1.50 x the throughput of the best StackExchange.Redis (1.2.6) "
                     <> "(must be at least 2.00; single runs 1.50..1.50; 150.0 k/s against 100.0 k/s)"
                 ]
