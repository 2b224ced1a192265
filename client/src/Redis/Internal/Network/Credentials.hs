-- | Where the credentials of a client's connections come from, and how those that
-- are good for a time are renewed.
--
-- The action that issues them is run once for all connections: one runs it while
-- the others wait, and what it issued is used until four fifths of its time are
-- over. Credentials of which nobody says how long they are good for are issued anew
-- for each connection that begins after them. A failure is shared the same way.
--
-- A connection that callers share follows the store on a thread of its own: at that
-- time, or when somebody asks for it ('renewAll'), it says AUTH in line with the
-- commands. When that fails it is tried again, sooner each time than a twentieth of
-- the lifetime, so that there are several attempts before the old credentials end;
-- and further attempts after that.
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
import Control.Exception (SomeAsyncException, SomeException, displayException, finally, fromException, interruptible, mask_, throwIO, try)
import Control.Monad (void, when)
import Data.Foldable (for_)
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Data.Maybe (fromMaybe, mapMaybe)
import Redis.Duration (inSeconds, seconds)
import Redis.Error (ConnectionCause (CredentialsFailed), Endpoint, renderEndpoint)
import Redis.Internal.Backoff (delayFor)
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Clock (Nanos, nanosFromSeconds, preciseNanos, secondsFromNanos)
import Redis.Internal.Network.Handshake (authentication, refusal)
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.MuxState (Multiplexer (muxGone))
import Redis.Internal.Network.ResponseSlot (Outcome (..))
import Redis.Internal.Network.Worker (spawn)
import Redis.Value (Value (ErrorReply))
import System.Random (randomRIO)
import System.Timeout (timeout)

-- | The credentials of a client. Any number of threads may use it.
data CredentialStore = CredentialStore
  { storeConfig :: Config,
    -- | Held while the action runs.
    storeTurn :: MVar (),
    storeNewest :: TVar (Maybe Issue),
    -- | Why the action failed last, and when it began then.
    storeFailure :: TVar (Maybe (Nanos, ConnectionCause)),
    -- | How often somebody asked for newer ones. What was issued before is not used
    -- again.
    storeRound :: TVar Int,
    storeFollowers :: TVar (Map Int Follower),
    -- | For the next follower.
    storeNext :: TVar Int
  }

-- | Credentials that were issued, if any are needed.
data Issue = Issue
  { -- | 'Nothing' if this client has none.
    issueCredentials :: Maybe Credentials,
    -- | They count from 1; 0 is what no action issued.
    issueNumber :: Int,
    -- | When the action began.
    issueBegan :: Nanos,
    issueRound :: Int,
    -- | How long they are good for, in seconds.
    issueLifetime :: Maybe Double
  }

-- | A connection that follows: which round it has had, and how that ended.
data Follower = Follower
  { followerEndpoint :: Endpoint,
    followerRound :: TVar (Int, Maybe ConnectionCause)
  }

-- | Nothing is issued yet.
newCredentialStore :: Config -> IO CredentialStore
newCredentialStore storeConfig = do
  storeTurn <- newMVar ()
  storeNewest <- newTVarIO Nothing
  storeFailure <- newTVarIO Nothing
  storeRound <- newTVarIO 0
  storeFollowers <- newTVarIO Map.empty
  storeNext <- newTVarIO 0
  pure CredentialStore {storeConfig, storeTurn, storeNewest, storeFailure, storeRound, storeFollowers, storeNext}

-- | Whether a connection that was opened with these is as good as a new one: no other
-- credentials were issued since, nor asked for, and their time is not over. Never
-- blocks.
isCurrent :: CredentialStore -> Issue -> IO Bool
isCurrent store issue
  | issueNumber issue == 0 = pure True
  | otherwise = do
    now <- preciseNanos
    (newest, turn) <- atomically ((,) <$> readTVar (storeNewest store) <*> readTVar (storeRound store))
    pure (issueRound issue == turn && maybe True (now <) (renewalOf issue) && maybe True ((== issueCredentials issue) . issueCredentials) newest)

