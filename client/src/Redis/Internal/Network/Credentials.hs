-- | The credentials of a client's connections: where they come from, and how credentials with a
-- lifetime are renewed.
--
-- One run of the action that issues credentials serves all connections: one runs it while the others
-- wait. The credentials are then used until four fifths of their lifetime have passed; without a stated
-- lifetime they serve only the connections that asked before the action began. So does a failure.
--
-- A connection that callers share follows the store on a thread of its own, which sends AUTH in line with
-- the commands when renewal is due or 'renewAll' asks for it. A failed renewal is tried again after at
-- most a twentieth of the lifetime: several times before the old credentials expire.
module Redis.Internal.Network.Credentials
  ( CredentialStore,
    newCredentialStore,
    Issue,
    issueCredentials,
    issueNumber,
    isCurrent,

    -- * For a new connection
    Origin (..),
    obtain,
    obtainAfter,

    -- * For a connection that lives
    followCredentials,
    renewAll,
  )
where

import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception (SomeException, displayException, finally, interruptible, mask_, try, tryJust)
import Control.Monad (mfilter, void, when)
import Data.Foldable (for_)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, mapMaybe)
import Redis.Duration (inSeconds, seconds)
import Redis.Error (ConnectionCause (CredentialsFailed), Endpoint, Error (TimeoutError), renderEndpoint)
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Connection (Multiplexer (muxGone))
import Redis.Internal.Network.Handshake (authentication, refusal)
import Redis.Internal.Network.InFlight (Outcome (..))
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.Runtime (Nanos, nanosFromSeconds, preciseNanos, quietly, secondsFromNanos, spawn)
import Redis.Value (Value (ErrorReply))
import System.Random (randomRIO)
import System.Timeout (timeout)

-- | The credentials of a client. Any number of threads may use it.
data CredentialStore = CredentialStore
  { storeConfig :: Config,
    -- | Held while the action runs.
    storeTurn :: MVar (),
    storeNewest :: TVar (Maybe Issue),
    -- | The cause of the failure, if the last run of the action failed, and when that run began.
    storeFailure :: TVar (Maybe (Nanos, ConnectionCause)),
    -- | How often 'renewAll' was called. Credentials from before the last call are not used again.
    storeRound :: TVar Int,
    storeFollowers :: TVar (Map Int Follower),
    -- | The key of the next follower.
    storeNext :: TVar Int
  }

-- | One issue of credentials. A client that needs none has an issue without credentials.
data Issue = Issue
  { -- | 'Nothing' if this client has none.
    issueCredentials :: Maybe Credentials,
    -- | Issues count from 1. Credentials that no action issues have the number 0.
    issueNumber :: Int,
    -- | When the action began.
    issueBegan :: Nanos,
    issueRound :: Int,
    -- | The lifetime of the credentials in seconds, if the action states one.
    issueLifetime :: Maybe Double
  }

-- | A connection that follows the store: the last round that it has finished, and why if it failed.
data Follower = Follower
  { followerEndpoint :: Endpoint,
    followerRound :: TVar (Int, Maybe ConnectionCause)
  }

-- | A store that has not issued anything yet.
newCredentialStore :: Config -> IO CredentialStore
newCredentialStore config =
  CredentialStore config <$> newMVar () <*> newTVarIO Nothing <*> newTVarIO Nothing <*> newTVarIO 0 <*> newTVarIO Map.empty <*> newTVarIO 0

-- | Whether a connection that was opened with these credentials is as good as a new one: no other
-- credentials have been issued or requested since, and renewal is not due. Never blocks.
isCurrent :: CredentialStore -> Issue -> IO Bool
isCurrent store issue
  | issueNumber issue == 0 = pure True
  | otherwise = do
    (newest, fresh) <- newestAndFresh store
    pure (fresh issue && maybe True ((== issueCredentials issue) . issueCredentials) newest)

-- | The newest issue, and whether an issue is of the present round and its renewal not due.
newestAndFresh :: CredentialStore -> IO (Maybe Issue, Issue -> Bool)
newestAndFresh store = do
  now <- preciseNanos
  (newest, current) <- atomically ((,) <$> readTVar (storeNewest store) <*> readTVar (storeRound store))
  pure (newest, \issue -> issueRound issue == current && maybe True (now <) (renewalOf issue))

