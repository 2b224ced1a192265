-- | A campaign's report: the document of all cells as JSON, and a report with a table for each
-- question, in Markdown and, with charts, in HTML.
module Tool.Campaign.Report
  ( writeReport,
    reportText,
    reportPage,
  )
where

import Data.Aeson (encode)
import Data.ByteString.Lazy qualified as Lazy
import Data.List (intercalate, nub)
import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust, mapMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import System.FilePath ((</>))
import Text.Read (readMaybe)
import Tool.Bench.Document
import Tool.Bench.Document.Json (documentValue)
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Html (bullets, manifestSection, page, paragraph, tableOf, titled)
import Tool.Bench.Html.Charts (runCharts, spectra, throughputs)
import Tool.Bench.Sink (writeWhole)
import Tool.Campaign.Design (cellName)
import Tool.Campaign.Measure (seriesPhases)
import Tool.Campaign.Plan
import Tool.Campaign.Views
import Tool.ChangePoint (Phase (..))
import Tool.Chart
import Tool.Markup (Markup, text)
import Tool.Span (renderSpan)
import Tool.Statistics (Summary (..), summarise)
import Tool.Text (duration, fixed, percent, thousands)

-- | Writes the reports into a directory and returns their paths. Throws 'IOException' if the disk
-- is full.
writeReport :: FilePath -> Plan -> Document -> IO [FilePath]
writeReport folder planned document = do
  writeWhole json (encode (documentValue document))
  writeWhole markdown (Lazy.fromStrict (Text.encodeUtf8 (reportText planned document)))
  writeWhole html (reportPage planned document)
  pure [json, markdown, html]
  where
    json = folder </> "campaign.json"
    markdown = folder </> "report.md"
    html = folder </> "report.html"

-- | The report in Markdown.
reportText :: Plan -> Document -> Text
reportText planned document =
  Text.unlines . map Text.pack . intercalate [""] . filter (not . null) $
    [ ["# Campaign"],
      about planned document,
      problems runs,
      concatMap (("" :) . viewText) (views cells),
      if null soaks then [] else "## Soaks" : concatMap (("" :) . soakText) soaks,
      headed "## After kill -9, and after a power cut" (durabilityLines cells),
      "## All cells" : "" : allCells cells,
      headed "## Notes" (map (("- " <>) . Text.unpack) (documentNotes document))
    ]
  where
    headed title lines' = if null lines' then [] else title : "" : lines'
    runs = documentRuns document
    soaks = filter isSoak runs
    cells = filter (not . isSoak) runs

isSoak :: Run -> Bool
isSoak = Text.isPrefixOf "soak " . runName

introduction :: Plan -> Document -> String
introduction planned document =
  show (length cells) <> " cells, " <> show (planIterations planned)
    <> " iterations each with a server of its own, measured in turns; "
    <> renderSpan (costsDuration costs)
    <> " after "
    <> renderSpan (costsWarmup costs)
    <> " of warm-up. \
       \Throughput is the mean of the iterations with its 95 % interval of confidence; \
       \latencies are those of all iterations together."
    <> concat
      [ " The baseline, " <> baseline <> ", was not measured: the tables have "
          <> instead
          <> " in its place."
        | baseline <- map (cellName . snd) (take 1 (planCells planned)),
          instead <- map (Text.unpack . runName) (take 1 cells),
          instead /= baseline
      ]
  where
    costs = planCosts planned
    cells = filter (not . isSoak) (documentRuns document)

about :: Plan -> Document -> [String]
about planned document =
  [introduction planned document]
    <> ["", "| | |", "|---|---|"]
    <> [ "| " <> name <> " | " <> value <> " |"
         | (name, value) <-
             [ ("Directories", intercalate "; " directories),
               ("Processor", processor),
               ("Memory", maybe "unknown" gigabytes (manifestMemory facts)),
               ("Kernel", Text.unpack (manifestOs facts <> " " <> manifestKernel facts)),
               ("Servers", intercalate ", " (nub servers)),
               ("Command", "`redis-client " <> command <> "`")
             ]
       ]
  where
    facts = documentManifest document
    directories =
      [ Text.unpack (Text.drop 10 name) <> ": " <> Text.unpack value
        | (name, value) <- Map.toList (manifestFacts facts),
          "directory_" `Text.isPrefixOf` name
      ]
    processor =
      maybe "unknown" Text.unpack (manifestCpu facts)
        <> ", "
        <> show (manifestProcessors facts)
        <> " processors"
        <> (if manifestVirtual facts then ", virtual" else "")
    command = Text.unpack (Text.unwords (manifestCommand facts))
    gigabytes bytes = fixed 1 (fromIntegral bytes / 1e9) <> " GB"
    servers = [Text.unpack (serverName (runServer run)) | run <- documentRuns document]

