-- | A simulation: a cluster in a table, a clock that is a number, and a client that consists of
-- 'decide' and 'step'. One seed gives one history: primaries die and replicas take over, slots move
-- key by key, connections break before and after a command has run, and news spreads among the
-- nodes slowly.
module Redis.Internal.Routing.SimulationSpec (spec) where

import Data.ByteString.Char8 qualified as Char8
import Data.List qualified as List
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Error
import Redis.Internal.Command (readFacts, writeFacts)
import Redis.Internal.Config (AddressMapping (..), backoffDefaults)
import Redis.Internal.Routing.RetryPolicy
import Redis.Internal.Routing.SlotMap
import Redis.Internal.Routing.Target
import Redis.Internal.Routing.Topology
import Support
import System.Random (StdGen, mkStdGen, split, uniformR)
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck hiding (Failure)

spec :: Spec
spec = describe "A simulated cluster" . modifyMaxSuccess (const 150) $ do
  holds "ends every command, within its attempts and its time" $ \sim ->
    Map.size (simEnded sim) === commandCount
      .&&. [ended | ended <- Map.elems (simEnded sim), endedAttempts ended > maxAttempts || endedAfter ended > patience + 0.1] === []

  it "has commands sent many times, and commands of which nobody can tell" $ do
    let ended = concatMap (Map.elems . simEnded . simulate) [1 .. 20]
    filter ((> 4) . endedAttempts) ended `shouldNotBe` []
    [failed | Left failed <- map endedWith ended, errorDelivery failed == MaybeExecuted] `shouldNotBe` []

  holds "runs no write twice" $ \sim ->
    [number | (number, times) <- Map.toList (simRuns sim), isWrite number, times > 1] === []

  holds "has run what it says has run, and not what it says has not" $ \sim ->
    [ (number, ended)
      | (number, ended) <- Map.toList (simEnded sim),
        let runs = Map.findWithDefault 0 number (simRuns sim),
        isWrite number,
        case endedWith ended of
          Right () -> runs /= 1
          Left failed -> errorDelivery failed /= MaybeExecuted && runs /= 0
    ]
      === []

  holds "fails nothing when the cluster has been calm for a while" $ \sim ->
    [ (number, ended)
      | (number, ended) <- Map.toList (simEnded sim),
        endedBegan ended > calmFrom + 10,
        Left _ <- [endedWith ended]
    ]
      === []

  holds "knows in the end who serves what" $ \sim ->
    [ slot
      | slot <- Map.keys (simOwners sim),
        slotOwner (stateMap (simTopology sim)) (slotAt slot) /= (node <$> Map.lookup slot (simOwners sim))
    ]
      === []
  where
    holds what law = prop what $ \seed -> law (simulate seed)

-- | The times of the last fault and of the end of the simulation, in seconds.
calmFrom, horizon :: Seconds
calmFrom = 30
horizon = 200

patience :: Seconds
patience = 5

maxAttempts, commandCount, slotsUsed :: Int
maxAttempts = 16
commandCount = 300
slotsUsed = 9

-- | Every third command is a read.
isWrite :: Int -> Bool
isWrite number = number `mod` 3 /= 0

-- | How a command ended.
data Ended = Ended
  { endedBegan :: Seconds,
    endedAfter :: Seconds,
    endedAttempts :: Int,
    endedWith :: Either Error ()
  }
  deriving stock (Eq, Show)

-- | An event at a time.
data Happening
  = Begin Int
  | Attempt Int Seconds AttemptsSoFar Target
  | Conclude Int Seconds AttemptsSoFar (Maybe Endpoint) (Either Error ())
  | Learn Event
  | Die Int
  | TakeOver Int Int
  | Revive Int
  | StartMove Int Int
  | EndMove Int
  | Hear Int Int
  | Wake

