-- | A forwarder that records the bytes that clients send.
module Recording
  ( withRecording,
  )
where

import Control.Concurrent (forkFinally)
import Control.Concurrent.Async (concurrently_, withAsync)
import Control.Exception (bracket, finally)
import Control.Monad (forever, void)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.IORef
import Network.Socket
import Network.Socket.ByteString (recv, sendAll)

-- | Forwards from a port of its own to the given port of this machine. The action gets the new
-- port, and a way to read all bytes sent so far, connection by connection in the order in which
-- they were opened.
withRecording :: Int -> (Int -> IO [ByteString] -> IO a) -> IO a
withRecording target action =
  bracket (socket AF_INET Stream defaultProtocol) close $ \listener -> do
    setSocketOption listener ReuseAddr 1
    bind listener (SockAddrInet 0 localhost)
    listen listener 128
    port <- socketPort listener
    said <- newIORef []
    withAsync (accepting listener said) $ \_ ->
      action (fromIntegral port) (readIORef said >>= fmap reverse . traverse readIORef)
  where
    localhost = tupleToHostAddress (127, 0, 0, 1)
    accepting listener said = forever $ do
      (client, _) <- accept listener
      mine <- newIORef ByteString.empty
      atomicModifyIORef' said (\before -> (mine : before, ()))
      void (forkFinally (serve client mine) (const (close client)))
    serve client mine =
      bracket (socket AF_INET Stream defaultProtocol) close $ \server -> do
        connect server (SockAddrInet (fromIntegral target) localhost)
        concurrently_
          (pump client server (\bytes -> atomicModifyIORef' mine (\before -> (before <> bytes, ()))) `finally` shutdown server ShutdownBoth)
          (pump server client (const (pure ())) `finally` shutdown client ShutdownBoth)
    pump from to note = do
      bytes <- recv from 65536
      if ByteString.null bytes then pure () else note bytes >> sendAll to bytes >> pump from to note
