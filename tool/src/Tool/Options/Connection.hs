-- | The options that every mode shares: the server and the credentials.
module Tool.Options.Connection
  ( ConnectionOptions (..),
    TlsOptions (..),
    connectionOptions,
    connectionProblem,
    connectionReadFrom,
    namesServer,
    withPassword,
  )
where

import Control.Applicative (optional)
import Control.Exception (displayException)
import Data.Bifunctor (first)
import Data.ByteString (ByteString)
import Data.Char (toLower)
import Data.List (isPrefixOf)
import Data.Maybe (isJust)
import Data.Word (Word16)
import Options.Applicative
  ( Parser,
    ReadM,
    eitherReader,
    help,
    long,
    maybeReader,
    metavar,
    option,
    short,
    str,
    strOption,
    switch,
  )
import Redis.Config (Config, ReadFrom (..), configFromUrl, getReadFrom, isClusterConfig)
import Text.Read (readMaybe)
import Tool.Options.Help (described, optionalOption)
import Tool.Text (argumentBytes)

-- | The options of the connection.
data ConnectionOptions = ConnectionOptions
  { -- | 'Nothing' if the mode may start a server of its own.
    connectionHost :: Maybe ByteString,
    connectionPort :: Maybe Word16,
    connectionUser :: Maybe ByteString,
    connectionPassword :: Maybe ByteString,
    connectionTls :: TlsOptions,
    connectionCluster :: Bool,
    -- | Already checked when it was read.
    connectionUrl :: Maybe Config,
    connectionSocket :: Maybe FilePath,
    connectionDatabase :: Maybe Int,
    -- | Whether to use RESP2 instead of RESP3.
    connectionResp2 :: Bool,
    -- | Whether commands that only read go to replicas.
    connectionReplicas :: Bool
  }

-- | The options of TLS.
data TlsOptions = TlsOptions
  { tlsWanted :: Bool,
    tlsAuthority :: Maybe FilePath,
    tlsCertificate :: Maybe FilePath,
    tlsKey :: Maybe FilePath,
    tlsInsecure :: Bool,
    tlsServerName :: Maybe ByteString
  }
  deriving stock (Eq, Show)

-- | Compares the values of the options.
instance Eq ConnectionOptions where
  one == other = parts one == parts other
    where
      parts options =
        ( ( connectionHost options,
            connectionPort options,
            connectionUser options,
            connectionPassword options
          ),
          (connectionTls options, connectionCluster options),
          (show <$> connectionUrl options, connectionSocket options, connectionDatabase options),
          (connectionResp2 options, connectionReplicas options)
        )

-- | Hides the password.
instance Show ConnectionOptions where
  showsPrec depth options =
    showParen (depth > 10) $
      showString "ConnectionOptions "
        . showsPrec 11 (connectionHost options, connectionPort options, connectionUser options)
        . showString (maybe " no password " (const " <password> ") (connectionPassword options))
        . showsPrec 11 (connectionTls options, connectionCluster options)
        . showsPrec
          11
          ( connectionUrl options,
            connectionSocket options,
            connectionDatabase options,
            connectionResp2 options,
            connectionReplicas options
          )

-- | Parses the options of the connection.
connectionOptions :: Parser ConnectionOptions
connectionOptions =
  ConnectionOptions
    <$> optional
      ( bytes
          [ short 'h',
            long "host",
            metavar "HOST",
            help "Server, or any node of the cluster"
          ]
      )
    <*> optional (option portNumber (short 'p' <> described "port" "PORT" "Port (6379)"))
    <*> optional (bytes [short 'u', long "user", metavar "NAME", help "ACL user"])
    <*> optional
      ( bytes
          [ short 'a',
            long "password",
            metavar "TEXT",
            help "Password; else the environment variable REDISCLI_AUTH"
          ]
      )
    <*> tlsOptions
    <*> switch (short 'c' <> long "cluster" <> help "The server is a node of a cluster")
    <*> optionalOption
      url
      "url"
      "URL"
      "All of it in one: redis://user:password@host:port/database, rediss://, redis+cluster://, \
      \unix:///path (valkey as redis)"
    <*> optionalOption
      str
      "socket"
      "PATH"
      "The server's Unix socket, instead of host and port"
    <*> optionalOption database "db" "NUMBER" "Database to select (0)"
    <*> switch (long "resp2" <> help "Speak RESP2 (default: RESP3 where the server knows it)")
    <*> switch
      (long "read-replicas" <> help "In a cluster, send commands that only read to replicas")
  where
    bytes modifiers = argumentBytes <$> strOption (mconcat modifiers)

tlsOptions :: Parser TlsOptions
tlsOptions =
  TlsOptions
    <$> switch (short 't' <> long "tls" <> help "Speak TLS")
    <*> optional (file "cacert" "Trust this authority (PEM) instead of the system's")
    <*> optional (file "cert" "Show this client certificate (PEM)")
    <*> optional (file "key" "Its private key (PEM)")
    <*> switch (long "insecure" <> help "Do not verify the server's certificate")
    <*> optionalOption utf8 "sni" "NAME" "Ask for, and verify, this server name"
  where
    file name text = strOption (long name <> metavar "FILE" <> help text)
    utf8 = maybeReader (Just . argumentBytes)

