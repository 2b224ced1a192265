module Redis.Internal.Routing.SlotMapSpec (spec) where

import Control.Applicative ((<|>))
import Data.List (nub, sort)
import Data.List qualified as List
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust)
import Data.Set qualified as Set
import Redis.Internal.Protocol.Slot
import Redis.Internal.Routing.SlotMap
import Support
import Test.Hspec hiding (after, before)
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Routing.SlotMap" $ do
  it "covers nothing when empty" $ do
    slotMapCovered emptySlotMap `shouldBe` 0
    slotOwner emptySlotMap (slotAt 0) `shouldBe` Nothing

  prop "sends every slot to the last that claims it" $
    forAll anyClaims $ \claims ->
      let slotMap = slotMapFromClaims claims
          expected slot =
            List.foldl'
              (\owner (first, final, primary) -> if first <= slot && slot <= final then primary else owner)
              Nothing
              [(first, final, claimPrimary claim) | claim <- claims, (first, final) <- claimRanges claim]
       in [slot | slot <- allSlots, slotOwner slotMap slot /= expected slot] === []

  prop "counts the slots that have an owner" $
    forAll anyClaims $ \claims ->
      let slotMap = slotMapFromClaims claims
       in slotMapCovered slotMap === length (filter (isJust . slotOwner slotMap) allSlots)

  prop "does not depend on the order of claims that do not overlap" $
    forAll (partition 5) $ \claims ->
      forAll (shuffle claims) $ \shuffled -> slotMapFromClaims shuffled === slotMapFromClaims claims

  prop "lists no node twice, and no primary among replicas" $
    forAll anyClaims $ \claims ->
      let shards = slotMapShards (slotMapFromClaims claims)
          primaries = map shardPrimary shards
       in primaries === nub (sort primaries)
            .&&. all (\shard -> let replicas = shardReplicas shard in replicas == nub (sort replicas) && not (any (`elem` primaries) replicas)) shards

  prop "gives each slot an index into the shards" $
    forAll ((,) <$> anyClaims <*> anySlot) $ \(claims, slot) ->
      let slotMap = slotMapFromClaims claims
          index = slotShardIndex slotMap slot
       in case drop index (slotMapShards slotMap) of
            shard : _ -> slotOwner slotMap slot === Just (shardPrimary shard) .&&. slotReplicas slotMap slot === shardReplicas shard
            [] -> index === noShard .&&. slotOwner slotMap slot === Nothing

  describe "after a MOVED" $ do
    prop "sends that slot to the node named, and no other slot elsewhere" $
      forAll ((,,) <$> anyClaims <*> anySlot <*> anyNode) $ \(claims, slot, endpoint) ->
        let slotMap = slotMapFromClaims claims
            moved = withMoved slot endpoint slotMap
         in slotOwner moved slot === Just endpoint
              .&&. [other | other <- allSlots, other /= slot, slotOwner moved other /= slotOwner slotMap other] === []

    prop "holds after many, of slots side by side, wherever each goes in the end" $
      forAll ((,) <$> partition 5 <*> listOf ((,) <$> (slotAt <$> chooseInt (3200, 3400)) <*> (node <$> chooseInt (1, 6)))) $ \(claims, moves) ->
        let before = slotMapFromClaims claims
            after = List.foldl' (\slotMap (slot, endpoint) -> withMoved slot endpoint slotMap) before moves
            said = Map.fromList moves
            expected slot = Map.lookup slot said <|> slotOwner before slot
         in [slot | slot <- allSlots, slotOwner after slot /= expected slot] === []

    prop "keeps the shards in order, and the node a replica of nobody" $
      forAll ((,,) <$> anyClaims <*> anySlot <*> anyNode) $ \(claims, slot, endpoint) ->
        let slotMap = slotMapFromClaims claims
            moved = withMoved slot endpoint slotMap
            primaries = map shardPrimary (slotMapShards moved)
         in primaries === nub (sort primaries)
              .&&. (slotOwner slotMap slot /= Just endpoint ==> filter (elem endpoint . shardReplicas) (slotMapShards moved) === [])

    prop "is the same map when it said so already" $
      forAll ((,,) <$> anyClaims <*> anySlot <*> anyNode) $ \(claims, slot, endpoint) ->
        let moved = withMoved slot endpoint (slotMapFromClaims claims)
         in withMoved slot endpoint moved === moved

  prop "compares owners and nothing else" $
    forAll ((,) <$> anyClaims <*> anyClaims) $ \(claimsA, claimsB) ->
      let a = slotMapFromClaims claimsA
          b = slotMapFromClaims claimsB
          bare = slotMapFromClaims [claim {claimReplicas = []} | claim <- claimsA]
          owners slotMap = map (slotOwner slotMap) allSlots
       in sameOwners a b === (owners a == owners b) .&&. sameOwners a bare === True

  prop "names all nodes of its claims, once" $
    forAll anyClaims $ \claims ->
      slotMapNodes (slotMapFromClaims claims)
        === Set.fromList [node' | claim <- claims, Just primary <- [claimPrimary claim], node' <- primary : claimReplicas claim]

-- | The slots divided among this many primaries.
partition :: Int -> Gen [Claim]
partition count = pure [claim number | number <- [1 .. count]]
  where
    size = slotCount `div` count
    claim number =
      Claim
        { claimRanges = [(slotAt ((number - 1) * size), slotAt (number * size - 1))],
          claimPrimary = Just (node number),
          claimReplicas = [node (number + count)]
        }
