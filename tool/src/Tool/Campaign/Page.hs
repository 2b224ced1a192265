-- | A campaign's report as one HTML page, like those of single runs ("Tool.Bench.Html"): a chart
-- and a table for each question, the soaks over time, the checks of durability, every cell, and the
-- machine that measured them.
module Tool.Campaign.Page
  ( Shown (..),
    campaignPage,
  )
where

import Data.ByteString.Lazy (ByteString)
import Data.Maybe (mapMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Text.Read (readMaybe)
import Tool.Bench.Document
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Html (manifestSection, page, tableOf)
import Tool.Bench.Html.Charts (runCharts, spectra, throughputs)
import Tool.Campaign.Views
import Tool.Chart
import Tool.Markup (Markup, element, text, (.=))
import Tool.Statistics (Summary (..), summarise)
import Tool.Text (thousands)

-- | The parts of the page beside the document.
data Shown = Shown
  { shownTitle :: Text,
    -- | The first sentences of the page.
    shownLead :: [Text],
    shownCells :: [Run],
    -- | Each soak with the sentences about it.
    shownSoaks :: [(Run, [Text])],
    -- | Lines about lost writes.
    shownDurability :: [Text]
  }

-- | The page of a campaign.
campaignPage :: Shown -> Document -> ByteString
campaignPage shown document =
  page (shownTitle shown) . concat $
    [ map (paragraph "lead") (take 1 (shownLead shown)),
      map (paragraph "note") (drop 1 (shownLead shown)),
      [list "bad" invalid | not (null invalid)],
      map section (views cells),
      [ element
          "section"
          []
          (heading "Latency by persistence" : figures (spectra "Latency spectrum" persistences))
        | length persistences > 1
      ],
      [ element
          "section"
          []
          (heading (runName run) : map (paragraph "note") said <> figures (runCharts run))
        | (run, said) <- soaks
      ],
      told "After kill -9, and after a power cut" (shownDurability shown),
      [ element
          "section"
          []
          (heading "All cells" : figures (throughputs cells) <> [cellTable cells])
      ],
      told "Notes" (documentNotes document),
      [manifestSection "Where it was measured" (documentManifest document)]
    ]
  where
    cells = shownCells shown
    soaks = shownSoaks shown
    paragraph kind said = element "p" ["class" .= kind] [text said]
    list kind found = element "ul" [] [element "li" ["class" .= kind] [text said] | said <- found]
    told title found =
      [element "section" [] [heading title, list "" found] | not (null found)]
    invalid =
      [ runName run <> ": " <> problem
        | run <- cells <> map fst soaks,
          problem <- runProblems run
      ]
    persistences =
      [ (value, run)
        | view <- take 1 (filter ((== "persistence") . viewAcross) (views cells)),
          row <- take 1 (viewRows view),
          (value, Just run) <- zip (viewColumns view) (rowCells row)
      ]

heading :: Text -> Markup
heading = element "h2" [] . pure . text

figures :: [Chart] -> [Markup]
figures = map figure

section :: View -> Markup
section view =
  element
    "section"
    []
    ( heading (viewTitle view) :
      element "p" ["class" .= "note"] [text (viewAbout view)] :
      figures (viewCharts view)
        <> [ tableOf
               (viewAxis view : viewColumns view)
               [ text (rowValue row) : map (text . maybe "" cell) (rowCells row)
                 | row <- viewRows view
               ]
           ]
    )
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
    titled name = name <> " by " <> viewAxis view <> " and " <> viewAcross view
    throughput run = (runRate run, interval run)
    -- The interval of two values is so wide that it hides the rest.
    interval run = case summarise (runRates run) of
      Just summary | summaryCount summary > 2 -> summaryInterval summary
      _ -> Nothing
    latency run = (fromIntegral (Histogram.percentile 99 (runService run)), Nothing)
    curves name vertical value =
      Chart
        { chartTitle = titled name,
          chartAbout = "",
          chartPlot =
            LinePlot
              Lines
                { linesX = axis quantity Logarithmic Plain,
                  linesY = vertical,
                  linesAll =
                    [ curve column [(x, value run) | (x, run) <- points]
                      | (column, points) <- columns
                    ],
                  linesBands = []
                }
        }
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
    point number row = do
      x <- readMaybe (Text.unpack (rowValue row))
      run <- case drop number (rowCells row) of
        Just run : _ -> Just run
        _ -> Nothing
      pure (x, run)
    bars =
      Chart
        { chartTitle = titled "Throughput",
          chartAbout = "The whisker is the 95 % interval of the mean over the iterations.",
          chartPlot =
            BarPlot
              Bars
                { barsValue = rates,
                  barsSeries = viewColumns view,
                  barsGroups =
                    [ Group (rowValue row) (map (fmap barOf) (rowCells row))
                      | row <- viewRows view
                    ]
                }
        }
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
