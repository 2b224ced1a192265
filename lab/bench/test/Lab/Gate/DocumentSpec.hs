module Lab.Gate.DocumentSpec (spec, measured) where

import Data.Aeson (encode)
import Data.ByteString.Lazy qualified as Lazy
import Data.List (isInfixOf)
import Data.Map.Strict qualified as Map
import Data.Text qualified as Text
import Lab.Gate.Document
import Lab.Gate.Report (reportLines)
import Lab.Gate.Table
import Test.Hspec
import Tool.Bench.Document (Manifest (..))
import Tool.Options.Bench (Operation (..))

-- | A run in which everything is equally fast, except for the given samples.
measured :: [(Probe, [Sample])] -> Measured
measured others =
  Measured
    { measuredManifest = made,
      measuredServer = "redis 7.0.15",
      measuredHiredis = "0.14.1",
      measuredDuration = 1,
      measuredIterations = 3,
      measuredSeries = [Series (Text.pack (show probe)) ["redis-client", "bench"] found | (probe, found) <- Map.toList (Map.fromList others <> equal)],
      measuredMemorySeconds = [10, 60],
      measuredMemory = [("most live on the heap", [100, 200]), ("peak resident", [100, 110])],
      measuredMemoryProblems = []
    }
  where
    equal = Map.fromList [(probe, replicate 3 (sample 1000)) | probe <- probes]
    made =
      Manifest
        { manifestTool = "0.1",
          manifestRevision = Just "abc123",
          manifestStarted = 1769860800000000000,
          manifestCommand = ["gate"],
          manifestOs = "linux",
          manifestArchitecture = "x86_64",
          manifestKernel = "6.18",
          manifestCpu = Just "AMD EPYC",
          manifestProcessors = 2,
          manifestMemory = Just 1024,
          manifestVirtual = True,
          manifestClockSource = "tsc",
          manifestCompiler = "ghc-9.0.2",
          manifestCapabilities = 1,
          manifestRtsArguments = [],
          manifestDisk = Nothing,
          manifestFacts = Map.empty
        }

sample :: Double -> Sample
sample ops = Sample {sampleOps = ops, sampleCpu = 100, sampleLate = Just 200000, sampleShare = Just 0.5, sampleProblems = []}

spec :: Spec
spec = describe "Lab.Gate.Document" $ do
  let whole = measured [(Waiting 256, [(sample 900) {sampleProblems = ["a clock is wrong"]}, sample 910, (sample 920) {sampleShare = Nothing, sampleLate = Nothing}])]
      row what = filter (what `isInfixOf`)

  it "reads what it wrote: all figures, and where and of what they are" $
    readMeasured (Lazy.toStrict (encode (measuredValue whole))) `shouldBe` Right whole

  it "has each pair of figures of a row" $
    [rowPairs found | found <- rowsOf (measured [(Waiting 256, map sample [900, 910, 920]), (Hiredis Loop (HiredisWaiting 256), map sample [1000, 1001, 1002])]), rowWhat found == "GET, 256 threads waiting"]
      `shouldBe` [[(900, 1000), (910, 1001), (920, 1002)]]

  it "goes on if a file has runs that there are no more" $
    rowsOf whole {measuredSeries = Series "Gone" [] [sample 1] : measuredSeries whole} `shouldBe` rowsOf whole

  it "reads nothing from anything else" $
    map readMeasured ["", "{}", "{\"schema\": \"redis-client-bench/1\"}"] `shouldSatisfy` all (either (const True) (const False))

  it "holds the memory of a long run against that of a short one" $
    [(rowWhat found, rowVerdict found) | found <- rowsOf whole, rowFigureUnit found == Bytes]
      `shouldBe` [("memory: most live on the heap", Missed), ("memory: peak resident", Reached)]

  describe "its table" $ do
    it "has a line per row, with verdicts, and says why one is not valid" $ do
      let text = reportLines [whole]
      length (row "GET, 256 threads waiting" text) `shouldBe` 4
      row "GET, 256 threads waiting" text `shouldSatisfy` any ("INVALID: a clock is wrong" `isInfixOf`)
      row "memory: most live" text `shouldSatisfy` all ("MISSED" `isInfixOf`)
      take 1 text `shouldSatisfy` all (\line -> all (`isInfixOf` line) ["2026-01-31 12:00 UTC", "abc123", "6.18", "ghc-9.0.2", "redis 7.0.15", "hiredis 0.14.1", "AMD EPYC"])

    it "marks a row whose interval holds the bar" $ do
      let undecided = measured [(Batches OperationSet, map sample [800, 960, 1100])]
      row "SET, 16 threads x 64  " (reportLines [undecided]) `shouldSatisfy` any ("UNDECIDED" `isInfixOf`)

    it "says beside a figure that it is the client's own" $ do
      let saturated = measured [(Waiting 1024, [(sample 1000) {sampleShare = Just 0.97} | _ <- [1 :: Int .. 3]])]
          marked text = [take 3 (words line) | line <- text, " * 97.00%" `isInfixOf` line]
      marked (reportLines [saturated]) `shouldBe` replicate 2 ["GET,", "1024", "threads"]
      marked (reportLines [whole]) `shouldBe` []
      length (marked (reportLines [saturated, whole])) `shouldBe` 2

    it "shows several runs beside each other, whatever they found" $ do
      let slow = measured [(Waiting 256, map sample [500, 501, 502])]
          text = reportLines [measured [], slow, slow {measuredSeries = []}]
          line = concat (take 1 (row "GET, 256 threads waiting  " text))
      line `shouldSatisfy` ("1.00 (1.00..1.00)" `isInfixOf`)
      line `shouldSatisfy` ("0.50 (0.50..0.50) MISSED" `isInfixOf`)
      line `shouldSatisfy` ("NOT MEASURED" `isInfixOf`)
      length (row "run 3: " text) `shouldBe` 1

    it "says on how many runs of how many days it rests, and whether that is enough" $ do
      let one = measured []
          nextDay = one {measuredManifest = (measuredManifest one) {manifestStarted = manifestStarted (measuredManifest one) + 86400 * 1000000000}}
          rest runs = [line | line <- reportLines runs, take 2 (drop 1 (words line)) == ["runs", "of"]]
      rest [one] `shouldBe` []
      rest [one, one, one] `shouldBe` ["3 runs of 1 day: a table that is kept rests on three of two days at least"]
      rest [one, nextDay] `shouldBe` ["2 runs of 2 days: a table that is kept rests on three of two days at least"]
      rest [one, one, nextDay] `shouldBe` ["3 runs of 2 days"]
