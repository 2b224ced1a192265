-- | Subscriptions while something breaks: each message is received once and in order, or lies in a
-- gap.
module SubscriptionSpec (spec) where

import Control.Concurrent (yield)
import Control.Concurrent.Async (Async, async, asyncThreadId, cancel, concurrently_, forConcurrently, forConcurrently_, wait, withAsync)
import Control.Concurrent.STM
import Control.Exception (finally, try)
import Control.Monad (forM_, replicateM, replicateM_, unless, void)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Set qualified as Set
import GHC.Clock (getMonotonicTime)
import GHC.Conc (BlockReason (..), ThreadStatus (..), threadStatus)
import Harness
import Redis
import Redis.Commands qualified as Redis
import Redis.MessageAudit (Servers (..))
import Redis.Metrics (SubscriptionGauges (..), clientSnapshot, snapshotSubscriptions)
import Redis.PublishAudit
import Redis.Subscription
import Redis.TestKit.Command (Protocol (Resp2), Reply (..), encodeReply)
import Redis.TestKit.Listener (AndThen (GoOn), listenerPort, sayTo, withListener)
import Redis.TestKit.Proxy (Direction (..), Ending (..), Proxy)
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (Server, ServerOptions (..), serverDefaults, withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventually, openDescriptors, within)
import Test.Hspec

