-- | The required speeds as data: the runs, and the rows that compare them. Pure; "Lab.Gate"
-- measures them.
--
-- If the server is at its limit, with batches and with many callers, no client can be much faster
-- than another, and C is the limit: at least 0.95 of the better hiredis, and no more processor time
-- than the one that needs least. If it is not, and in a cluster, the goals are about other clients,
-- which the comparison measures: here these rows have no bar. The cost of the tool beside a bare
-- loop, and its schedule error, have a bar here too, because every other figure rests on them.
--
-- A row is judged by the interval of its ratio, not by the ratio: it misses or reaches a bar only
-- if the whole interval does. Otherwise it is undecided. So a bad minute does not fail a row, and a
-- good minute does not pass it.
module Lab.Gate.Table
  ( -- * Runs
    Probe (..),
    Place (..),
    Runner (..),
    ClientRun (..),
    batchedGets,
    ClusterKeys (..),
    HiredisForm (..),
    HiredisLoad (..),
    probes,
    probePlace,
    openRate,

    -- * What they found
    Sample (..),
    Samples,

    -- * Rows
    Row (..),
    FigureUnit (..),
    Verdict (..),
    rows,
    memoryRow,
    isSaturated,
  )
where

import Data.List (minimumBy, nub, transpose)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (mapMaybe)
import Data.Ord (comparing)
import Data.Text (Text)
import Tool.Bench.Trust (cpuLimit)
import Tool.Options.Bench (Operation (..))
import Tool.Statistics (median, summariseRatios)

-- | A repeated run, and its name in rows.
data Probe
  = -- | 16 threads with batches of 64, one connection; client and server have a core each.
    Batches Operation
  | -- | This number of threads, each waiting for its reply.
    Waiting Int
  | -- | One waiting thread, without polling.
    WaitingUnpolled
  | -- | Like 'Batches', but on both cores, with the default connections and this number of
    -- capabilities.
    FreeBatches Int
  | -- | Like 'FreeBatches', with 256 waiting threads.
    FreeWaiting Int
  | ClusterBatches ClusterKeys
  | -- | 256 waiting threads in a cluster.
    ClusterWaiting ClusterKeys
  | TlsBatches
  | -- | 'Batches' of GETs by a bare loop over the library.
    BareBatches
  | -- | This number of waiting threads in a bare loop over the library.
    BareWaiting Int
  | -- | An open loop at 'openRate' GETs per second.
    OpenLoop
  | -- | A program that uses hiredis.
    Hiredis HiredisForm HiredisLoad
  | -- | redis-benchmark -c 16 -P 64.
    Reference Operation
  | -- | redis-benchmark -c 1 -P 1.
    ReferenceOne
  | -- | redis-benchmark --cluster -c 20 -P 64.
    ReferenceCluster
  | -- | redis-benchmark --tls -c 16 -P 64.
    ReferenceTls
  deriving stock (Eq, Ord, Show)

-- | How a program uses hiredis.
data HiredisForm
  = -- | The encoder and the reader of hiredis, in a loop of our own.
    Loop
  | -- | The asynchronous interface of hiredis, on libev.
    Async
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The load of a program that uses hiredis: as many commands on their way as ours.
data HiredisLoad
  = HiredisBatches Operation
  | HiredisWaiting Int
  | HiredisClusterBatches
  | HiredisClusterWaiting
  deriving stock (Eq, Ord, Show)

-- | The keys that a run in a cluster reads; 100 000 in both cases.
data ClusterKeys
  = -- | Keys of every slot, as a cluster usually has them.
    EverySlot
  | -- | The keys that @redis-benchmark --cluster@ reads, all of one slot per node. Its servers find
    -- the slot's entry in their nearest cache, and spend a sixth less on a command. So the run that
    -- is compared with it reads the same keys.
    TheirKeys
  deriving stock (Eq, Ord, Show)

-- | The private server of a run.
data Place
  = -- | A server on core 0.
    Pinned
  | -- | A server on any core.
    Unpinned
  | -- | Five primaries on core 0.
    PinnedCluster
  | -- | A server with TLS on core 0.
    PinnedTls
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | The program of a run.
data Runner
  = -- | Our program.
    OurProgram ClientRun
  | -- | The same load by a bare loop over the library.
    BareLoop ClientRun
  | -- | Our program in an open loop.
    OpenProgram
  | HiredisProgram HiredisForm HiredisLoad
  | RedisBenchmarkProgram
  deriving stock (Eq, Show)

