-- | Reads whose replies the client keeps, until their server says that they have changed.
--
-- > config = setCaching (Just defaultCaching) (standaloneConfig "localhost" 6379)
-- > …
-- > runCached client (maxAge (seconds 60)) (Redis.get "config")
--
-- __What is promised__: a reply from here was the server's at some time no longer ago than
-- the age that was asked for, and no change to its key that the server had told this
-- client before is missing from it. When a connection ends, or a slot moves, nothing is
-- used any more that came by it.
--
-- __What is not__: that a thread reads what it has just written. The server tells of a
-- change in a message of its own, which may come a moment after the reply to the write;
-- a read in between may still answer what was before. Nor is a read from here in line with
-- what its thread has submitted and not awaited. And a key that expires is gone when the
-- server has noticed, which may be later than its time. A server that is frozen, or behind
-- a network that drops everything, tells nothing: then the age is the only bound.
--
-- A hit takes a tenth of a microsecond, more where many keys are read in turn, and asks the
-- kernel nothing. Callers that miss
-- the same reply at the same time share one command.
--
-- Server: <https://valkey.io/topics/client-side-caching/>.
module Redis.Cache
  ( -- * Reading
    runCached,
    tryRunCached,
    submitCached,
    MaxAge,
    maxAge,

    -- * Looking
    cacheGauges,
    CacheGauges (..),
  )
where

import Control.Exception (throwIO)
import Redis.Command
import Redis.Duration (Duration, inMicroseconds)
import Redis.Error
import Redis.Internal.Client.CacheStore (CacheGauges (..), noCacheGauges, storeGauges)
import Redis.Internal.Client.Cached
import Redis.Internal.Client.Core (Client (..), Core (coreCache, coreConfig, coreJourney), keepOpen)
import Redis.Internal.Client.Execute
import Redis.Internal.Client.Journey (newJourney)
import Redis.Internal.Client.Trace
import Redis.Internal.Config (Config (configHooks))
import Redis.Internal.Hooks
import Redis.Internal.Network.Clock (Nanos)

-- | How old an answer may be.
--
-- @since 0.1.0.0
newtype MaxAge = MaxAge Nanos
  deriving stock (Eq, Ord)

-- | So old, to the tick of the system's clock (1 to 4 ms). With no time at all nothing
-- is taken from what is kept.
--
-- @since 0.1.0.0
maxAge :: Duration -> MaxAge
maxAge age = MaxAge (1000 * max 0 (min 9000000000000000 (inMicroseconds age)))

-- | Runs a read, or answers it from what is kept. Throws 'Error'.
--
-- Kept are the replies to commands that read one key and say nothing but its value. MGET
-- and EXISTS of several keys are taken apart, and each key is read and kept by itself.
-- Everything else (writes, commands that wait, reads of several keys at once, TTL,
-- SRANDMEMBER, scripts) runs as with 'Redis.Client.run', and so does everything on a
-- client without 'Redis.Config.setCaching'. Errors are not kept.
--
-- The key's primary is asked, also where reads prefer replicas. The hook for commands is
-- not told of hits.
--
-- \(O(\log n)\) in what is kept, and the decoder's time. Blocks only on a miss, as
-- 'Redis.Client.tryRun'.
--
-- @since 0.1.0.0
runCached :: Client -> MaxAge -> Command a -> IO a
runCached client age command = tryRunCached client age command >>= either throwIO pure

-- | Runs a read, or answers it from what is kept; the result, or the 'Error'.
--
-- @since 0.1.0.0
tryRunCached :: Client -> MaxAge -> Command a -> IO (Either Error a)
tryRunCached (Client core) (MaxAge age) command = case hookCommand (configHooks (coreConfig core)) of
  Nothing ->
    glance core age command >>= \case
      Answered result -> pure result
      Unanswered begin -> (begin >>= awaitStarted) <* keepOpen core
  Just hook -> do
    journey <- newJourney
    glance core {coreJourney = Just journey} age command >>= \case
      Answered result -> pure result
      Unanswered begin -> do
        trace <- beginTraceOf core hook (oneCommand (commandWords command)) journey
        awaitTraced trace (const begin) <* keepOpen core

-- | The same without waiting for the reply. Blocks on a miss as 'Redis.Client.submit'.
--
-- @since 0.1.0.0
submitCached :: Client -> MaxAge -> Command a -> IO (Pending a)
submitCached (Client core) (MaxAge age) command = case hookCommand (configHooks (coreConfig core)) of
  Nothing ->
    glance core age command >>= \case
      Answered result -> pure (Pending (settled result))
      Unanswered begin -> Pending . heldOpen core <$> begin
  Just hook -> do
    journey <- newJourney
    glance core {coreJourney = Just journey} age command >>= \case
      Answered result -> pure (Pending (settled result))
      Unanswered begin -> do
        trace <- beginTraceOf core hook (oneCommand (commandWords command)) journey
        Pending . heldOpen core <$> startTraced trace (const begin)

-- | A look at what is kept, and at what has come of it so far. Never blocks.
--
-- @since 0.1.0.0
cacheGauges :: Client -> IO CacheGauges
cacheGauges (Client core) = maybe (pure noCacheGauges) storeGauges (coreCache core)
