-- | Runs transactions: as one run over a shared connection, or on a lent connection.
module Redis.Internal.Client.Transaction
  ( startTransaction,
    tryTransactionOn,
  )
where

import Control.Concurrent.MVar (newEmptyMVar)
import Data.Bifunctor (first)
import Data.Either (lefts)
import Data.Maybe (fromMaybe, listToMaybe)
import Redis.Error
import Redis.Internal.Client.Core
import Redis.Internal.Client.Execute
import Redis.Internal.Client.Lease
import Redis.Internal.Client.RetryEngine
import Redis.Internal.Client.Trace (transactionOf)
import Redis.Internal.Command
import Redis.Internal.Command.Make (fromArguments)
import Redis.Internal.Command.Transaction
import Redis.Internal.Network.Runtime (coarseNanos)
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Internal.Routing.Cluster (isClustered)
import Redis.Internal.Routing.Router
import Redis.Internal.Routing.Target
import Redis.Value (Value (Array))

-- | Submits MULTI, the queued commands, and EXEC as one run, with nothing in between. A
-- transaction that fails is recovered like every command ("Redis.Internal.Client.RetryEngine"),
-- as a whole. Blocks only while there is no room for it or no connection.
startTransaction :: Core -> Transaction a -> IO (Pending a)
startTransaction core transaction
  | Just refusal <- transactionRefusal bounds transaction = pure (settled (Left (RefusedError refusal)))
  | null commands = pure (settled (conclude (Array [])))
  | otherwise = do
    began <- coarseNanos
    result <- newEmptyMVar
    call <- behindQueue (map commandRequest (multi : commands)) <$> (newCall (commandRequest exec) facts target (deadlineFor core facts began) result >>= tracedBy (coreNotes core))
    behind <- waitsForDestination engine
    destination <- if behind then pure Nothing else destinationFor cluster facts target
    maybe (awaitDestination engine call) (sendCall engine call) destination
    pure (heldOpen core (resultIn result (either (Left . withLabel (transactionLabel transaction)) conclude)))
  where
    cluster = coreCluster core
    engine = coreRetryEngine core
    commands = transactionCommands transaction
    facts = transactionFacts transaction
    bounds = Bounds {boundsSeveralNodes = isClustered cluster, boundsArgument = longestArgument core}
    target = case transactionKeys transaction of
      key : _ -> TargetPrimary (keySlot key)
      [] -> maybe TargetAnyNode targetOf (listToMaybe commands)

    conclude reply = transactionResult transaction reply >>= maybe (Left unwatched) Right
    unwatched = UnexpectedReply DecodeError {decodeErrorPath = [], decodeErrorExpected = "EXEC's array", decodeErrorGot = "null, but no key was watched", decodeErrorCommand = "EXEC"}

-- | Runs a transaction on a lent connection, after the WATCHes there. 'Nothing' if a watched
-- key had changed; then nothing was done.
tryTransactionOn :: Dedicated s -> Transaction a -> IO (Either Error (Maybe a))
tryTransactionOn dedicated transaction =
  tracedOn dedicated (transactionOf (map commandArguments (transactionCommands transaction))) $ \entered -> case transactionRefusal bounds transaction of
    Just refusal -> pure (Left (RefusedError refusal))
    Nothing -> do
      begun <- startUntracedOn dedicated multi (pure ())
      queue <- traverse (\command -> startUntracedOn dedicated command (pure ())) (transactionCommands transaction)
      ended <- startUntracedOn dedicated exec entered
      started <- awaitStarted begun
      answers <- traverse awaitStarted queue
      result <- awaitStarted ended
      let whole = relabelled (transactionLabel transaction)
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
  where
    bounds = Bounds {boundsSeveralNodes = False, boundsArgument = longestArgument (dedicatedCore dedicated)}

multi, exec :: Command Value
multi = fromArguments ["MULTI"]
exec = fromArguments ["EXEC"]
