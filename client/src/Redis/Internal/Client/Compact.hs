-- | Replies in the form in which they are kept for long.
--
-- A string that comes from a connection is pinned: it keeps alive the block of memory in
-- which it was allocated, with everything else in that block. For a moment that does not
-- matter, but every string that is kept could hold 4 KiB. So short strings are kept where
-- the collector can move them, and copied at each use. Long strings have memory of their own
-- anyway.
module Redis.Internal.Client.Compact
  ( Compact,
    compacted,
    expanded,
    compactBytes,
  )
where

import Data.Bits (shiftR)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Short (ShortByteString, fromShort, toShort)
import Data.ByteString.Short qualified as Short
import Redis.Value

-- | A reply as it is kept.
data Compact
  = -- | A reply without strings, or with a long one.
    AsItIs Value
  | CompactBulk ShortByteString
  | CompactSimple ShortByteString
  | CompactVerbatim ShortByteString Compact
  | CompactArray [Compact]
  | CompactSet [Compact]
  | CompactMap [(Compact, Compact)]

-- | Turns a reply into the form for keeping. \(O(n)\).
compacted :: Value -> Compact
compacted value = case value of
  BulkString bytes | isShort bytes -> CompactBulk (toShort bytes)
  SimpleString bytes | isShort bytes -> CompactSimple (toShort bytes)
  VerbatimString format bytes -> CompactVerbatim (toShort format) (compacted (BulkString bytes))
  Array elements -> CompactArray (compact elements)
  Set elements -> CompactSet (compact elements)
  Map pairs -> CompactMap (compactPairs pairs)
  _ -> AsItIs value
  where
    isShort bytes = ByteString.length bytes < ownMemory
    -- Evaluates everything now: an unevaluated part would hold the whole reply.
    compact = foldr (\element rest -> let one = compacted element in one `seq` rest `seq` (one : rest)) []
    compactPairs = foldr (\(key, element) rest -> let one = compacted key; other = compacted element in one `seq` other `seq` rest `seq` ((one, other) : rest)) []

-- | The bytes from which an object has memory of its own.
ownMemory :: Int
ownMemory = 3277

-- | Turns a kept reply back into a value. \(O(n)\).
expanded :: Compact -> Value
expanded = \case
  AsItIs value -> value
  CompactBulk bytes -> BulkString (fromShort bytes)
  CompactSimple bytes -> SimpleString (fromShort bytes)
  CompactVerbatim format text -> VerbatimString (fromShort format) (bytesOf (expanded text))
  CompactArray elements -> Array (map expanded elements)
  CompactSet elements -> Set (map expanded elements)
  CompactMap pairs -> Map [(expanded key, expanded element) | (key, element) <- pairs]
  where
    bytesOf :: Value -> ByteString
    bytesOf = \case
      BulkString bytes -> bytes
      _ -> ByteString.empty

-- | The memory that a kept reply takes on a 64-bit heap. \(O(n)\) in its elements.
compactBytes :: Compact -> Int
compactBytes = \case
  AsItIs value -> 16 + ofValue value
  CompactBulk bytes -> 16 + short bytes
  CompactSimple bytes -> 16 + short bytes
  CompactVerbatim format text -> 24 + short format + compactBytes text
  CompactArray elements -> 16 + each elements
  CompactSet elements -> 16 + each elements
  CompactMap pairs -> 16 + sum [48 + compactBytes key + compactBytes element | (key, element) <- pairs]
  where
    short bytes = 40 + Short.length bytes
    each elements = sum [24 + compactBytes element | element <- elements]
    ofValue = \case
      BulkString bytes -> own bytes
      SimpleString bytes -> own bytes
      BigNumber number -> 32 + 8 * length (takeWhile (/= 0) (iterate (`shiftR` 64) (abs number)))
      _ -> 16
    -- A long string occupies whole blocks of memory.
    own bytes = 4096 + ByteString.length bytes
