{-# LANGUAGE GADTs #-}

-- | Runs one command to its end.
--
-- The ordinary path is short: one look-up, one submit, one decode. A command that fails is
-- handed to "Redis.Internal.Client.RetryEngine", for whose result its caller then waits. Commands that
-- need more (several nodes, connections of their own, a server that must be asked for their keys) are
-- kept off this path.
module Redis.Internal.Client.Execute
  ( execute,
    executeFrom,
    executeTraced,
    start,
    startFrom,
    startTraced,
    runTraced,
    untraced,
    toItsEnd,
    Pending,
    awaitStarted,
    resultIn,
    resultOf,
    heldOpen,
    settled,
    onConnection,
    outcomeOf,
    replyTo,
    traced,
    learned,
  )
where

import Control.Applicative ((<|>))
import Control.Concurrent.MVar
import Control.Exception (SomeException, mask, mask_, onException, throwIO, try)
import Control.Monad (filterM, forM, void, when, (>=>))
import Control.Monad.Primitive (touch)
import Data.Bifunctor (first)
import Data.ByteString (ByteString)
import Data.Foldable (for_)
import Data.IORef
import Data.List qualified as List
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.Maybe (fromMaybe)
import GHC.Exts (lazy)
import Redis.Error
import Redis.Internal.Client.CommandInfo
import Redis.Internal.Client.Core
import Redis.Internal.Client.Deadline
import Redis.Internal.Client.FanOut
import Redis.Internal.Client.RetryEngine
import Redis.Internal.Client.Trace
import Redis.Internal.Client.TraceNotes
import Redis.Internal.Command
import Redis.Internal.Command.Make (withRemaining)
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Handshake (ConnectionRole (ForReplica))
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.MultiplexPool
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.CommandTable.Aggregation (Aggregation (AggFirstFound), oneIsEnough)
import Redis.Internal.Protocol.Encode (requestExceeds, requestIsOne, requestSize, requestWhole)
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Internal.Routing.Cluster (isClustered)
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.RetryPolicy (inOwnWords)
import Redis.Internal.Routing.Router
import Redis.Internal.Routing.Target
import Redis.Value
import System.Random (randomRIO)

-- | A command that was submitted.
newtype Pending a = Pending (SlotFor a)

-- | A started command whose result will be in this cell.
resultIn :: MVar (Either Error Value) -> (Either Error Value -> Either Error a) -> Pending a
resultIn cell reading = resultOf (reading <$> readMVar cell)

-- | A started command whose result this action returns.
resultOf :: IO (Either Error a) -> Pending a
resultOf = Pending . Awaiting

-- | Blocks until there is a result; may be interrupted, and called again.
awaitStarted :: Pending a -> IO (Either Error a)
awaitStarted (Pending slot) = case slot of
  Retrying reply given _ _ _ ->
    readMVar reply >>= \case
      Plain value -> do
        -- With it, the client.
        touch slot
        pure $! decoded given value
      HandedOn _ result -> decodedFrom given <$> readMVar result <* touch slot
      Unresolved outcome -> pure (outcomeOf given outcome)
  Awaiting await -> await
  Waited _ -> bare <$> waitArrival slot
  Telling {} -> bare <$> waitArrival slot
  where
    bare arrival = case arrivalOutcome arrival of
      Reply value -> Right value
      Failure failed -> Left failed

-- | A started command whose result is known.
settled :: Either Error a -> Pending a
settled = resultOf . pure

-- | A command on a connection that its caller holds: it is not sent again.
onConnection :: Command a -> ResponseSlot -> Pending a
onConnection given slot = resultOf (outcomeOf given <$> waitSlotResult slot)

-- | Keeps the client from being closed while a caller holds the started command.
heldOpen :: Core -> Pending a -> Pending a
heldOpen core (Pending slot) = case slot of
  Awaiting await -> resultOf (await <* keepOpen core)
  _ -> Pending slot
{-# INLINE heldOpen #-}

-- | Adds an action that runs once, on the first result, however many callers wait.
observed :: Pending a -> (Either Error a -> IO ()) -> IO (Pending a)
observed started note = do
  unnoted <- newIORef True
  pure . resultOf $ do
    result <- awaitStarted started
    -- Who has taken the right to run the action runs it.
    mask_ $ do
      isFirst <- atomicModifyIORef' unnoted ((,) False)
      result <$ when isFirst (note result)

-- | Starts a command, and tells the user's hook, if there is one, of the start and of the result.
traced :: Core -> Subject -> (Core -> IO (Pending a)) -> IO (Pending a)
traced core subject begin = case hookCommand (configHooks (coreConfig core)) of
  Nothing -> begin core
  Just hook -> startTraced (beginTrace core hook subject) (begin . traceCore)
{-# INLINE traced #-}

-- | Begins a trace and starts its command. If the start is interrupted, the trace ends.
startTraced :: IO Trace -> (Trace -> IO (Pending a)) -> IO (Pending a)
startTraced begun begin = mask $ \restore -> do
  trace <- begun
  started <- restore (begin trace) `onException` endTrace trace CommandInterrupted
  observed started (endTrace trace . outcomeFrom)

-- | Starts a command, waits for its result, and tells the user's hook of the start and of the
-- end. Blocks until there is a result.
runTraced :: Core -> Subject -> (Core -> IO (Pending a)) -> IO (Either Error a)
runTraced core subject begin = case hookCommand (configHooks (coreConfig core)) of
  Nothing -> begin core >>= awaitStarted
  Just hook -> toItsEnd (beginTrace core hook subject) (begin . traceCore >=> awaitStarted)
{-# INLINE runTraced #-}

-- | Begins a trace, runs its command, and tells the user's hook how it ended. Only the command is run
-- unmasked: an exception that came next to it would leave a trace that never ends.
toItsEnd :: IO Trace -> (Trace -> IO (Either Error a)) -> IO (Either Error a)
toItsEnd begun rest = mask $ \restore -> do
  trace <- begun
  result <- restore (rest trace) `onException` endTrace trace CommandInterrupted
  result <$ endTrace trace (outcomeFrom result)

outcomeFrom :: Either Error a -> CommandOutcome
outcomeFrom = either CommandFailed (const CommandSucceeded)

-- | Like 'execute', with a trace that this action begins. Blocks until there is a result.
executeTraced :: IO Trace -> Command a -> IO (Either Error a)
executeTraced begun command = toItsEnd begun $ \trace -> do
  let core = traceCore trace
  began <- coarseNanos
  case commandKind given of
    Ordinary ->
      firstDestination core began given >>= \case
        Just destination -> do
          sentTo trace (nodeEndpoint (destinationNode destination))
          slot <- newResponseSlot
          submitWaiting (destinationPool destination) (firstDeadline core given destination began) (commandRequest given) slot
          enteredQueue trace
          waitArrival slot >>= arrivedAt core given destination began
        Nothing -> startUnplaced core began given >>= awaitStarted . heldOpen core
    Special -> startSpecial Waits core began given >>= awaitStarted . heldOpen core
  where
    given = unsplit command

-- | Runs a command. Blocks until there is a result. Keeps the client from being closed meanwhile.
execute :: Core -> Command a -> IO (Either Error a)
execute core command = coarseNanos >>= \began -> executeFrom core began command

-- | Like 'execute', for a command that began at this time.
executeFrom :: Core -> Nanos -> Command a -> IO (Either Error a)
executeFrom core !began command = case commandKind given of
  Ordinary ->
    firstDestination core began given >>= \case
      Just destination ->
        submitToNode (destinationPool destination) (firstDeadline core given destination began) (commandRequest given) >>= arrivedAt core given destination began
      Nothing -> startUnplaced core began given >>= awaitStarted . heldOpen core
  Special -> startSpecial Waits core began given >>= awaitStarted . heldOpen core
  where
    given = unsplit command

-- | The result of a command that began at this time, for a caller that waits for it. Blocks
-- while a failure is recovered. The client is kept from being closed here, and not by the callers of
-- 'execute': each waiting thread would have one stack frame more, which every collection visits.
arrivedAt :: Core -> Command a -> Destination -> Nanos -> Arrival -> IO (Either Error a)
arrivedAt core given destination began = \case
  Plain value -> keepOpen core *> (pure $! decoded (unsplit given) value)
  arrival -> recovered (unsplit core) (unsplit given) destination began (arrivalOutcome arrival)
{-# INLINE arrivedAt #-}

-- | The result of a command that has failed so.
recovered :: Core -> Command a -> Destination -> Nanos -> Outcome -> IO (Either Error a)
recovered core given destination began outcome = do
  result <- newEmptyMVar
  call <- callOf core given began result
  onFailure (coreRetryEngine core) call destination outcome
  decodedFrom given <$> readMVar result <* keepOpen core
{-# NOINLINE recovered #-}

-- | Submits a command without waiting for its reply. Blocks only while there is no room for it or no
-- connection, and, if it is for several nodes or a named one, while no map of the cluster is known (for all primaries:
-- or a slot has none).
start :: Core -> Command a -> IO (Pending a)
start core command = coarseNanos >>= \began -> startFrom core began command

-- | Like 'start', for a command that began at this time.
startFrom :: Core -> Nanos -> Command a -> IO (Pending a)
startFrom core began command =
  startFor GoesOn core began (unsplit command) >>= \started -> pure $! heldOpen core started

-- | Like 'startFrom', for a caller that may be about to wait.
startFor :: Submitter -> Core -> Nanos -> Command a -> IO (Pending a)
startFor caller core !began given = case commandKind given of
  Ordinary -> startPlaced core began given
  Special -> startSpecial caller core began given
{-# INLINE startFor #-}

-- | Submits a command to its place.
startPlaced :: Core -> Nanos -> Command a -> IO (Pending a)
startPlaced core began given =
  firstDestination core began given >>= \case
    Just destination -> do
      reply <- newEmptyMVar
      let slot = Retrying reply given core destination hasFailed
          -- Shared by the connection and the caller, not built twice.
          {-# NOINLINE slot #-}
      submitToNodeSlot (destinationPool destination) (firstDeadline core given destination began) (commandRequest given) (anySlot slot)
      for_ (coreNotes core) $ \notes -> do
        noteTarget notes (nodeEndpoint (destinationNode destination))
        preciseNanos >>= noteEntered notes
      pure (Pending slot)
    Nothing -> startUnplaced core began given
{-# INLINE startPlaced #-}

-- | Hands a command over to the retry engine.
hasFailed :: Core -> Command a -> Destination -> Handover -> IO ()
hasFailed core given destination Handover {handoverBegan, handoverOutcome, handoverResult} = do
  call <- callOf core given handoverBegan handoverResult
  onFailure (coreRetryEngine core) call destination handoverOutcome

-- | The destination of a command that is about to be sent. 'Nothing' if no node is known, or if
-- earlier commands of its thread still wait for one: the retry engine sends this command, behind those of its slot.
firstDestination :: Core -> Nanos -> Command a -> IO (Maybe Destination)
firstDestination core began given = do
  behind <- waitsForDestination (coreRetryEngine core) (coreThread core) (deadlineFor core (commandFacts given) began)
  if behind then pure Nothing else destinationOf (coreCluster core) given
{-# INLINE firstDestination #-}

-- | Hands a command over to be sent when a node for it is known.
startUnplaced :: Core -> Nanos -> Command a -> IO (Pending a)
startUnplaced core began given = do
  result <- newEmptyMVar
  call <- callOf core given began result
  awaitDestination (coreRetryEngine core) (coreThread core) call
  pure (resultIn result (decodedFrom given))

callOf :: Core -> Command a -> Nanos -> MVar (Either Error Value) -> IO Call
callOf core given began result =
  newCall (commandRequest given) (commandFacts given) (targetOf given) (deadlineFor core (commandFacts given) began) result >>= tracedBy (coreNotes core)

-- | The value as one object: GHC 9.0 would otherwise pass its fields separately and build it again, or keep each
-- of them on the stack of a thread that waits.
unsplit :: a -> a
unsplit = lazy
{-# INLINE unsplit #-}

-- | Whether a command needs more than a destination and a reply.
data Kind = Ordinary | Special

commandKind :: Command a -> Kind
commandKind Command {commandRequest, commandRoute, commandFacts = Facts {factInfo = CommandInfo {infoBlocking, infoScope}}} = case commandRoute of
  _ | requestSize commandRequest > largeRequest -> Special
  FirstKey | NonBlocking <- infoBlocking, SharedConnection <- infoScope -> Ordinary
  OneKey _ | NonBlocking <- infoBlocking, SharedConnection <- infoScope -> Ordinary
  AnyNode | NonBlocking <- infoBlocking, SharedConnection <- infoScope -> Ordinary
  AnyNodeFor _ | NonBlocking <- infoBlocking, SharedConnection <- infoScope -> Ordinary
  _ -> Special
{-# INLINE commandKind #-}

-- | The bytes from which a request is checked before it is sent.
largeRequest :: Int
largeRequest = 1024 * 1024

-- | The deadline of the first attempt of an ordinary command that began at this time.
firstDeadline :: Core -> Command a -> Destination -> Nanos -> Deadline
firstDeadline core given destination began = case destinationRole destination of
  ForReplica -> away
  _ -> deadline
  where
    deadline = ownDeadline (coreTimeLimit core) (commandFacts given) began
    away = attemptDeadline destination (namesNode (commandRoute given)) began deadline
    {-# NOINLINE away #-}
{-# INLINE firstDeadline #-}

-- | The result of a command that is not sent again.
outcomeOf :: Command a -> Outcome -> Either Error a
outcomeOf given = decodedFrom given . replyTo given

-- | The reply to a command that is not sent again, or the error.
replyTo :: Command a -> Outcome -> Either Error Value
replyTo given = \case
  Reply value -> first (inOwnWords (slotOf (targetOf given)) info) (fromReply info (commandRequest given) value)
  Failure failed -> Left failed
  where
    info = factInfo (commandFacts given)

-- | Runs an action on a thread of its own, for the thread whose command it is. Its result can be awaited.
inBackground :: Core -> (Core -> IO (Either Error a)) -> IO (Pending a)
inBackground core action = do
  thread <- coreThread core
  result <- newEmptyMVar
  void . spawn "redis command" $ try (action core {coreThread = pure thread}) >>= putMVar result
  pure . resultOf $ readMVar result >>= either (\(failure :: SomeException) -> throwIO failure) pure

-- | Starts a command that is not ordinary.
startSpecial :: Submitter -> Core -> Nanos -> Command a -> IO (Pending a)
startSpecial caller core began given =
  startUnnamed caller core began given >>= \case
    Pending (Awaiting await) -> pure (resultOf (first (naming given) <$> await))
    underway -> pure underway

-- | Like 'startSpecial'; its errors need not name the command.
startUnnamed :: Submitter -> Core -> Nanos -> Command a -> IO (Pending a)
startUnnamed caller core began given
  | not (requestIsOne (commandRequest given)) = pure (settled (Left (RefusedError NotOneLine)))
  | Unsendable why <- commandRoute given = pure (settled (Left (RefusedError why)))
  | commandRequest given `requestExceeds` longestArgument core = refused ArgumentTooLong
  | AskServer keys chosen <- commandRoute given =
    learned core began given (keys <|> ([] <$ chosen)) >>= \case
      Left failed -> pure (settled (Left failed))
      Right known -> startFor caller core began known {commandRoute = fromMaybe (commandRoute known) chosen}
  | ConnectionState <- factScope (commandFacts given) = refused NeedsDedicatedConnection
  | PerNode nodeSet conclude <- commandRoute given =
    startTogether core began given (fmap (map (fmap itself) <$>) . members nodeSet) conclude
  | not (isClustered (coreCluster core)) = case commandRoute given of
    OneNode endpoint -> named endpoint
    _ -> whole given
  | otherwise = case commandRoute given of
    SameSlot keys | not (sameSlot keys) -> refused CrossSlot
    Splittable stride keys | not (sameSlot keys) -> startParts core began given (partsOf given stride keys)
    Everywhere nodeSet how -> do
      -- An aggregated result needs every primary, to cover all keys.
      let covered deadline
            | nodeSet == Primaries && not (oneIsEnough how) = coverEventually (coreCluster core) deadline
            | otherwise = pure (Right ())
          listed = if how == AggFirstFound then members nodeSet >=> traverse shuffled else members nodeSet
      startAfter core began given covered $ \() ->
        startTogether core began given listed (decodedFrom given . aggregateNodes (commandFacts given) how)
    NodesOwn -> refused NeedsNode
    OneNode endpoint -> named endpoint
    _ -> whole given
  where
    refused why = pure (settled (Left (RefusedError (why (commandName given)))))

    sameSlot (key :| keys) = all ((== keySlot key) . keySlot) keys

    members nodeSet deadline = nodesEventually (coreCluster core) deadline nodeSet

    -- Its caller asks for the answer of this node, not for that of the one that took its slots over.
    itself = \case
      OnePrimary endpoint _ -> OneNode endpoint
      route -> route

    named endpoint =
      startAfter core began given (\deadline -> hasNode (coreCluster core) deadline endpoint) $ \found ->
        if found then whole given else pure (settled (Left (RefusedError (NoSuchNode endpoint))))

    whole one
      | needsOwn (commandFacts one) = case caller of
        -- On the caller's own thread: a thread in between would have to be
        -- stopped when the caller is.
        Waits -> pure (resultOf (runOwn core began one))
        _ -> inBackground core (\behalf -> runOwn behalf began one)
      | otherwise = startPlaced core began one

-- | Whether a command must not share a connection.
needsOwn :: Facts -> Bool
needsOwn facts = case factScope facts of
  OwnConnection -> True
  ControlConnection -> False
  _ -> factBlocking facts /= NonBlocking

-- | Runs a command on connections of its own, on the calling thread. Blocks until there is a result. What has
-- passed since it began, on any server, is taken off the time for which a later attempt waits there.
runOwn :: Core -> Nanos -> Command a -> IO (Either Error a)
runOwn core began given = do
  call <- newEmptyMVar >>= callOf core given began
  destination <- firstDestination core began given
  -- Also for a caller that has dropped the client and what it submitted.
  decodedFrom given <$> runOnOwn (coreRetryEngine core) call (commandRequest given) later destination <* keepOpen core
  where
    later passed = commandRequest (withRemaining passed given {commandRequest = requestWhole (commandRequest given)})

-- | Starts a command after what it waits for, which is given a deadline: that of the command, without the time that it
-- may wait on the server.
startAfter :: Core -> Nanos -> Command a -> (Nanos -> IO (Either Error b)) -> (b -> IO (Pending c)) -> IO (Pending c)
startAfter core began given awaited onwards =
  awaited (deadlineAt (ownDeadline (coreTimeLimit core) (commandFacts given) began)) >>= either (fmap (settled . Left) . unlessClosed core) onwards

-- | A command with the facts and the route that the server gives for it. The last argument is its
-- keys, if they are known. Blocks until the server has answered.
learned :: Core -> Nanos -> Command a -> Maybe [ByteString] -> IO (Either Error (Command a))
learned core began given keys = fmap described <$> learn core ask (commandArguments given) keys
  where
    ask question = executeFrom core began (withOptions (\options -> options {optionTimeLimit = optionTimeLimit (factOptions (commandFacts given))}) question)
    described (facts, route) = given {commandFacts = facts `withSettingsOf` commandFacts given, commandRoute = route}

-- | Starts the parts of a command over several slots, all at once. Every part is awaited even
-- if one fails, because it has been sent.
startParts :: Core -> Nanos -> Command a -> [Part] -> IO (Pending a)
startParts core began given parts = do
  started <- traverse (\part -> (,) part <$> startFrom (untraced core) began (partCommand part)) parts
  pure . resultOf $
    decodedFrom given . aggregateParts (commandFacts given) <$> traverse (traverse awaitStarted) started

-- | Turns the notes off: attempts at several nodes must not look like one after the other.
untraced :: Core -> Core
untraced core = core {coreNotes = Nothing}

-- | Starts a command on every node of a node set, which is given the deadline: where the calling thread has a connection, on it, in the
-- order of its commands, elsewhere each on a thread of its own, because a node that is down must not delay the others.
-- Where the thread may have to wait for room, it submits last.
startTogether :: Core -> Nanos -> Command a -> (Nanos -> IO (Either Error [(Endpoint, Route Value)])) -> ([(Endpoint, Either Error Value)] -> Either Error a) -> IO (Pending a)
startTogether core began given nodeSet conclude =
  startAfter core began given nodeSet $ \members -> do
    parts <- forM members $ \(endpoint, route) -> do
      let part = given {commandRoute = route, commandDecode = Right}
      pool <- destinationOf (coreCluster core) part >>= filterM isConnected . maybe [] (pure . destinationPool)
      roomy <- and <$> traverse (`isRoomy` requestSize (commandRequest given)) pool
      pure . (,) roomy $
        (,) endpoint
          <$> if null pool
            then inBackground (untraced core) (\behalf -> executeFrom behalf began part)
            else startFrom (untraced core) began part
    let (first', later) = List.partition fst parts
    started <- traverse snd (first' <> later)
    pure . resultOf $ conclude <$> traverse (traverse awaitStarted) started

-- | The nodes in any order. Drawn when the command starts, so that all callers that wait see the same
-- order.
shuffled :: [a] -> IO [a]
shuffled listed = map snd . List.sortOn fst <$> traverse (\one -> flip (,) one <$> randomRIO (0, 1 :: Double)) listed
