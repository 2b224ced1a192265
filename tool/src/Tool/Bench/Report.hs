-- | Results as a table that fits a terminal.
module Tool.Bench.Report
  ( report,
    details,
  )
where

import Data.List (intercalate)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust)
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Bench.Arrivals (describeRate)
import Tool.Bench.Document
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Trust (cpuLimit, waitedEachSecond)
import Tool.Statistics (Summary (..), summarise)
import Tool.Text (Align (..), fixed, percent, table, thousands)
import Tool.Text qualified as Words

-- | Lines: one row per run, then the errors by class and by node, and the problems of the runs.
report :: [Run] -> [String]
report results =
  table
    (AlignLeft : AlignLeft : map (const AlignRight) (drop 2 columns))
    (map fst columns : [[cell result | (_, cell) <- columns] | result <- results])
    <> legend
    <> concatMap failures results
    <> concatMap complaint results
  where
    compared = any (isJust . runReference) results
    columns =
      [ ("target", target),
        ("op", Text.unpack . specOperation . runSpec),
        ("ops/s", \run -> thousands (round (runRate run)) <> (if share run > cpuLimit then " *" else "")),
        ("p50", at 50 . runLatencies),
        ("p95", at 95 . runLatencies),
        ("p99", at 99 . runLatencies),
        ("p99.9", at 99.9 . runLatencies),
        ("max", at 100 . runLatencies),
        ("hits", thousands . runHits),
        ("misses", thousands . runMisses),
        ("hit ratio", maybe "-" percent . runHitRatio),
        ("errors", thousands . runErrorCount),
        ("CPU us/op", micros . runCpuPerOp)
      ]
        <> [ (name, \run -> maybe "-" (cell run) (runReference run))
             | compared,
               (name, cell) <-
                 [ ("rb ops/s", const (thousands . round . referenceOpsPerSecond)),
                   ("rb CPU", const (micros . referenceCpuPerOp)),
                   ("vs rb", \run found -> fixed 2 (runRate run / referenceOpsPerSecond found) <> "x")
                 ]
           ]
    target run =
      targetName (specTarget (runSpec run)) <> (if specTls (runSpec run) then " TLS" else "")
    micros nanos = fixed 2 (nanos / 1000)
    legend =
      [ "rb: redis-benchmark beside it, -c 16 -P 64 \
        \(cluster: --cluster -c 20 -P 64, which reads one slot of each node); \
        \it has no mixed test"
        | compared
      ]
        <> [ "*: " <> Text.unpack (runName result) <> ": the generator used "
               <> percent (share result)
               <> " of its cores, more than "
               <> percent cpuLimit
               <> ": these are its own figures, not the server's"
             | result <- results,
               share result > cpuLimit
           ]
    share = fromMaybe 0 . highestTrust trustCpuShare
    failures result =
      [ Text.unpack (runName result <> ": " <> whose <> ": ") <> listed id errors
        | (whose, errors) <-
            ("errors", runErrors result) :
              [("errors of " <> node, nodeErrors found) | (node, found) <- Map.toList (runNodes result)],
          not (Map.null errors)
      ]
    complaint result =
      [ "INVALID: " <> Text.unpack (runName result <> ": " <> problem)
        | problem <- runProblems result
      ]

-- Counts and their names, in one line.
listed :: (Text -> Text) -> Map.Map Text Int -> String
listed name counts =
  intercalate ", " [thousands held <> " " <> Text.unpack (name each) | (each, held) <- Map.toList counts]

-- A percentile in words.
at :: Double -> Histogram -> String
at share = Words.duration . Histogram.percentile share

-- Such as 1 thread, 2 threads.
several :: String -> Int -> String
several what count = show count <> " " <> what <> (if count == 1 then "" else "s")

-- | A few lines about a single run and the comparison of its counts.
details :: Run -> [String]
details result =
  [ "server " <> Text.unpack (serverName server) <> ", " <> targetName (specTarget spec)
      <> (if serverNodes server > 1 then " of " <> show (serverNodes server) else "")
      <> (if specTls spec then ", TLS" else ""),
    intercalate
      ", "
      [ several "thread" (specThreads spec),
        load,
        maybe "one connection per capability" ((<> " per node") . several "connection") (specMuxCount spec),
        show (specCapabilities spec)
          <> (if specCapabilities spec == 1 then " capability" else " capabilities")
      ],
    thousands (specKeys spec) <> " keys of " <> show (specKeySize spec) <> " B, values of "
      <> Text.unpack (specValueSizes spec)
      <> (" B, seed " <> show (specSeed spec)),
    thousands (runOps result) <> " commands in " <> fixed 2 (runSeconds result) <> " s after "
      <> fixed 1 (specWarmup spec)
      <> " s of warm-up",
    case runAgreement result of
      Agrees counts ->
        "commandstats agree: " <> listed Text.toUpper counts <> ", preload and warm-up included"
      Disagrees _ _ -> "commandstats DISAGREE"
      NotComparable reason -> "commandstats not compared: " <> Text.unpack reason
  ]
    <> responses
    <> lateness
    <> repeated
    <> generator
    <> refused
    <> noted
  where
    spec = runSpec result
    server = runServer result
    load = case specLoop spec of
      Closed
        | specBatch spec == 1 -> "one command at a time each"
        | otherwise -> "batches of " <> show (specBatch spec)
      OpenConstant each -> "open loop at " <> describeRate each
      OpenPoisson each -> "open loop, Poisson at " <> describeRate each
      OpenRamp from to -> "open loop from " <> describeRate from <> " to " <> describeRate to
    responses =
      [ "the table has response times, from when a command was due; \
        \service time, from when it was sent: "
          <> spread [("p50", 50), ("p99", 99), ("p99.9", 99.9), ("max", 100)] (runService result)
        | Just _ <- [runResponse result]
      ]
    lateness =
      [ "sent late by: " <> spread [("p50", 50), ("p99", 99), ("max", 100)] late
        | Just late <- [foldMap (trustSchedule . iterationTrust) (runIterations result)]
      ]
    spread shares held = intercalate ", " [name <> " " <> at share held | (name, share) <- shares]
    repeated = case summarise (runRates result) of
      Just summary
        | summaryCount summary > 1 ->
          [ show (summaryCount summary) <> " iterations: mean "
              <> rate (summaryMean summary)
              <> "/s, standard deviation "
              <> rate (summarySd summary)
              <> (" (" <> percent (summarySd summary / max 1 (summaryMean summary)) <> ")")
              <> case summaryInterval summary of
                Just (low, high) -> ", 95 % confidence " <> rate low <> " to " <> rate high
                Nothing -> "; an interval of confidence takes three"
          ]
      _ -> []
    rate = thousands . round :: Double -> String
    generator =
      [ "the generator used " <> upTo <> percent share <> " of its cores"
          <> maybe "" collected (highest trustGcShare)
          <> maybe "" waited (highest trustRunQueue)
        | Just share <- [highest trustCpuShare]
      ]
    collected share = ", " <> upTo <> percent share <> " of that for garbage collection"
    waited share =
      "; all its threads together waited " <> upTo <> Text.unpack (waitedEachSecond share)
        <> " for a core that others had"
    upTo = if length (runIterations result) > 1 then "up to " else ""
    highest part = highestTrust part result
    refused = ["the server did not tell: " <> Text.unpack reason | reason <- serverRefused server]
    noted = map (("note: " <>) . Text.unpack) (runNotes result)