data Sim = Sim
  { simQueue :: Map (Seconds, Int) Happening,
    simNext :: Int,
    simRandom :: StdGen,
    simTopology :: State,
    -- | The node that really serves each slot.
    simOwners :: Map Int Int,
    -- | The node that serves each slot, as each node believes.
    simBeliefs :: Map Int (Map Int Int),
    simDead :: Set Int,
    -- | The slots that are moving, with their targets.
    simMoving :: Map Int Int,
    simRuns :: Map Int Int,
    simEnded :: Map Int Ended
  }

simulate :: Int -> Sim
simulate seed = run (schedule 0 Wake (scheduled start))
  where
    (randomA, randomB) = split (mkStdGen seed)
    owners = Map.fromList [(slot, 1 + slot `mod` 3) | slot <- [0 .. slotsUsed - 1]]
    start =
      Sim
        { simQueue = Map.empty,
          simNext = 0,
          simRandom = randomA,
          simTopology = newState settings randomB 0,
          simOwners = owners,
          simBeliefs = Map.fromList [(number, owners) | number <- [1 .. 6]],
          simDead = Set.empty,
          simMoving = Map.empty,
          simRuns = Map.empty,
          simEnded = Map.empty
        }
    -- Commands throughout; faults until it is calm.
    scheduled sim = List.foldl' (\current number -> draw (0.1, 60) current (\at -> schedule at (Begin number))) (faults sim) [1 .. commandCount]
    faults sim = List.foldl' (\current fault -> draw (1, calmFrom - 8) current (`schedule` fault)) sim (map Die [1, 2, 3] <> [StartMove slot target | (slot, target) <- [(0, 2), (1, 3), (5, 1), (3, 3)]])

settings :: Settings
settings = topologySettings OfCluster (node 1 :| [node 2, node 6])

policy :: RetryPolicy
policy = RetryPolicy {policyMaxAttempts = maxAttempts, policyBackoff = backoffDefaults, policyFollowed = True, policyMapping = AddressMapping id, policyTarget = TargetAnyNode}

run :: Sim -> Sim
run sim = case Map.minViewWithKey (simQueue sim) of
  Just (((now, _), happening), rest)
    | now <= horizon -> run (happen now happening sim {simQueue = rest})
  _ -> sim

schedule :: Seconds -> Happening -> Sim -> Sim
schedule at happening sim =
  sim {simQueue = Map.insert (at, simNext sim) happening (simQueue sim), simNext = simNext sim + 1}

draw :: (Double, Double) -> Sim -> (Double -> Sim -> Sim) -> Sim
draw range sim continue = let (value, random) = uniformR range (simRandom sim) in continue value sim {simRandom = random}

-- | The first action with this probability, otherwise the second.
chance :: Double -> (Sim -> Sim) -> (Sim -> Sim) -> Sim -> Sim
chance probability yes no sim = draw (0, 1) sim (\value -> if value < probability then yes else no)

-- | Schedules an event in one to ten milliseconds.
soon :: Seconds -> Happening -> Sim -> Sim
soon now happening sim = draw (0.001, 0.01) sim (\delay -> schedule (now + delay) happening)

