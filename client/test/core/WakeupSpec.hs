-- | An exhaustive search of the wake-up in "Redis.Internal.Network.Wakeup".
--
-- The test searches the model breadth first, until it finds no new state. The model has two
-- callers, one that waits for its replies and one that does not, the reader, the writer, the
-- watchdog, a server, and an end of the connection at any moment or none. It allows two commands in
-- flight, so callers wait for room as well.
--
-- What must hold of each state:
--
-- * At most one party writes to the socket, and nobody after the descriptor was freed.
-- * When nothing can happen any more but that a timer fires, everything is done: every
--   caller has its reply or an error, nothing is unsent, and after an end every thread is
--   gone. There is one exception. A reader that sleeps unwatched, with nothing in flight,
--   does not see the peer hang up before the timer fires; then the timer must fire.
-- * When it is the server's turn and nobody else's, the watchdog does not rest.
-- * From each state it comes to such an end without a timer. So nobody goes round for ever.
module WakeupSpec (spec) where

import Control.Applicative ((<|>))
import Control.Monad (forM_)
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.IntSet qualified as IntSet
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (listToMaybe, mapMaybe)
import Redis.Internal.Network.Wakeup hiding (Stuck)
import Test.Hspec
import WakeupModel

spec :: Spec
spec = describe "the wake-up" $ do
  forM_ scenarios $ \(scenario, size) ->
    it ("loses no wake and lets two never send at once, in any order of events, for " <> show scenario) $ do
      let found = search Nothing (start scenario)
      foundProblem found `shouldBe` Nothing
      -- The search finds all states. If these numbers differ, the model has changed.
      (foundStates found, foundDepth found) `shouldBe` size

  forM_ [minBound .. maxBound] $ \rule ->
    it ("needs the rule " <> show rule) $
      -- Searched in the smallest world that shows the problem.
      mapMaybe (foundProblem . search (Just rule) . start) (smaller <> map fst scenarios) `shouldSatisfy` not . null
  where
    -- Each with the number of its states, and the most actions that it takes to reach one.
    scenarios =
      [ (Scenario {scenarioPolls = False, scenarioMayEnd = False, scenarioRoom = 2, scenarioCommands = [2, 1]}, (28329, 46)),
        (Scenario {scenarioPolls = True, scenarioMayEnd = False, scenarioRoom = 2, scenarioCommands = [2, 1]}, (80844, 77)),
        (Scenario {scenarioPolls = False, scenarioMayEnd = True, scenarioRoom = 1, scenarioCommands = [1, 1]}, (29046, 32)),
        (Scenario {scenarioPolls = False, scenarioMayEnd = True, scenarioRoom = 2, scenarioCommands = [1, 1]}, (77368, 41)),
        (Scenario {scenarioPolls = True, scenarioMayEnd = True, scenarioRoom = 2, scenarioCommands = [1, 1]}, (143014, 62))
      ]
    smaller =
      [ Scenario {scenarioPolls, scenarioMayEnd, scenarioRoom = 2, scenarioCommands}
        | (scenarioMayEnd, scenarioCommands) <- [(False, [1, 0]), (True, [0, 0]), (True, [1, 0]), (False, [1, 1])],
          scenarioPolls <- [False, True]
      ]

-- | The result of a search.
data Found = Found
  { foundProblem :: Maybe Problem,
    foundStates :: Int,
    -- | The most actions that it takes to reach a state.
    foundDepth :: Int
  }

data Problem
  = SendTogether
  | ClosedEarly
  | -- | Nothing can happen any more, and something is not done.
    NeverDone
  | WatchdogRestsInFlight
  | -- | From some state no end can be reached.
    GoesRound
  deriving stock (Eq, Show)

-- | The progress of a search.
data Seen = Seen
  { -- | Every state, with its number.
    seenStates :: Map Key Int,
    -- | For each state, the states from which it can be reached without a timer.
    seenBefore :: IntMap [Int],
    -- | The states at which nothing moves.
    seenEnds :: [Int],
    -- | The states that have not been looked at yet.
    seenFresh :: [(Int, World)],
    seenProblem :: Maybe Problem
  }

