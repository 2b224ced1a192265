-- | The connections of one node: a fixed number of multiplexers, each opened when it is first needed.
--
-- A caller gets a multiplexer of the capability that it runs on, so that cores do not contend ('homeCell'). A
-- thread with commands in flight on another one, which it submitted without waiting, stays with that one, so
-- that its commands run in order (docs/adr/0005-order-across-connections.md).
--
-- At most one attempt to connect is made at a time. It belongs to the pool: a caller that gives up waiting
-- does not stop it. After a failed attempt, and after a connection that was lost before it had answered any
-- command, callers fail at once with that cause until the backoff has passed
-- ("Redis.Internal.Network.Open").
module Redis.Internal.Network.MultiplexPool
  ( MultiplexPool,
    newMultiplexPool,
    closeMultiplexPool,

    -- * Submitting
    submitToNode,
    submitToNodeAsync,
    submitToNodeSlot,
    Submitter (..),
    submitAs,
    submitWaiting,
    submitRunToNode,
    connectNode,
    isConnected,
    isRoomy,
    usualDeadline,

    -- * Connections
    reconnectWithin,
    poolGauges,
  )
where

import Control.Concurrent (getNumCapabilities, myThreadId, threadCapability, threadDelay, yield)
import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception (SomeException, finally, mask_, try)
import Control.Monad (filterM, join, unless, void)
import Data.Foldable (for_)
import Data.IORef
import Data.Maybe (catMaybes, fromMaybe)
import Data.Primitive.Array (Array, arrayFromList, indexArray, sizeofArray)
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Network.Handshake (ConnectionRole (ForControl, ForPrimary), ConnectionUse (SharedFor))
import Redis.Internal.Network.InFlight
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.Open
import Redis.Internal.Network.Runtime
import Redis.Internal.Protocol.Encode (Request)

-- | One node's connections.
data MultiplexPool = MultiplexPool
  { -- | The endpoint of all its connections.
    poolEndpoint :: Endpoint,
    poolRole :: ConnectionRole,
    poolSetup :: ConnectionSetup,
    -- | One cell per multiplexer: 'Nothing' before it is needed and after it was dropped.
    poolCells :: Array (IORef (Maybe Multiplexer)),
    -- | The number of capabilities when the pool was made.
    poolCapabilities :: Int,
    -- | Held for a few instructions; nothing blocks while it is held.
    poolState :: MVar PoolState,
    -- | Set once, while the state is held. Attempts to connect watch it.
    poolClosed :: TVar Bool,
    -- | Called with the cause when an attempt to connect failed, or a connection was lost.
    poolOnFailure :: ConnectionCause -> IO ()
  }

data PoolState = PoolState
  { stateAttempt :: Maybe Connecting,
    stateReconnect :: Reconnect,
    -- | When 'reconnectWithin' last dropped the connections, and those of all dropped connections
    -- that were not gone by then.
    stateDropped :: Nanos,
    stateDraining :: [Multiplexer]
  }

-- | An attempt to connect: full when it is over.
newtype Connecting = Connecting {attemptResult :: TMVar (Either ConnectionCause ())}

-- | A pool without connections. Never blocks. The action is called after failed attempts and lost connections.
newMultiplexPool :: ConnectionSetup -> ConnectionRole -> (ConnectionCause -> IO ()) -> Endpoint -> IO MultiplexPool
newMultiplexPool poolSetup poolRole poolOnFailure poolEndpoint = do
  poolCapabilities <- getNumCapabilities
  let count = max 1 (fromMaybe poolCapabilities (configMuxCount (setupConfig poolSetup)))
  poolCells <- arrayFromList <$> mapM (const (newIORef Nothing)) [1 .. count]
  poolState <-
    newMVar
      PoolState
        { stateAttempt = Nothing,
          stateReconnect = NoFailure,
          stateDropped = 0,
          stateDraining = []
        }
  poolClosed <- newTVarIO False
  pure MultiplexPool {poolEndpoint, poolRole, poolSetup, poolCells, poolCapabilities, poolState, poolClosed, poolOnFailure}

