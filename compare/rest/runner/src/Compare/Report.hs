-- | Reports for readers: a table for each group of cells, and the goals last; losses are shown as
-- plainly as wins.
module Compare.Report
  ( textReport,
    markdownReport,
    htmlReport,
    goalLines,
  )
where

import Compare.Autocannon qualified as Autocannon
import Compare.Cell
import Compare.Goals
import Compare.Load (Scenario (..))
import Compare.OpenLoop (OpenLoop (..), generatorLimit)
import Control.Monad (void)
import Data.ByteString.Lazy qualified as Lazy
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Bench.Html (factsOf, page, tableOf)
import Tool.Chart (Bar (..), Bars (..), Chart (..), Group (..), Kind (..), Plot (..), Unit (..), axis, figure)
import Tool.Markup (Markup, element, text, (.=))
import Tool.Statistics (Summary (..))
import Tool.Text (Align (..), fixed, table)

type GroupKey = (Topology, Layout, Scenario, Int)

-- | The title of a group.
groupTitle :: GroupKey -> Text
groupTitle (topology', layout', scenario', count) =
  Text.intercalate
    ", "
    [ case scenario' of
        Single -> "GET one user, random ids"
        Listing -> "GET the list"
        Post -> "POST"
        Mixed -> "mixed",
      Text.pack (show count) <> " connections",
      if topology' == Standalone then "one Redis" else "a cluster of five",
      if layout' == Pinned then "Redis and load on core 0, service on core 1" else "all on both cores"
    ]

header :: [Text]
header = ["service", "requests/s", "95 %", "n", "warm-up", "CPU µs/request", "failed", "service busy", "wrk busy", "hits", "memory MiB"]

openHeader :: [Text]
openHeader = ["service", "rate/s", "kept", "n", "p50 µs", "p95", "p99", "p99.9", "highest", "answers by status", "sent late, p99", "generator busy"]

-- | A group with its tables: the throughput, with one row for each service, the fastest first, and
-- last the services without a number (the end of the report says why they have none); and the
-- response times in the open loop, in the same order.
data GroupTables = GroupTables
  { tablesKey :: GroupKey,
    tableReached :: [[Text]],
    tableOpen :: [[Text]]
  }

groupTables :: [Result] -> [GroupTables]
groupTables results =
  [ GroupTables
      { tablesKey = key,
        tableReached = map (reached layout') rows <> map noNumber (Map.findWithDefault [] key without),
        tableOpen = [responded name loop | (name, sum') <- rows, Just loop <- [summedOpen sum']]
      }
    | key@(_, layout', _, _) <- Map.keys (Map.union (void cells) (void without)),
      let rows = List.sortOn (negate . summaryMean . summedRate . snd) (Map.toList (Map.findWithDefault Map.empty key cells))
  ]
  where
    cells = summedCells results
    without = uncounted results
    noNumber name = take (length header) (name : "none: invalid, see the end" : repeat "")

reached :: Layout -> (Text, Summed) -> [Text]
reached layout' (name, sum') =
  [ name,
    number 0 (summaryMean (summedRate sum')) <> mark (isBusy (summedGeneratorBusy sum') || (layout' == Pinned && any (> 0.95) (take 1 (summedCoreBusy sum')))),
    maybe "" (\(low, high) -> number 0 low <> "–" <> number 0 high) (summaryInterval (summedRate sum')),
    Text.pack (show (summaryCount (summedRate sum'))) <> (if summedLeftOut sum' > 0 then " (" <> Text.pack (show (summedLeftOut sum')) <> " invalid)" else ""),
    maybe "" share (summedWarm sum'),
    number 1 (summaryMean (summedCpu sum')),
    if summedFailed sum' > 0 then number 2 (100 * summedFailed sum') <> " %" else "",
    share (summedServiceBusy sum'),
    share (summedGeneratorBusy sum'),
    maybe "" share (summedHits sum'),
    number 0 (fromIntegral (summedMemory sum') / 1048576)
  ]

responded :: Text -> OpenLoop -> [Text]
responded name loop =
  [ name,
    number 0 (openRate loop),
    maybe "" share (openKept loop),
    Text.pack (show (openRounds loop)),
    number 0 (openP50 loop),
    maybe "" (number 0) (openP95 loop),
    number 0 (openP99 loop),
    number 0 (openP99_9 loop) <> mark (any isBusy (openBusy loop)),
    number 0 (openHighest loop),
    Text.intercalate ", " [status <> ": " <> Text.pack (show times) | (status, times) <- Map.toList (openStatuses loop)],
    maybe "" (number 0) (openSentLate loop),
    maybe "" share (openBusy loop)
  ]

-- Whether a generator used so much of its core that it measured itself, too.
isBusy :: Double -> Bool
isBusy = (> 0.8)

mark :: Bool -> Text
mark full = if full then "*" else ""

number :: Int -> Double -> Text
number digits = Text.pack . fixed digits

share :: Double -> Text
share value = number 0 (100 * value) <> " %"

-- | One line per goal: met or missed, the ratio and the bound.
goalLines :: [Verdict] -> [Text]
goalLines goals =
  [ Text.concat
      [ if verdictMet goal then "met     " else "MISSED  ",
        maybe "absent" (\ratio -> number 2 ratio <> " ×") (verdictRatio goal),
        if verdictAtLeast goal then "  (≥ " else "  (≤ ",
        number 2 (verdictBound goal),
        ")  ",
        verdictName goal,
        if Text.null (verdictNote goal) then "" else "; " <> verdictNote goal
      ]
    | goal <- goals
  ]

-- | The report for a terminal: the tables, and the goals last.
textReport :: Map Text Text -> [Result] -> Text
textReport manifest results =
  Text.unlines $
    [name <> ": " <> value | (name, value) <- Map.toList manifest]
      <> concat
        [ ["", groupTitle (tablesKey group)] <> textTable header (tableReached group) <> textTable openHeader (tableOpen group)
          | group <- groupTables results
        ]
      <> [aboutMarks]
      <> invalidLines results
      <> ["", "Goals, as ratios of this run:"]
      <> (if null (verdicts results) then [noGoals results] else goalLines (verdicts results))

-- No table without rows.
textTable :: [Text] -> [[Text]] -> [Text]
textTable names rows
  | null rows = []
  | otherwise = map Text.pack (table (take (length names) (AlignLeft : repeat AlignRight)) (map (map Text.unpack) (names : rows)))

-- The text instead of goals, if no goal is about these results.
noGoals :: [Result] -> Text
noGoals results
  | null cold = "None is about what was measured here: they compare with ASP.NET, beside one Redis."
  | otherwise = "Short form: no ratio. It takes ten seconds of load until .NET has compiled what it runs, and " <> Text.intercalate ", " cold <> " had fewer. `make compare-rest` judges."
  where
    cold = coldRows results

invalidLines :: [Result] -> [Text]
invalidLines results =
  [ (if null (disqualifying result) then "remarkable: " else "invalid: ") <> row (cell result) <> ", " <> groupTitle (cellGroup (cell result)) <> ": " <> Text.intercalate "; " (problems (outcome result))
    | result <- results,
      not (null (problems (outcome result)))
  ]

-- The text about failures and the warm-up. The function marks a term.
aboutFailures :: (Text -> Text) -> Text
aboutFailures marked = "one disqualifies a measurement, except of the naive design, which waits at most 5 s for a lock that SQLite gives in no order, and may fail one in twenty, and 404 in the mix, where a deletion may come before its user: at most one in a thousand. " <> marked "Warm-up" <> ": the rate over that of the last seconds before; 100 % of a service that was warm."

-- The text about the measurement of response times. The function marks a term.
aboutOpenLoop :: (Text -> Text) -> Text
aboutOpenLoop marked =
  Text.unwords
    [ "The second table of a group is of the open loop:",
      marked "response times",
      "are from when a request was due, all services at the same rate, half of what the slower of those that are compared reached in the first round and at most",
      number 0 generatorLimit <> "/s, on the connections of the title (twice as many, up to 64, where these are fewer); medians of the rounds, but for the highest and the sums of the answers.",
      marked "Kept" <> ": the part of the rate that was answered in time; a row that had less than one and a half times the rate in the closed loop is not asked.",
      marked "Sent late" <> " and " <> marked "generator busy" <> " say what of it may be the generator's. The closed loop's latency says only how long the queue was, and is in the raw results."
    ]

-- The text about 'mark'.
aboutMarks :: Text
aboutMarks = "A * at a rate: wrk was busy for more than 80 % of a core, or the core that it shares with Redis was full, so the rate is a lower bound. At a p99.9: the generator of the open loop was as busy, so the latency is partly its own."

-- | The report for a repository, in Markdown.
markdownReport :: Map Text Text -> [Result] -> Text
markdownReport manifest results =
  Text.unlines $
    [ "# REST: warp with redis-client beside ASP.NET Core with StackExchange.Redis",
      "",
      "Written by `make compare-rest` from the raw results beside it (`cells.jsonl`, one line per measurement; `manifest.json`).",
      "",
      "## Goals",
      ""
    ]
      <> (if null (verdicts results) then [noGoals results] else ["| | ratio | bound | what |", "|---|---|---|---|"])
      <> [ "| " <> (if verdictMet goal then "met" else "**missed**") <> " | " <> maybe "absent" (number 2) (verdictRatio goal) <> " | " <> (if verdictAtLeast goal then "≥ " else "≤ ") <> number 2 (verdictBound goal) <> " | " <> verdictName goal <> (if Text.null (verdictNote goal) then "" else "; " <> verdictNote goal) <> " |"
           | goal <- verdicts results
         ]
      <> ["", "## Where and how", ""]
      <> ["- " <> name <> ": " <> value | (name, value) <- Map.toList manifest]
      <> ["", "Services in the order of their speed. *CPU µs/request* is the service's own processor time. " <> aboutOpenLoop (\term -> "*" <> term <> "*") <> " " <> aboutMarks <> " *Failed* requests are in no rate: " <> aboutFailures (\term -> "*" <> term <> "*"), ""]
      <> concat
        [ ["### " <> groupTitle (tablesKey group), ""] <> markdownTable header (tableReached group) <> markdownTable openHeader (tableOpen group)
          | group <- groupTables results
        ]
      <> map ("- " <>) (invalidLines results)

-- No table without rows; otherwise a blank line follows it.
markdownTable :: [Text] -> [[Text]] -> [Text]
markdownTable names rows
  | null rows = []
  | otherwise = map line (names : map (const "---") names : rows) <> [""]
  where
    line cells = "| " <> Text.intercalate " | " cells <> " |"

-- | The report as one HTML file, with charts, and tables of what autocannon measured.
htmlReport :: Map Text Text -> [Result] -> [Autocannon.Sample] -> Lazy.ByteString
htmlReport manifest results samples =
  page "REST: warp with redis-client beside ASP.NET Core with StackExchange.Redis" . concat $
    [ [heading "Goals", if null goals then said (noGoals results) else tableOf ["what", "", "ratio", "bound"] (map judgement goals)],
      charts results,
      [heading "All cells"],
      concatMap tables (groupTables results),
      [said (aboutOpenLoop id), said aboutMarks, said ("Failed requests are in no rate: " <> aboutFailures id)],
      map said (invalidLines results),
      if null samples then [] else [heading "By autocannon", said (Autocannon.aboutSamples id)],
      concat [[element "h3" [] [text title], tableOf Autocannon.sampleHeader (map (map text) rows)] | (title, rows) <- Autocannon.sampleGroups samples],
      [heading "Where and how", factsOf (Map.toList manifest)]
    ]
  where
    goals = verdicts results
    heading name = element "h2" [] [text name]
    said words' = element "p" [] [text words']
    judgement goal =
      [ text (verdictName goal <> (if Text.null (verdictNote goal) then "" else "; " <> verdictNote goal)),
        element "span" ["class" .= (if verdictMet goal then "good" else "bad")] [text (if verdictMet goal then "met" else "MISSED")],
        text (maybe "absent" (number 2) (verdictRatio goal)),
        text ((if verdictAtLeast goal then "≥ " else "≤ ") <> number 2 (verdictBound goal))
      ]
    tables group =
      element "h3" [] [text (groupTitle (tablesKey group))] :
        [ tableOf names (map (map text) rows)
          | (names, rows) <- [(header, tableReached group), (openHeader, tableOpen group)],
            not (null rows)
        ]

-- | For each topology and layout: requests per second, and processor time.
charts :: [Result] -> [Markup]
charts results =
  concat
    [ [ figure (chart place "Requests per second" "More is better; whiskers are the 95 % interval of the mean." Thousands summedRate groups),
        figure (chart place "Processor time per request" "Of the service, in microseconds; less is better." Plain summedCpu groups)
      ]
      | place <- List.nub [(topology', layout') | (topology', layout', _, _) <- Map.keys cells],
        let groups = [(key, rows) | (key@(topology', layout', _, _), rows) <- Map.toList cells, (topology', layout') == place]
    ]
  where
    cells = summedCells results

chart :: (Topology, Layout) -> Text -> Text -> Unit -> (Summed -> Summary) -> [(GroupKey, Map Text Summed)] -> Chart
chart (topology', layout') title about unit part groups =
  Chart
    { chartTitle = title <> ": " <> place,
      chartAbout = about,
      chartPlot =
        BarPlot
          Bars
            { barsValue = axis title Linear unit,
              barsSeries = series,
              barsGroups =
                [ Group (shortTitle key) [drawn <$> Map.lookup name rows | name <- series]
                  | (key, rows) <- groups
                ]
            }
    }
  where
    place = (if topology' == Standalone then "one Redis" else "a cluster of five") <> (if layout' == Pinned then ", a core each" else ", both cores for all")
    series = List.nub (concatMap (Map.keys . snd) groups)
    drawn sum' = Bar {barValue = summaryMean (part sum'), barWhisker = summaryInterval (part sum'), barNote = ""}
    shortTitle (_, _, scenario', count) =
      (case scenario' of Single -> "GET one"; Listing -> "GET list"; Post -> "POST"; Mixed -> "mixed") <> ", " <> Text.pack (show count)
