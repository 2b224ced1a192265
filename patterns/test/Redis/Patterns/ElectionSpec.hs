module Redis.Patterns.ElectionSpec (spec) where

import Control.Concurrent.Async
import Control.Concurrent.STM
import Control.Monad (forM_, void)
import Data.ByteString (ByteString)
import Redis
import Redis.Patterns.Election
import Redis.Patterns.Surroundings
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (freeze, thaw)
import Redis.TestKit.Wait
import Test.Hspec

spec :: Spec
spec = do
  it "has one leader at a time, of greater and greater terms, while leaders resign" $
    withRedisAndClient $ \_ client -> leadersResign client

  it "does so in a cluster" $ inCluster leadersResign

  it "has another leader when the first is cancelled, and when it ends" $
    withRedisAndClient $ \_ client -> do
      leading <- newEmptyTMVarIO
      first <- async (withCandidate client (named "first") (\candidate -> term candidate >>= atomically . putTMVar leading >> atomically retry))
      before' <- atomically (takeTMVar leading)
      withCandidate client (named "second") $ \candidate -> do
        atomically (leadership candidate) `shouldReturn` Nothing
        leader <- run client (currentLeader (named "any"))
        leader `shouldBe` Just (Leader "first" before')
        cancel first
        after' <- term candidate
        after' `shouldSatisfy` (> before')
      eventuallyReturns 5 Nothing (run client (currentLeader (named "any")))

  it "nobody believes to lead while another does, when the server is frozen for longer than a lease" $
    withRedisAndClient $ \server client -> do
      withCandidate client (named "one") $ \one -> do
        first <- term one
        withCandidate client (named "two") $ \two -> do
          freeze server
          atomically (leadership one >>= check . (== Nothing))
          atomically (leadership two) `shouldReturn` Nothing
          thaw server
          next <- atomically ((leadership one >>= maybe retry pure) `orElse` (leadership two >>= maybe retry pure))
          next `shouldSatisfy` (> first)

  forM_ [("request", Proxy.ToServer), ("reply", Proxy.ToClient)] $ \(what, direction) ->
    it ("a lost " <> what <> " elects at once all the same") $
      behindProxy $ \_ proxy client -> do
        withCandidate client (election "other") (void . term)
        Proxy.cutAfter proxy direction 0 Proxy.Reset
        -- The lease is 10 s, so waiting for it would take longer.
        within 5 (withCandidate client (election "cut") (void . term))

  it "runs an action for each term, which asks whether it still leads" $
    withRedisAndClient $ \_ client -> do
      terms <- newTVarIO []
      withCandidate client (named "only") $ \candidate -> do
        withAsync (whileLeading candidate (\now leads -> (leads `shouldReturn` True) >> atomically (modifyTVar' terms (now :)))) $ \_ ->
          atomically (readTVar terms >>= check . (>= 3) . length)
      seen <- reverse <$> readTVarIO terms
      zip seen (drop 1 seen) `shouldSatisfy` all (uncurry (<))

named :: ByteString -> Election
named who = (election "leader") {electionLease = milliseconds 400, electionCandidate = who}

term :: Candidate -> IO Term
term candidate = atomically (leadership candidate >>= maybe retry pure)

leadersResign :: Client -> IO ()
leadersResign client = do
  leaders <- newTVarIO (0 :: Int)
  greatest <- newTVarIO (0 :: Int)
  terms <- newTVarIO []
  let stand name = withCandidate client (named name) {electionLease = seconds 1} $ \candidate -> do
        let go = do
              now <- atomically $ do
                enough <- (>= 6) . length <$> readTVar terms
                if enough
                  then pure Nothing
                  else do
                    now <- leadership candidate >>= maybe retry pure
                    modifyTVar' leaders (+ 1)
                    readTVar leaders >>= modifyTVar' greatest . max
                    modifyTVar' terms (now :)
                    pure (Just now)
              forM_ now $ \mine -> do
                atomically (modifyTVar' leaders (subtract 1))
                resign candidate
                atomically (leadership candidate >>= check . (/= Just mine))
                go
        go
  forConcurrently_ ["a", "b", "c"] stand
  readTVarIO greatest `shouldReturn` 1
  seen <- reverse <$> readTVarIO terms
  zip seen (drop 1 seen) `shouldSatisfy` all (uncurry (<))
