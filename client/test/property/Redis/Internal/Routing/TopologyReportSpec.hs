module Redis.Internal.Routing.TopologyReportSpec (spec) where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Maybe (isJust, mapMaybe)
import Data.Set qualified as Set
import Redis.Error
import Redis.Internal.Protocol.Slot (slotFromInt)
import Redis.Internal.Routing.SlotMap
import Redis.Internal.Routing.Topology
import Support
import System.Random (mkStdGen)
import Test.Hspec hiding (before)
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck hiding (again)

spec :: Spec
spec = describe "Redis.Internal.Routing.Topology" $ do
  sentinels
  members
  asking

sentinels :: Spec
sentinels = describe "of sentinels" $ do
  prop "the highest epoch is believed, however many hold a lower one" . forAll (listOf1 fromSentinel) $ \reports ->
    (chooseReport OfSentinels nothingAccepted (length reports) reports >>= reportEpoch) === maximum (map reportEpoch reports)

  prop "an epoch below the one that was believed is believed only if most of those asked hold such a primary" $
    forAll (listOf fromSentinel) $ \reports ->
      forAll (choose (length reports, length reports + 3)) $ \asked ->
        forAll (choose (0, 4)) $ \before -> case chooseReport OfSentinels nothingAccepted {acceptedEpoch = Just before} asked reports of
          Nothing -> property True
          Just report ->
            counterexample (show report) . property $
              reportEpoch report >= Just before || 2 * length (filter (sameRun report) reports) > asked

  prop "the order in which they answer does not matter to the epoch" . forAll (listOf1 fromSentinel) $ \reports ->
    forAll (shuffle reports) $ \others ->
      (chooseReport OfSentinels nothingAccepted (length reports) reports >>= reportEpoch)
        === (chooseReport OfSentinels nothingAccepted (length reports) others >>= reportEpoch)

  it "a primary keeps the name that is in use" $ do
    let report = sentinelView 1 (Just 1) 5
        other = report {reportMap = groupMap (node 105) [], reportGroup = (\group -> group {reportPrimary = node 105, reportAsked = "2"}) <$> reportGroup report}
        accepted = (acceptedFrom other) {acceptedEpoch = Just 1}
    (chooseReport OfSentinels accepted 2 [report, other] >>= reportGroup >>= Just . reportPrimary) `shouldBe` Just (node 105)

members :: Spec
members = describe "of a group without sentinels" $ do
  it "a replica that was promoted is believed, not the primary whose data it goes on from" $
    chosenOf inUse1 2 [memberView 1 1 "one" "", memberView 2 2 "two" "one"] `shouldBe` Just (node 2)

  it "a primary that comes back takes nothing back from the replica that was promoted" $ do
    let inUse2 = Accepted {acceptedEpoch = Nothing, acceptedPrimary = Just (node 2), acceptedHistory = "two"}
    chosenOf inUse2 2 [memberView 1 1 "one" "", memberView 2 2 "two" "one"] `shouldBe` Just (node 2)
    -- The old primary has new data of its own after a restart.
    chosenOf inUse2 2 [memberView 1 1 "other" "", memberView 2 2 "two" "one"] `shouldBe` Just (node 2)

  it "a stranger is not believed while the primary in use leads to itself" $
    chosenOf inUse1 3 [memberView 3 3 "stranger" "", memberView 1 1 "one" ""] `shouldBe` Just (node 1)

  it "strangers to whom more lead are not believed, unless those are most of all who were asked" $ do
    let strangers = [memberView 3 3 "stranger" "", memberView 4 3 "stranger" ""]
    chosenOf inUse1 5 (strangers <> [memberView 1 1 "one" ""]) `shouldBe` Just (node 1)
    chosenOf inUse1 3 (strangers <> [memberView 1 1 "one" ""]) `shouldBe` Just (node 3)

  it "the one to whom more lead is believed" $
    chosenOf inUse1 3 [memberView 1 1 "one" "", memberView 2 2 "two" "one", memberView 3 2 "two" "one"] `shouldBe` Just (node 2)

  it "a server that was asked by two names counts once" $
    chosenOf inUse1 4 [memberView 1 1 "one" "", memberView 1 1 "one" "", memberView 2 2 "two" "one"] `shouldBe` Just (node 2)

  it "the noughts of a server that goes on from nobody's data make no successor" $
    chosenOf nothingAccepted 2 [memberView 2 2 (Char8.replicate 40 '0') "", memberView 1 1 "one" (Char8.replicate 40 '0')]
      `shouldSatisfy` isJust

  prop "of views of one primary that one is believed" . forAll (listOf1 (choose (1, 5))) $ \asked ->
    chosenOf inUse1 (length asked) [memberView number 4 "four" "one" | number <- asked] === Just (node 4)

  prop "somebody is believed if anybody said anything" . forAll (listOf1 anyMember) $ \reports ->
    property (isJust (chosenOf inUse1 (length reports) reports))
  where
    inUse1 = Accepted {acceptedEpoch = Nothing, acceptedPrimary = Just (node 1), acceptedHistory = "one"}
    chosenOf accepted asked reports = reportPrimary <$> (chooseReport OfMembers accepted asked reports >>= reportGroup)

