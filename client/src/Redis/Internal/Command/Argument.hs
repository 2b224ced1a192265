-- | Numbers and times as servers read them.
module Redis.Internal.Command.Argument
  ( decimal,
    floating,
    secondsUp,
    timeoutSeconds,
    unixSeconds,
    unixMilliseconds,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Lazy qualified as Lazy
import Data.Int (Int64)
import Data.Time.Clock (UTCTime)
import Data.Time.Clock.POSIX (utcTimeToPOSIXSeconds)
import Numeric (showFFloat)
import Redis.Duration
import Redis.Internal.Protocol.Encode (decimalThen)

-- | Decimal digits.
decimal :: Int64 -> ByteString
decimal number
  | number >= 0 = fromIntegral number `decimalThen` ""
  | otherwise = Lazy.toStrict (Builder.toLazyByteString (Builder.int64Dec number))

-- | A floating-point number as it is shown; what has no digits is a word.
floating :: Double -> ByteString
floating number
  -- Most scores are such, and to show one takes half a microsecond.
  | number >= 1 && number < 10000000 && fromIntegral whole == number = whole `decimalThen` ".0"
  | isNaN number = "nan"
  | isInfinite number = if number > 0 then "inf" else "-inf"
  | otherwise = Char8.pack (show number)
  where
    whole = truncate number :: Int

-- | Whole seconds, rounded up.
secondsUp :: Duration -> ByteString
secondsUp duration = decimal $ case inMilliseconds duration `divMod` 1000 of
  (whole, 0) -> whole
  (whole, _) -> whole + 1

-- | Seconds with a fraction, for a timeout: digits and a point, no exponent. Never
-- zero, which is for ever.
timeoutSeconds :: Duration -> ByteString
timeoutSeconds duration = case inWholeSeconds duration of
  Just whole | whole > 0 -> decimal whole
  _ -> Char8.pack (showFFloat (Just 6) (max 0.002 (inSeconds duration)) "")

-- | Seconds since 1970, rounded up.
unixSeconds :: UTCTime -> ByteString
unixSeconds = decimal . ceiling . utcTimeToPOSIXSeconds

-- | Milliseconds since 1970, rounded up.
unixMilliseconds :: UTCTime -> ByteString
unixMilliseconds = decimal . ceiling . (* 1000) . utcTimeToPOSIXSeconds