problems :: [Run] -> [String]
problems runs = case [(runName run, problem) | run <- runs, problem <- runProblems run] of
  [] -> []
  found ->
    ["## Not valid", "", "These numbers must not be used."]
      <> [""]
      <> ["- " <> Text.unpack name <> ": " <> Text.unpack problem | (name, problem) <- found]

viewText :: View -> [String]
viewText view =
  [ "## " <> Text.unpack (viewTitle view),
    "",
    Text.unpack (viewAbout view) <> " Commands a second, and the latency that 99 % stay below.",
    "",
    row (Text.unpack (viewAxis view) : map Text.unpack (viewColumns view)),
    row ("---" : map (const "---:") (viewColumns view))
  ]
    <> [ row (Text.unpack (rowValue each) : map (maybe "" cell) (rowCells each))
         | each <- viewRows view
       ]
  where
    cell run = rate run <> Text.unpack (mark run) <> "<br>" <> duration (Histogram.percentile 99 (runService run))

-- The mean and its interval. For two iterations: both rates.
rate :: Run -> String
rate run = case runRates run of
  [one, other] -> perSecond one <> ", " <> perSecond other
  several -> case summarise several of
    Just Summary {summaryMean, summaryInterval = Just (_, high)} ->
      perSecond summaryMean <> " ± " <> perSecond (high - summaryMean)
    _ -> perSecond (runRate run)
  where
    perSecond = thousands . round

row :: [String] -> String
row cells = "| " <> intercalate " | " cells <> " |"

allCells :: [Run] -> [String]
allCells runs =
  [ row (["cell", "ops/s"] <> ["redis-benchmark ops/s" | compared] <> columns),
    row (["---", "---:"] <> ["---:" | compared] <> replicate 6 "---:")
  ]
    <> map cells runs
  where
    columns =
      ["p50", "p99", "p99.9", "max", "client CPU µs/op", "client's share of its processors"]
    reached = thousands . round . referenceOpsPerSecond
    compared = any (isJust . runReference) runs
    cells run =
      let service = runService run
          at = duration . (`Histogram.percentile` service)
       in row $
            [Text.unpack (runName run) <> Text.unpack (mark run), rate run]
              <> [maybe "" reached (runReference run) | compared]
              <> [ at 50,
                   at 99,
                   at 99.9,
                   duration (Histogram.maximumValue service),
                   fixed 2 (runCpuPerOp run / 1000),
                   maybe "" percent (highestTrust trustCpuShare run)
                 ]

-- The verdict on a soak, and its levels if there are several.
soakVerdict :: Run -> (String, [[String]])
soakVerdict run = case found of
  [_] ->
    ( "One level from beginning to end: "
        <> thousands (round (runRate run))
        <> " commands a second.",
      []
    )
  [] -> ("Too short to tell.", [])
  _ ->
    ( show (length found) <> " levels; their mean, " <> thousands (round (runRate run))
        <> " commands a second, describes none of them.",
      [ [ renderSpan (fromIntegral (phaseFirst phase) * step),
          renderSpan (fromIntegral (phaseLength phase) * step),
          thousands (round (phaseMedian phase)),
          thousands (round (phaseMean phase))
        ]
        | phase <- found
      ]
    )
  where
    series = concatMap iterationSeries (runIterations run)
    found = seriesPhases series
    step = case series of
      first : _ -> sliceSpan first
      [] -> 1

soakText :: Run -> [String]
soakText run =
  ["### " <> Text.unpack (runName run), "", said]
    <> if null levels
      then []
      else
        ["", row ["from", "for", "commands a second", "mean"], row ["---:", "---:", "---:", "---:"]]
          <> map row levels
  where
    (said, levels) = soakVerdict run

durabilityLines :: [Run] -> [String]
durabilityLines runs =
  [ "- " <> Text.unpack (runName run) <> ": " <> Text.unpack note
    | run <- runs,
      note <- runNotes run,
      any (`Text.isPrefixOf` note) beginnings
  ]
  where
    beginnings = ["killed in the middle", "power cut in the middle", "no power cut was tried"]

