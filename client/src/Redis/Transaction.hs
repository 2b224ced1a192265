-- | Transactions: commands that run together, with no command of another client in between. If one of
-- them cannot be queued, none runs.
--
-- > (visits, name) <- runTransaction client ((,) <$> queued (incr "{u}visits") <*> queued (get "{u}name"))
--
-- A transaction takes one round trip on a shared connection, in line with the commands of all
-- callers. In a cluster all its keys must share a slot.
--
-- A transaction does not roll back. A command that fails when it runs, such as INCR of a value that
-- is not a number, fails alone, and the others have run: 'tryQueued' gives the result of each.
--
-- A transaction that depends on values that must be read first watches their keys ('watching').
--
-- Server: <https://valkey.io/topics/transactions/>.
module Redis.Transaction
  ( Transaction,
    queued,
    tryQueued,
    runTransaction,
    tryRunTransaction,
    submitTransaction,

    -- * Conditions
    ExecCondition (..),
    runTransactionIf,
    tryRunTransactionIf,
    submitTransactionIf,

    -- * Optimistic transactions
    watching,
    Decision (..),
    WatchResult (..),
    watchingWith,
    WatchOptions (watchAttempts),
    watchDefaults,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.MVar (newEmptyMVar)
import Control.Concurrent.STM (readTVarIO)
import Control.Exception (throwIO, try)
import Data.Bifunctor (first)
import Data.ByteString (ByteString)
import Data.Either (lefts)
import Data.Foldable (asum, fold, toList)
import Data.IORef (atomicModifyIORef', readIORef)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, listToMaybe)
import Redis.Client
import Redis.Commands.Raw (raw)
import Redis.Error
import Redis.Internal.Client.Core
import Redis.Internal.Client.Execute
import Redis.Internal.Client.Lease
import Redis.Internal.Client.RetryEngine
import Redis.Internal.Client.Trace (Subject, transactionOf)
import Redis.Internal.Command
import Redis.Internal.Command.Make (fromArguments)
import Redis.Internal.Command.Record (colonFields)
import Redis.Internal.Command.Transaction
import Redis.Internal.Network.Runtime (Nanos, coarseNanos, secondsLeft)
import Redis.Internal.Protocol.CommandTable (CommandEntry (entryArity), entryFromReply)
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Internal.Routing.Cluster (isClustered)
import Redis.Internal.Routing.RetryPolicy
import Redis.Internal.Routing.Router
import Redis.Internal.Routing.Target
import Redis.Value (Value (Array))
import System.Random (randomRIO)

-- | Runs a transaction and waits for its results. Throws 'Error': the error of a command that could
-- not be queued, and then nothing was done; or the first error of a 'queued' command that failed
-- when it ran. Costs one round trip, and one more for each redirect or retry.
--
-- If the connection is lost before EXEC was sent, nothing has run, and the transaction is sent again.
-- If EXEC was sent and not answered, nobody knows whether it ran: the error is 'MaybeExecuted', and
-- the transaction is not sent again, unless each of its commands may be
-- ('Redis.Command.idempotent').
runTransaction :: Client -> Transaction a -> IO a
runTransaction client transaction = tryRunTransaction client transaction >>= either throwIO pure

-- | Like 'runTransaction', but returns the results or the 'Error'.
tryRunTransaction :: Client -> Transaction a -> IO (Either Error a)
tryRunTransaction (Client core) transaction = runTraced core (subjectOf transaction) (`startTransaction` transaction)

-- | Submits a transaction without waiting for its results. Blocks like 'submit'.
submitTransaction :: Client -> Transaction a -> IO (Pending a)
submitTransaction (Client core) transaction = traced core (subjectOf transaction) (`startTransaction` transaction)

-- | @MULTI … EXEC IFEQ|IFNE|NX|XX …@: runs a transaction if all conditions hold when EXEC comes; if not,
-- nothing is done, and the result is 'Nothing'. Costs one round trip on a shared connection, where
-- 'watching' takes a connection of its own and a round trip more. In a cluster the keys of the conditions
-- must share the slot of the others.
--
-- > runTransactionIf client (ExecIfEqual "{a}version" "7" :| []) (queued (set "{a}version" "8") *> queued (set "{a}name" "ada"))
--
-- Valkey since 9.2.0. The client asks the server once whether it knows conditions, and refuses the
-- transaction if it does not ('Redis.Error.Unsupported', with the server's version). Made from the
-- documentation, and not run on such a server.
--
-- Throws like 'runTransaction'; @WRONGTYPE@ if a value is compared that is no string, and then nothing
-- was done. If EXEC was sent and not answered, the error is 'MaybeExecuted', whatever its commands are:
-- it is not sent again, because the transaction may itself have changed what a condition says.
runTransactionIf :: Client -> NonEmpty ExecCondition -> Transaction a -> IO (Maybe a)
runTransactionIf client conditions transaction = tryRunTransactionIf client conditions transaction >>= either throwIO pure

-- | Like 'runTransactionIf', but returns the results or the 'Error'.
tryRunTransactionIf :: Client -> NonEmpty ExecCondition -> Transaction a -> IO (Either Error (Maybe a))
tryRunTransactionIf (Client core) conditions transaction = runTraced core (subjectOf transaction) (\noted -> startConditioned noted conditions transaction)

-- | Submits a transaction with conditions, without waiting for its results. Blocks like 'submit', and
-- until the server has said once that it knows conditions.
submitTransactionIf :: Client -> NonEmpty ExecCondition -> Transaction a -> IO (Pending (Maybe a))
submitTransactionIf (Client core) conditions transaction = traced core (subjectOf transaction) (\noted -> startConditioned noted conditions transaction)

subjectOf :: Transaction a -> Subject
subjectOf = transactionOf . map commandArguments . transactionCommands

-- | What to do after reading the watched keys.
data Decision a
  = -- | Run this transaction, if no watched key has changed since.
    Commit (Transaction a)
  | -- | Do nothing.
    Abandon

-- | How a watched transaction ended.
data WatchResult a
  = -- | The transaction ran.
    Committed a
  | -- | The action decided to do nothing.
    Abandoned
  | -- | Other clients changed the watched keys until no attempt was left. Nothing was done.
    Contended
  deriving stock (Eq, Show)

-- | Watches the keys, runs the action, which may read on the connection that it gets and decides, and
-- runs the transaction if no watched key has changed since. If one has changed, 'watching' begins
-- again after a random pause and runs the action again: so the action should change nothing itself.
--
-- > watching client ("balance" :| []) $ \\connection -> do
-- >   balance <- runOn connection (get "balance")
-- >   pure (if enough balance then Commit (queued (decrby "balance" 5)) else Abandon)
--
-- In a cluster the watched keys and the keys of the transaction must share a slot. Takes a dedicated
-- connection meanwhile; blocks like 'withDedicated'. Throws 'Error', and whatever the action throws.
--
-- A connection that is lost before EXEC was sent, also while the action reads, and a server that is not
-- ready or no longer serves the keys make 'watching' begin again, too, for the time and the attempts of
-- one command ('Redis.Config.setCommandTimeout', 'Redis.Config.setMaxAttempts'). 'MaybeExecuted' means that
-- EXEC may have run, or a write of the action itself: then 'watching' does not begin again. It does not follow
-- ASK: in a slot that moves, it throws ASK for keys that have left their primary, or do not exist there.
watching :: Client -> NonEmpty ByteString -> (forall s. Dedicated s -> IO (Decision a)) -> IO (WatchResult a)
watching = watchingWith watchDefaults

-- | How often 'watching' tries.
newtype WatchOptions = WatchOptions
  { -- | How often the action runs at most, whatever made 'watching' begin again. At least 1.
    watchAttempts :: Int
  }
  deriving stock (Eq, Show)

-- | At most 32 attempts.
watchDefaults :: WatchOptions
watchDefaults = WatchOptions {watchAttempts = 32}

-- | Like 'watching', with options.
watchingWith :: forall a. WatchOptions -> Client -> NonEmpty ByteString -> (forall s. Dedicated s -> IO (Decision a)) -> IO (WatchResult a)
watchingWith WatchOptions {watchAttempts} (Client core) names@(key :| others) look
  | isClustered (coreCluster core), any ((/= keySlot key) . keySlot) others = throwIO (RefusedError (CrossSlot "WATCH"))
  | otherwise = go 1 Nothing <* keepOpen core
  where
    -- The second argument: when the failures since the last look that came to EXEC began, and their
    -- course.
    go :: Int -> Maybe (Nanos, AttemptsSoFar) -> IO (WatchResult a)
    go attempt failures = do
      began <- coarseNanos
      lease core (AtKey key) once >>= \case
        Right (Ended done) -> pure done
        Right Changed
          | attempt < watchAttempts -> pauseRandomly attempt >> go (attempt + 1) Nothing
          | otherwise -> pure Contended
        Right (Failed failed) -> do
          now <- coarseNanos
          judge attempt (fromMaybe (now, noAttempts) failures) failed
        Left failed -> judge attempt (fromMaybe (began, noAttempts) failures) failed

    once :: Dedicated s -> IO (Attempt a)
    once connection =
      tryRunOn connection (raw ("WATCH" : NonEmpty.toList names)) >>= \case
        Left failed -> pure (Failed (undone failed))
        Right (_ :: Value) ->
          try (look connection) >>= \case
            Left failed@(ReplyError _) -> pure (Failed failed)
            Left failed -> do
              lost <- wasLostReading connection failed
              if lost then unlessWrites connection (undone failed) else throwIO failed
            -- Whatever becomes of it, nothing was done; and the connection goes if it is still
            -- watching.
            Right Abandon -> Ended Abandoned <$ tryRunOn connection (raw ["UNWATCH"] :: Command Value)
            Right (Commit transaction) -> tryTransactionOn connection names transaction >>= either (unlessWrites connection) (pure . maybe Changed (Ended . Committed))

    -- Has 'watching' begin again, unless a write of the action may have run: it would run twice.
    unlessWrites :: Dedicated s -> Error -> IO (Attempt a)
    unlessWrites connection failed = do
      doubtful <- writesInDoubt connection
      if doubtful then throwIO (delivered MaybeExecuted failed) else pure (Failed failed)

    -- The connection has told the router what its errors show. The next look finds its node by
    -- the map.
    judge attempt (began, soFar) failed = do
      closed <- readTVarIO (coreClosed core)
      failedRandom <- randomRIO (0, 1)
      failedRemaining <- (`secondsLeft` deadlineFor core writeFacts began) <$> coarseNanos
      let attempted = FailedAttempt {failedError = failed, failedNode = Nothing, failedRole = Primary, failedRemaining, failedRandom}
          RetryDecision {decisionNext, decisionSoFar} = decide (policyFor (coreConfig core) (coreCluster core) (TargetPrimary (keySlot key)) closed) writeFacts soFar attempted
          again (delay :: Double)
            | attempt < watchAttempts = do
              open <- pauseFor core delay
              if open then go (attempt + 1) (Just (began, decisionSoFar)) else throwIO (concluding writeFacts decisionSoFar ClientClosed)
            | otherwise = throwIO failed
      case decisionNext of
        GiveUp final -> throwIO (if closed && errorDelivery final == NotSent then ClientClosed else final)
        RetryNow _ -> again 0
        RetryAfter delay _ -> again delay

    pauseRandomly :: Int -> IO ()
    pauseRandomly attempt = do
      random <- randomRIO (0, 1 :: Double)
      threadDelay (round (random * 1000 * 2 ^ min 6 attempt))

-- | How an attempt of 'watching' ended.
data Attempt a
  = Ended (WatchResult a)
  | -- | Another client had changed a watched key.
    Changed
  | Failed Error

-- | The error of a command whose loss has no effect.
undone :: Error -> Error
undone = delivered NotSent

-- | The error with another delivery, if the server has not answered.
delivered :: Delivery -> Error -> Error
delivered delivery = \case
  ConnectionError lost -> ConnectionError lost {connectionDelivery = delivery}
  TimeoutError late -> TimeoutError late {timeoutDelivery = delivery}
  failed -> failed

-- | Submits MULTI, the queued commands, and EXEC as one run, which is recovered as a whole
-- ("Redis.Internal.Client.RetryEngine"). Blocks only while there is no room for it or no connection.
startTransaction :: Core -> Transaction a -> IO (Pending a)
startTransaction core transaction = coarseNanos >>= \began -> startConcluding core began transaction (>>= maybe (Left unwatched) Right)
  where
    unwatched = unlike "EXEC's array" "null, but no key was watched" "EXEC"

-- | Like 'startTransaction', under conditions; 'Nothing' if one of them did not hold. Asks the server
-- first whether it knows conditions, until one does: blocks meanwhile.
startConditioned :: Core -> NonEmpty ExecCondition -> Transaction a -> IO (Pending (Maybe a))
startConditioned core conditions plain
  | Just refusal <- transactionRefusal (boundsOf core) transaction = pure (settled (Left (RefusedError refusal)))
  | otherwise = do
    began <- coarseNanos
    knowsConditions core began transaction >>= either (pure . settled . Left) (\() -> startConcluding core began transaction id)
  where
    transaction = conditioned (toList conditions) plain

-- | Fails with the reason if the server knows no conditions of EXEC, which it tells by the arity of EXEC.
-- It must never get some: before Redis 6.0.6 it would go on queueing what others send on the connection.
knowsConditions :: Core -> Nanos -> Transaction a -> IO (Either Error ())
knowsConditions core began transaction = do
  known <- Map.lookup "EXEC" <$> readIORef (coreLearnt core)
  let ask words' = executeFrom core began (withOptions (const (factOptions (transactionFacts transaction))) (toNode (fromArguments words')))
  case known of
    Just (Described _) -> pure (Right ())
    _ ->
      ask ["COMMAND", "INFO", "EXEC"] >>= \case
        Left failed -> pure (Left failed)
        Right (Array [description])
          | Just entry <- entryFromReply description,
            entryArity entry < 0 ->
            Right () <$ atomicModifyIORef' (coreLearnt core) (\others -> (Map.insert "EXEC" (Described entry) others, ()))
        Right _ -> Left . RefusedError . Unsupported "EXEC with conditions" . either (const "") serverOf <$> ask ["INFO", "server"]
  where
    toNode given = case transactionKeys transaction of
      key : _ -> given {commandRoute = OneSlot (keySlot key)}
      [] -> given
    serverOf reply = fold $ do
      fields <- either (const Nothing) Just (colonFields reply)
      asum [(family <>) <$> lookup name fields | (name, family) <- [("valkey_version", "Valkey "), ("redis_version", "Redis ")]]

