-- | Runs a read whose reply is kept.
--
-- A hit is answered here. A miss sends two commands as one run, CLIENT CACHING YES and the
-- read, to the primary of the key's slot; the reply is kept before any caller has it.
-- A failure goes to the retry engine as usual ("Redis.Internal.Client.RetryEngine"), once for all
-- callers that wait together. The result of a recovery is not kept.
module Redis.Internal.Client.Cached
  ( Glance (..),
    glance,
  )
where

import Control.Concurrent.MVar
import Control.Exception (mask_, onException)
import Control.Monad (unless, void, when)
import Data.ByteString (ByteString)
import Data.Foldable (for_)
import Data.IORef
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Redis.Error
import Redis.Internal.Client.Cache (EntryVersion, Placed (..))
import Redis.Internal.Client.CacheStore
import Redis.Internal.Client.Compact (expanded)
import Redis.Internal.Client.Core
import Redis.Internal.Client.Execute
import Redis.Internal.Client.FanOut
import Redis.Internal.Client.RetryEngine (awaitDestination, newCall, onFailure, tracedBy, waitsForDestination)
import Redis.Internal.Client.TraceNotes
import Redis.Internal.Command
import Redis.Internal.Config
import Redis.Internal.Network.Handshake (ConnectionRole (ForPrimary))
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.MultiplexPool (submitRunToNode)
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.CommandTable (changesUntold, lookupCommand)
import Redis.Internal.Protocol.Encode
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.Router
import Redis.Internal.Routing.Target
import Redis.Value (Value (..))

-- | The result of a look at the cache.
data Glance a
  = Answered (Either Error a)
  | -- | The action that runs the command. Blocks like 'start'.
    Unanswered (IO (Pending a))

