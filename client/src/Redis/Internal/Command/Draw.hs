-- | How many to draw, which HRANDFIELD, SRANDMEMBER and ZRANDMEMBER have in common.
module Redis.Internal.Command.Draw
  ( Draw (..),
    drawCount,
  )
where

import Data.Int (Int64)
import Redis.Command.Build

-- | How many to draw at random. Less than none is none.
--
-- @since 0.1.0.0
data Draw
  = -- | Each at most once: so many, or all if there are fewer. A positive count on
    -- the wire.
    Distinct Int64
  | -- | Exactly so many, each drawn from all, so that one may come several times. A
    -- negative count on the wire.
    Repeated Int64
  deriving stock (Eq, Show)

-- | The sign tells which.
drawCount :: Draw -> Argument
drawCount = \case
  Distinct count -> int (max 0 count)
  Repeated count -> int (negate (max 0 count))
