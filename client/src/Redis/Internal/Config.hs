-- | The record behind "Redis.Config", for this library's own modules.
--
-- Every field is read by some code of this library. A 'Config' can be shown:
-- what is secret in it is a 'Secret', and that shows nothing.
module Redis.Internal.Config
  ( Config (..),
    defaultConfig,
    Topology (..),
    topologySeeds,
    Secret,
    toSecret,
    revealSecret,
    Credentials (..),
    CredentialsSource (..),
    IssuedCredentials (..),
    issuedCredentials,
    fixedCredentials,
    TlsConfig (..),
    defaultTlsConfig,
    ProtocolVersion (..),
    Polling (..),
    ReadFrom (..),
    AddressMapping (..),
    mappedAddress,
    Caching (..),
    Tracking (..),
    defaultCaching,
    Limits (..),
    defaultLimits,
    Backoff (..),
    defaultBackoff,
  )
where

import Control.Exception (SomeAsyncException, SomeException, evaluate, fromException, throwIO, try)
import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.Duration (Duration, microseconds, milliseconds, seconds)
import Redis.Error (Endpoint (..))
import Redis.Internal.Hooks (Hooks, noHooks)
import System.IO.Unsafe (unsafePerformIO)

-- | Everything a client needs to know before it connects.
--
-- @since 0.1.0.0
data Config = Config
  { -- | What there is to connect to.
    configTopology :: Topology,
    configCredentials :: CredentialsSource,
    -- | Whether a lent connection is had although the server wants a password
    -- that this client does not know.
    configCallerAuthenticates :: Bool,
    -- | SELECTed on every connection; 0 needs no SELECT.
    configDatabase :: Int,
    -- | For CLIENT SETNAME.
    configClientName :: Maybe ByteString,
    -- | 'Nothing' for plain text.
    configTls :: Maybe TlsConfig,
    configProtocol :: ProtocolVersion,
    -- | Seconds for connect, TLS and handshake together.
    configConnectTimeout :: Double,
    -- | Seconds from submitting a command to its reply; 'Nothing' waits for ever.
    configCommandTimeout :: Maybe Double,
    -- | Multiplexers per node; 'Nothing' is one per capability.
    configMuxCount :: Maybe Int,
    configLimits :: Limits,
    -- | How often a command may be sent in all.
    configMaxAttempts :: Int,
    -- | Between two attempts to connect to a node, and between retries.
    configBackoff :: Backoff,
    configPolling :: Polling,
    -- | Seconds of silence, with bytes outstanding, before a probe; after as
    -- many more the connection is closed.
    configSilenceLimit :: Maybe Double,
    -- | Seconds of idleness after which TCP probes the peer.
    configKeepAlive :: Maybe Int,
    -- | Seconds that sent bytes may stay unacknowledged (TCP_USER_TIMEOUT).
    configTcpUserTimeout :: Maybe Double,
    -- | Dedicated connections per node, leased for blocking commands.
    configMaxDedicated :: Int,
    -- | Seconds that one of them lies idle before it is closed; 'Nothing' keeps it.
    configDedicatedIdle :: Maybe Double,
    -- | Where it may send a command, a server alone is told that this client follows.
    configFollowsRedirects :: Bool,
    -- | What to authenticate with at sentinels.
    configSentinelCredentials :: Maybe Credentials,
    -- | How to speak TLS to sentinels; 'Nothing' for as to the servers.
    configSentinelTls :: Maybe (Maybe TlsConfig),
    -- | Seconds between periodic checks of a cluster's slot map, or of a group.
    configRefreshInterval :: Double,
    -- | Least seconds between two refreshes of it.
    configRefreshThrottle :: Double,
    -- | Which nodes of a cluster or a group answer read-only commands.
    configReadFrom :: ReadFrom,
    -- | Where this client reaches what a server names.
    configAddressMapping :: AddressMapping,
    -- | What is kept of what was read; 'Nothing' for nothing at all.
    configCaching :: Maybe Caching,
    configHooks :: Hooks
  }
  deriving stock (Show)

-- | What the servers are to each other.
data Topology
  = -- | One server.
    Standalone Endpoint
  | -- | A cluster, and some of its nodes.
    Cluster (NonEmpty Endpoint)
  | -- | A primary and its replicas, and some of them.
    Group (NonEmpty Endpoint)
  | -- | The same, by the name under which these sentinels watch it.
    Sentinels ByteString (NonEmpty Endpoint)
  deriving stock (Eq, Show)

-- | The endpoints that it names.
topologySeeds :: Topology -> NonEmpty Endpoint
topologySeeds = \case
  Standalone endpoint -> endpoint :| []
  Cluster seeds -> seeds
  Group seeds -> seeds
  Sentinels _ seeds -> seeds

-- | A password, or anything else that must not be printed.
--
-- @since 0.1.0.0
newtype Secret = Secret ByteString
  deriving newtype (Eq)

-- | Never shows what it holds.
instance Show Secret where
  show _ = "<secret>"

