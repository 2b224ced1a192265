-- | Turns counts into an iteration of a document: the numbers of kinds and nodes become names,
-- slices get their times, and the generator is judged.
module Tool.Bench.Assemble
  ( Assembly (..),
    Leniency (..),
    leniencyOf,
    assemble,
    answeredByKind,
    eventsOf,
    stalls,
  )
where

import Data.Function (on)
import Data.IntMap.Strict qualified as IntMap
import Data.List (groupBy, sortOn)
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust)
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Bench.Arrivals (Arrivals, expectedAtLeast, secondsFor)
import Tool.Bench.Counters (KindCounts (..), Part (..), afterwards, partOps)
import Tool.Bench.Document
import Tool.Bench.Document.Totals (fullSlices, sliceRate)
import Tool.Bench.Driver (Drive (..))
import Tool.Bench.Environment (Usage (..))
import Tool.Bench.Histogram qualified as Histogram
import Tool.Bench.Nodes (Nodes, nodeNames)
import Tool.Bench.Trust (Evidence (..), cpuLimit, forgiven, startedSteady, trustOf, waitedEachSecond)
import Tool.Options.Load (Check (..), Plan (planAllowed))
import Tool.Span (secondsIn)
import Tool.Statistics (median)
import Tool.Text (duration, fixed, percent)

-- | The problems that do not make a run invalid.
data Leniency = Leniency
  { -- | Checks of which a failure is only noted.
    lenientChecks :: [Check],
    -- | Whether an open loop may fall behind: where this is what the run looks for.
    lenientBehind :: Bool
  }

leniencyOf :: Plan -> Leniency
leniencyOf plan = Leniency {lenientChecks = planAllowed plan, lenientBehind = False}

-- | What an iteration is made from.
data Assembly = Assembly
  { assemblyDrive :: Drive,
    -- | The names of the kinds, in the order of their numbers.
    assemblyKinds :: [Text],
    assemblyNodes :: Nodes,
    -- | Cores that this process may use.
    assemblyCores :: Double,
    -- | Threads and batch of a closed loop.
    assemblyClosed :: Maybe (Int, Int),
    assemblyArrivals :: Maybe Arrivals,
    -- | The number of commands, if the window ends after a number and not after a time.
    assemblyRequests :: Maybe Int,
    assemblySamples :: [ServerSample],
    assemblyAgreement :: Agreement,
    assemblyLeniency :: Leniency
  }

