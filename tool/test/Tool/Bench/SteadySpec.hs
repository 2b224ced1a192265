module Tool.Bench.SteadySpec (spec) where

import Test.Hspec
import Tool.Bench.Steady

spec :: Spec
spec = describe "steadiness" $ do
  it "is reached when the last four rates are close, whatever came before" $ do
    settled [1, 500, 980, 1000, 1010, 1020] `shouldBe` True
    settled [1000, 1000, 1000, 700] `shouldBe` False
    settled [1000, 1000, 1000] `shouldBe` False
    settled [0, 0, 0, 0] `shouldBe` False

  it "is missing in a window that begins slower than it goes on" $ do
    startedSteady [600, 1000, 1001, 999, 1000, 1002, 998, 1000] `shouldBe` Just False
    startedSteady [1010, 1000, 1001, 999, 1000, 1002, 998, 1000] `shouldBe` Just True

  it "is not denied where rates scatter anyway" $
    startedSteady [800, 1300, 700, 1200, 600, 1400, 900, 1100] `shouldBe` Just True

  it "is not judged by hardly anything" $
    startedSteady [1, 2, 3] `shouldBe` Nothing
