-- | A semaphore: never more than two exports at a time, in all processes together.
module Semaphore (main) where

import Control.Concurrent (threadDelay)
import Control.Concurrent.Async (forConcurrently_)
import Control.Concurrent.STM
import Redis
import Redis.Patterns.Semaphore
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    let exports = (semaphore "example" 2) {semaphoreTimeout = Nothing}

    -- Eight threads want to export. Each waits for a permit, however long it takes.
    running <- newTVarIO (0 :: Int)
    most <- newTVarIO 0
    forConcurrently_ [1 .. 8 :: Int] $ \_ ->
      withPermit client exports $ \_ -> do
        atomically $ do
          modifyTVar' running (+ 1)
          readTVar running >>= modifyTVar' most . max
        threadDelay 2000
        atomically (modifyTVar' running (subtract 1))
    greatest <- readTVarIO most
    print (greatest <= 2)

    -- A caller that does not want to wait is told that all permits are taken.
    outcome <- withPermit client exports $ \_ ->
      withPermit client exports $ \_ -> do
        taken <- run client (permitsTaken exports)
        third <- withPermit client exports {semaphoreTimeout = Just mempty} (const (pure ()))
        pure (taken, third)
    print outcome
