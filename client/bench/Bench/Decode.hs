-- | What does it cost to parse received bytes into values, and to decode values into a command's
-- result?
--
-- As in a connection's reader, many replies lie in one piece of memory, and one call parses all of
-- them. A figure is for the whole piece: divide it by the number of replies.
module Bench.Decode (benchmarks) where

import Control.Exception (throwIO)
import Control.Monad (unless)
import Criterion.Main (Benchmark, Benchmarkable, bench, bgroup, whnfAppIO)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Data.IORef (newIORef)
import Foreign.Ptr (castPtr)
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Error (Endpoint (UnixEndpoint))
import Redis.Internal.Network.Stream (Wire (Wire), receiveReply)
import Redis.Internal.Network.Transport (Transport (..), attemptEnd)
import Redis.Internal.Protocol.Decode (Limits (..), Step (..), decodeBytes, decodeWhile, limitsDefaults, startFrames)

-- | Pieces of 64 replies, each piece of one kind and size; one array; and large replies with their
-- decoders.
benchmarks :: Benchmark
benchmarks =
  bgroup
    "decode"
    [ bench "64 bulk strings of 16 B" (decoding (replies (bulk 16))),
      bench "64 bulk strings of 512 B" (decoding (replies (bulk 512))),
      bench "64 bulk strings of 4 KiB" (decoding (replies (bulk 4096))),
      bench "64 integers" (decoding (replies ":1234567\r\n")),
      bench "an array of 100 bulk strings of 16 B" (decoding ("*100\r\n" <> times 100 (bulk 16))),
      bench "list of 1000 strings of 100 B" (reading (Decode.list Decode.bytes) mget),
      bench "list of 1000 nullable strings of 100 B" (reading (Decode.list (Decode.nullable Decode.bytes)) mget),
      bench "pairs, 1000 in turn" (reading (Decode.pairs Decode.bytes Decode.bytes) ("*2000\r\n" <> times 2000 (bulk 10))),
      bench "pairs, 1000 in a map" (reading (Decode.pairs Decode.bytes Decode.bytes) ("%1000\r\n" <> times 2000 (bulk 10))),
      bench "1000 entries of a stream, of 5 fields" (reading entries ("*1000\r\n" <> times 1000 entry)),
      bench "list of 1000 strings of 100 B, exact bytes" (exactly mget)
    ]
  where
    mget = "*1000\r\n" <> times 1000 (bulk 100)
    entry = "*2\r\n" <> bulk 15 <> "*10\r\n" <> times 10 (bulk 8)
    entries = Decode.pairs Decode.bytes (Decode.pairs Decode.bytes Decode.bytes)
    replies = times 64
    times count = ByteString.concat . replicate count

bulk :: Int -> ByteString
bulk size = "$" <> Char8.pack (show size) <> "\r\n" <> ByteString.replicate size 0x78 <> "\r\n"

-- | Parses all replies in the bytes. Fails if it does not reach the end of the bytes.
decoding :: ByteString -> Benchmarkable
decoding = whnfAppIO $ \bytes ->
  ByteString.Unsafe.unsafeUseAsCStringLen bytes $ \(start, size) ->
    decodeWhile limits (castPtr start) (\_ -> pure True) 0 size startFrames >>= \case
      NeedMore _ at _ -> unless (at == size) (throwIO (userError "replies are left over"))
      Done _ _ -> throwIO (userError "stopped early")
      Malformed reason -> throwIO (userError reason)

-- | Parses one reply and evaluates the decoder's result to its end.
reading :: Decoder [a] -> ByteString -> Benchmarkable
reading decoder = whnfAppIO $ \bytes ->
  case decodeBytes limits bytes of
    Right (reply, "") -> either (throwIO . userError . show) (pure . length) (decoder reply)
    Right _ -> throwIO (userError "bytes are left over")
    Left reason -> throwIO (userError reason)

-- | Receives one reply with its exact bytes, all of which have been read before.
exactly :: ByteString -> Benchmarkable
exactly = whnfAppIO $ \bytes -> newIORef bytes >>= fmap snd . receiveReply . Wire nowhere limits

-- | A peer that has finished.
nowhere :: Transport
nowhere =
  Transport
    { transportEndpoint = UnixEndpoint "",
      transportTryRead = \_ _ -> pure attemptEnd,
      transportTryWrite = \_ _ -> pure attemptEnd,
      transportWaitReadable = pure (),
      transportWaitWritable = pure (),
      transportWatchReadable = \_ -> pure (pure ()),
      transportHungUp = pure True,
      transportGather = Nothing,
      transportShutdown = pure (),
      transportClose = pure ()
    }

limits :: Limits
limits = limitsDefaults {limitBulkBytes = 512 * 1024 * 1024, limitElements = 1024 * 1024, limitDepth = 32}
