-- | Connections that one caller has for itself: for commands that the server
-- keeps waiting, and for those that change what the connection is.
--
-- The pool lends them out and takes them back when nothing was left behind on
-- them; whoever is not sure says so, and the connection is closed. A caller
-- that is interrupted while the server keeps it waiting always closes: the
-- answer may still come, and must not go to the next one.
module Redis.Internal.Network.Dedicated
  ( DedicatedPool,
    newDedicatedPool,
    closeDedicatedPool,
    dedicatedIdle,
    withLease,
    Condition (..),
  )
where

import Control.Concurrent (myThreadId, threadCapability)
import Control.Concurrent.STM
import Control.Exception (mask, onException)
import Control.Monad (join)
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Network.Handshake (ConnectionRole (ForPrimary))
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.OpenConnection

-- | The dedicated connections of one node.
data DedicatedPool = DedicatedPool
  { dedicatedEndpoint :: Endpoint,
    dedicatedSetup :: ConnectionSetup,
    dedicatedState :: TVar DedicatedState
  }

data DedicatedState
  = Lending
      [Multiplexer]
      -- ^ Idle connections, the most recently used first.
      Int
      -- ^ How many are lent out or idle.
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
  dedicatedState <- newTVarIO (Lending [] 0)
  pure DedicatedPool {dedicatedEndpoint, dedicatedSetup, dedicatedState}

-- | Closes idle connections now, lent ones when they come back. Idempotent.
closeDedicatedPool :: DedicatedPool -> IO ()
closeDedicatedPool pool = do
  idle <- atomically $ do
    state <- readTVar (dedicatedState pool)
    writeTVar (dedicatedState pool) Closed
    pure $ case state of
      Lending idle _ -> idle
      Closed -> []
  mapM_ abortMultiplexer idle

-- | How many connections are idle. Never blocks.
dedicatedIdle :: DedicatedPool -> IO Int
dedicatedIdle pool =
  readTVarIO (dedicatedState pool) >>= \case
    Lending idle _ -> pure (length idle)
    Closed -> pure 0

-- | Lends a connection to an action, which says in what condition it leaves
-- it. Blocks while all are lent out and while one is opened; may be
-- interrupted. An exception in the action closes the connection.
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
    limit = configMaxDedicated (setupConfig (dedicatedSetup pool))

    takeOne = join . atomically $ do
      state <- readTVar (dedicatedState pool)
      case state of
        Closed -> pure (pure (Left (failed ClosedLocally)))
        Lending (mux : idle) total -> do
          writeTVar (dedicatedState pool) (Lending idle total)
          pure (reuse mux)
        Lending [] total
          | total < limit -> do
            writeTVar (dedicatedState pool) (Lending [] (total + 1))
            pure (open `onException` forget)
          | otherwise -> retry

    -- One that died while it lay idle is replaced.
    reuse mux = do
      alive <- isOpen mux
      if alive
        then pure (Right mux)
        else forget >> takeOne

    open = do
      capability <- fst <$> (threadCapability =<< myThreadId)
      let setup = dedicatedSetup pool
          endpoint = dedicatedEndpoint pool
      opened <- openConnection setup ForPrimary (exclusiveSettings setup endpoint capability) endpoint
      case opened of
        Left cause -> forget >> pure (Left (failed cause))
        Right mux -> pure (Right mux)

    failed = ConnectionError NotSent (dedicatedEndpoint pool)

    forget = atomically . modifyTVar' (dedicatedState pool) $ \case
      Lending idle total -> Lending idle (total - 1)
      Closed -> Closed

    discard mux = forget >> abortMultiplexer mux

    giveBack mux = do
      kept <- atomically $ do
        state <- readTVar (dedicatedState pool)
        case state of
          Lending idle total -> True <$ writeTVar (dedicatedState pool) (Lending (mux : idle) total)
          Closed -> pure False
      if kept then pure () else abortMultiplexer mux
