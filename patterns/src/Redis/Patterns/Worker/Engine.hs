-- | The engine that runs a worker.
--
-- The thread that has called 'runEngine' takes entries, no more than it has free hands, and starts a
-- thread for each. From time to time it first looks for those whose rest is over and those that other
-- workers left. A second thread tells the server regularly which entries are in hand. The thread that
-- handled an entry also settles it, and its hand is free only after that; so while the server cannot be
-- reached, a worker takes nothing new. However a worker ends, other workers find its entries pending on
-- the server.
module Redis.Patterns.Worker.Engine
  ( Handling (..),
    Settled (..),
    runEngine,
    untilAnswered,
    reason,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async
import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception
import Control.Monad (foldM, forM_, forever, unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Lazy qualified as Lazy
import Data.Either (fromRight, isRight)
import Data.Functor.Identity (Identity (Identity))
import Data.IORef
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (isNothing)
import GHC.Clock (getMonotonicTime)
import Redis
import Redis.Commands (PendingEntry (..), StreamBound (..), StreamId)
import Redis.Duration (inSeconds)
import Redis.Patterns.Internal.Time (asMicros, named)
import Redis.Patterns.Internal.Token
import Redis.Patterns.Worker.Group
import Redis.Patterns.Worker.Pending
import Redis.Patterns.Worker.Settings

-- | How to handle an entry. If it throws, the entry rests, or becomes a dead letter. It is given a
-- 'try' that does not catch the exception by which a stopping worker interrupts it.
newtype Handling = Handling {handlingRun :: (forall a. IO a -> IO (Either SomeException a)) -> Entry -> IO Settled}

-- | How to settle an entry that was handled. Settling is repeated until the server has confirmed
-- it.
data Settled
  = -- | By an acknowledgement.
    Acknowledged
  | -- | By this action.
    SettledBy (IO ())

type Key = (ByteString, StreamId)

data Engine = Engine
  { enginePlace :: Place,
    engineHandling :: Handling,
    -- | The threads of the handlers; each is a hand that is not free.
    engineHands :: TVar (Map Key (Async ())),
    -- | The entries in hand, which the worker reports to the server.
    engineHeld :: TVar (Map Key Entry),
    -- | Held while the worker reports. An entry that must no longer be reported is taken out while
    -- this is held, so that no report for it follows the next command about it.
    engineSaying :: MVar (),
    -- | Whether the worker is interrupting the handlers that still run.
    engineLeaving :: TVar Bool,
    -- | Where to continue the look through each stream's pending entries.
    engineCursors :: IORef (Map ByteString StreamBound)
  }

settings :: Engine -> Worker
settings = placeSettings . enginePlace

tell :: Engine -> WorkerEvent -> IO ()
tell engine = tellOf (settings engine)

-- | Runs the worker until it should stop, or throws an error that would come again. When this ends,
-- no handler runs any more.
runEngine :: Client -> Worker -> Handling -> IO ()
runEngine client chosen handling = do
  name <- maybe (("worker-" <>) <$> newToken 10) pure (workerConsumer chosen)
  place <- newPlace client chosen name
  engine <- Engine place handling <$> newTVarIO Map.empty <*> newTVarIO Map.empty <*> newMVar () <*> newTVarIO False <*> newIORef Map.empty
  keeping engine (loop engine >> letFinish engine) `finally` leave engine

-- | Runs the action beside a thread that reports the entries in hand and removes consumers that are
-- gone.
keeping :: Engine -> IO a -> IO a
keeping engine action = withAsync (named "redis in hand" >> forever keep) (const action)
  where
    keep = do
      threadDelay (asMicros (heartbeatTime (settings engine)))
      withMVar (engineSaying engine) . const $ do
        held <- readTVarIO (engineHeld engine)
        let byStream = Map.fromListWith (<>) [(stream, one :| []) | (stream, one) <- Map.keys held]
        forM_ (Map.toList byStream) $ \(stream, ids) -> quietly engine (sayInHand (enginePlace engine) stream ids)
      forM_ (workerStreams (settings engine)) $ \stream ->
        quietly engine (sweep (enginePlace engine) stream (Just (mconcat (replicate 10 (workerClaimAfter (settings engine))))))

-- | Runs the action; reports an error and continues.
quietly :: Engine -> IO () -> IO ()
quietly engine action = try action >>= either (tell engine . WorkerTrouble) pure

-- | The state that the loop carries from one round to the next.
data Round = Round
  { -- | Whether to create the group before anything else.
    roundGroup :: Bool,
    -- | When to look at the pending entries next.
    roundLook :: Double,
    -- | Whether to take new entries before that.
    roundTake :: Bool,
    -- | How many rounds in a row have failed.
    roundFailures :: Int
  }

-- | Takes entries until the worker should stop. A round that fails is reported, and the next one
-- follows after a pause, which becomes longer; a lost group is created again at once. Throws errors
-- that would come again.
loop :: Engine -> IO ()
loop engine = go Round {roundGroup = True, roundLook = 0, roundTake = False, roundFailures = 0}
  where
    stop = workerUntil (settings engine)
    go this =
      atomically ((Nothing <$ stop) `orElse` (Just <$> freeHands engine)) >>= \case
        Nothing -> pure ()
        Just free ->
          try (turn this free) >>= \case
            Right next -> go next
            Left failed
              | isLasting failed -> throwIO failed
              | otherwise -> do
                tell engine (WorkerTrouble failed)
                let atOnce = isGroupLost failed && roundFailures this == 0
                stopped <- if atOnce then pure False else pauseUnless stop (setback (roundFailures this))
                unless stopped $
                  go this {roundGroup = roundGroup this || isGroupLost failed, roundFailures = roundFailures this + 1}
    turn this free
      | roundGroup this = this {roundGroup = False} <$ ensureGroup (enginePlace engine)
      | otherwise = do
        now <- getMonotonicTime
        if now >= roundLook this && not (roundTake this)
          then do
            started <- lookThrough engine free
            -- There may be more pending entries than free hands.
            let next = if started >= free then now else now + inSeconds (workerPollInterval (settings engine))
            pure this {roundLook = next, roundTake = started >= free, roundFailures = 0}
          else this {roundTake = False, roundFailures = 0} <$ takeSome engine (seconds (min longestWait (roundLook this - now))) free
    -- Short enough to notice soon that the worker should stop.
    longestWait = 1

-- | The number of free hands; waits until there is at least one.
freeHands :: Engine -> STM Int
freeHands engine = do
  busy <- Map.size <$> readTVar (engineHands engine)
  let free = max 1 (workerConcurrency (settings engine)) - busy
  check (free > 0)
  pure free

takeSome :: Engine -> Duration -> Int -> IO ()
takeSome engine limit free =
  takeNext (enginePlace engine) limit free >>= \case
    Taken entries failure -> mapM_ (start engine) entries >> mapM_ throwIO failure
    NothingYet -> pure ()
    NothingBeyond ends -> when (limit > mempty) (awaitNext (enginePlace engine) limit ends)

-- | The pause after this many failures in microseconds: 50 ms, doubled each time, at most 2 s.
setback :: Int -> Int
setback failures = min 2000000 (50000 * 2 ^ min 6 failures)

-- | Waits for this many microseconds, or until the transaction succeeds; returns whether it did.
pauseUnless :: STM () -> Int -> IO Bool
pauseUnless stop time = do
  over <- newTVarIO False
  withAsync (threadDelay time >> atomically (writeTVar over True)) . const . atomically $
    (True <$ stop) `orElse` (readTVar over >>= \isOver -> False <$ check isOver)

-- | Looks through the pending entries of all streams, starts those that should be handled again, at
-- most this many, and buries those that were given out often enough. Returns how many it started.
lookThrough :: Engine -> Int -> IO Int
lookThrough engine hands = do
  cursors <- readIORef (engineCursors engine)
  pages <- nextPages engine (fmap (\stream -> (stream, Map.findWithDefault LowestId stream cursors)) streams)
  foldM begun 0 (NonEmpty.zip streams pages)
  where
    streams = workerStreams (settings engine)
    begun started (stream, found) = if started < hands then (started +) <$> lookAt engine stream found (hands - started) else pure started

-- | A hundred pending entries of each stream at most.
nextPages :: Traversable t => Engine -> t (ByteString, StreamBound) -> IO (t [PendingEntry])
nextPages engine = lookAtPending (enginePlace engine) (shortestWait (settings engine)) 100

-- | Looks through one stream's pending entries, given the first of them, and returns how many it
-- started. Looks at a thousand at most, and continues there the next time.
lookAt :: Engine -> ByteString -> [PendingEntry] -> Int -> IO Int
lookAt engine stream = page (10 :: Int)
  where
    place = enginePlace engine
    page pages found free = do
      -- A thread that lays its entry to rest has it in its hand, though it does not report it any more.
      busy <- readTVarIO (engineHands engine)
      let judged = [(one, verdict (settings engine) (Map.member (stream, pendingEntryId one) busy) one) | one <- found]
          wanted = take free [(one, idle) | (one, TakeOver idle) <- judged]
      forM_ [(one, idle) | (one, Bury idle) <- judged] (buryLeft engine stream)
      (taken, failure) <- takeOver place stream wanted
      forM_ taken $ \entry -> do
        forM_ [pendingEntryConsumer one | (one, _) <- wanted, pendingEntryId one == entryId entry] $ \before ->
          tell engine (if before == resting then TriedAgain stream (entryId entry) else TookOver stream (entryId entry) before)
        start engine entry
      mapM_ throwIO failure
      let left = free - length taken
          next = case reverse found of
            lastOne : _ | length found == 100 -> ExcludingId (pendingEntryId lastOne)
            _ -> LowestId
      case next of
        ExcludingId _
          | left > 0,
            pages > 1 -> do
            Identity more <- nextPages engine (Identity (stream, next))
            (length taken +) <$> page (pages - 1) more left
        _ -> length taken <$ modifyIORef' (engineCursors engine) (Map.insert stream (if left > 0 then next else LowestId))

-- | Makes a dead letter of an entry that no worker has touched for this long; one that the stream
-- has lost is only acknowledged. If this letter alone cannot be made, that is reported, and the
-- worker goes on with other entries.
buryLeft :: Engine -> ByteString -> (PendingEntry, Duration) -> IO ()
buryLeft engine stream (PendingEntry {pendingEntryId, pendingEntryDeliveries, pendingEntryConsumer}, letterIdle) =
  (readEntry place stream pendingEntryId >>= maybe (acknowledge place (entry [])) (buryAs engine . letter . entry)) `catch` \failed ->
    if concernsLetter failed then tell engine (WorkerTrouble failed) else throwIO failed
  where
    place = enginePlace engine
    entry entryFields = Entry {entryStream = stream, entryId = pendingEntryId, entryFields, entryDeliveries = pendingEntryDeliveries}
    letter letterEntry =
      Letter
        { letterEntry,
          letterReason = if pendingEntryConsumer == resting then "it was given out as often as this worker does" else "left by " <> pendingEntryConsumer,
          letterIdle
        }
    concernsLetter = \case
      RefusedError (UnfitArgument _ _) -> True
      UnexpectedReply _ -> True
      failed@(ReplyError _) -> not (isPassing failed || isLasting failed || isGroupLost failed)
      _ -> False

buryAs :: Engine -> Letter -> IO ()
buryAs engine letter@Letter {letterEntry = Entry {entryStream, entryId}} = do
  done <- bury (enginePlace engine) letter
  when done . tell engine $ DeadLettered entryStream entryId (letterReason letter)

-- | Starts the thread of an entry. The thread is counted before it runs the handler.
start :: Engine -> Entry -> IO ()
start engine entry = mask_ $ do
  let key = (entryStream entry, entryId entry)
  known <- Map.member key <$> readTVarIO (engineHands engine)
  unless known $ do
    thread <- asyncWithUnmask $ \unmask -> do
      named "redis handler"
      atomically (readTVar (engineHands engine) >>= check . Map.member key)
      unmask (handleEntry engine key entry) `finally` atomically (modifyTVar' (engineHands engine) (Map.delete key))
    atomically $ do
      modifyTVar' (engineHands engine) (Map.insert key thread)
      modifyTVar' (engineHeld engine) (Map.insert key entry)

-- | Handles an entry and settles it. An entry that is interrupted stays in 'engineHeld', for
-- 'leave'.
handleEntry :: Engine -> Key -> Entry -> IO ()
handleEntry engine key entry =
  (tryUnlessLeaving (handlingRun (engineHandling engine) tryUnlessLeaving entry) `onException` interrupted) >>= \case
    Right Acknowledged -> settle (acknowledge place entry) >> letGo
    Right (SettledBy action) -> settle action >> letGo
    Left failed -> failing failed
  where
    tryUnlessLeaving :: IO a -> IO (Either SomeException a)
    tryUnlessLeaving action =
      try action >>= \case
        Left failed | Just AsyncCancelled <- fromException failed -> do
          -- A handler may throw this itself, for a thread of its own.
          leaving <- readTVarIO (engineLeaving engine)
          if leaving then throwIO AsyncCancelled else pure (Left failed)
        done -> pure done
    -- An interruption while the entry is settled is none of the handler, which has returned.
    interrupted = tell engine (HandlerInterrupted (entryStream entry) (entryId entry))
    failing failed
      | isSpent (settings engine) (entryDeliveries entry) = do
        tell engine (HandlerFailed entry failed Nothing)
        why <- reason failed
        settle (buryAs engine Letter {letterEntry = entry, letterReason = why, letterIdle = mempty})
        letGo
      | otherwise = do
        tell engine (HandlerFailed entry failed (Just (retryDelay (workerBackoff (settings engine)) (entryDeliveries entry))))
        -- From here on the entry is not in hand: a worker that leaves would hand it back, uncounted.
        withMVar (engineSaying engine) (const letGo)
        settle (rest place entry)
    place = enginePlace engine
    letGo = atomically (modifyTVar' (engineHeld engine) (Map.delete key))
    -- After an error that would come again the entry stays pending, and the hand is free.
    settle action = void . try @Error . untilAnswered (tell engine) $ action `catch` unlessLeaving
    -- A handler may have kept the exception that interrupts it to itself, and returned. That comes only once, and
    -- a worker that leaves does not wait for a server that is away.
    unlessLeaving failed = do
      leaving <- readTVarIO (engineLeaving engine)
      if leaving then throwIO AsyncCancelled else throwIO (failed :: Error)

-- | Repeats the action, with longer and longer pauses, until the server has answered. Throws errors
-- that would come again.
untilAnswered :: (WorkerEvent -> IO ()) -> IO a -> IO a
untilAnswered report action = go (0 :: Int)
  where
    go failures =
      try action >>= \case
        Right result -> pure result
        Left failed -> do
          report (WorkerTrouble failed)
          unless (isPassing failed) (throwIO failed)
          threadDelay (setback failures) >> go (failures + 1)

-- | The text of an exception, at most a thousand characters.
reason :: SomeException -> IO ByteString
reason = fmap (fromRight "an exception whose text throws another") . trySupplied . evaluate . Lazy.toStrict . Builder.toLazyByteString . Builder.stringUtf8 . take 1000 . displayException

-- | Waits until the handlers have ended, for at most 'workerGrace'.
letFinish :: Engine -> IO ()
letFinish engine = void (pauseUnless (readTVar (engineHands engine) >>= check . Map.null) (asMicros (workerGrace (settings engine))))

-- | Interrupts the handlers that still run, hands their entries back, and removes the consumer if
-- that leaves it without entries.
leave :: Engine -> IO ()
leave engine = do
  atomically (writeTVar (engineLeaving engine) True)
  running <- readTVarIO (engineHands engine)
  -- A second interruption of this thread must not leave handlers behind.
  uninterruptibleMask_ (mapConcurrently_ cancel (Map.elems running))
  held <- Map.elems <$> readTVarIO (engineHeld engine)
  -- Each by itself: if one cannot be handed back, the others are.
  handed <- mapConcurrently (try @Error . handBack place) held
  when (all isRight handed && isNothing (workerConsumer (settings engine))) $
    forM_ (workerStreams (settings engine)) $ \stream ->
      void (try @Error (sweep place stream Nothing))
  where
    place = enginePlace engine
