-- | Chooses which of the nodes with the same data answers a read: a pure choice among
-- candidates, for the shards of a cluster and for any other primary with replicas.
--
-- A choice is a list of tiers. The node is drawn from the first tier that is not empty. So
-- whatever the preference, a candidate is found if there is one: a node that is down is only
-- the last choice, and is never refused.
--
-- Which nodes are near is decided once for each round of questions, not for each command
-- ('node stats'). Near are the nodes about as quick as the quickest, so that not all reads go
-- to one node. A node that was near stays near a little longer, so that two equally quick
-- nodes do not change places with each round.
module Redis.Internal.Routing.Readers
  ( -- * Choosing
    Candidate (..),
    tiers,
    chooseReader,

    -- * What is known of nodes
    NodeStats (..),
    unseen,
    Answer (..),
    nodeStats,
  )
where

import Data.ByteString (ByteString)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, mapMaybe)
import Redis.Error (Endpoint)
import Redis.Internal.Config (ReadFrom (..))
import Redis.Internal.Network.Runtime (Nanos)

-- | A node that could answer a read.
data Candidate node = Candidate
  { candidateNode :: node,
    candidateIsPrimary :: Bool,
    -- | Whether the node does not count as down.
    candidateUp :: Bool,
    candidateStats :: NodeStats
  }
  deriving stock (Eq, Show)

-- | The latency probe's knowledge about a node.
data NodeStats = NodeStats
  { -- | The availability zone; 'Nothing' if it was not asked for, or the node has none.
    sightedZone :: Maybe ByteString,
    -- | How long the node takes to answer, smoothed; 'Nothing' if it did not answer.
    sightedLatency :: Maybe Nanos,
    -- | Whether it is one of the quickest nodes with its data.
    sightedNear :: Bool
  }
  deriving stock (Eq, Show)

-- | The node stats of a node that was never asked.
unseen :: NodeStats
unseen = NodeStats {sightedZone = Nothing, sightedLatency = Nothing, sightedNear = False}

-- | The candidates in tiers, in the order of preference. Every candidate is in one of them,
-- unless only the primary is allowed.
-- \(O(n)\).
tiers :: ReadFrom -> [Candidate node] -> [[Candidate node]]
tiers wanted candidates = case wanted of
  ReadPrimary -> [primary]
  PreferReplica -> [replicasUp, primary, candidates]
  ReadAny -> [up, primary, candidates]
  SameZone zone ->
    let inZone = (== Just zone) . sightedZone . candidateStats
     in [filter inZone replicasUp, filter inZone (filter candidateUp primary), replicasUp, primary, candidates]
  LowestLatency -> [filter (sightedNear . candidateStats) up, up, primary, candidates]
  where
    primary = filter candidateIsPrimary candidates
    up = filter candidateUp candidates
    replicasUp = filter (not . candidateIsPrimary) up

-- | The candidate that is drawn, given any number. 'Nothing' only if there is no candidate,
-- or no primary where only the primary is allowed.
chooseReader :: ReadFrom -> Int -> [Candidate node] -> Maybe (Candidate node)
chooseReader wanted drawn candidates = case filter (not . null) (tiers wanted candidates) of
  best@(first : _) : _ -> case drop (drawn `mod` length best) best of
    chosen : _ -> Just chosen
    [] -> Just first
  _ -> Nothing

-- | A node's answers in one round of questions.
data Answer = Answer
  { -- | How long the quickest answer took; 'Nothing' if none came.
    answerLatency :: Maybe Nanos,
    -- | The zone; the outer 'Nothing' if it was not asked for.
    answerZone :: Maybe (Maybe ByteString)
  }
  deriving stock (Eq, Show)

-- | The node stats after a round: of the nodes of these groups, each of which has the same
-- data, and of no others. A node that was not asked keeps its node stats.
-- \(O(n \log n)\).
nodeStats :: [[Endpoint]] -> Map Endpoint Answer -> Map Endpoint NodeStats -> Map Endpoint NodeStats
nodeStats groups answers before = Map.unions (map (judged . updated) groups)
  where
    updated group = Map.fromList [(node, maybe id heard (Map.lookup node answers) (Map.findWithDefault unseen node before)) | node <- group]

    heard Answer {answerLatency, answerZone} stats =
      stats
        { sightedLatency = smoothed (sightedLatency stats) <$> answerLatency,
          sightedZone = fromMaybe (sightedZone stats) answerZone
        }

    -- After a silence, a node starts again with its new latency.
    smoothed Nothing measured = measured
    smoothed (Just known) measured = known + (measured - known) * 3 `quot` 10

    judged group = case mapMaybe sightedLatency (Map.elems group) of
      [] -> Map.map (\stats -> stats {sightedNear = False}) group
      latencies -> Map.map (near (minimum latencies)) group

    near quickest stats = stats {sightedNear = maybe False (<= limit) (sightedLatency stats)}
      where
        limit
          | sightedNear stats = quickest + quickest `quot` 2 + staysWithin
          | otherwise = quickest + quickest `quot` 5 + entersWithin

-- | How much slower than the quickest plus a fifth a node may be to become near: 0.2 ms.
-- Threads wait about that long for each other anyway.
entersWithin :: Nanos
entersWithin = 200000

-- | How much slower than the quickest plus a half a node may be to stay near: 0.5 ms.
staysWithin :: Nanos
staysWithin = 500000