happen :: Seconds -> Happening -> Sim -> Sim
happen now happening sim = case happening of
  Begin number -> happen now (Attempt number now noAttempts (policyTarget policy)) sim
  Attempt number began soFar target -> attempt now number began soFar target sim
  Conclude number began soFar endpoint result -> conclude now number began soFar endpoint result sim
  Learn event -> stepped now event sim
  Wake
    | nextWake (simTopology sim) <= now -> stepped now Tick sim
    -- Each step has scheduled the next.
    | otherwise -> sim
  Die number
    | canDie number sim ->
      draw (0.5, 3) sim {simDead = Set.insert number (simDead sim)} $ \delay ->
        schedule (now + delay) (TakeOver number (number + 3)) . schedule (now + delay + 2) (Revive number)
    | otherwise -> sim
  TakeOver old new ->
    let taken = Map.map (\owner -> if owner == old then new else owner) (simOwners sim)
        changed = [slot | (slot, owner) <- Map.toList (simOwners sim), owner == old]
        quiet = sim {simOwners = taken, simMoving = Map.filter (/= old) (foldr Map.delete (simMoving sim) changed)}
     in List.foldl' (\current slot -> gossip now slot new current) quiet changed
  Revive number ->
    sim {simDead = Set.delete number (simDead sim), simBeliefs = Map.insert number (simOwners sim) (simBeliefs sim)}
  StartMove slot target
    | Map.lookup slot (simOwners sim) /= Just target && Set.notMember target (simDead sim) ->
      draw (0.2, 3) sim {simMoving = Map.insert slot target (simMoving sim)} (\delay -> schedule (now + delay) (EndMove slot))
    | otherwise -> sim
  EndMove slot -> case Map.lookup slot (simMoving sim) of
    Just target ->
      gossip now slot target sim {simOwners = Map.insert slot target (simOwners sim), simMoving = Map.delete slot (simMoving sim)}
    Nothing -> sim
  -- The state at this time: nodes tell old news from new by its epoch.
  Hear number slot ->
    sim {simBeliefs = Map.adjust (Map.union (Map.restrictKeys (simOwners sim) (Set.singleton slot))) number (simBeliefs sim)}

-- | Whether the node is a primary that may die: no node is dead, and no slot is moving to it.
canDie :: Int -> Sim -> Bool
canDie number sim =
  Set.null (simDead sim) && number `elem` Map.elems (simOwners sim) && number `notElem` Map.elems (simMoving sim)

-- | Spreads the news: the new owner knows at once, the others within half a second.
gossip :: Seconds -> Int -> Int -> Sim -> Sim
gossip now slot owner sim =
  List.foldl' tell sim {simBeliefs = Map.adjust (Map.insert slot owner) owner (simBeliefs sim)} [number | number <- [1 .. 6], number /= owner]
  where
    tell current number
      | Map.lookup slot (Map.findWithDefault Map.empty number (simBeliefs current)) == Just number = happen now (Hear number slot) current
      | otherwise = draw (0.01, 0.5) current (\delay -> schedule (now + delay) (Hear number slot))

