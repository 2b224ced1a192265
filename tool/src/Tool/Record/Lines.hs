-- | Complete lines out of bytes that come in pieces. A line of megabytes comes in hundreds of
-- pieces, which are put together once, when the line ends.
module Tool.Record.Lines
  ( Unfinished,
    unfinished,
    feed,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8

-- | The pieces of a line that has not ended yet, newest first.
newtype Unfinished = Unfinished [ByteString]

-- | Before the first byte.
unfinished :: Unfinished
unfinished = Unfinished []

-- | Adds bytes. Returns all lines that are complete now, with their line ends. All pieces together
-- cost \(O(n)\).
feed :: Unfinished -> ByteString -> (ByteString, Unfinished)
feed (Unfinished pieces) bytes = case Char8.elemIndexEnd '\n' bytes of
  Nothing -> (ByteString.empty, Unfinished (bytes : pieces))
  Just end ->
    let (complete, rest) = ByteString.splitAt (end + 1) bytes
     in (ByteString.concat (reverse (complete : pieces)), Unfinished [rest])
