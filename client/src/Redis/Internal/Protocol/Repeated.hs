{-# LANGUAGE MultiWayIf #-}

-- | Decodes messages that repeat each other. Messages that come one after the other on one channel
-- differ only in their last string. So the bytes before it are compared with those of the message
-- before, and only the last string is made anew, which is much less work.
module Redis.Internal.Protocol.Repeated
  ( Came (..),
    decodeRun,
    withLast,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Internal qualified as ByteString.Internal
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Data.Word (Word8)
import Foreign.Marshal.Utils (copyBytes)
import Foreign.Ptr (Ptr, castPtr, plusPtr)
import Foreign.Storable (peekByteOff)
import Redis.Internal.Protocol.Decode
import Redis.Value (Value (..))

-- | A value that came.
data Came
  = Came Value
  | -- | A value like the one before it, but with this last string.
    Again ByteString

-- | Puts another string in the place of the last.
withLast :: ByteString -> Value -> Value
withLast payload = \case
  Push items -> Push (replaced items)
  Array items -> Array (replaced items)
  value -> value
  where
    replaced = \case
      [] -> []
      [_] -> [BulkString payload]
      item : items -> item : replaced items

-- | Reads all values that are complete between two offsets, like 'decode'. The first value may have begun in the
-- frames. Returns the values, last first, and how to go on; never 'Done'.
decodeRun :: Limits -> Ptr Word8 -> Int -> Int -> Frames -> IO ([Came], Step)
decodeRun limits base start end = slow [] start
  where
    slow :: [Came] -> Int -> Frames -> IO ([Came], Step)
    slow came at frames =
      decode limits base at end frames >>= \case
        Done value next
          | betweenReplies frames,
            Just left <- lastOf value -> do
            template <- ByteString.packCStringLen (castPtr (base `plusPtr` at), next - at - left)
            again template (Came value : came) next
          | otherwise -> slow (Came value : came) next startFrames
        other -> pure (came, other)

    -- Compares with the template, which ends where the last string's size begins.
    again :: ByteString -> [Came] -> Int -> IO ([Came], Step)
    again template came at
      | end - at < size + 5 = slow came at startFrames
      | otherwise = do
        order <- ByteString.Unsafe.unsafeUseAsCString template $ \bytes -> ByteString.Internal.memcmp (castPtr bytes) (base `plusPtr` at) (fromIntegral size)
        if order /= 0 then slow came at startFrames else sized 0 (at + size)
      where
        size = ByteString.length template

        -- If a size is not written as servers write it, 'decode' looks at it.
        sized :: Int -> Int -> IO ([Came], Step)
        sized !count !position
          | position + 1 >= end || count > maxSize = slow came at startFrames
          | otherwise = do
            byte <- peekByteOff base position :: IO Word8
            let digit = fromIntegral byte - 48
            if
                | digit >= 0 && digit < 10 && (count > 0 || position == at + size) -> sized (count * 10 + digit) (position + 1)
                | byte == 13 && position > at + size && position + count + 4 <= end -> payload count (position + 2)
                | otherwise -> slow came at startFrames

        payload count from = do
          cr <- peekByteOff base (from + count) :: IO Word8
          lf <- peekByteOff base (from + count + 1) :: IO Word8
          before <- peekByteOff base (from - 1) :: IO Word8
          if cr /= 13 || lf /= 10 || before /= 10
            then slow came at startFrames
            else do
              bytes <- ByteString.Internal.create count $ \to -> copyBytes to (base `plusPtr` from) count
              again template (Again bytes : came) (from + count + 2)

    maxSize = limitBulkBytes limits `quot` 10 - 1

    -- The number of bytes from the size of the last string on, in a message of strings.
    lastOf = \case
      Push items -> ofItems items
      Array items -> ofItems items
      _ -> Nothing
    ofItems = \case
      [BulkString _, BulkString _, BulkString payload] -> Just (sizeOf payload)
      [BulkString _, BulkString _, BulkString _, BulkString payload] -> Just (sizeOf payload)
      _ -> Nothing
    sizeOf payload = let count = ByteString.length payload in length (show count) + 2 + count + 2
