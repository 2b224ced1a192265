-- | The charts of a report, from its document.
module Tool.Bench.Html.Charts
  ( throughputs,
    spectra,
    loadCurve,
    runCharts,
    spectrum,
    seriesOf,
  )
where

import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust)
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Bench.Document
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Chart
import Tool.Statistics (Summary (..), summarise)
import Tool.Text (thousands)

-- | A bar for each run, and beside it a bar of redis-benchmark where that ran. The whisker is the
-- 95 % interval of the mean over the iterations.
throughputs :: [Run] -> [Chart]
throughputs runs =
  [ barChart
      "Throughput"
      "Commands answered correctly per second. \
      \The whisker is the 95 % interval of the mean over the iterations."
      (axis "commands per second" Linear Thousands)
      ("this run" : ["redis-benchmark beside it" | compared])
      (map group runs)
    | not (null runs)
  ]
  where
    compared = any ((/= Nothing) . runReference) runs
    group run =
      Group
        { groupName = runName run,
          groupBars =
            Just
              (bar (runRate run))
                { barWhisker = summarise (runRates run) >>= summaryInterval,
                  barNote = if runValid run then "" else "INVALID"
                } :
              [bar . referenceOpsPerSecond <$> runReference run | compared]
        }

-- | The distributions of the latencies of several runs in one chart.
spectra :: Text -> [(Text, Run)] -> [Chart]
spectra title runs =
  [ lineChart
      title
      "Every nine takes the same room: \
      \read off what the slowest one in a hundred, in a thousand, took."
      ( axis "share of all commands that were at least as fast" Nines Plain,
        axis "latency" Logarithmic Nanoseconds
      )
      (concat (zipWith curves [0 ..] runs))
    | any ((> 0) . runOps . snd) runs
  ]
  where
    several = length runs > 1
    curves place (name, run) =
      [(line service (spectrum (runService run))) {lineColour = Just place}]
        <> [ (line answer (spectrum response))
               { lineStyle = Dashed,
                 lineColour = Just (if several then place else 1)
               }
             | Just response <- [runResponse run]
           ]
      where
        service = if several then name else "service: from the submit"
        answer = if several then name <> ", response" else "response: from the intended start"

-- | The points of a histogram on an axis of nines, no more of them than the eye can tell apart.
spectrum :: Histogram -> [(Double, Double)]
spectrum histogram
  | count == 0 = []
  | otherwise =
    thinned 0 points
      <> [(fromIntegral count, fromIntegral (Histogram.maximumValue histogram))]
  where
    count = Histogram.count histogram
    clamped = max (Histogram.minimumValue histogram) . min (Histogram.maximumValue histogram)
    -- At each bucket: the rank of its first value.
    points =
      [ ( fromIntegral count / fromIntegral (count - seen),
          fromIntegral (clamped (Histogram.bucketMiddle bucket))
        )
        | (seen, (bucket, _)) <- zip (scanl (+) 0 (map snd buckets)) buckets
      ]
    buckets = Histogram.buckets histogram
    thinned :: Double -> [(Double, Double)] -> [(Double, Double)]
    thinned _ [] = []
    thinned before (point : others)
      | log (fst point) >= before = point : thinned (log (fst point) + 0.03) others
      | otherwise = thinned before others

