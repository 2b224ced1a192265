-- | The results for people: a table per group of cells, the goals last, the
-- losses as plain as the wins.
module Compare.Report
  ( textReport,
    markdownReport,
    htmlReport,
    goalLines,
  )
where

import Compare.Cell
import Compare.Goals
import Compare.Load (Scenario (..))
import Control.Monad (void)
import Data.ByteString.Lazy qualified as Lazy
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Chart (Bar (..), Bars (..), Chart (..), Group (..), Kind (..), Plot (..), Unit (..), axis, figure, styleSheet)
import Tool.Markup (Markup, document, element, raw, render, text, (.=))
import Tool.Statistics (Summary (..))
import Tool.Text (Align (..), fixed, table)

type GroupKey = (Topology, Layout, Scenario, Int)

-- | What a group is called.
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
header = ["service", "requests/s", "95 %", "n", "warm-up", "CPU µs/request", "failed", "service busy", "wrk busy", "hits", "open loop p50", "p99", "p99.9 µs", "memory MiB"]

-- | Each group with its table: a row for each service, the fastest first, and
-- last those without a number; why they have none is said at the end.
groupTables :: [Result] -> [(GroupKey, [[Text]])]
groupTables results =
  [ (key, groupTable (Map.findWithDefault Map.empty key cells) <> map noNumber (Map.findWithDefault [] key without))
    | key <- Map.keys (Map.union (void cells) (void without))
  ]
  where
    cells = summedCells results
    without = uncounted results
    noNumber name = take (length header) (name : "none: invalid, see the end" : repeat "")

