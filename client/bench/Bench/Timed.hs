-- | The processor time and the allocation of an action that is run many times.
module Bench.Timed
  ( Figures (..),
    timed,
  )
where

import GHC.Conc (getAllocationCounter)
import System.CPUTime (getCPUTime)
import System.Mem (performMajorGC)

-- | The figures of all runs together.
data Figures = Figures
  { -- | Processor time of the whole process, including the garbage collector's.
    figureNanoseconds :: Integer,
    -- | Allocated bytes, exact.
    figureAllocated :: Integer,
    -- | The count that the last run returned.
    figureCounted :: Int
  }

-- | Runs the action the given number of times, at least once, from a heap without garbage.
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
-- Keeps the action unknown here, so that the compiler cannot specialise the loop to it.
{-# NOINLINE timed #-}
