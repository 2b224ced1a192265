-- | Walks over a real cluster while its slots move and its nodes fail over. A walk must see every
-- key that exists throughout.
module ScanSpec (spec) where

import Control.Concurrent.Async (withAsync)
import Control.Monad (forM_, unless, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (traverse_)
import Data.IORef
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Data.Set (Set)
import Data.Set qualified as Set
import Redis
import Redis.Commands qualified as Redis
import Redis.Scan
import Redis.TestKit.Cluster
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait
import Support
import Test.Hspec hiding (after, before)

spec :: Spec
spec = do
  describe "a walk" . aroundAll (withCluster options) $ movingSpec
  -- A cluster of its own: a primary that took over by a planned fail-over is not replaced when it
  -- is killed.
  describe "a walk over a cluster that fails" . aroundAll (withCluster options) $ failingSpec
  where
    options = clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1, clusterNodeTimeout = 1500}

movingSpec :: SpecWith Cluster
movingSpec = do
  it "tells each key of each primary, and each once while nothing moves" $ \cluster ->
    within 30 . connected cluster $ \client -> do
      keys <- stableKeys client "still:" 3000
      told <- foldScan client only {Redis.scanMatch = Just "still:*"} count Map.empty
      told `shouldBe` Map.fromSet (const 1) keys

  it "sees all that stays while slots move to and fro, and writers come and go" $ \cluster ->
    within 120 . connected cluster $ \client -> do
      keys <- stableKeys client "moving:" 4000
      let slots = take 12 (Set.toList (Set.map slotNumberOf keys))
          move n = case drop (n `mod` length slots) slots of
            slot : _ -> do
              primaries <- map fst <$> clusterPrimaries cluster
              forM_ (take 1 (drop (n `mod` length primaries) primaries)) (migrateSlot cluster quietMigration slot)
            [] -> pure ()
      withAsync (churning client) $ \_ -> do
        walk <- walkScan walkDefaults client only {Redis.scanMatch = Just "moving:*", Redis.scanCount = Just 100}
        (pages, seen) <- pulling walk $ \page -> unless (page > 120 || page `mod` 5 /= 0) (move (page `div` 5))
        pages `shouldSatisfy` (> 60)
        missing keys seen

  it "sees all of a slot that stays half moved, without waiting for the rest of it" $ \cluster ->
    within 60 . connected cluster $ \client -> do
      keys <- stableKeys client "{half}:" 200
      source <- slotOf cluster "{half}:1" >>= slotPrimary cluster
      primaries <- map fst <$> clusterPrimaries cluster
      forM_ (take 1 (filter (/= source) primaries)) $ \target -> do
        looked <- newIORef []
        migrateSlot cluster quietMigration {migrationBatch = 50, migrationMoved = \moved -> halfWay client moved >>= \seen -> modifyIORef' looked (seen :)} (slotNumberOf "{half}:1") target
        walks <- readIORef looked
        length walks `shouldBe` 4
        forM_ walks (missing keys)

  it "is gone on with by another client, after slots have moved and primaries failed over" $ \cluster ->
    within 90 . connected cluster $ \client -> do
      keys <- stableKeys client "later:" 3000
      let scanning = only {Redis.scanMatch = Just "later:*", Redis.scanCount = Just 100}
      walk <- walkScan walkDefaults client scanning
      before <- concat <$> mapM (const (fromMaybe [] <$> nextPage walk)) [1 .. 40 :: Int]
      text <- positionText <$> walkPosition walk
      -- Then two of the three shards have another primary.
      moveTo cluster 0 16383
      failOver cluster 16383
      connected cluster $ \other -> do
        let stood = positionFromText text
        fmap positionText stood `shouldBe` Just text
        (pages, after) <- walkScan walkDefaults {walkFrom = stood} other scanning >>= \walk' -> pulling walk' (const (pure ()))
        missing keys (Set.fromList before <> after)
        -- The walk does not repeat everything: it goes on at the nodes to which nothing has
        -- happened.
        (whole, _) <- walkScan walkDefaults other scanning >>= \walk' -> pulling walk' (const (pure ()))
        pages `shouldSatisfy` (< whole)

  it "over a hash sees all that stays in it while its slot moves and its node fails over" $ \cluster ->
    within 60 . connected cluster $ \client -> do
      let fields = [(Char8.pack (show n), "v") | n <- [1 .. 3000 :: Int]]
          slot = slotNumberOf "{large}hash"
      forM_ fields $ \(field, value) -> submit client (raw ["HSET", "{large}hash", field, value])
      run client (Redis.hlen "{large}hash") `shouldReturn` 3000
      walk <- walkHscan walkDefaults client Redis.hscanDefaults {Redis.hscanCount = Just 50} "{large}hash"
      (_, seen) <- pulling walk $ \case
        10 -> moveAway cluster slot
        25 -> failOver cluster slot
        _ -> pure ()
      seen `shouldBe` Set.fromList fields
  where
    count seen key = pure (Map.insertWith (+) key (1 :: Int) seen)
    halfWay client _ = foldScan client only {Redis.scanMatch = Just "{half}:*"} (\seen key -> pure (Set.insert key seen)) Set.empty

failingSpec :: SpecWith Cluster
failingSpec =
  it "sees all that stays while a primary is killed and others are failed over" $ \cluster ->
    within 120 . connected cluster $ \client -> do
      keys <- stableKeys client "failing:" 4000
      withAsync (churning client) $ \_ -> do
        walk <- walkScan walkDefaults client only {Redis.scanMatch = Just "failing:*", Redis.scanCount = Just 100}
        dead <- newIORef Nothing
        (_, seen) <- pulling walk $ \case
          10 -> killPrimary cluster 0 >>= writeIORef dead . Just
          20 -> failOver cluster 16383
          _ -> pure ()
        missing keys seen
        readIORef dead >>= \case
          Nothing -> failure "nobody was killed"
          Just node -> do
            void (awaitNewPrimary cluster 0 node)
            Server.restart (nodeServer node)
            awaitAgreement cluster

only :: Redis.ScanOptions
only = Redis.scanDefaults

connected :: Cluster -> (Client -> IO a) -> IO a
connected cluster action = do
  addresses <- clusterAddresses cluster
  withClient (liveConfig addresses) action

-- Writes the keys and waits until the replicas have them.
stableKeys :: Client -> ByteString -> Int -> IO (Set ByteString)
stableKeys client prefix total = do
  written <- mapM (\key -> submit client (Redis.set key "v")) keys
  mapM_ awaitReply written
  forM_ (Map.elems (Map.fromList [(slotNumberOf key `div` 64, key) | key <- keys])) $ \key ->
    withDedicated client (AtKey key) $ \own -> runOn own (Redis.set key "v") *> runOn own (raw ["WAIT", "1", "5000"])
  pure (Set.fromList keys)
  where
    keys = [prefix <> Char8.pack (show n) | n <- [1 .. total]]

-- Sets and deletes other keys.
churning :: Client -> IO ()
churning client = forM_ (cycle [1 .. 5000 :: Int]) $ \n -> do
  let key = "churn:" <> Char8.pack (show n)
  void (tryRun client (Redis.set key "v"))
  void (tryRun client (raw ["DEL", key]))

-- Reads the rest of the walk. Returns the number of pages and the items. The action runs after each
-- page.
pulling :: Ord item => Walk item -> (Int -> IO ()) -> IO (Int, Set item)
pulling walk happens = go 0 Set.empty
  where
    go pages seen =
      nextPage walk >>= \case
        Nothing -> pure (pages, seen)
        Just page -> do
          happens (pages + 1)
          go (pages + 1) (foldr Set.insert seen page)

missing :: Set ByteString -> Set ByteString -> IO ()
missing keys seen = Set.toList (keys `Set.difference` seen) `shouldBe` []

-- Has the primary of this slot replaced by its replica.
failOver :: Cluster -> Int -> IO ()
failOver cluster slot = slotPrimary cluster slot >>= replicasOf cluster >>= traverse_ (failover cluster) . take 1

-- Moves a slot to the primary of another slot.
moveTo :: Cluster -> Int -> Int -> IO ()
moveTo cluster slot other = slotPrimary cluster other >>= migrateSlot cluster quietMigration slot

moveAway :: Cluster -> Int -> IO ()
moveAway cluster slot = do
  source <- slotPrimary cluster slot
  primaries <- map fst <$> clusterPrimaries cluster
  forM_ (take 1 (filter (/= source) primaries)) (migrateSlot cluster quietMigration slot)
