-- | A campaign's report: the document of all cells as JSON, and a report with a table for each
-- question, in Markdown and, with charts, in HTML.
--
-- Every cell is a point in a space of seven axes. A view fixes five of them at the baseline (or, in
-- one question, at a log that is synchronised always) and varies the other two.
module Tool.Campaign.Report
  ( writeReport,
    reportText,
    reportPage,
    View (..),
    Row (..),
    views,
  )
where

import Control.Monad (join)
import Data.Aeson (encode)
import Data.ByteString.Lazy qualified as Lazy
import Data.List (intercalate, nub)
import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust, listToMaybe, mapMaybe)
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
import Tool.Campaign.Design
import Tool.Campaign.Measure (seriesPhases)
import Tool.ChangePoint (Phase (..))
import Tool.Chart
import Tool.Markup (Markup, text)
import Tool.Span (renderSpan)
import Tool.Statistics (Summary (..), summarise)
import Tool.Text (duration, fixed, percent, thousands)

-- | Writes the reports into a directory and returns their paths. Throws 'IOException' if the disk
-- is full.
writeReport :: FilePath -> Plan -> Document -> IO [FilePath]
writeReport folder planned document =
  traverse
    (\(name, content) -> (folder </> name) <$ writeWhole (folder </> name) content)
    [ ("campaign.json", encode (documentValue document)),
      ("report.md", Lazy.fromStrict (Text.encodeUtf8 (reportText planned document))),
      ("report.html", reportPage planned document)
    ]

