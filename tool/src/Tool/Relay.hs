-- | A TCP relay that delays every byte by a fixed time. Each connection has a thread per direction,
-- which stamps bytes with the moment at which they are due; one thread for all sends what is due,
-- as with the same delay for all one queue is enough. It loses nothing, has no congestion window,
-- and takes some tens of microseconds of processor time per round trip. A peer that stops reading
-- stops all connections once its buffers are full.
module Tool.Relay
  ( Relay,
    relayPort,
    relayConnections,
    withRelay,
  )
where

import Control.Concurrent.Async
import Control.Concurrent.STM
import Control.Exception (IOException, bracket, finally, mask_, try)
import Control.Monad (forever, unless, void)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.Map.Strict (Map)
import Data.Map.Strict qualified as Map
import Network.Socket (Socket)
import Network.Socket qualified as Socket
import Network.Socket.ByteString qualified as Socket.ByteString
import Redis.TestKit.Address (Address (..), closeSocket, connectTo, listenOn)
import Tool.Bench.Time (Nanos, monotonic, sleepUntilExactly)

-- | A relay in front of one server, on @127.0.0.1@.
data Relay = Relay
  { -- | The port to which clients connect.
    relayPort :: Int,
    relayAccepted :: TVar Int
  }

-- | The number of connections that it has accepted so far.
relayConnections :: Relay -> IO Int
relayConnections = readTVarIO . relayAccepted

-- Bytes on their way: when they are due, how many there are, and how to pass them on.
data Parcel = Parcel Nanos Int (IO ())

-- The parcels held back, and their bytes.
data Queue = Queue (TQueue Parcel) (TVar Int)

-- | Runs an action with a relay to a server, which delays each direction by this number of
-- nanoseconds. Throws 'IOException' if it cannot listen. If the server does not exist, a connection
-- is closed at once.
withRelay :: Nanos -> Address -> (Relay -> IO a) -> IO a
withRelay held target action =
  bracket (listenOn (TcpAddress "127.0.0.1" 0)) closeSocket $ \socket -> do
    port <- Socket.socketPort socket
    accepted <- newTVarIO 0
    workers <- newTVarIO Map.empty
    queue <- Queue <$> newTQueueIO <*> newTVarIO 0
    let stop = readTVarIO workers >>= mapConcurrently_ cancel . Map.elems
        relay = Relay (fromIntegral port) accepted
    withAsync (release queue) $ \_ ->
      withAsync (acceptLoop relay workers (serve held target queue) socket) $ \accepting ->
        action relay `finally` (cancel accepting >> stop)

-- Each connection has a thread that serves it, and is listed while that thread lives.
acceptLoop :: Relay -> TVar (Map Int (Async ())) -> (Socket -> IO ()) -> Socket -> IO ()
acceptLoop relay workers serving socket = forever . mask_ $ do
  (client, _) <- Socket.accept socket
  number <- atomically (stateTVar (relayAccepted relay) (\known -> (known + 1, known + 1)))
  -- The thread begins masked, so that it reaches its handlers before a 'cancel' reaches it. It
  -- waits until it is in the list, so that it cannot remove itself before.
  listed <- newTVarIO False
  worker <- asyncWithUnmask $ \unmask ->
    unmask (atomically (readTVar listed >>= check) >> serving client)
      `finally` (closeSocket client >> atomically (modifyTVar' workers (Map.delete number)))
  atomically $ do
    modifyTVar' workers (Map.insert number worker)
    writeTVar listed True

-- Serves until both sides have finished, or one of them broke.
serve :: Nanos -> Address -> Queue -> Socket -> IO ()
serve held target (Queue parcels waiting) client = do
  Socket.setSocketOption client Socket.NoDelay 1
  void . try @IOException . bracket (connectTo target) closeSocket $ \server -> do
    concurrently_ (receive server client) (receive client server)
    -- The last bytes are still on their way.
    handedOver <- newTVarIO False
    send 0 (atomically (writeTVar handedOver True))
    atomically (readTVar handedOver >>= check)
  where
    send size handOver = do
      now <- monotonic
      atomically $ do
        modifyTVar' waiting (+ size)
        writeTQueue parcels (Parcel (now + held) size handOver)
    receive to from = do
      atomically (readTVar waiting >>= check . (< 64 * 1024 * 1024))
      bytes <- Socket.ByteString.recv from 65536
      send (ByteString.length bytes) (pass to bytes)
      unless (ByteString.null bytes) (receive to from)

-- No bytes mean that the sender has finished.
pass :: Socket -> ByteString -> IO ()
pass to bytes
  | ByteString.null bytes = Socket.shutdown to Socket.ShutdownSend
  | otherwise = Socket.ByteString.sendAll to bytes

-- Passes on the bytes that are due, for ever. A connection that was closed meanwhile concerns no
-- other connection: its own threads notice.
release :: Queue -> IO ()
release (Queue parcels held) = forever $ do
  Parcel due size handOver <- atomically (readTQueue parcels)
  sleepUntilExactly due
  void (try @IOException handOver)
  atomically (modifyTVar' held (subtract size))
