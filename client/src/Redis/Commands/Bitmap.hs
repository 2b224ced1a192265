-- | Bitmaps: strings as rows of bits, and of numbers of any width.
--
-- > run client (Redis.setbit "example:{bitmaps}:may" 1000 True)
-- > run client (Redis.bitcount "example:{bitmaps}:may")
--
-- Bit 0 is the highest bit of the first byte. Bits past the end of the string are 0, and a missing
-- key is an empty string.
--
-- The server's page: <https://valkey.io/commands/#bitmap>.
module Redis.Commands.Bitmap
  ( -- * Single bits
    getbit,
    setbit,

    -- * Counting and finding
    bitcount,
    bitcountWith,
    BitcountOptions (bitcountRange),
    bitcountDefaults,
    bitpos,
    bitposWith,
    BitposOptions (bitposRange),
    bitposDefaults,
    BitRange (..),

    -- * Several bitmaps
    bitop,
    BitOperation (..),

    -- * Numbers of any width
    bitfield,
    BitfieldOperation (..),
    bitfieldRo,
    BitfieldType (..),
    BitfieldOffset (..),
    BitfieldOverflow (..),
  )
where

import Redis.Decode qualified as Decode
import Redis.Internal.Command.Common

-- | @GETBIT key offset@: whether that bit is 1. The server refuses a negative offset, and one past
-- 512 MB. \(O(1)\), [since 2.2.0](https://valkey.io/commands/getbit/).
getbit :: ByteString -> Int64 -> Command Bool
getbit name offset = command "GETBIT" [key name, int offset] Decode.boolean

-- | @SETBIT key offset 0|1@: sets the bit to 1 ('True') or 0; its previous value. The string grows
-- as far as the bit, and zeros fill the gap: a first bit far away costs the server memory and time
-- for all bits before it. The server refuses the same offsets as for 'getbit'. \(O(1)\),
-- [since 2.2.0](https://valkey.io/commands/setbit/).
setbit :: ByteString -> Int64 -> Bool -> Command Bool
setbit name offset bit = command "SETBIT" [key name, int offset, oneOrZero bit] Decode.boolean

oneOrZero :: Bool -> Argument
oneOrZero bit = int (if bit then 1 else 0)

-- | A part of a bitmap. Positions count from 0; negative ones count from the end, where -1 is the
-- last. Both ends are included.
data BitRange
  = -- | From this byte to the end.
    FromByte Int64
  | -- | From one byte to another.
    FromByteTo Int64 Int64
  | -- | From one bit to another (BIT, since 7.0.0).
    FromBitTo Int64 Int64
  deriving stock (Eq, Show)

-- | @BITCOUNT key@: how many bits are 1. \(O(n)\) in bytes,
-- [since 2.6.0](https://valkey.io/commands/bitcount/).
bitcount :: ByteString -> Command Int64
bitcount = bitcountWith bitcountDefaults

-- | Which part of the string to count.
newtype BitcountOptions = BitcountOptions
  { -- | 'Nothing' is the whole string.
    bitcountRange :: Maybe BitRange
  }
  deriving stock (Eq, Show)

-- | Counts the whole string.
bitcountDefaults :: BitcountOptions
bitcountDefaults = BitcountOptions {bitcountRange = Nothing}

-- | @BITCOUNT key [start end [BIT]]@: like 'bitcount', in a part of the string.
bitcountWith :: BitcountOptions -> ByteString -> Command Int64
bitcountWith BitcountOptions {bitcountRange} name =
  command "BITCOUNT" (key name : maybe [] range bitcountRange) Decode.integer
  where
    range = \case
      -- Most servers require an end.
      FromByte start -> [int start, int (-1)]
      other -> bitRange other

bitRange :: BitRange -> [Argument]
bitRange = \case
  FromByte start -> [int start]
  FromByteTo start end -> [int start, int end]
  FromBitTo start end -> [int start, int end, arg "BIT"]

-- | @BITPOS key 0|1@: the position of the first bit that is 1 ('True') or 0; 'Nothing' if there is
-- none. A string of ones has its first 0 just past its end. \(O(n)\) in bytes,
-- [since 2.8.7](https://valkey.io/commands/bitpos/).
bitpos :: ByteString -> Bool -> Command (Maybe Int64)
bitpos = bitposWith bitposDefaults

-- | Which part of the string to search.
newtype BitposOptions = BitposOptions
  { -- | 'Nothing' is the whole string.
    bitposRange :: Maybe BitRange
  }
  deriving stock (Eq, Show)

-- | Searches the whole string.
bitposDefaults :: BitposOptions
bitposDefaults = BitposOptions {bitposRange = Nothing}

-- | @BITPOS key 0|1 [start [end [BIT]]]@: like 'bitpos', in a part of the string. The position
-- still counts from the beginning of the string. With an end, the search for a 0 stops there: a
-- part of ones gives 'Nothing'.
bitposWith :: BitposOptions -> ByteString -> Bool -> Command (Maybe Int64)
bitposWith BitposOptions {bitposRange} name bit =
  command "BITPOS" ([key name, oneOrZero bit] <> maybe [] bitRange bitposRange) $ \reply -> do
    position <- Decode.integer reply
    case position of
      -1 -> Right Nothing
      _
        | position >= 0 -> Right (Just position)
        | otherwise -> Decode.mismatch "a position or -1" reply

-- | How to combine bitmaps, bit by bit. Shorter bitmaps count as if zeros followed.
data BitOperation
  = -- | AND: the bits that are 1 in all bitmaps.
    BitAnd (NonEmpty ByteString)
  | -- | OR: the bits that are 1 in at least one bitmap.
    BitOr (NonEmpty ByteString)
  | -- | XOR: the bits that are 1 in an odd number of bitmaps.
    BitXor (NonEmpty ByteString)
  | -- | NOT: the bits that are 0 in the bitmap.
    BitNot ByteString
  | -- | DIFF (Redis since 8.2.0): the bits that are 1 in the first bitmap and in none of the others.
    BitDiff ByteString (NonEmpty ByteString)
  | -- | DIFF1 (Redis since 8.2.0): the bits that are 1 in any of the others, but not in the first.
    BitDiff1 ByteString (NonEmpty ByteString)
  | -- | ANDOR (Redis since 8.2.0): the bits that are 1 in the first bitmap and in any other.
    BitAndor ByteString (NonEmpty ByteString)
  | -- | ONE (Redis since 8.2.0): the bits that are 1 in exactly one bitmap.
    BitOne (NonEmpty ByteString)
  deriving stock (Eq, Show)

-- | @BITOP AND|OR|XOR|NOT|DIFF|DIFF1|ANDOR|ONE destination key …@: stores the result of the operation at the
-- destination; its length in bytes, which is that of the longest source. In a cluster all keys must
-- share a slot. \(O(n)\) in bytes, [since 2.6.0](https://valkey.io/commands/bitop/).
--
-- > bitop "both" (BitAnd ("monday" :| ["tuesday"]))
bitop :: ByteString -> BitOperation -> Command Int64
bitop destination operation =
  command "BITOP" (arg word : key destination : keys sources) Decode.integer
  where
    (word, sources) = case operation of
      BitAnd names -> ("AND", toList names)
      BitOr names -> ("OR", toList names)
      BitXor names -> ("XOR", toList names)
      BitNot name -> ("NOT", [name])
      BitDiff first rest -> ("DIFF", first : toList rest)
      BitDiff1 first rest -> ("DIFF1", first : toList rest)
      BitAndor first rest -> ("ANDOR", first : toList rest)
      BitOne names -> ("ONE", toList names)

-- | A number's kind and its width in bits.
data BitfieldType
  = -- | With a sign, 1 to 64 bits: @Signed 8@ is @i8@.
    Signed Int
  | -- | Without a sign, 1 to 63 bits: @Unsigned 8@ is @u8@.
    Unsigned Int
  deriving stock (Eq, Show)

-- | Where a number begins.
data BitfieldOffset
  = -- | At this bit.
    AtBit Int64
  | -- | @#n@: at the n-th number of this width, counted from 0.
    AtNumber Int64
  deriving stock (Eq, Show)

-- | What happens to a number that does not fit.
data BitfieldOverflow
  = -- | WRAP: it loses its high bits. This is the server's default.
    OverflowWraps
  | -- | SAT: it becomes the least or the greatest number that fits.
    OverflowSaturates
  | -- | FAIL: it does not change, and the result is 'Nothing'.
    OverflowFails
  deriving stock (Eq, Show)

-- | One step of 'bitfield'.
data BitfieldOperation
  = -- | GET: reads the number.
    BitfieldGet BitfieldType BitfieldOffset
  | -- | SET: stores another number; the result is the previous one.
    BitfieldSet BitfieldOverflow BitfieldType BitfieldOffset Int64
  | -- | INCRBY: adds to the number; the result is the new one.
    BitfieldIncrby BitfieldOverflow BitfieldType BitfieldOffset Int64
  deriving stock (Eq, Show)

-- | @BITFIELD key GET type offset …@: runs the steps in order, as one atomic command, and gives the
-- result of each: 'Nothing' for a step that 'OverflowFails' prevented. The word OVERFLOW is sent
-- only where the mode changes. The server refuses invalid widths and offsets, and then changes
-- nothing. \(O(1)\) per step, [since 3.2.0](https://valkey.io/commands/bitfield/).
--
-- > bitfield "counters" (BitfieldIncrby OverflowSaturates (Unsigned 16) (AtNumber 3) 1 :| [])
bitfield :: ByteString -> NonEmpty BitfieldOperation -> Command [Maybe Int64]
bitfield name operations =
  command
    "BITFIELD"
    (key name : steps OverflowWraps (toList operations))
    (Decode.listOf (length operations) (Decode.nullable Decode.integer))
  where
    steps current = \case
      [] -> []
      BitfieldGet type' offset : rest -> getStep (type', offset) <> steps current rest
      BitfieldSet overflow type' offset new : rest ->
        overflowing current overflow <> (arg "SET" : place type' offset) <> (int new : steps overflow rest)
      BitfieldIncrby overflow type' offset by : rest ->
        overflowing current overflow <> (arg "INCRBY" : place type' offset) <> (int by : steps overflow rest)
    overflowing current wanted
      | current == wanted = []
      | otherwise =
        [ arg "OVERFLOW",
          arg $ case wanted of
            OverflowWraps -> "WRAP"
            OverflowSaturates -> "SAT"
            OverflowFails -> "FAIL"
        ]

-- | @BITFIELD_RO key GET type offset …@: the numbers at these places. It only reads, so a replica
-- may answer. \(O(1)\) per number, [since 6.0.0](https://valkey.io/commands/bitfield_ro/).
bitfieldRo :: ByteString -> NonEmpty (BitfieldType, BitfieldOffset) -> Command [Int64]
bitfieldRo name places =
  command "BITFIELD_RO" (key name : concatMap getStep places) (Decode.listOf (length places) Decode.integer)

getStep :: (BitfieldType, BitfieldOffset) -> [Argument]
getStep (type', offset) = arg "GET" : place type' offset

place :: BitfieldType -> BitfieldOffset -> [Argument]
place type' offset = [arg typeWord, arg offsetWord]
  where
    typeWord = case type' of
      Signed width -> "i" <> decimal (fromIntegral width)
      Unsigned width -> "u" <> decimal (fromIntegral width)
    offsetWord = case offset of
      AtBit bit -> decimal bit
      AtNumber number -> "#" <> decimal number
