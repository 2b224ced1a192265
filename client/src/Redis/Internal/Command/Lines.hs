-- | Reads replies that are text with fields, such as those of INFO, CLIENT LIST and
-- CLUSTER NODES; and finds the fields of a reply that a record does not name.
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

-- | The lines of a text that are not empty, without line ends. \(O(n)\).
linesOf :: Decoder [ByteString]
linesOf = fmap (filter (not . Char8.null) . map (Char8.takeWhile (/= '\r')) . Char8.lines) . Decode.bytes

-- | Reads lines such as @name:value@. Lines without a colon, which are headings, are left
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

-- | Reads words such as @name=value@ into a record, for 'Decode.field'. \(O(n)\).
equalsFields :: ByteString -> [(ByteString, Value)]
equalsFields line =
  [ (name, BulkString (Char8.drop 1 rest))
    | word <- Char8.words line,
      let (name, rest) = Char8.break (== '=') word,
      not (Char8.null rest)
  ]

-- | The fields whose names are not among these. \(O(m n)\) for m names and n fields.
otherThan :: [ByteString] -> [(ByteString, element)] -> [(ByteString, element)]
otherThan known = filter ((`notElem` known) . fst)
