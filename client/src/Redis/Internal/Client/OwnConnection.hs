-- | Runs commands that need a connection of their own: commands that the server may keep
-- waiting, and commands with unknown effects on their connection.
--
-- Everything happens on the thread that calls 'runOwn', which holds the connection: if that
-- thread is interrupted, the connection is closed and the server forgets the command.
module Redis.Internal.Client.OwnConnection
  ( needsOwn,
    runOwn,
    conditionAfter,
  )
where

import Control.Concurrent.STM (readTVarIO)
import Control.Monad (unless, when)
import Data.Foldable (for_, traverse_)
import Data.IORef
import Data.Maybe (isNothing)
import Redis.Error
import Redis.Internal.Client.Core
import Redis.Internal.Client.Deadline
import Redis.Internal.Client.RetryEngine (policyFor)
import Redis.Internal.Client.TraceNotes
import Redis.Internal.Command
import Redis.Internal.Command.Make (withRemaining)
import Redis.Internal.Network.Counters (Count (CommandsResent), countOne)
import Redis.Internal.Network.Dedicated
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.Multiplexer (submitCommand, submitRunTo, termsUntil)
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.Encode (request, requestIsShortened, requestWhole)
import Redis.Internal.Protocol.Redirect (Redirect (Unauthenticated), parseRedirect)
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.RetryPolicy
import Redis.Internal.Routing.Router
import Redis.Internal.Routing.Target
import Redis.Value
import System.Random (randomRIO)

-- | Whether a command must not share a connection.
needsOwn :: Facts -> Bool
needsOwn facts = case factScope facts of
  OwnConnection -> True
  ControlConnection -> False
  _ -> factBlocking facts /= NonBlocking

-- | A command on its way.
data Errand a = Errand
  { errandCore :: Core,
    errandCommand :: Command a,
    errandTarget :: Target,
    errandDeadline :: Deadline,
    -- | The node of the last attempt.
    errandTried :: IORef (Maybe Endpoint)
  }

