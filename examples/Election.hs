-- | An election: one of several processes leads, and another follows when it steps down.
module Election (main) where

import Control.Concurrent.Async (withAsync)
import Control.Concurrent.MVar
import Control.Concurrent.STM
import Redis
import Redis.Patterns.Election
import Settings (configFromArguments)

main :: IO ()
main = do
  config <- configFromArguments "redis://127.0.0.1:6379"
  withClient config $ \client -> do
    let standing name = (election "example") {electionCandidate = name}
    -- Two candidates in one process here; in life each is in a process of its own.
    withCandidate client (standing "first") $ \first -> do
      earlier <- atomically (leadership first >>= maybe retry pure)
      withCandidate client (standing "second") $ \second -> do
        leader <- run client (currentLeader (election "example"))
        print (leaderCandidate <$> leader)

        -- The second one works as soon as it leads. Its term is greater: a store that remembers
        -- the greatest term can refuse what an earlier leader writes too late.
        worked <- newEmptyMVar
        withAsync (whileLeading second (\term leads -> leads >>= putMVar worked . (,) (term > earlier))) $ \_ -> do
          resign first
          takeMVar worked >>= print
