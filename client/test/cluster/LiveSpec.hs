-- | A real cluster under load, and the events that happen to clusters.
--
-- One cluster of three primaries with a replica each serves all tests of a group; each test leaves it
-- complete.
module LiveSpec (spec) where

import Control.Concurrent (forkIO)
import Control.Concurrent.Async (concurrently_, forConcurrently_, replicateConcurrently_)
import Control.Concurrent.MVar
import Control.Exception (displayException, finally)
import Control.Monad (forM, forM_, replicateM_, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (traverse_)
import Data.Int (Int64)
import Data.List (isInfixOf, sort)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict qualified as Map
import Redis
import Redis.Commands qualified as Redis
import Redis.Decode qualified as Decode
import Redis.Metrics
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Certificates
import Redis.TestKit.Cluster
import Redis.TestKit.Cluster.View (NodeView (..), viewIsAlive)
import Redis.TestKit.Command (CommandCalls (..))
import Redis.TestKit.Server (ClientCertificates (..), ServerOptions (..), TlsOptions (..), serverDefaults)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait
import Redis.Value (Value (..))
import Support
import System.Timeout (timeout)
import Test.Hspec hiding (after, before)

spec :: Spec
spec = do
  describe "a real cluster" . aroundAll (withCluster options) $ do
    keysSpec
    movingSpec
    replicaSpec
    failingSpec
  describe "a cluster with replicas" . aroundAll (withCluster options) $ killedSpec
  describe "a cluster without replicas" lonelySpec
  describe "a cluster with TLS and a password" secureSpec
  where
    options = clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1, clusterNodeTimeout = 1500}

-- A client whose seeds are all running nodes.
connected :: (Config -> Config) -> Cluster -> (Client -> IO a) -> IO a
connected change cluster action = do
  addresses <- clusterAddresses cluster
  withClient (change (liveConfig addresses)) action

calls :: ByteString -> Node -> IO Int
calls name node = maybe 0 callsRun . Map.lookup name <$> Server.commandStatistics (nodeServer node)

numbered :: ByteString -> Int -> [ByteString]
numbered prefix count = [prefix <> Char8.pack (show n) | n <- [1 .. count]]

