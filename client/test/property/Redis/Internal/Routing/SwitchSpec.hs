-- | A search over what can happen around a fail-over that sentinels announce: the sentinels hear of
-- it one after the other, each announces it at any time after that, and each answer takes as long
-- as it likes, since a node may be slow or hang. An answer says what its sentinel knew when it was
-- asked.
module Redis.Internal.Routing.SwitchSpec (spec) where

import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Error
import Redis.Internal.Routing.SlotMap
import Redis.Internal.Routing.Topology
import Support
import System.Random (mkStdGen)
import Test.Hspec hiding (after, before)
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck hiding (again)

spec :: Spec
spec = describe "A switch that sentinels announce" $ do
  it "is asked for at once, is found as soon as one says so, and is not undone, in every history of four events" $
    firstWrong (histories 4 begun) `shouldBe` Nothing

  it "that has been followed is not undone by most who have not heard of it, in every history of five events" $ do
    map (owner . worldState) followed `shouldBe` [Just (node 2)]
    firstWrong (concatMap (histories 5) followed) `shouldBe` Nothing

  modifyMaxSuccess (const 1000) . prop "is asked for at once, is found as soon as one says so, and is not undone, in any longer history" $
    forAll (choose (6, 60) >>= (`vectorOf` choose (0, 1000))) $ \choices ->
      firstWrong (walk choices) === Nothing

  it "is found while the inquiry under way waits for the old primary that hangs" $ do
    let (announced, asked) = step 10.5 (Triggered (switched 1 2)) (worldState begun)
        answers = [answer | answer@(_, sentinel, _) <- asks (Set.singleton 101) asked, sentinel == 101]
        (after, _) = foldl (\(state, _) (refresh, sentinel, report) -> step 10.51 (Answered refresh (node sentinel) report) state) (announced, []) answers
    length answers `shouldBe` 1
    owner (fst (step 10.62 Tick after)) `shouldBe` Just (node 2)

  it "that comes too late changes nothing: it is left from where nobody is" $ do
    let (settled, _) = finish (worldState begun)
        (told, _) = step 20 (Triggered (switched 9 8)) settled
    owner (fst (finish told)) `shouldBe` Just (node 1)
  where
    firstWrong worlds = case [(reverse (worldPast world), wrong) | world <- worlds, Just wrong <- [worldWrong world]] of
      first : _ -> Just first
      [] -> Nothing
    finish state = foldl (\(current, _) (refresh, sentinel, report) -> step 20.01 (Answered refresh (node sentinel) report) current) again (asks Set.empty (snd again))
      where
        again = step 20 (Triggered SentinelsStirred) state

-- | A refresh, the sentinel that was asked, and its answer.
type Outstanding = (RefreshId, Int, Either Error TopologyReport)

data World = World
  { worldNow :: Seconds,
    worldState :: State,
    worldOutstanding :: [Outstanding],
    -- | The sentinels that know of the switch, and those that have announced it.
    worldKnow :: Set Int,
    worldSaid :: Set Int,
    -- | When the client heard of the switch, and its first refresh after that.
    worldHeard :: Maybe (Seconds, RefreshId),
    -- | The latest first.
    worldPast :: [String],
    worldWrong :: Maybe String
  }

-- | The client has followed node 1, and asks all sentinels since it has lost a connection.
begun :: World
begun = World {worldNow = 10, worldState = state, worldOutstanding = asks Set.empty asked, worldKnow = Set.empty, worldSaid = Set.empty, worldHeard = Nothing, worldPast = [], worldWrong = Nothing}
  where
    (first, _) = step 0 Tick (newState settings (mkStdGen 1) 0)
    known = foldl (\current sentinel -> fst (step 0.01 (Answered 1 (node sentinel) (Right (viewBy False sentinel))) current)) first sentinels
    (state, asked) = step 10 (Triggered (LostNode (node 1))) (fst (step 0.2 Tick known))

-- | All that may happen next.
nexts :: World -> [World]
nexts world@World {worldNow, worldState, worldOutstanding, worldKnow, worldSaid} =
  [ -- The first to know is the first by number, or by another numbering.
    (noted ("sentinel " <> show sentinel <> " hears") world) {worldKnow = Set.insert sentinel worldKnow}
    | sentinel <- take (if Set.null worldKnow then 1 else 3) sentinels,
      Set.notMember sentinel worldKnow
  ]
    <> [ (stepped worldNow (Triggered (switched 1 2)) (noted ("sentinel " <> show sentinel <> " announces") world)) {worldSaid = Set.insert sentinel worldSaid}
         | sentinel <- Set.toList (Set.difference worldKnow worldSaid)
       ]
    <> [ stepped worldNow (Answered refresh (node sentinel) report) (noted ("sentinel " <> show sentinel <> " answers " <> show refresh) world) {worldOutstanding = filter (not . isSame refresh sentinel) worldOutstanding}
         | (refresh, sentinel, report) <- worldOutstanding
       ]
    <> [ stepped (max worldNow (nextWake worldState)) Tick (noted "time passes" world),
         stepped worldNow (Triggered (LostNode (node 1))) (noted "a connection is lost" world)
       ]
  where
    isSame refresh sentinel (otherRefresh, otherSentinel, _) = refresh == otherRefresh && sentinel == otherSentinel

