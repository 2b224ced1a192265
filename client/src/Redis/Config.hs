-- | What a client has to know before it connects.
--
-- Begin with 'standaloneConfig', 'unixConfig', 'clusterConfig', 'groupConfig',
-- 'sentinelConfig' or 'configFromUrl', and change what you like:
--
-- > setClientName (Just "worker") (standaloneConfig "localhost" 6379)
--
-- A configuration is checked once, when a client is made of it, or before that
-- by 'validateConfig'. Showing it does not show passwords.
module Redis.Config
  ( Config,

    -- * Where to connect
    standaloneConfig,
    unixConfig,
    clusterConfig,
    groupConfig,
    sentinelConfig,
    configFromUrl,
    Endpoint (..),

    -- * Who is connecting
    setCredentials,
    setCredentialsFrom,
    Credentials (..),
    IssuedCredentials (issuedAs, issuedFor),
    issuedCredentials,
    setCallerAuthenticates,
    setSentinelCredentials,
    Secret,
    toSecret,
    setDatabase,
    setClientName,

    -- * How
    setTls,
    TlsConfig (tlsVerify, tlsServerName, tlsCaFile, tlsCertificate),
    defaultTlsConfig,
    setSentinelTls,
    setProtocol,
    ProtocolVersion (..),
    setMuxCount,
    setPolling,
    Polling (..),
    setMaxDedicated,
    setDedicatedIdle,
    setLimits,
    Limits (limitInFlight, limitQueuedBytes, limitBulkBytes, limitElements, limitDepth),
    defaultLimits,

    -- * For how long
    setConnectTimeout,
    setCommandTimeout,
    setSilenceLimit,
    setKeepAlive,
    setTcpUserTimeout,

    -- * How often
    setMaxAttempts,
    setBackoff,
    Backoff (backoffFirst, backoffCap),
    defaultBackoff,
    setRefreshInterval,
    setRefreshThrottle,

    -- * From where
    setReadFrom,
    ReadFrom (..),
    setAddressMapping,
    setFollowRedirects,

    -- * What is kept
    setCaching,
    Caching (cachingBytes, cachingTracking),
    defaultCaching,
    Tracking (..),

    -- * Watching
    setHooks,
    Hooks (hookConnection, hookCommand, hookPush),
    noHooks,
    ConnectionEvent (..),
    CommandHook,

    -- * What it says
    getEndpoints,
    isClusterConfig,
    getDatabase,
    getTls,
    getProtocol,
    getReadFrom,

    -- * Checking
    validateConfig,
    ConfigError (..),
  )
where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty)
import Redis.Duration (Duration, inSeconds)
import Redis.Error (Endpoint (..), Host, Port)
import Redis.Internal.Config
import Redis.Internal.ConfigCheck (ConfigError (..), validateConfig)
import Redis.Internal.ConfigUrl (configFromUrl)
import Redis.Internal.Hooks

-- | One server, by host and port.
--
-- @since 0.1.0.0
standaloneConfig :: Host -> Port -> Config
standaloneConfig host port = defaultConfig (Standalone (TcpEndpoint host port))

-- | One server, by the path of its Unix socket.
--
-- @since 0.1.0.0
unixConfig :: FilePath -> Config
unixConfig path = defaultConfig (Standalone (UnixEndpoint path))

-- | A cluster, by some of its nodes; one that answers is enough.
--
-- @since 0.1.0.0
clusterConfig :: NonEmpty Endpoint -> Config
clusterConfig seeds = defaultConfig (Cluster seeds)

-- | A primary and its replicas, by some of them; one that answers is enough. Who is
-- the primary is found by asking them, and asked again when a connection is lost, when
-- a write is refused as by a replica, and periodically.
--
-- A node is taken for the primary only when it says itself that it is one.
--
-- @since 0.1.0.0
groupConfig :: NonEmpty Endpoint -> Config
groupConfig seeds = defaultConfig (Group seeds)

-- | A primary and its replicas, by the name under which sentinels watch them, and by
-- some of the sentinels; one that answers is enough, and the others are learnt from
-- it. Their default port is 26379.
--
-- > sentinelConfig "mymaster" (TcpEndpoint "sentinel-1" 26379 :| [TcpEndpoint "sentinel-2" 26379])
--
-- The primary that the sentinels name is used only when it says itself that it is one.
-- They are asked again when they announce that they have switched, when a connection
-- is lost, when a write is refused as by a replica, and periodically.
--
-- @since 0.1.0.0
sentinelConfig :: ByteString -> NonEmpty Endpoint -> Config
sentinelConfig name seeds = defaultConfig (Sentinels name seeds)

-- | What to authenticate with; 'Nothing' (the default) for not at all.
--
-- @since 0.1.0.0
setCredentials :: Maybe Credentials -> Config -> Config
setCredentials new config = config {configCredentials = maybe NoCredentials FixedCredentials new}

