-- | How long this process was kept from running: by the machine, or by itself.
--
-- A thread on each capability wants to run every twenty milliseconds. What it comes
-- late is added up, so that a caller that came late can be told from one that could
-- not have come sooner.
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

-- | Seconds late so far, and when it last ran.
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

-- | Seconds that the threads came late since the start, all together; the
-- difference of two is what happened in between.
lagSoFar :: Lag -> IO Double
lagSoFar (Lag ticks) = do
  now <- getMonotonicTime
  sum <$> traverse (fmap (`total` now) . readIORef) ticks

-- What any scheduler takes, up to ten milliseconds, is none.
total :: Tick -> Double -> Double
total (Tick late ran) now = late + max 0 (now - ran - 0.03)
