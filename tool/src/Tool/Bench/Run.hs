-- | Measures one run, from the preload to the verdict.
module Tool.Bench.Run
  ( measure,
    measureWith,
    Leniency (..),
    leniencyOf,
  )
where

import Control.Exception (finally, try)
import Control.Monad (when)
import Data.Bifunctor (first)
import Data.IntMap.Strict qualified as IntMap
import Data.List (find, nub)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust)
import Data.Text (Text)
import Data.Text qualified as Text
import GHC.Conc (getNumCapabilities)
import Redis.Cluster.Slot (keySlot)
import Redis.Config qualified as Config
import Redis.Error (Error, renderEndpoint)
import Tool.Bench.Arrivals (Arrivals (..), describeArrivals, describeRate)
import Tool.Bench.Assemble
import Tool.Bench.Counters (partErrors)
import Tool.Bench.Document
import Tool.Bench.Document.Totals (iterationOps, judged)
import Tool.Bench.Driver (Drive (..), Setup (..), drive, senderCount)
import Tool.Bench.Environment (clocks, usableCores)
import Tool.Bench.Nodes (Nodes (NoNodes), nodesOf)
import Tool.Bench.Outage (outageNotes, withObserved)
import Tool.Bench.Preload (preload)
import Tool.Bench.Progress (Progress, announce, finish)
import Tool.Bench.Reconcile (CountsBefore, countsBefore, reconcile)
import Tool.Bench.Sampler (Sampler, refusals, taken, withSampler)
import Tool.Bench.ServerFacts (Found (..), serverFacts)
import Tool.Bench.Time (Nanos)
import Tool.Bench.Workload
import Tool.Bench.Workload.Dataset (Shape (..))
import Tool.Bench.Workload.Distribution (describeDistribution)
import Tool.Bench.Workload.Named (channel, withSubscribers)
import Tool.Bench.Workload.Values (describeSizes)
import Tool.Connect
import Tool.Failure (invalidRun)
import Tool.Options.Bench (LoadOptions (..))
import Tool.Options.Load (Plan (..), Warmup (..), planArrivals)
import Tool.Span (secondsIn)
import Tool.Text (fixed, thousands)

-- | Preloads; then, for each iteration, warms up, measures, and compares the counts. Blocks meanwhile.
measure :: Progress -> Target -> Workload -> LoadOptions -> IO Run
measure progress target workload load =
  measureWith (leniencyOf (loadPlan load)) progress target workload load

-- | Like 'measure', with another leniency.
measureWith :: Leniency -> Progress -> Target -> Workload -> LoadOptions -> IO Run
measureWith leniency progress target workload load = do
  capabilities <- getNumCapabilities
  found <- serverFacts (not (planBrief plan)) target
  nodes <- nodesFor target
  announce progress (announcement target workload load)
  -- The counts of the first iteration include the preload.
  before <- countsBefore target
  preloaded <- withTarget (tuningOf load) target $ \client -> preload target client workload
  iterations <- repeatedly (planIterations plan) $ \number -> do
    when (planIterations plan > 1) $
      announce progress ("  iteration " <> show number <> " of " <> show (planIterations plan))
    earlier <- if number == 1 then pure before else countsBefore target
    once
      (Setting leniency progress target workload load nodes)
      earlier
      (if number == 1 then preloaded else mempty)
  pure . judged $
    Run
      { runName = nameOf target workload load,
        runSpec =
          (specOf capabilities (serverNodes (foundFacts found)) target workload load)
            { specWarmup = maximum (0 : map measuredWarmup iterations),
              specPersistence = foundPersistence found
            },
        runServer = foundFacts found,
        runIterations = map measuredIteration iterations,
        runProblems = [],
        runNotes = nub (workloadNotes workload <> concatMap measuredNotes iterations),
        runReference = Nothing
      }
  where
    plan = loadPlan load

-- The results of one iteration.
data Measured = Measured
  { measuredIteration :: Iteration,
    measuredNotes :: [Text],
    -- Seconds of load before the window.
    measuredWarmup :: Double
  }

-- Runs at most this number of iterations. Stops after an iteration without any answered command.
repeatedly :: Int -> (Int -> IO Measured) -> IO [Measured]
repeatedly count action = go 1
  where
    go number = do
      found <- action number
      let over = number >= count || iterationOps (measuredIteration found) == 0
      (found :) <$> if over then pure [] else go (number + 1)

