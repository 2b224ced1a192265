-- | Workers and jobs in a cluster whose slots move and whose primaries change or die.
module Redis.Patterns.WorkerClusterSpec (spec) where

import Control.Concurrent.Async (async, wait)
import Control.Concurrent.STM
import Control.Exception (try)
import Control.Monad (forM, forM_, when)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (toList)
import Data.List (sort)
import Data.Set qualified as Set
import Redis
import Redis.Commands qualified as Redis
import Redis.Patterns.Jobs
import Redis.Patterns.Lock (lockHolder)
import Redis.Patterns.Semaphore (permitsTaken, semaphore)
import Redis.Patterns.Surroundings (moving)
import Redis.Patterns.Work
import Redis.Patterns.Worker
import Redis.TestKit.Address (Address (TcpAddress))
import Redis.TestKit.Cluster
import Redis.TestKit.Wait
import Test.Hspec

spec :: Spec
spec = do
  around (withCluster clusterDefaults {clusterPrimaryCount = 2, clusterNodeTimeout = 15000}) . describe "while slots move" $ do
    it "a worker handles every entry" $ \cluster -> ofCluster cluster $ \client -> do
      handled <- newTVarIO Set.empty
      stopping client numbers (collecting handled) . stopping client numbers (collecting handled) $ do
        adding <- async (addNumbered client "numbers" [0 .. 299])
        moving cluster "numbers"
        wait adding
        eventuallyReturns 30 0 (pendingCount client "numbers" "counters")
      readTVarIO handled `shouldReturn` Set.fromList (filter (not . isFailing) [0 .. 299])
      deadNumbers client "{numbers}:dead" `shouldReturn'` filter isFailing [0 .. 299]
    it "every job is run, and its queue is whole afterwards" $ \cluster -> ofCluster cluster $ \client -> do
      let queue = Queue "moved"
          settings = (jobWorker queue) {workerConcurrency = 4, workerClaimAfter = milliseconds 600, workerPollInterval = milliseconds 50}
      handled <- newTVarIO Set.empty
      stop <- newTVarIO False
      working <- async . runJobs client queue settings {workerUntil = readTVar stop >>= check} $ \job -> do
        pause 0.002
        "" <$ atomically (modifyTVar' handled (Set.insert (runningPayload job)))
      enqueuing <- async . forM [0 .. 199 :: Int] $ \n ->
        enqueueAgain client queue jobDefaults {jobDue = if even n then DueNow else DueIn (milliseconds 20)} (Char8.pack (show n))
      moving cluster "{moved}"
      jobs <- wait enqueuing
      eventuallyReturns 30 200 (stateDone <$> jobsState client queue)
      atomically (writeTVar stop True)
      wait working
      Set.size <$> readTVarIO handled `shouldReturn` 200
      states <- forM jobs (fmap (fmap jobInfoState) . jobInfo client queue)
      states `shouldBe` replicate 200 (Just JobDone)
      forM_ ["urgent", "normal", "later"] $ \name -> run client (Redis.xlen ("{moved}:jobs:" <> name)) `shouldReturn` 0
  around (withCluster clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1, clusterNodeTimeout = 1000}) . describe "of which a primary goes" $ do
    it "a worker handles every entry that the new one has" $ \cluster -> ofCluster cluster $ \client -> do
      withDedicated client (AtKey "numbers") $ \connection -> do
        forM_ [0 .. 199 :: Int] $ \n -> runOn connection (Redis.xadd "numbers" (("number", Char8.pack (show n)) :| []))
        runOn connection (Redis.wait 1 (Just (seconds 10))) `shouldReturn` 1
      handled <- newTVarIO Set.empty
      slot <- slotOf cluster "numbers"
      stopping client numbers (collecting handled) . stopping client numbers (collecting handled) $ do
        atomically (readTVar handled >>= check . (> 30) . Set.size)
        old <- killPrimary cluster slot
        _ <- awaitNewPrimary cluster slot old
        eventuallyReturns 40 0 (pendingCount client "numbers" "counters")
      readTVarIO handled `shouldReturn` Set.fromList (filter (not . isFailing) [0 .. 199])
      deadNumbers client "{numbers}:dead" `shouldReturn'` filter isFailing [0 .. 199]
  -- A replica whose link to its primary is down answers, too, and does not know what happened since.
  around (withCluster clusterDefaults {clusterPrimaryCount = 1, clusterReplicasPerPrimary = 1}) . describe "whose reads prefer replicas" $
    it "what the recipes ask goes to the primary" $ \cluster -> ofClusterWith watchful cluster $ \client -> do
      run client (Redis.xgroupCreateWith Redis.xgroupCreateDefaults {Redis.xgroupCreateMkstream = True} "numbers" "counters" (Redis.GroupAfter (Redis.StreamId 0 0)))
      addNumbered client "numbers" [7]
      _ <- run client (Redis.xreadgroup (Redis.Consumer "counters" "gone") ("numbers" :| []))
      let heard = do
            said <- run client (onEvery Replicas (Redis.infoOf ("commandstats" :| [])))
            pure [name | stats <- toList said, (name, _) <- stats, name `elem` ["cmdstat_" <> it | it <- ["strlen", "get", "hgetall", "eval_ro", "evalsha_ro", "xpending", "xrange"]]]
      ofClusterWith (watchful . setReadFrom PreferReplica) cluster $ \reader -> do
        eventuallyReturns 20 ["cmdstat_strlen"] (run reader (Redis.strlen "asked") *> heard)
        let queue = Queue "asked"
        Enqueued job <- enqueue reader queue jobDefaults "payload"
        (() <$) <$> jobInfo reader queue job `shouldReturn` Just ()
        _ <- jobsState reader queue
        run reader (permitsTaken (semaphore "asked" 1)) `shouldReturn` 0
        run reader (lockHolder "asked") `shouldReturn` Nothing
        stopping reader numbers {workerMaxAttempts = 1} (const (pure ())) $
          eventuallyReturns 20 [7] (deadNumbers client "{numbers}:dead")
      heard `shouldReturn` ["cmdstat_strlen"]
  where
    numbers = countingWorker {workerMaxAttempts = 5}
    -- The first map may come before the replica has its primary's data.
    watchful = setRefreshInterval (seconds 0.2)
    shouldReturn' action expected = sort <$> action `shouldReturn` expected
    -- A queue whose slot moves gives an error, so the caller tries again.
    enqueueAgain client queue options payload = do
      made <- eventuallyJust 20 "enqueued" (either (\(_ :: Error) -> Nothing) Just <$> try (enqueue client queue options payload))
      case made of
        Enqueued job -> pure job
        Present job -> failure (show job)

ofCluster :: Cluster -> (Client -> IO ()) -> IO ()
ofCluster = ofClusterWith id

ofClusterWith :: (Config -> Config) -> Cluster -> (Client -> IO ()) -> IO ()
ofClusterWith change cluster action = do
  addresses <- clusterAddresses cluster
  let seeds = [TcpEndpoint (Char8.pack host) (fromIntegral port) | TcpAddress host port <- addresses]
  forM_ (nonEmpty seeds) $ \some -> withClient (change (clusterConfig some)) action

collecting :: TVar (Set.Set Int) -> Entry -> IO ()
collecting handled entry = do
  pause 0.002
  when (isFailing (numberOf entry)) (fail "this one fails")
  atomically (modifyTVar' handled (Set.insert (numberOf entry)))
