-- | Things that a server gives for a time, and that are renewed while they are in use.
--
-- 'withLeased' asks until the server gives the thing for a time, the lease, or the time limit is over.
-- Then a thread renews the lease at each third of it, until the action ends, or until the lease is lost.
-- The answers to the user are on the safe side: the lease counts from before the request was sent, and a
-- hundredth of it is subtracted in case the two clocks do not run alike. So 'isHeld' returns 'False'
-- before the server gives the thing to another caller. A lease that was lost once stays lost.
--
-- The commands that take, renew and give back may each run twice: they identify the caller by a
-- token that no other caller has. So after a lost reply the request is sent again.
module Redis.Patterns.Internal.Leased
  ( -- * Having it
    Lease,
    isHeld,
    leaseRemaining,
    awaitLeaseLost,

    -- * Getting it
    Leased (..),
    Answer (..),
    withLeased,
  )
where

import Control.Concurrent.Async (asyncWithUnmask)
import Control.Concurrent.STM
import Control.Exception (mask, onException, throwIO)
import Control.Monad (unless, void, when)
import Data.Maybe (fromMaybe, isJust)
import Redis
import Redis.Duration
import Redis.Patterns.Internal.Time

-- | A lock or permit that is held for a time.
data Lease = Lease
  { heldUntil :: TVar Instant,
    heldLost :: TVar Bool
  }

-- | Whether it is certainly still held at this moment. 'False': it may be lost, or its lease is
-- over, or the action that held it has ended. Does not ask the server.
--
-- The answer is out of date as soon as it is returned. Work that must not happen twice needs a
-- resource that compares fencing tokens.
isHeld :: Lease -> IO Bool
isHeld held = (> mempty) <$> leaseRemaining held

-- | How long it is certainly held from now on, even if no further renewal succeeds. 'mempty' if it
-- may be lost. Does not ask the server.
leaseRemaining :: Lease -> IO Duration
leaseRemaining Lease {heldUntil, heldLost} = do
  (deadline, lost) <- atomically ((,) <$> readTVar heldUntil <*> readTVar heldLost)
  now <- instantNow
  pure (if lost then mempty else max mempty (now `until'` deadline))

-- | Waits until it may be lost, or the action that held it has ended. Can be combined with other
-- transactions:
--
-- > atomically ((Left <$> awaitLeaseLost held) `orElse` (Right <$> takeTMVar next))
awaitLeaseLost :: Lease -> STM ()
awaitLeaseLost Lease {heldLost} = readTVar heldLost >>= check

-- | How to take, renew and give back a thing. Each of the commands may run twice.
data Leased a = Leased
  { -- | How long the server gives it each time.
    leasedFor :: Duration,
    -- | How long to wait while others hold it; 'Nothing': for ever.
    leasedTimeout :: Maybe Duration,
    leasedTake :: Command (Answer a),
    -- | 'False' if the server no longer knows this holder.
    leasedRenew :: Command Bool,
    leasedGiveBack :: Command ()
  }

-- | The server's answer to a request for the thing.
data Answer a
  = Given a
  | -- | Others hold it, for at most this long as far as the server knows; negative: the server does
    -- not know for how long.
    Taken Duration

-- | The result of 'asking'.
data Outcome a
  = -- | The server gave it. The request was sent at this moment, or later.
    Attained Instant a
  | -- | Others held it in the last attempt. 'True': an earlier request may still take it, since its
    -- answer is unknown.
    Refused Bool
  | -- | The server gave it, but so late that the lease may be over. It must be given back.
    TooLate
  | -- | The last attempt failed: its error, or that of the last attempt that may have run.
    Failed Error

