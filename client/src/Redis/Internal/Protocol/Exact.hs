-- | The exact bytes of a reply, for programs that pass replies on.
--
-- A 'Value' does not say how a server wrote it: @,1e3@ and @,1000@ are one
-- double. So the bytes themselves are kept, beside the value that the parser
-- makes of them. Only replies that are asked for in this way pay for it: the
-- parser is the ordinary one and knows nothing of it.
module Redis.Internal.Protocol.Exact
  ( decodeExact,
    ExactStep (..),
    Exact,
    startExact,
    exactSoFar,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.Word (Word8)
import Foreign.Ptr (Ptr, castPtr, plusPtr)
import Redis.Internal.Protocol.Decode
import Redis.Value (Value)

-- | The state within a reply: the open aggregates, and the bytes that were parsed, last piece first.
data Exact = Exact Frames [ByteString]

-- | The state between two replies. Within a reply, use the state from 'ExactMore'.
startExact :: Exact
startExact = Exact startFrames []

-- | The bytes of the reply that are decoded, the last part first. \(O(1)\).
exactSoFar :: Exact -> [ByteString]
exactSoFar (Exact _ pieces) = pieces

-- | The result of decoding the bytes; see 'Step'.
data ExactStep
  = -- | A whole value, its bytes, and the offset behind them.
    ExactDone Value ByteString Int
  | -- | Call again with this, from that offset, when at least so many bytes
    -- follow it. What is before the offset may be overwritten.
    ExactMore Exact Int Int
  | -- | Not RESP, or beyond a limit. The stream cannot be used any more.
    ExactMalformed String

-- | Reads one value like 'decode', and copies its bytes. \(O(n)\), however they are cut.
decodeExact :: Limits -> Ptr Word8 -> Int -> Int -> Exact -> IO ExactStep
decodeExact limits base at end (Exact frames pieces) =
  decode limits base at end frames >>= \case
    Done value next -> do
      bytes <- ByteString.concat . reverse <$> upTo next
      pure (ExactDone value bytes next)
    NeedMore frames' next missing -> do
      pieces' <- upTo next
      pure (ExactMore (Exact frames' pieces') next missing)
    Malformed reason -> pure (ExactMalformed reason)
  where
    upTo next
      | next == at = pure pieces
      | otherwise = (: pieces) <$> ByteString.packCStringLen (castPtr (base `plusPtr` at), next - at)
