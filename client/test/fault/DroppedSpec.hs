-- | Clients that nobody closes.
module DroppedSpec (spec) where

import Control.Concurrent (yield)
import Control.Concurrent.Async (withAsync)
import Control.Concurrent.Async qualified as Async
import Control.Concurrent.MVar
import Control.Monad (replicateM_)
import Data.ByteString (ByteString)
import Data.IORef (mkWeakIORef, newIORef)
import GHC.Conc (ThreadStatus (..), threadStatus)
import Harness
import Redis
import Redis.Commands qualified as Commands
import Redis.TestKit.Proxy (Proxy)
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (Server, serverDefaults, withServer)
import Redis.TestKit.Server qualified as Server
import Redis.TestKit.Wait (eventually, eventuallyReturns, within)
import Redis.Transaction
import System.Mem (performMajorGC)
import Test.Hspec

spec :: Spec
spec = describe "a client that is dropped" $ do
  it "is closed when the collector notices, with its threads and connections" $
    withServer serverDefaults $ \server -> leavingNothing . within 30 $ do
      used server
      eventuallyReturns 20 0 (performMajorGC >> Server.connectedClients server)

  it "is not closed while somebody waits for a command" $
    behindProxy $ \server proxy -> leavingNothing . within 30 $ do
      halts <- newEmptyMVar
      withAsync (reading halts proxy) $ \waiter -> do
        takeMVar halts
        eventually 5 "somebody waits" $ isBlocked <$> threadStatus (Async.asyncThreadId waiter)
        repeatedAfterCollecting server proxy
        Async.wait waiter `shouldReturn` Right (Just "value")
      collected

  it "is not closed while somebody waits for a node" $
    behindProxy $ \_ proxy -> leavingNothing . within 30 $ do
      made <- newEmptyMVar
      withAsync (waiting made proxy) $ \waiter -> do
        takeMVar made
        eventually 5 "somebody waits" $ isBlocked <$> threadStatus (Async.asyncThreadId waiter)
        collected
        Async.wait waiter >>= (`shouldSatisfy` either (/= ClientClosed) (const False))
      -- A proxy that is frozen does not notice that the client hangs up.
      Proxy.thaw proxy Proxy.ToServer
      collected

  it "is not closed while somebody holds what was submitted" $
    behindProxy $ \server proxy -> leavingNothing . within 30 $ do
      submitted <- left proxy
      repeatedAfterCollecting server proxy
      tryAwaitReply submitted `shouldReturn` Right (Just "value")
      collected

  it "is not closed while somebody holds a transaction" $
    behindProxy $ \server proxy -> leavingNothing . within 30 $ do
      submitted <- leftTransaction proxy
      repeatedAfterCollecting server proxy
      tryAwaitReply submitted `shouldReturn` Right (Just "value")
      collected

-- | Leaves behind a client with an open connection.
used :: Server -> IO ()
used server = do
  client <- newClient (addressed server)
  run client Commands.ping
{-# NOINLINE used #-}

-- | A client with an open connection on which nothing arrives any more. Its timeout is longer than
-- these tests take, so only a test breaks the connection.
halted :: Proxy -> IO Client
halted proxy = do
  client <- newClient . single . setMaxAttempts 20 . setSilenceLimit Nothing . setCommandTimeout (Just (seconds 25)) $ through proxy
  run client Commands.ping
  Proxy.freeze proxy Proxy.ToServer
  pure client

-- | Waits for a reply, and does nothing else with the client.
reading :: MVar () -> Proxy -> IO (Either Error (Maybe ByteString))
reading halts proxy = do
  client <- halted proxy
  putMVar halts ()
  tryRun client (Commands.get "key")
{-# NOINLINE reading #-}

-- | Waits for a node of a cluster, none of whose nodes answers, and does nothing else with the client.
waiting :: MVar () -> Proxy -> IO (Either Error (Maybe ByteString))
waiting made proxy = do
  Proxy.freeze proxy Proxy.ToServer
  client <- newClient . setCommandTimeout (Just (seconds 1)) . quick $ clusterConfig (pure (TcpEndpoint "127.0.0.1" (fromIntegral (Proxy.proxyPort proxy))))
  putMVar made ()
  tryRun client (Commands.get "key")
{-# NOINLINE waiting #-}

-- | Returns a command in flight, and keeps nothing else of its client.
left :: Proxy -> IO (Pending (Maybe ByteString))
left proxy = do
  client <- halted proxy
  submit client (Commands.get "key")
{-# NOINLINE left #-}

-- | Returns a transaction in flight, and keeps nothing else of its client. The transaction only
-- reads, so the client repeats it.
leftTransaction :: Proxy -> IO (Pending (Maybe ByteString))
leftTransaction proxy = do
  client <- halted proxy
  submitTransaction client (queued (Commands.get "key"))
{-# NOINLINE leftTransaction #-}

isBlocked :: ThreadStatus -> Bool
isBlocked = \case
  ThreadBlocked _ -> True
  _ -> False

-- | Breaks the connection of a command in flight, and lets the next one be opened after another collection. Only a
-- client that is still open gets the command answered.
repeatedAfterCollecting :: Server -> Proxy -> IO ()
repeatedAfterCollecting server proxy = do
  _ <- Server.command server ["SET", "key", "value"]
  eventuallyReturns 5 1 (Server.connectedClients server)
  collected
  Proxy.cut proxy Proxy.Reset
  collected
  Proxy.thaw proxy Proxy.ToServer

-- | Blocks until the finalisers of unreachable values have run.
collected :: IO ()
collected = replicateM_ 3 $ do
  noticed <- newEmptyMVar
  canary <- newIORef ()
  _ <- mkWeakIORef canary (putMVar noticed ())
  eventuallyReturns 10 True (performMajorGC >> yield >> (not <$> isEmptyMVar noticed))
