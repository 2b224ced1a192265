module Redis.Internal.Routing.ReplicasSpec (spec) where

import Control.Monad (forM_)
import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust, isNothing, mapMaybe)
import Redis.Error (Endpoint (..))
import Redis.Internal.Config (ReadFrom (..))
import Redis.Internal.Routing.Replicas
import Test.Hspec hiding (after)
import Test.Hspec.QuickCheck (prop)
import Test.QuickCheck

spec :: Spec
spec = describe "Redis.Internal.Routing.Replicas" $ do
  describe "chooses" $ do
    let primary = Candidate {candidateNode = 0 :: Int, candidateIsPrimary = True, candidateUp = True, candidateStats = unseen}
        replica number = primary {candidateNode = number, candidateIsPrimary = False}
        down candidate = candidate {candidateUp = False}
        zoned zone candidate = candidate {candidateStats = (candidateStats candidate) {sightedZone = Just zone}}
        nearby candidate = candidate {candidateStats = (candidateStats candidate) {sightedNear = True}}
        -- All nodes that are ever drawn.
        drawnFrom wanted candidates =
          List.nub (List.sort (mapMaybe (\number -> candidateNode <$> chooseReader wanted number candidates) [0 .. 11]))
    forM_
      [ ("the primary alone", ReadPrimary, [primary, replica 1], [0]),
        ("nobody where the primary is not known", ReadPrimary, [replica 1], []),
        ("each of the replicas", PreferReplica, [primary, replica 1, replica 2], [1, 2]),
        ("the replica that is up", PreferReplica, [primary, down (replica 1), replica 2], [2]),
        ("the primary if no replica is up", PreferReplica, [primary, down (replica 1), down (replica 2)], [0]),
        ("the primary, though it is down, before replicas that are", PreferReplica, [down primary, down (replica 1)], [0]),
        ("a replica that is down, if there is nobody else", PreferReplica, [down (replica 1), down (replica 2)], [1, 2]),
        ("everybody who is up", ReadAny, [primary, replica 1, down (replica 2)], [0, 1]),
        ("the replicas of the zone", SameZone "a", [zoned "a" primary, zoned "a" (replica 1), zoned "b" (replica 2)], [1]),
        ("the primary, if it is in the zone and no replica is", SameZone "a", [zoned "a" primary, zoned "b" (replica 1)], [0]),
        ("the primary of the zone, if its replica is down", SameZone "a", [zoned "a" primary, down (zoned "a" (replica 1)), zoned "b" (replica 2)], [0]),
        ("replicas elsewhere, if nobody is in the zone", SameZone "c", [zoned "a" primary, zoned "a" (replica 1), zoned "b" (replica 2)], [1, 2]),
        ("replicas, if nobody's zone is known", SameZone "a", [primary, replica 1], [1]),
        ("those that are near", LowestLatency, [nearby primary, replica 1, nearby (replica 2)], [0, 2]),
        ("those that are up, if who is near is down", LowestLatency, [primary, down (nearby (replica 1)), replica 2], [0, 2]),
        ("those that are up, if nobody has been asked", LowestLatency, [primary, replica 1], [0, 1])
      ]
      $ \(what, wanted, candidates, expected) ->
        it (what <> ", for " <> show wanted) $ drawnFrom wanted candidates `shouldBe` expected

  prop "somebody, if there is anybody and not only the primary will do" $
    forAll anyChoice $ \(wanted, drawn, candidates) ->
      wanted /= ReadPrimary && not (null candidates) ==> isJust (chooseReader wanted drawn candidates)

  prop "one of the candidates" $
    forAll anyChoice $ \(wanted, drawn, candidates) ->
      maybe (property True) ((`shouldBeIn` map candidateNode candidates) . candidateNode) (chooseReader wanted drawn candidates)

  prop "one that is up before one that is down, except that the primary comes last but one" $
    forAll anyChoice $ \(wanted, drawn, candidates) ->
      let replicasUp = [candidate | candidate <- candidates, candidateUp candidate, not (candidateIsPrimary candidate)]
       in wanted /= ReadPrimary && not (null replicasUp) ==> fmap candidateUp (chooseReader wanted drawn candidates) === Just True

  prop "each of those that are as good, as often as the others" $
    forAll anyChoice $ \(wanted, _, candidates) ->
      case filter (not . null) (tiers wanted candidates) of
        best : _ ->
          let drawn = mapMaybe (\number -> candidateNode <$> chooseReader wanted number candidates) [0 .. 3 * length best - 1]
           in List.sort drawn === List.sort (concatMap (replicate 3 . candidateNode) best)
        [] -> property True

  describe "takes for near" $ do
    it "all that are about as quick as the quickest, and nobody else" $
      nearAfter [[(1, 500), (2, 600), (3, 2000)]] `shouldBe` [1, 2]
    it "each that answers within the noise of the quickest" $
      nearAfter [[(1, 30), (2, 200), (3, 300)]] `shouldBe` [1, 2]
    it "one that was near a little longer, and one that was not a little later" $ do
      -- 1.3 ms next to 1 ms: a near node stays near, and another does not become near.
      nearAfter [[(1, 1000), (2, 1000)], [(1, 1000), (2, 2000)]] `shouldBe` [1, 2]
      nearAfter [[(1, 1000), (2, 10000)], [(1, 1000), (2, 1000)]] `shouldBe` [1]
    it "one that has become slow no more, and one that has become quick again" $ do
      nearAfter ([(1, 1000), (2, 1000)] : replicate 3 [(1, 1000), (2, 9000)]) `shouldBe` [1]
      nearAfter ([(1, 1000), (2, 9000)] : replicate 12 [(1, 1000), (2, 1000)]) `shouldBe` [1, 2]
    it "nobody who is silent, and who comes back by what it then says" $ do
      nearAfter [[(1, 1000), (2, 1000)], [(1, 1000)]] `shouldBe` [1]
      nearAfter [[(1, 1000), (2, 90000)], [(1, 1000)], [(1, 1000), (2, 1000)]] `shouldBe` [1, 2]

  prop "the quickest of each group is near, and so is somebody if anybody has answered" $
    forAll anyRounds $ \rounds ->
      let known = after rounds
          latencies = [(latency, not (sightedNear stats)) | stats <- Map.elems known, Just latency <- [sightedLatency stats]]
       in counterexample (show known) $ null latencies || not (snd (minimum latencies))

  prop "nobody is near who has not answered in the last round" $
    forAll anyRounds $ \rounds ->
      Map.filter (\stats -> sightedNear stats && isNothing (sightedLatency stats)) (after rounds) === Map.empty

  it "keeps the zone of a node that was not asked again, and forgets nodes that are gone" $ do
    let told = Map.fromList [(node 1, said (Just 5) (Just (Just "a"))), (node 2, said (Just 5) (Just Nothing))]
        first = nodeStats [[node 1, node 2]] told Map.empty
        second = nodeStats [[node 1]] (Map.fromList [(node 1, said (Just 5) Nothing)]) first
    Map.map sightedZone first `shouldBe` Map.fromList [(node 1, Just "a"), (node 2, Nothing)]
    Map.map sightedZone second `shouldBe` Map.fromList [(node 1, Just "a")]
  where
    shouldBeIn found list = counterexample (show found <> " of " <> show list) (found `elem` list)

