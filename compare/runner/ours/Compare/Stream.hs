-- | The stream of operations that every peer draws, with its keys and values,
-- as @compare/PROTOCOL.md@ defines them.
--
-- Key numbers come from SplitMix64. All keys lie side by side in one buffer, and a value is a slice
-- of one block of letters. So neither costs a noticeable time while the clock runs, and every peer
-- can check every reply.
module Compare.Stream
  ( -- * Keys and values
    Keyspace,
    keyspaceKeys,
    newKeyspace,
    keyOf,
    valueOf,
    KeyKind (..),

    -- * Drawing
    Word64,
    firstState,
    nextState,
    wordOf,
    keyNumber,
    setsBelow,
    isSet,
    streamCheck,
    mix,
  )
where

import Data.Bits (shiftR, xor, (.&.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Unsafe qualified as Unsafe
import Data.Word (Word64)

-- | Keys by number, and the value of each. Immutable.
data Keyspace = Keyspace
  { keyspaceNames :: ByteString,
    keyspaceKeySize :: Int,
    -- | The number of keys.
    keyspaceKeys :: Int,
    keyspaceBlock :: ByteString,
    keyspaceValueSize :: Int
  }

-- | The kind of keys: those that the runner writes, or those that no program writes.
data KeyKind
  = PresentKeys
  | AbsentKeys
  deriving stock (Eq, Show)

-- | Makes a keyspace, given the number of keys and the sizes of a key and of a value. \(O(n)\).
newKeyspace :: KeyKind -> Int -> Int -> Int -> Keyspace
newKeyspace kind keys keySize valueSize =
  Keyspace
    { keyspaceNames = ByteString.concat (map name [0 .. keys - 1]),
      keyspaceKeySize = keySize,
      keyspaceKeys = keys,
      keyspaceBlock = letters (valueOffsets + valueSize),
      keyspaceValueSize = valueSize
    }
  where
    prefix = case kind of
      PresentKeys -> "key:"
      AbsentKeys -> "mis:"
    name number =
      let digits = Char8.pack (show number)
          zeros = Char8.replicate (keySize - ByteString.length prefix - ByteString.length digits) '0'
       in prefix <> zeros <> digits

-- | The key with this number, which must be below 'keyspaceKeys'. \(O(1)\), copies nothing.
keyOf :: Keyspace -> Int -> ByteString
keyOf keyspace number =
  Unsafe.unsafeTake size (Unsafe.unsafeDrop (number * size) (keyspaceNames keyspace))
  where
    size = keyspaceKeySize keyspace
{-# INLINE keyOf #-}

-- | The value of the key with this number. \(O(1)\), copies nothing.
valueOf :: Keyspace -> Int -> ByteString
valueOf keyspace number =
  Unsafe.unsafeTake (keyspaceValueSize keyspace) (Unsafe.unsafeDrop offset (keyspaceBlock keyspace))
  where
    offset = fromIntegral (mix (fromIntegral number) .&. (fromIntegral valueOffsets - 1))
{-# INLINE valueOf #-}

-- The number of places in the block at which a value may begin.
valueOffsets :: Int
valueOffsets = 4096

letters :: Int -> ByteString
letters size = fst (ByteString.unfoldrN size (\state -> Just (letter (mix state), state + gamma)) 1)
  where
    letter word = 97 + fromIntegral (((word `shiftR` 32) * 26) `shiftR` 32)

-- | The state of the caller with this number before its first draw.
firstState :: Word64 -> Int -> Word64
firstState seed caller = mix (seed + mix (fromIntegral caller + 1))

-- | The next state; a draw is this, and the 'wordOf' it.
nextState :: Word64 -> Word64
nextState = (+ gamma)
{-# INLINE nextState #-}

-- | The word of a state.
wordOf :: Word64 -> Word64
wordOf = mix
{-# INLINE wordOf #-}

-- | The number of the key that a word chooses among this many.
keyNumber :: Int -> Word64 -> Int
keyNumber keys word = fromIntegral (((word `shiftR` 32) * fromIntegral keys) `shiftR` 32)
{-# INLINE keyNumber #-}

-- | The limit for 'isSet', for a share of one SET in this many commands; 0 for no SETs.
setsBelow :: Word64 -> Word64
setsBelow = \case
  0 -> 0
  oneIn -> 0x100000000 `div` oneIn

-- | Whether a word is a SET.
isSet :: Word64 -> Word64 -> Bool
isSet limit word = (word .&. 0xffffffff) < limit
{-# INLINE isSet #-}

-- | The sum of the first thousand words of caller 0: two programs that agree on
-- it draw the same stream.
streamCheck :: Word64 -> Word64
streamCheck seed = sum (map wordOf (take 1000 (drop 1 (iterate nextState (firstState seed 0)))))

gamma :: Word64
gamma = 0x9e3779b97f4a7c15

-- | SplitMix64's bijection (Steele, Lea, Flood 2014).
mix :: Word64 -> Word64
mix z0 = z2 `xor` (z2 `shiftR` 31)
  where
    z1 = (z0 `xor` (z0 `shiftR` 30)) * 0xbf58476d1ce4e5b9
    z2 = (z1 `xor` (z1 `shiftR` 27)) * 0x94d049bb133111eb
{-# INLINE mix #-}
