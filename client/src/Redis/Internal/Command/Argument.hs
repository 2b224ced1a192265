-- | Numbers and times as servers read and write them.
module Redis.Internal.Command.Argument
  ( decimal,
    floating,
    secondsUp,
    timeoutSeconds,
    unixSeconds,
    unixMilliseconds,

    -- * Numbers of 64 bits without a sign
    decimalWord64,
    digits,
    readWord64,
  )
where

import Data.Bits (toIntegralSized)
import Data.ByteString (ByteString)
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy qualified as Lazy
import Data.Char (isDigit, ord)
import Data.Int (Int64)
import Data.Time.Clock (NominalDiffTime, UTCTime)
import Data.Time.Clock.POSIX (utcTimeToPOSIXSeconds)
import Data.Word (Word64)
import Numeric (showFFloat)
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Duration
import Redis.Internal.Protocol.Encode (decimalThen)
import Redis.Value (Value (BigNumber, Integer), withoutAttributes)

-- | A whole number in decimal digits.
decimal :: Int64 -> ByteString
decimal number
  | number >= 0 = fromIntegral number `decimalThen` ""
  | otherwise = Lazy.toStrict (Builder.toLazyByteString (Builder.int64Dec number))

-- | A floating-point number; an infinity or a NaN is a word.
floating :: Double -> ByteString
floating number
  -- A shortcut: most scores are such numbers, and 'show' is slow.
  | number >= 1 && number < 10000000 && fromIntegral whole == number = whole `decimalThen` ".0"
  | isNaN number = "nan"
  | isInfinite number = if number > 0 then "inf" else "-inf"
  | otherwise = Char8.pack (show number)
  where
    whole = truncate number :: Int

-- | A duration in whole seconds, rounded up.
secondsUp :: Duration -> ByteString
secondsUp duration = decimal $ case inMilliseconds duration `divMod` 1000 of
  (whole, 0) -> whole
  (whole, _) -> whole + 1

-- | A timeout in seconds with a fraction: digits and a point, no exponent. At least two
-- milliseconds, because zero means no limit.
timeoutSeconds :: Duration -> ByteString
timeoutSeconds duration = case inWholeSeconds duration of
  Just whole | whole > 0 -> decimal whole
  _ -> Char8.pack (showFFloat (Just 6) (max 0.002 (inSeconds duration)) "")

-- | Seconds since 1970, rounded up.
unixSeconds :: UTCTime -> ByteString
unixSeconds = decimal . wholeUp . utcTimeToPOSIXSeconds

-- | Milliseconds since 1970, rounded up.
unixMilliseconds :: UTCTime -> ByteString
unixMilliseconds = decimal . wholeUp . (* 1000) . utcTimeToPOSIXSeconds

-- | Rounds up. A number that does not fit becomes the nearest that does: a time in the far future
-- must not become one in the past, which deletes a key.
wholeUp :: NominalDiffTime -> Int64
wholeUp = fromInteger . max (toInteger (minBound :: Int64)) . min (toInteger (maxBound :: Int64)) . ceiling

decimalWord64 :: Word64 -> ByteString
decimalWord64 = Lazy.toStrict . Builder.toLazyByteString . Builder.word64Dec

-- | Reads decimal digits.
digits :: ByteString -> Maybe Word64
digits text
  | Char8.null text || Char8.length text > 20 || not (Char8.all isDigit text) = Nothing
  | Char8.length text < 20 = Just (number (\total digit -> total * 10 + fromIntegral digit))
  | otherwise = toIntegralSized (number (\total digit -> total * 10 + toInteger digit))
  where
    number :: Num a => (a -> Int -> a) -> a
    number add = Char8.foldl' (\total char -> add total (ord char - ord '0')) 0 text

-- | A number, or its text.
readWord64 :: Decoder Word64
readWord64 reply = maybe (Decode.mismatch "an integer of 64 bits without a sign" reply) Right $ case withoutAttributes reply of
  Integer number -> toIntegralSized number
  BigNumber number -> toIntegralSized number
  other -> either (const Nothing) digits (Decode.bytes other)
