-- | How a new primary serves at once.
--
-- A server that is a primary when its process starts does not serve for two seconds, whatever its
-- configuration says (@CLUSTER_WRITABLE_DELAY@ in its source). A replica that takes over serves on.
-- So each primary starts as the replica of a stand-in, from which it takes over; another stand-in
-- owns the slots of all other primaries until they come. Both exist only in the file of the new
-- node, which then forgets them.
module Redis.TestKit.Cluster.StandIn
  ( replicaOfStandIn,
    standIns,
    isStandIn,
  )
where

import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Redis.TestKit.Cluster.View (NodeId, NodeView (..), SlotRange)
import System.IO (IOMode (ReadMode), withBinaryFile)
import Text.Printf (printf)

-- | The @nodes.conf@ of a new node that is a replica of a stand-in with these slots, in rising
-- order, in a cluster of this epoch.
replicaOfStandIn :: Int -> [SlotRange] -> IO String
replicaOfStandIn epoch slots = do
  random <- withBinaryFile "/dev/urandom" ReadMode (`ByteString.hGet` 20)
  let self = concatMap (printf "%02x") (ByteString.unpack random)
      -- Valkey 9.1 leaves a node out of its own CLUSTER SHARDS whose file names no shard.
      inShard = ":0@0,,shard-id=" <> self
  pure . unlines $
    [ unwords [self, inShard, "myself,slave", Char8.unpack replaced, "0 0 0 connected"],
      standIn replaced inShard slots,
      standIn others ":0@0" (slotsBeside slots),
      "vars currentEpoch " <> show epoch <> " lastVoteEpoch 0"
    ]
  where
    -- A node without an address is never suspected, and no other hears of it.
    standIn name address ranges =
      unwords (Char8.unpack name : address : "master,noaddr - 0 0 0 disconnected" : [show from <> "-" <> show to | (from, to) <- ranges])

-- | The names of the stand-ins.
standIns :: [NodeId]
standIns = [replaced, others]

replaced, others :: NodeId
replaced = Char8.replicate 40 '0'
others = Char8.replicate 40 '1'

isStandIn :: NodeView -> Bool
isStandIn view = viewId view `elem` standIns

slotsBeside :: [SlotRange] -> [SlotRange]
slotsBeside = filter (uncurry (<=)) . go 0
  where
    go next = \case
      (from, to) : rest -> (next, from - 1) : go (to + 1) rest
      [] -> [(next, 16383)]
