-- | Carries out the decisions of "Redis.Internal.Routing.Recovery" for all commands of a
-- client. One thread moves the cases. Each node that commands are on their way to has a
-- thread that sends them, so a dead node does not delay the commands for other nodes.
--
-- Commands that failed together are sent again together, in the order in which they
-- failed. A caller that waits for a command only waits for its result. Recovery goes the
-- same way whether or not a caller waits.
module Redis.Internal.Client.Recoverer
  ( Recoverer,
    newRecoverer,
    stopRecoverer,

    -- * Commands
    Flight,
    newFlight,
    behindQueue,
    tracedBy,
    policyFor,
    attend,
    depart,
    awaitDestination,
    waitsForDestination,
  )
where

import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception (SomeException, displayException, mask_, try)
import Control.Monad (unless, void, when, (>=>))
import Data.Foldable (for_, traverse_)
import Data.IORef
import Data.List qualified as List
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, isNothing, listToMaybe)
import Data.Sequence (Seq)
import Data.Sequence qualified as Seq
import Redis.Error
import Redis.Internal.Client.Deadline
import Redis.Internal.Client.TraceNotes
import Redis.Internal.Command
import Redis.Internal.Command.Shown (shownPart)
import Redis.Internal.Config
import Redis.Internal.Network.Clock
import Redis.Internal.Network.Handshake (ConnectionRole)
import Redis.Internal.Network.MultiplexPool
import Redis.Internal.Network.ResponseSlot
import Redis.Internal.Network.Counters (Count (CommandsResent), countOne)
import Redis.Internal.Network.Worker (expiryAt, spawn)
import Redis.Internal.Protocol.CommandTable (nameFromArguments)
import Redis.Internal.Protocol.Encode (Request, request, requestIsShortened, requestWhole, requestArguments)
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.Recovery
import Redis.Internal.Routing.RetryPolicy
import Redis.Internal.Routing.Router
import Redis.Internal.Routing.UncoveredSlots
import Redis.Value
import System.Random (randomRIO)

-- | The recovery worker of one client.
data Recoverer = Recoverer
  { recovererConfig :: Config,
    recovererRouter :: Router,
    -- | Whether the client is closed.
    recovererClosed :: TVar Bool,
    recovererMail :: TQueue (Event Flight),
    -- | Set when the worker's thread has ended; no event is accepted after that.
    recovererEnded :: TVar Bool,
    -- | The commands on their way to each node while a thread sends them.
    recovererOutboxes :: IORef (Map ResendKey (Seq Departure)),
    -- | How many commands found no known node and have not been sent since.
    recovererUnplaced :: IORef Int,
    -- | The number between 0 and 1 that was drawn last, and when ('jitter').
    recovererJitter :: IORef (Nanos, Double)
  }

type ResendKey = (Endpoint, ConnectionRole)

-- | A command as it is sent again.
data Flight = Flight
  { -- | The requests that go ahead of the command, with nothing in between: MULTI and the
    -- queued commands if this is EXEC.
    flightQueue :: [Request],
    -- | The request in its long form: a command that is sent again is sent whole.
    flightRequest :: Request,
    -- | Whether the first attempt sent a short form, which a server may not know.
    flightShortened :: Bool,
    flightFacts :: Facts,
    flightTarget :: Target,
    flightDeadline :: Deadline,
    -- | The cell for the result.
    flightResult :: MVar (Either Error Value),
    flightPhase :: IORef Phase,
    -- | Whether later commands must not overtake this one: no node was known when it began,
    -- and it has not been submitted since.
    flightHolds :: IORef Bool,
    -- | The node of the last attempt.
    flightTried :: IORef (Maybe Endpoint),
    -- | The notes for the hook that traces the command, if there is one.
    flightNotes :: Maybe TraceNotes
  }

