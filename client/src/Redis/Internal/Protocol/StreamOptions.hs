-- | The options of XREAD and XREADGROUP, which stand in any order before the
-- word STREAMS.
--
-- They are read as the servers read them, and not by looking for a word from
-- some position on: a group or a consumer may be called STREAMS or BLOCK, and
-- GROUP need not come first.
module Redis.Internal.Protocol.StreamOptions
  ( StreamOptions (..),
    streamOptions,
  )
where

import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (toUpper)

-- | Where the options are. Positions count from the command's name, which is 0.
data StreamOptions = StreamOptions
  { -- | The position of the milliseconds after BLOCK; the last BLOCK counts.
    blockMillisAt :: Maybe Int,
    -- | The position of the first key, which follows STREAMS.
    streamsAt :: Maybe Int
  }
  deriving stock (Eq, Show)

-- | Finds the options among the words of a command, its name included. A word that is no option is
-- passed over: the server will refuse it, or is newer and knows it. \(O(n)\) in the number of words
-- before the keys.
streamOptions :: [ByteString] -> StreamOptions
streamOptions = go 1 Nothing . drop 1
  where
    go position block = \case
      [] -> StreamOptions {blockMillisAt = block, streamsAt = Nothing}
      word : rest -> case (Char8.map toUpper word, rest) of
        ("STREAMS", _ : _) -> StreamOptions {blockMillisAt = block, streamsAt = Just (position + 1)}
        ("BLOCK", _ : after) -> go (position + 2) (Just (position + 1)) after
        ("COUNT", _ : after) -> go (position + 2) block after
        ("MAXCOUNT", _ : after) -> go (position + 2) block after
        ("MAXSIZE", _ : after) -> go (position + 2) block after
        ("CLAIM", _ : after) -> go (position + 2) block after
        ("GROUP", _ : _ : after) -> go (position + 3) block after
        _ -> go (position + 1) block rest
