-- | Commands that run together: all of them or, if one cannot be queued, none, and
-- nothing of other clients in between.
--
-- > (visits, name) <- runTransaction client ((,) <$> queued (incr "{u}visits") <*> queued (get "{u}name"))
--
-- It is one round trip on a shared connection, in line with everybody's commands. In a
-- cluster all keys must share a slot.
--
-- A transaction does not roll back. A command that fails when it runs, such as an INCR of
-- what is no number, fails alone, and the others have run: 'tryQueued' tells of each.
--
-- What must look at values first watches them ('watching').
--
-- Server: <https://valkey.io/topics/transactions/>.
module Redis.Transaction
  ( Transaction,
    queued,
    tryQueued,
    runTransaction,
    tryRunTransaction,
    submitTransaction,

    -- * After a look
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

-- | Runs a transaction and waits for its results. Throws 'Error': of a command that
-- could not be queued, and then nothing was done; or the first of a 'queued' command
-- that failed when it ran. Costs one round trip, and one more for each redirect or retry.
--
-- If the connection is lost before EXEC was sent nothing has run, and it is sent again.
-- If EXEC was sent and not answered, nobody knows: that is 'MaybeExecuted', and it is
-- not sent again, unless each of its commands may be
-- ('Redis.Command.repeatable').
--
-- @since 0.1.0.0
runTransaction :: Client -> Transaction a -> IO a
runTransaction client transaction = tryRunTransaction client transaction >>= either throwIO pure

-- | Runs a transaction; its results, or the 'Error'.
--
-- @since 0.1.0.0
tryRunTransaction :: Client -> Transaction a -> IO (Either Error a)
tryRunTransaction (Client core) transaction = runTraced core (subjectOf transaction) (`startTransaction` transaction)

-- | Submits a transaction without waiting for its results. Blocks as 'submit'.
--
-- @since 0.1.0.0
submitTransaction :: Client -> Transaction a -> IO (Pending a)
submitTransaction (Client core) transaction = Pending <$> traced core (subjectOf transaction) (`startTransaction` transaction)

subjectOf :: Transaction a -> Subject
subjectOf = transactionOf . map commandWords . transactionCommands

-- | What is done after a look.
--
-- @since 0.1.0.0
data Decision a
  = -- | This, if nothing that was watched has changed since.
    Commit (Transaction a)
  | -- | Nothing.
    Abandon

-- | What came of it.
--
-- @since 0.1.0.0
data Watched a
  = -- | The transaction ran.
    Committed a
  | -- | It was decided to do nothing.
    Abandoned
  | -- | Others changed what was watched each time, and nothing was done.
    Contended
  deriving stock (Eq, Show)

-- | Watches the keys, runs the action, which may read on the connection that it is given
-- and decides, and runs the transaction if no watched key has changed since. If one has,
-- all of it is done again, the action too, after a random pause: so the action should
-- change nothing by itself.
--
-- > watching client ("balance" :| []) $ \\connection -> do
-- >   balance <- runOn connection (get "balance")
-- >   pure (if enough balance then Commit (queued (decrby "balance" 5)) else Abandon)
--
-- In a cluster the watched keys and those of the transaction must share a slot. Lends a
-- connection for the time, which goes back clean; blocks as 'withDedicated'. Throws
-- 'Error', and what the action throws.
--
-- @since 0.1.0.0
watching :: Client -> NonEmpty ByteString -> (forall s. Dedicated s -> IO (Decision a)) -> IO (Watched a)
watching = watchingWith watchDefaults

-- | How often it is tried.
--
-- @since 0.1.0.0
newtype WatchOptions = WatchOptions
  { -- | Times that the action is run at most, because of others or because the keys
    -- were on their way to another node; at least 1.
    watchAttempts :: Int
  }
  deriving stock (Eq, Show)

-- | 32 times.
--
-- @since 0.1.0.0
watchDefaults :: WatchOptions
watchDefaults = WatchOptions {watchAttempts = 32}

-- | As 'watching'.
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

    -- Its keys are on their way to another node, or are there; nothing was done.
    isElsewhere = \case
      ReplyError ServerError {serverErrorCode, serverErrorDelivery} ->
        serverErrorDelivery == RefusedBeforeRun && serverErrorCode `elem` ["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "READONLY", "LOADING"]
      _ -> False

    again :: Int -> IO (Watched a)
    again attempt = do
      random <- randomRIO (0, 1 :: Double)
      threadDelay (round (random * 1000 * 2 ^ min 6 attempt))
      go (attempt + 1)
