{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}

-- | Parses floating-point numbers from the text in which servers write them.
--
-- Every result is the nearest double, as 'fromRational' would find it, which takes much longer than all the
-- rest of decoding. So the usual form, up to 19 digits with a point among them, is computed with machine
-- words.
module Redis.Internal.Protocol.Double
  ( parseDouble,
    parseInteger,
  )
where

import Data.Bits (countLeadingZeros, unsafeShiftL, unsafeShiftR, (.&.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Data.Char (isDigit)
import Data.Word (Word8)
import Foreign.Ptr (Ptr, castPtr)
import Foreign.Storable (peekByteOff)
import GHC.Exts (Word (W#), quotRemWord2#)
import System.IO.Unsafe (unsafeDupablePerformIO)

-- | A number as servers write it, in any version of the protocol:
-- digits with an optional fraction and exponent, or @inf@, @-inf@, @nan@. \(O(n)\)
-- for up to 19 digits without an exponent.
parseDouble :: ByteString -> Maybe Double
parseDouble text = case plain of
  Nothing -> anyNumber text
  found -> found
  where
    -- Dupable: it only reads immutable memory. By pointer, because each byte
    -- taken by an index costs a closure with GHC 9.0.
    plain =
      unsafeDupablePerformIO . ByteString.Unsafe.unsafeUseAsCStringLen text $ \(start, size) ->
        plainDecimal (castPtr start) size

-- | At most 19 digits, maybe with a sign before and a point among them; else 'Nothing'.
plainDecimal :: Ptr Word8 -> Int -> IO (Maybe Double)
plainDecimal start size
  | size == 0 || size > 21 = pure Nothing
  | otherwise =
    byteAt 0 >>= \case
      45 -> fmap negate <$> digits 1 0 0
      43 -> digits 1 0 0
      _ -> digits 0 0 0
  where
    -- Before the point: counts the digits.
    digits :: Int -> Int -> Word -> IO (Maybe Double)
    digits !at !count !number
      | at == size = ended count 0 number
      | otherwise =
        byteAt at >>= \case
          46 -> fraction (at + 1) count 0 number
          byte
            | byte - 48 < 10 -> digits (at + 1) (count + 1) (number * 10 + (byte - 48))
            | otherwise -> pure Nothing

    -- Behind the point: counts those digits, too.
    fraction :: Int -> Int -> Int -> Word -> IO (Maybe Double)
    fraction !at !count !behind !number
      | at == size = ended count behind number
      | otherwise = do
        byte <- byteAt at
        if byte - 48 < 10
          then fraction (at + 1) (count + 1) (behind + 1) (number * 10 + (byte - 48))
          else pure Nothing

    -- More than 19 digits may have overflowed.
    ended :: Int -> Int -> Word -> IO (Maybe Double)
    ended !count !behind !number
      | count == 0 || count > 19 = pure Nothing
      | number > 9007199254740992 = pure $! Just $! (number `overTenTo` behind)
      | behind == 0 = pure $! Just $! fromIntegral number
      | otherwise = pure $! Just $! (fromIntegral number / 10 ^ behind)

    byteAt :: Int -> IO Word
    byteAt at = (fromIntegral :: Word8 -> Word) <$> peekByteOff start at

-- | The double nearest to the number divided by that power of ten; of two that are equally near,
-- the even one. For a number of more than 53 bits, and a power of up to 19.
--
-- Number and divisor are shifted to 64 bits. The number is shifted by 63 bits more; its quotient by
-- the divisor has 63 bits or 64, and the remainder tells whether the quotient is exact.
overTenTo :: Word -> Int -> Double
overTenTo number power = encodeFloat (toInteger (if up then kept + 1 else kept)) (excess - 63 - shift + shift' - power)
  where
    -- A power of ten contains a power of two, which is left to the exponent.
    divisor = 5 ^ power :: Word
    shift = countLeadingZeros number
    shift' = countLeadingZeros divisor
    shifted = number `unsafeShiftL` shift
    (quotient, remainder) = quotRemWord2 (shifted `unsafeShiftR` 1) (shifted `unsafeShiftL` 63) (divisor `unsafeShiftL` shift')
    excess = 11 - countLeadingZeros quotient
    kept = quotient `unsafeShiftR` excess
    cut = quotient .&. (1 `unsafeShiftL` excess - 1)
    half = 1 `unsafeShiftL` (excess - 1)
    up = cut > half || cut == half && (remainder /= 0 || odd kept)

-- | Quotient and remainder of a number of two words, the high word less than the divisor.
quotRemWord2 :: Word -> Word -> Word -> (Word, Word)
quotRemWord2 (W# high) (W# low) (W# divisor) = case quotRemWord2# high low divisor of
  (# quotient, remainder #) -> (W# quotient, W# remainder)
{-# INLINE quotRemWord2 #-}

-- | Parses any number, by way of 'Rational'. The exponent is clamped, or it could ask for gigabytes of digits.
anyNumber :: ByteString -> Maybe Double
anyNumber text = case text of
  "inf" -> Just infinity
  "+inf" -> Just infinity
  "-inf" -> Just (negate infinity)
  "nan" -> Just (0 / 0)
  "-nan" -> Just (0 / 0)
  _ -> case Char8.uncons text of
    Just ('-', rest) -> negate <$> unsigned rest
    Just ('+', rest) -> unsigned rest
    _ -> unsigned text
  where
    infinity = 1 / 0
    unsigned body = do
      let (whole, afterWhole) = Char8.span isDigit body
          (fraction, afterFraction) = case Char8.uncons afterWhole of
            Just ('.', rest) -> Char8.span isDigit rest
            _ -> ("", afterWhole)
          mantissaDigits = whole <> fraction
      mantissa <- parseInteger mantissaDigits
      power <- case Char8.uncons afterFraction of
        Nothing -> Just 0
        Just (e, rest) | e == 'e' || e == 'E' -> clampExponent (ByteString.length mantissaDigits) <$> parseInteger rest
        _ -> Nothing
      let scaled = power - ByteString.length fraction
      Just (fromRational (fromInteger mantissa * 10 ^^ scaled))
    -- Beyond this a double is zero or infinite, whatever the digits are.
    clampExponent :: Int -> Integer -> Int
    clampExponent digits = fromInteger . max (negate bound) . min bound
      where
        bound = fromIntegral digits + 400

-- | A whole number, maybe with a sign, and nothing else.
parseInteger :: ByteString -> Maybe Integer
parseInteger text = case Char8.readInteger text of
  Just (number, "") -> Just number
  _ -> Nothing
