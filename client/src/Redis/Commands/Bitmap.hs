-- | Bitmaps: strings as rows of bits, and of numbers of any width.
--
-- > run client (Redis.setbit "example:{bitmaps}:may" 1000 True)
-- > run client (Redis.bitcount "example:{bitmaps}:may")
--
-- Bit 0 is the highest one of the first byte. What lies past the end of the string is
-- 0, and a missing key is an empty string.
--
-- What the server says of them: <https://valkey.io/commands/#bitmap>.
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

import Data.ByteString (ByteString)
import Data.Foldable (toList)
import Data.Int (Int64)
import Data.List.NonEmpty (NonEmpty)
import Redis.Command (Command)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Internal.Command.Argument (decimal)

-- | @GETBIT key offset@: whether that bit is 1. The server refuses a negative offset, and one past
-- 512 MB. \(O(1)\) on the server, [since 2.2.0](https://valkey.io/commands/getbit/).
--
-- @since 0.1.0.0
getbit :: ByteString -> Int64 -> Command Bool
getbit name offset = command "GETBIT" [key name, int offset] Decode.boolean

-- | @SETBIT key offset 0|1@: makes it 1 ('True') or 0; what it was. The string grows as far as the
-- bit, zeros filling the gap: a first bit far away costs the server the memory and the time for all
-- before it. Offsets as with 'getbit'. \(O(1)\) on the server,
-- [since 2.2.0](https://valkey.io/commands/setbit/).
--
-- @since 0.1.0.0
setbit :: ByteString -> Int64 -> Bool -> Command Bool
setbit name offset bit = command "SETBIT" [key name, int offset, oneOrZero bit] Decode.boolean

oneOrZero :: Bool -> Argument
oneOrZero bit = int (if bit then 1 else 0)

-- | A part of a bitmap. Numbers count from 0, and from -1 at the end; both ends are
-- included.
--
-- @since 0.1.0.0
data BitRange
  = -- | From this byte on.
    FromByte Int64
  | -- | From byte to byte.
    FromByteTo Int64 Int64
  | -- | From bit to bit (BIT, since 7.0.0).
    FromBitTo Int64 Int64
  deriving stock (Eq, Show)

-- | @BITCOUNT key@: how many bits are 1. \(O(n)\) on the server in bytes,
-- [since 2.6.0](https://valkey.io/commands/bitcount/).
--
-- @since 0.1.0.0
bitcount :: ByteString -> Command Int64
bitcount = bitcountWith bitcountDefaults

-- | What to count in.
--
-- @since 0.1.0.0
newtype BitcountOptions = BitcountOptions
  { -- | 'Nothing' is all of it.
    bitcountRange :: Maybe BitRange
  }
  deriving stock (Eq, Show)

-- | In all of it.
--
-- @since 0.1.0.0
bitcountDefaults :: BitcountOptions
bitcountDefaults = BitcountOptions {bitcountRange = Nothing}

-- | @BITCOUNT key [start end [BIT]]@: as 'bitcount', in a part.
--
-- @since 0.1.0.0
bitcountWith :: BitcountOptions -> ByteString -> Command Int64
bitcountWith BitcountOptions {bitcountRange} name =
  command "BITCOUNT" (key name : maybe [] range bitcountRange) Decode.integer
  where
    range = \case
      -- Most servers want an end.
      FromByte start -> [int start, int (-1)]
      other -> bitRange other

bitRange :: BitRange -> [Argument]
bitRange = \case
  FromByte start -> [int start]
  FromByteTo start end -> [int start, int end]
  FromBitTo start end -> [int start, int end, arg "BIT"]

-- | @BITPOS key 0|1@: the first bit that is 1 ('True') or 0. A string of ones has its first 0 just
-- past its end. \(O(n)\) on the server in bytes, [since 2.8.7](https://valkey.io/commands/bitpos/).
--
-- @since 0.1.0.0
bitpos :: ByteString -> Bool -> Command (Maybe Int64)
bitpos = bitposWith bitposDefaults

-- | Where to look.
--
-- @since 0.1.0.0
newtype BitposOptions = BitposOptions
  { -- | 'Nothing' is all of it.
    bitposRange :: Maybe BitRange
  }
  deriving stock (Eq, Show)

-- | In all of it.
--
-- @since 0.1.0.0
bitposDefaults :: BitposOptions
bitposDefaults = BitposOptions {bitposRange = Nothing}

-- | @BITPOS key 0|1 [start [end [BIT]]]@: as 'bitpos', in a part; the answer counts
-- from the begin of the string all the same. With an end, ones have no 0 past it:
-- 'Nothing'.
--
-- @since 0.1.0.0
bitposWith :: BitposOptions -> ByteString -> Bool -> Command (Maybe Int64)
bitposWith BitposOptions {bitposRange} name bit =
  command "BITPOS" ([key name, oneOrZero bit] <> maybe [] bitRange bitposRange) $ \reply -> do
    position <- Decode.integer reply
    case position of
      -1 -> Right Nothing
      _
        | position >= 0 -> Right (Just position)
        | otherwise -> Decode.mismatch "a position or -1" reply

-- | What to make of bitmaps, bit by bit. Shorter ones count as if zeros followed.
--
-- @since 0.1.0.0
data BitOperation
  = -- | AND: those that all have.
    BitAnd (NonEmpty ByteString)
  | -- | OR: those that one has.
    BitOr (NonEmpty ByteString)
  | -- | XOR: those that an odd number of them have.
    BitXor (NonEmpty ByteString)
  | -- | NOT: those that it lacks.
    BitNot ByteString
  deriving stock (Eq, Show)

-- | @BITOP AND|OR|XOR|NOT destination key …@: stores what comes of it at the destination; how many
-- bytes that are, as many as the longest has. In a cluster all keys must share a slot. \(O(n)\) on
-- the server in bytes, [since 2.6.0](https://valkey.io/commands/bitop/).
--
-- > bitop "both" (BitAnd ("monday" :| ["tuesday"]))
--
-- @since 0.1.0.0
bitop :: ByteString -> BitOperation -> Command Int64
bitop destination operation =
  command "BITOP" (arg word : key destination : keys sources) Decode.integer
  where
    (word, sources) = case operation of
      BitAnd names -> ("AND", toList names)
      BitOr names -> ("OR", toList names)
      BitXor names -> ("XOR", toList names)
      BitNot name -> ("NOT", [name])

-- | A number's kind and its width in bits.
--
-- @since 0.1.0.0
data BitfieldType
  = -- | With a sign, 1 to 64 bits: @Signed 8@ is @i8@.
    Signed Int
  | -- | Without, 1 to 63 bits: @Unsigned 8@ is @u8@.
    Unsigned Int
  deriving stock (Eq, Show)

-- | Where a number begins.
--
-- @since 0.1.0.0
data BitfieldOffset
  = -- | At this bit.
    AtBit Int64
  | -- | @#n@: where the n-th number of this width begins, counted from 0.
    AtNumber Int64
  deriving stock (Eq, Show)

-- | What a number does that would not fit.
--
-- @since 0.1.0.0
data BitfieldOverflow
  = -- | WRAP: it loses its high bits, which is the server's default.
    OverflowWraps
  | -- | SAT: it becomes the least or the greatest that fits.
    OverflowSaturates
  | -- | FAIL: it stays what it was, and the answer is 'Nothing'.
    OverflowFails
  deriving stock (Eq, Show)

-- | One step of 'bitfield'.
--
-- @since 0.1.0.0
data BitfieldOperation
  = -- | GET: the number.
    BitfieldGet BitfieldType BitfieldOffset
  | -- | SET: another number; the answer is the one that was there.
    BitfieldSet BitfieldOverflow BitfieldType BitfieldOffset Int64
  | -- | INCRBY: so much more; the answer is what it is now.
    BitfieldIncrby BitfieldOverflow BitfieldType BitfieldOffset Int64
  deriving stock (Eq, Show)

-- | @BITFIELD key GET type offset …@: does the steps one after the other, all at once for other
-- clients, and answers each: 'Nothing' is one that 'OverflowFails' kept from being done. The word
-- OVERFLOW is sent where it changes. The server refuses widths and offsets that it does not have,
-- and then does nothing. \(O(1)\) per step on the server,
-- [since 3.2.0](https://valkey.io/commands/bitfield/).
--
-- > bitfield "counters" (BitfieldIncrby OverflowSaturates (Unsigned 16) (AtNumber 3) 1 :| [])
--
-- @since 0.1.0.0
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

-- | @BITFIELD_RO key GET type offset …@: the numbers there. It only reads, so a replica may answer.
-- \(O(1)\) per number on the server, [since 6.0.0](https://valkey.io/commands/bitfield_ro/).
--
-- @since 0.1.0.0
bitfieldRo :: ByteString -> NonEmpty (BitfieldType, BitfieldOffset) -> Command [Int64]
bitfieldRo name places =
  command "BITFIELD_RO" (key name : concatMap getStep places) numbers
  where
    numbers :: Decoder [Int64]
    numbers = Decode.listOf (length places) Decode.integer

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
