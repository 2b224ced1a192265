module Redis.TestKit.ProxySpec (spec) where

import Control.Concurrent.Async (forConcurrently_)
import Control.Concurrent.STM (atomically)
import Control.Exception (IOException, try)
import Control.Monad (forM_, replicateM, replicateM_)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Map.Strict qualified as Map
import GHC.Clock (getMonotonicTime)
import Network.Socket qualified as Socket
import Network.Socket.ByteString qualified as Socket.ByteString
import Redis.TestKit.Address (connectTo)
import Redis.TestKit.Command
import Redis.TestKit.Proxy
import Redis.TestKit.Server (Server)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait
import System.Timeout (timeout)
import Test.Hspec

spec :: Spec
spec = aroundAll (Server.withServer Server.serverDefaults) $ do
  it "passes requests and replies, and counts them" $ \server ->
    withProxy (Server.serverAddress server) $ \proxy -> do
      withConnection (proxyAddress proxy) ping
      traffic <- awaitTraffic proxy 5 ((== 0) . trafficOpen)
      traffic
        `shouldBe` Traffic
          { trafficAccepted = 1,
            trafficOpen = 0,
            trafficToServer = ByteString.length (encodeRequest ["PING"]),
            trafficToClient = ByteString.length "+PONG\r\n"
          }

  -- A thread of the proxy is cancelled while it closes a socket: one time in about a thousand.
  it "leaves no descriptor when its connections end as it does" $ \server -> do
    open <- openDescriptors
    replicateM_ 500 $
      withProxy (Server.serverAddress server) $ \proxy -> do
        connections <- replicateM 8 (openConnection (proxyAddress proxy))
        mapM_ ping connections
        forConcurrently_ connections closeConnection
    descriptorsReturnTo 5 open

  it "serves many connections at a time" $ \server ->
    withProxy (Server.serverAddress server) $ \proxy ->
      forConcurrently_ [1 .. 20 :: Int] $ \number ->
        withConnection (proxyAddress proxy) $ \connection ->
          forM_ [1 .. 50 :: Int] $ \turn -> do
            let text = Char8.pack (show (number, turn))
            request connection ["ECHO", text] `shouldReturn` Text text

  it "passes on that the client has finished, and the rest of the replies" $ \server ->
    withProxy (Server.serverAddress server) $ \proxy -> do
      socket <- connectTo (proxyAddress proxy)
      Socket.ByteString.sendAll socket (encodeRequest ["QUIT"])
      Socket.shutdown socket Socket.ShutdownSend
      receiveAll socket `shouldReturn` "+OK\r\n"
      Socket.close socket

  it "delays by time, not by throughput" $ \server ->
    withProxy (Server.serverAddress server) $ \proxy -> do
      delay proxy ToServer 0.05
      delay proxy ToClient 0.05
      withConnection (proxyAddress proxy) $ \connection -> do
        start <- getMonotonicTime
        replicateM_ 100 (sendRaw connection (encodeRequest ["PING"]))
        replies <- replicateM 100 (receiveReply connection)
        end <- getMonotonicTime
        replies `shouldBe` replicate 100 (Status "PONG")
        (end - start) `shouldSatisfy` (>= 0.1)
        -- One after the other, they would take ten seconds.
        (end - start) `shouldSatisfy` (< 5)

  it "holds back everything while frozen and loses nothing" $ \server ->
    withProxy (Server.serverAddress server) $ \proxy ->
      withConnection (proxyAddress proxy) $ \connection -> do
        ping connection
        freeze proxy ToClient
        sendRaw connection (encodeRequest ["ECHO", "frozen"])
        timeout 50000 (receiveReply connection) `shouldReturn` Nothing
        thaw proxy ToClient
        receiveReply connection `shouldReturn` Text "frozen"

  it "cuts with a FIN" $ \server ->
    withProxy (Server.serverAddress server) $ \proxy -> do
      socket <- connectTo (proxyAddress proxy)
      _ <- awaitTraffic proxy 5 ((== 1) . trafficOpen)
      cut proxy Close
      receiveAll socket `shouldReturn` ""
      Socket.close socket

  it "cuts with a reset" $ \server ->
    withProxy (Server.serverAddress server) $ \proxy -> do
      socket <- connectTo (proxyAddress proxy)
      Socket.ByteString.sendAll socket (encodeRequest ["PING"])
      _ <- awaitTraffic proxy 5 ((== 7) . trafficToClient)
      Socket.ByteString.recv socket 100 `shouldReturn` "+PONG\r\n"
      cut proxy Reset
      Socket.ByteString.recv socket 100 `shouldThrow` anyIOError
      Socket.close socket

  it "cuts after the server has run the request and before the reply" $ \server ->
    withProxy (Server.serverAddress server) $ \proxy -> do
      _ <- Server.command server ["DEL", "counter"]
      cutAfter proxy ToClient 0 Reset
      withConnection (proxyAddress proxy) (`request` ["INCR", "counter"])
        `shouldThrow` anyIOError
      Server.command server ["GET", "counter"] `shouldReturn` Text "1"
      -- The fault happens only once.
      withConnection (proxyAddress proxy) ping

  it "cuts in the middle of a request, which then does not run" $ \server ->
    withProxy (Server.serverAddress server) $ \proxy -> do
      _ <- Server.command server ["DEL", "counter"]
      cutAfter proxy ToServer 10 Close
      withConnection (proxyAddress proxy) (`request` ["INCR", "counter"])
        `shouldThrow` anyIOError
      Server.command server ["EXISTS", "counter"] `shouldReturn` Number 0

  it "drops what exceeds a number of bytes" $ \server ->
    withProxy (Server.serverAddress server) $ \proxy -> do
      dropAfter proxy ToClient 3
      socket <- connectTo (proxyAddress proxy)
      Socket.ByteString.sendAll socket (encodeRequest ["PING"])
      Socket.ByteString.recv socket 100 `shouldReturn` "+PO"
      timeout 50000 (Socket.ByteString.recv socket 100) `shouldReturn` Nothing
      Socket.close socket
      heal proxy
      withConnection (proxyAddress proxy) ping

  it "splits replies at every byte" $ \server ->
    withProxy (Server.serverAddress server) $ \proxy -> do
      slice proxy ToClient 1
      withConnection (proxyAddress proxy) $ \connection ->
        request connection ["ECHO", "in pieces"] `shouldReturn` Text "in pieces"
      -- "$9", the text, and two line ends: as many bytes as without slices.
      traffic <- atomically (proxyTraffic proxy)
      trafficToClient traffic `shouldBe` 15

  it "injects bytes to the client" $ \server ->
    withProxy (Server.serverAddress server) $ \proxy ->
      withConnection (proxyAddress proxy) $ \connection -> do
        ping connection
        inject proxy "+garbage\r\n"
        receiveReply connection `shouldReturn` Status "garbage"
        ping connection

  it "refuses connections and accepts them again on the same port" $ \server ->
    withProxy (Server.serverAddress server) $ \proxy ->
      withConnection (proxyAddress proxy) $ \connection -> do
        ping connection
        refuse proxy
        refused <- try (connectTo (proxyAddress proxy))
        case refused of
          Left (_ :: IOException) -> pure ()
          Right socket -> Socket.close socket >> expectationFailure "connected"
        ping connection
        accept proxy
        withConnection (proxyAddress proxy) ping

  it "can be pointed at another server" $ \server ->
    Server.withServer Server.serverDefaults $ \other ->
      withProxy (Server.serverAddress server) $ \proxy -> do
        retarget proxy (Server.serverAddress other)
        _ <- withConnection (proxyAddress proxy) (`request` ["SET", "here", "yes"])
        Server.command other ["GET", "here"] `shouldReturn` Text "yes"
        Server.command server ["GET", "here"] `shouldReturn` Nil

  it "resets the client when nobody listens behind it" $ \_ ->
    Server.withServer Server.serverDefaults $ \gone -> do
      Server.kill9 gone
      withProxy (Server.serverAddress gone) $ \proxy ->
        withConnection (proxyAddress proxy) (`request` ["PING"])
          `shouldThrow` anyIOError

  it "leaves no descriptor and no connection behind" $ \server -> do
    eventuallyReturns 10 0 (Server.connectedClients server)
    atFirst <- openDescriptors
    withProxy (Server.serverAddress server) $ \proxy -> do
      connections <- replicateM 10 (openConnection (proxyAddress proxy))
      mapM_ ping connections
      freeze proxy ToServer
      mapM_ (`sendRaw` encodeRequest ["PING"]) connections
      disposeProxy proxy
      mapM_ closeConnection connections
    descriptorsReturnTo 10 atFirst
    eventuallyReturns 10 0 (Server.connectedClients server)

  it "runs every request once under load" $ \server -> countsOnce server

countsOnce :: Server -> Expectation
countsOnce server = do
  _ <- Server.command server ["CONFIG", "RESETSTAT"]
  withProxy (Server.serverAddress server) $ \proxy ->
    forConcurrently_ [1 .. 8 :: Int] $ \_ ->
      withConnection (proxyAddress proxy) $ \connection -> do
        let batch = ByteString.concat (replicate 500 (encodeRequest ["INCR", "load"]))
        sendRaw connection batch
        replicateM_ 500 (receiveReply connection)
  statistics <- Server.commandStatistics server
  fmap callsRun (Map.lookup "incr" statistics) `shouldBe` Just 4000

ping :: Connection -> Expectation
ping connection = request connection ["PING"] `shouldReturn` Status "PONG"

receiveAll :: Socket.Socket -> IO ByteString.ByteString
receiveAll socket = do
  bytes <- Socket.ByteString.recv socket 4096
  if ByteString.null bytes then pure bytes else (bytes <>) <$> receiveAll socket

anyIOError :: Selector IOException
anyIOError = const True
