-- | Measurements whose result is known beforehand.
--
-- Noise of the machine only ever adds to a latency. So what is measured is
-- compared with what must come out, and a measurement that a busy machine has
-- spoilt may be repeated; one that is wrong is wrong every time.
module Tool.Bench.KnownAnswerSpec (spec) where

import Control.Concurrent.Async (withAsync)
import Control.Monad (forM_)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (modifyIORef', newIORef, readIORef)
import Data.Map.Strict qualified as Map
import Data.Text qualified as Text
import Redis.Config (ReadFrom (PreferReplica))
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Cluster (ClusterOptions (..), clusterNodes, defaultClusterOptions, nodeAddress, withCluster)
import Redis.TestKit.Command (CommandCalls (callsRun))
import Redis.TestKit.Proxy
import Redis.TestKit.Server hiding (freeze, thaw)
import Redis.TestKit.Wait (eventually)
import Test.Hspec
import Tool.Bench.Arrivals (Arrivals (..))
import Tool.Bench.Cpu (monotonic)
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Progress (silent)
import Tool.Bench.Run (measure)
import Tool.Bench.Sleep (sleepUntilExactly)
import Tool.Bench.Workload.Chosen (newWorkload)
import Tool.Connect (Target (..), plainTarget)
import Tool.Options.Bench
import Tool.Options.Load
import Tool.Relay (relayLateness, relayPort, withRelay)

at :: String -> Int -> Target
at host port = plainTarget (Char8.pack host) (fromIntegral port)

to :: Server -> Target
to server = at (serverHost server) (serverPort server)

-- | Few keys, no frills; the test's own threads share this process's cores.
brief :: Double -> Plan -> LoadOptions
brief seconds plan =
  defaultLoad
    { loadDuration = seconds,
      loadKeys = 1000,
      loadValueSize = 32,
      loadPlan = plan {planBrief = True, planAllowed = [Saturation]}
    }

openAt :: Double -> Plan
openAt rate = defaultPlan {planArrivals = Just (Constant rate), planWarmup = WarmupFor 0.2}

closedLoop :: Plan
closedLoop = defaultPlan {planWarmup = WarmupFor 0.2}

get :: Target -> LoadOptions -> IO Run
get target load = measure silent target (newWorkload OperationGet load) load

-- | Up to eight times, until it is as it must be.
repeatedly :: (Show a) => IO a -> (a -> Bool) -> Expectation
repeatedly action good = go (7 :: Int)
  where
    go 0 = action >>= (`shouldSatisfy` good)
    go left = action >>= \found -> if good found then pure () else go (left - 1)

milliseconds :: Double -> Histogram -> Double
milliseconds percent histogram = fromIntegral (Histogram.percentile percent histogram) / 1e6

within :: Double -> Double -> Double -> Bool
within share wanted found = abs (found - wanted) <= share * wanted

spec :: Spec
spec = describe "a known answer" $ do
  it "is found for a server that is five milliseconds away, within 2 %" $
    withServer defaultServerOptions $ \server -> do
      let through held = withRelay held (TcpAddress (serverHost server) (serverPort server)) $ \relay ->
            (,) <$> get (at "127.0.0.1" (relayPort relay)) (brief 1 (openAt 400)) <*> relayLateness relay
          three histogram = [milliseconds percent histogram | percent <- [5, 25, 50]]
          percentiles run = maybe [] three (runResponse run)
      repeatedly
        ( do
            -- What the way costs without the delay.
            nothing <- percentiles . fst <$> through 0
            (run, late) <- through 2500000
            -- A busy machine wakes the relay late, on both ways.
            pure (zipWith (\way tardy -> 5 + way + 2 * tardy) nothing (three late), percentiles run)
        )
        (\(wanted, found) -> length found == 3 && and (zipWith (within 0.02) wanted found))

  it "is found for a server that stalls for 200 ms every 2 s, and a closed loop does not see it" $
    withServer defaultServerOptions $ \server ->
      withProxy (TcpAddress (serverHost server) (serverPort server)) $ \proxy -> do
        let target = at "127.0.0.1" (proxyPort proxy)
            -- Notes how long each stall was: the machine may be late.
            stalling lengths = do
              began <- monotonic
              forM_ [1 :: Int, 3 ..] $ \second -> do
                sleepUntilExactly (began + second * 1000000000)
                from <- monotonic
                freeze proxy ToClient
                sleepUntilExactly (began + second * 1000000000 + 200000000)
                thaw proxy ToClient
                to' <- monotonic
                modifyIORef' lengths (fromIntegral (to' - from) / 1e6 :)
            stalled action = do
              lengths <- newIORef ([] :: [Double])
              found <- withAsync (stalling lengths :: IO ()) (const action)
              (,) found <$> readIORef lengths
        -- At 1000/s, who is due in a stall waits for the rest of it; a tenth of
        -- all does.
        repeatedly
          ( do
              (run, lengths) <- stalled (get target (brief 4 ((openAt 1000) {planWarmup = WarmupFor 0})))
              let waits = concat [takeWhile (> 0) (iterate (subtract 1) long) | long <- lengths] :: [Double]
                  truth = Histogram.fromValues (map (round . (* 1e6)) (waits <> replicate (4000 - length waits) 0))
              pure (maybe [] (\response -> [(milliseconds percent truth, milliseconds percent response) | percent <- [92.5, 95, 97.5, 99, 99.9]]) (runResponse run))
          )
          (\found -> length found == 5 && and [wanted > 40 && within 0.02 wanted response | (wanted, response) <- found])
        -- A single caller is hit by each stall once: two slow commands among
        -- thousands, which no percentile shows.
        (closed, _) <- stalled (get target (brief 4 closedLoop {planWarmup = WarmupFor 0}) {loadThreads = 1, loadBatch = 1})
        milliseconds 99 (runService closed) `shouldSatisfy` (< 50)
        fromIntegral (Histogram.maximumValue (runService closed)) / 1e6 `shouldSatisfy` (\most -> most > 150 && most < (1000 :: Double))

  it "is the count of commands: the server's own, to the last one" $
    withServer defaultServerOptions $ \server -> do
      run <- measure silent (to server) (newWorkload OperationMixed (brief 0.5 closedLoop)) (brief 0.5 closedLoop)
      calls <- commandStatistics server
      let counted name = maybe 0 callsRun (Map.lookup name calls)
      runAgreement run `shouldBe` Agrees (Map.fromList [("get", counted "get"), ("set", counted "set")])

  it "is a count that was asked for" $
    withServer defaultServerOptions $ \server -> do
      run <- get (to server) (brief 1 closedLoop {planRequests = Just 12345, planIterations = 2})
      map iterationOps (runIterations run) `shouldBe` [12345, 12345]
      runProblems run `shouldBe` []
      open <- get (to server) (brief 1 (openAt 5000) {planRequests = Just 1234})
      map iterationOps (runIterations open) `shouldBe` [1234]

  it "is a count that was asked for, and no more is due, of a server that is 100 ms away" $
    withServer defaultServerOptions $ \server ->
      withRelay 50000000 (TcpAddress (serverHost server) (serverPort server)) $ \relay ->
        repeatedly
          (runProblems <$> get (at "127.0.0.1" (relayPort relay)) (brief 1 (openAt 1000) {planRequests = Just 500, planAllowed = [Saturation, Little]}))
          null

  it "is what commands waited that were due in the window and answered after it" $
    withServer defaultServerOptions $ \server ->
      withProxy (TcpAddress (serverHost server) (serverPort server)) $ \proxy -> do
        let stalling = do
              began <- monotonic
              sleepUntilExactly (began + 1500000000)
              freeze proxy ToClient
              sleepUntilExactly (began + 3000000000)
              thaw proxy ToClient
        run <- withAsync stalling (const (get (at "127.0.0.1" (proxyPort proxy)) (brief 2 ((openAt 1000) {planWarmup = WarmupFor 0}))))
        -- What was due in the last half second or more waited for a second or so.
        fmap (milliseconds 90) (runResponse run) `shouldSatisfy` maybe False (> 400)

  it "is a warm-up that did not become steady in its time, or that did" $
    withServer defaultServerOptions $ \server -> do
      let notes most = runNotes <$> get (to server) (brief 0.3 (openAt 1000) {planWarmup = WarmupUntilSteady most, planSlice = 0.1})
      hurried <- notes 0.5
      hurried `shouldSatisfy` any ("the rate did not become steady within 0." `Text.isPrefixOf`)
      hurried `shouldSatisfy` not . any ("the rate was steady" `Text.isPrefixOf`)
      repeatedly (notes 30) (any ("the rate was steady after" `Text.isPrefixOf`))

  it "is the sum of the slices, with none left out" $
    withServer defaultServerOptions $ \server -> do
      run <- get (to server) (brief 1.1 closedLoop {planSlice = 0.25})
      forM_ (runIterations run) $ \iteration -> do
        map sliceAt (iterationSeries iteration) `shouldBe` [0, 0.25, 0.5, 0.75, 1]
        sum (map sliceSpan (iterationSeries iteration)) `shouldSatisfy` within 1e-9 1.1
        mconcat [sliceService stats | one <- iterationSeries iteration, stats <- Map.elems (sliceCommands one)]
          `shouldBe` iterationService iteration

  it "is the rate that was asked for, at equal distances and not" $
    withServer defaultServerOptions $ \server -> do
      let planned plan = get (to server) (brief 1 plan)
          sent run = maybe 0 Histogram.count (trustSchedule . iterationTrust =<< firstOf (runIterations run))
          open arrivals = defaultPlan {planArrivals = Just arrivals, planWarmup = WarmupFor 0.1}
      repeatedly
        ((\run -> (runRate run, sent run)) <$> planned (openAt 2000))
        (\(rate, count) -> within 0.02 2000 rate && abs (count - 2000) <= 2)
      repeatedly (runRate <$> planned (open (Poisson 2000))) (within 0.12 2000)
      repeatedly (runRate <$> planned (open (Ramp 1000 3000 1))) (within 0.02 2000)

  it "is invalid when the server cannot keep up with the plan" $
    withServer defaultServerOptions $ \server ->
      withProxy (TcpAddress (serverHost server) (serverPort server)) $ \proxy -> do
        let target = at "127.0.0.1" (proxyPort proxy)
            choke = eventually 20 "the load has begun" ((> 2000) . maybe 0 callsRun . Map.lookup "get" <$> commandStatistics server) >> freeze proxy ToServer
        run <- withAsync choke (const (get target (brief 1.5 (openAt 60000))))
        heal proxy
        runProblems run `shouldNotBe` []

  it "is errors, counted by class, when the server is killed meanwhile" $
    withServer defaultServerOptions $ \server -> do
      let killer = do
            eventually 20 "the load has begun" ((> 500) . maybe 0 callsRun . Map.lookup "get" <$> commandStatistics server)
            kill9 server
      run <- withAsync killer (const (get (to server) (brief 1.5 (openAt 2000))))
      Map.keys (runErrors run) `shouldSatisfy` all (\name -> any (`Text.isPrefixOf` name) ["ConnectionError", "RoutingError"])
      runErrorCount run `shouldSatisfy` (> 100)
      runValid run `shouldBe` False
      length (concatMap iterationSeries (runIterations run)) `shouldBe` 2

  it "is less, and said to be, when the server refuses INFO and CONFIG" $
    withServer defaultServerOptions {optionsUsers = [AclUser {aclName = "guest", aclPassword = "pw", aclRules = "~* +@all -info -config"}]} $ \server -> do
      run <- get (to server) {targetUser = Just "guest", targetPassword = Just "pw"} (brief 0.3 closedLoop)
      runProblems run `shouldBe` []
      length (serverRefused (runServer run)) `shouldBe` 2
      runNotes run `shouldSatisfy` any ("not sampled" `Text.isInfixOf`)
      case runAgreement run of
        NotComparable reason -> reason `shouldSatisfy` Text.isInfixOf "NOPERM"
        other -> expectationFailure (show other)

  it "is the count of commands, and the nodes they went to, when replicas answer the reads" $
    withCluster defaultClusterOptions {clusterMasterCount = 3, clusterReplicasPerMaster = 1, clusterNodeTimeout = 15000} $ \cluster ->
      clusterNodes cluster >>= \case
        node : _ | TcpAddress host port <- nodeAddress node -> do
          run <-
            measure
              silent
              (at host port) {targetKind = TargetCluster, targetReadFrom = PreferReplica}
              (newWorkload OperationMixed (brief 0.5 closedLoop))
              (brief 0.5 closedLoop)
          runProblems run `shouldBe` []
          runAgreement run `shouldSatisfy` \case
            Agrees counts -> Map.size counts == 2 && all (> 0) counts
            _ -> False
          map (Map.size . iterationNodes) (runIterations run) `shouldBe` [3]
          sum (map (sum . fmap (Histogram.count . nodeService) . iterationNodes) (runIterations run)) `shouldBe` runOps run
        _ -> expectationFailure "the cluster has no nodes"

  it "begins when it was told to" $
    withServer defaultServerOptions $ \server -> do
      let began plan = fmap iterationStarted . firstOf . runIterations <$> get (to server) (brief 0.2 plan {planWarmup = WarmupFor 0.1})
      repeatedly
        ( do
            soon <- maybe 0 (+ 3000000000) <$> began closedLoop
            later <- began closedLoop {planStartAt = Just soon}
            pure (subtract (soon + 100000000) <$> later)
        )
        (maybe False ((< 5000000) . abs))
  where
    firstOf = \case
      one : _ -> Just one
      [] -> Nothing
