-- | A result to format.
module Sample
  ( sample,
  )
where

import Data.Map.Strict qualified as Map
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Result
import Tool.Options.Bench

-- | A good run.
sample :: RunResult
sample =
  RunResult
    { runTarget = TargetCluster,
      runTls = False,
      runServer = "redis 7.0.15",
      runNodes = 5,
      runOperation = OperationMixed,
      runLoad = defaultLoad,
      runCapabilities = 1,
      runSeconds = 2,
      runGets = Histogram.fromValues (map (* 1000) [1 .. 800]),
      runSets = Histogram.fromValues (map (* 1000) [801 .. 1000]),
      runHits = 800,
      runMisses = 0,
      runErrors = Map.empty,
      runCpuPerOp = 412,
      runMemory = Memory {memoryPeakResident = 3, memoryMaxInUse = 2, memoryMaxLive = 1},
      runAgreement = Agrees CommandCounts {countGets = 900, countSets = 400},
      runReference =
        Just
          Reference
            { referenceOpsPerSecond = 1000,
              referenceP50 = 0.5,
              referenceP99 = 0.9,
              referenceCpuPerOp = 206,
              referenceCommands = 5000,
              referenceArguments = ["redis-benchmark"]
            }
    }
