-- | TCP and Unix sockets.
module PlainSpec (spec) where

import Control.Concurrent (forkFinally, killThread)
import Control.Concurrent.MVar (newEmptyMVar, putMVar, takeMVar)
import Control.Concurrent.STM (retry)
import Control.Exception (IOException, bracket, bracketOnError, try)
import Control.Monad (replicateM_, void)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Foldable (toList)
import Data.IORef (modifyIORef', newIORef, readIORef, writeIORef)
import Data.List qualified as List
import Data.Maybe (mapMaybe)
import Foreign.Marshal.Alloc (allocaBytes)
import GHC.Clock (getMonotonicTime)
import GHC.IO.Encoding (setFileSystemEncoding, utf8)
import Network.Socket (SockAddr (SockAddrInet, SockAddrInet6, SockAddrUnix))
import Network.Socket qualified as Socket
import Redis.Duration qualified as Duration
import Redis.Error
import Redis.Internal.Config
import Redis.Internal.Network.Dial
import Redis.Internal.Network.Transport
import Servers
import System.Directory (listDirectory)
import System.FilePath ((</>))
import System.IO.Temp (withSystemTempDirectory)
import System.Posix.IO (closeFd, dup)
import System.Posix.Types (Fd (Fd))
import System.Timeout (timeout)
import Test.Hspec
import Text.Read (readMaybe)

-- | Hears nothing of how a dial goes on.
ignored :: ConnectionCause -> IO ()
ignored _ = pure ()

loopback4, loopback6 :: SockAddr
loopback4 = SockAddrInet 0 (Socket.tupleToHostAddress (127, 0, 0, 1))
loopback6 = SockAddrInet6 0 0 (0, 0, 0, 1) 0

portOf :: SockAddr -> Port
portOf = \case
  SockAddrInet port _ -> fromIntegral port
  SockAddrInet6 port _ _ _ -> fromIntegral port
  SockAddrUnix _ -> 0

config :: Endpoint -> Config
config = defaultConfig . Standalone

attemptConnect :: Endpoint -> IO (Either ConnectionCause Transport)
attemptConnect endpoint =
  newConnector (config endpoint) >>= \case
    Left cause -> pure (Left cause)
    Right connector -> connected connector endpoint

withTransport :: Endpoint -> (Transport -> IO a) -> IO a
withTransport endpoint = bracket open transportClose
  where
    open = attemptConnect endpoint >>= either (fail . show) pure

roundTrip :: Endpoint -> Expectation
roundTrip endpoint = withTransport endpoint $ \transport -> do
  transportEndpoint transport `shouldBe` endpoint
  sendAll transport "hello"
  receive transport `shouldReturn` "hello"

failureOf :: Either ConnectionCause a -> Maybe ConnectionCause
failureOf = either Just (const Nothing)

spec :: Spec
spec = around_ (within 20) $ do
  describe "connecting" $ do
    it "reaches an IPv4 address" $
      withEcho loopback4 $ \address -> roundTrip (TcpEndpoint "127.0.0.1" (portOf address))

    it "reaches an IPv6 address" $
      withEcho loopback6 $ \address -> roundTrip (TcpEndpoint "::1" (portOf address))

    it "reaches a host by its name" $
      withEcho loopback4 $ \address -> roundTrip (TcpEndpoint "localhost" (portOf address))

    it "reaches a Unix socket" $
      withSystemTempDirectory "transport" $ \folder -> do
        let path = folder </> "socket"
        withEcho (SockAddrUnix path) $ \_ -> roundTrip (UnixEndpoint path)

    it "reaches a Unix socket whose path is not ASCII" $ do
      setFileSystemEncoding utf8
      withSystemTempDirectory "transport" $ \folder ->
        withEcho (SockAddrUnix (folder </> "s\xC3\xB6")) $ \_ -> roundTrip (UnixEndpoint (folder </> "s\xF6"))

    it "names the address and the reason when the port is closed" $ do
      port <- portOf <$> closedPort loopback4
      outcome <- attemptConnect (TcpEndpoint "127.0.0.1" port)
      failureOf outcome `shouldBe` Just (ConnectFailed ("127.0.0.1:" <> show port <> ": Connection refused"))

    it "names the path and the reason when there is no Unix socket" $ do
      outcome <- attemptConnect (UnixEndpoint "/nonexistent/socket")
      failureOf outcome `shouldBe` Just (ConnectFailed "/nonexistent/socket: No such file or directory")

    it "refuses a Unix path that no socket can have" $ do
      let path = replicate 200 'x'
      outcome <- attemptConnect (UnixEndpoint path)
      failureOf outcome `shouldBe` Just (ConnectFailed (path <> ": the path is too long for a socket"))

    it "says when a name has no address" $ do
      outcome <- attemptConnect (TcpEndpoint "no-such-host.invalid" 6379)
      failureOf outcome `shouldSatisfy` \case
        Just (NameNotResolved text) -> "no-such-host.invalid: " `List.isPrefixOf` text
        _ -> False

    it "tells a connection that met itself from one to a server" $ do
      address <- closedPort loopback4
      let bound = bracket (Socket.socket Socket.AF_INET Socket.Stream Socket.defaultProtocol) Socket.close
      alone <- bound $ \socket -> do
        Socket.bind socket address
        Socket.connect socket address
        meetsItself socket
      accompanied <- withEcho loopback4 $ \server -> bound $ \socket -> do
        Socket.connect socket server
        meetsItself socket
      (alone, accompanied) `shouldBe` (True, False)

  describe "a TCP connection" $ do
    it "sends at once, probes after a minute of idleness and gives up on what is unacknowledged for 15 s" $
      tuningOf id `shouldReturn` Tuning {noDelay = 1, keepAlive = 1, keepIdle = 60, keepInterval = 20, keepCount = 3, userTimeout = 15000}

    it "probes and gives up when it is told to" $ do
      tuning <- tuningOf (\given -> given {configKeepAlive = Just 7, configTcpUserTimeout = Just 2.5})
      tuning `shouldBe` Tuning {noDelay = 1, keepAlive = 1, keepIdle = 7, keepInterval = 2, keepCount = 3, userTimeout = 2500}

    it "does neither when it is told not to" $ do
      tuning <- tuningOf (\given -> given {configKeepAlive = Nothing, configTcpUserTimeout = Nothing})
      (noDelay tuning, keepAlive tuning, userTimeout tuning) `shouldBe` (1, 0, 0)

  describe "gathering" $ do
    it "does not wait for bytes that are there" $
      withEcho loopback4 $ \address -> withTransport (TcpEndpoint "127.0.0.1" (portOf address)) $ \transport -> do
        sendAll transport "hello"
        transportWaitReadable transport
        (seconds, ()) <- timed (gather transport 1 5000000)
        seconds `shouldSatisfy` (< 4)

    it "waits for more no longer than it is told to" $
      withEcho loopback4 $ \address -> withTransport (TcpEndpoint "127.0.0.1" (portOf address)) $ \transport -> do
        sendAll transport "hello"
        transportWaitReadable transport
        (seconds, ()) <- timed (gather transport 1000 20000)
        seconds `shouldSatisfy` (\s -> s >= 0.02 && s < 5)
        receive transport `shouldReturn` "hello"

    it "leaves nothing behind: one byte is enough afterwards" $
      withEcho loopback4 $ \address -> withTransport (TcpEndpoint "127.0.0.1" (portOf address)) $ \transport -> do
        gather transport 1000 1000
        sendAll transport "x"
        transportWaitReadable transport
        receive transport `shouldReturn` "x"

  describe "several addresses" $ do
    it "goes on at once when the first refuses" $
      withEcho loopback4 $ \good -> do
        bad <- closedPort loopback4
        (seconds, outcome) <- timed (dialAddresses (DialTimes 5 5) ignored [bad, good])
        arrivedAt good outcome
        seconds `shouldSatisfy` (< 2)

    it "goes on after the stagger when the first says nothing" $
      withDeadListener loopback4 $ \dead -> withEcho loopback4 $ \good -> do
        (seconds, outcome) <- timed (dialAddresses (DialTimes 10 0.2) ignored [dead, good])
        arrivedAt good outcome
        seconds `shouldSatisfy` (\s -> s >= 0.2 && s < 5)

    it "names every address and its reason when none answers" $
      withDeadListener loopback4 $ \dead -> do
        bad <- closedPort loopback6
        outcome <- dialAddresses (DialTimes 0.5 0.1) ignored [dead, bad]
        failureOf outcome
          `shouldBe` Just (ConnectFailed (show bad <> ": Connection refused; " <> show dead <> ": no answer"))

    it "times out when nothing is heard from any" $
      withDeadListener loopback4 $ \dead -> do
        outcome <- dialAddresses (DialTimes 0.3 0.1) ignored [dead]
        failureOf outcome `shouldBe` Just (ConnectTimedOut (Duration.seconds 0.3))

    it "names every address when nothing is heard from any of several, also those that there was no time for" $
      withDeadListener loopback4 $ \dead -> do
        told <- newIORef []
        outcome <- dialAddresses (DialTimes 0.5 0.2) (\cause -> modifyIORef' told (cause :)) (replicate 10 dead)
        let named count = [show dead <> ": no answer" | _ <- [1 .. count]] <> [show dead <> ": not tried in time" | _ <- [count + 1 .. 10 :: Int]]
            texts = map (ConnectFailed . List.intercalate "; " . named) [1 .. 10]
        failureOf outcome `shouldSatisfy` maybe False (`elem` texts)
        -- Whoever stops the dial knows the same.
        last' <- take 1 <$> readIORef told
        last' `shouldBe` toList (failureOf outcome)

    it "leaves no descriptor open, won, lost or interrupted" $
      withDeadListener loopback4 $ \dead -> withEcho loopback4 $ \good -> do
        bad <- closedPort loopback4
        open <- openDescriptors
        replicateM_ 20 $ do
          dialAddresses (DialTimes 5 0.001) ignored [dead, bad, good, dead] >>= either (fail . show) Socket.close
          void (dialAddresses (DialTimes 0.01 0.001) ignored [dead, bad, dead])
          void (timeout 5000 (dialAddresses (DialTimes 5 0.001) ignored [dead, bad, dead]))
        eventually ((<= open) <$> openDescriptors)

  describe "interruption" $
    it "of a connect that gets no answer returns at once and leaks no descriptor" $
      withDeadListener loopback4 $ \dead -> do
        let endpoint = TcpEndpoint "127.0.0.1" (portOf dead)
        open <- openDescriptors
        replicateM_ 20 $ do
          outcome <- timeout 10000 (attemptConnect endpoint)
          (failureOf <$> outcome) `shouldBe` Nothing
        openDescriptors `shouldReturn` open

  describe "shutdown" $ do
    it "wakes a waiting reader" $
      withListener 1 loopback4 $ \_ address ->
        withTransport (TcpEndpoint "127.0.0.1" (portOf address)) $ \transport -> do
          done <- newEmptyMVar
          thread <- forkFinally (receive transport) (putMVar done)
          transportShutdown transport
          takeMVar done >>= either (fail . show) (`shouldBe` "")
          killThread thread

    it "wakes a waiting writer" $
      withListener 1 loopback4 $ \_ address ->
        withTransport (TcpEndpoint "127.0.0.1" (portOf address)) $ \transport -> do
          fillBuffers transport
          done <- newEmptyMVar
          thread <- forkFinally (try (sendAll transport "more")) (putMVar done)
          transportShutdown transport
          outcome <- takeMVar done >>= either (fail . show) pure
          either (\(_ :: IOException) -> True) (const False) outcome `shouldBe` True
          killThread thread

    it "wakes a watcher" $
      withListener 1 loopback4 $ \_ address ->
        withTransport (TcpEndpoint "127.0.0.1" (portOf address)) $ \transport -> do
          woken <- newEmptyMVar
          withdraw <- transportWatchReadable transport (putMVar woken ())
          transportShutdown transport
          takeMVar woken
          withdraw

    it "may be repeated, and come after the close without touching another's descriptor" $
      withEcho loopback4 $ \address -> do
        let endpoint = TcpEndpoint "127.0.0.1" (portOf address)
        old <- attemptConnect endpoint >>= either (fail . show) pure
        transportShutdown old
        transportShutdown old
        transportClose old
        withTransport endpoint $ \fresh -> do
          transportShutdown old
          sendAll fresh "alive"
          receive fresh `shouldReturn` "alive"

  describe "the stream" $ do
    it "says that nothing is there instead of blocking" $
      withListener 1 loopback4 $ \_ address ->
        withTransport (TcpEndpoint "127.0.0.1" (portOf address)) $ \transport ->
          allocaBytes 10 (\memory -> transportTryRead transport memory 10) `shouldReturn` attemptWouldRead

    it "ends when the peer ends" $
      withListener 1 loopback4 $ \listener address ->
        withTransport (TcpEndpoint "127.0.0.1" (portOf address)) $ \transport -> do
          (connection, _) <- Socket.accept listener
          Socket.close connection
          receive transport `shouldReturn` ""

    it "carries 64 MB both ways at once, intact" $
      withEcho loopback4 $ \address ->
        withTransport (TcpEndpoint "127.0.0.1" (portOf address)) echoes64MB

-- | The options of a socket, in the kernel's units.
data Tuning = Tuning
  { noDelay :: Int,
    keepAlive :: Int,
    keepIdle :: Int,
    keepInterval :: Int,
    keepCount :: Int,
    userTimeout :: Int
  }
  deriving stock (Eq, Show)

-- | The options that a connection gets after this change of the default configuration.
tuningOf :: (Config -> Config) -> IO Tuning
tuningOf change = withEcho loopback4 $ \address -> do
  let endpoint = TcpEndpoint "127.0.0.1" (portOf address)
  connector <- newConnector (change (config endpoint)) >>= either (fail . show) pure
  bracket (connected connector endpoint >>= either (fail . show) pure) transportClose $ \transport -> do
    -- After a reply has been read, the peer has certainly accepted the connection.
    sendAll transport "x"
    receive transport `shouldReturn` "x"
    bracket (socketTo address) Socket.close tuningOfSocket
  where
    tuningOfSocket socket = do
      noDelay <- Socket.getSocketOption socket Socket.NoDelay
      keepAlive <- Socket.getSocketOption socket Socket.KeepAlive
      [keepIdle, keepInterval, keepCount] <- mapM (Socket.getSocketOption socket . Socket.SockOpt 6) [4, 5, 6]
      userTimeout <- Socket.getSocketOption socket Socket.UserTimeout
      pure Tuning {noDelay, keepAlive, keepIdle, keepInterval, keepCount, userTimeout}

-- | A duplicate of this process's descriptor that is connected to the address. The transport does
-- not export its own.
socketTo :: SockAddr -> IO Socket.Socket
socketTo address = listDirectory "/proc/self/fd" >>= first . mapMaybe readMaybe
  where
    first = \case
      [] -> fail ("no socket leads to " <> show address)
      descriptor : rest -> duplicate descriptor >>= maybe (first rest) pure
    duplicate descriptor =
      -- The descriptor of the listing is closed by now, and most others are no sockets.
      either (\(_ :: IOException) -> Nothing) id <$> try (bracketOnError (dup (Fd descriptor)) closeFd candidate)
    candidate copy = do
      socket <- Socket.mkSocket (fromIntegral copy)
      peer <- try (Socket.getPeerName socket)
      if either (\(_ :: IOException) -> False) (== address) peer
        then pure (Just socket)
        else Nothing <$ Socket.close socket

-- | Writes until the kernel accepts no more bytes.
fillBuffers :: Transport -> IO ()
fillBuffers transport = allocaBytes 65536 go
  where
    go memory = do
      attempt <- transportTryWrite transport memory 65536
      if attempt == attemptWouldWrite then pure () else go memory

gather :: Transport -> Int -> Int -> IO ()
gather transport bytes micros = case transportGather transport of
  Just gathering -> gathering bytes micros
  Nothing -> fail "a plain socket cannot gather"

timed :: IO a -> IO (Double, a)
timed action = do
  begun <- getMonotonicTime
  result <- action
  ended <- getMonotonicTime
  pure (ended - begun, result)

arrivedAt :: SockAddr -> Either ConnectionCause Socket.Socket -> Expectation
arrivedAt address = \case
  Left cause -> expectationFailure (show cause)
  Right socket -> do
    peer <- Socket.getPeerName socket
    Socket.close socket
    peer `shouldBe` address

echoes64MB :: Transport -> Expectation
echoes64MB transport = do
  done <- newEmptyMVar
  thread <- forkFinally (mapM_ (sendAll transport . block) [1 .. blocks]) (putMVar done)
  received <- newIORef (0 :: Int)
  let check index unread
        | index > blocks = pure unread
        | ByteString.length unread >= blockSize = do
          let (first, rest) = ByteString.splitAt blockSize unread
          (first == block index) `shouldBe` True
          writeIORef received index
          check (index + 1) rest
        | otherwise = do
          more <- receive transport
          ByteString.null more `shouldBe` False
          check index (unread <> more)
  check 1 "" `shouldReturn` ""
  readIORef received `shouldReturn` blocks
  takeMVar done >>= either (fail . show) pure
  killThread thread
  where
    blocks = 1024
    blockSize = 65536
    block :: Int -> ByteString
    block index = ByteString.take blockSize (Char8.concat (replicate 16384 (Char8.pack (show (100000 + index)))))

connected :: Connector -> Endpoint -> IO (Either ConnectionCause Transport)
connected connector endpoint = openWithin connector endpoint retry transportClose (\stage -> connectWith stage connector endpoint)
