-- | Connections that one caller has for itself: for commands that the server
-- keeps waiting, and for those that change what the connection is.
--
-- The pool lends them out and takes them back when nothing was left behind on
-- them; whoever is not sure says so, and the connection is closed. A caller
-- that is interrupted while the server keeps it waiting always closes: the
-- answer may still come, and must not go to the next one.
--
-- Many may be opened at once while the node is well. Once an attempt has
-- failed, or a connection was lost before it had answered anybody, leases fail
-- with the cause until the backoff has passed
-- ("Redis.Internal.Network.Reconnect").
--
-- Each is dialled by a thread of its own, so that a caller that is interrupted,
-- and a pool that is closed, can end the dial without each other.
module Redis.Internal.Network.Dedicated
  ( DedicatedPool,
    newDedicatedPool,
    closeDedicatedPool,
    closeIdle,
    withLease,
    Condition (..),

    -- * Looking
    DedicatedGauges (..),
    dedicatedGauges,
  )
where

import Control.Concurrent (ThreadId, killThread, myThreadId, threadCapability)
import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception (SomeException, bracket_, finally, mask, mask_, onException, try, uninterruptibleMask_)
import Control.Monad (join, unless, void)
import Data.List qualified as List
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Clock (coarseNanos)
import Redis.Internal.Network.Handshake (ConnectionRole (ForPrimary))
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.OpenConnection
import Redis.Internal.Network.Reconnect
import Redis.Internal.Network.Worker (spawn)
import System.Random (randomRIO)
import System.Timeout (timeout)

