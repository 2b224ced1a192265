-- | Processor time and allocation of something that is done many times.
module Bench.Timed
  ( Figures (..),
    timed,
  )
where

import GHC.Conc (getAllocationCounter)
import System.CPUTime (getCPUTime)
import System.Mem (performMajorGC)

-- | Of all runs together.
data Figures = Figures
  { -- | Of the whole process, so with the collector's work.
    figureNanoseconds :: Integer,
    -- | Bytes, exact.
    figureAllocated :: Integer,
    -- | What the last run counted.
    figureCounted :: Int
  }

-- | Runs the action so many times, at least once, from a heap without garbage.
timed :: Int -> IO Int -> IO Figures
timed runs action = do
  performMajorGC
  fresh <- getAllocationCounter
  begun <- getCPUTime
  figureCounted <- go runs
  ended <- getCPUTime
  left <- getAllocationCounter
  pure
    Figures
      { figureNanoseconds = (ended - begun) `quot` 1000,
        figureAllocated = toInteger (fresh - left),
        figureCounted
      }
  where
    go left = do
      !counted <- action
      if left > 1 then go (left - 1) else pure counted
-- The action stays what it is: an action that is not known here.
{-# NOINLINE timed #-}