-- | The report as an HTML page: a chart and a table for each question, the soaks over time, the
-- checks of durability, every cell, and the machine that measured them.
reportPage :: Plan -> Document -> Lazy.ByteString
reportPage planned document =
  page "Campaign" . concat $
    [ [paragraph "lead" (Text.pack (introduction planned document))],
      bullets "bad" invalid,
      map section (views cells),
      sectionOf "Latency by persistence" $
        if length persistences > 1 then figures (spectra "Latency spectrum" persistences) else [],
      concat
        [ sectionOf (runName run) (map (paragraph "note") (levels run) <> figures (runCharts run))
          | run <- soaks
        ],
      told "After kill -9, and after a power cut" (map (Text.pack . drop 2) (durabilityLines cells)),
      sectionOf "All cells" (figures (throughputs cells) <> [cellTable cells]),
      told "Notes" (documentNotes document),
      [manifestSection "Where it was measured" (documentManifest document)]
    ]
  where
    (soaks, cells) = List.partition isSoak (documentRuns document)
    sectionOf title content = [titled title content | not (null content)]
    told title found = sectionOf title (bullets "" found)
    invalid = [runName run <> ": " <> problem | run <- cells <> soaks, problem <- runProblems run]
    levels run =
      let (said, parts) = soakVerdict run
       in Text.pack said :
            [ Text.pack (level <> " commands a second from " <> from <> " on, for " <> long)
              | from : long : level : _ <- parts
            ]
    persistences =
      [ (value, run)
        | view <- take 1 (filter ((== "persistence") . viewAcross) (views cells)),
          each <- take 1 (viewRows view),
          (value, Just run) <- zip (viewColumns view) (rowCells each)
      ]

figures :: [Chart] -> [Markup]
figures = map figure

section :: View -> Markup
section view =
  titled (viewTitle view) $
    paragraph "note" (viewAbout view) :
    figures (viewCharts view)
      <> [ tableOf
             (viewAxis view : viewColumns view)
             [ text (rowValue each) : map (text . maybe "" cell) (rowCells each)
               | each <- viewRows view
             ]
         ]
  where
    cell run =
      Text.pack (thousands (round (runRate run))) <> "/s, p99 "
        <> format Nanoseconds (fromIntegral (Histogram.percentile 99 (runService run)))
        <> mark run

-- Stands beside the numbers of a run that must not be used.
mark :: Run -> Text
mark run = if runValid run then "" else " (not valid)"

-- Curves over numbers, bars over names.
viewCharts :: View -> [Chart]
viewCharts view
  | viewAxis view `elem` ["payload", "clients"] =
    [ curves "Throughput" rates throughput,
      curves "Latency, p99" (axis "p99" Logarithmic Nanoseconds) latency
    ]
  | otherwise = [bars]
  where
    rates = axis "commands per second" Linear Thousands
    quantity = viewAxis view <> (if viewAxis view == "payload" then ", bytes" else "")
    titledBy name = name <> " by " <> viewAxis view <> " and " <> viewAcross view
    throughput run = (runRate run, interval run)
    -- The interval of two values is so wide that it hides the rest.
    interval run = case summarise (runRates run) of
      Just summary | summaryCount summary > 2 -> summaryInterval summary
      _ -> Nothing
    latency run = (fromIntegral (Histogram.percentile 99 (runService run)), Nothing)
    curves name vertical value =
      lineChart
        (titledBy name)
        ""
        (axis quantity Logarithmic Plain, vertical)
        [curve column [(x, value run) | (x, run) <- points] | (column, points) <- columns]
    curve column points =
      (line column [(x, y) | (x, (y, _)) <- points])
        { lineRibbon = [(x, max 0 low, high) | (x, (_, Just (low, high))) <- points]
        }
    -- The runs of each column that exist, with their numbers.
    columns =
      [ (column, points)
        | (number, column) <- zip [0 ..] (viewColumns view),
          let points = mapMaybe (point number) (viewRows view),
          -- One point is no curve; the table has it.
          length points > 1
      ]
    point number each = do
      x <- readMaybe (Text.unpack (rowValue each))
      run <- case drop number (rowCells each) of
        Just run : _ -> Just run
        _ -> Nothing
      pure (x, run)
    bars =
      barChart
        (titledBy "Throughput")
        "The whisker is the 95 % interval of the mean over the iterations."
        rates
        (viewColumns view)
        [Group (rowValue each) (map (fmap barOf) (rowCells each)) | each <- viewRows view]
    barOf run =
      Bar
        { barValue = runRate run,
          barWhisker = interval run,
          barNote = if runValid run then "" else "INVALID"
        }

cellTable :: [Run] -> Markup
cellTable runs =
  tableOf
    ["cell", "commands/s", "p50", "p99", "p99.9", "max", "client CPU/op", "redis-benchmark"]
    [ map
        text
        ( [runName run <> mark run, Text.pack (thousands (round (runRate run)))]
            <> [latency share run | share <- [50, 99, 99.9, 100]]
            <> [format Nanoseconds (runCpuPerOp run), maybe "" reached (runReference run)]
        )
      | run <- runs
    ]
  where
    latency share run =
      format Nanoseconds (fromIntegral (Histogram.percentile share (runService run)))
    reached = Text.pack . thousands . round . referenceOpsPerSecond
