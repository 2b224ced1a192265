module Tool.Options.LoadSpec (spec) where

import Test.Hspec
import Tool.Bench.Arrivals (Arrivals (..))
import Tool.Options (Outcome (..), parseArguments)
import Tool.Options.Bench
import Tool.Options.Load

planOf :: [String] -> Either String Plan
planOf arguments = case parseArguments Nothing ("bench" : arguments) of
  Run (BenchOnce options) -> Right (loadPlan (benchLoad options))
  Reject problem -> Left problem
  _ -> Left "something else"

spec :: Spec
spec = describe "the options of a load" $ do
  it "are a closed loop when nothing is said" $
    planOf [] `shouldBe` Right defaultPlan

  it "name a rate and its shape" $ do
    fmap planArrivals (planOf ["--rate", "25k"]) `shouldBe` Right (Just (Constant 25000))
    fmap planArrivals (planOf ["--rate", "1.5M", "--poisson"]) `shouldBe` Right (Just (Poisson 1500000))
    fmap planArrivals (planOf ["--rate", "100", "--ramp-to", "2k/30"]) `shouldBe` Right (Just (Ramp 100 2000 30))

  it "name a sweep by its steps or its rates" $ do
    fmap planSweep (planOf ["--sweep", "8"]) `shouldBe` Right (Just (SweepSteps 8))
    fmap planSweep (planOf ["--sweep", "1k,2k,5k"]) `shouldBe` Right (Just (SweepRates [1000, 2000, 5000]))

  it "ask the server or do not" $ do
    fmap planSample (planOf ["--sample", "0.5"]) `shouldBe` Right (Just 0.5)
    fmap planSample (planOf ["--no-sampling"]) `shouldBe` Right Nothing

  it "name a count" $
    map (fmap planRequests . planOf . (\count -> ["--requests", count])) ["20k", "1.001k"] `shouldBe` map (Right . Just) [20000, 1001]

  it "name a moment, by the calendar or in seconds" $ do
    fmap planStartAt (planOf ["--start-at", "2026-01-31T12:00:00Z"]) `shouldBe` Right (Just 1769860800000000000)
    fmap planStartAt (planOf ["--start-at", "1769860800"]) `shouldBe` Right (Just 1769860800000000000)

  it "let a warm-up end by itself" $
    fmap planWarmup (planOf ["--warmup", "auto"]) `shouldBe` Right (WarmupUntilSteady 30)

  it "are refused in one line where they cannot be" $
    mapM_
      (\(arguments, word) -> either words (const []) (planOf arguments) `shouldContain` [word])
      [ (["--rate", "0"], "rate"),
        (["--rate", "0.0000000001"], "0.001"),
        (["--rate", "1000", "--batch", "8"], "--batch"),
        (["--rate", "1000", "--sweep", "5"], "--sweep"),
        (["--sweep", "5,3"], "sweep"),
        (["--sweep", "1.0001,1.0004"], "1.000/s"),
        (["--sweep", "5", "--iterations", "2"], "--iterations"),
        (["--iterations", "2", "--sweep", "5"], "--sweep"),
        (["--start-at", "1769860800", "--iterations", "2"], "--iterations"),
        (["--sweep", "5", "--requests", "2"], "--requests"),
        (["--requests", "2", "--sweep", "5"], "--sweep"),
        (["--requests", "0"], "commands:"),
        (["--requests", "1.4"], "commands:"),
        (["--iterations", "0"], "--iterations"),
        (["--slice", "0.001"], "--slice"),
        (["--start-at", "soon"], "time"),
        (["--warmup", "long"], "warm-up"),
        (["--ramp-to", "5/5"], "--rate"),
        (["--rate", "5", "--ramp-to", "5"], "ramp"),
        (["--rate", "5", "--ramp-to", "5/5", "--poisson"], "--poisson"),
        (["--rate", "5", "--ramp-to", "5/5", "--warmup", "auto"], "--ramp-to"),
        (["--url", "http://x"], "scheme:"),
        (["--url", "redis+sentinel://x/main"], "redis+sentinel"),
        (["--url", "rediss+group://x"], "rediss+group"),
        (["--url", "valkey+sentinel://x/main"], "change:"),
        (["--url", "VALKEYS+group://x"], "change:"),
        (["--url", "redis://x", "-h", "y"], "--host"),
        (["--socket", "/s", "-h", "y"], "--host"),
        (["-h", "y", "--read-replicas"], "--read-replicas")
      ]
