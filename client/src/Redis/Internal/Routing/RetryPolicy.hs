-- | Decides whether a command that failed is sent again, where and when.
--
-- Two questions decide, and they are kept apart. /May/ it be sent again? Only if it
-- certainly did not run, or if running it twice does no harm ('factIdempotent'). One guard at
-- the top of 'decide' checks this, so that no rule further down can forget it. /Is it worth
-- it/, and where? That is a table over the replies of servers and the failures of
-- connections.
--
-- A server that answers MOVED or ASK has not run the command, so INCR follows a redirect as GET
-- does. The number of attempts and the time that is left bound redirects. A command is sent again at once
-- the first time that it is sent elsewhere, for a redirect or another reason, and later after a jittered
-- delay, so that two nodes that point at each other cannot keep a core busy.
module Redis.Internal.Routing.RetryPolicy
  ( RetryPolicy (..),
    FailedAttempt (..),
    Role (..),
    AttemptsSoFar,
    noAttempts,
    soFarAttempts,
    soFarTrail,
    RetryDecision (..),
    NextStep (..),
    Effect (..),
    decide,
    concluding,
    inOwnWords,
  )
where

import Data.Maybe (isJust)
import Redis.Error
import Redis.Internal.Command (CommandInfo (infoFailsHalfway), Facts (factInfo), factIdempotent, factReadOnly)
import Redis.Internal.Config (AddressMapping, Backoff, delayFor)
import Redis.Internal.Protocol.Redirect
import Redis.Internal.Protocol.Slot (Slot, slotFromInt)
import Redis.Internal.Routing.Target
import Redis.Internal.Routing.Topology (Trigger (..), isPermanent, isPermanentCause)

data RetryPolicy = RetryPolicy
  { -- | How often a command may be sent in total.
    policyMaxAttempts :: Int,
    policyBackoff :: Backoff,
    -- | Whether the client can ask for another map (of a cluster or a group). If not, the replies
    -- that only such servers give are errors like any other.
    policyFollowed :: Bool,
    -- | Translates the addresses in redirects to addresses that this client can reach.
    policyMapping :: AddressMapping,
    -- | The target of the command. A command for a node that its caller named follows no redirect.
    policyTarget :: Target
  }
  deriving stock (Show)

-- | The role that a node was taken for when the command was sent to it. A node that a
-- redirect names is taken for a primary.
data Role = Primary | Replica
  deriving stock (Eq, Show, Enum, Bounded)

data FailedAttempt = FailedAttempt
  { failedError :: Error,
    -- | The node that it was sent to; 'Nothing' if no node could be chosen.
    failedNode :: Maybe Endpoint,
    failedRole :: Role,
    -- | Seconds until the caller's deadline; 'Nothing' if there is none.
    failedRemaining :: Maybe Double,
    -- | A number between 0 and 1, drawn anew for each failure.
    failedRandom :: Double
  }
  deriving stock (Eq, Show)

-- | The history of one command, failed attempts only.
data AttemptsSoFar = AttemptsSoFar
  { -- | How often the command has been sent, or could not be sent.
    soFarAttempts :: Int,
    soFarRedirects :: Int,
    -- | Retries after a delay.
    soFarDelays :: Int,
    soFarReauthenticated :: Bool,
    -- | Whether an attempt may have run.
    soFarMaybeRan :: Bool,
    soFarReversedTrail :: [(Endpoint, Error)]
  }
  deriving stock (Eq, Show)

noAttempts :: AttemptsSoFar
noAttempts = AttemptsSoFar 0 0 0 False False []

-- | The nodes in the order they were tried, and how each failed. \(O(n)\).
soFarTrail :: AttemptsSoFar -> [(Endpoint, Error)]
soFarTrail = reverse . soFarReversedTrail

