-- | Redirects, and the other errors by which a cluster says "not here" or "not now", from nodes
-- that send them on demand.
module RedirectSpec (spec) where

import Control.Concurrent.Async (async, replicateConcurrently, replicateConcurrently_, wait)
import Control.Concurrent.STM
import Control.Monad (forM_, replicateM, replicateM_, void, when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List (isInfixOf, isPrefixOf, nub, partition)
import FakeNode
import Redis
import Redis.Commands qualified as Redis
import Redis.Metrics
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Wait (eventually, pause)
import Support
import System.Timeout (timeout)
import Test.Hspec hiding (after, before)

spec :: Spec
spec = do
  describe "MOVED" movedSpec
  describe "ASK" askSpec
  describe "a command with a time of its own" timeLimitSpec
  describe "a storm of redirects" stormSpec
  describe "an error that says not now" notNowSpec
  describe "NOAUTH in mid-life" noAuthSpec

key :: ByteString
key = "key"

moved :: ByteString -> Reply
moved destination = Failed (Char8.unwords ["MOVED", Char8.pack (show (slotNumberOf key)), destination])

asked :: ByteString -> Reply
asked destination = Failed (Char8.unwords ["ASK", Char8.pack (show (slotNumberOf key)), destination])

at :: FakeNode -> ByteString
at = fakeAddress

-- The reply to a GET that this node answers.
servedBy :: FakeNode -> Maybe ByteString
servedBy node = Just (Char8.pack (show (fakePort node)))

-- Sends this reply to every GET and INCR.
always :: Reply -> Script
always reply _ = \case
  name : _ | name `elem` ["GET", "INCR"] -> pure (Just (Say reply))
  _ -> pure Nothing

-- Sends these replies to the first GETs, INCRs and SETs, and then leaves all to the healthy
-- answers.
atFirst :: [Reply] -> IO Script
atFirst replies = do
  left <- newTVarIO replies
  pure $ \_ -> \case
    name : _
      | name `elem` ["GET", "INCR", "SET"] ->
        atomically $
          readTVar left >>= \case
            reply : rest -> Just (Say reply) <$ writeTVar left rest
            [] -> pure Nothing
    _ -> pure Nothing

-- How often these nodes have been asked for the map.
asksOf :: [FakeNode] -> IO Int
asksOf nodes = sum <$> mapM (`countHeard` ["CLUSTER", "SHARDS"]) nodes

-- The same, of a client whose first command has succeeded, once it has no more reason to ask. That
-- command found no map, and its driver may hear of that only after the first answer. Then another
-- question follows, after the throttle.
asksAtRest :: [FakeNode] -> IO Int
asksAtRest nodes = pause 0.4 *> asksOf nodes

movedSpec :: Spec
movedSpec = do
  it "is followed to the named node, known or not, and learnt at once" $
    limited . settled . withTwoNodes $ \a b -> do
      setScript a (always (moved (at b)))
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        run client (Redis.get key) `shouldReturn` servedBy b
        -- The driver learns the new owner in the background.
        eventually 5 "commands go to the new owner directly" $ do
          before <- countHeard a ["GET"]
          result <- run client (Redis.get key)
          after <- countHeard a ["GET"]
          pure (result == servedBy b && before == after)

  it "is not undone by a node that has not heard of it yet" $
    limited . withTwoNodes $ \a b -> withClient (clusterOf [fakeEndpoint a]) $ \client -> do
      run client (Redis.get key) `shouldReturn` servedBy a
      asks <- asksAtRest [a]
      setScript a (always (moved (at b)))
      run client (Redis.get key) `shouldReturn` servedBy b
      eventually 5 "the old owner was asked since, and gave the old map" $
        (> asks) <$> asksOf [a]
      setScript a quiet
      run client (Redis.get key) `shouldReturn` servedBy b

  it "with an empty host means the host that answered" $
    limited . withTwoNodes $ \a b -> do
      setScript a (always (moved (":" <> Char8.pack (show (fakePort b)))))
      withClient (clusterOf [fakeEndpoint a]) $ \client ->
        run client (Redis.get key) `shouldReturn` servedBy b

  it "to an IPv6 address is split at the last colon, with brackets or without" $
    limited . withFakeNode $ \a -> withFakeNodeAt "::1" $ \b ->
      forM_ ["::1:", "[::1]:"] $ \host -> do
        setScript a (always (moved (host <> Char8.pack (show (fakePort b)))))
        withClient (clusterOf [fakeEndpoint a]) $ \client ->
          run client (Redis.get key) `shouldReturn` servedBy b

  it "to a host name is resolved" $
    limited . withTwoNodes $ \a b -> do
      setScript a (always (moved ("localhost:" <> Char8.pack (show (fakePort b)))))
      withClient (clusterOf [fakeEndpoint a]) $ \client ->
        run client (Redis.get key) `shouldReturn` servedBy b

  it "to an unknown host is not dialled: the map is asked for, and the command goes by it" $
    limited . withFakeNode $ \a -> do
      script <- atFirst [moved "?:6379"]
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        run client (Redis.get key) `shouldReturn` servedBy a
        asks <- asksAtRest [a]
        setScript a script
        run client (Redis.get key) `shouldReturn` servedBy a
        eventually 5 "the map was asked for" $ (> asks) <$> asksOf [a]

  it "to the node that answered replaces the connection, once for all who complain" $
    limited . settled . withFakeNode $ \a -> do
      first <- newTVarIO Nothing
      setScript a $ \connection -> \case
        "GET" : _ -> do
          bad <- atomically $ do
            seen <- readTVar first
            case seen of
              Nothing -> connection <$ writeTVar first (Just connection)
              Just earlier -> pure earlier
          pure (if bad == connection then Just (Say (moved (at a))) else Nothing)
        _ -> pure Nothing
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        results <- replicateConcurrently 50 (tryRun client (Redis.get key))
        nub results `shouldBe` [Right (servedBy a)]
        connections <- nub . map fst . filter ((== ["GET", key]) . snd) <$> heardOn a
        length connections `shouldBe` 2

  it "to the node that answered leaves a connection alone that is newer than the command that complains" $
    limited . settled . withFakeNode $ \a -> do
      first <- newTVarIO Nothing
      mayComplain <- newTVarIO False
      setScript a $ \connection -> \case
        ["GET", name] -> do
          bad <- atomically $ readTVar first >>= maybe (connection <$ writeTVar first (Just connection)) pure
          when (bad == connection && name == "late") (atomically (readTVar mayComplain >>= check))
          pure (if bad == connection then Just (Say (moved (at a))) else Nothing)
        _ -> pure Nothing
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        early <- submit client (Redis.get key)
        late <- submit client (Redis.get "late")
        awaitReply early `shouldReturn` servedBy a
        atomically (writeTVar mayComplain True)
        awaitReply late `shouldReturn` servedBy a
        run client (Redis.get key) `shouldReturn` servedBy a
        connections <- nub . map fst . filter ((== ["GET", key]) . snd) <$> heardOn a
        length connections `shouldBe` 2

  it "that is malformed is handed over as it stands, and nothing is dialled" $
    limited . withTwoNodes $ \a b -> do
      withClient (clusterOf [fakeEndpoint a]) $ \client ->
        forM_
          [ "16384 " <> at b,
            "-1 " <> at b,
            "x " <> at b,
            "1 127.0.0.1:0",
            "1 127.0.0.1:65536",
            "1 127.0.0.1",
            "1",
            "",
            "1 " <> Char8.replicate 300 'h' <> ":6379"
          ]
          $ \text -> do
            setScript a (always (Failed ("MOVED " <> text)))
            problem <- tryRun client (Redis.get key) >>= expectError
            problem `shouldBe` ReplyError (serverErrorFromText ("MOVED " <> text)) {serverErrorCommand = "GET " <> key}
      connectionsEver b `shouldReturn` 0

  it "is followed by a write that must not run twice, too" $
    limited . withTwoNodes $ \a b -> do
      setScript a (always (moved (at b)))
      withClient (clusterOf [fakeEndpoint a]) $ \client ->
        run client (Redis.incr key) `shouldReturn` 1
      countHeard b ["INCR"] `shouldReturn` 1

  it "does not keep the redirected command waiting for a refresh" $
    limited . withTwoNodes $ \a b ->
      -- So long a throttle allows no refresh during the test.
      withClient (setRefreshThrottle (seconds 60) (clusterOf [fakeEndpoint a])) $ \client -> do
        run client (Redis.get key) `shouldReturn` servedBy a
        setScript a (always (moved (at b)))
        run client (Redis.get key) `shouldReturn` servedBy b
        countHeard a ["CLUSTER", "SHARDS"] `shouldReturn` 1
        countHeard b ["CLUSTER", "SHARDS"] `shouldReturn` 0

  it "met on a dedicated connection is told to the rest of the client" $
    limited . withTwoNodes $ \a b -> do
      setScript a (always (moved (at b)))
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        problem <- withDedicated client (AtKey key) (`tryRunOn` Redis.get key) >>= expectError
        errorDelivery problem `shouldBe` RefusedBeforeRun
        eventually 5 "the next lease is of the owner" $
          (== Right (servedBy b)) <$> withDedicated client (AtKey key) (`tryRunOn` Redis.get key)

  it "of a command that waited leaves it the time that it has left, though that is more than others have" $
    limited . withTwoNodes $ \a b -> do
      setScript a $ \_ -> \case
        "BLPOP" : _ -> Just (Say (moved (at b))) <$ pause 1.5
        _ -> pure Nothing
      setScript b $ \_ -> \case
        "BLPOP" : _ -> pure (Just (Say Nil))
        _ -> pure Nothing
      withClient (setCommandTimeout (Just (seconds 1)) (clusterOf [fakeEndpoint a])) $ \client ->
        run client (Redis.blpop (pure key) (Just (seconds 3))) `shouldReturn` Nothing
      waits <- filter (isPrefixOf ["BLPOP"]) <$> heard b
      waits `shouldSatisfy` \case
        -- The clock behind this time may be late by a tick of the system, 10 ms at most.
        [["BLPOP", asked', left]] -> asked' == key && "1." `ByteString.isPrefixOf` left && left <= "1.510"
        _ -> False

  it "from a replica goes to the named primary, and has the map asked for" $
    limited . withTwoNodes $ \a b -> do
      setView a (replicated a b)
      setView b (replicated a b)
      withClient (preferringReplicas [fakeEndpoint a]) $ \client -> do
        run client (Redis.get key) `shouldReturn` servedBy b
        -- Before the redirect: the map may be asked for before the redirected command's reply has come,
        -- and later reads go to the primary.
        asks <- asksAtRest [a, b]
        setScript b (always (moved (at a)))
        replicateM_ 2 (run client (Redis.get key) `shouldReturn` servedBy a)
        eventually 5 "the map was asked for" $ (> asks) <$> asksOf [a, b]

timeLimitSpec :: Spec
timeLimitSpec = do
  it "has it on every way that it is sent" . limited . withTwoNodes $ \a b -> do
    answering <- newTVarIO False
    setScript a $ \_ words' -> pure (if take 1 words' == ["GET"] then Just (Say (moved (at b))) else Nothing)
    setScript b $ \_ words' -> if take 1 words' == ["GET"] then Nothing <$ atomically (readTVar answering >>= check) else pure Nothing
    withClient (setCommandTimeout (Just (seconds 0.3)) (clusterOf [fakeEndpoint a])) $ \client -> do
      patient <- submit client (timeLimit (seconds 20) (Redis.get key))
      other <- submit client (Redis.get key)
      tryAwaitReply other >>= (`shouldSatisfy` either (const True) (const False))
      atomically (writeTVar answering True)
      awaitReply patient `shouldReturn` servedBy b
  it "ends when it is over, however often it is sent again" . limited . withFakeNode $ \a -> do
    setScript a $ \_ words' -> pure (if take 1 words' == ["GET"] then Just (Say (Failed "TRYAGAIN later")) else Nothing)
    withClient (setMaxAttempts 1000000 (setCommandTimeout Nothing (clusterOf [fakeEndpoint a]))) $ \client ->
      tryRun client (timeLimit (seconds 0.3) (Redis.get key)) >>= (`shouldSatisfy` either (const True) (const False))
  it "is shared with the primary, when a replica that it is sent to again hangs" . limited . withTwoNodes $ \a b -> do
    mapM_ (`setView` replicated a b) [a, b]
    notYet <- newTVarIO (1 :: Int)
    withClient (setCommandTimeout (Just (seconds 2)) (preferringReplicas [fakeEndpoint a])) $ \client -> do
      run client (Redis.get key) `shouldReturn` servedBy b
      setScript b $ \_ words' ->
        if take 1 words' == ["GET"]
          then do
            first <- atomically (stateTVar notYet (\left -> (left > 0, left - 1)))
            pure (Just (if first then Say (Failed "TRYAGAIN later") else Silence))
          else pure Nothing
      run client (Redis.get key) `shouldReturn` servedBy a
      countHeard b ["GET"] `shouldReturn` 3

askSpec :: Spec
askSpec = do
  it "is followed with ASKING right before the command, among other traffic, and changes no map" $
    limited . settled . withTwoNodes $ \a b -> do
      let other = keyIn "other" (/= slotNumberOf key)
          half = slotNumberOf other
      -- The target serves another slot, so that its connection is busy.
      let view = shardsView [shard [(s, t) | (s, t) <- [(0, half - 1), (half + 1, 16383)], s <= t] a, shard [(half, half)] b]
      mapM_ (`setView` view) [a, b]
      setScript a (always (asked (at b)))
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        replicateConcurrently_ 20 $ do
          run client (Redis.get key) `shouldReturn` servedBy b
          run client (Redis.get other) `shouldReturn` servedBy b
        countHeard a ["GET", key] `shouldReturn` 20
        told <- heardOn b
        forM_ (nub (map fst told)) $ \connection -> do
          let commands = map snd (filter ((== connection) . fst) told)
          forM_ (zip ([] : commands) commands) $ \(before, told') ->
            if told' == ["GET", key] then before `shouldBe` ["ASKING"] else before `shouldNotBe` ["ASKING"]

  -- Only one command may be in flight. If ASKING and the command were submitted as two, the other
  -- thread's command, which waits for room behind ASKING, would come between them.
  it "is followed with nothing between ASKING and the command, though both must wait for room and others wait behind them" $
    limited . settled . withTwoNodes $ \a b -> do
      let other = keyIn "other" (/= slotNumberOf key)
          half = slotNumberOf other
          view = shardsView [shard [(s, t) | (s, t) <- [(0, half - 1), (half + 1, 16383)], s <= t] a, shard [(half, half)] b]
      mapM_ (`setView` view) [a, b]
      answering <- newTVarIO False
      setScript a (always (asked (at b)))
      setScript b $ \_ words' -> Nothing <$ when (words' == ["GET", other]) (atomically (readTVar answering >>= check))
      withClient (setRefreshThrottle (seconds 60) . setLimits limitsDefaults {limitInFlight = 1} $ clusterOf [fakeEndpoint a]) $ \client -> do
        let waitingAtTarget = sum . map gaugeWaiting . concatMap gaugeConnections . filter ((== fakeEndpoint b) . gaugeEndpoint) . snapshotNodes <$> clientSnapshot client
        first <- submit client (Redis.get other)
        eventually 5 "the target has the first" $ (== 1) <$> countHeard b ["GET"]
        sentOn <- submit client (Redis.get key)
        eventually 5 "the redirected command waits for room" $ (== 1) <$> waitingAtTarget
        behind <- async (run client (Redis.get other))
        eventually 5 "another waits behind it" $ (== 2) <$> waitingAtTarget
        atomically (writeTVar answering True)
        (,,) <$> awaitReply first <*> awaitReply sentOn <*> wait behind `shouldReturn` (servedBy b, servedBy b, servedBy b)
        asks <- filter ((`elem` ["ASKING", "GET"]) . mconcat . take 1) <$> heard b
        asks `shouldBe` [["GET", other], ["ASKING"], ["GET", key], ["GET", other]]

  it "is followed by a write that must not run twice, too" $
    limited . withTwoNodes $ \a b -> do
      setScript a (always (asked (at b)))
      withClient (clusterOf [fakeEndpoint a]) $ \client ->
        run client (Redis.incr key) `shouldReturn` 1
      countHeard b ["INCR"] `shouldReturn` 1

  it "whose target says TRYAGAIN starts again at the source" $
    limited . withTwoNodes $ \a b -> do
      atFirst [asked (at b)] >>= setScript a
      setScript b (always (Failed "TRYAGAIN Multiple keys request during rehashing of slot"))
      withClient (clusterOf [fakeEndpoint a]) $ \client ->
        run client (Redis.get key) `shouldReturn` servedBy a
      countHeard a ["GET"] `shouldReturn` 2
      countHeard b ["GET"] `shouldReturn` 1

  it "does not take the reply to ASKING for that of the command, even if it is an error" $
    limited . withTwoNodes $ \a b -> do
      setScript a (always (asked (at b)))
      setScript b $ \_ -> \case
        ["ASKING"] -> pure (Just (Say (Failed "ERR This instance has cluster support disabled")))
        _ -> pure Nothing
      withClient (clusterOf [fakeEndpoint a]) $ \client ->
        forM_ [1 .. 5 :: Int] $ \_ -> run client (Redis.get key) `shouldReturn` servedBy b

stormSpec :: Spec
stormSpec = do
  it "ends within the bounds of attempts and of time, and the error tells the way" $
    limited . settled . withTwoNodes $ \a b -> do
      setScript a (always (moved (at b)))
      setScript b (always (moved (at a)))
      withClient (setMaxAttempts 6 (clusterOf [fakeEndpoint a])) $ \client -> do
        problem <- tryRun client (Redis.incr key) >>= expectError
        errorDelivery problem `shouldBe` RefusedBeforeRun
        case clusterReason problem of
          Just (AttemptsExhausted trail) -> do
            map fst trail `shouldBe` take 6 (cycle (map fst (take 2 trail)))
            nub (map fst trail) `shouldMatchList` [fakeEndpoint a, fakeEndpoint b]
            [serverErrorCode said | (_, ReplyError said) <- trail] `shouldBe` replicate 6 "MOVED"
          _ -> expectationFailure (show problem)
        sent <- (+) <$> countHeard a ["INCR"] <*> countHeard b ["INCR"]
        sent `shouldBe` 6

  it "asks for the map once at a time and not more often than the throttle allows" $
    limited . withTwoNodes $ \a b -> do
      setScript a (always (moved (at b)))
      setScript b (always (moved (at a)))
      -- During the storm there is at most one refresh besides the first; each asks each of the two
      -- nodes once.
      withClient (setRefreshThrottle (seconds 20) (setMaxAttempts 8 (clusterOf [fakeEndpoint a]))) $ \client ->
        replicateConcurrently_ 20 . replicateConcurrently_ 5 $ tryRun client (Redis.get key)
      asksOf [a, b] >>= (`shouldSatisfy` (<= 3))

notNowSpec :: Spec
notNowSpec = do
  forM_
    [ "CLUSTERDOWN Hash slot not served",
      "CLUSTERDOWN The cluster is down",
      "CLUSTERDOWN The cluster is down and only accepts read commands",
      "TRYAGAIN Multiple keys request during rehashing of slot",
      "LOADING Redis is loading the dataset in memory",
      "READONLY You can't write against a read only replica.",
      "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
    ]
    $ \text ->
      it (Char8.unpack (Char8.takeWhile (/= '.') text) <> ": waits and tries again, a write too") $
        limited . withFakeNode $ \a ->
          withClient (clusterOf [fakeEndpoint a]) $ \client -> do
            run client (Redis.get key) `shouldReturn` servedBy a
            asks <- asksAtRest [a]
            atFirst (replicate 3 (Failed text)) >>= setScript a
            run client (Redis.incr key) `shouldReturn` 1
            countHeard a ["INCR"] `shouldReturn` 4
            if "TRYAGAIN" `ByteString.isPrefixOf` text
              then pure ()
              else eventually 15 "the map was asked for" $ (> asks) <$> asksOf [a]

  it "gives up at the deadline, and says what it was told" $
    limited . withFakeNode $ \a -> do
      setScript a (always (Failed "CLUSTERDOWN The cluster is down"))
      withClient (setMaxAttempts 1000 (setCommandTimeout (Just (seconds 0.5)) (clusterOf [fakeEndpoint a]))) $ \client -> do
        problems <- replicateM 4 (tryRun client (Redis.incr key) >>= expectError)
        -- On a busy machine an attempt may be on its way at the deadline, and then nobody knows.
        let (doubtful, told) = partition ((== MaybeExecuted) . errorDelivery) problems
        filter (\case TimeoutError _ -> False; _ -> True) doubtful `shouldBe` []
        filter (not . isInfixOf "CLUSTERDOWN") (map show told) `shouldBe` []
        told `shouldSatisfy` (not . null)

  it "READONLY from a believed primary leads to the new one" $
    limited . withTwoNodes $ \a b -> withClient (clusterOf [fakeEndpoint a]) $ \client -> do
      run client (Redis.get key) `shouldReturn` servedBy a
      setScript a (always (Failed "READONLY You can't write against a read only replica."))
      mapM_ (`setView` shardsView [shard allSlots b]) [a, b]
      run client (Redis.incr key) `shouldReturn` 1
      countHeard b ["INCR"] `shouldReturn` 1

  it "UNBLOCKED from a primary that has become a replica leads a waiting command to the new one" $
    limited . withTwoNodes $ \a b -> withClient (clusterOf [fakeEndpoint a]) $ \client -> do
      run client (Redis.get key) `shouldReturn` servedBy a
      let sentAway = Failed "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
          pops reply _ = \case
            "BLPOP" : _ -> pure (Just (Say reply))
            _ -> pure Nothing
      setScript a (pops sentAway)
      setScript b (pops (List [Text key, Text "element"]))
      mapM_ (`setView` shardsView [shard allSlots b]) [a, b]
      run client (Redis.blpop (pure key) (Just (seconds 2))) `shouldReturn` Just (key, "element")

  forM_
    [ "LOADING Redis is loading the dataset in memory",
      "MASTERDOWN Link with MASTER is down",
      "CLUSTERDOWN The cluster is down",
      "BUSY Redis is busy running a script.",
      "NOSCRIPT No matching script"
    ]
    $ \text ->
      it (Char8.unpack (Char8.takeWhile (/= ' ') text) <> " from a replica: the primary answers") $
        limited . withTwoNodes $ \a b -> do
          mapM_ (`setView` replicated a b) [a, b]
          setScript b (always (Failed text))
          withClient (preferringReplicas [fakeEndpoint a]) $ \client -> do
            run client (Redis.get key) `shouldReturn` servedBy a
            countHeard b ["GET"] `shouldReturn` 1
            countHeard b ["READONLY"] `shouldReturn` 1
            countHeard a ["READONLY"] `shouldReturn` 0

  forM_
    [ "OOM command not allowed when used memory > 'maxmemory'.",
      "BUSY Redis is busy running a script.",
      "MISCONF Errors writing to the AOF file",
      "NOREPLICAS Not enough good replicas to write."
    ]
    $ \text ->
      it (Char8.unpack (Char8.takeWhile (/= ' ') text) <> " is the caller's, at once, as refused before it ran") $
        limited . withFakeNode $ \a -> do
          setScript a (always (Failed text))
          withClient (clusterOf [fakeEndpoint a]) $ \client -> do
            problem <- tryRun client (Redis.incr key) >>= expectError
            problem `shouldBe` ReplyError (serverErrorFromText text) {serverErrorCommand = "INCR " <> key}
            errorDelivery problem `shouldBe` RefusedBeforeRun
          countHeard a ["INCR"] `shouldReturn` 1

  it "CROSSSLOT from a server names the command" $
    limited . withFakeNode $ \a -> do
      setScript a (always (Failed "CROSSSLOT Keys in request don't hash to the same slot"))
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        problem <- tryRun client (Redis.incr key) >>= expectError
        problem `shouldBe` RefusedError (CrossSlot "INCR")

  it "a connection lost after a write leaves it in doubt, and it is not sent again" $
    limited . settled . withFakeNode $ \a -> do
      setScript a $ \_ -> \case
        "INCR" : _ -> pure (Just HangUp)
        _ -> pure Nothing
      withClient (clusterOf [fakeEndpoint a]) $ \client -> do
        run client (Redis.get key) `shouldReturn` servedBy a
        asks <- asksAtRest [a]
        problem <- tryRun client (Redis.incr key) >>= expectError
        errorDelivery problem `shouldBe` MaybeExecuted
        countHeard a ["INCR"] `shouldReturn` 1
        eventually 15 "the map was asked for" $ (> asks) <$> asksOf [a]

  it "a connection lost after a read has it sent again" $
    limited . withFakeNode $ \a -> do
      hangingUp 3 "GET" quiet >>= setScript a
      withClient (clusterOf [fakeEndpoint a]) $ \client ->
        run client (Redis.get key) `shouldReturn` servedBy a

  it "attempts together take no longer than the command may" $
    limited . withFakeNode $ \a -> do
      busy <- atFirst (replicate 3 (Failed "TRYAGAIN Multiple keys request during rehashing of slot"))
      setScript a $ \connection words' -> case words' of
        "GET" : _ -> maybe (Just Silence) Just <$> busy connection words'
        _ -> pure Nothing
      let slowly = setBackoff backoffDefaults {backoffFirst = seconds 0.5, backoffCap = seconds 0.5} . setCommandTimeout (Just (seconds 2))
      withClient (slowly (clusterOf [fakeEndpoint a])) $ \client -> do
        -- The last attempt begins after three delays, 0.75 s to 1.5 s in all. If it had a whole
        -- timeout of its own, it would end after 2.75 s at the earliest.
        answer <- timeout 2650000 (tryRun client (Redis.get key))
        fmap void answer `shouldSatisfy` \case
          Just (Left (TimeoutError (TimeoutFailure _ MaybeExecuted _ _))) -> True
          _ -> False
        countHeard a ["GET"] `shouldReturn` 4
        -- Otherwise closing the client would wait for the answer.
        hangUpAll a

noAuthSpec :: Spec
noAuthSpec = do
  it "makes one new handshake for all commands that met it" $
    limited . settled . withFakeNode $ \a -> do
      good <- newTVarIO (0 :: Int)
      setScript a $ \connection -> \case
        "AUTH" : _ -> Nothing <$ atomically (modifyTVar' good (max connection))
        "GET" : _ -> do
          newest <- readTVarIO good
          pure (if connection < newest then Just (Say noAuth) else Nothing)
        _ -> pure Nothing
      withClient (authenticated [fakeEndpoint a]) $ \client -> do
        run client (Redis.get key) `shouldReturn` servedBy a
        -- The server forgets all authentications.
        atomically (modifyTVar' good (+ 1))
        before <- countHeard a ["AUTH"]
        results <- replicateConcurrently 50 (tryRun client (Redis.get key))
        nub results `shouldBe` [Right (servedBy a)]
        after <- countHeard a ["AUTH"]
        after - before `shouldBe` 1

  it "fails after one new handshake if that does not help" $
    limited . withFakeNode $ \a -> do
      setScript a (always noAuth)
      withClient (authenticated [fakeEndpoint a]) $ \client -> do
        problem <- tryRun client (Redis.incr key) >>= expectError
        problem `shouldBe` ReplyError (serverErrorFromText "NOAUTH Authentication required.") {serverErrorCommand = "INCR " <> key}
        countHeard a ["INCR"] `shouldReturn` 2

  it "is cured on a replica's connection, too" $
    limited . withTwoNodes $ \a b -> do
      mapM_ (`setView` replicated a b) [a, b]
      first <- newTVarIO Nothing
      setScript b $ \connection -> \case
        "GET" : _ -> do
          bad <- atomically $ readTVar first >>= maybe (connection <$ writeTVar first (Just connection)) pure
          pure (if bad == connection then Just (Say noAuth) else Nothing)
        _ -> pure Nothing
      withClient (setReadFrom PreferReplica (authenticated [fakeEndpoint a])) $ \client ->
        run client (Redis.get key) `shouldReturn` servedBy b
  it "is cured for commands that wait, whose connections lay idle meanwhile" $
    limited . settled . withFakeNode $ \a -> do
      forget <- forgetful a
      withClient (authenticated [fakeEndpoint a]) $ \client -> do
        let popped = run client (Redis.blpop (pure key) (Just (seconds 1)))
        -- Opens two connections.
        withDedicated client (AtKey key) (\own -> runOn own (Redis.get key) *> popped) `shouldReturn` Just (key, "element")
        forget
        popped `shouldReturn` Just (key, "element")

  it "on a lent connection is told, and that one is not lent again" $
    limited . settled . withFakeNode $ \a -> do
      forget <- forgetful a
      withClient (authenticated [fakeEndpoint a]) $ \client -> do
        let asked' = withDedicated client (AtKey key) (`tryRunOn` Redis.get key)
        asked' `shouldReturn` Right (servedBy a)
        forget
        asked' `shouldReturn` Left (ReplyError (serverErrorFromText "NOAUTH Authentication required.") {serverErrorCommand = "GET " <> key})
        asked' `shouldReturn` Right (servedBy a)

  it "on a lent connection closes those that lie idle, too, which would fail as well" $
    limited . settled . withFakeNode $ \a -> do
      forget <- forgetful a
      withClient (authenticated [fakeEndpoint a]) $ \client -> do
        let idle = sum . map (gaugeIdle . gaugeDedicated) . snapshotNodes <$> clientSnapshot client
        -- Opens three connections.
        lending client (\_ -> lending client (\_ -> lending client (`runOn` Redis.get key))) `shouldReturn` servedBy a
        eventually 5 "they lie idle" $ (== 3) <$> idle
        forget
        failed <- lending client (`tryRunOn` Redis.get key) >>= expectError
        errorDelivery failed `shouldBe` RefusedBeforeRun
        eventually 5 "none lies idle" $ (== 0) <$> idle
        lending client (`runOn` Redis.get key) `shouldReturn` servedBy a
  where
    lending :: Client -> (forall s. Dedicated s -> IO a) -> IO a
    lending client = withDedicated client (AtKey key)
    -- A node that can be made to forget which connections have authenticated.
    forgetful node = do
      forgotten <- newTVarIO 0
      setScript node $ \connection -> \case
        name : _ | name `elem` ["GET", "BLPOP"] -> do
          known <- (connection >) <$> readTVarIO forgotten
          pure $ case name of
            _ | not known -> Just (Say noAuth)
            "BLPOP" -> Just (Say (List [Text key, Text "element"]))
            _ -> Nothing
        _ -> pure Nothing
      pure (connectionsEver node >>= atomically . writeTVar forgotten)
    noAuth = Failed "NOAUTH Authentication required."
    authenticated seeds =
      setCredentials (Just Credentials {credentialsUser = Nothing, credentialsPassword = toSecret "open"}) (clusterOf seeds)
