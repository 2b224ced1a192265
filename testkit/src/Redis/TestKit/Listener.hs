-- | A server that is a function: it accepts connections and hands over each command.
--
-- "Redis.TestKit.Scripted" is one with a language for what is expected; this is for tests
-- whose server decides in its own way.
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
import Redis.TestKit.Address (Address (..), freePorts, listenOn)
import Redis.TestKit.Command (takeRequest)
import Redis.TestKit.Wait (failure)

-- | One that listens.
data Listener = Listener
  { -- | Where.
    listenerAddress :: Address,
    listenerPort :: Int,
    listenerOpen :: TVar (Map Int Caller),
    listenerEver :: TVar Int,
    listenerEnded :: TVar Bool
  }

-- | A connection of a client.
data Caller = Caller
  { -- | From 1, in the order in which they came.
    callerNumber :: Int,
    callerSocket :: Socket,
    callerLock :: MVar ()
  }

-- | What becomes of a connection.
data AndThen = GoOn | HangUp
  deriving stock (Eq, Show)

-- | Listens at a numeric address, on a port that nobody uses, for the length of an action. Each
-- command is handed over on its connection's thread, the next one when the first is done with. What
-- the function throws ends the connection.
withListener :: String -> (Listener -> Caller -> [ByteString] -> IO AndThen) -> (Listener -> IO a) -> IO a
withListener host answer action =
  freePorts 1 >>= \case
    [] -> failure "no free port"
    port : _ -> do
      listenerOpen <- newTVarIO Map.empty
      listenerEver <- newTVarIO 0
      listenerEnded <- newTVarIO False
      let address = TcpAddress host port
          listener = Listener {listenerAddress = address, listenerPort = port, listenerOpen, listenerEver, listenerEnded}
      bracket (listenOn address) Socket.close $ \socket ->
        withAsync (accepting listener (answer listener) socket) $ \_ ->
          action listener `finally` (atomically (writeTVar listenerEnded True) *> hangUpAll listener)

-- A thread for each connection, which ends with it.
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
      Socket.close (callerSocket caller)

serve :: Caller -> (Caller -> [ByteString] -> IO AndThen) -> IO ()
serve caller answer = do
  Socket.setSocketOption (callerSocket caller) Socket.NoDelay 1
  go ByteString.empty
  where
    go unread = case takeRequest unread of
      Just (words', rest) ->
        answer caller words' >>= \case
          GoOn -> go rest
          HangUp -> pure ()
      Nothing -> do
        bytes <- Socket.ByteString.recv (callerSocket caller) 65536
        unless (ByteString.null bytes) (go (unread <> bytes))

-- | Sends bytes. What several threads say does not mix.
sayTo :: Caller -> ByteString -> IO ()
sayTo caller bytes = withMVar (callerLock caller) (\() -> Socket.ByteString.sendAll (callerSocket caller) bytes)

-- | Hears no more of the client, and returns when it has left.
untilItLeaves :: Caller -> IO ()
untilItLeaves caller = do
  bytes <- Socket.ByteString.recv (callerSocket caller) 65536
  unless (ByteString.null bytes) (untilItLeaves caller)

-- | How many connections there are.
connectionsNow :: Listener -> STM Int
connectionsNow listener = Map.size <$> readTVar (listenerOpen listener)

-- | The connections that there are.
callersNow :: Listener -> STM [Caller]
callersNow listener = Map.elems <$> readTVar (listenerOpen listener)

-- | How many connections there have been.
connectionsEver :: Listener -> STM Int
connectionsEver listener = readTVar (listenerEver listener)

-- | Whether the action has ended: for whoever waits.
listenerOver :: Listener -> STM Bool
listenerOver listener = readTVar (listenerEnded listener)

-- | Closes every connection. One that ends by itself meanwhile is as good.
hangUpAll :: Listener -> IO ()
hangUpAll listener =
  atomically (callersNow listener)
    >>= mapM_ (\caller -> void (try @IOException (Socket.shutdown (callerSocket caller) Socket.ShutdownBoth)))
