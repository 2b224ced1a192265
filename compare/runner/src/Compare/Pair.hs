-- | Measures this library and StackExchange.Redis alone, on any server, as
-- @run-comparison.sh@ and @run-concurrency-tuning.sh@ do.
module Compare.Pair
  ( PairOptions (..),
    comparePair,
    sweep,
  )
where

import Compare.Cell
import Compare.Measure
import Compare.Plan (rowWindow, runSeconds)
import Compare.Row
import Compare.Sample
import Compare.Servers
import Control.Monad (forM, forM_)
import Data.Aeson (Value, encode, object, (.=))
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy qualified as Lazy
import Data.List (isSuffixOf, sortOn)
import Data.List.NonEmpty (NonEmpty (..))
import Data.Ord (Down (..))
import Data.Text (Text)
import Data.Text qualified as Text
import Redis.Config qualified as Config
import System.Directory (createDirectoryIfMissing, doesFileExist, makeAbsolute)
import System.Exit (ExitCode (..))
import System.FilePath (replaceExtension, takeDirectory, (</>))
import Text.Printf (printf)

-- | The server, the load, and the output.
data PairOptions = PairOptions
  { pairCompareFolder :: FilePath,
    -- | The server's host; 'Nothing': start a server or cluster.
    pairHost :: Maybe String,
    pairPort :: Int,
    pairPassword :: Maybe String,
    pairTls :: Bool,
    pairCluster :: Bool,
    -- | Bytes.
    pairKeySize :: Int,
    -- | Bytes.
    pairValueSize :: Int,
    -- | Connections per server.
    pairConnections :: Int,
    pairInFlight :: Int,
    -- | The seconds of each measurement; the warm-up is a tenth of that, and at least 1 s.
    pairDuration :: Double,
    pairOutput :: FilePath
  }
  deriving stock (Eq, Show)

-- | Measures the operations per second of SET, GET and mixed. Prints a table on standard output and
-- writes a file. Returns 0 if and only if redis-client has at least 90 % of the best
-- StackExchange.Redis version in each. A second file beside it records how the numbers were made,
-- beginning with the server. An existing file is not overwritten.
comparePair :: (String -> IO ()) -> (String -> Value) -> PairOptions -> IO ExitCode
comparePair announce about options = unlessThere announce options $ do
  rows <- peers announce options ["client", "redis-client"]
  let ours = filter ((== Ours) . rowKind) rows
      theirs = filter ((== StackExchange) . rowKind) rows
  case (ours, theirs) of
    (_, []) -> ExitFailure 2 <$ announce "there is no StackExchange.Redis to compare with"
    ([], _) -> ExitFailure 2 <$ announce "redis-client could not be built"
    (own : _, _) -> withTarget about options $ \run -> do
      announceTime announce (3 * length (own : theirs)) (3 * sum (map (runSeconds (usualWindow options) . Just) (own : theirs)))
      found <- forM [Set, GetHit, Mixed] $ \operation -> do
        rates <- forM (own : theirs) $ \row -> do
          rate <- run row operation (pairInFlight options) (pairConnections options)
          announce (printf "%-6s %-28s %s" (operationName operation) (Text.unpack (rowName row)) (either Text.unpack (printf "%.0f/s") rate))
          pure (rowName row, rate)
        pure (operation, [(name, rate) | (name, Right rate) <- rates])
      let results =
            [ (operation, theirRate, name, ourRate)
              | (operation, rates) <- found,
                Just ourRate <- [lookup ourName rates],
                (name, theirRate) : _ <- [sortOn (Down . snd) (filter ((/= ourName) . fst) rates)]
            ]
      Lazy.writeFile (pairOutput options) . encode $
        [ object
            [ "operation" .= operationName operation,
              "se_redis_ops_per_sec" .= theirRate,
              "se_redis_version" .= name,
              "redis_client_ops_per_sec" .= ourRate,
              "ratio_pct" .= (100 * ourRate / theirRate)
            ]
          | (operation, theirRate, name, ourRate) <- results
        ]
      putStrLn "+-----------+------------------------------+----------------+----------------+---------+"
      putStrLn "| operation | best StackExchange.Redis     | its ops/s      | redis-client   | ratio   |"
      putStrLn "+-----------+------------------------------+----------------+----------------+---------+"
      forM_ results $ \(operation, theirRate, name, ourRate) ->
        putStrLn (printf "| %-9s | %-28s | %14.0f | %14.0f | %6.1f%% |" (operationName operation) (Text.unpack name) theirRate ourRate (100 * ourRate / theirRate))
      putStrLn "+-----------+------------------------------+----------------+----------------+---------+"
      pure $ case () of
        _
          | length results < 3 -> ExitFailure 2
          | all (\(_, theirRate, _, ourRate) -> ourRate >= 0.9 * theirRate) results -> ExitSuccess
          | otherwise -> ExitFailure 1

