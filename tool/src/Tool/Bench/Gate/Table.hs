-- | The speed that is demanded, as data: which runs there are, and which row
-- holds which of them against which. Pure; "Tool.Bench.Gate" carries it out.
--
-- A row is judged by the interval of its ratio, not by the ratio: it misses or
-- reaches a bar only if the whole interval does. What lies between is said to be
-- undecided, so that neither a bad minute fails a row nor a good one passes it.
module Tool.Bench.Gate.Table
  ( -- * Runs
    Probe (..),
    Place (..),
    ClientRun (..),
    ClusterKeys (..),
    probes,
    probePlace,

    -- * What they found
    Sample (..),
    Samples,

    -- * Rows
    Row (..),
    FigureUnit (..),
    Verdict (..),
    rows,
    memoryRow,
    median,
  )
where

import Data.List (nub, sort)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Tool.Options.Bench (Operation (..))
import Tool.Statistics (Summary (summaryInterval), summarise)

-- | A run that is repeated; the name by which rows refer to it.
data Probe
  = -- | 16 threads with batches of 64, one connection, a core each.
    Batches Operation
  | -- | So many threads, each waiting for its reply.
    Waiting Int
  | -- | One thread waiting, without polling.
    WaitingUnpolled
  | -- | On both cores, with the defaults and so many capabilities.
    FreeBatches Int
  | -- | The same with 256 threads waiting.
    FreeWaiting Int
  | ClusterBatches ClusterKeys
  | -- | 256 threads.
    ClusterWaiting ClusterKeys
  | TlsBatches
  | -- | redis-benchmark -c 16 -P 64.
    Reference Operation
  | -- | redis-benchmark -c 1 -P 1.
    ReferenceOne
  | -- | redis-benchmark --cluster -c 20 -P 64.
    ReferenceCluster
  | -- | redis-benchmark --tls -c 16 -P 64.
    ReferenceTls
  deriving stock (Eq, Ord, Show)

-- | Which keys a run in a cluster reads, 100 000 either way.
data ClusterKeys
  = -- | Keys of every slot, as a cluster has them.
    EverySlot
  | -- | Those that @redis-benchmark --cluster@ reads, all of one slot per node: its
    -- servers find the slot's entry in their nearest cache, and spend a sixth
    -- less on a command. What is held against it reads the same keys.
    TheirKeys
  deriving stock (Eq, Ord, Show)

-- | Which private server a run goes to.
data Place
  = -- | A server on core 0.
    Pinned
  | -- | A server on whatever core it likes.
    Unpinned
  | -- | Five masters on core 0.
    PinnedCluster
  | -- | A server with TLS on core 0.
    PinnedTls
  deriving stock (Eq, Ord, Show, Enum, Bounded)

-- | How our own program is run.
data ClientRun = ClientRun
  { clientOperation :: Operation,
    clientThreads :: Int,
    clientBatch :: Int,
    -- | Whether connections are left to the default instead of one per node.
    clientDefaultConnections :: Bool,
    clientPolling :: Bool,
    clientCapabilities :: Int,
    clientKeys :: ClusterKeys
  }
  deriving stock (Eq, Show)

-- | All of them, in the order in which each iteration takes them: what is
-- compared stands close together.
probes :: [Probe]
probes =
  [ Reference OperationGet,
    Batches OperationGet,
    Waiting 256,
    Waiting 1024,
    Waiting 64,
    Waiting 16,
    Reference OperationSet,
    Batches OperationSet,
    ReferenceOne,
    Waiting 1,
    WaitingUnpolled,
    FreeBatches 1,
    FreeBatches 2,
    FreeWaiting 1,
    FreeWaiting 2,
    ReferenceCluster,
    ClusterBatches TheirKeys,
    ClusterWaiting TheirKeys,
    ClusterBatches EverySlot,
    ClusterWaiting EverySlot,
    ReferenceTls,
    TlsBatches
  ]