-- | Keeps it from being shown. Takes the bytes as they are sent.
--
-- @since 0.1.0.0
toSecret :: ByteString -> Secret
toSecret = Secret

-- | What it holds, for the one place that sends it.
revealSecret :: Secret -> ByteString
revealSecret (Secret bytes) = bytes

-- | A user ('Nothing' is the server's @default@) and a password.
--
-- @since 0.1.0.0
data Credentials = Credentials
  { -- | A user of the server's ACL; 'Nothing' for @default@, and for a server
    -- that has no users.
    credentialsUser :: Maybe ByteString,
    -- | As it is sent.
    credentialsPassword :: Secret
  }
  deriving stock (Eq, Show)

-- | Where a connection's credentials come from.
data CredentialsSource
  = -- | There are none.
    NoCredentials
  | -- | Always the same.
    FixedCredentials Credentials
  | -- | An action has them.
    CredentialsFrom (IO IssuedCredentials)

-- | Shows no secret: of an action only that there is one.
instance Show CredentialsSource where
  showsPrec level = \case
    NoCredentials -> showString "NoCredentials"
    FixedCredentials known -> showParen (level > 10) (showString "FixedCredentials " . showsPrec 11 known)
    CredentialsFrom _ -> showString "CredentialsFrom <action>"

-- | Credentials as they were issued just now. Begin with 'issuedCredentials' and
-- set the other fields.
--
-- @since 0.1.0.0
data IssuedCredentials = IssuedCredentials
  { -- | What to authenticate with.
    issuedAs :: Credentials,
    -- | How long they are good for, from now; 'Nothing' if that is not known.
    issuedFor :: Maybe Duration
  }
  deriving stock (Eq, Show)

-- | Credentials of which nobody says how long they are good for.
--
-- > (issuedCredentials credentials) {issuedFor = Just (minutes 60)}
--
-- @since 0.1.0.0
issuedCredentials :: Credentials -> IssuedCredentials
issuedCredentials known = IssuedCredentials {issuedAs = known, issuedFor = Nothing}

-- | Those that need no action.
fixedCredentials :: CredentialsSource -> Maybe Credentials
fixedCredentials = \case
  FixedCredentials known -> Just known
  _ -> Nothing

-- | How to speak TLS. Begin with 'defaultTlsConfig' and set its fields.
--
-- @since 0.1.0.0
data TlsConfig = TlsConfig
  { -- | Whether the server's certificate must be valid for the host.
    tlsVerify :: Bool,
    -- | The name to ask for and to verify; 'Nothing' is the host of the endpoint.
    tlsServerName :: Maybe ByteString,
    -- | A PEM file of authorities; 'Nothing' is the system's.
    tlsCaFile :: Maybe FilePath,
    -- | PEM files of this client's certificate and key.
    tlsCertificate :: Maybe (FilePath, FilePath)
  }
  deriving stock (Eq, Show)

-- | Verification on, the system's authorities, no client certificate.
--
-- @since 0.1.0.0
defaultTlsConfig :: TlsConfig
defaultTlsConfig =
  TlsConfig {tlsVerify = True, tlsServerName = Nothing, tlsCaFile = Nothing, tlsCertificate = Nothing}

-- | Which protocol to ask for.
--
-- @since 0.1.0.0
data ProtocolVersion
  = -- | RESP3, and RESP2 where the server has no HELLO.
    PreferResp3
  | -- | RESP2 always.
    OnlyResp2
  deriving stock (Eq, Show)

-- | Whether a connection that waits for replies polls its socket before it
-- asks the runtime's IO manager to wake it.
--
-- @since 0.1.0.0
data Polling
  = -- | While the observed delay is short, for at most so long.
    PollUpTo Duration
  | -- | It sleeps until it is woken. Nor does it wait in the kernel for several
    -- short replies together.
    NeverPoll
  deriving stock (Eq, Show)

-- | Which nodes of a cluster, or of a primary with replicas, answer commands that only
-- read: of those that have the command's keys. Of several that are as good one is drawn at random for each command.
-- A node is down here after three failures in a row and until it answers again.
--
-- Replication takes time: a read that leaves the primary may miss recent writes, and
-- two such reads may see different states. What a replica cannot answer, because it has
-- lost its primary, loads its data or was lost, the primary is asked; so it is when a
-- replica has not answered in half of the command's time.
--
-- @since 0.1.0.0
data ReadFrom
  = -- | The primary: every read sees all writes that came before.
    ReadPrimary
  | -- | A replica that is not down, or the primary if there is none.
    PreferReplica
  | -- | The primary or a replica, whichever is not down: spreads reads over all nodes.
    ReadAny
  | -- | A replica in this availability zone, or the primary if it is in the zone; if
    -- all of those are down or there are none, as 'PreferReplica'. Valkey tells the
    -- zone of a node (@availability-zone@ in its configuration). Redis does not know
    -- of zones: then all reads go as 'PreferReplica', and
    -- 'Redis.Config.NobodyInZone' is told.
    SameZone ByteString
  | -- | The primary or a replica, of those that answer about as quickly as the
    -- quickest. Nodes are asked every 5 s, or as often as the map of the cluster
    -- is checked if that is more often. Until they have answered, as 'ReadAny'.
    LowestLatency
  deriving stock (Eq, Show)

-- | Where this client reaches the address that a server names.
newtype AddressMapping = AddressMapping (Endpoint -> Endpoint)

-- | Only that there is one: functions cannot be shown.
instance Show AddressMapping where
  show _ = "<mapping>"

-- | The address to connect to. Where the user's function throws, the address stays as
-- it is: this runs on threads of which all commands depend.
mappedAddress :: AddressMapping -> Endpoint -> Endpoint
mappedAddress (AddressMapping mapping) named =
  unsafePerformIO $
    try (evaluate (forced (mapping named))) >>= \case
      Right reached -> pure reached
      Left (failure :: SomeException) -> case fromException failure of
        Just (asynchronous :: SomeAsyncException) -> throwIO asynchronous
        Nothing -> pure named
  where
    forced = \case
      UnixEndpoint path -> length path `seq` UnixEndpoint path
      reached -> reached

-- | What a client keeps of the replies to commands that are run with "Redis.Cache".
-- Begin with 'defaultCaching' and set its fields.
--
-- @since 0.1.0.0
data Caching = Caching
  { -- | Bytes that are kept at most, with what keeping them takes: some 500 for each
    -- reply besides its own.
    cachingBytes :: Int,
    -- | How servers know what is kept.
    cachingTracking :: Tracking
  }
  deriving stock (Eq, Show)

-- | How a server knows of which changes to tell a client.
--
-- @since 0.1.0.0
data Tracking
  = -- | It remembers what each connection has read to be kept, and tells of changes to
    -- that (@CLIENT TRACKING ON OPTIN@). It needs memory for that, of which it has a
    -- limit (@tracking-table-max-keys@).
    TrackReads
  | -- | It remembers nothing, and tells every connection of every change to a key that
    -- begins in one of these ways (@CLIENT TRACKING ON BCAST@). No other keys are kept.
    TrackPrefixes (NonEmpty ByteString)
  deriving stock (Eq, Show)

-- | 64 MiB, of what was read.
--
-- @since 0.1.0.0
defaultCaching :: Caching
defaultCaching = Caching {cachingBytes = 64 * 1024 * 1024, cachingTracking = TrackReads}

-- | Bounds on what one connection holds. Begin with 'defaultLimits' and set its
-- fields.
--
-- @since 0.1.0.0
data Limits = Limits
  { -- | Commands submitted and not yet answered; at most \(2^{30}\).
    limitInFlight :: Int,
    -- | Encoded bytes that nobody has begun to send. A command that is longer
    -- enters when there are none.
    limitQueuedBytes :: Int,
    -- | Bytes of one bulk string; at most \(2^{40}\).
    limitBulkBytes :: Int,
    -- | Elements of one aggregate.
    limitElements :: Int,
    -- | Aggregates within aggregates.
    limitDepth :: Int
  }
  deriving stock (Eq, Show)

-- | 16384 commands, 16 MiB queued; 512 MiB per string (what a server holds in
-- one), 128 Mi elements, 64 levels.
--
-- @since 0.1.0.0
defaultLimits :: Limits
defaultLimits =
  Limits
    { limitInFlight = 16384,
      limitQueuedBytes = 16 * 1024 * 1024,
      limitBulkBytes = 512 * 1024 * 1024,
      limitElements = 128 * 1024 * 1024,
      limitDepth = 64
    }

-- | Capped exponential backoff. Each delay is drawn between half of its value
-- and the whole. Begin with 'defaultBackoff' and set its fields.
--
-- @since 0.1.0.0
data Backoff = Backoff
  { -- | The value after the first failure; each further one doubles it.
    backoffFirst :: Duration,
    -- | The largest value, not less than the first.
    backoffCap :: Duration
  }
  deriving stock (Eq, Show)

-- | From 10 ms to 1 s.
--
-- @since 0.1.0.0
defaultBackoff :: Backoff
defaultBackoff = Backoff {backoffFirst = milliseconds 10, backoffCap = seconds 1}

-- | The defaults for a topology.
--
-- The times are those of the field: 5 s to connect and 5 s for a command are
-- StackExchange.Redis's, as is a refresh each 60 s.
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
      configLimits = defaultLimits,
      configMaxAttempts = 16,
      configBackoff = defaultBackoff,
      configPolling = PollUpTo (microseconds 200),
      configSilenceLimit = Just 2.5,
      configKeepAlive = Just 60,
      configTcpUserTimeout = Just 15,
      configMaxDedicated = 64,
      configDedicatedIdle = Just 60,
      configFollowsRedirects = False,
      configSentinelCredentials = Nothing,
      configSentinelTls = Nothing,
      configRefreshInterval = 60,
      configRefreshThrottle = 1,
      configReadFrom = ReadPrimary,
      configAddressMapping = AddressMapping id,
      configCaching = Nothing,
      configHooks = noHooks
    }
