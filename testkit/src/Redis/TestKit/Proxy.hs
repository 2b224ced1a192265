-- | A TCP proxy that misbehaves on demand.
--
-- Each connection has two directions. Each direction has a thread that receives and one that sends,
-- with a queue of timed chunks between them: so a delay adds latency and does not limit throughput,
-- and every chunk leaves at the moment it is due, however late the one before it was. The faults
-- are state in STM, which the threads consult before each send; so a fault takes effect at once, on
-- existing and on new connections, and a test can wait for an event ('proxyTraffic') instead of for
-- time to pass.
--
-- The proxy passes on a half-close as a half-close, and a reset as a reset.
module Redis.TestKit.Proxy
  ( -- * Life
    Proxy,
    withProxy,
    startProxy,
    disposeProxy,
    proxyAddress,
    proxyPort,
    retarget,

    -- * Faults
    Direction (..),
    Ending (..),
    heal,
    delay,
    slice,
    freeze,
    thaw,
    cut,
    cutAfter,
    dropAfter,
    inject,
    refuse,
    accept,

    -- * What has happened
    Traffic (..),
    proxyTraffic,
    awaitTraffic,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async
  ( Async,
    asyncWithUnmask,
    cancel,
    concurrently_,
    mapConcurrently_,
    race_,
  )
import Control.Concurrent.MVar (MVar, modifyMVar_, newMVar, withMVar)
import Control.Concurrent.STM
  ( STM,
    TQueue,
    TVar,
    atomically,
    check,
    modifyTVar',
    newTQueueIO,
    newTVarIO,
    readTQueue,
    readTVar,
    readTVarIO,
    retry,
    writeTQueue,
    writeTVar,
  )
import Control.Exception
  ( IOException,
    bracket,
    bracketOnError,
    finally,
    mask_,
    try,
  )
import Control.Monad (forever, unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import GHC.Clock (getMonotonicTime)
import GHC.Stack (HasCallStack)
import Network.Socket (Socket)
import Network.Socket qualified as Socket
import Network.Socket.ByteString qualified as Socket.ByteString
import Redis.TestKit.Address
  ( Address (..),
    closeSocket,
    connectTo,
    listenOn,
    onFreePort,
  )
import Redis.TestKit.Wait (Seconds, within)

-- | The direction in which bytes travel.
data Direction
  = -- | Requests.
    ToServer
  | -- | Replies.
    ToClient
  deriving stock (Eq, Ord, Show)

-- | How a connection ends.
data Ending
  = -- | As if the peer had finished (FIN).
    Close
  | -- | As if the peer had crashed (RST).
    Reset
  deriving stock (Eq, Show)

-- | The faults of one direction, and its count of bytes.
data Flow = Flow
  { flowDelay :: Seconds,
    -- | The most bytes per send; 'Nothing': as they arrive.
    flowSlice :: Maybe Int,
    flowFrozen :: Bool,
    flowLimit :: Limit,
    flowBytes :: Int
  }

-- | What happens after this many further bytes.
data Limit
  = Unlimited
  | DropAfter Int
  | CutAfter Int Ending

-- | A proxy in front of one server.
data Proxy = Proxy
  { -- | The address for clients to connect to.
    proxyAddress :: Address,
    -- | The port of 'proxyAddress'.
    proxyPort :: Int,
    proxyTarget :: TVar Address,
    proxyToServer :: TVar Flow,
    proxyToClient :: TVar Flow,
    proxyAccepted :: TVar Int,
    -- | The open connections, by number.
    proxyOpen :: TVar (Map Int Link),
    -- | The thread that accepts, unless connections are refused.
    proxyListener :: MVar (Maybe (Async ())),
    -- | The connections' threads by number.
    proxyWorkers :: TVar (Map Int (Async ()))
  }

-- | One connection through the proxy.
data Link = Link
  { linkClient :: Socket,
    linkEnd :: TVar (Maybe Ending),
    -- | Serialises the sends to the client by the forwarder and by 'inject'.
    linkSending :: MVar ()
  }

-- | A proxy on a free port of @127.0.0.1@ for the duration of an action; all its connections are
-- closed at the end. The server need not be reachable before a client connects.
withProxy :: Address -> (Proxy -> IO a) -> IO a
withProxy target = bracket (startProxy target) disposeProxy

-- | Starts a proxy. The caller must call 'disposeProxy'.
startProxy :: HasCallStack => Address -> IO Proxy
startProxy target = do
  target' <- newTVarIO target
  toServer <- newTVarIO quietFlow
  toClient <- newTVarIO quietFlow
  accepted <- newTVarIO 0
  open <- newTVarIO Map.empty
  listener <- newMVar Nothing
  workers <- newTVarIO Map.empty
  onFreePort $ \port -> do
    let proxy =
          Proxy
            { proxyAddress = TcpAddress "127.0.0.1" port,
              proxyPort = port,
              proxyTarget = target',
              proxyToServer = toServer,
              proxyToClient = toClient,
              proxyAccepted = accepted,
              proxyOpen = open,
              proxyListener = listener,
              proxyWorkers = workers
            }
    proxy <$ accept proxy

quietFlow :: Flow
quietFlow =
  Flow
    { flowDelay = 0,
      flowSlice = Nothing,
      flowFrozen = False,
      flowLimit = Unlimited,
      flowBytes = 0
    }

-- | Closes the port and every connection. Idempotent.
disposeProxy :: Proxy -> IO ()
disposeProxy proxy = do
  refuse proxy
  workers <- readTVarIO (proxyWorkers proxy)
  mapConcurrently_ cancel (Map.elems workers)

-- | Connects new clients to another server.
retarget :: Proxy -> Address -> IO ()
retarget proxy = atomically . writeTVar (proxyTarget proxy)

flowOf :: Proxy -> Direction -> TVar Flow
flowOf proxy = \case
  ToServer -> proxyToServer proxy
  ToClient -> proxyToClient proxy

change :: Proxy -> Direction -> (Flow -> Flow) -> IO ()
change proxy direction = atomically . modifyTVar' (flowOf proxy direction)

-- | Ends every fault: bytes pass as they come, connections are accepted.
-- Bytes that were dropped stay lost, connections that were cut stay cut.
heal :: Proxy -> IO ()
heal proxy = do
  mapM_ forget [ToServer, ToClient]
  accept proxy
  where
    forget direction =
      change proxy direction $ \flow ->
        quietFlow {flowBytes = flowBytes flow}

-- | Delays the bytes received from now on by this time. The order is kept.
delay :: Proxy -> Direction -> Seconds -> IO ()
delay proxy direction seconds =
  change proxy direction $ \flow -> flow {flowDelay = max 0 seconds}

-- | Forwards at most this many bytes at a time, each portion with a send of its own: with 1, every
-- receiver sees a reply end at every byte.
slice :: Proxy -> Direction -> Int -> IO ()
slice proxy direction size =
  change proxy direction $ \flow -> flow {flowSlice = Just (max 1 size)}

-- | Forwards nothing and closes nothing: the other side sees a silent peer. New connections are
-- accepted and are silent, too.
freeze :: Proxy -> Direction -> IO ()
freeze proxy direction = change proxy direction $ \flow -> flow {flowFrozen = True}

-- | Ends 'freeze': the bytes that were held back are forwarded.
thaw :: Proxy -> Direction -> IO ()
thaw proxy direction = change proxy direction $ \flow -> flow {flowFrozen = False}

-- | Ends every open connection, on both sides, and blocks until they are closed. New connections
-- are accepted.
cut :: Proxy -> Ending -> IO ()
cut proxy ending = do
  links <- atomically $ do
    links <- readTVar (proxyOpen proxy)
    mapM_ ((`writeTVar` Just ending) . linkEnd) links
    pure links
  within 10 . atomically $ do
    open <- readTVar (proxyOpen proxy)
    check (Map.null (Map.intersection open links))

-- | Ends one connection, once: forwards this many further bytes of a direction, counted over all
-- connections, and ends the connection that carries the next byte.
-- @cutAfter proxy ToClient 0 Reset@ ends a connection when the first reply
-- arrives: the server has run the request, and the client never receives the reply.
cutAfter :: Proxy -> Direction -> Int -> Ending -> IO ()
cutAfter proxy direction bytes ending =
  change proxy direction $ \flow -> flow {flowLimit = CutAfter (max 0 bytes) ending}

-- | Forwards this many further bytes of a direction, counted over all connections, and silently
-- discards the rest until 'heal'.
dropAfter :: Proxy -> Direction -> Int -> IO ()
dropAfter proxy direction bytes =
  change proxy direction $ \flow -> flow {flowLimit = DropAfter (max 0 bytes)}

-- | Sends bytes to every connected client, as if the server had sent them. They arrive between two
-- sends of the proxy, and are not counted.
inject :: Proxy -> ByteString -> IO ()
inject proxy bytes = do
  links <- readTVarIO (proxyOpen proxy)
  mapM_ send links
  where
    send link =
      void . try @IOException . alone link $
        Socket.ByteString.sendAll (linkClient link) bytes

alone :: Link -> IO () -> IO ()
alone link send = withMVar (linkSending link) (const send)

-- | Closes the port, so that new connections are refused. Open connections continue. Idempotent.
refuse :: Proxy -> IO ()
refuse proxy =
  modifyMVar_ (proxyListener proxy) $ \listener ->
    Nothing <$ mapM_ cancel listener

-- | Opens the port again. Idempotent.
accept :: Proxy -> IO ()
accept proxy =
  modifyMVar_ (proxyListener proxy) $ \case
    Just listener -> pure (Just listener)
    Nothing ->
      bracketOnError (listenOn (proxyAddress proxy)) closeSocket $ \socket ->
        Just <$> asyncWithUnmask (\unmask -> unmask (acceptLoop proxy socket) `finally` closeSocket socket)

-- | The proxy's counters.
data Traffic = Traffic
  { -- | Connections accepted since the start.
    trafficAccepted :: Int,
    -- | Connections open at this moment.
    trafficOpen :: Int,
    -- | Bytes forwarded to the server.
    trafficToServer :: Int,
    -- | Bytes forwarded to clients.
    trafficToClient :: Int
  }
  deriving stock (Eq, Show)

-- | The counters, consistent with each other.
proxyTraffic :: Proxy -> STM Traffic
proxyTraffic proxy =
  Traffic
    <$> readTVar (proxyAccepted proxy)
    <*> (Map.size <$> readTVar (proxyOpen proxy))
    <*> (flowBytes <$> readTVar (proxyToServer proxy))
    <*> (flowBytes <$> readTVar (proxyToClient proxy))

-- | Blocks until the counters satisfy a condition, and returns them; fails after this many seconds.
awaitTraffic :: HasCallStack => Proxy -> Seconds -> (Traffic -> Bool) -> IO Traffic
awaitTraffic proxy limit condition =
  within limit . atomically $ do
    traffic <- proxyTraffic proxy
    if condition traffic then pure traffic else retry

acceptLoop :: Proxy -> Socket -> IO ()
acceptLoop proxy socket = forever . mask_ $ do
  (client, _) <- Socket.accept socket
  number <- atomically $ do
    modifyTVar' (proxyAccepted proxy) (+ 1)
    readTVar (proxyAccepted proxy)
  let remove = atomically $ do
        modifyTVar' (proxyOpen proxy) (Map.delete number)
        modifyTVar' (proxyWorkers proxy) (Map.delete number)
  -- The worker starts masked, so it installs its handlers before a 'cancel' can reach it. Nothing
  -- here blocks between the accept and the worker's start.
  worker <- asyncWithUnmask $ \unmask ->
    unmask (listed number >> serve proxy number client)
      `finally` (closeSocket client >> remove)
  atomically (modifyTVar' (proxyWorkers proxy) (Map.insert number worker))
  where
    listed number =
      atomically (readTVar (proxyWorkers proxy) >>= check . Map.member number)

-- Forwards both ways until both directions have finished or the connection should end.
serve :: Proxy -> Int -> Socket -> IO ()
serve proxy number client = do
  Socket.setSocketOption client Socket.NoDelay 1
  ending <- newTVarIO Nothing
  sending <- newMVar ()
  let link = Link {linkClient = client, linkEnd = ending, linkSending = sending}
      register = atomically (modifyTVar' (proxyOpen proxy) (Map.insert number link))
      unlink = atomically (modifyTVar' (proxyOpen proxy) (Map.delete number))
  register
  target <- readTVarIO (proxyTarget proxy)
  bracket (try (connectTo target)) (mapM_ closeSocket) $ \case
    -- The server does not accept connections: the client, which is connected already, gets a reset.
    Left (_ :: IOException) -> resetOnClose client
    Right server -> do
      race_
        (atomically (readTVar ending >>= maybe retry (const (pure ()))))
        ( concurrently_
            (forward (proxyToServer proxy) link id client server)
            (forward (proxyToClient proxy) link (alone link) server client)
        )
      readTVarIO ending >>= \case
        Just Reset -> mapM_ resetOnClose [client, server]
        _ -> pure ()
  -- Closed before it is removed from the list: a caller that saw it there may conclude from its
  -- absence that the client's end is closed.
  closeSocket client
  unlink

-- After this, closing the socket discards unsent bytes and sends the peer a reset.
resetOnClose :: Socket -> IO ()
resetOnClose socket =
  void . try @IOException $
    Socket.setSockOpt socket Socket.Linger (Socket.StructLinger 1 0)

data Chunk
  = Chunk Double ByteString
  | Finished Double

-- Forwards one direction until its source finishes. A broken socket on either side ends the whole
-- connection with a reset. Each send runs through the given function.
forward :: TVar Flow -> Link -> (IO () -> IO ()) -> Socket -> Socket -> IO ()
forward flow link guarded from to = do
  queue <- newTQueueIO
  queued <- newTVarIO 0
  outcome <- try (concurrently_ (receiving queue queued) (sending queue queued))
  case outcome of
    Right () -> pure ()
    Left (_ :: IOException) -> endWith Reset
  where
    endWith ending =
      atomically . modifyTVar' (linkEnd link) $ \case
        Nothing -> Just ending
        already -> already

    receiving :: TQueue Chunk -> TVar Int -> IO ()
    receiving queue queued = do
      -- Limits the memory; the sender sees this as back-pressure.
      atomically $ readTVar queued >>= check . (< 16 * 1024 * 1024)
      bytes <- Socket.ByteString.recv from 65536
      now <- getMonotonicTime
      atomically $ do
        due <- (now +) . flowDelay <$> readTVar flow
        modifyTVar' queued (+ ByteString.length bytes)
        writeTQueue queue $
          if ByteString.null bytes then Finished due else Chunk due bytes
      unless (ByteString.null bytes) $ receiving queue queued

    sending :: TQueue Chunk -> TVar Int -> IO ()
    sending queue queued = do
      chunk <- atomically (readTQueue queue)
      case chunk of
        Chunk due bytes -> do
          sleepUntil due
          deliver bytes
          atomically (modifyTVar' queued (subtract (ByteString.length bytes)))
          sending queue queued
        Finished due -> do
          sleepUntil due
          atomically (readTVar flow >>= check . not . flowFrozen)
          Socket.shutdown to Socket.ShutdownSend

    deliver :: ByteString -> IO ()
    deliver bytes = unless (ByteString.null bytes) $ do
      step <- atomically (decide (ByteString.length bytes))
      case step of
        Send size -> do
          let (now, later) = ByteString.splitAt size bytes
          guarded (Socket.ByteString.sendAll to now)
          -- Counted after the send: so a caller that sees the count may rely on it.
          atomically (modifyTVar' flow (\state -> state {flowBytes = flowBytes state + size}))
          deliver later
        Lose -> pure ()
        End ending -> do
          endWith ending
          -- The connection's thread ends this one.
          atomically retry

    -- What to do with this many bytes. Blocks while the direction is frozen.
    decide :: Int -> STM Step
    decide available = do
      state <- readTVar flow
      check (not (flowFrozen state))
      let portion = maybe available (min available) (flowSlice state)
          limited left rest
            | left > 0 = do
              let size = min portion left
              writeTVar flow state {flowLimit = rest (left - size)}
              pure (Send size)
            | otherwise = pure Lose
      case flowLimit state of
        Unlimited -> pure (Send portion)
        DropAfter left -> limited left DropAfter
        CutAfter 0 ending -> do
          writeTVar flow state {flowLimit = Unlimited}
          pure (End ending)
        CutAfter left ending -> limited left (`CutAfter` ending)

data Step
  = Send Int
  | Lose
  | End Ending

-- Sleeps until a moment of the monotonic clock, not for a duration, so that delays do not add up.
sleepUntil :: Double -> IO ()
sleepUntil due = do
  now <- getMonotonicTime
  when (due > now) $ threadDelay (ceiling ((due - now) * 1e6))
