-- | What the tool itself costs, and how exactly it keeps to a plan.
--
-- First the same load twice, by turns: 16 threads that send batches of 64 GETs
-- to a private server, once as a bare loop over the library, once as the tool
-- runs it, with keys that are drawn, replies that are compared, and histograms.
-- Then an open loop of 100 000 commands a second, and how late each was sent.
-- Give it a core and the server another, and nothing else to do:
--
-- > taskset -c 1 cabal bench overhead
module Main (main) where

import Control.Concurrent.Async (forConcurrently_)
import Control.Monad (forM, replicateM)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (atomicModifyIORef', newIORef, readIORef)
import Data.List (sort)
import Redis qualified
import Redis.Commands qualified as Commands
import Tool.Bench.Arrivals (Arrivals (..))
import Tool.Bench.Cpu (monotonic, ownCpu)
import Tool.Bench.Document
import Tool.Bench.Document.Totals (runCpuPerOp)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Private (PrivateOptions (..), withPrivate)
import Tool.Bench.Progress (silent)
import Tool.Bench.Run (measure)
import Tool.Bench.Workload.Chosen (newWorkload)
import Tool.Connect (Target, Tuning (..), withTarget)
import Tool.Options.Bench
import Tool.Options.Load
import Tool.Text (duration, fixed)

main :: IO ()
main = withPrivate PrivateOptions {privateKind = TargetStandalone, privateTls = False, privateCores = [0]} $ \target -> do
  -- Both find the same keys there.
  _ <- measured target closed {loadDuration = 0.5}
  pairs <- replicateM 5 ((,) <$> bare target <*> (runCpuPerOp <$> measured target closed))
  let ratios = [tool / loop | (loop, tool) <- pairs]
  putStrLn ("bare loop: " <> micros (median (map fst pairs)) <> " of processor time per command")
  putStrLn ("the tool:  " <> micros (median (map snd pairs)) <> ", " <> fixed 2 (median ratios) <> " times as much (" <> fixed 2 (minimum ratios) <> " to " <> fixed 2 (maximum ratios) <> ")")
  late <- forM [Constant 100000, Poisson 100000] $ \arriving -> do
    run <- measured target closed {loadPlan = (loadPlan closed) {planArrivals = Just arriving}, loadDuration = 5}
    pure (show arriving <> " a second, sent late by: " <> lateness run)
  mapM_ putStrLn late
  where
    closed = defaultLoad {loadDuration = 3, loadMuxCount = Just 1, loadPlan = defaultPlan {planAllowed = [Saturation], planBrief = True, planSample = Nothing, planWarmup = WarmupFor 0.5}}
    measured target load = measure silent target (newWorkload OperationGet load) load
    micros nanos = fixed 3 (nanos / 1000) <> " us"
    lateness run = case foldMap (trustSchedule . iterationTrust) (runIterations run) of
      Just late -> "p50 " <> at 50 late <> ", p99 " <> at 99 late <> ", max " <> duration (Histogram.maximumValue late) <> concatMap (("; " <>) . show) (runProblems run)
      Nothing -> "unknown"
    at percentile = duration . Histogram.percentile percentile

-- Nanoseconds of processor time per command of a loop that does nothing else.
bare :: Target -> IO Double
bare target = withTarget Tuning {tuningMuxCount = Just 1, tuningPolling = True} target $ \client -> do
  total <- newIORef (0 :: Int)
  began <- monotonic
  before <- ownCpu
  forConcurrently_ [0 .. 15 :: Int] $ \thread -> do
    let go sent = do
          now <- monotonic
          if now - began > 3000000000
            then atomicModifyIORef' total (\all' -> (all' + sent, ()))
            else do
              held <- traverse (Redis.submit client . Commands.get) keys
              mapM_ Redis.wait held
              go (sent + 64)
        keys = take 64 (drop (thread * 64) names)
    go 0
  after <- ownCpu
  (\count -> fromIntegral (after - before) / fromIntegral (max 1 count)) <$> readIORef total
  where
    -- As the tool names its keys, in 16 bytes.
    names = ["key:" <> Char8.replicate 7 '0' <> Char8.pack (show number) | number <- [10000 .. 19999 :: Int]]

median :: [Double] -> Double
median values = case drop (length values `div` 2) (sort values) of
  middle : _ -> middle
  [] -> 0
