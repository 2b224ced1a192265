-- | Measurements whose result is known beforehand.
--
-- A busy machine only ever adds to a latency, so each test checks that a latency is at least what
-- it must be: a command that is due in a stall waits for the rest of it. Against latencies that are
-- too large, the tests check sums that always hold. The commands of a caller that waits for each
-- reply fill the time that passed and no more; a response time is the time until a command was sent
-- and the time that it then took, to the nanosecond. So one measurement is enough, on any machine.
module Tool.Bench.KnownAnswerSpec (spec) where

import Control.Concurrent (getNumCapabilities)
import Control.Concurrent.Async (wait, withAsync)
import Control.Monad (forM_, replicateM)
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Data.Text qualified as Text
import Foreign.C.Types (CInt (..), CUInt (..))
import OnServer (asGuest)
import Redis.Config (ReadFrom (PreferReplica), clusterConfig, setReadFrom)
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Cluster (ClusterOptions (..), clusterDefaults, clusterNodes, nodeAddress, withCluster)
import Redis.TestKit.Command (CommandCalls (callsRun))
import Redis.TestKit.Proxy
import Redis.TestKit.Server hiding (freeze, thaw)
import Redis.TestKit.Wait (eventually)
import Test.Hspec
import Tool.Bench.Arrivals (Arrivals (..), arrivals)
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Document.Totals
import Tool.Bench.Environment (clocks)
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Progress (silent)
import Tool.Bench.Run (measure)
import Tool.Bench.Time (monotonic, sleepUntilExactly)
import Tool.Bench.Workload (newWorkload)
import Tool.Connect (Target (targetEndpoint), plainTarget, targetAt)
import Tool.Options.Bench
import Tool.Options.Load
import Tool.Relay (relayPort, withRelay)
import Tool.Text (fixed)

at :: String -> Int -> Target
at host port = plainTarget (Char8.pack host) (fromIntegral port)

to :: Server -> Target
to server = at (serverHost server) (serverPort server)

-- | Few keys, and no extras. The test's own threads share this process's cores.
brief :: Double -> Plan -> LoadOptions
brief seconds plan =
  defaultLoad
    { loadDuration = seconds,
      loadKeys = 1000,
      loadValueSize = 32,
      loadPlan = plan {planBrief = True, planAllowed = [Saturation]}
    }

openAt :: Double -> Plan
openAt rate = defaultPlan {planSending = AtTimes (Constant rate), planWarmup = WarmupFor 0.2}

closedLoop :: Plan
closedLoop = defaultPlan {planWarmup = WarmupFor 0.2}

get :: Target -> LoadOptions -> IO Run
get target load = measure silent target (newWorkload OperationGet load) load

-- | One caller that waits for each reply before it sends again.
single :: LoadOptions -> LoadOptions
single load = load {loadThreads = 1, loadBatch = 1}

-- | Sleeps without releasing the capability.
foreign import ccall unsafe "usleep" holdTheCapability :: CUInt -> IO CInt

milliseconds :: Double -> Histogram -> Double
milliseconds percent histogram = fromIntegral (Histogram.percentile percent histogram) / 1e6

within :: Double -> Double -> Double -> Bool
within share wanted found = abs (found - wanted) <= share * wanted