-- | The settings of our program.
data ClientRun = ClientRun
  { clientOperation :: Operation,
    clientThreads :: Int,
    clientBatch :: Int,
    -- | Whether it uses the default connections instead of one per node.
    clientDefaultConnections :: Bool,
    clientPolling :: Bool,
    clientCapabilities :: Int,
    clientKeys :: ClusterKeys
  }
  deriving stock (Eq, Show)

-- | GETs of any key by 16 threads, each of which submits 64 and waits for all.
batchedGets :: ClientRun
batchedGets =
  ClientRun
    { clientOperation = OperationGet,
      clientThreads = 16,
      clientBatch = 64,
      clientDefaultConnections = False,
      clientPolling = True,
      clientCapabilities = 1,
      clientKeys = EverySlot
    }

-- | The rate, per second, at which an open loop must send on time.
openRate :: Int
openRate = 100000

-- | All probes, in the order of each iteration: probes that are compared stand close together.
probes :: [Probe]
probes =
  concat
    [ [Reference OperationGet, BareBatches, Batches OperationGet],
      hiredis (HiredisBatches OperationGet),
      [BareWaiting 256, Waiting 256],
      hiredis (HiredisWaiting 256),
      [Waiting 1024],
      hiredis (HiredisWaiting 1024),
      [Waiting 64, Waiting 16, Reference OperationSet, Batches OperationSet],
      hiredis (HiredisBatches OperationSet),
      [ReferenceOne, Waiting 1, WaitingUnpolled, OpenLoop],
      [FreeBatches 1, FreeBatches 2, FreeWaiting 1, FreeWaiting 2],
      [ReferenceCluster, ClusterBatches TheirKeys, ClusterWaiting TheirKeys, ClusterBatches EverySlot],
      hiredis HiredisClusterBatches,
      [ClusterWaiting EverySlot],
      hiredis HiredisClusterWaiting,
      [ReferenceTls, TlsBatches]
    ]
  where
    hiredis load = [Hiredis form load | form <- [minBound .. maxBound]]

-- | The server and the program of a probe.
probePlace :: Probe -> (Place, Runner)
probePlace = \case
  Batches operation -> (Pinned, OurProgram batchedGets {clientOperation = operation})
  Waiting threads -> (Pinned, OurProgram (waiting threads))
  WaitingUnpolled -> (Pinned, OurProgram (waiting 1) {clientPolling = False})
  FreeBatches capabilities -> (Unpinned, OurProgram (free capabilities batchedGets))
  FreeWaiting capabilities -> (Unpinned, OurProgram (free capabilities (waiting 256)))
  ClusterBatches keys -> (PinnedCluster, OurProgram batchedGets {clientKeys = keys})
  ClusterWaiting keys -> (PinnedCluster, OurProgram (waiting 256) {clientKeys = keys})
  TlsBatches -> (PinnedTls, OurProgram batchedGets)
  BareBatches -> (Pinned, BareLoop batchedGets)
  BareWaiting threads -> (Pinned, BareLoop (waiting threads))
  OpenLoop -> (Pinned, OpenProgram)
  Hiredis form load -> (hiredisPlace load, HiredisProgram form load)
  Reference _ -> (Pinned, RedisBenchmarkProgram)
  ReferenceOne -> (Pinned, RedisBenchmarkProgram)
  ReferenceCluster -> (PinnedCluster, RedisBenchmarkProgram)
  ReferenceTls -> (PinnedTls, RedisBenchmarkProgram)
  where
    waiting threads = batchedGets {clientThreads = threads, clientBatch = 1}
    free capabilities run' =
      run' {clientDefaultConnections = True, clientCapabilities = capabilities}
    hiredisPlace = \case
      HiredisBatches _ -> Pinned
      HiredisWaiting _ -> Pinned
      HiredisClusterBatches -> PinnedCluster
      HiredisClusterWaiting -> PinnedCluster

-- | The result of one run.
data Sample = Sample
  { sampleOps :: Double,
    -- | Nanoseconds of processor time per command.
    sampleCpu :: Double,
    -- | In an open loop: the 99th percentile of the schedule error, in nanoseconds.
    sampleLate :: Maybe Double,
    -- | The share of its cores that our program used.
    sampleShare :: Maybe Double,
    -- | Why the run is not valid. Empty for a valid run.
    sampleProblems :: [Text]
  }
  deriving stock (Eq, Show)

-- | All runs of each probe, in the order of the iterations.
type Samples = Map Probe [Sample]

