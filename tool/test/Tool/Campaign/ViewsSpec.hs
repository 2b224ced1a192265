module Tool.Campaign.ViewsSpec (spec) where

import Data.ByteString.Lazy qualified as Lazy
import Data.List.NonEmpty (NonEmpty (..))
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Sample (sample, sampleManifest, sampleSpec)
import Test.Hspec
import Tool.Bench.Document hiding (Spec, documentOf)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Campaign.Design
import Tool.Campaign.Measure (loadArguments, phaseEvents)
import Tool.Campaign.Report
import Tool.Campaign.Workload
import Tool.Options.Load (Check (..))

-- | A run at this cell.
at :: Cell -> Run
at cell =
  sample
    { runName = Text.pack (cellName cell),
      runSpec =
        sampleSpec
          { specAxes =
              Map.fromList
                [ ("workload", Text.pack (cellWorkload cell)),
                  ("persistence", Text.pack (persistenceName (cellPersistence cell))),
                  ("place", Text.pack (namedLabel (cellPlace cell))),
                  ("payload", Text.pack (show (cellPayload cell))),
                  ("clients", Text.pack (show (cellClients cell))),
                  ("net", Text.pack (netName (cellNet cell))),
                  ("server", Text.pack (namedLabel (cellServer cell)))
                ]
          }
    }

cells :: [(Reason, Cell)]
cells =
  star
    carriesValue
    Axes
      { axesServers = Named "redis-server" "redis-server" :| [],
        axesPersistence = PersistAofEverysec :| [PersistNone, PersistAofAlways],
        axesPlaces = Named "disk" "/tmp" :| [],
        axesWorkloads = "set" :| ["get"],
        axesPayloads = 3 :| [300, 30],
        axesClients = 50 :| [1],
        axesNets = NetLocal :| [NetRoundTrip 124000]
      }

found :: Text -> [View]
found title = filter ((== title) . viewTitle) (views (map (at . snd) cells))

slices :: [Int] -> [Slice]
slices counts =
  [ Slice
      { sliceAt = time,
        sliceSpan = 1,
        sliceCommands = Map.singleton "set" SliceStats {sliceService = Histogram.fromValues (replicate held 1000), sliceResponse = Nothing, sliceErrors = 0}
      }
    | (time, held) <- zip [0 ..] counts
  ]

spec :: Spec
spec = do
  describe "Tool.Campaign.Report, the views" $ do
    it "lays two axes out, the others at the baseline" $ do
      case found "Workloads and persistence" of
        [view] -> do
          viewColumns view `shouldBe` ["none", "aof-everysec", "aof-always"]
          map rowValue (viewRows view) `shouldBe` ["set", "get"]
          map (map isJust . rowCells) (viewRows view) `shouldBe` [[True, True, True], [False, True, True]]
        other -> expectationFailure (show (length other))

    it "puts numbers in their order" $
      map (map rowValue . viewRows) (found "Size of values and persistence") `shouldBe` [["3", "30", "300"]]

    it "shows distance where every write is synchronised" $
      case found "Distance and callers, every write synchronised" of
        [view] -> do
          viewColumns view `shouldBe` ["1", "50"]
          concatMap (map isJust . rowCells) (viewRows view) `shouldBe` [True, True, True, True]
        other -> expectationFailure (show (length other))

    it "leaves out what has nothing to compare" $
      found "Servers and persistence" `shouldSatisfy` null

  describe "Tool.Campaign.Report" $ do
    let planned = Plan {planCells = cells, planIterations = 3, planSoaks = [], planCosts = Costs 1 5 1 0 0, planCuts = []}
        measured = map (at . snd) cells
        documentOf runs = Document {documentManifest = sampleManifest, documentRuns = runs, documentNotes = ["said"], documentOrigins = []}

    it "has a table for each question, and every cell" $ do
      let document = documentOf measured
          text = reportText planned document
      Text.count "\n## " text `shouldSatisfy` (>= 6)
      text `shouldSatisfy` Text.isInfixOf "- said"
      [cellName cell | (_, cell) <- cells, not (Text.pack (cellName cell) `Text.isInfixOf` text)] `shouldBe` []

      let html = Text.decodeUtf8 (Lazy.toStrict (reportPage planned document))
      Text.count "<svg" html `shouldSatisfy` (> 10)
      html `shouldSatisfy` Text.isInfixOf "Workloads and persistence"

    it "marks the numbers that must not be used, wherever they stand" $ do
      let broken = [run {runProblems = ["it broke"]} | run <- take 1 measured]
          marked = Text.count "(not valid)"
      marked (reportText planned (documentOf (broken <> drop 1 measured))) `shouldSatisfy` (> 2)
      marked (Text.decodeUtf8 (Lazy.toStrict (reportPage planned (documentOf (broken <> drop 1 measured))))) `shouldSatisfy` (> 2)
      marked (Text.decodeUtf8 (Lazy.toStrict (reportPage planned (documentOf measured)))) `shouldBe` 0

    it "does not count soaks as cells" $ do
      let soak = (at (Cell (Named "redis-server" "redis-server") PersistNone (Named "disk" "/tmp") "set" 3 50 NetLocal)) {runName = "soak 1"}
      reportText planned (documentOf (measured <> [soak]))
        `shouldSatisfy` Text.isInfixOf (Text.pack (show (length cells)) <> " cells, 3 iterations")

    it "names the cell that stands in the place of a baseline that was not measured" $ do
      let missing = "The baseline, " <> nameOf (take 1 measured) <> ", was not measured: the tables have " <> nameOf (take 1 (drop 1 measured))
          nameOf = foldMap runName
      reportText planned (documentOf (drop 1 measured)) `shouldSatisfy` Text.isInfixOf missing
      Text.decodeUtf8 (Lazy.toStrict (reportPage planned (documentOf (drop 1 measured)))) `shouldSatisfy` Text.isInfixOf missing
      reportText planned (documentOf measured) `shouldSatisfy` (not . Text.isInfixOf "was not measured")

  describe "Tool.Campaign.Measure" $ do
    it "tells the load what the cell asks for" $ do
      let measuring =
            Measuring
              { measuringServerCores = [],
                measuringCores = [],
                measuringWarmup = 1,
                measuringDuration = 5,
                measuringKeys = 10000,
                measuringKeyForm = Nothing,
                measuringReference = False,
                measuringAllowed = [Saturation, Little],
                measuringDurability = 0
              }
      case (cells, findWorkload "set") of
        ((_, cell) : _, Just workload) ->
          unwords (loadArguments measuring cell workload 5)
            `shouldBe` "bench --test set --keys 10000 --value-size 3 --threads 50 --batch 1 --warmup 1.000 --duration 5.000 --slice 0.500 --allow saturation,little"
        _ -> expectationFailure "no cell"

    it "marks where the throughput changes its level" $ do
      map eventAt (phaseEvents (slices (replicate 30 160 <> replicate 30 18))) `shouldBe` [30]
      map eventText (phaseEvents (slices (replicate 30 160 <> replicate 30 18)))
        `shouldBe` ["from 160 to 18 a second"]
      phaseEvents (slices (replicate 60 160)) `shouldBe` []
      phaseEvents (slices [1, 100]) `shouldBe` []
