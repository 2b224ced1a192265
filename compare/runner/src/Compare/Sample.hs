-- | The result of one run of one row, and its problems, if any.
module Compare.Sample
  ( Sample (..),
    Latency (..),
    PeerReport (..),
    problemsOf,
    serverCpuPerOp,
    sampleIsValid,
    sampleOf,
    failedSample,
  )
where

import Compare.Cell
import Compare.Servers (Counts (..))
import Compare.Stream (streamCheck)
import Data.Aeson
import Data.Text (Text)
import Data.Text qualified as Text
import Numeric (showHex)

-- | One run.
data Sample = Sample
  { sampleRow :: Text,
    sampleCell :: Cell,
    sampleIteration :: Int,
    sampleOpsPerSecond :: Double,
    -- | Nanoseconds of the client's processor time per operation.
    sampleCpuPerOp :: Double,
    -- | Nanoseconds of the servers' processor time per operation, including the warm-up; older
    -- reports lack it.
    sampleServerCpuPerOp :: Maybe Double,
    sampleLatency :: Latency,
    -- | Bytes allocated per operation, if the runtime counts them.
    sampleAllocated :: Maybe Double,
    sampleConnections :: Int,
    sampleHits :: Int,
    sampleMisses :: Int,
    -- | The peer's notes about its settings.
    sampleNotes :: [Text],
    -- | The peer's runtime, as it reports it.
    sampleRuntime :: Text,
    -- | The reasons why its numbers must not be used; empty if they may be.
    sampleProblems :: [Text]
  }
  deriving stock (Eq, Show)

-- | Percentiles of the latency, in nanoseconds.
data Latency = Latency
  { latencyP50 :: Double,
    latencyP90 :: Double,
    latencyP95 :: Double,
    latencyP99 :: Double,
    latencyP999 :: Double,
    latencyMax :: Double
  }
  deriving stock (Eq, Show)

-- | Whether the numbers of the sample may be used.
sampleIsValid :: Sample -> Bool
sampleIsValid = null . sampleProblems

instance ToJSON Latency where
  toJSON latency =
    object
      [ "p50" .= latencyP50 latency,
        "p90" .= latencyP90 latency,
        "p95" .= latencyP95 latency,
        "p99" .= latencyP99 latency,
        "p99_9" .= latencyP999 latency,
        "max" .= latencyMax latency
      ]

instance FromJSON Latency where
  parseJSON = withObject "latency" $ \latency ->
    Latency
      <$> latency .: "p50"
      <*> latency .: "p90"
      <*> latency .: "p95"
      <*> latency .: "p99"
      <*> latency .: "p99_9"
      <*> latency .: "max"

instance ToJSON Sample where
  toJSON sample =
    object
      [ "row" .= sampleRow sample,
        "cell" .= sampleCell sample,
        "iteration" .= sampleIteration sample,
        "ops_per_sec" .= sampleOpsPerSecond sample,
        "cpu_ns_per_op" .= sampleCpuPerOp sample,
        "server_cpu_ns_per_op" .= sampleServerCpuPerOp sample,
        "latency_ns" .= sampleLatency sample,
        "alloc_bytes_per_op" .= sampleAllocated sample,
        "connections" .= sampleConnections sample,
        "hits" .= sampleHits sample,
        "misses" .= sampleMisses sample,
        "notes" .= sampleNotes sample,
        "runtime" .= sampleRuntime sample,
        "problems" .= sampleProblems sample
      ]

instance FromJSON Sample where
  parseJSON = withObject "sample" $ \sample ->
    Sample
      <$> sample .: "row"
      <*> sample .: "cell"
      <*> sample .: "iteration"
      <*> sample .: "ops_per_sec"
      <*> sample .: "cpu_ns_per_op"
      <*> sample .:? "server_cpu_ns_per_op"
      <*> sample .: "latency_ns"
      <*> sample .:? "alloc_bytes_per_op"
      <*> sample .: "connections"
      <*> sample .: "hits"
      <*> sample .: "misses"
      <*> sample .: "notes"
      <*> sample .: "runtime"
      <*> sample .: "problems"

-- | The report that a peer prints: @compare/PROTOCOL.md@.
data PeerReport = PeerReport
  { reportSeconds :: Double,
    reportOperations :: Int,
    reportHits :: Int,
    reportMisses :: Int,
    reportWrong :: Int,
    reportErrors :: Int,
    reportLatency :: Latency,
    reportCpuNanos :: Double,
    reportAllGet :: Int,
    reportAllSet :: Int,
    reportConnections :: Int,
    reportStreamCheck :: Text,
    reportAllocated :: Maybe Double,
    reportNotes :: [Text],
    reportRuntime :: Text
  }
  deriving stock (Eq, Show)

