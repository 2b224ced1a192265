-- | Subscriptions in a real cluster: nodes fail over and die, slots move, and each message is
-- received once and in order, or lies in a gap.
module SubscriptionSpec (spec) where

import Control.Concurrent.MVar
import Control.Exception (finally)
import Control.Monad (filterM, forM_, void)
import Data.ByteString (ByteString)
import Data.IORef
import Data.Int (Int64)
import Data.List (find, sort)
import Data.Maybe (listToMaybe)
import FakeNode (Answer (..), fakeEndpoint, hangUpAll, setScript, setView, shard, shardsView, withFakeNode)
import Redis
import Redis.Commands qualified as Redis
import Redis.MessageAudit (Servers (..))
import Redis.PublishAudit
import Redis.Subscription
import Redis.TestKit.Cluster
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait
import Redis.Tracing (endedNode)
import Support
import Test.Hspec hiding (after, before)

spec :: Spec
spec = do
  describe "subscriptions in a cluster" . aroundAll (withCluster options) $ do
    it "hear a channel once, whatever node it is published at, and a shard's at its primary" $ \cluster ->
      limited . settled . connected cluster $ \client -> do
        let shards = take 30 (keysIn "orders:" (const True))
        withSubscription client (channel "news" <> matching "user:*" <> foldMap shardChannel shards) $ \subscription -> do
          nodes <- map fst <$> clusterPrimaries cluster
          forM_ (zip nodes ["a", "b", "c"]) $ \(node, payload) -> do
            _ <- Server.command (nodeServer node) ["PUBLISH", "news", payload]
            Server.command (nodeServer node) ["PUBLISH", "user:1", payload]
          forM_ shards $ \name -> run client (Redis.spublish name "x") `shouldReturn` 1
          heard <- sequence [nextEvent subscription | _ <- [1 .. 6 + length shards]]
          sort [(messageChannel message, messagePayload message) | Message message <- heard]
            `shouldBe` sort ([(name, payload) | name <- ["news", "user:1"], payload <- ["a", "b", "c"]] <> [(name, "x") | name <- shards])

    it "hear what happens to keys of every primary" $ \cluster ->
      limited . settled . connected cluster $ \client -> do
        _ <- run client (Redis.configSet (("notify-keyspace-events", "KEA") :| []))
        let names = take 60 (keysIn "far:" (const True))
        withSubscription client (keyevent 0 "set") $ \subscription -> do
          forM_ names $ \name -> run client (Redis.set name "x")
          heard <- sequence [nextEvent subscription | _ <- names]
          sort [keyEventKey event | Message message <- heard, Just event <- [keyEventOf message]] `shouldBe` sort names

    it "of a shard's channel follow its slot, again and again" $ \cluster -> do
      let name = "moving"
      home <- slotPrimary cluster (slotNumberOf name)
      primaries <- map fst <$> clusterPrimaries cluster
      faulty cluster (shardChannel name) (Redis.spublish name) $ \account ->
        forM_ (filter (/= home) primaries <> [home]) $ \target -> do
          awaitMore account 20
          gaps <- gapsSoFar account
          migrateSlot cluster quietMigration (slotNumberOf name) target
          eventually 10 "a gap is told" $ (> gaps) <$> gapsSoFar account

    it "of a shard's channel follow a planned fail-over" $ \cluster -> do
      let name = "failing"
      primary <- slotPrimary cluster (slotNumberOf name)
      replicas <- replicasOf cluster primary
      faulty cluster (shardChannel name) (Redis.spublish name) $ \account -> do
        awaitMore account 20
        forM_ (take 1 replicas) (failover cluster)
        awaitMore account 20

    it "of an ordinary channel go to another node when theirs stands still" $ \cluster ->
      elsewhere cluster "still" $ \listening account -> do
        gaps <- gapsSoFar account
        flip finally (Server.thaw (nodeServer listening)) $ do
          Server.freeze (nodeServer listening)
          eventually 10 "a gap is told" $ (> gaps) <$> gapsSoFar account

    it "of an ordinary channel go to another node when theirs is killed" $ \cluster ->
      elsewhere cluster "dead" $ \listening account -> do
        gaps <- gapsSoFar account
        flip finally (Server.restart (nodeServer listening)) $ do
          Server.kill9 (nodeServer listening)
          eventually 10 "a gap is told" $ (> gaps) <$> gapsSoFar account

  it "a subscription that is not confirmed in time is not blamed on a node of other topics" $
    limited . settled . withFakeNode $ \a -> withFakeNode $ \b -> do
      let (here, there) = (keyIn "here" (< 8192), keyIn "there" (>= 8192))
          alive answer _ = \case
            ["SSUBSCRIBE", name] -> pure (Just (answer name))
            "PING" : _ -> pure (Just (Say (List [Text "pong", Text ""])))
            _ -> pure Nothing
      mapM_ (`setView` shardsView [shard [(0, 8191)] a, shard [(8192, 16383)] b]) [a, b]
      setScript a (alive (\name -> Say (List [Text "ssubscribe", Text name, Number 1])))
      setScript b (alive (const Silence))
      withClient (setCommandTimeout (Just (seconds 0.5)) (clusterOf (map fakeEndpoint [a, b]))) $ \client ->
        withSubscription client (shardChannel here) $ \subscription -> do
          setScript a (\_ _ -> pure (Just HangUp))
          hangUpAll a
          subscribe subscription (shardChannel there) `shouldThrow` \case
            TimeoutError _ -> True
            _ -> False

  describe "subscriptions in a cluster whose primaries are killed" . aroundAll (withCluster options) $ do
    it "lose nothing outside of gaps: a shard's channel" $ \cluster -> do
      let name = "killed"
      faulty cluster (shardChannel name) (Redis.spublish name) $ \account -> do
        awaitMore account 20
        old <- killPrimary cluster (slotNumberOf name)
        void (awaitNewPrimary cluster (slotNumberOf name) old)
        awaitMore account 20
        Server.restart (nodeServer old)
        awaitAgreement cluster

  describe "subscriptions to what happens to keys, in a cluster whose primaries are killed" . aroundAll (withCluster options) $ do
    it "tell of each change of a key, or of a gap, when a node joins and leaves" $ \cluster -> do
      clusterNodes cluster >>= mapM_ telling
      home <- slotPrimary cluster (slotNumberOf key)
      ofKeys cluster $ \account -> do
        awaitMore account 20
        gaps <- gapsSoFar account
        node <- addPrimary cluster
        telling node
        migrateSlot cluster quietMigration (slotNumberOf key) node
        awaitMore account 20
        -- The client listens to the new node only from some moment on, so it must report a gap.
        eventually 10 "a gap is told" $ (> gaps) <$> gapsSoFar account
        joined <- gapsSoFar account
        migrateSlot cluster quietMigration (slotNumberOf key) home
        -- Without a slot it is no node to listen to, and its last events may not have come.
        eventually 10 "a gap is told" $ (> joined) <$> gapsSoFar account
        awaitMore account 20
        removeNode cluster node

    it "tell of each change of a key, or of a gap, when a primary is killed" $ \cluster -> do
      clusterNodes cluster >>= mapM_ telling
      ofKeys cluster $ \account -> do
        awaitMore account 20
        old <- killPrimary cluster (slotNumberOf key)
        void (awaitNewPrimary cluster (slotNumberOf key) old)
        awaitMore account 20
        Server.restart (nodeServer old)
        awaitAgreement cluster
  where
    key = "counter"
    telling node = void (Server.command (nodeServer node) ["CONFIG", "SET", "notify-keyspace-events", "KEA"])
    -- The event names the key that was set, so each number is a key of its own.
    ofKeys cluster = faultyOf isSet cluster (keyevent 0 "set") (pure (\number -> 1 <$ Redis.set ("{counter}" <> number) "x"))
    isSet message = maybe False ((== "set") . keyEventName) (keyEventOf message)
    options = clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1, clusterNodeTimeout = 1500}

