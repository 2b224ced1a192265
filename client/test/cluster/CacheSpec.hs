-- | The cache in a cluster, while slots move and nodes fail over.
module CacheSpec (spec) where

import Control.Concurrent.STM
import Control.Monad (forM_, replicateM_, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict qualified as Map
import FakeNode
import Redis
import Redis.Cache
import Redis.CacheAudit
import Redis.Commands qualified as Redis
import Redis.TestKit.Cluster
import Redis.TestKit.Command (CommandCalls (..), Reply (..))
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait
import Support hiding (Audit (..))
import Test.Hspec hiding (after, before)

spec :: Spec
spec = do
  describe "what was read of a cluster to be kept" . aroundAll (withCluster options) $ do
    it "is kept for each key, where it is, and read from the primary, wherever reads go" $ \cluster ->
      limited . settled . connected (setReadFrom PreferReplica) cluster $ \client -> do
        let keys = "k0" :| ["k" <> decimal number | number <- [1 .. 50]]
        forM_ keys $ \key -> run client (Redis.set key key)
        before <- gets cluster
        replicateM_ 3 $ forM_ keys $ \key -> cached client (Redis.get key) `shouldReturn` Just key
        after <- gets cluster
        after - before `shouldBe` 51
        replicateM_ 3 $ cached client (Redis.mget keys) `shouldReturn` map Just (foldr (:) [] keys)
        gauges <- cacheGauges client
        (cacheMisses gauges, cacheKept gauges) `shouldBe` (102, 102)
        -- A node sends invalidations for its own keys only, so each node must be tracked.
        forM_ keys $ \key -> run client (Redis.set key "new")
        forM_ keys $ \key -> eventuallyReturns 5 (Just "new") (cached client (Redis.get key))

    it "is not used when its slot has been elsewhere, though it is back" $ \cluster ->
      limited . settled . connected id cluster $ \client -> do
        let key = "away"
            slot = slotNumberOf key
        home <- slotPrimary cluster slot
        other <- maybe (failure "a second primary") pure . lookup True . map (\(node, _) -> (node /= home, node)) =<< clusterPrimaries cluster
        forM_ [1 .. 3 :: Int] $ \turn -> do
          run client (Redis.set key (decimal turn))
          eventuallyReturns 5 (Just (decimal turn)) (cached client (Redis.get key))
          migrateSlot cluster quietMigration slot other
          run client (Redis.set key "away")
          eventuallyReturns 5 (Just "away") (cached client (Redis.get key))
          migrateSlot cluster quietMigration slot home
          run client (Redis.set key "back")
          eventuallyReturns 5 (Just "back") (cached client (Redis.get key))

    it "is soon the last version, and never an earlier one again, while slots move" $ \cluster ->
      within 60 . settled . connected (setMaxAttempts 100 . setCommandTimeout (Just (seconds 8))) cluster $ \client -> do
        let keys = ["{mv}" <> decimal number | number <- [1 .. 4]]
            slot = slotNumberOf "{mv}"
        home <- slotPrimary cluster slot
        primaries <- map fst <$> clusterPrimaries cluster
        audit <- watching cluster keys $ \watch ->
          auditedReads client watch $
            forM_ (filter (/= home) primaries <> [home]) (migrateSlot cluster quietMigration slot)
        auditWrong audit `shouldBe` []
        auditFailures audit `shouldBe` []
        cacheHits <$> cacheGauges client >>= (`shouldSatisfy` (> 100))

    it "is soon the last version, and never an earlier one again, when a replica takes over" $ \cluster ->
      within 60 . settled . connected (setMaxAttempts 100) cluster $ \client -> do
        let keys = ["{fo}" <> decimal number | number <- [1 .. 4]]
        audit <- watching cluster keys $ \watch ->
          auditedReads client watch . replicateM_ 2 $ do
            primary <- slotPrimary cluster (slotNumberOf "{fo}")
            replicas <- replicasOf cluster primary
            mapM_ (failover cluster) (take 1 replicas)
        auditWrong audit `shouldBe` []
        cacheHits <$> cacheGauges client >>= (`shouldSatisfy` (> 100))

  describe "what was read of a cluster to be kept" . aroundAll (withCluster options) $
    it "is soon the last version, when a primary is killed and its replica takes over" $ \cluster ->
      within 60 . settled . connected (setMaxAttempts 200 . setCommandTimeout (Just (seconds 8))) cluster $ \client -> do
        let keys = ["{kill}" <> decimal number | number <- [1 .. 4]]
            slot = slotNumberOf "{kill}"
        audit <- watching cluster keys $ \watch ->
          auditedReads client watch {watchForgets = True} $ do
            old <- killPrimary cluster slot
            void (awaitNewPrimary cluster slot old)
            eventually 10 "the slot is served" (either (const False) (const True) <$> tryRun client (Redis.get "{kill}1"))
            Server.restart (nodeServer old)
            awaitAgreement cluster
        auditWrong audit `shouldBe` []
        flushes <- cacheFlushes <$> cacheGauges client
        flushes `shouldSatisfy` (>= 1)
        -- Whatever was lost: the cache now agrees with the servers.
        forM_ keys $ \key -> do
          there <- run client (Redis.get key)
          eventuallyReturns 5 there (cached client (Redis.get key))

  -- Real servers report keys that leave or come, which would hide it if the client did not look at the map.
  it "what was read of a cluster to be kept is read again when its slot has been elsewhere, though its node has reported nothing" $
    limited . settled . withTwoNodes $ \a b -> do
      let config = setRefreshInterval (seconds 0.2) . setProtocol PreferResp3 . clusterOf $ map fakeEndpoint [a, b]
          -- Who leaves the map loses its connections, and all that was read from it is dropped.
          lowerAt node = mapM_ (`setView` shardsView [shard [(0, 8191)] node, shard [(8192, 12287)] a, shard [(12288, 16383)] b]) [a, b]
          key = keyIn "key" (< 8192)
          readsOf node = countHeard node ["GET"]
          comesFrom node client = eventuallyReturns 20 (Just (decimal (fakePort node))) (cached client (Redis.get key))
      lowerAt a
      withClient (setCaching (Just cachingDefaults) config) $ \client -> do
        -- The first reads may go another way, because no map is known yet.
        replicateM_ 5 $ comesFrom a client
        asked <- readsOf a
        comesFrom a client
        readsOf a `shouldReturn` asked
        lowerAt b
        comesFrom b client
        lowerAt a
        comesFrom a client
        readsOf a `shouldReturn` asked + 1

  -- The node that a slot leaves does not have the key, so it reports no change of it.
  it "that there is no such key is not kept when a write of it was sent elsewhere, because its slot moves" $
    limited . settled . withTwoNodes $ \a b -> do
      moves <- newTVarIO False
      let key = "key"
          elsewhere = Just (Say (Failed ("ASK " <> decimal (slotNumberOf key) <> " " <> fakeAddress b)))
      setScript a $ \_ words' -> case take 1 words' of
        ["GET"] -> (\moving -> if moving then elsewhere else Just (Say Nil)) <$> readTVarIO moves
        ["SET"] -> elsewhere <$ atomically (writeTVar moves True)
        _ -> pure Nothing
      setScript b $ \_ words' -> pure (if take 1 words' == ["GET"] then Just (Say (Text "new")) else Nothing)
      withClient (setCaching (Just cachingDefaults) (setProtocol PreferResp3 (clusterOf [fakeEndpoint a]))) $ \client -> do
        -- The first read may go another way, because no map is known yet.
        replicateM_ 2 $ cached client (Redis.get key) `shouldReturn` Nothing
        asked <- countHeard a ["GET"]
        cached client (Redis.get key) `shouldReturn` Nothing
        countHeard a ["GET"] `shouldReturn` asked
        run client (Redis.set key "new")
        cached client (Redis.get key) `shouldReturn` Just "new"
  where
    options = clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1, clusterNodeTimeout = 1500}

    connected change cluster action = do
      addresses <- clusterAddresses cluster
      withClient (change (setCaching (Just cachingDefaults) (liveConfig addresses))) action

    watching cluster keys action = do
      addresses <- clusterAddresses cluster
      withClient (setMaxAttempts 100 (liveConfig addresses)) $ \writer ->
        action
          Watch
            { watchKeys = keys,
              watchReaders = 3,
              watchAge = 3600,
              watchPace = 0.01,
              watchWrite = \key version -> either (const False) (const True) <$> tryRun writer (Redis.set key (decimal version)),
              watchForgets = False
            }

    cached :: Client -> Command a -> IO a
    cached client = runCached client (seconds 3600)

    gets cluster = do
      nodes <- clusterNodes cluster
      sum <$> mapM (fmap (maybe 0 callsRun . Map.lookup "get") . Server.commandStatistics . nodeServer) nodes

    decimal :: Int -> ByteString
    decimal = Char8.pack . show
