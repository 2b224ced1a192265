module Tool.Bench.SteadySpec (spec) where

import Test.Hspec
import Tool.Bench.Trust

spec :: Spec
spec = describe "steadiness" $ do
  it "is reached when the last four rates are close, whatever came before" $ do
    settled [1, 500, 980, 1000, 1010, 1020] `shouldBe` True
    settled [1000, 1000, 1000, 700] `shouldBe` False
    settled [1000, 1000, 1000] `shouldBe` False
    settled [0, 0, 0, 0] `shouldBe` False

  describe "waited for" $ do
    it "is there after four looks at the same rate, whatever came before" $ do
      counting [100, 300, 1000, 1000, 1000, 1000, 1000] `shouldReturn` (6, True)
      counting [1000, 1000, 1000, 1000] `shouldReturn` (4, True)

    it "is not there at the latest moment, where the rate goes on changing" $
      counting [100, 200 ..] `shouldReturn` (20, False)

    it "is told by the time that passed, and not by that which was to pass" $
      -- Each look comes late, by more each time, and counts that much more.
      late `shouldReturn` (12, True)

  it "is missing in a window that begins slower than it goes on" $ do
    startedSteady [600, 1000, 1001, 999, 1000, 1002, 998, 1000] `shouldBe` Just False
    startedSteady [1010, 1000, 1001, 999, 1000, 1002, 998, 1000] `shouldBe` Just True

  it "is not denied where rates scatter anyway" $
    startedSteady [800, 1300, 700, 1200, 600, 1400, 900, 1100] `shouldBe` Just True

  it "is not judged by hardly anything" $
    startedSteady [1, 2, 3] `shouldBe` Nothing
  where
    -- Counts this many from one moment to the next, with a hundred nanoseconds in between. Returns
    -- the number of the last look, out of twenty, and whether the rate was steady.
    counting counts = do
      let totals = scanl (+) 0 counts
      (moment, steady) <- untilSteady (\moment -> pure (moment, sum (take 1 (drop (moment `div` 100) totals)))) 100 0 2000
      pure (moment `div` 100, steady)
    late = do
      (moment, steady) <- untilSteady (\moment -> let now = moment + moment `div` 2 in pure (now, 7 * now)) 100 0 100000
      pure (moment `div` 100, steady)
