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
-- A hit makes no system call and waits for no other thread. Callers that miss the same reply at the same
-- time share one command.
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

import Control.Concurrent.MVar
import Control.Exception (mask_, onException, throwIO)
import Control.Monad (unless, void, when)
import Data.ByteString (ByteString)
import Data.Foldable (for_, toList)
import Data.IORef
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.Command
import Redis.Duration (Duration)
import Redis.Error
import Redis.Internal.Client.Cache
import Redis.Internal.Client.Core
import Redis.Internal.Client.Execute
import Redis.Internal.Client.FanOut
import Redis.Internal.Client.RetryEngine (awaitDestination, newCall, onFailure, tracedBy, waitsForDestination)
import Redis.Internal.Client.Trace
import Redis.Internal.Client.TraceNotes
import Redis.Internal.Command
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Handshake (ConnectionRole (ForPrimary))
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.MultiplexPool (Submitter (GoesOn), submitRunToNode)
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.CommandTable (changesUntold, lookupCommand)
import Redis.Internal.Protocol.Encode
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.Router
import Redis.Internal.Routing.Target
import Redis.Value (Value (..))

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
tryRunCached (Client core) age command = cached core age command id $ \trace begin ->
  maybe id (\begun -> toItsEnd begun . const) trace (begin >>= awaitStarted) <* keepOpen core

-- | Like 'runCached', but does not wait for the reply. Blocks on a miss like 'Redis.Client.submit'.
submitCached :: Client -> Duration -> Command a -> IO (Pending a)
submitCached (Client core) age command = cached core age command settled $ \trace begin ->
  heldOpen core <$> maybe id (\begun -> startTraced begun . const) trace begin

