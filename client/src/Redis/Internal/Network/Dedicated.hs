-- | Dedicated connections, each used by one caller at a time: for commands that wait at the server,
-- and for commands that change the state of their connection.
--
-- The pool takes a connection back if its caller left nothing behind on it, and otherwise closes it
-- (docs/adr/0024-lent-connections.md): always if the caller is interrupted while the server keeps it
-- waiting, because the reply may still come. A connection that is idle for long is closed.
--
-- Many connections may be opened at once while the node is well. Once an attempt has failed, or a
-- connection was lost before it had answered any command, leases fail with that cause until the
-- backoff has passed ('Reconnect'). A thread of its own dials each connection. So a caller that is
-- interrupted and a pool that is closed can each end the dial: either sets a flag that the dial watches.
--
-- = The lending
--
-- A pure step decides who gets which connection. A caller that asks gets a turn, in the order of asking:
-- an idle connection, or permission to open one while there are fewer than the limit. A caller that stops
-- waiting gives up its place, or passes on the turn that it has. So while a caller waits, no connection is
-- idle: all are lent or are being opened.
module Redis.Internal.Network.Dedicated
  ( DedicatedPool,
    newDedicatedPool,
    closeDedicatedPool,
    closeIdle,
    withLease,
    Condition (..),
    DedicatedGauges (..),
    dedicatedGauges,

    -- * The lending
    Lending (lendingQueue, lendingClosed),
    newLending,
    Event (..),
    Turn (..),
    Action (..),
    step,
    gaugesOf,
    lentOut,
    longestIdle,
  )
where

import Control.Concurrent (myThreadId, threadCapability)
import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception (SomeException, mask, mask_, onException, try)
import Control.Monad (unless, void, when)
import Data.Foldable (for_, toList, traverse_)
import Data.Function (on)
import Data.List qualified as List
import Data.Maybe (isNothing)
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Network.Credentials (Issue, isCurrent)
import Redis.Internal.Network.Handshake (ConnectionUse (Lent))
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.Open
import Redis.Internal.Network.Runtime (Deadline (..), Nanos, coarseNanos, expiry, expiryAt, nanosFromSeconds, spawn)

-- | The dedicated connections of one node.
data DedicatedPool = DedicatedPool
  { dedicatedEndpoint :: Endpoint,
    dedicatedSetup :: ConnectionSetup,
    dedicatedLending :: TVar (Lending Caller Held),
    -- | The number of the next connection or caller.
    dedicatedNumber :: TVar Int,
    -- | The dials under way. None is added once the pool is closed.
    dedicatedDials :: TVar [Dial],
    -- | Whether a thread is running that closes connections idle for too long.
    dedicatedReaping :: TVar Bool,
    dedicatedReconnect :: TVar Reconnect
  }

-- | A caller that wants a connection, and the variable for its turn.
data Caller = Caller
  { callerNumber :: Int,
    callerTurn :: TMVar (Turn Held)
  }

instance Eq Caller where
  (==) = (==) `on` callerNumber

instance Ord Caller where
  compare = compare `on` callerNumber

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
  { -- | The result, or 'ClosedLocally' from the thread that does not want it any more. The first to
    -- fill the variable decides.
    dialResult :: TMVar (Either ConnectionCause Established),
    -- | Set with it, by that thread; the dial watches it.
    dialUnwanted :: TVar Bool,
    -- | Full when the dial has ended and only its result is left.
    dialOver :: MVar ()
  }

instance Eq Dial where
  one == other = dialOver one == dialOver other

