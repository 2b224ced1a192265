-- | Any commands, any faults, any order: a world that performs the machine's actions in its own
-- time, and records what it sees.
module Redis.Internal.Routing.RetryQueueSpec (spec) where

import Control.Monad (forM_)
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Redis.Duration (seconds)
import Redis.Error
import Redis.Internal.Command (CallOptions (..), Facts (..), factIdempotent, noOptions, readFacts, writeFacts)
import Redis.Internal.Config (AddressMapping (..), backoffDefaults)
import Redis.Internal.Network.Runtime (Nanos, deadlineAfter, nanosFromSeconds, noDeadline)
import Redis.Internal.Routing.RetryPolicy
import Redis.Internal.Routing.RetryQueue
import Redis.Internal.Routing.Target
import Support
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck hiding (again)

spec :: Spec
spec = describe "Recovery" . modifyMaxSuccess (const 500) $ do
  holds "ends every command exactly once" $ \world ->
    Map.elems (worldEnds world) === replicate (worldBegun world) 1

  holds "never has two attempts of one command on their way" $ \world -> worldDoubled world === []

  holds "sends nothing of a command that has ended" $ \world -> worldLate world === []

  holds "sends no write again that may have run" $ \world -> worldRisked world === []

  holds "keeps nobody past its time" $ \world -> worldOverdue world === []

  holds "has no cases left, and nothing to wait for, when all have ended" $ \world ->
    (retryQueueWake (worldMachine world), retryQueueSeeking (worldMachine world)) === (Nothing, False)

  holds "sends nothing of what has not left when it is stopped, and is over when the rest has ended" $ \world ->
    let (halted, actions) = step (worldNow world) Stop (worldMachine world)
     in (retryQueueIsOver halted, length actions) === (True, 0)

  it "looks for a node with each piece of news, until its time is over" $ do
    let (entered, first) = step 0 (EnterUnplaced (newCase 1 writeFacts) nowhere) newRetryQueue
        (seeking, none) = step 1 (Unplaced 0 nowhere) entered
        (looking, again) = step 2 News seeking
        (still, nothing) = step 3 (Unplaced 0 nowhere) looking
        (_, third) = step 4 News still
        (_, actions) = step (nanosFromSeconds timeLimit) Tick still
    map sends [first, none, again, nothing, third] `shouldBe` [[1], [], [1], [], [1]]
    map retryQueueSeeking [entered, seeking, looking, still] `shouldBe` [False, True, False, True]
    [failed | Finish _ failed <- actions] `shouldBe` [failedError nowhere]

  it "keeps commands for one slot in order when news brought no node for the first of them" $ do
    let (seeking, _) = step 1 (Unplaced 0 nowhere) (fst (step 0 (EnterUnplaced (newCase 3 writeFacts) nowhere) newRetryQueue))
        (still, _) = step 3 (Unplaced 0 nowhere) (fst (step 2 News seeking))
        (behind, sent) = step 4 (EnterUnplaced (newCase 6 writeFacts) nowhere) still
        (_, news) = step 5 News behind
    map sends [sent, news] `shouldBe` [[], [3, 6]]

  it "keeps commands for one slot in order that wait for news, and does not keep those for others" $ do
    let enter number = fst . step 0 (EnterUnplaced (newCase number writeFacts) nowhere)
        (seeking, _) = step 1 (Unplaced 0 nowhere) (enter 3 newRetryQueue)
        (behind, first) = step 2 (EnterUnplaced (newCase 6 writeFacts) nowhere) seeking
        (beside, second) = step 2 (EnterUnplaced (newCase 1 writeFacts) nowhere) behind
        (_, news) = step 3 News beside
    map sends [first, second, news] `shouldBe` [[], [1], [3, 6]]

  it "sends commands that failed together together, in the order in which they failed" $ do
    let enter machine number = fst (step 0 (Enter (newCase number readFacts) (RetryAfter 0.01 (TargetSlot (slotAt 1)))) machine)
        (_, actions) = step (nanosFromSeconds 0.02) Tick (List.foldl' enter newRetryQueue [1 .. 100])
    sends actions `shouldBe` [1 .. 100]

  it "sends a command as often as the policy allows, in all its attempts together" $ do
    let unlimited = (newCase 1 readFacts) {retryDeadline = noDeadline}
        go :: Int -> Nanos -> (RetryQueue Int, [Action Int]) -> Int
        go count now (machine, actions)
          | count > 100 = count
          | otherwise = case actions of
            Send number _ _ : _ -> go (count + 1) now (step now (Failed number refused) machine)
            _ -> case retryQueueWake machine of
              Just at -> go count at (step at Tick machine)
              Nothing -> count
        refused = nowhere {failedError = ReplyError (serverErrorFromText "TRYAGAIN Multiple keys"), failedNode = Just (node 1)}
    go 0 0 (step 0 (Enter unlimited (RetryNow (TargetSlot (slotAt 1)))) newRetryQueue) `shouldBe` 16

  it "ends what waits for news with the reason when its time is over" $ do
    let (entered, _) = step 0 (EnterUnplaced (newCase 1 writeFacts) nowhere) newRetryQueue
        (seeking, _) = step 1 (Unplaced 0 nowhere) entered
        (_, actions) = step (nanosFromSeconds timeLimit) Tick seeking
        -- The time is over while it looks for a node once more.
        (searching, _) = step 2 News seeking
        (_, late) = step (nanosFromSeconds timeLimit) Tick searching
    [failed | Finish _ failed <- actions] `shouldBe` [failedError nowhere]
    [unsent | Expire _ unsent _ <- late] `shouldBe` [failedError nowhere]

  it "asks the policy when a command that waits on the server has waited for news as long as an attempt may" $ do
    let (entered, _) = step 0 (EnterUnplaced (newCase 1 writeFacts) {retryDeadline = noDeadline} nowhere) newRetryQueue
        (seeking, _) = step 1 (Unplaced 0 nowhere) entered
        (early, none) = step (nanosFromSeconds timeLimit) Tick seeking
        (resting, late) = step (nanosFromSeconds timeLimit + 1) Tick early
    (map retryQueueWake [entered, seeking], map length [none, late]) `shouldBe` ([Nothing, Just (nanosFromSeconds timeLimit + 1)], [0, 1])
    (retryQueueSeeking resting, retryQueueWake resting > retryQueueWake seeking) `shouldBe` (False, True)

  it "keeps commands in order behind those of their slot that still wait, when one of these has ended" $ do
    let at time number = (newCase number writeFacts) {retryDeadline = deadlineAfter (nanosFromSeconds time) 0}
        enter machine fresh = fst (step 0 (EnterUnplaced fresh nowhere) machine)
        (seeking, _) = step 0 (Unplaced 0 nowhere) (enter newRetryQueue (at 1 3))
        two = List.foldl' enter seeking [at 5 6, at 5 9]
        (left, ended') = step (nanosFromSeconds 1) Tick two
        (behind, sent) = step (nanosFromSeconds 1) (EnterUnplaced (at 5 12) nowhere) left
        (_, news) = step (nanosFromSeconds 2) News behind
    ([number | Finish number _ <- ended'], map sends [sent, news]) `shouldBe` ([3], [[], [6, 9, 12]])

  it "ends what rests for longer than its time when that is over, and says that it was not sent" $ do
    let (resting, _) = step 0 (Enter (newCase 1 readFacts) (RetryAfter (2 * timeLimit) (TargetSlot (slotAt 1)))) newRetryQueue
        (over, actions) = step (nanosFromSeconds timeLimit) Tick resting
    retryQueueWake resting `shouldBe` Just (nanosFromSeconds timeLimit)
    ([failed | Finish _ failed <- actions], retryQueueWake over) `shouldBe` ([TimeoutError (TimeoutFailure "" NotSent (seconds timeLimit) Nothing)], Nothing)

  it "has a command that is on its way told whether it was sent when its time is over" $ do
    let (leaving, _) = step 0 (Enter (newCase 1 readFacts) (RetryNow (TargetSlot (slotAt 1)))) newRetryQueue
        (_, actions) = step (nanosFromSeconds timeLimit) Tick leaving
    [(unsent, sent) | Expire _ unsent sent <- actions] `shouldBe` [(TimeoutError (TimeoutFailure "" NotSent (seconds timeLimit) Nothing), TimeoutError (TimeoutFailure "" MaybeExecuted (seconds timeLimit) Nothing))]

  it "takes no notice of a reply to what has ended" $ do
    let (machine, _) = step 0 (Enter (newCase 1 readFacts) (RetryNow (TargetSlot (slotAt 1)))) newRetryQueue
        (over, _) = step (nanosFromSeconds timeLimit) Tick machine
        events = [Answered 0, Failed 0 nowhere, Unplaced 0 nowhere]
    [length (snd (step (nanosFromSeconds timeLimit) event over)) | event <- events] `shouldBe` [0, 0, 0]

  it "tells commands that wait for a node that the client is closed, when it is" $ do
    let (entered, _) = step 0 (EnterUnplaced (newCase 1 writeFacts) nowhere) newRetryQueue
        (seeking, _) = step 1 (Unplaced 0 nowhere) entered
        (halted, actions) = step 2 Stop seeking
    ([failed | Finish _ failed <- actions], retryQueueIsOver halted) `shouldBe` ([ClientClosed], True)

  it "has nothing wait for news that finds no node after the client was closed" $ do
    let (entered, _) = step 0 (EnterUnplaced (newCase 1 writeFacts) nowhere) newRetryQueue
        (halted, none) = step 1 Stop entered
        (over, actions) = step 2 (Unplaced 0 nowhere) halted
    (length none, retryQueueIsOver halted) `shouldBe` (0, False)
    [failed | Finish _ failed <- actions] `shouldBe` [failedError nowhere]
    (retryQueueIsOver over, retryQueueSeeking over) `shouldBe` (True, False)

  it "sends nothing that comes after the client was closed, and says what may have run" $ do
    let (halted, _) = step 0 Stop newRetryQueue
        doubtful = (newCase 2 writeFacts {factOptions = noOptions {optionIdempotent = True}}) {retrySoFar = decisionSoFar (decide (retryPolicy (newCase 2 writeFacts)) writeFacts {factOptions = noOptions {optionIdempotent = True}} noAttempts lost)}
        lost = nowhere {failedError = ConnectionError (ConnectionFailure "" MaybeExecuted (node 1) ClosedByPeer)}
        entering event = step 1 event halted
    forM_ [EnterUnplaced (newCase 1 writeFacts) nowhere, Enter (newCase 1 writeFacts) (RetryNow (TargetSlot (slotAt 1))), Enter (newCase 1 writeFacts) (RetryAfter 0.01 (TargetSlot (slotAt 1)))] $ \event -> do
      let (machine, actions) = entering event
      ([failed | Finish 1 failed <- actions], length actions, retryQueueIsOver machine) `shouldBe` ([ClientClosed], 1, True)
    [errorDelivery failed | Finish 2 failed <- snd (entering (Enter doubtful (RetryNow (TargetSlot (slotAt 1)))))] `shouldBe` [MaybeExecuted]
  where
    holds what law = prop what $ forAll (listOf anyMove) $ \moves -> law (settle (List.foldl' move emptyWorld moves))

sends :: [Action Int] -> [Int]
sends actions = [number | Send _ number _ <- actions]

nowhere :: FailedAttempt
nowhere =
  FailedAttempt
    { failedError = RoutingError (RoutingFailure "" NotSent (UncoveredSlot 7)),
      failedNode = Nothing,
      failedRole = Primary,
      failedRemaining = Nothing,
      failedRandom = 0.5
    }

timeLimit :: Double
timeLimit = 5

newCase :: Int -> Facts -> RetryState Int
newCase number facts =
  RetryState
    { retryPayload = number,
      retryFacts = facts,
      retryPolicy = RetryPolicy {policyMaxAttempts = 16, policyBackoff = backoffDefaults, policyFollowed = True, policyMapping = AddressMapping id, policyTarget = TargetSlot (slotAt (number `mod` 3))},
      retrySoFar = noAttempts,
      retryDeadline = deadlineAfter (nanosFromSeconds timeLimit) 0,
      retrySearch = nanosFromSeconds timeLimit
    }

-- | The next event. Numbers choose among the commands that there are.
data Move
  = -- | A command fails for the first time, or no node is known for it.
    Fails Bool (Maybe NextStep)
  | -- | A command that is on its way is answered.
    Answers Int
  | -- | A command that is on its way fails.
    Breaks Int Error
  | -- | No node is found for a command that is on its way.
    Misses Int
  | Hears
  | Waits Double
  deriving stock (Show)

anyMove :: Gen Move
anyMove =
  frequency
    [ (4, Fails <$> arbitrary <*> oneof [pure Nothing, Just <$> elements [RetryNow (TargetSlot (slotAt 1)), RetryAfter 0.02 (TargetSlot (slotAt 1)), RetryNow (ToNode (node 2))]]),
      (3, Answers <$> choose (0, 9)),
      (4, Breaks <$> choose (0, 9) <*> anyError),
      (3, Misses <$> choose (0, 9)),
      (2, pure Hears),
      (3, Waits <$> choose (0, 1.5))
    ]

anyError :: Gen Error
anyError =
  elements
    [ ConnectionError (ConnectionFailure "" NotSent (node 1) ClosedByPeer),
      ConnectionError (ConnectionFailure "" MaybeExecuted (node 1) ClosedByPeer),
      TimeoutError (TimeoutFailure "" MaybeExecuted (seconds timeLimit) Nothing),
      RoutingError (RoutingFailure "" NotSent (UncoveredSlot 7)),
      ReplyError (serverErrorFromText "MOVED 7 10.0.0.2:6379"),
      ReplyError (serverErrorFromText "ASK 7 10.0.0.2:6379"),
      ReplyError (serverErrorFromText "TRYAGAIN Multiple keys request during rehashing of slot"),
      ReplyError (serverErrorFromText "WRONGTYPE Operation against a key")
    ]

data World = World
  { worldMachine :: RetryQueue Int,
    worldNow :: Nanos,
    worldBegun :: Int,
    worldFacts :: Map Int Facts,
    worldBegan :: Map Int Nanos,
    -- | The command that is on its way under each number.
    worldLeaving :: Map RetryId Int,
    worldEnds :: Map Int Int,
    -- | The writes of which an attempt may have run.
    worldDoubtful :: [Int],
    worldDoubled :: [Int],
    worldLate :: [Int],
    worldRisked :: [Int],
    worldOverdue :: [Int]
  }

emptyWorld :: World
emptyWorld =
  World
    { worldMachine = newRetryQueue,
      worldNow = 0,
      worldBegun = 0,
      worldFacts = Map.empty,
      worldBegan = Map.empty,
      worldLeaving = Map.empty,
      worldEnds = Map.empty,
      worldDoubtful = [],
      worldDoubled = [],
      worldLate = [],
      worldRisked = [],
      worldOverdue = []
    }

move :: World -> Move -> World
move world = \case
  Fails isRead next ->
    let number = worldBegun world
        facts = if isRead then readFacts else writeFacts
        fresh = (newCase number facts) {retryDeadline = deadlineAfter (nanosFromSeconds timeLimit) (worldNow world)}
     in happen
          (maybe (EnterUnplaced fresh nowhere) (Enter fresh) next)
          world
            { worldBegun = number + 1,
              worldFacts = Map.insert number facts (worldFacts world),
              worldBegan = Map.insert number (worldNow world) (worldBegan world)
            }
  Answers which -> onLeaving which $ \number payload -> happen (Answered number) (ended payload world)
  Breaks which failed -> onLeaving which $ \number payload ->
    let doubtful = [payload | errorDelivery failed == MaybeExecuted, not (maybe False factIdempotent (Map.lookup payload (worldFacts world)))]
     in happen
          (Failed number nowhere {failedError = failed, failedNode = Just (node 1)})
          world {worldDoubtful = doubtful <> worldDoubtful world}
  Misses which -> onLeaving which $ \number _ -> happen (Unplaced number nowhere) world
  Hears -> happen News world
  Waits amount -> passing (worldNow world + nanosFromSeconds amount) world
  where
    onLeaving which act
      | Map.null (worldLeaving world) = world
      | otherwise =
        let (number, payload) = Map.elemAt (which `mod` Map.size (worldLeaving world)) (worldLeaving world)
         in (act :: RetryId -> Int -> World) number payload

-- | Lets time pass until the given moment; the driver ticks when it is due.
passing :: Nanos -> World -> World
passing until' world = case retryQueueWake (worldMachine world) of
  Just at | at <= until' -> passing until' (happen Tick world {worldNow = max at (worldNow world)})
  _ -> world {worldNow = max until' (worldNow world)}

ended :: Int -> World -> World
ended payload world =
  world
    { worldEnds = Map.insertWith (+) payload 1 (worldEnds world),
      worldOverdue = [payload | Just began <- [Map.lookup payload (worldBegan world)], worldNow world > began + nanosFromSeconds timeLimit] <> worldOverdue world
    }

happen :: Event Int -> World -> World
happen event world = List.foldl' obey about {worldMachine = machine} actions
  where
    (machine, actions) = step (worldNow world) event (worldMachine world)
    -- The attempt of this event is over.
    about = case event of
      Failed number _ -> world {worldLeaving = Map.delete number (worldLeaving world)}
      Answered number -> world {worldLeaving = Map.delete number (worldLeaving world)}
      Unplaced number _ -> world {worldLeaving = Map.delete number (worldLeaving world)}
      _ -> world

obey :: World -> Action Int -> World
obey world = \case
  Send number payload _ ->
    world
      { worldLeaving = Map.insert number payload (worldLeaving world),
        worldDoubled = [payload | payload `elem` Map.elems (worldLeaving world)] <> worldDoubled world,
        worldLate = [payload | Map.member payload (worldEnds world)] <> worldLate world,
        worldRisked = [payload | payload `elem` worldDoubtful world] <> worldRisked world
      }
  Finish payload _ -> ended payload world
  Expire payload _ _ -> ended payload world {worldLeaving = Map.filter (/= payload) (worldLeaving world)}
  Perform _ _ -> world

-- | Lets time pass until no caller waits any more.
settle :: World -> World
settle world = passing (worldNow world + nanosFromSeconds (2 * timeLimit)) world
