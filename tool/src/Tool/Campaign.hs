-- | @bench campaign@: how the speed of servers depends on how and where they keep their data, on
-- the commands, on the number of clients, and on the distance. It can be interrupted at any
-- moment and continued later; only the current measurement is lost.
module Tool.Campaign
  ( campaign,
  )
where

import Control.Exception (bracket_)
import Control.Monad (filterM, unless, when)
import Data.Foldable (for_)
import Data.Functor ((<&>))
import Data.List (intercalate, nub, sort, sortOn)
import Data.List.NonEmpty (NonEmpty (..))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (catMaybes, fromMaybe, isJust, listToMaybe, mapMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import System.Directory
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO (hPutStrLn, stderr)
import System.IO.Error (tryIOError)
import System.Posix.Process (getProcessID)
import Tool.Bench.Document
import Tool.Bench.Document.Totals (iterationRate, runValid)
import Tool.Bench.Environment (manifest, probeDisk)
import Tool.Bench.Histogram qualified as Histogram
import Tool.Campaign.Design
import Tool.Campaign.Measure
import Tool.Campaign.Report (writeReport)
import Tool.Campaign.Server (Delayer (..), delayer)
import Tool.Campaign.Store
import Tool.Campaign.Workload (Workload (..), carriesValue, findWorkload)
import Tool.Failure (exitInvalid, invalidRun, unavailable)
import Tool.Options.Campaign
import Tool.Options.Load (checkName)
import Tool.Span (renderSpan, roughly)
import Tool.Text (duration, shown, thousands)

-- | Runs a campaign; blocks for hours if the options say so. The exit code is a failure if a cell
-- could not be measured, or a measurement is not valid.
campaign :: CampaignOptions -> IO ExitCode
campaign options = do
  axes <- axesOf options
  planned <- either invalidRun pure (planOf options axes)
  mapM_ usablePlace (axesPlaces axes)
  mapM_ putStrLn (renderPlan planned)
  if campaignPlanOnly options
    then pure ExitSuccess
    else do
      delaying <- delayer
      openStore (campaignResume options) (settings options axes delaying) (campaignOut options)
      -- Before the load: it has the time and the load of the machine at the start.
      about <- manifest
      failures <- measureAll (campaignOut options) delaying (campaignMeasuring options) planned
      conclude options (about, delaying) planned failures

axesOf :: CampaignOptions -> IO Axes
axesOf options = do
  servers <- maybe found pure (NonEmpty.nonEmpty (campaignServers options))
  for_ servers $ \server -> do
    exists <- findExecutable (namedPath server)
    unless (isJust exists) $
      unavailable ("--spawn " <> namedPath server <> ": there is no such program")
  temporary <- getTemporaryDirectory
  pure
    Axes
      { axesServers = servers,
        axesPersistence = campaignPersistence options,
        axesPlaces =
          fromMaybe (Named "temporary" temporary :| []) (NonEmpty.nonEmpty (campaignPlaces options)),
        axesWorkloads = campaignWorkloads options,
        axesPayloads = campaignPayloads options,
        axesClients = campaignClients options,
        axesNets = campaignNets options
      }
  where
    found = do
      known <- filterM (fmap isJust . findExecutable) ["redis-server", "valkey-server"]
      maybe none (\name -> pure (Named name name :| [])) (listToMaybe known)
    none =
      unavailable "neither redis-server nor valkey-server is on the search path: name one by --spawn"

planOf :: CampaignOptions -> Axes -> Either String Plan
planOf options axes = plan costs (campaignBudget options) (campaignIterations options) soaks cells
  where
    cells = (if campaignFull options then fullProduct else star) carriesValue axes
    soaks =
      [ (soak, cell {cellWorkload = soakWorkload soak, cellPersistence = soakPersistence soak})
        | soak <- nub (campaignSoaks options),
          (_, cell) <- take 1 cells
      ]
    referenced = any hasReference (campaignWorkloads options)
    hasReference = maybe False (isJust . workloadReference) . findWorkload
    costs = costsOf (campaignMeasuring options) referenced

-- Finds a place where servers cannot write before anything is measured.
usablePlace :: Named -> IO ()
usablePlace (Named _ path) = do
  exists <- doesDirectoryExist path
  unless exists (invalidRun ("--dir " <> path <> ": there is no such directory"))
  process <- getProcessID
  let probe = path </> ("redis-client-" <> show process)
  tried <- tryIOError (bracket_ (createDirectory probe) (removeDirectory probe) (pure ()))
  either (const (invalidRun ("--dir " <> path <> ": cannot be written"))) pure tried

-- The settings that must be the same for all measurements of a directory. The programs and places
-- are those that are used: without options they depend on the search path and the environment.
settings :: CampaignOptions -> Axes -> Delayer -> Map Text Text
settings options axes delaying =
  Map.fromList
    [ ("warm-up", span' (measuringWarmup measuring)),
      ("duration", span' (measuringDuration measuring)),
      ("keys", shown (measuringKeys measuring)),
      ("form of keys", maybe "usual" Text.pack (measuringKeyForm measuring)),
      ("server cores", cores (measuringServerCores measuring)),
      ("client cores", cores (measuringCores measuring)),
      ("reference", if measuringReference measuring then "redis-benchmark" else "none"),
      ("allowed", if null allowed then "nothing" else listed (map checkName (sort allowed))),
      ("durability", span' (measuringDurability measuring)),
      ("programs", listed [label <> "=" <> path | Named label path <- NonEmpty.toList (axesServers axes)]),
      ("places", listed [label <> "=" <> path | Named label path <- NonEmpty.toList (axesPlaces axes)]),
      ("round trips by", case delaying of DelayerNetem -> "netem"; DelayerRelay _ -> "relay")
    ]
  where
    measuring = campaignMeasuring options
    allowed = measuringAllowed measuring
    span' = Text.pack . renderSpan
    cores list = if null list then "all" else listed (map show list)
    listed = Text.pack . intercalate ","

-- Measures what is missing. Returns the measurements that failed, by the names of their steps.
measureAll :: FilePath -> Delayer -> Measuring -> Plan -> IO [(FilePath, String)]
measureAll folder delaying measuring planned = do
  -- A broken file is found now, and not after hours of measuring the others.
  found <- traverse (\step -> (,) step <$> recall folder (stepName step)) (steps planned)
  for_ found $ \(step, kept) ->
    for_ (take 1 (concatMap (concatMap runProblems . documentRuns) kept)) $ \problem ->
      say (stepName step <> ": INVALID: " <> Text.unpack problem)
  let missing = [step | (step, Nothing) <- found]
      total = length missing
      left number = sum (map (stepSeconds (planCosts planned)) (drop number missing))
  unless (total == length (steps planned)) $
    say . unwords $
      [show (length (steps planned) - total), "measurements are there already,", show total]
        <> ["are missing"]
  catMaybes <$> traverse (one total left) (zip [1 ..] missing)
  where
    one total left (number, step) = do
      outcome <- measureStep delaying measuring step
      let report text =
            say $
              concat [show (number :: Int), "/", show total, " ", stepName step, ": ", text]
                <> (", about " <> renderSpan (roughly (left number)) <> " left")
      case outcome of
        Left problem -> Just (stepName step, problem) <$ report ("FAILED: " <> problem)
        Right document -> do
          keep folder (stepName step) document
          let runs = documentRuns document
              rates = map (thousands . round . iterationRate) (concatMap runIterations runs)
              invalid = map Text.unpack (concatMap runProblems runs)
          report (intercalate ", " rates <> " a second" <> concatMap ("; INVALID: " <>) (take 1 invalid))
          pure Nothing

say :: String -> IO ()
say = hPutStrLn stderr

-- Makes the document of the whole campaign, the report, and the exit code. Takes what was known at
-- the start.
conclude :: CampaignOptions -> (Manifest, Delayer) -> Plan -> [(FilePath, String)] -> IO ExitCode
conclude options (start, delaying) planned failures = do
  disks <- traverse (\(Named label path) -> fmap ((,) label) <$> probeDisk path) places
  let about = described (catMaybes disks) start
  cells <- traverse (together . iterationsOf . snd) (planCells planned)
  soaks <- traverse (\(soak, cell) -> together [StepSoak cell (soakSeconds soak)]) (planSoaks planned)
  let document =
        (documentOf about (catMaybes cells <> map soaked (catMaybes soaks))) {documentNotes = notes}
  when (null (documentRuns document)) $ invalidRun "nothing could be measured"
  writeReport (campaignOut options) planned document >>= mapM_ (putStrLn . ("written: " <>))
  pure $
    if null failures && all runValid (documentRuns document) then ExitSuccess else ExitFailure exitInvalid
  where
    measuring = campaignMeasuring options
    described disks facts =
      facts
        { manifestDisk = snd <$> listToMaybe disks,
          manifestFacts = Map.union (Map.fromList (map fsync disks)) (manifestFacts facts)
        }
    iterationsOf cell = [StepCell cell number | number <- [1 .. planIterations planned]]
    -- The places of the cells, each once.
    places = nub (map (cellPlace . snd) (planCells planned))
    fsync (label, disk) =
      ( "directory_" <> Text.pack label,
        diskFilesystem disk <> ", fsync p50 " <> took 50 disk <> ", p99 " <> took 99 disk
      )
    took share = Text.pack . duration . Histogram.percentile share . diskFsync
    together names = do
      found <- catMaybes <$> traverse (recall (campaignOut options) . stepName) names
      let runs = concatMap documentRuns found
      pure $
        listToMaybe runs <&> \first ->
          first
            { runIterations = concatMap runIterations runs,
              runNotes = nub (concatMap runNotes runs),
              runProblems = nub (concatMap runProblems runs) <> unlike found,
              runReference = middle (mapMaybe runReference runs)
            }
    -- Windows that were measured in different ways do not belong to one cell.
    unlike documents =
      [ "its measurements differ in " <> Text.intercalate ", " differing
        | let runs = concatMap documentRuns documents
              of' about = map (about . documentManifest) documents
              differing =
                concat
                  [ ["the name" | several (map runName runs)],
                    ["what was asked for" | several (map runSpec runs)],
                    ["the server's version" | several (map (serverName . runServer) runs)],
                    ["the kernel" | several (of' manifestKernel)],
                    ["the processor" | several (of' manifestCpu)],
                    ["the version of this program" | several (of' manifestTool) || several (of' manifestRevision)],
                    ["the compiler" | several (of' manifestCompiler)]
                  ],
          not (null differing)
      ]
    several :: Eq a => [a] -> Bool
    several values = or (zipWith (/=) values (drop 1 values))
    soaked run = run {runName = "soak " <> runName run}
    -- The median of the references, by rate, with the rates of all.
    middle references =
      listToMaybe (drop ((length references - 1) `div` 2) (sortOn referenceOpsPerSecond references)) <&> \found ->
        found {referenceTurns = Just (map referenceOpsPerSecond references)}
    notes =
      map Text.pack $
        planCuts planned
          <> [ "round trips are made by a relay of this program, not by the kernel (" <> reason
                 <> "): it takes processor time, loses nothing and has no congestion window"
               | any (/= NetLocal) (campaignNets options),
                 DelayerRelay reason <- [delaying]
             ]
          <> [ "server and load share all processors: \
               \neither number is that of a machine of its own"
               | null (measuringServerCores measuring) || null (measuringCores measuring)
             ]
          <> ["not measured: " <> name <> ": " <> problem | (name, problem) <- failures]