tuningOf :: LoadOptions -> Tuning
tuningOf load = Tuning {tuningMuxCount = loadMuxCount load, tuningPolling = loadPolling load}

-- The settings that all iterations of a run share.
data Setting = Setting
  { settingLeniency :: Leniency,
    settingProgress :: Progress,
    settingTarget :: Target,
    settingWorkload :: Workload,
    settingLoad :: LoadOptions,
    settingNodes :: Nodes
  }

-- One iteration, on new connections. Takes the servers' counts before, and what was sent since.
once :: Setting -> CountsBefore -> CommandCounts -> IO Measured
once setting before sentAlready = do
  cores <- usableCores
  capabilities <- getNumCapabilities
  begin <- traverse moment (planStartAt plan)
  ((found, samples, unanswered, away), lost) <- heard . sampled $ \sampler -> do
    (found, away) <- withObserved (tuningOf load) target $ \outages client ->
      (,)
        <$> drive (Setup progress client outages workload load (settingNodes setting) begin)
        `finally` finish progress
        <*> outageNotes outages
    (\samples unanswered -> (found, samples, unanswered, away))
      <$> maybe (pure []) (\one -> taken one (driveFrom found) (driveTo found)) sampler
      <*> maybe (pure []) refusals sampler
  agreement <-
    if countsComparable workload
      then
        let errors = sum (partErrors <$> driveParts found)
         in sharing (planStartAt plan)
              <$> reconcile target before errors (sentAlready <> callsOf workload found)
      else
        pure . NotComparable $
          "nobody here knows how many commands there were: the server runs programs, the library sends \
          \commands in parts or to all nodes, or this program sends the same"
  let (iteration, notes) =
        assemble
          Assembly
            { assemblyDrive = found,
              assemblyKinds = kinds workload,
              assemblyNodes = settingNodes setting,
              assemblyCores = cores,
              assemblyClosed =
                if loopOf plan == Closed
                  then Just (senderCount load capabilities, loadBatch load)
                  else Nothing,
              assemblyArrivals = planArrivals plan,
              assemblyRequests = planRequests plan,
              assemblySamples = samples,
              assemblyAgreement = agreement,
              assemblyLeniency = settingLeniency setting
            }
  pure
    Measured
      { measuredIteration =
          iteration {iterationErrors = Map.unionWith (+) lost (iterationErrors iteration)},
        measuredNotes = notes <> away <> ["the server was not sampled: " <> one | one <- unanswered],
        measuredWarmup = driveWarmup found
      }
  where
    load = settingLoad setting
    plan = loadPlan load
    target = settingTarget setting
    workload = settingWorkload setting
    progress = settingProgress setting
    sampled :: (Maybe Sampler -> IO a) -> IO a
    sampled action = case planSample plan of
      Just interval -> withSampler target interval (action . Just)
      Nothing -> action Nothing
    -- With subscribers, if the workload needs them. Also returns the messages that did not reach them.
    heard action = case workloadSubscribers workload of
      0 -> (\result -> (result, Map.empty)) <$> action
      subscribers -> do
        owners <- primariesWithSlots target
        -- A node of a cluster counts only the subscribers that it has itself.
        let home = maybe (targetEndpoint target) fst (find (any (\(low, high) -> low <= slot && slot <= high) . snd) owners)
            due (found, _, _, _) = subscribers * publishedIn workload found
        (result, got) <- withSubscribers (targetConfig (tuningOf load) target) home subscribers due action
        let lost = abs (due result - got)
        pure (result, Map.fromList [("MessageNotDelivered", lost) | lost > 0])
    slot = keySlot channel

-- A generator that begins at a given time is not alone: the servers count the others' commands as
-- well. If the servers count fewer commands than this generator sent, that is still wrong.
sharing :: Maybe Int -> Agreement -> Agreement
sharing startAt agreement = case (startAt, agreement) of
  (Just _, Disagrees client server)
    | and [Map.findWithDefault 0 name server >= calls | (name, calls) <- Map.toList client] ->
      NotComparable
        "begun at a given time (--start-at): \
        \others use the server too, and it counts their commands as well"
  _ -> agreement

