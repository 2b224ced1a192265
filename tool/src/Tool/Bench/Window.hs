-- | The measured window and its slices, which are numbered from the anchor; those before it belong
-- to the warm-up. The end of the window may be set while the workers run; they read it before
-- each round.
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
import Tool.Bench.Time (Nanos)

-- | A window, shared by all workers of a run.
data Window = Window
  { -- | Where slice 0 begins, on the monotonic clock.
    windowAnchor :: {-# UNPACK #-} Nanos,
    -- | The length of a slice.
    windowSpan :: {-# UNPACK #-} Nanos,
    windowLimit :: {-# UNPACK #-} MutableByteArray RealWorld
  }

-- | Makes a window without an end so far. Takes the anchor and the length of a slice.
newWindow :: Nanos -> Nanos -> IO Window
newWindow anchor size = do
  -- A cache line on either side: all threads read it and hardly any writes it.
  limit <- newByteArray 192
  writeByteArray limit 8 never
  pure Window {windowAnchor = anchor, windowSpan = max 1 size, windowLimit = limit}

endAt :: Window -> Nanos -> IO ()
endAt window = writeByteArray (windowLimit window) 8

-- | The end of the window, or 'never' if it is not known yet. \(O(1)\).
windowEnd :: Window -> IO Nanos
windowEnd window = readByteArray (windowLimit window) 8
{-# INLINE windowEnd #-}

-- | The slice of a moment. \(O(1)\).
sliceOf :: Window -> Nanos -> Int
sliceOf window time = (time - windowAnchor window) `div` windowSpan window

-- | The begin of a slice. \(O(1)\).
sliceStart :: Window -> Int -> Nanos
sliceStart window slice = windowAnchor window + slice * windowSpan window

sliceEnd :: Window -> Int -> Nanos
sliceEnd window slice = sliceStart window (slice + 1)

-- | A moment later than any of a run.
never :: Nanos
never = maxBound
