module Tool.Bench.TrustSpec (spec) where

import Data.Text qualified as Text
import Test.Hspec
import Tool.Bench.Document (Trust (..))
import Tool.Bench.Environment
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Trust
import Tool.Options.Load (Check (..))

-- | Ten seconds on two cores: 12 s of processor time, 1.2 s of it garbage collection, and half a
-- second in the queue; 16 threads with one command each at a time, which takes a millisecond.
good :: Evidence
good =
  Evidence
    { evidenceUsage = Usage {usageTime = 10000000000, usageCpu = 12000000000, usageGc = Just 1200000000, usageQueued = Just 500000000},
      evidenceCores = 2,
      evidenceAllowed = [],
      evidenceSeconds = 10,
      evidenceService = Histogram.fromBuckets (160000 * 1000000) 1000000 1000000 [(Histogram.bucketOf 1000000, 160000)],
      evidenceClosed = Just (16, 1),
      evidenceOpen = Nothing,
      evidenceSteady = Just True
    }

spec :: Spec
spec = describe "trust" $ do
  it "knows the shares, and that throughput times latency is what was on its way" $
    trustOf good
      `shouldBe` Trust
        { trustCpuShare = Just 0.6,
          trustGcShare = Just 0.1,
          trustRunQueue = Just 0.05,
          trustLittle = Just 1,
          trustSteady = Just True,
          trustSchedule = Nothing,
          trustProblems = []
        }

  it "is lost above four fifths of the cores, unless the client is what is measured" $ do
    let busy cpu = good {evidenceUsage = (evidenceUsage good) {usageCpu = cpu}}
    trustProblems (trustOf (busy 15900000000)) `shouldBe` []
    trustProblems (trustOf (busy 16100000000)) `shouldSatisfy` saying "80.50%"
    trustProblems (trustOf (busy 16100000000) {evidenceAllowed = [Saturation]}) `shouldBe` []

  it "is lost above four fifths of the processor time that a container allows" $ do
    map quotaOf ["50000 100000\n", "max 100000\n", "", "0 0\n"] `shouldBe` [Just 0.5, Nothing, Nothing, Nothing]
    let limited cpu = good {evidenceCores = 0.5, evidenceUsage = (evidenceUsage good) {usageCpu = cpu}}
    trustProblems (trustOf (limited 3900000000)) `shouldBe` []
    trustProblems (trustOf (limited 4100000000)) `shouldSatisfy` saying "82.00% of its 0.50 cores"

  it "is lost when latencies and counts cannot both be right" $ do
    let slower = good {evidenceService = Histogram.fromBuckets (160000 * 1200000) 1200000 1200000 [(Histogram.bucketOf 1200000, 160000)]}
        faster = good {evidenceService = Histogram.fromBuckets (160000 * 800000) 800000 800000 [(Histogram.bucketOf 800000, 160000)]}
    trustProblems (trustOf slower) `shouldSatisfy` saying "commands on their way"
    trustProblems (trustOf faster) `shouldSatisfy` saying "commands on their way"
    -- A stall of four seconds, half of it before the window.
    let stalled = good {evidenceService = Histogram.fromBuckets (160000 * 1000000 + 16 * 2000000000) 1000000 4000000000 [(Histogram.bucketOf 1000000, 160000), (Histogram.bucketOf 4000000000, 16)]}
    trustLittle (trustOf stalled) `shouldSatisfy` maybe False (> 1.15)
    trustProblems (trustOf stalled) `shouldBe` []
    -- In a batch, not all commands are in flight all the time.
    trustProblems (trustOf faster {evidenceClosed = Just (4, 4)}) `shouldBe` []

  it "is kept where a check is allowed to fail, and only that one" $ do
    let slower = good {evidenceService = Histogram.fromBuckets (160000 * 1200000) 1200000 1200000 [(Histogram.bucketOf 1200000, 160000)]}
        -- It used up its cores, too.
        both = slower {evidenceUsage = (evidenceUsage good) {usageCpu = 19000000000}}
    trustProblems (trustOf slower {evidenceAllowed = [Little]}) `shouldBe` []
    forgiven slower {evidenceAllowed = [Little]} `shouldSatisfy` saying "commands on their way"
    forgiven slower `shouldBe` []
    trustProblems (trustOf both {evidenceAllowed = [Little]}) `shouldSatisfy` saying "95.00%"
    trustProblems (trustOf both {evidenceAllowed = [Saturation, Rate]}) `shouldSatisfy` saying "commands on their way"

  it "is lost when an open loop falls behind its plan" $ do
    let sent count = good {evidenceClosed = Nothing, evidenceOpen = Just (Histogram.fromValues (replicate count 1000), 1000)}
    trustProblems (trustOf (sent 995)) `shouldBe` []
    trustProblems (trustOf (sent 900)) `shouldSatisfy` saying "only 900 were sent"
    trustLittle (trustOf (sent 995)) `shouldBe` Nothing

  it "reads how long a thread waited for a core" $ do
    queuedNanos "123456 789 42\n" `shouldBe` Just 789
    queuedNanos "" `shouldBe` Nothing

  it "grows with what this process does" $ do
    early <- usage
    let busy = sum [fromIntegral (n * n `mod` 7) | n <- [1 .. 300000 :: Int]] :: Double
    busy `shouldSatisfy` (> 0)
    late <- usage
    usageCpu (usedSince early late) `shouldSatisfy` (> 0)
    usageTime (usedSince early late) `shouldSatisfy` (> 0)
  where
    saying text = \case
      [problem] -> text `Text.isInfixOf` problem
      _ -> False
