-- | Checks whether the output of a server's @MONITOR@ can be read back.
--
-- A server must escape quotes, backslashes and control bytes in the lines it shows. If it does not
-- (Valkey 8.1.1), nobody can tell where a word ends, and some lines look like others: the recording
-- would differ from what was sent. The version does not tell, because proxies and forks change it.
-- So before recording, this sends a word with all of these bytes on a connection of its own, and
-- looks for it in what the monitoring connection shows.
--
-- The word is sent by @ECHO@, which does nothing. A user who is not allowed to do that may
-- still be allowed @HELLO@: the server refuses the name for the connection, but shows it.
module Tool.Record.Probe
  ( probe,
    newMark,
    sendWord,
    isMark,
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
import Tool.Record.Lines (Unfinished, feed, unfinished)
import Tool.Record.Wire

-- | Sends the word, and reads until MONITOR shows it. Returns the other lines that it showed, which
-- belong to the recording, and the line that has begun. Takes the monitoring connection, and another connection to the same
-- node. Ends the program if the word is shown as something else, or not within ten seconds.
probe :: Wire -> Wire -> IO (ByteString, Unfinished)
probe monitoring asking = do
  nonce <- newMark
  let word = nonce <> awkward
  sendWord asking word
  timeout 10000000 (search nonce word [] unfinished)
    >>= maybe
      ( blame
          monitoring
          "MONITOR does not show what another connection sends, so nothing can be recorded"
      )
      pure
  where
    -- Takes the lines so far, newest first.
    search nonce word seen begun = do
      bytes <- receive monitoring 65536
      when (ByteString.null bytes) $ blame monitoring "the server closed the connection"
      let (complete, rest) = feed begun bytes
      case withoutProbe nonce word complete of
        NotYet -> search nonce word (complete : seen) rest
        ReadBack others -> pure (ByteString.concat (reverse (others : seen)), rest)
        Garbled ->
          blame
            monitoring
            "its MONITOR does not escape quotes and backslashes \
            \(as Valkey 8.1.1 does not), so a recording would be wrong"

-- Bytes that a server must escape, and bytes that make a parser stop early if it does not.
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

-- | The state of the search for the word.
data Probed
  = -- | The word's line has not come yet.
    NotYet
  | -- | The word can be read back. Has all bytes that came, without its line.
    ReadBack ByteString
  | -- | The word was shown as something else.
    Garbled
  deriving stock (Eq, Show)

-- | Looks for the line that contains the first text, which must show the second as a word.
-- \(O(n)\).
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

-- | Whether a line of MONITOR shows this word. \(O(n)\).
isMark :: ByteString -> ByteString -> Bool
isMark word line = word `ByteString.isInfixOf` line && either (const False) ((word `elem`) . observedWords) (parseLine line)

-- | A word that nobody else sends.
newMark :: IO ByteString
newMark = named <$> getProcessID <*> monotonic
  where
    named process now = Char8.pack ("redis-client-" <> show process <> "-" <> show now)

-- | Sends a word, which MONITOR then shows after all that went before it. Takes a connection that
-- does not monitor. Ends the program if the server refuses it.
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
