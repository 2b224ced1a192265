-- | A lock for which several contend, and what must be true of it.
--
-- The fencing token of who gets it is greater than each that somebody had been given when it
-- was asked for. And two are never certain to hold it at a time, however frozen, cut or killed
-- its server is, as long as that keeps its data.
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
import Soak.Audit hiding (Held)
import Soak.Book (Keeping (..))
import Soak.Caller
import Soak.Places

data Guarded = Guarded
  { guardedBy :: Lock,
    -- | The greatest token that was given to anybody.
    guardedFence :: IORef Int64,
    -- | Who came last, and has not left.
    guardedInside :: TVar (Maybe (ByteString, Held))
  }

-- | Of a name that begins so; its slot is one that keeps.
newGuarded :: ByteString -> IO Guarded
newGuarded prefix = Guarded which <$> newIORef 0 <*> newTVarIO Nothing
  where
    which = (lock name) {lockLease = seconds 2, lockPatience = Just (seconds patience)}
    name = head' [named | n <- [1 :: Int ..], let named = prefix <> Char8.pack (show n), keepingOf ("lock:" <> named) == Kept]
    head' = foldr const prefix

-- | Seconds.
patience :: Double
patience = 1

-- | Takes the lock, looks around, stays for a while and leaves.
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
    other <- atomically (swapTVar (guardedInside guarded) (Just (callerName caller, holdLease hold)))
    -- In this order: if both say yes, both held it when the first was asked.
    mine <- stillHeld (holdLease hold)
    others <- maybe (pure False) (stillHeld . snd) other
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
    -- The last attempt may begin when patience ends, and has a second of its own.
    limit = patience + 1
    -- Seldom for longer than the lease.
    stay = do
      long <- (== 1) <$> dice caller (1, 40)
      void (if long then threadDelay 2500000 else dice caller (1, 20) >>= threadDelay . (* 1000))
