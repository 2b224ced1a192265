-- | The record behind "Redis.Config", for this library's own modules. A 'Config' can be shown: its secrets are
-- of type 'Secret', which shows nothing.
module Redis.Internal.Config
  ( Config (..),
    defaultConfig,
    Topology (..),
    topologySeeds,
    isClusterConfig,
    Secret,
    toSecret,
    revealSecret,
    Credentials (..),
    CredentialsSource (..),
    IssuedCredentials (..),
    issuedCredentials,
    TlsConfig (..),
    tlsDefaults,
    ProtocolVersion (..),
    Polling (..),
    ReadFrom (..),
    AddressMapping (..),
    mappedAddress,
    Caching (..),
    Tracking (..),
    cachingDefaults,
    Limits (..),
    limitsDefaults,
    Backoff (..),
    backoffDefaults,
    delayFor,
    isName,
    isHostName,
  )
where

import Control.Exception (evaluate, tryJust)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.Either (fromRight)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.Duration (Duration, inSeconds, microseconds, milliseconds, seconds)
import Redis.Error (Endpoint (..))
import Redis.Internal.Hooks (Hooks, noHooks, synchronous)
import System.IO.Unsafe (unsafePerformIO)

-- | Everything a client needs to know before it connects. The setters in "Redis.Config" say what each
-- field means. A time without a type of its own is in seconds.
data Config = Config
  { configTopology :: Topology,
    configCredentials :: CredentialsSource,
    configCallerAuthenticates :: Bool,
    configDatabase :: Int,
    configClientName :: Maybe ByteString,
    configTls :: Maybe TlsConfig,
    configProtocol :: ProtocolVersion,
    configConnectTimeout :: Double,
    configCommandTimeout :: Maybe Double,
    configMuxCount :: Maybe Int,
    configLimits :: Limits,
    configMaxAttempts :: Int,
    configBackoff :: Backoff,
    configPolling :: Polling,
    configSilenceLimit :: Maybe Double,
    configKeepAlive :: Maybe Int,
    configTcpUserTimeout :: Maybe Double,
    configMaxDedicated :: Int,
    configDedicatedIdle :: Maybe Double,
    configFollowsRedirects :: Bool,
    configReplyChecks :: Bool,
    configSentinelCredentials :: Maybe Credentials,
    -- | How to speak TLS to sentinels; 'Nothing' is the setting for the servers.
    configSentinelTls :: Maybe (Maybe TlsConfig),
    configRefreshInterval :: Double,
    configRefreshThrottle :: Double,
    configReadFrom :: ReadFrom,
    configAddressMapping :: AddressMapping,
    configCaching :: Maybe Caching,
    configHooks :: Hooks
  }
  deriving stock (Show)

-- | How the servers of a client belong together, and where to find them.
data Topology
  = -- | One server.
    Standalone Endpoint
  | -- | A cluster, by some of its nodes.
    Cluster (NonEmpty Endpoint)
  | -- | A primary and its replicas, by some of them.
    Group (NonEmpty Endpoint)
  | -- | A primary and its replicas, by the name under which these sentinels watch them.
    Sentinels ByteString (NonEmpty Endpoint)
  deriving stock (Eq, Show)

-- | The endpoints that a topology names.
topologySeeds :: Topology -> NonEmpty Endpoint
topologySeeds = \case
  Standalone endpoint -> endpoint :| []
  Cluster seeds -> seeds
  Group seeds -> seeds
  Sentinels _ seeds -> seeds

-- | Whether the configuration is for a cluster.
isClusterConfig :: Config -> Bool
isClusterConfig config = case configTopology config of
  Cluster _ -> True
  _ -> False

-- | A password, or anything else that must not be printed.
newtype Secret = Secret
  { -- | The bytes of a secret, for the one place that sends them.
    revealSecret :: ByteString
  }
  deriving newtype (Eq)

-- | Never shows the bytes.
instance Show Secret where
  show _ = "<secret>"

-- | Makes a secret of bytes, as they are sent.
toSecret :: ByteString -> Secret
toSecret = Secret

-- | A user and a password.
data Credentials = Credentials
  { -- | A user of the server's ACL; 'Nothing' for @default@, and for a server that has no users.
    credentialsUser :: Maybe ByteString,
    -- | The password, as it is sent.
    credentialsPassword :: Secret
  }
  deriving stock (Eq, Show)

-- | Where a connection's credentials come from.
data CredentialsSource
  = -- | There are none.
    NoCredentials
  | -- | They are always the same.
    FixedCredentials Credentials
  | -- | An action issues them.
    CredentialsFrom (IO IssuedCredentials)

-- | Shows no secret, and of an action only that there is one.
instance Show CredentialsSource where
  showsPrec level = \case
    NoCredentials -> showString "NoCredentials"
    FixedCredentials known -> showParen (level > 10) (showString "FixedCredentials " . showsPrec 11 known)
    CredentialsFrom _ -> showString "CredentialsFrom <action>"