-- Converts a time of day to the monotonic clock.
moment :: Int -> IO Nanos
moment wanted = do
  (wall, now) <- clocks
  if wanted < wall
    then
      invalidRun $
        "--start-at passed " <> fixed 1 (secondsIn (wall - wanted)) <> " s before everything was ready"
    else pure (now + wanted - wall)

-- How often each command must have run to give these answers.
callsOf :: Workload -> Drive -> CommandCounts
callsOf workload found =
  mconcat
    [ counted count (expectedStats workload kind)
      | (kind, count) <- IntMap.toList (answeredByKind found)
    ]

-- The number of messages that were published.
publishedIn :: Workload -> Drive -> Int
publishedIn workload found =
  sum
    [ IntMap.findWithDefault 0 kind (answeredByKind found)
      | (kind, "publish") <- zip [0 ..] (kinds workload)
    ]

-- The nodes of a cluster, if it has several and lists them.
nodesFor :: Target -> IO Nodes
nodesFor target
  | targetIsCluster target =
    either (const NoNodes) (nodesOf . map (first (Text.pack . renderEndpoint)))
      <$> try @Error (primariesWithSlots target)
  | otherwise = pure NoNodes

announcement :: Target -> Workload -> LoadOptions -> String
announcement target workload load =
  targetName (targetKind target) <> " " <> Text.unpack (workloadName workload)
    <> (": preload, " <> before <> " of warm-up, " <> measured)
  where
    plan = loadPlan load
    before = case planWarmup plan of
      WarmupFor seconds -> fixed 1 seconds <> " s"
      WarmupUntilSteady most -> "up to " <> fixed 0 most <> " s"
    measured =
      maybe (fixed 1 (loadDuration load) <> " s") ((<> " commands") . thousands) (planRequests plan)
        <> " measured"
        <> maybe "" ((", " <>) . describeArrivals) (planArrivals plan)

nameOf :: Target -> Workload -> LoadOptions -> Text
nameOf target workload load =
  Text.pack $
    targetName (targetKind target) <> " " <> Text.unpack (workloadName workload)
      <> (if targetUsesTls target then " tls" else "")
      <> case loopOf (loadPlan load) of
        Closed -> ""
        OpenConstant rate -> " at " <> describeRate rate
        OpenPoisson rate -> " at poisson " <> describeRate rate
        OpenRamp from to -> " at " <> describeRate from <> " to " <> describeRate to

loopOf :: Plan -> Loop
loopOf plan = case planArrivals plan of
  Nothing -> Closed
  Just (Constant rate) -> OpenConstant rate
  Just (Poisson rate) -> OpenPoisson rate
  Just (Ramp from to _) -> OpenRamp from to

-- Takes the number of capabilities, and the number of nodes that serve keys.
specOf :: Int -> Int -> Target -> Workload -> LoadOptions -> Spec
specOf capabilities nodes target workload load =
  (targetSpec target capabilities (workloadName workload))
    { specWorkload = workloadText workload,
      specSeed = loadSeed load,
      specKeys = loadKeys load,
      specKeySize = workloadKeySize workload,
      specDistribution =
        Text.pack (describeDistribution (shapeDistribution (workloadShape workload))),
      specValueSizes = Text.pack (describeSizes (shapeSizes (workloadShape workload))),
      specThreads = senderCount load capabilities,
      specBatch = if loopOf plan == Closed then loadBatch load else 1,
      specInFlight =
        if loopOf plan == Closed
          then loadThreads load * loadBatch load
          else Config.limitInFlight Config.limitsDefaults * connections * max 1 nodes,
      specMuxCount = loadMuxCount load,
      specPolling = loadPolling load,
      specLoop = loopOf plan,
      specDuration = if isJust (planRequests plan) then Nothing else Just (loadDuration load),
      specRequests = planRequests plan,
      specAxes =
        Map.fromList [("read_from", word) | Just word <- [readingWord (Config.getReadFrom (targetBase target))]]
          <> missesWanted workload
    }
  where
    plan = loadPlan load
    -- Connections to one node.
    connections = fromMaybe capabilities (loadMuxCount load)

-- | The name, in results, of a way of reading that may leave the primary.
readingWord :: Config.ReadFrom -> Maybe Text
readingWord = \case
  Config.ReadPrimary -> Nothing
  Config.PreferReplica -> Just "replicas"
  Config.ReadAny -> Just "any"
  Config.SameZone _ -> Just "zone"
  Config.LowestLatency -> Just "latency"
