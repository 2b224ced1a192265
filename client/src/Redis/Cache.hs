-- | A client-side cache: the client keeps the replies to reads until the server reports that their
-- keys have changed. Turn it on in the configuration, and read with 'runCached':
--
-- > config = setCaching (Just cachingDefaults) (standaloneConfig "localhost" 6379)
-- > …
-- > runCached client (seconds 60) (Redis.get "config")
--
-- __What is promised__: a cached reply was the server's reply at some time no longer ago than the
-- age that the caller allows, and it misses no change to its key that the server had reported to
-- this client before. When a connection ends, the client drops the replies of its node; when a slot
-- moves, it drops the replies of that slot.
--
-- __What is not promised__: that a thread reads what it has just written. The server reports a
-- change in a separate message, which may come a moment after the reply to the write; a read in
-- between may still return the old value. A cached read does not wait for commands that its thread
-- has submitted and not awaited. A key that expires is dropped when the server has noticed, which
-- may be later than its time. A server that is frozen, or behind a network that drops everything,
-- reports nothing: then the age is the only bound.
--
-- A hit is a look-up in memory: it makes no system call and waits for no other thread. Callers that
-- miss the same reply at the same time share one command.
--
-- Server: <https://valkey.io/topics/client-side-caching/>.
module Redis.Cache
  ( -- * Reading
    runCached,
    tryRunCached,
    submitCached,

    -- * Statistics
    cacheGauges,
    CacheGauges (..),
  )
where

import Control.Exception (throwIO)
import Redis.Command
import Redis.Duration (Duration)
import Redis.Error
import Redis.Internal.Client.CacheStore (CacheGauges (..), noCacheGauges, storeGauges)
import Redis.Internal.Client.Cached
import Redis.Internal.Client.Core (Client (..), Core (coreCache, coreConfig, coreNotes), keepOpen)
import Redis.Internal.Client.Execute
import Redis.Internal.Client.Trace
import Redis.Internal.Client.TraceNotes (newTraceNotes)
import Redis.Internal.Config (Config (configHooks))
import Redis.Internal.Hooks
import Redis.Internal.Network.Runtime (nanosFromDuration)

-- | Runs a read, or answers it from the cache. Throws 'Error'.
--
-- The cache keeps replies to commands that read one key and return nothing but its value. MGET and
-- EXISTS of several keys are split, and each key is read and kept by itself. Every other command
-- (writes, commands that wait, reads of several keys at once, TTL, SRANDMEMBER, scripts) runs as
-- with 'Redis.Client.run', and so does every command on a client without 'Redis.Config.setCaching'.
-- Errors are not kept.
--
-- The duration is the greatest age that a reply from the cache may have, to the tick of the system's
-- clock (1 to 4 ms). With an age of zero or less the read bypasses the cache.
--
-- A read that can be kept goes to the key's primary, also where reads prefer replicas. The hook for
-- commands is not called for a hit.
--
-- \(O(\log n)\) in the number of kept replies, plus the decoder's time. Blocks only on a miss, like
-- 'Redis.Client.tryRun'.
runCached :: Client -> Duration -> Command a -> IO a
runCached client age command = tryRunCached client age command >>= either throwIO pure

-- | Like 'runCached', but returns the result or the 'Error'.
tryRunCached :: Client -> Duration -> Command a -> IO (Either Error a)
tryRunCached (Client core) age command = case hookCommand (configHooks (coreConfig core)) of
  Nothing ->
    glance core (nanosFromDuration age) command >>= \case
      Answered result -> pure result
      Unanswered begin -> (begin >>= awaitStarted) <* keepOpen core
  Just hook -> do
    notes <- newTraceNotes
    glance core {coreNotes = Just notes} (nanosFromDuration age) command >>= \case
      Answered result -> pure result
      Unanswered begin -> do
        trace <- beginTraceOf core hook (oneCommand (commandArguments command)) notes
        awaitTraced trace (const begin) <* keepOpen core

-- | Like 'runCached', but does not wait for the reply. Blocks on a miss like 'Redis.Client.submit'.
submitCached :: Client -> Duration -> Command a -> IO (Pending a)
submitCached (Client core) age command = case hookCommand (configHooks (coreConfig core)) of
  Nothing ->
    glance core (nanosFromDuration age) command >>= \case
      Answered result -> pure (settled result)
      Unanswered begin -> heldOpen core <$> begin
  Just hook -> do
    notes <- newTraceNotes
    glance core {coreNotes = Just notes} (nanosFromDuration age) command >>= \case
      Answered result -> pure (settled result)
      Unanswered begin -> do
        trace <- beginTraceOf core hook (oneCommand (commandArguments command)) notes
        heldOpen core <$> startTraced trace (const begin)

-- | What the cache holds now, and how reads have gone so far. Never blocks.
cacheGauges :: Client -> IO CacheGauges
cacheGauges (Client core) = maybe (pure noCacheGauges) storeGauges (coreCache core)
