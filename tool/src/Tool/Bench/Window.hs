-- | When what is measured begins and ends, and how it is cut into slices.
--
-- Slices are numbered from the anchor, the moment at which measuring was meant
-- to begin: those before it, the warm-up's, are negative. The window is a range
-- of slices, and the last may be shorter than the others. Where its end is not
-- known beforehand — a warm-up that waits until the rate is steady, a load that
-- ends by count — it is set while the workers run; they read it before each
-- round.
module Tool.Bench.Window
  ( Window,
    newWindow,
    windowAnchor,
    windowSpan,
    endAt,
    windowEnd,
    sliceOf,
    sliceEnd,
    sliceStart,
    never,
  )
where

import Data.Primitive.ByteArray (MutableByteArray, newByteArray, readByteArray, writeByteArray)
import GHC.Exts (RealWorld)
import Tool.Bench.Cpu (Nanos)

-- | Shared by all workers of a run.
data Window = Window
  { -- | Where slice 0 begins, on the monotonic clock.
    windowAnchor :: {-# UNPACK #-} Nanos,
    -- | How long a slice is.
    windowSpan :: {-# UNPACK #-} Nanos,
    windowLimit :: {-# UNPACK #-} MutableByteArray RealWorld
  }

-- | Without an end, so far. Takes the anchor and the length of a slice.
newWindow :: Nanos -> Nanos -> IO Window
newWindow anchor size = do
  -- A cache line on either side: it is read by all and written by hardly anyone.
  limit <- newByteArray 192
  writeByteArray limit 8 never
  pure Window {windowAnchor = anchor, windowSpan = max 1 size, windowLimit = limit}

-- | Sets the end.
endAt :: Window -> Nanos -> IO ()
endAt window = writeByteArray (windowLimit window) 8

-- | The end, as far as it is known. \(O(1)\).
windowEnd :: Window -> IO Nanos
windowEnd window = readByteArray (windowLimit window) 8
{-# INLINE windowEnd #-}

-- | Which slice a moment lies in. \(O(1)\).
sliceOf :: Window -> Nanos -> Int
sliceOf window time = (time - windowAnchor window) `div` windowSpan window

-- | Where that slice begins. \(O(1)\).
sliceStart :: Window -> Int -> Nanos
sliceStart window slice = windowAnchor window + slice * windowSpan window

-- | Where it ends. \(O(1)\).
sliceEnd :: Window -> Int -> Nanos
sliceEnd window slice = sliceStart window (slice + 1)

-- | Later than any moment of a run.
never :: Nanos
never = maxBound