-- | The decision, its effects on others, and the attempts so far for the next failure. Effects come
-- before the command is sent again.
data RetryDecision = RetryDecision
  { decisionNext :: NextStep,
    decisionEffects :: [Effect],
    decisionSoFar :: AttemptsSoFar
  }
  deriving stock (Eq, Show)

data NextStep
  = -- | The caller gets this error.
    GiveUp Error
  | RetryNow Target
  | -- | After so many seconds, always fewer than are left.
    RetryAfter Double Target
  deriving stock (Eq, Show)

data Effect
  = -- | A trigger for "Redis.Internal.Routing.Topology".
    Tell Trigger
  | -- | Replace the connection that answered, unless that has been done since.
    Reconnect Endpoint
  deriving stock (Eq, Show)

-- | The advice of the table, before bounds are checked.
data Advice
  = -- | Give the caller the error as it stands.
    HandOver
  | -- | Give the caller the error, with those of earlier attempts.
    Conclude
  | -- | Send at once if it is the first time that the command is sent elsewhere.
    Elsewhere Target
  | -- | Send after a delay.
    Later Target

-- | Decides about a failed attempt. Total, and \(O(n)\) in the attempts only when it gives
-- up.
decide :: RetryPolicy -> Facts -> AttemptsSoFar -> FailedAttempt -> RetryDecision
decide policy facts before reported
  | errorDelivery (failedError failure) == MaybeExecuted && not (factIdempotent facts) =
    giveUp (failedError failure)
  | otherwise = case advice of
    HandOver -> giveUp (failedError failure)
    Conclude -> exhausted
    Elsewhere target
      | soFarRedirects soFar == 0 -> within soFar {soFarRedirects = 1} (RetryNow target)
      | otherwise -> later soFar {soFarRedirects = soFarRedirects soFar + 1} target
    Later target -> later soFar target
  where
    failure = reported {failedError = inOwnWords (slotOf (policyTarget policy)) (factInfo facts) (failedError reported)}
    (told, advice) = adviseOn policy before failure
    soFar = noteAttempt failure before

    later onwards target =
      let waits = soFarDelays onwards + 1
          delay = delayFor (policyBackoff policy) waits (max 0 (min 1 (failedRandom failure)))
       in within onwards {soFarDelays = waits} (RetryAfter delay target)

    within onwards next
      | soFarAttempts soFar >= policyMaxAttempts policy = exhausted
      | maybe False (<= delayOf next) (failedRemaining failure) = exhausted
      | otherwise = RetryDecision {decisionNext = next, decisionEffects = told, decisionSoFar = onwards}

    -- After one attempt there is no trail worth reporting, and without any node that was
    -- tried there is none; then the error itself says more. But a redirect that could not be
    -- followed any more says nothing to the caller.
    exhausted
      | null (soFarReversedTrail soFar) || soFarAttempts soFar <= 1 && not isRedirect = giveUp (failedError failure)
      | otherwise =
        giveUp (RoutingError (RoutingFailure "" (errorDelivery (failedError failure)) (AttemptsExhausted (soFarTrail soFar))))

    isRedirect = case failedError failure of
      ReplyError serverError -> isJust (redirectedSlot serverError)
      _ -> False

    giveUp failed = RetryDecision {decisionNext = GiveUp (concluding facts soFar failed), decisionEffects = told, decisionSoFar = soFar}

-- | The error of a command whose keys have this slot, if it is known. A node redirects for that
-- slot alone. A script says what it likes, and may have written before: a redirect for another slot
-- is an error like any other, and in doubt.
inOwnWords :: Maybe Slot -> CommandInfo -> Error -> Error
inOwnWords known info = \case
  ReplyError serverError
    | infoFailsHalfway info,
      Just slot <- redirectedSlot serverError,
      any (/= slot) known ->
      ReplyError serverError {serverErrorDelivery = MaybeExecuted}
  other -> other

redirectedSlot :: ServerError -> Maybe Slot
redirectedSlot serverError = case parseRedirect serverError of
  Just (Moved slot _) -> Just slot
  Just (Ask slot _) -> Just slot
  _ -> Nothing