noted :: String -> World -> World
noted what world = world {worldPast = what : worldPast world}

-- | Hands an event to the machine, and looks at what it makes of it.
stepped :: Seconds -> Event -> World -> World
stepped now event world =
  world
    { worldNow = now,
      worldState = after,
      worldOutstanding = take 9 (asks (worldKnow world) actions <> worldOutstanding world),
      worldHeard = heard,
      worldWrong = wrong
    }
  where
    before = worldState world
    (after, actions) = step now event before
    begins = [refresh | AskSeeds refresh _ asked <- actions, length asked == length sentinels]
    isFirst = case (event, worldHeard world) of
      (Triggered SentinelsSwitched {}, Nothing) -> owner before /= Just (node 2)
      _ -> False
    heard = case (isFirst, begins) of
      (True, refresh : _) -> Just (now, refresh)
      _ -> worldHeard world
    -- Sentinels that have not heard of a switch after this time are believed again.
    fresh = maybe False (\(at, _) -> now < at + settingsMovedGrace settings) heard
    wrong
      | isFirst && null begins = Just "the announcement leads to no inquiry"
      | fresh && owner before == Just (node 2) && owner after /= Just (node 2) = Just "the old primary is taken for the primary again"
      | fresh && saysSo && owner (fst (step (now + settingsGather settings) Tick after)) /= Just (node 2) = Just "the new primary was named, and is not followed"
      | otherwise = Nothing
    saysSo = case (event, heard) of
      (Answered refresh _ (Right report), Just (_, first)) -> refresh >= first && refreshInFlight before == Just refresh && reportEpoch report == Just 2
      _ -> False

-- | What one sentinel has announced and named has been found.
followed :: [World]
followed = foldl (\worlds event -> [next | world <- worlds, next <- nexts world, take 1 (worldPast next) == [event]]) [begun] ["sentinel 101 hears", "sentinel 101 announces", "sentinel 101 answers 3", "time passes"]

-- | The ends of all histories of at most so many events.
histories :: Int -> World -> [World]
histories left world = world : (if left == 0 then [] else concatMap (histories (left - 1)) (nexts world))

-- | The worlds of the history that takes these choices.
walk :: [Int] -> [World]
walk = go begun
  where
    go world = \case
      choice : rest | next : _ <- drop (choice `mod` length (nexts world)) (nexts world) -> world : go next rest
      _ -> [world]

-- | What is asked, with the answers of sentinels of which these know of the switch.
asks :: Set Int -> [Action] -> [Outstanding]
asks knowing actions =
  [ (refresh, sentinel, Right (viewBy (Set.member sentinel knowing) sentinel))
    | AskSeeds refresh _ asked <- actions,
      sentinel <- sentinels,
      node sentinel `elem` asked
  ]

owner :: State -> Maybe Endpoint
owner state = slotOwner (stateMap state) (slotAt 0)

switched :: Int -> Int -> Trigger
switched old new = SentinelsSwitched (node old) (node new)

sentinels :: [Int]
sentinels = [101, 102, 103]

-- | A sentinel's view, from before the switch or from after it.
viewBy :: Bool -> Int -> TopologyReport
viewBy knows sentinel = Map.findWithDefault (makeView knows sentinel) (knows, sentinel) reports

-- | Views are large: each is made once.
reports :: Map (Bool, Int) TopologyReport
reports = Map.fromList [((knows, sentinel), makeView knows sentinel) | knows <- [False, True], sentinel <- sentinels]

makeView :: Bool -> Int -> TopologyReport
makeView knows sentinel =
  TopologyReport
    { reportMap = groupMap (node primary) [],
      reportEpoch = Just (if knows then 2 else 1),
      reportGroup = Just GroupReport {reportPrimary = node primary, reportAsked = numbered sentinel, reportRun = numbered primary, reportHistory = "", reportHistoryBefore = "", reportSentinels = map node sentinels}
    }
  where
    primary = if knows then 2 else 1
    numbered = Char8.pack . show

settings :: Settings
settings = topologySettings OfSentinels (node 101 :| [node 102, node 103])
