-- | The report as one file for a browser: no scripts, nothing from elsewhere,
-- light and dark, and narrow enough for a phone.
module Compare.Report.Html
  ( html,
  )
where

import Compare.Cell
import Compare.Document
import Compare.Goals
import Compare.Report.Figures
import Compare.Row
import Compare.Sample
import Data.ByteString.Lazy qualified as Lazy
import Data.List qualified as List
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Chart hiding (Line, Lines, line)
import Tool.Markup

-- | The whole page.
html :: [Goal] -> Document -> Lazy.ByteString
html goals held =
  render . document $
    [ element
        "head"
        []
        [ element "meta" ["charset" .= "utf-8"] [],
          element "meta" ["name" .= "viewport", "content" .= "width=device-width, initial-scale=1"] [],
          element "title" [] [text title],
          element "style" [] [raw style, styleSheet]
        ],
      element "body" [] . pure . element "main" [] . concat $
        [ [element "h1" [] [text title], heading "Goals"],
          [list (map goal (filter (not . isReached) goals <> filter isReached goals))],
          [heading "Where redis-client loses", plain (losses held)],
          [heading "What is not in the charts"],
          [plain (missing held <> map ("not used: " <>) (invalidities held))],
          [heading "Operations per second"],
          map (figure . throughput) (grids held),
          [heading "Client CPU per operation"],
          map (figure . processor) (grids held),
          concatMap table (cellsOf held),
          [heading "The rows"],
          [ plain
              [ rowName row <> ": " <> rowVersion row <> ", " <> rowLanguage row <> ", from " <> rowOrigin row
                | row <- documentRows held
              ]
          ],
          [heading "The machine"],
          [plain [name <> ": " <> shown | (name, shown) <- manifestText (documentManifest held)]]
        ]
    ]
  where
    title = "redis-client beside its peers: the libraries alone"
    heading name = element "h2" [] [text name]
    plain found = list (map text found)
    list = \case
      [] -> element "p" [] [text "None."]
      found -> element "ul" [] [element "li" [] [one] | one <- found]
    goal one = element "span" ["class" .= if isReached one then "good" else "bad"] [text (goalLine one)]
    throughput cells =
      (chart cells) {chartAbout = "Median of all runs; whiskers from the least to the most. Longer is better."}
        `with` bars "operations per second" Thousands cells (\found -> (figuresOps found, Just (figuresOpsLeast found, figuresOpsMost found)))
    processor cells =
      (chart cells) {chartAbout = "Median of all runs, user and system time of all its threads. Shorter is better."}
        `with` bars "processor time per operation" Nanoseconds cells (\found -> (figuresCpu found, Nothing))
    with one plot = one {chartPlot = plot}
    chart cells =
      Chart
        { chartTitle = case cells of
            cell : _ ->
              placeText (cellPlace cell) <> ", " <> operationText (cellOperation cell) <> " "
                <> Text.pack (show (cellValueSize cell))
                <> " B"
            [] -> "",
          chartAbout = "",
          chartPlot = BarPlot Bars {barsValue = axis "" Linear Plain, barsSeries = [], barsGroups = []}
        }
    bars label unit cells figure' =
      let rows = rowsAt cells
       in BarPlot
            Bars
              { barsValue = axis label Linear unit,
                barsSeries = rows,
                barsGroups =
                  [ Group {groupName = cellLoad cell, groupBars = [barOf figure' <$> figures held row cell | row <- rows]}
                    | cell <- cells
                  ]
              }
    barOf figure' found =
      let (value, whisker) = figure' found
       in Bar {barValue = value, barWhisker = whisker, barNote = ""}
    -- Ours first, then the others by name.
    rowsAt cells =
      List.sortOn (\row -> (row /= ourName, Text.toLower row)) . List.nub $
        [lineRow one | cell <- cells, one <- cellLines held cell]
    table cell = case cellLines held cell of
      [] -> []
      found ->
        [ heading (cellName cell),
          element "div" ["class" .= "scroll"] . pure . element "table" [] $
            element "tr" [] [element "th" [] [text name] | name <- columns] : map line found
        ]
    columns = ["row", "ops/s", "spread, k/s", "redis-client is", "CPU, µs/op", "servers' CPU, µs/op", "p50, µs", "p99", "p99.9", "max", "alloc, B/op"]
    line one =
      let numbers = lineFigures one
          latency = figuresLatency numbers
       in element "tr" ["class" .= if lineRow one == ourName then "ours" else ""] $
            element "th" [] [text (lineRow one)] :
              [ element "td" [] [text shown]
                | shown <-
                    [ thousands (figuresOps numbers),
                      spreadText numbers,
                      maybe "" ((<> " x") . ratioText) (lineRatio one),
                      micros (figuresCpu numbers),
                      maybe "-" micros (figuresServerCpu numbers),
                      micros (latencyP50 latency),
                      micros (latencyP99 latency),
                      micros (latencyP999 latency),
                      micros (latencyMax latency),
                      bytesText (figuresAllocated numbers)
                    ]
              ]

-- Cells that differ in what is in flight only.
grids :: Document -> [[Cell]]
grids held = [filter ((== key) . share) cells | key <- List.nub (map share cells)]
  where
    cells = cellsOf held
    share cell = (cellPlace cell, cellOperation cell, cellValueSize cell, cellCommon cell)

style :: Text
style =
  Text.unlines
    [ ":root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--line:#d5dae0;--ours:#0b7a4b;--bad:#b3261e}",
      "@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--paper:#14171a;--line:#343a41;--ours:#3ecf8e;--bad:#ff8a80}}",
      "body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}",
      "main{max-width:70rem;margin:auto;padding:1rem}h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2rem}",
      ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.9rem}",
      "th,td{padding:.25rem .5rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}",
      "th:first-child{text-align:left;font-weight:500}.ours th,.ours td{font-weight:700;color:var(--ours)}",
      ".bad{color:var(--bad);font-weight:600}.good{color:var(--ours)}"
    ]