-- | The least seconds that must be left after a delay: a deadline that passes while the
-- attempt is on its way leaves it in doubt whether the command has run.
leastTime :: Double
leastTime = 0.005

delayOf :: NextStep -> Double
delayOf = \case
  RetryAfter delay _ -> delay + leastTime
  _ -> 0

-- | The error that a command ends with after these attempts. It says that a write may have run
-- if an earlier attempt may have run, even if the last one did not.
concluding :: Facts -> AttemptsSoFar -> Error -> Error
concluding facts soFar failed
  | factReadOnly facts || not (soFarMaybeRan soFar) || errorDelivery failed == MaybeExecuted = failed
  | otherwise = case failed of
    ConnectionError lost -> ConnectionError lost {connectionDelivery = MaybeExecuted}
    TimeoutError late -> TimeoutError late {timeoutDelivery = MaybeExecuted}
    RoutingError unrouted -> RoutingError unrouted {routingDelivery = MaybeExecuted}
    _ -> RoutingError (RoutingFailure "" MaybeExecuted (AttemptsExhausted (soFarTrail soFar)))

noteAttempt :: FailedAttempt -> AttemptsSoFar -> AttemptsSoFar
noteAttempt FailedAttempt {failedError, failedNode} soFar =
  soFar
    { soFarAttempts = soFarAttempts soFar + 1,
      soFarReauthenticated = soFarReauthenticated soFar || isUnauthenticated failedError,
      soFarMaybeRan = soFarMaybeRan soFar || errorDelivery failedError == MaybeExecuted,
      soFarReversedTrail = [(node, failedError) | Just node <- [failedNode]] <> soFarReversedTrail soFar
    }
  where
    isUnauthenticated = \case
      ReplyError serverError -> parseRedirect serverError == Just Unauthenticated
      _ -> False

-- | Whether another map may lead to another node.
isFollowing :: RetryPolicy -> Bool
isFollowing policy = policyFollowed policy && not (isNamed (policyTarget policy))

-- | The table: the effects and the advice for a failure.
adviseOn :: RetryPolicy -> AttemptsSoFar -> FailedAttempt -> ([Effect], Advice)
adviseOn policy soFar failure = case failedError failure of
  ReplyError serverError
    | Just redirect <- parseRedirect serverError -> adviseOnReply policy soFar failure redirect
    -- It runs a script of its own, or lacks the one that is asked for.
    | clustered, failedRole failure == Replica, serverErrorCode serverError `elem` ["BUSY", "NOSCRIPT"] -> ([], atThePrimary)
    | otherwise -> ([], HandOver)
  ConnectionError (ConnectionFailure _ _ node cause) -> adviseOnConnection policy failure node cause
  RoutingError RoutingFailure {routingCause = cause} -> case cause of
    UncoveredSlot number
      | clustered -> ([Tell (SawUncovered slot) | Just slot <- [slotFromInt number]], Later (policyTarget policy))
    NoReachableNode reasons
      | not (null reasons) && all (isPermanent . snd) reasons -> ([], HandOver)
      | clustered -> ([], Later (policyTarget policy))
    _ -> ([], HandOver)
  -- A replica is given only a part of the command's time, so there is time left.
  TimeoutError _ | clustered, failedRole failure == Replica -> ([], atThePrimary)
  -- The deadline is over, so nobody waits for another attempt. A command that was not even
  -- sent ends with the errors of the nodes that it was waiting for.
  TimeoutError (TimeoutFailure _ NotSent _ _) -> ([], Conclude)
  _ -> ([], HandOver)
  where
    clustered = isFollowing policy
    atThePrimary = Elsewhere (atPrimary (policyTarget policy))

