-- | What is had for a time, and is renewed while somebody uses it.
--
-- A server gives a thing for a time, the lease. It is asked until it gives it, or the patience is
-- over. Then a thread renews it each third of the lease, until its user is done, or until it
-- is lost. What the user can ask is always on the safe side: the lease counts from before its
-- request was sent, and a hundredth of it is taken off for clocks that do not run alike. So
-- 'stillHeld' says no before the server gives the thing to anybody else, whatever became of requests
-- and replies.
--
-- A thing that was lost once stays lost, also when the server could be asked again.
--
-- Asking, renewing and giving back may each be done twice: they name who asks by a word that
-- nobody else has. So a reply that is lost is asked for again, and nothing is guessed.
module Redis.Patterns.Internal.Leased
  ( -- * Having it
    Held,
    stillHeld,
    heldFor,
    awaitLost,

    -- * Getting it
    Leased (..),
    Answer (..),
    withLeased,
  )
where

import Control.Concurrent.Async (asyncWithUnmask)
import Control.Concurrent.STM
import Control.Exception (mask, onException, throwIO)
import Control.Monad (unless, void)
import Redis
import Redis.Duration
import Redis.Patterns.Internal.Time

-- | Something that is held.
--
-- @since 0.1.0.0
data Held = Held
  { heldUntil :: TVar Instant,
    heldLost :: TVar Bool
  }

-- | Whether it is certainly still held, at this moment. No: it may be lost, or its time
-- is over, or its user is done. Asks no server.
--
-- An answer is old as soon as it is given. What must not happen twice needs a resource
-- that looks at a fencing token.
--
-- @since 0.1.0.0
stillHeld :: Held -> IO Bool
stillHeld held = (> mempty) <$> heldFor held

-- | For how long it is certainly held from now on, if no renewal comes through any more.
-- 'mempty' if it may be lost. Asks no server.
--
-- @since 0.1.0.0
heldFor :: Held -> IO Duration
heldFor Held {heldUntil, heldLost} = do
  (deadline, lost) <- atomically ((,) <$> readTVar heldUntil <*> readTVar heldLost)
  now <- instantNow
  pure (if lost then mempty else max mempty (now `until'` deadline))

-- | Waits until it may be lost, or its user is done. To be combined with other
-- transactions:
--
-- > atomically ((Left <$> awaitLost held) `orElse` (Right <$> takeTMVar next))
--
-- @since 0.1.0.0
awaitLost :: Held -> STM ()
awaitLost Held {heldLost} = readTVar heldLost >>= check

-- | How something is had. Each of the commands may run twice.
data Leased a = Leased
  { -- | For how long the server gives it each time.
    leasedFor :: Duration,
    -- | How long to wait while others have it; 'Nothing': for ever.
    leasedPatience :: Maybe Duration,
    leasedTake :: Command (Answer a),
    -- | 'False' if the server does not know it any more.
    leasedRenew :: Command Bool,
    leasedGiveBack :: Command ()
  }

-- | What the server says.
data Answer a
  = Given a
  | -- | Others have it, for at most so long as it seems; negative: nobody knows.
    Taken Duration

-- | How asking ends.
data Outcome a
  = -- | It was given, by a request that was not sent before this moment.
    Attained Instant a
  | -- | Others had it all the time.
    Refused
  | -- | It was given, so late that it may be over, and is to be given back.
    TooLate
  | -- | The last that is known is an error.
    Failed Error

