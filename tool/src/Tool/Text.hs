-- | Numbers in readable form, tables, and text from and to bytes.
module Tool.Text
  ( argumentBytes,
    shown,
    utf8,
    fixed,
    fixedShort,
    thousands,
    duration,
    percent,
    table,
    Align (..),
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Lazy qualified as Lazy
import Data.Char (ord)
import Data.List (dropWhileEnd, intercalate, transpose)
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Encoding qualified as Text
import Data.Text.Encoding.Error qualified as Text
import Numeric (showFFloat)

-- | The bytes of a word from the command line or the environment, in UTF-8. The runtime passes on
-- bytes that it cannot decode, because the locale does not have them, as U+DC80 to U+DCFF; those
-- become their bytes again. \(O(n)\).
argumentBytes :: String -> ByteString
argumentBytes = Lazy.toStrict . Builder.toLazyByteString . foldMap one
  where
    one character
      | character >= '\xDC80' && character <= '\xDCFF' =
        Builder.word8 (fromIntegral (ord character - 0xDC00))
      | otherwise = Builder.charUtf8 character

-- | A value as 'show' writes it.
shown :: Show a => a -> Text
shown = Text.pack . show

-- | Bytes as text. What is not UTF-8 becomes the replacement character.
utf8 :: ByteString -> Text
utf8 = Text.decodeUtf8With Text.lenientDecode

-- | A number with this many digits after the point.
fixed :: Int -> Double -> String
fixed digits number
  | isNaN number || isInfinite number = "-"
  | otherwise = showFFloat (Just digits) number ""

-- | The same without zeros at the end, and without a point that ends it.
fixedShort :: Int -> Double -> String
fixedShort digits number
  | '.' `elem` text = dropWhileEnd (== '.') (dropWhileEnd (== '0') text)
  | otherwise = text
  where
    text = fixed digits number

-- | A number in groups of three digits: @1 234 567@.
thousands :: Int -> String
thousands number
  | number < 0 = '-' : thousands (negate number)
  | otherwise = reverse (unwords (groups (reverse (show number))))
  where
    groups text = case splitAt 3 text of
      (group, "") -> [group]
      (group, rest) -> group : groups rest

-- | Nanoseconds with three significant digits in the unit that fits: @870 ns@,
-- @12.3 us@, @4.56 ms@, @1.20 s@.
duration :: Int -> String
duration nanos
  | nanos < 1000 = show nanos <> " ns"
  | nanos < 999500 = scaled 1e3 <> " us"
  | nanos < 999500000 = scaled 1e6 <> " ms"
  | otherwise = scaled 1e9 <> " s"
  where
    scaled unit =
      let number = fromIntegral nanos / unit :: Double
       in fixed (if number < 9.995 then 2 else if number < 99.95 then 1 else 0) number

-- | A ratio as a percentage. Never rounded up to 100 %.
percent :: Double -> String
percent ratio
  | ratio < 1 && ratio >= 0.99995 = "99.99%"
  | otherwise = fixed (if ratio == 1 then 0 else 2) (ratio * 100) <> "%"

-- | The side to which a column is aligned.
data Align = AlignLeft | AlignRight

-- | Rows of cells as lines. The first row is the heading, with a rule below it. Rows that are too
-- short get empty cells.
table :: [Align] -> [[String]] -> [String]
table aligns rows = case map line filled of
  heading : body -> heading : map (const '-') heading : body
  [] -> []
  where
    columns = length aligns
    filled = map (\row -> take columns (row <> repeat "")) rows
    widths = map (maximum . (0 :) . map length) (transpose filled)
    line row = dropWhileEnd (== ' ') (intercalate "  " (zipWith3 cell aligns widths row))
    cell AlignLeft width text = text <> replicate (width - length text) ' '
    cell AlignRight width text = replicate (width - length text) ' ' <> text
