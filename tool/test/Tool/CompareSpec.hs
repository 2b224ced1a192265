module Tool.CompareSpec (spec) where

import Control.Monad (forM_)
import Data.ByteString.Lazy (ByteString)
import Data.List (isInfixOf)
import Data.Map.Strict qualified as Map
import Data.Maybe (mapMaybe)
import Data.Text qualified as Text
import Data.Text.Lazy qualified as LazyText
import Data.Text.Lazy.Encoding qualified as LazyText
import Sample
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck hiding (sample)
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Compare
import Tool.Compare.Rule
import Tool.Compare.Show
import WellFormed

-- | A run whose iterations each answered this many commands in two seconds, all with this latency
-- in nanoseconds.
running :: Text.Text -> [(Int, Int)] -> Run
running name windows =
  sample
    { runName = name,
      runIterations =
        [ sampleIteration {iterationCommands = Map.fromList [("get", CommandStats ops 0 Map.empty (Histogram.fromValues (replicate ops latency)) Nothing)]}
          | (ops, latency) <- windows
        ]
    }

five :: Int -> Int -> [(Int, Int)]
five ops latency = [(ops + shift, latency + shift) | shift <- [-2 .. 2]]

cellOf :: Run -> Run -> Maybe Cell
cellOf earlier later = case comparisonCells (compareDocuments (sampleDocument [earlier]) (sampleDocument [later])) of
  [cell] -> Just cell
  _ -> Nothing

verdictOf :: Metric -> Run -> Run -> Verdict
verdictOf metric earlier later = changeVerdict (changeOf earlier later metric)

page :: ByteString -> String
page = LazyText.unpack . LazyText.decodeUtf8

