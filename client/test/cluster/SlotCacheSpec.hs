-- | How the client learns and forgets the map, from nodes whose views a test sets.
module SlotCacheSpec (spec) where

import Control.Concurrent (forkIO)
import Control.Concurrent.Async (concurrently, withAsync)
import Control.Concurrent.Async qualified as Async
import Control.Concurrent.STM
import Control.Exception (AsyncException (ThreadKilled), mask_, throwIO, uninterruptibleMask_)
import Control.Monad (forM_, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty qualified as NonEmpty
import FakeNode
import GHC.Conc (BlockReason (BlockedOnException), ThreadStatus (ThreadBlocked), threadStatus)
import Redis
import Redis.Commands qualified as Redis
import Redis.Metrics
import Redis.TestKit.Address (freePorts)
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Wait (eventually, within)
import Support
import System.Timeout (timeout)
import Test.Hspec hiding (after, before)

spec :: Spec
spec = describe "the map" $ do
  learningSpec
  partialSpec
  forgettingSpec
  survivalSpec

-- A key in the lower half of the slots, and one in the upper half.
low, high :: ByteString
low = keyIn "low" (< 8192)
high = keyIn "high" (>= 8192)

-- Another key of the lower half, for a command that makes the client ask for the map.
again :: ByteString
again = keyIn "again" (< 8192)

lowSlots, highSlots :: [(Int, Int)]
lowSlots = [(0, 8191)]
highSlots = [(8192, 16383)]

servedBy :: FakeNode -> Maybe ByteString
servedBy node = Just (Char8.pack (show (fakePort node)))

at :: Reply -> FakeNode -> FakeShard
at host node = (shard allSlots node) {shardPrimaryAt = (host, fakePort node)}

-- Leaves every command unanswered.
mute :: Script
mute _ _ = pure (Just Silence)

learningSpec :: Spec
learningSpec = do
  forM_ [("NULL", Nil), ("empty", Text ""), ("a name", Text "localhost")] $ \(what, host) ->
    it ("takes a host that is " <> what) $
      limited . withTwoNodes $ \a b -> do
        setView a (shardsView [at host b])
        withClient (clusterOf [fakeEndpoint a]) $ \client ->
          run client (Redis.get low) `shouldReturn` servedBy b

  it "takes an IPv6 host" $
    limited . withFakeNode $ \a -> withFakeNodeAt "::1" $ \b -> do
      setView a (shardsView [at (Text "::1") b])
      withClient (clusterOf [fakeEndpoint a]) $ \client ->
        run client (Redis.get low) `shouldReturn` servedBy b

  it "comes from CLUSTER SLOTS where CLUSTER SHARDS is not known" $
    limited . withTwoNodes $ \a b -> do
      setScript a $ \_ -> \case
        ["CLUSTER", "SHARDS"] -> pure (Just (Say (Failed "ERR unknown subcommand 'SHARDS'")))
        ["CLUSTER", "SLOTS"] -> pure (Just (Say (slotsView [shard lowSlots a, shard highSlots b])))
        _ -> pure Nothing
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        run client (Redis.get low) `shouldReturn` servedBy a
        run client (Redis.get high) `shouldReturn` servedBy b

  forM_ [("leaves slots out", shardsView . pure . shard lowSlots), ("cannot be read", const (List [Text "what?"]))] $ \(what, said) ->
    it ("comes from CLUSTER SLOTS where CLUSTER SHARDS " <> what) $
      limited . withTwoNodes $ \a b -> do
        setView a (said a)
        setScript a $ \_ -> \case
          ["CLUSTER", "SLOTS"] -> pure (Just (Say (slotsView [shard lowSlots a, shard highSlots b])))
          _ -> pure Nothing
        withClient (clusterOf [fakeEndpoint a]) $ \client -> do
          run client (Redis.get low) `shouldReturn` servedBy a
          run client (Redis.get high) `shouldReturn` servedBy b

  it "comes from one seed that answers, though others are dead, hang or talk nonsense" $
    limited . withTwoNodes $ \a hanging -> withFakeNode $ \strange -> do
      ports <- freePorts 1
      setScript hanging mute
      setView strange (List [Text "what?"])
      let dead = [TcpEndpoint "127.0.0.1" (fromIntegral port) | port <- ports]
      withClient (clusterOf (dead <> map fakeEndpoint [hanging, strange, a])) $ \client ->
        run client (Redis.get low) `shouldReturn` servedBy a

  it "is what most nodes say, not what the first says" $
    limited . withTwoNodes $ \a b -> withFakeNode $ \c -> do
      setView a (shardsView [shard allSlots a])
      forM_ [b, c] $ \node -> setView node (shardsView [shard allSlots b])
      withClient (clusterOf (map fakeEndpoint [a, b, c])) $ \client ->
        run client (Redis.get low) `shouldReturn` servedBy b

  it "is learnt again while a known node hangs" $
    limited . withTwoNodes $ \a b -> withFakeNode $ \c -> do
      let thirds = shardsView [shard [(0, 99)] c, shard [(100, 8191)] a, shard highSlots b]
          without = shardsView [shard [(0, 8191)] a, shard highSlots b]
          first = keyIn "first" (< 100)
      mapM_ (`setView` thirds) [a, b, c]
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        run client (Redis.get first) `shouldReturn` servedBy c
        setScript c mute
        hangUpAll c
        mapM_ (`setView` without) [a, b]
        eventually 20 "its slots are served by another" $
          (== Right (servedBy a)) <$> tryRun client (Redis.get first)

partialSpec :: Spec
partialSpec = do
  it "may lack slots: their keys fail with a clear error in time, others work" $
    limited . withTwoNodes $ \a b -> do
      mapM_ (`setView` shardsView [shard lowSlots a, (shard highSlots b) {shardPrimaryAt = (Text "?", fakePort b)}]) [a, b]
      withClient (setCommandTimeout (Just (seconds 3)) (clusterOf [fakeEndpoint a])) $ \client -> do
        (missing, served) <- concurrently (timeout 5000000 (tryRun client (Redis.incr high))) (run client (Redis.get low))
        served `shouldBe` servedBy a
        case missing of
          Just (Left problem) -> do
            errorDelivery problem `shouldBe` NotSent
            show problem `shouldContain` "UncoveredSlot"
          other -> expectationFailure (show other)
        -- The client does not connect to the host "?".
        connectionsEver b `shouldReturn` 0

  it "that lacks a slot is asked for until the slot is served" $
    limited . withTwoNodes $ \a b -> do
      mapM_ (`setView` shardsView [shard lowSlots a]) [a, b]
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        run client (Redis.get low) `shouldReturn` servedBy a
        withAsync (tryRun client (Redis.get high)) $ \waiting -> do
          asks <- countHeard a ["CLUSTER", "SHARDS"]
          eventually 5 "it was asked again, in vain" $ (> asks + 1) <$> countHeard a ["CLUSTER", "SHARDS"]
          setView a (shardsView [shard lowSlots a, shard highSlots b])
          Async.wait waiting `shouldReturn` Right (servedBy b)

  it "a split write of which a part failed is in doubt, and the error says how much" $
    limited . withTwoNodes $ \a b -> do
      mapM_ (`setView` shardsView [shard lowSlots a, shard highSlots b]) [a, b]
      setScript b $ \_ -> \case
        "MSET" : _ -> pure (Just (Say (Failed "OOM command not allowed")))
        "SET" : _ -> pure (Just (Say (Failed "OOM command not allowed")))
        _ -> pure Nothing
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        problem <- tryRun client (Redis.mset ((low, "1") NonEmpty.:| [(high, "2")])) >>= expectError
        problem `shouldBe` RoutingError (RoutingFailure ("MSET " <> low <> " ...") MaybeExecuted (PartsFailed (FailedParts 1 2 (ReplyError (serverErrorFromText "OOM command not allowed") {serverErrorCommand = "MSET " <> high}))))

  it "a split write that may be repeated is, part by part" $
    limited . withTwoNodes $ \a b -> do
      mapM_ (`setView` shardsView [shard lowSlots a, shard highSlots b]) [a, b]
      hangingUp 1 "MSET" quiet >>= setScript b
      withClient (clusterOf [fakeEndpoint a]) $ \client ->
        run client (idempotent (Redis.mset ((low, "1") NonEmpty.:| [(high, "2")])))
      countHeard a ["MSET"] `shouldReturn` 1
      countHeard b ["MSET"] `shouldReturn` 2

forgettingSpec :: Spec
forgettingSpec = do
  it "a node that it no longer has gets its commands in flight answered, and is hung up on" $
    limited . settled . withTwoNodes $ \a b -> do
      mapM_ (`setView` shardsView [shard lowSlots a, shard highSlots b]) [a, b]
      gate <- newTVarIO False
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        withTakenAway a b gate client $ \inFlight -> do
          run client (Redis.get high) `shouldReturn` servedBy a
          atomically (writeTVar gate True)
          Async.wait inFlight `shouldReturn` Right (servedBy b)
        eventually 10 "its connections are closed" $ (== 0) <$> connectionsNow b

  it "a node that it no longer has is hung up on with the client, if not before" $
    limited . settled . withTwoNodes $ \a b -> do
      mapM_ (`setView` shardsView [shard lowSlots a, shard highSlots b]) [a, b]
      gate <- newTVarIO False
      ended <- newTVarIO []
      let note = \case
            Disconnected endpoint _ -> atomically (modifyTVar' ended (endpoint :))
            _ -> pure ()
      client <- newClient (setHooks noHooks {hookConnection = Just note} (setCommandTimeout (Just (seconds 0.3)) (clusterOf [fakeEndpoint a])))
      withTakenAway a b gate client . const $ do
        closeClient client
        readTVarIO ended >>= (`shouldContain` [fakeEndpoint b])
      atomically (writeTVar gate True)

  it "is no reason to leave connections open when closing is interrupted while it is asked for" $
    limited . settled . withFakeNode $ \a -> do
      client <- newClient (setRefreshInterval (seconds 0.05) (clusterOf [fakeEndpoint a]))
      run client (Redis.get low) `shouldReturn` servedBy a
      asked <- countHeard a ["CLUSTER"]
      setScript a mute
      eventually 5 "the map is asked for" $ (> asked) <$> countHeard a ["CLUSTER"]
      isMasked <- newTVarIO False
      mayClose <- newTVarIO False
      let close = mask_ $ do
            atomically (writeTVar isMasked True)
            uninterruptibleMask_ (atomically (readTVar mayClose >>= check))
            closeClient client
      withAsync close $ \closing -> do
        -- The interruption takes effect where closing first waits.
        atomically (readTVar isMasked >>= check)
        interrupting <- forkIO (Async.cancel closing)
        eventually 5 "the interruption is on its way" $ (== ThreadBlocked BlockedOnException) <$> threadStatus interrupting
        atomically (writeTVar mayClose True)
        void (Async.waitCatch closing)
      eventually 1 "its connections are closed" $ (== 0) <$> connectionsNow a

  it "nodes that only a redirect named are hung up on with the next map" $
    limited . withTwoNodes $ \a b -> withFakeNode $ \c -> do
      setScript a $ \_ -> \case
        ["GET", key] | key == low -> pure (Just (Say (Failed ("ASK " <> Char8.pack (show (slotNumberOf low)) <> " " <> Char8.pack (renderEndpoint (fakeEndpoint b))))))
        ["GET", key] | key == again -> pure (Just (Say (Failed "CLUSTERDOWN The cluster is down")))
        _ -> pure Nothing
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        run client (Redis.get low) `shouldReturn` servedBy b
        setView a (shardsView [shard lowSlots a, shard highSlots c])
        void (tryRun client (Redis.get again))
        eventually 10 "the stray is gone" $ (== 0) <$> connectionsNow b

  it "when all its nodes are gone, is learnt from the seeds again" $
    limited . withFakeNode $ \seed -> do
      withFakeNode $ \after' -> do
        client <- withFakeNode $ \early -> do
          setView seed (shardsView [shard allSlots early])
          client <- newClient (setMaxAttempts 100 (clusterOf [fakeEndpoint seed]))
          client <$ (run client (Redis.get low) `shouldReturn` servedBy early)
        setView seed (shardsView [shard allSlots after'])
        eventually 10 "the new nodes serve" $ (== Right (servedBy after')) <$> tryRun client (Redis.get low)
        closeClient client

-- Takes the second node, which has slots, from the map while it has a command in flight. It answers
-- that command when the gate opens.
withTakenAway :: FakeNode -> FakeNode -> TVar Bool -> Client -> (Async.Async (Either Error (Maybe ByteString)) -> IO ()) -> IO ()
withTakenAway a b gate client action = do
  run client (Redis.get high) `shouldReturn` servedBy b
  setScript b $ \_ -> \case
    "GET" : _ -> Nothing <$ atomically (readTVar gate >>= check)
    _ -> pure Nothing
  withAsync (tryRun client (Redis.get high)) $ \inFlight -> do
    eventually 5 "the command has arrived" $ (== 2) <$> countHeard b ["GET"]
    mapM_ (`setView` shardsView [shard allSlots a]) [a, b]
    setScript a $ \_ -> \case
      ["GET", key] | key == again -> pure (Just (Say (Failed "CLUSTERDOWN The cluster is down")))
      _ -> pure Nothing
    void (tryRun client (Redis.get again))
    setScript a quiet
    eventually 5 "the map is known" $ notElem (fakeEndpoint b) . map gaugeEndpoint . snapshotNodes <$> clientSnapshot client
    action inFlight

survivalSpec :: Spec
survivalSpec = do
  it "is learnt on whatever a hook throws" $
    limited . withTwoNodes $ \a b -> do
      let hooks = noHooks {hookConnection = Just (\_ -> throwIO ThreadKilled)}
      withClient (setHooks hooks (clusterOf [fakeEndpoint a])) $ \client -> do
        run client (Redis.get low) `shouldReturn` servedBy a
        mapM_ (`setView` shardsView [shard allSlots b]) [a, b]
        setScript a $ \_ -> \case
          "GET" : _ -> pure (Just (Say (Failed "CLUSTERDOWN The cluster is down")))
          _ -> pure Nothing
        run client (Redis.get low) `shouldReturn` servedBy b

  it "nobody waits for it once the client is closed, even without a time limit" $
    limited $ do
      ports <- freePorts 1
      let dead = [TcpEndpoint "127.0.0.1" (fromIntegral port) | port <- ports]
      client <- newClient (setMaxAttempts 1000000 (setCommandTimeout Nothing (clusterOf dead)))
      withAsync (tryRun client (Redis.get low)) $ \early -> do
        closeClient client
        within 10 (Async.wait early) `shouldReturn` Left ClientClosed
      within 10 (tryRun client (Redis.get low)) `shouldReturn` Left ClientClosed

  it "nobody is asked for it once the client is closed, who may never answer" $
    limited . settled . withFakeNode $ \a -> do
      setScript a mute
      client <- newClient (setConnectTimeout (seconds 30) (clusterOf [fakeEndpoint a]))
      eventually 5 "the seed is asked" $ (== 1) <$> connectionsNow a
      closeClient client
      -- The node keeps its own end open until it sees that the client has closed the connection.
      eventually 3.5 "the seed is left" $ (== 0) <$> connectionsNow a
