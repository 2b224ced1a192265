-- | Made-up results to judge.
module Fixture
  ( cellOf,
    sample,
    row,
    documentOf,
  )
where

import Compare.Cell
import Compare.Document
import Compare.Row
import Compare.Sample
import Data.Aeson (object, (.=))
import Data.Text (Text)

-- | A GET that hits 512 bytes on one server.
cellOf :: Style -> Int -> Cell
cellOf style inFlight =
  Cell
    { cellPlace = Standalone,
      cellOperation = GetHit,
      cellValueSize = 512,
      cellStyle = style,
      cellInFlight = inFlight,
      cellCommon = defaultCommon
    }

-- | A valid run: row, cell, iteration, operations per second, nanoseconds of
-- processor time per operation.
sample :: Text -> Cell -> Int -> Double -> Double -> Sample
sample name cell iteration ops cpu =
  Sample
    { sampleRow = name,
      sampleCell = cell,
      sampleIteration = iteration,
      sampleOpsPerSecond = ops,
      sampleCpuPerOp = cpu,
      sampleServerCpuPerOp = Nothing,
      sampleLatency = Latency 1000 2000 3000 4000 5000 6000,
      sampleAllocated = Just 100,
      sampleConnections = 1,
      sampleHits = 10,
      sampleMisses = 0,
      sampleNotes = ["a note"],
      sampleRuntime = "a runtime",
      sampleProblems = []
    }

-- | A row with this name; the flag says whether it is the limit.
row :: Text -> Bool -> Row
row name limit =
  Row
    { rowName = name,
      rowVersion = "1.0",
      rowOrigin = "somewhere",
      rowLanguage = "C",
      rowRun = ["program"],
      rowEnvironment = mempty,
      rowWarmup = 0,
      rowCluster = True,
      rowStyles = [Wait, Batch],
      rowLimit = limit,
      rowFolder = "."
    }

-- | A document with these rows and samples.
documentOf :: [Row] -> [Sample] -> Document
documentOf rows samples =
  Document
    { documentManifest = object ["cpu" .= ("a <processor>" :: Text)],
      documentWindow = Window {windowWarmup = 1, windowDuration = 2},
      documentRows = rows,
      documentAbsent = [],
      documentSamples = samples
    }
