-- | A cache of values that are computed once, and stored on the server for a while.
--
-- > cache <- newCache client (keeping "cache:user" codec)
-- > user <- cached cache "7" (loadUser 7)
-- > …
-- > saveUser 7 changed
-- > invalidate cache "7"
--
-- == What is promised
--
-- __Nothing stale.__ A value that 'cached' returns was computed after every invalidation of its key
-- that was answered before the call. A computation that was running when its key was invalidated is
-- not stored. So first write to the source of the value, then call 'invalidate'.
--
-- __One computes.__ Of the callers that miss together, one computes the value and the others wait
-- for it: within one process until it ends, and for up to 'keepingWait' also across processes.
--
-- __Early.__ Shortly before a value expires, one caller computes it anew while the others still get
-- the old one (at random, and the sooner the longer the computation took). Values that are stored
-- together do not expire together ('keepingJitter').
--
-- == What is not promised
--
-- Replication is asynchronous: after a fail-over, a value may exist again whose invalidation was
-- lost. If an invalidation fails, 'invalidate' throws, and must be called again. If the caller dies before
-- that, only the value's time ends it.
--
-- == How
--
-- A key is one hash, with a value and a lease. A caller that misses gets the lease, and may store a
-- value while the lease exists. 'invalidate' deletes both. So a late store finds no lease, or
-- another caller's, and the script refuses it.
--
-- == When a reply is lost
--
-- An invalidation is 'idempotent'. An error means that it must be done again: after 'NotSent' readers
-- still get the old value, after 'MaybeExecuted' they may. A store may be repeated, since the first one
-- that runs uses up its lease; if it is lost for good, the next reader finds the value or computes it. A
-- look-up that may have got the lease asks again, and the server answers that it has it. A lease whose
-- owner never received the reply ends by itself.
module Redis.Patterns.CacheAside
  ( -- * Configuration
    Keeping (keepingTime, keepingJitter, keepingAbsentTime, keepingEarly, keepingLease, keepingWait, keepingTimeout, keepingWithoutServer),
    keeping,
    Codec (..),
    plainBytes,

    -- * Use
    Cache,
    newCache,
    cached,
    invalidate,
  )
where

import Control.Concurrent.STM
import Control.Exception
import Control.Monad (unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isRight)
import Data.IORef
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (isJust)
import Redis
import Redis.Commands qualified as Commands
import Redis.Decode qualified as Decode
import Redis.Duration
import Redis.Patterns.Internal.Time
import Redis.Patterns.Internal.Token
import Redis.Script
import System.Random (randomRIO)

-- | How to write values as bytes, and how to read them back. 'Nothing': the bytes are not readable,
-- for example after a change of the format; the value is then computed and stored again.
data Codec a = Codec
  { encodeWith :: a -> ByteString,
    decodeWith :: ByteString -> Maybe a
  }

-- | The codec of bytes that are stored as they are.
plainBytes :: Codec ByteString
plainBytes = Codec {encodeWith = id, decodeWith = Just}

-- | The settings of a cache. Made by 'keeping', and changed by its fields.
data Keeping a = Keeping
  { keepingName :: ByteString,
    keepingCodec :: Codec a,
    -- | How long a value is stored. Default: 5 minutes.
    keepingTime :: Duration,
    -- | The part of 'keepingTime' that is random. Default: 0.1, so a value is stored for 90 to 100
    -- % of that time.
    keepingJitter :: Double,
    -- | How long the absence of a value is stored; 'Nothing': not at all, and an early computation that
    -- finds none leaves the old value until it expires. Default: 30 s.
    keepingAbsentTime :: Maybe Duration,
    -- | How early a value is computed anew. Default: 1. More is earlier; with 0 it is computed only
    -- when the old value has expired.
    keepingEarly :: Double,
    -- | How long a computation may take and still be stored, and how long others wait for one whose
    -- process has died. Default: 10 s.
    keepingLease :: Duration,
    -- | How long to wait while another process computes the same value; after that the caller
    -- computes it, and does not store it. 'mempty': do not wait. Default: 10 s.
    keepingWait :: Duration,
    -- | How long 'cached' waits for each of the server's replies. Default: 1 s.
    keepingTimeout :: Duration,
    -- | Whether to compute the value if the server does not answer ('True', the default), or to
    -- throw the server's 'Error'. With 'True', the source of the values must be able to bear all
    -- requests.
    keepingWithoutServer :: Bool
  }

