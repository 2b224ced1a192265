-- | Servers that refuse this client, and how the client gets in.
module HandshakeSpec (spec) where

import Control.Concurrent.Async (replicateConcurrently, withAsync)
import Control.Concurrent.STM (atomically)
import Control.Exception (displayException, try)
import Control.Monad (forM_, replicateM, void, when)
import Data.ByteString.Char8 qualified as Char8
import Data.List (isInfixOf, nub)
import Data.List.NonEmpty qualified as NonEmpty
import GHC.Clock (getMonotonicTime)
import Harness
import Redis
import Redis.Commands qualified as Commands
import Redis.TestKit.Address (Address (TcpAddress))
import Redis.TestKit.Certificates
import Redis.TestKit.Command qualified as Plain
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (AclUser (..), ClientCertificates (..), ServerOptions (..), TlsOptions (..), serverDefaults)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventually, failure, within)
import Redis.Value (Value (..))
import Redis.Wire (withWire)
import Test.Hspec

spec :: Spec
spec = do
  describe "credentials" $ do
    it "that are wrong fail clearly, once, and show no password" $
      refusedOnce serverDefaults {optionsPassword = Just "right"} (password "wrong") "WRONGPASS"

    it "that are missing fail clearly, once" $
      refusedOnce serverDefaults {optionsPassword = Just "right"} id "NOAUTH"

    it "that are wrong fail clearly in RESP2, once" $
      refusedOnce serverDefaults {optionsPassword = Just "right"} (setProtocol OnlyResp2 . password "wrong") "WRONGPASS"

    it "that are missing fail clearly in RESP2" $
      Server.withServer serverDefaults {optionsPassword = Just "right"} $ \server ->
        leavingNothing . withClient (setProtocol OnlyResp2 (addressed server)) $ \client -> do
          result <- tryRun client (Commands.incr "hits")
          show result `shouldSatisfy` ("NOAUTH" `isInfixOf`)

    it "of a user let in, and the user's rights hold" $
      Server.withServer withReader $ \server -> leavingNothing $
        forM_ [PreferResp3, OnlyResp2] $ \protocol ->
          withClient (setProtocol protocol (as "reader" "secret" (addressed server))) $ \client -> do
            run client (Commands.get "here") `shouldReturn` Nothing
            refused <- tryRun client (Commands.set "here" "value")
            deliveryOf refused `shouldBe` Just RefusedBeforeRun
            run client (raw ["ACL", "WHOAMI"]) `shouldReturn` BulkString "reader"

    it "are used again on every new connection" $
      Server.withServer serverDefaults {optionsPassword = Just "right"} $ \server ->
        Proxy.withProxy (Server.serverAddress server) $ \proxy -> do
          tally <- underLoad server (password "right" (through proxy)) $ \_ load ->
            forM_ [1 :: Int .. 3] $ \_ -> Proxy.cut proxy Proxy.Reset >> workersProgress load 8
          tallyMaybe tally `shouldSatisfy` (> 0)

  describe "a database" $ do
    it "is the one that was asked for, after a reconnect too" $
      behindProxy $ \server proxy -> leavingNothing . withClient (setDatabase 3 (single (through proxy))) $ \client -> do
        run client (Commands.set "here" "three")
        Proxy.cut proxy Proxy.Reset
        run client (Commands.get "here") `shouldReturn` Just "three"
        counterOf server "here" `shouldReturn` 0

    it "that does not exist fails clearly, once" $
      refusedOnce serverDefaults (setDatabase 99) "out of range"

  describe "a server" $ do
    it "that has no HELLO is spoken to in RESP2" $
      Server.withServer serverDefaults {optionsConfig = ["rename-command HELLO \"\""], optionsPassword = Just "right"} $ \server ->
        leavingNothing . withClient (setClientName (Just "me") (setDatabase 1 (password "right" (addressed server)))) $ \client -> do
          run client Commands.clientGetname `shouldReturn` Just "me"
          run client (raw ["DEBUG", "PROTOCOL", "map"]) >>= \case
            Array elements -> length elements `shouldBe` 6
            other -> expectationFailure (show other)

    it "that has no room for another client says so, and is asked again" $
      Server.withServer serverDefaults {optionsConfig = ["maxclients 2"]} $ \server -> leavingNothing $ do
        (journal, config) <- journalled (single (addressed server))
        withClient config $ \client -> do
          result <- Plain.withConnection (Server.serverAddress server) $ \one ->
            Plain.withConnection (Server.serverAddress server) $ \two -> do
              _ <- Plain.request one ["PING"]
              _ <- Plain.request two ["PING"]
              tryRun (client :: Client) Commands.ping
          show result `shouldSatisfy` ("max number of clients" `isInfixOf`)
          eventually 5 "there is room" (either (const False) (const True) <$> tryRun client Commands.ping)
        failures <- length . filter failedAttempt <$> journalEntries journal
        failures `shouldSatisfy` (> 1)

    forM_ [PreferResp3, OnlyResp2] $ \protocol ->
      it ("that has no room says so whenever it is asked in " <> show protocol <> ", by whatever way") $
        withoutRoom serverDefaults {optionsUnixSocket = True} $ \server -> case Server.serverSocket server of
          Nothing -> failure "no socket"
          Just path -> forM_ [addressed server, quick (unixConfig path)] $ \plain -> do
            let config = impatient (setProtocol protocol plain)
            causes <- refusals 150 config $ \client -> tryRun client Commands.ping
            lent <- refusals 50 config $ \client -> try (withDedicated client AnyPrimary (`runOn` Commands.ping))
            wires <- replicateM 50 (try (withWire config (firstOf (getEndpoints config)) (const (pure ()))))
            nub (filter (not . noRoom) (causes <> lent <> [cause | Left (ConnectionError (ConnectionFailure _ NotSent _ cause)) <- wires])) `shouldBe` []
            length [() | Left (ConnectionError (ConnectionFailure _ NotSent _ _)) <- wires] `shouldBe` 50

    it "that has no room is asked again until there is some, for as long as a command may take" $
      Server.withServer serverDefaults {optionsConfig = ["maxclients 1"]} $ \server -> leavingNothing $ do
        (journal, config) <- journalled (single (setCommandTimeout (Just (seconds 20)) (addressed server)))
        withClient (setMaxAttempts 1000 config) $ \client -> do
          waiting <- Plain.withConnection (Server.serverAddress server) $ \one -> do
            _ <- Plain.request one ["PING"]
            waiting <- submit client (Commands.incr "hits")
            eventually 10 "it was refused some times" ((>= 5) . length . filter failedAttempt <$> journalSoFar journal)
            pure waiting
          within 15 (awaitReply waiting) `shouldReturn` 1
        failures <- journalEntries journal
        [cause | ConnectAttemptFailed _ cause _ <- failures, not (noRoom cause)] `shouldBe` []

    it "that has no room hangs up on who speaks TLS, which is not taken for a wrong setting" $
      withTlsOf (\options -> options {optionsConfig = ["maxclients 1"]}) ClientCertificatesIgnored certificatesServer $ \certificates server port -> do
        let config = setTls (Just (trusting certificates)) (quick (standaloneConfig "127.0.0.1" (portOf port)))
        Plain.withConnection (Server.serverAddress server) $ \one -> do
          _ <- Plain.request one ["PING"]
          causes <- refusals 100 (impatient config) $ \client -> tryRun client Commands.ping
          filter (\case BrokenConnection why -> not ("while TLS was set up" `isInfixOf` why); _ -> True) causes `shouldBe` []
        withClient config $ \client -> eventually 5 "there is room" (either (const False) (const True) <$> tryRun client Commands.ping)

    it "that runs a script and would not select a database is asked again when it is done" $
      Server.withServer serverDefaults {optionsConfig = ["busy-reply-threshold 1"]} $ \server -> leavingNothing $ do
        (journal, config) <- journalled (single (setDatabase 3 (setCommandTimeout (Just (seconds 20)) (addressed server))))
        withAsync (Server.command server ["EVAL", "while true do end", "0"]) $ \_ -> do
          -- The server would still let in a client that connects before the script runs.
          eventually 10 "the script runs" . Plain.withConnection (Server.serverAddress server) $ \one ->
            (\case Plain.Failed said -> "BUSY" `Char8.isPrefixOf` said; _ -> False) <$> Plain.request one ["PING"]
          withClient (setMaxAttempts 1000 config) $ \client -> do
            waiting <- submit client (Commands.incr "hits")
            eventually 10 "it was refused" (any (\case ConnectAttemptFailed _ (HandshakeRefused said) _ -> serverErrorCode said == "BUSY"; _ -> False) <$> journalEntries journal)
            Plain.withConnection (Server.serverAddress server) $ \one -> Plain.request one ["SCRIPT", "KILL"] >>= (`shouldBe` Plain.Status "OK")
            within 15 (awaitReply waiting) `shouldReturn` 1

    it "whose port is closed is an error that names it, within the attempts allowed" $
      Server.withServer serverDefaults $ \server -> do
        Server.stop server
        leavingNothing . withClient (setMaxAttempts 4 (addressed server)) $ \client -> do
          began <- getMonotonicTime
          result <- tryRun client Commands.ping
          ended <- getMonotonicTime
          deliveryOf result `shouldBe` Just NotSent
          show result `shouldSatisfy` \text -> "refused" `isInfixOf` text && show (Server.serverPort server) `isInfixOf` text
          (ended - began) `shouldSatisfy` (< 2)

    it "whose name has no address is an error that says so" $
      leavingNothing . withClient (setMaxAttempts 2 (quick (standaloneConfig "no-such-host.invalid" 6379))) $ \client -> do
        result <- tryRun client Commands.ping
        either displayException show result `shouldSatisfy` ("is not known (no-such-host.invalid" `isInfixOf`)

    it "is reached by its name" $
      Server.withServer serverDefaults $ \server ->
        leavingNothing . withClient (quick (standaloneConfig "localhost" (portOf (Server.serverPort server)))) $ \client ->
          run client Commands.ping

    it "is reached over IPv6" $
      Server.withServer serverDefaults {optionsHosts = ["::1", "127.0.0.1"]} $ \server -> do
        tally <- underLoadOf 4 server (addressed server) (\_ _ -> pure ())
        tallyMaybe tally `shouldBe` 0

    it "is reached by its Unix socket, and found again after its end" $
      Server.withServer durable {optionsUnixSocket = True} $ \server -> case Server.serverSocket server of
        Nothing -> failure "no socket"
        Just path -> do
          tally <- underLoad server (quick (unixConfig path)) $ \_ load -> do
            Server.kill9 server
            awaitTally load ((> 0) . tallyNotRun)
            Server.restart server
          tallyNotRun tally `shouldSatisfy` (> 0)

  describe "TLS" $ do
    it "carries a load through cuts" $
      withTls ClientCertificatesIgnored certificatesServer $ \certificates server port ->
        Proxy.withProxy (TcpAddress "127.0.0.1" port) $ \proxy -> do
          tally <- underLoad server (setTls (Just (trusting certificates)) (through proxy)) $ \_ load ->
            forM_ [Proxy.Close, Proxy.Reset, Proxy.Close] $ \ending -> Proxy.cut proxy ending >> workersProgress load 8
          tallyMaybe tally `shouldSatisfy` (> 0)

    it "carries replies byte by byte" $
      withTls ClientCertificatesIgnored certificatesServer $ \certificates server port ->
        Proxy.withProxy (TcpAddress "127.0.0.1" port) $ \proxy -> do
          Proxy.slice proxy Proxy.ToClient 1
          tally <- underLoadOf 2 server (setTls (Just (trusting certificates)) (through proxy)) (\_ _ -> pure ())
          tallyMaybe tally `shouldBe` 0

    it "ends when what arrives is not TLS, and begins again" $
      withTls ClientCertificatesIgnored certificatesServer $ \certificates server port ->
        Proxy.withProxy (TcpAddress "127.0.0.1" port) $ \proxy -> do
          tally <- underLoad server (setTls (Just (trusting certificates)) (through proxy)) $ \_ load ->
            forM_ [1 :: Int .. 3] $ \_ -> Proxy.inject proxy "garbage, not a record\r\n" >> workersProgress load 8
          tallyMaybe tally `shouldSatisfy` (> 0)

    forM_ [("that is expired", certificatesExpired), ("for another host", certificatesWrongHost), ("of a stranger", certificatesUntrusted)] $ \(how, pair) ->
      it ("refuses a certificate " <> how <> ", once") $
        withTls ClientCertificatesIgnored pair $ \certificates _ port ->
          tlsRefusedOnce (trusting certificates) port

    it "shows a client certificate to a server that wants one" $
      withTls ClientCertificatesRequired certificatesServer $ \certificates server port -> do
        let KeyPair certificate key = certificatesClient certificates
            tls = (trusting certificates) {tlsCertificate = Just (certificate, key)}
        tally <- underLoadOf 2 server (setTls (Just tls) (quick (standaloneConfig "127.0.0.1" (portOf port)))) (\_ _ -> pure ())
        tallyMaybe tally `shouldBe` 0

    -- In TLS 1.3 the server judges the certificate after the client's handshake.
    forM_ ["TLSv1.2", "TLSv1.3"] $ \version -> describe ("of " <> version) $ do
      let demanding pair action =
            withTlsOf (\options -> options {optionsConfig = ["tls-protocols " <> version]}) ClientCertificatesRequired certificatesServer $ \certificates _ port -> do
              let shown KeyPair {keyPairCertificate, keyPairKey} = (keyPairCertificate, keyPairKey)
              action ((trusting certificates) {tlsCertificate = shown . ($ certificates) <$> pair}) port
          -- Without a proxy: one whose peer has ended the connection may drop what the peer said last.
          reasonOfOne tls port = do
            (journal, config) <- journalled (setTls (Just tls) (quick (standaloneConfig "127.0.0.1" (portOf port))))
            reason <- withClient config $ \client ->
              tryRun client Commands.ping >>= \case
                Left (ConnectionError (ConnectionFailure _ NotSent _ (TlsFailed reason))) -> pure reason
                other -> failure (show other)
            attempts <- filter failedAttempt <$> journalEntries journal
            reason <$ (length attempts `shouldBe` 1)
      it "without the client certificate that the server demands is refused once, and says so" $
        demanding Nothing $ \tls port -> do
          reason <- reasonOfOne tls port
          when (version == "TLSv1.3") $ reason `shouldContain` "the server demands a client certificate"
      it "with a client certificate of a stranger is refused once, and says so" $
        demanding (Just certificatesUntrusted) $ \tls port -> do
          reason <- reasonOfOne tls port
          reason `shouldContain` "the server does not accept the client certificate"
      it "without the client certificate is refused on every kind of connection" $
        demanding Nothing $ \tls port -> do
          let config = setTls (Just tls) (quick (standaloneConfig "127.0.0.1" (portOf port)))
              isRefused = \case
                Left (ConnectionError (ConnectionFailure _ NotSent _ (TlsFailed _))) -> True
                _ -> False
          leavingNothing . withClient config $ \client -> do
            try (withDedicated client AnyPrimary (`runOn` Commands.ping)) >>= (`shouldSatisfy` isRefused)
            tryRun client (Commands.blpop (pure "list") Nothing) >>= (`shouldSatisfy` isRefused . void)
          try (withWire config (firstOf (getEndpoints config)) (const (pure ()))) >>= (`shouldSatisfy` isRefused)

    it "to a server that speaks plain text is an error, in time" $
      withCertificates $ \certificates ->
        Server.withServer serverDefaults $ \server ->
          leavingNothing . withClient (setMaxAttempts 1 . setConnectTimeout (seconds 0.5) $ setTls (Just (trusting certificates)) (addressed server)) $ \client -> do
            result <- tryRun client Commands.ping
            case result of
              -- The server waits for the rest of an inline command. By chance the bytes may contain
              -- the end of a line; then it answers.
              Left (ConnectionError (ConnectionFailure _ NotSent _ (TlsTimedOut limit))) -> limit `shouldBe` seconds 0.5
              Left (ConnectionError (ConnectionFailure _ NotSent _ (TlsFailed _))) -> pure ()
              other -> expectationFailure (show other)
            either displayException show result `shouldSatisfy` \text -> all (`isInfixOf` text) ["plain text", "redis://", "setTls"]

    -- Of two callers of the one lent connection, one has it opened, and the other waits for its turn.
    forM_
      [ ("a command", \client -> pure <$> tryRun client Commands.ping),
        ("a command that waits for a lent connection", \client -> replicateConcurrently 2 (void <$> tryRun client (Commands.blpop (pure "list") Nothing)))
      ]
      $ \(what, ask) ->
        it ("to a server that speaks plain text is the reason that " <> what <> " gets whose time is over first") $
          withCertificates $ \certificates ->
            Server.withServer serverDefaults $ \server ->
              leavingNothing . withClient (setCommandTimeout (Just (seconds 0.3)) . setConnectTimeout (seconds 2) . setMaxDedicated 1 . setMaxAttempts 1 $ setTls (Just (trusting certificates)) (addressed server)) $ \client ->
                eventually 25 "the reason" $ do
                  results <- ask client
                  pure . or $
                    [ soFar <= seconds 2 && "plain text" `isInfixOf` displayException failed
                      | Left failed@(TimeoutError TimeoutFailure {timeoutDelivery = NotSent, timeoutConnecting = Just (_, TlsTimedOut soFar)}) <- results
                    ]

    it "to a cluster that speaks plain text is the reason that no node can be reached" $
      withCertificates $ \certificates ->
        Server.withServer serverDefaults $ \server ->
          leavingNothing . withClient (setConnectTimeout (seconds 20) . setTls (Just (trusting certificates)) $ quick (clusterConfig (pure (TcpEndpoint (Char8.pack (Server.serverHost server)) (fromIntegral (Server.serverPort server)))))) $ \client ->
            eventually 25 "the reason" $ do
              result <- tryRun client Commands.ping
              pure ("plain text" `isInfixOf` either displayException show result)

    it "is what a server wants that hangs up on plain text, and the error says so" $
      withTls ClientCertificatesIgnored certificatesServer $ \_ _ port ->
        leavingNothing . forM_ [PreferResp3, OnlyResp2] $ \protocol -> do
          let config = setProtocol protocol (quick (standaloneConfig "127.0.0.1" (portOf port)))
          causes <- refusals 50 (impatient config) $ \client -> tryRun client Commands.ping
          nub (filter (not . ("expects TLS does (use rediss:// or setTls)" `isInfixOf`) . renderCause) causes) `shouldBe` []

    it "with a file of authorities that is not there is an error before any connection" $
      newClient (setTls (Just tlsDefaults {tlsCaFile = Just "/nowhere/authority.pem"}) (quick (standaloneConfig "127.0.0.1" 1)))
        `shouldThrow` \case
          ConnectionError (ConnectionFailure _ NotSent _ (TlsFailed _)) -> True
          _ -> False

