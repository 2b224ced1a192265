-- | Commands that no single node can answer for the cluster, and commands for a named node.
module PolicySpec (spec) where

import Control.Concurrent.STM
import Control.Monad (forM, forM_, replicateM)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (nub, sort)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict qualified as Map
import FakeNode
import Redis
import Redis.Commands qualified as Redis
import Redis.Decode qualified as Decode
import Redis.Internal.Protocol.CommandTable
import Redis.TestKit.Address (Address)
import Redis.TestKit.Cluster hiding (clusterNodes)
import Redis.TestKit.Cluster qualified as Cluster
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait
import Redis.Transaction
import Redis.Value (Value (Integer))
import Support
import Test.Hspec hiding (after, before)

spec :: Spec
spec = do
  describe "a cluster of two primaries and a replica" $ do
    describe "is asked, as its servers' policies say," $
      forM_ [entry | entry <- allCommands, null (entryKeySpecs entry), not (entryContainer entry)] heldToPolicy
    namingSpec
  describe "a real cluster, asked as one," . aroundAll (withCluster options) $ wholeSpec
  where
    options = clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1, clusterNodeTimeout = 1500}

-- | Which nodes must receive a command without keys: how many of the primaries, and whether the
-- replica.
heldToPolicy :: CommandEntry -> Spec
heldToPolicy entry = it (Char8.unpack (Char8.unwords name) <> ": " <> expected) . limited . withShards $ \a b replica -> do
  forM_ [a, b, replica] (`setScript` answering)
  withClient (clusterOf [fakeEndpoint a]) $ \client -> do
    -- Waits until the map is known.
    _ <- run client (Redis.get "key")
    before <- forM [a, b, replica] (`countHeard` words')
    outcome <- tryRun client (raw words')
    counts <- zipWith subtract before <$> forM [a, b, replica] (`countHeard` words')
    case (changesConnection entry, whereAnswered entry) of
      (True, _) -> (outcome, counts) `shouldBe` (Left (RefusedError (refusal (Char8.unwords name))), [0, 0, 0])
      (_, OneNodesOwn) -> (outcome, counts) `shouldBe` (Left (RefusedError (NeedsNode (Char8.unwords name))), [0, 0, 0])
      (_, AnyNodeAnswers) -> sort (take 2 counts) <> drop 2 counts `shouldBe` [0, 1, 0]
      (_, EveryPrimaryAnswers _) -> counts `shouldBe` [1, 1, 0]
      (_, EveryNodeAnswers _) -> counts `shouldBe` [1, 1, 1]
  where
    name = Char8.split '|' (entryName entry)
    refusal = if answersApart entry [] then NeedsWire else NeedsDedicatedConnection
    -- As many words as the command's arity asks for.
    words' = name <> replicate (abs (entryArity entry) - length name) "1"
    expected
      | changesConnection entry = "on no connection that others share"
      | otherwise = case whereAnswered entry of
        OneNodesOwn -> "nobody, unless a node is named"
        AnyNodeAnswers -> "some primary"
        EveryPrimaryAnswers how -> "each primary, " <> made how
        EveryNodeAnswers how -> "each node, " <> made how
    made how = "and the replies become one by " <> show how

    answering _ heard'
      | heard' == words' && name /= ["CLUSTER", "SHARDS"] = pure (Just (Say (replyFor (whereAnswered entry))))
      | otherwise = pure Nothing

    replyFor = \case
      EveryPrimaryAnswers how -> mergeable how
      EveryNodeAnswers how -> mergeable how
      _ -> Status "OK"
    mergeable how
      | how `elem` [AggSum, AggMin, AggMax, AggAnd, AggOr] = Number 1
      | how == AggConcatenated = List [Text "one"]
      | otherwise = Status "OK"

-- | Three nodes: the first serves the lower half of the slots, the second the upper half, and the
-- third is a replica of the first.
withShards :: (FakeNode -> FakeNode -> FakeNode -> IO a) -> IO a
withShards action = withTwoNodes $ \a b -> withFakeNode $ \replica -> do
  let view = shardsView [(shard [(0, 8191)] a) {shardReplicasAt = [(Text "127.0.0.1", fakePort replica)]}, shard [(8192, 16383)] b]
  forM_ [a, b, replica] (`setView` view)
  action a b replica

namingSpec :: Spec
namingSpec = do
  it "tells its nodes and their roles" $
    limited . withShards $ \a b replica -> withClient (clusterOf [fakeEndpoint a]) $ \client -> do
      _ <- run client (Redis.get "key")
      known <- clientNodes client
      sort [(clientNodeEndpoint node, clientNodeRole node) | node <- known]
        `shouldBe` sort [(fakeEndpoint a, PrimaryNode), (fakeEndpoint b, PrimaryNode), (fakeEndpoint replica, ReplicaNode (fakeEndpoint a))]

  it "takes a channel's messages at one node, and those of a transaction, while that node is up" $
    limited . withShards $ \a b _ -> withClient (clusterOf [fakeEndpoint a]) $ \client -> do
      forM_ [a, b] $ \node -> setScript node (\_ words' -> pure (if take 1 words' == ["PUBLISH"] then Just (Say (Number 1)) else Nothing))
      let heardAt node channel = length . filter (== ["PUBLISH", channel, "x"]) <$> heard node
          channels = take 20 (keysIn "news:" (const True))
          homeOf channel = if slotNumberOf channel <= 8191 then a else b
      forM_ channels $ \channel -> do
        forM_ [1 .. 5 :: Int] $ \_ -> run client (Redis.publish channel "x") `shouldReturn` 1
        run client (raw ["PUBLISH", channel, "x"]) `shouldReturn` Integer 1
        _ <- tryRunTransaction client (queued (Redis.publish channel "x"))
        forM [a, b] (`heardAt` channel) `shouldReturn` [if fakePort node == fakePort (homeOf channel) then 7 else 0 | node <- [a, b]]
      -- Both are homes of some.
      nub (map (fakePort . homeOf) channels) `shouldSatisfy` ((== 2) . length)

  it "answers for the node that is named, and no other" $
    limited . withShards $ \a b replica -> withClient (clusterOf [fakeEndpoint a]) $ \client -> do
      forM_ [a, b, replica] $ \node -> do
        setScript node $ \_ -> \case
          "INFO" : _ -> pure (Just (Say (Text ("port:" <> Char8.pack (show (fakePort node))))))
          _ -> pure Nothing
        run client (onNode (fakeEndpoint node) Redis.info) `shouldReturn` [("port", Char8.pack (show (fakePort node)))]
      forM [a, b, replica] (`countHeard` ["INFO"]) `shouldReturn` [1, 1, 1]

  it "says READONLY before a read of a key on a replica that is named" $
    limited . withShards $ \a _ replica -> withClient (clusterOf [fakeEndpoint a]) $ \client -> do
      run client (onNode (fakeEndpoint replica) (Redis.get "key")) `shouldReturn` Just (Char8.pack (show (fakePort replica)))
      connections <- heardOn replica
      [number | (number, "GET" : _) <- connections] `shouldBe` [number | (number, ["READONLY"]) <- connections]

  it "follows no redirect of a node that was named" $
    limited . withShards $ \a b _ -> withClient (clusterOf [fakeEndpoint a]) $ \client -> do
      setScript a $ \_ -> \case
        "GET" : _ -> pure (Just (Say (Failed ("MOVED 1 " <> fakeAddress b))))
        _ -> pure Nothing
      problem <- tryRun client (onNode (fakeEndpoint a) (Redis.get "key")) >>= expectError
      problem `shouldBe` ReplyError (serverErrorFromText ("MOVED 1 " <> fakeAddress b)) {serverErrorDelivery = RefusedBeforeRun, serverErrorCommand = "GET key"}
      countHeard b ["GET"] `shouldReturn` 0
      run client (onEach Primaries (Redis.get "key"))
        `shouldReturn` Map.fromList [(fakeEndpoint a, Left problem), (fakeEndpoint b, Right (Just (Char8.pack (show (fakePort b)))))]

  it "refuses a node that it does not have" $
    limited . withShards $ \a _ _ -> withClient (clusterOf [fakeEndpoint a]) $ \client -> do
      let stranger = TcpEndpoint "127.0.0.1" 1
      tryRun client (onNode stranger Redis.info) `shouldReturn` Left (RefusedError (NoSuchNode stranger))

  it "says of each node what became of a command, the failures too" $
    limited . withShards $ \a b _ -> withClient (clusterOf [fakeEndpoint a]) $ \client -> do
      setScript b $ \_ -> \case
        "DBSIZE" : _ -> pure (Just (Say (Failed "NOPERM no")))
        _ -> pure Nothing
      setScript a $ \_ -> \case
        "DBSIZE" : _ -> pure (Just (Say (Number 7)))
        _ -> pure Nothing
      let refused = ReplyError (serverErrorFromText "NOPERM no") {serverErrorDelivery = RefusedBeforeRun, serverErrorCommand = "DBSIZE"}
      run client (onEach Primaries Redis.dbsize) `shouldReturn` Map.fromList [(fakeEndpoint a, Right 7), (fakeEndpoint b, Left refused)]
      problem <- tryRun client Redis.dbsize >>= expectError
      problem `shouldBe` RoutingError (RoutingFailure "DBSIZE" RefusedBeforeRun (NodesFailed (FailedNodes (Map.singleton (fakeEndpoint b) refused) 2)))
      tryRun client (onEvery Primaries Redis.dbsize) `shouldReturn` Left problem

  it "asks each primary once, also when the slot has moved that stood for one" $
    whileMoving $ \a b client -> do
      run client Redis.dbsize `shouldReturn` 107
      countHeard b ["DBSIZE"] `shouldReturn` 1
      countHeard a ["DBSIZE"] >>= (`shouldSatisfy` (> 1))

  it "says of each node what that node says, also when its lowest slot has moved" $
    whileMoving $ \a b client ->
      run client (onEach Primaries Redis.dbsize) `shouldReturn` Map.fromList [(fakeEndpoint a, Right 100), (fakeEndpoint b, Right 7)]

  it "asks those that take commands, also when another has no room for more" $
    limited . withShards $ \a b _ -> forM_ [(a, b), (b, a)] $ \(full, other) -> do
      setScript full $ \_ words' -> pure (if words' == ["ECHO", "x"] then Just Silence else Nothing)
      setScript other $ \_ words' -> pure (if words' == ["DBSIZE"] then Just (Say (Number 7)) else Nothing)
      withClient (setSilenceLimit Nothing . setLimits limitsDefaults {limitInFlight = 2} $ clusterOf [fakeEndpoint a]) $ \client -> do
        _ <- run client (onEach Primaries (Redis.get "key"))
        unanswered <- replicateM 2 (submit client (onNode (fakeEndpoint full) (Redis.echo "x")))
        sizes <- run client (onEach Primaries (timeLimit (seconds 1) Redis.dbsize))
        either (const Nothing) Just <$> sizes `shouldBe` Map.fromList [(fakeEndpoint full, Nothing), (fakeEndpoint other, Just 7)]
        setScript full quiet *> hangUpAll full
        mapM_ tryAwaitReply unanswered

  it "says that a write on several nodes may have run when one of them failed" $
    limited . withShards $ \a b _ -> withClient (clusterOf [fakeEndpoint a]) $ \client -> do
      setScript b $ \_ -> \case
        "FLUSHALL" : _ -> pure (Just (Say (Failed "NOPERM no")))
        _ -> pure Nothing
      problem <- tryRun client Redis.flushall >>= expectError
      errorDelivery problem `shouldBe` MaybeExecuted

  it "gives no answer for all when a slot has no primary" $
    limited . withTwoNodes $ \a b -> do
      forM_ [a, b] $ \node -> setView node (shardsView [shard [(0, 100)] a, shard [(200, 16383)] b])
      withClient (setCommandTimeout (Just (seconds 0.5)) (clusterOf [fakeEndpoint a])) $ \client -> do
        problem <- tryRun client Redis.dbsize >>= expectError
        problem `shouldBe` RoutingError (RoutingFailure "DBSIZE" NotSent (UncoveredSlot 101))
        mapM (`countHeard` ["DBSIZE"]) [a, b] `shouldReturn` [0, 0]
        -- One primary that answers is enough for SCRIPT KILL, and it must not wait for the others.
        within 1 (run client Redis.scriptKill)

  it "is for primaries, also of a client that prefers replicas" $
    limited . withTwoNodes $ \a b -> do
      mapM_ (`setView` replicated a b) [a, b]
      withClient (preferringReplicas [fakeEndpoint a]) $ \client -> do
        _ <- tryRun client Redis.dbsize
        _ <- tryRun client (onEvery Primaries Redis.info)
        mapM (countHeard a) [["DBSIZE"], ["INFO"]] `shouldReturn` [1, 1]
        mapM (countHeard b) [["DBSIZE"], ["INFO"]] `shouldReturn` [0, 0]

  it "draws a key from the answers of all that have one" $
    limited . withShards $ \a b _ -> do
      let saying node reply = setScript node $ \_ words' -> pure (if words' == ["RANDOMKEY"] then Just (Say reply) else Nothing)
      saying a (Text "of a")
      saying b (Text "of b")
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        -- The chance that all draws go to one of the two nodes is 1 in 2^63.
        drawn <- replicateM 64 (run client Redis.randomkey)
        nub (sort drawn) `shouldBe` [Just "of a", Just "of b"]
        submitted <- submit client Redis.randomkey
        same <- replicateM 64 (awaitReply submitted)
        length (nub same) `shouldBe` 1
        saying a Nil
        nub <$> replicateM 32 (run client Redis.randomkey) `shouldReturn` [Just "of b"]

  it "is not asked on a connection that leads to one node" $
    limited . withShards $ \a _ _ -> withClient (clusterOf [fakeEndpoint a]) $ \client -> do
      refused <- withDedicated client AnyPrimary (`tryRunOn` onEvery Primaries Redis.dbsize)
      refused `shouldBe` Left (RefusedError (NeedsSeveralNodes "DBSIZE"))

