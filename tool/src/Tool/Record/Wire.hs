-- | Connections for a recording. They carry bytes, because @MONITOR@ is the only command whose
-- replies never end.
module Tool.Record.Wire
  ( Wire (..),
    withConnected,
    blame,
    ask,
    answeredOn,
    receive,
  )
where

import Control.Exception (handle, throwIO)
import Control.Monad (unless)
import Data.ByteString (ByteString)
import Data.ByteString qualified as ByteString
import Data.ByteString.Char8 qualified as Char8
import Data.Text qualified as Text
import Redis.Config (ProtocolVersion (OnlyResp2), setProtocol)
import Redis.Error (ConnectionFailure (..), Endpoint (..), Error (ConnectionError), renderCause)
import Redis.TestKit.Command (encodeRequest)
import Redis.Wire qualified as Redis
import System.Timeout (timeout)
import Tool.Connect (Target (..), quiet, targetConfig, targetNodeName)
import Tool.Failure (unavailable)

-- | A connection, and the name of its node for error messages.
data Wire = Wire
  { wireName :: String,
    wireBytes :: Redis.Wire
  }

-- | Runs an action with an authenticated connection. Throws the library's error if it cannot
-- connect, and ends the program if the connection breaks.
withConnected :: Target -> (Wire -> IO a) -> IO a
withConnected target action =
  Redis.withWire config endpoint $ \bytes ->
    action Wire {wireName = Text.unpack (targetNodeName target), wireBytes = bytes}
  where
    -- The lines of MONITOR are the same in both protocols, and a user may not be allowed HELLO.
    config = setProtocol OnlyResp2 (targetConfig quiet target)
    endpoint =
      maybe (TcpEndpoint (targetHost target) (targetPort target)) UnixEndpoint (targetSocket target)

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

-- | The first line of the reply to a request, of at most a kilobyte. Blocks for it, for at most ten
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
      | otherwise = do
        byte <- receive wire 1
        if ByteString.null byte
          then blame wire "the server closed the connection"
          else line (sofar <> byte)

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
