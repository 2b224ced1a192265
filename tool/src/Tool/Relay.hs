-- | A round trip, where the kernel cannot give one: a TCP relay that holds every
-- byte back for a fixed time.
--
-- Each connection has a thread per direction that receives and stamps what it
-- got with the moment it is due. What is due leaves by one thread for all
-- connections, because a delay that is the same for all keeps them in one order:
-- a single queue does, and a single sleeper, which is exact to tens of
-- microseconds ("Tool.Bench.Sleep"). So the delay is one of time and not of
-- throughput: however much is on its way, every byte leaves when it is due.
--
-- What it is not: a network. It loses nothing, reorders nothing, has no
-- congestion window and no limit of bandwidth, acknowledges on the spot, and
-- takes processor time of its own, some tens of microseconds per round trip. A
-- peer that stops reading stops everybody once its buffers are full. Numbers
-- taken through it are labelled so.
module Tool.Relay
  ( Relay,
    relayPort,
    relayConnections,
    withRelay,
  )
where

import Control.Concurrent.Async
  ( Async,
    asyncWithUnmask,
    cancel,
    concurrently_,
    mapConcurrently_,
    withAsync,
  )
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
    writeTQueue,
    writeTVar,
  )
import Control.Exception (IOException, bracket, finally, mask_, try)
import Control.Monad (forever, unless, void)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Network.Socket (Socket)
import Network.Socket qualified as Socket
import Network.Socket.ByteString qualified as Socket.ByteString
import Redis.TestKit.Address (Address (..), connectTo, listenOn)
import Tool.Bench.Cpu (Nanos, monotonic)
import Tool.Bench.Sleep (sleepUntilExactly)

-- | A relay in front of one server, on @127.0.0.1@.
data Relay = Relay
  { -- | Where clients connect.
    relayPort :: Int,
    relayAccepted :: TVar Int
  }

-- | How many connections it has accepted so far.
relayConnections :: Relay -> IO Int
relayConnections = readTVarIO . relayAccepted

-- What is on its way: when it is due, how many bytes it holds, and how to hand
-- it over.
data Parcel = Parcel Nanos Int (IO ())

-- What is held back, and how many bytes that is.
data Queue = Queue (TQueue Parcel) (TVar Int)

-- | A relay to a server for the length of an action, which delays each direction
-- by so many nanoseconds. Throws 'IOException' when it cannot listen. A
-- connection to a server that is not there is closed at once.
withRelay :: Nanos -> Address -> (Relay -> IO a) -> IO a
withRelay held target action =
  bracket (listenOn (TcpAddress "127.0.0.1" 0)) Socket.close $ \socket -> do
    port <- Socket.socketPort socket
    accepted <- newTVarIO 0
    workers <- newTVarIO Map.empty
    queue <- Queue <$> newTQueueIO <*> newTVarIO 0
    let stop = readTVarIO workers >>= mapConcurrently_ cancel . Map.elems
        relay = Relay {relayPort = fromIntegral port, relayAccepted = accepted}
    withAsync (release queue) $ \_ ->
      withAsync (acceptLoop relay workers (serve held target queue) socket) $ \accepting ->
        action relay `finally` (cancel accepting >> stop)

-- Each connection has a thread that serves it, and is listed while it lives.
acceptLoop :: Relay -> TVar (Map Int (Async ())) -> (Socket -> IO ()) -> Socket -> IO ()
acceptLoop relay workers serving socket = forever . mask_ $ do
  (client, _) <- Socket.accept socket
  number <- atomically $ do
    modifyTVar' (relayAccepted relay) (+ 1)
    readTVar (relayAccepted relay)
  -- Begins masked, and so reaches its handlers before a 'cancel' does. Entered
  -- in the list before it can take itself off it.
  listed <- newTVarIO False
  worker <- asyncWithUnmask $ \unmask ->
    unmask (atomically (readTVar listed >>= check) >> serving client)
      `finally` (Socket.close client >> atomically (modifyTVar' workers (Map.delete number)))
  atomically $ do
    modifyTVar' workers (Map.insert number worker)
    writeTVar listed True

-- Until both sides have finished, or one of them broke.
serve :: Nanos -> Address -> Queue -> Socket -> IO ()
serve held target queue client = do
  Socket.setSocketOption client Socket.NoDelay 1
  void . try @IOException . bracket (connectTo target) Socket.close $ \server -> do
    concurrently_ (receive server client) (receive client server)
    -- What was said last is still on its way.
    handedOver <- newTVarIO False
    send 0 (atomically (writeTVar handedOver True))
    atomically (readTVar handedOver >>= check)
  where
    send size handOver = do
      now <- monotonic
      atomically (post queue (Parcel (now + held) size handOver))
    receive to from = do
      atomically (hasRoom queue)
      bytes <- Socket.ByteString.recv from 65536
      send (ByteString.length bytes) (pass to bytes)
      unless (ByteString.null bytes) (receive to from)

-- No bytes: the sender has finished.
pass :: Socket -> ByteString -> IO ()
pass to bytes
  | ByteString.null bytes = Socket.shutdown to Socket.ShutdownSend
  | otherwise = Socket.ByteString.sendAll to bytes

hasRoom :: Queue -> STM ()
hasRoom (Queue _ size) = readTVar size >>= check . (< 64 * 1024 * 1024)

post :: Queue -> Parcel -> STM ()
post (Queue parcels held) parcel@(Parcel _ size _) = do
  modifyTVar' held (+ size)
  writeTQueue parcels parcel

-- Hands over what is due, for ever. One whose connection is closed meanwhile
-- concerns nobody else: its own threads notice.
release :: Queue -> IO ()
release (Queue parcels held) = forever $ do
  Parcel due size handOver <- atomically (readTQueue parcels)
  sleepUntilExactly due
  void (try @IOException handOver)
  atomically (modifyTVar' held (subtract size))
