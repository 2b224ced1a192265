-- | The slot of a key, one of a cluster's 16384.
--
-- The slot is CRC16\/XMODEM of the key, or of its hash tag, modulo 16384
-- (<https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>).
-- Every command of a cluster client hashes a key, so this is one loop over the bytes, four at a time,
-- with one table look-up each. The tables are read-only data of the program
-- (@cbits/redis_client_slot.c@): unlike an array built at start-up they need no evaluated-yet check.
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
import Data.Word (Word16, Word8)
import Foreign.Ptr (Ptr, castPtr)

-- | A slot; its number is always within 0 and 16383.
newtype Slot = Slot {slotNumber :: Int}
  deriving stock (Eq, Ord)
  deriving newtype (Show)

instance Bounded Slot where
  minBound = Slot 0
  maxBound = Slot (slotCount - 1)

-- | The number of slots: 16384.
slotCount :: Int
slotCount = 16384

-- | The slot with this number; 'Nothing' if there is none.
slotFromInt :: Int -> Maybe Slot
slotFromInt number
  | number >= 0 && number < slotCount = Just (Slot number)
  | otherwise = Nothing

-- | All slots, ascending.
allSlots :: [Slot]
allSlots = map Slot [0 .. slotCount - 1]

-- | The slot of a key. The bytes between the first @{@ and the first @}@ after it decide alone,
-- unless there are none. \(O(n)\), allocates nothing but its result, 16 bytes (GHC 9.0.2).
keySlot :: ByteString -> Slot
keySlot key =
  -- Reads memory that nobody writes. With unsafeIndex each byte would be boxed: 256 bytes for a key of 16
  -- (GHC 9.0.2, bytestring 0.10.12).
  ByteString.Internal.accursedUnutterablePerformIO $
    ByteString.Unsafe.unsafeUseAsCStringLen key $ \(start, size) ->
      pure $! Slot (fromIntegral (crcOfKey (castPtr start) size 0 0 .&. 0x3fff))

-- | The CRC of a key, given its size, from a position on. Looks for a tag while it hashes: most
-- keys have none, and then the search has cost no pass of its own.
crcOfKey :: Ptr Word8 -> Int -> Word -> Int -> Word
crcOfKey !key !size !crc !at
  | size - at >= 4 && noBrace at && noBrace (at + 1) && noBrace (at + 2) && noBrace (at + 3) =
    crcOfKey key size (crcFourSteps crc key at) (at + 4)
  | at >= size = crc
  | noBrace at = crcOfKey key size (crcStep crc key at) (at + 1)
  | end > at + 1 = crcUpTo end key 0 (at + 1)
  | otherwise = crcUpTo size key crc at
  where
    noBrace position = indexOffPtr key position /= openBrace
    end = closingBrace key size (at + 1)

-- | The position of the next closing brace; 0 if there is none.
closingBrace :: Ptr Word8 -> Int -> Int -> Int
closingBrace !key !size !at
  | at >= size = 0
  | indexOffPtr key at == closeBrace = at
  | otherwise = closingBrace key size (at + 1)

-- | The CRC up to an end, which is within the key. Braces are ordinary bytes here.
crcUpTo :: Int -> Ptr Word8 -> Word -> Int -> Word
crcUpTo !end !key !crc !at
  | end - at >= 4 = crcUpTo end key (crcFourSteps crc key at) (at + 4)
  | at >= end = crc
  | otherwise = crcUpTo end key (crcStep crc key at) (at + 1)

openBrace, closeBrace :: Word8
openBrace = 0x7b
closeBrace = 0x7d

-- | The CRC after the byte at a position.
crcStep :: Word -> Ptr Word8 -> Int -> Word
crcStep crc key at =
  ((crc `shiftL` 8) .&. 0xffff) `xor` crcFollowed 0 ((crc `shiftR` 8) `xor` byteAt key at)

-- | The CRC after four more bytes, by look-ups that need not wait for each other.
crcFourSteps :: Word -> Ptr Word8 -> Int -> Word
crcFourSteps crc key at =
  crcFollowed 3 ((crc `shiftR` 8) `xor` byteAt key at)
    `xor` crcFollowed 2 ((crc .&. 0xff) `xor` byteAt key (at + 1))
    `xor` crcFollowed 1 (byteAt key (at + 2))
    `xor` crcFollowed 0 (byteAt key (at + 3))
{-# INLINE crcFourSteps #-}

byteAt :: Ptr Word8 -> Int -> Word
byteAt key at = fromIntegral (indexOffPtr key at)

-- | CRC16\/XMODEM (polynomial 0x1021) of one byte with so many zero bytes behind it, three at most.
crcFollowed :: Int -> Word -> Word
crcFollowed zeros byte = fromIntegral (indexOffPtr crcTables (256 * zeros + fromIntegral byte))
{-# INLINE crcFollowed #-}

-- | Four tables of 256 entries.
foreign import ccall "&redis_client_crc_tables"
  crcTables :: Ptr Word16
