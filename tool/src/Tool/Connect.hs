-- | Makes connections from options: the uses of the library beyond running commands.
module Tool.Connect
  ( -- * Where
    Target (..),
    targetOf,
    plainTarget,
    targetIsCluster,
    targetIsLocal,
    targetUsesTls,
    targetResp,
    targetNetwork,
    targetEndpoint,
    targetNodeName,
    targetSpec,
    needFiles,

    -- * Connecting
    Tuning (..),
    quiet,
    withTarget,
    targetConfig,

    -- * Nodes
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
  { targetKind :: TargetKind,
    -- | The server, or any node of the cluster.
    targetHost :: ByteString,
    targetPort :: Word16,
    targetUser :: Maybe ByteString,
    targetPassword :: Maybe Config.Secret,
    targetTls :: Maybe TlsOptions,
    -- | The path of its Unix socket on this machine, instead of host and port.
    targetSocket :: Maybe FilePath,
    targetDatabase :: Int,
    targetProtocol :: Config.ProtocolVersion,
    targetReadFrom :: Config.ReadFrom,
    -- | The configuration of a URL. The other fields have its address, too.
    targetUrl :: Maybe Config
  }

-- | A server at a host and a port, with defaults for the rest.
plainTarget :: ByteString -> Word16 -> Target
plainTarget host port =
  Target
    { targetKind = TargetStandalone,
      targetHost = host,
      targetPort = port,
      targetUser = Nothing,
      targetPassword = Nothing,
      targetTls = Nothing,
      targetSocket = Nothing,
      targetDatabase = 0,
      targetProtocol = Config.PreferResp3,
      targetReadFrom = Config.ReadPrimary,
      targetUrl = Nothing
    }

-- | The target that the options name. Default host: @127.0.0.1@.
targetOf :: ConnectionOptions -> Target
targetOf options = maybe said (placed . urlConfig) (connectionUrl options)
  where
    tls = connectionTls options
    said =
      ( plainTarget
          (fromMaybe "127.0.0.1" (connectionHost options))
          (fromMaybe 6379 (connectionPort options))
      )
        { targetKind = if connectionCluster options then TargetCluster else TargetStandalone,
          targetUser = connectionUser options,
          targetPassword = connectionPassword options,
          targetTls = if tlsWanted tls then Just tls else Nothing,
          targetSocket = connectionSocket options,
          targetDatabase = fromMaybe 0 (connectionDatabase options),
          targetProtocol = if connectionResp2 options then Config.OnlyResp2 else Config.PreferResp3,
          targetReadFrom = connectionReadFrom options
        }
    placed config =
      let endpoint :| _ = Config.getEndpoints config
       in (at endpoint said)
            { targetKind = if Config.isClusterConfig config then TargetCluster else targetKind said,
              targetUrl = Just config,
              targetDatabase = fromMaybe (Config.getDatabase config) (connectionDatabase options)
            }

-- The same at another place.
at :: Endpoint -> Target -> Target
at endpoint target = case endpoint of
  TcpEndpoint host port -> target {targetHost = host, targetPort = port}
  UnixEndpoint path -> target {targetSocket = Just path}

targetEndpoint :: Target -> Endpoint
targetEndpoint target =
  maybe (TcpEndpoint (targetHost target) (targetPort target)) UnixEndpoint (targetSocket target)

targetIsCluster :: Target -> Bool
targetIsCluster target = targetKind target == TargetCluster

-- | Whether the target is on this machine, judging by its address.
targetIsLocal :: Target -> Bool
targetIsLocal target =
  isJust (targetSocket target)
    || "127." `Char8.isPrefixOf` targetHost target
    || targetHost target `elem` ["localhost", "::1"]

targetUsesTls :: Target -> Bool
targetUsesTls = isJust . Config.getTls . targetConfig quiet

-- | The version of RESP that connections request.
targetResp :: Target -> Int
targetResp target = case Config.getProtocol (targetConfig quiet target) of
  Config.PreferResp3 -> 3
  Config.OnlyResp2 -> 2

-- | The network between this program and the target, judging by its address.
targetNetwork :: Target -> Text
targetNetwork target
  | isJust (targetSocket target) = "unix socket"
  | targetIsLocal target = "local"
  | otherwise = "remote"

-- | Host and port, or the socket.
targetNodeName :: Target -> Text
targetNodeName target =
  maybe (utf8 (targetHost target) <> ":" <> shown (targetPort target)) Text.pack (targetSocket target)

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

targetConfig :: Tuning -> Target -> Config
targetConfig tuning target = tuned (said (fromMaybe (credentials target base) (targetUrl target)))
  where
    base = case targetEndpoint target of
      endpoint | targetIsCluster target -> Config.clusterConfig (endpoint :| [])
      TcpEndpoint host port -> Config.standaloneConfig host port
      UnixEndpoint path -> Config.unixConfig path
    said = Config.setDatabase (targetDatabase target) . protocol . readFrom
    -- The URL decides, unless an option does.
    protocol = unlessUsual Config.PreferResp3 Config.setProtocol (targetProtocol target)
    readFrom = unlessUsual Config.ReadPrimary Config.setReadFrom (targetReadFrom target)
    unlessUsual usual set value = if value == usual then id else set value
    tuned =
      maybe id (Config.setMuxCount . Just) (tuningMuxCount tuning)
        -- One for each thread that may be waiting.
        . Config.setMaxDedicated 65536
        . (if tuningPolling tuning then id else Config.setPolling Config.NeverPoll)

credentials :: Target -> Config -> Config
credentials target =
  Config.setCredentials login . Config.setTls (tlsConfig <$> targetTls target)
  where
    login = Config.Credentials (targetUser target) <$> targetPassword target
    tlsConfig tls =
      Config.tlsDefaults
        { Config.tlsVerify = not (tlsInsecure tls),
          Config.tlsServerName = tlsServerName tls,
          Config.tlsCaFile = tlsAuthority tls,
          Config.tlsCertificate = (,) <$> tlsCertificate tls <*> tlsKey tls
        }

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

-- | Each node that serves keys, as a target of its own.
targetNodes :: Target -> IO [Target]
targetNodes target
  | targetIsCluster target = map alone <$> withTarget quiet target primaries
  | otherwise = pure [target]
  where
    alone endpoint = at endpoint target {targetKind = TargetStandalone}

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
readsReplicas target = targetReadFrom target /= Config.ReadPrimary

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