-- | Where it runs, and how if it is our own program.
probePlace :: Probe -> (Place, Maybe ClientRun)
probePlace = \case
  Batches operation -> (Pinned, Just batches {clientOperation = operation})
  Waiting threads -> (Pinned, Just (waiting threads))
  WaitingUnpolled -> (Pinned, Just (waiting 1) {clientPolling = False})
  FreeBatches capabilities -> (Unpinned, Just (free capabilities batches))
  FreeWaiting capabilities -> (Unpinned, Just (free capabilities (waiting 256)))
  ClusterBatches keys -> (PinnedCluster, Just batches {clientKeys = keys})
  ClusterWaiting keys -> (PinnedCluster, Just (waiting 256) {clientKeys = keys})
  TlsBatches -> (PinnedTls, Just batches)
  Reference _ -> (Pinned, Nothing)
  ReferenceOne -> (Pinned, Nothing)
  ReferenceCluster -> (PinnedCluster, Nothing)
  ReferenceTls -> (PinnedTls, Nothing)
  where
    batches =
      ClientRun
        { clientOperation = OperationGet,
          clientThreads = 16,
          clientBatch = 64,
          clientDefaultConnections = False,
          clientPolling = True,
          clientCapabilities = 1,
          clientKeys = EverySlot
        }
    waiting threads = batches {clientThreads = threads, clientBatch = 1}
    free capabilities run' =
      run' {clientDefaultConnections = True, clientCapabilities = capabilities}

-- | What one run found.
data Sample = Sample
  { sampleOps :: Double,
    -- | Nanoseconds of processor time per command.
    sampleCpu :: Double,
    -- | Why the run is not valid; empty: it is.
    sampleProblems :: [Text]
  }
  deriving stock (Eq, Show)

-- | All runs of each probe, in the order of the iterations.
type Samples = Map Probe [Sample]

-- | One line of the table: a ratio, and what it should be.
data Row = Row
  { rowWhat :: String,
    rowUnit :: String,
    rowMust :: Maybe Double,
    rowAim :: Maybe Double,
    -- | The ratio of the medians.
    rowMeasured :: Double,
    -- | The least and the greatest ratio of any one iteration.
    rowSpread :: (Double, Double),
    -- | The 95 % interval of confidence of the ratio: Student's t over the
    -- logarithms of the iterations' ratios. 'Nothing' for a single iteration of
    -- what is timed; what is counted has no noise, and is its own interval.
    rowInterval :: Maybe (Double, Double),
    -- | The two medians, and what they are.
    rowFigures :: (Double, Double),
    rowFigureUnit :: FigureUnit,
    -- | Of the runs, each once.
    rowProblems :: [Text],
    rowVerdict :: Verdict
  }
  deriving stock (Eq, Show)

-- | What the figures of a row are.
data FigureUnit
  = PerSecond
  | NanosPerCommand
  | Bytes
  deriving stock (Eq, Show)

-- | How a row went.
data Verdict
  = Missed
  | -- | The bar lies within the interval.
    Undecided
  | Reached
  | AimReached
  | -- | There is no bar.
    Stated
  | -- | Runs are missing.
    Incomplete
  | -- | Runs are not valid.
    Unsound
  deriving stock (Eq, Show)