-- | The iteration, and notes for its reader.
assemble :: Assembly -> (Iteration, [Text])
assemble assembly = (iteration, notes)
  where
    found = assemblyDrive assembly
    parts = windowParts found
    whole = foldMap snd parts
    -- No command that is due after the window is sent. The commands that were due in it and
    -- answered later have waited longest: without them, a stall at the end would not be seen.
    late = IntMap.map (\kind -> mempty {kindResponse = kindResponse kind}) (partKinds following)
    following = IntMap.findWithDefault mempty afterwards (driveParts found)
    seconds = secondsIn (driveTo found - driveFrom found)
    used = driveUsage found
    -- The main thread wakes a little late at both ends of the window: scaled to its exact length.
    scale nanos =
      fromIntegral nanos * fromIntegral (driveTo found - driveFrom found)
        / fromIntegral (max 1 (usageTime used))
    -- The last slice includes them, so that charts over time include them, too.
    series = map slice (onLast withLate parts)
    withLate part = part {partKinds = IntMap.unionWith (<>) (partKinds part) late}
    onLast change entries = case splitAt (length entries - 1) entries of
      (before, final) -> before <> map (fmap change) final
    -- By name; kinds with the same name are added up.
    named kinds =
      Map.fromListWith
        (<>)
        [ (name, counts)
          | (number, name) <- zip [0 ..] (assemblyKinds assembly),
            Just counts <- [IntMap.lookup number kinds]
        ]
    isOpen = isJust (assemblyArrivals assembly)
    service = foldMap kindService (partKinds whole)
    judgement = trustOf evidence
    -- The commands that were due in the window and sent after it are the latest of all.
    trust = judgement {trustSchedule = (<> partSchedule following) <$> trustSchedule judgement}
    evidence =
      Evidence
        { evidenceUsage = used,
          evidenceCores = assemblyCores assembly,
          evidenceAllowed = lenientChecks leniency,
          evidenceSeconds = seconds,
          evidenceService = service,
          evidenceClosed = assemblyClosed assembly,
          evidenceOpen =
            (\plan -> (partSchedule whole, if lenientBehind leniency then 0 else due plan))
              <$> assemblyArrivals assembly,
          evidenceSteady =
            startedSteady
              [ fromIntegral (partOps part) / span'
                | ((_, span'), part) <- parts,
                  abs (span' - fullSlice) < fullSlice / 100
              ]
        }
    fullSlice = secondsIn (driveSlice found)
    -- The plan of a ramp begins with the window. The other plans have the same rate everywhere.
    due plan =
      expectedAtLeast plan (maybe id (min . secondsFor plan) (assemblyRequests assembly) seconds)
    leniency = assemblyLeniency assembly
    iteration =
      Iteration
        { iterationStarted = driveStarted found,
          iterationSeconds = seconds,
          iterationCommon = Nothing,
          iterationCommands = stats <$> named (IntMap.unionWith (<>) (partKinds whole) late),
          iterationErrors =
            Map.unionsWith (+) (foldMap (map kindErrors . IntMap.elems . partKinds) (driveParts found)),
          iterationSeries = series,
          iterationNodes =
            Map.fromList
              [ (name, NodeStats {nodeErrors = errors, nodeService = answered})
                | (number, name) <- zip [0 ..] (nodeNames (assemblyNodes assembly)),
                  -- Like those above: also those after the end of the window.
                  let errors = nodeErrorsOf number
                      answered = IntMap.findWithDefault mempty number (partNodes whole),
                  not (Map.null errors) || answered /= mempty
              ],
          iterationSamples = assemblySamples assembly,
          iterationEvents = eventsOf (assemblySamples assembly) <> stalls series,
          iterationCpu = scale (usageCpu used),
          iterationGcCpu = scale <$> usageGc used,
          iterationMemory = driveMemory found,
          iterationTrust = trust,
          iterationAgreement = assemblyAgreement assembly
        }
    nodeErrorsOf number =
      Map.unionsWith (+) (IntMap.mapMaybe (IntMap.lookup number . partNodeErrors) (driveParts found))
    responseOf kind = if isOpen then Just (kindResponse kind) else Nothing
    stats kind =
      CommandStats
        { commandHits = kindHits kind,
          commandMisses = kindMisses kind,
          commandErrors = kindErrors kind,
          commandService = kindService kind,
          commandResponse = responseOf kind
        }
    slice ((at, span'), part) =
      Slice
        { sliceAt = at,
          sliceSpan = span',
          sliceCommands = sliceStats <$> named (partKinds part)
        }
    sliceStats kind =
      SliceStats
        { sliceService = kindService kind,
          sliceResponse = responseOf kind,
          sliceErrors = sum (kindErrors kind)
        }
    overtaken = Histogram.maximumValue (foldMap kindService (partKinds following))
    notes =
      [ "a command was sent in the window and answered after it, after " <> Text.pack (duration overtaken)
          <> ": longer than any that these figures include"
        | not isOpen,
          overtaken > Histogram.maximumValue service
      ]
        <> [ "the generator used " <> Text.pack (percent share)
               <> " of the cores it could use: \
                  \these figures are about the client as much as about the server"
             | Just share <- [trustCpuShare trust],
               share > cpuLimit,
               Saturation `elem` lenientChecks leniency
           ]
        <> [ "all its threads together waited " <> waitedEachSecond waited
               <> " for a core: something else uses this machine's processors"
             | Just waited <- [trustRunQueue trust],
               waited > 0.2 * assemblyCores assembly
           ]
        <> map ("allowed: " <>) (forgiven evidence)
        <> [ "the rate " <> (if settled then "was steady after " else "did not become steady within ")
               <> Text.pack (fixed 1 (driveWarmup found) <> " s")
             | Just settled <- [driveSettled found]
           ]
        <> [ "the rate at the begin of the window differed from the rest: \
             \a longer warm-up would help"
             | trustSteady trust == Just False
           ]

-- The slices of the window, in order: where each begins, in seconds since the begin of the
-- window, and how long it is. Empty slices are included.
windowParts :: Drive -> [((Double, Double), Part)]
windowParts found = map part [driveFirst found .. finalSlice]
  where
    finalSlice =
      driveFirst found + max 0 ((driveTo found - driveFrom found - 1) `div` driveSlice found)
    part number =
      ( (secondsIn (start number), secondsIn (end number - start number)),
        IntMap.findWithDefault mempty number (driveParts found)
      )
    end number = min (start number + driveSlice found) (driveTo found - driveFrom found)
    -- Relative to the begin of the window.
    start number = (number - driveFirst found) * driveSlice found

-- | How many commands of each kind were answered over the whole drive, wrong answers included.
answeredByKind :: Drive -> IntMap.IntMap Int
answeredByKind found =
  IntMap.map count (IntMap.unionsWith (<>) (map partKinds (IntMap.elems (driveParts found))))
  where
    count kind =
      Histogram.count (kindService kind) + Map.findWithDefault 0 "WrongReply" (kindErrors kind)

-- | Events on the servers, as exact as the samples are close. Of all nodes, in order of time.
eventsOf :: [ServerSample] -> [Event]
eventsOf samples = sortOn eventAt (concatMap ofNode (Map.elems byNode))
  where
    byNode = Map.fromListWith (flip (<>)) [(sampleNode sample, [sample]) | sample <- samples]

ofNode :: [ServerSample] -> [Event]
ofNode samples =
  concat
    [ lasting "aof-rewrite" "the append-only file was rewritten" "aof_rewrite_in_progress",
      lasting "bgsave" "a snapshot was saved" "rdb_bgsave_in_progress",
      lasting "loading" "the data set was loaded" "loading",
      growing "fsync-delay" "fsyncs that came late" "aof_delayed_fsync",
      growing "eviction" "keys were evicted" "evicted_keys",
      growing "rejected" "connections were rejected" "rejected_connections",
      [ event "failover" before after "it changed its role"
        | (before, after) <- steps,
          grown "role_master" before after /= 0
      ],
      [ event "restart" before after "it was restarted"
        | (before, after) <- steps,
          grown "uptime_in_seconds" before after < 0
      ]
    ]
  where
    steps = zip samples (drop 1 samples)
    at name = Map.findWithDefault 0 name . sampleValues
    grown name before after = at name after - at name before
    lasting kind text name =
      [ event kind first final text
        | spell@(first : _) <- groupBy ((==) `on` ((> 0) . at name)) samples,
          at name first > 0,
          final : _ <- [reverse spell]
      ]
    growing kind text name =
      [ event kind before after (text <> ": " <> Text.pack (fixed 0 more))
        | (before, after) <- steps,
          let more = grown name before after,
          more > 0
      ]
    event kind before after text =
      Event (sampleAt before) (sampleAt after) kind (sampleNode before <> ": " <> text)

-- | A stall for each full slice with fewer answers than a tenth of the median of all of them.
stalls :: [Slice] -> [Event]
stalls series =
  [ Event (sliceAt slice) (sliceAt slice + sliceSpan slice) "stall" (stalled (slowest slice))
    | slice <- slices,
      sliceRate slice < 0.1 * usual
  ]
  where
    slices = fullSlices series
    usual = median (map sliceRate slices)
    slowest slice = foldr (max . Histogram.maximumValue . sliceService) 0 (sliceCommands slice)
    stalled :: Int -> Text
    stalled 0 = "no command was answered"
    stalled longest =
      "hardly any command was answered, the slowest after " <> Text.pack (duration longest)
