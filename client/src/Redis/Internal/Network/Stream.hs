-- | A connection after its handshake, as a stream of bytes: no reply is matched to a request, nothing
-- is retried, and nothing times out. The owner of a 'Wire' decides what is sent and reads what comes.
--
-- A 'Listener' is for messages that a server sends by itself. The thread that reads hands on the
-- values that each read completes, and reads nothing more while the recipient makes it wait. A
-- second thread sends, so a caller that sends never waits for the peer.
module Redis.Internal.Network.Stream
  ( -- * What its owner reads
    Wire (..),
    openWire,
    closeWire,
    sendBytes,
    receiveBytes,
    receiveReply,

    -- * What comes by itself
    Listener,
    newListener,
    listen,
    say,
    hangUp,
    lastHeard,
  )
where

import Control.Applicative ((<|>))
import Control.Concurrent.MVar
import Control.Concurrent.STM
import Control.Exception (displayException, finally, interruptible, mask_, onException, throwIO, try)
import Control.Monad (unless, void, when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Internal qualified as ByteString.Internal
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Data.Foldable (for_)
import Data.IORef
import Data.Maybe (fromMaybe, isJust, isNothing)
import Foreign.ForeignPtr (mallocForeignPtrBytes, withForeignPtr)
import Foreign.Marshal.Utils (copyBytes, moveBytes)
import Foreign.Ptr (castPtr, plusPtr)
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Network.Credentials (issueCredentials)
import Redis.Internal.Network.Handshake (handshakeBy)
import Redis.Internal.Network.Open (ConnectionSetup (..), Purpose (..), establish)
import Redis.Internal.Network.Runtime (Nanos, preciseNanos, spawn)
import Redis.Internal.Network.Tls (beginsLikeTls, wantsTls)
import Redis.Internal.Network.Transport
import Redis.Internal.Protocol.Decode
import Redis.Internal.Protocol.Encode (requestBytes)
import Redis.Internal.Protocol.Repeated
import Redis.Value (Value (Push))

-- | An open connection. One thread may send and another receive at the same time.
data Wire = Wire
  { wireTransport :: Transport,
    wireLimits :: Limits,
    -- | Bytes that were read behind the last reply.
    wireUnread :: IORef ByteString
  }

-- | Connects and makes the handshake for the configuration. Blocks for at most the connect timeout,
-- or until nobody wants the connection any more. A caller that must not lose the wire is masked.
openWire :: ConnectionSetup -> Purpose -> Endpoint -> IO (Either ConnectionCause Wire)
openWire setup@ConnectionSetup {setupConfig = config} purpose endpoint =
  mask_ . establish setup purpose endpoint closeWire $ \issue approach transport -> do
    wire <- Wire transport (configLimits config) <$> newIORef ByteString.empty
    agreed <- agree wire issue approach `onException` closeWire wire
    either (\unready -> Left unready <$ closeWire wire) (\() -> pure (Right wire)) agreed
  where
    agree wire issue approach = handshakeBy config (issueCredentials issue) (purposeUse purpose) approach $ \requests -> do
      -- Even if this fails there may be a reply: a server that has no room says so, and hangs up.
      _ <- try @Error (sendBytes wire (ByteString.concat (map requestBytes requests)))
      answers wire requests

    -- After a failure the remaining requests fail without waiting.
    answers wire = \case
      [] -> pure []
      asked@(_ : others) ->
        try (receiveReply wire) >>= \case
          Left problem -> pure (Left (problem :: Error) <$ asked)
          Right (Push _, _) -> answers wire asked
          Right (reply, _) -> (Right reply :) <$> answers wire others

-- | Ends the connection and frees the descriptor; nobody may use the wire any more. Never blocks.
closeWire :: Wire -> IO ()
closeWire Wire {wireTransport} = mask_ $ do
  -- With TLS this sends the parting message.
  transportShutdown wireTransport
  transportClose wireTransport

-- | Sends all the bytes. Blocks while the peer takes nothing; if that is interrupted, a part of them
-- may have been sent. Throws 'ConnectionError' if the connection breaks.
sendBytes :: Wire -> ByteString -> IO ()
sendBytes Wire {wireTransport} bytes =
  unbroken wireTransport $
    ByteString.Unsafe.unsafeUseAsCStringLen bytes $ \(start, size) -> go (castPtr start) size
  where
    go from left = unless (left == 0) $ do
      sent <- transportTryWrite wireTransport from left
      if sent >= 0
        then go (from `plusPtr` sent) (left - sent)
        else awaitAttempt wireTransport sent >> go from left

-- | Receives the bytes that have come, up to so many (at least one); empty when the peer has
-- finished. Blocks until there is something; if that is interrupted, no bytes are lost. Throws
-- 'ConnectionError' if the connection breaks.
receiveBytes :: Wire -> Int -> IO ByteString
receiveBytes Wire {wireTransport, wireUnread} wanted = mask_ $ do
  unread <- readIORef wireUnread
  if ByteString.null unread
    then unbroken wireTransport (ByteString.Internal.createAndTrim most attempt)
    else do
      let (now, later) = ByteString.splitAt most unread
      now <$ writeIORef wireUnread later
  where
    most = max 1 wanted
    attempt memory = do
      got <- transportTryRead wireTransport memory most
      if got >= 0 then pure got else awaitAttempt wireTransport got >> attempt memory

-- | Receives one reply, or one push, and its exact bytes: a 'Value' does not say whether a double
-- came as @,1e3@ or as @,1000@. \(O(n)\) in the bytes of the reply. Blocks until the reply is
-- whole; if that is interrupted, the next call receives the same reply. Throws 'ConnectionError' if
-- the connection breaks, if the peer has finished, or if the bytes are no reply or exceed a limit of
-- the configuration; then the wire cannot be used any more.
receiveReply :: Wire -> IO (Value, ByteString)
receiveReply wire = mask_ (received [] >>= go startFrames [])
  where
    -- The argument is what has come of the reply, the last part first.
    received before = do
      more <- (interruptible (pure ()) *> receiveBytes wire 16384) `onException` giveBack (ByteString.concat (reverse before))
      if ByteString.null more then broken ClosedByPeer else pure more

    giveBack bytes = modifyIORef' (wireUnread wire) (bytes <>)

    -- Takes what is decoded of the reply, the last part first, and the bytes behind it.
    go frames before bytes =
      decoded frames bytes >>= \case
        Done value next -> do
          let !exact = ByteString.concat (reverse (upTo next))
          (value, exact) <$ giveBack (ByteString.drop next bytes)
        NeedMore frames' next missing -> do
          let !before' = upTo next
              rest = ByteString.drop next bytes
          atLeast before' (missing - ByteString.length rest) [rest] >>= go frames' before'
        Malformed why -> broken (if beginsLikeTls bytes then wantsTls else ProtocolViolation why)
      where
        -- Copied, so that a part does not keep the bytes behind it alive.
        upTo next
          | next == 0 = before
          | otherwise = (: before) $! ByteString.copy (ByteString.take next bytes)

    -- Receives so many bytes (at least one) and puts them behind these parts, the last of which
    -- comes first. A long string comes in many reads, and is copied once.
    atLeast :: [ByteString] -> Int -> [ByteString] -> IO ByteString
    atLeast before wanted parts = do
      more <- received (parts <> before)
      let left = wanted - ByteString.length more
      if left > 0
        then atLeast before left (more : parts)
        else pure (ByteString.concat (reverse (more : parts)))

    decoded frames bytes =
      ByteString.Unsafe.unsafeUseAsCStringLen bytes $ \(start, size) ->
        decode (wireLimits wire) (castPtr start) 0 size frames

    broken = throwBroken (wireTransport wire)

-- | Throws the library's error in place of the system's.
unbroken :: Transport -> IO a -> IO a
unbroken transport action = attempted action >>= either (throwBroken transport) pure

-- Nobody knows how much of what was sent has arrived, and which of the commands have run.
throwBroken :: Transport -> ConnectionCause -> IO a
throwBroken transport = throwIO . ConnectionError . ConnectionFailure "" MaybeExecuted (transportEndpoint transport)

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
newListener wire =
  Listener wire <$> newTVarIO [] <*> newTVarIO Nothing <*> newMVar True <*> (preciseNanos >>= newIORef) <*> newIORef False

-- | Queues bytes to be sent. Never blocks.
say :: Listener -> ByteString -> IO ()
say listener bytes = atomically (modifyTVar' (listenerUnsent listener) (bytes :))

-- | Ends the connection, for this cause. Any thread may call it, at any time and again. Never blocks.
hangUp :: Listener -> ConnectionCause -> IO ()
hangUp listener cause = do
  first <- atomically (stateTVar (listenerEnd listener) (\known -> (isNothing known, known <|> Just cause)))
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
  cause <- either causeOf id <$> try (reading listener handOn)
  hangUp listener cause
  -- The sending thread must have ended before the descriptor is freed.
  takeMVar silent
  modifyMVar_ (listenerOpen listener) (\_ -> False <$ transportClose transport)
  fromMaybe cause <$> readTVarIO (listenerEnd listener)
  where
    transport = wireTransport (listenerWire listener)
    causeOf problem = fromMaybe (BrokenConnection (displayException problem)) (causeOfFailure problem)

-- | Sends the queued bytes until the connection ends.
speak :: Listener -> IO ()
speak listener = do
  next <- atomically $ do
    ended <- isJust <$> readTVar (listenerEnd listener)
    unsent <- readTVar (listenerUnsent listener)
    check (ended || not (null unsent))
    if ended then pure Nothing else Just (ByteString.concat (reverse unsent)) <$ writeTVar (listenerUnsent listener) []
  for_ next $ \bytes ->
    try (sendBytes (listenerWire listener) bytes) >>= \case
      Right () -> speak listener
      Left problem -> hangUp listener $ case problem of
        ConnectionError ConnectionFailure {connectionCause} -> connectionCause
        other -> BrokenConnection (show other)

reading :: Listener -> ([Came] -> IO ()) -> IO ConnectionCause
reading listener handOn = do
  unread <- readIORef (wireUnread wire)
  -- Bytes that are not decoded yet begin at the start of the buffer.
  let capacity = max (64 * 1024) (2 * ByteString.length unread)
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
      if count >= 0 then pure count else awaitAttempt transport count *> receive memory filled room
