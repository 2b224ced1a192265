-- | The handling of one reply, as in a connection's reader and in the caller's thread.
module Bench.Reply
  ( parsed,
    result,
  )
where

import Control.Exception (throwIO)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Foreign.Ptr (castPtr)
import Redis.Internal.Command (Command (commandFacts, commandRequest), Facts (factInfo), decoded, fromReply)
import Redis.Internal.Protocol.Decode (Limits (..), Step (..), decode, limitsDefaults, startFrames)
import Redis.Value (Value)

-- | Parses the bytes into a value. It is in 'IO', so that each run parses anew.
parsed :: ByteString -> IO Value
parsed bytes =
  ByteString.Unsafe.unsafeUseAsCStringLen bytes $ \(start, size) ->
    decode limits (castPtr start) 0 size startFrames >>= \case
      Done value end | end == ByteString.length bytes -> pure value
      Done _ _ -> throwIO (userError "bytes are left over")
      NeedMore {} -> throwIO (userError "the reply is not whole")
      Malformed reason -> throwIO (userError reason)

-- | Decodes the command's result from the value.
result :: Command a -> Value -> IO a
result given value = either throwIO pure (fromReply (factInfo (commandFacts given)) (commandRequest given) value >>= decoded given)

limits :: Limits
limits = limitsDefaults {limitBulkBytes = 512 * 1024 * 1024, limitElements = 1024 * 1024, limitDepth = 32}
