module Tool.MergeSpec (spec, actAsSampler, sampler) where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (concurrently)
import Control.Monad (replicateM, when)
import Data.Aeson (encode)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy qualified as Lazy
import Data.Either (fromLeft, isRight)
import Data.List (isInfixOf, sort)
import Data.List.NonEmpty (NonEmpty (..))
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Time.Clock.POSIX (getPOSIXTime)
import Redis qualified
import Redis.Commands qualified as Commands
import Redis.Config qualified as Config
import Redis.TestKit.Server
import Sample
import System.Environment (getArgs, getEnvironment, getExecutablePath)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import System.Process (CreateProcess (env), proc, readCreateProcessWithExitCode)
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck hiding (sample)
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Document.Json (decodeDocument, documentValue)
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Histogram.Recorder (drain, newRecorder, record)
import Tool.Bench.Time (monotonic)
import Tool.Merge

-- | An environment variable that makes a process of these tests take samples and write them down.
actAsSampler :: String
actAsSampler = "REDIS_CLIENT_TEST_ACTS_AS_SAMPLER"

-- | Times this many commands, and writes each time, and a document that has only their histogram.
-- The arguments are the second at which to begin, host, port, count and two files.
sampler :: IO ()
sampler =
  getArgs >>= \case
    [begin, host, port, count, raw, json]
      | [(number, "")] <- reads port,
        [(times, "")] <- reads count,
        [(moment, "")] <- reads begin -> do
        recorder <- newRecorder
        untilSecond moment
        started <- getPOSIXTime
        latencies <- Redis.withClient (Config.standaloneConfig (Char8.pack host) number) $ \client ->
          replicateM times $ do
            before' <- monotonic
            _ <- Redis.run client (Commands.set "sample" (Char8.pack host))
            after' <- monotonic
            (after' - before') <$ record recorder (after' - before')
        ended <- getPOSIXTime
        held <- drain recorder
        writeFile raw (unlines (map show latencies))
        Lazy.writeFile json . encode . documentValue . sampleDocument . pure $
          running (truncate (started * 1000000000)) (realToFrac (ended - started)) held []
    arguments -> fail ("what is " <> show arguments <> "?")

-- | Waits for this second. Both processes begin together, as the generators do.
untilSecond :: Int -> IO ()
untilSecond moment = do
  now <- getPOSIXTime
  when (now < fromIntegral moment) $ threadDelay (ceiling ((fromIntegral moment - now) * 1000000)) >> untilSecond moment

running :: Int -> Double -> Histogram -> [Slice] -> Run
running started seconds held slices =
  sample
    { runName = "cell",
      runIterations =
        [ sampleIteration
            { iterationStarted = started,
              iterationSeconds = seconds,
              iterationCommands = Map.fromList [("set", CommandStats 0 0 Map.empty held Nothing)],
              iterationSeries = slices,
              iterationAgreement = NotComparable "not asked"
            }
        ]
    }

second :: Int
second = 1000000000

