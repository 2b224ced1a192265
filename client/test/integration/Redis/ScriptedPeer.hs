-- | A peer that answers each command as a function says, and writes down what
-- it was told. For servers that are too old to be had.
--
-- It takes one connection at a time.
module Redis.ScriptedPeer
  ( Peer,
    withPeer,
    peerConfig,
    peerHeard,
  )
where

import Control.Concurrent.Async (withAsync)
import Control.Concurrent.STM
import Control.Exception (IOException, bracket, handle)
import Control.Monad (forM_, forever, unless)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Network.Socket (Socket)
import Network.Socket qualified as Socket
import Network.Socket.ByteString qualified as Socket.ByteString
import Redis (Config, seconds, setConnectTimeout, setMaxAttempts, setMuxCount, standaloneConfig)
import Redis.Internal.Protocol.Decode (DecodeLimits (..), decodeBytes)
import Redis.TestKit.Address (Address (TcpAddress), listenOn)
import Redis.Value (Value (..))

-- | A peer that listens.
data Peer = Peer
  { peerPort :: Socket.PortNumber,
    -- | The latest first.
    peerSaid :: TVar [[ByteString]]
  }

-- | A peer for the length of an action. Given is what it answers to a
-- command's words, as bytes.
withPeer :: ([ByteString] -> ByteString) -> (Peer -> IO a) -> IO a
withPeer answer action =
  bracket (listenOn (TcpAddress "127.0.0.1" 0)) Socket.close $ \listening -> do
    peerPort <- Socket.socketPort listening
    peerSaid <- newTVarIO []
    let accepting = forever (bracket (fst <$> Socket.accept listening) Socket.close (serve peerSaid))
    withAsync accepting (const (action Peer {peerPort, peerSaid}))
  where
    -- A client that goes away may do so in the middle of an answer.
    serve said connection = handle (\(_ :: IOException) -> pure ()) (go said connection "")

    go :: TVar [[ByteString]] -> Socket -> ByteString -> IO ()
    go said connection rest = do
      received <- Socket.ByteString.recv connection 4096
      unless (ByteString.null received) $ do
        let (commands, unfinished) = commandsIn (rest <> received)
        forM_ commands $ \command -> do
          atomically (modifyTVar' said (command :))
          Socket.ByteString.sendAll connection (answer command)
        go said connection unfinished

-- | The whole commands, and the bytes after them.
commandsIn :: ByteString -> ([[ByteString]], ByteString)
commandsIn bytes = case decodeBytes limits bytes of
  Right (Array parts, rest) ->
    let (others, unfinished) = commandsIn rest
     in ([text | BulkString text <- parts] : others, unfinished)
  -- What is not whole yet. (What is no command stays here for ever, and fails
  -- its test by its deadline.)
  _ -> ([], bytes)
  where
    limits = DecodeLimits {decodeMaxBulk = 4096, decodeMaxElements = 64, decodeMaxDepth = 2}

-- | For a client of this peer: one connection, and no second attempt.
peerConfig :: Peer -> Config
peerConfig peer =
  setMuxCount (Just 1) . setMaxAttempts 1 . setConnectTimeout (seconds 10) $
    standaloneConfig "127.0.0.1" (fromIntegral (peerPort peer))

-- | The commands so far, in order.
peerHeard :: Peer -> IO [[ByteString]]
peerHeard peer = reverse <$> readTVarIO (peerSaid peer)
