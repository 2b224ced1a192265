-- | The count of HRANDFIELD, SRANDMEMBER and ZRANDMEMBER.
module Redis.Internal.Command.Draw
  ( Draw (..),
    drawCount,
  )
where

import Data.Int (Int64)
import Redis.Command.Build

-- | How many elements to draw at random. A negative number counts as 0.
data Draw
  = -- | This many different elements, or all if there are fewer. Sent as a positive
    -- count.
    Distinct Int64
  | -- | Exactly this many elements, each drawn from all, so that one may come several
    -- times. Sent as a negative count.
    Repeated Int64
  deriving stock (Eq, Show)

-- | The count as an argument; its sign distinguishes the two.
drawCount :: Draw -> Argument
drawCount = \case
  Distinct count -> int (max 0 count)
  Repeated count -> int (negate (max 0 count))
