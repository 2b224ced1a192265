-- | Connections that one caller has for itself: for commands that the server
-- keeps waiting, and for those that change what the connection is.
--
-- The pool lends them out and takes them back when nothing was left behind on
-- them; whoever is not sure says so, and the connection is closed. A caller
-- that is interrupted while the server keeps it waiting always closes: the
-- answer may still come, and must not go to the next one.
--
-- Many may be opened at once while the node is well. Once an attempt has
-- failed, leases fail with its cause until the backoff has passed
-- ("Redis.Internal.Network.Reconnect").
module Redis.Internal.Network.Dedicated
  ( DedicatedPool,
    newDedicatedPool,
    closeDedicatedPool,
    closeIdle,
    withLease,
    Condition (..),
  )
where

import Control.Concurrent (myThreadId, threadCapability)
import Control.Concurrent.STM
import Control.Exception (mask, mask_, onException)
import Control.Monad (join, void)
import Data.List qualified as List
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Clock (coarseNanos)
import Redis.Internal.Network.Handshake (ConnectionRole (ForPrimary))
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.OpenConnection
import Redis.Internal.Network.Reconnect
import System.Random (randomRIO)
import System.Timeout (timeout)

-- | The dedicated connections of one node.
data DedicatedPool = DedicatedPool
  { dedicatedEndpoint :: Endpoint,
    dedicatedSetup :: ConnectionSetup,
    dedicatedState :: TVar DedicatedState,
    dedicatedReconnect :: TVar Reconnect
  }

data DedicatedState
  = Lending
      [Multiplexer]
      -- ^ Idle connections, the most recently used first.
      [Multiplexer]
      -- ^ Those lent out.
      Int
      -- ^ How many are lent out, idle or being opened.
  | Closed

-- | What state a lease leaves its connection in.
data Condition
  = -- | As the handshake left it.
    Clean
  | -- | Anything else.
    Spoilt
  deriving stock (Eq, Show)

-- | An empty pool. Never blocks.
newDedicatedPool :: ConnectionSetup -> Endpoint -> IO DedicatedPool
newDedicatedPool dedicatedSetup dedicatedEndpoint = do
  dedicatedState <- newTVarIO (Lending [] [] 0)
  dedicatedReconnect <- newTVarIO untroubled
  pure DedicatedPool {dedicatedEndpoint, dedicatedSetup, dedicatedState, dedicatedReconnect}

-- | Closes idle connections now, lent ones when they come back, but at the
-- latest after so many seconds: whom the server keeps waiting must not wait for
-- ever. Idempotent.
closeDedicatedPool :: Double -> DedicatedPool -> IO ()
closeDedicatedPool grace pool = do
  (idle, lent) <- atomically $ do
    state <- readTVar (dedicatedState pool)
    writeTVar (dedicatedState pool) Closed
    pure $ case state of
      Lending idle lent _ -> (idle, lent)
      Closed -> ([], [])
  mapM_ abortMultiplexer idle
  void (timeout (round (grace * 1e6)) (mapM_ awaitGone lent))
  mapM_ abortMultiplexer lent

-- | Closes the connections that lie idle: their server has forgotten who they
-- are. Those that are lent out stay; whoever has them will be told. Blocks until
-- the descriptors are free.
closeIdle :: DedicatedPool -> IO ()
closeIdle pool = mask_ $ do
  idle <- atomically . stateTVar (dedicatedState pool) $ \case
    Lending idle lent total -> (idle, Lending [] lent (total - length idle))
    Closed -> ([], Closed)
  mapM_ abortMultiplexer idle

-- | Lends a connection to an action, which says in what condition it leaves
-- it. Blocks while all are lent out (for at most the command timeout) and
-- while one is opened; may be interrupted. An exception in the action closes the connection.
withLease :: DedicatedPool -> (Multiplexer -> IO (a, Condition)) -> IO (Either Error a)
withLease pool action = mask $ \restore ->
  takeOne >>= \case
    Left failure -> pure (Left failure)
    Right mux -> do
      (result, condition) <- restore (action mux) `onException` discard mux
      case condition of
        Clean -> giveBack mux
        Spoilt -> discard mux
      pure (Right result)
  where
    config = setupConfig (dedicatedSetup pool)
    limit = configMaxDedicated config
    reconnect = dedicatedReconnect pool
    failed = ConnectionError NotSent (dedicatedEndpoint pool)
    change = modifyTVar' (dedicatedState pool)

    takeOne = join . atomically $ takeNow (pure waitForOne)

    waitForOne = case configCommandTimeout config of
      Nothing -> join (atomically (takeNow retry))
      Just seconds -> do
        expired <- registerDelay (ceiling (min 1e9 seconds * 1e6))
        join . atomically . takeNow $
          pure (Left (TimeoutError NotSent seconds)) <$ (readTVar expired >>= check)

    -- With what to do when all are lent out.
    takeNow full =
      readTVar (dedicatedState pool) >>= \case
        Closed -> pure (pure (Left (failed ClosedLocally)))
        Lending (mux : idle) lent total -> do
          writeTVar (dedicatedState pool) (Lending idle (mux : lent) total)
          pure (reuse mux)
        Lending [] lent total
          | total < limit -> do
            writeTVar (dedicatedState pool) (Lending [] lent (total + 1))
            pure (open `onException` forgetOpening)
          | otherwise -> full

    -- One that died while it lay idle is replaced.
    reuse mux = do
      alive <- isOpen mux
      if alive
        then pure (Right mux)
        else forget mux >> takeOne

    open = do
      now <- coarseNanos
      atomically (stateTVar reconnect (begin now)) >>= \case
        Left cause -> forgetOpening >> pure (Left (failed cause))
        Right () -> attempt `onException` atomically (modifyTVar' reconnect attemptAbandoned)
    begin now state = either (\cause -> (Left cause, state)) ((,) (Right ())) (beginAttempt now state)

    attempt = do
      capability <- fst <$> (threadCapability =<< myThreadId)
      let setup = dedicatedSetup pool
          endpoint = dedicatedEndpoint pool
      opened <- openConnection setup ForPrimary (exclusiveSettings setup endpoint capability) endpoint
      case opened of
        Left cause -> do
          now <- coarseNanos
          random <- randomRIO (0, 1)
          delay <- atomically (stateTVar reconnect (attemptFailed (configBackoff config) now random cause))
          forgetOpening
          observeConnection (configHooks config) (ConnectAttemptFailed endpoint cause delay)
          pure (Left (failed cause))
        Right mux -> do
          atomically (writeTVar reconnect untroubled)
          wanted <-
            atomically $
              readTVar (dedicatedState pool) >>= \case
                Lending idle lent total -> True <$ writeTVar (dedicatedState pool) (Lending idle (mux : lent) total)
                Closed -> pure False
          if wanted
            then pure (Right mux)
            else Left (failed ClosedLocally) <$ abortMultiplexer mux

    forgetOpening = atomically . change $ \case
      Lending idle lent total -> Lending idle lent (total - 1)
      Closed -> Closed

    forget mux = atomically . change $ \case
      Lending idle lent total -> Lending idle (List.delete mux lent) (total - 1)
      Closed -> Closed

    discard mux = forget mux >> abortMultiplexer mux

    giveBack mux = do
      kept <-
        atomically $
          readTVar (dedicatedState pool) >>= \case
            Lending idle lent total -> True <$ writeTVar (dedicatedState pool) (Lending (mux : idle) (List.delete mux lent) total)
            Closed -> pure False
      if kept then pure () else abortMultiplexer mux
