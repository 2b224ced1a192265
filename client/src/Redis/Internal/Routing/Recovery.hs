-- | Recovers commands after a fault, as one pure machine.
--
-- A command that failed and is to be sent again is a /case/. A case rests until its backoff
-- is over, is on its way to a node, waits for news of the cluster because no node is known to
-- serve it, or is in flight once more. 'step' moves it; "Redis.Internal.Client.Recoverer"
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
-- > Seeking      News                      Leaving, last search   Send
-- > Leaving, last search   Unplaced          as Failed
-- > Leaving      Failed                    as 'decide' says: Resting, Leaving or the end
-- > Leaving      Answered                  the end
-- > Resting      Tick, time over           the end          Finish
-- > Seeking      Tick, time over           as Failed
-- > Leaving      Tick, time over           the end          Expire
-- > Resting, Seeking     Stop              the end          Finish
-- > Leaving, stopped     Unplaced          as Failed
-- > (new), stopped       Enter, EnterUnplaced      the end   Finish
--
-- An event about a case that has ended changes nothing: the event came too late.
module Redis.Internal.Routing.Recovery
  ( Recovery,
    newRecovery,
    recoveryIsOver,
    recoverySeeking,
    recoveryWake,

    -- * Events
    CaseId,
    Case (..),
    Event (..),

    -- * Steps
    Action (..),
    step,
  )
where

import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
import Data.List qualified as List
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Error
import Redis.Internal.Command (Facts)
import Redis.Internal.Network.Clock (Deadline (deadlineAt), Nanos, nanosFromSeconds, never, secondsLeft, timedOut)
import Redis.Internal.Protocol.Slot (Slot, slotNumber)
import Redis.Internal.Routing.RetryPolicy

-- | All cases. The parameter is the driver's payload for each.
data Recovery a = Recovery
  { recoveryCases :: IntMap (Tracked a),
    recoveryNext :: CaseId,
    -- | When each case must be looked at, if at any time.
    recoveryWakes :: Set (Nanos, CaseId),
    -- | The cases that wait for news.
    recoverySeekers :: Set CaseId,
    -- | How many cases wait for news, for each slot.
    recoverySlots :: IntMap Int,
    recoveryStopped :: Bool
  }

-- | The number of a case.
type CaseId = Int

-- | A command that is being recovered.
data Case a = Case
  { casePayload :: a,
    caseFacts :: Facts,
    -- | The slot that decides where the command goes. Commands for one slot that wait for
    -- news stay in their order.
    caseSlot :: Maybe Slot,
    -- | The bounds for this command.
    casePolicy :: RetryPolicy,
    caseSoFar :: AttemptsSoFar,
    caseDeadline :: Deadline
  }

data Tracked a = Tracked
  { trackedCase :: Case a,
    trackedStage :: CaseStage
  }

data CaseStage
  = Resting Nanos AttemptTarget
  | Leaving AttemptTarget Search
  | -- | Has the failure that counts if there is no news in time.
    Seeking AttemptTarget FailedAttempt

-- | Whether this is the last time that a node is looked for.
data Search = FirstSearch | LastSearch

-- | An event for the machine.
data Event a
  = -- | A command failed, with this decision.
    Enter (Case a) NextStep
  | -- | No node is known for a command that has not been sent yet. The failure counts if that
    -- does not change.
    EnterUnplaced (Case a) FailedAttempt
  | -- | An attempt failed.
    Failed CaseId FailedAttempt
  | -- | An attempt was answered.
    Answered CaseId
  | -- | No node was found for the command. The failure counts if none is found later.
    Unplaced CaseId FailedAttempt
  | -- | There is another map, or another reason why there is none.
    News
  | -- | Time has passed.
    Tick
  | -- | The client is closed.
    Stop

-- | An action for the driver.
data Action a
  = Send CaseId a AttemptTarget
  | -- | End the command with this error.
    Finish a Error
  | -- | End a command whose time is over while it is on its way: with the first error if it
    -- has not been submitted, and then it must not be; with the second if it has been.
    Expire a Error Error
  | Perform a Effect

-- | A machine without cases.
newRecovery :: Recovery a
newRecovery =
  Recovery
    { recoveryCases = IntMap.empty,
      recoveryNext = 0,
      recoveryWakes = Set.empty,
      recoverySeekers = Set.empty,
      recoverySlots = IntMap.empty,
      recoveryStopped = False
    }

