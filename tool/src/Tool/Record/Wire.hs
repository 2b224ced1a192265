-- | Connections that a recording needs: bytes, because nothing but @MONITOR@ is
-- answered for ever.
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

-- | A connection, and the name of the node for what goes wrong there.
data Wire = Wire
  { wireName :: String,
    wireBytes :: Redis.Wire
  }

-- | A connection for the length of an action, authenticated. Throws the
-- library's error where there is none, and ends the program where it breaks.
withConnected :: Target -> (Wire -> IO a) -> IO a
withConnected target action =
  Redis.withWire config endpoint $ \bytes ->
    action Wire {wireName = Text.unpack (targetNodeName target), wireBytes = bytes}
  where
    -- The lines of MONITOR are the same in both protocols, and a user may be
    -- refused HELLO.
    config = setProtocol OnlyResp2 (targetConfig quiet target)
    endpoint =
      maybe (TcpEndpoint (targetHost target) (targetPort target)) UnixEndpoint (targetSocket target)

-- | Ends the program because of what the node does.
blame :: Wire -> String -> IO a
blame wire problem = unavailable (wireName wire <> ": " <> problem)

-- | A request that is answered with one line, and not with an error. Nothing may
-- be unread before it, and nothing after that line is read. Blocks for it, for at
-- most ten seconds.
ask :: Wire -> [ByteString] -> IO ()
ask wire request = do
  answer <- request `answeredOn` wire
  unless ("+" `ByteString.isPrefixOf` answer) . blame wire $
    if "-" `ByteString.isPrefixOf` answer
      then "the server refuses: " <> Char8.unpack (ByteString.drop 1 answer)
      else "it does not speak as Redis does: " <> show (ByteString.take 40 answer)

-- | The first line of the answer to a request, of a kilobyte at most. Blocks for
-- it, for at most ten seconds.
answeredOn :: [ByteString] -> Wire -> IO ByteString
answeredOn request wire =
  timeout 10000000 (send wire (encodeRequest request) >> line "")
    >>= maybe (blame wire "does not answer") pure
  where
    -- A byte at a time, so that what follows stays unread.
    line sofar
      | "\r\n" `ByteString.isSuffixOf` sofar =
        pure (ByteString.take (ByteString.length sofar - 2) sofar)
      | ByteString.length sofar > 1024 = pure sofar
      | otherwise = do
        byte <- receive wire 1
        if ByteString.null byte
          then blame wire "the server closed the connection"
          else line (sofar <> byte)

-- | At least a byte, unless the peer has finished. Blocks.
receive :: Wire -> Int -> IO ByteString
receive wire most = mended wire (Redis.receiveBytes (wireBytes wire) most)

-- | All of it. Blocks.
send :: Wire -> ByteString -> IO ()
send wire bytes = mended wire (Redis.sendBytes (wireBytes wire) bytes)

-- Says which connection broke.
mended :: Wire -> IO a -> IO a
mended wire = handle $ \case
  ConnectionError ConnectionFailure {connectionCause = cause} -> blame wire (renderCause cause)
  other -> throwIO other
