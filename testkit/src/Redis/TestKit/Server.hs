-- | A private server on free ports, in a temporary folder that is removed at the end.
--
-- By default it keeps nothing on disk except its log. It always has a plain TCP port, also with
-- TLS, so that the testkit can talk to it without TLS. A server that is killed and restarted keeps
-- its ports and its folder. When this process ends, however it does, its servers end too (see
-- "Redis.TestKit.Process"); only a @kill -9@ leaves the folder behind, until the next server starts
-- (see "Redis.TestKit.Folder").
--
-- The operations may be called from any thread; those that start or end the process exclude each
-- other.
module Redis.TestKit.Server
  ( -- * Options
    ServerOptions (..),
    serverDefaults,
    AclUser (..),
    TlsOptions (..),
    ClientCertificates (..),
    findBinary,
    quoted,

    -- * Life
    Server,
    withServer,
    startServer,
    disposeServer,

    -- * Where it is
    serverAddress,
    serverHost,
    serverPort,
    serverTlsPort,
    serverBusPort,
    serverSocket,
    serverFolder,
    serverOptions,
    serverPid,
    serverIsRunning,
    serverLog,

    -- * What can happen to it
    stop,
    kill9,
    restart,
    freeze,
    thaw,

    -- * Speaking to it
    withServerConnection,
    command,
    commandStatistics,
    callsOf,
    connectedClients,
  )
where

import Control.Concurrent.MVar (MVar, modifyMVar_, newMVar, readMVar, withMVar)
import Control.Concurrent.STM (atomically)
import Control.Exception
  ( IOException,
    bracket,
    bracketOnError,
    try,
  )
import Control.Monad (forM_, void)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (catMaybes, isJust, isNothing)
import GHC.Stack (HasCallStack)
import Redis.TestKit.Address (Address (..), freePorts)
import Redis.TestKit.Certificates (KeyPair (..))
import Redis.TestKit.Command
  ( CommandCalls,
    Connection,
    Reply (..),
    commandCalls,
    infoFields,
    replyText,
    request,
    requestOk,
    withConnection,
  )
import Redis.TestKit.Folder (Folder, createFolder, folderPath, removeFolder)
import Redis.TestKit.Process (Process)
import Redis.TestKit.Process qualified as Process
import Redis.TestKit.Wait (Seconds, eventuallyJust, failure, upTo)
import System.Directory
  ( doesFileExist,
    findExecutable,
    getTemporaryDirectory,
    removePathForcibly,
  )
import System.Environment (lookupEnv)
import System.FilePath ((</>))
import System.Posix.Signals (sigCONT, sigSTOP, sigTERM)
import System.Posix.Types (ProcessID)

-- | How to start a server. Change fields of 'serverDefaults'.
data ServerOptions = ServerOptions
  { -- | The program; 'Nothing': the environment variable
    -- @REDIS_TESTKIT_SERVER@, else @redis-server@ or @valkey-server@ from the
    -- search path.
    optionsBinary :: Maybe FilePath,
    -- | The numeric addresses to listen at; the first one is 'serverHost'.
    optionsHosts :: [String],
    -- | The plain TCP port; 'Nothing': a free one.
    optionsPort :: Maybe Int,
    -- | Whether to listen on a Unix socket in the folder as well.
    optionsUnixSocket :: Bool,
    -- | The default user's password.
    optionsPassword :: Maybe ByteString,
    -- | Further users.
    optionsUsers :: [AclUser],
    -- | TLS, on a separate port.
    optionsTls :: Maybe TlsOptions,
    -- | The primary to replicate from: host and plain port.
    optionsReplicaOf :: Maybe (String, Int),
    -- | Cluster mode, with a free port for the cluster bus. Unless it is part of a cluster
    -- ("Redis.TestKit.Cluster"), it owns no slot.
    optionsCluster :: Bool,
    -- | Whether it is a sentinel, which serves no data. 'optionsConfig' says which primaries it
    -- watches; from then on its own file does.
    optionsSentinel :: Bool,
    -- | Lines for the configuration file; they override the testkit's own.
    optionsConfig :: [String],
    -- | Files that are in its folder before it starts: names and contents.
    optionsFiles :: [(FilePath, String)],
    -- | The cores that it may run on (by @taskset@); empty: all.
    optionsCores :: [Int],
    -- | Environment variables in addition to those of this process.
    optionsEnvironment :: [(String, String)],
    -- | How long the server may take until it answers.
    optionsTimeout :: Seconds
  }
  deriving stock (Eq, Show)

-- | A user of the server: name, password, and rules such as @~* +@all@.
data AclUser = AclUser
  { aclName :: ByteString,
    aclPassword :: ByteString,
    aclRules :: ByteString
  }
  deriving stock (Eq, Show)

