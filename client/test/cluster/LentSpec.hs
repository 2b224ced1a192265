-- | Dedicated connections in a cluster.
module LentSpec (spec) where

import Control.Concurrent.STM
import Control.Monad (forM_, replicateM)
import Data.ByteString.Char8 qualified as Char8
import Data.List (nub)
import FakeNode
import Redis
import Redis.Commands qualified as Redis
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Wait (eventually)
import Support
import Test.Hspec

spec :: Spec
spec = describe "a lent connection" $ do
  it "of a blocking command that an ASK sends elsewhere is told ASKING right before the command" $
    limited . settled . withTwoNodes $ \a b -> do
      setScript a $ \_ -> \case
        "BLPOP" : _ -> pure (Just (Say (Failed (Char8.unwords ["ASK", Char8.pack (show (slotNumberOf "list")), fakeAddress b]))))
        _ -> pure Nothing
      setScript b $ \_ -> \case
        "BLPOP" : _ -> pure (Just (Say (List [Text "list", Text "element"])))
        _ -> pure Nothing
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        run client (Redis.blpop (pure "list") (Just (seconds 1))) `shouldReturn` Just ("list", "element")
        told <- heardOn b
        let connections = [connection | (connection, "BLPOP" : _) <- told]
        -- The command is sent exactly once, and nothing comes between it and ASKING.
        forM_ connections $ \connection ->
          take 2 (reverse [take 1 words' | (number, words') <- told, number == connection]) `shouldBe` [["BLPOP"], ["ASKING"]]
        length connections `shouldBe` 1

  forM_ [("by a key of that node's", \_ key -> AtKey key), ("by the node's endpoint", \node _ -> AtNode (fakeEndpoint node))] $ \(how, place) ->
    it ("that is had " <> how <> " leads there, and its commands need not be waited for one by one") $
      limited . settled . withFakeNode $ \a -> withFakeNode $ \b -> do
        let view = shardsView [shard [(0, 8191)] a, shard [(8192, 16383)] b]
            key = keyIn "key" (> 8191)
        mapM_ (`setView` view) [a, b]
        answering <- newTVarIO False
        setScript b $ \_ -> \case
          "INCR" : _ -> Nothing <$ atomically (readTVar answering >>= check)
          _ -> pure Nothing
        withClient (clusterOf [fakeEndpoint a]) $ \client -> do
          results <- withDedicated client (place b key) $ \own -> do
            started <- replicateM 100 (submitOn own (Redis.incr key))
            -- The node has not answered any of them yet.
            countHeard b ["INCR"] >>= (`shouldSatisfy` (<= 1))
            atomically (writeTVar answering True)
            mapM awaitReply started
          results `shouldBe` replicate 100 1
          countHeard b ["INCR"] `shouldReturn` 100
          countHeard a ["INCR"] `shouldReturn` 0
          -- All commands use one connection.
          told <- heardOn b
          length (nub [number | (number, "INCR" : _) <- told]) `shouldBe` 1

  it "that is lost has the client look for its node's successor, whether or not a command was awaited at once" $
    forM_ [False, True] $ \atOnce ->
      limited . settled . withFakeNode $ \a -> do
        script' <- hangingUp 1 "INCR" quiet
        setScript a script'
        withClient (setRefreshInterval (seconds 60) (clusterOf [fakeEndpoint a])) $ \client -> do
          _ <- run client (Redis.get "key")
          asked <- countHeard a ["CLUSTER", "SHARDS"]
          _ <- withDedicated client (AtKey "key") (\own -> if atOnce then tryRunOn own (Redis.incr "key") else submitOn own (Redis.incr "key") >>= tryAwaitReply) >>= expectError
          eventually 3 "it has asked for the map" $ (> asked) <$> countHeard a ["CLUSTER", "SHARDS"]
