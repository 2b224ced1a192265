-- | Credentials that change while they are in use.
module CredentialsSpec (spec) where

import Control.Concurrent.STM
import Control.Exception (MaskingState (..), displayException, getMaskingState, throwIO)
import Control.Monad (forM_, replicateM_, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (isInfixOf, nub)
import Data.List.NonEmpty qualified as NonEmpty
import GHC.Clock (getMonotonicTime)
import Harness
import Redis
import Redis.Commands qualified as Commands
import Redis.TestKit.Command (Reply (Status), replyText)
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (Server, serverAddress, serverDefaults, withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventually, failure)
import Redis.Wire (withWire)
import Test.Hspec hiding (before)

spec :: Spec
spec = describe "credentials that change" $ do
  it "are said by all connections that live when that is asked for, and nothing is lost" $
    withServer serverDefaults $ \server -> do
      newUser server "app-1" "first"
      newest <- newTVarIO (named "app-1" "first")
      let config = setCredentialsFrom (issuedCredentials <$> readTVarIO newest) (setMuxCount (Just 3) (addressed server))
      tally <- underLoad server config $ \client load ->
        forM_ [2 .. 4 :: Int] $ \number -> do
          let user = "app-" <> Char8.pack (show number)
          newUser server user "next"
          atomically (writeTVar newest (named user "next"))
          reauthenticate client `shouldReturn` []
          nub . filter (/= "default") <$> usersOf server `shouldReturn` [user]
          -- This ends the connections that still use the old credentials.
          _ <- Server.command server ["ACL", "DELUSER", "app-" <> Char8.pack (show (number - 1))]
          workersProgress load 10
      (tallyMaybe tally, tallyNotRun tally) `shouldBe` (0, 0)

  it "are used for new connections when a password is replaced under load" $
    withServer serverDefaults $ \server -> do
      newUser server "app" "first"
      newest <- newTVarIO (named "app" "first")
      Proxy.withProxy (serverAddress server) $ \proxy -> do
        let issue = (\known -> (issuedCredentials known) {issuedFor = Just (seconds 600)}) <$> readTVarIO newest
        (journal, config) <- journalled (setCredentialsFrom issue (setMuxCount (Just 3) (through proxy)))
        tally <- underLoad server config $ \_ load -> do
          Server.command server ["ACL", "SETUSER", "app", ">second", "<first"] >>= (`shouldBe` Status "OK")
          atomically (writeTVar newest (named "app" "second"))
          workersProgress load 10
          -- The server now refuses the credentials issued before, so the client asks for new ones.
          replicateM_ 3 (Proxy.cut proxy Proxy.Close >> workersProgress load 10)
        tallyMaybe tally `shouldSatisfy` (> 0)
        refusedAttempts <- filter refused <$> journalEntries journal
        refusedAttempts `shouldBe` []

  it "are renewed before their time is over, once for all connections, and nothing is lost" $
    withServer serverDefaults $ \server -> do
      issues <- newTVarIO (0 :: Int)
      began <- getMonotonicTime
      let issue = do
            number <- atomically (stateTVar issues (\before -> (before + 1, before + 1)))
            let user = "app-" <> Char8.pack (show number)
            newUser server user "secret"
            pure (issuedCredentials (named user "secret")) {issuedFor = Just (seconds 1)}
      tally <- underLoad server (setCredentialsFrom issue (setMuxCount (Just 4) (addressed server))) $ \_ load -> do
        let others = filter (/= "default") <$> usersOf server
        forM_ [1 .. 3 :: Int] $ \_ -> do
          old <- nub <$> others
          old `shouldSatisfy` not . null
          eventually 10 "all have newer credentials" ((\now -> not (null now) && all (`notElem` old) now) <$> others)
          forM_ old $ \user -> Server.command server ["ACL", "DELUSER", user]
          workersProgress load 10
        count <- readTVarIO issues
        now <- getMonotonicTime
        -- Every connection uses the same credentials, which last for four fifths of a second.
        (count, now - began) `shouldSatisfy` \_ -> fromIntegral count <= 3 + (now - began) / 0.75
      (tallyMaybe tally, tallyNotRun tally) `shouldBe` (0, 0)

  it "are tried again soon when the action throws, and when the server refuses them" $
    withServer serverDefaults $ \server -> do
      newUser server "app-1" "secret"
      newUser server "app-2" "secret"
      attempts <- newTVarIO []
      let issue = do
            now <- getMonotonicTime
            count <- atomically (stateTVar attempts (\before -> (length before, now : before)))
            when (count `elem` [1, 2]) (throwIO (userError "the issuer is away"))
            let (user, text) = if count == 0 then ("app-1", "secret") else ("app-2", if count <= 4 then "not-yet-known" else "secret")
            pure (issuedCredentials (named user text)) {issuedFor = Just (seconds 3)}
      (journal, config) <- journalled (setCredentialsFrom issue (single (addressed server)))
      withClient config $ \client -> do
        run client Commands.ping
        eventually 20 "the connection is the new user's" (do run client Commands.ping; elem "app-2" <$> usersOf server)
        times <- reverse <$> readTVarIO attempts
        -- Five failures, with pauses of at most a twentieth of the credentials' life. A renewal
        -- would wait for four fifths of it.
        case times of
          _ : first : others@(_ : _ : _ : _ : _) -> (others !! 3) - first `shouldSatisfy` (< 2.2)
          _ -> expectationFailure (show times)
        told <- filter notRenewed <$> journalEntries journal
        [() | CredentialsNotRenewed _ (CredentialsFailed why) <- told, "the issuer is away" `isInfixOf` why] `shouldBe` [(), ()]
        [serverErrorCode said | CredentialsNotRenewed _ (HandshakeRefused said) <- told] `shouldBe` ["WRONGPASS", "WRONGPASS"]
        show told `shouldSatisfy` not . ("not-yet-known" `isInfixOf`)

  it "that a server refuses are told to who asks for them" $
    withServer serverDefaults $ \server -> do
      newUser server "app" "secret"
      newest <- newTVarIO (named "app" "secret")
      withClient (setCredentialsFrom (issuedCredentials <$> readTVarIO newest) (single (addressed server))) $ \client -> do
        reauthenticate client `shouldReturn` []
        run client Commands.ping
        atomically (writeTVar newest (named "app" "wrong"))
        reauthenticate client >>= \case
          [(_, HandshakeRefused said)] -> serverErrorCode said `shouldBe` "WRONGPASS"
          other -> expectationFailure (show other)
        -- The connection goes on with the credentials that it had.
        run client Commands.ping

  it "that a server does not answer in time are told to who asks for them" $
    behindProxy $ \server proxy -> do
      newUser server "app" "secret"
      let issue = pure (issuedCredentials (named "app" "secret"))
      withClient (setSilenceLimit Nothing (setCommandTimeout (Just (seconds 0.5)) (setCredentialsFrom issue (single (through proxy))))) $ \client -> do
        run client Commands.ping
        Proxy.freeze proxy Proxy.ToServer
        reauthenticate client >>= \case
          [(_, CredentialsFailed _)] -> pure ()
          other -> expectationFailure (show other)
        Proxy.heal proxy

  it "come from an action that can be interrupted, whatever it is run for" $
    withServer serverDefaults $ \server -> do
      newUser server "app" "secret"
      states <- newTVarIO []
      let issue = do
            state <- getMaskingState
            atomically (modifyTVar' states (state :))
            pure (issuedCredentials (named "app" "secret")) {issuedFor = Just (seconds 0.5)}
          config = setCredentialsFrom issue (single (addressed server))
      withClient config $ \client -> do
        withDedicated client AnyPrimary (`runOn` Commands.ping)
        run client Commands.ping
        _ <- reauthenticate client
        withWire config (firstOf (getEndpoints config)) (const (pure ()))
        before <- length <$> readTVarIO states
        eventually 10 "they were renewed" ((> before) . length <$> readTVarIO states)
      nub <$> readTVarIO states `shouldReturn` [Unmasked]

  it "that take longer than a connection may are the connection's error, and nothing hangs" $
    withServer serverDefaults $ \server -> leavingNothing $ do
      never <- newEmptyTMVarIO
      let config = setCredentialsFrom (atomically (takeTMVar never)) (setMaxAttempts 1 (setConnectTimeout (seconds 0.2) (addressed server)))
      withClient config $ \client -> do
        result <- tryRun client Commands.ping
        either displayException show result `shouldSatisfy` ("no connection within" `isInfixOf`)
        atomically (putTMVar never (issuedCredentials (Credentials Nothing (toSecret "nobody wants one"))))

notRenewed :: ConnectionEvent -> Bool
notRenewed = \case
  CredentialsNotRenewed {} -> True
  _ -> False

refused :: ConnectionEvent -> Bool
refused = \case
  ConnectAttemptFailed _ (HandshakeRefused _) _ -> True
  _ -> False

named :: ByteString -> ByteString -> Credentials
named user text = Credentials {credentialsUser = Just user, credentialsPassword = toSecret text}

newUser :: Server -> ByteString -> ByteString -> IO ()
newUser server user text = Server.command server ["ACL", "SETUSER", user, "on", ">" <> text, "~*", "&*", "+@all"] >>= (`shouldBe` Status "OK")

-- | The users as which the server's clients are logged in.
usersOf :: Server -> IO [ByteString]
usersOf server =
  Server.command server ["CLIENT", "LIST"] >>= \reply -> case replyText reply of
    Just text -> pure [Char8.drop 5 field | line <- Char8.lines text, field <- Char8.words line, "user=" `Char8.isPrefixOf` field]
    Nothing -> failure "CLIENT LIST is no text"

firstOf :: NonEmpty.NonEmpty a -> a
firstOf (one NonEmpty.:| _) = one
