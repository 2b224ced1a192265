-- | The types of values, as TYPE returns them and SCAN takes them.
module Redis.Internal.Command.KeyType
  ( KeyType (..),
    keyTypeWord,
  )
where

import Data.ByteString (ByteString)

-- | The type of a key's value.
data KeyType
  = -- | Bytes, a number, a bitmap, or a HyperLogLog.
    StringKey
  | ListKey
  | SetKey
  | -- | A sorted set, which is also what geo commands store.
    SortedSetKey
  | HashKey
  | StreamKey
  | -- | A type of a module, with the server's word for it.
    OtherKey ByteString
  deriving stock (Eq, Ord, Show)

-- | The server's word for a type, as TYPE returns it and SCAN takes it.
keyTypeWord :: KeyType -> ByteString
keyTypeWord = \case
  StringKey -> "string"
  ListKey -> "list"
  SetKey -> "set"
  SortedSetKey -> "zset"
  HashKey -> "hash"
  StreamKey -> "stream"
  OtherKey word -> word
