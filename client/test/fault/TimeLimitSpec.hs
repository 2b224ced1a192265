-- | A command's time limit is the whole time until its result, whatever the command waits for.
module TimeLimitSpec (spec) where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (async, cancel, mapConcurrently, wait, withAsync)
import Control.Concurrent.STM
import Control.Exception (try)
import Control.Monad (forever, void)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (traverse_)
import GHC.Clock (getMonotonicTime)
import Harness
import Redis
import Redis.Commands qualified as Commands
import Redis.TestKit.Command (Reply (Number))
import Redis.TestKit.Listener (AndThen (..), listenerPort, sayTo, withListener)
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventually, eventuallyReturns, within)
import Redis.Transaction
import Test.Hspec

spec :: Spec
spec = do
  describe "the time limit of a command on a connection of its own" $ do
    it "includes its wait for another caller's connection" $
      Server.withServer Server.serverDefaults $ \server ->
        leavingNothing . withClient (setMaxDedicated 1 (setCommandTimeout (Just (seconds 30)) (addressed server))) $ \client -> do
          holder <- async (tryRun client (Commands.blpop (pure "list") Nothing))
          eventuallyReturns 5 1 (blockedClients server)
          (result, taken) <- timed (tryRun client (timeLimit (seconds 0.3) (Commands.blpop (pure "other") (Just (seconds 20)))))
          result `shouldSatisfy` isLate NotSent
          taken `shouldSatisfy` (< 2)
          cancel holder

    it "includes the time until its connection is open" $
      neverAnswering $ \config -> leavingNothing . withClient (setCommandTimeout (Just (seconds 20)) config) $ \client -> do
        (result, taken) <- timed (tryRun client (timeLimit (seconds 0.3) (Commands.blpop (pure "list") (Just (seconds 20)))))
        deliveryOf result `shouldBe` Just NotSent
        taken `shouldSatisfy` (< 2)

    it "is not longer because the command has waited before it was sent" $
      behindProxy $ \_ proxy ->
        leavingNothing . withClient (setMaxDedicated 1 (setCommandTimeout (Just (seconds 30)) (through proxy))) $ \client -> do
          release <- newTVarIO False
          held <- newTVarIO False
          holder <- async (withDedicated client AnyPrimary (\_ -> atomically (writeTVar held True) *> atomically (readTVar release >>= check)))
          atomically (readTVar held >>= check)
          Proxy.freeze proxy Proxy.ToClient
          began <- getMonotonicTime
          late <- async (timed (tryRun client (timeLimit (seconds 2) (Commands.blpop (pure "list") (Just (seconds 0.1))))))
          eventually 5 "most of the time is over" ((>= began + 1.6) <$> getMonotonicTime)
          atomically (writeTVar release True)
          (result, taken) <- within 10 (wait late)
          result `shouldSatisfy` isLate MaybeExecuted
          taken `shouldSatisfy` (< 3)
          Proxy.thaw proxy Proxy.ToClient
          wait holder

    it "leaves no hole in a transaction behind WATCH when it is over before there is room" $
      behindProxy $ \server proxy ->
        leavingNothing . withClient (setSilenceLimit Nothing (through proxy)) $ \client -> do
          let write n = queued . (if n == 1024 then timeLimit (seconds 0.05) else id) $ Commands.set (Char8.pack (show n)) "value"
          -- MULTI and 1023 commands are in flight, as many as may be, and the next one finds no room in time.
          outcome <- withAsync (threadDelay 400000 *> Proxy.thaw proxy Proxy.ToServer) $ \_ ->
            within 10 . try $ watching client ("watched" :| []) $ \_ -> Commit (traverse_ write [1 .. 1100 :: Int]) <$ Proxy.freeze proxy Proxy.ToServer
          Proxy.thaw proxy Proxy.ToServer
          -- Nothing has run, and 'watching' may have begun again.
          Server.command server ["DBSIZE"] `shouldReturn` Number (case outcome of Right (Committed ()) -> 1100; _ -> 0)
          deliveryOf outcome `shouldSatisfy` (/= Just MaybeExecuted)

  describe "the time limit of a command on a shared connection" $
    it "is not longer because the connection had to be opened first" $ do
      gate <- newTVarIO False
      let answer _ caller = \case
            "GET" : _ -> pure GoOn
            _ -> GoOn <$ (atomically (readTVar gate >>= check) *> sayTo caller "-ERR unknown command\r\n")
      withListener "127.0.0.1" answer $ \listener ->
        withClient (single (setConnectTimeout (seconds 20) (setSilenceLimit Nothing (setMaxAttempts 1 (quick (standaloneConfig "127.0.0.1" (fromIntegral (listenerPort listener)))))))) $ \client -> do
          began <- getMonotonicTime
          late <- async (timed (tryRun client (timeLimit (seconds 2) (Commands.get "key"))))
          eventually 5 "most of the time is over" ((>= began + 1.6) <$> getMonotonicTime)
          atomically (writeTVar gate True)
          (result, taken) <- within 10 (wait late)
          result `shouldSatisfy` isLate MaybeExecuted
          taken `shouldSatisfy` (< 3)

  describe "the time limit of any command" $
    it "is over when a tenth more has passed, whatever the command waits for" $
      behindProxy $ \_ proxy ->
        leavingNothing . withClient (setMaxDedicated 2 (setCommandTimeout (Just (seconds 30)) (through proxy))) $ \client -> do
          run client Commands.ping
          Proxy.freeze proxy Proxy.ToClient
          let limit = 1
              late command = timed (tryRun client (timeLimit (seconds limit) command))
              onShared = void <$> Commands.get "key"
              -- Two wait for the server, the others for those two.
              onOwn = void <$> Commands.blpop (pure "list") Nothing
          (results, lag) <- withLag (mapConcurrently late (replicate 50 onShared <> replicate 6 onOwn))
          [result | (result, _) <- results, deliveryOf result `notElem` [Just NotSent, Just MaybeExecuted]] `shouldBe` []
          [taken | (_, taken) <- results, taken > 1.1 * limit + lag] `shouldBe` []
          Proxy.thaw proxy Proxy.ToClient

  describe "a client that is closed" $ do
    it "does not keep a command that waits to be sent again on a connection of its own" $
      endsOnceClosed (\client -> void <$> tryRun client (Commands.blpop (pure "list") Nothing))

    it "does not keep a watching transaction that waits to begin again" $
      endsOnceClosed (\client -> void <$> try (watching client (pure "key") (const (pure (Abandon :: Decision ())))))