spec :: Spec
spec = do
  forM_ [OnlyResp2, PreferResp3] $ \protocol -> describe ("with " <> show protocol) $ do
    it "a connection that is cut, again and again, loses nothing outside of gaps and doubles nothing" $
      faulty protocol $ \_ proxy account ->
        forM_ [Close, Reset, Close, Reset, Reset] $ \ending -> do
          awaitMore account 200
          Proxy.cut proxy ending

    it "a connection that is cut in the midst of a message loses nothing outside of gaps" $
      faulty protocol $ \_ proxy account ->
        forM_ [1 .. 10 :: Int] $ \bytes -> do
          awaitMore account 50
          Proxy.cutAfter proxy ToClient (977 + bytes) Reset
          gaps <- gapsSoFar account
          eventually 10 "a gap is told" $ (> gaps) <$> gapsSoFar account
          Proxy.heal proxy

    it "a connection that falls silent is noticed, and what it swallowed lies in a gap" $
      faulty protocol $ \_ proxy account -> do
        awaitMore account 200
        Proxy.dropAfter proxy ToClient 1000
        -- The proxy drops all later messages, and the reply to the probe, too.
        anew proxy 2
        Proxy.heal proxy

    it "a server that stands still for longer than its silence is borne loses nothing outside of gaps" $
      faulty protocol $ \server proxy account -> do
        awaitMore account 200
        Server.freeze server
        anew proxy 2 `finally` Server.thaw server

    it "a server that is killed and started again loses nothing outside of gaps" $
      faulty protocol $ \server _ account -> do
        awaitMore account 200
        Server.kill9 server
        Server.restart server

    it "messages that come byte by byte are heard" $
      faulty protocol $ \_ proxy account -> do
        Proxy.slice proxy ToClient 1
        awaitMore account 100
        Proxy.heal proxy

  it "a topic that the server refuses is an error for each thread that asks for it" $
    behindProxy $ \server proxy ->
      withClient (through proxy) $ \client ->
        withSubscription client (channel "news") $ \subscription -> do
          _ <- Server.command server ["ACL", "SETUSER", "default", "resetchannels", "&news"]
          -- So the second thread asks while the first one still waits.
          Proxy.delay proxy ToClient 0.5
          results <- forConcurrently [1, 2 :: Int] $ \_ -> try (subscribe subscription (channel "denied"))
          forM_ results $ \case
            Left (ReplyError failed) -> serverErrorCode failed `shouldBe` "NOPERM"
            other -> expectationFailure (show other)

  it "a topic that one thread gives up while another waits for it is heard by the other" $
    behindProxy $ \server proxy ->
      withClient (through proxy) $ \client ->
        withSubscription client (channel "news") $ \subscription -> do
          Proxy.freeze proxy ToClient
          threads <- replicateM 2 $ do
            thread <- async (subscribe subscription (channel "shared"))
            thread <$ awaitWaiting thread
          mapM_ cancel (take 1 threads)
          Proxy.thaw proxy ToClient
          mapM_ wait (drop 1 threads)
          -- The first of these is confirmed after the topic, and the second is asked for after whatever
          -- followed from that.
          mapM_ (subscribe subscription . channel) ["later", "latest"]
          Server.command server ["PUBLISH", "shared", "x"] `shouldReturn` Number 1

  -- The window between the steps of one that gives up cannot be held open from outside. If there is
  -- one, about one race in a hundred finds it; so many do not miss it.
  it "a topic that one thread gives up while another asks for it is heard by the other" $
    withServer serverDefaults $ \server ->
      withClient (addressed server) $ \client ->
        withSubscription client (channel "news") $ \subscription ->
          forM_ [1 .. 250 :: Int] $ \number ->
            forConcurrently_ [1 .. 20 :: Int] $ \part -> do
              let name = "shared:" <> Char8.pack (show number <> ":" <> show part)
              first <- async (subscribe subscription (channel name))
              awaitWaiting first
              concurrently_ (cancel first) (subscribe subscription (channel name))
              run client (Redis.publish name "x") `shouldReturn` 1
              unsubscribe subscription (channel name)

  it "a message of 64 MB is heard, and those behind it" $
    withServer serverDefaults {optionsConfig = ["client-output-buffer-limit pubsub 0 0 0"]} $ \server ->
      withClient (setCommandTimeout (Just (seconds 20)) (addressed server)) $ \publisher ->
        withClient (setSilenceLimit (Just (seconds 20)) (addressed server)) $ \client ->
          withSubscription client (channel "news") $ \subscription -> do
            let large = ByteString.replicate (64 * 1024 * 1024) 120
            forM_ [large, "after"] $ run publisher . Redis.publish "news"
            events <- replicateM 2 (nextEvent subscription)
            [messagePayload message == payload | (Message message, payload) <- zip events [large, "after"]] `shouldBe` [True, True]

  it "a gap begins before what was lost, even when messages came until the end" $
    faultyWith subscriptionDefaults PreferResp3 $ \_ proxy account -> do
      -- With this delay, many messages are on their way when the connection ends.
      Proxy.delay proxy ToClient 0.3
      replicateM_ 3 $ do
        awaitMore account 500
        Proxy.cut proxy Reset
      Proxy.heal proxy

  describe "a queue that is full" $ do
    it "presses back: nothing is lost, no other is delayed, and it does not count as silence" $
      behindProxy $ \server proxy ->
        withClient (addressed server) $ \publisher ->
          withClient (through proxy) $ \client ->
            withSubscription client (channel "news") $ \other ->
              withSubscriptionOf subscriptionDefaults {subscriptionQueue = 10, subscriptionWhenFull = BackPressure} client (channel "news") $ \slow -> do
                forM_ [1 .. 5000] $ publishNumber publisher
                -- The other subscription gets all messages, though the slow one has taken none.
                numbers 5000 other `shouldReturn` map Right [1 .. 5000]
                -- For longer than the silence limit, which is half a second.
                over <- registerDelay 1000000
                atomically (readTVar over >>= check)
                numbers 5000 slow `shouldReturn` map Right [1 .. 5000]

    it "does not hold up the thread that takes from it, when that adds a topic, or adds one again" $
      withServer serverDefaults $ \server ->
        withClient (addressed server) $ \client ->
          withSubscriptionOf pressing client (channel "news" <> channel "other") $ \slow -> do
            forM_ [1 .. 500] $ publishNumber client
            awaitFull client
            numbers 1 slow `shouldReturn` [Right 1]
            within 3 (subscribe slow (channel "more"))
            forM_ [501 .. 1000] $ publishNumber client
            unsubscribe slow (channel "other")
            within 3 (subscribe slow (channel "other"))
            forM_ [("more", "1001"), ("other", "1002")] $ \(name, number) -> run client (Redis.publish name number) `shouldReturn` 1
            numbers 1001 slow `shouldReturn` map Right [2 .. 1002]

    it "of messages from one connection does not keep the subscription from beginning on the other" $ do
      go <- newTVarIO False
      let began what name = encodeReply Resp2 (List [Text what, Text name, Number 1])
          answer _ caller words' =
            GoOn <$ case words' of
              ["SUBSCRIBE", name] -> sayTo caller (began "subscribe" name <> mconcat (replicate 10 (encodeReply Resp2 (List [Text "message", Text name, Text "1"]))))
              ["PSUBSCRIBE", name] -> do
                atomically (readTVar go >>= check)
                sayTo caller (began "psubscribe" name)
              ["PING"] -> sayTo caller (encodeReply Resp2 (List [Text "pong", Text ""]))
              _ -> sayTo caller (encodeReply Resp2 (Status "OK"))
      withListener "127.0.0.1" answer $ \listener ->
        withClient (setProtocol OnlyResp2 (standaloneConfig "127.0.0.1" (fromIntegral (listenerPort listener)))) $ \client ->
          withAsync (withSubscriptionOf pressing client (channel "news" <> keyspace 0 "*") (numbers 10)) $ \taking -> do
            awaitFull client
            atomically (writeTVar go True)
            within 3 (wait taking) `shouldReturn` replicate 10 (Right 1)

    it "drops the oldest, and says so where they are missing" $
      withServer serverDefaults $ \server ->
        withClient (addressed server) $ \client ->
          withSubscriptionOf subscriptionDefaults {subscriptionQueue = 100} client (channel "news" <> channel "flag") $ \slow -> do
            forM_ [1 .. 1000] $ publishNumber client
            -- This message comes after all the others, on the same connection.
            withSubscription client (channel "flag") $ \flag -> do
              _ <- run client (Redis.publish "flag" "1001")
              void (nextEvent flag)
            heard <- numbers 100 slow
            heard `shouldBe` Left NotTaken : map Right [903 .. 1001]

    it "ends the subscription when that is wished, and what waits can be taken first" $
      withServer serverDefaults $ \server ->
        withClient (addressed server) $ \client ->
          withSubscriptionOf subscriptionDefaults {subscriptionQueue = 100, subscriptionWhenFull = EndWhenFull} client (channel "news") $ \slow -> do
            forM_ [1 .. 1000] $ publishNumber client
            eventually 5 "nobody listens any more" $ (== 0) <$> run client (Redis.publish "news" "x")
            numbers 100 slow `shouldReturn` map Right [1 .. 100]
            nextEvent slow `shouldThrow` (== SubscriberTooSlow 100)
            eventually 5 "it does not count any more" $ (== SubscriptionGauges 0 0 0) . snapshotSubscriptions <$> clientSnapshot client

    it "ends the subscription behind the questions that the same read has made necessary" $ do
      questions <- newTVarIO []
      go <- newTVarIO False
      let confirmed what name = encodeReply Resp2 (List [Text what, Text name, Number 1])
          message name = encodeReply Resp2 (List [Text "message", Text name, Text "1"])
          answer _ caller words' = do
            atomically (modifyTVar' questions (words' :))
            case words' of
              ["SUBSCRIBE", name] -> sayTo caller (confirmed "subscribe" name)
              -- In one piece: the end of one channel, and more messages of the other than its queue holds.
              ["UNSUBSCRIBE", "x"] -> do
                atomically (readTVar go >>= check)
                sayTo caller (confirmed "unsubscribe" "x" <> mconcat (replicate 3 (message "y")))
              ["UNSUBSCRIBE", name] -> sayTo caller (confirmed "unsubscribe" name)
              ["PING"] -> sayTo caller (encodeReply Resp2 (List [Text "pong", Text ""]))
              _ -> sayTo caller (encodeReply Resp2 (Status "OK"))
            pure GoOn
      withListener "127.0.0.1" answer $ \listener ->
        withClient (setProtocol OnlyResp2 (standaloneConfig "127.0.0.1" (fromIntegral (listenerPort listener)))) $ \client ->
          withSubscriptionOf subscriptionDefaults {subscriptionQueue = 2, subscriptionWhenFull = EndWhenFull} client (channel "y") $ \slow ->
            withSubscription client (channel "x") $ \other -> do
              unsubscribe other (channel "x")
              eventually 5 "it is asked" $ elem ["UNSUBSCRIBE", "x"] <$> readTVarIO questions
              again <- async (subscribe other (channel "x"))
              awaitWaiting again
              atomically (writeTVar go True)
              wait again
              eventually 5 "the other is ended" $ elem ["UNSUBSCRIBE", "y"] <$> readTVarIO questions
              take 2 . filter ((`elem` [["SUBSCRIBE"], ["UNSUBSCRIBE"]]) . take 1) <$> readTVarIO questions
                `shouldReturn` [["UNSUBSCRIBE", "y"], ["SUBSCRIBE", "x"]]
              replicateM_ 2 (nextEvent slow)
              nextEvent slow `shouldThrow` (== SubscriberTooSlow 2)

    it "of one that presses back for too long makes the server hang up: a gap" $
      withServer serverDefaults {optionsConfig = ["client-output-buffer-limit pubsub 1mb 0 0"]} $ \server ->
        withClient (addressed server) $ \client ->
          withSubscriptionOf pressing client (channel "news") $ \slow -> do
            let large = ByteString.replicate 100000 120
                publishing number = do
                  taken <- run client (Redis.publish "news" (Char8.pack (show (number :: Int)) <> " " <> large))
                  if taken == 0 then pure number else publishing (number + 1)
            unheard <- publishing 1
            let taking previous = do
                  event <- nextEvent slow
                  case event of
                    Gap gap -> pure (previous, gapReason gap)
                    Message message -> do
                      let number = maybe 0 fst (Char8.readInt (messagePayload message))
                      number `shouldBe` previous + 1
                      taking number
            (lastHeard, reason) <- taking 0
            reason `shouldBe` NotHeard
            lastHeard `shouldSatisfy` (< unheard)

  it "is in the client's snapshot, with its connection and what waits" $
    withServer serverDefaults $ \server ->
      withClient (addressed server) $ \client -> do
        let gauges = snapshotSubscriptions <$> clientSnapshot client
        gauges `shouldReturn` SubscriptionGauges 0 0 0
        withSubscription client (channel "news") $ \subscription ->
          withSubscriptionOf subscriptionDefaults {subscriptionWhenFull = BackPressure} client (channel "news") $ \_ -> do
            gauges `shouldReturn` SubscriptionGauges 2 2 0
            forM_ [1 .. 3] $ publishNumber client
            eventually 5 "all have come to both" $ (== SubscriptionGauges 2 2 6) <$> gauges
            numbers 2 subscription `shouldReturn` map Right [1, 2]
            gauges `shouldReturn` SubscriptionGauges 2 2 4
        eventually 5 "nothing is left" $ (== SubscriptionGauges 0 0 0) <$> gauges

  it "ten thousand subscriptions are back within two seconds of a cut" $
    withServer serverDefaults $ \server ->
      withClient (addressed server) $ \publisher ->
        withClient (addressed server) $ \client -> do
          let names = ["channel:" <> Char8.pack (show n) | n <- [1 .. 10000 :: Int]]
          withSubscription client (foldMap channel names) $ \subscription -> do
            let awaiting missing = unless (Set.null missing) $ do
                  event <- nextEvent subscription
                  awaiting $ case event of
                    Gap gap -> missing `Set.difference` Set.fromList (topicList (gapTopics gap))
                    Message _ -> missing
            -- The best of five, because other programs use this machine, too.
            times <- replicateM 5 $ do
              began <- getMonotonicTime
              run publisher (Redis.clientKillWith (pure (Redis.ClientWith (Redis.HasType Redis.PubsubClient)))) `shouldReturn` 1
              awaiting (Set.fromList (map Channel names))
              ended <- getMonotonicTime
              pure (ended - began)
            minimum times `shouldSatisfy` (< 2)
            length <$> run publisher Redis.pubsubChannels `shouldReturn` 10000

  it "to a server that cannot be had is an error, in time, and leaves nothing behind" . leavingNothing $
    behindProxy $ \_ proxy -> do
      Proxy.refuse proxy
      withClient (setCommandTimeout (Just (seconds 0.5)) . setConnectTimeout (seconds 0.5) $ through proxy) $ \client ->
        withSubscription client (channel "news") (\_ -> pure ()) `shouldThrow` \case
          ConnectionError _ -> True
          _ -> False

  it "that is given up while it connects leaves nothing behind" . leavingNothing $
    neverAnswering $ \config ->
      withClient config $ \client -> do
        idle <- openDescriptors
        listening <- async (withSubscription client (channel "news") (\_ -> pure ()))
        eventually 5 "it connects" $ (> idle) <$> openDescriptors
        cancel listening

  it "with a wrong password says so at once, to the hook, too" $
    withServer serverDefaults {optionsPassword = Just "right"} $ \server -> do
      (journal, config) <- journalled (setCredentials (Just Credentials {credentialsUser = Nothing, credentialsPassword = toSecret "wrong"}) (addressed server))
      withClient config $ \client -> do
        withSubscription client (channel "news") (\_ -> pure ()) `shouldThrow` \case
          ConnectionError ConnectionFailure {connectionCause = HandshakeRefused _} -> True
          _ -> False
        awaitJournal journal "the failure is told" $ \case
          ConnectAttemptFailed _ (HandshakeRefused _) _ -> True
          _ -> False

  it "come back when a password is replaced at the server before the action knows of it" $
    withServer serverDefaults $ \server -> do
      let setTo text = void (Server.command server ["ACL", "SETUSER", "app", "on", "resetpass", ">" <> text, "~*", "&*", "+@all"])
          credentials text = issuedCredentials Credentials {credentialsUser = Just "app", credentialsPassword = toSecret text}
      setTo "first"
      newest <- newTVarIO "first"
      asked <- newTVarIO (0 :: Int)
      let issue = atomically (modifyTVar' asked (+ 1)) *> (credentials <$> readTVarIO newest)
      withClient (setCredentialsFrom issue (addressed server)) $ \client ->
        withSubscription client (channel "news") $ \subscription -> do
          setTo "second"
          earlier <- readTVarIO asked
          void (Server.command server ["CLIENT", "KILL", "USER", "app"])
          -- The server refuses the old password, and the client asks the action again, more than
          -- once.
          eventually 5 "the action is asked again" ((> earlier + 1) <$> readTVarIO asked)
          atomically (writeTVar newest "second")
          nextEvent subscription >>= (`shouldSatisfy` \case Gap _ -> True; _ -> False)
          void (Server.command server ["PUBLISH", "news", "hello"])
          nextEvent subscription >>= (`shouldSatisfy` \case Message message -> messagePayload message == "hello"; _ -> False)

  it "in a cluster that is none says so at once" $
    withServer serverDefaults $ \server ->
      withClient (quick (clusterConfig (pure (serverEndpoint server)))) $ \client ->
        withSubscription client (channel "news") (\_ -> pure ()) `shouldThrow` \case
          RoutingError RoutingFailure {routingCause = NoReachableNode [_]} -> True
          _ -> False

  it "that are not confirmed, and given up, keep nobody waiting" $
    behindProxy $ \_ proxy ->
      withClient (through proxy) $ \client ->
        withSubscription client (channel "news") $ \subscription -> do
          Proxy.freeze proxy ToServer
          adding <- async (subscribe subscription (channel "more"))
          eventually 5 "it is asked for" $ (== channel "news" <> channel "more") <$> atomically (subscriptionTopics subscription)
          unsubscribe subscription (channel "more")
          wait adding
          Proxy.thaw proxy ToServer

  it "leave no connection and no descriptor behind" . leavingNothing $
    behindProxy $ \_ proxy ->
      withClient (through proxy) $ \client -> do
        forM_ [1 .. 20 :: Int] $ \_ ->
          withSubscription client (channel "a" <> matching "b*" <> keyspace 0 "*") $ \_ ->
            withSubscriptionOf subscriptionDefaults {subscriptionWhenFull = BackPressure} client (channel "a") $ \_ -> pure ()
        eventually 5 "none of its connections is open" $ (== 0) . Proxy.trafficOpen <$> atomically (Proxy.proxyTraffic proxy)

-- | Publishes while the action makes trouble, and checks that each message was received or lies in
-- a gap.
faulty :: ProtocolVersion -> (Server -> Proxy -> Account -> IO ()) -> IO ()
faulty = faultyWith subscriptionDefaults

faultyWith :: SubscriptionOptions -> ProtocolVersion -> (Server -> Proxy -> Account -> IO ()) -> IO ()
faultyWith options protocol trouble =
  leavingNothing . behindProxy $ \server proxy ->
    withClient (addressed server) $ \publisher ->
      withClient (setProtocol protocol (through proxy)) $ \client ->
        withSubscriptionOf options client (channel "news") $ \subscription -> do
          let broadcast =
                Broadcast
                  { broadcastPublisher = publisher,
                    broadcastPublish = Redis.publish "news",
                    broadcastTakenBy = pure Nothing,
                    broadcastSubscription = subscription,
                    broadcastIs = const True
                  }
          ((), account) <- underBroadcast broadcast $ \account -> do
            trouble server proxy account
            awaitMore account 200
          wrong <- audit OneServer account
          wrong `shouldBe` []

-- | Options of a subscription that presses back early.
pressing :: SubscriptionOptions
pressing = subscriptionDefaults {subscriptionQueue = 2, subscriptionWhenFull = BackPressure}

-- | Waits until the queue of a client's subscription is full, which has the options of 'pressing'.
awaitFull :: Client -> IO ()
awaitFull client = eventually 5 "the queue is full" $ (>= 2) . gaugeEventsWaiting . snapshotSubscriptions <$> clientSnapshot client

-- | Waits until a thread waits for an answer, or has it.
awaitWaiting :: Async a -> IO ()
awaitWaiting thread =
  threadStatus (asyncThreadId thread) >>= \case
    ThreadBlocked BlockedOnSTM -> pure ()
    ThreadFinished -> pure ()
    _ -> yield *> awaitWaiting thread

serverEndpoint :: Server -> Endpoint
serverEndpoint server = TcpEndpoint (Char8.pack (Server.serverHost server)) (fromIntegral (Server.serverPort server))

-- | Waits until the proxy has accepted this many connections in all.
anew :: Proxy -> Int -> IO ()
anew proxy count = void (Proxy.awaitTraffic proxy 10 ((>= count) . Proxy.trafficAccepted))

publishNumber :: Client -> Int -> IO ()
publishNumber client number = void (run client (Redis.publish "news" (Char8.pack (show number))))

-- | The next events: the numbers of the messages, and the reasons of the gaps.
numbers :: Int -> Subscription -> IO [Either GapReason Int]
numbers count subscription =
  replicateM count (nextEvent subscription) >>= \events ->
    pure $
      flip map events $ \case
        Message message -> Right (maybe 0 fst (Char8.readInt (messagePayload message)))
        Gap gap -> Left (gapReason gap)
