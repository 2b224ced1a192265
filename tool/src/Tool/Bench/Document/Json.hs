-- The instances stand apart from the types: they need what is computed from these.
{-# OPTIONS_GHC -Wno-orphans #-}

-- | Documents as JSON of the schema @redis-client-bench/1@, published as
-- @docs/schema/bench-1.json@. Fields may be added under the same name; if a field changes its
-- meaning, the schema needs the next number. Histograms are written in full, so that documents
-- can be merged without loss.
module Tool.Bench.Document.Json
  ( documentSchema,
    documentValue,
    documentObject,
    decodeDocument,
    decodeWritten,
    checked,
    contradictions,
  )
where

import Data.Aeson (Result (..), Value (..), eitherDecodeStrict', encode, fromJSON, withObject, (.:?), (.=))
import Data.Aeson.Key qualified as Key
import Data.Aeson.KeyMap qualified as KeyMap
import Data.Aeson.Types (Pair, parseEither)
import Data.ByteString (ByteString)
import Data.ByteString.Lazy qualified as Lazy
import Data.Foldable (toList)
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Tool.Bench.Document
import Tool.Bench.Document.Codec
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Histogram.Hdr qualified as Hdr
import Tool.Text (fixed, shown)

schemaName :: Text
schemaName = "redis-client-bench/1"

-- | The schema, in the language of JSON Schema 2020-12.
documentSchema :: Value
documentSchema =
  withFields
    [ "$schema" .= ("https://json-schema.org/draft/2020-12/schema" :: Text),
      "$id" .= schemaName,
      "$defs" .= codecDefinitions (codec :: Codec Document)
    ]
    (codecSchema (codec :: Codec Document))

documentValue :: Document -> Value
documentValue = documentObject []

-- | A document as JSON, with additional fields.
documentObject :: [Pair] -> Document -> Value
documentObject others = withFields others . codecWrite codec

-- | Reads a document. The error says what is wrong with the JSON, and where.
decodeDocument :: ByteString -> Either String Document
decodeDocument = fmap snd . decodeWritten

-- | Reads a document, and also returns the JSON as it was written.
decodeWritten :: ByteString -> Either String (Value, Document)
decodeWritten bytes = do
  value <- either (const (Left "not JSON")) Right (eitherDecodeStrict' bytes)
  found <- parseEither (withObject "document" (.:? "schema")) value
  case found of
    Just name
      | name == schemaName -> (,) value <$> parseEither (codecRead codec) value
      | otherwise -> Left ("its schema is " <> show name <> ", not " <> show schemaName)
    Nothing -> Left ("no document of the schema " <> Text.unpack schemaName)

instance Coded Document where
  codec =
    record "The results of a measurement: where it was made, what was sent, what came back." $
      Document
        <$ constant "schema" "The name of this schema." schemaName
        <*> field "manifest" "Where the document comes from." documentManifest
        <*> field "runs" "The cells that were measured." documentRuns
        <*> field "notes" "Notes about the whole document." documentNotes
        <*> field
          "origins"
          "The documents that this one was merged from; empty if it was measured."
          documentOrigins

instance Coded Manifest where
  codec =
    named "manifest" . record "The machine, the system, the program." $
      Manifest
        <$> field "tool" "Version of the program." manifestTool
        <*> field "revision" "Revision of its source." manifestRevision
        <*> field "started" "Nanoseconds since 1970, by this machine's clock." manifestStarted
        <*> field "command" "The command line, without secrets." manifestCommand
        <*> field "os" "Operating system." manifestOs
        <*> field "architecture" "Architecture of the processor." manifestArchitecture
        <*> field "kernel" "Release of the kernel." manifestKernel
        <*> field "cpu" "Model of the processor." manifestCpu
        <*> field "processors" "Processors that the system sees." manifestProcessors
        <*> field "memory" "Bytes of memory in the machine." manifestMemory
        <*> field "virtual_machine" "Whether the processor says that it is virtual." manifestVirtual
        <*> field "clock_source" "Clock source of the kernel." manifestClockSource
        <*> field "compiler" "Compiler of the program." manifestCompiler
        <*> field "capabilities" "Capabilities of the program's runtime." manifestCapabilities
        <*> field "rts_arguments" "Options of the runtime." manifestRtsArguments
        <*> field "disk" "The disk that servers write to." manifestDisk
        <*> field "facts" "Further facts about the machine, by name." manifestFacts

instance Coded Disk where
  codec =
    named "disk" . record "A disk." $
      Disk
        <$> field "filesystem" "Type and options of the file system." diskFilesystem
        <*> field "fsync_ns" "How long an fsync of a small append takes." diskFsync

instance Coded Origin where
  codec =
    named "origin" . record "A document that was merged." $
      Origin
        <$> field "name" "Name of its file." originName
        <*> field "manifest" "Machine and program that made it." originManifest
        <*> field "clock" "Its machine's clock minus that of the first document." originClock

instance Coded Clock where
  codec =
    named "clock" . record "The difference of two clocks." $
      Clock
        <$> field "offset_ns" "The difference in nanoseconds." clockOffset
        <*> field
          "uncertainty_ns"
          "The most that the offset may be wrong, in either direction."
          clockUncertainty

instance Coded Run where
  codec =
    named "run"
      . record
        "A load against a target, measured once or more. \
        \Its first four fields are those that other harnesses write."
      $ Run
        <$ derived
          "operation"
          "Short name of the workload, such as get or mixed."
          (specOperation . runSpec)
        <* derived "ops_per_sec" "Commands answered correctly per second." runRate
        <* derived "duration_sec" "Seconds measured, over all iterations." runSeconds
        <* derived "total_ops" "Commands answered correctly, over all iterations." runOps
        <* derivedAs
          "latency_ns"
          "Service times of all commands. \
          \In a batch the clock is read before every eighth submit: \
          \a time may begin up to seven submits early."
          runService
          summary
        <* derived "hits" "Reads that found something." runHits
        <* derived "misses" "Reads that found nothing." runMisses
        <* derived "hit_ratio" "Hits among the reads." runHitRatio
        <* derived "error_count" "Commands that failed, preload and warm-up included." runErrorCount
        <* derived
          "commandstats"
          "Whether the server counted the same, over all iterations."
          runAgreement
        <* derived "client_cpu_ns_per_op" "Processor time of the generator per command." runCpuPerOp
        <* derived "valid" "Whether the numbers may be used." runValid
        <*> field "name" "Name of the run, unique in the document." runName
        <*> field "spec" "What the user requested." runSpec
        <*> field "server" "The server or the cluster that was measured." runServer
        <*> field "iterations" "The measured windows, in order." runIterations
        <*> field
          "problems"
          "Why the numbers must not be used. If it is empty, they may be used."
          runProblems
        <*> field "notes" "Notes about the run." runNotes
        <*> field
          "redis_benchmark"
          "The result of redis-benchmark under the same load."
          runReference

instance Coded Spec where
  codec =
    named "spec" . record "What the user requested." $
      Spec
        <$> field "operation" "Name of the operation, such as get or mixed." specOperation
        <*> field "workload" "The whole workload in words." specWorkload
        <*> field "seed" "Seed of the sequence of commands." specSeed
        <*> field "keys" "Number of different keys." specKeys
        <*> field "key_size" "Bytes of a key." specKeySize
        <*> field "distribution" "How keys are chosen." specDistribution
        <*> field "value_sizes" "Bytes of values." specValueSizes
        <*> field "threads" "Number of threads that submit commands." specThreads
        <*> field "batch" "Commands that a thread submits before it waits." specBatch
        <*> field "in_flight" "The most commands that can be on their way at a time." specInFlight
        <*> field "mux_count" "Connections per node. If it is null, one per capability." specMuxCount
        <*> field "polling" "Whether connections may poll." specPolling
        <*> field "capabilities" "Capabilities of the runtime." specCapabilities
        <*> field "loop" "When the next command is sent." specLoop
        <*> field
          "warmup_sec"
          "Seconds of load before the measured window; of several windows, the most."
          specWarmup
        <*> field "duration_sec" "Seconds requested, if the window ends after a time." specDuration
        <*> field
          "requests"
          "Commands requested, if the window ends after a number of them."
          specRequests
        <*> field "target" "Kind of the server or servers that were measured." specTarget
        <*> field "tls" "Whether connections use TLS." specTls
        <*> field "protocol" "Version of RESP." specProtocol
        <*> field "network" "The network to the servers, such as local or relay 1 ms." specNetwork
        <*> field "persistence" "How the server keeps its data, if it is known." specPersistence
        <*> field "axes" "What else distinguishes this run from the others of its document." specAxes

instance Coded TargetKind where
  codec = constants [(Text.pack (targetName kind), kind) | kind <- [minBound .. maxBound]]

instance Coded Loop where
  codec =
    named "loop" $
      oneOf
        [ Variant (\case Closed -> Just (); _ -> Nothing) (const Closed) (kind "closed" (pure ())),
          Variant (\case OpenConstant rate -> Just rate; _ -> Nothing) OpenConstant (at "constant"),
          Variant (\case OpenPoisson rate -> Just rate; _ -> Nothing) OpenPoisson (at "poisson"),
          Variant
            (\case OpenRamp from to -> Just (from, to); _ -> Nothing)
            (uncurry OpenRamp)
            (kind "ramp" ((,) <$> rateOf "from" fst <*> rateOf "to" snd))
        ]
    where
      kind :: Text -> Fields a a -> Codec a
      kind name fields = record "A kind of loop." (constant "kind" "Name of the kind." name *> fields)
      at name = kind name (rateOf "rate" id)
      rateOf :: Text -> (r -> Double) -> Fields r Double
      rateOf name = field name "Commands per second."

instance Coded ServerFacts where
  codec =
    named "server" . record "A server or a cluster." $
      ServerFacts
        <$> field "name" "Product and version of the server." serverName
        <*> field "nodes" "Number of nodes that serve keys." serverNodes
        <*> field "sha256" "SHA-256 of the server's program file." serverSha256
        <*> field "config" "Settings that are not the default." serverConfig
        <*> field "clock" "The generator's clock minus the server's." serverClock
        <*> field "refused" "What the server refused to tell." serverRefused

instance Coded Reference where
  codec =
    named "reference" . record "A run of redis-benchmark." $
      Reference
        <$> field "ops_per_sec" "Commands per second." referenceOpsPerSecond
        <*> field "p50_ms" "Latency in milliseconds, as redis-benchmark prints it." referenceP50
        <*> field "p99_ms" "Latency in milliseconds, as redis-benchmark prints it." referenceP99
        <*> field "cpu_ns_per_op" "Processor time of its process per command." referenceCpuPerOp
        <*> field "total_ops" "Number of commands." referenceCommands
        <*> field "command" "Command line of redis-benchmark." referenceArguments
        <*> field "turns_ops_per_sec" "Commands per second of each run, if this is the median of several." referenceTurns

instance Coded Iteration where
  codec =
    named "iteration" . record "One measured window." $
      Iteration
        <$ derived "ops_per_sec" "Commands answered correctly per second." iterationRate
        <* derived "total_ops" "Commands answered correctly." iterationOps
        <*> field "started" "Nanoseconds since 1970, by the generator's clock." iterationStarted
        <*> field "seconds" "Length of the window in seconds." iterationSeconds
        <*> field
          "common"
          "Merged windows: the part that all have in common, whose rate is the rate."
          iterationCommon
        <*> field "commands" "Commands that ended inside the window, by name." iterationCommands
        <*> field
          "errors"
          "Commands that failed, by class of error, preload and warm-up included."
          iterationErrors
        <*> field "series" "The window cut into slices." iterationSeries
        <*> field "nodes" "The replies of each node, by its address." iterationNodes
        <*> field "server_samples" "Figures that the nodes gave about themselves." iterationSamples
        <*> field "events" "Events that may explain the curve." iterationEvents
        <*> field "client_cpu_ns" "Processor time of the generator." iterationCpu
        <*> field
          "client_gc_ns"
          "The part of client_cpu_ns that was garbage collection."
          iterationGcCpu
        <*> field "memory_bytes" "Memory of the generator." iterationMemory
        <*> field
          "trust"
          "Whether the generator was fast enough for the figures to be about the server."
          iterationTrust
        <*> field "commandstats" "Whether the server counted the same." iterationAgreement

instance Coded Common where
  codec =
    record "A part of a window." $
      Common
        <$> field "seconds" "Length in seconds." commonSeconds
        <*> field "ops" "Commands answered correctly in it." commonOps

instance Coded CommandStats where
  codec =
    named "commandStats" . record "One kind of command." $
      CommandStats
        <$> field "hits" "Reads that found something." commandHits
        <*> field "misses" "Reads that found nothing." commandMisses
        <*> field "errors" "Errors inside the window, by class." commandErrors
        <*> field "service_ns" "From the submit to the reply." commandService
        <*> field
          "response_ns"
          "From the intended start to the reply; open loops only. \
          \Also of commands that were due in the window and answered after it."
          commandResponse

instance Coded NodeStats where
  codec =
    named "nodeStats" . record "The replies of one node." $
      NodeStats
        <$> field "errors" "Errors by class." nodeErrors
        <*> field "service_ns" "From the submit to the reply." nodeService

instance Coded Slice where
  codec =
    named "slice" . record "A part of a window." $
      Slice
        <$> field "at" "Seconds since the window began." sliceAt
        <*> field "span" "Length in seconds." sliceSpan
        <*> field "commands" "Counts by command." sliceCommands

instance Coded SliceStats where
  codec =
    named "sliceStats" . record "One kind of command in a slice." $
      SliceStats
        <$> field "service_ns" "From the submit to the reply." sliceService
        <*> field "response_ns" "From the intended start to the reply; open loops only." sliceResponse
        <*> field "errors" "Number of commands that failed." sliceErrors

instance Coded ServerSample where
  codec =
    named "serverSample" . record "Figures that a node gave about itself." $
      ServerSample
        <$> field "at" "Seconds since the window began." sampleAt
        <*> field "node" "Address of the node." sampleNode
        <*> field "values" "Figures by the names that INFO gives them." sampleValues

instance Coded Event where
  codec =
    named "event" . record "Something that happened." $
      Event
        <$> field "at" "Seconds since the window began." eventAt
        <*> field "until" "Seconds since the window began." eventUntil
        <*> field
          "kind"
          "Kind of event, such as aof-rewrite, bgsave, fsync-delay, failover, stall, change-point."
          eventKind
        <*> field "text" "The event in words." eventText

instance Coded Trust where
  codec =
    named "trust"
      . record "Whether the generator was fast enough for the figures to be about the server."
      $ Trust
        <$> field
          "cpu_share"
          "The generator's processor time over that of the cores it may use."
          trustCpuShare
        <*> field
          "gc_share"
          "The generator's garbage collection over all its processor time."
          trustGcShare
        <*> field
          "run_queue"
          "Time its threads waited for a core over the window's length; \
          \of all threads together, so that it may be above 1."
          trustRunQueue
        <*> field
          "little"
          "Throughput times mean latency, over the number of commands on their way."
          trustLittle
        <*> field "steady" "Whether the warm-up ended in a steady state." trustSteady
        <*> field
          "schedule_ns"
          "Schedule error: from the intended to the actual start; open loops only."
          trustSchedule
        <*> field "problems" "Why the generator was not fast enough." trustProblems

instance Coded Memory where
  codec =
    named "memory" . record "Bytes; 0 where it is not known." $
      Memory
        <$> field "peak_resident" "The most that was ever resident." memoryPeakResident
        <*> field "max_in_use" "The most that the runtime ever held." memoryMaxInUse
        <*> field "max_live" "The most that was live at a major collection." memoryMaxLive

instance Coded Agreement where
  codec =
    named "agreement" $
      oneOf
        [ Variant
            (\case Agrees counts -> Just counts; _ -> Nothing)
            Agrees
            (status "agrees" (client id <* derived "server" serverCalls id)),
          Variant
            (\case Disagrees ours theirs -> Just (ours, theirs); _ -> Nothing)
            (uncurry Disagrees)
            (status "disagrees" ((,) <$> client fst <*> field "server" serverCalls snd)),
          Variant
            (\case NotComparable reason -> Just reason; _ -> Nothing)
            NotComparable
            (status "not compared" (field "reason" "Why there is no comparison." id))
        ]
    where
      serverCalls = "Calls that the server counted."
      status :: Text -> Fields a a -> Codec a
      status name fields =
        record "A comparison with the server's own statistics." $
          constant "status" "Result of the comparison." name *> fields
      client :: (r -> Map Text Int) -> Fields r (Map Text Int)
      client = field "client" "Calls that the client counted."

-- The figures of a histogram for a reader. Cannot be read back.
summary :: Codec Histogram
summary =
  named "summary" . record "Latencies in nanoseconds." $
    mempty
      <$ percentiles
      <* derived "min" "Exact." Histogram.minimumValue
      <* derived "max" "Exact." Histogram.maximumValue

percentiles :: Fields Histogram ()
percentiles =
  derived "mean" "Exact." Histogram.mean
    *> at "p50" 50
    *> at "p90" 90
    *> at "p95" 95
    *> at "p99" 99
    *> at "p99_9" 99.9
    *> at "p99_99" 99.99
    *> derived "count" "Number of values." Histogram.count
  where
    at name percent = derived name "A percentile, within 1/1024." (Histogram.percentile percent)

-- | Without loss: all values in HdrHistogram's format V2, and beside them the figures that this
-- format does not carry.
instance Coded Histogram where
  codec =
    named "histogram" . record "A distribution of values." $
      Histogram.restored
        <$ percentiles
        <*> field "sum" "Exact." Histogram.total
        <*> field "min" "Exact." Histogram.minimumValue
        <*> field "max" "Exact." Histogram.maximumValue
        <*> fieldAs
          "hdr_b64"
          "All values: HdrHistogram V2, compressed, in base 64."
          id
          (refined Hdr.decodeText Hdr.encodeText codec)

-- * Consistency

-- Whether the numbers of a document agree with each other: a rate with its counts and seconds, a
-- histogram with its percentiles, a window with its slices. If they differ, the file was changed by
-- hand or is damaged. This is no signature.

-- | The document that was read from this JSON, checked. Runs with numbers that do not agree get one
-- more problem, which names the contradictions in one line. \(O(n)\) in the size of the JSON.
checked :: Value -> Document -> Document
checked written document =
  document {documentRuns = zipWith judge [0 ..] (documentRuns document)}
  where
    follows = documentValue document
    -- A difference in the parts that all runs share makes each run doubtful.
    shared =
      concat
        [ differences [Key.toText name] one other
          | name <- ["manifest", "origins"],
            (one, other) <- at name
        ]
    judge number run = case shared <> differing number <> contradictions run of
      [] -> run
      found -> run {runProblems = runProblems run <> ["its numbers do not agree: " <> few found]}
    differing :: Int -> [Text]
    differing number =
      concat
        [ differences [] one other
          | (Array ones, Array others) <- at "runs",
            (one, other) <- take 1 (drop number (zip (toList ones) (toList others)))
        ]
    -- What both have in this field.
    at name =
      [ (one, other)
        | (Object fields, Object fields') <- [(written, follows)],
          Just one <- [KeyMap.lookup name fields],
          Just other <- [KeyMap.lookup name fields']
      ]

few :: [Text] -> Text
few found = Text.intercalate "; " (take 3 found <> ["and " <> shown more <> " more" | more > 0])
  where
    more = length (drop 3 found)

-- The differences between the JSON as it was written and the JSON that the program would write now:
-- they can only be in what follows from the rest. Fields that only one of them has come from
-- another version. Compressed histograms are not compared: there are several ways to compress the
-- same one.
differences :: [Text] -> Value -> Value -> [Text]
differences path written follows = case (written, follows) of
  (Object one, Object other) ->
    concat
      [ differences (Key.toText name : path) value expected
        | (name, (value, expected)) <-
            List.sortOn fst (KeyMap.toList (KeyMap.intersectionWith (,) one other)),
          name /= "hdr_b64"
      ]
  (Array one, Array other)
    | length one == length other ->
      concat (zipWith3 (differences . (: path) . shown) [0 :: Int ..] (toList one) (toList other))
  (Number _, Number _)
    | Success one <- fromJSON written, Success other <- fromJSON follows, close one other -> []
  _
    | written == follows -> []
    | otherwise ->
      [ Text.intercalate "." (reverse path)
          <> (" is " <> written' written <> ", but " <> written' follows <> " follows from the rest")
      ]
  where
    written' value = case value of
      Object _ -> "something else"
      Array _ -> "another list"
      _ -> Text.decodeUtf8 (Lazy.toStrict (encode value))

-- Equal but for rounding.
close :: Double -> Double -> Bool
close one other = abs (one - other) <= 1e-6 * max 1e-3 (max (abs one) (abs other))

-- | Numbers of a run that cannot all be true and from which no other field follows. Each is part of
-- a line.
contradictions :: Run -> [Text]
contradictions run =
  concat (zipWith window [1 :: Int ..] (runIterations run))
    <> [ "problems is empty, although commands failed or the server counted others"
         | null (runProblems run),
           runErrorCount run > 0 || not (null [() | Disagrees _ _ <- [runAgreement run]])
       ]
  where
    among = inWindow (specInFlight (runSpec run))
    window number one
      | length (runIterations run) > 1 =
        map (("window " <> shown number <> ": ") <>) (among one)
      | otherwise = among one

-- Takes the number of commands that can be on their way at a time. While a window begins or ends,
-- the latency of a command that is just being counted may be on one side of the border and its hit
-- on the other. So these counts may differ by as many commands.
inWindow :: Int -> Iteration -> [Text]
inWindow onTheirWay one =
  concat
    [ [ name <> " has " <> count (commandHits stats + commandMisses stats)
          <> (" hits and misses of " <> count (held stats) <> " commands")
        | (name, stats) <- commands,
          commandHits stats < 0
            || commandMisses stats < 0
            || commandHits stats + commandMisses stats > held stats + onTheirWay
      ],
      [ name <> " has " <> count (held stats)
          <> (" commands in the window and " <> count slices <> " in its slices")
        | measured,
          (name, stats) <- commands,
          let slices = Map.findWithDefault 0 name sliced,
          slices /= held stats
      ],
      [ "the slices last " <> seconds spans <> ", the window " <> seconds (iterationSeconds one)
        | measured,
          not (close spans (iterationSeconds one))
      ],
      [ count inside <> " commands failed with " <> name
          <> (" in the window and " <> count whole <> " in all")
        | (name, inside) <- Map.toList (Map.unionsWith (+) (map (commandErrors . snd) commands)),
          let whole = Map.findWithDefault 0 name (iterationErrors one),
          inside > whole
      ]
    ]
  where
    commands = Map.toList (iterationCommands one)
    held = Histogram.count . commandService
    -- A merged window may lack the slices of one of its parts.
    measured = not (null (iterationSeries one)) && null (toList (iterationCommon one))
    sliced :: Map Text Int
    sliced =
      Map.unionsWith
        (+)
        (map (Map.map (Histogram.count . sliceService) . sliceCommands) (iterationSeries one))
    spans = sum (map sliceSpan (iterationSeries one))
    count = shown :: Int -> Text
    seconds = Text.pack . (<> " s") . fixed 3 :: Double -> Text
