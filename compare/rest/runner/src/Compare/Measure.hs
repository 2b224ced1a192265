-- | The measurement of one cell: a fresh database, a flushed Redis, one service, and the load.
--
-- The throughput is wrk's. The proof for it is counted elsewhere: the service's own processor time,
-- the commands that Redis ran, and the rows that the database has afterwards. A cell that fails one
-- of these checks is kept with the reason, and is not used.
module Compare.Measure
  ( Setting (..),
    withRedis,
    Redis,
    measure,

    -- * wrk
    Wrk (..),
    wrk,
    judged,
  )
where

import Compare.Cell
import Compare.Load (LoadResult (..), Scenario (..), scenarioName)
import Compare.Rows (Row (..), coldSeconds, warmSeconds)
import Compare.Service (Options (..), Program (..), Running (..), defaultOptions, restoreDatabase, terminate, withService)
import Control.Concurrent (threadDelay)
import Control.Exception (bracket, throwIO, try)
import Control.Monad (forM_)
import Data.Aeson (FromJSON (..), eitherDecodeStrict, withObject, (.:))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Maybe (mapMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Redis.TestKit.Cluster (ClusterOptions (..), Node (..), clusterDefaults, clusterNodes, withCluster)
import Redis.TestKit.Command (infoFields, replyText)
import Redis.TestKit.Process (onCores)
import Redis.TestKit.Server (Server, ServerOptions (..), command, serverDefaults, serverPort, withServer)
import Rest.Sqlite (OpenMode (..), close, columnInt, finalize, isBusy, open, prepare, step)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.Posix.Types (ProcessID)
import System.Process (proc, readCreateProcessWithExitCode)
import System.Process qualified as Process
import Tool.Bench.Time (endedChildrenCpu, monotonic)
import Tool.Span (secondsIn)

-- | The settings that all cells of a run share.
data Setting = Setting
  { settingSqlFile :: FilePath,
    -- | The folder of the wrk scripts.
    settingScripts :: FilePath,
    -- | The program of the open-loop generator.
    settingGenerator :: FilePath,
    -- | A folder for databases, on the disk that is measured.
    settingFolder :: FilePath,
    settingGolden :: FilePath,
    -- | Seconds of measurement.
    settingSeconds :: Int,
    -- | Seconds of measurement in the open loop.
    settingOpenSeconds :: Double
  }

-- | The servers of a topology; the services get the address of the first.
newtype Redis = Redis [Server]

-- | Starts the servers of the topology, on the cores of the layout.
withRedis :: Topology -> Layout -> (Redis -> IO a) -> IO a
withRedis Standalone layout' action = withServer (serverOptionsFor layout') (action . Redis . pure)
withRedis Cluster layout' action =
  withCluster clusterDefaults {clusterPrimaryCount = 5, clusterNodeTimeout = 15000, clusterServer = serverOptionsFor layout'} $ \cluster ->
    clusterNodes cluster >>= action . Redis . map nodeServer

serverOptionsFor :: Layout -> ServerOptions
serverOptionsFor layout' = serverDefaults {optionsCores = [0 | layout' == Pinned]}

