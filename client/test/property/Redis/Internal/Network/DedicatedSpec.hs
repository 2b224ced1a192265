-- | Which caller gets which connection, over every order in which callers ask, give back
-- connections, lose them, are interrupted and run out of time, and the pool is closed.
module Redis.Internal.Network.DedicatedSpec (spec) where

import Data.List (delete, sort)
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Internal.Network.Dedicated
import System.Timeout (timeout)
import Test.Hspec
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck hiding (GaveUp)

spec :: Spec
spec = describe "Redis.Internal.Network.Dedicated" $ do
  it "keeps its promises in every state that three callers can bring it to, with one connection and with two" $
    [(broken, world) | limit <- [1, 2], world <- Set.toList (reachable limit), broken <- brokenPromises limit world] `shouldBe` []

  it "is searched to the end" $
    map (Set.size . reachable) [1, 2] `shouldSatisfy` all (> 300)

  prop "keeps its promises however many callers and connections there are" $
    forAll (chooseInt (1, 4)) $ \limit ->
      forAll (listOf (chooseInt (0, 1000))) $ \choices ->
        let worlds = scanl chosen (newWorld limit) choices
            chosen world choice = case moves [1 .. 6] 1000 world of
              [] -> world
              possible -> possible !! (choice `mod` length possible)
         in counterexample (show (last worlds)) (concatMap (brokenPromises limit) worlds === [])

  it "gives turns in the order in which callers came, past those who gave up" $ do
    let asked = List.foldl' (\state caller -> fst (step (Asked caller) state)) (newLending 1) [1 .. 5 :: Int]
        turns state = snd (step (GaveBack 0 'c') state)
        (held, _) = step (Opened 'c') asked
        (without2, _) = step (GaveUp 2) held
        (after3, _) = step (GaveBack 0 'c') without2
    turns held `shouldBe` [Give 2 (Use 'c')]
    turns without2 `shouldBe` [Give 3 (Use 'c')]
    turns after3 `shouldBe` [Give 4 (Use 'c')]

  it "lets many callers give up at a price that does not grow with their number" $ do
    let callers = [1 .. 40000 :: Int]
        through = List.foldl' (\state event -> fst (step event state))
        left = (newLending 1 `through` map Asked callers) `through` map GaveUp callers
    timeout 5000000 (gaugesOf (left :: Lending Int Int) `shouldBe` DedicatedGauges {gaugeLent = 0, gaugeIdle = 0, gaugeOpening = 1, gaugeLeasesWaiting = 0})
      `shouldReturn` Just ()

  it "lets the one go that lay idle too long, and no other" $ do
    let open state connection = fst (step (Opened connection) (fst (step (Asked connection) state)))
        lent = List.foldl' open (newLending 3) [1 .. 3 :: Int]
        idle = List.foldl' (\state connection -> fst (step (GaveBack (fromIntegral connection * 10) connection) state)) lent [1 .. 3]
        (later, actions) = step (IdleSince 20) idle
    actions `shouldBe` [Close 1]
    longestIdle later `shouldBe` Just 20
    gaugeIdle (gaugesOf later) `shouldBe` 2

-- | The machine's state, and what its callers know.
data World = World
  { worldLending :: Lending Ticket Int,
    worldCallers :: Map Int Caller,
    -- | The callers that wait, in the order in which they came.
    worldOrder :: [Int],
    worldNext :: Int,
    worldGone :: Set Int,
    -- | Steps that must never happen.
    worldFaults :: Set String
  }
  deriving stock (Eq, Ord, Show)

-- | A caller behind its place among those that wait, which changes as they go: so there are few states.
type Ticket = (Int, Int)

data Caller
  = Waits
  | HasTurn (Turn Int)
  | Holds Int
  deriving stock (Eq, Ord, Show)

newWorld :: Int -> World
newWorld limit =
  World {worldLending = newLending limit, worldCallers = Map.empty, worldOrder = [], worldNext = 1, worldGone = Set.empty, worldFaults = Set.empty}

