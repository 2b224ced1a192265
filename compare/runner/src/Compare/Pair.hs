-- | Measures this library and StackExchange.Redis alone, on any server, as
-- @run-comparison.sh@ and @run-concurrency-tuning.sh@ do.
module Compare.Pair
  ( PairOptions (..),
    comparePair,
    sweep,
    pairSeconds,
  )
where

import Compare.Cell
import Compare.Measure
import Compare.Pair.Results
import Compare.Plan (rowWindow, runSeconds, turns)
import Compare.Quiet (whenQuiet)
import Compare.Row
import Compare.Sample
import Compare.Servers
import Control.Monad (forM, forM_, when)
import Data.Aeson (Value, encode)
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy qualified as Lazy
import Data.List (isSuffixOf)
import Data.List.NonEmpty (NonEmpty (..))
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
    -- | The number of turns: everything is measured once in each.
    pairIterations :: Int,
    -- | The seconds of each measurement; the warm-up is a tenth of that, and at least 0.5 s.
    pairDuration :: Double,
    pairOutput :: FilePath
  }
  deriving stock (Eq, Show)

-- | Measures the operations per second of SET, GET and mixed, in turns of which each begins with
-- another row. Prints a table on standard output and writes a file. Returns 0 if and only if
-- redis-client has at least 90 % of the fastest StackExchange.Redis version in each. A second file
-- beside it records how the numbers were made, beginning with the server. An existing file is not
-- overwritten, and a busy machine is waited for. The second argument describes the machine.
comparePair :: (String -> IO ()) -> IO (String -> Value) -> PairOptions -> IO ExitCode
comparePair announce about options = unlessThere announce options $ do
  rows <- peers announce options ["client", "redis-client"]
  let ours = filter ((== Ours) . rowKind) rows
      theirs = filter ((== StackExchange) . rowKind) rows
  case (ours, theirs) of
    (_, []) -> ExitFailure 2 <$ announce "there is no StackExchange.Redis to compare with"
    ([], _) -> ExitFailure 2 <$ announce "redis-client could not be built"
    (own : _, _) -> whenQuiet (pairCompareFolder options) $ do
      let order turn = [(operation, row) | operation <- turns turn operations, row <- turns turn (own : theirs)]
      announceTime announce options (map snd (order 0))
      found <- inTurns about options $ \turn run ->
        forM (order turn) $ \(operation, row) -> do
          rate <- run row operation (pairInFlight options) (pairConnections options)
          announce (printf "turn %d: %-6s %-28s %s" (turn + 1) (operationName operation) (Text.unpack (rowName row)) (either Text.unpack (printf "%.0f/s") rate))
          pure ((operation, rowName row), rate)
      let results = compared found
      Lazy.writeFile (pairOutput options) (encode (comparedDocument results))
      mapM_ putStrLn (comparedTable results)
      pure (comparedVerdict results)

-- | Measures the operations per second of redis-client with 1 to 512 waiting callers and 1 to 8
-- connections, in turns of which each begins at another part of that grid. Prints all on standard
-- output, with the best of each operation last, and writes files like 'comparePair'.
sweep :: (String -> IO ()) -> IO (String -> Value) -> PairOptions -> IO ExitCode
sweep announce about options = unlessThere announce options $ do
  rows <- peers announce options ["redis-client"]
  case rows of
    [] -> ExitFailure 2 <$ announce "redis-client could not be built"
    own : _ -> whenQuiet (pairCompareFolder options) $ do
      let order = sweepOrder (pairIterations options)
      announceTime announce options (own <$ order 0)
      rated <- inTurns about options $ \turn run -> do
        announce (printf "turn %d of %d" (turn + 1) (pairIterations options))
        forM (order turn) $ \point -> do
          rate <- run own (pointOperation point) (pointCallers point) (pointConnections point)
          either (announce . Text.unpack) (const (pure ())) rate
          pure (point, rate)
      let found = inEveryTurn rated
      Lazy.writeFile (pairOutput options) (encode (sweptDocument found))
      mapM_ putStrLn (sweptLines found <> bestLines found)
      pure (if length found == length (order 0) then ExitSuccess else ExitFailure 2)

-- Existing results are kept.
unlessThere :: (String -> IO ()) -> PairOptions -> IO ExitCode -> IO ExitCode
unlessThere announce options action = do
  there <- doesFileExist (pairOutput options)
  if there
    then ExitFailure 2 <$ announce (pairOutput options <> " is there already and is not overwritten; give another --output")
    else createDirectoryIfMissing True (takeDirectory (pairOutput options)) >> action

-- Says how long it takes to run these rows in each turn.
announceTime :: (String -> IO ()) -> PairOptions -> [Row] -> IO ()
announceTime announce options rows =
  announce (printf "%d measurements in %d turns: about %.1f minutes" (pairIterations options * length rows) (pairIterations options) (pairSeconds options rows / 60))

-- | About how many seconds it takes to run these rows in each turn, with the start of the servers.
pairSeconds :: PairOptions -> [Row] -> Double
pairSeconds options rows = fromIntegral (pairIterations options) * (1 + sum (map (runSeconds (usualWindow options) . Just) rows))

-- The warm-up is a tenth of the duration, but at least 0.5 s.
usualWindow :: PairOptions -> Window
usualWindow options = Window {windowWarmup = max 0.5 (pairDuration options / 10), windowDuration = pairDuration options}

peers :: (String -> IO ()) -> PairOptions -> [FilePath] -> IO [Row]
peers announce options names = do
  folder <- makeAbsolute (pairCompareFolder options)
  (absent, rows) <- buildPeers announce (\path -> any (\name -> ("/" </> name) `isSuffixOf` path) names) folder
  forM_ absent $ \one -> announce (Text.unpack (absentName one <> ": " <> absentWhy one))
  pure rows

-- Runs a row: operation, callers, connections. Operations per second, or the reason why there are
-- none.
type Run = Row -> Operation -> Int -> Int -> IO (Either Text Double)

-- Runs the action in each turn, numbered from 0, on fresh servers, or on the one that was given;
-- they hold all keys. Writes the manifest in the first turn. The results are in the order of the
-- turns.
inTurns :: forall a. IO (String -> Value) -> PairOptions -> (Int -> Run -> IO [a]) -> IO [a]
inTurns about options action = do
  facts <- about
  let noted turn server =
        when (turn == 0) $ Lazy.writeFile (replaceExtension (pairOutput options) "manifest.json") (encode (facts server))
  concat <$> mapM (once noted) [0 .. pairIterations options - 1]
  where
    once :: (Int -> String -> IO ()) -> Int -> IO [a]
    once noted turn = case pairHost options of
      Nothing -> withServers cell $ \servers -> do
        serversVersion servers >>= noted turn
        action turn (run (pinned True cell) (serversAddress servers))
      Just host -> do
        noted turn "one that was given"
        fillKeys (config host) cell
        action turn (run id (host, pairPort options))
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
