-- | Cursors and pages of SCAN, HSCAN, SSCAN and ZSCAN.
module Redis.Internal.Command.Scan
  ( ScanCursor (..),
    scanStart,
    ScanPage (..),
    scanPage,
    scanArguments,
  )
where

import Data.ByteString (ByteString)
import Data.Int (Int64)
import Redis.Command.Build
import Redis.Decode (Decoder)
import Redis.Decode qualified as Decode

-- | The position of a walk. Only the server that issued a cursor understands it.
newtype ScanCursor = ScanCursor ByteString
  deriving stock (Eq, Show)

-- | The beginning of a walk.
scanStart :: ScanCursor
scanStart = ScanCursor "0"

-- | The result of one step of a walk: of 'Redis.Commands.Keys.scan' over keys, of
-- 'Redis.Commands.Hash.hscan' over fields and values, and so on.
data ScanPage item = ScanPage
  { -- | The cursor of the next step; 'Nothing' at the end of the walk.
    scanNext :: Maybe ScanCursor,
    -- | The items that this step found; may be empty although the walk goes on.
    scanFound :: [item]
  }
  deriving stock (Eq, Show)

-- | Reads a cursor and the items found.
scanPage :: Decoder [item] -> Decoder (ScanPage item)
scanPage found reply = do
  (next, scanFound) <- Decode.pair Decode.bytes found reply
  pure ScanPage {scanNext = if next == "0" then Nothing else Just (ScanCursor next), scanFound}

-- | The cursor, MATCH and COUNT.
scanArguments :: ScanCursor -> Maybe ByteString -> Maybe Int64 -> [Argument]
scanArguments (ScanCursor cursor) glob count =
  arg cursor : option "MATCH" arg glob <> option "COUNT" positive count
