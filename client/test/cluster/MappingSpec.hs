-- | A cluster whose nodes cannot be reached at the addresses that they announce. They announce
-- a name that nobody can look up; proxies at other ports lead to them.
module MappingSpec (spec) where

import Control.Exception (finally)
import Control.Monad (forM, forM_, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (traverse_)
import Data.IORef
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import FakeNode
import Redis
import Redis.Commands qualified as Redis
import Redis.Metrics (ClientSnapshot (..), NodeSnapshot (..), clientSnapshot)
import Redis.Subscription qualified as Subscription
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Cluster
import Redis.TestKit.Command (Reply (..), replyText)
import Redis.TestKit.Group (groupDefaults, primaryOf, withGroup)
import Redis.TestKit.Group qualified as Group
import Redis.TestKit.Proxy (Proxy)
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (ServerOptions (optionsConfig), serverDefaults)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait
import Support
import Test.Hspec hiding (after, before)

spec :: Spec
spec = do
  describe "a cluster that announces addresses that nobody reaches" . aroundAll (withCluster options . hidden) $ do
    it "is of no use without a mapping" $ \(_, tunnels) ->
      limited . withClient (seedOf tunnels) $ \client -> do
        problem <- tryRun client (Redis.get "mapped:1") >>= expectError . void
        errorDelivery problem `shouldBe` NotSent

    it "is used through the mapping alone: keys of all slots, replicas, nodes by name" $ \(cluster, tunnels) ->
      limited . settled . mapped id tunnels $ \client -> do
        runPipeline client (traverse_ (\key -> pipelined (Redis.set key key)) keys)
        runPipeline client (traverse (pipelined . Redis.get) keys) `shouldReturn` map Just keys
        eventually 20 "it knows all six" ((== 6) . length <$> clientNodes client)
        eventually 10 "replicas have it" $ (== map Just keys) <$> runPipeline client (traverse (pipelined . readFrom PreferReplica . Redis.get) keys)
        nodes <- map clientNodeEndpoint <$> clientNodes client
        List.sort nodes `shouldBe` List.sort (Map.elems tunnels)
        ids <- forM nodes $ \node -> run client (onNode node (raw ["CLUSTER", "MYID"]))
        length (List.nub ids) `shouldBe` 6
        used <- map gaugeEndpoint . snapshotNodes <$> clientSnapshot client
        filter (`notElem` nodes) used `shouldBe` []
        primaries <- length <$> clusterPrimaries cluster
        run client (onEvery Primaries Redis.dbsize) >>= (`shouldBe` primaries) . Map.size

    it "is followed by MOVED and ASK to where the mapping says" $ \(cluster, tunnels) ->
      within 60 . settled . mapped (setRefreshInterval (seconds 60)) tunnels $ \client -> do
        let key = "{mapped}moved"
            slot = slotNumberOf key
        run client (Redis.set key "1")
        home <- slotPrimary cluster slot
        target <- maybe (failure "a second primary") pure . List.find (/= home) . map fst =<< clusterPrimaries cluster
        -- A key that does not exist is answered by ASK, so the client asks for it at the target.
        let absent = run client (Redis.get "{mapped}absent") `shouldReturn` Nothing
        asked <- newIORef (0 :: Int)
        audit <- audited client "mapped" 3 $ do
          migrateSlot cluster quietMigration {migrationMarked = absent >> modifyIORef asked (+ 1), migrationEmptied = run client (Redis.get key) `shouldReturn` Just "1"} slot target
          run client (Redis.get key) `shouldReturn` Just "1"
          migrateSlot cluster quietMigration {migrationMarked = absent >> modifyIORef asked (+ 1)} slot home
        readIORef asked `shouldReturn` 2
        auditFailed audit `shouldBe` []
        verifyCounters client audit

    it "is listened to through the mapping, when the slot of a channel moves, too" $ \(cluster, tunnels) ->
      within 60 . mapped id tunnels $ \client ->
        Subscription.withSubscription client (Subscription.shardChannel "mapped") $ \subscription -> do
          let slot = slotNumberOf "mapped"
              hears payload = do
                eventually 20 "somebody listens" $ (> 0) <$> run client (Redis.spublish "mapped" payload)
                within 20 (untilHeard payload)
              untilHeard payload =
                Subscription.nextEvent subscription >>= \case
                  Subscription.Message message | Subscription.messagePayload message == payload -> pure ()
                  _ -> untilHeard payload
          hears "before"
          home <- slotPrimary cluster slot
          target <- maybe (failure "a second primary") pure . List.find (/= home) . map fst =<< clusterPrimaries cluster
          migrateSlot cluster quietMigration slot target
          hears "after"
          migrateSlot cluster quietMigration slot home

    it "is followed through a fail-over" $ \(cluster, tunnels) ->
      within 90 . mapped (setCommandTimeout (Just (seconds 15)) . setMaxAttempts 1000) tunnels $ \client -> do
        let slot = slotNumberOf "mapped:1"
        old <- slotPrimary cluster slot
        audit <- audited client "over" 3 $ do
          void (killPrimary cluster slot)
          void (awaitNewPrimary cluster slot old)
          run client (Redis.set "mapped:1" "after")
          run client (Redis.get "mapped:1") `shouldReturn` Just "after"
        verifyNoneTwice client audit
        Server.restart (nodeServer old)
        awaitAgreement cluster

  describe "a mapping" $ do
    it "is given what redirects name, too, and a server's own host when it names none" $
      limited . settled . withTwoNodes $ \a b -> do
        let named = Char8.pack ("far.invalid:" <> show (fakePort b + 1))
        setScript a $ \_ words' -> pure $ case words' of
          "GET" : _ -> Just (Say (Failed ("MOVED " <> Char8.pack (show (slotNumberOf "key")) <> " " <> named)))
          "SET" : _ -> Just (Say (Failed ("ASK " <> Char8.pack (show (slotNumberOf "key")) <> " " <> Char8.pack (":" <> show (fakePort b + 1)))))
          _ -> Nothing
        let lead endpoint = case endpoint of
              TcpEndpoint _ port | fromIntegral port == fakePort b + 1 -> fakeEndpoint b
              _ -> endpoint
        withClient (setAddressMapping lead (clusterOf [fakeEndpoint a])) $ \client -> do
          run client (Redis.set "key" "1")
          run client (Redis.get "key") `shouldReturn` Just (Char8.pack (show (fakePort b)))
          countHeard b ["ASKING"] `shouldReturn` 1

    it "is given what a primary with replicas and what its replicas say of each other" $
      limited . withGroup groupDefaults $ \group -> do
        servers <- (:) <$> primaryOf group <*> Group.replicasOf group
        proxies <- forM servers (Proxy.startProxy . Server.serverAddress)
        flip finally (mapM_ Proxy.disposeProxy proxies) $ do
          let ways = zip (map (addressEndpoint . Server.serverAddress) servers) (map (addressEndpoint . Proxy.proxyAddress) proxies)
              lead named = fromMaybe named (lookup named ways)
          forM_ (take 1 (reverse ways)) $ \(_, seed) ->
            withClient (setAddressMapping lead (setReadFrom PreferReplica (setRefreshInterval (seconds 0.3) (impatient (groupConfig (seed :| [])))))) $ \client -> do
              run client (Redis.set "key" "value")
              eventually 10 "a replica has it" $ (== Just "value") <$> run client (Redis.get "key")
              eventually 10 "all are known by where they are reached" $
                (== List.sort (map snd ways)) . List.sort . map clientNodeEndpoint <$> clientNodes client
              used <- map gaugeEndpoint . snapshotNodes <$> clientSnapshot client
              filter (`notElem` map snd ways) used `shouldBe` []

    it "that throws changes nothing, and ends nothing" $
      limited . settled . withTwoNodes $ \a b -> do
        setScript a $ \_ words' -> pure $ case words' of
          "GET" : _ -> Just (Say (Failed ("MOVED " <> Char8.pack (show (slotNumberOf "key")) <> " " <> fakeAddress b)))
          _ -> Nothing
        withClient (setAddressMapping (\_ -> error "no such address") (clusterOf [fakeEndpoint a])) $ \client -> do
          run client (Redis.get "key") `shouldReturn` Just (Char8.pack (show (fakePort b)))
          run client (Redis.get "key") `shouldReturn` Just (Char8.pack (show (fakePort b)))
  where
    options = clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1, clusterNodeTimeout = 1500, clusterServer = serverDefaults {optionsConfig = announcing}}
    announcing = ["cluster-announce-hostname " <> Char8.unpack nameless, "cluster-preferred-endpoint-type hostname"]

