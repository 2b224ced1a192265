-- | A worker at work.
--
-- One thread, which has called 'runEngine', takes entries and starts a thread for each. It takes
-- no more than it has free hands for; from time to time, before it takes new ones, it looks for
-- those whose rest is over and those that others left. A second thread says of what is in hand
-- that it is. An entry is settled by the thread that handled it, and its hand is free when it
-- is; so while the server is away a worker takes nothing new.
--
-- No entry is ever only in the worker's memory. What it loses, by whatever end, is pending at the
-- server, and somebody finds it there.
module Redis.Patterns.Worker.Engine
  ( Handling (..),
    Settled (..),
    runEngine,
    newName,
    named,
    untilAnswered,
    reason,
  )
where

import Control.Concurrent (myThreadId, threadDelay)
import Control.Concurrent.Async
import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception
import Control.Monad (forM_, forever, unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy qualified as Lazy
import Data.IORef
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (isNothing)
import GHC.Clock (getMonotonicTime)
import GHC.Conc (labelThread)
import Redis
import Redis.Commands (PendingEntry (..), StreamBound (..), StreamId)
import Redis.Duration (inMicroseconds, inSeconds)
import Redis.Patterns.Worker.Group
import Redis.Patterns.Worker.Pending
import Redis.Patterns.Worker.Settings
import System.Random (randomRIO)

-- | What is done with an entry. What it throws has the entry rest, or makes a dead letter of it.
-- It is given a 'try' that leaves alone what interrupts it when the worker stops.
newtype Handling = Handling {handlingRun :: (forall a. IO a -> IO (Either SomeException a)) -> Entry -> IO Settled}

-- | How an entry that was handled is settled: done again until the server has said that it is.
data Settled
  = -- | It is acknowledged.
    Acknowledged
  | -- | By this.
    SettledBy (IO ())

type Key = (ByteString, StreamId)

data Engine = Engine
  { enginePlace :: Place,
    engineHandling :: Handling,
    -- | The threads of handlers; each is a hand that is not free.
    engineHands :: TVar (Map Key (Async ())),
    -- | What is in hand: it is said to the server that it is.
    engineHeld :: TVar (Map Key Entry),
    -- | Held while that is said. What is no longer to be said is taken out under it, so that it
    -- is not said behind what is said next.
    engineSaying :: MVar (),
    -- | Whether what still runs is being interrupted.
    engineLeaving :: TVar Bool,
    -- | Where to go on looking in each stream.
    engineCursors :: IORef (Map ByteString StreamBound)
  }

settings :: Engine -> Worker
settings = placeSettings . enginePlace

tell :: Engine -> WorkerEvent -> IO ()
tell engine event = void (try @SomeException (workerReport (settings engine) event))

-- | Works until it is to stop, or throws what lasts. When it ends no handler runs any more.
runEngine :: Client -> Worker -> Handling -> IO ()
runEngine client placeSettings engineHandling = do
  placeConsumer <- maybe (("worker-" <>) <$> newName) pure (workerConsumer placeSettings)
  let enginePlace = Place {placeClient = client, placeSettings, placeConsumer}
  engineHands <- newTVarIO Map.empty
  engineHeld <- newTVarIO Map.empty
  engineSaying <- newMVar ()
  engineLeaving <- newTVarIO False
  engineCursors <- newIORef Map.empty
  let engine = Engine {enginePlace, engineHandling, engineHands, engineHeld, engineSaying, engineLeaving, engineCursors}
  keeping engine (loop engine >> letFinish engine) `finally` leave engine

-- | Nobody else has it: 80 random bits.
newName :: IO ByteString
newName = do
  numbers <- mapM (const (randomRIO (0, 35 :: Int))) [1 .. 16 :: Int]
  pure (Char8.pack [if n < 10 then toEnum (48 + n) else toEnum (87 + n) | n <- numbers])

-- | With a thread that says what is in hand, and removes consumers that are gone.
keeping :: Engine -> IO a -> IO a
keeping engine action = withAsync (named "redis in hand" >> forever keep) (const action)
  where
    keep = do
      threadDelay (micros (heartbeatTime (settings engine)))
      withMVar (engineSaying engine) . const $ do
        held <- readTVarIO (engineHeld engine)
        let byStream = Map.fromListWith (<>) [(stream, [one]) | (stream, one) <- Map.keys held]
        forM_ (Map.toList byStream) $ \(stream, ids) ->
          forM_ (NonEmpty.nonEmpty ids) (quietly engine . sayInHand (enginePlace engine) stream)
      forM_ (workerStreams (settings engine)) $ \stream ->
        quietly engine (sweep (enginePlace engine) stream (10 `times` workerAbandoned (settings engine)) "")
    times n duration = mconcat (replicate n duration)

-- | For who looks at a program's threads.
named :: String -> IO ()
named name = myThreadId >>= (`labelThread` name)

-- | Tells of an error and goes on.
quietly :: Engine -> IO () -> IO ()
quietly engine action = try action >>= either (tell engine . WorkerTrouble) pure

-- | What the loop knows from one round to the next.
data Round = Round
  { -- | Whether the group is to be made before anything else.
    roundGroup :: Bool,
    -- | When to look for what is pending.
    roundLook :: Double,
    -- | Whether new entries have their turn before that.
    roundTake :: Bool,
    -- | How often in a row the server could not be asked.
    roundFailures :: Int
  }

-- | Takes entries until it is to stop. A round that fails is told of, and the next one comes after
-- a pause, which becomes longer; a lost group is made again at once. Throws what lasts.
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
                stopped <-
                  if isGroupLost failed && roundFailures this == 0
                    then pure False
                    else pauseUnless stop (setback (roundFailures this))
                unless stopped $
                  go this {roundGroup = roundGroup this || isGroupLost failed, roundFailures = roundFailures this + 1}
    turn this free
      | roundGroup this = this {roundGroup = False} <$ ensureGroup (enginePlace engine)
      | otherwise = do
        now <- getMonotonicTime
        if now >= roundLook this && not (roundTake this)
          then do
            started <- lookThrough engine free
            -- There may be more than it had hands for.
            let next = if started >= free then now else now + inSeconds (workerLook (settings engine))
            pure this {roundLook = next, roundTake = started >= free, roundFailures = 0}
          else this {roundTake = False, roundFailures = 0} <$ takeSome engine (seconds (min longestWait (roundLook this - now))) free
    -- So that it hears that it is to stop.
    longestWait = 1

-- | How many hands are free; waits for one.
freeHands :: Engine -> STM Int
freeHands engine = do
  busy <- Map.size <$> readTVar (engineHands engine)
  let free = max 1 (workerConcurrency (settings engine)) - busy
  check (free > 0)
  pure free

takeSome :: Engine -> Duration -> Int -> IO ()
takeSome engine patience free =
  takeNext (enginePlace engine) patience free >>= \case
    Taken entries -> mapM_ (start engine) entries
    NothingYet -> pure ()
    NothingBeyond ends -> when (patience > mempty) (awaitNext (enginePlace engine) patience ends)

-- | 50 ms, twice as long each time, at most 2 s.
setback :: Int -> Int
setback failures = min 2000000 (50000 * 2 ^ min 6 failures)

-- | Waits for so many microseconds, or until that comes true; whether it did.
pauseUnless :: STM () -> Int -> IO Bool
pauseUnless stop time = do
  over <- newTVarIO False
  withAsync (threadDelay time >> atomically (writeTVar over True)) . const . atomically $
    (True <$ stop) `orElse` (readTVar over >>= \isOver -> False <$ check isOver)

-- | Looks through what is pending, for what is to be done again or for good; so many at most. How
-- many it has started.
lookThrough :: Engine -> Int -> IO Int
lookThrough engine hands = go 0 (NonEmpty.toList (workerStreams (settings engine)))
  where
    go started = \case
      stream : others | started < hands -> do
        more <- lookAt engine stream (hands - started)
        go (started + more) others
      _ -> pure started

-- | How many it has started. Looks at a thousand at most, and goes on there the next time.
lookAt :: Engine -> ByteString -> Int -> IO Int
lookAt engine stream = \hands -> do
  cursor <- Map.findWithDefault LowestId stream <$> readIORef (engineCursors engine)
  page (10 :: Int) cursor hands
  where
    place = enginePlace engine
    page pages cursor free = do
      found <- lookAtPending place stream (shortestWait (settings engine)) cursor 100
      held <- readTVarIO (engineHeld engine)
      let judged = [(one, verdict (settings engine) (Map.member (stream, pendingEntryId one) held) one) | one <- found]
          wanted = take free [(one, idle) | (one, TakeOver idle) <- judged]
      forM_ [one | (one, Bury _) <- judged] (buryLeft engine stream)
      taken <- takeOver place stream wanted
      forM_ taken $ \entry -> do
        forM_ [pendingEntryConsumer one | (one, _) <- wanted, pendingEntryId one == entryId entry] $
          tell engine . TookOver stream (entryId entry)
        start engine entry
      let left = free - length taken
          next = case reverse found of
            lastOne : _ | length found == 100 -> ExcludingId (pendingEntryId lastOne)
            _ -> LowestId
      case next of
        ExcludingId _ | left > 0, pages > 1 -> (length taken +) <$> page (pages - 1) next left
        _ -> length taken <$ modifyIORef' (engineCursors engine) (Map.insert stream (if left > 0 then next else LowestId))

-- | Its last consumer did not come back to it.
buryLeft :: Engine -> ByteString -> PendingEntry -> IO ()
buryLeft engine stream PendingEntry {pendingEntryId, pendingEntryDeliveries, pendingEntryConsumer} =
  buryAs engine $
    Letter
      { letterStream = stream,
        letterId = pendingEntryId,
        letterDeliveries = pendingEntryDeliveries,
        letterReason =
          if pendingEntryConsumer == resting
            then "it was given out as often as this worker does"
            else "left by " <> pendingEntryConsumer
      }

buryAs :: Engine -> Letter -> IO ()
buryAs engine letter = do
  done <- bury (enginePlace engine) letter
  when done . tell engine $ DeadLettered (letterStream letter) (letterId letter) (letterReason letter)

-- | Starts the thread of an entry. It is counted before it runs.
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

-- | Handles an entry and settles it. An interrupted one stays in 'engineHeld', for 'leave'.
handleEntry :: Engine -> Key -> Entry -> IO ()
handleEntry engine key entry =
  tryUnlessLeaving (handlingRun (engineHandling engine) tryUnlessLeaving entry) >>= \case
    Right Acknowledged -> settle (acknowledge place entry) >> letGo
    Right (SettledBy action) -> settle action >> letGo
    Left failed -> failing failed
  where
    tryUnlessLeaving :: IO a -> IO (Either SomeException a)
    tryUnlessLeaving action =
      try action >>= \case
        Left failed | Just AsyncCancelled <- fromException failed -> do
          -- A handler may throw this itself, of a thread of its own.
          leaving <- readTVarIO (engineLeaving engine)
          if leaving then throwIO AsyncCancelled else pure (Left failed)
        done -> pure done
    failing failed
      | isSpent (settings engine) (entryDeliveries entry) = settle (buryAs engine (letter failed)) >> letGo
      | otherwise = do
        -- From here on it is not in hand: to say so would end its rest.
        withMVar (engineSaying engine) (const letGo)
        tell engine (HandlerFailed entry failed (retryDelay (workerBackoff (settings engine)) (entryDeliveries entry)))
        settle (rest place entry)
    place = enginePlace engine
    letGo = atomically (modifyTVar' (engineHeld engine) (Map.delete key))
    letter failed =
      Letter
        { letterStream = entryStream entry,
          letterId = entryId entry,
          letterDeliveries = entryDeliveries entry,
          letterReason = reason failed
        }
    -- What lasts would be the same again; then the entry stays pending.
    settle = void . try @Error . untilAnswered (tell engine)

-- | Again and again, with longer and longer pauses, until the server has answered. Throws what
-- lasts, and that the group is gone.
untilAnswered :: (WorkerEvent -> IO ()) -> IO a -> IO a
untilAnswered report action = go (0 :: Int)
  where
    go failures =
      try action >>= \case
        Right result -> pure result
        Left failed -> do
          report (WorkerTrouble failed)
          if isLasting failed || isGroupLost failed
            then throwIO failed
            else threadDelay (setback failures) >> go (failures + 1)

-- | At most some thousand bytes of what an exception says.
reason :: SomeException -> ByteString
reason = Lazy.toStrict . Builder.toLazyByteString . Builder.stringUtf8 . take 1000 . displayException

-- | Waits until the handlers are done, for the time that they are given.
letFinish :: Engine -> IO ()
letFinish engine = void (pauseUnless (readTVar (engineHands engine) >>= check . Map.null) (micros (workerGrace (settings engine))))

-- | Interrupts what still runs, hands it back, and removes the consumer if that leaves it nothing.
leave :: Engine -> IO ()
leave engine = do
  atomically (writeTVar (engineLeaving engine) True)
  running <- readTVarIO (engineHands engine)
  mapConcurrently_ cancel (Map.elems running)
  held <- Map.elems <$> readTVarIO (engineHeld engine)
  forM_ held $ \entry -> tell engine (HandlerInterrupted (entryStream entry) (entryId entry))
  handed <- try (mapConcurrently_ (handBack place) held) :: IO (Either Error ())
  when (isRight' handed && isNothing (workerConsumer (settings engine))) $
    forM_ (workerStreams (settings engine)) $ \stream ->
      void (try @Error (sweep place stream (seconds 1e9) (placeConsumer place)))
  where
    place = enginePlace engine
    isRight' = either (const False) (const True)

micros :: Duration -> Int
micros = fromIntegral . max 0 . min 1000000000000 . inMicroseconds
