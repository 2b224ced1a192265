-- | @redis-benchmark@ beside our generator with the same sizes, so that a slow machine is not
-- mistaken for a slow client. Its length is a number of commands, so a short run first finds how
-- many fill the time. Its processor time is that of its whole process.
module Tool.Bench.RedisBenchmark
  ( RedisBenchmark (..),
    ReferenceLoad (..),
    ReferenceTls (..),
    runRedisBenchmark,
    runCounted,
    runBriefly,
    referenceArgs,
    parseCsv,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (poll, wait, withAsync)
import Control.Exception (IOException, try)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (fold)
import Data.List (find)
import Data.Text qualified as Text
import System.Exit (ExitCode (..))
import System.Process (proc, readCreateProcessWithExitCode)
import Text.Read (readMaybe)
import Tool.Bench.Document (Reference (..))
import Tool.Bench.Time (Nanos, endedChildrenCpu)
import Tool.Span (microsIn, perSecond)

data RedisBenchmark = RedisBenchmark
  { redisBenchmarkHost :: String,
    redisBenchmarkPort :: Int,
    redisBenchmarkCluster :: Bool,
    redisBenchmarkTls :: Maybe ReferenceTls,
    redisBenchmarkLoad :: ReferenceLoad,
    redisBenchmarkClients :: Int,
    redisBenchmarkPipeline :: Int,
    redisBenchmarkKeys :: Int,
    redisBenchmarkValueSize :: Int,
    -- | Words to put before the program, such as @taskset -c 1@.
    redisBenchmarkPrefix :: [String]
  }

-- | What redis-benchmark sends: its test of that name, or the command of these words.
data ReferenceLoad = ReferenceTest String | ReferenceCommand [String]
  deriving stock (Eq, Show)

-- | How redis-benchmark uses TLS.
data ReferenceTls = ReferenceTls
  { referenceAuthority :: Maybe FilePath,
    referenceInsecure :: Bool
  }

-- | Runs redis-benchmark for about this number of seconds. Blocks. 'Left' says in one line why
-- there is no result. No other child of this process may end meanwhile.
--
-- In a cluster, redis-benchmark's own clock is of no use: it reads it four times a second and
-- divides the commands it sent by the time it saw, so that the rate of a short run is too high. If
-- the caller gives an action that returns, for each server, how often it has run the command and
-- when, then the rate is what the servers ran in the middle of the run, by our clock.
runRedisBenchmark :: Maybe (IO [(Int, Nanos)]) -> Double -> RedisBenchmark -> IO (Either String Reference)
runRedisBenchmark serverCount seconds benchmark = afterProbe probe benchmark $ \rate -> case serverCount of
  Nothing -> runCounted (enough rate seconds) benchmark
  Just count -> watched count seconds $ runCounted (enough (2 * rate) (seconds + 2 * start)) benchmark
  where
    -- Long enough to be past its start, short enough not to take much time.
    probe
      | redisBenchmarkClients benchmark * redisBenchmarkPipeline benchmark < 16 = 3000
      -- Several readings of its clock.
      | redisBenchmarkCluster benchmark = 1000000
      | otherwise = 100000
    enough rate long = max probe (ceiling (rate * long))

-- | Like 'runRedisBenchmark', for a server that may synchronise its disk for each command.
runBriefly :: Double -> RedisBenchmark -> IO (Either String Reference)
runBriefly seconds benchmark =
  afterProbe (max 200 (redisBenchmarkClients benchmark * 40)) benchmark $ \rate ->
    runCounted (max 1000 (ceiling (rate * seconds))) benchmark

-- Runs this number of commands first, and goes on with their rate.
afterProbe :: Int -> RedisBenchmark -> (Double -> IO (Either String a)) -> IO (Either String a)
afterProbe commands benchmark goOn =
  runCounted commands benchmark >>= either (pure . Left) (goOn . referenceOpsPerSecond)

-- Replaces the rate by what the servers count for this number of seconds of the run.
watched :: IO [(Int, Nanos)] -> Double -> IO (Either String Reference) -> IO (Either String Reference)
watched count seconds running = withAsync running $ \child -> do
  pause start
  before <- count
  pause seconds
  after <- count
  over <- poll child
  result <- wait child
  let ran = sum (zipWith rate before after)
  pure $ case over of
    Just (Right (Right _)) -> Left "redis-benchmark ended before it was measured"
    _ -> (\reference -> reference {referenceOpsPerSecond = ran}) <$> result
  where
    rate (calls, from) (callsLater, to) = perSecond (fromIntegral (callsLater - calls)) (to - from)
    pause = threadDelay . microsIn

-- Seconds until redis-benchmark has found the cluster and all its connections are busy.
start :: Double
start = 0.5

-- | Runs redis-benchmark for this number of commands.
runCounted :: Int -> RedisBenchmark -> IO (Either String Reference)
runCounted commands benchmark = do
  before <- endedChildrenCpu
  outcome <- try (readCreateProcessWithExitCode (proc program arguments) "")
  after <- endedChildrenCpu
  pure $ case outcome of
    Left problem -> failed "cannot be run" (show (problem :: IOException))
    Right (ExitFailure code, output, problem) -> failed ("ended with " <> show code) (problem <> output)
    Right (ExitSuccess, output, problem) -> case parseCsv (Char8.pack output) of
      Just (rate, p50, p99) ->
        Right
          Reference
            { referenceOpsPerSecond = rate,
              referenceP50 = p50,
              referenceP99 = p99,
              referenceCpuPerOp = fromIntegral (after - before) / fromIntegral commands,
              referenceCommands = commands,
              referenceArguments = map Text.pack (program : arguments),
              referenceTurns = Nothing
            }
      Nothing -> failed "said nothing that can be read" (problem <> output)
  where
    named = "redis-benchmark" : referenceArgs commands benchmark
    (program, arguments) = case redisBenchmarkPrefix benchmark <> named of
      first : rest -> (first, rest)
      [] -> ("redis-benchmark", [])
    failed how said = Left ("redis-benchmark " <> how <> ": " <> firstLine said)
    firstLine text = case filter (/= "") (lines text) of
      line : _ -> take 200 line
      [] -> "it printed nothing"

-- | The arguments of redis-benchmark for this number of commands.
referenceArgs :: Int -> RedisBenchmark -> [String]
referenceArgs commands benchmark =
  concat
    [ ["-h", redisBenchmarkHost benchmark, "-p", show (redisBenchmarkPort benchmark)],
      ["--cluster" | redisBenchmarkCluster benchmark],
      ["--tls" | Just _ <- [redisBenchmarkTls benchmark]],
      concat [["--cacert", file] | Just file <- [redisBenchmarkTls benchmark >>= referenceAuthority]],
      ["--insecure" | any referenceInsecure (redisBenchmarkTls benchmark)],
      concat [["-t", test] | ReferenceTest test <- [redisBenchmarkLoad benchmark]],
      ["-c", show (redisBenchmarkClients benchmark)],
      ["-P", show (redisBenchmarkPipeline benchmark)],
      ["-r", show (redisBenchmarkKeys benchmark)],
      ["-d", show (redisBenchmarkValueSize benchmark)],
      ["-n", show commands, "--csv"],
      fold [command | ReferenceCommand command <- [redisBenchmarkLoad benchmark]]
    ]

-- | Rate, p50 and p99 (ms) of the last test in the CSV output: a test that needs another one before
-- it (LRANGE needs a list) is reported after it. Columns are found by name, because their order
-- differs between versions.
parseCsv :: ByteString -> Maybe (Double, Double, Double)
parseCsv output = do
  heading <- find ("\"test\"" `Char8.isPrefixOf`) rows
  values <-
    find
      (\row -> row /= heading && "\"" `Char8.isPrefixOf` row)
      (reverse (dropWhile (/= heading) rows))
  let cells = zip (cellsOf heading) (cellsOf values)
      number name = lookup name cells >>= readMaybe . Char8.unpack
  (,,) <$> number "rps" <*> number "p50_latency_ms" <*> number "p99_latency_ms"
  where
    rows = map (Char8.filter (/= '\r')) (Char8.lines output)
    -- A command's name may have commas.
    cellsOf line = case Char8.breakSubstring "\",\"" line of
      (cell, rest) -> Char8.filter (/= '"') cell : [other | not (ByteString.null rest), other <- cellsOf (ByteString.drop 3 rest)]