-- | Whether credentials were issued for who asked.
data Origin
  = -- | They were, or by an action that began after it asked.
    IssuedNow
  | -- | An earlier connection has used them.
    IssuedBefore
  deriving stock (Eq, Show)

-- | What will do for who asks.
data Want
  = -- | Who connects, and asked then.
    ToConnect Nanos
  | -- | Newer ones than those of this number; a failure only of an action that began
    -- then or later.
    NewerThan Int Nanos

-- | The credentials to connect with, as they are now. Blocks while the action runs;
-- may be interrupted, and then the next who asks runs it.
obtain :: CredentialStore -> IO (Either ConnectionCause (Origin, Issue))
obtain store = do
  asked <- preciseNanos
  fmap (\issue -> (if issueNumber issue > 0 && issueBegan issue < asked then IssuedBefore else IssuedNow, issue)) <$> obtainFor store (ToConnect asked)

-- | The same, when those of this number are not good any more.
obtainAfter :: CredentialStore -> Int -> IO (Either ConnectionCause Issue)
obtainAfter store number = preciseNanos >>= obtainFor store . NewerThan number

obtainFor :: CredentialStore -> Want -> IO (Either ConnectionCause Issue)
obtainFor store want = case configCredentials (storeConfig store) of
  NoCredentials -> pure (Right (constant Nothing))
  FixedCredentials known -> pure (Right (constant (Just known)))
  CredentialsFrom action ->
    alreadyIssued store want >>= \case
      Just issue -> pure (Right issue)
      Nothing -> withMVar (storeTurn store) $ \_ ->
        -- Another may have had it issued meanwhile.
        alreadyIssued store want >>= \case
          Just issue -> pure (Right issue)
          Nothing -> alreadyFailed store want >>= maybe (issueWith store action) (pure . Left)
  where
    constant known = Issue {issueCredentials = known, issueNumber = 0, issueBegan = 0, issueRound = 0, issueLifetime = Nothing}

alreadyIssued :: CredentialStore -> Want -> IO (Maybe Issue)
alreadyIssued store want = do
  now <- preciseNanos
  (newest, turn) <- atomically ((,) <$> readTVar (storeNewest store) <*> readTVar (storeRound store))
  pure $ case newest of
    Just issue | issueRound issue == turn && maybe True (now <) (renewalOf issue) && suits issue -> Just issue
    _ -> Nothing
  where
    suits issue = case want of
      ToConnect asked -> issueBegan issue >= asked || maybe False (> 0) (issueLifetime issue)
      NewerThan number _ -> issueNumber issue > number

alreadyFailed :: CredentialStore -> Want -> IO (Maybe ConnectionCause)
alreadyFailed store want = do
  failed <- readTVarIO (storeFailure store)
  pure $ case failed of
    Just (began, cause) | began >= since -> Just cause
    _ -> Nothing
  where
    since = case want of
      ToConnect asked -> asked
      NewerThan _ then' -> then'

-- | Runs the action, for who has the turn. It is the user's: it can be interrupted
-- wherever it is.
issueWith :: CredentialStore -> IO IssuedCredentials -> IO (Either ConnectionCause Issue)
issueWith store action = do
  issueBegan <- preciseNanos
  issueRound <- readTVarIO (storeRound store)
  try (interruptible action) >>= \case
    Right IssuedCredentials {issuedAs, issuedFor} -> atomically $ do
      number <- maybe 1 ((+ 1) . issueNumber) <$> readTVar (storeNewest store)
      let issue = Issue {issueCredentials = Just issuedAs, issueNumber = number, issueBegan, issueRound, issueLifetime = inSeconds <$> issuedFor}
      writeTVar (storeNewest store) (Just issue)
      writeTVar (storeFailure store) Nothing
      pure (Right issue)
    Left (problem :: SomeException) -> case fromException problem of
      Just (asynchronous :: SomeAsyncException) -> throwIO asynchronous
      Nothing -> do
        let cause = CredentialsFailed (displayException problem)
        atomically (writeTVar (storeFailure store) (Just (issueBegan, cause)))
        pure (Left cause)

