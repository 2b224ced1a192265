module Redis.Internal.Routing.TopologySpec (spec) where

import Control.Monad (forM_)
import Data.List (nub, sort)
import Data.List qualified as List
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Duration qualified as Duration
import Redis.Error
import Redis.Internal.Protocol.Slot
import Redis.Internal.Routing.SlotMap
import Redis.Internal.Routing.Topology
import Support
import System.Random (mkStdGen)
import Test.Hspec
import Test.Hspec.QuickCheck (modifyMaxSuccess, prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Routing.Topology" $ do
  atTheStart
  choosing
  remembering
  spacing
  fixed
  describe "after any events in any order" . modifyMaxSuccess (const 400) $ always

-- | The step of a standalone client: the configured server is the first, the one in use the second
-- argument.
fixed :: Spec
fixed = describe "the map of a standalone server" $ do
  it "has another server when the one in use redirects, and the configured one again when that is lost" $ do
    fixedStep (node 1) (node 1) (LearntRedirect (node 1) (node 2)) `shouldBe` Just (node 2)
    fixedStep (node 1) (node 2) (LearntRedirect (node 2) (node 3)) `shouldBe` Just (node 3)
    fixedStep (node 1) (node 3) (LostNode (node 3)) `shouldBe` Just (node 1)

  it "stays as it is when another server than the one in use redirects or is lost, or nothing would change" $
    forM_ [LearntRedirect (node 1) (node 3), LearntRedirect (node 2) (node 2), LostNode (node 1), LostNode (node 3)] $ \trigger ->
      fixedStep (node 1) (node 2) trigger `shouldBe` Nothing

  it "stays as it is when the only server is lost, and whatever else a server says" $
    forM_ [LostNode (node 1), SilentNode (node 1), LearntMoved (slotAt 1) (node 2), MovedToUnknown (slotAt 1), SawNobody, SawReadOnly (node 1), SawClusterDown, SentinelsSwitched (node 1) (node 2)] $ \trigger ->
      fixedStep (node 1) (node 1) trigger `shouldBe` Nothing

atTheStart :: Spec
atTheStart = describe "at the start" $ do
  it "asks the seeds at once, by fresh connections" $
    snd (step 0 Tick (begin (node 1 :| [node 2]))) `shouldBe` [AskSeeds 1 2 [node 1, node 2]]

  it "takes the first map of any seed while the others are silent" $ do
    let (asked, _) = step 0 Tick (begin (node 1 :| [node 2, node 3]))
        (answered, early) = step 0.01 (Answered 1 (node 2) (Right (reportOf 4))) asked
        (_, later) = step (nextWake answered) Tick answered
    early `shouldBe` []
    nextWake answered `shouldBe` 0.01 + settingsGather settings
    later `shouldBe` [Publish (mapOf 4)]

  it "asks once, though commands find no node meanwhile, and again for those that find none afterwards" $
    forM_ [SawNobody, SawUncovered (slotAt 1)] $ \trigger -> do
      let (asked, _) = step 0 Tick (begin (node 1 :| []))
          (told, none) = step 0.01 (Triggered trigger) asked
          (known, actions) = step 0.02 (Answered 1 (node 1) (Right (reportOf 4))) told
          (wanting, _) = step 0.03 (Triggered trigger) known
      none `shouldBe` []
      actions `shouldBe` [Publish (mapOf 4)]
      nextWake known `shouldSatisfy` (> settingsInterval settings / 2)
      nextWake wanting `shouldSatisfy` (< 2 * settingsThrottle settings)

  it "does not wait for a dead seed when more than half agree" $ do
    let (asked, _) = step 0 Tick (begin (node 1 :| [node 2, node 3]))
        (first, _) = step 0.01 (Answered 1 (node 2) (Right (reportOf 4))) asked
        (_, actions) = step 0.02 (Answered 1 (node 3) (Right (reportOf 4))) first
    actions `shouldBe` [Publish (mapOf 4)]

  it "reports every seed's reason when none answers, and tries again" $ do
    let (asked, _) = step 0 Tick (begin (node 1 :| [node 2]))
        (first, _) = step 0.01 (Answered 1 (node 1) (Left refused)) asked
        (failed, actions) = step (nextWake first) Tick first
        (_, retried) = step (nextWake failed) Tick failed
    actions `shouldBe` [RefreshFailed [(node 1, refused), (node 2, TimeoutError (TimeoutFailure "" NotSent (Duration.seconds (settingsAnswerWithin settings)) Nothing))]]
    [seeds | AskSeeds 2 _ seeds <- retried] `shouldBe` [[node 1, node 2]]

  it "takes a map that covers nothing for no answer" $ do
    let (asked, _) = step 0 Tick (begin (node 1 :| []))
        (_, actions) = step 0.01 (Answered 1 (node 1) (Right TopologyReport {reportMap = emptySlotMap, reportEpoch = Nothing, reportGroup = Nothing})) asked
    actions `shouldSatisfy` \case
      [RefreshFailed [(endpoint, UnexpectedReply _)]] -> endpoint == node 1
      _ -> False

  it "does not ask again what stays as it is before somebody wants it, and then does" $ do
    let (asked, _) = step 0 Tick (begin (node 1 :| []))
        (failed, actions) = step 0.01 (Answered 1 (node 1) (Left denied)) asked
        (wanting, none) = step 0.02 (Triggered SawNobody) failed
        (_, retried) = step (nextWake wanting) Tick wanting
    actions `shouldBe` [RefreshFailed [(node 1, denied)]]
    nextWake failed `shouldSatisfy` (> settingsInterval settings / 2)
    none `shouldBe` []
    nextWake wanting `shouldSatisfy` (< 2 * settingsThrottle settings)
    [seeds | AskSeeds 2 _ seeds <- retried] `shouldBe` [[node 1]]

choosing :: Spec
choosing = describe "of several views" $ do
  it "believes the one that most hold, though another came first" $
    chosen [reportOf 5, reportOf 6, reportOf 6] `shouldBe` Just (node 6)

  it "believes the one of the highest epoch when votes are equal" $
    chosen [(reportOf 5) {reportEpoch = Just 9}, (reportOf 6) {reportEpoch = Just 8}, reportOf 7] `shouldBe` Just (node 5)

  it "believes the latest when nothing else tells them apart" $
    chosen [reportOf 5, reportOf 6, reportOf 7] `shouldBe` Just (node 7)

  it "believes the one that covers more before the latest" $
    chosen [reportOf 5, TopologyReport {reportMap = slotMapFromClaims [claim [(slotAt 0, slotAt 9)] 6], reportEpoch = Nothing, reportGroup = Nothing}, (reportOf 5) {reportMap = emptySlotMap}]
      `shouldBe` Just (node 5)

  it "publishes nothing when nothing changed" $ do
    let state = settledOn 4
        (asked, _) = step 100 Tick state
        answers = [(endpoint, Right (reportOf 4)) | endpoint <- waitingFor (snd (step 100 Tick state))]
    concatMap snd (replies 100.1 2 answers asked) `shouldBe` []

  it "asks the seeds again when no known node answers" $ do
    let (asked, first) = step 100 Tick (settledOn 4)
        (_, actions) = step (nextWake asked) Tick asked
    waitingFor first `shouldBe` [node 4]
    actions `shouldBe` [AskSeeds 2 2 [node 1]]

  it "asks no more nodes at first than it was told to sample" $ do
    let reports = slotMapFromClaims [claim [(slotAt number, slotAt number)] number | number <- [1 .. 20]]
        (asked, _) = step 0 Tick (begin (node 1 :| []))
        (known, _) = step 0.01 (Answered 1 (node 1) (Right TopologyReport {reportMap = reports, reportEpoch = Nothing, reportGroup = Nothing})) asked
        (_, actions) = step 100 Tick known
    length (waitingFor actions) `shouldBe` settingsSample settings

remembering :: Spec
remembering = describe "a MOVED" $ do
  it "changes its slot at once, and asks for a refresh" $ do
    let (_, actions) = step 10 (Triggered (LearntMoved (slotAt 7) (node 9))) (settledOn 4)
    take 1 actions `shouldBe` [Publish (withMoved (slotAt 7) (node 9) (mapOf 4))]
    [() | AskNodes {} <- actions] `shouldBe` [()]

  it "outlives the answers of a refresh that began before it" $ do
    let (asked, first) = step 100 Tick (settledOn 4)
        (moved, _) = step 100.01 (Triggered (LearntMoved (slotAt 7) (node 9))) asked
        (after', _) = lastOr (moved, []) (replies 100.02 2 [(endpoint, Right (reportOf 4)) | endpoint <- waitingFor first] moved)
    slotOwner (stateMap after') (slotAt 7) `shouldBe` Just (node 9)

  it "outlives answers of nodes that may not have heard of it" $ do
    let (moved, first) = step 100 (Triggered (LearntMoved (slotAt 7) (node 9))) (settledOn 4)
        (after', _) = lastOr (moved, []) (replies 100.02 2 [(endpoint, Right (reportOf 4)) | endpoint <- waitingFor first] moved)
    slotOwner (stateMap after') (slotAt 7) `shouldBe` Just (node 9)

  it "yields to what most nodes say long after it" $ do
    let (moved, first) = step 100 (Triggered (LearntMoved (slotAt 7) (node 9))) (settledOn 4)
        stale actions = [(endpoint, Right (reportOf 4)) | endpoint <- waitingFor actions]
        (known, _) = lastOr (moved, []) (replies 100.02 2 (stale first) moved)
        (asked, second) = step 200 Tick known
        (after', _) = lastOr (asked, []) (replies 200.02 3 (stale second) asked)
    slotOwner (stateMap after') (slotAt 7) `shouldBe` Just (node 4)

-- Clients that began together must not ask together: over many seeds, the delays cover most of the
-- range that chance may choose from, and nothing outside it.
spacing :: Spec
spacing = describe "the time between two refreshes" $ do
  forM_ [(1, 1.01), (100, 2), (200, 3)] $ \(count, factor) ->
    it ("is the throttle and up to a half of it, by chance, times " <> show factor <> " for a cluster of " <> show count) $
      map (subtract 100 . nextWake . wanting . refreshed count) seeds
        `shouldSatisfy` spreadOver (factor * settingsThrottle settings) (1.5 * factor * settingsThrottle settings)

  it "that nobody wants is the interval, by chance up to a tenth less or more" $
    map (subtract 100 . nextWake . refreshed 1) seeds
      `shouldSatisfy` spreadOver (0.9 * settingsInterval settings) (1.1 * settingsInterval settings)

  it "that nobody wants is so after the very first, too" $
    map (nextWake . learnt 1) seeds
      `shouldSatisfy` spreadOver (0.9 * settingsInterval settings) (1.1 * settingsInterval settings)
  where
    seeds = [1 .. 400]
    wanting = fst . step 100.02 (Triggered SawClusterDown)
    -- This refresh began at 0.
    learnt count seed =
      fst (step 0.01 (Answered 1 (node 1) (Right (spread count))) (fst (step 0 Tick (newState settings (mkStdGen seed) 0))))
    -- This refresh began at 100.
    refreshed count seed =
      let (asked, actions) = step 100 Tick (learnt count seed)
       in fst (lastOr (asked, []) (replies 100.01 2 [(endpoint, Right (spread count)) | endpoint <- waitingFor actions] asked))
    spread count = TopologyReport {reportMap = slotMapFromClaims [claim [(slotAt number, slotAt number)] number | number <- [1 .. count]], reportEpoch = Nothing, reportGroup = Nothing}

-- | Whether all times lie between the two limits, apart from rounding, and some lie near either
-- limit.
spreadOver :: Seconds -> Seconds -> [Seconds] -> Bool
spreadOver least most found =
  and [least - tiny <= time && time <= most + tiny | time <- found]
    && any (< least + 0.05 * width) found
    && any (> most - 0.05 * width) found
  where
    width = most - least
    tiny = 1e-6

always :: Spec
always = do
  holds "has at most one refresh in flight" $ \run ->
    [ (entryTime entry, refreshId)
      | entry <- run,
        refreshId <- asks entry,
        not (maybe True (== refreshId) (refreshInFlight (entryBefore entry))) || refreshInFlight (entryAfter entry) /= Just refreshId
    ]
      === []

  holds "starts no two refreshes closer together than the throttle" $ \run ->
    let starts = startTimes run
     in filter (< settingsThrottle settings) (zipWith (-) (drop 1 starts) starts) === []

  holds "never publishes an older map over a newer MOVED" $ \run ->
    undone run === []

  holds "asks known nodes and seeds only, each once a round" $ \run ->
    [ asked
      | entry <- run,
        asked <- rounds (entryActions entry),
        null asked || sort asked /= sort (nub asked) || not (Set.fromList asked `Set.isSubsetOf` Set.union seedSet (foldMap (slotMapNodes . stateMap) [entryBefore entry, entryAfter entry]))
    ]
      === []

  holds "goes by the map that it published last" $ \run ->
    lastOr emptySlotMap [slotMap | entry <- run, Publish slotMap <- entryActions entry] === lastOr emptySlotMap (map (stateMap . entryAfter) run)

  holds "publishes no map twice in a row" $ \run ->
    let maps = [slotMap | entry <- run, Publish slotMap <- entryActions entry]
     in and (zipWith (/=) maps (drop 1 maps)) === True

  holds "has nothing left to do at one time after a few ticks" $ \run ->
    [ entryTime entry
      | entry <- run,
        let now = entryTime entry
            ticked = lastOr (entryAfter entry) (take 4 (iterate (fst . step now Tick) (entryAfter entry))),
        nextWake ticked <= now
    ]
      === []

  prop "leads from every trigger to a refresh that starts after it" $
    forAll ((,,) <$> arbitrary <*> anyMoves <*> anyTrigger) $ \(seed, moves, trigger) ->
      let (time, state) = lastOr (0, fst (step 0 Tick (beginWith seed))) [(entryTime entry, entryAfter entry) | entry <- play seed moves]
          isNews = case trigger of
            LearntMoved slot endpoint -> slotOwner (stateMap state) slot /= Just endpoint
            _ -> True
          (cried, actions) = step time (Triggered trigger) state
          -- No node answers any more; only time passes.
          silence = take 40 (iterate (\(at, (now, _)) -> let at' = max at (nextWake now) in (at', step at' Tick now)) (time, (cried, actions)))
       in isNews ==> any (\(_, (_, done)) -> any (`isNewAsk` refreshInFlight state) (concatMap askIds done)) silence
  where
    holds what law = prop what $
      forAll ((,) <$> arbitrary <*> anyMoves) $ \(seed, moves) -> law (play seed moves)
    isNewAsk asked earlier = Just asked /= earlier

-- | One step of a run.
data Entry = Entry
  { entryTime :: Seconds,
    entryEvent :: Event,
    entryBefore :: State,
    entryAfter :: State,
    entryActions :: [Action]
  }

-- | The next event of the world.
data Move
  = Pass Seconds
  | Wake
  | Cry Trigger
  | -- | A node that was asked at any time answers, perhaps long afterwards.
    Reply Int (Either Error TopologyReport)
  deriving stock (Show)

play :: Int -> [Move] -> [Entry]
play seed = go 0 [] (beginWith seed) . (Wake :)
  where
    go now outstanding state = \case
      [] -> []
      move : rest ->
        let now' = case move of
              Pass seconds -> now + seconds
              Wake -> max now (nextWake state)
              _ -> now
            event = case move of
              Cry trigger -> Triggered trigger
              Reply choice answer | (refreshId, endpoint) : _ <- drop (choice `mod` max 1 (length outstanding)) outstanding -> Answered refreshId endpoint answer
              _ -> Tick
            (state', actions) = step now' event state
            asked = [(refreshId, endpoint) | action <- actions, (refreshId, endpoints) <- askOf action, endpoint <- endpoints]
         in Entry {entryTime = now', entryEvent = event, entryBefore = state, entryAfter = state', entryActions = actions} :
            go now' (take 12 (asked <> outstanding)) state' rest

-- | The MOVEDs that a refresh has undone although it began before them.
undone :: [Entry] -> [(Seconds, Slot)]
undone = go Map.empty Map.empty
  where
    go :: Map Slot (Endpoint, Seconds) -> Map RefreshId Seconds -> [Entry] -> [(Seconds, Slot)]
    go moved started = \case
      [] -> []
      Entry {entryTime, entryEvent, entryBefore, entryAfter, entryActions} : rest ->
        let started' = Map.union started (Map.fromList [(refreshId, entryTime) | refreshId <- concatMap askIds entryActions])
            learnt = case entryEvent of
              Triggered (LearntMoved slot endpoint) -> Map.insert slot (endpoint, entryTime) moved
              _ -> moved
            -- A refresh that ends here may correct entries that were learnt before it began.
            mayCorrect = case refreshInFlight entryBefore of
              Just refreshId
                | refreshInFlight entryAfter /= Just refreshId -> Map.findWithDefault 0 refreshId started'
              _ -> 0
            standing = Map.filter ((>= mayCorrect) . snd) learnt
            wrong = [(entryTime, slot) | (slot, (endpoint, _)) <- Map.toList standing, slotOwner (stateMap entryAfter) slot /= Just endpoint]
         in wrong <> go standing started' rest

startTimes :: [Entry] -> [Seconds]
startTimes run = Map.elems (Map.fromListWith min [(refreshId, entryTime entry) | entry <- run, refreshId <- asks entry])

asks :: Entry -> [RefreshId]
asks = concatMap askIds . entryActions

askIds :: Action -> [RefreshId]
askIds = map fst . askOf

askOf :: Action -> [(RefreshId, [Endpoint])]
askOf = \case
  AskNodes refreshId _ endpoints -> [(refreshId, endpoints)]
  AskSeeds refreshId _ endpoints -> [(refreshId, endpoints)]
  _ -> []

rounds :: [Action] -> [[Endpoint]]
rounds = map snd . concatMap askOf

waitingFor :: [Action] -> [Endpoint]
waitingFor = concat . rounds

settings :: Settings
settings = topologySettings OfCluster (node 1 :| [])

seedNodes :: NonEmpty Endpoint
seedNodes = node 1 :| [node 101, node 102]

seedSet :: Set Endpoint
seedSet = Set.fromList (NonEmpty.toList seedNodes)

begin :: NonEmpty Endpoint -> State
begin seeds = newState settings {settingsSeeds = seeds} (mkStdGen 1) 0

beginWith :: Int -> State
beginWith seed = newState settings {settingsSeeds = seedNodes} (mkStdGen seed) 0

-- | A state that learnt at the start that this node serves everything.
settledOn :: Int -> State
settledOn number =
  fst (step 0.01 (Answered 1 (node 1) (Right (reportOf number))) (fst (step 0 Tick (begin (node 1 :| [])))))

claim :: [(Slot, Slot)] -> Int -> Claim
claim ranges number = Claim {claimRanges = ranges, claimPrimary = Just (node number), claimReplicas = []}

mapOf :: Int -> SlotMap
mapOf number = slotMapFromClaims [claim [(minBound, maxBound)] number]

reportOf :: Int -> TopologyReport
reportOf number = TopologyReport {reportMap = mapOf number, reportEpoch = Nothing, reportGroup = Nothing}

-- | The owner that is published when three seeds answer in this order.
chosen :: [TopologyReport] -> Maybe Endpoint
chosen reports = slotOwner (stateMap final) (slotAt 0)
  where
    (asked, _) = step 0 Tick (begin (node 1 :| [node 2, node 3]))
    (final, _) = lastOr (asked, []) (replies 0.01 1 (zip (map node [1 ..]) (map Right reports)) asked)

-- | The error of a server that refuses the credentials.
denied :: Error
denied = ConnectionError (ConnectionFailure "" NotSent (node 1) (HandshakeRefused (serverErrorFromText "WRONGPASS invalid username-password pair")))

refused :: Error
refused = ConnectionError (ConnectionFailure "" NotSent (node 1) (ConnectFailed "refused"))

replies :: Seconds -> RefreshId -> [(Endpoint, Either Error TopologyReport)] -> State -> [(State, [Action])]
replies now refreshId answers state = drop 1 (scanl next (state, []) answers)
  where
    next (current, _) (endpoint, answer) = step now (Answered refreshId endpoint answer) current

lastOr :: a -> [a] -> a
lastOr = List.foldl' (\_ item -> item)

anyMoves :: Gen [Move]
anyMoves = choose (0, 60) >>= (`vectorOf` anyMove)

anyMove :: Gen Move
anyMove =
  frequency
    [ (2, Pass <$> oneof [choose (0, 0.2), choose (0, 3), choose (0, 100)]),
      (2, pure Wake),
      (3, Cry <$> anyTrigger),
      (6, Reply <$> choose (0, 11) <*> frequency [(4, Right <$> anyView), (1, pure (Left refused))])
    ]

anyTrigger :: Gen Trigger
anyTrigger =
  oneof
    [ LearntMoved <$> fewSlots <*> anyNode,
      MovedToUnknown <$> fewSlots,
      SawUncovered <$> fewSlots,
      LostNode <$> anyNode,
      SilentNode <$> anyNode,
      SawReadOnly <$> anyNode,
      pure SawClusterDown,
      SawMasterDown <$> anyNode,
      SawLoading <$> anyNode,
      SawStrayReplica <$> anyNode,
      EndedShardChannel <$> anyNode,
      LearntRedirect <$> anyNode <*> anyNode,
      SentinelsSwitched <$> anyNode <*> anyNode,
      pure SentinelsStirred
    ]
  where
    fewSlots = slotAt <$> choose (0, 3)

-- | Few different views, so that some agree.
anyView :: Gen TopologyReport
anyView = TopologyReport <$> slotMaps <*> oneof [pure Nothing, Just <$> choose (1, 3)] <*> pure Nothing
  where
    slotMaps = frequency [(5, mapOf <$> choose (1, 4)), (1, pure emptySlotMap), (1, slotMapFromClaims <$> anyClaims)]
