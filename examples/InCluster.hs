-- | A cluster: the same client, the same commands.
--
-- Commands go to the node that serves their key. Redirects are followed and
-- the map of slots is kept up to date behind them.
module InCluster (main) where

import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis
import Redis.Commands qualified as Redis
import Redis.Metrics
import Settings (configFromArguments)

main :: IO ()
main = do
  -- Some of the cluster's nodes; the others are found through them.
  config <- configFromArguments "redis+cluster://127.0.0.1:7000,127.0.0.1:7001"
  withClient config $ \client -> do
    -- Keys of different slots: one part per slot, put together in the order of
    -- the keys. Not atomic.
    run client (Redis.mset (("red", "1") :| [("green", "2"), ("blue", "3")]))
    run client (Redis.mget ("red" :| ["green", "blue"])) >>= print

    -- What cannot be split is refused before it is sent, as a server would.
    refused <- tryRun client (Redis.rename "red" "green")
    print refused

    -- The part of a key in braces decides its slot, so these two share one.
    run client (Redis.set "{user:1}:name" "Ada")
    run client (Redis.rename "{user:1}:name" "{user:1}:former-name")

    -- Commands without a key go to one primary after the other.
    run client Redis.dbsize >>= print . (>= 0)

    -- The nodes that were talked to, and how many connections each has open.
    gauges <- snapshotNodes <$> clientSnapshot client
    mapM_ (putStrLn . describe) gauges
  where
    describe NodeSnapshot {gaugeEndpoint, gaugeConnections} =
      renderEndpoint gaugeEndpoint <> ": " <> show (length gaugeConnections) <> " connections, "
        <> show (sum (map gaugeInFlight gaugeConnections))
        <> " commands in flight"
