-- | Lines of @MONITOR@ as a server writes them.
module MonitorLines
  ( renderLine,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Builder qualified as Builder
import Data.ByteString.Lazy qualified as Lazy
import Data.Char (intToDigit)
import Tool.Monitor

-- | Writes a command like a server, without a line end. \(O(n)\).
renderLine :: Observed -> ByteString
renderLine observed =
  Lazy.toStrict . Builder.toLazyByteString . mconcat $
    [ Builder.intDec seconds,
      Builder.char7 '.',
      Builder.string7 (padded (show micros)),
      Builder.string7 " [",
      Builder.intDec (observedDatabase observed),
      Builder.char7 ' ',
      case observedOrigin observed of
        OriginClient address -> Builder.byteString address
        OriginScript -> Builder.string7 "lua",
      Builder.char7 ']'
    ]
      <> [ Builder.string7 " \"" <> escaped word <> Builder.char7 '"'
           | word <- observedWords observed
         ]
  where
    (seconds, micros) = observedMicros observed `divMod` 1000000
    padded digits = replicate (6 - length digits) '0' <> digits

escaped :: ByteString -> Builder.Builder
escaped = ByteString.foldr (\byte rest -> one byte <> rest) mempty
  where
    one byte
      | byte == 34 || byte == 92 = Builder.char7 '\\' <> Builder.word8 byte
      | byte == 10 = "\\n"
      | byte == 13 = "\\r"
      | byte == 9 = "\\t"
      | byte == 7 = "\\a"
      | byte == 8 = "\\b"
      | byte >= 32 && byte < 127 = Builder.word8 byte
      | otherwise =
        let (high, low) = fromIntegral byte `divMod` 16
         in Builder.string7 ['\\', 'x', intToDigit high, intToDigit low]
