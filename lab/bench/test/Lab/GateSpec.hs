module Lab.GateSpec (spec) where

import Data.List (find)
import Data.Map.Strict qualified as Map
import Lab.Gate (gateExit)
import Lab.Gate.Table
import System.Exit (ExitCode (..))
import Test.Hspec
import Tool.Options.Bench (Operation (..))
import Tool.Statistics (median)

-- | Samples in which every run has the same speed and cost.
equal :: Samples
equal = Map.fromList [(probe, replicate 5 (sound 1000 100)) | probe <- probes, probe /= OpenLoop] <> Map.fromList [(OpenLoop, replicate 5 (late 200000))]

-- | A sample of a run without problems.
sound :: Double -> Double -> Sample
sound ops cpu = Sample {sampleOps = ops, sampleCpu = cpu, sampleLate = Nothing, sampleShare = Nothing, sampleProblems = []}

-- | A sample of an open loop that sends this many nanoseconds late.
late :: Double -> Sample
late nanos = (sound 1000 100) {sampleLate = Just nanos}

verdictOf :: String -> Samples -> Maybe Verdict
verdictOf what = fmap rowVerdict . rowOf what

rowOf :: String -> Samples -> Maybe Row
rowOf what samples = find ((== what) . rowWhat) (rows samples)

