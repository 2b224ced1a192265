-- | The names of keys, side by side in one buffer that is made before the clock starts. A key is a
-- slice: a table of ready slices would cost further cache misses for each command.
module Tool.Bench.Workload.Keys
  ( Keys,
    keyOf,
    longestKey,
    KeyTemplate (..),
    KeyPart (..),
    keyTemplate,
    describeKeyTemplate,
    templateCount,
    sizedTemplate,
    tellsApart,
    newKeys,
  )
where

import Control.Monad (join, when)
import Data.Bits (shiftL, shiftR, (.&.), (.|.))
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.ByteString.Unsafe qualified as Unsafe
import Data.List qualified as List
import Data.Maybe (listToMaybe)
import Data.Text qualified as Text
import Data.Word (Word64)
import Numeric (showHex)
import Tool.Bench.Workload.Random (mix)
import Tool.Bench.Workload.Syntax
import Tool.Text (argumentBytes, utf8)

-- | Keys by their numbers, from zero; immutable.
data Keys = Keys
  { -- | A place of the same size for each key.
    keysPlaces :: ByteString,
    keysPlace :: Int,
    -- | The size of every key; 0 if they are not equally long: then a place begins with the key's
    -- size, in four bytes. A separate table of where keys begin would cost one more cache miss.
    keysSize :: Int,
    -- | The size of the longest key in bytes.
    longestKey :: Int
  }