-- | Starts a transaction; the function makes its result of that of EXEC.
startConcluding :: Core -> Nanos -> Transaction a -> (Either Error (Maybe a) -> Either Error b) -> IO (Pending b)
startConcluding core began transaction final
  | Just refusal <- transactionRefusal (boundsOf core) transaction = pure (settled (Left (RefusedError refusal)))
  | null commands && null (transactionConditions transaction) = pure (settled (conclude (Array [])))
  | otherwise = do
    result <- newEmptyMVar
    let deadline = deadlineFor core facts began
    call <- behindQueue (map commandRequest (multi : commands)) <$> (newCall (commandRequest (transactionExec transaction)) facts target deadline result >>= tracedBy (coreNotes core))
    behind <- waitsForDestination engine (coreThread core) deadline
    destination <- if behind then pure Nothing else destinationFor cluster facts target
    maybe (awaitDestination engine (coreThread core) call) (sendCall engine call) destination
    pure (heldOpen core (resultIn result (either (Left . withLabel (transactionLabel transaction)) conclude)))
  where
    cluster = coreCluster core
    engine = coreRetryEngine core
    commands = transactionCommands transaction
    facts = transactionFacts transaction
    target = case transactionKeys transaction of
      key : _ -> TargetPrimary (keySlot key)
      [] -> maybe TargetAnyNode targetOf (listToMaybe commands)

    conclude = final . transactionResult transaction

