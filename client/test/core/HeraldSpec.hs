-- | The herald, which calls the user's hooks, by itself: in order, one after the other, whatever
-- the hooks do.
module HeraldSpec (spec) where

import Control.Concurrent
import Control.Exception
import Control.Monad (forM_)
import Data.IORef
import Peer (eventually, within)
import Redis.Error
import Redis.Internal.Client.Herald
import Redis.Internal.Hooks
import Redis.Value
import Test.Hspec

spec :: Spec
spec = describe "the herald" $ do
  it "tells events one after the other, in the order in which they came" . within 10 $ do
    gate <- newEmptyMVar
    told <- newIORef []
    herald <- telling (\event -> readMVar gate *> modifyIORef' told (event :))
    forM_ [1 .. 100] (push herald)
    readIORef told `shouldReturn` []
    putMVar gate ()
    awaitTold 10 herald
    reverse <$> readIORef told `shouldReturn` map Integer [1 .. 100]

  it "tells the next one whatever a hook throws" . within 10 $
    forM_ [toException (ErrorCall "hook"), toException ThreadKilled, toException StackOverflow] $ \thrown -> do
      told <- newIORef []
      herald <- telling (\event -> modifyIORef' told (event :) *> throwIO thrown)
      forM_ [1 .. 3] $ \n -> do
        push herald n
        eventually ((== fromIntegral n) . length <$> readIORef told)
      push herald 4
      awaitTold 10 herald
      reverse <$> readIORef told `shouldReturn` map Integer [1 .. 4]

  it "calls a hook that can be interrupted, whoever has something to tell" . within 10 $ do
    states <- newIORef []
    herald <- telling (\_ -> getMaskingState >>= \state -> modifyIORef' states (state :))
    -- Each push starts the hooks' thread anew.
    forM_ [id, mask_, uninterruptibleMask_] $ \whose -> whose (push herald 1) *> awaitTold 10 herald
    readIORef states `shouldReturn` [Unmasked, Unmasked, Unmasked]
  where
    telling hook = newHerald noHooks {hookPush = Just (const hook)}
    push herald number = forM_ (hookPush (heraldedHooks herald)) $ \hook -> hook (TcpEndpoint "here" 1) (Integer number)
