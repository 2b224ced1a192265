module Tool.Bench.SweepSpec (spec) where

import Data.Map.Strict qualified as Map
import Data.Text qualified as Text
import Sample (sample, sampleDocument)
import System.Exit (ExitCode (..))
import Test.Hspec
import Tool.Bench.Arrivals (Arrivals (..))
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Document.Totals (Step (..), iterationOps, kept, knee, stepOf)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Html.Charts (loadCurve)
import Tool.Bench.Progress (silent)
import Tool.Bench.Reports (exitOf)
import Tool.Bench.Sweep
import Tool.Chart
import Tool.Failure (Failure (..), exitInvalid)
import Tool.Options.Bench
import Tool.Options.Load

step :: Double -> Double -> Int -> Step
step rate reached p99 = Step {stepRate = rate, stepReached = reached, stepCut = 0, stepP99 = p99}

spec :: Spec
spec = describe "a sweep" $ do
  it "has its knee before the percentile leaves its level" $
    knee [step 100 100 900000, step 200 200 1100000, step 300 299 4400000, step 400 400 5600000, step 500 500 800000]
      `shouldBe` Just (step 300 299 4400000)

  it "has its knee before the rate is no longer kept" $
    knee [step 100 100 50000, step 200 150 60000] `shouldBe` Just (step 100 100 50000)

  it "does not take noise below a millisecond for a knee" $
    knee [step 100 100 20000, step 200 200 900000] `shouldBe` Just (step 200 200 900000)

  it "is not moved by one bad measurement at its lowest rate" $ do
    knee [step 100 100 22900000, step 200 200 900000, step 300 300 1000000, step 400 400 1100000, step 500 500 108000000]
      `shouldBe` Just (step 400 400 1100000)
    knee [step 100 100 22900000, step 200 200 900000] `shouldBe` Just (step 200 200 900000)

  it "takes a command that the window's edge cuts off for none that is too much" $ do
    -- At 7.5 a second 22 or 23 are due in three seconds.
    let held = Histogram.fromValues . flip replicate 1000
        window answered = (\one -> one {iterationSeconds = 3, iterationCommands = Map.singleton "get" (CommandStats answered 0 Map.empty (held answered) (Just (held answered)))}) <$> runIterations sample
        at answered = stepOf sample {runSpec = (runSpec sample) {specLoop = OpenConstant 7.5}, runIterations = window answered}
    map (kept . at) [23, 22, 20] `shouldBe` [True, True, False]

  it "may have none" $
    knee [step 100 50 20000] `shouldBe` Nothing

  it "ends at once where a closed loop reaches nothing, and says why" $
    sweep silent (\_ _ -> pure sample {runIterations = [], runProblems = ["it failed"]}) (SweepSteps 4) defaultLoad
      `shouldThrow` (== Failure exitInvalid "--sweep: a closed loop reached nothing: it failed")

  it "keeps the run at its first rate if it is not valid, ends as it does, and names no knee" $ do
    let rates = SweepRates [10, 20]
        failed = sample {runProblems = ["it failed"]}
    (runs, notes) <- sweep silent (\_ _ -> pure failed) rates defaultLoad {loadPlan = defaultPlan {planSending = Sweeping rates}}
    runs `shouldBe` [failed]
    exitOf (sampleDocument runs) `shouldBe` ExitFailure exitInvalid
    notes `shouldSatisfy` saying ["10/s", "it failed"]
    notes `shouldSatisfy` (not . saying ["knee"])

  it "goes up until a rate is too much, and says where that was" $ do
    let load = defaultLoad {loadPlan = defaultPlan {planSending = Sweeping (SweepRates [10, 20, 30, 40])}}
        -- A server that answers 25 commands a second.
        measured _ one = case planArrivals (loadPlan one) of
          Just (Constant rate) -> pure (answering rate (min 25 rate))
          _ -> fail "no rate"
    (runs, notes) <- sweep silent measured (SweepRates [10, 20, 30, 40]) load
    map (stepRate . stepOf) runs `shouldBe` [10, 20, 30]
    notes `shouldSatisfy` saying ["knee is at 20 ", "30/s was more"]
    [(lineName one, map fst (linePoints one)) | LinePlot found <- map chartPlot (loadCurve runs), one <- linesAll found, "knee" `Text.isPrefixOf` lineName one]
      `shouldBe` [("knee: 20/s", [20, 20])]
    let tooMuch = filter ((== 30) . stepRate . stepOf) (runs <> runs)
    map chartAbout (loadCurve tooMuch) `shouldSatisfy` saying ["There is no knee"]

  it "goes down from a first rate that is too much, until one is kept, so that there is a curve" $ do
    let load = defaultLoad {loadPlan = defaultPlan {planSending = Sweeping (SweepRates [100, 200])}}
        measured limit _ one = case planArrivals (loadPlan one) of
          Just (Constant rate) -> pure (answering rate (min limit rate))
          _ -> fail "no rate"
    (runs, notes) <- sweep silent (measured 30) (SweepRates [100, 200]) load
    map (stepRate . stepOf) runs `shouldBe` [25, 50, 100]
    notes `shouldSatisfy` saying ["knee is at 25 "]
    -- The sweep ends, even if the server keeps up with no rate.
    (none, below) <- sweep silent (measured 1e-3) (SweepRates [100, 200]) load
    map (stepRate . stepOf) none `shouldBe` [100 / 32, 100 / 16, 100 / 8, 25, 50, 100]
    below `shouldSatisfy` saying ["below the lowest rate"]
  where
    -- A single note that contains all of these parts.
    saying parts = \case
      [note] -> all (`Text.isInfixOf` note) parts
      _ -> False
    answering rate reached =
      sample
        { runSpec = (runSpec sample) {specLoop = OpenConstant rate},
          runProblems = [],
          -- The sample's commands, in as many seconds as they take at this rate.
          runIterations = [iteration {iterationSeconds = fromIntegral (iterationOps iteration) / reached} | iteration <- runIterations sample]
        }
