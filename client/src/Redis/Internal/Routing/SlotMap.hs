-- | The slot map: which primary serves which slot, as an immutable snapshot.
--
-- A look-up reads one unboxed array that has an index for each block of 64 slots (and, if the block
-- has several owners, a second array that has an index for each slot), and then the array of shards. A
-- map from slot ranges would be smaller, but slower on the path of every command.
--
-- A snapshot is canonical: shards and replicas are in the order of their endpoints, so two servers that
-- see the same cluster give equal maps.
module Redis.Internal.Routing.SlotMap
  ( SlotMap,
    Shard (..),
    emptySlotMap,
    slotOwner,
    slotReplicas,
    slotShardIndex,
    noShard,
    slotMapShards,
    slotMapServing,
    slotMapNodes,
    slotMapReplicas,
    slotMapCovered,
    slotMapUncovered,
    slotMapZones,
    sameOwners,
    Claim (..),
    slotMapFromClaims,
    withMoved,
  )
where

import Control.Monad (forM_, when)
import Control.Monad.ST (runST)
import Data.ByteString (ByteString)
import Data.IntMap.Strict qualified as IntMap
import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isNothing, listToMaybe)
import Data.Primitive.Array (Array, arrayFromList, indexArray, sizeofArray)
import Data.Primitive.ByteArray
import Data.Set (Set)
import Data.Set qualified as Set
import Data.Word (Word16)
import Redis.Error (Endpoint)
import Redis.Internal.Protocol.Slot (Slot, allSlots, slotCount, slotFromInt, slotNumber)

-- | A snapshot of a cluster.
data SlotMap = SlotMap
  { -- | Per slot an index into the shards, or 'noShard'.
    mapOwners :: ByteArray,
    -- | Per block of slots an index into the shards, or 'noShard', or 'mixed'. Half a kilobyte,
    -- which stays in the nearest cache: a look-up in the larger array often waits for memory.
    mapBlocks :: ByteArray,
    mapShards :: Array Shard,
    -- | The availability zones of those nodes whose zone the server told with the map.
    slotMapZones :: Map.Map Endpoint ByteString
  }
  deriving stock (Eq)

instance Show SlotMap where
  showsPrec precedence slotMap =
    showParen (precedence > 10) $
      showString "SlotMap covering "
        . shows (slotMapCovered slotMap)
        . showString " by "
        . shows (slotMapShards slotMap)

data Shard = Shard
  { shardPrimary :: Endpoint,
    -- | Ascending, without duplicates.
    shardReplicas :: [Endpoint]
  }
  deriving stock (Eq, Show)

emptySlotMap :: SlotMap
emptySlotMap = slotMapFromClaims []

-- | The index of a slot that nobody serves: 65535.
noShard :: Int
noShard = 0xffff

-- | Indices below this are free for shards.
mostShards :: Int
mostShards = mixed

-- | The position, among 'slotMapShards', of the shard that serves a slot, or 'noShard'. \(O(1)\).
slotShardIndex :: SlotMap -> Slot -> Int
slotShardIndex SlotMap {mapOwners, mapBlocks} slot
  | ofBlock /= mixed = ofBlock
  | otherwise = ownerAt mapOwners (slotNumber slot)
  where
    ofBlock = ownerAt mapBlocks (slotNumber slot `quot` blockSlots)

