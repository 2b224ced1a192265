-- | Scripts that are named by their digests, in a cluster.
module ScriptsSpec (spec) where

import Control.Concurrent.MVar (newEmptyMVar, putMVar, readMVar)
import Control.Monad (forM_, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict qualified as Map
import FakeNode hiding (Script)
import Redis
import Redis.Commands qualified as Redis
import Redis.Decode qualified as Decode
import Redis.Script
import Redis.TestKit.Cluster
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Wait (eventually)
import Redis.Value (Value (..))
import Support
import Test.Hspec

spec :: Spec
spec = describe "a script that is named by its digest" $ do
  it "goes with its text to the node that does not know it, whichever way it is run" $
    limited . settled . withTwoNodes $ \a b -> do
      setScript a knowsNone
      -- With at most one attempt, so that the test shows that EVAL after NOSCRIPT is not a second
      -- attempt.
      withClient (setMaxAttempts 1 (clusterOf [fakeEndpoint a])) $ \client -> do
        _ <- run client (Redis.get "elsewhere")
        answers <- sequence [run client one, submit client one >>= awaitReply, runPipeline client (pipelined one)]
        answers `shouldBe` replicate 3 (Integer 7)
        said <- filter ((`elem` [["EVALSHA"], ["EVAL"]]) . take 1) <$> heard a
        said `shouldBe` concat (replicate 3 [["EVALSHA", scriptDigest text, "1", key, "x"], ["EVAL", scriptText text, "1", key, "x"]])
        mapM (countHeard b) [["EVALSHA"], ["EVAL"]] `shouldReturn` [0, 0]

  it "has its text already when the client still looks for its node" $
    limited . settled . withTwoNodes $ \a _ -> do
      asked <- newEmptyMVar
      setScript a $ \connection words' -> when (take 1 words' == ["CLUSTER"]) (readMVar asked) *> knowsNone connection words'
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        waiting <- submit client one
        putMVar asked ()
        awaitReply waiting `shouldReturn` Integer 7
        mapM (countHeard a) [["EVALSHA"], ["EVAL"]] `shouldReturn` [0, 1]

  it "goes with its text to where it is redirected" $
    limited . settled . withTwoNodes $ \a b -> do
      setScript a $ \_ words' -> pure (if take 1 words' == ["EVALSHA"] then Just (Say (Failed (redirect "MOVED" key <> fakeAddress b))) else Nothing)
      setScript b knowsNone
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        _ <- run client (Redis.get "elsewhere")
        run client one `shouldReturn` Integer 7
        mapM (countHeard b) [["EVALSHA"], ["EVAL"]] `shouldReturn` [0, 1]

  forM_ ["MOVED", "ASK"] $ \code ->
    it ("may say " <> Char8.unpack code <> " itself, and leads nobody elsewhere with it") $
      limited . settled . withTwoNodes $ \a b -> do
        let said = redirect code "elsewhere" <> fakeAddress b
        setScript a $ \_ words' -> pure (if take 1 words' `elem` [["EVALSHA"], ["EVAL"]] then Just (Say (Failed said)) else Nothing)
        withClient (clusterOf [fakeEndpoint a]) $ \client -> do
          failed <- tryRun client one >>= expectError
          onLent <- withDedicated client (AtKey key) (`tryRunOn` one) >>= expectError
          submitted <- withDedicated client (AtKey key) (\own -> submitOn own one >>= tryAwaitReply) >>= expectError
          map errorDelivery [failed, onLent, submitted] `shouldBe` [MaybeExecuted, MaybeExecuted, MaybeExecuted]
          -- The slot that it named is where it was.
          run client (Redis.get "elsewhere") `shouldReturn` Just (Char8.pack (show (fakePort a)))
          mapM (countHeard b) [["EVALSHA"], ["EVAL"], ["GET"], ["ASKING"]] `shouldReturn` [0, 0, 0, 0]

  it "goes with its text to a replica, if it only reads" $
    limited . settled . withTwoNodes $ \a b -> do
      mapM_ (`setView` replicated a b) [a, b]
      setScript b knowsNone
      withClient (preferringReplicas [fakeEndpoint a]) $ \client -> do
        run client (Redis.get key) `shouldReturn` Just (Char8.pack (show (fakePort b)))
        run client (evalScriptRo text [key] []) `shouldReturn` Integer 7
        mapM (countHeard b) [["EVALSHA_RO"], ["EVAL_RO"]] `shouldReturn` [1, 1]
        mapM (countHeard a) [["EVALSHA_RO"], ["EVAL_RO"]] `shouldReturn` [0, 0]

  it "goes to every node of an audience, with its text to those that do not know it" $
    limited . settled . withFakeNode $ \a -> withFakeNode $ \b -> do
      mapM_ (`setView` shardsView [shard [(0, 100)] a, shard [(101, 16383)] b]) [a, b]
      setScript a knowsNone
      setScript b $ \_ words' -> pure (if take 1 words' == ["EVALSHA"] then Just (Say (Number 8)) else Nothing)
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        answers <- run client (onEvery Primaries (evalScript text [] []))
        answers `shouldBe` Map.fromList [(fakeEndpoint a, Integer 7), (fakeEndpoint b, Integer 8)]

  it "is in doubt when its connection is lost, unless it only reads" $
    limited . settled . withTwoNodes $ \a _ -> do
      script' <- hangingUp 1 "EVALSHA" =<< hangingUp 1 "EVALSHA_RO" knowsNone
      setScript a script'
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        _ <- run client (Redis.get "elsewhere")
        problem <- tryRun client one >>= expectError
        errorDelivery problem `shouldBe` MaybeExecuted
        countHeard a ["EVAL"] `shouldReturn` 0
        run client (evalScriptRo text [key] []) `shouldReturn` Integer 7
        mapM (countHeard a) [["EVALSHA_RO"], ["EVAL_RO"]] `shouldReturn` [1, 1]

  it "is in doubt when it broke off at a key of another slot" $
    limited . settled . withTwoNodes $ \a _ -> do
      setScript a $ \_ words' ->
        pure (if take 1 words' `elem` [["EVALSHA"], ["EVAL"]] then Just (Say (Failed "CROSSSLOT Keys in request don't hash to the same slot script: 0123, on @user_script:1.")) else Nothing)
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        problem <- tryRun client one >>= expectError
        errorDelivery problem `shouldBe` MaybeExecuted

  aroundAll (withCluster clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1}) $ do
    it "runs once for each key of a pipeline over all nodes, none of which knows it" $ \cluster ->
      limited . connected id cluster $ \client -> do
        let keys = [Char8.pack ("script:" <> show n) | n <- [1 :: Int .. 300]]
            double name = evalScript doubling [name] [] `decodedBy` Decode.integer
            add name = evalScript adding [name] ["5"] `decodedBy` Decode.integer
        added <- runPipeline client (traverse (pipelined . add) keys)
        added `shouldBe` map (const 5) keys
        run client (Redis.scriptExists (pure (scriptDigest adding))) `shouldReturn` [True]
        run client Redis.scriptFlush
        doubled <- runPipeline client (traverse (pipelined . double) keys)
        doubled `shouldBe` map (const 10) keys
        again <- runPipeline client (traverse (\name -> (,) <$> pipelined (add name) <*> pipelined (double name)) keys)
        -- If the node did not know the first script, its command ran after the second one.
        again `shouldSatisfy` all (`elem` [(15, 30), (25, 20)])
        run client (Redis.scriptExists (pure (scriptDigest adding))) `shouldReturn` [True]

    it "reads on replicas that do not know it" $ \cluster ->
      limited . connected (setRefreshInterval (seconds 0.2) . setReadFrom PreferReplica) cluster $ \client -> do
        eventually 20 "it knows all six" ((== 6) . length <$> clientNodes client)
        let keys = [Char8.pack ("read:" <> show n) | n <- [1 :: Int .. 60]]
            reading name = evalScriptRo getting [name] [] `decodedBy` Decode.nullable Decode.bytes
        mapM_ (\name -> run client (Redis.set name name)) keys
        run client Redis.scriptFlush
        eventually 10 "replicas have what was written" (all (uncurry (==)) . zip (map Just keys) <$> runPipeline client (traverse (pipelined . reading) keys))
        -- Flushed again, so that only reads at replicas can have loaded the script.
        run client Redis.scriptFlush
        _ <- runPipeline client (traverse (pipelined . reading) keys)
        run client (onEvery Replicas (Redis.scriptExists (pure (scriptDigest getting)))) >>= (`shouldSatisfy` all (== [True]) . Map.elems)
        run client (onEvery Primaries (Redis.scriptExists (pure (scriptDigest getting)))) >>= (`shouldSatisfy` all (== [False]) . Map.elems)
  where
    redirect code name = Char8.unwords [code, Char8.pack (show (slotNumberOf name)), ""]
    one = evalScript text [key] ["x"]
    text = script "return 7"
    key = "key" :: ByteString
    adding = script "return redis.call('INCRBY', KEYS[1], ARGV[1])"
    doubling = script "return redis.call('INCRBY', KEYS[1], redis.call('GET', KEYS[1]))"
    getting = script "return redis.call('GET', KEYS[1])"
    knowsNone _ words' = pure $ case take 1 words' of
      [name]
        | name `elem` ["EVALSHA", "EVALSHA_RO"] -> Just (Say (Failed "NOSCRIPT No matching script. Please use EVAL."))
        | name `elem` ["EVAL", "EVAL_RO"] -> Just (Say (Number 7))
      _ -> Nothing

connected :: (Config -> Config) -> Cluster -> (Client -> IO a) -> IO a
connected change cluster action = do
  addresses <- clusterAddresses cluster
  withClient (change (liveConfig addresses)) action
