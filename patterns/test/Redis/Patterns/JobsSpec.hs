module Redis.Patterns.JobsSpec (spec) where

import Control.Concurrent.Async (async, cancel, forConcurrently, wait, withAsync)
import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception (throwIO, try)
import Control.Monad (forM, forM_, replicateM, replicateM_, unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Data.List (nub)
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict qualified as Map
import Data.Time.Clock (UTCTime, addUTCTime, diffUTCTime)
import Redis
import Redis.Commands qualified as Redis
import Redis.Duration (hours, minutes)
import Redis.Patterns.Jobs
import Redis.Patterns.Work
import Redis.Patterns.Worker (Entry (..))
import Redis.TestKit.Address (Address (TcpAddress))
import Redis.TestKit.Cluster (clusterAddresses, clusterDefaults, clusterPrimaryCount, withCluster)
import Redis.TestKit.Process qualified as Process
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (serverDefaults, serverPort, withServer)
import Redis.TestKit.Wait
import Redis.Tracing (CommandBegun (begunOperation))
import Test.Hspec

spec :: Spec
spec = around (\test -> withServer serverDefaults (\server -> connected (serverPort server) (test . (,) server))) $ do
  it "runs what is put into it and keeps the result" $ \(_, client) -> do
    job <- new client jobDefaults "hello"
    (jobInfoState <$>) <$> jobInfo client mails job `shouldReturn` Just JobWaiting
    working client quick (pure . Char8.reverse . runningPayload) $ finally' client job JobDone
    fmap jobInfoResult <$> jobInfo client mails job `shouldReturn` Just (Just "olleh")
    queueLengths client `shouldReturn` [0, 0, 0]
  it "forgets a job that is done when its time is over" $ \(_, client) -> do
    job <- new client jobDefaults {jobRetention = mempty} "hello"
    working client quick (const (pure "")) $ eventuallyReturns 20 Nothing (jobInfo client mails job)
  it "never runs a delayed job early, nor later than it looks for them" $ \(_, client) -> do
    began <- serverTime client
    ran <- newIORef []
    let delays = [50, 100 .. 1000]
    forM_ delays $ \delay -> new client jobDefaults {jobDue = DueIn (milliseconds delay)} (Char8.pack (show delay))
    working client quick {workerConcurrency = 20} (\job -> "" <$ (serverTime client >>= \now -> note ran (runningPayload job, now))) $
      eventually 20 "all ran" ((== length delays) . length <$> readIORef ran)
    late <- forM delays $ \delay -> do
      found <- lookup (Char8.pack (show delay)) <$> readIORef ran
      pure (maybe (-1) (\now -> realToFrac (diffUTCTime now began) - fromIntegral delay / 1000) found :: Double)
    late `shouldSatisfy` all (>= 0)
    -- 'workerLook', and a hundred milliseconds for a busy machine's scheduling, several times over.
    late `shouldSatisfy` all (< 1)
  it "has a delayed job due no fraction of a millisecond early" $ \(_, client) -> do
    early <- replicateM 20 $ do
      before' <- serverTime client
      job <- new client jobDefaults {jobDue = DueIn (seconds 60)} ""
      due <- (>>= jobInfoDue) <$> jobInfo client mails job
      pure (due < Just (addUTCTime 60 before'))
    early `shouldBe` replicate 20 False
  it "runs a job at a time" $ \(_, client) -> do
    due <- addUTCTime 0.3 <$> serverTime client
    job <- new client jobDefaults {jobDue = DueAt due} ""
    fmap jobInfoState <$> jobInfo client mails job `shouldReturn` Just JobDelayed
    ran <- newEmptyMVar
    working client quick (\_ -> "" <$ (serverTime client >>= putMVar ran)) (takeMVar ran) >>= (`shouldSatisfy` (>= due))
  it "has one job for a unique key within its time, whoever asks and however many at once" $ \(_, client) -> do
    let once = jobDefaults {jobUnique = Just (Unique "ada" (hours 1))}
    made <- forConcurrently [1 .. 50 :: Int] $ \_ -> enqueue client mails once "welcome"
    length [() | Enqueued _ <- made] `shouldBe` 1
    length (nub (map named made)) `shouldBe` 1
    queueLengths client `shouldReturn` [0, 1, 0]
    let short = jobDefaults {jobUnique = Just (Unique "grace" (milliseconds 30))}
    first <- new client short ""
    second <- eventuallyJust 20 "a new one when the time is over" $ do
      enqueue client mails short "" >>= \case
        Enqueued job -> pure (Just job)
        Present _ -> pure Nothing
    second `shouldNotBe` first
  it "has one job of a name" $ \(_, client) -> do
    enqueue client mails jobDefaults {jobId = Just (JobId "daily")} "a" `shouldReturn` Enqueued (JobId "daily")
    enqueue client mails jobDefaults {jobId = Just (JobId "daily")} "b" `shouldReturn` Present (JobId "daily")
    fmap jobInfoPayload <$> jobInfo client mails (JobId "daily") `shouldReturn` Just "a"
  it "says that a job with a name is new though the first answer is lost" $ \(server, client) ->
    Proxy.withProxy (TcpAddress "127.0.0.1" (serverPort server)) $ \proxy -> connected (Proxy.proxyPort proxy) $ \faulty -> do
      -- Makes the server know the script, so that the answer of the script is lost.
      _ <- new faulty jobDefaults ""
      forM_ [("plain", Nothing), ("unique", Just (Unique "ada" (hours 1)))] $ \(name, jobUnique) -> do
        let daily = jobDefaults {jobId = Just (JobId name), jobUnique}
        Proxy.cutAfter proxy Proxy.ToClient 0 Proxy.Reset
        enqueue faulty mails daily "a" `shouldReturn` Enqueued (JobId name)
        enqueue faulty mails daily "a" `shouldReturn` Present (JobId name)
      queueLengths client `shouldReturn` [0, 3, 0]
  it "takes urgent jobs first and later ones last" $ \(_, client) -> do
    forM_ [(Later, "3"), (Normal, "2"), (Urgent, "1")] $ \(priority, payload) -> replicateM_ 2 (new client jobDefaults {jobPriority = priority} payload)
    ran <- newIORef []
    working client quick {workerConcurrency = 1} (\job -> "" <$ note ran (runningPayload job)) $
      eventually 20 "all ran" ((== 6) . length <$> readIORef ran)
    reverse <$> readIORef ran `shouldReturn` ["1", "1", "2", "2", "3", "3"]
  it "tries a job again after a rest, and keeps what failed for good until somebody has it tried again" $ \(_, client) -> do
    job <- new client jobDefaults {jobMaxAttempts = 3} ""
    broken <- newTVarIO True
    tries <- newIORef []
    let handler running = do
          note tries (runningAttempt running)
          isBroken <- readTVarIO broken
          when isBroken (fail "it is broken")
          pure "mended"
    working client quick handler $ do
      finally' client job JobFailed
      readIORef tries `shouldReturn` [3, 2, 1]
      failedJobs client mails 10 `shouldReturn` [job]
      stateFailed <$> jobsState client mails `shouldReturn` 1
      fmap jobInfoError <$> jobInfo client mails job `shouldReturn` Just (Just "user error (it is broken)")
      atomically (writeTVar broken False)
      retryJob client mails job `shouldReturn` True
      finally' client job JobDone
      failedJobs client mails 10 `shouldReturn` []
      retryJob client mails job `shouldReturn` False
  it "tells what becomes of a job whose handler threw, and not before the server has said so" $ \(_, client) -> do
    told <- newIORef []
    let handler running = do
          when (runningPayload running == "cancelled") . void $ cancelJob client mails (runningId running)
          fail "it is broken"
        report = \case
          HandlerFailed entry _ next -> do
            job <- maybe (failure "an entry without a job") (pure . JobId) (lookup "job" (entryFields entry))
            state <- fmap jobInfoState <$> jobInfo client mails job
            note told (job, entryDeliveries entry, next, state)
          _ -> pure ()
        ended = mapM_ (uncurry (finally' client))
    twice <- new client jobDefaults {jobMaxAttempts = 2} ""
    cancelled <- new client jobDefaults "cancelled"
    gone <- new client jobDefaults {jobMaxAttempts = 1, jobFailedRetention = mempty} ""
    -- One hand, so that no job moves on while the worker tells of another.
    working client quick {workerConcurrency = 1, workerReport = report} handler $ do
      ended [(twice, JobFailed), (cancelled, JobCancelled)]
      eventually 20 "all told" ((>= 4) . length <$> readIORef told)
    events <- readIORef told
    [(try', next, state) | (job, try', next, state) <- reverse events, job == twice]
      `shouldSatisfy` \case
        [(1, Just rests, Just ready), (2, Nothing, Just JobFailed)] -> rests == milliseconds 30 && ready `elem` [JobDelayed, JobWaiting]
        _ -> False
    [(next, state) | (job, _, next, state) <- events, job == cancelled] `shouldBe` [(Nothing, Just JobCancelled)]
    [(next, state) | (job, _, next, state) <- events, job == gone] `shouldBe` [(Nothing, Nothing)]
  it "ends the try of a job whose result throws, or the text of whose exception" $ \(_, client) ->
    forM_ [pure (error "no result"), throwIO (userError (error "no text"))] $ \handler -> do
      job <- new client jobDefaults {jobMaxAttempts = 1} ""
      working client quick (const handler) $ finally' client job JobFailed
  it "tells of a job that has failed for good because its worker died with it" $ \(_, client) -> do
    job <- new client jobDefaults {jobMaxAttempts = 1} ""
    begun <- newEmptyMVar
    working client quick {workerGrace = mempty} (\_ -> putMVar begun () >> atomically retry) $ takeMVar begun >> left client
    told <- newIORef []
    let report = \case
          DeadLettered stream _ why -> note told (stream, why)
          _ -> pure ()
    working client quick {workerReport = report} (const (pure "")) $ finally' client job JobFailed
    readIORef told `shouldReturn` [("{mails}:jobs:normal", "its worker did not come back")]
  it "does not count a delivery that no worker heard of" $ \(_, client) -> do
    job <- new client jobDefaults {jobMaxAttempts = 1} ""
    run client (Redis.xgroupCreate normal "workers" (Redis.GroupAfter (Redis.StreamId 0 0)))
    _ <- run client (Redis.xreadgroup (Redis.Consumer "workers" "deaf") (normal :| []))
    working client quick (pure . Char8.pack . show . runningAttempt) $ finally' client job JobDone
    fmap jobInfoResult <$> jobInfo client mails job `shouldReturn` Just (Just "1")
  it "does not count such a delivery after a worker has died with the job, either" $ \(_, client) -> do
    job <- new client jobDefaults {jobMaxAttempts = 2} ""
    begun <- newEmptyMVar
    working client quick {workerGrace = mempty} (\_ -> putMVar begun () >> atomically retry) $ takeMVar begun >> left client
    entries client >>= mapM_ (run client . Redis.xclaim normal (Redis.Consumer "workers" "deaf") mempty) . NonEmpty.nonEmpty
    left client
    working client quick (pure . Char8.pack . show . runningAttempt) $ finally' client job JobDone
    fmap jobInfoResult <$> jobInfo client mails job `shouldReturn` Just (Just "2")
  it "leaves a job to the worker that has it, when one that was taken for dead fails late" $ \(_, client) -> do
    job <- new client jobDefaults {jobMaxAttempts = 2} ""
    late <- newEmptyMVar
    told <- newEmptyMVar
    tries <- newIORef []
    let handler running = do
          note tries (runningAttempt running)
          if runningAttempt running == 1 then takeMVar late >> fail "too late" else putMVar late () >> "" <$ takeMVar told
        report = \case
          HandlerFailed {} -> putMVar told ()
          _ -> pure ()
        settings = quick {workerReport = report}
    working client settings handler $ do
      eventuallyReturns 20 [1] (readIORef tries)
      left client
      working client settings handler $ finally' client job JobDone
    readIORef tries `shouldReturn` [2, 1]
  it "does not begin a job whose entry was given to another worker meanwhile" $ \(server, client) -> do
    _ <- new client jobDefaults ""
    given <- newMVar False
    ran <- newIORef []
    let give begun = do
          when ("EVAL" `Char8.isPrefixOf` begunOperation begun) . modifyMVar_ given $ \before' ->
            entries client >>= \case
              one : others | not before' -> True <$ run client (Redis.xclaim normal (Redis.Consumer "workers" "other") mempty (one :| others))
              _ -> pure before'
          pure (const (pure ()))
    withClient (setHooks noHooks {hookCommand = Just give} (standaloneConfig "127.0.0.1" (fromIntegral (serverPort server)))) $ \slow ->
      working slow quick {workerClaimAfter = seconds 60} (\_ -> "" <$ note ran ()) $ eventually 20 "given to another" (readMVar given)
    readIORef ran `shouldReturn` []
  it "does not list a failed job that is not kept any more" $ \(_, client) -> do
    let handler _ = fail "it is broken"
    kept <- new client jobDefaults {jobMaxAttempts = 1} ""
    working client quick handler $ finally' client kept JobFailed
    gone <- new client jobDefaults {jobMaxAttempts = 1, jobFailedRetention = milliseconds 100} ""
    working client quick handler $ eventuallyReturns 20 Nothing (jobInfo client mails gone)
    -- It would be the first.
    eventuallyReturns 20 [kept] (failedJobs client mails 1)
    failedJobs client mails 10 `shouldReturn` [kept]
  it "tells how far a job is, and a job that it is cancelled" $ \(_, client) -> do
    job <- new client jobDefaults ""
    go <- newEmptyMVar
    told <- newEmptyMVar
    let handler running = do
          reportProgress running 0.25 "a quarter" >>= putMVar told
          takeMVar go
          goesOn <- reportProgress running 0.5 "half"
          putMVar told goesOn
          unless goesOn (fail "cancelled")
          pure ""
    working client quick handler $ do
      takeMVar told `shouldReturn` True
      fmap jobInfoProgress <$> jobInfo client mails job `shouldReturn` Just (Just (0.25, "a quarter"))
      cancelJob client mails job `shouldReturn` Just JobRunning
      putMVar go ()
      takeMVar told `shouldReturn` False
      finally' client job JobCancelled
    queueLengths client `shouldReturn` [0, 0, 0]
  it "tells a worker that it has lost its job, though the job runs again" $ \(_, client) -> do
    _ <- new client jobDefaults ""
    again <- newEmptyMVar
    goesOn <- newEmptyMVar
    tries <- newIORef []
    let handler running = do
          note tries (runningAttempt running)
          case runningAttempt running of
            1 -> takeMVar again >> reportProgress running 0.5 "half" >>= putMVar goesOn
            2 -> fail "it is broken"
            _ -> putMVar again () >> void (readMVar goesOn)
          pure ""
    working client quick handler $ do
      eventuallyReturns 20 [1] (readIORef tries)
      left client
      working client quick handler $ within 20 (readMVar goesOn) `shouldReturn` False
  it "tells how far a job is that says no number" $ \(_, client) -> do
    job <- new client jobDefaults ""
    let handler running = "" <$ (reportProgress running (0 / 0) "of nothing" >>= (`shouldBe` True))
    working client quick handler $ finally' client job JobDone
    fmap jobInfoProgress <$> jobInfo client mails job `shouldReturn` Just (Just (0, "of nothing"))
  it "does not run what was cancelled while it waited or was delayed" $ \(_, client) -> do
    waiting <- new client jobDefaults "cancelled"
    delayed <- new client jobDefaults {jobDue = DueIn (milliseconds 20)} "cancelled"
    cancelJob client mails waiting `shouldReturn` Just JobWaiting
    cancelJob client mails delayed `shouldReturn` Just JobDelayed
    cancelJob client mails (JobId "nobody") `shouldReturn` Nothing
    ran <- newIORef []
    after' <- new client jobDefaults {jobDue = DueIn (milliseconds 100)} "last"
    working client quick (\job -> "" <$ note ran (runningPayload job)) $ finally' client after' JobDone
    readIORef ran `shouldReturn` ["last"]
  it "counts the jobs that wait right though one was cancelled after a worker had taken it" $ \(_, client) -> do
    taken <- new client jobDefaults ""
    run client (Redis.xgroupCreate "{mails}:jobs:normal" "workers" (Redis.GroupAfter (Redis.StreamId 0 0)))
    _ <- run client (Redis.xreadgroup (Redis.Consumer "workers" "slow") ("{mails}:jobs:normal" :| []))
    _ <- new client jobDefaults ""
    cancelJob client mails taken `shouldReturn` Just JobWaiting
    page <- stateNormal <$> jobsState client mails
    (stateWaiting page, stateRunning page) `shouldBe` (1, 0)
  it "puts scheduled jobs into the queue, once each however many workers there are" $ \(_, client) -> do
    first <- addUTCTime 0.1 <$> serverTime client
    let plan = Schedule {scheduleName = "tick", scheduleEvery = milliseconds 200, scheduleFirst = Just first, scheduleOptions = jobDefaults, schedulePayload = "tock"}
    schedule client mails plan
    ran <- newIORef []
    let handler job = "" <$ (serverTime client >>= \now -> note ran (runningId job, now))
    working client quick handler . working client quick handler . working client quick handler $ do
      eventually 20 "five ran" ((>= 5) . length <$> readIORef ran)
      unschedule client mails "tick" `shouldReturn` True
    ids <- map (jobIdBytes . fst) <$> readIORef ran
    length (nub ids) `shouldBe` length ids
    forM_ [0 .. 4 :: Int] $ \n -> do
      found <- lookup n . zip [0 ..] . reverse <$> readIORef ran
      fmap snd found `shouldSatisfy` maybe False (>= addUTCTime (0.2 * fromIntegral n - 0.001) first)
    schedule client mails plan {scheduleFirst = Nothing, scheduleEvery = hours 1}
    stateSchedules <$> jobsState client mails `shouldReturn` 1
    unschedule client mails "tick" `shouldReturn` True
    unschedule client mails "tick" `shouldReturn` False
  it "runs no job once more when its schedule is given again, and goes over to other times" $ \(_, client) -> do
    first <- addUTCTime (-60) <$> serverTime client
    let plan = Schedule {scheduleName = "tick", scheduleEvery = hours 1, scheduleFirst = Just first, scheduleOptions = jobDefaults {jobRetention = mempty}, schedulePayload = "tock"}
        next = run client (Redis.zscore "{mails}:jobs:schedules" "tick")
    -- Twice, as if the answer had been lost: the job of the first time is made all the same.
    schedule client mails plan >> schedule client mails plan
    began <- next
    working client quick (const (pure "")) $ eventuallyReturns 20 1 (stateDone <$> jobsState client mails)
    let later time = fmap (+ 3600000 * time) began
    next `shouldReturn` later 1
    schedule client mails plan
    next `shouldReturn` later 1
    schedule client mails plan {scheduleFirst = Nothing}
    next `shouldReturn` later 1
    schedule client mails plan {scheduleEvery = minutes 30}
    next `shouldReturn` later 0.5
    schedule client mails plan {scheduleFirst = Just (addUTCTime 7200 first)}
    next `shouldReturn` later 2
  it "has a page of its state in one command" $ \(_, client) -> do
    empty <- jobsState client mails
    (stateNormal empty, stateDelayed empty, stateWorkers empty) `shouldBe` (PriorityState 0 0 Nothing, 0, 0)
    replicateM_ 3 (new client jobDefaults "")
    replicateM_ 2 (new client jobDefaults {jobPriority = Urgent} "")
    _ <- new client jobDefaults {jobDue = DueIn (hours 1)} ""
    gate <- newEmptyMVar
    working client quick {workerConcurrency = 3} (\_ -> "" <$ readMVar gate) $ do
      eventuallyReturns 20 (0, 2, 2, 1) $ (\page -> (stateWaiting (stateUrgent page), stateRunning (stateUrgent page), stateWaiting (stateNormal page), stateRunning (stateNormal page))) <$> jobsState client mails
      page <- jobsState client mails
      (stateDelayed page, stateFailed page, stateDone page, stateWorkers page) `shouldBe` (1, 0, 0, 1)
      stateOldest (stateNormal page) `shouldSatisfy` maybe False (< seconds 60)
      stateOldest (stateUrgent page) `shouldBe` Nothing
      putMVar gate ()
      eventuallyReturns 20 5 (stateDone <$> jobsState client mails)
  it "counts a worker that has nothing to do" $ \(_, client) ->
    working client quick (const (pure "")) $ eventuallyReturns 20 1 (stateWorkers <$> jobsState client mails)
  it "can be stopped while it tells that it cannot look for jobs that are due" $ \(_, client) -> do
    run client (Redis.set "{mails}:jobs:schedules" "of another type")
    telling <- newEmptyMVar
    running <- async (runJobs client mails quick {workerReport = \_ -> putMVar telling () >> atomically retry} (const (pure "")))
    takeMVar telling
    within 10 (cancel running)
  it "runs every job though worker after worker is killed" $ \(server, client) -> do
    jobs <- forM [0 .. 99 :: Int] $ \n -> new client jobDefaults {jobMaxAttempts = 50} (Char8.pack (show n))
    forM_ [1 .. 4 :: Int] $ \_ ->
      withJobProcess server $ \process -> do
        sofar <- stateDone <$> jobsState client mails
        eventually 30 "progress" ((> sofar + 8) . stateDone <$> jobsState client mails)
        Process.kill9 process
    withJobProcess server . const . eventuallyReturns 60 100 $ stateDone <$> jobsState client mails
    Map.keys <$> handledCounts client `shouldReturn` [0 .. 99]
    states <- forM jobs (fmap (fmap jobInfoState) . jobInfo client mails)
    states `shouldBe` replicate 100 (Just JobDone)
  it "runs every job though the server loses one of the queue's streams again and again" $ \(_, client) ->
    working client quick (const (pure "")) $
      forM_ [1 .. 20 :: Int] $ \_ -> do
        eventuallyReturns 20 1 (run client (Redis.exists (pure "{mails}:jobs:later")))
        _ <- run client (Redis.del (pure "{mails}:jobs:later"))
        job <- new client jobDefaults {jobMaxAttempts = 1, jobPriority = Urgent} ""
        finally' client job JobDone
  it "loses no job when one of the queue's keys is of another type for a while" $ \(_, client) -> do
    let spoilt name action = do
          run client (Redis.set name "of another type")
          result <- action
          result <$ run client (Redis.del (pure name))
        stream = "{mails}:jobs:normal"
        failingOf = either (\(_ :: Error) -> True) (const False)
        unique = jobDefaults {jobId = Just (JobId "unique"), jobUnique = Just (Unique "ada" (hours 1))}
    spoilt stream (failingOf <$> try (enqueue client mails unique "")) `shouldReturn` True
    enqueue client mails unique "" `shouldReturn` Enqueued (JobId "unique")
    working client quick (const (pure "")) $ finally' client (JobId "unique") JobDone
    -- A job that becomes due.
    delayed <- new client jobDefaults {jobDue = DueIn (milliseconds 1)} ""
    _ <- run client (Redis.del (pure stream))
    troubled <- newTVarIO False
    spoilt stream . within 20 $
      -- A worker of other streams only, so that it goes on.
      withAsync (runJobs client mails quick {workerStreams = "{mails}:jobs:urgent" :| [], workerReport = const (atomically (writeTVar troubled True))} (const (pure ""))) . const $
        atomically (readTVar troubled >>= check)
    -- A job that fails, while it is impossible to delay it.
    broken <- newTVarIO True
    let handler _ = do
          isBroken <- readTVarIO broken
          when isBroken $ do
            _ <- run client (Redis.del (pure "{mails}:jobs:delayed"))
            run client (Redis.set "{mails}:jobs:delayed" "of another type")
            fail "it is broken"
          pure ""
    first <- newEmptyTMVarIO
    let report = \case
          WorkerTrouble _ -> void (atomically (tryPutTMVar first ()))
          _ -> pure ()
    working client quick {workerConcurrency = 1, workerReport = report} handler $ do
      within 20 (atomically (takeTMVar first))
      atomically (writeTVar broken False)
      _ <- run client (Redis.del (pure "{mails}:jobs:delayed"))
      finally' client delayed JobDone
    -- Jobs that are done, while it is impossible to count them. What became of one is told before the
    -- worker begins the next.
    uncounted <- replicateM 2 (new client jobDefaults "")
    troubles <- newTVarIO []
    spoilt "{mails}:jobs:done" $
      working client quick {workerConcurrency = 1, workerReport = \event -> atomically (modifyTVar' troubles (event :))} (const (pure "")) $
        forM_ uncounted (\job -> finally' client job JobDone)
    map show <$> readTVarIO troubles `shouldReturn` []
  it "does not count a try that a worker's stop has ended" $ \(_, client) -> do
    job <- new client jobDefaults {jobMaxAttempts = 1} ""
    begun <- newEmptyMVar
    forM_ [1 .. 2 :: Int] $ \_ ->
      working client quick {workerGrace = milliseconds 20} (\running -> putMVar begun (runningAttempt running) >> atomically retry) $
        takeMVar begun `shouldReturn` 1
    working client quick (const (pure "")) $ finally' client job JobDone
  it "does not run a job again that was cancelled while it ran, when its worker stops" $ \(_, client) -> do
    job <- new client jobDefaults "cancelled"
    begun <- newEmptyMVar
    working client quick {workerGrace = milliseconds 20} (\_ -> putMVar begun () >> atomically retry) $ do
      takeMVar begun
      cancelJob client mails job `shouldReturn` Just JobRunning
    ran <- newIORef []
    after' <- new client jobDefaults {jobPriority = Later} "last"
    working client quick (\running -> "" <$ note ran (runningPayload running)) $ do
      finally' client job JobCancelled
      finally' client after' JobDone
    readIORef ran `shouldReturn` ["last"]
    queueLengths client `shouldReturn` [0, 0, 0]
    retryJob client mails job `shouldReturn` True
    working client quick (const (pure "")) $ finally' client job JobDone
  it "is the same in a cluster" $ \_ -> withCluster clusterDefaults {clusterPrimaryCount = 3} $ \cluster -> do
    addresses <- clusterAddresses cluster
    let seeds = [TcpEndpoint (Char8.pack host) (fromIntegral port) | TcpAddress host port <- addresses]
    forM_ (nonEmpty seeds) $ \some -> withClient (clusterConfig some) $ \client -> do
      jobs <-
        concat
          <$> forM
            [Queue "a", Queue "b", Queue "c", Queue "d"]
            ( \queue -> do
                now <- enqueue client queue jobDefaults "x"
                later <- enqueue client queue jobDefaults {jobDue = DueIn (milliseconds 50), jobUnique = Just (Unique "u" (hours 1))} "y"
                runUntil client queue quick (pure . runningPayload) $ do
                  eventuallyReturns 20 2 (stateDone <$> jobsState client queue)
                pure [now, later]
            )
      length [() | Enqueued _ <- jobs] `shouldBe` 8

mails :: Queue
mails = Queue "mails"

quick :: Worker
quick =
  (jobWorker mails)
    { workerConcurrency = 4,
      workerBackoff = backoffDefaults {backoffFirst = milliseconds 30, backoffCap = milliseconds 100},
      workerClaimAfter = milliseconds 600,
      workerPollInterval = milliseconds 100
    }

working :: Client -> Worker -> (Running -> IO ByteString) -> IO a -> IO a
working client = runUntil client mails

-- | Runs a worker until the action is over, and then waits until the worker has stopped.
runUntil :: Client -> Queue -> Worker -> (Running -> IO ByteString) -> IO a -> IO a
runUntil client queue settings handler action = do
  stop <- newTVarIO False
  withAsync (runJobs client queue settings {workerStreams = workerStreams (jobWorker queue), workerUntil = readTVar stop >>= check} handler) $ \running -> do
    result <- action
    atomically (writeTVar stop True)
    result <$ wait running

normal :: ByteString
normal = "{mails}:jobs:normal"

-- | The entries of jobs that workers have.
entries :: Client -> IO [Redis.StreamId]
entries client = map Redis.pendingEntryId <$> run client (Redis.xpendingRange normal "workers" 10)

-- | Makes it look as if a worker had died that had these entries.
left :: Client -> IO ()
left client = entries client >>= mapM_ (run client . Redis.xclaimJustidWith idle normal (Redis.Consumer "workers" "dead") mempty) . NonEmpty.nonEmpty
  where
    idle = Redis.xclaimDefaults {Redis.xclaimIdle = Just (Redis.ClaimIdleFor (seconds 60))}

named :: Enqueued -> JobId
named = \case
  Enqueued job -> job
  Present job -> job

-- | Puts in a job that must not be there yet.
new :: Client -> JobOptions -> ByteString -> IO JobId
new client options payload =
  enqueue client mails options payload >>= \case
    Enqueued job -> pure job
    Present job -> failure (show job <> " was there")

finally' :: Client -> JobId -> JobState -> IO ()
finally' client job expected = eventuallyReturns 20 (Just expected) (fmap jobInfoState <$> jobInfo client mails job)

note :: IORef [a] -> a -> IO ()
note ref one = atomicModifyIORef' ref (\others -> (one : others, ()))

serverTime :: Client -> IO UTCTime
serverTime client = run client Redis.time

queueLengths :: Client -> IO [Int]
queueLengths client = traverse (fmap fromIntegral . run client . Redis.xlen) ["{mails}:jobs:urgent", "{mails}:jobs:normal", "{mails}:jobs:later"]
