-- | What a server knows of a value besides the value: how it is stored, and how it
-- was used.
--
-- > run client (Redis.objectEncoding "example:{keys}") -- Just IntEncoding
--
-- Looking does not count as use. The servers' pages:
-- <https://valkey.io/commands/object/>,
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

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode qualified as Decode
import Redis.Duration (Duration, seconds)

-- | How a value is stored.
--
-- @since 0.1.0.0
data Encoding
  = -- | A string that is a number.
    IntEncoding
  | -- | A short string, in one piece with what describes it.
    EmbstrEncoding
  | -- | Any other string.
    RawEncoding
  | -- | A short list, hash, set or sorted set, in one piece of memory; since 7.0.
    ListpackEncoding
  | -- | A short hash with fields that expire, in one piece of memory; Redis since 7.4.
    ListpackexEncoding
  | -- | What 'ListpackEncoding' was before 7.0.
    ZiplistEncoding
  | -- | A list of such pieces.
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
  | -- | Another one, by the server's word for it.
    OtherEncoding ByteString
  deriving stock (Eq, Ord, Show)

-- | @OBJECT ENCODING key@: 'Nothing' for no key. \(O(1)\) on the server,
-- [since 2.2.3](https://valkey.io/commands/object-encoding/).
--
-- @since 0.1.0.0
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

-- | @OBJECT FREQ key@: how often it was used, by a logarithmic counter; 'Nothing' for no key. An
-- error unless the server evicts by that (a policy of @maxmemory-policy@ with @lfu@). \(O(1)\) on
-- the server, [since 4.0.0](https://valkey.io/commands/object-freq/).
--
-- @since 0.1.0.0
objectFreq :: ByteString -> Command (Maybe Int64)
objectFreq name = command "OBJECT FREQ" [key name] (Decode.nullable Decode.integer)

-- | @OBJECT IDLETIME key@: for how long it was not used, to about ten seconds; 'Nothing' for no
-- key. An error if the server counts how often instead. \(O(1)\) on the server,
-- [since 2.2.3](https://valkey.io/commands/object-idletime/).
--
-- @since 0.1.0.0
objectIdletime :: ByteString -> Command (Maybe Duration)
objectIdletime name =
  command "OBJECT IDLETIME" [key name] (Decode.nullable (fmap (seconds . fromIntegral) . Decode.integer))

-- | @OBJECT REFCOUNT key@: how many references the server holds to the value; a very large number
-- for those that all share. 'Nothing' for no key. \(O(1)\) on the server,
-- [since 2.2.3](https://valkey.io/commands/object-refcount/).
--
-- @since 0.1.0.0
objectRefcount :: ByteString -> Command (Maybe Int64)
objectRefcount name = command "OBJECT REFCOUNT" [key name] (Decode.nullable Decode.integer)

-- | @OBJECT HELP@: the server's own words, a line each. \(O(1)\) on the server,
-- [since 6.2.0](https://valkey.io/commands/object-help/).
--
-- @since 0.1.0.0
objectHelp :: Command [ByteString]
objectHelp = command "OBJECT HELP" [] (Decode.list Decode.bytes)