-- | A cache of this name, with the default settings: the key of @k@ is @NAME:k@.
keeping :: ByteString -> Codec a -> Keeping a
keeping name codec =
  Keeping
    { keepingName = name,
      keepingCodec = codec,
      keepingTime = minutes 5,
      keepingJitter = 0.1,
      keepingAbsentTime = Just (seconds 30),
      keepingEarly = 1,
      keepingLease = seconds 10,
      keepingWait = seconds 10,
      keepingTimeout = seconds 1,
      keepingWithoutServer = True
    }

-- | A cache, and the computations that this process runs for it at the moment.
data Cache a = Cache
  { cacheClient :: Client,
    cacheKeeping :: Keeping a,
    -- | The beginning of each of this cache's tokens.
    cacheToken :: ByteString,
    cacheCalls :: IORef Int,
    -- | The running computations, by their leases.
    cacheFlights :: TVar (Map ByteString (TMVar (Landing a)))
  }

-- | The end of a computation, for the callers that wait for it.
data Landing a
  = Landed (Maybe a)
  | Crashed SomeException
  | -- | The thread that computed was interrupted. That does not concern the other callers.
    Vanished

-- | Creates a cache; do this once for each kind of value. Costs nothing and does not connect.
newCache :: Client -> Keeping a -> IO (Cache a)
newCache client how = Cache client how <$> newToken 16 <*> newIORef 0 <*> newTVarIO Map.empty

-- | The stored value of a key, or the result of the action; 'Nothing' if there is no value.
--
-- A stored value costs one round trip; computing costs one more. Blocks while another caller
-- computes the value, so the action must not ask for its own key. If the action throws, 'cached' throws the same exception, and so do the
-- callers in this process that wait for it. An early computation is the exception: if that fails,
-- the stored value is returned.
cached :: Cache a -> ByteString -> IO (Maybe a) -> IO (Maybe a)
cached cache@Cache {cacheClient, cacheKeeping, cacheToken, cacheCalls} key compute = mask $ \restore -> do
  call <- atomicModifyIORef' cacheCalls (\count -> (count + 1, count))
  began <- instantNow
  let token = cacheToken <> "." <> Char8.pack (show call)
      -- Its reply is not waited for: if it fails, the lease ends by itself.
      giveBack = void (submit cacheClient (givingBack cacheKeeping key token))
      decoded = restore . evaluate . unpack cacheKeeping
      lead lease = leading cache key lease restore compute
      look unreadable pause = do
        early <- earliness (keepingEarly cacheKeeping)
        tryRun cacheClient (looking cacheKeeping key token (unreadable, early)) `onException` giveBack >>= \case
          Left failure -> do
            when (errorDelivery failure == MaybeExecuted) giveBack
            if keepingWithoutServer cacheKeeping then restore compute else throwIO failure
          Right (Here bytes) -> decoded bytes >>= maybe (look bytes pause) pure
          Right (HereAndYours bytes lease) ->
            (decoded bytes `onException` giveBack) >>= \case
              Nothing -> lead lease
              Just value -> lead lease `catch` \failure -> if isAsynchronous failure then throwIO failure else pure value
          Right (Yours lease) -> lead lease
          Right (Others lease left)
            | cacheToken `ByteString.isPrefixOf` lease ->
              joining cache lease >>= \case
                Just (Landed value) -> pure value
                Just (Crashed failure) -> throwIO failure
                Just Vanished -> look unreadable pause
                Nothing -> await unreadable pause left
            | otherwise -> await unreadable pause left
      -- Another process computes, or the lease's owner never received the reply.
      await unreadable pause left = do
        now <- instantNow
        let rest = now `until'` (began `after` keepingWait cacheKeeping)
        if rest <= mempty
          then restore compute
          else do
            jittered (min rest (min pause (max (milliseconds 1) left))) >>= pauseFor
            look unreadable (min (milliseconds 50) (pause <> pause))
  look "" (milliseconds 2)

