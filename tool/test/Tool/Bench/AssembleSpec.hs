-- | From counts to results: the numbers and the charts of a run agree.
module Tool.Bench.AssembleSpec (spec) where

import Data.IntMap.Strict qualified as IntMap
import Data.List (isInfixOf)
import Data.Text qualified as Text
import Data.Text.Lazy qualified as LazyText
import Data.Text.Lazy.Encoding qualified as LazyText
import Sample (sample, sampleDocument, sampleSpec)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck hiding (sample)
import Tool.Bench.Arrivals (Arrivals (..))
import Tool.Bench.Assemble
import Tool.Bench.Counters
import Tool.Bench.Document hiding (Spec)
import Tool.Bench.Document.Totals
import Tool.Bench.Driver (Drive (..))
import Tool.Bench.Environment (Usage (..))
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Html (report)
import Tool.Bench.Html.Charts (loadCurve, runCharts)
import Tool.Bench.Nodes (Nodes (NoNodes))
import Tool.Chart
import WellFormed (textOf)

-- | An open loop with one second for each of these lists of response times. The last list has the
-- response times of commands that were due in the last second and answered after it.
driven :: [[Int]] -> [Int] -> Run
driven slices late =
  sample
    { runSpec = sampleSpec {specLoop = OpenConstant 100},
      runIterations = [fst (assembled (Just (Constant 100)) slices late)],
      runReference = Nothing
    }

-- | The same, and notes. A closed loop if there is no plan.
assembled :: Maybe Arrivals -> [[Int]] -> [Int] -> (Iteration, [Text.Text])
assembled plan slices late = assemble assembly
  where
    assembly =
      Assembly
        { assemblyDrive =
            Drive
              { driveParts = IntMap.fromList ((afterwards, part late) : zip [0 ..] (map part slices)),
                driveFirst = 0,
                driveFrom = 0,
                driveTo = length slices * second,
                driveSlice = second,
                driveWarmup = 0,
                driveSettled = Nothing,
                driveStarted = 0,
                driveUsage = Usage {usageTime = length slices * second, usageCpu = 0, usageGc = Nothing, usageQueued = Nothing},
                driveMemory = Memory 0 0 0
              },
          assemblyKinds = ["get"],
          assemblyNodes = NoNodes,
          assemblyCores = 1,
          assemblyClosed = Nothing,
          assemblyArrivals = plan,
          assemblyRequests = Nothing,
          assemblySamples = [],
          assemblyAgreement = NotComparable "nobody asked",
          assemblyLeniency = Leniency {lenientChecks = [], lenientBehind = True}
        }
    second = 1000000000
    -- Each command is sent a microsecond after it was due.
    part times =
      mempty
        { partKinds = IntMap.fromList [(0, mempty {kindService = Histogram.fromValues (map (subtract 1000) times), kindResponse = Histogram.fromValues times}) | not (null times)],
          partSchedule = Histogram.fromValues (map (const 1000) times)
        }

spec :: Spec
spec = describe "a run, put together" $ do
  prop "is drawn with what it is said to be, with what was answered after the window too" $
    forAll (vectorOf 4 (listOf1 (choose (100000, 3000000)))) $ \slices ->
      forAll (listOf (choose (100000, 4000000000))) $ \late -> do
        let run = driven slices late
            whole = Histogram.fromValues (concat slices <> late)
            drawn title name =
              [y | chart <- runCharts run, chartTitle chart == title, LinePlot found <- [chartPlot chart], one <- linesAll found, lineName one == name, (_, y) <- linePoints one]
            p99 = fromIntegral (Histogram.percentile 99 whole) :: Double
        conjoin
          [ runResponse run === Just whole,
            -- The headline and the table.
            property (("99 % within " <> Text.unpack (format Nanoseconds p99)) `isInfixOf` textOf (shown run)),
            -- The sweep finds its knee by this number, and draws its curve with it.
            stepP99 (stepOf run) === Histogram.percentile 99 whole,
            [y | chart <- loadCurve [run, run], LinePlot found <- [chartPlot chart], one <- linesAll found, lineName one == "p99", (_, y) <- linePoints one] === [p99, p99],
            -- Over time, the slowest response is the slowest of all, and some second is as slow as
            -- the whole.
            length (drawn "Latency over time" "max") === 4,
            maximum (0 : drawn "Latency over time" "max") === fromIntegral (Histogram.maximumValue whole),
            property (maximum (0 : drawn "Latency over time" "p99") >= 0.998 * p99),
            -- Commands answered after the window do not count for the rate.
            runOps run === length (concat slices),
            -- Those that were sent after it were sent latest.
            fmap Histogram.count (foldMap (trustSchedule . iterationTrust) (runIterations run)) === Just (length (concat slices <> late))
          ]

  it "says how long a closed loop waited for a command that was answered after the window, if longest" $ do
    let notes late = snd (assembled Nothing [[2000000], [1000000]] late)
    notes [3000000000] `shouldSatisfy` any ("answered after it, after 3.00 s" `Text.isInfixOf`)
    notes [1500000] `shouldBe` []

  it "shows by iteration what callers waited, as its first table does" $ do
    let run = driven [[2000000, 2000000]] [900000000]
        two = run {runIterations = concat (replicate 2 (runIterations run))}
        table = words (takeWhile' "Everything else" (beyond "By iteration" (textOf (shown two))))
    length (filter (== "900") table) `shouldSatisfy` (>= 2)
  where
    shown run = LazyText.unpack (LazyText.decodeUtf8 (report (sampleDocument [run])))
    beyond part text
      | null text = ""
      | part == take (length part) text = text
      | otherwise = beyond part (drop 1 text)
    takeWhile' part text
      | null text || part == take (length part) text = ""
      | otherwise = take 1 text <> takeWhile' part (drop 1 text)