-- | Runs the action on what is given; 'Nothing' if it is not. Gives it back afterwards, also
-- after an exception, and also what was perhaps given when it is not known. Giving it back after
-- the action is waited for, at most as long as the lease would last; if it fails, the end of
-- the lease does the same, and nobody is told.
withLeased :: Client -> Leased a -> (Held -> a -> IO b) -> IO (Maybe b)
withLeased client leased action = mask $ \restore -> do
  let giveBack = repeatable (leasedGiveBack leased)
      withdraw = void (submit client giveBack)
  restore (asking client leased) `onException` withdraw >>= \case
    Refused -> pure Nothing
    TooLate -> Nothing <$ withdraw
    Failed failure -> withdraw >> throwIO failure
    Attained sent given -> do
      held <- Held <$> newTVarIO (sent `after` surely (leasedFor leased)) <*> newTVarIO False
      done <- newTVarIO False
      let end = do
            left <- heldFor held
            atomically (writeTVar done True >> writeTVar (heldLost held) True)
            -- What may be lost may as well be there still. Nobody waits for that.
            if left > mempty then void (tryRun client (timeLimit left giveBack)) else withdraw
      -- Nobody throws to it. It ends when the action does.
      _ <- asyncWithUnmask (\unmask -> named "redis lease" >> unmask (renewing client leased held (readTVar done >>= check) sent))
      result <- restore (action held given) `onException` end
      Just result <$ end

-- | For how long a lease is certain, of a time that a server was asked for.
surely :: Duration -> Duration
surely given = microseconds (inMicroseconds given - inMicroseconds given `quot` 100)

-- | Each attempt gets the time of a lease at most: what is given later would be over; and of
-- the patience, but a second at least. An error that leaves the matter open is asked about again;
-- one that the server will repeat ends it.
asking :: Client -> Leased a -> IO (Outcome a)
asking client Leased {leasedTake, leasedFor, leasedPatience} = do
  began <- instantNow
  go ((began `after`) <$> leasedPatience) (milliseconds 5)
  where
    go end pause = do
      sent <- instantNow
      let limit = maybe id (min . max (seconds 1) . until' sent) end (min leasedFor (seconds 5))
      answered <- tryRun client (timeLimit limit (repeatable leasedTake))
      now <- instantNow
      let left = maybe (days 1) (now `until'`) end
          again outcome wait
            | left <= mempty = pure outcome
            | otherwise = do
              jittered (min left wait) >>= pauseFor
              go end (min (milliseconds 50) (pause <> pause))
      case answered of
        Right (Given given)
          | now < sent `after` surely leasedFor -> pure (Attained sent given)
          -- So slow that the lease may be over: asked again, it is renewed.
          | otherwise -> again TooLate mempty
        Right (Taken others)
          | others < mempty -> again Refused pause
          | otherwise -> again Refused (min pause (max (milliseconds 1) others))
        Left failure
          | isFinal failure -> pure (Failed failure)
          | otherwise -> again (Failed failure) pause

-- | Whether asking again will bring the same error.
isFinal :: Error -> Bool
isFinal = \case
  ReplyError _ -> True
  UnexpectedReply _ -> True
  RefusedError _ -> True
  ClientClosed -> True
  SubscriberTooSlow _ -> True
  ConnectionError _ -> False
  TimeoutError _ -> False
  RoutingError _ -> False

-- A renewal whose reply was lost may have been done or not. Its deadline counts only
-- when it is answered, so either is right, and it is sent again until the time is over.
renewing :: Client -> Leased a -> Held -> STM () -> Instant -> IO ()
renewing client Leased {leasedFor, leasedRenew} Held {heldUntil, heldLost} done = sleeping third
  where
    third = part 3
    part count = microseconds (inMicroseconds leasedFor `quot` count)
    finish = atomically (writeTVar heldLost True)
    sleeping pause since = do
      now <- instantNow
      deadline <- readTVarIO heldUntil
      ended <- waitFor (now `until'` min deadline (since `after` pause)) done
      maybe renew pure ended
    renew = do
      sent <- instantNow
      left <- until' sent <$> readTVarIO heldUntil
      if left <= mempty
        then finish
        else do
          renewed <- tryRun client (timeLimit left (repeatable leasedRenew))
          answered <- instantNow
          deadline <- readTVarIO heldUntil
          ended <- atomically ((True <$ done) `orElse` pure False)
          unless ended $ case renewed of
            -- An answer that comes after its time does not make up for the time between.
            _ | answered >= deadline -> finish
            Right True -> do
              atomically (writeTVar heldUntil (sent `after` surely leasedFor))
              sleeping third sent
            Right False -> finish
            Left _ -> sleeping (part 10) answered
