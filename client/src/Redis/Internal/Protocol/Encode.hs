{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnliftedFFITypes #-}

-- | Encodes commands: a client sends an array of bulk strings, or one line if its user gave a line.
--
-- A 'Request' is the words of a command: its name and its arguments. It knows its size and writes itself to
-- memory that has that much room. So a connection reserves once, and every argument is copied once. A
-- @Builder@ would check for room at every primitive and end in a buffer that is copied again.
--
-- The words are forced when a 'Request' is forced to weak head normal form: whoever holds the lock of a
-- write buffer can run 'requestPoke' without meeting a caller's exception.
module Redis.Internal.Protocol.Encode
  ( Request,
    requestArguments,
    requestFirst,
    requestSize,
    requestPoke,
    requestBytes,

    -- * Building
    request,
    requestInline,
    requestIsOne,
    requestExceeds,
    requestShortened,
    requestIsShortened,
    requestWhole,

    -- * As a name for its reply
    requestKept,
    requestIs,
    requestHash,

    -- * With a name that is encoded once
    Header,
    headerOf,
    headerArguments,
    requestOf0,
    requestOf1,
    requestOf2,
    requestOf3,
    requestOf,

    -- * Numbers
    decimalThen,
  )
where

import Data.Bits (countLeadingZeros, unsafeShiftL, unsafeShiftR, xor, (.|.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Internal qualified as ByteString.Internal
import Data.ByteString.Short (ShortByteString)
import Data.ByteString.Short qualified as Short
import Data.ByteString.Short.Internal qualified as Short (ShortByteString (SBS))
import Data.ByteString.Unsafe qualified as ByteString.Unsafe
import Data.List qualified as List
import Data.Maybe (fromMaybe, isJust)
import Data.Word (Word64, Word8)
import Foreign.C.Types (CInt (..), CSize (..))
import Foreign.Marshal.Utils (copyBytes)
import Foreign.Ptr (Ptr, castPtr, plusPtr)
import Foreign.Storable (peekByteOff, poke)
import GHC.Exts (ByteArray#)
import Redis.Internal.Protocol.Line (lineWords)
import System.IO.Unsafe (unsafeDupablePerformIO)

-- | The words of one command, ready to be written to memory.
--
-- The commands that are most called have up to three arguments and a name that is encoded once.
-- Their words are fields here, not a list: a command in flight keeps its request for a retry, and
-- the collector copies all of it.
--
-- Each form but 'Words0' and 'Line' begins with the size of the whole: it is needed three times.
data Request
  = Words0 Header
  | Words1 Int Header ByteString
  | Words2 Int Header ByteString ByteString
  | Words3 Int Header ByteString ByteString ByteString
  | -- | Any words.
    Words Int [ByteString]
  | -- | Any words as a short form, and the long form that says the same to a server that does not
    -- know what the short one names. The long form is not made unless it is needed.
    Shortened Int [ByteString] ~Request
  | -- | One line as a person would type it.
    Line ByteString

-- | The name of a command (two words for a subcommand), encoded once for all its requests.
data Header = Header
  { -- | The words, as they are sent.
    headerArguments :: [ByteString],
    -- | The beginning of a request with no argument, one, two, or three: the count, and the name.
    headerBytes0, headerBytes1, headerBytes2, headerBytes3 :: ByteString
  }

-- | Encodes a name. \(O(n)\); do it once and keep the result.
headerOf :: [ByteString] -> Header
headerOf nameWords =
  Header
    { headerArguments = nameWords,
      headerBytes0 = beginning 0,
      headerBytes1 = beginning 1,
      headerBytes2 = beginning 2,
      headerBytes3 = beginning 3
    }
  where
    beginning arguments =
      let count = length nameWords + arguments
       in -- Dupable: it only fills memory that it has just allocated.
          unsafeDupablePerformIO . ByteString.Internal.create (countSize count + bulkSizes nameWords) $ \at -> do
            pokeCount at count
            pokeBulks (at `plusPtr` countSize count) nameWords

-- | The name and the arguments, in order; of a line, the words that a server makes of it. \(O(n)\).
requestArguments :: Request -> [ByteString]
requestArguments = \case
  Words0 header -> headerArguments header
  Words1 _ header a -> headerArguments header <> [a]
  Words2 _ header a b -> headerArguments header <> [a, b]
  Words3 _ header a b c -> headerArguments header <> [a, b, c]
  Words _ allWords -> allWords
  Shortened _ allWords _ -> allWords
  -- No server takes a line without such words. People see these, without the secrets.
  Line line -> fromMaybe (Char8.words line) (lineWords line)

-- | The first argument of a request with a header and up to three, otherwise nothing. \(O(1)\).
requestFirst :: Request -> ByteString
requestFirst = \case
  Words1 _ _ a -> a
  Words2 _ _ a _ -> a
  Words3 _ _ a _ _ -> a
  _ -> ByteString.empty

-- | The number of bytes that will be written. \(O(1)\).
requestSize :: Request -> Int
requestSize = \case
  Words0 header -> ByteString.length (headerBytes0 header)
  Words1 size _ _ -> size
  Words2 size _ _ _ -> size
  Words3 size _ _ _ _ -> size
  Words size _ -> size
  Shortened size _ _ -> size
  Line line -> ByteString.length line + 2
{-# INLINE requestSize #-}

-- | Writes the request, of 'requestSize' bytes. It does not return the end: that would be a box on the heap.
requestPoke :: Request -> Ptr Word8 -> IO ()
requestPoke encoded !at = case encoded of
  Words0 header -> pokeBytes at (headerBytes0 header)
  Words1 _ header a -> do
    pokeBytes at (headerBytes1 header)
    pokeBulk (at `plusPtr` ByteString.length (headerBytes1 header)) a
  Words2 _ header a b -> do
    let first = at `plusPtr` ByteString.length (headerBytes2 header)
    pokeBytes at (headerBytes2 header)
    pokeBulk first a
    pokeBulk (first `plusPtr` bulkSize a) b
  Words3 _ header a b c -> do
    let first = at `plusPtr` ByteString.length (headerBytes3 header)
        second = first `plusPtr` bulkSize a
    pokeBytes at (headerBytes3 header)
    pokeBulk first a
    pokeBulk second b
    pokeBulk (second `plusPtr` bulkSize b) c
  Words _ allWords -> pokeArguments at allWords
  Shortened _ allWords _ -> pokeArguments at allWords
  Line line -> do
    pokeBytes at line
    pokeCrLf (at `plusPtr` ByteString.length line)

pokeArguments :: Ptr Word8 -> [ByteString] -> IO ()
pokeArguments at allWords = do
  let count = length allWords
  pokeCount at count
  pokeBulks (at `plusPtr` countSize count) allWords

-- | The bytes of a request. \(O(n)\).
requestBytes :: Request -> ByteString
requestBytes encoded =
  unsafeDupablePerformIO (ByteString.Internal.create (requestSize encoded) (requestPoke encoded))

-- | A request of any words, the name first. \(O(n)\).
request :: [ByteString] -> Request
request allWords = Words (argumentsSize allWords) allWords

-- | A request with these words as its short form, and the given request as its long form. \(O(n)\).
requestShortened :: [ByteString] -> Request -> Request
requestShortened allWords = Shortened (argumentsSize allWords) allWords

-- | Whether the request has a long form, too.
requestIsShortened :: Request -> Bool
requestIsShortened = \case
  Shortened {} -> True
  _ -> False

-- | The long form of a request with two forms, otherwise the request itself.
requestWhole :: Request -> Request
requestWhole = \case
  Shortened _ _ whole -> whole
  encoded -> encoded

argumentsSize :: [ByteString] -> Int
argumentsSize allWords = countSize (length allWords) + bulkSizes allWords

-- | A command without arguments.
requestOf0 :: Header -> Request
requestOf0 = Words0

-- | A command with one argument.
requestOf1 :: Header -> ByteString -> Request
requestOf1 header a = Words1 (ByteString.length (headerBytes1 header) + bulkSize a) header a

-- | A command with two arguments.
requestOf2 :: Header -> ByteString -> ByteString -> Request
requestOf2 header a b = Words2 (ByteString.length (headerBytes2 header) + bulkSize a + bulkSize b) header a b

-- | A command with three arguments.
requestOf3 :: Header -> ByteString -> ByteString -> ByteString -> Request
requestOf3 header a b c = Words3 (ByteString.length (headerBytes3 header) + bulkSize a + bulkSize b + bulkSize c) header a b c

-- | A command with any arguments. \(O(n)\).
requestOf :: Header -> [ByteString] -> Request
requestOf header arguments = request (headerArguments header <> arguments)

-- | One line as a person would type it (@PING@), without its line break.
requestInline :: ByteString -> Request
requestInline = Line

-- | Whether the request has a word of more bytes, in its long form if it has one. \(O(1)\) if the
-- whole request has no more bytes, otherwise \(O(n)\).
requestExceeds :: Request -> Int -> Bool
requestExceeds encoded most =
  requestSize whole > most && any ((> most) . ByteString.length) (requestArguments whole)
  where
    whole = requestWhole encoded

-- | Whether a server takes the request for one command. A line could hold several commands, or begin one in
-- the other form; servers do not look for the end of a line behind a zero byte, and close the connection if
-- a quote is left open or a line is too long. \(O(n)\) for a line, otherwise \(O(1)\).
requestIsOne :: Request -> Bool
requestIsOne = \case
  Line line ->
    ByteString.length line < longestLine
      && not ("*" `ByteString.isPrefixOf` line || ByteString.any (`elem` [0, 10, 13]) line)
      && isJust (lineWords line)
  _ -> True

-- | The number of bytes, the line break included, in which servers must find the end of a line.
longestLine :: Int
longestLine = 64 * 1024

-- | The bytes of a request, in memory that the collector can move, because many are kept for long. \(O(n)\).
requestKept :: Request -> ShortByteString
requestKept = Short.toShort . requestBytes

-- | Whether a request has these bytes, and so these words. \(O(n)\).
requestIs :: ShortByteString -> Request -> Bool
requestIs kept encoded
  | Short.length kept /= size = False
  | otherwise = case encoded of
    -- Between the two stands only the argument's size, which follows from that of the whole.
    Words1 _ header a -> sameAt 0 (headerBytes1 header) && sameAt (size - 2 - ByteString.length a) a
    _ -> sameAt 0 (requestBytes encoded)
  where
    size = requestSize encoded
    sameAt = sameBytes kept

-- | Whether the array has these bytes at the offset. It must be long enough for them.
sameBytes :: ShortByteString -> Int -> ByteString -> Bool
sameBytes (Short.SBS array) offset bytes =
  -- Dupable: it only reads.
  unsafeDupablePerformIO . ByteString.Unsafe.unsafeUseAsCStringLen bytes $ \(from, size) ->
    (== 0) <$> compareAt array offset from (fromIntegral size)

foreign import ccall unsafe "redis_client_compare_at"
  compareAt :: ByteArray# -> Int -> Ptr a -> CSize -> IO CInt

-- | A hash of a request's words, the same for every form of the same words. The seed must not be
-- known to others. The first word has no part in the hash. \(O(n)\).
requestHash :: Int -> Request -> Int
requestHash seed = \case
  Words1 _ header a | [_] <- headerArguments header -> hashBytes seed a
  Words2 _ header a b | [_] <- headerArguments header -> hashBytes (hashBytes seed a) b
  encoded -> List.foldl' hashBytes seed (drop 1 (requestArguments encoded))

hashBytes :: Int -> ByteString -> Int
hashBytes seed bytes =
  -- Dupable: it only reads.
  unsafeDupablePerformIO . ByteString.Unsafe.unsafeUseAsCStringLen bytes $ \(from, size) -> do
    let whole !state !at
          | at + 8 <= size = peekByteOff from at >>= \word -> whole (mixed state word) (at + 8)
          | otherwise = rest state 0 at
        rest !state !word !at
          | at < size = peekByteOff from at >>= \byte -> rest state (word `unsafeShiftL` 8 .|. fromIntegral (byte :: Word8)) (at + 1)
          -- The size too: no word is the beginning of another.
          | otherwise = pure (fromIntegral (mixed (mixed state word) (fromIntegral size)))
    whole (fromIntegral seed) 0
  where
    mixed :: Word64 -> Word64 -> Word64
    mixed state word = let product' = (state `xor` word) * 0x9e3779b97f4a7c15 in product' `xor` (product' `unsafeShiftR` 32)

pokeBytes :: Ptr Word8 -> ByteString -> IO ()
pokeBytes at bytes =
  ByteString.Unsafe.unsafeUseAsCStringLen bytes $ \(from, size) -> copyBytes at (castPtr from) size
{-# INLINE pokeBytes #-}

-- | Bytes of the count of words: @*@, the count, a line break.
countSize :: Int -> Int
countSize count = 1 + decimalDigits count + 2
{-# INLINE countSize #-}

pokeCount :: Ptr Word8 -> Int -> IO ()
pokeCount at count = do
  let digits = decimalDigits count
  poke at (asciiByte '*')
  pokeDecimal (at `plusPtr` 1) digits count
  pokeCrLf (at `plusPtr` (1 + digits))
{-# INLINE pokeCount #-}

-- | Bytes of an argument: @$@, its size, a line break, itself, a line break.
bulkSize :: ByteString -> Int
bulkSize bytes = 1 + decimalDigits size + 2 + size + 2
  where
    size = ByteString.length bytes
{-# INLINE bulkSize #-}

bulkSizes :: [ByteString] -> Int
bulkSizes = List.foldl' (\size word -> size + bulkSize word) 0

pokeBulks :: Ptr Word8 -> [ByteString] -> IO ()
pokeBulks at = \case
  [] -> pure ()
  word : rest -> pokeBulk at word *> pokeBulks (at `plusPtr` bulkSize word) rest

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

-- | The decimal digits of a number that is not negative, followed by the bytes.
decimalThen :: Int -> ByteString -> ByteString
decimalThen number rest =
  -- Dupable: it only fills memory that it has just allocated.
  unsafeDupablePerformIO . ByteString.Internal.create (digits + ByteString.length rest) $ \at -> do
    pokeDecimal at digits number
    pokeBytes (at `plusPtr` digits) rest
  where
    digits = decimalDigits number

-- | Writes the decimal digits of a number that is not negative and has so many digits.
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

-- | The number of decimal digits of a number that is not negative.
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
