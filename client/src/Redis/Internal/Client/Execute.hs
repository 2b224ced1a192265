-- | Running one command to its end.
--
-- The ordinary path is short: one look-up, one submit, one decode. What fails is
-- handed to "Redis.Internal.Client.Recoverer", and who waits for the command then
-- waits for what comes of that. Commands that need more than a place and a reply
-- (several nodes, a connection of their own, a server that must be asked for
-- their keys) are kept out of the ordinary path.
module Redis.Internal.Client.Execute
  ( execute,
    executeTraced,
    start,
    startTraced,
    awaitTraced,
    runTraced,
    noteWay,
    untraced,
    toItsEnd,
    pipeTraced,
    Started,
    Pending (..),
    awaitStarted,
    resultIn,
    resultOf,
    heldOpen,
    settled,
    onConnection,
    traced,
  )
where

import Control.Concurrent.MVar
import Control.Exception (SomeException, onException, throwIO, try)
import Control.Monad (void, when)
import Data.Foldable (for_)
import Data.IORef
import Data.List qualified as List
import Data.List.NonEmpty (NonEmpty ((:|)))
import GHC.Exts (lazy)
import Redis.Error
import Redis.Internal.Client.Core
import Redis.Internal.Client.Journey
import Redis.Internal.Client.Learn
import Redis.Internal.Client.Own
import Redis.Internal.Client.Recoverer
import Redis.Internal.Client.Together
import Redis.Internal.Client.Trace
import Redis.Internal.Command
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Clock
import Redis.Internal.Network.Handshake (ConnectionRole (ForReplica))
import Redis.Internal.Network.MultiplexPool
import Redis.Internal.Network.ResponseSlot
import Redis.Internal.Network.Worker (spawn)
import Redis.Internal.Protocol.CommandTable.Merge (Merge (MergeFound), oneIsEnough)
import Redis.Internal.Protocol.Encode (requestExceeds, requestIsOne, requestSize)
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Internal.Routing.Nodes
import Redis.Internal.Routing.Router
import Redis.Value
import System.Random (randomRIO)