-- | All events that may happen next, with at most this many connections opened in all.
moves :: [Int] -> Int -> World -> [World]
moves callers most world =
  concatMap ofCaller callers
    <> [happens Closed world, happens IdleUseless world, happens (IdleSince 1) world]
  where
    ofCaller caller = case Map.lookup caller (worldCallers world) of
      Nothing -> [happens (Asked (length (worldOrder world), caller)) world {worldCallers = Map.insert caller Waits (worldCallers world), worldOrder = worldOrder world <> [caller]}]
      -- The caller runs out of time, or is interrupted.
      Just Waits -> [happens (GaveUp (length (takeWhile (/= caller) (worldOrder world)), caller)) (leaves caller world) {worldOrder = delete caller (worldOrder world)}]
      Just (HasTurn turn) -> case turn of
        NoMore -> [leaves caller world]
        Open ->
          [happens NotOpened (leaves caller world)]
            <> [ -- If the pool has been closed meanwhile, the caller gets nothing.
                 happens (Opened new) (if lendingClosed (worldLending world) then leaves caller numbered else holds caller new numbered)
                 | worldNext world <= most
               ]
        Use connection ->
          [ holds caller connection world,
            -- The caller is interrupted before it can use the connection.
            happens (GaveBack 0 connection) (leaves caller world),
            -- The connection has died while it lay idle.
            happens (Replacing connection) (has caller Open world)
          ]
      Just (Holds connection) ->
        [happens (GaveBack now connection) (leaves caller world) | now <- [0, 1]]
          <> [happens (Lost connection) (leaves caller world)]
      where
        new = worldNext world
        numbered = world {worldNext = new + 1}

    leaves caller given = given {worldCallers = Map.delete caller (worldCallers given)}
    holds caller connection given = given {worldCallers = Map.insert caller (Holds connection) (worldCallers given)}
    has caller turn given = given {worldCallers = Map.insert caller (HasTurn turn) (worldCallers given)}

happens :: Event Ticket Int -> World -> World
happens event world =
  let (state, actions) = step event (worldLending world)
      queue = Set.fromList (zip [0 ..] (map snd (Set.toList (lendingQueue state))))
   in List.foldl' act world {worldLending = state {lendingQueue = queue}} actions
  where
    act now = \case
      Close connection
        | connection `Set.member` worldGone now -> fault ("closed twice: " <> show connection) now
        | otherwise -> now {worldGone = Set.insert connection (worldGone now)}
      Give (_, caller) turn
        | take 1 (worldOrder now) /= [caller] -> fault ("out of turn: " <> show caller) now
        | otherwise -> now {worldOrder = drop 1 (worldOrder now), worldCallers = Map.insert caller (HasTurn turn) (worldCallers now)}
    fault text now = now {worldFaults = Set.insert text (worldFaults now)}

brokenPromises :: Int -> World -> [String]
brokenPromises limit world =
  Set.toList (worldFaults world)
    <> ["more than the limit" | gaugeLent now + gaugeIdle now + gaugeOpening now > limit]
    <> ["somebody waits although there is one" | not (null (worldOrder world)), gaugeIdle now > 0 || gaugeLent now + gaugeOpening now < limit]
    <> ["who waits is not who came" | map snd (Set.toList (lendingQueue state)) /= worldOrder world || sort (worldOrder world) /= [caller | (caller, Waits) <- Map.toList (worldCallers world)]]
    <> ["less than nothing is counted" | any ((< 0) . ($ now)) [gaugeLent, gaugeIdle, gaugeOpening, gaugeLeasesWaiting]]
    <> ["lent is not what callers have" | lentOut state /= sort held]
    <> ["opening is not what callers open" | gaugeOpening now /= length [() | HasTurn Open <- Map.elems (worldCallers world)]]
    <> ["a connection that is closed is in hands" | any (`Set.member` worldGone world) held]
    <> ["something was kept after the end" | lendingClosed state, gaugeIdle now + gaugeLeasesWaiting now > 0]
  where
    state = worldLending world
    now = gaugesOf state
    held = concat [[connection] | caller <- Map.elems (worldCallers world), Just connection <- [inHand caller]]
    inHand = \case
      Holds connection -> Just connection
      HasTurn (Use connection) -> Just connection
      _ -> Nothing

reachable :: Int -> Set World
reachable limit = go Set.empty [newWorld limit]
  where
    go seen [] = seen
    go seen (world : later)
      | world `Set.member` seen = go seen later
      | otherwise = go (Set.insert world seen) (moves [1 .. 3] 3 world <> later)
