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
               "What the reader should know about all of it."
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
      <*> field "architecture" "Of the processor." manifestArchitecture text
      <*> field "kernel" "Its release." manifestKernel text
      <*> field "cpu" "Model of the processor." manifestCpu (nullable text)
      <*> field "processors" "Processors that the system sees." manifestProcessors int
      <*> field "memory" "Bytes of memory in the machine." manifestMemory (nullable int)
      <*> field
        "virtual_machine"
        "Whether the processor says that it is virtual."
        manifestVirtual
        bool
      <*> field "clock_source" "Of the kernel." manifestClockSource text
      <*> field "compiler" "Of the program." manifestCompiler text
      <*> field "capabilities" "Of the program's runtime." manifestCapabilities int
      <*> field "rts_arguments" "What the runtime was told." manifestRtsArguments (list text)
      <*> field "disk" "The disk that servers write to." manifestDisk (nullable disk)
      <*> field "facts" "Whatever else is known, by name." manifestFacts (mapOf text)

disk :: Codec Disk
disk =
  named "disk" . record "A disk." $
    Disk
      <$> field "filesystem" "Its kind." diskFilesystem text
      <*> field "fsync_ns" "How long an fsync of a small append takes." diskFsync histogram

origin :: Codec Origin
origin =
  named "origin" . record "A document that was merged." $
    Origin
      <$> field "name" "Its file." originName text
      <*> field "manifest" "Where it comes from." originManifest manifest
      <*> field
        "clock"
        "Its machine's clock minus that of the first document."
        originClock
        (nullable clock)

clock :: Codec Clock
clock =
  named "clock" . record "The difference of two clocks." $
    Clock
      <$> field "offset_ns" "Nanoseconds." clockOffset int
      <*> field "uncertainty_ns" "How far off that may be, either way." clockUncertainty int

run :: Codec Run
run =
  named "run"
    . record
      "A load against a target, measured once or more. \
      \Its first four fields are those that other harnesses write."
    $ derived "operation" "What was sent." (specOperation . runSpec) text
      *> derived "ops_per_sec" "Commands answered correctly per second." runRate number
      *> derived "duration_sec" "Seconds measured, over all iterations." runSeconds number
      *> derived "total_ops" "Commands answered correctly, over all iterations." runOps int
      *> derived
        "latency_ns"
        "Service times of everything. \
        \In a batch the clock is read before every eighth submit: \
        \a time may begin up to seven submits early."
        runService
        summary
      *> derived "hits" "Reads that found something." runHits int
      *> derived "misses" "Reads that found nothing." runMisses int
      *> derived "hit_ratio" "Hits among the reads." runHitRatio (nullable number)
      *> derived
        "error_count"
        "Everything that failed, preload and warm-up included."
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
             <$> field "name" "Unique in the document." runName text
             <*> field "spec" "What was asked for." runSpec spec
             <*> field "server" "Who answered." runServer server
             <*> field
               "iterations"
               "What was measured, one window after the other."
               runIterations
               (list iteration)
             <*> field
               "problems"
               "Why the numbers must not be used; empty: they may."
               runProblems
               (list text)
             <*> field "notes" "What the reader should know." runNotes (list text)
             <*> field
               "redis_benchmark"
               "What redis-benchmark reached beside it."
               runReference
               (nullable reference)
         )

spec :: Codec Spec
spec =
  named "spec" . record "What was asked for." $
    Spec
      <$> field "operation" "Such as get or mixed." specOperation text
      <*> field "workload" "All of the workload in words." specWorkload text
      <*> field "seed" "Decides the sequence of commands." specSeed word64
      <*> field "keys" "Different keys." specKeys int
      <*> field "key_size" "Bytes of a key." specKeySize int
      <*> field "distribution" "How keys are chosen." specDistribution text
      <*> field "value_sizes" "Bytes of values." specValueSizes text
      <*> field "threads" "Threads that submit." specThreads int
      <*> field "batch" "Commands that a thread submits before it waits." specBatch int
      <*> field "in_flight" "The most commands that can be on their way at a time." specInFlight int
      <*> field
        "mux_count"
        "Connections per node; null: one per capability."
        specMuxCount
        (nullable int)
      <*> field "polling" "Whether connections may poll." specPolling bool
      <*> field "capabilities" "Of the runtime." specCapabilities int
      <*> field "loop" "When the next command is sent." specLoop loop
      <*> field "warmup_sec" "Seconds of load before the measured window." specWarmup number
      <*> field "duration_sec" "Seconds asked for." specDuration (nullable number)
      <*> field "requests" "Commands asked for." specRequests (nullable int)
      <*> field
        "target"
        "What was measured."
        specTarget
        (constants [(Text.pack (targetName kind), kind) | kind <- [minBound .. maxBound]])
      <*> field "tls" "Whether by TLS." specTls bool
      <*> field "protocol" "Version of RESP." specProtocol int
      <*> field "network" "Such as local or relay 1 ms." specNetwork text
      <*> field "persistence" "Of the server, where it is known." specPersistence (nullable text)
      <*> field "axes" "What else tells this run from its neighbours." specAxes (mapOf text)

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
      record "A kind of loop." (field "kind" "Which." (const name) (only name) *> fields)
    only name = refined (const (Right name)) id (constants [(name, name)])
    rateOf name part = field name "Commands per second." part number

server :: Codec ServerFacts
server =
  named "server" . record "A server or a cluster." $
    ServerFacts
      <$> field "name" "Its product and version." serverName text
      <*> field "nodes" "How many nodes serve keys." serverNodes int
      <*> field "sha256" "Of its program file." serverSha256 (nullable text)
      <*> field "config" "Settings that are not the default." serverConfig (mapOf text)
      <*> field "clock" "The generator's clock minus the server's." serverClock (nullable clock)
      <*> field "refused" "What it would not tell." serverRefused (list text)