-- | A command that failed or found no node, before it is sent again. The cell is for its
-- result.
newFlight :: Request -> Facts -> Target -> Deadline -> MVar (Either Error Value) -> IO Flight
newFlight asSent flightFacts flightTarget flightDeadline flightResult = do
  flightPhase <- newIORef Ashore
  flightHolds <- newIORef False
  flightTried <- newIORef Nothing
  pure
    Flight
      { flightQueue = [],
        flightRequest = requestWhole asSent,
        flightShortened = requestIsShortened asSent,
        flightFacts,
        flightTarget,
        flightDeadline,
        flightResult,
        flightPhase,
        flightHolds,
        flightTried,
        flightNotes = Nothing
      }

-- | The flight with the notes for a trace, if the command is traced.
tracedBy :: Maybe TraceNotes -> Flight -> IO Flight
tracedBy notes flight = do
  mapM_ noteRetried notes
  pure flight {flightNotes = notes}

-- | The flight of an EXEC, behind MULTI and the queued commands.
behindQueue :: [Request] -> Flight -> Flight
behindQueue queue flight = flight {flightQueue = map requestWhole queue}

-- | The progress of the current attempt.
data Phase
  = -- | The command has not been submitted since it began or since it last failed.
    Ashore
  | -- | The command has been submitted.
    Aboard
  | -- | The caller was told that the command was not sent, so it must not be sent.
    Cancelled
  deriving stock (Eq)

-- | A command that is about to be sent.
data Departure = Departure
  { departureCase :: CaseId,
    departureFlight :: Flight,
    departureDestination :: Destination,
    departureMode :: SendMode
  }

-- | Starts the worker, which sleeps until there is a command to recover.
newRecoverer :: Config -> Router -> TVar Bool -> IO Recoverer
newRecoverer recovererConfig recovererRouter recovererClosed = mask_ $ do
  recovererMail <- newTQueueIO
  recovererEnded <- newTVarIO False
  recovererOutboxes <- newIORef Map.empty
  recovererUnplaced <- newIORef 0
  recovererJitter <- newIORef (minBound, 0)
  let recoverer = Recoverer {recovererConfig, recovererRouter, recovererClosed, recovererMail, recovererEnded, recovererOutboxes, recovererUnplaced, recovererJitter}
  recoverer <$ spawn "redis recovery" (drive recoverer)

-- | Stops sending. Commands that have not left yet fail; commands on their way may still
-- be answered. Never blocks.
stopRecoverer :: Recoverer -> IO ()
stopRecoverer recoverer = void (post recoverer Stop)

-- | Deals with the outcome of a command's first attempt. Never blocks.
attend :: Recoverer -> Flight -> Destination -> Outcome -> IO ()
attend recoverer flight destination outcome =
  understood recoverer flight destination outcome >>= \case
    Right value -> conclude recoverer flight (Right value)
    Left failed | flightShortened flight && unknownScript failed -> sendWhole recoverer flight destination failed
    Left failed -> do
      now <- coarseNanos
      policy <- policyOf recoverer flight
      attempted <- failureAt recoverer destination Plainly failed
      let RetryDecision {decisionNext, decisionEffects, decisionSoFar} =
            decide policy (flightFacts flight) noAttempts attempted {failedRemaining = secondsLeft now (flightDeadline flight)}
      traverse_ (carryOut (recovererRouter recoverer) (deadlineBegan (flightDeadline flight))) decisionEffects
      case decisionNext of
        GiveUp final -> conclude recoverer flight (Left final)
        again -> enter recoverer flight (Enter (caseOf policy flight) {caseSoFar = decisionSoFar} again)

-- | Sends a script with its text to the node that did not know its digest. This does not
-- count as an attempt, because nothing has failed. After a replica the command takes its
-- usual route: any replica may get the text, and a node that is named counts as a primary.
sendWhole :: Recoverer -> Flight -> Destination -> Error -> IO ()
sendWhole recoverer flight destination failed = do
  closed <- readTVarIO (recovererClosed recoverer)
  policy <- policyOf recoverer flight
  if closed
    then conclude recoverer flight (Left failed)
    else enter recoverer flight (Enter (caseOf policy flight) (RetryNow target))
  where
    target = case destinationTakenFor destination of
      Primary -> ToNode (nodeEndpoint (destinationNode destination))
      Replica -> SameRoute

