-- | Testing a service that uses Redis: with a server that answers as the test says, and with real
-- servers that the test starts, breaks and kills.
module Testing (main) where

import Control.Monad (unless, void)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Redis
import Redis.Cluster.Slot (keySlot)
import Redis.Commands qualified as Redis
import Redis.TestKit.Address (Address (TcpAddress))
import Redis.TestKit.Cluster
import Redis.TestKit.Command (Reply (..))
import Redis.TestKit.Proxy (Direction (ToClient), Ending (Reset), Proxy, cutAfter, heal, proxyPort, withProxy)
import Redis.TestKit.Scripted
import Redis.TestKit.Server (serverAddress, serverDefaults, serverPort, withServer)

-- | The service: greets the users that it knows, and counts their visits.
greet :: Client -> ByteString -> IO ByteString
greet client user =
  run client (Redis.get ("name:" <> user)) >>= \case
    Nothing -> pure "Who are you?"
    Just name -> do
      counted <- tryRun client (Redis.incr ("visits:" <> user))
      pure (either (const ("Hello " <> name <> ", I cannot count.")) (const ("Hello " <> name <> ".")) counted)

-- LOST begins
replyLost :: Proxy -> Client -> IO (Either Error Int64)
replyLost proxy client = do
  _ <- run client Redis.ping -- the connection is open, and its handshake is over
  cutAfter proxy ToClient 0 Reset -- the next reply is lost, with its connection
  tryRun client (Redis.incr "visits:eve")

-- LOST ends

-- DRILL begins
withReplicas :: (Cluster -> IO a) -> IO a
withReplicas = withCluster clusterDefaults {clusterPrimaryCount = 3, clusterReplicasPerPrimary = 1}

primaryDies :: Cluster -> Client -> IO ()
primaryDies cluster client = do
  dead <- killPrimary cluster (keySlot "orders")
  _ <- awaitNewPrimary cluster (keySlot "orders") dead
  run client (Redis.set "orders" "7")

-- DRILL ends

main :: IO ()
main = do
  -- No Redis is needed: the script lists the commands that the server expects, and its answers.
  let script = inOrder [on ["GET", "name:ada"] [replies (Text "Ada")], on ["INCR", "visits:ada"] [fails "OOM command not allowed"]]
  withScripted script $ \server -> withClient (local (scriptedPort server)) $ \client ->
    greet client "ada" `gives` "Hello Ada, I cannot count."

  -- No real server does this on demand: it sends half a reply and closes the connection.
  let cutting = inOrder [on ["GET", "name:bob"] [cutsAfter 3 (Text "Bob")], on ["GET", "name:bob"] [replies Nil]]
  withScripted cutting $ \server -> withClient (local (scriptedPort server)) $ \client ->
    greet client "bob" `gives` "Who are you?"

  -- A private server that is removed afterwards, and a proxy in front of it that breaks
  -- connections.
  withServer serverDefaults $ \server -> do
    withClient (local (serverPort server)) $ \client -> run client (Redis.set "name:eve" "Eve")
    withProxy (serverAddress server) $ \proxy -> withClient (local (proxyPort proxy)) $ \client -> do
      greet client "eve" `gives` "Hello Eve."
      cutAfter proxy ToClient 2 Reset
      -- The client sends a read again. It does not send a write again that may have run.
      void (tryRun client (Redis.get "name:eve"))
      heal proxy
      greet client "eve" `gives` "Hello Eve."
    -- One shared connection: PING opens the one that carries INCR.
    withProxy (serverAddress server) $ \proxy -> withClient (setMuxCount (Just 1) (local (proxyPort proxy))) $ \client -> do
      (either errorDelivery (const NotSent) <$> replyLost proxy client) `gives` MaybeExecuted
      run client (Redis.get "visits:eve") `gives` Just "3"

  -- A cluster of its own, whose client goes on when a primary dies.
  withReplicas $ \cluster -> do
    addresses <- clusterAddresses cluster
    seeds <- maybe (fail "no nodes") pure (nonEmpty [TcpEndpoint (Char8.pack host) (fromIntegral port) | TcpAddress host port <- addresses])
    withClient (clusterConfig seeds) $ \client -> do
      primaryDies cluster client
      run client (Redis.get "orders") `gives` Just "7"
  putStrLn "all as expected"

local :: Int -> Config
local port = standaloneConfig "127.0.0.1" (fromIntegral port)

gives :: (Eq a, Show a) => IO a -> a -> IO ()
gives action expected = do
  result <- action
  unless (result == expected) (fail (show result <> " instead of " <> show expected))