-- | The server's certificate, the authority that it trusts, and whether it wants certificates of
-- clients.
data TlsOptions = TlsOptions
  { tlsKeyPair :: KeyPair,
    tlsAuthority :: FilePath,
    tlsClients :: ClientCertificates
  }
  deriving stock (Eq, Show)

-- | Whether clients must show a certificate.
data ClientCertificates
  = ClientCertificatesIgnored
  | ClientCertificatesOptional
  | ClientCertificatesRequired
  deriving stock (Eq, Show)

-- | Plain TCP on @127.0.0.1@ and a free port, without a password.
serverDefaults :: ServerOptions
serverDefaults =
  ServerOptions
    { optionsBinary = Nothing,
      optionsHosts = ["127.0.0.1"],
      optionsPort = Nothing,
      optionsUnixSocket = False,
      optionsPassword = Nothing,
      optionsUsers = [],
      optionsTls = Nothing,
      optionsReplicaOf = Nothing,
      optionsCluster = False,
      optionsSentinel = False,
      optionsConfig = [],
      optionsFiles = [],
      optionsCores = [],
      optionsEnvironment = [],
      optionsTimeout = 20
    }

-- | A server, running or not.
data Server = Server
  { -- | The options with which it was started.
    serverOptions :: ServerOptions,
    -- | The first of its addresses.
    serverHost :: String,
    -- | Its plain TCP port.
    serverPort :: Int,
    -- | Its TLS port.
    serverTlsPort :: Maybe Int,
    -- | The path of its Unix socket.
    serverSocket :: Maybe FilePath,
    -- | The port of its cluster bus.
    serverBusPort :: Maybe Int,
    -- | Its folder.
    serverFolder :: FilePath,
    serverHeld :: Folder,
    serverBinary :: FilePath,
    serverProcess :: MVar (Maybe Process)
  }

-- | A running server that answers, for the duration of an action.
withServer :: ServerOptions -> (Server -> IO a) -> IO a
withServer options = bracket (startServer options) disposeServer

-- | Starts a server and blocks until it answers (about 30 ms). The caller must call
-- 'disposeServer'. Throws 'Redis.TestKit.Wait.TestKitFailure', with the server's own output, if it
-- does not start.
startServer :: HasCallStack => ServerOptions -> IO Server
startServer options = do
  binary <- findBinary (optionsBinary options)
  attempt binary (20 :: Int)
  where
    attempt binary attempts = do
      started <- tryStart binary options
      case started of
        Right server -> pure server
        Left PortTaken
          | isNothing (optionsPort options) && attempts > 1 ->
            attempt binary (attempts - 1)
        Left PortTaken -> failure "the server's port is in use"
        Left (Refused text) -> failure ("the server did not start:\n" <> text)

data StartProblem
  = PortTaken
  | Refused String

tryStart :: FilePath -> ServerOptions -> IO (Either StartProblem Server)
tryStart binary options = do
  temporary <- getTemporaryDirectory
  bracketOnError (createFolder temporary "redis-testkit") removeFolder $ \held -> do
    ports <- freePorts 3
    process <- newMVar Nothing
    let folder = folderPath held
        port = case (optionsPort options, ports) of
          (Just wanted, _) -> wanted
          (Nothing, free : _) -> free
          (Nothing, []) -> 0
        server =
          Server
            { serverOptions = options,
              serverHost = case optionsHosts options of
                host : _ -> host
                [] -> "127.0.0.1",
              serverPort = port,
              serverTlsPort = case (optionsTls options, drop 1 ports) of
                (Just _, free : _) -> Just free
                _ -> Nothing,
              serverBusPort = case drop 2 ports of
                free : _ | optionsCluster options -> Just free
                _ -> Nothing,
              serverSocket =
                if optionsUnixSocket options
                  then Just (folder </> "server.sock")
                  else Nothing,
              serverFolder = folder,
              serverHeld = held,
              serverBinary = binary,
              serverProcess = process
            }
    forM_ ((configFile, unlines (configuration server)) : optionsFiles options) $ \(name, text) ->
      writeFile (folder </> name) text
    begin server >>= \case
      Nothing -> pure (Right server)
      Just problem -> Left problem <$ removeFolder held

-- | The program that 'optionsBinary' selects. Throws 'Redis.TestKit.Wait.TestKitFailure' if there
-- is none.
findBinary :: HasCallStack => Maybe FilePath -> IO FilePath
findBinary = \case
  Just path -> pure path
  Nothing -> do
    configured <- lookupEnv "REDIS_TESTKIT_SERVER"
    found <- traverse findExecutable ["redis-server", "valkey-server"]
    case catMaybes (configured : found) of
      path : _ -> pure path
      [] -> failure "neither redis-server nor valkey-server is on the search path"

