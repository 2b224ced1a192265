-- | A client's counters, compared with the events; and the report of a client that is closed.
module CountersSpec (spec) where

import Control.Concurrent.Async (async, forConcurrently, replicateConcurrently, wait, withAsync)
import Control.Concurrent.STM
import Control.Monad (replicateM, replicateM_, void)
import Data.ByteString (ByteString)
import Data.ByteString.Builder (toLazyByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy qualified as Lazy
import Data.Maybe (listToMaybe)
import Harness
import Redis
import Redis.Commands qualified as Commands
import Redis.Metrics
import Redis.TestKit.Command (Reply (Text))
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (serverDefaults, withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventually, eventuallyReturns, within)
import Test.Hspec

-- | The client's only node.
nodeOf :: Client -> IO NodeSnapshot
nodeOf client =
  snapshotNodes <$> clientSnapshot client >>= \case
    [node] -> pure node
    nodes -> fail ("not one node: " <> show nodes)

-- | How many connections were opened, were lost, and could not be opened.
connectionsOf :: NodeSnapshot -> (Int, Int, Int)
connectionsOf node = (countOpened node, countLost node, countConnectsFailed node)

spec :: Spec
spec = do
  describe "the counts of a node" $ do
    it "have every reply in the histogram, once, however many callers there are" $
      withServer serverDefaults $ \server -> leavingNothing . withClient (addressed server) $ \client -> do
        _ <- replicateConcurrently 20 (replicateM_ 50 (run client (Commands.incr "hits")))
        _ <- runPipeline client (traverse (const (pipelined (Commands.incr "hits"))) [1 .. 5000 :: Int])
        started <- replicateM 1000 (submit client (Commands.incr "hits"))
        mapM_ awaitReply started
        -- The reader counts after it has delivered all replies that arrived together.
        eventuallyReturns 5 7000 (roundTripCount . roundTrips <$> nodeOf client)
        node <- nodeOf client
        roundTripWithin 1 (roundTrips node) `shouldSatisfy` maybe False (> mempty)
        roundTripWithin 0.5 (roundTrips node) `shouldSatisfy` (<= roundTripWithin 0.99 (roundTrips node))
        countErrors node `shouldBe` ErrorCounts 0 0 0

    it "time a reply from when its command was sent" $
      behindProxy $ \_ proxy -> leavingNothing . within 20 . withClient (single (through proxy)) $ \client -> do
        run client Commands.ping
        Proxy.delay proxy Proxy.ToClient 0.15
        run client (Commands.incr "hits") `shouldReturn` 1
        eventuallyReturns 5 2 (roundTripCount . roundTrips <$> nodeOf client)
        trips <- roundTrips <$> nodeOf client
        roundTripWithin 1 trips `shouldSatisfy` maybe False (>= milliseconds 140)
        roundTripWithin 0.5 trips `shouldSatisfy` maybe False (< milliseconds 140)

    it "time what the reader sends from then, and not from what was sent before" $
      withServer serverDefaults $ \server -> leavingNothing . withClient (single (addressed server)) $ \client -> do
        -- After so many in flight, callers leave single commands to the reader to send.
        _ <- runPipeline client (traverse (const (pipelined (Commands.incr "hits"))) [1 .. 500 :: Int])
        -- This command runs on another connection.
        _ <- run client (Commands.blpop (pure "list") (Just (seconds 2)))
        run client (Commands.incr "hits") `shouldReturn` 501
        eventuallyReturns 5 501 (roundTripCount . roundTrips <$> nodeOf client)
        trips <- roundTrips <$> nodeOf client
        roundTripWithin 1 trips `shouldSatisfy` maybe False (< seconds 1.8)

    it "keep apart what waits on the server" $
      withServer serverDefaults $ \server -> leavingNothing . withClient (addressed server) $ \client -> do
        _ <- run client (Commands.blpop (pure "list") (Just (milliseconds 100)))
        eventuallyReturns 5 1 (roundTripCount . roundTripsDedicated <$> nodeOf client)
        node <- nodeOf client
        roundTripCount (roundTrips node) `shouldBe` 0
        roundTripWithin 1 (roundTripsDedicated node) `shouldSatisfy` maybe False (>= milliseconds 100)

    it "say what was cut off with a connection, what was sent again, and what callers were told" $
      behindProxy $ \server proxy -> leavingNothing . within 20 . withClient (single (through proxy)) $ \client -> do
        run client Commands.ping
        Proxy.freeze proxy Proxy.ToClient
        reads' <- replicateM 7 (submit client (Commands.get "key"))
        writes <- replicateM 5 (submit client (Commands.incr "key"))
        eventuallyReturns 5 12 (inFlightOf client)
        -- A write that has not left the client before the cut would be sent again.
        eventually 5 "the writes have run" $ (== Text "5") <$> Server.command server ["GET", "key"]
        Proxy.cut proxy Proxy.Reset
        Proxy.thaw proxy Proxy.ToClient
        traverse (fmap deliveryOf . tryAwaitReply) reads' `shouldReturn` replicate 7 Nothing
        traverse (fmap deliveryOf . tryAwaitReply) writes `shouldReturn` replicate 5 (Just MaybeExecuted)
        node <- nodeOf client
        connectionsOf node `shouldBe` (2, 1, 0)
        (countCutUnsent node + countCutSent node, countCutSent node >= 5) `shouldBe` (12, True)
        countResent node `shouldBe` 7
        countErrors node `shouldBe` ErrorCounts {errorsNotSent = 0, errorsRefused = 0, errorsMaybeExecuted = 5}
        (countMoved node, countAsk node) `shouldBe` (0, 0)

    it "say how often a connection could not be had" $
      behindProxy $ \_ proxy -> leavingNothing . within 20 . withClient (setMaxAttempts 1 (single (through proxy))) $ \client -> do
        Proxy.refuse proxy
        deliveryOf <$> tryRun client Commands.ping `shouldReturn` Just NotSent
        Proxy.accept proxy
        eventuallyReturns 5 (Right ()) (tryRun client Commands.ping)
        node <- nodeOf client
        countOpened node `shouldBe` 1
        countConnectsFailed node `shouldSatisfy` (>= 1)
        errorsNotSent (countErrors node) `shouldSatisfy` (>= countConnectsFailed node)

    it "say what the server refused, on shared and on lent connections" $
      withServer serverDefaults $ \server -> leavingNothing . withClient (single (addressed server)) $ \client -> do
        run client (Commands.set "key" "text")
        _ <- tryRun client (Commands.incr "key")
        _ <- submit client (Commands.lpush "key" (pure "a")) >>= tryAwaitReply
        withDedicated client AnyPrimary $ \connection -> void (tryRunOn connection (Commands.incr "key"))
        _ <- tryRun client (Commands.blpop (pure "key") Nothing)
        -- A caller may have its result a moment before it is counted.
        eventuallyReturns 5 ErrorCounts {errorsNotSent = 0, errorsRefused = 4, errorsMaybeExecuted = 0} (countErrors <$> nodeOf client)

    it "outlive the connections, and are in the text for Prometheus" $
      behindProxy $ \_ proxy -> leavingNothing . within 20 . withClient (single (through proxy)) $ \client -> do
        run client Commands.ping
        Proxy.cut proxy Proxy.Reset
        run client Commands.ping
        eventuallyReturns 5 2 (roundTripCount . roundTrips <$> nodeOf client)
        text <- Lazy.toStrict . toLazyByteString . prometheusText <$> clientSnapshot client
        let node = "{node=\"127.0.0.1:" <> Char8.pack (show (Proxy.proxyPort proxy)) <> "\"}"
        lookupSample ("redis_client_connections_opened_total" <> node) text `shouldBe` Just "2"
        lookupSample ("redis_client_connections_lost_total" <> node) text `shouldBe` Just "1"

  describe "a client that is closed" $ do
    it "answers what is in flight under load, and every caller is told the truth" $
      withServer serverDefaults $ \server -> within 30 . leavingNothing $ do
        client <- newClient (addressed server)
        acknowledged <- newTVarIO (0 :: Int)
        let worker = do
              result <- tryRun client (Commands.incr "hits")
              case result of
                Right _ -> atomically (modifyTVar' acknowledged (+ 1)) *> worker
                Left failed -> pure failed
        workers <- mapM (const (async worker)) [1 .. 64 :: Int]
        eventually 10 "the load runs" ((> 2000) <$> readTVarIO acknowledged)
        drained <- closeClientWithin (seconds 10) client
        ends <- mapM wait workers
        ends `shouldBe` replicate 64 ClientClosed
        (closeInDoubt drained, closeUnsent drained) `shouldBe` (0, 0)
        done <- readTVarIO acknowledged
        counterOf server "hits" `shouldReturn` done
        tryRun client Commands.ping `shouldReturn` Left ClientClosed
        -- Closing it once is enough.
        closeClientWithin (seconds 10) client `shouldReturn` CloseReport 0 0 0

    it "waits for what the server is slow with" $
      behindProxy $ \server proxy -> leavingNothing . within 20 $ do
        client <- newClient (setSilenceLimit Nothing (single (through proxy)))
        run client Commands.ping
        -- A reply is counted after it has been handed over.
        eventuallyReturns 5 1 (roundTripCount . roundTrips <$> nodeOf client)
        Proxy.freeze proxy Proxy.ToClient
        started <- replicateM 10 (submit client (Commands.incr "hits"))
        eventuallyReturns 5 10 (inFlightOf client)
        withAsync (closeClientWithin (seconds 10) client) $ \closing -> do
          eventuallyReturns 5 0 (length . snapshotNodes <$> clientSnapshot client)
          taken <- takenUntilClosed client
          Proxy.thaw proxy Proxy.ToClient
          wait closing `shouldReturn` CloseReport {closeAnswered = 10 + taken, closeInDoubt = 0, closeUnsent = 0}
        traverse tryAwaitReply started `shouldReturn` map Right [1 .. 10]
        counterOf server "hits" `shouldReturn` 10

    it "cuts off what is not answered in the time that it is given, and says how much" $
      behindProxy $ \_ proxy -> leavingNothing . within 20 $ do
        client <- newClient (single (through proxy))
        run client Commands.ping
        _ <- run client (Commands.blpop (pure "list") (Just (milliseconds 1)))
        -- A reply is counted after it has been handed over.
        eventuallyReturns 5 (1, 1) $ (\node -> (roundTripCount (roundTrips node), roundTripCount (roundTripsDedicated node))) <$> nodeOf client
        Proxy.freeze proxy Proxy.ToClient
        started <- replicateM 10 (submit client (Commands.incr "hits"))
        withAsync (tryRun client (Commands.blpop (pure "list") Nothing)) $ \blocked -> do
          eventuallyReturns 5 10 (inFlightOf client)
          eventuallyReturns 5 1 (gaugeLent . gaugeDedicated <$> nodeOf client)
          drained <- closeClientWithin (milliseconds 300) client
          closeAnswered drained `shouldBe` 0
          closeInDoubt drained + closeUnsent drained `shouldBe` 11
          results <- traverse tryAwaitReply started
          length (filter ((== Just MaybeExecuted) . deliveryOf) results) `shouldBe` closeInDoubt drained - 1
          deliveryOf <$> wait blocked `shouldReturn` Just MaybeExecuted
        Proxy.thaw proxy Proxy.ToClient

    it "ends a command that waits on the server with its time, and loses no element that was answered" $
      withServer serverDefaults $ \server -> leavingNothing . within 20 $ do
        client <- newClient (addressed server)
        results <- forConcurrently [1 .. 4 :: Int] $ \number ->
          if number == 1
            then do
              eventuallyReturns 5 3 (gaugeLent . gaugeDedicated <$> nodeOf client)
              _ <- run client (Commands.rpush "list" (pure "element"))
              eventuallyReturns 5 2 (gaugeLent . gaugeDedicated <$> nodeOf client)
              drained <- closeClientWithin (milliseconds 100) client
              closeInDoubt drained `shouldBe` 2
              pure (Right Nothing)
            else tryRun client (Commands.blpop (pure "list") Nothing)
        length [() | Right (Just _) <- results] `shouldBe` 1
        map deliveryOf results `shouldMatchList` [Nothing, Nothing, Just MaybeExecuted, Just MaybeExecuted]
        eventuallyReturns 5 0 (Server.connectedClients server)

-- | The value of the sample with this name, including its labels.
lookupSample :: ByteString -> ByteString -> Maybe ByteString
lookupSample name text =
  listToMaybe [value | line <- Char8.lines text, (sample, value) <- [Char8.breakEnd (== ' ') line], sample == name <> " "]

-- | How many commands a client that is being closed still accepts until it refuses one. None of
-- them gets its reply.
takenUntilClosed :: Client -> IO Int
takenUntilClosed client =
  tryRun client (timeLimit (milliseconds 50) Commands.ping) >>= \case
    Left ClientClosed -> pure 0
    Left (TimeoutError _) -> (+ 1) <$> takenUntilClosed client
    other -> fail ("neither taken nor refused: " <> show other)
