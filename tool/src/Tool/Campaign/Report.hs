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
import Data.List (intercalate)
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import System.FilePath ((</>))
import Tool.Bench.Document
import Tool.Bench.Document.Json (documentValue)
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram qualified as Histogram
import Tool.Campaign.Design (cellName)
import Tool.Campaign.Page (Shown (..), campaignPage)
import Tool.Campaign.Plan
import Tool.Campaign.Store (writeWhole)
import Tool.Campaign.Views
import Tool.ChangePoint
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
               ("Servers", intercalate ", " (dedup servers)),
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
    dedup = \case
      [] -> []
      one : others -> one : dedup (filter (/= one) others)

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
    cell run = rate run <> mark run <> "<br>" <> duration (Histogram.percentile 99 (runService run))
    mark run = if runValid run then "" else " (not valid)"

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
  [ row (["cell", "ops/s"] <> ["redis-benchmark ops/s" | compared] <> figures),
    row (["---", "---:"] <> ["---:" | compared] <> replicate 6 "---:")
  ]
    <> map line runs
  where
    figures =
      ["p50", "p99", "p99.9", "max", "client CPU µs/op", "client's share of its processors"]
    reached = thousands . round . referenceOpsPerSecond
    compared = any (isJust . runReference) runs
    line run =
      let service = runService run
          at = duration . (`Histogram.percentile` service)
       in row $
            [Text.unpack (runName run) <> (if runValid run then "" else " (not valid)"), rate run]
              <> [maybe "" reached (runReference run) | compared]
              <> [ at 50,
                   at 99,
                   at 99.9,
                   duration (Histogram.maximumValue service),
                   fixed 2 (runCpuPerOp run / 1000),
                   maybe "" percent (generatorShare run)
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
    found = if length series < 10 then [] else phases defaultSensitivity (map sliceRate series)
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

-- | The report as an HTML page, with charts.
reportPage :: Plan -> Document -> Lazy.ByteString
reportPage planned document =
  campaignPage
    Shown
      { shownTitle = "Campaign",
        shownLead = [Text.pack (introduction planned document)],
        shownCells = cells,
        shownSoaks = [(run, soakLines (soakVerdict run)) | run <- filter isSoak runs],
        shownDurability = map (Text.pack . drop 2) (durabilityLines cells)
      }
    document
  where
    runs = documentRuns document
    cells = filter (not . isSoak) runs
    soakLines (said, levels) =
      Text.pack said :
        [ Text.pack (level <> " commands a second from " <> from <> " on, for " <> long)
          | from : long : level : _ <- levels
        ]

-- The largest share of all iterations.
generatorShare :: Run -> Maybe Double
generatorShare run = if null shares then Nothing else Just (maximum shares)
  where
    shares =
      [ share
        | iteration <- runIterations run,
          Just share <- [trustCpuShare (iterationTrust iteration)]
      ]

durabilityLines :: [Run] -> [String]
durabilityLines runs =
  [ "- " <> Text.unpack (runName run) <> ": " <> Text.unpack note
    | run <- runs,
      note <- runNotes run,
      any (`Text.isPrefixOf` note) beginnings
  ]
  where
    beginnings = ["killed in the middle", "power cut in the middle", "no power cut was tried"]
