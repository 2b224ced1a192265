-- | A connection after its handshake, as a stream of bytes. Its owner decides what is sent and
-- reads what comes: no reply is matched to a request, nothing is retried, and nothing times out.
module Redis.Internal.Network.Wire
  ( Wire (..),
    openWire,
    closeWire,
    sendBytes,
    receiveBytes,
    receiveReply,
  )
where

import Control.Exception (IOException, handle, interruptible, mask_, onException, throwIO, try)
import Control.Monad (unless)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Internal qualified as ByteString.Internal
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Data.IORef
import Foreign.Ptr (castPtr, plusPtr)
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Network.Connect (Opening (..), connectWith, openWithin)
import Redis.Internal.Network.Credentials (issueCredentials)
import Redis.Internal.Network.Handshake (Unready (Refused), handshakeBy)
import Redis.Internal.Network.OpenConnection (ConnectionSetup (..), Purpose (..), decodeLimitsOf, greeted)
import Redis.Internal.Network.Tls (beginsLikeTls, wantsTls)
import Redis.Internal.Network.Transport
import Redis.Internal.Protocol.Decode (DecodeLimits)
import Redis.Internal.Protocol.Encode (requestBytes)
import Redis.Internal.Protocol.Exact
import Redis.Value (Value (Push))
import System.IO.Error (ioeGetErrorString)

-- | An open connection. One thread may send and another receive at the same time.
data Wire = Wire
  { wireTransport :: Transport,
    wireLimits :: DecodeLimits,
    -- | Bytes that were read behind the last reply.
    wireUnread :: IORef ByteString
  }

-- | Connects and makes the handshake for the configuration. Blocks for at most the connect timeout,
-- or until nobody wants the connection any more. A caller that must not lose the wire is masked.
openWire :: ConnectionSetup -> Purpose -> Endpoint -> IO (Either ConnectionCause Wire)
openWire setup@ConnectionSetup {setupConfig = config, setupConnector = connector} Purpose {purposeUse, purposeGone} endpoint =
  mask_ $ openWithin opening attempt
  where
    opening =
      Opening
        { openingConnector = connector,
          openingEndpoint = endpoint,
          openingLimit = configConnectTimeout config,
          openingGone = purposeGone,
          openingDispose = closeWire
        }

    attempt stage = greeted setup endpoint (connectAs stage)

    connectAs stage issue approach =
      connectWith stage connector endpoint >>= \case
        Left cause -> pure (Left (Refused cause))
        Right transport -> do
          wire <- Wire transport (decodeLimitsOf (configLimits config)) <$> newIORef ByteString.empty
          agreed <- agree wire issue approach `onException` closeWire wire
          case agreed of
            Left unready -> Left unready <$ closeWire wire
            Right () -> pure (Right wire)

    agree wire issue approach = handshakeBy config (issueCredentials issue) purposeUse approach $ \requests -> do
      -- Even if this fails there may be a reply: a server that has no room says so before it hangs
      -- up.
      _ <- try @Error (sendBytes wire (ByteString.concat (map requestBytes requests)))
      answers wire requests

    -- After a failure the remaining requests fail without waiting.
    answers wire = \case
      [] -> pure []
      asked@(_ : others) ->
        try (answer wire) >>= \case
          Left problem -> pure (Left (problem :: Error) <$ asked)
          Right reply -> (Right reply :) <$> answers wire others

    answer wire =
      receiveReply wire >>= \case
        (Push _, _) -> answer wire
        (reply, _) -> pure reply

-- | Ends the connection and frees the descriptor; nobody may use the wire any more. Never waits for
-- the peer.
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
receiveReply wire = mask_ (received [] >>= go startExact)
  where
    -- The argument is what has come of the reply, the last part first.
    received before = do
      more <- (interruptible (pure ()) *> receiveBytes wire 16384) `onException` giveBack (ByteString.concat (reverse before))
      if ByteString.null more then broken ClosedByPeer else pure more

    giveBack bytes = modifyIORef' (wireUnread wire) (bytes <>)

    go begun bytes =
      step begun bytes >>= \case
        ExactDone value frame next -> (value, frame) <$ giveBack (ByteString.drop next bytes)
        ExactMore begun' next missing -> do
          let rest = ByteString.drop next bytes
          atLeast begun' (missing - ByteString.length rest) [rest] >>= go begun'
        ExactMalformed why -> broken (if beginsLikeTls bytes then wantsTls else ProtocolViolation why)

    -- Receives so many bytes (at least one) and puts them behind these parts, the last of which
    -- comes first. A long string comes in many reads, and is copied once.
    atLeast :: Exact -> Int -> [ByteString] -> IO ByteString
    atLeast begun wanted parts = do
      more <- received (parts <> exactSoFar begun)
      let left = wanted - ByteString.length more
      if left > 0
        then atLeast begun left (more : parts)
        else pure (ByteString.concat (reverse (more : parts)))

    step begun bytes =
      ByteString.Unsafe.unsafeUseAsCStringLen bytes $ \(start, size) ->
        decodeExact (wireLimits wire) (castPtr start) 0 size begun

    -- Nobody knows which of the commands that were sent before have run.
    broken = throwIO . ConnectionError . ConnectionFailure "" MaybeExecuted (transportEndpoint (wireTransport wire))

awaitAttempt :: Transport -> Attempt -> IO ()
awaitAttempt transport attempt
  | attempt == attemptWouldWrite = transportWaitWritable transport
  | otherwise = transportWaitReadable transport

-- | Throws the library's error in place of the system's. Nobody knows how much of what was sent has
-- arrived.
unbroken :: Transport -> IO a -> IO a
unbroken transport = handle $ \problem ->
  throwIO (ConnectionError (ConnectionFailure "" MaybeExecuted (transportEndpoint transport) (BrokenConnection (ioeGetErrorString (problem :: IOException)))))