adviseOnReply :: RetryPolicy -> AttemptsSoFar -> FailedAttempt -> Redirect -> ([Effect], Advice)
adviseOnReply policy soFar FailedAttempt {failedNode, failedRole} redirect = case redirect of
  Loading
    | replica && clustered -> ([], elsewhere)
    | otherwise -> (aboutNode SawLoading, later)
  Unauthenticated
    -- The server forgot who this connection is, or the user changed: one new handshake
    -- shows which.
    | soFarReauthenticated soFar -> ([], HandOver)
    | otherwise -> ([Reconnect node | Just node <- [failedNode]], later)
  Redirected destination
    | Just node <- failedNode,
      Just target <- resolved destination,
      node /= target ->
      ([Tell (LearntRedirect node target)], if isNamed (policyTarget policy) then HandOver else Elsewhere (ToNode target))
    -- The server follows no primary just now.
    | otherwise -> ([], if isNamed (policyTarget policy) then HandOver else later)
  _ | not clustered -> ([], HandOver)
  Moved slot destination -> case resolved destination of
    Just target
      -- It redirects to the node that was asked: the connection does not end where its
      -- address says.
      | Just target == failedNode -> ([Tell (LearntMoved slot target), Reconnect target], Later (ToNode target))
      -- The map may have the same owner for the slot; then what is wrong in the map is the
      -- replica.
      | otherwise ->
        ( Tell (LearntMoved slot target) : [Tell (SawStrayReplica node) | replica, Just node <- [failedNode]],
          Elsewhere (ToNode target)
        )
    Nothing -> ([Tell (MovedToUnknown slot)], later)
  Ask slot destination -> case resolved destination of
    Just target -> ([], if Just target == failedNode then later else Elsewhere (AskingNode target))
    Nothing -> ([Tell (MovedToUnknown slot)], later)
  -- Not all keys have arrived at the target of a migration. Only the source knows when they
  -- have, and the map still names the source.
  TryAgain -> ([], later)
  ClusterDown -> ([Tell SawClusterDown], if replica then elsewhere else later)
  MasterDown -> (aboutNode SawMasterDown, if replica then elsewhere else later)
  ReadOnly | replica -> ([], elsewhere)
  ReadOnly -> (aboutNode SawReadOnly, later)
  SentAway -> (aboutNode SawReadOnly, later)
  where
    later = Later (policyTarget policy)
    elsewhere = Elsewhere (atPrimary (policyTarget policy))
    clustered = isFollowing policy
    replica = failedRole == Replica
    resolved destination = failedNode >>= \node -> redirectEndpoint (policyMapping policy) node destination
    aboutNode trigger = [Tell (trigger node) | clustered, Just node <- [failedNode]]

-- | The advice after a lost connection or a failed attempt to connect.
adviseOnConnection :: RetryPolicy -> FailedAttempt -> Endpoint -> ConnectionCause -> ([Effect], Advice)
adviseOnConnection policy FailedAttempt {failedError, failedRole} node cause
  | suspect = (lost, HandOver)
  | clustered && failedRole == Replica = (lost, Elsewhere (atPrimary (policyTarget policy)))
  | isPermanentCause cause = (lost, HandOver)
  -- The first time at once: many reads in flight of one thread would otherwise wait one
  -- after another. If the node's own backoff does not allow a new connection yet, the next
  -- failure says so, and is followed by a delay.
  | wasOpen = (lost, Elsewhere (policyTarget policy))
  | otherwise = (lost, Later (policyTarget policy))
  where
    clustered = isFollowing policy
    wasOpen = case cause of
      ClosedByPeer -> True
      BrokenConnection _ -> True
      SilentPeer _ -> True
      ProtocolViolation _ -> True
      _ -> False
    lost = [Tell (LostNode node) | clustered && cause /= ClosedLocally]
    -- The reply to this very command may be the one that could not be read; sending it again
    -- would end the connection for all callers once more.
    suspect = case cause of
      ProtocolViolation _ -> errorDelivery failedError == MaybeExecuted
      _ -> False
