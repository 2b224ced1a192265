-- | Whether a command that failed is sent again, where and when.
--
-- Two questions decide, and they are kept apart. /May/ it be sent again? Only
-- if it certainly did not run, or if running it twice does no harm
-- ('factRepeatable'); one guard at the top of 'decide' asks this, so that no
-- rule further down can forget it. /Is it worth it/, and where? That is a table
-- over what the server or the connection said.
--
-- A redirect is no execution: a server that says MOVED or ASK has not run the
-- command, so INCR follows it as GET does. How often is bounded twice, by the
-- number of attempts and by the time that is left; the first redirect is
-- followed at once, further ones after a jittered delay, so that two nodes that
-- point at each other cannot keep a core busy.
module Redis.Internal.Routing.Retry
  ( -- * The question
    Policy (..),
    FailedAttempt (..),
    Sent (..),
    Role (..),

    -- * What a command has been through
    Course,
    newCourse,
    courseAttempts,

    -- * The answer
    Verdict (..),
    Decision (..),
    Target (..),
    Effect (..),
    decide,
    concluding,
  )
where

import Redis.Error
import Redis.Internal.Backoff (delayFor)
import Redis.Internal.Command (Facts (..))
import Redis.Internal.Config (AddressMapping, Backoff)
import Redis.Internal.Protocol.Redirect
import Redis.Internal.Protocol.Slot (slotFromInt)
import Redis.Internal.Routing.Lasting
import Redis.Internal.Routing.Topology (Trigger (..))

-- | The bounds, and what a command may be told.
data Policy = Policy
  { -- | How often a command may be sent in all.
    policyMaxAttempts :: Int,
    policyBackoff :: Backoff,
    -- | Whether it is known, and asked for, who serves what: of a cluster, and of a
    -- group. Otherwise what only those say is an error like any other.
    policyClustered :: Bool,
    -- | Whether a server alone may send it elsewhere: not if its node was named.
    policyRedirected :: Bool,
    -- | Where the nodes that redirects name are reached.
    policyMapping :: AddressMapping
  }
  deriving stock (Show)

-- | What a node was taken for when the command was sent to it; one named by a
-- redirect is taken for a primary.
data Role = Primary | Replica
  deriving stock (Eq, Show, Enum, Bounded)

-- | How an attempt was sent.
data Sent
  = -- | To where the map, or a MOVED, says.
    Plainly
  | -- | With ASKING ahead, to where an ASK pointed.
    WithAsking
  deriving stock (Eq, Show, Enum, Bounded)

-- | How an attempt failed.
data FailedAttempt = FailedAttempt
  { failedError :: Error,
    -- | Where it was sent; 'Nothing' if no node could be chosen.
    failedNode :: Maybe Endpoint,
    failedRole :: Role,
    failedSent :: Sent,
    -- | Seconds until the caller's deadline; 'Nothing' if there is none.
    failedRemaining :: Maybe Double,
    -- | Between 0 and 1, drawn anew for each failure.
    failedRandom :: Double
  }
  deriving stock (Eq, Show)

-- | The history of one command, failed attempts only.
data Course = Course
  { -- | How often it has been sent, or could not be.
    courseAttempts :: Int,
    courseRedirects :: Int,
    -- | Retries that waited.
    courseDelays :: Int,
    courseReauthenticated :: Bool,
    -- | Some attempt may have run.
    courseMaybeRan :: Bool,
    courseReversedTrail :: [(Endpoint, Error)]
  }
  deriving stock (Eq, Show)

-- | Nothing has been tried.
newCourse :: Course
newCourse =
  Course
    { courseAttempts = 0,
      courseRedirects = 0,
      courseDelays = 0,
      courseReauthenticated = False,
      courseMaybeRan = False,
      courseReversedTrail = []
    }

-- | The nodes in the order they were tried, and how each failed. \(O(n)\).
courseTrail :: Course -> [(Endpoint, Error)]
courseTrail = reverse . courseReversedTrail

-- | What to do, what to tell others, and what to hand in at the next failure.
-- Effects come before the command is sent again.
data Verdict = Verdict
  { verdictDecision :: Decision,
    verdictEffects :: [Effect],
    verdictCourse :: Course
  }
  deriving stock (Eq, Show)

-- | How it goes on.
data Decision
  = -- | The caller gets this error.
    GiveUp Error
  | RetryNow Target
  | -- | After so many seconds; always less than are left.
    RetryAfter Double Target
  deriving stock (Eq, Show)

-- | Where an attempt goes.
data Target
  = -- | By the map, as it then is.
    SameRoute
  | -- | By the map, and not to a replica.
    PrimaryRoute
  | -- | To this node, known or not.
    ToNode Endpoint
  | -- | To this node, ASKING ahead of it and nothing between.
    AskingNode Endpoint
  deriving stock (Eq, Show)