-- | Two primaries. The first loads its data, and slot 0 moves meanwhile to the second; it is in the map when the first has loaded.
whileMoving :: (FakeNode -> FakeNode -> Client -> IO ()) -> IO ()
whileMoving action = limited . settled . withTwoNodes $ \a b -> do
  let owned low high = mapM_ (`setView` shardsView [shard low a, shard high b]) [a, b]
  owned [(0, 8191)] [(8192, 16383)]
  refusals <- newTVarIO (12 :: Int)
  setScript a $ \_ -> \case
    "DBSIZE" : _ -> do
      owned [(1, 8191)] [(0, 0), (8192, 16383)]
      left <- atomically (stateTVar refusals (\left -> (left, left - 1)))
      pure (Just (Say (if left > 0 then Failed "LOADING Redis is loading the dataset in memory" else Number 100)))
    _ -> pure Nothing
  setScript b $ \_ words' -> pure (if words' == ["DBSIZE"] then Just (Say (Number 7)) else Nothing)
  withClient (clusterOf [fakeEndpoint a]) (action a b)

wholeSpec :: SpecWith Cluster
wholeSpec = do
  it "counts, lists and flushes all its keys" $ \cluster -> limited . connected cluster $ \client -> do
    let keys = numbered 1000
    forM_ (NonEmpty.nonEmpty [(key, key) | key <- keys]) (run client . Redis.mset)
    run client Redis.dbsize `shouldReturn` 1000
    run client (raw ["dbsize"] `decodedBy` Decode.integer) `shouldReturn` 1000
    (sort <$> run client (Redis.keys "*")) `shouldReturn` sort keys
    drawn <- run client Redis.randomkey
    drawn `shouldSatisfy` maybe False (`elem` keys)
    run client Redis.flushall
    run client Redis.dbsize `shouldReturn` 0
    run client Redis.randomkey `shouldReturn` Nothing

  it "learns a script on every node, and says whether all know it" $ \cluster -> limited . connected cluster $ \client -> do
    digest <- run client (Redis.scriptLoad "return KEYS[1]")
    forM_ (numbered 50) $ \key ->
      run client (Redis.evalsha digest [key] [] `decodedBy` Decode.bytes) `shouldReturn` key
    run client (Redis.scriptExists (NonEmpty.fromList [digest, Char8.replicate 40 '0'])) `shouldReturn` [True, False]
    run client Redis.scriptFlush
    run client (Redis.scriptExists (pure digest)) `shouldReturn` [False]

  it "sets what is set on every node, replicas too" $ \cluster -> limited . connected cluster $ \client -> do
    eventually 20 "it knows all six" ((== 6) . length <$> clientNodes client)
    run client (Redis.configSet (pure ("slowlog-max-len", "77")))
    settings <- run client (onEvery AllNodes (Redis.configGet (pure "slowlog-max-len")))
    Map.elems settings `shouldBe` replicate 6 [("slowlog-max-len", "77")]

  it "answers INFO of each primary, by name" $ \cluster -> limited . connected cluster $ \client -> do
    infos <- run client (onEvery Primaries (Redis.infoOf (pure "replication")))
    map (lookup "role") (Map.elems infos) `shouldBe` replicate 3 (Just "master")
    tryRun client Redis.info `shouldReturn` Left (RefusedError (NeedsNode "INFO"))
    tryRun client (Redis.scan Redis.scanStart) >>= (`shouldSatisfy` either (== RefusedError (NeedsNode "SCAN")) (const False))

  it "names the node that did not answer, when the others did" $ \cluster -> limited . connected cluster $ \client -> do
    _ <- run client Redis.dbsize
    nodes <- Cluster.clusterPrimaries cluster
    case nodes of
      (victim, _) : _ -> do
        let endpoint = addressEndpoint (nodeAddress victim)
        Server.freeze (nodeServer victim)
        outcome <- tryRun client Redis.dbsize
        Server.thaw (nodeServer victim)
        case outcome of
          Left (RoutingError (RoutingFailure _ _ (NodesFailed (FailedNodes failed 3)))) -> Map.keys failed `shouldBe` [endpoint]
          other -> failure ("expected one node to have failed, got " <> show other)
        Cluster.awaitAgreement cluster
        eventually 10 "all answer again" (either (const False) (== 0) <$> tryRun client Redis.dbsize)
      [] -> failure "no primaries"

connected :: Cluster -> (Client -> IO a) -> IO a
connected cluster action = do
  addresses <- clusterAddresses cluster
  withClient (setRefreshInterval (seconds 0.2) (liveConfig (addresses :: [Address]))) action

numbered :: Int -> [ByteString]
numbered count = [Char8.pack ("key:" <> show n) | n <- [1 .. count]]
