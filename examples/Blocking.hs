-- | Commands that wait on the server, and a connection for one caller alone.
module Blocking (main) where

import Control.Concurrent (forkIO)
import Control.Concurrent.MVar
import Control.Monad (void)
import Redis
import Redis.Commands qualified as Redis
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    -- BLPOP keeps its connection waiting, so the client runs it on a dedicated connection. The
    -- caller does not have to request that: the client knows it from the command.
    received <- newEmptyMVar
    void . forkIO $ tryRun client (Redis.blpop (pure "example:queue") (Just (seconds 5))) >>= putMVar received

    -- Meanwhile other callers use the client undisturbed.
    void (run client (Redis.rpush "example:queue" (pure "job 1")))
    takeMVar received >>= print

    -- SELECT, MULTI, WATCH and similar commands change the state of a connection. They are refused
    -- on shared connections …
    refused <- tryRun client (raw ["MULTI"])
    print refused

    -- … and run on a connection that is lent for the duration of an action.
    balance <- withDedicated client (AtKey "example:balance") $ \connection -> do
      runOn connection (Redis.set "example:balance" "10")
      void (runOn connection (raw ["WATCH", "example:balance"]))
      void (runOn connection (raw ["MULTI"]))
      void (runOn connection (raw ["DECRBY", "example:balance", "3"]))
      -- Null if another client has written the key since WATCH.
      runOn connection (raw ["EXEC"])
    print balance