-- | Whether credentials were issued for this request or for an earlier one.
data Origin
  = -- | The action began after the request. Also said of credentials that no action issues.
    IssuedNow
  | -- | The action began before the request.
    IssuedBefore
  deriving stock (Eq, Show)

-- | The present credentials, for a new connection. Blocks while the action runs; may be interrupted.
obtain :: CredentialStore -> IO (Either ConnectionCause (Origin, Issue))
obtain store = do
  asked <- preciseNanos
  let suits issue = issueBegan issue >= asked || maybe False (> 0) (issueLifetime issue)
  fmap (\issue -> (if issueNumber issue > 0 && issueBegan issue < asked then IssuedBefore else IssuedNow, issue)) <$> obtainFor store suits asked

-- | Like 'obtain', for when the credentials of this number are no longer valid: returns newer ones.
obtainAfter :: CredentialStore -> Int -> IO (Either ConnectionCause Issue)
obtainAfter store number = preciseNanos >>= obtainFor store ((> number) . issueNumber)

-- | Credentials that suit the request. A failure counts only if its action began at this time or later.
obtainFor :: CredentialStore -> (Issue -> Bool) -> Nanos -> IO (Either ConnectionCause Issue)
obtainFor store suits since = case configCredentials (storeConfig store) of
  NoCredentials -> pure (Right (constant Nothing))
  FixedCredentials known -> pure (Right (constant (Just known)))
  CredentialsFrom action ->
    alreadyIssued >>= \case
      Just issue -> pure (Right issue)
      Nothing -> withMVar (storeTurn store) $ \_ ->
        -- Another thread may have run the action meanwhile.
        alreadyIssued >>= \case
          Just issue -> pure (Right issue)
          Nothing -> do
            failure <- mfilter ((>= since) . fst) <$> readTVarIO (storeFailure store)
            maybe (issueWith store action) (pure . Left . snd) failure
  where
    constant known = Issue {issueCredentials = known, issueNumber = 0, issueBegan = 0, issueRound = 0, issueLifetime = Nothing}
    alreadyIssued = do
      (newest, fresh) <- newestAndFresh store
      pure (mfilter (\issue -> fresh issue && suits issue) newest)

-- | Runs the action. The caller has the turn. It can be interrupted wherever the action is.
issueWith :: CredentialStore -> IO IssuedCredentials -> IO (Either ConnectionCause Issue)
issueWith store action = do
  issueBegan <- preciseNanos
  issueRound <- readTVarIO (storeRound store)
  tryJust synchronous (interruptible action) >>= \case
    Right IssuedCredentials {issuedAs, issuedFor} -> atomically $ do
      number <- maybe 1 ((+ 1) . issueNumber) <$> readTVar (storeNewest store)
      let issue = Issue {issueCredentials = Just issuedAs, issueNumber = number, issueBegan, issueRound, issueLifetime = inSeconds <$> issuedFor}
      writeTVar (storeNewest store) (Just issue)
      writeTVar (storeFailure store) Nothing
      pure (Right issue)
    Left problem -> do
      let cause = CredentialsFailed (displayException problem)
      atomically (writeTVar (storeFailure store) (Just (issueBegan, cause)))
      pure (Left cause)

-- | When renewal is due: after four fifths of the lifetime.
renewalOf :: Issue -> Maybe Nanos
renewalOf issue = (\lifetime -> issueBegan issue + nanosFromSeconds (0.8 * lifetime)) <$> issueLifetime issue

-- | The state of a connection that follows the store.
data Following = Following
  { -- | The credentials that the connection sent last, accepted or not.
    followingIssue :: Issue,
    followingRound :: Int,
    followingDue :: Maybe Nanos,
    followingFailures :: Int,
    -- | When the last renewal failed, 0 if it did not. Earlier failures of the action are known already.
    followingSince :: Nanos
  }

