-- | What a client counts and reports of a command that a cluster redirects or refuses at first.
module ObservedSpec (spec) where

import Control.Concurrent.STM
import Data.Bifunctor (bimap)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (sort)
import FakeNode
import Redis
import Redis.Commands qualified as Redis
import Redis.Metrics
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Wait (eventually)
import Redis.Tracing
import Support
import Test.Hspec

key :: ByteString
key = "key"

told :: ByteString -> FakeNode -> Reply
told word node = Failed (Char8.unwords [word, Char8.pack (show (slotNumberOf key)), fakeAddress node])

-- | Sends these replies to the first GETs and INCRs.
atFirst :: [Reply] -> IO Script
atFirst replies = do
  left <- newTVarIO replies
  pure $ \_ -> \case
    name : _
      | name `elem` ["GET", "INCR"] ->
        atomically $
          readTVar left >>= \case
            reply : rest -> Just (Say reply) <$ writeTVar left rest
            [] -> pure Nothing
    _ -> pure Nothing

-- | Runs the action with a client that knows the map, and with a reader of the client's command
-- events.
listening :: [FakeNode] -> (Client -> IO [(CommandBegun, CommandEnded)] -> IO a) -> IO a
listening nodes action = do
  heard' <- newTVarIO []
  let hook begun = pure (\ended -> atomically (modifyTVar' heard' (<> [(begun, ended)])))
  withClient (setHooks noHooks {hookCommand = Just hook} (clusterOf (map fakeEndpoint nodes))) $ \client -> do
    eventually 5 "the map is known" (not . null <$> clientNodes client)
    action client (readTVarIO heard')

countsOf :: FakeNode -> Client -> IO (Int, Int, Int)
countsOf node client = do
  nodes <- snapshotNodes <$> clientSnapshot client
  pure $ case filter ((== fakeEndpoint node) . gaugeEndpoint) nodes of
    [found] -> (countMoved found, countAsk found, countResent found)
    _ -> (-1, -1, -1)

-- | The node, the attempts and the redirects that the event reports.
way :: CommandEnded -> (Maybe Endpoint, Int, Int)
way ended = (endedNode ended, endedAttempts ended, endedRedirects ended)

spec :: Spec
spec = describe "What is counted and told in a cluster" $ do
  it "a redirect is counted where it was said, and the command where it went" $
    limited . settled . withTwoNodes $ \a b -> listening [a] $ \client heard' -> do
      atFirst [told "MOVED" b] >>= setScript a
      _ <- run client (Redis.incr key)
      map (bimap begunOperation way) <$> heard' `shouldReturn` [("INCR", (Just (fakeEndpoint b), 2, 1))]
      countsOf a client `shouldReturn` (1, 0, 0)
      countsOf b client `shouldReturn` (0, 0, 1)

  it "ASK and TRYAGAIN are attempts too, and only the first is a redirect" $
    limited . settled . withTwoNodes $ \a b -> listening [a] $ \client heard' -> do
      atFirst [Failed "TRYAGAIN Multiple keys request during rehashing of slot", told "ASK" b] >>= setScript a
      run client (Redis.get key) `shouldReturn` Just (Char8.pack (show (fakePort b)))
      map (way . snd) <$> heard' `shouldReturn` [(Just (fakeEndpoint b), 3, 1)]
      map ((> mempty) . endedRecovering . snd) <$> heard' `shouldReturn` [True]
      countsOf a client `shouldReturn` (0, 1, 1)
      countsOf b client `shouldReturn` (0, 0, 1)

  it "a submitted command and one of a pipeline tell the same" $
    limited . settled . withTwoNodes $ \a b -> listening [a] $ \client heard' -> do
      atFirst [told "ASK" b, told "ASK" b] >>= setScript a
      _ <- submit client (Redis.get key) >>= awaitReply
      _ <- runPipeline client (pipelined (Redis.get key) *> pipelined (Redis.get key))
      map (way . snd) <$> heard' `shouldReturn` [(Just (fakeEndpoint b), 2, 1), (Nothing, 2, 1)]
      countsOf a client `shouldReturn` (0, 2, 0)
      countsOf b client `shouldReturn` (0, 0, 2)

  it "a command that blocks tells it too" $
    limited . settled . withTwoNodes $ \a b -> listening [a] $ \client heard' -> do
      left <- newTVarIO [told "ASK" b]
      setScript a $ \_ -> \case
        "BLPOP" : _ ->
          atomically $
            readTVar left >>= \case
              reply : rest -> Just (Say reply) <$ writeTVar left rest
              [] -> pure Nothing
        _ -> pure Nothing
      _ <- tryRun client (Redis.blpop (key :| []) (Just (milliseconds 10)))
      map (way . snd) <$> heard' `shouldReturn` [(Just (fakeEndpoint b), 2, 1)]
      countsOf a client `shouldReturn` (0, 1, 0)

  it "a command that waited for a node tells when it stood in a queue at last" $
    limited . settled . withFakeNode $ \node -> do
      heard' <- newTVarIO []
      setView node (List [])
      let hook _ = pure (\ended -> atomically (modifyTVar' heard' (<> [ended])))
      withClient (setHooks noHooks {hookCommand = Just hook} (clusterOf [fakeEndpoint node])) $ \client -> do
        waiting <- submit client (Redis.incr key)
        setView node (shardsView [shard allSlots node])
        awaitReply waiting `shouldReturn` 1
        map (maybe False (<= seconds 30) . endedEntering) <$> readTVarIO heard' `shouldReturn` [True]

  it "what several nodes answer has no node of its own" $
    limited . settled . withTwoNodes $ \a b -> do
      let (low, high) = (keyIn "low" (< 8192), keyIn "high" (>= 8192))
          view = shardsView [shard [(0, 8191)] a, shard [(8192, 16383)] b]
      setView a view
      setView b view
      listening [a] $ \client heard' -> do
        _ <- runPipeline client (pipelined (Redis.get low) *> pipelined (Redis.get high))
        _ <- runPipeline client (pipelined (Redis.get low) *> pipelined (Redis.get low))
        map (bimap begunOperation way) <$> heard'
          `shouldReturn` [("PIPELINE GET", (Nothing, 1, 0)), ("PIPELINE GET", (Just (fakeEndpoint a), 1, 0))]
        sort . map gaugeEndpoint . snapshotNodes <$> clientSnapshot client `shouldReturn` sort [fakeEndpoint a, fakeEndpoint b]

  it "errors are counted by what their callers may conclude, where the command was last" $
    limited . settled . withTwoNodes $ \a _ -> listening [a] $ \client _ -> do
      atFirst [Failed "OOM command not allowed", Failed "OOM command not allowed"] >>= setScript a
      _ <- tryRun client (Redis.incr key)
      _ <- tryRun client (Redis.incr key)
      nodes <- snapshotNodes <$> clientSnapshot client
      map countErrors (filter ((== fakeEndpoint a) . gaugeEndpoint) nodes) `shouldBe` [ErrorCounts {errorsNotSent = 0, errorsRefused = 2, errorsMaybeExecuted = 0}]
