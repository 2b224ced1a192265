-- | How often commands ran, for the comparison with what the server counted.
module Tool.Bench.Counts
  ( CommandCounts (..),
    countsByName,
  )
where

import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)

-- | How often GET and SET ran.
data CommandCounts = CommandCounts
  { countGets :: Int,
    countSets :: Int
  }
  deriving stock (Eq, Show)

instance Semigroup CommandCounts where
  one <> other =
    CommandCounts
      { countGets = countGets one + countGets other,
        countSets = countSets one + countSets other
      }

instance Monoid CommandCounts where
  mempty = CommandCounts {countGets = 0, countSets = 0}

-- | By the names that commandstats has for them.
countsByName :: CommandCounts -> Map Text Int
countsByName counts = Map.fromList [("get", countGets counts), ("set", countSets counts)]