instance FromJSON PeerReport where
  parseJSON = withObject "report" $ \report ->
    report .: "schema" >>= \schema ->
      if schema /= ("redis-client-compare-peer/1" :: Text)
        then fail "another schema"
        else
          PeerReport
            <$> report .: "duration_sec"
            <*> report .: "total_ops"
            <*> report .: "hits"
            <*> report .: "misses"
            <*> report .: "wrong"
            <*> report .: "errors"
            <*> report .: "latency"
            <*> report .: "cpu_ns"
            <*> report .: "all_get"
            <*> report .: "all_set"
            <*> report .: "connections"
            <*> report .: "stream_check"
            <*> report .:? "alloc_bytes_per_op"
            <*> report .:? "notes" .!= []
            <*> report .:? "runtime" .!= ""

-- | The problems of a report, one line each, given the number of the client's cores, the intended
-- window, and the servers' counts before and after.
problemsOf :: Int -> Window -> Cell -> Counts -> Counts -> PeerReport -> [Text]
problemsOf cores window cell before after report =
  concat
    [ [number (reportWrong report) <> " replies were wrong" | reportWrong report > 0],
      [number (reportErrors report) <> " commands failed" | reportErrors report > 0],
      [ number (reportMisses report) <> " GETs found nothing, though all keys are there"
        | expectsHits cell,
          reportMisses report > 0
      ],
      [ number (reportHits report) <> " GETs found something, though nothing is there"
        | not (expectsHits cell),
          reportHits report > 0
      ],
      [ "the client counted " <> number (reportAllGet report) <> " GETs and " <> number (reportAllSet report)
          <> " SETs, the servers "
          <> number ran
          <> " and "
          <> number stored
        | reportErrors report == 0,
          (ran, stored) /= (reportAllGet report, reportAllSet report)
      ],
      ["it draws another stream of operations" | Text.toLower (reportStreamCheck report) /= stream],
      ["nothing was answered while the clock ran" | reportOperations report == 0],
      [ "it counted " <> number (reportOperations report) <> " operations while the clock ran, and sent fewer in all"
        | reportOperations report > reportAllGet report + reportAllSet report
      ],
      [ "its window was " <> Text.pack (show (reportSeconds report)) <> " s long"
        | abs (reportSeconds report - windowDuration window) > 0.1 + 0.1 * windowDuration window
      ],
      [ "it says that it used more processor time than there was"
        | reportCpuNanos report > 1.1e9 * reportSeconds report * fromIntegral cores + 5e7
      ],
      ["it says that it used no processor time" | reportCpuNanos report <= 0]
    ]
  where
    ran = countsGet after - countsGet before
    stored = countsSet after - countsSet before
    stream = Text.pack ("0x" <> showHex (streamCheck (fromIntegral (commonSeed (cellCommon cell)))) "")

number :: Int -> Text
number = Text.pack . show

-- | Nanoseconds of the servers' processor time for each command between two counts; 'Nothing' if
-- there was no command, or the time is not known.
serverCpuPerOp :: Counts -> Counts -> Maybe Double
serverCpuPerOp before after
  | ran > 0 = (\from to -> (to - from) / fromIntegral ran) <$> countsCpu before <*> countsCpu after
  | otherwise = Nothing
  where
    ran = countsGet after + countsSet after - countsGet before - countsSet before

-- | A sample, from a report, its problems, and the servers' processor time.
sampleOf :: Text -> Cell -> Int -> [Text] -> Maybe Double -> PeerReport -> Sample
sampleOf row cell iteration problems serverCpu report =
  Sample
    { sampleRow = row,
      sampleCell = cell,
      sampleIteration = iteration,
      sampleOpsPerSecond = operations / max 1e-9 (reportSeconds report),
      sampleCpuPerOp = reportCpuNanos report / max 1 operations,
      sampleServerCpuPerOp = serverCpu,
      sampleLatency = reportLatency report,
      sampleAllocated = reportAllocated report,
      sampleConnections = reportConnections report,
      sampleHits = reportHits report,
      sampleMisses = reportMisses report,
      sampleNotes = reportNotes report,
      sampleRuntime = reportRuntime report,
      sampleProblems = problems
    }
  where
    operations = fromIntegral (reportOperations report)

-- | The sample of a run without a report, with the reason.
failedSample :: Text -> Cell -> Int -> Text -> Sample
failedSample row cell iteration why =
  Sample
    { sampleRow = row,
      sampleCell = cell,
      sampleIteration = iteration,
      sampleOpsPerSecond = 0,
      sampleCpuPerOp = 0,
      sampleServerCpuPerOp = Nothing,
      sampleLatency = Latency 0 0 0 0 0 0,
      sampleAllocated = Nothing,
      sampleConnections = 0,
      sampleHits = 0,
      sampleMisses = 0,
      sampleNotes = [],
      sampleRuntime = "",
      sampleProblems = [why]
    }
