-- | Reads replies that are text with fields, such as those of INFO, CLIENT LIST and
-- CLUSTER NODES.
module Redis.Internal.Command.Lines
  ( linesOf,
    colonFields,
    equalsFields,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.List (dropWhileEnd)
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

-- | Reads the first line of a text, of words such as @name=value@, into a record, for
-- 'Decode.field'. Words without an equals sign belong to the value before them: the path of a Unix
-- socket may have spaces. \(O(n)\).
equalsFields :: ByteString -> [(ByteString, Value)]
equalsFields = fieldsOf . Char8.split ' ' . Char8.takeWhile (`notElem` ("\r\n" :: String))
  where
    fieldsOf = \case
      [] -> []
      word : rest
        | Char8.null begin -> fieldsOf rest
        | otherwise -> (name, BulkString (Char8.unwords (Char8.drop 1 begin : dropWhileEnd Char8.null more))) : fieldsOf others
        where
          (name, begin) = Char8.break (== '=') word
          (more, others) = span (Char8.notElem '=') rest
