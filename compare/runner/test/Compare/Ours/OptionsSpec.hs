module Compare.Ours.OptionsSpec (spec) where

import Compare.Cell
import Compare.Ours.Options
import Data.Either (isLeft)
import Fixture (cellOf)
import Test.Hspec

spec :: Spec
spec = describe "our own peer's flags" $ do
  it "are those that the runner gives" $ do
    let told cell = parseOptions (peerArguments ("127.0.0.1", 7000) Window {windowWarmup = 0.5, windowDuration = 2} cell)
        callers = fmap optionsCallers . told
    callers (cellOf Wait 256) `shouldBe` Right 256
    callers (cellOf Batch 1024) `shouldBe` Right 16
    fmap optionsMisses (told (cellOf Wait 1) {cellOperation = GetMiss}) `shouldBe` Right True
    fmap optionsOperation (told (cellOf Wait 1) {cellOperation = Mixed}) `shouldBe` Right FifthSet
    fmap optionsCluster (told (cellOf Wait 1) {cellPlace = Cluster}) `shouldBe` Right True
    fmap optionsWarmup (told (cellOf Wait 1)) `shouldBe` Right 0.5
  it "refuse what they do not know" $ do
    parseOptions ["--speed", "high"] `shouldSatisfy` isLeft
    parseOptions ["--in-flight", "many"] `shouldSatisfy` isLeft
    parseOptions ["--style", "batch", "--in-flight", "100"] `shouldSatisfy` isLeft
