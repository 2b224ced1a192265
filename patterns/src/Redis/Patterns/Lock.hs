-- | A lock that is held for a time, and renewed while it is used.
--
-- > done <- withLock client (lock "reports") $ \hold -> do
-- >   rows <- compute
-- >   store (lockFence hold) rows
--
-- == What is promised
--
-- While one primary keeps its data, at most one holder's lease is valid on it at a time,
-- and 'stillHeld' says no before the server lets anybody else in. Each holder has a fencing
-- token, a number greater than that of every holder before it.
--
-- A lock whose holder died is free when its lease is over. A lock that nobody wants any more
-- leaves a small key for a day (its counter).
--
-- == What is not promised
--
-- That the body is alone. Between a look at 'stillHeld' and what is done then, a process
-- can stand still for longer than the lease: by its garbage collector, by its machine,
-- by a slow disk. And replication is asynchronous: a primary that is lost takes a lock with it that
-- its replica has not heard of, and the replica gives it away again. No number of servers that
-- are asked, as Redlock does it, changes the first of these. So what must not happen twice needs
-- a resource that remembers the greatest 'lockFence' it has seen, and refuses smaller ones.
-- Without such a resource a lock saves work; it does not make anything correct.
--
-- Fencing tokens are strictly increasing while the counter's key is there. If it is lost
-- (by a fail-over, FLUSHALL, or eviction), they go on from the server's clock in
-- milliseconds, so they increase if clocks of servers are not further apart than the time since.
--
-- Who waits is not in a queue: whoever asks first when the lock is free gets it. While its slot moves
-- between nodes of a cluster, a free lock may have to be waited for until it has moved.
--
-- == When a reply is lost
--
-- An error that is 'MaybeExecuted' may have taken the lock. Others guess: they wait for a lease
-- that they hold themselves, or believe to hold one that they do not. Here each attempt has a
-- random word of its own, and asking again with the same word tells: the server answers that it
-- is ours already, with the same fencing token. So taking may be repeated, and is, by the library
-- and by the wait. Who gives up takes back what may have been taken.
module Redis.Patterns.Lock
  ( -- * Which lock
    Lock (lockName, lockLease, lockPatience, lockOwner),
    lock,

    -- * Holding it
    withLock,
    Hold,
    lockFence,
    holdLease,
    stillHeld,
    heldFor,
    awaitLost,
    Held,

    -- * Looking
    lockHolder,
    Holder (..),
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

-- | A lock, and how it is to be held. Made by 'lock', and changed by its fields.
--
-- @since 0.1.0.0
data Lock = Lock
  { -- | Its name. Its keys are @{lock:NAME}@ and @{lock:NAME}:fence@, which share a slot.
    lockName :: ByteString,
    -- | For how long it stays taken when its holder has died: 10 s unless said otherwise.
    -- A short lease is lost by a short pause; a long one keeps others waiting.
    lockLease :: Duration,
    -- | For how long to wait while others hold it; 'Nothing': for ever. 10 s unless said
    -- otherwise. 'mempty': one attempt.
    lockPatience :: Maybe Duration,
    -- | What others are told of who holds it ('lockHolder'). Empty unless said otherwise.
    lockOwner :: ByteString
  }
  deriving stock (Eq, Show)

-- | The lock of this name.
--
-- @since 0.1.0.0
lock :: ByteString -> Lock
lock name = Lock {lockName = name, lockLease = seconds 10, lockPatience = Just (seconds 10), lockOwner = ""}

-- | A lock that is held.
--
-- @since 0.1.0.0
data Hold = Hold
  { -- | The fencing token: greater than that of every holder before, which
    -- @redis@'s own numbers and those of most stores can hold (less than \(2^{53}\)). To be sent along
    -- with whatever is written, to a resource that refuses smaller ones than it has seen.
    lockFence :: Int64,
    -- | To ask whether it is still held.
    holdLease :: Held
  }

-- | Runs the action while the lock is held; 'Nothing' if others held it for all of the time
-- that there was to wait. Blocks while it waits: between attempts for a random part of 5 ms at
-- first and of 50 ms at most. One round trip to take a free lock, one to give it back, and one
-- each third of its lease.
--
-- The action is not interrupted when the lock may be lost: it asks 'stillHeld', or waits for
-- 'awaitLost' beside what else it waits for. When it ends or throws, the lock is given back.
--
-- Throws 'Error' if there was no answer that told whether the lock was free, in the time that
-- there was to wait, or at once if the server refuses. It was not taken then, or, if the error is
-- 'MaybeExecuted', for at most one lease.
--
-- @since 0.1.0.0
withLock :: Client -> Lock -> (Hold -> IO a) -> IO (Maybe a)
withLock client which action = do
  token <- newToken 16
  withLeased
    client
    Leased
      { leasedFor = lockLease which,
        leasedPatience = lockPatience which,
        leasedTake = taking which token,
        leasedRenew = renewing which token,
        leasedGiveBack = releasing which token
      }
    (\held fence -> action Hold {lockFence = fence, holdLease = held})

keysOf :: Lock -> [ByteString]
keysOf Lock {lockName} = [key, key <> ":fence"]
  where
    -- The word before the name keeps the tag from being empty, and so both in one slot.
    key = lockKey lockName

lockKey :: ByteString -> ByteString
lockKey name = "{lock:" <> name <> "}"

number :: Int64 -> ByteString
number = Char8.pack . show

-- The value is 32 digits of the token, the fencing token, a colon, and the owner.
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

-- | Who holds a lock.
--
-- @since 0.1.0.0
data Holder = Holder
  { -- | What the holder has said of itself, 'lockOwner'.
    holderOwner :: ByteString,
    -- | Its fencing token.
    holderFence :: Int64
  }
  deriving stock (Eq, Show)

-- | Who holds the lock of this name, if anybody does. One round trip, or a part of a
-- pipeline. It may have changed when it is read.
--
-- @since 0.1.0.0
lockHolder :: ByteString -> Command (Maybe Holder)
lockHolder name = Build.command "GET" [Build.key (lockKey name)] (Decode.nullable holder)
  where
    holder reply =
      Decode.bytes reply >>= \held -> case Char8.readInteger (ByteString.drop 32 held) of
        Just (fence, rest) -> Right Holder {holderOwner = ByteString.drop 1 rest, holderFence = fromInteger fence}
        Nothing -> Decode.mismatch "a lock" reply
