-- | Where to connect and as whom: the options that every mode shares.
module Tool.Options.Connection
  ( ConnectionOptions (..),
    TlsOptions (..),
    connectionOptions,
    connectionProblem,
    withPassword,
  )
where

import Control.Applicative (optional)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
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
    strOption,
    switch,
  )
import Text.Read (readMaybe)

-- | What was said about the connection.
data ConnectionOptions = ConnectionOptions
  { -- | 'Nothing' where the mode may start a server of its own.
    connectionHost :: Maybe ByteString,
    connectionPort :: Maybe Word16,
    connectionUser :: Maybe ByteString,
    connectionPassword :: Maybe ByteString,
    connectionTls :: TlsOptions,
    connectionCluster :: Bool
  }
  deriving stock (Eq)

-- | What was said about TLS.
data TlsOptions = TlsOptions
  { tlsWanted :: Bool,
    tlsAuthority :: Maybe FilePath,
    tlsCertificate :: Maybe FilePath,
    tlsKey :: Maybe FilePath,
    tlsInsecure :: Bool,
    tlsServerName :: Maybe ByteString
  }
  deriving stock (Eq, Show)

-- | Hides the password.
instance Show ConnectionOptions where
  showsPrec depth options =
    showParen (depth > 10) $
      showString "ConnectionOptions "
        . showsPrec 11 (connectionHost options, connectionPort options, connectionUser options)
        . showString (maybe " no password " (const " <password> ") (connectionPassword options))
        . showsPrec 11 (connectionTls options, connectionCluster options)

-- | The parser.
connectionOptions :: Parser ConnectionOptions
connectionOptions =
  ConnectionOptions
    <$> optional (bytes [short 'h', long "host", metavar "HOST", help "Server, or any node of the cluster"])
    <*> optional (option portNumber (short 'p' <> long "port" <> metavar "PORT" <> help "Port (6379)"))
    <*> optional (bytes [short 'u', long "user", metavar "NAME", help "ACL user"])
    <*> optional (bytes [short 'a', long "password", metavar "TEXT", help "Password; else the environment variable REDISCLI_AUTH"])
    <*> tlsOptions
    <*> switch (short 'c' <> long "cluster" <> help "The server is a node of a cluster")
  where
    bytes modifiers = Char8.pack <$> strOption (mconcat modifiers)

tlsOptions :: Parser TlsOptions
tlsOptions =
  TlsOptions
    <$> switch (short 't' <> long "tls" <> help "Speak TLS")
    <*> optional (file "cacert" "Trust this authority (PEM) instead of the system's")
    <*> optional (file "cert" "Show this client certificate (PEM)")
    <*> optional (file "key" "Its private key (PEM)")
    <*> switch (long "insecure" <> help "Do not verify the server's certificate")
    <*> optional (option utf8 (long "sni" <> metavar "NAME" <> help "Ask for, and verify, this server name"))
  where
    file name text = strOption (long name <> metavar "FILE" <> help text)
    utf8 = maybeReader (Just . Char8.pack)

portNumber :: ReadM Word16
portNumber = eitherReader $ \text -> case readMaybe text of
  Just number | number > (0 :: Integer) && number <= 65535 -> Right (fromInteger number)
  _ -> Left ("a port is a number from 1 to 65535, not " <> show text)

-- | What is wrong with the combination, in one line. The flag says whether the
-- mode starts a server of its own when no host is given.
connectionProblem :: Bool -> ConnectionOptions -> Maybe String
connectionProblem ownServer options
  | Just "" <- connectionHost options = Just "--host is empty"
  | Nothing <- connectionHost options,
    ownServer,
    name : _ <- needHost =
    Just (name <> " needs --host: without a host the program starts its own server")
  | Just _ <- connectionUser options,
    Nothing <- connectionPassword options =
    Just "--user needs a password (--password, or REDISCLI_AUTH)"
  | not (tlsWanted tls), name : _ <- needTls = Just (name <> " needs --tls")
  | otherwise = case (tlsCertificate tls, tlsKey tls) of
    (Just _, Nothing) -> Just "--cert needs --key"
    (Nothing, Just _) -> Just "--key needs --cert"
    _ | tlsInsecure tls, Just _ <- tlsAuthority tls -> Just "--insecure and --cacert exclude each other"
    _ -> Nothing
  where
    tls = connectionTls options
    needHost =
      ["--port" | Just _ <- [connectionPort options]]
        <> ["--user" | Just _ <- [connectionUser options]]
        <> ["--password" | Just _ <- [connectionPassword options]]
        <> needTls
    needTls =
      ["--cacert" | Just _ <- [tlsAuthority tls]]
        <> ["--cert" | Just _ <- [tlsCertificate tls]]
        <> ["--key" | Just _ <- [tlsKey tls]]
        <> ["--insecure" | tlsInsecure tls]
        <> ["--sni" | Just _ <- [tlsServerName tls]]

-- | Uses this password where a host but no password was given.
withPassword :: Maybe ByteString -> ConnectionOptions -> ConnectionOptions
withPassword fallback options = case (connectionHost options, connectionPassword options) of
  (Just _, Nothing) -> options {connectionPassword = fallback}
  _ -> options
