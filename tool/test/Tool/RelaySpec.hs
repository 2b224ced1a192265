module Tool.RelaySpec (spec) where

import Control.Concurrent.Async (concurrently, forConcurrently_)
import Control.Monad (replicateM, replicateM_)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Either (isLeft)
import Data.List (sort)
import Network.Socket qualified as Socket
import Network.Socket.ByteString qualified as Socket.ByteString
import Redis.TestKit.Address (Address (..), connectTo, freePorts)
import Redis.TestKit.Command
import Redis.TestKit.Server (serverAddress, serverDefaults, withServer)
import System.IO.Error (tryIOError)
import Test.Hspec
import Tool.Bench.Time (monotonic)
import Tool.Relay

throughRelay :: Double -> (Relay -> Connection -> IO a) -> IO a
throughRelay milliseconds action =
  withServer serverDefaults $ \server ->
    withRelay (round (milliseconds * 1e6)) (serverAddress server) $ \relay ->
      withConnection (TcpAddress "127.0.0.1" (relayPort relay)) (action relay)

-- | The time of one PING in milliseconds.
roundTrip :: Connection -> IO Double
roundTrip connection = do
  before' <- monotonic
  request connection ["PING"] >>= (`shouldBe` Status "PONG")
  after' <- monotonic
  pure (fromIntegral (after' - before') / 1e6)

-- | The time below which a tenth of the times lie.
quick :: [Double] -> Double
quick times = case drop (length times `div` 10) (sort times) of
  time : _ -> time
  [] -> 0

spec :: Spec
spec = describe "Tool.Relay" $ do
  it "never takes less than the round trip, and often little more" $
    throughRelay 1 $ \_ connection -> do
      times <- replicateM 200 (roundTrip connection)
      minimum times `shouldSatisfy` (>= 2)
      -- Well below the next millisecond, which is the unit of threadDelay. Other programs may use
      -- the processors meanwhile, so this does not hold for all of them.
      quick times `shouldSatisfy` (< 2.9)

  it "delays and does not slow down: what is sent together comes together" $
    throughRelay 20 $ \_ connection -> do
      begun <- monotonic
      sendRaw connection (ByteString.concat (replicate 1000 (encodeRequest ["PING"])))
      replicateM_ 1000 (receiveReply connection >>= (`shouldBe` Status "PONG"))
      ended <- monotonic
      fromIntegral (ended - begun) / 1e6 `shouldSatisfy` (\time -> time >= (40 :: Double) && time < 1000)

  it "carries large values whole, both ways at once and on many connections" $
    throughRelay 1 $ \relay _ -> do
      let value = ByteString.concat (replicate 40000 "0123456789abcdef")
      forConcurrently_ [1 .. 8 :: Int] $ \number ->
        withConnection (TcpAddress "127.0.0.1" (relayPort relay)) $ \connection -> do
          let key = Char8.pack (show number)
          replicateM_ 3 $ do
            request connection ["SET", key, value] >>= (`shouldBe` Status "OK")
            request connection ["GET", key] >>= (`shouldBe` Text value)
      relayConnections relay >>= (`shouldBe` 9)

  it "passes on what was said before the end, and the end" $
    throughRelay 5 $ \_ connection -> do
      sendRaw connection (encodeRequest ["PING"] <> encodeRequest ["QUIT"])
      receiveReply connection >>= (`shouldBe` Status "PONG")
      receiveReply connection >>= (`shouldBe` Status "OK")
      tryIOError (receiveReply connection) >>= (`shouldSatisfy` isLeft)

  it "closes at once when the server is not there" $
    freePorts 1 >>= \case
      [port] ->
        withRelay 0 (TcpAddress "127.0.0.1" port) $ \relay -> do
          socket <- connectTo (TcpAddress "127.0.0.1" (relayPort relay))
          tryIOError (Socket.ByteString.recv socket 1) >>= either (const (pure ())) (`shouldBe` "")
          Socket.close socket
      ports -> expectationFailure (show ports)

  it "serves one connection while another waits for nothing" $
    throughRelay 1 $ \relay connection ->
      withConnection (TcpAddress "127.0.0.1" (relayPort relay)) $ \blocked -> do
        sendRaw blocked (encodeRequest ["BLPOP", "list", "0"])
        (_, reply) <-
          concurrently
            (roundTrip connection >> request connection ["RPUSH", "list", "x"])
            (receiveReply blocked)
        reply `shouldBe` List [Text "list", Text "x"]
