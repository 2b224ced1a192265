-- | A peer that answers each command by a function and records the commands it gets. It stands for
-- servers that are too old to be available.
module Redis.ScriptedPeer
  ( Peer,
    withPeer,
    withClosingPeer,
    withPeerBy,
    peerConfig,
    peerHeard,
  )
where

import Control.Concurrent.STM
import Data.ByteString (ByteString)
import Redis (Config, seconds, setConnectTimeout, setMaxAttempts, setMuxCount, standaloneConfig)
import Redis.TestKit.Listener

-- | A peer that listens.
data Peer = Peer
  { peerListener :: Listener,
    -- | The commands received, the latest first.
    peerSaid :: TVar [[ByteString]]
  }

-- | Runs a peer while the action runs. The function gives the peer's answer to a command's words,
-- as bytes.
withPeer :: ([ByteString] -> ByteString) -> (Peer -> IO a) -> IO a
withPeer answer = withClosingPeer (Just . answer)

-- | Like 'withPeer'; with 'Nothing' the peer closes the connection without an answer.
withClosingPeer :: ([ByteString] -> Maybe ByteString) -> (Peer -> IO a) -> IO a
withClosingPeer answer = withPeerBy (pure . answer)

-- | Like 'withClosingPeer', for a peer that remembers.
withPeerBy :: ([ByteString] -> IO (Maybe ByteString)) -> (Peer -> IO a) -> IO a
withPeerBy answer action = do
  peerSaid <- newTVarIO []
  let heard _ caller command = do
        atomically (modifyTVar' peerSaid (command :))
        answer command >>= maybe (pure HangUp) (\bytes -> GoOn <$ sayTo caller bytes)
  withListener "127.0.0.1" heard $ \peerListener -> action Peer {peerListener, peerSaid}

-- | The configuration of a client of this peer: one connection, and no second attempt.
peerConfig :: Peer -> Config
peerConfig peer =
  setMuxCount (Just 1) . setMaxAttempts 1 . setConnectTimeout (seconds 10) $
    standaloneConfig "127.0.0.1" (fromIntegral (listenerPort (peerListener peer)))

-- | The commands so far, in order.
peerHeard :: Peer -> IO [[ByteString]]
peerHeard peer = reverse <$> readTVarIO (peerSaid peer)
