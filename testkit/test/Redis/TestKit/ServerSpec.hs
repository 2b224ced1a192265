module Redis.TestKit.ServerSpec (spec, holdServer) where

import Control.Concurrent (threadDelay)
import Control.Exception (IOException, bracket, try)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.IORef (newIORef, readIORef, writeIORef)
import Data.List (isInfixOf)
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust)
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Certificates
import Redis.TestKit.Command
import Redis.TestKit.Server
import Redis.TestKit.Wait
import System.Directory
  ( doesDirectoryExist,
    doesFileExist,
    getTemporaryDirectory,
    removePathForcibly,
  )
import System.Environment (getEnvironment, getExecutablePath)
import System.Exit (ExitCode (..))
import System.FilePath ((</>))
import System.IO (hFlush, stdout)
import System.IO.Temp (createTempDirectory)
import System.Posix.Signals (sigKILL, signalProcess)
import System.Process
import System.Timeout (timeout)
import Test.Hspec

spec :: Spec
spec = do
  it "starts a server that answers, and leaves nothing" $ do
    seen <- newIORef Nothing
    withServer serverDefaults $ \server -> do
      command server ["PING"] `shouldReturn` Status "PONG"
      pid <- serverPid server
      pid `shouldSatisfy` isJust
      writeIORef seen (Just (pid, serverFolder server, serverAddress server))
    readIORef seen >>= \case
      Just (Just pid, folder, address) -> do
        doesDirectoryExist folder `shouldReturn` False
        doesDirectoryExist ("/proc" </> show pid) `shouldReturn` False
        withConnection address (const (pure ())) `shouldThrow` anyIOError
      _ -> expectationFailure "it did not run"

  it "keeps nothing on disk" $
    withServer serverDefaults $ \server -> do
      _ <- command server ["SET", "key", "value"]
      stop server
      doesFileExist (serverFolder server </> "dump.rdb") `shouldReturn` False

  it "listens on IPv6 and on a Unix socket on request" $
    withServer
      serverDefaults
        { optionsHosts = ["::1", "127.0.0.1"],
          optionsUnixSocket = True
        }
      $ \server -> do
        command server ["PING"] `shouldReturn` Status "PONG"
        serverHost server `shouldBe` "::1"
        ping (TcpAddress "127.0.0.1" (serverPort server))
        case serverSocket server of
          Just path -> ping (UnixAddress path)
          Nothing -> expectationFailure "no socket"

  it "demands the password and knows the users" $
    withServer
      serverDefaults
        { optionsPassword = Just "se\"cret",
          optionsUsers = [AclUser "reader" "pass \"word" "~* +get +ping"]
        }
      $ \server -> do
        command server ["PING"] `shouldReturn` Status "PONG"
        withConnection (serverAddress server) $ \connection -> do
          request connection ["PING"]
            `shouldReturn` Failed "NOAUTH Authentication required."
          request connection ["AUTH", "reader", "pass \"word"] `shouldReturn` Status "OK"
          request connection ["GET", "key"] `shouldReturn` Nil
          refused <- request connection ["SET", "key", "value"]
          refused `shouldSatisfy` isError "NOPERM"

  it "speaks TLS beside plain TCP" $
    withCertificates $ \certificates ->
      withServer
        serverDefaults
          { optionsTls =
              Just
                TlsOptions
                  { tlsKeyPair = certificatesServer certificates,
                    tlsAuthority = certificatesAuthority certificates,
                    tlsClients = ClientCertificatesRequired
                  }
          }
        $ \server -> do
          command server ["PING"] `shouldReturn` Status "PONG"
          case serverTlsPort server of
            Nothing -> expectationFailure "no TLS port"
            Just port -> do
              let redisCli extra =
                    readProcessWithExitCode
                      "redis-cli"
                      ( ["-h", "127.0.0.1", "-p", show port, "--tls", "--cacert"]
                          <> [certificatesAuthority certificates]
                          <> extra
                          <> ["PING"]
                      )
                      ""
                  client = certificatesClient certificates
              redisCli
                ["--cert", keyPairCertificate client, "--key", keyPairKey client]
                `shouldReturn` (ExitSuccess, "PONG\n", "")
              (refused, _, _) <- redisCli []
              refused `shouldNotBe` ExitSuccess

  it "replicates from another server" $
    withServer serverDefaults $ \primary ->
      withServer
        serverDefaults
          { optionsReplicaOf = Just (serverHost primary, serverPort primary)
          }
        $ \replica -> do
          _ <- command primary ["SET", "key", "value"]
          eventuallyReturns 20 (Text "value") (command replica ["GET", "key"])

  it "comes back empty on the same port after SIGKILL" $
    withServer serverDefaults $ \server -> do
      _ <- command server ["SET", "key", "value"]
      kill9 server
      serverIsRunning server `shouldReturn` False
      command server ["PING"] `shouldThrow` anyIOError
      restart server
      command server ["GET", "key"] `shouldReturn` Nil

  it "is silent while frozen and answers after the thaw" $
    withServer serverDefaults $ \server ->
      withServerConnection server $ \connection -> do
        freeze server
        sendRaw connection (encodeRequest ["PING"])
        -- Only a wait can show that nothing happens.
        timeout 100000 (receiveReply connection) `shouldReturn` Nothing
        thaw server
        receiveReply connection `shouldReturn` Status "PONG"

  it "ends a frozen server" $
    withServer serverDefaults $ \server -> do
      freeze server
      stop server
      serverIsRunning server `shouldReturn` False

  it "pins it to a core" $
    withServer serverDefaults {optionsCores = [0]} $ \server ->
      serverPid server >>= \case
        Nothing -> expectationFailure "not running"
        Just pid -> do
          status <- ByteString.readFile ("/proc" </> show pid </> "status")
          Map.lookup "Cpus_allowed_list" (infoFields status)
            `shouldBe` Just "\t0"

  it "says why a server does not start" $
    startServer serverDefaults {optionsConfig = ["no-such-setting 1"]}
      `shouldThrow` \(TestKitFailure text) -> "no-such-setting" `isInfixOf` text

  it "refuses a port that is taken" $
    withServer serverDefaults $ \server ->
      startServer serverDefaults {optionsPort = Just (serverPort server)}
        `shouldThrow` \(TestKitFailure text) -> "port is in use" `isInfixOf` text

  it "counts commands and clients" $
    withServer serverDefaults $ \server -> do
      _ <- command server ["SET", "key", "value"]
      _ <- command server ["SET", "key", "value"]
      statistics <- commandStatistics server
      fmap callsRun (Map.lookup "set" statistics) `shouldBe` Just 2
      eventuallyReturns 5 0 (connectedClients server)
      withServerConnection server $ \connection -> do
        _ <- request connection ["PING"]
        eventuallyReturns 5 1 (connectedClients server)

  it "does not outlive a test program that is killed" $ do
    program <- getExecutablePath
    environment <- getEnvironment
    temporary <- getTemporaryDirectory
    bracket (createTempDirectory temporary "redis-testkit-held") removePathForcibly $ \folder -> do
      -- The killed program cannot remove its folders, so this test removes them.
      let held =
            (proc program ["--hold-a-server"])
              { std_out = CreatePipe,
                env = Just (("TMPDIR", folder) : filter ((/= "TMPDIR") . fst) environment)
              }
      withCreateProcess held $ \_ output _ handle -> case output of
        Nothing -> expectationFailure "no pipe"
        Just pipe -> do
          line <- Char8.hGetLine pipe
          address <- case Char8.readInt line of
            Just (port, _) -> pure (TcpAddress "127.0.0.1" port)
            Nothing -> failure ("not a port: " <> show line)
          ping address
          parent <- getPid handle
          mapM_ (signalProcess sigKILL) parent
          waitForProcess handle `shouldReturn` ExitFailure (-9)
          eventually 10 "the server is gone" $
            either (\(_ :: IOException) -> True) (const False)
              <$> try (withConnection address (const (pure ())))
  where
    anyIOError :: Selector IOException
    anyIOError = const True
    ping address =
      withConnection address (`request` ["PING"]) `shouldReturn` Status "PONG"
    isError code = \case
      Failed text -> code `ByteString.isPrefixOf` text
      _ -> False

-- | Starts a server, prints its port, and stays until it is killed.
holdServer :: IO ()
holdServer =
  withServer serverDefaults $ \server -> do
    Char8.putStrLn (Char8.pack (show (serverPort server)))
    hFlush stdout
    threadDelay maxBound
