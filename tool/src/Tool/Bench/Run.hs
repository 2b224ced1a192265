-- | One run, from preload to verdict.
module Tool.Bench.Run
  ( measure,
  )
where

import Control.Exception (finally)
import Data.Maybe (isJust)
import GHC.Conc (getNumCapabilities)
import Tool.Bench.Driver (Drive (..), drive)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Preload (preload)
import Tool.Bench.Progress (Progress, announce, finish)
import Tool.Bench.Reconcile (countsBefore, reconcile)
import Tool.Bench.Result
import Tool.Bench.Tally (Totals (..))
import Tool.Bench.Workload (newWorkload)
import Tool.Connect
import Tool.Options.Bench (LoadOptions (..), Operation, operationName)
import Tool.Text (fixed)

-- | Preloads, warms up, measures, and compares the counts. Blocks for as long
-- as all that takes.
measure :: Progress -> Target -> Operation -> LoadOptions -> IO RunResult
measure progress target operation load = do
  capabilities <- getNumCapabilities
  (server, nodes) <- serverVersion target
  announce progress $
    targetName (targetKind target) <> " " <> operationName operation <> ": preload, "
      <> fixed 1 (loadWarmup load)
      <> " s of warm-up, "
      <> fixed 1 (loadDuration load)
      <> " s measured"
  before <- countsBefore target
  (preloaded, found) <- withTarget tuning target $ \client -> do
    preloaded <- preload target client workload
    found <- drive progress client workload load `finally` finish progress
    pure (preloaded, found)
  let counted = driveTotals found
  agreement <- reconcile target before (sum (totalErrors counted)) (preloaded <> totalAnswered counted)
  let answered = Histogram.count (totalGets counted) + Histogram.count (totalSets counted)
  pure
    RunResult
      { runTarget = targetKind target,
        runTls = isJust (targetTls target),
        runServer = server,
        runNodes = nodes,
        runOperation = operation,
        runLoad = load,
        runCapabilities = capabilities,
        runSeconds = driveSeconds found,
        runGets = totalGets counted,
        runSets = totalSets counted,
        runHits = totalHits counted,
        runMisses = totalMisses counted,
        runErrors = totalErrors counted,
        runCpuPerOp = if answered == 0 then 0 else driveCpu found / fromIntegral answered,
        runMemory = driveMemory found,
        runAgreement = agreement,
        runReference = Nothing
      }
  where
    workload = newWorkload operation load
    tuning = Tuning {tuningMuxCount = loadMuxCount load, tuningPolling = loadPolling load}