-- | One attempt for each command, and hardly a pause between two attempts.
impatient :: Config -> Config
impatient = setMaxAttempts 1 . setBackoff backoffDefaults {backoffFirst = milliseconds 1, backoffCap = milliseconds 1} . single

-- | A server that already has as many clients as it may have.
withoutRoom :: ServerOptions -> (Server.Server -> IO a) -> IO a
withoutRoom options action =
  Server.withServer options {optionsConfig = ["maxclients 1"]} $ \server ->
    Plain.withConnection (Server.serverAddress server) $ \one -> do
      _ <- Plain.request one ["PING"]
      leavingNothing (action server)

-- | Sends commands until this many attempts to connect have failed. Returns the causes that callers
-- got and the causes of the failed attempts.
refusals :: Int -> Config -> (Client -> IO (Either Error a)) -> IO [ConnectionCause]
refusals wanted plain ask = do
  (journal, config) <- journalled plain
  told <- withClient config $ \client ->
    let go told = do
          attempts <- length . filter failedAttempt <$> journalSoFar journal
          if attempts >= wanted
            then pure told
            else
              ask client >>= \case
                Left (ConnectionError (ConnectionFailure _ NotSent _ cause)) -> go (cause : told)
                Left other -> failure (show other)
                Right _ -> failure "it was let in"
     in within 60 (go [])
  events <- journalEntries journal
  pure (told <> [cause | ConnectAttemptFailed _ cause _ <- events])

