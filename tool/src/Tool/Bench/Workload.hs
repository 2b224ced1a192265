-- | What is sent: which command, which key, which value, from a seed.
--
-- A generator must cost next to nothing beside what it measures. So all keys
-- lie side by side in one buffer before the clock starts, and a key is a slice
-- made on the spot: a table of ready slices costs three cache misses per
-- command, a third of all processor time in batches. Values are slices of a
-- block of random letters; and a draw is one step of a 64-bit generator whose
-- upper half chooses the key and whose lower half the command, both without a
-- division. The choices of a thread depend on the seed and its number only:
-- the same run sends the same commands again.
module Tool.Bench.Workload
  ( Workload,
    workloadKeys,
    newWorkload,
    workloadKey,
    workloadValue,

    -- * Drawing
    Stream,
    newStream,
    draw,
  )
where

import Data.Bits (shiftR, xor, (.&.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Unsafe qualified as Unsafe
import Data.Primitive.ByteArray
  ( MutableByteArray,
    newByteArray,
    readByteArray,
    writeByteArray,
  )
import Data.Word (Word64)
import GHC.Exts (RealWorld)
import Tool.Options.Bench (LoadOptions (..), Operation (..))

-- | All that the threads of a run share; immutable.
data Workload = Workload
  { -- | All keys, one after the other.
    workloadNames :: ByteString,
    workloadKeySize :: Int,
    -- | How many keys there are.
    workloadKeys :: Int,
    workloadBlock :: ByteString,
    workloadValueSize :: Int,
    -- | A draw below this, of 2^32, is a SET.
    workloadSetShare :: Word64,
    workloadSeed :: Word64
  }

-- | Makes the keys. \(O(n)\) in the number of keys.
newWorkload :: Operation -> LoadOptions -> Workload
newWorkload operation load =
  Workload
    { workloadNames = ByteString.concat (map (keyName keys size) [0 .. keys - 1]),
      workloadKeySize = size,
      workloadKeys = keys,
      workloadBlock = randomLetters (loadSeed load) (valueOffsets + loadValueSize load),
      workloadValueSize = loadValueSize load,
      workloadSetShare = case operation of
        OperationGet -> 0
        OperationSet -> 0x100000000
        OperationMixed -> 0x100000000 `div` 5,
      workloadSeed = loadSeed load
    }
  where
    keys = loadKeys load
    size = loadKeySize load

-- | @key:000000000042@, as redis-benchmark has it, in any size that leaves room
-- for the digits; without the prefix where it does not fit.
keyName :: Int -> Int -> Int -> ByteString
keyName keys size number = prefix <> zeros <> digits
  where
    digits = Char8.pack (show number)
    widest = length (show (keys - 1))
    prefix = if size >= widest + 4 then "key:" else ""
    zeros = Char8.replicate (size - ByteString.length prefix - ByteString.length digits) '0'

-- | The key of a number below 'workloadKeys'. \(O(1)\).
workloadKey :: Workload -> Int -> ByteString
workloadKey workload number =
  Unsafe.unsafeTake size (Unsafe.unsafeDrop (number * size) (workloadNames workload))
  where
    size = workloadKeySize workload

-- | A value, chosen by any number. \(O(1)\), copies nothing.
workloadValue :: Workload -> Word64 -> ByteString
workloadValue workload choice =
  Unsafe.unsafeTake (workloadValueSize workload) $
    Unsafe.unsafeDrop (fromIntegral (choice .&. (fromIntegral valueOffsets - 1))) (workloadBlock workload)

-- | Where in the block a value may begin: few enough to stay in the cache.
valueOffsets :: Int
valueOffsets = 4096

randomLetters :: Word64 -> Int -> ByteString
randomLetters seed size =
  fst (ByteString.unfoldrN size (\state -> Just (letter (mix state), state + gamma)) seed)
  where
    letter word = 97 + fromIntegral ((word `shiftR` 32) * 26 `shiftR` 32)

-- | The choices of one thread; for that thread only.
newtype Stream = Stream (MutableByteArray RealWorld)

-- | The stream of the thread with this number.
newStream :: Workload -> Int -> IO Stream
newStream workload worker = do
  state <- newByteArray 8
  writeByteArray state 0 (mix (workloadSeed workload + mix (fromIntegral worker + 1)))
  pure (Stream state)

-- | Draws a command: hands its key to the first continuation (GET), or its key
-- and value to the second (SET). \(O(1)\).
--
-- INLINE because the continuations are known where it is used, and would
-- otherwise be allocated for every command.
draw :: Workload -> Stream -> (ByteString -> IO a) -> (ByteString -> ByteString -> IO a) -> IO a
draw workload (Stream state) onGet onSet = do
  old <- readByteArray state 0
  let new = old + gamma :: Word64
      word = mix new
      keys = fromIntegral (workloadKeys workload) :: Word64
      number = fromIntegral (((word `shiftR` 32) * keys) `shiftR` 32) :: Int
      key = workloadKey workload number
  writeByteArray state 0 new
  if (word .&. 0xffffffff) < workloadSetShare workload
    then onSet key (workloadValue workload (word `shiftR` 20))
    else onGet key
{-# INLINE draw #-}

-- SplitMix64 (Steele, Lea, Flood 2014): a counter and a bijection that mixes.
gamma :: Word64
gamma = 0x9e3779b97f4a7c15

mix :: Word64 -> Word64
mix z0 = z2 `xor` (z2 `shiftR` 31)
  where
    z1 = (z0 `xor` (z0 `shiftR` 30)) * 0xbf58476d1ce4e5b9
    z2 = (z1 `xor` (z1 `shiftR` 27)) * 0x94d049bb133111eb