-- | Looks for a kept reply to a read, no older than this. Never blocks.
glance :: Core -> Nanos -> Command a -> IO (Glance a)
glance core askedAge given = coarseNanos >>= \askedAt -> glanceFrom core Asked {askedAt, askedAge} given
{-# INLINE glance #-}

-- | Like 'glance', for a command that began before.
glanceFrom :: Core -> Asked -> Command a -> IO (Glance a)
glanceFrom core asked given = case coreCache core of
  Just store
    | askedAge asked > 0 -> case routeOf given of
      OneKey key -> glanceAt core asked given (store, key) (fetch core asked given)
      Splittable 1 keys | factReadOnly (commandFacts given), all (mayBeKept store) keys -> glanceParts core asked given keys
      AskServer (Just keys@[key]) Nothing -> glanceAt core asked given (store, key) (\_ -> learning keys)
      _ -> pure (Unanswered (noteUncached store *> startFrom core (askedAt asked) given))
  _ -> pure (Unanswered (startFrom core (askedAt asked) given))
  where
    learning keys =
      learned core (askedAt asked) given (Just keys) >>= \case
        Left failed -> pure (settled (Left (naming given failed)))
        Right known ->
          glanceFrom core asked known >>= \case
            Answered result -> pure (settled result)
            Unanswered begin -> begin
{-# INLINE glanceFrom #-}

-- | A miss of a command on one key.
data Missed = Missed
  { missedStore :: CacheStore,
    missedKey :: ByteString,
    missedDestination :: Destination,
    missedSource :: Source
  }

-- | Drops the kept reply: the caller has an answer that was not kept and may be newer.
outdo :: Missed -> IO ()
outdo Missed {missedStore, missedSource} = forgetAll missedStore missedSource

-- | Looks for the reply to a command on one key. The last argument runs on a miss.
glanceAt :: Core -> Asked -> Command a -> (CacheStore, ByteString) -> (Missed -> IO (Pending a)) -> IO (Glance a)
glanceAt core asked given (store, key) miss =
  destinationFor (coreCluster core) (commandFacts given) (TargetPrimary (keySlot key)) >>= \case
    Just destination | ForPrimary <- destinationRole destination -> do
      let source =
            Source
              { sourceNode = nodeEndpoint (destinationNode destination),
                sourceHash = hashFor store (commandRequest given),
                sourceRequest = commandRequest given
              }
      lookFor store source asked >>= \case
        Hit value -> pure $! Answered $! decoded given value
        Miss -> pure (Unanswered (miss Missed {missedStore = store, missedKey = key, missedDestination = destination, missedSource = source}))
    _ -> pure (Unanswered (noteUncached store *> startFrom core (askedAt asked) given))
{-# INLINE glanceAt #-}

-- | Looks for the reply to a read of several keys. Each key is read and kept by itself.
glanceParts :: Core -> Asked -> Command a -> NonEmpty ByteString -> IO (Glance a)
glanceParts core asked given keys = do
  looks <- traverse (\part -> (,) part <$> glanceFrom (untraced core) asked (partCommand part)) (NonEmpty.toList (NonEmpty.zipWith ofKey (0 :| [1 ..]) keys))
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
    name = take 1 (commandArguments given)
    ofKey position key =
      Part
        { partPositions = position :| [],
          partCommand =
            Command
              { commandRequest = request (name <> [key]),
                commandRoute = OneKey key,
                commandFacts = commandFacts given,
                commandDecode = Right
              }
        }

-- | Reads a key, or joins the caller that reads it.
fetch :: Core -> Asked -> Command a -> Missed -> IO (Pending a)
fetch core asked given missed@Missed {missedStore = store, missedKey, missedSource}
  | not (isKeepable store given missedKey) = noteUncached store *> startFrom core (askedAt asked) given
  | otherwise = do
    -- A read must not overtake commands that wait for a node.
    behind <- waitsForDestination (coreRetryEngine core)
    if behind then past else entry
  where
    entry = mask_ $ do
      fetchResult <- newEmptyMVar
      fetchStrayed <- newIORef False
      let fetchDeadline = deadlineFor core (commandFacts given) (askedAt asked)
          mine = Fetch {fetchDeadline, fetchStrayed, fetchResult}
      placeFor store missedSource missedKey asked mine >>= \case
        Has kept -> pure (settled (decoded given (expanded (keptReply kept))))
        Joins other
          | limitOf other <= limitOf mine -> once (joining core asked given Joined {joinedDeadline = fetchDeadline, joinedFetch = other, joinedMissed = missed})
          | otherwise -> past
        Leads entryVersion -> do
          lead core Lead {leadMissed = missed, leadVersion = entryVersion, leadFetch = mine, leadGiven = void given}
          pure (resultOf (decodedFrom given <$> landed core missed mine))

    limitOf = deadlineLimit . fetchDeadline

    past = do
      noteUncached store
      started <- startFrom core (askedAt asked) (toPrimary missedKey given)
      pure (resultOf (awaitStarted started <* outdo missed))

-- | The command for the primary of its key, whatever node the client's reads prefer.
toPrimary :: ByteString -> Command a -> Command a
toPrimary key given = given {commandRoute = OneSlot (keySlot key)}

-- | Waits for the reply to a fetch.
landed :: Core -> Missed -> Fetch -> IO (Either Error Value)
landed core missed Fetch {fetchResult, fetchStrayed} = do
  outcome <- readMVar fetchResult
  keepOpen core
  strayed <- readIORef fetchStrayed
  outcome <$ when strayed (outdo missed)

-- | A read of another caller that this one waits for.
data Joined = Joined
  { -- | The deadline of this caller.
    joinedDeadline :: Deadline,
    joinedFetch :: Fetch,
    joinedMissed :: Missed
  }

-- | Waits for a read of another caller. If the reply is too old when it comes, or if the
-- read timed out while this caller has time left, the caller runs the command itself.
joining :: Core -> Asked -> Command a -> Joined -> IO (Either Error a)
joining core asked given Joined {joinedDeadline, joinedFetch, joinedMissed} =
  landed core joinedMissed joinedFetch >>= \case
    Right value -> do
      now <- coarseNanos
      if now - deadlineBegan (fetchDeadline joinedFetch) <= askedAge asked then pure (decoded given value) else again
    Left failed@(TimeoutError _) -> do
      now <- coarseNanos
      if now >= deadlineAt joinedDeadline then pure (Left (naming given failed)) else again
    Left failed -> pure (Left (naming given failed))
  where
    again = executeFrom core (askedAt asked) (toPrimary (missedKey joinedMissed) given) <* outdo joinedMissed

-- | A started command with the result of an action that may run the command. The action has one
-- result, however often and by whomever it is awaited. If a caller is interrupted, the next one runs
-- the action.
once :: IO (Either Error a) -> IO (Pending a)
once action = do
  known <- newMVar Nothing
  pure . resultOf . modifyMVar known $ \case
    Just result -> pure (Just result, result)
    Nothing -> (\result -> (Just result, result)) <$> action

-- | A read on behalf of all callers that want it.
data Lead = Lead
  { leadMissed :: Missed,
    leadVersion :: EntryVersion,
    leadFetch :: Fetch,
    -- | Only its words and its facts matter.
    leadGiven :: Command ()
  }

-- | Submits the read. Runs masked; blocks while there is no connection, or no room on it. If
-- the caller is interrupted then, the retry engine takes the read over for the other callers.
lead :: Core -> Lead -> IO ()
lead core Lead {leadMissed = Missed {missedStore, missedKey, missedDestination, missedSource}, leadVersion, leadFetch, leadGiven} = do
  permitted <- newTellingSlot $ \outcome -> unless (isPlainReply outcome) lost
  slot <- newTellingSlot $ \case
    Reply value | isPlain value -> do
      keep missedStore missedSource leadVersion leadFetch value
      void (tryPutMVar (fetchResult leadFetch) (Right value))
    outcome -> do
      call <- astray
      onFailure (coreRetryEngine core) call missedDestination outcome
  for_ (coreNotes core) (`noteTarget` nodeEndpoint (destinationNode missedDestination))
  submitRunToNode pool (fetchDeadline leadFetch) ([(cachingYes, permitted) | readsAreTracked] <> [(encoded, slot)])
    `onException` (astray >>= awaitDestination (coreRetryEngine core))
  for_ (coreNotes core) $ \notes -> preciseNanos >>= noteEntered notes
  where
    encoded = commandRequest leadGiven
    facts = commandFacts leadGiven
    pool = destinationPool missedDestination
    lost = forget missedStore missedSource leadVersion
    astray = do
      lost
      writeIORef (fetchStrayed leadFetch) True
      newCall encoded facts (TargetPrimary (keySlot missedKey)) (fetchDeadline leadFetch) (fetchResult leadFetch) >>= tracedBy (coreNotes core)
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
