-- | Whether a server's @MONITOR@ can be read back.
--
-- A server must escape quotes, backslashes and control bytes in what it shows.
-- One that does not (Valkey 8.1.1) shows lines of which nobody can tell where a
-- word ends, and some of them look like others: what is recorded from it is not
-- what was sent. It cannot be told from the version, which proxies and forks
-- change. So before anything is kept, a word with all of these bytes is sent on a
-- connection of its own, and looked for in what the first one shows.
--
-- The word is sent by @ECHO@, which does nothing. A user who may not do that may
-- still say @HELLO@; the name that it would give the connection is refused, and
-- shown.
module Tool.Record.Probe
  ( probe,
    withoutProbe,
    Probed (..),
  )
where

import Control.Monad (when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import System.Posix.Process (getProcessID)
import System.Timeout (timeout)
import Tool.Bench.Cpu (monotonic)
import Tool.Monitor (Observed (observedWords), parseLine)
import Tool.Record.Wire

-- | Sends the word, and reads until it is shown. What was shown besides, which
-- is to be kept. Takes the connection that monitors, and one of the same node that
-- does not. Ends the program where the word is shown as something else, or not
-- within ten seconds.
probe :: Wire -> Wire -> IO ByteString
probe monitoring asking = do
  nonce <-
    Char8.pack
      <$> (unique <$> getProcessID <*> monotonic)
  let word = nonce <> awkward
  sendWord asking word
  timeout 10000000 (search nonce word ByteString.empty)
    >>= maybe
      ( blame
          monitoring
          "MONITOR does not show what another connection sends, so nothing can be recorded"
      )
      pure
  where
    unique process now = "redis-client-" <> show process <> "-" <> show now
    search nonce word seen = do
      bytes <- receive monitoring 65536
      when (ByteString.null bytes) $ blame monitoring "the server closed the connection"
      case withoutProbe nonce word (seen <> bytes) of
        NotYet -> search nonce word (seen <> bytes)
        ReadBack rest -> pure rest
        Garbled ->
          blame
            monitoring
            "its MONITOR does not escape quotes and backslashes \
            \(as Valkey 8.1.1 does not), so a recording would be wrong"

-- What a server must escape, and what makes a parser stop early if it does not.
awkward :: ByteString
awkward =
  ByteString.pack
    [ 32,
      34,
      32,
      34,
      92,
      34,
      92,
      92,
      10,
      13,
      9,
      7,
      8,
      0,
      127,
      255,
      92,
      120,
      52,
      49,
      92
    ]

-- | What was found of the word.
data Probed
  = -- | Its line has not come.
    NotYet
  | -- | It was shown so that it can be read back; all that came, without its
    -- line.
    ReadBack ByteString
  | -- | It was shown, as something else.
    Garbled
  deriving stock (Eq, Show)

-- | Looks for the line that contains the first text, which must show the second
-- as a word. \(O(n)\).
withoutProbe :: ByteString -> ByteString -> ByteString -> Probed
withoutProbe nonce word bytes
  | ByteString.null found || ByteString.null end = NotYet
  | Right observed <- parseLine (ByteString.drop 1 shown),
    word `elem` observedWords observed =
    ReadBack (before <> ByteString.drop 1 end)
  | otherwise = Garbled
  where
    (upToNonce, found) = ByteString.breakSubstring nonce bytes
    (before, begun) = Char8.breakEnd (== '\n') upToNonce
    (ended, end) = Char8.break (== '\n') found
    shown = begun <> Char8.filter (/= '\r') ended

sendWord :: Wire -> ByteString -> IO ()
sendWord asking word = do
  echo <- ["ECHO", word] `answeredOn` asking
  when ("-" `ByteString.isPrefixOf` echo) $ do
    hello <- ["HELLO", "2", "SETNAME", word] `answeredOn` asking
    when (any (`ByteString.isPrefixOf` hello) ["-NOPERM", "-ERR unknown"]) $
      blame
        asking
        ( "refuses ECHO, by which it is found out whether a recording would be right: "
            <> Char8.unpack (ByteString.drop 1 echo)
        )
