-- | Carries out the decisions of "Redis.Internal.Routing.RetryQueue" for all commands of a
-- client. One thread moves the retries. Each node that commands are on their way to has a
-- thread that sends them, so a dead node does not delay the commands for other nodes.
--
-- Commands that failed together are sent again together, in the order in which they
-- failed, whether or not a caller waits for them.
--
-- Commands that need connections of their own (the server may keep them waiting, or their effect on
-- their connection is not known) go the same way. But a thread waits for each of them, and makes the
-- attempt itself: it holds the connection, so if it is interrupted, the connection is closed and the
-- server forgets the command.
--
-- @RetryStage@ says where a retry is. Of a 'Call', 'callPhase' only settles the race between sending the
-- command and telling its caller that it was not sent, 'callHolds' keeps later commands back, and
-- 'callTurn' hands an attempt to the thread that waits.
module Redis.Internal.Client.RetryEngine
  ( RetryEngine,
    newRetryEngine,
    stopRetryEngine,
    Call,
    newCall,
    behindQueue,
    tracedBy,
    policyFor,
    onFailure,
    sendCall,
    runOnOwn,
    awaitDestination,
    waitsForDestination,
  )
where

import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception (SomeException, displayException, mask_, onException, try)
import Control.Monad (unless, void, when, (>=>))
import Data.Bifunctor (first)
import Data.Foldable (for_, traverse_)
import Data.IORef
import Data.IntMap.Strict (IntMap)
import Data.IntMap.Strict qualified as IntMap
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
import Redis.Internal.Network.Counters (Count (CommandsResent), countOne)
import Redis.Internal.Network.Dedicated (Condition (..), withLease)
import Redis.Internal.Network.Handshake (ConnectionRole)
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.MultiplexPool
import Redis.Internal.Network.Multiplexer (submitRunTo, termsUntil)
import Redis.Internal.Network.Open (commandLimit)
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.CommandTable (nameFromArguments)
import Redis.Internal.Protocol.Encode (Request, request, requestArguments, requestIsShortened, requestWhole)
import Redis.Internal.Protocol.Redirect (Redirect (Unauthenticated), parseRedirect)
import Redis.Internal.Routing.Cluster
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.RetryPolicy
import Redis.Internal.Routing.RetryQueue
import Redis.Internal.Routing.Router
import Redis.Internal.Routing.Target
import Redis.Value
import System.Random (randomRIO)

data RetryEngine = RetryEngine
  { engineConfig :: Config,
    engineCluster :: ClusterClient,
    -- | Whether the client is closed.
    engineClosed :: TVar Bool,
    engineMail :: TQueue (Event Call),
    -- | Set when the worker's thread has ended; no event is accepted after that.
    engineEnded :: TVar Bool,
    -- | The commands on their way to each node while a thread sends them.
    engineResendQueues :: IORef (Map ResendKey (Seq Resend)),
    -- | By thread, how many of its commands found no known node and have not been sent since.
    engineUnplaced :: TVar (IntMap Int),
    -- | The number between 0 and 1 that was drawn last, and when ('jitter').
    engineJitter :: IORef (Nanos, Double)
  }

type ResendKey = (Endpoint, ConnectionRole)

data Call = Call
  { -- | The requests that go ahead of the command, with nothing in between: MULTI and the
    -- queued commands if this is EXEC.
    callQueue :: [Request],
    -- | The request in its long form: a command that is sent again is sent whole.
    callRequest :: Request,
    -- | Whether the first attempt sent a short form, which a server may not know.
    callShortened :: Bool,
    callFacts :: Facts,
    callTarget :: Target,
    callDeadline :: Deadline,
    -- | The cell for the result.
    callResult :: MVar (Either Error Value),
    callPhase :: IORef Phase,
    -- | The thread whose later commands to its slot must not overtake this one: no node was known when it began,
    -- and it has not been submitted since.
    callHolds :: IORef (Maybe OrderKey),
    -- | The node of the last attempt.
    callTried :: IORef (Maybe Endpoint),
    -- | The notes for the hook that traces the command, if there is one.
    callNotes :: Maybe TraceNotes,
    -- | Where the caller's thread hears that it is to make an attempt, if the command needs connections
    -- of its own.
    callTurn :: Maybe (TVar Turn)
  }

