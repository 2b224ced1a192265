-- | The report as one HTML file: without scripts or external resources, for light and dark themes,
-- and narrow enough for a phone.
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
import Data.Text qualified as Text
import Tool.Bench.Html (factsOf, page, tableOf)
import Tool.Chart hiding (Line, Lines, line)
import Tool.Markup (element, text, (.=))

-- | The whole page.
html :: [Goal] -> Document -> Lazy.ByteString
html goals held =
  page "redis-client beside its peers: the libraries alone" . concat $
    [ [element "p" [] [text summary]],
      [heading "Operations per second"],
      map (figure . throughput) (grids held),
      [heading "Client CPU per operation"],
      map (figure . processor) (grids held),
      [heading "Goals"],
      [list (map goal (filter (not . isReached) goals <> filter isReached goals))],
      [heading "Where redis-client loses", plain (losses held)],
      [heading "What is not in the charts"],
      [plain (missing held <> map ("not used: " <>) (invalidities held))],
      concatMap table (cellsOf held),
      [heading "The rows"],
      [ plain
          [ rowName row <> ": " <> rowVersion row <> ", " <> rowLanguage row <> ", from " <> rowOrigin row
            | row <- documentRows held
          ]
      ],
      [heading "The machine", factsOf (manifestText (documentManifest held))]
    ]
  where
    heading name = element "h2" [] [text name]
    summary =
      Text.pack (show (length (filter isReached goals))) <> " of " <> Text.pack (show (length goals))
        <> " goals are reached. All goals and all losses are listed below the charts."
    plain found = list (map (pure . text) found)
    list = \case
      [] -> element "p" [] [text "None."]
      found -> element "ul" [] [element "li" [] one | one <- found]
    -- Only the verdict, which is the first word, has a colour.
    goal one = case Text.breakOn " " (goalLine one) of
      (verdict, rest) -> [element "span" ["class" .= if isReached one then "good" else "bad"] [text verdict], text rest]
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
                <> cellUnusual cell
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
    -- Our row first, then the others by name.
    rowsAt cells =
      List.sortOn (\row -> (row /= ourName, Text.toLower row)) . List.nub $
        [lineRow one | cell <- cells, one <- cellLines held cell]
    table cell = case cellLines held cell of
      [] -> []
      found ->
        [heading (cellName cell), tableOf columns (map line found)]
    columns = ["row", "ops/s", "spread, k/s", "redis-client is", "CPU, µs/op", "servers' CPU, µs/op", "p50, µs", "p99", "p99.9", "max", "alloc, B/op"]
    line one =
      let numbers = lineFigures one
          latency = figuresLatency numbers
          marked shown = if lineRow one == ourName then element "span" ["class" .= "good"] [text shown] else text shown
       in map
            marked
            [ lineRow one,
              thousands (figuresOps numbers),
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

-- Cells that differ only in the number in flight.
grids :: Document -> [[Cell]]
grids held = [filter ((== key) . share) cells | key <- List.nub (map share cells)]
  where
    cells = cellsOf held
    share cell = (cellPlace cell, cellOperation cell, cellValueSize cell, cellCommon cell)
