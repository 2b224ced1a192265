module Tool.Bench.ReconcileSpec (spec) where

import Data.Map.Strict qualified as Map
import Test.Hspec
import Tool.Bench.Document (Agreement (..))
import Tool.Bench.Reconcile (compareCounts)
import Tool.Connect (CommandCounts (..))

spec :: Spec
spec = describe "Tool.Bench.Reconcile" $ do
  let counts gets sets = CommandCounts (Map.fromList [("get", gets), ("set", sets)])
      earlier = (counts 100 10 <> CommandCounts (Map.fromList [("info", 1)]), mempty)
      grown :: Int -> Int -> (CommandCounts, CommandCounts)
      grown gets sets = (fst earlier <> counts gets sets <> CommandCounts (Map.fromList [("info", 1)]), mempty)
      client = counts 7 3

  it "agrees when the servers counted exactly as much" $
    compareCounts (Right earlier) (Right (grown 7 3)) 0 client `shouldBe` Agrees (countsByName client)

  it "disagrees over a single command, either way" $ do
    compareCounts (Right earlier) (Right (grown 8 3)) 0 client
      `shouldBe` Disagrees (countsByName client) (countsByName (counts 8 3))
    compareCounts (Right earlier) (Right (grown 7 2)) 0 client
      `shouldBe` Disagrees (countsByName client) (countsByName (counts 7 2))

  it "disagrees over common commands that the client never sent" $
    compareCounts (Right earlier) (Right (grown 1 3)) 0 (CommandCounts (Map.fromList [("set", 3)]))
      `shouldBe` Disagrees (countsByName (counts 0 3)) (countsByName (counts 1 3))

  it "counts reads where they ran, and writes on the primaries only, when replicas are read" $ do
    let first = Right (fst earlier, counts 50 10)
    compareCounts first (Right (fst (grown 2 3), counts 55 13)) 0 client `shouldBe` Agrees (countsByName client)
    compareCounts first (Right (fst (grown 2 3), counts 54 13)) 0 client
      `shouldBe` Disagrees (countsByName client) (countsByName (counts 2 3))

  it "counts a subcommand under its command where the server has no count of its own for it" $ do
    let calls name count = CommandCounts (Map.fromList [(name, count)])
    compareCounts (Right (calls "script" 5, mempty)) (Right (calls "script" 8, mempty)) 0 (calls "script|load" 3)
      `shouldBe` Agrees (Map.fromList [("get", 0), ("script|load", 3), ("set", 0)])
    compareCounts (Right (mempty, mempty)) (Right (calls "script|load" 3, mempty)) 0 (calls "script|load" 3)
      `shouldBe` Agrees (Map.fromList [("get", 0), ("script|load", 3), ("set", 0)])

  it "compares nothing after errors, or without statistics, and says why" $ do
    compareCounts (Right earlier) (Right (grown 7 3)) 1 client `shouldSatisfy` notCompared
    compareCounts (Left "no") (Right earlier) 0 client `shouldBe` NotComparable "no"
    compareCounts (Right earlier) (Left "no") 0 client `shouldBe` NotComparable "no"
  where
    notCompared = \case
      NotComparable _ -> True
      _ -> False
