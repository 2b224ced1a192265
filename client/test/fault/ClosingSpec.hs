-- | Clients that are closed while connections are being opened.
--
-- Two exceptions on their way to one thread crash the runtime of GHC (docs/ghc-throwto.md). So a
-- thread that opens a connection must never get two, even if its time is over, its caller gives up
-- and its client is closed at once.
module ClosingSpec (spec) where

import Control.Concurrent (myThreadId)
import Control.Concurrent.Async (Async, async, cancel, wait)
import Control.Concurrent.STM
import Control.Exception (SomeException, try)
import Control.Monad (forM, replicateM_, void)
import Data.List (nub)
import GHC.Clock (getMonotonicTime)
import Harness
import Redis
import Redis.Commands qualified as Commands
import Redis.TestKit.Wait (eventually, within)
import System.Random (randomRIO)
import Test.Hspec

spec :: Spec
spec = describe "closing a client while connections are being opened" $ do
  it "throws once to what opens a shared one, though its time is over, too" $
    throwsOnce (`tryRun` Commands.ping) (\_ -> pure ())

  it "throws once to what opens a lent one, though its time is over and its caller has given up, too" $
    throwsOnce (\client -> tryRun client (void (Commands.blpop (pure "list") Nothing))) cancel

  it "ends every command while connects run out of time, many times" $
    neverAnswering $ \config -> leavingNothing $ do
      ended <- replicateEnds 300 config
      length ended `shouldBe` 300 * 12
      filter (/= Just NotSent) ended `shouldBe` []

-- | Checks that a thread that opens a connection gets one exception. The credentials come from an
-- action that catches each exception and goes on.
throwsOnce :: (Client -> IO (Either Error ())) -> (Async (Either Error ()) -> IO ()) -> Expectation
throwsOnce command givingUp =
  neverAnswering $ \config -> leavingNothing . replicateM_ 10 $ do
    thrown <- newTVarIO []
    mayEnd <- newTVarIO False
    let stubborn =
          try (atomically (readTVar mayEnd >>= check)) >>= \case
            Right () -> pure (issuedCredentials (Credentials Nothing (toSecret "secret")))
            Left (_ :: SomeException) -> myThreadId >>= (\thread -> atomically (modifyTVar' thrown (thread :))) >> stubborn
    client <- newClient (setConnectTimeout (seconds 0.01) . setCommandTimeout (Just (seconds 0.1)) $ setCredentialsFrom stubborn config)
    caller <- async (command client)
    -- The time to connect is over.
    atomically (readTVar thrown >>= check . not . null)
    others <- sequence [async (givingUp caller), async (closeClient client)]
    eventually 5 "the client is closed" $ (== Left ClientClosed) <$> tryRun client Commands.ping
    -- Further exceptions would arrive now.
    began <- getMonotonicTime
    eventually 5 "another exception, or a while" $ do
      now <- getMonotonicTime
      twice <- (\threads -> threads /= nub threads) <$> readTVarIO thrown
      pure (twice || now - began > 0.05)
    atomically (writeTVar mayEnd True)
    within 5 (mapM_ wait others)
    threads <- readTVarIO thrown
    threads `shouldBe` nub threads

-- | Runs this many clients, one after the other, with twelve commands each. Each client is closed
-- when some of its commands have ended. Returns what the callers may conclude.
replicateEnds :: Int -> Config -> IO [Maybe Delivery]
replicateEnds rounds config =
  concat
    <$> forM
      [1 .. rounds]
      ( \_ -> do
          limit <- randomRIO (0.001, 0.004)
          ends <- newTVarIO (0 :: Int)
          client <- newClient (setConnectTimeout (seconds limit) . setMaxAttempts 1 $ config)
          let counted action = action <* atomically (modifyTVar' ends (+ 1))
          shared <- forM [1 .. 6 :: Int] $ \_ -> async (counted (deliveryOf <$> tryRun client Commands.ping))
          lent <- forM [1 .. 6 :: Int] $ \_ -> async (counted (deliveryOf <$> tryRun client (Commands.blpop (pure "list") Nothing)))
          enough <- randomRIO (0, 6)
          within 5 (atomically (readTVar ends >>= check . (>= enough)))
          within 5 (closeClient client)
          within 5 (mapM wait (shared <> lent))
      )
