-- | The counts of one slice of a run: those of one capability at first, and those of all once
-- the parts are added up. Adding parts loses nothing.
module Tool.Bench.Part
  ( Part (..),
    Parts,
    KindCounts (..),
    afterwards,
    partOps,
    partErrors,
  )
where

import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram

-- | No count is stored twice, and empty counts are left out.
data Part = Part
  { -- | The counts of each kind of command, by the kind's number.
    partKinds :: IntMap KindCounts,
    -- | The service times of each node, by the node's number.
    partNodes :: IntMap Histogram,
    -- | Errors by the number of the node and by class, where the node is known.
    partNodeErrors :: IntMap (Map Text Int),
    -- | Schedule error: from the time a command was due to the time it was sent.
    partSchedule :: Histogram
  }
  deriving stock (Eq, Show)

data KindCounts = KindCounts
  { kindService :: Histogram,
    -- | From the time the command was due to its reply; empty in a closed loop.
    kindResponse :: Histogram,
    kindHits :: Int,
    kindMisses :: Int,
    kindErrors :: Map Text Int
  }
  deriving stock (Eq, Show)

-- | The parts of a run, by the number of their slice.
type Parts = IntMap Part

instance Semigroup KindCounts where
  one <> other =
    KindCounts
      { kindService = kindService one <> kindService other,
        kindResponse = kindResponse one <> kindResponse other,
        kindHits = kindHits one + kindHits other,
        kindMisses = kindMisses one + kindMisses other,
        kindErrors = Map.unionWith (+) (kindErrors one) (kindErrors other)
      }

instance Monoid KindCounts where
  mempty = KindCounts mempty mempty 0 0 Map.empty

instance Semigroup Part where
  one <> other =
    Part
      { partKinds = IntMap.unionWith (<>) (partKinds one) (partKinds other),
        partNodes = IntMap.unionWith (<>) (partNodes one) (partNodes other),
        partNodeErrors =
          IntMap.unionWith (Map.unionWith (+)) (partNodeErrors one) (partNodeErrors other),
        partSchedule = partSchedule one <> partSchedule other
      }

instance Monoid Part where
  mempty = Part IntMap.empty IntMap.empty IntMap.empty mempty

-- | The number of the slice that covers all the time after the window.
afterwards :: Int
afterwards = maxBound

-- | Commands that were answered without an error.
partOps :: Part -> Int
partOps = sum . fmap (Histogram.count . kindService) . partKinds

-- | Commands that failed.
partErrors :: Part -> Int
partErrors = sum . fmap (sum . kindErrors) . partKinds