-- | Sends a command to its first destination. Blocks like 'submitRunToNode'.
depart :: Recoverer -> Flight -> Destination -> IO ()
depart recoverer flight destination = do
  submitFlight destination [] flight (attend recoverer flight destination)
  inQueue flight

-- | Notes that the command stands in the queue of a connection, if it is traced.
inQueue :: Flight -> IO ()
inQueue flight = for_ (flightNotes flight) $ \notes -> preciseNanos >>= noteEntered notes

-- | Hands over a command for which no node is known. The worker sends it as soon as a node
-- is known. Never blocks.
awaitDestination :: Recoverer -> Flight -> IO ()
awaitDestination recoverer flight = mask_ $ do
  -- Masked: a command that is counted and not handed over would hold all later ones back for ever.
  writeIORef (flightHolds flight) True
  atomicModifyIORef' (recovererUnplaced recoverer) (\count -> (count + 1, ()))
  policy <- policyOf recoverer flight
  failed <- nobodyFor (recovererRouter recoverer) (flightTarget flight) >>= failureNowhere recoverer
  enter recoverer flight (EnterUnplaced (caseOf policy flight) failed)

-- | Whether commands wait for a node to be known, so that a later command might overtake
-- them. \(O(1)\).
waitsForDestination :: Recoverer -> IO Bool
waitsForDestination recoverer = (> 0) <$> readIORef (recovererUnplaced recoverer)
{-# INLINE waitsForDestination #-}

enter :: Recoverer -> Flight -> Event Flight -> IO ()
enter recoverer flight event = do
  taken <- post recoverer event
  unless taken (conclude recoverer flight (Left ClientClosed))

-- | Posts an event to the worker. 'False' if the worker has ended.
post :: Recoverer -> Event Flight -> IO Bool
post recoverer event = atomically $ do
  ended <- readTVar (recovererEnded recoverer)
  unless ended (writeTQueue (recovererMail recoverer) event)
  pure (not ended)

caseOf :: RetryPolicy -> Flight -> Case Flight
caseOf policy flight =
  Case
    { casePayload = flight,
      caseFacts = flightFacts flight,
      caseSlot = slotOf (flightTarget flight),
      casePolicy = policy,
      caseSoFar = noAttempts,
      caseDeadline = flightDeadline flight
    }

-- | The bounds for a command with this target. A command for a named node follows no redirect.
-- Once the client is closed, as the last argument says, there is no further attempt.
policyFor :: Config -> Router -> Target -> Bool -> RetryPolicy
policyFor config router target closed =
  RetryPolicy
    { policyMaxAttempts = if closed then 0 else configMaxAttempts config,
      policyBackoff = configBackoff config,
      policyClustered = isFollowed router && not named,
      policyRedirected = not named,
      policyMapping = configAddressMapping config,
      policySlot = slotOf target
    }
  where
    named = case target of
      AtNode _ -> True
      _ -> False

-- | The bounds for a command that the recoverer has.
policyOf :: Recoverer -> Flight -> IO RetryPolicy
policyOf recoverer flight =
  policyFor (recovererConfig recoverer) (recovererRouter recoverer) (flightTarget flight) <$> readTVarIO (recovererClosed recoverer)

-- | The plain reply, or the error. Also records the node's health, and the attempt in the
-- command's notes.
understood :: Recoverer -> Flight -> Destination -> Outcome -> IO (Either Error Value)
understood recoverer flight destination outcome = do
  writeIORef (flightTried flight) (Just endpoint)
  for_ (flightNotes flight) (`noteAttempt` endpoint)
  case outcome of
    Reply value -> do
      let result = fromReply (flightFacts flight) (flightRequest flight) value
      result <$ either noteError (\_ -> pure ()) result
    Failure failed -> Left failed <$ (noteFailure router destination failed *> noteError failed)
  where
    router = recovererRouter recoverer
    endpoint = nodeEndpoint (destinationNode destination)
    noteError failed = do
      redirected <- countRedirect router destination failed
      for_ (flightNotes flight) $ \notes -> do
        when redirected (noteRedirect notes)
        preciseNanos >>= noteFailed notes

failureAt :: Recoverer -> Destination -> SendMode -> Error -> IO FailedAttempt
failureAt recoverer destination failedMode failedError = do
  failedRandom <- jitter recoverer
  pure
    FailedAttempt
      { failedError,
        failedNode = Just (nodeEndpoint (destinationNode destination)),
        failedRole = destinationTakenFor destination,
        failedMode,
        failedRemaining = Nothing,
        failedRandom
      }

-- | A number between 0 and 1, drawn anew every 10 ms: commands that failed together wait equally long,
-- or they would change their order.
jitter :: Recoverer -> IO Double
jitter recoverer = do
  now <- coarseNanos
  fresh <- randomRIO (0, 1)
  atomicModifyIORef' (recovererJitter recoverer) $ \(drawn, known) ->
    if drawn + 10000000 > now then ((drawn, known), known) else ((now, fresh), fresh)

-- | Releases the commands that this one has held back, then fills the result. In this
-- order, because a caller that has the result and submits its next command must find
-- nothing held back.
conclude :: Recoverer -> Flight -> Either Error Value -> IO ()
conclude recoverer flight result = do
  closed <- readTVarIO (recovererClosed recoverer)
  let final = case result of
        Left failed
          | closed && errorDelivery failed == NotSent -> Left ClientClosed
          | otherwise -> Left (named failed)
        Right value -> Right value
  tried <- readIORef (flightTried flight)
  letPass recoverer flight
  first <- tryPutMVar (flightResult flight) final
  when first (either (countFailure (recovererRouter recoverer) tried) (\_ -> pure ()) final)
  writeIORef (flightPhase flight) Cancelled
  where
    -- The server found keys of several slots where this client saw one. A script that says so may
    -- have written before.
    named = \case
      ReplyError ServerError {serverErrorCode = "CROSSSLOT", serverErrorDelivery = RefusedBeforeRun} ->
        RefusedError (CrossSlot (nameFromArguments (requestArguments begins)))
      other -> other
    -- A transaction goes by the name of MULTI.
    begins = fromMaybe (flightRequest flight) (listToMaybe (flightQueue flight))

-- | Releases the commands that this one has held back.
letPass :: Recoverer -> Flight -> IO ()
letPass recoverer flight = do
  held <- atomicModifyIORef' (flightHolds flight) ((,) False)
  when held $ atomicModifyIORef' (recovererUnplaced recoverer) (\count -> (count - 1, ()))

-- | Changes the phase if it is the first one given, and returns whether it was.
changePhase :: Flight -> Phase -> Phase -> IO Bool
changePhase flight from to =
  atomicModifyIORef' (flightPhase flight) (\before -> if before == from then (to, True) else (before, False))

-- | The worker's thread: waits for events or until a case is due, steps, acts.
drive :: Recoverer -> IO ()
drive recoverer = do
  seen <- atomically (routerNews router)
  loop seen newRecovery
  where
    router = recovererRouter recoverer

    -- The first argument counts the news as of before the current cases looked for a node:
    -- a different count means that there is news for them.
    loop seen recovery = do
      events <- nextEvents seen recovery
      current <- atomically (routerNews router)
      let news = [News | current /= seen, recoverySeeking recovery]
      settled <- advance recoverer (news <> events) recovery
      over <- atomically $ do
        idle <- isEmptyTQueue (recovererMail recoverer)
        let over = idle && recoveryIsOver settled
        over <$ when over (writeTVar (recovererEnded recoverer) True)
      unless over (loop current settled)

    -- The events of the mailbox; none if there is news, and a tick if neither comes in time.
    nextEvents seen recovery = do
      due <- expiryAt (fromMaybe never (recoveryWake recovery))
      let fromMail = flushTQueue (recovererMail recoverer) >>= \events -> events <$ check (not (null events))
          fromRouter = do
            check (recoverySeeking recovery)
            current <- routerNews router
            [] <$ check (current /= seen)
      atomically (fromMail `orElse` fromRouter `orElse` ([Tick] <$ due))

-- | Steps through the events, and through those that the actions cause at once.
advance :: Recoverer -> [Event Flight] -> Recovery Flight -> IO (Recovery Flight)
advance recoverer events recovery = do
  now <- coarseNanos
  let (stepped, actions) = List.mapAccumL (flip (step now)) recovery events
  further <- perform recoverer (concat actions)
  if null further then pure stepped else advance recoverer further stepped

-- | Carries actions out. Commands for the same destination are launched together.
perform :: Recoverer -> [Action Flight] -> IO [Event Flight]
perform recoverer actions = do
  uncovered <- newUncoveredSlots
  outcomes <- traverse (one uncovered) actions
  let leaving = [departure | Just (Right departure) <- outcomes]
  for_ (Map.toList (Map.fromListWith (flip (<>)) [(destinationOf departure, Seq.singleton departure) | departure <- leaving])) $
    uncurry (launch recoverer)
  pure [event | Just (Left event) <- outcomes]
  where
    router = recovererRouter recoverer

    one uncovered = \case
      Send number flight target -> Just <$> leave uncovered number flight target
      Finish flight failed -> Nothing <$ conclude recoverer flight (Left failed)
      Perform flight effect -> Nothing <$ carryOut router (deadlineBegan (flightDeadline flight)) effect
      Expire flight unsent sent -> do
        ashore <- changePhase flight Ashore Cancelled
        Nothing <$ conclude recoverer flight (Left (if ashore then unsent else sent))

    leave uncovered number flight target = do
      void (changePhase flight Aboard Ashore)
      found <- case target of
        SameRoute -> lookUp (flightFacts flight)
        PrimaryRoute -> lookUp (flightFacts flight) {factReadOnly = False}
        ToNode endpoint -> Right <$> destinationAt router (flightFacts flight) endpoint
        AskingNode endpoint -> Right <$> destinationAt router (flightFacts flight) endpoint
      case found of
        Right (Right departureDestination) ->
          pure (Right Departure {departureCase = number, departureFlight = flight, departureDestination, departureMode = manner target})
        Right (Left failed) -> Left . Failed number <$> failureNowhere recoverer failed
        Left () -> do
          permanent <- nobodyIsPermanent router
          unless permanent (missedNode router (flightTarget flight))
          Left . (if permanent then Failed else Unplaced) number <$> (nobodyFor router (flightTarget flight) >>= failureNowhere recoverer)
      where
        lookUp facts =
          maybe (Left ()) (Right . Right)
            <$> unlessUncovered uncovered (slotOf (flightTarget flight)) (destinationFor router facts (flightTarget flight))

    manner = \case
      AskingNode _ -> WithAsking
      _ -> Plainly

    destinationOf departure = (nodeEndpoint (destinationNode (departureDestination departure)), destinationRole (departureDestination departure))

failureNowhere :: Recoverer -> Error -> IO FailedAttempt
failureNowhere recoverer failedError = do
  failedRandom <- jitter recoverer
  pure FailedAttempt {failedError, failedNode = Nothing, failedRole = Primary, failedMode = Plainly, failedRemaining = Nothing, failedRandom}

-- | Adds commands to a node's outbox, and starts a thread for it if none runs.
launch :: Recoverer -> ResendKey -> Seq Departure -> IO ()
launch recoverer key departures = do
  first <- atomicModifyIORef' outboxes $ \known -> case Map.lookup key known of
    Nothing -> (Map.insert key departures known, True)
    Just waiting -> (Map.insert key (waiting <> departures) known, False)
  when first . void $ spawn ("redis resend " <> renderEndpoint (fst key)) work
  where
    outboxes = recovererOutboxes recoverer

    work = do
      batch <- atomicModifyIORef' outboxes $ \known -> case Map.lookup key known of
        Just waiting | not (Seq.null waiting) -> (Map.insert key Seq.empty known, waiting)
        _ -> (Map.delete key known, Seq.empty)
      unless (Seq.null batch) $ do
        for_ (Seq.lookup 0 batch) $ \departure -> do
          connected <- try (connectNode (poolOf (departureDestination departure)))
          case connected of
            Right (Right ()) -> traverse_ (submit recoverer) batch
            Right (Left failed) -> traverse_ (unsent failed) batch
            Left (problem :: SomeException) ->
              traverse_ (unsent (ConnectionError (ConnectionFailure "" NotSent (fst key) (ConnectFailed (displayException problem))))) batch
        work

    unsent failed departure = arrived recoverer departure (Failure failed)

poolOf :: Destination -> MultiplexPool
poolOf destination = nodePoolFor (destinationRole destination) (destinationNode destination)

-- | Submits a command once more, unless its caller has been told that it was not sent.
submit :: Recoverer -> Departure -> IO ()
submit recoverer departure = do
  wanted <- changePhase flight Ashore Aboard
  when wanted $ do
    tried <- readIORef (flightTried flight)
    unless (isNothing tried) (countOne (nodeCounters (destinationNode (departureDestination departure))) CommandsResent)
    asking <- case departureMode departure of
      Plainly -> pure []
      -- An error reply to ASKING needs no look: the command's own reply shows it, too.
      WithAsking -> (\beside -> [(request ["ASKING"], beside)]) <$> newResponseSlot
    -- Before it is sent: its caller may read the notes as soon as there is a reply.
    inQueue flight
    submitFlight (departureDestination departure) asking flight (arrived recoverer departure)
  letPass recoverer flight
  where
    flight = departureFlight departure

-- | Submits a command with the requests ahead of it. The action gets the outcome.
submitFlight :: Destination -> [(Request, ResponseSlot)] -> Flight -> (Outcome -> IO ()) -> IO ()
submitFlight destination ahead flight act = do
  queue <- traverse (\each -> (,) each <$> newResponseSlot) (flightQueue flight)
  slot <- onArrival (resultOfQueue queue >=> act) >>= newAttendedSlot
  now <- coarseNanos
  let deadline = attemptDeadline destination (flightTarget flight) now (flightDeadline flight)
  case ahead <> queue of
    [] -> submitToNodeSlot (poolOf destination) deadline (flightRequest flight) slot
    run -> submitRunToNode (poolOf destination) deadline (run <> [(flightRequest flight, slot)])

-- | The outcome of EXEC, given MULTI and the queued commands with their slots, all of which
-- are filled before EXEC's.
--
-- A server that refused to queue a command answers EXECABORT at the end; the reason stands
-- in the reply to that command. A server that refused MULTI ran the commands as they came, unless
-- it turned each of them away, too, for example because it has forgotten who the client is.
resultOfQueue :: [(Request, ResponseSlot)] -> Outcome -> IO Outcome
resultOfQueue [] outcome = pure outcome
resultOfQueue ((_, multi) : queue) outcome = do
  begun <- refusal <$> trySlotResult multi
  refusals <- map refusal <$> traverse (trySlotResult . snd) queue
  pure $ case (outcome, begun, [(position, asked, text) | (position, (asked, _), Just text) <- zip3 [1 ..] queue refusals]) of
    (_, Just text, _)
      | all (maybe False turnsAway) refusals -> Reply (ErrorReply text)
      | otherwise -> Failure (ReplyError (serverErrorFromText text) {serverErrorDelivery = MaybeExecuted})
    (Reply reply, _, (position, asked, text) : _)
      | ErrorReply _ <- withoutAttributes reply ->
        Failure . withLabel (shownPart position (length queue) (argumentsLabel (requestArguments asked))) $
          ReplyError (serverErrorFromText text) {serverErrorDelivery = RefusedBeforeRun}
    _ -> outcome
  where
    refusal = \case
      Just (Reply reply) | ErrorReply text <- withoutAttributes reply -> Just text
      _ -> Nothing
    turnsAway text = serverErrorDelivery (serverErrorFromText text) == RefusedBeforeRun

-- | Deals with the outcome of a command that was sent again. Runs on a thread of the connection.
arrived :: Recoverer -> Departure -> Outcome -> IO ()
arrived recoverer Departure {departureCase, departureFlight, departureDestination, departureMode} outcome =
  understood recoverer departureFlight departureDestination outcome >>= \case
    Right value -> do
      conclude recoverer departureFlight (Right value)
      void (post recoverer (Answered departureCase))
    Left failed -> do
      taken <- failureAt recoverer departureDestination departureMode failed >>= post recoverer . Failed departureCase
      unless taken (conclude recoverer departureFlight (Left failed))
