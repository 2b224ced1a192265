-- | Which nodes answer reads, as the client or one command requests: with nodes that are slow,
-- frozen or dead, through a fail-over, and in availability zones.
module ReadingSpec (spec) where

import Control.Concurrent.Async (concurrently_, forConcurrently, replicateConcurrently)
import Control.Concurrent.STM
import Control.Exception (finally)
import Control.Monad (forM, forM_, unless, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (traverse_)
import Data.List qualified as List
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict qualified as Map
import FakeNode
import Redis
import Redis.Commands qualified as Redis
import Redis.Decode qualified as Decode
import Redis.TestKit.Cluster
import Redis.TestKit.Command (CommandCalls (..), Reply (..))
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait
import Redis.Transaction qualified as Transaction
import Support
import Test.Hspec hiding (after, before)

spec :: Spec
spec = do
  describe "reads of a real cluster" . aroundAll (withCluster options) $ do
    saidSpec
    stayingSpec
    movingSpec
    nearSpec
    faultySpec
    zonedSpec
  describe "reads of a cluster in availability zones" fakeZonesSpec
  where
    options = clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 2, clusterNodeTimeout = 1500, clusterProxies = True}

connected :: (Config -> Config) -> Cluster -> (Client -> IO a) -> IO a
connected change cluster action = do
  addresses <- clusterAddresses cluster
  withClient (change (watchful (liveConfig addresses))) $ \client -> do
    eventually 20 "it knows all nine" ((== 9) . length <$> clientNodes client)
    action client

-- The client refreshes its map quickly and surveys the nodes often.
watchful :: Config -> Config
watchful = setRefreshInterval (seconds 0.2)

keys :: [ByteString]
keys = ["read:" <> Char8.pack (show n) | n <- [1 .. 90 :: Int]]

-- Writes to every key its own name, and waits until the replicas have it, too.
filled :: Client -> IO ()
filled client = do
  runPipeline client (traverse_ (\key -> pipelined (Redis.set key key)) keys)
  nodes <- clientNodes client
  forM_ [clientNodeEndpoint node | node <- nodes, clientNodeRole node == PrimaryNode] $ \primary ->
    withDedicated client (AtNode primary) $ \own -> do
      -- WAIT covers only the writes of its own connection.
      void (tryRunOn own (raw ["SET", "{nobody}", "x"]))
      runOn own (raw ["WAIT", "2", "5000"])
  eventually 10 "every replica has all of it" $ do
    answers <- forM [1 .. 5 :: Int] $ \_ -> runPipeline client (traverse (pipelined . readFrom PreferReplica . Redis.get) keys)
    pure (all (== map Just keys) answers)

-- How many commands of this name each node runs during the action.
countedAt :: Cluster -> ByteString -> IO a -> IO [(Node, Int)]
countedAt cluster name action = do
  nodes <- clusterNodes cluster
  before <- forM nodes calls
  void action
  after <- forM nodes calls
  pure (zip nodes (zipWith (-) after before))
  where
    calls node = maybe 0 callsRun . Map.lookup name <$> Server.commandStatistics (nodeServer node)

-- How many commands of this name the primaries and the replicas run during the action.
divided :: Cluster -> ByteString -> IO a -> IO (Int, Int)
divided cluster name action = do
  primaries <- map fst <$> clusterPrimaries cluster
  counted <- countedAt cluster name action
  let (here, there) = List.partition ((`elem` primaries) . fst) counted
  pure (sum (map snd here), sum (map snd there))

