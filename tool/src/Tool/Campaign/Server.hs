-- | A cell's server, with the cell's program, persistence, directory and distance, started for the
-- cell and removed afterwards.
module Tool.Campaign.Server
  ( Surroundings (..),
    Delayer (..),
    delayer,
    Started (..),
    withCellServer,
    withForgetfulServer,
  )
where

import Control.Monad (join, replicateM)
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Command (Reply (..), requestOk, withConnection)
import Redis.TestKit.Disk (Disk, diskEnvironment, diskInUse, withDisk)
import Redis.TestKit.Server
import System.IO.Temp (withTempDirectory)
import Tool.Bench.Time (monotonic)
import Tool.Campaign.Design
import Tool.Campaign.Namespace
import Tool.Failure (unavailable)
import Tool.Relay (relayPort, withRelay)
import Tool.Span (renderSpan, secondsIn)
import Tool.Statistics (median)

-- | What all cells share.
data Surroundings = Surroundings
  { -- | The cores that servers may run on; an empty list means all.
    surroundingsCores :: [Int],
    surroundingsDelayer :: Delayer
  }
  deriving stock (Eq, Show)

-- | How a round trip is made longer.
data Delayer
  = -- | By the kernel.
    DelayerNetem
  | -- | By the relay, for this reason why the kernel cannot.
    DelayerRelay String
  deriving stock (Eq, Show)

-- | The kernel if it can delay, otherwise the relay.
delayer :: IO Delayer
delayer = maybe DelayerNetem DelayerRelay <$> netemProblem

-- | A server that is ready.
data Started = Started
  { startedServer :: Server,
    -- | The address to measure: the server, or the relay before it.
    startedHost :: String,
    startedPort :: Int,
    -- | How the round trip is made, for the report: @local@, @netem rtt=1ms@ or
    -- @relay rtt=1ms@.
    startedNetwork :: String,
    -- | The median of a hundred PINGs from here, one after the other, in nanoseconds.
    startedPing :: Int
  }

-- | Starts the server in a directory of its own within the cell's place. Afterwards ends it and
-- removes the directory. Throws if the program does not start or the place cannot be written.
withCellServer :: Surroundings -> Cell -> (Started -> IO a) -> IO a
withCellServer surroundings cell action =
  withFolder cell $ \folder -> withServerIn folder [] surroundings cell action

-- | Like 'withCellServer', but on a disk that forgets what was not synchronised, and always on this
-- machine, whatever the distance of the cell. 'Left' says in one line why such a disk is impossible
-- here.
withForgetfulServer :: Surroundings -> Cell -> (Disk -> Started -> IO a) -> IO (Either String a)
withForgetfulServer surroundings cell action =
  withFolder cell $ \folder -> fmap join . withDisk folder $ \disk ->
    withServerIn folder (diskEnvironment disk) surroundings cell {cellNet = NetLocal} $ \started ->
      diskInUse disk >>= \case
        True -> Right <$> action disk started
        False -> pure (Left "the server does not take LD_PRELOAD: is it linked statically?")

withFolder :: Cell -> (FilePath -> IO a) -> IO a
withFolder cell = withTempDirectory (placePath (cellPlace cell)) "redis-client-campaign"

-- Starts the server in this directory, with these environment variables.
withServerIn :: FilePath -> [(String, String)] -> Surroundings -> Cell -> (Started -> IO a) -> IO a
withServerIn folder variables surroundings cell action =
  case (cellNet cell, surroundingsDelayer surroundings) of
    (NetLocal, _) -> withServer options (here "local")
    (NetRoundTrip nanos, DelayerNetem) ->
      withNamespace (Just (nanos `div` 2)) (namedPath (cellServer cell)) $ \namespace ->
        withServer
          options
            { optionsBinary = Just (namespaceWrapper namespace),
              optionsHosts = [namespaceHost namespace]
            }
          (here ("netem " <> netName (cellNet cell)))
    (NetRoundTrip nanos, DelayerRelay _) ->
      withServer options $ \server ->
        withRelay (nanos `div` 2) (serverAddress server) $ \relay ->
          begin ("relay " <> netName (cellNet cell)) "127.0.0.1" (relayPort relay) server
  where
    options =
      serverDefaults
        { optionsBinary = Just (namedPath (cellServer cell)),
          optionsCores = surroundingsCores surroundings,
          optionsEnvironment = variables,
          -- A long log takes a while to be read again.
          optionsTimeout = 120,
          optionsConfig =
            [ "dir " <> quoted folder,
              -- An empty name sends the log to the file that keeps the server's output. A relative
              -- name would be in the directory above.
              "logfile \"\""
            ]
              <> persistenceConfig (cellPersistence cell)
        }
    here network server = begin network (serverHost server) (serverPort server) server
    begin network host port server = do
      ping <- pingMedian (TcpAddress host port)
      case cellNet cell of
        NetRoundTrip nanos
          | ping < nanos ->
            unavailable $
              network <> ": a PING takes " <> renderSpan (secondsIn ping)
                <> ", less than the round trip asked for"
        _ -> pure ()
      action (Started server host port network ping)

-- The lines of the server's configuration. Snapshots follow the server's own defaults.
persistenceConfig :: Persistence -> [String]
persistenceConfig = \case
  PersistNone -> ["save \"\"", "appendonly no"]
  PersistRdb -> ["save 3600 1", "save 300 100", "save 60 10000", "appendonly no"]
  PersistAofNo -> aof "no"
  PersistAofEverysec -> aof "everysec"
  PersistAofAlways -> aof "always"
  where
    aof policy = ["save \"\"", "appendonly yes", "appendfsync " <> policy]

pingMedian :: Address -> IO Int
pingMedian address = withConnection address $ \connection -> do
  times <- replicateM netPings $ do
    begun <- monotonic
    answer <- requestOk connection ["PING"]
    ended <- monotonic
    case answer of
      Status "PONG" -> pure (ended - begun)
      other -> unavailable ("PING is answered with " <> show other)
  pure (round (median (map fromIntegral times)))