-- | Takes no more commands, waits up to so many seconds for those in flight, and closes every connection, also
-- dropped ones. A second call with fewer seconds cuts the first one short.
closeMultiplexPool :: Double -> MultiplexPool -> IO ()
closeMultiplexPool grace pool = do
  -- From now on no cell gets a connection. One that is dropped meanwhile is closed here, too.
  (attempt, muxes) <- withMVar (poolState pool) $ \state -> do
    atomically (writeTVar (poolClosed pool) True)
    live <- liveMuxes pool
    pure (stateAttempt state, live <> stateDraining state)
  -- All at once, or the grace periods would add up.
  waits <- mapM (spawnWait "redis close" . closeMultiplexer grace) muxes
  -- The attempt sees that the pool is closed, and ends; the user's code in it decides when.
  for_ attempt (atomically . void . readTMVar . attemptResult)
  sequence_ waits

-- | Drops the connections of a node that redirects its clients in a circle, or that has forgotten their
-- authentication; the next command opens new connections. Commands in flight have so many seconds to be
-- answered. Does nothing if the connections were dropped after this time, at which the complaining command
-- began: the other commands of the old connection may complain, too.
reconnectWithin :: Double -> MultiplexPool -> Nanos -> IO ()
reconnectWithin grace pool began = mask_ $ do
  now <- coarseNanos
  dropped <- modifyMVar (poolState pool) $ \state ->
    if stateDropped state >= began
      then pure (state, [])
      else do
        muxes <- liveMuxes pool
        mapM_ (`writeIORef` Nothing) (cellList pool)
        still <- filterM (fmap not . isGone) (stateDraining state)
        pure (state {stateDropped = now, stateDraining = muxes <> still}, muxes)
  for_ dropped $ \mux -> spawn "redis drain" (quietly (closeMultiplexer grace mux))

liveMuxes :: MultiplexPool -> IO [Multiplexer]
liveMuxes pool = catMaybes <$> mapM readIORef (cellList pool)

cellList :: MultiplexPool -> [IORef (Maybe Multiplexer)]
cellList pool = [indexArray (poolCells pool) index | index <- [0 .. sizeofArray (poolCells pool) - 1]]

-- | Whether the thread that submits a command waits for its reply at once.
data Submitter
  = -- | It waits. It can have nothing in flight but commands that it submitted earlier without
    -- waiting, so this command is not counted.
    Waits
  | -- | It goes on. Its commands are counted, and after a failed attempt it does not wait for a
    -- connection.
    GoesOn
  | -- | A thread of the library, for a thread that goes on: as if that one had submitted the command.
    GoesOnFor OrderKey
  deriving stock (Eq)

