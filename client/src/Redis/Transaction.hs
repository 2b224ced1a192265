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
import Control.Concurrent.STM (readTVarIO)
import Control.Exception (throwIO, try)
import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Data.Maybe (fromMaybe)
import Redis.Client
import Redis.Commands.Raw (raw)
import Redis.Error
import Redis.Internal.Client.Core (Client (..), Core (..), deadlineFor, keepOpen, pauseFor)
import Redis.Internal.Client.Execute (runTraced, traced)
import Redis.Internal.Client.Lease (lease, wasLostReading)
import Redis.Internal.Client.RetryEngine (policyFor)
import Redis.Internal.Client.Trace (Subject, transactionOf)
import Redis.Internal.Client.Transaction
import Redis.Internal.Command (Command, commandArguments, writeFacts)
import Redis.Internal.Command.Transaction
import Redis.Internal.Network.Runtime (Nanos, coarseNanos, secondsLeft)
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Internal.Routing.Cluster (isClustered)
import Redis.Internal.Routing.RetryPolicy
import Redis.Internal.Routing.Target (Target (TargetPrimary))
import Redis.Value (Value)
import System.Random (randomRIO)

-- | Runs a transaction and waits for its results. Throws 'Error': the error of a command that could
-- not be queued, and then nothing was done; or the first error of a 'queued' command that failed
-- when it ran. Costs one round trip, and one more for each redirect or retry.
--
-- If the connection is lost before EXEC was sent, nothing has run, and the transaction is sent again.
-- If EXEC was sent and not answered, nobody knows whether it ran: the error is 'MaybeExecuted', and
-- the transaction is not sent again, unless each of its commands may be
-- ('Redis.Command.repeatable').
runTransaction :: Client -> Transaction a -> IO a
runTransaction client transaction = tryRunTransaction client transaction >>= either throwIO pure

-- | Like 'runTransaction', but returns the results or the 'Error'.
tryRunTransaction :: Client -> Transaction a -> IO (Either Error a)
tryRunTransaction (Client core) transaction = runTraced core (subjectOf transaction) (`startTransaction` transaction)

-- | Submits a transaction without waiting for its results. Blocks like 'submit'.
submitTransaction :: Client -> Transaction a -> IO (Pending a)
submitTransaction (Client core) transaction = traced core (subjectOf transaction) (`startTransaction` transaction)

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
-- connection meanwhile, and gives it back clean; blocks like 'withDedicated'. Throws 'Error', and
-- whatever the action throws.
--
-- What 'runTransaction' follows or repeats makes 'watching' begin again, too: a connection that is
-- lost before EXEC was sent, also while the action reads, and a server that is not ready or no longer
-- serves the keys. It does so for the time and the attempts of one command ('Redis.Config.setCommandTimeout',
-- 'Redis.Config.setMaxAttempts'). 'MaybeExecuted' means that EXEC may have run, or a write of the action itself.
watching :: Client -> NonEmpty ByteString -> (forall s. Dedicated s -> IO (Decision a)) -> IO (WatchResult a)
watching = watchingWith watchDefaults

-- | How often 'watching' tries.
newtype WatchOptions = WatchOptions
  { -- | How often the action runs at most: again if another client has changed a watched key, if
    -- the keys are moving to another node, or if the connection was lost before EXEC. At least 1.
    watchAttempts :: Int
  }
  deriving stock (Eq, Show)

-- | At most 32 attempts.
watchDefaults :: WatchOptions
watchDefaults = WatchOptions {watchAttempts = 32}

-- | Like 'watching', with options.
watchingWith :: forall a. WatchOptions -> Client -> NonEmpty ByteString -> (forall s. Dedicated s -> IO (Decision a)) -> IO (WatchResult a)
watchingWith WatchOptions {watchAttempts} (Client core) names@(first :| others) look
  | isClustered (coreCluster core), any ((/= keySlot first) . keySlot) others = throwIO (RefusedError (CrossSlot "WATCH"))
  | otherwise = go 1 Nothing <* keepOpen core
  where
    -- The second argument: when the failures since the last look that came to EXEC began, and their
    -- course.
    go :: Int -> Maybe (Nanos, AttemptsSoFar) -> IO (WatchResult a)
    go attempt failures = do
      began <- coarseNanos
      lease core (AtKey first) once >>= \case
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
              if lost then pure (Failed (undone failed)) else throwIO failed
            -- Whatever becomes of it, nothing was done; and the connection goes if it is still
            -- watching.
            Right Abandon -> Ended Abandoned <$ tryRunOn connection (raw ["UNWATCH"] :: Command Value)
            Right (Commit transaction) -> either Failed (maybe Changed (Ended . Committed)) <$> tryTransactionOn connection transaction

    -- The connection has told the router what its errors show. The next look finds its node by
    -- the map.
    judge attempt (began, soFar) failed = do
      closed <- readTVarIO (coreClosed core)
      failedRandom <- randomRIO (0, 1)
      failedRemaining <- (`secondsLeft` deadlineFor core writeFacts began) <$> coarseNanos
      let attempted = FailedAttempt {failedError = failed, failedNode = Nothing, failedRole = Primary, failedRemaining, failedRandom}
          RetryDecision {decisionNext, decisionSoFar} = decide (policyFor (coreConfig core) (coreCluster core) (TargetPrimary (keySlot first)) closed) writeFacts soFar attempted
          again (delay :: Double)
            | attempt < watchAttempts = do
              open <- pauseFor core delay
              if open then go (attempt + 1) (Just (began, decisionSoFar)) else throwIO (concluding writeFacts decisionSoFar ClientClosed)
            | otherwise = throwIO failed
      case decisionNext of
        GiveUp final -> throwIO final
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
undone = \case
  ConnectionError lost -> ConnectionError lost {connectionDelivery = NotSent}
  TimeoutError late -> TimeoutError late {timeoutDelivery = NotSent}
  failed -> failed
