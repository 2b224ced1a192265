-- | TLS, with a Redis server and with @openssl s_server@.
module TlsSpec (spec) where

import Control.Concurrent (forkFinally, killThread)
import Control.Concurrent.MVar (newEmptyMVar, putMVar, takeMVar)
import Control.Concurrent.STM (retry)
import Control.Exception (IOException, bracket, fromException, try)
import Control.Monad (replicateM_, void)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List qualified as List
import Data.Maybe (fromMaybe, isJust)
import Network.Socket (SockAddr (SockAddrInet, SockAddrUnix))
import Network.Socket qualified as Socket
import Network.Socket.ByteString qualified as SocketBytes
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Network.Dial
import Redis.Internal.Network.Transport
import Redis.TestKit.Certificates
import Servers
import System.Environment (lookupEnv)
import System.FilePath ((</>))
import System.IO (IOMode (WriteMode), withFile)
import System.IO.Temp (withSystemTempDirectory)
import System.Process qualified as Process
import System.Timeout (timeout)
import Test.Hspec

-- | What the tests share: a folder with two authorities and some certificates.
data World = World
  { worldFolder :: FilePath,
    worldAuthority :: KeyPair,
    worldStranger :: KeyPair,
    -- | For localhost, redis.test and 127.0.0.1.
    worldGood :: KeyPair,
    -- | For other.test only.
    worldOther :: KeyPair,
    worldExpired :: KeyPair,
    worldSelfSigned :: KeyPair,
    -- | For a client.
    worldClient :: KeyPair
  }

withWorld :: (World -> IO a) -> IO a
withWorld use = withSystemTempDirectory "transport-tls" $ \folder -> do
  trusted <- createAuthority folder "trusted"
  stranger <- createAuthority folder "stranger"
  let here = "DNS:localhost,DNS:redis.test,IP:127.0.0.1"
  World folder trusted stranger
    <$> createSigned folder trusted "good" here Current
    <*> createSigned folder trusted "other" "DNS:other.test" Current
    <*> createSigned folder trusted "expired" here Past
    <*> createSelfSigned folder "alone" here
    <*> createSigned folder trusted "client" "DNS:client.test" Current
    >>= use

loopback :: SockAddr
loopback = SockAddrInet 0 (Socket.tupleToHostAddress (127, 0, 0, 1))

freePort :: IO Port
freePort =
  closedPort loopback >>= \case
    SockAddrInet port _ -> pure (fromIntegral port)
    address -> fail (show address)

-- | A configuration that trusts the authority.
trusting :: World -> TlsConfig
trusting World {worldAuthority} = tlsDefaults {tlsCaFile = Just (keyPairCertificate worldAuthority)}

attemptConnect :: TlsConfig -> Endpoint -> IO (Either ConnectionCause Transport)
attemptConnect tls endpoint =
  newConnector (defaultConfig (Standalone endpoint)) {configTls = Just tls} >>= \case
    Left cause -> pure (Left cause)
    Right connector -> connected connector endpoint

withTransport :: TlsConfig -> Endpoint -> (Transport -> IO a) -> IO a
withTransport tls endpoint =
  bracket (attemptConnect tls endpoint >>= either (fail . show) pure) transportClose

-- | Runs a Redis server with TLS, a certificate and extra options. The environment may name another
-- program, as it does for the testkit.
withRedis :: World -> KeyPair -> [String] -> (Port -> IO a) -> IO a
withRedis World {worldFolder, worldAuthority} own extra use = do
  port <- freePort
  program <- fromMaybe "redis-server" <$> lookupEnv "REDIS_TESTKIT_SERVER"
  withServer
    worldFolder
    program
    ( ["--port", "0", "--bind", "127.0.0.1", "--tls-port", show port, "--save", ""]
        <> ["--tls-cert-file", keyPairCertificate own, "--tls-key-file", keyPairKey own]
        <> ["--tls-ca-cert-file", keyPairCertificate worldAuthority]
        <> (if null extra then ["--tls-auth-clients", "no"] else extra)
    )
    port
    use