-- | Gives an event to the topology and performs its actions.
stepped :: Seconds -> Event -> Sim -> Sim
stepped now event sim = schedule (max now (nextWake topology)) Wake (List.foldl' act sim {simTopology = topology} actions)
  where
    (topology, actions) = step now event (simTopology sim)
    act current = \case
      AskNodes refreshId _ endpoints -> List.foldl' (inquire refreshId) current endpoints
      AskSeeds refreshId _ endpoints -> List.foldl' (inquire refreshId) current endpoints
      _ -> current
    inquire refreshId current endpoint =
      let number = numberOf endpoint
          answer
            | Set.member number (simDead current) = Left (ConnectionError (ConnectionFailure "" NotSent (node number) (ConnectFailed "refused")))
            | otherwise = Right (accepted (Map.findWithDefault Map.empty number (simBeliefs current)))
       in soon now (Learn (Answered refreshId endpoint answer)) current
    accepted owners =
      TopologyReport
        { reportMap =
            slotMapFromClaims
              [ Claim {claimRanges = [(slotAt slot, slotAt slot)], claimPrimary = Just (node owner), claimReplicas = [node (replicaOf owner)]}
                | (slot, owner) <- Map.toList owners
              ],
          reportEpoch = Nothing,
          reportGroup = Nothing
        }
    replicaOf owner = if owner > 3 then owner - 3 else owner + 3

numberOf :: Endpoint -> Int
numberOf endpoint = case [number | number <- [1 .. 6], node number == endpoint] of
  number : _ -> number
  [] -> 0

-- | Sends a command to its target.
attempt :: Seconds -> Int -> Seconds -> AttemptsSoFar -> Target -> Sim -> Sim
attempt now number began soFar target sim = case target of
  ToNode endpoint -> deliver endpoint
  AskingNode endpoint -> deliver endpoint
  _ -> case slotOwner (stateMap (simTopology sim)) (slotAt slot) of
    Just endpoint -> deliver endpoint
    Nothing -> soon now (Conclude number began soFar Nothing (Left (RoutingError (RoutingFailure "" NotSent (UncoveredSlot slot))))) sim
  where
    slot = number `mod` slotsUsed

    deliver endpoint
      | Set.member (numberOf endpoint) (simDead sim) = ended (Left (ConnectionError (ConnectionFailure "" NotSent endpoint (ConnectFailed "refused")))) sim
      -- While there are faults, a connection may break on the way there or on the way back.
      | now < calmFrom = chance 0.03 (ended (lost endpoint)) (chance 0.03 (ended (lost endpoint) . ran) (serve endpoint)) sim
      | otherwise = serve endpoint sim
      where
        ended result = soon now (Conclude number began soFar (Just endpoint) result)
        lost at = Left (ConnectionError (ConnectionFailure "" MaybeExecuted at ClosedByPeer))
        refuse text = ended (Left (ReplyError (serverErrorFromText text)))
        -- Only if the server would have run the command.
        ran current = if isServed (numberOf endpoint) then executed current else current
        executed current = current {simRuns = Map.insertWith (+) number 1 (simRuns current)}
        isServed at = Map.lookup slot (simOwners sim) == Just at && Map.notMember slot (simMoving sim)
        pointing owner = Char8.pack (show slot) <> " 10.0.0." <> Char8.pack (show owner) <> ":6379"

        serve at current = case (Map.lookup slot (simOwners sim), Map.lookup slot (simMoving sim)) of
          (Just owner, moving)
            | owner == here -> case moving of
              -- Half of the keys have moved.
              Just goal -> chance 0.5 (refuse ("ASK " <> pointing goal)) (chance 0.2 (refuse "TRYAGAIN Multiple keys") (ended (Right ()) . executed)) current
              Nothing -> ended (Right ()) (executed current)
            | moving == Just here && needsAsking target -> chance 0.3 (refuse "TRYAGAIN Multiple keys") (ended (Right ()) . executed) current
          _ -> case Map.lookup here (simBeliefs sim) >>= Map.lookup slot of
            Just owner | owner /= here -> refuse ("MOVED " <> pointing owner) current
            _ -> refuse "CLUSTERDOWN Hash slot not served" current
          where
            here = numberOf at

-- | Handles the result of an attempt as the client does.
conclude :: Seconds -> Int -> Seconds -> AttemptsSoFar -> Maybe Endpoint -> Either Error () -> Sim -> Sim
conclude now number began soFar endpoint result sim = case result of
  Right () -> finish (soFarAttempts soFar + 1) (Right ()) sim
  Left failed -> draw (0, 1) sim $ \random current ->
    let outcome =
          decide
            policy
            (if isWrite number then writeFacts else readFacts)
            soFar
            FailedAttempt
              { failedError = failed,
                failedNode = endpoint,
                failedRole = Primary,
                failedRemaining = Just (began + patience - now),
                failedRandom = random
              }
        onwards = decisionSoFar outcome
        told = List.foldl' (\state -> \case Tell trigger -> stepped now (Triggered trigger) state; Reconnect _ -> state) current (decisionEffects outcome)
     in case decisionNext outcome of
          GiveUp final -> finish (soFarAttempts onwards) (Left final) told
          RetryNow target -> soon now (Attempt number began onwards target) told
          RetryAfter delay target -> schedule (now + delay) (Attempt number began onwards target) told
  where
    finish attempts final current =
      current
        { simEnded =
            Map.insert number Ended {endedBegan = began, endedAfter = now - began, endedAttempts = attempts, endedWith = final} (simEnded current)
        }
