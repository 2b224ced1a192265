-- | Merges documents of runs that were started together on several machines. Counts and histograms
-- add up without loss. The rate covers only the time that all windows have in common, on one
-- clock; the clocks are compared through the server, or assumed to be equal, with a note.
module Tool.Merge
  ( mergeDocuments,
  )
where

import Control.Applicative ((<|>))
import Data.List qualified as List
import Data.List.NonEmpty (NonEmpty (..))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (listToMaybe, mapMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Tool.Bench.Document
import Tool.Bench.Document.Totals
import Tool.Chart (Unit (Nanoseconds), format)
import Tool.Span (nanosIn, secondsIn)
import Tool.Text (shown)

-- | A part of a merged run: the name of its document, how many nanoseconds its clock is ahead of
-- the first document's, and the run.
data Part = Part
  { partName :: Text,
    partAhead :: Int,
    partRun :: Run
  }

-- | Merges all documents, each with its name. Runs with the same name belong together. The error
-- says why the documents cannot be merged.
mergeDocuments :: NonEmpty (Text, Document) -> Either String Document
mergeDocuments documents@((firstName, first) :| others)
  | null others = Left "one document alone cannot be merged"
  | null shared =
    Left . Text.unpack $
      "no run is in all of them: "
        <> Text.intercalate "; " [name <> " has " <> names document | (name, document) <- everyone]
  | otherwise =
    Right
      Document
        { documentManifest = documentManifest first,
          documentRuns = mapMaybe (fmap mergeRuns . NonEmpty.nonEmpty . partsOf) shared,
          documentNotes =
            concat
              [ [ "Merged from " <> shown (length documents)
                    <> " documents. \
                       \Latencies are those of all samples; \
                       \rates are counted over the time that all of them have in common."
                ],
                clockNotes,
                [ name <> ": the run " <> runName run <> " is left out, because not all have it"
                  | (name, document) <- everyone,
                    run <- documentRuns document,
                    runName run `notElem` shared
                ],
                [name <> ": " <> note | (name, document) <- everyone, note <- documentNotes document]
              ],
          documentOrigins =
            [Origin name (documentManifest document) (clockOf document) | (name, document) <- everyone]
        }
  where
    everyone = NonEmpty.toList documents
    names document = Text.intercalate ", " (map runName (documentRuns document))
    shared = [runName run | run <- documentRuns first, all (has (runName run) . snd) others]
    has name document = any ((== name) . runName) (documentRuns document)
    partsOf wanted =
      [ Part {partName = name, partAhead = maybe 0 clockOffset (clockOf document), partRun = run}
        | (name, document) <- everyone,
          Just run <- [List.find ((== wanted) . runName) (documentRuns document)]
      ]
    -- How far a document's clock is ahead of the first document's.
    clockOf document = do
      theirs <- serverTime document
      ours <- serverTime first
      let uncertainty = clockUncertainty theirs + clockUncertainty ours
      pure (Clock (clockOffset theirs - clockOffset ours) uncertainty)
    serverTime document = listToMaybe (mapMaybe (serverClock . runServer) (documentRuns document))
    clockNotes =
      [ name <> ": " <> case clockOf document of
          Just (Clock ahead uncertainty) ->
            "its clock is ahead of that of " <> firstName
              <> (" by " <> nanos ahead <> ", give or take " <> nanos uncertainty)
          Nothing ->
            "its clock was not compared with that of " <> firstName <> " and is taken to be the same"
        | (name, document) <- others
      ]
    nanos = format Nanoseconds . fromIntegral

mergeRuns :: NonEmpty Part -> Run
mergeRuns parts@(first :| _) =
  Run
    { runName = runName (partRun first),
      runSpec = mergeSpecs (fmap (runSpec . partRun) parts),
      runServer =
        (runServer (partRun first))
          { serverRefused = List.nub (concatMap (serverRefused . runServer . partRun) parts)
          },
      runIterations = map snd merged,
      runProblems =
        concatMap own parts
          <> [ "window " <> shown number
                 <> ": the generators measured at different times and have no moment in common"
               | (number, (common, _)) <- zip [1 :: Int ..] merged,
                 common <= 0
             ],
      runNotes =
        List.nub (concatMap (runNotes . partRun) parts)
          <> [ "only as many windows are merged as the shortest has"
               | length (List.nub (map count (NonEmpty.toList parts))) > 1
             ],
      runReference = Nothing
    }
  where
    count = length . runIterations . partRun
    timed part = map ((,) (partAhead part)) (runIterations (partRun part))
    merged = map mergeIterations (columns (fmap timed parts))
    -- The problems of each part, without the different counts of commands: the server's counts
    -- include the commands of the other generators.
    own part =
      [ partName part <> ": " <> problem
        | problem <- runProblems (partRun part),
          problem `notElem` ofCounts (partRun part)
      ]
    ofCounts run = findProblems run List.\\ findProblems (withoutCounts run)
    withoutCounts run =
      run {runIterations = [one {iterationAgreement = NotComparable ""} | one <- runIterations run]}

-- As many lists as the shortest list has items.
columns :: NonEmpty [a] -> [NonEmpty a]
columns = maybe [] (\pairs -> fmap fst pairs : columns (fmap snd pairs)) . traverse List.uncons

mergeSpecs :: NonEmpty Spec -> Spec
mergeSpecs specs@(first :| others) =
  first
    { specThreads = sum (fmap specThreads specs),
      specInFlight = sum (fmap specInFlight specs),
      specCapabilities = sum (fmap specCapabilities specs),
      specLoop = List.foldl' both (specLoop first) (map specLoop others),
      specRequests = sum <$> traverse specRequests specs,
      specKeys = maximum (fmap specKeys specs)
    }
  where
    both one other = case (one, other) of
      (OpenConstant a, OpenConstant b) -> OpenConstant (a + b)
      (OpenPoisson a, OpenPoisson b) -> OpenPoisson (a + b)
      (OpenRamp a b, OpenRamp c d) -> OpenRamp (a + c) (b + d)
      _ -> one

-- Merges windows of several generators. Each comes with how many nanoseconds its clock is ahead.
-- Returns the length of their common part in seconds, which is not above 0 if there is none, and
-- the merged window.
mergeIterations :: NonEmpty (Int, Iteration) -> (Double, Iteration)
mergeIterations windows =
  ( secondsIn (commonTo - commonFrom),
    Iteration
      { iterationStarted = from,
        iterationSeconds = secondsIn (to - from),
        iterationCommon =
          Just (Common (max 0 (secondsIn (commonTo - commonFrom))) (sum (fmap opsInCommon placed))),
        iterationCommands = Map.unionsWith (<>) (map iterationCommands iterations),
        iterationErrors = Map.unionsWith (+) (map iterationErrors iterations),
        iterationSeries =
          mergeSeries (secondsIn (to - from)) [(begin - from, iterationSeries one) | (begin, one) <- NonEmpty.toList placed],
        iterationNodes = Map.unionsWith (<>) (map iterationNodes iterations),
        iterationSamples = foldMap samplesOf observer,
        iterationEvents = foldMap eventsOf observer,
        iterationCpu = sum (map iterationCpu iterations),
        iterationGcCpu = sum <$> traverse iterationGcCpu iterations,
        iterationMemory = Memory (total memoryPeakResident) (total memoryMaxInUse) (total memoryMaxLive),
        iterationTrust = mergeTrust (map iterationTrust iterations),
        iterationAgreement = mergeAgreements (map iterationAgreement iterations)
      }
  )
  where
    -- Each window with its begin on the first clock.
    placed = fmap (\(ahead, one) -> (iterationStarted one - ahead, one)) windows
    iterations = map snd (NonEmpty.toList placed)
    ends = fmap (\(begin, one) -> begin + nanosIn (iterationSeconds one)) placed
    (from, to) = (minimum (fmap fst placed), maximum ends)
    (commonFrom, commonTo) = (maximum (fmap fst placed), minimum ends)
    later begin = secondsIn (begin - from)
    -- All generators watch the same server: the samples of one are enough.
    observer =
      List.find (not . null . iterationSamples . snd) placed <|> listToMaybe (NonEmpty.toList placed)
    total part = sum (map (part . iterationMemory) iterations)
    samplesOf (begin, one) =
      [each {sampleAt = sampleAt each + later begin} | each <- iterationSamples one]
    eventsOf (begin, one) =
      [ each {eventAt = eventAt each + later begin, eventUntil = eventUntil each + later begin}
        | each <- iterationEvents one
      ]
    -- A slice that lies only partly in the common part counts in proportion.
    opsInCommon (begin, one) = case iterationSeries one of
      [] -> fromIntegral (iterationOps one) * within 0 (iterationSeconds one)
      slices -> sum (map counted slices)
      where
        counted slice = fromIntegral (sliceOps slice) * within (sliceAt slice) (sliceSpan slice)
        (low, high) = (secondsIn (commonFrom - begin), secondsIn (commonTo - begin))
        within at long
          | long <= 0 = 0
          | otherwise = max 0 (min high (at + long) - max low at) / long :: Double

-- A slice is not divided: all of it counts at the place of the common grid that has its middle.
-- Takes the seconds of the whole, which may end within a place.
mergeSeries :: Double -> [(Int, [Slice])] -> [Slice]
mergeSeries seconds series
  | width <= 0 = []
  | otherwise =
    [ Slice {sliceAt = at, sliceSpan = min width (seconds - at), sliceCommands = commands}
      | (place, commands) <- Map.toAscList gathered,
        let at = fromIntegral place * width
    ]
  where
    width = List.foldl' max 0 [sliceSpan slice | (_, slices) <- series, slice <- slices]
    gathered :: Map Int (Map Text SliceStats)
    gathered =
      Map.fromListWith
        (flip (Map.unionWith (<>)))
        [ ( floor ((secondsIn later + sliceAt slice + sliceSpan slice / 2) / width),
            sliceCommands slice
          )
          | (later, slices) <- series,
            slice <- slices
        ]

mergeTrust :: [Trust] -> Trust
mergeTrust parts =
  Trust
    { trustCpuShare = most trustCpuShare,
      trustGcShare = most trustGcShare,
      trustRunQueue = most trustRunQueue,
      trustLittle =
        listToMaybe (List.sortOn (\value -> negate (abs (value - 1))) (mapMaybe trustLittle parts)),
      trustSteady = and <$> traverse trustSteady parts,
      trustSchedule = mconcat <$> traverse trustSchedule parts,
      trustProblems = List.nub (concatMap trustProblems parts)
    }
  where
    most part = maximum <$> NonEmpty.nonEmpty (mapMaybe part parts)

-- Generators on one server see each other's commands in the server's counts.
mergeAgreements :: [Agreement] -> Agreement
mergeAgreements =
  maybe (NotComparable others) (Agrees . Map.unionsWith (+))
    . traverse (\case Agrees counts -> Just counts; _ -> Nothing)
  where
    others = "several generators used the server, and each saw the others' commands in its counts"