-- | Checks that an action whose node refuses connections, and whose next attempt is a minute away,
-- ends as soon as the client is closed.
endsOnceClosed :: (Client -> IO (Either Error ())) -> Expectation
endsOnceClosed action =
  Server.withServer Server.serverDefaults $ \server -> leavingNothing $ do
    Server.kill9 server
    (journal, config) <- journalled (setBackoff backoffDefaults {backoffFirst = seconds 60, backoffCap = seconds 60} (setCommandTimeout (Just (seconds 600)) (addressed server)))
    client <- newClient config
    caller <- async (action client)
    awaitJournal journal "the attempt has failed" $ \case
      ConnectAttemptFailed {} -> True
      _ -> False
    within 5 (closeClient client)
    within 5 (wait caller) `shouldReturn` Left ClientClosed

-- | Runs an action beside a thread that only sleeps. Also returns how many seconds late that thread was
-- at most, twice: for the thread that notices, and for the caller.
withLag :: IO a -> IO (a, Double)
withLag action = do
  most <- newTVarIO 0
  let sleeper = forever $ do
        (_, taken) <- timed (threadDelay 10000)
        atomically (modifyTVar' most (max (taken - 0.01)))
  result <- withAsync sleeper (const action)
  lag <- readTVarIO most
  pure (result, 2 * lag)

timed :: IO a -> IO (a, Double)
timed action = do
  began <- getMonotonicTime
  result <- within 20 action
  ended <- getMonotonicTime
  pure (result, ended - began)

isLate :: Delivery -> Either Error a -> Bool
isLate delivery = \case
  Left (TimeoutError late) -> timeoutDelivery late == delivery
  _ -> False
