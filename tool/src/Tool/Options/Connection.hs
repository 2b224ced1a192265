-- | The options that every mode shares: the server and the credentials.
module Tool.Options.Connection
  ( ConnectionOptions (..),
    Url (..),
    TlsOptions (..),
    connectionOptions,
    connectionProblem,
    connectionReadFrom,
    connectionIsCluster,
    namesServer,
    withPassword,
  )
where

import Control.Exception (displayException)
import Control.Monad (mfilter)
import Data.Bifunctor (bimap)
import Data.ByteString (ByteString)
import Data.Char (toLower)
import Data.Foldable (asum)
import Data.Function (on)
import Data.List (isPrefixOf)
import Data.Maybe (isJust, isNothing, listToMaybe)
import Data.Word (Word16)
import Options.Applicative
import Redis.Config (Config, ReadFrom (..), Secret, configFromUrl, getReadFrom, isClusterConfig, toSecret)
import Text.Read (readMaybe)
import Tool.Options.Common
import Tool.Text (argumentBytes)

data ConnectionOptions = ConnectionOptions
  { -- | 'Nothing' if the mode may start a server of its own.
    connectionHost :: Maybe ByteString,
    connectionPort :: Maybe Word16,
    connectionUser :: Maybe ByteString,
    connectionPassword :: Maybe Secret,
    connectionTls :: TlsOptions,
    connectionCluster :: Bool,
    -- | Already checked when it was read.
    connectionUrl :: Maybe Url,
    connectionSocket :: Maybe FilePath,
    connectionDatabase :: Maybe Int,
    -- | Whether to use RESP2 instead of RESP3.
    connectionResp2 :: Bool,
    -- | Whether commands that only read go to replicas.
    connectionReplicas :: Bool
  }
  deriving stock (Eq, Show)

-- | The configuration of a URL. Shows no password.
newtype Url = Url {urlConfig :: Config}
  deriving newtype (Show)

instance Eq Url where
  (==) = (==) `on` show

data TlsOptions = TlsOptions
  { tlsWanted :: Bool,
    tlsAuthority :: Maybe FilePath,
    tlsCertificate :: Maybe FilePath,
    tlsKey :: Maybe FilePath,
    tlsInsecure :: Bool,
    tlsServerName :: Maybe ByteString
  }
  deriving stock (Eq, Show)

connectionOptions :: Parser ConnectionOptions
connectionOptions =
  ConnectionOptions
    <$> optional (bytes (short 'h' <> described "host" "HOST" "Server, or any node of the cluster"))
    <*> optional (option port (short 'p' <> described "port" "PORT" "Port (6379)"))
    <*> optional (bytes (short 'u' <> described "user" "NAME" "ACL user"))
    <*> optional (toSecret <$> bytes (short 'a' <> described "password" "TEXT" password))
    <*> tlsOptions
    <*> switch (short 'c' <> long "cluster" <> help "The server is a node of a cluster")
    <*> optionalOption url "url" "URL" urls
    <*> optionalOption str "socket" "PATH" "The server's Unix socket, instead of host and port"
    <*> optionalOption database "db" "NUMBER" "Database to select (0)"
    <*> switch (long "resp2" <> help "Speak RESP2 (default: RESP3 where the server knows it)")
    <*> switch
      (long "read-replicas" <> help "In a cluster, send commands that only read to replicas")
  where
    bytes modifiers = argumentBytes <$> strOption modifiers
    port = number "a port is a number from 1 to 65535, not " 1 65535
    database = number "a database is a number from 0, not " 0 0x7fffffff
    urls =
      "All of these in one: redis://user:password@host:port/database, rediss://, redis+cluster://, \
      \unix:///path (valkey as redis)"
    password = "Password; else the environment variable REDISCLI_AUTH"

tlsOptions :: Parser TlsOptions
tlsOptions =
  TlsOptions
    <$> switch (short 't' <> long "tls" <> help "Speak TLS")
    <*> file "cacert" "Trust this authority (PEM) instead of the system's"
    <*> file "cert" "Show this client certificate (PEM)"
    <*> file "key" "Its private key (PEM)"
    <*> switch (long "insecure" <> help "Do not verify the server's certificate")
    <*> optionalOption utf8 "sni" "NAME" "Ask for, and verify, this server name"
  where
    file name = optionalOption str name "FILE"
    utf8 = maybeReader (Just . argumentBytes)