-- | Runs a command that began at this time to its end. Blocks until there is a result.
runOwn :: Core -> Nanos -> Command a -> IO (Either Error a)
runOwn core began given = do
  tried <- newIORef Nothing
  for_ (coreNotes core) noteRetried
  let target = targetOf (commandRoute given)
  reply <- go Errand {errandCore = core, errandCommand = given, errandTarget = target, errandDeadline = deadlineFor core (commandFacts given) began, errandTried = tried} noAttempts target
  last' <- readIORef tried
  either (countFailure (coreCluster core) last') (\_ -> pure ()) reply
  pure (reply >>= decoded given)

-- | Makes one attempt, and then does what the retry policy decides.
go :: Errand a -> AttemptsSoFar -> Target -> IO (Either Error Value)
go errand soFar target = do
  sendBy <- sendingDeadline errand
  destinationEventually cluster (deadlineAt sendBy) facts target >>= \case
    Left failed -> judge errand soFar failedNowhere {failedError = failed}
    Right destination -> do
      let endpoint = nodeEndpoint (destinationNode destination)
      tried <- readIORef (errandTried errand)
      unless (isNothing tried) (countOne (nodeCounters (destinationNode destination)) CommandsResent)
      writeIORef (errandTried errand) (Just endpoint)
      for_ (coreNotes core) (`noteAttempt` endpoint)
      outcome <- attemptAt errand sendBy (soFarAttempts soFar == 0) destination target
      result <- case outcome of
        Reply value -> pure (fromReply facts (commandRequest given) value)
        Failure failed -> Left failed <$ noteFailure cluster destination failed
      for_ (either Just (const Nothing) result) $ \failed -> do
        redirected <- countRedirect cluster destination failed
        for_ (coreNotes core) $ \notes -> do
          when redirected (noteRedirect notes)
          preciseNanos >>= noteFailed notes
      case result of
        Right value -> pure (Right value)
        Left failed
          | requestIsShortened (commandRequest given) && unknownScript failed ->
            -- At most once: the long form is not shortened.
            go errand {errandCommand = given {commandRequest = requestWhole (commandRequest given)}} soFar target
        Left failed ->
          judge
            errand
            soFar
            failedNowhere
              { failedError = failed,
                failedNode = Just (nodeEndpoint (destinationNode destination)),
                failedRole = destinationTakenFor destination
              }
  where
    core = errandCore errand
    cluster = coreCluster core
    given = errandCommand errand
    facts = commandFacts given
    failedNowhere =
      FailedAttempt
        { failedError = ClientClosed,
          failedNode = Nothing,
          failedRole = Primary,
          failedRemaining = Nothing,
          failedRandom = 0
        }

-- | When the next attempt must have been sent: it waits for a node, for its turn and for a connection
-- no longer than a command may take that does not wait on the server.
sendingDeadline :: Errand a -> IO Deadline
sendingDeadline Errand {errandCore, errandCommand, errandDeadline} = do
  now <- coarseNanos
  pure errandDeadline {deadlineAt = min (deadlineAt errandDeadline) (deadlineAt (ownDeadline (coreTimeLimit errandCore) (commandFacts errandCommand) now))}

judge :: Errand a -> AttemptsSoFar -> FailedAttempt -> IO (Either Error Value)
judge errand soFar failed = do
  closed <- readTVarIO (coreClosed core)
  random <- randomRIO (0, 1)
  now <- coarseNanos
  let RetryDecision {decisionNext, decisionEffects, decisionSoFar} =
        decide (policyFor (coreConfig core) (coreCluster core) (errandTarget errand) closed) facts soFar failed {failedRemaining = secondsLeft now (errandDeadline errand), failedRandom = random}
  traverse_ (carryOut (coreCluster core) (deadlineBegan (errandDeadline errand))) decisionEffects
  case decisionNext of
    GiveUp final -> pure (Left (if closed && errorDelivery final == NotSent then ClientClosed else final))
    RetryNow target -> go errand decisionSoFar target
    RetryAfter delay target -> do
      open <- pauseFor core delay
      if open then go errand decisionSoFar target else pure (Left (concluding facts decisionSoFar ClientClosed))
  where
    core = errandCore errand
    facts = commandFacts (errandCommand errand)

-- | Makes an attempt at a destination, which is the first one or not. The server answers at the latest when
-- the command's own limit there is over. What has passed since the command began, on any server,
-- is taken off the limit of a later attempt.
attemptAt :: Errand a -> Deadline -> Bool -> Destination -> Target -> IO Outcome
attemptAt Errand {errandCore, errandCommand, errandDeadline} sendBy isFirst destination target = do
  leased <- withLease (nodeDedicated (destinationNode destination)) sendBy $ \mux -> do
    for_ (coreNotes errandCore) $ \notes -> preciseNanos >>= noteEntered notes
    now <- coarseNanos
    let current = if isFirst then errandCommand else withRemaining (secondsFromNanos (now - deadlineBegan errandDeadline)) errandCommand
        encoded = commandRequest current
        terms = termsUntil errandDeadline
    outcome <-
      if needsAsking target
        then do
          asking <- newResponseSlot
          slot <- newResponseSlot
          submitRunTo mux terms [(request ["ASKING"], asking), (encoded, slot)]
          waitSlotResult slot
        else submitCommand mux terms encoded
    pure (outcome, conditionOf current outcome)
  pure (either Failure id leased)

-- | The condition in which a command leaves its connection, given its outcome.
conditionOf :: Command a -> Outcome -> Condition
conditionOf given outcome = case factScope (commandFacts given) of
  OwnConnection
    | not (unknownToServer given outcome) -> Spoilt
  _ -> conditionAfter outcome

-- | Whether the server does not know the command, and so has done nothing.
unknownToServer :: Command a -> Outcome -> Bool
unknownToServer given = \case
  Reply value | ErrorReply text <- withoutAttributes value -> isUnknownCommand (commandRequest given) (serverErrorFromText text)
  _ -> False

-- | The condition in which a reply leaves a lent connection. A server that has forgotten who
-- the client is would tell the next caller so, too. A reply that did not come in time may
-- still come.
conditionAfter :: Outcome -> Condition
conditionAfter = \case
  Reply value
    | ErrorReply text <- withoutAttributes value,
      parseRedirect (serverErrorFromText text) == Just Unauthenticated ->
      Spoilt
  Failure _ -> Spoilt
  _ -> Clean
