-- | The connections of one node: a fixed number of multiplexers, each opened
-- when it is first needed.
--
-- A caller gets the multiplexer of the capability it runs on, so that cores do
-- not contend. With commands in flight on another one, that it submitted without
-- waiting, it stays there, so that what a thread submits is run in that order
-- ("Redis.Internal.Network.OrderCounts").
--
-- At most one attempt to connect is made at a time. It belongs to the pool,
-- not to the caller that happened to need it: a caller that gives up waiting
-- does not stop it. After a failed attempt, and after a connection that was lost
-- before it had answered anybody, callers fail at once with the cause until the
-- backoff has passed ("Redis.Internal.Network.Reconnect"); whether to try again
-- later is the retry policy's decision.
module Redis.Internal.Network.MultiplexPool
  ( MultiplexPool,
    newMultiplexPool,
    closeMultiplexPool,

    -- * Submitting
    submitToNode,
    submitToNodeAsync,
    submitToNodeSlot,
    submitWaiting,
    submitRunToNode,
    connectNode,

    -- * Connections
    reconnectNode,
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
import Redis.Duration (seconds)
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Hooks
import Redis.Internal.Network.Clock
import Redis.Internal.Network.Handshake (ConnectionRole (ForPrimary), ConnectionUse (SharedFor))
import Redis.Internal.Network.Multiplexer
import Redis.Internal.Network.OpenConnection
import Redis.Internal.Network.OrderCounts
import Redis.Internal.Network.Reconnect
import Redis.Internal.Network.ResponseSlot
import Redis.Internal.Network.Tally (Count (..), countOne)
import Redis.Internal.Network.Worker (spawn)
import Redis.Internal.Protocol.Encode (Request)
import System.Random (randomRIO)

-- | One node's connections.
data MultiplexPool = MultiplexPool
  { -- | Where all its connections lead.
    poolEndpoint :: Endpoint,
    poolRole :: ConnectionRole,
    poolSetup :: ConnectionSetup,
    -- | One cell per multiplexer; 'Nothing' before it is needed and after it died.
    poolCells :: Array (IORef (Maybe Multiplexer)),
    -- | Held for a few instructions, never while anything is waited for.
    poolState :: MVar PoolState,
    -- | Set once, while the state is held. Attempts to connect watch it.
    poolClosed :: TVar Bool,
    -- | Told why an attempt to connect failed, or a connection was lost.
    poolOnTrouble :: ConnectionCause -> IO ()
  }

data PoolState = PoolState
  { stateAttempt :: Maybe Connecting,
    stateReconnect :: Reconnect,
    -- | When 'reconnectNode' last dropped the connections, and which of those that
    -- it has ever dropped were not gone by then.
    stateDropped :: Nanos,
    stateDraining :: [Multiplexer]
  }

-- | An attempt to connect: full when it is over.
newtype Connecting = Connecting {attemptResult :: TMVar (Either ConnectionCause ())}

-- | A pool without any connection yet. Never blocks. The action is told of
-- every failed attempt and every lost connection.
newMultiplexPool :: ConnectionSetup -> ConnectionRole -> (ConnectionCause -> IO ()) -> Endpoint -> IO MultiplexPool
newMultiplexPool poolSetup poolRole poolOnTrouble poolEndpoint = do
  capabilities <- getNumCapabilities
  let count = max 1 (fromMaybe capabilities (configMuxCount (setupConfig poolSetup)))
  poolCells <- arrayFromList <$> mapM (const (newIORef Nothing)) [1 .. count]
  poolState <-
    newMVar
      PoolState
        { stateAttempt = Nothing,
          stateReconnect = untroubled,
          stateDropped = 0,
          stateDraining = []
        }
  poolClosed <- newTVarIO False
  pure MultiplexPool {poolEndpoint, poolRole, poolSetup, poolCells, poolState, poolClosed, poolOnTrouble}

-- | Takes no more commands, waits up to so many seconds for those in flight,
-- and closes every connection, also those that were replaced and still wait for
-- replies. A second time with fewer seconds cuts the first short.
closeMultiplexPool :: Double -> MultiplexPool -> IO ()
closeMultiplexPool grace pool = do
  (attempt, draining) <- withMVar (poolState pool) $ \state -> do
    atomically (writeTVar (poolClosed pool) True)
    pure (stateAttempt state, stateDraining state)
  -- It sees that, ends, and closes what it opened.
  for_ attempt (atomically . void . readTMVar . attemptResult)
  muxes <- liveMuxes pool
  -- Together, or each would take its own grace.
  waits <- mapM closeInBackground (muxes <> draining)
  mapM_ takeMVar waits
  where
    closeInBackground mux = do
      done <- newEmptyMVar
      void . spawn "redis close" $ do
        void (try (closeMultiplexer grace mux) :: IO (Either SomeException ()))
        putMVar done ()
      pure done

-- | Drops the connections of a node that sends its clients in a circle, or has
-- forgotten who they are; the next command opens new ones. Commands in flight
-- are still answered.
--
-- Takes the time when the command that complains was begun. Nothing is done if
-- the connections were dropped since: all commands of the old connection may
-- complain, and must not take each other's new one away.
reconnectNode :: MultiplexPool -> Nanos -> IO ()
reconnectNode = reconnectWithin drainSeconds

-- | The same, given for how many seconds commands in flight are waited for.
reconnectWithin :: Double -> MultiplexPool -> Nanos -> IO ()
reconnectWithin grace pool began = mask_ $ do
  now <- coarseNanos
  dropped <- modifyMVar (poolState pool) $ \state ->
    if stateDropped state >= began
      then pure (state, [])
      else do
        muxes <- liveMuxes pool
        forEachCell pool (`writeIORef` Nothing)
        still <- filterM (fmap not . isGone) (stateDraining state)
        pure (state {stateDropped = now, stateDraining = muxes <> still}, muxes)
  for_ dropped $ \mux -> spawn "redis drain" (void (try (closeMultiplexer grace mux) :: IO (Either SomeException ())))

-- | How long commands in flight are waited for when a connection is replaced.
drainSeconds :: Double
drainSeconds = 5

liveMuxes :: MultiplexPool -> IO [Multiplexer]
liveMuxes pool = catMaybes <$> mapM readIORef (cellList pool)

cellList :: MultiplexPool -> [IORef (Maybe Multiplexer)]
cellList pool = [indexArray (poolCells pool) index | index <- [0 .. sizeofArray (poolCells pool) - 1]]

forEachCell :: MultiplexPool -> (IORef (Maybe Multiplexer) -> IO ()) -> IO ()
forEachCell pool action = mapM_ action (cellList pool)

-- | Whether the thread that submits a command waits for its reply at once.
data Submitter
  = -- | It does. It has nothing in flight but what it submitted before without
    -- waiting, and its commands are not counted.
    Waits
  | -- | It goes on. Its commands are counted, and it is not kept waiting for a
    -- connection that could not be opened the last time.
    GoesOn
  deriving stock (Eq)

-- | Submits a command and waits for what becomes of it, for as long as the given
-- time, or as the client's. Another thread's commands neither hold it up nor move it
-- to another connection, unless both have commands in flight that they did not wait
-- for, and count as one.
submitToNode :: MultiplexPool -> Maybe Nanos -> Request -> IO Arrival
submitToNode pool patience encoded = do
  slot <- newResponseSlot
  submitAs Waits pool patience encoded slot
  waitArrival slot
{-# INLINE submitToNode #-}

-- | Submits a command without waiting for the reply. Blocks while a connection
-- is opened (at most the connect timeout, and not at all after one could not be),
-- while the queue is full (at most the command's time, and not at all while the time
-- of all in flight is over), or while commands that count as the thread's keep it
-- from its connection (at most the command's time). Never throws an 'Error': it
-- comes in the slot.
submitToNodeAsync :: MultiplexPool -> Maybe Nanos -> Request -> IO ResponseSlot
submitToNodeAsync pool patience encoded = do
  slot <- newResponseSlot
  slot <$ submitToNodeSlot pool patience encoded slot
{-# INLINE submitToNodeAsync #-}

-- | The same, with the reply in a slot that is there already.
submitToNodeSlot :: MultiplexPool -> Maybe Nanos -> Request -> ResponseSlot -> IO ()
submitToNodeSlot = submitAs GoesOn
{-# INLINE submitToNodeSlot #-}

-- | The first half of 'submitToNode'.
submitWaiting :: MultiplexPool -> Maybe Nanos -> Request -> ResponseSlot -> IO ()
submitWaiting = submitAs Waits

submitAs :: Submitter -> MultiplexPool -> Maybe Nanos -> Request -> ResponseSlot -> IO ()
submitAs submitter pool patience encoded slot =
  muxOf submitter pool patience >>= \case
    Found mux key -> submitTo mux Terms {termsOrderKey = key, termsPatience = patience} encoded slot
    Missing failure -> fillSlot slot (Failure failure)
{-# INLINE submitAs #-}

-- | Submits requests that nothing may come between, each with the slot of its
-- reply. Blocks as 'submitToNodeAsync'.
submitRunToNode :: MultiplexPool -> Maybe Nanos -> [(Request, ResponseSlot)] -> IO ()
submitRunToNode pool patience run =
  muxOf GoesOn pool patience >>= \case
    Found mux key -> submitRunTo mux Terms {termsOrderKey = key, termsPatience = patience} run
    Missing failure -> mapM_ ((`fillSlot` Failure failure) . snd) run

-- | Makes sure that the calling thread's connection is open, or says why it
-- cannot be. Blocks while it is opened.
connectNode :: MultiplexPool -> IO (Either Error ())
connectNode pool =
  muxOf Waits pool Nothing >>= \case
    Found _ _ -> pure (Right ())
    Missing failure -> pure (Left failure)

-- | A connection, and as whose the commands of the thread that asked count there; or
-- why there is none.
data Found
  = Found Multiplexer OrderKey
  | Missing Error

-- | The calling thread's multiplexer. Blocks as 'submitToNodeAsync'.
muxOf :: Submitter -> MultiplexPool -> Maybe Nanos -> IO Found
muxOf submitter pool patience
  | count == 1 = atCell 0 noOrderKey
  | otherwise = do
    thread <- myThreadId
    (capability, _) <- threadCapability thread
    let key = orderKeyOf thread
        mine = capability `rem` count
        counted = if submitter == GoesOn then key else noOrderKey
    elsewhere <- anyElsewhere pool mine key
    if not elsewhere
      then atCell mine counted
      else case submitter of
        Waits -> stayWith pool mine key >>= (`atCell` counted)
        GoesOn -> settleOrder pool mine key patience >>= either (pure . Missing) (`atCell` counted)
  where
    count = sizeofArray (poolCells pool)
    atCell index key =
      readIORef (indexArray (poolCells pool) index) >>= \case
        Just mux -> do
          open <- isOpen mux
          if open then pure (Found mux key) else connected index key
        Nothing -> connected index key
    connected index key = either Missing (`Found` key) <$> openCell submitter pool patience index

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

-- | Where a thread goes that waits for its reply: where it has commands in flight,
-- or may have. It never waits for that.
stayWith :: MultiplexPool -> Int -> OrderKey -> IO Int
stayWith pool mine key = do
  (certain, possible) <- inFlightCells pool key
  pure (case certain <> possible of index : _ -> index; [] -> mine)

-- | Where a thread goes on that may have commands in flight elsewhere: where
-- they are, if that is known; otherwise it waits until all but one of the cells that
-- come into question have been answered, for at most the command's time.
settleOrder :: MultiplexPool -> Int -> OrderKey -> Maybe Nanos -> IO (Either Error Int)
settleOrder pool mine key patience = coarseNanos >>= go (0 :: Int)
  where
    limit = patienceOf pool patience
    go turns began =
      inFlightCells pool key >>= \case
        (certain : _, _) -> pure (Right certain)
        ([], []) -> pure (Right mine)
        ([], [only]) -> pure (Right only)
        _ -> do
          waited <- subtract began <$> coarseNanos
          if waited >= limit
            then pure (Left (TimeoutError (TimeoutFailure NotSent (durationFromNanos limit))))
            else do
              if turns < 100 then yield else threadDelay 100
              go (turns + 1) began

-- | How long a command is given; 'maxBound' is for ever.
patienceOf :: MultiplexPool -> Maybe Nanos -> Nanos
patienceOf pool = fromMaybe (fromMaybe maxBound (muxCommandTimeout (sharedSettings (poolSetup pool) (poolEndpoint pool) 0)))

-- | Opens the multiplexer of a cell, or waits for the attempt in flight. While
-- attempts fail, only who waits for a reply anyway waits for the next one.
openCell :: Submitter -> MultiplexPool -> Maybe Nanos -> Int -> IO (Either Error Multiplexer)
openCell submitter pool patience index = join . mask_ . modifyMVar (poolState pool) $ \state -> do
  present <- readIORef cell
  open <- maybe (pure False) isOpen present
  now <- coarseNanos
  closed <- readTVarIO (poolClosed pool)
  let await attempt = case failing (stateReconnect state) of
        Just cause | submitter == GoesOn -> pure (notSent cause)
        _ -> awaitAttempt attempt
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
    notSent = Left . ConnectionError . ConnectionFailure NotSent (poolEndpoint pool)
    limit = patienceOf pool patience
    -- Nothing is thrown to the caller when its time is over.
    awaitAttempt attempt = do
      over <- if limit == maxBound then newTVarIO False else registerDelay (fromIntegral (min 1000000000000000 limit `quot` 1000))
      result <- atomically ((Just <$> readTMVar (attemptResult attempt)) `orElse` (Nothing <$ (readTVar over >>= check)))
      case result of
        Just (Left cause) -> pure (notSent cause)
        Just (Right ()) -> openCell submitter pool patience index
        Nothing -> pure (Left (TimeoutError (TimeoutFailure NotSent (durationFromNanos limit))))

-- | The body of an attempt: opens one connection and tells everybody.
runAttempt :: MultiplexPool -> Int -> Connecting -> IO ()
runAttempt pool index attempt = do
  let setup = poolSetup pool
      endpoint = poolEndpoint pool
      cell = indexArray (poolCells pool) index
      settings = (sharedSettings setup endpoint index) {muxOnLastWord = untracked}
      untracked = if poolRole pool == ForPrimary then ($ endpoint) <$> setupOnUntracked setup else Nothing
      backoff = configBackoff (setupConfig setup)
      purpose = Purpose {purposeUse = SharedFor (poolRole pool), purposeGone = readTVar (poolClosed pool) >>= check}
  outcome <- try (openConnection setup purpose settings (lost pool) endpoint)
  let opened = case outcome of
        Right result -> establishedMux <$> result
        -- A defect, or memory: nobody throws to this thread.
        Left (unexpected :: SomeException) -> Left (ConnectFailed (show unexpected))
  now <- coarseNanos
  random <- randomRIO (0, 1)
  (result, after) <- modifyMVar (poolState pool) $ \state ->
    readTVarIO (poolClosed pool) >>= \closed -> case opened of
      Right mux
        | closed -> pure (state {stateAttempt = Nothing}, (Left ClosedLocally, abortMultiplexer mux))
        | otherwise -> do
          writeIORef cell (Just mux)
          pure (state {stateAttempt = Nothing, stateReconnect = attemptSucceeded backoff now (stateReconnect state)}, (Right (), pure ()))
      Left cause
        | closed -> pure (state {stateAttempt = Nothing}, (Left ClosedLocally, pure ()))
        | otherwise -> do
          let (delay, reconnect) = attemptFailed backoff now random cause (stateReconnect state)
          pure
            ( state {stateAttempt = Nothing, stateReconnect = reconnect},
              ( Left cause,
                do
                  countOne (setupTally (poolSetup pool)) ConnectsFailed
                  tellHooks pool (ConnectAttemptFailed endpoint cause (seconds delay))
                  poolOnTrouble pool cause
              )
            )
  -- In this order the hooks have a failure before any caller does.
  after `finally` atomically (putTMVar (attemptResult attempt) result)

-- | What a multiplexer says when it ends. The cell keeps it: the next command
-- finds it closed and replaces it.
lost :: MultiplexPool -> Lifetime -> IO ()
lost pool life = do
  now <- coarseNanos
  random <- randomRIO (0, 1)
  modifyMVar_ (poolState pool) $ \state ->
    pure state {stateReconnect = connectionLost (configBackoff (setupConfig (poolSetup pool))) now random life (stateReconnect state)}
  unless (lifetimeEnd life == ClosedLocally) (poolOnTrouble pool (lifetimeEnd life))

tellHooks :: MultiplexPool -> ConnectionEvent -> IO ()
tellHooks pool = observeConnection (configHooks (setupConfig (poolSetup pool)))

-- | Of the open connections. Takes the lock of each for a moment.
poolGauges :: MultiplexPool -> IO [MuxGauges]
poolGauges pool = liveMuxes pool >>= filterM isOpen >>= mapM muxGauges
