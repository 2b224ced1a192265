-- | The first commands of a new connection, and their effect on the server.
module Redis.HandshakeLiveSpec (spec) where

import Control.Concurrent.STM
import Control.Exception (displayException, try)
import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.List (isInfixOf)
import Data.List.NonEmpty qualified as NonEmpty
import Redis
import Redis.Commands qualified as Commands
import Redis.ScriptedPeer
import Redis.Subscription (channel, withSubscription)
import Redis.Surroundings (addressed, password)
import Redis.TestKit.Command (replyText)
import Redis.TestKit.Server (AclUser (..), Server, ServerOptions (..), serverDefaults, withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (failure, within)
import Redis.Value (Value (..))
import Redis.Wire (withWire)
import Test.Hspec

spec :: Spec
spec = around_ (within 60) $ do
  describe "a real server" $ do
    forM_ [("without a password", serverDefaults, id), ("with a password", guarded, password "right")] $ \(how, options, known) -> do
      it ("speaks RESP3 " <> how) $
        withServer options $ \server ->
          withClient (known (addressed server)) $ \client ->
            run client protocolOfMap >>= \case
              Map entries -> length entries `shouldBe` 3
              other -> expectationFailure (show other)

      it ("speaks RESP2 " <> how <> " to who wants nothing else") $
        withServer options $ \server ->
          withClient (setProtocol OnlyResp2 (known (addressed server))) $ \client ->
            run client protocolOfMap >>= \case
              Array elements -> length elements `shouldBe` 6
              other -> expectationFailure (show other)

    it "answers a client that is checked before anybody has it" $
      withServer guarded $ \server ->
        withCheckedClient (password "right" (addressed server)) (`run` Commands.echo "a") `shouldReturn` "a"

    it "is missed, or refuses the password, before anybody has the client" $
      withServer guarded $ \server -> do
        let checked :: Config -> IO (Either Error ())
            checked config = try (withCheckedClient (setConnectTimeout (seconds 1) (setCommandTimeout (Just (seconds 1)) config)) (const (failure "there is a client")))
        refused <- checked (password "wrong" (addressed server))
        show refused `shouldSatisfy` isInfixOf "WRONGPASS"
        Server.stop server
        missed <- checked (password "right" (addressed server))
        show missed `shouldSatisfy` isInfixOf "ConnectFailed"
        lent <- newClient (setMaxAttempts 1 (password "right" (addressed server)))
        tryWithDedicated lent AnyPrimary (const (pure ())) >>= \case
          Left failed -> errorDelivery failed `shouldBe` NotSent
          Right () -> expectationFailure "a connection to nobody"
        closeClient lent

    forM_ [PreferResp3, OnlyResp2] $ \protocol -> describe ("asked with " <> show protocol) $ do
      it "has every connection in the database that was asked for" $
        withServer serverDefaults $ \server ->
          withClient (setMuxCount (Just 3) (setDatabase 5 (setProtocol protocol (addressed server)))) $ \client -> do
            forM_ [1 :: Int .. 12] $ \_ -> run client (Commands.incr "hits")
            withDedicated client AnyPrimary $ \dedicated ->
              runOn dedicated (Commands.incr "hits") `shouldReturn` 13
            clients <- map (lookup "db") . filter ((== Just "") . lookup "name") <$> clientsOf server
            -- The testkit's own connection, which sends CLIENT LIST, is in database 0.
            filter (/= Just "0") clients `shouldSatisfy` \others -> length others >= 2 && all (== Just "5") others

      it "lists its clients by the name and the library that they gave" $
        withServer guarded $ \server ->
          withClient (setClientName (Just "the-name") (password "right" (setProtocol protocol (addressed server)))) $ \client -> do
            run client Commands.ping
            named <- filter ((== Just "the-name") . lookup "name") <$> clientsOf server
            named `shouldSatisfy` not . null
            -- Servers before 7.2 refuse the library's name, and list none.
            forM_ named $ \fields ->
              lookup "lib-name" fields `shouldSatisfy` (`elem` [Nothing, Just "redis-client-haskell"])

      it "refuses a user's wrong password, and says so before anything was sent" $
        withServer serverDefaults {optionsUsers = [reader]} $ \server ->
          withClient (user "reader" "wrong" (setProtocol protocol (addressed server))) $ \client ->
            tryRun client (Commands.incr "hits") >>= refusedWith "WRONGPASS"

      it "refuses a user that it does not know" $
        withServer serverDefaults {optionsUsers = [reader]} $ \server ->
          withClient (user "nobody" "secret" (setProtocol protocol (addressed server))) $ \client ->
            tryRun client (Commands.incr "hits") >>= refusedWith "WRONGPASS"

  describe "a peer" $ do
    it "is told everything at once: HELLO with credentials and name, the database, the library" $
      withPeer modern $ \peer ->
        withClient (everything (peerConfig peer)) $ \client -> do
          run client Commands.ping
          heard <- peerHeard peer
          heard
            `shouldBe` [ ["HELLO", "3", "AUTH", "reader", "secret", "SETNAME", "the-name"],
                         ["SELECT", "2"],
                         ["CLIENT", "SETINFO", "LIB-NAME", "redis-client-haskell"],
                         ["CLIENT", "SETINFO", "LIB-VER", "0.1.0"],
                         ["PING"]
                       ]

    it "is told no more than there is to tell" $
      withPeer modern $ \peer ->
        withClient (peerConfig peer) $ \client -> do
          run client Commands.ping
          heard <- peerHeard peer
          filter (not . isSetInfo) heard `shouldBe` [["HELLO", "3"], ["PING"]]

    it "is asked to tell of changes by a client that keeps what it reads" $
      withPeer tracking $ \peer ->
        withClient (setCaching (Just cachingDefaults) (peerConfig peer)) $ \client -> do
          run client Commands.ping
          heard <- peerHeard peer
          filter (not . isSetInfo) heard `shouldBe` [["HELLO", "3"], ["CLIENT", "TRACKING", "ON", "OPTIN"], ["PING"]]

    it "is told the prefixes of which it is to tell" $
      withPeer tracking $ \peer ->
        withClient (setCaching (Just cachingDefaults {cachingTracking = TrackPrefixes ("a:" :| ["b:"])}) (peerConfig peer)) $ \client -> do
          run client Commands.ping
          heard <- peerHeard peer
          filter (not . isSetInfo) heard `shouldBe` [["HELLO", "3"], ["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "a:", "PREFIX", "b:"], ["PING"]]

    forM_ [TrackReads, TrackPrefixes ("a:" :| ["b:"])] $ \how ->
      it ("is not asked to tell of changes on a connection of subscriptions, with " <> show how) $
        withPeer listening $ \peer ->
          withClient (setCaching (Just cachingDefaults {cachingTracking = how}) (peerConfig peer)) $ \client ->
            withSubscription client (channel "news") $ \_ -> do
              heard <- peerHeard peer
              filter (`elem` [["HELLO"], ["SUBSCRIBE"]]) (map (take 1) heard) `shouldBe` [["HELLO"], ["SUBSCRIBE"]]
              filter ((== ["CLIENT", "TRACKING"]) . take 2) heard `shouldBe` []

    it "is not asked for HELLO by a client that wants RESP2" $
      withPeer ancient $ \peer ->
        withClient (setProtocol OnlyResp2 (everything (peerConfig peer))) $ \client -> do
          run client Commands.ping
          heard <- peerHeard peer
          filter (not . isSetInfo) heard
            `shouldBe` [["AUTH", "reader", "secret"], ["CLIENT", "SETNAME", "the-name"], ["SELECT", "2"], ["PING"]]

    forM_ ["ERR unknown command 'HELLO'", "ERR unknown command `HELLO`, with args beginning with: `3`", "ERR unknown or unsupported command 'HELLO'", "ERR command 'HELLO' is not allowed", "unsupported command", "NOPROTO unsupported protocol version", "NOAUTH Authentication required.", "NOPERM this user has no permissions to run the 'hello' command", "invalid request", "ERROR unknown command", "-"] $ \refusal ->
      it ("that answers HELLO by " <> show refusal <> " is spoken to in RESP2, on the same connection") $
        withPeer (refusingHello refusal) $ \peer ->
          withClient (everything (peerConfig peer)) $ \client -> do
            run client Commands.ping
            heard <- peerHeard peer
            map (ByteString.intercalate " ") (dropWhile (/= ["AUTH", "reader", "secret"]) (filter (not . isSetInfo) heard))
              `shouldBe` ["AUTH reader secret", "CLIENT SETNAME the-name", "SELECT 2", "PING"]
            length (filter ((== ["HELLO"]) . take 1) heard) `shouldBe` 1

    it "that knows neither HELLO nor users gets the password alone" $
      withPeer ancient $ \peer ->
        withClient (password "right" (peerConfig peer)) $ \client -> do
          run client Commands.ping
          heard <- peerHeard peer
          filter ((== ["AUTH"]) . take 1) heard `shouldBe` [["AUTH", "right"]]

    it "that knows no HELLO may still refuse the password" $
      withPeer (\words' -> if take 1 words' == ["AUTH"] then "-ERR invalid password\r\n" else ancient words') $ \peer ->
        withClient (password "wrong" (peerConfig peer)) $ \client -> do
          tryRun client (Commands.incr "hits") >>= refusedWith "ERR"
          heard <- peerHeard peer
          filter ((== ["INCR"]) . take 1) heard `shouldBe` []

    forM_ [("", "hunter2"), (" of which it repeats a part", "hunter2" <> ByteString.replicate 300 120)] $ \(long, secret') -> it ("that knows no AUTH either, and repeats what it was told, has no password" <> long <> " repeated by this client") $
      withPeer (\words' -> if take 1 words' == ["AUTH"] then "-ERR unknown command 'AUTH', with args beginning with: 'reader' '" <> ByteString.take 120 secret' <> "' \r\n" else ancient words') $ \peer -> do
        events <- newTVarIO []
        let watched = setHooks noHooks {hookConnection = Just (\event -> atomically (modifyTVar' events (event :)))}
        result <- withClient (watched (user "reader" secret' (peerConfig peer))) (`tryRun` Commands.incr "hits")
        refusedWith "ERR" result
        told <- readTVarIO events
        let texts = [show result, either displayException show result, show told]
        told `shouldSatisfy` not . null
        filter ("hunter2" `isInfixOf`) texts `shouldBe` []
        -- The text still says what is wrong.
        filter (not . ("unknown command 'AUTH'" `isInfixOf`)) texts `shouldBe` []

    forM_ ["WRONGPASS no user reader has the password hunter2, nor hunter2", "ERR 'hunter2' is not it", "hunter2 is wrong"] $ \answer ->
      it ("that repeats the password elsewhere in its refusal has it not repeated by this client: " <> show answer) $
        withPeer (\case ["AUTH", _, _] -> "-" <> answer <> "\r\n"; "HELLO" : _ -> "-" <> answer <> "\r\n"; words' -> ancient words') $ \peer ->
          forM_ [PreferResp3, OnlyResp2] $ \protocol -> do
            events <- newTVarIO []
            let watched = setHooks noHooks {hookConnection = Just (\event -> atomically (modifyTVar' events (event :)))}
            result <- withClient (watched (setProtocol protocol (user "reader" "hunter2" (peerConfig peer)))) (`tryRun` Commands.incr "hits")
            -- A closed client has delivered all its events.
            told <- readTVarIO events
            let texts = [show result, either displayException show result, show told]
            told `shouldSatisfy` not . null
            filter ("hunter2" `isInfixOf`) texts `shouldBe` []
            filter (not . ("<secret>" `isInfixOf`)) texts `shouldBe` []

    it "that answers with an alert of TLS is said to want TLS" $
      withPeer (const "\x15\x03\x01\x00\x02\x02\x46") $ \peer -> do
        let failed = \case
              Left (ConnectionError (ConnectionFailure _ NotSent _ (TlsFailed why))) -> why `shouldSatisfy` ("expects TLS" `isInfixOf`)
              Left other -> expectationFailure (show other)
              Right () -> expectationFailure "it was spoken to"
        withClient (peerConfig peer) (`tryRun` Commands.ping) >>= failed
        try (withWire (peerConfig peer) (firstOf (getEndpoints (peerConfig peer))) (const (pure ()))) >>= failed

    forM_ [PreferResp3, OnlyResp2] $ \protocol -> do
      forM_ ["ERR unknown subcommand", "NOPERM no permission", "NOAUTH Authentication required.", "BUSY later", "invalid request", "WRONGPASS what"] $ \refusal ->
        it ("that answers the optional commands by " <> show refusal <> " serves with " <> show protocol) $
          withPeer (\case "CLIENT" : _ -> "-" <> refusal <> "\r\n"; words' -> modern words') $ \peer ->
            withClient (setProtocol protocol (everything (peerConfig peer))) $ \client -> do
              tryRun client Commands.ping `shouldReturn` Right ()
              withDedicated client AnyPrimary (`runOn` Commands.ping)

      forM_ ["invalid request", "ERROR what is this", "NOPERM no permission", "-"] $ \refusal ->
        it ("that answers a required command by " <> show refusal <> " is asked once, and the error says so, with " <> show protocol) $
          withPeer (\case "SELECT" : _ -> "-" <> refusal <> "\r\n"; words' -> modern words') $ \peer ->
            withClient (setProtocol protocol (setMaxAttempts 1000 (everything (peerConfig peer)))) $ \client -> do
              result <- tryRun client (Commands.incr "hits")
              refusedWith (Char8.takeWhile (/= ' ') refusal) result
              heard <- peerHeard peer
              length (filter ((== ["SELECT"]) . take 1) heard) `shouldBe` 1

    it "that is only not ready is asked HELLO again, in place of RESP2" $ do
      asked <- newTVarIO (0 :: Int)
      withPeerBy
        ( \case
            "HELLO" : _ -> do
              times <- atomically (stateTVar asked (\n -> (n, n + 1)))
              pure (Just (if times < 2 then "-LOADING Redis is loading the dataset in memory\r\n" else modern ["HELLO"]))
            words' -> pure (Just (modern words'))
        )
        $ \peer -> withClient (setMaxAttempts 1000 (peerConfig peer)) $ \client -> do
          run client Commands.ping
          readTVarIO asked `shouldReturn` 3

    describe "that closes the connection at commands that it does not know" $ do
      forM_ [PreferResp3, OnlyResp2] $ \protocol -> do
        it ("serves from the first command on, asked with " <> show protocol) $
          withClosingPeer (proxying ["PING", "AUTH", "SELECT", "INCR"]) $ \peer ->
            withClient (setProtocol protocol (everything (peerConfig peer))) $ \client -> do
              tryRun client (Commands.incr "hits") `shouldReturn` Right 1
              withDedicated client AnyPrimary $ \lent -> runOn lent (Commands.incr "hits") `shouldReturn` 1
              -- What was learnt on the first two connections holds for all.
              heard <- peerHeard peer
              length (filter ((`elem` [["HELLO"], ["CLIENT"]]) . take 1) heard) `shouldBe` 2

        it ("serves where nothing is required, and a connection as bytes too, asked with " <> show protocol) $
          withClosingPeer (proxying ["PING", "INCR"]) $ \peer -> do
            let config = setProtocol protocol (peerConfig peer)
            withClient config $ \client -> tryRun client (Commands.incr "hits") `shouldReturn` Right 1
            withWire config (firstOf (getEndpoints config)) (const (pure ()))

        it ("is named as such if it does not know a required command, and TLS is not, asked with " <> show protocol) $
          withClosingPeer (proxying ["PING"]) $ \peer ->
            withClient (setDatabase 2 (setProtocol protocol (peerConfig peer))) $ \client -> do
              result <- tryRun client (Commands.incr "hits")
              either displayException show result `shouldSatisfy` \text ->
                all (`isInfixOf` text) ["at SELECT", "proxy", "(not sent)"] && not ("TLS" `isInfixOf` text)

      it "cannot be used with a cache, and the error says why" $
        withClosingPeer (proxying ["PING", "GET"]) $ \peer ->
          withClient (setCaching (Just cachingDefaults) (peerConfig peer)) $ \client ->
            tryRun client (Commands.get "key") >>= (`shouldSatisfy` ("caching needs RESP3" `isInfixOf`)) . either displayException show

    it "whose connections were cut during the handshake is not taken for such a proxy for ever" $ do
      cut <- newTVarIO True
      let answer words' = (\hostile -> if hostile && take 1 words' == ["HELLO"] then Nothing else Just (tracking words')) <$> readTVarIO cut
      withPeerBy answer $ \peer -> withClient (setCaching (Just cachingDefaults) (peerConfig peer)) $ \client -> do
        -- This connection needs no RESP3, so it is made without HELLO.
        withDedicated client AnyPrimary $ \lent -> runOn lent Commands.ping
        atomically (writeTVar cut False)
        tryRun client Commands.ping `shouldReturn` Right ()

    it "that closes one connection during the handshake is asked everything on the next" $ do
      begun <- newTVarIO False
      withPeerBy
        ( \words' -> do
            first' <- atomically (stateTVar begun (\one -> (not one, True)))
            pure (if first' then Nothing else Just (modern words'))
        )
        $ \peer -> withClient (peerConfig peer) $ \client -> do
          tryRun client Commands.ping `shouldReturn` Right ()
          heard <- peerHeard peer
          filter (not . isSetInfo) heard `shouldBe` [["HELLO", "3"], ["PING"], ["HELLO", "3"], ["PING"]]

    it "that knows no HELLO may still refuse the database" $
      withPeer (\words' -> if take 1 words' == ["SELECT"] then "-ERR DB index is out of range\r\n" else ancient words') $ \peer ->
        withClient (setDatabase 2 (peerConfig peer)) $ \client ->
          tryRun client (Commands.incr "hits") >>= refusedWith "ERR"
  where
    everything = setDatabase 2 . setClientName (Just "the-name") . user "reader" "secret"
    guarded = serverDefaults {optionsPassword = Just "right"}
    reader = AclUser {aclName = "reader", aclPassword = "secret", aclRules = "~* +@all"}

-- | A reply that is a map in RESP3 and a list in RESP2.
protocolOfMap :: Command Value
protocolOfMap = raw ["DEBUG", "PROTOCOL", "map"]

-- | A peer that speaks RESP3, but refuses the name of the client's library.
modern :: [ByteString] -> ByteString
modern = \case
  "HELLO" : _ -> "%1\r\n$5\r\nproto\r\n:3\r\n"
  words' -> ancient words'

-- | Like 'modern', with client-side caching.
tracking :: [ByteString] -> ByteString
tracking = \case
  "CLIENT" : "TRACKING" : _ -> "+OK\r\n"
  words' -> modern words'

-- | Like 'tracking', with the channel @news@.
listening :: [ByteString] -> ByteString
listening = \case
  ["SUBSCRIBE", "news"] -> ">3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
  words' -> tracking words'

-- | A peer that knows RESP2 only.
ancient :: [ByteString] -> ByteString
ancient = refusingHello "ERR unknown command 'HELLO'"

refusingHello :: ByteString -> [ByteString] -> ByteString
refusingHello refusal = \case
  "HELLO" : _ -> "-" <> refusal <> "\r\n"
  ["PING"] -> "+PONG\r\n"
  "AUTH" : _ -> "+OK\r\n"
  "SELECT" : _ -> "+OK\r\n"
  ["CLIENT", "SETNAME", _] -> "+OK\r\n"
  _ -> "-ERR unknown command\r\n"

-- | A proxy that closes the connection at every command but these.
proxying :: [ByteString] -> [ByteString] -> Maybe ByteString
proxying known = \case
  name : _ | name `notElem` known -> Nothing
  "INCR" : _ -> Just ":1\r\n"
  words' -> Just (ancient words')

isSetInfo :: [ByteString] -> Bool
isSetInfo = (== ["CLIENT", "SETINFO"]) . take 2

refusedWith :: ByteString -> Either Error a -> Expectation
refusedWith code = \case
  Left (ConnectionError (ConnectionFailure _ NotSent _ (HandshakeRefused refusal))) -> serverErrorCode refusal `shouldBe` code
  Left other -> expectationFailure (show other)
  Right _ -> expectationFailure "it was not refused"

-- | The server's list of its clients, each by its fields.
clientsOf :: Server -> IO [[(ByteString, ByteString)]]
clientsOf server =
  Server.command server ["CLIENT", "LIST"] >>= \reply -> case replyText reply of
    Just text -> pure (map (map field . Char8.words) (Char8.lines text))
    Nothing -> failure "CLIENT LIST is no text"
  where
    field = fmap (ByteString.drop 1) . Char8.break (== '=')

user :: ByteString -> ByteString -> Config -> Config
user name text = setCredentials (Just Credentials {credentialsUser = Just name, credentialsPassword = toSecret text})

firstOf :: NonEmpty.NonEmpty a -> a
firstOf (one NonEmpty.:| _) = one