asking :: Spec
asking = describe "asked for" $ do
  it "is one of the sentinels, at the start of those that are configured" $
    snd (step 0 Tick (beginAs OfSentinels)) `shouldBe` [AskSeeds 1 2 [node 101, node 102]]

  it "waits for no majority of sentinels, but for a moment for all of them" $ do
    let (asked, _) = step 0 Tick (beginAs OfSentinels)
        (one, early) = step 0.01 (Answered 1 (node 101) (Right (sentinelView 1 (Just 1) 1))) asked
        (_, actions) = step (nextWake one) Tick one
    early `shouldBe` []
    nextWake one `shouldBe` 0.11
    published actions `shouldBe` [Just (node 1)]

  it "is asked of the sentinels that the sentinels name, then of those that are configured" $ do
    -- The second configured sentinel is no longer named by the others.
    let known = answeredBySentinels [(101, sentinelView 101 (Just 1) 1)]
        (again, actions) = step 10 (Triggered SentinelsStirred) known
        (half, _) = step 10 (Answered 2 (node 101) (Left ClientClosed)) again
        (_, seeds) = step 10 (Answered 2 (node 103) (Left ClientClosed)) half
    actions `shouldBe` [AskSeeds 2 2 [node 101, node 103]]
    seeds `shouldBe` [AskSeeds 2 2 [node 102]]

  it "is not made to wait when a sentinel has switched" $ do
    let known = answeredBySentinels [(101, sentinelView 101 (Just 1) 1), (102, sentinelView 102 (Just 1) 1)]
    concatMap isAsk (snd (step 0.2 (Triggered SentinelsStirred) known)) `shouldBe` []
    concatMap isAsk (snd (step 0.2 (Triggered switched) known)) `shouldBe` [()]

  it "is asked for at once, whatever is in flight, when a sentinel has switched, and once more when another has" $ do
    let (asked, _) = step 0 Tick (beginAs OfSentinels)
        (told, now) = step 0.01 (Triggered switched) asked
        (again, early) = step 0.01 (Triggered switched) told
        (half, _) = step 0.02 (Answered 2 (node 101) (Right (sentinelView 101 (Just 1) 1))) again
        (whole, _) = step 0.03 (Answered 2 (node 102) (Right (sentinelView 102 (Just 1) 1))) half
        (_, actions) = step 0.03 Tick whole
    concatMap isAsk now `shouldBe` [()]
    concatMap isAsk early `shouldBe` []
    concatMap isAsk actions `shouldBe` [()]

  it "is not an older one than what is in use" $ do
    let known = answeredBySentinels [(101, sentinelView 101 (Just 2) 2), (102, sentinelView 102 (Just 2) 2)]
        (asked, _) = step 10 (Triggered switched) known
        (half, _) = step 10.01 (Answered 2 (node 101) (Right (sentinelView 101 (Just 1) 1))) asked
        (_, actions) = step (nextWake half) Tick half
    published actions `shouldBe` []

  it "is asked of everybody in a group without sentinels, and nobody's word is enough" $ do
    let (asked, first) = step 0 Tick (beginAs OfMembers)
        (one, early) = step 0.01 (Answered 1 (node 101) (Right (memberView 101 1 "one" ""))) asked
        (_, late) = step 1.9 Tick one
        (_, decided) = step 2 Tick one
    first `shouldBe` [AskNodes 1 2 [node 101, node 102]]
    early `shouldBe` []
    published late `shouldBe` []
    published decided `shouldBe` [Just (node 1)]

  it "is asked for again soon after another has been found, for its replicas" $ do
    let known = answeredBySentinels [(101, sentinelView 101 (Just 1) 1), (102, sentinelView 102 (Just 1) 1)]
    nextWake known `shouldSatisfy` (<= 6)

  prop "has one shard that serves everything" . forAll ((,) <$> choose (1, 9) <*> listOf (choose (1, 9))) $ \(primary, replicas) -> do
    let slotMap = groupMap (node primary) (map node replicas)
    (slotMapCovered slotMap, slotMapShards slotMap)
      === (16384, [Shard {shardPrimary = node primary, shardReplicas = Set.toAscList (Set.delete (node primary) (Set.fromList (map node replicas)))}])
  where
    switched = SentinelsSwitched (node 8) (node 9)
    isAsk = \case
      AskSeeds {} -> [()]
      AskNodes {} -> [()]
      _ -> []