-- | An action that has the credentials, for those that change. It is run when a
-- connection is opened, as a part of the connect timeout, by one thread at a time:
-- connections that are opened together share what it issues. What it throws is the
-- error of the connection, which is tried again like one that could not be had. It may
-- be interrupted. When a server refuses what it issued, it is run again, after growing
-- pauses and for at most a second, before that is the error of the connection: a
-- password is replaced in two places, and never in both at once.
--
-- When the action says how long its credentials are good for, they are used for every
-- connection until four fifths of that time are over. Then it is run again, and the
-- shared connections that live are authenticated anew, in line with the commands on
-- them. If the action throws, or the server refuses what it issued, the connection
-- goes on with what it has, 'hookConnection' is told 'CredentialsNotRenewed', and it is
-- tried again after a backoff whose longest pause is a twentieth of the time.
-- 'Redis.Client.reauthenticate' does the same on demand. A lent connection keeps what
-- it was opened with, and is not lent again afterwards.
--
-- @since 0.1.0.0
setCredentialsFrom :: IO IssuedCredentials -> Config -> Config
setCredentialsFrom action config = config {configCredentials = CredentialsFrom action}

-- | Whether a connection that is lent is had although the server wants a password
-- and this client has none: the caller will send AUTH or HELLO itself. Such a
-- connection speaks RESP2 until then, and is in database 0. 'False' by default: the
-- server's refusal is an error.
--
-- @since 0.1.0.0
setCallerAuthenticates :: Bool -> Config -> Config
setCallerAuthenticates new config = config {configCallerAuthenticates = new}

-- | What to authenticate with at sentinels; 'Nothing' (the default) for not at all.
-- 'setCredentials' is for the servers alone, and is not told to sentinels.
--
-- @since 0.1.0.0
setSentinelCredentials :: Maybe Credentials -> Config -> Config
setSentinelCredentials new config = config {configSentinelCredentials = new}

-- | The database to SELECT; 0 by default. A cluster has others since Valkey 9
-- (@cluster-databases@); where it has not, each command fails with the server's reason.
--
-- @since 0.1.0.0
setDatabase :: Int -> Config -> Config
setDatabase new config = config {configDatabase = new}

-- | The name of this client in the server's CLIENT LIST: printable, no spaces.
--
-- @since 0.1.0.0
setClientName :: Maybe ByteString -> Config -> Config
setClientName new config = config {configClientName = new}

-- | How to speak TLS; 'Nothing' (the default) for plain text.
--
-- @since 0.1.0.0
setTls :: Maybe TlsConfig -> Config -> Config
setTls new config = config {configTls = new}

-- | How to speak TLS to sentinels; 'Nothing' for plain text. By default as to the
-- servers ('setTls').
--
-- @since 0.1.0.0
setSentinelTls :: Maybe TlsConfig -> Config -> Config
setSentinelTls new config = config {configSentinelTls = Just new}

-- | Which protocol to ask for; 'PreferResp3' by default.
--
-- @since 0.1.0.0
setProtocol :: ProtocolVersion -> Config -> Config
setProtocol new config = config {configProtocol = new}

-- | For connect, TLS and handshake together; 5 s by default.
--
-- @since 0.1.0.0
setConnectTimeout :: Duration -> Config -> Config
setConnectTimeout new config = config {configConnectTimeout = inSeconds new}

-- | From submitting a command to its reply; 5 s by default, 'Nothing' waits for
-- ever.
--
-- @since 0.1.0.0
setCommandTimeout :: Maybe Duration -> Config -> Config
setCommandTimeout new config = config {configCommandTimeout = inSeconds <$> new}

-- | Connections per node that callers share; 'Nothing' (the default) is one
-- per capability.
--
-- @since 0.1.0.0
setMuxCount :: Maybe Int -> Config -> Config
setMuxCount new config = config {configMuxCount = new}

-- | Bounds on what one connection holds; 'defaultLimits' by default.
--
-- @since 0.1.0.0
setLimits :: Limits -> Config -> Config
setLimits new config = config {configLimits = new}

-- | How often a command may be sent in all; 16 by default.
--
-- @since 0.1.0.0
setMaxAttempts :: Int -> Config -> Config
setMaxAttempts new config = config {configMaxAttempts = new}

-- | The pause between two attempts; 'defaultBackoff' by default.
--
-- @since 0.1.0.0
setBackoff :: Backoff -> Config -> Config
setBackoff new config = config {configBackoff = new}

-- | Whether a waiting connection polls its socket; for at most 200 µs by
-- default, and in a cluster only while it has few commands in flight.
--
-- @since 0.1.0.0
setPolling :: Polling -> Config -> Config
setPolling new config = config {configPolling = new}

-- | How long a peer may be silent, with replies outstanding, before it is probed;
-- after as long again the connection is closed. A peer that goes on reading what
-- is sent to it is not silent. 'Nothing': for ever. 2.5 s by default.
--
-- @since 0.1.0.0
setSilenceLimit :: Maybe Duration -> Config -> Config
setSilenceLimit new config = config {configSilenceLimit = inSeconds <$> new}

-- | How long a connection is idle before TCP probes the peer, rounded up to whole
-- seconds; 'Nothing': it never does. 60 s by default.
--
-- @since 0.1.0.0
setKeepAlive :: Maybe Duration -> Config -> Config
setKeepAlive new config = config {configKeepAlive = ceiling . inSeconds <$> new}