-- | One line of the table: a ratio, and its bar.
data Row = Row
  { rowWhat :: String,
    rowUnit :: String,
    rowMust :: Maybe Double,
    -- | The geometric mean of the iterations' ratios.
    rowMeasured :: Double,
    -- | The least and the greatest ratio of any one iteration.
    rowSpread :: (Double, Double),
    -- | The 95 % interval of confidence of the ratio: Student's t over the logarithms of the
    -- iterations' ratios. 'Nothing' for a single iteration of a timed figure. A counted figure has
    -- no noise, and is its own interval.
    rowInterval :: Maybe (Double, Double),
    -- | The figures of each iteration: ours, and those that they are compared with.
    rowPairs :: [(Double, Double)],
    -- | The two medians.
    rowFigures :: (Double, Double),
    rowFigureUnit :: FigureUnit,
    -- | The median share of its cores that our program used. Above the share that the tool accepts
    -- for a measurement of the server, the figure is the client's own speed.
    rowShare :: Maybe Double,
    -- | The problems of the runs, each once.
    rowProblems :: [Text],
    rowVerdict :: Verdict
  }
  deriving stock (Eq, Show)

-- | The unit of a row's figures.
data FigureUnit
  = PerSecond
  | NanosPerCommand
  | Nanos
  | Bytes
  deriving stock (Eq, Show)

-- | The verdict on a row.
data Verdict
  = Missed
  | -- | The bar lies within the interval.
    Undecided
  | Reached
  | -- | There is no bar.
    Stated
  | -- | Runs are missing.
    Incomplete
  | -- | Runs are not valid.
    Unsound
  deriving stock (Eq, Show)

-- | Whether the generator used so much of its cores that its figures are its own: such runs are
-- what
-- @--allow-saturation@ lets through.
isSaturated :: Row -> Bool
isSaturated = maybe False (> cpuLimit) . rowShare

-- | The rows of the table, from all samples.
rows :: Samples -> [Row]
rows samples =
  concat
    [ [ fullRate "GET, 16 threads x 64" (Batches OperationGet) (HiredisBatches OperationGet),
        fullCost "GET, 16 threads x 64: client CPU" (Batches OperationGet) (HiredisBatches OperationGet),
        fullRate "SET, 16 threads x 64" (Batches OperationSet) (HiredisBatches OperationSet),
        fullCost "SET, 16 threads x 64: client CPU" (Batches OperationSet) (HiredisBatches OperationSet),
        fullRate "GET, 256 threads waiting" (Waiting 256) (HiredisWaiting 256),
        fullCost "GET, 256 threads waiting: client CPU" (Waiting 256) (HiredisWaiting 256),
        fullRate "GET, 1024 threads waiting" (Waiting 1024) (HiredisWaiting 1024),
        fullCost "GET, 1024 threads waiting: client CPU" (Waiting 1024) (HiredisWaiting 1024)
      ],
      [ beside "cluster, keys of every slot, 16 threads x 64" (ClusterBatches EverySlot) HiredisClusterBatches,
        beside "cluster, keys of every slot, 256 threads waiting" (ClusterWaiting EverySlot) HiredisClusterWaiting,
        speed "cluster, 16 threads x 64" "RC" (ClusterBatches TheirKeys) ReferenceCluster Nothing,
        speed "cluster, 256 threads waiting" "RC" (ClusterWaiting TheirKeys) ReferenceCluster Nothing,
        speed "GET, 16 threads x 64" "R" (Batches OperationGet) r Nothing,
        cost "GET, 16 threads x 64: client CPU" "R" (Batches OperationGet) r Nothing,
        speed "SET, 16 threads x 64" "R" (Batches OperationSet) (Reference OperationSet) Nothing,
        speed "GET, 64 threads waiting" "R" (Waiting 64) r Nothing,
        speed "GET, 16 threads waiting" "R" (Waiting 16) r Nothing,
        speed "GET, 1 thread waiting" "R1" (Waiting 1) ReferenceOne Nothing,
        speed "GET, 1 thread waiting, no polling" "R1" WaitingUnpolled ReferenceOne Nothing,
        speed "TLS, 16 threads x 64" "RT" TlsBatches ReferenceTls Nothing
      ],
      -- The library compared with itself.
      [ speed "both cores, -N2, batches" "of -N1" (FreeBatches 2) (FreeBatches 1) (Just 0.8),
        speed "both cores, -N2, 256 waiting" "of -N1" (FreeWaiting 2) (FreeWaiting 1) (Just 0.8),
        cost "cluster, 16 threads x 64: client CPU" "of one server" (ClusterBatches EverySlot) (Batches OperationGet) (Just 1.7)
      ],
      -- The tool compared with itself.
      [ cost "the tool, 16 threads x 64: client CPU" "of a bare loop" (Batches OperationGet) BareBatches (Just overheadLimit),
        cost "the tool, 256 threads waiting: client CPU" "of a bare loop" (Waiting 256) (BareWaiting 256) (Just overheadLimit),
        latenessRow (taken OpenLoop)
      ]
    ]
  where
    r = Reference OperationGet
    taken name = Map.findWithDefault [] name samples
    fullRate what probe load = ratioRow PerSecond (Names what "H") (taken probe) (better PerSecond load) (Just 0.95)
    fullCost what probe load = ratioRow NanosPerCommand (Names what "H") (taken probe) (better NanosPerCommand load) (Just 1)
    beside what probe load = ratioRow PerSecond (Names what "H") (taken probe) (better PerSecond load) Nothing
    speed what unit probe against = ratioRow PerSecond (Names what unit) (taken probe) (taken against)
    cost what unit probe against = ratioRow NanosPerCommand (Names what unit) (taken probe) (taken against)
    -- In each iteration the form of hiredis that was better in it: one form for all, chosen afterwards, would flatter ours.
    better kind load = map (minimumBy (comparing (key kind . figureOf kind))) (transpose [taken (Hiredis form load) | form <- [minBound .. maxBound]])
    key kind figure = if kind == PerSecond then negate figure else figure

