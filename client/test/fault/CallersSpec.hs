-- | Callers that give up, too many callers, and clients that are closed.
module CallersSpec (spec) where

import Control.Concurrent.Async
import Control.Concurrent.Async qualified as Async
import Control.Concurrent.STM
import Control.Exception (try)
import Control.Monad (forM, forM_, forever, replicateM, replicateM_, void)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Data.List (nub)
import GHC.Clock (getMonotonicTime)
import Harness
import Redis
import Redis.Commands qualified as Commands
import Redis.Metrics
import Redis.TestKit.Command (CommandCalls (callsRun))
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventually, eventuallyReturns, openDescriptors, within)
import System.Random (randomRIO)
import System.Timeout (timeout)
import Test.Hspec

spec :: Spec
spec = do
  describe "callers that give up" $
    forM_ [("with room for all", limitsDefaults), ("while they queue", limitsDefaults {limitInFlight = 8})] $ \(how, limits) ->
      it ("never leave their reply to others, " <> how) $
        Server.withServer Server.serverDefaults $ \server -> leavingNothing $ do
          cancelled <- newIORef (0 :: Int)
          (outcomes, echoed) <- withClient (setLimits limits (addressed server)) $ \client -> do
            outcomes <- within 30 . forConcurrently [1 .. 300 :: Int] $ \number -> do
              acknowledged <- newIORef (0 :: Int)
              doubtful <- newIORef 0
              let counter = "counter:" <> Char8.pack (show number)
                  impatient action = do
                    limit <- randomRIO (0, 3000)
                    timeout limit action
              forM_ [1 .. 20 :: Int] $ \turn -> do
                let token = Char8.pack (show number <> ":" <> show turn)
                impatient (run client (Commands.echo token)) >>= \case
                  Nothing -> atomicModifyIORef' cancelled (\count -> (count + 1, ()))
                  Just answer -> answer `shouldBe` token
                done <- readIORef acknowledged
                inDoubt <- readIORef doubtful
                impatient (run client (Commands.incr counter)) >>= \case
                  Nothing -> modifyIORef' doubtful (+ 1)
                  Just value -> do
                    fromIntegral value `shouldSatisfy` \found -> found > done && found <= done + inDoubt + 1
                    modifyIORef' acknowledged (+ 1)
              (,,) counter <$> readIORef acknowledged <*> readIORef doubtful
            (,) outcomes <$> run client (Commands.echo "after")
          echoed `shouldBe` "after"
          readIORef cancelled >>= (`shouldSatisfy` (> 0))
          sum [acknowledged | (_, acknowledged, _) <- outcomes] `shouldSatisfy` (> 0)
          forM_ outcomes $ \(counter, acknowledged, doubtful) -> do
            counted <- counterOf server counter
            counted `shouldSatisfy` \found -> acknowledged <= found && found <= acknowledged + doubtful

  describe "threads that are killed" $
    it "harm nobody else" $
      Server.withServer Server.serverDefaults $ \server -> do
        tally <- underLoad server (addressed server) $ \client load -> do
          replicateM_ 20 $ do
            victims <- forM [1 .. 20 :: Int] $ \_ -> async (forever (run client (Commands.incr "victims")))
            workersProgress load 2
            mapM_ cancel victims
        tallyMaybe tally `shouldBe` 0

  describe "a full queue" $ do
    it "makes callers wait, holds no more than its limit, and answers all" $
      behindProxy $ \server proxy -> leavingNothing $ do
        let config = setSilenceLimit Nothing . single . setCommandTimeout (Just (seconds 10)) . setLimits limitsDefaults {limitInFlight = 8} $ through proxy
        withClient config $ \client -> do
          run client Commands.ping
          Proxy.freeze proxy Proxy.ToClient
          callers <- forM [1 .. 60 :: Int] $ \_ -> async (tryRun client (Commands.incr "hits"))
          eventuallyReturns 5 52 (waitingOf client)
          inFlightOf client `shouldReturn` 8
          eventuallyReturns 5 8 (counterOf server "hits")
          Proxy.thaw proxy Proxy.ToClient
          results <- within 10 (mapM waitIt callers)
          map deliveryOf results `shouldBe` replicate 60 Nothing
        counterOf server "hits" `shouldReturn` 60

    it "lets those time out unsent who never had room" $
      behindProxy $ \server proxy -> leavingNothing $ do
        let config = setSilenceLimit Nothing . single . setCommandTimeout (Just (seconds 0.3)) . setLimits limitsDefaults {limitInFlight = 8} $ through proxy
        withClient config $ \client -> do
          run client Commands.ping
          Proxy.freeze proxy Proxy.ToClient
          results <- within 10 (forConcurrently [1 .. 60 :: Int] (const (tryRun client (Commands.incr "hits"))))
          let count expected = length (filter ((== Just expected) . deliveryOf) results)
          (count NotSent, count MaybeExecuted) `shouldBe` (52, 8)
          eventuallyReturns 5 8 (counterOf server "hits")
          Proxy.thaw proxy Proxy.ToClient
          eventually 5 "there is room again" (either (const False) (const True) <$> tryRun client Commands.ping)

    it "passes a place on that its caller gives up" $
      behindProxy $ \server proxy -> leavingNothing $ do
        let config = setSilenceLimit Nothing . single . setCommandTimeout (Just (seconds 10)) . setLimits limitsDefaults {limitInFlight = 2} $ through proxy
        withClient config $ \client -> do
          run client Commands.ping
          Proxy.freeze proxy Proxy.ToClient
          callers <- forM [1 .. 20 :: Int] $ \_ -> async (tryRun client (Commands.incr "hits"))
          eventuallyReturns 5 18 (waitingOf client)
          let (given, kept) = splitAt 10 callers
          mapConcurrently_ cancel given
          eventually 5 "those who gave up are gone" ((<= 10) <$> waitingOf client)
          Proxy.thaw proxy Proxy.ToClient
          results <- within 10 (mapM waitIt kept)
          map deliveryOf results `shouldBe` replicate 10 Nothing
          eventuallyReturns 5 0 (inFlightOf client)
        counted <- counterOf server "hits"
        counted `shouldSatisfy` \found -> found >= 10 && found <= 12

    it "of bytes stays within its limit" $
      Server.withServer Server.serverDefaults $ \server -> leavingNothing $ do
        let megabyte = 1024 * 1024
            value = ByteString.replicate megabyte 120
            config = setSilenceLimit Nothing . single . setCommandTimeout (Just (seconds 20)) . setLimits limitsDefaults {limitQueuedBytes = megabyte} $ addressed server
        withClient config $ \client -> do
          run client Commands.ping
          Server.freeze server
          callers <- forM [1 .. 40 :: Int] $ \number -> async (tryRun client (Commands.set ("key" <> Char8.pack (show number)) value))
          eventually 5 "most wait" ((> 20) <$> waitingOf client)
          waitingBytes <- sum . map gaugeQueuedBytes . concatMap gaugeConnections . snapshotNodes <$> clientSnapshot client
          waitingBytes `shouldSatisfy` (<= 2 * megabyte)
          Server.thaw server
          results <- within 15 (mapM waitIt callers)
          map deliveryOf results `shouldBe` replicate 40 Nothing
          run client Commands.dbsize `shouldReturn` 40

  describe "a reconnect storm" $ do
    it "makes one attempt at a time, and fewer as time passes" $
      Server.withServer durable $ \server ->
        Proxy.withProxy (Server.serverAddress server) $ \proxy -> do
          (journal, config) <- journalled (setMaxAttempts 5 (setBackoff backoffDefaults {backoffFirst = seconds 0.02, backoffCap = seconds 0.2} (through proxy)))
          tally <- underLoadOf 200 server config $ \_ load -> do
            began <- getMonotonicTime
            acceptedBefore <- Proxy.trafficAccepted <$> atomically (Proxy.proxyTraffic proxy)
            Server.kill9 server
            -- Watches the client until ten attempts have failed.
            eventually 20 "ten attempts have failed" $ do
              accepted <- Proxy.trafficAccepted <$> atomically (Proxy.proxyTraffic proxy)
              failures <- length . filter failedAttempt <$> journalSoFar journal
              -- One is under way, and one more was made by the first attempt that was let in without
              -- an answer.
              (accepted - acceptedBefore) `shouldSatisfy` (<= failures + 2)
              pure (failures >= 10)
            ended <- getMonotonicTime
            failures <- length . filter failedAttempt <$> journalEntries journal
            -- The delays are at least 10, 20, 40 and 80 ms, and then 100 ms each.
            fromIntegral failures `shouldSatisfy` (<= 6 + (ended - began) / 0.1)
            awaitTally load ((> 0) . tallyNotRun)
            Server.restart server
          tallyNotRun tally `shouldSatisfy` (> 0)

    forM_ [1, 2] $ \count ->
      it ("spares a server that lets it in and hangs up at once, with connections: " <> show count) $
        leavingNothing . hangingUp $ \hangUps config ->
          withClient (setMuxCount (Just count) config) $ \client -> do
            began <- getMonotonicTime
            withAsync (mapConcurrently (const (forever (tryRun client Commands.ping))) [1 .. 8 :: Int]) $ \_ ->
              eventually 20 "it has hung up often" ((>= 12 * count) <$> hangUpsSoFar hangUps)
            ended <- getMonotonicTime
            -- A command that is under way when a connection ends may cause one more hang-up for
            -- each connection. After that the delays are at least 10, 20, 40 and 80 ms, and then
            -- 100 ms each.
            (ended - began) `shouldSatisfy` (> 0.5)
            beFriendly hangUps
            eventually 5 "it is let in" (either (const False) (const True) <$> tryRun client Commands.ping)

    forM_ [("shared", void . (`tryRun` Commands.ping)), ("lent", void . (`tryRun` Commands.blpop (pure "list") (Just (seconds 0.01))))] $ \(what, ask) ->
      it ("opens a " <> what <> " connection after delays that are drawn anew each time") $
        Server.withServer Server.serverDefaults $ \server -> leavingNothing $ do
          Server.kill9 server
          (journal, config) <- journalled (single . setMaxAttempts 1 $ setBackoff backoffDefaults {backoffFirst = seconds 0.02, backoffCap = seconds 0.02} (addressed server))
          withClient config $ \client -> do
            let delaysSoFar = (\events -> [delay | ConnectAttemptFailed _ _ delay <- events]) <$> journalEntries journal
            eventually 10 "six attempts have failed" (ask client *> ((>= 6) . length <$> delaysSoFar))
            delays <- take 6 <$> delaysSoFar
            filter (\delay -> delay < seconds 0.01 || delay > seconds 0.02) delays `shouldBe` []
            length (nub delays) `shouldBe` 6

    it "does not keep anybody from a server that answered, and was started again" $
      Server.withServer durable $ \server -> leavingNothing $ do
        (journal, config) <- journalled (single . setMaxAttempts 1 $ setBackoff backoffDefaults {backoffFirst = seconds 20, backoffCap = seconds 20} (addressed server))
        withClient config $ \client -> forM_ [1 :: Int .. 3] $ \turn -> do
          run client Commands.ping
          _ <- run client (Commands.blpop (pure "list") (Just (seconds 0.01)))
          Server.kill9 server
          Server.restart server
          eventuallyReturns 5 (2 * turn) (length . filter isEnd <$> journalEntries journal)
          run client Commands.ping
          run client (Commands.blpop (pure "list") (Just (seconds 0.01))) `shouldReturn` Nothing

  describe "a submitted command" $ do
    it "has the same result however often and by whomever it is awaited" $
      Server.withServer Server.serverDefaults $ \server -> leavingNothing . withClient (addressed server) $ \client -> do
        started <- submit client (Commands.incr "hits")
        first <- awaitReply started
        others <- replicateConcurrently 10 (awaitReply started)
        others `shouldBe` replicate 10 first
        counterOf server "hits" `shouldReturn` 1

    it "is sent again once, however many await it" $
      behindProxy $ \server proxy -> leavingNothing . withClient (single (through proxy)) $ \client -> do
        run client (Commands.set "here" "value")
        Proxy.freeze proxy Proxy.ToClient
        started <- submit client (Commands.get "here")
        eventuallyReturns 5 1 (Server.callsOf callsRun "get" server)
        waiters <- forM [1 .. 10 :: Int] $ \_ -> async (tryAwaitReply started)
        Proxy.cut proxy Proxy.Reset
        Proxy.thaw proxy Proxy.ToClient
        results <- within 5 (mapM waitIt waiters)
        results `shouldBe` replicate 10 (Right (Just "value"))
        tryAwaitReply started `shouldReturn` Right (Just "value")
        Server.callsOf callsRun "get" server `shouldReturn` 2

    it "may be awaited again after its waiter gave up" $
      behindProxy $ \_ proxy -> leavingNothing . withClient (single (setSilenceLimit Nothing (through proxy))) $ \client -> do
        run client Commands.ping
        Proxy.freeze proxy Proxy.ToClient
        started <- submit client (Commands.incr "hits")
        timeout 10000 (awaitReply started) `shouldReturn` Nothing
        Proxy.thaw proxy Proxy.ToClient
        awaitReply started `shouldReturn` 1

  describe "a command's time" $ do
    it "includes the wait for a connection" $
      behindProxy $ \_ proxy -> leavingNothing $ do
        mapM_ (Proxy.freeze proxy) [Proxy.ToServer, Proxy.ToClient]
        withClient (setConnectTimeout (seconds 20) . setSilenceLimit Nothing . setCommandTimeout (Just (seconds 0.3)) $ through proxy) $ \client -> do
          result <- within 5 (tryRun client (Commands.incr "hits"))
          deliveryOf result `shouldBe` Just NotSent
        mapM_ (Proxy.thaw proxy) [Proxy.ToServer, Proxy.ToClient]

    it "is one for all attempts together" $
      behindProxy $ \_ proxy -> leavingNothing $ do
        -- The first attempt is cut off after most of the time. The second has only the rest of it,
        -- not the whole time again.
        withClient (single . setConnectTimeout (seconds 20) . setSilenceLimit Nothing . setCommandTimeout (Just (seconds 2)) $ through proxy) $ \client -> do
          run client Commands.ping
          Proxy.freeze proxy Proxy.ToClient
          began <- getMonotonicTime
          caller <- async (tryRun client (Commands.get "here"))
          eventually 5 "most of the time is over" ((> began + 1.5) <$> getMonotonicTime)
          Proxy.cut proxy Proxy.Reset
          result <- within 5 (waitIt caller)
          ended <- getMonotonicTime
          deliveryOf result `shouldSatisfy` (/= Nothing)
          (ended - began) `shouldSatisfy` (< 3)
          Proxy.thaw proxy Proxy.ToClient

  describe "closing a client" $ do
    it "waits for the commands in flight" $
      behindProxy $ \server proxy -> leavingNothing $ do
        Proxy.delay proxy Proxy.ToClient 0.1
        client <- newClient (through proxy)
        run client Commands.ping
        started <- replicateM 100 (submit client (Commands.incr "hits"))
        closeClient client
        results <- within 1 (mapM tryAwaitReply started)
        map deliveryOf results `shouldBe` replicate 100 Nothing
        counterOf server "hits" `shouldReturn` 100
        tryRun client Commands.ping `shouldReturn` Left ClientClosed

    it "gives up those that are not answered in time" $
      behindProxy $ \_ proxy -> leavingNothing $ do
        client <- newClient (single (setCommandTimeout (Just (seconds 0.5)) (setSilenceLimit Nothing (through proxy))))
        run client Commands.ping
        Proxy.freeze proxy Proxy.ToClient
        started <- replicateM 100 (submit client (Commands.incr "hits"))
        within 5 (closeClient client)
        results <- within 1 (mapM tryAwaitReply started)
        map deliveryOf results `shouldBe` replicate 100 (Just MaybeExecuted)
        closeClient client
        Proxy.thaw proxy Proxy.ToClient

    it "under load ends every command" $
      Server.withServer Server.serverDefaults $ \server -> leavingNothing $ do
        client <- newClient (addressed server)
        done <- newTVarIO (0 :: Int)
        workers <- forM [1 .. 50 :: Int] $ \_ ->
          async . untilClosed $ do
            result <- tryRun client (Commands.incr "hits")
            atomically (modifyTVar' done (+ either (const 0) (const 1) result))
            pure result
        within 5 (atomically (readTVar done >>= check . (> 500)))
        closeClient client
        ends <- within 5 (mapM waitIt workers)
        forM_ ends $ \end -> deliveryOf (Left end :: Either Error ()) `shouldBe` Just NotSent
        acknowledged <- readTVarIO done
        counterOf server "hits" `shouldReturn` acknowledged

    it "ends an attempt to connect" $
      behindProxy $ \_ proxy -> leavingNothing $ do
        mapM_ (Proxy.freeze proxy) [Proxy.ToServer, Proxy.ToClient]
        client <- newClient (setConnectTimeout (seconds 30) . setCommandTimeout (Just (seconds 30)) . setSilenceLimit Nothing $ through proxy)
        caller <- async (tryRun client Commands.ping)
        _ <- Proxy.awaitTraffic proxy 5 ((== 1) . Proxy.trafficOpen)
        within 5 (closeClient client)
        result <- within 5 (waitIt caller)
        result `shouldBe` Left ClientClosed
        mapM_ (Proxy.thaw proxy) [Proxy.ToServer, Proxy.ToClient]

    it "ends the dials of commands that wait, and leaves none of their descriptors" $
      neverAnswering $ \config -> do
        ownDescriptors <- openDescriptors
        client <- newClient config
        callers <- forM [1 .. 10 :: Int] $ \_ -> async (tryRun client (Commands.blpop (pure "list") Nothing))
        lender <- async (try (withDedicated client AnyPrimary (`tryRunOn` Commands.ping)))
        eventuallyReturns 5 (ownDescriptors + 11) openDescriptors
        began <- getMonotonicTime
        within 5 (closeClient client)
        openDescriptors `shouldReturn` ownDescriptors
        ended <- getMonotonicTime
        (ended - began) `shouldSatisfy` (< 3.5)
        results <- within 1 (mapM waitIt callers)
        results `shouldBe` replicate 10 (Left ClientClosed)
        lent <- within 1 (waitIt lender)
        lent `shouldBe` Left ClientClosed

    it "is quick after a caller that gave up a dial, of which nothing is left" $
      neverAnswering $ \config -> leavingNothing $ do
        ownDescriptors <- openDescriptors
        client <- newClient config
        caller <- async (tryRun client (Commands.blpop (pure "list") Nothing))
        eventuallyReturns 5 (ownDescriptors + 1) openDescriptors
        cancel caller
        eventuallyReturns 5 ownDescriptors openDescriptors
        within 1 (closeClient client)

    it "ends callers that wait for room" $
      behindProxy $ \_ proxy -> leavingNothing $ do
        client <- newClient (single . setSilenceLimit Nothing . setCommandTimeout (Just (seconds 0.5)) . setLimits limitsDefaults {limitInFlight = 4} $ through proxy)
        run client Commands.ping
        Proxy.freeze proxy Proxy.ToClient
        callers <- forM [1 .. 20 :: Int] $ \_ -> async (tryRun client (Commands.incr "hits"))
        eventuallyReturns 5 16 (waitingOf client)
        within 5 (closeClient client)
        results <- within 5 (mapM waitIt callers)
        length (filter ((== Just NotSent) . deliveryOf) results) `shouldBe` 16
        Proxy.thaw proxy Proxy.ToClient
  where
    waitIt = Async.wait
    failedAttempt = \case
      ConnectAttemptFailed {} -> True
      _ -> False
    isEnd = \case
      Disconnected _ _ -> True
      _ -> False
    untilClosed action =
      action >>= \case
        Left problem -> pure problem
        Right _ -> untilClosed action
