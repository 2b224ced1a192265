{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}

-- | The names of keys.
--
-- All of them lie side by side in one buffer before the clock starts, and a key
-- is a slice made on the spot: a table of ready slices costs three cache misses
-- per command, a third of all processor time in batches. The one miss that is
-- left, on the name itself, is begun one command early ('prefetchKey').
module Tool.Bench.Workload.Keys
  ( Keys,
    newKeys,
    keyCount,
    keyOf,
    prefetchKey,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Unsafe qualified as Unsafe
import GHC.Exts (Int (I#), Ptr (Ptr), plusAddr#, prefetchAddr0#)
import GHC.IO (IO (IO))

-- | Keys by their numbers, from zero; immutable.
data Keys = Keys
  { keysNames :: ByteString,
    keysSize :: Int,
    keysCount :: Int
  }

-- | So many keys of so many bytes. \(O(n)\) in the number of keys.
newKeys :: Int -> Int -> Keys
newKeys count size =
  Keys
    { keysNames = ByteString.concat (map (keyName count size) [0 .. count - 1]),
      keysSize = size,
      keysCount = count
    }

-- | How many there are.
keyCount :: Keys -> Int
keyCount = keysCount

-- | The key of a number below 'keyCount'. \(O(1)\), copies nothing.
keyOf :: Keys -> Int -> ByteString
keyOf keys number = Unsafe.unsafeTake size (Unsafe.unsafeDrop (number * size) (keysNames keys))
  where
    size = keysSize keys
{-# INLINE keyOf #-}

-- | Has the processor fetch a key that will be wanted soon. \(O(1)\), does not
-- wait. Without it a twentieth (SET) to a tenth (GET) of all processor time in
-- batches goes into waiting for names that are in no near cache.
prefetchKey :: Keys -> Int -> IO ()
prefetchKey keys number =
  Unsafe.unsafeUseAsCString (keysNames keys) $ \(Ptr names) ->
    case number * keysSize keys of
      I# offset -> IO (\state -> (# prefetchAddr0# (plusAddr# names offset) 0# state, () #))
{-# INLINE prefetchKey #-}

-- @key:000000000042@, as redis-benchmark has it, in any size that leaves room
-- for the digits; without the prefix where it does not fit.
keyName :: Int -> Int -> Int -> ByteString
keyName count size number = prefix <> zeros <> digits
  where
    digits = Char8.pack (show number)
    widest = length (show (count - 1))
    prefix = if size >= widest + 4 then "key:" else ""
    zeros = Char8.replicate (size - ByteString.length prefix - ByteString.length digits) '0'