boundsOf :: Core -> Bounds
boundsOf core = Bounds {boundsSeveralNodes = isClustered (coreCluster core), boundsWatched = [], boundsArgument = longestArgument core}

-- | Runs a transaction on a dedicated connection, after the WATCHes of these keys there. 'Nothing' if a
-- watched key had changed; then nothing was done.
tryTransactionOn :: Dedicated s -> NonEmpty ByteString -> Transaction a -> IO (Either Error (Maybe a))
tryTransactionOn dedicated watched transaction =
  tracedOn dedicated (transactionOf (map commandArguments (transactionCommands transaction))) $ \entered -> case transactionRefusal bounds transaction of
    Just refusal -> pure (Left (RefusedError refusal))
    Nothing -> startRunOn dedicated (multi :| transactionCommands transaction) >>= either (pure . Left . whole) (toEnd entered)
  where
    bounds = (boundsOf (dedicatedCore dedicated)) {boundsWatched = toList watched}
    whole = relabelled (transactionLabel transaction)
    toEnd entered (begun :| queue) = do
      ended <- startUntracedOn dedicated (transactionExec transaction) entered
      started <- awaitStarted begun
      answers <- traverse awaitStarted queue
      result <- awaitStarted ended
      pure $ case (started, result) of
        -- Without MULTI the commands ran as they came, unless each of them was turned away, too.
        (Left (ReplyError failed), _)
          | all (either ((/= MaybeExecuted) . errorDelivery) (const False)) answers -> Left (whole (ReplyError failed))
          | otherwise -> Left (whole (ReplyError failed {serverErrorDelivery = MaybeExecuted}))
        -- EXECABORT does not give the reason; the reply to the command that was not queued does.
        (_, Left failed@(ReplyError _)) -> Left (fromMaybe (whole failed) (listToMaybe (lefts (zipWith (first . relabelled) (queuedLabels transaction) answers))))
        -- Nothing runs without EXEC: only how far that came tells whether anything may have run.
        (_, Left failed) -> Left (whole failed)
        (Left failed, _) -> Left (whole failed)
        (_, Right reply) -> transactionResult transaction reply

multi :: Command Value
multi = fromArguments ["MULTI"]
