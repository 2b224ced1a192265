-- | How long a command may keep its caller waiting.
--
-- Servers tell which commands block, but not where their timeout is, nor its unit. The lists of
-- these are written by hand here; the tests compare them with all blocking commands of the table.
module Redis.Internal.Protocol.CommandTable.Blocking
  ( entryBlocks,
    withTimeout,

    -- * The lists
    timeoutLists,
  )
where

import Control.Monad (guard)
import Data.ByteString (ByteString)
import Data.ByteString.Char8 qualified as Char8
import Data.Char (toUpper)
import Data.List qualified as List
import Data.Set (Set)
import Data.Set qualified as Set
import Redis.Internal.Protocol.CommandTable.Entry
import Redis.Internal.Protocol.KeySpec (StreamOptions (blockMillisAt), streamOptions)
import Text.Read (readMaybe)

-- | For how many seconds a command can keep its caller waiting: 'Nothing' if the command does not
-- wait, and @Just Nothing@ if it waits until something happens.
--
-- A timeout that is not a number counts as no timeout: the server will refuse the command, and
-- until then no limit is certain.
entryBlocks :: CommandEntry -> [ByteString] -> Maybe (Maybe Double)
entryBlocks entry commandArguments = case waitingOf entry commandArguments of
  NoWait -> Nothing
  Waits -> Just Nothing
  WaitsAt position unit -> Just ((* unitSeconds unit) <$> (at position >>= seconds))
  where
    at position = case drop position commandArguments of
      word : _ -> Just word
      [] -> Nothing

-- | The words of a command with so many seconds for their timeout; 'Nothing' if there is none, or
-- it is not known where. The timeout is never zero, which would be for ever. Servers understand
-- fractions of a second since 6.0.0, and until 7.0.8 took one millisecond for zero.
withTimeout :: CommandEntry -> Double -> [ByteString] -> Maybe [ByteString]
withTimeout entry left commandArguments = case waitingOf entry commandArguments of
  WaitsAt position unit
    | (before, _ : after) <- splitAt position commandArguments -> Just (before <> (rendered unit : after))
  _ -> Nothing
  where
    millis = max 1 (ceiling (min 1e12 left * 1000)) :: Integer
    rendered = \case
      Milliseconds -> Char8.pack (show millis)
      Seconds -> Char8.pack (show whole <> "." <> drop 1 (show (1000 + part)))
    (whole, part) = max 2 millis `quotRem` 1000

-- | Whether a command waits, and which of its words, counted from 0, limits it.
data Waiting = NoWait | Waits | WaitsAt Int TimeUnit

data TimeUnit = Seconds | Milliseconds

unitSeconds :: TimeUnit -> Double
unitSeconds = \case
  Seconds -> 1
  Milliseconds -> 0.001

waitingOf :: CommandEntry -> [ByteString] -> Waiting
waitingOf CommandEntry {entryName, entryBlocking} commandArguments
  | entryName `Set.member` blockUntold =
    maybe NoWait (\(position, _) -> WaitsAt (position + 1) Milliseconds) (List.find ((== "BLOCK") . Char8.map toUpper . snd) (drop 3 (zip [0 ..] commandArguments)))
  | not entryBlocking = NoWait
  | entryName `Set.member` timeoutLast = WaitsAt lastPosition Seconds
  | entryName `Set.member` timeoutFirst = WaitsAt 1 Seconds
  | entryName `Set.member` timeoutFifth = WaitsAt 5 Seconds
  | entryName `Set.member` millisLast = WaitsAt lastPosition Milliseconds
  | entryName `Set.member` blockOption =
    maybe NoWait (`WaitsAt` Milliseconds) (blockMillisAt (streamOptions commandArguments))
  | otherwise = Waits
  where
    lastPosition = max 0 (length commandArguments - 1)

-- | The timeout in seconds is the last word.
timeoutLast :: Set ByteString
timeoutLast = named "BLMOVE BLPOP BRPOP BRPOPLPUSH BZPOPMAX BZPOPMIN"

-- | The timeout in seconds is the first word after the name.
timeoutFirst :: Set ByteString
timeoutFirst = named "BLMPOP BZMPOP"

-- | The timeout in seconds is the fifth word after the name: two keys and two ends stand before it,
-- and the number of elements behind it.
timeoutFifth :: Set ByteString
timeoutFifth = named "BLMOVEM"

-- | The timeout in milliseconds is the last word.
millisLast :: Set ByteString
millisLast = named "WAIT WAITAOF"

-- | The command waits only with an option, which has the milliseconds.
blockOption :: Set ByteString
blockOption = named "XREAD XREADGROUP"

-- | The command waits only with an option after its key and one more word, which has the
-- milliseconds, and servers do not call it blocking.
blockUntold :: Set ByteString
blockUntold = named "TS.READ"

-- | Every list of this module, with what it says of its commands.
timeoutLists :: [(String, Set ByteString)]
timeoutLists =
  [ ("the last word limits it", timeoutLast),
    ("the first word limits it", timeoutFirst),
    ("the fifth word limits it", timeoutFifth),
    ("the last word limits it, in milliseconds", millisLast),
    ("an option limits it", blockOption),
    ("an option limits it, though no server calls it blocking", blockUntold)
  ]

-- | Seconds from a server's notation; zero is for ever.
seconds :: ByteString -> Maybe Double
seconds word = do
  -- Haskell's reader wants a digit on both sides of the point.
  number <- readMaybe (padded (Char8.unpack word))
  guard (number > 0 && not (isInfinite number))
  pure number
  where
    padded digits = case span (/= '.') digits of
      (whole, '.' : fraction) -> orZero whole <> "." <> orZero fraction
      _ -> digits
    orZero part = if null part then "0" else part
