-- | The configuration of a client: where it connects, how, and for how long it waits.
--
-- Begin with 'standaloneConfig', 'unixConfig', 'clusterConfig', 'groupConfig',
-- 'sentinelConfig' or 'configFromUrl', and change what you like:
--
-- > setClientName (Just "worker") (standaloneConfig "localhost" 6379)
--
-- 'Redis.Client.newClient' checks a configuration when it makes a client of it; 'validateConfig'
-- checks it earlier. Showing a configuration does not show passwords.
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

    -- * Authentication and identity
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

    -- * Connections
    setTls,
    TlsConfig (tlsVerify, tlsServerName, tlsCaFile, tlsCertificate),
    tlsDefaults,
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
    limitsDefaults,

    -- * Timeouts
    setConnectTimeout,
    setCommandTimeout,
    setSilenceLimit,
    setKeepAlive,
    setTcpUserTimeout,

    -- * Retries and refreshes
    setMaxAttempts,
    setBackoff,
    Backoff (backoffFirst, backoffCap),
    backoffDefaults,
    setRefreshInterval,
    setRefreshThrottle,

    -- * Reads and addresses
    setReadFrom,
    ReadFrom (..),
    setAddressMapping,
    setFollowRedirects,
    setReplyChecks,

    -- * Client-side caching
    setCaching,
    Caching (cachingBytes, cachingTracking),
    cachingDefaults,
    Tracking (..),

    -- * Hooks
    setHooks,
    Hooks (hookConnection, hookCommand, hookPush),
    noHooks,
    ConnectionEvent (..),
    CommandHook,

    -- * Reading a configuration
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

-- | A configuration for one server, by host and port.
standaloneConfig :: Host -> Port -> Config
standaloneConfig host port = defaultConfig (Standalone (TcpEndpoint host port))

-- | A configuration for one server, by the path of its Unix socket.
unixConfig :: FilePath -> Config
unixConfig path = defaultConfig (Standalone (UnixEndpoint path))

-- | A configuration for a cluster, by some of its nodes; one that answers is enough.
clusterConfig :: NonEmpty Endpoint -> Config
clusterConfig seeds = defaultConfig (Cluster seeds)

-- | A configuration for a primary and its replicas, by some of them; one that answers is enough. The
-- client asks them which server is the primary, and asks again when a connection is lost, when a
-- write is refused as by a replica, and periodically. The primary itself must say that it is one.
groupConfig :: NonEmpty Endpoint -> Config
groupConfig seeds = defaultConfig (Group seeds)

-- | A configuration for a primary and its replicas, by the name under which sentinels watch them,
-- and by some of the sentinels (by default on port 26379); one that answers is enough, and the client learns
-- the others from it.
--
-- > sentinelConfig "mymaster" (TcpEndpoint "sentinel-1" 26379 :| [TcpEndpoint "sentinel-2" 26379])
--
-- The client asks again as with 'groupConfig', and when the sentinels announce another primary. The primary
-- that they name must itself say that it is one.
sentinelConfig :: ByteString -> NonEmpty Endpoint -> Config
sentinelConfig name seeds = defaultConfig (Sentinels name seeds)

-- | The credentials to authenticate with. Default: 'Nothing', no authentication.
setCredentials :: Maybe Credentials -> Config -> Config
setCredentials new config = config {configCredentials = maybe NoCredentials FixedCredentials new}

-- | An action that issues the credentials, for credentials that change. The client runs it when it
-- opens a connection, within the connect timeout, and may interrupt it. One thread at a time runs it:
-- connections that are opened together share the credentials that it issues. If it throws, the connection
-- fails with that error, and is tried again like any other. If a server refuses the credentials, the client
-- first runs the action again, after growing pauses and for at most a second: a password is replaced in two
-- places, and never in both at once.
--
-- If the action says how long its credentials are valid, every connection uses them until four
-- fifths of that time are over. Then the client runs the action again, and the open shared
-- connections authenticate again, in line with the commands on them. If that fails, the connection keeps
-- its old credentials, 'hookConnection' is called with 'CredentialsNotRenewed', and the client tries again
-- after a backoff whose longest pause is a twentieth of the validity. 'Redis.Client.reauthenticate' renews
-- credentials on demand. A dedicated connection keeps the credentials that it was opened with, and is not lent
-- again once they have been renewed, or are due for it.
setCredentialsFrom :: IO IssuedCredentials -> Config -> Config
setCredentialsFrom action config = config {configCredentials = CredentialsFrom action}