connected :: Cluster -> (Client -> IO a) -> IO a
connected = connectedWith noHooks

connectedWith :: Hooks -> Cluster -> (Client -> IO a) -> IO a
connectedWith hooks cluster action = do
  addresses <- clusterAddresses cluster
  -- Only a refresh of the map shows a node that has joined.
  withClient (setHooks hooks . setRefreshInterval (seconds 2) . setSilenceLimit (Just (seconds 0.5)) $ liveConfig addresses) action

-- | Publishes while the action makes trouble, and checks that each message was received or lies in
-- a gap.
faulty :: Cluster -> Topics -> (ByteString -> Command Int64) -> (Account -> IO ()) -> IO ()
faulty cluster topics publish = faultyOf (const True) cluster topics (pure publish)

-- | Publishes to an ordinary channel at one node, and gives the action another node: the one on
-- which the client listens. One node publishes everything, because messages from several nodes have
-- no order. No other test uses the channel: a node that was frozen may deliver messages from the
-- test before.
elsewhere :: Cluster -> ByteString -> (Node -> Account -> IO ()) -> IO ()
elsewhere cluster name trouble = do
  primaries <- map fst <$> clusterPrimaries cluster
  listening <- newEmptyMVar
  let publishing = do
        at <- listeningTo name primaries >>= maybe (failure "nobody listens") pure
        putMVar listening at
        publisher <- maybe (failure "a second primary") pure (find (/= at) primaries)
        pure (onNode (addressEndpoint (nodeAddress publisher)) . Redis.publish name)
  faultyOf (const True) cluster (channel name) publishing $ \account -> do
    awaitMore account 20
    at <- takeMVar listening
    trouble at account
    awaitMore account 20
    awaitAgreement cluster

faultyOf :: (Message -> Bool) -> Cluster -> Topics -> IO (ByteString -> Command Int64) -> (Account -> IO ()) -> IO ()
faultyOf broadcastIs cluster topics publishing trouble = do
  taker <- newIORef Nothing
  let taking _ = pure (writeIORef taker . endedNode)
  within 60 . settled . connectedWith noHooks {hookCommand = Just taking} cluster $ \broadcastPublisher ->
    connected cluster $ \client ->
      withSubscription client topics $ \broadcastSubscription -> do
        broadcastPublish <- publishing
        ((), account) <- underBroadcast Broadcast {broadcastPublisher, broadcastPublish, broadcastTakenBy = readIORef taker, broadcastSubscription, broadcastIs} $ \account -> do
          trouble account
          awaitMore account 20
        wrong <- audit SeveralServers account
        wrong `shouldBe` []

-- | The node on which somebody listens to the channel.
listeningTo :: ByteString -> [Node] -> IO (Maybe Node)
listeningTo name nodes =
  listToMaybe <$> filterM (\node -> (== List [Text name]) <$> Server.command (nodeServer node) ["PUBSUB", "CHANNELS", name]) nodes
