module Redis.TestKit.ClusterSpec (spec) where

import Control.Exception (try)
import Control.Monad (forM, forM_)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (modifyIORef', newIORef, readIORef)
import Data.List (sort)
import Redis.TestKit.Address (renderAddress)
import Redis.TestKit.Certificates
import Redis.TestKit.Cluster
import Redis.TestKit.Cluster.View
import Redis.TestKit.Command
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait
import Test.Hspec

spec :: Spec
spec = do
  it "reads CLUSTER NODES" $
    parseNodes
      "aaa 127.0.0.1:7000@17000,host myself,master - 0 0 3 connected 0-5 7 [93->-bbb]\nbbb 127.0.0.1:7001@17001 slave aaa 0 5 3 disconnected\n"
      `shouldBe` [ NodeView "aaa" "127.0.0.1:7000" ["myself", "master"] Nothing 3 True [(0, 5), (7, 7)],
                   NodeView "bbb" "127.0.0.1:7001" ["slave"] (Just "aaa") 3 False []
                 ]

  aroundAll (withCluster clusterDefaults {clusterPrimaryCount = 3}) $ do
    it "covers every slot" $ \cluster -> do
      primaries <- clusterPrimaries cluster
      sort (concatMap snd primaries)
        `shouldBe` [(0, 5460), (5461, 10921), (10922, 16383)]

    it "consists of its nodes, each of an epoch of its own, from the start" $ \cluster -> do
      nodes <- clusterNodes cluster
      views <- mapM viewOf nodes
      forM_ views $ \view -> do
        sort (map viewId view) `shouldBe` sort (map nodeId nodes)
        sort (map viewEpoch view) `shouldBe` [1, 2, 3]

    it "says what its nodes say when they do not agree in time" $ \cluster -> do
      nodes <- clusterNodes cluster
      owner <- slotPrimary cluster 0
      text <-
        try (awaitNewPrimary (withClusterTimeout 0 cluster) 0 owner) >>= \case
          Left (TestKitFailure text) -> pure text
          Right node -> failure ("nobody was promoted, and yet: " <> show node)
      text `shouldContain` "slot 0 has a new primary"
      forM_ nodes $ \node -> text `shouldContain` ("\n" <> show node <> "\n")
      text `shouldContain` " myself,master "
      text `shouldContain` "Cluster state changed: ok"

    it "redirects with MOVED to the node it names" $ \cluster -> do
      slot <- slotOf cluster "key"
      owner <- slotPrimary cluster slot
      others <- filter (/= owner) <$> clusterNodes cluster
      forM_ others $ \other ->
        ask other ["SET", "key", "value"]
          `shouldReturn` Failed ("MOVED " <> showBytes slot <> " " <> addressOf owner)
      ask owner ["SET", "key", "value"] `shouldReturn` Status "OK"

    it "moves a slot with its keys and shows every step" $ \cluster -> do
      slot <- slotOf cluster "{tag}"
      source <- slotPrimary cluster slot
      others <- filter (/= source) <$> clusterNodes cluster
      target <- case others of
        other : _ -> pure other
        [] -> failure "no other node"
      let keys = [Char8.pack ("{tag}" <> show n) | n <- [1 .. 25 :: Int]]
      forM_ keys $ \key -> ask source ["SET", key, key]
      seen <- newIORef []
      let note step = modifyIORef' seen (<> [step])
          missing = ask source ["GET", "{tag}missing"]
      migrateSlot
        cluster
        quietMigration
          { migrationMarked = missing >>= note,
            migrationMoved = \count ->
              if count == 10
                then ask source ("MGET" : keys) >>= note
                else pure (),
            migrationEmptied = do
              refused <- ask target ["GET", "{tag}1"]
              note refused
              withNode target $ \connection -> do
                _ <- request connection ["ASKING"]
                request connection ["GET", "{tag}1"] >>= note
          }
        slot
        target
      let ask' = Failed ("ASK " <> showBytes slot <> " " <> addressOf target)
          moved = Failed ("MOVED " <> showBytes slot <> " " <> addressOf source)
      readIORef seen >>= \case
        [marked, part, refused, asked] -> do
          marked `shouldBe` ask'
          part `shouldSatisfy` isError "TRYAGAIN"
          refused `shouldBe` moved
          asked `shouldBe` Text "{tag}1"
        other -> expectationFailure (show other)
      slotPrimary cluster slot `shouldReturn` target
      values <- forM keys $ \key -> ask target ["GET", key]
      values `shouldBe` map Text keys

    it "adds a primary, gives it a slot, and removes it again" $ \cluster -> do
      home <- slotPrimary cluster 100
      node <- addPrimary cluster
      migrateSlot cluster quietMigration 100 node
      slotPrimary cluster 100 `shouldReturn` node
      removeNode cluster node `shouldThrow` \(_ :: TestKitFailure) -> True
      migrateSlot cluster quietMigration 100 home
      removeNode cluster node
      nodes <- clusterNodes cluster
      nodes `shouldNotContain` [node]
      forM_ nodes $ \other -> (length <$> viewOf other) `shouldReturn` length nodes

  aroundAll
    ( withCluster
        clusterDefaults
          { clusterPrimaryCount = 3,
            clusterReplicasPerPrimary = 1,
            clusterNodeTimeout = 1000,
            clusterServer = Server.serverDefaults {Server.optionsPassword = Just "secret"}
          }
    )
    $ do
      it "promotes a replica by a planned fail-over" $ \cluster -> do
        primary <- slotPrimary cluster 0
        replicas <- replicasOf cluster primary
        replica <- case replicas of
          [one] -> pure one
          other -> failure ("not one replica: " <> show other)
        failover cluster replica
        slotPrimary cluster 0 `shouldReturn` replica
        replicasOf cluster replica `shouldReturn` [primary]

      it "promotes a replica when the primary is killed, who returns as a replica" $ \cluster -> do
        dead <- killPrimary cluster 0
        promoted <- awaitNewPrimary cluster 0 dead
        promoted `shouldNotBe` dead
        Server.restart (nodeServer dead)
        awaitAgreement cluster
        replicasOf cluster promoted `shouldReturn` [dead]

      it "adds a replica" $ \cluster -> do
        primary <- slotPrimary cluster 16383
        replica <- addReplica cluster primary
        replicas <- replicasOf cluster primary
        replicas `shouldContain` [replica]

  it "announces the proxies to clients" $
    withCluster clusterDefaults {clusterPrimaryCount = 3, clusterProxies = True} $ \cluster -> do
      slot <- slotOf cluster "key"
      owner <- slotPrimary cluster slot
      Proxy.proxyAddress <$> nodeProxy owner `shouldBe` Just (nodeAddress owner)
      others <- filter (/= owner) <$> clusterNodes cluster
      forM_ others $ \other ->
        ask other ["GET", "key"]
          `shouldReturn` Failed ("MOVED " <> showBytes slot <> " " <> addressOf owner)
      withConnection (nodeAddress owner) (`request` ["SET", "key", "value"])
        `shouldReturn` Status "OK"

  it "speaks TLS on all links" $
    withCertificates $ \certificates -> do
      let tls =
            Server.TlsOptions
              { Server.tlsKeyPair = certificatesServer certificates,
                Server.tlsAuthority = certificatesAuthority certificates,
                Server.tlsClients = Server.ClientCertificatesIgnored
              }
          template = Server.serverDefaults {Server.optionsTls = Just tls}
      withCluster
        clusterDefaults
          { clusterPrimaryCount = 3,
            clusterReplicasPerPrimary = 1,
            clusterServer = template
          }
        $ \cluster -> do
          slot <- slotOf cluster "key"
          source <- slotPrimary cluster slot
          _ <- ask source ["SET", "key", "value"]
          others <- filter (/= source) . map fst <$> clusterPrimaries cluster
          forM_ (take 1 others) $ \target -> do
            migrateSlot cluster quietMigration slot target
            ask target ["GET", "key"] `shouldReturn` Text "value"

-- Sends a command and returns the reply, also if it is an error.
ask :: Node -> [ByteString] -> IO Reply
ask node arguments = withNode node (`request` arguments)

withNode :: Node -> (Connection -> IO a) -> IO a
withNode = Server.withServerConnection . nodeServer

addressOf :: Node -> ByteString
addressOf = Char8.pack . renderAddress . nodeAddress

isError :: ByteString -> Reply -> Bool
isError code = \case
  Failed text -> code `ByteString.isPrefixOf` text
  _ -> False

showBytes :: Int -> ByteString
showBytes = Char8.pack . show
