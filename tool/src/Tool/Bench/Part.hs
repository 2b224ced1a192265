-- | What was counted in one slice of a run: by one thread at first, and by all
-- of them when the parts are put together. Adding parts loses nothing.
module Tool.Bench.Part
  ( Part (..),
    Parts,
    KindCounts (..),
    afterwards,
    partOps,
  )
where

import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram

-- | Nothing in it is kept twice, and what is empty is not there.
data Part = Part
  { -- | By the number of the kind of command.
    partKinds :: IntMap KindCounts,
    -- | Service times by the number of the node.
    partNodes :: IntMap Histogram,
    -- | What failed, by the number of the node and by class; where the node is
    -- known.
    partNodeErrors :: IntMap (Map Text Int),
    -- | From the time a command was due to the time it was sent.
    partSchedule :: Histogram
  }
  deriving stock (Eq, Show)

-- | One kind of command.
data KindCounts = KindCounts
  { kindService :: Histogram,
    -- | From the time it was due to its reply; empty in a closed loop.
    kindResponse :: Histogram,
    kindHits :: Int,
    kindMisses :: Int,
    -- | By class.
    kindErrors :: Map Text Int
  }
  deriving stock (Eq, Show)

-- | By the number of the slice.
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

-- | The number of the slice that is all the time after the window.
afterwards :: Int
afterwards = maxBound

-- | Commands that were answered well.
partOps :: Part -> Int
partOps = sum . fmap (Histogram.count . kindService) . partKinds
