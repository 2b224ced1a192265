-- | A server that is a function: it accepts connections and hands each command to the function.
--
-- "Redis.TestKit.Scripted" has a language for the expected commands; this module is for tests whose
-- server decides in its own way.
module Redis.TestKit.Listener
  ( Listener,
    withListener,
    listenerAddress,
    listenerPort,
    connectionsNow,
    connectionsEver,
    listenerOver,
    hangUpAll,

    -- * A connection
    Caller,
    callerNumber,
    callersNow,
    sayTo,
    untilItLeaves,
    AndThen (..),
  )
where

import Control.Concurrent.Async (async, withAsync)
import Control.Concurrent.MVar (MVar, newMVar, withMVar)
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
import Redis.TestKit.Address (Address (..), closeSocket, listenOn, onFreePort)
import Redis.TestKit.Command (receiveAtLeast, takeRequest)

-- | A server that listens.
data Listener = Listener
  { -- | The address at which it listens.
    listenerAddress :: Address,
    listenerPort :: Int,
    listenerOpen :: TVar (Map Int Caller),
    listenerEver :: TVar Int,
    listenerEnded :: TVar Bool
  }

-- | A connection of a client.
data Caller = Caller
  { -- | The connection's number, from 1, in the order in which they came.
    callerNumber :: Int,
    callerSocket :: Socket,
    callerLock :: MVar ()
  }

-- | Whether the connection continues.
data AndThen = GoOn | HangUp
  deriving stock (Eq, Show)

-- | Listens at a numeric address, on a free port, for the duration of an action. Each command is
-- handed over on its connection's thread, the next one when the function has returned. If the
-- function throws, the connection ends.
withListener :: String -> (Listener -> Caller -> [ByteString] -> IO AndThen) -> (Listener -> IO a) -> IO a
withListener host answer action = do
  listenerOpen <- newTVarIO Map.empty
  listenerEver <- newTVarIO 0
  listenerEnded <- newTVarIO False
  bracket (onFreePort listening) (closeSocket . snd) $ \(listenerPort, socket) -> do
    let listener = Listener {listenerAddress = TcpAddress host listenerPort, listenerPort, listenerOpen, listenerEver, listenerEnded}
    withAsync (accepting listener (answer listener) socket) $ \_ ->
      action listener `finally` (atomically (writeTVar listenerEnded True) *> hangUpAll listener)
  where
    listening port = (,) port <$> listenOn (TcpAddress host port)

-- Each connection has a thread, which ends with it.
accepting :: Listener -> (Caller -> [ByteString] -> IO AndThen) -> Socket -> IO ()
accepting listener answer socket =
  void . try @IOException . forever . mask_ $ do
    (client, _) <- Socket.accept socket
    lock <- newMVar ()
    caller <- atomically $ do
      modifyTVar' (listenerEver listener) (+ 1)
      number <- readTVar (listenerEver listener)
      let caller = Caller {callerNumber = number, callerSocket = client, callerLock = lock}
      caller <$ modifyTVar' (listenerOpen listener) (Map.insert number caller)
    async . (`finally` leave caller) $ serve caller answer
  where
    leave caller = do
      atomically (modifyTVar' (listenerOpen listener) (Map.delete (callerNumber caller)))
      closeSocket (callerSocket caller)

serve :: Caller -> (Caller -> [ByteString] -> IO AndThen) -> IO ()
serve caller answer = do
  Socket.setSocketOption (callerSocket caller) Socket.NoDelay 1
  go ByteString.empty
  where
    go unread = case takeRequest unread of
      Right (words', rest) ->
        answer caller words' >>= \case
          GoOn -> go rest
          HangUp -> pure ()
      Left missing -> do
        more <- receiveAtLeast (Socket.ByteString.recv (callerSocket caller) 65536) missing
        unless (null more) (go (ByteString.concat (unread : more)))

-- | Sends bytes. The bytes of several threads do not mix.
sayTo :: Caller -> ByteString -> IO ()
sayTo caller bytes = withMVar (callerLock caller) (\() -> Socket.ByteString.sendAll (callerSocket caller) bytes)

-- | Ignores everything that the client sends, and returns when it has closed the connection.
untilItLeaves :: Caller -> IO ()
untilItLeaves caller = do
  bytes <- Socket.ByteString.recv (callerSocket caller) 65536
  unless (ByteString.null bytes) (untilItLeaves caller)

-- | The number of open connections.
connectionsNow :: Listener -> STM Int
connectionsNow listener = Map.size <$> readTVar (listenerOpen listener)

-- | The open connections.
callersNow :: Listener -> STM [Caller]
callersNow listener = Map.elems <$> readTVar (listenerOpen listener)

-- | The number of connections that were ever accepted.
connectionsEver :: Listener -> STM Int
connectionsEver listener = readTVar (listenerEver listener)

-- | Whether the action has ended, for threads that wait.
listenerOver :: Listener -> STM Bool
listenerOver listener = readTVar (listenerEnded listener)

-- | Closes every connection. If one ends by itself meanwhile, that is as good.
hangUpAll :: Listener -> IO ()
hangUpAll listener =
  atomically (callersNow listener)
    >>= mapM_ (\caller -> void (try @IOException (Socket.shutdown (callerSocket caller) Socket.ShutdownBoth)))
