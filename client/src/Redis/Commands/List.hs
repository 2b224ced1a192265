-- | Lists: queues with two ends.
module Redis.Commands.List
  ( lpush,
    rpush,
    lpop,
    rpop,
    lrange,
    llen,

    -- * Waiting for an element
    blpop,
    brpop,
    blmove,
    ListEnd (..),
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration (Duration)

-- | @LPUSH key element …@: puts them before the first, one after the other;
-- the length after it. \(O(1)\) per element on the server, since 1.0.0;
-- several elements since 2.4.0.
--
-- @since 0.1.0.0
lpush :: ByteString -> NonEmpty ByteString -> Command Int64
lpush name elements = command "LPUSH" (key name : args elements) Decode.integer

-- | @RPUSH key element …@: puts them after the last; the length after it.
-- \(O(1)\) per element on the server, since 1.0.0; several elements since
-- 2.4.0.
--
-- @since 0.1.0.0
rpush :: ByteString -> NonEmpty ByteString -> Command Int64
rpush name elements = command "RPUSH" (key name : args elements) Decode.integer

-- | @LPOP key@: takes the first. \(O(1)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
lpop :: ByteString -> Command (Maybe ByteString)
lpop name = command "LPOP" [key name] (Decode.nullable Decode.bytes)

-- | @RPOP key@: takes the last. \(O(1)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
rpop :: ByteString -> Command (Maybe ByteString)
rpop name = command "RPOP" [key name] (Decode.nullable Decode.bytes)

-- | @LRANGE key start stop@: from element to element, both included, negative
-- from the end. \(O(s+n)\) on the server for a distance s from the nearer end
-- and n elements, since 1.0.0.
--
-- @since 0.1.0.0
lrange :: ByteString -> Int64 -> Int64 -> Command [ByteString]
lrange name start stop =
  command "LRANGE" [key name, int start, int stop] (Decode.list Decode.bytes)

-- | @LLEN key@. \(O(1)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
llen :: ByteString -> Command Int64
llen name = command "LLEN" [key name] Decode.integer

-- | @BLPOP key … seconds@: takes the first element of the first list that has
-- one and waits for it if need be, for so long or, with 'Nothing', until there is one. The answer is 'Nothing' after that time, else
-- the key and the element. In a cluster the keys must share a slot. \(O(n)\) on
-- the server in the number of keys, since 2.0.0; fractions of seconds since
-- 6.0.0.
--
-- @since 0.1.0.0
blpop :: NonEmpty ByteString -> Maybe Duration -> Command (Maybe (ByteString, ByteString))
blpop names limit = command "BLPOP" (keys names <> [timeout limit]) (Decode.nullable keyAndElement)

-- | @BRPOP key … seconds@: as 'blpop', with the last element.
--
-- @since 0.1.0.0
brpop :: NonEmpty ByteString -> Maybe Duration -> Command (Maybe (ByteString, ByteString))
brpop names limit = command "BRPOP" (keys names <> [timeout limit]) (Decode.nullable keyAndElement)

keyAndElement :: Decoder (ByteString, ByteString)
keyAndElement reply =
  Decode.listOf 2 Decode.bytes reply >>= \case
    [from, element] -> Right (from, element)
    _ -> Decode.mismatch "a key and an element" reply

-- | An end of a list.
--
-- @since 0.1.0.0
data ListEnd
  = -- | The first element, at index 0.
    LeftEnd
  | -- | The last element.
    RightEnd
  deriving stock (Eq, Show)

-- | @BLMOVE source destination LEFT|RIGHT LEFT|RIGHT seconds@: takes from one
-- end of the source, waiting as 'blpop' does, and puts it at one end of
-- the destination; 'Nothing' after that time. In a cluster both must share a
-- slot. \(O(1)\) on the server, since 6.2.0.
--
-- @since 0.1.0.0
blmove :: (ByteString, ListEnd) -> (ByteString, ListEnd) -> Maybe Duration -> Command (Maybe ByteString)
blmove (source, from) (destination, to) limit =
  command
    "BLMOVE"
    [key source, key destination, end from, end to, timeout limit]
    (Decode.nullable Decode.bytes)
  where
    end = \case
      LeftEnd -> arg "LEFT"
      RightEnd -> arg "RIGHT"
