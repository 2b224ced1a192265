-- | From options to connections: what the program needs of the library beyond
-- running commands.
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
    targetNodeName,
    needFiles,

    -- * Connecting
    Tuning (..),
    quiet,
    withTarget,
    targetConfig,
    withEachMaster,
    masters,
    mastersWithSlots,

    -- * Questions to the servers
    CommandCounts (..),
    serverCalls,
    nodeCalls,
    nodeCpu,
    serverKeys,
    randomKeys,
    replicaKeys,
    serverMisses,
    serverVersion,
  )
where

import Control.Monad (unless)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (for_)
import Data.List.NonEmpty (NonEmpty (..))
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust, mapMaybe)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Data.Text.Encoding.Error qualified as Text
import Data.Word (Word16)
import Redis (Client)
import Redis qualified
import Redis.Commands qualified as Commands
import Redis.Config qualified as Config
import Redis.Internal.Config (Config (configDatabase, configProtocol, configTls, configTopology), Topology (..), defaultConfig)
import Redis.TestKit.Cluster.View qualified as View
import Redis.TestKit.Command (CommandCalls (callsRun), commandCalls, infoFields)
import Redis.Value (Value (..), withoutAttributes)
import System.Directory (doesFileExist)
import Text.Read (readMaybe)
import Tool.Bench.Counts (CommandCounts (..))
import Tool.Bench.Cpu (Nanos)
import Tool.Bench.Document (TargetKind (..))
import Tool.Failure (unavailable)
import Tool.Options.Connection

-- | A server or a cluster, and how to speak to it.
data Target = Target
  { targetKind :: TargetKind,
    -- | The server, or any node of the cluster.
    targetHost :: ByteString,
    targetPort :: Word16,
    targetUser :: Maybe ByteString,
    targetPassword :: Maybe ByteString,
    targetTls :: Maybe TlsOptions,
    -- | Where it listens on this machine, instead of host and port.
    targetSocket :: Maybe FilePath,
    targetDatabase :: Int,
    targetProtocol :: Config.ProtocolVersion,
    targetReadFrom :: Config.ReadFrom,
    -- | What a URL said; its place is in the other fields too.
    targetUrl :: Maybe Config
  }

-- | A server at a host and a port, and nothing else said.
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

-- | What the options name; the host is @127.0.0.1@ if they name none.
targetOf :: ConnectionOptions -> Target
targetOf options = case connectionUrl options of
  Just config -> placed config said {targetUrl = Just config, targetDatabase = fromMaybe (configDatabase config) (connectionDatabase options)}
  Nothing -> said
  where
    tls = connectionTls options
    said =
      (plainTarget (fromMaybe "127.0.0.1" (connectionHost options)) (fromMaybe 6379 (connectionPort options)))
        { targetKind = if connectionCluster options then TargetCluster else TargetStandalone,
          targetUser = connectionUser options,
          targetPassword = connectionPassword options,
          targetTls = if tlsWanted tls then Just tls else Nothing,
          targetSocket = connectionSocket options,
          targetDatabase = fromMaybe 0 (connectionDatabase options),
          targetProtocol = if connectionResp2 options then Config.OnlyResp2 else Config.PreferResp3,
          targetReadFrom = connectionReadFrom options
        }
    placed config target = case configTopology config of
      Standalone endpoint -> at endpoint target
      Cluster (endpoint :| _) -> at endpoint target {targetKind = TargetCluster}
    at endpoint target = case endpoint of
      Config.TcpEndpoint host port -> target {targetHost = host, targetPort = port}
      Config.UnixEndpoint path -> target {targetSocket = Just path}

-- | Whether it is a cluster.
targetIsCluster :: Target -> Bool
targetIsCluster target = targetKind target == TargetCluster

-- | Whether it is on this machine, as far as its name tells.
targetIsLocal :: Target -> Bool
targetIsLocal target =
  isJust (targetSocket target) || "127." `Char8.isPrefixOf` targetHost target || targetHost target `elem` ["localhost", "::1"]

-- | Whether it is spoken to by TLS.
targetUsesTls :: Target -> Bool
targetUsesTls = isJust . configTls . targetConfig quiet

-- | The version of RESP that is asked for.
targetResp :: Target -> Int
targetResp target = case configProtocol (targetConfig quiet target) of
  Config.PreferResp3 -> 3
  Config.OnlyResp2 -> 2

