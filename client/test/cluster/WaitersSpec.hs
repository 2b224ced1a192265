-- | Callers that stop waiting for a submitted command while it is on its way to another node or
-- about to be sent again, and callers that go on waiting.
module WaitersSpec (spec) where

import Control.Concurrent.Async (async, cancel)
import Control.Concurrent.Async qualified as Async
import Control.Concurrent.STM
import Control.Monad (replicateM)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import FakeNode
import Redis
import Redis.Commands qualified as Redis
import Redis.Metrics
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Wait (eventually, within)
import Support
import System.Timeout (timeout)
import Test.Hspec

spec :: Spec
spec = describe "a waiter that gives up" $ do
  it "while the command is at the node that a redirect named leaves its result to the others, and it runs once" $
    sentOn id $ \_ a b answering started -> do
      first <- async (tryAwaitReply started)
      eventually 5 "it has been sent on" $ (== 1) <$> countHeard b ["INCR"]
      others <- replicateM 5 (async (tryAwaitReply started))
      cancel first
      atomically (writeTVar answering True)
      results <- within 5 (mapM Async.wait others)
      results `shouldBe` replicate 5 (Right 1)
      tryAwaitReply started `shouldReturn` Right 1
      mapM (`countHeard` ["INCR"]) [a, b] `shouldReturn` [1, 1]

  it "each in turn, gives the next one what is left of the command's time" $
    sentOn (setCommandTimeout (Just (seconds 1))) $ \_ a b answering started -> do
      timeout 200000 (tryAwaitReply started) `shouldReturn` Nothing
      timeout 200000 (tryAwaitReply started) `shouldReturn` Nothing
      within 1 (tryAwaitReply started) `shouldReturn` Left (TimeoutError (TimeoutFailure "INCR key" MaybeExecuted (seconds 1) Nothing))
      atomically (writeTVar answering True)
      mapM (`countHeard` ["INCR"]) [a, b] `shouldReturn` [1, 1]

  it "leaves a reply that came in time to those who come when the time is over" $
    sentOn (setCommandTimeout (Just (seconds 0.3))) $ \client _ b answering started -> do
      timeIsOver <- registerDelay 300000
      first <- async (tryAwaitReply started)
      eventually 5 "it has been sent on" $ (== 1) <$> countHeard b ["INCR"]
      cancel first
      atomically (writeTVar answering True)
      -- There is one connection to each node.
      eventually 5 "it is answered" $ (== [0, 0]) . map gaugeInFlight . concatMap gaugeConnections . snapshotNodes <$> clientSnapshot client
      atomically (readTVar timeIsOver >>= check)
      tryAwaitReply started `shouldReturn` Right 1

  it "before the command is sent again leaves that to the next one, and it runs once" $
    limited . settled . withFakeNode $ \a -> do
      refusals <- newTVarIO (1 :: Int)
      setScript a $ \_ -> \case
        "INCR" : _ -> do
          refused <- atomically (stateTVar refusals (\left -> (left > 0, left - 1)))
          pure (if refused then Just (Say (Failed "TRYAGAIN Multiple keys request during rehashing of slot")) else Nothing)
        _ -> pure Nothing
      withClient (setBackoff backoffDefaults {backoffFirst = seconds 1, backoffCap = seconds 1} (clusterOf [fakeEndpoint a])) $ \client -> do
        started <- submit client (Redis.incr "key")
        eventually 5 "it is refused" $ (== 1) <$> countHeard a ["INCR"]
        timeout 50000 (tryAwaitReply started) `shouldReturn` Nothing
        countHeard a ["INCR"] `shouldReturn` 1
        within 5 (tryAwaitReply started) `shouldReturn` Right 1
        tryAwaitReply started `shouldReturn` Right 1
        -- Refused once, then run.
        countHeard a ["INCR"] `shouldReturn` 2
  where
    -- A command that the first node redirects to the second, which answers it when the variable
    -- allows.
    sentOn :: (Config -> Config) -> (Client -> FakeNode -> FakeNode -> TVar Bool -> Pending Int64 -> Expectation) -> Expectation
    sentOn change action =
      limited . settled . withTwoNodes $ \a b -> do
        answering <- newTVarIO False
        setScript a (movedTo b)
        setScript b (answeringWhen answering)
        withClient (change (clusterOf [fakeEndpoint a])) $ \client ->
          submit client (Redis.incr "key") >>= action client a b answering
    movedTo :: FakeNode -> Script
    movedTo node _ = \case
      "INCR" : _ -> pure (Just (Say (Failed (Char8.unwords ["MOVED", Char8.pack (show (slotNumberOf "key")), fakeAddress node]))))
      _ -> pure Nothing
    answeringWhen :: TVar Bool -> Script
    answeringWhen answering _ = \case
      "INCR" : _ -> Nothing <$ atomically (readTVar answering >>= check)
      _ -> pure Nothing