-- | The state after the first refresh, which only these sentinels answered, at once.
answeredBySentinels :: [(Int, TopologyReport)] -> State
answeredBySentinels answers = fst (step 0.12 Tick (foldl answer (fst (step 0 Tick (beginAs OfSentinels))) answers))
  where
    answer state (number, report) = fst (step 0.01 (Answered 1 (node number) (Right report)) state)

published :: [Action] -> [Maybe Endpoint]
published actions = [slotFromInt 0 >>= slotOwner slotMap | Publish slotMap <- actions]

beginAs :: Rule -> State
beginAs rule = newState (topologySettings rule (node 101 :| [node 102])) (mkStdGen 1) 0

fromSentinel :: Gen TopologyReport
fromSentinel = sentinelView <$> choose (101, 105) <*> (Just <$> choose (0, 4)) <*> choose (1, 3)

-- | The view of a sentinel with this epoch and primary.
sentinelView :: Int -> Maybe Int -> Int -> TopologyReport
sentinelView asked epoch primary =
  (memberView asked primary "" "") {reportEpoch = epoch}

-- | The view of a server: the server that was asked, the primary to which it leads, and that
-- primary's history and earlier history.
memberView :: Int -> Int -> ByteString -> ByteString -> TopologyReport
memberView asked primary history historyBefore =
  TopologyReport
    { reportMap = groupMap (node primary) [],
      reportEpoch = Nothing,
      reportGroup =
        Just
          GroupReport
            { reportPrimary = node primary,
              reportAsked = Char8.pack (show asked),
              reportRun = Char8.pack ("run" <> show primary),
              reportHistory = history,
              reportHistoryBefore = historyBefore,
              reportSentinels = [node asked, node 103]
            }
    }

anyMember :: Gen TopologyReport
anyMember = memberView <$> choose (1, 4) <*> choose (1, 4) <*> elements ["one", "two", "three"] <*> elements ["", "one", "two"]

sameRun :: TopologyReport -> TopologyReport -> Bool
sameRun a b = mapMaybe (fmap reportRun . reportGroup) [a] == mapMaybe (fmap reportRun . reportGroup) [b]
