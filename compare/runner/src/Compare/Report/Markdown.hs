-- | @COMPARISON-client.md@: goals and losses first, then every number.
module Compare.Report.Markdown
  ( markdown,
  )
where

import Compare.Cell
import Compare.Document
import Compare.Goals
import Compare.Plan (rowWindow)
import Compare.Report.Figures
import Compare.Row
import Compare.Sample
import Data.List qualified as List
import Data.Text (Text)
import Data.Text qualified as Text
import Text.Printf (printf)

-- | The whole report.
markdown :: [Goal] -> Document -> Text
markdown goals document =
  Text.unlines . concat $
    [ [ "# redis-client beside its peers: the libraries alone",
        "",
        "Every row is one client library around the same small program: the same keys, the same values, the same",
        "stream of operations, the same number of commands in flight, on servers that were started and filled for",
        "the occasion. Every reply was compared with what was stored, and the servers' own counts with the",
        "client's. Numbers are medians over " <> runs <> " interleaved runs of "
          <> Text.pack (printf "%.1f" (windowDuration (documentWindow document)))
          <> " s after "
          <> Text.pack (printf "%.1f" (windowWarmup (documentWindow document)))
          <> " s of warm-up (more for those that compile while they run, see the settings); `max` is the worst of all.",
        "",
        "## Goals",
        ""
      ],
      section "No goal belongs to what was measured." (map ("- " <>) (map goalLine (filter (not . isReached) goals) <> map goalLine (filter isReached goals))),
      ["", "## Where redis-client loses", ""],
      section "Nowhere among the cells below." (map ("- " <>) (losses document)),
      ["", "## What is not in the tables", ""],
      section "Nothing." (map ("- " <>) (missing document <> map ("not used: " <>) (invalidities document))),
      ["", "## The rows", "", "| row | version | language | from | runtime | settings |", "|---|---|---|---|---|---|"],
      [ Text.concat ["| ", rowName row, " | ", rowVersion row, " | ", rowLanguage row, " | ", rowOrigin row, " | ", runtimeOf row, " | ", notesOf row, " |"]
        | row <- documentRows document
      ],
      [ "",
        "`redis-benchmark` is no library: it makes no values of the replies and checks nothing. It says what a",
        "server can do. With N callers waiting it has N connections, in batches `-P 64`. It has no warm-up but a short run",
        "that is thrown away.",
        "",
        "*servers' CPU* is what a command cost the servers, all of them together, by their own account, warm-up",
        "included. A server runs commands on one core, whoever asks. Where twice the best StackExchange.Redis is more than",
        "that core can do (what the cheapest command in this column leaves it time for, or the best median, over all cells",
        "that ask for the same), the server is *full*, and the goals are others."
      ],
      concatMap table (cellsOf document),
      ["", "## The machine", ""],
      ["- " <> name <> ": " <> value | (name, value) <- manifestText (documentManifest document)],
      [ "",
        "Servers and clients share one machine and, pinned, have a core each: absolute numbers are its own, ratios",
        "travel better. Closed loop: each caller sends its next command when the reply is there, so latencies are",
        "those of a saturated client, not of a service with time to spare."
      ]
    ]
  where
    runs = case [figuresRuns (lineFigures found) | cell <- cellsOf document, found <- cellLines document cell] of
      [] -> "0"
      counts
        | minimum counts == maximum counts -> Text.pack (show (minimum counts))
        | otherwise -> Text.pack (show (minimum counts) <> " to " <> show (maximum counts))
    section none found = if null found then [none] else found
    samplesOf row = [sample | sample <- documentSamples document, sampleRow sample == rowName row, sampleIsValid sample]
    runtimeOf row = Text.intercalate ", " (List.nub (filter (/= "") (map sampleRuntime (samplesOf row))))
    notesOf row = Text.intercalate "; " (warmupOf row : List.nub (concatMap sampleNotes (samplesOf row)))
    warmupOf row = Text.pack (printf "warm-up %.1f s" (windowWarmup (rowWindow (documentWindow document) row)))
    table cell = case cellLines document cell of
      [] -> []
      found ->
        [ "",
          "## " <> cellName cell,
          "",
          "| row | ops/s | spread, k/s | redis-client is | client CPU, us/op | servers' CPU, us/op | p50, us | p99 | p99.9 | max | alloc, B/op | connections |",
          "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
        ]
          <> map line found
    line found =
      let numbers = lineFigures found
          latency = figuresLatency numbers
          bold text = if lineRow found == ourName then "**" <> text <> "**" else text
       in "| "
            <> Text.intercalate
              " | "
              [ bold (lineRow found),
                bold (thousands (figuresOps numbers)),
                spreadText numbers,
                maybe "-" ((<> " x") . ratioText) (lineRatio found),
                micros (figuresCpu numbers),
                maybe "-" micros (figuresServerCpu numbers),
                micros (latencyP50 latency),
                micros (latencyP99 latency),
                micros (latencyP999 latency),
                micros (latencyMax latency),
                bytesText (figuresAllocated numbers),
                Text.pack (show (figuresConnections numbers))
              ]
            <> " |"