-- The error describes the problem without repeating the URL, which may contain a password. The
-- program reads the counts of the servers that it loads, so it must know which servers these are.
url :: ReadM Config
url = eitherReader $ \text ->
  if any
    (`isPrefixOf` map toLower text)
    [ scheme
        <> kind
      | scheme <- ["redis", "rediss", "valkey", "valkeys"],
        kind <- ["+sentinel:", "+group:"]
    ]
    then
      Left
        ( takeWhile (/= ':') text
            <> " names servers that change: give one of them, by redis:// or --host"
        )
    else first displayException (configFromUrl (argumentBytes text))

database :: ReadM Int
database = eitherReader $ \text -> case readMaybe text of
  Just number | number >= 0 && number <= (0x7fffffff :: Integer) -> Right (fromInteger number)
  _ -> Left ("a database is a number from 0, not " <> show text)

portNumber :: ReadM Word16
portNumber = eitherReader $ \text -> case readMaybe text of
  Just number | number > (0 :: Integer) && number <= 65535 -> Right (fromInteger number)
  _ -> Left ("a port is a number from 1 to 65535, not " <> show text)

-- | Where commands that only read go, by the option or by the URL.
connectionReadFrom :: ConnectionOptions -> ReadFrom
connectionReadFrom options
  | connectionReplicas options = PreferReplica
  | otherwise = maybe ReadPrimary getReadFrom (connectionUrl options)

-- | The problem of a combination of options, in one line. The flag says whether the mode starts a
-- server of its own if no host is given.
connectionProblem :: Bool -> ConnectionOptions -> Maybe String
connectionProblem ownServer options
  | Just "" <- connectionHost options = Just "--host is empty"
  | Just "" <- tlsServerName (connectionTls options) = Just "--sni is empty"
  | Just _ <- connectionUrl options,
    name : _ <- besideUrl =
    Just (name <> " and --url exclude each other" <> inUrl name)
  | Just _ <- connectionSocket options,
    name : _ <- besideSocket =
    Just (name <> " and --socket exclude each other")
  | connectionReplicas options, not isCluster = Just "--read-replicas needs --cluster"
  | not (namesServer options),
    ownServer,
    name : _ <- needHost =
    Just (name <> " needs --host: without a host the program starts its own server")
  | Just _ <- connectionUser options,
    Nothing <- connectionPassword options =
    Just "--user needs a password (--password, or REDISCLI_AUTH)"
  | not (tlsWanted tls),
    name : _ <- needTls =
    Just
      ( name
          <> " needs --tls"
          <> (if isJust (connectionUrl options) then "; a URL takes ?ca=FILE and the like" else "")
      )
  | otherwise = case (tlsCertificate tls, tlsKey tls) of
    (Just _, Nothing) -> Just "--cert needs --key"
    (Nothing, Just _) -> Just "--key needs --cert"
    _
      | tlsInsecure tls,
        Just _ <- tlsAuthority tls ->
        Just "--insecure and --cacert exclude each other"
    _ -> Nothing
  where
    tls = connectionTls options
    isCluster = connectionCluster options || maybe False isClusterConfig (connectionUrl options)
    inUrl name = if name == "--tls" then ": a URL says rediss://, and ?ca=FILE" else ""
    besideUrl =
      ["--host" | Just _ <- [connectionHost options]]
        <> ["--socket" | Just _ <- [connectionSocket options]]
        <> ["--cluster" | connectionCluster options]
        <> ["--port" | Just _ <- [connectionPort options]]
        <> ["--user" | Just _ <- [connectionUser options]]
        <> ["--password" | Just _ <- [connectionPassword options]]
        <> ["--tls" | tlsWanted tls]
    besideSocket =
      ["--host" | Just _ <- [connectionHost options]]
        <> ["--port" | Just _ <- [connectionPort options]]
        <> ["--cluster" | connectionCluster options]
        <> ["--tls" | tlsWanted tls]
    needHost =
      ["--port" | Just _ <- [connectionPort options]]
        <> ["--user" | Just _ <- [connectionUser options]]
        <> ["--password" | Just _ <- [connectionPassword options]]
        -- A private cluster has no replicas.
        <> ["--read-replicas" | connectionReplicas options]
        <> needTls
    needTls =
      ["--cacert" | Just _ <- [tlsAuthority tls]]
        <> ["--cert" | Just _ <- [tlsCertificate tls]]
        <> ["--key" | Just _ <- [tlsKey tls]]
        <> ["--insecure" | tlsInsecure tls]
        <> ["--sni" | Just _ <- [tlsServerName tls]]

-- | Whether the options name a server.
namesServer :: ConnectionOptions -> Bool
namesServer options =
  isJust (connectionHost options)
    || isJust (connectionUrl options)
    || isJust (connectionSocket options)

-- | Uses this password if the options have a server but no password.
withPassword :: Maybe ByteString -> ConnectionOptions -> ConnectionOptions
withPassword fallback options
  | namesServer options,
    Nothing <- connectionUrl options,
    Nothing <- connectionPassword options =
    options {connectionPassword = fallback}
  | otherwise = options
