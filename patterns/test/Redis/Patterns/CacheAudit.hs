-- | A load on a cache that knows how old each value may be, and the audit of it.
--
-- Each key has a source, whose version only grows. Writers raise the version and invalidate the
-- key. When the invalidation has been answered, they record the version: from then on no reader may
-- get an older one.
module Redis.Patterns.CacheAudit (audited) where

import Control.Concurrent.Async
import Control.Concurrent.STM
import Control.Exception (throwIO, try)
import Control.Monad (forM_, forever, replicateM, replicateM_, unless, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Redis
import Redis.Commands qualified as Redis
import Redis.Patterns.CacheAside
import System.Random (randomRIO)
import Test.Hspec

-- | Audits a cache for each client, while the action disturbs them.
audited :: [Client] -> IO () -> IO ()
audited clients disturbing = do
  caches <- traverse (`newCache` kept) clients
  sources <- replicateM 4 (newTVarIO (0 :: Int))
  invalidated <- replicateM 4 (newTVarIO (0 :: Int))
  wrong <- newIORef []
  reads' <- newTVarIO (0 :: Int)
  computed <- newIORef (0 :: Int)
  let keys = zip3 (map (Char8.pack . show) [0 :: Int ..]) sources invalidated
      anyOf list = (list !!) <$> randomRIO (0, length list - 1)
      writer = do
        (key, source, known) <- anyOf keys
        cache <- anyOf caches
        version <- atomically (stateTVar source (\n -> (n + 1, n + 1)))
        -- Repeats the invalidation until it is answered.
        let again = try (invalidate cache key) >>= either (\lost -> if errorDelivery lost == RefusedBeforeRun then throwIO lost else again) pure
        again
        atomically (modifyTVar' known (max version))
        -- Waits for reads, so that most reads find a value.
        begun <- readTVarIO reads'
        atomically (readTVar reads' >>= check . (> begun + 10))
      reader = do
        (key, source, known) <- anyOf keys
        cache <- anyOf caches
        atLeast <- readTVarIO known
        value <- cached cache key $ do
          version <- readTVarIO source
          atomicModifyIORef' computed (\n -> (n + 1, ()))
          -- A while in which others write.
          forM_ (take 1 clients) $ \client -> replicateM_ 3 (tryRun client (Redis.get "while"))
          pure (Just (Char8.pack (show version)))
        atomically (modifyTVar' reads' (+ 1))
        unless (maybe False ((>= atLeast) . number) value) $
          atomicModifyIORef' wrong (\others -> ((key, atLeast, value) : others, ()))
  withAsync (replicateConcurrently_ 8 (forever reader)) $ \readers ->
    withAsync (replicateConcurrently_ 2 (forever writer)) $ \writers -> do
      link readers
      link writers
      disturbing
      enough <- (+ 500) <$> readTVarIO reads'
      atomically (readTVar reads' >>= check . (> enough))
      cancel writers
      cancel readers
  readIORef wrong `shouldReturn` []
  total <- readTVarIO reads'
  made <- readIORef computed
  -- It must still work as a cache: fewer than half of the reads compute.
  (total, made) `shouldSatisfy` \(all', once) -> once * 2 < all'
  forM_ keys $ \(key, source, known) -> do
    latest <- readTVarIO source
    done <- readTVarIO known
    when (latest == done) . forM_ caches $ \cache -> do
      value <- cached cache key (pure (Just (Char8.pack (show latest))))
      fmap number value `shouldBe` Just latest
  where
    kept = (keeping "audited" plainBytes) {keepingTime = milliseconds 200, keepingEarly = 5, keepingLease = seconds 1}

number :: ByteString -> Int
number = maybe (-1) fst . Char8.readInt
