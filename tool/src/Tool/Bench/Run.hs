-- | One run, from preload to verdict.
module Tool.Bench.Run
  ( measure,
  )
where

import Control.Exception (finally)
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust)
import Data.Text (Text)
import Data.Text qualified as Text
import GHC.Conc (getNumCapabilities)
import Tool.Bench.Counts (counted)
import Tool.Bench.Document
import Tool.Bench.Document.Totals (judged)
import Tool.Bench.Driver (Drive (..), drive)
import Tool.Bench.Environment (wallClock)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Preload (preload)
import Tool.Bench.Progress (Progress, announce, finish)
import Tool.Bench.Reconcile (countsBefore, reconcile)
import Tool.Bench.Tally (KindTotals (..), Totals (..))
import Tool.Bench.Workload (Workload, expectedStats, kinds, newWorkload)
import Tool.Connect
import Tool.Options.Bench (LoadOptions (..), Operation, operationName)
import Tool.Text (fixed)

-- | Preloads, warms up, measures, and compares the counts. Blocks for as long
-- as all that takes.
measure :: Progress -> Target -> Operation -> LoadOptions -> IO Run
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
  started <- wallClock
  (preloaded, found) <- withTarget tuning target $ \client -> do
    preloaded <- preload target client workload
    found <- drive progress client workload load `finally` finish progress
    pure (preloaded, found)
  let found' = driveTotals found
  agreement <- reconcile target before (sum (totalErrors found')) (preloaded <> sent workload found')
  pure . judged $
    Run
      { runName = Text.pack (targetName (targetKind target) <> " " <> operationName operation <> (if isJust (targetTls target) then " tls" else "")),
        runSpec = specOf capabilities target operation load,
        runServer =
          ServerFacts
            { serverName = Text.pack server,
              serverNodes = nodes,
              serverSha256 = Nothing,
              serverConfig = Map.empty,
              serverClock = Nothing,
              serverRefused = []
            },
        runIterations = [iteration workload started found agreement],
        runProblems = [],
        runNotes = [],
        runReference = Nothing
      }
  where
    workload = newWorkload operation load
    tuning = Tuning {tuningMuxCount = loadMuxCount load, tuningPolling = loadPolling load}

iteration :: Workload -> Int -> Drive -> Agreement -> Iteration
iteration workload started found agreement =
  Iteration
    { iterationStarted = started,
      iterationSeconds = driveSeconds found,
      iterationCommands =
        Map.fromList (concat (zipWith stats (kinds workload) (totalKinds found'))),
      iterationErrors = Map.mapKeys Text.pack (totalErrors found'),
      iterationSeries = [],
      iterationNodes = Map.empty,
      iterationSamples = [],
      iterationEvents = [],
      iterationCpu = driveCpu found,
      iterationGcCpu = Nothing,
      iterationMemory = driveMemory found,
      iterationTrust = noTrust,
      iterationAgreement = agreement
    }
  where
    found' = driveTotals found

-- What the servers must have counted of it.
sent :: Workload -> Totals -> CommandCounts
sent workload found = mconcat (zipWith ofKind [0 ..] (totalKinds found))
  where
    ofKind kind one = counted (kindAnswered one) (expectedStats workload kind)

-- Nothing of what was not sent.
stats :: Text -> KindTotals -> [(Text, CommandStats)]
stats name found =
  [ ( name,
      CommandStats
        { commandHits = kindHits found,
          commandMisses = kindMisses found,
          commandErrors = Map.empty,
          commandService = kindLatencies found,
          commandResponse = Nothing
        }
    )
    | Histogram.count (kindLatencies found) > 0
  ]

specOf :: Int -> Target -> Operation -> LoadOptions -> Spec
specOf capabilities target operation load =
  Spec
    { specOperation = Text.pack (operationName operation),
      specWorkload = Text.pack (operationName operation),
      specSeed = loadSeed load,
      specKeys = loadKeys load,
      specKeySize = loadKeySize load,
      specDistribution = "uniform",
      specValueSizes = Text.pack (show (loadValueSize load)),
      specThreads = loadThreads load,
      specBatch = loadBatch load,
      specInFlight = loadThreads load * loadBatch load,
      specMuxCount = loadMuxCount load,
      specPolling = loadPolling load,
      specCapabilities = capabilities,
      specLoop = Closed,
      specWarmup = loadWarmup load,
      specDuration = Just (loadDuration load),
      specRequests = Nothing,
      specTarget = targetKind target,
      specTls = isJust (targetTls target),
      specProtocol = 3,
      specNetwork = "local",
      specPersistence = Nothing,
      specAxes = Map.empty
    }
