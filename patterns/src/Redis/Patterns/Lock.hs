-- | A lock with a lease, which is renewed while the lock is in use.
--
-- > done <- withLock client (lock "reports") $ \hold -> do
-- >   rows <- compute
-- >   store (lockFence hold) rows
--
-- == What is promised
--
-- While one primary keeps its data, at most one holder's lease is valid on it at a time.
-- 'isHeld' returns 'False' before the server gives the lock to another caller. Each holder has a
-- fencing token, a number greater than that of every holder before it.
--
-- If a holder dies, its lock is free when the lease is over. A lock that is no longer used leaves
-- one small key, its counter, which expires after a day.
--
-- == What is not promised
--
-- That the action runs alone. Between a call of 'isHeld' and the work that follows it, a process
-- can stand still for longer than the lease; asking several servers, as Redlock does, does not change
-- that. Replication is asynchronous, too: if a primary is lost before its replica has received the lock,
-- the replica gives the lock to another caller. So work that must not happen twice needs a resource that
-- remembers the greatest 'lockFence' it has seen, and refuses smaller ones. Without such a resource
-- a lock saves work; it does not make anything correct.
--
-- Fencing tokens strictly increase while the counter's key exists. If that key is lost (by its
-- expiry, a fail-over, FLUSHALL, or eviction), they continue from the server's clock in
-- milliseconds. They still increase then, unless the servers' clocks differ, or the clock was set
-- back, by more than the time that has passed since, or the lock was taken more than a thousand times
-- a second.
--
-- Leases end by the server's clock. If that is set forward, a lease can end there before its holder
-- learns of it by the next renewal; if it is set back, the lock of a dead holder stays taken for
-- longer. A holder counts its lease by a clock that goes on while its machine is suspended. When a
-- hypervisor pauses a virtual machine, that clock may stand still; then 'isHeld' may be 'True' after the end
-- of the lease, at most for as long as the pause took.
--
-- Callers that wait are not in a queue: the first to ask when the lock is free gets it. While the
-- lock's slot moves between nodes of a cluster, a caller may have to wait until it has moved.
--
-- == When a reply is lost
--
-- A request that fails with 'MaybeExecuted' may have taken the lock. Other implementations guess:
-- they wait for a lease that they hold themselves, or believe that they hold one that they do not.
-- Here each call of 'withLock' has a random token of its own, and asking again with that token
-- settles it: the server answers that the caller holds the lock already, with the same fencing
-- token. A caller that gives up gives back the lock that it may have taken.
module Redis.Patterns.Lock
  ( -- * Configuration
    Lock (lockName, lockLease, lockTimeout, lockOwner),
    lock,

    -- * Holding a lock
    withLock,
    LockGrant,
    lockFence,
    grantLease,
    isHeld,
    leaseRemaining,
    awaitLeaseLost,
    Lease,

    -- * Inspection
    lockHolder,
    LockHolder (..),
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Int (Int64)
import Redis
import Redis.Command.Build qualified as Build
import Redis.Decode qualified as Decode
import Redis.Duration
import Redis.Patterns.Internal.Leased
import Redis.Patterns.Internal.Token
import Redis.Script

-- | A lock's name and settings. Made by 'lock', and changed by its fields.
data Lock = Lock
  { -- | The name. The keys are @{lock:NAME}@ and @{lock:NAME}:fence@, which share a slot.
    lockName :: ByteString,
    -- | The lease: how long the lock stays taken after its holder has died. Default: 10 s. A short
    -- pause is enough to lose a short lease; a long lease keeps others waiting.
    lockLease :: Duration,
    -- | How long to wait while others hold the lock; 'Nothing': for ever; 'mempty': make one
    -- attempt. Default: 10 s.
    lockTimeout :: Maybe Duration,
    -- | What 'lockHolder' reports about this holder. Default: empty.
    lockOwner :: ByteString
  }
  deriving stock (Eq, Show)

-- | The lock of this name, with the default settings.
lock :: ByteString -> Lock
lock name = Lock {lockName = name, lockLease = seconds 10, lockTimeout = Just (seconds 10), lockOwner = ""}

-- | A lock that is held.
data LockGrant = LockGrant
  { -- | The fencing token: greater than that of every holder before, and in the range that
    -- @redis@'s own numbers and those of most stores can hold (less than \(2^{53}\)). To be sent along
    -- with each write, to a resource that refuses tokens smaller than the greatest it has seen.
    lockFence :: Int64,
    -- | The lease, for 'isHeld', 'leaseRemaining' and 'awaitLeaseLost'.
    grantLease :: Lease
  }

-- | Takes the lock, runs the action, and gives the lock back. 'Nothing': others held the lock for
-- all of 'lockTimeout', and the action did not run. Blocks while it waits for the lock; the pauses
-- between attempts are random, up to 5 ms at first and up to 50 ms later. Costs one round trip to
-- take a free lock, one to give it back, and one for each third of the lease. When the action ends,
-- this waits until the lock is given back: if the server is silent, for the rest of the lease, also
-- when a 'System.Timeout.timeout' around this has interrupted the action.
--
-- The action is not interrupted when the lock may be lost: it can call 'isHeld', or combine
-- 'awaitLeaseLost' with whatever else it waits for.
--
-- Throws 'Error' if the last attempt within 'lockTimeout' failed, or at once if the server
-- refuses. If an earlier attempt may have taken the lock, the error is that one's. The lock was not
-- taken then, or, if the error is 'MaybeExecuted', for at most one lease.
withLock :: Client -> Lock -> (LockGrant -> IO a) -> IO (Maybe a)
withLock client which action = do
  token <- newToken 16
  let leased = Leased (lockLease which) (lockTimeout which) (taking which token) (renewing which token) (releasing which token)
  withLeased client leased (\held fence -> action LockGrant {lockFence = fence, grantLease = held})

keysOf :: Lock -> [ByteString]
keysOf Lock {lockName} = [key, key <> ":fence"]
  where
    -- The prefix keeps the hash tag from being empty, and so both keys in one slot.
    key = lockKey lockName

lockKey :: ByteString -> ByteString
lockKey name = "{lock:" <> name <> "}"

-- The value is the token's 32 digits, the fencing token, a colon, and the owner.
taking :: Lock -> ByteString -> Command (Answer Int64)
taking which@Lock {lockLease, lockOwner} token =
  evalScript takeScript (keysOf which) [token, number lease, lockOwner, number (lease + 86400000)] `decodedBy` answer
  where
    lease = inMilliseconds lockLease
    answer reply =
      Decode.pair Decode.integer Decode.integer reply >>= \case
        (1, fence) -> Right (Given fence)
        (_, remaining) -> Right (Taken (milliseconds remaining))

takeScript :: Script
takeScript =
  script
    "local held = redis.call('GET', KEYS[1])\n\
    \if held then\n\
    \  if string.sub(held, 1, 32) ~= ARGV[1] then return {0, redis.call('PTTL', KEYS[1])} end\n\
    \  redis.call('PEXPIRE', KEYS[1], ARGV[2])\n\
    \  return {1, tonumber(string.match(held, '^(%d+):', 33))}\n\
    \end\n\
    \local time = redis.call('TIME')\n\
    \local now = time[1] * 1000 + math.floor(time[2] / 1000)\n\
    \local fence = math.max((tonumber(redis.call('GET', KEYS[2])) or 0) + 1, now)\n\
    \local digits = string.format('%.0f', fence)\n\
    \redis.call('SET', KEYS[2], digits, 'PX', ARGV[4])\n\
    \redis.call('SET', KEYS[1], ARGV[1] .. digits .. ':' .. ARGV[3], 'PX', ARGV[2])\n\
    \return {1, fence}"

renewing :: Lock -> ByteString -> Command Bool
renewing which token = evalScript renewScript (take 1 (keysOf which)) [token, number (inMilliseconds (lockLease which))] `decodedBy` Decode.boolean

renewScript :: Script
renewScript =
  script
    "local held = redis.call('GET', KEYS[1])\n\
    \if held and string.sub(held, 1, 32) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end\n\
    \return 0"

releasing :: Lock -> ByteString -> Command ()
releasing which token = evalScript releaseScript (take 1 (keysOf which)) [token] `decodedBy` Decode.ignored

releaseScript :: Script
releaseScript =
  script
    "local held = redis.call('GET', KEYS[1])\n\
    \if held and string.sub(held, 1, 32) == ARGV[1] then return redis.call('DEL', KEYS[1]) end\n\
    \return 0"

-- | The holder of a lock.
data LockHolder = LockHolder
  { -- | The holder's 'lockOwner'.
    holderOwner :: ByteString,
    -- | The holder's fencing token.
    holderFence :: Int64
  }
  deriving stock (Eq, Show)

-- | Looks up the holder of the lock of this name, if there is one. One round trip, or a part of a
-- pipeline. The holder may have changed by the time the caller reads the result.
lockHolder :: ByteString -> Command (Maybe LockHolder)
lockHolder name = readFrom ReadPrimary (Build.command "GET" [Build.key (lockKey name)] (Decode.nullable holder))
  where
    holder reply =
      Decode.bytes reply >>= \held -> case Char8.readInteger (ByteString.drop 32 held) of
        Just (fence, rest) -> Right LockHolder {holderOwner = ByteString.drop 1 rest, holderFence = fromInteger fence}
        Nothing -> Decode.mismatch "a lock" reply
