module Tool.ConnectSpec (spec) where

import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Redis (ClientNode (..), Endpoint (..), NodeRole (..))
import Test.Hspec
import Tool.Connect (behind)

-- | The node at this port.
at :: Int -> Endpoint
at = TcpEndpoint "127.0.0.1" . fromIntegral

-- | Two primaries, each with two replicas.
nodes :: [ClientNode]
nodes =
  [ClientNode {clientNodeEndpoint = at port, clientNodeRole = PrimaryNode, clientNodeZone = Nothing} | port <- [1, 2]]
    <> [ ClientNode {clientNodeEndpoint = at port, clientNodeRole = ReplicaNode (at primary), clientNodeZone = Nothing}
         | (port, primary) <- [(11, 1), (12, 1), (21, 2), (22, 2)]
       ]

keys :: [(Int, Int)] -> Map Endpoint Int
keys counts = Map.fromList [(at port, count) | (port, count) <- counts]

spec :: Spec
spec = describe "Tool.Connect" $ do
  let held = keys [(1, 100), (2, 60)]

  it "takes no replicas for complete because all of them together have as many keys as the primaries" $ do
    behind nodes held (keys [(11, 50), (12, 50), (21, 30), (22, 30)])
      `shouldBe` [(50, 100), (50, 100), (30, 60), (30, 60)]
    behind nodes held (keys [(11, 100), (12, 100), (21, 60), (22, 59)]) `shouldBe` [(59, 60)]
    behind nodes held (keys [(11, 100), (12, 100), (21, 60), (22, 60)]) `shouldBe` []

  it "takes a replica that has not said its number of keys for empty" $
    behind nodes held (keys [(11, 100), (12, 100), (21, 60)]) `shouldBe` [(0, 60)]
