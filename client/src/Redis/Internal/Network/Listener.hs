{-# LANGUAGE MultiWayIf #-}

-- | A connection for messages that a server sends by itself. The thread that reads hands on the
-- values that each read completes, and reads nothing more while the recipient makes it wait. A
-- second thread sends, so a caller that sends never waits for the peer.
module Redis.Internal.Network.Listener
  ( Listener,
    newListener,
    listen,
    say,
    hangUp,
    lastHeard,
  )
where

import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception (SomeException, displayException, finally, fromException, try)
import Control.Monad (unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Data.IORef
import Data.Maybe (fromMaybe)
import Foreign.ForeignPtr (mallocForeignPtrBytes, withForeignPtr)
import Foreign.Marshal.Utils (copyBytes, moveBytes)
import Foreign.Ptr (castPtr, plusPtr)
import Redis.Error
import Redis.Internal.Network.Clock (Nanos, preciseNanos)
import Redis.Internal.Network.Transport
import Redis.Internal.Network.Wire
import Redis.Internal.Network.Worker (spawn)
import Redis.Internal.Protocol.Decode
import Redis.Internal.Protocol.Repeated
import System.IO.Error (ioeGetErrorString)

-- | A connection, and the bytes to be sent on it.
data Listener = Listener
  { listenerWire :: Wire,
    -- | The bytes to be sent, the last first.
    listenerUnsent :: TVar [ByteString],
    -- | The cause of the end. The first cause counts.
    listenerEnd :: TVar (Maybe ConnectionCause),
    -- | Held while the transport is shut down or closed; 'False' once it is closed.
    listenerOpen :: MVar Bool,
    listenerHeard :: IORef Nanos,
    -- | Whether the reading thread is handing on values.
    listenerHanding :: IORef Bool
  }

-- | A listener that takes over the wire; 'listen' closes it.
newListener :: Wire -> IO Listener
newListener listenerWire = do
  listenerUnsent <- newTVarIO []
  listenerEnd <- newTVarIO Nothing
  listenerOpen <- newMVar True
  listenerHeard <- preciseNanos >>= newIORef
  listenerHanding <- newIORef False
  pure Listener {listenerWire, listenerUnsent, listenerEnd, listenerOpen, listenerHeard, listenerHanding}

-- | Queues bytes to be sent. Never blocks.
say :: Listener -> ByteString -> IO ()
say listener bytes = atomically (modifyTVar' (listenerUnsent listener) (bytes :))

-- | Ends the connection, for this cause. Any thread may call it, at any time and any number of
-- times. Never waits for the peer.
hangUp :: Listener -> ConnectionCause -> IO ()
hangUp listener cause = do
  first <- atomically $ do
    known <- readTVar (listenerEnd listener)
    case known of
      Nothing -> True <$ writeTVar (listenerEnd listener) (Just cause)
      Just _ -> pure False
  when first . withMVar (listenerOpen listener) $ \open ->
    when open (transportShutdown (wireTransport (listenerWire listener)))

-- | The time at which bytes came last; the present time while they are still being handed on.
lastHeard :: Listener -> IO Nanos
lastHeard listener = do
  handing <- readIORef (listenerHanding listener)
  if handing then preciseNanos else readIORef (listenerHeard listener)

-- | Reads until the connection ends, and hands on the values that each read completes. Then closes
-- the connection and returns the cause of its end. The calling thread should be masked.
listen :: Listener -> ([Came] -> IO ()) -> IO ConnectionCause
listen listener handOn = do
  silent <- newEmptyMVar
  void . spawn ("redis speak " <> renderEndpoint (transportEndpoint transport)) $ speak listener `finally` putMVar silent ()
  -- Whatever is thrown, the descriptor must be freed.
  cause <- either broken id <$> try (reading listener handOn)
  hangUp listener cause
  -- The sending thread must have ended before the descriptor is freed.
  takeMVar silent
  modifyMVar_ (listenerOpen listener) (\_ -> False <$ transportClose transport)
  fromMaybe cause <$> readTVarIO (listenerEnd listener)
  where
    transport = wireTransport (listenerWire listener)

broken :: SomeException -> ConnectionCause
broken problem = BrokenConnection (maybe (displayException problem) ioeGetErrorString (fromException problem))

-- | Sends the queued bytes until the connection ends.
speak :: Listener -> IO ()
speak listener = do
  next <- atomically $ do
    ended <- readTVar (listenerEnd listener)
    unsent <- readTVar (listenerUnsent listener)
    case (ended, unsent) of
      (Just _, _) -> pure Nothing
      (Nothing, []) -> retry
      (Nothing, _) -> Just (ByteString.concat (reverse unsent)) <$ writeTVar (listenerUnsent listener) []
  case next of
    Nothing -> pure ()
    Just bytes ->
      try (sendBytes (listenerWire listener) bytes) >>= \case
        Right () -> speak listener
        Left problem -> hangUp listener $ case problem of
          ConnectionError ConnectionFailure {connectionCause} -> connectionCause
          other -> BrokenConnection (show other)

-- | The least size of the receive buffer. Bytes that are not decoded yet begin at its start.
leastCapacity :: Int
leastCapacity = 64 * 1024

reading :: Listener -> ([Came] -> IO ()) -> IO ConnectionCause
reading listener handOn = do
  unread <- readIORef (wireUnread wire)
  let capacity = max leastCapacity (2 * ByteString.length unread)
  memory <- mallocForeignPtrBytes capacity
  withForeignPtr memory $ \to ->
    ByteString.Unsafe.unsafeUseAsCStringLen unread $ \(from, count) -> copyBytes to (castPtr from) count
  let decoded filled frames = do
        (came, step) <- withForeignPtr memory $ \base -> decodeRun (wireLimits wire) base 0 filled frames
        unless (null came) (handingOn (reverse came))
        case step of
          Malformed why -> pure (ProtocolViolation why)
          NeedMore frames' next _ -> do
            let left = filled - next
            -- There is always room behind them: the decoder takes long strings out.
            unless (next == 0 || left == 0) . withForeignPtr memory $ \base -> moveBytes base (base `plusPtr` next) left
            more left frames'
          Done _ _ -> pure (ProtocolViolation "a reply that ends the reading")

      more filled frames =
        receive memory filled (capacity - filled) >>= \case
          0 -> pure ClosedByPeer
          count -> do
            preciseNanos >>= writeIORef (listenerHeard listener)
            decoded (filled + count) frames
  decoded (ByteString.length unread) startFrames
  where
    wire = listenerWire listener
    transport = wireTransport wire

    handingOn values = do
      writeIORef (listenerHanding listener) True
      handOn values
      preciseNanos >>= writeIORef (listenerHeard listener)
      writeIORef (listenerHanding listener) False

    receive memory filled room = do
      count <- withForeignPtr memory $ \base -> transportTryRead transport (base `plusPtr` filled) room
      if
          | count >= 0 -> pure count
          | count == attemptWouldWrite -> transportWaitWritable transport *> receive memory filled room
          | otherwise -> transportWaitReadable transport *> receive memory filled room
