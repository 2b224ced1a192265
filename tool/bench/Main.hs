-- | What the tool itself costs, and how exactly it keeps to a plan.
--
-- First the same load by turns, as GETs to a private server: as a bare loop over
-- the library, which draws keys as the tool does and drops what it gets, and as the
-- tool runs it, with replies that are compared, and histograms by slice. With 16
-- threads in batches of 64, where a command costs the library least, and with 256
-- threads that wait for each reply. A third loop asks for a few keys again and
-- again: what it saves is the price of keys that no cache holds, here and on the
-- server.
-- Then an open loop of 100 000 commands a second, and how late each was sent.
-- Give it a core and the server another, and nothing else to do:
--
-- > taskset -c 1 cabal bench overhead
module Main (main) where

import Control.Concurrent.Async (forConcurrently_)
import Control.Monad (forM, forM_, replicateM, void)
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
import Tool.Bench.Workload (workloadKey, workloadKeys)
import Tool.Bench.Workload.Chosen (newWorkload)
import Tool.Bench.Workload.Random (below, newStream, step, upper)
import Tool.Connect (Target, Tuning (..), withTarget)
import Tool.Options.Bench
import Tool.Options.Load
import Tool.Text (duration, fixed)

main :: IO ()
main = withPrivate PrivateOptions {privateKind = TargetStandalone, privateTls = False, privateCores = [0]} $ \target -> do
  -- Both find the same keys there.
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

-- Nanoseconds of processor time per command of a loop that does nothing else,
-- over the first so many keys.
bare :: Target -> LoadOptions -> Int -> IO Double
bare target load keys = withTarget Tuning {tuningMuxCount = Just 1, tuningPolling = True} target $ \client -> do
  total <- newIORef (0 :: Int)
  began <- monotonic
  before <- ownCpu
  forConcurrently_ [1 .. loadThreads load] $ \thread -> do
    stream <- newStream (loadSeed load) thread
    let ask = Commands.get . workloadKey workload . below keys . upper <$> step stream
        go sent = do
          now <- monotonic
          if now - began > 3000000000
            then atomicModifyIORef' total (\all' -> (all' + sent, ()))
            else do
              if loadBatch load == 1
                then ask >>= void . Redis.run client
                else replicateM (loadBatch load) (ask >>= Redis.submit client) >>= mapM_ Redis.awaitReply
              go (sent + loadBatch load)
    go 0
  after <- ownCpu
  (\count -> fromIntegral (after - before) / fromIntegral (max 1 count)) <$> readIORef total
  where
    workload = newWorkload OperationGet load

median :: [Double] -> Double
median values = case drop (length values `div` 2) (sort values) of
  middle : _ -> middle
  [] -> 0
