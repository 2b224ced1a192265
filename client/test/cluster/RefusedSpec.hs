-- | Clusters that refuse the client as it is configured. Commands end at once with the reason, and
-- the client leaves the servers alone until a command needs them.
module RefusedSpec (spec) where

import Control.Exception (displayException)
import Control.Monad (forM_, replicateM)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (isInfixOf)
import FakeNode
import Redis
import Redis.Commands qualified as Redis
import Redis.TestKit.Address (Address (..))
import Redis.TestKit.Certificates
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Server (ClientCertificates (..), ServerOptions (..), TlsOptions (..), serverAddress, serverDefaults, serverHost, serverTlsPort, withServer)
import Redis.TestKit.Wait (eventually, within)
import Support
import Test.Hspec

spec :: Spec
spec = describe "a cluster that refuses this client" $ do
  forM_ refusals $ \(what, text) ->
    it (what <> " says so at once, and is not asked again while nobody wants anything") $
      limited . settled . withFakeNode $ \a -> do
        setScript a (refusing text)
        withClient (withPassword (setCommandTimeout (Just (seconds 3)) (clusterOf [fakeEndpoint a]))) $ \client -> do
          problem <- within 1 (tryRun client (Redis.get "key")) >>= expectError
          displayException problem `shouldSatisfy` isInfixOf (said text)
          errorDelivery problem `shouldBe` NotSent
          -- Later commands need not wait either.
          others <- within 1 (replicateM 20 (tryRun client (Redis.get "key")))
          others `shouldBe` replicate 20 (Left problem)
          connectionsEver a `shouldReturn` 1

  it "is used as soon as it lets the client in" $
    limited . settled . withFakeNode $ \a -> do
      setScript a (refusing "WRONGPASS invalid username-password pair or user is disabled.")
      withClient (withPassword (clusterOf [fakeEndpoint a])) $ \client -> do
        _ <- within 1 (tryRun client (Redis.get "key")) >>= expectError
        setScript a quiet
        eventually 3 "it answers" $ either (const False) (const True) <$> tryRun client (Redis.get "key")

  it "because it is no cluster says so" $
    limited . withServer serverDefaults $ \server ->
      withClient (liveConfig [serverAddress server]) $ \client -> do
        problem <- within 1 (tryRun client (Redis.get "key")) >>= expectError
        displayException problem `shouldSatisfy` isInfixOf "cluster support disabled"

  it "because its certificate is not trusted says so" $
    limited . withCertificates $ \certificates ->
      withServer serverDefaults {optionsTls = Just (tls certificates)} $ \server ->
        withClient (setTls (Just tlsDefaults) (liveConfig [TcpAddress (serverHost server) port | Just port <- [serverTlsPort server]])) $ \client -> do
          problem <- within 2 (tryRun client (Redis.get "key")) >>= expectError
          displayException problem `shouldSatisfy` isInfixOf "TLS failed"
  where
    refusals =
      [ ("for its password", "WRONGPASS invalid username-password pair or user is disabled."),
        ("for a database that is not there", "ERR SELECT is not allowed in cluster mode"),
        ("that may not ask for the map", "NOPERM this user has no permissions to run the 'cluster|shards' command")
      ]
    withPassword = setDatabase 1 . setCredentials (Just Credentials {credentialsUser = Nothing, credentialsPassword = toSecret "sesame"})
    said text = drop 1 (dropWhile (/= ' ') (Char8.unpack text))
    tls certificates =
      TlsOptions
        { tlsKeyPair = certificatesServer certificates,
          tlsAuthority = certificatesAuthority certificates,
          tlsClients = ClientCertificatesOptional
        }

-- | Sends this error to the command that it fits.
refusing :: ByteString -> Script
refusing text _ = \case
  "AUTH" : _ | text == "WRONGPASS invalid username-password pair or user is disabled." -> failed
  "SELECT" : _ | text == "ERR SELECT is not allowed in cluster mode" -> failed
  "CLUSTER" : _ | text == "NOPERM this user has no permissions to run the 'cluster|shards' command" -> failed
  _ -> pure Nothing
  where
    failed = pure (Just (Say (Failed text)))
