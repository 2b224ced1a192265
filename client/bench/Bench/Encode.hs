-- | What does it cost to write a request to a connection's buffer?
--
-- Each run makes the request too, as each call does. GET and SET are measured twice: as their
-- commands encode them, from a literal, and through the general 'request'.
module Bench.Encode (benchmarks) where

import Criterion.Main (Benchmark, Benchmarkable, bench, bgroup, whnfAppIO)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Foreign.Marshal.Alloc (allocaBytes)
import Redis.Commands qualified as Commands
import Redis.Internal.Command (commandRequest)
import Redis.Internal.Protocol.Encode (Request, request, requestPoke, requestSize)

-- | Keys of 16 bytes and values of 16 and of 512.
benchmarks :: Benchmark
benchmarks =
  bgroup
    "encode"
    [ bench "get" (poking (commandRequest . Commands.get) key),
      bench "get, general" (poking (\name -> request ["GET", name]) key),
      bench "set 16 B" (poking (commandRequest . Commands.set key) small),
      bench "set 16 B, general" (poking general small),
      bench "set 512 B" (poking (commandRequest . Commands.set key) large),
      bench "set 512 B, general" (poking general large)
    ]
  where
    general value = request ["SET", key, value]

key, small, large :: ByteString
key = "user:1000:000042"
small = ByteString.replicate 16 0x78
large = ByteString.replicate 512 0x78

-- | Makes a request from the argument and writes it to memory of its own. The result is the number
-- of bytes written.
poking :: (ByteString -> Request) -> ByteString -> Benchmarkable
poking encode = whnfAppIO $ \argument -> do
  let encoded = encode argument
      size = requestSize encoded
  allocaBytes size $ \start -> size <$ requestPoke encoded start
{-# INLINE poking #-}