groupTable :: Map Text Summed -> [[Text]]
groupTable rows =
  [ [ name,
      number 0 (summaryMean (summedRate sum')),
      maybe "" (\(low, high) -> number 0 low <> "–" <> number 0 high) (summaryInterval (summedRate sum')),
      Text.pack (show (summaryCount (summedRate sum'))) <> (if summedLeftOut sum' > 0 then " (" <> Text.pack (show (summedLeftOut sum')) <> " invalid)" else ""),
      maybe "" share (summedWarm sum'),
      number 1 (summaryMean (summedCpu sum')),
      if summedFailed sum' > 0 then number 2 (100 * summedFailed sum') <> " %" else "",
      share (summedServiceBusy sum'),
      share (summedGeneratorBusy sum'),
      maybe "" share (summedHits sum'),
      openPart (\(p50', _, _, _) -> p50'),
      openPart (\(_, p99', _, _) -> p99'),
      openPart (\(_, _, p999, _) -> p999),
      number 0 (fromIntegral (summedMemory sum') / 1048576)
    ]
    | (name, sum') <- List.sortOn (negate . summaryMean . summedRate . snd) (Map.toList rows),
      let openPart part = maybe "" (number 0 . part) (summedOpen sum')
  ]

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

-- | For a terminal: the tables, and the goals last.
textReport :: Map Text Text -> [Result] -> Text
textReport manifest results =
  Text.unlines $
    [name <> ": " <> value | (name, value) <- Map.toList manifest]
      <> concat
        [ ["", groupTitle key] <> map Text.pack (table (take (length header) (AlignLeft : repeat AlignRight)) (map (map Text.unpack) (header : lines')))
          | (key, lines') <- groupTables results
        ]
      <> invalidLines results
      <> ["", "Goals, as ratios of this run:"]
      <> (if null (verdicts results) then [noGoals] else goalLines (verdicts results))

-- What a report says instead of goals, if none is about what was measured.
noGoals :: Text
noGoals = "None is about what was measured here: they compare with ASP.NET, beside one Redis."

invalidLines :: [Result] -> [Text]
invalidLines results =
  [ (if null (disqualifying result) then "remarkable: " else "invalid: ") <> row (cell result) <> ", " <> groupTitle (cellGroup (cell result)) <> ": " <> Text.intercalate "; " (problems (outcome result))
    | result <- results,
      not (null (problems (outcome result)))
  ]

-- Why one design may fail, and what the warm-up says. Takes how a term is marked.
aboutFailures :: (Text -> Text) -> Text
aboutFailures marked = "one disqualifies a measurement, except of the naive design, which waits at most 5 s for a lock that SQLite gives in no order, and may fail one in twenty, and 404 in the mix, where a deletion may come before its user: at most one in a thousand. " <> marked "Warm-up" <> ": the rate over that of the last seconds before; 100 % of a service that was warm."

-- | The same for a repository.
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
      <> (if null (verdicts results) then [noGoals] else ["| | ratio | bound | what |", "|---|---|---|---|"])
      <> [ "| " <> (if verdictMet goal then "met" else "**missed**") <> " | " <> maybe "absent" (number 2) (verdictRatio goal) <> " | " <> (if verdictAtLeast goal then "≥ " else "≤ ") <> number 2 (verdictBound goal) <> " | " <> verdictName goal <> (if Text.null (verdictNote goal) then "" else "; " <> verdictNote goal) <> " |"
           | goal <- verdicts results
         ]
      <> ["", "## Where and how", ""]
      <> ["- " <> name <> ": " <> value | (name, value) <- Map.toList manifest]
      <> ["", "Services in the order of their speed. *CPU µs/request* is the service's own processor time. *Open loop* is the time from when a request was due, both services at the same rate (half of what the slower one reached); the closed loop's latency says only how long the queue was, and is in the raw results. Where *wrk* was busy for more than 80 % of a core its numbers are a lower bound. *Failed* requests are in no rate: " <> aboutFailures (\term -> "*" <> term <> "*"), ""]
      <> concat
        [ ["### " <> groupTitle key, "", "| " <> Text.intercalate " | " header <> " |", "|" <> Text.replicate (length header) "---|"]
            <> ["| " <> Text.intercalate " | " line <> " |" | line <- lines']
            <> [""]
          | (key, lines') <- groupTables results
        ]
      <> map ("- " <>) (invalidLines results)

-- | One file, charts and all.
htmlReport :: Map Text Text -> [Result] -> Lazy.ByteString
htmlReport manifest results =
  render . document $
    [ element
        "head"
        []
        [ element "meta" ["charset" .= "utf-8"] [],
          element "meta" ["name" .= "viewport", "content" .= "width=device-width, initial-scale=1"] [],
          element "title" [] [text "REST comparison"],
          element "style" [] [raw pageStyle, styleSheet]
        ],
      element
        "body"
        []
        ( [ element "h1" [] [text "REST: warp with redis-client beside ASP.NET Core with StackExchange.Redis"],
            element "h2" [] [text "Goals"],
            if null (verdicts results) then element "p" [] [text noGoals] else tableOf ["", "ratio", "bound", "what"] [[if verdictMet goal then "met" else "MISSED", maybe "absent" (number 2) (verdictRatio goal), (if verdictAtLeast goal then "≥ " else "≤ ") <> number 2 (verdictBound goal), verdictName goal <> (if Text.null (verdictNote goal) then "" else "; " <> verdictNote goal)] | goal <- verdicts results]
          ]
            <> charts results
            <> [element "h2" [] [text "All cells"]]
            <> concat [[element "h3" [] [text (groupTitle key)], tableOf header lines'] | (key, lines') <- groupTables results]
            <> [element "p" [] [text ("Failed requests are in no rate: " <> aboutFailures id)]]
            <> [element "p" [] [text line] | line <- invalidLines results]
            <> [element "h2" [] [text "Where and how"], tableOf ["", ""] [[name, value] | (name, value) <- Map.toList manifest]]
        )
    ]

pageStyle :: Text
pageStyle = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}table{border-collapse:collapse;display:block;overflow-x:auto;font-size:13px}td,th{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #8884}td:last-child,th:last-child,td:first-child,th:first-child{text-align:left}"

tableOf :: [Text] -> [[Text]] -> Markup
tableOf names rows =
  element
    "table"
    []
    ( element "tr" [] [element "th" [] [text name] | name <- names] :
        [element "tr" [] [element "td" [] [text value] | value <- line] | line <- rows]
    )

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
