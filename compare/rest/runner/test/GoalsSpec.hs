-- | The judgement of results: which results, against which rivals, and by which bound.
module GoalsSpec (spec) where

import Compare.Cell
import Compare.Goals (Verdict (..), verdicts)
import Compare.Load (LoadResult (..), Scenario (..))
import Data.Text (Text)
import Data.Text qualified as Text
import Redis.TestKit.Wait (within)
import ReportSpec (measured, responses)
import Test.Hspec

spec :: Spec
spec = around_ (within 10) . describe "goals" $ do
  it "are met by a rate of exactly the bound, and not by less" $ do
    judgedRate [ran Pinned "haskell" (rate 1300), ran Pinned "dotnet-1" (rate 1000)] `shouldBe` [(Just 1.3, True)]
    judgedRate [ran Pinned "haskell" (rate 1299), ran Pinned "dotnet-1" (rate 1000)] `shouldBe` [(Just 1.299, False)]

  it "are met by a processor time of exactly the bound, and not by more" $ do
    judgedCpu [ran Pinned "haskell" (cpu 8), ran Pinned "dotnet-1" (cpu 10)] `shouldBe` [(Just 0.8, True)]
    judgedCpu [ran Pinned "haskell" (cpu 9), ran Pinned "dotnet-1" (cpu 10)] `shouldBe` [(Just 0.9, False)]

  it "are met by a latency of exactly the peer's, and not by more" $ do
    judgedTail [mixed "haskell" 500, mixed "dotnet-1" 500] `shouldBe` [(Just 1, True)]
    judgedTail [mixed "haskell" 505, mixed "dotnet-1" 500] `shouldBe` [(Just 1.01, False)]

  it "are set against the peer that is best at what is compared, and no naive one" $ do
    let results =
          [ ran Pinned "haskell" (rate 3000 . cpu 10),
            ran Pinned "dotnet-1" (rate 1000 . cpu 10),
            ran Pinned "dotnet-2" (rate 2000 . cpu 20),
            ran Pinned "dotnet-1-naive" (rate 6000 . cpu 40)
          ]
    judgedRate results `shouldBe` [(Just 1.5, True)]
    judgedCpu results `shouldBe` [(Just 1, False)]
    -- The faster peer has the longer tail.
    judgedTail [mixed "haskell" 500, mixed "dotnet-1" 400, (mixed "dotnet-2" 1000) {outcome = rate 2000 (outcome (mixed "dotnet-2" 1000))}] `shouldBe` [(Just 1.25, False)]

  it "are set against the peer that was best in the same round, not on average" $ do
    let turn number own one other =
          [result {cell = (cell result) {iteration = number}} | result <- [ran Pinned "haskell" (rate own), ran Pinned "dotnet-1" (rate one), ran Pinned "dotnet-2" (rate other)]]
    -- On average ours has 1500, and each peer 1000.
    judgedRate (turn 1 1500 2000 500 <> turn 2 1500 500 2000 <> turn 3 1500 500 500) `shouldBe` [(Just 0.75, False)]

  it "say so where the naive design in C# is faster than the tuned one, and only there" $ do
    let notes naive = map verdictNote (listed rateOf [ran Pinned "haskell" (rate 3000), ran Pinned "dotnet-1" (rate 1000), ran Pinned "dotnet-1-naive" (rate naive)])
    notes 1500 `shouldBe` ["beside the naive design in C#, which is faster here, 2.00"]
    notes 900 `shouldBe` [""]

  it "are not set against a peer of which nothing counts" $ do
    let broken = ran Pinned "dotnet-2" (\outcome' -> rate 2000 outcome' {problems = ["no answers"]})
    judgedRate [ran Pinned "haskell" (rate 3000), ran Pinned "dotnet-1" (rate 1000), broken] `shouldBe` [(Just 3, True)]

  it "say that the core of Redis was the limit where it has one, was full, and the service was not" $ do
    let full = cores [0.96, 0.5]
        notes layout' change = map verdictNote (listed rateOf [ran layout' "haskell" change, ran layout' "dotnet-1" id])
    notes Pinned (full . busy 0.9) `shouldBe` ["the core of Redis and the generator was the limit: at least this"]
    notes Free (full . busy 0.9) `shouldBe` [""]
    notes Pinned (full . busy 0.96) `shouldBe` [""]
    notes Pinned (cores [0.5, 0.96] . busy 0.9) `shouldBe` [""]
  where
    judgedRate = map ratio . listed rateOf
    judgedCpu = map ratio . listed "processor time per request"
    judgedTail = map ratio . filter (("99.9 %" `Text.isInfixOf`) . verdictName) . present
    ratio verdict = (verdictRatio verdict, verdictMet verdict)
    rateOf = "requests/s beside ASP.NET"

-- The verdicts about lists whose name contains this text.
listed :: Text -> [Result] -> [Verdict]
listed part results = [verdict | verdict <- present results, "GET list" `Text.isPrefixOf` verdictName verdict, part `Text.isInfixOf` verdictName verdict]

-- The verdicts that have a ratio.
present :: [Result] -> [Verdict]
present = filter ((/= Nothing) . verdictRatio) . verdicts

-- A measurement of lists.
ran :: Layout -> Text -> (Outcome -> Outcome) -> Result
ran layout' name change = result {cell = (cell result) {layout = layout'}, outcome = change (outcome result)}
  where
    result = measured name [] 1

-- A measurement of the mix with this 99.9 % point.
mixed :: Text -> Double -> Result
mixed name point = result {cell = (cell result) {scenario = Mixed, connections = 20}}
  where
    result = ran Pinned name $ \outcome' ->
      outcome' {openLoop = Just responses {p99_9 = point, highest = point}}

rate, cpu, busy :: Double -> Outcome -> Outcome
rate value outcome' = outcome' {requestsPerSecond = value}
cpu value outcome' = outcome' {cpuPerRequest = value}
busy value outcome' = outcome' {serviceBusy = value}

cores :: [Double] -> Outcome -> Outcome
cores values outcome' = outcome' {coresBusy = values}