keysSpec :: SpecWith Cluster
keysSpec = do
  it "splits MGET, MSET, DEL, UNLINK, EXISTS and TOUCH by slot and answers in the caller's order" $ \cluster ->
    limited . connected id cluster $ \client -> do
      let keys = numbered "split:" 200
          pairs = zip keys (map ("value of " <>) keys)
      forM_ (NonEmpty.nonEmpty pairs) $ run client . Redis.mset
      forM_ (NonEmpty.nonEmpty (reverse keys <> ["absent"] <> take 3 keys)) $ \asked -> do
        values <- run client (Redis.mget asked)
        values `shouldBe` [lookup key pairs | key <- NonEmpty.toList asked]
        run client (Redis.exists asked) `shouldReturn` 203
        run client (Redis.touch asked) `shouldReturn` 203
      forM_ (NonEmpty.nonEmpty (take 100 keys)) $ \half -> run client (Redis.del half) `shouldReturn` 100
      run client (raw (["mget"] <> take 3 (drop 100 keys)) `decodedBy` Decode.list Decode.bytes)
        `shouldReturn` map ("value of " <>) (take 3 (drop 100 keys))
      forM_ (NonEmpty.nonEmpty keys) $ \all' -> do
        run client (Redis.unlink all') `shouldReturn` 100
        run client (Redis.exists all') `shouldReturn` 0

  it "lends a connection to the node of a key, to a node by name, and to any primary, for commands that nobody waits for one by one" $ \cluster ->
    limited . connected id cluster $ \client -> do
      primaries <- map fst <$> clusterPrimaries cluster
      let me = raw ["CLUSTER", "MYID"]
          idOf node = BulkString (nodeId node)
      forM_ (numbered "lent:" 20) $ \key -> do
        owner <- slotOf cluster key >>= slotPrimary cluster
        (who, replies) <- withDedicated client (AtKey key) $ \own -> do
          who <- submitOn own me
          started <- mapM (submitOn own . raw) [["WATCH", key], ["MULTI"], ["INCR", key], ["INCRBY", key, "10"], ["EXEC"]]
          (,) <$> awaitReply who <*> mapM awaitReply started
        who `shouldBe` idOf owner
        drop 4 replies `shouldBe` [Array [Integer 1, Integer 11]]
      forM_ primaries $ \node ->
        withDedicated client (AtNode (addressEndpoint (nodeAddress node))) (`runOn` me) `shouldReturn` idOf node
      somebody <- withDedicated client AnyPrimary (`runOn` me)
      somebody `shouldSatisfy` (`elem` map idOf primaries)
      -- The command needed one dedicated connection to each primary, and all are back in their
      -- pools.
      lent <- map gaugeDedicated . snapshotNodes <$> clientSnapshot client
      map gaugeLent lent `shouldBe` map (const 0) lent
      filter (/= 0) (map gaugeIdle lent) `shouldBe` map (const 1) primaries

  it "refuses keys of several slots where a split would change the meaning, before sending" $ \cluster ->
    limited . connected id cluster $ \client -> do
      let refused name attempt = do
            problem <- tryRun client attempt >>= expectError . void
            problem `shouldBe` RefusedError (CrossSlot name)
      refused "RENAME" (Redis.rename "a" "b")
      refused "MSETNX" (Redis.msetnx (("a", "1") NonEmpty.:| [("b", "2")]))
      refused "SUNION" (raw ["SUNION", "a", "b"])
      refused "EVAL" (Redis.eval "return 1" ["a", "b"] [])
      run client (Redis.mset (("{a}1", "1") NonEmpty.:| [("{a}2", "2")]))
      run client (Redis.rename "{a}1" "{a}3") `shouldReturn` ()

  it "is what the error says when a client of one server is sent on" $ \cluster ->
    limited $ do
      seeds <- getEndpoints . liveConfig <$> clusterAddresses cluster
      case firstOf seeds of
        TcpEndpoint host port -> withClient (standaloneConfig host port) $ \client -> do
          problems <- forM (numbered "stray:" 40) $ \key -> tryRun client (Redis.get key)
          let told = [displayException problem | Left problem <- problems]
          told `shouldSatisfy` not . null
          filter (not . ("MOVED" `isInfixOf`)) told `shouldBe` []
          filter (not . ("clusterConfig or redis+cluster://" `isInfixOf`)) told `shouldBe` []
        UnixEndpoint path -> expectationFailure path

  it "routes commands by where their keys are, not by their first argument" $ \cluster ->
    limited . connected id cluster $ \client -> forM_ (numbered "route:" 12) $ \key -> do
      let tagged name = "{" <> key <> "}" <> name
      problems <-
        forM
          [ ["EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", tagged "e", "1"],
            ["XADD", tagged "x", "1-1", "f", "v"],
            ["XREAD", "COUNT", "1", "STREAMS", tagged "x", "0"],
            ["RPUSH", tagged "l", "2", "1"],
            ["SORT", tagged "l", "STORE", tagged "s"],
            ["ZADD", tagged "z", "1", "m"],
            ["ZUNIONSTORE", tagged "u", "2", tagged "z", tagged "y"],
            ["BITOP", "NOT", tagged "b", tagged "e"],
            ["OBJECT", "ENCODING", tagged "e"],
            ["LMPOP", "1", tagged "l", "LEFT"],
            ["MEMORY", "USAGE", tagged "z"]
          ]
          $ \commandArguments -> either (\problem -> [(commandArguments, problem)]) (const []) <$> tryRun client (raw commandArguments)
      concat problems `shouldBe` []

  it "runs what a thread submits to one node in that order, and a pipeline over all slots" $ \cluster ->
    limited . connected (setMuxCount Nothing) cluster $ \client -> do
      started <- forM [1 .. 500 :: Int] $ \_ -> submit client (Redis.incr "ordered")
      results <- mapM awaitReply started
      results `shouldBe` [1 .. 500 :: Int64]
      let keys = numbered "pipe:" 300
      runPipeline client (traverse_ (\key -> pipelined (Redis.set key key)) keys)
      runPipeline client (traverse (pipelined . Redis.get) keys) `shouldReturn` map Just keys
      void (run client (Redis.del ("ordered" NonEmpty.:| [])))

movingSpec :: SpecWith Cluster
movingSpec = do
  it "loses and doubles nothing while slots move, and asks for the map no more than it may" $ \cluster ->
    within 60 . settled . connected (setRefreshThrottle (seconds 1)) cluster $ \client -> do
      let tag = "mv:1:counter"
          slot = slotNumberOf tag
      -- Several keys in one slot, so that the slot is half moved for a while.
      let pairs = [("{" <> tag <> "}" <> Char8.pack (show n), Char8.pack (show n)) | n <- [1 .. 30 :: Int]]
      forM_ (NonEmpty.nonEmpty pairs) $ run client . Redis.mset
      primaries <- map fst <$> clusterPrimaries cluster
      home <- slotPrimary cluster slot
      asksBefore <- sum <$> mapM (calls "cluster|shards") primaries
      audit <- audited client "mv" 4 $
        forM_ (filter (/= home) primaries <> [home]) $ \target -> do
          let multi = forM_ (NonEmpty.nonEmpty (map fst pairs)) $ \keys -> run client (Redis.mget keys)
              readAll = forM_ pairs $ \(key, value) -> run client (Redis.get key) `shouldReturn` Just value
          migrateSlot
            cluster
            quietMigration
              { migrationMarked = readAll,
                migrationMoved = const readAll,
                migrationEmptied = multi,
                migrationOwned = readAll
              }
            slot
            target
      asksAfter <- sum <$> mapM (calls "cluster|shards") primaries
      auditFailed audit `shouldBe` []
      verifyCounters client audit
      verifyTokens client audit
      -- The client asks at most three nodes per second.
      asksAfter - asksBefore `shouldSatisfy` (<= 60)

  it "a command over a half-moved slot waits, and gets its answer when the move is over" $ \cluster ->
    limited . settled . connected (setCommandTimeout (Just (seconds 10)) . setMaxAttempts 500) cluster $ \client -> do
      let pairs = [("{half}" <> Char8.pack (show n), Char8.pack (show n)) | n <- [1 .. 20 :: Int]]
          slot = slotNumberOf "half"
      forM_ (NonEmpty.nonEmpty pairs) $ run client . Redis.mset
      home <- slotPrimary cluster slot
      target <- maybe (failure "a second primary") pure . lookup True . map (\(node, _) -> (node /= home, node)) =<< clusterPrimaries cluster
      begun <- newEmptyMVar
      answers <- forM (NonEmpty.nonEmpty (map fst pairs)) $ \keys -> do
        let meanwhile moved =
              if moved == 10
                then do
                  void . forkIO $ tryRun client (Redis.mget keys) >>= putMVar begun
                  -- The command must meet the half-moved slot before the rest moves.
                  eventually 5 "TRYAGAIN was said" $ (> 0) <$> rejected home target
                else pure ()
        migrateSlot cluster quietMigration {migrationMoved = meanwhile} slot target
        takeMVar begun
      answers `shouldBe` Just (Right (map (Just . snd) pairs))
      migrateSlot cluster quietMigration slot home

  it "uses a node that joins, and closes its connections when it leaves" $ \cluster ->
    within 60 . connected id cluster $ \client -> do
      let key = "joined"
          slot = slotNumberOf key
      home <- slotPrimary cluster slot
      run client (Redis.set key "1")
      before <- openDescriptors
      node <- addPrimary cluster
      audit <- audited client "join" 3 $ do
        migrateSlot cluster quietMigration slot node
        eventually 10 "the new node serves" $ do
          run client (Redis.get key) `shouldReturn` Just "1"
          any ((== addressEndpoint (nodeAddress node)) . gaugeEndpoint) . snapshotNodes <$> clientSnapshot client
        migrateSlot cluster quietMigration slot home
        -- The client asks for the map only after a command has met the MOVED.
        run client (Redis.get key) `shouldReturn` Just "1"
        removeNode cluster node
        eventually 10 "the node is forgotten" $ do
          void (tryRun client (Redis.get key))
          -- Stands for the periodic check, which would come only after a minute.
          void (tryRun client (Redis.get "other"))
          notElem (addressEndpoint (nodeAddress node)) . map gaugeEndpoint . snapshotNodes <$> clientSnapshot client
      verifyCounters client audit
      verifyTokens client audit
      -- At most one connection to each of the six nodes that stay.
      descriptorsReturnTo 10 (before + 6)
  where
    rejected home target = sum <$> mapM (fmap (maybe 0 callsRejected . Map.lookup "mget") . Server.commandStatistics . nodeServer) [home, target]

replicaSpec :: SpecWith Cluster
replicaSpec =
  it "reads from replicas, which are told READONLY, and writes to primaries" $ \cluster ->
    within 60 . settled . connected (setReadFrom PreferReplica) cluster $ \client -> do
      nodes <- clusterNodes cluster
      primaries <- map fst <$> clusterPrimaries cluster
      let replicas = filter (`notElem` primaries) nodes
          keys = numbered "far:" 60
      runPipeline client (traverse_ (\key -> pipelined (Redis.set key key)) keys)
      eventually 10 "the replicas have it all" $
        (== map Just keys) <$> runPipeline client (traverse (pipelined . Redis.get) keys)
      getsOfPrimaries <- sum <$> mapM (calls "get") primaries
      getsOfReplicas <- sum <$> mapM (calls "get") replicas
      runPipeline client (traverse (pipelined . Redis.get) keys) `shouldReturn` map Just keys
      runPipeline client (traverse_ (\key -> pipelined (Redis.incr ("n" <> key))) keys)
      getsOfPrimaries' <- sum <$> mapM (calls "get") primaries
      getsOfReplicas' <- sum <$> mapM (calls "get") replicas
      (getsOfPrimaries' - getsOfPrimaries, getsOfReplicas' - getsOfReplicas) `shouldBe` (0, 60)
      readOnly <- mapM (calls "readonly") replicas
      readOnly `shouldSatisfy` all (>= 1)
      mapM (calls "readonly") primaries `shouldReturn` map (const 0) primaries
      -- When a replica is dead, its primary answers.
      forM_ (take 1 replicas) $ \victim -> do
        Server.kill9 (nodeServer victim)
        runPipeline client (traverse (pipelined . Redis.get) keys) `shouldReturn` map Just keys
        Server.restart (nodeServer victim)
        awaitAgreement cluster

failingSpec :: SpecWith Cluster
failingSpec = do
  it "starts with dead seeds if one lives" $ \cluster -> limited . settled $ do
    addresses <- clusterAddresses cluster
    let dead = [TcpAddress "127.0.0.1" 1, TcpAddress "127.0.0.1" 2, TcpAddress "127.0.0.1" 3]
    withClient (liveConfig (dead <> take 1 addresses)) $ \client -> do
      run client (Redis.set "seeded" "1")
      run client (Redis.get "seeded") `shouldReturn` Just "1"

  it "a frozen primary does not hold up commands to the others" $ \cluster ->
    limited . settled . connected (setCommandTimeout (Just (seconds 2))) cluster $ \client -> do
      primaries <- clusterPrimaries cluster
      case primaries of
        (frozen, ranges) : _ -> do
          let inFrozen slot = any (\(from, to) -> from <= slot && slot <= to) ranges
              stuck = keyIn "stuck" inFrozen
              free = take 50 (keysIn "free" (not . inFrozen))
          forM_ free $ \key -> run client (Redis.set key key)
          run client (Redis.set stuck "1")
          flip finally (Server.thaw (nodeServer frozen)) $ do
            Server.freeze (nodeServer frozen)
            -- Well within the timeout of the commands to the frozen node.
            waiting <- forM [1 .. 20 :: Int] $ \_ -> submit client (Redis.get stuck)
            free' <- timeout 1500000 . replicateConcurrently_ 4 $ forM_ free $ \key -> run client (Redis.get key)
            free' `shouldBe` Just ()
            -- The commands to the frozen node do end.
            ended <- within 10 (mapM tryAwaitReply waiting)
            length ended `shouldBe` 20
          awaitAgreement cluster
        [] -> expectationFailure "no primary"

  it "follows a planned fail-over under load without a loss" $ \cluster ->
    within 60 . settled . connected (setCommandTimeout (Just (seconds 5)) . setMaxAttempts 100) cluster $ \client -> do
      primary <- slotPrimary cluster (slotNumberOf "fo:1:counter")
      replicas <- replicasOf cluster primary
      audit <- audited client "fo" 6 $ mapM_ (failover cluster) (take 1 replicas)
      verifyCounters client audit
      filter ((/= MaybeExecuted) . errorDelivery) (auditFailed audit) `shouldBe` []

-- This test has a cluster of its own, in which no replica was promoted before. A replica of Redis
-- 7.0 that won an election less than two node timeouts ago takes its old votes for new ones when
-- its new primary dies, and claims the slots by an epoch that no node accepts. The slots then have
-- no primary until the dead one returns.
killedSpec :: SpecWith Cluster
killedSpec =
  it "goes on when a primary is killed and its replica promoted: every command ends, none runs twice" $ \cluster ->
    within 60 . settled . connected (setCommandTimeout (Just (seconds 8)) . setMaxAttempts 200) cluster $ \client -> do
      let slot = slotNumberOf "kill:1:counter"
      audit <- audited client "kill" 6 $ do
        old <- killPrimary cluster slot
        void (awaitNewPrimary cluster slot old)
        eventually 10 "the slot is served" $
          either (const False) (const True) <$> tryRun client (Redis.get "kill:1:counter")
        concurrently_ (Server.restart (nodeServer old)) (replicateM_ 20 (tryRun client (Redis.get "kill:1:counter")))
        awaitAgreement cluster
      -- Writes that a primary acknowledged but had not yet replicated are lost with it, but no write
      -- may be there twice.
      verifyNoneTwice client audit

lonelySpec :: Spec
lonelySpec = do
  it "that was killed, every node of it, and started again is found again by the client that had it" $
    within 60 . settled . withCluster options $ \cluster ->
      connected (setCommandTimeout (Just (seconds 2)) . setMaxAttempts 100) cluster $ \client -> do
        nodes <- clusterNodes cluster
        let keys = numbered "reborn:" 50
        audit <- audited client "reborn" 4 $ do
          mapM_ (Server.kill9 . nodeServer) nodes
          -- While no node answers, commands end with the reason.
          problem <- tryRun (client :: Client) (Redis.get "reborn:1") >>= expectError
          errorDelivery problem `shouldSatisfy` (/= RefusedBeforeRun)
          mapM_ (Server.restart . nodeServer) nodes
          awaitAgreement cluster
          eventually 10 "every slot is served" $
            all (either (const False) (const True)) <$> mapM (tryRun client . Redis.get) keys
        -- The nodes had nothing on disk, so writes are lost; only writes that ran twice would be an
        -- error.
        verifyNoneTwice client audit
        runPipeline client (traverse_ (\key -> pipelined (Redis.set key key)) keys)
        runPipeline client (traverse (pipelined . Redis.get) keys) `shouldReturn` map Just keys

  it "of which one node is down, and which serves the rest, is used as far as it goes" $
    within 60 . settled . withCluster options {clusterServer = serverDefaults {optionsConfig = ["cluster-require-full-coverage no"]}} $ \cluster -> do
      primaries <- clusterPrimaries cluster
      addresses <- clusterAddresses cluster
      (dead, ranges) <- case primaries of
        primary : _ -> pure primary
        [] -> failure "no primary"
      let inDead slot = any (\(from, to) -> from <= slot && slot <= to) ranges
          lost = take 5 (keysIn "lost" inDead)
          kept = take 50 (keysIn "kept" (not . inDead))
          asFarAsItGoes client = do
            forM_ kept $ \key -> do
              run client (Redis.set key key)
              run client (Redis.get key) `shouldReturn` Just key
            forConcurrently_ lost $ \key -> do
              problem <- within 8 (tryRun client (Redis.incr key)) >>= expectError
              errorDelivery problem `shouldSatisfy` (/= MaybeExecuted)
      withClient (liveConfig addresses) $ \client -> do
        forM_ lost $ \key -> run client (Redis.set key "1")
        Server.kill9 (nodeServer dead)
        eventually 20 "the others hold it to be dead" $
          and <$> sequence [any (\view -> viewId view == nodeId dead && not (viewIsAlive view)) <$> viewOf node | (node, _) <- drop 1 primaries]
        asFarAsItGoes client
        -- Also for a client that never knew the whole cluster.
        withClient (liveConfig addresses) asFarAsItGoes
        Server.restart (nodeServer dead)
        awaitAgreement cluster
        forM_ lost $ \key -> eventually 10 "its slots are served again" (either (const False) (const True) <$> tryRun client (Redis.incr key))
  where
    options = clusterDefaults {clusterPrimaryCount = 3, clusterNodeTimeout = 1000}

secureSpec :: Spec
secureSpec =
  it "is used over TLS, each node by its TLS port, through a fail-over" $
    within 60 . settled . withCertificates $ \certificates -> do
      let server =
            serverDefaults
              { optionsPassword = Just "open sesame",
                optionsTls =
                  Just
                    TlsOptions
                      { tlsKeyPair = certificatesServer certificates,
                        tlsAuthority = certificatesAuthority certificates,
                        tlsClients = ClientCertificatesOptional
                      }
              }
          secured =
            setCredentials (Just Credentials {credentialsUser = Nothing, credentialsPassword = toSecret "open sesame"})
              . setTls (Just tlsDefaults {tlsCaFile = Just (certificatesAuthority certificates)})
      withCluster clusterDefaults {clusterPrimaryCount = 2, clusterReplicasPerPrimary = 1, clusterNodeTimeout = 1000, clusterServer = server} $ \cluster ->
        connected (secured . setConnectTimeout (seconds 3) . setMaxAttempts 100) cluster $ \client -> do
          let keys = numbered "tls:" 50
          runPipeline client (traverse_ (\key -> pipelined (Redis.set key key)) keys)
          runPipeline client (traverse (pipelined . Redis.get) keys) `shouldReturn` map Just keys
          endpoints <- map gaugeEndpoint . snapshotNodes <$> clientSnapshot client
          primaries <- map (addressEndpoint . nodeAddress . fst) <$> clusterPrimaries cluster
          sort (filter (`elem` primaries) endpoints) `shouldBe` sort primaries
          primary <- slotPrimary cluster (slotNumberOf "tls:1")
          replicas <- replicasOf cluster primary
          mapM_ (failover cluster) (take 1 replicas)
          runPipeline client (traverse (pipelined . Redis.get) keys) `shouldReturn` map Just keys

firstOf :: NonEmpty.NonEmpty a -> a
firstOf (one NonEmpty.:| _) = one
