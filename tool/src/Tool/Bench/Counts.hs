-- | How often commands ran, for the comparison with what the server counted.
module Tool.Bench.Counts
  ( CommandCounts (..),
    counted,
    grownBy,
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

-- | By how much the commands that the client sent, and the common ones that it
-- did not, have grown from the first to the second. Given is what the client
-- sent; servers also count what others ask them, INFO for one.
grownBy :: CommandCounts -> CommandCounts -> CommandCounts -> CommandCounts
grownBy client before after =
  CommandCounts (Map.mapWithKey growth (countsByName client <> watched))
  where
    growth name _ = count name after - count name before
    count name = Map.findWithDefault 0 name . countsByName
    watched = Map.fromList [("get", 0), ("set", 0)]
