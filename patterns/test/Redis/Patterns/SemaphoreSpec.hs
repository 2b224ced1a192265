module Redis.Patterns.SemaphoreSpec (spec) where

import Control.Concurrent.Async
import Control.Concurrent.STM
import Control.Exception (bracket_, try)
import Control.Monad (forM, forM_, replicateM, void)
import Data.Maybe (catMaybes)
import Data.Time.Clock.POSIX (POSIXTime, utcTimeToPOSIXSeconds)
import Redis
import Redis.Commands qualified as Redis
import Redis.Patterns.Semaphore
import Redis.Patterns.Surroundings
import Redis.TestKit.Proxy qualified as Proxy
import Redis.TestKit.Server (freeze, thaw)
import Redis.TestKit.Wait
import Test.Hspec hiding (after, before)

spec :: Spec
spec = do
  describe "many who ask" $ do
    it "get no more permits than there are, and each gets one in the end" $
      withRedis $ \server ->
        withClient (addressed server) $ \one -> withClient (addressed server) $ \other ->
          contended 15 [one, other]

    it "do so in a cluster" $ inCluster $ \client -> contended 12 [client]

    it "do so while holders are cancelled and connections are cut" $
      behindProxy $ \_ proxy client -> do
        crowd <- newCrowd
        forM_ [1 .. 5 :: Int] $ \turn -> do
          entered <- newTVarIO (0 :: Int)
          stuck <- forM [1 .. 3 :: Int] $ \_ ->
            async (withPermit client patient (const (inside crowd (atomically (modifyTVar' entered (+ 1)) *> atomically retry))))
          atomically (readTVar entered >>= check . (== 3))
          withAsync (replicateConcurrently 6 (withPermit client patient (const (inside crowd (pure ()))))) $ \others -> do
            Proxy.cutAfter proxy Proxy.ToClient (turn * 5) Proxy.Reset
            mapM_ cancel stuck
            (length . catMaybes <$> wait others) `shouldReturn` 6
        most crowd `shouldReturn` 3
        eventuallyReturns 5 0 (run client (permitsTaken patient))

  it "is told at once that all are taken, if it does not want to wait" $
    withRedisAndClient $ \_ client -> do
      held <- withPermit client (semaphore "one" 1) $ \_ ->
        (,) <$> withPermit client (semaphore "one" 1) {semaphoreTimeout = Just mempty} (const (pure ())) <*> run client (permitsTaken (semaphore "one" 1))
      held `shouldBe` Just (Nothing, 1)

  it "a permit is renewed while it is used" $
    withRedisAndClient $ \server client -> do
      kept <- withPermit client brief $ \held -> do
        before <- evaluations server
        eventually 10 "six renewals" ((>= before + 6) <$> evaluations server)
        taken <- withPermit client brief {semaphoreTimeout = Just mempty} (const (pure ()))
        (,) taken <$> isHeld held
      kept `shouldBe` Just (Nothing, True)

  it "a permit lasts no fraction of a millisecond less than its lease" $
    withRedisAndClient $ \_ client -> do
      lasting <- replicateM 20 $ do
        began <- inMicros . utcTimeToPOSIXSeconds <$> run client Redis.time
        withPermit client (semaphore "short" 1) {semaphoreLease = seconds 60} $ \_ -> do
          ends <- run client (Redis.zrangeWithscores "semaphore:short" 0 (-1))
          pure [inMicros (realToFrac end / 1000) >= began + 60000000 | (_, end) <- ends]
      lasting `shouldBe` replicate 20 (Just [True])

  it "a permit ends for its holder before the next one has it, when the server was frozen" $
    withRedisAndClient $ \server client -> do
      handed <- withPermit client brief $ \held -> do
        freeze server
        atomically (awaitLeaseLost held)
        isHeld held `shouldReturn` False
        thaw server
        withPermit client brief (const (pure ()))
      handed `shouldBe` Just (Just ())

  forM_ [("request", Proxy.ToServer), ("reply", Proxy.ToClient)] $ \(what, direction) ->
    it ("a lost " <> what <> " takes no second permit and leaves none behind") $
      behindProxy $ \_ proxy client -> do
        void (withPermit client (semaphore "other" 1) (const (pure ())))
        seen <- replicateM 3 $ do
          Proxy.cutAfter proxy direction 0 Proxy.Reset
          -- The lease is 10 s: a caller that took its own permit for another's would wait that
          -- long.
          within 5 . withPermit client (semaphore "cut" 1) $ \_ -> run client (permitsTaken (semaphore "cut" 1))
        seen `shouldBe` replicate 3 (Just 1)
        run client (permitsTaken (semaphore "cut" 1)) `shouldReturn` 0

  it "what a silent server may have given is taken back" $
    behindProxy $ \server _ client -> do
      void (withPermit client (semaphore "doubt" 1) (const (pure ())))
      freeze server
      failed <- try (withPermit client (semaphore "doubt" 1) {semaphoreLease = seconds 60, semaphoreTimeout = Just mempty} (const (pure ())))
      either errorDelivery (const NotSent) failed `shouldBe` MaybeExecuted
      thaw server
      eventuallyReturns 10 0 (run client (permitsTaken (semaphore "doubt" 1)))
  where
    inMicros = round . (* 1000000) :: POSIXTime -> Integer
    brief = (semaphore "brief" 1) {semaphoreLease = milliseconds 400}

patient :: Semaphore
patient = (semaphore "many" 3) {semaphoreTimeout = Nothing, semaphoreLease = seconds 5}

-- | How many holders are inside, and the most that ever were.
data Crowd = Crowd (TVar Int) (TVar Int)

newCrowd :: IO Crowd
newCrowd = Crowd <$> newTVarIO 0 <*> newTVarIO 0

most :: Crowd -> IO Int
most (Crowd _ greatest) = readTVarIO greatest

inside :: Crowd -> IO a -> IO a
inside (Crowd now greatest) =
  bracket_
    (atomically (modifyTVar' now (+ 1) *> readTVar now >>= modifyTVar' greatest . max))
    (atomically (modifyTVar' now (subtract 1)))

contended :: Int -> [Client] -> IO ()
contended count clients = do
  crowd <- newCrowd
  results <- forConcurrently (concatMap (replicate count) clients) $ \client ->
    replicateM 3 (withPermit client patient (inside crowd . isHeld))
  catMaybes (concat results) `shouldBe` replicate (count * length clients * 3) True
  -- The test with holders that stay shows that three can be inside together.
  most crowd >>= (`shouldSatisfy` (<= 3))
