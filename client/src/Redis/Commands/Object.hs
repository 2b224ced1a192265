-- | How a server stores a value, and how much the value was used.
--
-- > run client (Redis.objectEncoding "example:{keys}") -- Just IntEncoding
--
-- None of these commands counts as a use of the value. Pages: <https://valkey.io/commands/object/>,
-- <https://redis.io/docs/latest/commands/object/>.
module Redis.Commands.Object
  ( objectEncoding,
    Encoding (..),
    objectFreq,
    objectIdletime,
    objectRefcount,
    objectHelp,
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | How a value is stored.
data Encoding
  = -- | A string that is a number.
    IntEncoding
  | -- | A short string, in one piece of memory with its header.
    EmbstrEncoding
  | -- | Any other string.
    RawEncoding
  | -- | A short list, hash, set or sorted set, in one piece of memory; since 7.0.
    ListpackEncoding
  | -- | A short hash with fields that expire, in one piece of memory; Redis since 7.4.
    ListpackexEncoding
  | -- | Before 7.0: the predecessor of 'ListpackEncoding'.
    ZiplistEncoding
  | -- | A list, as a chain of listpacks (of ziplists before 7.0).
    QuicklistEncoding
  | -- | A list, before 3.2.
    LinkedlistEncoding
  | -- | A small set of numbers.
    IntsetEncoding
  | -- | A hash or a set.
    HashtableEncoding
  | -- | A sorted set.
    SkiplistEncoding
  | -- | A stream.
    StreamEncoding
  | -- | Another encoding, by the server's name for it.
    OtherEncoding ByteString
  deriving stock (Eq, Ord, Show)

-- | @OBJECT ENCODING key@: how the value is stored; 'Nothing' if there is no such key. \(O(1)\),
-- [since 2.2.3](https://valkey.io/commands/object-encoding/).
objectEncoding :: ByteString -> Command (Maybe Encoding)
objectEncoding name =
  command "OBJECT ENCODING" [key name] (Decode.nullable (fmap encoding . Decode.bytes))
  where
    encoding = \case
      "int" -> IntEncoding
      "embstr" -> EmbstrEncoding
      "raw" -> RawEncoding
      "listpack" -> ListpackEncoding
      "listpackex" -> ListpackexEncoding
      "ziplist" -> ZiplistEncoding
      "quicklist" -> QuicklistEncoding
      "linkedlist" -> LinkedlistEncoding
      "intset" -> IntsetEncoding
      "hashtable" -> HashtableEncoding
      "skiplist" -> SkiplistEncoding
      "stream" -> StreamEncoding
      other -> OtherEncoding other

-- | @OBJECT FREQ key@: how often the key was used, as a logarithmic counter; 'Nothing' if there is
-- no such key. An error unless the server's @maxmemory-policy@ is an LFU policy, which evicts by
-- frequency of use. \(O(1)\), [since 4.0.0](https://valkey.io/commands/object-freq/).
objectFreq :: ByteString -> Command (Maybe Int64)
objectFreq name = command "OBJECT FREQ" [key name] (Decode.nullable Decode.integer)

-- | @OBJECT IDLETIME key@: how long the key has not been used, to about a second; 'Nothing' if
-- there is no such key. An error if the server's @maxmemory-policy@ is an LFU policy, which counts
-- uses instead. \(O(1)\), [since 2.2.3](https://valkey.io/commands/object-idletime/).
objectIdletime :: ByteString -> Command (Maybe Duration)
objectIdletime name = command "OBJECT IDLETIME" [key name] (Decode.nullable secondsReply)

-- | @OBJECT REFCOUNT key@: how many references the server holds to the value; a very large number
-- for a value that the server shares among all keys. 'Nothing' if there is no such key. \(O(1)\),
-- [since 2.2.3](https://valkey.io/commands/object-refcount/).
objectRefcount :: ByteString -> Command (Maybe Int64)
objectRefcount name = command "OBJECT REFCOUNT" [key name] (Decode.nullable Decode.integer)

-- | @OBJECT HELP@: the server's help. \(O(1)\), [since 6.2.0](https://valkey.io/commands/object-help/).
objectHelp :: Command [ByteString]
objectHelp = command "OBJECT HELP" [] (Decode.list Decode.bytes)