-- | Latency over throughput, where the runs offered several rates.
loadCurve :: [Run] -> [Chart]
loadCurve runs =
  [ lineChart
      ("Latency under load: " <> operation)
      ( "Each point is a run at one offered rate. \
        \Where the curve turns upwards the server is full. "
          <> case kneeOf these of
            Just _ -> "The upright line is the knee, beyond which commands queue up."
            Nothing
              | all (isJust . offered) these -> "There is no knee: commands queue up at every rate."
              | otherwise -> ""
      )
      (axis "commands per second, reached" Linear Thousands, axis "latency" Logarithmic Nanoseconds)
      ( [line name (map (reached percent) (List.sortOn runRate these)) | (name, percent) <- percentiles]
          <> [upright (kneeName step) (stepReached step) these | Just step <- [kneeOf these]]
      )
    | (operation, these) <- Map.toList byOperation,
      length these >= 2
  ]
  where
    byOperation =
      Map.fromListWith (flip (<>)) [(specOperation (runSpec run), [run]) | run <- runs, isOpen run]
    kneeName step = "knee: " <> Text.pack (thousands (round (stepRate step))) <> "/s"
    reached percent run =
      (runRate run, fromIntegral (Histogram.percentile percent (runLatencies run)))
    isOpen run = specLoop (runSpec run) /= Closed
    kneeOf = knee . List.sortOn stepRate . map stepOf . filter (isJust . offered)
    -- A ramp offers many rates, and has no place on a curve over rates.
    offered run = case specLoop (runSpec run) of
      OpenConstant rate -> Just rate
      OpenPoisson rate -> Just rate
      _ -> Nothing
    -- As high as the curves.
    upright name at these =
      let latencies = [snd (reached percent run) | (_, percent) <- percentiles, run <- these]
       in (line name [(at, minimum latencies), (at, maximum latencies)]) {lineStyle = Dashed}

percentiles :: [(Text, Double)]
percentiles = [("p50", 50), ("p99", 99), ("p99.9", 99.9)]

-- | The charts over time: throughput, latency, heat map, and the server's curves.
runCharts :: Run -> [Chart]
runCharts run =
  concat
    [ [ overTime "Throughput over time" "Commands answered correctly in each second." rateAxis $
          [joined name (overSlices (rateOf name)) | name <- names]
            <> [ joined "all" (overSlices (\slice -> sum [rateOf name slice | name <- names]))
                 | length names > 1
               ]
        | timed
      ],
      [ overTime "Latency over time" ("Of each second: " <> which <> ".") latencyAxis $
          [ joined
              name
              [ [(sliceAt slice, at percent held) | (slice, held) <- slices, Histogram.count held > 0]
                | slices <- latencies
              ]
            | (name, percent) <- percentiles <> [("max", 100)]
          ]
        | timed
      ],
      [ Chart
          "Latency heat map"
          "How many commands took how long, second by second: the stronger, the more."
          (HeatPlot (Heats timeAxis latencyAxis (concatMap (concatMap heat . snd) series) events))
        | timed
      ],
      concat
        [ [overTime title about (axis unitName Linear unit) (serverLines found) | not (all (all null) found)]
          | (title, about, unitName, unit, value) <- serverCurves,
            let found = sampled value
        ]
    ]
  where
    rateAxis = axis "commands per second" Linear Thousands
    latencyAxis = axis "latency" Logarithmic Nanoseconds
    timeAxis = (axis "seconds" Linear Seconds) {axisHighest = Just (runSeconds run)}
    series = seriesOf run
    overSlices value =
      [[(sliceAt slice, value slice) | slice <- slices] | (_, slices) <- series]
    at percent = fromIntegral . Histogram.percentile percent
    timed = sum (map (length . snd) series) > 1
    names =
      List.nub (concat [Map.keys (sliceCommands slice) | (_, slices) <- series, slice <- slices])
    events =
      concat [map (shifted offset) (iterationEvents iteration) | (offset, iteration) <- placed run]
    shifted offset event =
      Band
        { bandFrom = offset + eventAt event,
          bandTo = offset + eventUntil event,
          bandKind = eventKind event,
          bandText = eventText event
        }
    overTime title about y curves =
      Chart title about (LinePlot (Lines timeAxis y (coloured curves) events))
    coloured curves =
      [each {lineColour = Just place} | (place, group) <- zip [0 ..] curves, each <- group]
    latencies = [[(slice, sliceLatencies slice) | slice <- slices] | (_, slices) <- series]
    -- One line for each iteration, so that no line connects two iterations.
    joined name = zipWith line (name : repeat "")
    rateOf name slice = maybe 0 (perSecond slice) (Map.lookup name (sliceCommands slice))
    perSecond slice stats =
      fromIntegral (Histogram.count (sliceService stats)) / max 1e-9 (sliceSpan slice)
    which =
      if any responds (concatMap snd series)
        then "response times, from the intended start"
        else "service times, from the submit"
    responds = any (isJust . sliceResponse) . sliceCommands
    heat slice =
      [ Heat
          { heatX = (sliceAt slice, sliceAt slice + sliceSpan slice),
            heatY = heights,
            heatCount = fromIntegral held / max 1e-9 (sliceSpan slice)
          }
        | (heights, held) <- rows (sliceLatencies slice)
      ]
    sampled value =
      Map.fromListWith
        (flip (<>))
        [ (node, [value offset samples])
          | (offset, iteration) <- placed run,
            (node, samples) <- Map.toList (byNode iteration)
        ]
    byNode iteration =
      Map.fromListWith (flip (<>)) [(sampleNode one, [one]) | one <- iterationSamples iteration]
    serverLines found =
      [joined (if Map.size found > 1 then node else "") pieces | (node, pieces) <- Map.toList found]

