-- | Replies in the form in which they are kept for long.
--
-- A string that comes from a connection is pinned: it keeps alive the block of memory in
-- which it was allocated, with everything else in that block. For a moment that does not
-- matter, but every string that is kept could hold 4 KiB. So short strings are kept where
-- the collector can move them, and copied at each use. Long strings have memory of their own
-- anyway.
module Redis.Internal.Client.Frozen
  ( Frozen,
    freeze,
    thaw,
    frozenBytes,
  )
where

import Data.Bits (shiftR)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Short (ShortByteString, fromShort, toShort)
import Data.ByteString.Short qualified as Short
import Redis.Value

-- | A reply as it is kept.
data Frozen
  = -- | A reply without strings, or with a long one.
    AsItIs Value
  | FrozenBulk ShortByteString
  | FrozenSimple ShortByteString
  | FrozenVerbatim ShortByteString Frozen
  | FrozenArray [Frozen]
  | FrozenSet [Frozen]
  | FrozenMap [(Frozen, Frozen)]

-- | Turns a reply into the form for keeping. \(O(n)\).
freeze :: Value -> Frozen
freeze value = case value of
  BulkString bytes | isShort bytes -> FrozenBulk (toShort bytes)
  SimpleString bytes | isShort bytes -> FrozenSimple (toShort bytes)
  VerbatimString format bytes -> FrozenVerbatim (toShort format) (freeze (BulkString bytes))
  Array elements -> FrozenArray (frozen elements)
  Set elements -> FrozenSet (frozen elements)
  Map pairs -> FrozenMap (frozenPairs pairs)
  _ -> AsItIs value
  where
    isShort bytes = ByteString.length bytes < ownMemory
    -- Evaluates everything now: an unevaluated part would hold the whole reply.
    frozen = foldr (\element rest -> let one = freeze element in one `seq` rest `seq` (one : rest)) []
    frozenPairs = foldr (\(key, element) rest -> let one = freeze key; other = freeze element in one `seq` other `seq` rest `seq` ((one, other) : rest)) []

-- | The bytes from which an object has memory of its own.
ownMemory :: Int
ownMemory = 3277

-- | Turns a kept reply back into a value. \(O(n)\).
thaw :: Frozen -> Value
thaw = \case
  AsItIs value -> value
  FrozenBulk bytes -> BulkString (fromShort bytes)
  FrozenSimple bytes -> SimpleString (fromShort bytes)
  FrozenVerbatim format text -> VerbatimString (fromShort format) (bytesOf (thaw text))
  FrozenArray elements -> Array (map thaw elements)
  FrozenSet elements -> Set (map thaw elements)
  FrozenMap pairs -> Map [(thaw key, thaw element) | (key, element) <- pairs]
  where
    bytesOf :: Value -> ByteString
    bytesOf = \case
      BulkString bytes -> bytes
      _ -> ByteString.empty

-- | The memory that a kept reply takes on a 64-bit heap. \(O(n)\) in its elements.
frozenBytes :: Frozen -> Int
frozenBytes = \case
  AsItIs value -> 16 + ofValue value
  FrozenBulk bytes -> 16 + short bytes
  FrozenSimple bytes -> 16 + short bytes
  FrozenVerbatim format text -> 24 + short format + frozenBytes text
  FrozenArray elements -> 16 + each elements
  FrozenSet elements -> 16 + each elements
  FrozenMap pairs -> 16 + sum [48 + frozenBytes key + frozenBytes element | (key, element) <- pairs]
  where
    short bytes = 40 + Short.length bytes
    each elements = sum [24 + frozenBytes element | element <- elements]
    ofValue = \case
      BulkString bytes -> own bytes
      SimpleString bytes -> own bytes
      BigNumber number -> 32 + 8 * length (takeWhile (/= 0) (iterate (`shiftR` 64) (abs number)))
      _ -> 16
    -- A long string occupies whole blocks of memory.
    own bytes = 4096 + ByteString.length bytes
