-- | Recovers commands after a fault, as one pure machine.
--
-- A command that failed and is to be sent again is a /retry/. A retry rests until its backoff
-- is over, is on its way to a node, waits for news of the cluster because no node is known to
-- serve it, or is in flight once more. 'step' moves it; "Redis.Internal.Client.RetryEngine"
-- carries out the actions.
--
-- > stage        event                     next stage, or end
-- > ─────────────────────────────────────────────────────────────────────────
-- > (new)        Enter, send now           Leaving          Send
-- > (new)        Enter, send later         Resting
-- > (new)        EnterUnplaced             Leaving          Send
-- > (new)        the same, others of its slot seeking   Seeking
-- > Resting      Tick, when it is due      Leaving          Send
-- > Leaving      Unplaced                  Seeking
-- > Seeking      News                      Leaving          Send
-- > Leaving      Failed                    as 'decide' says: Resting, Leaving or the end
-- > Leaving      Answered                  the end
-- > Resting      Tick, time over           the end          Finish
-- > Seeking      Tick, searched for long enough   as Failed
-- > Leaving      Tick, time over           the end          Expire
-- > Resting, Seeking     Stop              the end          Finish
-- > Leaving, stopped     Unplaced          as Failed
-- > (new), stopped       Enter, EnterUnplaced      the end   Finish
--
-- An event about a retry that has ended changes nothing: the event came too late.
--
-- Commands for one slot keep their order: in the queue, a later one waits behind those that seek a node. The driver looks
-- all commands of a step up in one snapshot of the map: another thread may learn of a node between two look-ups.
module Redis.Internal.Routing.RetryQueue
  ( RetryQueue,
    newRetryQueue,
    retryQueueIsOver,
    retryQueueSeeking,
    retryQueueWake,
    RetryId,
    RetryState (..),
    Event (..),
    Action (..),
    step,
  )
where

import Data.Bifunctor (first)
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.List qualified as List
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Error
import Redis.Internal.Command (Facts)
import Redis.Internal.Network.Runtime (Deadline (deadlineAt), Nanos, deadlineAfter, nanosFromSeconds, never, secondsLeft, timedOut)
import Redis.Internal.Protocol.Slot (Slot, slotNumber)
import Redis.Internal.Routing.RetryPolicy
import Redis.Internal.Routing.Target

-- | All retries. The parameter is the driver's payload for each.
data RetryQueue a = RetryQueue
  { retryQueueStates :: IntMap (QueuedRetry a),
    retryQueueNext :: RetryId,
    -- | When each retry must be looked at, if at any time.
    retryQueueWakes :: Set (Nanos, RetryId),
    -- | The retries that wait for news.
    retryQueueSeekers :: Set RetryId,
    -- | How many retries wait for news, for each slot.
    retryQueueSlots :: IntMap Int,
    retryQueueStopped :: Bool
  }

type RetryId = Int

data RetryState a = RetryState
  { retryPayload :: a,
    retryFacts :: Facts,
    -- | The bounds for this command. Commands for one slot that wait for news stay in their order.
    retryPolicy :: RetryPolicy,
    retrySoFar :: AttemptsSoFar,
    retryDeadline :: Deadline,
    -- | For how long an attempt waits for news, at most, in nanoseconds: less than until the deadline for
    -- a command that waits on the server.
    retrySearch :: Nanos
  }

data QueuedRetry a = QueuedRetry
  { queuedRetry :: RetryState a,
    queuedStage :: RetryStage
  }

data RetryStage
  = Resting Nanos Target
  | Leaving Target Search
  | -- | Until this time. Has the failure that counts if there is no news by then.
    Seeking Nanos Target FailedAttempt

-- | Whether the command has sought a node before.
data Search
  = FirstSearch
  | -- | Until when it may seek one, and the failure that counts if the time is over before one is found.
    SearchAgain Nanos FailedAttempt

data Event a
  = -- | A command failed, with this decision.
    Enter (RetryState a) NextStep
  | -- | No node is known for a command that has not been sent yet. The failure counts if that
    -- does not change.
    EnterUnplaced (RetryState a) FailedAttempt
  | -- | An attempt failed.
    Failed RetryId FailedAttempt
  | -- | An attempt was answered.
    Answered RetryId
  | -- | No node was found for the command. The failure counts if none is found later.
    Unplaced RetryId FailedAttempt
  | -- | There is another map, or another reason why there is none.
    News
  | -- | Time has passed.
    Tick
  | -- | The client is closed.
    Stop

data Action a
  = Send RetryId a Target
  | -- | End the command with this error.
    Finish a Error
  | -- | End a command whose time is over while it is on its way: with the first error if it
    -- has not been submitted, and then it must not be; with the second if it has been.
    Expire a Error Error
  | Perform a Effect