-- | Searches all states that can follow.
search :: Maybe Rule -> World -> Found
search dropped from = go 0 Seen {seenStates = Map.singleton (keyOf from) 0, seenBefore = IntMap.empty, seenEnds = [], seenFresh = [(0, from)], seenProblem = Nothing}
  where
    go :: Int -> Seen -> Found
    go depth seen
      | Just _ <- seenProblem seen = found (seenProblem seen)
      | null (seenFresh seen) = found (goesRound (Map.size (seenStates seen)) (seenBefore seen) (seenEnds seen))
      | otherwise = go (depth + 1) (List.foldl' look seen {seenFresh = []} (seenFresh seen))
      where
        found problem = Found {foundStates = Map.size (seenStates seen), foundDepth = depth - 1, foundProblem = problem}

    look seen (number, world) =
      List.foldl' (follow number) seen {seenEnds = ends, seenProblem = seenProblem seen <|> listToMaybe (problems world next)} next
      where
        next = actions dropped world
        ends = if any (moves . fst) next then seenEnds seen else number : seenEnds seen

    follow number seen (actor, world) = case Map.lookup key (seenStates seen) of
      Just old -> seen {seenBefore = reached old}
      Nothing ->
        let new = Map.size (seenStates seen)
         in seen {seenStates = Map.insert key new (seenStates seen), seenBefore = reached new, seenFresh = (new, world) : seenFresh seen}
      where
        key = keyOf world
        reached target
          | moves actor = IntMap.insertWith (<>) target [number] (seenBefore seen)
          | otherwise = seenBefore seen

-- | The problems of a state, given all actions that can follow.
problems :: World -> [(Actor, World)] -> [Problem]
problems world next =
  [SendTogether | sendingAtOnce world > 1]
    <> [ClosedEarly | closedTooEarly world]
    <> [NeverDone | null [() | (actor, _) <- next, moves actor], not (done world || timerHelps world next)]
    <> [WatchdogRestsInFlight | null [() | (Us, _) <- next], not (null (ring world)), doing (watchdog world) == Rests]

-- | Whether the actor acts by itself, without a timer.
moves :: Actor -> Bool
moves actor = actor == Us || actor == Server

-- | Whether nothing is left to do.
done :: World -> Bool
done world =
  and [doing party == Finished | (party, _) <- callers world]
    && null (ring world)
    && (wakeupUnsent (machine world) == 0 || gone)
    && (gone || not over)
  where
    over = hungUp world || shutDown world || wakeupLife (machine world) /= Open
    gone = doing (reader world) == ReaderGone && doing (writer world) == NoWriter && doing (watchdog world) == WatchdogGone

-- | Whether only the peer's hang-up has not been noticed, and the watchdog is about to make the
-- reader notice it.
timerHelps :: World -> [(Actor, World)] -> Bool
timerHelps world next =
  hungUp world
    && wakeupReader (machine world) == AsleepUnwatched
    && wakeupUnsent (machine world) == 0
    && and [doing party == Finished | (party, _) <- callers world]
    && or [wakesReader (woken later) | (Timer, later) <- next]
  where
    woken later = Step {stepState = machine later, stepAnswer = Leave, stepWakes = owes (watchdog later)}

-- | 'GoesRound' if there are states from which none of those ends can be reached.
goesRound :: Int -> IntMap [Int] -> [Int] -> Maybe Problem
goesRound count leading ends = if IntSet.size (back (IntSet.fromList ends) ends) == count then Nothing else Just GoesRound
  where
    back reached = \case
      [] -> reached
      number : rest ->
        let fresh = [one | one <- IntMap.findWithDefault [] number leading, not (IntSet.member one reached)]
         in back (List.foldl' (flip IntSet.insert) reached fresh) (fresh <> rest)