-- | How long sent bytes may stay unacknowledged, where the system has such a
-- limit; 'Nothing': the system's own. 15 s by default.
--
-- @since 0.1.0.0
setTcpUserTimeout :: Maybe Duration -> Config -> Config
setTcpUserTimeout new config = config {configTcpUserTimeout = inSeconds <$> new}

-- | Connections per node for blocking commands and exclusive use; 64 by
-- default.
--
-- @since 0.1.0.0
setMaxDedicated :: Int -> Config -> Config
setMaxDedicated new config = config {configMaxDedicated = new}

-- | How long such a connection is kept when nobody uses it; 'Nothing': as long as
-- the client lives. 60 s by default.
--
-- @since 0.1.0.0
setDedicatedIdle :: Maybe Duration -> Config -> Config
setDedicatedIdle new config = config {configDedicatedIdle = inSeconds <$> new}

-- | The time between periodic checks of a cluster's slot map, or of who is the primary
-- of a group; 60 s by default.
--
-- @since 0.1.0.0
setRefreshInterval :: Duration -> Config -> Config
setRefreshInterval new config = config {configRefreshInterval = inSeconds new}

-- | The least time between two such checks; 1 s by default. What sentinels announce is
-- not made to wait for it.
--
-- @since 0.1.0.0
setRefreshThrottle :: Duration -> Config -> Config
setRefreshThrottle new config = config {configRefreshThrottle = inSeconds new}

-- | Which nodes of a cluster, or of a primary with replicas, answer commands that only
-- read. Default: the primary. 'Redis.Command.readFrom' says it of one command.
--
-- @since 0.1.0.0
setReadFrom :: ReadFrom -> Config -> Config
setReadFrom readFrom config = config {configReadFrom = readFrom}

-- | Where this client reaches a node that a server names, when that is not where the
-- server says: behind address translation, through a tunnel, or from outside the
-- network of containers. Default: where the server says.
--
-- The function is given each address that comes from a server, in a slot map or a
-- redirect, and its result is the node's endpoint everywhere: in connections, errors,
-- hooks, and what 'Redis.Command.onNode' takes. Not the seeds, which are given as this
-- client reaches them. A server that does not know its own host is asked for at the
-- host by which it was reached, so the function is given that host, with the port that
-- the server says. With TLS, the certificate must be valid for the host that results,
-- or for 'tlsServerName'.
--
-- It should answer at once and always the same. Nodes that it sends to one endpoint
-- are taken for one node. Where it throws, the address stays as it is.
--
-- > setAddressMapping (\\named -> Map.findWithDefault named named tunnels)
--
-- @since 0.1.0.0
setAddressMapping :: (Endpoint -> Endpoint) -> Config -> Config
setAddressMapping mapping config = config {configAddressMapping = AddressMapping mapping}

-- | What is kept of what was read, for "Redis.Cache"; 'Nothing' (the default) for
-- nothing at all. With it the connections that callers share, to primaries, ask their
-- servers to tell of changes. That takes RESP3 and a server since 6.0, and a user who may
-- run CLIENT TRACKING and CLIENT CACHING; where it is refused there is no connection.
--
-- > setCaching (Just defaultCaching) (standaloneConfig "localhost" 6379)
--
-- @since 0.1.0.0
setCaching :: Maybe Caching -> Config -> Config
setCaching new config = config {configCaching = new}

-- | Whether a server alone may send this client's commands to another: a replica of
-- Valkey 8 or later answers reads and writes with the address of its primary
-- (@CLIENT CAPA redirect@), and the client goes there from then on. 'False' by default,
-- for who reads from a replica on purpose. A server that does not know this goes on as
-- without. Clients of 'groupConfig' and 'sentinelConfig' always follow.
--
-- @since 0.1.0.0
setFollowRedirects :: Bool -> Config -> Config
setFollowRedirects new config = config {configFollowsRedirects = new}

-- | What to tell the program; 'noHooks' by default.
--
-- @since 0.1.0.0
setHooks :: Hooks -> Config -> Config
setHooks new config = config {configHooks = new}

-- | The server, or those nodes of the cluster or group, or those sentinels, that it was
-- made with.
--
-- @since 0.1.0.0
getEndpoints :: Config -> NonEmpty Endpoint
getEndpoints = topologySeeds . configTopology

-- | Whether it is of a cluster.
--
-- @since 0.1.0.0
isClusterConfig :: Config -> Bool
isClusterConfig config = case configTopology config of
  Cluster _ -> True
  _ -> False

-- | The database to SELECT.
--
-- @since 0.1.0.0
getDatabase :: Config -> Int
getDatabase = configDatabase

-- | How to speak TLS; 'Nothing' for plain text.
--
-- @since 0.1.0.0
getTls :: Config -> Maybe TlsConfig
getTls = configTls

-- | Which protocol to ask for.
--
-- @since 0.1.0.0
getProtocol :: Config -> ProtocolVersion
getProtocol = configProtocol

-- | Which nodes of a cluster answer commands that only read.
--
-- @since 0.1.0.0
getReadFrom :: Config -> ReadFrom
getReadFrom = configReadFrom