noRoom :: ConnectionCause -> Bool
noRoom = \case
  HandshakeRefused said -> "max number of clients" `Char8.isPrefixOf` serverErrorMessage said
  _ -> False

-- | Checks that a command fails after one attempt, with a refusal that contains this text.
refusedOnce :: ServerOptions -> (Config -> Config) -> String -> Expectation
refusedOnce options change text =
  Server.withServer options $ \server ->
    Proxy.withProxy (Server.serverAddress server) $ \proxy ->
      leavingNothing . withClient (change (through proxy)) $ \client -> do
        result <- tryRun client Commands.ping
        case result of
          Left (ConnectionError (ConnectionFailure _ NotSent _ (HandshakeRefused _))) -> pure ()
          other -> expectationFailure (show other)
        show result `shouldSatisfy` (text `isInfixOf`)
        -- The password of the configurations that send one must not be shown.
        show result `shouldSatisfy` not . ("wrong" `isInfixOf`)
        traffic <- atomically (Proxy.proxyTraffic proxy)
        Proxy.trafficAccepted traffic `shouldBe` 1

tlsRefusedOnce :: TlsConfig -> Int -> Expectation
tlsRefusedOnce tls port =
  Proxy.withProxy (TcpAddress "127.0.0.1" port) $ \proxy ->
    leavingNothing . withClient (setTls (Just tls) (through proxy)) $ \client -> do
      tryRun client Commands.ping >>= \case
        Left (ConnectionError (ConnectionFailure _ NotSent _ (TlsFailed reason))) -> reason `shouldSatisfy` not . null
        other -> expectationFailure (show other)
      traffic <- atomically (Proxy.proxyTraffic proxy)
      Proxy.trafficAccepted traffic `shouldBe` 1

