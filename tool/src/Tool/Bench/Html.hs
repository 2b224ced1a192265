-- | A document as one HTML page: without scripts and without anything from the network, so that the
-- file can be kept and sent. It is readable on a phone, and follows the reader's choice of a light
-- or a dark page.
module Tool.Bench.Html
  ( report,
    page,
    tableOf,
    factsOf,
    manifestSection,
    titled,
    paragraph,
    bullets,
  )
where

import Data.ByteString.Lazy (ByteString)
import Data.Foldable (fold)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust, mapMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Bench.Arrivals (describeRate)
import Tool.Bench.Document
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Html.Charts
import Tool.Bench.Trust (waitedEachSecond)
import Tool.Chart (Unit (Bytes, Nanoseconds), figure, format, styleSheet)
import Tool.Markup (Markup, element, raw, render, text, (.=))
import Tool.Markup qualified as Markup
import Tool.Span (dated)
import Tool.Statistics (Summary (..), summarise)
import Tool.Text (fixed, percent, shown, thousands)

-- | The whole report: the results, each run with its charts, and the machine that measured them.
report :: Document -> ByteString
report document =
  page "Benchmark report" $
    concat
      [ [ paragraph "lead" (headline runs),
          summaryTable runs
        ],
        map (paragraph "note") (documentNotes document),
        bullets "bad" [runName run <> ": " <> problem | run <- runs, problem <- runProblems run],
        if length runs > 1 then map figure (throughputs runs <> loadCurve runs <> overlay) else [],
        [contents runs | length runs > 3],
        zipWith section [1 ..] runs,
        [manifestSection "Where it was measured" (documentManifest document)],
        [ titled
            ("Merged: " <> originName origin)
            [element "p" [] [text (clockSays origin)], manifestFacts' (originManifest origin)]
          | origin <- documentOrigins document
        ]
      ]
  where
    runs = documentRuns document
    clockSays = maybe "Its clock cannot be compared with the others'." clockText . originClock
    overlay
      | length runs <= 8 = spectra "Latency spectrum" [(runName run, run) | run <- runs]
      | otherwise = []

-- | A page with this title and this content.
page :: Text -> [Markup] -> ByteString
page title content =
  render . (<> raw "\n") . Markup.document $
    [ element
        "head"
        []
        [ element "meta" ["charset" .= "utf-8"] [],
          element "meta" ["name" .= "viewport", "content" .= "width=device-width,initial-scale=1"] [],
          element "title" [] [text title],
          element "style" [] [pageStyle, styleSheet]
        ],
      element "body" [] [element "main" [] (element "h1" [] [text title] : content)]
    ]

pageStyle :: Markup
pageStyle =
  raw . Text.concat $
    [ ":root{color-scheme:light dark;--page:#fff;--card:#f6f7f9;--text:#1c2330;--soft:#5a6475;",
      "--edge:#dfe3ea;--bad:#b3261e;--good:#14795a}",
      "@media (prefers-color-scheme:dark){:root{--page:#12161e;--card:#1a202b;",
      "--text:#e6eaf2;--soft:#9aa5b8;--edge:#303846;",
      "--bad:#ff8a80;--good:#4fcf9f}}",
      "*{box-sizing:border-box}body{margin:0;background:var(--page);",
      "color:var(--text);font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}",
      "main{max-width:1120px;margin:0 auto;padding:16px 14px 48px}",
      "h1{font-size:24px;margin:.4em 0}h2{font-size:19px;margin:2em 0 .4em;",
      "border-top:1px solid var(--edge);padding-top:1em}",
      "h3{font-size:15px;margin:1.4em 0 .3em}",
      ".lead{font-size:17px;margin:.2em 0 1em}.note{color:var(--soft)}",
      ".bad{color:var(--bad);font-weight:600}.good{color:var(--good);font-weight:600}",
      -- A shadow at the edge shows that the content is cut off. The shadow stays in place, while
      -- the page's own colour moves over it at the end.
      ".scroll{overflow-x:auto;-webkit-overflow-scrolling:touch;",
      "background:linear-gradient(90deg,var(--page) 30%,transparent) 0/36px 100% local,",
      "linear-gradient(270deg,var(--page) 30%,transparent) 100%/36px 100% local,",
      "linear-gradient(90deg,var(--edge),transparent) 0/12px 100% scroll,",
      "linear-gradient(270deg,var(--edge),transparent) 100%/12px 100% scroll;",
      "background-repeat:no-repeat}",
      "table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:14px}",
      "th,td{padding:4px 7px;border-bottom:1px solid var(--edge);",
      "text-align:right;white-space:nowrap}",
      "th{color:var(--soft);font-weight:500;white-space:normal;vertical-align:bottom}",
      "th:first-child,td:first-child{text-align:left;padding-left:0;",
      "white-space:normal;overflow-wrap:anywhere;min-width:7em}",
      "@media (max-width:900px){table{font-size:12px}th,td{padding:4px}}",
      "table.facts td{text-align:left;white-space:normal;overflow-wrap:anywhere}",
      "table.facts td:first-child{color:var(--soft);overflow-wrap:normal;vertical-align:top}",
      "p,ul,figure{max-width:860px}figure{margin:1.4em 0}",
      "figcaption{margin-bottom:6px}figcaption span{color:var(--soft)}",
      "details{margin:1em 0}summary{cursor:pointer;color:var(--soft)}",
      "a{color:inherit}ul{padding-left:1.2em}"
    ]

headline :: [Run] -> Text
headline = \case
  [] -> "Nothing was measured."
  runs
    | invalid > 0 ->
      shown invalid <> " of " <> shown (length runs)
        <> " runs must not be used, for the reasons below."
    | [run] <- runs ->
      Text.concat
        [ grouped (round (runRate run)),
          " commands per second, half of them within ",
          latency 50 (runLatencies run),
          ", 99 % within ",
          latency 99 (runLatencies run),
          "."
        ]
    | otherwise -> shown (length runs) <> " runs, all valid."
    where
      invalid = length (filter (not . runValid) runs)

summaryTable :: [Run] -> Markup
summaryTable runs = tableOf (map fst columns) [[cell run | (_, cell) <- columns] | run <- runs]
  where
    columns =
      [ ("run", text . runName),
        ("valid", verdict . runValid),
        ("commands/s", text . grouped . round . runRate),
        ("\177\160\&95\160%", text . maybe "one window" interval . summarise . runRates),
        ("p50", at 50),
        ("p99", at 99),
        ("p99.9", at 99.9),
        ("max", at 100),
        ("errors", text . grouped . runErrorCount)
      ]
        <> [ ("hits", text . Text.pack . maybe "" percent . runHitRatio)
             | any (isJust . runHitRatio) runs
           ]
        <> [("client CPU/op", text . format Nanoseconds . runCpuPerOp)]
        <> [ ("vs redis-benchmark", \run -> text (maybe "" (beside run) (runReference run)))
             | any (isJust . runReference) runs
           ]
    at share = text . latency share . runLatencies
    interval summary = case summaryInterval summary of
      Nothing -> if summaryCount summary == 1 then "one window" else "too few"
      Just (_, high) ->
        decimals 1 (100 * (high - summaryMean summary) / max 1e-9 (summaryMean summary)) <> " %"
    verdict good
      | good = element "span" ["class" .= "good"] [text "yes"]
      | otherwise = element "span" ["class" .= "bad"] [text "NO"]
    beside run reference = decimals 2 (runRate run / referenceOpsPerSecond reference) <> "\215"

contents :: [Run] -> Markup
contents runs = folded "All runs" (element "ul" [] (zipWith entry [1 ..] runs))
  where
    entry place run =
      element "li" [] [element "a" ["href" .= ("#" <> anchor place)] [text (runName run)]]

-- Content that is hidden until the reader asks for it.
folded :: Text -> Markup -> Markup
folded title content = element "details" [] [element "summary" [] [text title], content]

anchor :: Int -> Text
anchor place = "run-" <> shown place

section :: Int -> Run -> Markup
section place run =
  element
    "section"
    ["id" .= anchor place]
    ( element "h2" [] [text (runName run)] :
      paragraph "note" (describe run) :
      map (paragraph "note") (runNotes run)
        <> map figure (runCharts run <> spectra "Latency spectrum" [(runName run, run)])
        <> table "By command" commandHeading (concatMap commandRows (Map.toList (runCommands run)))
        <> (if null (runNodes run) then [] else byNode)
        <> (if length (runIterations run) > 1 then byIteration else [])
        <> [ folded "Everything else that is known of this run" $
               factsOf (specFacts run <> trustFacts run <> serverFacts run)
           ]
    )
  where
    byIteration =
      table
        "By iteration"
        ["window", "commands/s", "p50", "p99", "p99.9", "max"]
        [ shown number :
          grouped (round (iterationRate iteration)) :
          map (`latency` iterationLatencies iteration) [50, 99, 99.9, 100]
          | (number, iteration) <- zip [1 :: Int ..] (runIterations run)
        ]
    table title heading cells = [element "h3" [] [text title], tableOf heading (map (map text) cells)]
    commandHeading =
      Text.words "command answered mean p50 p90 p99 p99.9 p99.99 max hits misses errors"
    commandRows (name, stats) =
      commandRow name stats (commandService stats) :
        [ commandRow (name <> ", response") stats response
          | Just response <- [commandResponse stats]
        ]
    commandRow name stats histogram =
      name :
      grouped (Histogram.count histogram) :
      format Nanoseconds (Histogram.mean histogram) :
      map (`latency` histogram) [50, 90, 99, 99.9, 99.99, 100]
        <> map grouped [commandHits stats, commandMisses stats, sum (commandErrors stats)]
    byNode =
      table
        "By node"
        ["node", "answered", "p50", "p99", "p99.9", "max", "errors"]
        [ name :
          grouped (Histogram.count (nodeService node)) :
          map (`latency` nodeService node) [50, 99, 99.9, 100]
            <> [grouped (sum (nodeErrors node))]
          | (name, node) <- Map.toList (runNodes run)
        ]

-- A percentile in words.
latency :: Double -> Histogram -> Text
latency share = format Nanoseconds . fromIntegral . Histogram.percentile share

grouped :: Int -> Text
grouped = Text.pack . thousands

decimals :: Int -> Double -> Text
decimals digits = Text.pack . fixed digits

describe :: Run -> Text
describe run =
  Text.intercalate ", " $
    [ serverName (runServer run),
      Text.pack (targetName (specTarget spec)) <> (if nodes > 1 then " of " <> shown nodes else "")
    ]
      <> ["TLS" | specTls spec]
      <> [ loopText (specLoop spec),
           inFlight,
           grouped (specKeys spec) <> " keys, " <> specDistribution spec,
           "values of " <> specValueSizes spec <> " B",
           shown windows <> " \215 " <> decimals 1 (runSeconds run / fromIntegral (max 1 windows)) <> " s"
         ]
  where
    spec = runSpec run
    nodes = serverNodes (runServer run)
    windows = length (runIterations run)
    threads = shown (specThreads spec) <> (if specThreads spec == 1 then " thread" else " threads")
    inFlight = case specLoop spec of
      Closed ->
        shown (specInFlight spec) <> " in flight (" <> threads <> " \215 " <> shown (specBatch spec)
          <> ")"
      -- The limit of the connections, whatever the threads.
      _ -> "at most " <> shown (specInFlight spec) <> " in flight, " <> threads

loopText :: Loop -> Text
loopText = \case
  Closed -> "closed loop"
  OpenConstant rate -> "open loop at " <> perSecond rate
  OpenPoisson rate -> "open loop, Poisson at " <> perSecond rate
  OpenRamp from to -> "open loop from " <> perSecond from <> " to " <> perSecond to
  where
    perSecond rate
      | rate < 100 = Text.pack (describeRate rate)
      | otherwise = grouped (round rate) <> "/s"

specFacts :: Run -> [(Text, Text)]
specFacts run =
  [ ("workload", specWorkload spec),
    ("seed", shown (specSeed spec)),
    ("key size", shown (specKeySize spec) <> " B"),
    ("connections per node", maybe "one per capability" shown (specMuxCount spec)),
    ("polling", if specPolling spec then "yes" else "no"),
    ("capabilities", shown (specCapabilities spec)),
    ("warm-up", decimals 1 (specWarmup spec) <> " s"),
    ("protocol", "RESP" <> shown (specProtocol spec)),
    ("network", specNetwork spec),
    ("persistence", fold (specPersistence spec))
  ]
    <> Map.toList (specAxes spec)
  where
    spec = runSpec run

trustFacts :: Run -> [(Text, Text)]
trustFacts run =
  [ ( "commands counted",
      case runAgreement run of
        Agrees counts -> "the server counted the same: " <> counted counts
        Disagrees ours theirs -> "client " <> counted ours <> ", server " <> counted theirs
        NotComparable reason -> "not compared: " <> reason
    ),
    ("generator's share of its cores", between share trustCpuShare),
    ("garbage collection", between share trustGcShare),
    ("all its threads together waited for a core", between waitedEachSecond trustRunQueue),
    ("Little's law (1 is right)", between (decimals 3) trustLittle),
    ("steady after the warm-up", steady (mapMaybe trustSteady trusts)),
    ("schedule error, p99", maybe "" (latency 99) (foldMap trustSchedule trusts)),
    ( "generator's memory",
      format Bytes (fromIntegral (memoryPeakResident (runMemory run))) <> " resident at most"
    )
  ]
  where
    trusts = map iterationTrust (runIterations run)
    share value = decimals 1 (value * 100) <> " %"
    -- The least and the greatest value, if the windows differ.
    between :: (Double -> Text) -> (Trust -> Maybe Double) -> Text
    between written part = case mapMaybe part trusts of
      [] -> ""
      found
        | least == greatest -> least
        | otherwise -> least <> " to " <> greatest
        where
          least = written (minimum found)
          greatest = written (maximum found)
    steady found
      | null found = ""
      | and found = "yes"
      | or found = "in " <> size (filter id found) <> " of " <> size found <> " windows"
      | otherwise = "no"
    size = shown . length :: [Bool] -> Text
    counted :: Map Text Int -> Text
    counted counts =
      Text.intercalate ", " [grouped held <> " " <> Text.toUpper name | (name, held) <- Map.toList counts]

serverFacts :: Run -> [(Text, Text)]
serverFacts run =
  ("server's SHA-256", fold (serverSha256 server)) :
  ("clock against the server's", maybe "" clockText (serverClock server)) :
  [("would not tell", reason) | reason <- serverRefused server]
    <> [("CONFIG " <> name, value) | (name, value) <- Map.toList (serverConfig server)]
  where
    server = runServer run

clockText :: Clock -> Text
clockText clock =
  "Its clock is ahead by " <> format Nanoseconds (fromIntegral (clockOffset clock))
    <> ", give or take "
    <> format Nanoseconds (fromIntegral (clockUncertainty clock))
    <> "."

-- | A section about the machine and the program.
manifestSection :: Text -> Manifest -> Markup
manifestSection title manifest = titled title [manifestFacts' manifest]

manifestFacts' :: Manifest -> Markup
manifestFacts' manifest =
  factsOf $
    [ ("when", Text.pack (dated "%Y-%m-%d %H:%M:%S UTC" (manifestStarted manifest))),
      ("command line", Text.unwords (manifestCommand manifest)),
      ( "program",
        "redis-client " <> manifestTool manifest
          <> maybe "" (", revision " <>) (manifestRevision manifest)
          <> (", " <> manifestCompiler manifest)
      ),
      ( "runtime",
        shown (manifestCapabilities manifest)
          <> (" capabilities " <> Text.unwords (manifestRtsArguments manifest))
      ),
      ( "processor",
        fromMaybe "unknown" (manifestCpu manifest)
          <> (", " <> shown (manifestProcessors manifest) <> " seen, ")
          <> (if manifestVirtual manifest then "virtual" else "not virtual")
      ),
      ("memory", maybe "" (format Bytes . fromIntegral) (manifestMemory manifest)),
      ( "system",
        Text.unwords [manifestOs manifest, manifestKernel manifest, manifestArchitecture manifest]
          <> (", clock " <> manifestClockSource manifest)
      ),
      ("disk", maybe "" diskText (manifestDisk manifest))
    ]
      <> Map.toList (manifestFacts manifest)
  where
    diskText (Disk kind fsync) =
      Text.concat [kind, ", fsync p50 ", latency 50 fsync, ", p99 ", latency 99 fsync]

-- | A section with this title.
titled :: Text -> [Markup] -> Markup
titled title content = element "section" [] (element "h2" [] [text title] : content)

-- | A paragraph of this class.
paragraph :: Text -> Text -> Markup
paragraph kind said = element "p" ["class" .= kind] [text said]

-- | A list whose items have this class; nothing if there are none.
bullets :: Text -> [Text] -> [Markup]
bullets kind items =
  [element "ul" [] [element "li" ["class" .= kind] [text item] | item <- items] | not (null items)]

-- | A table that scrolls by itself if it is too wide.
tableOf :: [Text] -> [[Markup]] -> Markup
tableOf heading rows =
  element
    "div"
    ["class" .= "scroll"]
    [ element
        "table"
        []
        [ element "thead" [] [element "tr" [] [element "th" [] [text name] | name <- heading]],
          element "tbody" [] (map row rows)
        ]
    ]

row :: [Markup] -> Markup
row cells = element "tr" [] [element "td" [] [cell] | cell <- cells]

-- | A table of names and values. Leaves out empty values.
factsOf :: [(Text, Text)] -> Markup
factsOf facts = element "table" ["class" .= "facts"] [element "tbody" [] rows]
  where
    rows = [row [text name, text value] | (name, value) <- facts, value /= ""]