-- | Takes the thing, runs the action, and gives it back; 'Nothing' if the server did not give it.
-- It is given back after an exception, too, and also when it is unknown whether the server gave it.
-- After the action this waits until it is given back, at most for the rest of the lease. If giving
-- back fails, the end of the lease has the same effect, and no error is reported.
withLeased :: Client -> Leased a -> (Lease -> a -> IO b) -> IO (Maybe b)
withLeased client leased action = mask $ \restore -> do
  let giveBack = idempotent (leasedGiveBack leased)
      withdraw = void (submit client giveBack)
  restore (asking client leased) `onException` withdraw >>= \case
    Refused unanswered -> Nothing <$ when unanswered withdraw
    TooLate -> Nothing <$ withdraw
    Failed failure -> withdraw >> throwIO failure
    Attained sent given -> do
      held <- Lease <$> newTVarIO (sent `after` surely (leasedFor leased)) <*> newTVarIO False
      done <- newTVarIO False
      let end = do
            left <- leaseRemaining held
            atomically (writeTVar done True >> writeTVar (heldLost held) True)
            -- A lease that may be lost may also still exist on the server. Giving that back is not
            -- waited for.
            if left > mempty then void (tryRun client (timeLimit left giveBack)) else withdraw
      -- No exception is thrown to this thread. It ends when the action does.
      _ <- asyncWithUnmask (\unmask -> named "redis lease" >> unmask (renewing client leased held (readTVar done >>= check) sent))
      result <- restore (action held given) `onException` end
      Just result <$ end

-- | The part of a requested lease that is certain.
surely :: Duration -> Duration
surely given = microseconds (inMicroseconds given - inMicroseconds given `quot` 100)

-- | Asks until the server gives the thing, or the time limit is over. An attempt is given the
-- shortest of the lease (a later answer would be of no use), 5 s, and the rest of the time limit, or
-- 1 s if less than that is left. After an error that leaves the result open it asks again; an error
-- that the server would repeat ends it.
asking :: Client -> Leased a -> IO (Outcome a)
asking client Leased {leasedTake, leasedFor, leasedTimeout} = do
  began <- instantNow
  go ((began `after`) <$> leasedTimeout) (milliseconds 5) Nothing
  where
    go end pause before = do
      sent <- instantNow
      let limit = maybe id (min . max (seconds 1) . until' sent) end (min leasedFor (seconds 5))
      answered <- tryRun client (timeLimit limit (idempotent leasedTake))
      now <- instantNow
      let left = maybe (days 1) (now `until'`) end
          doubt = case answered of
            Left failure | errorDelivery failure == MaybeExecuted -> Just failure
            _ -> before
          refused = Refused (isJust doubt)
          -- An earlier attempt may have taken it, whatever became of this one.
          failed = Failed . (`fromMaybe` doubt)
          again outcome wait
            | left <= mempty = pure outcome
            | otherwise = do
              jittered (min left wait) >>= pauseFor
              go end (min (milliseconds 50) (pause <> pause)) doubt
      case answered of
        Right (Given given)
          | now < sent `after` surely leasedFor -> pure (Attained sent given)
          -- The answer was so slow that the lease may be over. Asking again renews it.
          | otherwise -> again TooLate mempty
        Right (Taken others)
          | others < mempty -> again refused pause
          | otherwise -> again refused (min pause (max (milliseconds 1) others))
        Left failure
          | isFinal failure -> pure (failed failure)
          | otherwise -> again (failed failure) pause

-- | Whether another attempt would fail with the same error.
isFinal :: Error -> Bool
isFinal = \case
  ConnectionError _ -> False
  TimeoutError _ -> False
  RoutingError _ -> False
  _ -> True

-- A renewal whose reply was lost may have run or not. Either is right: the deadline moves only when
-- a reply arrives, and the renewal is sent again until the lease is over.
renewing :: Client -> Leased a -> Lease -> STM () -> Instant -> IO ()
renewing client Leased {leasedFor, leasedRenew} Lease {heldUntil, heldLost} done = sleeping third
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
          renewed <- tryRun client (timeLimit left (idempotent leasedRenew))
          answered <- instantNow
          deadline <- readTVarIO heldUntil
          ended <- atomically ((True <$ done) `orElse` pure False)
          unless ended $ case renewed of
            -- A reply after the deadline cannot make up for the time in between.
            _ | answered >= deadline -> finish
            Right True -> do
              atomically (writeTVar heldUntil (sent `after` surely leasedFor))
              sleeping third sent
            Right False -> finish
            Left _ -> sleeping (part 10) answered