newRetryQueue :: RetryQueue a
newRetryQueue = RetryQueue IntMap.empty 0 Set.empty Set.empty IntMap.empty False

-- | Whether the machine was stopped and no retry is left. \(O(1)\).
retryQueueIsOver :: RetryQueue a -> Bool
retryQueueIsOver queue = retryQueueStopped queue && IntMap.null (retryQueueStates queue)

-- | Whether any retry waits for news. \(O(1)\).
retryQueueSeeking :: RetryQueue a -> Bool
retryQueueSeeking = not . Set.null . retryQueueSeekers

-- | When a 'Tick' is due. \(O(\log n)\).
retryQueueWake :: RetryQueue a -> Maybe Nanos
retryQueueWake = fmap fst . Set.lookupMin . retryQueueWakes

-- | The retries and the actions after an event at this time. \(O(\log n)\) for an event about
-- one retry.
step :: Nanos -> Event a -> RetryQueue a -> (RetryQueue a, [Action a])
step now event queue = case event of
  Enter fresh _ | retryQueueStopped queue -> (queue, [tooLate fresh])
  EnterUnplaced fresh _ | retryQueueStopped queue -> (queue, [tooLate fresh])
  Enter fresh next ->
    let (number, entered) = admit queue in proceed now number fresh next entered
  EnterUnplaced fresh failure ->
    let (number, entered) = admit queue
     in if behindSeekers fresh
          then (place number (seeking fresh (policyTarget (retryPolicy fresh)) failure) entered, [])
          else leave FirstSearch number fresh (policyTarget (retryPolicy fresh)) entered
  Failed number failure -> withRetry number $ \queued -> judge now number (queuedRetry queued) failure queue
  Answered number -> (forget number queue, [])
  Unplaced number failure -> withRetry number $ \queued -> case queuedStage queued of
    Leaving target search
      | not (retryQueueStopped queue) ->
        (place number (seekingUntil (endOf (queuedRetry queued) search) (queuedRetry queued) target failure) queue, [])
    _ -> judge now number (queuedRetry queued) failure queue
  News -> foldRetries (Set.toAscList (retryQueueSeekers queue)) $ \number queued current -> case queuedStage queued of
    Seeking end target failure -> leave (SearchAgain end failure) number (queuedRetry queued) target current
    _ -> (current, [])
  Tick -> foldRetries (map snd (Set.toAscList (dueBy now))) (due now)
  Stop -> first (\current -> current {retryQueueStopped = True}) (foldRetries (IntMap.keys (retryQueueStates queue)) stopped)
  where
    seeking fresh = seekingUntil (searchEnd fresh) fresh
    seekingUntil end fresh target failure = QueuedRetry {queuedRetry = fresh, queuedStage = Seeking end target failure}
    endOf fresh = \case
      FirstSearch -> searchEnd fresh
      SearchAgain end _ -> end
    searchEnd fresh = min (deadlineAt (retryDeadline fresh)) (deadlineAt (deadlineAfter (retrySearch fresh) now))

    behindSeekers fresh = maybe False ((`IntMap.member` retryQueueSlots queue) . slotNumber) (retrySlot fresh)

    withRetry number act = maybe (queue, []) act (IntMap.lookup number (retryQueueStates queue))

    foldRetries numbers act = concat <$> List.mapAccumL one queue numbers
      where
        one current number = maybe (current, []) (\queued -> act number queued current) (IntMap.lookup number (retryQueueStates current))

    dueBy time = Set.takeWhileAntitone ((<= time) . fst) (retryQueueWakes queue)

-- | Handles a retry whose time to be looked at has come.
due :: Nanos -> RetryId -> QueuedRetry a -> RetryQueue a -> (RetryQueue a, [Action a])
due now number QueuedRetry {queuedRetry, queuedStage} queue = case queuedStage of
  Seeking end _ failure | end <= now -> judge now number queuedRetry failure queue
  Leaving _ search | overdue -> (forget number queue, [Expire payload (unsent search) (late MaybeExecuted)])
  Resting at target
    | overdue -> (forget number queue, [Finish payload (late NotSent)])
    | at <= now -> leave FirstSearch number queuedRetry target queue
  _ -> (queue, [])
  where
    payload = retryPayload queuedRetry
    overdue = deadlineAt (retryDeadline queuedRetry) <= now
    unsent = \case
      FirstSearch -> late NotSent
      SearchAgain _ failure -> ends (failedError failure)
    late delivery = ends (overAt delivery (soFarTrail (retrySoFar queuedRetry)))
    ends = concluding (retryFacts queuedRetry) (retrySoFar queuedRetry)
    -- A command that was not sent ends with the errors of the nodes that it was waiting for.
    overAt NotSent trail@(_ : _) = RoutingError (RoutingFailure "" NotSent (AttemptsExhausted trail))
    overAt delivery _ = timedOut delivery (retryDeadline queuedRetry)

