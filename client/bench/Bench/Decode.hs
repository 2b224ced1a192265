-- | What do replies cost from received bytes to values?
--
-- As in a connection's reader: many replies in one piece of memory, one call
-- for all of them. A figure is for the whole piece: divide by its replies.
module Bench.Decode (benchmarks) where

import Control.Exception (throwIO)
import Control.Monad (unless)
import Criterion.Main (Benchmark, Benchmarkable, bench, bgroup, whnfAppIO)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Foreign.Ptr (castPtr)
import Redis.Internal.Protocol.Decode (DecodeLimits (..), Step (..), decodeWhile, startFrames)

-- | 64 replies a piece, of one kind and size each; and one array.
benchmarks :: Benchmark
benchmarks =
  bgroup
    "decode"
    [ bench "64 bulk strings of 16 B" (decoding (replies (bulk 16))),
      bench "64 bulk strings of 512 B" (decoding (replies (bulk 512))),
      bench "64 bulk strings of 4 KiB" (decoding (replies (bulk 4096))),
      bench "64 integers" (decoding (replies ":1234567\r\n")),
      bench "an array of 100 bulk strings of 16 B" (decoding ("*100\r\n" <> times 100 (bulk 16)))
    ]
  where
    replies = times 64
    times count = ByteString.concat . replicate count

bulk :: Int -> ByteString
bulk size = "$" <> Char8.pack (show size) <> "\r\n" <> ByteString.replicate size 0x78 <> "\r\n"

-- | Decodes all of the bytes; fails if it does not come to their end.
decoding :: ByteString -> Benchmarkable
decoding = whnfAppIO $ \bytes ->
  ByteString.Unsafe.unsafeUseAsCStringLen bytes $ \(start, size) ->
    decodeWhile limits (castPtr start) (\_ -> pure True) 0 size startFrames >>= \case
      NeedMore _ at _ -> unless (at == size) (throwIO (userError "replies are left over"))
      Done _ _ -> throwIO (userError "stopped early")
      Malformed reason -> throwIO (userError reason)

limits :: DecodeLimits
limits = DecodeLimits {decodeMaxBulk = 512 * 1024 * 1024, decodeMaxElements = 1024 * 1024, decodeMaxDepth = 32}