-- | Runs @openssl s_server@, which serves one connection after the other.
withOpenSsl :: World -> KeyPair -> [String] -> (Port -> IO a) -> IO a
withOpenSsl World {worldFolder} KeyPair {keyPairCertificate, keyPairKey} extra use = do
  port <- freePort
  withServer
    worldFolder
    "openssl"
    ( ["s_server", "-accept", "127.0.0.1:" <> show port, "-cert", keyPairCertificate, "-key", keyPairKey]
        <> extra
    )
    port
    use

withServer :: FilePath -> FilePath -> [String] -> Port -> (Port -> IO a) -> IO a
withServer folder program arguments port use =
  withFile (folder </> "server.log") WriteMode $ \output ->
    bracket
      ( Process.createProcess
          (Process.proc program arguments)
            { Process.cwd = Just folder,
              Process.std_in = Process.CreatePipe,
              Process.std_out = Process.UseHandle output,
              Process.std_err = Process.UseHandle output
            }
      )
      end
      (\_ -> eventually listens *> use port)
  where
    end (input, _, _, process) = do
      Process.terminateProcess process
      Process.cleanupProcess (input, Nothing, Nothing, process)
    listens = do
      outcome <- newConnector (defaultConfig (Standalone endpoint)) >>= either (fail . show) (`connected` endpoint)
      either (const (pure False)) ((True <$) . transportClose) outcome
    endpoint = TcpEndpoint "127.0.0.1" port

-- | Answers like a server without TLS that gets an unknown command.
complain :: Socket.Socket -> IO ()
complain listener = bracket (fst <$> Socket.accept listener) Socket.close $ \connection -> do
  _ <- SocketBytes.recv connection 4096
  SocketBytes.sendAll connection "-ERR unknown command\r\n"
  -- Waits for the peer to close the connection.
  void (SocketBytes.recv connection 4096)

-- | Ends a connection before any TLS, like a server that has reached its limit of clients.
hangUp :: Socket.Socket -> IO ()
hangUp listener = bracket (fst <$> Socket.accept listener) Socket.close $ \connection ->
  -- Reads first, because unread bytes would cause a reset.
  void (SocketBytes.recv connection 4096)

ping :: Transport -> Expectation
ping transport = do
  sendAll transport "PING\r\n"
  receive transport `shouldReturn` "+PONG\r\n"

-- | Connects, expects a refusal, and returns its reason.
refusal :: TlsConfig -> Endpoint -> IO String
refusal tls endpoint =
  attemptConnect tls endpoint >>= \case
    Left (TlsFailed reason) -> pure reason
    Left cause -> fail ("refused for another reason: " <> show cause)
    Right transport -> "connected" <$ transportClose transport

