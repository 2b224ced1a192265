-- | Many callers that want one lock, and the resource that it guards.
module Redis.Patterns.Contention
  ( patient,
    Guarded,
    newGuarded,
    enter,
    verifyGuarded,
    contended,
    contendedWhile,
  )
where

import Control.Concurrent.Async
import Control.Concurrent.STM
import Control.Exception (bracket_)
import Control.Monad (forM, forM_, replicateM, void)
import Data.Int (Int64)
import Data.Maybe (catMaybes)
import Redis
import Redis.Patterns.Lock
import Test.Hspec

patient :: Lock
patient = (lock "many") {lockTimeout = Nothing, lockLease = seconds 5}

-- | The guarded resource: how many callers are inside, their fencing tokens with the last first,
-- and the most that were ever inside.
data Guarded = Guarded (TVar Int) (TVar [Int64]) (TVar Int)

newGuarded :: IO Guarded
newGuarded = Guarded <$> newTVarIO 0 <*> newTVarIO [] <*> newTVarIO 0

enter :: Guarded -> LockGrant -> IO a -> IO a
enter (Guarded inside order most) hold =
  bracket_
    ( atomically $ do
        modifyTVar' inside (+ 1)
        modifyTVar' order (lockFence hold :)
        readTVar inside >>= modifyTVar' most . max
    )
    (atomically (modifyTVar' inside (subtract 1)))

verifyGuarded :: Guarded -> IO ()
verifyGuarded (Guarded _ order most) = do
  readTVarIO most `shouldReturn` 1
  fences <- reverse <$> readTVarIO order
  zip fences (drop 1 fences) `shouldSatisfy` all (uncurry (<))

contended :: Int -> [Client] -> IO ()
contended count clients = do
  guarded <- newGuarded
  results <- forConcurrently (concatMap (replicate count) clients) $ \client ->
    forM [1 .. 3 :: Int] $ \_ -> withLock client patient (\hold -> enter guarded hold (isHeld (grantLease hold)))
  catMaybes (concat results) `shouldBe` replicate (count * length clients * 3) True
  verifyGuarded guarded

-- | Four callers take the lock again and again, until the action is over and each of them has
-- entered twice more.
contendedWhile :: Client -> IO a -> IO a
contendedWhile client action = do
  guarded <- newGuarded
  over <- newTVarIO False
  entries <- replicateM 4 (newTVarIO (0 :: Int))
  let go entered = do
        void (withLock client patient (\hold -> enter guarded hold (isHeld (grantLease hold) `shouldReturn` True)))
        atomically (modifyTVar' entered (+ 1))
        ended <- readTVarIO over
        if ended then pure () else go entered
  withAsync (forConcurrently_ entries go) $ \contenders -> do
    link contenders
    result <- action
    -- Each by itself: three that enter must not hide a fourth that never does.
    forM_ entries $ \entered -> do
      before' <- readTVarIO entered
      atomically (readTVar entered >>= check . (> before' + 1))
    atomically (writeTVar over True)
    wait contenders
    result <$ verifyGuarded guarded