-- | The tool's processor time divided by that of a bare loop may be at most: 1.1.
overheadLimit :: Double
overheadLimit = 1.1

-- | The 99th percentile of an open loop's schedule error, in nanoseconds, may be at most: 1 ms.
latenessLimit :: Double
latenessLimit = 1e6

figureOf :: FigureUnit -> Sample -> Double
figureOf = \case
  PerSecond -> sampleOps
  _ -> sampleCpu

-- The name of a row, and the unit of its ratio.
data Names = Names String String

ratioRow :: FigureUnit -> Names -> [Sample] -> [Sample] -> Maybe Double -> Row
ratioRow kind names ours theirs must =
  (row kind names (concatMap sampleProblems (ours <> theirs)) (map (figureOf kind) ours, map (figureOf kind) theirs) must) {rowShare = shareOf ours}

shareOf :: [Sample] -> Maybe Double
shareOf found = case mapMaybe sampleShare found of
  [] -> Nothing
  shares -> Just (median shares)

-- The schedule error of an open loop, compared with its limit.
latenessRow :: [Sample] -> Row
latenessRow found =
  (row Nanos (Names what "of 1 ms") (concatMap sampleProblems found) (late, map (const latenessLimit) late) (Just 1)) {rowShare = shareOf found}
  where
    what = "the tool, open loop at " <> show (openRate `div` 1000) <> " k/s: sent late, p99"
    -- A ratio has no interval if one of its sides is zero.
    late = map (max 1) (mapMaybe sampleLate found)

row :: FigureUnit -> Names -> [Text] -> ([Double], [Double]) -> Maybe Double -> Row
row kind (Names what unit) problems (ours, theirs) must =
  Row
    { rowWhat = what,
      rowUnit = unit,
      rowMust = must,
      rowMeasured = measured,
      rowSpread = if null ratios then (0, 0) else (minimum ratios, maximum ratios),
      rowInterval = interval,
      rowPairs = zip ours theirs,
      rowFigures = (median ours, median theirs),
      rowFigureUnit = kind,
      rowShare = Nothing,
      rowProblems = nub problems,
      rowVerdict = verdict
    }
  where
    ratios = zipWith (/) ours theirs
    -- Figures that are counted, not timed, have no noise.
    (measured, interval) = case (kind, summariseRatios ratios) of
      (_, Nothing) -> (0 / 0, Nothing)
      (Bytes, Just (mean, _)) -> (mean, Just (mean, mean))
      (_, Just found) -> found
    wholly test = maybe False (\(low, high) -> test low && test high) interval
    reaches bar ratio = case kind of
      PerSecond -> ratio >= bar
      _ -> ratio <= bar
    verdict
      | not (null problems) = Unsound
      | null ours || null theirs || isNaN measured || isInfinite measured = Incomplete
      | otherwise = case must of
        Nothing -> Stated
        Just bar
          | wholly (not . reaches bar) -> Missed
          | wholly (reaches bar) -> Reached
          | otherwise -> Undecided

-- | Bytes after a long run compared with bytes after a short one. Takes the problems of the runs.
memoryRow :: String -> [Text] -> Double -> Double -> Row
memoryRow what problems long short = row Bytes (Names what "of the short run") problems ([long], [short]) (Just 1.2)
