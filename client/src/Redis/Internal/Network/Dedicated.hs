-- | Connections that one caller has for itself: for commands that the server
-- keeps waiting, and for those that change what the connection is.
--
-- The pool lends them out in the order in which callers come
-- ("Redis.Internal.Network.Lending" decides) and takes them back when nothing was
-- left behind on them; whoever is not sure says so, and the connection is closed. A
-- caller that is interrupted while the server keeps it waiting always closes: the
-- answer may still come, and must not go to the next one. What lies idle for long is
-- closed.
--
-- Many may be opened at once while the node is well. Once an attempt has
-- failed, or a connection was lost before it had answered anybody, leases fail
-- with the cause until the backoff has passed
-- ("Redis.Internal.Network.Reconnect").
--
-- Each is dialled by a thread of its own, so that a caller that is interrupted,
-- and a pool that is closed, can end the dial without each other: both set a flag,
-- and the dial watches it.
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

import Control.Concurrent (myThreadId, threadCapability)
import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception (SomeException, finally, mask, mask_, onException, try)
import Control.Monad (unless, void, when)
import Data.Foldable (for_, traverse_)
import Data.Function (on)
import Data.List qualified as List
import Data.Maybe (isNothing)
import Redis.Duration (seconds)
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Clock (Nanos, coarseNanos, nanosFromSeconds)
import Redis.Internal.Network.Credentials (Issue, isCurrent)
import Redis.Internal.Network.Handshake (ConnectionUse (Lent))
import Redis.Internal.Network.Lending (Counts (..), Event (..), Lending, Turn (..), counts, isClosed, lentOut, longestIdle, newLending)
import Redis.Internal.Network.Lending qualified as Lending
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.OpenConnection
import Redis.Internal.Network.Reconnect
import Redis.Internal.Network.Tally (Count (..), countOne)
import Redis.Internal.Network.Worker (expiry, spawn)
import System.Random (randomRIO)

-- | The dedicated connections of one node.
data DedicatedPool = DedicatedPool
  { dedicatedEndpoint :: Endpoint,
    dedicatedSetup :: ConnectionSetup,
    dedicatedLending :: TVar (Lending Caller Held),
    -- | For the next caller or connection.
    dedicatedNumber :: TVar Int,
    -- | Those under way. None is added once the pool is closed.
    dedicatedDials :: TVar [Dial],
    -- | Whether a thread closes what lies idle for too long.
    dedicatedReaping :: TVar Bool,
    dedicatedReconnect :: TVar Reconnect
  }

-- | Somebody who wants a connection, and where its turn arrives.
data Caller = Caller
  { callerNumber :: Int,
    callerTurn :: TMVar (Turn Held)
  }

instance Eq Caller where
  (==) = (==) `on` callerNumber

-- | A connection of the pool.
data Held = Held
  { heldNumber :: Int,
    heldMux :: Multiplexer,
    heldIssue :: Issue
  }

instance Eq Held where
  (==) = (==) `on` heldNumber

instance Ord Held where
  compare = compare `on` heldNumber

-- | An attempt to open a connection.
data Dial = Dial
  { -- | What it came to, or 'ClosedLocally' from whoever does not want it any
    -- more: the first to fill it has the say.
    dialResult :: MVar (Either ConnectionCause Established),
    -- | Set by whoever does not want it any more, before that; the dial watches it.
    dialUnwanted :: TVar Bool,
    -- | Full when nothing is left of it but its result.
    dialOver :: MVar ()
  }

instance Eq Dial where
  one == other = dialOver one == dialOver other

-- | Dials, on a thread of its own, until the transaction says that nobody wants it.
-- Masked.
startDial :: String -> (STM () -> IO (Either ConnectionCause Established)) -> IO Dial
startDial label open = do
  dialResult <- newEmptyMVar
  dialUnwanted <- newTVarIO False
  dialOver <- newEmptyMVar
  void . spawn label $ do
    outcome <- either (\failure -> Left (ConnectFailed (show (failure :: SomeException)))) id <$> try (open (readTVar dialUnwanted >>= check))
    wanted <- tryPutMVar dialResult outcome
    unless wanted (mapM_ (abortMultiplexer . establishedMux) outcome)
    putMVar dialOver ()
  pure Dial {dialResult, dialUnwanted, dialOver}

-- | Ends a dial whose result nobody will use. Blocks until nothing is left of it;
-- when that is interrupted, it ends all the same.
dropDial :: Dial -> IO ()
dropDial dial = do
  atomically (writeTVar (dialUnwanted dial) True)
  void (tryPutMVar (dialResult dial) (Left ClosedLocally))
  readMVar (dialResult dial) >>= mapM_ (abortMultiplexer . establishedMux)
  readMVar (dialOver dial)

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
  dedicatedLending <- newTVarIO (newLending (configMaxDedicated (setupConfig dedicatedSetup)))
  dedicatedNumber <- newTVarIO 0
  dedicatedDials <- newTVarIO []
  dedicatedReaping <- newTVarIO False
  dedicatedReconnect <- newTVarIO untroubled
  pure DedicatedPool {dedicatedEndpoint, dedicatedSetup, dedicatedLending, dedicatedNumber, dedicatedDials, dedicatedReaping, dedicatedReconnect}

