-- | Measures what the tool itself costs, and how exactly it keeps to a plan.
--
-- First it runs the same load, GETs to a private server, in two ways and in turns: as a bare loop
-- over the library, which draws keys like the tool and drops the replies, and as the tool, which
-- compares replies and keeps histograms by slice. It does so with 16 threads in batches of 64,
-- where a command costs the library least, and with 256 threads that wait for each reply. A third
-- loop reads only a few keys: the difference is the cost of keys that are in no cache, here and on
-- the server. Then it runs an open loop of 100 000 commands per second, and shows the schedule
-- error. Give it one core and the server another, and run nothing else:
--
-- > taskset -c 1 cabal bench overhead
module Main (main) where

import Control.Monad (forM, forM_, replicateM)
import Lab.Bare (bareCpu, bareLoop)
import Tool.Bench.Arrivals (Arrivals (..))
import Tool.Bench.Document
import Tool.Bench.Document.Totals (runCpuPerOp)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Private (withPrivate)
import Tool.Bench.Progress (silent)
import Tool.Bench.Run (measure)
import Tool.Bench.Workload (newWorkload, workloadKeys)
import Tool.Options.Bench
import Tool.Options.Load
import Tool.Span (inMicros)
import Tool.Statistics (median)
import Tool.Text (duration, fixed)

main :: IO ()
main = withPrivate TargetStandalone False [0] $ \target -> do
  -- Both loops find the same keys there.
  _ <- measured target closed {loadDuration = 0.5}
  forM_ [closed, closed {loadThreads = 256, loadBatch = 1}] $ \load -> do
    found <-
      replicateM 5 $
        (,,) <$> bare target load (workloadKeys (newWorkload OperationGet load)) <*> (runCpuPerOp <$> measured target load) <*> bare target load 64
    let (loops, tools, few) = unzip3 found
        ratios = zipWith (/) tools loops
    putStrLn (show (loadThreads load) <> " threads, batches of " <> show (loadBatch load) <> ", processor time per command:")
    putStrLn ("  bare loop            " <> micros (median loops))
    putStrLn ("  the tool             " <> micros (median tools) <> ", " <> fixed 2 (median ratios) <> " times as much (" <> fixed 2 (minimum ratios) <> " to " <> fixed 2 (maximum ratios) <> ")")
    putStrLn ("  bare loop, 64 keys   " <> micros (median few))
  late <- forM [Constant 100000, Poisson 100000] $ \arriving -> do
    run <- measured target closed {loadPlan = (loadPlan closed) {planSending = AtTimes arriving}, loadDuration = 5}
    pure (show arriving <> " a second, sent late by: " <> lateness run)
  mapM_ putStrLn late
  where
    closed = defaultLoad {loadDuration = 3, loadMuxCount = Just 1, loadPlan = defaultPlan {planAllowed = [Saturation], planBrief = True, planSample = Nothing, planWarmup = WarmupFor 0.5}}
    bare target load keys = bareCpu <$> bareLoop target load keys
    measured target load = measure silent target (newWorkload OperationGet load) load
    micros nanos = fixed 3 (inMicros nanos) <> " us"
    lateness run = case foldMap (trustSchedule . iterationTrust) (runIterations run) of
      Just late -> "p50 " <> at 50 late <> ", p99 " <> at 99 late <> ", max " <> duration (Histogram.maximumValue late) <> concatMap (("; " <>) . show) (runProblems run)
      Nothing -> "unknown"
    at percentile = duration . Histogram.percentile percentile