configFile :: FilePath
configFile = "server.conf"

logFile :: FilePath
logFile = "server.log"

outputFile :: FilePath
outputFile = "output.log"

configuration :: Server -> [String]
configuration server =
  concat
    [ [ "bind " <> unwords (optionsHosts options),
        "port " <> show (serverPort server),
        "protected-mode no",
        "daemonize no",
        "save \"\"",
        "appendonly no",
        "dir " <> quoted (serverFolder server),
        "logfile " <> quoted logFile,
        "enable-debug-command yes",
        -- A replica then gets its data at once instead of after five seconds.
        "repl-diskless-sync-delay 0"
      ],
      ["unixsocket " <> quoted path | Just path <- [serverSocket server]],
      concat
        [ ["requirepass " <> secret, "masterauth " <> secret]
          | Just password <- [optionsPassword options],
            let secret = quoted (Char8.unpack password)
        ],
      [ unwords
          ["user", quoted (text aclName), "on", quoted (">" <> text aclPassword), text aclRules]
        | user <- optionsUsers options,
          let text field = Char8.unpack (field user)
      ],
      concat
        [ tlsLines tls port
          | Just tls <- [optionsTls options],
            Just port <- [serverTlsPort server]
        ],
      [ "replicaof " <> host <> " " <> show port
        | Just (host, port) <- [optionsReplicaOf options]
      ],
      concat
        [ ["cluster-enabled yes", "cluster-port " <> show port]
          | Just port <- [serverBusPort server]
        ],
      optionsConfig options
    ]
  where
    options = serverOptions server

tlsLines :: TlsOptions -> Int -> [String]
tlsLines tls port =
  [ "tls-port " <> show port,
    "tls-cert-file " <> quoted (keyPairCertificate (tlsKeyPair tls)),
    "tls-key-file " <> quoted (keyPairKey (tlsKeyPair tls)),
    "tls-ca-cert-file " <> quoted (tlsAuthority tls),
    "tls-auth-clients " <> case tlsClients tls of
      ClientCertificatesIgnored -> "no"
      ClientCertificatesOptional -> "optional"
      ClientCertificatesRequired -> "yes"
  ]

-- | Puts a word of 'optionsConfig' that may contain blanks into quotes, as the server reads its
-- configuration.
quoted :: String -> String
quoted text = "\"" <> concatMap escape text <> "\""
  where
    escape character
      | character `elem` ("\"\\" :: String) = ['\\', character]
      | otherwise = [character]