-- | Whether the client lends a connection although the server wants a password and the client has
-- none: then the caller sends AUTH or HELLO itself. Such a connection speaks RESP2 until then, and
-- is in database 0. Default: 'False', the server's refusal is an error.
setCallerAuthenticates :: Bool -> Config -> Config
setCallerAuthenticates new config = config {configCallerAuthenticates = new}

-- | The credentials to authenticate with at sentinels, which never get those of 'setCredentials'. Default:
-- 'Nothing', no authentication.
setSentinelCredentials :: Maybe Credentials -> Config -> Config
setSentinelCredentials new config = config {configSentinelCredentials = new}

-- | The database to SELECT. Default: 0. A cluster may have others since Valkey 9
-- (@cluster-databases@); if it has not, each command fails with the server's reason.
setDatabase :: Int -> Config -> Config
setDatabase new config = config {configDatabase = new}

-- | The name of this client in the server's CLIENT LIST: printable, no spaces. Default: none.
setClientName :: Maybe ByteString -> Config -> Config
setClientName new config = config {configClientName = new}

-- | How to speak TLS. Default: 'Nothing', plain text.
setTls :: Maybe TlsConfig -> Config -> Config
setTls new config = config {configTls = new}

-- | How to speak TLS to sentinels; 'Nothing' is plain text. Default: as to the servers ('setTls').
setSentinelTls :: Maybe TlsConfig -> Config -> Config
setSentinelTls new config = config {configSentinelTls = Just new}

-- | The protocol to request. Default: 'PreferResp3'.
setProtocol :: ProtocolVersion -> Config -> Config
setProtocol new config = config {configProtocol = new}

-- | How long connecting, TLS and the handshake may take together. Default: 5 s.
setConnectTimeout :: Duration -> Config -> Config
setConnectTimeout new config = config {configConnectTimeout = inSeconds new}

-- | How long a command may take, from submitting it to its reply. 'Nothing' waits for ever. Default: 5 s.
setCommandTimeout :: Maybe Duration -> Config -> Config
setCommandTimeout new config = config {configCommandTimeout = inSeconds <$> new}

-- | How many connections per node callers share, 1 to 1024. Default: 'Nothing', one per capability. A caller uses
-- one of its capability; if there are several, the capability's threads are spread over them. More than one helps
-- where each reply waits for a disk and values are large.
setMuxCount :: Maybe Int -> Config -> Config
setMuxCount new config = config {configMuxCount = new}

-- | Bounds on what one connection holds. Default: 'limitsDefaults'.
setLimits :: Limits -> Config -> Config
setLimits new config = config {configLimits = new}

-- | How often a command may be sent in all. Default: 16.
setMaxAttempts :: Int -> Config -> Config
setMaxAttempts new config = config {configMaxAttempts = new}

-- | The pause between two attempts. Default: 'backoffDefaults'.
setBackoff :: Backoff -> Config -> Config
setBackoff new config = config {configBackoff = new}

-- | Whether a connection that waits for replies polls its socket. Default: for at most 200 µs. In a
-- cluster a connection polls only while it has few commands in flight.
setPolling :: Polling -> Config -> Config
setPolling new config = config {configPolling = new}

-- | How long a peer may be silent, with replies outstanding, before the client probes it; after as long
-- again without an answer it closes the connection. A peer that goes on reading what is sent to it is not
-- silent. While the command timeout, or the time of a command in flight, is longer than twice the limit, the
-- limit is half of that time. 'Nothing': no limit. Default: 2.5 s.
setSilenceLimit :: Maybe Duration -> Config -> Config
setSilenceLimit new config = config {configSilenceLimit = inSeconds <$> new}

-- | The idle time before TCP probes the peer, rounded up to whole seconds; 'Nothing' is never. Default: 60 s.
setKeepAlive :: Maybe Duration -> Config -> Config
setKeepAlive new config = config {configKeepAlive = ceiling . inSeconds <$> new}

-- | How long sent bytes may stay unacknowledged before the connection counts as broken, where the
-- system has such a limit. 'Nothing': the system's own limit. Default: 15 s.
setTcpUserTimeout :: Maybe Duration -> Config -> Config
setTcpUserTimeout new config = config {configTcpUserTimeout = inSeconds <$> new}

-- | How many connections per node there may be for blocking commands and exclusive use. Default: 64.
setMaxDedicated :: Int -> Config -> Config
setMaxDedicated new config = config {configMaxDedicated = new}

-- | How long the client keeps such a connection ('setMaxDedicated') idle; 'Nothing' is always. Default: 60 s.
setDedicatedIdle :: Maybe Duration -> Config -> Config
setDedicatedIdle new config = config {configDedicatedIdle = inSeconds <$> new}