-- | The next thing for a thread that makes the attempts of its command.
data Turn
  = -- | It waits.
    NoTurn
  | -- | It makes this attempt.
    Attempt Resend
  | -- | The result is there.
    Ended
  | -- | The thread was interrupted: nobody makes an attempt any more.
    Abandoned

-- | A command that failed or found no node, before it is sent again. The cell is for its
-- result.
newCall :: Request -> Facts -> Target -> Deadline -> MVar (Either Error Value) -> IO Call
newCall asSent facts target deadline result = do
  withCells <- Call [] (requestWhole asSent) (requestIsShortened asSent) facts target deadline result <$> newIORef Unsent <*> newIORef Nothing <*> newIORef Nothing
  pure (withCells Nothing Nothing)

-- | The call with the notes for a trace, if the command is traced.
tracedBy :: Maybe TraceNotes -> Call -> IO Call
tracedBy notes call = do
  mapM_ noteRetried notes
  pure call {callNotes = notes}

-- | The call of an EXEC, behind MULTI and the queued commands.
behindQueue :: [Request] -> Call -> Call
behindQueue queue call = call {callQueue = map requestWhole queue}

-- | The progress of the current attempt.
data Phase
  = -- | The command has not been submitted since it began or since it last failed.
    Unsent
  | -- | The command has been submitted.
    Sent
  | -- | The caller was told that the command was not sent, so it must not be sent.
    Cancelled
  deriving stock (Eq)

-- | A command that is about to be sent.
data Resend = Resend
  { resendRetry :: RetryId,
    resendCall :: Call,
    resendDestination :: Destination,
    -- | Whether ASKING goes ahead.
    resendAsking :: Bool
  }

-- | Starts the worker, which sleeps until there is a command to recover.
newRetryEngine :: Config -> ClusterClient -> TVar Bool -> IO RetryEngine
newRetryEngine config cluster closed = mask_ $ do
  engine <- RetryEngine config cluster closed <$> newTQueueIO <*> newTVarIO False <*> newIORef Map.empty <*> newTVarIO IntMap.empty <*> newIORef (minBound, 0)
  engine <$ spawn "redis recovery" (drive engine)

-- | Stops sending. Commands that have not left yet fail; commands on their way may still
-- be answered. Never blocks.
stopRetryEngine :: RetryEngine -> IO ()
stopRetryEngine engine = void (post engine Stop)

-- | Deals with the outcome of a command's first attempt. Never blocks.
onFailure :: RetryEngine -> Call -> Destination -> Outcome -> IO ()
onFailure engine call destination outcome =
  understood engine call destination outcome >>= \case
    Right value -> conclude engine call (Right value)
    Left failed | callShortened call && unknownScript failed -> sendWhole engine call destination failed
    Left failed -> do
      now <- coarseNanos
      policy <- policyOf engine call
      attempted <- failureAt engine (Just destination) failed
      let RetryDecision {decisionNext, decisionEffects, decisionSoFar} =
            decide policy (callFacts call) noAttempts attempted {failedRemaining = secondsLeft now (callDeadline call)}
      traverse_ (carryOut (engineCluster engine) (deadlineBegan (callDeadline call))) decisionEffects
      case decisionNext of
        GiveUp final -> conclude engine call (Left final)
        again -> enter engine call (Enter (retryStateOf engine policy call) {retrySoFar = decisionSoFar} again)