-- | A window with a steady rate: whole seconds from a time, with this many commands in each.
steady :: Int -> Int -> Int -> Run
steady started seconds rate =
  running started (fromIntegral seconds) (fold' seconds) [Slice (fromIntegral at) 1 (Map.fromList [("set", SliceStats each Nothing 0)]) | at <- [0 .. seconds - 1]]
  where
    each = Histogram.fromValues (replicate rate 1000)
    fold' times = mconcat (replicate times each)

ahead :: Int -> Run -> Run
ahead nanos run = run {runServer = (runServer run) {serverClock = Just (Clock nanos 50)}}

merging :: [(Text, Run)] -> Either String Document
merging = \case
  [] -> Left "nothing"
  first : rest -> mergeDocuments (fmap (fmap (sampleDocument . pure)) (first :| rest))

only :: Either String Document -> (Document -> Run -> Expectation) -> Expectation
only merged check = case merged of
  Right document | [run] <- documentRuns document -> check document run
  other -> expectationFailure (fromLeft "not one run" other)

spec :: Spec
spec = describe "Tool.Merge" $ do
  prop "finds the percentiles of all samples, however they were divided" $
    forAll (listOf1 (choose (0, 4000000000))) $ \one ->
      forAll (listOf1 (choose (0, 4000000000))) $ \other ->
        case merging [("a", running 0 1 (Histogram.fromValues one) []), ("b", running 0 1 (Histogram.fromValues other) [])] of
          Right document -> map runService (documentRuns document) === [Histogram.fromValues (one <> other)]
          Left problem -> counterexample problem False

  it "counts the rate only while all were at it" $
    only (merging [("a", steady 0 10 100), ("b", steady (3 * second) 10 40)]) $ \_ run -> do
      runRate run `shouldBe` 140
      runOps run `shouldBe` 1400
      map (fmap commonSeconds . iterationCommon) (runIterations run) `shouldBe` [Just 7]
      runSeconds run `shouldBe` 13
      [sum (Histogram.count . sliceService <$> sliceCommands slice) | one <- runIterations run, slice <- iterationSeries one]
        `shouldBe` replicate 3 100 <> replicate 7 140 <> replicate 3 40

  it "takes a part of a slice that lies in the common time partly" $
    only (merging [("a", steady 0 4 100), ("b", steady (second `div` 2) 4 100)]) $ \_ run -> do
      map (fmap commonSeconds . iterationCommon) (runIterations run) `shouldBe` [Just 3.5]
      runRate run `shouldBe` 200

  it "leaves the rest of a slice at the end of all windows as short as it is" $ do
    let begun at =
          let each = Histogram.fromValues (replicate 100 1000)
              slices = [Slice place long (Map.fromList [("set", SliceStats each Nothing 0)]) | (place, long) <- [(0, 1), (1, 1), (2, 0.5)]]
           in running at 2.5 (each <> each <> each) slices
    only (merging [("a", begun 0), ("b", begun (second `div` 8))]) $ \_ run -> do
      map (map sliceSpan . iterationSeries) (runIterations run) `shouldBe` [[1, 1, 0.625]]
      map (map sliceOps . iterationSeries) (runIterations run) `shouldBe` [[200, 200, 200]]

  it "puts the windows on one clock, and says what it took it for" $ do
    -- The second one's clock is two seconds ahead: they began together.
    only (merging [("a", ahead 100 (steady 0 5 100)), ("b", ahead (100 + 2 * second) (steady (2 * second) 5 100))]) $ \document run -> do
      map (fmap commonSeconds . iterationCommon) (runIterations run) `shouldBe` [Just 5]
      map originClock (documentOrigins document) `shouldBe` [Just (Clock 0 100), Just (Clock (2 * second) 100)]
      documentNotes document `shouldSatisfy` any ("b: its clock is ahead of that of a by 2 s, give or take 100 ns" `Text.isInfixOf`)
    only (merging [("a", steady 0 5 100), ("b", steady 0 5 100)]) $ \document _ ->
      documentNotes document `shouldSatisfy` any ("was not compared" `Text.isInfixOf`)

  it "adds up the loads" $
    only (merging [("a", steady 0 5 100), ("b", steady 0 5 100)]) $ \_ run ->
      (specThreads (runSpec run), specInFlight (runSpec run)) `shouldBe` (32, 2048)

  it "adds up what failed and what was missed: of all, of each command, of each node and in each slice" $ do
    let with timeouts lost = (\run -> run {runIterations = map (marked timeouts lost) (runIterations run)}) (steady 0 1 100)
        marked timeouts lost one =
          one
            { iterationErrors = Map.fromList ([("Timeout", timeouts), ("Lost", lost)] <> [("Only " <> Text.pack (show lost), 1)]),
              iterationCommands = Map.map (failing timeouts lost) (iterationCommands one),
              iterationNodes = Map.singleton "s:1" (NodeStats (Map.fromList [("Timeout", timeouts), ("Lost", lost)]) (Histogram.fromValues [1000])),
              iterationSeries = [slice {sliceCommands = Map.map (\stats -> stats {sliceErrors = timeouts + lost}) (sliceCommands slice)} | slice <- iterationSeries one],
              iterationAgreement = Agrees (Map.fromList [("set", 10 * timeouts)]),
              iterationCpu = fromIntegral timeouts
            }
        failing timeouts lost stats =
          stats {commandHits = timeouts, commandMisses = lost, commandErrors = Map.fromList [("Timeout", timeouts), ("Lost", lost)]}
        both = Map.fromList [("Timeout", 3 + 4 + 6), ("Lost", 7 + 5 + 11)]
    only (merging [("a", with 3 7), ("b", with 4 5), ("c", with 6 11)]) $ \_ run -> do
      runErrors run `shouldBe` Map.union both (Map.fromList [("Only 7", 1), ("Only 5", 1), ("Only 11", 1)])
      fmap commandErrors (runCommands run) `shouldBe` Map.singleton "set" both
      (runHits run, runMisses run) `shouldBe` (13, 23)
      map (fmap nodeErrors . iterationNodes) (runIterations run) `shouldBe` [Map.singleton "s:1" both]
      map (map (fmap sliceErrors . sliceCommands) . iterationSeries) (runIterations run) `shouldBe` [[Map.singleton "set" 36]]
      runAgreement run `shouldBe` Agrees (Map.fromList [("set", 130)])
      map iterationCpu (runIterations run) `shouldBe` [13]

  it "does not believe windows that never overlapped" $
    only (merging [("a", steady 0 5 100), ("b", steady (6 * second) 5 100)]) $ \_ run ->
      runProblems run `shouldSatisfy` any ("no moment in common" `Text.isInfixOf`)

  it "keeps what was wrong with one, but not that it saw the other's commands" $ do
    let disagreeing = judged . (\run -> run {runIterations = [one {iterationAgreement = reversedAgreement} | one <- runIterations run]})
        failing = judged . (\run -> run {runIterations = [one {iterationErrors = Map.fromList [("Timeout", 1)]} | one <- runIterations run]})
    only (merging [("a", disagreeing (steady 0 5 100)), ("b", disagreeing (steady 0 5 100))]) $ \_ run -> do
      runProblems run `shouldBe` []
      runAgreement run `shouldSatisfy` \case NotComparable _ -> True; _ -> False
    only (merging [("a", steady 0 5 100), ("b", failing (steady 0 5 100))]) $ \_ run ->
      runProblems run `shouldBe` ["b: 1 commands failed: 1 Timeout"]

  it "says why there is nothing to merge" $ do
    merging [("a", steady 0 1 1)] `shouldBe` Left "one document alone cannot be merged"
    merging [("a", steady 0 1 1), ("b", (steady 0 1 1) {runName = "other"})]
      `shouldBe` Left "no run is in all of them: a has cell; b has other"

  modifyMaxSuccess (const 20) . prop "takes any documents" $
    forAll (scale (min 8) anyDocument) $ \one ->
      forAll (scale (min 8) anyDocument) $ \other ->
        case mergeDocuments (("a", one) :| [("b", other {documentRuns = documentRuns one <> documentRuns other})]) of
          Right merged -> counterexample "cannot be read again" (isRight (decodeDocument (Lazy.toStrict (encode (documentValue merged)))))
          Left problem -> counterexample problem (null (documentRuns one))

  describe "of real processes" $ do
    it "has the percentiles of all their raw samples" $
      withServer serverDefaults $ \server -> withSystemTempDirectory "merge-spec" $ \folder -> do
        begin <- (\now -> ceiling now + 1 :: Int) <$> getPOSIXTime
        let take' name = program actAsSampler [show begin, serverHost server, show (serverPort server), "4000", folder </> name <> ".raw", folder </> name <> ".json"]
        (one, other) <- concurrently (take' "a") (take' "b")
        map fst [one, other] `shouldBe` [ExitSuccess, ExitSuccess]
        (code, _) <- program "REDIS_CLIENT_TEST_ACTS_AS_PROGRAM" ["bench", "merge", folder </> "a.json", folder </> "b.json", "--json", folder </> "all.json"]
        code `shouldBe` ExitSuccess
        samples <- sort . map read' . concatMap lines <$> traverse readFile [folder </> "a.raw", folder </> "b.raw"]
        merged <- ByteString.readFile (folder </> "all.json")
        only (decodeDocument merged) $ \_ run -> do
          let held = runService run
              nearest percent = case drop (max 0 (ceiling (percent * fromIntegral (length samples) / 100 - 1e-9 :: Double) - 1)) samples of
                value : _ -> value
                [] -> 0
          length samples `shouldBe` 8000
          (Histogram.count held, Histogram.total held) `shouldBe` (8000, sum (map toInteger samples))
          (take 1 samples, take 1 (reverse samples)) `shouldBe` ([Histogram.minimumValue held], [Histogram.maximumValue held])
          filter (\percent -> abs (Histogram.percentile percent held - nearest percent) * 1024 > nearest percent) [1, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100]
            `shouldBe` []

    it "adds up two generators that were told when to begin" $
      withServer serverDefaults $ \server -> withSystemTempDirectory "merge-spec" $ \folder -> do
        now <- getPOSIXTime
        let begin = ceiling now + 5 :: Int
            load name =
              program
                "REDIS_CLIENT_TEST_ACTS_AS_PROGRAM"
                ["bench", "-h", serverHost server, "-p", show (serverPort server), "--operation", "get", "--duration", "1", "--warmup", "0.1", "--keys", "500", "--start-at", show begin, "--json", folder </> name]
        ((one, said), (other, said')) <- concurrently (load "a.json") (load "b.json")
        (one, other, said, said') `shouldSatisfy` \(code, code', _, _) -> (code, code') == (ExitSuccess, ExitSuccess)
        (code, output) <- program "REDIS_CLIENT_TEST_ACTS_AS_PROGRAM" ["bench", "merge", folder </> "a.json", folder </> "b.json", "--json", folder </> "all.json", "--html", folder </> "all.html"]
        code `shouldBe` ExitSuccess
        output `shouldSatisfy` ("b.json: its clock is ahead of that of a.json by" `isInfixOf`)
        parts <- traverse (fmap (either (const []) documentRuns . decodeDocument) . ByteString.readFile) [folder </> "a.json", folder </> "b.json"]
        merged <- ByteString.readFile (folder </> "all.json")
        only (decodeDocument merged) $ \_ run -> do
          runService run `shouldBe` foldMap runService (concat parts)
          -- They began at the same moment, as far as their clocks show.
          map (fmap ((> 0.9) . commonSeconds) . iterationCommon) (runIterations run) `shouldBe` [Just True]
          abs (runRate run / sum (map runRate (concat parts)) - 1) `shouldSatisfy` (< 0.15)
  where
    read' text = case reads text of
      [(value, "")] -> value :: Int
      _ -> -1

-- | Starts this program again in another role. Returns its exit code and its output.
program :: String -> [String] -> IO (ExitCode, String)
program role arguments = do
  self <- getExecutablePath
  inherited <- getEnvironment
  (code, output, problem) <- readCreateProcessWithExitCode (proc self arguments) {env = Just ((role, "1") : filter ((/= role) . fst) inherited)} ""
  pure (code, output <> problem)
