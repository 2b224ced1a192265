-- | A primary and its replicas without sentinels, with roles that an operator assigns.
module GroupSpec (spec) where

import Control.Concurrent.STM
import Control.Exception (try)
import Control.Monad (forM_, replicateM_, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isRight)
import Data.Map.Strict qualified as Map
import FakeNode
import Redis
import Redis.Cache
import Redis.CacheAudit
import Redis.Commands qualified as Redis
import Redis.Scan (nextPage, walkDefaults, walkScan)
import Redis.Subscription (channel, withSubscription)
import Redis.TestKit.Command (CommandCalls (..), Reply (..), request)
import Redis.TestKit.Group
import Redis.TestKit.Server hiding (serverOptions)
import Redis.TestKit.Wait
import Redis.Tracing (CommandBegun (begunNode))
import Redis.Transaction
import Support hiding (auditWrong)
import Test.Hspec hiding (after, before)

spec :: Spec
spec = do
  describe "a primary with replicas" $ do
    it "is found from a replica, and knows its replicas" $
      limited . settled . withMembers $ \group -> do
        replicas <- replicasOf group
        withClient (groupOf (take 1 replicas)) $ \client -> do
          run client (Redis.set "key" "value")
          primary <- primaryOf group
          command primary ["GET", "key"] `shouldReturn` Text "value"
          clientNodes client >>= \nodes -> map clientNodeRole nodes `shouldMatchList` (PrimaryNode : replicate 2 (ReplicaNode (endpointOf primary)))

    it "is found though most of its seeds are dead" $
      limited . settled . withMembers $ \group -> do
        primary <- primaryOf group
        let config = impatient (groupConfig (TcpEndpoint "127.0.0.1" 1 :| [TcpEndpoint "127.0.0.1" 2, endpointOf primary]))
        withClient config $ \client -> run client (Redis.set "key" "value")

    it "whose roles an operator changes is followed, and nothing acknowledged is lost or done twice" $
      limited . settled . withMembers $ \group ->
        withClient (groupOf (groupServers group)) $ \client -> do
          replicas <- replicasOf group
          audit <- audited client "swap" 8 $
            forM_ (take 1 replicas) $ \chosen -> do
              planned group chosen
              eventually 3 "a write goes to the new primary" $ do
                _ <- tryRun client (Redis.set "swapped" "yes")
                command chosen ["GET", "swapped"] >>= \reply -> pure (reply == Text "yes")
          verifyCounters client audit
          verifyTokens client audit
          -- Once the client knows the new primary, it sends the old one nothing more.
          eventually 3 "the new primary is known" $
            (\nodes -> [clientNodeEndpoint node | node <- nodes, clientNodeRole node == PrimaryNode] == map endpointOf (take 1 replicas)) <$> clientNodes client
          old <- filter ((/= map serverPort (take 1 replicas)) . pure . serverPort) <$> replicasOf group
          forM_ old $ \server -> do
            refused <- callsOf callsRejected "set" server
            replicateM_ 20 (run client (Redis.set "more" "value"))
            callsOf callsRejected "set" server `shouldReturn` refused

    it "that comes back after a replica was promoted gets no writes" $
      limited . settled . withMembers $ \group ->
        withClient (groupOf (groupServers group)) $ \client -> do
          run client (Redis.set "key" "before")
          old <- primaryOf group
          replicas <- replicasOf group
          kill9 old
          forM_ (take 1 replicas) (promote group)
          eventually 5 "a write finds the new primary" $ isRight <$> tryRun client (Redis.set "key" "after")
          -- The old primary restarts as it was configured: as an empty primary.
          restart old
          replicateM_ 50 (run client (Redis.incr "counter"))
          forM_ (take 1 replicas) $ \chosen -> do
            command chosen ["GET", "counter"] `shouldReturn` Text "50"
            command old ["GET", "counter"] `shouldReturn` Nil

    it "answers reads at its replicas on request, and writes itself" $
      limited . settled . withMembers $ \group -> do
        primary <- primaryOf group
        withClient (setReadFrom PreferReplica (groupOf (groupServers group))) $ \client -> do
          run client (Redis.set "key" "value")
          forM_ (groupServers group) $ \server -> eventually 5 "it is replicated" ((== Text "value") <$> command server ["GET", "key"])
          before <- callsOf callsRun "get" primary
          replicateM_ 50 (run client (Redis.get "key") `shouldReturn` Just "value")
          callsOf callsRun "get" primary `shouldReturn` before
          replicas <- replicasOf group
          counts <- mapM (callsOf callsRun "get") replicas
          counts `shouldSatisfy` all (> 5)

    it "is read through what is kept, soon in the last version and never in an earlier one again, while roles are swapped" $
      limited . settled . withMembers $ \group ->
        withClient (setReadFrom PreferReplica (setCaching (Just cachingDefaults) (groupOf (groupServers group)))) $ \client ->
          withClient (groupOf (groupServers group)) $ \writer -> do
            audit <-
              auditedReads
                client
                Watch
                  { watchKeys = ["k1", "k2"],
                    watchReaders = 3,
                    watchAge = 3600,
                    watchPace = 0.01,
                    watchWrite = \key version -> isRight <$> tryRun writer (Redis.set key (Char8.pack (show version))),
                    watchForgets = False
                  }
                $ do
                  first <- primaryOf group
                  replicas <- replicasOf group
                  forM_ (take 1 replicas <> [first]) $ \chosen -> do
                    planned group chosen
                    awaitReplicas group
            auditWrong audit `shouldBe` []
            gauges <- cacheGauges client
            (cacheHits gauges, cacheInvalidated gauges) `shouldSatisfy` \(hits, invalidated) -> hits > 50 && invalidated > 2

    it "answers reads itself when its replicas are gone" $
      limited . settled . withMembers $ \group -> do
        replicas <- replicasOf group
        withClient (setReadFrom PreferReplica (groupOf (groupServers group))) $ \client -> do
          run client (Redis.set "key" "value")
          mapM_ kill9 replicas
          replicateM_ 20 (run client (Redis.get "key") `shouldReturn` Just "value")

    it "runs commands over several keys as one, whatever their slots" $
      limited . settled . withMembers $ \group ->
        withClient (groupOf (groupServers group)) $ \client -> do
          run client (Redis.mset (("a", "1") :| [("b", "2"), ("c", "3")]))
          run client (Redis.mget ("a" :| ["b", "c"])) `shouldReturn` map Just ["1", "2", "3"]
          run client Redis.dbsize `shouldReturn` 3

    it "has nodes that are named, and all of them" $
      limited . settled . withMembers $ \group ->
        withClient (groupOf (groupServers group)) $ \client -> do
          run client (Redis.set "key" "value")
          forM_ (groupServers group) $ \server -> eventually 5 "it is replicated" ((== Text "value") <$> command server ["GET", "key"])
          forM_ (groupServers group) $ \server ->
            run client (onNode (endpointOf server) (Redis.get "key")) `shouldReturn` Just "value"
          length <$> run client (onEvery AllNodes Redis.dbsize) `shouldReturn` 3
          length <$> run client (onEvery Replicas Redis.dbsize) `shouldReturn` 2
          -- A command for a named node is not sent to another node.
          replicas <- replicasOf group
          forM_ (take 1 replicas) $ \replica -> do
            failed <- tryRun client (onNode (endpointOf replica) (Redis.set "key" "other")) >>= expectError
            errorDelivery failed `shouldBe` RefusedBeforeRun

    it "runs transactions and scripts where it is, and follows it with them" $
      limited . settled . withMembers $ \group ->
        withClient (groupOf (groupServers group)) $ \client -> do
          let visit = (,) <$> queued (Redis.incr "visits") <*> queued (Redis.get "name")
          runTransaction client visit `shouldReturn` (1, Nothing)
          replicas <- replicasOf group
          forM_ (take 1 replicas) (planned group)
          runTransaction client visit `shouldReturn` (2, Nothing)

    it "of which nobody is a primary is an error that names each server's reason" $
      limited . settled $ do
        let config = impatient (groupConfig (TcpEndpoint "127.0.0.1" 1 :| [TcpEndpoint "127.0.0.1" 2]))
        withClient (setCommandTimeout (Just (seconds 1)) config) $ \client -> do
          failed <- tryRun client (Redis.get "key") >>= expectError
          errorDelivery failed `shouldBe` NotSent
          maybe [] endpointsOf (clusterReason failed) `shouldMatchList` [TcpEndpoint "127.0.0.1" 1, TcpEndpoint "127.0.0.1" 2]

    it "whose password is wrong says so at once" $
      limited . settled . withGroup groupDefaults {groupServer = serverDefaults {optionsPassword = Just "right"}} $ \group -> do
        let wrong = setCredentials (Just Credentials {credentialsUser = Nothing, credentialsPassword = toSecret "wrong"})
        withClient (wrong (groupOf (groupServers group))) $ \client -> do
          failed <- within 1 (tryRun client (Redis.get "key")) >>= expectError
          show failed `shouldContain` "WRONGPASS"

  describe "a server alone that sends its client elsewhere" $ do
    it "is followed, by writes too, and asked no more from then on" $
      limited . settled . withFakeNode $ \primary -> withFakeNode $ \replica -> do
        setScript replica (redirecting (fakeAddress primary))
        withClient (alone replica) $ \client -> do
          run client (Redis.incr "counter") `shouldReturn` 1
          replicateM_ 10 (run client (Redis.get "key"))
          countHeard replica ["INCR"] `shouldReturn` 1
          countHeard replica ["GET"] `shouldReturn` 0
          countHeard primary ["GET"] `shouldReturn` 10
          countHeard replica ["CLIENT", "CAPA", "redirect"] `shouldReturn` 1

    it "is where the hook says that commands go, until the client follows it" $
      limited . settled . withFakeNode $ \primary -> withFakeNode $ \replica -> do
        setScript replica (redirecting (fakeAddress primary))
        nodes <- newTVarIO []
        let hook begun = (\_ -> pure ()) <$ atomically (modifyTVar' nodes (<> [begunNode begun]))
        withClient (setHooks noHooks {hookCommand = Just hook} (alone replica)) $ \client -> do
          run client (Redis.incr "counter") `shouldReturn` 1
          _ <- run client (Redis.get "key")
          _ <- withDedicated client (AtNode (fakeEndpoint replica)) (`runOn` raw ["ECHO", "lent"])
          readTVarIO nodes `shouldReturn` map (Just . fakeEndpoint) [replica, primary, replica]

    it "is gone back to when the one it named is lost" $
      limited . settled . withFakeNode $ \primary -> withFakeNode $ \replica -> do
        setScript replica (redirecting (fakeAddress primary))
        withClient (alone replica) $ \client -> do
          run client (Redis.set "key" "value")
          setScript replica quiet
          setScript primary (\_ _ -> pure (Just HangUp))
          hangUpAll primary
          eventually 3 "it answers itself" $ isRight <$> tryRun client (Redis.set "key" "value")
          countHeard replica ["SET"] >>= (`shouldSatisfy` (>= 2))

    it "still gets the commands that name it" $
      limited . settled . withFakeNode $ \primary -> withFakeNode $ \replica -> do
        setScript replica (redirecting (fakeAddress primary))
        withClient (alone replica) $ \client -> do
          run client (Redis.incr "counter") `shouldReturn` 1
          _ <- run client (onNode (fakeEndpoint replica) (raw ["ECHO", "named"]))
          _ <- withDedicated client (AtNode (fakeEndpoint replica)) (`runOn` raw ["ECHO", "lent"])
          _ <- run client (raw ["ECHO", "ordinary"])
          countHeard replica ["ECHO"] `shouldReturn` 2
          countHeard primary ["ECHO"] `shouldReturn` 1

    it "is gone back to by a client that only lends connections" $
      limited . settled . withFakeNode $ \primary -> withFakeNode $ \replica -> do
        setScript replica (redirecting (fakeAddress primary))
        withClient (alone replica) $ \client -> do
          sent <- withDedicated client AnyPrimary (`tryRunOn` Redis.incr "counter") >>= expectError
          errorDelivery sent `shouldBe` RefusedBeforeRun
          withDedicated client AnyPrimary (`runOn` Redis.incr "counter") `shouldReturn` 1
          countHeard primary ["INCR"] `shouldReturn` 1
          setScript replica quiet
          setScript primary (\_ _ -> pure (Just HangUp))
          hangUpAll primary
          eventually 3 "it answers itself" $
            either (\(_ :: Error) -> False) (== 1) <$> try (withDedicated client AnyPrimary (`runOn` Redis.incr "counter"))

    it "is gone back to by a client that only subscribes" $
      limited . settled . withFakeNode $ \primary -> withFakeNode $ \replica -> do
        setScript replica (listened (redirecting (fakeAddress primary)))
        setScript primary (listened quiet)
        withClient (alone replica) $ \client -> do
          _ <- withDedicated client AnyPrimary (`tryRunOn` Redis.incr "counter") >>= expectError
          withSubscription client (channel "news") $ \_ -> do
            countHeard primary ["SUBSCRIBE"] `shouldReturn` 1
            setScript primary (\_ _ -> pure (Just HangUp))
            hangUpAll primary
            eventually 5 "it has the subscription" $ (>= 1) <$> countHeard replica ["SUBSCRIBE"]

    it "is followed by a walk whose first page it turns away" $
      limited . settled . withFakeNode $ \primary -> withFakeNode $ \replica -> do
        let scanned answer _ words' = pure . Just $ case words' of
              "SCAN" : _ -> Say answer
              "INFO" : _ -> Say (Text "run_id:1\r\nmaster_replid:2\r\n")
              _ -> Say (Status "OK")
        setScript replica (scanned (Failed ("REDIRECT " <> fakeAddress primary)))
        setScript primary (scanned (List [Text "0", List [Text "key"]]))
        withClient (alone replica) $ \client -> do
          walk <- walkScan walkDefaults client Redis.scanDefaults
          nextPage walk `shouldReturn` Just ["key"]
          nextPage walk `shouldReturn` Nothing
        countHeard replica ["SCAN"] `shouldReturn` 1

    it "is not heard any more once another is in use" $
      limited . settled . withFakeNode $ \c -> withFakeNode $ \b -> withFakeNode $ \a -> do
        setScript a (redirecting (fakeAddress b))
        setScript b (redirecting (fakeAddress c))
        withClient (alone a) $ \client -> do
          run client (Redis.incr "counter") `shouldReturn` 1
          _ <- withDedicated client (AtNode (fakeEndpoint a)) (`tryRunOn` Redis.get "key") >>= expectError
          run client (Redis.incr "counter") `shouldReturn` 1
          countHeard b ["INCR"] `shouldReturn` 1
          countHeard c ["INCR"] `shouldReturn` 2

    it "is waited for by no command of a closed client that names it" $
      limited . settled . withFakeNode $ \node ->
        withClient (setCommandTimeout Nothing (alone node)) $ \client -> do
          run client (Redis.incr "counter") `shouldReturn` 1
          closeClient client
          within 3 (tryRun client (onNode (fakeEndpoint node) (Redis.blpop ("list" :| []) Nothing))) `shouldReturn` Left ClientClosed

    it "takes its subscriptions with it, and has them back when the one it named is lost" $
      limited . settled . withFakeNode $ \primary -> withFakeNode $ \replica -> do
        setScript replica (listened (redirecting (fakeAddress primary)))
        setScript primary (listened quiet)
        withClient (alone replica) $ \client -> do
          run client (Redis.incr "counter") `shouldReturn` 1
          withSubscription client (channel "news") $ \_ -> do
            countHeard primary ["SUBSCRIBE"] `shouldReturn` 1
            setScript replica (listened quiet)
            setScript primary (\_ _ -> pure (Just HangUp))
            hangUpAll primary
            eventually 3 "it answers itself" $ isRight <$> tryRun client (Redis.set "key" "value")
            eventually 5 "it has the subscription" $ (>= 1) <$> countHeard replica ["SUBSCRIBE"]

    it "is asked nothing, whatever a read prefers" $
      limited . settled . withFakeNode $ \node -> do
        withClient (alone node) $ \client -> do
          forM_ [PreferReplica, ReadAny, SameZone "a", LowestLatency] $ \source -> do
            replicateM_ 50 (run client (readFrom source (Redis.incr "counter")))
            replicateM_ 50 (run client (readFrom source (Redis.get "key")))
        countHeard node ["INFO"] `shouldReturn` 0
        countHeard node ["PING"] `shouldReturn` 0

    it "is not followed by a client that was not told to" $
      limited . settled . withFakeNode $ \node -> do
        withClient (setFollowRedirects False (alone node)) $ \client -> do
          run client (Redis.set "key" "value")
          countHeard node ["CLIENT", "CAPA"] `shouldReturn` 0

    it "ends within the bounds of attempts when two send it to each other" $
      limited . settled . withFakeNode $ \a -> withFakeNode $ \b -> do
        setScript a (redirecting (fakeAddress b))
        setScript b (redirecting (fakeAddress a))
        withClient (setMaxAttempts 5 (alone a)) $ \client -> do
          failed <- tryRun client (Redis.incr "counter") >>= expectError
          errorDelivery failed `shouldBe` RefusedBeforeRun
          total <- (+) <$> countHeard a ["INCR"] <*> countHeard b ["INCR"]
          total `shouldBe` 5

    it "is one as the server under test is: its replica is left, or refuses" $
      limited . settled . withGroup groupDefaults {groupReplicaCount = 1} $ \group -> do
        primary <- primaryOf group
        replicas <- replicasOf group
        forM_ replicas $ \replica -> do
          knows <- (== Status "OK") <$> withServerConnection replica (`request` ["CLIENT", "CAPA", "redirect"])
          withClient (setFollowRedirects True (impatient (standaloneConfig "127.0.0.1" (fromIntegral (serverPort replica))))) $ \client ->
            if knows
              then do
                replicateM_ 10 (run client (Redis.incr "counter"))
                command primary ["GET", "counter"] `shouldReturn` Text "10"
                runTransaction client (queued (Redis.incr "counter")) `shouldReturn` 11
                withClient (setFollowRedirects True (impatient (standaloneConfig "127.0.0.1" (fromIntegral (serverPort replica))))) $ \another ->
                  -- A transaction, too, may be the client's first command.
                  runTransaction another (queued (Redis.incr "counter")) `shouldReturn` 12
              else do
                failed <- tryRun client (Redis.incr "counter") >>= expectError
                errorDelivery failed `shouldBe` RefusedBeforeRun

withMembers :: (Group -> IO a) -> IO a
withMembers = withGroup groupDefaults

groupOf :: [Server] -> Config
groupOf servers = case map endpointOf servers of
  first : rest -> impatient (groupConfig (first :| rest))
  [] -> impatient (groupConfig (TcpEndpoint "127.0.0.1" 1 :| []))

endpointOf :: Server -> Endpoint
endpointOf = addressEndpoint . clientAddress

-- | The steps by which an operator changes the roles without losing a write.
planned :: Group -> Server -> IO ()
planned group chosen = do
  old <- primaryOf group
  _ <- command old ["CLIENT", "PAUSE", "10000", "WRITE"]
  eventually 5 "the replica has everything" $ (==) <$> offset "master_repl_offset" old <*> offset "slave_repl_offset" chosen
  promote group chosen
  void (command old ["CLIENT", "UNPAUSE"])
  where
    offset name server = Map.lookup name . fieldsOf <$> command server ["INFO", "replication"]
    fieldsOf = \case
      Text text -> Map.fromList [(name, Char8.filter (/= '\r') (Char8.drop 1 value)) | (name, value) <- map (Char8.break (== ':')) (Char8.lines text)]
      _ -> Map.empty :: Map.Map ByteString ByteString

endpointsOf :: RoutingCause -> [Endpoint]
endpointsOf = \case
  NoReachableNode reasons -> map fst reasons
  _ -> []

alone :: FakeNode -> Config
alone node = case fakeEndpoint node of
  TcpEndpoint host port -> setFollowRedirects True (setProtocol OnlyResp2 (impatient (standaloneConfig host port)))
  UnixEndpoint path -> unixConfig path

-- | Confirms subscriptions to one channel, and answers the probes of their connections.
listened :: Script -> Script
listened otherwise' connection = \case
  ["SUBSCRIBE", name] -> pure (Just (Say (List [Text "subscribe", Text name, Number 1])))
  "PING" : _ -> pure (Just (Say (List [Text "pong", Text ""])))
  other -> otherwise' connection other

-- | Redirects commands with keys to another server, as a replica of Valkey does.
redirecting :: ByteString -> Script
redirecting address _ words' =
  pure $
    if take 1 words' `elem` [["INCR"], ["SET"], ["GET"]]
      then Just (Say (Failed ("REDIRECT " <> address)))
      else Nothing
