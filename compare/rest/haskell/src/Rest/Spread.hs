{-# LANGUAGE RankNTypes #-}

-- | The choice of the capability that serves a connection.
--
-- By itself, the runtime moves threads to whichever capability is idle for a moment. A request that
-- consists of little more than a round trip to Redis then costs a third more processor time. So a
-- connection is served on the capability on which it began, by threads that share a connection to
-- Redis and its reader there.
module Rest.Spread
  ( Spread,
    newSpread,
    forkSpread,
    capabilityFor,
  )
where

import Control.Concurrent (getNumCapabilities)
import Control.Concurrent.Async (asyncOnWithUnmask)
import Control.Exception (finally, mask_)
import Control.Monad (void)
import Data.IORef (IORef, atomicModifyIORef', newIORef)
import Data.List.NonEmpty (NonEmpty (..))
import Data.List.NonEmpty qualified as NonEmpty

-- | The number of connections that each capability serves.
newtype Spread = Spread (IORef (NonEmpty Int))

-- | No connections yet.
newSpread :: IO Spread
newSpread = do
  capabilities <- getNumCapabilities
  Spread <$> newIORef (0 :| replicate (capabilities - 1) 0)

-- | Serves one more connection, in a new thread that begins masked.
forkSpread :: Spread -> ((forall a. IO a -> IO a) -> IO ()) -> IO ()
forkSpread (Spread counts) serve = mask_ $ do
  capability <- atomicModifyIORef' counts $ \held -> let chosen = capabilityFor held in (changed (+ 1) chosen held, chosen)
  void (asyncOnWithUnmask capability (\restore -> serve restore `finally` leave capability))
  where
    leave capability = atomicModifyIORef' counts (\held -> (changed (subtract 1) capability held, ()))
    changed change place = NonEmpty.zipWith (\number count -> if number == place then change count else count) (0 :| [1 ..])

-- | The first capability that has few connections, or else the one with the fewest. Two
-- capabilities with few connections each wake each other, and Redis twice as often, for little
-- gain.
capabilityFor :: NonEmpty Int -> Int
capabilityFor held = case NonEmpty.filter ((< few) . snd) numbered of
  (number, _) : _ -> number
  [] -> fst (minimumOn snd numbered)
  where
    numbered = NonEmpty.zip (0 :| [1 ..]) held
    minimumOn key = foldr1 (\one other -> if key one <= key other then one else other)
    few = 16