-- | The dedicated connections of one node.
data DedicatedPool = DedicatedPool
  { dedicatedEndpoint :: Endpoint,
    dedicatedSetup :: ConnectionSetup,
    dedicatedState :: TVar DedicatedState,
    -- | Those under way. None is added once the pool is closed.
    dedicatedDials :: TVar [Dial],
    -- | Callers that wait until one is free.
    dedicatedWaiting :: TVar Int,
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
  | -- | Those that were lent out then.
    Closed [Multiplexer]

-- | An attempt to open a connection.
data Dial = Dial
  { -- | What it came to, or 'ClosedLocally' from whoever does not want it any
    -- more: the first to fill it has the say.
    dialResult :: MVar (Either ConnectionCause Multiplexer),
    dialThread :: ThreadId,
    -- | Full when nothing is left of it but its result.
    dialOver :: MVar ()
  }

instance Eq Dial where
  one == other = dialOver one == dialOver other

-- | Dials, on a thread of its own. Masked.
startDial :: String -> IO (Either ConnectionCause Multiplexer) -> IO Dial
startDial label open = do
  dialResult <- newEmptyMVar
  dialOver <- newEmptyMVar
  dialThread <- spawn label $ do
    outcome <- either (\failure -> Left (ConnectFailed (show (failure :: SomeException)))) id <$> try open
    wanted <- tryPutMVar dialResult outcome
    unless wanted (mapM_ disposed outcome)
    putMVar dialOver ()
  pure Dial {dialResult, dialThread, dialOver}
  where
    -- An interruption that comes too late for the dial arrives here.
    disposed mux =
      try (abortMultiplexer mux) >>= \case
        Right () -> pure ()
        Left (_ :: SomeException) -> disposed mux

-- | Ends a dial whose result nobody will use. Blocks until nothing is left of it.
dropDial :: Dial -> IO ()
dropDial dial = do
  void (tryPutMVar (dialResult dial) (Left ClosedLocally))
  -- Bounded: whatever a dial waits for can be interrupted.
  uninterruptibleMask_ (killThread (dialThread dial))
  readMVar (dialOver dial)
  readMVar (dialResult dial) >>= mapM_ abortMultiplexer

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
  dedicatedDials <- newTVarIO []
  dedicatedWaiting <- newTVarIO 0
  dedicatedReconnect <- newTVarIO untroubled
  pure DedicatedPool {dedicatedEndpoint, dedicatedSetup, dedicatedState, dedicatedDials, dedicatedWaiting, dedicatedReconnect}

-- | Closes idle connections and ends dials now, lent connections when they come
-- back, but at the latest after so many seconds: whom the server keeps waiting
-- must not wait for ever. A second time with fewer seconds cuts the first short.
closeDedicatedPool :: Double -> DedicatedPool -> IO ()
closeDedicatedPool grace pool = do
  (idle, lent, dials) <- atomically $ do
    state <- readTVar (dedicatedState pool)
    let (idle, lent) = case state of
          Lending unused used _ -> (unused, used)
          Closed used -> ([], used)
    writeTVar (dedicatedState pool) (Closed lent)
    dials <- readTVar (dedicatedDials pool)
    pure (idle, lent, dials)
  mapM_ dropDial dials
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
    Closed lent -> ([], Closed lent)
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

    -- Counted until there is one, and not while it is opened.
    waitForOne = join (bracket_ (countWaiting 1) (countWaiting (-1)) whenFree)
    countWaiting n = atomically (modifyTVar' (dedicatedWaiting pool) (+ n))

    whenFree = case configCommandTimeout config of
      Nothing -> atomically (takeNow retry)
      Just seconds -> do
        expired <- registerDelay (ceiling (min 1e9 seconds * 1e6))
        atomically . takeNow $
          pure (Left (TimeoutError NotSent seconds)) <$ (readTVar expired >>= check)

    -- With what to do when all are lent out.
    takeNow full =
      readTVar (dedicatedState pool) >>= \case
        Closed _ -> pure (pure (Left (failed ClosedLocally)))
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
          settings = exclusiveSettings setup endpoint capability
      dial <- startDial ("redis dial " <> renderEndpoint endpoint) (openConnection setup ForPrimary settings (lost pool) endpoint)
      closed <-
        atomically $
          readTVar (dedicatedState pool) >>= \case
            Closed _ -> pure True
            Lending {} -> False <$ modifyTVar' (dedicatedDials pool) (dial :)
      opened <-
        if closed
          then Left ClosedLocally <$ dropDial dial
          else readMVar (dialResult dial) `onException` (dropDial dial `finally` atomically (noLonger dial))
      now <- coarseNanos
      case opened of
        Left ClosedLocally -> do
          atomically (noLonger dial >> modifyTVar' reconnect attemptAbandoned)
          forgetOpening
          pure (Left (failed ClosedLocally))
        Left cause -> do
          random <- randomRIO (0, 1)
          delay <- atomically (noLonger dial >> stateTVar reconnect (attemptFailed (configBackoff config) now random cause))
          forgetOpening
          observeConnection (configHooks config) (ConnectAttemptFailed endpoint cause delay)
          pure (Left (failed cause))
        Right mux -> do
          -- In one step, so that who closes the pool finds it here or there.
          wanted <- atomically $ do
            noLonger dial
            modifyTVar' reconnect (attemptSucceeded (configBackoff config) now)
            readTVar (dedicatedState pool) >>= \case
              Lending idle lent total -> True <$ writeTVar (dedicatedState pool) (Lending idle (mux : lent) total)
              Closed _ -> pure False
          if wanted
            then pure (Right mux)
            else Left (failed ClosedLocally) <$ abortMultiplexer mux
    noLonger dial = modifyTVar' (dedicatedDials pool) (List.delete dial)

    forgetOpening = atomically . change $ \case
      Lending idle lent total -> Lending idle lent (total - 1)
      Closed lent -> Closed lent

    forget mux = atomically . change $ \case
      Lending idle lent total -> Lending idle (List.delete mux lent) (total - 1)
      Closed lent -> Closed lent

    discard mux = forget mux >> abortMultiplexer mux

    giveBack mux = do
      kept <-
        atomically $
          readTVar (dedicatedState pool) >>= \case
            Lending idle lent total -> True <$ writeTVar (dedicatedState pool) (Lending (mux : idle) (List.delete mux lent) total)
            Closed _ -> pure False
      if kept then pure () else abortMultiplexer mux

-- | A connection that had been opened is no more.
lost :: DedicatedPool -> Life -> IO ()
lost pool life = do
  now <- coarseNanos
  random <- randomRIO (0, 1)
  atomically (modifyTVar' (dedicatedReconnect pool) (connectionLost (configBackoff (setupConfig (dedicatedSetup pool))) now random life))

-- | A look at a node's dedicated connections.
--
-- @since 0.1.0.0
data DedicatedGauges = DedicatedGauges
  { -- | Connections lent out.
    gaugeLent :: Int,
    -- | Connections kept open for the next caller.
    gaugeIdle :: Int,
    -- | Connections that are being opened, each for a caller.
    gaugeOpening :: Int,
    -- | Callers that wait because as many as there may be are lent out.
    gaugeLeasesWaiting :: Int
  }
  deriving stock (Eq, Show)

-- | At one moment. \(O(n)\) in the connections; never blocks.
dedicatedGauges :: DedicatedPool -> IO DedicatedGauges
dedicatedGauges pool = atomically $ do
  gaugeLeasesWaiting <- readTVar (dedicatedWaiting pool)
  readTVar (dedicatedState pool) >>= \case
    Lending idle lent total ->
      pure
        DedicatedGauges
          { gaugeLent = length lent,
            gaugeIdle = length idle,
            gaugeOpening = total - length idle - length lent,
            gaugeLeasesWaiting
          }
    Closed _ -> pure DedicatedGauges {gaugeLent = 0, gaugeIdle = 0, gaugeOpening = 0, gaugeLeasesWaiting}
