-- | Connections for a recording, and whether the output of the server's @MONITOR@ can be read back.
-- A server that does not escape the lines that it shows (Valkey 8.1.1) would give a recording
-- that differs from what was sent. So this first sends a word with all bytes to escape on a
-- connection of its own, and looks for it on the monitoring one.
module Tool.Record.Wire
  ( Wire (..),
    withConnected,
    blame,
    ask,
    receive,
    Unfinished,
    unfinished,
    feed,

    -- * Whether MONITOR can be read back
    probe,
    newMark,
    sendWord,
    isMark,
    withoutProbe,
    Probed (..),
  )
where

import Control.Exception (handle, throwIO)
import Control.Monad (unless, when)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Text qualified as Text
import Redis.Config (ProtocolVersion (OnlyResp2), setProtocol)
import Redis.Error (ConnectionFailure (..), Error (ConnectionError), renderCause)
import Redis.TestKit.Command (encodeRequest)
import Redis.Wire qualified as Redis
import System.Posix.Process (getProcessID)
import System.Timeout (timeout)
import Tool.Bench.Time (monotonic)
import Tool.Connect (Target, quiet, targetConfig, targetEndpoint, targetNodeName)
import Tool.Failure (unavailable)
import Tool.Monitor (Observed (observedWords), parseLine)

-- | A connection, and the name of its node for error messages.
data Wire = Wire
  { wireName :: String,
    wireBytes :: Redis.Wire
  }

-- | Runs an action with an authenticated connection. Throws the library's error if it cannot
-- connect, and ends the program if the connection breaks.
withConnected :: Target -> (Wire -> IO a) -> IO a
withConnected target action =
  Redis.withWire config (targetEndpoint target) $ action . Wire (Text.unpack (targetNodeName target))
  where
    -- The lines of MONITOR are the same in both protocols, and a user may not be allowed HELLO.
    config = setProtocol OnlyResp2 (targetConfig quiet target)

-- | Ends the program because of a node's behaviour.
blame :: Wire -> String -> IO a
blame wire problem = unavailable (wireName wire <> ": " <> problem)

-- | Sends a request whose reply is one line. Ends the program if the reply is an error. All earlier
-- replies must have been read; nothing after this line is read. Blocks for the reply, for at most
-- ten seconds.
ask :: Wire -> [ByteString] -> IO ()
ask wire request = do
  answer <- request `answeredOn` wire
  unless ("+" `ByteString.isPrefixOf` answer) . blame wire $
    if "-" `ByteString.isPrefixOf` answer
      then "the server refuses: " <> Char8.unpack (ByteString.drop 1 answer)
      else "it does not speak the Redis protocol: " <> show (ByteString.take 40 answer)

-- The first line of the reply to a request, of at most a kilobyte. Blocks for it, for at most ten
-- seconds.
answeredOn :: [ByteString] -> Wire -> IO ByteString
answeredOn request wire =
  timeout 10000000 (send wire (encodeRequest request) >> line "")
    >>= maybe (blame wire "does not answer") pure
  where
    -- Reads one byte at a time, so that what follows stays unread.
    line sofar
      | "\r\n" `ByteString.isSuffixOf` sofar =
        pure (ByteString.take (ByteString.length sofar - 2) sofar)
      | ByteString.length sofar > 1024 = pure sofar
      | otherwise = line . (sofar <>) =<< receiveMore wire 1

-- Receives at least one byte. Ends the program if the peer has finished. Blocks.
receiveMore :: Wire -> Int -> IO ByteString
receiveMore wire most = do
  bytes <- receive wire most
  when (ByteString.null bytes) $ blame wire "the server closed the connection"
  pure bytes

-- | Receives at least one byte, unless the peer has finished. Blocks.
receive :: Wire -> Int -> IO ByteString
receive wire most = mended wire (Redis.receiveBytes (wireBytes wire) most)

-- | Sends all bytes. Blocks.
send :: Wire -> ByteString -> IO ()
send wire bytes = mended wire (Redis.sendBytes (wireBytes wire) bytes)

-- Names the connection that broke.
mended :: Wire -> IO a -> IO a
mended wire = handle $ \case
  ConnectionError ConnectionFailure {connectionCause = cause} -> blame wire (renderCause cause)
  other -> throwIO other

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

-- | Sends the word on the second connection, and reads until MONITOR shows it on the first, to the
-- same node. Returns the other lines that it showed, which belong to the recording, and the line that
-- has begun. Ends the program if the word is shown as something else, or not within ten seconds.
probe :: Wire -> Wire -> IO (ByteString, Unfinished)
probe monitoring asking = do
  nonce <- newMark
  let word = nonce <> awkward
  sendWord asking word
  timeout 10000000 (search nonce word [] unfinished) >>= maybe (blame monitoring unseen) pure
  where
    unseen = "MONITOR does not show what another connection sends, so nothing can be recorded"
    -- Takes the lines so far, newest first.
    search nonce word seen begun = do
      (complete, rest) <- feed begun <$> receiveMore monitoring 65536
      case withoutProbe nonce word complete of
        NotYet -> search nonce word (complete : seen) rest
        ReadBack others -> pure (ByteString.concat (reverse (others : seen)), rest)
        Garbled -> blame monitoring garbled
    garbled =
      "its MONITOR does not escape quotes and backslashes (as Valkey 8.1.1 does not), \
      \so a recording would be wrong"

-- Bytes that a server must escape, and bytes that make a parser stop early if it does not.
awkward :: ByteString
awkward = " \" \"\\\"\\\\\n\r\t\a\b\0\DEL\255\\x41\\"

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
  | any (elem word . observedWords) (parseLine (ByteString.drop 1 shown)) =
    ReadBack (before <> ByteString.drop 1 end)
  | otherwise = Garbled
  where
    (upToNonce, found) = ByteString.breakSubstring nonce bytes
    (before, begun) = Char8.breakEnd (== '\n') upToNonce
    (ended, end) = Char8.break (== '\n') found
    shown = begun <> Char8.filter (/= '\r') ended

-- | Whether a line of MONITOR shows this word. \(O(n)\).
isMark :: ByteString -> ByteString -> Bool
isMark word line = word `ByteString.isInfixOf` line && any (elem word . observedWords) (parseLine line)

-- | A word that nobody else sends.
newMark :: IO ByteString
newMark = do
  process <- getProcessID
  now <- monotonic
  pure (Char8.pack ("redis-client-" <> show process <> "-" <> show now))

-- | Sends a word, which MONITOR then shows after all that went before it. Takes a connection that
-- does not monitor. Ends the program if the server refuses it.
sendWord :: Wire -> ByteString -> IO ()
sendWord asking word = do
  echo <- ["ECHO", word] `answeredOn` asking
  when ("-" `ByteString.isPrefixOf` echo) $ do
    hello <- ["HELLO", "2", "SETNAME", word] `answeredOn` asking
    when (any (`ByteString.isPrefixOf` hello) ["-NOPERM", "-ERR unknown"]) . blame asking $
      "refuses ECHO, by which it is found out whether a recording would be right: "
        <> Char8.unpack (ByteString.drop 1 echo)
