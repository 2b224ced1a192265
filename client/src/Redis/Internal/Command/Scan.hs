-- | Walks in steps, which SCAN and its kin for one key have in common.
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

-- | Where a walk stands: only the server knows what it means, and only the
-- server that gave it.
--
-- @since 0.1.0.0
newtype ScanCursor = ScanCursor ByteString
  deriving stock (Eq, Show)

-- | The beginning of a walk.
--
-- @since 0.1.0.0
scanStart :: ScanCursor
scanStart = ScanCursor "0"

-- | One step of a walk: of 'Redis.Commands.Keys.scan' over keys, of
-- 'Redis.Commands.Hash.hscan' over fields and values, and so on.
--
-- @since 0.1.0.0
data ScanPage item = ScanPage
  { -- | Where to go on; 'Nothing' at the end.
    scanNext :: Maybe ScanCursor,
    -- | What this step saw; maybe nothing, though the walk goes on.
    scanFound :: [item]
  }
  deriving stock (Eq, Show)

-- | A cursor and what was found.
scanPage :: Decoder [item] -> Decoder (ScanPage item)
scanPage found reply = do
  (next, scanFound) <- Decode.pair Decode.bytes found reply
  pure ScanPage {scanNext = if next == "0" then Nothing else Just (ScanCursor next), scanFound}

-- | The cursor, MATCH and COUNT.
scanArguments :: ScanCursor -> Maybe ByteString -> Maybe Int64 -> [Argument]
scanArguments (ScanCursor cursor) glob count =
  arg cursor : option "MATCH" arg glob <> option "COUNT" positive count