-- | Makes something of a result from the cache, or else of the action that runs the command and, if the
-- user has a hook, of the action that begins the command's trace.
cached :: Core -> Duration -> Command a -> (Either Error a -> b) -> (Maybe (IO Trace) -> IO (Pending a) -> IO b) -> IO b
cached core age command found missed = case hookCommand (configHooks (coreConfig core)) of
  Nothing ->
    lookUp core (nanosFromDuration age) command >>= \case
      Answered result -> pure (found result)
      Unanswered begin -> missed Nothing begin
  Just hook -> do
    notes <- newTraceNotes
    lookUp core {coreNotes = Just notes} (nanosFromDuration age) command >>= \case
      Answered result -> pure (found result)
      Unanswered begin -> missed (Just (beginTraceOf core hook (oneCommand (commandArguments command)) notes)) begin
{-# INLINE cached #-}

-- | What the cache holds now, and how reads have gone so far. Never blocks.
cacheGauges :: Client -> IO CacheGauges
cacheGauges (Client core) = maybe (pure noCacheGauges) storeGauges (coreCache core)

-- | The result of a look at the cache.
--
-- A miss sends CLIENT CACHING YES and the read as one run to the primary of the key's slot; the reply is
-- kept before any caller has it. The retry engine recovers a failure once for all callers that wait
-- together, and its result is not kept.
data LookUp a
  = Answered (Either Error a)
  | -- | The action that runs the command. Blocks like 'start'.
    Unanswered (IO (Pending a))

-- | Looks for a kept reply to a read, no older than this. Never blocks.
lookUp :: Core -> Nanos -> Command a -> IO (LookUp a)
lookUp core askedAge given = coarseNanos >>= \askedAt -> lookUpFrom core Asked {askedAt, askedAge} given
{-# INLINE lookUp #-}

-- | Like 'lookUp', for a command that began before.
lookUpFrom :: Core -> Asked -> Command a -> IO (LookUp a)
lookUpFrom core asked given = case coreCache core of
  Just store
    | askedAge asked > 0 -> case routeOf given of
      OneKey key -> lookUpAt core asked given (store, key) (fetch core asked given)
      Splittable 1 keys | factReadOnly (commandFacts given), all (mayBeKept store) keys -> lookUpParts core asked given keys
      AskServer (Just keys@[key]) Nothing -> lookUpAt core asked given (store, key) (\_ -> learning keys)
      _ -> pure (Unanswered (noteUncached store *> startFrom core (askedAt asked) given))
  _ -> pure (Unanswered (startFrom core (askedAt asked) given))
  where
    learning keys =
      learned core (askedAt asked) given (Just keys) >>= \case
        Left failed -> pure (settled (Left (naming given failed)))
        Right known ->
          lookUpFrom core asked known >>= \case
            Answered result -> pure (settled result)
            Unanswered begin -> begin
{-# INLINE lookUpFrom #-}

-- | A miss of a command on one key.
data Missed = Missed
  { missedStore :: CacheStore,
    missedDestination :: Destination,
    missedSource :: Source
  }

-- | Drops the kept reply: the caller has an answer that was not kept and may be newer.
outdo :: Missed -> IO ()
outdo Missed {missedStore, missedSource} = forgetAll missedStore missedSource

-- | Looks for the reply to a command on one key. The last argument runs on a miss.
lookUpAt :: Core -> Asked -> Command a -> (CacheStore, ByteString) -> (Missed -> IO (Pending a)) -> IO (LookUp a)
lookUpAt core asked given (store, key) miss =
  destinationFor (coreCluster core) (commandFacts given) (TargetPrimary (keySlot key)) >>= \case
    Just destination | ForPrimary <- destinationRole destination -> do
      let source =
            Source
              { sourceNode = nodeEndpoint (destinationNode destination),
                sourceHash = hashFor store (commandRequest given),
                sourceRequest = commandRequest given,
                sourceKey = key
              }
      lookFor store source asked >>= \case
        Just value -> pure $! Answered $! decoded given value
        Nothing -> pure (Unanswered (miss Missed {missedStore = store, missedDestination = destination, missedSource = source}))
    _ -> pure (Unanswered (noteUncached store *> startFrom core (askedAt asked) given))
{-# INLINE lookUpAt #-}

-- | Looks for the reply to a read of several keys. Each key is read and kept by itself.
lookUpParts :: Core -> Asked -> Command a -> NonEmpty ByteString -> IO (LookUp a)
lookUpParts core asked given keys = do
  looks <- traverse (\part -> (,) part <$> lookUpFrom (untraced core) asked (partCommand part)) (zipWith ofKey [0 ..] (toList keys))
  case sequence [(,) part <$> answered look | (part, look) <- looks] of
    Just results -> pure (Answered (together results))
    Nothing -> pure . Unanswered $ do
      started <- traverse (traverse begun) looks
      pure (resultOf (together <$> traverse (traverse awaitStarted) started))
  where
    answered = \case
      Answered result -> Just result
      Unanswered _ -> Nothing
    begun = \case
      Answered result -> pure (settled result)
      Unanswered begin -> begin
    together results = decodedFrom given (aggregateParts (commandFacts given) results)
    ofKey position key = partOf given ((position, [key]) :| [])

-- | Reads a key, or joins the caller that reads it.
fetch :: Core -> Asked -> Command a -> Missed -> IO (Pending a)
fetch core asked given missed@Missed {missedStore = store, missedSource}
  | not (isKeepable store given (sourceKey missedSource)) = noteUncached store *> startFrom core (askedAt asked) given
  | otherwise = do
    -- A read must not overtake commands of its thread that wait for a node.
    behind <- waitsForDestination (coreRetryEngine core) (coreThread core) (deadlineFor core (commandFacts given) (askedAt asked))
    if behind then past else entry
  where
    entry = mask_ $ do
      fetchResult <- newEmptyMVar
      fetchStrayed <- newIORef False
      let fetchDeadline = deadlineFor core (commandFacts given) (askedAt asked)
          mine = Fetch {fetchDeadline, fetchStrayed, fetchResult}
      placeFor store missedSource asked mine >>= \case
        Has kept -> pure (settled (decoded given (expanded (keptReply kept))))
        Joins other
          | limitOf other <= limitOf mine -> once (joining core asked given missed other)
          | otherwise -> past
        Leads entryVersion -> do
          lead core missed entryVersion mine given
          pure (resultOf (decodedFrom given <$> landed core missed mine))

    limitOf = deadlineLimit . fetchDeadline

    past = do
      noteUncached store
      started <- startFrom core (askedAt asked) (toPrimary missedSource given)
      pure (resultOf (awaitStarted started <* outdo missed))

-- | The command for the primary of its key, whatever node the client's reads prefer.
toPrimary :: Source -> Command a -> Command a
toPrimary source given = given {commandRoute = OneSlot (keySlot (sourceKey source))}

landed :: Core -> Missed -> Fetch -> IO (Either Error Value)
landed core missed Fetch {fetchResult, fetchStrayed} = do
  outcome <- readMVar fetchResult
  keepOpen core
  strayed <- readIORef fetchStrayed
  outcome <$ when strayed (outdo missed)

-- | Waits for a read of another caller. If the reply is too old when it comes, or if the
-- read timed out while this caller has time left, the caller runs the command itself.
joining :: Core -> Asked -> Command a -> Missed -> Fetch -> IO (Either Error a)
joining core asked given missed other =
  landed core missed other >>= \case
    Right value -> do
      now <- coarseNanos
      if now - deadlineBegan (fetchDeadline other) <= askedAge asked then pure (decoded given value) else again
    Left failed@(TimeoutError _) -> do
      now <- coarseNanos
      if now >= deadlineAt (deadlineFor core (commandFacts given) (askedAt asked)) then pure (Left (naming given failed)) else again
    Left failed -> pure (Left (naming given failed))
  where
    again = executeFrom core (askedAt asked) (toPrimary (missedSource missed) given) <* outdo missed

-- | A started command with the one result of an action, which the first caller runs that waits for it.
-- If that caller is interrupted, the next one runs the action.
once :: IO (Either Error a) -> IO (Pending a)
once action = do
  known <- newMVar Nothing
  pure . resultOf . modifyMVar known $ fmap (\result -> (Just result, result)) . maybe action pure

-- | Submits the read on behalf of all callers that want it. Runs masked; blocks while there is no
-- connection, or no room on it. The retry engine takes the read over from a caller that is interrupted.
lead :: Core -> Missed -> EntryVersion -> Fetch -> Command a -> IO ()
lead core Missed {missedStore, missedDestination, missedSource} entryVersion mine given = do
  permitted <- newTellingSlot $ \outcome -> unless (isPlainReply outcome) lost
  slot <- newTellingSlot $ \case
    Reply value | isPlain value -> do
      keep missedStore missedSource entryVersion mine value
      void (tryPutMVar (fetchResult mine) (Right value))
    outcome -> do
      call <- astray
      onFailure (coreRetryEngine core) call missedDestination outcome
  for_ (coreNotes core) (`noteTarget` nodeEndpoint (destinationNode missedDestination))
  submitRunToNode GoesOn pool (fetchDeadline mine) ([(cachingYes, permitted) | readsAreTracked] <> [(encoded, slot)])
    `onException` (astray >>= awaitDestination (coreRetryEngine core) (coreThread core))
  for_ (coreNotes core) $ \notes -> preciseNanos >>= noteEntered notes
  where
    encoded = commandRequest given
    facts = commandFacts given
    pool = destinationPool missedDestination
    lost = forget missedStore missedSource entryVersion
    astray = do
      lost
      writeIORef (fetchStrayed mine) True
      newCall encoded facts (TargetPrimary (keySlot (sourceKey missedSource))) (fetchDeadline mine) (fetchResult mine) >>= tracedBy (coreNotes core)
    readsAreTracked = case cachingTracking <$> configCaching (coreConfig core) of
      Just (TrackPrefixes _) -> False
      _ -> True
    isPlainReply = \case
      Reply value -> isPlain value
      Failure _ -> False

-- | Tells the server to track the keys of the next command.
cachingYes :: Request
cachingYes = request ["CLIENT", "CACHING", "YES"]

-- | Whether the reply to a command on this key may be kept: the command only reads, and the
-- server reports every change of what it read.
isKeepable :: CacheStore -> Command a -> ByteString -> Bool
isKeepable store given key =
  factReadOnly facts
    && factBlocking facts == NonBlocking
    && factScope facts == SharedConnection
    && not (requestIsShortened encoded)
    && requestSize encoded <= largestRequest
    && mayBeKept store key
    && maybe True (not . changesUntold) (lookupCommand (requestArguments encoded))
  where
    facts = commandFacts given
    encoded = commandRequest given

-- | Requests of more bytes are not kept.
largestRequest :: Int
largestRequest = 64 * 1024
