-- | Numbers of 64 bits without a sign, such as the parts of a stream's ids.
module Redis.Internal.Command.Unsigned
  ( decimalWord64,
    digits,
    readWord64,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy qualified as Lazy
import Data.Char (isDigit, ord)
import Data.Word (Word64)
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Value (Value (BigNumber, Integer), withoutAttributes)

decimalWord64 :: Word64 -> ByteString
decimalWord64 = Lazy.toStrict . Builder.toLazyByteString . Builder.word64Dec

-- | Reads decimal digits.
digits :: ByteString -> Maybe Word64
digits text
  | Char8.null text || Char8.length text > 20 || not (Char8.all isDigit text) = Nothing
  | Char8.length text < 20 = Just (number (\total digit -> total * 10 + fromIntegral digit))
  | otherwise = narrowed (number (\total digit -> total * 10 + toInteger digit))
  where
    number :: Num a => (a -> Int -> a) -> a
    number add = Char8.foldl' (\total char -> add total (ord char - ord '0')) 0 text

narrowed :: Integer -> Maybe Word64
narrowed number
  | number < 0 || number > toInteger (maxBound :: Word64) = Nothing
  | otherwise = Just (fromInteger number)

-- | A number, or its text.
readWord64 :: Decoder Word64
readWord64 reply = maybe (Decode.mismatch "an integer of 64 bits without a sign" reply) Right $ case withoutAttributes reply of
  Integer number -> narrowed (toInteger number)
  BigNumber number -> narrowed number
  other -> either (const Nothing) digits (Decode.bytes other)
