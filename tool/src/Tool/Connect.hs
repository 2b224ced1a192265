-- | From options to connections: what the program needs of the library beyond
-- running commands.
module Tool.Connect
  ( -- * Where
    Target (..),
    targetOf,
    targetIsCluster,

    -- * Connecting
    Tuning (..),
    withTarget,
    withEachMaster,

    -- * Questions to the servers
    CommandCounts (..),
    serverCounts,
    serverKeys,
    serverMisses,
    serverVersion,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty (..))
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, mapMaybe)
import Data.Text.Encoding (decodeLatin1)
import Data.Word (Word16)
import Redis (Client)
import Redis qualified
import Redis.Commands qualified as Commands
import Redis.Config (Config)
import Redis.Config qualified as Config
import Redis.TestKit.Cluster.View qualified as View
import Redis.TestKit.Command (CommandCalls (callsRun), commandCalls, infoFields)
import Redis.Value (Value (..), withoutAttributes)
import Tool.Bench.Counts (CommandCounts (..))
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
    targetTls :: Maybe TlsOptions
  }

-- | What the options name; the host is @127.0.0.1@ if they name none.
targetOf :: ConnectionOptions -> Target
targetOf options =
  Target
    { targetKind = if connectionCluster options then TargetCluster else TargetStandalone,
      targetHost = fromMaybe "127.0.0.1" (connectionHost options),
      targetPort = fromMaybe 6379 (connectionPort options),
      targetUser = connectionUser options,
      targetPassword = connectionPassword options,
      targetTls = if tlsWanted tls then Just tls else Nothing
    }
  where
    tls = connectionTls options

-- | Whether it is a cluster.
targetIsCluster :: Target -> Bool
targetIsCluster target = targetKind target == TargetCluster

-- | What the user may say about connections.
data Tuning = Tuning
  { -- | Per node; 'Nothing' is the library's default.
    tuningMuxCount :: Maybe Int,
    tuningPolling :: Bool
  }

-- | A client of the whole target for the length of an action.
withTarget :: Tuning -> Target -> (Client -> IO a) -> IO a
withTarget tuning target = Redis.withClient (tuned (authenticated base))
  where
    endpoint = Config.TcpEndpoint (targetHost target) (targetPort target)
    base
      | targetIsCluster target = Config.clusterConfig (endpoint :| [])
      | otherwise = Config.standaloneConfig (targetHost target) (targetPort target)
    authenticated = credentials target
    tuned =
      Config.setMuxCount (tuningMuxCount tuning)
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

-- One connection, nothing clever.
quiet :: Tuning
quiet = Tuning {tuningMuxCount = Just 1, tuningPolling = False}

masters :: Target -> IO [Target]
masters target
  | targetIsCluster target = do
    text <- withTarget quiet single (`ask` ["CLUSTER", "NODES"])
    case mapMaybe node (View.parseNodes text) of
      [] -> unavailable "the cluster names no master that serves slots"
      found -> pure found
  | otherwise = pure [target]
  where
    single = target {targetKind = TargetStandalone}
    node view
      | View.viewIsMaster view && View.viewIsAlive view && not (null (View.viewSlots view)) =
        located (View.viewAddress view)
      | otherwise = Nothing
    -- The last colon: IPv6 addresses have others. A node that does not know
    -- its own address leaves it empty.
    located address = do
      let (before, port) = Char8.breakEnd (== ':') address
          host = Char8.take (Char8.length before - 1) before
      (digits, "") <- Char8.readInt port
      pure
        single
          { targetHost = if Char8.null host then targetHost target else host,
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

-- | How often all servers together have run each command. Throws the server's
-- error where INFO is not allowed.
serverCounts :: Target -> IO CommandCounts
serverCounts target = mconcat <$> withEachMaster target counts
  where
    counts client = do
      statistics <- commandCalls <$> ask client ["INFO", "commandstats"]
      pure (CommandCounts (callsRun <$> Map.mapKeys decodeLatin1 statistics))

-- | How many keys there are.
serverKeys :: Target -> IO Int
serverKeys target =
  sum <$> withEachMaster target (\client -> number <$> ask client ["DBSIZE"])

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