-- | The time between two periodic checks of a cluster's slot map, or a group's primary. Default: 60 s.
setRefreshInterval :: Duration -> Config -> Config
setRefreshInterval new config = config {configRefreshInterval = inSeconds new}

-- | The least time between two such checks, whatever the reason for them. Default: 1 s. When
-- sentinels announce another primary, the client checks without waiting.
setRefreshThrottle :: Duration -> Config -> Config
setRefreshThrottle new config = config {configRefreshThrottle = inSeconds new}

-- | Which nodes of a cluster, or of a primary with replicas, answer commands that only read.
-- Default: the primary, which is the only valid choice for a single server.
-- 'Redis.Command.readFrom' chooses for one command.
setReadFrom :: ReadFrom -> Config -> Config
setReadFrom readFrom config = config {configReadFrom = readFrom}

-- | The address at which this client reaches a node that a server names, if the two differ: behind
-- address translation, through a tunnel, or from outside the network of containers. Default: the
-- address that the server names.
--
-- The client applies the function to each address that comes from a server, in a slot map or a redirect, but
-- not to the seeds. The result is the node's endpoint everywhere: in connections, errors, hooks, and as the
-- argument of 'Redis.Command.onNode'. If a server does not know its own host, the function gets the host at
-- which this client reached that server, with the port that the server names. With TLS, the certificate must
-- be valid for the host of the result, or for 'tlsServerName'. The function should return at once, and always
-- the same for the same address. Nodes that it maps to one endpoint count as one. If it throws, the address
-- stays as it is.
--
-- > setAddressMapping (\\named -> Map.findWithDefault named named tunnels)
setAddressMapping :: (Endpoint -> Endpoint) -> Config -> Config
setAddressMapping mapping config = config {configAddressMapping = AddressMapping mapping}

-- | What the client keeps of the replies to reads, for "Redis.Cache". Default: 'Nothing', no cache.
-- Each shared connection to a primary asks its server to report changes. That takes RESP3, a server since
-- 6.0, and a user who may run CLIENT TRACKING and CLIENT CACHING; if the server refuses, the connection fails.
--
-- > setCaching (Just cachingDefaults) (standaloneConfig "localhost" 6379)
setCaching :: Maybe Caching -> Config -> Config
setCaching new config = config {configCaching = new}

-- | Whether a single server may send this client's commands to another server: a replica of Valkey 8
-- or later answers reads and writes with the address of its primary (@CLIENT CAPA redirect@), and
-- the client goes there from then on. Default: 'False', for programs that read from a replica on
-- purpose. A server that does not know this is used as before. Clients of 'groupConfig' and
-- 'sentinelConfig' always follow.
setFollowRedirects :: Bool -> Config -> Config
setFollowRedirects new config = config {configFollowsRedirects = new}

-- | Whether the client checks that replies belong to their commands: it ends each block of commands
-- that it sends on a shared connection with @ECHO@ of a number, and hands out the replies to the
-- block when that number has come at its place. If something else comes there, the connection ends
-- with 'Redis.Error.ProtocolViolation', and nobody gets another's reply. Default: 'False'.
--
-- For servers on which others can run scripts, and which lack the mend of CVE-2025-67733: there an error
-- with a line break, made by a script, shifts the replies of everybody on its connection. The cost is one
-- more command for each block; with a single caller a block is one command. Metrics count the checks as
-- commands. The user needs the permission for ECHO. While a server answers ECHO with an error (@BUSY@),
-- connections end.
setReplyChecks :: Bool -> Config -> Config
setReplyChecks new config = config {configReplyChecks = new}

-- | Functions of the program that the client calls when something happens. Default: 'noHooks'.
setHooks :: Hooks -> Config -> Config
setHooks new config = config {configHooks = new}

-- | The endpoints that the configuration was made with: servers, nodes, or sentinels.
getEndpoints :: Config -> NonEmpty Endpoint
getEndpoints = topologySeeds . configTopology

-- | The database to SELECT ('setDatabase').
getDatabase :: Config -> Int
getDatabase = configDatabase

-- | How to speak TLS; 'Nothing' is plain text ('setTls').
getTls :: Config -> Maybe TlsConfig
getTls = configTls

-- | The protocol to request ('setProtocol').
getProtocol :: Config -> ProtocolVersion
getProtocol = configProtocol

-- | Which nodes of a cluster or a group answer commands that only read ('setReadFrom').
getReadFrom :: Config -> ReadFrom
getReadFrom = configReadFrom
