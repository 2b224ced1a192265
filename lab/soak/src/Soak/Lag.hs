-- | How long this process was kept from running, by the machine or by itself.
--
-- A thread on each capability tries to run every twenty milliseconds, and its delays are added up.
-- So a caller that was late can be distinguished from one that could not have run sooner.
module Soak.Lag
  ( Lag,
    withLag,
    lagSoFar,
  )
where

import Control.Concurrent (getNumCapabilities, threadDelay)
import Control.Concurrent.Async (asyncOn, cancel)
import Control.Exception (bracket)
import Control.Monad (forM, forever)
import Data.IORef
import GHC.Clock (getMonotonicTime)

newtype Lag = Lag [IORef Tick]

-- | Seconds of delay so far, and the time of the last run.
data Tick = Tick Double Double

-- | Measures for the length of an action.
withLag :: (Lag -> IO a) -> IO a
withLag action = bracket start (mapM_ (cancel . snd)) (action . Lag . map fst)
  where
    start = do
      capabilities <- getNumCapabilities
      forM [0 .. capabilities - 1] $ \capability -> do
        now <- getMonotonicTime
        tick <- newIORef (Tick 0 now)
        thread <- asyncOn capability . forever $ do
          threadDelay 20000
          at <- getMonotonicTime
          modifyIORef' tick (\old -> Tick (total old at) at)
        pure (tick, thread)

-- | Seconds of delay of all threads together since the start. The difference of two values is the
-- delay in between.
lagSoFar :: Lag -> IO Double
lagSoFar (Lag ticks) = do
  now <- getMonotonicTime
  sum <$> traverse (fmap (`total` now) . readIORef) ticks

-- Ten milliseconds are normal for any scheduler, and do not count.
total :: Tick -> Double -> Double
total (Tick late ran) now = late + max 0 (now - ran - 0.03)
