-- | A byte stream to one server, as a record of actions: TCP, Unix sockets, TLS and test doubles. The
-- attempts never block; waiting is separate. So one thread of a connection can poll for a while, another
-- can send on behalf of its caller, and both can fall back to waiting when the kernel says so.
--
-- Contract: at most one thread reads and at most one thread writes at a time; the two may be different
-- threads. 'transportShutdown' may be called from any thread at any time and wakes both. 'transportClose'
-- must be called exactly once, after no thread uses the transport any more: a descriptor number that is
-- used again while somebody still reads from it would hand one connection's bytes to another.
--
-- Wait only after an attempt that said what to wait for: TLS may hold bytes that it has already taken from
-- the socket, and then the socket is not readable though an attempt would succeed.
--
-- The attempts of 'socketTransport' are unsafe foreign calls, which return at once; a safe call would cost
-- several times the system call's own bookkeeping. The runtime's IO manager does the waiting. The
-- descriptor's number is read once. Only 'transportShutdown' may come after the close, so it alone goes
-- through a lock.
module Redis.Internal.Network.Transport
  ( Transport (..),
    Attempt,
    attemptEnd,
    attemptWouldRead,
    attemptWouldWrite,
    awaitAttempt,
    RefusedByPeer (..),
    attempted,
    causeOfFailure,

    -- * Sockets
    socketTransport,
    tuneTcp,
  )
where

import Control.Concurrent (killThread, threadWaitRead, threadWaitWrite)
import Control.Concurrent.MVar (modifyMVar_, newMVar, withMVar)
import Control.Exception (Exception, IOException, SomeException, fromException, mask_, try, tryJust, uninterruptibleMask_)
import Control.Monad (void, when)
import Data.Word (Word8)
import Foreign.C.Error (throwErrno)
import Foreign.C.Types (CInt (..))
import Foreign.Ptr (Ptr)
import GHC.Event (Lifetime (OneShot), evtRead, getSystemEventManager, registerFd, unregisterFd_)
import Network.Socket (Socket)
import Network.Socket qualified as Socket
import Redis.Error (ConnectionCause (BrokenConnection, TlsFailed), Endpoint)
import Redis.Internal.Config (Config (..))
import Redis.Internal.Network.Runtime (spawn)
import System.Posix.Types (Fd (Fd))

-- | The result of an attempt to read or write: the number of bytes if it is positive, otherwise one of the three
-- below. An 'Int', because a sum type would be allocated for every system call.
type Attempt = Int

-- | Reading: the peer has finished. Writing: never.
attemptEnd :: Attempt
attemptEnd = 0

-- | Nothing can be done until the socket is readable.
attemptWouldRead :: Attempt
attemptWouldRead = -1

-- | Nothing can be done until the socket is writable.
attemptWouldWrite :: Attempt
attemptWouldWrite = -2

-- | Blocks until the attempt that had this result can be made again, or the socket is shut down.
awaitAttempt :: Transport -> Attempt -> IO ()
awaitAttempt transport attempt
  | attempt == attemptWouldWrite = transportWaitWritable transport
  | otherwise = transportWaitReadable transport

-- | Thrown by an attempt if the peer has said that it refuses this client, with its reason.
newtype RefusedByPeer = RefusedByPeer String
  deriving stock (Show)

instance Exception RefusedByPeer

