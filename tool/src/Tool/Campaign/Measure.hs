-- | One measurement of a campaign: a new server, the load, and the checks of the server afterwards.
-- The load is this program again, in a process of its own, so that every measurement begins with
-- an empty heap.
module Tool.Campaign.Measure
  ( measureStep,
    loadArguments,
    phaseEvents,
    seriesPhases,
  )
where

import Control.Exception (Exception, Handler (..), catches, displayException)
import Data.Bifunctor (bimap)
import Data.List (intercalate, isSuffixOf)
import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Text qualified as Text
import Redis.Error (Error)
import Redis.TestKit.Process (onCores)
import Redis.TestKit.Server (serverIsRunning)
import Redis.TestKit.Wait (TestKitFailure)
import Tool.Bench.Document
import Tool.Bench.Document.Totals (sliceRate)
import Tool.Bench.Itself (measureApart)
import Tool.Bench.RedisBenchmark (RedisBenchmark (..), runBriefly)
import Tool.Campaign.Design
import Tool.Campaign.Durability
import Tool.Campaign.Server
import Tool.Campaign.Workload
import Tool.ChangePoint
import Tool.Failure (Failure (failureText))
import Tool.Options.Load (checkName)
import Tool.Span (renderSpan, secondsIn)
import Tool.Text (fixed)

-- | Makes one measurement. Blocks until the server is stopped again. 'Left' says in one line why
-- the measurement was impossible. An invalid measurement is a result, and has its own problems.
measureStep :: Delayer -> Measuring -> Step -> IO (Either String Document)
measureStep delaying measuring step =
  withCellServer surroundings cell measured
    `catches` [ Handler (\problem -> impossible (problem :: TestKitFailure)),
                -- The check of durability is a client, too.
                Handler (\problem -> impossible (problem :: Error))
              ]
  where
    surroundings = Surroundings (measuringServerCores measuring) delaying
    impossible :: Exception problem => problem -> IO (Either String Document)
    impossible = pure . Left . oneLine . displayException
    -- The facts that all iterations of a cell share are requested once.
    (cell, seconds, first) = case step of
      StepCell one number -> (one, measuringDuration measuring, number == 1)
      StepSoak one long -> (one, long, True)
    measured started = case findWorkload (cellWorkload cell) of
      Nothing -> pure (Left ("there is no workload " <> cellWorkload cell))
      Just workload -> do
        let arguments = loadArguments measuring cell workload seconds <> ["--brief" | not first]
        let here = ["-h", startedHost started, "-p", show (startedPort started)]
        outcome <- measureApart (measuringCores measuring) (\out -> arguments <> here <> out)
        case outcome of
          Left failure -> do
            alive <- serverIsRunning (startedServer started)
            pure (Left (failureText failure <> if alive then "" else "; the server has ended"))
          Right document -> do
            reference <- besides started workload
            durability <- survives started
            pure (Right (annotated cell started reference durability document))
    besides started workload = case workloadReference workload of
      Just load
        | measuringReference measuring,
          StepCell _ _ <- step ->
          Just
            <$> runBriefly
              seconds
              RedisBenchmark
                { redisBenchmarkHost = startedHost started,
                  redisBenchmarkPort = startedPort started,
                  redisBenchmarkCluster = False,
                  redisBenchmarkTls = Nothing,
                  redisBenchmarkLoad = load (cellPayload cell),
                  redisBenchmarkClients = cellClients cell,
                  redisBenchmarkPipeline = 1,
                  redisBenchmarkKeys = maybe keys (min keys) (workloadKeys workload),
                  redisBenchmarkValueSize = cellPayload cell,
                  redisBenchmarkPrefix = onCores (measuringCores measuring)
                }
      _ -> pure Nothing
    keys = measuringKeys measuring
    survives started
      | measuringDurability measuring > 0,
        cellPersistence cell == PersistAofAlways,
        StepCell _ _ <- step = do
        killed <- check Nothing started
        -- On a server of its own: a longer log would show no more.
        cut <- withForgetfulServer surroundings cell (check . Just)
        pure [Right killed, cut]
      | otherwise = pure []
    check disk =
      checkDurability disk expiring (measuringDurability measuring) (cellClients cell)
        . startedServer
    expiring = cellWorkload cell `elem` ["setex", "getex"]

-- | The arguments of the load, without the server and the file.
loadArguments :: Measuring -> Cell -> Workload -> Double -> [String]
loadArguments measuring cell workload seconds =
  ["bench"]
    <> benchArguments (measuringKeyForm measuring) (measuringKeys measuring) (cellPayload cell) workload
    <> ["--threads", show (cellClients cell), "--batch", "1"]
    <> ["--warmup", plain (measuringWarmup measuring), "--duration", plain seconds]
    -- At most some thousand slices in a series, and at least ten.
    <> ["--slice", plain (max (min 1 (seconds / 10)) (seconds / 3600))]
    <> concat [["--allow", intercalate "," allowed] | not (null allowed)]
  where
    allowed = map checkName (measuringAllowed measuring)
    plain = fixed 3

-- Adds to the document what only the campaign knows.
annotated ::
  Cell -> Started -> Maybe (Either String Reference) -> [Either String Durability] -> Document -> Document
annotated cell started reference durability document =
  document {documentRuns = map run (documentRuns document)}
  where
    run found =
      found
        { runName = Text.pack (cellName cell),
          runSpec =
            (runSpec found)
              { specNetwork = Text.pack (startedNetwork started),
                specPersistence = Just (Text.pack (persistenceName (cellPersistence cell))),
                specAxes = Map.fromList (map (bimap Text.pack Text.pack) (cellAxes cell))
              },
          runIterations = map phased (runIterations found),
          runNotes =
            runNotes found
              <> [ "a PING takes " <> Text.pack (renderSpan (secondsIn (startedPing started)))
                   | cellNet cell /= NetLocal
                 ]
              <> ["no reference: " <> Text.pack problem | Just (Left problem) <- [reference]]
              <> map (Text.pack . either ("no power cut was tried: " <>) durabilityText) durability,
          runProblems =
            runProblems found
              <> [ "acknowledged writes are lost: " <> Text.pack (durabilityText it)
                   | Right it <- durability,
                     not (durabilityHolds it)
                 ],
          runReference = reference >>= either (const Nothing) Just
        }
    phased iteration =
      iteration
        { iterationEvents = iterationEvents iteration <> phaseEvents (iterationSeries iteration)
        }

-- | The changes of a series' level of throughput, as events. None if the series is too short.
phaseEvents :: [Slice] -> [Event]
phaseEvents series = zipWith change found (drop 1 found)
  where
    found = seriesPhases series
    times = Map.fromList (zip [0 :: Int ..] (map sliceAt series))
    change before after =
      let at = Map.findWithDefault 0 (phaseFirst after) times
       in Event at at "change-point" . Text.pack . unwords $
            ["from", perSecond before, "to", perSecond after, "a second"]
    perSecond = fixed 0 . phaseMedian

-- | The phases of a series' throughput. None if the series is too short.
seriesPhases :: [Slice] -> [Phase]
seriesPhases series
  | length series < 10 = []
  | otherwise = phases (map sliceRate series)

-- A server that does not start gives the reason in some line, not always in the first.
oneLine :: String -> String
oneLine text = case filter (not . null) (lines text) of
  [] -> "it printed nothing"
  first : others -> take 400 (List.foldl' joined first others)
  where
    joined before next = before <> (if ":" `isSuffixOf` before then " " else "; ") <> next
