-- | The record behind "Redis.Config", for this library's own modules.
--
-- Every field is read by some code of this library. A 'Config' can be shown:
-- what is secret in it is a 'Secret', and that shows nothing.
module Redis.Internal.Config
  ( Config (..),
    defaultConfig,
    Topology (..),
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
    Limits (..),
    defaultLimits,
    Backoff (..),
    defaultBackoff,
  )
where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty)
import Redis.Duration (Duration, microseconds, milliseconds, seconds)
import Redis.Error (Endpoint)
import Redis.Internal.Hooks (Hooks, noHooks)

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
    -- | Seconds between periodic checks of a cluster's slot map.
    configRefreshInterval :: Double,
    -- | Least seconds between two refreshes of a cluster's slot map.
    configRefreshThrottle :: Double,
    -- | Which nodes of a cluster answer read-only commands.
    configReadFrom :: ReadFrom,
    configHooks :: Hooks
  }
  deriving stock (Show)

-- | What the servers are to each other.
data Topology
  = -- | One server.
    Standalone Endpoint
  | -- | A cluster, and some of its nodes.
    Cluster (NonEmpty Endpoint)
  deriving stock (Eq, Show)

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

-- | Which nodes of a cluster answer commands that only read.
--
-- @since 0.1.0.0
data ReadFrom
  = -- | The primary: every read sees all writes that came before.
    ReadPrimary
  | -- | A replica of the slot that is not known to be down, drawn at random for
    -- each command, or the primary if there is none. Replication takes time: a
    -- read may miss recent writes, and two reads may see different states. Walks by
    -- HSCAN, SSCAN and ZSCAN, and TOUCH, stay with the primary.
    PreferReplica
  deriving stock (Eq, Show)

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
      configRefreshInterval = 60,
      configRefreshThrottle = 1,
      configReadFrom = ReadPrimary,
      configHooks = noHooks
    }
