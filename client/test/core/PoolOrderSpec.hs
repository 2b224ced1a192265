-- | A thread that the runtime moves to another capability changes to that
-- capability's connection, but only when nothing of its own is in flight.
--
-- The server is stopped while the thread submits and moves there and back, so
-- that its commands are in flight with certainty. A pool that let them go over
-- two connections would have the third part read together with the first.
module PoolOrderSpec (spec) where

import Control.Concurrent
import Control.Exception (bracket, bracket_, finally, throwIO)
import Control.Monad (forM, forM_, unless, void)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Data.Maybe (isNothing)
import Peer (within)
import Redis.Config
import Redis.Internal.Network.Connect (newConnector)
import Redis.Internal.Network.Handshake (ConnectionRole (ForPrimary))
import Redis.Internal.Network.MultiplexPool
import Redis.Internal.Network.OpenConnection (ConnectionSetup (..))
import Redis.Internal.Network.ResponseSlot
import Redis.Internal.Protocol.Encode (request)
import Redis.TestKit.Server
import Redis.Value
import Test.Hspec hiding (after, before)

spec :: Spec
spec = describe "a pool of several connections" . beforeAll_ (setNumCapabilities 2) $ do
  it "runs what one thread submits in that order, even if the runtime moves it in between" . within 25 $
    withServer defaultServerOptions $ \server ->
      withPool server $ \pool -> do
        openBoth pool
        forM_ [1 .. rounds] $ \number -> do
          let key = Char8.pack ("order-" <> show number)
          (moves, slots) <- inThread . bracket_ (freeze server) (thaw server) $ do
            first <- submitted pool key [1 .. 20]
            moveAway
            inFlight <- allOpen first
            second <- submitted pool key [21 .. 40]
            moveAway
            inFlight' <- allOpen (first <> second)
            third <- submitted pool key [41 .. 60]
            pure ([inFlight, inFlight'], first <> second <> third)
          -- Else nothing was shown.
          moves `shouldBe` [True, True]
          outcomes <- mapM waitSlotResult slots
          [length' | Reply (Integer length') <- outcomes] `shouldBe` [1 .. 60]
          listed <- submitToNode pool (request ["LRANGE", key, "0", "-1"])
          [Char8.unpack text | Reply (Array texts) <- [listed], BulkString text <- texts] `shouldBe` map show [1 .. 60 :: Int]
  where
    rounds = 10 :: Int
    submitted pool key numbers =
      forM numbers $ \n -> submitToNodeAsync pool (request ["RPUSH", key, Char8.pack (show (n :: Int))])
    allOpen slots = all isNothing <$> mapM pollSlotResult slots

withPool :: Server -> (MultiplexPool -> IO a) -> IO a
withPool server = bracket open (closeMultiplexPool 0)
  where
    config = setMuxCount (Just 2) (standaloneConfig (Char8.pack (serverHost server)) (fromIntegral (serverPort server)))
    open = do
      connector <- newConnector config >>= either (throwIO . userError . show) pure
      let setup = ConnectionSetup {setupConfig = config, setupConnector = connector, setupOnPush = \_ _ -> pure ()}
      newMultiplexPool setup ForPrimary (const (pure ())) (TcpEndpoint (Char8.pack (serverHost server)) (fromIntegral (serverPort server)))

-- | A stopped server accepts no new connection.
openBoth :: MultiplexPool -> IO ()
openBoth pool = forM_ [0, 1] $ \place -> do
  said <- newEmptyMVar
  void (forkOn place (submitToNode pool (request ["PING"]) >>= putMVar said))
  takeMVar said >>= \case
    Reply (SimpleString "PONG") -> pure ()
    Reply other -> expectationFailure (show other)
    Failure failure -> throwIO failure

-- | In a thread that the runtime may move, which a test's own may not be.
inThread :: IO a -> IO a
inThread action = do
  end <- newEmptyMVar
  thread <- forkFinally action (putMVar end)
  (takeMVar end >>= either throwIO pure) `finally` killThread thread

here :: IO Int
here = fst <$> (myThreadId >>= threadCapability)

-- | Makes the runtime move the calling thread to another capability: one that
-- must stay keeps this one busy, so the idle one is given the calling thread.
moveAway :: IO ()
moveAway = do
  place <- here
  over <- newIORef False
  let occupy = readIORef over >>= \ended -> unless ended (yield >> occupy)
      untilMoved = here >>= \now -> unless (now /= place) (yield >> untilMoved)
  bracket_ (forkOn place occupy) (writeIORef over True) (within 5 untilMoved)
