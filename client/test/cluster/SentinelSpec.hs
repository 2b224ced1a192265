-- | A primary and its replicas, found through real sentinels, while servers and sentinels fail and
-- change.
module SentinelSpec (spec) where

import Control.Concurrent.Async (withAsync)
import Control.Concurrent.STM
import Control.Exception (try)
import Control.Monad (filterM, forM_, forever, replicateM_, unless, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isRight)
import Data.List (isInfixOf)
import Data.Map.Strict qualified as Map
import Data.Maybe (listToMaybe)
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Cache
import Redis.Commands qualified as Redis
import Redis.Subscription
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Certificates
import Redis.TestKit.Command (CommandCalls (..), Reply (..), infoFields)
import Redis.TestKit.Group
import Redis.TestKit.Server
import Redis.TestKit.Wait
import Support
import Test.Hspec hiding (after, before)

spec :: Spec
spec = describe "a primary that sentinels watch" $ do
  it "is found, and its replicas with it" $
    limited . settled . withWatched id $ \group config ->
      withClient config $ \client -> do
        run client (Redis.set "key" "value")
        primary <- primaryOf group
        command primary ["GET", "key"] `shouldReturn` Text "value"
        eventually 10 "both replicas are known" $ (== 3) . length <$> clientNodes client

  describe "that is replaced" $ do
    it "by a planned fail-over is followed within a second of it, and loses nothing that a replica had" $
      limited . settled . withWatched id $ \group config ->
        withClient config $ \client -> do
          old <- primaryOf group
          audit <- auditedCopied client 8 $ do
            orderFailover group
            new <- primaryAfter group old
            took <- secondsUntil (written client new)
            took `shouldSatisfy` (< 1)
          verifyCopied client audit

    it "because it was killed is followed within a second of that, and nothing runs twice" $
      limited . settled . withWatched id $ \group config ->
        withClient config $ \client -> do
          old <- primaryOf group
          audit <- auditedCopied client 8 $ do
            kill9 old
            awaitPrimary group (Just (serverPort old))
            new <- primaryAfter group old
            took <- secondsUntil (written client new)
            took `shouldSatisfy` (< 1)
          verifyCopied client audit

    it "because it hangs is followed, and gives up what it had in flight as in doubt at once" $
      limited . settled . withWatched (setSilenceLimit Nothing) $ \group config ->
        withClient (setCommandTimeout (Just (seconds 20)) config) $ \client -> do
          old <- primaryOf group
          run client (Redis.set "key" "value")
          forM_ (groupServers group) $ \server -> eventually 5 "it is replicated" ((== Text "value") <$> command server ["GET", "key"])
          freeze old
          write <- submit client (Redis.incr "counter")
          readPending <- submit client (Redis.get "key")
          awaitPrimary group (Just (serverPort old))
          failed <- within 3 (tryAwaitReply write) >>= expectError
          errorDelivery failed `shouldBe` MaybeExecuted
          -- A read may run twice, so the client sends it again.
          within 3 (tryAwaitReply readPending) `shouldReturn` Right (Just "value")
          run client (Redis.incr "counter") `shouldReturn` 1
          -- The old primary goes on as a primary until it hears otherwise. The client must send it
          -- nothing.
          let sets = callsOf callsRun "set" old
          thaw old
          before <- sets
          withAsync (forever (void (tryRun client (Redis.set "key" "later")) >> pause 0.001)) $ \_ -> do
            awaitReplicas group
            after <- (,) <$> sets <*> callsOf callsRejected "set" old
            -- The writes that it then copies from the new primary count as run, so only rejected
            -- calls must be 0.
            snd after `shouldBe` 0
            fst after `shouldSatisfy` (>= before)

    it "comes back as a replica, and answers reads as one" $
      limited . settled . withWatched (setReadFrom PreferReplica) $ \group config ->
        withClient config $ \client -> do
          old <- primaryOf group
          run client (Redis.set "key" "value")
          kill9 old
          awaitPrimary group (Just (serverPort old))
          eventually 5 "a write finds the new primary" $ isRight <$> tryRun client (Redis.set "key" "later")
          restart old
          awaitReplicas group
          eventually 15 "it is known as a replica, and reads are answered there" $ do
            void (tryRun client (Redis.get "key"))
            (> 0) <$> callsOf callsRun "get" old
          callsOf callsRejected "set" old `shouldReturn` 0

    it "twice is followed twice" $
      within 60 . settled . withWatched id $ \group config ->
        withClient config $ \client ->
          forM_ [1, 2 :: Int] $ \_ -> do
            old <- primaryOf group
            orderFailover group
            new <- primaryAfter group old
            eventually 2 "a write finds the new primary" $ written client new
            awaitReplicas group

    it "while somebody waits for an element gives it to him at the new one, or says that it is in doubt" $
      limited . settled . withWatched id $ \group config ->
        withClient config $ \client -> do
          old <- primaryOf group
          popped <- submit client (Redis.blpop ("list" :| []) (Just (seconds 15)))
          eventually 5 "somebody waits" $ (== 1) . blockedOf <$> command old ["INFO", "clients"]
          orderFailover group
          new <- primaryAfter group old
          awaitReplicas group
          _ <- command new ["RPUSH", "list", "element"]
          tryAwaitReply popped >>= \case
            Right got -> got `shouldBe` Just ("list", "element")
            Left failed -> errorDelivery failed `shouldBe` MaybeExecuted

    it "is where subscriptions are from then on" $
      limited . settled . withWatched id $ \group config ->
        withClient config $ \client ->
          withSubscription client (channel "news") $ \subscription -> do
            old <- primaryOf group
            orderFailover group
            new <- primaryAfter group old
            -- Publishes at the new primary, so that no replication passes the message on to the old
            -- one.
            eventually 10 "the subscription has moved" $ do
              reply <- command new ["PUBSUB", "NUMSUB", "news"]
              pure (reply == List [Text "news", Number 1])
            _ <- command new ["PUBLISH", "news", "moved"]
            let untilMessage =
                  nextEvent subscription >>= \case
                    Message MessageOf {messagePayload} -> pure messagePayload
                    Gap _ -> untilMessage
            within 5 untilMessage `shouldReturn` "moved"

    it "is where cached reads are from then on, none of them of before" $
      limited . settled . withWatched (setCaching (Just cachingDefaults) . setReadFrom PreferReplica) $ \group config ->
        withClient config $ \client -> do
          run client (Redis.set "key" "before")
          runCached client (seconds 300) (Redis.get "key") `shouldReturn` Just "before"
          old <- primaryOf group
          awaitReplicas group
          orderFailover group
          new <- primaryAfter group old
          _ <- command new ["SET", "key", "after"]
          eventually 5 "the new value is read" $ (== Just "after") <$> runCached client (seconds 300) (Redis.get "key")
          replicateM_ 100 (runCached client (seconds 300) (Redis.get "key") `shouldReturn` Just "after")

  describe "whose sentinels" $ do
    it "are dead but for one is found, and followed" $
      limited . settled . withWatched id $ \group config -> do
        sentinels <- groupSentinels group
        withClient config $ \client -> do
          forM_ (take 1 sentinels) freeze
          run client (Redis.set "key" "value")
          old <- primaryOf group
          forM_ (drop 1 sentinels) $ \sentinel -> command sentinel ["PING"] `shouldReturn` Status "PONG"
          forM_ (take 1 (drop 1 sentinels)) $ \sentinel -> void (command sentinel ["SENTINEL", "FAILOVER", "mymaster"])
          new <- primaryAfter group old
          eventually 5 "a write finds the new primary" $ written client new
          forM_ (take 1 sentinels) thaw

    it "are replaced one by one are known all the same" $
      within 60 . settled . withWatched id $ \group config -> do
        sentinels <- groupSentinels group
        withClient config $ \client -> do
          run client (Redis.set "key" "value")
          -- The two added sentinels take over: those of the configuration are killed.
          addSentinel group
          addSentinel group
          newcomers <- drop (length sentinels) <$> groupSentinels group
          eventually 10 "the newcomers are listened to" $
            and <$> mapM (fmap (> 0) . subscribersAt) newcomers
          forM_ sentinels kill9
          old <- primaryOf group
          orderFailover group
          new <- primaryAfter group old
          eventually 5 "a write finds the new primary" $ written client new

    it "want another password say so at once" $
      limited . settled . withGroupOf (\options -> options {groupSentinel = serverDefaults {optionsPassword = Just "right"}}) $ \group -> do
        config <- watchedConfig group
        withClient (setSentinelCredentials (Just (password "wrong")) config) $ \client -> do
          failed <- within 2 (tryRun client (Redis.get "key")) >>= expectError
          show failed `shouldContain` "WRONGPASS"
          errorDelivery failed `shouldBe` NotSent
        withClient config $ \client -> do
          failed <- within 2 (tryRun client (Redis.get "key")) >>= expectError
          show failed `shouldContain` "NOAUTH"
        withClient (setSentinelCredentials (Just (password "right")) config) $ \client ->
          run client (Redis.get "key") `shouldReturn` Nothing

    it "do not know the name say so at once" $
      limited . settled . withWatched id $ \group config -> do
        _ <- primaryOf group
        named <- watchedConfigNamed "another" group
        withClient named $ \client -> do
          failed <- within 2 (tryRun client (Redis.get "key")) >>= expectError
          show failed `shouldContain` "No such master with that name"
        -- The group itself is well.
        withClient config $ \client -> run client (Redis.get "key") `shouldReturn` Nothing

    it "speak TLS and have a password of their own are asked so, and followed" $
      within 60 . settled . withCertificates $ \certificates -> do
        let secured =
              serverDefaults
                { optionsTls =
                    Just
                      TlsOptions
                        { tlsKeyPair = certificatesServer certificates,
                          tlsAuthority = certificatesAuthority certificates,
                          tlsClients = ClientCertificatesIgnored
                        }
                }
            server = secured {optionsPassword = Just "of the servers"}
            sentinel = secured {optionsPassword = Just "of the sentinels"}
        withGroupOf (\options -> options {groupServer = server, groupSentinel = sentinel}) $ \group -> do
          config <-
            setTls (Just tlsDefaults {tlsCaFile = Just (certificatesAuthority certificates)})
              . setCredentials (Just (password "of the servers"))
              . setSentinelCredentials (Just (password "of the sentinels"))
              . setConnectTimeout (seconds 3)
              <$> watchedConfig group
          withClient config $ \client -> do
            old <- primaryOf group
            run client (Redis.set "key" "value")
            orderFailover group
            new <- primaryAfter group old
            eventually 5 "a write finds the new primary" $ written client new
          -- The client must not use TLS with sentinels that have none.
          withClient (setSentinelTls Nothing config) $ \client -> do
            failed <- tryRun client (Redis.get "key") >>= expectError
            show failed `shouldSatisfy` (not . ("of the" `isInfixOf`))

  it "whose sentinels are all gone is used as long as it is there" $
    limited . settled . withWatched id $ \group config ->
      withClient config $ \client -> do
        run client (Redis.set "key" "value")
        groupSentinels group >>= mapM_ kill9
        forM_ [1 .. 200 :: Int] $ \_ -> run client (Redis.get "key") `shouldReturn` Just "value"

  it "leaves nothing behind when its client is closed in the middle of a fail-over" $
    limited . settled . withWatched id $ \group config -> do
      old <- primaryOf group
      withClient config $ \client -> do
        run client (Redis.set "key" "value")
        kill9 old
        void (submit client (Redis.incr "counter"))

