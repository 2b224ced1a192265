module Redis.Patterns.WorkerSpec (spec) where

import Control.Concurrent (myThreadId, throwTo)
import Control.Concurrent.Async (AsyncCancelled (AsyncCancelled), async, asyncThreadId, cancel, wait, waitCatch, withAsync)
import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception (AsyncException (UserInterrupt), throwIO, toException, uninterruptibleMask_)
import Control.Monad (forM, forM_, forever, replicateM_, void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (isPrint)
import Data.Either (fromRight)
import Data.IORef
import Data.List (sort)
import Data.List.NonEmpty qualified as NonEmpty
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Cluster.Slot (keySlot)
import Redis.Commands qualified as Redis
import Redis.Duration (inMicroseconds)
import Redis.Patterns.Work
import Redis.Patterns.Worker
import Redis.TestKit.Command (callsRun)
import Redis.TestKit.Server (Server, callsOf, freeze, serverDefaults, serverPort, thaw, withServer)
import Redis.TestKit.Wait
import Redis.Tracing (CommandBegun (begunBatch, begunOperation))
import Redis.Transaction
import Test.Hspec
import Test.QuickCheck hiding (within)

spec :: Spec
spec = do
  describe "a rest" $ do
    it "doubles each time, up to the longest" . property $
      forAll (choose (1, 1000000)) $ \first -> forAll (choose (0, 1000000000)) $ \longest -> forAll (choose (1, 100)) $ \n ->
        let backoff = backoffDefaults {backoffFirst = milliseconds first, backoffCap = milliseconds longest}
            at = inMicroseconds . retryDelay backoff
         in toInteger (at n) == min (1000 * toInteger longest) (1000 * toInteger first * 2 ^ (n - 1)) && at n <= at (n + 1)
    it "is what the header says" $
      map (retryDelay backoffDefaults {backoffFirst = seconds 1, backoffCap = seconds 5}) [1 .. 4] `shouldBe` map seconds [1, 2, 4, 5]
  describe "an event in words" $ do
    it "is one line, whatever an exception, a stream or a reason says" . property $ \(words' :: String) ->
      let bytes = Char8.pack words'
          entry = Redis.StreamId 1 0
          events =
            [ HandlerFailed (Entry bytes entry [(bytes, bytes)] 2) (toException (userError (words' <> "\r\n" <> words'))) (Just (seconds 4)),
              DeadLettered bytes entry bytes,
              TriedAgain bytes entry,
              TookOver bytes entry bytes,
              WorkerTrouble (ReplyError (serverErrorFromText bytes)),
              HandlerInterrupted bytes entry
            ]
       in conjoin [counterexample text (length (lines text) === 1 .&&. length text <= 1000 .&&. all isPrint text) | text <- map renderWorkerEvent events]
    it "names the entry, what happened and why, in UTF-8" $ do
      renderWorkerEvent (HandlerFailed (Entry "m\195\188ll" (Redis.StreamId 5 1) [] 2) (toException (userError "no such\naddress")) (Just (seconds 4)))
        `shouldBe` "m\252ll 5-1: try 2 failed, the next one follows after 4.0 s: user error (no such address)"
      renderWorkerEvent (HandlerFailed (Entry "mail" (Redis.StreamId 5 1) [] 3) (toException (userError "no such address")) Nothing)
        `shouldBe` "mail 5-1: try 3 failed, and was the last: user error (no such address)"
      renderWorkerEvent (WorkerTrouble ClientClosed) `shouldBe` "the client is closed"
  it "has its dead letters in the slot of its stream, whatever braces are in the stream's name" . property $
    forAll (resize 6 (listOf (elements "ab{}"))) $ \name ->
      let stream = Char8.pack name
       in keySlot (deadLettersOf (worker stream "group") stream) === keySlot stream
  around (withServer serverDefaults) . describe "with a server" $ do
    it "handles each entry and acknowledges it, and makes the group" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [0 .. 49]
      seen <- newIORef []
      stopping client countingWorker (noting seen . numberOf) $
        eventually 20 "all handled" ((== 50) . length <$> readIORef seen)
      readIORef seen >>= (`shouldBe` [0 .. 49]) . sort
      pendingCount client "numbers" "counters" `shouldReturn` 0
      run client (Redis.xlen "numbers") `shouldReturn` 50
    it "deletes what was handled if it is told to" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [0 .. 9]
      stopping client countingWorker {workerDelete = True} (const (pure ())) $
        eventuallyReturns 20 0 (run client (Redis.xlen "numbers"))
    it "deletes by the one command that its server has for it, or else by two" $ \server -> connectedTo server $ \client -> do
      knows <- knowsXackdel client
      addNumbered client "numbers" [0 .. 9]
      stopping client countingWorker {workerDelete = True} (const (pure ())) $
        eventuallyReturns 20 0 (run client (Redis.xlen "numbers"))
      calls <- forM ["xack", "xdel", "xackdel"] (\name -> callsOf callsRun name server)
      -- The worker asks by one more.
      calls `shouldBe` if knows then [0, 0, 11] else [10, 10, 0]
    it "deletes by two commands for a user who may not use the one" $ \server -> connectedTo server $ \client -> do
      _ <- run client (raw ["ACL", "SETUSER", "worker", "on", ">secret", "~*", "+@all", "-@stream", "+xadd", "+xgroup", "+xreadgroup", "+xpending", "+xclaim", "+xack", "+xdel", "+xinfo", "+xlen"])
      addNumbered client "numbers" [0 .. 9]
      let credentials = Credentials {credentialsUser = Just "worker", credentialsPassword = toSecret "secret"}
      withClient (setCredentials (Just credentials) (standaloneConfig "127.0.0.1" (fromIntegral (serverPort server)))) $ \limited ->
        stopping limited countingWorker {workerDelete = True} (const (pure ())) $
          eventuallyReturns 20 0 (run client (Redis.xlen "numbers"))
    it "deletes what became a dead letter, and keeps for other groups what they have not acknowledged, if its server can" $ \server -> connectedTo server $ \client -> do
      knows <- knowsXackdel client
      let deleting = countingWorker {workerDelete = True, workerMaxAttempts = 1}
          handle entry = when (numberOf entry == 3) (fail "no such address")
      addNumbered client "numbers" [0 .. 4]
      when knows $ run client (Redis.xgroupCreate "numbers" "others" (Redis.GroupAfter (Redis.StreamId 0 0)))
      stopping client deleting handle $ eventuallyReturns 20 (0, 1) ((,) <$> pendingCount client "numbers" "counters" <*> run client (Redis.xlen "{numbers}:dead"))
      run client (Redis.xlen "numbers") `shouldReturn` (if knows then 5 else 0)
      stopping client deleting {workerGroup = "others"} handle $ eventuallyReturns 20 0 (run client (Redis.xlen "numbers"))
    it "takes no more than it has hands, and acknowledges nothing before its handler returns" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [0 .. 19]
      gate <- newTVarIO (0 :: Int)
      busy <- newTVarIO (0 :: Int)
      let handle _ = do
            atomically (modifyTVar' busy (+ 1))
            atomically (readTVar gate >>= check . (> 0) >> modifyTVar' gate (subtract 1) >> modifyTVar' busy (subtract 1))
      stopping client countingWorker {workerConcurrency = 3, workerClaimAfter = seconds 30} handle $ do
        eventuallyReturns 20 3 (readTVarIO busy)
        inHand client `shouldReturn` 3
        atomically (writeTVar gate 2)
        eventuallyReturns 20 (0, 3) ((,) <$> readTVarIO gate <*> readTVarIO busy)
        eventuallyReturns 20 3 (inHand client)
        pendingCount client "numbers" "counters" `shouldReturn` 18
        atomically (writeTVar gate 100)
        eventuallyReturns 20 0 (pendingCount client "numbers" "counters")
    it "has an entry rest after its handler threw, longer each time, and tries again" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [1]
      times <- newIORef []
      events <- newIORef []
      let settings = countingWorker {workerBackoff = backoffDefaults {backoffFirst = milliseconds 200, backoffCap = milliseconds 400}, workerPollInterval = milliseconds 50, workerReport = noting events}
          handle entry = do
            now <- getMonotonicTime
            noting times (now, entryDeliveries entry)
            when (entryDeliveries entry < 4) (fail "not yet")
      stopping client settings handle $ do
        eventually 20 "four tries" ((== 4) . length <$> readIORef times)
        eventuallyReturns 20 0 (pendingCount client "numbers" "counters")
      tries <- reverse <$> readIORef times
      map snd tries `shouldBe` [1, 2, 3, 4]
      -- Nobody took the entry from anybody.
      told <- readIORef events
      (length [() | TriedAgain "numbers" _ <- told], length [() | TookOver {} <- told]) `shouldBe` (3, 0)
      zipWith (-) (drop 1 (map fst tries)) (map fst tries) `shouldSatisfy` (and . zipWith (<=) [0.198, 0.398, 0.398])
    it "does not report an entry that is to rest, however late the server hears of the rest" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [1]
      frozen <- newEmptyMVar
      seen <- newIORef []
      let settings = countingWorker {workerBackoff = backoffDefaults {backoffFirst = seconds 60, backoffCap = seconds 60}}
          handle entry = do
            noting seen (entryDeliveries entry)
            when (entryDeliveries entry == 1) (freeze server *> putMVar frozen ())
            fail "not now"
          rests one = Redis.pendingEntryConsumer one == "(resting)" && Redis.pendingEntryIdle one > workerClaimAfter settings
      stopping client settings handle $ do
        takeMVar frozen
        -- The worker reports every 200 ms what it has in hand.
        pause 1.5
        thaw server
        eventually 20 "at rest for a while" (all rests <$> run client (Redis.xpendingRange "numbers" "counters" 10))
      readIORef seen `shouldReturn` [1]
    it "keeps an entry whose handler threw until it has told so, however long that takes" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [1]
      seen <- newIORef []
      let report = \case
            HandlerFailed {} -> pause 1.5
            _ -> pure ()
          settings = countingWorker {workerBackoff = backoffDefaults {backoffFirst = seconds 60, backoffCap = seconds 60}, workerClaimAfter = milliseconds 500, workerReport = report}
          handle entry = noting seen (entryDeliveries entry) >> fail "not now"
      stopping client settings handle . stopping client settings handle $
        eventuallyReturns 20 ["(resting)"] (map Redis.pendingEntryConsumer <$> pendingEntries client)
      readIORef seen `shouldReturn` [1]
    it "does not take over from itself what it is about to have rest" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [1]
      looks <- newTVarIO (0 :: Int)
      failing <- newTVarIO Nothing
      let slowly begun = do
            handlers <- readTVarIO failing
            this <- myThreadId
            sofar <- readTVarIO looks
            if "XPENDING" `Char8.isSuffixOf` begunOperation begun
              then atomically (writeTVar looks (sofar + 1))
              else when (handlers == Just this) (atomically (readTVar looks >>= check . (> sofar + 10)))
            pure (const (pure ()))
          config = setHooks noHooks {hookCommand = Just slowly} (standaloneConfig "127.0.0.1" (fromIntegral (serverPort server)))
          settings = countingWorker {workerBackoff = backoffDefaults {backoffFirst = seconds 60, backoffCap = seconds 60}, workerClaimAfter = milliseconds 50, workerPollInterval = milliseconds 20}
          handle _ = myThreadId >>= atomically . writeTVar failing . Just >> fail "not now"
      withClient config $ \slow -> stopping slow settings handle $ do
        eventuallyReturns 20 ["(resting)"] (map Redis.pendingEntryConsumer <$> pendingEntries client)
        map Redis.pendingEntryDeliveries <$> pendingEntries client `shouldReturn` [1]
    it "hands back nothing whose handler threw, though it stops before the server has heard of the rest" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [1]
      failing <- newTVarIO Nothing
      held <- newEmptyMVar
      let unsent _ = do
            handler <- readTVarIO failing
            this <- myThreadId
            when (handler == Just this) (putMVar held () >> forgetful)
            pure (const (pure ()))
          config = setHooks noHooks {hookCommand = Just unsent} (standaloneConfig "127.0.0.1" (fromIntegral (serverPort server)))
          settings = countingWorker {workerBackoff = backoffDefaults {backoffFirst = seconds 60, backoffCap = seconds 60}, workerGrace = milliseconds 100}
          handle _ = myThreadId >>= atomically . writeTVar failing . Just >> fail "not now"
      withClient config $ \stuck -> stopping stuck settings handle (within 20 (takeMVar held))
      -- The delivery counts.
      map Redis.pendingEntryDeliveries <$> pendingEntries client `shouldReturn` [1]
    it "makes a dead letter though the exception's text throws itself" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [7]
      stopping client countingWorker {workerMaxAttempts = 1} (\_ -> throwIO (userError (error "no text"))) $
        eventuallyReturns 20 1 (run client (Redis.xlen "{numbers}:dead"))
      pendingCount client "numbers" "counters" `shouldReturn` 0
    it "makes a dead letter of what was tried often enough, with the reason" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [7]
      tries <- newIORef []
      told <- newIORef []
      let report = \case
            HandlerFailed _ _ next -> noting told (void next)
            _ -> pure ()
      stopping client countingWorker {workerMaxAttempts = 3, workerReport = report} (\entry -> noting tries (entryDeliveries entry) >> fail "no such address") $
        eventuallyReturns 20 1 (run client (Redis.xlen "{numbers}:dead"))
      readIORef told `shouldReturn` [Nothing, Just (), Just ()]
      readIORef tries `shouldReturn` [3, 2, 1]
      letters <- run client (Redis.xrange "{numbers}:dead" Redis.LowestId Redis.HighestId)
      [entry | Redis.StreamEntry _ entry <- letters]
        `shouldSatisfy` \case
          [fields] ->
            map (`lookup` fields) ["number", "dead:reason", "dead:deliveries", "dead:stream", "dead:group"]
              == map Just ["7", "user error (no such address)", "3", "numbers", "counters"]
          _ -> False
      pendingCount client "numbers" "counters" `shouldReturn` 0
    it "leaves an entry pending when its dead letter cannot be made" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [7]
      run client (Redis.set "{numbers}:dead" "no stream")
      refused <- newEmptyTMVarIO
      let report = \case
            WorkerTrouble _ -> void (atomically (tryPutTMVar refused ()))
            _ -> pure ()
      stopping client countingWorker {workerMaxAttempts = 1, workerClaimAfter = seconds 60, workerReport = report} (\_ -> fail "no such address") $
        within 20 (atomically (takeTMVar refused))
      pendingCount client "numbers" "counters" `shouldReturn` 1
    it "makes a dead letter of an entry of any number of fields, its own or one that others left" $ \server -> connectedTo server $ \client -> do
      -- A script cannot give so many words to one command.
      let fieldsOf count = ("number", Char8.pack (show count)) :| [(Char8.pack (show n), "") | n <- [2 .. count]]
          counts = [3992, 3993, 20000 :: Int]
          settings = countingWorker {workerMaxAttempts = 1, workerConcurrency = 1, workerClaimAfter = milliseconds 50}
      forM_ counts $ \count -> run client (Redis.xadd "numbers" (fieldsOf count))
      run client (Redis.xgroupCreate "numbers" "counters" (Redis.GroupAfter (Redis.StreamId 0 0)))
      _ <- run client (Redis.xreadgroup (Redis.Consumer "counters" "gone") ("numbers" :| []))
      forM_ counts $ \count -> run client (Redis.xadd "numbers" (fieldsOf count))
      addNumbered client "numbers" [0]
      seen <- newIORef []
      stopping client settings (\entry -> if numberOf entry > 0 then fail "no such address" else noting seen (numberOf entry)) $ do
        eventuallyReturns 60 [0] (readIORef seen)
        eventuallyReturns 60 0 (inHand client)
      letters <- run client (Redis.xrange "{numbers}:dead" Redis.LowestId Redis.HighestId)
      let isWhole letter = take (length letter - 6) letter `elem` map (NonEmpty.toList . fieldsOf) counts
      sort (map (length . Redis.streamEntryFields) letters) `shouldBe` sort (concatMap (replicate 2 . (+ 6)) counts)
      letters `shouldSatisfy` all (isWhole . Redis.streamEntryFields)
    it "goes on when an entry cannot become a dead letter, its own or one that others left" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [-1]
      run client (Redis.xgroupCreate "numbers" "counters" (Redis.GroupAfter (Redis.StreamId 0 0)))
      _ <- run client (Redis.xreadgroup (Redis.Consumer "counters" "gone") ("numbers" :| []))
      eventually 20 "left for a while" (all ((>= milliseconds 50) . Redis.pendingEntryIdle) <$> run client (Redis.xpendingRange "numbers" "counters" 1))
      addNumbered client "numbers" [-2, 0]
      -- No entry can be added after this one.
      _ <- run client (raw ["XADD", "{numbers}:dead", "18446744073709551615-18446744073709551615", "the", "last"])
      seen <- newIORef []
      refused <- newTVarIO (0 :: Int)
      let report = \case
            WorkerTrouble (ReplyError _) -> atomically (modifyTVar' refused (+ 1))
            _ -> pure ()
          handler entry = if numberOf entry < 0 then fail "no such address" else noting seen (numberOf entry)
      stopping client countingWorker {workerMaxAttempts = 1, workerConcurrency = 1, workerClaimAfter = milliseconds 50, workerReport = report} handler $ do
        eventuallyReturns 20 [0] (readIORef seen)
        eventually 20 "both reported" ((>= 2) <$> readTVarIO refused)
      pendingCount client "numbers" "counters" `shouldReturn` 2
      run client (Redis.xlen "{numbers}:dead") `shouldReturn` 1
    it "tells of each dead letter once, though several workers find what should become one" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [0 .. 49]
      run client (Redis.xgroupCreate "numbers" "counters" (Redis.GroupAfter (Redis.StreamId 0 0)))
      _ <- run client (Redis.xreadgroup (Redis.Consumer "counters" "gone") ("numbers" :| []))
      told <- newIORef []
      let report = \case
            DeadLettered _ entry _ -> noting told entry
            _ -> pure ()
          working = stopping client countingWorker {workerMaxAttempts = 1, workerClaimAfter = milliseconds 100, workerReport = report} (const (pure ()))
      working . working . working $ eventuallyReturns 20 0 (pendingCount client "numbers" "counters")
      entries <- run client (Redis.xrange "numbers" Redis.LowestId Redis.HighestId)
      sort <$> readIORef told `shouldReturn` map Redis.streamEntryId entries
    it "takes over what a consumer left that is gone, and removes it" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [0 .. 5]
      run client (Redis.xgroupCreate "numbers" "counters" (Redis.GroupAfter (Redis.StreamId 0 0)))
      _ <- run client (Redis.xreadgroup (Redis.Consumer "counters" "gone") ("numbers" :| []))
      seen <- newIORef []
      let settings = countingWorker {workerClaimAfter = milliseconds 100}
      stopping client settings (noting seen . entryDeliveries) $ do
        eventually 20 "all handled" ((== 6) . length <$> readIORef seen)
        eventuallyReturns 20 False (elem "gone" <$> consumers client)
      readIORef seen `shouldReturn` replicate 6 2
    it "does not take over what its worker reports after the look" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [1]
      run client (Redis.xgroupCreate "numbers" "counters" (Redis.GroupAfter (Redis.StreamId 0 0)))
      let other = Redis.Consumer "counters" "other"
      _ <- run client (Redis.xreadgroup other ("numbers" :| []))
      ids <- map Redis.pendingEntryId <$> run client (Redis.xpendingRange "numbers" "counters" 10)
      claims <- newTVarIO (0 :: Int)
      handled <- newTVarIO (0 :: Int)
      let reports begun = do
            when (begunOperation begun == "XCLAIM") $ do
              forM_ ids (run client . Redis.xclaimJustid "numbers" other mempty . pure)
              atomically (modifyTVar' claims (+ 1))
            pure (const (pure ()))
          config = setHooks noHooks {hookCommand = Just reports} (standaloneConfig "127.0.0.1" (fromIntegral (serverPort server)))
          settings = countingWorker {workerClaimAfter = milliseconds 50, workerPollInterval = milliseconds 20}
      withClient config $ \worker' ->
        stopping worker' settings (const (atomically (modifyTVar' handled (+ 1)))) $
          eventually 20 "it tried" ((>= 3) <$> readTVarIO claims)
      readTVarIO handled `shouldReturn` 0
    it "removes consumers that have nothing, and none that has something" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [0 .. 5]
      run client (Redis.xgroupCreate "numbers" "counters" (Redis.GroupAfter (Redis.StreamId 0 0)))
      _ <- run client (Redis.xreadgroup (Redis.Consumer "counters" "gone") ("numbers" :| []))
      _ <- run client (Redis.xgroupCreateconsumer "numbers" (Redis.Consumer "counters" "empty"))
      gate <- newEmptyMVar
      -- The worker's one hand is busy, so it takes over one entry and no more.
      stopping client countingWorker {workerConcurrency = 1, workerClaimAfter = milliseconds 30} (const (readMVar gate)) $ do
        eventuallyReturns 20 False (elem "empty" <$> consumers client)
        inHand client `shouldReturn` 6
        consumers client >>= (`shouldSatisfy` elem "gone")
        putMVar gate ()
        eventuallyReturns 20 0 (inHand client)
    it "tries again whatever is due as soon as it has hands, and takes new entries in between" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [0 .. 199]
      seen <- newIORef []
      -- The worker looks once a minute, unless a look has found more entries than it had hands.
      let settings = countingWorker {workerBackoff = backoffDefaults {backoffFirst = milliseconds 1}, workerPollInterval = seconds 60, workerConcurrency = 2}
          handler entry = noting seen (numberOf entry)
      run client (Redis.xgroupCreate "numbers" "counters" (Redis.GroupAfter (Redis.StreamId 0 0)))
      _ <- run client (Redis.xreadgroup (Redis.Consumer "counters" "(resting)") ("numbers" :| []))
      eventually 20 "at rest for a while" (all ((>= milliseconds 5) . Redis.pendingEntryIdle) <$> run client (Redis.xpendingRange "numbers" "counters" 1))
      addNumbered client "numbers" [200 .. 209]
      stopping client settings handler $ eventually 20 "all handled" ((== 210) . length <$> readIORef seen)
      take 20 <$> readIORef seen >>= (`shouldSatisfy` all (< 200))
    it "keeps what it has in hand, however long the handler takes" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [1]
      seen <- newIORef []
      let settings = countingWorker {workerClaimAfter = milliseconds 500, workerPollInterval = milliseconds 20}
          handle entry = noting seen (entryDeliveries entry) >> pause 2
      stopping client settings handle . stopping client settings handle $
        eventually 20 "handled" ((&&) <$> (not . null <$> readIORef seen) <*> ((== 0) <$> pendingCount client "numbers" "counters"))
      readIORef seen `shouldReturn` [1]
    it "reads the first stream first, and hears of any" $ \server -> connectedTo server $ \client -> do
      seen <- newIORef []
      gate <- newEmptyMVar
      let settings = countingWorker {workerStreams = "{n}high" :| ["{n}low"], workerConcurrency = 1, workerClaimAfter = seconds 30}
          handle entry = takeMVar gate >> noting seen (entryStream entry, numberOf entry)
      stopping client settings handle $ do
        addNumbered client "{n}low" [1 .. 3]
        eventuallyReturns 20 1 (fromIntegral . Redis.pendingSummaryCount <$> run client (Redis.xpending "{n}low" "counters") :: IO Int)
        addNumbered client "{n}high" [4 .. 5]
        replicateM_ 5 (putMVar gate ())
        eventually 20 "all handled" ((== 5) . length <$> readIORef seen)
        addNumbered client "{n}low" [6]
        putMVar gate ()
        eventually 20 "one more" ((== 6) . length <$> readIORef seen)
      map snd . reverse <$> readIORef seen `shouldReturn` [1, 4, 5, 2, 3, 6]
    it "looks through what is pending in all of its streams by one pipeline" $ \server -> do
      looks <- newIORef []
      let note begun = do
            when ("XPENDING" `Char8.isSuffixOf` begunOperation begun) (noting looks (begunOperation begun, begunBatch begun))
            pure (const (pure ()))
          config = setHooks noHooks {hookCommand = Just note} (standaloneConfig "127.0.0.1" (fromIntegral (serverPort server)))
      withClient config $ \client ->
        stopping client countingWorker {workerStreams = "{n}high" :| ["{n}middle", "{n}low"]} (const (pure ())) $
          eventually 20 "three looks" ((>= 3) . length <$> readIORef looks)
      readIORef looks >>= (`shouldSatisfy` all (== ("PIPELINE XPENDING", Just 3)))
    it "stops when it is told, lets handlers finish, and leaves the rest" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [0 .. 9]
      stop <- newTVarIO False
      gate <- newEmptyMVar
      begun <- newTVarIO (0 :: Int)
      working <- async . runWorker client countingWorker {workerConcurrency = 3, workerUntil = readTVar stop >>= check} $ \_ -> do
        atomically (modifyTVar' begun (+ 1))
        readMVar gate
      eventuallyReturns 20 3 (readTVarIO begun)
      atomically (writeTVar stop True)
      putMVar gate ()
      wait working
      readTVarIO begun `shouldReturn` 3
      inHand client `shouldReturn` 0
      pendingCount client "numbers" "counters" `shouldReturn` 7
      consumers client `shouldReturn` []
    it "loses nothing and does nothing twice while workers are replaced one after the other" $ \server -> connectedTo server $ \client -> do
      seen <- newIORef []
      let handler entry = pause 0.005 >> noting seen (numberOf entry)
      addNumbered client "numbers" [0 .. 299]
      forM_ [1 .. 5 :: Int] $ \_ -> do
        sofar <- length <$> readIORef seen
        stopping client countingWorker {workerClaimAfter = seconds 30} handler $
          eventually 20 "progress" ((> sofar + 10) . length <$> readIORef seen)
      stopping client countingWorker {workerClaimAfter = seconds 30} handler $
        eventuallyReturns 20 0 (pendingCount client "numbers" "counters")
      sort <$> readIORef seen `shouldReturn` [0 .. 299]
      consumers client `shouldReturn` []
    it "hands back at once, and uncounted, what is not finished in the time" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [0]
      begun <- newEmptyMVar
      stop <- newTVarIO False
      interrupted <- newTVarIO (0 :: Int)
      let report = \case
            HandlerInterrupted _ _ -> atomically (modifyTVar' interrupted (+ 1))
            _ -> pure ()
          settings = countingWorker {workerClaimAfter = seconds 60, workerGrace = milliseconds 100, workerUntil = readTVar stop >>= check, workerReport = report}
      working <- async (runWorker client settings (\_ -> putMVar begun () >> forgetful))
      takeMVar begun
      atomically (writeTVar stop True)
      within 20 (wait working)
      readTVarIO interrupted `shouldReturn` 1
      next <- newEmptyMVar
      stopping client settings {workerUntil = retry} (putMVar next . entryDeliveries) (within 20 (takeMVar next)) `shouldReturn` 1
    it "hands back nothing that another worker has taken over meanwhile, and lets none of it rest" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [0, 1]
      begun <- newTVarIO (0 :: Int)
      failing <- newEmptyMVar
      failed <- newEmptyMVar
      let report = \case
            HandlerFailed {} -> putMVar failed ()
            _ -> pure ()
          settings = countingWorker {workerConcurrency = 2, workerClaimAfter = seconds 60, workerGrace = milliseconds 100, workerReport = report}
          handler entry = do
            atomically (modifyTVar' begun (+ 1))
            if numberOf entry == 0 then forgetful else takeMVar failing >> throwIO (userError "too late")
      stopping client settings handler $ do
        eventuallyReturns 20 2 (readTVarIO begun)
        ids <- map Redis.pendingEntryId <$> run client (Redis.xpendingRange "numbers" "counters" 10)
        forM_ ids $ \one -> run client (Redis.xclaim "numbers" (Redis.Consumer "counters" "other") mempty (one :| []))
        putMVar failing ()
        takeMVar failed
      held <- run client (Redis.xpendingRange "numbers" "counters" 10)
      [(Redis.pendingEntryConsumer one, Redis.pendingEntryDeliveries one) | one <- held] `shouldBe` [("other", 2), ("other", 2)]
    it "hands back what it has when its thread is cancelled" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [0]
      begun <- newEmptyMVar
      let settings = countingWorker {workerClaimAfter = seconds 60}
      withAsync (runWorker client settings (\_ -> putMVar begun () >> forgetful)) (\_ -> takeMVar begun)
      next <- newEmptyMVar
      stopping client settings (putMVar next . entryDeliveries) (within 20 (takeMVar next)) `shouldReturn` 1
    it "waits for an interrupted handler, however often it is interrupted itself" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [0]
      begun <- newEmptyMVar
      go <- newEmptyMVar
      ended <- newIORef False
      working <- async (runWorker client countingWorker (\_ -> uninterruptibleMask_ (putMVar begun () >> takeMVar go >> writeIORef ended True)))
      takeMVar begun
      withAsync (waitCatch working >> readIORef ended) $ \over ->
        withAsync (forever (throwTo (asyncThreadId working) UserInterrupt >> pause 0.05)) $ \_ -> do
          pause 0.3
          putMVar go ()
          within 10 (wait over) `shouldReturn` True
    forM_ [("takes entries", seconds 60, ["DEL", "numbers"]), ("says what is in hand", milliseconds 30, ["ACL", "SETUSER", "default", "-xinfo"])] $ \(what, claimAfter, spoiling) ->
      it ("can be stopped while the thread that " <> what <> " tells of a failure") $ \server -> connectedTo server $ \client -> do
        telling <- newEmptyMVar
        working <- async (runWorker client countingWorker {workerClaimAfter = claimAfter, workerReport = \_ -> putMVar telling () >> forgetful} (const (pure ())))
        eventuallyReturns 20 1 (run client (Redis.exists (pure "numbers")))
        _ <- run client (raw spoiling)
        takeMVar telling
        within 10 (cancel working)
    it "makes the group again when it is lost, from the first entry on" $ \server -> connectedTo server $ \client -> do
      seen <- newIORef []
      stopping client countingWorker (noting seen . numberOf) $ do
        addNumbered client "numbers" [1]
        eventuallyReturns 20 [1] (readIORef seen)
        _ <- run client (raw ["FLUSHALL"])
        addNumbered client "numbers" [2]
        eventuallyReturns 20 [2, 1] (readIORef seen)
    it "handles what it has read of one stream when another has lost its group" $ \server -> connectedTo server $ \client -> do
      tries <- newIORef []
      let settings = countingWorker {workerStreams = "{n}high" :| ["{n}low"], workerMaxAttempts = 1, workerClaimAfter = milliseconds 100}
      stopping client settings (\entry -> noting tries (entryStream entry, numberOf entry, entryDeliveries entry)) $
        forM_ [1 .. 10] $ \n -> do
          eventuallyReturns 20 ["counters"] (either (const []) (map Redis.groupInfoName) <$> tryRun client (Redis.xinfoGroups "{n}low"))
          -- In one step, so that the worker reads the one and learns of the other in the same request.
          _ <- runTransaction client ((,) <$> queued (Redis.del (pure "{n}low")) <*> queued (Redis.xadd "{n}high" (("number", Char8.pack (show n)) :| [])))
          eventually 20 "settled" ((== 0) . Redis.pendingSummaryCount <$> run client (Redis.xpending "{n}high" "counters"))
          eventuallyReturns 20 (replicate n 1) (map (\(_, _, delivered) -> delivered) <$> readIORef tries)
      run client (Redis.xlen "{n}high:dead") `shouldReturn` 0
    it "hands back what it has of one stream when another is gone" $ \server -> connectedTo server $ \client -> do
      begun <- newTVarIO (0 :: Int)
      let settings = countingWorker {workerStreams = "{n}high" :| ["{n}low"], workerConcurrency = 2000, workerClaimAfter = seconds 60, workerGrace = mempty}
      addNumbered client "{n}high" [1]
      addNumbered client "{n}low" [2 .. 2000]
      stopping client settings (const (atomically (modifyTVar' begun (+ 1)) >> forgetful)) $ do
        eventuallyReturns 20 2000 (readTVarIO begun)
        run client (Redis.del (pure "{n}high")) `shouldReturn` 1
      left <- run client (Redis.xpendingRange "{n}low" "counters" 2000)
      -- A delivery that was handed back does not count.
      length [() | one <- left, Redis.pendingEntryDeliveries one == 0] `shouldBe` 1999
    it "takes what a handler throws of another thread's end for a failure" $ \server -> connectedTo server $ \client -> do
      addNumbered client "numbers" [1]
      stopping client countingWorker {workerMaxAttempts = 2} (\_ -> void (wait =<< async (throwIO AsyncCancelled))) $
        eventuallyReturns 20 1 (run client (Redis.xlen "{numbers}:dead"))
    it "throws what will not change" $ \server -> connectedTo server $ \client -> do
      run client (Redis.set "numbers" "no stream")
      runWorker client countingWorker (const (pure ())) `shouldThrow` \case
        ReplyError ServerError {serverErrorCode} -> serverErrorCode == "WRONGTYPE"
        _ -> False
  where
    connectedTo :: Server -> (Client -> IO a) -> IO a
    connectedTo server = connected (serverPort server)
    noting :: IORef [a] -> a -> IO ()
    noting ref one = atomicModifyIORef' ref (\all' -> (one : all', ()))
    forgetful = atomically retry :: IO ()

knowsXackdel :: Client -> IO Bool
knowsXackdel client = (/= [Nothing]) <$> run client (Redis.commandInfo ("xackdel" :| []))

inHand :: Client -> IO Int
inHand client = fromIntegral . Redis.pendingSummaryCount <$> run client (Redis.xpending "numbers" "counters")

-- | None as long as there is no group.
pendingEntries :: Client -> IO [Redis.PendingEntry]
pendingEntries client = fromRight [] <$> tryRun client (Redis.xpendingRange "numbers" "counters" 10)

consumers :: Client -> IO [ByteString]
consumers client = map Redis.consumerInfoName <$> run client (Redis.xinfoConsumers "numbers" "counters")
