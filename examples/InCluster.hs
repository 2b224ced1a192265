-- | A cluster: the same client, the same commands.
--
-- The client sends each command to the node that serves its key. It follows redirects and keeps its
-- slot map up to date.
module InCluster (main) where

import Redis
import Redis.Commands qualified as Redis
import Redis.Metrics
import Settings (configFromArguments)

main :: IO ()
main = do
  -- Some of the cluster's nodes; the client finds the others through them.
  config <- configFromArguments "redis+cluster://127.0.0.1:7000,127.0.0.1:7001"
  withClient config $ \client -> do
    -- Keys of different slots: the client sends one part for each slot, and merges the results in
    -- the order of the keys. This is not atomic.
    run client (Redis.mset (("red", "1") :| [("green", "2"), ("blue", "3")]))
    run client (Redis.mget ("red" :| ["green", "blue"])) >>= print

    -- A command that cannot be split is refused before it is sent, as a server would refuse it.
    refused <- tryRun client (Redis.rename "red" "green")
    print refused

    -- The part of a key in braces decides its slot, so these two share one.
    run client (Redis.set "{user:1}:name" "Ada")
    run client (Redis.rename "{user:1}:name" "{user:1}:former-name")

    -- DBSIZE has no key: the client adds up the answers of all primaries.
    run client Redis.dbsize >>= print . (>= 0)

    -- The nodes that the client has used, and the number of connections to each.
    gauges <- snapshotNodes <$> clientSnapshot client
    mapM_ (putStrLn . describe) gauges
  where
    describe NodeSnapshot {gaugeEndpoint, gaugeConnections} =
      renderEndpoint gaugeEndpoint <> ": " <> show (length gaugeConnections) <> " connections, "
        <> show (sum (map gaugeInFlight gaugeConnections))
        <> " commands in flight"