password :: Char8.ByteString -> Config -> Config
password text = setCredentials (Just Credentials {credentialsUser = Nothing, credentialsPassword = toSecret text})

as :: Char8.ByteString -> Char8.ByteString -> Config -> Config
as user text = setCredentials (Just Credentials {credentialsUser = Just user, credentialsPassword = toSecret text})

withReader :: ServerOptions
withReader = serverDefaults {optionsUsers = [AclUser {aclName = "reader", aclPassword = "secret", aclRules = "~* +@read +@connection +acl|whoami"}]}

withTls :: ClientCertificates -> (Certificates -> KeyPair) -> (Certificates -> Server.Server -> Int -> IO a) -> IO a
withTls = withTlsOf id

withTlsOf :: (ServerOptions -> ServerOptions) -> ClientCertificates -> (Certificates -> KeyPair) -> (Certificates -> Server.Server -> Int -> IO a) -> IO a
withTlsOf change clients pair action =
  withCertificates $ \certificates -> do
    let tls = TlsOptions {tlsKeyPair = pair certificates, tlsAuthority = certificatesAuthority certificates, tlsClients = clients}
    Server.withServer (change serverDefaults {optionsTls = Just tls}) $ \server ->
      maybe (failure "no TLS port") (action certificates server) (Server.serverTlsPort server)

trusting :: Certificates -> TlsConfig
trusting certificates = tlsDefaults {tlsCaFile = Just (certificatesAuthority certificates)}

portOf :: Int -> Port
portOf = fromIntegral

failedAttempt :: ConnectionEvent -> Bool
failedAttempt = \case
  ConnectAttemptFailed {} -> True
  _ -> False

firstOf :: NonEmpty.NonEmpty a -> a
firstOf (one NonEmpty.:| _) = one