-- | The outcome of a load in which some threads wait for both replicas after each increment.
data Copied = Copied
  { copiedAudit :: Audit,
    -- | Per counter: the increments that both replicas confirmed, those that were acknowledged, and
    -- those that may have run.
    copiedCounters :: [(ByteString, Int, Int, Int)]
  }

-- | Runs 'audited' while an action runs, and beside it two threads that confirm their increments by
-- WAIT. A fail-over to one of the replicas cannot lose an increment that both have confirmed.
auditedCopied :: Client -> Int -> IO () -> IO Copied
auditedCopied client threads action = do
  counts <- mapM (\key -> (,) key <$> newTVarIO (0, 0, 0)) ["copied:1", "copied:2"]
  over <- newTVarIO False
  busy <- newTVarIO (length counts)
  copiedAudit <-
    audited client "audited" threads $
      foldr (\one rest -> withAsync (confirming over one >> atomically (modifyTVar' busy (subtract 1))) (const rest)) (confirmed counts >> action >> stopping over busy) counts
  copiedCounters <- mapM (\(key, count) -> (\(safe, acknowledged, inDoubt) -> (key, safe, acknowledged, inDoubt)) <$> readTVarIO count) counts
  pure Copied {copiedAudit, copiedCounters}
  where
    confirmed counts = within 10 . atomically $ mapM (readTVar . snd) counts >>= \so -> check (and [safe > 0 | (safe, _, _) <- so])
    stopping over busy = do
      atomically (writeTVar over True)
      within 15 (atomically (readTVar busy >>= check . (== 0)))

    confirming over one@(key, count) = do
      ended <- readTVarIO over
      unless ended $ do
        -- Both run on one connection: WAIT covers only the writes of its own connection.
        outcome <- try $
          withDedicated client (AtKey key) $ \connection ->
            tryRunOn connection (Redis.incr key) >>= \case
              Left failed -> pure (Left failed)
              Right _ -> Right <$> tryRunOn connection (Redis.wait 2 (Just (milliseconds 300)))
        atomically . modifyTVar' count $ \(safe, acknowledged, inDoubt) -> case outcome of
          Left (failed :: Error) -> noted failed (safe, acknowledged, inDoubt)
          Right (Left failed) -> noted failed (safe, acknowledged, inDoubt)
          Right (Right copies) -> (if copies == Right 2 then safe + 1 else safe, acknowledged + 1, inDoubt)
        pause 0.005
        confirming over one
    noted failed (safe, acknowledged, inDoubt)
      | errorDelivery failed == MaybeExecuted = (safe, acknowledged, inDoubt + 1)
      | otherwise = (safe, acknowledged, inDoubt)

-- | Checks that no increment that both replicas had was lost, and that none ran twice.
verifyCopied :: HasCallStack => Client -> Copied -> IO ()
verifyCopied client Copied {copiedAudit, copiedCounters} = do
  verifyNoneTwice client copiedAudit
  forM_ copiedCounters $ \(key, safe, acknowledged, inDoubt) -> do
    held <- run client (Redis.get key)
    let value = maybe 0 fst (held >>= Char8.readInt)
    safe `shouldSatisfy` (> 0)
    unless (safe <= value && value <= acknowledged + inDoubt) $
      failure (show key <> " holds " <> show value <> ", confirmed " <> show safe <> ", acknowledged " <> show acknowledged <> ", in doubt " <> show inDoubt)

withWatched :: (Config -> Config) -> (Group -> Config -> IO a) -> IO a
withWatched change action = withGroupOf id $ \group -> do
  config <- watchedConfig group
  action group (change config)

withGroupOf :: (GroupOptions -> GroupOptions) -> (Group -> IO a) -> IO a
withGroupOf change = withGroup (change groupDefaults {groupSentinelCount = 3})

watchedConfig :: Group -> IO Config
watchedConfig group = watchedConfigNamed (groupName (groupOptions group)) group

watchedConfigNamed :: ByteString -> Group -> IO Config
watchedConfigNamed name group = do
  sentinels <- groupSentinels group
  case map (addressEndpoint . clientAddress) sentinels of
    first : rest -> pure (setRefreshThrottle (seconds 1) (impatient (sentinelConfig name (first :| rest))))
    [] -> failure "there is no sentinel"

-- | Waits until the sentinels name another primary than the given one, and returns it.
primaryAfter :: HasCallStack => Group -> Server -> IO Server
primaryAfter group old = eventuallyJust 10 "another is the primary" $ do
  running <- filterM serverIsRunning =<< groupSentinels group
  named <- mapM (namedPrimary group) (take 1 (reverse running))
  pure (listToMaybe [server | server <- groupServers group, Just port <- named, port == clientPortOf server, port /= clientPortOf old])
  where
    clientPortOf server = case clientAddress server of
      TcpAddress _ port -> port
      UnixAddress _ -> 0

-- | Writes through the client and says whether the write arrived at this server.
written :: Client -> Server -> IO Bool
written client server = do
  token <- Char8.pack . show <$> getMonotonicTime
  tryRun client (Redis.set "written" token) >>= \case
    Left _ -> pure False
    Right () -> (== Text token) <$> command server ["GET", "written"]

secondsUntil :: HasCallStack => IO Bool -> IO Double
secondsUntil condition = do
  began <- getMonotonicTime
  eventually 10 "it is so" condition
  subtract began <$> getMonotonicTime

password :: ByteString -> Credentials
password text = Credentials {credentialsUser = Nothing, credentialsPassword = toSecret text}

blockedOf :: Reply -> Int
blockedOf = \case
  Text info -> maybe 0 fst (Map.lookup "blocked_clients" (infoFields info) >>= Char8.readInt)
  _ -> 0

-- | The number of a sentinel's clients that are subscribers, without other sentinels.
subscribersAt :: Server -> IO Int
subscribersAt sentinel =
  command sentinel ["CLIENT", "LIST", "TYPE", "PUBSUB"] >>= \case
    Text list -> pure (length (Char8.lines list))
    _ -> pure 0
