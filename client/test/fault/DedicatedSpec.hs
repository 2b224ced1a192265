-- | Dedicated connections: commands that wait, and commands that change a connection's state.
module DedicatedSpec (spec) where

import Control.Concurrent (forkOn, killThread, newEmptyMVar, putMVar, takeMVar)
import Control.Concurrent.Async
import Control.Concurrent.Async qualified as Async
import Control.Concurrent.STM
import Control.Exception (AsyncException (ThreadKilled), Exception, SomeException, finally, throwIO, try, uninterruptibleMask_)
import Control.Monad (forM, forM_, forever, unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isRight)
import Data.Int (Int64)
import Data.List (isInfixOf, sort)
import GHC.Clock (getMonotonicTime)
import Harness
import Redis
import Redis.Command.Build qualified as Build
import Redis.Commands qualified as Commands
import Redis.Metrics
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (serverDefaults)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventually, eventuallyReturns, within)
import Redis.Value (Value (..))
import Test.Hspec

spec :: Spec
spec = do
  describe "a command that waits on the server" $ do
    it "delays nobody" $
      withServer $ \server -> leavingNothing . withClient (addressed server) $ \client -> do
        waiters <- forM [1 .. 20 :: Int] $ \number -> async (run client (Commands.blpop (pure ("list:" <> decimal number)) Nothing))
        eventuallyReturns 5 20 (blockedClients server)
        within 2 (forM_ [1 .. 100 :: Int] (const (run client Commands.ping)))
        forM_ [1 .. 20] $ \number -> run client (Commands.rpush ("list:" <> decimal number) (pure (decimal number)))
        answers <- within 5 (mapM Async.wait waiters)
        answers `shouldBe` [Just ("list:" <> decimal number, decimal number) | number <- [1 .. 20]]

    it "may wait longer than ordinary commands may take" $
      withServer $ \server -> leavingNothing . withClient (setCommandTimeout (Just (seconds 0.2)) (setSilenceLimit (Just (seconds 0.1)) (addressed server))) $ \client -> do
        waiter <- async (run client (Commands.blpop (pure "list") Nothing))
        shorter <- run client (Commands.blpop (pure "other") (Just (seconds 0.6)))
        shorter `shouldBe` Nothing
        _ <- run client (Commands.rpush "list" (pure "element"))
        within 5 (Async.wait waiter) `shouldReturn` Just ("list", "element")

    it "leaves the server when its caller gives up, and loses no element" $
      withServer $ \server -> leavingNothing . withClient (addressed server) $ \client -> do
        waiters <- forM [1 .. 10 :: Int] $ \_ -> async (run client (Commands.blpop (pure "list") Nothing))
        eventuallyReturns 5 10 (blockedClients server)
        mapConcurrently_ cancel waiters
        eventuallyReturns 5 0 (blockedClients server)
        _ <- run client (Commands.rpush "list" (pure "kept"))
        run client (Commands.lrange "list" 0 (-1)) `shouldReturn` ["kept"]

    it "hands every element to somebody while callers come and go" $
      withServer $ \server -> leavingNothing . withClient (addressed server) $ \client -> do
        received <- newTVarIO []
        let total = 200 :: Int
            pop = do
              element <- run client (Commands.blpop (pure "queue") Nothing)
              atomically (modifyTVar' received (maybe id ((:) . snd) element))
              pop
        poppers <- forM [1 .. 8 :: Int] $ \_ -> async pop
        forM_ [1 .. total] $ \number -> run client (Commands.rpush "queue" (pure (decimal number)))
        within 10 (atomically (readTVar received >>= check . (>= total) . length))
        mapConcurrently_ cancel poppers
        elements <- readTVarIO received
        sort elements `shouldBe` sort (map decimal [1 .. total])

    it "is in doubt when its connection is cut, and is not sent again" $
      behindProxy $ \server proxy -> leavingNothing . withClient (through proxy) $ \client -> do
        waiter <- async (tryRun client (Commands.blpop (pure "list") Nothing))
        eventuallyReturns 5 1 (blockedClients server)
        Proxy.cut proxy Proxy.Reset
        result <- within 5 (Async.wait waiter)
        deliveryOf result `shouldBe` Just MaybeExecuted
        blockedClients server `shouldReturn` 0

    -- By then the end is elsewhere: what was added in between would be missed.
    it "is in doubt, too, when it waits for new entries, and is sent again when it reads after an id" $
      behindProxy $ \server proxy -> leavingNothing . withClient (through proxy) $ \client -> do
        let cutWhile from = do
              waiter <- async (tryRun client (Commands.xreadWith Commands.xreadDefaults {Commands.xreadBlock = Commands.WaitForever} (pure ("stream", from))))
              eventuallyReturns 5 1 (blockedClients server)
              Proxy.cut proxy Proxy.Reset
              pure waiter
        result <- cutWhile Commands.ReadNew >>= within 5 . Async.wait
        deliveryOf result `shouldBe` Just MaybeExecuted
        eventuallyReturns 5 0 (blockedClients server)
        waiter <- cutWhile (Commands.ReadAfter (Commands.StreamId 0 0))
        entry <- run client (raw ["XADD", "stream", "1-1", "field", "value"])
        entry `shouldBe` BulkString "1-1"
        again <- within 5 (Async.wait waiter)
        fmap (map fst) again `shouldBe` Right ["stream"]

    it "waits for a connection no longer than its time when all are lent" $
      withServer $ \server -> leavingNothing . withClient (setMaxDedicated 2 (setCommandTimeout (Just (seconds 0.3)) (addressed server))) $ \client -> do
        waiters <- forM [1 .. 2 :: Int] $ \_ -> async (tryRun client (Commands.blpop (pure "list") Nothing))
        eventuallyReturns 5 2 (blockedClients server)
        third <- within 5 (tryRun client (Commands.blpop (pure "list") Nothing))
        deliveryOf third `shouldBe` Just NotSent
        _ <- run client (Commands.rpush "list" (pure "element"))
        (_, result) <- within 5 (waitAny waiters)
        isRight result `shouldBe` True
        fourth <- async (tryRun client (Commands.blpop (pure "list") Nothing))
        eventuallyReturns 5 2 (blockedClients server)
        mapM_ cancel (fourth : waiters)

    it "is in doubt when its answer is late, and its connection is closed" $
      behindProxy $ \server proxy -> leavingNothing . withClient (setMaxDedicated 1 (setCommandTimeout (Just (seconds 0.3)) (through proxy))) $ \client -> do
        first <- withDedicated client AnyPrimary (`runOn` Commands.clientId)
        Proxy.freeze proxy Proxy.ToClient
        late <- tryRun client (Commands.blpop (pure "list") (Just (seconds 0.01)))
        deliveryOf late `shouldBe` Just MaybeExecuted
        goneFrom server client first
        Proxy.thaw proxy Proxy.ToClient
        run client (Commands.blpop (pure "list") (Just (seconds 0.01))) `shouldReturn` Nothing

    it "ends when the client is closed" $
      withServer $ \server -> leavingNothing $ do
        client <- newClient (setCommandTimeout (Just (seconds 0.3)) (addressed server))
        waiters <- forM [1 .. 5 :: Int] $ \_ -> async (tryRun client (Commands.blpop (pure "list") Nothing))
        eventuallyReturns 5 5 (blockedClients server)
        within 5 (closeClient client)
        results <- within 2 (mapM Async.wait waiters)
        map isRight results `shouldBe` replicate 5 False
        eventuallyReturns 5 0 (blockedClients server)

    it "ends when the client is closed, although another connection is being opened and cannot be given up" $
      withServer $ \server -> leavingNothing $ do
        issued <- newTVarIO (0 :: Int)
        gate <- newTVarIO False
        let issuing = do
              number <- atomically (stateTVar issued (\made -> (made, made + 1)))
              unless (number == 0) (uninterruptibleMask_ (atomically (readTVar gate >>= check)))
              pure (issuedCredentials (Credentials Nothing (toSecret "secret")))
        client <- newClient (setCredentialsFrom issuing (addressed server))
        waiter <- async (tryRun client (Commands.blpop (pure "list") Nothing))
        eventuallyReturns 5 1 (blockedClients server)
        other <- async (tryRun client (Commands.blpop (pure "list") Nothing))
        eventuallyReturns 5 2 (readTVarIO issued)
        closing <- async (closeClientWithin (seconds 0) client)
        result <- within 5 (Async.wait waiter) `finally` atomically (writeTVar gate True)
        isRight result `shouldBe` False
        void (within 5 (Async.wait closing *> Async.wait other))

  describe "a dedicated connection" $ do
    it "to a closed port is not asked for again before its backoff has passed, however many want one" $
      withServer $ \server -> leavingNothing $ do
        Server.kill9 server
        let delay = 0.4
        (journal, config) <- journalled (setBackoff backoffDefaults {backoffFirst = seconds delay, backoffCap = seconds delay} (setMaxAttempts 1 (addressed server)))
        withClient config $ \client -> do
          began <- getMonotonicTime
          -- Commands that begin together may all try to connect.
          together <- mapConcurrently id (replicate 4 (tryRun client (Commands.blpop (pure "list") Nothing)))
          map deliveryOf together `shouldBe` replicate 4 (Just NotSent)
          results <- forM [1 .. 2000 :: Int] $ \_ -> tryRun client (Commands.blpop (pure "list") Nothing)
          ended <- getMonotonicTime
          forM_ results $ \result -> do
            deliveryOf result `shouldBe` Just NotSent
            show result `shouldSatisfy` ("refused" `isInfixOf`)
          attempts <- length . filter isAttempt <$> journalEntries journal
          -- At least half of the delay lies between two attempts.
          attempts `shouldSatisfy` (<= 4 + ceiling ((ended - began) / (delay / 2)))
          Server.restart server
          eventually 5 "it is opened" $ isRight <$> tryRun client (Commands.blpop (pure "list") (Just (seconds 0.01)))

    it "to a server that lets it in and hangs up at once is asked for less and less often" $
      leavingNothing . hangingUp $ \hangUps config ->
        withClient config $ \client -> do
          let pop = tryRun client (Commands.blpop (pure "list") (Just (seconds 0.01)))
          began <- getMonotonicTime
          withAsync (forever pop) $ \_ ->
            eventually 20 "it has hung up often" ((>= 12) <$> hangUpsSoFar hangUps)
          ended <- getMonotonicTime
          (ended - began) `shouldSatisfy` (> 0.5)
          beFriendly hangUps
          eventually 5 "it is let in" (isRight <$> pop)

    it "carries a transaction, whole" $
      withServer $ \server -> leavingNothing . withClient (addressed server) $ \client -> do
        answers <- withDedicated client (AtKey "here") $ \own -> do
          _ <- runOn own (raw ["WATCH", "here"])
          _ <- runOn own (raw ["MULTI"])
          _ <- runOn own (raw ["SET", "here", "value"])
          _ <- runOn own (raw ["INCR", "hits"])
          runOn own (raw ["EXEC"])
        answers `shouldBe` Array [SimpleString "OK", Integer 1]

    it "fails a transaction whose key was changed meanwhile" $
      withServer $ \server -> leavingNothing . withClient (addressed server) $ \client -> do
        answers <- withDedicated client (AtKey "here") $ \own -> do
          _ <- runOn own (raw ["WATCH", "here"])
          run client (Commands.set "here" "other")
          _ <- runOn own (raw ["MULTI"])
          _ <- runOn own (raw ["SET", "here", "value"])
          runOn own (raw ["EXEC"])
        answers `shouldBe` Null
        run client (Commands.get "here") `shouldReturn` Just "other"

    it "is lent again when it is as it was, and never when its state was changed" $
      withServer $ \server -> leavingNothing . withClient (addressed server) $ \client -> do
        let identity = withDedicated client AnyPrimary (`runOn` Commands.clientId)
        first <- identity
        identity `shouldReturn` first
        changed <- withDedicated client AnyPrimary $ \own -> do
          _ <- runOn own (Commands.select 5)
          runOn own Commands.clientId
        changed `shouldBe` first
        next <- identity
        next `shouldSatisfy` (/= first)
        withDedicated client AnyPrimary (\own -> runOn own (Commands.set "here" "zero"))
        run client (Commands.get "here") `shouldReturn` Just "zero"

    it "is closed when the action throws" $
      withServer $ \server -> leavingNothing . withClient (addressed server) $ \client -> do
        first <- withDedicated client AnyPrimary (`runOn` Commands.clientId)
        thrown <- try (withDedicated client AnyPrimary (\_ -> throwIO Trouble :: IO ()))
        thrown `shouldBe` Left Trouble
        next <- withDedicated client AnyPrimary (`runOn` Commands.clientId)
        next `shouldSatisfy` (/= first)

    forM_ [("has not come by the end", False), ("has come by the end", True)] $ \(how, comes) ->
      it ("is closed when a reply is late and " <> how <> ", so that nobody else gets it") $
        behindProxy $ \server proxy -> leavingNothing . withClient (setMaxDedicated 1 (setCommandTimeout (Just (seconds 0.3)) (through proxy))) $ \client -> do
          first <- withDedicated client AnyPrimary $ \own -> do
            first <- runOn own Commands.clientId
            Proxy.freeze proxy Proxy.ToClient
            late <- tryRunOn own (Commands.echo "late")
            deliveryOf late `shouldBe` Just MaybeExecuted
            when comes $ do
              next <- submitOn own (Commands.echo "next")
              Proxy.thaw proxy Proxy.ToClient
              awaitReply next `shouldReturn` "next"
            pure first
          goneFrom server client first
          Proxy.thaw proxy Proxy.ToClient
          withDedicated client AnyPrimary (\own -> runOn own (Commands.echo "mine")) `shouldReturn` "mine"

    forM_ [("with its command", False), ("with its command answered", True)] $ \(how, answered) ->
      it ("is closed when its caller stops waiting within it and goes on, " <> how) $
        withServer $ \server -> leavingNothing . withClient (setMaxDedicated 1 (addressed server)) $ \client -> do
          first <- withDedicated client AnyPrimary $ \own -> do
            first <- runOn own Commands.clientId
            withAsync (runOn own (Commands.blpop (pure "list") Nothing)) $ \_ ->
              eventuallyReturns 5 1 (blockedClients server)
            when answered $ do
              _ <- run client (Commands.rpush "list" (pure "element"))
              runOn own (Commands.echo "on it") `shouldReturn` "on it"
            pure first
          goneFrom server client first
          eventuallyReturns 5 0 (blockedClients server)

    it "is closed when a command on it is not answered by the end, whether or not somebody has waited for it" $
      withServer $ \server -> leavingNothing . withClient (setMaxDedicated 1 (addressed server)) $ \client -> do
        first <- withDedicated client AnyPrimary $ \own -> do
          first <- runOn own Commands.clientId
          first <$ submitOn own (Commands.blpop (pure "list") Nothing)
        goneFrom server client first
        eventuallyReturns 5 0 (blockedClients server)

    it "that is being opened for somebody who leaves makes room for the next one" $
      withServer $ \server -> leavingNothing . withClient (setConnectTimeout (seconds 40) (setMaxDedicated 1 (addressed server))) $ \client -> do
        -- A frozen server: the system accepts connections, but nothing answers.
        Server.freeze server
        opening <- async (tryRun client (Commands.blpop (pure "list") (Just (seconds 0.01))))
        eventuallyReturns 5 1 (gaugeOpening <$> gaugesOf client)
        within 5 (cancel opening)
        gaugesOf client `shouldReturn` DedicatedGauges {gaugeLent = 0, gaugeIdle = 0, gaugeOpening = 0, gaugeLeasesWaiting = 0}
        Server.thaw server
        within 5 (tryRun client (Commands.blpop (pure "list") (Just (seconds 0.01)))) `shouldReturn` Right Nothing

    it "is handed to the next one when who was first has left" $
      withServer $ \server -> leavingNothing . withClient (setMaxDedicated 1 (addressed server)) $ \client -> do
        let waiterAfter number = do
              waiter <- async (withDedicated client AnyPrimary (`runOn` Commands.clientId))
              waiter <$ eventuallyReturns 5 number (gaugeLeasesWaiting <$> gaugesOf client)
        (held, second) <- withDedicated client AnyPrimary $ \own -> do
          held <- runOn own Commands.clientId
          first <- waiterAfter 1
          second <- waiterAfter 2
          cancel first
          gaugeLeasesWaiting <$> gaugesOf client `shouldReturn` 1
          pure (held, second)
        within 5 (Async.wait second) `shouldReturn` held

    -- All on one capability, so that the interrupted caller goes on only when its turn comes.
    forM_ [("a connection", False), ("leave to open one", True)] $ \(what, spoilt) ->
      it ("is for the next one when who leaves has just been given " <> what) $
        withServer $ \server -> leavingNothing . withClient (setMaxDedicated 1 (addressed server)) $ \client ->
          forM_ [1 .. 5 :: Int] $ \_ -> do
            left <- newEmptyMVar
            ended <- newEmptyMVar
            let holding :: Dedicated s -> IO ()
                holding own = do
                  when spoilt (void (runOn own (raw ["CLIENT", "REPLY", "ON"])))
                  leaver <- forkOn 0 (try (withDedicated client AnyPrimary (\_ -> pure ())) >>= putMVar left)
                  eventuallyReturns 5 1 (gaugeLeasesWaiting <$> gaugesOf client)
                  killThread leaver
            _ <- forkOn 0 (try @SomeException (withDedicated client AnyPrimary holding) >>= putMVar ended)
            takeMVar ended >>= either throwIO pure
            takeMVar left `shouldReturn` Left ThreadKilled
            within 5 (withDedicated client AnyPrimary (`runOn` Commands.ping))

    it "is replaced when it died while idle" $
      behindProxy $ \_ proxy -> leavingNothing . withClient (through proxy) $ \client -> do
        _ <- withDedicated client AnyPrimary (`runOn` Commands.clientId)
        Proxy.cut proxy Proxy.Close
        eventually 5 "it is replaced" $ isRight <$> withDedicated client AnyPrimary (`tryRunOn` Commands.ping)

    it "retries nothing" $
      behindProxy $ \server proxy -> leavingNothing . withClient (through proxy) $ \client ->
        withDedicated client AnyPrimary $ \own -> do
          _ <- runOn own Commands.ping
          Proxy.cutAfter proxy Proxy.ToClient 0 Proxy.Reset
          lost <- tryRunOn own (Commands.get "here")
          deliveryOf lost `shouldBe` Just MaybeExecuted
          again <- tryRunOn own (Commands.incr "hits")
          deliveryOf again `shouldBe` Just NotSent
          counterOf server "hits" `shouldReturn` 0

  describe "on the shared connection" $ do
    it "commands that change its state are refused, unsent" $
      withServer $ \server -> leavingNothing . withClient (addressed server) $ \client -> do
        forM_ [["SELECT", "1"], ["MULTI"], ["WATCH", "here"], ["AUTH", "x"], ["RESET"], ["CLIENT", "REPLY", "ON"], ["HELLO", "2"], ["QUIT"], ["client", "tracking", "on"]] $ \words' -> do
          result <- tryRun client (raw words')
          case result of
            Left (RefusedError (NeedsDedicatedConnection _)) -> pure ()
            other -> expectationFailure (show (words', other))
        run client (Commands.echo "still here") `shouldReturn` "still here"

    it "a command that nobody knows gets the server's answer, and nothing else suffers" $
      withServer $ \server -> leavingNothing . withClient (addressed server) $ \client -> do
        result <- tryRun client (raw ["NO.SUCH", "here"])
        show result `shouldSatisfy` ("unknown command" `isInfixOf`)
        run client (Commands.echo "still here") `shouldReturn` "still here"

    it "no words at all are refused" $
      withServer $ \server -> leavingNothing . withClient (addressed server) $ \client ->
        forM_ [raw [], Build.inline "", Build.inline " "] $ \command ->
          tryRun client command `shouldReturn` Left (RefusedError EmptyCommand)

    it "a line that is not one command is refused, wherever it is to go" $
      withServer $ \server -> leavingNothing . withClient (addressed server) $ \client -> do
        forM_ ["INCR hits\r\nINCR hits", "INCR hits\nINCR hits", "INCR hits\r", "INCR hits\0", "*1", "*1\r\n$4\r\nPING", "\r\nPING", "INCR \"hits", "INCR 'hits's"] $ \line -> do
          let refused = Left (RefusedError NotOneLine)
              command = Build.inline line
          tryRun client command `shouldReturn` refused
          tryRun client (idempotent command) `shouldReturn` refused
          tryRun client (onNode (TcpEndpoint (Char8.pack (Server.serverHost server)) (fromIntegral (Server.serverPort server))) command) `shouldReturn` refused
          (submit client command >>= tryAwaitReply) `shouldReturn` refused
          withDedicated client AnyPrimary $ \dedicated -> do
            tryRunOn dedicated command `shouldReturn` refused
            (submitOn dedicated command >>= tryAwaitReply) `shouldReturn` refused
        run client (Commands.get "hits") `shouldReturn` Nothing
        run client (Build.inline "INCR hits") `shouldReturn` Integer 1

    it "no words at all are refused on a connection of one's own, which stays" $
      withServer $ \server -> leavingNothing . withClient (addressed server) $ \client ->
        withDedicated client AnyPrimary $ \dedicated -> do
          forM_ [raw [], Build.inline "", Build.inline " "] $ \command ->
            tryRunOn dedicated command `shouldReturn` Left (RefusedError EmptyCommand)
          runOn dedicated (Commands.echo "still here") `shouldReturn` "still here"

isAttempt :: ConnectionEvent -> Bool
isAttempt = \case
  ConnectAttemptFailed {} -> True
  _ -> False

data Trouble = Trouble
  deriving stock (Eq, Show)

instance Exception Trouble

withServer :: (Server.Server -> IO a) -> IO a
withServer = Server.withServer serverDefaults

decimal :: Int -> ByteString
decimal = Char8.pack . show

-- | The gauges of the single server's dedicated connections.
gaugesOf :: Client -> IO DedicatedGauges
gaugesOf client =
  map gaugeDedicated . snapshotNodes <$> clientSnapshot client >>= \case
    [gauges] -> pure gauges
    other -> fail (show other)

-- | Fails unless the connection was closed instead of being kept for the next caller.
goneFrom :: Server.Server -> Client -> Int64 -> IO ()
goneFrom server client identity = do
  gaugesOf client `shouldReturn` DedicatedGauges {gaugeLent = 0, gaugeIdle = 0, gaugeOpening = 0, gaugeLeasesWaiting = 0}
  eventually 5 "the server has seen it go" $
    Server.command server ["CLIENT", "LIST"] >>= \case
      Text list -> pure (not (any (("id=" <> Char8.pack (show identity) <> " ") `Char8.isPrefixOf`) (Char8.lines list)))
      other -> fail (show other)