-- | Whether the machine was stopped and no case is left. \(O(1)\).
recoveryIsOver :: Recovery a -> Bool
recoveryIsOver recovery = recoveryStopped recovery && IntMap.null (recoveryCases recovery)

-- | Whether any case waits for news. \(O(1)\).
recoverySeeking :: Recovery a -> Bool
recoverySeeking = not . Set.null . recoverySeekers

-- | When a 'Tick' is due. \(O(\log n)\).
recoveryWake :: Recovery a -> Maybe Nanos
recoveryWake = fmap fst . Set.lookupMin . recoveryWakes

-- | The cases and the actions after an event at this time. \(O(\log n)\) for an event about
-- one case.
step :: Nanos -> Event a -> Recovery a -> (Recovery a, [Action a])
step now event recovery = case event of
  Enter fresh _ | recoveryStopped recovery -> (recovery, [tooLate fresh])
  EnterUnplaced fresh _ | recoveryStopped recovery -> (recovery, [tooLate fresh])
  Enter fresh next ->
    let (number, entered) = admit recovery in proceed now number fresh next entered
  EnterUnplaced fresh failure ->
    let (number, entered) = admit recovery
     in if behindSeekers fresh
          then (place number Tracked {trackedCase = fresh, trackedStage = Seeking SameRoute failure} entered, [])
          else leave FirstSearch number fresh SameRoute entered
  Failed number failure -> withCase number $ \tracked -> judge now number (trackedCase tracked) failure recovery
  Answered number -> (forget number recovery, [])
  Unplaced number failure -> withCase number $ \tracked -> case trackedStage tracked of
    Leaving target FirstSearch
      | not (recoveryStopped recovery) ->
        (place number tracked {trackedStage = Seeking target failure} recovery, [])
    _ -> judge now number (trackedCase tracked) failure recovery
  News -> foldCases (Set.toAscList (recoverySeekers recovery)) $ \number tracked current -> case trackedStage tracked of
    Seeking target _ -> leave LastSearch number (trackedCase tracked) target current
    _ -> (current, [])
  Tick -> foldCases (map snd (Set.toAscList (dueBy now))) (due now)
  Stop ->
    foldCases (IntMap.keys (recoveryCases recovery)) stopped
      `andThen` (\current -> current {recoveryStopped = True})
  where
    behindSeekers fresh = maybe False ((`IntMap.member` recoverySlots recovery) . slotNumber) (caseSlot fresh)

    withCase number act = maybe (recovery, []) act (IntMap.lookup number (recoveryCases recovery))

    foldCases numbers act =
      fmap concat . List.mapAccumL one recovery $ numbers
      where
        one current number = maybe (current, []) (\tracked -> act number tracked current) (IntMap.lookup number (recoveryCases current))

    dueBy time = Set.takeWhileAntitone ((<= time) . fst) (recoveryWakes recovery)

    andThen (current, actions) change = (change current, actions)

-- | Handles a case whose time to be looked at has come.
due :: Nanos -> CaseId -> Tracked a -> Recovery a -> (Recovery a, [Action a])
due now number Tracked {trackedCase, trackedStage} recovery
  | overdue = case trackedStage of
    Leaving _ _ -> (forget number recovery, [Expire payload (late NotSent) (late MaybeExecuted)])
    Seeking _ failure -> judge now number trackedCase failure recovery
    Resting _ _ -> (forget number recovery, [Finish payload (late NotSent)])
  | otherwise = case trackedStage of
    Resting at target | at <= now -> leave FirstSearch number trackedCase target recovery
    _ -> (recovery, [])
  where
    payload = casePayload trackedCase
    overdue = deadlineAt (caseDeadline trackedCase) <= now
    late delivery = concluding (caseFacts trackedCase) (caseSoFar trackedCase) (overAt delivery (soFarTrail (caseSoFar trackedCase)))
    -- A command that was not sent ends with the errors of the nodes that it was waiting for.
    overAt NotSent trail@(_ : _) = RoutingError (RoutingFailure "" NotSent (AttemptsExhausted trail))
    overAt delivery _ = timedOut delivery (caseDeadline trackedCase)

