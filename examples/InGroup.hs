-- | A primary with replicas: the same client, whichever server is the primary.
module InGroup (main) where

import Control.Concurrent (threadDelay)
import Data.Map.Strict qualified as Map
import Redis
import Redis.Commands qualified as Redis
import Settings (configFromArguments)

main :: IO ()
main = do
  -- The sentinels, and the name under which they watch the primary.
  config <- configFromArguments "redis+sentinel://127.0.0.1:26379/mymaster"
  withClient (setReadFrom PreferReplica config) $ \client -> do
    run client (Redis.set "example:group" "written")

    -- Replicas answer reads, and may lag behind the primary.
    untilSeen client

    -- The servers of the group.
    nodes <- clientNodes client
    print (length [() | ClientNode {clientNodeRole = PrimaryNode} <- nodes])

    -- All of them at once, each addressed by its name.
    roles <- run client (onEvery AllNodes Redis.role)
    print (length [() | Redis.RoleReplica {} <- Map.elems roles])

    -- A write that must survive the loss of the primary asks how many replicas have it.
    copies <- withDedicated client (AtKey "example:group") $ \connection -> do
      _ <- runOn connection (Redis.incr "example:counter")
      runOn connection (Redis.wait 1 (Just (seconds 1)))
    print (copies >= 1)

    _ <- run client (Redis.unlink (pure "example:group"))
    _ <- run client (Redis.unlink (pure "example:counter"))
    pure ()

untilSeen :: Client -> IO ()
untilSeen client =
  run client (Redis.get "example:group") >>= \case
    Just value -> print value
    Nothing -> threadDelay 10000 >> untilSeen client
