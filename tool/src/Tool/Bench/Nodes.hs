-- | The node that a command goes to, as far as its key shows, so that a slow node is visible. This
-- is a copy of the client's map for counting, taken before the run.
module Tool.Bench.Nodes
  ( Nodes (NoNodes),
    nodesOf,
    nodeCount,
    nodeNames,
    nodeFor,
  )
where

import Data.Int (Int16)
import Data.IntMap.Strict qualified as IntMap
import Data.Primitive.PrimArray (PrimArray, indexPrimArray, primArrayFromListN)
import Data.Text (Text)
import Redis.Cluster.Slot (keySlot, slotCount)
import Redis.Command (Command, commandKeys)

-- | The nodes of a run, for counting.
data Nodes
  = -- | They are not distinguished: of a single server, and of a cluster that did not list its nodes.
    NoNodes
  | Nodes [Text] {-# UNPACK #-} (PrimArray Int16)

-- | Takes the names of the nodes and the slot ranges of each.
nodesOf :: [(Text, [(Int, Int)])] -> Nodes
nodesOf found
  | length found < 2 = NoNodes
  | otherwise =
    Nodes (map fst found) (primArrayFromListN slotCount (map ownerOf [0 .. slotCount - 1]))
  where
    ownerOf slot = IntMap.findWithDefault (-1) slot owners
    owners =
      IntMap.fromList
        [ (slot, number)
          | (number, (_, ranges)) <- zip [0 ..] found,
            (from, to) <- ranges,
            slot <- [from .. to]
        ]

-- | The number of nodes that are distinguished; 0 if none are.
nodeCount :: Nodes -> Int
nodeCount = length . nodeNames

-- | The names of the nodes, in the order of their numbers.
nodeNames :: Nodes -> [Text]
nodeNames = \case
  NoNodes -> []
  Nodes names _ -> names

-- | The number of the command's node; negative if it is not known. \(O(n)\) in the key.
nodeFor :: Nodes -> Command a -> Int
nodeFor nodes command = case nodes of
  NoNodes -> -1
  Nodes _ owners -> case commandKeys command of
    key : _ -> fromIntegral (indexPrimArray owners (keySlot key))
    [] -> -1
{-# INLINE nodeFor #-}