-- | The table, from all samples. The flag says whether this is a virtual
-- machine, where waking a sleeping core is dear and more is demanded of a
-- thread that is alone.
rows :: Bool -> Samples -> [Row]
rows virtual samples =
  [ speed "GET, 16 threads x 64" "R" (Batches OperationGet) r (Just 0.85) (Just 1),
    cost "GET, 16 threads x 64: client CPU" "C" (Batches OperationGet) r (Just 1.8) (Just 1.2),
    speed "SET, 16 threads x 64" "R" (Batches OperationSet) (Reference OperationSet) (Just 0.85) (Just 1),
    cost "SET, 16 threads x 64: client CPU" "C" (Batches OperationSet) (Reference OperationSet) (Just 2.2) Nothing,
    speed "GET, 256 threads waiting" "R" (Waiting 256) r (Just 0.8) (Just 1),
    cost "GET, 256 threads waiting: client CPU" "C" (Waiting 256) r (Just 2.2) Nothing,
    speed "GET, 1024 threads waiting" "R" (Waiting 1024) r (Just 0.85) (Just 1),
    speed "GET, 64 threads waiting" "R" (Waiting 64) r (Just 0.65) (Just 0.9),
    speed "GET, 16 threads waiting" "R" (Waiting 16) r (Just 0.33) (Just 0.45),
    speed "GET, 1 thread waiting" "R1" (Waiting 1) ReferenceOne (Just (if virtual then 2 else 1)) (Just 3),
    speed "GET, 1 thread waiting, no polling" "R1" WaitingUnpolled ReferenceOne (Just 0.9) Nothing,
    speed "both cores, -N2, batches" "of -N1" (FreeBatches 2) (FreeBatches 1) (Just 0.8) (Just 1),
    speed "both cores, -N2, 256 waiting" "of -N1" (FreeWaiting 2) (FreeWaiting 1) (Just 0.8) (Just 1),
    cost "cluster, 16 threads x 64: client CPU" "of standalone" (ClusterBatches EverySlot) (Batches OperationGet) (Just 1.7) (Just 1.3),
    speed "cluster, 16 threads x 64" "RC" (ClusterBatches TheirKeys) ReferenceCluster (Just 0.85) (Just 1),
    speed "cluster, 256 threads waiting" "RC" (ClusterWaiting TheirKeys) ReferenceCluster (Just 0.75) (Just 0.9),
    speed "cluster, keys of every slot, 16 threads x 64" "RC" (ClusterBatches EverySlot) ReferenceCluster Nothing Nothing,
    speed "cluster, keys of every slot, 256 threads waiting" "RC" (ClusterWaiting EverySlot) ReferenceCluster Nothing Nothing,
    speed "TLS, 16 threads x 64" "RT" TlsBatches ReferenceTls Nothing (Just 0.8)
  ]
  where
    r = Reference OperationGet
    speed = ratioRow PerSecond sampleOps samples
    cost = ratioRow NanosPerCommand sampleCpu samples

ratioRow :: FigureUnit -> (Sample -> Double) -> Samples -> String -> String -> Probe -> Probe -> Maybe Double -> Maybe Double -> Row
ratioRow kind figure samples what unit probe against =
  row kind what unit (concatMap sampleProblems (taken probe <> taken against)) (map figure (taken probe)) (map figure (taken against))
  where
    taken name = Map.findWithDefault [] name samples

row :: FigureUnit -> String -> String -> [Text] -> [Double] -> [Double] -> Maybe Double -> Maybe Double -> Row
row kind what unit problems ours theirs must aim =
  Row
    { rowWhat = what,
      rowUnit = unit,
      rowMust = must,
      rowAim = aim,
      rowMeasured = measured,
      rowSpread = if null ratios then (0, 0) else (minimum ratios, maximum ratios),
      rowInterval = interval,
      rowFigures = (median ours, median theirs),
      rowFigureUnit = kind,
      rowProblems = nub problems,
      rowVerdict = verdict
    }
  where
    measured = median ours / median theirs
    ratios = zipWith (/) ours theirs
    interval = case kind of
      Bytes -> Just (measured, measured)
      _ -> ratioInterval ratios
    wholly test = maybe False (\(low, high) -> test low && test high) interval
    reaches bar ratio = case kind of
      PerSecond -> ratio >= bar
      NanosPerCommand -> ratio <= bar
      Bytes -> ratio <= bar
    verdict
      | not (null problems) = Unsound
      | null ours || null theirs || isNaN measured || isInfinite measured = Incomplete
      | Just bar <- must, wholly (not . reaches bar) = Missed
      | Just bar <- aim, wholly (reaches bar) = AimReached
      | Just bar <- must = if wholly (reaches bar) then Reached else Undecided
      | otherwise = Stated

-- A ratio and its inverse deserve the same interval, so it is taken of the
-- logarithms.
ratioInterval :: [Double] -> Maybe (Double, Double)
ratioInterval ratios
  | all (> 0) ratios = both exp <$> (summarise (map log ratios) >>= summaryInterval)
  | otherwise = Nothing
  where
    both f (low, high) = (f low, f high)

-- | Bytes after a long run against bytes after a short one, and what is wrong
-- with the runs.
memoryRow :: String -> [Text] -> Double -> Double -> Row
memoryRow what problems long short = row Bytes what "of the short run" problems [long] [short] (Just 1.2) Nothing

-- | The middle one, or the mean of the middle two; 0 of none.
median :: [Double] -> Double
median values = case drop ((size - 1) `div` 2) (sort values) of
  one : other : _ | even size -> (one + other) / 2
  one : _ -> one
  [] -> 0
  where
    size = length values
