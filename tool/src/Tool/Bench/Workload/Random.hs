-- | Random numbers that cost next to nothing and are the same in every run.
--
-- SplitMix64 (Steele, Lea, Flood 2014): a counter and a bijection that mixes. Each thread of a run
-- has a stream of its own, which depends only on the seed and the thread's number.
module Tool.Bench.Workload.Random
  ( Stream,
    newStream,
    step,
    current,
    turn,
    streamThread,
    below,
    upper,
    lower,
    mix,
    gamma,
  )
where

import Data.Bits (shiftR, xor, (.&.))
import Data.Primitive.ByteArray
import Data.Word (Word64)
import GHC.Exts (RealWorld)

-- | The numbers of one thread. Only that thread may use them.
newtype Stream = Stream (MutableByteArray RealWorld)

-- | The stream of a seed and a thread's number.
newStream :: Word64 -> Int -> IO Stream
newStream seed worker = do
  state <- newByteArray (4 * 8)
  writeByteArray state 0 (mix (seed + mix (fromIntegral worker + 1)))
  writeByteArray state 1 (0 :: Word64)
  writeByteArray state 2 (0 :: Int)
  writeByteArray state 3 worker
  pure (Stream state)

-- | The next number. \(O(1)\).
step :: Stream -> IO Word64
step (Stream state) = do
  old <- readByteArray state 0
  let new = old + gamma :: Word64
      word = mix new
  writeByteArray state 0 new
  writeByteArray state 1 word
  pure word
{-# INLINE step #-}

-- | The number that the last 'step' returned, once more. To pass it to a function that is not known
-- at the call site would cost an allocation.
current :: Stream -> IO Word64
current (Stream state) = readByteArray state 1
{-# INLINE current #-}

-- | How often 'turn' was called before on this stream. \(O(1)\).
turn :: Stream -> IO Int
turn (Stream state) = do
  before <- readByteArray state 2
  before <$ writeByteArray state 2 (before + 1 :: Int)

-- | The number of the thread that the stream belongs to.
streamThread :: Stream -> IO Int
streamThread (Stream state) = readByteArray state 3

-- | A number below a bound, from 32 bits, without a division. \(O(1)\).
below :: Int -> Word64 -> Int
below bound bits = fromIntegral ((bits * fromIntegral bound) `shiftR` 32)
{-# INLINE below #-}

-- | The upper 32 bits.
upper :: Word64 -> Word64
upper word = word `shiftR` 32
{-# INLINE upper #-}

-- | The lower 32 bits.
lower :: Word64 -> Word64
lower word = word .&. 0xffffffff
{-# INLINE lower #-}

-- | The increment of the counter.
gamma :: Word64
gamma = 0x9e3779b97f4a7c15

-- | A bijection whose every output bit depends on every input bit.
mix :: Word64 -> Word64
mix z0 = z2 `xor` (z2 `shiftR` 31)
  where
    z1 = (z0 `xor` (z0 `shiftR` 30)) * 0xbf58476d1ce4e5b9
    z2 = (z1 `xor` (z1 `shiftR` 27)) * 0x94d049bb133111eb