-- Starts the process and waits until it answers. Checks the process id, so that another server on
-- the same port does not count.
begin :: Server -> IO (Maybe StartProblem)
begin server =
  bracketOnError launch Process.kill9 $ \process -> do
    modifyMVar_ (serverProcess server) (\_ -> pure (Just process))
    outcome <-
      upTo (optionsTimeout options) $
        eventuallyJust (2 * optionsTimeout options) "the server answers" $
          look process
    case outcome of
      Just Ready -> pure Nothing
      Just Ended -> do
        said <- serverWords server
        pure . Just $
          if "Address already in use" `ByteString.isInfixOf` said
            then PortTaken
            else Refused (Char8.unpack said)
      Nothing -> do
        Process.kill9 process
        Just . Refused . ("no answer in time\n" <>) . Char8.unpack
          <$> serverWords server
  where
    options = serverOptions server
    launch = do
      mapM_ (removePathForcibly . (serverFolder server </>)) [logFile, outputFile]
      Process.spawn (serverFolder server) program arguments (serverFolder server </> outputFile)
    (program, arguments) = case Process.onCores (optionsCores options) <> variables of
      [] -> (serverBinary server, arguments')
      first : others -> (first, others <> (serverBinary server : arguments'))
    variables = case optionsEnvironment options of
      [] -> []
      given -> "env" : [name <> "=" <> value | (name, value) <- given]
    arguments' = configFile : ["--sentinel" | optionsSentinel options]
    look process =
      atomically (Process.exitStatus process) >>= \case
        Just _ -> pure (Just Ended)
        Nothing -> do
          answer <- try (withServerConnection server (`request` ["INFO", "server"]))
          pure $ case answer of
            Right (Text info)
              | Map.lookup "process_id" (infoFields info)
                  == Just (Char8.pack (show (Process.processId process))) ->
                Just Ready
            Right _ -> Nothing
            Left (_ :: IOException) -> Nothing

data Progress
  = Ready
  | Ended

serverWords :: Server -> IO ByteString
serverWords server =
  ByteString.concat <$> traverse (contents . (serverFolder server </>)) [outputFile, logFile]

contents :: FilePath -> IO ByteString
contents path = do
  exists <- doesFileExist path
  if exists then ByteString.readFile path else pure ByteString.empty

-- | Ends the server if it runs, and removes its folder. Idempotent.
disposeServer :: Server -> IO ()
disposeServer server = do
  kill9 server
  removeFolder (serverHeld server)

-- | The server's plain TCP address.
serverAddress :: Server -> Address
serverAddress server = TcpAddress (serverHost server) (serverPort server)

-- | The id of the server's process, if it runs.
serverPid :: Server -> IO (Maybe ProcessID)
serverPid server = fmap Process.processId <$> running server

-- | Whether the server's process exists, frozen or not.
serverIsRunning :: Server -> IO Bool
serverIsRunning = fmap isJust . running

running :: Server -> IO (Maybe Process)
running server =
  readMVar (serverProcess server) >>= \case
    Nothing -> pure Nothing
    Just process ->
      maybe (Just process) (const Nothing)
        <$> atomically (Process.exitStatus process)

-- | The server's log since its last start.
serverLog :: Server -> IO ByteString
serverLog server = contents (serverFolder server </> logFile)

-- | Asks the server to end (SIGTERM) and blocks until it has; kills it after 5 s. A frozen server
-- is thawed. Does nothing if the server does not run.
stop :: Server -> IO ()
stop = ending $ \process -> do
  Process.signal sigTERM process
  Process.signal sigCONT process
  ended <- upTo 5 (Process.awaitExit process)
  if isNothing ended then Process.kill9 process else pure ()

-- | Kills the server at once (SIGKILL), whatever it is doing, and blocks until it is gone: the
-- kernel closes its connections. Does nothing if it does not run.
kill9 :: Server -> IO ()
kill9 = ending Process.kill9

ending :: (Process -> IO ()) -> Server -> IO ()
ending end server =
  modifyMVar_ (serverProcess server) $ \process ->
    Nothing <$ mapM_ end process

-- | Kills the server if it runs, and starts it again on the same ports in the same folder. It is
-- empty unless 'optionsConfig' makes it keep its data. Blocks until it answers.
restart :: HasCallStack => Server -> IO ()
restart server = do
  kill9 server
  go (50 :: Int)
  where
    go attempts =
      begin server >>= \case
        Nothing -> pure ()
        Just PortTaken | attempts > 1 -> go (attempts - 1)
        Just PortTaken -> failure "the server's port was taken meanwhile"
        Just (Refused text) -> failure ("the server did not restart:\n" <> text)

-- | Freezes the server without ending it (SIGSTOP): its connections stay open, the kernel still
-- accepts new ones, and there are no replies.
freeze :: Server -> IO ()
freeze server =
  withMVar (serverProcess server) $ mapM_ (Process.signal sigSTOP)

-- | Lets a frozen server continue.
thaw :: Server -> IO ()
thaw server =
  withMVar (serverProcess server) $ mapM_ (Process.signal sigCONT)

-- | A connection to the server's plain port, authenticated as the default user.
withServerConnection :: HasCallStack => Server -> (Connection -> IO a) -> IO a
withServerConnection server action =
  withConnection (serverAddress server) $ \connection -> do
    case optionsPassword (serverOptions server) of
      Just password -> void (requestOk connection ["AUTH", password])
      Nothing -> pure ()
    action connection

-- | Sends one command over a new connection; throws an error reply as a
-- 'Redis.TestKit.Wait.TestKitFailure'.
command :: HasCallStack => Server -> [ByteString] -> IO Reply
command server arguments =
  withServerConnection server (`requestOk` arguments)

-- | The server's statistics for each command, by its lower-case name.
commandStatistics :: HasCallStack => Server -> IO (Map ByteString CommandCalls)
commandStatistics server =
  maybe Map.empty commandCalls . replyText
    <$> command server ["INFO", "commandstats"]

-- | One count of one command, by its lower-case name; 0 for a command that never came.
callsOf :: HasCallStack => (CommandCalls -> Int) -> ByteString -> Server -> IO Int
callsOf count name server = maybe 0 count . Map.lookup name <$> commandStatistics server

-- | The number of clients connected to the server, not counting the connection that asks.
connectedClients :: HasCallStack => Server -> IO Int
connectedClients server = do
  info <- replyText <$> command server ["INFO", "clients"]
  case info >>= Map.lookup "connected_clients" . infoFields >>= Char8.readInt of
    Just (count, _) -> pure (count - 1)
    Nothing -> failure "INFO clients has no connected_clients"