ownerAt :: ByteArray -> Int -> Int
ownerAt owners position = fromIntegral (indexByteArray owners position :: Word16)
{-# INLINE ownerAt #-}

blockSlots :: Int
blockSlots = 64

-- | The entry of a block whose slots have several owners.
mixed :: Int
mixed = 0xfffe

blocksOf :: ByteArray -> ByteArray
blocksOf owners = byteArrayFromList [fromIntegral (blockAt owners block) :: Word16 | block <- [0 .. slotCount `quot` blockSlots - 1]]

blockAt :: ByteArray -> Int -> Int
blockAt owners block
  | all ((== owner) . ownerAt owners) [first + 1 .. first + blockSlots - 1] = owner
  | otherwise = mixed
  where
    first = block * blockSlots
    owner = ownerAt owners first

-- | The shard that serves a slot. \(O(1)\).
slotShard :: SlotMap -> Slot -> Maybe Shard
slotShard slotMap slot =
  let index = slotShardIndex slotMap slot
   in if index == noShard then Nothing else Just (indexArray (mapShards slotMap) index)

-- | The primary that serves a slot, if one is known. \(O(1)\).
slotOwner :: SlotMap -> Slot -> Maybe Endpoint
slotOwner slotMap slot = shardPrimary <$> slotShard slotMap slot

-- | The replicas of the primary that serves a slot. \(O(1)\).
slotReplicas :: SlotMap -> Slot -> [Endpoint]
slotReplicas slotMap slot = maybe [] shardReplicas (slotShard slotMap slot)

-- | Every shard, in the order of 'slotShardIndex'. \(O(n)\).
slotMapShards :: SlotMap -> [Shard]
slotMapShards = foldr (:) [] . mapShards

-- | Every shard that serves slots, with the lowest of them. \(O(slots)\).
slotMapServing :: SlotMap -> [(Slot, Shard)]
slotMapServing slotMap =
  [(slot, indexArray (mapShards slotMap) index) | (index, number) <- IntMap.toList lowest, index /= noShard, Just slot <- [slotFromInt number]]
  where
    lowest = IntMap.fromListWith min [(ownerAt (mapOwners slotMap) number, number) | number <- [0 .. slotCount - 1]]

-- | Every node, primary or replica, once. \(O(n \log n)\).
slotMapNodes :: SlotMap -> Set Endpoint
slotMapNodes = Set.fromList . concatMap (\shard -> shardPrimary shard : shardReplicas shard) . slotMapShards

-- | Every replica, once. \(O(n \log n)\).
slotMapReplicas :: SlotMap -> Set Endpoint
slotMapReplicas = Set.fromList . concatMap shardReplicas . slotMapShards

-- | The lowest slot without a primary. \(O(slots)\).
slotMapUncovered :: SlotMap -> Maybe Slot
slotMapUncovered slotMap = listToMaybe [slot | (index, slot) <- zip (ownerIndices slotMap) allSlots, index == noShard]

-- | How many slots have a primary. \(O(slots)\).
slotMapCovered :: SlotMap -> Int
slotMapCovered = length . filter (/= noShard) . ownerIndices

ownerIndices :: SlotMap -> [Int]
ownerIndices SlotMap {mapOwners} = map (ownerAt mapOwners) [0 .. slotCount - 1]

-- | Whether two maps send every slot to the same primary. Replicas are not compared, because
-- each node has its own opinion of their health. \(O(slots)\).
sameOwners :: SlotMap -> SlotMap -> Bool
sameOwners a b
  | map shardPrimary (slotMapShards a) == map shardPrimary (slotMapShards b) = mapOwners a == mapOwners b
  | otherwise = and (zipWith sameOwner (ownerIndices a) (ownerIndices b))
  where
    sameOwner indexA indexB = primaryAt a indexA == primaryAt b indexB
    primaryAt slotMap index
      | index == noShard = Nothing
      | otherwise = Just (shardPrimary (indexArray (mapShards slotMap) index))

-- | A part of a server's answer: one shard serves these slots.
data Claim = Claim
  { -- | First and last of each range.
    claimRanges :: [(Slot, Slot)],
    -- | 'Nothing' if the server does not know its address; its slots are then uncovered.
    claimPrimary :: Maybe Endpoint,
    claimReplicas :: [Endpoint]
  }
  deriving stock (Eq, Show)

-- | Builds a snapshot. Of two claims to one slot the later one counts. A node that is a
-- primary of any claim is a replica of none. \(O(slots + n \log n)\).
slotMapFromClaims :: [Claim] -> SlotMap
slotMapFromClaims claims = SlotMap {mapOwners, mapBlocks = blocksOf mapOwners, mapShards, slotMapZones = Map.empty}
  where
    replicasOf :: Map.Map Endpoint (Set Endpoint)
    replicasOf =
      Map.fromAscList . take mostShards . Map.toAscList $
        Map.fromListWith Set.union [(primary, Set.fromList (claimReplicas claim)) | claim <- claims, Just primary <- [claimPrimary claim]]

    mapShards =
      arrayFromList
        [ Shard {shardPrimary = primary, shardReplicas = filter (`Map.notMember` replicasOf) (Set.toAscList replicas)}
          | (primary, replicas) <- Map.toAscList replicasOf
        ]

    mapOwners = runST $ do
      owners <- newByteArray (slotCount * 2)
      setByteArray owners 0 slotCount (fromIntegral noShard :: Word16)
      forM_ claims $ \claim -> do
        let index = fromMaybe noShard (claimPrimary claim >>= (`Map.lookupIndex` replicasOf))
        forM_ (claimRanges claim) $ \(first, final) ->
          -- A range whose end is before its start is empty.
          setByteArray owners (slotNumber first) (max 0 (slotNumber final - slotNumber first + 1)) (fromIntegral index :: Word16)
      unsafeFreezeByteArray owners

-- | The snapshot after a server said that this node serves a slot. The node may be new, or a
-- replica until now. \(O(slots)\), a copy of 32 KiB, unless the map says so already.
withMoved :: Slot -> Endpoint -> SlotMap -> SlotMap
withMoved slot endpoint slotMap
  | slotOwner slotMap slot == Just endpoint = slotMap
  | otherwise = slotMap {mapOwners = owned, mapBlocks = blocks, mapShards = arrayFromList shards}
  where
    before = mapShards slotMap
    known = List.findIndex ((== endpoint) . shardPrimary) (slotMapShards slotMap)
    place = length (takeWhile ((< endpoint) . shardPrimary) (slotMapShards slotMap))
    -- A full array has no room for one more shard; then the slot is uncovered until the next
    -- refresh finds its primary.
    isNew = isNothing known && sizeofArray before < mostShards
    index = fromMaybe (if isNew then place else noShard) known

    shards
      | isNew =
        let (lower, higher) = List.splitAt place (map withoutReplica (slotMapShards slotMap))
         in lower <> [Shard {shardPrimary = endpoint, shardReplicas = []}] <> higher
      | otherwise = slotMapShards slotMap
    withoutReplica shard = shard {shardReplicas = List.delete endpoint (shardReplicas shard)}

    owned = runST $ do
      owners <- newByteArray (slotCount * 2)
      copyByteArray owners 0 (mapOwners slotMap) 0 (slotCount * 2)
      when isNew . forM_ [0 .. slotCount - 1] $ \position -> do
        let owner = indexByteArray (mapOwners slotMap) position :: Word16
        when (fromIntegral owner >= place && fromIntegral owner /= noShard) (writeByteArray owners position (owner + 1))
      writeByteArray owners (slotNumber slot) (fromIntegral index :: Word16)
      unsafeFreezeByteArray owners

    -- Updates one block only: a cluster that moves thousands of slots reports each by itself.
    blocks
      | isNew = blocksOf owned
      | otherwise = runST $ do
        let block = slotNumber slot `quot` blockSlots
        changed <- newByteArray (sizeofByteArray (mapBlocks slotMap))
        copyByteArray changed 0 (mapBlocks slotMap) 0 (sizeofByteArray (mapBlocks slotMap))
        writeByteArray changed block (fromIntegral (blockAt owned block) :: Word16)
        unsafeFreezeByteArray changed
