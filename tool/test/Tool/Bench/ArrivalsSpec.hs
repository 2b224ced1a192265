-- | Plans of arrivals: how many there are, how even they are, and how they are divided among
-- threads.
module Tool.Bench.ArrivalsSpec (spec) where

import Control.Monad (replicateM)
import Data.List (sort)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.Bench.Arrivals
import Tool.Bench.Workload.Random (newStream, step, upper)

newtype Plan = Plan Arrivals
  deriving stock (Show)

instance Arbitrary Plan where
  arbitrary = Plan <$> oneof [Constant <$> rate, Poisson <$> rate, Ramp <$> rate <*> rate <*> choose (0.1, 20)]
    where
      rate = choose (100, 200000)

spec :: Spec
spec = describe "arrivals" $ do
  prop "come in order" $ \(Plan plan) seed (Positive threads) ->
    let times = take 2000 (arrivals plan seed threads 0)
     in times === sort times

  prop "are the same again for the same seed" $ \(Plan plan) seed ->
    take 100 (arrivals plan seed 3 1) === take 100 (arrivals plan seed 3 1)

  prop "are as many as the rate says, to within what chance allows" $ \(Plan plan) seed ->
    let seconds = 4000 / rateAt plan 0
        count = length (takeWhile (< round (seconds * 1e9)) (arrivals plan seed 1 0))
        wanted = expected plan seconds
     in counterexample (show (count, wanted)) $
          abs (fromIntegral count - wanted) <= case plan of
            -- Five standard deviations.
            Poisson _ -> 5 * sqrt wanted
            _ -> 1.5

  prop "of several threads at a constant rate are together those of one" $ \(Positive threads) ->
    let plan = Constant 1000
        shared = sort (concat [take 50 (arrivals plan 0 threads thread) | thread <- [0 .. threads - 1]])
     in shared === take (50 * threads) (arrivals plan 0 1 0)

  it "of a Poisson process are as far apart as the exponential law says" $ do
    let times = take 20001 (arrivals (Poisson 1000) 7 1 0)
        gaps = map fromIntegral (zipWith (-) (drop 1 times) times) :: [Double]
        share limit = fromIntegral (length (filter (< limit) gaps)) / fromIntegral (length gaps) :: Double
    share 1e6 `shouldSatisfy` near (1 - exp (-1))
    share 1e5 `shouldSatisfy` near (1 - exp (-0.1))
    share 3e6 `shouldSatisfy` near (1 - exp (-3))

  it "of two threads of a Poisson process have nothing to do with each other" $
    take 10 (arrivals (Poisson 1000) 7 2 0) `shouldNotBe` take 10 (arrivals (Poisson 1000) 7 2 1)

  it "of a Poisson process have nothing to do with the keys that are drawn" $ do
    stream <- newStream 7 0
    numbers <- replicateM 5000 (upper <$> step stream)
    let times = arrivals (Poisson 1000) 7 1 0
        gaps = map fromIntegral (zipWith (-) (drop 1 times) times) :: [Double]
        -- The mean gap after commands with such a number.
        mean these = let found = [gap | (gap, number) <- zip gaps numbers, these number] in sum found / fromIntegral (length found)
    mean (< 0x80000000) / mean (>= 0x80000000) `shouldSatisfy` (\ratio -> abs (ratio - 1) < 0.2)

  it "have their rates in words, with the fraction of a low one" $
    map describeArrivals [Constant 0.25, Constant 50, Poisson 12345.6, Ramp 1.5 200 3]
      `shouldBe` ["0.250/s at equal distances", "50/s at equal distances", "12346/s as a Poisson process", "1.500/s rising to 200/s over 3.0 s"]

  it "of a ramp become as frequent as they should" $ do
    let plan = Ramp 100 1100 10
    rateAt plan 5 `shouldBe` 600
    expected plan 10 `shouldBe` 6000
    length (takeWhile (< 10000000000) (arrivals plan 0 1 0)) `shouldSatisfy` (\count -> abs (count - 6000) <= 1)
    length (takeWhile (< 11000000000) (arrivals plan 0 1 0)) `shouldSatisfy` (\count -> abs (count - 7100) <= 1)
  where
    near wanted found = abs (found - wanted) < 0.015