-- | What others should know.
data Effect
  = -- | For "Redis.Internal.Routing.Topology".
    Tell Trigger
  | -- | Replace the connection that answered, unless that has been done since.
    Reconnect Endpoint
  deriving stock (Eq, Show)

-- | What the table says, before bounds are looked at.
data Advice
  = -- | To the caller as it stands.
    HandOver
  | -- | To the caller, with what earlier attempts were told.
    Conclude
  | -- | At once if it is the first time the command is sent elsewhere.
    Elsewhere Target
  | -- | After a delay.
    Later Target

-- | Decides over a failed attempt. Total, and \(O(n)\) in the attempts only
-- when it gives up.
decide :: Policy -> Facts -> Course -> FailedAttempt -> Verdict
decide policy facts before failure
  | errorDelivery (failedError failure) == MaybeExecuted && not (factRepeatable facts) =
    giveUp (failedError failure)
  | otherwise = case advice of
    HandOver -> giveUp (failedError failure)
    Conclude -> exhausted
    Elsewhere target
      | courseRedirects course == 0 -> within course {courseRedirects = 1} (RetryNow target)
      | otherwise -> later course {courseRedirects = courseRedirects course + 1} target
    Later target -> later course target
  where
    (told, advice) = adviseOn policy before failure
    course = noteAttempt failure before

    later onwards target =
      let waits = courseDelays onwards + 1
          delay = delayFor (policyBackoff policy) waits (max 0 (min 1 (failedRandom failure)))
       in within onwards {courseDelays = waits} (RetryAfter delay target)

    within onwards decision
      | courseAttempts course >= policyMaxAttempts policy = exhausted
      | maybe False (<= delayOf decision) (failedRemaining failure) = exhausted
      | otherwise = Verdict {verdictDecision = decision, verdictEffects = told, verdictCourse = onwards}

    -- One attempt has no trail worth telling, and where no node was ever
    -- tried there is none; the error says more.
    exhausted
      | courseAttempts course <= 1 || null (courseReversedTrail course) = giveUp (failedError failure)
      | otherwise =
        giveUp (RoutingError (RoutingFailure (errorDelivery (failedError failure)) (AttemptsExhausted (courseTrail course))))

    giveUp failed =
      Verdict
        { verdictDecision = GiveUp (concluding facts course failed),
          verdictEffects = told,
          verdictCourse = course
        }

-- | Seconds that an attempt after a delay must have: one that ends while it is on
-- its way leaves a doubt where there was none.
leastTime :: Double
leastTime = 0.005

delayOf :: Decision -> Double
delayOf = \case
  RetryAfter delay _ -> delay + leastTime
  _ -> 0

-- | The error that a command ends with after this course: it says that a write may
-- have run if an earlier attempt may have, although the last one did not.
concluding :: Facts -> Course -> Error -> Error
concluding facts course failed
  | factReadOnly facts || not (courseMaybeRan course) || errorDelivery failed == MaybeExecuted = failed
  | otherwise = case failed of
    ConnectionError lost -> ConnectionError lost {connectionDelivery = MaybeExecuted}
    TimeoutError late -> TimeoutError late {timeoutDelivery = MaybeExecuted}
    RoutingError unrouted -> RoutingError unrouted {routingDelivery = MaybeExecuted}
    _ -> RoutingError (RoutingFailure MaybeExecuted (AttemptsExhausted (courseTrail course)))

noteAttempt :: FailedAttempt -> Course -> Course
noteAttempt FailedAttempt {failedError, failedNode} course =
  course
    { courseAttempts = courseAttempts course + 1,
      courseReauthenticated = courseReauthenticated course || isUnauthenticated failedError,
      courseMaybeRan = courseMaybeRan course || errorDelivery failedError == MaybeExecuted,
      courseReversedTrail = case failedNode of
        Just node -> (node, failedError) : courseReversedTrail course
        Nothing -> courseReversedTrail course
    }
  where
    isUnauthenticated = \case
      ReplyError serverError -> parseRedirect serverError == Just Unauthenticated
      _ -> False

-- | The table.
adviseOn :: Policy -> Course -> FailedAttempt -> ([Effect], Advice)
adviseOn policy course failure = case failedError failure of
  ReplyError serverError -> maybe ([], HandOver) (adviseOnReply policy course failure) (parseRedirect serverError)
  ConnectionError (ConnectionFailure _ node cause) -> adviseOnConnection policy failure node cause
  RoutingError RoutingFailure {routingCause = cause} -> case cause of
    UncoveredSlot number
      | clustered -> (maybe [] (\slot -> [Tell (SawUncovered slot)]) (slotFromInt number), Later SameRoute)
    NoReachableNode reasons
      | not (null reasons) && all (isLasting . snd) reasons -> ([], HandOver)
      | clustered -> ([], Later SameRoute)
    _ -> ([], HandOver)
  -- The time of a replica is a part of the command's.
  TimeoutError _ | clustered, failedRole failure == Replica -> ([], Elsewhere PrimaryRoute)
  -- The deadline is over: nobody waits for another attempt.
  -- Not even sent: what it waited for is what the nodes said before.
  TimeoutError (TimeoutFailure NotSent _) -> ([], Conclude)
  TimeoutError _ -> ([], HandOver)
  UnexpectedReply _ -> ([], HandOver)
  RefusedError _ -> ([], HandOver)
  SubscriberTooSlow _ -> ([], HandOver)
  ClientClosed -> ([], HandOver)
  where
    clustered = policyClustered policy

