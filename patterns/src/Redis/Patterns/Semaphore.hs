-- | A number of permits, each held for a time and renewed while it is used.
--
-- > answer <- withPermit client (semaphore "exports" 4) $ \_ -> export
--
-- == What is promised
--
-- While one primary keeps its data, no more permits than the number are valid on it at a time, and
-- 'stillHeld' says no before the server gives a permit to somebody else. A permit whose holder
-- died comes back when its lease is over. The clock is the server's.
--
-- == What is not
--
-- Fairness: who asks first when a permit is free gets it, and who waits is in no queue. That
-- no more than so many work at a time: what is said in "Redis.Patterns.Lock" of processes that stand still
-- and of replicas holds here too, and there is no fencing token, since holders have no order. Those
-- who share a semaphore should agree on its number; a permit is given while there are fewer
-- than the number of whoever asks.
--
-- == When a reply is lost
--
-- Each attempt has a random word, which is its permit's name. Asking again with it renews the permit that
-- may have been given, and takes no second. So 'MaybeExecuted' loses no permit: others guess, and have
-- permits that nobody holds until they run out. Who gives up takes back what may have been given.
module Redis.Patterns.Semaphore
  ( Semaphore (semaphoreName, semaphorePermits, semaphoreLease, semaphorePatience),
    semaphore,
    withPermit,
    permitsTaken,
    Held,
    stillHeld,
    heldFor,
    awaitLost,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Redis
import Redis.Decode qualified as Decode
import Redis.Duration
import Redis.Patterns.Internal.Leased
import Redis.Patterns.Internal.Token
import Redis.Script

-- | A semaphore, and how a permit is to be held. Made by 'semaphore', and changed by its
-- fields.
--
-- @since 0.1.0.0
data Semaphore = Semaphore
  { -- | Its name. Its key is @semaphore:NAME@.
    semaphoreName :: ByteString,
    -- | How many permits there are.
    semaphorePermits :: Int64,
    -- | For how long a permit stays taken when its holder has died: 10 s unless said
    -- otherwise.
    semaphoreLease :: Duration,
    -- | For how long to wait while all are taken; 'Nothing': for ever. 10 s unless said
    -- otherwise. 'mempty': one attempt.
    semaphorePatience :: Maybe Duration
  }
  deriving stock (Eq, Show)

-- | The semaphore of this name with so many permits.
--
-- @since 0.1.0.0
semaphore :: ByteString -> Int64 -> Semaphore
semaphore name permits = Semaphore {semaphoreName = name, semaphorePermits = permits, semaphoreLease = seconds 10, semaphorePatience = Just (seconds 10)}

-- | Runs the action with a permit; 'Nothing' if all were taken for all of the time that there was
-- to wait. Blocks, costs and throws as 'Redis.Patterns.Lock.withLock'; \(O(\log n)\) for \(n\) permits
-- taken.
--
-- @since 0.1.0.0
withPermit :: Client -> Semaphore -> (Held -> IO a) -> IO (Maybe a)
withPermit client which action = do
  token <- newToken 16
  withLeased
    client
    Leased
      { leasedFor = semaphoreLease which,
        leasedPatience = semaphorePatience which,
        leasedTake = taking which token,
        leasedRenew = renewing which token,
        leasedGiveBack = releasing which token
      }
    (\held () -> action held)

-- | How many permits are taken at the moment. One round trip; \(O(\log n)\); servers since
-- 7.0.
--
-- @since 0.1.0.0
permitsTaken :: Semaphore -> Command Int64
permitsTaken which = evalScriptRo countScript [keyOf which] [] `decodedBy` Decode.integer

keyOf :: Semaphore -> ByteString
keyOf Semaphore {semaphoreName} = "semaphore:" <> semaphoreName

-- A sorted set: the tokens of the holders, each with the end of its lease in milliseconds.
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

-- What is still there is renewed. Otherwise it says when the first of the permits
-- runs out.
takeScript :: Script
takeScript =
  script $
    clock
      <> "local last = string.format('%.0f', now + ARGV[2])\n\
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
         \redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2]), ARGV[1])\n\
         \local latest = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]\n\
         \redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', tonumber(latest)))\n\
         \return 1"

releasing :: Semaphore -> ByteString -> Command ()
releasing which token = evalScript releaseScript [keyOf which] [token] `decodedBy` Decode.ignored

releaseScript :: Script
releaseScript = script "return redis.call('ZREM', KEYS[1], ARGV[1])"

number :: Int64 -> ByteString
number = Char8.pack . show
