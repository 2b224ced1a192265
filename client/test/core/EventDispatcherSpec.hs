-- | The event dispatcher, which calls the user's hooks, by itself: in order, one after the other,
-- whatever the hooks do.
module EventDispatcherSpec (spec) where

import Control.Concurrent
import Control.Exception
import Control.Monad (forM_)
import Data.IORef
import Peer (eventually, within)
import Redis.Error
import Redis.Internal.Client.EventDispatcher
import Redis.Internal.Hooks
import Redis.Value
import Test.Hspec

spec :: Spec
spec = describe "the dispatcher" $ do
  it "tells events one after the other, in the order in which they came" . within 10 $ do
    gate <- newEmptyMVar
    told <- newIORef []
    dispatcher <- telling (\event -> readMVar gate *> modifyIORef' told (event :))
    forM_ [1 .. 100] (push dispatcher)
    readIORef told `shouldReturn` []
    putMVar gate ()
    awaitDispatched 10 dispatcher
    reverse <$> readIORef told `shouldReturn` map Integer [1 .. 100]

  it "tells the next one whatever a hook throws" . within 10 $
    forM_ [toException (ErrorCall "hook"), toException ThreadKilled, toException StackOverflow] $ \thrown -> do
      told <- newIORef []
      dispatcher <- telling (\event -> modifyIORef' told (event :) *> throwIO thrown)
      forM_ [1 .. 3] $ \n -> do
        push dispatcher n
        eventually ((== fromIntegral n) . length <$> readIORef told)
      push dispatcher 4
      awaitDispatched 10 dispatcher
      reverse <$> readIORef told `shouldReturn` map Integer [1 .. 4]

  it "calls a hook that can be interrupted, whoever has something to tell" . within 10 $ do
    states <- newIORef []
    dispatcher <- telling (\_ -> getMaskingState >>= \state -> modifyIORef' states (state :))
    -- Each push starts the hooks' thread anew.
    forM_ [id, mask_, uninterruptibleMask_] $ \whose -> whose (push dispatcher 1) *> awaitDispatched 10 dispatcher
    readIORef states `shouldReturn` [Unmasked, Unmasked, Unmasked]
  where
    telling hook = newEventDispatcher noHooks {hookPush = Just (const hook)}
    push dispatcher number = forM_ (hookPush (dispatchedHooks dispatcher)) $ \hook -> hook (TcpEndpoint "here" 1) (Integer number)
