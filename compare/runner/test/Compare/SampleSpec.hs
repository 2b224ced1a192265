module Compare.SampleSpec (spec) where

import Compare.Cell
import Compare.Sample
import Compare.Servers (Counts (..))
import Data.Aeson (decode, encode)
import Fixture (cellOf)
import Fixture qualified
import Test.Hspec hiding (after, before)

spec :: Spec
spec = describe "a peer's report" $ do
  it "is used when all is right" $
    problems good `shouldBe` 0
  it "is not used when replies were wrong, failed, or missing" $ do
    problems good {reportWrong = 1} `shouldBe` 1
    problems good {reportErrors = 1} `shouldBe` 1
    problems good {reportMisses = 1} `shouldBe` 1
  it "is not used when the servers counted something else" $
    length (problemsOf 1 window cell before after {countsGet = 106} good) `shouldBe` 1
  it "is not used when it drew other operations" $
    problems good {reportStreamCheck = "0x1"} `shouldBe` 1
  it "is not used when nothing happened, or in no time" $ do
    problems good {reportOperations = 0} `shouldBe` 1
    problems good {reportSeconds = 1} `shouldBe` 1
    problems good {reportCpuNanos = 0} `shouldBe` 1
    problems good {reportCpuNanos = 3e9} `shouldBe` 1
  it "is not used when it says that more was done than it sent" $
    problems good {reportOperations = 101} `shouldBe` 1
  it "must miss where nothing is, and may not hit" $ do
    let misses = problemsOf 1 window cell {cellOperation = GetMiss} before after
    length (misses good {reportHits = 0, reportMisses = 90}) `shouldBe` 0
    length (misses good) `shouldBe` 1
  it "becomes a sample that survives being written and read" $ do
    let found = sampleOf "a" cell 3 ["a problem"] (serverCpuPerOp before after) good
    decode (encode found) `shouldBe` Just found
    sampleOpsPerSecond found `shouldBe` 45
    decode (encode (Fixture.sample "b" cell 0 1 2)) `shouldBe` Just (Fixture.sample "b" cell 0 1 2)
  it "says what a command cost the servers, if they ran any and told" $ do
    serverCpuPerOp before after `shouldBe` Just 30
    serverCpuPerOp before before `shouldBe` Nothing
    serverCpuPerOp before after {countsCpu = Nothing} `shouldBe` Nothing
  where
    cell = cellOf Wait 16
    window = Window {windowWarmup = 1, windowDuration = 2}
    before = Counts {countsGet = 5, countsSet = 7, countsCpu = Just 1000}
    after = Counts {countsGet = 105, countsSet = 7, countsCpu = Just 4000}
    problems = length . problemsOf 1 window cell before after
    good =
      PeerReport
        { reportSeconds = 2,
          reportOperations = 90,
          reportHits = 90,
          reportMisses = 0,
          reportWrong = 0,
          reportErrors = 0,
          reportLatency = Latency 1 2 3 4 5 6,
          reportCpuNanos = 1e9,
          reportAllGet = 100,
          reportAllSet = 0,
          reportConnections = 1,
          reportStreamCheck = "0x5f56f20d880d596e",
          reportAllocated = Nothing,
          reportNotes = [],
          reportRuntime = ""
        }
