-- | HTML and SVG as data, written with everything escaped. Text is always escaped, so nobody can
-- forget it.
module Tool.Markup
  ( Markup,
    element,
    (.=),
    text,
    raw,
    document,
    render,
  )
where

import Data.ByteString.Lazy qualified as Lazy
import Data.Text (Text)
import Data.Text qualified as Text
import Data.Text.Lazy.Builder (Builder)
import Data.Text.Lazy.Builder qualified as Builder
import Data.Text.Lazy.Encoding qualified as LazyText

-- | A sequence of nodes.
newtype Markup = Markup Builder
  deriving newtype (Semigroup, Monoid)

instance Show Markup where
  show = show . render

-- | An attribute. Its value is escaped.
(.=) :: Text -> Text -> (Text, Text)
name .= value = (name, value)

infixr 8 .=

-- | An element with its attributes and content.
element :: Text -> [(Text, Text)] -> [Markup] -> Markup
element name attributes content
  | name `elem` ["meta", "br", "hr", "img", "link"] = Markup start
  | otherwise = Markup (start <> inside <> "</" <> Builder.fromText name <> ">")
  where
    start = "<" <> Builder.fromText name <> foldMap attribute attributes <> ">"
    attribute (key, value) = " " <> Builder.fromText key <> "=\"" <> escaped value <> "\""
    Markup inside = mconcat content

-- | Text, escaped.
text :: Text -> Markup
text = Markup . escaped

-- | Text that is not escaped: for style sheets, which have no escapes. Never for data.
raw :: Text -> Markup
raw = Markup . Builder.fromText

-- | A whole page of HTML.
document :: [Markup] -> Markup
document content = Markup "<!DOCTYPE html>\n" <> element "html" ["lang" .= "en"] content

-- | The bytes in UTF-8.
render :: Markup -> Lazy.ByteString
render (Markup builder) = LazyText.encodeUtf8 (Builder.toLazyText builder)

-- Documents must not contain control characters, not even escaped ones.
escaped :: Text -> Builder
escaped value
  | Text.any special value = Builder.fromText (Text.concatMap escape value)
  | otherwise = Builder.fromText value
  where
    special char = char < ' ' || char `elem` ("<>&\"'\DEL" :: String)
    escape = \case
      '<' -> "&lt;"
      '>' -> "&gt;"
      '&' -> "&amp;"
      '"' -> "&quot;"
      '\'' -> "&#39;"
      char
        | char < ' ' && char /= '\n' && char /= '\t' || char == '\DEL' -> "\xfffd"
        | otherwise -> Text.singleton char
