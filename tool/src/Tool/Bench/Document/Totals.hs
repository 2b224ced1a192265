-- | Figures that follow from a "Tool.Bench.Document": sums, rates, and whether they may be used.
module Tool.Bench.Document.Totals
  ( sliceOps,
    sliceRate,
    sliceLatencies,
    fullSlices,
    commandLatencies,
    iterationOps,
    iterationRate,
    iterationService,
    iterationLatencies,
    runSeconds,
    runOps,
    runRate,
    runRates,
    runCommands,
    runNodes,
    runService,
    runResponse,
    runLatencies,
    runHits,
    runMisses,
    runHitRatio,
    runErrors,
    runErrorCount,
    runCpuPerOp,
    runMemory,
    highestTrust,
    runAgreement,
    runValid,
    findProblems,
    judged,
    Step (..),
    stepOf,
    kept,
    knee,
    limitOf,
  )
where

import Data.Bifunctor (bimap)
import Data.Foldable (fold)
import Data.List qualified as List
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, listToMaybe, mapMaybe)
import Data.Semigroup (sconcat)
import Data.Text (Text)
import Data.Text qualified as Text
import Text.Read (readMaybe)
import Tool.Bench.Document
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Time (Nanos)
import Tool.Text (fixed, shown)

-- | Commands that were answered without an error in the slice. \(O(n)\) in the kinds.
sliceOps :: Slice -> Int
sliceOps = sum . fmap (Histogram.count . sliceService) . sliceCommands

-- | Commands answered without an error per second. 0 for a slice without length.
sliceRate :: Slice -> Double
sliceRate slice = perSecond (fromIntegral (sliceOps slice), sliceSpan slice)

-- | The latencies that clients saw, of all commands of the slice.
sliceLatencies :: Slice -> Histogram
sliceLatencies = foldMap (\(SliceStats service response _) -> fromMaybe service response) . sliceCommands

-- | All but the last if it is shorter: so little time says nothing about the rate.
fullSlices :: [Slice] -> [Slice]
fullSlices slices = filter ((>= 0.99 * longest) . sliceSpan) slices
  where
    longest = maximum (0 : map sliceSpan slices)

-- | The latencies that clients saw: response times if they are known, service times otherwise.
commandLatencies :: CommandStats -> Histogram
commandLatencies stats = fromMaybe (commandService stats) (commandResponse stats)

-- | Commands that were answered without an error inside the window. \(O(n)\) in the kinds.
iterationOps :: Iteration -> Int
iterationOps = sum . fmap (Histogram.count . commandService) . iterationCommands

-- | Commands answered without an error per second. For merged windows: over their common part.
iterationRate :: Iteration -> Double
iterationRate = perSecond . rated

-- Commands, and the seconds in which they were counted.
rated :: Iteration -> (Double, Double)
rated iteration = case iterationCommon iteration of
  Just part -> (commonOps part, commonSeconds part)
  Nothing -> (fromIntegral (iterationOps iteration), iterationSeconds iteration)

perSecond :: (Double, Double) -> Double
perSecond (ops, seconds)
  | seconds <= 0 = 0
  | otherwise = ops / seconds

-- | Service times of all commands together. \(O(n)\) in the buckets.
iterationService :: Iteration -> Histogram
iterationService = foldMap commandService . iterationCommands

-- | The latencies that callers saw: response times if they are known, service times otherwise.
iterationLatencies :: Iteration -> Histogram
iterationLatencies iteration =
  fromMaybe (iterationService iteration) (responseOf (iterationCommands iteration))

-- | Seconds measured, over all iterations.
runSeconds :: Run -> Double
runSeconds = sum . map iterationSeconds . runIterations

-- | Commands answered without an error, over all iterations.
runOps :: Run -> Int
runOps = sum . map iterationOps . runIterations

-- | Commands per second, over all iterations.
runRate :: Run -> Double
runRate = perSecond . bimap sum sum . unzip . map rated . runIterations

