-- | Operations of more than one command: the outcome of their replies, and how long the whole
-- operation takes.
module Tool.Bench.Workload.AloneSpec (spec) where

import Control.Monad (forM_)
import Data.Either (isLeft)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Redis qualified
import Redis.Config qualified as Config
import Redis.Error (Error)
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Scripted
import Redis.TestKit.Server (command, serverDefaults, serverHost, serverPort, withServer)
import Test.Hspec
import Tool.Bench.Arrivals (Arrivals (Constant))
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Progress (silent)
import Tool.Bench.Run (measure)
import Tool.Bench.Workload
import Tool.Bench.Workload.Dataset (Shape (..), defaultShape)
import Tool.Bench.Workload.Syntax (parse)
import Tool.Bench.Workload.Template
import Tool.Bench.Workload.Values (ValueSizes (SizeFixed))
import Tool.Connect (plainTarget)
import Tool.Options.Bench
import Tool.Options.Load
import Tool.Relay (relayPort, withRelay)

-- | A workload with this number of keys and one test.
workloadOf :: Int -> String -> IO Workload
workloadOf keys written = do
  tasks <- either fail pure (parse mix written)
  either fail pure (makeWorkload Nothing defaultShape {shapeKeys = keys, shapeSizes = SizeFixed 8} tasks)

-- | The outcome of one operation of the workload, if the server answers like this.
comesTo :: Workload -> [Redis.TestKit.Scripted.Expectation] -> IO (Either Error Outcome)
comesTo workload expected =
  withScripted (inAnyOrder expected) $ \server ->
    Redis.withClient (Config.standaloneConfig "127.0.0.1" (fromIntegral (scriptedPort server))) $ \client -> do
      stream <- newStream workload 0
      next workload stream >>= \case
        DrawnAlone 0 action -> action client
        _ -> fail "not an operation of its own"

spec :: Spec
spec = describe "an operation of several commands" $ do
  describe "that waits for what it pushes" $ do
    let popping pushed popped = do
          workload <- workloadOf 1 "blpop"
          let value = workloadValue workload 0
              pushing = (== ["RPUSH", value]) . (\sent -> take 1 sent <> drop 2 sent)
          comesTo workload [onAny "BLPOP" ((== ["BLPOP"]) . take 1) [replies (popped value)], onAny "RPUSH" pushing [pushed]]
        one = replies (Number 1)

    it "is a hit where it gets that" $
      popping one (\value -> List [Text "queue:0", Text value]) `shouldReturn'` Right Hit

    it "is wrong where it gets something else" $
      popping one (const (List [Text "queue:0", Text "another"])) `shouldReturn'` Right (Wrong "another")

    it "is a miss where it waited in vain" $
      popping one (const Nil) `shouldReturn'` Right Miss

    it "is an error where the push or the pop is refused" $ do
      popping (fails "OOM no memory") (\value -> List [Text "queue:0", Text value]) >>= (`shouldSatisfy` isLeft)
      popping one (const (Failed "NOPERM no")) >>= (`shouldSatisfy` isLeft)

    it "gets that in an open loop, which has many on their way, and after a run that was killed" $
      withServer serverDefaults $ \server -> do
        _ <- command server ["RPUSH", "queue:0", "left by an earlier run"]
        workload <- workloadOf 1000 "blpop"
        let plan = defaultPlan {planBrief = True, planWarmup = WarmupFor 0, planSample = Nothing, planRequests = Just 500, planSending = AtTimes (Constant 2000)}
        run <- measure silent (plainTarget "127.0.0.1" (fromIntegral (serverPort server))) workload defaultLoad {loadPlan = plan}
        runErrors run `shouldBe` Map.empty
        runHits run `shouldBe` 500

  describe "of a transaction" $ do
    let executing executed = do
          workload <- workloadOf 1 "transaction"
          let (key, value) = (workloadKey workload 0, workloadValue workload 0)
              queued words' = on words' [replies (Status "QUEUED")]
          comesTo
            workload
            [ on ["MULTI"] [replies (Status "OK")],
              queued ["SET", key, value],
              queued ["GET", key],
              on ["EXEC"] [replies (executed value)]
            ]

    it "is a hit where it reads what it set" $
      executing (\value -> List [Status "OK", Text value]) `shouldReturn'` Right Hit

    it "is wrong where it reads something else" $
      executing (const (List [Status "OK", Text "another"])) `shouldReturn'` Right (Wrong "another")

    it "is an error where it is not executed" $ do
      executing (const Nil) >>= (`shouldSatisfy` isLeft)
      executing (const (Failed "EXECABORT no")) >>= (`shouldSatisfy` isLeft)

  describe "to a server that is twenty milliseconds away" $ do
    -- Four round trips, one after the other.
    let least = 4 * 20000000
        distant many load =
          withServer serverDefaults $ \server ->
            withRelay 10000000 (TcpAddress (serverHost server) (serverPort server)) $ \relay -> do
              workload <- workloadOf 1 "transaction"
              run <- measure silent (plainTarget "127.0.0.1" (fromIntegral (relayPort relay))) workload (load (Just many))
              runErrors run `shouldBe` Map.empty
              runAgreement run `shouldBe` Agrees (Map.fromList [(name, many) | name <- ["multi", "set", "get", "exec"]])
              (runHits run, runMisses run, Histogram.count (runService run)) `shouldBe` (many, 0, many)
              Histogram.minimumValue (runService run) `shouldSatisfy` (>= least)
              pure run
        plan = defaultPlan {planBrief = True, planWarmup = WarmupFor 0, planSample = Nothing}
        closed batch many = defaultLoad {loadThreads = 1, loadBatch = batch, loadPlan = plan {planRequests = many}}
        open many = defaultLoad {loadPlan = plan {planRequests = many, planSending = AtTimes (Constant 500)}}
        window run = round (runSeconds run * 1e9) :: Integer

    forM_ [("alone", 1), ("in a batch", 4)] $ \(how, batch) ->
      it ("takes all of that in a closed loop, " <> how <> ", and not more than the time that passed") $ do
        run <- distant 10 (closed batch)
        Histogram.total (runService run) `shouldSatisfy` (<= window run)

    it "takes all of that in an open loop, which does not wait for it before it sends the next" $ do
      run <- distant 100 open
      let late = fromMaybe mempty (foldMap (trustSchedule . iterationTrust) (runIterations run))
      fmap Histogram.total (runResponse run) `shouldBe` Just (Histogram.total (runService run) + Histogram.total late)
      -- One after the other, they would take more time.
      window run `shouldSatisfy` (< 100 * toInteger least)
  where
    shouldReturn' action wanted = action >>= \found -> either (Left . show) Right found `shouldBe` wanted
