module Tool.ChangePointSpec (spec) where

import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.ChangePoint

-- | A level for this many points, with noise of the given share.
level :: Double -> Double -> Int -> Gen [Double]
level noise value points = vectorOf points (choose (value * (1 - noise), value * (1 + noise)))

-- Six standard errors of the median of this many points, which lie this far from the level at most.
errors :: Double -> Int -> Double
errors reach points = 6 * reach / sqrt (fromIntegral points)

found :: [Double] -> [Phase]
found = phases

spec :: Spec
spec = describe "Tool.ChangePoint" $ do
  it "finds nothing in nothing, and one phase in a constant" $ do
    found [] `shouldBe` []
    map phaseLength (found [5]) `shouldBe` [1]
    map phaseLength (found (replicate 500 1000)) `shouldBe` [500]
    map phaseLength (found (replicate 500 0)) `shouldBe` [500]

  prop "leaves noise alone" $
    forAll (level 0.08 50000 300) $ \series -> length (found series) === 1

  prop "finds where a disk's credit ran out, and both speeds" $
    forAll (choose (30, 270)) $ \at ->
      forAll ((<>) <$> level 0.05 16000 at <*> level 0.1 1800 (300 - at)) $ \series ->
        case found series of
          [first, second] ->
            counterexample (show (found series)) $
              abs (phaseLength first - at) <= 2
                && abs (phaseMedian first - 16000) < errors 800 at
                && abs (phaseMedian second - 1800) < errors 180 (300 - at)
          other -> counterexample (show other) False

  prop "finds a short phase within a long one" $
    forAll (concat <$> sequence [level 0.05 1000 150, level 0.05 700 12, level 0.05 1000 150]) $ \series ->
      map phaseFirst (found series) `shouldSatisfyNear` [0, 150, 162]

  prop "takes a stall of two seconds for an event and not for a phase" $
    forAll (choose (10, 280)) $ \at ->
      forAll (level 0.05 20000 300) $ \series ->
        let stalled = take at series <> [0, 0] <> drop (at + 2) series
         in length (found stalled) === 1

  prop "does not take a slow drift within a tenth for phases" $
    forAll (level 0.02 1 400) $ \noise ->
      length (found (zipWith (\drift factor -> (10000 + drift) * factor) [0, 2 ..] noise)) === 1

  prop "covers the whole series, in order" $
    forAll (listOf (choose (0, 1e6))) $ \series ->
      let parts = found series
       in scanl (+) 0 (map phaseLength parts) === map phaseFirst parts <> [length series]

  it "takes a run of six hours, at the resolution of some seconds" $ do
    series <- generate ((<>) <$> level 0.1 16000 2400 <*> level 0.2 1800 19200)
    case found series of
      [first, second] -> do
        abs (phaseLength first - 2400) `shouldSatisfy` (<= 22)
        phaseLength first + phaseLength second `shouldBe` 21600
      other -> expectationFailure (show other)
  where
    shouldSatisfyNear actual expected =
      counterexample (show actual) $
        length actual == length expected && and (zipWith (\one other -> abs (one - other) <= 2) actual expected)