spec :: Spec
spec = aroundAll withWorld . describe "TLS" $ do
  let check :: String -> (World -> Expectation) -> SpecWith World
      check name body = it name (within 30 . body)

  describe "verifying the server" $ do
    check "accepts a certificate for the host name" $ \world ->
      withRedis world (worldGood world) [] $ \port ->
        withTransport (trusting world) (TcpEndpoint "localhost" port) ping

    check "accepts a certificate for the address" $ \world ->
      withRedis world (worldGood world) [] $ \port ->
        withTransport (trusting world) (TcpEndpoint "127.0.0.1" port) ping

    check "accepts a certificate for the configured name instead of the host" $ \world ->
      withRedis world (worldGood world) [] $ \port ->
        withTransport (trusting world) {tlsServerName = Just "redis.test"} (TcpEndpoint "127.0.0.1" port) ping

    check "refuses a certificate for another host name" $ \world ->
      withRedis world (worldOther world) [] $ \port ->
        refusal (trusting world) (TcpEndpoint "localhost" port)
          `shouldReturn` "certificate verify failed: hostname mismatch"

    check "refuses a certificate whose only host name is its common name" $ \world -> do
      named <- createSigned (worldFolder world) (worldAuthority world) "localhost" "email:nobody@other.test" Current
      withRedis world named [] $ \port ->
        refusal (trusting world) (TcpEndpoint "localhost" port)
          `shouldReturn` "certificate verify failed: hostname mismatch"

    check "refuses a certificate that does not name the address" $ \world ->
      withRedis world (worldOther world) [] $ \port ->
        refusal (trusting world) (TcpEndpoint "127.0.0.1" port)
          `shouldReturn` "certificate verify failed: IP address mismatch"

    check "refuses a certificate of an unknown authority" $ \world ->
      withRedis world (worldGood world) [] $ \port -> do
        reason <-
          refusal
            tlsDefaults {tlsCaFile = Just (keyPairCertificate (worldStranger world))}
            (TcpEndpoint "localhost" port)
        -- The server sends its authority's certificate, which this client does not trust.
        reason `shouldSatisfy` ("certificate verify failed: self-signed certificate" `List.isPrefixOf`)

    check "refuses a private authority by default" $ \world ->
      withRedis world (worldGood world) [] $ \port -> do
        reason <- refusal tlsDefaults (TcpEndpoint "localhost" port)
        reason `shouldSatisfy` ("certificate verify failed: " `List.isPrefixOf`)

    check "refuses an expired certificate" $ \world ->
      withRedis world (worldExpired world) [] $ \port ->
        refusal (trusting world) (TcpEndpoint "localhost" port)
          `shouldReturn` "certificate verify failed: certificate has expired"

    check "refuses a self-signed certificate" $ \world ->
      withRedis world (worldSelfSigned world) [] $ \port -> do
        reason <- refusal (trusting world) (TcpEndpoint "localhost" port)
        reason `shouldSatisfy` ("certificate verify failed: self-signed certificate" `List.isPrefixOf`)

    check "accepts a self-signed certificate when told not to verify" $ \world ->
      withRedis world (worldSelfSigned world) [] $ \port ->
        withTransport tlsDefaults {tlsVerify = False} (TcpEndpoint "localhost" port) ping

    check "accepts a self-signed certificate that is its own trusted authority" $ \world ->
      withRedis world (worldSelfSigned world) [] $ \port ->
        withTransport
          tlsDefaults {tlsCaFile = Just (keyPairCertificate (worldSelfSigned world))}
          (TcpEndpoint "localhost" port)
          ping

    check "refuses to verify nothing: an empty name, a name with a NUL, a Unix socket" $ \world -> do
      let nameless name port = refusal (trusting world) {tlsServerName = Just name} (TcpEndpoint "127.0.0.1" port)
      withRedis world (worldGood world) [] $ \port -> do
        nameless "" port `shouldReturn` "not a valid name for TLS: \"\""
        nameless "redis.test\0.evil" port `shouldReturn` "not a valid name for TLS: \"redis.test\\NUL.evil\""
      let path = worldFolder world </> "unix"
      withEcho (SockAddrUnix path) $ \_ -> do
        reason <- refusal (trusting world) (UnixEndpoint path)
        reason `shouldSatisfy` ("there is no name to verify" `List.isPrefixOf`)

  describe "the name it asks for" $ do
    -- The server has a second certificate, which it presents to clients that ask for a certain
    -- name. Each case succeeds with only one of the certificates.
    let second world certificate name =
          ["-servername", name, "-cert2", keyPairCertificate (certificate world), "-key2", keyPairKey (certificate world)]

    check "is the host" $ \world ->
      withOpenSsl world (worldOther world) (second world worldGood "localhost") $ \port ->
        withTransport (trusting world) (TcpEndpoint "localhost" port) (const (pure ()))

    check "is the configured one" $ \world ->
      withOpenSsl world (worldOther world) (second world worldGood "redis.test") $ \port ->
        withTransport (trusting world) {tlsServerName = Just "redis.test"} (TcpEndpoint "127.0.0.1" port) (const (pure ()))

    check "is never an address" $ \world ->
      withOpenSsl world (worldGood world) (second world worldOther "127.0.0.1") $ \port ->
        withTransport (trusting world) (TcpEndpoint "127.0.0.1" port) (const (pure ()))

  describe "the client's certificate" $ do
    check "is shown to a server that demands one" $ \world ->
      withRedis world (worldGood world) ["--tls-auth-clients", "yes"] $ \port ->
        withTransport
          (trusting world) {tlsCertificate = Just (keyPairCertificate (worldClient world), keyPairKey (worldClient world))}
          (TcpEndpoint "localhost" port)
          ping

    check "is missed by a server that demands one" $ \world ->
      withRedis world (worldGood world) ["--tls-auth-clients", "yes"] $ \port -> do
        -- With TLS 1.3 the client's handshake is complete before the server refuses.
        outcome <- attemptConnect (trusting world) (TcpEndpoint "localhost" port)
        case outcome of
          Left cause -> expectationFailure (show cause)
          Right transport -> do
            failure <- try (receive transport)
            transportClose transport
            either (\(RefusedByPeer why) -> why) show failure
              `shouldSatisfy` ("certificate required" `List.isInfixOf`)

    check "with somebody else's key is refused before connecting" $ \world -> do
      reason <-
        refusal
          (trusting world) {tlsCertificate = Just (keyPairCertificate (worldClient world), keyPairKey (worldGood world))}
          (TcpEndpoint "localhost" 1)
      reason `shouldSatisfy` ("cannot use the client key " `List.isPrefixOf`)
      reason `shouldSatisfy` (": key values mismatch" `List.isSuffixOf`)

    check "that cannot be read is refused before connecting" $ \world -> do
      reason <- refusal (trusting world) {tlsCertificate = Just ("/nonexistent", "/nonexistent")} (TcpEndpoint "localhost" 1)
      reason `shouldBe` "cannot use the client certificate /nonexistent: No such file or directory"

  describe "the protocol" $ do
    check "refuses versions before 1.2" $ \world ->
      withOpenSsl world (worldGood world) ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"] $ \port -> do
        reason <- refusal (trusting world) (TcpEndpoint "localhost" port)
        reason `shouldSatisfy` ("protocol version" `List.isInfixOf`)

    check "speaks 1.2" $ \world ->
      withRedis world (worldGood world) ["--tls-auth-clients", "no", "--tls-protocols", "TLSv1.2"] $ \port ->
        withTransport (trusting world) (TcpEndpoint "localhost" port) ping

    check "says so when the server does not speak TLS" $ \world ->
      withEcho loopback $ \case
        SockAddrInet port _ -> do
          reason <- refusal (trusting world) (TcpEndpoint "127.0.0.1" (fromIntegral port))
          reason `shouldNotBe` "connected"
        address -> expectationFailure (show address)

    check "says that an answer in plain text is not TLS" $ \world ->
      withListener 64 loopback $ \listener -> \case
        SockAddrInet port _ ->
          bracket (forkFinally (complain listener) (const (pure ()))) killThread . const $
            refusal (trusting world) (TcpEndpoint "127.0.0.1" (fromIntegral port))
              `shouldReturn` "what the peer answers is not TLS; for plain text it is redis://, without setTls (wrong version number)"
        address -> expectationFailure (show address)

    check "that ends while TLS is set up is a broken connection, and no wrong certificate" $ \world ->
      withListener 64 loopback $ \listener -> \case
        SockAddrInet port _ ->
          bracket (forkFinally (hangUp listener) (const (pure ()))) killThread . const $
            attemptConnect (trusting world) (TcpEndpoint "127.0.0.1" (fromIntegral port)) >>= \case
              Left (BrokenConnection reason) -> reason `shouldStartWith` "while TLS was set up: "
              Left cause -> expectationFailure (show cause)
              Right transport -> transportClose transport >> expectationFailure "connected"
        address -> expectationFailure (show address)

    check "can be interrupted in the handshake and leaks no descriptor" $ \world ->
      withListener 64 loopback $ \_ -> \case
        SockAddrInet port _ -> do
          open <- openDescriptors
          replicateM_ 20 $ do
            outcome <- timeout 20000 (attemptConnect (trusting world) (TcpEndpoint "127.0.0.1" (fromIntegral port)))
            maybe "interrupted" (either show (const "connected")) outcome `shouldBe` "interrupted"
          openDescriptors `shouldReturn` open
        address -> expectationFailure (show address)

    check "leaks no descriptor when a certificate is refused" $ \world ->
      withRedis world (worldExpired world) [] $ \port -> do
        open <- openDescriptors
        replicateM_ 20 (refusal (trusting world) (TcpEndpoint "localhost" port))
        openDescriptors `shouldReturn` open

  describe "the stream" $ do
    check "ends when the server ends it" $ \world ->
      withRedis world (worldGood world) [] $ \port ->
        withTransport (trusting world) (TcpEndpoint "localhost" port) $ \transport -> do
          sendAll transport "QUIT\r\n"
          receive transport `shouldReturn` "+OK\r\n"
          receive transport `shouldReturn` ""

    check "says goodbye when it is shut down, once, and nothing after the close" $ \world ->
      withOpenSsl world (worldGood world) [] $ \port -> do
        bracket (attemptConnect (trusting world) (TcpEndpoint "localhost" port) >>= either (fail . show) pure) transportShutdown $ \transport -> do
          transportShutdown transport
          transportShutdown transport
          transportClose transport
        -- The server prints this when close_notify ends the stream, and "ERROR" otherwise.
        eventually (("DONE\n" `ByteString.isInfixOf`) <$> ByteString.readFile (worldFolder world </> "server.log"))

    check "wakes a waiting reader when it is shut down" $ \world ->
      withRedis world (worldGood world) [] $ \port ->
        withTransport (trusting world) (TcpEndpoint "localhost" port) $ \transport -> do
          ping transport
          done <- newEmptyMVar
          thread <- forkFinally (receive transport) (putMVar done)
          transportShutdown transport
          takeMVar done >>= \case
            Right bytes -> bytes `shouldBe` ""
            -- The server's reset, if it came before the reader's end of the stream.
            Left problem -> (fromException problem :: Maybe IOException) `shouldSatisfy` isJust
          killThread thread

    check "carries 64 MB both ways at once, intact" $ \world ->
      withRedis world (worldGood world) [] $ \port ->
        withTransport (trusting world) (TcpEndpoint "localhost" port) echoes64MB