-- | Dials on a thread of its own, unless the pool is closed. The action gets a transaction that retries while
-- the connection is wanted. Call it masked.
startDial :: DedicatedPool -> (STM () -> IO (Either ConnectionCause Established)) -> IO (Maybe Dial)
startDial pool open = do
  dial <- Dial <$> newEmptyTMVarIO <*> newTVarIO False <*> newEmptyMVar
  closed <- atomically $ do
    closed <- lendingClosed <$> readTVar (dedicatedLending pool)
    closed <$ unless closed (modifyTVar' (dedicatedDials pool) (dial :))
  if closed
    then pure Nothing
    else do
      void . spawn ("redis dial " <> renderEndpoint (dedicatedEndpoint pool)) $ do
        outcome <- either (Left . ConnectFailed . show @SomeException) id <$> try (open (readTVar (dialUnwanted dial) >>= check))
        wanted <- atomically (tryPutTMVar (dialResult dial) outcome)
        unless wanted (mapM_ (abortMultiplexer . establishedMux) outcome)
        atomically (modifyTVar' (dedicatedDials pool) (List.delete dial))
        putMVar (dialOver dial) ()
      pure (Just dial)

-- | Ends a dial whose result nobody will use. Blocks until it has ended; may be interrupted.
dropDial :: Dial -> IO ()
dropDial dial = giveUpDial dial *> readMVar (dialOver dial)

-- | Like 'dropDial', but does not wait until the dial has ended.
giveUpDial :: Dial -> IO ()
giveUpDial dial = do
  result <- atomically $ do
    writeTVar (dialUnwanted dial) True
    void (tryPutTMVar (dialResult dial) (Left ClosedLocally))
    readTMVar (dialResult dial)
  mapM_ (abortMultiplexer . establishedMux) result

-- | The state in which a lease leaves its connection.
data Condition
  = -- | As the handshake left it.
    Clean
  | -- | Anything else.
    Spoilt
  deriving stock (Eq, Show)

-- | An empty pool. Never blocks.
newDedicatedPool :: ConnectionSetup -> Endpoint -> IO DedicatedPool
newDedicatedPool setup endpoint =
  DedicatedPool endpoint setup <$> newTVarIO lending <*> newTVarIO 0 <*> newTVarIO [] <*> newTVarIO False <*> newTVarIO NoFailure
  where
    lending = newLending (configMaxDedicated (setupConfig setup))

-- | Takes one step of the lending: gives callers their turns, and returns the connections to close.
happen :: DedicatedPool -> Event Caller Held -> STM [Held]
happen pool event = do
  actions <- stateTVar (dedicatedLending pool) $ \lending ->
    let (after, actions) = step event lending in (actions, after)
  concat <$> traverse obey actions
  where
    obey = \case
      Give caller turn -> [] <$ putTMVar (callerTurn caller) turn
      Close held -> pure [held]

-- | Like 'happen', but also closes those connections. Blocks until their descriptors are free.
happened :: DedicatedPool -> Event Caller Held -> IO ()
happened pool event = atomically (happen pool event) >>= traverse_ (abortMultiplexer . heldMux)

-- | Closes idle connections and ends dials at once, and each lent connection when it comes back, or after so many
-- seconds. A second call with fewer seconds cuts the first one short.
closeDedicatedPool :: Double -> DedicatedPool -> IO ()
closeDedicatedPool grace pool = do
  (idle, lent, dials) <-
    atomically $ (,,) <$> happen pool Closed <*> (lentOut <$> readTVar (dedicatedLending pool)) <*> readTVar (dedicatedDials pool)
  mapM_ giveUpDial dials
  mapM_ (abortMultiplexer . heldMux) idle
  over <- expiry grace
  atomically (mapM_ (untilGone . heldMux) lent `orElse` over)
  mapM_ (abortMultiplexer . heldMux) lent
  -- Last, because the user's code in a dial decides when it is interrupted.
  mapM_ (readMVar . dialOver) dials

-- | Closes the idle connections: their server has forgotten their authentication, or their node changed its role.
-- Lent connections stay. Blocks until the descriptors are free.
closeIdle :: DedicatedPool -> IO ()
closeIdle pool = mask_ (happened pool IdleUseless)

-- | Lends a connection to an action, which returns the condition in which it leaves the connection.
-- Blocks while all connections are lent out and while one is opened, at most until the deadline; may
-- be interrupted. An exception in the action closes the connection.
withLease :: DedicatedPool -> Deadline -> (Multiplexer -> IO (a, Condition)) -> IO (Either Error a)
withLease pool deadline action = mask $ \restore ->
  takeTurn pool deadline >>= \case
    Left failed -> pure (Left failed)
    Right held -> do
      (result, condition) <- restore (action (heldMux held)) `onException` happened pool (Lost held)
      case condition of
        Clean -> giveBack pool held
        Spoilt -> happened pool (Lost held)
      pure (Right result)

-- | Waits for the caller's turn, and takes or opens its connection. Call it masked.
takeTurn :: DedicatedPool -> Deadline -> IO (Either Error Held)
takeTurn pool deadline = do
  caller <- atomically $ do
    caller <- Caller <$> nextNumber pool <*> newEmptyTMVar
    -- 'Asked' never closes a connection.
    caller <$ happen pool (Asked caller)
  turn <- await caller `onException` leave caller
  case turn of
    Just NoMore -> pure (Left (closedLocally pool))
    Just (Use held) -> do
      usable <- (&&) <$> isOpen (heldMux held) <*> isCurrent (setupCredentials (dedicatedSetup pool)) (heldIssue held)
      if usable
        then pure (Right held)
        else -- It died while it was idle, or newer credentials were issued.
          (happened pool (Replacing held) `onException` happened pool NotOpened) >> openTurn
    Just Open -> openTurn
    Nothing -> Left <$> (lateForConnection (dedicatedSetup pool) (dedicatedEndpoint pool) deadline <* leave caller)
  where
    await caller =
      atomically (tryTakeTMVar (callerTurn caller)) >>= \case
        Just turn -> pure (Just turn)
        Nothing -> do
          over <- expiryAt (deadlineAt deadline)
          atomically $ (Just <$> takeTMVar (callerTurn caller)) `orElse` (Nothing <$ over)

    -- The turn may have come meanwhile; then it goes to the next caller.
    leave caller = do
      turn <- atomically $ do
        turn <- tryTakeTMVar (callerTurn caller)
        -- 'GaveUp' never closes a connection.
        turn <$ when (isNothing turn) (void (happen pool (GaveUp caller)))
      for_ turn $ \case
        Use held -> giveBack pool held
        Open -> happened pool NotOpened
        NoMore -> pure ()

    openTurn =
      opening pool deadline `onException` happened pool NotOpened >>= \case
        Right Established {establishedMux, establishedIssue} -> do
          (held, closing) <- atomically $ do
            heldNumber <- nextNumber pool
            let held = Held {heldNumber, heldMux = establishedMux, heldIssue = establishedIssue}
            (,) held <$> happen pool (Opened held)
          if null closing then pure (Right held) else Left (closedLocally pool) <$ traverse_ (abortMultiplexer . heldMux) closing
        Left failed -> Left failed <$ happened pool NotOpened

nextNumber :: DedicatedPool -> STM Int
nextNumber pool = stateTVar (dedicatedNumber pool) (\number -> (number, number + 1))

closedLocally :: DedicatedPool -> Error
closedLocally pool = ConnectionError (ConnectionFailure "" NotSent (dedicatedEndpoint pool) ClosedLocally)

-- | Opens a connection, unless the node's backoff has not passed yet. Call it masked.
opening :: DedicatedPool -> Deadline -> IO (Either Error Established)
opening pool deadline = do
  now <- coarseNanos
  atomically (stateTVar reconnect (begin now)) >>= \case
    Left cause -> pure (Left (failed cause))
    Right () -> attempt `onException` atomically (modifyTVar' reconnect attemptAbandoned)
  where
    setup = dedicatedSetup pool
    endpoint = dedicatedEndpoint pool
    reconnect = dedicatedReconnect pool
    failed = ConnectionError . ConnectionFailure "" NotSent endpoint
    begin now state = either (\cause -> (Left cause, state)) ((,) (Right ())) (beginAttempt now state)
    lost life = afterLoss setup life >>= atomically . modifyTVar' reconnect
    abandoned failure = Left failure <$ atomically (modifyTVar' reconnect attemptAbandoned)

    attempt = do
      settings <- exclusiveSettings setup endpoint . fst <$> (threadCapability =<< myThreadId)
      opened <-
        startDial pool (\unwanted -> openConnection setup Purpose {purposeUse = Lent, purposeGone = unwanted} settings lost endpoint) >>= \case
          Nothing -> pure (Just (Left ClosedLocally))
          Just dial -> do
            over <- expiryAt (deadlineAt deadline)
            result <- atomically ((Just <$> readTMVar (dialResult dial)) `orElse` (Nothing <$ over)) `onException` dropDial dial
            result <$ when (isNothing result) (giveUpDial dial)
      case opened of
        Nothing -> lateForConnection setup endpoint deadline >>= abandoned
        Just (Left ClosedLocally) -> abandoned (failed ClosedLocally)
        Just (Left cause) -> do
          after <- afterFailure setup
          atomically (stateTVar reconnect (after cause)) >>= tellAttemptFailed setup endpoint cause
          pure (Left (failed cause))
        Just (Right established) -> Right established <$ (afterSuccess setup >>= atomically . modifyTVar' reconnect)

-- | Takes a connection back. Makes sure that a thread closes it if nobody wants it for long. Call it masked.
giveBack :: DedicatedPool -> Held -> IO ()
giveBack pool held = do
  now <- coarseNanos
  (closing, alone) <- atomically $ do
    closing <- happen pool (GaveBack now held)
    idle <- gaugeIdle . gaugesOf <$> readTVar (dedicatedLending pool)
    reaping <- readTVar (dedicatedReaping pool)
    let alone = idle > 0 && not reaping
    when alone (writeTVar (dedicatedReaping pool) True)
    pure (closing, alone)
  traverse_ (abortMultiplexer . heldMux) closing
  when alone . for_ (configDedicatedIdle (setupConfig (dedicatedSetup pool))) $ \idle ->
    spawn ("redis idle " <> renderEndpoint (dedicatedEndpoint pool)) (reap pool (nanosFromSeconds idle))

-- | Closes connections that have been idle for this long, until none is idle.
reap :: DedicatedPool -> Nanos -> IO ()
reap pool limit = do
  since <- atomically $ do
    lending <- readTVar (dedicatedLending pool)
    let since = longestIdle lending
    since <$ when (isNothing since) (writeTVar (dedicatedReaping pool) False)
  for_ since $ \idleSince -> do
    now <- coarseNanos
    if idleSince + limit > now
      then do
        expired <- expiryAt (idleSince + limit)
        atomically $ expired `orElse` (readTVar (dedicatedLending pool) >>= check . lendingClosed)
      else happened pool (IdleSince (now - limit + 1))
    reap pool limit

-- | The numbers of a node's dedicated connections and of their callers.
data DedicatedGauges = DedicatedGauges
  { -- | Connections lent out.
    gaugeLent :: Int,
    -- | Connections kept open for the next caller.
    gaugeIdle :: Int,
    -- | Connections that are being opened, each for a caller.
    gaugeOpening :: Int,
    -- | Callers that wait because the largest allowed number of connections is in use.
    gaugeLeasesWaiting :: Int
  }
  deriving stock (Eq, Show)

-- | The pool's numbers at this moment. \(O(n)\) in the connections; never blocks.
dedicatedGauges :: DedicatedPool -> IO DedicatedGauges
dedicatedGauges pool = gaugesOf <$> readTVarIO (dedicatedLending pool)

-- | The state of the lending.
data Lending caller connection = Lending
  { lendingLimit :: Int,
    -- | Idle connections, each with the time since which it is idle, the most recently used first.
    lendingIdle :: [(Nanos, connection)],
    lendingLent :: Set connection,
    -- | The number of callers that are opening a connection.
    lendingOpening :: Int,
    -- | Waiting callers, in the order in which they asked, which is their own.
    lendingQueue :: Set caller,
    -- | Whether no more connections are lent.
    lendingClosed :: Bool
  }
  deriving stock (Eq, Ord, Show)

-- | A state without connections. The argument is the largest number of connections.
newLending :: Int -> Lending caller connection
newLending limit =
  Lending
    { lendingLimit = limit,
      lendingIdle = [],
      lendingLent = Set.empty,
      lendingOpening = 0,
      lendingQueue = Set.empty,
      lendingClosed = False
    }

-- | An event.
data Event caller connection
  = -- | A caller wants a connection. It is greater than those that wait.
    Asked caller
  | -- | A waiting caller does not want a connection any more.
    GaveUp caller
  | -- | A caller with permission to open a connection has opened this one.
    Opened connection
  | -- | A caller with permission to open a connection has not opened one.
    NotOpened
  | -- | A connection came back as it was lent, at this time.
    GaveBack Nanos connection
  | -- | A lent connection cannot be used any more.
    Lost connection
  | -- | Like 'Lost', and its caller has permission to open another connection: 'Opened' or
    -- 'NotOpened' follows.
    Replacing connection
  | -- | Connections that became idle before this time are to be closed.
    IdleSince Nanos
  | -- | All idle connections are to be closed.
    IdleUseless
  | -- | No more connections are lent.
    Closed
  deriving stock (Eq, Show)

-- | A caller's turn.
data Turn connection
  = -- | The caller gets this connection.
    Use connection
  | -- | Permission to open a connection: 'Opened' or 'NotOpened' follows.
    Open
  | -- | No connection: no more are lent.
    NoMore
  deriving stock (Eq, Ord, Show)

-- | An action for the driver.
data Action caller connection
  = Give caller (Turn connection)
  | -- | Close a connection that nobody has any more.
    Close connection
  deriving stock (Eq, Show)

-- | Takes one step. \(O(\log n)\) in the connections and the waiting callers; linear in the idle connections
-- for 'IdleSince' and 'IdleUseless', and in these and the waiting callers for 'Closed'.
step :: (Ord caller, Ord connection) => Event caller connection -> Lending caller connection -> (Lending caller connection, [Action caller connection])
step event state = case event of
  Asked caller
    | lendingClosed state -> (state, [Give caller NoMore])
    | (_, connection) : idle <- lendingIdle state -> use caller connection state {lendingIdle = idle}
    | inHands < lendingLimit state -> open caller state
    | otherwise -> (state {lendingQueue = Set.insert caller (lendingQueue state)}, [])
  GaveUp caller -> (state {lendingQueue = Set.delete caller (lendingQueue state)}, [])
  Opened connection
    | lendingClosed state -> (opened, [Close connection])
    | otherwise -> (lend connection opened, [])
  NotOpened -> offer opened
  GaveBack now connection
    | lendingClosed state -> (back, [Close connection])
    | Just (caller, queue) <- Set.minView (lendingQueue state) -> use caller connection back {lendingQueue = queue}
    | otherwise -> (back {lendingIdle = (now, connection) : lendingIdle state}, [])
    where
      back = without connection
  Lost connection -> (Close connection :) <$> offer (without connection)
  Replacing connection -> ((without connection) {lendingOpening = lendingOpening state + 1}, [Close connection])
  IdleSince before -> dropping ((< before) . fst)
  IdleUseless -> dropping (const True)
  Closed ->
    ( state {lendingIdle = [], lendingQueue = Set.empty, lendingClosed = True},
      [Give caller NoMore | caller <- toList (lendingQueue state)] <> map (Close . snd) (lendingIdle state)
    )
  where
    inHands = lendingOpening state + Set.size (lendingLent state)
    opened = state {lendingOpening = lendingOpening state - 1}
    without connection = state {lendingLent = Set.delete connection (lendingLent state)}
    lend connection given = given {lendingLent = Set.insert connection (lendingLent given)}
    use caller connection given = (lend connection given, [Give caller (Use connection)])
    open caller given = (given {lendingOpening = lendingOpening given + 1}, [Give caller Open])

    -- There is room for one more connection.
    offer given = case Set.minView (lendingQueue given) of
      Just (caller, queue) -> open caller given {lendingQueue = queue}
      Nothing -> (given, [])

    dropping useless =
      let (gone, kept) = List.partition useless (lendingIdle state)
       in (state {lendingIdle = kept}, map (Close . snd) gone)

-- | Counts connections and waiting callers. \(O(n)\) in the idle connections.
gaugesOf :: Lending caller connection -> DedicatedGauges
gaugesOf state =
  DedicatedGauges
    { gaugeLent = Set.size (lendingLent state),
      gaugeIdle = length (lendingIdle state),
      gaugeOpening = lendingOpening state,
      gaugeLeasesWaiting = Set.size (lendingQueue state)
    }

-- | The connections that callers have. \(O(n)\).
lentOut :: Lending caller connection -> [connection]
lentOut = Set.toList . lendingLent

-- | When the longest idle connection became idle. \(O(n)\) in the idle connections.
longestIdle :: Lending caller connection -> Maybe Nanos
longestIdle state = if null (lendingIdle state) then Nothing else Just (minimum (map fst (lendingIdle state)))
