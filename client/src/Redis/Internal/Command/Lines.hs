-- | Replies that are text of fields, as INFO, CLIENT LIST and CLUSTER NODES have
-- them; and what a record leaves over of a reply's fields.
module Redis.Internal.Command.Lines
  ( linesOf,
    colonFields,
    equalsFields,
    otherThan,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode
import Redis.Value (Value (BulkString))

-- | The lines of a text that are not empty, without the ends of lines. \(O(n)\).
linesOf :: Decoder [ByteString]
linesOf = fmap (filter (not . Char8.null) . map (Char8.takeWhile (/= '\r')) . Char8.lines) . Decode.bytes

-- | Lines such as @name:value@; those without a colon, which are headings, are left
-- out. \(O(n)\).
colonFields :: Decoder [(ByteString, ByteString)]
colonFields reply = do
  found <- linesOf reply
  pure
    [ (name, Char8.drop 1 rest)
      | line <- found,
        let (name, rest) = Char8.break (== ':') line,
        not (Char8.null rest)
    ]

-- | Words such as @name=value@, as a record, for 'Decode.field'. \(O(n)\).
equalsFields :: ByteString -> [(ByteString, Value)]
equalsFields line =
  [ (name, BulkString (Char8.drop 1 rest))
    | word <- Char8.words line,
      let (name, rest) = Char8.break (== '=') word,
      not (Char8.null rest)
  ]

-- | The fields with other names than these. \(O(n)\) in the product.
otherThan :: [ByteString] -> [(ByteString, element)] -> [(ByteString, element)]
otherThan known = filter ((`notElem` known) . fst)
