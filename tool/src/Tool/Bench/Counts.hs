-- | How often commands ran, for the comparison with what the server counted.
module Tool.Bench.Counts
  ( CommandCounts (..),
    counted,
  )
where

import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Text (Text)

-- | Calls by command, named as @INFO commandstats@ names them; none of a
-- command that is not there.
newtype CommandCounts = CommandCounts {countsByName :: Map Text Int}
  deriving stock (Show)

-- | Zero is the same as not there.
instance Eq CommandCounts where
  one == other = present one == present other
    where
      present = Map.filter (/= 0) . countsByName

instance Semigroup CommandCounts where
  CommandCounts one <> CommandCounts other = CommandCounts (Map.unionWith (+) one other)

instance Monoid CommandCounts where
  mempty = CommandCounts Map.empty

-- | So many times what one operation adds.
counted :: Int -> [(Text, Int)] -> CommandCounts
counted times = CommandCounts . Map.fromListWith (+) . map (fmap (* times))
