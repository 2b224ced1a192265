-- | What a key can hold, as TYPE says it and walks take it.
module Redis.Internal.Command.KeyType
  ( KeyType (..),
    keyTypeWord,
  )
where

import Data.ByteString (ByteString)

-- | What a key holds.
--
-- @since 0.1.0.0
data KeyType
  = -- | Bytes, a number, a bitmap, or a HyperLogLog.
    StringKey
  | ListKey
  | SetKey
  | -- | A sorted set, which is also what geo commands store.
    SortedSetKey
  | HashKey
  | StreamKey
  | -- | A type of a module, by the server's word for it.
    OtherKey ByteString
  deriving stock (Eq, Ord, Show)

-- | The server's word for a type, as TYPE says it and SCAN takes it.
keyTypeWord :: KeyType -> ByteString
keyTypeWord = \case
  StringKey -> "string"
  ListKey -> "list"
  SetKey -> "set"
  SortedSetKey -> "zset"
  HashKey -> "hash"
  StreamKey -> "stream"
  OtherKey word -> word
