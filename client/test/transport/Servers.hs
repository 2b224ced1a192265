-- | Sockets for tests to connect to, and helpers about this process.
module Servers
  ( withEcho,
    withListener,
    withDeadListener,
    closedPort,
    openDescriptors,
    within,
    eventually,
    sendAll,
    receive,
  )
where

import Control.Concurrent (forkFinally, forkIO, killThread, threadDelay, yield)
import Control.Exception (bracket)
import Control.Monad (forever, unless, void)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Internal qualified as ByteString (createAndTrim)
import Data.ByteString.Unsafe qualified as ByteString
import Foreign.Ptr (castPtr)
import Network.Socket (SockAddr, Socket)
import Network.Socket qualified as Socket
import Network.Socket.ByteString qualified as Socket
import Redis.Internal.Network.Transport
import Redis.TestKit.Wait (openDescriptors, within)
import System.Timeout (timeout)

-- | Waits until a condition holds. A 'within' around it limits the wait.
eventually :: IO Bool -> IO ()
eventually condition = do
  holds <- condition
  unless holds (yield *> threadDelay 1000 *> eventually condition)

-- | Opens a listener at an address, and passes it on with its actual address.
withListener :: Int -> SockAddr -> (Socket -> SockAddr -> IO a) -> IO a
withListener backlog address use =
  bracket (Socket.socket (family address) Socket.Stream Socket.defaultProtocol) Socket.close $ \listener -> do
    Socket.bind listener address
    Socket.listen listener backlog
    Socket.getSocketName listener >>= use listener
  where
    family = \case
      Socket.SockAddrInet {} -> Socket.AF_INET
      Socket.SockAddrInet6 {} -> Socket.AF_INET6
      Socket.SockAddrUnix {} -> Socket.AF_UNIX

-- | Sends back the bytes that it receives, on any number of connections.
withEcho :: SockAddr -> (SockAddr -> IO a) -> IO a
withEcho address use =
  withListener 16 address $ \listener bound ->
    bracket (forkIO (accepting listener)) killThread (const (use bound))
  where
    accepting listener = forever $ do
      (connection, _) <- Socket.accept listener
      void (forkFinally (echo connection) (const (Socket.close connection)))
    echo connection = do
      bytes <- Socket.recv connection 65536
      unless (ByteString.null bytes) (Socket.sendAll connection bytes *> echo connection)

-- | A listener whose queue is full and never emptied, so that a connection attempt neither succeeds
-- nor fails.
withDeadListener :: SockAddr -> (SockAddr -> IO a) -> IO a
withDeadListener address use =
  withListener 0 address $ \_ bound ->
    bracket (fill bound (4 :: Int)) (mapM_ Socket.close) (const (use bound))
  where
    fill _ 0 = pure []
    fill bound left = do
      socket <- Socket.socket Socket.AF_INET Socket.Stream Socket.defaultProtocol
      done <- timeout 100000 (Socket.connect socket bound)
      case done of
        Just () -> (socket :) <$> fill bound (left - 1)
        Nothing -> pure [socket]

-- | An address of this machine on which no program listens.
closedPort :: SockAddr -> IO SockAddr
closedPort address = withListener 1 address (\_ bound -> pure bound)

-- | Writes all bytes, and waits if necessary.
sendAll :: Transport -> ByteString -> IO ()
sendAll transport bytes =
  ByteString.unsafeUseAsCStringLen bytes $ \(memory, size) -> go (castPtr memory) size
  where
    go _ 0 = pure ()
    go memory size = do
      attempt <- transportTryWrite transport memory size
      case attempt of
        _
          | attempt == attemptWouldRead -> transportWaitReadable transport *> go memory size
          | attempt == attemptWouldWrite -> transportWaitWritable transport *> go memory size
          | otherwise -> sendAll transport (ByteString.drop (ByteString.length bytes - size + attempt) bytes)

-- | Waits for the first byte, and then reads the bytes that are there, at most 64 KiB. Empty at the
-- end.
receive :: Transport -> IO ByteString
receive transport = ByteString.createAndTrim 65536 go
  where
    go memory = do
      attempt <- transportTryRead transport memory 65536
      case attempt of
        _
          | attempt == attemptWouldRead -> transportWaitReadable transport *> go memory
          | attempt == attemptWouldWrite -> transportWaitWritable transport *> go memory
          | otherwise -> pure attempt
