-- | What keys hold: the value of a key follows from its number, so that every
-- reply can be compared, and costs no more than a slice.
--
-- The value of the key with number @k@ is cut out of one block of seeded
-- letters, at an offset that 'mix' makes of @k@: two keys seldom hold the same,
-- and a reply that belongs to another caller is noticed.
module Tool.Bench.Workload.Values
  ( Values,
    newValues,
    valueOf,
    holds,
  )
where

import Data.Bits ((.&.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Unsafe qualified as Unsafe
import Data.Word (Word64)
import Tool.Bench.Workload.Random (below, gamma, mix, upper)

-- | Where values are cut from; immutable.
data Values = Values
  { valuesBlock :: ByteString,
    valuesSize :: Int
  }

-- | From a seed and the values' size in bytes. \(O(n)\) in the size.
newValues :: Word64 -> Int -> Values
newValues seed size = Values {valuesBlock = randomLetters seed (offsets + size), valuesSize = size}

-- | The value of a key's number. \(O(1)\), copies nothing.
valueOf :: Values -> Int -> ByteString
valueOf values number =
  Unsafe.unsafeTake (valuesSize values) $
    Unsafe.unsafeDrop (fromIntegral (mix (fromIntegral number) .&. (fromIntegral offsets - 1))) (valuesBlock values)
{-# INLINE valueOf #-}

-- | Whether these bytes are the value of a key's number. \(O(n)\) in its size.
--
-- NOINLINE: the value is then compared in place, and not made first.
holds :: Values -> Int -> ByteString -> Bool
holds values number found = found == valueOf values number
{-# NOINLINE holds #-}

-- | Where in the block a value may begin: few enough to stay in the cache.
offsets :: Int
offsets = 4096

randomLetters :: Word64 -> Int -> ByteString
randomLetters seed size =
  fst (ByteString.unfoldrN size (\state -> Just (letter (mix state), state + gamma)) seed)
  where
    letter word = 97 + fromIntegral (below 26 (upper word))
