-- | A strict parser for the bodies of POST and PUT.
--
-- A body is one JSON object (RFC 8259) in UTF-8, nested at most 64 deep. Three of its members are
-- used; the syntax of the others is checked, and they are skipped. A string without escapes is a
-- slice of the body, without copying.
module Rest.Json.Read
  ( readUserInput,
  )
where

import Control.Applicative ((<|>))
import Control.Monad (guard)
import Data.Bits (shiftL, shiftR, (.&.), (.|.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Builder (Builder)
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Lazy qualified as Lazy
import Data.ByteString.Unsafe qualified as Unsafe
import Data.Char (chr)
import Data.Text.Encoding qualified as Text
import Data.Word (Word8)
import Rest.User (UserInput, userInput)

-- | The user that a body describes, if it is valid by the contract. \(O(n)\).
readUserInput :: ByteString -> Maybe UserInput
readUserInput body = do
  guard (isUtf8 body)
  (members, end) <- readMembers body
  guard (skipBlanks body end == ByteString.length body)
  name <- membersName members
  email <- membersEmail members
  userInput name email =<< membersBio members <|> Just Nothing

isUtf8 :: ByteString -> Bool
isUtf8 bytes = ByteString.all (< 0x80) bytes || either (const False) (const True) (Text.decodeUtf8' bytes)

-- | The members that are used, if they are present. A bio of null is present.
data Members = Members
  { membersName :: Maybe ByteString,
    membersEmail :: Maybe ByteString,
    membersBio :: Maybe (Maybe ByteString)
  }

-- | The byte at an index; after the end 0, which is not valid JSON.
at :: ByteString -> Int -> Word8
at body index
  | index < ByteString.length body = Unsafe.unsafeIndex body index
  | otherwise = 0
{-# INLINE at #-}

skipBlanks :: ByteString -> Int -> Int
skipBlanks body index = case at body index of
  0x20 -> skipBlanks body (index + 1)
  0x0a -> skipBlanks body (index + 1)
  0x0d -> skipBlanks body (index + 1)
  0x09 -> skipBlanks body (index + 1)
  _ -> index

readMembers :: ByteString -> Maybe (Members, Int)
readMembers body = do
  let start = skipBlanks body 0
  guard (at body start == 0x7b)
  objectOf body member (Members Nothing Nothing Nothing) (start + 1)
  where
    member members name index = case name of
      "name" -> do
        guard (null (membersName members))
        (text, next) <- readString body index
        Just (members {membersName = Just text}, next)
      "email" -> do
        guard (null (membersEmail members))
        (text, next) <- readString body index
        Just (members {membersEmail = Just text}, next)
      "bio" -> do
        guard (null (membersBio members))
        if at body index == 0x6e
          then do
            next <- skipLiteral body "null" index
            Just (members {membersBio = Just Nothing}, next)
          else do
            (text, next) <- readString body index
            Just (members {membersBio = Just (Just text)}, next)
      _ -> (,) members <$> skipValue 1 body index

-- | Parses the members of an object, from after its brace. The handler gets each name and the index
-- at which its value begins, and returns the index at which it ends.
objectOf :: ByteString -> (a -> ByteString -> Int -> Maybe (a, Int)) -> a -> Int -> Maybe (a, Int)
objectOf body handle initial begin
  | at body first == 0x7d = Just (initial, first + 1)
  | otherwise = go initial first
  where
    first = skipBlanks body begin
    go state index = do
      (name, afterName) <- readString body index
      let colon = skipBlanks body afterName
      guard (at body colon == 0x3a)
      (state', afterValue) <- handle state name (skipBlanks body (colon + 1))
      let next = skipBlanks body afterValue
      case at body next of
        0x2c -> go state' (skipBlanks body (next + 1))
        0x7d -> Just (state', next + 1)
        _ -> Nothing

-- | The index at which a value ends; the depth is that of the enclosing value.
skipValue :: Int -> ByteString -> Int -> Maybe Int
skipValue depth body index = case at body index of
  0x22 -> skipString body (index + 1)
  0x7b -> do
    guard (depth < 64)
    snd <$> objectOf body (\() _ value -> (,) () <$> skipValue (depth + 1) body value) () (index + 1)
  0x5b -> guard (depth < 64) >> skipArray (depth + 1) body (index + 1)
  0x74 -> skipLiteral body "true" index
  0x66 -> skipLiteral body "false" index
  0x6e -> skipLiteral body "null" index
  _ -> skipNumber body index

skipArray :: Int -> ByteString -> Int -> Maybe Int
skipArray depth body begin
  | at body first == 0x5d = Just (first + 1)
  | otherwise = go first
  where
    first = skipBlanks body begin
    go index = do
      next <- skipBlanks body <$> skipValue depth body index
      case at body next of
        0x2c -> go (skipBlanks body (next + 1))
        0x5d -> Just (next + 1)
        _ -> Nothing

skipLiteral :: ByteString -> ByteString -> Int -> Maybe Int
skipLiteral body literal index
  | literal `ByteString.isPrefixOf` Unsafe.unsafeDrop index body = Just (index + ByteString.length literal)
  | otherwise = Nothing

skipNumber :: ByteString -> Int -> Maybe Int
skipNumber body index = do
  whole <- case at body unsigned of
    0x30 -> Just (unsigned + 1)
    digit | isDigit digit -> Just (digits unsigned)
    _ -> Nothing
  fraction <- if at body whole == 0x2e then someDigits (whole + 1) else Just whole
  if at body fraction .|. 0x20 == 0x65
    then someDigits (if at body (fraction + 1) `elem` [0x2b, 0x2d] then fraction + 2 else fraction + 1)
    else Just fraction
  where
    unsigned = if at body index == 0x2d then index + 1 else index
    isDigit byte = byte >= 0x30 && byte <= 0x39
    digits place = if isDigit (at body place) then digits (place + 1) else place
    someDigits place = digits place <$ guard (isDigit (at body place))

-- | The index at which a string ends, from after its first quotation mark.
skipString :: ByteString -> Int -> Maybe Int
skipString body index
  | index >= ByteString.length body = Nothing
  | otherwise = case Unsafe.unsafeIndex body index of
    0x22 -> Just (index + 1)
    0x5c -> case at body (index + 1) of
      0x75 -> hexFour body (index + 2) >> skipString body (index + 6)
      letter -> guard (letter `ByteString.elem` "\"\\/bfnrt") >> skipString body (index + 2)
    byte -> guard (byte >= 0x20) >> skipString body (index + 1)

-- | Reads the string that begins at this index: its text, and the index at which it ends.
readString :: ByteString -> Int -> Maybe (ByteString, Int)
readString body index = do
  guard (at body index == 0x22)
  end <- skipString body (index + 1)
  let written = Unsafe.unsafeTake (end - index - 2) (Unsafe.unsafeDrop (index + 1) body)
  if ByteString.elem 0x5c written
    then do
      text <- unescape written
      Just (Lazy.toStrict (Builder.toLazyByteString text), end)
    else Just (written, end)

-- | The text of a string whose syntax has been checked; 'Nothing' if it has unpaired surrogates.
unescape :: ByteString -> Maybe Builder
unescape written = case ByteString.elemIndex 0x5c written of
  Nothing -> Just (Builder.byteString written)
  Just place -> do
    let plain = Builder.byteString (Unsafe.unsafeTake place written)
    (meant, used) <- escaped (Unsafe.unsafeDrop place written)
    rest <- unescape (Unsafe.unsafeDrop (place + used) written)
    Just (plain <> meant <> rest)

escaped :: ByteString -> Maybe (Builder, Int)
escaped text = case at text 1 of
  0x62 -> Just (Builder.word8 0x08, 2)
  0x66 -> Just (Builder.word8 0x0c, 2)
  0x6e -> Just (Builder.word8 0x0a, 2)
  0x72 -> Just (Builder.word8 0x0d, 2)
  0x74 -> Just (Builder.word8 0x09, 2)
  0x75 -> do
    unit <- hexFour text 2
    case unit `shiftR` 10 of
      -- 0xd800 to 0xdbff: the other half must follow.
      0x36 -> do
        guard (at text 6 == 0x5c && at text 7 == 0x75)
        low <- hexFour text 8
        guard (low `shiftR` 10 == 0x37)
        Just (Builder.charUtf8 (chr (0x10000 + ((unit .&. 0x3ff) `shiftL` 10) + (low .&. 0x3ff))), 12)
      0x37 -> Nothing
      _ -> Just (Builder.charUtf8 (chr unit), 6)
  same -> Just (Builder.word8 same, 2)

hexFour :: ByteString -> Int -> Maybe Int
hexFour text index = ByteString.foldl' add (Just 0) (ByteString.take 4 here) <* guard (ByteString.length here >= 4)
  where
    here = ByteString.drop index text
    add total byte = (\sofar digit -> sofar * 16 + fromIntegral digit) <$> total <*> hexDigit byte
    hexDigit byte
      | byte >= 0x30 && byte <= 0x39 = Just (byte - 0x30)
      | lower >= 0x61 && lower <= 0x66 = Just (lower - 0x57)
      | otherwise = Nothing
      where
        lower = byte .|. 0x20