-- | The key with a number below that of all keys. \(O(1)\), copies nothing.
keyOf :: Keys -> Int -> ByteString
keyOf keys number
  | keysSize keys /= 0 = Unsafe.unsafeTake (keysSize keys) place
  | otherwise = Unsafe.unsafeTake (writtenSize place) (Unsafe.unsafeDrop sizeBytes place)
  where
    place = Unsafe.unsafeDrop (number * keysPlace keys) (keysPlaces keys)
{-# INLINE keyOf #-}

-- | The bytes in 'keysPlaces' before a key, if keys differ in size.
writeSize :: Int -> ByteString
writeSize size = ByteString.pack (map (fromIntegral . shiftR size) [0, 8, 16, 24])

writtenSize :: ByteString -> Int
writtenSize place = byte 0 0 .|. byte 1 8 .|. byte 2 16 .|. byte 3 24
  where
    byte at shift = fromIntegral (Unsafe.unsafeIndex place at) `shiftL` shift
{-# INLINE writtenSize #-}

sizeBytes :: Int
sizeBytes = 4

-- | How a key is made from its number.
newtype KeyTemplate = KeyTemplate [KeyPart]
  deriving stock (Eq, Show)

data KeyPart
  = -- | Fixed text.
    KeyText ByteString
  | -- | The number, with at least this many digits.
    KeyNumber Int
  | -- | A UUID that follows from the number, and the number of different ones, if the template
    -- gives it.
    KeyUuid (Maybe Int)
  | -- | This many hexadecimal digits that follow from the number.
    KeyHex Int
  | -- | One of these hash tags, in turn. Each has its own numbers from zero.
    KeyTags [ByteString]
  deriving stock (Eq, Show)

-- | Reads text with @{n}@, @{n:DIGITS}@, @{uuid}@, @{uuid:COUNT}@,
-- @{hex:DIGITS}@ and @{tag:TAG,TAG}@; @{{@ and @}}@ are the braces themselves.
keyTemplate :: Syntax KeyTemplate
keyTemplate = do
  found <- parts
  when (length [() | KeyTags _ <- found] > 1) $ complain "a key has one hash tag"
  pure (KeyTemplate (joined found))
  where
    parts =
      peek >>= \case
        Nothing -> pure []
        Just '{' -> (:) <$> doubled "{" placeholder <*> parts
        Just '}' ->
          (:) <$> doubled "}" (complain "a } without its { (}} is the brace itself)") <*> parts
        Just _ -> (:) . literal <$> takeWhile' (`notElem` ("{}" :: String)) <*> parts
    literal = KeyText . argumentBytes
    doubled brace other =
      text (brace <> brace) >>= \found -> if found then pure (literal brace) else other
    placeholder =
      join $
        oneOf
          "{n}, {n:DIGITS}, {uuid}, {uuid:COUNT}, {hex:DIGITS} \
          \or {tag:TAG,TAG} ({{ is the brace itself)"
          [ ("{n}", pure (KeyNumber 1)),
            ("{n:", KeyNumber <$> natural "a number of digits" 64 <* close),
            ("{uuid}", pure (KeyUuid Nothing)),
            ("{uuid:", KeyUuid . Just <$> count <* close),
            ("{hex:", KeyHex <$> natural "a number of digits" 16 <* close),
            ("{tag:", KeyTags <$> tags [] <* close)
          ]
    tags before = do
      tag <- argumentBytes <$> takeWhile' (`notElem` (",{}" :: String))
      when (ByteString.null tag) $ complain "a tag is empty"
      -- The tag's numbers would begin again and give the same keys twice.
      when (tag `elem` before) $ complain "a tag is there twice"
      another <- text ","
      (tag :) <$> if another then tags (tag : before) else pure []
    count = positive "a number of keys" 100000000 "there must be a key at least"
    close = expect "}"
    joined = \case
      KeyText one : KeyText other : others -> joined (KeyText (one <> other) : others)
      part : others -> part : joined others
      [] -> []

-- | The text that 'keyTemplate' reads.
describeKeyTemplate :: KeyTemplate -> String
describeKeyTemplate (KeyTemplate parts) = concatMap part parts
  where
    part = \case
      KeyText bytes -> concatMap brace (Char8.unpack bytes)
      KeyNumber 1 -> "{n}"
      KeyNumber digits -> "{n:" <> show digits <> "}"
      KeyUuid count -> "{uuid" <> maybe "" ((":" <>) . show) count <> "}"
      KeyHex digits -> "{hex:" <> show digits <> "}"
      KeyTags tags -> "{tag:" <> Text.unpack (utf8 (ByteString.intercalate "," tags)) <> "}"
    brace = \case
      '{' -> "{{"
      '}' -> "}}"
      other -> [other]

-- | The number of keys that the template itself gives, if any.
templateCount :: KeyTemplate -> Maybe Int
templateCount (KeyTemplate parts) = listToMaybe [count | KeyUuid (Just count) <- parts]

-- | Whether different numbers always make different keys: of hexadecimal digits only sixteen do.
tellsApart :: KeyTemplate -> Bool
tellsApart (KeyTemplate parts) = any distinct parts
  where
    distinct = \case
      KeyNumber _ -> True
      KeyUuid _ -> True
      KeyHex digits -> digits == 16
      _ -> False

-- | @key:000000000042@ for this many keys in this many bytes; no prefix where digits need the room.
sizedTemplate :: Int -> Int -> KeyTemplate
sizedTemplate count size'
  | size' >= widest + 4 = KeyTemplate [KeyText "key:", KeyNumber (size' - 4)]
  | otherwise = KeyTemplate [KeyNumber size']
  where
    widest = length (show (count - 1))

-- | Makes this number of keys from a seed. \(O(n)\) in their number.
newKeys :: Word64 -> KeyTemplate -> Int -> Keys
newKeys seed (KeyTemplate parts) count =
  Keys
    { keysPlaces = ByteString.concat (if alike then names else concatMap placed names),
      keysPlace = if alike then longest else sizeBytes + longest,
      keysSize = if alike then longest else 0,
      longestKey = longest
    }
  where
    names = map name [0 .. count - 1]
    sizes = map ByteString.length names
    longest = List.foldl' max 0 sizes
    alike = longest > 0 && all (== longest) sizes
    placed one =
      let size = ByteString.length one
       in [writeSize size, one, ByteString.replicate (longest - size) 0]
    name number = ByteString.concat (map (part (number `div` turns) number) parts)
    turns = product [length tags | KeyTags tags <- parts]
    part own number = \case
      KeyText bytes -> bytes
      KeyNumber digits -> padded digits (show own)
      KeyHex digits -> Char8.pack (take digits (hex 16 (mixed 1 number)))
      KeyUuid _ -> Char8.pack (uuid (mixed 1 number) (mixed 2 number))
      KeyTags tags ->
        "{" <> ByteString.concat (take 1 (drop (number `mod` length tags) tags)) <> "}"
    mixed salt number = mix (mix (seed + salt) + fromIntegral number)

padded :: Int -> String -> ByteString
padded digits shown = Char8.replicate (digits - length shown) '0' <> Char8.pack shown

hex :: Int -> Word64 -> String
hex digits word = let shown = showHex word "" in replicate (digits - length shown) '0' <> shown

-- Version 8 (custom), variant 1 of RFC 9562.
uuid :: Word64 -> Word64 -> String
uuid high low =
  List.intercalate
    "-"
    [ hex 8 (high `shiftR` 32),
      hex 4 ((high `shiftR` 16) .&. 0xffff),
      hex 4 ((high .&. 0xfff) .|. 0x8000),
      hex 4 (((low `shiftR` 48) .&. 0x3fff) .|. 0x8000),
      hex 12 (low .&. 0xffffffffffff)
    ]