-- | What is between it and this program, as far as its name tells.
targetNetwork :: Target -> Text
targetNetwork target
  | isJust (targetSocket target) = "unix socket"
  | targetIsLocal target = "local"
  | otherwise = "remote"

-- | Host and port, or the socket.
targetNodeName :: Target -> Text
targetNodeName target = case targetSocket target of
  Just path -> Text.pack path
  Nothing -> Text.decodeUtf8With Text.lenientDecode (targetHost target) <> ":" <> Text.pack (show (targetPort target))

-- | Ends the program if a file that the options name for TLS is not there.
needFiles :: ConnectionOptions -> IO ()
needFiles options =
  for_ [(name, path) | (name, Just path) <- [("--cacert", tlsAuthority tls), ("--cert", tlsCertificate tls), ("--key", tlsKey tls)]] $ \(name, path) -> do
    exists <- doesFileExist path
    unless exists $ unavailable (name <> " " <> path <> ": there is no such file")
  where
    tls = connectionTls options

-- | What the user may say about connections.
data Tuning = Tuning
  { -- | Per node; 'Nothing' is the library's default.
    tuningMuxCount :: Maybe Int,
    tuningPolling :: Bool
  }

-- | A client of the whole target for the length of an action.
withTarget :: Tuning -> Target -> (Client -> IO a) -> IO a
withTarget tuning target = Redis.withClient (targetConfig tuning target)

-- | How such a client is configured.
targetConfig :: Tuning -> Target -> Config
targetConfig tuning target = tuned (said (fromMaybe (credentials target base) fromUrl))
  where
    endpoint = maybe (Config.TcpEndpoint (targetHost target) (targetPort target)) Config.UnixEndpoint (targetSocket target)
    topology
      | targetIsCluster target = Cluster (endpoint :| [])
      | otherwise = Standalone endpoint
    base = defaultConfig topology
    -- A node of the cluster whose seeds the URL names.
    fromUrl = (\config -> config {configTopology = topology}) <$> targetUrl target
    said = Config.setDatabase (targetDatabase target) . protocol . readFrom
    -- What a URL says stands, unless an option says otherwise.
    protocol = case targetProtocol target of
      Config.PreferResp3 -> id
      other -> Config.setProtocol other
    readFrom = case targetReadFrom target of
      Config.ReadPrimary -> id
      other -> Config.setReadFrom other
    tuned =
      maybe id (Config.setMuxCount . Just) (tuningMuxCount tuning)
        -- As many as there may be threads that wait for something.
        . Config.setMaxDedicated 65536
        . (if tuningPolling tuning then id else Config.setPolling Config.NeverPoll)

credentials :: Target -> Config -> Config
credentials target =
  Config.setCredentials login . Config.setTls (tlsConfig <$> targetTls target)
  where
    login = do
      password <- targetPassword target
      pure
        Config.Credentials
          { Config.credentialsUser = targetUser target,
            Config.credentialsPassword = Config.secret password
          }
    tlsConfig tls =
      Config.defaultTlsConfig
        { Config.tlsVerify = not (tlsInsecure tls),
          Config.tlsServerName = tlsServerName tls,
          Config.tlsCaFile = tlsAuthority tls,
          Config.tlsCertificate = (,) <$> tlsCertificate tls <*> tlsKey tls
        }

-- | A client of each node that serves keys, one after the other: for questions
-- that every server answers for itself only.
withEachMaster :: Target -> (Client -> IO a) -> IO [a]
withEachMaster target action = do
  nodes <- masters target
  traverse (\node -> withTarget quiet node action) nodes

-- | One connection, nothing clever.
quiet :: Tuning
quiet = Tuning {tuningMuxCount = Just 1, tuningPolling = False}

-- | Each node that serves keys, as a server of its own.
masters :: Target -> IO [Target]
masters target = map fst <$> mastersWithSlots target

-- | The same, with the ranges of slots that it serves; all of them for a single
-- server.
mastersWithSlots :: Target -> IO [(Target, [(Int, Int)])]
mastersWithSlots target
  | targetIsCluster target = do
    views <- clusterViews target
    case [(node, View.viewSlots view) | view <- views, View.viewIsMaster view, View.viewIsAlive view, not (null (View.viewSlots view)), Just node <- [located target view]] of
      [] -> unavailable "the cluster names no master that serves slots"
      found -> pure found
  | otherwise = pure [(target, [(0, 16383)])]

