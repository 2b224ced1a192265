module Tool.Bench.Workload.DistributionSpec (spec) where

import Control.Exception (evaluate)
import Control.Monad (replicateM)
import Data.Map.Strict qualified as Map
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck hiding (total)
import Tool.Bench.Workload.Distribution hiding (choose)
import Tool.Bench.Workload.Distribution qualified as Distribution
import Tool.Bench.Workload.Random
import Tool.Bench.Workload.Syntax (parse)

-- | How often each key is drawn by one thread.
drawn :: Distribution -> Int -> Int -> Int -> IO (Map.Map Int Int)
drawn law count threads draws = Map.fromListWith (+) . map (\key -> (key, 1)) <$> sequenceOf law count threads 0 draws

sequenceOf :: Distribution -> Int -> Int -> Int -> Int -> IO [Int]
sequenceOf law count threads thread draws = do
  stream <- newStream 42 thread
  -- Evaluated once: a lazy binding could be evaluated anew for every draw.
  chooser <- evaluate (newChooser law count threads)
  replicateM draws (step stream >> Distribution.choose chooser stream)

-- | The statistic of Pearson's test against a law's weights, and its degrees of freedom. Keys are
-- grouped until each group has at least 20 expected draws.
chiSquare :: (Int -> Double) -> Int -> Map.Map Int Int -> (Double, Int)
chiSquare weight count found = (sum [(seen - wanted) ^ (2 :: Int) / wanted | (wanted, seen) <- groups], length groups - 1)
  where
    total = sum (map weight [0 .. count - 1])
    draws = fromIntegral (sum found)
    groups = gather 0 0 [0 .. count - 1]
    gather wanted seen = \case
      [] -> [(wanted, seen) | wanted > 0]
      key : rest ->
        let wanted' = wanted + draws * weight key / total
            seen' = seen + fromIntegral (Map.findWithDefault 0 key found)
         in if wanted' >= 20 && expectedOf rest >= 20 then (wanted', seen') : gather 0 0 rest else gather wanted' seen' rest
    expectedOf = sum . map (\key -> draws * weight key / total) . take 5000

-- | The value that the statistic exceeds once in a million, by Wilson and Hilferty.
critical :: Int -> Double
critical degrees = n * (1 - 2 / (9 * n) + 4.753 * sqrt (2 / (9 * n))) ** 3
  where
    n = fromIntegral degrees

fits :: Distribution -> Int -> Int -> Expectation
fits law count draws = do
  found <- drawn law count 1 draws
  let (statistic, degrees) = chiSquare (weightOf law count) count found
  degrees `shouldSatisfy` (> 0)
  statistic `shouldSatisfy` (< critical degrees)

spec :: Spec
spec = describe "Tool.Bench.Workload.Distribution" $ do
  it "draws by the law of Zipf, whatever the exponent (chi-square)" $ do
    fits (Zipf 0.5) 1000 200000
    fits (Zipf 0.99) 1000 200000
    fits (Zipf 1) 1000 200000
    fits (Zipf 1.5) 200 200000

  it "would notice a zipf of another exponent" $ do
    found <- drawn (Zipf 0.99) 1000 1 200000
    let (statistic, degrees) = chiSquare (weightOf (Zipf 1.03) 1000) 1000 found
    statistic `shouldSatisfy` (> critical degrees)

  it "draws by the other laws (chi-square)" $ do
    fits Uniform 500 200000
    fits (Gaussian 0.1) 400 200000
    fits (HotSet 0.1 0.9) 300 200000
    fits (Latest 0.8) 300 200000

  it "draws the keys in the middle by a bell that is narrower than a key" $ do
    Map.keys <$> drawn (Gaussian 0.0001) 100 1 1000 `shouldReturn` [49, 50]
    Map.keys <$> drawn (Gaussian 0.0001) 99 1 1000 `shouldReturn` [49]

  it "gives the hot share of the keys their share of the draws" $ do
    found <- drawn (HotSet 0.2 0.8) 100 1 100000
    let hot = fromIntegral (sum (Map.filterWithKey (\key _ -> key < 20) found)) / 100000 :: Double
    -- The standard deviation is 0.0013.
    hot `shouldSatisfy` (\share -> abs (share - 0.8) < 0.0065)

  it "goes through all keys in turn, each thread from another place" $ do
    one <- sequenceOf Sequential 100 4 0 200
    other <- sequenceOf Sequential 100 4 1 200
    take 3 one `shouldBe` [0, 1, 2]
    drop 100 one `shouldBe` take 100 one
    Map.size (Map.fromList (map (\key -> (key, ())) (take 100 other))) `shouldBe` 100
    take 1 other `shouldNotBe` take 1 one

  modifyMaxSuccess (const 50) . prop "gives threads parts that share nothing and leave nothing out" $
    forAll (choose (1, 200)) $ \count -> forAll (choose (1, 20)) $ \threads -> ioProperty $ do
      let parts = min threads count
      found <- traverse (\thread -> sequenceOf Disjoint count threads thread (2 * count)) [0 .. parts - 1]
      let keys = map (Map.keys . Map.fromList . map (\key -> (key, ()))) found
      pure (concat keys === [0 .. count - 1])

  prop "draws keys that there are" $
    forAll laws $ \law -> forAll (choose (1, 50)) $ \count -> ioProperty $ do
      keys <- sequenceOf law count 3 2 100
      pure (all (\key -> key >= 0 && key < count) keys)

  prop "reads what it writes" $
    forAll laws $ \law -> parse distribution (describeDistribution law) === Right law

  it "says what it cannot read, and where" $ do
    parse distribution "zipf:-1" `shouldBe` Left "expected an exponent at column 6 of \"zipf:-1\""
    parse distribution "zipf:1x" `shouldBe` Left "cannot read \"x\" at column 7 of \"zipf:1x\""
    parse distribution "hot:0.2:1" `shouldBe` Left "a share is more than 0 and less than 1, at column 10 of \"hot:0.2:1\""
    either lines (const []) (parse distribution "zypf") `shouldSatisfy` ((== 1) . length)
  where
    laws =
      oneof
        [ pure Uniform,
          pure Sequential,
          pure Disjoint,
          elements [Zipf 0.5, Zipf 1, Zipf 2.25],
          elements [Gaussian 0.05, Gaussian 0.5],
          elements [HotSet 0.1 0.9, HotSet 0.5 0.25],
          elements [Latest 0.75, Latest 1.5]
        ]