-- | When four fifths of their time are over.
renewalOf :: Issue -> Maybe Nanos
renewalOf issue = (\lifetime -> issueBegan issue + nanosFromSeconds (0.8 * lifetime)) <$> issueLifetime issue

-- | What a following connection knows.
data Following = Following
  { -- | Of the credentials that it has said last, accepted or not.
    followingNumber :: Int,
    -- | Of those that it has.
    followingLifetime :: Maybe Double,
    followingRound :: Int,
    followingDue :: Maybe Nanos,
    followingFailures :: Int,
    -- | A failure from before is known.
    followingSince :: Nanos
  }

-- | Has a connection that callers share follow the store, from the credentials with
-- which it was opened, until it ends. Nothing is done for credentials that no action
-- issues. Never blocks.
followCredentials :: CredentialStore -> Endpoint -> Multiplexer -> Issue -> IO ()
followCredentials store endpoint mux issue = when (issueNumber issue > 0) . mask_ $ do
  follower <- Follower endpoint <$> newTVarIO (issueRound issue, Nothing)
  key <- atomically $ do
    key <- stateTVar (storeNext store) (\next -> (next, next + 1))
    key <$ modifyTVar' (storeFollowers store) (Map.insert key follower)
  void . spawn ("redis credentials " <> renderEndpoint endpoint) $
    void (try @SomeException (following store mux follower (accepted issue)))
      `finally` atomically (modifyTVar' (storeFollowers store) (Map.delete key))

-- | What is known when a connection has these credentials.
accepted :: Issue -> Following
accepted issue =
  Following
    { followingNumber = issueNumber issue,
      followingLifetime = issueLifetime issue,
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
      turn <- readTVarIO (storeRound store)
      asked <- preciseNanos
      let since = if followingSince known > 0 && turn == followingRound known then followingSince known else asked
          limit = configConnectTimeout config
          tooLong = Left (CredentialsFailed ("none within " <> show limit <> " s"))
      -- Limited, because those who connect wait for it.
      fresh <- try (within (Just limit) (obtainFor store (NewerThan (followingNumber known) since)))
      case either (Left . CredentialsFailed . displayException @SomeException) (fromMaybe tooLong) fresh of
        Left cause -> failed known {followingRound = turn} (Just cause)
        Right issue -> sayAnew known issue

    sayAnew known issue = do
      let credentials = issueCredentials issue
          said = known {followingNumber = issueNumber issue, followingRound = issueRound issue}
      reply <- traverse (submitCommand mux usualTerms . authentication) credentials
      case reply of
        Just (Reply (ErrorReply text)) -> failed said {followingLifetime = issueLifetime issue} (Just (refusal credentials text))
        -- No answer in time: to be said again. A connection that is lost ends it.
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
      wait known {followingDue = next <$> followingLifetime known, followingFailures = failures, followingSince = now}

    within = maybe (fmap Just) (\limit -> timeout (max 1000 (ceiling (min 1e9 limit * 1e6))))

-- | The pauses between attempts to renew credentials that are good for so many
-- seconds.
retrying :: Config -> Double -> Backoff
retrying config lifetime = Backoff {backoffFirst = min (backoffFirst (configBackoff config)) longest, backoffCap = longest}
  where
    longest = seconds (max 0.001 (lifetime / 20))

-- | Has the credentials issued anew and said by all connections that follow, and
-- tells which do not have them, and why. What was issued before is not used again.
-- Blocks until each connection has answered or ended.
renewAll :: CredentialStore -> IO [(Endpoint, ConnectionCause)]
renewAll store = do
  (turn, followers) <- atomically $ do
    turn <- stateTVar (storeRound store) (\before -> (before + 1, before + 1))
    (,) turn <$> readTVar (storeFollowers store)
  outcomes <- atomically (traverse (outcome turn) (Map.toList followers))
  pure (mapMaybe (\(follower, cause) -> (,) (followerEndpoint follower) <$> cause) outcomes)
  where
    outcome turn (key, follower) = do
      lives <- Map.member key <$> readTVar (storeFollowers store)
      (had, cause) <- readTVar (followerRound follower)
      check (not lives || had >= turn)
      pure (follower, if had >= turn then cause else Nothing)
