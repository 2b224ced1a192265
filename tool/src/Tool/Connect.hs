-- | Makes connections from options: the uses of the library beyond running commands.
module Tool.Connect
  ( Target (..),
    targetAt,
    targetOf,
    plainTarget,
    asSaid,
    targetKind,
    targetIsCluster,
    targetPlace,
    targetUsesTls,
    targetResp,
    targetNetwork,
    targetNodeName,
    targetSpec,
    needFiles,
    Tuning (..),
    quiet,
    withTarget,
    targetConfig,
    primaries,
    primariesWithSlots,
    nodeName,
    targetNodes,

    -- * Questions to the servers
    CommandCounts (..),
    counted,
    serverCalls,
    nodeCalls,
    nodeCpu,
    serverKeys,
    randomKeys,
    replicasBehind,
    behind,
    serverMisses,
    serverVersion,
  )
where

import Control.Exception (throwIO)
import Control.Monad (unless)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (for_)
import Data.List.NonEmpty (NonEmpty (..))
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust, listToMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Word (Word16)
import Redis (Client, ClientNode (..), Command, Config, Endpoint (..), NodeRole (..), NodeSet (..))
import Redis qualified
import Redis.Commands qualified as Commands
import Redis.Config qualified as Config
import Redis.Decode qualified as Decode
import Redis.TestKit.Cluster.View qualified as View
import Redis.TestKit.Command (CommandCalls (callsRun), commandCalls, infoFields, nameAndVersion)
import System.Directory (doesFileExist)
import Text.Read (readMaybe)
import Tool.Bench.Document (Loop (Closed), Spec (..), TargetKind (..))
import Tool.Bench.Time (Nanos)
import Tool.Failure (unavailable)
import Tool.Options.Connection
import Tool.Span (nanosIn)
import Tool.Text (shown, utf8)

-- | A server or a cluster, and how to connect to it.
data Target = Target
  { -- | The server, or any node of the cluster.
    targetEndpoint :: Endpoint,
    -- | The configuration of its clients, except for what a 'Tuning' decides.
    targetBase :: Config
  }

-- | The target of a configuration.
targetAt :: Config -> Target
targetAt config = let endpoint :| _ = Config.getEndpoints config in Target endpoint config

-- | A server at a host and a port, with defaults for the rest.
plainTarget :: ByteString -> Word16 -> Target
plainTarget host = targetAt . Config.standaloneConfig host

-- | The target that the options name. Default host: @127.0.0.1@.
targetOf :: ConnectionOptions -> Target
targetOf options = asSaid options (targetAt (maybe named urlConfig (connectionUrl options)))
  where
    named =
      Config.setCredentials (Config.Credentials (connectionUser options) <$> connectionPassword options) $
        Config.setTls (if tlsWanted tls then Just tlsConfig else Nothing) (place (connectionSocket options))
    place socket
      | connectionCluster options = Config.clusterConfig (pure (maybe (TcpEndpoint host port) UnixEndpoint socket))
      | otherwise = maybe (Config.standaloneConfig host port) Config.unixConfig socket
    host = fromMaybe "127.0.0.1" (connectionHost options)
    port = fromMaybe 6379 (connectionPort options)
    tls = connectionTls options
    tlsConfig =
      Config.tlsDefaults
        { Config.tlsVerify = not (tlsInsecure tls),
          Config.tlsServerName = tlsServerName tls,
          Config.tlsCaFile = tlsAuthority tls,
          Config.tlsCertificate = (,) <$> tlsCertificate tls <*> tlsKey tls
        }

-- | The same with those options that do not depend on where the server is.
asSaid :: ConnectionOptions -> Target -> Target
asSaid options target = target {targetBase = database (protocol (readFrom (targetBase target)))}
  where
    database = maybe id Config.setDatabase (connectionDatabase options)
    protocol = if connectionResp2 options then Config.setProtocol Config.OnlyResp2 else id
    -- That of the URL, unless an option says another: 'connectionReadFrom' knows both.
    readFrom = Config.setReadFrom (connectionReadFrom options)

targetIsCluster :: Target -> Bool
targetIsCluster = Config.isClusterConfig . targetBase

targetKind :: Target -> TargetKind
targetKind target = if targetIsCluster target then TargetCluster else TargetStandalone

-- | Host and port, for a target without a Unix socket.
targetPlace :: Target -> (String, Int)
targetPlace target = case targetEndpoint target of
  TcpEndpoint host port -> (Char8.unpack host, fromIntegral port)
  UnixEndpoint path -> (path, 0)

targetUsesTls :: Target -> Bool
targetUsesTls = isJust . Config.getTls . targetBase

-- | The version of RESP that connections request.
targetResp :: Target -> Int
targetResp target = case Config.getProtocol (targetBase target) of
  Config.PreferResp3 -> 3
  Config.OnlyResp2 -> 2

-- | The network between this program and the target, judging by its address.
targetNetwork :: Target -> Text
targetNetwork target = case targetEndpoint target of
  UnixEndpoint _ -> "unix socket"
  TcpEndpoint host _
    | "127." `Char8.isPrefixOf` host || host `elem` ["localhost", "::1"] -> "local"
    | otherwise -> "remote"