-- | One step of the lending. Tells callers their turns, and returns what is to be
-- closed.
happen :: DedicatedPool -> Event Caller Held -> STM [Held]
happen pool event = do
  actions <- stateTVar (dedicatedLending pool) $ \lending ->
    let (after, actions) = Lending.step event lending in (actions, after)
  concat <$> traverse obey actions
  where
    obey = \case
      Lending.Give caller turn -> [] <$ putTMVar (callerTurn caller) turn
      Lending.Close held -> pure [held]

-- | The same, closing what is to be closed. Blocks until its descriptors are free.
happened :: DedicatedPool -> Event Caller Held -> IO ()
happened pool event = atomically (happen pool event) >>= traverse_ (abortMultiplexer . heldMux)

numbered :: DedicatedPool -> STM Int
numbered pool = stateTVar (dedicatedNumber pool) (\number -> (number, number + 1))

-- | Closes idle connections and ends dials now, lent connections when they come
-- back, but at the latest after so many seconds: whom the server keeps waiting
-- must not wait for ever. A second time with fewer seconds cuts the first short.
closeDedicatedPool :: Double -> DedicatedPool -> IO ()
closeDedicatedPool grace pool = do
  (idle, lent, dials) <- atomically $ do
    idle <- happen pool Closed
    lent <- lentOut <$> readTVar (dedicatedLending pool)
    dials <- readTVar (dedicatedDials pool)
    pure (idle, lent, dials)
  mapM_ dropDial dials
  mapM_ (abortMultiplexer . heldMux) idle
  over <- expiry grace
  atomically (mapM_ (untilGone . heldMux) lent `orElse` over)
  mapM_ (abortMultiplexer . heldMux) lent

-- | Closes the connections that lie idle: their server has forgotten who they
-- are. Those that are lent out stay; whoever has them will be told. Blocks until
-- the descriptors are free.
closeIdle :: DedicatedPool -> IO ()
closeIdle pool = mask_ (happened pool IdleUseless)

-- | Lends a connection to an action, which says in what condition it leaves
-- it. Blocks while all are lent out (for at most the command timeout) and
-- while one is opened; may be interrupted. An exception in the action closes the connection.
withLease :: DedicatedPool -> (Multiplexer -> IO (a, Condition)) -> IO (Either Error a)
withLease pool action = mask $ \restore ->
  takeTurn pool >>= \case
    Left failed -> pure (Left failed)
    Right held -> do
      (result, condition) <- restore (action (heldMux held)) `onException` happened pool (Lost held)
      case condition of
        Clean -> giveBack pool held
        Spoilt -> happened pool (Lost held)
      pure (Right result)

-- | Waits for the caller's turn and takes what it gets. Masked.
takeTurn :: DedicatedPool -> IO (Either Error Held)
takeTurn pool = do
  caller <- atomically $ do
    caller <- Caller <$> numbered pool <*> newEmptyTMVar
    -- Who asks for one closes none.
    caller <$ happen pool (Asked caller)
  turn <- await caller `onException` leave caller
  case turn of
    Just NoMore -> pure (Left (closedLocally pool))
    Just (Use held) -> do
      usable <- (&&) <$> isOpen (heldMux held) <*> isCurrent (setupCredentials (dedicatedSetup pool)) (heldIssue held)
      if usable
        then pure (Right held)
        else -- It died while it lay idle, or newer credentials were issued.
          (happened pool (Replacing held) `onException` happened pool NotOpened) >> openTurn
    Just Open -> openTurn
    Nothing -> Left (TimeoutError (TimeoutFailure NotSent (foldMap seconds limit))) <$ leave caller
  where
    limit = configCommandTimeout (setupConfig (dedicatedSetup pool))

    await caller = case limit of
      Nothing -> Just <$> atomically (takeTMVar (callerTurn caller))
      Just allowed -> do
        now <- atomically (tryTakeTMVar (callerTurn caller))
        case now of
          Just turn -> pure (Just turn)
          Nothing -> do
            expired <- registerDelay (ceiling (min 1e9 allowed * 1e6))
            atomically $ (Just <$> takeTMVar (callerTurn caller)) `orElse` (Nothing <$ (readTVar expired >>= check))

    -- Its turn may have come meanwhile; then it goes to the next.
    leave caller = do
      turn <- atomically $ do
        turn <- tryTakeTMVar (callerTurn caller)
        -- Who waits has none to close.
        turn <$ when (isNothing turn) (void (happen pool (GaveUp caller)))
      for_ turn $ \case
        Use held -> giveBack pool held
        Open -> happened pool NotOpened
        NoMore -> pure ()

    openTurn =
      opening pool `onException` happened pool NotOpened >>= \case
        Right Established {establishedMux, establishedIssue} -> do
          (held, closing) <- atomically $ do
            heldNumber <- numbered pool
            let held = Held {heldNumber, heldMux = establishedMux, heldIssue = establishedIssue}
            (,) held <$> happen pool (Opened held)
          if null closing then pure (Right held) else Left (closedLocally pool) <$ traverse_ (abortMultiplexer . heldMux) closing
        Left failed -> Left failed <$ happened pool NotOpened