-- | Handles the closing of the client: nothing is sent any more; a command on its way may
-- still be answered.
stopped :: CaseId -> Tracked a -> Recovery a -> (Recovery a, [Action a])
stopped number Tracked {trackedCase, trackedStage} recovery = case trackedStage of
  Leaving _ _ -> (recovery, [])
  _ -> (forget number recovery, [tooLate trackedCase])

-- | Ends a case because the client was closed before the command could be sent.
tooLate :: Case a -> Action a
tooLate current = Finish (casePayload current) (concluding (caseFacts current) (caseSoFar current) ClientClosed)

-- | Handles a failed attempt as the retry policy decides.
judge :: Nanos -> CaseId -> Case a -> FailedAttempt -> Recovery a -> (Recovery a, [Action a])
judge now number before failure recovery =
  (fmap (effects <>) . proceed now number after (decisionNext decision)) recovery
  where
    decision =
      decide
        (if recoveryStopped recovery then (casePolicy before) {policyMaxAttempts = 0} else casePolicy before)
        (caseFacts before)
        (caseSoFar before)
        failure {failedRemaining = secondsLeft now (caseDeadline before)}
    after = before {caseSoFar = decisionSoFar decision}
    effects = map (Perform (casePayload before)) (decisionEffects decision)

-- | Carries out a decision about a case.
proceed :: Nanos -> CaseId -> Case a -> NextStep -> Recovery a -> (Recovery a, [Action a])
proceed now number current next recovery = case next of
  GiveUp failure -> (forget number recovery, [Finish (casePayload current) failure])
  RetryNow target -> leave FirstSearch number current target recovery
  RetryAfter delay target ->
    (place number Tracked {trackedCase = current, trackedStage = Resting (now + nanosFromSeconds delay) target} recovery, [])

leave :: Search -> CaseId -> Case a -> AttemptTarget -> Recovery a -> (Recovery a, [Action a])
leave search number current target recovery =
  ( place number Tracked {trackedCase = current, trackedStage = Leaving target search} recovery,
    [Send number (casePayload current) target]
  )

-- | The number for a new case.
admit :: Recovery a -> (CaseId, Recovery a)
admit recovery = (recoveryNext recovery, recovery {recoveryNext = recoveryNext recovery + 1})

-- | Puts a case into a stage, and updates the indices.
place :: CaseId -> Tracked a -> Recovery a -> Recovery a
place number tracked recovery =
  cleared
    { recoveryCases = IntMap.insert number tracked (recoveryCases cleared),
      recoveryWakes = maybe id (\at -> Set.insert (at, number)) (wakeOf tracked) (recoveryWakes cleared),
      recoverySeekers = case trackedStage tracked of
        Seeking _ _ -> Set.insert number (recoverySeekers cleared)
        _ -> recoverySeekers cleared,
      recoverySlots = case soughtSlot tracked of
        Just slot -> IntMap.insertWith (+) slot 1 (recoverySlots cleared)
        Nothing -> recoverySlots cleared
    }
  where
    cleared = forget number recovery

forget :: CaseId -> Recovery a -> Recovery a
forget number recovery = case IntMap.lookup number (recoveryCases recovery) of
  Nothing -> recovery
  Just tracked ->
    recovery
      { recoveryCases = IntMap.delete number (recoveryCases recovery),
        recoveryWakes = maybe id (\at -> Set.delete (at, number)) (wakeOf tracked) (recoveryWakes recovery),
        recoverySeekers = Set.delete number (recoverySeekers recovery),
        recoverySlots = case soughtSlot tracked of
          Just slot -> IntMap.update (\count -> if count > 1 then Just (count - 1) else Nothing) slot (recoverySlots recovery)
          Nothing -> recoverySlots recovery
      }

-- | The slot of a case whose later commands must not overtake it.
soughtSlot :: Tracked a -> Maybe Int
soughtSlot Tracked {trackedCase, trackedStage} = case trackedStage of
  Seeking _ _ -> slotNumber <$> caseSlot trackedCase
  _ -> Nothing

-- | When a case must be looked at.
wakeOf :: Tracked a -> Maybe Nanos
wakeOf Tracked {trackedCase, trackedStage} = case trackedStage of
  Resting at _ -> Just (min at over)
  _ -> if over == never then Nothing else Just over
  where
    over = deadlineAt (caseDeadline trackedCase)
