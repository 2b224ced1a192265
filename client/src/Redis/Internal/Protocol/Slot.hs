{-# LANGUAGE MagicHash #-}

-- | Which of a cluster's 16384 slots a key belongs to.
--
-- The slot is CRC16\/XMODEM of the key, or of its hash tag, modulo 16384
-- (<https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>).
-- Every command of a cluster client hashes a key, so this is one loop over the
-- bytes with one table look-up each. The table is a literal in the program's
-- read-only data: unlike an array built at start-up it needs no evaluated-yet
-- check and nothing for the garbage collector to follow.
module Redis.Internal.Protocol.Slot
  ( Slot,
    slotCount,
    slotNumber,
    slotFromInt,
    allSlots,
    keySlot,
  )
where

import Data.Bits (shiftL, shiftR, xor, (.&.))
import Data.ByteString (ByteString)
import Data.ByteString.Internal qualified as ByteString.Internal
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Data.Primitive.Ptr (indexOffPtr)
import Data.Word (Word16, Word8, byteSwap16)
import Foreign.Ptr (castPtr)
import GHC.ByteOrder (ByteOrder (BigEndian, LittleEndian), targetByteOrder)
import GHC.Exts (Ptr (Ptr))

-- | A slot; always within 0 and 16383.
newtype Slot = Slot Int
  deriving stock (Eq, Ord)
  deriving newtype (Show)

instance Bounded Slot where
  minBound = Slot 0
  maxBound = Slot (slotCount - 1)

-- | 16384.
slotCount :: Int
slotCount = 16384

-- | From 0 to 16383.
slotNumber :: Slot -> Int
slotNumber (Slot number) = number

-- | 'Nothing' for what is no slot.
slotFromInt :: Int -> Maybe Slot
slotFromInt number
  | number >= 0 && number < slotCount = Just (Slot number)
  | otherwise = Nothing

-- | Ascending.
allSlots :: [Slot]
allSlots = map Slot [0 .. slotCount - 1]

-- | The slot of a key. What stands between the first @{@ and the first @}@
-- after it decides alone, unless it is empty. \(O(n)\), allocates nothing but
-- its result, 16 bytes (GHC 9.0.2).
keySlot :: ByteString -> Slot
keySlot key =
  -- Reads memory that nobody writes, and is done with it when it returns.
  -- Taking the bytes one by one with unsafeIndex instead boxes each of them:
  -- 256 bytes for a key of 16 (GHC 9.0.2, bytestring 0.10.12).
  ByteString.Internal.accursedUnutterablePerformIO $
    ByteString.Unsafe.unsafeUseAsCStringLen key $ \(start, size) ->
      pure $! slotOfCrc (crcOfKey (castPtr start) size 0 0)

slotOfCrc :: Word16 -> Slot
slotOfCrc crc = Slot (fromIntegral (crc .&. 0x3fff))

-- | Of a key and its size, from a position on. Looks for a tag while it
-- hashes: most keys have none, and then the search has cost no pass of its own.
crcOfKey :: Ptr Word8 -> Int -> Word16 -> Int -> Word16
crcOfKey !key !size !crc !at
  | at >= size = crc
  | byte /= openBrace = crcOfKey key size (crcStep crc byte) (at + 1)
  | end > at + 1 = crcUpTo end key 0 (at + 1)
  | otherwise = crcUpTo size key crc at
  where
    byte = indexOffPtr key at
    end = closingBrace key size (at + 1)

-- | Where the next closing brace is; 0 if there is none.
closingBrace :: Ptr Word8 -> Int -> Int -> Int
closingBrace !key !size !at
  | at >= size = 0
  | indexOffPtr key at == closeBrace = at
  | otherwise = closingBrace key size (at + 1)

-- | Up to an end, which is within the key, and whatever the bytes.
crcUpTo :: Int -> Ptr Word8 -> Word16 -> Int -> Word16
crcUpTo !end !key !crc !at
  | at >= end = crc
  | otherwise = crcUpTo end key (crcStep crc (indexOffPtr key at)) (at + 1)

openBrace, closeBrace :: Word8
openBrace = 0x7b
closeBrace = 0x7d

crcStep :: Word16 -> Word8 -> Word16
crcStep crc byte =
  (crc `shiftL` 8) `xor` crcOfByte (fromIntegral (crc `shiftR` 8) `xor` byte)

-- | CRC16\/XMODEM (polynomial 0x1021) of one byte.
crcOfByte :: Word8 -> Word16
crcOfByte byte =
  -- Within the literal: it has an entry for every byte.
  let stored = indexOffPtr crcTable (fromIntegral byte)
   in case targetByteOrder of
        LittleEndian -> stored
        BigEndian -> byteSwap16 stored

-- | 256 entries of two bytes each, the low byte first.
crcTable :: Ptr Word16
crcTable =
  Ptr
    "\x00\x00\x21\x10\x42\x20\x63\x30\x84\x40\xa5\x50\xc6\x60\xe7\x70\
    \\x08\x81\x29\x91\x4a\xa1\x6b\xb1\x8c\xc1\xad\xd1\xce\xe1\xef\xf1\
    \\x31\x12\x10\x02\x73\x32\x52\x22\xb5\x52\x94\x42\xf7\x72\xd6\x62\
    \\x39\x93\x18\x83\x7b\xb3\x5a\xa3\xbd\xd3\x9c\xc3\xff\xf3\xde\xe3\
    \\x62\x24\x43\x34\x20\x04\x01\x14\xe6\x64\xc7\x74\xa4\x44\x85\x54\
    \\x6a\xa5\x4b\xb5\x28\x85\x09\x95\xee\xe5\xcf\xf5\xac\xc5\x8d\xd5\
    \\x53\x36\x72\x26\x11\x16\x30\x06\xd7\x76\xf6\x66\x95\x56\xb4\x46\
    \\x5b\xb7\x7a\xa7\x19\x97\x38\x87\xdf\xf7\xfe\xe7\x9d\xd7\xbc\xc7\
    \\xc4\x48\xe5\x58\x86\x68\xa7\x78\x40\x08\x61\x18\x02\x28\x23\x38\
    \\xcc\xc9\xed\xd9\x8e\xe9\xaf\xf9\x48\x89\x69\x99\x0a\xa9\x2b\xb9\
    \\xf5\x5a\xd4\x4a\xb7\x7a\x96\x6a\x71\x1a\x50\x0a\x33\x3a\x12\x2a\
    \\xfd\xdb\xdc\xcb\xbf\xfb\x9e\xeb\x79\x9b\x58\x8b\x3b\xbb\x1a\xab\
    \\xa6\x6c\x87\x7c\xe4\x4c\xc5\x5c\x22\x2c\x03\x3c\x60\x0c\x41\x1c\
    \\xae\xed\x8f\xfd\xec\xcd\xcd\xdd\x2a\xad\x0b\xbd\x68\x8d\x49\x9d\
    \\x97\x7e\xb6\x6e\xd5\x5e\xf4\x4e\x13\x3e\x32\x2e\x51\x1e\x70\x0e\
    \\x9f\xff\xbe\xef\xdd\xdf\xfc\xcf\x1b\xbf\x3a\xaf\x59\x9f\x78\x8f\
    \\x88\x91\xa9\x81\xca\xb1\xeb\xa1\x0c\xd1\x2d\xc1\x4e\xf1\x6f\xe1\
    \\x80\x10\xa1\x00\xc2\x30\xe3\x20\x04\x50\x25\x40\x46\x70\x67\x60\
    \\xb9\x83\x98\x93\xfb\xa3\xda\xb3\x3d\xc3\x1c\xd3\x7f\xe3\x5e\xf3\
    \\xb1\x02\x90\x12\xf3\x22\xd2\x32\x35\x42\x14\x52\x77\x62\x56\x72\
    \\xea\xb5\xcb\xa5\xa8\x95\x89\x85\x6e\xf5\x4f\xe5\x2c\xd5\x0d\xc5\
    \\xe2\x34\xc3\x24\xa0\x14\x81\x04\x66\x74\x47\x64\x24\x54\x05\x44\
    \\xdb\xa7\xfa\xb7\x99\x87\xb8\x97\x5f\xe7\x7e\xf7\x1d\xc7\x3c\xd7\
    \\xd3\x26\xf2\x36\x91\x06\xb0\x16\x57\x66\x76\x76\x15\x46\x34\x56\
    \\x4c\xd9\x6d\xc9\x0e\xf9\x2f\xe9\xc8\x99\xe9\x89\x8a\xb9\xab\xa9\
    \\x44\x58\x65\x48\x06\x78\x27\x68\xc0\x18\xe1\x08\x82\x38\xa3\x28\
    \\x7d\xcb\x5c\xdb\x3f\xeb\x1e\xfb\xf9\x8b\xd8\x9b\xbb\xab\x9a\xbb\
    \\x75\x4a\x54\x5a\x37\x6a\x16\x7a\xf1\x0a\xd0\x1a\xb3\x2a\x92\x3a\
    \\x2e\xfd\x0f\xed\x6c\xdd\x4d\xcd\xaa\xbd\x8b\xad\xe8\x9d\xc9\x8d\
    \\x26\x7c\x07\x6c\x64\x5c\x45\x4c\xa2\x3c\x83\x2c\xe0\x1c\xc1\x0c\
    \\x1f\xef\x3e\xff\x5d\xcf\x7c\xdf\x9b\xaf\xba\xbf\xd9\x8f\xf8\x9f\
    \\x17\x6e\x36\x7e\x55\x4e\x74\x5e\x93\x2e\xb2\x3e\xd1\x0e\xf0\x1e"#