adviseOnReply :: Policy -> Course -> FailedAttempt -> Redirect -> ([Effect], Advice)
adviseOnReply policy course FailedAttempt {failedNode, failedRole} redirect = case redirect of
  Loading
    | replica && clustered -> ([], Elsewhere PrimaryRoute)
    | otherwise -> (aboutNode SawLoading, Later SameRoute)
  Unauthenticated
    -- The server forgot who this connection is, or the user changed: one new
    -- handshake tells.
    | courseReauthenticated course -> ([], HandOver)
    | otherwise -> (maybe [] (\node -> [Reconnect node]) failedNode, Later SameRoute)
  Redirected destination
    | not (policyRedirected policy) -> ([], HandOver)
    | Just node <- failedNode,
      Just target <- resolved destination,
      node /= target ->
      ([Tell (LearntRedirect node target)], Elsewhere (ToNode target))
    -- It follows nobody just now.
    | otherwise -> ([], Later SameRoute)
  _ | not clustered -> ([], HandOver)
  Moved slot destination -> case resolved destination of
    Just target
      -- It sends us to where we are: the connection ends elsewhere than its
      -- address says.
      | Just target == failedNode -> ([Tell (LearntMoved slot target), Reconnect target], Later (ToNode target))
      -- What it says of the slot may be what the map says; then it is the
      -- replica that the map is wrong about.
      | otherwise ->
        ( Tell (LearntMoved slot target) : [Tell (SawStrayReplica node) | replica, Just node <- [failedNode]],
          Elsewhere (ToNode target)
        )
    Nothing -> ([Tell (MovedToUnknown slot)], Later SameRoute)
  Ask slot destination -> case resolved destination of
    Just target
      | Just target == failedNode -> ([], Later SameRoute)
      | otherwise -> ([], Elsewhere (AskingNode target))
    Nothing -> ([Tell (MovedToUnknown slot)], Later SameRoute)
  -- Not all keys have arrived. At the target of an ASK only the source knows
  -- when they have, and it is the source that the map still names.
  TryAgain -> ([], Later SameRoute)
  ClusterDown -> ([Tell SawClusterDown], Later SameRoute)
  MasterDown
    | replica -> (aboutNode SawMasterDown, Elsewhere PrimaryRoute)
    | otherwise -> (aboutNode SawMasterDown, Later SameRoute)
  ReadOnly
    | replica -> ([], Elsewhere PrimaryRoute)
    | otherwise -> (aboutNode SawReadOnly, Later SameRoute)
  SentAway -> (aboutNode SawReadOnly, Later SameRoute)
  where
    clustered = policyClustered policy
    replica = failedRole == Replica
    resolved destination = failedNode >>= \node -> destinationEndpoint (policyMapping policy) node destination
    aboutNode trigger
      | clustered = maybe [] (\node -> [Tell (trigger node)]) failedNode
      | otherwise = []

-- | What was lost is known from the delivery; what would help, from the cause.
adviseOnConnection :: Policy -> FailedAttempt -> Endpoint -> ConnectionCause -> ([Effect], Advice)
adviseOnConnection policy FailedAttempt {failedError, failedRole} node cause
  | lastingCause cause || suspect = (lost, HandOver)
  | clustered && failedRole == Replica = (lost, Elsewhere PrimaryRoute)
  -- The first time at once: one thread's many reads in flight would otherwise
  -- wait one after another. Whether a new connection may be opened already is
  -- the node's own backoff to say, and then that is the answer.
  | wasOpen = (lost, Elsewhere SameRoute)
  | otherwise = (lost, Later SameRoute)
  where
    clustered = policyClustered policy
    wasOpen = case cause of
      ClosedByPeer -> True
      BrokenConnection _ -> True
      SilentPeer _ -> True
      ProtocolViolation _ -> True
      _ -> False
    lost = [Tell (LostNode node) | clustered && cause /= ClosedLocally]
    -- It may be the reply to this very command that could not be read; asking
    -- again would end the connection for everybody once more.
    suspect = case cause of
      ProtocolViolation _ -> errorDelivery failedError == MaybeExecuted
      _ -> False
