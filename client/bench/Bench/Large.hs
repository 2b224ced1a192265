{-# LANGUAGE ExistentialQuantification #-}

-- | What do large replies cost, from a server's bytes to values, and from there to the typed
-- command's result?
module Bench.Large
  ( Large,
    largeName,
    largeSamples,
    larges,
    parsing,
    typing,
  )
where

import Bench.Reply (parsed, result)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.List.NonEmpty (NonEmpty ((:|)))
import Redis.Command (Command)
import Redis.Commands qualified as Commands
import Redis.Value (Value (..))

-- | A kind of reply.
data Large = forall a.
  Large
  { largeName :: String,
    -- | Small samples of the replies that a server sends to the command.
    largeSamples :: [ByteString],
    largeCommand :: Command a,
    -- | The number of elements in the result.
    largeElements :: a -> Int
  }

-- | All kinds of replies.
larges :: [Large]
larges =
  [ Large "mget" ["*1000\r\n" <> ByteString.concat (replicate 1000 "$1\r\nx\r\n")] (Commands.mget ("key" :| replicate 999 "key")) length,
    Large "hgetall" ["*2\r\n$1\r\na\r\n$1\r\nx\r\n", "%1\r\n$1\r\na\r\n$1\r\nx\r\n"] (Commands.hgetall "key") length,
    Large "zrange-whole" ["*2\r\n$1\r\na\r\n$2\r\n17\r\n", "*1\r\n*2\r\n$1\r\na\r\n,17\r\n"] scores length,
    Large "zrange-fractions" ["*2\r\n$1\r\na\r\n$4\r\n0.25\r\n", "*1\r\n*2\r\n$1\r\na\r\n,0.25\r\n"] scores length,
    Large "xrange" ["*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\na\r\n$1\r\nx\r\n"] (Commands.xrange "key" Commands.LowestId Commands.HighestId) length,
    Large "value" ["$1\r\nx\r\n"] (Commands.get "key") length
  ]
  where
    scores = Commands.zrangeWithscores "key" 0 (-1)

-- | Parses the bytes into a value. The result is the number of elements in its outermost aggregate.
parsing :: ByteString -> IO Int
parsing bytes = elements <$> parsed bytes
  where
    elements = \case
      Array found -> length found
      Map entries -> length entries
      _ -> 1

-- | Parses the bytes and decodes the command's result. Returns the number of elements in that
-- result.
typing :: Large -> ByteString -> IO Int
typing Large {largeCommand, largeElements} bytes =
  largeElements <$> (parsed bytes >>= result largeCommand)