-- | Sends a script with its text to the node that did not know its digest. This does not
-- count as an attempt, because nothing has failed. After a replica the command takes its
-- usual route: any replica may get the text, and a node that is named counts as a primary.
sendWhole :: RetryEngine -> Call -> Destination -> Error -> IO ()
sendWhole engine call destination failed = do
  closed <- readTVarIO (engineClosed engine)
  policy <- policyOf engine call
  if closed
    then conclude engine call (Left failed)
    else enter engine call (Enter (retryStateOf engine policy call) (RetryNow target))
  where
    target = case destinationTakenFor destination of
      Primary -> ToNode (nodeEndpoint (destinationNode destination))
      Replica -> callTarget call

-- | Sends a command to its first destination. Blocks like 'submitRunToNode'.
sendCall :: RetryEngine -> Call -> Destination -> IO ()
sendCall engine call destination = do
  submitCall GoesOn destination [] call (onFailure engine call destination)
  inQueue call

-- | Notes that the command stands in the queue of a connection, if it is traced.
inQueue :: Call -> IO ()
inQueue call = for_ (callNotes call) $ \notes -> preciseNanos >>= noteEntered notes

-- | Hands over a command of this thread for which no node is known. The worker sends it as soon as a
-- node is known. Never blocks.
awaitDestination :: RetryEngine -> IO OrderKey -> Call -> IO ()
awaitDestination engine findThread call = mask_ $ do
  -- Masked: a command that is counted and not handed over would hold all later ones back for ever.
  thread <- findThread
  writeIORef (callHolds call) (Just thread)
  atomically (modifyTVar' (engineUnplaced engine) (IntMap.insertWith (+) thread 1))
  enterUnplaced engine call

-- | Like 'awaitDestination', for a command that holds back none.
enterUnplaced :: RetryEngine -> Call -> IO ()
enterUnplaced engine call = do
  policy <- policyOf engine call
  failed <- nobodyFor (engineCluster engine) (callTarget call) >>= failureAt engine Nothing
  enter engine call (EnterUnplaced (retryStateOf engine policy call) failed)

-- | Whether commands of this thread wait for a node to be known, so that a later one might overtake
-- them. \(O(1)\) if no command of any thread does, otherwise \(O(\log n)\) in the threads whose commands do. Blocks while as many of
-- them wait as a connection holds, until all have been sent, at most until the later one's deadline: a thread that
-- submits faster than the worker sends would wait behind its own commands for ever.
waitsForDestination :: RetryEngine -> IO OrderKey -> Deadline -> IO Bool
waitsForDestination engine findThread deadline = do
  unplaced <- readTVarIO (engineUnplaced engine)
  if IntMap.null unplaced then pure False else findThread >>= waitsBehind engine deadline
{-# INLINE waitsForDestination #-}

waitsBehind :: RetryEngine -> Deadline -> OrderKey -> IO Bool
waitsBehind engine deadline thread = do
  count <- atomically countNow
  if count < limitInFlight (configLimits (engineConfig engine))
    then pure (count > 0)
    else do
      over <- expiryAt (deadlineAt deadline)
      atomically ((False <$ (countNow >>= check . (== 0))) `orElse` (True <$ over))
  where
    countNow = IntMap.findWithDefault 0 thread <$> readTVar (engineUnplaced engine)

enter :: RetryEngine -> Call -> Event Call -> IO ()
enter engine call event = do
  taken <- post engine event
  unless taken (conclude engine call (Left ClientClosed))

-- | Posts an event to the worker. 'False' if the worker has ended.
post :: RetryEngine -> Event Call -> IO Bool
post engine event = atomically $ do
  ended <- readTVar (engineEnded engine)
  unless ended (writeTQueue (engineMail engine) event)
  pure (not ended)

retryStateOf :: RetryEngine -> RetryPolicy -> Call -> RetryState Call
retryStateOf engine policy call =
  RetryState
    { retryPayload = call,
      retryFacts = callFacts call,
      retryPolicy = policy,
      retrySoFar = noAttempts,
      retryDeadline = callDeadline call,
      retrySearch = deadlineLimit (sendingDeadline engine call 0)
    }

-- | When an attempt that begins at this time must have been sent, whatever the deadline is: it waits for
-- a node, for its turn and for a connection no longer than a command may take that does not wait on the
-- server.
sendingDeadline :: RetryEngine -> Call -> Nanos -> Deadline
sendingDeadline engine call = ownDeadline (commandLimit (engineConfig engine)) (callFacts call)

-- | The bounds for a command with this target. Once the client is closed, as the last argument says,
-- there is no further attempt.
policyFor :: Config -> ClusterClient -> Target -> Bool -> RetryPolicy
policyFor config cluster target closed =
  RetryPolicy
    { policyMaxAttempts = if closed then 0 else configMaxAttempts config,
      policyBackoff = configBackoff config,
      policyFollowed = isFollowed cluster,
      policyMapping = configAddressMapping config,
      policyTarget = target
    }

policyOf :: RetryEngine -> Call -> IO RetryPolicy
policyOf engine call =
  policyFor (engineConfig engine) (engineCluster engine) (callTarget call) <$> readTVarIO (engineClosed engine)

-- | The plain reply, or the error. Also records the node's health, and the attempt in the
-- command's notes.
understood :: RetryEngine -> Call -> Destination -> Outcome -> IO (Either Error Value)
understood engine call destination outcome = do
  writeIORef (callTried call) (Just endpoint)
  for_ (callNotes call) (`noteAttempt` endpoint)
  case outcome of
    Reply value -> do
      let result = fromReply (factInfo (callFacts call)) (callRequest call) value
      result <$ either noteError (\_ -> pure ()) result
    Failure failed -> Left failed <$ (noteFailure cluster destination failed *> noteError failed)
  where
    cluster = engineCluster engine
    endpoint = nodeEndpoint (destinationNode destination)
    noteError failed = do
      redirected <- countRedirect cluster destination failed
      for_ (callNotes call) $ \notes -> do
        when redirected (noteRedirect notes)
        preciseNanos >>= noteFailed notes

-- | A failure at this destination, if one was found.
failureAt :: RetryEngine -> Maybe Destination -> Error -> IO FailedAttempt
failureAt engine found failedError = do
  failedRandom <- jitter engine
  pure
    FailedAttempt
      { failedError,
        failedNode = nodeEndpoint . destinationNode <$> found,
        failedRole = maybe Primary destinationTakenFor found,
        failedRemaining = Nothing,
        failedRandom
      }

-- | A number between 0 and 1, drawn anew every 10 ms: commands that failed together wait equally long,
-- or they would change their order.
jitter :: RetryEngine -> IO Double
jitter engine = do
  now <- coarseNanos
  fresh <- randomRIO (0, 1)
  atomicModifyIORef' (engineJitter engine) $ \(drawn, known) ->
    if drawn + 10000000 > now then ((drawn, known), known) else ((now, fresh), fresh)

-- | Releases the commands that this one has held back, then fills the result: a caller that has it
-- and submits its next command must find nothing held back.
conclude :: RetryEngine -> Call -> Either Error Value -> IO ()
conclude engine call result = do
  closed <- readTVarIO (engineClosed engine)
  let final = first (\failed -> if closed && errorDelivery failed == NotSent then ClientClosed else named failed) result
  tried <- readIORef (callTried call)
  releaseHeld engine call
  isFirst <- tryPutMVar (callResult call) final
  when isFirst (either (countFailure (engineCluster engine) tried) (\_ -> pure ()) final)
  writeIORef (callPhase call) Cancelled
  for_ (callTurn call) $ \turn -> atomically (writeTVar turn Ended)
  where
    -- The server found keys of several slots where this client saw one. A script that says so may
    -- have written before.
    named = \case
      ReplyError ServerError {serverErrorCode = "CROSSSLOT", serverErrorDelivery = RefusedBeforeRun} ->
        RefusedError (CrossSlot (nameFromArguments (requestArguments begins)))
      other -> other
    -- A transaction goes by the name of MULTI.
    begins = fromMaybe (callRequest call) (listToMaybe (callQueue call))

releaseHeld :: RetryEngine -> Call -> IO ()
releaseHeld engine call = do
  held <- atomicModifyIORef' (callHolds call) ((,) Nothing)
  for_ held $ \thread -> atomically (modifyTVar' (engineUnplaced engine) (IntMap.update oneFewer thread))
  where
    oneFewer count = if count > 1 then Just (count - 1) else Nothing

-- | Changes the phase if it is the first one given, and returns whether it was.
changePhase :: Call -> Phase -> Phase -> IO Bool
changePhase call from to =
  atomicModifyIORef' (callPhase call) (\before -> if before == from then (to, True) else (before, False))

-- | The worker's thread: waits for events or until a retry is due, steps, acts.
drive :: RetryEngine -> IO ()
drive engine = do
  news <- readTVarIO (clusterNews cluster)
  snapshot <- readIORef (clusterSnapshot cluster)
  loop (news, snapshotName snapshot) newRetryQueue
  where
    cluster = engineCluster engine

    -- The first argument has the count of news and the snapshot of before the current retries looked for a node:
    -- others mean that there is news for them. A snapshot is there before its news, so it is read afterwards.
    loop seen queue = do
      events <- nextEvents (fst seen) queue
      news <- readTVarIO (clusterNews cluster)
      snapshot <- readIORef (clusterSnapshot cluster)
      let current = (news, snapshotName snapshot)
      settled <- advance engine snapshot ([News | current /= seen, retryQueueSeeking queue] <> events) queue
      over <- atomically $ do
        idle <- isEmptyTQueue (engineMail engine)
        let over = idle && retryQueueIsOver settled
        over <$ when over (writeTVar (engineEnded engine) True)
      unless over (loop current settled)

    -- The events of the mailbox; none if there is news, and a tick if neither comes in time.
    nextEvents seen queue = do
      due <- expiryAt (fromMaybe never (retryQueueWake queue))
      let fromMail = flushTQueue (engineMail engine) >>= \events -> events <$ check (not (null events))
          fromRouter = do
            check (retryQueueSeeking queue)
            current <- readTVar (clusterNews cluster)
            [] <$ check (current /= seen)
      atomically (fromMail `orElse` fromRouter `orElse` ([Tick] <$ due))

-- | Steps through the events, and through those that the actions cause at once, by one snapshot of the map.
advance :: RetryEngine -> Snapshot -> [Event Call] -> RetryQueue Call -> IO (RetryQueue Call)
advance engine snapshot events queue = do
  now <- coarseNanos
  let (stepped, actions) = List.mapAccumL (flip (step now)) queue events
  further <- perform engine snapshot (concat actions)
  if null further then pure stepped else advance engine snapshot further stepped

-- | Carries actions out. Commands for the same destination are launched together.
perform :: RetryEngine -> Snapshot -> [Action Call] -> IO [Event Call]
perform engine snapshot actions = do
  (events, leaving) <- mconcat <$> traverse one actions
  for_ (Map.toList (Map.fromListWith (flip (<>)) [(resendKeyOf resend, Seq.singleton resend) | resend <- leaving])) $
    uncurry (launch engine)
  pure events
  where
    cluster = engineCluster engine

    one = \case
      Send number call target -> leave number call target
      Finish call failed -> mempty <$ conclude engine call (Left failed)
      Perform call effect -> mempty <$ carryOut cluster (deadlineBegan (callDeadline call)) effect
      Expire call unsent sent -> do
        cancelled <- changePhase call Unsent Cancelled
        mempty <$ conclude engine call (Left (if cancelled then unsent else sent))

    leave number call target = do
      void (changePhase call Sent Unsent)
      destinationIn cluster snapshot (callFacts call) target >>= \case
        Just resendDestination -> do
          let resend = Resend {resendRetry = number, resendCall = call, resendDestination, resendAsking = needsAsking target}
          maybe (pure ([], [resend])) (handOver resend) (callTurn call)
        Nothing -> do
          permanent <- newsIsPermanent cluster
          unless permanent (missedNode cluster target)
          (\failed -> ([(if permanent then Failed else Unplaced) number failed], [])) <$> (nobodyFor cluster target >>= failureAt engine Nothing)

    handOver resend turn =
      atomically $
        readTVar turn >>= \case
          Abandoned -> pure ([Answered (resendRetry resend)], [])
          _ -> mempty <$ writeTVar turn (Attempt resend)

    resendKeyOf resend = (nodeEndpoint (destinationNode (resendDestination resend)), destinationRole (resendDestination resend))

-- | Adds commands to a node's resend queue, and starts a thread for it if none runs.
launch :: RetryEngine -> ResendKey -> Seq Resend -> IO ()
launch engine key resends = do
  isFirst <- atomicModifyIORef' queues (\known -> (Map.insertWith (flip (<>)) key resends known, Map.notMember key known))
  when isFirst . void $ spawn ("redis resend " <> renderEndpoint (fst key)) work
  where
    queues = engineResendQueues engine

    work = do
      batch <- atomicModifyIORef' queues $ \known -> case Map.lookup key known of
        Just waiting | not (Seq.null waiting) -> (Map.insert key Seq.empty known, waiting)
        _ -> (Map.delete key known, Seq.empty)
      unless (Seq.null batch) $ do
        for_ (Seq.lookup 0 batch) $ \resend -> do
          connected <- try (connectNode (destinationPool (resendDestination resend)))
          case either (Left . thrown) id connected of
            Right () -> traverse_ (submit engine) batch
            Left failed -> for_ batch $ \one -> arrived engine one (Failure failed)
        work

    thrown (problem :: SomeException) = ConnectionError (ConnectionFailure "" NotSent (fst key) (ConnectFailed (displayException problem)))

-- | Submits a command once more, unless its caller has been told that it was not sent.
submit :: RetryEngine -> Resend -> IO ()
submit engine resend = do
  wanted <- isWanted call (resendDestination resend)
  when wanted $ do
    asking <- askingFor (resendAsking resend)
    held <- readIORef (callHolds call)
    submitCall (maybe GoesOn GoesOnFor held) (resendDestination resend) asking call (arrived engine resend)
  releaseHeld engine call
  where
    call = resendCall resend

-- | Whether a command is still to be sent. From now on it counts as sent.
isWanted :: Call -> Destination -> IO Bool
isWanted call destination = do
  wanted <- changePhase call Unsent Sent
  when wanted $ do
    tried <- readIORef (callTried call)
    unless (isNothing tried) (countOne (nodeCounters (destinationNode destination)) CommandsResent)
    -- Before it is sent: its caller may read the notes as soon as there is a reply.
    inQueue call
  pure wanted

-- | The request that goes ahead of a command at the node that ASK named. An error reply to it needs no
-- look: the command's own reply shows it, too.
askingFor :: Bool -> IO [(Request, ResponseSlot)]
askingFor asks = sequence [(,) (request ["ASKING"]) <$> newResponseSlot | asks]

-- | Submits a command with the requests ahead of it. The action gets the outcome.
submitCall :: Submitter -> Destination -> [(Request, ResponseSlot)] -> Call -> (Outcome -> IO ()) -> IO ()
submitCall submitter destination ahead call act = do
  queue <- traverse (\each -> (,) each <$> newResponseSlot) (callQueue call)
  slot <- newTellingSlot (resultOfQueue queue >=> act)
  now <- coarseNanos
  let deadline = attemptDeadline destination (isNamed (callTarget call)) now (callDeadline call)
  case ahead <> queue of
    [] -> submitAs submitter (destinationPool destination) deadline (callRequest call) slot
    run -> submitRunToNode submitter (destinationPool destination) deadline (run <> [(callRequest call, slot)])

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
arrived :: RetryEngine -> Resend -> Outcome -> IO ()
arrived engine Resend {resendRetry, resendCall, resendDestination} outcome =
  understood engine resendCall resendDestination outcome >>= \case
    Right value -> do
      conclude engine resendCall (Right value)
      void (post engine (Answered resendRetry))
    Left failed -> do
      taken <- failureAt engine (Just resendDestination) failed >>= post engine . Failed resendRetry
      unless taken (conclude engine resendCall (Left failed))

-- | Runs a command on connections of its own, given the request of the first attempt, those of later
-- attempts by the seconds that have passed since the command began, and the first destination, if one is
-- known. Makes the attempts itself; blocks until there is a result.
runOnOwn :: RetryEngine -> Call -> Request -> (Double -> Request) -> Maybe Destination -> IO (Either Error Value)
runOnOwn engine called firstRequest laterRequest destination = do
  turn <- newTVarIO NoTurn
  let call = called {callTurn = Just turn}
      attempts =
        atomically (readTVar turn >>= \case NoTurn -> retry; next -> pure next) >>= \case
          Attempt resend -> do
            outcome <- attemptOn engine call laterRequest (resendDestination resend) (resendAsking resend)
            mask_ (atomically (modifyTVar' turn made) *> arrived engine resend outcome)
            attempts
          _ -> readMVar (callResult call)
  (`onException` abandon turn) $ do
    case destination of
      Just known -> attemptOn engine call (const firstRequest) known False >>= onFailure engine call known
      -- It may wait for its connection for long, so it holds back none.
      Nothing -> mask_ (enterUnplaced engine call)
    attempts
  where
    -- Its time may be over meanwhile.
    made = \case
      Attempt _ -> NoTurn
      other -> other
    abandon turn =
      atomically (swapTVar turn Abandoned) >>= \case
        Attempt resend -> void (post engine (Answered (resendRetry resend)))
        _ -> pure ()

-- | Makes an attempt on a lent connection, with a request that depends on the seconds that have passed
-- since the command began, behind ASKING or not. Blocks until there is an outcome; if it is interrupted,
-- the connection is closed.
attemptOn :: RetryEngine -> Call -> (Double -> Request) -> Destination -> Bool -> IO Outcome
attemptOn engine call requestAfter destination asks = do
  for_ (callNotes call) (`noteTarget` nodeEndpoint (destinationNode destination))
  sendBy <- sendingDeadline engine call <$> coarseNanos
  leased <- withLease (nodeDedicated (destinationNode destination)) sendBy {deadlineAt = min (deadlineAt sendBy) (deadlineAt deadline)} $ \mux -> do
    now <- coarseNanos
    wanted <- isWanted call destination
    if wanted
      then do
        asking <- askingFor asks
        slot <- newResponseSlot
        submitRunTo mux (termsUntil deadline) (asking <> [(requestAfter (secondsFromNanos (now - deadlineBegan deadline)), slot)])
        outcome <- waitSlotResult slot
        pure (outcome, conditionAfter call outcome)
      else pure (Failure (timedOut NotSent deadline), Clean)
  pure (either Failure id leased)
  where
    deadline = callDeadline call

-- | The condition in which a command leaves its own connection. A server that has forgotten who the
-- client is would tell the next caller so, too. A reply that did not come in time may still come. The
-- effect of some commands on their connection is not known, unless the server does not know them.
conditionAfter :: Call -> Outcome -> Condition
conditionAfter call = \case
  Failure _ -> Spoilt
  Reply value -> case withoutAttributes value of
    ErrorReply text
      | parseRedirect refused == Just Unauthenticated -> Spoilt
      | isUnknownCommand (callRequest call) refused -> Clean
      where
        refused = serverErrorFromText text
    _ | factScope (callFacts call) == OwnConnection -> Spoilt
    _ -> Clean