-- | The report in Markdown.
reportText :: Plan -> Document -> Text
reportText planned document =
  Text.unlines . map Text.pack . intercalate [""] . filter (not . null) $
    [ ["# Campaign"],
      about planned document,
      headed "## Not valid\n\nThese numbers must not be used." (map Text.unpack (problemsOf runs)),
      concatMap (("" :) . viewText) (views cells),
      if null soaks then [] else "## Soaks" : concatMap (("" :) . soakText) soaks,
      headed "## After kill -9, and after a power cut" (durabilityLines cells),
      "## All cells" : "" : allCells cells,
      headed "## Notes" (map Text.unpack (documentNotes document))
    ]
  where
    headed title lines' = if null lines' then [] else title : "" : map ("- " <>) lines'
    runs = documentRuns document
    (soaks, cells) = List.partition isSoak runs

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
      [ " The baseline, " <> baseline <> ", was not measured: the tables have " <> instead
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

problemsOf :: [Run] -> [Text]
problemsOf runs = [runName run <> ": " <> problem | run <- runs, problem <- runProblems run]

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
    cell run = rate run <> Text.unpack (mark run) <> "<br>" <> duration (percentileOf 99 run)

percentileOf :: Double -> Run -> Int
percentileOf share = Histogram.percentile share . runService

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

-- | The rate of redis-benchmark: the median of its runs, with the slowest and the fastest.
referenceRate :: Reference -> String
referenceRate found = perSecond (referenceOpsPerSecond found) <> maybe "" range (referenceTurns found)
  where
    range turns = " (" <> perSecond (minimum turns) <> "–" <> perSecond (maximum turns) <> ")"
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
    compared = any (isJust . runReference) runs
    cells run =
      row $
        [Text.unpack (runName run <> mark run), rate run]
          <> [maybe "" referenceRate (runReference run) | compared]
          <> map (duration . (`percentileOf` run)) [50, 99, 99.9]
          <> [duration (Histogram.maximumValue (runService run))]
          <> [fixed 2 (runCpuPerOp run / 1000), maybe "" percent (highestTrust trustCpuShare run)]

-- The verdict on a soak, and its levels if there are several.
soakVerdict :: Run -> (String, [[String]])
soakVerdict run = case found of
  [] -> ("Too short to tell.", [])
  [_] -> ("One level from beginning to end: " <> rate' <> " commands a second.", [])
  _ ->
    ( show (length found) <> " levels; their mean, " <> rate'
        <> " commands a second, describes none of them.",
      [ map (renderSpan . (* step) . fromIntegral) [phaseFirst phase, phaseLength phase]
          <> map (thousands . round) [phaseMedian phase, phaseMean phase]
        | phase <- found
      ]
    )
  where
    rate' = thousands (round (runRate run))
    series = concatMap iterationSeries (runIterations run)
    found = seriesPhases series
    step = maybe 1 sliceSpan (listToMaybe series)

soakText :: Run -> [String]
soakText run =
  ["### " <> Text.unpack (runName run), "", said]
    <> if null levels then [] else "" : map row (heading : map (const "---:") heading : levels)
  where
    heading = ["from", "for", "commands a second", "mean"]
    (said, levels) = soakVerdict run

durabilityLines :: [Run] -> [String]
durabilityLines runs =
  [ Text.unpack (runName run <> ": " <> note)
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
      bullets "bad" (problemsOf (cells <> soaks)),
      map section (views cells),
      sectionOf "Latency by persistence" $
        if length persistences > 1 then map figure (spectra "Latency spectrum" persistences) else [],
      concat
        [ sectionOf (runName run) (map (paragraph "note") (levels run) <> map figure (runCharts run))
          | run <- soaks
        ],
      told "After kill -9, and after a power cut" (map Text.pack (durabilityLines cells)),
      sectionOf "All cells" (map figure (throughputs cells) <> [cellTable cells]),
      told "Notes" (documentNotes document),
      [manifestSection "Where it was measured" (documentManifest document)]
    ]
  where
    (soaks, cells) = List.partition isSoak (documentRuns document)
    sectionOf title content = [titled title content | not (null content)]
    told title found = sectionOf title (bullets "" found)
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

section :: View -> Markup
section view =
  titled (viewTitle view) $
    paragraph "note" (viewAbout view) :
    map figure (viewCharts view)
      <> [ tableOf
             (viewAxis view : viewColumns view)
             [ text (rowValue each) : map (text . maybe "" cell) (rowCells each)
               | each <- viewRows view
             ]
         ]
  where
    cell run =
      Text.pack (thousands (round (runRate run))) <> "/s, p99 " <> latency 99 run <> mark run

latency :: Double -> Run -> Text
latency share = format Nanoseconds . fromIntegral . percentileOf share

-- Stands beside the numbers of a run that must not be used.
mark :: Run -> Text
mark run = if runValid run then "" else " (not valid)"

-- Curves over numbers, bars over names.
viewCharts :: View -> [Chart]
viewCharts view
  | viewAxis view `elem` ["payload", "clients"] =
    [ curves "Throughput" rates throughput,
      curves "Latency, p99" (axis "p99" Logarithmic Nanoseconds) slowest
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
    slowest run = (fromIntegral (percentileOf 99 run), Nothing)
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
      run <- join (listToMaybe (drop number (rowCells each)))
      pure (x, run)
    bars =
      barChart
        (titledBy "Throughput")
        "The whisker is the 95 % interval of the mean over the iterations."
        rates
        (viewColumns view)
        [Group (rowValue each) (map (fmap barOf) (rowCells each)) | each <- viewRows view]
    barOf run = Bar (runRate run) (interval run) (if runValid run then "" else "INVALID")

cellTable :: [Run] -> Markup
cellTable runs =
  tableOf
    ["cell", "commands/s", "p50", "p99", "p99.9", "max", "client CPU/op", "redis-benchmark"]
    [ map
        text
        ( [runName run <> mark run, Text.pack (thousands (round (runRate run)))]
            <> [latency share run | share <- [50, 99, 99.9, 100]]
            <> [format Nanoseconds (runCpuPerOp run), maybe "" (Text.pack . referenceRate) (runReference run)]
        )
      | run <- runs
    ]

-- * Views

-- | Cells in rows and columns.
data View = View
  { viewTitle :: Text,
    viewAbout :: Text,
    -- | The axis of the rows, such as @payload@.
    viewAxis :: Text,
    -- | The axis of the columns.
    viewAcross :: Text,
    viewColumns :: [Text],
    viewRows :: [Row]
  }
  deriving stock (Eq, Show)

-- | One row: its value on the axis, and a cell for each column, if there is one.
data Row = Row
  { rowValue :: Text,
    rowCells :: [Maybe Run]
  }
  deriving stock (Eq, Show)

-- | The views with at least two cells in at least two rows. The first run is the baseline, or
-- another in its place if the baseline could not be measured. The runs must not include soaks.
views :: [Run] -> [View]
views runs = case runs of
  [] -> []
  base : _ -> filter worthwhile (map (viewOf base) questions)
  where
    viewOf base ((title, down, across, overrides), said) =
      View title said down across columns [Row value (map (cell value) columns) | value <- values down]
      where
        wanted =
          [ (name, fromMaybe value (lookup name overrides))
            | (name, value) <- Map.toList (specAxes (runSpec base)),
              name /= down,
              name /= across
          ]
        here = [run | run <- runs, all (\(name, value) -> axisOf name run == Just value) wanted]
        values name = ordered name (List.nub (mapMaybe (axisOf name) here))
        columns = values across
        cell value column =
          List.find (\run -> axisOf down run == Just value && axisOf across run == Just column) here
    worthwhile view =
      length (filter isJust (concatMap rowCells (viewRows view))) > 1
        && length (viewRows view) > 1

-- Title, rows, columns, the axes that are not at the baseline, and explanation.
questions :: [((Text, Text, Text, [(Text, Text)]), Text)]
questions =
  [ ("Workloads and persistence", "workload", "persistence", [])
      `explained` "What keeping the data costs each command. Reads should not care.",
    ("Size of values and persistence", "payload", "persistence", [])
      `explained` "Small values cost the command, large ones their bytes: where the lines bend.",
    ("Size of values and workloads", "payload", "workload", [])
      `explained` "The same for what else carries a value.",
    ("Callers and persistence", "clients", "persistence", [])
      `explained` "A log that is synchronised before each reply is shared by all who wait: \
                  \one caller pays all of it.",
    ("Distance and callers, every write synchronised", "net", "clients", [("persistence", "aof-always")])
      `explained` "A round trip is added to each reply: \
                  \it divides the throughput of one caller, and hardly that of fifty.",
    ("Distance and callers", "net", "clients", [])
      `explained` "The same with the baseline's persistence.",
    ("Directories and persistence", "place", "persistence", [])
      `explained` "The disk matters as much as the persistence waits for it.",
    ("Servers and persistence", "server", "persistence", [])
      `explained` "The same load, different programs."
  ]

explained :: a -> Text -> (a, Text)
explained = (,)

-- Numbers in order of size, persistences in their order, other values as they come.
ordered :: Text -> [Text] -> [Text]
ordered name values
  | name == "payload" || name == "clients" =
    List.sortOn (\value -> (length (show value), value)) values
  | name == "persistence" =
    List.sortOn (`List.elemIndex` map (Text.pack . persistenceName) [minBound ..]) values
  | otherwise = values

axisOf :: Text -> Run -> Maybe Text
axisOf name = Map.lookup name . specAxes . runSpec
