{-# LANGUAGE MagicHash #-}

-- | Commands as bytes: what a client sends is always an array of bulk strings.
--
-- A 'Request' knows its size and writes itself to memory that has that much
-- room. So a connection reserves once and every argument is copied once, straight
-- from the caller's bytes to the bytes that are sent.
-- The alternative, a @Builder@, checks for room at every primitive and ends in
-- a buffer that is copied again.
--
-- The arguments are forced when a 'Request' is forced to weak head normal
-- form: whoever holds the lock of a write buffer can run 'requestPoke' without
-- meeting a caller's exception.
module Redis.Internal.Protocol.Encode
  ( Request,
    requestSize,
    requestPoke,

    -- * Building
    request,
    requestLiteral1,
    requestLiteral2,
    requestLiteral3,
    requestInline,

    -- * Looking
    requestBytes,
  )
where

import Data.Bits (countLeadingZeros)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Internal qualified as ByteString.Internal
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Data.List qualified as List
import Data.Word (Word8)
import Foreign.Marshal.Utils (copyBytes)
import Foreign.Ptr (Ptr, castPtr, plusPtr)
import Foreign.Storable (poke)
import GHC.Exts (Addr#, Ptr (Ptr))
import System.IO.Unsafe (unsafeDupablePerformIO)

-- | One encoded command, waiting for memory.
--
-- The commands that are most called are data, not functions: a command in
-- flight keeps its request for a retry, and a closure with the parts of a key
-- is twice as large, all of which the collector copies.
data Request
  = -- | A literal, its size first, and arguments behind it.
    Literal1 Int Addr# ByteString
  | Literal2 Int Addr# ByteString ByteString
  | Literal3 Int Addr# ByteString ByteString ByteString
  | -- | Anything else: its size, and how it writes itself.
    Composed Int (Ptr Word8 -> IO ())

-- | So many bytes will be written.
requestSize :: Request -> Int
requestSize = \case
  Literal1 size _ a -> size + bulkSize a
  Literal2 size _ a b -> size + bulkSize a + bulkSize b
  Literal3 size _ a b c -> size + bulkSize a + bulkSize b + bulkSize c
  Composed size _ -> size
{-# INLINE requestSize #-}

-- | Writes at the pointer, as many bytes as 'requestSize' says: an end that is
-- returned is a box on the heap.
requestPoke :: Request -> Ptr Word8 -> IO ()
requestPoke encoded !at = case encoded of
  Literal1 size literal a -> do
    pokeLiteral at size literal
    pokeBulk (at `plusPtr` size) a
  Literal2 size literal a b -> do
    pokeLiteral at size literal
    pokeBulk (at `plusPtr` size) a
    pokeBulk (at `plusPtr` size `plusPtr` bulkSize a) b
  Literal3 size literal a b c -> do
    pokeLiteral at size literal
    pokeBulk (at `plusPtr` size) a
    pokeBulk (at `plusPtr` size `plusPtr` bulkSize a) b
    pokeBulk (at `plusPtr` size `plusPtr` bulkSize a `plusPtr` bulkSize b) c
  Composed _ write -> write at

-- | Two requests as one contiguous run of bytes.
instance Semigroup Request where
  a <> b = Composed (size + requestSize b) $ \at -> do
    requestPoke a at
    requestPoke b (at `plusPtr` size)
    where
      size = requestSize a

-- | Any command: its name and arguments. \(O(n)\) in the number of arguments.
request :: [ByteString] -> Request
request arguments = Composed (header + List.foldl' (\size argument -> size + bulkSize argument) 0 arguments) $ \at -> do
  poke at (asciiByte '*')
  pokeDecimal (at `plusPtr` 1) digits count
  pokeCrLf (at `plusPtr` (1 + digits))
  pokeAll (at `plusPtr` header) arguments
  where
    count = length arguments
    digits = decimalDigits count
    header = 1 + digits + 2
    pokeAll at = \case
      [] -> pure ()
      argument : rest -> pokeBulk at argument *> pokeAll (at `plusPtr` bulkSize argument) rest

-- | A command whose first part is a literal (@*2\\r\\n$3\\r\\nGET\\r\\n@, of the
-- given length) and that ends in one argument.
--
-- Saves the per-call list and the encoding of the name on the commands that
-- are most called; the benchmark @micro encode@ shows what it is worth.
requestLiteral1 :: Int -> Addr# -> ByteString -> Request
requestLiteral1 = Literal1

-- | Like 'requestLiteral1', with two arguments.
requestLiteral2 :: Int -> Addr# -> ByteString -> ByteString -> Request
requestLiteral2 = Literal2

-- | Like 'requestLiteral1', with three arguments.
requestLiteral3 :: Int -> Addr# -> ByteString -> ByteString -> ByteString -> Request
requestLiteral3 = Literal3

-- | One line as a person would type it (@PING@), without its line break. A
-- server splits it at spaces; the library itself never sends this form.
requestInline :: ByteString -> Request
requestInline line =
  Composed (ByteString.length line + 2) $ \at ->
    ByteString.Unsafe.unsafeUseAsCStringLen line $ \(from, size) -> do
      copyBytes at (castPtr from) size
      pokeCrLf (at `plusPtr` size)

-- | The bytes of a request. \(O(n)\).
requestBytes :: Request -> ByteString
requestBytes encoded =
  -- Dupable: it only fills memory that it has just allocated.
  unsafeDupablePerformIO (ByteString.Internal.create (requestSize encoded) (requestPoke encoded))

-- | Bytes of an argument: @$@, its size, a line break, itself, a line break.
bulkSize :: ByteString -> Int
bulkSize bytes = 1 + decimalDigits size + 2 + size + 2
  where
    size = ByteString.length bytes
{-# INLINE bulkSize #-}

pokeLiteral :: Ptr Word8 -> Int -> Addr# -> IO ()
pokeLiteral at size literal = copyBytes at (Ptr literal) size

pokeBulk :: Ptr Word8 -> ByteString -> IO ()
pokeBulk at bytes = do
  poke at (asciiByte '$')
  pokeDecimal (at `plusPtr` 1) digits size
  pokeCrLf (at `plusPtr` (1 + digits))
  ByteString.Unsafe.unsafeUseAsCString bytes $ \from -> copyBytes start (castPtr from) size
  pokeCrLf (start `plusPtr` size)
  where
    size = ByteString.length bytes
    digits = decimalDigits size
    start = at `plusPtr` (1 + digits + 2)

pokeCrLf :: Ptr Word8 -> IO ()
pokeCrLf at = do
  poke at 13
  poke (at `plusPtr` 1) (10 :: Word8)
{-# INLINE pokeCrLf #-}

-- | So many decimal digits of a number that is not negative and has that many.
pokeDecimal :: Ptr Word8 -> Int -> Int -> IO ()
pokeDecimal at digits = go (at `plusPtr` (digits - 1))
  where
    go !position !rest
      | rest < 10 = poke position (digit rest)
      | otherwise = do
        let (quotient, remainder) = rest `quotRem` 10
        poke position (digit remainder)
        go (position `plusPtr` (-1)) quotient
    digit n = fromIntegral (48 + n) :: Word8

-- | How many decimal digits a number has that is not negative.
decimalDigits :: Int -> Int
decimalDigits number
  | number < 10 = 1
  | number < 100 = 2
  | number < 1000 = 3
  | number < 10000 = 4
  | otherwise =
    -- log10 from log2, rounded down, then corrected by one comparison.
    let bits = 64 - countLeadingZeros number
        guess = (bits * 1233) `quot` 4096
     in if number < 10 ^ guess then guess else guess + 1

asciiByte :: Char -> Word8
asciiByte = fromIntegral . fromEnum