-- | Submits a command and waits for its outcome, until the deadline.
submitToNode :: MultiplexPool -> Deadline -> Request -> IO Arrival
submitToNode pool deadline encoded = do
  slot <- newResponseSlot
  submitAs Waits pool deadline encoded slot
  waitArrival slot
{-# INLINE submitToNode #-}

-- | Submits a command and returns without waiting for its reply. Blocks in three cases, each time
-- at most until the command's deadline: while connections are opened, each of them within the connect
-- timeout (not at all if the last attempt failed); while the queue is full (not at all if all
-- commands in flight are past their deadlines); and while commands in flight that may be the
-- thread's are on several connections. Never throws an 'Error': it arrives in the slot.
submitToNodeAsync :: MultiplexPool -> Deadline -> Request -> IO ResponseSlot
submitToNodeAsync pool deadline encoded = do
  slot <- newResponseSlot
  slot <$ submitToNodeSlot pool deadline encoded slot
{-# INLINE submitToNodeAsync #-}

-- | Like 'submitToNodeAsync', but the reply arrives in a given slot.
submitToNodeSlot :: MultiplexPool -> Deadline -> Request -> ResponseSlot -> IO ()
submitToNodeSlot = submitAs GoesOn
{-# INLINE submitToNodeSlot #-}

-- | Submits a command whose caller then waits for the slot: the first half of 'submitToNode'.
submitWaiting :: MultiplexPool -> Deadline -> Request -> ResponseSlot -> IO ()
submitWaiting = submitAs Waits

submitAs :: Submitter -> MultiplexPool -> Deadline -> Request -> ResponseSlot -> IO ()
submitAs submitter pool deadline encoded slot =
  withMux submitter pool deadline (fillSlot slot (deadlineBegan deadline) . Failure) $ \mux key ->
    submitTo mux Terms {termsOrderKey = key, termsDeadline = deadline} encoded slot
{-# INLINE submitAs #-}

-- | Submits requests, each with its slot, with nothing in between. Blocks like 'submitToNodeAsync'.
submitRunToNode :: Submitter -> MultiplexPool -> Deadline -> [(Request, ResponseSlot)] -> IO ()
submitRunToNode submitter pool deadline run =
  withMux submitter pool deadline (\failure -> mapM_ (\(_, slot) -> fillSlot slot (deadlineBegan deadline) (Failure failure)) run) $ \mux key ->
    submitRunTo mux Terms {termsOrderKey = key, termsDeadline = deadline} run

-- | The deadline of a command that begins now and has no time limit of its own.
usualDeadline :: MultiplexPool -> IO Deadline
usualDeadline pool = deadlineAfter (commandLimit (setupConfig (poolSetup pool))) <$> coarseNanos

-- | Makes sure that the calling thread's connection is open. Blocks while it is opened: each attempt has the
-- connect timeout, and those for other connections of the node may come first.
connectNode :: MultiplexPool -> IO (Either Error ())
connectNode pool = withMux Waits pool noDeadline (pure . Left) (\_ _ -> pure (Right ()))

-- | Whether a command that the calling thread submits without waiting has an open connection: its own, or one on which it may
-- have commands in flight. Never blocks.
isConnected :: MultiplexPool -> IO Bool
isConnected pool = do
  (mine, key) <- homeOf pool GoesOn
  elsewhere <- anyElsewhere pool mine key
  open <- readIORef (indexArray (poolCells pool) mine) >>= maybe (pure False) isOpen
  pure (elsewhere || open)

-- | A connection and the key under which the thread's commands are counted on it, or why there is none.
data Found
  = Found Multiplexer OrderKey
  | Missing Error

-- | Runs an action with the calling thread's multiplexer and the key under which the thread's commands are counted
-- on it, or with the reason why there is none. Blocks like 'submitToNodeAsync'.
withMux :: Submitter -> MultiplexPool -> Deadline -> (Error -> IO a) -> (Multiplexer -> OrderKey -> IO a) -> IO a
withMux submitter pool !deadline failed use =
  soleOpen >>= \case
    Just mux -> use mux noOrderKey
    Nothing ->
      muxOf submitter pool deadline >>= \case
        Found mux key -> use mux key
        Missing failure -> failed failure
  where
    soleOpen
      | sizeofArray (poolCells pool) == 1 =
        readIORef (indexArray (poolCells pool) 0) >>= \case
          sole@(Just mux) -> isOpen mux >>= \open -> pure (if open then sole else Nothing)
          Nothing -> pure Nothing
      | otherwise = pure Nothing
-- Inlined, so that nothing is allocated for a pool with one open connection.
{-# INLINE withMux #-}

-- | The calling thread's multiplexer, whatever connections the pool has. Blocks like 'submitToNodeAsync'.
muxOf :: Submitter -> MultiplexPool -> Deadline -> IO Found
muxOf submitter pool !deadline
  | sizeofArray (poolCells pool) == 1 = connected 0 noOrderKey
  | otherwise = do
    (mine, key) <- homeOf pool submitter
    let counted = if submitter == Waits then noOrderKey else key
    elsewhere <- anyElsewhere pool mine key
    if not elsewhere
      then atCell mine counted
      else case submitter of
        Waits -> stayWith pool mine key >>= (`atCell` counted)
        _ -> settleOrder pool mine key deadline >>= either (pure . Missing) (`atCell` counted)
  where
    atCell index key =
      readIORef (indexArray (poolCells pool) index) >>= \case
        Just mux -> do
          open <- isOpen mux
          if open then pure (Found mux key) else connected index key
        Nothing -> connected index key
    connected index key = either Missing (`Found` key) <$> openCell submitter pool deadline index

-- | The submitter's cell, and the number of the thread whose commands it submits.
homeOf :: MultiplexPool -> Submitter -> IO (Int, OrderKey)
homeOf pool submitter = do
  thread <- myThreadId
  (capability, _) <- threadCapability thread
  -- Strict: two thunks would be allocated for every command.
  let !key = case submitter of
        GoesOnFor other -> other
        _ -> orderKeyOf thread
      !mine = homeCell pool capability key
  pure (mine, key)
{-# INLINE homeOf #-}

-- | The cell of a thread on this capability. A capability has every n-th cell, for n capabilities; if those are several,
-- its threads share them by their numbers, which may be n apart: programs place threads on the capabilities by turns. \(O(1)\).
homeCell :: MultiplexPool -> Int -> OrderKey -> Int
homeCell pool capability key
  | count <= capabilities = capability `rem` count
  | otherwise = first + capabilities * (key `quot` capabilities `rem` ((count - 1 - first) `quot` capabilities + 1))
  where
    count = sizeofArray (poolCells pool)
    capabilities = poolCapabilities pool
    first = capability `rem` capabilities
{-# INLINE homeCell #-}

-- | Whether the thread may have commands in flight in another cell than this one.
anyElsewhere :: MultiplexPool -> Int -> OrderKey -> IO Bool
anyElsewhere pool mine key = go (sizeofArray (poolCells pool) - 1)
  where
    go index
      | index < 0 = pure False
      | index == mine = go (index - 1)
      | otherwise =
        inFlightIn pool key index >>= \case
          None -> go (index - 1)
          _ -> pure True

inFlightIn :: MultiplexPool -> OrderKey -> Int -> IO InFlight
inFlightIn pool key index =
  readIORef (indexArray (poolCells pool) index) >>= \case
    Nothing -> pure None
    Just mux -> inFlightOf (muxOrder mux) key

-- | The cells where the thread has commands in flight, and those where it may have.
inFlightCells :: MultiplexPool -> OrderKey -> IO ([Int], [Int])
inFlightCells pool key = do
  found <- mapM (\index -> (,) index <$> inFlightIn pool key index) [0 .. sizeofArray (poolCells pool) - 1]
  pure ([index | (index, Some) <- found], [index | (index, Perhaps) <- found])

-- | The cell for a thread that waits for its reply: one where it has commands in flight, otherwise
-- one where it may have, otherwise its own. Never blocks.
stayWith :: MultiplexPool -> Int -> OrderKey -> IO Int
stayWith pool mine key = do
  (certain, possible) <- inFlightCells pool key
  pure (case certain <> possible of index : _ -> index; [] -> mine)

-- | The cell for a thread that does not wait for its reply and may have commands in flight
-- elsewhere: the cell where it has them, if that is known. Otherwise waits until at most one of the
-- possible cells has commands in flight, at most until the deadline.
settleOrder :: MultiplexPool -> Int -> OrderKey -> Deadline -> IO (Either Error Int)
settleOrder pool mine key !deadline = go (0 :: Int)
  where
    go turns =
      inFlightCells pool key >>= \case
        (certain : _, _) -> pure (Right certain)
        ([], []) -> pure (Right mine)
        ([], [only]) -> pure (Right only)
        _ -> do
          now <- coarseNanos
          if now >= deadlineAt deadline
            then pure (Left (timedOut NotSent deadline))
            else do
              if turns < 100 then yield else threadDelay 100
              go (turns + 1)

-- | Opens the multiplexer of a cell, or waits for the attempt that is under way, at most until the
-- deadline: attempts for other cells may come first. While attempts fail, only a caller that waits
-- for its reply anyway waits for the next attempt.
openCell :: Submitter -> MultiplexPool -> Deadline -> Int -> IO (Either Error Multiplexer)
openCell submitter pool !deadline index = join . mask_ . modifyMVar (poolState pool) $ \state -> do
  present <- readIORef cell
  open <- maybe (pure False) isOpen present
  now <- coarseNanos
  closed <- readTVarIO (poolClosed pool)
  let await attempt = case failing (stateReconnect state) of
        Just cause | submitter /= Waits -> pure (notSent cause)
        _ -> awaitResult attempt
  case (present, stateAttempt state) of
    (Just mux, _) | open -> pure (state, pure (Right mux))
    _ | closed -> pure (state, pure (notSent ClosedLocally))
    (_, Just attempt) -> pure (state, await attempt)
    _ -> case beginAttempt now (stateReconnect state) of
      Left cause -> pure (state, pure (notSent cause))
      Right begun -> do
        attempt <- Connecting <$> newEmptyTMVarIO
        void (spawn ("redis connect " <> renderEndpoint (poolEndpoint pool)) (runAttempt pool index attempt))
        pure (state {stateAttempt = Just attempt, stateReconnect = begun}, await attempt)
  where
    cell = indexArray (poolCells pool) index
    notSent = Left . ConnectionError . ConnectionFailure "" NotSent (poolEndpoint pool)
    -- By a timer in the transaction: no exception is thrown to the caller when its time is over.
    awaitResult attempt = do
      over <- expiryAt (deadlineAt deadline)
      result <- atomically ((Just <$> readTMVar (attemptResult attempt)) `orElse` (Nothing <$ over))
      case result of
        Just (Left cause) -> pure (notSent cause)
        Just (Right ()) -> openCell submitter pool deadline index
        Nothing -> Left <$> lateForConnection (poolSetup pool) (poolEndpoint pool) deadline

-- | The body of an attempt: opens one connection, and tells the callers that wait for it.
runAttempt :: MultiplexPool -> Int -> Connecting -> IO ()
runAttempt pool index attempt = do
  let setup = poolSetup pool
      endpoint = poolEndpoint pool
      cell = indexArray (poolCells pool) index
      shared = sharedSettings setup endpoint index
      -- What ends a busy server's work must not wait for a check that it answers with BUSY.
      settings =
        shared
          { muxOnLastWord = untracked,
            muxReplyChecks = muxReplyChecks shared && poolRole pool /= ForControl,
            muxNeighbours = max (muxNeighbours shared) (if sizeofArray (poolCells pool) > poolCapabilities pool then OfSameNode else NoNeighbours)
          }
      untracked = if poolRole pool == ForPrimary then ($ endpoint) <$> setupOnUntracked setup else Nothing
      purpose = Purpose {purposeUse = SharedFor (poolRole pool), purposeGone = readTVar (poolClosed pool) >>= check}
  outcome <- try (openConnection setup purpose settings (lost pool) endpoint)
  -- An exception is a defect, or a lack of memory: nobody throws to this thread.
  let opened = either (Left . ConnectFailed . show @SomeException) (fmap establishedMux) outcome
  succeeded <- afterSuccess setup
  failed <- afterFailure setup
  (result, after) <- modifyMVar (poolState pool) $ \before -> do
    closed <- readTVarIO (poolClosed pool)
    let state = before {stateAttempt = Nothing}
    case opened of
      _ | closed -> pure (state, (Left ClosedLocally, mapM_ abortMultiplexer opened))
      Right mux -> do
        writeIORef cell (Just mux)
        pure (state {stateReconnect = succeeded (stateReconnect state)}, (Right (), pure ()))
      Left cause -> do
        let (delay, reconnect) = failed cause (stateReconnect state)
        pure (state {stateReconnect = reconnect}, (Left cause, tellAttemptFailed setup endpoint cause delay *> poolOnFailure pool cause))
  -- In this order the hooks learn of a failure before any caller does.
  after `finally` atomically (putTMVar (attemptResult attempt) result)

-- | Called when a multiplexer has ended. The cell keeps it until the next command replaces it.
lost :: MultiplexPool -> Lifetime -> IO ()
lost pool life = do
  after <- afterLoss (poolSetup pool) life
  modifyMVar_ (poolState pool) $ \state -> pure state {stateReconnect = after (stateReconnect state)}
  unless (lifetimeEnd life == ClosedLocally) (poolOnFailure pool (lifetimeEnd life))

-- | Whether a command of at most so many bytes would wait for room on no open connection. Takes the lock of each for a
-- moment.
isRoomy :: MultiplexPool -> Int -> IO Bool
isRoomy pool bytes = and <$> (liveMuxes pool >>= filterM isOpen >>= mapM (`hasRoomFor` bytes))

-- | The gauges of the open connections. Takes the lock of each for a moment.
poolGauges :: MultiplexPool -> IO [MuxGauges]
poolGauges pool = liveMuxes pool >>= filterM isOpen >>= mapM muxGauges
