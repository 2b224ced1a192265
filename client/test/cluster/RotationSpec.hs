-- | Credentials that are replaced, and credentials that expire, node by node, under load.
module RotationSpec (spec) where

import Control.Concurrent.Async (concurrently, mapConcurrently_)
import Control.Concurrent.STM
import Control.Exception (finally)
import Control.Monad (forM_, unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Commands qualified as Redis
import Redis.TestKit.Cluster
import Redis.TestKit.Command (Reply (Status))
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait
import Support
import Test.Hspec hiding (after, before)

spec :: Spec
spec = describe "credentials that change in a cluster" . aroundAll (withCluster options) $ do
  it "lose nothing and fail nothing while a password is replaced on one node after the other" $ \cluster ->
    within 90 $ do
      nodes <- clusterNodes cluster
      newest <- newTVarIO "0"
      forM_ nodes (\node -> user node "app" "0")
      let issue = issuedCredentials . Credentials (Just "app") . toSecret <$> readTVarIO newest
      addresses <- clusterAddresses cluster
      withClient (setReadFrom ReadAny (patient (setCredentialsFrom issue (liveConfig addresses)))) $ \client -> do
        (audit, lent) <- worked client "replaced" . forM_ [1 .. 4 :: Int] $ \number -> do
          let text = Char8.pack (show number)
          -- Half of the nodes accept only the new password, and half only the old one.
          forM_ (zip [0 :: Int ..] nodes) $ \(index, node) -> do
            when (index == 3) (atomically (writeTVar newest text))
            Server.command (nodeServer node) ["ACL", "SETUSER", "app", "resetpass", ">" <> text] >>= (`shouldBe` Status "OK")
            -- New connections must present a password that this node accepts.
            when (even number) (void (Server.command (nodeServer node) ["CLIENT", "KILL", "USER", "app"]))
            pause 0.03
          reauthenticate client `shouldReturn` []
        [failed | failed <- auditFailed audit, errorDelivery failed /= MaybeExecuted] `shouldBe` []
        [failed | failed <- lent, isRefusal failed] `shouldBe` []
        verifyCounters client audit
        verifyTokens client audit

  it "lose nothing and fail nothing while tokens expire, and through a fail-over" $ \cluster ->
    within 90 $ do
      nodes <- clusterNodes cluster
      issued <- newTVarIO []
      let life = 1
          -- A machine that is busy may keep the client from renewing them in the last fifth of
          -- their time. That it renews them by then is shown without a server (CredentialStoreSpec).
          grace = 1
          issue = do
            number <- length <$> readTVarIO issued
            let name = "token-" <> Char8.pack (show number)
            mapConcurrently_ (\node -> user node name "secret") nodes
            now <- getMonotonicTime
            atomically (modifyTVar' issued ((name, now + life + grace) :))
            pure (issuedCredentials (Credentials (Just name) (toSecret "secret"))) {issuedFor = Just (seconds life)}
          -- A node closes the connections of a user that is deleted.
          expire = do
            now <- getMonotonicTime
            over <- atomically (stateTVar issued (\all' -> ([name | (name, end) <- all', end <= now], all')))
            forM_ over $ \name -> forM_ nodes $ \node -> Server.command (nodeServer node) ["ACL", "DELUSER", name]
            pure (length over)
          untilExpired wanted = do
            count <- expire
            unless (count >= wanted) (pause 0.05 >> untilExpired (wanted :: Int))
      addresses <- clusterAddresses cluster
      withClient (setReadFrom PreferReplica (patient (setCredentialsFrom issue (liveConfig addresses)))) $ \client -> do
        (audit, lent) <- worked client "expired" $ do
          untilExpired 1
          replica <- slotPrimary cluster 0 >>= replicasOf cluster >>= maybe (failure "a replica") pure . firstOf
          failover cluster replica
          untilExpired 3
        -- A planned fail-over loses nothing: the client resends the commands that it interrupts.
        auditFailed audit `shouldBe` []
        lent `shouldBe` []
        verifyCounters client audit
        verifyTokens client audit
  where
    options = clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1}
    patient = setMaxAttempts 1000 . setCommandTimeout (Just (seconds 10)) . setRefreshInterval (seconds 0.5)
    firstOf = \case
      one : _ -> Just one
      [] -> Nothing

-- The load of callers that share connections, and of one with dedicated connections. The result has
-- the errors of the latter's failed commands.
worked :: Client -> ByteString -> IO () -> IO (Audit, [Error])
worked client prefix action = do
  over <- newTVarIO False
  problems <- newTVarIO []
  let lending number = do
        stop <- readTVarIO over
        unless stop $ do
          let key = prefix <> ":lent:" <> Char8.pack (show (number `mod` 50 :: Int))
          -- Waits on the server, so it runs on a dedicated connection.
          taken <- tryRun client (Redis.blpop (pure key) (Just (seconds 0.05)))
          pushed <- tryRun client (void (Redis.incr (key <> ":counter")))
          atomically (modifyTVar' problems ([problem | Left problem <- [void taken, pushed]] <>))
          pause 0.005
          lending (number + 1)
  (audit, ()) <- concurrently (audited client prefix 4 action `finally` atomically (writeTVar over True)) (lending 0)
  (,) audit <$> readTVarIO problems

isRefusal :: Error -> Bool
isRefusal = \case
  ConnectionError ConnectionFailure {connectionCause = HandshakeRefused _} -> True
  ConnectionError ConnectionFailure {connectionCause = CredentialsFailed _} -> True
  _ -> False

user :: Node -> ByteString -> ByteString -> IO ()
user node name text =
  Server.command (nodeServer node) ["ACL", "SETUSER", name, "on", ">" <> text, "~*", "&*", "+@all"] >>= (`shouldBe` Status "OK")
