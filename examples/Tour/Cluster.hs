-- | A cluster: its slots, its shards, its nodes.
module Tour.Cluster (tour) where

import Control.Exception (displayException)
import Redis
import Redis.Commands qualified as Redis
import Tour.Fresh (fresh)

-- A server without cluster mode answers the first command with an error.
tour :: Client -> IO ()
tour client =
  tryRun client Redis.clusterSlots >>= \case
    Left failure -> putStrLn (takeWhile (/= ',') (displayException failure))
    Right served -> do
      print (length served)
      fresh client ("example:cluster" :| []) (inCluster client)

inCluster :: Client -> IO ()
inCluster client = do
  -- All nodes give the same answer about shards, and about the slot of a key.
  shards <- run client Redis.clusterShards
  print (length shards, sum (map size (concatMap Redis.shardSlots shards)))
  slot <- run client (Redis.clusterKeyslot "example:cluster")
  print slot

  -- The other commands are about a single node: the caller asks all nodes, or names one.
  healthy <- run client (onEvery AllNodes Redis.clusterInfo)
  print (all ((== Redis.ClusterOk) . Redis.clusterInfoState) healthy)
  ids <- run client (onEvery AllNodes Redis.clusterMyid)
  seen <- run client (onEvery AllNodes Redis.clusterNodes)
  print (all ((== length ids) . length) seen)

  -- A key is on the node that serves its slot, and nowhere else.
  run client (Redis.set "example:cluster" "value")
  counts <- run client (onEvery Primaries (Redis.clusterCountkeysinslot slot))
  print (sum counts)
  found <- run client (onEvery Primaries (Redis.clusterGetkeysinslot slot 10))
  print (concat found)
  where
    size (Redis.SlotRange from to) = to - from + 1
