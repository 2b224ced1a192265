-- | The address of a server, and free ports for new servers.
module Redis.TestKit.Address
  ( Address (..),
    renderAddress,
    connectTo,
    listenOn,
    closeSocket,
    freePorts,
    onFreePort,
  )
where

import Control.Exception (bracket, bracketOnError, try, uninterruptibleMask_)
import Control.Monad (foldM)
import Network.Socket (Family, SockAddr, Socket)
import Network.Socket qualified as Socket
import Redis.TestKit.Wait (failure)
import System.IO.Error (isAlreadyInUseError)
import System.Random (randomRIO)

-- | A numeric host and a port, or the path of a Unix socket.
data Address
  = TcpAddress String Int
  | UnixAddress FilePath
  deriving stock (Eq, Ord, Show)

-- | @host:port@, @[v6]:port@ or the path.
renderAddress :: Address -> String
renderAddress = \case
  TcpAddress host port
    | ':' `elem` host -> "[" <> host <> "]:" <> show port
    | otherwise -> host <> ":" <> show port
  UnixAddress path -> path

resolve :: Address -> IO (Family, SockAddr)
resolve = \case
  UnixAddress path -> pure (Socket.AF_UNIX, Socket.SockAddrUnix path)
  TcpAddress host port -> do
    found <-
      Socket.getAddrInfo
        (Just numeric)
        (Just host)
        (Just (show port))
    case found of
      info : _ -> pure (Socket.addrFamily info, Socket.addrAddress info)
      [] -> failure ("no address " <> host)
  where
    numeric =
      Socket.defaultHints
        { Socket.addrFlags = [Socket.AI_NUMERICHOST, Socket.AI_NUMERICSERV],
          Socket.addrSocketType = Socket.Stream
        }

openSocket :: Family -> IO Socket
openSocket family = do
  socket <- Socket.socket family Socket.Stream Socket.defaultProtocol
  -- Servers are child processes: none may inherit a connection.
  Socket.withFdSocket socket Socket.setCloseOnExecIfNeeded
  pure socket

-- | A connected socket, without Nagle's delay. Throws 'IOException'.
connectTo :: Address -> IO Socket
connectTo address = do
  (family, target) <- resolve address
  bracketOnError (openSocket family) closeSocket $ \socket -> do
    case address of
      TcpAddress _ _ -> Socket.setSocketOption socket Socket.NoDelay 1
      UnixAddress _ -> pure ()
    Socket.connect socket target
    pure socket

-- | A listening socket. Throws 'IOException', e.g. when the port is taken.
listenOn :: Address -> IO Socket
listenOn address = do
  (family, target) <- resolve address
  bracketOnError (openSocket family) closeSocket $ \socket -> do
    Socket.setSocketOption socket Socket.ReuseAddr 1
    Socket.bind socket target
    Socket.listen socket 1024
    pure socket

-- | Closes a socket, and cannot be interrupted: 'Socket.close' that is interrupted leaves the
-- descriptor open for good. Idempotent; waits for nothing but the IO manager's own bookkeeping.
closeSocket :: Socket -> IO ()
closeSocket = uninterruptibleMask_ . Socket.close

-- | This many different ports that nobody uses on the loopback addresses.
--
-- They are below the range from which the kernel numbers outgoing connections. Otherwise a client
-- that keeps trying to reach a port whose server is down would sooner or later get that very port
-- as its own and connect to itself; and another program's connection could hold the port of a
-- server that a test wants to restart.
--
-- Another process may still take a port before the caller does, so a caller that starts a server
-- must try again with other ports; see 'onFreePort'.
freePorts :: Int -> IO [Int]
freePorts count = foldM (\found _ -> (: found) <$> another found) [] [1 .. count]
  where
    another taken = search taken (1000 :: Int)
    search taken attempts
      | attempts <= 0 = failure "no free port"
      | otherwise = do
        port <- randomRIO lowestToHighest
        free <- if port `elem` taken then pure False else isFree port
        if free then pure port else search taken (attempts - 1)
    -- By default, Linux numbers outgoing connections from 32768 on.
    lowestToHighest = (10240, 32767)

-- | Runs an action that listens on the port that it gets. Tries other ports, up to 20 in all, while
-- those that were free have been taken.
onFreePort :: (Int -> IO a) -> IO a
onFreePort listening = attempt (20 :: Int)
  where
    attempt left =
      freePorts 1 >>= \case
        [] -> failure "no free port"
        port : _ ->
          try (listening port) >>= \case
            Right listens -> pure listens
            Left problem
              | isAlreadyInUseError problem && left > 1 -> attempt (left - 1)
              | otherwise -> ioError problem

isFree :: Int -> IO Bool
isFree port = (&&) <$> ipv4 <*> ipv6
  where
    ipv4 = bindable (TcpAddress "127.0.0.1" port)
    ipv6 = bindable (TcpAddress "::1" port)

-- Binds without SO_REUSEADDR, so that the remains of old connections count, too.
bindable :: Address -> IO Bool
bindable address = do
  attempt <- try $ do
    (family, target) <- resolve address
    bracket (openSocket family) closeSocket (`Socket.bind` target)
  pure $ case attempt of
    Right () -> True
    -- A machine without IPv6 fails in another way: no server listens there.
    Left problem -> not (isAlreadyInUseError problem)
