-- | Histograms in the compressed form "V2" of HdrHistogram. That format has twice as many buckets
-- as "Tool.Bench.Histogram"; each of our buckets is written as the one that holds its middle, so
-- nothing is lost when it is read back. Callers store the exact sum and extremes separately.
module Tool.Bench.Histogram.Hdr
  ( encode,
    decode,
    encodeText,
    decodeText,
  )
where

import Codec.Compression.Zlib qualified as Zlib
import Codec.Compression.Zlib.Internal qualified as Zlib.Internal
import Control.Monad (when)
import Data.Bits (countLeadingZeros, finiteBitSize, shiftL, shiftR, testBit, xor, (.&.), (.|.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Base64 qualified as Base64
import Data.ByteString.Builder (Builder)
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Lazy qualified as Lazy
import Data.Int (Int64)
import Data.IntMap.Strict qualified as IntMap
import Data.List qualified as List
import Data.Text (Text)
import Data.Text.Encoding qualified as Text
import Data.Word (Word64)
import Tool.Bench.Histogram (Histogram)
import Tool.Bench.Histogram qualified as Histogram

-- | The histogram in base 64, as in log files. \(O(n)\).
encodeText :: Histogram -> Text
encodeText = Text.decodeLatin1 . Base64.encode . encode

-- | Reads what 'encodeText' writes.
decodeText :: Text -> Either String Histogram
decodeText text = Base64.decode (Text.encodeUtf8 text) >>= decode

-- | The histogram in bytes: a cookie, a length, and the rest compressed. \(O(n)\).
encode :: Histogram -> ByteString
encode histogram =
  built $
    Builder.int32BE compressedCookie
      <> Builder.int32BE (fromIntegral (Lazy.length packed))
      <> Builder.lazyByteString packed
  where
    payload = built (counts histogram)
    packed =
      Zlib.compress . Builder.toLazyByteString $
        Builder.int32BE cookie
          <> Builder.int32BE (fromIntegral (ByteString.length payload))
          -- The position of index 0.
          <> Builder.int32BE 0
          <> Builder.int32BE significantDigits
          -- The smallest value that differs from 0, and the largest value that is possible.
          <> Builder.int64BE 1
          <> Builder.int64BE (fromIntegral (max hour (Histogram.maximumValue histogram)))
          -- The conversion factor of units.
          <> Builder.doubleBE 1
          <> Builder.byteString payload
    hour = 3600000000000

-- The counts in the order of their indexes. A negative number stands for a run of zeros.
counts :: Histogram -> Builder
counts histogram = snd (List.foldl' step (0, mempty) places)
  where
    places =
      [ (placeOf (Histogram.bucketMiddle bucket), held)
        | (bucket, held) <- Histogram.buckets histogram
      ]
    step (next, before) (place, held) =
      (place + 1, before <> zeros (place - next) <> zigZag (fromIntegral held))
    zeros 0 = mempty
    zeros 1 = zigZag 0
    zeros run = zigZag (negate (fromIntegral run))

-- | Reads a histogram, also from other programs, with other digits and another smallest value. The
-- sum and the extremes are those of the buckets' middles. The error says why the bytes are no
-- histogram.
decode :: ByteString -> Either String Histogram
decode bytes = do
  (outer, rest) <- int32 bytes
  when (outer .&. cookieMask /= compressedCookie .&. cookieMask) $
    Left "not an HDR histogram of version 2"
  (size, packed) <- int32 rest
  when (fromIntegral size > ByteString.length packed) $ Left cutOff
  header <- unpacked (ByteString.take (fromIntegral size) packed)
  (inner, r0) <- int32 header
  when (inner .&. cookieMask /= cookie .&. cookieMask) $
    Left "an HDR histogram whose content is of another version"
  (payloadSize, r1) <- int32 r0
  (_, r2) <- int32 r1
  (digits, r3) <- int32 r2
  (smallest, r4) <- bigEndian 8 r3
  when (ByteString.length r4 < 16) $ Left cutOff
  let payload = ByteString.drop 16 r4
  when (digits < 0 || digits > 5 || smallest < 1) $ Left impossible
  let grid = layout (fromIntegral digits) smallest
  -- The largest value of the first two rows would not fit a number.
  when (layoutUnit grid + layoutMagnitude grid > 62) $ Left impossible
  when (fromIntegral payloadSize > ByteString.length payload) $ Left cutOff
  held <- countsIn (ByteString.take (fromIntegral payloadSize) payload)
  let values = [(middleOf grid place, count) | (place, count) <- held]
      least = foldr (min . fst) maxBound values
      greatest = List.foldl' max 0 (map fst values)
      total = sum [toInteger value * toInteger count | (value, count) <- values]
  pure . Histogram.fromBuckets total least greatest . IntMap.toList $
    IntMap.fromListWith (+) [(Histogram.bucketOf value, count) | (value, count) <- values]
  where
    impossible = "an HDR histogram with impossible digits"

-- Indexes and counts, without the zeros.
countsIn :: ByteString -> Either String [(Int, Int)]
countsIn = go 0
  where
    go place bytes
      | ByteString.null bytes = Right []
      | place > longest = tooLong
      | otherwise =
        unZigZag bytes >>= \case
          (value, rest)
            -- The place after it would not fit a number.
            | value < negate (fromIntegral longest) -> tooLong
            | value < 0 -> go (place - fromIntegral value) rest
            | value == 0 -> go (place + 1) rest
            | otherwise -> ((place, fromIntegral value) :) <$> go (place + 1) rest
    longest = 64 * 1048576
    tooLong = Left "an HDR histogram that is too long"

-- How a histogram divides the range of values: the binary logarithms of the smallest unit and of
-- the number of buckets in the first two rows.
data Layout = Layout
  { layoutUnit :: Int,
    layoutMagnitude :: Int
  }

layout :: Int -> Int64 -> Layout
layout digits smallest =
  Layout (63 - countLeadingZeros smallest) (max 1 (ceilingLog2 (2 * 10 ^ digits)))
  where
    ceilingLog2 :: Int -> Int
    ceilingLog2 n = finiteBitSize n - countLeadingZeros (n - 1)

-- The value in the middle of the bucket with this index. For a bucket of width one or two: its
-- smallest value. Our buckets are twice as wide, so the smallest value belongs to the same one.
middleOf :: Layout -> Int -> Int
middleOf Layout {layoutUnit, layoutMagnitude} place
  | place < 2 * half = (place `shiftL` layoutUnit) + middle layoutUnit
  | row + layoutUnit > 62 - layoutMagnitude = maxBound
  | otherwise = ((place - row * half) `shiftL` (row + layoutUnit)) + middle (row + layoutUnit)
  where
    half = 1 `shiftL` (layoutMagnitude - 1)
    row = place `div` half - 1
    middle width = if width <= 1 then 0 else 1 `shiftL` (width - 1)

-- The index of a value with three digits and the smallest unit 1.
placeOf :: Int -> Int
placeOf value = row * 1024 + (value `shiftR` row)
  where
    row = finiteBitSize value - 11 - countLeadingZeros (value .|. 2047)

-- LEB128 of the number with its sign moved to the lowest bit, in at most nine
-- bytes: the ninth has eight bits.
zigZag :: Int64 -> Builder
zigZag signed = go (8 :: Int) (fromIntegral ((signed `shiftL` 1) `xor` (signed `shiftR` 63)))
  where
    go :: Int -> Word64 -> Builder
    go left word
      | word < 0x80 || left == 0 = Builder.word8 (fromIntegral word)
      | otherwise =
        Builder.word8 (fromIntegral (word .&. 0x7f) .|. 0x80) <> go (left - 1) (word `shiftR` 7)

unZigZag :: ByteString -> Either String (Int64, ByteString)
unZigZag = go 0 0
  where
    go :: Int -> Word64 -> ByteString -> Either String (Int64, ByteString)
    go bits word bytes = case ByteString.uncons bytes of
      Nothing -> Left cutOff
      Just (byte, rest)
        | bits == 56 -> Right (signed (word .|. (fromIntegral byte `shiftL` 56)), rest)
        | testBit byte 7 ->
          go (bits + 7) (word .|. (fromIntegral (byte .&. 0x7f) `shiftL` bits)) rest
        | otherwise -> Right (signed (word .|. (fromIntegral byte `shiftL` bits)), rest)
    signed word = fromIntegral (word `shiftR` 1) `xor` negate (fromIntegral (word .&. 1))

int32 :: ByteString -> Either String (Int64, ByteString)
int32 = bigEndian 4

bigEndian :: Int -> ByteString -> Either String (Int64, ByteString)
bigEndian size bytes
  | ByteString.length bytes < size = Left cutOff
  | otherwise =
    Right (ByteString.foldl' (\sofar byte -> sofar * 256 + fromIntegral byte) 0 front, rest)
  where
    (front, rest) = ByteString.splitAt size bytes

-- The decompressed bytes, or why they cannot be decompressed. Content over 256 MiB is cut off.
unpacked :: ByteString -> Either String ByteString
unpacked =
  fmap (Lazy.toStrict . Lazy.take (256 * 1048576) . Lazy.fromChunks)
    . Zlib.Internal.foldDecompressStreamWithInput
      (\chunk -> fmap (chunk :))
      (const (Right []))
      (const (Left "an HDR histogram that cannot be decompressed"))
      (Zlib.Internal.decompressST Zlib.Internal.zlibFormat Zlib.Internal.defaultDecompressParams)
    . Lazy.fromStrict

cutOff :: String
cutOff = "an HDR histogram that is cut off"

built :: Builder -> ByteString
built = Lazy.toStrict . Builder.toLazyByteString

cookie, compressedCookie, cookieMask, significantDigits :: Num a => a
cookie = 0x1c849313
compressedCookie = 0x1c849314
-- The digit before the last is the width of words.
cookieMask = 0xffffff0f
significantDigits = 3
