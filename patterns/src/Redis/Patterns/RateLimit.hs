-- | Rate limiters: one command and one round trip for each question.
--
-- > answer <- run client (attempt (gcra 100 (seconds 60)) "limit:user:7" 1)
-- > if allowed answer then serve else refuse (retryAfter answer)
--
-- There are two ways of counting:
--
-- * 'gcra' spaces what comes: 100 a minute are one each 0.6 s, and a burst of up to 100
--   after a pause. It stores one number for each key.
-- * 'slidingWindow' looks back: never more than 100 in any minute. It keeps an entry for
--   each request that was allowed.
--
-- == What is promised
--
-- The script decides by the clock of the server that holds the key, one call after the other,
-- however many callers ask at once. Of the requests that were allowed,
--
-- * with 'slidingWindow', no more than the limit lies in any period;
-- * with 'gcra', no more than the burst and, for each further period, the limit: in a time
--   \(t\), \(burst + limit \cdot t / period\).
--
-- That holds for a clock that is set back, too; for a window, if it is set back by less than a period,
-- or else the window begins anew. No caller then waits for longer than a full burst takes to come back,
-- or twice the period of a window.
--
-- == What is not promised
--
-- If a key is lost (by a fail-over before its replica had it, eviction, or FLUSHALL), its count
-- begins anew.
--
-- == When a reply is lost
--
-- After 'MaybeExecuted' other implementations guess. Asking again errs on one side only: it may count
-- the request twice, so it never allows too much. So these commands are 'idempotent', and the library
-- asks again while there is time. If an error remains, the caller decides; the middleware in
-- "Redis.Patterns.RateLimit.Wai" has a setting for that.
module Redis.Patterns.RateLimit
  ( -- * Limiters
    RateLimit,
    gcra,
    gcraWithBurst,
    slidingWindow,
    limitCount,
    limitPeriod,

    -- * Requests
    attempt,
    attemptAt,
    forget,
    Allowance (..),
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis
import Redis.Commands qualified as Commands
import Redis.Decode qualified as Decode
import Redis.Duration
import Redis.Patterns.Internal.Token (number)
import Redis.Script

-- | A limit: how many requests in which period, and the way of counting.
data RateLimit = RateLimit
  { limitCounting :: Counting,
    -- | The number of requests allowed in a period.
    limitCount :: Int64,
    -- | The period.
    limitPeriod :: Duration
  }
  deriving stock (Eq, Show)

data Counting
  = -- | With a burst of this size after a pause.
    Spaced Int64
  | Looking
  deriving stock (Eq, Show)

-- | A limit of this many in each period, evenly spaced, and with a burst of the same size after a
-- pause. The number is at least one; the rate is at most one each microsecond.
gcra :: Int64 -> Duration -> RateLimit
gcra count = gcraWithBurst count count

-- | Like 'gcra', but with another burst size: @gcraWithBurst burst count period@.
gcraWithBurst :: Int64 -> Int64 -> Duration -> RateLimit
gcraWithBurst burst count = RateLimit (Spaced (max 1 burst)) (max 1 count) . max (microseconds 1)

-- | A limit of this many in any time of this length. Each allowed request takes about 60 bytes for
-- twice that long, so use it for limits of up to a few thousand.
slidingWindow :: Int64 -> Duration -> RateLimit
slidingWindow count = RateLimit Looking (max 1 count) . max (microseconds 1)

-- | The answer to a request.
data Allowance = Allowance
  { -- | Whether the request was allowed, and counted. A request that is not allowed is not counted.
    allowed :: Bool,
    -- | The number of further requests that would be allowed now.
    remaining :: Int64,
    -- | The time until the same request would be allowed, if there are no other requests; 'mempty'
    -- if it was allowed, and 'Nothing' if it never will be, because it is for more than the limit
    -- or burst.
    retryAfter :: Maybe Duration,
    -- | The time until the key is as if it had never been used.
    resetAfter :: Duration
  }
  deriving stock (Eq, Show)

-- | Requests this many under this key: normally one for each request. Zero only looks and takes
-- nothing; a negative number counts as zero. The key is used as it is. Do not use it for anything
-- else, nor for another way of counting. One round trip; \(O(1)\) for 'gcra'; for 'slidingWindow'
-- \(O(\log n)\) for each one that is taken and each entry that has become too old. 'idempotent'.
attempt :: RateLimit -> ByteString -> Int64 -> Command Allowance
attempt = asked ""

-- | Like 'attempt', but at a time given by the caller, since 1970: for programs whose clocks are
-- better than their servers', and for tests. All callers of a key must then give a time, from
-- clocks that agree. Keys still expire by the server's clock.
attemptAt :: Duration -> RateLimit -> ByteString -> Int64 -> Command Allowance
attemptAt now = asked (number (inMicroseconds now))

-- | Resets this key, as if it had never been used. 'True' if the key existed.
forget :: ByteString -> Command Bool
forget key = idempotent ((> 0) <$> Commands.unlink (pure key))

asked :: ByteString -> RateLimit -> ByteString -> Int64 -> Command Allowance
asked now RateLimit {limitCounting, limitCount, limitPeriod} key amount =
  idempotent $
    evalScript rule [key] (map number arguments <> [now]) `decodedBy` \reply ->
      Decode.list Decode.integer reply >>= \case
        [taken, left, retry, reset] ->
          Right
            Allowance
              { allowed = taken == 1,
                remaining = left,
                retryAfter = if retry < 0 then Nothing else Just (microseconds retry),
                resetAfter = microseconds reset
              }
        _ -> Decode.mismatch "an allowance" reply
  where
    period = min greatest (inMicroseconds limitPeriod)
    cost = max 0 amount
    (rule, arguments) = case limitCounting of
      -- Rounded up, so that the rate is never above the limit.
      Spaced burst ->
        let interval = max 1 ((period - 1) `div` limitCount + 1)
         in (spacedScript, [cost, interval, min burst (greatest `div` interval)])
      Looking -> (lookingScript, [cost, period, min greatest limitCount])
    -- Half of the range of a script's reply: differences of the script's numbers fit into it.
    greatest = 4611686018427387904

-- The key holds the time at which all allowed requests have been spaced out. A double holds
-- microseconds of this millennium exactly; as text it does so only with this format. A time further
-- ahead than a full burst is from before the clock was set back: unless it is replaced, every caller
-- is refused until the clock has come there again.
spacedScript :: Script
spacedScript =
  script $
    clock
      <> "local cost, interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])\n\
         \local room = interval * burst\n\
         \local before = math.max(tonumber(redis.call('GET', KEYS[1])) or now, now)\n\
         \if before > now + room then\n\
         \  before = now + room\n\
         \  redis.call('SET', KEYS[1], string.format('%.0f', before), 'PX', math.ceil(room / 1000))\n\
         \end\n\
         \local after = before + cost * interval\n\
         \local over = after - room - now\n\
         \if over > 0 then\n\
         \  if cost > burst then over = -1 end\n\
         \  return {0, math.floor((room - (before - now)) / interval), over, before - now}\n\
         \end\n\
         \if cost > 0 then\n\
         \  redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', math.ceil((after - now) / 1000))\n\
         \end\n\
         \return {1, math.floor((room - (after - now)) / interval), 0, after - now}"

-- The key holds the times of the allowed requests. Those that a clock which was set back has not
-- reached yet count, too, and an allowed request counts at the latest of them. A time is kept until
-- no clock that is set back by less than a period can come before its end; so a request that is
-- allowed is in no window with more than the limit.
--
-- Times of one moment are removed together, so their number makes names that do not repeat.
lookingScript :: Script
lookingScript =
  script $
    clock
      <> "local cost, period, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])\n\
         \local function digits(time) return string.format('%.0f', time) end\n\
         \local newest = tonumber(redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2])\n\
         \if newest and newest > now + period then\n\
         \  redis.call('DEL', KEYS[1])\n\
         \  newest = nil\n\
         \end\n\
         \redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', digits(now - 2 * period))\n\
         \local since = '(' .. digits(now - period)\n\
         \local count = redis.call('ZCOUNT', KEYS[1], since, '+inf')\n\
         \local reset = 0\n\
         \if count > 0 then reset = newest + period - now end\n\
         \if count + cost > limit then\n\
         \  local wait = -1\n\
         \  if cost <= limit then\n\
         \    local at = count + cost - limit - 1\n\
         \    wait = tonumber(redis.call('ZRANGEBYSCORE', KEYS[1], since, '+inf', 'WITHSCORES', 'LIMIT', at, 1)[2]) + period - now\n\
         \  end\n\
         \  return {0, math.max(0, limit - count), wait, reset}\n\
         \end\n\
         \if cost > 0 then\n\
         \  local last = math.max(newest or now, now)\n\
         \  local score = digits(last)\n\
         \  local same = redis.call('ZCOUNT', KEYS[1], score, score)\n\
         \  for each = 1, cost do redis.call('ZADD', KEYS[1], score, score .. ':' .. (same + each)) end\n\
         \  redis.call('PEXPIRE', KEYS[1], math.ceil((last + 2 * period - now) / 1000))\n\
         \  reset = last + period - now\n\
         \end\n\
         \return {1, limit - count - cost, 0, reset}"

clock :: ByteString
clock =
  "local now = tonumber(ARGV[4])\n\
  \if not now then\n\
  \  local time = redis.call('TIME')\n\
  \  now = time[1] * 1000000 + time[2]\n\
  \end\n"
