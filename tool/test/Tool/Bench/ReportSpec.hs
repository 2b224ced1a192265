module Tool.Bench.ReportSpec (spec) where

import Data.List (isInfixOf)
import Data.Map.Strict qualified as Map
import Every (every)
import Sample
import Test.Hspec
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Document.Totals (findProblems, judged)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Report
import Tool.Text qualified as Text

spec :: Spec
spec = describe "Tool.Bench.Report" $ do
  it "renders a run as one row" $
    case report [sample] of
      _ : _ : row : _ ->
        words row
          `shouldBe` words "cluster mixed 500 500 us 950 us 990 us 999 us 1.00 ms 800 0 100% 0 0.41 1 000 0.21 0.50x"
      other -> expectationFailure (show other)

  it "keeps all columns apart and lines short enough for a wide terminal" $
    report [sample] `shouldSatisfy` every ((< 160) . length)

  it "marks figures of a generator that used up its cores, whether or not that was allowed, and says of which run" $ do
    let used share = sample {runIterations = [sampleIteration {iterationTrust = noTrust {trustCpuShare = Just share}}]}
        marked = filter ("*" `isInfixOf`) . report
    marked [used 0.79, used 0.8] `shouldBe` []
    map (take 3 . words) (marked [used 0.97]) `shouldBe` [["cluster", "mixed", "500"], ["*:", "cluster", "mixed:"]]
    concat (marked [used 0.97]) `shouldSatisfy` ("the generator used 97.00% of its cores" `isInfixOf`)

  it "says the most that the generator used in any window" $ do
    let used shares = sample {runIterations = [sampleIteration {iterationTrust = noTrust {trustCpuShare = Just share}} | share <- shares]}
    details (used [0.5, 0.7, 0.6]) `shouldSatisfy` any ("the generator used up to 70.00% of its cores" `isInfixOf`)
    details (used [0.5]) `shouldSatisfy` any ("the generator used 50.00% of its cores" `isInfixOf`)

  it "says why a run is invalid" $ do
    let missed = CommandStats 0 1 Map.empty (Histogram.fromValues [1]) Nothing
        broken =
          judged
            sample
              { runIterations =
                  [ sampleIteration
                      { iterationErrors = Map.fromList [("ClosedByPeer", 3)],
                        iterationCommands = Map.fromList [("get", missed)],
                        iterationAgreement = reversedAgreement
                      }
                  ]
              }
    length (filter ("INVALID" `isInfixOf`) (report [broken])) `shouldBe` 3
    findProblems sample `shouldBe` []
    findProblems sample {runIterations = []} `shouldBe` ["nothing was answered while the clock ran"]

  it "forgives misses by command: of what is taken and of the user's own, not of preloaded keys" $ do
    let missing axes names =
          findProblems
            sample
              { runSpec = sampleSpec {specAxes = Map.fromList axes},
                runIterations = [sampleIteration {iterationCommands = Map.fromList [(name, CommandStats 0 1 Map.empty (Histogram.fromValues [1]) Nothing) | name <- names]}]
              }
        one = ["1 GETs missed, though every key was preloaded"]
    missing [] ["get", "HGET h f", "lpop"] `shouldBe` one
    missing [("hit_ratio", "0")] ["get", "mget"] `shouldBe` one
    missing [] ["lrange_100", "spop"] `shouldBe` one
    missing [] ["get __key__", "GET foo:__rand_int__"] `shouldBe` one
    missing [] ["lrange_100", "lpop", "zpopmin", "HGET h f"] `shouldBe` []
    missing [("misses", "keys expire")] ["get"] `shouldBe` []

  it "holds the share of GETs that find something against what was asked for, whatever other reads found" $ do
    let reads' found =
          sample
            { runSpec = sampleSpec {specAxes = Map.fromList [("hit_ratio", "0.5")]},
              runIterations =
                [ sampleIteration
                    { iterationCommands =
                        Map.fromList
                          [ ("get", CommandStats found (800 - found) Map.empty (Histogram.fromValues [1 .. 800]) Nothing),
                            ("mget", CommandStats 800 0 Map.empty (Histogram.fromValues [1 .. 800]) Nothing)
                          ]
                    }
                ]
            }
    findProblems (reads' 400) `shouldBe` []
    findProblems (reads' 200) `shouldBe` ["a share of 0.250 of the GETs found something, not 0.5"]

  it "says what failed, by class and by node" $ do
    let failing =
          sample
            { runIterations =
                [ sampleIteration
                    { iterationErrors = Map.fromList [("ClosedByPeer", 3), ("Timeout", 1200)],
                      iterationNodes = Map.fromList [("s:1", NodeStats (Map.fromList [("Timeout", 1200)]) mempty), ("s:2", NodeStats Map.empty mempty)]
                    }
                ]
            }
        about = filter ("errors" `isInfixOf`) . drop 2 . report
    about [failing] `shouldBe` ["cluster mixed: errors: 3 ClosedByPeer, 1 200 Timeout", "cluster mixed: errors of s:1: 1 200 Timeout"]
    about [sample] `shouldBe` []
    details failing `shouldSatisfy` not . any ("errors" `isInfixOf`)

  it "leaves out the columns of redis-benchmark when it did not run" $
    unlines (report [sample {runReference = Nothing}]) `shouldSatisfy` (not . ("rb" `isInfixOf`))

  it "says what was compared with the server" $
    unlines (details sample) `shouldSatisfy` ("commandstats agree: 900 GET, 400 SET, preload" `isInfixOf`)

  it "gives durations three digits and a unit" $
    map Text.duration [0, 870, 999, 1000, 12345, 99949, 99951, 999499, 999500, 4560000, 1200000000, 3600000000000]
      `shouldBe` ["0 ns", "870 ns", "999 ns", "1.00 us", "12.3 us", "99.9 us", "100 us", "999 us", "1.00 ms", "4.56 ms", "1.20 s", "3600 s"]

  it "never rounds an almost full ratio up" $
    map Text.percent [1, 0.999999, 0.99995, 0.5, 0]
      `shouldBe` ["100%", "99.99%", "99.99%", "50.00%", "0.00%"]

  it "groups digits" $
    map Text.thousands [0, 999, 1000, 1234567, -1000] `shouldBe` ["0", "999", "1 000", "1 234 567", "-1 000"]
