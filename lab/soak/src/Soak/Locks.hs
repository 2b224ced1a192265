-- | A lock for which several callers contend, and what must be true for it.
--
-- The fencing token of a new holder is greater than each token that was given out when the holder
-- asked for the lock. And two callers are never certain to hold it at the same time, however often
-- its server is frozen, cut or killed, as long as the server keeps its data.
module Soak.Locks
  ( Guarded,
    newGuarded,
    contends,
  )
where

import Control.Concurrent (threadDelay)
import Control.Concurrent.STM
import Control.Exception (try)
import Control.Monad (void, when)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.IORef
import Data.Int (Int64)
import Redis (seconds)
import Redis.Patterns.Lock
import Soak.Audit
import Soak.Book (Keeping (..))
import Soak.Caller
import Soak.Places

data Guarded = Guarded
  { guardedBy :: Lock,
    -- | The greatest token that was given out.
    guardedFence :: IORef Int64,
    -- | The caller that entered last, if it has not left.
    guardedInside :: TVar (Maybe (ByteString, Lease))
  }

-- | A lock whose name begins with this. Its slot keeps what it has acknowledged.
newGuarded :: ByteString -> IO Guarded
newGuarded prefix = Guarded which <$> newIORef 0 <*> newTVarIO Nothing
  where
    which = (lock name) {lockLease = seconds 2, lockTimeout = Just (seconds lockWait)}
    name = head' [named | n <- [1 :: Int ..], let named = prefix <> Char8.pack (show n), keepingOf ("lock:" <> named) == Kept]
    head' = foldr const prefix

-- | The time that a caller waits for the lock, in seconds.
lockWait :: Double
lockWait = 1

-- | Takes the lock, checks the rules, holds it for a while and releases it.
contends :: Guarded -> Caller -> IO ()
contends guarded caller = do
  before <- readIORef (guardedFence guarded)
  ended <- beginning caller "lock"
  entered <- newIORef False
  outcome <- try . withLock (clientOf caller) (guardedBy guarded) $ \hold -> do
    ended limit Nothing
    writeIORef entered True
    when (lockFence hold <= before) $
      wrong ("the token " <> show (lockFence hold) <> " came after " <> show before)
    atomicModifyIORef' (guardedFence guarded) (\greatest -> (max greatest (lockFence hold), ()))
    other <- atomically (swapTVar (guardedInside guarded) (Just (callerName caller, grantLease hold)))
    -- In this order: if both are still held, both were held when the first was checked.
    mine <- isHeld (grantLease hold)
    others <- maybe (pure False) (isHeld . snd) other
    when (mine && others) $ wrong ("held by two: " <> show (fmap fst other))
    stay
    atomically . modifyTVar' (guardedInside guarded) $ \now -> if fmap fst now == Just (callerName caller) then Nothing else now
  inside <- readIORef entered
  case outcome of
    Left problem
      | inside -> wrong ("the lock's end threw " <> show problem)
      | otherwise -> ended limit (Just problem)
    Right Nothing -> ended limit Nothing
    Right (Just ()) -> pure ()
  where
    wrong text = note caller (Wrong (Char8.unpack (lockName (guardedBy guarded)) <> ": " <> text))
    -- The last attempt may begin when the time is over, and has a second of its own.
    limit = lockWait + 1
    -- Seldom for longer than the lease.
    stay = do
      long <- (== 1) <$> dice caller (1, 40)
      void (if long then threadDelay 2500000 else dice caller (1, 20) >>= threadDelay . (* 1000))