-- The error describes the problem without repeating the URL, which may contain a password. The
-- program reads the counts of the servers that it loads, so it must know which servers these are.
url :: ReadM Url
url = eitherReader $ \text ->
  if any (`isPrefixOf` map toLower text) changing
    then Left (takeWhile (/= ':') text <> " names servers that change: " <> instead)
    else bimap displayException Url (configFromUrl (argumentBytes text))
  where
    changing = (<>) <$> ["redis", "rediss", "valkey", "valkeys"] <*> ["+sentinel:", "+group:"]
    instead = "give one of them, by redis:// or --host"

number :: Num number => String -> Integer -> Integer -> ReadM number
number refusal lowest highest =
  readWith (refusal <>) $ fmap fromInteger . mfilter (\it -> it >= lowest && it <= highest) . readMaybe

-- | Where commands that only read go, by the option or by the URL.
connectionReadFrom :: ConnectionOptions -> ReadFrom
connectionReadFrom options
  | connectionReplicas options = PreferReplica
  | otherwise = maybe ReadPrimary (getReadFrom . urlConfig) (connectionUrl options)

-- | The problem of a combination of options, in one line. The flag says whether the mode starts a
-- server of its own if no host is given.
connectionProblem :: Bool -> ConnectionOptions -> Maybe String
connectionProblem ownServer options =
  asum
    [ refused (connectionHost options == Just "") "--host is empty",
      refused (tlsServerName tls == Just "") "--sni is empty",
      firstOf (isJust (connectionUrl options)) besideUrl $ \name ->
        name <> " and --url exclude each other" <> inUrl name,
      firstOf (snd socket) [host, port, cluster, encrypted] (<> " and --socket exclude each other"),
      refused (connectionReplicas options && not (connectionIsCluster options)) "--read-replicas needs --cluster",
      firstOf (ownServer && not (namesServer options)) needHost (<> hostless),
      refused (isJust (connectionUser options) && isNothing (connectionPassword options)) passwordless,
      firstOf (not (tlsWanted tls)) needTls $ \name ->
        name <> " needs --tls"
          <> (if isJust (connectionUrl options) then "; a URL takes ?ca=FILE and the like" else ""),
      refused (isJust (tlsCertificate tls) && isNothing (tlsKey tls)) "--cert needs --key",
      refused (isJust (tlsKey tls) && isNothing (tlsCertificate tls)) "--key needs --cert",
      refused (tlsInsecure tls && isJust (tlsAuthority tls)) "--insecure and --cacert exclude each other"
    ]
  where
    tls = connectionTls options
    hostless = " needs --host: without a host the program starts its own server"
    passwordless = "--user needs a password (--password, or REDISCLI_AUTH)"
    inUrl name = if name == "--tls" then ": a URL says rediss://, and ?ca=FILE" else ""
    firstOf holds names problem = listToMaybe [problem name | holds, (name, True) <- names]
    host = ("--host", isJust (connectionHost options))
    port = ("--port", isJust (connectionPort options))
    socket = ("--socket", isJust (connectionSocket options))
    login =
      [ ("--user", isJust (connectionUser options)),
        ("--password", isJust (connectionPassword options))
      ]
    cluster = ("--cluster", connectionCluster options)
    encrypted = ("--tls", tlsWanted tls)
    besideUrl = [host, socket, cluster, port] <> login <> [encrypted]
    -- A private cluster has no replicas.
    needHost = port : login <> [("--read-replicas", connectionReplicas options)] <> needTls
    needTls =
      [ ("--cacert", isJust (tlsAuthority tls)),
        ("--cert", isJust (tlsCertificate tls)),
        ("--key", isJust (tlsKey tls)),
        ("--insecure", tlsInsecure tls),
        ("--sni", isJust (tlsServerName tls))
      ]

connectionIsCluster :: ConnectionOptions -> Bool
connectionIsCluster options =
  connectionCluster options || any (isClusterConfig . urlConfig) (connectionUrl options)

namesServer :: ConnectionOptions -> Bool
namesServer options =
  isJust (connectionHost options) || isJust (connectionUrl options) || isJust (connectionSocket options)

-- | Uses this password if the options have a server but no password.
withPassword :: Maybe ByteString -> ConnectionOptions -> ConnectionOptions
withPassword fallback options
  | namesServer options,
    Nothing <- connectionUrl options =
    options {connectionPassword = connectionPassword options <|> (toSecret <$> fallback)}
  | otherwise = options