reference :: Codec Reference
reference =
  named "reference" . record "A run of redis-benchmark." $
    Reference
      <$> field "ops_per_sec" "Commands per second." referenceOpsPerSecond number
      <*> field "p50_ms" "As it says." referenceP50 number
      <*> field "p99_ms" "As it says." referenceP99 number
      <*> field
        "cpu_ns_per_op"
        "Processor time of its process per command."
        referenceCpuPerOp
        number
      <*> field "total_ops" "Commands." referenceCommands int
      <*> field
        "command"
        "Its command line."
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
             <*> field "seconds" "How long the window was." iterationSeconds number
             <*> field
               "common"
               "Merged windows: the part that all have in common, whose rate is the rate."
               iterationCommon
               (nullable common)
             <*> field
               "commands"
               "What ended inside the window, by command."
               iterationCommands
               (mapOf commandStats)
             <*> field
               "errors"
               "Everything that failed, by class, preload and warm-up included."
               iterationErrors
               (mapOf int)
             <*> field "series" "The window cut into slices." iterationSeries (list slice)
             <*> field "nodes" "By the node's address." iterationNodes (mapOf nodeStats)
             <*> field
               "server_samples"
               "What the nodes said of themselves."
               iterationSamples
               (list serverSample)
             <*> field "events" "What may explain the curve." iterationEvents (list event)
             <*> field "client_cpu_ns" "Processor time of the generator." iterationCpu number
             <*> field
               "client_gc_ns"
               "The part of it that was garbage collection."
               iterationGcCpu
               (nullable number)
             <*> field "memory_bytes" "What the generator needed." iterationMemory memory
             <*> field "trust" "Whether the generator was good enough." iterationTrust trust
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
      <$> field "seconds" "How long it is." commonSeconds number
      <*> field "ops" "Commands answered correctly in it." commonOps number

commandStats :: Codec CommandStats
commandStats =
  named "commandStats" . record "One kind of command." $
    CommandStats
      <$> field "hits" "Reads that found something." commandHits int
      <*> field "misses" "Reads that found nothing." commandMisses int
      <*> field "errors" "Inside the window, by class." commandErrors (mapOf int)
      <*> field "service_ns" "From the submit to the reply." commandService histogram
      <*> field
        "response_ns"
        "From the intended start to the reply; open loops only. \
        \Also of commands that were due in the window and answered after it."
        commandResponse
        (nullable histogram)

nodeStats :: Codec NodeStats
nodeStats =
  named "nodeStats" . record "What one node answered." $
    NodeStats
      <$> field "errors" "By class." nodeErrors (mapOf int)
      <*> field "service_ns" "From the submit to the reply." nodeService histogram

slice :: Codec Slice
slice =
  named "slice" . record "A part of a window." $
    Slice
      <$> field "at" "Seconds since the window began." sliceAt number
      <*> field "span" "Seconds." sliceSpan number
      <*> field "commands" "By command." sliceCommands (mapOf sliceStats)

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
      <*> field "errors" "How many failed." sliceErrors int

serverSample :: Codec ServerSample
serverSample =
  named "serverSample" . record "What a node said of itself." $
    ServerSample
      <$> field "at" "Seconds since the window began." sampleAt number
      <*> field "node" "Its address." sampleNode text
      <*> field "values" "By the names that INFO gives them." sampleValues (mapOf number)

event :: Codec Event
event =
  named "event" . record "Something that happened." $
    Event
      <$> field "at" "Seconds since the window began." eventAt number
      <*> field "until" "Seconds since the window began." eventUntil number
      <*> field
        "kind"
        "Such as aof-rewrite, bgsave, fsync-delay, failover, stall, change-point."
        eventKind
        text
      <*> field "text" "In words." eventText text

trust :: Codec Trust
trust =
  named "trust" . record "Whether the generator was good enough." $
    Trust
      <$> field
        "cpu_share"
        "Its processor time over that of the cores it may use."
        trustCpuShare
        (nullable number)
      <*> field
        "gc_share"
        "Garbage collection over all its processor time."
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
        "Throughput times mean latency over the commands on their way."
        trustLittle
        (nullable number)
      <*> field "steady" "Whether the warm-up ended in a steady state." trustSteady (nullable bool)
      <*> field
        "schedule_ns"
        "From the intended to the actual start."
        trustSchedule
        (nullable histogram)
      <*> field "problems" "What makes it not good enough." trustProblems (list text)

memory :: Codec Memory
memory =
  named "memory" . record "Bytes; 0: not known." $
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
          (status "not compared" (field "reason" "Why not." id text))
      ]
  where
    serverCalls = "Calls that the server counted."
    status :: Text -> Fields a a -> Codec a
    status name fields =
      record "A comparison with the server's own statistics." $
        field "status" "How it ended." (const name) (constants [(name, name)]) *> fields
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
    *> derived "count" "How many." Histogram.count int
  where
    at name percent = derived name "A percentile, within 1/1024." (Histogram.percentile percent) int

-- | A histogram without loss: all values in HdrHistogram's format V2, and beside them the figures
-- that this format does not carry.
histogram :: Codec Histogram
histogram =
  named "histogram" . record "How values are distributed." $
    percentiles
      *> ( Histogram.restored
             <$> field "sum" "Exact." Histogram.total integer
             <*> field "min" "Exact." Histogram.minimumValue int
             <*> field "max" "Exact." Histogram.maximumValue int
             <*> field "hdr_b64" "All values: HdrHistogram V2, compressed, in base 64." id hdr
         )
  where
    hdr = refined Hdr.decodeText Hdr.encodeText text