-- | Waits for a computation of this process, also beyond its lease: who waited no longer would compute, too, and
-- all of them at once when the source is slow. It may not be registered yet, or no longer; then the
-- server is asked again soon.
joining :: Cache a -> ByteString -> IO (Maybe (Landing a))
joining Cache {cacheFlights} lease =
  waitFor (milliseconds 5) (readTVar cacheFlights >>= maybe retry pure . Map.lookup lease) >>= traverse (atomically . readTMVar)

-- | Computes the value, hands it to the callers that wait, and stores it. Runs masked, except for
-- the computation and the encoding: a lazy value does its work only there.
leading :: Cache a -> ByteString -> ByteString -> (forall b. IO b -> IO b) -> IO (Maybe a) -> IO (Maybe a)
leading Cache {cacheClient, cacheKeeping, cacheFlights} key lease restore compute = do
  landing <- newEmptyTMVarIO
  atomically (modifyTVar' cacheFlights (Map.insert lease landing))
  let land how = atomically (putTMVar landing how)
      gone = atomically (modifyTVar' cacheFlights (Map.delete lease))
      giveBack = void (submit cacheClient (givingBack cacheKeeping key lease))
      store value cost kept = do
        bytes <- restore (evaluate (pack cacheKeeping value))
        tryRun cacheClient (storing cacheKeeping key lease bytes (kept, cost))
  flip finally gone $ do
    began <- instantNow
    try (restore (compute >>= evaluate)) >>= \case
      Left failure -> do
        land (if isAsynchronous failure then Vanished else Crashed failure)
        giveBack
        throwIO failure
      Right value -> do
        land (Landed value)
        cost <- (began `until'`) <$> instantNow
        time <- timeOf cacheKeeping value
        -- If it is unknown whether the value was stored, either is right. If it was not stored,
        -- others need not wait for the end of the lease.
        stored <- traverse (store value cost) time `onException` giveBack
        unless (any isRight stored) giveBack
        pure value

isAsynchronous :: SomeException -> Bool
isAsynchronous failure = isJust (fromException failure :: Maybe SomeAsyncException)

timeOf :: Keeping a -> Maybe a -> IO (Maybe Duration)
timeOf Keeping {keepingTime, keepingAbsentTime, keepingJitter} value =
  traverse shortened (maybe keepingAbsentTime (const (Just keepingTime)) value)
  where
    shortened time = (\lot -> seconds (inSeconds time * (1 - lot * max 0 (min 1 keepingJitter)))) <$> randomRIO (0, 1)

-- | How early to compute this time, as a multiple of the value's cost.
earliness :: Double -> IO Double
earliness factor = (\lot -> max 0 (negate (factor * log lot))) <$> randomRIO (1e-9, 1)

-- The first byte distinguishes a value from the absence of one.
pack :: Keeping a -> Maybe a -> ByteString
pack Keeping {keepingCodec} = maybe "-" (("+" <>) . encodeWith keepingCodec)

unpack :: Keeping a -> ByteString -> Maybe (Maybe a)
unpack Keeping {keepingCodec} bytes = case Char8.uncons bytes of
  Just ('-', _) -> Just Nothing
  Just ('+', value) -> Just <$> decodeWith keepingCodec value
  _ -> Nothing

-- | Deletes the value of a key, so that the next call of 'cached' computes it anew, and keeps
-- running computations of it from being stored. Call it after the change of the value's source. One
-- round trip, which may take the command timeout of the client: 'keepingTimeout' does not limit it. Throws
-- 'Error': then the old value may still be returned, until another call succeeds, or the value's time is over.
invalidate :: Cache a -> ByteString -> IO ()
invalidate Cache {cacheClient, cacheKeeping} key = void (run cacheClient (idempotent (Commands.unlink (pure (keyOf cacheKeeping key)))))

keyOf :: Keeping a -> ByteString -> ByteString
keyOf Keeping {keepingName} key = keepingName <> ":" <> key

-- | The state of a key. A lease is named by the token of the call that got it, and the time at
-- which the call got it.
data Look
  = Here ByteString
  | HereAndYours ByteString ByteString
  | Yours ByteString
  | Others ByteString Duration

-- | Looks up a key, with the token of this call, the stored value that this call could not read (empty if there
-- was none), and how early to compute anew.
looking :: Keeping a -> ByteString -> ByteString -> (ByteString, Double) -> Command Look
looking how key token (unreadable, early) =
  patient how $
    evalScript lookScript [keyOf how key] [token, number (inMilliseconds (keepingLease how)), Char8.pack (show early), unreadable] `decodedBy` \reply ->
      Decode.triple Decode.integer Decode.bytes Decode.bytes reply >>= \case
        (1, value, _) -> Right (Here value)
        (2, value, lease) -> Right (HereAndYours value lease)
        (3, _, lease) -> Right (Yours lease)
        (left, _, lease) -> Right (Others lease (milliseconds (left - 4)))

-- The fields: v is the value, u the time at which it expires, c the cost of its computation, l the
-- lease, and e the end of the lease; times are in milliseconds.
lookScript :: Script
lookScript =
  script
    "local at = redis.call('HMGET', KEYS[1], 'v', 'u', 'c', 'l', 'e')\n\
    \local time = redis.call('TIME')\n\
    \local now = time[1] * 1000 + math.floor(time[2] / 1000)\n\
    \local leased = at[4] and tonumber(at[5]) > now\n\
    \local yours = leased and string.sub(at[4], 1, #ARGV[1] + 1) == ARGV[1] .. ':'\n\
    \local good = at[1] and at[1] ~= ARGV[4] and tonumber(at[2]) > now\n\
    \local early = good and now + tonumber(at[3]) * tonumber(ARGV[3]) >= tonumber(at[2])\n\
    \if good and not (yours or early and not leased) then return {1, at[1], ''} end\n\
    \if leased and not yours then return {4 + tonumber(at[5]) - now, '', at[4]} end\n\
    \local lease = at[4]\n\
    \if not yours then\n\
    \  lease = ARGV[1] .. ':' .. time[1] .. '.' .. time[2]\n\
    \  local last = now + tonumber(ARGV[2])\n\
    \  redis.call('HSET', KEYS[1], 'l', lease, 'e', string.format('%.0f', last))\n\
    \  if good then last = math.max(last, tonumber(at[2])) else redis.call('HDEL', KEYS[1], 'v', 'u', 'c') end\n\
    \  redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last))\n\
    \end\n\
    \if good then return {2, at[1], lease} end\n\
    \return {3, '', lease}"

-- | Stores a value, with how long to keep it, and the cost of its computation.
storing :: Keeping a -> ByteString -> ByteString -> ByteString -> (Duration, Duration) -> Command ()
storing how key lease value (time, cost) =
  patient how $
    evalScript storeScript [keyOf how key] [lease, value, number (max 1 (inMilliseconds time)), number (inMilliseconds cost)] `decodedBy` Decode.ignored

storeScript :: Script
storeScript =
  script
    "if redis.call('HGET', KEYS[1], 'l') ~= ARGV[1] then return 0 end\n\
    \local time = redis.call('TIME')\n\
    \local last = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[3]))\n\
    \redis.call('HDEL', KEYS[1], 'l', 'e')\n\
    \redis.call('HSET', KEYS[1], 'v', ARGV[2], 'u', last, 'c', ARGV[4])\n\
    \redis.call('PEXPIREAT', KEYS[1], last)\n\
    \return 1"

-- | Gives back a lease, named by itself or by the token of the call that may have it.
givingBack :: Keeping a -> ByteString -> ByteString -> Command ()
givingBack how key lease = idempotent (evalScript giveBackScript [keyOf how key] [lease] `decodedBy` Decode.ignored)

giveBackScript :: Script
giveBackScript =
  script
    "local lease = redis.call('HGET', KEYS[1], 'l')\n\
    \if not lease or lease ~= ARGV[1] and string.sub(lease, 1, #ARGV[1] + 1) ~= ARGV[1] .. ':' then return 0 end\n\
    \return redis.call('HDEL', KEYS[1], 'l', 'e')"

-- | Adds the time limit, and marks the command as idempotent: each of the scripts may run twice.
patient :: Keeping a -> Command b -> Command b
patient Keeping {keepingTimeout} = timeLimit keepingTimeout . idempotent
