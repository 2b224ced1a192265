-- | What a cluster tells a client without being asked, and what a client shows of itself.
module LookingSpec (spec) where

import Control.Concurrent.STM
import Data.ByteString (ByteString)
import FakeNode
import Redis
import Redis.Commands qualified as Redis
import Redis.Metrics
import Redis.Subscription (shardChannel, withSubscription)
import Redis.TestKit.Cluster
import Redis.TestKit.Wait
import Support
import Test.Hspec

spec :: Spec
spec = do
  describe "a subscription to a shard channel" $
    it "that a node ends, because its slot has moved, has the map asked for again" $
      within 60 . settled . withCluster clusterDefaults {clusterPrimaryCount = 2} $ \cluster -> do
        let channel = "news" :: ByteString
            slot = slotNumberOf channel
        maps <- newTVarIO (0 :: Int)
        addresses <- clusterAddresses cluster
        let heardOf = \case
              TopologyChanged _ -> atomically (modifyTVar' maps (+ 1))
              _ -> pure ()
            config = setHooks noHooks {hookConnection = Just heardOf} . setCommandTimeout Nothing $ liveConfig addresses
        withClient config $ \client -> do
          home <- slotPrimary cluster slot
          others <- filter (/= home) . map fst <$> clusterPrimaries cluster
          -- A command before the map is known would make the client ask for the map once more.
          eventually 5 "the map is known" $ (> 0) <$> readTVarIO maps
          run client (Redis.set channel "1")
          known <- readTVarIO maps
          withSubscription client (shardChannel channel) $ \_ -> do
            mapM_ (migrateSlot cluster quietMigration slot) (take 1 others)
            -- The client has sent no command there since, so only the end can have told it.
            eventually 5 "the client has another map" $ (> known) <$> readTVarIO maps

  describe "gauges of a cluster" $
    it "show the connections for reads from replicas, and those lent out" $
      limited . settled . withTwoNodes $ \a b -> do
        mapM_ (`setView` replicated a b) [a, b]
        withClient (preferringReplicas [fakeEndpoint a]) $ \client -> do
          _ <- run client (Redis.get "key")
          run client (Redis.set "key" "value")
          withDedicated client (AtKey "key") $ \_ -> do
            gauges <- snapshotNodes <$> clientSnapshot client
            [(gaugeEndpoint each, length (gaugeConnections each), length (gaugeReplicaConnections each), gaugeLent (gaugeDedicated each)) | each <- gauges]
              `shouldMatchList` [(fakeEndpoint a, 1, 0, 1), (fakeEndpoint b, 0, 1, 0)]
