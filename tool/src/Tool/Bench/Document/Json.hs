-- | Documents as JSON, and back.
--
-- The document names its schema, @redis-client-bench/1@. Fields may be added under the same name;
-- if a field changes its meaning, the schema needs the next number. Latencies are nanoseconds,
-- memory is bytes. Histograms are written in full, so that documents can be merged without loss.
-- The schema itself is 'documentSchema'; it is published as @docs/schema/bench-1.json@.
module Tool.Bench.Document.Json
  ( schemaName,
    documentSchema,
    documentValue,
    documentObject,
    decodeDocument,
    decodeWritten,
    histogram,
  )
where

import Data.Aeson (Value (..), eitherDecodeStrict', object, withObject, (.:?), (.=))
import Data.Aeson.Types (Pair, parseEither)
import Data.ByteString (ByteString)
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Bench.Document
import Tool.Bench.Document.Codec
import Tool.Bench.Document.Totals
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Histogram.Hdr qualified as Hdr

-- | The name of the schema.
schemaName :: Text
schemaName = "redis-client-bench/1"

-- | The schema, in the language of JSON Schema 2020-12.
documentSchema :: Value
documentSchema = case codecSchema document of
  Object schema ->
    Object $
      schema <> case object
        [ "$schema" .= ("https://json-schema.org/draft/2020-12/schema" :: Text),
          "$id" .= schemaName,
          "$defs" .= codecDefinitions document
        ] of
        Object names -> names
        _ -> mempty
  other -> other

-- | A document as JSON.
documentValue :: Document -> Value
documentValue = documentObject []

-- | A document as JSON, with additional fields.
documentObject :: [Pair] -> Document -> Value
documentObject others whole = case (codecWrite document whole, object others) of
  (Object fields, Object more) -> Object (fields <> more)
  (fields, _) -> fields

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
      | name == schemaName -> (,) value <$> parseEither (codecRead document) value
      | otherwise -> Left ("its schema is " <> show name <> ", not " <> show schemaName)
    Nothing -> Left ("no document of the schema " <> Text.unpack schemaName)

document :: Codec Document
document =
  record "The results of a measurement: where it was made, what was sent, what came back." $
    derived "schema" "The name of this schema." (const ()) itsName
      *> ( Document
             <$> field "manifest" "Where the document comes from." documentManifest manifest
             <*> field "runs" "The cells that were measured." documentRuns (list run)
             <*> field
               "notes"
               "Notes about the whole document."
               documentNotes
               (list text)
             <*> field
               "origins"
               "The documents that this one was merged from; empty if it was measured."
               documentOrigins
               (list origin)
         )
  where
    itsName = refined (const (Right ())) (const schemaName) (constants [(schemaName, schemaName)])

manifest :: Codec Manifest
manifest =
  named "manifest" . record "The machine, the system, the program." $
    Manifest
      <$> field "tool" "Version of the program." manifestTool text
      <*> field "revision" "Revision of its source." manifestRevision (nullable text)
      <*> field "started" "Nanoseconds since 1970, by this machine's clock." manifestStarted int
      <*> field "command" "The command line, without secrets." manifestCommand (list text)
      <*> field "os" "Operating system." manifestOs text
      <*> field "architecture" "Architecture of the processor." manifestArchitecture text
      <*> field "kernel" "Release of the kernel." manifestKernel text
      <*> field "cpu" "Model of the processor." manifestCpu (nullable text)
      <*> field "processors" "Processors that the system sees." manifestProcessors int
      <*> field "memory" "Bytes of memory in the machine." manifestMemory (nullable int)
      <*> field
        "virtual_machine"
        "Whether the processor says that it is virtual."
        manifestVirtual
        bool
      <*> field "clock_source" "Clock source of the kernel." manifestClockSource text
      <*> field "compiler" "Compiler of the program." manifestCompiler text
      <*> field "capabilities" "Capabilities of the program's runtime." manifestCapabilities int
      <*> field "rts_arguments" "Options of the runtime." manifestRtsArguments (list text)
      <*> field "disk" "The disk that servers write to." manifestDisk (nullable disk)
      <*> field "facts" "Further facts about the machine, by name." manifestFacts (mapOf text)

disk :: Codec Disk
disk =
  named "disk" . record "A disk." $
    Disk
      <$> field "filesystem" "Type and options of the file system." diskFilesystem text
      <*> field "fsync_ns" "How long an fsync of a small append takes." diskFsync histogram

origin :: Codec Origin
origin =
  named "origin" . record "A document that was merged." $
    Origin
      <$> field "name" "Name of its file." originName text
      <*> field "manifest" "Machine and program that made it." originManifest manifest
      <*> field
        "clock"
        "Its machine's clock minus that of the first document."
        originClock
        (nullable clock)

clock :: Codec Clock
clock =
  named "clock" . record "The difference of two clocks." $
    Clock
      <$> field "offset_ns" "The difference in nanoseconds." clockOffset int
      <*> field
        "uncertainty_ns"
        "The most that the offset may be wrong, in either direction."
        clockUncertainty
        int

run :: Codec Run
run =
  named "run"
    . record
      "A load against a target, measured once or more. \
      \Its first four fields are those that other harnesses write."
    $ derived
      "operation"
      "Short name of the workload, such as get or mixed."
      (specOperation . runSpec)
      text
      *> derived "ops_per_sec" "Commands answered correctly per second." runRate number
      *> derived "duration_sec" "Seconds measured, over all iterations." runSeconds number
      *> derived "total_ops" "Commands answered correctly, over all iterations." runOps int
      *> derived
        "latency_ns"
        "Service times of all commands. \
        \In a batch the clock is read before every eighth submit: \
        \a time may begin up to seven submits early."
        runService
        summary
      *> derived "hits" "Reads that found something." runHits int
      *> derived "misses" "Reads that found nothing." runMisses int
      *> derived "hit_ratio" "Hits among the reads." runHitRatio (nullable number)
      *> derived
        "error_count"
        "Commands that failed, preload and warm-up included."
        runErrorCount
        int
      *> derived
        "commandstats"
        "Whether the server counted the same, over all iterations."
        runAgreement
        agreement
      *> derived
        "client_cpu_ns_per_op"
        "Processor time of the generator per command."
        runCpuPerOp
        number
      *> derived "valid" "Whether the numbers may be used." runValid bool
      *> ( Run
             <$> field "name" "Name of the run, unique in the document." runName text
             <*> field "spec" "What the user requested." runSpec spec
             <*> field "server" "The server or the cluster that was measured." runServer server
             <*> field
               "iterations"
               "The measured windows, in order."
               runIterations
               (list iteration)
             <*> field
               "problems"
               "Why the numbers must not be used. If it is empty, they may be used."
               runProblems
               (list text)
             <*> field "notes" "Notes about the run." runNotes (list text)
             <*> field
               "redis_benchmark"
               "The result of redis-benchmark under the same load."
               runReference
               (nullable reference)
         )

spec :: Codec Spec
spec =
  named "spec" . record "What the user requested." $
    Spec
      <$> field "operation" "Name of the operation, such as get or mixed." specOperation text
      <*> field "workload" "The whole workload in words." specWorkload text
      <*> field "seed" "Seed of the sequence of commands." specSeed word64
      <*> field "keys" "Number of different keys." specKeys int
      <*> field "key_size" "Bytes of a key." specKeySize int
      <*> field "distribution" "How keys are chosen." specDistribution text
      <*> field "value_sizes" "Bytes of values." specValueSizes text
      <*> field "threads" "Number of threads that submit commands." specThreads int
      <*> field "batch" "Commands that a thread submits before it waits." specBatch int
      <*> field "in_flight" "The most commands that can be on their way at a time." specInFlight int
      <*> field
        "mux_count"
        "Connections per node. If it is null, one per capability."
        specMuxCount
        (nullable int)
      <*> field "polling" "Whether connections may poll." specPolling bool
      <*> field "capabilities" "Capabilities of the runtime." specCapabilities int
      <*> field "loop" "When the next command is sent." specLoop loop
      <*> field
        "warmup_sec"
        "Seconds of load before the measured window; of several windows, the most."
        specWarmup
        number
      <*> field
        "duration_sec"
        "Seconds requested, if the window ends after a time."
        specDuration
        (nullable number)
      <*> field
        "requests"
        "Commands requested, if the window ends after a number of them."
        specRequests
        (nullable int)
      <*> field
        "target"
        "Kind of the server or servers that were measured."
        specTarget
        (constants [(Text.pack (targetName kind), kind) | kind <- [minBound .. maxBound]])
      <*> field "tls" "Whether connections use TLS." specTls bool
      <*> field "protocol" "Version of RESP." specProtocol int
      <*> field
        "network"
        "The network to the servers, such as local or relay 1 ms."
        specNetwork
        text
      <*> field
        "persistence"
        "How the server keeps its data, if it is known."
        specPersistence
        (nullable text)
      <*> field
        "axes"
        "What else distinguishes this run from the others of its document."
        specAxes
        (mapOf text)

loop :: Codec Loop
loop =
  named "loop" $
    oneOf
      [ variant (\case Closed -> Just (); _ -> Nothing) (const Closed) (kind "closed" (pure ())),
        variant
          (\case OpenConstant rate -> Just rate; _ -> Nothing)
          OpenConstant
          (kind "constant" (rateOf "rate" id)),
        variant
          (\case OpenPoisson rate -> Just rate; _ -> Nothing)
          OpenPoisson
          (kind "poisson" (rateOf "rate" id)),
        variant
          (\case OpenRamp from to -> Just (from, to); _ -> Nothing)
          (uncurry OpenRamp)
          (kind "ramp" ((,) <$> rateOf "from" fst <*> rateOf "to" snd))
      ]
  where
    kind :: Text -> Fields a a -> Codec a
    kind name fields =
      record "A kind of loop." (field "kind" "Name of the kind." (const name) (only name) *> fields)
    only name = refined (const (Right name)) id (constants [(name, name)])
    rateOf name part = field name "Commands per second." part number

server :: Codec ServerFacts
server =
  named "server" . record "A server or a cluster." $
    ServerFacts
      <$> field "name" "Product and version of the server." serverName text
      <*> field "nodes" "Number of nodes that serve keys." serverNodes int
      <*> field "sha256" "SHA-256 of the server's program file." serverSha256 (nullable text)
      <*> field "config" "Settings that are not the default." serverConfig (mapOf text)
      <*> field "clock" "The generator's clock minus the server's." serverClock (nullable clock)
      <*> field "refused" "What the server refused to tell." serverRefused (list text)

reference :: Codec Reference
reference =
  named "reference" . record "A run of redis-benchmark." $
    Reference
      <$> field "ops_per_sec" "Commands per second." referenceOpsPerSecond number
      <*> field
        "p50_ms"
        "Latency in milliseconds, as redis-benchmark prints it."
        referenceP50
        number
      <*> field
        "p99_ms"
        "Latency in milliseconds, as redis-benchmark prints it."
        referenceP99
        number
      <*> field
        "cpu_ns_per_op"
        "Processor time of its process per command."
        referenceCpuPerOp
        number
      <*> field "total_ops" "Number of commands." referenceCommands int
      <*> field
        "command"
        "Command line of redis-benchmark."
        referenceArguments
        (list (refined (Right . Text.unpack) Text.pack text))

iteration :: Codec Iteration
iteration =
  named "iteration" . record "One measured window." $
    derived "ops_per_sec" "Commands answered correctly per second." iterationRate number
      *> derived "total_ops" "Commands answered correctly." iterationOps int
      *> ( Iteration
             <$> field
               "started"
               "Nanoseconds since 1970, by the generator's clock."
               iterationStarted
               int
             <*> field "seconds" "Length of the window in seconds." iterationSeconds number
             <*> field
               "common"
               "Merged windows: the part that all have in common, whose rate is the rate."
               iterationCommon
               (nullable common)
             <*> field
               "commands"
               "Commands that ended inside the window, by name."
               iterationCommands
               (mapOf commandStats)
             <*> field
               "errors"
               "Commands that failed, by class of error, preload and warm-up included."
               iterationErrors
               (mapOf int)
             <*> field "series" "The window cut into slices." iterationSeries (list slice)
             <*> field
               "nodes"
               "The replies of each node, by its address."
               iterationNodes
               (mapOf nodeStats)
             <*> field
               "server_samples"
               "Figures that the nodes gave about themselves."
               iterationSamples
               (list serverSample)
             <*> field "events" "Events that may explain the curve." iterationEvents (list event)
             <*> field "client_cpu_ns" "Processor time of the generator." iterationCpu number
             <*> field
               "client_gc_ns"
               "The part of client_cpu_ns that was garbage collection."
               iterationGcCpu
               (nullable number)
             <*> field "memory_bytes" "Memory of the generator." iterationMemory memory
             <*> field
               "trust"
               "Whether the generator was fast enough for the figures to be about the server."
               iterationTrust
               trust
             <*> field
               "commandstats"
               "Whether the server counted the same."
               iterationAgreement
               agreement
         )

common :: Codec Common
common =
  record "A part of a window." $
    Common
      <$> field "seconds" "Length in seconds." commonSeconds number
      <*> field "ops" "Commands answered correctly in it." commonOps number

commandStats :: Codec CommandStats
commandStats =
  named "commandStats" . record "One kind of command." $
    CommandStats
      <$> field "hits" "Reads that found something." commandHits int
      <*> field "misses" "Reads that found nothing." commandMisses int
      <*> field "errors" "Errors inside the window, by class." commandErrors (mapOf int)
      <*> field "service_ns" "From the submit to the reply." commandService histogram
      <*> field
        "response_ns"
        "From the intended start to the reply; open loops only. \
        \Also of commands that were due in the window and answered after it."
        commandResponse
        (nullable histogram)

nodeStats :: Codec NodeStats
nodeStats =
  named "nodeStats" . record "The replies of one node." $
    NodeStats
      <$> field "errors" "Errors by class." nodeErrors (mapOf int)
      <*> field "service_ns" "From the submit to the reply." nodeService histogram

slice :: Codec Slice
slice =
  named "slice" . record "A part of a window." $
    Slice
      <$> field "at" "Seconds since the window began." sliceAt number
      <*> field "span" "Length in seconds." sliceSpan number
      <*> field "commands" "Counts by command." sliceCommands (mapOf sliceStats)

sliceStats :: Codec SliceStats
sliceStats =
  named "sliceStats" . record "One kind of command in a slice." $
    SliceStats
      <$> field "service_ns" "From the submit to the reply." sliceService histogram
      <*> field
        "response_ns"
        "From the intended start to the reply; open loops only."
        sliceResponse
        (nullable histogram)
      <*> field "errors" "Number of commands that failed." sliceErrors int

serverSample :: Codec ServerSample
serverSample =
  named "serverSample" . record "Figures that a node gave about itself." $
    ServerSample
      <$> field "at" "Seconds since the window began." sampleAt number
      <*> field "node" "Address of the node." sampleNode text
      <*> field "values" "Figures by the names that INFO gives them." sampleValues (mapOf number)

event :: Codec Event
event =
  named "event" . record "Something that happened." $
    Event
      <$> field "at" "Seconds since the window began." eventAt number
      <*> field "until" "Seconds since the window began." eventUntil number
      <*> field
        "kind"
        "Kind of event, such as aof-rewrite, bgsave, fsync-delay, failover, stall, change-point."
        eventKind
        text
      <*> field "text" "The event in words." eventText text

trust :: Codec Trust
trust =
  named "trust"
    . record "Whether the generator was fast enough for the figures to be about the server."
    $ Trust
      <$> field
        "cpu_share"
        "The generator's processor time over that of the cores it may use."
        trustCpuShare
        (nullable number)
      <*> field
        "gc_share"
        "The generator's garbage collection over all its processor time."
        trustGcShare
        (nullable number)
      <*> field
        "run_queue"
        "Time its threads waited for a core over the window's length; \
        \of all threads together, so that it may be above 1."
        trustRunQueue
        (nullable number)
      <*> field
        "little"
        "Throughput times mean latency, over the number of commands on their way."
        trustLittle
        (nullable number)
      <*> field "steady" "Whether the warm-up ended in a steady state." trustSteady (nullable bool)
      <*> field
        "schedule_ns"
        "Schedule error: from the intended to the actual start; open loops only."
        trustSchedule
        (nullable histogram)
      <*> field "problems" "Why the generator was not fast enough." trustProblems (list text)

memory :: Codec Memory
memory =
  named "memory" . record "Bytes; 0 where it is not known." $
    Memory
      <$> field "peak_resident" "The most that was ever resident." memoryPeakResident int
      <*> field "max_in_use" "The most that the runtime ever held." memoryMaxInUse int
      <*> field "max_live" "The most that was live at a major collection." memoryMaxLive int

agreement :: Codec Agreement
agreement =
  named "agreement" $
    oneOf
      [ variant
          (\case Agrees counts -> Just counts; _ -> Nothing)
          Agrees
          (status "agrees" (client id <* derived "server" serverCalls id (mapOf int))),
        variant
          (\case Disagrees ours theirs -> Just (ours, theirs); _ -> Nothing)
          (uncurry Disagrees)
          (status "disagrees" ((,) <$> client fst <*> field "server" serverCalls snd (mapOf int))),
        variant
          (\case NotComparable reason -> Just reason; _ -> Nothing)
          NotComparable
          (status "not compared" (field "reason" "Why there is no comparison." id text))
      ]
  where
    serverCalls = "Calls that the server counted."
    status :: Text -> Fields a a -> Codec a
    status name fields =
      record "A comparison with the server's own statistics." $
        field "status" "Result of the comparison." (const name) (constants [(name, name)]) *> fields
    client get = field "client" "Calls that the client counted." get (mapOf int)

-- The figures of a histogram for a reader. Cannot be read back.
summary :: Codec Histogram
summary =
  named "summary" . record "Latencies in nanoseconds." $
    mempty <$ percentiles
      <* derived "min" "Exact." Histogram.minimumValue int
      <* derived "max" "Exact." Histogram.maximumValue int

percentiles :: Fields Histogram ()
percentiles =
  derived "mean" "Exact." Histogram.mean number
    *> at "p50" 50
    *> at "p90" 90
    *> at "p95" 95
    *> at "p99" 99
    *> at "p99_9" 99.9
    *> at "p99_99" 99.99
    *> derived "count" "Number of values." Histogram.count int
  where
    at name percent = derived name "A percentile, within 1/1024." (Histogram.percentile percent) int

-- | A histogram without loss: all values in HdrHistogram's format V2, and beside them the figures
-- that this format does not carry.
histogram :: Codec Histogram
histogram =
  named "histogram" . record "A distribution of values." $
    percentiles
      *> ( Histogram.restored
             <$> field "sum" "Exact." Histogram.total integer
             <*> field "min" "Exact." Histogram.minimumValue int
             <*> field "max" "Exact." Histogram.maximumValue int
             <*> field "hdr_b64" "All values: HdrHistogram V2, compressed, in base 64." id hdr
         )
  where
    hdr = refined Hdr.decodeText Hdr.encodeText text