-- Counts in ten rows for each power of ten.
rows :: Histogram -> [((Double, Double), Int)]
rows histogram =
  [((border row, border (row + 1)), held) | (row, held) <- Map.toList counts]
  where
    border row = 10 ** (fromIntegral row / 10)
    counts =
      Map.fromListWith
        (+)
        [ (rowOf (Histogram.bucketMiddle bucket), held)
          | (bucket, held) <- Histogram.buckets histogram
        ]
    rowOf value = floor (10 * logBase 10 (fromIntegral (max 1 value)) :: Double) :: Int

-- | The slices of each iteration on one time axis, one iteration after the other, merged so that
-- there are no more than the eye can tell apart.
seriesOf :: Run -> [(Double, [Slice])]
seriesOf run =
  [ (offset, map (moved offset) (merged (iterationSeries iteration)))
    | (offset, iteration) <- placed run
  ]
  where
    moved offset slice = slice {sliceAt = sliceAt slice + offset}
    whole = sum (map (length . iterationSeries) (runIterations run))
    together = max 1 ((whole + 149) `div` 150)
    merged = \case
      [] -> []
      slices ->
        let (these, rest) = splitAt together slices
         in Slice
              { sliceAt = List.foldl' min (1 / 0) (map sliceAt these),
                sliceSpan = sum (map sliceSpan these),
                sliceCommands = Map.unionsWith (<>) (map sliceCommands these)
              } :
            merged rest

-- Where each iteration begins on that time axis.
placed :: Run -> [(Double, Iteration)]
placed run = zip (scanl (+) 0 (map iterationSeconds iterations)) iterations
  where
    iterations = runIterations run

-- Title, explanation, label, unit, and the curve of one node's samples.
serverCurves :: [(Text, Text, Text, Unit, Double -> [ServerSample] -> [(Double, Double)])]
serverCurves =
  [ rate "processor" "Cores that the server kept busy." "cores" Plain $
      Text.words "used_cpu_sys used_cpu_user",
    rate "commands" "As the server counts them." "commands per second" Thousands ["total_commands_processed"],
    size "memory" "What its data needs." "used_memory",
    size "resident memory" "What the system gave it: grows when a fork copies pages." "used_memory_rss",
    size "append-only file" "Its size; it falls when it has been rewritten." "aof_current_size",
    rate
      "delayed fsyncs"
      "Times in each second that a write had to wait for the disk."
      "per second"
      Plain
      ["aof_delayed_fsync"],
    rate "network" "Bytes that it received and sent." "bytes per second" Bytes $
      Text.words "total_net_input_bytes total_net_output_bytes"
  ]
  where
    rate name about label unit names = ("Server: " <> name, about, label, unit, grown names)
    size name about field = ("Server: " <> name, about, "bytes", Bytes, level [field])
    level names offset samples =
      [(offset + sampleAt one, value) | one <- samples, Just value <- [summed names one]]
    grown names offset samples =
      [ (offset + sampleAt next, (after - before) / (sampleAt next - sampleAt one))
        | (one, next) <- zip samples (drop 1 samples),
          sampleAt next > sampleAt one,
          Just before <- [summed names one],
          Just after <- [summed names next],
          after >= before
      ]
    summed :: [Text] -> ServerSample -> Maybe Double
    summed names one = sum <$> traverse (`Map.lookup` sampleValues one) names