-- | Commands per second of each iteration.
runRates :: Run -> [Double]
runRates = map iterationRate . runIterations

-- | The statistics of each kind of command, over all iterations.
runCommands :: Run -> Map Text CommandStats
runCommands = Map.unionsWith (<>) . map iterationCommands . runIterations

-- | The statistics of each node, over all iterations.
runNodes :: Run -> Map Text NodeStats
runNodes = Map.unionsWith (<>) . map iterationNodes . runIterations

-- | Service times of all commands, over all iterations.
runService :: Run -> Histogram
runService = foldMap iterationService . runIterations

-- | Response times of all commands, over all iterations, if they are known.
runResponse :: Run -> Maybe Histogram
runResponse = responseOf . runCommands

responseOf :: Map Text CommandStats -> Maybe Histogram
responseOf commands = NonEmpty.nonEmpty (Map.elems commands) >>= commandResponse . sconcat

-- | The latencies that callers saw: response times if they are known, service times otherwise.
runLatencies :: Run -> Histogram
runLatencies run = fromMaybe (runService run) (runResponse run)

-- | Reads that found something.
runHits :: Run -> Int
runHits = sum . fmap commandHits . runCommands

-- | Reads that found nothing.
runMisses :: Run -> Int
runMisses = sum . fmap commandMisses . runCommands

-- | Hits among the reads that were measured; 'Nothing' without reads.
runHitRatio :: Run -> Maybe Double
runHitRatio run = case runHits run + runMisses run of
  0 -> Nothing
  found -> Just (fromIntegral (runHits run) / fromIntegral found)

-- | How many commands failed, by class of error, preload and warm-up included.
runErrors :: Run -> Map Text Int
runErrors = Map.unionsWith (+) . map iterationErrors . runIterations

runErrorCount :: Run -> Int
runErrorCount = sum . runErrors

-- | Processor time of the generator per command, in nanoseconds.
runCpuPerOp :: Run -> Double
runCpuPerOp run
  | runOps run == 0 = 0
  | otherwise = sum (map iterationCpu (runIterations run)) / fromIntegral (runOps run)

-- | The highest figures of memory in any iteration.
runMemory :: Run -> Memory
runMemory run = Memory (most memoryPeakResident) (most memoryMaxInUse) (most memoryMaxLive)
  where
    most field = maximum (0 : map (field . iterationMemory) (runIterations run))

-- | The highest of a figure of trust, of all iterations in which it is known.
highestTrust :: (Trust -> Maybe Double) -> Run -> Maybe Double
highestTrust part =
  fmap maximum . NonEmpty.nonEmpty . mapMaybe (part . iterationTrust) . runIterations

-- | The worst comparison of all iterations, or the sum of the counts if all agree.
runAgreement :: Run -> Agreement
runAgreement run =
  maybe (NotComparable "nothing was measured") (foldl1 worst) $
    NonEmpty.nonEmpty (map iterationAgreement (runIterations run))
  where
    worst one other = case (one, other) of
      (Agrees a, Agrees b) -> Agrees (Map.unionWith (+) a b)
      (Disagrees _ _, _) -> one
      (_, Disagrees _ _) -> other
      (NotComparable _, _) -> one
      (_, NotComparable _) -> other

-- | Whether the numbers may be used.
runValid :: Run -> Bool
runValid = null . runProblems

-- | The run with the problems that were found in it.
judged :: Run -> Run
judged run = run {runProblems = findProblems run}

