-- | Private servers for a cell: they are started, filled, and asked for their counts.
module Compare.Servers
  ( fillKeys,

    -- * Our own
    Servers,
    serversAddress,
    serversVersion,
    withServers,
    Counts (..),
    counts,
  )
where

import Compare.Cell
import Compare.Stream
import Control.Monad (forM, (>=>))
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty (..))
import Data.Map.Strict qualified as Map
import Redis qualified
import Redis.Commands qualified as Commands
import Redis.Config qualified as Config
import Redis.TestKit.Cluster (ClusterOptions (..), Node (nodeServer), clusterDefaults, clusterNodes, withCluster)
import Redis.TestKit.Command (CommandCalls (callsRun), infoFields, nameAndVersion, replyText)
import Redis.TestKit.Server (Server, ServerOptions (..), serverDefaults, withServer)
import Redis.TestKit.Server qualified as Server
import Text.Read (readMaybe)
import Tool.Bench.Preload (runNumbered)
import Tool.Span (nanosIn)

-- | One server, or all primaries of a cluster.
data Servers = Servers
  { serversFirst :: Server,
    serversAll :: [Server]
  }

-- | Host and port of the server, or of one node of the cluster.
serversAddress :: Servers -> (String, Int)
serversAddress servers = (Server.serverHost first, Server.serverPort first)
  where
    first = serversFirst servers

-- | The servers' name and version, such as @redis 7.0.15@.
serversVersion :: Servers -> IO String
serversVersion servers = do
  said <- replyText <$> Server.command (serversFirst servers) ["INFO", "server"]
  pure (maybe "an unknown server" Char8.unpack (said >>= nameAndVersion . infoFields))

-- | Fresh servers with all keys of the cell written, for the duration of an action. Only cells that
-- differ just in operation, style and number in flight may share them: every SET writes the value
-- that is there already.
withServers :: Cell -> (Servers -> IO a) -> IO a
withServers cell action = case cellPlace cell of
  Cluster ->
    -- A node that does not get the processor for a while must not count as failed: all of them
    -- share one busy core.
    withCluster clusterDefaults {clusterNodeTimeout = 15000, clusterServer = options} $ \cluster ->
      clusterNodes cluster >>= \case
        first : rest -> filled Servers {serversFirst = nodeServer first, serversAll = map nodeServer (first : rest)}
        [] -> ioError (userError "the private cluster has no nodes")
  Standalone -> single
  StandaloneFree -> single
  where
    options = serverDefaults {optionsCores = serverCores (cellPlace cell)}
    single = withServer options $ \server -> filled Servers {serversFirst = server, serversAll = [server]}
    filled servers = fill cell servers >> action servers

-- | Writes every key of a cell, many at a time. Throws the first error.
fillKeys :: Config.Config -> Cell -> IO ()
fillKeys config cell =
  Redis.withClient config $ \client ->
    runNumbered client keys (\number -> Commands.set (keyOf keyspace number) (valueOf keyspace number))
  where
    keyspace = newKeyspace PresentKeys keys (commonKeySize (cellCommon cell)) (cellValueSize cell)
    keys = commonKeys (cellCommon cell)

fill :: Cell -> Servers -> IO ()
fill cell servers = fillKeys config cell
  where
    (host, port) = serversAddress servers
    name = Char8.pack host
    config
      | isCluster (cellPlace cell) = Config.clusterConfig (Config.TcpEndpoint name (fromIntegral port) :| [])
      | otherwise = Config.standaloneConfig name (fromIntegral port)

-- | The number of commands that ran, and the servers' processor time.
data Counts = Counts
  { countsGet :: Int,
    countsSet :: Int,
    -- | Nanoseconds of processor time, user and system, if all servers report it.
    countsCpu :: Maybe Double
  }
  deriving stock (Eq, Show)

-- | The commands and the processor time of all servers together since they started.
counts :: Servers -> IO Counts
counts servers = do
  statistics <- forM (serversAll servers) Server.commandStatistics
  used <- forM (serversAll servers) $ \server ->
    (replyText >=> processorTime . infoFields) <$> Server.command server ["INFO", "cpu"]
  let total :: ByteString -> Int
      total name = sum (map (maybe 0 callsRun . Map.lookup name) statistics)
  pure Counts {countsGet = total "get", countsSet = total "set", countsCpu = sum <$> sequence used}
  where
    processorTime fields = fromIntegral . nanosIn . sum <$> traverse (seconds fields) ["used_cpu_user", "used_cpu_sys"]
    seconds :: Map.Map ByteString ByteString -> ByteString -> Maybe Double
    seconds fields name = Map.lookup name fields >>= readMaybe . Char8.unpack
