-- | The pause before another attempt.
module Redis.Internal.Backoff
  ( delayFor,
  )
where

import Redis.Duration (inSeconds)
import Redis.Internal.Config (Backoff (..))

-- | Seconds to wait before attempt @n@ (1 is the first attempt that waits), given a random number
-- between 0 and 1. The first delay is doubled @n - 1@ times, up to the cap; the result lies between
-- half of that and the whole, so that attempts that failed together do not come back together.
-- \(O(1)\).
delayFor :: Backoff -> Int -> Double -> Double
delayFor Backoff {backoffFirst, backoffCap} attempt random = full * (0.5 + 0.5 * random)
  where
    -- 40 doublings make days of a microsecond; the bound keeps the power finite.
    doublings = max 0 (min 40 (attempt - 1))
    full = min (inSeconds backoffCap) (inSeconds backoffFirst * 2 ^^ doublings)
