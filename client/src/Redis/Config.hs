-- | What a client has to know before it connects.
--
-- Begin with 'standaloneConfig', 'unixConfig', 'clusterConfig' or
-- 'configFromUrl', and change what you like:
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
    configFromUrl,
    Endpoint (..),

    -- * Who is connecting
    setCredentials,
    Credentials (..),
    Secret,
    toSecret,
    setDatabase,
    setClientName,

    -- * How
    setTls,
    TlsConfig (..),
    defaultTlsConfig,
    setProtocol,
    ProtocolVersion (..),
    setMuxCount,
    setPolling,
    Polling (..),
    setMaxDedicated,
    setLimits,
    Limits (..),
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
    Backoff (..),
    setRefreshInterval,
    setRefreshThrottle,

    -- * From where
    setReadFrom,
    ReadFrom (..),

    -- * Watching
    setHooks,
    Hooks (..),
    noHooks,
    ConnectionEvent (..),
    CommandTiming (..),

    -- * Checking
    validateConfig,
    ConfigError (..),
  )
where

import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty)
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

-- | What to authenticate with; 'Nothing' (the default) for not at all.
--
-- @since 0.1.0.0
setCredentials :: Maybe Credentials -> Config -> Config
setCredentials new config = config {configCredentials = new}

-- | The database to SELECT; 0 by default.
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

-- | Which protocol to ask for; 'PreferResp3' by default.
--
-- @since 0.1.0.0
setProtocol :: ProtocolVersion -> Config -> Config
setProtocol new config = config {configProtocol = new}

-- | Seconds for connect, TLS and handshake together; 5 by default.
--
-- @since 0.1.0.0
setConnectTimeout :: Double -> Config -> Config
setConnectTimeout new config = config {configConnectTimeout = new}

-- | Seconds from submitting a command to its reply; 5 by default, 'Nothing'
-- waits for ever.
--
-- @since 0.1.0.0
setCommandTimeout :: Maybe Double -> Config -> Config
setCommandTimeout new config = config {configCommandTimeout = new}

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

-- | The pause between two attempts, 10 ms to 1 s by default.
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

-- | Seconds of silence, with replies outstanding, before the peer is probed;
-- after as many more the connection is closed. A peer that goes on reading what
-- is sent to it is not silent. 'Nothing': never. 2.5 by default.
--
-- @since 0.1.0.0
setSilenceLimit :: Maybe Double -> Config -> Config
setSilenceLimit new config = config {configSilenceLimit = new}

-- | Seconds of idleness after which TCP probes the peer; 'Nothing': never. 60 by
-- default.
--
-- @since 0.1.0.0
setKeepAlive :: Maybe Int -> Config -> Config
setKeepAlive new config = config {configKeepAlive = new}

-- | Seconds that sent bytes may stay unacknowledged, where the system has such
-- a limit; 'Nothing': the system's own. 15 by default.
--
-- @since 0.1.0.0
setTcpUserTimeout :: Maybe Double -> Config -> Config
setTcpUserTimeout new config = config {configTcpUserTimeout = new}

-- | Connections per node for blocking commands and exclusive use; 64 by
-- default.
--
-- @since 0.1.0.0
setMaxDedicated :: Int -> Config -> Config
setMaxDedicated new config = config {configMaxDedicated = new}

-- | Seconds between periodic checks of a cluster's slot map; 60 by default.
--
-- @since 0.1.0.0
setRefreshInterval :: Double -> Config -> Config
setRefreshInterval new config = config {configRefreshInterval = new}

-- | Least seconds between two refreshes of a cluster's slot map; 1 by default.
--
-- @since 0.1.0.0
setRefreshThrottle :: Double -> Config -> Config
setRefreshThrottle new config = config {configRefreshThrottle = new}

-- | Which nodes of a cluster answer commands that only read. Default: the
-- primary.
--
-- @since 0.1.0.0
setReadFrom :: ReadFrom -> Config -> Config
setReadFrom readFrom config = config {configReadFrom = readFrom}

-- | What to tell the program; nothing by default.
--
-- @since 0.1.0.0
setHooks :: Hooks -> Config -> Config
setHooks new config = config {configHooks = new}