keys :: [ByteString]
keys = ["mapped:" <> Char8.pack (show n) | n <- [1 .. 60 :: Int]]

-- The address of the proxy that leads to each node, by the name and the port that the node announces.
type Tunnels = Map Endpoint Endpoint

-- The name that every node announces. It has no host.
nameless :: ByteString
nameless = "node.invalid"

-- Gives the action the proxies' addresses, once every node knows that all announce the name.
hidden :: ((Cluster, Tunnels) -> IO a) -> Cluster -> IO a
hidden action cluster = do
  nodes <- clusterNodes cluster
  proxies <- forM nodes (Proxy.startProxy . nodeAddress)
  flip finally (mapM_ Proxy.disposeProxy proxies) $ do
    eventually 20 "every node knows every name" $ do
      told <- forM nodes $ \node -> Server.command (nodeServer node) ["CLUSTER", "SLOTS"]
      pure (all ((== length nodes) . length . filter (== nameless) . names) told)
    action (cluster, Map.fromList (zipWith tunnel nodes proxies))
  where
    names = \case
      List replies -> concatMap names replies
      reply -> maybe [] pure (replyText reply)
    tunnel :: Node -> Proxy -> (Endpoint, Endpoint)
    tunnel node proxy = (TcpEndpoint nameless (portOf (nodeAddress node)), addressEndpoint (Proxy.proxyAddress proxy))
    portOf = \case
      TcpAddress _ port -> fromIntegral port
      UnixAddress _ -> 0

seedOf :: Tunnels -> Config
seedOf tunnels = case Map.elems tunnels of
  first : rest -> impatient (clusterConfig (first :| rest))
  [] -> liveConfig []

mapped :: (Config -> Config) -> Tunnels -> (Client -> IO a) -> IO a
mapped change tunnels = withClient (change (setAddressMapping (\named -> Map.findWithDefault named named tunnels) (setRefreshInterval (seconds 0.5) (seedOf tunnels))))