-- | Credentials that were issued just now. Begin with 'issuedCredentials' and set the other fields.
data IssuedCredentials = IssuedCredentials
  { -- | The credentials.
    issuedAs :: Credentials,
    -- | How long they are valid, from now; 'Nothing' if that is not known.
    issuedFor :: Maybe Duration
  }
  deriving stock (Eq, Show)

-- | Issued credentials whose validity is not known.
--
-- > (issuedCredentials credentials) {issuedFor = Just (minutes 60)}
issuedCredentials :: Credentials -> IssuedCredentials
issuedCredentials known = IssuedCredentials {issuedAs = known, issuedFor = Nothing}

-- | How to speak TLS. Begin with 'tlsDefaults' and set its fields.
data TlsConfig = TlsConfig
  { -- | Whether the server's certificate must be valid for the host.
    tlsVerify :: Bool,
    -- | The name to request and to verify; 'Nothing' is the host of the endpoint.
    tlsServerName :: Maybe ByteString,
    -- | A PEM file of certificate authorities; 'Nothing' is the system's.
    tlsCaFile :: Maybe FilePath,
    -- | PEM files of this client's certificate and key.
    tlsCertificate :: Maybe (FilePath, FilePath)
  }
  deriving stock (Eq, Show)

-- | Verification on, the system's certificate authorities, no client certificate.
tlsDefaults :: TlsConfig
tlsDefaults =
  TlsConfig {tlsVerify = True, tlsServerName = Nothing, tlsCaFile = Nothing, tlsCertificate = Nothing}

-- | The protocol to request.
data ProtocolVersion
  = -- | RESP3, and RESP2 where the server has no HELLO.
    PreferResp3
  | -- | RESP2 always.
    OnlyResp2
  deriving stock (Eq, Show)

-- | Whether a connection that waits for replies polls its socket before it sleeps.
data Polling
  = -- | It polls for at most this long, and only while replies come within that time on average.
    PollUpTo Duration
  | -- | It sleeps until it is woken. Nor does it wait in the kernel for several
    -- short replies together.
    NeverPoll
  deriving stock (Eq, Show)

-- | Which nodes of a cluster, or of a primary with replicas, answer commands that only read, of those that
-- have the command's keys. Among several equally good ones each command draws one at random. A node counts
-- as down after three failures in a row, until it answers again.
--
-- Replication takes time: a read that leaves the primary may miss recent writes, and two such reads may see
-- different states. If a replica cannot answer, because it has lost its primary, loads its data or was lost,
-- or has not answered in half of the command's time, the command goes to the primary.
data ReadFrom
  = -- | The primary: every read sees all writes that came before.
    ReadPrimary
  | -- | A replica that is not down, or the primary if there is none.
    PreferReplica
  | -- | The primary or a replica, whichever is not down: spreads reads over all nodes.
    ReadAny
  | -- | A replica in this availability zone, or the primary if it is in the zone; if all of those are down,
    -- or there are none, like 'PreferReplica'. Valkey reports the zone of a node (@availability-zone@ in its
    -- configuration). Redis does not, and the hook for connections is told 'Redis.Config.NobodyInZone'.
    SameZone ByteString
  | -- | The primary or a replica, among the nodes that answer about as quickly as the quickest. The
    -- client measures every 5 s, or as often as it checks the map of the cluster if that is more
    -- often. Until the nodes have answered, like 'ReadAny'.
    LowestLatency
  deriving stock (Eq, Show)

-- | From the address that a server names to the address at which this client reaches it.
newtype AddressMapping = AddressMapping (Endpoint -> Endpoint)

-- | Shows only that there is a mapping: functions cannot be shown.
instance Show AddressMapping where
  show _ = "<mapping>"

-- | The address to connect to. If the user's function throws, the address stays as it is.
mappedAddress :: AddressMapping -> Endpoint -> Endpoint
mappedAddress (AddressMapping mapping) named =
  unsafePerformIO (fromRight named <$> tryJust synchronous (evaluate (forced (mapping named))))
  where
    forced = \case
      UnixEndpoint path -> length path `seq` UnixEndpoint path
      reached -> reached

-- | What a client keeps of replies, for "Redis.Cache". Begin with 'cachingDefaults' and set its fields.
data Caching = Caching
  { -- | The most bytes that the cache takes: those of the replies, and some 500 more for each reply.
    cachingBytes :: Int,
    -- | How servers know which changes to report.
    cachingTracking :: Tracking
  }
  deriving stock (Eq, Show)