-- | Makes the server echo a thousand blocks of 64 KiB with different contents. One thread sends
-- while another compares.
echoes64MB :: Transport -> Expectation
echoes64MB transport = do
  done <- newEmptyMVar
  thread <- forkFinally (mapM_ (sendAll transport . asked) indices) (putMVar done)
  compareFrom "" indices
  takeMVar done >>= either (fail . show) pure
  killThread thread
  where
    indices = [1 .. 1024] :: [Int]
    block index = Char8.concat (replicate 8192 (Char8.pack (show (10000000 + index))))
    asked index = "*2\r\n$4\r\nECHO\r\n" <> answered index
    answered index = "$65536\r\n" <> block index <> "\r\n"

    compareFrom :: ByteString -> [Int] -> Expectation
    compareFrom unread [] = unread `shouldBe` ""
    compareFrom unread (index : later) = do
      let expected = answered index
      (first, rest) <- ByteString.splitAt (ByteString.length expected) <$> gather (ByteString.length expected) unread
      (first == expected) `shouldBe` True
      compareFrom rest later

    gather size bytes
      | ByteString.length bytes >= size = pure bytes
      | otherwise = do
        more <- receive transport
        ByteString.null more `shouldBe` False
        gather size (bytes <> more)

connected :: Connector -> Endpoint -> IO (Either ConnectionCause Transport)
connected connector endpoint = openWithin connector endpoint retry transportClose (\stage -> connectWith stage connector endpoint)
