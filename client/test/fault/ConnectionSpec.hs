-- | Connections that end, stall, or never carry the bytes that were sent.
module ConnectionSpec (spec) where

import Control.Concurrent (forkOn)
import Control.Concurrent.MVar (newEmptyMVar, putMVar, takeMVar)
import Control.Exception (displayException, try)
import Control.Monad (forM, forM_, replicateM_, void, when)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (lefts, rights)
import Data.IORef
import Data.List (isInfixOf, sort)
import GHC.Clock (getMonotonicTime)
import Harness
import Redis
import Redis.Commands qualified as Commands
import Redis.TestKit.Command qualified as Plain
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (ServerOptions (..), serverDefaults)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventually, eventuallyReturns, failure, within)
import Redis.Transaction
import Redis.Value (Value (..))
import Test.Hspec

spec :: Spec
spec = do
  describe "a connection that is cut" $ do
    forM_ [Proxy.Close, Proxy.Reset] $ \ending ->
      it ("ends each of 1000 commands in flight once (" <> show ending <> ")") $
        behindProxy $ \server proxy -> leavingNothing . withClient (single (setCommandTimeout (Just (seconds 15)) (setSilenceLimit Nothing (through proxy)))) $ \client -> do
          run client (Commands.set "here" "value")
          Proxy.freeze proxy Proxy.ToClient
          let commands = concat (replicate 500 [Commands.incr "hits", 0 <$ Commands.get "here"])
          results <- inPipeline client commands $ do
            eventuallyReturns 10 1000 (inFlightOf client)
            -- The increments have run, but their replies do not arrive.
            eventuallyReturns 10 500 (counterOf server "hits")
            Proxy.cut proxy ending
            Proxy.thaw proxy Proxy.ToClient
          let (increments, reads') = alternate results
          map deliveryOf increments `shouldBe` replicate 500 (Just MaybeExecuted)
          -- A command that only reads is sent again.
          map deliveryOf reads' `shouldBe` replicate 500 Nothing
          counterOf server "hits" `shouldReturn` 500
          run client (Commands.incr "hits") `shouldReturn` 501

    -- One after the other they would take twenty seconds or more.
    forM_ [5000, 10000] $ \count ->
      it ("sends " <> show count <> " reads again together, and none is late") $
        behindProxy $ \_ proxy -> leavingNothing . withClient (single (setCommandTimeout (Just (seconds 10)) (through proxy))) $ \client -> do
          run client (Commands.set "here" "value")
          forM_ [Proxy.ToServer, Proxy.ToClient] $ \direction -> Proxy.delay proxy direction 0.004
          Proxy.cutAfter proxy Proxy.ToClient (count * 11 `quot` 2) Proxy.Close
          results <- within 10 (runPipeline client (traverse (tryPipelined . Commands.get) (replicate count "here")))
          filter (/= Right (Just "value")) results `shouldBe` []

    -- A command that is submitted meanwhile may run before these: the guide says so.
    forM_ [1, 2] $ \connections ->
      it ("sends what one thread submitted again in that order, and what it sends after it waited for that runs later (connections: " <> show connections <> ")") $
        behindProxy $ \_ proxy -> leavingNothing . withClient (setMuxCount (Just connections) . setCommandTimeout (Just (seconds 20)) . setSilenceLimit Nothing $ through proxy) $ \client -> do
          -- Opens all connections: none can be opened while the proxy is frozen.
          forM_ [0 .. connections - 1] $ \capability -> do
            opened <- newEmptyMVar
            void . forkOn capability $ tryRun client Commands.ping >>= putMVar opened
            takeMVar opened
          Proxy.freeze proxy Proxy.ToServer
          let pushed number = Commands.rpush "list" (pure (Char8.pack (show (number :: Int))))
          submitted <- forM [1 .. 1000] (submit client . idempotent . pushed)
          eventuallyReturns 10 1000 (inFlightOf client)
          Proxy.cutAfter proxy Proxy.ToServer 0 Proxy.Reset
          Proxy.thaw proxy Proxy.ToServer
          mapM awaitReply submitted `shouldReturn` [1 .. 1000]
          run client (pushed 1001) `shouldReturn` 1001
          run client (Commands.lrange "list" 0 (-1)) `shouldReturn` map (Char8.pack . show) [1 .. 1001 :: Int]

    forM_ [(carrier, together) | carrier <- ["TCP", "a Unix socket"], together <- [1, 40]] $ \(carrier, together) ->
      it ("by the server while it was idle leaves no write in doubt: " <> show together <> " at a time over " <> carrier) $
        Server.withServer serverDefaults {optionsUnixSocket = True} $ \server -> leavingNothing $ do
          config <- case (carrier, Server.serverSocket server) of
            ("TCP", _) -> pure (addressed server)
            (_, Just path) -> pure (quick (unixConfig path))
            _ -> failure "no socket"
          withClient (single config) $ \client -> Plain.withConnection (Server.serverAddress server) $ \other -> do
            results <- forM [1 .. 20 :: Int] $ \_ -> do
              replicateM_ 5 (run client Commands.ping)
              heard <- getMonotonicTime
              Plain.request other ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"] >>= (`shouldBe` Plain.Number 1)
              -- The client looks at its connection only after a time without replies.
              eventually 5 "it was idle for a millisecond" ((> heard + 0.001) <$> getMonotonicTime)
              runPipeline client (traverse (tryPipelined . Commands.incr) (replicate together "hits"))
            lefts (concat results) `shouldBe` []
            -- Commands that are sent again come behind those that were not sent yet.
            sort (rights (concat results)) `shouldBe` [1 .. fromIntegral (20 * together)]

    it "before the reply leaves a write in doubt and repeats a read" $
      behindProxy $ \server proxy -> leavingNothing . withClient (single (through proxy)) $ \client -> do
        run client (Commands.set "here" "value")
        Proxy.cutAfter proxy Proxy.ToClient 0 Proxy.Reset
        written <- tryRun client (Commands.incr "hits")
        deliveryOf written `shouldBe` Just MaybeExecuted
        counterOf server "hits" `shouldReturn` 1
        run client (Commands.get "here") `shouldReturn` Just "value"
        Proxy.cutAfter proxy Proxy.ToClient 0 Proxy.Close
        run client (Commands.get "here") `shouldReturn` Just "value"

    it "before the reply repeats a write whose caller allows it" $
      behindProxy $ \server proxy -> leavingNothing . withClient (single (through proxy)) $ \client -> do
        run client Commands.ping
        Proxy.cutAfter proxy Proxy.ToClient 0 Proxy.Reset
        run client (idempotent (Commands.incr "hits")) `shouldReturn` 2
        counterOf server "hits" `shouldReturn` 2

    it "within a request, at every byte, runs it at most once" $
      behindProxy $ \server proxy -> leavingNothing . withClient (single (through proxy)) $ \client ->
        forM_ [0 .. 24] $ \bytes -> do
          let key = "hits:" <> Char8.pack (show bytes)
          run client Commands.ping
          Proxy.cutAfter proxy Proxy.ToServer bytes Proxy.Close
          written <- tryRun client (Commands.incr key)
          deliveryOf written `shouldBe` Just MaybeExecuted
          counterOf server key `shouldReturn` 0

    it "within a transaction, at every byte, runs nothing of it" $
      behindProxy $ \server proxy -> leavingNothing . withClient (single (through proxy)) $ \client ->
        forM_ [0 .. 78] $ \bytes -> do
          let keys@(a, b) = ("{h}a" <> Char8.pack (show bytes), "{h}b" <> Char8.pack (show bytes))
          run client Commands.ping
          Proxy.cutAfter proxy Proxy.ToServer bytes Proxy.Close
          outcome <- tryRunTransaction client ((,) <$> queued (Commands.incr a) <*> queued (Commands.incr b))
          counts <- (,) <$> counterOf server a <*> counterOf server b
          (keys, deliveryOf outcome, counts) `shouldBe` (keys, Just MaybeExecuted, (0, 0))

    it "within WATCH, the look or MULTI, at every byte, makes watching start over" $
      behindProxy $ \server proxy -> leavingNothing . withClient (single (through proxy)) $ \client -> do
        let increment = watching client ("hits" :| []) $ \connection -> do
              hits <- runOn connection (Commands.get "hits")
              pure (Commit (queued (Commands.set "hits" (maybe "1" (\text -> Char8.pack (show (1 + maybe 0 fst (Char8.readInt text)))) hits))))
            wordsOf = map (Char8.length . request)
            request parts = Char8.concat (("*" <> number parts <> "\r\n") : ["$" <> Char8.pack (show (Char8.length part)) <> "\r\n" <> part <> "\r\n" | part <- parts])
            number parts = Char8.pack (show (length parts))
            ahead = sum (wordsOf [["WATCH", "hits"], ["GET", "hits"]])
        increment `shouldReturn` Committed ()
        forM_ [0 .. ahead - 1] $ \bytes -> do
          Proxy.cutAfter proxy Proxy.ToServer bytes Proxy.Close
          outcome <- try increment :: IO (Either Error (WatchResult ()))
          (bytes, outcome) `shouldBe` (bytes, Right (Committed ()))
          counterOf server "hits" `shouldReturn` (bytes + 2)
        -- The replies to WATCH and to the look.
        forM_ [0 .. length ("+OK\r\n$1\r\n" :: String)] $ \bytes -> do
          Proxy.cutAfter proxy Proxy.ToClient bytes Proxy.Close
          outcome <- try increment :: IO (Either Error (WatchResult ()))
          (bytes, outcome) `shouldBe` (bytes, Right (Committed ()))

    it "within EXEC, or before its reply, leaves watching in doubt, and a write of the action, too" $
      behindProxy $ \server proxy -> leavingNothing . withClient (single (through proxy)) $ \client -> do
        committed <- try $ watching client ("hits" :| []) $ \_ -> Commit (queued (Commands.incr "hits")) <$ Proxy.cutAfter proxy Proxy.ToClient 3 Proxy.Close
        deliveryOf committed `shouldBe` Just MaybeExecuted
        counterOf server "hits" `shouldReturn` 1
        written <- try $
          watching client ("hits" :| []) $ \connection -> do
            Proxy.cutAfter proxy Proxy.ToClient 0 Proxy.Close
            Commit (pure ()) <$ runOn connection (Commands.incr "other")
        deliveryOf written `shouldBe` Just MaybeExecuted
        counterOf server "other" `shouldReturn` 1

    it "beside a write of the action that was in flight leaves watching in doubt, whatever was awaited" $
      behindProxy $ \server proxy -> leavingNothing . withClient (single (through proxy)) $ \client ->
        forM_ (zip [1 ..] [Just True, Just False, Nothing]) $ \(round', awaited) -> do
          outcome <- try $
            watching client ("hits" :| []) $ \connection -> do
              Proxy.cutAfter proxy Proxy.ToClient 0 Proxy.Close
              write <- submitOn connection (Commands.incr "other")
              forM_ awaited $ \throws ->
                if throws then void (runOn connection (Commands.get "hits")) else void (tryAwaitReply write)
              pure (Commit (queued (Commands.incr "hits")))
          (awaited, deliveryOf outcome) `shouldBe` (awaited, Just MaybeExecuted)
          counterOf server "other" `shouldReturn` round'

    it "of several reads of the action makes watching start over" $
      behindProxy $ \server proxy -> leavingNothing . withClient (single (through proxy)) $ \client -> do
        looks <- newIORef (0 :: Int)
        outcome <- watching client ("hits" :| []) $ \connection -> do
          modifyIORef' looks (+ 1)
          first' <- readIORef looks
          when (first' == 1) $ Proxy.cutAfter proxy Proxy.ToClient 0 Proxy.Close
          reads' <- forM ["hits", "other"] (submitOn connection . Commands.get)
          mapM_ awaitReply reads'
          pure (Commit (queued (Commands.incr "hits")))
        outcome `shouldBe` Committed 1
        readIORef looks `shouldReturn` 2
        counterOf server "hits" `shouldReturn` 1

    it "before EXEC for good ends watching with an error that says that nothing ran" $
      behindProxy $ \server proxy -> leavingNothing . withClient (setCommandTimeout (Just (seconds 0.5)) (single (through proxy))) $ \client -> do
        looks <- newIORef (0 :: Int)
        outcome <- within 5 . try $
          watching client ("hits" :| []) $ \connection -> do
            modifyIORef' looks (+ 1)
            Proxy.cutAfter proxy Proxy.ToClient 0 Proxy.Close
            _ <- runOn connection (Commands.get "hits")
            pure (Commit (queued (Commands.incr "hits")))
        deliveryOf outcome `shouldBe` Just NotSent
        readIORef looks >>= (`shouldSatisfy` (> 1))
        counterOf server "hits" `shouldReturn` 0

    it "within a reply, at every byte, gives nobody half of it" $
      behindProxy $ \_ proxy -> leavingNothing . withClient (single (through proxy)) $ \client -> do
        run client (Commands.set "here" "0123456789")
        forM_ [0 .. 16] $ \bytes -> do
          run client Commands.ping
          Proxy.cutAfter proxy Proxy.ToClient bytes Proxy.Close
          run client (Commands.get "here") `shouldReturn` Just "0123456789"

    it "again and again harms nobody" $
      behindProxy $ \server proxy -> do
        tally <- underLoad server (through proxy) $ \_ load ->
          forM_ (concat (replicate 5 [Proxy.Close, Proxy.Reset])) $ \ending -> do
            Proxy.cut proxy ending
            workersProgress load 8
        tallyMaybe tally `shouldSatisfy` (> 0)

    it "in the middle of replies harms nobody" $
      behindProxy $ \server proxy -> do
        tally <- underLoad server (through proxy) $ \_ load ->
          forM_ [1, 7, 50, 333, 1000] $ \bytes -> do
            Proxy.cutAfter proxy Proxy.ToClient bytes Proxy.Reset
            workersProgress load 40
        tallyMaybe tally `shouldSatisfy` (> 0)

    it "in the middle of requests harms nobody" $
      behindProxy $ \server proxy -> do
        tally <- underLoad server (through proxy) $ \_ load ->
          forM_ [1, 7, 50, 333, 1000] $ \bytes -> do
            Proxy.cutAfter proxy Proxy.ToServer bytes Proxy.Reset
            workersProgress load 40
        tallyMaybe tally `shouldSatisfy` (> 0)

  describe "a server that is killed" $ do
    it "and restarted is found again, and nothing ran twice or was lost" $
      Server.withServer durable $ \server -> do
        tally <- underLoad server (addressed server) $ \_ load -> do
          forM_ [1 :: Int, 2] $ \_ -> do
            Server.kill9 server
            -- Commands end while the server is away.
            awaitTally load ((> 0) . tallyNotRun)
            Server.restart server
            workersProgress load 20
        tallyNotRun tally `shouldSatisfy` (> 0)

    it "ends commands of the gap with its cause" $
      Server.withServer Server.serverDefaults $ \server ->
        leavingNothing . withClient (setMaxAttempts 3 (addressed server)) $ \client -> do
          run client Commands.ping
          Server.kill9 server
          result <- tryRun client (Commands.incr "hits")
          deliveryOf result `shouldSatisfy` (`elem` [Just NotSent, Just MaybeExecuted])
          again <- tryRun client (Commands.incr "hits")
          deliveryOf again `shouldBe` Just NotSent
          show again `shouldSatisfy` ("refused" `isInfixOf`)
          Server.restart server
          eventually 5 "commands succeed again" (either (const False) (const True) <$> tryRun client (Commands.incr "hits"))

  describe "a server that is frozen" $ do
    it "makes commands time out in doubt, and its late replies reach nobody" $
      Server.withServer Server.serverDefaults $ \server -> do
        (journal, config) <- journalled (setCommandTimeout (Just (seconds 0.25)) (setSilenceLimit Nothing (addressed server)))
        tally <- underLoad server config $ \_ load -> do
          Server.freeze server
          awaitTally load ((>= 64) . tallyMaybe)
          Server.thaw server
          workersProgress load 20
        tallyMaybe tally `shouldSatisfy` (>= 64)
        events <- journalEntries journal
        -- The connections have survived.
        [cause | Disconnected _ cause <- events, cause /= ClosedLocally] `shouldBe` []

    it "ends a command of less time in its time, and keeps its neighbours for theirs" $
      Server.withServer Server.serverDefaults $ \server ->
        withClient (setCommandTimeout (Just (seconds 30)) (setSilenceLimit Nothing (setMuxCount (Just 1) (addressed server)))) $ \client -> do
          run client (Commands.set "key" "value")
          withDedicated client AnyPrimary $ \dedicated -> do
            let timedOut = \case
                  Left (TimeoutError _) -> True
                  _ -> False
            within 15 (tryRun client (timeLimit (seconds 0.2) (Commands.blpop (pure "list") Nothing))) >>= (`shouldSatisfy` timedOut)
            Server.freeze server
            neighbour <- submit client (Commands.get "key")
            for <- submit client (timeLimit (seconds 0.2) (Commands.get "key"))
            also <- submit client (Commands.get "key")
            within 15 (tryAwaitReply for) >>= (`shouldSatisfy` timedOut)
            within 15 (tryRun client (timeLimit (seconds 0.2) (Commands.get "key"))) >>= (`shouldSatisfy` timedOut)
            within 15 (tryRunOn dedicated (timeLimit (seconds 0.2) (Commands.get "key"))) >>= (`shouldSatisfy` timedOut)
            Server.thaw server
            mapM awaitReply [neighbour, also] `shouldReturn` [Just "value", Just "value"]

    it "does not end a command of more time when that of the others is over" $
      Server.withServer Server.serverDefaults $ \server ->
        withClient (setCommandTimeout (Just (seconds 0.3)) (setSilenceLimit (Just (seconds 0.1)) (setMuxCount (Just 1) (addressed server)))) $ \client -> do
          run client (Commands.set "key" "value")
          let busy = Commands.eval "local began = redis.call('TIME'); local now = began; while (now[1] - began[1]) * 1000000 + now[2] - began[2] < 1500000 do now = redis.call('TIME') end return 7" [] []
          slow <- submit client (timeLimit (seconds 30) busy)
          other <- submit client (Commands.get "key")
          tryAwaitReply other >>= (`shouldSatisfy` either (const True) (const False))
          awaitReply slow `shouldReturn` Integer 7

    it "and is never connected to in a command's time ends it with the reason of each attempt" $
      neverAnswering $ \config -> leavingNothing . withClient (setConnectTimeout (seconds 0.3) (setCommandTimeout (Just (seconds 1)) config)) $ \client ->
        forM_ [1 :: Int .. 3] $ \_ -> do
          result <- tryRun client (Commands.incr "hits")
          deliveryOf result `shouldBe` Just NotSent
          either displayException show result `shouldSatisfy` ("no connection within 0.3 s" `isInfixOf`)

    it "is given up when it stays silent, and found again" $
      Server.withServer Server.serverDefaults $ \server -> do
        (journal, config) <- journalled (briefly (addressed server))
        tally <- underLoad server config $ \_ load -> do
          Server.freeze server
          awaitJournal journal "the connection is given up" $ \case
            Disconnected _ (SilentPeer _) -> True
            _ -> False
          awaitTally load ((> 0) . tallyMaybe)
          Server.thaw server
        tallyMaybe tally `shouldSatisfy` (> 0)

  describe "a half-open connection" $ do
    it "is given up, and the next one works" $
      behindProxy $ \server proxy -> do
        (journal, config) <- journalled (briefly (setConnectTimeout (seconds 0.3) (through proxy)))
        tally <- underLoad server config $ \_ load -> do
          mapM_ (Proxy.freeze proxy) [Proxy.ToServer, Proxy.ToClient]
          awaitJournal journal "the connection is given up" $ \case
            Disconnected _ (SilentPeer _) -> True
            _ -> False
          -- The server's system accepts new connections, but the frozen server sends nothing.
          awaitJournal journal "an attempt is given up" $ \case
            ConnectAttemptFailed {} -> True
            _ -> False
          awaitTally load ((> 0) . tallyMaybe)
          mapM_ (Proxy.thaw proxy) [Proxy.ToServer, Proxy.ToClient]
        tallyMaybe tally `shouldSatisfy` (> 0)

    it "that loses the rest of a reply is given up, and the next one works" $
      behindProxy $ \server proxy -> do
        (journal, config) <- journalled (briefly (setConnectTimeout (seconds 0.3) (through proxy)))
        tally <- underLoad server config $ \_ _ -> do
          Proxy.dropAfter proxy Proxy.ToClient 1003
          awaitJournal journal "the connection is given up" $ \case
            Disconnected _ (SilentPeer _) -> True
            _ -> False
          -- No connection that has lost bytes may survive: TCP loses none.
          Proxy.refuse proxy
          Proxy.cut proxy Proxy.Reset
          _ <- Proxy.awaitTraffic proxy 5 ((== 0) . Proxy.trafficOpen)
          Proxy.heal proxy
        tallyMaybe tally `shouldSatisfy` (> 0)

    it "with a full queue and no command timeout is given up all the same" $
      behindProxy $ \_ proxy -> leavingNothing $ do
        let config = setSilenceLimit (Just (seconds 0.1)) . setCommandTimeout Nothing . setMuxCount (Just 1) . setLimits limitsDefaults {limitInFlight = 4} $ through proxy
        withClient config $ \client -> do
          run client Commands.ping
          Proxy.freeze proxy Proxy.ToClient
          results <- inPipeline client (replicate 4 (Commands.incr "hits")) (pure ())
          map deliveryOf results `shouldBe` replicate 4 (Just MaybeExecuted)
          Proxy.thaw proxy Proxy.ToClient

  describe "a slow network" $
    it "delays replies and mixes none up" $
      behindProxy $ \server proxy -> do
        Proxy.delay proxy Proxy.ToClient 0.005
        tally <- underLoad server (through proxy) (\_ load -> workersProgress load 100)
        tallyMaybe tally `shouldBe` 0

-- | Short times: of silence, and of commands. Those that may be sent again are for all of it while nobody
-- answers.
briefly :: Config -> Config
briefly = setSilenceLimit (Just (seconds 0.1)) . setCommandTimeout (Just (seconds 1))

alternate :: [a] -> ([a], [a])
alternate = \case
  first : second : rest -> let (evens, odds) = alternate rest in (first : evens, second : odds)
  [only] -> ([only], [])
  [] -> ([], [])
