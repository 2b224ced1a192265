module Tool.Bench.GateSpec (spec) where

import Data.List (find, isInfixOf)
import Data.Map.Strict qualified as Map
import System.Exit (ExitCode (..))
import Test.Hspec
import Tool.Bench.Gate (gateExit, gateReport)
import Tool.Bench.Gate.Table
import Tool.Options.Bench (GateOptions (..), Operation (..))

-- | Every run at the same speed and cost.
equal :: Samples
equal = Map.fromList [(probe, replicate 5 (sound 1000 100)) | probe <- probes]

-- | Of a run with which nothing is wrong.
sound :: Double -> Double -> Sample
sound ops cpu = Sample {sampleOps = ops, sampleCpu = cpu, sampleProblems = []}

verdictOf :: String -> Samples -> Maybe Verdict
verdictOf what = fmap rowVerdict . rowOf what

rowOf :: String -> Samples -> Maybe Row
rowOf what samples = find ((== what) . rowWhat) (rows True samples)

spec :: Spec
spec = describe "Tool.Bench.Gate" $ do
  it "has every demanded row" $
    [(rowWhat row, rowMust row, rowAim row) | row <- rows True equal]
      `shouldBe` [ ("GET, 16 threads x 64", Just 0.85, Just 1),
                   ("GET, 16 threads x 64: client CPU", Just 1.8, Just 1.2),
                   ("SET, 16 threads x 64", Just 0.85, Just 1),
                   ("SET, 16 threads x 64: client CPU", Just 2.2, Nothing),
                   ("GET, 256 threads waiting", Just 0.8, Just 1),
                   ("GET, 256 threads waiting: client CPU", Just 2.2, Nothing),
                   ("GET, 1024 threads waiting", Just 0.85, Just 1),
                   ("GET, 64 threads waiting", Just 0.65, Just 0.9),
                   ("GET, 16 threads waiting", Just 0.33, Just 0.45),
                   ("GET, 1 thread waiting", Just 2, Just 3),
                   ("GET, 1 thread waiting, no polling", Just 0.9, Nothing),
                   ("both cores, -N2, batches", Just 0.8, Just 1),
                   ("both cores, -N2, 256 waiting", Just 0.8, Just 1),
                   ("cluster, 16 threads x 64: client CPU", Just 1.7, Just 1.3),
                   ("cluster, 16 threads x 64", Just 0.85, Just 1),
                   ("cluster, 256 threads waiting", Just 0.75, Just 0.9),
                   ("cluster, keys of every slot, 16 threads x 64", Nothing, Nothing),
                   ("cluster, keys of every slot, 256 threads waiting", Nothing, Nothing),
                   ("TLS, 16 threads x 64", Nothing, Just 0.8)
                 ]

  it "demands less of a lone thread where waking a core is cheap" $
    (find ((== "GET, 1 thread waiting") . rowWhat) (rows False equal) >>= rowMust) `shouldBe` Just 1

  it "says which bars are reached" $ do
    let with probe sample = Map.insert probe (replicate 5 sample) equal
        batches = "GET, 16 threads x 64"
        cpu = "GET, 16 threads x 64: client CPU"
    verdictOf batches (with (Batches OperationGet) (sound 849 100)) `shouldBe` Just Missed
    verdictOf batches (with (Batches OperationGet) (sound 851 100)) `shouldBe` Just Reached
    verdictOf batches (with (Batches OperationGet) (sound 1001 100)) `shouldBe` Just AimReached
    verdictOf cpu (with (Batches OperationGet) (sound 1000 181)) `shouldBe` Just Missed
    verdictOf cpu (with (Batches OperationGet) (sound 1000 150)) `shouldBe` Just Reached
    verdictOf "TLS, 16 threads x 64" (with TlsBatches (sound 100 100)) `shouldBe` Just Stated

  it "is not content with runs that are missing" $
    verdictOf "GET, 16 threads waiting" (Map.delete (Waiting 16) equal) `shouldBe` Just Incomplete

  it "calls rows invalid whose runs are, and no others" $ do
    let wrong = Sample {sampleOps = 2000, sampleCpu = 100, sampleProblems = ["a clock is wrong"]}
        found = rows True (Map.insert (Waiting 64) [sound 1000 100, wrong, wrong] equal)
    [(rowWhat row, rowProblems row) | row <- found, rowVerdict row == Unsound]
      `shouldBe` [("GET, 64 threads waiting", ["a clock is wrong"])]
    rowVerdict (memoryRow "memory" ["a clock is wrong"] 100 100) `shouldBe` Unsound

  it "misses a rate only if the whole interval is below it, and reaches it only if the whole is above" $ do
    let verdictAt speeds = verdictOf "GET, 64 threads waiting" (Map.insert (Waiting 64) [sound ops 100 | ops <- speeds] equal)
    verdictAt [590, 600, 610, 620, 640] `shouldBe` Just Missed
    -- The medians of these two are on either side of the bar, 0.65.
    verdictAt [500, 600, 640, 700, 800] `shouldBe` Just Undecided
    verdictAt [500, 600, 660, 700, 800] `shouldBe` Just Undecided
    verdictAt [660, 670, 680, 690, 700] `shouldBe` Just Reached
    -- The aim is 0.9.
    verdictAt [700, 1000, 1100, 1200, 1300] `shouldBe` Just Reached
    verdictAt [950, 1000, 1100, 1200, 1300] `shouldBe` Just AimReached

  it "misses a cost only if the whole interval is above it, and reaches it only if the whole is below" $ do
    let verdictAt costs = verdictOf "GET, 256 threads waiting: client CPU" (Map.insert (Waiting 256) [sound 1000 cpu | cpu <- costs] equal)
    verdictAt [230, 235, 238, 240, 242] `shouldBe` Just Missed
    verdictAt [180, 240, 225, 210, 242] `shouldBe` Just Undecided
    verdictAt [150, 155, 158, 160, 162] `shouldBe` Just Reached

  it "fails for a row that missed, not for one that is undecided" $ do
    gateExit [Reached, Undecided, AimReached, Stated] `shouldBe` ExitSuccess
    gateExit [Reached, Missed, Undecided] `shouldBe` ExitFailure 1
    gateExit [Reached, Incomplete] `shouldBe` ExitFailure 1
    gateExit [Missed, Unsound] `shouldBe` ExitFailure 2

  it "gives the interval of Student's t over the logarithms of the ratios" $ do
    let samples = Map.insert (Waiting 64) [sound (1000 * exp number) 1 | number <- [-0.1, 0, 0.1]] equal
        row = rowOf "GET, 64 threads waiting" (Map.insert (Reference OperationGet) (replicate 3 (sound 1000 1)) samples)
        -- 4.3027 of Student's t with two degrees of freedom, times 0.1 / sqrt 3.
        near (low, high) = abs (log low + 0.24841) < 1e-4 && abs (log high - 0.24841) < 1e-4
    (row >>= rowInterval) `shouldSatisfy` maybe False near

  it "decides nothing by a single iteration" $ do
    let once = Map.map (take 1) equal
        found = rows True (Map.insert (Waiting 64) [sound 1 100] once)
    [rowWhat row | row <- found, rowVerdict row `notElem` [Undecided, Stated]] `shouldBe` []

  it "goes by medians, and shows the spread of the iterations" $ do
    let samples =
          Map.insert
            (Waiting 64)
            [sound 100 1, sound 900 1, sound 910 1, sound 920 1, sound 5000 1]
            equal
        row = rowOf "GET, 64 threads waiting" samples
    fmap rowMeasured row `shouldBe` Just 0.91
    fmap rowSpread row `shouldBe` Just (0.1, 5)

  it "holds the memory of a long run against that of a short one" $ do
    rowVerdict (memoryRow "memory" [] 119 100) `shouldBe` Reached
    rowVerdict (memoryRow "memory" [] 121 100) `shouldBe` Missed
    rowVerdict (memoryRow "memory" [] 0 0) `shouldBe` Incomplete

  it "finds medians" $
    map median [[], [3], [5, 1, 3], [4, 1, 2, 3]] `shouldBe` [0, 3, 3, 2.5]

  it "runs every probe that a row needs" $
    [rowWhat row | row <- rows True equal, rowVerdict row == Incomplete] `shouldBe` []

  it "prints a line per row" $ do
    let options = GateOptions 3 5 (10, 60) Nothing
        table = dropWhile (/= "") (gateReport "redis 7" options (rows True equal))
    length (filter ("reached" `isInfixOf`) table) `shouldBe` 16
    filter ("MISSED" `isInfixOf`) table `shouldSatisfy` ((== 1) . length)

  it "marks a row whose interval holds the bar" $ do
    let options = GateOptions 3 5 (10, 60) Nothing
        samples = Map.insert (Waiting 64) [sound ops 100 | ops <- [500, 600, 660, 700, 800]] equal
        table = gateReport "redis 7" options (rows True samples)
    [words line | line <- table, "GET, 64 threads waiting" `isInfixOf` line, "UNDECIDED" `isInfixOf` line]
      `shouldSatisfy` any ("0.52..0.80" `elem`)
