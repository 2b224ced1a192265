{-# LANGUAGE MagicHash #-}

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
import Data.List.NonEmpty qualified as NonEmpty
import Redis.Command (Command)
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Internal.Commands.Build
import Redis.Internal.Protocol.Encode

-- | @LPUSH key element …@: puts them before the first, one after the other;
-- the length after it. \(O(1)\) per element on the server, since 1.0.0;
-- several elements since 2.4.0.
--
-- @since 0.1.0.0
lpush :: ByteString -> NonEmpty ByteString -> Command Int64
lpush key elements =
  keyWrite "LPUSH" key (request ("LPUSH" : key : NonEmpty.toList elements)) Decode.integer

-- | @RPUSH key element …@: puts them after the last; the length after it.
-- \(O(1)\) per element on the server, since 1.0.0; several elements since
-- 2.4.0.
--
-- @since 0.1.0.0
rpush :: ByteString -> NonEmpty ByteString -> Command Int64
rpush key elements =
  keyWrite "RPUSH" key (request ("RPUSH" : key : NonEmpty.toList elements)) Decode.integer

-- | @LPOP key@: takes the first. \(O(1)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
lpop :: ByteString -> Command (Maybe ByteString)
lpop key = keyWrite "LPOP" key (requestLiteral1 14 "*2\r\n$4\r\nLPOP\r\n"# key) (Decode.nullable Decode.bytes)

-- | @RPOP key@: takes the last. \(O(1)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
rpop :: ByteString -> Command (Maybe ByteString)
rpop key = keyWrite "RPOP" key (requestLiteral1 14 "*2\r\n$4\r\nRPOP\r\n"# key) (Decode.nullable Decode.bytes)

-- | @LRANGE key start stop@: from element to element, both included, negative
-- from the end. \(O(s+n)\) on the server for a distance s from the nearer end
-- and n elements, since 1.0.0.
--
-- @since 0.1.0.0
lrange :: ByteString -> Int64 -> Int64 -> Command [ByteString]
lrange key start stop =
  keyRead "LRANGE" key (requestLiteral3 16 "*4\r\n$6\r\nLRANGE\r\n"# key (int start) (int stop)) (Decode.list Decode.bytes)

-- | @LLEN key@. \(O(1)\) on the server, since 1.0.0.
--
-- @since 0.1.0.0
llen :: ByteString -> Command Int64
llen key = keyRead "LLEN" key (requestLiteral1 14 "*2\r\n$4\r\nLLEN\r\n"# key) Decode.integer

-- | @BLPOP key … seconds@: takes the first element of the first list that has
-- one and waits for it if need be, 0 for ever; 'Nothing' after that time, else
-- the key and the element. In a cluster the keys must share a slot. \(O(n)\) on
-- the server in the number of keys, since 2.0.0; fractions of seconds since
-- 6.0.0.
--
-- @since 0.1.0.0
blpop :: NonEmpty ByteString -> Double -> Command (Maybe (ByteString, ByteString))
blpop = blockingPop "BLPOP"

-- | @BRPOP key … seconds@: as 'blpop', with the last element.
--
-- @since 0.1.0.0
brpop :: NonEmpty ByteString -> Double -> Command (Maybe (ByteString, ByteString))
brpop = blockingPop "BRPOP"

blockingPop :: ByteString -> NonEmpty ByteString -> Double -> Command (Maybe (ByteString, ByteString))
blockingPop name keys timeout =
  blockingOn (blockingSeconds timeout) $
    keysWrite
      name
      (NonEmpty.toList keys)
      (request (name : NonEmpty.toList keys <> [seconds timeout]))
      (Decode.nullable keyAndElement)

keyAndElement :: Decoder (ByteString, ByteString)
keyAndElement reply =
  Decode.listOf 2 Decode.bytes reply >>= \case
    [key, element] -> Right (key, element)
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
-- end of the source, waiting if need be, 0 for ever, and puts it at one end of
-- the destination; 'Nothing' after that time. In a cluster both must share a
-- slot. \(O(1)\) on the server, since 6.2.0.
--
-- @since 0.1.0.0
blmove :: (ByteString, ListEnd) -> (ByteString, ListEnd) -> Double -> Command (Maybe ByteString)
blmove (source, from) (destination, to) timeout =
  blockingOn (blockingSeconds timeout) $
    keysWrite
      "BLMOVE"
      [source, destination]
      (request ["BLMOVE", source, destination, end from, end to, seconds timeout])
      (Decode.nullable Decode.bytes)
  where
    end = \case
      LeftEnd -> "LEFT"
      RightEnd -> "RIGHT"
