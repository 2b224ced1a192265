module Redis.Patterns.WorkerFaultSpec (spec) where

import Control.Concurrent.Async (async, wait, withAsync)
import Control.Concurrent.STM
import Control.Exception (SomeException, catch, onException, try)
import Control.Monad (forM, forM_, forever)
import Data.ByteString.Char8 qualified as Char8
import Data.List (sort)
import Data.Map.Strict qualified as Map
import Redis
import Redis.Commands qualified as Redis
import Redis.Patterns.Jobs
import Redis.Patterns.Work
import Redis.Patterns.Worker (Entry (entryDeliveries), runWorker)
import Redis.TestKit.Address (Address (TcpAddress))
import Redis.TestKit.Command (CommandCalls (callsRun))
import Redis.TestKit.Process qualified as Process
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server
import Redis.TestKit.Wait
import System.Posix.Signals (sigCONT, sigSTOP)
import Test.Hspec

spec :: Spec
spec = do
  around (withServer serverDefaults) $ do
    it "handles every entry though worker after worker is killed, and buries those that fail, once each" $ \server ->
      connected (serverPort server) $ \client -> do
        -- Each process is killed during its work; later ones find what it left. Each has entries of its own, too:
        -- if this process stands still for a moment, the one before may have handled all of its.
        forM_ [1 .. 6] $ \time ->
          withWorkProcess server 20 $ \process -> do
            sofar <- sum <$> handledCounts client
            addNumbered client "numbers" [40 * time - 40 .. 40 * time - 1]
            eventually 30 ("progress of worker " <> show time) ((> sofar + 12) . sum <$> handledCounts client)
            Process.kill9 process
        addNumbered client "numbers" [240 .. 299]
        withWorkProcess server 20 . const . withWorkProcess server 20 . const $
          eventuallyReturns 60 0 (pendingCount client "numbers" "counters")
        audit client [0 .. 299]
    it "buries an entry that kills its worker each time" $ \server ->
      connected (serverPort server) $ \client -> do
        _ <- run client (Redis.xadd "numbers" (("number", "-5") :| [("poison", "yes")]))
        forM_ [1 .. 2 :: Int] $ \_ -> withWorkProcess server 2 (within 30 . Process.awaitExit)
        addNumbered client "numbers" [0, 1]
        withWorkProcess server 2 . const $ eventuallyReturns 30 0 (pendingCount client "numbers" "counters")
        run client (Redis.get "poisoned") `shouldReturn` Just "2"
        deadNumbers client "{numbers}:dead" `shouldReturn` [-5]
        Map.keys <$> handledCounts client `shouldReturn` [0, 1]
    it "handles every entry though its connections are cut again and again" $ \server ->
      Proxy.withProxy (TcpAddress "127.0.0.1" (serverPort server)) $ \proxy ->
        connected (Proxy.proxyPort proxy) $ \faulty -> connected (serverPort server) $ \client ->
          withAsync (forever (pause 0.1 >> Proxy.cut proxy Proxy.Reset)) . const $ do
            let settings = countingWorker {workerMaxAttempts = 20}
            stopping faulty settings (counting client) . stopping faulty settings (counting client) $ do
              addNumbered client "numbers" [0 .. 199]
              eventuallyReturns 60 0 (pendingCount client "numbers" "counters")
            audit client [0 .. 199]
    it "makes one dead letter though the reply that says so is lost" $ \server ->
      Proxy.withProxy (TcpAddress "127.0.0.1" (serverPort server)) $ \proxy ->
        connected (Proxy.proxyPort proxy) $ \faulty -> connected (serverPort server) $ \client -> do
          handled <- newTVarIO (0 :: Int)
          told <- newTVarIO []
          let report = \case
                DeadLettered _ entry _ -> atomically (modifyTVar' told (entry :))
                _ -> pure ()
              handler entry = case numberOf entry of
                3 -> fail "so that the server knows the script"
                13 -> Proxy.freeze proxy Proxy.ToClient >> fail "nobody hears what becomes of it"
                _ -> atomically (modifyTVar' handled (+ 1))
          stopping faulty countingWorker {workerMaxAttempts = 1, workerConcurrency = 1, workerReport = report} handler $ do
            addNumbered client "numbers" [3, 13, 14]
            eventuallyReturns 30 [3, 13] (deadNumbers client "{numbers}:dead")
            Proxy.cut proxy Proxy.Reset
            Proxy.thaw proxy Proxy.ToClient
            -- The worker's one hand is free when the server has confirmed that the entry before is
            -- settled.
            eventuallyReturns 30 1 (readTVarIO handled)
          deadNumbers client "{numbers}:dead" `shouldReturn` [3, 13]
          pendingCount client "numbers" "counters" `shouldReturn` 0
          added <- map Redis.streamEntryId <$> run client (Redis.xrange "numbers" Redis.LowestId Redis.HighestId)
          reverse <$> readTVarIO told `shouldReturn` take 2 added
    it "makes no dead letter of an entry whose worker is heard of again in between" $ \server ->
      Proxy.withProxy (TcpAddress "127.0.0.1" (serverPort server)) $ \proxy ->
        connected (Proxy.proxyPort proxy) $ \slow -> connected (serverPort server) $ \client -> do
          entry <- run client (Redis.xadd "numbers" (("number", "1") :| []))
          run client (Redis.xgroupCreate "numbers" "counters" (Redis.GroupAfter (Redis.StreamId 0 0)))
          _ <- run client (Redis.xreadgroup alive ("numbers" :| []))
          _ <- run client (Redis.xclaimJustidWith Redis.xclaimDefaults {Redis.xclaimIdle = Just (Redis.ClaimIdleFor (seconds 60))} "numbers" alive mempty (entry :| []))
          -- What the worker does next comes half a second after what it has seen.
          Proxy.delay proxy Proxy.ToServer 0.5
          stopping slow countingWorker {workerMaxAttempts = 1, workerClaimAfter = seconds 30} (const (pure ())) $ do
            eventually 30 "the worker has looked" ((> 0) <$> callsOf callsRun "xpending" server)
            _ <- run client (Redis.xclaimJustid "numbers" alive mempty (entry :| []))
            eventually 30 "the worker has tried to bury it" ((> 0) <$> callsOf callsRun "eval" server)
          run client (Redis.xlen "{numbers}:dead") `shouldReturn` 0
          pendingCount client "numbers" "counters" `shouldReturn` 1
    it "tells of no interrupted handler when only its acknowledgement is not confirmed" $ \server ->
      Proxy.withProxy (TcpAddress "127.0.0.1" (serverPort server)) $ \proxy ->
        withClient (setCommandTimeout (Just (seconds 1)) (standaloneConfig "127.0.0.1" (fromIntegral (Proxy.proxyPort proxy)))) $ \faulty ->
          connected (serverPort server) $ \client -> do
            returned <- newEmptyTMVarIO
            interrupted <- newTVarIO (0 :: Int)
            let report = \case
                  HandlerInterrupted _ _ -> atomically (modifyTVar' interrupted (+ 1))
                  _ -> pure ()
                handler _ = Proxy.freeze proxy Proxy.ToServer >> atomically (putTMVar returned ())
            stopping faulty countingWorker {workerGrace = milliseconds 50, workerReport = report} handler $ do
              addNumbered client "numbers" [1]
              atomically (takeTMVar returned)
            readTVarIO interrupted `shouldReturn` 0
            pendingCount client "numbers" "counters" `shouldReturn` 1
    it "stops though a handler returns when it is interrupted, and the server is away" $ \server ->
      Proxy.withProxy (TcpAddress "127.0.0.1" (serverPort server)) $ \proxy ->
        withClient (setCommandTimeout (Just (seconds 1)) (standaloneConfig "127.0.0.1" (fromIntegral (Proxy.proxyPort proxy)))) $ \faulty ->
          connected (serverPort server) $ \client -> do
            addNumbered client "numbers" [1]
            begun <- newEmptyTMVarIO
            let handler _ =
                  (atomically (putTMVar begun ()) >> atomically retry) `catch` \(_ :: SomeException) ->
                    Proxy.freeze proxy Proxy.ToServer
                settings = countingWorker {workerGrace = mempty, workerUntil = readTMVar begun}
            working <- async (runWorker faulty settings handler)
            ended <- upTo 20 (wait working)
            Proxy.thaw proxy Proxy.ToServer
            wait working
            ended `shouldBe` Just ()
            pendingCount client "numbers" "counters" `shouldReturn` 1
    it "hands back uncounted though the connection is cut meanwhile" $ \server ->
      Proxy.withProxy (TcpAddress "127.0.0.1" (serverPort server)) $ \proxy ->
        connected (Proxy.proxyPort proxy) $ \faulty -> connected (serverPort server) $ \client -> do
          addNumbered client "numbers" [1]
          begun <- newEmptyTMVarIO
          let settings = countingWorker {workerClaimAfter = seconds 60, workerGrace = mempty}
              handler _ = (atomically (putTMVar begun ()) >> atomically retry) `onException` Proxy.cutAfter proxy Proxy.ToServer 0 Proxy.Reset
          stopping faulty settings handler (atomically (takeTMVar begun))
          next <- newEmptyTMVarIO
          stopping client settings (atomically . putTMVar next . entryDeliveries) (within 20 (atomically (takeTMVar next))) `shouldReturn` 1
    it "handles every entry though a worker is frozen until others have taken what it had" $ \server ->
      connected (serverPort server) $ \client -> do
        addNumbered client "numbers" [0 .. 99]
        withWorkProcess server 20 $ \frozen -> do
          eventually 30 "progress" ((> 8) . sum <$> handledCounts client)
          Process.signal sigSTOP frozen
          withWorkProcess server 20 . const $ eventuallyReturns 60 0 (pendingCount client "numbers" "counters")
          Process.signal sigCONT frozen
          addNumbered client "numbers" [100 .. 119]
          eventuallyReturns 30 0 (pendingCount client "numbers" "counters")
        audit client [0 .. 119]
  around (withServer serverDefaults {optionsConfig = ["appendonly yes", "appendfsync always"]}) $ do
    it "handles every entry though the server is killed and started again, and frozen for a while" $ \server ->
      connected (serverPort server) $ \client -> do
        addNumbered client "numbers" [0 .. 199]
        let settings = countingWorker {workerMaxAttempts = 40}
        stopping client settings (counting client) . stopping client settings (counting client) $ do
          progress client 30
          restart server
          progress client 60
          freeze server
          pause 1
          thaw server
          progress client 90
          restart server
          eventuallyReturns 60 0 (pendingCount client "numbers" "counters")
        audit client [0 .. 199]
    it "runs every job, puts none in twice and leaves a whole queue, though connections are cut and the server is killed and started again" $ \server ->
      Proxy.withProxy (TcpAddress "127.0.0.1" (serverPort server)) $ \proxy ->
        connected (Proxy.proxyPort proxy) $ \faulty -> connected (serverPort server) $ \client -> do
          let queue = Queue "mails"
              settings = (jobWorker queue) {workerConcurrency = 4, workerClaimAfter = milliseconds 600, workerPollInterval = milliseconds 50}
          halt <- newTVarIO False
          handled <- newTVarIO Map.empty
          working <- async . runJobs faulty queue settings {workerUntil = readTVar halt >>= check} $ \job ->
            "" <$ atomically (modifyTVar' handled (Map.insertWith (+) (runningPayload job) (1 :: Int)))
          jobs <- withAsync (forever (pause 0.1 >> Proxy.cut proxy Proxy.Reset)) . const $ do
            early <- forM [0 .. 99 :: Int] (putIn faulty queue)
            restart server
            (early <>) <$> forM [100 .. 199 :: Int] (putIn faulty queue)
          eventuallyReturns 60 200 (either (\(_ :: Error) -> 0) stateDone <$> try (jobsState client queue))
          atomically (writeTVar halt True)
          wait working
          Map.size <$> readTVarIO handled `shouldReturn` 200
          states <- forM jobs (fmap (fmap jobInfoState) . jobInfo client queue)
          states `shouldBe` replicate 200 (Just JobDone)
          forM_ ["urgent", "normal", "later"] $ \name -> run client (Redis.xlen ("{mails}:jobs:" <> name)) `shouldReturn` 0
  where
    alive = Redis.Consumer "counters" "alive"
    -- With a name, so that a caller that tries again after an error makes no second job.
    putIn client queue n = do
      let word = Char8.pack (show n)
          options = jobDefaults {jobId = Just (JobId word), jobDue = if even n then DueNow else DueIn (milliseconds 30)}
      JobId word <$ eventuallyJust 30 "put in" (either (\(_ :: Error) -> Nothing) Just <$> try (enqueue client queue options word))
    progress client count = eventually 30 "progress" ((> count) . either (const 0) length <$> tryRun client (Redis.hkeys "handled"))

-- | Checks that every number was handled at least once, except the failing ones, which are dead
-- letters, once each.
audit :: Client -> [Int] -> IO ()
audit client numbers = do
  counts <- handledCounts client
  Map.keys counts `shouldBe` filter (not . isFailing) numbers
  sort <$> deadNumbers client "{numbers}:dead" `shouldReturn` filter isFailing numbers
