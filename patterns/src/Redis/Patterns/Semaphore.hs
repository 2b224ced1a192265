-- | A semaphore: a number of permits, each with a lease that is renewed while the permit is in use.
--
-- > answer <- withPermit client (semaphore "exports" 4) $ \_ -> export
--
-- == What is promised
--
-- While one primary keeps its data, it never has more valid permits at a time than the semaphore's
-- number, and 'isHeld' returns 'False' before the server gives a permit to another caller. If a
-- holder dies, its permit comes back when the lease is over. The clock is the server's.
--
-- == What is not promised
--
-- Fairness: the first to ask when a permit is free gets it. Nor that at most this many holders work at a
-- time: what "Redis.Patterns.Lock" says about processes that stand still and about replicas holds here,
-- too, and there is no fencing token, since holders have no order. All users of a semaphore should agree
-- on its number: a caller gets a permit while fewer are taken than that caller's own number.
--
-- == When a reply is lost
--
-- Each call of 'withPermit' has a random token, which names its permit. Asking again with the same
-- token renews a permit that may have been given, and never takes a second one; other implementations
-- leave permits that have no holder. A caller that gives up gives back the permit that it may have.
module Redis.Patterns.Semaphore
  ( Semaphore (semaphoreName, semaphorePermits, semaphoreLease, semaphoreTimeout),
    semaphore,
    withPermit,
    permitsTaken,
    Lease,
    isHeld,
    leaseRemaining,
    awaitLeaseLost,
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis
import Redis.Decode qualified as Decode
import Redis.Duration
import Redis.Patterns.Internal.Leased
import Redis.Patterns.Internal.Token
import Redis.Script

-- | A semaphore's name and settings. Made by 'semaphore', and changed by its fields.
data Semaphore = Semaphore
  { -- | The name. The key is @semaphore:NAME@.
    semaphoreName :: ByteString,
    -- | The number of permits.
    semaphorePermits :: Int64,
    -- | The lease: how long a permit stays taken after its holder has died. Default: 10 s.
    semaphoreLease :: Duration,
    -- | How long to wait while all permits are taken; 'Nothing': for ever; 'mempty': make one
    -- attempt. Default: 10 s.
    semaphoreTimeout :: Maybe Duration
  }
  deriving stock (Eq, Show)

-- | The semaphore of this name with this many permits.
semaphore :: ByteString -> Int64 -> Semaphore
semaphore name permits = Semaphore {semaphoreName = name, semaphorePermits = permits, semaphoreLease = seconds 10, semaphoreTimeout = Just (seconds 10)}

-- | Takes a permit, runs the action, and gives the permit back. 'Nothing': all permits were taken
-- for all of 'semaphoreTimeout', and the action did not run. Blocks, costs and throws like
-- 'Redis.Patterns.Lock.withLock'; \(O(\log n)\) on the server for \(n\) permits taken.
withPermit :: Client -> Semaphore -> (Lease -> IO a) -> IO (Maybe a)
withPermit client which action = do
  token <- newToken 16
  let leased = Leased (semaphoreLease which) (semaphoreTimeout which) (taking which token) (renewing which token) (releasing which token)
  withLeased client leased (\held () -> action held)

-- | The number of permits that are taken at the moment. One round trip; \(O(\log n)\); servers
-- since 7.0.
permitsTaken :: Semaphore -> Command Int64
permitsTaken which = readFrom ReadPrimary (evalScriptRo countScript [keyOf which] [] `decodedBy` Decode.integer)

keyOf :: Semaphore -> ByteString
keyOf Semaphore {semaphoreName} = "semaphore:" <> semaphoreName

-- The key is a sorted set: the holders' tokens, each with the end of its lease in milliseconds. The present one has
-- begun already, so a lease ends in the one after its last.
clock :: ByteString
clock = "local time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\n"

countScript :: Script
countScript = script (clock <> "return redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%.0f', now), '+inf')")

taking :: Semaphore -> ByteString -> Command (Answer ())
taking which@Semaphore {semaphorePermits, semaphoreLease} token =
  evalScript takeScript [keyOf which] [token, number (inMilliseconds semaphoreLease), number semaphorePermits] `decodedBy` \reply ->
    Decode.integer reply >>= \case
      -1 -> Right (Given ())
      remaining -> Right (Taken (milliseconds remaining))

-- Renews the caller's permit if it still exists. If all permits are taken, returns the time until
-- the first of them expires.
takeScript :: Script
takeScript =
  script $
    clock
      <> "local last = string.format('%.0f', now + 1 + ARGV[2])\n\
         \redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))\n\
         \if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then\n\
         \  local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]\n\
         \  return first and tonumber(first) - now or tonumber(ARGV[2])\n\
         \end\n\
         \redis.call('ZADD', KEYS[1], last, ARGV[1])\n\
         \local latest = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]\n\
         \redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', tonumber(latest)))\n\
         \return -1"

renewing :: Semaphore -> ByteString -> Command Bool
renewing which token = evalScript renewScript [keyOf which] [token, number (inMilliseconds (semaphoreLease which))] `decodedBy` Decode.boolean

renewScript :: Script
renewScript =
  script $
    clock
      <> "local last = redis.call('ZSCORE', KEYS[1], ARGV[1])\n\
         \if not last or tonumber(last) <= now then return 0 end\n\
         \redis.call('ZADD', KEYS[1], string.format('%.0f', now + 1 + ARGV[2]), ARGV[1])\n\
         \local latest = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]\n\
         \redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', tonumber(latest)))\n\
         \return 1"

releasing :: Semaphore -> ByteString -> Command ()
releasing which token = evalScript releaseScript [keyOf which] [token] `decodedBy` Decode.ignored

releaseScript :: Script
releaseScript = script "return redis.call('ZREM', KEYS[1], ARGV[1])"
