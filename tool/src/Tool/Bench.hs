-- | The mode @bench@: one run, a campaign, a recording, and more.
module Tool.Bench
  ( bench,
  )
where

import Data.Text qualified as Text
import GHC.Conc (getNumCapabilities)
import System.Directory (getTemporaryDirectory)
import System.Exit (ExitCode (..))
import Tool.Bench.Document
import Tool.Bench.Driver (senderCount)
import Tool.Bench.Environment (manifest, probeDisk, takeAllCores)
import Tool.Bench.Private (withPrivate)
import Tool.Bench.Progress (newProgress)
import Tool.Bench.Report (details, report)
import Tool.Bench.Reports (compareReports, conclude, mergeReports, printSchema, showReport)
import Tool.Bench.Run (measure, measureWith)
import Tool.Bench.Sink (withOutputs)
import Tool.Bench.Sweep (sweep)
import Tool.Bench.Workload (chosenWorkloads)
import Tool.Campaign (campaign)
import Tool.Connect (Target, asSaid, needFiles, targetIsCluster, targetOf)
import Tool.Failure (invalidRun)
import Tool.Hint (withHint)
import Tool.Options.Bench
import Tool.Options.Connection (ConnectionOptions (..), TlsOptions (..), namesServer)
import Tool.Options.Load (Plan (..), planSweep)
import Tool.Options.Modes (RecordOptions (recordConnection), ReplayOptions (replayConnection))
import Tool.Record (record)
import Tool.Replay (replay)

-- | Runs a mode, prints its results, and returns the exit code.
bench :: BenchMode -> IO ExitCode
bench = \case
  BenchOnce options -> connecting (benchConnection options) (once options)
  BenchCampaign options -> campaign options
  BenchRecord options -> connecting (recordConnection options) (record options)
  BenchReplay options -> connecting (replayConnection options) (replay options)
  BenchReport options -> showReport options
  BenchCompare options -> compareReports options
  BenchMerge options -> mergeReports options
  BenchSchema -> printSchema
  where
    connecting connection act = needFiles connection >> withHint connection act

once :: BenchOptions -> IO ExitCode
once options = withOutputs (benchOutputs options) $ \write -> do
  progress <- newProgress
  takeAllCores
  -- Before the load: the manifest has the time and the load of the machine at the start.
  about <- manifest
  threads <- senderCount load <$> getNumCapabilities
  found <- withTargetOf (benchConnection options) $ \target -> do
    let chosen = chosenWorkloads (targetIsCluster target) threads (benchWorkload options) load
    either invalidRun pure chosen >>= traverse (runsOf progress target)
  disk <- if planBrief (loadPlan load) then pure Nothing else getTemporaryDirectory >>= probeDisk
  let results = concatMap fst found
      notes = concatMap snd found
      introduction = concatMap (concatMap details . take 1 . fst) found
  conclude
    (benchOutputs options)
    write
    (introduction <> [""] <> report results <> map Text.unpack notes)
    (documentOf about {manifestDisk = disk} results) {documentNotes = notes}
  where
    load = benchLoad options
    runsOf progress target workload =
      let leniently leniency = measureWith leniency progress target workload
       in case planSweep (loadPlan load) of
            Just wanted -> sweep progress leniently wanted load
            Nothing -> (\result -> ([result], [])) <$> measure progress target workload load

-- Uses the named server, or a private one.
withTargetOf :: ConnectionOptions -> (Target -> IO a) -> IO a
withTargetOf options action
  | namesServer options = action (targetOf options)
  | otherwise =
    withPrivate
      (if connectionCluster options then TargetCluster else TargetStandalone)
      (tlsWanted (connectionTls options))
      []
      (action . asSaid options)