spec :: Spec
spec = describe "a known answer" $ do
  it "is found for a server that is fifty milliseconds away: never less, and in all no more than the time that passed" $
    withServer serverDefaults $ \server ->
      withRelay 25000000 (TcpAddress (serverHost server) (serverPort server)) $ \relay -> do
        let target = at "127.0.0.1" (relayPort relay)
            away = 50000000
        begun <- monotonic
        run <- get target (single (brief 1 (cold closedLoop) {planRequests = Just 10}))
        ended <- monotonic
        Histogram.count (runService run) `shouldBe` 10
        Histogram.minimumValue (runService run) `shouldSatisfy` (>= away)
        Histogram.total (runService run) `shouldSatisfy` (<= toInteger (windowNanos run))
        windowNanos run `shouldSatisfy` (< ended - begun)
        -- An open loop with a single command.
        alone <- get target (brief 1 (cold (openAt 1)) {planRequests = Just 1, planIterations = 3})
        length (runIterations alone) `shouldBe` 3
        forM_ (runIterations alone) $ \iteration -> do
          let one = alone {runIterations = [iteration]}
              response = fromMaybe mempty (runResponse one)
          Histogram.count response `shouldBe` 1
          Histogram.minimumValue (runService one) `shouldSatisfy` (>= away)
          Histogram.total response `shouldSatisfy` (<= toInteger (windowNanos one))

  it "leaves out of a window that is shorter than a slice what was answered after it" $
    withServer serverDefaults $ \server ->
      withRelay 25000000 (TcpAddress (serverHost server) (serverPort server)) $ \relay -> do
        run <- get (at "127.0.0.1" (relayPort relay)) (brief 0.1 (cold (openAt 1000)))
        -- What is due in the last 50 ms cannot be answered inside.
        Histogram.count (runService run) `shouldSatisfy` (<= 50)
        Histogram.count (fromMaybe mempty (runResponse run)) `shouldBe` 100

  it "is found for a server that stalls for 200 ms twice, and a closed loop does not see it" $
    withServer serverDefaults $ \server ->
      withProxy (TcpAddress (serverHost server) (serverPort server)) $ \proxy -> do
        let target = at "127.0.0.1" (proxyPort proxy)
            -- The beginning and end of the stall, on the monotonic clock.
            stall = do
              freeze proxy ToClient
              from <- monotonic
              sleepUntilExactly (from + 200000000)
              until' <- monotonic
              thaw proxy ToClient
              sleepUntilExactly (until' + 300000000)
              pure (from, until')
            stalled load = withAsync (loaded server >> replicateM 2 stall) $ \stalling ->
              (,) <$> get target load <*> wait stalling
        -- At 1000/s, a command that is due in a stall waits for the rest of it.
        (run, stalls) <- stalled (brief 2 (cold (openAt 1000)) {planRequests = Just 2000})
        (wall, now) <- clocks
        let from = maybe 0 ((+ (now - wall)) . iterationStarted) (firstOf (runIterations run))
            -- The two clocks agree within a millisecond.
            waits = [maximum (0 : [until' - due - 1000000 | (frozen, until') <- stalls, due > frozen + 1000000]) | number <- [0 .. 1999], let due = from + number * 1000000]
            truth = Histogram.fromValues waits
            response = fromMaybe mempty (runResponse run)
            shares = [90, 91 .. 99] <> [99.9, 100]
        Histogram.count response `shouldBe` 2000
        milliseconds 96 truth `shouldSatisfy` (> 80)
        [(share, milliseconds share truth, milliseconds share response) | share <- shares, milliseconds share response < 0.998 * milliseconds share truth]
          `shouldBe` []
        Histogram.total response `shouldBe` Histogram.total (runService run) + Histogram.total (scheduleOf run)
        -- Each stall hits a single caller once: two slow commands, among all that fit into the time
        -- beside them.
        (closed, _) <- stalled (single (brief 2 (cold closedLoop)))
        Histogram.total (runService closed) `shouldSatisfy` (<= toInteger (windowNanos closed))
        fromIntegral (Histogram.maximumValue (runService closed)) / 1e6 `shouldSatisfy` (> (100 :: Double))

  it "is how long commands waited to be sent, when the generator itself is held up" $
    withServer serverDefaults $ \server -> do
      -- For half a second nothing of this program runs: a quarter of all commands are due then, and
      -- each is late by the rest of that time. The server is well.
      let held = do
            began <- monotonic
            sleepUntilExactly (began + 700000000)
            from <- monotonic
            _ <- holdTheCapability 500000
            to' <- monotonic
            pure (fromIntegral (to' - from) / 1e6)
      (run, long) <- withAsync held $ \holding ->
        (,) <$> get (to server) (brief 2 (cold (openAt 2000)) {planRequests = Just 4000}) <*> wait holding
      let due = foldMap (trustSchedule . iterationTrust) (runIterations run)
          -- A quarter of the commands is late, so the 99th percentile of all is the 96th of the
          -- late ones.
          late = 0.96 * long :: Double
      fmap (milliseconds 99) (runResponse run) `shouldSatisfy` maybe False (> 0.9 * late)
      fmap (milliseconds 99) due `shouldSatisfy` maybe False (> 0.9 * late)
      -- The wait before sending is not part of the service time.
      fmap Histogram.total (runResponse run) `shouldBe` Just (Histogram.total (runService run) + Histogram.total (scheduleOf run))
      -- The table shows how long callers waited.
      milliseconds 99 (runLatencies run) `shouldSatisfy` (> 0.9 * late)

  it "is the count of commands: the server's own, to the last one" $
    withServer serverDefaults $ \server -> do
      run <- measure silent (to server) (newWorkload OperationMixed (brief 0.5 closedLoop)) (brief 0.5 closedLoop)
      calls <- commandStatistics server
      let counted name = maybe 0 callsRun (Map.lookup name calls)
      runAgreement run `shouldBe` Agrees (Map.fromList [("get", counted "get"), ("set", counted "set")])

  it "is a count that was asked for" $
    withServer serverDefaults $ \server -> do
      run <- get (to server) (brief 1 closedLoop {planRequests = Just 12345, planIterations = 2})
      map iterationOps (runIterations run) `shouldBe` [12345, 12345]
      runProblems run `shouldBe` []
      open <- get (to server) (brief 1 (openAt 5000) {planRequests = Just 1234})
      map iterationOps (runIterations open) `shouldBe` [1234]

  it "is a count that was asked for, and no more is due, of a server that is 100 ms away" $
    withServer serverDefaults $ \server ->
      withRelay 50000000 (TcpAddress (serverHost server) (serverPort server)) $ \relay -> do
        run <- get (at "127.0.0.1" (relayPort relay)) (brief 1 (openAt 1000) {planRequests = Just 500})
        -- On a busy machine, some are sent late.
        runProblems run `shouldSatisfy` all ("of at least 499 commands" `Text.isPrefixOf`)
        runOps run `shouldBe` 500

  it "is what commands waited that were due in the window and answered after it" $
    withServer serverDefaults $ \server ->
      withProxy (TcpAddress (serverHost server) (serverPort server)) $ \proxy -> do
        let stalling = do
              loaded server
              began <- monotonic
              freeze proxy ToClient
              -- The window is over by then.
              sleepUntilExactly (began + 3000000000)
              thaw proxy ToClient
        run <- withAsync stalling (const (get (at "127.0.0.1" (proxyPort proxy)) (brief 2 ((openAt 1000) {planWarmup = WarmupFor 0}))))
        -- The commands that were due in its last part waited for a second or more.
        fmap (milliseconds 90) (runResponse run) `shouldSatisfy` maybe False (> 900)
        -- The chart over time includes the same responses as the sum.
        mconcat [sliceResponse stats | iteration <- runIterations run, one <- iterationSeries iteration, stats <- Map.elems (sliceCommands one)]
          `shouldBe` runResponse run

  it "is a warm-up that did not become steady in its time, or that did" $
    withServer serverDefaults $ \server -> do
      let notes most = runNotes <$> get (to server) (brief 0.3 (openAt 1000) {planWarmup = WarmupUntilSteady most, planSlice = 0.1})
      hurried <- notes 0.5
      hurried `shouldSatisfy` any ("the rate did not become steady within 0." `Text.isPrefixOf`)
      hurried `shouldSatisfy` not . any ("the rate was steady" `Text.isPrefixOf`)
      -- If it does not become steady, other programs use the processors.
      patient <- notes 10
      patient `shouldSatisfy` any (\note -> any (`Text.isPrefixOf` note) ["the rate was steady after", "all its threads together waited"])

  it "says how long a warm-up was that waited for a steady rate, also before a number of commands" $
    withServer serverDefaults $ \server ->
      forM_ [Nothing, Just 300] $ \requests -> do
        run <- get (to server) (brief 0.3 (openAt 1000) {planWarmup = WarmupUntilSteady 0.5, planSlice = 0.1, planRequests = requests})
        -- Half a second is too short to tell. The window begins with the slice after it.
        let warmup = specWarmup (runSpec run)
        warmup `shouldSatisfy` (> 0.5)
        runNotes run `shouldSatisfy` elem ("the rate did not become steady within " <> Text.pack (fixed 1 warmup) <> " s")

  it "is a warm-up at the first rate of a ramp, also before a number of commands" $
    withServer serverDefaults $ \server -> do
      run <- get (to server) (brief 1 (openAt 1) {planSending = AtTimes (Ramp 100 20000 0.5), planWarmup = WarmupFor 0.5, planRequests = Just 100})
      -- Fifty commands are due in half a second of warm-up.
      runAgreement run `shouldBe` Agrees (Map.fromList [("get", 150), ("set", 1000)])

  it "is there when the window ends, though the next command is due much later" $
    withServer serverDefaults $ \server -> do
      begun <- monotonic
      _ <- get (to server) (brief 0.3 (openAt 0.02) {planWarmup = WarmupUntilSteady 0.3, planSlice = 0.1})
      ended <- monotonic
      -- The second command is due after fifty seconds.
      ended - begun `shouldSatisfy` (< 40000000000)

  it "is the sum of the slices, with none left out" $
    withServer serverDefaults $ \server -> do
      run <- get (to server) (brief 1.1 closedLoop {planSlice = 0.25})
      length (runIterations run) `shouldBe` 1
      forM_ (runIterations run) $ \iteration -> do
        map sliceAt (iterationSeries iteration) `shouldBe` [0, 0.25, 0.5, 0.75, 1]
        sum (map sliceSpan (iterationSeries iteration)) `shouldSatisfy` within 1e-9 1.1
        mconcat [sliceService stats | one <- iterationSeries iteration, stats <- Map.elems (sliceCommands one)]
          `shouldBe` iterationService iteration

  it "is the rate that was asked for, at equal distances and not" $
    withServer serverDefaults $ \server -> do
      -- One for each capability.
      senders <- getNumCapabilities
      forM_ [Constant 2000, Poisson 2000, Ramp 1000 3000 1] $ \wanted -> do
        run <- get (to server) (brief 1 (cold defaultPlan {planSending = AtTimes wanted}))
        -- All commands that are due in the window, however late they are sent and answered.
        let dueOf = length . takeWhile (< 1000000000) . arrivals wanted (loadSeed defaultLoad) senders
            due = sum (map dueOf [0 .. senders - 1])
        fmap Histogram.count (runResponse run) `shouldBe` Just due
        due `shouldSatisfy` within 0.12 2000 . fromIntegral
        runRate run `shouldSatisfy` (<= fromIntegral due)
        Histogram.count (scheduleOf run) `shouldSatisfy` (<= due)

  it "is invalid when the server cannot keep up with the plan" $
    withServer serverDefaults $ \server ->
      withProxy (TcpAddress (serverHost server) (serverPort server)) $ \proxy -> do
        let target = at "127.0.0.1" (proxyPort proxy)
            choke = do
              eventually 20 "the load has begun" ((> 2000) <$> gets server)
              freeze proxy ToServer
              from <- monotonic
              -- The window is over by then. No more is sent in it than fits into the connection.
              sleepUntilExactly (from + 1500000000)
              thaw proxy ToServer
        run <- withAsync choke (const (get target (brief 1 (openAt 30000))))
        runProblems run `shouldNotBe` []
        runErrors run `shouldBe` Map.empty

  it "is invalid when commands that were asked for by number are sent much later than they are due" $
    withServer serverDefaults $ \server -> do
      -- All are due within two milliseconds.
      run <- get (to server) (brief 1 (cold (openAt 10000000)) {planRequests = Just 20000})
      runOps run `shouldBe` 20000
      runProblems run `shouldSatisfy` any ("were sent in time" `Text.isInfixOf`)

  it "is errors, counted by class, when the server is killed meanwhile" $
    withServer serverDefaults $ \server -> do
      let killer = do
            eventually 20 "the load has begun" ((> 500) <$> gets server)
            kill9 server
      run <- withAsync killer (const (get (to server) (brief 1.5 (openAt 2000))))
      Map.keys (runErrors run) `shouldSatisfy` all (\name -> any (`Text.isPrefixOf` name) ["ConnectionError", "RoutingError", "ServerAway"])
      -- Nobody waited for it after the window, and nobody asked it for its counts.
      Map.keys (runErrors run) `shouldSatisfy` elem "ServerAway"
      runAgreement run `shouldBe` NotComparable "commands failed, and nobody knows which of them ran"
      runNotes run `shouldSatisfy` any (\note -> all (`Text.isInfixOf` note) ["no connection to", "refused"])
      runErrorCount run `shouldSatisfy` (> 100)
      runValid run `shouldBe` False
      length (concatMap iterationSeries (runIterations run)) `shouldBe` 2

  it "is less, and said to be, when the server refuses INFO and CONFIG" $
    withServer serverDefaults {optionsUsers = [AclUser {aclName = "guest", aclPassword = "pw", aclRules = "~* +@all -info -config"}]} $ \server -> do
      run <- get (asGuest (to server)) (brief 0.3 closedLoop)
      runProblems run `shouldBe` []
      length (serverRefused (runServer run)) `shouldBe` 2
      runNotes run `shouldSatisfy` any ("not sampled" `Text.isInfixOf`)
      case runAgreement run of
        NotComparable reason -> reason `shouldSatisfy` Text.isInfixOf "NOPERM"
        other -> expectationFailure (show other)

  it "is the count of commands, and the nodes they went to, when replicas answer the reads" $
    withCluster clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1, clusterNodeTimeout = 15000} $ \cluster ->
      clusterNodes cluster >>= \case
        node : _ | TcpAddress host port <- nodeAddress node -> do
          run <-
            measure
              silent
              (targetAt (setReadFrom PreferReplica (clusterConfig (pure (targetEndpoint (at host port))))))
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
    withServer serverDefaults $ \server -> do
      let began plan = fmap iterationStarted . firstOf . runIterations <$> get (to server) (brief 0.2 plan {planWarmup = WarmupFor 0.1})
      soon <- maybe 0 (+ 3000000000) <$> began closedLoop
      later <- began closedLoop {planStartAt = Just soon}
      -- Both clocks are read together, so a busy machine does not matter.
      fmap (subtract (soon + 100000000)) later `shouldSatisfy` maybe False ((< 5000000) . abs)
  where
    firstOf = \case
      one : _ -> Just one
      [] -> Nothing
    -- The load begins with the window.
    cold plan = plan {planWarmup = WarmupFor 0}
    loaded server = do
      earlier <- gets server
      eventually 20 "the load has begun" ((> earlier + 20) <$> gets server)
    gets = callsOf callsRun "get"
    windowNanos run = round (runSeconds run * 1e9) :: Int
    scheduleOf = fromMaybe mempty . foldMap (trustSchedule . iterationTrust) . runIterations