-- | Host and port, or the socket.
targetNodeName :: Target -> Text
targetNodeName target = case targetEndpoint target of
  TcpEndpoint host port -> utf8 host <> ":" <> shown port
  UnixEndpoint path -> Text.pack path

-- | The description of a run of this operation on a target: a closed loop of one thread and one
-- command at a time, of which the rest is not known. Takes the number of capabilities.
targetSpec :: Target -> Int -> Text -> Spec
targetSpec target capabilities operation =
  Spec
    { specOperation = operation,
      specWorkload = operation,
      specSeed = 0,
      specKeys = 0,
      specKeySize = 0,
      specDistribution = "as recorded",
      specValueSizes = "as recorded",
      specThreads = 1,
      specBatch = 1,
      specInFlight = 0,
      specMuxCount = Just 1,
      specPolling = True,
      specCapabilities = capabilities,
      specLoop = Closed,
      specWarmup = 0,
      specDuration = Nothing,
      specRequests = Nothing,
      specTarget = targetKind target,
      specTls = targetUsesTls target,
      specProtocol = targetResp target,
      specNetwork = targetNetwork target,
      specPersistence = Nothing,
      specAxes = Map.empty
    }

-- | Ends the program if a TLS file that the options name does not exist.
needFiles :: ConnectionOptions -> IO ()
needFiles options =
  for_ [("--cacert ", tlsAuthority), ("--cert ", tlsCertificate), ("--key ", tlsKey)] $ \(name, file) ->
    for_ (file (connectionTls options)) $ \path -> do
      exists <- doesFileExist path
      unless exists $ unavailable (name <> path <> ": there is no such file")

data Tuning = Tuning
  { -- | Connections per node. 'Nothing' means the library's default.
    tuningMuxCount :: Maybe Int,
    tuningPolling :: Bool
  }

-- | Runs an action with a client of the whole target.
withTarget :: Tuning -> Target -> (Client -> IO a) -> IO a
withTarget tuning target = Redis.withClient (targetConfig tuning target)

-- | Allows a dedicated connection for each thread that may be waiting.
targetConfig :: Tuning -> Target -> Config
targetConfig tuning = muxCount . Config.setMaxDedicated 65536 . polling . targetBase
  where
    muxCount = maybe id (Config.setMuxCount . Just) (tuningMuxCount tuning)
    polling = if tuningPolling tuning then id else Config.setPolling Config.NeverPoll

-- | One connection, no polling.
quiet :: Tuning
quiet = Tuning {tuningMuxCount = Just 1, tuningPolling = False}

-- | The nodes that serve keys: the one server, or a cluster's primaries. Waits for the slot map of
-- a cluster. Throws the library's error if there is none.
primaries :: Client -> IO [Endpoint]
primaries client =
  known $ do
    -- A command that no workload counts.
    outcome <- Redis.tryRun client (Redis.onEach Primaries (text ["CLUSTER", "MYID"]))
    known $
      either throwIO pure outcome >> unavailable "the cluster names no primary that serves slots"
  where
    known otherwise' = do
      nodes <- Redis.clientNodes client
      case [clientNodeEndpoint node | node <- nodes, clientNodeRole node == PrimaryNode] of
        [] -> otherwise'
        found -> pure found

-- | The nodes that serve keys, each with the slot ranges that it serves; a single server has all
-- slots.
primariesWithSlots :: Target -> IO [(Endpoint, [(Int, Int)])]
primariesWithSlots target =
  withTarget quiet target $ \client ->
    primaries client >>= \case
      nodes@(first : _) | targetIsCluster target -> do
        views <- View.parseNodes <$> Redis.run client (Redis.onNode first (text ["CLUSTER", "NODES"]))
        let slots =
              Map.fromList [(place, View.viewSlots view) | view <- views, Just place <- [located first view]]
        pure [(node, Map.findWithDefault [] node slots) | node <- nodes]
      nodes -> pure [(node, [(0, 16383)]) | node <- nodes]

-- | Host and port, or the socket.
nodeName :: Endpoint -> Text
nodeName = Text.pack . Redis.renderEndpoint

-- | Each node that serves keys, as the endpoint of a target like this one.
targetNodes :: Target -> IO [Target]
targetNodes target
  | targetIsCluster target = map (`Target` targetBase target) <$> withTarget quiet target primaries
  | otherwise = pure [target]

-- Splits at the last colon, because IPv6 addresses have others. The host of a node that does not
-- know its own address is empty.
located :: Endpoint -> View.NodeView -> Maybe Endpoint
located asked view = do
  let (before, port) = Char8.breakEnd (== ':') (View.viewAddress view)
      host = Char8.take (Char8.length before - 1) before
  (digits, "") <- Char8.readInt port
  pure $ case asked of
    TcpEndpoint own _ | Char8.null host -> TcpEndpoint own (fromIntegral digits)
    _ -> TcpEndpoint host (fromIntegral digits)