-- | A command under way.
data Started a
  = -- | Where it was sent, when it was begun, and where its reply arrives. All that
    -- is kept of a command in flight: the collector copies it.
    Underway Core (Command a) Place {-# UNPACK #-} !Nanos {-# UNPACK #-} !Cell
  | Started (IO (Either Error a))

-- | A command that was submitted.
--
-- @since 0.1.0.0
newtype Pending a = Pending (Started a)

-- | One whose result will be in this cell.
resultIn :: MVar (Either Error Value) -> (Value -> Either Error a) -> Started a
resultIn cell reading = Started ((>>= reading) <$> readMVar cell)

-- | One whose result this has.
resultOf :: IO (Either Error a) -> Started a
resultOf = Started

-- | Blocks until there is a result; may be interrupted, and called again.
awaitStarted :: Started a -> IO (Either Error a)
awaitStarted = \case
  Underway core given place _ cell ->
    waitCell cell >>= \case
      Plain value -> do
        noteAnswer (coreRouter core) place
        keepOpen core
        pure $! decoded given value
      Troubled _ (Attended result) -> decodedFrom given <$> readMVar result <* keepOpen core
      Troubled outcome Unattended -> pure (outcomeOf given outcome)
  Started await -> await

-- | One whose result is known.
settled :: Either Error a -> Started a
settled = Started . pure

-- | One on a connection that its caller holds: nothing is sent again.
onConnection :: Command a -> ResponseSlot -> Started a
onConnection given slot = Started (outcomeOf given <$> waitSlotResult slot)

-- | The same, and the client is not closed while somebody holds it.
heldOpen :: Core -> Started a -> Started a
heldOpen core = \case
  Started await -> Started (await <* keepOpen core)
  underway -> underway
{-# INLINE heldOpen #-}

-- | Adds an action for when the result is had first, however many await it.
observed :: Started a -> (Either Error a -> IO ()) -> IO (Started a)
observed started note = do
  unnoted <- newIORef True
  pure . Started $ do
    result <- awaitStarted started
    first <- atomicModifyIORef' unnoted ((,) False)
    result <$ when first (note result)

-- | Starts something, and tells the user's hook of that and of its result, if there
-- is one.
traced :: Core -> Subject -> (Core -> IO (Started a)) -> IO (Started a)
traced core subject begin = case hookCommand (configHooks (coreConfig core)) of
  Nothing -> begin core
  Just hook -> do
    trace <- beginTrace core hook subject
    startTraced trace begin
{-# INLINE traced #-}

-- | Starts something that has begun. If that is interrupted, it has ended.
startTraced :: Trace -> (Core -> IO (Started a)) -> IO (Started a)
startTraced trace begin = (`onException` endTrace trace CommandInterrupted) $ do
  started <- begin (traceCore trace)
  noteStarted trace started
  observed started (endTrace trace . outcomeFrom)

-- | Starts one command of a pipeline that has begun: it has no end of its own.
pipeTraced :: Trace -> Command a -> IO (Started a)
pipeTraced trace command = do
  started <- start (traceCore trace) command
  started <$ noteStarted trace started

-- | Starts something, waits for its result, and tells the user's hook of both ends.
-- Blocks until there is a result.
runTraced :: Core -> Subject -> (Core -> IO (Started a)) -> IO (Either Error a)
runTraced core subject begin = case hookCommand (configHooks (coreConfig core)) of
  Nothing -> begin core >>= awaitStarted
  Just hook -> do
    trace <- beginTrace core hook subject
    awaitTraced trace begin
{-# INLINE runTraced #-}

-- | The same for something that has begun.
awaitTraced :: Trace -> (Core -> IO (Started a)) -> IO (Either Error a)
awaitTraced trace begin = toItsEnd trace $ do
  started <- begin (traceCore trace)
  noteStarted trace started
  awaitStarted started

-- | Runs the rest of something that has begun, and tells the user's hook how it ended.
toItsEnd :: Trace -> IO (Either Error a) -> IO (Either Error a)
toItsEnd trace rest = do
  result <- rest `onException` endTrace trace CommandInterrupted
  result <$ endTrace trace (outcomeFrom result)

-- | What is known of where it went, when it has been started.
noteStarted :: Trace -> Started a -> IO ()
noteStarted = noteWay . traceCore

-- | The same, in what is noted of the command at hand, if anything is.
noteWay :: Core -> Started a -> IO ()
noteWay core = \case
  Underway _ _ place _ _ -> for_ (coreJourney core) $ \journey -> do
    noteAimed journey (nodeEndpoint (placeNode place))
    preciseNanos >>= noteEntered journey
  Started _ -> pure ()

outcomeFrom :: Either Error a -> CommandOutcome
outcomeFrom = either CommandFailed (const CommandSucceeded)

-- | Runs a command that has begun, as 'execute' does. Blocks until there is a result.
executeTraced :: Trace -> Command a -> IO (Either Error a)
executeTraced trace command = case commandKind given of
  Ordinary ->
    toItsEnd trace $
      firstPlace core given >>= \case
        Just place -> do
          began <- coarseNanos
          aimedAt trace (nodeEndpoint (placeNode place))
          slot <- newResponseSlot
          submitWaiting (poolOf place) (patienceAt core given place) (commandRequest given) slot
          enteredQueue trace
          waitArrival slot >>= arrivedAt core given place began
        Nothing -> startUnplaced core given >>= awaitStarted
  Special -> awaitTraced trace (\noted -> startSpecial CallerWaits noted given)
  where
    core = traceCore trace
    given = unsplit command

-- | Runs a command. Blocks until there is a result.
execute :: Core -> Command a -> IO (Either Error a)
execute core command = case commandKind given of
  Ordinary ->
    firstPlace core given >>= \case
      Just place -> do
        began <- coarseNanos
        submitToNode (poolOf place) (patienceAt core given place) (commandRequest given) >>= arrivedAt core given place began
      Nothing -> startUnplaced core given >>= awaitStarted
  Special -> startSpecial CallerWaits core given >>= awaitStarted
  where
    given = unsplit command

-- | What has come for a command that was begun at this time, for who waits for it.
arrivedAt :: Core -> Command a -> Place -> Nanos -> Arrival -> IO (Either Error a)
arrivedAt core given place began = \case
  Plain value -> do
    noteAnswer (coreRouter core) place
    pure $! decoded given value
  Troubled outcome _ -> do
    result <- newEmptyMVar
    flight <- flightOf core given began result
    attend (coreRecoverer core) flight place outcome
    decodedFrom given <$> readMVar result
{-# INLINE arrivedAt #-}

-- | Submits a command without waiting for its reply. Blocks only while there is
-- no room for it or no connection, and where several nodes, or nodes by name, are
-- asked for before the cluster's map is known.
start :: Core -> Command a -> IO (Started a)
start core command =
  startFor CallerGoesOn core (unsplit command) >>= \started -> pure $! heldOpen core started

-- | The same, for a caller who may be about to wait.
startFor :: NextMove -> Core -> Command a -> IO (Started a)
startFor caller core given = case commandKind given of
  Ordinary -> startPlaced core given
  Special -> startSpecial caller core given
{-# INLINE startFor #-}

-- | Submits a command to its place.
startPlaced :: Core -> Command a -> IO (Started a)
startPlaced core given =
  firstPlace core given >>= \case
    Just place -> do
      began <- coarseNanos
      cell <- newCell
      let started = Underway core given place began cell
          -- One for both.
          {-# NOINLINE started #-}
      submitToNodeSlot (poolOf place) (patienceAt core given place) (commandRequest given) (cellSlot cell (OnTrouble started hasTrouble))
      pure started
    Nothing -> startUnplaced core given
{-# INLINE startPlaced #-}

-- | Leaves a command to the recoverer.
hasTrouble :: Started a -> Outcome -> MVar (Either Error Value) -> IO ()
hasTrouble started outcome result = case started of
  Underway core given place began _ -> do
    flight <- flightOf core given began result
    attend (coreRecoverer core) flight place outcome
  Started _ -> pure ()

-- | The place of a command that is about to be sent. 'Nothing' if nobody is known,
-- or if commands that came before it still wait for somebody: it must not overtake
-- them.
firstPlace :: Core -> Command a -> IO (Maybe Place)
firstPlace core given = do
  behind <- waitsForPlace (coreRecoverer core)
  if behind then pure Nothing else placeOf (coreRouter core) (commandFacts given) (commandRoute given)
{-# INLINE firstPlace #-}

-- | Leaves a command to be sent when a node for it is known.
startUnplaced :: Core -> Command a -> IO (Started a)
startUnplaced core given = do
  began <- coarseNanos
  result <- newEmptyMVar
  flight <- flightOf core given began result
  awaitPlace (coreRecoverer core) flight
  pure (resultIn result (decoded given))

flightOf :: Core -> Command a -> Nanos -> MVar (Either Error Value) -> IO Flight
flightOf core given began result =
  newFlight (commandRequest given) (commandFacts given) (aimOf (commandRoute given)) began result >>= tracedBy (coreJourney core)

-- | A command as it is: GHC 9.0 would otherwise hand its parts over and put them
-- together again.
unsplit :: Command a -> Command a
unsplit = lazy
{-# INLINE unsplit #-}

-- | Whether a command needs more than a place and a reply.
data Kind = Ordinary | Special

commandKind :: Command a -> Kind
commandKind Command {commandRequest, commandRoute, commandFacts = Facts {factBlocking, factScope}} = case commandRoute of
  _ | requestSize commandRequest > largeRequest -> Special
  OneKey _ | NonBlocking <- factBlocking, SharedConnection <- factScope -> Ordinary
  AnyNode | NonBlocking <- factBlocking, SharedConnection <- factScope -> Ordinary
  _ -> Special
{-# INLINE commandKind #-}

-- | Bytes from which a request is looked at before it is sent.
largeRequest :: Int
largeRequest = 1024 * 1024

poolOf :: Place -> MultiplexPool
poolOf place = nodePoolFor (placeRole place) (placeNode place)
{-# INLINE poolOf #-}

-- | What the connection is told of a command's time.
patienceAt :: Core -> Command a -> Place -> Maybe Nanos
patienceAt core given place = case placeRole place of
  ForReplica -> patienceAway core given
  _ -> patienceOf (commandFacts given)
{-# INLINE patienceAt #-}

-- | A replica that was not named has half of the time; the rest is for the primary, if
-- the replica hangs.
patienceAway :: Core -> Command a -> Maybe Nanos
patienceAway core given = case commandRoute given of
  OneNode _ -> patienceOf (commandFacts given)
  _ -> nanosFromSeconds . (/ 2) <$> allowedSeconds (coreConfig core) (commandFacts given)
{-# NOINLINE patienceAway #-}

-- | What the command's decoder makes of the reply, if there is one.
decodedFrom :: Command a -> Either Error Value -> Either Error a
decodedFrom given result = result >>= decoded given

outcomeOf :: Command a -> Outcome -> Either Error a
outcomeOf given = \case
  Reply value -> decodedFrom given (fromReply (commandFacts given) value)
  Failure failed -> Left failed

-- | A thread of its own, whose result can be awaited.
inBackground :: IO (Either Error a) -> IO (Started a)
inBackground action = do
  result <- newEmptyMVar
  void . spawn "redis command" $ try action >>= putMVar result
  pure . Started $ readMVar result >>= either (\(failure :: SomeException) -> throwIO failure) pure

-- | What the thread that starts a command does next.
data NextMove = CallerWaits | CallerGoesOn

-- | Starts a command that is not ordinary.
startSpecial :: NextMove -> Core -> Command a -> IO (Started a)
startSpecial caller core given
  | not (requestIsOne (commandRequest given)) = pure (settled (Left (RefusedError NotOneLine)))
  | Unsendable why <- commandRoute given = pure (settled (Left (RefusedError why)))
  | commandRequest given `requestExceeds` limitBulkBytes (configLimits (coreConfig core)) = refused ArgumentTooLong
  | AskServer keys <- commandRoute given =
    -- Learns what it is first, then starts it for good.
    learn core (execute core) (commandWords given) keys >>= \case
      Left failed -> pure (settled (Left failed))
      Right (facts, route) -> startFor caller core given {commandFacts = facts `besides` commandFacts given, commandRoute = route}
  | ConnectionState <- factScope (commandFacts given) = refused NeedsDedicatedConnection
  | PerNode audience conclude <- commandRoute given =
    startTogether core given AsListed audience conclude
  | not (isClustered (coreRouter core)) = case commandRoute given of
    OneNode endpoint -> named endpoint
    _ -> whole
  | otherwise = case commandRoute given of
    SameSlot keys | not (sameSlot keys) -> refused CrossSlot
    Splittable stride keys | not (sameSlot keys) -> startParts core given (partsOf given stride keys)
    Everywhere audience how -> do
      -- Without one of the primaries it would be the answer of a part; and what one
      -- primary does for all need not wait for the others.
      remaining <- coarseNanos >>= remainingSeconds core (commandFacts given)
      covered <- if audience == Primaries && not (oneIsEnough how) then coverEventually (coreRouter core) remaining else pure (Right ())
      case covered of
        Left failed -> pure (settled (Left failed))
        Right () -> startTogether core given (if how == MergeFound then InAnyOrder else AsListed) audience (decodedFrom given . mergeNodes (commandFacts given) how)
    NodesOwn -> refused NeedsNode
    OneNode endpoint -> named endpoint
    _ -> whole
  where
    refused why = pure (settled (Left (RefusedError (why (commandName given)))))

    sameSlot (key :| keys) = all ((== keySlot key) . keySlot) keys

    named endpoint = do
      remaining <- coarseNanos >>= remainingSeconds core (commandFacts given)
      hasNode (coreRouter core) remaining endpoint >>= \case
        Left failed -> pure (settled (Left failed))
        Right False -> pure (settled (Left (RefusedError (NoSuchNode endpoint))))
        Right True -> whole

    whole
      | needsOwn (commandFacts given) = case caller of
        -- On the caller's own thread: a thread in between would have to be
        -- stopped when the caller is.
        CallerWaits -> pure (Started (runOwn core given))
        CallerGoesOn -> inBackground (runOwn core given)
      | otherwise = startPlaced core given

    -- What the caller has said of the command stays true.
    besides learnt told =
      learnt
        { factRepeatable = factRepeatable learnt || factRepeatable told,
          factPatience = factPatience told,
          factReadFrom = factReadFrom told,
          factBlocking = case factBlocking told of
            NonBlocking -> factBlocking learnt
            blocking -> blocking
        }

-- | Starts the parts of a command over several slots, all at once. Every part is
-- awaited, also when one fails: it has been sent.
startParts :: Core -> Command a -> [Part] -> IO (Started a)
startParts core given parts = do
  started <- traverse (\part -> (,) part <$> start (untraced core) (partCommand part)) parts
  pure . Started $
    decodedFrom given . mergeParts (commandFacts given) <$> traverse (traverse awaitStarted) started

-- | What several nodes do is not noted as if it were one attempt after the other.
untraced :: Core -> Core
untraced core = core {coreJourney = Nothing}

-- | In which order the nodes of a command stand among its results. Drawn when the
-- command is started, so that all who await it see the same.
data Order = AsListed | InAnyOrder

-- | Starts a command on every node of an audience, each on a thread of its own:
-- one that is down must not keep the others waiting.
startTogether :: Core -> Command a -> Order -> Audience -> ([(Endpoint, Either Error Value)] -> Either Error a) -> IO (Started a)
startTogether core given order audience conclude = do
  remaining <- coarseNanos >>= remainingSeconds core (commandFacts given)
  audienceEventually (coreRouter core) remaining audience >>= \case
    Left failed -> pure (settled (Left failed))
    Right listed -> do
      members <- case order of
        AsListed -> pure listed
        InAnyOrder -> map snd . List.sortOn fst <$> traverse (\member -> flip (,) member <$> randomRIO (0, 1 :: Double)) listed
      started <- traverse (\(endpoint, route) -> (,) endpoint <$> inBackground (execute (untraced core) (single route))) members
      pure . Started $ conclude <$> traverse (traverse awaitStarted) started
  where
    single route =
      Command
        { commandRequest = commandRequest given,
          commandRoute = route,
          commandFacts = commandFacts given,
          commandDecode = Right
        }
