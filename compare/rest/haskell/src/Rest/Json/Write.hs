-- | Writes users as JSON, from a row of SQLite directly into the bytes of the response.
--
-- There are no values in between: the text of a column is read where SQLite keeps it and written,
-- escaped, to the place from which it is sent. Each reader has one buffer for its pages, which
-- grows by doubling; before each row there is room for the largest possible form of its texts (six
-- bytes for each byte).
--
-- The generic way, by aeson, is here too: the naive service uses it, and the study measures what
-- this module gains.
module Rest.Json.Write
  ( Encoder (..),
    encodeRow,
    encodePage,
    Scratch,
    newScratch,
    userEncoding,
  )
where

import Control.Monad (when)
import Data.Aeson qualified as Aeson
import Data.Aeson.Encoding qualified as Encoding
import Data.Bits (complement, shiftL, shiftR, xor, (.&.), (.|.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Internal qualified as Internal
import Data.ByteString.Lazy qualified as Lazy
import Data.ByteString.Unsafe qualified as Unsafe
import Data.IORef (IORef, newIORef, readIORef, writeIORef)
import Data.Int (Int64)
import Data.Text.Encoding qualified as Encode
import Data.Word (Word64, Word8)
import Foreign.ForeignPtr (ForeignPtr, mallocForeignPtrBytes, withForeignPtr)
import Foreign.Marshal.Utils (copyBytes)
import Foreign.Ptr (Ptr, castPtr, minusPtr, nullPtr, plusPtr)
import Foreign.Storable (peek, poke)
import Rest.Sqlite (Statement, Step (..), columnInt, step, withColumn)
import Rest.User (User (..), readUser)

-- | How rows become JSON.
data Encoder
  = -- | Directly from SQLite's memory.
    Direct
  | -- | Through a record and aeson.
    Generic
  deriving stock (Eq, Show)

-- | The user in the statement's current row, as JSON.
encodeRow :: Encoder -> Statement -> IO ByteString
encodeRow Generic row = Lazy.toStrict . Encoding.encodingToLazyByteString . userEncoding <$> readUser row
encodeRow Direct row = do
  texts <- rowTexts row
  -- Most of the room is not used: keep only the bytes that are.
  Internal.createAndTrim (rowRoom texts) $ \start -> do
    end <- pokeRow row texts start
    pure (end `minusPtr` start)

-- | @{"page":…,"limit":…,"data":[…]}@ with all rows that the statement returns from here on.
encodePage :: Encoder -> Scratch -> Int64 -> Int64 -> Statement -> IO ByteString
encodePage Generic _ page limit rows = do
  users <- allRows
  pure . Lazy.toStrict . Encoding.encodingToLazyByteString . Encoding.pairs $
    Encoding.pair "page" (Encoding.int64 page)
      <> Encoding.pair "limit" (Encoding.int64 limit)
      <> Encoding.pair "data" (Encoding.list userEncoding users)
  where
    allRows =
      step rows >>= \case
        Done -> pure []
        Row -> (:) <$> readUser rows <*> allRows
encodePage Direct scratch page limit rows = do
  used <- withScratch scratch $ \start -> do
    end <-
      pokeBytes "{\"page\":" start
        >>= pokeInt page
        >>= pokeBytes ",\"limit\":"
        >>= pokeInt limit
        >>= pokeBytes ",\"data\":["
    pure (end `minusPtr` start)
  go used True
  where
    go :: Int -> Bool -> IO ByteString
    go used isFirst =
      step rows >>= \case
        Done -> withScratch scratch $ \start -> do
          end <- pokeBytes "]}" (start `plusPtr` used)
          ByteString.packCStringLen (castPtr start, end `minusPtr` start)
        Row -> do
          texts <- rowTexts rows
          -- Two bytes for the end, one for the comma.
          ensure scratch used (rowRoom texts + 3)
          used' <- withScratch scratch $ \start -> do
            let place = start `plusPtr` used
            begin <- if isFirst then pure place else pokeByte 0x2c place
            end <- pokeRow rows texts begin
            pure (end `minusPtr` start)
          go used' False

-- | A buffer for a page whose size is not known yet. It is kept from page to page: a new buffer of
-- that size would be a large object for the garbage collector, which costs more than copying the
-- page. Belongs to one thread at a time.
newtype Scratch = Scratch (IORef (ForeignPtr Word8, Int))

-- | A buffer with room for most pages.
newScratch :: IO Scratch
newScratch = do
  buffer <- mallocForeignPtrBytes size
  Scratch <$> newIORef (buffer, size)
  where
    size = 16384

withScratch :: Scratch -> (Ptr Word8 -> IO a) -> IO a
withScratch (Scratch current) action = do
  (buffer, _) <- readIORef current
  withForeignPtr buffer action
{-# INLINE withScratch #-}

-- | Makes room for this many bytes after those that are used.
ensure :: Scratch -> Int -> Int -> IO ()
ensure (Scratch current) used more = do
  (buffer, size) <- readIORef current
  when (used + more > size) $ do
    let larger = max (2 * size) (used + more)
    new <- mallocForeignPtrBytes larger
    withForeignPtr buffer $ \old -> withForeignPtr new $ \place -> copyBytes place old used
    writeIORef current (new, larger)

-- | The addresses of a row's texts in SQLite's memory, valid until the next step. Each column is
-- requested once, because a request costs as much as copying.
data RowTexts = RowTexts Text Text Text Text

data Text = Text (Ptr Word8) Int

rowTexts :: Statement -> IO RowTexts
rowTexts row = RowTexts <$> text 1 <*> text 2 <*> text 3 <*> text 4
  where
    text column = withColumn row column (\bytes size -> pure (Text bytes size))
{-# INLINE rowTexts #-}

-- | A number of bytes that is always enough for the row: names, braces and a number take less than
-- 96, and each text at most six times its size.
rowRoom :: RowTexts -> Int
rowRoom (RowTexts (Text _ name) (Text _ email) (Text _ bio) (Text _ created)) =
  96 + 6 * (name + email + bio + created)

pokeRow :: Statement -> RowTexts -> Ptr Word8 -> IO (Ptr Word8)
pokeRow row (RowTexts name email bio created) start = do
  number <- columnInt row 0
  pokeBytes "{\"id\":" start
    >>= pokeInt number
    >>= pokeBytes ",\"name\":"
    >>= pokeText name
    >>= pokeBytes ",\"email\":"
    >>= pokeText email
    >>= pokeBytes ",\"bio\":"
    >>= pokeText bio
    >>= pokeBytes ",\"createdAt\":"
    >>= pokeText created
    >>= pokeByte 0x7d

pokeText :: Text -> Ptr Word8 -> IO (Ptr Word8)
pokeText (Text text size) place
  | text == nullPtr = pokeBytes "null" place
  | otherwise = do
    body <- pokeByte 0x22 place
    end <- pokeEscaped text (text `plusPtr` size) body
    pokeByte 0x22 end

pokeByte :: Word8 -> Ptr Word8 -> IO (Ptr Word8)
pokeByte byte place = (place `plusPtr` 1) <$ poke place byte
{-# INLINE pokeByte #-}

pokeBytes :: ByteString -> Ptr Word8 -> IO (Ptr Word8)
pokeBytes bytes place = Unsafe.unsafeUseAsCStringLen bytes $ \(from, size) -> do
  copyBytes place (castPtr from) size
  pure (place `plusPtr` size)
{-# INLINE pokeBytes #-}

-- | Writes the digits of a number, from the last to the first.
pokeInt :: Int64 -> Ptr Word8 -> IO (Ptr Word8)
pokeInt number place
  | number < 0 = pokeByte 0x2d place >>= pokeInt (negate number)
  | otherwise = do
    let digits = countDigits 1 number
        end = place `plusPtr` digits
    write number (end `plusPtr` (-1))
    pure end
  where
    countDigits :: Int -> Int64 -> Int
    countDigits !count n
      | n < 10 = count
      | otherwise = countDigits (count + 1) (n `quot` 10)
    write :: Int64 -> Ptr Word8 -> IO ()
    write n at = do
      let (rest, digit) = n `quotRem` 10
      poke at (0x30 + fromIntegral digit)
      when (rest > 0) (write rest (at `plusPtr` (-1)))

-- | Copies text, and escapes the bytes that JSON does not allow. It copies eight bytes at a time
-- while none of them needs escaping. The last, incomplete group is copied together with some bytes
-- before it: if none of the eight needs escaping, they also stand next to each other in the output.
pokeEscaped :: Ptr Word8 -> Ptr Word8 -> Ptr Word8 -> IO (Ptr Word8)
pokeEscaped begin end = go begin
  where
    go !from !place
      | left >= 8 = do
        word <- peek (castPtr from)
        if allPlain word
          then poke (castPtr place) word >> go (from `plusPtr` 8) (place `plusPtr` 8)
          else peek from >>= single
      | left == 0 = pure place
      | end `minusPtr` begin >= 8 = do
        word <- peek (castPtr (from `plusPtr` back))
        if allPlain word
          then place `plusPtr` left <$ poke (castPtr (place `plusPtr` back)) word
          else peek from >>= single
      | otherwise = peek from >>= single
      where
        left = end `minusPtr` from
        back = left - 8
        single byte = pokeOne byte place >>= go (from `plusPtr` 1)

-- | Whether none of eight bytes is below 0x20, a quotation mark or a backslash. A byte of 0x80 or
-- more is none of these. The tests are the usual ones for "a byte is zero" and "a byte is less
-- than"; they are exact if the question is only whether there is such a byte.
allPlain :: Word64 -> Bool
allPlain word = (below32 .|. zeroIn (word `xor` quotes) .|. zeroIn (word `xor` backslashes)) .&. highs == 0
  where
    ones = 0x0101010101010101
    highs = ones `shiftL` 7
    quotes = 0x2222222222222222
    backslashes = 0x5c5c5c5c5c5c5c5c
    below32 = (word - 0x2020202020202020) .&. complement word
    zeroIn bytes = (bytes - ones) .&. complement bytes
{-# INLINE allPlain #-}

pokeOne :: Word8 -> Ptr Word8 -> IO (Ptr Word8)
pokeOne byte place
  | byte >= 0x20 && byte /= 0x22 && byte /= 0x5c = pokeByte byte place
  | otherwise = case byte of
    0x22 -> escape 0x22
    0x5c -> escape 0x5c
    0x08 -> escape 0x62
    0x09 -> escape 0x74
    0x0a -> escape 0x6e
    0x0c -> escape 0x66
    0x0d -> escape 0x72
    _ ->
      pokeBytes "\\u00" place
        >>= pokeByte (hexDigit (byte `shiftR` 4))
        >>= pokeByte (hexDigit (byte .&. 15))
  where
    escape letter = pokeByte 0x5c place >>= pokeByte letter
    hexDigit n = if n < 10 then 0x30 + n else 0x37 + n

-- | A user as JSON, by aeson.
userEncoding :: User -> Aeson.Encoding
userEncoding User {userId, userName, userEmail, userBio, userCreatedAt} =
  Encoding.pairs $
    Encoding.pair "id" (Encoding.int64 userId)
      <> Encoding.pair "name" (text userName)
      <> Encoding.pair "email" (text userEmail)
      <> Encoding.pair "bio" (maybe Encoding.null_ text userBio)
      <> Encoding.pair "createdAt" (text userCreatedAt)
  where
    text = Encoding.text . Encode.decodeUtf8With (\_ _ -> Just '\xfffd')
