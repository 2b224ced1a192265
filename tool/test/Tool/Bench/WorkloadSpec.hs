module Tool.Bench.WorkloadSpec (spec) where

import Control.Monad (replicateM)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.Map.Strict qualified as Map
import Data.Set qualified as Set
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck
import Tool.Bench.Workload
import Tool.Options.Bench

data Drawn = DrawnGet ByteString | DrawnSet ByteString ByteString
  deriving stock (Eq, Show)

take' :: Int -> Int -> Workload -> IO [Drawn]
take' size worker workload = do
  stream <- newStream workload worker
  replicateM size $
    draw workload stream (pure . DrawnGet) (\key value -> pure (DrawnSet key value))

keyOf :: Drawn -> ByteString
keyOf = \case
  DrawnGet key -> key
  DrawnSet key _ -> key

isSet :: Drawn -> Bool
isSet = \case
  DrawnGet _ -> False
  DrawnSet _ _ -> True

spec :: Spec
spec = describe "Tool.Bench.Workload" $ do
  it "draws the same commands again from the same seed" $ do
    let load = defaultLoad {loadSeed = 42}
    one <- take' 1000 3 (newWorkload OperationMixed load)
    other <- take' 1000 3 (newWorkload OperationMixed load)
    one `shouldBe` other

  it "draws other commands for another worker, and from another seed" $ do
    let workload = newWorkload OperationMixed defaultLoad
    one <- take' 100 0 workload
    neighbour <- take' 100 1 workload
    reseeded <- take' 100 0 (newWorkload OperationMixed defaultLoad {loadSeed = 2})
    one `shouldNotBe` neighbour
    one `shouldNotBe` reseeded

  it "names keys as redis-benchmark does when their size is the same" $ do
    let workload = newWorkload OperationGet defaultLoad
    workloadKey workload 0 `shouldBe` "key:000000000000"
    workloadKey workload 99999 `shouldBe` "key:000000099999"

  prop "makes different keys of exactly the wanted size" $
    forAll (choose (1, 3000)) $ \keys -> forAll (choose (0, 40)) $ \spare ->
      let size = length (show (keys - 1)) + spare
          workload = newWorkload OperationGet defaultLoad {loadKeys = keys, loadKeySize = size}
          names = map (workloadKey workload) [0 .. keys - 1]
       in workloadKeys workload === keys
            .&&. Set.size (Set.fromList names) === keys
            .&&. all ((== size) . ByteString.length) names

  prop "makes values of exactly the wanted size" $
    forAll (choose (0, 5000)) $ \size choice ->
      ByteString.length (workloadValue (newWorkload OperationSet defaultLoad {loadKeys = 1, loadValueSize = size}) choice)
        === size

  it "sends only GETs, only SETs, or one SET in five" $ do
    let shareOfSets operation = do
          drawn <- take' 50000 0 (newWorkload operation defaultLoad)
          pure (fromIntegral (length (filter isSet drawn)) / 50000 :: Double)
    shareOfSets OperationGet `shouldReturn` 0
    shareOfSets OperationSet `shouldReturn` 1
    -- The standard deviation of this share is 0.0018.
    mixed <- shareOfSets OperationMixed
    mixed `shouldSatisfy` (\share -> abs (share - 0.2) < 0.009)

  it "draws all keys equally often, whatever the command" $ do
    let load = defaultLoad {loadKeys = 100}
    drawn <- take' 100000 0 (newWorkload OperationMixed load)
    let chiSquare wanted =
          let chosen = filter wanted drawn
              expected = fromIntegral (length chosen) / 100 :: Double
              held = Map.fromListWith (+) [(keyOf one, 1) | one <- chosen]
           in (Map.size held, sum [(seen - expected) ^ (2 :: Int) / expected | seen <- Map.elems held])
    -- 99 degrees of freedom: above 180 once in a million.
    chiSquare isSet `shouldSatisfy` (\(held, statistic) -> held == 100 && statistic < 180)
    chiSquare (not . isSet) `shouldSatisfy` (\(held, statistic) -> held == 100 && statistic < 180)