node :: Int -> Endpoint
node number = TcpEndpoint "10.0.0.1" (fromIntegral number)

said :: Maybe Int64 -> Maybe (Maybe ByteString) -> Answer
said answerLatency answerZone = Answer {answerLatency, answerZone}

-- The sightings of one group of three nodes after some rounds, from their latencies in
-- microseconds. A node that is left out did not answer.
after :: [[(Int, Int64)]] -> Map Endpoint NodeStats
after = List.foldl' next Map.empty
  where
    next known answers =
      nodeStats
        [map node [1 .. 3]]
        (Map.fromList [(node number, said ((* 1000) <$> lookup number answers) Nothing) | number <- [1 .. 3]])
        known

nearAfter :: [[(Int, Int64)]] -> [Int]
nearAfter rounds = [number | number <- [1 .. 3], maybe False sightedNear (Map.lookup (node number) (after rounds))]

anyRounds :: Gen [[(Int, Int64)]]
anyRounds = listOf1 (listOf ((,) <$> choose (1, 3) <*> choose (1, 5000)))

anyChoice :: Gen (ReadFrom, Int, [Candidate Int])
anyChoice = do
  wanted <- elements [ReadPrimary, PreferReplica, ReadAny, SameZone "a", LowestLatency]
  count <- choose (0, 5)
  primary <- arbitrary
  candidates <- traverse (candidate primary) [0 .. count - 1]
  drawn <- arbitrary
  pure (wanted, drawn, candidates)
  where
    candidate hasPrimary number = do
      candidateUp <- arbitrary
      sightedZone <- elements [Nothing, Just "a", Just "b"]
      sightedNear <- arbitrary
      pure
        Candidate
          { candidateNode = number,
            candidateIsPrimary = hasPrimary && number == 0,
            candidateUp,
            candidateStats = NodeStats {sightedZone, sightedLatency = Nothing, sightedNear}
          }
