-- | Reads configurations from URLs.
--
-- > redis://[[user]:password@]host[:port][,host[:port]…][/database][?option=value&…]
-- > redis+sentinel://[[user]:password@]host[:port][,host[:port]…]/name[/database][?option=value&…]
-- > unix://[[user]:password@]/path/of/the/socket[?option=value&…]
--
-- @rediss://@ is the same over TLS, and so is every other scheme with two @s@; @valkey@ means the same as
-- @redis@. @redis+cluster://@, or the option @cluster=true@, is for a cluster, and @redis+group://@ for a
-- primary with its replicas; both may have several hosts. The hosts of @redis+sentinel://@ are sentinels, by
-- default at port 26379; the credentials before them are for the servers. IPv6 addresses stand in brackets.
-- In user, password, host, path and values, write a character that has a meaning in a URL
-- (@% \/ ? # \@ : , & =@) as @%@ and two hexadecimal digits; a plus sign is a plus sign.
--
-- An error names the part that is wrong and never repeats its text: if a password has an unescaped
-- character, its rest may count as almost any part of the URL, but not as the name of an option, which alone is repeated.
module Redis.Internal.ConfigUrl (configFromUrl, percentDecoded) where

import Control.Applicative ((<|>))
import Control.Monad (foldM, unless, when)
import Data.Bits (shiftL, (.|.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Char (digitToInt, isAsciiLower, isDigit, isHexDigit, toLower)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isJust)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Redis.Duration (microseconds)
import Redis.Error (Endpoint (..), Port)
import Redis.Internal.Config
import Redis.Internal.ConfigCheck (ConfigError (..), validateConfig)
import Text.Read (readMaybe)

-- | Makes a configuration from a URL, and checks it like 'validateConfig'. The options, in
-- alphabetical order:
--
-- [@ca@] PEM file of certificate authorities, for TLS.
-- [@cert@, @key@] PEM files of this client's certificate and key, for TLS.
-- [@client_name@] The client's name in the server's CLIENT LIST.
-- [@cluster@] @true@ or @false@: whether the hosts are nodes of a cluster. Default: as the scheme says.
-- [@connect_timeout@] Seconds.
-- [@db@] The number of the database. It may stand in the path instead, except for a Unix socket.
-- [@dedicated_idle@] Seconds, or @none@.
-- [@keepalive@] Whole seconds, or @none@.
-- [@max_attempts@, @max_dedicated@] Numbers.
-- [@mux_count@] A number, or @auto@.
-- [@polling@] Microseconds, or @off@.
-- [@protocol@] @2@ or @3@.
-- [@read_from@] @primary@, or for a cluster or a group @replica@, @any@, @latency@, or
--   @zone:@ and the name of an availability zone.
-- [@reply_checks@] @true@ or @false@: whether the client checks that replies belong to their commands.
-- [@redirect@] @true@ or @false@: whether a single server may send commands to another server.
-- [@refresh_interval@, @refresh_throttle@] Seconds.
-- [@sentinel_password@, @sentinel_user@] The credentials for sentinels.
-- [@sentinel_tls@] @true@ or @false@: whether sentinels speak TLS. Default: as the servers do. If
--   they alone do, the options for TLS are for them.
-- [@server_name@] The name in the server's certificate, for TLS.
-- [@silence_limit@] Seconds, or @none@.
-- [@timeout@] Seconds for a command, or @none@.
-- [@user_timeout@] Seconds that sent bytes may stay unacknowledged, or @none@.
-- [@verify@] @true@ or @false@: whether the certificate must be valid, for TLS.
--
-- \(O(n)\).
configFromUrl :: ByteString -> Either ConfigError Config
configFromUrl url = do
  (scheme, rest) <- schemeAndRest url
  when (Char8.elem '#' rest) (wrong "URL" "has no place for a #, which is written %23")
  let (beforeQuery, query) = Char8.drop 1 <$> Char8.break (== '?') rest
      (authority, path) = Char8.break (== '/') beforeQuery
  -- The text behind the host has no @, unless a password with an unescaped / or ? ends at it.
  when
    (Char8.elem '@' query || (schemeKind scheme /= ForSocket && Char8.elem '@' path))
    (wrong "credentials" "characters such as / ? # @ are written as % and two hexadecimal digits")
  (credentials, hosts) <- credentialsAndHosts authority
  options <- parseOptions query
  asCluster <- traverse (boolean "option cluster") (Map.lookup "cluster" options)
  when (asCluster == Just False && schemeKind scheme == ForCluster) (wrong "option cluster" "must not be false with redis+cluster://")
  when (asCluster == Just True && schemeKind scheme `elem` [ForGroup, ForSentinels]) (wrong "option cluster" "is not for a primary with replicas")
  sentinelsByTls <- traverse (boolean "option sentinel_tls") (Map.lookup "sentinel_tls" options)
  let isCluster = asCluster == Just True || schemeKind scheme == ForCluster
  (topology, pathDatabase) <- case schemeKind scheme of
    ForSocket -> do
      unless (ByteString.null hosts) (wrong "host" "a Unix socket has none: three slashes, then its path")
      when isCluster (wrong "option cluster" "the nodes of a cluster have hosts and ports, no Unix sockets")
      file <- decoded "path" path >>= filePath "path"
      pure (Standalone (UnixEndpoint file), Nothing)
    ForSentinels -> do
      seeds <- parseHosts sentinelPort hosts
      let (rawName, afterName) = Char8.break (== '/') (Char8.drop 1 path)
      name <- decoded "path" rawName
      when (ByteString.null name) (wrong "path" "must begin with the name by which the sentinels know the primary")
      (,) (Sentinels name seeds) <$> databaseFromPath afterName
    kind -> (,) <$> (parseHosts defaultPort hosts >>= tcpTopology isCluster kind) <*> databaseFromPath path
  let start =
        (defaultConfig topology)
          { configCredentials = maybe NoCredentials FixedCredentials credentials,
            configTls = if schemeTls scheme then Just tlsDefaults else Nothing,
            configSentinelTls = case sentinelsByTls of
              Just True | not (schemeTls scheme) -> Just (Just tlsDefaults)
              Just False -> Just Nothing
              _ -> Nothing
          }
  when (isJust pathDatabase && Map.member "db" options) (wrong "option db" "stands in the path already")
  foldM applyOption start {configDatabase = fromMaybe (configDatabase start) pathDatabase} (Map.toList options) >>= certificateAndKey options >>= sentinelCredentials options >>= validateConfig
  where
    tcpTopology isCluster kind = \case
      seeds
        | isCluster -> Right (Cluster seeds)
        | kind == ForGroup -> Right (Group seeds)
      seed :| [] -> Right (Standalone seed)
      _ -> wrong "host" "several hosts are for a cluster (redis+cluster://, or the option cluster=true) or a primary with replicas (redis+group://)"

-- | What a scheme says about the servers.
data Kind = ForServer | ForCluster | ForGroup | ForSentinels | ForSocket
  deriving stock (Eq)

data Scheme = Scheme
  { schemeTls :: Bool,
    schemeKind :: Kind
  }

schemeAndRest :: ByteString -> Either ConfigError (Scheme, ByteString)
schemeAndRest url = do
  let (name, rest) = ByteString.breakSubstring "://" url
      (family, kind) = Char8.break (== '+') (Char8.map toLower name)
  scheme <- case Scheme <$> lookup family tlsOf <*> lookup kind kinds of
    Just found -> Right found
    Nothing | (family, kind) == ("unix", "") -> Right (Scheme False ForSocket)
    _ -> wrong "scheme" "must be redis://, redis+cluster://, redis+group://, redis+sentinel://, the same with rediss, valkey or valkeys, or unix://"
  pure (scheme, ByteString.drop 3 rest)
  where
    tlsOf = [("redis", False), ("rediss", True), ("valkey", False), ("valkeys", True)]
    kinds = [("", ForServer), ("+cluster", ForCluster), ("+group", ForGroup), ("+sentinel", ForSentinels)]

credentialsAndHosts :: ByteString -> Either ConfigError (Maybe Credentials, ByteString)
credentialsAndHosts authority = case Char8.split '@' authority of
  [] -> Right (Nothing, "")
  [hosts] -> Right (Nothing, hosts)
  [userInfo, hosts] -> (\credentials -> (credentials, hosts)) <$> parseCredentials userInfo
  -- More than one @ could be a part of a password, or credentials repeated for each host.
  _ -> wrong "credentials" "stand once, before all hosts, and an @ in them is written %40"

parseCredentials :: ByteString -> Either ConfigError (Maybe Credentials)
parseCredentials "" = Right Nothing
parseCredentials userInfo = do
  let (rawUser, rawPassword) = Char8.break (== ':') userInfo
  when (ByteString.null rawPassword) (wrong "credentials" "a colon and a password must follow the user")
  user <- decoded "credentials" rawUser
  password <- decoded "credentials" (Char8.drop 1 rawPassword)
  when (ByteString.null user && ByteString.null password) (wrong "credentials" "the password is empty")
  pure $
    Just Credentials {credentialsUser = if ByteString.null user then Nothing else Just user, credentialsPassword = toSecret password}

-- | Reads the hosts, given the port of a host that names none.
parseHosts :: Port -> ByteString -> Either ConfigError (NonEmpty Endpoint)
parseHosts usual hosts = case Char8.split ',' hosts of
  [] -> wrong "host" "is missing"
  one : others -> (:|) <$> parseHost usual one <*> traverse (parseHost usual) others

parseHost :: Port -> ByteString -> Either ConfigError Endpoint
parseHost usual text
  | Just bracketed <- ByteString.stripPrefix "[" text = do
    let (address, closing) = Char8.break (== ']') bracketed
        rest = Char8.drop 1 closing
    host <- decoded "host" address
    unless (":" `ByteString.isInfixOf` host) (wrong "host" "only an IPv6 address stands in brackets")
    when (ByteString.null closing) (wrong "host" "the closing bracket is missing")
    unless (ByteString.null rest || ":" `ByteString.isPrefixOf` rest) (wrong "host" "only a port can follow the closing bracket")
    TcpEndpoint host <$> portFrom rest
  | otherwise = do
    let (rawHost, rest) = Char8.break (== ':') text
    host <- decoded "host" rawHost
    when (Char8.elem ':' (Char8.drop 1 rest)) (wrong "host" "an IPv6 address stands in brackets")
    port <- portFrom rest
    when (ByteString.null host) (wrong "host" "is missing")
    pure (TcpEndpoint host port)
  where
    -- The port behind its colon.
    portFrom rest = if ByteString.null rest then Right usual else parsePort (Char8.drop 1 rest)

defaultPort, sentinelPort :: Port
defaultPort = 6379
sentinelPort = 26379

parsePort :: ByteString -> Either ConfigError Port
parsePort text = do
  number <- whole "port" text
  unless (number >= 1 && number <= 65535) (wrong "port" "must be between 1 and 65535")
  pure (fromIntegral number)

databaseFromPath :: ByteString -> Either ConfigError (Maybe Int)
databaseFromPath path
  | ByteString.null digits = Right Nothing
  | otherwise = Just <$> whole "database" digits
  where
    digits = Char8.drop 1 path

-- | The options by name, with decoded values.
parseOptions :: ByteString -> Either ConfigError (Map ByteString ByteString)
parseOptions query = foldM insert Map.empty (filter (not . ByteString.null) (Char8.split '&' query))
  where
    insert options entry = do
      let (name, rest) = Char8.break (== '=') entry
          part = optionPart name
      when (ByteString.null rest) (wrong part "has no value")
      when (Map.member name options) (wrong part "is given twice")
      value <- decoded part (Char8.drop 1 rest)
      when (ByteString.null value) (wrong part "has no value")
      pure (Map.insert name value options)

-- | How errors name an option: by its name only if it looks like the name of an option.
optionPart :: ByteString -> String
optionPart name
  | not (ByteString.null name) && Char8.length name <= 32 && Char8.all (\c -> isAsciiLower c || c == '_') name =
    "option " <> Char8.unpack name
  | otherwise = "option"

applyOption :: Config -> (ByteString, ByteString) -> Either ConfigError Config
applyOption config (name, value) = case name of
  "ca" -> filePath part value >>= \file -> tls (\old -> old {tlsCaFile = Just file})
  _ | name `elem` ["cert", "key"] -> tls id
  "client_name" -> Right config {configClientName = Just value}
  -- Was read before the others, as sentinel_tls was.
  "cluster" -> Right config
  "connect_timeout" -> (\new -> config {configConnectTimeout = new}) <$> seconds part value
  "db" -> (\new -> config {configDatabase = new}) <$> whole part value
  "dedicated_idle" -> (\new -> config {configDedicatedIdle = new}) <$> orNone (seconds part)
  "keepalive" -> (\new -> config {configKeepAlive = new}) <$> orNone (whole part)
  "max_attempts" -> (\new -> config {configMaxAttempts = new}) <$> whole part value
  "max_dedicated" -> (\new -> config {configMaxDedicated = new}) <$> whole part value
  "mux_count"
    | value == "auto" -> Right config {configMuxCount = Nothing}
    | otherwise -> (\new -> config {configMuxCount = Just new}) <$> whole part value
  "polling"
    | value == "off" -> Right config {configPolling = NeverPoll}
    | otherwise -> (\new -> config {configPolling = PollUpTo (microseconds (fromIntegral (new :: Int)))}) <$> whole part value
  "protocol" -> case value of
    "2" -> Right config {configProtocol = OnlyResp2}
    "3" -> Right config {configProtocol = PreferResp3}
    _ -> wrong part "must be 2 or 3"
  "read_from" -> case lookup value plainReads <|> (SameZone <$> ByteString.stripPrefix "zone:" value) of
    Just new -> Right config {configReadFrom = new}
    Nothing -> wrong part "must be primary, replica, any, latency, or zone: and the name of a zone"
  "refresh_interval" -> (\new -> config {configRefreshInterval = new}) <$> seconds part value
  "refresh_throttle" -> (\new -> config {configRefreshThrottle = new}) <$> seconds part value
  "reply_checks" -> (\new -> config {configReplyChecks = new}) <$> boolean part value
  "redirect" -> (\new -> config {configFollowsRedirects = new}) <$> boolean part value
  _ | name `elem` ["sentinel_password", "sentinel_tls", "sentinel_user"] -> config <$ sentinels
  "server_name" -> tls (\old -> old {tlsServerName = Just value})
  "silence_limit" -> (\new -> config {configSilenceLimit = new}) <$> orNone (seconds part)
  "timeout" -> (\new -> config {configCommandTimeout = new}) <$> orNone (seconds part)
  "user_timeout" -> (\new -> config {configTcpUserTimeout = new}) <$> orNone (seconds part)
  "verify" -> boolean part value >>= \verify -> tls (\old -> old {tlsVerify = verify})
  _ -> wrong part "is not known"
  where
    part = optionPart name
    plainReads = [("primary", ReadPrimary), ("replica", PreferReplica), ("any", ReadAny), ("latency", LowestLatency)]
    orNone reader
      | value == "none" = Right Nothing
      | otherwise = Just <$> reader value
    sentinels = case configTopology config of
      Sentinels _ _ -> Right ()
      _ -> wrong part "is for sentinels: redis+sentinel://"
    tls change = withTls part change config

-- | Changes how to speak TLS: to the servers, or to the sentinels if those alone speak it.
withTls :: String -> (TlsConfig -> TlsConfig) -> Config -> Either ConfigError Config
withTls part change config = case (configTls config, configSentinelTls config) of
  (Just old, _) -> Right config {configTls = Just (change old)}
  (Nothing, Just (Just old)) -> Right config {configSentinelTls = Just (Just (change old))}
  _ -> wrong part "is for TLS: rediss://, or the option sentinel_tls=true"

-- | Applies the options @cert@ and @key@, which make sense only together.
certificateAndKey :: Map ByteString ByteString -> Config -> Either ConfigError Config
certificateAndKey options config = case (Map.lookup "cert" options, Map.lookup "key" options) of
  (Nothing, Nothing) -> Right config
  (Just certificate, Just key) -> do
    files <- (,) <$> filePath "option cert" certificate <*> filePath "option key" key
    withTls "option cert" (\tls -> tls {tlsCertificate = Just files}) config
  (Just _, Nothing) -> wrong "option cert" "needs the option key"
  (Nothing, Just _) -> wrong "option key" "needs the option cert"

-- | Applies the credentials for sentinels: the user may be left out, the password may not.
sentinelCredentials :: Map ByteString ByteString -> Config -> Either ConfigError Config
sentinelCredentials options config = case (Map.lookup "sentinel_user" options, Map.lookup "sentinel_password" options) of
  (Nothing, Nothing) -> Right config
  (user, Just password) -> Right config {configSentinelCredentials = Just Credentials {credentialsUser = user, credentialsPassword = toSecret password}}
  (Just _, Nothing) -> wrong "option sentinel_user" "needs the option sentinel_password"

boolean :: String -> ByteString -> Either ConfigError Bool
boolean part = \case
  "true" -> Right True
  "false" -> Right False
  _ -> wrong part "must be true or false"

-- | Reads a whole number, of few enough digits for an 'Int'.
whole :: String -> ByteString -> Either ConfigError Int
whole part text
  | Char8.all isDigit text, Char8.length text <= 10, Just (number, "") <- Char8.readInt text = Right number
  | otherwise = wrong part "must be a whole number"

seconds :: String -> ByteString -> Either ConfigError Double
seconds part text = case Char8.split '.' text of
  [digits] | isNumber digits -> number
  [digits, fraction] | isNumber digits && isNumber fraction -> number
  _ -> wrong part "must be a number of seconds"
  where
    isNumber digits = not (ByteString.null digits) && Char8.length digits <= 10 && Char8.all isDigit digits
    number = maybe (wrong part "must be a number of seconds") Right (readMaybe (Char8.unpack text))

filePath :: String -> ByteString -> Either ConfigError FilePath
filePath part = either (const (wrong part "must be UTF-8")) (Right . Text.unpack) . Text.decodeUtf8'

decoded :: String -> ByteString -> Either ConfigError ByteString
decoded part = maybe (wrong part "a % must be followed by two hexadecimal digits") Right . percentDecoded

-- | Undoes percent-encoding. 'Nothing' if two hexadecimal digits do not follow each per cent sign. \(O(n)\).
percentDecoded :: ByteString -> Maybe ByteString
percentDecoded text = case Char8.split '%' text of
  [] -> Just ""
  plain : escaped -> ByteString.concat . (plain :) <$> traverse decode escaped
  where
    decode piece = case Char8.unpack (Char8.take 2 piece) of
      [high, low]
        | isHexDigit high && isHexDigit low ->
          Just (ByteString.cons (fromIntegral (digitToInt high `shiftL` 4 .|. digitToInt low)) (Char8.drop 2 piece))
      _ -> Nothing

wrong :: String -> String -> Either ConfigError a
wrong configErrorPart configErrorReason = Left ConfigError {configErrorPart, configErrorReason}
