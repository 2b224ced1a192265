-- | Which of the nodes that hold the same data answers a read: a pure choice among
-- candidates, for the shards of a cluster and for any other primary with replicas.
--
-- A choice is a list of tiers. The first tier that has anybody is drawn from, so
-- whatever is asked for, some candidate is found if there is any: that a node is held
-- to be down makes it the last choice, and refuses nothing.
--
-- Whoever is near is decided once for each round of questions and not for each
-- command ('sightings'). Near are those about as quick as the quickest, so that not all
-- reads run to one node; and who was near stays so a little longer, so that two
-- nodes as good as each other do not change places with each round.
module Redis.Internal.Routing.Readers
  ( -- * Choosing
    Candidate (..),
    tiers,
    chooseReader,

    -- * What is known of nodes
    Sighting (..),
    unseen,
    Answer (..),
    sightings,
  )
where

import Data.ByteString (ByteString)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, mapMaybe)
import Redis.Error (Endpoint)
import Redis.Internal.Config (ReadFrom (..))
import Redis.Internal.Network.Clock (Nanos)

-- | A node that could answer.
data Candidate node = Candidate
  { candidateNode :: node,
    candidateIsPrimary :: Bool,
    -- | Not held to be down.
    candidateUp :: Bool,
    candidateSighting :: Sighting
  }
  deriving stock (Eq, Show)

-- | What a node said when it was asked last.
data Sighting = Sighting
  { -- | 'Nothing' if it was not asked, or has none.
    sightedZone :: Maybe ByteString,
    -- | How long it takes to answer, smoothed; 'Nothing' if it did not answer.
    sightedLatency :: Maybe Nanos,
    -- | It is one of the quickest that hold its data.
    sightedNear :: Bool
  }
  deriving stock (Eq, Show)

-- | Nothing is known of it.
unseen :: Sighting
unseen = Sighting {sightedZone = Nothing, sightedLatency = Nothing, sightedNear = False}

-- | The candidates in the order of preference, those that are as good as each other
-- together. Every candidate is in one of them, unless only the primary will do.
-- \(O(n)\).
tiers :: ReadFrom -> [Candidate node] -> [[Candidate node]]
tiers wanted candidates = case wanted of
  ReadPrimary -> [primary]
  PreferReplica -> [replicasUp, primary, candidates]
  ReadAny -> [up, primary, candidates]
  SameZone zone ->
    let inZone = (== Just zone) . sightedZone . candidateSighting
     in [filter inZone replicasUp, filter inZone (filter candidateUp primary), replicasUp, primary, candidates]
  LowestLatency -> [filter (sightedNear . candidateSighting) up, up, primary, candidates]
  where
    primary = filter candidateIsPrimary candidates
    up = filter candidateUp candidates
    replicasUp = filter (not . candidateIsPrimary) up

-- | The one that is drawn, given any number. 'Nothing' only if there is no candidate,
-- or no primary where nobody else will do.
chooseReader :: ReadFrom -> Int -> [Candidate node] -> Maybe (Candidate node)
chooseReader wanted drawn candidates = case filter (not . null) (tiers wanted candidates) of
  best@(first : _) : _ -> case drop (drawn `mod` length best) best of
    chosen : _ -> Just chosen
    [] -> Just first
  _ -> Nothing

-- | What a node said in one round of questions.
data Answer = Answer
  { -- | How long the quickest of its answers took; 'Nothing' if none came.
    answerLatency :: Maybe Nanos,
    -- | 'Nothing' if it was not asked for.
    answerZone :: Maybe (Maybe ByteString)
  }
  deriving stock (Eq, Show)

-- | What is known after a round: of the nodes of these groups, each of which holds the
-- same data, and of nobody else. A node that was not asked keeps what is known of it.
-- \(O(n \log n)\).
sightings :: [[Endpoint]] -> Map Endpoint Answer -> Map Endpoint Sighting -> Map Endpoint Sighting
sightings groups answers before = Map.unions (map (judged . updated) groups)
  where
    updated group = Map.fromList [(node, maybe id heard (Map.lookup node answers) (Map.findWithDefault unseen node before)) | node <- group]

    heard Answer {answerLatency, answerZone} sighting =
      sighting
        { sightedLatency = smoothed (sightedLatency sighting) <$> answerLatency,
          sightedZone = fromMaybe (sightedZone sighting) answerZone
        }

    -- A node that falls silent comes back with what it then says.
    smoothed Nothing measured = measured
    smoothed (Just known) measured = known + (measured - known) * 3 `quot` 10

    judged group = case mapMaybe sightedLatency (Map.elems group) of
      [] -> Map.map (\sighting -> sighting {sightedNear = False}) group
      latencies -> Map.map (near (minimum latencies)) group

    near quickest sighting = sighting {sightedNear = maybe False (<= limit) (sightedLatency sighting)}
      where
        limit
          | sightedNear sighting = quickest + quickest `quot` 2 + staysWithin
          | otherwise = quickest + quickest `quot` 5 + entersWithin

-- | A node enters up to a fifth above the quickest and this: 0.2 ms. Less than that is
-- how long threads wait for each other.
entersWithin :: Nanos
entersWithin = 200000

-- | It leaves past half above the quickest and this: 0.5 ms.
staysWithin :: Nanos
staysWithin = 500000
