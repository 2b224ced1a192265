-- | How long to wait before the next attempt.
module Redis.Internal.Backoff
  ( delayFor,
  )
where

import Redis.Duration (inSeconds)
import Redis.Internal.Config (Backoff (..))

-- | Seconds to wait before attempt @n@ (1 is the first that waits), given a
-- random number between 0 and 1: the first delay doubled @n - 1@ times, at most
-- the cap, and of that between one half and the whole, so that those who failed
-- together do not come back together. \(O(1)\).
delayFor :: Backoff -> Int -> Double -> Double
delayFor Backoff {backoffFirst, backoffCap} attempt random = full * (0.5 + 0.5 * random)
  where
    -- 2^40 of anything measurable is past every cap.
    doublings = max 0 (min 40 (attempt - 1))
    full = min (inSeconds backoffCap) (inSeconds backoffFirst * 2 ^^ doublings)
