-- | The choice of a capability for a connection.
module SpreadSpec (spec) where

import Data.Foldable (toList)
import Data.List.NonEmpty (NonEmpty (..))
import Data.List.NonEmpty qualified as NonEmpty
import Rest.Spread (capabilityFor)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "spread" $ do
  it "gives one capability sixteen connections before the next has any" $
    map toList (take 33 (states 2)) `shouldBe` [[n, 0] | n <- [0 .. 16]] <> [[16, n] | n <- [1 .. 16]]

  it "shares the others out evenly" $
    toList (states 4 !! 100) `shouldBe` [25, 25, 25, 25]

  prop "chooses one that has fewest, or one that has few" $ \(Positive first) others ->
    let held = first :| map getNonNegative others
        chosen = held NonEmpty.!! capabilityFor held
     in chosen === minimum held .||. property (chosen < 16)

-- | The connections of each capability, as connections arrive.
states :: Int -> [NonEmpty Int]
states capabilities = iterate (\held -> NonEmpty.zipWith (\number count -> if number == capabilityFor held then count + 1 else count) (0 :| [1 ..]) held) (0 :| replicate (capabilities - 1) 0)