spec :: Spec
spec = describe "Lab.Gate" $ do
  it "demands where the server is full what hiredis does, and bounds what it measures itself with" $
    [(rowWhat row, rowUnit row, bar) | row <- rows equal, Just bar <- [rowMust row]]
      `shouldBe` [ ("GET, 16 threads x 64", "H", 0.95),
                   ("GET, 16 threads x 64: client CPU", "H", 1),
                   ("SET, 16 threads x 64", "H", 0.95),
                   ("SET, 16 threads x 64: client CPU", "H", 1),
                   ("GET, 256 threads waiting", "H", 0.95),
                   ("GET, 256 threads waiting: client CPU", "H", 1),
                   ("GET, 1024 threads waiting", "H", 0.95),
                   ("GET, 1024 threads waiting: client CPU", "H", 1),
                   ("both cores, -N2, batches", "of -N1", 0.8),
                   ("both cores, -N2, 256 waiting", "of -N1", 0.8),
                   ("cluster, 16 threads x 64: client CPU", "of one server", 1.7),
                   ("the tool, 16 threads x 64: client CPU", "of a bare loop", 1.1),
                   ("the tool, 256 threads waiting: client CPU", "of a bare loop", 1.1),
                   ("the tool, open loop at 100 k/s: sent late, p99", "of 1 ms", 1)
                 ]

  it "states the rest, for the goals there are about other clients" $
    [(rowWhat row, rowUnit row) | row <- rows equal, rowVerdict row == Stated]
      `shouldBe` [ ("cluster, keys of every slot, 16 threads x 64", "H"),
                   ("cluster, keys of every slot, 256 threads waiting", "H"),
                   ("cluster, 16 threads x 64", "RC"),
                   ("cluster, 256 threads waiting", "RC"),
                   ("GET, 16 threads x 64", "R"),
                   ("GET, 16 threads x 64: client CPU", "R"),
                   ("SET, 16 threads x 64", "R"),
                   ("GET, 64 threads waiting", "R"),
                   ("GET, 16 threads waiting", "R"),
                   ("GET, 1 thread waiting", "R1"),
                   ("GET, 1 thread waiting, no polling", "R1"),
                   ("TLS, 16 threads x 64", "RT")
                 ]

  it "says which bars are reached" $ do
    let with probe sample = Map.insert probe (replicate 5 sample) equal
        batches = "GET, 16 threads x 64"
        cpu = "GET, 16 threads x 64: client CPU"
    verdictOf batches (with (Batches OperationGet) (sound 949 100)) `shouldBe` Just Missed
    verdictOf batches (with (Batches OperationGet) (sound 951 100)) `shouldBe` Just Reached
    verdictOf cpu (with (Batches OperationGet) (sound 1000 101)) `shouldBe` Just Missed
    verdictOf cpu (with (Batches OperationGet) (sound 1000 99)) `shouldBe` Just Reached

  it "holds against the form of hiredis that is the better one by each figure" $ do
    let forms = Map.insert (Hiredis Async (HiredisWaiting 256)) (replicate 5 (sound 2000 150)) equal
        figures what = snd . rowFigures <$> rowOf what forms
    figures "GET, 256 threads waiting" `shouldBe` Just 2000
    figures "GET, 256 threads waiting: client CPU" `shouldBe` Just 100
    verdictOf "GET, 256 threads waiting" forms `shouldBe` Just Missed
    -- Which one is better may change from turn to turn.
    let turns = foldr (\(form, rates) -> Map.insert (Hiredis form (HiredisWaiting 256)) (map (`sound` 100) rates)) equal [(Loop, [2000, 500, 2000, 500, 2000]), (Async, [500, 2000, 500, 2000, 500])]
    (snd . rowFigures <$> rowOf "GET, 256 threads waiting" turns) `shouldBe` Just 2000
    verdictOf "GET, 256 threads waiting" turns `shouldBe` Just Missed
    -- One of the two forms may be missing.
    verdictOf "GET, 256 threads waiting" (Map.delete (Hiredis Async (HiredisWaiting 256)) equal) `shouldBe` Just Reached
    verdictOf "GET, 256 threads waiting" (foldr (\form -> Map.delete (Hiredis form (HiredisWaiting 256))) equal [Loop, Async]) `shouldBe` Just Incomplete

  it "fails if the tool takes more than a tenth beside a bare loop" $ do
    let tool = "the tool, 256 threads waiting: client CPU"
        verdictAt cpu = verdictOf tool (Map.insert (BareWaiting 256) (replicate 5 (sound 1000 (100 / cpu))) equal)
    verdictAt 1.11 `shouldBe` Just Missed
    verdictAt 1.09 `shouldBe` Just Reached
    gateExit (map rowVerdict (rows (Map.insert BareBatches (replicate 5 (sound 1000 90)) equal))) `shouldBe` ExitFailure 1

  it "fails if an open loop sends late by a millisecond" $ do
    let lateness = "the tool, open loop at 100 k/s: sent late, p99"
        verdictAt nanos = verdictOf lateness (Map.insert OpenLoop (replicate 5 (late nanos)) equal)
    verdictAt 1.01e6 `shouldBe` Just Missed
    verdictAt 0.99e6 `shouldBe` Just Reached
    verdictAt 0 `shouldBe` Just Reached
    verdictOf lateness (Map.delete OpenLoop equal) `shouldBe` Just Incomplete
    gateExit (map rowVerdict (rows (Map.insert OpenLoop (replicate 5 (late 5e6)) equal))) `shouldBe` ExitFailure 1

  it "knows which figures are the client's own" $ do
    let used share = Map.insert (Waiting 256) [(sound 1000 100) {sampleShare = Just share} | _ <- [1 :: Int .. 5]] equal
    map rowWhat (filter isSaturated (rows (used 0.8))) `shouldBe` []
    map rowWhat (filter isSaturated (rows (used 0.81)))
      `shouldBe` ["GET, 256 threads waiting", "GET, 256 threads waiting: client CPU", "the tool, 256 threads waiting: client CPU"]

  it "is not content with runs that are missing" $
    verdictOf "GET, 16 threads waiting" (Map.delete (Waiting 16) equal) `shouldBe` Just Incomplete

  it "calls rows invalid whose runs are, and no others" $ do
    let wrong = (sound 2000 100) {sampleProblems = ["a clock is wrong"]}
        found = rows (Map.insert (Waiting 64) [sound 1000 100, wrong, wrong] equal)
    [(rowWhat row, rowProblems row) | row <- found, rowVerdict row == Unsound]
      `shouldBe` [("GET, 64 threads waiting", ["a clock is wrong"])]
    rowVerdict (memoryRow "memory" ["a clock is wrong"] 100 100) `shouldBe` Unsound

  it "misses a rate only if the whole interval is below it, and reaches it only if the whole is above" $ do
    let verdictAt speeds = verdictOf "GET, 256 threads waiting" (Map.insert (Waiting 256) [sound ops 100 | ops <- speeds] equal)
    verdictAt [890, 900, 910, 920, 940] `shouldBe` Just Missed
    -- The means of these two are on either side of the bar, 0.95.
    verdictAt [800, 900, 940, 1000, 1100] `shouldBe` Just Undecided
    verdictAt [800, 900, 980, 1000, 1100] `shouldBe` Just Undecided
    verdictAt [960, 970, 980, 990, 1000] `shouldBe` Just Reached
    -- A rate is not reached just because no run was below the bar.
    verdictAt [1000, 1000, 1000, 1000, 3000] `shouldBe` Just Undecided

  it "misses a cost only if the whole interval is above it, and reaches it only if the whole is below" $ do
    let verdictAt costs = verdictOf "GET, 256 threads waiting: client CPU" (Map.insert (Waiting 256) [sound 1000 cpu | cpu <- costs] equal)
    verdictAt [110, 115, 118, 120, 122] `shouldBe` Just Missed
    verdictAt [80, 120, 105, 90, 122] `shouldBe` Just Undecided
    verdictAt [70, 75, 78, 80, 82] `shouldBe` Just Reached

  it "fails for a row that missed, not for one that is undecided" $ do
    gateExit [Reached, Undecided, Stated] `shouldBe` ExitSuccess
    gateExit [Reached, Missed, Undecided] `shouldBe` ExitFailure 1
    gateExit [Reached, Incomplete] `shouldBe` ExitFailure 1
    gateExit [Missed, Unsound] `shouldBe` ExitFailure 2

  it "gives the interval of Student's t over the logarithms of the ratios" $ do
    let samples = Map.insert (Waiting 64) [sound (1000 * exp number) 1 | number <- [-0.1, 0, 0.1]] equal
        row = rowOf "GET, 64 threads waiting" (Map.insert (Reference OperationGet) (replicate 3 (sound 1000 1)) samples)
        -- 4.3027 is Student's t for two degrees of freedom; it is multiplied by 0.1 / sqrt 3.
        near (low, high) = abs (log low + 0.24841) < 1e-4 && abs (log high - 0.24841) < 1e-4
    (row >>= rowInterval) `shouldSatisfy` maybe False near

  it "decides nothing by a single iteration" $ do
    let once = Map.map (take 1) equal
        found = rows (Map.insert (Waiting 64) [sound 1 100] once)
    [rowWhat row | row <- found, rowVerdict row `notElem` [Undecided, Stated]] `shouldBe` []
    [rowWhat row | row <- found, rowVerdict row == Undecided] `shouldSatisfy` not . null

  it "goes by the mean of the iterations' ratios, and shows their spread" $ do
    let samples =
          Map.insert
            (Waiting 64)
            [sound 250 1, sound 500 1, sound 1000 1, sound 2000 1, sound 8000 1]
            equal
        row = rowOf "GET, 64 threads waiting" samples
    (rowMeasured <$> row) `shouldSatisfy` maybe False (\mean -> abs (log mean - log 2 / 5) < 1e-9)
    fmap rowFigures row `shouldBe` Just (1000, 1000)
    fmap rowSpread row `shouldBe` Just (0.25, 8)

  it "holds the memory of a long run against that of a short one" $ do
    rowVerdict (memoryRow "memory" [] 119 100) `shouldBe` Reached
    rowVerdict (memoryRow "memory" [] 121 100) `shouldBe` Missed
    rowVerdict (memoryRow "memory" [] 0 0) `shouldBe` Incomplete

  it "finds medians" $
    map median [[], [3], [5, 1, 3], [4, 1, 2, 3]] `shouldBe` [0, 3, 3, 2.5]

  it "runs every probe that a row needs" $
    [rowWhat row | row <- rows equal, rowVerdict row == Incomplete] `shouldBe` []