-- | Makes a connection that callers share follow the store until it ends, beginning with the credentials with
-- which it was opened. Does nothing for credentials that no action issues. Never blocks.
followCredentials :: CredentialStore -> Endpoint -> Multiplexer -> Issue -> IO ()
followCredentials store endpoint mux issue = when (issueNumber issue > 0) . mask_ $ do
  follower <- Follower endpoint <$> newTVarIO (issueRound issue, Nothing)
  key <- atomically $ do
    key <- stateTVar (storeNext store) (\next -> (next, next + 1))
    key <$ modifyTVar' (storeFollowers store) (Map.insert key follower)
  void . spawn ("redis credentials " <> renderEndpoint endpoint) $
    quietly (following store mux follower (accepted issue))
      `finally` atomically (modifyTVar' (storeFollowers store) (Map.delete key))

-- | The state after the server has accepted these credentials.
accepted :: Issue -> Following
accepted issue =
  Following
    { followingIssue = issue,
      followingRound = issueRound issue,
      followingDue = renewalOf issue,
      followingFailures = 0,
      followingSince = 0
    }

following :: CredentialStore -> Multiplexer -> Follower -> Following -> IO ()
following store mux Follower {followerEndpoint, followerRound} = wait
  where
    config = storeConfig store

    wait known = do
      now <- preciseNanos
      ended <-
        within ((\due -> secondsFromNanos (due - now)) <$> followingDue known) . atomically $
          (True <$ readTMVar (muxGone mux)) `orElse` (False <$ (readTVar (storeRound store) >>= check . (/= followingRound known)))
      case ended of
        Just True -> pure ()
        _ -> renew known

    renew known = do
      current <- readTVarIO (storeRound store)
      asked <- preciseNanos
      let since = if followingSince known > 0 && current == followingRound known then followingSince known else asked
          limit = configConnectTimeout config
          tooLong = Left (CredentialsFailed ("the action issued none within " <> show limit <> " s"))
      -- Limited, because new connections wait for the action.
      fresh <- try (within (Just limit) (obtainFor store ((> issueNumber (followingIssue known)) . issueNumber) since))
      case either (Left . CredentialsFailed . displayException @SomeException) (fromMaybe tooLong) fresh of
        Left cause -> failed known {followingRound = current} (Just cause)
        Right issue -> sayAnew known issue

    sayAnew known issue = do
      let credentials = issueCredentials issue
          said = known {followingIssue = issue, followingRound = issueRound issue}
      terms <- usualTerms mux
      reply <- traverse (submitCommand mux terms . authentication) credentials
      case reply of
        Just (Reply (ErrorReply text)) -> failed said (Just (refusal credentials text))
        -- No answer in time: send AUTH again later.
        Just (Failure late@(TimeoutError _)) -> failed known {followingRound = issueRound issue} (Just (CredentialsFailed (displayException late)))
        -- The connection is lost, and 'wait' ends the loop.
        Just (Failure _) -> failed known {followingRound = issueRound issue} Nothing
        _ -> do
          atomically (writeTVar followerRound (issueRound issue, Nothing))
          wait (accepted issue)

    failed known cause = do
      for_ cause (observeConnection (configHooks config) . CredentialsNotRenewed followerEndpoint)
      atomically (writeTVar followerRound (followingRound known, cause))
      now <- preciseNanos
      random <- randomRIO (0, 1)
      let failures = followingFailures known + 1
          next lifetime = now + nanosFromSeconds (delayFor (retrying config lifetime) failures random)
      wait known {followingDue = next <$> issueLifetime (followingIssue known), followingFailures = failures, followingSince = now}

    within = maybe (fmap Just) (\limit -> timeout (max 1000 (ceiling (min 1e9 limit * 1e6))))

-- | The pauses between attempts to renew credentials with a lifetime of so many seconds.
retrying :: Config -> Double -> Backoff
retrying config lifetime = Backoff {backoffFirst = min (backoffFirst (configBackoff config)) longest, backoffCap = longest}
  where
    longest = seconds (max 0.001 (lifetime / 20))

-- | Runs the action again, and makes all following connections authenticate with the new
-- credentials. Returns the connections that failed, with the cause. Credentials issued before are
-- not used again. Blocks until each connection has been answered or has ended.
renewAll :: CredentialStore -> IO [(Endpoint, ConnectionCause)]
renewAll store = do
  (current, followers) <- atomically $ do
    current <- stateTVar (storeRound store) (\before -> (before + 1, before + 1))
    (,) current <$> readTVar (storeFollowers store)
  outcomes <- atomically (traverse (outcome current) (Map.toList followers))
  pure (mapMaybe (\(follower, cause) -> (,) (followerEndpoint follower) <$> cause) outcomes)
  where
    outcome current (key, follower) = do
      lives <- Map.member key <$> readTVar (storeFollowers store)
      (had, cause) <- readTVar (followerRound follower)
      check (not lives || had >= current)
      pure (follower, if had >= current then cause else Nothing)