saidSpec :: SpecWith Cluster
saidSpec = do
  it "go where the command says, whatever the client says, and however it is run" $ \cluster ->
    limited $ do
      connected id cluster $ \client -> do
        filled client
        let gets change = runPipeline client (traverse (pipelined . change . Redis.get) keys) `shouldReturn` map Just keys
            alone change = forM_ keys $ \key -> run client (change (Redis.get key)) `shouldReturn` Just key
            submitted change = (mapM (submit client . change . Redis.get) keys >>= mapM awaitReply) `shouldReturn` map Just keys
        forM_ [gets, alone, submitted] $ \way -> do
          divided cluster "get" (way id) `shouldReturn` (90, 0)
          divided cluster "get" (way (readFrom PreferReplica)) `shouldReturn` (0, 90)
          divided cluster "get" (way (readFrom ReadPrimary)) `shouldReturn` (90, 0)
          -- The choice that is made last counts.
          divided cluster "get" (way (readFrom PreferReplica . readFrom ReadPrimary)) `shouldReturn` (0, 90)
        forM_ (NonEmpty.nonEmpty keys) $ \all' ->
          (fst <$> divided cluster "mget" (run client (readFrom PreferReplica (Redis.mget all')) `shouldReturn` map Just keys)) `shouldReturn` 0
        -- Also for a command given in words.
        divided cluster "get" (run client (readFrom PreferReplica (raw ["GET", "read:1"]))) `shouldReturn` (0, 1)
      connected (setReadFrom PreferReplica) cluster $ \client -> do
        let gets change = runPipeline client (traverse (pipelined . change . Redis.get) keys) `shouldReturn` map Just keys
        divided cluster "get" (gets id) `shouldReturn` (0, 90)
        divided cluster "get" (gets (readFrom ReadPrimary)) `shouldReturn` (90, 0)

  it "go to every node if any will do" $ \cluster ->
    limited . connected (setReadFrom ReadAny) cluster $ \client -> do
      filled client
      counted <- countedAt cluster "get" $ forM_ [1 .. 10 :: Int] $ \_ -> runPipeline client (traverse (pipelined . Redis.get) keys)
      sum (map snd counted) `shouldBe` 900
      -- About a hundred each, by chance.
      [(node, count) | (node, count) <- counted, count < 20] `shouldBe` []

  it "go to a node that is named, whatever else is said" $ \cluster ->
    limited . connected id cluster $ \client -> do
      owner <- slotPrimary cluster (slotNumberOf "read:1")
      counted <- countedAt cluster "get" $ run client (readFrom PreferReplica (onNode (addressEndpoint (nodeAddress owner)) (Redis.get "read:1")))
      [node | (node, 1) <- counted] `shouldBe` [owner]

  it "go to a replica that is named, also those that stay with the primary otherwise" $ \cluster ->
    limited . connected id cluster $ \client -> do
      run client (Redis.hset "named" (pure ("field", "value"))) `shouldReturn` 1
      owner <- slotPrimary cluster (slotNumberOf "named")
      replicas <- replicasOf cluster owner
      forM_ replicas $ \replica ->
        eventually 10 "the replica has the field" $
          either (const False) ((== ["field", "value"]) . snd) <$> tryRun client (onNode (addressEndpoint (nodeAddress replica)) (raw ["HSCAN", "named", "0"] `decodedBy` Decode.pair Decode.bytes (Decode.list Decode.bytes)))

stayingSpec :: SpecWith Cluster
stayingSpec =
  it "are the only commands that leave the primary" $ \cluster ->
    limited . connected (setReadFrom PreferReplica) cluster $ \client -> do
      let key = "stays"
          fieldKey = "stays:hash"
      run client (Redis.incr key) `shouldReturn` 1
      void (run client (raw ["HSET", fieldKey, "a", "1"]))
      forM_
        [ ("get", void (Transaction.runTransaction client (Transaction.queued (Redis.get key)))),
          ("get", void (withDedicated client (AtKey key) (\own -> runOn own (readFrom PreferReplica (Redis.get key))))),
          ("hscan", void (run client (readFrom PreferReplica (raw ["HSCAN", fieldKey, "0"])))),
          ("touch", void (run client (readFrom ReadAny (Redis.touch (pure key))))),
          ("xread", void (run client (readFrom PreferReplica (raw ["XREAD", "BLOCK", "10", "STREAMS", "stays:stream", "0"])))),
          ("incr", void (run client (readFrom PreferReplica (Redis.incr key)))),
          ("eval", void (run client (readFrom PreferReplica (raw ["EVAL", "return 1", "1", key])))),
          ("watch", void (Transaction.watching client (pure key) (\_ -> pure (Transaction.Commit (Transaction.queued (Redis.get key))))))
        ]
        $ \(name, action) -> do
          (here, there) <- divided cluster name action
          -- The replicas run the write, too, when they replicate it.
          (name, here, if name == "incr" then 0 else there) `shouldBe` (name, 1, 0 :: Int)

movingSpec :: SpecWith Cluster
movingSpec =
  it "go to the primary while their slot moves, once a redirect has said so" $ \cluster ->
    within 60 . connected (setReadFrom PreferReplica) cluster $ \client -> do
      let moved = ["{moves}" <> Char8.pack (show n) | n <- [1 .. 60 :: Int]]
          found = forM moved (run client . Redis.get)
          written = forM_ moved (\key -> run client (Redis.set key key))
      written
      eventually 10 "every replica has all of it" $ (== replicate 3 (map Just moved)) <$> replicateConcurrently 3 found
      -- Before the move, the replicas answer.
      divided cluster "get" found `shouldReturn` (0, 60)
      let slot = slotNumberOf "{moves}"
      source <- slotPrimary cluster slot
      target <- List.find (/= source) . map fst <$> clusterPrimaries cluster
      answers <- newTVarIO []
      forM_ target $ \node -> do
        let during count = do
              -- The keys that have moved are answered with ASK.
              unless (count > 10) written
              now <- found
              atomically (modifyTVar' answers (now :))
        migrateSlot cluster quietMigration {migrationMoved = during} slot node
        slotPrimary cluster slot `shouldReturn` node
      seen <- readTVarIO answers
      seen `shouldBe` replicate 6 (map Just moved)

nearSpec :: SpecWith Cluster
nearSpec =
  it "go to those that answer quickly, to more than one of them, and come back to one that was slow" $ \cluster ->
    within 60 . connected (setReadFrom LowestLatency) cluster $ \client -> do
      let slot = slotNumberOf "read:1"
      primary <- slotPrimary cluster slot
      replicas <- replicasOf cluster primary
      let trio = primary : replicas
          reads' = countedAt cluster "get" . forM_ [1 .. 60 :: Int] $ \_ -> run client (Redis.get "read:1")
          gotSome counted = [node | (node, count) <- counted, count > 0, node `elem` trio]
          slow amount node = forM_ (nodeProxy node) $ \proxy -> Proxy.delay proxy Proxy.ToClient amount
      length trio `shouldBe` 3
      eventually 20 "two or three take turns" $ (>= 2) . length . gotSome <$> reads'
      flip finally (mapM_ (slow 0) trio) $ do
        forM_ (take 2 trio) (slow 0.03)
        eventually 20 "only the quick one is read from" $ (== drop 2 trio) . gotSome <$> reads'
        forM_ trio (slow 0)
        forM_ (drop 2 trio) (slow 0.03)
        eventually 20 "the others are read from again" $ (\some -> not (null some) && all (`elem` take 2 trio) some) . gotSome <$> reads'

faultySpec :: SpecWith Cluster
faultySpec = do
  let watched = setHooks noHooks {hookCommand = Just (\_ -> pure (\_ -> pure ()))}
      ways =
        [ ("PreferReplica", setReadFrom PreferReplica),
          ("PreferReplica, told to a hook", watched . setReadFrom PreferReplica),
          ("ReadAny", setReadFrom ReadAny),
          ("LowestLatency", setReadFrom LowestLatency),
          ("SameZone", setReadFrom (SameZone "z"))
        ]
  forM_ ways $ \(name, reading) ->
    it ("are answered while all replicas of a shard are frozen, and go back to them, by " <> name) $ \cluster ->
      within 60 . connected (setCommandTimeout (Just (seconds 2)) . reading) cluster $ \client -> do
        filled client
        primary <- slotPrimary cluster (slotNumberOf "read:1")
        replicas <- replicasOf cluster primary
        length replicas `shouldBe` 2
        let reads' = forM [1 .. 20 :: Int] $ \_ -> tryRun client (Redis.get "read:1")
        eventually 20 "replicas answer" $ (> 0) . snd <$> divided' cluster primary replicas reads'
        flip finally (forM_ replicas (Server.thaw . nodeServer)) $ do
          forM_ replicas (Server.freeze . nodeServer)
          answers <- within 20 (concat <$> replicateConcurrently 4 reads')
          List.nub answers `shouldBe` [Right (Just "read:1")]
          -- The client now knows that the replicas are down. Otherwise each read would take a
          -- second.
          again <- within 1 reads'
          List.nub again `shouldBe` [Right (Just "read:1")]
        eventually 20 "replicas answer again" $ (> 0) . snd <$> divided' cluster primary replicas reads'
        awaitAgreement cluster

  it "are answered while the replicas of a shard are dead" $ \cluster ->
    within 60 . connected (setMaxAttempts 100 . setReadFrom PreferReplica) cluster $ \client -> do
      filled client
      primary <- slotPrimary cluster (slotNumberOf "read:1")
      replicas <- replicasOf cluster primary
      forM_ replicas (Server.kill9 . nodeServer)
      answers <- forM [1 .. 50 :: Int] $ \_ -> tryRun client (Redis.get "read:1")
      List.nub answers `shouldBe` [Right (Just "read:1")]
      forM_ replicas (Server.restart . nodeServer)
      awaitAgreement cluster

  it "are answered without a failure through a fail-over, and none brings what was never written" $ \cluster ->
    within 90 . connected (setCommandTimeout (Just (seconds 15)) . setMaxAttempts 1000) cluster $ \client -> do
      let key = "read:over"
          slot = slotNumberOf key
      run client (Redis.set key "0")
      over <- newTVarIO False
      written <- newTVarIO (0 :: Int)
      let writer = until' over $ do
            n <- readTVarIO written
            -- The count is published before the write, so that no reader sees a greater value than
            -- it.
            atomically (writeTVar written (n + 1))
            void (tryRun client (Redis.set key (Char8.pack (show (n + 1)))))
            pause 0.001
          reader source = do
            tally <- newTVarIO (0 :: Int, [])
            until' over $ do
              answer <- tryRun client (readFrom source (Redis.get key))
              most <- readTVarIO written
              let wrong = case answer of
                    Right (Just text) | Just (n, "") <- Char8.readInt text, n >= 0, n <= most -> []
                    other -> [show other]
              atomically (modifyTVar' tally (\(count, found) -> (count + 1, wrong <> found)))
            readTVarIO tally
      tallies <- newTVarIO []
      concurrently_
        ( flip finally (atomically (writeTVar over True)) $ do
            old <- killPrimary cluster slot
            void (awaitNewPrimary cluster slot old)
            -- The writes go on for a while after the fail-over.
            seen <- readTVarIO written
            eventually 20 "writes go on" ((> seen + 100) <$> readTVarIO written)
            Server.restart (nodeServer old)
        )
        (concurrently_ writer (forConcurrently [ReadPrimary, PreferReplica, ReadAny, LowestLatency] reader >>= atomically . writeTVar tallies))
      found <- readTVarIO tallies
      map snd found `shouldBe` [[], [], [], []]
      map fst found `shouldSatisfy` all (> 20)
      awaitAgreement cluster
  where
    until' over action = do
      stop <- readTVarIO over
      unless stop (action >> until' over action)
    divided' cluster primary replicas action = do
      counted <- countedAt cluster "get" action
      pure (sum [count | (node, count) <- counted, node == primary], sum [count | (node, count) <- counted, node `elem` replicas])

-- On servers with availability zones, reads stay in the zone. On servers without, they go to any
-- replica.
zonedSpec :: SpecWith Cluster
zonedSpec =
  it "stay in the zone if servers have zones, and otherwise go to replicas and that is told" $ \cluster ->
    within 60 $ do
      nodes <- clusterNodes cluster
      zoned <- and <$> forM nodes (\node -> (/= List []) <$> Server.command (nodeServer node) ["CONFIG", "GET", "availability-zone"])
      told <- newTVarIO []
      let hooks = noHooks {hookConnection = Just (\event -> atomically (modifyTVar' told (event :)))}
          isTold = elem (NobodyInZone "z1") <$> readTVarIO told
          inZone = readFrom (SameZone "z1") . Redis.get
      if zoned
        then do
          primary <- slotPrimary cluster (slotNumberOf "read:1")
          replicas <- replicasOf cluster primary
          connected (setHooks hooks) cluster $ \client -> do
            let gotSome = do
                  counted <- countedAt cluster "get" (forM_ [1 .. 40 :: Int] (\_ -> run client (inZone "read:1")))
                  pure [node | (node, count) <- counted, count > 0]
                put zone node = Server.command (nodeServer node) ["CONFIG", "SET", "availability-zone", zone] `shouldReturn` Status "OK"
            forM_ nodes (put "z0")
            void (run client (inZone "read:1"))
            eventually 20 "it is told that nobody is in the zone" isTold
            forM_ (take 1 replicas) (put "z1")
            eventually 20 "the replica in the zone has all reads" ((== take 1 replicas) <$> gotSome)
            zones <- map clientNodeZone <$> clientNodes client
            List.sort zones `shouldBe` replicate 8 (Just "z0") <> [Just "z1"]
            forM_ (take 1 replicas) (put "z0")
            put "z1" primary
            eventually 20 "the primary in the zone has all reads" ((== [primary]) <$> gotSome)
            forM_ nodes (put "")
        else connected (setHooks hooks) cluster $ \client -> do
          filled client
          divided cluster "get" (forM_ keys (run client . inZone)) `shouldReturn` (0, 90)
          eventually 20 "it is told that nobody is in the zone" isTold
          zones <- map clientNodeZone <$> clientNodes client
          List.nub zones `shouldBe` [Nothing]
          length . filter (== NobodyInZone "z1") <$> readTVarIO told `shouldReturn` 1

-- Servers that give their zones in the map, and servers that give them only when they are asked.
fakeZonesSpec :: Spec
fakeZonesSpec = do
  forM_ [("in the map", True), ("when they are asked", False)] $ \(manner, inMap) ->
    it ("stay in the zone that servers tell " <> manner) $
      limited . settled . withFakeNode $ \primary -> withFakeNode $ \near -> withFakeNode $ \far -> do
        let zoneOf node = if node == fakePort near then "here" else "there"
            view = zonedView inMap zoneOf primary [near, far]
        forM_ [primary, near, far] $ \node -> do
          setView node view
          setScript node $ \_ words' -> pure $ case words' of
            ["INFO", "server"] -> Just (Say (Text ("# Server\r\navailability_zone:" <> (if inMap then "wrong" else zoneOf (fakePort node)) <> "\r\nuptime:1\r\n")))
            _ -> Nothing
        withClient (setReadFrom (SameZone "here") (clusterOf [fakeEndpoint primary])) $ \client -> do
          let whom = forM [1 .. 20 :: Int] $ \_ -> run client (Redis.get "key")
              portOf node = Just (Char8.pack (show (fakePort node)))
          eventually 10 "all reads stay" (all (== portOf near) <$> whom)
          -- If the zone has no node, any replica may answer.
          others <- forM [1 .. 60 :: Int] $ \_ -> run client (readFrom (SameZone "nowhere") (Redis.get "key"))
          List.sort (List.nub others) `shouldBe` List.sort [portOf near, portOf far]
          infos <- sum <$> mapM (`countHeard` ["INFO", "server"]) [primary, near, far]
          if inMap then infos `shouldBe` 0 else infos `shouldSatisfy` (>= 3)

  it "go back to a replica whose connections were lost, though a refresh asks few of many nodes" $
    limited . settled . withFakeNode $ \primary -> withFakeNode $ \replica -> withFakeNodes 30 $ \others -> do
      let view =
            shardsView $
              (shard [(0, 16353)] primary) {shardReplicasAt = [(Text "127.0.0.1", fakePort replica)]} :
                [shard [(slot, slot)] other | (slot, other) <- zip [16354 ..] others]
          key = keyIn "read" (< 16354)
          portOf node = Just (Char8.pack (show (fakePort node)))
      forM_ (primary : replica : others) (`setView` view)
      hangingUp 3 "GET" quiet >>= setScript replica
      withClient (setRefreshThrottle (seconds 0.2) (setRefreshInterval (seconds 0.2) (preferringReplicas [fakeEndpoint primary]))) $ \client -> do
        answers <- forM [1 .. 20 :: Int] $ \_ -> run client (Redis.get key)
        List.nub answers `shouldBe` [portOf primary]
        -- A refresh that happens to ask this replica for the map learns nothing from it.
        setScript replica $ \_ words' ->
          pure (if take 1 words' == ["CLUSTER"] then Just (Say (Failed "ERR not now")) else Nothing)
        eventually 10 "the replica is read from again" $ (== portOf replica) <$> run client (Redis.get key)

  it "ask nobody for anything unless somebody wants to stay near" $
    limited . settled . withTwoNodes $ \a b -> do
      mapM_ (`setView` replicated a b) [a, b]
      withClient (setRefreshInterval (seconds 0.1) (preferringReplicas [fakeEndpoint a])) $ \client -> do
        run client (Redis.get "key") `shouldReturn` Just (Char8.pack (show (fakePort b)))
        asked <- sum <$> mapM (`countHeard` ["CLUSTER", "SHARDS"]) [a, b]
        eventually 10 "a few refreshes are over" $ (>= asked + 4) . sum <$> mapM (`countHeard` ["CLUSTER", "SHARDS"]) [a, b]
        sum <$> mapM (\(node, name) -> countHeard node [name]) [(node, name) | node <- [a, b], name <- ["PING", "INFO"]] `shouldReturn` 0

  it "do not go to a quick replica that has lost its primary" $
    limited . settled . withTwoNodes $ \a b -> do
      mapM_ (`setView` replicated a b) [a, b]
      setScript b $ \_ words' -> pure $ case words' of
        [name] | name == "PING" -> Just (Say (Failed "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."))
        "GET" : _ -> Just (Say (Failed "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."))
        _ -> Nothing
      withClient (setReadFrom LowestLatency (clusterOf [fakeEndpoint a])) $ \client -> do
        eventually 10 "it has been asked" $ (> 0) <$> countHeard b ["PING"]
        answers <- forM [1 .. 30 :: Int] $ \_ -> run client (Redis.get "key")
        List.nub answers `shouldBe` [Just (Char8.pack (show (fakePort a)))]
        asked <- countHeard b ["GET"]
        asked `shouldSatisfy` (< 15)

-- Runs so many fake nodes while the action runs.
withFakeNodes :: Int -> ([FakeNode] -> IO a) -> IO a
withFakeNodes count action
  | count <= 0 = action []
  | otherwise = withFakeNode $ \node -> withFakeNodes (count - 1) (action . (node :))

-- A shard whose nodes are in zones, which the map may contain or not.
zonedView :: Bool -> (Int -> ByteString) -> FakeNode -> [FakeNode] -> View
zonedView inMap zoneOf primary replicas =
  List
    [ List
        [ Text "slots",
          List [Number 0, Number 16383],
          Text "nodes",
          List (node "master" primary : map (node "replica") replicas)
        ]
    ]
  where
    node role fake =
      List $
        [Text "port", Number (toInteger (fakePort fake)), Text "endpoint", Text "127.0.0.1", Text "role", Text role, Text "health", Text "online"]
          <> concat [[Text "availability-zone", Text (zoneOf (fakePort fake))] | inMap]
