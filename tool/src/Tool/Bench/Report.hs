-- | Results as a table that fits a terminal.
module Tool.Bench.Report
  ( report,
    details,
  )
where

import Data.Map.Strict qualified as Map
import Data.Maybe (isJust)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Result
import Tool.Options.Bench (LoadOptions (..), operationName)
import Tool.Text (Align (..), fixed, percent, table, thousands)
import Tool.Text qualified as Text

-- | One row per run, then what is wrong with any of them. Lines.
report :: [RunResult] -> [String]
report results =
  table (AlignLeft : AlignLeft : map (const AlignRight) (drop 2 heading)) (heading : map row results)
    <> legend
    <> concatMap complaint results
  where
    compared = any (isJust . runReference) results
    heading =
      [ "target",
        "op",
        "ops/s",
        "p50",
        "p95",
        "p99",
        "p99.9",
        "max",
        "hits",
        "misses",
        "hit ratio",
        "errors",
        "CPU us/op"
      ]
        <> (if compared then ["rb ops/s", "rb CPU", "vs rb"] else [])
    row result =
      let all' = latencies result
          at percentile = Text.duration (Histogram.percentile percentile all')
       in [ targetName (runTarget result) <> (if runTls result then " TLS" else ""),
            operationName (runOperation result),
            thousands (round (opsPerSecond result)),
            at 50,
            at 95,
            at 99,
            at 99.9,
            Text.duration (Histogram.maximumValue all'),
            thousands (runHits result),
            thousands (runMisses result),
            maybe "-" percent (hitRatio result),
            thousands (errorCount result),
            fixed 2 (runCpuPerOp result / 1000)
          ]
            <> (if compared then maybe ["-", "-", "-"] (reference result) (runReference result) else [])
    reference result found =
      [ thousands (round (referenceOpsPerSecond found)),
        fixed 2 (referenceCpuPerOp found / 1000),
        fixed 2 (opsPerSecond result / referenceOpsPerSecond found) <> "x"
      ]
    legend =
      [ "rb: redis-benchmark beside it, -c 16 -P 64 (cluster: --cluster -c 20 -P 64); it has no mixed test"
        | compared
      ]
    complaint result =
      [ "INVALID: " <> targetName (runTarget result) <> " " <> operationName (runOperation result) <> ": " <> problem
        | problem <- problems result
      ]

-- | What a single run was, and how its counts compare, in a few lines.
details :: RunResult -> [String]
details result =
  [ "server " <> runServer result <> ", " <> targetName (runTarget result)
      <> (if runNodes result > 1 then " of " <> show (runNodes result) else "")
      <> (if runTls result then ", TLS" else ""),
    show (loadThreads load) <> " threads x " <> batch
      <> ", "
      <> maybe "one connection per capability" connections (loadMuxCount load)
      <> ", "
      <> show (runCapabilities result)
      <> (if runCapabilities result == 1 then " capability" else " capabilities"),
    thousands (loadKeys load) <> " keys of " <> show (loadKeySize load) <> " B, values of "
      <> show (loadValueSize load)
      <> " B, seed "
      <> show (loadSeed load),
    thousands (totalOps result) <> " commands in " <> fixed 2 (runSeconds result) <> " s after "
      <> fixed 1 (loadWarmup load)
      <> " s of warm-up",
    case runAgreement result of
      Agrees counts ->
        "commandstats agree: " <> thousands (countGets counts) <> " GET, "
          <> thousands (countSets counts)
          <> " SET, preload and warm-up included"
      Disagrees _ _ -> "commandstats DISAGREE"
      NotComparable reason -> "commandstats not compared: " <> reason
  ]
    <> [ "errors: " <> show held <> " " <> name
         | (name, held) <- Map.toList (runErrors result)
       ]
  where
    load = runLoad result
    batch
      | loadBatch load == 1 = "1 command, waiting for each reply"
      | otherwise = "batches of " <> show (loadBatch load)
    connections count
      | count == 1 = "1 connection per node"
      | otherwise = show count <> " connections per node"