closedLocally :: DedicatedPool -> Error
closedLocally pool = ConnectionError (ConnectionFailure NotSent (dedicatedEndpoint pool) ClosedLocally)

-- | Opens a connection, unless the node is left alone for the moment. Masked.
opening :: DedicatedPool -> IO (Either Error Established)
opening pool = do
  now <- coarseNanos
  atomically (stateTVar reconnect (begin now)) >>= \case
    Left cause -> pure (Left (failed cause))
    Right () -> attempt `onException` atomically (modifyTVar' reconnect attemptAbandoned)
  where
    config = setupConfig (dedicatedSetup pool)
    endpoint = dedicatedEndpoint pool
    reconnect = dedicatedReconnect pool
    failed = ConnectionError . ConnectionFailure NotSent endpoint
    begin now state = either (\cause -> (Left cause, state)) ((,) (Right ())) (beginAttempt now state)

    attempt = do
      capability <- fst <$> (threadCapability =<< myThreadId)
      let setup = dedicatedSetup pool
          settings = exclusiveSettings setup endpoint capability
      dial <- startDial ("redis dial " <> renderEndpoint endpoint) $ \unwanted ->
        openConnection setup Purpose {purposeUse = Lent, purposeGone = unwanted} settings (lost pool) endpoint
      closed <- atomically $ do
        closed <- isClosed <$> readTVar (dedicatedLending pool)
        closed <$ unless closed (modifyTVar' (dedicatedDials pool) (dial :))
      opened <-
        if closed
          then Left ClosedLocally <$ dropDial dial
          else readMVar (dialResult dial) `onException` (dropDial dial `finally` atomically (noLonger dial))
      now <- coarseNanos
      case opened of
        Left ClosedLocally -> do
          atomically (noLonger dial >> modifyTVar' reconnect attemptAbandoned)
          pure (Left (failed ClosedLocally))
        Left cause -> do
          random <- randomRIO (0, 1)
          delay <- atomically (noLonger dial >> stateTVar reconnect (attemptFailed (configBackoff config) now random cause))
          countOne (setupTally (dedicatedSetup pool)) ConnectsFailed
          observeConnection (configHooks config) (ConnectAttemptFailed endpoint cause (seconds delay))
          pure (Left (failed cause))
        Right established -> do
          atomically (noLonger dial >> modifyTVar' reconnect (attemptSucceeded (configBackoff config) now))
          pure (Right established)
    noLonger dial = modifyTVar' (dedicatedDials pool) (List.delete dial)

-- | Takes a connection back, and sees to it that somebody closes it if nobody wants
-- it for long. Masked.
giveBack :: DedicatedPool -> Held -> IO ()
giveBack pool held = do
  now <- coarseNanos
  (closing, alone) <- atomically $ do
    closing <- happen pool (GaveBack now held)
    idle <- countIdle . counts <$> readTVar (dedicatedLending pool)
    reaping <- readTVar (dedicatedReaping pool)
    let alone = idle > 0 && not reaping
    when alone (writeTVar (dedicatedReaping pool) True)
    pure (closing, alone)
  traverse_ (abortMultiplexer . heldMux) closing
  when alone . for_ (configDedicatedIdle (setupConfig (dedicatedSetup pool))) $ \idle ->
    spawn ("redis idle " <> renderEndpoint (dedicatedEndpoint pool)) (reap pool (nanosFromSeconds idle))

-- | Closes what has been idle for so long, until nothing is idle.
reap :: DedicatedPool -> Nanos -> IO ()
reap pool limit = do
  since <- atomically $ do
    lending <- readTVar (dedicatedLending pool)
    let since = longestIdle lending
    since <$ when (isNothing since) (writeTVar (dedicatedReaping pool) False)
  for_ since $ \idleSince -> do
    now <- coarseNanos
    let left = idleSince + limit - now
    if left > 0
      then do
        expired <- registerDelay (fromIntegral (min 1000000000 (left `quot` 1000 + 1)))
        atomically $ do
          over <- readTVar expired
          closed <- isClosed <$> readTVar (dedicatedLending pool)
          check (over || closed)
      else happened pool (IdleSince (now - limit + 1))
    reap pool limit

-- | A connection that had been opened is no more.
lost :: DedicatedPool -> Lifetime -> IO ()
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
dedicatedGauges pool = do
  Counts {countLent, countIdle, countOpening, countWaiting} <- counts <$> readTVarIO (dedicatedLending pool)
  pure DedicatedGauges {gaugeLent = countLent, gaugeIdle = countIdle, gaugeOpening = countOpening, gaugeLeasesWaiting = countWaiting}
