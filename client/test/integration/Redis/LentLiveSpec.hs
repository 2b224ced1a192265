-- | Dedicated connections, as a real server sees them: which caller gets which, and in what state.
module Redis.LentLiveSpec (spec) where

import Control.Concurrent.Async (async, forConcurrently, wait)
import Control.Concurrent.STM
import Control.Exception (Exception, displayException, throwIO, try)
import Control.Monad (forM, forM_, replicateM, replicateM_, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Data.List (isInfixOf)
import Data.Map.Strict qualified as Map
import Data.Set qualified as Set
import GHC.Stats (GCDetails (gcdetails_live_bytes), RTSStats (gc), getRTSStats)
import Redis
import Redis.Command.Build qualified as Build
import Redis.Commands qualified as Commands
import Redis.Metrics
import Redis.ScriptedPeer
import Redis.Surroundings (addressed)
import Redis.TestKit.Command (Reply (Text), infoFields, requestOk)
import Redis.TestKit.Server (AclUser (..), Server, ServerOptions (..), serverDefaults, serverHost, serverPort, withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventually, eventuallyReturns, failure, within)
import Redis.Value (Value (..))
import System.Mem (performMajorGC)
import System.Timeout (timeout)
import Test.Hspec hiding (after, before)

spec :: Spec
spec = around_ (within 60) $ do
  describe "contended transactions" $
    it "end in the right sum, over no more connections than threads hold at once" $
      withServer serverDefaults $ \server ->
        withClient (addressed server) $ \client ->
          Server.withServerConnection server $ \observer -> do
            let received =
                  requestOk observer ["INFO", "stats"] >>= \case
                    Text info | Just count <- Map.lookup "total_connections_received" (infoFields info) -> pure (read (Char8.unpack count) :: Int)
                    other -> failure (show other)
            before <- received
            watchers <- newTVarIO (0 :: Int)
            identities <- newTVarIO Set.empty
            attempts <- forConcurrently [1 .. threads] $ \_ ->
              sum <$> forM [1 .. 200 `div` threads] (\number -> incremented client identities (if number == 1 then meeting watchers else pure ()))
            run client (Commands.get "counter") `shouldReturn` Just "200"
            -- In the first round all threads have watched the key before any goes on, and only one
            -- wins.
            sum attempts `shouldSatisfy` (>= 200 + threads - 1)
            used <- readTVarIO identities
            Set.size used `shouldSatisfy` (<= threads)
            after <- received
            -- The shared connection, which read the sum, is one more.
            after - before `shouldSatisfy` (<= threads + 1)

  describe "a connection that goes back as it was is the next caller's, after" $
    forM_ givenBack $ \(name, commands) -> forM_ [PreferResp3, OnlyResp2] $ \protocol ->
      it (name <> " (" <> show protocol <> ")") $
        withServer serverDefaults $ \server ->
          withClient (setProtocol protocol (setClientName (Just "worker") (setMaxDedicated 1 (addressed server)))) $ \client -> do
            first <- identity client
            withDedicated client AnyPrimary $ \own -> mapM_ (tryRunOn own . raw) commands
            identity client `shouldReturn` first
            dedicated client >>= (`shouldBe` (0, 1)) . (\gauges -> (gaugeLent gauges, gaugeIdle gauges))

  describe "a connection on which something is left is closed, after" $
    forM_ leftBehind $ \(name, answered, commands) -> forM_ [PreferResp3, OnlyResp2] $ \protocol ->
      it (name <> " (" <> show protocol <> ")") $
        withServer serverDefaults $ \server ->
          withClient (setProtocol protocol (setMaxDedicated 1 (addressed server))) $ \client -> do
            first <- identity client
            withDedicated client AnyPrimary $ \own -> do
              started <- mapM (submitOn own . raw) commands
              -- Otherwise the connection would be closed because of the missing replies.
              when answered (mapM_ awaitReply started)
            gaugeIdle <$> dedicated client `shouldReturn` 0
            eventually 5 "the server has seen it go" $ notElem first <$> clientIds server
            second <- identity client
            second `shouldSatisfy` (/= first)
            run client (Commands.get "key") `shouldReturn` Nothing

  it "a body that throws closes its connection" $
    withServer serverDefaults $ \server ->
      withClient (setMaxDedicated 1 (addressed server)) $ \client -> do
        first <- identity client
        thrown <- try (withDedicated client AnyPrimary (\own -> runOn own Commands.ping >> throwIO Trouble :: IO ()))
        thrown `shouldBe` Left Trouble
        gaugeIdle <$> dedicated client `shouldReturn` 0
        eventually 5 "the server has seen it go" $ notElem first <$> clientIds server

  it "a connection that lies idle for its time is closed, and one that is lent is not" $
    withServer serverDefaults $ \server ->
      withClient (setDedicatedIdle (Just (seconds 0.2)) (addressed server)) $ \client ->
        withDedicated client AnyPrimary $ \own -> do
          lent <- runOn own Commands.clientId
          other <- identity client
          other `shouldSatisfy` (/= lent)
          eventually 10 "it is closed" $ notElem other <$> clientIds server
          gaugeIdle <$> dedicated client `shouldReturn` 0
          runOn own Commands.clientId `shouldReturn` lent
          -- The next one is closed, too: the thread that closes idle connections is still there.
          another <- identity client
          eventually 10 "it is closed too" $ notElem another <$> clientIds server

  it "a command that waits on the server leaves nothing behind when its caller leaves while it is to be sent again" $
    withServer serverDefaults $ \server ->
      withClient (setMaxAttempts maxBound (setBackoff backoffDefaults {backoffFirst = seconds 0.01, backoffCap = seconds 0.01} (addressed server))) $ \client -> do
        Server.kill9 server
        let live = performMajorGC >> gcdetails_live_bytes . gc <$> getRTSStats
        before <- live
        -- Each is to be sent again, after its backoff, by then. Only the tag of the key is hashed.
        forM_ [1 .. 20 :: Int] $ \_ ->
          timeout 50000 (tryRun client (Commands.blpop (pure ("{k}" <> Char8.replicate 1000000 'k')) Nothing)) `shouldReturn` Nothing
        eventually 10 "nothing of them is left" $ (< before + 10 * 1000000) <$> live

  it "callers get the one connection in the order in which they came" $
    withServer serverDefaults $ \server ->
      withClient (setMaxDedicated 1 (addressed server)) $ \client -> do
        served <- newTVarIO []
        callers <- withDedicated client AnyPrimary $ \own -> do
          runOn own Commands.ping
          forM [1 .. 12 :: Int] $ \number -> do
            caller <- async $
              withDedicated client AnyPrimary $ \theirs -> do
                atomically (modifyTVar' served (number :))
                runOn theirs Commands.clientId
            caller <$ eventuallyReturns 10 number (gaugeLeasesWaiting <$> dedicated client)
        identities <- within 20 (mapM wait callers)
        reverse <$> readTVarIO served `shouldReturn` [1 .. 12]
        Set.size (Set.fromList identities) `shouldBe` 1

  forM_ [("by key", const (AtKey "hits")), ("by node", AtNode . endpointOf), ("anywhere", const AnyPrimary)] $ \(how, place) ->
    it ("commands on a connection that was lent " <> how <> " need not be waited for one by one") $
      withServer serverDefaults $ \server ->
        withClient (addressed server) $ \client -> do
          results <- withDedicated client (place server) $ \own -> do
            -- The server answers none of the commands before all are submitted.
            _ <- Server.command server ["CLIENT", "PAUSE", "60000", "WRITE"]
            started <- replicateM 500 (submitOn own (Commands.incr "hits"))
            _ <- Server.command server ["CLIENT", "UNPAUSE"]
            mapM awaitReply started
          results `shouldBe` [1 .. 500]
          gaugeIdle <$> dedicated client `shouldReturn` 1

  describe "a client that leaves it to its caller to say who it is" $ do
    it "is lent a connection, on which the caller authenticates, and which nobody gets after it" $
      withServer guarded $ \server ->
        withClient (setMaxDedicated 1 (setCallerAuthenticates True (addressed server))) $ \client -> do
          first <- withDedicated client AnyPrimary $ \own -> do
            tryRunOn own (Commands.set "key" "early") >>= refusedBy "NOAUTH"
            runOn own (Commands.auth Credentials {credentialsUser = Nothing, credentialsPassword = toSecret "right"})
            runOn own (Commands.set "key" "value")
            runOn own (Commands.get "key") `shouldReturn` Just "value"
            runOn own Commands.clientId
          gaugeIdle <$> dedicated client `shouldReturn` 0
          eventually 5 "the server has seen it go" $ notElem first <$> clientIds server
          -- The next caller is not authenticated, as the first was not.
          withDedicated client AnyPrimary (\own -> tryRunOn own (Commands.get "key")) >>= refusedBy "NOAUTH"

    it "is lent one by a HELLO of the caller's, too" $
      withServer guarded $ \server ->
        withClient (setCallerAuthenticates True (addressed server)) $ \client ->
          withDedicated client AnyPrimary $ \own -> do
            _ <- runOn own (raw ["HELLO", "3", "AUTH", "default", "right"])
            runOn own (raw ["DEBUG", "PROTOCOL", "map"]) >>= \case
              Map _ -> pure ()
              other -> expectationFailure (show other)

    it "runs nothing elsewhere: the server's refusal is the error" $
      withServer guarded $ \server ->
        withClient (setMaxAttempts 1 (setCallerAuthenticates True (addressed server))) $ \client ->
          tryRun client (Commands.get "key") >>= refusedBy "NOAUTH"

  it "a client that does not is told NOAUTH instead of being lent a connection" $
    withServer guarded $ \server ->
      withClient (addressed server) $ \client -> do
        lent <- try (withDedicated client AnyPrimary (\_ -> pure ()))
        refusedBy "NOAUTH" lent
        gaugeIdle <$> dedicated client `shouldReturn` 0

  describe "a connection that was opened with credentials that may change" $ do
    it "is lent again while they are the newest, and not when others were issued" $
      withServer serverDefaults {optionsUsers = [user "older", user "newer"]} $ \server -> do
        current <- newTVarIO "older"
        let action = (\name -> issuedCredentials Credentials {credentialsUser = Just name, credentialsPassword = toSecret "secret"}) <$> readTVarIO current
            whoami own = (,) <$> runOn own Commands.clientId <*> runOn own (raw ["ACL", "WHOAMI"])
        withClient (setCredentialsFrom action (addressed server)) $ \client -> do
          first <- withDedicated client AnyPrimary whoami
          snd first `shouldBe` BulkString "older"
          (own, other) <- withDedicated client AnyPrimary $ \own -> do
            atomically (writeTVar current "newer")
            -- A newly opened connection makes the client learn of the newer credentials.
            other <- withDedicated client AnyPrimary whoami
            (,) <$> whoami own <*> pure other
          own `shouldBe` first
          snd other `shouldBe` BulkString "newer"
          -- The connection with the older ones went back last, and would be lent first.
          again <- withDedicated client AnyPrimary whoami
          snd again `shouldBe` BulkString "newer"
          eventually 5 "the older one is closed" $ notElem (fst first) <$> clientIds server

    it "is not lent again when their time is over" $
      withServer serverDefaults {optionsUsers = [user "older"]} $ \server -> do
        let action = pure (issuedCredentials Credentials {credentialsUser = Just "older", credentialsPassword = toSecret "secret"}) {issuedFor = Just (seconds 0.2)}
        withClient (setCredentialsFrom action (addressed server)) $ \client -> do
          first <- identity client
          eventually 5 "another one is lent" $ (/= first) <$> identity client
          eventually 5 "the first is closed" $ notElem first <$> clientIds server

  describe "a command that is not answered by one reply" $ do
    it "is refused, unsent, with what to do instead, on every connection" $
      withServer serverDefaults $ \server ->
        withClient (setCommandTimeout (Just (seconds 20)) (addressed server)) $ \client ->
          withDedicated client AnyPrimary $ \own ->
            forM_ [("CLIENT REPLY", ["CLIENT", "REPLY", "OFF"]), ("CLIENT REPLY", ["client", "reply", "skip"]), ("MONITOR", ["MONITOR"]), ("SYNC", ["SYNC"]), ("PSYNC", ["PSYNC", "?", "-1"]), ("SUBSCRIBE", ["SUBSCRIBE", "c", "d"]), ("SSUBSCRIBE", ["SSUBSCRIBE", "c"]), ("PUNSUBSCRIBE", ["PUNSUBSCRIBE"]), ("REPLCONF", ["REPLCONF", "GETACK", "*"]), ("REPLCONF", ["replconf", "ack", "0"])] $ \(name, words') ->
              forM_ [("shared", tryRun client), ("lent", tryRunOn own), ("line", tryRunOn own . const (Build.inline (Char8.unwords words')))] $ \(kind :: String, attempt) -> do
                attempt (raw words') >>= \case
                  Left refused@(RefusedError (NeedsWire named)) -> do
                    (kind, named) `shouldBe` (kind, name)
                    displayException refused `shouldSatisfy` ("Redis.Wire" `isInfixOf`)
                  other -> expectationFailure (show (kind, words', other))
                runOn own (Commands.echo "answered") `shouldReturn` "answered"

    it "is not CLIENT REPLY ON, which runs on a lent connection" $
      withServer serverDefaults $ \server ->
        withClient (addressed server) $ \client ->
          withDedicated client AnyPrimary $ \own ->
            runOn own (raw ["CLIENT", "REPLY", "ON"]) `shouldReturn` SimpleString "OK"

  describe "WAIT" $ do
    it "on a lent connection answers for what was written there" $
      withServer serverDefaults $ \primary ->
        withServer serverDefaults {optionsReplicaOf = Just (serverHost primary, serverPort primary)} $ \replica ->
          withClient (addressed primary) $ \client -> do
            eventually 30 "the replica has what there is" $ (== 1) <$> withDedicated client AnyPrimary (\own -> runOn own (Commands.wait 1 (Just (milliseconds 50))))
            withDedicated client AnyPrimary $ \own -> do
              runOn own (Commands.set "key" "value")
              runOn own (Commands.wait 1 Nothing) `shouldReturn` 1
              Server.freeze replica
              runOn own (Commands.set "key" "other")
              runOn own (Commands.wait 1 (Just (milliseconds 100))) `shouldReturn` 0
              Server.thaw replica
              runOn own (Commands.wait 1 Nothing) `shouldReturn` 1
            gaugeIdle <$> dedicated client `shouldReturn` 1

    forM_ [("WAIT", ["WAIT", "1", "0"]), ("WAITAOF", ["WAITAOF", "1", "0", "0"])] $ \(name, words') -> do
      it (name <> " on the shared connection is refused, unsent, with what to do instead") $
        withPeer (const "+OK\r\n") $ \peer ->
          withClient (setProtocol OnlyResp2 (peerConfig peer)) $ \client -> do
            _ <- run client (raw ["SET", "key", "value"])
            tryRun client (raw words') >>= \case
              Left refused@(RefusedError (NeedsDedicatedConnection _)) ->
                displayException refused `shouldBe` "refused: " <> name <> " changes the state of its connection, which others share; run it on a dedicated connection"
              other -> expectationFailure (show other)
            heard <- peerHeard peer
            filter ((== [Char8.pack name]) . take 1) heard `shouldBe` []

      it (name <> " is sent on the lent connection, right behind the caller's write, and leaves it as it was") $
        withPeer (\said -> if said == words' then ":1\r\n" else "+OK\r\n") $ \peer ->
          withClient (setProtocol OnlyResp2 (peerConfig peer)) $ \client -> do
            replicateM_ 2 $
              withDedicated client AnyPrimary $ \own -> do
                _ <- runOn own (raw ["SET", "key", "value"])
                runOn own (raw words') `shouldReturn` Integer 1
            heard <- peerHeard peer
            -- The peer serves one connection at a time, and there was only one.
            filter ((/= ["CLIENT", "SETINFO"]) . take 2) heard `shouldBe` concat (replicate 2 [["SET", "key", "value"], words'])
  where
    threads = 4
    guarded = serverDefaults {optionsPassword = Just "right"}
    user name = AclUser {aclName = name, aclPassword = "secret", aclRules = "~* +@all"}

-- | Adds one to the counter, and returns how many attempts it took. The action runs in the first
-- attempt, once the key is watched.
incremented :: Client -> TVar (Set.Set Int64) -> IO () -> IO Int
incremented client identities = go 1
  where
    go :: Int -> IO () -> IO Int
    go attempt meanwhile = do
      done <- withDedicated client (AtKey "counter") $ \own -> do
        own' <- runOn own Commands.clientId
        atomically (modifyTVar' identities (Set.insert own'))
        _ <- runOn own (raw ["WATCH", "counter"])
        before <- runOn own (Commands.get "counter")
        meanwhile
        let next = maybe 1 ((+ 1) . maybe 0 fst . Char8.readInt) before
        _ <- runOn own (raw ["MULTI"])
        _ <- runOn own (raw ["SET", "counter", Char8.pack (show next)])
        runOn own (raw ["EXEC"])
      case done of
        Array [SimpleString "OK"] -> pure attempt
        Null -> go (attempt + 1) (pure ())
        other -> failure (show other)

-- | Waits until all threads are here.
meeting :: TVar Int -> IO ()
meeting arrived = do
  atomically (modifyTVar' arrived (+ 1))
  within 20 . atomically $ readTVar arrived >>= check . (>= 4)

givenBack :: [(String, [[ByteString]])]
givenBack =
  [ ("nothing", []),
    ("a command that the server refuses", [["SET", "list", "x"], ["LPUSH", "list", "x"]]),
    ("EXEC", [["WATCH", "key"], ["MULTI"], ["GET", "key"], ["EXEC"]]),
    ("EXEC of a command that fails", [["SET", "string", "x"], ["MULTI"], ["LPUSH", "string", "x"], ["EXEC"]]),
    ("EXEC after a watched key was changed", [["WATCH", "key"], ["SET", "key", "x"], ["MULTI"], ["GET", "key"], ["EXEC"]]),
    ("EXEC that the server refuses", [["WATCH", "key"], ["MULTI"], ["GET"], ["EXEC"]]),
    ("DISCARD", [["WATCH", "key"], ["MULTI"], ["SELECT", "5"], ["DISCARD"]]),
    ("UNWATCH", [["WATCH", "key"], ["UNWATCH"]]),
    ("SELECT that was undone", [["SELECT", "5"], ["GET", "key"], ["SELECT", "0"]]),
    ("SELECT that was undone in a transaction", [["SELECT", "5"], ["MULTI"], ["SELECT", "0"], ["EXEC"]]),
    ("SELECT of a database that there is not", [["SELECT", "5000"]]),
    ("CLIENT REPLY OFF, which is refused", [["CLIENT", "REPLY", "OFF"], ["GET", "key"]]),
    ("SUBSCRIBE, which is refused", [["SUBSCRIBE", "news"], ["MULTI"], ["SSUBSCRIBE", "news"], ["EXEC"]]),
    ("CLIENT SETNAME that was undone", [["CLIENT", "SETNAME", "other"], ["CLIENT", "SETNAME", "worker"]]),
    ("CLIENT NO-EVICT that was undone", [["CLIENT", "NO-EVICT", "ON"], ["CLIENT", "NO-EVICT", "OFF"]])
  ]

-- | A name, whether the server answers all the commands, and the commands.
leftBehind :: [(String, Bool, [[ByteString]])]
leftBehind =
  [ ("MULTI left open", True, [["MULTI"]]),
    ("MULTI left open with commands in it", True, [["MULTI"], ["SET", "key", "never"]]),
    ("WATCH", True, [["WATCH", "key"]]),
    ("SELECT", True, [["SELECT", "5"]]),
    ("SELECT in a transaction", True, [["MULTI"], ["SELECT", "5"], ["EXEC"]]),
    ("CLIENT SETNAME", True, [["CLIENT", "SETNAME", "other"]]),
    ("CLIENT TRACKING", True, [["CLIENT", "TRACKING", "ON"]]),
    ("HELLO", True, [["HELLO", "2"]]),
    ("RESET", True, [["RESET"]]),
    ("a command without its reply", False, [["BLPOP", "list", "0"]])
  ]

identity :: Client -> IO Int64
identity client = withDedicated client AnyPrimary (`runOn` Commands.clientId)

-- | The gauges of the single server's dedicated connections.
dedicated :: Client -> IO DedicatedGauges
dedicated client =
  map gaugeDedicated . snapshotNodes <$> clientSnapshot client >>= \case
    [gauges] -> pure gauges
    other -> failure (show other)

clientIds :: Server -> IO [Int64]
clientIds server =
  Server.command server ["CLIENT", "LIST"] >>= \case
    Text list -> pure [fromIntegral number | line <- Char8.lines list, Just digits <- [Char8.stripPrefix "id=" line], Just (number, _) <- [Char8.readInt digits]]
    other -> failure (show other)

refusedBy :: ByteString -> Either Error a -> Expectation
refusedBy code = \case
  Left failed -> show failed `shouldSatisfy` (Char8.unpack code `isInfixOf`)
  Right _ -> expectationFailure "it was not refused"

endpointOf :: Server -> Endpoint
endpointOf server = TcpEndpoint (Char8.pack (serverHost server)) (fromIntegral (serverPort server))

data Trouble = Trouble
  deriving stock (Eq, Show)

instance Exception Trouble
