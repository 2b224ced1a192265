-- | Publishing, and asking for subscribers.
module Tour.Publish (tour) where

import Data.Foldable (for_)
import Redis
import Redis.Commands qualified as Redis

tour :: Client -> IO ()
tour client = do
  -- The number of subscribers that got the message: none here. In a cluster, it counts those of one
  -- node.
  run client (Redis.publish "example:publish" "it rains") >>= print

  -- In a cluster, a sharded channel belongs to the shard that has its slot.
  run client (Redis.spublish "example:publish" "it rains") >>= print

  -- Each node knows only its own subscribers; with a single server there is one node.
  nodes <- clientNodes client
  for_ (clientNodeEndpoint <$> take 1 nodes) $ \node -> do
    run client (onNode node (Redis.pubsubChannelsOf "example:*")) >>= print
    run client (onNode node (Redis.pubsubNumsub ("example:publish" :| []))) >>= print