-- | How a server knows which changes to report to a client.
data Tracking
  = -- | The server remembers which keys each connection has read for the cache, and reports changes
    -- of those (@CLIENT TRACKING ON OPTIN@). That takes memory of the server, up to a limit
    -- (@tracking-table-max-keys@).
    TrackReads
  | -- | The server remembers nothing, and reports to every connection every change of a key that has one of these prefixes
    -- (@CLIENT TRACKING ON BCAST@). The cache keeps no other keys.
    TrackPrefixes (NonEmpty ByteString)
  deriving stock (Eq, Show)

-- | 64 MiB, with 'TrackReads'.
cachingDefaults :: Caching
cachingDefaults = Caching {cachingBytes = 64 * 1024 * 1024, cachingTracking = TrackReads}

-- | Bounds on what one connection holds. Begin with 'limitsDefaults' and set its fields.
data Limits = Limits
  { -- | The most commands that are submitted and not yet answered; at most \(2^{30}\).
    limitInFlight :: Int,
    -- | The most encoded bytes that wait to be sent. A longer command enters when no bytes wait.
    limitQueuedBytes :: Int,
    -- | The most bytes of one string in a reply, whether it comes as a bulk string or as a line; at
    -- most \(2^{40}\).
    limitBulkBytes :: Int,
    -- | The most elements of one aggregate.
    limitElements :: Int,
    -- | The most levels of aggregates within aggregates.
    limitDepth :: Int
  }
  deriving stock (Eq, Show)

-- | 16384 commands, 16 MiB queued; 512 MiB per string (what a server holds in
-- one), 128 Mi elements, 16384 levels (scripts can make replies of about 8000).
limitsDefaults :: Limits
limitsDefaults =
  Limits
    { limitInFlight = 16384,
      limitQueuedBytes = 16 * 1024 * 1024,
      limitBulkBytes = 512 * 1024 * 1024,
      limitElements = 128 * 1024 * 1024,
      limitDepth = 16384
    }

-- | Capped exponential backoff. Each delay is drawn at random between half of its value
-- and the whole. Begin with 'backoffDefaults' and set its fields.
data Backoff = Backoff
  { -- | The value after the first failure; each further one doubles it.
    backoffFirst :: Duration,
    -- | The largest value, not less than the first.
    backoffCap :: Duration
  }
  deriving stock (Eq, Show)

-- | From 10 ms to 1 s.
backoffDefaults :: Backoff
backoffDefaults = Backoff {backoffFirst = milliseconds 10, backoffCap = seconds 1}

-- | Seconds to wait before attempt @n@ (1 is the first attempt that waits), given a random number
-- between 0 and 1. The first delay is doubled @n - 1@ times, up to the cap; the result lies between
-- half of that and the whole, so that attempts that failed together do not come back together.
-- \(O(1)\).
delayFor :: Backoff -> Int -> Double -> Double
delayFor Backoff {backoffFirst, backoffCap} attempt random = full * (0.5 + 0.5 * random)
  where
    -- 40 doublings make days of a microsecond; the bound keeps the power finite.
    doublings = max 0 (min 40 (attempt - 1))
    full = min (inSeconds backoffCap) (inSeconds backoffFirst * 2 ^^ doublings)

-- | The defaults for a topology. The times are those of StackExchange.Redis, too: 5 s to connect, 5 s for a
-- command, and a refresh every 60 s.
defaultConfig :: Topology -> Config
defaultConfig topology =
  Config
    { configTopology = topology,
      configCredentials = NoCredentials,
      configCallerAuthenticates = False,
      configDatabase = 0,
      configClientName = Nothing,
      configTls = Nothing,
      configProtocol = PreferResp3,
      configConnectTimeout = 5,
      configCommandTimeout = Just 5,
      configMuxCount = Nothing,
      configLimits = limitsDefaults,
      configMaxAttempts = 16,
      configBackoff = backoffDefaults,
      configPolling = PollUpTo (microseconds 200),
      configSilenceLimit = Just 2.5,
      configKeepAlive = Just 60,
      configTcpUserTimeout = Just 15,
      configMaxDedicated = 64,
      configDedicatedIdle = Just 60,
      configFollowsRedirects = False,
      configReplyChecks = False,
      configSentinelCredentials = Nothing,
      configSentinelTls = Nothing,
      configRefreshInterval = 60,
      configRefreshThrottle = 1,
      configReadFrom = ReadPrimary,
      configAddressMapping = AddressMapping id,
      configCaching = Nothing,
      configHooks = noHooks
    }

-- | Whether it may be a name in a setting: visible ASCII, and not empty. \(O(n)\).
isName :: ByteString -> Bool
isName text = not (ByteString.null text) && ByteString.all (\byte -> byte > 0x20 && byte < 0x7f) text

-- | Whether a server can mean it as a host: a name of at most 255 characters. @?@, which servers say
-- for a host that they do not know, passes. \(O(n)\).
isHostName :: ByteString -> Bool
isHostName text = ByteString.length text <= 255 && isName text