-- | Makes an attempt, and says why the connection has ended if it threw.
attempted :: IO a -> IO (Either ConnectionCause a)
attempted = tryJust causeOfFailure
{-# INLINE attempted #-}

-- | Why a connection has ended of which an attempt threw this, if that is the cause.
causeOfFailure :: SomeException -> Maybe ConnectionCause
causeOfFailure failure
  | Just (RefusedByPeer why) <- fromException failure = Just (TlsFailed why)
  | Just broken <- fromException failure = Just (BrokenConnection (show (broken :: IOException)))
  | otherwise = Nothing

-- | One connected byte stream.
data Transport = Transport
  { -- | The endpoint at the other end.
    transportEndpoint :: Endpoint,
    -- | Reads at most so many bytes (at least one) to the memory. Throws @IOException@ when the
    -- connection is broken, or 'RefusedByPeer'.
    transportTryRead :: Ptr Word8 -> Int -> IO Attempt,
    -- | Writes at most so many bytes (at least one) from the memory. After 'attemptWouldRead' or
    -- 'attemptWouldWrite' the next call must pass the same memory and size again (TLS demands it). Throws
    -- like 'transportTryRead'.
    transportTryWrite :: Ptr Word8 -> Int -> IO Attempt,
    -- | Blocks until the socket is readable, or shut down.
    transportWaitReadable :: IO (),
    -- | Blocks until the socket is writable, or shut down.
    transportWaitWritable :: IO (),
    -- | Runs an action, which must not block and not throw, once the socket is readable, or shut down; at
    -- once if it is already. Returns an action that withdraws the request, and does nothing once the first has run.
    transportWatchReadable :: IO () -> IO (IO ()),
    -- | Whether the peer is known to have ended the connection, whatever can still be read. Called by the
    -- thread that may write; never blocks, never throws.
    transportHungUp :: IO Bool,
    -- | Waits until so many bytes can be read, for at most so many microseconds. Blocks the capability,
    -- not only the thread. 'Nothing' where bytes are no measure of what can be read.
    transportGather :: Maybe (Int -> Int -> IO ()),
    -- | Ends both directions at once and wakes every thread that waits. Idempotent, never blocks or throws.
    transportShutdown :: IO (),
    -- | Frees the descriptor.
    transportClose :: IO ()
  }

-- | The transport of a connected, non-blocking stream socket, which it takes over. \(O(1)\), never blocks.
socketTransport :: Endpoint -> Socket -> IO Transport
socketTransport endpoint socket = do
  descriptor <- Socket.unsafeFdSocket socket
  open <- newMVar True
  let fd = Fd descriptor
  pure
    Transport
      { transportEndpoint = endpoint,
        transportTryRead = \memory size -> c_recv descriptor memory size >>= orThrow "recv",
        transportTryWrite = \memory size -> c_send descriptor memory size >>= orThrow "send",
        transportWaitReadable = threadWaitRead fd,
        transportWaitWritable = threadWaitWrite fd,
        transportWatchReadable = watchReadable fd,
        transportHungUp = (/= 0) <$> c_hungUp descriptor,
        transportGather = Just (c_gather descriptor),
        -- Neither may be interrupted half-way: a shutdown that does not happen leaves its reader asleep, a
        -- close that does not happen leaks a descriptor. Each holds the lock for one system call that does
        -- not wait. The variable is 'False' once the descriptor is closed, and its number may be another's.
        transportShutdown = uninterruptibleMask_ (withMVar open (`when` c_shutdown descriptor)),
        transportClose = uninterruptibleMask_ (modifyMVar_ open (\_ -> False <$ Socket.close' socket))
      }

-- | Runs an action once the socket is readable. Not by 'Control.Concurrent.threadWaitReadSTM': what a
-- blocked transaction leaves behind costs each collection time (docs/guide/tuning.md). There is no manager
-- in a runtime without @-threaded@; there a thread waits, to which only the thread that withdraws throws.
watchReadable :: Fd -> IO () -> IO (IO ())
watchReadable fd action =
  getSystemEventManager >>= \case
    Just manager -> mask_ $ do
      key <- registerFd manager (\_ _ -> action) fd evtRead OneShot
      pure (void (unregisterFd_ manager key))
    Nothing -> do
      waiting <- spawn "redis watch" $ do
        void (try (threadWaitRead fd) :: IO (Either IOException ()))
        action
      pure (killThread waiting)

-- | Anything below 'attemptWouldWrite', the least of the answers, is a failure (@errno@).
orThrow :: String -> Attempt -> IO Attempt
orThrow call answer
  | answer >= attemptWouldWrite = pure answer
  | otherwise = throwErrno call

-- | Applies TCP_NODELAY and the configuration's options to a TCP socket. A peer that is probed has as many
-- seconds to answer as the connection was idle. An option that the system does not know, or refuses, stays
-- as it was. Never blocks, never throws.
tuneTcp :: Config -> Socket -> IO ()
tuneTcp Config {configKeepAlive, configTcpUserTimeout} socket =
  Socket.withFdSocket socket $ \descriptor ->
    c_tune descriptor (maybe 0 (clamp . toInteger) configKeepAlive) (maybe 0 millis configTcpUserTimeout)
  where
    clamp = fromInteger . max 0 . min 2000000000
    -- 0 would mean "not wanted", which is not what a tiny timeout asks for.
    millis = max 1 . clamp . ceiling . min 2e9 . (* 1000)

foreign import ccall unsafe "redis_client_recv"
  c_recv :: CInt -> Ptr Word8 -> Int -> IO Int

foreign import ccall unsafe "redis_client_send"
  c_send :: CInt -> Ptr Word8 -> Int -> IO Int

foreign import ccall unsafe "redis_client_hung_up"
  c_hungUp :: CInt -> IO CInt

-- Unsafe though it waits: a safe call would cost the wake-ups that it is there to save.
foreign import ccall unsafe "redis_client_gather"
  c_gather :: CInt -> Int -> Int -> IO ()

foreign import ccall unsafe "redis_client_shutdown"
  c_shutdown :: CInt -> IO ()

foreign import ccall unsafe "redis_client_tune_tcp"
  c_tune :: CInt -> CInt -> CInt -> IO ()
