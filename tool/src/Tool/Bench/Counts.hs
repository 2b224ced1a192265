-- | How often commands ran, to compare with what the server counted.
module Tool.Bench.Counts
  ( CommandCounts (..),
    counted,
  )
where

import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)

-- | Calls by command, named as in @INFO commandstats@. A command that is not in the map has no
-- calls.
newtype CommandCounts = CommandCounts {countsByName :: Map Text Int}
  deriving stock (Show)

-- | A count of zero equals a missing one.
instance Eq CommandCounts where
  one == other = present one == present other
    where
      present = Map.filter (/= 0) . countsByName

instance Semigroup CommandCounts where
  CommandCounts one <> CommandCounts other = CommandCounts (Map.unionWith (+) one other)

instance Monoid CommandCounts where
  mempty = CommandCounts Map.empty

-- | What one operation adds, times this number.
counted :: Int -> [(Text, Int)] -> CommandCounts
counted times = CommandCounts . Map.fromListWith (+) . map (fmap (* times))
