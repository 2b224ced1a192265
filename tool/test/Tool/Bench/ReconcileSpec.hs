module Tool.Bench.ReconcileSpec (spec) where

import Test.Hspec
import Tool.Bench.Counts (CommandCounts (..), countsByName)
import Tool.Bench.Document (Agreement (..))
import Tool.Bench.Reconcile (compareCounts)

spec :: Spec
spec = describe "Tool.Bench.Reconcile" $ do
  let earlier = CommandCounts {countGets = 100, countSets = 10}
      grownBy gets sets = earlier <> CommandCounts gets sets
      client = CommandCounts {countGets = 7, countSets = 3}

  it "agrees when the servers counted exactly as much" $
    compareCounts (Right earlier) (Right (grownBy 7 3)) 0 client `shouldBe` Agrees (countsByName client)

  it "disagrees over a single command, either way" $ do
    compareCounts (Right earlier) (Right (grownBy 8 3)) 0 client
      `shouldBe` Disagrees (countsByName client) (countsByName (CommandCounts 8 3))
    compareCounts (Right earlier) (Right (grownBy 7 2)) 0 client
      `shouldBe` Disagrees (countsByName client) (countsByName (CommandCounts 7 2))

  it "compares nothing after errors, or without statistics, and says why" $ do
    compareCounts (Right earlier) (Right (grownBy 7 3)) 1 client `shouldSatisfy` notCompared
    compareCounts (Left "no") (Right earlier) 0 client `shouldBe` NotComparable "no"
    compareCounts (Right earlier) (Left "no") 0 client `shouldBe` NotComparable "no"
  where
    notCompared = \case
      NotComparable _ -> True
      _ -> False
