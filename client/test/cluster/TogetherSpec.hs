-- | Many commands that meet the same trouble at once: they recover together, whether or not a
-- caller waits for them.
module TogetherSpec (spec) where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (async, forConcurrently, forConcurrently_, poll, wait)
import Control.Concurrent.STM
import Control.Monad (forM, forM_, replicateM, replicateM_, void, when)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (traverse_)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Maybe (isNothing)
import FakeNode
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Commands qualified as Redis
import Redis.Metrics
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Wait (eventually, within)
import Support
import Test.Hspec

spec :: Spec
spec = describe "many commands together" $ do
  it "to a cluster of which no node answers end within their time" $
    limited . settled $
      withClient (setCommandTimeout (Just (seconds 1.5)) (clusterOf [TcpEndpoint "127.0.0.1" 1])) $ \client -> do
        results <- within 2.5 (tryEach client (replicate 1000 (Redis.get "key")))
        map (either (Just . errorDelivery) (const Nothing)) results `shouldBe` replicate 1000 (Just NotSent)

  it "to several nodes, or to a named one, have of their time what the wait for the first map leaves" $
    limited . settled . withFakeNode $ \a -> do
      setScript a $ \_ -> \case
        "CLUSTER" : "SHARDS" : _ -> Nothing <$ threadDelay 1500000
        "DBSIZE" : _ -> pure (Just Silence)
        _ -> pure Nothing
      let asks = [void . (`tryRun` Redis.dbsize), void . (`tryRun` onEvery Primaries Redis.dbsize), void . (`tryRun` onNode (fakeEndpoint a) Redis.dbsize)]
      forConcurrently_ asks $ \ask ->
        withClient (setConnectTimeout (seconds 5) (setCommandTimeout (Just (seconds 3)) (clusterOf [fakeEndpoint a]))) $ \client -> do
          began <- getMonotonicTime
          ask client
          ended <- getMonotonicTime
          -- With their whole limit from the map on they would end 1.5 s later.
          ended - began `shouldSatisfy` (< 4)
      countHeard a ["DBSIZE"] `shouldReturn` length asks

  it "to several nodes, to a named one, and on a lent connection wait for a map as long as those to a key" $
    limited . settled . withFakeNode $ \a -> do
      refusals <- newTVarIO (6 :: Int)
      setScript a $ \_ -> \case
        "CLUSTER" : _ -> do
          left <- atomically (stateTVar refusals (\left -> (left, left - 1)))
          pure (if left > 0 then Just (Say (Failed "LOADING Redis is loading the dataset in memory")) else Nothing)
        "DBSIZE" : _ -> pure (Just (Say (Number 7)))
        _ -> pure Nothing
      withClient (clusterOf [fakeEndpoint a]) $ \client ->
        forConcurrently [run client Redis.dbsize, run client (onNode (fakeEndpoint a) Redis.dbsize), withDedicated client (AtKey "key") (`runOn` Redis.dbsize)] id
          `shouldReturn` [7, 7, 7]

  it "to every primary wait for one of a slot that has none, whatever else they hear meanwhile" $
    limited . settled . withTwoNodes $ \a b -> do
      let owned low = mapM_ (`setView` shardsView [shard low a, shard [(8192, 16383)] b]) [a, b]
          key = keyIn "key" (> 8192)
      owned [(1, 8191)]
      asking <- newTVarIO True
      forM_ [a, b] $ \node -> setScript node $ \_ -> \case
        "CLUSTER" : _ -> Nothing <$ atomically (readTVar asking >>= check)
        "DBSIZE" : _ -> pure (Just (Say (Number 7)))
        "GET" : _ | fakePort node == fakePort b -> pure (Just (Say (Failed (Char8.unwords ["MOVED", Char8.pack (show (slotNumberOf key)), fakeAddress a]))))
        _ -> pure Nothing
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        _ <- run client (Redis.get (keyIn "low" (`elem` [1 .. 8191])))
        asked <- countHeard a ["CLUSTER"]
        atomically (writeTVar asking False)
        counted <- async (run client Redis.dbsize)
        eventually 5 "it has asked" $ (> asked) <$> countHeard a ["CLUSTER"]
        -- The map changes: another slot has moved. On a connection of its own, because the other one's next reply waits.
        _ <- withDedicated client (AtKey key) (`tryRunOn` Redis.get key)
        threadDelay 50000
        owned [(0, 8191)]
        atomically (writeTVar asking True)
        wait counted `shouldReturn` 14

  it "from the first moment on wait for the first map, and for no other" $
    -- With so long a throttle, the client would ask for the next map only after a minute.
    limited . settled . withFakeNode $ \a -> forM_ [1 :: Int .. 20] $ \_ ->
      withClient (setRefreshThrottle (seconds 60) (clusterOf [fakeEndpoint a])) $ \client -> do
        results <- forConcurrently [1 :: Int .. 256] $ \number ->
          replicateM 5 (tryRun client (Redis.get (Char8.pack (show number))))
        length (concat results) `shouldBe` 1280
        [failed | Left failed <- concat results] `shouldBe` []

  it "to a slot that nobody serves end within their time, and those to others at once" $
    limited . settled . withFakeNode $ \a -> do
      setView a (shardsView [shard [(1, 16383)] a])
      withClient (setCommandTimeout (Just (seconds 1.5)) (clusterOf [fakeEndpoint a])) $ \client -> do
        _ <- run client (Redis.get served)
        unserved <- forM [1 :: Int .. 20] $ \_ -> submit client (Redis.get lacking)
        _ <- within 1 (run client (Redis.get served))
        results <- within 2.5 (mapM tryAwaitReply unserved)
        map (either clusterReason (const Nothing)) results `shouldBe` replicate 20 (Just (UncoveredSlot 0))

  it "of which some belong to a slot that nobody serves: a split write ends within its time" $
    limited . settled . withFakeNode $ \a -> do
      setView a (shardsView [shard [(100, 16383)] a])
      withClient (setCommandTimeout (Just (seconds 1.5)) (clusterOf [fakeEndpoint a])) $ \client -> do
        let entries = [(Char8.pack ("key:" <> show n), "value") | n <- [1 :: Int .. 400]]
        forM_ (NonEmpty.nonEmpty entries) $ \some -> do
          problem <- within 2.5 (tryRun client (Redis.mset some)) >>= expectError
          case problem of
            RoutingError (RoutingFailure _ MaybeExecuted (PartsFailed (FailedParts _ _ first))) -> errorDelivery first `shouldBe` NotSent
            other -> expectationFailure (show other)

  it "to several nodes end with the client, as those to a slot do" $
    limited . settled . withFakeNode $ \a -> do
      setView a (shardsView [shard [(1, 16383)] a])
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        _ <- run client (Redis.get served)
        first <- async (tryRun client (Redis.get lacking))
        second <- async (tryRun client Redis.dbsize)
        threadDelay 100000
        closeClient client
        wait first `shouldReturn` Left ClientClosed
        wait second `shouldReturn` Left ClientClosed
        tryRun client Redis.dbsize `shouldReturn` Left ClientClosed
        tryRun client (onNode (fakeEndpoint a) Redis.ping) `shouldReturn` Left ClientClosed

  it "hold up nobody who comes after them once they have ended" $
    answeringWhen 1 $ \answering client -> do
      ended <- submit client (timeLimit (seconds 0.2) (Redis.get lacking)) >>= tryAwaitReply
      either clusterReason (const Nothing) ended `shouldBe` Just (UncoveredSlot 0)
      atomically (writeTVar answering False)
      first <- submit client (Redis.get served)
      -- The caller itself waits for room, as it does if no command is ahead of it.
      second <- async (submit client (Redis.get served))
      eventually 5 "it waits" $ (== 1) <$> callersWaiting client
      isNothing <$> poll second `shouldReturn` True
      atomically (writeTVar answering True)
      _ <- awaitReply first
      wait second >>= awaitReply >>= (`shouldSatisfy` (/= Nothing))

  it "are served when the slot is, in the order in which they were submitted" $
    limited . settled . withFakeNode $ \a -> do
      setView a (shardsView [shard [(1, 16383)] a])
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        _ <- run client (Redis.get served)
        waiting <- forM [1 :: Int .. 50] $ \n -> submit client (Redis.set lacking (Char8.pack (show n)))
        setView a (shardsView [shard allSlots a])
        results <- within 2.5 (mapM tryAwaitReply waiting)
        results `shouldBe` replicate 50 (Right ())
        written <- filter ((== ["SET"]) . take 1) <$> heard a
        map (drop 2) written `shouldBe` [[Char8.pack (show n)] | n <- [1 :: Int .. 50]]

  it "that were submitted and are not waited for follow their redirects" $
    limited . settled . withTwoNodes $ \a b -> do
      setView a (shardsView [shard allSlots a])
      setView b (shardsView [shard allSlots a])
      setScript a $ \_ -> \case
        "SET" : _ -> pure (Just (Say (Failed ("MOVED 1 " <> fakeAddress b))))
        "INCR" : _ -> pure (Just (Say (Failed ("ASK 1 " <> fakeAddress b))))
        _ -> pure Nothing
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        replicateM_ 100 (submit client (Redis.set served "value"))
        replicateM_ 100 (submit client (Redis.incr served))
        eventually 5 "all are where they belong" $ (== [100, 100]) <$> traverse (countHeard b . pure) ["SET", "INCR"]
        -- Each ASKING stands right before its command.
        commands <- heard b
        [take 1 next | ("ASKING" : _, next) <- zip commands (drop 1 commands)] `shouldBe` replicate 100 ["INCR"]

  it "that are submitted before the map is known run in that order" $
    limited . settled . withFakeNode $ \a ->
      forM_ [1 :: Int .. 5] $ \_ ->
        withClient (clusterOf [fakeEndpoint a]) $ \client -> do
          earlier <- length . filter ((== ["SET"]) . take 1) <$> heard a
          forM [1 :: Int .. 200] (submit client . Redis.set served . Char8.pack . show) >>= traverse_ awaitReply
          written <- filter ((== ["SET"]) . take 1) <$> heard a
          map (drop 2) (drop earlier written) `shouldBe` [[Char8.pack (show n)] | n <- [1 :: Int .. 200]]

  it "and one to every node, submitted before the map is known, run in that order" $
    limited . settled . withFakeNode $ \a ->
      forM_ [1 :: Int .. 20] $ \_ ->
        withClient (clusterOf [fakeEndpoint a]) $ \client -> do
          earlier <- length . writes <$> heard a
          writing <- forM [1 :: Int .. 50] (submit client . Redis.set served . Char8.pack . show)
          flushed <- submit client Redis.flushall
          traverse_ awaitReply writing *> awaitReply flushed
          written <- drop earlier . writes <$> heard a
          map (take 1) written `shouldBe` replicate 50 ["SET"] <> [["FLUSHALL"]]

  it "of different slots, submitted before the map is known, run at their node in that order" $
    limited . settled . withFakeNode $ \a ->
      forM_ [1 :: Int .. 5] $ \_ ->
        withClient (clusterOf [fakeEndpoint a]) $ \client -> do
          earlier <- length . writes <$> heard a
          let values = map (Char8.pack . show) [1 :: Int .. 2000]
          forM values (\value -> submit client (Redis.set ("key:" <> value) value)) >>= traverse_ awaitReply
          written <- drop earlier . writes <$> heard a
          map (drop 2) written `shouldBe` map pure values

  it "of which the first is for every node run in that order" $
    limited . settled . withTwoNodes $ \a b -> do
      mapM_ (`setView` shardsView [shard [(0, 8191)] a, shard [(8192, 16383)] b]) [a, b]
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        _ <- runPipeline client (tryPipelined (Redis.get served) *> tryPipelined (Redis.get (keyIn "low" (< 8192))))
        forM_ [1 :: Int .. 400] $ \_ -> do
          flushed <- submit client Redis.flushall
          written <- submit client (Redis.set served "value")
          awaitReply flushed *> awaitReply written
        map (take 1) . writes <$> heard b `shouldReturn` concat (replicate 400 [["FLUSHALL"], ["SET"]])

  it "of which as many wait for a node as a connection holds have their thread wait, too" $
    limited . settled . withFakeNode $ \a -> do
      setView a (List [])
      withClient (setCommandTimeout (Just (seconds 30)) . setLimits limitsDefaults {limitInFlight = 100} $ clusterOf [fakeEndpoint a]) $ \client -> do
        submitted <- newTVarIO (0 :: Int)
        thread <- async . forM [1 :: Int .. 500] $ \n -> submit client (Redis.set served (Char8.pack (show n))) <* atomically (modifyTVar' submitted (+ 1))
        eventually 5 "it waits" $ (== 100) <$> readTVarIO submitted
        -- For longer than a command that does not wait takes.
        threadDelay 100000
        readTVarIO submitted `shouldReturn` 100
        setView a (shardsView [shard allSlots a])
        wait thread >>= traverse_ awaitReply
        map (drop 2) . writes <$> heard a `shouldReturn` [[Char8.pack (show n)] | n <- [1 :: Int .. 500]]

  it "of which one waits for a node hold back those that its thread submits later, and nobody else's" $
    answeringWhen 3 $ \answering client -> do
      atomically (writeTVar answering False)
      full <- replicateM 3 (submit client (Redis.get served))
      waiting <- submit client (Redis.get lacking)
      -- Behind the one that waits, so the thread does not wait for room itself.
      behind <- within 1 (replicateM 2 (submit client (Redis.get served)))
      eventually 5 "the queue is full" $ (== 1) <$> callersWaiting client
      other <- async (submit client (Redis.get served))
      eventually 5 "the other thread waits for room itself" $ (== 2) <$> callersWaiting client
      isNothing <$> poll other `shouldReturn` True
      atomically (writeTVar answering True)
      mapM_ awaitReply (full <> behind)
      wait other >>= awaitReply >>= (`shouldSatisfy` (/= Nothing))
      tryAwaitReply waiting >>= (`shouldSatisfy` either (const True) (const False))
  where
    -- A node that answers GET when the variable allows, and a client with so much room and an open connection.
    answeringWhen :: Int -> (TVar Bool -> Client -> IO ()) -> IO ()
    answeringWhen room action = limited . settled . withFakeNode $ \a -> do
      answering <- newTVarIO True
      setView a (shardsView [shard [(1, 16383)] a])
      setScript a $ \_ words' -> Nothing <$ when (take 1 words' == ["GET"]) (atomically (readTVar answering >>= check))
      withClient (setLimits limitsDefaults {limitInFlight = room} (clusterOf [fakeEndpoint a])) $ \client ->
        run client (Redis.get served) *> action answering client

    lacking = keyIn "lacking" (== 0)
    served = keyIn "served" (> 8192)
    tryEach client = runPipeline client . traverse tryPipelined
    writes = filter ((`elem` [["SET"], ["FLUSHALL"]]) . take 1)
    callersWaiting client = sum . map gaugeWaiting . concatMap gaugeConnections . snapshotNodes <$> clientSnapshot client
