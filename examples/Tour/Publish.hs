-- | Publishing, and asking who listens.
module Tour.Publish (tour) where

import Data.Foldable (for_)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis
import Redis.Commands qualified as Redis

tour :: Client -> IO ()
tour client = do
  -- How many got it: nobody listens here. In a cluster, of the node that was told.
  run client (Redis.publish "example:publish" "it rains") >>= print

  -- In a cluster a shard's channel stays with the node that has its slot.
  run client (Redis.spublish "example:publish" "it rains") >>= print

  -- Who listens is each node's own to say; on a server alone there is one node.
  nodes <- clientNodes client
  for_ (clientNodeEndpoint <$> take 1 nodes) $ \node -> do
    run client (onNode node (Redis.pubsubChannelsOf "example:*")) >>= print
    run client (onNode node (Redis.pubsubNumsub ("example:publish" :| []))) >>= print