-- | Handles the closing of the client: a command on its way may still be answered.
stopped :: RetryId -> QueuedRetry a -> RetryQueue a -> (RetryQueue a, [Action a])
stopped number QueuedRetry {queuedRetry, queuedStage} queue = case queuedStage of
  Leaving _ _ -> (queue, [])
  _ -> (forget number queue, [tooLate queuedRetry])

-- | Ends a retry because the client was closed before the command could be sent.
tooLate :: RetryState a -> Action a
tooLate current = Finish (retryPayload current) (concluding (retryFacts current) (retrySoFar current) ClientClosed)

judge :: Nanos -> RetryId -> RetryState a -> FailedAttempt -> RetryQueue a -> (RetryQueue a, [Action a])
judge now number before failure queue =
  (fmap (effects <>) . proceed now number after (decisionNext decision)) queue
  where
    decision =
      decide
        (if retryQueueStopped queue then (retryPolicy before) {policyMaxAttempts = 0} else retryPolicy before)
        (retryFacts before)
        (retrySoFar before)
        failure {failedRemaining = secondsLeft now (retryDeadline before)}
    after = before {retrySoFar = decisionSoFar decision}
    effects = map (Perform (retryPayload before)) (decisionEffects decision)

proceed :: Nanos -> RetryId -> RetryState a -> NextStep -> RetryQueue a -> (RetryQueue a, [Action a])
proceed now number current next queue = case next of
  GiveUp failure -> (forget number queue, [Finish (retryPayload current) failure])
  RetryNow target -> leave FirstSearch number current target queue
  RetryAfter delay target ->
    (place number QueuedRetry {queuedRetry = current, queuedStage = Resting (now + nanosFromSeconds delay) target} queue, [])

leave :: Search -> RetryId -> RetryState a -> Target -> RetryQueue a -> (RetryQueue a, [Action a])
leave search number current target queue =
  ( place number QueuedRetry {queuedRetry = current, queuedStage = Leaving target search} queue,
    [Send number (retryPayload current) target]
  )

admit :: RetryQueue a -> (RetryId, RetryQueue a)
admit queue = (retryQueueNext queue, queue {retryQueueNext = retryQueueNext queue + 1})

-- | Puts a retry into a stage, and updates the indices.
place :: RetryId -> QueuedRetry a -> RetryQueue a -> RetryQueue a
place number queued queue =
  cleared
    { retryQueueStates = IntMap.insert number queued (retryQueueStates cleared),
      retryQueueWakes = maybe id (\at -> Set.insert (at, number)) (wakeOf queued) (retryQueueWakes cleared),
      retryQueueSeekers = case queuedStage queued of
        Seeking {} -> Set.insert number (retryQueueSeekers cleared)
        _ -> retryQueueSeekers cleared,
      retryQueueSlots = maybe id (\slot -> IntMap.insertWith (+) slot 1) (soughtSlot queued) (retryQueueSlots cleared)
    }
  where
    cleared = forget number queue

forget :: RetryId -> RetryQueue a -> RetryQueue a
forget number queue = case IntMap.lookup number (retryQueueStates queue) of
  Nothing -> queue
  Just queued ->
    queue
      { retryQueueStates = IntMap.delete number (retryQueueStates queue),
        retryQueueWakes = maybe id (\at -> Set.delete (at, number)) (wakeOf queued) (retryQueueWakes queue),
        retryQueueSeekers = Set.delete number (retryQueueSeekers queue),
        retryQueueSlots = maybe id (IntMap.update (\count -> if count > 1 then Just (count - 1) else Nothing)) (soughtSlot queued) (retryQueueSlots queue)
      }

-- | The slot of a retry whose later commands must not overtake it.
soughtSlot :: QueuedRetry a -> Maybe Int
soughtSlot QueuedRetry {queuedRetry, queuedStage} = case queuedStage of
  Seeking {} -> slotNumber <$> retrySlot queuedRetry
  _ -> Nothing

retrySlot :: RetryState a -> Maybe Slot
retrySlot = slotOf . policyTarget . retryPolicy

wakeOf :: QueuedRetry a -> Maybe Nanos
wakeOf QueuedRetry {queuedRetry, queuedStage} = case queuedStage of
  Resting at _ -> Just (min at over)
  Seeking end _ _ -> unlessNever end
  Leaving _ _ -> unlessNever over
  where
    over = deadlineAt (retryDeadline queuedRetry)
    unlessNever at = if at == never then Nothing else Just at