-- | Why the numbers must not be used, one line per reason. If there is none, they may be used.
findProblems :: Run -> [Text]
findProblems run =
  concat
    [ [shown (runErrorCount run) <> " commands failed: " <> counts (runErrors run) | runErrorCount run > 0],
      [ shown missed <> " GETs missed, though every key was preloaded"
        | Map.notMember "misses" axes,
          let missed = sum (commandMisses <$> Map.filterWithKey (\name _ -> finds name) (runCommands run)),
          missed > 0
      ],
      [ "a share of " <> shortly found <> " of the GETs found something, not " <> wanted
        | Just wanted <- [Map.lookup "hit_ratio" axes],
          Just asked <- [readMaybe (Text.unpack wanted)],
          -- Other reads find every key.
          Just gets <- [Map.lookup "get" (runCommands run)],
          let drawn = commandHits gets + commandMisses gets,
          drawn > 0,
          let found = fromIntegral (commandHits gets) / fromIntegral drawn,
          abs (found - asked) > 0.02 + chance asked drawn
      ],
      [ "the client counted " <> counts client <> ", the server " <> counts server
          <> ": something else uses this server, or a count is wrong"
        | Disagrees client server <- [runAgreement run]
      ],
      ["nothing was answered while the clock ran" | runOps run == 0],
      List.nub (concatMap (trustProblems . iterationTrust) (runIterations run))
    ]
  where
    counts held
      | Map.null held = "nothing"
      | otherwise =
        Text.intercalate ", " [shown calls <> " " <> name | (name, calls) <- Map.toList held]
    axes = specAxes (runSpec run)
    -- Whether a command's keys were preloaded and stay. The user's own look up what they like, except
    -- for a plain GET of a preloaded key, and what is taken is gone.
    finds name
      | name == "get" = Map.notMember "hit_ratio" axes
      | "lrange_" `Text.isPrefixOf` name = not (any (`Map.member` runCommands run) ["lpop", "rpop"])
      | otherwise = name `elem` ["mget", "blpop"] || Text.toLower name == "get __key__"
    shortly share = Text.pack (fixed 3 share)
    -- A few reads may be this far off by chance (four standard deviations: once in 16 000 runs).
    chance :: Double -> Int -> Double
    chance asked drawn = 4 * sqrt (max 0 (asked * (1 - asked)) / fromIntegral drawn)

-- | The result at one rate.
data Step = Step
  { stepRate :: Double,
    -- | Commands per second that were answered.
    stepReached :: Double,
    -- | One command in each window: an edge may cut one off that was answered.
    stepCut :: Double,
    -- | The 99th percentile of the response time.
    stepP99 :: Nanos
  }
  deriving stock (Eq, Show)

-- | Whether the server answered what was sent, in time.
kept :: Step -> Bool
kept step = stepReached step + stepCut step >= 0.98 * stepRate step

-- | The knee of a curve of latencies over rates: beyond it commands queue up, and its rate is the load
-- that a server can take. The last step that keeps its rate and whose 99th percentile is at most
-- five times the median of the slower half of the steps, or at most a millisecond; in the faster
-- half, one up to which all steps do. So a single bad measurement at a low rate neither makes the
-- knee nor hides it. 'Nothing' if there is no such step, or no step of the slower half keeps its rate.
knee :: [Step] -> Maybe Step
knee steps = do
  limit <- limitOf steps
  let good step = kept step && stepP99 step <= limit
      (slower, faster) = splitAt (slowerHalf steps) steps
  listToMaybe (reverse (filter good slower <> takeWhile good faster))

-- | The largest 99th percentile that is not beyond the knee, if the slower half tells one.
limitOf :: [Step] -> Maybe Nanos
limitOf steps = case List.sort [stepP99 step | step <- take (slowerHalf steps) steps, kept step] of
  [] -> Nothing
  held -> max 1000000 . (5 *) <$> listToMaybe (drop ((length held - 1) `div` 2) held)

slowerHalf :: [Step] -> Int
slowerHalf steps = (length steps + 1) `div` 2

-- | The step of a run in an open loop.
stepOf :: Run -> Step
stepOf run = Step offered (runRate run) cut (Histogram.percentile 99 (fold (runResponse run)))
  where
    cut = perSecond (fromIntegral (length (runIterations run)), runSeconds run)
    offered = case specLoop (runSpec run) of
      OpenConstant rate -> rate
      OpenPoisson rate -> rate
      OpenRamp _ to -> to
      Closed -> runRate run