-- | Measures the operations per second of redis-client with 1 to 64 waiting callers and 1, 2 and 4
-- connections. Prints a table on standard output, with the best of each operation last, and writes
-- files like 'comparePair'.
sweep :: (String -> IO ()) -> (String -> Value) -> PairOptions -> IO ExitCode
sweep announce about options = unlessThere announce options $ do
  rows <- peers announce options ["redis-client"]
  case rows of
    [] -> ExitFailure 2 <$ announce "redis-client could not be built"
    own : _ -> withTarget about options $ \run -> do
      announceTime announce 63 (63 * runSeconds (usualWindow options) (Just own))
      found <- forM [(operation, connections, callers) | operation <- [Set, GetHit, Mixed], connections <- [1, 2, 4], callers <- [1, 2, 4, 8, 16, 32, 64]] $
        \(operation, connections, callers) -> do
          rate <- run own operation callers connections
          putStrLn (printf "%-6s %2d connections %3d threads  %s" (operationName operation) connections callers (either Text.unpack (printf "%10.0f/s") rate))
          pure (operation, connections, callers, rate)
      let good = [(operation, connections, callers, rate) | (operation, connections, callers, Right rate) <- found]
      Lazy.writeFile (pairOutput options) . encode $
        [ object ["operation" .= operationName operation, "mux_count" .= connections, "threads" .= callers, "ops_per_sec" .= rate]
          | (operation, connections, callers, rate) <- good
        ]
      forM_ [Set, GetHit, Mixed] $ \wanted ->
        case sortOn (\(_, _, _, rate) -> Down rate) [one | one@(operation, _, _, _) <- good, operation == wanted] of
          (_, connections, callers, rate) : _ ->
            putStrLn (printf "best %s: %d connections, %d threads: %.0f/s" (operationName wanted) connections callers rate)
          [] -> pure ()
      pure (if length good == length found then ExitSuccess else ExitFailure 2)

-- Existing results are kept.
unlessThere :: (String -> IO ()) -> PairOptions -> IO ExitCode -> IO ExitCode
unlessThere announce options action = do
  there <- doesFileExist (pairOutput options)
  if there
    then ExitFailure 2 <$ announce (pairOutput options <> " is there already and is not overwritten; give another --output")
    else createDirectoryIfMissing True (takeDirectory (pairOutput options)) >> action

announceTime :: (String -> IO ()) -> Int -> Double -> IO ()
announceTime announce count seconds =
  announce (printf "%d measurements: about %.1f minutes" count (seconds / 60))

-- The warm-up is a tenth of the duration, but at least 1 s.
usualWindow :: PairOptions -> Window
usualWindow options = Window {windowWarmup = max 1 (pairDuration options / 10), windowDuration = pairDuration options}

peers :: (String -> IO ()) -> PairOptions -> [FilePath] -> IO [Row]
peers announce options names = do
  folder <- makeAbsolute (pairCompareFolder options)
  (absent, rows) <- buildPeers announce (\path -> any (\name -> ("/" </> name) `isSuffixOf` path) names) folder
  forM_ absent $ \one -> announce (Text.unpack (absentName one <> ": " <> absentWhy one))
  pure rows

-- Provides a filled server, and a function that runs a row on it: operations per second, or the
-- reason why there are none. It writes the manifest first.
withTarget :: (String -> Value) -> PairOptions -> ((Row -> Operation -> Int -> Int -> IO (Either Text Double)) -> IO a) -> IO a
withTarget about options action = case pairHost options of
  Nothing -> withServers cell $ \servers -> do
    serversVersion servers >>= note
    action (run (pinned True cell) (serversAddress servers))
  Just host -> do
    note "one that was given"
    fillKeys (config host) cell
    action (run id (host, pairPort options))
  where
    note = Lazy.writeFile (replaceExtension (pairOutput options) "manifest.json") . encode . about
    cell =
      Cell
        { cellPlace = if pairCluster options then Cluster else Standalone,
          cellOperation = Set,
          cellValueSize = pairValueSize options,
          cellStyle = Wait,
          cellInFlight = 1,
          cellCommon = defaultCommon {commonKeySize = pairKeySize options}
        }
    run change address row operation callers connections = do
      let this =
            cell
              { cellOperation = operation,
                cellInFlight = callers,
                cellCommon = (cellCommon cell) {commonConnections = connections}
              }
          window = rowWindow (usualWindow options) row
      outcome <- runReport change window row (peerArguments address window this <> secrets)
      pure $ case outcome of
        Left why -> Left why
        Right report
          | reportWrong report + reportErrors report + reportMisses report > 0 ->
            Left (Text.pack (printf "%d wrong, %d errors, %d misses" (reportWrong report) (reportErrors report) (reportMisses report)))
          | otherwise -> Right (fromIntegral (reportOperations report) / reportSeconds report)
    secrets = concat [["--password", password] | Just password <- [pairPassword options]] <> ["--tls" | pairTls options]
    config host =
      Config.setTls (if pairTls options then Just Config.tlsDefaults else Nothing)
        . Config.setCredentials (credentials <$> pairPassword options)
        $ if pairCluster options
          then Config.clusterConfig (Config.TcpEndpoint (Char8.pack host) (fromIntegral (pairPort options)) :| [])
          else Config.standaloneConfig (Char8.pack host) (fromIntegral (pairPort options))
    credentials password =
      Config.Credentials
        { Config.credentialsUser = Nothing,
          Config.credentialsPassword = Config.toSecret (Char8.pack password)
        }

operationName :: Operation -> String
operationName = \case
  GetHit -> "get"
  GetMiss -> "get-miss"
  Set -> "set"
  Mixed -> "mixed"
