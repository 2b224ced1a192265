-- | Walks over a cluster in which slots move, key by key or whole, and nodes fail over and restart,
-- in any order. A walk must report every key that exists throughout.
--
-- The model records where each key is. A process gives cursors that mean something different to
-- every other process, and a replica reports no keys, which is the worst that it may do.
module Redis.Internal.Routing.ScanSpec (spec) where

import Data.ByteString.Char8 qualified as Char8
import Data.IntMap.Strict qualified as IntMap
import Data.IntSet qualified as IntSet
import Data.List (foldl')
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe)
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Internal.Routing.Scan
import Support (node)
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Routing.Scan" $ do
  modifyMaxSuccess (const 4000) . prop "tells every key that is there throughout, whatever moves, fails over and restarts" $
    forAllShrink (resize 120 (listOf happening)) (take 200 . shrinkList (const [])) $ \events ->
      let world = calm (foldl' (flip happens) newWorld events)
       in counterexample (show (walkHalf (worldWalk world), Map.keys (walkScans (worldWalk world)))) $
            walkIsOver (worldWalk world) .&&. Set.toList (allKeys `Set.difference` worldTold world) === []

  prop "tells each key once when nothing happens" $
    let world = calm newWorld in Map.elems (worldTimes world) === map (const 1) (Set.toList allKeys)

  modifyMaxSuccess (const 50) . prop "is the same after it was written down and read" $
    forAll (resize 120 (listOf happening)) $ \events ->
      let world = foldl' (flip happens) newWorld events
          position = Position {positionOf = ["SCAN", "a key, %\r\n"], positionStanding = OverKeys (worldWalk world)}
       in positionFromText (positionText position) === Just position

  it "is not read from a number that is never written" $
    [positionFromText ("walk1 SCAN,keys " <> count) | count <- ["18446744073709551617", "+1", "-1", ""]] `shouldBe` replicate 4 Nothing

  prop "is read, or not, from any text" $ \text ->
    forAll (resize 60 (listOf happening)) $ \events ->
      let walk = worldWalk (foldl' (flip happens) newWorld events)
          written = positionText Position {positionOf = ["SCAN"], positionStanding = OverKeys walk}
          spoilt = [Char8.take 40 written <> Char8.pack text <> Char8.drop 44 written, Char8.pack text, Char8.drop 1 written, Char8.init written]
       in conjoin [maybe (property True) (\position -> positionFromText (positionText position) === Just position) (positionFromText bytes) | bytes <- spoilt]

-- | The possible events. Numbers are taken modulo the number of choices.
data Happening
  = -- | A node answers the oldest question, or another node answers its question.
    Answered Int
  | -- | The walk's position is written down, and another process goes on from it.
    Resumed
  | -- | A slot is marked to move.
    Marked Int Int
  | -- | A key of a marked slot moves.
    KeyMoved Int
  | -- | A marked slot that is empty at its source goes to its target.
    GivenOver Int
  | -- | The mark of a slot of which no key has moved is removed.
    TakenBack Int
  | -- | A slot moves as a whole.
    Moved Int Int
  | -- | The replica of a shard takes over, and the primary becomes its replica.
    FailedOver Int
  | -- | A node has restarted and has kept its keys.
    Restarted Int
  deriving stock (Eq, Show)

happening :: Gen Happening
happening =
  frequency
    [ (20, Answered <$> chooseInt (0, 5)),
      (1, pure Resumed),
      (4, Marked <$> chooseInt (0, 99) <*> chooseInt (0, 99)),
      (8, KeyMoved <$> chooseInt (0, 99)),
      (4, GivenOver <$> chooseInt (0, 99)),
      (1, TakenBack <$> chooseInt (0, 99)),
      (3, Moved <$> chooseInt (0, 99) <*> chooseInt (0, 99)),
      (2, FailedOver <$> chooseInt (0, 99)),
      (2, Restarted <$> chooseInt (0, 99))
    ]

-- | A key: its slot and its number.
type Key = (Int, Int)

-- | The number of slots that move from shard to shard. Slots from this number on stay where they
-- are.
movable :: Int
movable = 3

allKeys :: Set Key
allKeys = Set.fromList [(slot, number) | slot <- [0 .. movable + 2], number <- [1 .. 4]]

data World = World
  { -- | The shard of each slot.
    worldOwners :: Map Int Int,
    -- | The slots that are on their way to another shard.
    worldMarks :: Map Int Int,
    worldPlaces :: Map Key Int,
    -- | For each shard, which of its two nodes is the primary, and its epoch.
    worldPrimaries :: Map Int (Int, Int),
    -- | How often each node has restarted.
    worldRuns :: Map Int Int,
    worldWalk :: KeysWalk,
    -- | The unanswered questions with their nodes, the oldest first.
    worldAsked :: [(Int, KeyFilter, Task)],
    worldTold :: Set Key,
    worldTimes :: Map Key Int
  }

shards :: [Int]
shards = [0, 1, 2]

-- | The nodes of a shard: its number, and its number plus ten.
nodesOf :: Int -> [Int]
nodesOf shard = [shard, shard + 10]

shardOf :: Int -> Int
shardOf number = number `mod` 10

newWorld :: World
newWorld =
  World
    { worldOwners = Map.fromList [(slot, homeOf slot) | slot <- [0 .. movable - 1]],
      worldMarks = Map.empty,
      worldPlaces = Map.fromSet (homeOf . fst) allKeys,
      worldPrimaries = Map.fromList [(shard, (shard, shard + 1)) | shard <- shards],
      worldRuns = Map.empty,
      worldWalk = newKeysWalk,
      worldAsked = [],
      worldTold = Set.empty,
      worldTimes = Map.empty
    }

primaryOf :: World -> Int -> Int
primaryOf world shard = maybe shard fst (Map.lookup shard (worldPrimaries world))

isPrimary :: World -> Int -> Bool
isPrimary world number = primaryOf world (shardOf number) == number

ownerIn :: World -> Int -> Int
ownerIn world slot = fromMaybe (homeOf slot) (Map.lookup slot (worldOwners world))

-- | The shard that owns a slot at first: long ranges, except for the slots that have keys.
homeOf :: Int -> Int
homeOf slot
  | slot < movable + 3 = slot `mod` 3
  | otherwise = slot `div` 6000

-- | For each shard, its slots that never move.
fixed :: Map Int IntSet.IntSet
fixed = Map.fromList [(shard, IntSet.fromDistinctAscList [slot | slot <- [movable .. 16383], homeOf slot == shard]) | shard <- shards]

happens :: Happening -> World -> World
happens event world = case event of
  Answered n -> answered n world
  Resumed -> world {worldAsked = []}
  Marked n m -> case [slot | slot <- [0 .. movable - 1], Map.notMember slot (worldMarks world)] of
    [] -> world
    free -> let slot = pick n free in world {worldMarks = Map.insert slot (pick m (filter (/= ownerIn world slot) shards)) (worldMarks world)}
  KeyMoved n -> case [(key, target) | (slot, target) <- Map.toList (worldMarks world), key <- keysAt (ownerIn world slot) slot] of
    [] -> world
    keys -> let (key, target) = pick n keys in world {worldPlaces = Map.insert key target (worldPlaces world)}
  GivenOver n -> case [mark | mark@(slot, _) <- Map.toList (worldMarks world), null (keysAt (ownerIn world slot) slot)] of
    [] -> world
    marks -> let (slot, target) = pick n marks in owns target slot world {worldMarks = Map.delete slot (worldMarks world)}
  TakenBack n -> case [slot | (slot, target) <- Map.toList (worldMarks world), null (keysAt target slot)] of
    [] -> world
    slots -> world {worldMarks = Map.delete (pick n slots) (worldMarks world)}
  Moved n m -> case [slot | slot <- [0 .. movable - 1], Map.notMember slot (worldMarks world)] of
    [] -> world
    slots ->
      let slot = pick n slots
          target = pick m (filter (/= ownerIn world slot) shards)
       in owns target slot world {worldPlaces = Map.mapWithKey (\(itsSlot, _) place -> if itsSlot == slot then target else place) (worldPlaces world)}
  FailedOver n ->
    let shard = pick n shards
        other = pick 0 (filter (/= primaryOf world shard) (nodesOf shard))
     in world {worldPrimaries = Map.insert shard (other, highest + 1) (worldPrimaries world)}
  Restarted n -> world {worldRuns = Map.insertWith (+) (pick n (concatMap nodesOf shards)) 1 (worldRuns world)}
  where
    keysAt place slot = [key | (key, at) <- Map.toList (worldPlaces world), fst key == slot, at == place]
    highest = maximum (map snd (Map.elems (worldPrimaries world)))
    -- The new owner of a slot must have the highest epoch, or takes a higher one.
    owns target slot changed =
      changed
        { worldOwners = Map.insert slot target (worldOwners changed),
          worldPrimaries = Map.adjust (\(who, epoch) -> (who, if epoch == highest then epoch else highest + 1)) target (worldPrimaries changed)
        }

pick :: Int -> [a] -> a
pick n list = case drop (n `mod` length list) list of
  one : _ -> one
  [] -> error "nothing to pick from"

-- | The driver: an answer, or a round of looks if no question is open.
answered :: Int -> World -> World
answered n world = case worldAsked world of
  []
    | walkIsOver (worldWalk world) -> world
    | otherwise -> world {worldAsked = [(primaryOf world shard, TellAll, AskStatus) | shard <- shards]}
  asked ->
    let (number, telling, task) = pick n asked
        others = filter (\(other, _, _) -> other /= number) asked
     in case task of
          AskStatus -> onward number others (step (Saw (node number) (lookOf world number)) (worldWalk world)) Nothing world
          AskPage cursor ->
            let (found, next) = pageOf world number cursor
                told = filter (tells telling) found
             in onward
                  number
                  others
                  (step (Turned (node number) next) (worldWalk world))
                  (Just telling)
                  world
                    { worldTold = worldTold world <> Set.fromList told,
                      worldTimes = Map.unionWith (+) (worldTimes world) (Map.fromList (map (\key -> (key, 1)) told))
                    }
  where
    tells = \case
      TellAll -> const True
      TellOf slots -> (`IntSet.member` slots) . fst
    onward number others (walk, task) telling changed =
      changed
        { worldWalk = walk,
          worldAsked = others <> [(number, fromMaybe (keyFilterOf (node number) walk) telling, next) | Just next <- [task]]
        }

-- | A page of a process's keys. Each process has an order of its own, and gives one group of keys
-- at a time. A cursor from another process makes it begin again or skip some keys.
pageOf :: World -> Int -> Char8.ByteString -> ([Key], Maybe Char8.ByteString)
pageOf world number cursor
  | not (isPrimary world number) = ([], Nothing)
  | otherwise =
    ( [key | (key, place) <- Map.toList (worldPlaces world), place == shardOf number, bucket key == at],
      if at + 1 < 4 then Just (Char8.pack (show (at + 1))) else Nothing
    )
  where
    at = maybe 0 fst (Char8.readInt cursor)
    bucket (slot, key) = (slot + key + number + Map.findWithDefault 0 number (worldRuns world)) `mod` 4

lookOf :: World -> Int -> NodeStatus
lookOf world number =
  NodeStatus
    { statusNode = name number,
      statusIdentity = Char8.pack (show (number, Map.findWithDefault 0 number (worldRuns world), maybe 0 snd (Map.lookup shard (worldPrimaries world)))),
      statusOwned = if here then owned else IntSet.empty,
      statusLeaving = if here then IntMap.fromList [(slot, nameOf target) | (slot, target) <- Map.toList (worldMarks world), ownerIn world slot == shard] else IntMap.empty,
      statusComing = if here then IntMap.fromList [(slot, nameOf (ownerIn world slot)) | (slot, target) <- Map.toList (worldMarks world), target == shard] else IntMap.empty
    }
  where
    shard = shardOf number
    here = isPrimary world number
    owned = Map.findWithDefault IntSet.empty shard fixed <> IntSet.fromList [slot | slot <- [0 .. movable - 1], ownerIn world slot == shard]
    name = Char8.pack . show
    nameOf = name . primaryOf world

-- | Lets only the walk go on. Slots that are half moved stay so.
calm :: World -> World
calm = go (1000 :: Int)
  where
    go left world
      | left == 0 || walkIsOver (worldWalk world) = world
      | otherwise = go (left - 1) (answered 0 world)
