-- | Checks a configuration, before anything connects.
--
-- The reasons of errors are fixed texts and never repeat what the user gave: a password in the
-- wrong place must not end up in a log.
module Redis.Internal.ConfigCheck
  ( ConfigError (..),
    validateConfig,
  )
where

import Control.Exception (Exception (..), SomeException (..))
import Control.Monad (unless)
import Data.ByteString qualified as ByteString
import Data.Foldable (for_, toList)
import Data.Maybe (isJust)
import Data.Typeable (cast)
import Redis.Duration (inSeconds, microseconds, seconds)
import Redis.Error (Endpoint (..))
import Redis.Internal.Config

-- | A setting, or a part of a URL, that cannot be used.
data ConfigError = ConfigError
  { -- | The setting, option or part of the URL.
    configErrorPart :: String,
    -- | What is wrong with it, or what it should be.
    configErrorReason :: String
  }
  deriving stock (Eq, Show)

-- | A thrown 'ConfigError' prints as 'displayException' says, also if nobody catches it.
instance Exception ConfigError where
  toException = SomeException . ThrownConfigError
  fromException (SomeException thrown) = (\(ThrownConfigError failure) -> failure) <$> cast thrown
  displayException ConfigError {configErrorPart, configErrorReason} =
    configErrorPart <> ": " <> configErrorReason

-- | The wrapper in which a 'ConfigError' is thrown, as "Redis.Error" does it.
newtype ThrownConfigError = ThrownConfigError ConfigError

instance Show ThrownConfigError where
  showsPrec _ (ThrownConfigError failure) = showString (displayException failure)

instance Exception ThrownConfigError where
  displayException (ThrownConfigError failure) = displayException failure

-- | Returns a configuration unchanged if every setting makes sense, otherwise the first error. \(O(n)\) in the seeds.
validateConfig :: Config -> Either ConfigError Config
validateConfig config = do
  for_ endpoints endpointIsUsable
  case configTopology config of
    Cluster _ -> noSockets "the nodes of a cluster have hosts and ports, no Unix sockets"
    Group _ -> noSockets "a primary and its replicas are found by hosts and ports, not by Unix sockets"
    Sentinels name _ -> noSockets "sentinels have hosts and ports, no Unix sockets" *> named "sentinel name" name
    Standalone _ ->
      check "nodes to read from" "must be the primary with a single server: replicas are for a cluster (clusterConfig, redis+cluster://, or the option cluster=true) or a primary with replicas (groupConfig, redis+group://, sentinelConfig, redis+sentinel://)" $
        configReadFrom config == ReadPrimary
  check "database" "must not be negative" (configDatabase config >= 0)
  for_ (configClientName config) (named "client name")
  for_ (configTls config) $ \tls ->
    check "server name" "TLS over a Unix socket needs one, or no verification" $
      not (tlsVerify tls) || isJust (tlsServerName tls) || null sockets
  positive "connect timeout" (configConnectTimeout config)
  for_ (configCommandTimeout config) (positive "command timeout")
  for_ (configMuxCount config) (between "mux count" 1 1024)
  let limits = configLimits config
  -- Sizes computed from larger limits would overflow.
  between "in-flight limit" 1 0x40000000 (limitInFlight limits)
  atLeastOne "queued bytes limit" (limitQueuedBytes limits)
  between "bulk bytes limit" 1 0x10000000000 (limitBulkBytes limits)
  atLeastOne "elements limit" (limitElements limits)
  atLeastOne "depth limit" (limitDepth limits)
  atLeastOne "max attempts" (configMaxAttempts config)
  let backoff = configBackoff config
  positive "first backoff" (inSeconds (backoffFirst backoff))
  positive "backoff cap" (inSeconds (backoffCap backoff))
  check "backoff cap" "must not be less than the first backoff" (backoffCap backoff >= backoffFirst backoff)
  case configPolling config of
    PollUpTo limit ->
      check "polling" "must be between a microsecond and a second" (limit >= microseconds 1 && limit <= seconds 1)
    NeverPoll -> Right ()
  for_ (configSilenceLimit config) (positive "silence limit")
  for_ (configKeepAlive config) (between "keepalive" 1 32767)
  for_ (configTcpUserTimeout config) (positive "TCP user timeout")
  atLeastOne "max dedicated" (configMaxDedicated config)
  for_ (configDedicatedIdle config) (positive "idle time of dedicated connections")
  case configReadFrom config of
    SameZone zone -> check "zone to read from" "must not be empty" (not (ByteString.null zone))
    _ -> Right ()
  positive "refresh interval" (configRefreshInterval config)
  positive "refresh throttle" (configRefreshThrottle config)
  for_ (configCaching config) $ \caching -> do
    atLeastOne "caching bytes" (cachingBytes caching)
    check "caching" "needs RESP3, in which servers tell of changes" (configProtocol config /= OnlyResp2)
    case cachingTracking caching of
      TrackReads -> Right ()
      TrackPrefixes prefixes ->
        check "tracked prefixes" "must not begin with each other" $
          and [not (one `ByteString.isPrefixOf` other) | (at, one) <- numbered prefixes, (at', other) <- numbered prefixes, at /= at']
  pure config
  where
    numbered = zip [0 :: Int ..] . toList
    endpoints = toList (topologySeeds (configTopology config))
    sockets = [path | UnixEndpoint path <- endpoints]
    noSockets reason = check "topology" reason (null sockets)
    named part = check part "must be printable ASCII without spaces, and not empty" . isName

endpointIsUsable :: Endpoint -> Either ConfigError ()
endpointIsUsable = \case
  TcpEndpoint host port -> do
    check "host" "must not be empty, nor contain spaces or control characters" $
      not (ByteString.null host) && ByteString.all (\byte -> byte > 32 && byte /= 127) host
    check "port" "must be between 1 and 65535" (port > 0)
  UnixEndpoint path ->
    check "path" "must not be empty, nor contain a null character" $
      not (null path) && notElem '\0' path

check :: String -> String -> Bool -> Either ConfigError ()
check configErrorPart configErrorReason holds =
  unless holds (Left ConfigError {configErrorPart, configErrorReason})

-- | Checks a number of seconds: neither zero nor infinite nor NaN.
positive :: String -> Double -> Either ConfigError ()
positive part amount =
  check part "must be a number of seconds, more than 0 and at most 1000000000" (amount > 0 && amount <= 1e9)

atLeastOne :: String -> Int -> Either ConfigError ()
atLeastOne part number = check part "must be at least 1" (number >= 1)

between :: String -> Int -> Int -> Int -> Either ConfigError ()
between part least most number =
  check part ("must be between " <> show least <> " and " <> show most) (number >= least && number <= most)