spec :: Spec
spec = do
  describe "Tool.Compare" $ do
    it "tells faster from slower, and the same from both" $ do
      verdictOf Throughput (running "a" (five 1000 500)) (running "a" (five 1200 500)) `shouldBe` Better
      verdictOf Throughput (running "a" (five 1000 500)) (running "a" (five 800 500)) `shouldBe` Worse
      verdictOf Throughput (running "a" (five 1000 500)) (running "a" (five 1000 500)) `shouldBe` Same

    it "knows that a higher latency is the worse one" $ do
      verdictOf (Latency 99) (running "a" (five 1000 500)) (running "a" (five 1000 900)) `shouldBe` Worse
      verdictOf (Latency 99) (running "a" (five 1000 900)) (running "a" (five 1000 500)) `shouldBe` Better

    it "decides nothing from one window each" $
      verdictOf Throughput (running "a" [(1000, 500)]) (running "a" [(2000, 500)]) `shouldBe` Unclear

    it "takes the seconds of a single window, and says so" $ do
      let single = map (\run -> run {runIterations = take 1 (runIterations run)}) (documentRuns richDocument)
      case single of
        run : _ -> do
          verdictOf Throughput run run `shouldBe` Same
          fmap cellNotes (cellOf run run) `shouldSatisfy` maybe False (any ("seconds are compared" `Text.isInfixOf`))
        [] -> expectationFailure "no run"

    it "leaves out what is less than a slice at the end of a single window" $
      case documentRuns richDocument of
        run : _ -> do
          let single more = run {runIterations = [one {iterationSeries = iterationSeries one <> more} | one <- take 1 (runIterations run)]}
              means metric more = changeSummaries (changeOf (single []) (single more) metric)
              rest = [Slice {sliceAt = 20, sliceSpan = 0.001, sliceCommands = Map.empty}]
          forM_ [Throughput, Latency 50] $ \metric -> means metric rest `shouldBe` means metric []
        [] -> expectationFailure "no run"

    it "decides nothing of one window each about what only whole windows tell" $
      case documentRuns richDocument of
        run : _ -> do
          let single change = run {runIterations = map change (take 1 (runIterations run))}
              earlier = single id
              later =
                single $ \window ->
                  window
                    { iterationCpu = 1.01 * iterationCpu window,
                      iterationMemory = (iterationMemory window) {memoryPeakResident = 4},
                      iterationCommands = fmap (\stats -> stats {commandMisses = 1}) (iterationCommands window),
                      iterationSeries = [slice {sliceSpan = 2 * sliceSpan slice} | slice <- iterationSeries window]
                    }
          map (length . iterationSeries) (runIterations earlier) `shouldBe` [20]
          map (\metric -> verdictOf metric earlier later) [Cpu, MemoryPeak, Misses] `shouldBe` [Unclear, Unclear, Unclear]
          map (changeP . changeOf earlier later) [Cpu, MemoryPeak, Misses] `shouldBe` [Nothing, Nothing, Nothing]
          -- Equal misses are the same; an equal time may be chance.
          map (\metric -> verdictOf metric earlier earlier) [Cpu, MemoryPeak, Misses] `shouldBe` [Unclear, Unclear, Same]
          -- Slices tell the throughput, which is half as much.
          verdictOf Throughput earlier later `shouldBe` Worse
        [] -> expectationFailure "no run"

    it "pairs runs by name, and says which are alone" $ do
      let found = compareDocuments (sampleDocument [running "a" [], running "b" []]) (sampleDocument [running "b" [], running "c" []])
      map cellName (comparisonCells found) `shouldBe` ["b"]
      comparisonMissing found `shouldBe` (["a"], ["c"])

    it "says what else was different" $ do
      let other = (running "a" []) {runSpec = sampleSpec {specThreads = 32}}
      fmap cellNotes (cellOf (running "a" []) other) `shouldBe` Just ["threads: 16 before, 32 after"]
      -- In words, and not as a value of the program.
      let spec' = runSpec (running "a" [])
          saved = (running "a" []) {runSpec = spec' {specPersistence = Just "none", specMuxCount = Just 2, specLoop = OpenConstant 100, specTls = False}}
          lost = (running "a" []) {runSpec = spec' {specPersistence = Nothing, specMuxCount = Nothing, specLoop = Closed, specTls = True}}
      fmap cellNotes (cellOf saved lost)
        `shouldBe` Just
          [ "connections per node: 2 before, one per capability after",
            "loop: open at 100/s at equal distances before, closed after",
            "TLS: no before, yes after",
            "persistence: none before, unknown after"
          ]
      comparisonNotes (compareDocuments (sampleDocument []) (sampleDocument []) {documentManifest = sampleManifest {manifestKernel = "9"}})
        `shouldBe` ["kernel: 6.1 before, 9 after"]

    it "prints one line for each run" $ do
      let shown = comparisonLines (compareDocuments (sampleDocument [running "a" (five 1000 500)]) (sampleDocument [running "a" (five 800 500)]))
      case shown of
        [_, _, line] -> do
          words line `shouldSatisfy` \found -> take 3 found == ["a", "SLOWER", "500"]
          line `shouldSatisfy` ("-20.0%" `isInfixOf`)
        other -> expectationFailure (unlines other)

    modifyMaxSuccess (const 20) . prop "draws any two documents side by side" $
      forAll (scale (min 10) anyDocument) $ \earlier ->
        forAll (scale (min 10) anyDocument) $ \later -> do
          let html = page (comparisonPage ["a < b"] earlier later (compareDocuments earlier later))
          conjoin [malformed html === Nothing, property (not ("NaN" `isInfixOf` html))]

    it "shows both sides in every chart" $ do
      let shown = textOf (page (comparisonPage [] richDocument richDocument (compareDocuments richDocument richDocument)))
      filter (not . (`isInfixOf` shown)) ["2 unclear", "before", "after", "Latency spectrum", "Throughput over time", "After: where it was measured"]
        `shouldBe` []

  describe "Tool.Compare.Rule" $ do
    let rule text = either (const Nothing) Just (parseRule text)
        fails text earlier later = do
          parsed <- rule text
          cell <- cellOf earlier later
          broken False parsed cell
        fast = running "a" (five 1000 500)
        slow = running "a" (five 900 700)
    it "reads numbers with and without units" $
      mapMaybe rule ["throughput<-5%", "p99>10%", "p99.9 > 5ms", "errors>0", "throughput<100k", "max>.5s", "memory>1MB"]
        `shouldBe` [ Rule Throughput False (Relative (-5)),
                     Rule (Latency 99) True (Relative 10),
                     Rule (Latency 99.9) True (Absolute 5e6),
                     Rule Errors True (Absolute 0),
                     Rule Throughput False (Absolute 1e5),
                     Rule LatencyMax True (Absolute 5e8),
                     Rule MemoryPeak True (Absolute 1e6)
                   ]

    it "says what is wrong and where" $ do
      parseRule "thruput<-5%" `shouldSatisfy` problem ["character 1", "thruput", "throughput"]
      parseRule "throughput" `shouldSatisfy` problem ["character 11", "< or > is missing"]
      parseRule "p99=5ms" `shouldSatisfy` problem ["character 4", "'='"]
      parseRule "p99>" `shouldSatisfy` problem ["character 5", "a number is missing"]
      parseRule "p99>fast" `shouldSatisfy` problem ["character 5", "\"fast\""]
      parseRule "p99>5k" `shouldSatisfy` problem ["character 6", "no unit of p99"]
      parseRule "p99>5..0ms" `shouldSatisfy` problem ["a number is missing"]
      parseRule "" `shouldSatisfy` problem ["character 1"]
      parseRule "throughput<--5%" `shouldSatisfy` problem ["character 12", "a number is missing"]

    it "refuses what can never be broken" $ do
      parseRule "throughput<-5" `shouldSatisfy` problem ["character 12", "never below -5: a change is written with %"]
      parseRule "errors<0" `shouldSatisfy` problem ["never below 0"]
      parseRule "throughput<-100%" `shouldSatisfy` problem ["never below -100%"]
      parseRule "throughput<-99%" `shouldBe` Right (Rule Throughput False (Relative (-99)))

    it "is broken by what is beyond its bound, and only by that" $ do
      fails "throughput<-5%" fast slow `shouldBe` Just "a: throughput is -10.00 %, below -5.00 %"
      fails "throughput<-15%" fast slow `shouldBe` Nothing
      fails "throughput<-5%" slow fast `shouldBe` Nothing
      fails "p50>30%" fast slow `shouldBe` Just "a: p50 is +40.00 %, above +30.00 %"
      fails "p50>600ns" fast slow `shouldBe` Just "a: p50 is 700 ns, above 600 ns"
      fails "p50>800ns" fast slow `shouldBe` Nothing
      fails "errors>0%" fast fast {runIterations = [sampleIteration {iterationErrors = Map.fromList [("x", 1)]}]}
        `shouldBe` Just "a: errors is no longer 0, above 0.00 %"

    it "can ask for more than chance" $ do
      let noisy shift = running "a" [(1000 + shift + 300 * n, 500) | n <- [0 .. 4]]
      case (rule "throughput<-2%", cellOf (noisy 100) (noisy 0), cellOf fast slow) of
        (Just parsed, Just chance, Just real) -> do
          broken False parsed chance `shouldSatisfy` (/= Nothing)
          broken True parsed chance `shouldBe` Nothing
          broken True parsed real `shouldSatisfy` (/= Nothing)
        other -> expectationFailure (show other)
  where
    problem wanted = either (\text -> all (`isInfixOf` text) wanted) (const False)
