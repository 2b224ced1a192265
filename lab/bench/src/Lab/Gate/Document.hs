{-# OPTIONS_GHC -Wno-orphans #-}

-- | A run of the gate as data, and as JSON: the machine and the programs, the arguments of every
-- run, and every figure. Tables are made from this alone, so that they can be made again from
-- stored runs.
module Lab.Gate.Document
  ( Measured (..),
    Series (..),
    samplesOf,
    rowsOf,
    measuredValue,
    readMeasured,
  )
where

import Data.Aeson (Value, object, withObject, (.:), (.=))
import Data.Aeson.Types (parseEither)
import Data.ByteString (ByteString)
import Data.Map.Strict qualified as Map
import Data.Maybe (mapMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Lab.Gate.Table
import Tool.Bench.Document (Document (documentManifest), Manifest, documentOf)
import Tool.Bench.Document.Codec
import Tool.Bench.Document.Json (decodeWritten, documentObject)

-- | The results of one run of the gate.
data Measured = Measured
  { measuredManifest :: Manifest,
    -- | Such as @redis 7.0.15@.
    measuredServer :: Text,
    -- | The version of hiredis, with the parts of it that are absent.
    measuredHiredis :: Text,
    -- | Seconds of each run.
    measuredDuration :: Double,
    measuredIterations :: Int,
    measuredSeries :: [Series],
    -- | Seconds of the short and of the long run; and, for each figure of memory, the bytes after
    -- both.
    measuredMemorySeconds :: [Double],
    measuredMemory :: [(Text, [Double])],
    measuredMemoryProblems :: [Text]
  }
  deriving stock (Eq, Show)

-- | The runs of one probe.
data Series = Series
  { -- | The name of the probe.
    seriesProbe :: Text,
    -- | The program and its arguments as they were. Addresses and files differ between runs; these
    -- are those of the last run.
    seriesCommand :: [Text],
    -- | In the order of the iterations.
    seriesSamples :: [Sample]
  }
  deriving stock (Eq, Show)

-- | The samples by probe. Leaves out probes that no longer exist.
samplesOf :: Measured -> Samples
samplesOf measured = Map.fromList (mapMaybe known (measuredSeries measured))
  where
    known one = (\probe -> (probe, seriesSamples one)) <$> Map.lookup (seriesProbe one) names
    names = Map.fromList [(Text.pack (show probe), probe) | probe <- probes]

-- | The rows of the table.
rowsOf :: Measured -> [Row]
rowsOf measured =
  rows (samplesOf measured)
    <> [ memoryRow ("memory: " <> Text.unpack what) (measuredMemoryProblems measured) long short
         | (what, [short, long]) <- measuredMemory measured
       ]

-- | The results as JSON: a document of the program without runs, with the results of the gate
-- added. The rows are there for other readers; they follow from the rest.
measuredValue :: Measured -> Value
measuredValue measured =
  documentObject
    ["gate" .= codecWrite (measuredCodec manifest) measured, "rows" .= map rowObject (rowsOf measured)]
    (documentOf manifest [])
  where
    manifest = measuredManifest measured
    rowObject row =
      object
        [ "what" .= rowWhat row,
          "unit" .= rowUnit row,
          "must" .= rowMust row,
          "measured" .= rowMeasured row,
          "spread" .= rowSpread row,
          "interval" .= rowInterval row,
          "pairs" .= rowPairs row,
          "client_cpu_share" .= rowShare row,
          "verdict" .= show (rowVerdict row)
        ]

-- | Reads the results. The error says what is wrong.
readMeasured :: ByteString -> Either String Measured
readMeasured bytes = do
  (value, document) <- decodeWritten bytes
  found <- parseEither (withObject "document" (.: "gate")) value
  parseEither (codecRead (measuredCodec (documentManifest document))) found

-- The manifest is in the document.
measuredCodec :: Manifest -> Codec Measured
measuredCodec manifest =
  record "What the gate found." $
    build
      <$> field "server" "The server." measuredServer
      <*> field "hiredis" "The version of hiredis." measuredHiredis
      <*> field "duration_sec" "Seconds of each run." measuredDuration
      <*> field "iterations" "Runs of each probe." measuredIterations
      <*> field "series" "The runs of each probe." measuredSeries
      <*> field
        "memory_sec"
        "Seconds of the two runs whose memory is compared."
        measuredMemorySeconds
      <*> field "memory" "Bytes after either." (Map.fromList . measuredMemory)
      <*> field "memory_problems" "Why these runs are not valid." measuredMemoryProblems
  where
    build server hiredis duration iterations found seconds bytes problems =
      Measured
        { measuredManifest = manifest,
          measuredServer = server,
          measuredHiredis = hiredis,
          measuredDuration = duration,
          measuredIterations = iterations,
          measuredSeries = found,
          measuredMemorySeconds = seconds,
          measuredMemory = Map.toList bytes,
          measuredMemoryProblems = problems
        }

instance Coded Series where
  codec =
    record "The runs of one probe." $
      Series
        <$> field "probe" "Its name." seriesProbe
        <*> field "command" "Program and arguments." seriesCommand
        <*> field "samples" "In the order of the iterations." seriesSamples

instance Coded Sample where
  codec =
    record "A run." $
      Sample
        <$> field "ops_per_sec" "Commands a second." sampleOps
        <*> field "cpu_ns_per_op" "Processor time per command, in nanoseconds." sampleCpu
        <*> field "late_p99_ns" "How late an open loop sent." sampleLate
        <*> field "cpu_share" "The part of its cores that the client used." sampleShare
        <*> field "problems" "Why the run is not valid." sampleProblems
