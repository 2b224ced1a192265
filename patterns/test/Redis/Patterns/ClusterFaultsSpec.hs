-- | The recipes in a cluster whose slots move and whose primaries die.
module Redis.Patterns.ClusterFaultsSpec (spec) where

import Control.Concurrent.Async
import Control.Concurrent.STM
import Control.Monad (forM_, replicateM, void)
import Data.ByteString (ByteString)
import Redis
import Redis.Patterns.CacheAudit
import Redis.Patterns.Contention
import Redis.Patterns.Election
import Redis.Patterns.RateLimit
import Redis.Patterns.Surroundings
import Redis.TestKit.Cluster
import Test.Hspec

spec :: Spec
spec = do
  describe "while slots move" . aroundAll (withCluster clusterDefaults {clusterPrimaryCount = 2, clusterNodeTimeout = 15000}) $ do
    it "a lock is held by one at a time, with tokens in order" $ \cluster ->
      connected cluster $ \client ->
        contendedWhile client (moving cluster "{lock:many}")
    it "a limiter allows no more than its limit" $ \cluster ->
      connected cluster $ \client -> do
        asked <- async (replicateM 400 (run client (attempt (gcra 150 (seconds 36000)) "moved" 1)))
        moving cluster "moved"
        answers <- wait asked
        length (filter allowed answers) `shouldSatisfy` (<= 150)
    it "a cache returns nothing stale" $ \cluster ->
      connected cluster $ \one -> connected cluster $ \other ->
        audited [one, other] (forM_ ["audited:0", "audited:1", "audited:2"] (moving cluster))

  it "another leads when the primary is killed, in a greater term, and never two" $
    withCluster clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1, clusterNodeTimeout = 1000} $ \cluster ->
      connected cluster $ \client -> do
        slot <- slotOf cluster "{lock:election:leader}"
        asking <- newTVarIO (pure False)
        terms <- newTVarIO []
        let stand name = withCandidate client (election "leader") {electionCandidate = name, electionLease = seconds 1} $ \candidate ->
              whileLeading candidate $ \now leads -> do
                -- The former leader must no longer believe that it leads.
                before' <- readTVarIO asking
                before' `shouldReturn` False
                atomically (writeTVar asking leads >> modifyTVar' terms (now :))
                atomically (leadership candidate >>= check . (/= Just now))
            stand :: ByteString -> IO ()
        withAsync (stand "one") $ \one -> withAsync (stand "two") $ \two -> do
          link one
          link two
          atomically (readTVar terms >>= check . not . null)
          old <- killPrimary cluster slot
          void (awaitNewPrimary cluster slot old)
          atomically (readTVar terms >>= check . (>= 2) . length)
        seen <- reverse <$> readTVarIO terms
        zip seen (drop 1 seen) `shouldSatisfy` all (uncurry (<))

connected :: Cluster -> (Client -> IO a) -> IO a
connected cluster action = clustered cluster >>= (`withClient` action)