-- | Measures a cell; with a rate, also in the open loop.
measure :: Setting -> Redis -> Row -> Cell -> Maybe Double -> IO Result
measure setting (Redis servers) row' this rate = do
  forM_ servers $ \server -> mapM_ (command server) [["FLUSHALL"], ["CONFIG", "RESETSTAT"]]
  let database = settingFolder setting </> "users.db"
      pinned = onCores [0 | layout this == Pinned]
      program = rowProgram row' (layout this)
      port = maybe 0 serverPort (List.find (const True) servers)
      options =
        (defaultOptions (settingSqlFile setting) port)
          { serviceInCluster = topology this == Cluster,
            serviceCores = [1 | layout this == Pinned]
          }
  restoreDatabase (settingGolden setting) database
  withService program options (settingFolder setting) database $ \running -> do
    let loaded run seconds = do
          next <- nextUser database
          wrk (settingScripts setting) pinned this (runningPort running) next run seconds
    _ <- loaded "cold" (coldSeconds row')
    warm <- loaded "warm" warmSeconds
    rowsBefore <- countUsers database
    hitsBefore <- keyspace servers
    cpuBefore <- processCpu (runningPid running)
    coresBefore <- coreTimes
    childrenBefore <- endedChildrenCpu
    began <- monotonic
    summary <- loaded "run" (settingSeconds setting)
    ended <- monotonic
    childrenAfter <- endedChildrenCpu
    coresAfter <- coreTimes
    cpuAfter <- processCpu (runningPid running)
    hitsAfter <- keyspace servers
    rowsAfter <- countUsers database
    resident <- peakMemory (runningPid running)
    nextId <- nextUser database
    open' <- mapM (openLoad setting pinned this (runningPort running) nextId) rate
    code <- terminate running
    said <- runningOutput running
    let seconds = secondsIn (ended - began)
        hits = fst hitsAfter - fst hitsBefore
        looked = hits + snd hitsAfter - snd hitsBefore
        added = rowsAfter - rowsBefore
    pure
      Result
        { cell = this,
          outcome =
            Outcome
              { requestsPerSecond = answeredPerSecond summary,
                cpuPerRequest = (cpuAfter - cpuBefore) * 1e6 / fromIntegral (max 1 (answeredWell summary)),
                serviceBusy = (cpuAfter - cpuBefore) / seconds,
                generatorBusy = secondsIn (childrenAfter - childrenBefore) / seconds,
                coresBusy = [busy' / max 1 all' | ((busy0, all0), (busy1, all1)) <- zip coresBefore coresAfter, let busy' = busy1 - busy0, let all' = all1 - all0],
                closedLoopP50 = wrkP50 summary,
                closedLoopP99 = wrkP99 summary,
                served = wrkRequests summary,
                statusErrors = wrkStatusErrors summary,
                hitRatio = if looked > 0 then Just (fromIntegral hits / fromIntegral looked) else Nothing,
                memory = resident,
                warmRate = Just (answeredPerSecond warm),
                openLoop = open',
                problems = judged this summary looked added open' code said
              },
          facts =
            Map.fromList
              [ ("arguments", Text.pack (unwords (programArguments program))),
                ("environment", Text.pack (unwords [name <> "=" <> value | (name, value) <- programEnvironment program])),
                ("seconds", Text.pack (show (settingSeconds setting))),
                ("warm-up", Text.pack (show (rowWarmup row')))
              ]
        }

-- | The requests that count: those without an error status.
answeredWell :: Wrk -> Int
answeredWell summary = wrkRequests summary - wrkStatusErrors summary

answeredPerSecond :: Wrk -> Double
answeredPerSecond summary = fromIntegral (answeredWell summary) / (fromIntegral (wrkMicros summary) / 1e6)

-- | The reasons why a cell must not be used; if the service answered 503, with its own
-- explanations.
judged :: Cell -> Wrk -> Int -> Int -> Maybe LoadResult -> ExitCode -> ByteString -> [Text]
judged this summary looked added open' code said =
  [reason | (True, reason) <- checks]
  where
    unexpected = wrkStatusErrors summary - wrkNotFound summary
    good = wrkRequests summary - wrkStatusErrors summary
    say name value = name <> ": " <> Text.pack (show value)
    checks =
      [ (wrkRequests summary == 0, "no answers"),
        (wrkSocketErrors summary > 0, say "connections that failed" (wrkSocketErrors summary)),
        (unexpected > 0, say "answers with a wrong status" unexpected),
        -- Only the script of the mix counts these: there a few deletions may come before their user
        -- exists.
        (1000 * wrkNotFound summary > wrkRequests summary, say "answers of 404" (wrkNotFound summary)),
        (scenario this == Single && looked < wrkRequests summary, say "GETs that Redis has seen" looked),
        (scenario this == Post && (added < good || added > good + 2 * connections this), say "users that the database has more" added),
        (maybe False ((> 0) . wrong) open', say "wrong answers in the open loop" (maybe 0 wrong open')),
        (code /= ExitSuccess, say "the service ended with" code),
        (unexpected > 0 && not (Map.null unavailable), "503, warm-up included: " <> Text.intercalate ", " [Text.pack (show times) <> " × " <> Text.decodeLatin1 reason | (reason, times) <- Map.toList unavailable])
      ]
    unavailable = Map.fromListWith (+) [(reason, 1 :: Int) | Just reason <- map (Char8.stripPrefix "unavailable: ") (Char8.lines said)]

-- | The output of wrk's script.
data Wrk = Wrk
  { wrkRequests :: Int,
    wrkMicros :: Int,
    -- | Answers with a status of 400 or above.
    wrkStatusErrors :: Int,
    -- | The answers of 404 among these that the scenario allows.
    wrkNotFound :: Int,
    wrkSocketErrors :: Int,
    wrkP50 :: Double,
    wrkP99 :: Double
  }

instance FromJSON Wrk where
  parseJSON = withObject "wrk" $ \fields -> do
    latency <- fields .: "latency_us"
    Wrk
      <$> fields .: "requests"
      <*> fields .: "duration_us"
      <*> fields .: "status_errors"
      <*> fields .: "not_found"
      <*> (sum <$> mapM (fields .:) ["connect_errors", "read_errors", "write_errors", "timeouts"])
      <*> latency .: "p50"
      <*> latency .: "p99"

-- | Loads the service at a port, with the script of the cell's scenario from a folder. The
-- arguments: the folder, the words before the command, the cell, the port, the number of the next
-- user, a text that makes this run's addresses differ from another's, and the seconds.
wrk :: FilePath -> [String] -> Cell -> Int -> Int -> String -> Int -> IO Wrk
wrk scripts prefix this port nextId run seconds = do
  output <-
    runProgram
      [("RUN", run), ("SEED", show (iteration this)), ("THREADS", threads), ("NEXT_ID", show nextId)]
      ( prefix
          <> ["wrk", "-t" <> threads, "-c" <> show (connections this), "-d" <> show seconds]
          <> ["--timeout", "10s", "-s", scripts </> (scenarioName (scenario this) <> ".lua"), "http://127.0.0.1:" <> show port <> "/"]
      )
  case mapMaybe (Char8.stripPrefix "JSON ") (Char8.lines output) of
    [line] -> either (ioError . userError) pure (eitherDecodeStrict line)
    _ -> ioError (userError ("wrk said: " <> Char8.unpack output))
  where
    threads = if layout this == Pinned then "1" else "2"

-- Doubles a small number of connections: a connection that waits for an answer sends nothing, and
-- delays the requests that are due on it.
openConnections :: Cell -> Int
openConnections this = max (connections this) (min 64 (2 * connections this))

openLoad :: Setting -> [String] -> Cell -> Int -> Int -> Double -> IO LoadResult
openLoad setting prefix this port nextId rate = do
  output <-
    runProgram
      []
      ( prefix
          <> [settingGenerator setting, "--port", show port, "--scenario", scenarioName (scenario this)]
          <> ["--connections", show (openConnections this), "--rate", show rate, "--seconds", show (settingOpenSeconds setting)]
          <> ["--seed", show (iteration this), "--next-id", show nextId]
      )
  either (ioError . userError) pure (eitherDecodeStrict output)

runProgram :: [(String, String)] -> [String] -> IO ByteString
runProgram variables = \case
  [] -> pure ""
  words' -> do
    let program = proc "env" ([name <> "=" <> value | (name, value) <- variables] <> words')
    (code, out, err) <- readCreateProcessWithExitCode program {Process.close_fds = True} ""
    case code of
      ExitSuccess -> pure (Char8.pack out)
      ExitFailure number -> ioError (userError (unwords words' <> " ended with " <> show number <> ": " <> err))

-- | The hits and misses of all servers since their statistics were reset.
keyspace :: [Server] -> IO (Int, Int)
keyspace servers = do
  infos <- mapM (\server -> maybe Map.empty infoFields . replyText <$> command server ["INFO", "stats"]) servers
  let total name = sum [maybe 0 fst (Map.lookup name info >>= Char8.readInt) | info <- infos]
  pure (total "keyspace_hits", total "keyspace_misses")

countUsers, nextUser :: FilePath -> IO Int
countUsers = askDatabase "SELECT count(*) FROM users"
-- The number of the next user that will be created.
nextUser = askDatabase "SELECT coalesce(max(id), 0) + 1 FROM users"

-- The naive services close their last connection now and then, and the database is locked for that
-- moment: so the question is repeated, for at most 10 s.
askDatabase :: ByteString -> FilePath -> IO Int
askDatabase question path = again (200 :: Int)
  where
    again left =
      try counted >>= \case
        Right answer -> pure answer
        Left problem
          | isBusy problem && left > 0 -> threadDelay 50000 >> again (left - 1)
          | otherwise -> throwIO problem
    counted =
      bracket (open ReadOnly path) close $ \connection ->
        bracket (prepare connection question) finalize $ \query ->
          step query >> fromIntegral <$> columnInt query 0

-- | Processor time of a process and all its threads, in seconds.
processCpu :: ProcessID -> IO Double
processCpu pid = do
  text <- Char8.readFile ("/proc/" <> show pid <> "/stat")
  -- After the name, which may contain anything, user and system time are the twelfth and thirteenth
  -- fields.
  let fields = Char8.words (snd (Char8.breakEnd (== ')') text))
  pure (sum (map (maybe 0 (fromIntegral . fst) . Char8.readInt) (take 2 (drop 11 fields))) / 100)

peakMemory :: ProcessID -> IO Int
peakMemory pid = do
  text <- Char8.readFile ("/proc/" <> show pid <> "/status")
  pure (maybe 0 ((* 1024) . fst) (List.find ("VmHWM:" `Char8.isPrefixOf`) (Char8.lines text) >>= Char8.readInt . Char8.dropWhile (== ' ') . Char8.drop 1 . Char8.dropWhile (/= '\t')))

-- | The busy time and the total time of each core.
coreTimes :: IO [(Double, Double)]
coreTimes = do
  text <- Char8.readFile "/proc/stat"
  pure
    [ (sum numbers - idle, sum numbers)
      | line <- Char8.lines text,
        name : fields <- [Char8.words line],
        "cpu" `Char8.isPrefixOf` name,
        ByteString.length name > 3,
        let numbers = map (maybe 0 (fromIntegral . fst) . Char8.readInt) fields,
        -- Idle time, and time spent waiting for a disk.
        let idle = sum (take 2 (drop 3 numbers))
    ]
