-- | TLS as a 'Transport'.
--
-- OpenSSL's own library does the work, through ten functions in @cbits/redis_client_tls.c@
-- (docs/adr/0003-tls-library.md). An attempt is one unsafe foreign call that reads or writes as many TLS
-- records as it can; the thread that reads and the one that writes exclude each other for the time of an
-- attempt, and never while one of them waits.
--
-- Verification is on by default. It covers the chain of certificates and the name: the address if
-- the endpoint is an address, otherwise the host. TLS 1.2 is the oldest version spoken. There is no
-- renegotiation, so a write never has to wait for something to read.
--
-- Shutting down sends the parting message (@close_notify@) if the socket takes it at once, because a
-- server logs an end without it. It does not wait for the peer's: RESP delimits itself.
module Redis.Internal.Network.Tls
  ( TlsContext,
    newTlsContext,
    tlsTransport,

    -- * Where there should be none
    beginsLikeTls,
    wantsTls,
  )
where

import Control.Concurrent.MVar (MVar, modifyMVar_, newMVar, withMVar)
import Control.Exception (mask_, onException, throwIO, uninterruptibleMask_)
import Control.Monad (when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Maybe (fromMaybe)
import Data.Word (Word8)
import Foreign.C.String (CString, peekCString, withCString)
import Foreign.C.Types (CChar, CInt (..))
import Foreign.ForeignPtr (FinalizerPtr, ForeignPtr, newForeignPtr, withForeignPtr)
import Foreign.Marshal.Alloc (allocaBytes)
import Foreign.Marshal.Utils (fromBool)
import Foreign.Ptr (Ptr, nullPtr)
import GHC.IO.Exception (IOErrorType (ResourceVanished), IOException (..))
import Network.Socket (Socket)
import Network.Socket qualified as Socket
import Redis.Error (ConnectionCause (BrokenConnection, TlsFailed), Endpoint (..))
import Redis.Internal.Config (TlsConfig (..))
import Redis.Internal.Network.Transport

-- | The authorities, certificates and rules that all connections of a client share. Freed when nothing refers to it.
data TlsContext = TlsContext
  { contextPointer :: ForeignPtr Context,
    contextVerify :: Bool,
    contextServerName :: Maybe ByteString
  }

-- | What OpenSSL calls an @SSL_CTX@.
data Context

-- | An @SSL@ and its lock.
data TlsSession

-- | Reads the files that the configuration names. 'TlsFailed' if one of them
-- cannot be used; it says which and why, and never asks for a password.
newTlsContext :: TlsConfig -> IO (Either ConnectionCause TlsContext)
newTlsContext TlsConfig {tlsVerify, tlsServerName, tlsCaFile, tlsCertificate} =
  withPath tlsCaFile $ \authorities ->
    withPath (fst <$> tlsCertificate) $ \certificate ->
      withPath (snd <$> tlsCertificate) $ \key ->
        allocaBytes reasonSize $ \reason -> mask_ $ do
          pointer <- c_context (fromBool tlsVerify) authorities certificate key reason
          if pointer == nullPtr
            then Left . TlsFailed <$> peekCString reason
            else do
              contextPointer <- newForeignPtr c_contextFree pointer
              pure (Right TlsContext {contextPointer, contextVerify = tlsVerify, contextServerName = tlsServerName})
  where
    withPath :: Maybe FilePath -> (CString -> IO a) -> IO a
    withPath path use = maybe (use nullPtr) (`withCString` use) path
    reasonSize = 256

-- | Speaks TLS over a connected socket, which it takes over only if it returns 'Right'. Blocks until the handshake
-- is done or refused; interruptible wherever it waits for the peer.
tlsTransport :: TlsContext -> Endpoint -> Socket -> IO (Either ConnectionCause Transport)
tlsTransport context@TlsContext {contextVerify} endpoint socket =
  case verifiedName context endpoint of
    Nothing
      | contextVerify ->
        pure (Left (TlsFailed "there is no name to verify the certificate against: set the server's name"))
    name -> mask_ $ do
      plain <- socketTransport endpoint socket
      session <- newSession context socket name
      if session == nullPtr
        then pure (Left (TlsFailed ("not a valid name for TLS: " <> maybe "" show name)))
        else do
          shaken <- handshake plain session `onException` c_free session
          case shaken of
            Left cause -> Left cause <$ c_free session
            Right () -> Right . over plain session <$> newMVar True

-- | The transport over a session. The variable is 'False' once the session is freed.
over :: Transport -> Ptr TlsSession -> MVar Bool -> Transport
over plain session lives =
  plain
    { transportTryRead = \memory size ->
        c_read session memory size >>= orThrow (c_readReason session),
      transportTryWrite = \memory size ->
        c_write session memory size >>= orThrow (c_writeReason session),
      -- What can be read is whole records, so a number of bytes is no measure.
      transportGather = Nothing,
      transportShutdown = uninterruptibleMask_ $ do
        -- Bounded: held for one attempt that does not block.
        withMVar lives (`when` c_shutdown session)
        transportShutdown plain,
      transportClose = uninterruptibleMask_ $ do
        -- Bounded: frees memory and closes a descriptor.
        modifyMVar_ lives (const (False <$ c_free session))
        transportClose plain
    }

-- | The name to ask for and to verify. A scope (@%eth0@) and the final dot of an absolute name are
-- for the resolver, and no part of it.
verifiedName :: TlsContext -> Endpoint -> Maybe ByteString
verifiedName TlsContext {contextServerName} endpoint =
  case (contextServerName, endpoint) of
    (Just name, _) -> Just name
    (Nothing, TcpEndpoint host _) -> Just (withoutDot (Char8.takeWhile (/= '%') host))
    (Nothing, UnixEndpoint _) -> Nothing
  where
    withoutDot name = fromMaybe name (ByteString.stripSuffix "." name)

-- | Makes a session; 'nullPtr' if the name cannot be used.
newSession :: TlsContext -> Socket -> Maybe ByteString -> IO (Ptr TlsSession)
newSession TlsContext {contextPointer, contextVerify} socket name
  | maybe False (ByteString.elem 0) name = pure nullPtr
  | otherwise =
    withForeignPtr contextPointer $ \pointer ->
      Socket.withFdSocket socket $ \descriptor ->
        withName $ \bytes -> c_new pointer descriptor bytes (fromBool contextVerify)
  where
    withName use = maybe (use nullPtr) (`ByteString.useAsCString` use) name

-- | Makes the TLS handshake. A connection that ends meanwhile is a 'BrokenConnection', which may be tried again: a
-- server without room for another client ends it so.
handshake :: Transport -> Ptr TlsSession -> IO (Either ConnectionCause ())
handshake plain session = go
  where
    go = c_handshake session >>= next
    next answer
      | answer > 0 = pure (Right ())
      | answer == attemptWouldRead || answer == attemptWouldWrite = awaitAttempt plain answer *> go
      | answer == attemptEnd || answer == answerBroken = failed (BrokenConnection . ("while TLS was set up: " <>))
      | otherwise = failed TlsFailed
    failed cause = Left . cause <$> (c_readReason session >>= peekCString)

-- | The answer of a call when the system says that the connection is broken.
answerBroken :: Attempt
answerBroken = -4

-- | The answer of a call when the peer refuses the client's certificate.
answerRefused :: Attempt
answerRefused = -5

-- | Anything below 'attemptWouldWrite', the least of the answers, is a failure.
orThrow :: IO CString -> Attempt -> IO Attempt
orThrow reason answer
  | answer >= attemptWouldWrite = pure answer
  | answer == answerRefused = reason >>= peekCString >>= throwIO . RefusedByPeer
  | otherwise = do
    text <- reason >>= peekCString
    ioError (IOError Nothing ResourceVanished "TLS" text Nothing Nothing)

-- | Whether the first bytes from a peer are a TLS alert, which a server with TLS sends to one without.
beginsLikeTls :: ByteString -> Bool
beginsLikeTls = ByteString.isPrefixOf "\x15\x03"

-- | The cause to report for such an answer.
wantsTls :: ConnectionCause
wantsTls = TlsFailed "the server expects TLS on this port: use rediss:// or setTls"

-- Safe, because it reads files.
foreign import ccall safe "redis_client_tls_context"
  c_context :: CInt -> CString -> CString -> CString -> Ptr CChar -> IO (Ptr Context)

foreign import ccall "&redis_client_tls_context_free"
  c_contextFree :: FinalizerPtr Context

foreign import ccall unsafe "redis_client_tls_new"
  c_new :: Ptr Context -> CInt -> CString -> CInt -> IO (Ptr TlsSession)

foreign import ccall unsafe "redis_client_tls_shutdown"
  c_shutdown :: Ptr TlsSession -> IO ()

foreign import ccall unsafe "redis_client_tls_free"
  c_free :: Ptr TlsSession -> IO ()

-- Safe, because its signatures take about a millisecond, for which the capability would stand still.
foreign import ccall safe "redis_client_tls_handshake"
  c_handshake :: Ptr TlsSession -> IO Int

foreign import ccall unsafe "redis_client_tls_read"
  c_read :: Ptr TlsSession -> Ptr Word8 -> Int -> IO Int

foreign import ccall unsafe "redis_client_tls_write"
  c_write :: Ptr TlsSession -> Ptr Word8 -> Int -> IO Int

foreign import ccall unsafe "redis_client_tls_read_reason"
  c_readReason :: Ptr TlsSession -> IO CString

foreign import ccall unsafe "redis_client_tls_write_reason"
  c_writeReason :: Ptr TlsSession -> IO CString
