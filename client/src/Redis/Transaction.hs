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
    Watched (..),
    watchingWith,
    WatchOptions (watchAttempts),
    watchDefaults,
  )
where

import Control.Concurrent (threadDelay)
import Control.Exception (throwIO, try)
import Data.ByteString (ByteString)
import Data.List.NonEmpty (NonEmpty ((:|)))
import Data.List.NonEmpty qualified as NonEmpty
import Redis.Client
import Redis.Commands.Raw (raw)
import Redis.Error
import Redis.Internal.Client.Core (Client (..), Core (coreRouter))
import Redis.Internal.Client.Execute (Pending (..), runTraced, traced)
import Redis.Internal.Client.Trace (Subject, transactionOf)
import Redis.Internal.Client.Transaction
import Redis.Internal.Command (commandWords)
import Redis.Internal.Command.Transaction
import Redis.Internal.Protocol.Slot (keySlot)
import Redis.Internal.Routing.Router (isClustered)
import System.Random (randomRIO)

-- | Runs a transaction and waits for its results. Throws 'Error': the error of a command that could
-- not be queued, and then nothing was done; or the first error of a 'queued' command that failed
-- when it ran. Costs one round trip, and one more for each redirect or retry.
--
-- If the connection is lost before EXEC was sent, nothing has run, and the transaction is sent again.
-- If EXEC was sent and not answered, nobody knows whether it ran: the error is 'MaybeExecuted', and
-- the transaction is not sent again, unless each of its commands may be
-- ('Redis.Command.repeatable').
--
-- @since 0.1.0.0
runTransaction :: Client -> Transaction a -> IO a
runTransaction client transaction = tryRunTransaction client transaction >>= either throwIO pure

-- | Like 'runTransaction', but returns the results or the 'Error'.
--
-- @since 0.1.0.0
tryRunTransaction :: Client -> Transaction a -> IO (Either Error a)
tryRunTransaction (Client core) transaction = runTraced core (subjectOf transaction) (`startTransaction` transaction)

-- | Submits a transaction without waiting for its results. Blocks like 'submit'.
--
-- @since 0.1.0.0
submitTransaction :: Client -> Transaction a -> IO (Pending a)
submitTransaction (Client core) transaction = Pending <$> traced core (subjectOf transaction) (`startTransaction` transaction)

subjectOf :: Transaction a -> Subject
subjectOf = transactionOf . map commandWords . transactionCommands

-- | What to do after reading the watched keys.
--
-- @since 0.1.0.0
data Decision a
  = -- | Run this transaction, if no watched key has changed since.
    Commit (Transaction a)
  | -- | Do nothing.
    Abandon

-- | How a watched transaction ended.
--
-- @since 0.1.0.0
data Watched a
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
-- @since 0.1.0.0
watching :: Client -> NonEmpty ByteString -> (forall s. Dedicated s -> IO (Decision a)) -> IO (Watched a)
watching = watchingWith watchDefaults

-- | How often 'watching' tries.
--
-- @since 0.1.0.0
newtype WatchOptions = WatchOptions
  { -- | How often the action runs at most: again if another client has changed a watched key, or if
    -- the keys are moving to another node. At least 1.
    watchAttempts :: Int
  }
  deriving stock (Eq, Show)

-- | At most 32 attempts.
--
-- @since 0.1.0.0
watchDefaults :: WatchOptions
watchDefaults = WatchOptions {watchAttempts = 32}

-- | Like 'watching', with options.
--
-- @since 0.1.0.0
watchingWith :: forall a. WatchOptions -> Client -> NonEmpty ByteString -> (forall s. Dedicated s -> IO (Decision a)) -> IO (Watched a)
watchingWith WatchOptions {watchAttempts} client@(Client core) names@(first :| others) decide
  | isClustered (coreRouter core), any ((/= keySlot first) . keySlot) others = throwIO (RefusedError (CrossSlot "WATCH"))
  | otherwise = go 1
  where
    go attempt =
      try (withDedicated client (AtKey first) once) >>= \case
        Right (Just done) -> pure done
        Right Nothing
          | attempt < watchAttempts -> again attempt
          | otherwise -> pure Contended
        Left failed
          | attempt < watchAttempts, isElsewhere failed -> again attempt
          | otherwise -> throwIO failed

    once :: Dedicated s -> IO (Maybe (Watched a))
    once connection = do
      _ <- runOn connection (raw ("WATCH" : NonEmpty.toList names))
      decide connection >>= \case
        Abandon -> Just Abandoned <$ runOn connection (raw ["UNWATCH"])
        Commit transaction -> tryTransactionOn connection transaction >>= either throwIO (pure . fmap Committed)

    -- The keys are moving to another node, or have moved, or the node is not ready: nothing was
    -- done, and another attempt may find the right node.
    isElsewhere = \case
      ReplyError ServerError {serverErrorCode, serverErrorDelivery} ->
        serverErrorDelivery == RefusedBeforeRun && serverErrorCode `elem` ["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "READONLY", "LOADING"]
      _ -> False

    again :: Int -> IO (Watched a)
    again attempt = do
      random <- randomRIO (0, 1 :: Double)
      threadDelay (round (random * 1000 * 2 ^ min 6 attempt))
      go (attempt + 1)