-- The reply of each of these nodes. Throws the first error, as the node sent it.
each :: NodeSet -> Client -> Command a -> IO (Map Endpoint a)
each nodeSet client command =
  Redis.run client (Redis.onEach nodeSet command) >>= traverse (either throwIO pure)

-- A command with a text as its reply.
text :: [ByteString] -> Command ByteString
text question = Redis.raw question `Redis.decodedBy` Decode.bytes

-- | Calls by command, named as in @INFO commandstats@. A command that is not in the map has no
-- calls.
newtype CommandCounts = CommandCounts {countsByName :: Map Text Int}
  deriving stock (Show)

-- | A count of zero equals a missing one.
instance Eq CommandCounts where
  one == other = present one == present other
    where
      present = Map.filter (/= 0) . countsByName

instance Semigroup CommandCounts where
  CommandCounts one <> CommandCounts other = CommandCounts (Map.unionWith (+) one other)

instance Monoid CommandCounts where
  mempty = CommandCounts Map.empty

-- | What one operation adds, times this number.
counted :: Int -> [(Text, Int)] -> CommandCounts
counted times = CommandCounts . Map.fromListWith (+) . map (fmap (* times))

-- | How often each command ran, by its name in @INFO commandstats@: on all primaries, and on their
-- replicas. Throws the server's error if INFO is not allowed.
serverCalls :: Target -> IO (CommandCounts, CommandCounts)
serverCalls target = withTarget quiet target $ \client ->
  (,)
    <$> calls Primaries client
    <*> (if readsReplicas target then calls Replicas client else pure mempty)
  where
    calls nodeSet client = mconcat . Map.elems <$> each nodeSet client calledCommands

readsReplicas :: Target -> Bool
readsReplicas target = Config.getReadFrom (targetBase target) /= Config.ReadPrimary

calledCommands :: Command CommandCounts
calledCommands = counts <$> text ["INFO", "commandstats"]
  where
    counts = CommandCounts . Map.mapKeys utf8 . fmap callsRun . commandCalls

-- | How often each command ran on one node, by its name in @INFO commandstats@.
nodeCalls :: Client -> Endpoint -> IO CommandCounts
nodeCalls client node = Redis.run client (Redis.onNode node calledCommands)

-- | The processor time that a single server has used so far, in nanoseconds; 0 if it does not tell.
nodeCpu :: Client -> IO Nanos
nodeCpu client = do
  fields <- Redis.run client (infoOf "cpu")
  let used name = Map.lookup name fields >>= readMaybe . Char8.unpack
  pure $ sum [nanosIn time | name <- ["used_cpu_sys", "used_cpu_user"], Just time <- [used name]]

infoOf :: ByteString -> Command (Map ByteString ByteString)
infoOf section = infoFields <$> text ["INFO", section]

-- | The number of keys on all primaries.
serverKeys :: Target -> IO Int
serverKeys target =
  withTarget quiet target $ \client -> fromIntegral <$> Redis.run client Commands.dbsize

-- | A random key of each primary. Throws if one of them has none.
randomKeys :: Target -> IO [ByteString]
randomKeys target = withTarget quiet target $ \client -> do
  drawn <- each Primaries client Commands.randomkey
  maybe (unavailable "a node has no keys") pure (sequence (Map.elems drawn))

-- | The number of keys on each replica that has fewer than its primary, and on that primary. None
-- if reads do not go to replicas.
replicasBehind :: Target -> IO [(Int, Int)]
replicasBehind target
  | readsReplicas target = withTarget quiet target $ \client -> do
    -- In this order: a key that expires in between is missing on the primary first.
    copies <- each Replicas client Commands.dbsize
    held <- each Primaries client Commands.dbsize
    nodes <- Redis.clientNodes client
    pure (behind nodes (fromIntegral <$> held) (fromIntegral <$> copies))
  | otherwise = pure []

-- | Like 'replicasBehind', from the known nodes, the number of keys on each primary, and the number
-- on each replica. A replica without a number counts as empty.
behind :: [ClientNode] -> Map Endpoint Int -> Map Endpoint Int -> [(Int, Int)]
behind nodes held copies =
  [ (copied, wanted)
    | ClientNode {clientNodeEndpoint, clientNodeRole = ReplicaNode primary} <- nodes,
      let copied = Map.findWithDefault 0 clientNodeEndpoint copies,
      Just wanted <- [Map.lookup primary held],
      copied < wanted
  ]

-- | How many look-ups found no key since the servers started.
serverMisses :: Target -> IO Int
serverMisses target =
  withTarget quiet target $ \client -> sum . fmap misses <$> each Primaries client (infoOf "stats")
  where
    misses fields = maybe 0 fst (Map.lookup "keyspace_misses" fields >>= Char8.readInt)

-- | The name and version of a server, and the number of nodes that serve keys.
serverVersion :: Target -> IO (String, Int)
serverVersion target = withTarget quiet target $ \client -> do
  found <- Map.elems <$> each Primaries client (infoOf "server")
  pure (maybe "unknown" Char8.unpack (listToMaybe found >>= nameAndVersion), length found)