-- Their replicas, as servers of their own.
replicas :: Target -> IO [Target]
replicas target
  | targetIsCluster target = do
    views <- clusterViews target
    pure (mapMaybe (located target) [view | view <- views, View.viewIsAlive view, isJust (View.viewMaster view)])
  | otherwise = pure []

clusterViews :: Target -> IO [View.NodeView]
clusterViews target = View.parseNodes <$> withTarget quiet target {targetKind = TargetStandalone} (`ask` ["CLUSTER", "NODES"])

-- The last colon: IPv6 addresses have others. A node that does not know its own
-- address leaves it empty.
located :: Target -> View.NodeView -> Maybe Target
located target view = do
  let (before, port) = Char8.breakEnd (== ':') (View.viewAddress view)
      host = Char8.take (Char8.length before - 1) before
  (digits, "") <- Char8.readInt port
  pure
    target
      { targetKind = TargetStandalone,
        targetHost = if Char8.null host then targetHost target else host,
        targetPort = fromIntegral digits
      }

-- The text that a command answers with.
ask :: Client -> [ByteString] -> IO ByteString
ask client question = do
  reply <- Redis.run client (Commands.raw question)
  case withoutAttributes reply of
    BulkString text -> pure text
    VerbatimString _ text -> pure text
    SimpleString text -> pure text
    Integer value -> pure (Char8.pack (show value))
    _ -> unavailable (Char8.unpack (Char8.unwords question) <> " is answered with something else than text")

-- | How often each command ran, by its name in @INFO commandstats@: on all
-- servers that serve keys, and on their replicas. Throws the server's error
-- where INFO is not allowed.
serverCalls :: Target -> IO (CommandCounts, CommandCounts)
serverCalls target = (,) <$> (masters target >>= calls) <*> (if readsReplicas then replicas target >>= calls else pure mempty)
  where
    readsReplicas = targetReadFrom target /= Config.ReadPrimary
    calls nodes = mconcat <$> traverse (\node -> withTarget quiet node nodeCalls) nodes

-- | The same of the one server that a client is connected to.
nodeCalls :: Client -> IO CommandCounts
nodeCalls client = do
  statistics <- commandCalls <$> ask client ["INFO", "commandstats"]
  pure (CommandCounts (Map.mapKeys (Text.decodeUtf8With Text.lenientDecode) (fmap callsRun statistics)))

-- | The processor time that the one server that a client is connected to has
-- used by now, in nanoseconds; 0 if it does not say.
nodeCpu :: Client -> IO Nanos
nodeCpu client = do
  fields <- infoFields <$> ask client ["INFO", "cpu"]
  pure (sum [round (seconds * 1e9 :: Double) | name <- ["used_cpu_sys", "used_cpu_user"], Just seconds <- [Map.lookup name fields >>= readMaybe . Char8.unpack]] :: Nanos)

-- | How many keys there are.
serverKeys :: Target -> IO Int
serverKeys target =
  sum <$> withEachMaster target (\client -> number <$> ask client ["DBSIZE"])

-- | A key of each node that serves keys, drawn at random. Throws where a node has
-- none.
randomKeys :: Target -> IO [ByteString]
randomKeys target = withEachMaster target (`ask` ["RANDOMKEY"])

-- | How many each replica holds; none if none is read from.
replicaKeys :: Target -> IO [Int]
replicaKeys target
  | targetReadFrom target == Config.ReadPrimary = pure []
  | otherwise = replicas target >>= traverse (\node -> withTarget quiet node (\client -> number <$> ask client ["DBSIZE"]))

-- | How many look-ups found no key since the servers started.
serverMisses :: Target -> IO Int
serverMisses target = sum <$> withEachMaster target misses
  where
    misses client =
      maybe 0 number . Map.lookup "keyspace_misses" . infoFields <$> ask client ["INFO", "stats"]

-- | The name and version of a server, and how many nodes serve keys.
serverVersion :: Target -> IO (String, Int)
serverVersion target = do
  found <- withEachMaster target $ \client -> infoFields <$> ask client ["INFO", "server"]
  let version fields = case (Map.lookup "valkey_version" fields, Map.lookup "redis_version" fields) of
        (Just text, _) -> "valkey " <> Char8.unpack text
        (Nothing, Just text) -> "redis " <> Char8.unpack text
        (Nothing, Nothing) -> "unknown"
  pure (maybe "unknown" version (firstOf found), length found)
  where
    firstOf = \case
      first : _ -> Just first
      [] -> Nothing

number :: ByteString -> Int
number = maybe 0 fst . Char8.readInt
